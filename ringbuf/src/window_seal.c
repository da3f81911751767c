/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second pass over a written window: what is on the disk is read back, so the CRCs prove what was written.
 * The same pass looks at every event: it counts those of the window, finds loss records and bytes that are
 * no events, and thereby decides whether the window is complete.
 */
#include <driverec/freeze.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "crc32.h"
#include "reader.h"
#include "window.h"

struct seal {
	struct drec_reader *reader;
	int fd;
	struct drec_slot *slots;
	uint32_t *depth;
	uint64_t lost;
	uint64_t events;
	int corrupt;
};

int window_section_crc(const struct drec_reader *reader, const struct drec_section *section, uint32_t *ret_crc)
{
	char buffer[1 << 16];
	uint32_t crc = 0;
	for (uint64_t done = 0; done < section->bytes;) {
		size_t count = section->bytes - done < sizeof(buffer) ? (size_t)(section->bytes - done)
								      : sizeof(buffer);
		int r = ringread_bytes(reader->fd, section->offset + done, buffer, count);
		if (r < 0)
			return r;
		crc = ringbuf_crc32(crc, buffer, count);
		done += count;
	}
	*ret_crc = crc;
	return 0;
}

static int meets_abs(const struct drec_reader *reader, const struct drec_event *event)
{
	int64_t start_ns, end_ns;
	if (drec_reader_event_time(reader, event, &start_ns, &end_ns) < 0)
		return 0;
	return start_ns <= reader->window.b_ns && end_ns >= reader->window.a_ns;
}

static int meets(const struct drec_reader *reader, const struct drec_event *event)
{
	if (event->flags & DREC_FLAG_NOTIME)
		return 1;
	if (event->flags & DREC_FLAG_ABS)
		return meets_abs(reader, event);
	uint64_t end = event->start;
	if (event->kind == DREC_SPAN || event->kind == DREC_MARK)
		end = ring_add_u64(end, event->dur_or_value);
	else if (event->kind == DREC_LOSS && event->id > end)
		end = event->id;
	return event->start <= reader->window.b_ticks && end >= reader->window.a_ticks;
}

static void look_at(struct seal *seal, const struct drec_chunk *chunk, const struct drec_event *event)
{
	const struct drec_slot *slot = &seal->slots[chunk->slot];
	uint32_t *depth = &seal->depth[chunk->slot];
	if (*depth && slot->life_state >> 32 == chunk->life)
		ringread_drop_ended(slot, event, depth);
	if (!meets(seal->reader, event))
		return;
	if (event->kind == DREC_LOSS)
		seal->lost = ring_add_u64(seal->lost, event->dur_or_value);
	else
		seal->events++;
}

static int seal_chunk(struct seal *seal, uint32_t index)
{
	struct drec_reader *reader = seal->reader;
	struct drec_chunk *chunk = &reader->again[index];
	uint32_t bytes = ringread_chunk_bytes(reader, chunk);
	if (bytes == 0)
		return -EBADMSG;
	int r = ringread_bytes(reader->fd, ringread_data_offset(reader, index), reader->data, bytes);
	if (r < 0)
		return r;
	chunk->crc = ringbuf_crc32(0, reader->data, bytes);
	for (uint32_t at = 0; at < bytes;) {
		struct drec_event event;
		int count = ringread_event(reader, reader->data + at, bytes - at, RINGREAD_LAP(chunk->commit),
					   &event);
		if (count < 0) {
			seal->corrupt = 1;
			return 0;
		}
		look_at(seal, chunk, &event);
		at += (uint32_t)count;
	}
	return 0;
}

static int read_slots(struct seal *seal)
{
	size_t n = seal->reader->header.n_slots;
	seal->slots = calloc(n + 1, sizeof(*seal->slots));
	seal->depth = calloc(n + 1, sizeof(*seal->depth));
	if (!seal->slots || !seal->depth)
		return -ENOMEM;
	int r = ringread_bytes(seal->fd, seal->reader->section[DREC_SEC_SLOTS]->offset, seal->slots,
			       n * sizeof(*seal->slots));
	for (size_t i = 0; r == 0 && i < n; i++) {
		uint32_t depth = (uint32_t)seal->slots[i].open;
		seal->depth[i] = depth < DREC_STACK_MAX ? depth : DREC_STACK_MAX;
	}
	return r;
}

static int write_slots(struct seal *seal)
{
	size_t n = seal->reader->header.n_slots;
	for (size_t i = 0; i < n; i++) {
		struct drec_slot *slot = &seal->slots[i];
		if (seal->depth[i] < (uint32_t)slot->open && seal->depth[i] < DREC_STACK_MAX)
			slot->open = (slot->open >> 32 << 32) | seal->depth[i];
	}
	return ringread_write(seal->fd, seal->reader->section[DREC_SEC_SLOTS]->offset, seal->slots,
			      n * sizeof(*seal->slots));
}

/* The first reason that applies, in the order of their numbers. */
static void decide(const struct seal *seal, struct drec_window *window)
{
	unsigned reason = window->reason_unread;
	if (seal->corrupt && (!reason || reason > DREC_INCOMPLETE_CORRUPT))
		reason = DREC_INCOMPLETE_CORRUPT;
	if (seal->lost && (!reason || reason > DREC_INCOMPLETE_LOST))
		reason = DREC_INCOMPLETE_LOST;
	window->events = seal->events;
	window->lost = ring_add_u64(window->lost_unrecorded, seal->lost);
	window->reason = reason;
	window->complete = reason == DREC_COMPLETE;
	window->sealed = 1;
}

static int write_crcs(struct seal *seal)
{
	struct drec_header header = seal->reader->header;
	for (unsigned i = 0; i < header.n_sections; i++) {
		struct drec_section *section = &header.section[i];
		if (section->type == DREC_SEC_DATA)
			continue; /* its chunks have their own, and its holes need not be read */
		int r = window_section_crc(seal->reader, section, &section->crc);
		if (r < 0)
			return r;
		section->flags |= DREC_SECTION_HAS_CRC;
	}
	return ringread_write(seal->fd, 0, &header, sizeof(header));
}

static int run(struct seal *seal)
{
	struct drec_reader *reader = seal->reader;
	int r = read_slots(seal);
	if (r == 0)
		r = ringread_chunks(reader, reader->again);
	for (uint32_t i = 0; r == 0 && i < reader->header.n_chunks; i++)
		r = seal_chunk(seal, i);
	if (r < 0)
		return r;
	decide(seal, &reader->window);
	r = ringread_write(seal->fd, reader->section[DREC_SEC_WINDOW]->offset, &reader->window,
			   sizeof(reader->window));
	if (r == 0)
		r = ringread_write(seal->fd, reader->section[DREC_SEC_CHUNKS]->offset, reader->again,
				   reader->header.n_chunks * sizeof(*reader->again));
	if (r == 0)
		r = write_slots(seal);
	return r < 0 ? r : write_crcs(seal);
}

int drec_window_seal(int fd)
{
	static const struct drec_reader_options any;
	struct seal seal = {.fd = fd};
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own < 0)
		return -errno;
	int r = ringread_open_fd(own, 0, &any, &seal.reader, NULL);
	if (r == 0 && seal.reader->header.kind != DREC_FILE_WINDOW)
		r = -EBADMSG;
	if (r == 0)
		r = run(&seal);
	drec_reader_free(seal.reader);
	free(seal.slots);
	free(seal.depth);
	return r == -EBADMSG ? -EIO : r;
}
