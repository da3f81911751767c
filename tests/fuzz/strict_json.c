/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An independent check of what is written: RFC 8259 to the letter, as a machine of few states with a stack of
 * one byte a level. Slow and plain on purpose.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

struct text {
	const unsigned char *at, *end;
};

/* Code point of one UTF-8 sequence, or -1; moves on. */
static long code_point(struct text *t)
{
	static const long least[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned first = *t->at;
	int length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
	if (length == 0 || t->end - t->at < length)
		return -1;
	long code = length == 1 ? (long)first : (long)(first & (0x7fu >> length));
	for (int i = 1; i < length; i++) {
		if ((t->at[i] & 0xc0) != 0x80)
			return -1;
		code = code << 6 | (t->at[i] & 0x3f);
	}
	t->at += length;
	bool surrogate = code >= 0xd800 && code <= 0xdfff;
	return code >= least[length] && code <= 0x10ffff && !surrogate ? code : -1;
}

bool strict_utf8(const char *text, size_t bytes)
{
	if (bytes == 0)
		return true;
	struct text t = {(const unsigned char *)text, (const unsigned char *)text + bytes};
	while (t.at < t.end)
		if (code_point(&t) < 0)
			return false;
	return true;
}

static void skip_space(struct text *t)
{
	while (t->at < t->end && strchr(" \t\r\n", *t->at) && *t->at)
		t->at++;
}

static bool next_is(struct text *t, char c)
{
	if (t->at == t->end || *t->at != (unsigned char)c)
		return false;
	t->at++;
	return true;
}

static bool escape(struct text *t)
{
	if (t->at == t->end || !*t->at || !strchr("\"\\/bfnrtu", *t->at))
		return false;
	if (*t->at++ != 'u')
		return true;
	for (int i = 0; i < 4; i++, t->at++)
		if (t->at == t->end || !*t->at || !strchr("0123456789abcdefABCDEF", *t->at))
			return false;
	return true;
}

static bool string(struct text *t)
{
	if (!next_is(t, '"'))
		return false;
	while (t->at < t->end) {
		long code = code_point(t);
		if (code == '"')
			return true;
		if (code < 0x20 || (code == '\\' && !escape(t)))
			return false;
	}
	return false;
}

static bool digits(struct text *t)
{
	const unsigned char *begin = t->at;
	while (t->at < t->end && *t->at >= '0' && *t->at <= '9')
		t->at++;
	return t->at > begin;
}

static bool number(struct text *t)
{
	next_is(t, '-');
	if (!next_is(t, '0') && !digits(t))
		return false;
	if (next_is(t, '.') && !digits(t))
		return false;
	if (!next_is(t, 'e') && !next_is(t, 'E'))
		return true;
	if (!next_is(t, '+'))
		next_is(t, '-');
	return digits(t);
}

static bool scalar(struct text *t)
{
	static const char *const words[] = {"true", "false", "null"};
	if (t->at == t->end)
		return false;
	if (*t->at == '"')
		return string(t);
	for (size_t i = 0; i < 3; i++) {
		size_t bytes = strlen(words[i]);
		if ((size_t)(t->end - t->at) >= bytes && memcmp(t->at, words[i], bytes) == 0) {
			t->at += bytes;
			return true;
		}
	}
	return number(t);
}

static bool key(struct text *t)
{
	skip_space(t);
	if (!string(t))
		return false;
	skip_space(t);
	return next_is(t, ':');
}

/* `stack` has room for a byte per byte of the text, which no depth exceeds. */
static bool value(struct text *t, char *stack)
{
	size_t depth = 0;
	for (;;) {
		skip_space(t);
		if (next_is(t, '{')) {
			stack[depth++] = '}';
			skip_space(t);
			if (t->at < t->end && *t->at != '}') {
				if (!key(t))
					return false;
				continue;
			}
		} else if (next_is(t, '[')) {
			stack[depth++] = ']';
			skip_space(t);
			if (t->at < t->end && *t->at != ']')
				continue;
		} else if (!scalar(t)) {
			return false;
		}
		for (skip_space(t); depth > 0 && next_is(t, stack[depth - 1]); skip_space(t))
			depth--;
		if (depth == 0)
			return true;
		if (!next_is(t, ',') || (stack[depth - 1] == '}' && !key(t)))
			return false;
	}
}

bool strict_json(const char *text, size_t bytes, size_t *ret_offset)
{
	if (bytes == 0)
		return false;
	struct text t = {(const unsigned char *)text, (const unsigned char *)text + bytes};
	char *stack = malloc(bytes + 1);
	fuzz_require(stack != NULL, "no memory");
	bool good = value(&t, stack);
	free(stack);
	skip_space(&t);
	if (ret_offset)
		*ret_offset = (size_t)(t.at - (const unsigned char *)text);
	return good && t.at == t.end;
}
