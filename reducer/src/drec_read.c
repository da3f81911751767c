/* SPDX-License-Identifier: Apache-2.0 */
#include <reducer/drec_codec.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "buffer.h"
#include "decimal.h"
#include "drec_members.h"
#include "json.h"
#include "text.h"

struct reading {
	struct drec_reader *reader;
	const struct reducer_sink *sink;
	const struct reducer_drec_options *options;
	struct reducer_read_report *report;
	struct buffer group, track, key, args;
	uint32_t last_track; /* whose texts are in group and track; UINT32_MAX = none */
	int fed;             /* from a trace: the feeding thread is none of its tracks */
	int stop;            /* what the sink returned */
};

static struct reducer_text text_of(const struct buffer *buffer)
{
	return (struct reducer_text){buffer->data, buffer->bytes};
}

/* `"key":value` taken apart; the key undone into `key`. */
static bool take_member(const char *text, uint32_t bytes, struct buffer *key, struct reducer_member *ret)
{
	struct reducer_text rest = {text, bytes}, raw, value;
	if (!json_next_member(&rest, &raw, &value))
		return false;
	buffer_clear(key);
	json_unescape(key, (struct reducer_text){raw.data + 1, raw.bytes - 2});
	*ret = (struct reducer_member){text_of(key), value};
	return !key->failed;
}

struct source_search {
	struct reducer_drec_source *source;
	struct buffer key;
};

static int find_source(void *context, uint32_t id, const char *text, uint32_t bytes)
{
	struct source_search *search = context;
	struct reducer_member member;
	(void)id;
	if (!take_member(text, bytes, &search->key, &member))
		return 0;
	if (text_is(member.key, DREC_MEMBER_BASE)) {
		search->source->has_base = decimal_i64(member.value, &search->source->base_unix_ns);
	} else if (text_is(member.key, DREC_MEMBER_ROOT)) {
		search->source->fed = 1;
		search->source->array_root = text_is(member.value, "\"array\"");
	}
	return 0;
}

int reducer_drec_source(struct drec_reader *reader, struct reducer_drec_source *ret_source)
{
	struct reducer_drec_source source = {0};
	struct source_search search = {.source = &source};
	int result = drec_reader_each_text(reader, DREC_DICT_META, find_source, &search);
	buffer_free(&search.key);
	if (result < 0)
		return result;
	*ret_source = source;
	return 0;
}

static int hand_member(struct reading *reading, const char *text, uint32_t bytes)
{
	struct reducer_member member;
	if (!take_member(text, bytes, &reading->key, &member) || !reading->sink->member ||
	    text_is(member.key, DREC_MEMBER_BASE) || text_is(member.key, DREC_MEMBER_ROOT))
		return 0;
	reading->stop = reading->sink->member(reading->sink->context, &member);
	return reading->stop;
}

static int each_member(void *context, uint32_t id, const char *text, uint32_t bytes)
{
	(void)id;
	return hand_member(context, text, bytes);
}

/* A track as pid and tid: a source's as it wrote them, a thread's by number, others by name. */
static void say_track(struct reading *reading, uint32_t track)
{
	struct drec_track_info info = {0};
	uint64_t pid = drec_reader_header(reading->reader)->pid;
	if (track == reading->last_track)
		return;
	reading->last_track = track;
	buffer_clear(&reading->group);
	buffer_clear(&reading->track);
	if (drec_reader_track(reading->reader, track, &info) < 0) {
		buffer_add_u64(&reading->group, pid);
		buffer_add_u64(&reading->track, 0);
	} else if (info.kind == DREC_TRACK_SOURCE) {
		buffer_add(&reading->group, info.group, info.group_bytes);
		buffer_add(&reading->track, info.name, info.name_bytes);
	} else if (info.kind == DREC_TRACK_THREAD) {
		buffer_add_u64(&reading->group, pid);
		buffer_add_u64(&reading->track, info.tid);
	} else {
		if (info.group_bytes)
			json_quote(&reading->group, (struct reducer_text){info.group, info.group_bytes});
		else
			buffer_add_u64(&reading->group, pid);
		json_quote(&reading->track, (struct reducer_text){info.name, info.name_bytes});
	}
}

/* Thread tracks say their names the way Chrome traces do. */
static int each_track(void *context, uint32_t id, const char *text, uint32_t bytes)
{
	struct reading *reading = context;
	struct drec_track_info info;
	(void)text, (void)bytes;
	if (!reading->sink->event || drec_reader_track(reading->reader, id, &info) < 0 ||
	    info.kind != DREC_TRACK_THREAD || !info.name_bytes)
		return 0;
	say_track(reading, id);
	buffer_clear(&reading->args);
	buffer_add_literal(&reading->args, "{\"name\":");
	json_quote(&reading->args, (struct reducer_text){info.name, info.name_bytes});
	buffer_add_byte(&reading->args, '}');
	struct reducer_event event = {.kind = DREC_META, .depth = DREC_DEPTH_UNKNOWN,
				      .args_flag = DREC_FLAG_ARGS_JSON};
	event.name = (struct reducer_text){"thread_name", 11};
	event.group = text_of(&reading->group);
	event.track = text_of(&reading->track);
	event.args = text_of(&reading->args);
	if (reading->group.failed || reading->track.failed || reading->args.failed)
		return -ENOMEM;
	reading->stop = reading->sink->event(reading->sink->context, &event);
	return reading->stop;
}

static int64_t length_between(const struct reading *reading, uint64_t from, uint64_t to)
{
	int64_t start = drec_reader_unix_ns(reading->reader, from), length;
	if (__builtin_sub_overflow(drec_reader_unix_ns(reading->reader, to), start, &length))
		return INT64_MAX;
	return length;
}

static void take_times(const struct reading *reading, const struct drec_event *in, struct reducer_event *out)
{
	bool absolute = in->flags & DREC_FLAG_ABS;
	bool long_mark = in->kind == DREC_MARK &&
			 (in->category == DREC_MARK_STEP_END || in->category == DREC_MARK_PHASE_END);
	out->has_time = !(in->flags & DREC_FLAG_NOTIME);
	out->start_ns = absolute ? (int64_t)in->start : drec_reader_unix_ns(reading->reader, in->start);
	if (in->flags & DREC_FLAG_PS) {
		out->start_ps = in->start_ps;
		out->duration_ps = in->dur_ps;
	}
	if (in->kind == DREC_SPAN || long_mark) {
		out->has_duration = 1;
		if (absolute)
			out->duration_ns = in->dur_or_value > INT64_MAX ? INT64_MAX : (int64_t)in->dur_or_value;
		else
			out->duration_ns = length_between(reading, in->start, in->start + in->dur_or_value);
	} else if (in->kind == DREC_LOSS) {
		out->has_time = 1;
		out->count = in->dur_or_value;
		out->duration_ns = absolute ? (int64_t)(in->id - in->start)
					    : length_between(reading, in->start, in->id);
	} else if (in->kind == DREC_COUNTER) {
		out->value = drec_event_value(in);
	}
}

static void take_texts(struct reading *reading, const struct drec_event *in, struct reducer_event *out)
{
	unsigned kind;
	const char *text;
	uint32_t bytes;
	if (in->flags & DREC_FLAG_NAME) {
		out->name = (struct reducer_text){in->name_text, in->name_bytes};
		if (!in->name_bytes)
			out->name_raw = (struct reducer_text){"\"\"", 2};
	} else if (in->name && drec_reader_text(reading->reader, in->name, &kind, &text, &bytes) == 0) {
		out->name = (struct reducer_text){text, bytes};
	}
	if (in->kind == DREC_MARK || in->kind == DREC_LOSS)
		out->mark = in->category;
	else if (in->category && drec_reader_text(reading->reader, in->category, &kind, &text, &bytes) == 0)
		out->category = (struct reducer_text){text, bytes};
	say_track(reading, in->track);
	out->group = text_of(&reading->group);
	out->track = text_of(&reading->track);
	out->args_flag = in->flags & (DREC_FLAG_ARGS_JSON | DREC_FLAG_ARGS_XSTAT);
	if (out->args_flag)
		out->args = (struct reducer_text){in->args, in->args_bytes};
	if (in->flags & DREC_FLAG_EXTRA)
		out->extra = (struct reducer_text){in->extra, in->extra_bytes};
}

static bool outside(const struct reading *reading, const struct reducer_event *event)
{
	const struct reducer_drec_options *options = reading->options;
	int64_t end;
	if (!options || !options->has_window || !event->has_time || event->kind == DREC_META)
		return false;
	if (__builtin_add_overflow(event->start_ns, event->duration_ns, &end))
		end = INT64_MAX;
	if (options->has_second && event->start_ns <= options->second_b_ns && end >= options->second_a_ns)
		return false;
	return event->start_ns > options->b_ns || end < options->a_ns;
}

static int each_event(void *context, const struct drec_event *in, const struct drec_place *place)
{
	struct reading *reading = context;
	struct reducer_event event = {.kind = in->kind, .depth = in->depth};
	take_texts(reading, in, &event);
	take_times(reading, in, &event);
	if (in->flags & DREC_FLAG_ID) {
		event.has_id = 1;
		event.id = in->id;
	}
	if (reading->group.failed || reading->track.failed)
		return -ENOMEM;
	if (in->kind == DREC_META && text_is(event.category, DREC_CATEGORY_MEMBER))
		return hand_member(reading, in->extra, in->flags & DREC_FLAG_EXTRA ? in->extra_bytes : 0);
	bool own_end = in->kind == DREC_MARK && (in->category == DREC_MARK_CLOSE || in->category == DREC_MARK_EXIT);
	if ((reading->fed && own_end) || outside(reading, &event))
		return 0;
	if (reading->options && reading->options->leave_out &&
	    reading->options->leave_out(reading->options->context, place))
		return 0;
	reading->report->events++;
	if (reading->sink->event)
		reading->stop = reading->sink->event(reading->sink->context, &event);
	return reading->stop;
}

static int read_all(struct reading *reading, struct drec_poll_stats *stats)
{
	int result = drec_reader_each_text(reading->reader, DREC_DICT_META, each_member, reading);
	if (result == 0 && !reading->fed)
		result = drec_reader_each_text(reading->reader, DREC_DICT_TRACK, each_track, reading);
	if (result == 0)
		result = drec_reader_poll(reading->reader, each_event, reading, 0, stats);
	return reading->stop ? reading->stop : result > 0 ? 0 : result;
}

static void report_damage(const struct drec_poll_stats *stats, struct reducer_read_report *report)
{
	report->text_bytes = stats->bytes;
	report->skipped_bytes = stats->corrupt_bytes;
	if (!stats->corrupt_bytes)
		return;
	report->damaged = 1;
	report->n_problems = 1;
	snprintf(report->problem[0].what, sizeof(report->problem[0].what), "%llu bytes could not be read as events",
		 (unsigned long long)stats->corrupt_bytes);
}

int reducer_drec_read(struct drec_reader *reader, const struct reducer_sink *sink,
		      const struct reducer_drec_options *options, struct drec_poll_stats *stats,
		      struct reducer_read_report *report)
{
	struct reading reading = {reader, sink, options, report, .last_track = UINT32_MAX};
	struct drec_poll_stats own = {0};
	struct reducer_drec_source source;
	*report = (struct reducer_read_report){0};
	int result = reducer_drec_source(reader, &source);
	if (result == 0) {
		reading.fed = source.fed;
		report->array_root = source.array_root;
		report->has_base = source.has_base;
		report->base_unix_ns = source.base_unix_ns;
		result = read_all(&reading, &own);
		report_damage(&own, report);
		if (stats)
			*stats = own;
	}
	buffer_free(&reading.group);
	buffer_free(&reading.track);
	buffer_free(&reading.key);
	buffer_free(&reading.args);
	return result;
}
