/* SPDX-License-Identifier: Apache-2.0 */
/* The plan for one number of bins, and the search for a number that leaves few enough events. */
#include "reduce_inside.h"

#include <errno.h>
#include <string.h>

#include <reducer/marks.h>

enum { BINS_MAX = 1 << 30 };

bool reduce_stays(const struct reducer_reduce *r, uint32_t e)
{
	const struct reduce_columns *col = &r->col;
	uint32_t bits = col->bits[e];
	enum reduce_kind kind = reduce_kind_of(bits);
	if (kind == KIND_META)
		return !(bits & BIT_TWICE);
	if ((kind == KIND_END || kind == KIND_ASYNC_END) && (bits & BIT_PAIR))
		return reduce_stays(r, (uint32_t)col->length[e]);
	if (bits & BIT_SHUT)
		return false;
	if (kind == KIND_BEGIN || kind == KIND_END || kind == KIND_TIMED || kind == KIND_OTHER)
		return true;
	return (bits & (BIT_KEEP | BIT_FAR | BIT_ALWAYS)) != 0;
}

/* Why an event of this kind goes. Flows have been counted by their plan. */
static int reason_of(enum reduce_kind kind, uint32_t bits)
{
	if (kind == KIND_META)
		return REDUCER_GONE_META_TWICE;
	bool flow = kind == KIND_FLOW_BEGIN || kind == KIND_FLOW_STEP || kind == KIND_FLOW_END;
	if (flow && (bits & BIT_FAR))
		return -1;
	if (bits & BIT_SHUT)
		return bits & BIT_ELSEWHERE ? REDUCER_GONE_TRACK : REDUCER_GONE_WINDOW;
	switch (kind) {
	case KIND_INSTANT:
		return REDUCER_GONE_MERGED_INSTANTS;
	case KIND_COUNTER:
		return REDUCER_GONE_COUNTERS;
	case KIND_ASYNC_BEGIN:
	case KIND_ASYNC_END:
		return REDUCER_GONE_MERGED_ASYNC;
	default:
		return flow ? -1 : REDUCER_GONE_MERGED_SPANS;
	}
}

static void count_plan(struct reducer_reduce *r)
{
	const struct reduce_columns *col = &r->col;
	uint64_t exact = 0, exact_spans = 0;
	for (uint32_t e = 0; e < col->count; e++) {
		enum reduce_kind kind = reduce_kind_of(col->bits[e]);
		if (reduce_stays(r, e)) {
			exact++;
			exact_spans += kind == KIND_SPAN && !(col->bits[e] & BIT_PAIR);
			continue;
		}
		uint32_t bits = col->bits[e];
		if ((kind == KIND_END || kind == KIND_ASYNC_END) && (bits & BIT_PAIR))
			bits = col->bits[col->length[e]];
		int reason = reason_of(kind, bits);
		if (reason >= 0)
			r->gone[reason]++;
	}
	r->exact = exact;
	r->exact_spans = exact_spans;
	/* A pair is two events; one more says that the trace is reduced. */
	r->events_out = exact + r->spans.count + r->instants.count + 2 * r->pairs.count + 1;
}

static void plan_counters(struct reducer_reduce *r)
{
	for (uint32_t t = 0; t < r->tracks.count; t++)
		if (r->tracks.track[t].class == CLASS_COUNTER)
			reduce_begin_counters(r, t);
	for (uint32_t t = 0; t < r->tracks.count; t++)
		if (r->tracks.track[t].class == CLASS_COUNTER)
			reduce_plan_counters(r, t, r->bin_ps);
}

/* Whole nanoseconds where the trace has nothing finer, so that what is cut at bins has no more decimals. */
static int64_t bin_length(const struct reducer_reduce *r, uint32_t bins)
{
	int64_t range = r->high_ps - r->low_ps, unit = r->has_ps ? 1 : 1000;
	int64_t bin = range / bins + (range % bins != 0);
	bin += unit - 1;
	bin -= bin % unit;
	return bin < unit ? unit : bin;
}

int reduce_plan_bins(struct reducer_reduce *r, uint32_t bins)
{
	r->bins = bins;
	r->bin_ps = bin_length(r, bins);
	r->spans.count = r->instants.count = r->pairs.count = 0;
	memset(r->gone, 0, sizeof(r->gone));
	reduce_begin_flows(r);
	int result = reduce_each_track(r, REDUCE_PLAN);
	if (result < 0)
		return result;
	plan_counters(r);
	reduce_finish_flows(r);
	count_plan(r);
	return 0;
}

/*
 * The finest bins that leave at most `target` events. The number of events grows with the number of bins but for
 * small steps back, so halving finds it; the last plan that fits is made again if it was not the last one tried.
 */
static int search_bins(struct reducer_reduce *r, uint64_t target)
{
	uint32_t low = 0, high = 0, bins = REDUCER_BINS_DEFAULT;
	int result = reduce_plan_bins(r, bins);
	while (result == 0) {
		if (r->events_out <= target) {
			low = bins;
			/* Finer bins than the trace's own unit change nothing. */
			if (r->bin_ps <= (r->has_ps ? 1 : 1000) || bins >= BINS_MAX / 2)
				return 0;
		} else {
			high = bins;
		}
		if (high && high - low <= 1 + low / 64)
			break;
		bins = !high ? bins * 2 : low ? low + (high - low) / 2 : high / 2;
		if (bins == 0)
			break;
		result = reduce_plan_bins(r, bins);
	}
	r->bound_reached = low == 0;
	/* Where short spans are dense, few enough are left only if merged ones may be longer than any of them. */
	if (result == 0 && low == 0 && !r->uncapped) {
		r->uncapped = true;
		return search_bins(r, target);
	}
	if (result == 0 && r->bins != (low ? low : 1))
		result = reduce_plan_bins(r, low ? low : 1);
	return result;
}

int reduce_plan_target(struct reducer_reduce *r)
{
	uint64_t target = r->options.target_events;
	r->uncapped = false;
	if (r->options.target_permille) {
		uint64_t share = (uint64_t)r->col.count * r->options.target_permille / 1000;
		share += share == 0;
		target = target && target < share ? target : share;
	}
	if (target)
		return search_bins(r, target);
	return reduce_plan_bins(r, r->options.bins ? r->options.bins : REDUCER_BINS_DEFAULT);
}
