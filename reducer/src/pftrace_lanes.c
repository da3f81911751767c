/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records sorted and laid out. On a track, by exact time, parents first: each record goes to the first lane
 * where it nests in what is open. Lane 0 is the track itself; further ones are tracks beside it.
 *
 * Whether spans overlap is judged by the times that are written, whole ns: what reaches beyond its parent by
 * less is as long as the parent, and what begins less than that before its neighbour's end begins after it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pftrace_inside.h"

static int compare_records(const void *a, const void *b)
{
	const struct pf_record *x = a, *y = b;
	if (x->track != y->track)
		return x->track < y->track ? -1 : 1;
	int order = pf_compare(x->start_ns, x->start_ps, y->start_ns, y->start_ps);
	if (!order)
		order = pf_compare(y->end_ns, y->end_ps, x->end_ns, x->end_ps);
	return order ? order : (x->order > y->order) - (x->order < y->order);
}

static int compare_flows(const void *a, const void *b)
{
	const struct pf_flow *x = a, *y = b;
	if (x->track != y->track)
		return x->track < y->track ? -1 : 1;
	return pf_compare(x->ns, x->ps, y->ns, y->ps);
}

static int compare_flow_ids(const void *a, const void *b)
{
	const struct pf_flow *x = a, *y = b;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

static int compare_flow_spans(const void *a, const void *b)
{
	const struct pf_flow *x = a, *y = b;
	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	return x->ends != y->ends ? x->ends - y->ends : (x->id > y->id) - (x->id < y->id);
}

bool pf_ends_before(const struct pf_open *open, const struct pf_record *record)
{
	if (pf_compare(open->end_ns, open->end_ps, record->start_ns, record->start_ps) <= 0)
		return true;
	return pf_compare(open->end_ns, open->end_ps, record->end_ns, record->end_ps) < 0 &&
	       pf_rounded(open->end_ns, open->end_ps) <= pf_rounded(record->start_ns, record->start_ps);
}

int pf_lane_push(struct pf_lane *lane, const struct pf_record *record, uint32_t index)
{
	if (record->kind != PF_SPAN && record->kind != PF_OPEN)
		return 0;
	if (lane->depth == lane->room) {
		uint32_t room = lane->room ? 2 * lane->room : 8;
		struct pf_open *open = realloc(lane->open, room * sizeof(*open));
		if (!open)
			return -ENOMEM;
		lane->open = open;
		lane->room = room;
	}
	struct pf_open open = {.end_ns = record->end_ns,
			       .end_ps = record->end_ps,
			       .scope = record->scope,
			       .never_ends = record->kind == PF_OPEN,
			       .order = record->order,
			       .record = index};
	const struct pf_open *outer = lane->depth ? &lane->open[lane->depth - 1] : NULL;
	if (outer && pf_compare(outer->end_ns, outer->end_ps, open.end_ns, open.end_ps) < 0) {
		open.end_ns = outer->end_ns;
		open.end_ps = outer->end_ps;
	}
	lane->open[lane->depth++] = open;
	return 0;
}

/* What is open on the lane when the record begins: NULL = nothing. */
static const struct pf_open *open_at(struct pf_lane *lane, const struct pf_record *record)
{
	while (lane->depth && pf_ends_before(&lane->open[lane->depth - 1], record))
		lane->depth--;
	return lane->depth ? &lane->open[lane->depth - 1] : NULL;
}

static bool nests(const struct pf_lane *lane, const struct pf_open *open, const struct pf_record *record)
{
	return lane->depth < PF_DEPTH_MAX && open->scope == record->scope &&
	       pf_rounded(record->end_ns, record->end_ps) <= pf_rounded(open->end_ns, open->end_ps);
}

/* One track while it is laid out. */
struct laying {
	struct reducer_pftrace_writer *w;
	struct pf_lanes *lanes;
	uint32_t track, first; /* lanes from `first` on are the track's */
	struct pf_flow *flow;
	uint32_t flows, next, enclosed; /* cursors: flows on the next span, and on the one around them */
};

static uint32_t choose_lane(struct laying *l, const struct pf_record *record)
{
	uint32_t free_lane = UINT32_MAX;
	for (uint32_t i = l->first; i < l->lanes->count; i++) {
		struct pf_lane *lane = &l->lanes->lane[i];
		const struct pf_open *open = open_at(lane, record);
		if (open && nests(lane, open, record))
			return i;
		if (!open && free_lane == UINT32_MAX)
			free_lane = i;
		/* Only an async child has a reason to look for its own parent. */
		if (free_lane != UINT32_MAX && !record->scope)
			break;
	}
	return free_lane;
}

static int add_lane(struct laying *l)
{
	struct pf_lanes *lanes = l->lanes;
	if (lanes->count == lanes->room) {
		uint32_t room = lanes->room ? 2 * lanes->room : 64;
		struct pf_lane *lane = realloc(lanes->lane, room * sizeof(*lane));
		if (!lane)
			return -ENOMEM;
		lanes->lane = lane;
		lanes->room = room;
	}
	lanes->lane[lanes->count++] = (struct pf_lane){.track = l->track};
	return 0;
}

static int place(struct laying *l, struct pf_record *record, uint32_t index)
{
	uint32_t lane = choose_lane(l, record);
	if (lane == UINT32_MAX && l->lanes->count - l->first == PF_LANES_MAX) {
		l->w->left_out[PF_LEFT_LANES]++;
		l->w->stats.events--;
		record->track = UINT32_MAX;
		return 0;
	}
	if (lane == UINT32_MAX) {
		int result = add_lane(l);
		if (result < 0)
			return result;
		lane = l->lanes->count - 1;
	}
	record->track = lane;
	return pf_lane_push(&l->lanes->lane[lane], record, index);
}

static void put_on(struct laying *l, struct pf_flow *flow, uint32_t record)
{
	flow->order = pf_records(l->w)[record].order;
	pf_records(l->w)[record].flags |= PF_HAS_FLOWS;
}

/* The span around a flow: of all lanes the one that began last. One that ends there will do. What has ended
 * before is over for all that is still to come as well. */
static void put_on_enclosing(struct laying *l, struct pf_flow *flow)
{
	uint32_t best = UINT32_MAX;
	for (uint32_t i = l->first; i < l->lanes->count; i++) {
		struct pf_lane *lane = &l->lanes->lane[i];
		while (lane->depth && pf_compare(lane->open[lane->depth - 1].end_ns,
						 lane->open[lane->depth - 1].end_ps, flow->ns, flow->ps) < 0)
			lane->depth--;
		if (lane->depth && (best == UINT32_MAX || lane->open[lane->depth - 1].record > best))
			best = lane->open[lane->depth - 1].record;
	}
	if (best != UINT32_MAX)
		put_on(l, flow, best);
}

/* Flows that are before `record`: those that wait for the next span are on it. */
static void put_flows(struct laying *l, const struct pf_record *record, uint32_t index)
{
	struct pf_flow *flow = l->flow;
	for (; l->enclosed < l->flows; l->enclosed++) {
		if (record && pf_compare(flow[l->enclosed].ns, flow[l->enclosed].ps, record->start_ns,
					 record->start_ps) >= 0)
			break;
		if (!flow[l->enclosed].next && flow[l->enclosed].order == UINT32_MAX)
			put_on_enclosing(l, &flow[l->enclosed]);
	}
	if (!record || (record->kind != PF_SPAN && record->kind != PF_OPEN))
		return;
	for (; l->next < l->flows; l->next++) {
		if (pf_compare(flow[l->next].ns, flow[l->next].ps, record->start_ns, record->start_ps) > 0)
			break;
		if (flow[l->next].next)
			put_on(l, &flow[l->next], index);
	}
}

/* The track's records are [from, to); its flows are the writer's from *flow on. */
static int lay_out_track(struct reducer_pftrace_writer *w, struct pf_lanes *lanes, uint32_t from, uint32_t to,
			 uint32_t *flow)
{
	struct pf_record *records = pf_records(w);
	struct laying l = {.w = w, .lanes = lanes, .track = records[from].track, .first = lanes->count};
	struct pf_flow *flows = w->flows.item;
	while (*flow < w->flows.count && flows[*flow].track < l.track)
		(*flow)++;
	l.flow = flows ? flows + *flow : NULL;
	while (*flow < w->flows.count && flows[*flow].track == l.track) {
		(*flow)++;
		l.flows++;
	}
	int result = add_lane(&l);
	for (uint32_t i = from; i < to && result == 0; i++) {
		put_flows(&l, &records[i], i);
		result = place(&l, &records[i], i);
	}
	put_flows(&l, NULL, 0);
	w->tracks.track[l.track].first_lane = l.first;
	w->tracks.track[l.track].lanes = lanes->count - l.first;
	bool sorted = lanes->count - l.first == 1;
	if (result == 0 && !sorted)
		qsort(records + from, to - from, sizeof(*records), compare_records);
	return result;
}

/* Flows with two ends, each on a span, by their span. */
static void settle_flows(struct reducer_pftrace_writer *w)
{
	struct pf_flow *flow = w->flows.item;
	uint32_t kept = 0;
	for (uint32_t i = 0; i < w->flows.count; i++) {
		if (flow[i].order != UINT32_MAX)
			flow[kept++] = flow[i];
		else
			w->left_out[PF_LEFT_FLOW_NOWHERE]++;
	}
	w->stats.events -= w->flows.count - kept;
	w->flows.count = kept;
	if (kept)
		qsort(flow, kept, sizeof(*flow), compare_flow_ids);
	kept = 0;
	for (uint32_t i = 0, to; i < w->flows.count; i = to) {
		bool begins = false, goes_on = false;
		for (to = i; to < w->flows.count && flow[to].id == flow[i].id; to++) {
			begins |= !flow[to].ends;
			goes_on |= flow[to].ends || flow[to].order != flow[i].order;
		}
		if (!begins || !goes_on) {
			w->left_out[PF_LEFT_FLOW_ORPHAN] += to - i;
			w->stats.events -= to - i;
			continue;
		}
		memmove(flow + kept, flow + i, (to - i) * sizeof(*flow));
		kept += to - i;
	}
	w->flows.count = kept;
	if (kept)
		qsort(flow, kept, sizeof(*flow), compare_flow_spans);
}

int pf_lay_out(struct reducer_pftrace_writer *w, struct pf_lanes *lanes)
{
	struct pf_record *records = pf_records(w);
	uint32_t flow = 0, count = w->records.count, to;
	int result = 0;
	if (count)
		qsort(records, count, sizeof(*records), compare_records);
	if (w->flows.count)
		qsort(w->flows.item, w->flows.count, sizeof(struct pf_flow), compare_flows);
	for (uint32_t from = 0; from < count && result == 0; from = to) {
		for (to = from + 1; to < count && records[to].track == records[from].track; to++)
			;
		result = lay_out_track(w, lanes, from, to, &flow);
	}
	for (uint32_t i = 0, lane = 0; i < count && result == 0; i = to, lane = 0) {
		for (to = i + 1; to < count && records[to].track == records[i].track; to++)
			;
		lane = records[i].track;
		if (lane == UINT32_MAX)
			continue;
		lanes->lane[lane].next = i;
		lanes->lane[lane].end = to;
		lanes->lane[lane].depth = 0;
	}
	if (result == 0)
		settle_flows(w);
	return result;
}

void pf_lanes_free(struct pf_lanes *lanes)
{
	for (uint32_t i = 0; i < lanes->count; i++)
		free(lanes->lane[i].open);
	free(lanes->lane);
}
