/* SPDX-License-Identifier: Apache-2.0 */
/* STATE, the chunk table and single events: what every other part of the reading side stands on. */
#include "reader.h"

#include <errno.h>
#include <string.h>

#include "atomic.h"

int ringread_state(struct drec_reader *reader)
{
	int r = ringread_bytes(reader->fd, reader->section[DREC_SEC_STATE]->offset, &reader->state,
			       sizeof(reader->state));
	if (r == 0)
		reader->epoch++;
	return r;
}

int ringread_chunks(const struct drec_reader *reader, struct drec_chunk *ret)
{
	int r = ringread_bytes(reader->fd, reader->section[DREC_SEC_CHUNKS]->offset, ret,
			       reader->header.n_chunks * sizeof(*ret));
	fence_acquire(); /* with the release of a commit: the bytes that it counts are there */
	return r;
}

int ringread_chunk(const struct drec_reader *reader, uint32_t index, struct drec_chunk *ret)
{
	fence_acquire(); /* with the release after a chunk was voided: bytes of its new life show that life */
	return ringread_bytes(reader->fd, reader->section[DREC_SEC_CHUNKS]->offset + index * sizeof(*ret), ret,
			      sizeof(*ret));
}

uint32_t ringread_chunk_bytes(const struct drec_reader *reader, const struct drec_chunk *chunk)
{
	uint32_t bytes = (uint32_t)chunk->commit;
	if (chunk->slot >= reader->header.n_slots || bytes > reader->header.chunk_bytes)
		return 0;
	return bytes;
}

int ringread_same_chunk(const struct drec_chunk *then, const struct drec_chunk *now)
{
	return RINGREAD_GENERATION(then->commit) == RINGREAD_GENERATION(now->commit) &&
	       (uint32_t)now->commit >= (uint32_t)then->commit && then->slot == now->slot &&
	       then->life == now->life && then->number == now->number &&
	       then->first_event == now->first_event && then->prev_last == now->prev_last;
}

uint64_t ringread_data_offset(const struct drec_reader *reader, uint32_t chunk)
{
	return reader->section[DREC_SEC_DATA]->offset + (uint64_t)chunk * reader->header.chunk_bytes;
}

static int category_fits(const struct drec_reader *reader, const struct drec_event *event)
{
	if (event->kind == DREC_MARK)
		return event->category < DREC_MARK_LIMIT;
	if (event->kind == DREC_LOSS)
		return event->category < DREC_LOSS_LIMIT;
	return event->category == 0 || event->category < reader->header.n_dict_ids;
}

int ringread_event(const struct drec_reader *reader, const uint8_t *bytes, size_t avail, uint16_t lap,
		   struct drec_event *ret_event)
{
	int count = drec_event_decode(bytes, avail, lap, ret_event);
	if (count < 0)
		return count;
	uint32_t ids = reader->header.n_dict_ids;
	if ((ret_event->name && ret_event->name >= ids) || (ret_event->track && ret_event->track >= ids) ||
	    !category_fits(reader, ret_event))
		return -EBADMSG;
	return count;
}
