/* SPDX-License-Identifier: Apache-2.0 */
#include <reducer/bins.h>

/* Of equally long spans the lower name stays: folding gives the same bin in whatever groups it is done. */
static void keep_longest(struct reducer_bin *bin, uint32_t name, int64_t duration_ns, bool first)
{
	if (first || duration_ns > bin->longest_ns || (duration_ns == bin->longest_ns && name < bin->name)) {
		bin->longest_ns = duration_ns;
		bin->name = name;
	}
}

/* Durations are never negative; a sum that would not fit stays at its limit. */
static int64_t sum_of(int64_t a, int64_t b)
{
	return a > INT64_MAX - b ? INT64_MAX : a + b;
}

void reducer_bin_span(struct reducer_bin *bin, uint32_t name, int64_t duration_ns)
{
	keep_longest(bin, name, duration_ns, bin->count == 0);
	bin->sum_ns = sum_of(bin->sum_ns, duration_ns);
	bin->count++;
}

void reducer_bin_instant(struct reducer_bin *bin, uint32_t name, int64_t time_ns)
{
	if (bin->count == 0 || time_ns < bin->first_ns) {
		bin->first_ns = time_ns;
		bin->name = name;
	}
	bin->count++;
}

void reducer_bin_counter(struct reducer_bin *bin, int64_t time_ns, double value)
{
	if (bin->count == 0 || value < bin->min)
		bin->min = value;
	if (bin->count == 0 || value > bin->max)
		bin->max = value;
	if (bin->count == 0 || time_ns >= bin->last_ns) {
		bin->last = value;
		bin->last_ns = time_ns;
	}
	bin->count++;
}

static void fold_counter(struct reducer_bin *into, const struct reducer_bin *from)
{
	if (into->count == 0 || from->min < into->min)
		into->min = from->min;
	if (into->count == 0 || from->max > into->max)
		into->max = from->max;
	if (into->count == 0 || from->last_ns >= into->last_ns) {
		into->last = from->last;
		into->last_ns = from->last_ns;
	}
}

static void fold_instants(struct reducer_bin *into, const struct reducer_bin *from)
{
	if (into->count == 0 || from->first_ns < into->first_ns) {
		into->first_ns = from->first_ns;
		into->name = from->name;
	}
}

void reducer_bin_fold(struct reducer_bin *into, const struct reducer_bin *from, enum reducer_row_kind kind)
{
	into->busy_ns = sum_of(into->busy_ns, from->busy_ns);
	into->track_busy_ns = sum_of(into->track_busy_ns, from->track_busy_ns);
	if (from->count == 0)
		return;
	if (kind == REDUCER_ROW_COUNTER)
		fold_counter(into, from);
	else if (kind == REDUCER_ROW_INSTANTS)
		fold_instants(into, from);
	else
		keep_longest(into, from->name, from->longest_ns, into->count == 0);
	into->sum_ns = sum_of(into->sum_ns, from->sum_ns);
	into->count += from->count;
}

uint8_t reducer_nest_place_in(int64_t *end, unsigned *depth, unsigned room, int64_t from, int64_t to)
{
	while (*depth > 0 && end[*depth - 1] <= from)
		--*depth;
	if (*depth == room || (*depth > 0 && end[*depth - 1] < to))
		return REDUCER_DEPTH_OVERFLOW;
	end[*depth] = to;
	return (uint8_t)(*depth)++;
}

uint8_t reducer_nest_place(struct reducer_nest *nest, int64_t from, int64_t to)
{
	return reducer_nest_place_in(nest->end, &nest->depth, REDUCER_NEST_MAX, from, to);
}
