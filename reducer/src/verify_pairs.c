/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what belongs together, takes out what is not compared, and puts spans in order.
 *
 * B and E: of one track, in the order of time (at equal times that of the file), an E closes the innermost
 * open B; the B then stands for the span. Async b and e: the same among those of one group, category, name
 * and id. What finds no mate is kept as it is.
 */
#include <errno.h>
#include <stdlib.h>

#include "verify_trace.h"

/* A begin or an end. */
struct half {
	verify_ps start;
	uint32_t key, event;
};

struct halves {
	struct half *half;
	size_t n, room;
};

static int compare_halves(const void *one, const void *other)
{
	const struct half *a = one, *b = other;
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->event < b->event ? -1 : a->event > b->event;
}

static int add_half(struct halves *halves, verify_ps start, uint32_t key, uint32_t event)
{
	struct half *grown = verify_grow(halves->half, halves->n, &halves->room, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	halves->half = grown;
	halves->half[halves->n++] = (struct half){start, key, event};
	return 0;
}

static int gather_halves(struct verify *verify, const struct verify_trace *trace, bool async,
			 struct halves *halves)
{
	struct verify_texts keys = {0};
	int result = 0;
	for (uint32_t i = 0; result == 0 && i < trace->n_events; i++) {
		const struct verify_event *event = &trace->event[i];
		uint32_t key = event->track, group = verify->house.track[event->track].group;
		if (async != (event->class == VERIFY_ASYNC) ||
		    (!async && event->class != VERIFY_BEGIN && event->class != VERIFY_END))
			continue;
		if (async)
			result = verify_texts_add(
				&keys, VERIFY_KEY(group, event->category, event->name, event->id), &key);
		if (result == 0)
			result = add_half(halves, event->start, key, i);
	}
	verify_texts_free(&keys);
	if (halves->n)
		qsort(halves->half, halves->n, sizeof(*halves->half), compare_halves);
	return result;
}

static void join_span(struct verify_event *begin, struct verify_event *end)
{
	begin->duration = end->start - begin->start;
	begin->class = VERIFY_SPAN;
	/* A span is the same whether one event or two say it, but for what the second one says beyond its
	 * time. */
	begin->kind = DREC_SPAN;
	if (end->has_more)
		begin->same = verify_print_join(begin->same, end->same);
	end->class = VERIFY_GONE;
}

static void join_async(struct verify_trace *trace, uint32_t at, struct verify_event *end)
{
	struct verify_event *begin = &trace->event[at];
	end->begin = at;
	begin->duration = end->duration = end->start - begin->start;
	begin->class = VERIFY_ASYNC_BEGIN;
	end->class = VERIFY_ASYNC_END;
}

/* One stack of open begins will do: the halves come key by key. */
static int join_halves(struct verify_trace *trace, const struct halves *halves)
{
	uint32_t *open = malloc((halves->n + 1) * sizeof(*open));
	size_t depth = 0;
	if (!open)
		return -ENOMEM;
	for (size_t i = 0; i < halves->n; i++) {
		struct verify_event *event = &trace->event[halves->half[i].event];
		bool async = event->class == VERIFY_ASYNC;
		if (i > 0 && halves->half[i].key != halves->half[i - 1].key)
			depth = 0;
		event->class = VERIFY_KEPT;
		if (event->kind == DREC_BEGIN || event->kind == DREC_ASYNC_BEGIN)
			open[depth++] = halves->half[i].event;
		else if (depth && async)
			join_async(trace, open[--depth], event);
		else if (depth)
			join_span(&trace->event[open[--depth]], event);
	}
	free(open);
	return 0;
}

static int pair(struct verify *verify, struct verify_trace *trace, bool async)
{
	struct halves halves = {0};
	int result = gather_halves(verify, trace, async, &halves);
	if (result == 0)
		result = join_halves(trace, &halves);
	free(halves.half);
	return result;
}

int verify_pair(struct verify *verify)
{
	int result = 0;
	for (int async = 0; result == 0 && async < 2; async++) {
		result = pair(verify, &verify->raw, async);
		if (result == 0)
			result = pair(verify, &verify->reduced, async);
	}
	return result;
}

/* From when to when an event lasts: false where it has no time. An async end speaks for its pair. */
static bool lasts(const struct verify_event *event, verify_ps *ret_from, verify_ps *ret_to)
{
	*ret_from = *ret_to = event->start;
	if (event->class == VERIFY_SPAN || event->class == VERIFY_ASYNC_BEGIN || event->class == VERIFY_NOTE)
		*ret_to += event->duration;
	else if (event->class == VERIFY_ASYNC_END)
		*ret_from -= event->duration;
	return event->has_time;
}

static bool is_outside(const struct verify_mark *mark, const struct verify_event *event)
{
	verify_ps from, to;
	if (!mark->has_window || event->class == VERIFY_META || event->class == VERIFY_MARK ||
	    !lasts(event, &from, &to))
		return false;
	return from > mark->window_to || to < mark->window_from;
}

/* Whether the reduced trace has the event's track; the end of an async pair goes with its begin. */
static bool is_on_reduced(const struct verify *verify, const struct verify_event *event)
{
	if (event->class == VERIFY_ASYNC_END)
		event = &verify->raw.event[event->begin];
	return verify->house.track[event->track].is_reduced;
}

int verify_cut(struct verify *verify)
{
	struct verify_track *track = verify->house.track;
	for (size_t i = 0; i < verify->reduced.n_events; i++) {
		const struct verify_event *event = &verify->reduced.event[i];
		if (event->class != VERIFY_META && event->class != VERIFY_MARK &&
		    event->class != VERIFY_ASYNC_END)
			track[event->track].is_reduced = true;
	}
	for (size_t i = 0; i < verify->raw.n_events; i++) {
		struct verify_event *event = &verify->raw.event[i];
		if (is_outside(&verify->mark, event) ||
		    (verify->mark.has_tracks && event->class != VERIFY_META && !is_on_reduced(verify, event)))
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
		trace->span[trace->n_spans++] =
			(struct verify_span){event->start, event->start + event->duration, event->track, i};
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
		if (event->kind == DREC_SPAN || event->class == VERIFY_NOTE) {
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
