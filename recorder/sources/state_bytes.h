/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources/state_bytes.h: records one after the other, for the next daemon on this host: as they lie in memory, so
 * whoever reads them says by a version that they are laid out alike, and checks what they hold.
 */
#ifndef RECORDER_SOURCES_STATE_BYTES_H
#define RECORDER_SOURCES_STATE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct state_writer {
	char *out; /* NULL: only count */
	size_t room;
	size_t bytes; /* wanted so far, also beyond the room */
};

static inline void state_put(struct state_writer *writer, const void *record, size_t bytes)
{
	if (writer->out && writer->bytes <= writer->room && bytes <= writer->room - writer->bytes)
		memcpy(writer->out + writer->bytes, record, bytes);
	writer->bytes += bytes;
}

/* One that ran out stays failed. */
struct state_reader {
	const char *at;
	size_t left;
	bool failed;
};

/* False, and the record untouched, where there is not so much. */
static inline bool state_take(struct state_reader *reader, void *ret_record, size_t bytes)
{
	if (reader->failed || bytes > reader->left) {
		reader->failed = true;
		return false;
	}
	memcpy(ret_record, reader->at, bytes);
	reader->at += bytes;
	reader->left -= bytes;
	return true;
}

#endif
