/* SPDX-License-Identifier: Apache-2.0 */
#include "json_text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static size_t string_end(const char *text, size_t bytes, size_t at)
{
	for (at++; at < bytes && text[at] != '"'; at++)
		if (text[at] == '\\' && at + 1 < bytes)
			at++;
	return at < bytes ? at : bytes - 1;
}

static void blank_comment(char *text, size_t bytes, size_t at)
{
	for (; at < bytes && text[at] != '\n'; at++)
		text[at] = ' ';
}

/* Blanks comments out and bounds the depth, before a parser that recurses sees the text. */
static const char *prepare(char *text, size_t bytes, size_t *ret_offset)
{
	size_t depth = 0;
	if (bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		memset(text, ' ', 3);
	for (size_t at = 0; at < bytes; at++) {
		char c = text[at];
		*ret_offset = at;
		if (c == 0)
			return "a byte 0";
		if (c == '"')
			at = string_end(text, bytes, at);
		else if (c == '/' && bytes - at > 1 && text[at + 1] == '/')
			blank_comment(text, bytes, at);
		else if ((c == '{' || c == '[') && ++depth > JSON_TEXT_DEPTH_MAX)
			return "nested too deep";
		else if ((c == '}' || c == ']') && depth > 0)
			depth--;
	}
	return NULL;
}

/* Walks the text beside the tree that cJSON made of it: both have the same shape. */
struct walk {
	struct json_text *document;
	size_t at;
	size_t count;
};

static void skip_blanks(struct walk *walk)
{
	while (walk->at < walk->document->bytes && (unsigned char)walk->document->text[walk->at] <= ' ')
		walk->at++;
}

static void skip_scalar(struct walk *walk)
{
	const char *text = walk->document->text;
	if (text[walk->at] == '"')
		walk->at = string_end(text, walk->document->bytes, walk->at) + 1;
	else
		walk->at += strcspn(text + walk->at, ",]} \t\r\n");
}

static bool place_item(struct walk *walk, cJSON *item, size_t key_offset)
{
	if (walk->count == JSON_TEXT_ITEMS_MAX)
		return false;
	item->valueint = (int)walk->count;
	walk->document->places[walk->count++] = (struct json_place){key_offset, walk->at};
	if (!cJSON_IsObject(item) && !cJSON_IsArray(item)) {
		skip_scalar(walk);
		return true;
	}
	walk->at++;
	for (cJSON *child = item->child; child; child = child->next) {
		skip_blanks(walk);
		size_t start = walk->at;
		if (cJSON_IsObject(item)) {
			skip_scalar(walk);
			skip_blanks(walk);
			walk->at++; /* the colon */
			skip_blanks(walk);
		} else {
			start = walk->at;
		}
		if (!place_item(walk, child, start))
			return false;
		skip_blanks(walk);
		if (child->next)
			walk->at++; /* the comma */
	}
	skip_blanks(walk);
	walk->at++;
	return true;
}

/* cJSON may point behind the end: blame the last byte that says something. */
static size_t blame(const struct json_text *document, size_t offset)
{
	if (offset > document->bytes)
		offset = document->bytes;
	while (offset > 0 && (unsigned char)document->text[offset] <= ' ')
		offset--;
	return offset;
}

static int fail(struct json_text *document, struct json_text_error *ret_error, size_t offset, const char *why)
{
	*ret_error = (struct json_text_error){offset, why};
	json_text_free(document);
	return -EINVAL;
}

int json_text_parse(const char *text, size_t bytes, struct json_text *ret_document,
		    struct json_text_error *ret_error)
{
	struct json_text document = {.text = malloc(bytes + 1), .bytes = bytes};
	document.places = calloc(JSON_TEXT_ITEMS_MAX, sizeof(*document.places));
	if (!document.text || !document.places) {
		json_text_free(&document);
		return -ENOMEM;
	}
	memcpy(document.text, text, bytes);
	document.text[bytes] = 0;
	size_t offset = 0;
	const char *why = prepare(document.text, bytes, &offset);
	if (why)
		return fail(&document, ret_error, offset, why);
	const char *end = document.text;
	document.root = cJSON_ParseWithLengthOpts(document.text, bytes + 1, &end, true);
	if (!document.root)
		return fail(&document, ret_error, blame(&document, (size_t)(end - document.text)),
			    "no JSON from here on");
	struct walk walk = {.document = &document};
	skip_blanks(&walk);
	if (!place_item(&walk, document.root, walk.at))
		return fail(&document, ret_error, walk.at, "too many values");
	*ret_document = document;
	return 0;
}

void json_text_free(struct json_text *document)
{
	cJSON_Delete(document->root);
	free(document->places);
	free(document->text);
	*document = (struct json_text){0};
}

struct json_place json_text_place(const struct json_text *document, const cJSON *item)
{
	return document->places[item->valueint];
}

const char *json_text_number(const struct json_text *document, const cJSON *item, char *out)
{
	const char *text = document->text + json_text_place(document, item).value_offset;
	size_t bytes = strcspn(text, ",]} \t\r\n");
	if (bytes >= JSON_TEXT_NUMBER_MAX)
		bytes = 0;
	memcpy(out, text, bytes);
	out[bytes] = 0;
	return out;
}

void json_text_line(const char *text, size_t offset, unsigned *ret_line, unsigned *ret_column)
{
	unsigned line = 1, column = 1;
	for (size_t at = 0; at < offset; at++) {
		column++;
		if (text[at] == '\n') {
			line++;
			column = 1;
		}
	}
	*ret_line = line;
	*ret_column = column;
}
