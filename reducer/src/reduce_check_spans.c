/* SPDX-License-Identifier: Apache-2.0 */
/* M1, M2, M3, and what M5 says of spans: plain sweeps over the spans of a track as they are sorted. */
#include "reduce_check.h"

#include <string.h>

#include <reducer/marks.h>

enum { TOLERANCE_PS = 1000 };

/* --- M1: the union of the spans, cut at the bins. Bins that are busy throughout are runs, however many. --- */

struct busy {
	struct check_side side;
	uint32_t next;
	int64_t from, to; /* what is left of a stretch without a gap */
	int64_t bin_ps;
	int64_t bin, bins, busy; /* the run: each of `bins` bins is busy for `busy` */
	bool any;                /* there is a run */
	bool open;               /* there is a stretch */
};

static void next_stretch(struct busy *b)
{
	const struct check_side *side = &b->side;
	b->open = false;
	while (b->next < side->count && !b->open) {
		uint32_t e = side->order[b->next++];
		b->from = check_start(side, e);
		b->to = b->from + side->col->length[e];
		for (; b->next < side->count; b->next++) {
			e = side->order[b->next];
			int64_t from = check_start(side, e), to = from + side->col->length[e];
			if (from > b->to)
				break;
			if (to > b->to)
				b->to = to;
		}
		b->open = b->to > b->from;
	}
}

static void next_run(struct busy *b)
{
	b->any = b->open;
	if (!b->open)
		return;
	b->bin = reduce_bin_of(b->from, b->bin_ps);
	b->bins = 1;
	int64_t begin = b->bin * b->bin_ps;
	if (b->from == begin && b->to - b->from >= b->bin_ps) {
		b->bins = (b->to - b->from) / b->bin_ps;
		b->busy = b->bin_ps;
		b->from += b->bins * b->bin_ps;
		if (b->from == b->to)
			next_stretch(b);
		return;
	}
	b->busy = 0;
	while (b->open && (uint64_t)b->from - (uint64_t)begin < (uint64_t)b->bin_ps) {
		int64_t left = b->bin_ps - (b->from - begin), part = b->to - b->from;
		part = part < left ? part : left;
		b->busy += part;
		b->from += part;
		if (b->from == b->to)
			next_stretch(b);
	}
}

static void begin_busy(struct busy *b, const struct check_side *side, int64_t bin_ps)
{
	*b = (struct busy){.side = *side, .bin_ps = bin_ps};
	next_stretch(b);
	next_run(b);
}

/* Leaves the first `bins` bins of the run. */
static void pass_bins(struct busy *b, int64_t bins)
{
	b->bin += bins;
	b->bins -= bins;
	if (b->bins == 0)
		next_run(b);
}

static void compare_busy(struct check *c, uint32_t track, int64_t bin, int64_t raw, int64_t out)
{
	int64_t at = bin * c->bin_ps;
	check_made(c, REDUCER_M1);
	if (raw - out > TOLERANCE_PS || out - raw > TOLERANCE_PS)
		check_failed(c, REDUCER_M1, track, &at,
			     "busy %s in the raw trace, %s in the reduced one, in this bin of %s",
			     check_us_of(raw).text, check_us_of(out).text, check_us_of(c->bin_ps).text);
}

void check_busy(struct check *c, uint32_t track, uint32_t out)
{
	struct check_side raw_side = check_side_of(c, true, track, true);
	struct check_side out_side = check_side_of(c, false, out, true);
	struct busy a, b;
	begin_busy(&a, &raw_side, c->bin_ps);
	begin_busy(&b, &out_side, c->bin_ps);
	while (a.any || b.any) {
		int64_t bin = !b.any || (a.any && a.bin < b.bin) ? a.bin : b.bin;
		bool in_a = a.any && a.bin == bin, in_b = b.any && b.bin == bin;
		int64_t bins = in_a ? a.bins : b.bins;
		if (in_a && in_b)
			bins = b.bins < bins ? b.bins : bins;
		else if (in_a && b.any && b.bin - bin < bins)
			bins = b.bin - bin;
		else if (in_b && a.any && a.bin - bin < bins)
			bins = a.bin - bin;
		compare_busy(c, track, bin, in_a ? a.busy : 0, in_b ? b.busy : 0);
		if (in_a)
			pass_bins(&a, bins);
		if (in_b)
			pass_bins(&b, bins);
	}
}

/* --- M2, M3, M5 --- */

/* What the spans of a side come to. Sums may wrap: they are compared, not shown. */
struct sums {
	uint64_t events, sum;
	int64_t first, last, longest;
};

/* The longest span so far of a row, in the bin that the sweep has come to. */
struct row {
	int64_t bin, length;
	uint32_t first; /* of those that are as long */
	bool any, there;
};

struct sweep {
	struct check *c;
	struct check_side raw, out;
	uint32_t track;
	/* What was written for itself is a part of the raw spans, in their order: its next one. */
	uint32_t next;
	int64_t next_start, next_length;
	bool next_merged;
	bool unknown_name; /* a raw span has a name that is known by its hash only */
	struct sums raw_sums, out_sums;
	struct row row[REDUCE_OVERFLOW + 1];
};

static bool raw_has_merged(const struct sweep *s)
{
	return s->c->raw->stands.count > 0;
}

/* What stands for others is no raw span, but where the raw trace was reduced already. */
static void load_next(struct sweep *s)
{
	for (; s->next < s->out.count; s->next++) {
		uint32_t f = s->out.order[s->next];
		s->next_merged = s->out.col->bits[f] & BIT_MERGED;
		if (s->next_merged && !raw_has_merged(s))
			continue;
		s->next_start = check_start(&s->out, f);
		s->next_length = s->out.col->length[f];
		return;
	}
}

static void say_altered(struct sweep *s)
{
	check_made(s->c, REDUCER_M5);
	check_failed(s->c, REDUCER_M5, s->track, &s->next_start, "\"%s\" of %s does not stand so in the raw trace",
		     check_name_of(s->out.of, s->out.order[s->next]).text, check_us_of(s->next_length).text);
}

static bool same_stands(const struct sweep *s, uint32_t e, uint32_t f)
{
	const struct reduce_stands *a = reduce_stands_of(s->raw.of, e), *b = reduce_stands_of(s->out.of, f);
	return a && b && a->events == b->events && a->sum_ps == b->sum_ps && a->longest_ps == b->longest_ps;
}

/* Whether the raw span is there as it was. */
static bool is_there(struct sweep *s, uint32_t e, int64_t start, int64_t length)
{
	while (s->next < s->out.count) {
		if (start < s->next_start || (start == s->next_start && length > s->next_length))
			return false;
		uint32_t f = s->out.order[s->next];
		if (start == s->next_start && length == s->next_length) {
			bool merged = s->raw.col->bits[e] & BIT_MERGED;
			if (s->next_merged && !merged) {
				/* New: one that was in the raw trace before this span would have been met there. */
				s->next++;
				load_next(s);
				continue;
			}
			if (merged != s->next_merged ||
			    !check_same_name(s->c, s->raw.col->name[e], s->out.col->name[f]) ||
			    (merged && !same_stands(s, e, f)))
				return false;
			check_made(s->c, REDUCER_M5);
			s->next++;
			load_next(s);
			return true;
		}
		if (!s->next_merged)
			say_altered(s);
		s->next++;
		load_next(s);
	}
	return false;
}

static void add_to_sums(const struct check_side *side, struct sums *sums, uint32_t e, int64_t start, int64_t length)
{
	const struct reduce_stands *stands = NULL;
	if (side->col->bits[e] & BIT_MERGED)
		stands = reduce_stands_of(side->of, e);
	int64_t longest = stands ? stands->longest_ps : length;
	sums->events += stands ? stands->events : 1;
	sums->sum += (uint64_t)(stands ? stands->sum_ps : length);
	sums->longest = longest > sums->longest ? longest : sums->longest;
	sums->last = start + length > sums->last ? start + length : sums->last;
}

static void close_row(struct sweep *s, unsigned number)
{
	struct row *row = &s->row[number];
	if (!row->any)
		return;
	check_made(s->c, REDUCER_M3);
	if (row->there)
		return;
	int64_t at = check_start(&s->raw, row->first);
	check_failed(s->c, REDUCER_M3, s->track, &at, "the longest span of a bin in row %u%s, \"%s\" of %s, is missing",
		     number, number == REDUCE_OVERFLOW ? " (overlaps)" : "", check_name_of(s->raw.of, row->first).text,
		     check_us_of(row->length).text);
}

static void note_name(struct sweep *s, uint32_t name)
{
	if (name & REDUCE_NAME_UNKNOWN)
		s->unknown_name = true;
	else
		s->c->stamp[check_said(s->c, true, name)] = s->track + 1;
}

/* A step mark must be there whatever its length. */
static void check_step(struct sweep *s, uint32_t e, int64_t start, bool there)
{
	check_made(s->c, REDUCER_M2);
	if (!there)
		check_failed(s->c, REDUCER_M2, s->track, &start, "the step mark \"%s\" is missing or altered",
			     check_name_of(s->raw.of, e).text);
}

static void sweep_raw(struct sweep *s)
{
	const struct reduce_columns *col = s->raw.col;
	int64_t bin = 0, bin_from = 0;
	bool in_bin = false;
	for (uint32_t i = 0; i < s->raw.count; i++) {
		uint32_t e = s->raw.order[i];
		int64_t start = col->start[e], length = col->length[e];
		if (!in_bin || (uint64_t)start - (uint64_t)bin_from >= (uint64_t)s->c->bin_ps) {
			bin = reduce_bin_of(start, s->c->bin_ps);
			bin_from = bin * s->c->bin_ps;
			in_bin = true;
		}
		bool there = is_there(s, e, start, length);
		add_to_sums(&s->raw, &s->raw_sums, e, start, length);
		note_name(s, col->name[e]);
		if (col->bits[e] & BIT_ALWAYS)
			check_step(s, e, start, there);
		unsigned number = col->bits[e] & BITS_ROW_MASK;
		struct row *row = &s->row[number];
		if (!row->any || row->bin != bin) {
			close_row(s, number);
			*row = (struct row){bin, length, e, true, there};
		} else if (length > row->length) {
			*row = (struct row){bin, length, e, true, there};
		} else if (length == row->length) {
			row->there |= there;
		}
	}
	for (unsigned i = 0; i <= REDUCE_OVERFLOW; i++)
		close_row(s, i);
	for (; s->next < s->out.count; s->next++, load_next(s))
		if (!s->next_merged)
			say_altered(s);
}

static bool is_merged_name(struct reducer_text text)
{
	static const char quoted[] = "\"" REDUCER_MARK_MERGED_NAME "\"";
	return text.bytes == sizeof(quoted) - 1 && memcmp(text.data, quoted, text.bytes) == 0;
}

/* Whether a raw span of the track has that name of what was written. */
static bool is_name_of_track(const struct sweep *s, uint32_t name)
{
	uint32_t raw = name & REDUCE_NAME_UNKNOWN ? CHECK_NO_NAME : check_said(s->c, false, name);
	return s->unknown_name || (raw != CHECK_NO_NAME && s->c->stamp[raw] == s->track + 1);
}

static void check_rectangle(struct sweep *s, uint32_t f, int64_t start)
{
	const struct reducer_reduce *out = s->out.of;
	const struct reduce_stands *stands = reduce_stands_of(out, f);
	uint32_t name = out->col.name[f];
	check_made(s->c, REDUCER_M5);
	if (!stands)
		check_failed(s->c, REDUCER_M5, s->track, &start, "a merged span does not say what it stands for");
	else if (!is_merged_name(reduce_name_text(&out->names, name)) && !is_name_of_track(s, name))
		check_failed(s->c, REDUCER_M5, s->track, &start,
			     "a merged span is called \"%s\", which no raw span of the track is",
			     check_name_of(out, f).text);
	else if (stands->longest_name != REDUCE_NONE && !raw_has_merged(s) && !is_name_of_track(s, stands->longest_name))
		check_failed(s->c, REDUCER_M5, s->track, &start,
			     "the longest of a merged span is called as no raw span of the track is");
	else if (stands->longest_ps > s->raw_sums.longest)
		check_failed(s->c, REDUCER_M5, s->track, &start,
			     "the longest of a merged span has %s, the longest raw span of the track %s",
			     check_us_of(stands->longest_ps).text, check_us_of(s->raw_sums.longest).text);
}

static void sweep_out(struct sweep *s)
{
	for (uint32_t i = 0; i < s->out.count; i++) {
		uint32_t f = s->out.order[i];
		int64_t start = check_start(&s->out, f);
		add_to_sums(&s->out, &s->out_sums, f, start, s->out.col->length[f]);
		if (s->out.col->bits[f] & BIT_MERGED)
			check_rectangle(s, f, start);
	}
}

static void compare_ends(struct check *c, uint32_t track, int64_t raw, int64_t out, const char *what)
{
	check_made(c, REDUCER_M2);
	if (raw != out)
		check_failed(c, REDUCER_M2, track, &raw, "%s %s %s in the reduced trace", what,
			     check_us_of(raw > out ? raw - out : out - raw).text, out > raw ? "later" : "earlier");
}

static void compare_sums(struct check *c, uint32_t track, const struct sums *raw, const struct sums *out)
{
	check_made(c, REDUCER_M5);
	if (raw->events != out->events)
		check_failed(c, REDUCER_M5, track, NULL,
			     "%llu spans in the raw trace; the reduced one has or stands for %llu",
			     (unsigned long long)raw->events, (unsigned long long)out->events);
	else if (raw->sum != out->sum)
		check_failed(c, REDUCER_M5, track, NULL,
			     "spans are %s longer together in the reduced trace, or what it says of them",
			     check_us_of((int64_t)(out->sum - raw->sum)).text);
}

void check_spans(struct check *c, uint32_t track, uint32_t out)
{
	struct sweep s = {.c = c,
			  .raw = check_side_of(c, true, track, true),
			  .out = check_side_of(c, false, out, true),
			  .track = track};
	if (!s.raw.count && !s.out.count)
		return;
	s.raw_sums.first = s.raw.count ? check_start(&s.raw, s.raw.order[0]) : 0;
	s.out_sums.first = s.out.count ? check_start(&s.out, s.out.order[0]) : 0;
	s.raw_sums.last = s.out_sums.last = INT64_MIN;
	c->report->tracks++;
	load_next(&s);
	sweep_raw(&s);
	sweep_out(&s);
	if (s.raw.count && s.out.count) {
		compare_ends(c, track, s.raw_sums.first, s.out_sums.first, "the first start is");
		compare_ends(c, track, s.raw_sums.last, s.out_sums.last, "the last end is");
	} else {
		check_made(c, REDUCER_M2);
		check_failed(c, REDUCER_M2, track, s.raw.count ? &s.raw_sums.first : &s.out_sums.first,
			     "the track has spans in the %s trace only", s.raw.count ? "raw" : "reduced");
	}
	compare_sums(c, track, &s.raw_sums, &s.out_sums);
}
