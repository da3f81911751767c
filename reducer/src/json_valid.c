/* SPDX-License-Identifier: Apache-2.0 */
/* Strict validity of what is about to be written, and making valid what is not. */
#include "json.h"

#include <string.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* p is after the opening quote. Returns the place after the closing one, or NULL. */
static const char *strict_string(const char *p, const char *end)
{
	while (p < end) {
		unsigned char c = (unsigned char)*p;
		if (c == '"')
			return p + 1;
		if (c < 0x20)
			return NULL;
		if (c == '\\') {
			if (end - p < 2 || !p[1] || !strchr("\"\\/bfnrtu", p[1]))
				return NULL;
			if (p[1] == 'u') {
				for (int i = 2; i < 6; i++)
					if (end - p <= i || !p[i] || !strchr("0123456789abcdefABCDEF", p[i]))
						return NULL;
				p += 4;
			}
			p += 2;
			continue;
		}
		size_t length = c < 0x80 ? 1 : utf8_sequence(p, end);
		if (length == 0)
			return NULL;
		p += length;
	}
	return NULL;
}

static const char *digits(const char *p, const char *end)
{
	const char *begin = p;
	while (p < end && is_digit(*p))
		p++;
	return p > begin ? p : NULL;
}

static const char *strict_number(const char *p, const char *end)
{
	if (p < end && *p == '-')
		p++;
	if (p < end && *p == '0')
		p++;
	else if (!(p = digits(p, end)))
		return NULL;
	if (p < end && *p == '.' && !(p = digits(p + 1, end)))
		return NULL;
	if (p < end && (*p == 'e' || *p == 'E')) {
		p++;
		if (p < end && (*p == '+' || *p == '-'))
			p++;
		p = digits(p, end);
	}
	return p;
}

static const char *strict_scalar(const char *p, const char *end)
{
	static const char *const words[] = {"true", "false", "null"};
	if (*p == '"')
		return strict_string(p + 1, end);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t bytes = strlen(words[i]);
		if ((size_t)(end - p) >= bytes && memcmp(p, words[i], bytes) == 0)
			return p + bytes;
	}
	return strict_number(p, end);
}

/* `"key" :` at p; the place of the value, or NULL. */
static const char *strict_key(const char *p, const char *end)
{
	if (p == end || *p != '"' || !(p = strict_string(p + 1, end)))
		return NULL;
	p = json_skip_space(p, end);
	return p < end && *p == ':' ? json_skip_space(p + 1, end) : NULL;
}

/* One value at p, of any depth up to the limit: the place after it, or NULL. */
static const char *strict_value(const char *p, const char *end)
{
	bool object[JSON_DEPTH_MAX];
	unsigned depth = 0;
	for (;;) {
		if (p == end)
			return NULL;
		if (*p == '{' || *p == '[') {
			bool is_object = *p == '{';
			p = json_skip_space(p + 1, end);
			if (p == end || depth == JSON_DEPTH_MAX)
				return NULL;
			object[depth++] = is_object;
			if (*p != (is_object ? '}' : ']')) {
				if (is_object && !(p = strict_key(p, end)))
					return NULL;
				continue;
			}
		} else if (!(p = strict_scalar(p, end))) {
			return NULL;
		}
		/* After a value: close what ends here, or go on with the next one. */
		for (;;) {
			if (depth == 0)
				return p;
			p = json_skip_space(p, end);
			if (p == end)
				return NULL;
			if (*p != (object[depth - 1] ? '}' : ']'))
				break;
			depth--;
			p++;
		}
		if (*p != ',')
			return NULL;
		p = json_skip_space(p + 1, end);
		if (object[depth - 1] && !(p = strict_key(p, end)))
			return NULL;
	}
}

bool json_valid(struct reducer_text value)
{
	return value.bytes > 0 && strict_value(value.data, value.data + value.bytes) == value.data + value.bytes;
}

bool json_valid_string(struct reducer_text value)
{
	if (value.bytes < 2 || value.data[0] != '"')
		return false;
	const char *end = value.data + value.bytes;
	return strict_string(value.data + 1, end) == end;
}

bool json_valid_members(struct reducer_text members)
{
	if (members.bytes == 0)
		return true;
	const char *p = members.data, *end = members.data + members.bytes;
	for (;;) {
		p = strict_key(json_skip_space(p, end), end);
		if (!p || p == end || !(p = strict_value(p, end)))
			return false;
		p = json_skip_space(p, end);
		if (p == end)
			return true;
		if (*p++ != ',')
			return false;
	}
}

static void repair_string(struct buffer *out, struct reducer_text quoted)
{
	struct buffer said = {0};
	if (json_valid_string(quoted)) {
		buffer_add_text(out, quoted);
		return;
	}
	if (quoted.bytes < 2)
		quoted = (struct reducer_text){"\"\"", 2};
	json_unescape(&said, (struct reducer_text){quoted.data + 1, quoted.bytes - 2});
	json_quote(out, (struct reducer_text){said.data, said.bytes});
	if (said.failed)
		out->failed = said.failed;
	buffer_free(&said);
}

static bool in_word(char c)
{
	return !strchr(" \t\r\n,:{}[]\"", c) || c == 0;
}

/* The state of a repair: where commas and colons are due in what was written so far. */
struct repair {
	struct buffer *out;
	unsigned depth;
	bool object[JSON_DEPTH_MAX];
	bool want_value; /* after a colon */
	bool any;        /* something stands in this level */
};

static void before_item(struct repair *repair)
{
	if (repair->any && !repair->want_value)
		buffer_add_byte(repair->out, ',');
}

static void after_value(struct repair *repair)
{
	repair->want_value = false;
	repair->any = true;
}

/* A key without value or a value without key gets null, or becomes a key. */
static void add_scalar(struct repair *repair, struct reducer_text text, bool quoted, bool is_key)
{
	bool in_object = repair->depth > 0 && repair->object[repair->depth - 1];
	before_item(repair);
	if (quoted)
		repair_string(repair->out, text);
	else if (json_valid(text) && !(in_object && !repair->want_value))
		buffer_add_text(repair->out, text);
	else
		json_quote(repair->out, text);
	if (in_object && !repair->want_value) {
		buffer_add_literal(repair->out, ":");
		repair->want_value = true;
		repair->any = true;
		if (!is_key) {
			buffer_add_literal(repair->out, "null");
			repair->want_value = false;
		}
		return;
	}
	after_value(repair);
}

static void open_level(struct repair *repair, bool object)
{
	if (repair->depth > 0 && repair->object[repair->depth - 1] && !repair->want_value)
		add_scalar(repair, (struct reducer_text){"\"\"", 2}, true, true);
	before_item(repair);
	buffer_add_byte(repair->out, object ? '{' : '[');
	repair->object[repair->depth++] = object;
	repair->want_value = false;
	repair->any = false;
}

static void fill_missing_value(struct repair *repair)
{
	if (repair->want_value) {
		buffer_add_literal(repair->out, "null");
		repair->want_value = false;
	}
}

static void close_level(struct repair *repair)
{
	fill_missing_value(repair);
	buffer_add_byte(repair->out, repair->object[--repair->depth] ? '}' : ']');
	after_value(repair);
}

static const char *repair_text(struct repair *repair, const char *p, const char *end)
{
	const char *begin = p++, *strict = p, *key = p, *value = p;
	bool in_object = repair->depth > 0 && repair->object[repair->depth - 1];
	bool key_due = in_object && !repair->want_value;
	if (json_string(&strict, end) == JSON_OK) {
		const char *next = json_skip_space(strict, end);
		if (next == end || *next == ',' || *next == '}' || *next == ']' || *next == ':')
			p = strict;
		else if (key_due && json_string_loose(&key, end, true, JSON_LOOSE_FINAL) == JSON_OK)
			p = key;
		else if (json_string_loose(&value, end, false, JSON_LOOSE_FINAL) == JSON_OK)
			p = value;
		else
			p = strict;
	} else {
		p = end;
	}
	const char *next = json_skip_space(p, end);
	struct buffer whole = {0};
	struct reducer_text text = {begin, (size_t)(p - begin)};
	if (text.bytes < 2 || text.data[text.bytes - 1] != '"') {
		buffer_add_text(&whole, text);
		buffer_add_byte(&whole, '"');
		text = (struct reducer_text){whole.data, whole.bytes};
	}
	add_scalar(repair, text, true, next < end && *next == ':');
	if (whole.failed)
		repair->out->failed = whole.failed;
	buffer_free(&whole);
	return p;
}

static const char *repair_word(struct repair *repair, const char *p, const char *end)
{
	const char *begin = p;
	while (p < end && in_word(*p))
		p++;
	const char *next = json_skip_space(p, end);
	add_scalar(repair, (struct reducer_text){begin, (size_t)(p - begin)}, false, next < end && *next == ':');
	return p;
}

/* Writes what can be told, with every level closed and every comma and value in its place. */
static void repair_run(struct repair *repair, struct reducer_text value, unsigned floor)
{
	const char *p = value.bytes ? value.data : "", *end = p + value.bytes;
	while (p < end && !repair->out->failed) {
		char c = *p;
		bool object = c == '{' || c == '}';
		if (c == '"') {
			p = repair_text(repair, p, end);
		} else if (c == '{' || c == '[') {
			if (repair->depth == JSON_DEPTH_MAX)
				break;
			open_level(repair, object);
			p++;
		} else if (c == '}' || c == ']') {
			if (repair->depth > floor && repair->object[repair->depth - 1] == object)
				close_level(repair);
			p++;
		} else if (in_word(c)) {
			p = repair_word(repair, p, end);
		} else {
			if (c == ',')
				fill_missing_value(repair);
			p++;
		}
		if (repair->depth == 0 && floor == 0 && repair->any)
			break;
	}
	while (repair->depth > floor)
		close_level(repair);
	fill_missing_value(repair);
}

void json_repair(struct buffer *out, struct reducer_text value)
{
	struct repair repair = {.out = out};
	repair_run(&repair, value, 0);
	if (!repair.any)
		buffer_add_literal(out, "null");
}

void json_repair_members(struct buffer *out, struct reducer_text members)
{
	struct repair repair = {.out = out, .depth = 1, .object = {true}};
	repair_run(&repair, members, 1);
}
