/* SPDX-License-Identifier: Apache-2.0 */
/* M4 of counters and instants, and what M5 says of instants and async events. */
#include "reduce_check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Whether the window or the tracks asked for leave the event out; an end of a pair goes with its begin. */
static bool is_shut(const struct reducer_reduce *r, uint32_t e)
{
	const struct reduce_columns *col = &r->col;
	bool pair = col->bits[e] & BIT_PAIR;
	if (pair && reduce_kind_of(col->bits[e]) == KIND_ASYNC_END)
		e = (uint32_t)col->length[e];
	if (col->bits[e] & BIT_ELSEWHERE)
		return true;
	return !reduce_in_window(r, col->start[e], col->start[e] + (pair ? col->length[e] : 0));
}

/* Whether it stands for others: a merged event, or the end of a merged begin. */
static bool is_merged(const struct reduce_columns *col, uint32_t e)
{
	if (reduce_kind_of(col->bits[e]) == KIND_ASYNC_END && (col->bits[e] & BIT_PAIR))
		e = (uint32_t)col->length[e];
	return col->bits[e] & BIT_MERGED;
}

/* What was written for itself is a part of the raw track's events, in their order. */
static void check_unaltered(struct check *c, const struct check_side *raw, const struct check_side *out,
			    uint32_t track, enum reducer_promise promise)
{
	uint32_t i = 0;
	for (uint32_t j = 0; j < out->count; j++) {
		uint32_t f = out->order[j];
		int64_t start = check_start(out, f);
		if (is_merged(out->col, f))
			continue;
		while (i < raw->count && check_start(raw, raw->order[i]) < start)
			i++;
		bool found = false;
		for (; i < raw->count && check_start(raw, raw->order[i]) == start && !found; i++) {
			uint32_t e = raw->order[i];
			found = reduce_kind_of(raw->col->bits[e]) == reduce_kind_of(out->col->bits[f]) &&
				!is_merged(raw->col, e) && check_same_name(c, raw->col->name[e], out->col->name[f]);
		}
		check_made(c, promise);
		if (!found)
			check_failed(c, promise, track, &start, "\"%s\" does not stand so in the raw trace",
				     check_name_of(out->of, f).text);
	}
}

/* --- instants --- */

/* The instants of one bin. */
struct instants {
	struct check_side side;
	uint32_t next;
	int64_t bin;
	uint64_t count;
	uint32_t first;
	bool any;
};

static void next_instants(struct instants *in, int64_t bin_ps)
{
	const struct check_side *side = &in->side;
	in->any = false;
	in->count = 0;
	for (; in->next < side->count; in->next++) {
		uint32_t e = side->order[in->next];
		int64_t bin = reduce_bin_of(check_start(side, e), bin_ps);
		if (is_shut(side->of, e))
			continue;
		if (in->any && bin != in->bin)
			return;
		if (!in->any)
			in->first = e;
		in->any = true;
		in->bin = bin;
		in->count += check_events_of(side->of, e);
	}
}

static void compare_instants(struct check *c, uint32_t track, const struct instants *raw, const struct instants *out)
{
	const struct instants *any = raw ? raw : out;
	int64_t at = check_start(&any->side, any->first);
	uint64_t count = raw ? raw->count : 0, left = out ? out->count : 0;
	check_made(c, REDUCER_M4);
	if (count != left)
		check_failed(c, REDUCER_M4, track, &at,
			     "from here %llu instants in one bin in the raw trace; the reduced one has or stands for %llu",
			     (unsigned long long)count, (unsigned long long)left);
	else if (raw && out &&
		 (at != check_start(&out->side, out->first) ||
		  !check_same_name(c, raw->side.col->name[raw->first], out->side.col->name[out->first])))
		check_failed(c, REDUCER_M4, track, &at, "the first instant of a bin, \"%s\", is missing or altered",
			     check_name_of(raw->side.of, raw->first).text);
}

void check_instants(struct check *c, uint32_t track, uint32_t out)
{
	struct instants a = {.side = check_side_of(c, true, track, false)};
	struct instants b = {.side = check_side_of(c, false, out, false)};
	next_instants(&a, c->bin_ps);
	next_instants(&b, c->bin_ps);
	while (a.any || b.any) {
		bool in_a = a.any && (!b.any || a.bin <= b.bin), in_b = b.any && (!a.any || b.bin <= a.bin);
		compare_instants(c, track, in_a ? &a : NULL, in_b ? &b : NULL);
		if (in_a)
			next_instants(&a, c->bin_ps);
		if (in_b)
			next_instants(&b, c->bin_ps);
	}
	check_unaltered(c, &a.side, &b.side, track, REDUCER_M4);
}

/* --- counters --- */

/* The values of one counter: first values of events in order of time, and further ones. */
struct values {
	struct check_side side;
	const struct reduce_sample *more;
	uint32_t next, next_more, n_more;
	/* Those of one bin. */
	int64_t bin, at;
	double least, greatest, last;
	bool any;
	/* The one that is next. */
	int64_t start;
	double value;
	bool has;
};

static void load_value(struct values *v)
{
	const struct check_side *side = &v->side;
	const struct reduce_columns *col = side->col;
	v->has = false;
	while (!v->has && (v->next < side->count || v->next_more < v->n_more)) {
		const struct reduce_sample *more = v->next_more < v->n_more ? &v->more[v->next_more] : NULL;
		uint32_t e = v->next < side->count ? side->order[v->next] : REDUCE_NONE;
		if (more && e != REDUCE_NONE &&
		    (col->start[more->event] > col->start[e] ||
		     (col->start[more->event] == col->start[e] && more->event >= e)))
			more = NULL;
		if (more || e == REDUCE_NONE) {
			e = v->more[v->next_more].event;
			v->value = v->more[v->next_more++].value;
		} else {
			memcpy(&v->value, &col->length[e], sizeof(v->value));
			v->next++;
		}
		v->has = !(col->bits[e] & BIT_FAR) && !is_shut(side->of, e);
		v->start = check_start(side, e);
	}
}

static void next_values(struct values *v, int64_t bin_ps)
{
	v->any = v->has;
	if (!v->has)
		return;
	v->bin = reduce_bin_of(v->start, bin_ps);
	v->at = v->start;
	v->least = v->greatest = v->last = v->value;
	for (load_value(v); v->has && reduce_bin_of(v->start, bin_ps) == v->bin; load_value(v)) {
		v->least = v->value < v->least ? v->value : v->least;
		v->greatest = v->value > v->greatest ? v->value : v->greatest;
		v->last = v->value;
	}
}

static struct values begin_values(const struct check *c, bool raw, uint32_t track)
{
	struct values v = {.side = check_side_of(c, raw, track, false)};
	if (track != REDUCE_NONE) {
		const struct reduce_track *its = &v.side.of->tracks.track[track];
		v.n_more = its->n_samples;
		if (v.n_more)
			v.more = (const struct reduce_sample *)v.side.of->samples.at + its->first_sample;
	}
	load_value(&v);
	next_values(&v, c->bin_ps);
	return v;
}

static void compare_values(struct check *c, uint32_t track, const struct values *raw, const struct values *out)
{
	check_made(c, REDUCER_M4);
	if (!raw || !out) {
		check_failed(c, REDUCER_M4, track, raw ? &raw->at : &out->at,
			     "the counter has values in this bin in the %s trace only", raw ? "raw" : "reduced");
		return;
	}
	const struct {
		const char *what;
		double raw, out;
	} all[] = {{"least", raw->least, out->least},
		   {"greatest", raw->greatest, out->greatest},
		   {"last", raw->last, out->last}};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].raw < all[i].out || all[i].raw > all[i].out)
			check_failed(c, REDUCER_M4, track, &raw->at,
				     "from here the %s value of a bin is %.17g in the raw trace, %.17g in the reduced one",
				     all[i].what, all[i].raw, all[i].out);
}

void check_counter(struct check *c, uint32_t track, uint32_t out)
{
	struct values a = begin_values(c, true, track), b = begin_values(c, false, out);
	while (a.any || b.any) {
		bool in_a = a.any && (!b.any || a.bin <= b.bin), in_b = b.any && (!a.any || b.bin <= a.bin);
		compare_values(c, track, in_a ? &a : NULL, in_b ? &b : NULL);
		if (in_a)
			next_values(&a, c->bin_ps);
		if (in_b)
			next_values(&b, c->bin_ps);
	}
}

/* --- async events --- */

void check_async(struct check *c, uint32_t track, uint32_t out)
{
	struct check_side a = check_side_of(c, true, track, false), b = check_side_of(c, false, out, false);
	check_unaltered(c, &a, &b, track, REDUCER_M5);
}

/* What a process's async events come to, in one of the two traces. */
struct halves {
	uint64_t begins, ends;
	uint32_t track;
};

static void add_async(const struct reducer_reduce *r, uint32_t e, struct halves *group)
{
	const struct reduce_columns *col = &r->col;
	if (reduce_kind_of(col->bits[e]) == KIND_ASYNC_END) {
		group->ends += !is_merged(col, e);
		return;
	}
	const struct reduce_stands *stands = col->bits[e] & BIT_MERGED ? reduce_stands_of(r, e) : NULL;
	group->begins += stands ? stands->events : 1;
	group->ends += stands && (col->bits[e] & BIT_PAIR) ? stands->events : 0;
}

static int sum_async(const struct check *c, bool raw, struct reduce_tracks *groups, struct reduce_vector *sums)
{
	const struct reducer_reduce *r = raw ? c->raw : c->out;
	static const struct reducer_text none = {NULL, 0};
	for (uint32_t t = 0; t < r->tracks.count; t++) {
		struct check_side side = check_side_of(c, raw, t, false);
		if (r->tracks.track[t].class != CLASS_ASYNC)
			continue;
		int64_t group = reduce_track_of(groups, CLASS_ASYNC, reduce_track_group(&r->tracks, t), none, none);
		if (group < 0)
			return (int)group;
		while (sums->count < 2 * (size_t)groups->count) {
			struct halves *more = reduce_vector_add(sums, sizeof(*more));
			if (!more)
				return -ENOMEM;
			*more = (struct halves){.track = raw ? t : REDUCE_NONE};
		}
		struct halves *its = (struct halves *)sums->at + 2 * group + !raw;
		for (uint32_t i = 0; i < side.count; i++)
			if (!raw || !is_shut(r, side.order[i]))
				add_async(r, side.order[i], its);
	}
	return 0;
}

/* Begins and ends add up a process: merged ones are of no category that the raw trace had. */
int check_async_sums(struct check *c)
{
	struct reduce_tracks groups = {0};
	struct reduce_vector sums = {0};
	int result = reduce_tracks_init(&groups);
	if (result == 0)
		result = sum_async(c, true, &groups, &sums);
	if (result == 0)
		result = sum_async(c, false, &groups, &sums);
	for (uint32_t i = 0; result == 0 && i < groups.count; i++) {
		const struct halves *raw = (const struct halves *)sums.at + 2 * (size_t)i, *out = raw + 1;
		check_made(c, REDUCER_M5);
		if (raw->begins != out->begins || raw->ends != out->ends)
			check_failed(c, REDUCER_M5, raw->track, NULL,
				     "the process has %llu async begins and %llu ends in the raw trace; the reduced one has or "
				     "stands for %llu and %llu",
				     (unsigned long long)raw->begins, (unsigned long long)raw->ends,
				     (unsigned long long)out->begins, (unsigned long long)out->ends);
	}
	free(sums.at);
	reduce_tracks_free(&groups);
	return result;
}
