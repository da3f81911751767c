/* SPDX-License-Identifier: Apache-2.0 */
/* M2, M3 and what M5 says of merged spans. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "verify_say.h"

enum { OPEN_MAX = 254, OVERFLOW = OPEN_MAX, ROWS };

static const struct verify_event *event_of(const struct verify_trace *trace, const struct verify_span *span)
{
	return &trace->event[span->event];
}

static bool is_in_reduced(const struct verify *verify, const struct verify_event *event)
{
	const struct verify_count *count = verify_counts_find(&verify->counts, event->same);
	return count && count->reduced > 0;
}

/* The first of the reduced trace's spans at that track, start and end; `*ret_end` is behind the last one. */
static size_t spans_at(const struct verify_trace *trace, const struct verify_event *event, size_t *ret_end)
{
	size_t low = trace->track_spans[event->track], end = trace->track_spans[event->track + 1], high = end;
	verify_ps to = event->start + event->duration;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct verify_span *span = &trace->span[middle];
		if (span->start < event->start || (span->start == event->start && span->end > to))
			low = middle + 1;
		else
			high = middle;
	}
	for (high = low;
	     high < end && trace->span[high].start == event->start && trace->span[high].end == to;)
		high++;
	*ret_end = high;
	return low;
}

/* What became of a span that is not there as it was, for a difference of `promise`. */
static const char *fate(const struct verify *verify, enum reducer_promise promise,
			const struct verify_event *event)
{
	const struct verify_trace *trace = &verify->reduced;
	const struct verify_event *like = NULL;
	/* Many spans may stand at one place: look only for what is told. */
	if (verify->report->failed[promise] >= REDUCER_DIFFERENCES_EACH)
		return "";
	size_t end, at = spans_at(trace, event, &end);
	for (; at < end; at++) {
		const struct verify_event *one = event_of(trace, &trace->span[at]);
		if (!one->merged && (!like || one->name == event->name))
			like = one;
	}
	if (!like)
		return "is missing";
	if (like->name != event->name)
		return "is missing; another name stands there";
	return like->category != event->category ? "has another category" : "has other args or members";
}

static void compare_ends(struct verify *verify, uint32_t track, verify_ps raw, verify_ps reduced,
			 const char *what)
{
	verify_checked(verify, REDUCER_M2);
	if (raw != reduced)
		verify_fail(verify, REDUCER_M2, track, &raw, "%s %s in the raw trace, %s in the reduced one",
			    what, verify_us(raw).text, verify_us(reduced).text);
}

static verify_ps last_end(const struct verify_trace *trace, uint32_t track)
{
	size_t at = trace->track_spans[track];
	verify_ps last = trace->span[at].end;
	for (; at < trace->track_spans[track + 1]; at++)
		if (trace->span[at].end > last)
			last = trace->span[at].end;
	return last;
}

static void check_track(struct verify *verify, uint32_t track)
{
	size_t raw = verify->raw.track_spans[track], reduced = verify->reduced.track_spans[track];
	bool has_raw = raw < verify->raw.track_spans[track + 1];
	bool has_reduced = reduced < verify->reduced.track_spans[track + 1];
	if (has_raw && has_reduced) {
		compare_ends(verify, track, verify->raw.span[raw].start, verify->reduced.span[reduced].start,
			     "first start");
		compare_ends(verify, track, last_end(&verify->raw, track), last_end(&verify->reduced, track),
			     "last end");
	} else if (has_raw || has_reduced) {
		const struct verify_span *first =
			has_raw ? &verify->raw.span[raw] : &verify->reduced.span[reduced];
		verify_checked(verify, REDUCER_M2);
		verify_fail(verify, REDUCER_M2, track, &first->start,
			    "the track has spans in the %s trace only", has_raw ? "raw" : "reduced");
	}
}

static void check_step(struct verify *verify, const struct verify_event *event)
{
	struct verify_count *count = verify_counts_find(&verify->counts, event->same);
	verify_checked(verify, REDUCER_M2);
	if (count->seen_reduced < count->reduced)
		count->seen_reduced++;
	else
		verify_fail(verify, REDUCER_M2, event->track, &event->start, "the step mark \"%s\" %s",
			    verify_short(&verify->house, event->name).text,
			    event->class == VERIFY_SPAN ? fate(verify, REDUCER_M2, event)
							: "is missing or altered");
}

int verify_ends(struct verify *verify)
{
	for (uint32_t track = 0; track < verify->house.tracks.count; track++)
		check_track(verify, track);
	for (size_t i = 0; i < verify->raw.n_events; i++) {
		const struct verify_event *event = &verify->raw.event[i];
		if (event->is_step && event->class != VERIFY_GONE && event->class != VERIFY_KEPT)
			check_step(verify, event);
	}
	return 0;
}

/* The longest span so far of a row in the bin that the layout has come to. */
struct row {
	verify_ps bin, length;
	const struct verify_event *first; /* of those that are as long; NULL: the row is empty */
	bool is_there;                    /* one of them is in the reduced trace */
};

static void close_row(struct verify *verify, struct row *row, unsigned number)
{
	if (!row->first)
		return;
	verify_checked(verify, REDUCER_M3);
	if (row->is_there)
		return;
	char where[32] = "row of overlaps";
	if (number != OVERFLOW)
		snprintf(where, sizeof(where), "row %u", number);
	verify_fail(verify, REDUCER_M3, row->first->track, &row->first->start,
		    "the longest span of a bin in %s, \"%s\" of %s, %s", where,
		    verify_short(&verify->house, row->first->name).text, verify_us(row->length).text,
		    fate(verify, REDUCER_M3, row->first));
}

static void add_to_row(struct verify *verify, struct row *row, unsigned number,
		       const struct verify_event *event)
{
	verify_ps bin = verify_bin(&verify->mark, event->start);
	if (!row->first || row->bin != bin) {
		close_row(verify, row, number);
		*row = (struct row){bin, -1, event, false};
	}
	if (event->duration > row->length) {
		row->length = event->duration;
		row->first = event;
		row->is_there = false;
	}
	if (event->duration == row->length && !row->is_there)
		row->is_there = is_in_reduced(verify, event);
}

/* Lays the raw track out: spans come by start, the longer first. */
static void check_rows(struct verify *verify, uint32_t track, struct row row[ROWS])
{
	const struct verify_trace *raw = &verify->raw;
	verify_ps open[OPEN_MAX];
	unsigned depth = 0;
	for (unsigned i = 0; i < ROWS; i++)
		row[i].first = NULL;
	for (size_t i = raw->track_spans[track]; i < raw->track_spans[track + 1]; i++) {
		const struct verify_span *span = &raw->span[i];
		unsigned number = OVERFLOW;
		while (depth && open[depth - 1] <= span->start)
			depth--;
		if (depth < OPEN_MAX && (depth == 0 || span->end <= open[depth - 1])) {
			number = depth;
			open[depth++] = span->end;
		}
		add_to_row(verify, &row[number], number, event_of(raw, span));
	}
	for (unsigned i = 0; i < ROWS; i++)
		close_row(verify, &row[i], i);
}

int verify_longest(struct verify *verify)
{
	struct row *row = calloc(ROWS, sizeof(*row));
	if (!row)
		return -ENOMEM;
	for (uint32_t track = 0; track < verify->house.tracks.count; track++)
		check_rows(verify, track, row);
	free(row);
	return 0;
}

/* What the spans of a track come to, merged ones by what they say. */
struct sums {
	verify_ps events, length, longest;
};

static struct sums sum_track(const struct verify_trace *trace, uint32_t track)
{
	struct sums sums = {0};
	for (size_t i = trace->track_spans[track]; i < trace->track_spans[track + 1]; i++) {
		const struct verify_event *event = event_of(trace, &trace->span[i]);
		const struct verify_merged *merged = event->merged ? &trace->merged[event->merged - 1] : NULL;
		verify_ps longest = merged ? merged->longest : event->duration;
		sums.events += merged ? (verify_ps)merged->events : 1;
		sums.length += merged ? merged->sum : event->duration;
		if (longest > sums.longest)
			sums.longest = longest;
	}
	return sums;
}

/* The names that the raw spans of the track have, or that its merged ones say. */
static int names_of_track(const struct verify_trace *raw, uint32_t track, struct verify_texts *names)
{
	int result = 0;
	uint32_t number;
	for (size_t i = raw->track_spans[track]; result == 0 && i < raw->track_spans[track + 1]; i++) {
		const struct verify_event *event = event_of(raw, &raw->span[i]);
		result = verify_texts_add(names, VERIFY_KEY(event->name), &number);
		if (result == 0 && event->merged &&
		    raw->merged[event->merged - 1].longest_name != VERIFY_NONE)
			result = verify_texts_add(
				names, VERIFY_KEY(raw->merged[event->merged - 1].longest_name), &number);
	}
	return result;
}

static void check_merged(struct verify *verify, const struct verify_event *event,
			 const struct verify_texts *names, verify_ps longest)
{
	const struct verify_house *house = &verify->house;
	const struct verify_merged *merged = &verify->reduced.merged[event->merged - 1];
	uint32_t number;
	verify_checked(verify, REDUCER_M5);
	if (!merged->is_whole)
		verify_fail(verify, REDUCER_M5, event->track, &event->start,
			    "a merged span does not say its events, sum_ps and longest_ps");
	else if (event->name != house->merged_name &&
		 !verify_texts_find(names, VERIFY_KEY(event->name), &number))
		verify_fail(verify, REDUCER_M5, event->track, &event->start,
			    "a merged span is called \"%s\", which no raw span of the track is",
			    verify_short(house, event->name).text);
	else if (merged->longest_name != VERIFY_NONE &&
		 !verify_texts_find(names, VERIFY_KEY(merged->longest_name), &number))
		verify_fail(
			verify, REDUCER_M5, event->track, &event->start,
			"the longest of a merged span is called \"%s\", which no raw span of the track is",
			verify_short(house, merged->longest_name).text);
	else if (merged->longest > longest || merged->longest > merged->sum)
		verify_fail(verify, REDUCER_M5, event->track, &event->start,
			    "the longest of a merged span has %s; the longest raw span of the track %s, "
			    "their sum %s",
			    verify_us(merged->longest).text, verify_us(longest).text,
			    verify_us(merged->sum).text);
}

static int check_sums(struct verify *verify, uint32_t track)
{
	const struct verify_trace *trace = &verify->reduced;
	struct sums raw = sum_track(&verify->raw, track), reduced = sum_track(trace, track);
	struct verify_texts names = {0};
	int result = names_of_track(&verify->raw, track, &names);
	for (size_t i = trace->track_spans[track]; result == 0 && i < trace->track_spans[track + 1]; i++)
		if (event_of(trace, &trace->span[i])->merged)
			check_merged(verify, event_of(trace, &trace->span[i]), &names, raw.longest);
	verify_texts_free(&names);
	verify_checked(verify, REDUCER_M5);
	if (raw.events != reduced.events)
		verify_fail(verify, REDUCER_M5, track, NULL,
			    "%llu spans in the raw trace; the reduced one has or stands for %llu",
			    (unsigned long long)raw.events, (unsigned long long)reduced.events);
	else if (raw.length != reduced.length)
		verify_fail(verify, REDUCER_M5, track, NULL,
			    "spans of %s together in the raw trace; those that the reduced one has or stands "
			    "for %s",
			    verify_us(raw.length).text, verify_us(reduced.length).text);
	return result;
}

int verify_merged_spans(struct verify *verify)
{
	int result = 0;
	for (uint32_t track = 0; result == 0 && track < verify->house.tracks.count; track++)
		if (verify->raw.track_spans[track] < verify->raw.track_spans[track + 1] ||
		    verify->reduced.track_spans[track] < verify->reduced.track_spans[track + 1])
			result = check_sums(verify, track);
	return result;
}
