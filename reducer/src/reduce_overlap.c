/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merged spans in the place of those that overlap others without nesting, and go.
 *
 * They are gathered by bin (one that crosses the end of a bin stays). Of a bin's, two lengths count: how long any
 * of them was busy, and how long of that nothing else of the track was. What else there is in the bin, spans that
 * stay and rectangles, lies fixed by now; so the rectangle is put where as much of it as that sticks out: over
 * the end of what is busy, into time that is free. Where it does not fit in one place it is put in several, which
 * share the events.
 */
#include "reduce_inside.h"

#include <errno.h>
#include <stdlib.h>

struct run {
	int64_t from, to;
};

/* What of one bin goes. */
struct group {
	struct reduce_rectangle one;
	int64_t bin, busy, alone;
};

struct overlap {
	struct reducer_reduce *reduce;
	const struct reduce_track *track;
	struct reduce_vector groups; /* struct group, by bin */
	struct reduce_vector runs;   /* struct run: when the track is busy without them; apart and ascending */
	struct reduce_vector pieces; /* struct run: of one group */
	int64_t bin_ps, first, last, limit;
	size_t next_run;
};

/* The sweep that measures groups. */
struct sweep {
	int64_t covered_to; /* by anything else than what goes */
	int64_t busy_to;    /* by what goes */
	int64_t now;
	struct group *group;
};

/* Time up to `at` in which only what goes is busy. */
static void sweep_to(struct sweep *s, int64_t at)
{
	int64_t from = s->covered_to > s->now ? s->covered_to : s->now, to = s->busy_to < at ? s->busy_to : at;
	if (s->group && to > from)
		s->group->alone += to - from;
	s->now = at > s->now ? at : s->now;
}

static int add_to_group(struct overlap *o, struct sweep *s, uint32_t e)
{
	const struct reduce_columns *col = &o->reduce->col;
	int64_t start = col->start[e], end = start + col->length[e], bin = reduce_bin_of(start, o->bin_ps);
	if (!s->group || s->group->bin != bin) {
		sweep_to(s, s->busy_to);
		s->group = reduce_vector_add(&o->groups, sizeof(*s->group));
		if (!s->group)
			return -ENOMEM;
		*s->group = (struct group){.bin = bin, .one = {.from = start, .longest = e, .name = col->name[e],
							       .row = REDUCE_OVERFLOW, .one_name = true}};
		s->busy_to = s->now = start;
	}
	struct reduce_rectangle *one = &s->group->one;
	const struct reduce_stands *stands = col->bits[e] & BIT_MERGED ? reduce_stands_of(o->reduce, e) : NULL;
	int64_t longest = stands ? stands->longest_ps : col->length[e];
	if (longest > one->longest_ps) {
		one->longest_ps = longest;
		one->longest = e;
	}
	one->one_name = one->one_name && one->name == col->name[e] && !stands;
	one->members++;
	one->events += stands ? stands->events : 1;
	reduce_add_ps(&one->sum_ps, stands ? stands->sum_ps : col->length[e]);
	if (end > s->busy_to) {
		s->group->busy += end - (start > s->busy_to ? start : s->busy_to);
		s->busy_to = end;
	}
	return 0;
}

static int measure_groups(struct overlap *o)
{
	const struct reduce_columns *col = &o->reduce->col;
	const uint32_t *order = o->reduce->order + o->track->first;
	struct sweep s = {.covered_to = INT64_MIN, .busy_to = INT64_MIN, .now = INT64_MIN};
	int result = 0;
	for (uint32_t i = 0; i < o->track->n_spans && result == 0; i++) {
		uint32_t e = order[i], row = col->bits[e] & BITS_ROW_MASK;
		int64_t end = col->start[e] + col->length[e];
		if (row != 0 && row != REDUCE_OVERFLOW)
			continue;
		sweep_to(&s, col->start[e]);
		if (row == REDUCE_OVERFLOW && !(col->bits[e] & BIT_KEEP))
			result = add_to_group(o, &s, e);
		else if (end > s.covered_to)
			s.covered_to = end;
	}
	sweep_to(&s, s.busy_to);
	return result;
}

static int add_run(struct reduce_vector *runs, int64_t from, int64_t to)
{
	struct run *run = reduce_vector_add(runs, sizeof(*run));
	if (!run)
		return -ENOMEM;
	*run = (struct run){from, to};
	return 0;
}

static int compare_runs(const void *a, const void *b)
{
	const struct run *x = a, *y = b;
	return x->from != y->from ? (x->from < y->from ? -1 : 1) : (x->to > y->to) - (x->to < y->to);
}

/* When the track is busy as planned so far: top spans that stay, and the rectangles of row 0. */
static int gather_runs(struct overlap *o, const struct reduce_rectangles *out, size_t first_rectangle)
{
	const struct reduce_columns *col = &o->reduce->col;
	const uint32_t *order = o->reduce->order + o->track->first;
	int result = 0;
	for (uint32_t i = 0; i < o->track->n_spans && result == 0; i++) {
		uint32_t e = order[i], row = col->bits[e] & BITS_ROW_MASK;
		if ((row == 0 || row == REDUCE_OVERFLOW) && (col->bits[e] & BIT_KEEP))
			result = add_run(&o->runs, col->start[e], col->start[e] + col->length[e]);
	}
	for (size_t i = first_rectangle; i < out->count && result == 0; i++)
		if (out->at[i].row == 0)
			result = add_run(&o->runs, out->at[i].from, out->at[i].to);
	if (result < 0 || o->runs.count == 0)
		return result;
	struct run *run = o->runs.at;
	size_t kept = 0;
	qsort(run, o->runs.count, sizeof(*run), compare_runs);
	for (size_t i = 1; i < o->runs.count; i++) {
		if (run[i].from > run[kept].to)
			run[++kept] = run[i];
		else if (run[i].to > run[kept].to)
			run[kept].to = run[i].to;
	}
	o->runs.count = kept + 1;
	return 0;
}

/* Adds [from, to) to the pieces of a group, none longer than the limit; the piece before grows if they touch. */
static int add_piece(struct overlap *o, int64_t from, int64_t to)
{
	struct run *last = o->pieces.count ? (struct run *)o->pieces.at + o->pieces.count - 1 : NULL;
	if (last && last->to == from && to - last->from <= o->limit) {
		last->to = to;
		return 0;
	}
	while (to - from > o->limit) {
		int result = add_run(&o->pieces, from, from + o->limit);
		if (result < 0)
			return result;
		from += o->limit;
	}
	return add_run(&o->pieces, from, to);
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/*
 * Places `alone` of a group in free time and the rest in busy time of [from, to), by one walk over both. Busy time
 * is used only as far as what is left of the group needs it, and the last of it before free time, so that a piece
 * lies over the end of what is busy.
 */
static int place(struct overlap *o, struct group *group, int64_t from, int64_t to)
{
	const struct run *run = o->runs.at;
	int64_t alone = group->alone, hidden = group->busy - group->alone;
	int result = 0;
	o->pieces.count = 0;
	while (o->next_run < o->runs.count && run[o->next_run].to <= from)
		o->next_run++;
	for (size_t i = o->next_run; from < to && (alone > 0 || hidden > 0) && result == 0; i++) {
		bool any = i < o->runs.count && run[i].from < to;
		int64_t free_to = any ? (run[i].from > from ? run[i].from : from) : to;
		int64_t used = least(alone, free_to - from);
		if (used > 0)
			result = add_piece(o, from, from + used);
		alone -= used > 0 ? used : 0;
		if (!any || result < 0)
			break;
		int64_t busy_to = least(run[i].to, to);
		used = least(hidden, busy_to - free_to);
		if (used > 0)
			result = add_piece(o, busy_to - used, busy_to);
		hidden -= used > 0 ? used : 0;
		from = busy_to;
	}
	return result;
}

/* The first piece counts the events; the others, which count none, go on from it. */
static int write_pieces(struct overlap *o, const struct group *group, uint32_t track, struct reduce_rectangles *out)
{
	const struct run *piece = o->pieces.at;
	struct reduce_rectangle one = group->one;
	int result = 0;
	one.track = track;
	for (size_t i = 0; i < o->pieces.count && result == 0; i++) {
		one.from = piece[i].from;
		one.to = piece[i].to;
		result = reduce_rectangle_add(out, &one);
		one.events = 0;
		one.sum_ps = one.longest_ps = 0;
	}
	return result;
}

static int place_group(struct overlap *o, struct group *group, uint32_t track, struct reduce_rectangles *out)
{
	int64_t from = group->bin * o->bin_ps, to = from + o->bin_ps;
	int result = place(o, group, from > o->first ? from : o->first, least(to, o->last));
	/* Spans without length. */
	if (result == 0 && o->pieces.count == 0)
		result = add_run(&o->pieces, group->one.from, group->one.from);
	return result < 0 ? result : write_pieces(o, group, track, out);
}

int reduce_overlap_track(struct reducer_reduce *r, uint32_t at, int64_t bin_ps, struct reduce_rectangles *out,
			 size_t first_rectangle)
{
	struct reduce_track *track = &r->tracks.track[at];
	if (!track->n_overlapping)
		return 0;
	struct overlap o = {.reduce = r,
			    .track = track,
			    .bin_ps = bin_ps,
			    .first = track->first_ps,
			    .last = track->last_ps,
			    .limit = reduce_rectangle_limit(r, track)};
	int result = measure_groups(&o);
	if (result == 0 && o.groups.count)
		result = gather_runs(&o, out, first_rectangle);
	for (size_t i = 0; i < o.groups.count && result == 0; i++)
		result = place_group(&o, &((struct group *)o.groups.at)[i], at, out);
	free(o.groups.at);
	free(o.runs.at);
	free(o.pieces.at);
	return result;
}
