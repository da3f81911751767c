/* SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"

#include <errno.h>
#include <string.h>

enum {
	CHUNKS_WANTED = 1024, /* the search for a victim costs about 1 ns a chunk, once a chunk */
	DICT_BYTES_AN_ID = 64,
	ANCHORS_SMALL = 512
};
#define RING_BYTES_DEFAULT ((uint64_t)16 << 20)
#define RING_BYTES_SMALL   ((uint64_t)8 << 20)
#define DICT_BYTES_LEAST   ((uint64_t)128 << 10)

static uint64_t clamp(uint64_t value, uint64_t low, uint64_t high)
{
	return value < low ? low : value > high ? high : value;
}

static uint32_t chunk_size(uint64_t ring_bytes)
{
	uint32_t bytes = DREC_CHUNK_BYTES_MIN;
	while (bytes < DREC_CHUNK_BYTES_MAX && ring_bytes / bytes > CHUNKS_WANTED)
		bytes *= 2;
	return bytes;
}

static uint64_t place(struct layout *l, unsigned type, uint64_t offset, uint64_t bytes, uint32_t item_bytes)
{
	l->section[type - 1] =
		(struct drec_section){.type = type, .offset = offset, .bytes = bytes, .item_bytes = item_bytes};
	return (offset + bytes + DREC_PAGE_BYTES - 1) & ~(uint64_t)(DREC_PAGE_BYTES - 1);
}

int layout_compute(uint64_t ring_bytes, uint32_t chunk_bytes, uint32_t dict_ids, uint64_t dict_bytes,
		   struct layout *ret)
{
	struct layout l = {0};
	if (ring_bytes == 0)
		ring_bytes = RING_BYTES_DEFAULT;
	l.chunk_bytes = chunk_bytes ? chunk_bytes : chunk_size(ring_bytes);
	if (l.chunk_bytes < DREC_CHUNK_BYTES_MIN || l.chunk_bytes > DREC_CHUNK_BYTES_MAX ||
	    (l.chunk_bytes & (l.chunk_bytes - 1)) || ring_bytes > DREC_RING_BYTES_MAX)
		return -EINVAL;
	l.n_chunks = (uint32_t)clamp(ring_bytes / l.chunk_bytes, DREC_CHUNKS_MIN, DREC_CHUNKS_MAX);
	l.n_slots = (uint32_t)clamp(l.n_chunks / 4, 1, DREC_SLOTS_MAX);
	l.dict_bytes = dict_bytes ? dict_bytes : clamp(ring_bytes / 16, DICT_BYTES_LEAST, DREC_DICT_BYTES_MAX);
	l.n_dict_ids = dict_ids ? dict_ids : (uint32_t)clamp(l.dict_bytes / DICT_BYTES_AN_ID, 2, DREC_DICT_IDS_MAX);
	if (l.dict_bytes > DREC_DICT_BYTES_MAX || l.n_dict_ids > DREC_DICT_IDS_MAX)
		return -EINVAL;
	l.n_anchors = ring_bytes >= RING_BYTES_SMALL ? DREC_ANCHORS_MAX : ANCHORS_SMALL;
	uint64_t at = DREC_PAGE_BYTES;
	at = place(&l, DREC_SEC_STATE, at, sizeof(struct drec_state), sizeof(struct drec_state));
	at = place(&l, DREC_SEC_PINS, at, DREC_PINS_MAX * sizeof(struct drec_pin), sizeof(struct drec_pin));
	at = place(&l, DREC_SEC_ORDER, at, (uint64_t)l.n_chunks * 8, 8);
	at = place(&l, DREC_SEC_CHUNKS, at, (uint64_t)l.n_chunks * sizeof(struct drec_chunk),
		   sizeof(struct drec_chunk));
	at = place(&l, DREC_SEC_SLOTS, at, (uint64_t)l.n_slots * sizeof(struct drec_slot), sizeof(struct drec_slot));
	at = place(&l, DREC_SEC_ANCHORS, at, (uint64_t)l.n_anchors * sizeof(struct drec_anchor),
		   sizeof(struct drec_anchor));
	at = place(&l, DREC_SEC_DICT_INDEX, at, (uint64_t)l.n_dict_ids * sizeof(struct drec_dict_entry),
		   sizeof(struct drec_dict_entry));
	at = place(&l, DREC_SEC_DICT, at, l.dict_bytes, 1);
	at = place(&l, DREC_SEC_DATA, at, (uint64_t)l.n_chunks * l.chunk_bytes, l.chunk_bytes);
	l.file_bytes = at;
	*ret = l;
	return 0;
}
