/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes ring files by hand, byte for byte, without the producer: for states that no producer would leave, and
 * to check the reading side against the format alone. Whatever is set can be changed afterwards in place.
 */
#ifndef TESTS_RING_MAKER_H
#define TESTS_RING_MAKER_H

#include <driverec/event.h>
#include <driverec/format.h>

enum { RING_MAKER_IDS = 256, RING_MAKER_DICT_BYTES = 8192, RING_MAKER_ANCHORS = 16 };

struct ring_maker_slot {
	uint64_t number; /* of the next chunk in this life */
	uint64_t events;
	uint64_t prev_last;
	uint64_t last;
};

struct ring_maker {
	uint8_t *bytes;
	size_t size;
	/* into bytes */
	struct drec_header *header;
	struct drec_state *state;
	struct drec_pin *pins;
	uint64_t *order;
	struct drec_chunk *chunks;
	struct drec_slot *slots;
	struct drec_anchor *anchors;
	struct drec_dict_entry *dict_index;
	uint8_t *dict;
	uint8_t *data;
	struct ring_maker_slot slot[DREC_SLOTS_MAX];
};

/* A ring as it is right after its creation: clock MONO, created at 1000 ns, MONO + 10^9 ns = Unix. */
struct ring_maker *ring_maker_new(uint32_t n_chunks, uint32_t chunk_bytes, uint32_t n_slots);
void ring_maker_free(struct ring_maker *maker);
/* Writes the file over an existing one in place, so that open readers see it. */
void ring_maker_save(const struct ring_maker *maker, const char *path);

/* A committed dictionary entry; returns its id. */
uint32_t ring_maker_text(struct ring_maker *maker, unsigned kind, const void *text, uint32_t bytes);
uint32_t ring_maker_name(struct ring_maker *maker, const char *name);

/* Gives the slot to a new life. */
void ring_maker_register(struct ring_maker *maker, uint32_t slot, uint32_t tid);
/* Chunk `chunk` becomes the slot's; what it held is overwritten. */
void ring_maker_take(struct ring_maker *maker, uint32_t slot, uint32_t chunk);
/* Appends to the slot's open chunk; `end` is the event's end in ticks. */
void ring_maker_append(struct ring_maker *maker, uint32_t slot, const struct drec_event *event, uint64_t end);
void ring_maker_span(struct ring_maker *maker, uint32_t slot, uint32_t name, uint64_t start, uint64_t end);
void ring_maker_close(struct ring_maker *maker, uint32_t slot);
void ring_maker_push(struct ring_maker *maker, uint32_t slot, uint32_t name, uint64_t start);

#endif
