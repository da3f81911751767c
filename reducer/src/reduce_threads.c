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
	unsigned number;
	int result;
};

/* The order that rectangles are written in. */
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

static int plan_thread(struct work *w, uint32_t at)
{
	struct reducer_reduce *r = w->reduce;
	struct reduce_track *track = &r->tracks.track[at];
	size_t first = w->spans.count;
	int result = reduce_choose_spans(r, at, r->bin_ps, &w->cuts);
	if (result == 0 && !track->unruly)
		result = reduce_cells_track(w->cells, r, at, r->bin_ps, &w->cuts, &w->spans);
	if (result == 0 && !track->unruly)
		result = reduce_overlap_track(r, at, r->bin_ps, &w->spans, first);
	track->worker = w->number;
	track->first_out = first;
	track->n_out = w->spans.count - first;
	if (track->n_out)
		qsort(w->spans.at + first, track->n_out, sizeof(*w->spans.at), in_order);
	if (result == 0 && track->thread != REDUCE_NONE)
		reduce_look_at_flows(r, track->thread);
	return result;
}

static int plan_track(struct work *w, uint32_t track)
{
	struct reducer_reduce *r = w->reduce;
	switch (r->tracks.track[track].class) {
	case CLASS_THREAD:
		return plan_thread(w, track);
	case CLASS_FLOWS:
		/* Else with the spans that they are bound to. */
		if (r->tracks.track[track].thread == REDUCE_NONE)
			reduce_look_at_flows(r, track);
		return 0;
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

/* Rectangles of spans, which are many, are in order within each track already. */
static int gather_spans(struct reducer_reduce *r, const struct work *work, unsigned threads)
{
	struct reduce_rectangles *all = &r->spans;
	size_t count = 0;
	for (unsigned i = 0; i < threads; i++)
		count += work[i].spans.count;
	if (count > all->room) {
		struct reduce_rectangle *grown = realloc(all->at, count * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		all->at = grown;
		all->room = count;
	}
	all->count = 0;
	for (uint32_t t = 0; t < r->tracks.count; t++) {
		const struct reduce_track *track = &r->tracks.track[t];
		if (track->class != CLASS_THREAD || !track->n_out)
			continue;
		memcpy(all->at + all->count, work[track->worker].spans.at + track->first_out,
		       track->n_out * sizeof(*all->at));
		all->count += track->n_out;
	}
	return 0;
}

static void sort_rectangles(struct reduce_rectangles *all)
{
	if (all->count)
		qsort(all->at, all->count, sizeof(*all->at), in_order);
}

/* What the threads made, in an order that does not depend on which of them made it. */
static int gather_all(struct reducer_reduce *r, struct work *work, unsigned threads)
{
	int result = 0;
	for (unsigned i = 0; i < threads && result == 0; i++)
		result = work[i].result;
	if (result == 0)
		result = gather_spans(r, work, threads);
	for (unsigned i = 0; i < threads && result == 0; i++) {
		result = gather(&r->instants, &work[i].instants);
		if (result == 0)
			result = gather(&r->pairs, &work[i].pairs);
	}
	sort_rectangles(&r->instants);
	sort_rectangles(&r->pairs);
	return result;
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
		work[i] = (struct work){.reduce = r, .task = task, .by_size = by_size, .next = &next, .number = i};
	/* A thread that cannot be started is done without. */
	for (unsigned i = 1; i < threads; i++)
		started[i] = pthread_create(&thread[i], NULL, run, &work[i]) == 0;
	run(&work[0]);
	int result = 0;
	for (unsigned i = 0; i < threads; i++) {
		if (started[i])
			pthread_join(thread[i], NULL);
		result = result < 0 ? result : work[i].result;
	}
	if (result == 0 && task == REDUCE_PLAN)
		result = gather_all(r, work, threads);
	for (unsigned i = 0; i < threads; i++) {
		free(work[i].spans.at);
		free(work[i].instants.at);
		free(work[i].pairs.at);
	}
	free(by_size);
	return result;
}
