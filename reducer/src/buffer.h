/* SPDX-License-Identifier: Apache-2.0 */
/* A growing run of bytes. A failed append is remembered, so a chain of appends is checked once at its end. */
#ifndef REDUCER_BUFFER_H
#define REDUCER_BUFFER_H

#include <stddef.h>

#include <reducer/event.h>

struct buffer {
	char *data;
	size_t bytes;
	size_t room;
	int failed; /* 0 or -ENOMEM */
};

/* Makes room for `more` bytes and returns where they go, or NULL. */
char *buffer_room(struct buffer *buffer, size_t more);
void buffer_add(struct buffer *buffer, const char *data, size_t bytes);
void buffer_add_text(struct buffer *buffer, struct reducer_text text);
void buffer_add_literal(struct buffer *buffer, const char *literal);
void buffer_add_byte(struct buffer *buffer, char byte);
/* Decimal digits. */
void buffer_add_u64(struct buffer *buffer, uint64_t value);
/* Decimal microseconds of ns and ps less base_ns, exactly: 3 decimals, 6 where there are picoseconds. */
void buffer_add_us(struct buffer *buffer, int64_t ns, uint16_t ps, int64_t base_ns);
void buffer_clear(struct buffer *buffer);
void buffer_free(struct buffer *buffer);

#endif
