/* SPDX-License-Identifier: Apache-2.0 */
#include "plain_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The character's length and value, 0 if the bytes are not well-formed UTF-8. */
static size_t decode(const unsigned char *text, size_t bytes, uint32_t *ret_code)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned char c = bytes ? text[0] : 0xff;
	size_t length = c < 0x80 ? 1 : c < 0xc0 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf8 ? 4 : 0;
	if (length == 0 || length > bytes)
		return 0;
	uint32_t code = length == 1 ? c : c & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3f);
	}
	if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	*ret_code = code;
	return length;
}

/* Control characters, line ends, and what turns the direction of writing. */
static bool shown(uint32_t code)
{
	if (code < 0x20 || (code >= 0x7f && code < 0xa0))
		return false;
	return code != 0x61c && code != 0x200e && code != 0x200f && !(code >= 0x2028 && code <= 0x202e) &&
	       !(code >= 0x2066 && code <= 0x2069);
}

size_t plain_text_character(const char *text, size_t bytes)
{
	uint32_t code;
	size_t length = decode((const unsigned char *)text, bytes, &code);
	return length && shown(code) ? length : 0;
}

void plain_text(char *out, size_t room, const char *text, size_t bytes)
{
	size_t used = 0, at = 0;
	uint32_t code;
	while (at < bytes) {
		size_t length = decode((const unsigned char *)text + at, bytes - at, &code);
		bool plain = length && shown(code);
		size_t needed = plain ? length : 1;
		if (needed >= room - used)
			break;
		if (plain)
			memmove(out + used, text + at, length);
		else
			out[used] = '?';
		used += needed;
		at += length ? length : 1;
	}
	out[used] = 0;
}

void plain_text_json(cJSON *document)
{
	cJSON *child;
	if (cJSON_IsString(document)) {
		size_t bytes = strlen(document->valuestring);
		plain_text(document->valuestring, bytes + 1, document->valuestring, bytes);
	}
	/* As deep as we built it, or as a parser of ours lets it be. */
	cJSON_ArrayForEach(child, document)
	{
		plain_text_json(child);
	}
}
