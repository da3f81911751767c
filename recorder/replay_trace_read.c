/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <reducer/trace.h>

#include "replay_trace.h"

enum { SPANS_MAX = 1 << 26, PATTERNS_USUAL = 4 };

static const char *const usual_steps[PATTERNS_USUAL] = {"ProfilerStep#*", "step", "train_step", "train #*"};

/* A whole number at the end of a name, or INT64_MIN. */
static int64_t trailing_number(const char *text)
{
	size_t bytes = strlen(text), from = bytes;
	int64_t number;
	while (from && text[from - 1] >= '0' && text[from - 1] <= '9')
		from--;
	return from < bytes && !replay_decimal(text + from, 0, &number) ? number : INT64_MIN;
}

/* "step" or "step_num" among the args as written: {"step": 16, …}. */
static int64_t step_of_args(struct reducer_text args)
{
	static const char *const keys[] = {"\"step\"", "\"step_num\""};
	char number[24];
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && args.data; i++) {
		const char *at = memmem(args.data, args.bytes, keys[i], strlen(keys[i])),
			   *end = args.data + args.bytes;
		if (!at)
			continue;
		size_t used = 0;
		for (at += strlen(keys[i]); at < end && strchr(" :\"\t\n\r", *at); at++)
			;
		for (; at < end && *at >= '0' && *at <= '9' && used < sizeof(number) - 1; at++)
			number[used++] = *at;
		number[used] = 0;
		int64_t step;
		if (used && !replay_decimal(number, 0, &step))
			return step;
	}
	return INT64_MIN;
}

static bool is_step(const struct trace *trace, const char *name)
{
	const struct option_texts *given = &trace->replay->settings->step;
	for (int i = 0; i < given->count; i++)
		if (triggers_pattern_match(given->text[i], name))
			return true;
	for (int i = 0; i < PATTERNS_USUAL && !given->count; i++)
		if (triggers_pattern_match(usual_steps[i], name))
			return true;
	return false;
}

int trace_append(struct trace *trace, struct trace_span span)
{
	if (trace->count == trace->room) {
		size_t room = trace->room ? 2 * trace->room : 4096;
		struct trace_span *larger =
			room > SPANS_MAX ? NULL : realloc(trace->span, room * sizeof(*larger));
		if (!larger)
			return room > SPANS_MAX ? -E2BIG : -ENOMEM;
		trace->span = larger;
		trace->room = room;
	}
	trace->span[trace->count++] = span;
	return 0;
}

static int on_event(void *context, const struct reducer_event *event)
{
	struct trace *trace = context;
	char place[256];
	if (trace->count % 4096 == 0)
		replay_progress(trace->replay, trace->count, "spans read");
	if (replay_interrupted())
		return -EINTR;
	int result = device_busy_event(trace->devices, event);
	if (result < 0 || event->kind != DREC_SPAN || !event->has_time || !event->has_duration ||
	    event->duration_ns < 0)
		return result;
	int bytes = snprintf(place, sizeof(place), "%.*s/%.*s",
			     (int)(event->group.bytes < 96 ? event->group.bytes : 96),
			     event->group.bytes ? event->group.data : "",
			     (int)(event->track.bytes < 96 ? event->track.bytes : 96),
			     event->track.bytes ? event->track.data : "");
	int64_t track = trace_names_number(&trace->tracks, place, (size_t)bytes);
	int64_t name = trace_names_number(&trace->names, event->name.bytes ? event->name.data : "",
					  event->name.bytes);
	if (track < 0 || name < 0)
		return (int)(track < 0 ? track : name);
	struct trace_span span = {.start_ns = event->start_ns,
				  .duration_ns = event->duration_ns,
				  .step = step_of_args(event->args),
				  .track = (uint32_t)track,
				  .name = (uint32_t)name};
	const char *text = trace->names.text[name];
	if (is_step(trace, text)) {
		trace->has_named_steps = true;
		if (span.step == INT64_MIN)
			span.step = trailing_number(text);
		span.name = trace->step_name;
	} else if (span.step != INT64_MIN) {
		trace->has_step_args = true;
	}
	struct trace_row *row = trace_rows_take(&trace->rows, span.track, span.name);
	if (!row)
		return -ENOMEM;
	row->count++;
	return trace_append(trace, span);
}

int trace_read(struct trace *trace, const char *path, char *error, size_t error_room)
{
	struct reducer_read_report report;
	struct reducer_sink sink = {.context = trace, .event = on_event};
	int result = reducer_trace_read_any(path, &sink, &report);
	if (result)
		snprintf(error, error_room, "%.200s: %s", path,
			 report.n_problems ? report.problem[report.n_problems - 1].what : strerror(-result));
	return result;
}
