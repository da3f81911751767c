/* SPDX-License-Identifier: Apache-2.0 */
#include "xplane_space.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <reducer/marks.h>
#include <reducer/xplane.h>

#include "decimal.h"
#include "json.h"
#include "text.h"

enum { HOST_PID = 701, DEVICE_PID = 1, CUSTOM_PID = 501, OTHER_PID = 1001, FREE_TID = 1000001 };
enum { TEXTS_BYTES_MAX = 16 << 20 };

void xplane_problem(const struct xplane_space *space, const uint8_t *at, size_t skipped, const char *format,
		    ...)
{
	struct reducer_read_report *report = space->report;
	va_list arguments;
	if (!report)
		return;
	report->damaged++;
	report->skipped_bytes += skipped;
	if (report->n_problems == REDUCER_PROBLEMS_MAX)
		return;
	struct reducer_problem *problem = &report->problem[report->n_problems++];
	problem->offset = at ? (uint64_t)(at - space->data) : 0;
	va_start(arguments, format);
	vsnprintf(problem->what, sizeof(problem->what), format, arguments);
	va_end(arguments);
}

void xplane_add_i64(struct buffer *out, int64_t value)
{
	if (value < 0)
		buffer_add_byte(out, '-');
	buffer_add_u64(out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void xplane_add_group(struct buffer *out, const struct xplane_plane *plane)
{
	if (plane->noted)
		buffer_add_text(out, plane->given);
	else
		xplane_add_i64(out, plane->pid);
}

void xplane_add_track(struct buffer *out, const struct xplane_row *row)
{
	if (row->noted)
		buffer_add_text(out, row->given);
	else
		xplane_add_i64(out, row->tid);
}

static struct xplane_plane *new_plane(struct xplane_space *space)
{
	if (space->n_planes == space->room) {
		size_t room = space->room ? space->room * 2 : 16;
		struct xplane_plane *grown = realloc(space->plane, room * sizeof(*grown));
		if (!grown)
			return NULL;
		space->plane = grown;
		space->room = room;
	}
	struct xplane_plane *plane = &space->plane[space->n_planes++];
	*plane = (struct xplane_plane){0};
	return plane;
}

static size_t count_rows(struct proto message)
{
	struct proto_field field;
	size_t n = 0;
	bool cut;
	while (xplane_next(&message, &field, &cut) > 0)
		n += field.number == XPLANE_LINES && field.wire == PROTO_BYTES;
	return n;
}

/* The plane's own fields and its lines. Says how its content ended. */
static int fill_plane(struct xplane_space *space, struct xplane_plane *plane)
{
	struct proto message = plane->content;
	struct proto_field field;
	bool cut = false;
	size_t n = count_rows(message);
	int result;
	if (n > REDUCER_XPLANE_LINES_MAX - space->n_rows) {
		xplane_problem(space, plane->from, 0, "more than %d lines: those beyond are not read",
			       (int)REDUCER_XPLANE_LINES_MAX);
		n = REDUCER_XPLANE_LINES_MAX - space->n_rows;
	}
	plane->row = calloc(n ? n : 1, sizeof(*plane->row));
	if (!plane->row)
		return -ENOMEM;
	while ((result = xplane_next(&message, &field, &cut)) > 0) {
		if (field.number == XPLANE_ID && field.wire == PROTO_VARINT) {
			plane->id = (int64_t)field.value;
		} else if (field.number == XPLANE_NAME && field.wire == PROTO_BYTES) {
			plane->name = proto_text(field.content);
		} else if (field.number == XPLANE_LINES && field.wire == PROTO_BYTES && plane->n_rows < n) {
			plane->row[plane->n_rows++] =
				(struct xplane_row){.content = field.content, .from = field.from, .cut = cut};
		} else if (cut) {
			xplane_problem(space, field.from, proto_bytes(field.content),
				       "field %u of a plane is cut off", (unsigned)field.number);
		}
	}
	if (result < 0)
		xplane_problem(space, message.at, proto_bytes(message), "no field of a plane");
	space->n_rows += plane->n_rows;
	if (text_is(plane->name, XPLANE_MEMBERS_PLANE))
		plane->special = XPLANE_MEMBERS;
	else if (text_is(plane->name, REDUCER_MARK_REDUCED))
		plane->special = XPLANE_REDUCED;
	return 0;
}

static void note_base(struct xplane_space *space, const struct xplane_stat *stat, struct reducer_text name)
{
	if ((stat->kind != XSTAT_UINT64 && stat->kind != XSTAT_INT64) || stat->number > INT64_MAX ||
	    !text_is(name, "profile_start_time"))
		return;
	space->has_base = 1;
	space->base_unix_ns = (int64_t)stat->number;
}

static int index_rows(struct xplane_map *rows, const struct xplane_plane *plane)
{
	bool is_new;
	for (size_t i = 0; i < plane->n_rows && rows->n < plane->n_rows; i++) {
		struct xplane_entry *entry = xplane_map_put(rows, plane->row[i].tid, &is_new);
		if (!entry)
			return -ENOMEM;
		entry->bytes = (uint32_t)i;
	}
	return 0;
}

/* {"line":5,"tid":"Spans","part":1} */
static void note_row(struct xplane_plane *plane, const struct xplane_map *rows, struct reducer_text value)
{
	struct reducer_text key, one, tid = {NULL, 0};
	int64_t id = 0;
	bool part = false;
	if (value.bytes < 2 || !json_valid(value) || value.data[0] != '{')
		return;
	struct reducer_text rest = {value.data + 1, value.bytes - 2};
	while (json_next_member(&rest, &key, &one)) {
		if (text_is(key, "\"line\"") && !decimal_i64(one, &id))
			return;
		if (text_is(key, "\"tid\""))
			tid = one;
		part |= text_is(key, "\"part\"");
	}
	const struct xplane_entry *entry = xplane_map_find(rows, id);
	if (!entry)
		return;
	plane->row[entry->bytes].noted = true;
	plane->row[entry->bytes].given = tid;
	plane->row[entry->bytes].part = part;
}

/* What the plane's stats say of the clock, and of tracks that had other names than numbers. */
static int note_stats(struct xplane_space *space, struct xplane_plane *plane)
{
	struct xplane_map stats = {0}, rows = {0};
	struct proto message = plane->content;
	struct proto_field field;
	struct xplane_stat stat;
	int result = xplane_map_fill(&stats, message, XPLANE_STAT_METADATA);
	while (result == 0 && proto_next(&message, &field) > 0) {
		if (field.number != XPLANE_STATS || field.wire != PROTO_BYTES ||
		    xplane_parse_stat(field.content, &stat) < 0)
			continue;
		const struct xplane_entry *entry = xplane_map_find(&stats, stat.metadata_id);
		if (!entry)
			continue;
		if (text_is(plane->name, XPLANE_ENVIRONMENT))
			note_base(space, &stat, xplane_entry_text(entry));
		if (entry->own == XPLANE_OWN_PID && stat.kind == XSTAT_STR &&
		    (stat.text.bytes == 0 || json_valid(stat.text))) {
			plane->noted = true;
			plane->given = stat.text;
		}
		if (entry->own == XPLANE_OWN_LINE && stat.kind == XSTAT_STR) {
			result = index_rows(&rows, plane);
			note_row(plane, &rows, stat.text);
		}
	}
	xplane_map_free(&rows);
	xplane_map_free(&stats);
	return result;
}

/* Line ids, each once: a second one gets a number that no line has. */
static int number_rows(struct xplane_plane *plane)
{
	struct xplane_map ids = {0};
	int64_t free_tid = FREE_TID;
	bool is_new;
	int result = 0;
	for (size_t i = 0; i < plane->n_rows; i++) {
		struct xplane_line line;
		xplane_parse_line(plane->row[i].content, &line);
		plane->row[i].tid = line.id;
		if (!xplane_map_put(&ids, line.id, &is_new))
			result = -ENOMEM;
		else if (!is_new)
			plane->row[i].part = true; /* for now: has to get a number */
	}
	for (size_t i = 0; i < plane->n_rows && result == 0; i++) {
		if (!plane->row[i].part)
			continue;
		plane->row[i].part = false;
		while (xplane_map_find(&ids, free_tid))
			free_tid++;
		plane->row[i].tid = free_tid;
		if (!xplane_map_put(&ids, free_tid, &is_new))
			result = -ENOMEM;
	}
	xplane_map_free(&ids);
	return result;
}

static bool starts_with(struct reducer_text text, const char *literal)
{
	size_t bytes = strlen(literal);
	return text.bytes >= bytes && memcmp(text.data, literal, bytes) == 0;
}

/* The pid that a plane asks for, 0 where it has none of its own. */
static int64_t wanted_pid(const struct xplane_plane *plane)
{
	int64_t given;
	if (plane->noted)
		return decimal_i64(plane->given, &given) ? given : 0;
	if (text_is(plane->name, "/host:CPU"))
		return HOST_PID;
	if (plane->id < 0 || plane->id >= CUSTOM_PID - DEVICE_PID)
		return 0;
	if (starts_with(plane->name, "/device:CUSTOM:"))
		return plane->id < HOST_PID - CUSTOM_PID ? CUSTOM_PID + plane->id : 0;
	if (starts_with(plane->name, "/device:TPU:") || starts_with(plane->name, "/device:GPU:"))
		return DEVICE_PID + plane->id;
	return 0;
}

static int number_planes(struct xplane_space *space)
{
	struct xplane_map pids = {0};
	int64_t free_pid = OTHER_PID;
	bool is_new;
	int result = 0;
	/* Those that were noted first, so that nobody takes their number. */
	for (int noted = 1; noted >= 0; noted--) {
		for (size_t i = 0; i < space->n_planes && result == 0; i++) {
			struct xplane_plane *plane = &space->plane[i];
			int64_t pid = wanted_pid(plane);
			if (plane->noted != (noted != 0) || (pid == 0 && !noted))
				continue;
			if (!xplane_map_put(&pids, pid, &is_new))
				result = -ENOMEM;
			else if (is_new)
				plane->pid = pid;
			else if (pid)
				plane->noted = false;
		}
	}
	for (size_t i = 0; i < space->n_planes && result == 0; i++) {
		struct xplane_plane *plane = &space->plane[i];
		/* Planes of our own are no processes, and must not move the numbers of those that are. */
		if (plane->pid || plane->noted || plane->special)
			continue;
		while (xplane_map_find(&pids, free_pid))
			free_pid++;
		plane->pid = free_pid++;
	}
	xplane_map_free(&pids);
	return result;
}

static void add_text(struct xplane_space *space, const struct proto_field *field)
{
	struct buffer *out = &space->texts[field->number - XSPACE_ERRORS];
	struct reducer_text text = proto_text(field->content);
	if (text.bytes > TEXTS_BYTES_MAX || out->bytes > TEXTS_BYTES_MAX) {
		xplane_problem(space, field->from, text.bytes, "errors, warnings or hostnames of over %d MiB",
			       TEXTS_BYTES_MAX >> 20);
		return;
	}
	if (out->bytes)
		buffer_add_byte(out, ',');
	json_quote(out, text);
}

static int take_plane(struct xplane_space *space, const struct proto_field *field, bool cut)
{
	if (space->n_planes == REDUCER_XPLANE_PLANES_MAX) {
		xplane_problem(space, field->from, proto_bytes(field->content), "more than %d planes",
			       (int)REDUCER_XPLANE_PLANES_MAX);
		return 0;
	}
	struct xplane_plane *plane = new_plane(space);
	if (!plane)
		return -ENOMEM;
	plane->content = field->content;
	plane->from = field->from;
	plane->cut = cut;
	int result = fill_plane(space, plane);
	if (result == 0)
		result = number_rows(plane);
	if (result == 0)
		result = note_stats(space, plane);
	return result;
}

int xplane_space_find(struct xplane_space *space, const uint8_t *data, size_t bytes,
		      struct reducer_read_report *report)
{
	struct proto message = proto_of((struct reducer_text){(const char *)data, bytes});
	struct proto_field field;
	bool cut, any = false;
	int result, failed = 0;
	*space = (struct xplane_space){.data = data, .bytes = bytes, .report = report};
	while ((result = xplane_next(&message, &field, &cut)) > 0 && failed == 0) {
		bool ours = field.wire == PROTO_BYTES && field.number <= XSPACE_HOSTNAMES;
		any |= ours;
		if (ours && field.number == XSPACE_PLANES)
			failed = take_plane(space, &field, cut);
		else if (ours && !cut)
			add_text(space, &field);
		if (cut)
			xplane_problem(space, data + bytes, 0,
				       "the file ends inside field %u that begins at byte %zu",
				       (unsigned)field.number, (size_t)(field.from - data));
	}
	if (failed == 0 && result < 0)
		xplane_problem(space, message.at, proto_bytes(message), "no field of an XSpace");
	if (bytes == 0)
		xplane_problem(space, NULL, 0, "the file is empty");
	if (failed == 0 && !any) {
		if (report->n_problems == 0)
			xplane_problem(space, data, bytes, "none of its fields is one of an XSpace");
		failed = -EBADMSG;
	}
	if (failed == 0)
		failed = number_planes(space);
	for (int i = 0; i < 3 && failed == 0; i++)
		failed = space->texts[i].failed;
	if (failed < 0)
		xplane_space_free(space);
	return failed;
}

void xplane_space_free(struct xplane_space *space)
{
	for (size_t i = 0; i < space->n_planes; i++)
		free(space->plane[i].row);
	free(space->plane);
	for (int i = 0; i < 3; i++)
		buffer_free(&space->texts[i]);
	*space = (struct xplane_space){0};
}
