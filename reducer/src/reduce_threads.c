/* SPDX-License-Identifier: Apache-2.0 */
/* Tracks share nothing: they are worked on side by side, the largest first. */
#include "reduce_inside.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 16, SMALL_EVENTS = 50000 };

struct work {
	struct reducer_reduce *reduce;
	enum reduce_task task;
	const uint32_t *by_size;
	atomic_uint *next;
	struct reduce_cells *cells;
	struct reduce_vector cuts;
	struct reduce_rectangles spans, instants, pairs;
	int result;
};

static int plan_track(struct work *w, uint32_t track)
{
	struct reducer_reduce *r = w->reduce;
	size_t first = w->spans.count;
	int result;
	switch (r->tracks.track[track].class) {
	case CLASS_THREAD:
		result = reduce_choose_spans(r, track, r->bin_ps, &w->cuts);
		if (result < 0 || r->tracks.track[track].unruly)
			return result;
		result = reduce_cells_track(w->cells, r, track, r->bin_ps, &w->cuts, &w->spans);
		return result < 0 ? result : reduce_overlap_track(r, track, r->bin_ps, &w->spans, first);
	case CLASS_INSTANTS:
		return reduce_plan_instants(r, track, r->bin_ps, &w->instants);
	case CLASS_ASYNC:
		return reduce_plan_async(r, track, r->bin_ps, &w->pairs);
	default:
		return 0;
	}
}

static void *run(void *context)
{
	struct work *w = context;
	uint32_t count = w->reduce->tracks.count;
	w->result = w->task == REDUCE_PLAN ? reduce_cells_new(&w->cells) : 0;
	while (w->result == 0) {
		uint32_t i = atomic_fetch_add(w->next, 1);
		if (i >= count)
			break;
		w->result = w->task == REDUCE_PLAN ? plan_track(w, w->by_size[i])
						   : reduce_settle_track(w->reduce, w->by_size[i]);
	}
	reduce_cells_free(w->cells);
	free(w->cuts.at);
	return NULL;
}

static int larger_first(const void *a, const void *b, void *context)
{
	const struct reduce_track *track = context;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	if (track[x].n_events != track[y].n_events)
		return track[x].n_events > track[y].n_events ? -1 : 1;
	return (x > y) - (x < y);
}

/* The order that the rectangles are written in, whichever thread made them. */
static int in_order(const void *a, const void *b)
{
	const struct reduce_rectangle *x = a, *y = b;
	if (x->track != y->track)
		return x->track < y->track ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	if (x->to != y->to)
		return x->to > y->to ? -1 : 1;
	return (x->longest > y->longest) - (x->longest < y->longest);
}

static int gather(struct reduce_rectangles *all, struct reduce_rectangles *some)
{
	if (!some->count)
		return 0;
	if (all->room < all->count + some->count) {
		struct reduce_rectangle *grown = realloc(all->at, (all->count + some->count) * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		all->at = grown;
		all->room = all->count + some->count;
	}
	memcpy(all->at + all->count, some->at, some->count * sizeof(*some->at));
	all->count += some->count;
	return 0;
}

static int gather_all(struct reducer_reduce *r, struct work *w)
{
	int result = w->result;
	if (result == 0)
		result = gather(&r->spans, &w->spans);
	if (result == 0)
		result = gather(&r->instants, &w->instants);
	if (result == 0)
		result = gather(&r->pairs, &w->pairs);
	free(w->spans.at);
	free(w->instants.at);
	free(w->pairs.at);
	return result;
}

static void sort_rectangles(struct reduce_rectangles *all)
{
	if (all->count)
		qsort(all->at, all->count, sizeof(*all->at), in_order);
}

int reduce_each_track(struct reducer_reduce *r, enum reduce_task task)
{
	unsigned threads = r->options.threads ? r->options.threads : 2;
	uint32_t count = r->tracks.count;
	uint32_t *by_size = malloc(((size_t)count + 1) * sizeof(*by_size));
	if (!by_size)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		by_size[i] = i;
	qsort_r(by_size, count, sizeof(*by_size), larger_first, r->tracks.track);
	if (threads > THREADS_MAX)
		threads = THREADS_MAX;
	if (r->col.count < SMALL_EVENTS)
		threads = 1;
	atomic_uint next = 0;
	struct work work[THREADS_MAX];
	pthread_t thread[THREADS_MAX];
	bool started[THREADS_MAX] = {false};
	for (unsigned i = 0; i < threads; i++)
		work[i] = (struct work){.reduce = r, .task = task, .by_size = by_size, .next = &next};
	/* A thread that cannot be started is done without. */
	for (unsigned i = 1; i < threads; i++)
		started[i] = pthread_create(&thread[i], NULL, run, &work[i]) == 0;
	run(&work[0]);
	int result = 0;
	for (unsigned i = 0; i < threads; i++) {
		if (started[i])
			pthread_join(thread[i], NULL);
		int gathered = gather_all(r, &work[i]);
		result = result < 0 ? result : gathered;
	}
	free(by_size);
	if (result == 0 && task == REDUCE_PLAN) {
		sort_rectangles(&r->spans);
		sort_rectangles(&r->instants);
		sort_rectangles(&r->pairs);
	}
	return result;
}
