/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an incident has of its windows, per class of events, told from the files that were written and never
 * from what was meant to be written. Whatever is not known to be there counts as missing: a window that is
 * called complete and is not would be worse than no window.
 */
#include "coverage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- device events, which exist only where a capture ran ---- */

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

static void cover_device(struct incident *incident, const struct coverage_found *totals)
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

/* ---- verdicts ---- */

static void add_found(struct incident *incident, struct coverage_found *totals,
		      const struct coverage_found *found)
{
	for (unsigned i = 0; i < INCIDENT_CLASSES; i++) {
		totals->seen[i] |= found->seen[i];
		incident->coverage[i].events += found->events[i];
	}
	if (found->device_first_ns &&
	    (!totals->device_first_ns || found->device_first_ns < totals->device_first_ns))
		totals->device_first_ns = found->device_first_ns;
	if (found->device_last_ns > totals->device_last_ns)
		totals->device_last_ns = found->device_last_ns;
}

/* Losses were read from all files by now, so each class can be judged. */
static void judge(struct incident *incident, const bool (*brings)[INCIDENT_CLASSES],
		  const struct coverage_found *totals)
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
	struct coverage_found totals = {0};

	if (!brings)
		return -ENOMEM;
	incident->n_losses = incident->more_losses = 0;
	memset(incident->coverage, 0, sizeof(incident->coverage));
	for (unsigned i = 0; i < incident->n_rings; i++) {
		struct incident_ring *ring = &incident->rings[i];

		for (unsigned f = 0; f < ring->n_raw; f++) {
			struct coverage_found found = {0};

			ring->raw[f].events = 0;
			if (ring->raw[f].error == 0)
				ring->raw[f].error =
					coverage_walk(incident, i, &ring->raw[f], raw_fd, &found);
			add_found(incident, &totals, &found);
			for (unsigned class = 0; class < INCIDENT_CLASSES; class ++)
				brings[i][class] |= found.seen[class];
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
