/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_text.h: a JSON document with // comments, parsed by cJSON, in which every item knows where it stands.
 *
 * For small documents written by hand. Not more than JSON_TEXT_DEPTH_MAX levels and JSON_TEXT_ITEMS_MAX
 * items.
 */
#ifndef RECORDER_JSON_TEXT_H
#define RECORDER_JSON_TEXT_H

#include <cjson/cJSON.h>
#include <stddef.h>

enum { JSON_TEXT_DEPTH_MAX = 16, JSON_TEXT_ITEMS_MAX = 16384, JSON_TEXT_NUMBER_MAX = 40 };

struct json_place {
	size_t key_offset; /* of a member's key; elsewhere as value_offset */
	size_t value_offset;
};

struct json_text {
	char *text; /* comments blanked out, so that offsets are those of the file */
	size_t bytes;
	cJSON *root;
	struct json_place *places; /* item->valueint is its index here: numbers are read from the text */
};

/* What is wrong with a text that is no such document, and where. */
struct json_text_error {
	size_t offset;
	const char *why;
};

/* 0, -EINVAL with *ret_error, or -ENOMEM. */
int json_text_parse(const char *text, size_t bytes, struct json_text *ret_document,
		    struct json_text_error *ret_error);
void json_text_free(struct json_text *document);

struct json_place json_text_place(const struct json_text *document, const cJSON *item);

/* The digits of a number as they were written, in `out`, of JSON_TEXT_NUMBER_MAX bytes. "" if too long. */
const char *json_text_number(const struct json_text *document, const cJSON *item, char *out);

/* Both count from 1; columns are bytes. */
void json_text_line(const char *text, size_t offset, unsigned *ret_line, unsigned *ret_column);

#endif
