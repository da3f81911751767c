/* SPDX-License-Identifier: Apache-2.0 */
#include "reader.h"

#include <errno.h>

/* Of each life in the ring, the events before the first chunk that is still there. */
static uint64_t count_overwritten(const struct drec_reader *reader, const struct drec_chunk *chunks)
{
	uint64_t overwritten = 0;
	for (uint32_t i = 0; i < reader->header.n_chunks; i++) {
		const struct drec_chunk *chunk = &chunks[i];
		int first = ringread_chunk_bytes(reader, chunk) && chunk->first_event;
		for (uint32_t k = 0; first && k < reader->header.n_chunks; k++) {
			const struct drec_chunk *other = &chunks[k];
			if (other->slot == chunk->slot && other->life == chunk->life &&
			    other->number < chunk->number && ringread_chunk_bytes(reader, other))
				first = 0;
		}
		if (first)
			overwritten = ring_add_u64(overwritten, chunk->first_event);
	}
	return overwritten;
}

int drec_reader_losses(struct drec_reader *reader, uint64_t ret_lost[DREC_LOSS_LIMIT], uint64_t *ret_overwritten)
{
	uint64_t lost[DREC_LOSS_LIMIT] = {0};
	int r = ringread_state(reader);
	if (r == 0)
		r = ringread_chunks(reader, reader->again);
	if (r < 0)
		return r;
	for (unsigned reason = 0; reason < DREC_LOSS_LIMIT; reason++)
		lost[reason] = reader->state.loss[reason].count;
	for (uint32_t i = 0; i < reader->header.n_slots && i < reader->state.slots_used; i++) {
		struct drec_slot slot;
		r = ringread_bytes(reader->fd, reader->section[DREC_SEC_SLOTS]->offset + i * sizeof(slot), &slot,
				   offsetof(struct drec_slot, stack));
		if (r < 0)
			return r;
		for (unsigned reason = 0; reason < DREC_LOSS_LIMIT; reason++)
			lost[reason] = ring_add_u64(lost[reason], slot.lost[reason]);
	}
	for (unsigned reason = 0; reason < DREC_LOSS_LIMIT; reason++)
		ret_lost[reason] = lost[reason];
	*ret_overwritten = count_overwritten(reader, reader->again);
	return 0;
}
