/* SPDX-License-Identifier: Apache-2.0 */
/*
 * M1: per track and bin the union length of spans.
 *
 * The union is made of the sorted spans, then cut at the bins. A long span fills many bins alike, and the
 * reduced trace says how small bins are: so runs of bins that are equally busy are kept and compared as one.
 */
#include <errno.h>
#include <stdlib.h>

#include "verify_say.h"

enum { TOLERANCE_PS = 1000 };

/* `bins` bins from `bin` on, each busy for `busy`. */
struct run {
	verify_ps bin, bins, busy;
};

struct runs {
	struct run *run;
	size_t n, room;
};

static int add_run(struct runs *runs, verify_ps bin, verify_ps bins, verify_ps busy)
{
	if (bins == 0 || busy == 0)
		return 0;
	if (runs->n && runs->run[runs->n - 1].bins == 1 && runs->run[runs->n - 1].bin == bin) {
		runs->run[runs->n - 1].busy += busy;
		return 0;
	}
	struct run *grown = verify_grow(runs->run, runs->n, &runs->room, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	runs->run = grown;
	runs->run[runs->n++] = (struct run){bin, bins, busy};
	return 0;
}

/* A stretch of the union. They come in order and do not touch. */
static int add_stretch(struct runs *runs, const struct verify_mark *mark, verify_ps from, verify_ps to)
{
	verify_ps first = verify_bin(mark, from), last = verify_bin(mark, to);
	if (first == last)
		return add_run(runs, first, 1, to - from);
	int result = add_run(runs, first, 1, mark->origin + (first + 1) * mark->bin - from);
	if (result == 0)
		result = add_run(runs, first + 1, last - first - 1, mark->bin);
	return result ? result : add_run(runs, last, 1, to - (mark->origin + last * mark->bin));
}

static int make_runs(const struct verify_mark *mark, const struct verify_trace *trace, uint32_t track,
		     struct runs *runs)
{
	size_t at = trace->track_spans[track], end = trace->track_spans[track + 1];
	int result = 0;
	runs->n = 0;
	while (result == 0 && at < end) {
		verify_ps from = trace->span[at].start, to = trace->span[at].end;
		for (at++; at < end && trace->span[at].start <= to; at++)
			if (trace->span[at].end > to)
				to = trace->span[at].end;
		result = add_stretch(runs, mark, from, to);
	}
	return result;
}

static void compare_run(struct verify *verify, uint32_t track, verify_ps bin, verify_ps raw,
			verify_ps reduced)
{
	verify_ps apart = raw > reduced ? raw - reduced : reduced - raw;
	verify_checked(verify, REDUCER_M1);
	if (apart <= TOLERANCE_PS)
		return;
	verify_ps from = verify->mark.origin + bin * verify->mark.bin;
	verify_fail(verify, REDUCER_M1, track, &from,
		    "busy %s in the raw trace, %s in the reduced one, in this bin of %s", verify_us(raw).text,
		    verify_us(reduced).text, verify_us(verify->mark.bin).text);
}

/* What is left of the run, or the next one. */
static const struct run *run_at(const struct runs *runs, size_t *at, verify_ps bin)
{
	while (*at < runs->n && runs->run[*at].bin + runs->run[*at].bins <= bin)
		++*at;
	return *at < runs->n ? &runs->run[*at] : NULL;
}

/* Goes through the bins of both, from one change to the next. */
static void compare_runs(struct verify *verify, uint32_t track, const struct runs *raw,
			 const struct runs *reduced)
{
	size_t i = 0, j = 0;
	verify_ps bin = 0;
	bool begun = false;
	for (;;) {
		const struct run *a = begun ? run_at(raw, &i, bin) : raw->n ? raw->run : NULL;
		const struct run *b = begun ? run_at(reduced, &j, bin) : reduced->n ? reduced->run : NULL;
		if (!a && !b)
			return;
		verify_ps first = !b || (a && a->bin < b->bin) ? a->bin : b->bin;
		if (!begun || first > bin)
			bin = first;
		begun = true;
		bool in_a = a && a->bin <= bin, in_b = b && b->bin <= bin;
		compare_run(verify, track, bin, in_a ? a->busy : 0, in_b ? b->busy : 0);
		/* Up to where either of them ends or begins. */
		verify_ps end_a = a ? in_a ? a->bin + a->bins : a->bin : 0;
		verify_ps end_b = b ? in_b ? b->bin + b->bins : b->bin : 0;
		bin = !b || (a && end_a < end_b) ? end_a : end_b;
	}
}

int verify_busy(struct verify *verify)
{
	struct runs raw = {0}, reduced = {0};
	int result = 0;
	for (uint32_t track = 0; result == 0 && track < verify->house.tracks.count; track++) {
		result = make_runs(&verify->mark, &verify->raw, track, &raw);
		if (result == 0)
			result = make_runs(&verify->mark, &verify->reduced, track, &reduced);
		if (result == 0)
			compare_runs(verify, track, &raw, &reduced);
	}
	free(raw.run);
	free(reduced.run);
	return result;
}
