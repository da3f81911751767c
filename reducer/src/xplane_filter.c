/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two sweeps over the same bytes: the first measures every line and plane that changes, for lengths stand
 * before contents, the second writes. Both take each event through event_stays(), so they see the same.
 */
#include <reducer/xplane_filter.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <reducer/marks.h>

#include "text.h"
#include "xplane_file.h"
#include "xplane_names.h"
#include "xplane_parse.h"
#include "xplane_space.h"
#include "xplane_stats.h"
#include "xplane_writer_inside.h"

enum { FLUSH_BYTES = 256 << 10 };

struct filter_row {
	struct buffer added; /* events, as fields of the line */
	uint64_t bytes;      /* of the new message */
	int64_t timestamp_ns; /* of the line; looked for once, for it may stand after all events */
	bool changed, has_timestamp;
};

struct filter_plane {
	struct xplane_map events, stats; /* ids that are in use; filled when something is added */
	struct xplane_names names;
	struct filter_row *row;
	uint64_t bytes;
	bool loaded, changed;
};

struct reducer_xplane_filter {
	struct xplane_file file;
	struct xplane_space space;
	struct filter_plane *plane;
	struct xplane_intern tracks; /* group and track: the number is an index into `place`, + 1 */
	struct filter_place {
		uint32_t plane, row;
	} *place;
	struct xplane_stats scratch;
	struct buffer key;
	struct xplane_names mark_names;
	struct buffer mark; /* the plane driverec.reduced, empty where there is none */
	/* While it is written. */
	const uint8_t *keep;
	uint64_t n_events, next_event;
	struct buffer out;
	uint64_t written;
	int fd;
};

static struct reducer_text track_key(struct reducer_xplane_filter *filter, struct reducer_text group,
				     struct reducer_text track)
{
	buffer_clear(&filter->key);
	buffer_add_text(&filter->key, group);
	buffer_add_byte(&filter->key, '\0');
	buffer_add_text(&filter->key, track);
	return xw_text(&filter->key);
}

/* Of several lines of one track, the one that is no further part takes what is added. */
static int index_tracks(struct reducer_xplane_filter *filter)
{
	const struct xplane_space *space = &filter->space;
	struct buffer group = {0}, track = {0};
	uint32_t n = 0;
	int result = 0;
	for (uint32_t i = 0; i < space->n_planes; i++) {
		const struct xplane_plane *plane = &space->plane[i];
		buffer_clear(&group);
		xplane_add_group(&group, plane);
		for (uint32_t j = 0; j < plane->n_rows && result == 0; j++) {
			buffer_clear(&track);
			xplane_add_track(&track, &plane->row[j]);
			struct reducer_text key = track_key(filter, xw_text(&group), xw_text(&track));
			int64_t *number = group.failed || track.failed || filter->key.failed
						  ? NULL : xplane_intern(&filter->tracks, key);
			if (!number)
				result = -ENOMEM;
			else if (!*number || !plane->row[j].part) {
				filter->place[n] = (struct filter_place){i, j};
				*number = ++n;
			}
		}
	}
	buffer_free(&group);
	buffer_free(&track);
	return result;
}

static int make_tables(struct reducer_xplane_filter *filter)
{
	const struct xplane_space *space = &filter->space;
	filter->plane = calloc(space->n_planes ? space->n_planes : 1, sizeof(*filter->plane));
	filter->place = calloc(space->n_rows ? space->n_rows : 1, sizeof(*filter->place));
	if (!filter->plane || !filter->place)
		return -ENOMEM;
	for (size_t i = 0; i < space->n_planes; i++) {
		size_t n = space->plane[i].n_rows;
		filter->plane[i].row = calloc(n ? n : 1, sizeof(*filter->plane[i].row));
		if (!filter->plane[i].row)
			return -ENOMEM;
	}
	return index_tracks(filter);
}

int reducer_xplane_filter_open(const char *path, struct reducer_xplane_filter **ret_filter,
			       struct reducer_problem *ret_problem)
{
	struct reducer_read_report report = {0};
	*ret_problem = (struct reducer_problem){0};
	struct reducer_xplane_filter *filter = calloc(1, sizeof(*filter));
	if (!filter)
		return -ENOMEM;
	int result = xplane_file_load(path, &filter->file, ret_problem);
	if (result > 0)
		result = -EBADMSG;
	if (result == 0)
		result = xplane_space_find(&filter->space, filter->file.data, filter->file.bytes, &report);
	filter->space.report = NULL;
	if (report.damaged) {
		*ret_problem = report.problem[0];
		result = result ? result : -EBADMSG;
	}
	if (result == 0)
		result = make_tables(filter);
	if (result < 0) {
		reducer_xplane_filter_free(filter);
		return result;
	}
	*ret_filter = filter;
	return 0;
}

static int load_names(struct reducer_xplane_filter *filter, uint32_t index)
{
	struct filter_plane *plane = &filter->plane[index];
	struct proto content = filter->space.plane[index].content;
	if (plane->loaded)
		return 0;
	plane->names.taken_events = &plane->events;
	plane->names.taken_stats = &plane->stats;
	plane->loaded = true;
	int result = xplane_map_fill(&plane->events, content, XPLANE_EVENT_METADATA);
	return result ? result : xplane_map_fill(&plane->stats, content, XPLANE_STAT_METADATA);
}

static int add_mark(struct reducer_xplane_filter *filter, const struct reducer_event *event)
{
	struct buffer *out = &filter->mark;
	xplane_stats_clear(&filter->scratch, &filter->mark_names, XPLANE_STATS);
	xplane_stats_add_args(&filter->scratch, event->args);
	buffer_clear(out);
	size_t begun = proto_begin(out, XSPACE_PLANES);
	proto_add_bytes(out, XPLANE_NAME, xw_literal(REDUCER_MARK_REDUCED));
	buffer_add_text(out, xw_text(&filter->mark_names.fields));
	buffer_add_text(out, xw_text(&filter->scratch.stats));
	proto_end(out, begun);
	int result = xplane_stats_failed(&filter->scratch);
	return result ? result : out->failed;
}

/* The event's offset in its line; false where 63 bits do not hold it. */
static bool offset_in(const struct xplane_row *row, struct filter_row *to, const struct reducer_event *event,
		      int64_t *ret_ps)
{
	if (!to->has_timestamp) {
		struct xplane_line line;
		xplane_parse_line(row->content, &line);
		to->timestamp_ns = line.timestamp_ns;
		to->has_timestamp = true;
	}
	__int128 ps = ((__int128)event->start_ns - to->timestamp_ns) * 1000 + event->start_ps;
	*ret_ps = (int64_t)ps;
	return ps >= INT64_MIN && ps <= INT64_MAX;
}

static int add_event(struct reducer_xplane_filter *filter, const struct filter_place *place,
		     const struct reducer_event *event)
{
	struct filter_plane *plane = &filter->plane[place->plane];
	struct filter_row *row = &plane->row[place->row];
	struct buffer *out = &row->added;
	int64_t offset;
	if (!offset_in(&filter->space.plane[place->plane].row[place->row], row, event, &offset) ||
	    event->duration_ns < 0 || event->duration_ns >= INT64_MAX / 1000)
		return -ERANGE;
	int result = load_names(filter, place->plane);
	if (result < 0)
		return result;
	xplane_stats_clear(&filter->scratch, &plane->names, XEVENT_STATS);
	xplane_stats_add_args(&filter->scratch, event->args);
	xplane_stats_add_event(&filter->scratch, event);
	int64_t name = xplane_names_event(&plane->names, event->name, xw_text(&filter->scratch.rest));
	size_t begun = proto_begin(out, XLINE_EVENTS);
	proto_add_u64(out, XEVENT_METADATA_ID, (uint64_t)name);
	proto_add_u64(out, XEVENT_OFFSET_PS, (uint64_t)offset);
	if (event->kind == DREC_SPAN)
		proto_add_u64(out, XEVENT_DURATION_PS,
			      (uint64_t)(event->duration_ns * 1000 + event->duration_ps));
	buffer_add_text(out, xw_text(&filter->scratch.stats));
	proto_end(out, begun);
	result = xplane_stats_failed(&filter->scratch);
	return result ? result : out->failed;
}

int reducer_xplane_filter_add(struct reducer_xplane_filter *filter, const struct reducer_event *event)
{
	if (event->kind == DREC_META)
		return text_is(event->name, REDUCER_MARK_REDUCED) ? add_mark(filter, event) : -ENOENT;
	struct reducer_text key = track_key(filter, event->group, event->track);
	int64_t *number = filter->key.failed ? NULL : xplane_intern_find(&filter->tracks, key);
	if (filter->key.failed)
		return -ENOMEM;
	return number ? add_event(filter, &filter->place[*number - 1], event) : -ENOENT;
}

/* --- the two sweeps --- */

/* Whether the field of a line is to stay; takes the event's bit. -EBADMSG for one that cannot be counted. */
static int event_stays(struct reducer_xplane_filter *filter, const struct xplane_line *line,
		       const struct proto_field *field)
{
	struct xplane_event event;
	int64_t ns;
	uint16_t ps;
	if (field->number != XLINE_EVENTS || field->wire != PROTO_BYTES)
		return 1;
	if (xplane_parse_event(field->content, &event) < 0)
		return -EBADMSG;
	if (event.aggregated)
		return 1;
	if (!xplane_event_start(line, &event, &ns, &ps))
		return -EBADMSG;
	uint64_t n = filter->next_event++;
	if (!filter->keep)
		return 1;
	return n < filter->n_events ? filter->keep[n / 8] >> (n % 8) & 1 : 1;
}

static int measure_row(struct reducer_xplane_filter *filter, const struct xplane_row *row,
		       struct filter_row *ret)
{
	struct proto rest = row->content;
	struct proto_field field;
	struct xplane_line line;
	int result;
	xplane_parse_line(row->content, &line);
	ret->bytes = ret->added.bytes;
	ret->changed = ret->added.bytes > 0;
	while ((result = proto_next(&rest, &field)) > 0) {
		int stays = event_stays(filter, &line, &field);
		if (stays < 0)
			return stays;
		if (stays)
			ret->bytes += (uint64_t)(rest.at - field.from);
		else
			ret->changed = true;
	}
	return result;
}

static uint64_t length_bytes(uint64_t content)
{
	return 1 + proto_varint_bytes(content);
}

static bool is_line(const struct proto_field *field)
{
	return field->number == XPLANE_LINES && field->wire == PROTO_BYTES;
}

static int measure_plane(struct reducer_xplane_filter *filter, uint32_t index)
{
	const struct xplane_plane *plane = &filter->space.plane[index];
	struct filter_plane *to = &filter->plane[index];
	struct proto rest = plane->content;
	struct proto_field field;
	uint32_t row = 0;
	int result;
	to->changed = to->names.fields.bytes > 0;
	to->bytes = to->names.fields.bytes;
	while ((result = proto_next(&rest, &field)) > 0) {
		struct filter_row *at = is_line(&field) ? &to->row[row] : NULL;
		if (at)
			result = measure_row(filter, &plane->row[row++], at);
		if (result < 0)
			return result;
		bool same = !at || !at->changed;
		to->bytes += same ? (uint64_t)(rest.at - field.from) : length_bytes(at->bytes) + at->bytes;
		to->changed |= !same;
	}
	return result;
}

/* A plane that says how the trace was reduced before gives way to the new one. */
static bool gives_way(const struct reducer_xplane_filter *filter, uint32_t index)
{
	return filter->mark.bytes && filter->space.plane[index].special == XPLANE_REDUCED;
}

static int flush(struct reducer_xplane_filter *filter, const char *data, size_t bytes)
{
	for (size_t at = 0; at < bytes;) {
		ssize_t wrote = write(filter->fd, data + at, bytes - at);
		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0)
			return -errno;
		at += (size_t)wrote;
	}
	filter->written += bytes;
	return 0;
}

static int flush_out(struct reducer_xplane_filter *filter)
{
	int result =
		filter->out.failed ? filter->out.failed : flush(filter, filter->out.data, filter->out.bytes);
	buffer_clear(&filter->out);
	return result;
}

static int copy(struct reducer_xplane_filter *filter, const uint8_t *from, const uint8_t *to)
{
	size_t bytes = (size_t)(to - from);
	int result = 0;
	if (bytes >= FLUSH_BYTES || filter->out.bytes >= FLUSH_BYTES)
		result = flush_out(filter);
	if (result == 0 && bytes >= FLUSH_BYTES)
		return flush(filter, (const char *)from, bytes);
	buffer_add(&filter->out, (const char *)from, bytes);
	return result;
}

static int copy_buffer(struct reducer_xplane_filter *filter, const struct buffer *buffer)
{
	const uint8_t *from = (const uint8_t *)buffer->data;
	return buffer->bytes ? copy(filter, from, from + buffer->bytes) : 0;
}

static void add_length(struct reducer_xplane_filter *filter, uint32_t number, uint64_t bytes)
{
	proto_add_tag(&filter->out, number, PROTO_BYTES);
	proto_add_varint(&filter->out, bytes);
}

static int write_row(struct reducer_xplane_filter *filter, const struct xplane_row *row,
		     const struct filter_row *to)
{
	struct proto rest = row->content;
	struct proto_field field;
	struct xplane_line line;
	int result = 0;
	xplane_parse_line(row->content, &line);
	add_length(filter, XPLANE_LINES, to->bytes);
	while (result == 0 && proto_next(&rest, &field) > 0)
		if (event_stays(filter, &line, &field) > 0)
			result = copy(filter, field.from, rest.at);
	return result ? result : copy_buffer(filter, &to->added);
}

/* A line that is copied as it is still has its events counted. */
static void pass_row(struct reducer_xplane_filter *filter, const struct xplane_row *row)
{
	struct proto rest = row->content;
	struct proto_field field;
	struct xplane_line line;
	xplane_parse_line(row->content, &line);
	while (proto_next(&rest, &field) > 0)
		event_stays(filter, &line, &field);
}

static int write_plane(struct reducer_xplane_filter *filter, uint32_t index, bool gone)
{
	const struct xplane_plane *plane = &filter->space.plane[index];
	const struct filter_plane *to = &filter->plane[index];
	struct proto rest = plane->content;
	struct proto_field field;
	uint32_t row = 0;
	int result = 0;
	if (!to->changed || gone) {
		for (; row < plane->n_rows; row++)
			pass_row(filter, &plane->row[row]);
		return gone ? 0 : copy(filter, plane->from, plane->content.end);
	}
	add_length(filter, XSPACE_PLANES, to->bytes);
	while (result == 0 && proto_next(&rest, &field) > 0) {
		if (is_line(&field) && to->row[row].changed) {
			result = write_row(filter, &plane->row[row], &to->row[row]);
		} else {
			if (is_line(&field))
				pass_row(filter, &plane->row[row]);
			result = copy(filter, field.from, rest.at);
		}
		row += is_line(&field);
	}
	return result ? result : copy_buffer(filter, &to->names.fields);
}

static bool is_plane(const struct proto_field *field)
{
	return field->number == XSPACE_PLANES && field->wire == PROTO_BYTES;
}

/* All of the file; without a plane's bytes where it only measures. */
static int measure(struct reducer_xplane_filter *filter, uint64_t *ret_bytes)
{
	struct proto rest =
		proto_of((struct reducer_text){(const char *)filter->space.data, filter->space.bytes});
	struct proto_field field;
	uint32_t plane = 0;
	uint64_t bytes = filter->mark.bytes;
	filter->next_event = 0;
	while (proto_next(&rest, &field) > 0) {
		if (!is_plane(&field)) {
			bytes += (uint64_t)(rest.at - field.from);
			continue;
		}
		int result = measure_plane(filter, plane);
		if (result < 0)
			return result;
		const struct filter_plane *to = &filter->plane[plane];
		if (!gives_way(filter, plane))
			bytes += to->changed ? length_bytes(to->bytes) + to->bytes
					     : (uint64_t)(rest.at - field.from);
		plane++;
	}
	*ret_bytes = bytes;
	return 0;
}

static int write_all(struct reducer_xplane_filter *filter)
{
	struct proto rest =
		proto_of((struct reducer_text){(const char *)filter->space.data, filter->space.bytes});
	struct proto_field field;
	uint32_t plane = 0;
	int result = 0;
	filter->next_event = 0;
	while (result == 0 && proto_next(&rest, &field) > 0) {
		if (is_plane(&field)) {
			result = write_plane(filter, plane, gives_way(filter, plane));
			plane++;
		} else {
			result = copy(filter, field.from, rest.at);
		}
	}
	if (result == 0)
		result = copy_buffer(filter, &filter->mark);
	return result ? result : flush_out(filter);
}

static bool has_stat(const struct xplane_map *stats, const char *name)
{
	for (size_t i = 0; i < stats->room; i++)
		if (stats->entry[i].taken && text_is(xplane_entry_text(&stats->entry[i]), name))
			return true;
	return false;
}

/* XProf leaves the lines of a plane as they are where it has a stat of this name. */
static int add_group_ids(struct reducer_xplane_filter *filter)
{
	for (uint32_t i = 0; i < filter->space.n_planes; i++) {
		struct filter_plane *plane = &filter->plane[i];
		if (!xw_is_drawn(filter->space.plane[i].name))
			continue;
		int result = load_names(filter, i);
		if (result < 0)
			return result;
		if (!has_stat(&plane->stats, "group_id") &&
		    !xplane_names_stat(&plane->names, xw_literal("group_id"), false))
			return -ENOMEM;
	}
	return 0;
}

int reducer_xplane_filter_write(struct reducer_xplane_filter *filter, const uint8_t *keep, uint64_t n_events,
				int fd, uint64_t *ret_bytes)
{
	uint64_t bytes;
	int result = filter->mark.bytes ? add_group_ids(filter) : 0;
	if (result < 0)
		return result;
	filter->keep = keep;
	filter->n_events = n_events;
	filter->fd = fd;
	filter->written = 0;
	result = measure(filter, &bytes);
	if (result == 0 && keep && filter->next_event != n_events)
		result = -EINVAL;
	if (result == 0 && bytes > XPLANE_BYTES_MAX)
		result = -EFBIG;
	if (result == 0)
		result = write_all(filter);
	if (result == 0 && filter->written != bytes)
		result = -EIO; /* the file has changed between the sweeps */
	if (result == 0)
		*ret_bytes = bytes;
	return result;
}

void reducer_xplane_filter_free(struct reducer_xplane_filter *filter)
{
	if (!filter)
		return;
	for (size_t i = 0; filter->plane && i < filter->space.n_planes; i++) {
		struct filter_plane *plane = &filter->plane[i];
		for (size_t j = 0; plane->row && j < filter->space.plane[i].n_rows; j++)
			buffer_free(&plane->row[j].added);
		free(plane->row);
		xplane_map_free(&plane->events);
		xplane_map_free(&plane->stats);
		xplane_names_free(&plane->names);
	}
	free(filter->plane);
	free(filter->place);
	xplane_intern_free(&filter->tracks);
	xplane_stats_free(&filter->scratch);
	xplane_names_free(&filter->mark_names);
	buffer_free(&filter->key);
	buffer_free(&filter->mark);
	buffer_free(&filter->out);
	xplane_space_free(&filter->space);
	xplane_file_free(&filter->file);
	free(filter);
}
