/* SPDX-License-Identifier: Apache-2.0 */
#include <reducer/drec_codec.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "buffer.h"
#include "decimal.h"
#include "drec_members.h"
#include "json.h"
#include "text.h"

enum { SIGHTINGS = 8192, NAME_BYTES_MAX = 4096, CATEGORY_BYTES_MAX = 255, MEMBER_BYTES_MAX = 400 << 10 };

struct reducer_ring_sink {
	drec *rec;
	struct reducer_ring_sink_options options;
	struct reducer_ring_sink_stats stats;
	struct buffer extra;
	struct buffer member;
	uint64_t seen[SIGHTINGS]; /* hashes of names seen lately, each at its place */
};

/* Names that change with every event must not fill the dictionary: only the second sighting interns. */
static bool seen_before(struct reducer_ring_sink *sink, struct reducer_text name)
{
	uint64_t hash = 0xcbf29ce484222325u;
	for (size_t i = 0; i < name.bytes; i++)
		hash = (hash ^ (unsigned char)name.data[i]) * 0x100000001b3u;
	hash ^= hash >> 29;
	uint64_t *place = &sink->seen[hash % SIGHTINGS];
	if (*place == hash)
		return true;
	*place = hash;
	return false;
}

static void add_extra(struct reducer_ring_sink *sink, const char *key, struct reducer_text value)
{
	if (sink->extra.bytes)
		buffer_add_byte(&sink->extra, ',');
	buffer_add_literal(&sink->extra, key);
	buffer_add_text(&sink->extra, value);
}

static void add_extra_text(struct reducer_ring_sink *sink, const char *key, struct reducer_text raw,
			   struct reducer_text text)
{
	add_extra(sink, key, raw);
	if (!raw.bytes)
		json_quote(&sink->extra, text);
}

static void put_name(struct reducer_ring_sink *sink, const struct reducer_event *event, struct drec_event *out)
{
	if (!event->name.bytes && !event->name_raw.bytes)
		return;
	if (event->name.bytes && event->name.bytes <= NAME_BYTES_MAX && seen_before(sink, event->name))
		out->name = drec_name_n(sink->rec, event->name.data, event->name.bytes);
	if (out->name)
		return;
	out->flags |= DREC_FLAG_NAME;
	out->name_text = event->name.data;
	out->name_bytes = (uint32_t)event->name.bytes;
}

static void put_category(struct reducer_ring_sink *sink, const struct reducer_event *event, struct drec_event *out)
{
	struct reducer_text category = event->category;
	char text[CATEGORY_BYTES_MAX + 1];
	if (!category.bytes && !event->category_raw.bytes)
		return;
	if (category.bytes && category.bytes <= CATEGORY_BYTES_MAX && !memchr(category.data, 0, category.bytes)) {
		memcpy(text, category.data, category.bytes);
		text[category.bytes] = 0;
		out->category = drec_category(sink->rec, text);
	}
	if (!out->category)
		add_extra_text(sink, "\"cat\":", event->category_raw, category);
}

static void put_track(struct reducer_ring_sink *sink, const struct reducer_event *event, struct drec_event *out)
{
	const char *group = event->group.bytes ? event->group.data : "";
	const char *track = event->track.bytes ? event->track.data : "";
	if (event->group.bytes + event->track.bytes <= NAME_BYTES_MAX / 2) {
		out->track = drec_track_n(sink->rec, DREC_TRACK_SOURCE, group, event->group.bytes, track,
					  event->track.bytes);
		if (out->track)
			return;
	}
	/* No room for the track: the event still says where it was. */
	out->track = drec_track_n(sink->rec, DREC_TRACK_SOURCE, "", 0, "", 0);
	if (event->group.bytes)
		add_extra(sink, "\"pid\":", event->group);
	if (event->track.bytes)
		add_extra(sink, "\"tid\":", event->track);
}

static void add_extra_time(struct reducer_ring_sink *sink, const char *key, int64_t ns, uint16_t ps)
{
	add_extra(sink, key, (struct reducer_text){NULL, 0});
	buffer_add_us(&sink->extra, ns, ps, 0);
}

static void put_start(struct reducer_ring_sink *sink, const struct reducer_event *event, struct drec_event *out)
{
	int64_t start, base = sink->options.has_base ? sink->options.base_unix_ns : 0;
	if (event->has_time && !__builtin_add_overflow(event->start_ns, base, &start)) {
		out->start = (uint64_t)start;
		out->start_ps = event->start_ps;
		return;
	}
	out->flags |= DREC_FLAG_NOTIME;
	if (event->has_time)
		add_extra_time(sink, "\"ts\":", event->start_ns, event->start_ps);
}

/* A span whose length is missing or negative is no span for a ring: it goes in as the event it was. */
static void put_length(struct reducer_ring_sink *sink, const struct reducer_event *event, struct drec_event *out)
{
	if (event->kind == DREC_COUNTER) {
		out->dur_or_value = drec_value_bits(event->value);
		return;
	}
	if (event->kind == DREC_LOSS) {
		out->dur_or_value = event->count;
		return;
	}
	if (event->kind == DREC_SPAN && (!event->has_duration || event->duration_ns < 0)) {
		out->kind = DREC_OTHER;
		add_extra(sink, "\"ph\":", (struct reducer_text){"\"X\"", 3});
		if (event->has_duration)
			add_extra_time(sink, "\"dur\":", event->duration_ns, event->duration_ps);
		return;
	}
	if (event->has_duration) {
		out->dur_or_value = (uint64_t)event->duration_ns;
		out->dur_ps = event->duration_ps;
	}
}

static int write_event(struct reducer_ring_sink *sink, struct drec_event *out)
{
	if (sink->extra.failed)
		return sink->extra.failed;
	if (sink->extra.bytes) {
		out->flags |= DREC_FLAG_EXTRA;
		out->extra = sink->extra.data;
		out->extra_bytes = (uint32_t)sink->extra.bytes;
	}
	if (out->start_ps || out->dur_ps)
		out->flags |= DREC_FLAG_PS;
	/* A full ring or an event too large is a loss that the ring has counted; the next one may fit. */
	if (drec_write(sink->rec, out) < 0)
		sink->stats.refused++;
	else
		sink->stats.events++;
	return 0;
}

static int sink_event(void *context, const struct reducer_event *event)
{
	struct reducer_ring_sink *sink = context;
	struct drec_event out = {.kind = event->kind, .flags = DREC_FLAG_ABS, .depth = event->depth};
	if (event->args.bytes > DREC_EVENT_BYTES_MAX || event->name.bytes > DREC_EVENT_BYTES_MAX ||
	    event->extra.bytes > DREC_EVENT_BYTES_MAX) {
		drec_note_loss(sink->rec, DREC_LOSS_TOO_BIG, 1, drec_now(sink->rec), drec_now(sink->rec));
		sink->stats.refused++;
		return 0;
	}
	buffer_clear(&sink->extra);
	buffer_add_text(&sink->extra, event->extra);
	put_name(sink, event, &out);
	if (event->kind == DREC_MARK || event->kind == DREC_LOSS)
		out.category = event->mark;
	else
		put_category(sink, event, &out);
	put_track(sink, event, &out);
	put_start(sink, event, &out);
	put_length(sink, event, &out);
	if (event->has_id) {
		out.flags |= DREC_FLAG_ID;
		out.id = event->id;
	}
	if (event->args.bytes) {
		out.flags |= event->args_flag;
		out.args = event->args.data;
		out.args_bytes = (uint32_t)event->args.bytes;
	}
	return write_event(sink, &out);
}

static int put_member(struct reducer_ring_sink *sink, const struct reducer_member *member)
{
	buffer_clear(&sink->member);
	json_quote(&sink->member, member->key);
	buffer_add_byte(&sink->member, ':');
	buffer_add_text(&sink->member, member->value);
	if (sink->member.failed)
		return sink->member.failed;
	sink->stats.members++;
	if (drec_meta(sink->rec, sink->member.data, sink->member.bytes) == 0)
		return 0;
	/* Too large for the dictionary: an event of the ring, which may be overwritten. */
	struct drec_event out = {.kind = DREC_META, .flags = DREC_FLAG_ABS | DREC_FLAG_NOTIME};
	out.category = drec_category(sink->rec, DREC_CATEGORY_MEMBER);
	if (!out.category || sink->member.bytes > MEMBER_BYTES_MAX) {
		drec_note_loss(sink->rec, DREC_LOSS_TOO_BIG, 1, drec_now(sink->rec), drec_now(sink->rec));
		sink->stats.refused++;
		return 0;
	}
	buffer_clear(&sink->extra);
	buffer_add(&sink->extra, sink->member.data, sink->member.bytes);
	return write_event(sink, &out);
}

static int put_own_member(struct reducer_ring_sink *sink, const char *key, const char *value)
{
	struct reducer_member member = {{key, strlen(key)}, {value, strlen(value)}};
	int result = put_member(sink, &member);
	sink->stats.members--;
	return result;
}

static int put_base(struct reducer_ring_sink *sink, int64_t base_unix_ns)
{
	struct buffer digits = {0};
	sink->options.has_base = 1;
	sink->options.base_unix_ns = base_unix_ns;
	if (base_unix_ns < 0)
		buffer_add_byte(&digits, '-');
	buffer_add_u64(&digits, base_unix_ns < 0 ? -(uint64_t)base_unix_ns : (uint64_t)base_unix_ns);
	buffer_add_byte(&digits, 0);
	int result = digits.failed ? digits.failed : put_own_member(sink, DREC_MEMBER_BASE, digits.data);
	buffer_free(&digits);
	return result;
}

static int sink_member(void *context, const struct reducer_member *member)
{
	struct reducer_ring_sink *sink = context;
	if (text_is(member->key, "baseTimeNanoseconds") && !sink->options.has_base) {
		struct reducer_text number = member->value;
		int64_t base;
		if (number.bytes >= 2 && number.data[0] == '"')
			number = (struct reducer_text){number.data + 1, number.bytes - 2};
		if (sink->stats.events || sink->stats.refused) {
			sink->stats.late_base = 1;
		} else if (decimal_i64(number, &base)) {
			int result = put_base(sink, base);
			if (result < 0)
				return result;
		}
	}
	return put_member(sink, member);
}

int reducer_ring_sink_new(drec *rec, const struct reducer_ring_sink_options *options,
			  struct reducer_ring_sink **ret_sink)
{
	struct reducer_ring_sink *sink = calloc(1, sizeof(*sink));
	if (!sink)
		return -ENOMEM;
	sink->rec = rec;
	if (options)
		sink->options = *options;
	int result = put_own_member(sink, DREC_MEMBER_ROOT, sink->options.array_root ? "\"array\"" : "\"object\"");
	if (result == 0 && sink->options.has_base)
		result = put_base(sink, sink->options.base_unix_ns);
	if (result < 0) {
		reducer_ring_sink_free(sink);
		return result;
	}
	*ret_sink = sink;
	return 0;
}

struct reducer_sink reducer_ring_sink(struct reducer_ring_sink *sink)
{
	return (struct reducer_sink){sink, sink_event, sink_member};
}

const struct reducer_ring_sink_stats *reducer_ring_sink_stats(const struct reducer_ring_sink *sink)
{
	return &sink->stats;
}

void reducer_ring_sink_free(struct reducer_ring_sink *sink)
{
	if (!sink)
		return;
	buffer_free(&sink->extra);
	buffer_free(&sink->member);
	free(sink);
}
