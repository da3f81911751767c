/* SPDX-License-Identifier: Apache-2.0 */
/* The add path: an event to its row's hot bin, or, where it covers several bins, straight to the strips. */
#include "tiers_state.h"

#include <errno.h>

static int writable_row(struct reducer_tiers *tiers, uint32_t index, enum reducer_row_kind kind,
			struct tiers_row **ret_row)
{
	if (tiers->read_only)
		return -EROFS;
	if (tiers->broken)
		return tiers->broken;
	if (index >= tiers->rows || tiers->row[index]->kind != kind)
		return -EINVAL;
	*ret_row = tiers->row[index];
	return 0;
}

/* An error leaves bins half added: from then on only the last commit is whole. */
static int settle(struct reducer_tiers *tiers, int rc)
{
	if (rc < 0)
		tiers->broken = rc;
	return rc;
}

static bool in_reach(struct reducer_tiers *tiers, int64_t start_ns, int64_t end_ns)
{
	unsigned last = tiers->options.tiers - 1;
	if (start_ns >= 0 && start_ns <= end_ns && end_ns <= tiers->stats.now_ns + REDUCER_TIERS_AHEAD_NS &&
	    end_ns / tiers->options.tier[last].width_ns >= tiers->floor[last])
		return true;
	tiers->stats.out_of_reach++;
	return false;
}

static void saw(struct reducer_tiers *tiers, struct tiers_row *row, int64_t start_ns, int64_t end_ns)
{
	if (row->events == 0 || start_ns < row->first_ns)
		row->first_ns = start_ns;
	if (row->events == 0 || end_ns > row->last_ns)
		row->last_ns = end_ns;
	row->events++;
	tiers->stats.events++;
}

/* Makes the bin of a time the hot one. */
static int heat(struct reducer_tiers *tiers, struct tiers_row *row, int64_t time_ns)
{
	int64_t bin = time_ns / tiers->options.tier[0].width_ns;
	if (row->has_hot && row->hot_bin == bin)
		return 0;
	int rc = tiers_row_flush(tiers, row);
	row->has_hot = true;
	row->hot_bin = bin;
	row->hot = (struct reducer_bin){0};
	return rc;
}

/* Busy time over the bins of one tier: a part of the first, all full ones at once, a part of the last. */
static int spread_over_tier(struct reducer_tiers *tiers, struct tiers_row *row, unsigned tier, int64_t from,
			    int64_t to, bool own, bool track)
{
	int64_t width = tiers->options.tier[tier].width_ns;
	int rc = 0;
	while (from < to && rc == 0) {
		int64_t bin = from / width, bins = 1, in_bin = width - from % width;
		if (in_bin == width && to - from >= width)
			bins = (to - from) / width;
		else if (in_bin > to - from)
			in_bin = to - from;
		struct reducer_bin delta = {.busy_ns = own ? in_bin : 0, .track_busy_ns = track ? in_bin : 0};
		rc = tiers_strip_add(tiers, row, tier, bin, bins, &delta);
		from += bins * in_bin;
	}
	return rc;
}

/* Adds busy time that was not there: to the row's own, to the track's, or to both. */
static int add_busy(struct reducer_tiers *tiers, struct tiers_row *row, struct reducer_range piece, bool own,
		    bool track)
{
	int64_t width = tiers->options.tier[0].width_ns;
	if (own)
		row->busy_ns += piece.to - piece.from;
	if (row->has_hot && piece.from / width == row->hot_bin && (piece.to - 1) / width == row->hot_bin) {
		row->hot.busy_ns += own ? piece.to - piece.from : 0;
		row->hot.track_busy_ns += track ? piece.to - piece.from : 0;
		return 0;
	}
	for (unsigned tier = 0; tier < tiers->options.tiers; tier++) {
		int rc = spread_over_tier(tiers, row, tier, piece.from, piece.to, own, track);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static uint64_t before_horizon(const struct reducer_cover *cover, struct reducer_range piece)
{
	if (piece.from >= cover->horizon)
		return 0;
	return (uint64_t)((piece.to < cover->horizon ? piece.to : cover->horizon) - piece.from);
}

/* What of [from, to) a set lacks, as busy time; then the set has it. */
static int cover_and_add(struct reducer_tiers *tiers, struct tiers_row *row, struct reducer_cover *cover,
			 int64_t from, int64_t to, bool own)
{
	struct reducer_range piece;
	for (int64_t at = from; reducer_cover_gap(cover, at, to, &piece); at = piece.to) {
		tiers->stats.doubtful_ns += own ? before_horizon(cover, piece) : 0;
		int rc = add_busy(tiers, row, piece, own, !own);
		if (rc < 0)
			return rc;
	}
	tiers_table_grow_cover(tiers, cover);
	reducer_cover_add(cover, from, to);
	return 0;
}

static bool is_newest(const struct reducer_cover *cover, int64_t from)
{
	return from >= cover->horizon && (cover->count == 0 || cover->range[cover->count - 1].to <= from);
}

static int occupy(struct reducer_tiers *tiers, struct tiers_row *row, int64_t from, int64_t to)
{
	struct reducer_cover *track = &tiers->track[row->track].cover;
	if (from == to)
		return 0;
	if (is_newest(&row->cover, from) && is_newest(track, from)) {
		tiers_table_grow_cover(tiers, &row->cover);
		tiers_table_grow_cover(tiers, track);
		reducer_cover_add(&row->cover, from, to);
		reducer_cover_add(track, from, to);
		return add_busy(tiers, row, (struct reducer_range){from, to}, true, true);
	}
	int rc = cover_and_add(tiers, row, &row->cover, from, to, true);
	return rc < 0 ? rc : cover_and_add(tiers, row, track, from, to, false);
}

/* Counts the span's start; its busy time is another matter. */
static int count_span(struct reducer_tiers *tiers, struct tiers_row *row, uint32_t name, int64_t start_ns,
		      int64_t end_ns)
{
	int rc = heat(tiers, row, start_ns);
	reducer_bin_span(&row->hot, name, end_ns - start_ns);
	saw(tiers, row, start_ns, end_ns);
	return rc;
}

/* The row for a span that overlaps one of its depth. */
static int overflow_row(struct reducer_tiers *tiers, struct tiers_row **row)
{
	uint32_t index;
	int rc = tiers_table_row(tiers, (*row)->track, REDUCER_ROW_SPANS, REDUCER_DEPTH_OVERFLOW, &index);
	if (rc == 0) {
		*row = tiers->row[index];
		tiers->stats.overflow_spans++;
	}
	return rc;
}

/* The row's open span went on until `to`; it covers bins already, so only the rest is busy time. */
static int extend_open(struct reducer_tiers *tiers, struct tiers_row *row, int64_t to)
{
	if (to <= row->open_to)
		return 0;
	struct reducer_range rest = {row->open_to, to};
	int64_t from = row->open_to;
	row->open_to = to;
	int rc = add_busy(tiers, row, rest, true, false);
	return rc < 0 ? rc : cover_and_add(tiers, row, &tiers->track[row->track].cover, from, to, false);
}

static void close_open(struct reducer_tiers *tiers, struct tiers_row *row)
{
	tiers_table_grow_cover(tiers, &row->cover);
	reducer_cover_add(&row->cover, row->open_from, row->open_to);
	row->has_open = false;
}

static int add_span(struct reducer_tiers *tiers, struct tiers_row *row, uint32_t name, int64_t start_ns,
		    int64_t end_ns)
{
	if (row->has_open && row->open_from == start_ns) {
		int rc = extend_open(tiers, row, end_ns);
		close_open(tiers, row);
		return rc < 0 ? rc : count_span(tiers, row, name, start_ns, end_ns);
	}
	/* The open span's end was never told; a span that ended before it began says nothing about it. */
	if (row->has_open && end_ns > row->open_from)
		close_open(tiers, row);
	if (row->depth != REDUCER_DEPTH_OVERFLOW && reducer_cover_meets(&row->cover, start_ns, end_ns)) {
		int rc = overflow_row(tiers, &row);
		if (rc < 0)
			return rc;
	}
	int rc = count_span(tiers, row, name, start_ns, end_ns);
	return rc < 0 ? rc : occupy(tiers, row, start_ns, end_ns);
}

int reducer_tiers_span(struct reducer_tiers *tiers, uint32_t index, uint32_t name, int64_t start_ns,
		       int64_t end_ns)
{
	struct tiers_row *row = NULL;
	int rc = writable_row(tiers, index, REDUCER_ROW_SPANS, &row);
	if (rc < 0 || !in_reach(tiers, start_ns, end_ns))
		return rc;
	return settle(tiers, add_span(tiers, row, name, start_ns, end_ns));
}

int reducer_tiers_open_span(struct reducer_tiers *tiers, uint32_t index, int64_t start_ns, int64_t now_ns)
{
	struct tiers_row *row = NULL;
	int rc = writable_row(tiers, index, REDUCER_ROW_SPANS, &row);
	if (rc < 0 || !in_reach(tiers, start_ns, now_ns))
		return rc;
	if (row->depth == REDUCER_DEPTH_OVERFLOW)
		return 0; /* several may be open here; they count when they end */
	if (row->has_open && row->open_from != start_ns)
		close_open(tiers, row);
	if (!row->has_open) {
		if (reducer_cover_meets(&row->cover, start_ns, now_ns))
			return 0; /* told after its end, or not of this row: counts when it ends */
		row->has_open = true;
		row->open_from = row->open_to = start_ns;
	}
	return settle(tiers, extend_open(tiers, row, now_ns));
}

int reducer_tiers_instant(struct reducer_tiers *tiers, uint32_t index, uint32_t name, int64_t time_ns)
{
	struct tiers_row *row = NULL;
	int rc = writable_row(tiers, index, REDUCER_ROW_INSTANTS, &row);
	if (rc < 0 || !in_reach(tiers, time_ns, time_ns))
		return rc;
	rc = heat(tiers, row, time_ns);
	reducer_bin_instant(&row->hot, name, time_ns);
	saw(tiers, row, time_ns, time_ns);
	return settle(tiers, rc);
}

int reducer_tiers_counter(struct reducer_tiers *tiers, uint32_t index, int64_t time_ns, double value)
{
	struct tiers_row *row = NULL;
	int rc = writable_row(tiers, index, REDUCER_ROW_COUNTER, &row);
	if (rc < 0 || !in_reach(tiers, time_ns, time_ns))
		return rc;
	rc = heat(tiers, row, time_ns);
	reducer_bin_counter(&row->hot, time_ns, value);
	saw(tiers, row, time_ns, time_ns);
	return settle(tiers, rc);
}
