/* SPDX-License-Identifier: Apache-2.0 */
#include "xplane_stats.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include <reducer/marks.h>

#include "decimal.h"
#include "json.h"
#include "text.h"
#include "xplane_parse.h"
#include "xplane_value.h"

static struct reducer_text text_of(const struct buffer *buffer)
{
	return (struct reducer_text){buffer->data, buffer->bytes};
}

static struct reducer_text literal_text(const char *literal)
{
	return (struct reducer_text){literal, strlen(literal)};
}

void xplane_stats_clear(struct xplane_stats *stats, struct xplane_names *names, uint32_t number)
{
	stats->names = names;
	stats->number = number;
	stats->plain_keys = number != XEVENT_STATS;
	buffer_clear(&stats->stats);
	buffer_clear(&stats->rest);
}

void xplane_stats_free(struct xplane_stats *stats)
{
	buffer_free(&stats->stats);
	buffer_free(&stats->rest);
	buffer_free(&stats->key);
	buffer_free(&stats->text);
}

int xplane_stats_failed(const struct xplane_stats *stats)
{
	if (stats->stats.failed || stats->rest.failed || stats->key.failed || stats->text.failed)
		return -ENOMEM;
	return stats->names && stats->names->fields.failed ? -ENOMEM : 0;
}

unsigned xplane_number_of(struct reducer_text json, uint64_t *ret_bits)
{
	int64_t integer;
	double real;
	if (json.bytes == 0 || (json.data[0] != '-' && (json.data[0] < '0' || json.data[0] > '9')))
		return XSTAT_NONE;
	if (text_is(json, "-9223372036854775808")) {
		*ret_bits = (uint64_t)INT64_MIN;
		return XSTAT_INT64;
	}
	if (!text_is(json, "-0") && decimal_i64(json, &integer)) {
		*ret_bits = (uint64_t)integer;
		return XSTAT_INT64;
	}
	if (decimal_u64(json, ret_bits))
		return XSTAT_UINT64;
	/* An integer beyond 64 bits is no double. */
	bool whole = !memchr(json.data, '.', json.bytes) && !memchr(json.data, 'e', json.bytes) &&
		     !memchr(json.data, 'E', json.bytes) && !text_is(json, "-0");
	if (!whole && decimal_double(json, &real) && isfinite(real)) {
		memcpy(ret_bits, &real, sizeof(real));
		return XSTAT_DOUBLE;
	}
	return XSTAT_NONE;
}

struct reducer_text xplane_member_of(struct reducer_text object, const char *key)
{
	struct reducer_text name, value, found = {NULL, 0};
	size_t bytes = strlen(key);
	if (object.bytes < 2 || object.data[0] != '{')
		return found;
	struct reducer_text rest = {object.data + 1, object.bytes - 2};
	while (json_next_member(&rest, &name, &value))
		if (name.bytes == bytes + 2 && memcmp(name.data + 1, key, bytes) == 0)
			found = value;
	return found;
}

bool xplane_string_of(struct buffer *out, struct reducer_text json, struct reducer_text *ret_text)
{
	if (json.bytes < 2 || json.data[0] != '"')
		return false;
	buffer_clear(out);
	json_unescape(out, (struct reducer_text){json.data + 1, json.bytes - 2});
	if (out->failed)
		return false;
	*ret_text = text_of(out);
	return true;
}

/* The stat's message up to its value. */
static size_t begin_stat(struct buffer *out, uint32_t number, int64_t id)
{
	size_t begun = proto_begin(out, number);
	proto_add_u64(out, XSTAT_METADATA_ID, (uint64_t)id);
	return begun;
}

static void add_string(struct xplane_stats *stats, struct buffer *out, uint32_t number, int64_t id,
		       struct reducer_text text)
{
	int64_t ref = xplane_names_ref(stats->names, text);
	size_t begun = begin_stat(out, number, id);
	if (ref)
		proto_add_u64(out, XSTAT_REF, (uint64_t)ref);
	else
		proto_add_bytes(out, XSTAT_STR, text);
	proto_end(out, begun);
}

/* {"base64":"…"} and {"gzip_base64":"…"}, and nothing beside it. */
static unsigned bytes_of(struct xplane_stats *stats, struct reducer_text json)
{
	struct reducer_text rest = {json.data + 1, json.bytes - 2}, key, value, further;
	if (json.bytes < 4 || json.data[0] != '{' || !json_next_member(&rest, &key, &value) ||
	    value.data[0] != '"' || json_next_member(&rest, &key, &further))
		return XSTAT_NONE;
	rest = (struct reducer_text){json.data + 1, json.bytes - 2};
	json_next_member(&rest, &key, &value);
	unsigned kind = text_is(key, "\"base64\"")        ? XSTAT_BYTES
			: text_is(key, "\"gzip_base64\"") ? XSTAT_GZIP
							  : XSTAT_NONE;
	buffer_clear(&stats->text);
	if (kind &&
	    xplane_decode_base64(&stats->text, (struct reducer_text){value.data + 1, value.bytes - 2}))
		return kind;
	return XSTAT_NONE;
}

static void add_json(struct xplane_stats *stats, struct buffer *out, uint32_t number,
		     struct reducer_text name, struct reducer_text json)
{
	size_t begun = begin_stat(out, number, xplane_names_stat(stats->names, name, true));
	if (json_valid(json)) {
		proto_add_bytes(out, XSTAT_STR, json);
	} else {
		buffer_clear(&stats->text);
		json_repair(&stats->text, json);
		proto_add_bytes(out, XSTAT_STR, text_of(&stats->text));
	}
	proto_end(out, begun);
}

static void add_value(struct xplane_stats *stats, struct buffer *out, uint32_t number,
		      struct reducer_text name, struct reducer_text json)
{
	struct reducer_text text;
	uint64_t bits = 0;
	unsigned kind = xplane_number_of(json, &bits);
	if (xplane_string_of(&stats->text, json, &text)) {
		add_string(stats, out, number, xplane_names_stat(stats->names, name, false), text);
		return;
	}
	if (!kind)
		kind = bytes_of(stats, json);
	if (!kind && !text_is(json, "null")) {
		add_json(stats, out, number, name, json);
		return;
	}
	size_t begun = begin_stat(out, number, xplane_names_stat(stats->names, name, false));
	if (kind == XSTAT_DOUBLE)
		proto_add_fixed64(out, kind, bits);
	else if (kind == XSTAT_INT64 || kind == XSTAT_UINT64)
		proto_add_u64(out, kind, bits);
	else if (kind)
		proto_add_bytes(out, kind, text_of(&stats->text));
	proto_end(out, begun);
}

static void add_children(struct xplane_stats *stats, struct reducer_text json)
{
	const char *p = json.data + 1, *end = json.data + json.bytes - 1;
	size_t begun = proto_begin(&stats->rest, XEVENT_METADATA_CHILD);
	while (p < end) {
		int64_t id;
		const char *comma = memchr(p, ',', (size_t)(end - p));
		struct reducer_text one = {p, (size_t)((comma ? comma : end) - p)};
		if (decimal_i64(one, &id))
			proto_add_varint(&stats->rest, (uint64_t)id);
		p = comma ? comma + 1 : end;
	}
	proto_end(&stats->rest, begun);
}

/* What stood in the event's metadata; false where the key is none of it. */
static bool add_metadata(struct xplane_stats *stats, struct reducer_text key, struct reducer_text json)
{
	static const size_t prefix = sizeof(XPLANE_META_STAT) - 1;
	struct reducer_text text;
	if (text_is(key, XPLANE_META_DISPLAY_NAME) && xplane_string_of(&stats->text, json, &text)) {
		proto_add_bytes(&stats->rest, XEVENT_METADATA_DISPLAY_NAME, text);
		return true;
	}
	if (text_is(key, XPLANE_META_BYTES) && bytes_of(stats, json) == XSTAT_BYTES) {
		proto_add_bytes(&stats->rest, XEVENT_METADATA_BYTES, text_of(&stats->text));
		return true;
	}
	if (text_is(key, XPLANE_META_CHILDREN) && json.bytes > 2 && json.data[0] == '[') {
		add_children(stats, json);
		return true;
	}
	if (key.bytes < prefix || memcmp(key.data, XPLANE_META_STAT, prefix) != 0)
		return false;
	key.data += prefix;
	key.bytes -= prefix;
	add_value(stats, &stats->rest, XEVENT_METADATA_STATS, key, json);
	return true;
}

void xplane_stats_add_args(struct xplane_stats *stats, struct reducer_text args)
{
	struct reducer_text key, value, name;
	if (!args.bytes)
		return;
	if (args.data[0] != '{' || args.bytes < 2) {
		add_json(stats, &stats->stats, stats->number, literal_text(xplane_own_name(XPLANE_OWN_ARGS)),
			 args);
		return;
	}
	struct reducer_text rest = {args.data + 1, args.bytes - 2};
	while (json_next_member(&rest, &key, &value)) {
		if (!xplane_string_of(&stats->key, key, &name))
			continue;
		if (stats->plain_keys || !add_metadata(stats, name, value))
			add_value(stats, &stats->stats, stats->number, name, value);
	}
}

void xplane_stats_add_text(struct xplane_stats *stats, const char *name, struct reducer_text text)
{
	int64_t id = xplane_names_stat(stats->names, literal_text(name), false);
	size_t begun = begin_stat(&stats->stats, stats->number, id);
	proto_add_bytes(&stats->stats, XSTAT_STR, text);
	proto_end(&stats->stats, begun);
}

void xplane_stats_add_u64(struct xplane_stats *stats, const char *name, uint64_t value)
{
	int64_t id = xplane_names_stat(stats->names, literal_text(name), false);
	size_t begun = begin_stat(&stats->stats, stats->number, id);
	proto_add_u64(&stats->stats, XSTAT_UINT64, value);
	proto_end(&stats->stats, begun);
}

void xplane_stats_add_event(struct xplane_stats *stats, const struct reducer_event *event)
{
	if (event->category.bytes && !text_is(event->category, REDUCER_MARK_MERGED))
		add_string(stats, &stats->stats, stats->number,
			   xplane_names_stat(stats->names, literal_text(xplane_own_name(XPLANE_OWN_CATEGORY)),
					     false),
			   event->category);
	if (event->has_id) {
		buffer_clear(&stats->text);
		buffer_add_u64(&stats->text, event->id);
		xplane_stats_add_text(stats, xplane_own_name(XPLANE_OWN_ID), text_of(&stats->text));
	}
	if (event->extra.bytes)
		xplane_stats_add_text(stats, xplane_own_name(XPLANE_OWN_EXTRA), event->extra);
}
