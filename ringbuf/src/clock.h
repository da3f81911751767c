/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a ring's ticks to MONOTONIC and Unix time and back, by anchors (moments known on every clock). Integer
 * arithmetic alone. Between two anchors the line through both holds; outside, the nearest line of at least a
 * second, since the slope over a shorter stretch is too coarse to follow far.
 */
#ifndef RINGBUF_CLOCK_H
#define RINGBUF_CLOCK_H

#include <driverec/format.h>

struct ring_clock {
	uint32_t kind;            /* enum drec_clock */
	struct drec_anchor *anchors; /* owned; rising in ticks and in mono_ns */
	size_t count;
	int64_t mono_to_unix_ns;
};

/*
 * Takes what is whole of `anchors`, which may come from a hostile ring. The offset is that of the last anchor,
 * or `fallback_offset` without any. -ENOMEM leaves *clock as it was.
 */
int ring_clock_set(struct ring_clock *clock, uint32_t kind, const struct drec_anchor *anchors, size_t count,
		   int64_t fallback_offset);
void ring_clock_clear(struct ring_clock *clock);

int64_t ring_clock_mono_ns(const struct ring_clock *clock, uint64_t ticks);
int64_t ring_clock_unix_ns(const struct ring_clock *clock, uint64_t ticks);
uint64_t ring_clock_ticks(const struct ring_clock *clock, int64_t mono_ns);

/* Whether ticks and MONOTONIC kept step, and the clocksource stayed, from a to b. */
int ring_clock_steady(const struct ring_clock *clock, uint64_t a_ticks, uint64_t b_ticks);

/* Sums that stay at the limits of their type. */
int64_t ring_add(int64_t a, int64_t b);
int64_t ring_sub(int64_t a, int64_t b);
uint64_t ring_add_u64(uint64_t a, uint64_t b);

#endif
