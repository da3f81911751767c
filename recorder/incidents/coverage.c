/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an incident has of its windows, per class of events, told from the files that were written and never
 * from what was meant to be written. Whatever is not known to be there counts as missing: a window that is
 * called complete and is not would be worse than no window.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "incident.h"
#include "ns.h"

struct walk {
	struct incident *incident;
	struct incident_ring *ring;
	unsigned ring_index;
	struct incident_raw *raw;
	struct drec_reader *reader;
	bool seen[INCIDENT_CLASSES]; /* the ring brings this class at all */
	uint64_t events[INCIDENT_CLASSES];
	int64_t device_first_ns, device_last_ns; /* device events that came through the ring */
};

static bool text_begins(const char *text, uint32_t bytes, const char *with)
{
	size_t length = strlen(with);

	return bytes >= length && !memcmp(text, with, length);
}

/* Tracks of device counters are named "device:<n>:…" in either part; sources write names as JSON strings. */
static bool about_device(const struct drec_track_info *track)
{
	return text_begins(track->group, track->group_bytes, "device") ||
	       text_begins(track->group, track->group_bytes, "\"device") ||
	       text_begins(track->name, track->name_bytes, "device") ||
	       text_begins(track->name, track->name_bytes, "\"device");
}

/* Kineto's and XPlane's categories of work that ran on a device. */
static bool device_category(struct walk *walk, uint16_t category)
{
	static const char *const names[] = {"kernel", "gpu_memcpy", "gpu_memset", "device_op"};
	const char *text;
	uint32_t bytes;
	unsigned kind;

	if (category == 0 || drec_reader_text(walk->reader, category, &kind, &text, &bytes) < 0)
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (bytes == strlen(names[i]) && !memcmp(text, names[i], bytes))
			return true;
	}
	return false;
}

/* INCIDENT_CLASSES for what is in none. */
static enum incident_class class_of(struct walk *walk, const struct drec_event *event)
{
	struct drec_track_info track = {0};
	bool known = drec_reader_track(walk->reader, event->track, &track) == 0;

	switch (event->kind) {
	case DREC_MARK:
		return INCIDENT_MARKS;
	case DREC_COUNTER:
		return known && about_device(&track) ? INCIDENT_DEVICE_COUNTERS : INCIDENT_HOST_COUNTERS;
	case DREC_SPAN:
	case DREC_INSTANT:
	case DREC_BEGIN:
	case DREC_END:
	case DREC_ASYNC_BEGIN:
	case DREC_ASYNC_INSTANT:
	case DREC_ASYNC_END:
		if (device_category(walk, event->category))
			return INCIDENT_DEVICE_EVENTS;
		return known && track.kind == DREC_TRACK_STREAM ? INCIDENT_DEVICE_LAUNCHES
								: INCIDENT_HOST_SPANS;
	default:
		return INCIDENT_CLASSES;
	}
}

static void add_gap(struct incident_coverage *coverage, int64_t a_ns, int64_t b_ns, const char *why)
{
	struct incident_gap *gap;

	if (a_ns >= b_ns)
		return;
	if (coverage->n_gaps == INCIDENT_GAPS_MAX) {
		/* The last one stands for itself and what follows, so that no gap is left out of the sum. */
		gap = &coverage->gap[INCIDENT_GAPS_MAX - 1];
		gap->a_ns = a_ns < gap->a_ns ? a_ns : gap->a_ns;
		gap->b_ns = b_ns > gap->b_ns ? b_ns : gap->b_ns;
		coverage->more_gaps++;
		return;
	}
	gap = &coverage->gap[coverage->n_gaps++];
	gap->a_ns = a_ns;
	gap->b_ns = b_ns;
	snprintf(gap->why, sizeof(gap->why), "%s", why);
}

static void partial(struct incident_coverage *coverage, const char *why)
{
	coverage->verdict = INCIDENT_PARTIAL;
	if (!coverage->why[0])
		snprintf(coverage->why, sizeof(coverage->why), "%s", why);
}

static bool in_windows(const struct incident *incident, int64_t start_ns, int64_t end_ns)
{
	for (unsigned i = 0; i < incident->n_windows; i++) {
		if (start_ns <= incident->window[i].b_ns && end_ns >= incident->window[i].a_ns)
			return true;
	}
	return false;
}

static int note_loss(struct walk *walk, const struct drec_event *event)
{
	struct incident *incident = walk->incident;
	int64_t offset = incident->mono_to_unix_ns;
	struct incident_loss loss = {
		.ring = walk->ring_index, .reason = event->category, .count = event->dur_or_value};

	loss.first_ns = incident_add_ns(drec_reader_mono_ns(walk->reader, event->start), offset);
	loss.last_ns = incident_add_ns(drec_reader_mono_ns(walk->reader, event->id), offset);
	if (!in_windows(incident, loss.first_ns, loss.last_ns))
		return 0;
	for (unsigned i = 0; i < incident->n_losses; i++) {
		const struct incident_loss *known = &incident->loss[i];

		if (known->ring == loss.ring && known->first_ns == loss.first_ns &&
		    known->last_ns == loss.last_ns && known->reason == loss.reason)
			return 0; /* both windows' files hold it */
	}
	if (incident->n_losses == INCIDENT_LOSSES_MAX)
		incident->more_losses++;
	else
		incident->loss[incident->n_losses++] = loss;
	return 0;
}

static int walk_event(void *context, const struct drec_event *event, const struct drec_place *place)
{
	struct walk *walk = context;
	enum incident_class class;
	int64_t start_ns, end_ns;
	int r;

	(void)place;
	if (event->kind == DREC_LOSS)
		return note_loss(walk, event);
	class = class_of(walk, event);
	if (class < INCIDENT_CLASSES)
		walk->seen[class] = true;
	r = drec_reader_event_time(walk->reader, event, &start_ns, &end_ns);
	/* A part may hold events of the other window, too. */
	if (r == 0 && !in_windows(walk->incident, start_ns, end_ns))
		return 0;
	walk->raw->events++;
	if (class == INCIDENT_CLASSES)
		return 0;
	walk->events[class]++;
	if (class == INCIDENT_DEVICE_EVENTS && r == 0) {
		if (!walk->device_first_ns || start_ns < walk->device_first_ns)
			walk->device_first_ns = start_ns;
		if (end_ns > walk->device_last_ns)
			walk->device_last_ns = end_ns;
	}
	return 0;
}

static const char *reason_words(uint32_t reason)
{
	switch (reason) {
	case DREC_INCOMPLETE_OVERWRITTEN:
		return "overwritten before it was frozen";
	case DREC_INCOMPLETE_LOST:
		return "events were lost";
	case DREC_INCOMPLETE_CORRUPT:
		return "some bytes were not readable";
	case DREC_INCOMPLETE_LATE_START:
		return "the ring began after the window did";
	case DREC_INCOMPLETE_EARLY:
		return "copied before the window's end";
	case DREC_INCOMPLETE_BEYOND_HALF:
		return "the window is more than half the ring: its onset was kept";
	case DREC_INCOMPLETE_TRUNCATED:
		return "cut to the room there was";
	case DREC_INCOMPLETE_CLOCK:
		return "the clock was not continuous";
	default:
		return "not known to be whole";
	}
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
	return value < low ? low : value > high ? high : value;
}

/* What one file leaves uncovered of the window it is for; up to `have_ns` the parts before it have it. */
static void file_gaps(const struct incident_raw *raw, int64_t have_ns, struct incident_coverage *coverage)
{
	const struct drec_window *window = &raw->window;
	const char *why = window->complete        ? ""
			  : raw->error == -ENOENT ? "a ring was gone"
			  : raw->error < 0        ? strerror(-raw->error)
						  : reason_words(window->reason);
	int64_t a_ns = clamp(have_ns, window->a_ns, window->b_ns);
	int64_t from = clamp(window->covered_a_ns, a_ns, window->b_ns);
	int64_t to = clamp(window->covered_b_ns, from, window->b_ns);

	if (raw->error < 0) {
		add_gap(coverage, a_ns, window->b_ns, why);
		partial(coverage, why);
		return;
	}
	if (window->complete)
		return;
	partial(coverage, why);
	add_gap(coverage, a_ns, from, why);
	/* Where a part ends the next one goes on. */
	if (!window->until)
		add_gap(coverage, to, window->b_ns, why);
}

/* Every moment of each window must be asked of some file: what nobody asked for is not there either. */
static void unasked(const struct incident *incident, const struct incident_ring *ring,
		    struct incident_coverage *coverage)
{
	for (unsigned w = 0; w < incident->n_windows; w++) {
		int64_t at = incident->window[w].a_ns, b_ns = incident->window[w].b_ns;
		bool moved = true;

		if (at < ring->born_ns)
			at = ring->born_ns;
		while (moved && at < b_ns) {
			moved = false;
			for (unsigned i = 0; i < ring->n_raw; i++) {
				const struct drec_window *window = &ring->raw[i].window;

				if (ring->raw[i].error == 0 && window->a_ns <= at && window->b_ns > at) {
					at = window->b_ns;
					moved = true;
				}
			}
		}
		if (at < b_ns) {
			partial(coverage, "a ring was gone");
			add_gap(coverage, at, b_ns, "a ring was gone");
		}
	}
}

static void ring_gaps(const struct incident *incident, unsigned index, struct incident_coverage *coverage)
{
	const struct incident_ring *ring = &incident->rings[index];

	int64_t have_ns = INT64_MIN;

	for (unsigned i = 0; i < ring->n_raw; i++) {
		const struct incident_raw *raw = &ring->raw[i];

		file_gaps(raw, have_ns, coverage);
		if (raw->error == 0 && raw->window.until)
			have_ns = raw->window.covered_b_ns;
	}
	unasked(incident, ring, coverage);
	for (unsigned i = 0; i < incident->n_losses; i++) {
		const struct incident_loss *loss = &incident->loss[i];

		if (loss->ring != index)
			continue;
		partial(coverage, "events were lost");
		add_gap(coverage, loss->first_ns, loss->last_ns, "events were lost");
	}
	if (incident->more_losses)
		partial(coverage, "events were lost");
	if (ring->late)
		partial(coverage, "a source was late at the window's end");
}

static int by_begin(const void *left, const void *right)
{
	const struct incident_gap *a = left, *b = right;

	return a->a_ns < b->a_ns ? -1 : a->a_ns > b->a_ns;
}

/* Length of the windows, and of what the gaps leave of them. */
static void sum_up(const struct incident *incident, struct incident_coverage *coverage)
{
	int64_t missing = 0;

	if (coverage->n_gaps > 1)
		qsort(coverage->gap, coverage->n_gaps, sizeof(coverage->gap[0]), by_begin);
	coverage->asked_ns = 0;
	for (unsigned w = 0; w < incident->n_windows; w++) {
		const struct incident_window *window = &incident->window[w];
		int64_t at = window->a_ns;

		coverage->asked_ns += window->b_ns - window->a_ns;
		for (unsigned i = 0; i < coverage->n_gaps; i++) {
			int64_t from = clamp(coverage->gap[i].a_ns, at, window->b_ns);
			int64_t to = clamp(coverage->gap[i].b_ns, from, window->b_ns);

			missing += to - from;
			at = to;
		}
	}
	coverage->recorded_ns = coverage->asked_ns - missing;
}

/* The parts of the windows that no capture and no range of ring events touches are gaps. */
static void device_gaps(const struct incident *incident, struct incident_coverage *coverage, int64_t first_ns,
			int64_t last_ns)
{
	for (unsigned w = 0; w < incident->n_windows; w++) {
		int64_t at = incident->window[w].a_ns, b_ns = incident->window[w].b_ns;

		while (at < b_ns) {
			int64_t next = b_ns, until = at;

			for (unsigned i = 0; i <= incident->n_captures; i++) {
				bool ring = i == incident->n_captures;
				int64_t begin = ring ? first_ns : incident->capture[i].begin_ns;
				int64_t end = ring ? last_ns : incident->capture[i].end_ns;

				if (begin <= at && end > until)
					until = end;
				else if (begin > at && begin < next && end > begin)
					next = begin;
			}
			if (until == at) {
				add_gap(coverage, at, next, "no capture ran");
				until = next;
			}
			at = until;
		}
	}
}

static void cover_device(struct incident *incident, const struct walk *totals)
{
	struct incident_coverage *coverage = &incident->coverage[INCIDENT_DEVICE_EVENTS];
	int64_t a_ns = incident_begin_ns(incident), b_ns = incident_end_ns(incident);

	for (unsigned i = 0; i < incident->n_captures; i++) {
		const struct incidents_capture *capture = &incident->capture[i];

		if (capture->end_ns < a_ns && capture->end_ns > coverage->before_end_ns)
			coverage->before_end_ns = capture->end_ns;
		if (capture->begin_ns > b_ns &&
		    (!coverage->after_begin_ns || capture->begin_ns < coverage->after_begin_ns))
			coverage->after_begin_ns = capture->begin_ns;
	}
	device_gaps(incident, coverage, totals->device_first_ns, totals->device_last_ns);
	sum_up(incident, coverage);
	coverage->verdict = coverage->recorded_ns > 0 ? INCIDENT_PARTIAL : INCIDENT_NONE;
	/* A capture that spans the windows has them whole; a range of ring events proves no such thing. */
	if (coverage->recorded_ns == coverage->asked_ns && !totals->seen[INCIDENT_DEVICE_EVENTS] &&
	    coverage->asked_ns > 0)
		coverage->verdict = INCIDENT_COMPLETE;
	else
		snprintf(coverage->why, sizeof(coverage->why), "%s",
			 totals->seen[INCIDENT_DEVICE_EVENTS]
				 ? "device events came through a ring"
				 : "device events exist only where a capture ran");
}

static int walk_file(struct walk *walk, int raw_fd)
{
	struct incident_raw *raw = walk->raw;
	struct drec_poll_stats stats = {0};
	struct drec_open_info info[INCIDENT_OPEN_MAX];
	struct drec_problem problem;
	int r;

	r = drec_reader_open(raw_fd, raw->file, NULL, &walk->reader, &problem);
	if (r < 0)
		return r;
	if (!drec_reader_window(walk->reader)) {
		drec_reader_free(walk->reader);
		return -EBADMSG;
	}
	/* The verdict is the one that was sealed into the file, not the one that was meant. */
	raw->window = *drec_reader_window(walk->reader);
	r = drec_reader_poll(walk->reader, walk_event, walk, 0, &stats);
	if (r > 0)
		r = -EOVERFLOW;
	if (r == 0 && stats.corrupt_bytes && raw->window.complete) {
		raw->window.complete = 0;
		raw->window.reason = DREC_INCOMPLETE_CORRUPT;
	}
	for (int i = 0, n = r == 0 ? drec_reader_open_spans(walk->reader, info, INCIDENT_OPEN_MAX) : 0;
	     i < n && i < INCIDENT_OPEN_MAX; i++)
		walk->seen[info[i].mark ? INCIDENT_MARKS : INCIDENT_HOST_SPANS] = true;
	drec_reader_free(walk->reader);
	walk->reader = NULL;
	return r;
}

static void add_walk(struct incident *incident, struct walk *totals, const struct walk *walk)
{
	for (unsigned i = 0; i < INCIDENT_CLASSES; i++) {
		totals->seen[i] |= walk->seen[i];
		incident->coverage[i].events += walk->events[i];
	}
	if (walk->device_first_ns &&
	    (!totals->device_first_ns || walk->device_first_ns < totals->device_first_ns))
		totals->device_first_ns = walk->device_first_ns;
	if (walk->device_last_ns > totals->device_last_ns)
		totals->device_last_ns = walk->device_last_ns;
}

/* Losses were read from all files by now, so each class can be judged. */
static void judge(struct incident *incident, const bool (*brings)[INCIDENT_CLASSES],
		  const struct walk *totals)
{
	for (unsigned class = 0; class < INCIDENT_DEVICE_EVENTS; class ++) {
		struct incident_coverage *coverage = &incident->coverage[class];

		coverage->verdict = totals->seen[class] ? INCIDENT_COMPLETE : INCIDENT_NONE;
		for (unsigned i = 0; totals->seen[class] && i < incident->n_rings; i++) {
			/* A ring that could not be read may have brought anything. */
			if (brings[i][class] || incident->rings[i].n_raw == 0)
				ring_gaps(incident, i, coverage);
		}
		sum_up(incident, coverage);
		if (!totals->seen[class]) {
			coverage->recorded_ns = 0;
			snprintf(coverage->why, sizeof(coverage->why), "no source records any");
		}
	}
	cover_device(incident, totals);
}

/* The incident's own verdict: every ring whole, whether or not it brought events. */
static void judge_all(struct incident *incident)
{
	struct incident_coverage all = {.verdict = INCIDENT_COMPLETE};
	unsigned files = 0;

	for (unsigned i = 0; i < incident->n_rings; i++) {
		ring_gaps(incident, i, &all);
		files += incident->rings[i].n_raw;
	}
	if (incident->n_rings == 0)
		partial(&all, incident->restarted ? "machine restarted" : "there was no ring");
	else if (files == 0)
		partial(&all, "no ring reaches into the window");
	if (incident->restarted)
		partial(&all, "machine restarted");
	incident->verdict = all.verdict;
	snprintf(incident->why_partial, sizeof(incident->why_partial), "%s", all.why);
}

int incident_cover(struct incident *incident, int raw_fd)
{
	bool(*brings)[INCIDENT_CLASSES] = calloc(incident->n_rings + 1, sizeof(*brings));
	struct walk totals = {0};

	if (!brings)
		return -ENOMEM;
	incident->n_losses = incident->more_losses = 0;
	memset(incident->coverage, 0, sizeof(incident->coverage));
	for (unsigned i = 0; i < incident->n_rings; i++) {
		struct incident_ring *ring = &incident->rings[i];

		for (unsigned f = 0; f < ring->n_raw; f++) {
			struct walk walk = {
				.incident = incident, .ring = ring, .ring_index = i, .raw = &ring->raw[f]};

			ring->raw[f].events = 0;
			if (ring->raw[f].error == 0)
				ring->raw[f].error = walk_file(&walk, raw_fd);
			add_walk(incident, &totals, &walk);
			for (unsigned class = 0; class < INCIDENT_CLASSES; class ++)
				brings[i][class] |= walk.seen[class];
		}
	}
	judge(incident, (const bool(*)[INCIDENT_CLASSES])brings, &totals);
	judge_all(incident);
	free(brings);
	return 0;
}

static int64_t tenths(int64_t ns)
{
	return (ns + 50000000) / 100000000;
}

void incident_device_sentence(const struct incident *incident, char *ret_text, size_t room)
{
	const struct incident_coverage *coverage = &incident->coverage[INCIDENT_DEVICE_EVENTS];
	int64_t have = tenths(coverage->recorded_ns), asked = tenths(coverage->asked_ns);
	char last[96] = "no capture ran before";

	if (coverage->before_end_ns) {
		int64_t before = tenths(incident_first(incident)->t0_ns - coverage->before_end_ns);

		snprintf(last, sizeof(last), "last capture ended %lld.%lld s before t0",
			 (long long)(before / 10), (long long)(before % 10));
	}
	snprintf(ret_text, room, "Device events for %lld.%lld s of %lld.%lld s; %s.", (long long)(have / 10),
		 (long long)(have % 10), (long long)(asked / 10), (long long)(asked % 10), last);
}

static int64_t magnitude(int64_t value)
{
	return value < 0 ? ns_sub(0, value) : value;
}

static void mark_clock(struct incident *incident, const struct drec_anchor *at, int64_t by_ns,
		       const char *what)
{
	struct incident_clock_mark *mark;

	if (incident->n_clock_marks == INCIDENT_GAPS_MAX)
		return;
	mark = &incident->clock_mark[incident->n_clock_marks++];
	mark->at_ns = incident_add_ns(at->mono_ns, incident->mono_to_unix_ns);
	mark->by_ns = by_ns;
	snprintf(mark->what, sizeof(mark->what), "%s", what);
}

void incident_clocks(struct incident *incident)
{
	enum { STEP_NS = 1000000 };

	incident->n_clock_marks = 0;
	incident->clock_error_ns = 0;
	for (size_t i = 1; i < incident->n_anchors; i++) {
		const struct drec_anchor *before = &incident->anchors[i - 1], *at = &incident->anchors[i];
		/* `recover` has them from the ring alone, which may say anything. */
		int64_t stepped = ns_sub(ns_sub(at->real_ns, at->mono_ns), ns_sub(before->real_ns, before->mono_ns));
		int64_t slept = ns_sub(ns_sub(at->boot_ns, at->mono_ns), ns_sub(before->boot_ns, before->mono_ns));
		int64_t unix_ns = incident_add_ns(at->mono_ns, incident->mono_to_unix_ns);

		if (unix_ns < incident_begin_ns(incident) || unix_ns > incident_end_ns(incident))
			continue;
		if (magnitude(slept) >= STEP_NS)
			mark_clock(incident, at, slept, "suspend");
		else if (magnitude(stepped) >= STEP_NS)
			mark_clock(incident, at, stepped, "step");
		else if (magnitude(stepped) > incident->clock_error_ns)
			incident->clock_error_ns = magnitude(stepped);
		if (before->clocksource != at->clocksource)
			mark_clock(incident, at, 0, "clocksource");
	}
}
