/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce/progress.h: one line on a terminal that is rewritten: files done, share, speed, time left.
 *
 *     3 of 12 files   41 %   212 MB/s   0:14 left   reducing rank7.pt.trace.json.gz
 */
#ifndef RECORDER_REDUCE_PROGRESS_H
#define RECORDER_REDUCE_PROGRESS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct progress {
	FILE *out; /* NULL: nobody looks */
	size_t files, done;
	uint64_t bytes, done_bytes; /* of the inputs */
	int64_t began_ns, drawn_ns;
	int is_drawn;
};

/* Draws only where `out` is a terminal. */
void progress_begin(struct progress *progress, FILE *out, size_t files, uint64_t bytes);
void progress_file_done(struct progress *progress, uint64_t bytes);
/* `under_way_bytes` of the files that are worked on are done; `path` is one of them, `what` is done with it.
 */
void progress_draw(struct progress *progress, uint64_t under_way_bytes, const char *what, const char *path);
/* Takes the line away, for other lines or for good. */
void progress_clear(struct progress *progress);

/* The line itself. */
void progress_print(const struct progress *progress, int64_t now_ns, uint64_t under_way_bytes,
		    const char *what, const char *path, char *out, size_t room);

#endif
