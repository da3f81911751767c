/* SPDX-License-Identifier: Apache-2.0 */
#include "xplane_writer_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <reducer/marks.h>

#include "decimal.h"
#include "json.h"
#include "text.h"
#include "writer_inside.h"
#include "xplane_parse.h"
#include "xplane_space.h"
#include "xplane_value.h"

struct reducer_text xw_text(const struct buffer *buffer)
{
	return (struct reducer_text){buffer->data, buffer->bytes};
}

struct reducer_text xw_literal(const char *literal)
{
	return (struct reducer_text){literal, strlen(literal)};
}

/* Room for one more of a growing array; -ENOMEM, or -EFBIG where numbers run out. */
static int make_room(void **items, uint32_t count, uint32_t *room, size_t item_bytes)
{
	if (count < *room)
		return 0;
	if (*room >= UINT32_MAX / 2)
		return -EFBIG;
	uint32_t more = *room ? *room * 2 : 16;
	void *grown = realloc(*items, more * item_bytes);
	if (!grown)
		return -ENOMEM;
	*items = grown;
	*room = more;
	return 0;
}

static uint32_t add_plane(struct reducer_xplane_writer *w, struct reducer_text group)
{
	if (make_room((void **)&w->plane, w->n_planes, &w->room_planes, sizeof(*w->plane)) < 0)
		return XW_NOTHING;
	struct xw_plane *plane = &w->plane[w->n_planes];
	*plane = (struct xw_plane){0};
	buffer_add_text(&plane->group, group);
	return w->n_planes++;
}

/* As every writer says what is no valid JSON; whoever reads the file takes no other. */
static struct reducer_text valid(struct buffer *scratch, struct reducer_text value)
{
	if (value.bytes == 0 || json_valid(value))
		return value;
	buffer_clear(scratch);
	json_repair(scratch, value);
	return xw_text(scratch);
}

static uint32_t plane_of_valid(struct reducer_xplane_writer *w, struct reducer_text group)
{
	int64_t *number = xplane_intern(&w->planes, group);
	if (!number)
		return XW_NOTHING;
	if (*number)
		return (uint32_t)(*number - 1);
	uint32_t index = add_plane(w, group);
	*number = (int64_t)index + 1;
	return index;
}

uint32_t xw_plane_of(struct reducer_xplane_writer *w, struct reducer_text group)
{
	struct buffer scratch = {0};
	uint32_t index = plane_of_valid(w, valid(&scratch, group));
	if (scratch.failed)
		index = XW_NOTHING;
	buffer_free(&scratch);
	return index;
}

uint32_t xw_special_plane(struct reducer_xplane_writer *w, const char *name)
{
	for (uint32_t i = 0; i < w->n_planes; i++)
		if (w->plane[i].special && text_is(xw_text(&w->plane[i].name), name))
			return i;
	uint32_t index = add_plane(w, (struct reducer_text){NULL, 0});
	if (index != XW_NOTHING) {
		w->plane[index].special = true;
		buffer_add_literal(&w->plane[index].name, name);
	}
	return index;
}

uint32_t xw_add_row(struct reducer_xplane_writer *w, const struct xw_row *row)
{
	if (make_room((void **)&w->row, w->n_rows, &w->room_rows, sizeof(*w->row)) < 0)
		return XW_NOTHING;
	w->row[w->n_rows] = *row;
	return w->n_rows++;
}

static uint32_t row_of_valid(struct reducer_xplane_writer *w, uint32_t plane, enum xw_row_kind kind,
			     struct reducer_text track)
{
	if (plane == XW_NOTHING)
		return XW_NOTHING;
	buffer_clear(&w->key);
	buffer_add_u64(&w->key, plane);
	buffer_add_byte(&w->key, kind == XW_THREAD ? 't' : kind == XW_COUNTERS ? 'c' : 'a');
	buffer_add_text(&w->key, track);
	int64_t *number = w->key.failed ? NULL : xplane_intern(&w->rows, xw_text(&w->key));
	if (!number)
		return XW_NOTHING;
	if (*number)
		return (uint32_t)(*number - 1);
	struct xw_row row = {.plane = plane, .kind = kind, .part_of = XW_NOTHING};
	if (kind == XW_ASYNC)
		buffer_add_text(&row.name, track);
	else
		buffer_add_text(&row.track, track);
	if (kind == XW_COUNTERS)
		buffer_add_literal(&row.name, XPLANE_COUNTERS);
	uint32_t index = xw_add_row(w, &row);
	*number = (int64_t)index + 1;
	return index;
}

uint32_t xw_row_of(struct reducer_xplane_writer *w, uint32_t plane, enum xw_row_kind kind,
		   struct reducer_text track)
{
	struct buffer scratch = {0};
	/* What is async is called by its name, which is no JSON. */
	uint32_t index = row_of_valid(w, plane, kind, kind == XW_ASYNC ? track : valid(&scratch, track));
	if (scratch.failed)
		index = XW_NOTHING;
	buffer_free(&scratch);
	return index;
}

int xw_add_event(struct reducer_xplane_writer *w, struct xw_event event)
{
	int result = xplane_stats_failed(&w->scratch);
	if (result == 0 && w->scratch.stats.bytes > UINT32_MAX)
		result = -EFBIG;
	if (result == 0)
		result = make_room((void **)&w->event, w->n_events, &w->room_events, sizeof(*w->event));
	event.bytes = (uint32_t)w->scratch.stats.bytes;
	if (result == 0 && event.bytes)
		result = spool_add(w->spool, w->scratch.stats.data, event.bytes, &event.place);
	if (result < 0)
		return result;
	w->event[w->n_events++] = event;
	w->stats.events++;
	return 0;
}

/* The id of an event's name; all of one plane are below 2^32 for their number is. */
static uint32_t name_id(struct reducer_xplane_writer *w, uint32_t plane, struct reducer_text name)
{
	return (uint32_t)xplane_names_event(&w->plane[plane].names, name, xw_text(&w->scratch.rest));
}

static void say_args(struct reducer_xplane_writer *w, const struct reducer_event *event)
{
	bool merged = text_is(event->category, REDUCER_MARK_MERGED);
	if (!event->args.bytes)
		return;
	if (event->args_flag != DREC_FLAG_ARGS_JSON || (w->options.strip_args && !merged))
		w->left_out[XW_LEFT_ARGS]++;
	else
		xplane_stats_add_args(&w->scratch, event->args);
}

static struct xw_event times_of(const struct reducer_event *event, enum xw_kind kind)
{
	return (struct xw_event){
		.start_ns = event->start_ns, .start_ps = event->start_ps, .duration_ns = event->duration_ns,
		.duration_ps = event->duration_ps, .kind = (uint8_t)kind, .partner = XW_NOTHING,
	};
}

static int add_named(struct reducer_xplane_writer *w, struct xw_event event, uint32_t row,
		     struct reducer_text name)
{
	event.row = row;
	event.metadata = name_id(w, w->row[row].plane, name);
	return xw_add_event(w, event);
}

static int add_plain(struct reducer_xplane_writer *w, const struct reducer_event *event, enum xw_kind kind)
{
	uint32_t row = xw_row_of(w, xw_plane_of(w, event->group), XW_THREAD, event->track);
	if (row == XW_NOTHING)
		return -ENOMEM;
	xplane_stats_clear(&w->scratch, &w->plane[w->row[row].plane].names, XEVENT_STATS);
	say_args(w, event);
	xplane_stats_add_event(&w->scratch, event);
	struct xw_event one = times_of(event, kind);
	one.row = row;
	/* An end without a name closes whatever is open. */
	if (kind != XW_END || event->name.bytes)
		one.metadata = name_id(w, w->row[row].plane, event->name);
	return xw_add_event(w, one);
}

/* What a begin and its end have in common: scope, id, category and name. */
static uint32_t async_key(struct reducer_xplane_writer *w, uint32_t plane, const struct reducer_event *event)
{
	static const char *const further[] = {"\"id\"", "\"id2\"", "\"scope\""};
	buffer_clear(&w->key);
	buffer_add_u64(&w->key, plane);
	buffer_add_byte(&w->key, ' ');
	if (event->has_id)
		buffer_add_u64(&w->key, event->id);
	for (size_t i = 0; i < sizeof(further) / sizeof(further[0]); i++) {
		struct reducer_text rest = event->extra, key, value;
		while (json_next_member(&rest, &key, &value)) {
			if (!text_is(key, further[i]))
				continue;
			buffer_add_text(&w->key, key);
			buffer_add_text(&w->key, value);
			break;
		}
	}
	buffer_add_byte(&w->key, '\0');
	buffer_add_text(&w->key, event->category);
	buffer_add_byte(&w->key, '\0');
	buffer_add_text(&w->key, event->name);
	int64_t *number = w->key.failed ? NULL : xplane_intern(&w->keys, xw_text(&w->key));
	if (!number)
		return XW_NOTHING;
	if (!*number)
		*number = (int64_t)++w->n_keys;
	return (uint32_t)*number;
}

static int add_async(struct reducer_xplane_writer *w, const struct reducer_event *event, enum xw_kind kind)
{
	uint32_t plane = xw_plane_of(w, event->group);
	uint32_t row = xw_row_of(w, plane, XW_ASYNC, event->name);
	if (row == XW_NOTHING)
		return -ENOMEM;
	xplane_stats_clear(&w->scratch, &w->plane[plane].names, XEVENT_STATS);
	say_args(w, event);
	/* The end's own are those of the begin. */
	if (kind != XW_ASYNC_END)
		xplane_stats_add_event(&w->scratch, event);
	struct xw_event one = times_of(event, kind);
	if (kind != XW_INSTANT)
		one.partner = async_key(w, plane, event);
	w->left_out[XW_LEFT_ASYNC]++;
	return add_named(w, one, row, event->name);
}

/* The row of the line that it came from, where it came from an XPlane; else one of its own. */
static uint32_t counter_row(struct reducer_xplane_writer *w, const struct reducer_event *event)
{
	uint32_t plane = xw_plane_of(w, event->group);
	if (plane == XW_NOTHING)
		return XW_NOTHING;
	if (w->plane[plane].has_info) {
		uint32_t row = xw_row_of(w, plane, XW_THREAD, event->track);
		if (row == XW_NOTHING || text_is(xw_text(&w->row[row].name), XPLANE_COUNTERS))
			return row;
	}
	return xw_row_of(w, plane, XW_COUNTERS, event->track);
}

static void say_number(struct reducer_xplane_writer *w, const char *name, struct reducer_text key,
		       unsigned kind, uint64_t bits)
{
	struct buffer *out = &w->scratch.stats;
	struct reducer_text said = key.bytes ? key : xw_literal(name);
	int64_t id = xplane_names_stat(w->scratch.names, said, false);
	size_t begun = proto_begin(out, XEVENT_STATS);
	proto_add_u64(out, XSTAT_METADATA_ID, (uint64_t)id);
	if (kind == XSTAT_DOUBLE)
		proto_add_fixed64(out, kind, bits);
	else
		proto_add_u64(out, kind, bits);
	proto_end(out, begun);
}

/* One series of a counter: `key` is its name, alone says whether the counter has no other. */
static int add_series(struct reducer_xplane_writer *w, const struct reducer_event *event, uint32_t row,
		      struct reducer_text key, bool alone, unsigned kind, uint64_t bits)
{
	struct reducer_text name = event->name;
	xplane_stats_clear(&w->scratch, &w->plane[w->row[row].plane].names, XEVENT_STATS);
	say_number(w, "value", key, kind, bits);
	if (alone) {
		xplane_stats_add_event(&w->scratch, event);
	} else {
		buffer_clear(&w->key);
		buffer_add_text(&w->key, event->name);
		buffer_add_byte(&w->key, ' ');
		buffer_add_text(&w->key, key);
		name = xw_text(&w->key);
		w->left_out[XW_LEFT_SERIES]++;
	}
	return add_named(w, times_of(event, XW_INSTANT), row, name);
}

static size_t count_numbers(struct reducer_text args)
{
	uint64_t bits;
	size_t n = 0;
	if (args.bytes < 2 || args.data[0] != '{')
		return 0;
	struct reducer_text rest = {args.data + 1, args.bytes - 2}, key, value;
	while (json_next_member(&rest, &key, &value))
		n += xplane_number_of(value, &bits) != XSTAT_NONE;
	return n;
}

static int add_counter(struct reducer_xplane_writer *w, const struct reducer_event *event)
{
	uint32_t row = counter_row(w, event);
	size_t n = count_numbers(event->args);
	uint64_t bits, before = w->stats.events;
	int result = 0;
	if (row == XW_NOTHING)
		return -ENOMEM;
	if (n == 0 && event->args.bytes) {
		w->left_out[XW_LEFT_NO_NUMBER]++;
		return 0;
	}
	if (n == 0) {
		memcpy(&bits, &event->value, sizeof(bits));
		return add_series(w, event, row, (struct reducer_text){NULL, 0}, true, XSTAT_DOUBLE, bits);
	}
	struct reducer_text rest = {event->args.data + 1, event->args.bytes - 2}, key, value, name;
	while (result == 0 && json_next_member(&rest, &key, &value)) {
		unsigned kind = xplane_number_of(value, &bits);
		if (!kind)
			w->left_out[XW_LEFT_NO_NUMBER]++;
		else if (!xplane_string_of(&w->text, key, &name))
			result = -ENOMEM;
		else
			result = add_series(w, event, row, name, n == 1, kind, bits);
	}
	w->stats.events = before + 1;
	return result;
}

static int add_mark(struct reducer_xplane_writer *w, const struct reducer_event *event)
{
	bool step = event->mark == DREC_MARK_STEP_BEGIN || event->mark == DREC_MARK_STEP_END;
	bool phase = event->mark == DREC_MARK_PHASE_BEGIN || event->mark == DREC_MARK_PHASE_END;
	bool end = event->mark == DREC_MARK_STEP_END || event->mark == DREC_MARK_PHASE_END;
	struct buffer *name = &w->text;
	uint32_t row = xw_row_of(w, xw_plane_of(w, event->group), XW_THREAD, event->track);
	if (row == XW_NOTHING)
		return -ENOMEM;
	buffer_clear(name);
	if (step) {
		buffer_add_literal(name, "step ");
		buffer_add_u64(name, event->id);
	} else if (phase) {
		buffer_add_literal(name, "phase ");
		buffer_add_text(name, event->name);
	} else {
		buffer_add_literal(name, drec_mark_name(event->mark));
	}
	if ((step || phase) && !end)
		buffer_add_literal(name, " begins");
	xplane_stats_clear(&w->scratch, &w->plane[w->row[row].plane].names, XEVENT_STATS);
	if (event->args.bytes)
		say_args(w, event);
	else if (event->name.bytes)
		xplane_stats_add_text(&w->scratch, "phase", event->name);
	xplane_stats_add_text(&w->scratch, xplane_own_name(XPLANE_OWN_CATEGORY), xw_literal("driverec.mark"));
	return add_named(w, times_of(event, end ? XW_SPAN : XW_INSTANT), row, xw_text(name));
}

static int add_loss(struct reducer_xplane_writer *w, const struct reducer_event *event)
{
	uint32_t row = xw_row_of(w, xw_plane_of(w, event->group), XW_THREAD, event->track);
	if (row == XW_NOTHING)
		return -ENOMEM;
	buffer_clear(&w->text);
	buffer_add_literal(&w->text, "lost: ");
	buffer_add_literal(&w->text, drec_loss_name(event->mark));
	xplane_stats_clear(&w->scratch, &w->plane[w->row[row].plane].names, XEVENT_STATS);
	xplane_stats_add_u64(&w->scratch, "events", event->count);
	xplane_stats_add_u64(&w->scratch, "for_ns",
			     event->duration_ns < 0 ? 0 : (uint64_t)event->duration_ns);
	xplane_stats_add_text(&w->scratch, xplane_own_name(XPLANE_OWN_CATEGORY), xw_literal("driverec.loss"));
	return add_named(w, times_of(event, XW_INSTANT), row, xw_text(&w->text));
}

static int leave_out(struct reducer_xplane_writer *w, enum xw_left why)
{
	w->left_out[why]++;
	return 0;
}

static int take_event(struct reducer_xplane_writer *w, const struct reducer_event *event)
{
	switch (event->kind) {
	case DREC_META:
		return xw_meta(w, event);
	case DREC_FLOW_BEGIN:
	case DREC_FLOW_STEP:
	case DREC_FLOW_END:
		return leave_out(w, XW_LEFT_FLOWS);
	case DREC_OTHER:
		return leave_out(w, XW_LEFT_OTHER);
	default:
		break;
	}
	if (!event->has_time)
		return leave_out(w, XW_LEFT_NO_TIME);
	switch (event->kind) {
	case DREC_SPAN:
		return add_plain(w, event, XW_SPAN);
	case DREC_INSTANT:
		return add_plain(w, event, XW_INSTANT);
	case DREC_BEGIN:
		return add_plain(w, event, XW_BEGIN);
	case DREC_END:
		return add_plain(w, event, XW_END);
	case DREC_COUNTER:
		return add_counter(w, event);
	case DREC_ASYNC_BEGIN:
		return add_async(w, event, XW_ASYNC_BEGIN);
	case DREC_ASYNC_INSTANT:
		return add_async(w, event, XW_INSTANT);
	case DREC_ASYNC_END:
		return add_async(w, event, XW_ASYNC_END);
	case DREC_MARK:
		return add_mark(w, event);
	case DREC_LOSS:
		return add_loss(w, event);
	default:
		return leave_out(w, XW_LEFT_OTHER);
	}
}

int reducer_xplane_writer_new(int fd, const struct reducer_writer_options *options, const char *spool_dir,
			      struct reducer_xplane_writer **ret_writer)
{
	struct reducer_xplane_writer *w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->fd = fd;
	if (options)
		w->options = *options;
	int result = spool_new(spool_dir, &w->spool);
	if (result < 0) {
		free(w);
		return result;
	}
	*ret_writer = w;
	return 0;
}

int reducer_xplane_writer_event(struct reducer_xplane_writer *w, const struct reducer_event *event)
{
	if (!w->failed)
		w->failed = take_event(w, event);
	return w->failed;
}

int reducer_xplane_writer_member(struct reducer_xplane_writer *w, const struct reducer_member *member)
{
	if (!w->failed)
		w->failed = xw_member(w, member);
	return w->failed;
}

int reducer_xplane_writer_finish(struct reducer_xplane_writer *w)
{
	if (!w->failed)
		w->failed = xw_pair(w);
	if (!w->failed)
		w->failed = xw_lay_out(w);
	if (!w->failed)
		w->failed = xw_write(w);
	return w->failed;
}

const struct reducer_writer_stats *reducer_xplane_writer_stats(const struct reducer_xplane_writer *w)
{
	return &w->stats;
}

size_t reducer_xplane_writer_left_out(const struct reducer_xplane_writer *w, struct reducer_left_out *ret,
				      size_t room)
{
	static const char *const what[XW_LEFT_KINDS] = {
		[XW_LEFT_FLOWS] = "flow ends",
		[XW_LEFT_OPEN] = "spans that never end",
		[XW_LEFT_ENDS] = "ends without a begin",
		[XW_LEFT_ASYNC] = "asynchronous events (kept as plain ones)",
		[XW_LEFT_OTHER] = "events of unknown kinds",
		[XW_LEFT_SERIES] = "series of counters (kept as one counter each)",
		[XW_LEFT_NO_NUMBER] = "values of counters that are no numbers",
		[XW_LEFT_ARGS] = "args of events",
		[XW_LEFT_NO_TIME] = "events without a time",
		[XW_LEFT_FAR] = "events more than 53 days from the others",
		[XW_LEFT_MEMBERS] = "top-level members",
		[XW_LEFT_OVERLAP] = "spans that overlap on one line (512 lines of their track are full)",
	};
	size_t count = 0;
	for (int i = 0; i < XW_LEFT_KINDS; i++)
		writer_add_left_out(ret, room, &count, what[i], w->left_out[i]);
	return count;
}

void reducer_xplane_writer_free(struct reducer_xplane_writer *w)
{
	if (!w)
		return;
	for (uint32_t i = 0; i < w->n_rows; i++) {
		buffer_free(&w->row[i].track);
		buffer_free(&w->row[i].name);
		buffer_free(&w->row[i].display_name);
		buffer_free(&w->row[i].sort_index);
	}
	for (uint32_t i = 0; i < w->n_planes; i++) {
		buffer_free(&w->plane[i].group);
		buffer_free(&w->plane[i].name);
		buffer_free(&w->plane[i].stats);
		xplane_names_free(&w->plane[i].names);
	}
	free(w->row);
	free(w->plane);
	free(w->event);
	free(w->order);
	xplane_intern_free(&w->planes);
	xplane_intern_free(&w->rows);
	xplane_intern_free(&w->keys);
	xplane_stats_free(&w->scratch);
	buffer_free(&w->text);
	buffer_free(&w->key);
	buffer_free(&w->texts);
	spool_free(w->spool);
	free(w);
}
