/* SPDX-License-Identifier: Apache-2.0 */
/* Before anything is written: where the session starts, which events go to which line, and what lines are
 * called. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decimal.h"
#include "text.h"
#include "xplane_parse.h"
#include "xplane_space.h"
#include "xplane_writer_inside.h"

enum { FREE_TID = 1000001, PARTS_MAX = 512 };
#define FAR_NS (INT64_MAX / 1000 / 2) /* on each side: times and lengths in ps stay within 63 bits */

static bool has_place(const struct xw_event *event)
{
	return event->kind == XW_SPAN || event->kind == XW_INSTANT;
}

/* The session's start: 0 where the times fit as they are. */
static void find_start(struct reducer_xplane_writer *w)
{
	int64_t first = INT64_MAX, last = INT64_MIN;
	for (uint32_t i = 0; i < w->n_events; i++) {
		const struct xw_event *event = &w->event[i];
		if (!has_place(event))
			continue;
		first = event->start_ns < first ? event->start_ns : first;
		last = event->start_ns > last ? event->start_ns : last;
	}
	bool fits = first > -FAR_NS && last < FAR_NS;
	if (first > last || (fits && (first >= 0 || !w->options.has_base || w->any_info)))
		return;
	w->shift_ns = first;
	/* Where not even the range fits, what is near the event in the middle is kept. */
	if ((uint64_t)last - (uint64_t)first >= (uint64_t)FAR_NS) {
		uint32_t middle = w->n_events / 2;
		while (!has_place(&w->event[middle]))
			middle = middle + 1 < w->n_events ? middle + 1 : 0;
		w->shift_ns = w->event[middle].start_ns;
	}
	w->has_start = true;
}

static void leave_out_far(struct reducer_xplane_writer *w)
{
	for (uint32_t i = 0; i < w->n_events; i++) {
		struct xw_event *event = &w->event[i];
		__int128 ns = (__int128)event->start_ns - w->shift_ns;
		if (!has_place(event) || (ns > -FAR_NS && ns < FAR_NS && event->duration_ns < FAR_NS))
			continue;
		event->kind = XW_GONE;
		w->left_out[XW_LEFT_FAR]++;
		w->stats.events--;
	}
}

/* Events by row, in the order in which they came. */
static int order_events(struct reducer_xplane_writer *w)
{
	uint32_t first = 0;
	free(w->order);
	w->order = malloc((w->n_events ? w->n_events : 1) * sizeof(*w->order));
	if (!w->order)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->n_rows; i++)
		w->row[i].n = 0;
	for (uint32_t i = 0; i < w->n_events; i++)
		w->row[w->event[i].row].n += w->event[i].kind != XW_GONE;
	for (uint32_t i = 0; i < w->n_rows; i++) {
		w->row[i].first = first;
		first += w->row[i].n;
		w->row[i].n = 0;
	}
	for (uint32_t i = 0; i < w->n_events; i++) {
		struct xw_row *row = &w->row[w->event[i].row];
		if (w->event[i].kind != XW_GONE)
			w->order[row->first + row->n++] = i;
	}
	return 0;
}

/* A span of a row that is to be split. */
struct placed {
	int64_t start_ps, end_ps;
	uint32_t index;
};

/* The longer one first where two begin together: it is the outer one. */
static int compare_placed(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;
	if (x->start_ps != y->start_ps)
		return x->start_ps < y->start_ps ? -1 : 1;
	if (x->end_ps != y->end_ps)
		return x->end_ps > y->end_ps ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

/* The ends of the open spans of one part, the innermost last. */
struct part {
	int64_t *end_ps;
	size_t n, room;
	uint32_t row;
};

static bool part_takes(struct part *part, const struct placed *span)
{
	while (part->n && part->end_ps[part->n - 1] <= span->start_ps)
		part->n--;
	return part->n == 0 || part->end_ps[part->n - 1] >= span->end_ps;
}

static int part_push(struct part *part, int64_t end_ps)
{
	if (part->n == part->room) {
		size_t room = part->room ? part->room * 2 : 8;
		int64_t *grown = realloc(part->end_ps, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		part->end_ps = grown;
		part->room = room;
	}
	part->end_ps[part->n++] = end_ps;
	return 0;
}

/* A further line of the row's name. */
static int add_part(struct reducer_xplane_writer *w, struct part **parts, size_t *n_parts, uint32_t of)
{
	struct part *grown = realloc(*parts, (*n_parts + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	*parts = grown;
	grown[*n_parts] = (struct part){.row = of};
	if (*n_parts > 0) {
		struct xw_row row = {.plane = w->row[of].plane, .kind = w->row[of].kind, .part_of = of};
		buffer_add_text(&row.track, xw_text(&w->row[of].track));
		buffer_add_text(&row.name, xw_text(&w->row[of].name));
		grown[*n_parts].row = xw_add_row(w, &row);
		if (grown[*n_parts].row == XW_NOTHING)
			return -ENOMEM;
	}
	++*n_parts;
	return 0;
}

static int place_spans(struct reducer_xplane_writer *w, const struct placed *span, uint32_t n, uint32_t row)
{
	struct part *parts = NULL;
	size_t n_parts = 0;
	int result = 0;
	for (uint32_t i = 0; i < n && result == 0; i++) {
		size_t at = 0;
		while (at < n_parts && !part_takes(&parts[at], &span[i]))
			at++;
		if (at == n_parts && n_parts == PARTS_MAX) {
			at = PARTS_MAX - 1;
			w->left_out[XW_LEFT_OVERLAP]++;
		} else if (at == n_parts) {
			result = add_part(w, &parts, &n_parts, row);
		}
		if (result == 0) {
			w->event[span[i].index].row = parts[at].row;
			result = part_push(&parts[at], span[i].end_ps);
		}
	}
	for (size_t i = 0; i < n_parts; i++)
		free(parts[i].end_ps);
	free(parts);
	return result;
}

static int split_row(struct reducer_xplane_writer *w, uint32_t index)
{
	struct xw_row row = w->row[index];
	uint32_t n = 0;
	struct placed *span = malloc((row.n ? row.n : 1) * sizeof(*span));
	if (!span)
		return -ENOMEM;
	for (uint32_t i = 0; i < row.n; i++) {
		uint32_t at = w->order[row.first + i];
		const struct xw_event *event = &w->event[at];
		if (event->kind != XW_SPAN)
			continue;
		int64_t start = (event->start_ns - w->shift_ns) * 1000 + event->start_ps;
		int64_t length = event->duration_ns < 0 ? 0 : event->duration_ns * 1000 + event->duration_ps;
		span[n++] = (struct placed){start, start + length, at};
	}
	qsort(span, n, sizeof(*span), compare_placed);
	int result = place_spans(w, span, n, index);
	free(span);
	return result;
}

static int split_rows(struct reducer_xplane_writer *w)
{
	uint32_t n = w->n_rows;
	int result = 0;
	for (uint32_t i = 0; i < n && result == 0; i++)
		if (!w->row[i].has_info && w->row[i].kind != XW_COUNTERS && w->row[i].n > 1)
			result = split_row(w, i);
	return result == 0 && w->n_rows > n ? order_events(w) : result;
}

static bool has_number(const struct xw_row *row, int64_t *ret_id)
{
	return row->kind == XW_THREAD && row->part_of == XW_NOTHING &&
	       decimal_i64(xw_text(&row->track), ret_id);
}

/* Says in a stat of the plane which track a line is of, where its id does not. */
static int note_line(struct reducer_xplane_writer *w, const struct xw_row *row)
{
	bool part = row->part_of != XW_NOTHING || row->kind == XW_COUNTERS;
	struct xw_plane *plane = &w->plane[row->plane];
	struct buffer value = {0};
	buffer_add_literal(&value, "{\"line\":");
	xplane_add_i64(&value, row->id);
	bool of_async = row->kind == XW_ASYNC && row->part_of != XW_NOTHING;
	if (of_async || row->track.bytes)
		buffer_add_literal(&value, ",\"tid\":");
	if (of_async)
		xplane_add_i64(&value, w->row[row->part_of].id);
	else
		buffer_add_text(&value, xw_text(&row->track));
	buffer_add_literal(&value, part ? ",\"part\":1}" : "}");
	xplane_stats_clear(&w->scratch, &plane->names, XPLANE_STATS);
	xplane_stats_add_text(&w->scratch, xplane_own_name(XPLANE_OWN_LINE), xw_text(&value));
	buffer_add_text(&plane->stats, xw_text(&w->scratch.stats));
	int result = value.failed ? value.failed : xplane_stats_failed(&w->scratch);
	buffer_free(&value);
	return result ? result : plane->stats.failed;
}

static void name_row(struct xw_row *row)
{
	struct reducer_text track = xw_text(&row->track);
	if (row->name.bytes || row->has_info || row->kind == XW_ASYNC)
		return;
	if (track.bytes >= 2 && track.data[0] == '"')
		track = (struct reducer_text){track.data + 1, track.bytes - 2};
	buffer_add_text(&row->name, track);
}

/* Rows of all planes at once: ids need only differ within a plane, so any two may share one. */
static int number_rows(struct reducer_xplane_writer *w)
{
	struct xplane_map used = {0};
	int64_t id, free_id = FREE_TID;
	bool is_new;
	int result = 0;
	for (uint32_t i = 0; i < w->n_rows && result == 0; i++)
		if (has_number(&w->row[i], &id) && id >= FREE_TID && !xplane_map_put(&used, id, &is_new))
			result = -ENOMEM;
	for (uint32_t i = 0; i < w->n_rows && result == 0; i++) {
		struct xw_row *row = &w->row[i];
		bool numbered = has_number(row, &row->id);
		while (!numbered && xplane_map_find(&used, free_id))
			free_id++;
		if (!numbered)
			row->id = free_id++;
		name_row(row);
		bool asynchronous = row->kind == XW_ASYNC && row->part_of == XW_NOTHING;
		if (!numbered && !asynchronous)
			result = note_line(w, row);
		if (result == 0)
			result = row->name.failed ? row->name.failed : row->track.failed;
	}
	xplane_map_free(&used);
	return result;
}

int xw_lay_out(struct reducer_xplane_writer *w)
{
	int result;
	find_start(w);
	leave_out_far(w);
	result = order_events(w);
	if (result == 0)
		result = split_rows(w);
	if (result == 0)
		result = xw_note_rows(w);
	return result == 0 ? number_rows(w) : result;
}
