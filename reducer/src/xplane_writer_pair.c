/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Begins and ends, in the order of time, made spans. An end closes the innermost open begin of its line, as it does
 * for `reduce` and `verify`; an async one the innermost of its id that has its name (one without a name: any).
 */
#include <errno.h>
#include <stdlib.h>

#include "xplane_writer_inside.h"

enum { SEARCH_MAX = 1024 }; /* how deep an end looks for its begin */

struct half {
	uint64_t key; /* asynchronous ones by their key, others by their row */
	int64_t ns;
	uint32_t index;
	uint16_t ps;
};

static int compare_halves(const void *a, const void *b)
{
	const struct half *x = a, *y = b;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	if (x->ps != y->ps)
		return x->ps < y->ps ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

static bool is_half(const struct xw_event *event)
{
	return event->kind >= XW_BEGIN && event->kind <= XW_ASYNC_END;
}

static bool is_begin(const struct xw_event *event)
{
	return event->kind == XW_BEGIN || event->kind == XW_ASYNC_BEGIN;
}

static uint32_t count_halves(const struct reducer_xplane_writer *w)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < w->n_events; i++)
		n += is_half(&w->event[i]);
	return n;
}

static void leave_out(struct reducer_xplane_writer *w, struct xw_event *event, enum xw_left why)
{
	event->kind = XW_GONE;
	w->left_out[why]++;
	w->stats.events--;
}

/* A difference beyond 64 bits is cut: no XPlane could say it. */
static void close_span(struct xw_event *begin, struct xw_event *end, uint32_t end_index)
{
	__int128 ps = ((__int128)end->start_ns - begin->start_ns) * 1000 + end->start_ps - begin->start_ps;
	__int128 ns = ps / 1000;
	begin->duration_ns = ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
	begin->duration_ps = (uint16_t)(ps % 1000);
	begin->kind = XW_SPAN;
	begin->partner = end->bytes ? end_index : XW_NOTHING;
	end->kind = XW_GONE;
}

static void close_one(struct reducer_xplane_writer *w, uint32_t *open, uint32_t *n_open, uint32_t end_index)
{
	struct xw_event *end = &w->event[end_index];
	for (uint32_t i = *n_open; i > 0 && *n_open - i < SEARCH_MAX; i--) {
		struct xw_event *begin = &w->event[open[i - 1]];
		if (end->kind == XW_ASYNC_END && end->metadata && end->metadata != begin->metadata)
			continue;
		close_span(begin, end, end_index);
		--*n_open;
		for (uint32_t j = i - 1; j < *n_open; j++)
			open[j] = open[j + 1];
		return;
	}
	leave_out(w, end, XW_LEFT_ENDS);
}

static void pair_all(struct reducer_xplane_writer *w, const struct half *half, uint32_t n, uint32_t *open)
{
	uint32_t n_open = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (is_begin(&w->event[half[i].index]))
			open[n_open++] = half[i].index;
		else
			close_one(w, open, &n_open, half[i].index);
		if (i + 1 < n && half[i + 1].key == half[i].key)
			continue;
		while (n_open)
			leave_out(w, &w->event[open[--n_open]], XW_LEFT_OPEN);
	}
}

int xw_pair(struct reducer_xplane_writer *w)
{
	uint32_t n = count_halves(w), at = 0;
	if (n == 0)
		return 0;
	struct half *half = malloc(n * sizeof(*half));
	uint32_t *open = malloc(n * sizeof(*open));
	if (half && open) {
		for (uint32_t i = 0; i < w->n_events; i++) {
			const struct xw_event *event = &w->event[i];
			bool async = event->kind == XW_ASYNC_BEGIN || event->kind == XW_ASYNC_END;
			uint64_t key = async ? (uint64_t)event->partner << 32 | UINT32_MAX : event->row;
			if (is_half(event))
				half[at++] = (struct half){key, event->start_ns, i, event->start_ps};
		}
		qsort(half, n, sizeof(*half), compare_halves);
		pair_all(w, half, n, open);
	}
	int result = half && open ? 0 : -ENOMEM;
	free(half);
	free(open);
	return result;
}
