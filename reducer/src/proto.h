/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protobuf wire format: one bounds-checked cursor for reading, and what is needed to write messages into
 * a buffer.
 *
 * Reading: all bounds are checked by subtraction against the cursor's end; a field is handed out whole or not
 * at all. Groups (wire types 3 and 4) are in no format that we read and count as damage.
 */
#ifndef REDUCER_PROTO_H
#define REDUCER_PROTO_H

#include <stddef.h>
#include <stdint.h>

#include <reducer/event.h>

#include "buffer.h"

enum proto_wire { PROTO_VARINT = 0, PROTO_FIXED64 = 1, PROTO_BYTES = 2, PROTO_FIXED32 = 5 };

enum { PROTO_VARINT_BYTES_MAX = 10, PROTO_NUMBER_MAX = (1 << 29) - 1 };

/* What is left of a message. */
struct proto {
	const uint8_t *at;
	const uint8_t *end;
};

/* One field, the tag at `from`. `value` holds the number of all wire types but PROTO_BYTES, whose content is
 * `content`; both point into the message. */
struct proto_field {
	uint32_t number;
	enum proto_wire wire;
	uint64_t value;
	struct proto content;
	const uint8_t *from;
};

struct proto proto_of(struct reducer_text bytes);
struct reducer_text proto_text(struct proto message);
size_t proto_bytes(struct proto message);

/* Takes the next field: 1, or 0 at the end, or -EBADMSG where no whole field stands; then the cursor and
 * *ret_field stay as they are. */
int proto_next(struct proto *message, struct proto_field *ret_field);

/* The tag and length of a field of PROTO_BYTES whose content is cut off by the end; 1 where there is one, and
 * *ret_field then has the content that is there. For files that end early. */
int proto_next_cut(struct proto *message, struct proto_field *ret_field);

/* A bare varint, as in packed fields: 0, or -EBADMSG. */
int proto_take_varint(struct proto *cursor, uint64_t *ret_value);

/* Writing. Nothing fails by itself: see buffer->failed at the end. */
size_t proto_varint_bytes(uint64_t value);
void proto_add_varint(struct buffer *out, uint64_t value);
void proto_add_tag(struct buffer *out, uint32_t number, enum proto_wire wire);
void proto_add_u64(struct buffer *out, uint32_t number, uint64_t value); /* tag and varint */
void proto_add_fixed64(struct buffer *out, uint32_t number, uint64_t value);
void proto_add_double(struct buffer *out, uint32_t number, double value);
void proto_add_bytes(struct buffer *out, uint32_t number, struct reducer_text bytes);

/* A nested message: what is added between the two is its content. They nest. */
size_t proto_begin(struct buffer *out, uint32_t number);
void proto_end(struct buffer *out, size_t begun);

#endif
