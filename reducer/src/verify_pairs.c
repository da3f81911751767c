/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what belongs together, takes out what is not compared, and puts spans in order.
 *
 * B and E: of one track, in the order of the file, an E closes the innermost open B; the B then stands for the
 * span. Async b and e: the same among those of one group, category and id. What finds no mate, or one that ends
 * before it begins, is kept as it is.
 */
#include <errno.h>
#include <stdlib.h>

#include "verify_trace.h"

/* Stacks of open events, one a key: the top's index + 1, and what lies below each. */
struct stacks {
	uint32_t *top;
	uint32_t *below; /* by event */
};

static int stacks_new(struct stacks *stacks, size_t keys, size_t events)
{
	stacks->top = calloc(keys + 1, sizeof(*stacks->top));
	stacks->below = calloc(events + 1, sizeof(*stacks->below));
	return stacks->top && stacks->below ? 0 : -ENOMEM;
}

static void stacks_free(struct stacks *stacks)
{
	free(stacks->top);
	free(stacks->below);
}

static void stack_push(struct stacks *stacks, uint32_t key, uint32_t event)
{
	stacks->below[event] = stacks->top[key];
	stacks->top[key] = event + 1;
}

static uint32_t stack_pop(struct stacks *stacks, uint32_t key)
{
	uint32_t top = stacks->top[key];
	if (!top)
		return VERIFY_NONE;
	stacks->top[key] = stacks->below[top - 1];
	return top - 1;
}

static void pair_span(struct verify_event *begin, struct verify_event *end)
{
	begin->duration = end->start - begin->start;
	if (begin->duration < 0) {
		begin->class = end->class = VERIFY_KEPT;
		return;
	}
	begin->class = VERIFY_SPAN;
	/* A span is the same whether one event or two say it, but for what the second one says beyond its time. */
	begin->kind = DREC_SPAN;
	if (end->has_more)
		begin->same = verify_print_join(begin->same, end->same);
	end->class = VERIFY_GONE;
}

static int pair_spans(struct verify *verify, struct verify_trace *trace)
{
	struct stacks stacks;
	int result = stacks_new(&stacks, verify->house.tracks.count, trace->n_events);
	for (uint32_t i = 0; result == 0 && i < trace->n_events; i++) {
		struct verify_event *event = &trace->event[i];
		if (event->class == VERIFY_BEGIN) {
			event->class = VERIFY_KEPT;
			stack_push(&stacks, event->track, i);
		} else if (event->class == VERIFY_END) {
			uint32_t begin = stack_pop(&stacks, event->track);
			event->class = VERIFY_KEPT;
			if (begin != VERIFY_NONE)
				pair_span(&trace->event[begin], event);
		}
	}
	stacks_free(&stacks);
	return result;
}

/* Numbers for the async events of one group, category and id. */
static int number_async(struct verify *verify, struct verify_trace *trace, uint32_t *number, uint32_t *ret_count)
{
	struct verify_texts keys = {0};
	int result = 0;
	for (size_t i = 0; result == 0 && i < trace->n_events; i++) {
		const struct verify_event *event = &trace->event[i];
		if (event->class == VERIFY_ASYNC)
			result = verify_texts_add(
				&keys, VERIFY_KEY(verify->house.track[event->track].group, event->category, event->id),
				&number[i]);
	}
	*ret_count = keys.count;
	verify_texts_free(&keys);
	return result;
}

static void pair_two(struct verify_event *begin, struct verify_event *end)
{
	if (end->start < begin->start)
		return;
	begin->duration = end->start - begin->start;
	begin->class = VERIFY_ASYNC_BEGIN;
	end->duration = begin->duration;
	end->class = VERIFY_ASYNC_END;
}

static int pair_async(struct verify *verify, struct verify_trace *trace)
{
	struct stacks stacks = {0};
	uint32_t keys = 0, *number = calloc(trace->n_events + 1, sizeof(*number));
	int result = number ? number_async(verify, trace, number, &keys) : -ENOMEM;
	if (result == 0)
		result = stacks_new(&stacks, keys, trace->n_events);
	for (uint32_t i = 0; result == 0 && i < trace->n_events; i++) {
		struct verify_event *event = &trace->event[i];
		if (event->class != VERIFY_ASYNC)
			continue;
		event->class = VERIFY_KEPT;
		if (event->kind == DREC_ASYNC_BEGIN) {
			stack_push(&stacks, number[i], i);
			continue;
		}
		uint32_t begin = stack_pop(&stacks, number[i]);
		if (begin != VERIFY_NONE)
			pair_two(&trace->event[begin], event);
	}
	stacks_free(&stacks);
	free(number);
	return result;
}

int verify_pair(struct verify *verify, struct verify_trace *trace)
{
	bool halves = false, async = false;
	for (size_t i = 0; i < trace->n_events; i++) {
		halves |= trace->event[i].class == VERIFY_BEGIN || trace->event[i].class == VERIFY_END;
		async |= trace->event[i].class == VERIFY_ASYNC;
	}
	int result = halves ? pair_spans(verify, trace) : 0;
	return result == 0 && async ? pair_async(verify, trace) : result;
}

/* From when to when an event lasts: false where it has no time. An async end speaks for its pair. */
static bool lasts(const struct verify_event *event, verify_ps *ret_from, verify_ps *ret_to)
{
	*ret_from = *ret_to = event->start;
	if (event->class == VERIFY_SPAN || event->class == VERIFY_ASYNC_BEGIN)
		*ret_to += event->duration;
	else if (event->class == VERIFY_ASYNC_END)
		*ret_from -= event->duration;
	return event->has_time;
}

static bool is_outside(const struct verify_mark *mark, const struct verify_event *event)
{
	verify_ps from, to;
	if (!mark->has_window || event->class == VERIFY_META || event->class == VERIFY_MARK || !lasts(event, &from, &to))
		return false;
	return from > mark->window_to || to < mark->window_from;
}

int verify_cut(struct verify *verify)
{
	struct verify_track *track = verify->house.track;
	for (size_t i = 0; i < verify->reduced.n_events; i++)
		if (verify->reduced.event[i].class != VERIFY_META && verify->reduced.event[i].class != VERIFY_MARK)
			track[verify->reduced.event[i].track].is_reduced = true;
	for (size_t i = 0; i < verify->raw.n_events; i++) {
		struct verify_event *event = &verify->raw.event[i];
		if (is_outside(&verify->mark, event) ||
		    (verify->mark.has_tracks && event->class != VERIFY_META && !track[event->track].is_reduced))
			event->class = VERIFY_GONE;
		if (event->class != VERIFY_GONE && event->class != VERIFY_META && event->class != VERIFY_MARK)
			track[event->track].is_raw = true;
	}
	return 0;
}

static int compare_spans(const void *one, const void *other)
{
	const struct verify_span *a = one, *b = other;
	if (a->track != b->track)
		return a->track < b->track ? -1 : 1;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->end != b->end)
		return a->end > b->end ? -1 : 1;
	return a->event < b->event ? -1 : a->event > b->event;
}

static int sort_spans(struct verify *verify, struct verify_trace *trace)
{
	uint32_t tracks = verify->house.tracks.count;
	size_t n = 0;
	for (size_t i = 0; i < trace->n_events; i++)
		n += trace->event[i].class == VERIFY_SPAN;
	trace->span = malloc((n + 1) * sizeof(*trace->span));
	trace->track_spans = calloc((size_t)tracks + 1, sizeof(*trace->track_spans));
	if (!trace->span || !trace->track_spans)
		return -ENOMEM;
	for (uint32_t i = 0; i < trace->n_events; i++) {
		const struct verify_event *event = &trace->event[i];
		if (event->class != VERIFY_SPAN)
			continue;
		trace->span[trace->n_spans++] = (struct verify_span){event->start, event->start + event->duration,
								     event->track, i};
		trace->track_spans[event->track + 1]++;
	}
	for (uint32_t t = 0; t < tracks; t++)
		trace->track_spans[t + 1] += trace->track_spans[t];
	qsort(trace->span, trace->n_spans, sizeof(*trace->span), compare_spans);
	return 0;
}

int verify_sort_both(struct verify *verify)
{
	int result = sort_spans(verify, &verify->raw);
	return result ? result : sort_spans(verify, &verify->reduced);
}

static int count_trace(struct verify *verify, struct verify_trace *trace)
{
	int result = 0;
	for (size_t i = 0; result == 0 && i < trace->n_events; i++) {
		struct verify_event *event = &trace->event[i];
		event->same = verify_print_mix(event->same, (uint64_t)event->track << 32 | event->kind);
		if (event->class != VERIFY_META && event->has_time) {
			event->same = verify_print_mix(event->same, (uint64_t)event->start);
			event->same = verify_print_mix(event->same, (uint64_t)(event->start >> 64));
		}
		if (event->kind == DREC_SPAN) {
			event->same = verify_print_mix(event->same, event->class == VERIFY_KEPT);
			event->same = verify_print_mix(event->same, (uint64_t)event->duration);
			event->same = verify_print_mix(event->same, (uint64_t)(event->duration >> 64));
		}
		if (event->class != VERIFY_GONE)
			result = verify_counts_add(&verify->counts, event->same, trace->is_reduced);
	}
	for (size_t i = 0; result == 0 && i < trace->n_members; i++)
		result = verify_counts_add(&verify->counts, trace->member[i].same, trace->is_reduced);
	return result;
}

int verify_count_events(struct verify *verify)
{
	int result = count_trace(verify, &verify->raw);
	return result ? result : count_trace(verify, &verify->reduced);
}
