/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what was written back, as any trace is read, and holds it against the raw columns. Tracks share nothing,
 * so they are shared out to threads, the largest first; a thread's busy time is a piece of work of its own.
 */
#include "reduce_check.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <reducer/marks.h>
#include <reducer/trace.h>

#include "verify_args.h"

enum { CHECK_THREADS_MAX = 16, CHECK_SMALL_EVENTS = 50000, MARK_FOUND = 1 };

/* Differences of times beyond this do not fit into ps. */
static const int64_t REACH_NS = 50ll * 86400 * 1000000000;

/* --- what is said --- */

static void print_track(const struct reducer_reduce *r, uint32_t track, char *text, size_t room)
{
	const struct reduce_tracks *tracks = &r->tracks;
	struct reducer_text group = reduce_track_group(tracks, track), its = reduce_track_track(tracks, track);
	snprintf(text, room, "%.*s/%.*s", (int)(group.bytes < 50 ? group.bytes : 50), group.bytes ? group.data : "",
		 (int)(its.bytes < 60 ? its.bytes : 60), its.bytes ? its.data : "");
	size_t n = 0;
	for (const char *p = text; *p; p++)
		if (*p != '"')
			text[n++] = (unsigned char)*p < ' ' || *p == 127 ? '?' : *p;
	text[n] = '\0';
}

void check_failed(struct check *c, enum reducer_promise promise, uint32_t track, const int64_t *at,
		  const char *format, ...)
{
	struct reducer_verify_report *report = c->report;
	va_list values;
	if (report->failed[promise]++ >= REDUCER_DIFFERENCES_EACH || report->n_differences == REDUCER_DIFFERENCES_MAX)
		return;
	struct reducer_difference *one = &report->difference[report->n_differences++];
	*one = (struct reducer_difference){.promise = promise, .has_time = at != NULL};
	if (track != REDUCE_NONE)
		print_track(c->raw, track, one->track, sizeof(one->track));
	if (at)
		one->time = verify_moment((verify_ps)c->raw->zero_ns * 1000 + *at);
	va_start(values, format);
	vsnprintf(one->what, sizeof(one->what), format, values);
	va_end(values);
}

struct check_name check_name_of(const struct reducer_reduce *r, uint32_t event)
{
	struct check_name name;
	struct reducer_text text = reduce_name_text(&r->names, r->col.name[event]);
	if (text.bytes >= 2 && text.data[0] == '"')
		text = (struct reducer_text){text.data + 1, text.bytes - 2};
	snprintf(name.text, sizeof(name.text), "%.*s", (int)(text.bytes < 60 ? text.bytes : 60), text.bytes ? text.data : "");
	return name;
}

struct check_us check_us_of(int64_t ps)
{
	struct check_us us;
	uint64_t size = ps < 0 ? 0 - (uint64_t)ps : (uint64_t)ps;
	int used = snprintf(us.text, sizeof(us.text), "%s%" PRIu64 ".%03" PRIu64, ps < 0 ? "-" : "", size / 1000000,
			    size / 1000 % 1000);
	if (size % 1000)
		used += snprintf(us.text + used, sizeof(us.text) - (size_t)used, "%03" PRIu64, size % 1000);
	snprintf(us.text + used, sizeof(us.text) - (size_t)used, " us");
	return us;
}

/* --- what belongs together --- */

static bool same_text(struct reducer_text a, struct reducer_text b)
{
	return a.bytes == b.bytes && (!a.bytes || memcmp(a.data, b.data, a.bytes) == 0);
}

uint32_t check_find_track(const struct reduce_tracks *of, const struct reduce_tracks *tracks, uint32_t track)
{
	uint64_t hash = tracks->track[track].hash;
	for (uint32_t i = (uint32_t)hash & (of->slots - 1); of->slot[i] != REDUCE_NONE; i = (i + 1) & (of->slots - 1)) {
		uint32_t at = of->slot[i];
		if (of->track[at].hash == hash && of->track[at].class == tracks->track[track].class &&
		    same_text(reduce_track_group(of, at), reduce_track_group(tracks, track)) &&
		    same_text(reduce_track_track(of, at), reduce_track_track(tracks, track)) &&
		    same_text(reduce_track_rest(of, at), reduce_track_rest(tracks, track)))
			return at;
	}
	return REDUCE_NONE;
}

struct check_side check_side_of(const struct check *c, bool raw, uint32_t track, bool spans)
{
	const struct reducer_reduce *r = raw ? c->raw : c->out;
	struct check_side side = {.of = r, .col = &r->col, .track = track, .shift = raw ? 0 : c->shift_ps};
	if (track == REDUCE_NONE || r->tracks.track[track].shut)
		return side;
	side.order = r->order + r->tracks.track[track].first;
	side.count = spans ? r->tracks.track[track].n_spans : r->tracks.track[track].n_events;
	return side;
}

uint32_t check_said(const struct check *c, bool raw, uint32_t name)
{
	if (name & REDUCE_NAME_UNKNOWN)
		return name;
	return raw ? c->raw_said[name] : c->out_said[name];
}

uint64_t check_events_of(const struct reducer_reduce *r, uint32_t event)
{
	const struct reduce_stands *stands = NULL;
	if (r->col.bits[event] & BIT_MERGED)
		stands = reduce_stands_of(r, event);
	return stands ? stands->events : 1;
}

/* Raw names by what they say: several may say the same, where they are no valid JSON. */
struct said {
	const struct reduce_names *names;
	uint32_t *slot, slots;
};

static uint32_t *find_said(const struct said *said, struct reducer_text text)
{
	uint32_t at = (uint32_t)reduce_hash(0, text.data, text.bytes) & (said->slots - 1);
	while (said->slot[at] != REDUCE_NONE && !same_text(reduce_name_text(said->names, said->slot[at]), text))
		at = (at + 1) & (said->slots - 1);
	return &said->slot[at];
}

static int pair_names(const struct check *c, uint32_t **ret_raw, uint32_t **ret_out)
{
	const struct reduce_names *raw = &c->raw->names, *out = &c->out->names;
	struct said said = {raw, NULL, 64};
	while (said.slots / 2 < raw->count)
		said.slots *= 2;
	said.slot = malloc(said.slots * sizeof(*said.slot));
	*ret_raw = malloc(((size_t)raw->count + 1) * sizeof(**ret_raw));
	*ret_out = malloc(((size_t)out->count + 1) * sizeof(**ret_out));
	if (!said.slot || !*ret_raw || !*ret_out) {
		free(said.slot);
		return -ENOMEM;
	}
	memset(said.slot, 0xff, said.slots * sizeof(*said.slot));
	for (uint32_t i = 0; i < raw->count; i++) {
		uint32_t *slot = find_said(&said, reduce_name_text(raw, i));
		if (*slot == REDUCE_NONE)
			*slot = i;
		(*ret_raw)[i] = *slot;
	}
	for (uint32_t i = 0; i < out->count; i++)
		(*ret_out)[i] = *find_said(&said, reduce_name_text(out, i));
	free(said.slot);
	return 0;
}

/* --- reading back --- */

/* The first event of a trace that says that it is reduced, mostly. */
static int on_mark(void *context, const struct reducer_event *event)
{
	static const char name[] = REDUCER_MARK_REDUCED;
	struct verify_mark *mark = context;
	if (event->kind != DREC_META || !same_text(event->name, (struct reducer_text){name, sizeof(name) - 1}))
		return 0;
	verify_args_mark(event->args, mark);
	return MARK_FOUND;
}

static int check_mark(struct check *c)
{
	const struct reducer_reduce *raw = c->raw;
	const verify_ps zero = (verify_ps)raw->zero_ns * 1000;
	struct verify_mark mark = {0};
	struct reducer_sink sink = {&mark, on_mark, NULL};
	struct reducer_read_report *read = calloc(1, sizeof(*read));
	int result = read ? reducer_trace_read(c->out->path, c->out->format, &sink, read) : -ENOMEM;
	free(read);
	if (result < 0)
		return result;
	check_made(c, REDUCER_M5);
	if (result != MARK_FOUND || !mark.is_readable)
		check_failed(c, REDUCER_M5, REDUCE_NONE, NULL, "it does not say that it is reduced, or not how");
	else if (mark.bin != raw->bin_ps || mark.origin != zero)
		check_failed(c, REDUCER_M5, REDUCE_NONE, NULL, "it says other bins than those that were asked for");
	else if (mark.has_window != raw->options.has_window ||
		 (mark.has_window && (mark.window_from != zero + raw->options.window_from_ps ||
				      mark.window_to != zero + raw->options.window_to_ps)))
		check_failed(c, REDUCER_M5, REDUCE_NONE, NULL, "it says another window than what was asked for");
	return 0;
}

static int read_back(const struct reducer_reduce *raw, const char *path, struct reducer_reduce **ret_out,
		     struct reducer_problem *ret_problem)
{
	struct reducer_reduce *out = calloc(1, sizeof(*out));
	int result = out ? 0 : -ENOMEM;
	if (result == 0) {
		out->options.threads = raw->options.threads;
		out->path = strdup(path);
		result = out->path ? reduce_tracks_init(&out->tracks) : -ENOMEM;
	}
	if (result == 0)
		result = reduce_names_init(&out->names);
	if (result == 0)
		result = reduce_read_events(out);
	if (result < 0 && out && out->read.n_problems)
		*ret_problem = out->read.problem[out->read.n_problems - 1];
	if (result == 0)
		result = reduce_settle(out);
	if (result < 0) {
		reducer_reduce_free(out);
		return result;
	}
	*ret_out = out;
	return 0;
}

/* Zero may be another event's time. */
static void align(struct check *c)
{
	int64_t apart;
	if (__builtin_sub_overflow(c->out->zero_ns, c->raw->zero_ns, &apart) || apart > REACH_NS || apart < -REACH_NS)
		apart = 0; /* nothing is where it was, or there is nothing that has a time */
	c->shift_ps = apart * 1000;
}

/* --- the work --- */

struct work {
	struct check check;
	const uint32_t *by_size; /* raw tracks */
	atomic_uint *next;
	int result;
};

static void check_track(struct check *c, uint32_t track)
{
	uint32_t out = check_find_track(&c->out->tracks, &c->raw->tracks, track);
	switch (c->raw->tracks.track[track].class) {
	case CLASS_THREAD:
		check_spans(c, track, out);
		break;
	case CLASS_INSTANTS:
		check_instants(c, track, out);
		break;
	case CLASS_COUNTER:
		check_counter(c, track, out);
		break;
	case CLASS_ASYNC:
		check_async(c, track, out);
		break;
	default:
		break;
	}
}

/* Flows and what is of no track come first, then each track twice: its busy time, and all else. */
static void *run(void *context)
{
	struct work *w = context;
	struct check *c = &w->check;
	uint64_t pieces = 3 + 2 * (uint64_t)c->raw->tracks.count;
	while (w->result == 0) {
		uint32_t piece = atomic_fetch_add(w->next, 1);
		if (piece >= pieces)
			break;
		if (piece < 3) {
			w->result = piece == 0 ? check_flows(c) : piece == 1 ? check_rest(c) : check_async_sums(c);
			continue;
		}
		uint32_t track = w->by_size[(piece - 3) / 2];
		if (piece % 2)
			check_track(c, track);
		else if (c->raw->tracks.track[track].class == CLASS_THREAD)
			check_busy(c, track, check_find_track(&c->out->tracks, &c->raw->tracks, track));
	}
	return NULL;
}

static int larger_first(const void *a, const void *b, void *context)
{
	const struct reduce_track *track = context;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	if (track[x].n_events != track[y].n_events)
		return track[x].n_events > track[y].n_events ? -1 : 1;
	return (x > y) - (x < y);
}

static void add_report(struct reducer_verify_report *into, const struct reducer_verify_report *from)
{
	unsigned told[REDUCER_M5 + 1] = {0};
	for (unsigned i = 0; i < into->n_differences; i++)
		told[into->difference[i].promise]++;
	for (unsigned i = 0; i < from->n_differences && into->n_differences < REDUCER_DIFFERENCES_MAX; i++)
		if (told[from->difference[i].promise]++ < REDUCER_DIFFERENCES_EACH)
			into->difference[into->n_differences++] = from->difference[i];
	for (int promise = 0; promise <= REDUCER_M5; promise++) {
		into->checked[promise] += from->checked[promise];
		into->failed[promise] += from->failed[promise];
	}
	into->tracks += from->tracks;
}

static int start_work(struct work *w, const struct check *c, const uint32_t *by_size, atomic_uint *next)
{
	*w = (struct work){.check = *c, .by_size = by_size, .next = next};
	w->check.report = calloc(1, sizeof(*w->check.report));
	w->check.stamp = calloc((size_t)c->raw->names.count + 1, sizeof(*w->check.stamp));
	return w->check.report && w->check.stamp ? 0 : -ENOMEM;
}

static int share_out(struct check *c, const uint32_t *by_size)
{
	unsigned threads = c->raw->options.threads ? c->raw->options.threads : 2;
	struct work work[CHECK_THREADS_MAX] = {0};
	pthread_t thread[CHECK_THREADS_MAX];
	bool started[CHECK_THREADS_MAX] = {false};
	atomic_uint next = 0;
	int result = 0;
	threads = threads > CHECK_THREADS_MAX ? CHECK_THREADS_MAX : threads;
	if (c->raw->col.count < CHECK_SMALL_EVENTS)
		threads = 1;
	for (unsigned i = 0; i < threads && result == 0; i++)
		result = start_work(&work[i], c, by_size, &next);
	/* A thread that cannot be started is done without. */
	for (unsigned i = 1; i < threads && result == 0; i++)
		started[i] = pthread_create(&thread[i], NULL, run, &work[i]) == 0;
	if (result == 0)
		run(&work[0]);
	for (unsigned i = 0; i < threads; i++) {
		if (started[i])
			pthread_join(thread[i], NULL);
		result = result < 0 ? result : work[i].result;
		if (work[i].check.report)
			add_report(c->report, work[i].check.report);
		free(work[i].check.report);
		free(work[i].check.stamp);
	}
	return result;
}

/* A track of what was written that the raw trace does not have. What is merged of async events is on tracks of its
 * own; flows are known by themselves. */
static void check_strangers(struct check *c)
{
	const struct reducer_reduce *out = c->out;
	for (uint32_t t = 0; t < out->tracks.count; t++) {
		const struct reduce_track *track = &out->tracks.track[t];
		uint32_t raw = check_find_track(&c->raw->tracks, &out->tracks, t), strangers = 0;
		if (track->class == CLASS_FLOWS || track->class == CLASS_NOWHERE || raw != REDUCE_NONE)
			continue;
		for (uint32_t i = 0; i < track->n_events; i++) {
			uint32_t e = out->order[track->first + i];
			if (reduce_kind_of(out->col.bits[e]) == KIND_ASYNC_END && (out->col.bits[e] & BIT_PAIR))
				e = (uint32_t)out->col.length[e];
			strangers += track->class != CLASS_ASYNC || !(out->col.bits[e] & BIT_MERGED);
		}
		if (!strangers && !track->n_samples)
			continue;
		check_made(c, REDUCER_M5);
		check_failed(c, REDUCER_M5, REDUCE_NONE, NULL, "%" PRIu32 " events are on a track that the raw trace does not have",
			     strangers);
	}
}

static int compare(struct check *c)
{
	const struct reduce_tracks *tracks = &c->raw->tracks;
	uint32_t *raw_said = NULL, *out_said = NULL;
	uint32_t *by_size = malloc(((size_t)tracks->count + 1) * sizeof(*by_size));
	int result = by_size ? pair_names(c, &raw_said, &out_said) : -ENOMEM;
	if (result == 0) {
		c->raw_said = raw_said;
		c->out_said = out_said;
		for (uint32_t i = 0; i < tracks->count; i++)
			by_size[i] = i;
		if (tracks->count)
			qsort_r(by_size, tracks->count, sizeof(*by_size), larger_first, tracks->track);
		align(c);
		check_members(c);
		check_strangers(c);
		result = check_mark(c);
	}
	if (result == 0)
		result = share_out(c, by_size);
	free(raw_said);
	free(out_said);
	free(by_size);
	return result;
}

int reducer_reduce_check(const struct reducer_reduce *raw, const char *path, struct reducer_verify_report *report,
			 struct reducer_problem *ret_problem)
{
	struct reducer_reduce *out = NULL;
	struct reducer_problem problem = {0};
	*report = (struct reducer_verify_report){0};
	int result = read_back(raw, path, &out, &problem);
	if (result < 0) {
		*ret_problem = problem;
		return result;
	}
	struct check check = {.raw = raw, .out = out, .bin_ps = raw->bin_ps, .report = report};
	report->raw = raw->read;
	report->reduced = out->read;
	report->raw_format = raw->format;
	report->reduced_format = out->format;
	report->raw_events = raw->col.count;
	report->reduced_events = out->col.count;
	result = out->format == raw->format ? compare(&check) : -EINVAL;
	reducer_reduce_free(out);
	return result;
}
