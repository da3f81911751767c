/* SPDX-License-Identifier: Apache-2.0 */
/* Instants, counters and async pairs. */
#include "reduce_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void keep(struct reduce_columns *col, uint32_t event)
{
	col->bits[event] |= BIT_KEEP;
}

static uint64_t events_of(const struct reducer_reduce *r, uint32_t event)
{
	const struct reduce_stands *stands = NULL;
	if (r->col.bits[event] & BIT_MERGED)
		stands = reduce_stands_of(r, event);
	return stands ? stands->events : 1;
}

/* Clears the plan of a track of points, and leaves those out that are outside of the window. Returns how many
 * are left, now the first ones of `order`; they stay in order. */
static uint32_t begin_points(struct reducer_reduce *r, const struct reduce_track *track)
{
	struct reduce_columns *col = &r->col;
	const uint32_t *order = r->order + track->first;
	uint32_t left = 0;
	for (uint32_t i = 0; i < track->n_events; i++) {
		uint32_t e = order[i];
		col->bits[e] &= ~(uint32_t)BIT_KEEP;
		if (!reduce_in_window(r, col->start[e], col->start[e]))
			col->bits[e] |= BIT_SHUT;
		else
			left++;
		if (track->unruly)
			keep(col, e);
	}
	return left;
}

/* A merged instant in the place of these, but for marks; one alone stays as it is. */
static int merge_instants(struct reducer_reduce *r, uint32_t at, const uint32_t *event, uint32_t count,
			  struct reduce_rectangles *out)
{
	const struct reduce_columns *col = &r->col;
	struct reduce_rectangle one = {.track = at, .one_name = true};
	for (uint32_t i = 0; i < count; i++) {
		uint32_t e = event[i];
		if (col->bits[e] & BIT_ALWAYS)
			continue;
		if (one.members++ == 0) {
			one.from = one.to = col->start[e];
			one.longest = e;
			one.name = col->name[e];
		}
		one.events += events_of(r, e);
		if (col->name[e] != one.name || (col->bits[e] & BIT_MERGED))
			one.one_name = false;
	}
	if (one.members == 1)
		keep(&r->col, one.longest);
	return one.members > 1 ? reduce_rectangle_add(out, &one) : 0;
}

/* The first instant of each bin stays; two or more others become one. */
int reduce_plan_instants(struct reducer_reduce *r, uint32_t at, int64_t bin_ps, struct reduce_rectangles *out)
{
	const struct reduce_track *track = &r->tracks.track[at];
	struct reduce_columns *col = &r->col;
	const uint32_t *order = r->order + track->first;
	int result = 0;
	if (begin_points(r, track) == 0 || track->unruly)
		return 0;
	for (uint32_t i = 0, end; i < track->n_events && result == 0; i = end) {
		int64_t bin = reduce_bin_of(col->start[order[i]], bin_ps);
		for (end = i + 1; end < track->n_events && reduce_bin_of(col->start[order[end]], bin_ps) == bin;)
			end++;
		/* The window is one stretch of time: what of a bin is outside is its begin or its end. */
		uint32_t from = i, to = end;
		while (from < to && (col->bits[order[from]] & BIT_SHUT))
			from++;
		while (to > from && (col->bits[order[to - 1]] & BIT_SHUT))
			to--;
		if (from < to)
			keep(col, order[from]);
		if (to - from > 1)
			result = merge_instants(r, at, order + from + 1, to - from - 1, out);
	}
	return result;
}

struct sample {
	uint32_t event;
	double value;
};

/* A counter's values in order of time: first values of events, and further ones. */
struct samples {
	const struct reducer_reduce *r;
	const struct reduce_track *track;
	uint32_t at, more;
};

static bool next_sample(struct samples *s, struct sample *ret)
{
	const struct reduce_columns *col = &s->r->col;
	const uint32_t *order = s->r->order + s->track->first;
	const struct reduce_sample *more = s->r->samples.at;
	bool has = s->at < s->track->n_events, has_more = s->more < s->track->n_samples;
	if (!has && !has_more)
		return false;
	if (has_more)
		more += s->track->first_sample + s->more;
	if (has && has_more) {
		int64_t a = col->start[order[s->at]], b = col->start[more->event];
		has_more = b < a || (a == b && more->event < order[s->at]);
	}
	if (has_more) {
		*ret = (struct sample){more->event, more->value};
		s->more++;
	} else {
		ret->event = order[s->at++];
		memcpy(&ret->value, &col->length[ret->event], sizeof(ret->value));
	}
	return true;
}

/* The events with the least, the greatest and the last value of each bin stay. Counters' further values may keep
 * an event of another track, so the plan is cleared for all of them before. */
void reduce_plan_counters(struct reducer_reduce *r, uint32_t at, int64_t bin_ps)
{
	const struct reduce_track *track = &r->tracks.track[at];
	struct reduce_columns *col = &r->col;
	struct samples samples = {r, track, 0, 0};
	struct sample one, least = {0}, greatest = {0}, last = {0};
	int64_t bin = 0;
	bool any = false;
	while (next_sample(&samples, &one)) {
		if (col->bits[one.event] & (BIT_SHUT | BIT_FAR))
			continue;
		if (track->unruly)
			keep(col, one.event);
		int64_t its = reduce_bin_of(col->start[one.event], bin_ps);
		if (any && its != bin) {
			keep(col, least.event);
			keep(col, greatest.event);
			keep(col, last.event);
			any = false;
		}
		if (!any || one.value < least.value)
			least = one;
		if (!any || one.value > greatest.value)
			greatest = one;
		last = one;
		bin = its;
		any = true;
	}
	if (any) {
		keep(col, least.event);
		keep(col, greatest.event);
		keep(col, last.event);
	}
}

void reduce_begin_counters(struct reducer_reduce *r, uint32_t at)
{
	begin_points(r, &r->tracks.track[at]);
}

struct async_bin {
	struct reduce_rectangle one;
	uint32_t longest; /* the pair that stays */
	int64_t longest_ps, reach, bin;
	uint32_t first;
	bool any;
};

static void async_add(const struct reducer_reduce *r, struct async_bin *b, uint32_t e)
{
	const struct reduce_columns *col = &r->col;
	int64_t from = col->start[e], to = from + col->length[e];
	if (!b->one.members) {
		b->one.from = b->one.to = b->reach = from;
		b->one.name = col->name[e];
		b->one.one_name = true;
		b->one.longest = e;
	}
	if (col->name[e] != b->one.name || (col->bits[e] & BIT_MERGED))
		b->one.one_name = false;
	if (to > b->reach) {
		b->one.to += to - (from > b->reach ? from : b->reach);
		b->reach = to;
	}
	b->one.members++;
	b->one.events += events_of(r, e);
	reduce_add_ps(&b->one.sum_ps, col->length[e]);
	if (col->length[e] > b->one.longest_ps) {
		b->one.longest_ps = col->length[e];
		b->one.longest = e;
	}
}

static int async_flush(struct reducer_reduce *r, struct async_bin *b, struct reduce_rectangles *out)
{
	int result = 0;
	if (b->any)
		keep(&r->col, b->longest);
	if (b->one.members == 1)
		keep(&r->col, b->one.longest);
	else if (b->one.members)
		result = reduce_rectangle_add(out, &b->one);
	uint32_t track = b->one.track;
	*b = (struct async_bin){.one.track = track};
	return result;
}

/* Pairs at least one bin long and the longest of each bin stay; the others of a bin become one, as long as the
 * time that any of them was open. */
int reduce_plan_async(struct reducer_reduce *r, uint32_t at, int64_t bin_ps, struct reduce_rectangles *out)
{
	const struct reduce_track *track = &r->tracks.track[at];
	struct reduce_columns *col = &r->col;
	const uint32_t *order = r->order + track->first;
	struct async_bin b = {.one.track = at};
	int result = 0;
	for (uint32_t i = 0; i < track->n_events; i++) {
		uint32_t e = order[i];
		bool pair = col->bits[e] & BIT_PAIR, begin = reduce_kind_of(col->bits[e]) == KIND_ASYNC_BEGIN;
		col->bits[e] &= ~(uint32_t)BIT_KEEP;
		if (begin && !reduce_in_window(r, col->start[e], col->start[e] + (pair ? col->length[e] : 0)))
			col->bits[e] |= BIT_SHUT;
		if (!begin && !pair && !reduce_in_window(r, col->start[e], col->start[e]))
			col->bits[e] |= BIT_SHUT;
		if (!pair || track->unruly)
			keep(col, e);
	}
	for (uint32_t i = 0; i < track->n_events && result == 0 && !track->unruly; i++) {
		uint32_t e = order[i];
		if (!(col->bits[e] & BIT_PAIR) || (col->bits[e] & BIT_SHUT) ||
		    reduce_kind_of(col->bits[e]) != KIND_ASYNC_BEGIN)
			continue;
		int64_t bin = reduce_bin_of(col->start[e], bin_ps);
		if (b.any && bin != b.bin)
			result = async_flush(r, &b, out);
		b.bin = bin;
		if (col->length[e] >= bin_ps) {
			keep(col, e);
		} else if (!b.any || col->length[e] > b.longest_ps) {
			if (b.any)
				async_add(r, &b, b.longest);
			b.longest = e;
			b.longest_ps = col->length[e];
			b.any = true;
		} else {
			async_add(r, &b, e);
		}
	}
	return result < 0 ? result : async_flush(r, &b, out);
}
