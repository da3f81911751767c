/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Putting events into chunks.
 *
 * A thread owns one open chunk and appends to it without anybody's help; when it is full the thread takes
 * another. The protocol, its proofs by test and its numbers are in docs/ring-format.md and
 * docs/architecture.md; the letters at the steps name the barriers' partners:
 *
 *   A  append     A3 store the event, A4 commit (release: covers A3, and T6 for a chunk's first event)
 *   T  takeover   T1 close the old chunk and give it an order number, T2 choose the unpinned chunk closed
 *                 longest ago, T3 claim it, T4 look at the pins again (partner: the pinner's store and
 *                 fence, F2-F3), T5 void its content (partner: the reader's second look, R3), T6 header
 *
 * Bounded: at most CLAIMS_A_SLOT claims a slot, then the event is lost and counted.
 */
#include "ring.h"

#include <errno.h>
#include <string.h>

#include "point.h"

enum { CLAIMS_A_SLOT = 2, LOSS_BYTES = DREC_EVENT_BASE_BYTES + 8 };

struct active_pins {
	unsigned count;
	uint64_t from[DREC_PINS_MAX];
};

static void pins_copy(const struct drec *rec, struct active_pins *pins)
{
	pins->count = 0;
	for (unsigned i = 0; i < DREC_PINS_MAX; i++)
		if (load8_seq_cst(&rec->pins[i].active))
			pins->from[pins->count++] = load_seq_cst(&rec->pins[i].from);
}

static bool pinned(const struct drec *rec, const struct active_pins *pins, uint64_t order)
{
	for (unsigned i = 0; i < pins->count; i++)
		if (order >= pins->from[i] && order - pins->from[i] < rec->n_chunks / 2)
			return true;
	return false;
}

/* T2. The smallest CLOSED word is the chunk closed longest ago: state bits are 0 and order stands above. */
static uint32_t choose(const struct drec *rec, const struct active_pins *pins, uint64_t *ret_word)
{
	uint64_t best = (uint64_t)DREC_CHUNK_TAKING << 62;
	uint32_t chosen = NO_CHUNK;
	for (uint32_t i = 0; i < rec->n_chunks; i++) {
		uint64_t word = load_relaxed(&rec->order[i]);
		if (word < best && (pins->count == 0 || !pinned(rec, pins, DREC_ORDER_NUMBER(word)))) {
			best = word;
			chosen = i;
		}
	}
	*ret_word = best;
	return chosen;
}

/* T2-T4: claims a chunk. Returns its index with its order number, or NO_CHUNK with the reason. */
static uint32_t claim(struct drec *rec, uint64_t *ret_order, unsigned *ret_reason)
{
	for (uint32_t tries = 0; tries < CLAIMS_A_SLOT * rec->n_slots; tries++) {
		struct active_pins pins;
		uint64_t word;
		pins_copy(rec, &pins);
		uint32_t c = choose(rec, &pins, &word);
		if (c == NO_CHUNK) {
			*ret_reason = DREC_LOSS_PINNED_FULL;
			return NO_CHUNK;
		}
		POINT(take_chosen);
		uint64_t order = DREC_ORDER_NUMBER(word);
		if (!compare_exchange(&rec->order[c], &word, DREC_ORDER_WORD(DREC_CHUNK_TAKING, order, c)))
			continue;
		POINT(take_claimed);
#ifndef DREC_MUTANT_NO_PIN_RECHECK
		/* A pin set between T2 and T3 is seen here: the claim is seq_cst, the pinner fences after
		 * its store and only then reads what was overwritten. */
		pins_copy(rec, &pins);
		if (pinned(rec, &pins, order)) {
			store_release(&rec->order[c], DREC_ORDER_WORD(DREC_CHUNK_CLOSED, order, c));
			continue;
		}
#endif
		POINT(take_checked);
		*ret_order = order;
		return c;
	}
	*ret_reason = DREC_LOSS_CONTENDED;
	return NO_CHUNK;
}

/* T1. Killed before the last store the chunk stays OPEN and is read by its commit word. */
void chunk_close(struct local *l)
{
	struct drec *rec = l->rec;
	uint32_t c = l->chunk;
	if (c == NO_CHUNK)
		return;
	rec->chunks[c].last = l->last;
	POINT(take_closed);
	uint64_t order = fetch_add_relaxed(&rec->state->tail, 1);
	POINT(take_counted);
	l->prev_last = l->last > l->prev_last ? l->last : l->prev_last;
	l->chunk = NO_CHUNK;
	l->end = l->off = 0;
	store32_relaxed(&l->slot->chunk, NO_CHUNK);
	store_release(&rec->order[c], DREC_ORDER_WORD(DREC_CHUNK_CLOSED, order, c));
}

/* T5, T6: the claimed chunk becomes this thread's. */
static void chunk_open(struct local *l, uint32_t c, uint64_t order)
{
	struct drec *rec = l->rec;
	struct drec_chunk *chunk = &rec->chunks[c];
	uint64_t old = load_relaxed(&chunk->commit);
	uint64_t generation = (old >> 32) + 1;
	if ((uint32_t)old)
		fetch_max_relaxed(&rec->state->evicted, order);
#ifndef DREC_MUTANT_HEADER_BEFORE_VOID
	store_relaxed(&chunk->commit, generation << 32);
	/* Readers that see any byte of the new lap also see the new generation (R3). */
	fence_release();
	POINT(take_void);
#endif
	chunk->slot = l->index;
	chunk->life = l->life;
	chunk->number = l->number;
	chunk->first_event = l->events;
	chunk->prev_last = l->prev_last;
	chunk->last = 0;
	chunk->taken = ticks_now(rec->clock);
	POINT(take_header);
#ifdef DREC_MUTANT_HEADER_BEFORE_VOID
	store_relaxed(&chunk->commit, generation << 32);
#endif
	store_release(&rec->order[c], DREC_ORDER_WORD(DREC_CHUNK_OPEN, order, c));
	store32_release(&l->slot->chunk, c);
	POINT(take_open);
	l->number++;
	l->chunk = c;
	l->generation_bits = generation << 32;
	l->lap = (uint16_t)generation;
	l->commit = &chunk->commit;
	l->data = rec->data + (uint64_t)c * rec->chunk_bytes;
	l->off = 0;
	l->end = rec->chunk_bytes;
	l->last = 0;
}

/* One look at all clocks; returns how long it took, which bounds how far they are apart. */
static int64_t read_clocks(const struct drec *rec, struct drec_anchor *ret)
{
	int64_t before = clock_ns(CLOCK_MONOTONIC);
	ret->ticks = rec->clock == DREC_CLOCK_MONO ? (uint64_t)before : ticks_now(rec->clock);
	int64_t after = rec->clock == DREC_CLOCK_MONO ? before : clock_ns(CLOCK_MONOTONIC);
	ret->mono_ns = before + (after - before) / 2;
	ret->real_ns = clock_ns(CLOCK_REALTIME);
	ret->boot_ns = clock_ns(CLOCK_BOOTTIME);
	return clock_ns(CLOCK_MONOTONIC) - before;
}

/*
 * A thread that is preempted between two clocks would tell times that are as far apart as it was away, which on a
 * busy machine is a tenth of a second: it looks again, a few times, and keeps the shortest look.
 */
static void read_clocks_closely(const struct drec *rec, struct drec_anchor *ret)
{
	enum { LOOKS = 5, CLOSE_NS = 5000 };
	int64_t best = read_clocks(rec, ret);
	for (int i = 1; i < LOOKS && best > CLOSE_NS; i++) {
		struct drec_anchor again;
		int64_t took = read_clocks(rec, &again);
		if (took < best) {
			best = took;
			*ret = again;
		}
	}
}

void anchor_write(struct drec *rec)
{
	uint64_t seq = fetch_add_relaxed(&rec->state->anchor_seq, 1) + 1;
	struct drec_anchor *anchor = &rec->anchors[(seq - 1) % rec->n_anchors];
	struct drec_anchor clocks;
	read_clocks_closely(rec, &clocks);
	store_relaxed(&anchor->seq, 0);
	fence_release();
	anchor->ticks = clocks.ticks;
	anchor->mono_ns = clocks.mono_ns;
	anchor->real_ns = clocks.real_ns;
	anchor->boot_ns = clocks.boot_ns;
	anchor->clocksource = rec->anchors[0].clocksource;
	store_release(&anchor->seq, seq);
}

/*
 * Once a second; in the first second each time the ring is twice as old. Before the next anchor times are told by the
 * line through the last ones: its ends must not be a hundred times closer than what it is drawn out to.
 */
static uint64_t anchor_gap(const struct drec *rec, uint64_t now)
{
	uint64_t age = now - rec->first_ticks, least = rec->ticks_per_second / 128;
	if (age >= rec->ticks_per_second)
		return rec->ticks_per_second;
	return age > least ? age : least;
}

static void anchor_if_due(struct drec *rec, uint64_t now)
{
	uint64_t due = load_relaxed(&rec->state->anchor_due);
	if ((int64_t)(now - due) >= 0 &&
	    compare_exchange(&rec->state->anchor_due, &due, now + anchor_gap(rec, now)))
		anchor_write(rec);
}

/* What the search for a chunk depends on: while neither moved, another search would fail as well. */
static uint64_t pins_sum(const struct drec *rec)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < DREC_PINS_MAX; i++)
		if (load8_relaxed(&rec->pins[i].active))
			sum += load_relaxed(&rec->pins[i].from) * 31 + i + 1;
	return sum;
}

static bool still_full(const struct local *l)
{
	return l->full_tail && load_relaxed(&l->rec->state->tail) == l->full_tail &&
	       pins_sum(l->rec) == l->full_pins;
}

/* A pending loss goes into the stream before whatever comes next, once there is room for its record. */
void loss_flush(struct local *l)
{
	struct drec_slot *slot = l->slot;
	if (!slot->pending_count || l->end - l->off < LOSS_BYTES)
		return;
	struct drec_event event = {
		.kind = DREC_LOSS,
		.flags = DREC_FLAG_ID,
		.depth = DREC_DEPTH_UNKNOWN,
		.category = (uint16_t)slot->pending_reason,
		.track = l->track,
		.start = slot->pending_first,
		.dur_or_value = slot->pending_count,
		.id = slot->pending_last,
	};
	uint32_t bytes = (uint32_t)drec_event_bytes(&event);
	drec_event_encode(l->data + l->off, &event, l->lap);
	if (slot->pending_last > l->last)
		l->last = slot->pending_last;
	append_commit(l, bytes);
	/* Counted twice if read in between, never not at all. */
	store_release(&slot->pending_count, 0);
}

void loss_slotless(struct drec *rec, unsigned reason, uint64_t count, uint64_t first, uint64_t last)
{
	struct drec_slotless_loss *loss = &rec->state->loss[reason];
	uint64_t seen = load_relaxed(&loss->first);
	/* The earliest of all, whichever thread comes first: a window before it may be called whole. */
	while ((seen == 0 || first < seen) && !compare_exchange(&loss->first, &seen, first))
		;
	fetch_max_relaxed(&loss->last, last);
	fetch_add_relaxed(&loss->count, count);
}

void loss_pending(struct local *l, unsigned reason, uint64_t count, uint64_t first, uint64_t last)
{
	struct drec_slot *slot = l->slot;
	store_relaxed(&slot->lost[reason], slot->lost[reason] + count);
	if (!slot->pending_count) {
		slot->pending_first = first;
		slot->pending_last = last;
	}
	slot->pending_reason = reason;
	if (first < slot->pending_first)
		slot->pending_first = first;
	if (last > slot->pending_last)
		slot->pending_last = last;
	store_release(&slot->pending_count, slot->pending_count + count);
}

/* Takes a chunk for the thread, whose own is closed. */
static int chunk_next(struct local *l, unsigned *ret_reason)
{
	struct drec *rec = l->rec;
	uint64_t tail = load_relaxed(&rec->state->tail), pins = pins_sum(rec), order;
	uint32_t c = claim(rec, &order, ret_reason);
	if (c == NO_CHUNK) {
		l->full_tail = *ret_reason == DREC_LOSS_PINNED_FULL ? tail : 0;
		l->full_pins = pins;
		return -ENOSPC;
	}
	l->full_tail = 0;
	chunk_open(l, c, order);
	return 0;
}

uint8_t *chunk_take(struct local *l, uint32_t need, uint64_t start, uint64_t end)
{
	struct drec *rec = l->rec;
	unsigned reason = DREC_LOSS_PINNED_FULL;
	if (need > rec->chunk_bytes) {
		loss_pending(l, DREC_LOSS_TOO_BIG, 1, start, end);
		loss_flush(l);
		return NULL;
	}
	chunk_close(l);
	if (still_full(l) || chunk_next(l, &reason) < 0) {
		loss_pending(l, reason, 1, start, end);
		return NULL;
	}
	loss_flush(l);
	anchor_if_due(rec, rec->chunks[l->chunk].taken);
	/* The loss record may have taken the room of an event as large as a chunk. */
	if (need > l->end - l->off)
		return chunk_take(l, need, start, end);
	return l->data + l->off;
}

/* From when on a window would miss the event. Foreign times are not converted: they may be any since the birth. */
static uint64_t begin_ticks(const struct drec *rec, const struct drec_event *event, uint64_t end)
{
	uint64_t start = event->flags & (DREC_FLAG_ABS | DREC_FLAG_NOTIME) ? rec->anchors[0].ticks : event->start;
	return start < end ? start : end;
}

int append_event(struct local *l, const struct drec_event *event, uint64_t end)
{
	size_t need = drec_event_bytes(event);
	if (need == 0)
		need = UINT32_MAX;
	uint8_t *out = reserve(l, (uint32_t)need, begin_ticks(l->rec, event, end), end);
	if (!out)
		return need > l->rec->chunk_bytes ? -E2BIG : -ENOSPC;
	if (end > l->last)
		l->last = end;
	drec_event_encode(out, event, l->lap);
	POINT(append_stored);
	append_commit(l, (uint32_t)need);
	return 0;
}

/* Readers take an id that cannot be for damage, and then distrust what follows it. */
static uint32_t own_or(const struct local *l, uint32_t track)
{
	return track && track < l->rec->n_dict_ids ? track : l->track;
}

void drec_span(drec *rec, uint32_t track, uint32_t name, drec_time start, drec_time end)
{
	struct local *l = enter_since(rec, start);
	if (!l)
		return;
	if (end == 0)
		end = ticks_now(rec->clock);
	append_span(l, own_or(l, track) | (uint32_t)DREC_DEPTH_UNKNOWN << 24, known_name(rec, name), start, end);
	leave(l);
}

void drec_instant(drec *rec, uint32_t track, uint32_t name)
{
	struct local *l = enter(rec);
	if (!l)
		return;
	uint64_t now = ticks_now(rec->clock);
	struct drec_event event = {
		.kind = DREC_INSTANT,
		.depth = (uint8_t)(l->depth < DREC_DEPTH_UNKNOWN ? l->depth : DREC_DEPTH_UNKNOWN),
		.name = known_name(rec, name),
		.track = own_or(l, track),
		.start = now,
	};
	append_event(l, &event, now);
	leave(l);
}

void drec_counter(drec *rec, uint32_t track, uint32_t name, double value)
{
	struct local *l = enter(rec);
	if (!l)
		return;
	uint64_t now = ticks_now(rec->clock);
	struct drec_event event = {
		.kind = DREC_COUNTER,
		.depth = DREC_DEPTH_UNKNOWN,
		.name = known_name(rec, name),
		.track = own_or(l, track),
		.start = now,
		.dur_or_value = drec_value_bits(value),
	};
	append_event(l, &event, now);
	leave(l);
}

/*
 * The end of an event on the ring's clock. Foreign times (ABS) are judged by when they were written: that is
 * never earlier than what they say, so a pin by time keeps them.
 */
static uint64_t end_ticks(const struct drec *rec, const struct drec_event *event)
{
	if (event->flags & (DREC_FLAG_ABS | DREC_FLAG_NOTIME))
		return ticks_now(rec->clock);
	if (event->kind == DREC_SPAN || event->kind == DREC_MARK)
		return event->dur_or_value > UINT64_MAX - event->start ? UINT64_MAX
								      : event->start + event->dur_or_value;
	return event->kind == DREC_LOSS ? event->id : event->start;
}

static bool category_fits(const struct drec *rec, const struct drec_event *event)
{
	uint32_t limit = event->kind == DREC_MARK   ? (uint32_t)DREC_MARK_LIMIT
			 : event->kind == DREC_LOSS ? (uint32_t)DREC_LOSS_LIMIT
						    : rec->n_dict_ids;
	return event->category == 0 || event->category < limit;
}

/* Whether readers will take it for an event: one that they do not would hide what follows it. */
static bool well_formed(const struct drec *rec, const struct drec_event *event)
{
	if (event->kind == 0 || event->kind >= DREC_KIND_LIMIT || !category_fits(rec, event))
		return false;
	if ((event->flags & DREC_FLAG_PS) && (event->start_ps > 999 || event->dur_ps > 999))
		return false;
	return (event->name == 0 || event->name < rec->n_dict_ids) &&
	       (event->track == 0 || (event->track <= DREC_TRACK_MAX && event->track < rec->n_dict_ids));
}

int drec_write(drec *rec, const struct drec_event *event)
{
	int ret = -EINVAL;
	if (!rec)
		return -EBUSY;
	uint64_t end = end_ticks(rec, event), start = begin_ticks(rec, event, end);
	struct local *l = enter_since(rec, start);
	if (!l)
		return -EBUSY;
	if (well_formed(rec, event)) {
		ret = append_event(l, event, end);
	} else {
		loss_pending(l, DREC_LOSS_SOURCE, 1, start, end);
		loss_flush(l);
	}
	leave(l);
	return ret;
}

void drec_note_loss(drec *rec, unsigned reason, uint64_t count, drec_time first, drec_time last)
{
	struct local *l = enter(rec);
	if (!l)
		return;
	if (reason == 0 || reason >= DREC_LOSS_LIMIT)
		reason = DREC_LOSS_SOURCE;
	loss_pending(l, reason, count, first, last);
	loss_flush(l);
	leave(l);
}

drec_time drec_now(const drec *rec)
{
	return rec ? ticks_now(rec->clock) : 0;
}

uint64_t drec_lost(const drec *rec, unsigned reason)
{
	uint64_t lost = 0;
	if (!rec)
		return 0;
	for (unsigned r = reason ? reason : 1; r < DREC_LOSS_LIMIT && (!reason || r == reason); r++) {
		lost += load_relaxed(&rec->state->loss[r].count);
		for (uint32_t i = 0; i < rec->n_slots; i++)
			lost += load_relaxed(&rec->slots[i].lost[r]);
	}
	return lost;
}
