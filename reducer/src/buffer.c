/* SPDX-License-Identifier: Apache-2.0 */
#include "buffer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

char *buffer_room(struct buffer *buffer, size_t more)
{
	if (buffer->failed)
		return NULL;
	if (more > buffer->room - buffer->bytes) {
		size_t room = buffer->room ? buffer->room : 256;
		while (room - buffer->bytes < more) {
			if (room > SIZE_MAX / 2) {
				buffer->failed = -ENOMEM;
				return NULL;
			}
			room *= 2;
		}
		char *data = realloc(buffer->data, room);
		if (!data) {
			buffer->failed = -ENOMEM;
			return NULL;
		}
		buffer->data = data;
		buffer->room = room;
	}
	return buffer->data + buffer->bytes;
}

void buffer_add(struct buffer *buffer, const char *data, size_t bytes)
{
	if (bytes == 0)
		return;
	char *to = buffer_room(buffer, bytes);
	if (!to)
		return;
	memcpy(to, data, bytes);
	buffer->bytes += bytes;
}

void buffer_add_text(struct buffer *buffer, struct reducer_text text)
{
	buffer_add(buffer, text.data, text.bytes);
}

void buffer_add_literal(struct buffer *buffer, const char *literal)
{
	buffer_add(buffer, literal, strlen(literal));
}

void buffer_add_byte(struct buffer *buffer, char byte)
{
	buffer_add(buffer, &byte, 1);
}

void buffer_add_u64(struct buffer *buffer, uint64_t value)
{
	char digits[20];
	size_t at = sizeof(digits);
	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	buffer_add(buffer, digits + at, sizeof(digits) - at);
}

/* A point and so many digits of `rest`. */
static void add_decimals(struct buffer *buffer, unsigned rest, int digits)
{
	char decimals[7];
	for (int i = digits; i > 0; i--, rest /= 10)
		decimals[i] = (char)('0' + rest % 10);
	decimals[0] = '.';
	buffer_add(buffer, decimals, (size_t)digits + 1);
}

void buffer_add_us(struct buffer *buffer, int64_t ns, uint16_t ps, int64_t base_ns)
{
	__int128 total = ((__int128)ns - base_ns) * 1000 + ps;
	uint64_t whole;
	unsigned rest;
	if (total < 0) {
		buffer_add_byte(buffer, '-');
		total = -total;
	}
	/* Divisions of 128 bits are slow, and seldom needed. */
	if ((unsigned __int128)total <= UINT64_MAX) {
		whole = (uint64_t)total / 1000000;
		rest = (unsigned)((uint64_t)total % 1000000);
	} else {
		whole = (uint64_t)((unsigned __int128)total / 1000000);
		rest = (unsigned)((unsigned __int128)total % 1000000);
	}
	buffer_add_u64(buffer, whole);
	if (rest % 1000)
		add_decimals(buffer, rest, 6);
	else
		add_decimals(buffer, rest / 1000, 3);
}

void buffer_clear(struct buffer *buffer)
{
	buffer->bytes = 0;
	buffer->failed = 0;
}

void buffer_free(struct buffer *buffer)
{
	free(buffer->data);
	*buffer = (struct buffer){0};
}
