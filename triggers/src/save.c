/* SPDX-License-Identifier: Apache-2.0 */
#include "save.h"

#include <math.h>
#include <string.h>

void triggers_write(struct triggers_writer *writer, const void *bytes, size_t count)
{
	if (writer->out && writer->bytes <= writer->room && count <= writer->room - writer->bytes)
		memcpy(writer->out + writer->bytes, bytes, count);
	writer->bytes += count;
}

static void write_number(struct triggers_writer *writer, uint64_t value, size_t count)
{
	uint8_t bytes[8];
	for (size_t i = 0; i < count; i++)
		bytes[i] = (uint8_t)(value >> (8 * i));
	triggers_write(writer, bytes, count);
}

void triggers_write_u16(struct triggers_writer *writer, uint16_t value)
{
	write_number(writer, value, 2);
}

void triggers_write_u32(struct triggers_writer *writer, uint32_t value)
{
	write_number(writer, value, 4);
}

void triggers_write_u64(struct triggers_writer *writer, uint64_t value)
{
	write_number(writer, value, 8);
}

void triggers_write_i64(struct triggers_writer *writer, int64_t value)
{
	write_number(writer, (uint64_t)value, 8);
}

void triggers_write_float(struct triggers_writer *writer, float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof(bits));
	write_number(writer, bits, 4);
}

void triggers_write_double(struct triggers_writer *writer, double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	write_number(writer, bits, 8);
}

void triggers_write_text(struct triggers_writer *writer, const char *text)
{
	size_t count = strlen(text);
	triggers_write_u16(writer, (uint16_t)count);
	triggers_write(writer, text, count);
}

void triggers_read(struct triggers_cursor *cursor, void *out, size_t count)
{
	if (cursor->failed || count > cursor->left) {
		cursor->failed = 1;
		memset(out, 0, count);
		return;
	}
	memcpy(out, cursor->at, count);
	cursor->at += count;
	cursor->left -= count;
}

static uint64_t read_number(struct triggers_cursor *cursor, size_t count)
{
	uint8_t bytes[8] = {0};
	uint64_t value = 0;
	triggers_read(cursor, bytes, count);
	for (size_t i = 0; i < count; i++)
		value |= (uint64_t)bytes[i] << (8 * i);
	return value;
}

uint16_t triggers_read_u16(struct triggers_cursor *cursor)
{
	return (uint16_t)read_number(cursor, 2);
}

uint32_t triggers_read_u32(struct triggers_cursor *cursor)
{
	return (uint32_t)read_number(cursor, 4);
}

uint64_t triggers_read_u64(struct triggers_cursor *cursor)
{
	return read_number(cursor, 8);
}

int64_t triggers_read_i64(struct triggers_cursor *cursor)
{
	return (int64_t)read_number(cursor, 8);
}

int64_t triggers_read_ns(struct triggers_cursor *cursor)
{
	int64_t ns = triggers_read_i64(cursor);
	if (ns != INT64_MIN && (ns > TRIGGERS_NS_MAX || ns < -TRIGGERS_NS_MAX)) {
		cursor->failed = 1;
		return 0;
	}
	return ns;
}

int64_t triggers_read_time(struct triggers_cursor *cursor)
{
	int64_t ns = triggers_read_ns(cursor);
	if (ns == INT64_MIN)
		cursor->failed = 1;
	return ns == INT64_MIN ? 0 : ns;
}

float triggers_read_float(struct triggers_cursor *cursor)
{
	uint32_t bits = triggers_read_u32(cursor);
	float value;
	memcpy(&value, &bits, sizeof(value));
	if (!isfinite(value)) {
		cursor->failed = 1;
		return 0;
	}
	return value;
}

double triggers_read_double(struct triggers_cursor *cursor)
{
	uint64_t bits = triggers_read_u64(cursor);
	double value;
	memcpy(&value, &bits, sizeof(value));
	if (!isfinite(value)) {
		cursor->failed = 1;
		return 0;
	}
	return value;
}

void triggers_read_text(struct triggers_cursor *cursor, char *text, size_t room)
{
	size_t count = triggers_read_u16(cursor);
	if (count >= room)
		cursor->failed = 1;
	if (cursor->failed)
		count = 0;
	triggers_read(cursor, text, count);
	text[cursor->failed ? 0 : count] = 0;
	if (strlen(text) != count)
		cursor->failed = 1;
}

uint32_t triggers_crc32(const void *bytes, size_t count)
{
	static const uint32_t nibble[16] = {
		0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
		0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
		0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
	};
	const uint8_t *at = bytes;
	uint32_t crc = UINT32_MAX;
	for (size_t i = 0; i < count; i++) {
		crc ^= at[i];
		crc = crc >> 4 ^ nibble[crc & 15];
		crc = crc >> 4 ^ nibble[crc & 15];
	}
	return ~crc;
}
