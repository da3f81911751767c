/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holding what was written against the columns of the raw trace:
 *
 *   reduce_check.c         reads it back, pairs its tracks and names with the raw ones, shares the work out
 *   reduce_check_spans.c   M1, M2, M3, and what M5 says of spans
 *   reduce_check_points.c  instants, counters, async events
 *   reduce_check_rest.c    flows, metadata, members, and what stays as it is
 *
 * Nothing here looks at a plan (BIT_KEEP, rectangles, counts): only at what was read, and at the options.
 */
#ifndef REDUCER_REDUCE_CHECK_H
#define REDUCER_REDUCE_CHECK_H

#include <reducer/verify.h>

#include "reduce_inside.h"

/* A name of what was written that the raw trace does not have. */
#define CHECK_NO_NAME REDUCE_NONE

/* Each worker has a copy, with a report and stamps of its own. */
struct check {
	const struct reducer_reduce *raw, *out;
	int64_t shift_ps;         /* what to add to times of `out` */
	int64_t bin_ps;
	/* By name of either trace: the first name of `raw` that says the same, or CHECK_NO_NAME. */
	const uint32_t *raw_said, *out_said;
	uint32_t *stamp;          /* by such a first name: the last track + 1 that was seen to have it */
	struct reducer_verify_report *report;
};

/* The events of a track, in order of time. */
struct check_side {
	const struct reducer_reduce *of;
	const struct reduce_columns *col;
	const uint32_t *order;
	uint32_t count, track; /* no events where `track` is REDUCE_NONE */
	int64_t shift;
};

static inline int64_t check_start(const struct check_side *side, uint32_t event)
{
	return side->col->start[event] + side->shift;
}

/* `track` may be REDUCE_NONE, `at` NULL; it is in ps since the raw trace's zero. */
__attribute__((format(printf, 5, 6))) void check_failed(struct check *c, enum reducer_promise promise,
							 uint32_t track, const int64_t *at, const char *format, ...);
static inline void check_made(struct check *c, enum reducer_promise promise)
{
	c->report->checked[promise]++;
}

/* The track of `of` with the class and texts of `track` of `tracks`, or REDUCE_NONE. */
uint32_t check_find_track(const struct reduce_tracks *of, const struct reduce_tracks *tracks, uint32_t track);

/* All events of a track, or its spans. */
struct check_side check_side_of(const struct check *c, bool raw, uint32_t track, bool spans);

/* Equal for names of either trace that say the same: what raw_said and out_said have, or a hash. */
uint32_t check_said(const struct check *c, bool raw, uint32_t name);
static inline bool check_same_name(const struct check *c, uint32_t raw, uint32_t out)
{
	return check_said(c, true, raw) == check_said(c, false, out);
}
/* For messages: the name's text, shortened. */
struct check_name {
	char text[64];
};
struct check_name check_name_of(const struct reducer_reduce *r, uint32_t event);
/* For messages: "12.345 us". */
struct check_us {
	char text[40];
};
struct check_us check_us_of(int64_t ps);

/* How many events it stands for; 1 of what is not merged. */
uint64_t check_events_of(const struct reducer_reduce *r, uint32_t event);

/* Tracks are the raw trace's; `out` is the same track of what was written, or REDUCE_NONE. */
void check_spans(struct check *c, uint32_t track, uint32_t out);
void check_busy(struct check *c, uint32_t track, uint32_t out);
void check_instants(struct check *c, uint32_t track, uint32_t out);
void check_counter(struct check *c, uint32_t track, uint32_t out);
void check_async(struct check *c, uint32_t track, uint32_t out);
/* 0 or -ENOMEM */
int check_async_sums(struct check *c);
int check_flows(struct check *c);
int check_rest(struct check *c);
void check_members(struct check *c);

#endif
