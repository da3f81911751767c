/* SPDX-License-Identifier: Apache-2.0 */
#include <reducer/reduce.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reduce_inside.h"

const char *reducer_gone_name(enum reducer_gone gone)
{
	static const char *const names[REDUCER_GONE_COUNT] = {
		[REDUCER_GONE_MERGED_SPANS] = "merged into spans",
		[REDUCER_GONE_MERGED_INSTANTS] = "merged into instants",
		[REDUCER_GONE_MERGED_ASYNC] = "merged into async pairs",
		[REDUCER_GONE_COUNTERS] = "counter values between the least, greatest and last of a bin",
		[REDUCER_GONE_FLOWS] = "flows from or to merged spans",
		[REDUCER_GONE_FLOW_ORPHANS] = "flows with one end only",
		[REDUCER_GONE_META_TWICE] = "metadata that came before",
		[REDUCER_GONE_WINDOW] = "outside of the window",
		[REDUCER_GONE_TRACK] = "on other tracks",
	};
	return gone < REDUCER_GONE_COUNT ? names[gone] : "unknown";
}

static uint64_t count_spans(const struct reduce_columns *col)
{
	uint64_t spans = 0;
	for (uint32_t e = 0; e < col->count; e++)
		spans += reduce_kind_of(col->bits[e]) == KIND_SPAN && !(col->bits[e] & BIT_PAIR);
	return spans;
}

static void report_read(const struct reducer_reduce *r, struct reducer_reduce_report *report)
{
	report->read = r->read;
	report->format = r->format;
	report->events_in = r->col.count;
	report->text_bytes = (int64_t)r->read.text_bytes;
}

static void report_plan(const struct reducer_reduce *r, struct reducer_reduce_report *report)
{
	report->spans_in = count_spans(&r->col);
	report->events_out = r->events_out;
	report->spans_out = r->exact_spans + r->spans.count;
	report->exact = r->exact;
	report->merged = r->spans.count + r->instants.count + r->pairs.count;
	memcpy(report->gone, r->gone, sizeof(r->gone));
	report->overlapping = 0;
	report->tracks = 0;
	for (uint32_t t = 0; t < r->tracks.count; t++) {
		report->overlapping += r->tracks.track[t].n_overlapping;
		report->tracks += r->tracks.track[t].class == CLASS_THREAD && r->tracks.track[t].n_spans;
	}
	report->bins = r->bins;
	report->bin_ps = r->bin_ps;
	report->origin_ns = r->zero_ns;
	report->bound_reached = r->bound_reached;
	report->uncapped = r->uncapped;
}

static int read_and_plan(struct reducer_reduce *r)
{
	int result = reduce_tracks_init(&r->tracks);
	if (result == 0)
		result = reduce_names_init(&r->names);
	if (result == 0)
		result = reduce_read_events(r);
	if (result == 0)
		result = reduce_settle(r);
	if (result == 0)
		result = reduce_plan_target(r);
	return result;
}

int reducer_reduce_read(const char *path, const struct reducer_reduce_options *options,
			struct reducer_reduce **ret_reduce, struct reducer_reduce_report *report)
{
	struct reducer_reduce *r = calloc(1, sizeof(*r));
	memset(report, 0, sizeof(*report));
	if (!r)
		return -ENOMEM;
	if (options)
		r->options = *options;
	r->path = strdup(path);
	int result = r->path ? read_and_plan(r) : -ENOMEM;
	report_read(r, report);
	if (result != 0) {
		reducer_reduce_free(r);
		return result;
	}
	report_plan(r, report);
	*ret_reduce = r;
	return 0;
}

int reducer_reduce_plan(struct reducer_reduce *r, uint32_t bins, struct reducer_reduce_report *report)
{
	if (bins)
		r->uncapped = false;
	int result = bins ? reduce_plan_bins(r, bins) : reduce_plan_target(r);
	if (result < 0)
		return result;
	report_read(r, report);
	report_plan(r, report);
	return 0;
}

void reducer_reduce_free(struct reducer_reduce *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->member_blocks.count; i++)
		free(((char **)r->member_blocks.at)[i]);
	void *all[] = {r->path,      r->order,       r->samples.at, r->stands.at, r->members.at,
		       r->called.at, r->threads.at, r->member_blocks.at, r->far_flows.at, r->flow,
		       r->seen,      r->spans.at,    r->instants.at, r->pairs.at};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		free(all[i]);
	reduce_columns_free(&r->col);
	reduce_tracks_free(&r->tracks);
	reduce_names_free(&r->names);
	buffer_free(&r->member_texts);
	buffer_free(&r->repaired);
	reducer_seek_points_free(r->points);
	free(r);
}
