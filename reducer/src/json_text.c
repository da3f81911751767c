/* SPDX-License-Identifier: Apache-2.0 */
/* What JSON texts say, and texts as JSON. */
#include "json.h"

#include <string.h>

static const char replacement[] = "\xef\xbf\xbd";

size_t utf8_sequence(const char *p, const char *end)
{
	const unsigned char *s = (const unsigned char *)p;
	size_t avail = (size_t)(end - p);
	if (avail == 0)
		return 0;
	if (s[0] < 0x80)
		return 1;
	size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	if (s[0] < 0xc2 || s[0] > 0xf4 || avail < length)
		return 0;
	for (size_t i = 1; i < length; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* No overlong forms, no surrogates, nothing beyond U+10FFFF. */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
	    (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return length;
}

/* Bytes at p that are ASCII and neither control, quote nor backslash. */
static size_t plain_run(const char *p, const char *end)
{
	const char *begin = p;
	while (p < end && (unsigned char)*p >= 0x20 && (unsigned char)*p < 0x80 && *p != '"' && *p != '\\')
		p++;
	return (size_t)(p - begin);
}

bool json_is_plain(struct reducer_text inner)
{
	if (inner.bytes == 0)
		return true;
	const char *p = inner.data, *end = inner.data + inner.bytes;
	while (p < end) {
		p += plain_run(p, end);
		if (p == end)
			break;
		if (*p == '\\')
			return false;
		size_t length = utf8_sequence(p, end);
		if (length == 0)
			return false;
		p += length;
	}
	return true;
}

static int hex4(const char *p, const char *end)
{
	int value = 0;
	if (end - p < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		char c = p[i];
		int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
				: c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
		if (digit < 0)
			return -1;
		value = value * 16 + digit;
	}
	return value;
}

static void add_code_point(struct buffer *out, unsigned code)
{
	char utf8[4];
	size_t bytes;
	if (code < 0x80) {
		utf8[0] = (char)code;
		bytes = 1;
	} else if (code < 0x800) {
		utf8[0] = (char)(0xc0 | code >> 6);
		utf8[1] = (char)(0x80 | (code & 0x3f));
		bytes = 2;
	} else if (code < 0x10000) {
		utf8[0] = (char)(0xe0 | code >> 12);
		utf8[1] = (char)(0x80 | (code >> 6 & 0x3f));
		utf8[2] = (char)(0x80 | (code & 0x3f));
		bytes = 3;
	} else {
		utf8[0] = (char)(0xf0 | code >> 18);
		utf8[1] = (char)(0x80 | (code >> 12 & 0x3f));
		utf8[2] = (char)(0x80 | (code >> 6 & 0x3f));
		utf8[3] = (char)(0x80 | (code & 0x3f));
		bytes = 4;
	}
	buffer_add(out, utf8, bytes);
}

/* p is after `\u`. Returns how many bytes of the text were used. */
static size_t unescape_unicode(struct buffer *out, const char *p, const char *end)
{
	int code = hex4(p, end);
	if (code < 0) {
		buffer_add(out, "\\u", 2);
		return 0;
	}
	if (code < 0xd800 || code > 0xdfff) {
		add_code_point(out, (unsigned)code);
		return 4;
	}
	if (code < 0xdc00 && end - p >= 10 && p[4] == '\\' && p[5] == 'u') {
		int low = hex4(p + 6, end);
		if (low >= 0xdc00 && low <= 0xdfff) {
			add_code_point(out, 0x10000u + ((unsigned)(code - 0xd800) << 10) +
						    (unsigned)(low - 0xdc00));
			return 10;
		}
	}
	buffer_add(out, replacement, 3);
	return 4;
}

void json_unescape(struct buffer *out, struct reducer_text inner)
{
	static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	if (inner.bytes == 0)
		return;
	const char *p = inner.data, *end = inner.data + inner.bytes;
	while (p < end) {
		size_t run = plain_run(p, end);
		buffer_add(out, p, run);
		p += run;
		if (p == end)
			break;
		if (*p != '\\' || end - p < 2) {
			size_t length = utf8_sequence(p, end);
			buffer_add(out, length ? p : replacement, length ? length : 3);
			p += length ? length : 1;
			continue;
		}
		const char *letter = p[1] ? strchr(letters, p[1]) : NULL;
		if (p[1] == 'u') {
			p += 2 + unescape_unicode(out, p + 2, end);
		} else if (letter) {
			buffer_add_byte(out, values[letter - letters]);
			p += 2;
		} else {
			buffer_add_byte(out, '\\');
			p++;
		}
	}
}

static void quote_special(struct buffer *out, char c)
{
	static const char hex[] = "0123456789abcdef";
	char escape[6] = {'\\', 0, '0', '0', 0, 0};
	switch (c) {
	case '"':
	case '\\':
		escape[1] = c;
		break;
	case '\n':
		escape[1] = 'n';
		break;
	case '\t':
		escape[1] = 't';
		break;
	case '\r':
		escape[1] = 'r';
		break;
	default:
		escape[1] = 'u';
		escape[4] = hex[(unsigned char)c >> 4];
		escape[5] = hex[c & 15];
	}
	buffer_add(out, escape, escape[1] == 'u' ? 6 : 2);
}

void json_quote(struct buffer *out, struct reducer_text text)
{
	/* Where there is no text its place is NULL, from which no end can be reckoned. */
	const char *p = text.bytes ? text.data : "", *end = p + text.bytes;
	buffer_add_byte(out, '"');
	while (p < end) {
		size_t run = plain_run(p, end);
		buffer_add(out, p, run);
		p += run;
		if (p == end)
			break;
		if ((unsigned char)*p < 0x80 && *p != 0x7f) {
			quote_special(out, *p++);
			continue;
		}
		size_t length = utf8_sequence(p, end);
		buffer_add(out, length ? p : replacement, length ? length : 3);
		p += length ? length : 1;
	}
	buffer_add_byte(out, '"');
}
