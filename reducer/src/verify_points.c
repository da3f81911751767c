/* SPDX-License-Identifier: Apache-2.0 */
/* M4: what the points of a bin come to. Instants: how many and the first; counters: min, max and last. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "verify_say.h"

/* One instant. */
struct point {
	verify_ps start;
	uint32_t track, event;
};

struct points {
	struct point *point;
	size_t n;
};

static int compare_points(const void *one, const void *other)
{
	const struct point *a = one, *b = other;
	if (a->track != b->track)
		return a->track < b->track ? -1 : 1;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->event < b->event ? -1 : a->event > b->event;
}

static int gather_instants(const struct verify_trace *trace, struct points *points)
{
	size_t n = 0;
	for (size_t i = 0; i < trace->n_events; i++)
		n += trace->event[i].class == VERIFY_INSTANT;
	points->point = malloc((n + 1) * sizeof(*points->point));
	if (!points->point)
		return -ENOMEM;
	for (uint32_t i = 0; i < trace->n_events; i++)
		if (trace->event[i].class == VERIFY_INSTANT)
			points->point[points->n++] =
				(struct point){trace->event[i].start, trace->event[i].track, i};
	qsort(points->point, points->n, sizeof(*points->point), compare_points);
	return 0;
}

/* The instants of one track and bin. */
struct instants {
	uint32_t track;
	verify_ps bin, count;
	const struct verify_event *first;
};

/* Takes the next bin's. False at the end. */
static bool next_instants(const struct verify_mark *mark, const struct verify_trace *trace,
			  const struct points *points, size_t *at, struct instants *ret)
{
	if (*at == points->n)
		return false;
	const struct point *first = &points->point[*at];
	*ret = (struct instants){first->track, verify_bin(mark, first->start), 0,
				 &trace->event[first->event]};
	for (; *at < points->n; ++*at) {
		const struct point *point = &points->point[*at];
		const struct verify_event *event = &trace->event[point->event];
		if (point->track != ret->track || verify_bin(mark, point->start) != ret->bin)
			break;
		ret->count += event->merged ? (verify_ps)trace->merged[event->merged - 1].events : 1;
	}
	return true;
}

static void check_instants(struct verify *verify, const struct instants *raw, const struct instants *reduced)
{
	const struct instants *any = raw ? raw : reduced;
	verify_checked(verify, REDUCER_M4);
	verify_ps count = raw ? raw->count : 0, left = reduced ? reduced->count : 0;
	if (count != left)
		verify_fail(verify, REDUCER_M4, any->track, &any->first->start,
			    "from here %llu instants in one bin in the raw trace; the reduced one has or "
			    "stands for %llu",
			    (unsigned long long)count, (unsigned long long)left);
	if (!raw)
		return;
	const struct verify_count *there = verify_counts_find(&verify->counts, raw->first->same);
	verify_checked(verify, REDUCER_M4);
	if (!there || there->reduced == 0)
		verify_fail(verify, REDUCER_M4, raw->track, &raw->first->start,
			    "the first instant of a bin, \"%s\", is missing or altered",
			    verify_short(&verify->house, raw->first->name).text);
}

/* Which of two comes first: < 0 the one, > 0 the other, 0 they belong together. */
static int order_of(uint32_t one, verify_ps bin, uint32_t other, verify_ps other_bin)
{
	if (one != other)
		return one < other ? -1 : 1;
	return bin < other_bin ? -1 : bin > other_bin;
}

static void compare_instants(struct verify *verify, const struct points *raw, const struct points *reduced)
{
	size_t i = 0, j = 0;
	struct instants a, b;
	bool in_a = next_instants(&verify->mark, &verify->raw, raw, &i, &a);
	bool in_b = next_instants(&verify->mark, &verify->reduced, reduced, &j, &b);
	while (in_a || in_b) {
		int order = !in_b ? -1 : !in_a ? 1 : order_of(a.track, a.bin, b.track, b.bin);
		check_instants(verify, order <= 0 ? &a : NULL, order >= 0 ? &b : NULL);
		if (order <= 0)
			in_a = next_instants(&verify->mark, &verify->raw, raw, &i, &a);
		if (order >= 0)
			in_b = next_instants(&verify->mark, &verify->reduced, reduced, &j, &b);
	}
}

int verify_instants(struct verify *verify)
{
	struct points raw = {0}, reduced = {0};
	int result = gather_instants(&verify->raw, &raw);
	if (result == 0)
		result = gather_instants(&verify->reduced, &reduced);
	if (result == 0)
		compare_instants(verify, &raw, &reduced);
	free(raw.point);
	free(reduced.point);
	return result;
}

static int compare_values(const void *one, const void *other)
{
	const struct verify_value *a = one, *b = other;
	if (a->counter != b->counter)
		return a->counter < b->counter ? -1 : 1;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->event < b->event ? -1 : a->event > b->event;
}

/* Leaves those of samples that are compared, in order. */
static void sort_values(struct verify_trace *trace)
{
	size_t n = 0;
	for (size_t i = 0; i < trace->n_values; i++)
		if (trace->event[trace->value[i].event].class == VERIFY_COUNTER)
			trace->value[n++] = trace->value[i];
	trace->n_values = n;
	if (n)
		qsort(trace->value, n, sizeof(*trace->value), compare_values);
}

/* The samples of one counter and bin. */
struct samples {
	const struct verify_event *first;
	uint32_t counter;
	verify_ps bin;
	double min, max, last;
};

static bool next_samples(const struct verify_mark *mark, const struct verify_trace *trace, size_t *at,
			 struct samples *ret)
{
	if (*at == trace->n_values)
		return false;
	const struct verify_value *value = &trace->value[*at];
	*ret = (struct samples){&trace->event[value->event],
				value->counter,
				verify_bin(mark, value->start),
				value->value,
				value->value,
				value->value};
	for (; *at < trace->n_values; ++*at) {
		value = &trace->value[*at];
		if (value->counter != ret->counter || verify_bin(mark, value->start) != ret->bin)
			break;
		if (value->value < ret->min)
			ret->min = value->value;
		if (value->value > ret->max)
			ret->max = value->value;
		ret->last = value->value;
	}
	return true;
}

/* "mem" "used", the key in the quotes that it was written with. */
struct counter_label {
	char text[2 * sizeof(struct verify_short) + 8];
};

static struct counter_label label_of(const struct verify_house *house, uint32_t number)
{
	const struct verify_counter *counter = &house->counter[number];
	struct counter_label label;
	snprintf(label.text, sizeof(label.text), "\"%s\"%s%s", verify_short(house, counter->name).text,
		 counter->key == house->no_name ? "" : " ", verify_short(house, counter->key).text);
	return label;
}

static void compare_value(struct verify *verify, const struct samples *at, const char *what, double raw,
			  double reduced)
{
	verify_checked(verify, REDUCER_M4);
	if (raw < reduced || raw > reduced)
		verify_fail(verify, REDUCER_M4, at->first->track, &at->first->start,
			    "from here the %s of counter %s in one bin is %.17g in the raw trace, %.17g in the "
			    "reduced one",
			    what, label_of(&verify->house, at->counter).text, raw, reduced);
}

static void check_samples(struct verify *verify, const struct samples *raw, const struct samples *reduced)
{
	if (raw && reduced) {
		compare_value(verify, raw, "least value", raw->min, reduced->min);
		compare_value(verify, raw, "largest value", raw->max, reduced->max);
		compare_value(verify, raw, "last value", raw->last, reduced->last);
		return;
	}
	const struct samples *any = raw ? raw : reduced;
	verify_checked(verify, REDUCER_M4);
	verify_fail(verify, REDUCER_M4, any->first->track, &any->first->start,
		    "counter %s has samples in this bin in the %s trace only",
		    label_of(&verify->house, any->counter).text, raw ? "raw" : "reduced");
}

int verify_counters(struct verify *verify)
{
	size_t i = 0, j = 0;
	struct samples a, b;
	sort_values(&verify->raw);
	sort_values(&verify->reduced);
	bool in_a = next_samples(&verify->mark, &verify->raw, &i, &a);
	bool in_b = next_samples(&verify->mark, &verify->reduced, &j, &b);
	while (in_a || in_b) {
		int order = !in_b ? -1 : !in_a ? 1 : order_of(a.counter, a.bin, b.counter, b.bin);
		check_samples(verify, order <= 0 ? &a : NULL, order >= 0 ? &b : NULL);
		if (order <= 0)
			in_a = next_samples(&verify->mark, &verify->raw, &i, &a);
		if (order >= 0)
			in_b = next_samples(&verify->mark, &verify->reduced, &j, &b);
	}
	return 0;
}
