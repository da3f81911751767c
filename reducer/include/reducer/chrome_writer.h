/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reducer/chrome_writer.h: write Chrome trace JSON, one event a line, plain or gzip.
 *
 * The output is valid JSON whatever comes in: texts that are not are escaped, values that are not are
 * repaired (NaN becomes "NaN"), and both are counted. Valid args are written byte for byte, times exactly:
 * microseconds with 3 decimals, with 6 where there are picoseconds. The same input gives the same bytes.
 *
 * Marks become spans and instants of category "driverec.mark", losses instants of category "driverec.loss".
 *
 * Not thread-safe. Errors are -errno; after one every further call returns it again.
 */
#ifndef REDUCER_CHROME_WRITER_H
#define REDUCER_CHROME_WRITER_H

#include <reducer/event.h>

struct reducer_chrome_writer;

struct reducer_chrome_writer_options {
	int array_root;       /* a bare array; top-level members are then left out and counted */
	int gzip_level;       /* 0 = plain, 1 .. 3 fast, 4 .. 9 smaller */
	int has_base;
	int64_t base_unix_ns; /* subtracted from every time */
	int strip_args;
	int threaded;         /* a thread of its own packs and writes; an error may be told by a later call */
};

struct reducer_chrome_writer_stats {
	uint64_t events;
	uint64_t text_bytes;       /* before packing */
	uint64_t file_bytes;
	uint64_t repaired;         /* texts and values that were no valid JSON */
	uint64_t members_left_out; /* by array_root */
	uint64_t args_left_out;    /* not JSON, or strip_args */
};

/* gzip level for a path by its name: 6 for ".gz", else 0. */
int reducer_chrome_writer_level(const char *path);

/* Writes to `fd`, which stays the caller's. `options` may be NULL. */
int reducer_chrome_writer_new(int fd, const struct reducer_chrome_writer_options *options,
			      struct reducer_chrome_writer **ret_writer);

/* Before the first event: written before the events. Later ones are kept and written after them. */
int reducer_chrome_writer_member(struct reducer_chrome_writer *writer, const struct reducer_member *member);
int reducer_chrome_writer_event(struct reducer_chrome_writer *writer, const struct reducer_event *event);

/* One event as another writer wrote it: byte for byte where it is a valid JSON object, else -EBADMSG (nothing is
 * written; read it, and write what was read). Times and args are not looked at. */
int reducer_chrome_writer_text(struct reducer_chrome_writer *writer, struct reducer_text event);

/* reducer_chrome_writer_member() and _event() as a sink for a reader. */
struct reducer_sink reducer_chrome_writer_sink(struct reducer_chrome_writer *writer);

/* Ends the text and writes what is buffered. Without it the file is not whole. */
int reducer_chrome_writer_finish(struct reducer_chrome_writer *writer);

const struct reducer_chrome_writer_stats *reducer_chrome_writer_stats(const struct reducer_chrome_writer *writer);

void reducer_chrome_writer_free(struct reducer_chrome_writer *writer);

#endif
