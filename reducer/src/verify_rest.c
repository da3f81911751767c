/* SPDX-License-Identifier: Apache-2.0 */
/*
 * M4 for what is described and linked, and M5's "unaltered": whatever stands in the reduced trace for itself
 * stands so in the raw one. The numbers of async begins and ends add up a group.
 */
#include <errno.h>
#include <stdlib.h>

#include "verify_say.h"

/* One end of a flow. */
struct flow_end {
	struct verify_print flow;
	const struct verify_event *event;
};

struct flow_ends {
	struct flow_end *end;
	size_t n;
};

static int order_of(struct verify_print one, struct verify_print other)
{
	if (one.a != other.a)
		return one.a < other.a ? -1 : 1;
	return one.b < other.b ? -1 : one.b > other.b;
}

static int compare_ends(const void *one, const void *other)
{
	const struct flow_end *a = one, *b = other;
	int order = order_of(a->flow, b->flow);
	/* Both point into the same array: the earlier in the file first. */
	return order ? order : a->event < b->event ? -1 : a->event > b->event;
}

static int gather_ends(const struct verify_trace *trace, struct flow_ends *ends)
{
	size_t n = 0;
	for (size_t i = 0; i < trace->n_events; i++)
		n += trace->event[i].class == VERIFY_FLOW;
	ends->end = malloc((n + 1) * sizeof(*ends->end));
	if (!ends->end)
		return -ENOMEM;
	for (size_t i = 0; i < trace->n_events; i++) {
		const struct verify_event *event = &trace->event[i];
		const uint32_t key[] = {event->category, event->name, event->id};
		if (event->class == VERIFY_FLOW)
			ends->end[ends->n++] = (struct flow_end){verify_print_of(key, sizeof(key)), event};
	}
	if (ends->n)
		qsort(ends->end, ends->n, sizeof(*ends->end), compare_ends);
	return 0;
}

/* The flow that both positions are at, or the reduced one's alone. */
static void check_flow(struct verify *verify, const struct flow_ends *raw, size_t from, size_t to,
		       const struct verify_event *reduced)
{
	const struct verify_house *house = &verify->house;
	verify_checked(verify, REDUCER_M4);
	if (to - from < 2)
		verify_fail(verify, REDUCER_M4, reduced->track, &reduced->start,
			    "flow \"%s\" %s is here, but has %s in the raw trace",
			    verify_short(house, reduced->name).text, verify_short(house, reduced->id).text,
			    to == from ? "no end" : "one end only");
	for (size_t i = from; i < to; i++) {
		const struct verify_event *event = raw->end[i].event;
		const struct verify_count *count = verify_counts_find(&verify->counts, event->same);
		if (count->reduced >= count->raw)
			continue;
		verify_fail(verify, REDUCER_M4, event->track, &event->start,
			    "flow \"%s\" %s has lost or altered this end",
			    verify_short(house, event->name).text, verify_short(house, event->id).text);
		return;
	}
}

static void compare_flows(struct verify *verify, const struct flow_ends *raw, const struct flow_ends *reduced)
{
	size_t i = 0;
	for (size_t j = 0; j < reduced->n; j++) {
		struct verify_print flow = reduced->end[j].flow;
		if (j > 0 && verify_print_is(flow, reduced->end[j - 1].flow))
			continue;
		while (i < raw->n && order_of(raw->end[i].flow, flow) < 0)
			i++;
		size_t from = i;
		while (i < raw->n && verify_print_is(raw->end[i].flow, flow))
			i++;
		check_flow(verify, raw, from, i, reduced->end[j].event);
	}
}

int verify_flows(struct verify *verify)
{
	struct flow_ends raw = {0}, reduced = {0};
	int result = gather_ends(&verify->raw, &raw);
	if (result == 0)
		result = gather_ends(&verify->reduced, &reduced);
	if (result == 0)
		compare_flows(verify, &raw, &reduced);
	free(raw.end);
	free(reduced.end);
	return result;
}

/* Metadata is a description: once is enough. What is kept as it was is there as often as it was. */
static void check_event(struct verify *verify, const struct verify_event *event)
{
	struct verify_count *count = verify_counts_find(&verify->counts, event->same);
	bool is_meta = event->class == VERIFY_META;
	if (is_meta && count->seen_reduced > 0)
		return;
	verify_checked(verify, REDUCER_M4);
	bool is_there = count->seen_reduced < count->reduced;
	/* A description that is missing is told once, too. */
	if (is_there || is_meta)
		count->seen_reduced++;
	if (is_there)
		return;
	verify_fail(verify, REDUCER_M4, event->track, event->has_time ? &event->start : NULL,
		    is_meta ? "metadata \"%s\" is missing or altered"
			    : "\"%s\", an event of a kind that is kept as it is, is missing or altered",
		    verify_short(&verify->house, event->name).text);
}

static void check_members(struct verify *verify)
{
	const struct verify_trace *raw = &verify->raw;
	if (raw->n_members && verify->report->reduced.array_root) {
		verify_checked(verify, REDUCER_M4);
		verify_fail(verify, REDUCER_M4, VERIFY_NONE, NULL,
			    "the raw trace is an object with %zu members, the reduced one an array",
			    raw->n_members);
		return;
	}
	for (size_t i = 0; i < raw->n_members; i++) {
		const struct verify_count *count = verify_counts_find(&verify->counts, raw->member[i].same);
		verify_checked(verify, REDUCER_M4);
		if (count->reduced == 0)
			verify_fail(verify, REDUCER_M4, VERIFY_NONE, NULL,
				    "the member \"%s\" is missing or altered",
				    verify_short(&verify->house, raw->member[i].key).text);
	}
}

int verify_descriptions(struct verify *verify)
{
	for (size_t i = 0; i < verify->raw.n_events; i++)
		if (verify->raw.event[i].class == VERIFY_META || verify->raw.event[i].class == VERIFY_KEPT)
			check_event(verify, &verify->raw.event[i]);
	if (verify->reduced.marks > 1) {
		verify_checked(verify, REDUCER_M4);
		verify_fail(verify, REDUCER_M4, VERIFY_NONE, NULL,
			    "the trace says %u times that it is reduced", verify->reduced.marks);
	}
	check_members(verify);
	return 0;
}

static bool is_raw_name(const struct verify_house *house, uint32_t name)
{
	return name < house->n_raw_names && house->is_raw_name[name];
}

/* An event of the reduced trace that stands for itself. */
static void check_unaltered(struct verify *verify, const struct verify_event *event)
{
	struct verify_count *count = verify_counts_find(&verify->counts, event->same);
	bool is_drawn = event->class == VERIFY_SPAN || event->class == VERIFY_ASYNC_BEGIN;
	enum reducer_promise promise = is_drawn ? REDUCER_M5 : REDUCER_M4;
	struct verify_short name = verify_short(&verify->house, event->name);
	const verify_ps *time = event->has_time ? &event->start : NULL;
	bool is_named = is_raw_name(&verify->house, event->name);
	verify_checked(verify, is_named ? promise : REDUCER_M5);
	if (!is_named)
		verify_fail(verify, REDUCER_M5, event->track, time, "\"%s\" is no name of the raw trace",
			    name.text);
	else if (event->class == VERIFY_META ? count->raw > 0 : count->seen_raw < count->raw)
		count->seen_raw++;
	else
		verify_fail(verify, promise, event->track, time, "\"%s\" does not stand so in the raw trace",
			    name.text);
}

/* Merged spans were looked at a track at a time. */
static void check_merged(struct verify *verify, const struct verify_event *event)
{
	const struct verify_merged *merged = &verify->reduced.merged[event->merged - 1];
	verify_checked(verify, REDUCER_M5);
	if (!merged->is_whole)
		verify_fail(verify, REDUCER_M5, event->track, &event->start,
			    "a merged event does not say how many it stands for");
	else if (event->name != verify->house.merged_name && !is_raw_name(&verify->house, event->name))
		verify_fail(verify, REDUCER_M5, event->track, &event->start,
			    "a merged event is called \"%s\", which is no name of the raw trace",
			    verify_short(&verify->house, event->name).text);
}

/* The async begins and ends of each group, whose numbers are those of texts. */
struct halves {
	verify_ps begins, ends;
};

/* Merged ones by what the begin says, whatever its end is. */
static void count_async(const struct verify *verify, const struct verify_trace *trace, struct halves *halves)
{
	for (size_t i = 0; i < trace->n_events; i++) {
		const struct verify_event *event = &trace->event[i];
		struct halves *group = &halves[verify->house.track[event->track].group];
		verify_ps many = event->merged ? (verify_ps)trace->merged[event->merged - 1].events : 0;
		if (event->class == VERIFY_GONE)
			continue;
		if (event->kind == DREC_ASYNC_BEGIN) {
			group->begins += event->merged ? many : 1;
			group->ends += many;
		} else if (event->kind == DREC_ASYNC_END &&
			   event->category != verify->house.merged_category) {
			group->ends++;
		}
	}
}

static void compare_async(struct verify *verify, uint32_t group, const char *what, verify_ps raw,
			  verify_ps reduced)
{
	if (raw == 0 && reduced == 0)
		return;
	verify_checked(verify, REDUCER_M5);
	if (raw != reduced)
		verify_fail(
			verify, REDUCER_M5, VERIFY_NONE, NULL,
			"group %s has %llu async %s in the raw trace; the reduced one has or stands for %llu",
			verify_short(&verify->house, group).text, (unsigned long long)raw, what,
			(unsigned long long)reduced);
}

int verify_async(struct verify *verify)
{
	size_t groups = verify->house.texts.count;
	struct halves *raw = calloc(groups, sizeof(*raw)), *reduced = calloc(groups, sizeof(*reduced));
	int result = raw && reduced ? 0 : -ENOMEM;
	if (result == 0) {
		count_async(verify, &verify->raw, raw);
		count_async(verify, &verify->reduced, reduced);
	}
	for (uint32_t i = 0; result == 0 && i < groups; i++) {
		compare_async(verify, i, "begins", raw[i].begins, reduced[i].begins);
		compare_async(verify, i, "ends", raw[i].ends, reduced[i].ends);
	}
	free(raw);
	free(reduced);
	return result;
}

/* Whether it must stand in the raw trace as it does here. */
static bool is_comparable(const struct verify *verify, const struct verify_event *event)
{
	bool merged_end =
		event->class == VERIFY_ASYNC_END && event->category == verify->house.merged_category;
	if (verify->crossed)
		return event->class == VERIFY_SPAN || event->class == VERIFY_INSTANT;
	/* An XPlane goes on describing events that are gone; its reader tells of what no event uses. */
	if (event->class == VERIFY_META && event->name == verify->house.unused_name)
		return verify->report->reduced_format != REDUCER_FORMAT_XPLANE;
	return event->class != VERIFY_GONE && event->class != VERIFY_MARK && !merged_end;
}

int verify_unaltered(struct verify *verify)
{
	for (size_t i = 0; i < verify->reduced.n_events; i++) {
		const struct verify_event *event = &verify->reduced.event[i];
		if (!is_comparable(verify, event))
			continue;
		if (!event->merged)
			check_unaltered(verify, event);
		else if (event->class != VERIFY_SPAN)
			check_merged(verify, event);
	}
	return 0;
}
