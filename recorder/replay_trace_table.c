/* SPDX-License-Identifier: Apache-2.0 */
#include "replay_trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 1 << 20 };

/* ---- names ---- */

static uint32_t hash_text(const char *text, size_t bytes)
{
	uint32_t hash = 0x811c9dc5u;
	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ (unsigned char)text[i]) * 0x01000193u;
	return hash ^ hash >> 15;
}

static int names_grow(struct trace_names *names)
{
	uint32_t buckets = names->buckets ? 2 * names->buckets : 1024;
	char **text = realloc(names->text, buckets / 2 * sizeof(*text));
	if (!text)
		return -ENOMEM;
	names->text = text;
	names->room = buckets / 2;
	uint32_t *bucket = calloc(buckets, sizeof(*bucket));
	if (!bucket)
		return -ENOMEM;
	for (uint32_t i = 0; i < names->count; i++) {
		uint32_t at = hash_text(text[i], strlen(text[i])) & (buckets - 1);
		while (bucket[at])
			at = (at + 1) & (buckets - 1);
		bucket[at] = i + 1;
	}
	free(names->bucket);
	names->bucket = bucket;
	names->buckets = buckets;
	return 0;
}

int64_t trace_names_number(struct trace_names *names, const char *text, size_t bytes)
{
	bytes = bytes > 255 ? 255 : bytes;
	bytes = strnlen(text, bytes);
	if (names->count == names->room) {
		int result = names->count == NAMES_MAX ? -E2BIG : names_grow(names);
		if (result)
			return result;
	}
	uint32_t at = hash_text(text, bytes) & (names->buckets - 1);
	for (; names->bucket[at]; at = (at + 1) & (names->buckets - 1)) {
		const char *known = names->text[names->bucket[at] - 1];
		if (!strncmp(known, text, bytes) && !known[bytes])
			return names->bucket[at] - 1;
	}
	char *copy = strndup(text, bytes);
	if (!copy)
		return -ENOMEM;
	names->text[names->count] = copy;
	names->bucket[at] = ++names->count;
	return names->count - 1;
}

void trace_names_free(struct trace_names *names)
{
	for (uint32_t i = 0; i < names->count; i++)
		free(names->text[i]);
	free(names->text);
	free(names->bucket);
}

/* ---- rows ---- */

struct trace_row *trace_rows_place(const struct trace_rows *rows, uint32_t track, uint32_t name)
{
	uint32_t at = (track * 0x9e3779b1u ^ name * 0x85ebca6bu) >> 7 & (rows->buckets - 1);
	while (rows->row[at].name != UINT32_MAX &&
	       (rows->row[at].name != name || rows->row[at].track != track))
		at = (at + 1) & (rows->buckets - 1);
	return &rows->row[at];
}

static int rows_grow(struct trace_rows *rows)
{
	struct trace_rows larger = {.count = rows->count,
				    .buckets = rows->buckets ? 2 * rows->buckets : 4096};
	larger.row = malloc(larger.buckets * sizeof(*larger.row));
	if (!larger.row)
		return -ENOMEM;
	for (uint32_t i = 0; i < larger.buckets; i++)
		larger.row[i] = (struct trace_row){
			.name = UINT32_MAX, .series = TRIGGERS_SERIES_NONE, .end_ns = INT64_MIN};
	for (uint32_t i = 0; i < rows->buckets; i++)
		if (rows->row[i].name != UINT32_MAX)
			*trace_rows_place(&larger, rows->row[i].track, rows->row[i].name) = rows->row[i];
	free(rows->row);
	*rows = larger;
	return 0;
}

struct trace_row *trace_rows_take(struct trace_rows *rows, uint32_t track, uint32_t name)
{
	if (2 * rows->count >= rows->buckets && rows_grow(rows))
		return NULL;
	struct trace_row *row = trace_rows_place(rows, track, name);
	if (row->name == UINT32_MAX) {
		row->track = track;
		row->name = name;
		rows->count++;
	}
	return row;
}
