/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State as bytes: little-endian, written and read through one cursor each. A cursor that ran out stays
 * failed, so callers check once at the end. Reading is by subtraction from what is left.
 *
 * Layout: magic u64, version u32, body bytes u32, CRC32 of the body u32, u32 0, body.
 */
#ifndef TRIGGERS_SAVE_H
#define TRIGGERS_SAVE_H

#include <stddef.h>
#include <stdint.h>

struct triggers_writer {
	uint8_t *out; /* NULL: only count */
	size_t room;
	size_t bytes; /* wanted so far, also beyond the room */
};

void triggers_write(struct triggers_writer *writer, const void *bytes, size_t count);
void triggers_write_u16(struct triggers_writer *writer, uint16_t value);
void triggers_write_u32(struct triggers_writer *writer, uint32_t value);
void triggers_write_u64(struct triggers_writer *writer, uint64_t value);
void triggers_write_i64(struct triggers_writer *writer, int64_t value);
void triggers_write_float(struct triggers_writer *writer, float value);
void triggers_write_double(struct triggers_writer *writer, double value);
/* A terminated text of less than `room` bytes: length and bytes. */
void triggers_write_text(struct triggers_writer *writer, const char *text);

struct triggers_cursor {
	const uint8_t *at;
	size_t left;
	int failed;
};

void triggers_read(struct triggers_cursor *cursor, void *out, size_t count);
uint16_t triggers_read_u16(struct triggers_cursor *cursor);
uint32_t triggers_read_u32(struct triggers_cursor *cursor);
uint64_t triggers_read_u64(struct triggers_cursor *cursor);
int64_t triggers_read_i64(struct triggers_cursor *cursor);
/* A time: INT64_MIN = never, else within TRIGGERS_NS_MAX, so that differences of two cannot overflow. */
#define TRIGGERS_NS_MAX (INT64_C(1) << 61)
int64_t triggers_read_ns(struct triggers_cursor *cursor);
/* The same of what always has a time: never fails the cursor, too. */
int64_t triggers_read_time(struct triggers_cursor *cursor);
/* Finite, else the cursor fails. */
float triggers_read_float(struct triggers_cursor *cursor);
double triggers_read_double(struct triggers_cursor *cursor);
/* Fails if the text does not fit `room` with its end. */
void triggers_read_text(struct triggers_cursor *cursor, char *text, size_t room);

uint32_t triggers_crc32(const void *bytes, size_t count);

#endif
