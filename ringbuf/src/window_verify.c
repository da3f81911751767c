/* SPDX-License-Identifier: Apache-2.0 */
#include <driverec/freeze.h>

#include <errno.h>
#include <string.h>

#include "crc32.h"
#include "reader.h"
#include "window.h"

static int verify_sections(const struct drec_reader *reader, struct drec_problem *problem)
{
	const struct drec_header *header = &reader->header;
	for (unsigned i = 0; i < header->n_sections; i++) {
		const struct drec_section *section = &header->section[i];
		uint32_t crc;
		if (!(section->flags & DREC_SECTION_HAS_CRC) || section->type >= RINGREAD_SECTION_LIMIT ||
		    reader->section[section->type] != section)
			continue;
		int r = window_section_crc(reader, section, &crc);
		if (r < 0)
			return r;
		if (crc != section->crc) {
			ringread_problem(problem, section->offset, "section %u has CRC %08x, its table says %08x", i, crc,
					 section->crc);
			return -EBADMSG;
		}
	}
	return 0;
}

static int verify_chunk(struct drec_reader *reader, uint32_t index, struct drec_problem *problem)
{
	const struct drec_chunk *chunk = &reader->again[index];
	uint32_t bytes = ringread_chunk_bytes(reader, chunk);
	uint64_t offset = ringread_data_offset(reader, index);
	if (bytes == 0) {
		ringread_problem(problem, offset, "chunk %u has an entry that cannot be right", index);
		return -EBADMSG;
	}
	int r = ringread_bytes(reader->fd, offset, reader->data, bytes);
	if (r < 0)
		return r;
	uint32_t crc = ringbuf_crc32(0, reader->data, bytes);
	if (reader->window.sealed && crc != chunk->crc) {
		ringread_problem(problem, offset, "chunk %u has CRC %08x, its entry says %08x", index, crc, chunk->crc);
		return -EBADMSG;
	}
	for (uint32_t at = 0; at < bytes;) {
		struct drec_event event;
		int count = ringread_event(reader, reader->data + at, bytes - at, RINGREAD_LAP(chunk->commit),
					   &event);
		if (count < 0) {
			ringread_problem(problem, offset + at, "chunk %u holds no event here", index);
			return -EBADMSG;
		}
		at += (uint32_t)count;
	}
	return 0;
}

static int verify_window(const struct drec_reader *reader, struct drec_problem *problem)
{
	const struct drec_section *section = reader->section[DREC_SEC_WINDOW];
	const struct drec_window *window = &reader->window;
	if (!window->sealed) {
		ringread_problem(problem, section->offset, "the window was never sealed");
		return -EBADMSG;
	}
	if (window->b_ns < window->a_ns || (window->complete != 0) != (window->reason == DREC_COMPLETE)) {
		ringread_problem(problem, section->offset, "the window section contradicts itself");
		return -EBADMSG;
	}
	return 0;
}

int drec_window_verify(int dirfd, const char *path, struct drec_problem *ret_problem)
{
	struct drec_reader *reader = NULL;
	struct drec_problem problem = {0};
	int r = drec_reader_open(dirfd, path, NULL, &reader, &problem);
	if (r < 0)
		goto out;
	ringread_problem(&problem, 0, "cannot be read to its end");
	if (reader->header.kind != DREC_FILE_WINDOW) {
		ringread_problem(&problem, 44, "is a ring, no window file");
		r = -EBADMSG;
	}
	if (r == 0)
		r = verify_window(reader, &problem);
	if (r == 0)
		r = verify_sections(reader, &problem);
	if (r == 0)
		r = ringread_chunks(reader, reader->again);
	for (uint32_t i = 0; r == 0 && i < reader->header.n_chunks; i++)
		r = verify_chunk(reader, i, &problem);
out:
	if (r < 0 && ret_problem)
		*ret_problem = problem;
	drec_reader_free(reader);
	return r;
}
