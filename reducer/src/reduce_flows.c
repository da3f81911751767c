/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flows stay where every end of them is bound to a span that stays. An end is bound to the innermost span
 * around its time, or (a flow's last end without "bp":"e") to the next span of its thread; an end that no span
 * is near stays.
 */
#include "reduce_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { AHEAD = 24 }; /* events whose place in the table is fetched before they are looked up */

static bool is_flow(uint32_t bits)
{
	enum reduce_kind kind = reduce_kind_of(bits);
	return kind == KIND_FLOW_BEGIN || kind == KIND_FLOW_STEP || kind == KIND_FLOW_END;
}

struct flow_slot {
	uint64_t hash; /* 0 = empty */
	uint32_t number;
};

static uint64_t hash_of(const struct reduce_columns *col, uint32_t e)
{
	uint64_t hash = (uint64_t)col->length[e];
	return hash + (hash == 0);
}

/*
 * Gives each flow a number, in the place of its hash. The table is too large for any cache, and its places are
 * random: so the next flow events' places are fetched while this one's is looked at.
 */
int reduce_number_flows(struct reducer_reduce *r)
{
	struct reduce_columns *col = &r->col;
	uint64_t slots = 64;
	while (slots < (uint64_t)r->n_flow_events * 3 / 2)
		slots *= 2;
	struct flow_slot *table = calloc(slots, sizeof(*table));
	if (!table)
		return -ENOMEM;
	uint32_t ahead = 0;
	unsigned waiting = 0;
	for (uint32_t e = 0; e < col->count; e++) {
		for (; ahead < col->count && waiting < AHEAD; ahead++) {
			if (!is_flow(col->bits[ahead]))
				continue;
			__builtin_prefetch(&table[hash_of(col, ahead) & (slots - 1)], 1);
			waiting++;
		}
		if (!is_flow(col->bits[e]))
			continue;
		waiting--;
		uint64_t hash = hash_of(col, e), at = hash & (slots - 1);
		while (table[at].hash && table[at].hash != hash)
			at = (at + 1) & (slots - 1);
		if (!table[at].hash)
			table[at] = (struct flow_slot){hash, r->n_flows++};
		col->length[e] = table[at].number;
	}
	free(table);
	return 0;
}

enum { FLOW_BEGINS = 1, FLOW_ENDS = 2, FLOW_BROKEN = 4 };

static bool stays(const struct reduce_columns *col, uint32_t event)
{
	return (col->bits[event] & (BIT_KEEP | BIT_SHUT)) == BIT_KEEP;
}

/* The spans open at a time, by walking both in order. */
struct around {
	const struct reduce_columns *col;
	const uint32_t *order;
	uint32_t count, at;
	uint32_t open[REDUCE_ROWS];
	unsigned depth;
	uint32_t over; /* the last span of the overflow row */
};

static void walk_to(struct around *a, int64_t time)
{
	const struct reduce_columns *col = a->col;
	for (; a->at < a->count && col->start[a->order[a->at]] <= time; a->at++) {
		uint32_t e = a->order[a->at], row = col->bits[e] & BITS_ROW_MASK;
		if (row == REDUCE_OVERFLOW) {
			a->over = e;
			continue;
		}
		a->open[row] = e;
		a->depth = row + 1;
	}
	while (a->depth > 0 && col->start[a->open[a->depth - 1]] + col->length[a->open[a->depth - 1]] < time)
		a->depth--;
}

/* The span that an end at `time` is bound to, or REDUCE_NONE. */
static uint32_t bound_to(struct around *a, int64_t time, bool enclosing)
{
	const struct reduce_columns *col = a->col;
	walk_to(a, time);
	if (!enclosing) {
		if (a->depth > 0 && col->start[a->open[a->depth - 1]] == time)
			return a->open[a->depth - 1];
		return a->at < a->count ? a->order[a->at] : REDUCE_NONE;
	}
	uint32_t inner = a->depth > 0 ? a->open[a->depth - 1] : REDUCE_NONE;
	uint32_t over = a->over;
	if (over != REDUCE_NONE && col->start[over] + col->length[over] >= time &&
	    (inner == REDUCE_NONE || col->start[over] >= col->start[inner]))
		return over;
	return inner;
}

void reduce_look_at_flows(struct reducer_reduce *r, uint32_t at)
{
	const struct reduce_track *track = &r->tracks.track[at];
	struct reduce_columns *col = &r->col;
	const uint32_t *order = r->order + track->first;
	struct around around = {.col = col, .over = REDUCE_NONE};
	if (track->thread != REDUCE_NONE) {
		around.order = r->order + r->tracks.track[track->thread].first;
		around.count = r->tracks.track[track->thread].n_spans;
	}
	for (uint32_t i = 0; i < track->n_events; i++) {
		uint32_t e = order[i];
		uint32_t span = bound_to(&around, col->start[e], col->bits[e] & BIT_ENCLOSING);
		uint8_t says = reduce_kind_of(col->bits[e]) == KIND_FLOW_BEGIN ? FLOW_BEGINS : FLOW_ENDS;
		col->bits[e] &= ~(uint32_t)(BIT_KEEP | BIT_SHUT);
		if (!reduce_in_window(r, col->start[e], col->start[e]) || track->shut)
			col->bits[e] |= BIT_SHUT;
		if ((col->bits[e] & BIT_SHUT) || (span != REDUCE_NONE && !stays(col, span)))
			says |= FLOW_BROKEN;
		/* Its other end may be looked at by another thread. */
		__atomic_fetch_or(&r->flow[col->length[e]], says, __ATOMIC_RELAXED);
	}
}

void reduce_begin_flows(struct reducer_reduce *r)
{
	memset(r->flow, 0, (size_t)r->n_flows);
	for (size_t i = 0; i < r->far_flows.count; i++)
		r->flow[((int64_t *)r->far_flows.at)[i]] |= FLOW_BROKEN;
	r->gone[REDUCER_GONE_FLOWS] += r->far_flows.count;
}

void reduce_finish_flows(struct reducer_reduce *r)
{
	struct reduce_columns *col = &r->col;
	for (uint32_t t = 0; t < r->tracks.count; t++) {
		const struct reduce_track *track = &r->tracks.track[t];
		for (uint32_t i = 0; track->class == CLASS_FLOWS && i < track->n_events; i++) {
			uint32_t e = r->order[track->first + i];
			uint8_t flow = r->flow[col->length[e]];
			if (col->bits[e] & BIT_SHUT)
				continue;
			if (flow == (FLOW_BEGINS | FLOW_ENDS))
				col->bits[e] |= BIT_KEEP;
			else
				r->gone[flow & FLOW_BROKEN ? REDUCER_GONE_FLOWS : REDUCER_GONE_FLOW_ORPHANS]++;
		}
	}
}
