/* SPDX-License-Identifier: Apache-2.0 */
/* New events, thread by thread; see reader.h for why the table is read twice. */
#include "reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CHANGED_FULL_LOOK = 8, CHANGED_OPEN_MAX = 32, QUICK_SLOTS_MAX = 32 };

/* --- cursors --- */

static int compare_life(uint32_t slot, uint32_t life, uint32_t other_slot, uint32_t other_life)
{
	if (slot != other_slot)
		return slot < other_slot ? -1 : 1;
	return life < other_life ? -1 : life > other_life;
}

static size_t cursor_place(const struct drec_reader *reader, uint32_t slot, uint32_t life)
{
	size_t low = 0, high = reader->n_cursors;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct drec_cursor *at = &reader->cursors[middle].at;
		if (compare_life(at->slot, at->life, slot, life) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct ringread_cursor *find_cursor(const struct drec_reader *reader, uint32_t slot, uint32_t life)
{
	size_t place = cursor_place(reader, slot, life);
	if (place == reader->n_cursors)
		return NULL;
	struct ringread_cursor *cursor = &reader->cursors[place];
	return cursor->at.slot == slot && cursor->at.life == life ? cursor : NULL;
}

static int life_has_chunk(const struct drec_reader *reader, uint32_t slot, uint32_t life)
{
	for (uint32_t i = 0; i < reader->header.n_chunks; i++) {
		const struct drec_chunk *chunk = &reader->again[i];
		if (chunk->slot == slot && chunk->life == life && ringread_chunk_bytes(reader, chunk))
			return 1;
	}
	return 0;
}

/* An ended life without a chunk left gets nothing new. What is kept is at most one a chunk and one a slot. */
static void drop_ended_lives(struct drec_reader *reader)
{
	size_t kept = 0;
	for (size_t i = 0; i < reader->n_cursors; i++) {
		const struct drec_cursor *at = &reader->cursors[i].at;
		int newest = i + 1 == reader->n_cursors || reader->cursors[i + 1].at.slot != at->slot;
		if (newest || life_has_chunk(reader, at->slot, at->life))
			reader->cursors[kept++] = reader->cursors[i];
	}
	reader->n_cursors = kept;
}

static struct ringread_cursor *add_cursor(struct drec_reader *reader, uint32_t slot, uint32_t life)
{
	struct ringread_cursor *cursor = find_cursor(reader, slot, life);
	if (cursor)
		return cursor;
	if (reader->n_cursors == reader->cursor_room)
		drop_ended_lives(reader);
	if (reader->n_cursors == reader->cursor_room)
		return NULL;
	size_t place = cursor_place(reader, slot, life);
	cursor = &reader->cursors[place];
	memmove(cursor + 1, cursor, (reader->n_cursors - place) * sizeof(*cursor));
	memset(cursor, 0, sizeof(*cursor));
	cursor->at.slot = slot;
	cursor->at.life = life;
	reader->n_cursors++;
	return cursor;
}

void drec_reader_rewind(struct drec_reader *reader)
{
	reader->n_cursors = 0;
	reader->caught_up = 0;
	memset(reader->commits, 0, reader->header.n_chunks * sizeof(*reader->commits));
}

size_t drec_reader_cursors(const struct drec_reader *reader, struct drec_cursor *ret, size_t room)
{
	for (size_t i = 0; i < reader->n_cursors && i < room; i++)
		ret[i] = reader->cursors[i].at;
	return reader->n_cursors;
}

void drec_reader_set_cursors(struct drec_reader *reader, const struct drec_cursor *cursors, size_t count)
{
	drec_reader_rewind(reader);
	memset(reader->again, 0, reader->header.n_chunks * sizeof(*reader->again));
	for (size_t i = 0; i < count; i++) {
		if (cursors[i].slot >= reader->header.n_slots || cursors[i].bytes > reader->header.chunk_bytes)
			continue;
		struct ringread_cursor *cursor = add_cursor(reader, cursors[i].slot, cursors[i].life);
		if (!cursor)
			return;
		cursor->at = cursors[i];
		cursor->chunk = UINT32_MAX;
		cursor->started = 1;
	}
}

/* --- what is new --- */

static int is_new(const struct drec_reader *reader, const struct drec_chunk *chunk)
{
	uint32_t bytes = ringread_chunk_bytes(reader, chunk);
	if (bytes == 0)
		return 0;
	const struct ringread_cursor *cursor = find_cursor(reader, chunk->slot, chunk->life);
	if (!cursor || !cursor->started || chunk->number > cursor->at.number)
		return 1;
	return chunk->number == cursor->at.number && bytes > cursor->at.bytes;
}

int ringread_by_life(const void *left, const void *right)
{
	const struct ringread_item *a = left, *b = right;
	int order = compare_life(a->slot, a->life, b->slot, b->life);
	if (order)
		return order;
	return a->number < b->number ? -1 : a->number > b->number;
}

static size_t list_new(const struct drec_reader *reader, const struct drec_chunk *table,
		       struct ringread_item *ret_items)
{
	size_t count = 0;
	for (uint32_t i = 0; i < reader->header.n_chunks; i++) {
		/* A commit word seen before and done with needs no search for its cursor. */
		if (table[i].commit == reader->commits[i] || !is_new(reader, &table[i]))
			continue;
		ret_items[count++] = (struct ringread_item){table[i].slot, table[i].life, table[i].number, i};
	}
	qsort(ret_items, count, sizeof(*ret_items), ringread_by_life);
	return count;
}

int ringread_reached(const struct ringread_item *seen, size_t n_seen, const struct ringread_item *item)
{
	size_t low = 0, high = n_seen;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (ringread_by_life(&seen[middle], item) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < n_seen && seen[low].slot == item->slot && seen[low].life == item->life;
}

/* The chunk that a slot has open, if it goes on where the cursor stands. 1 it does, 0 nothing new, -EAGAIN it does
 * not: the whole table has to be looked at. */
static int look_at_slot(struct drec_reader *reader, uint32_t slot, struct ringread_item *ret_item)
{
	struct drec_slot head;
	struct drec_chunk chunk;
	int r = ringread_bytes(reader->fd, reader->section[DREC_SEC_SLOTS]->offset + slot * sizeof(head), &head,
			       offsetof(struct drec_slot, tid));
	if (r < 0)
		return r;
	if (head.chunk >= reader->header.n_chunks)
		return 0;
	r = ringread_chunk(reader, head.chunk, &chunk);
	if (r < 0)
		return r;
	if (chunk.commit == reader->commits[head.chunk])
		return 0;
	const struct ringread_cursor *cursor = find_cursor(reader, chunk.slot, chunk.life);
	if (chunk.slot != slot || !cursor || !cursor->started || chunk.number != cursor->at.number)
		return -EAGAIN;
	reader->again[head.chunk] = chunk;
	*ret_item = (struct ringread_item){chunk.slot, chunk.life, chunk.number, head.chunk};
	return is_new(reader, &chunk);
}

/*
 * While no chunk was closed since a poll that took everything, only the open ones can have grown: a few lines
 * instead of the table twice, which is what an idle job costs. -EAGAIN: this is no such case.
 */
static long plan_open(struct drec_reader *reader, uint64_t tail_then)
{
	size_t count = 0;
	if (!reader->caught_up || reader->state.tail != tail_then || reader->state.slots_used > QUICK_SLOTS_MAX ||
	    reader->state.slots_used > reader->header.n_slots)
		return -EAGAIN;
	for (uint32_t slot = 0; slot < reader->state.slots_used; slot++) {
		int r = look_at_slot(reader, slot, &reader->items[count]);
		if (r < 0)
			return r;
		count += (size_t)r;
	}
	return (long)count;
}

/* Fills reader->items with the chunks to read, in order; returns their count or -errno. */
static long plan(struct drec_reader *reader)
{
	int r = ringread_chunks(reader, reader->chunks);
	if (r < 0)
		return r;
	struct ringread_item *seen = reader->items + reader->header.n_chunks;
	size_t n_seen = list_new(reader, reader->chunks, seen);
	if (n_seen == 0)
		return 0;
	r = ringread_chunks(reader, reader->again);
	if (r < 0)
		return r;
	size_t count = list_new(reader, reader->again, reader->items), kept = 0;
	for (size_t i = 0; i < count; i++) {
		if (ringread_reached(seen, n_seen, &reader->items[i]))
			reader->items[kept++] = reader->items[i];
	}
	return (long)kept;
}

/* --- delivering --- */

struct poll_run {
	drec_event_fn *fn;
	void *context;
	uint64_t budget;
	struct drec_poll_stats stats;
};

static void enter_chunk(struct ringread_cursor *cursor, const struct drec_chunk *chunk, uint32_t index,
			struct drec_poll_stats *stats)
{
	cursor->chunk = index;
	if (cursor->started && chunk->number == cursor->at.number)
		return;
	int next = cursor->started && chunk->number == cursor->at.number + 1;
	/* Events of unreadable bytes were counted as corrupt, not as overwritten. */
	if (chunk->first_event > cursor->at.events && !(next && cursor->resync))
		stats->overwritten += chunk->first_event - cursor->at.events;
	cursor->at.events = chunk->first_event;
	cursor->at.number = chunk->number;
	cursor->at.bytes = 0;
	cursor->started = 1;
	cursor->resync = 0;
}

static int walk(struct drec_reader *reader, struct ringread_cursor *cursor, const struct drec_chunk *chunk,
		uint32_t tid, uint32_t bytes, struct poll_run *run)
{
	const uint32_t begin = cursor->at.bytes;
	struct drec_place place = {cursor->at.slot, cursor->at.life, tid, cursor->chunk, 0};
	while (cursor->at.bytes < bytes) {
		struct drec_event event;
		uint32_t rest = bytes - cursor->at.bytes;
		int count = ringread_event(reader, reader->data + (cursor->at.bytes - begin), rest,
					   RINGREAD_LAP(chunk->commit), &event);
		if (count < 0) {
			run->stats.corrupt_bytes += rest;
			cursor->at.bytes = bytes;
			cursor->resync = 1;
			return 0;
		}
		place.index = cursor->at.events++;
		cursor->at.bytes += (uint32_t)count;
		run->stats.events++;
		run->stats.bytes += (uint32_t)count;
		if (event.kind == DREC_LOSS)
			run->stats.lost = ring_add_u64(run->stats.lost, event.dur_or_value);
		int r = run->fn(run->context, &event, &place);
		if (r != 0)
			return r;
		if (run->budget && --run->budget == 0)
			return 1;
	}
	return 0;
}

static int read_tid(const struct drec_reader *reader, uint32_t slot, uint32_t life, uint32_t *ret_tid)
{
	struct drec_slot head;
	int r = ringread_bytes(reader->fd, reader->section[DREC_SEC_SLOTS]->offset + slot * sizeof(head), &head,
			       offsetof(struct drec_slot, track));
	if (r == 0)
		*ret_tid = (uint32_t)(head.life_state >> 32) == life ? head.tid : 0;
	return r;
}

static int deliver(struct drec_reader *reader, const struct ringread_item *item, struct poll_run *run)
{
	const struct drec_chunk *chunk = &reader->again[item->chunk];
	if (!is_new(reader, chunk))
		return 0;
	uint32_t bytes = ringread_chunk_bytes(reader, chunk), tid;
	const struct ringread_cursor *known = find_cursor(reader, item->slot, item->life);
	uint32_t done = known && known->started && known->at.number == chunk->number ? known->at.bytes : 0;
	int r = ringread_bytes(reader->fd, ringread_data_offset(reader, item->chunk) + done, reader->data,
			       bytes - done);
	struct drec_chunk now;
	if (r == 0)
		r = ringread_chunk(reader, item->chunk, &now);
	if (r == 0)
		r = read_tid(reader, item->slot, item->life, &tid);
	if (r < 0)
		return r;
	if (!ringread_same_chunk(chunk, &now)) {
		run->stats.retried++;
		return 0;
	}
	struct ringread_cursor *cursor = add_cursor(reader, item->slot, item->life);
	if (!cursor)
		return -ENOMEM;
	enter_chunk(cursor, chunk, item->chunk, &run->stats);
	r = walk(reader, cursor, chunk, tid, bytes, run);
	if (cursor->at.bytes == bytes)
		reader->commits[item->chunk] = chunk->commit;
	return r;
}

static void add_stats(struct drec_poll_stats *sum, const struct drec_poll_stats *one)
{
	sum->events += one->events;
	sum->bytes += one->bytes;
	sum->overwritten += one->overwritten;
	sum->lost = ring_add_u64(sum->lost, one->lost);
	sum->corrupt_bytes += one->corrupt_bytes;
	sum->retried += one->retried;
}

int drec_reader_poll(struct drec_reader *reader, drec_event_fn *fn, void *context, uint64_t budget_events,
		     struct drec_poll_stats *stats)
{
	struct poll_run run = {.fn = fn, .context = context, .budget = budget_events};
	int r = ringread_state(reader);
	if (r == 0)
		r = ringread_anchors(reader);
	if (r < 0)
		return r;
	long count = plan_open(reader, reader->polled.tail);
	reader->polled = reader->state;
	reader->quiet = 0;
	reader->caught_up = 0;
	if (count == -EAGAIN)
		count = plan(reader);
	for (long i = 0; r == 0 && i < count; i++)
		r = deliver(reader, &reader->items[i], &run);
	reader->caught_up = count >= 0 && r == 0 && run.stats.retried == 0;
	if (stats)
		add_stats(stats, &run.stats);
	return count < 0 ? (int)count : r;
}

/* --- whether a poll is worth while --- */

static int whole_table_changed(struct drec_reader *reader)
{
	int r = ringread_chunks(reader, reader->chunks);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < reader->header.n_chunks; i++) {
		if (reader->chunks[i].commit != reader->commits[i] && is_new(reader, &reader->chunks[i]))
			return 1;
	}
	return 0;
}

/* The chunks in which the running threads were last seen to write. */
static int open_chunks_changed(struct drec_reader *reader)
{
	for (size_t i = 0; i < reader->n_cursors; i++) {
		const struct ringread_cursor *cursor = &reader->cursors[i];
		struct drec_chunk now;
		if (i + 1 < reader->n_cursors && reader->cursors[i + 1].at.slot == cursor->at.slot)
			continue;
		if (cursor->chunk >= reader->header.n_chunks)
			return 1;
		int r = ringread_chunk(reader, cursor->chunk, &now);
		if (r < 0)
			return r;
		if (now.commit != reader->commits[cursor->chunk])
			return 1;
	}
	return 0;
}

int drec_reader_changed(struct drec_reader *reader)
{
	int r = ringread_state(reader);
	if (r == 0)
		r = ringread_anchors(reader);
	if (r < 0)
		return r;
	const struct drec_state *now = &reader->state, *then = &reader->polled;
	if (now->tail != then->tail || now->evicted != then->evicted || now->end_mark != then->end_mark ||
	    now->slots_used != then->slots_used || memcmp(now->loss, then->loss, sizeof(now->loss)) != 0)
		return 1;
	/* A slot used again may take its first chunk without a trace in STATE: every few calls look at all. */
	if (++reader->quiet % CHANGED_FULL_LOOK == 0 || reader->n_cursors > CHANGED_OPEN_MAX)
		return whole_table_changed(reader);
	return open_chunks_changed(reader);
}
