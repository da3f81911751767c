/* SPDX-License-Identifier: Apache-2.0 */
#include "xplane_value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <reducer/marks.h>
#include <reducer/xplane.h>

#include "json.h"
#include "text.h"

static void add_positional(struct buffer *out, const char *digits, size_t n, int exponent)
{
	if (exponent < 0) {
		buffer_add_literal(out, "0.");
		for (int i = exponent + 1; i < 0; i++)
			buffer_add_byte(out, '0');
		buffer_add(out, digits, n);
		return;
	}
	size_t whole = (size_t)exponent + 1;
	for (size_t i = 0; i < whole; i++)
		buffer_add_byte(out, i < n ? digits[i] : '0');
	buffer_add_byte(out, '.');
	if (n > whole)
		buffer_add(out, digits + whole, n - whole);
	else
		buffer_add_byte(out, '0');
}

void xplane_add_double(struct buffer *out, double value)
{
	char text[64], digits[17];
	size_t n = 0;
	if (!isfinite(value)) {
		buffer_add_literal(out, isnan(value) ? "\"NaN\""
					: value > 0  ? "\"Infinity\""
						     : "\"-Infinity\"");
		return;
	}
	/* Only the digits and the exponent are taken: the point is the locale's. */
	snprintf(text, sizeof(text), "%.16e", value);
	const char *p = text;
	for (; *p && *p != 'e'; p++)
		if (*p >= '0' && *p <= '9' && n < sizeof(digits))
			digits[n++] = *p;
	int exponent = *p == 'e' ? (int)strtol(p + 1, NULL, 10) : 0;
	while (n > 1 && digits[n - 1] == '0')
		n--;
	if (signbit(value))
		buffer_add_byte(out, '-');
	if (exponent >= -5 && exponent <= 16) {
		add_positional(out, digits, n, exponent);
		return;
	}
	buffer_add_byte(out, digits[0]);
	if (n > 1) {
		buffer_add_byte(out, '.');
		buffer_add(out, digits + 1, n - 1);
	}
	buffer_add_byte(out, 'e');
	xplane_add_i64(out, exponent);
}

static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void xplane_add_base64(struct buffer *out, struct reducer_text bytes)
{
	const uint8_t *in = (const uint8_t *)bytes.data;
	char *to = buffer_room(out, (bytes.bytes + 2) / 3 * 4);
	if (!to)
		return;
	for (size_t i = 0; i < bytes.bytes; i += 3) {
		size_t left = bytes.bytes - i;
		unsigned word = (unsigned)in[i] << 16 | (left > 1 ? (unsigned)in[i + 1] << 8 : 0u) |
				(left > 2 ? in[i + 2] : 0u);
		*to++ = base64_digits[word >> 18];
		*to++ = base64_digits[word >> 12 & 63];
		*to++ = left > 1 ? base64_digits[word >> 6 & 63] : '=';
		*to++ = left > 2 ? base64_digits[word & 63] : '=';
	}
	out->bytes += (bytes.bytes + 2) / 3 * 4;
}

bool xplane_decode_base64(struct buffer *out, struct reducer_text text)
{
	size_t before = out->bytes, padding = 0;
	if (text.bytes % 4)
		return false;
	while (padding < 2 && padding < text.bytes && text.data[text.bytes - 1 - padding] == '=')
		padding++;
	unsigned word = 0;
	for (size_t i = 0; i < text.bytes; i++) {
		bool pad = i >= text.bytes - padding;
		const char *digit = pad ? base64_digits : memchr(base64_digits, text.data[i], 64);
		if (!digit) {
			out->bytes = before;
			return false;
		}
		word = word << 6 | (unsigned)(digit - base64_digits);
		if (i % 4 == 3) {
			const char three[3] = {(char)(word >> 16), (char)(word >> 8), (char)word};
			buffer_add(out, three, i + 1 == text.bytes ? 3 - padding : 3);
			word = 0;
		}
	}
	return true;
}

void xplane_said_clear(struct xplane_said *said)
{
	buffer_clear(&said->args);
	memset(said->own, 0, sizeof(said->own));
	said->merged = said->has_number = false;
	said->first_number = 0;
}

static void add_key(struct xplane_said *said, const char *prefix, struct reducer_text name)
{
	struct buffer *out = &said->args;
	buffer_add_byte(out, out->bytes ? ',' : '{');
	size_t at = out->bytes;
	if (*prefix) {
		/* The prefixes need no escapes: the name's opening quote moves before them. */
		buffer_add_literal(out, prefix);
		size_t quote = out->bytes;
		json_quote(out, name);
		if (!out->failed) {
			memmove(out->data + at + 1, out->data + at, quote - at);
			out->data[at] = '"';
		}
	} else {
		json_quote(out, name);
	}
	buffer_add_byte(out, ':');
}

static struct reducer_text literal_text(const char *literal)
{
	return (struct reducer_text){literal, strlen(literal)};
}

void xplane_say_text(struct xplane_said *said, const char *key, struct reducer_text text)
{
	add_key(said, "", literal_text(key));
	json_quote(&said->args, text);
}

void xplane_say_i64(struct xplane_said *said, const char *key, int64_t value)
{
	add_key(said, "", literal_text(key));
	xplane_add_i64(&said->args, value);
}

static void add_number_name(struct buffer *out, int64_t id)
{
	buffer_add_byte(out, '#');
	xplane_add_i64(out, id);
}

static void add_missing(struct xplane_said *said, const char *prefix, int64_t id)
{
	buffer_add_byte(&said->args, said->args.bytes ? ',' : '{');
	buffer_add_byte(&said->args, '"');
	buffer_add_literal(&said->args, prefix);
	add_number_name(&said->args, id);
	buffer_add_literal(&said->args, "\":");
}

static void add_bytes(struct buffer *out, const char *opening, struct reducer_text bytes)
{
	buffer_add_literal(out, opening);
	xplane_add_base64(out, bytes);
	buffer_add_literal(out, "\"}");
}

static void add_ref(struct buffer *out, const struct xplane_map *stats, uint64_t id)
{
	const struct xplane_entry *entry = xplane_map_find(stats, (int64_t)id);
	if (entry) {
		json_quote(out, xplane_entry_text(entry));
		return;
	}
	buffer_add_byte(out, '"');
	add_number_name(out, (int64_t)id);
	buffer_add_byte(out, '"');
}

static double number_of(const struct xplane_stat *stat)
{
	double value;
	if (stat->kind == XSTAT_DOUBLE) {
		memcpy(&value, &stat->number, sizeof(value));
		return value;
	}
	return stat->kind == XSTAT_INT64 ? (double)(int64_t)stat->number : (double)stat->number;
}

static void add_value(struct buffer *out, const struct xplane_stat *stat, const struct xplane_map *stats,
		      bool json)
{
	switch (stat->kind) {
	case XSTAT_DOUBLE:
		xplane_add_double(out, number_of(stat));
		break;
	case XSTAT_UINT64:
		buffer_add_u64(out, stat->number);
		break;
	case XSTAT_INT64:
		xplane_add_i64(out, (int64_t)stat->number);
		break;
	case XSTAT_STR:
		if (json && json_valid(stat->text))
			buffer_add_text(out, stat->text);
		else
			json_quote(out, stat->text);
		break;
	case XSTAT_BYTES:
		add_bytes(out, "{\"base64\":\"", stat->text);
		break;
	case XSTAT_REF:
		add_ref(out, stats, stat->number);
		break;
	case XSTAT_GZIP:
		add_bytes(out, "{\"gzip_base64\":\"", stat->text);
		break;
	default:
		buffer_add_literal(out, "null");
		break;
	}
}

/* A value may grow to six times its length by escapes; what it becomes is looked at afterwards. */
static bool too_long(const struct xplane_said *said, const struct xplane_stat *stat)
{
	return stat->text.bytes > REDUCER_XPLANE_ARGS_MAX || said->args.bytes > REDUCER_XPLANE_ARGS_MAX ||
	       stat->text.bytes * 2 > REDUCER_XPLANE_ARGS_MAX - said->args.bytes;
}

static void say_one(struct xplane_said *said, const struct xplane_space *space,
		    const struct xplane_stat *stat, const struct xplane_entry *entry,
		    const struct xplane_map *stats, const char *prefix)
{
	size_t before = said->args.bytes;
	if (entry)
		add_key(said, prefix, xplane_entry_text(entry));
	else
		add_missing(said, prefix, stat->metadata_id);
	size_t key_end = said->args.bytes;
	bool left_out = too_long(said, stat);
	if (!left_out)
		add_value(&said->args, stat, stats, entry && entry->json);
	if (!left_out && said->args.bytes > REDUCER_XPLANE_ARGS_MAX && !said->args.failed) {
		left_out = true;
		said->args.bytes = key_end;
	}
	if (left_out) {
		xplane_problem(space, (const uint8_t *)stat->text.data, stat->text.bytes,
			       "the value of %zu bytes of a stat is left out", stat->text.bytes);
		if (before > REDUCER_XPLANE_ARGS_MAX && !said->args.failed) {
			said->args.bytes = before;
			return;
		}
		buffer_add_literal(&said->args, "{\"bytes\":");
		buffer_add_u64(&said->args, stat->text.bytes);
		buffer_add_byte(&said->args, '}');
	}
	if (!said->has_number && stat->kind >= XSTAT_DOUBLE && stat->kind <= XSTAT_INT64) {
		said->has_number = true;
		said->first_number = number_of(stat);
	}
}

/* A stat of our own that is no arg. */
static void take_own(struct xplane_said *said, const struct xplane_stat *stat,
		     const struct xplane_entry *entry, const struct xplane_map *stats)
{
	said->own[entry->own] = stat->text;
	if (stat->kind == XSTAT_REF) {
		const struct xplane_entry *named = xplane_map_find(stats, (int64_t)stat->number);
		if (named)
			said->own[entry->own] = xplane_entry_text(named);
	}
}

/* driverec.events has to come before all others. */
static void say_count_of_merged(struct xplane_said *said, const struct xplane_space *space,
				struct proto message, uint32_t number, const struct xplane_map *stats)
{
	struct proto_field field;
	struct xplane_stat stat;
	while (!said->merged && proto_next(&message, &field) > 0) {
		if (field.number != number || field.wire != PROTO_BYTES ||
		    xplane_parse_stat(field.content, &stat) < 0)
			continue;
		const struct xplane_entry *entry = xplane_map_find(stats, stat.metadata_id);
		if (!entry || entry->own != XPLANE_OWN_EVENTS)
			continue;
		said->merged = true;
		say_one(said, space, &stat, entry, stats, "");
	}
}

void xplane_say_stats(struct xplane_said *said, const struct xplane_space *space, struct proto message,
		      uint32_t number, const struct xplane_map *stats, const char *prefix)
{
	struct proto_field field;
	struct xplane_stat stat;
	if (stats->merges && !*prefix)
		say_count_of_merged(said, space, message, number, stats);
	while (proto_next(&message, &field) > 0) {
		if (field.number != number || field.wire != PROTO_BYTES)
			continue;
		if (xplane_parse_stat(field.content, &stat) < 0) {
			xplane_problem(space, field.from, proto_bytes(field.content), "a damaged stat");
			continue;
		}
		const struct xplane_entry *entry = xplane_map_find(stats, stat.metadata_id);
		if (!entry || entry->own == XPLANE_NOT_OWN || *prefix)
			say_one(said, space, &stat, entry, stats, prefix);
		else if (entry->own != XPLANE_OWN_EVENTS)
			take_own(said, &stat, entry, stats);
	}
}

static void say_child(struct xplane_said *said, uint64_t id, bool *any)
{
	if (said->args.bytes > REDUCER_XPLANE_ARGS_MAX)
		return;
	if (!*any)
		add_key(said, "", literal_text(XPLANE_META_CHILDREN));
	buffer_add_byte(&said->args, *any ? ',' : '[');
	xplane_add_i64(&said->args, (int64_t)id);
	*any = true;
}

/* Packed, as proto3 writes them, or one by one. */
static void say_children(struct xplane_said *said, struct proto metadata)
{
	struct proto_field field;
	uint64_t id;
	bool any = false;
	while (proto_next(&metadata, &field) > 0) {
		if (field.number != XEVENT_METADATA_CHILD)
			continue;
		if (field.wire == PROTO_VARINT)
			say_child(said, field.value, &any);
		else if (field.wire == PROTO_BYTES)
			while (proto_take_varint(&field.content, &id) == 0)
				say_child(said, id, &any);
	}
	if (any)
		buffer_add_byte(&said->args, ']');
}

void xplane_say_metadata(struct xplane_said *said, const struct xplane_space *space, struct proto metadata,
			 const struct xplane_map *stats)
{
	struct reducer_text display_name = xplane_text_field(metadata, XEVENT_METADATA_DISPLAY_NAME);
	struct proto_field field;
	if (display_name.bytes)
		xplane_say_text(said, XPLANE_META_DISPLAY_NAME, display_name);
	for (struct proto rest = metadata; proto_next(&rest, &field) > 0;) {
		if (field.number != XEVENT_METADATA_BYTES || field.wire != PROTO_BYTES)
			continue;
		struct xplane_stat stat = {.kind = XSTAT_BYTES, .text = proto_text(field.content)};
		add_key(said, "", literal_text(XPLANE_META_BYTES));
		if (too_long(said, &stat))
			buffer_add_literal(&said->args, "null");
		else
			add_value(&said->args, &stat, stats, false);
	}
	say_children(said, metadata);
	xplane_say_stats(said, space, metadata, XEVENT_METADATA_STATS, stats, XPLANE_META_STAT);
}

struct reducer_text xplane_said_args(struct xplane_said *said)
{
	if (said->args.bytes)
		buffer_add_byte(&said->args, '}');
	return (struct reducer_text){said->args.data, said->args.bytes};
}
