/* SPDX-License-Identifier: Apache-2.0 */
#include "chrome_batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int chrome_batch_init(struct chrome_batch *batch, size_t events, size_t texts_bytes)
{
	*batch = (struct chrome_batch){
		.event = malloc(events * sizeof(*batch->event)),
		.room = events,
		.texts = malloc(texts_bytes),
		.texts_room = texts_bytes,
	};
	if (batch->event && batch->texts)
		return 0;
	chrome_batch_free(batch);
	return -ENOMEM;
}

void chrome_batch_free(struct chrome_batch *batch)
{
	free(batch->event);
	free(batch->texts);
	*batch = (struct chrome_batch){0};
}

void chrome_parser_free(struct chrome_parser *parser)
{
	chrome_event_free(&parser->found);
	chrome_shapes_free(&parser->shapes);
}

/* Copies a text that stands in `scratch`, which the next event uses again. */
static bool keep_text(struct chrome_batch *batch, const struct buffer *scratch, struct reducer_text *text)
{
	if (text->bytes == 0 || text->data != scratch->data)
		return true;
	if (text->bytes > batch->texts_room - batch->texts_bytes)
		return false;
	char *to = batch->texts + batch->texts_bytes;
	memcpy(to, text->data, text->bytes);
	text->data = to;
	batch->texts_bytes += text->bytes;
	return true;
}

static bool read_plainly(struct chrome_parser *parser, const char **p, const char *end, struct reducer_event *event)
{
	const char *begin = *p, *at = begin;
	if (chrome_event_scan(&parser->found, &at, end, JSON_STRICT) != JSON_OK || parser->found.failed ||
	    parser->found.doubled || !parser->found.at[FIELD_PH])
		return false;
	chrome_shapes_learn(&parser->shapes, &parser->found, begin, at);
	if (chrome_event_map(&parser->found, event) < 0)
		return false;
	*p = at;
	return true;
}

size_t chrome_batch_read(struct chrome_batch *batch, struct chrome_parser *parser, const char *text, size_t bytes,
			 uint64_t offset)
{
	const char *end = text + bytes, *p = chrome_skip_between(text, end);
	batch->n = 0;
	batch->texts_bytes = 0;
	while (p < end && *p == '{' && batch->n < batch->room) {
		struct reducer_event *event = &batch->event[batch->n];
		const char *at = p;
		if (!chrome_fast_event(&parser->shapes, &parser->found, &at, end, event) &&
		    !read_plainly(parser, &at, end, event))
			break;
		if ((size_t)(at - p) > parser->event_bytes_max)
			break;
		event->offset = offset + (uint64_t)(p - text);
		event->bytes = (uint32_t)(at - p);
		if (!keep_text(batch, &parser->found.name, &event->name) ||
		    !keep_text(batch, &parser->found.category, &event->category) ||
		    !keep_text(batch, &parser->found.extra, &event->extra))
			break;
		batch->n++;
		p = chrome_skip_between(at, end);
	}
	return (size_t)(p - text);
}
