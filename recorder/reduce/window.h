/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce/window.h: what --window and --target-events ask for, as people write it.
 *
 *     10s:20s      from the trace's first event on; a bare number is seconds
 *     :5s  -5s:    open ends; a minus counts from the end of the trace
 *     2026-11-30T03:12:44Z:2026-11-30T03:12:50Z   UTC, for a trace that says when it was
 *
 * Errors are -errno; `ret_` is untouched then.
 */
#ifndef RECORDER_REDUCE_WINDOW_H
#define RECORDER_REDUCE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

enum reduce_bound_kind { REDUCE_BOUND_OPEN = 0, REDUCE_BOUND_START, REDUCE_BOUND_END, REDUCE_BOUND_UTC };

struct reduce_bound {
	enum reduce_bound_kind kind;
	int64_t ns; /* after the start, before the end, or Unix time */
};

struct reduce_window {
	struct reduce_bound from, to;
};

/* -EINVAL: no window; -ERANGE: a time that does not fit. */
int reduce_window_parse(const char *text, struct reduce_window *ret_window);

/* What a trace says of its times. */
struct reduce_span {
	int64_t first_ns;  /* of its events, in the trace's own time */
	int64_t length_ps; /* from there to the last end */
	bool has_base;
	int64_t base_unix_ns; /* what 0 of its own time is */
};

/* Whether the window can be told only with the trace's span. */
bool reduce_window_needs_span(const struct reduce_window *window);

/* Open ends: further than any event, and far enough from the ends of 64 bits to be added to. */
#define REDUCE_WINDOW_FAR_PS (INT64_MAX / 2)

/*
 * In ps since the trace's first event. `span` may be NULL where it is not needed. -ENODATA: UTC, and the
 * trace does not say when it was; -EDOM: ends before it begins; -ERANGE.
 */
int reduce_window_resolve(const struct reduce_window *window, const struct reduce_span *span,
			  int64_t *ret_from_ps, int64_t *ret_to_ps);

/* "50000" or "10%": events, or a share of those that came. The other one is 0. */
struct reduce_target {
	uint64_t events;
	uint32_t permille;
};
int reduce_target_parse(const char *text, struct reduce_target *ret_target);

#endif
