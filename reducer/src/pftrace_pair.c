/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Begins and ends, in the order of time, made spans. An end closes the innermost open begin of its thread (or
 * of its async id) that has its name; one without a name closes the innermost. What stays open is a span
 * without end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pftrace_inside.h"

enum { SEARCH_MAX = 1024 }; /* how deep an end looks for its begin */

struct pairing {
	struct reducer_pftrace_writer *w;
	struct pf_list open; /* uint32_t: indexes of begins */
	uint32_t scope;
	uint32_t root; /* the track of the outermost open one */
};

static int compare_halves(const void *a, const void *b)
{
	const struct pf_half *x = a, *y = b;
	if (x->async != y->async)
		return x->async ? 1 : -1;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	int order = pf_compare(x->ns, x->ps, y->ns, y->ps);
	return order ? order : (x->order > y->order) - (x->order < y->order);
}

static struct pf_half *halves_of(const struct pairing *p)
{
	return p->w->halves.item;
}

static struct pf_record *add_record(struct pairing *p, const struct pf_half *begin, uint8_t kind)
{
	struct pf_record *record = pf_list_add(&p->w->records, sizeof(*record));
	if (!record)
		return NULL;
	*record = (struct pf_record){
		.start_ns = begin->ns,
		.start_ps = begin->ps,
		.end_ns = begin->ns,
		.end_ps = begin->ps,
		.place = begin->place,
		.bytes = begin->bytes,
		.order = begin->order,
		.track = begin->track,
		.scope = begin->async ? p->scope : 0,
		.kind = kind,
	};
	return record;
}

static int add_span(struct pairing *p, const struct pf_half *begin, const struct pf_half *end)
{
	struct pf_record *record = add_record(p, begin, end ? PF_SPAN : PF_OPEN);
	if (!record)
		return -ENOMEM;
	if (begin->async)
		record->track = p->root;
	record->end_ns = end ? end->ns : INT64_MAX;
	record->end_ps = end ? end->ps : 0;
	if (!end || !end->bytes)
		return 0;
	struct pf_end *said = pf_list_add(&p->w->ends, sizeof(*said));
	if (!said)
		return -ENOMEM;
	record->flags |= PF_HAS_END;
	*said = (struct pf_end){end->place, end->bytes, begin->order};
	return 0;
}

static bool closes(const struct pf_half *end, const struct pf_half *begin)
{
	return !end->name || end->name == begin->name;
}

static int close_one(struct pairing *p, const struct pf_half *end)
{
	struct pf_half *half = halves_of(p);
	uint32_t *open = p->open.item;
	for (uint32_t i = p->open.count; i > 0 && p->open.count - i < SEARCH_MAX; i--) {
		if (!closes(end, &half[open[i - 1]]))
			continue;
		struct pf_half begin = half[open[i - 1]];
		memmove(open + i - 1, open + i, (p->open.count - i) * sizeof(*open));
		p->open.count--;
		return add_span(p, &begin, end);
	}
	p->w->left_out[PF_LEFT_END]++;
	p->w->stats.events--;
	return 0;
}

static int open_one(struct pairing *p, uint32_t index)
{
	if (p->open.count == 0)
		p->root = halves_of(p)[index].track;
	uint32_t *open = pf_list_add(&p->open, sizeof(*open));
	if (!open)
		return -ENOMEM;
	*open = index;
	return 0;
}

static int take(struct pairing *p, uint32_t index)
{
	const struct pf_half *half = &halves_of(p)[index];
	if (half->kind == DREC_BEGIN || half->kind == DREC_ASYNC_BEGIN)
		return open_one(p, index);
	if (half->kind != DREC_ASYNC_INSTANT)
		return close_one(p, half);
	struct pf_record *record = add_record(p, half, PF_INSTANT);
	if (record && p->open.count)
		record->track = p->root;
	return record ? 0 : -ENOMEM;
}

/* The begins of one thread or id that are still open at its end. */
static int end_key(struct pairing *p)
{
	int result = 0;
	for (uint32_t i = 0; i < p->open.count && result == 0; i++)
		result = add_span(p, &halves_of(p)[((uint32_t *)p->open.item)[i]], NULL);
	p->open.count = 0;
	p->scope++;
	return result;
}

static int compare_ends(const void *a, const void *b)
{
	const struct pf_end *x = a, *y = b;
	return (x->order > y->order) - (x->order < y->order);
}

int pf_pair(struct reducer_pftrace_writer *w)
{
	struct pairing p = {.w = w, .scope = 1};
	const struct pf_half *half = w->halves.item;
	int result = 0;
	if (w->halves.count)
		qsort(w->halves.item, w->halves.count, sizeof(*half), compare_halves);
	for (uint32_t i = 0; i < w->halves.count && result == 0; i++) {
		if (i > 0 && (half[i].async != half[i - 1].async || half[i].key != half[i - 1].key))
			result = end_key(&p);
		if (result == 0)
			result = take(&p, i);
	}
	if (result == 0)
		result = end_key(&p);
	free(p.open.item);
	free(w->halves.item);
	w->halves = (struct pf_list){0};
	if (w->ends.count)
		qsort(w->ends.item, w->ends.count, sizeof(struct pf_end), compare_ends);
	return result;
}
