/* SPDX-License-Identifier: Apache-2.0 */
#include "ring_maker.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Not by ck_assert: programs that are no Check suites use this too. */
static void must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "ring_maker: %s\n", what);
	abort();
}

static void *place(struct ring_maker *maker, struct drec_header *header, size_t *at, unsigned type, size_t count,
		   size_t item_bytes)
{
	struct drec_section *section = &header->section[header->n_sections++];
	*section = (struct drec_section){
		.type = type, .offset = *at, .bytes = count * item_bytes, .item_bytes = (uint32_t)item_bytes};
	void *where = maker->bytes + *at;
	*at += (count * item_bytes + DREC_PAGE_BYTES - 1) / DREC_PAGE_BYTES * DREC_PAGE_BYTES;
	must(*at <= maker->size, "sections fit the file");
	return where;
}

static void fill_header(struct drec_header *header, uint32_t n_chunks, uint32_t chunk_bytes, uint32_t n_slots)
{
	memcpy(header->magic, DREC_MAGIC, sizeof(header->magic));
	header->major = DREC_FORMAT_MAJOR;
	header->header_bytes = DREC_PAGE_BYTES;
	header->kind = DREC_FILE_RING;
	header->rank = UINT32_MAX;
	header->clock = DREC_CLOCK_MONO;
	header->created_mono_ns = 1000;
	header->created_real_ns = 1000001000;
	header->n_chunks = n_chunks;
	header->chunk_bytes = chunk_bytes;
	header->n_slots = n_slots;
	header->n_pins = DREC_PINS_MAX;
	header->n_dict_ids = RING_MAKER_IDS;
	header->n_anchors = RING_MAKER_ANCHORS;
	strcpy(header->job, "job");
	strcpy(header->name, "rank0");
}

struct ring_maker *ring_maker_new(uint32_t n_chunks, uint32_t chunk_bytes, uint32_t n_slots)
{
	struct ring_maker *maker = calloc(1, sizeof(*maker));
	must(maker != NULL, "memory");
	maker->size = 40 * DREC_PAGE_BYTES + n_chunks * ((size_t)chunk_bytes + 128) + n_slots * 1024u;
	maker->bytes = calloc(1, maker->size);
	must(maker->bytes != NULL, "memory");
	struct drec_header *header = maker->header = (void *)maker->bytes;
	size_t at = DREC_PAGE_BYTES;
	fill_header(header, n_chunks, chunk_bytes, n_slots);
	maker->state = place(maker, header, &at, DREC_SEC_STATE, 1, sizeof(*maker->state));
	maker->pins = place(maker, header, &at, DREC_SEC_PINS, DREC_PINS_MAX, sizeof(*maker->pins));
	maker->order = place(maker, header, &at, DREC_SEC_ORDER, n_chunks, 8);
	maker->chunks = place(maker, header, &at, DREC_SEC_CHUNKS, n_chunks, sizeof(*maker->chunks));
	maker->slots = place(maker, header, &at, DREC_SEC_SLOTS, n_slots, sizeof(*maker->slots));
	maker->anchors = place(maker, header, &at, DREC_SEC_ANCHORS, RING_MAKER_ANCHORS, sizeof(*maker->anchors));
	maker->dict_index = place(maker, header, &at, DREC_SEC_DICT_INDEX, RING_MAKER_IDS, 16);
	maker->dict = place(maker, header, &at, DREC_SEC_DICT, RING_MAKER_DICT_BYTES, 1);
	maker->data = place(maker, header, &at, DREC_SEC_DATA, n_chunks, chunk_bytes);
	maker->size = header->file_bytes = at;
	maker->state->tail = n_chunks + 1;
	maker->state->dict_next_id = 1;
	for (uint32_t i = 0; i < n_chunks; i++)
		maker->order[i] = DREC_ORDER_WORD(DREC_CHUNK_CLOSED, i + 1, i);
	for (uint32_t i = 0; i < n_slots; i++)
		maker->slots[i].chunk = UINT32_MAX;
	maker->anchors[0] = (struct drec_anchor){1, 1000, 1000, 1000001000, 1000, 7, 0, {0}};
	maker->anchors[1] = (struct drec_anchor){2, 2001000, 2001000, 1002001000, 2001000, 7, 0, {0}};
	maker->state->anchor_seq = 2;
	return maker;
}

void ring_maker_free(struct ring_maker *maker)
{
	free(maker->bytes);
	free(maker);
}

void ring_maker_save(const struct ring_maker *maker, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	must(fd >= 0, "the file opens");
	must(pwrite(fd, maker->bytes, maker->size, 0) == (ssize_t)maker->size, "the file is written");
	close(fd);
}

uint32_t ring_maker_text(struct ring_maker *maker, unsigned kind, const void *text, uint32_t bytes)
{
	uint32_t id = (uint32_t)maker->state->dict_next_id++;
	uint64_t offset = maker->state->dict_next_off;
	must(id < RING_MAKER_IDS, "dictionary ids");
	must(bytes <= RING_MAKER_DICT_BYTES - offset, "dictionary bytes");
	memcpy(maker->dict + offset, text, bytes);
	maker->state->dict_next_off += bytes;
	maker->dict_index[id] = (struct drec_dict_entry){kind, bytes | DREC_DICT_COMMITTED, offset};
	return id;
}

uint32_t ring_maker_name(struct ring_maker *maker, const char *name)
{
	return ring_maker_text(maker, DREC_DICT_NAME, name, (uint32_t)strlen(name));
}

void ring_maker_register(struct ring_maker *maker, uint32_t slot, uint32_t tid)
{
	uint64_t life = (maker->slots[slot].life_state >> 32) + 1;
	maker->slots[slot] = (struct drec_slot){.life_state = life << 32 | 1, .chunk = UINT32_MAX, .tid = tid};
	memset(&maker->slot[slot], 0, sizeof(maker->slot[slot]));
	if (maker->state->slots_used <= slot)
		maker->state->slots_used = slot + 1;
}

void ring_maker_take(struct ring_maker *maker, uint32_t slot, uint32_t chunk)
{
	struct drec_chunk *line = &maker->chunks[chunk];
	struct ring_maker_slot *own = &maker->slot[slot];
	uint64_t order = DREC_ORDER_NUMBER(maker->order[chunk]);
	if ((uint32_t)line->commit && order > maker->state->evicted)
		maker->state->evicted = order;
	line->commit = ((line->commit >> 32) + 1) << 32;
	line->slot = slot;
	line->life = (uint32_t)(maker->slots[slot].life_state >> 32);
	line->number = own->number++;
	line->first_event = own->events;
	line->prev_last = own->prev_last;
	line->last = 0;
	line->taken = own->last > own->prev_last ? own->last : own->prev_last;
	own->last = 0;
	maker->order[chunk] = DREC_ORDER_WORD(DREC_CHUNK_OPEN, order, chunk);
	maker->slots[slot].chunk = chunk;
}

void ring_maker_append(struct ring_maker *maker, uint32_t slot, const struct drec_event *event, uint64_t end)
{
	uint32_t chunk = maker->slots[slot].chunk;
	must(chunk < maker->header->n_chunks, "the slot has a chunk");
	struct drec_chunk *line = &maker->chunks[chunk];
	uint32_t used = (uint32_t)line->commit;
	size_t bytes = drec_event_bytes(event);
	must(bytes <= maker->header->chunk_bytes - used, "the event fits its chunk");
	drec_event_encode(maker->data + (size_t)chunk * maker->header->chunk_bytes + used, event,
			  (uint16_t)(line->commit >> 32));
	line->commit += bytes;
	maker->slot[slot].events++;
	if (end > maker->slot[slot].last)
		maker->slot[slot].last = end;
}

void ring_maker_span(struct ring_maker *maker, uint32_t slot, uint32_t name, uint64_t start, uint64_t end)
{
	struct drec_event event = {.kind = DREC_SPAN, .depth = DREC_DEPTH_UNKNOWN, .name = name, .start = start,
				   .dur_or_value = end - start};
	ring_maker_append(maker, slot, &event, end);
}

void ring_maker_close(struct ring_maker *maker, uint32_t slot)
{
	uint32_t chunk = maker->slots[slot].chunk;
	struct ring_maker_slot *own = &maker->slot[slot];
	maker->chunks[chunk].last = own->last;
	if (own->last > own->prev_last)
		own->prev_last = own->last;
	maker->order[chunk] = DREC_ORDER_WORD(DREC_CHUNK_CLOSED, maker->state->tail++, chunk);
	maker->slots[slot].chunk = UINT32_MAX;
}

void ring_maker_push(struct ring_maker *maker, uint32_t slot, uint32_t name, uint64_t start)
{
	struct drec_slot *own = &maker->slots[slot];
	uint32_t depth = (uint32_t)own->open;
	if (depth < DREC_STACK_MAX)
		own->stack[depth] = (struct drec_open_span){start, name, 0};
	own->open = ((own->open >> 32) + 1) << 32 | (depth + 1);
}
