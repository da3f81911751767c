/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "replay_trace.h"
#include "sources/phases.h"

static int by_end(const void *a_, const void *b_)
{
	const struct trace_span *a = a_, *b = b_;
	int64_t a_end = trace_span_end_ns(a), b_end = trace_span_end_ns(b);
	if (a_end != b_end)
		return a_end < b_end ? -1 : 1;
	return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

static void feed_busy(struct trace *trace, int64_t now_ns)
{
	struct replay *replay = trace->replay;
	struct triggers_sample sample;
	for (uint32_t series; trace->busy; replay->samples++) {
		series = replay_busy_next(trace->busy, now_ns, &sample);
		if (series == TRIGGERS_SERIES_NONE)
			return;
		replay_advance(replay, now_ns);
		triggers_engine_observe(replay->engine, series, &sample);
	}
}

/* What devices did, and the steps in which they should have. */
static void feed_devices(struct trace *trace, int64_t now_ns)
{
	struct replay *replay = trace->replay;
	for (struct device_busy_next next = device_busy_next(trace->devices, now_ns); next.kind;
	     next = device_busy_next(trace->devices, now_ns)) {
		replay_advance(replay, next.at_ns);
		if (next.kind == DEVICE_BUSY_OPEN)
			triggers_engine_open(replay->engine, next.series, next.at_ns, next.step, NULL);
		else
			triggers_engine_observe(replay->engine, next.series, &next.sample);
	}
}

void trace_feed(struct trace *trace)
{
	struct replay *replay = trace->replay;
	if (trace->count)
		qsort(trace->span, trace->count, sizeof(*trace->span), by_end);
	for (size_t i = 0; i < trace->count && !replay_interrupted(); i++) {
		const struct trace_span *span = &trace->span[i];
		struct trace_row *row = trace_rows_place(&trace->rows, span->track, span->name);
		if (i % 4096 == 0)
			replay_progress(replay, i, "spans judged");
		feed_devices(trace, trace_span_end_ns(span));
		feed_busy(trace, trace_span_end_ns(span));
		if (row->series == TRIGGERS_SERIES_NONE ||
		    (row->phase && span->duration_ns < PHASES_SPAN_MIN_NS))
			continue;
		struct triggers_sample sample = {.start_ns = span->start_ns,
						 .duration_ns = span->duration_ns,
						 .step = span->step == INT64_MIN ? -1 : span->step,
						 .sample = row->samples++};
		replay_advance(replay, trace_span_end_ns(span));
		triggers_engine_observe(replay->engine, row->series, &sample);
		replay->samples++;
		replay->steps += span->name == trace->step_name;
	}
	if (!trace->count)
		return;
	int64_t first_ns = trace->span[0].start_ns;
	for (size_t i = 0; i < trace->count; i++)
		if (trace->span[i].start_ns < first_ns)
			first_ns = trace->span[i].start_ns;
	const struct trace_span *last = &trace->span[trace->count - 1];
	replay->job_ns = ns_add(replay->job_ns, ns_sub(trace_span_end_ns(last), first_ns));
}
