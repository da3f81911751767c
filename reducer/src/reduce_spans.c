/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which spans of a track stay exactly.
 *
 *   - at least one bin long, or a step mark
 *   - the longest one of its row that begins in a bin (M3)
 *   - the first, and the one that ends last (M2); the track's longest, of equal ones the first in the file
 *   - whatever one of these is nested in: so every span that goes has only such below it, and what is put in
 *     their place can move within the span around them without sticking out of it
 *   - of the overflow row, those that cross the end of a bin
 */
#include "reduce_inside.h"

#include <errno.h>
#include <stdlib.h>

struct longest {
	int64_t length;
	int64_t bin;
	uint32_t event;
	bool any;
};

static void keep(struct reduce_columns *col, uint32_t event)
{
	col->bits[event] |= BIT_KEEP;
}

static uint32_t row_of(const struct reduce_columns *col, uint32_t event)
{
	return col->bits[event] & BITS_ROW_MASK;
}

/* The longest of every row and bin, and what is long, first or last. */
static void keep_long(struct reduce_columns *col, const uint32_t *order, uint32_t count, int64_t bin_ps)
{
	struct longest rows[REDUCE_OVERFLOW + 1] = {0};
	int64_t bin = 0, bin_end = INT64_MIN, last_end = INT64_MIN;
	uint32_t last = 0, longest = order[0];
	for (uint32_t i = 0; i < count; i++) {
		uint32_t e = order[i];
		int64_t start = col->start[e], length = col->length[e];
		if (start >= bin_end) {
			bin = reduce_bin_of(start, bin_ps);
			bin_end = (bin + 1) * bin_ps;
		}
		struct longest *row = &rows[row_of(col, e)];
		if (!row->any || row->bin != bin || length > row->length) {
			if (row->any && row->bin != bin)
				keep(col, row->event);
			*row = (struct longest){length, bin, e, true};
		}
		if (length >= bin_ps || (col->bits[e] & BIT_ALWAYS))
			keep(col, e);
		if (length > col->length[longest] || (length == col->length[longest] && e < longest))
			longest = e;
		if (start + length > last_end) {
			last_end = start + length;
			last = e;
		}
	}
	for (unsigned i = 0; i <= REDUCE_OVERFLOW; i++)
		if (rows[i].any)
			keep(col, rows[i].event);
	keep(col, order[0]);
	keep(col, last);
	keep(col, longest);
}

/* Backwards, the first span met of the row above is the one around. */
static void keep_outer(struct reduce_columns *col, const uint32_t *order, uint32_t count)
{
	bool needed[REDUCE_OVERFLOW + 1] = {false};
	for (uint32_t i = count; i-- > 0;) {
		uint32_t e = order[i], row = row_of(col, e);
		if (row == REDUCE_OVERFLOW)
			continue;
		if (needed[row])
			keep(col, e);
		needed[row] = false;
		if (row > 0 && (col->bits[e] & BIT_KEEP))
			needed[row - 1] = true;
	}
}

static int add_cut(struct reduce_vector *cuts, int64_t at)
{
	int64_t *cut = reduce_vector_add(cuts, sizeof(*cut));
	if (!cut)
		return -ENOMEM;
	*cut = at;
	return 0;
}

static int compare_times(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static int keep_overflow(struct reduce_columns *col, const uint32_t *order, uint32_t count, int64_t bin_ps,
			 struct reduce_vector *cuts)
{
	int result = 0;
	for (uint32_t i = 0; i < count && result == 0; i++) {
		uint32_t e = order[i];
		int64_t end = col->start[e] + col->length[e];
		if (row_of(col, e) != REDUCE_OVERFLOW)
			continue;
		if (reduce_bin_of(end - (end > col->start[e]), bin_ps) != reduce_bin_of(col->start[e], bin_ps))
			keep(col, e);
		if (!(col->bits[e] & BIT_KEEP))
			continue;
		result = add_cut(cuts, col->start[e]);
		if (result == 0)
			result = add_cut(cuts, end);
	}
	if (result == 0 && cuts->count)
		qsort(cuts->at, cuts->count, sizeof(int64_t), compare_times);
	return result;
}

int64_t reduce_rectangle_limit(const struct reducer_reduce *r, const struct reduce_track *track)
{
	if (r->uncapped)
		return INT64_MAX;
	return track->dense && r->bin_ps > track->longest_ps ? r->bin_ps : track->longest_ps;
}

int reduce_choose_spans(struct reducer_reduce *r, uint32_t at, int64_t bin_ps, struct reduce_vector *cuts)
{
	const struct reduce_track *track = &r->tracks.track[at];
	struct reduce_columns *col = &r->col;
	const uint32_t *order = r->order + track->first;
	cuts->count = 0;
	for (uint32_t i = 0; i < track->n_spans; i++) {
		col->bits[order[i]] &= ~(uint32_t)BIT_KEEP;
		if (track->unruly)
			keep(col, order[i]);
	}
	if (!track->n_spans || track->unruly)
		return 0;
	keep_long(col, order, track->n_spans, bin_ps);
	keep_outer(col, order, track->n_spans);
	return track->n_overlapping ? keep_overflow(col, order, track->n_spans, bin_ps, cuts) : 0;
}
