/* SPDX-License-Identifier: Apache-2.0 */
/* What a format's writer gives to writer.c: one table a format. */
#ifndef REDUCER_WRITER_INSIDE_H
#define REDUCER_WRITER_INSIDE_H

#include <reducer/writer.h>

struct writer_format {
	int (*open)(int fd, const struct reducer_writer_options *options, const char *spool_dir,
		    void **ret_output);
	int (*member)(void *output, const struct reducer_member *member);
	int (*event)(void *output, const struct reducer_event *event);
	int (*finish)(void *output);
	const struct reducer_writer_stats *(*stats)(const void *output);
	/* Fills up to `room`; returns how many there are. */
	size_t (*left_out)(const void *output, struct reducer_left_out *ret, size_t room);
	void (*free)(void *output);
};

extern const struct writer_format writer_chrome, writer_pftrace, writer_xplane;

/* Adds one kind of things to a list of things left out, if there are any. */
void writer_add_left_out(struct reducer_left_out *ret, size_t room, size_t *count, const char *what,
			 uint64_t number);

#endif
