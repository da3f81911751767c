/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a copied window is worth, as far as headers tell. A false "complete" is the one unforgivable bug, so
 * each rule here proves that nothing is missing; what cannot be proved is incomplete.
 *
 * Missing can be: chunks overwritten before the chunk table was read, none of which may lie at or above the
 * pin's first order number, or else all of which were closed before the window; chunks of that table that
 * were taken over before they were copied; losses; and what was before the ring, or is yet to come.
 */
#include "snapshot.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- overwritten --- */

/*
 * The end time before which everything that was overwritten had been closed, UINT64_MAX if not known.
 * A chunk's number k+1 is taken after number k was closed; so if k has an order above all overwritten ones, those
 * were closed before k+1 was taken. The times of its events say nothing: events may be reported late.
 */
static uint64_t overwritten_before(const struct snapshot *s)
{
	uint64_t before = UINT64_MAX;
	for (size_t i = 1; i < s->n_seen; i++) {
		const struct ringread_item *one = &s->seen[i - 1], *next = &s->seen[i];
		uint64_t word = s->words[one->chunk];
		uint64_t taken = s->first[next->chunk].taken;
		if (one->slot != next->slot || one->life != next->life || one->number + 1 != next->number)
			continue;
		if (DREC_ORDER_STATE(word) == DREC_CHUNK_OPEN || DREC_ORDER_NUMBER(word) <= s->evicted_first)
			continue;
		if (taken && taken < before)
			before = taken;
	}
	return before;
}

static int was_written(const struct snapshot *s, const struct drec_chunk *chunk)
{
	for (uint32_t i = 0; i < s->n_written; i++) {
		const struct drec_chunk *written = &s->table[i];
		if (written->slot == chunk->slot && written->life == chunk->life && written->number == chunk->number)
			return 1;
	}
	return 0;
}

/* Chunks that were there at first, belong to the window, and are not in the file. */
static int count_missing(const struct snapshot *s, uint64_t *ret_covered_from)
{
	int missing = 0;
	size_t wanted = 0;
	for (size_t i = 0; i < s->n_seen; i++)
		wanted += (size_t)snapshot_wants(s, &s->first[s->seen[i].chunk], s->words[s->seen[i].chunk]);
	if (wanted == s->n_written)
		return 0;
	for (size_t i = 0; i < s->n_seen; i++) {
		const struct drec_chunk *chunk = &s->first[s->seen[i].chunk];
		if (!snapshot_wants(s, chunk, s->words[s->seen[i].chunk]) || was_written(s, chunk))
			continue;
		uint64_t last = chunk->last ? chunk->last : s->b_ticks;
		if (last > *ret_covered_from)
			*ret_covered_from = last;
		missing++;
	}
	return missing;
}

/* Whether all that the pin kept is in the file. */
static int pinned_half_is_whole(const struct snapshot *s)
{
	uint64_t end = s->request->from + s->reader->header.n_chunks / 2, kept = 0;
	for (uint32_t i = 0; i < s->n_written; i++) {
		uint64_t order = s->table[i].order;
		kept += order >= s->request->from && order < end;
	}
	return end <= s->tail_first && kept == end - s->request->from;
}

/* Whether every order of a part was there when its tables were read; what was copied of them is another matter. */
static int part_is_whole(const struct snapshot *s)
{
	uint64_t there = 0, n = s->reader->header.n_chunks;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t order = DREC_ORDER_NUMBER(s->words[i]);
		there += DREC_ORDER_STATE(s->words[i]) != DREC_CHUNK_OPEN && order >= s->request->from &&
			 order < s->request->until;
	}
	return there == s->request->until - s->request->from;
}

/* How far a part reaches. */
static int64_t part_end_ns(const struct snapshot *s, const struct drec_window *window)
{
	uint64_t last = s->a_ticks;
	for (uint32_t i = 0; i < s->n_written; i++)
		last = s->table[i].last > last ? s->table[i].last : last;
	return last < s->b_ticks ? ring_clock_unix_ns(&s->clock, last) : window->b_ns;
}

/* Where the first thread's events stop for a while, UINT64_MAX if none does. */
static uint64_t first_gap(const struct snapshot *s)
{
	uint64_t gap = UINT64_MAX;
	for (uint32_t i = 0; i < s->n_written; i++) {
		const struct drec_chunk *chunk = &s->table[i];
		struct drec_chunk next = *chunk;
		next.number++;
		if (!chunk->order || was_written(s, &next))
			continue;
		struct ringread_item item = {chunk->slot, chunk->life, chunk->number + 1, 0};
		if (ringread_reached(s->seen, s->n_seen, &item) && chunk->last < gap)
			gap = chunk->last;
	}
	return gap;
}

static unsigned judge_overwritten(const struct snapshot *s, struct drec_window *window)
{
	uint64_t from = s->request->from, covered = s->a_ticks;
	int missing = count_missing(s, &covered);
	unsigned reason = DREC_COMPLETE;
	if (s->evicted_first && !(from && s->evicted_first < from)) {
		uint64_t before = overwritten_before(s);
		if (s->request->until && part_is_whole(s) && !missing)
			return DREC_COMPLETE;
		if (from && !s->request->until && pinned_half_is_whole(s) && !missing) {
			uint64_t gap = first_gap(s);
			window->covered_b_ns = gap < s->b_ticks ? ring_clock_unix_ns(&s->clock, gap) : window->b_ns;
			return DREC_INCOMPLETE_BEYOND_HALF;
		}
		if (before >= s->a_ticks) {
			/* After a part the onset is there: then it is draining that did not keep up. */
			reason = s->request->since ? DREC_INCOMPLETE_BEYOND_HALF : DREC_INCOMPLETE_OVERWRITTEN;
			covered = before > covered ? before : covered;
		}
	}
	if (missing && !s->truncated)
		reason = DREC_INCOMPLETE_OVERWRITTEN;
	if (reason)
		window->covered_a_ns = covered < s->b_ticks ? ring_clock_unix_ns(&s->clock, covered) : window->b_ns;
	return reason;
}

/* --- losses that no record tells --- */

static int meets(const struct snapshot *s, uint64_t count, uint64_t first, uint64_t last)
{
	/* A count without times is a loss that is just being noted. */
	return count && (last == 0 || (first <= s->b_ticks && last >= s->a_ticks));
}

static uint64_t count_lost(const struct snapshot *s)
{
	uint64_t lost = 0;
	for (size_t i = 0; i < sizeof(s->reader->state.loss) / sizeof(s->reader->state.loss[0]); i++) {
		const struct drec_slotless_loss *loss = &s->reader->state.loss[i];
		if (meets(s, loss->count, loss->first, loss->last))
			lost = ring_add_u64(lost, loss->count);
	}
	for (uint32_t i = 0; i < s->n_slots; i++) {
		const struct drec_slot *slot = &s->slots[i];
		if (meets(s, slot->pending_count, slot->pending_first, slot->pending_last))
			lost = ring_add_u64(lost, slot->pending_count);
	}
	return lost;
}

/* --- all together --- */

static int read_too_early(const struct snapshot *s)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	int64_t mono_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	return ring_add(mono_ns, s->request->mono_to_unix_ns) < s->request->b_ns && drec_reader_alive(s->reader) != 0;
}

static unsigned judge(const struct snapshot *s, struct drec_window *window)
{
	int64_t created_ns = ring_add(s->reader->header.created_mono_ns, s->request->mono_to_unix_ns);
	int late = created_ns > window->a_ns;
	if (late)
		window->covered_a_ns = created_ns < window->b_ns ? created_ns : window->b_ns;
	unsigned overwritten = judge_overwritten(s, window);
	if (s->request->until)
		window->covered_b_ns = part_end_ns(s, window);
	if (overwritten == DREC_INCOMPLETE_OVERWRITTEN)
		return overwritten;
	if (window->lost_unrecorded)
		return DREC_INCOMPLETE_LOST;
	if (late)
		return DREC_INCOMPLETE_LATE_START;
	if (!s->request->until && read_too_early(s))
		return DREC_INCOMPLETE_EARLY;
	if (overwritten)
		return overwritten;
	if (s->truncated) {
		uint64_t gap = first_gap(s);
		window->covered_b_ns = gap < s->b_ticks ? ring_clock_unix_ns(&s->clock, gap) : window->b_ns;
		return DREC_INCOMPLETE_TRUNCATED;
	}
	return ring_clock_steady(&s->clock, s->a_ticks, s->b_ticks) ? DREC_COMPLETE : DREC_INCOMPLETE_CLOCK;
}

int snapshot_verdict(struct snapshot *s, struct drec_window *ret_window)
{
	const struct drec_snapshot_request *request = s->request;
	struct drec_window window = {
		.t0_ns = request->t0_ns,
		.a_ns = request->a_ns,
		.b_ns = request->b_ns,
		.a_ticks = s->a_ticks,
		.b_ticks = s->b_ticks,
		.covered_a_ns = request->a_ns,
		.covered_b_ns = request->b_ns,
		.mono_to_unix_ns = request->mono_to_unix_ns,
		.evicted = s->reader->state.evicted,
		.from = request->from,
		.until = request->until,
		.complete = 0,
		.reason = DREC_INCOMPLETE_UNSEALED,
	};
	window.lost = window.lost_unrecorded = count_lost(s);
	window.reason_unread = judge(s, &window);
	*ret_window = window;
	return 0;
}
