/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <string.h>

/* One bit a level: whether it is an object. */
struct levels {
	unsigned depth;
	uint64_t object[JSON_DEPTH_MAX / 64];
};

static bool level_push(struct levels *levels, bool object)
{
	if (levels->depth == JSON_DEPTH_MAX)
		return false;
	uint64_t bit = (uint64_t)1 << (levels->depth % 64);
	uint64_t *word = &levels->object[levels->depth / 64];
	*word = object ? *word | bit : *word & ~bit;
	levels->depth++;
	return true;
}

static bool level_is_object(const struct levels *levels)
{
	unsigned top = levels->depth - 1;
	return levels->object[top / 64] >> (top % 64) & 1;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

const char *json_skip_space(const char *p, const char *end)
{
	while (p < end && is_space(*p))
		p++;
	return p;
}

/* Nonzero in the high bit of each byte of `word` that equals `c`; exact up to and including the first. */
static uint64_t bytes_equal(uint64_t word, unsigned char c)
{
	const uint64_t ones = 0x0101010101010101u;
	uint64_t x = word ^ (ones * c);
	return (x - ones) & ~x & (ones << 7);
}

static const char *quote_or_backslash(const char *p, const char *end)
{
	while (end - p >= 8) {
		uint64_t word;
		memcpy(&word, p, sizeof(word));
		uint64_t hit = bytes_equal(word, '"') | bytes_equal(word, '\\');
		if (hit) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
			return p + (__builtin_ctzll(hit) >> 3);
#else
			break;
#endif
		}
		p += 8;
	}
	while (p < end && *p != '"' && *p != '\\')
		p++;
	return p;
}

enum json_end json_string(const char **p, const char *end)
{
	const char *at = *p;
	for (;;) {
		at = quote_or_backslash(at, end);
		if (at == end)
			return JSON_MORE;
		if (*at == '"') {
			*p = at + 1;
			return JSON_OK;
		}
		if (end - at < 2)
			return JSON_MORE;
		at += 2;
	}
}

/* Whether a member begins at p: quote, a key without quotes, quote, colon. */
static enum json_end member_begins(const char *p, const char *end)
{
	if (p == end)
		return JSON_MORE;
	if (*p != '"')
		return JSON_BAD;
	const char *close = memchr(p + 1, '"', (size_t)(end - p - 1));
	if (!close)
		return JSON_MORE;
	p = json_skip_space(close + 1, end);
	if (p == end)
		return JSON_MORE;
	return *p == ':' ? JSON_OK : JSON_BAD;
}

/* Whether what stands after a quote shows that the quote closed a text. */
static enum json_end text_may_end(const char *p, const char *end, bool is_key, enum json_how how)
{
	const enum json_end at_end = how == JSON_LOOSE_FINAL ? JSON_OK : JSON_MORE;
	p = json_skip_space(p, end);
	if (p == end)
		return JSON_MORE;
	if (is_key)
		return *p == ':' ? JSON_OK : JSON_BAD;
	if (*p == '}' || *p == ']') {
		p = json_skip_space(p + 1, end);
		if (p == end)
			return at_end;
		return *p == ',' || *p == '}' || *p == ']' || *p == '{' ? JSON_OK : JSON_BAD;
	}
	if (*p != ',')
		return JSON_BAD;
	p = json_skip_space(p + 1, end);
	if (p < end && (*p == '{' || *p == '}'))
		return JSON_OK;
	return member_begins(p, end);
}

enum json_end json_string_loose(const char **p, const char *end, bool is_key, enum json_how how)
{
	const char *at = *p;
	for (;;) {
		at = memchr(at, '"', (size_t)(end - at));
		if (!at) {
			*p = end;
			return JSON_MORE;
		}
		enum json_end result = text_may_end(++at, end, is_key, how);
		if (result == JSON_BAD)
			continue;
		*p = result == JSON_OK ? at : at - 1;
		return result;
	}
}

static bool ends_word(char c)
{
	return is_space(c) || c == ',' || c == '}' || c == ']' || c == ':' || c == '"' || c == '{' || c == '[';
}

static enum json_end word(const char **p, const char *end, enum json_how how)
{
	const char *at = *p;
	while (at < end && !ends_word(*at))
		at++;
	if (at == end)
		return JSON_MORE;
	if (at == *p && !(how && (*at == ',' || *at == '}' || *at == ']')))
		return JSON_BAD;
	*p = at;
	return JSON_OK;
}

/* Inside a container only brackets and texts matter; that a text is followed by what may follow one shows
 * early that a quote was not escaped, before the wrong reading runs on over later events. */
static enum json_end inner_string(const char **p, const char *end, enum json_how how)
{
	const char *at = *p;
	if (how) {
		/* A key ends at `":`; a value at `"` and a member, so the nearer of both is right. */
		const char *key = at, *value = at;
		enum json_end as_key = json_string_loose(&key, end, true, how);
		enum json_end as_value = json_string_loose(&value, end, false, how);
		enum json_end nearer = key < value ? as_key : as_value;
		if (how == JSON_LOOSE_FINAL && nearer != JSON_OK)
			nearer = as_key == JSON_OK || as_value == JSON_OK ? JSON_OK : JSON_MORE;
		if (nearer == JSON_OK)
			*p = as_value != JSON_OK || (as_key == JSON_OK && key < value) ? key : value;
		return nearer;
	}
	enum json_end result = json_string(&at, end);
	if (result != JSON_OK)
		return result;
	const char *next = json_skip_space(at, end);
	if (next == end)
		return JSON_MORE;
	if (*next != ',' && *next != ':' && *next != '}' && *next != ']')
		return JSON_BAD;
	*p = at;
	return JSON_OK;
}

static enum json_end container(const char **p, const char *end, enum json_how how)
{
	struct levels levels = {.depth = 0};
	const char *at = *p;
	while (at < end) {
		char c = *at++;
		if (c == '"') {
			enum json_end result = inner_string(&at, end, how);
			if (result != JSON_OK)
				return result;
		} else if (c == '{' || c == '[') {
			if (!level_push(&levels, c == '{'))
				return JSON_BAD;
		} else if (c == '}' || c == ']') {
			if (level_is_object(&levels) != (c == '}'))
				return JSON_BAD;
			if (--levels.depth == 0) {
				*p = at;
				return JSON_OK;
			}
		}
	}
	return JSON_MORE;
}

enum json_end json_value(const char **p, const char *end, enum json_how how)
{
	if (*p == end)
		return JSON_MORE;
	char c = **p;
	if (c == '{' || c == '[')
		return container(p, end, how);
	if (c != '"')
		return word(p, end, how);
	const char *at = *p + 1;
	enum json_end result = how ? json_string_loose(&at, end, false, how) : json_string(&at, end);
	if (result == JSON_OK)
		*p = at;
	return result;
}

const char *json_scan(struct json_scan *scan, const char *p, const char *end)
{
	while (p < end) {
		if (scan->escaped) {
			scan->escaped = false;
			p++;
			continue;
		}
		if (scan->in_string) {
			p = quote_or_backslash(p, end);
			if (p == end)
				return NULL;
			scan->escaped = *p == '\\';
			scan->in_string = *p++ == '\\';
			continue;
		}
		char c = *p++;
		if (c == '"')
			scan->in_string = true;
		else if (c == '{' || c == '[')
			scan->depth++;
		else if ((c == '}' || c == ']') && scan->depth > 0 && --scan->depth == 0)
			return p;
	}
	return NULL;
}

static struct reducer_text span_of(const char *from, const char *to)
{
	return (struct reducer_text){from, (size_t)(to - from)};
}

int json_next_member(struct reducer_text *rest, struct reducer_text *ret_key, struct reducer_text *ret_value)
{
	if (rest->bytes == 0)
		return 0;
	const char *p = rest->data, *end = rest->data + rest->bytes;
	while (p < end && (is_space(*p) || *p == ','))
		p++;
	const char *key = p;
	if (p == end || *p++ != '"' || json_string(&p, end) != JSON_OK)
		return 0;
	struct reducer_text key_text = span_of(key, p);
	p = json_skip_space(p, end);
	if (p == end || *p++ != ':')
		return 0;
	p = json_skip_space(p, end);
	const char *value = p;
	enum json_end result = json_value(&p, end, JSON_STRICT);
	/* A bare word is ended by the end of the run, too. */
	if (result == JSON_MORE && value < end && !ends_word(*value)) {
		p = end;
		result = JSON_OK;
	}
	if (result != JSON_OK)
		return 0;
	*ret_key = key_text;
	*ret_value = span_of(value, p);
	*rest = span_of(p, end);
	return 1;
}
