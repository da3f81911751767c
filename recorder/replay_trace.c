/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Chrome trace or XPlane file through the triggers. Events of a file are in no order, so its spans are kept (40 bytes
 * each) and fed by their ends: a span is known once it is over, as it is live.
 *
 * Steps: spans whose name matches a pattern (ProfilerStep#7); where there are none, the spans of a track that
 * carry the same `step` in their args make one step, and its own work is told to its peers (replay_busy.h). Where no
 * track has enough steps to learn from, every name that is frequent on a track is a series that may fire, but for
 * those that nest in themselves. Spans whose name is known as a phase (sources/phases.h) are one, as live.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <reducer/trace.h>

#include "ns.h"
#include "plain_text.h"
#include "replay.h"
#include "replay_busy.h"
#include "sources/device_busy.h"
#include "trigger_settings.h"

enum {
	SPANS_MAX = 1 << 26,
	NAMES_MAX = 1 << 20,
	PATTERNS_USUAL = 4,
	STEPS_ENOUGH = 24, /* warm-up and a few to judge */
	FREQUENT = 32
};

static const char *const usual_steps[PATTERNS_USUAL] = {"ProfilerStep#*", "step", "train_step", "train #*"};

struct span {
	int64_t start_ns, duration_ns;
	int64_t step; /* INT64_MIN = none */
	uint32_t track, name;
	int64_t sample;
};

static int64_t end_of(const struct span *span)
{
	return ns_add(span->start_ns, span->duration_ns);
}

/* Texts numbered in the order they were first seen. */
struct names {
	char **text;
	uint32_t count, room;
	uint32_t *bucket; /* index + 1 */
	uint32_t buckets; /* a power of two, more than 2 x count */
};

/* What one name on one track is: counted, then made a series. */
struct row {
	uint32_t track, name;
	uint32_t count;
	uint32_t series;
	int64_t samples;
	int64_t end_ns; /* of the spans looked at so far */
	bool nests;     /* some lie in others: a wrapper around different work, without a usual length */
	unsigned phase; /* that its spans are: enum of phases.h */
};

struct rows {
	struct row *row;
	uint32_t count, buckets; /* open addressing; name UINT32_MAX = free */
};

struct trace {
	struct replay *replay;
	struct names tracks, names;
	struct rows rows;
	struct span *span;
	size_t count, room;
	uint32_t step_name;
	struct replay_busy *busy; /* where steps are made of args */
	struct device_busy *devices;
	bool has_step_args, has_named_steps;
};

static uint32_t hash_text(const char *text, size_t bytes)
{
	uint32_t hash = 0x811c9dc5u;
	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ (unsigned char)text[i]) * 0x01000193u;
	return hash ^ hash >> 15;
}

static int names_grow(struct names *names)
{
	uint32_t buckets = names->buckets ? 2 * names->buckets : 1024;
	char **text = realloc(names->text, buckets / 2 * sizeof(*text));
	if (!text)
		return -ENOMEM;
	names->text = text;
	names->room = buckets / 2;
	uint32_t *bucket = calloc(buckets, sizeof(*bucket));
	if (!bucket)
		return -ENOMEM;
	for (uint32_t i = 0; i < names->count; i++) {
		uint32_t at = hash_text(text[i], strlen(text[i])) & (buckets - 1);
		while (bucket[at])
			at = (at + 1) & (buckets - 1);
		bucket[at] = i + 1;
	}
	free(names->bucket);
	names->bucket = bucket;
	names->buckets = buckets;
	return 0;
}

/* The number of a text of at most 255 bytes (longer ones are cut), or -errno. */
static int64_t names_number(struct names *names, const char *text, size_t bytes)
{
	bytes = bytes > 255 ? 255 : bytes;
	bytes = strnlen(text, bytes);
	if (names->count == names->room) {
		int result = names->count == NAMES_MAX ? -E2BIG : names_grow(names);
		if (result)
			return result;
	}
	uint32_t at = hash_text(text, bytes) & (names->buckets - 1);
	for (; names->bucket[at]; at = (at + 1) & (names->buckets - 1)) {
		const char *known = names->text[names->bucket[at] - 1];
		if (!strncmp(known, text, bytes) && !known[bytes])
			return names->bucket[at] - 1;
	}
	char *copy = strndup(text, bytes);
	if (!copy)
		return -ENOMEM;
	names->text[names->count] = copy;
	names->bucket[at] = ++names->count;
	return names->count - 1;
}

static void names_free(struct names *names)
{
	for (uint32_t i = 0; i < names->count; i++)
		free(names->text[i]);
	free(names->text);
	free(names->bucket);
}

static struct row *rows_place(const struct rows *rows, uint32_t track, uint32_t name)
{
	uint32_t at = (track * 0x9e3779b1u ^ name * 0x85ebca6bu) >> 7 & (rows->buckets - 1);
	while (rows->row[at].name != UINT32_MAX &&
	       (rows->row[at].name != name || rows->row[at].track != track))
		at = (at + 1) & (rows->buckets - 1);
	return &rows->row[at];
}

static int rows_grow(struct rows *rows)
{
	struct rows larger = {.count = rows->count, .buckets = rows->buckets ? 2 * rows->buckets : 4096};
	larger.row = malloc(larger.buckets * sizeof(*larger.row));
	if (!larger.row)
		return -ENOMEM;
	for (uint32_t i = 0; i < larger.buckets; i++)
		larger.row[i] = (struct row){
			.name = UINT32_MAX, .series = TRIGGERS_SERIES_NONE, .end_ns = INT64_MIN};
	for (uint32_t i = 0; i < rows->buckets; i++)
		if (rows->row[i].name != UINT32_MAX)
			*rows_place(&larger, rows->row[i].track, rows->row[i].name) = rows->row[i];
	free(rows->row);
	*rows = larger;
	return 0;
}

static struct row *rows_take(struct rows *rows, uint32_t track, uint32_t name)
{
	if (2 * rows->count >= rows->buckets && rows_grow(rows))
		return NULL;
	struct row *row = rows_place(rows, track, name);
	if (row->name == UINT32_MAX) {
		row->track = track;
		row->name = name;
		rows->count++;
	}
	return row;
}

/* A whole number at the end of a name, or INT64_MIN. */
static int64_t trailing_number(const char *text)
{
	size_t bytes = strlen(text), from = bytes;
	int64_t number;
	while (from && text[from - 1] >= '0' && text[from - 1] <= '9')
		from--;
	return from < bytes && !replay_decimal(text + from, 0, &number) ? number : INT64_MIN;
}

/* "step" or "step_num" among the args as written: {"step": 16, …}. */
static int64_t step_of_args(struct reducer_text args)
{
	static const char *const keys[] = {"\"step\"", "\"step_num\""};
	char number[24];
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && args.data; i++) {
		const char *at = memmem(args.data, args.bytes, keys[i], strlen(keys[i])),
			   *end = args.data + args.bytes;
		if (!at)
			continue;
		size_t used = 0;
		for (at += strlen(keys[i]); at < end && strchr(" :\"\t\n\r", *at); at++)
			;
		for (; at < end && *at >= '0' && *at <= '9' && used < sizeof(number) - 1; at++)
			number[used++] = *at;
		number[used] = 0;
		int64_t step;
		if (used && !replay_decimal(number, 0, &step))
			return step;
	}
	return INT64_MIN;
}

static bool is_step(const struct trace *trace, const char *name)
{
	const struct option_texts *given = &trace->replay->settings->step;
	for (int i = 0; i < given->count; i++)
		if (triggers_pattern_match(given->text[i], name))
			return true;
	for (int i = 0; i < PATTERNS_USUAL && !given->count; i++)
		if (triggers_pattern_match(usual_steps[i], name))
			return true;
	return false;
}

static int append(struct trace *trace, struct span span)
{
	if (trace->count == trace->room) {
		size_t room = trace->room ? 2 * trace->room : 4096;
		struct span *larger = room > SPANS_MAX ? NULL : realloc(trace->span, room * sizeof(*larger));
		if (!larger)
			return room > SPANS_MAX ? -E2BIG : -ENOMEM;
		trace->span = larger;
		trace->room = room;
	}
	trace->span[trace->count++] = span;
	return 0;
}

static int on_event(void *context, const struct reducer_event *event)
{
	struct trace *trace = context;
	char place[256];
	if (trace->count % 4096 == 0)
		replay_progress(trace->replay, trace->count, "spans read");
	if (replay_interrupted())
		return -EINTR;
	int result = device_busy_event(trace->devices, event);
	if (result < 0 || event->kind != DREC_SPAN || !event->has_time || !event->has_duration ||
	    event->duration_ns < 0)
		return result;
	int bytes = snprintf(place, sizeof(place), "%.*s/%.*s",
			     (int)(event->group.bytes < 96 ? event->group.bytes : 96),
			     event->group.bytes ? event->group.data : "",
			     (int)(event->track.bytes < 96 ? event->track.bytes : 96),
			     event->track.bytes ? event->track.data : "");
	int64_t track = names_number(&trace->tracks, place, (size_t)bytes);
	int64_t name =
		names_number(&trace->names, event->name.bytes ? event->name.data : "", event->name.bytes);
	if (track < 0 || name < 0)
		return (int)(track < 0 ? track : name);
	struct span span = {.start_ns = event->start_ns,
			    .duration_ns = event->duration_ns,
			    .step = step_of_args(event->args),
			    .track = (uint32_t)track,
			    .name = (uint32_t)name};
	const char *text = trace->names.text[name];
	if (is_step(trace, text)) {
		trace->has_named_steps = true;
		if (span.step == INT64_MIN)
			span.step = trailing_number(text);
		span.name = trace->step_name;
	} else if (span.step != INT64_MIN) {
		trace->has_step_args = true;
	}
	struct row *row = rows_take(&trace->rows, span.track, span.name);
	if (!row)
		return -ENOMEM;
	row->count++;
	return append(trace, span);
}

static int by_track_and_step(const void *a_, const void *b_)
{
	const struct span *a = a_, *b = b_;
	if (a->track != b->track)
		return a->track < b->track ? -1 : 1;
	return a->step < b->step ? -1 : a->step > b->step;
}

static int by_step_and_begin(const void *a_, const void *b_)
{
	const struct span *a = a_, *b = b_;
	int order = by_track_and_step(a, b);
	return order ? order : a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

static int by_end(const void *a_, const void *b_)
{
	const struct span *a = a_, *b = b_;
	int64_t a_end = end_of(a), b_end = end_of(b);
	if (a_end != b_end)
		return a_end < b_end ? -1 : 1;
	return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

/* The spans of one step of a track. */
static int tell_busy(struct trace *trace, size_t from, size_t end)
{
	for (size_t i = from; i < end; i++) {
		const struct span *span = &trace->span[i];
		int result = replay_busy_span(trace->busy, span->track, span->step, span->name,
					      trace->names.text[span->name], span->start_ns, end_of(span));
		if (result < 0)
			return result;
	}
	return 0;
}

/* Adds one step a track and step number, from the first begin to the last end of its spans. */
static int make_steps(struct trace *trace)
{
	size_t spans = trace->count;
	const struct config *config = trace->replay->settings->config;
	const struct waits own = config ? trigger_settings_waits(config) : (struct waits){0};
	int made = replay_busy_new(&own, &trace->busy);
	if (made < 0)
		return made;
	if (spans)
		qsort(trace->span, spans, sizeof(*trace->span), by_step_and_begin);
	for (size_t i = 0, next; i < spans; i = next) {
		struct span step = trace->span[i];
		int64_t end_ns = end_of(&step);
		for (next = i; next < spans && !by_track_and_step(&trace->span[i], &trace->span[next]);
		     next++) {
			const struct span *span = &trace->span[next];
			if (span->start_ns < step.start_ns)
				step.start_ns = span->start_ns;
			if (end_of(span) > end_ns)
				end_ns = end_of(span);
		}
		if (step.step == INT64_MIN)
			continue;
		int told = tell_busy(trace, i, next);
		if (told < 0)
			return told;
		step.duration_ns = ns_sub(end_ns, step.start_ns);
		step.name = trace->step_name;
		struct row *row = rows_take(&trace->rows, step.track, step.name);
		int result = row ? append(trace, step) : -ENOMEM;
		if (result)
			return result;
		row->count++;
	}
	return 0;
}

static int by_begin(const void *a_, const void *b_)
{
	const struct span *a = a_, *b = b_;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->duration_ns > b->duration_ns ? -1 : a->duration_ns < b->duration_ns;
}

static void find_nesting(struct trace *trace)
{
	if (trace->count)
		qsort(trace->span, trace->count, sizeof(*trace->span), by_begin);
	for (size_t i = 0; i < trace->count; i++) {
		const struct span *span = &trace->span[i];
		struct row *row = rows_place(&trace->rows, span->track, span->name);
		int64_t end_ns = end_of(span);
		row->nests |= span->start_ns < row->end_ns && end_ns <= row->end_ns;
		if (end_ns > row->end_ns)
			row->end_ns = end_ns;
	}
}

static void make_series(struct trace *trace)
{
	bool enough = false;
	const struct config *config = trace->replay->settings->config;
	const struct phases own = config ? trigger_settings_phases(config) : (struct phases){0};
	find_nesting(trace);
	for (uint32_t i = 0; i < trace->rows.buckets; i++)
		enough |= trace->rows.row[i].name == trace->step_name &&
			  trace->rows.row[i].count >= STEPS_ENOUGH;
	for (uint32_t i = 0; i < trace->rows.buckets; i++) {
		struct row *row = &trace->rows.row[i];
		bool step = row->name == trace->step_name;
		row->phase = row->name == UINT32_MAX || step ? PHASES_NONE
							    : phases_find(&own, trace->names.text[row->name]);
		if (row->name == UINT32_MAX ||
		    (!step && !row->phase && (enough || row->count < FREQUENT || row->nests)))
			continue;
		char name[TRIGGERS_NAME_MAX];
		const char *text = trace->names.text[row->name];
		int before = row->phase ? snprintf(name, sizeof(name), "phase:%s/", phases_text(row->phase)) : 0;
		plain_text(name + before, sizeof(name) - (size_t)before, text, strlen(text));
		/* As a feed would be: all of it is one source, so that what is slow together is one. */
		enum triggers_role role = row->phase ? TRIGGERS_PHASE : TRIGGERS_SPAN;
		struct triggers_series_key key = {.role = step ? TRIGGERS_STEP : role,
						  .rank = UINT32_MAX,
						  .track = row->track,
						  .name = name,
						  .alarms = 1};
		row->series = triggers_engine_series(trace->replay->engine, &key);
	}
}

static void without_quotes(const char *text, char *out, size_t room)
{
	size_t used = 0;
	for (; *text && used + 1 < room; text++)
		if (*text != '"')
			out[used++] = *text;
	out[used] = 0;
}

/* "pid 3 tid 7"; "process/thread" where they are no numbers. */
static void track_text(const void *context, uint32_t source, uint64_t track, char *out, size_t room)
{
	const struct trace *trace = context;
	(void)source;
	const char *text = track < trace->tracks.count ? trace->tracks.text[track] : "";
	size_t pid_bytes = strspn(text, "-0123456789"), tid_bytes = 0;
	if (pid_bytes && text[pid_bytes] == '/')
		tid_bytes = strspn(text + pid_bytes + 1, "-0123456789");
	if (tid_bytes && !text[pid_bytes + 1 + tid_bytes])
		snprintf(out, room, "pid %.*s tid %s", (int)pid_bytes, text, text + pid_bytes + 1);
	else
		without_quotes(text, out, room);
}

static int make_devices(struct trace *trace)
{
	for (size_t i = 0; i < trace->count; i++) {
		const struct span *span = &trace->span[i];
		const struct row *row = rows_place(&trace->rows, span->track, span->name);
		bool phase = row->phase && span->duration_ns >= PHASES_SPAN_MIN_NS;
		if ((span->name != trace->step_name && !phase) || row->series == TRIGGERS_SERIES_NONE)
			continue;
		int64_t step = phase ? INT64_MIN : span->step == INT64_MIN ? -1 : span->step;
		int result = device_busy_step(trace->devices, row->series, span->start_ns, end_of(span), step);
		if (result < 0)
			return result;
	}
	return device_busy_series(trace->devices, trace->replay->engine);
}

static void feed_busy(struct trace *trace, int64_t now_ns)
{
	struct replay *replay = trace->replay;
	struct triggers_sample sample;
	for (uint32_t series; trace->busy; replay->samples++) {
		series = replay_busy_next(trace->busy, now_ns, &sample);
		if (series == TRIGGERS_SERIES_NONE)
			return;
		replay_advance(replay, now_ns);
		triggers_engine_observe(replay->engine, series, &sample);
	}
}

/* What devices did, and the steps in which they should have. */
static void feed_devices(struct trace *trace, int64_t now_ns)
{
	struct replay *replay = trace->replay;
	for (struct device_busy_next next = device_busy_next(trace->devices, now_ns); next.kind;
	     next = device_busy_next(trace->devices, now_ns)) {
		replay_advance(replay, next.at_ns);
		if (next.kind == DEVICE_BUSY_OPEN)
			triggers_engine_open(replay->engine, next.series, next.at_ns, next.step, NULL);
		else
			triggers_engine_observe(replay->engine, next.series, &next.sample);
	}
}

static void feed(struct trace *trace)
{
	struct replay *replay = trace->replay;
	if (trace->count)
		qsort(trace->span, trace->count, sizeof(*trace->span), by_end);
	for (size_t i = 0; i < trace->count && !replay_interrupted(); i++) {
		const struct span *span = &trace->span[i];
		struct row *row = rows_place(&trace->rows, span->track, span->name);
		if (i % 4096 == 0)
			replay_progress(replay, i, "spans judged");
		feed_devices(trace, end_of(span));
		feed_busy(trace, end_of(span));
		if (row->series == TRIGGERS_SERIES_NONE ||
		    (row->phase && span->duration_ns < PHASES_SPAN_MIN_NS))
			continue;
		struct triggers_sample sample = {.start_ns = span->start_ns,
						 .duration_ns = span->duration_ns,
						 .step = span->step == INT64_MIN ? -1 : span->step,
						 .sample = row->samples++};
		replay_advance(replay, end_of(span));
		triggers_engine_observe(replay->engine, row->series, &sample);
		replay->samples++;
		replay->steps += span->name == trace->step_name;
	}
	if (!trace->count)
		return;
	int64_t first_ns = trace->span[0].start_ns;
	for (size_t i = 0; i < trace->count; i++)
		if (trace->span[i].start_ns < first_ns)
			first_ns = trace->span[i].start_ns;
	const struct span *last = &trace->span[trace->count - 1];
	replay->job_ns = ns_add(replay->job_ns, ns_sub(end_of(last), first_ns));
}

static int read_trace(struct trace *trace, const char *path, char *error, size_t error_room)
{
	struct reducer_read_report report;
	struct reducer_sink sink = {.context = trace, .event = on_event};
	int result = reducer_trace_read_any(path, &sink, &report);
	if (result)
		snprintf(error, error_room, "%.200s: %s", path,
			 report.n_problems ? report.problem[report.n_problems - 1].what : strerror(-result));
	return result;
}

int replay_trace(struct replay *replay, const char *path, char *error, size_t error_room)
{
	struct trace trace = {.replay = replay};
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	int64_t step_name = names_number(&trace.names, "step", 4);
	int result = step_name < 0 ? (int)step_name : 0;
	if (!result)
		result = device_busy_new(&trace.devices);
	if (!result) {
		trace.step_name = (uint32_t)step_name;
		result = read_trace(&trace, path, error, error_room);
	}
	if (!result)
		result = replay_begin(replay, name, error, error_room);
	if (!result) {
		replay->track_text = track_text;
		replay->track_context = &trace;
		if (!trace.has_named_steps && trace.has_step_args)
			result = make_steps(&trace);
		if (!result)
			make_series(&trace);
		if (!result)
			result = make_devices(&trace);
		if (!result && trace.busy)
			result = replay_busy_series(trace.busy, replay->engine, track_text, &trace);
		if (result)
			snprintf(error, error_room, "%.200s: %s", path, strerror(-result));
		else
			feed(&trace);
		replay_end(replay);
	}
	replay_busy_free(trace.busy);
	device_busy_free(trace.devices);
	replay_progress_clear(replay);
	free(trace.span);
	free(trace.rows.row);
	names_free(&trace.names);
	names_free(&trace.tracks);
	return result;
}
