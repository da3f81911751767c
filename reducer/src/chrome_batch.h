/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stretch of text read into a batch of events, away from the reader that will deliver them.
 *
 * Only events that are plainly right are taken; at the first byte that is anything else the batch ends. So
 * where a reader stands between two events at the stretch's first byte, delivering the batch and going on
 * after it is what reading it would have been.
 */
#ifndef REDUCER_CHROME_BATCH_H
#define REDUCER_CHROME_BATCH_H

#include "chrome_fast.h"

/* What a thread keeps from one batch to the next. Zeroed at first, but for the limit. */
struct chrome_parser {
	struct chrome_event found;
	struct chrome_shapes shapes;
	size_t event_bytes_max;
};

struct chrome_batch {
	struct reducer_event *event; /* texts point into the stretch or into `texts` */
	size_t n, room;
	char *texts; /* those that are not as written */
	size_t texts_bytes, texts_room;
};

int chrome_batch_init(struct chrome_batch *batch, size_t events, size_t texts_bytes);
void chrome_batch_free(struct chrome_batch *batch);

/* Reads what begins at text[0], which is at `offset` of the whole. Returns the bytes that the events and the
 * space and commas after them take. */
size_t chrome_batch_read(struct chrome_batch *batch, struct chrome_parser *parser, const char *text, size_t bytes,
			 uint64_t offset);

void chrome_parser_free(struct chrome_parser *parser);

/* Past space and commas. */
static inline const char *chrome_skip_between(const char *p, const char *end)
{
	while (p < end && (*p == ',' || *p == '\n' || *p == ' ' || *p == '\r' || *p == '\t'))
		p++;
	return p;
}

#endif
