/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans that are open. A thread pushes and pops while we read, so a slot is read twice, one whole reading after
 * the other. An entry that both have at the same depth, with the same start, was open in between: the stack
 * below it cannot have changed. That holds in whatever order a copy reads its bytes, and lets the outer spans
 * of a thread be known that opens and closes inner ones all the time.
 */
#include "reader.h"

#include <errno.h>
#include <string.h>

#include "atomic.h"

enum { TRIES = 3, FEW_EVENTS_BYTES = 64 * DREC_EVENT_BASE_BYTES };

static uint32_t depth_of(const struct drec_slot *slot)
{
	return (uint32_t)slot->open;
}

static uint32_t shown_depth(const struct drec_slot *slot)
{
	return depth_of(slot) < DREC_STACK_MAX ? depth_of(slot) : DREC_STACK_MAX;
}

static uint32_t agreed_depth(const struct drec_slot *a, const struct drec_slot *b)
{
	uint32_t most = shown_depth(a) < shown_depth(b) ? shown_depth(a) : shown_depth(b), depth = 0;
	if (a->life_state != b->life_state)
		return 0;
	while (depth < most && memcmp(&a->stack[depth], &b->stack[depth], sizeof(a->stack[0])) == 0)
		depth++;
	return depth;
}

static int read_slot(const struct drec_reader *reader, uint32_t index, struct drec_slot *ret)
{
	int r = ringread_bytes(reader->fd, reader->section[DREC_SEC_SLOTS]->offset + index * sizeof(*ret), ret,
			       sizeof(*ret));
	fence_acquire(); /* with the release of `open`: the entries that it counts are there */
	return r;
}

int ringread_slot(const struct drec_reader *reader, uint32_t index, struct drec_slot *ret_slot,
		  uint32_t *ret_stable)
{
	struct drec_slot first;
	int r = read_slot(reader, index, ret_slot);
	for (int i = 0; r == 0 && i < TRIES; i++) {
		first = *ret_slot;
		r = read_slot(reader, index, ret_slot);
		if (r == 0)
			*ret_stable = agreed_depth(&first, ret_slot);
		if (r == 0 && first.open == ret_slot->open && *ret_stable == shown_depth(ret_slot))
			break;
	}
	return r;
}

void ringread_drop_ended(const struct drec_slot *slot, const struct drec_event *event, uint32_t *depth)
{
	if (event->kind != DREC_SPAN && event->kind != DREC_MARK)
		return;
	for (uint32_t i = 0; i < *depth; i++) {
		const struct drec_open_span *open = &slot->stack[i];
		if (open->start != event->start || open->name != event->name)
			continue;
		if (event->depth != DREC_DEPTH_UNKNOWN && event->depth != i)
			continue;
		if (event->kind == DREC_MARK && event->category != DREC_MARK_STEP_END &&
		    event->category != DREC_MARK_PHASE_END)
			continue; /* a begin mark has the same start as the entry it opens */
		*depth = i;
		return;
	}
}

/* The newest chunk of the slot's life below `number`, or UINT32_MAX. */
static uint32_t newest_chunk(const struct drec_reader *reader, uint32_t slot, uint32_t life, uint64_t below)
{
	uint32_t found = UINT32_MAX;
	for (uint32_t i = 0; i < reader->header.n_chunks; i++) {
		const struct drec_chunk *chunk = &reader->again[i];
		if (chunk->slot != slot || chunk->life != life || chunk->number >= below ||
		    !ringread_chunk_bytes(reader, chunk))
			continue;
		if (found == UINT32_MAX || chunk->number > reader->again[found].number)
			found = i;
	}
	return found;
}

static int drop_ended_in(struct drec_reader *reader, uint32_t index, const struct drec_slot *slot,
			 uint32_t *depth)
{
	const struct drec_chunk *chunk = &reader->again[index];
	struct drec_chunk now;
	uint32_t bytes = ringread_chunk_bytes(reader, chunk);
	int r = ringread_bytes(reader->fd, ringread_data_offset(reader, index), reader->data, bytes);
	if (r == 0)
		r = ringread_chunk(reader, index, &now);
	if (r < 0 || !ringread_same_chunk(chunk, &now))
		return r;
	for (uint32_t at = 0; at < bytes && *depth;) {
		struct drec_event event;
		int count = ringread_event(reader, reader->data + at, bytes - at, RINGREAD_LAP(chunk->commit),
					   &event);
		if (count < 0)
			break;
		ringread_drop_ended(slot, &event, depth);
		at += (uint32_t)count;
	}
	return 0;
}

/* What a pop follows is the newest of the slot's events; those of one pop may lie over two chunks. */
static int drop_ended(struct drec_reader *reader, uint32_t index, const struct drec_slot *slot, uint32_t *depth)
{
	uint32_t life = (uint32_t)(slot->life_state >> 32);
	uint32_t chunk = newest_chunk(reader, index, life, UINT64_MAX);
	if (chunk == UINT32_MAX)
		return 0;
	int r = drop_ended_in(reader, chunk, slot, depth);
	if (r < 0 || (uint32_t)reader->again[chunk].commit >= FEW_EVENTS_BYTES)
		return r;
	chunk = newest_chunk(reader, index, life, reader->again[chunk].number);
	return chunk == UINT32_MAX ? 0 : drop_ended_in(reader, chunk, slot, depth);
}

/*
 * The same by the slot's open chunk alone, which spares reading the table; read after the stack, as that would be.
 * Returns 1 if it settled the matter: a chunk just begun may lack the events of a pop.
 */
static int drop_ended_quick(struct drec_reader *reader, uint32_t index, const struct drec_slot *slot,
			    uint32_t *depth)
{
	if (slot->chunk >= reader->header.n_chunks)
		return 0;
	struct drec_chunk *chunk = &reader->again[slot->chunk];
	int r = ringread_chunk(reader, slot->chunk, chunk);
	if (r < 0)
		return r;
	if (chunk->slot != index || chunk->life != (uint32_t)(slot->life_state >> 32) ||
	    ringread_chunk_bytes(reader, chunk) < FEW_EVENTS_BYTES)
		return 0;
	r = drop_ended_in(reader, slot->chunk, slot, depth);
	return r < 0 ? r : 1;
}

struct open_list {
	struct drec_open_info *infos;
	size_t room, count;
};

/* An id that the dictionary cannot have is none: who goes by the ids of a slot need not look again. */
static uint32_t known_id(const struct drec_reader *reader, uint32_t id)
{
	return id < reader->header.n_dict_ids ? id : 0;
}

static uint32_t known_mark(uint32_t mark)
{
	return mark == DREC_MARK_STEP_BEGIN || mark == DREC_MARK_PHASE_BEGIN ? mark : 0;
}

static void list_slot(const struct drec_reader *reader, const struct drec_slot *slot, uint32_t index,
		      uint32_t depth, uint32_t stable, struct open_list *list)
{
	for (uint32_t i = 0; i < depth; i++, list->count++) {
		const struct drec_open_span *open = &slot->stack[i];
		uint32_t mark = known_mark(open->track >> 24);
		if (list->count >= list->room)
			continue;
		list->infos[list->count] = (struct drec_open_info){
			.slot = index,
			.life = (uint32_t)(slot->life_state >> 32),
			.tid = slot->tid,
			.thread_track = known_id(reader, slot->track),
			.depth = i,
			.name = known_id(reader, open->name),
			.track = known_id(reader, open->track & DREC_TRACK_MAX),
			.mark = mark,
			.start = open->start,
			.step = mark == DREC_MARK_STEP_BEGIN ? slot->step : 0,
			.moving = i >= stable,
			.deeper = i + 1 == DREC_STACK_MAX ? depth_of(slot) - DREC_STACK_MAX : 0,
		};
	}
}

int drec_reader_open_spans(struct drec_reader *reader, struct drec_open_info *ret, size_t room)
{
	struct open_list list = {ret, room, 0};
	int table_read = 0;
	int r = ringread_state(reader);
	if (r < 0)
		return r;
	uint64_t used = reader->state.slots_used;
	for (uint32_t i = 0; i < reader->header.n_slots && i < used; i++) {
		struct drec_slot slot;
		uint32_t stable = 0;
		r = ringread_slot(reader, i, &slot, &stable);
		if (r < 0)
			return r;
		uint32_t depth = shown_depth(&slot);
		if ((uint32_t)slot.life_state == 0 || depth == 0)
			continue;
		r = drop_ended_quick(reader, i, &slot, &depth);
		if (r == 0) {
			if (!table_read++) /* after the stack, so that it shows what a pop of that stack follows */
				r = ringread_chunks(reader, reader->again);
			if (r == 0)
				r = drop_ended(reader, i, &slot, &depth);
		}
		if (r < 0)
			return r;
		list_slot(reader, &slot, i, depth, stable, &list);
	}
	return (int)list.count;
}
