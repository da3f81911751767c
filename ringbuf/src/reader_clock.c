/* SPDX-License-Identifier: Apache-2.0 */
#include "reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef __int128 wide;

enum { SECOND_NS = 1000000000, STEADY_PPM = 100, STEADY_NS = 10000 };

int64_t ring_add(int64_t a, int64_t b)
{
	int64_t sum;
	if (!__builtin_add_overflow(a, b, &sum))
		return sum;
	return b > 0 ? INT64_MAX : INT64_MIN;
}

int64_t ring_sub(int64_t a, int64_t b)
{
	int64_t difference;
	if (!__builtin_sub_overflow(a, b, &difference))
		return difference;
	return b < 0 ? INT64_MAX : INT64_MIN;
}

uint64_t ring_add_u64(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static int by_ticks(const void *left, const void *right)
{
	const struct drec_anchor *a = left, *b = right;
	return a->ticks < b->ticks ? -1 : a->ticks > b->ticks;
}

/* Torn and repeated anchors go: those that are left rise on both clocks. */
static size_t keep_rising(struct drec_anchor *anchors, size_t count)
{
	size_t kept = 0;
	for (size_t i = 0; i < count; i++) {
		const struct drec_anchor *one = &anchors[i];
		if (one->seq == 0 || one->mono_ns < 0 || one->mono_ns > INT64_MAX / 4)
			continue;
		if (kept && (one->ticks <= anchors[kept - 1].ticks || one->mono_ns <= anchors[kept - 1].mono_ns))
			continue;
		anchors[kept++] = *one;
	}
	return kept;
}

int ring_clock_set(struct ring_clock *clock, uint32_t kind, const struct drec_anchor *anchors, size_t count,
		   int64_t fallback_offset)
{
	struct drec_anchor *copy = malloc((count + 1) * sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	if (count)
		memcpy(copy, anchors, count * sizeof(*copy));
	qsort(copy, count, sizeof(*copy), by_ticks);
	free(clock->anchors);
	clock->kind = kind;
	clock->anchors = copy;
	clock->count = keep_rising(copy, count);
	clock->mono_to_unix_ns = fallback_offset;
	if (clock->count) {
		const struct drec_anchor *last = &copy[clock->count - 1];
		clock->mono_to_unix_ns = ring_sub(last->real_ns, last->mono_ns);
	}
	return 0;
}

void ring_clock_clear(struct ring_clock *clock)
{
	free(clock->anchors);
	clock->anchors = NULL;
	clock->count = 0;
}

static wide floor_divide(wide numerator, wide denominator)
{
	wide quotient = numerator / denominator;
	return numerator % denominator < 0 ? quotient - 1 : quotient;
}

static int64_t clamp_i64(wide value)
{
	return value > INT64_MAX ? INT64_MAX : value < INT64_MIN ? INT64_MIN : (int64_t)value;
}

static uint64_t clamp_u64(wide value)
{
	return value < 0 ? 0 : value > (wide)UINT64_MAX ? UINT64_MAX : (uint64_t)value;
}

/* The two anchors whose line holds where `after` anchors lie at or before the place. */
static void choose_line(const struct ring_clock *clock, size_t after, size_t *ret_from, size_t *ret_to)
{
	size_t from = after ? after - 1 : 0, to = after;
	if (to >= clock->count) {
		to = clock->count - 1;
		from = to - 1;
		while (from > 0 && clock->anchors[to].mono_ns - clock->anchors[from].mono_ns < SECOND_NS)
			from--;
	} else if (after == 0) {
		to = 1;
		while (to + 1 < clock->count && clock->anchors[to].mono_ns - clock->anchors[0].mono_ns < SECOND_NS)
			to++;
	}
	*ret_from = from;
	*ret_to = to;
}

static size_t count_at_or_before_ticks(const struct ring_clock *clock, uint64_t ticks)
{
	size_t low = 0, high = clock->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (clock->anchors[middle].ticks <= ticks)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static size_t count_at_or_before_mono(const struct ring_clock *clock, int64_t mono_ns)
{
	size_t low = 0, high = clock->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (clock->anchors[middle].mono_ns <= mono_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int64_t ring_clock_mono_ns(const struct ring_clock *clock, uint64_t ticks)
{
	if (clock->kind == DREC_CLOCK_MONO)
		return ticks > INT64_MAX ? INT64_MAX : (int64_t)ticks;
	if (clock->kind == DREC_CLOCK_UNIX)
		return ring_sub(ticks > INT64_MAX ? INT64_MAX : (int64_t)ticks, clock->mono_to_unix_ns);
	if (clock->count < 2) {
		wide base = clock->count ? (wide)clock->anchors[0].mono_ns - (wide)clock->anchors[0].ticks : 0;
		return clamp_i64(base + ticks);
	}
	size_t from, to;
	choose_line(clock, count_at_or_before_ticks(clock, ticks), &from, &to);
	const struct drec_anchor *a = &clock->anchors[from], *b = &clock->anchors[to];
	uint64_t mono_ns = (uint64_t)(b->mono_ns - a->mono_ns);
	/* Most places lie within a second of an anchor: there 64 bits are enough, and four times as fast. */
	if (ticks >= a->ticks && ticks - a->ticks < (uint64_t)1 << 33 && mono_ns < (uint64_t)1 << 31)
		return a->mono_ns + (int64_t)((ticks - a->ticks) * mono_ns / (b->ticks - a->ticks));
	wide distance = (wide)ticks - (wide)a->ticks;
	return clamp_i64(a->mono_ns + floor_divide(distance * (wide)mono_ns, (wide)(b->ticks - a->ticks)));
}

int64_t ring_clock_unix_ns(const struct ring_clock *clock, uint64_t ticks)
{
	if (clock->kind == DREC_CLOCK_UNIX)
		return ticks > INT64_MAX ? INT64_MAX : (int64_t)ticks;
	return ring_add(ring_clock_mono_ns(clock, ticks), clock->mono_to_unix_ns);
}

uint64_t ring_clock_ticks(const struct ring_clock *clock, int64_t mono_ns)
{
	if (clock->kind == DREC_CLOCK_MONO)
		return clamp_u64(mono_ns);
	if (clock->kind == DREC_CLOCK_UNIX)
		return clamp_u64((wide)mono_ns + clock->mono_to_unix_ns);
	if (clock->count < 2) {
		wide base = clock->count ? (wide)clock->anchors[0].mono_ns - (wide)clock->anchors[0].ticks : 0;
		return clamp_u64((wide)mono_ns - base);
	}
	size_t from, to;
	choose_line(clock, count_at_or_before_mono(clock, mono_ns), &from, &to);
	const struct drec_anchor *a = &clock->anchors[from], *b = &clock->anchors[to];
	wide distance = (wide)mono_ns - a->mono_ns;
	wide span = (wide)(b->ticks - a->ticks);
	/* |distance| < 2^64 and span < 2^64 could pass 2^127 together: far away, the limit is as good. */
	if (distance > (wide)1 << 62)
		return UINT64_MAX;
	if (distance < -((wide)1 << 62))
		return 0;
	return clamp_u64((wide)a->ticks + floor_divide(distance * span, b->mono_ns - a->mono_ns));
}

/* Whether the step from one anchor to the next agrees with the usual ticks in mono_ns. */
static int keeps_step(const struct drec_anchor *one, const struct drec_anchor *next, wide ticks, wide mono_ns)
{
	wide passed = next->mono_ns - one->mono_ns;
	wide expected = (wide)(next->ticks - one->ticks) * mono_ns / ticks;
	wide off = passed > expected ? passed - expected : expected - passed;
	return off <= passed * STEADY_PPM / 1000000 + STEADY_NS;
}

static int by_slope(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;
	return *a < *b ? -1 : *a > *b;
}

/* Ticks in 2^40 ns, the median over the stretches of at least half a second; 0 if there is none. */
static uint64_t usual_slope(const struct ring_clock *clock)
{
	uint64_t *slopes = malloc(clock->count * sizeof(*slopes));
	if (!slopes)
		return 0;
	size_t count = 0;
	for (size_t i = 1; i < clock->count; i++) {
		const struct drec_anchor *a = &clock->anchors[i - 1], *b = &clock->anchors[i];
		int64_t mono_ns = b->mono_ns - a->mono_ns;
		if (mono_ns >= SECOND_NS / 2)
			slopes[count++] = clamp_u64(((wide)(b->ticks - a->ticks) << 40) / mono_ns);
	}
	uint64_t median = 0;
	if (count) {
		qsort(slopes, count, sizeof(*slopes), by_slope);
		median = slopes[count / 2];
	}
	free(slopes);
	return median;
}

/*
 * Whether a stretch is out of step for good. An anchor whose writer was preempted between two clocks is off
 * by itself: then the stretch that leaves it out is in step again.
 */
static int jumps(const struct ring_clock *clock, size_t to, uint64_t slope)
{
	const struct drec_anchor *anchors = clock->anchors;
	const wide unit = (wide)1 << 40;
	if (keeps_step(&anchors[to - 1], &anchors[to], slope, unit))
		return 0;
	if (to + 1 < clock->count && keeps_step(&anchors[to - 1], &anchors[to + 1], slope, unit))
		return 0;
	return to < 2 || !keeps_step(&anchors[to - 2], &anchors[to], slope, unit);
}

int ring_clock_steady(const struct ring_clock *clock, uint64_t a_ticks, uint64_t b_ticks)
{
	if (clock->kind != DREC_CLOCK_TSC && clock->kind != DREC_CLOCK_CNTVCT)
		return 1;
	if (clock->count < 2)
		return 0;
	uint64_t slope = usual_slope(clock);
	for (size_t i = 1; i < clock->count; i++) {
		const struct drec_anchor *one = &clock->anchors[i - 1], *next = &clock->anchors[i];
		if (next->ticks < a_ticks || one->ticks > b_ticks)
			continue;
		if (one->clocksource != next->clocksource)
			return 0;
		if (slope && jumps(clock, i, slope))
			return 0;
	}
	return 1;
}
