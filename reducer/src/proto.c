/* SPDX-License-Identifier: Apache-2.0 */
#include "proto.h"

#include <errno.h>
#include <string.h>

struct proto proto_of(struct reducer_text bytes)
{
	const uint8_t *from = (const uint8_t *)bytes.data;
	return (struct proto){from, bytes.bytes ? from + bytes.bytes : from};
}

struct reducer_text proto_text(struct proto message)
{
	return (struct reducer_text){(const char *)message.at, proto_bytes(message)};
}

size_t proto_bytes(struct proto message)
{
	return message.at == message.end ? 0 : (size_t)(message.end - message.at);
}

/* The tenth byte may only hold the last bit of 64. */
static int take_long_varint(struct proto *cursor, uint64_t *ret_value)
{
	uint64_t value = 0;
	size_t left = proto_bytes(*cursor);
	for (unsigned i = 0; i < PROTO_VARINT_BYTES_MAX && i < left; i++) {
		uint8_t byte = cursor->at[i];
		if (i == PROTO_VARINT_BYTES_MAX - 1 && byte > 1)
			return -EBADMSG;
		value |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (byte < 0x80) {
			cursor->at += i + 1;
			*ret_value = value;
			return 0;
		}
	}
	return -EBADMSG;
}

/* Nearly all are of one byte. */
static inline int take_varint(struct proto *cursor, uint64_t *ret_value)
{
	if (cursor->at == cursor->end || *cursor->at >= 0x80)
		return take_long_varint(cursor, ret_value);
	*ret_value = *cursor->at++;
	return 0;
}

int proto_take_varint(struct proto *cursor, uint64_t *ret_value)
{
	return take_varint(cursor, ret_value);
}

static int take_fixed(struct proto *cursor, size_t bytes, uint64_t *ret_value)
{
	uint64_t value = 0;
	if (proto_bytes(*cursor) < bytes)
		return -EBADMSG;
	for (size_t i = 0; i < bytes; i++)
		value |= (uint64_t)cursor->at[i] << (8 * i);
	cursor->at += bytes;
	*ret_value = value;
	return 0;
}

static int take_tag(struct proto *cursor, struct proto_field *field)
{
	uint64_t tag;
	field->from = cursor->at;
	if (take_varint(cursor, &tag) < 0 || tag >> 3 == 0 || tag >> 3 > PROTO_NUMBER_MAX)
		return -EBADMSG;
	field->number = (uint32_t)(tag >> 3);
	field->wire = (enum proto_wire)(tag & 7);
	return 0;
}

static int take_content(struct proto *cursor, struct proto_field *field)
{
	uint64_t bytes;
	if (take_varint(cursor, &bytes) < 0 || bytes > proto_bytes(*cursor))
		return -EBADMSG;
	field->content = (struct proto){cursor->at, cursor->at + bytes};
	cursor->at += bytes;
	return 0;
}

int proto_next(struct proto *message, struct proto_field *ret_field)
{
	struct proto cursor = *message;
	struct proto_field field = {0};
	int result;
	if (proto_bytes(cursor) == 0)
		return 0;
	if (take_tag(&cursor, &field) < 0)
		return -EBADMSG;
	switch (field.wire) {
	case PROTO_VARINT:
		result = take_varint(&cursor, &field.value);
		break;
	case PROTO_FIXED64:
		result = take_fixed(&cursor, 8, &field.value);
		break;
	case PROTO_FIXED32:
		result = take_fixed(&cursor, 4, &field.value);
		break;
	case PROTO_BYTES:
		result = take_content(&cursor, &field);
		break;
	default:
		result = -EBADMSG;
		break;
	}
	if (result < 0)
		return result;
	*message = cursor;
	*ret_field = field;
	return 1;
}

int proto_next_cut(struct proto *message, struct proto_field *ret_field)
{
	struct proto cursor = *message;
	struct proto_field field = {0};
	uint64_t bytes;
	if (proto_bytes(cursor) == 0 || take_tag(&cursor, &field) < 0 || field.wire != PROTO_BYTES ||
	    take_varint(&cursor, &bytes) < 0 || bytes <= proto_bytes(cursor))
		return 0;
	field.content = cursor;
	message->at = message->end;
	*ret_field = field;
	return 1;
}

static unsigned put_varint(uint8_t out[PROTO_VARINT_BYTES_MAX], uint64_t value)
{
	unsigned n = 0;
	for (; value >= 0x80; value >>= 7)
		out[n++] = (uint8_t)(value | 0x80);
	out[n++] = (uint8_t)value;
	return n;
}

size_t proto_varint_bytes(uint64_t value)
{
	size_t n = 1;
	for (; value >= 0x80; value >>= 7)
		n++;
	return n;
}

void proto_add_varint(struct buffer *out, uint64_t value)
{
	uint8_t bytes[PROTO_VARINT_BYTES_MAX];
	unsigned n = put_varint(bytes, value);
	buffer_add(out, (const char *)bytes, n);
}

void proto_add_tag(struct buffer *out, uint32_t number, enum proto_wire wire)
{
	proto_add_varint(out, (uint64_t)number << 3 | wire);
}

void proto_add_u64(struct buffer *out, uint32_t number, uint64_t value)
{
	proto_add_tag(out, number, PROTO_VARINT);
	proto_add_varint(out, value);
}

void proto_add_fixed64(struct buffer *out, uint32_t number, uint64_t value)
{
	uint8_t bytes[8];
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(value >> (8 * i));
	proto_add_tag(out, number, PROTO_FIXED64);
	buffer_add(out, (const char *)bytes, sizeof(bytes));
}

void proto_add_double(struct buffer *out, uint32_t number, double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	proto_add_fixed64(out, number, bits);
}

void proto_add_bytes(struct buffer *out, uint32_t number, struct reducer_text bytes)
{
	proto_add_tag(out, number, PROTO_BYTES);
	proto_add_varint(out, bytes.bytes);
	buffer_add_text(out, bytes);
}

/* One byte is kept for the length, as most messages are short; proto_end() makes more room where needed. */
size_t proto_begin(struct buffer *out, uint32_t number)
{
	proto_add_tag(out, number, PROTO_BYTES);
	buffer_add_byte(out, 0);
	return out->bytes;
}

void proto_end(struct buffer *out, size_t begun)
{
	uint8_t length[PROTO_VARINT_BYTES_MAX];
	if (out->failed)
		return;
	size_t bytes = out->bytes - begun;
	unsigned n = put_varint(length, bytes);
	if (n > 1) {
		if (!buffer_room(out, n - 1))
			return;
		memmove(out->data + begun + n - 1, out->data + begun, bytes);
		out->bytes += n - 1;
	}
	memcpy(out->data + begun - 1, length, n);
}
