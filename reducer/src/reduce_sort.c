/* SPDX-License-Identifier: Apache-2.0 */
/* A stable merge sort over the runs that are there. */
#include "reduce_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct merge {
	uint32_t *order, *spare;
	bool (*before)(const void *context, uint32_t a, uint32_t b);
	const void *context;
};

/* Merges two neighbouring runs; only the left one is copied. */
static void merge_runs(const struct merge *m, size_t left, size_t middle, size_t right)
{
	size_t n = middle - left, i = 0, j = middle, out = left;
	memcpy(m->spare, m->order + left, n * sizeof(*m->spare));
	while (i < n && j < right) {
		if (m->before(m->context, m->order[j], m->spare[i]))
			m->order[out++] = m->order[j++];
		else
			m->order[out++] = m->spare[i++];
	}
	memcpy(m->order + out, m->spare + i, (n - i) * sizeof(*m->spare));
}

/* The end of the run that begins at `at`. */
static size_t run_end(const struct merge *m, size_t at, size_t count)
{
	size_t end = at + 1;
	while (end < count && !m->before(m->context, m->order[end], m->order[end - 1]))
		end++;
	return end;
}

/*
 * A stable merge sort over the runs that are there: traces are mostly written in order, track by track, and a
 * track in order costs one look at each event.
 */
int reduce_sort(uint32_t *order, size_t count, bool (*before)(const void *, uint32_t, uint32_t),
		const void *context)
{
	struct merge m = {order, NULL, before, context};
	if (count < 2 || run_end(&m, 0, count) == count)
		return 0;
	m.spare = malloc(count * sizeof(*m.spare));
	size_t stack[64], runs = 0, at = 0;
	if (!m.spare)
		return -ENOMEM;
	/* stack[] holds run starts; a run is merged with the one before while that is not twice as long. */
	while (at < count) {
		size_t end = run_end(&m, at, count);
		stack[runs++] = at;
		while (runs > 1 && (runs == sizeof(stack) / sizeof(stack[0]) ||
				    stack[runs - 1] - stack[runs - 2] < 2 * (end - stack[runs - 1]))) {
			merge_runs(&m, stack[runs - 2], stack[runs - 1], end);
			runs--;
		}
		at = end;
	}
	while (runs > 1) {
		merge_runs(&m, stack[runs - 2], stack[runs - 1], count);
		runs--;
	}
	free(m.spare);
	return 0;
}
