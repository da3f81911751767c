/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plain_text.h"
#include "replay_trace.h"
#include "sources/phases.h"
#include "trigger_settings.h"

enum {
	STEPS_ENOUGH = 24, /* warm-up and a few to judge */
	FREQUENT = 32
};

/* ---- steps of what carries their number ---- */

static int by_track_and_step(const void *a_, const void *b_)
{
	const struct trace_span *a = a_, *b = b_;
	if (a->track != b->track)
		return a->track < b->track ? -1 : 1;
	return a->step < b->step ? -1 : a->step > b->step;
}

static int by_step_and_begin(const void *a_, const void *b_)
{
	const struct trace_span *a = a_, *b = b_;
	int order = by_track_and_step(a, b);
	return order ? order : a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

/* The spans of one step of a track. */
static int tell_busy(struct trace *trace, size_t from, size_t end)
{
	for (size_t i = from; i < end; i++) {
		const struct trace_span *span = &trace->span[i];
		int result = replay_busy_span(trace->busy, span->track, span->step, span->name,
					      trace->names.text[span->name], span->start_ns,
					      trace_span_end_ns(span));
		if (result < 0)
			return result;
	}
	return 0;
}

/* All spans of a track and step number from `from` on, before `end`, as one; *ret_next: where others begin. */
static struct trace_span joined(const struct trace *trace, size_t from, size_t end, size_t *ret_next)
{
	struct trace_span step = trace->span[from];
	int64_t end_ns = trace_span_end_ns(&step);
	size_t next = from;
	for (; next < end && !by_track_and_step(&trace->span[from], &trace->span[next]); next++) {
		const struct trace_span *span = &trace->span[next];
		if (span->start_ns < step.start_ns)
			step.start_ns = span->start_ns;
		if (trace_span_end_ns(span) > end_ns)
			end_ns = trace_span_end_ns(span);
	}
	step.duration_ns = ns_sub(end_ns, step.start_ns);
	step.name = trace->step_name;
	*ret_next = next;
	return step;
}

int trace_make_steps(struct trace *trace)
{
	size_t spans = trace->count;
	const struct config *config = trace->replay->settings->config;
	const struct waits own = config ? trigger_settings_waits(config) : (struct waits){0};
	int made = replay_busy_new(&own, &trace->busy);
	if (made < 0)
		return made;
	if (spans)
		qsort(trace->span, spans, sizeof(*trace->span), by_step_and_begin);
	for (size_t i = 0, next; i < spans; i = next) {
		struct trace_span step = joined(trace, i, spans, &next);
		if (step.step == INT64_MIN)
			continue;
		int told = tell_busy(trace, i, next);
		if (told < 0)
			return told;
		struct trace_row *row = trace_rows_take(&trace->rows, step.track, step.name);
		int result = row ? trace_append(trace, step) : -ENOMEM;
		if (result)
			return result;
		row->count++;
	}
	return 0;
}

/* ---- series ---- */

static int by_begin(const void *a_, const void *b_)
{
	const struct trace_span *a = a_, *b = b_;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->duration_ns > b->duration_ns ? -1 : a->duration_ns < b->duration_ns;
}

static void find_nesting(struct trace *trace)
{
	if (trace->count)
		qsort(trace->span, trace->count, sizeof(*trace->span), by_begin);
	for (size_t i = 0; i < trace->count; i++) {
		const struct trace_span *span = &trace->span[i];
		struct trace_row *row = trace_rows_place(&trace->rows, span->track, span->name);
		int64_t end_ns = trace_span_end_ns(span);
		row->nests |= span->start_ns < row->end_ns && end_ns <= row->end_ns;
		if (end_ns > row->end_ns)
			row->end_ns = end_ns;
	}
}

/* As a feed would make it: all of it is one source, so that what is slow together is one. */
static void make_row_series(struct trace *trace, struct trace_row *row)
{
	char name[TRIGGERS_NAME_MAX];
	const char *text = trace->names.text[row->name];
	enum triggers_role role = row->name == trace->step_name ? TRIGGERS_STEP
				  : row->phase                  ? TRIGGERS_PHASE
								: TRIGGERS_SPAN;
	int before = row->phase ? snprintf(name, sizeof(name), "phase:%s/", phases_text(row->phase)) : 0;
	plain_text(name + before, sizeof(name) - (size_t)before, text, strlen(text));
	struct triggers_series_key key = {
		.role = role, .rank = UINT32_MAX, .track = row->track, .name = name, .alarms = 1};
	row->series = triggers_engine_series(trace->replay->engine, &key);
}

void trace_make_series(struct trace *trace)
{
	bool enough = false;
	const struct config *config = trace->replay->settings->config;
	const struct phases own = config ? trigger_settings_phases(config) : (struct phases){0};
	find_nesting(trace);
	for (uint32_t i = 0; i < trace->rows.buckets; i++)
		enough |= trace->rows.row[i].name == trace->step_name &&
			  trace->rows.row[i].count >= STEPS_ENOUGH;
	for (uint32_t i = 0; i < trace->rows.buckets; i++) {
		struct trace_row *row = &trace->rows.row[i];
		bool is_step = row->name == trace->step_name;
		if (row->name == UINT32_MAX)
			continue;
		row->phase = is_step ? PHASES_NONE : phases_find(&own, trace->names.text[row->name]);
		if (is_step || row->phase || (!enough && row->count >= FREQUENT && !row->nests))
			make_row_series(trace, row);
	}
}

/* ---- devices ---- */

int trace_make_devices(struct trace *trace)
{
	for (size_t i = 0; i < trace->count; i++) {
		const struct trace_span *span = &trace->span[i];
		const struct trace_row *row = trace_rows_place(&trace->rows, span->track, span->name);
		bool phase = row->phase && span->duration_ns >= PHASES_SPAN_MIN_NS;
		if ((span->name != trace->step_name && !phase) || row->series == TRIGGERS_SERIES_NONE)
			continue;
		int64_t step = phase ? INT64_MIN : span->step == INT64_MIN ? -1 : span->step;
		int result = device_busy_step(trace->devices, row->series, span->start_ns,
					      trace_span_end_ns(span), step);
		if (result < 0)
			return result;
	}
	return device_busy_series(trace->devices, trace->replay->engine);
}
