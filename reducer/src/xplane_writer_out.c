/* SPDX-License-Identifier: Apache-2.0 */
/* Measures and writes the file. A message's length stands before it, so everything is measured first; nothing
 * is written of a file that would be too large. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decimal.h"
#include "text.h"
#include "xplane_file.h"
#include "xplane_parse.h"
#include "xplane_space.h"
#include "xplane_value.h"
#include "xplane_writer_inside.h"

enum { FLUSH_BYTES = 256 << 10 };

struct writing {
	struct reducer_xplane_writer *w;
	uint32_t *row; /* indexes: by plane, further lines of a track after its first */
	struct buffer out;
	int failed;
};

static bool starts_with(struct reducer_text text, const char *literal)
{
	size_t bytes = strlen(literal);
	return text.bytes >= bytes && memcmp(text.data, literal, bytes) == 0;
}

bool xw_is_drawn(struct reducer_text name)
{
	return starts_with(name, "/host:CPU") || starts_with(name, "/device:TPU:") ||
	       starts_with(name, "/device:GPU:") || starts_with(name, "/device:CUSTOM:");
}

/* Names that mean something to XProf. */
static bool is_plane_name(struct reducer_text name)
{
	return starts_with(name, "/host:") || starts_with(name, "/device:") ||
	       starts_with(name, "/virtualdevice:") || starts_with(name, "#Chip") ||
	       text_is(name, XPLANE_ENVIRONMENT);
}

/* --- what the planes are called --- */

/* Whether a plane of that name came before. */
static bool name_is_taken(struct xplane_intern *names, struct reducer_text name)
{
	int64_t *seen = xplane_intern(names, name);
	bool taken = seen && *seen;
	if (seen)
		*seen = 1;
	return taken;
}

static void add_unquoted(struct buffer *out, struct reducer_text json)
{
	if (json.bytes >= 2 && json.data[0] == '"')
		json = (struct reducer_text){json.data + 1, json.bytes - 2};
	buffer_add_text(out, json);
}

/* The name that the file gets; the one that it had and the pid are noted. */
static int name_plane(struct reducer_xplane_writer *w, uint32_t index, struct xplane_intern *names)
{
	struct xw_plane *plane = &w->plane[index];
	struct buffer name = {0};
	xplane_stats_clear(&w->scratch, &plane->names, XPLANE_STATS);
	/* Nothing where there is none. */
	if (plane->group.bytes || !plane->special)
		xplane_stats_add_text(&w->scratch, xplane_own_name(XPLANE_OWN_PID), xw_text(&plane->group));
	if (plane->named)
		xplane_stats_add_text(&w->scratch, xplane_own_name(XPLANE_OWN_PROCESS_NAME),
				      xw_text(&plane->name));
	if (!is_plane_name(xw_text(&plane->name)))
		buffer_add_literal(&name, "/device:CUSTOM:");
	if (plane->name.bytes)
		buffer_add_text(&name, xw_text(&plane->name));
	else
		add_unquoted(&name, xw_text(&plane->group));
	if (!name.failed && name_is_taken(names, xw_text(&name))) {
		buffer_add_byte(&name, ' ');
		add_unquoted(&name, xw_text(&plane->group));
	}
	buffer_add_text(&plane->stats, xw_text(&w->scratch.stats));
	buffer_free(&plane->name);
	plane->name = name;
	int result = xplane_stats_failed(&w->scratch);
	return result ? result : name.failed ? name.failed : plane->stats.failed;
}

/* Ids as the reader makes pids of them: those of a device from 0 to 499, of CUSTOM planes to 199. */
static int64_t wanted_id(const struct xw_plane *plane, bool custom)
{
	int64_t pid;
	if (!decimal_i64(xw_text(&plane->group), &pid))
		return -1;
	pid -= custom ? 501 : 1;
	return pid >= 0 && pid < (custom ? 200 : 500) ? pid : -1;
}

static int number_kind(struct reducer_xplane_writer *w, bool custom)
{
	struct xplane_map used = {0};
	int64_t free_id = 0;
	bool is_new;
	int result = 0;
	/* First those that have an id, then those that ask for one, then the others. */
	for (int turn = 0; turn < 3 && result == 0; turn++) {
		for (uint32_t i = 0; i < w->n_planes && result == 0; i++) {
			struct xw_plane *plane = &w->plane[i];
			int64_t wanted = plane->has_info ? plane->id : wanted_id(plane, custom);
			bool of_kind = starts_with(xw_text(&plane->name), "/device:CUSTOM:") == custom;
			if (!of_kind || !starts_with(xw_text(&plane->name), "/device:") || plane->special ||
			    turn != (plane->has_info                                  ? 0
				     : wanted >= 0 && !xplane_map_find(&used, wanted) ? 1
										      : 2) ||
			    (turn == 2 && plane->numbered))
				continue;
			while (turn == 2 && xplane_map_find(&used, free_id))
				free_id++;
			plane->id = turn == 2 ? free_id : wanted;
			plane->numbered = true;
			if (!xplane_map_put(&used, plane->id, &is_new))
				result = -ENOMEM;
		}
	}
	xplane_map_free(&used);
	return result;
}

static int name_planes(struct reducer_xplane_writer *w)
{
	struct xplane_intern names = {0};
	int result = 0;
	for (uint32_t i = 0; i < w->n_planes && result == 0; i++)
		if (!w->plane[i].has_info && !w->plane[i].special)
			result = name_plane(w, i, &names);
	xplane_intern_free(&names);
	if (result == 0)
		result = number_kind(w, false);
	if (result == 0)
		result = number_kind(w, true);
	for (uint32_t i = 0; i < w->n_planes && result == 0; i++) {
		struct xw_plane *plane = &w->plane[i];
		if (w->reduced && !plane->special && xw_is_drawn(xw_text(&plane->name)) &&
		    !xplane_names_stat(&plane->names, xw_literal("group_id"), false))
			result = -ENOMEM;
	}
	return result;
}

/* --- the clock --- */

/* Takes the stats of one name out; returns how many there were. */
static unsigned remove_stat(struct xw_plane *plane, const char *name)
{
	uint64_t id = (uint64_t)xplane_names_stat(&plane->names, xw_literal(name), false);
	struct proto rest = proto_of(xw_text(&plane->stats));
	struct buffer kept = {0};
	struct proto_field field;
	struct xplane_stat stat;
	unsigned removed = 0;
	while (proto_next(&rest, &field) > 0) {
		bool is_it = xplane_parse_stat(field.content, &stat) == 0 && (uint64_t)stat.metadata_id == id;
		if (!is_it)
			buffer_add(&kept, (const char *)field.from, (size_t)(rest.at - field.from));
		removed += is_it;
	}
	kept.failed = kept.failed ? kept.failed : plane->stats.failed;
	buffer_free(&plane->stats);
	plane->stats = kept;
	return removed;
}

static void set_stat(struct xw_plane *plane, const char *name, uint64_t value)
{
	int64_t id = xplane_names_stat(&plane->names, xw_literal(name), false);
	size_t begun = proto_begin(&plane->stats, XPLANE_STATS);
	proto_add_u64(&plane->stats, XSTAT_METADATA_ID, (uint64_t)id);
	proto_add_u64(&plane->stats, XSTAT_UINT64, value);
	proto_end(&plane->stats, begun);
}

static struct xw_plane *environment_of(struct reducer_xplane_writer *w)
{
	for (uint32_t i = 0; i < w->n_planes; i++)
		if (!w->plane[i].special && text_is(xw_text(&w->plane[i].name), XPLANE_ENVIRONMENT))
			return &w->plane[i];
	uint32_t index = xw_special_plane(w, XPLANE_ENVIRONMENT);
	return index == XW_NOTHING ? NULL : &w->plane[index];
}

/* The Unix time at which the last event has ended. */
static __int128 stop_time(const struct reducer_xplane_writer *w, __int128 base_ns)
{
	__int128 last = base_ns + w->shift_ns;
	for (uint32_t i = 0; i < w->n_events; i++) {
		const struct xw_event *event = &w->event[i];
		if (event->kind != XW_SPAN && event->kind != XW_INSTANT)
			continue;
		__int128 end = base_ns + event->start_ns + event->duration_ns + 1;
		last = end > last ? end : last;
	}
	return last;
}

static int add_environment(struct reducer_xplane_writer *w)
{
	__int128 base = w->options.has_base ? w->options.base_unix_ns : 0;
	__int128 start = base + w->shift_ns, stop = stop_time(w, base);
	if ((!w->options.has_base && !w->has_start) || start < 0 || stop > UINT64_MAX)
		return 0;
	struct xw_plane *plane = environment_of(w);
	if (!plane)
		return -ENOMEM;
	/* In the plane of the trace it was made of the start stays where it is, unless it has moved. */
	struct buffer before = {0};
	buffer_add_text(&before, xw_text(&plane->stats));
	if (remove_stat(plane, "profile_start_time") && !w->has_start && !before.failed) {
		buffer_free(&plane->stats);
		plane->stats = before;
		return plane->stats.failed;
	}
	buffer_free(&before);
	set_stat(plane, "profile_start_time", (uint64_t)start);
	if (plane->special)
		set_stat(plane, "profile_stop_time", (uint64_t)stop);
	return plane->names.fields.failed ? -ENOMEM : plane->stats.failed;
}

/* --- lengths --- */

static size_t field_bytes(uint64_t content)
{
	return 1 + proto_varint_bytes(content) + (size_t)content;
}

static size_t number_bytes(int64_t value)
{
	return 1 + proto_varint_bytes((uint64_t)value);
}

static int64_t timestamp_of(const struct reducer_xplane_writer *w, const struct xw_row *row)
{
	return row->has_info && !w->has_start && row->timestamp_ns > -INT64_MAX / 2000 &&
			       row->timestamp_ns < INT64_MAX / 2000 ? row->timestamp_ns : 0;
}

/* All of a row's times are within 53 days of the start, and so is its timestamp. */
static int64_t offset_of(const struct reducer_xplane_writer *w, const struct xw_row *row,
			 const struct xw_event *event)
{
	if (event->kind == XW_AGGREGATED)
		return event->start_ns;
	return (event->start_ns - w->shift_ns - timestamp_of(w, row)) * 1000 + event->start_ps;
}

static bool has_duration(const struct xw_event *event)
{
	return event->kind == XW_SPAN || (event->kind == XW_AGGREGATED && event->has_duration);
}

static int64_t duration_of(const struct xw_event *event)
{
	if (event->kind == XW_AGGREGATED)
		return event->duration_ns;
	return event->duration_ns < 0 ? 0 : event->duration_ns * 1000 + event->duration_ps;
}

static uint64_t event_bytes(const struct reducer_xplane_writer *w, const struct xw_row *row,
			    const struct xw_event *event)
{
	uint64_t bytes =
		number_bytes(event->metadata) + number_bytes(offset_of(w, row, event)) + event->bytes;
	if (has_duration(event))
		bytes += number_bytes(duration_of(event));
	if (event->partner != XW_NOTHING)
		bytes += w->event[event->partner].bytes;
	return bytes;
}

static size_t text_bytes(const struct buffer *text)
{
	return text->bytes ? field_bytes(text->bytes) : 0;
}

static void measure_row(struct reducer_xplane_writer *w, struct xw_row *row)
{
	int64_t timestamp = timestamp_of(w, row);
	row->bytes = (row->id ? number_bytes(row->id) : 0) + text_bytes(&row->name) +
		     (timestamp ? number_bytes(timestamp) : 0) +
		     (row->duration_ps ? number_bytes(row->duration_ps) : 0) +
		     (row->display_id ? number_bytes(row->display_id) : 0) + text_bytes(&row->display_name);
	for (uint32_t i = 0; i < row->n; i++)
		row->bytes += field_bytes(event_bytes(w, row, &w->event[w->order[row->first + i]]));
}

static uint64_t measure(struct reducer_xplane_writer *w)
{
	uint64_t bytes = w->texts.bytes;
	for (uint32_t i = 0; i < w->n_planes; i++) {
		struct xw_plane *plane = &w->plane[i];
		plane->bytes = (plane->id ? number_bytes(plane->id) : 0) + text_bytes(&plane->name) +
			       plane->names.fields.bytes + plane->stats.bytes;
	}
	for (uint32_t i = 0; i < w->n_rows; i++) {
		measure_row(w, &w->row[i]);
		w->plane[w->row[i].plane].bytes += field_bytes(w->row[i].bytes);
	}
	for (uint32_t i = 0; i < w->n_planes; i++)
		bytes += field_bytes(w->plane[i].bytes);
	return bytes;
}

/* --- writing --- */

static int flush(struct writing *writing)
{
	struct buffer *out = &writing->out;
	size_t at = 0;
	while (at < out->bytes && !out->failed) {
		ssize_t wrote = write(writing->w->fd, out->data + at, out->bytes - at);
		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0)
			return -errno;
		at += (size_t)wrote;
	}
	writing->w->stats.file_bytes += at;
	int failed = out->failed;
	buffer_clear(out);
	return failed;
}

static void add_length(struct buffer *out, uint32_t number, uint64_t bytes)
{
	proto_add_tag(out, number, PROTO_BYTES);
	proto_add_varint(out, bytes);
}

static void add_number(struct buffer *out, uint32_t number, int64_t value)
{
	if (value)
		proto_add_u64(out, number, (uint64_t)value);
}

static void add_text(struct buffer *out, uint32_t number, const struct buffer *text)
{
	if (text->bytes)
		proto_add_bytes(out, number, xw_text(text));
}

static int write_event(struct writing *writing, const struct xw_row *row, const struct xw_event *event)
{
	struct reducer_xplane_writer *w = writing->w;
	struct buffer *out = &writing->out;
	int result = 0;
	add_length(out, XLINE_EVENTS, event_bytes(w, row, event));
	proto_add_u64(out, XEVENT_METADATA_ID, event->metadata);
	if (event->kind != XW_AGGREGATED)
		proto_add_u64(out, XEVENT_OFFSET_PS, (uint64_t)offset_of(w, row, event));
	if (has_duration(event))
		proto_add_u64(out, XEVENT_DURATION_PS, (uint64_t)duration_of(event));
	if (event->bytes)
		result = spool_read(w->spool, event->place, event->bytes, out);
	if (result == 0 && event->partner != XW_NOTHING)
		result = spool_read(w->spool, w->event[event->partner].place, w->event[event->partner].bytes,
				    out);
	if (event->kind == XW_AGGREGATED)
		proto_add_u64(out, XEVENT_OCCURRENCES, (uint64_t)offset_of(w, row, event));
	return result == 0 && out->bytes >= FLUSH_BYTES ? flush(writing) : result;
}

static int write_row(struct writing *writing, const struct xw_row *row)
{
	struct reducer_xplane_writer *w = writing->w;
	struct buffer *out = &writing->out;
	int result = 0;
	add_length(out, XPLANE_LINES, row->bytes);
	add_number(out, XLINE_ID, row->id);
	add_text(out, XLINE_NAME, &row->name);
	add_number(out, XLINE_TIMESTAMP_NS, timestamp_of(w, row));
	for (uint32_t i = 0; i < row->n && result == 0; i++)
		result = write_event(writing, row, &w->event[w->order[row->first + i]]);
	add_number(out, XLINE_DURATION_PS, row->duration_ps);
	add_number(out, XLINE_DISPLAY_ID, row->display_id);
	add_text(out, XLINE_DISPLAY_NAME, &row->display_name);
	return result;
}

static int write_plane(struct writing *writing, uint32_t index, uint32_t *next_row)
{
	struct reducer_xplane_writer *w = writing->w;
	const struct xw_plane *plane = &w->plane[index];
	struct buffer *out = &writing->out;
	int result = 0;
	add_length(out, XSPACE_PLANES, plane->bytes);
	add_number(out, XPLANE_ID, plane->id);
	add_text(out, XPLANE_NAME, &plane->name);
	while (result == 0 && *next_row < w->n_rows && w->row[writing->row[*next_row]].plane == index)
		result = write_row(writing, &w->row[writing->row[(*next_row)++]]);
	buffer_add_text(out, xw_text(&plane->names.fields));
	buffer_add_text(out, xw_text(&plane->stats));
	return result == 0 ? flush(writing) : result;
}

static int compare_rows(const void *a, const void *b, void *context)
{
	const struct reducer_xplane_writer *w = context;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct xw_row *p = &w->row[x], *q = &w->row[y];
	if (p->plane != q->plane)
		return p->plane < q->plane ? -1 : 1;
	uint32_t of_p = p->part_of == XW_NOTHING ? x : p->part_of,
		 of_q = q->part_of == XW_NOTHING ? y : q->part_of;
	if (of_p != of_q)
		return of_p < of_q ? -1 : 1;
	return (x > y) - (x < y);
}

static int write_all(struct writing *writing)
{
	struct reducer_xplane_writer *w = writing->w;
	uint32_t next_row = 0;
	int result = 0;
	writing->row = malloc((w->n_rows ? w->n_rows : 1) * sizeof(*writing->row));
	if (!writing->row)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->n_rows; i++)
		writing->row[i] = i;
	qsort_r(writing->row, w->n_rows, sizeof(*writing->row), compare_rows, w);
	for (uint32_t i = 0; i < w->n_planes && result == 0; i++)
		result = write_plane(writing, i, &next_row);
	buffer_add_text(&writing->out, xw_text(&w->texts));
	return result == 0 ? flush(writing) : result;
}

int xw_write(struct reducer_xplane_writer *w)
{
	struct writing writing = {.w = w};
	int result = name_planes(w);
	if (result == 0)
		result = add_environment(w);
	if (result < 0)
		return result;
	/* XProf wants to know a host. */
	if (!w->has_hostname && !w->any_info)
		proto_add_bytes(&w->texts, XSPACE_HOSTNAMES, xw_literal("localhost"));
	if (w->texts.failed)
		return w->texts.failed;
	if (measure(w) > XPLANE_BYTES_MAX)
		return -EFBIG;
	result = write_all(&writing);
	free(writing.row);
	buffer_free(&writing.out);
	return result;
}
