/* SPDX-License-Identifier: Apache-2.0 */
#include <reducer/bins.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int reducer_cover_init(struct reducer_cover *cover, uint32_t room)
{
	struct reducer_range *range = malloc(room * sizeof(*range));
	if (!range)
		return -ENOMEM;
	*cover = (struct reducer_cover){.range = range, .room = room, .horizon = INT64_MIN};
	return 0;
}

int reducer_cover_grow(struct reducer_cover *cover, uint32_t room)
{
	if (room <= cover->room)
		return 0;
	struct reducer_range *range = realloc(cover->range, room * sizeof(*range));
	if (!range)
		return -ENOMEM;
	cover->range = range;
	cover->room = room;
	return 0;
}

void reducer_cover_clear(struct reducer_cover *cover)
{
	free(cover->range);
	*cover = (struct reducer_cover){0};
}

/* The first range that ends after `time`; count if there is none. Nearly sorted input finds it among the last ones. */
static uint32_t first_ending_after(const struct reducer_cover *cover, int64_t time)
{
	enum { LAST = 4 };
	uint32_t low = 0, high = cover->count;
	for (int i = 0; i < LAST; i++, high--)
		if (high == 0 || cover->range[high - 1].to <= time)
			return high;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (cover->range[middle].to > time)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

bool reducer_cover_meets(const struct reducer_cover *cover, int64_t from, int64_t to)
{
	uint32_t i = first_ending_after(cover, from);
	return from < to && i < cover->count && cover->range[i].from < to;
}

bool reducer_cover_gap(const struct reducer_cover *cover, int64_t from, int64_t to, struct reducer_range *ret)
{
	uint32_t i = first_ending_after(cover, from);
	/* Ranges do not touch: after the end of one, there is a gap. */
	if (i < cover->count && cover->range[i].from <= from)
		from = cover->range[i++].to;
	if (from >= to)
		return false;
	ret->from = from;
	ret->to = i < cover->count && cover->range[i].from < to ? cover->range[i].from : to;
	return true;
}

static void forget_earliest(struct reducer_cover *cover)
{
	uint32_t gone = cover->room / 4;
	cover->horizon = cover->range[gone - 1].to;
	cover->count -= gone;
	memmove(cover->range, cover->range + gone, cover->count * sizeof(*cover->range));
}

static void insert(struct reducer_cover *cover, uint32_t i, int64_t from, int64_t to)
{
	if (cover->count == cover->room) {
		uint32_t before = cover->count;
		forget_earliest(cover);
		uint32_t gone = before - cover->count;
		if (i < gone)
			return; /* it lies before the new horizon */
		i -= gone;
	}
	memmove(cover->range + i + 1, cover->range + i, (cover->count - i) * sizeof(*cover->range));
	cover->range[i] = (struct reducer_range){from, to};
	cover->count++;
}

void reducer_cover_add(struct reducer_cover *cover, int64_t from, int64_t to)
{
	if (from < cover->horizon)
		from = cover->horizon;
	if (from >= to)
		return;
	struct reducer_range *last = cover->count ? &cover->range[cover->count - 1] : NULL;
	if (last && last->to == from) {
		last->to = to;
		return;
	}
	if (!last || last->to < from) {
		insert(cover, cover->count, from, to);
		return;
	}
	cover->late = true;
	/* Ranges [i, end) overlap or touch the new one and become one with it. */
	uint32_t i = first_ending_after(cover, from);
	if (i > 0 && cover->range[i - 1].to == from)
		i--;
	uint32_t end = i;
	while (end < cover->count && cover->range[end].from <= to)
		end++;
	if (i == end) {
		insert(cover, i, from, to);
		return;
	}
	if (cover->range[i].from < from)
		from = cover->range[i].from;
	if (cover->range[end - 1].to > to)
		to = cover->range[end - 1].to;
	cover->range[i] = (struct reducer_range){from, to};
	memmove(cover->range + i + 1, cover->range + end, (cover->count - end) * sizeof(*cover->range));
	cover->count -= end - i - 1;
}
