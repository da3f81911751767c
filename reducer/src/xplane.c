/* SPDX-License-Identifier: Apache-2.0 */
/* Delivers what xplane_space.h found: see xplane.h for the order and the mapping. */
#include <reducer/xplane.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <reducer/marks.h>

#include "decimal.h"
#include "json.h"
#include "text.h"
#include "xplane_file.h"
#include "xplane_space.h"
#include "xplane_value.h"

struct reading {
	struct xplane_space space;
	const struct reducer_sink *sink;
	struct reducer_read_report *report;
	struct xplane_map events, stats; /* of the current plane */
	struct buffer group, track, name;
	struct xplane_said said;
	int stop; /* what the sink returned */
};

static struct reducer_text text_of(const struct buffer *buffer)
{
	return (struct reducer_text){buffer->data, buffer->bytes};
}

static struct reducer_text literal_text(const char *literal)
{
	return (struct reducer_text){literal, strlen(literal)};
}

static int deliver(struct reading *reading, struct reducer_event *event)
{
	event->depth = DREC_DEPTH_UNKNOWN;
	if (event->args.bytes)
		event->args_flag = DREC_FLAG_ARGS_JSON;
	if (reading->group.failed || reading->track.failed || reading->name.failed ||
	    reading->said.args.failed)
		return -ENOMEM;
	reading->report->events++;
	if (reading->sink->event)
		reading->stop = reading->sink->event(reading->sink->context, event);
	return reading->stop;
}

/* A metadata event of the plane, or of the line, with what was said as its args. */
static int deliver_meta(struct reading *reading, const char *name, bool of_line)
{
	struct reducer_event event = {.kind = DREC_META, .name = literal_text(name)};
	event.group = text_of(&reading->group);
	if (of_line)
		event.track = text_of(&reading->track);
	event.args = xplane_said_args(&reading->said);
	int result = deliver(reading, &event);
	xplane_said_clear(&reading->said);
	return result;
}

static void set_group(struct reading *reading, const struct xplane_plane *plane)
{
	buffer_clear(&reading->group);
	xplane_add_group(&reading->group, plane);
}

static void set_track(struct reading *reading, const struct xplane_row *row)
{
	buffer_clear(&reading->track);
	xplane_add_track(&reading->track, row);
}

/* Whether a line is named by nothing but its tid, as the writer does where a track has no name. */
static bool named_by_tid(struct reducer_text tid, struct reducer_text name)
{
	if (tid.bytes >= 2 && tid.data[0] == '"')
		tid = (struct reducer_text){tid.data + 1, tid.bytes - 2};
	return tid.bytes == name.bytes && memcmp(tid.data, name.data, tid.bytes) == 0;
}

static int say_line(struct reading *reading, const struct xplane_plane *plane, size_t index)
{
	const struct xplane_row *row = &plane->row[index];
	struct xplane_line line;
	int result = 0;
	if (row->part)
		return 0;
	xplane_parse_line(row->content, &line);
	set_track(reading, row);
	if (line.name.bytes && !(plane->noted && named_by_tid(text_of(&reading->track), line.name))) {
		xplane_say_text(&reading->said, "name", line.name);
		result = deliver_meta(reading, "thread_name", true);
	}
	if (result || row->noted)
		return result;
	if (!plane->noted) {
		xplane_say_i64(&reading->said, "sort_index", (int64_t)index + 1);
		result = deliver_meta(reading, "thread_sort_index", true);
		if (result)
			return result;
		xplane_say_i64(&reading->said, "timestamp_ns", line.timestamp_ns);
		if (line.duration_ps)
			xplane_say_i64(&reading->said, "duration_ps", line.duration_ps);
		if (line.display_id)
			xplane_say_i64(&reading->said, "display_id", line.display_id);
		if (line.display_name.bytes)
			xplane_say_text(&reading->said, "display_name", line.display_name);
		result = deliver_meta(reading, "line_info", true);
	}
	return result;
}

static struct reducer_text inner_text(struct reducer_text string)
{
	return (struct reducer_text){string.data + 1, string.bytes - 2};
}

/* A metadata event that the writer noted: {"name":…,"tid":…,"args":…,"extra":…}. */
static int deliver_noted(struct reading *reading, struct reducer_text value)
{
	struct reducer_event event = {.kind = DREC_META};
	struct reducer_text key, one;
	if (!json_valid(value) || value.data[0] != '{')
		return 0;
	struct reducer_text rest = {value.data + 1, value.bytes - 2};
	event.group = text_of(&reading->group);
	while (json_next_member(&rest, &key, &one)) {
		if (text_is(key, "\"name\"") && one.data[0] == '"') {
			buffer_clear(&reading->name);
			json_unescape(&reading->name, inner_text(one));
			event.name = text_of(&reading->name);
		} else if (text_is(key, "\"tid\"")) {
			event.track = one;
		} else if (text_is(key, "\"args\"")) {
			event.args = one;
		} else if (text_is(key, "\"extra\"") && one.data[0] == '{') {
			event.extra = inner_text(one);
		}
	}
	return deliver(reading, &event);
}

static int say_noted(struct reading *reading, const struct xplane_plane *plane)
{
	struct proto rest = plane->content;
	struct proto_field field;
	struct xplane_stat stat;
	int result = 0;
	while (result == 0 && proto_next(&rest, &field) > 0) {
		if (field.number != XPLANE_STATS || field.wire != PROTO_BYTES ||
		    xplane_parse_stat(field.content, &stat) < 0 || stat.kind != XSTAT_STR)
			continue;
		const struct xplane_entry *entry = xplane_map_find(&reading->stats, stat.metadata_id);
		if (entry && entry->own == XPLANE_OWN_META)
			result = deliver_noted(reading, stat.text);
	}
	return result;
}

static int say_process(struct reading *reading, const struct xplane_plane *plane, struct reducer_text name)
{
	int result = 0;
	if (name.bytes) {
		xplane_say_text(&reading->said, "name", name);
		result = deliver_meta(reading, "process_name", false);
	}
	if (result || plane->noted)
		return result;
	xplane_say_i64(&reading->said, "sort_index", plane->pid);
	result = deliver_meta(reading, "process_sort_index", false);
	if (result)
		return result;
	xplane_say_i64(&reading->said, "id", plane->id);
	return deliver_meta(reading, "plane_info", false);
}

/* The plane's stats are said before its name, for one of them may be the name that it had. */
static int say_plane(struct reading *reading, const struct xplane_plane *plane)
{
	struct buffer stats = {0};
	int result;
	set_group(reading, plane);
	xplane_said_clear(&reading->said);
	xplane_say_stats(&reading->said, &reading->space, plane->content, XPLANE_STATS, &reading->stats, "");
	struct reducer_text name =
		plane->noted ? reading->said.own[XPLANE_OWN_PROCESS_NAME] : plane->name;
	if (plane->special == XPLANE_REDUCED) {
		buffer_clear(&reading->group);
		return deliver_meta(reading, REDUCER_MARK_REDUCED, false);
	}
	stats = reading->said.args;
	reading->said.args = (struct buffer){0};
	result = say_process(reading, plane, name);
	buffer_free(&reading->said.args);
	reading->said.args = stats;
	if (result == 0 && stats.bytes)
		result = deliver_meta(reading, "plane_stats", false);
	xplane_said_clear(&reading->said);
	if (result == 0)
		result = say_noted(reading, plane);
	for (size_t i = 0; i < plane->n_rows && result == 0; i++)
		result = say_line(reading, plane, i);
	return result;
}

/* UTF-8, whatever the file has. */
static struct reducer_text clean(struct reading *reading, struct reducer_text text)
{
	size_t length = 1;
	if (!text.bytes)
		return text;
	const char *p = text.data, *end = text.data + text.bytes;
	while (p < end && (length = utf8_sequence(p, end)) > 0)
		p += length;
	if (length)
		return text;
	struct buffer quoted = {0};
	json_quote(&quoted, text);
	buffer_clear(&reading->name);
	if (quoted.failed)
		reading->name.failed = quoted.failed;
	else
		json_unescape(&reading->name, (struct reducer_text){quoted.data + 1, quoted.bytes - 2});
	buffer_free(&quoted);
	return text_of(&reading->name);
}

static struct reducer_text name_of(struct reading *reading, const struct xplane_entry *metadata, int64_t id)
{
	if (metadata)
		return clean(reading,
			     xplane_text_field(proto_of(xplane_entry_text(metadata)), XEVENT_METADATA_NAME));
	buffer_clear(&reading->name);
	buffer_add_byte(&reading->name, '#');
	xplane_add_i64(&reading->name, id);
	return text_of(&reading->name);
}

static void say_event_args(struct reading *reading, struct proto message, struct xplane_entry *metadata)
{
	xplane_say_stats(&reading->said, &reading->space, message, XEVENT_STATS, &reading->stats, "");
	if (metadata) {
		metadata->used = 1;
		xplane_say_metadata(&reading->said, &reading->space, proto_of(xplane_entry_text(metadata)),
				    &reading->stats);
	}
}

static int deliver_aggregated(struct reading *reading, struct proto message, const struct xplane_event *found)
{
	struct xplane_entry *metadata = xplane_map_find(&reading->events, found->metadata_id);
	xplane_said_clear(&reading->said);
	xplane_say_text(&reading->said, "name", name_of(reading, metadata, found->metadata_id));
	xplane_say_i64(&reading->said, "num_occurrences", found->occurrences);
	if (found->has_duration)
		xplane_say_i64(&reading->said, "duration_ps", found->duration_ps);
	say_event_args(reading, message, metadata);
	return deliver_meta(reading, "aggregated_event", true);
}

/* What stands in stats of our own. */
static void take_own(struct reading *reading, struct reducer_event *event)
{
	const struct reducer_text *own = reading->said.own;
	event->category = own[XPLANE_OWN_CATEGORY];
	if (reading->said.merged)
		event->category = literal_text(REDUCER_MARK_MERGED);
	event->has_id = decimal_u64(own[XPLANE_OWN_ID], &event->id);
	if (own[XPLANE_OWN_EXTRA].bytes && json_valid_members(own[XPLANE_OWN_EXTRA]))
		event->extra = own[XPLANE_OWN_EXTRA];
	if (own[XPLANE_OWN_ARGS].bytes && json_valid(own[XPLANE_OWN_ARGS]))
		event->args = own[XPLANE_OWN_ARGS];
}

static void set_duration(struct reading *reading, const struct proto_field *field, struct xplane_event *found,
			 struct reducer_event *event)
{
	event->kind = found->has_duration ? DREC_SPAN : DREC_INSTANT;
	event->has_duration = found->has_duration;
	if (found->duration_ps < 0) {
		xplane_problem(&reading->space, field->from, 0, "an event ends before it begins");
		found->duration_ps = 0;
	}
	event->duration_ns = found->duration_ps / 1000;
	event->duration_ps = (uint16_t)(found->duration_ps % 1000);
}

static int deliver_event(struct reading *reading, const struct xplane_line *line,
			 const struct proto_field *field, bool counters)
{
	struct xplane_event found;
	struct reducer_event event = {.has_time = 1};
	if (xplane_parse_event(field->content, &found) < 0) {
		xplane_problem(&reading->space, field->from, proto_bytes(field->content), "a damaged event");
		return 0;
	}
	if (found.aggregated)
		return deliver_aggregated(reading, field->content, &found);
	if (!xplane_event_start(line, &found, &event.start_ns, &event.start_ps)) {
		xplane_problem(&reading->space, field->from, proto_bytes(field->content),
			       "an event beyond any time that there is");
		return 0;
	}
	struct xplane_entry *metadata = xplane_map_find(&reading->events, found.metadata_id);
	xplane_said_clear(&reading->said);
	event.name = name_of(reading, metadata, found.metadata_id);
	say_event_args(reading, field->content, metadata);
	event.args = xplane_said_args(&reading->said);
	set_duration(reading, field, &found, &event);
	if (counters) {
		event.kind = DREC_COUNTER;
		event.has_duration = 0;
		event.duration_ns = event.duration_ps = 0;
		event.value = reading->said.first_number;
	}
	take_own(reading, &event);
	event.group = text_of(&reading->group);
	event.track = text_of(&reading->track);
	event.offset = (uint64_t)(field->from - reading->space.data);
	event.bytes = (uint32_t)(field->content.end - field->from);
	return deliver(reading, &event);
}

static int read_line(struct reading *reading, const struct xplane_row *row)
{
	struct proto rest = row->content;
	struct proto_field field;
	struct xplane_line line;
	bool cut;
	int result, failed = 0;
	xplane_parse_line(row->content, &line);
	bool counters = text_is(line.name, XPLANE_COUNTERS);
	set_track(reading, row);
	while (failed == 0 && (result = xplane_next(&rest, &field, &cut)) > 0) {
		if (cut)
			xplane_problem(&reading->space, field.from, proto_bytes(field.content),
				       "an event is cut off");
		else if (field.number == XLINE_EVENTS && field.wire == PROTO_BYTES)
			failed = deliver_event(reading, &line, &field, counters);
	}
	if (failed == 0 && result < 0)
		xplane_problem(&reading->space, rest.at, proto_bytes(rest), "no field of a line");
	return failed;
}

/* Event metadata that no event uses, as the HLO protos of /host:metadata, in the order of the file. */
static int say_unused(struct reading *reading, const struct xplane_plane *plane)
{
	struct proto rest = plane->content, inner;
	struct proto_field field, key;
	int result = 0;
	while (result == 0 && proto_next(&rest, &field) > 0) {
		int64_t id = 0;
		if (field.number != XPLANE_EVENT_METADATA || field.wire != PROTO_BYTES)
			continue;
		for (inner = field.content; proto_next(&inner, &key) > 0;)
			if (key.number == MAP_KEY && key.wire == PROTO_VARINT)
				id = (int64_t)key.value;
		struct xplane_entry *metadata = xplane_map_find(&reading->events, id);
		if (!metadata || metadata->used)
			continue;
		metadata->used = 1;
		xplane_said_clear(&reading->said);
		xplane_say_text(&reading->said, "name", name_of(reading, metadata, id));
		xplane_say_metadata(&reading->said, &reading->space, proto_of(xplane_entry_text(metadata)),
				    &reading->stats);
		result = deliver_meta(reading, "event_metadata", false);
	}
	return result;
}

static int read_plane(struct reading *reading, const struct xplane_plane *plane)
{
	int result = 0;
	set_group(reading, plane);
	for (size_t i = 0; i < plane->n_rows && result == 0; i++)
		result = read_line(reading, &plane->row[i]);
	return result ? result : say_unused(reading, plane);
}

static int deliver_member(struct reading *reading, struct reducer_text key, struct reducer_text value)
{
	struct reducer_member member = {key, value};
	if (reading->sink->member)
		reading->stop = reading->sink->member(reading->sink->context, &member);
	return reading->stop;
}

static int say_texts(struct reading *reading)
{
	static const char *const keys[] = {"errors", "warnings", "hostnames"};
	int result = 0;
	for (int i = 0; i < 3 && result == 0; i++) {
		struct buffer value = {0};
		if (!reading->space.texts[i].bytes)
			continue;
		buffer_add_byte(&value, '[');
		buffer_add_text(&value, text_of(&reading->space.texts[i]));
		buffer_add_byte(&value, ']');
		result = value.failed ? value.failed
				      : deliver_member(reading, literal_text(keys[i]), text_of(&value));
		buffer_free(&value);
	}
	return result;
}

/* Members of the trace that it was made of. */
static int say_members(struct reading *reading, const struct xplane_plane *plane)
{
	struct proto rest = plane->content;
	struct proto_field field;
	struct xplane_stat stat;
	int result = 0;
	while (result == 0 && proto_next(&rest, &field) > 0) {
		if (field.number != XPLANE_STATS || field.wire != PROTO_BYTES ||
		    xplane_parse_stat(field.content, &stat) < 0 || stat.kind != XSTAT_STR ||
		    !json_valid(stat.text))
			continue;
		const struct xplane_entry *entry = xplane_map_find(&reading->stats, stat.metadata_id);
		if (entry)
			result = deliver_member(reading, clean(reading, xplane_entry_text(entry)), stat.text);
	}
	return result;
}

static int with_plane(struct reading *reading, const struct xplane_plane *plane,
		      int (*use)(struct reading *, const struct xplane_plane *))
{
	int result = xplane_map_fill(&reading->stats, plane->content, XPLANE_STAT_METADATA);
	if (result == 0 && use == read_plane)
		result = xplane_map_fill(&reading->events, plane->content, XPLANE_EVENT_METADATA);
	if (reading->stats.left_out || reading->events.left_out)
		xplane_problem(&reading->space, plane->from, 0, "more than %d names in a plane",
			       (int)XPLANE_METADATA_MAX);
	if (result == 0)
		result = use(reading, plane);
	xplane_map_free(&reading->stats);
	xplane_map_free(&reading->events);
	return result;
}

static int read_space(struct reading *reading)
{
	const struct xplane_space *space = &reading->space;
	int result = say_texts(reading);
	for (size_t i = 0; i < space->n_planes && result == 0; i++)
		if (space->plane[i].special == XPLANE_MEMBERS)
			result = with_plane(reading, &space->plane[i], say_members);
	for (size_t i = 0; i < space->n_planes && result == 0; i++)
		if (space->plane[i].special != XPLANE_MEMBERS)
			result = with_plane(reading, &space->plane[i], say_plane);
	for (size_t i = 0; i < space->n_planes && result == 0; i++)
		result = with_plane(reading, &space->plane[i], read_plane);
	return result;
}

int reducer_xplane_read_bytes(const void *bytes, size_t count, const struct reducer_sink *sink,
			      struct reducer_read_report *report)
{
	struct reading reading = {.sink = sink, .report = report};
	*report = (struct reducer_read_report){.text_bytes = count};
	if (count > XPLANE_BYTES_MAX)
		return -EFBIG;
	int result = xplane_space_find(&reading.space, bytes, count, report);
	if (result < 0)
		return result;
	report->has_base = reading.space.has_base;
	report->base_unix_ns = reading.space.base_unix_ns;
	result = read_space(&reading);
	xplane_space_free(&reading.space);
	buffer_free(&reading.group);
	buffer_free(&reading.track);
	buffer_free(&reading.name);
	buffer_free(&reading.said.args);
	return result;
}

static void add_problem(struct reducer_read_report *report, const struct reducer_problem *problem)
{
	report->damaged++;
	/* Why the bytes end comes last, if need be in the place of another one. */
	if (report->n_problems < REDUCER_PROBLEMS_MAX)
		report->n_problems++;
	report->problem[report->n_problems - 1] = *problem;
}

int reducer_xplane_read(const char *path, const struct reducer_sink *sink, struct reducer_read_report *report)
{
	struct xplane_file file;
	struct reducer_problem problem;
	*report = (struct reducer_read_report){0};
	int result = xplane_file_load(path, &file, &problem);
	if (result < 0) {
		add_problem(report, &problem);
		return result;
	}
	bool ends_early = result > 0;
	result = reducer_xplane_read_bytes(file.data, file.bytes, sink, report);
	if (ends_early)
		add_problem(report, &problem);
	xplane_file_free(&file);
	return result;
}
