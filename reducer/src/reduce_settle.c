/* SPDX-License-Identifier: Apache-2.0 */
/* What has to be known of all events before any bin: one zero, every track in order, pairs. */
#include "reduce_inside.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES_MAX = 1 << 14, CORE_TIMES = 4 };

/* Times further from zero are out of reach of int64 picoseconds. */
static const int64_t REACH_NS = 50ll * 86400 * 1000000000;

static int compare_times(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static bool has_place_in_time(uint32_t bits)
{
	return reduce_kind_of(bits) < KIND_META;
}

/* Start times of up to SAMPLES_MAX events, sorted. */
static int sample_times(const struct reduce_columns *col, int64_t **ret_times, size_t *ret_count)
{
	int64_t *times = malloc(SAMPLES_MAX * sizeof(*times));
	if (!times)
		return -ENOMEM;
	size_t count = 0, step = col->count / SAMPLES_MAX + 1;
	/* An odd step cannot fall into the rhythm of pairs. */
	step |= 1;
	for (size_t i = 0; i < col->count && count < SAMPLES_MAX; i += step)
		if (has_place_in_time(col->bits[i]))
			times[count++] = col->start[i];
	for (size_t i = 0; count == 0 && i < col->count; i++)
		if (has_place_in_time(col->bits[i]))
			times[count++] = col->start[i];
	qsort(times, count, sizeof(*times), compare_times);
	*ret_times = times;
	*ret_count = count;
	return 0;
}

static bool within_reach(int64_t ns, int64_t zero_ns)
{
	return ns >= zero_ns - REACH_NS && ns <= zero_ns + REACH_NS;
}

/* Whether the event's times are out of reach; a begin's end counts by itself. */
static bool is_far(const struct reduce_columns *col, uint32_t i, int64_t zero_ns)
{
	if (!within_reach(col->start[i], zero_ns))
		return true;
	return reduce_kind_of(col->bits[i]) == KIND_SPAN && col->length[i] > REACH_NS;
}

/*
 * Zero is the first start among the events that belong together: a single stray time (0 in a trace of Unix
 * times, a length of years) must not stretch every bin. *ret_low and *ret_high bound what the bins are cut
 * from; events beyond have bins all the same.
 */
static int find_bounds(struct reducer_reduce *r)
{
	const struct reduce_columns *col = &r->col;
	int64_t *times = NULL;
	size_t count = 0;
	int result = sample_times(col, &times, &count);
	if (result < 0 || count == 0) {
		free(times);
		return result;
	}
	int64_t middle = times[count / 2], a = times[count / 1000], b = times[count - 1 - count / 1000];
	free(times);
	int64_t low = INT64_MAX, high = INT64_MIN;
	for (uint32_t i = 0; i < col->count; i++) {
		if (!has_place_in_time(col->bits[i]) || is_far(col, i, middle))
			continue;
		int64_t end = col->start[i] + (reduce_kind_of(col->bits[i]) == KIND_SPAN ? col->length[i] : 0);
		low = col->start[i] < low ? col->start[i] : low;
		high = end > high ? end : high;
	}
	if (low > high)
		low = high = middle;
	a = a < low ? low : a;
	b = b > high ? high : b;
	if (b > a && (high - low) / CORE_TIMES > b - a) {
		low = a - low > b - a ? a - (b - a) : low;
		high = high - b > b - a ? b + (b - a) : high;
	}
	r->zero_ns = low;
	r->low_ps = 0;
	r->high_ps = (high - low) < REACH_NS ? (high - low) * 1000 + 999 : REACH_NS * 1000;
	return 0;
}

/* A track with a time out of reach stays as it is, but where that time lies before or after all others. */
static void note_unruly(struct reducer_reduce *r, uint32_t i)
{
	const struct reduce_columns *col = &r->col;
	int64_t end_ns = col->start[i];
	if (reduce_kind_of(col->bits[i]) == KIND_SPAN && col->length[i] > 0)
		end_ns = col->length[i] > INT64_MAX - (end_ns > 0 ? end_ns : 0) ? INT64_MAX : end_ns + col->length[i];
	if (end_ns >= r->zero_ns - REACH_NS && col->start[i] <= r->zero_ns + REACH_NS)
		r->tracks.track[col->track[i]].unruly = true;
	if (reduce_kind_of(col->bits[i]) == KIND_BEGIN || reduce_kind_of(col->bits[i]) == KIND_END)
		r->tracks.track[col->track[i]].unruly = true;
}

/* Whether [from, to] meets the window asked for. */
bool reduce_in_window(const struct reducer_reduce *r, int64_t from, int64_t to)
{
	return !r->options.has_window || (from <= r->options.window_to_ps && to >= r->options.window_from_ps);
}

/* A flow with an end out of reach goes as a whole: no span can be told to be near that end. */
static int note_far_flow(struct reducer_reduce *r, uint32_t i)
{
	int64_t *number = reduce_vector_add(&r->far_flows, sizeof(*number));
	if (!number)
		return -ENOMEM;
	*number = r->col.length[i];
	r->col.bits[i] |= BIT_SHUT;
	return 0;
}

static int to_ps(struct reducer_reduce *r)
{
	struct reduce_columns *col = &r->col;
	for (uint32_t i = 0; i < col->count; i++) {
		uint32_t bits = col->bits[i];
		enum reduce_kind kind = reduce_kind_of(bits);
		col->bits[i] = bits & ~((1u << BITS_KIND) - 1);
		const struct reduce_track *track = &r->tracks.track[col->track[i]];
		if (track->shut)
			col->bits[i] |= BIT_SHUT | BIT_ELSEWHERE;
		if (!has_place_in_time(bits))
			continue;
		if (is_far(col, i, r->zero_ns)) {
			note_unruly(r, i);
			r->tracks.track[col->track[i]].n_events--;
			col->bits[i] |= BIT_FAR | (r->options.has_window ? BIT_SHUT : 0);
			if (kind >= KIND_FLOW_BEGIN && kind <= KIND_FLOW_END && note_far_flow(r, i) < 0)
				return -ENOMEM;
			continue;
		}
		col->start[i] = (col->start[i] - r->zero_ns) * 1000 + (bits >> BITS_START_PS & BITS_PS_MASK);
		/* No plan looks at what is on no track. */
		if (track->class >= CLASS_ALONE && !reduce_in_window(r, col->start[i], col->start[i]))
			col->bits[i] |= BIT_SHUT;
		if (kind == KIND_SPAN)
			col->length[i] = col->length[i] * 1000 + (bits >> BITS_LENGTH_PS & BITS_PS_MASK);
	}
	return 0;
}

/* Fills `order`: events by track, in the order of the file. */
static int group_by_track(struct reducer_reduce *r)
{
	const struct reduce_columns *col = &r->col;
	r->order = malloc(((size_t)col->count + 1) * sizeof(*r->order));
	uint32_t *next = malloc(((size_t)r->tracks.count + 1) * sizeof(*next));
	if (!r->order || !next) {
		free(next);
		return -ENOMEM;
	}
	uint32_t first = 0;
	for (uint32_t t = 0; t < r->tracks.count; t++) {
		next[t] = r->tracks.track[t].first = first;
		first += r->tracks.track[t].n_events;
	}
	for (uint32_t i = 0; i < col->count; i++)
		if (!(col->bits[i] & BIT_FAR))
			r->order[next[col->track[i]]++] = i;
	free(next);
	return 0;
}

static bool earlier(const void *context, uint32_t a, uint32_t b)
{
	const struct reduce_columns *col = context;
	return col->start[a] != col->start[b] ? col->start[a] < col->start[b] : a < b;
}

/* Rows are laid out in this order: of equal starts the longer one first, then as in the file. */
static bool outer_first(const void *context, uint32_t a, uint32_t b)
{
	const struct reduce_columns *col = context;
	if (col->start[a] != col->start[b])
		return col->start[a] < col->start[b];
	return col->length[a] != col->length[b] ? col->length[a] > col->length[b] : a < b;
}

/* Begins and ends of a thread, as a stack. What finds no partner stays as it is. */
static int pair_spans(struct reducer_reduce *r, const struct reduce_track *track)
{
	struct reduce_columns *col = &r->col;
	uint32_t *order = r->order + track->first;
	bool any = false;
	for (uint32_t i = 0; i < track->n_events && !any; i++)
		any = reduce_kind_of(col->bits[order[i]]) != KIND_SPAN;
	if (!any)
		return 0;
	int result = reduce_sort(order, track->n_events, earlier, col);
	struct reduce_vector open = {0};
	for (uint32_t i = 0; i < track->n_events && result == 0; i++) {
		uint32_t e = order[i], *top;
		if (reduce_kind_of(col->bits[e]) == KIND_BEGIN) {
			top = reduce_vector_add(&open, sizeof(*top));
			if (!top)
				result = -ENOMEM;
			else
				*top = e;
		} else if (reduce_kind_of(col->bits[e]) == KIND_END && open.count) {
			uint32_t b = ((uint32_t *)open.at)[--open.count];
			col->length[b] = col->start[e] - col->start[b];
			col->bits[b] = reduce_with_kind(col->bits[b], KIND_SPAN) | BIT_PAIR;
			col->length[e] = b;
			col->bits[e] |= BIT_PAIR;
		}
	}
	free(open.at);
	return result;
}

/* Puts the spans asked for first on a thread's part of `order`; ends and lone begins follow. */
static void spans_first(struct reducer_reduce *r, struct reduce_track *track)
{
	struct reduce_columns *col = &r->col;
	uint32_t *order = r->order + track->first, spans = 0;
	for (uint32_t i = 0; i < track->n_events; i++) {
		uint32_t e = order[i];
		bool span = reduce_kind_of(col->bits[e]) == KIND_SPAN;
		if (!reduce_in_window(r, col->start[e], col->start[e] + (span ? col->length[e] : 0)))
			col->bits[e] |= BIT_SHUT;
		if (!span || (col->bits[e] & BIT_SHUT))
			continue;
		order[i] = order[spans];
		order[spans++] = e;
	}
	/* The exchange may have disturbed the order of the file; the sort that follows restores it. */
	track->n_spans = spans;
}

/* How many rectangles a track may cost only because none is to be longer than its longest span. */
enum { LIMIT_COSTS_MIN = 64, LIMIT_COSTS_SHARE = 20 };

/* Places each span in its row, and takes the measure of the track. */
static void lay_out(struct reducer_reduce *r, struct reduce_track *track)
{
	struct reduce_columns *col = &r->col;
	const uint32_t *order = r->order + track->first;
	int64_t end[REDUCE_ROWS], reach = INT64_MIN, longest = 0;
	unsigned depth = 0;
	double busy = 0;
	for (uint32_t i = 0; i < track->n_spans; i++) {
		uint32_t e = order[i];
		int64_t from = col->start[e], length = col->length[e], to = from + length;
		uint32_t row = reducer_nest_place_in(end, &depth, REDUCE_ROWS, from, to);
		track->n_overlapping += row == REDUCE_OVERFLOW;
		col->bits[e] = (col->bits[e] & ~(uint32_t)BITS_ROW_MASK) | row;
		longest = length > longest ? length : longest;
		if (to > reach) {
			busy += (double)(to - (from > reach ? from : reach));
			reach = to;
		}
	}
	double costs = longest ? busy / (double)longest : 0;
	track->first_ps = track->n_spans ? col->start[order[0]] : 0;
	track->last_ps = reach;
	track->longest_ps = longest;
	track->dense = costs > LIMIT_COSTS_MIN && costs > (double)track->n_spans / LIMIT_COSTS_SHARE;
}

/* An open async begin. `length` of a begin that is open is the index of the one below it with the same id. */
struct open_async {
	uint64_t id;
	uint32_t begin;
	bool used;
};

struct async_table {
	struct open_async *slot;
	uint32_t slots, used;
};

static struct open_async *async_find(struct async_table *table, uint64_t id)
{
	uint32_t at = (uint32_t)(id ^ id >> 32) & (table->slots - 1);
	while (table->slot[at].used && table->slot[at].id != id)
		at = (at + 1) & (table->slots - 1);
	return &table->slot[at];
}

static int async_grow(struct async_table *table)
{
	if (table->slots && table->used < table->slots / 2)
		return 0;
	struct async_table grown = {.slots = table->slots ? table->slots * 2 : 64};
	grown.slot = calloc(grown.slots, sizeof(*grown.slot));
	if (!grown.slot)
		return -ENOMEM;
	for (uint32_t i = 0; i < table->slots; i++) {
		if (table->slot[i].used && table->slot[i].begin != REDUCE_NONE) {
			*async_find(&grown, table->slot[i].id) = table->slot[i];
			grown.used++;
		}
	}
	free(table->slot);
	*table = grown;
	return 0;
}

static int async_begin(struct reduce_columns *col, struct async_table *table, uint32_t e)
{
	int result = async_grow(table);
	if (result < 0)
		return result;
	uint64_t id = (uint64_t)col->length[e];
	struct open_async *open = async_find(table, id);
	if (!open->used) {
		*open = (struct open_async){id, REDUCE_NONE, true};
		table->used++;
	}
	col->length[e] = open->begin;
	open->begin = e;
	return 0;
}

static void async_end(struct reduce_columns *col, struct async_table *table, uint32_t e)
{
	if (!table->slots)
		return;
	struct open_async *open = async_find(table, (uint64_t)col->length[e]);
	if (!open->used || open->begin == REDUCE_NONE)
		return;
	uint32_t b = open->begin;
	open->begin = (uint32_t)col->length[b];
	col->length[b] = col->start[e] - col->start[b];
	col->length[e] = b;
	col->bits[b] |= BIT_PAIR;
	col->bits[e] |= BIT_PAIR;
}

static int pair_async(struct reducer_reduce *r, const struct reduce_track *track)
{
	struct reduce_columns *col = &r->col;
	const uint32_t *order = r->order + track->first;
	struct async_table table = {0};
	int result = 0;
	for (uint32_t i = 0; i < track->n_events && result == 0; i++) {
		uint32_t e = order[i];
		if (reduce_kind_of(col->bits[e]) == KIND_ASYNC_BEGIN)
			result = async_begin(col, &table, e);
		else
			async_end(col, &table, e);
	}
	free(table.slot);
	return result;
}

int reduce_settle_track(struct reducer_reduce *r, uint32_t at)
{
	struct reduce_track *track = &r->tracks.track[at];
	uint32_t *order = r->order + track->first;
	int result;
	switch (track->class) {
	case CLASS_THREAD:
		result = pair_spans(r, track);
		if (result < 0)
			return result;
		spans_first(r, track);
		result = reduce_sort(order, track->n_spans, outer_first, &r->col);
		if (result == 0)
			lay_out(r, track);
		return result;
	case CLASS_FLOWS:
	case CLASS_INSTANTS:
	case CLASS_COUNTER:
		return reduce_sort(order, track->n_events, earlier, &r->col);
	case CLASS_ASYNC:
		result = reduce_sort(order, track->n_events, earlier, &r->col);
		return result < 0 ? result : pair_async(r, track);
	default:
		return 0;
	}
}

/* Flows look for the track of spans of the same thread. */
static void link_flows(struct reducer_reduce *r)
{
	uint32_t count = r->tracks.count;
	for (uint32_t t = 0; t < count; t++) {
		if (r->tracks.track[t].class != CLASS_FLOWS)
			continue;
		int64_t thread = reduce_track_find(&r->tracks, CLASS_THREAD, t);
		r->tracks.track[t].thread = thread < 0 ? REDUCE_NONE : (uint32_t)thread;
		if (thread >= 0)
			r->tracks.track[thread].thread = t;
	}
}

static int compare_samples(const void *a, const void *b, void *context)
{
	const struct reduce_sample *x = a, *y = b;
	const struct reduce_columns *col = context;
	if (x->track != y->track)
		return x->track < y->track ? -1 : 1;
	int64_t t = col->start[x->event], u = col->start[y->event];
	return t != u ? (t < u ? -1 : 1) : (x->event > y->event) - (x->event < y->event);
}

/* Further values of counters, by track and time. */
static void group_samples(struct reducer_reduce *r)
{
	struct reduce_sample *at = r->samples.at;
	if (!r->samples.count)
		return;
	qsort_r(at, r->samples.count, sizeof(*at), compare_samples, &r->col);
	for (uint32_t i = 0; i < r->samples.count; i++) {
		struct reduce_track *track = &r->tracks.track[at[i].track];
		if (track->n_samples++ == 0)
			track->first_sample = i;
	}
}

static void *number_flows(void *context)
{
	return (void *)(intptr_t)reduce_number_flows(context);
}

/* Flows get their numbers while the bounds of time are looked for: neither reads what the other writes. */
static int number_and_bound(struct reducer_reduce *r)
{
	pthread_t thread;
	bool apart = r->options.threads != 1 && pthread_create(&thread, NULL, number_flows, r) == 0;
	int result = find_bounds(r);
	void *numbered = NULL;
	if (apart)
		pthread_join(thread, &numbered);
	else
		numbered = number_flows(r);
	return result < 0 ? result : (int)(intptr_t)numbered;
}

int reduce_settle(struct reducer_reduce *r)
{
	int result = reduce_select(r);
	if (result == 0)
		result = number_and_bound(r);
	if (result == 0)
		result = to_ps(r);
	if (result < 0)
		return result;
	reduce_select_events(r);
	link_flows(r);
	group_samples(r);
	result = group_by_track(r);
	r->flow = result == 0 ? malloc((size_t)r->n_flows + 1) : NULL;
	if (result == 0 && !r->flow)
		result = -ENOMEM;
	reduce_columns_free_track(&r->col);
	return result < 0 ? result : reduce_each_track(r, REDUCE_SETTLE);
}
