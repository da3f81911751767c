/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata events and members. Those that xplane.h delivers for a field of an XPlane go back there; any other
 * one is noted in a stat and comes back from it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <reducer/marks.h>

#include "decimal.h"
#include "json.h"
#include "text.h"
#include "xplane_parse.h"
#include "xplane_space.h"
#include "xplane_value.h"
#include "xplane_writer_inside.h"

/* An integer member of the args, `otherwise` where there is none. */
static int64_t integer_of(struct reducer_text args, const char *key, int64_t otherwise)
{
	int64_t value;
	return decimal_i64(xplane_member_of(args, key), &value) ? value : otherwise;
}

/* The text that a member of the args says goes to `out`; false where it is no text. */
static bool take_text(struct reducer_xplane_writer *w, struct reducer_text args, const char *key,
		      struct buffer *out)
{
	struct reducer_text text;
	if (!xplane_string_of(&w->text, xplane_member_of(args, key), &text))
		return false;
	buffer_clear(out);
	buffer_add_text(out, text);
	return true;
}

static void add_member(struct buffer *out, const char *key, struct reducer_text value, const char *opening,
		       const char *closing)
{
	if (!value.bytes)
		return;
	if (out->bytes > 1)
		buffer_add_byte(out, ',');
	buffer_add_literal(out, key);
	buffer_add_literal(out, opening);
	buffer_add_text(out, value);
	buffer_add_literal(out, closing);
}

/* A metadata event that no field stands for. */
static int note(struct reducer_xplane_writer *w, uint32_t plane, struct reducer_text name,
		struct reducer_text track, struct reducer_text args, struct reducer_text extra)
{
	struct buffer value = {0};
	int result;
	buffer_add_byte(&value, '{');
	buffer_add_literal(&value, "\"name\":");
	json_quote(&value, name);
	add_member(&value, "\"tid\":", track, "", "");
	add_member(&value, "\"args\":", args, "", "");
	add_member(&value, "\"extra\":", extra, "{", "}");
	buffer_add_byte(&value, '}');
	xplane_stats_clear(&w->scratch, &w->plane[plane].names, XPLANE_STATS);
	xplane_stats_add_text(&w->scratch, xplane_own_name(XPLANE_OWN_META), xw_text(&value));
	buffer_add_text(&w->plane[plane].stats, xw_text(&w->scratch.stats));
	result = value.failed ? value.failed : xplane_stats_failed(&w->scratch);
	buffer_free(&value);
	return result ? result : w->plane[plane].stats.failed;
}

static int add_plane_stats(struct reducer_xplane_writer *w, uint32_t plane, struct reducer_text args)
{
	xplane_stats_clear(&w->scratch, &w->plane[plane].names, XPLANE_STATS);
	xplane_stats_add_args(&w->scratch, args);
	buffer_add_text(&w->plane[plane].stats, xw_text(&w->scratch.stats));
	int result = xplane_stats_failed(&w->scratch);
	return result ? result : w->plane[plane].stats.failed;
}

static int take_plane_info(struct reducer_xplane_writer *w, uint32_t plane, const struct reducer_event *event)
{
	w->plane[plane].has_info = w->any_info = true;
	w->plane[plane].id = integer_of(event->args, "id", 0);
	return 0;
}

static int take_process_name(struct reducer_xplane_writer *w, uint32_t plane,
			     const struct reducer_event *event)
{
	if (!take_text(w, event->args, "name", &w->plane[plane].name))
		return note(w, plane, event->name, event->track, event->args, event->extra);
	w->plane[plane].named = true;
	return w->plane[plane].name.failed;
}

/* The reader says the pid as sort index: then there is nothing to note. */
static int take_process_sort_index(struct reducer_xplane_writer *w, uint32_t plane,
				   const struct reducer_event *event)
{
	struct reducer_text index = xplane_member_of(event->args, "sort_index");
	if (index.bytes && index.bytes == event->group.bytes &&
	    memcmp(index.data, event->group.data, index.bytes) == 0)
		return 0;
	return note(w, plane, event->name, event->track, event->args, event->extra);
}

static int take_thread_name(struct reducer_xplane_writer *w, uint32_t plane,
			    const struct reducer_event *event)
{
	uint32_t row = xw_row_of(w, plane, XW_THREAD, event->track);
	if (row == XW_NOTHING)
		return -ENOMEM;
	if (!take_text(w, event->args, "name", &w->row[row].name))
		return note(w, plane, event->name, event->track, event->args, event->extra);
	return w->row[row].name.failed;
}

static int take_thread_sort_index(struct reducer_xplane_writer *w, uint32_t plane,
				  const struct reducer_event *event)
{
	uint32_t row = xw_row_of(w, plane, XW_THREAD, event->track);
	if (row == XW_NOTHING)
		return -ENOMEM;
	buffer_clear(&w->row[row].sort_index);
	buffer_add_text(&w->row[row].sort_index, event->args);
	return w->row[row].sort_index.failed;
}

static int take_line_info(struct reducer_xplane_writer *w, uint32_t plane, const struct reducer_event *event)
{
	uint32_t index = xw_row_of(w, plane, XW_THREAD, event->track);
	if (index == XW_NOTHING)
		return -ENOMEM;
	struct xw_row *row = &w->row[index];
	row->has_info = true;
	row->timestamp_ns = integer_of(event->args, "timestamp_ns", 0);
	row->duration_ps = integer_of(event->args, "duration_ps", 0);
	row->display_id = integer_of(event->args, "display_id", 0);
	take_text(w, event->args, "display_name", &row->display_name);
	return row->display_name.failed;
}

/* The args of an aggregated event or of metadata, less what is a field: the rest are stats. */
static int say_rest(struct reducer_xplane_writer *w, uint32_t plane, struct reducer_text args,
		    bool aggregated)
{
	static const char *const fields[] = {"\"name\"", "\"num_occurrences\"", "\"duration_ps\""};
	struct reducer_text rest = {args.data + 1, args.bytes - 2}, key, value;
	bool taken[3] = {false};
	struct buffer kept = {0};
	buffer_add_byte(&kept, '{');
	while (json_next_member(&rest, &key, &value)) {
		bool field = false;
		for (int i = 0; i < (aggregated ? 3 : 1) && !field; i++)
			if (!taken[i] && text_is(key, fields[i]))
				field = taken[i] = true;
		if (field)
			continue;
		add_member(&kept, "", key, "", ":");
		buffer_add_text(&kept, value);
	}
	buffer_add_byte(&kept, '}');
	xplane_stats_clear(&w->scratch, &w->plane[plane].names, XEVENT_STATS);
	if (!kept.failed)
		xplane_stats_add_args(&w->scratch, xw_text(&kept));
	int result = kept.failed ? kept.failed : xplane_stats_failed(&w->scratch);
	buffer_free(&kept);
	return result;
}

/* The first member that has the name, for stats may have the same. */
static struct reducer_text first_member_of(struct reducer_text args, const char *quoted_key)
{
	struct reducer_text rest = {args.data + 1, args.bytes - 2}, key, value;
	while (json_next_member(&rest, &key, &value))
		if (text_is(key, quoted_key))
			return value;
	return (struct reducer_text){NULL, 0};
}

static int take_aggregated(struct reducer_xplane_writer *w, uint32_t plane, const struct reducer_event *event)
{
	struct xw_event one = {.kind = XW_AGGREGATED, .partner = XW_NOTHING};
	struct reducer_text name;
	int64_t ps;
	if (event->args.bytes < 2 || event->args.data[0] != '{' ||
	    !decimal_i64(first_member_of(event->args, "\"num_occurrences\""), &one.start_ns))
		return note(w, plane, event->name, event->track, event->args, event->extra);
	one.row = xw_row_of(w, plane, XW_THREAD, event->track);
	if (one.row == XW_NOTHING)
		return -ENOMEM;
	int result = say_rest(w, plane, event->args, true);
	if (result < 0)
		return result;
	one.has_duration = decimal_i64(first_member_of(event->args, "\"duration_ps\""), &ps);
	one.duration_ns = one.has_duration ? ps : 0;
	if (!xplane_string_of(&w->text, first_member_of(event->args, "\"name\""), &name))
		name = (struct reducer_text){NULL, 0};
	one.metadata = (uint32_t)xplane_names_event(&w->plane[plane].names, name, xw_text(&w->scratch.rest));
	return xw_add_event(w, one);
}

static int take_event_metadata(struct reducer_xplane_writer *w, uint32_t plane,
			       const struct reducer_event *event)
{
	struct reducer_text name;
	if (event->args.bytes < 2 || event->args.data[0] != '{' ||
	    !xplane_string_of(&w->key, first_member_of(event->args, "\"name\""), &name))
		return note(w, plane, event->name, event->track, event->args, event->extra);
	int result = say_rest(w, plane, event->args, false);
	if (result < 0)
		return result;
	/* What is no field of metadata has no place in it. */
	if (w->scratch.stats.bytes)
		return note(w, plane, event->name, event->track, event->args, event->extra);
	if (!xplane_names_event(&w->plane[plane].names, name, xw_text(&w->scratch.rest)))
		return -ENOMEM;
	w->stats.events++;
	return 0;
}

static int take_reduced(struct reducer_xplane_writer *w, const struct reducer_event *event)
{
	uint32_t plane = xw_special_plane(w, REDUCER_MARK_REDUCED);
	w->reduced = true;
	return plane == XW_NOTHING ? -ENOMEM : add_plane_stats(w, plane, event->args);
}

static int take_plane_stats(struct reducer_xplane_writer *w, uint32_t plane,
			    const struct reducer_event *event)
{
	return add_plane_stats(w, plane, event->args);
}

static const struct {
	const char *name;
	int (*take)(struct reducer_xplane_writer *w, uint32_t plane, const struct reducer_event *event);
	bool of_xplane; /* only where the process is a plane that was read */
	bool event;     /* counts itself */
} metas[] = {
	{"process_name", take_process_name, false, false},
	{"process_sort_index", take_process_sort_index, false, false},
	{"thread_name", take_thread_name, false, false},
	{"thread_sort_index", take_thread_sort_index, false, false},
	{"plane_info", take_plane_info, false, false},
	{"plane_stats", take_plane_stats, false, false},
	{"line_info", take_line_info, true, false},
	{"aggregated_event", take_aggregated, true, true},
	{"event_metadata", take_event_metadata, true, true},
};

int xw_meta(struct reducer_xplane_writer *w, const struct reducer_event *event)
{
	if (text_is(event->name, REDUCER_MARK_REDUCED)) {
		w->stats.events++;
		return take_reduced(w, event);
	}
	uint32_t plane = xw_plane_of(w, event->group);
	if (plane == XW_NOTHING || w->plane[plane].group.failed)
		return -ENOMEM;
	for (size_t i = 0; i < sizeof(metas) / sizeof(metas[0]); i++) {
		if (!text_is(event->name, metas[i].name) || (metas[i].of_xplane && !w->plane[plane].has_info))
			continue;
		w->stats.events += !metas[i].event;
		return metas[i].take(w, plane, event);
	}
	w->stats.events++;
	return note(w, plane, event->name, event->track, event->args, event->extra);
}

int xw_note_rows(struct reducer_xplane_writer *w)
{
	int result = 0;
	for (uint32_t i = 0; i < w->n_rows && result == 0; i++) {
		struct xw_row *row = &w->row[i];
		if (row->sort_index.bytes && !row->has_info)
			result = note(w, row->plane, xw_literal("thread_sort_index"), xw_text(&row->track),
				      xw_text(&row->sort_index), (struct reducer_text){NULL, 0});
	}
	return result;
}

/* A JSON array of texts as repeated fields; false where it is something else. */
static bool take_texts(struct reducer_xplane_writer *w, uint32_t number, struct reducer_text json)
{
	const char *p = json.data + 1, *end = json.data + json.bytes;
	size_t before = w->texts.bytes;
	struct reducer_text text;
	if (json.bytes < 2 || json.data[0] != '[' || !json_valid(json))
		return false;
	for (;;) {
		p = json_skip_space(p, end);
		const char *value = p;
		if (p < end && *p == ']')
			return true;
		if (json_value(&p, end, false) != JSON_OK ||
		    !xplane_string_of(&w->text, (struct reducer_text){value, (size_t)(p - value)}, &text)) {
			w->texts.bytes = before;
			return false;
		}
		proto_add_bytes(&w->texts, number, text);
		p = json_skip_space(p, end);
		if (p < end && *p == ',')
			p++;
	}
}

int xw_member(struct reducer_xplane_writer *w, const struct reducer_member *member)
{
	static const struct {
		const char *key;
		uint32_t number;
	} texts[] = {
		{"errors", XSPACE_ERRORS}, {"warnings", XSPACE_WARNINGS}, {"hostnames", XSPACE_HOSTNAMES}};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (!text_is(member->key, texts[i].key) || !take_texts(w, texts[i].number, member->value))
			continue;
		w->has_hostname |= texts[i].number == XSPACE_HOSTNAMES;
		return w->texts.failed;
	}
	/* The base is what Task Environment says. */
	if (text_is(member->key, "baseTimeNanoseconds") && w->options.has_base)
		return 0;
	uint32_t plane = xw_special_plane(w, XPLANE_MEMBERS_PLANE);
	if (plane == XW_NOTHING)
		return -ENOMEM;
	if (!json_valid(member->value)) {
		w->left_out[XW_LEFT_MEMBERS]++;
		return 0;
	}
	struct xw_plane *members = &w->plane[plane];
	int64_t id = xplane_names_stat(&members->names, member->key, true);
	size_t stat = proto_begin(&members->stats, XPLANE_STATS);
	proto_add_u64(&members->stats, XSTAT_METADATA_ID, (uint64_t)id);
	proto_add_bytes(&members->stats, XSTAT_STR, member->value);
	proto_end(&members->stats, stat);
	return members->names.fields.failed ? -ENOMEM : members->stats.failed;
}
