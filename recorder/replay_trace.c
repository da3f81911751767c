/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Chrome trace or XPlane file through the triggers. Events of a file are in no order, so its spans are kept
 * (40 bytes each) and fed by their ends: a span is known once it is over, as it is live.
 *
 * Steps: spans whose name matches a pattern (ProfilerStep#7); where there are none, the spans of a track that
 * carry the same `step` in their args make one step, and its own work is told to its peers (replay_busy.h).
 * Where no track has enough steps to learn from, every name that is frequent on a track is a series that may
 * fire, but for those that nest in themselves. Spans whose name is known as a phase (sources/phases.h) are one,
 * as live.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay_trace.h"

static void without_quotes(const char *text, char *out, size_t room)
{
	size_t used = 0;
	for (; *text && used + 1 < room; text++)
		if (*text != '"')
			out[used++] = *text;
	out[used] = 0;
}

/* "pid 3 tid 7"; "process/thread" where they are no numbers. */
static void track_text(const void *context, uint32_t source, uint64_t track, char *out, size_t room)
{
	const struct trace *trace = context;
	(void)source;
	const char *text = track < trace->tracks.count ? trace->tracks.text[track] : "";
	size_t pid_bytes = strspn(text, "-0123456789"), tid_bytes = 0;
	if (pid_bytes && text[pid_bytes] == '/')
		tid_bytes = strspn(text + pid_bytes + 1, "-0123456789");
	if (tid_bytes && !text[pid_bytes + 1 + tid_bytes])
		snprintf(out, room, "pid %.*s tid %s", (int)pid_bytes, text, text + pid_bytes + 1);
	else
		without_quotes(text, out, room);
}

/* What was read, through the engine of a run. */
static int judge(struct trace *trace)
{
	struct replay *replay = trace->replay;
	int result = 0;
	replay->track_text = track_text;
	replay->track_context = trace;
	if (!trace->has_named_steps && trace->has_step_args)
		result = trace_make_steps(trace);
	if (result)
		return result;
	trace_make_series(trace);
	result = trace_make_devices(trace);
	if (!result && trace->busy)
		result = replay_busy_series(trace->busy, replay->engine, track_text, trace);
	if (!result)
		trace_feed(trace);
	return result;
}

int replay_trace(struct replay *replay, const char *path, char *error, size_t error_room)
{
	struct trace trace = {.replay = replay};
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	int64_t step_name = trace_names_number(&trace.names, "step", 4);
	int result = step_name < 0 ? (int)step_name : 0;
	if (!result)
		result = device_busy_new(&trace.devices);
	if (!result) {
		trace.step_name = (uint32_t)step_name;
		result = trace_read(&trace, path, error, error_room);
	}
	if (!result)
		result = replay_begin(replay, name, error, error_room);
	if (!result) {
		result = judge(&trace);
		if (result)
			snprintf(error, error_room, "%.200s: %s", path, strerror(-result));
		replay_end(replay);
	}
	replay_busy_free(trace.busy);
	device_busy_free(trace.devices);
	replay_progress_clear(replay);
	free(trace.span);
	free(trace.rows.row);
	trace_names_free(&trace.names);
	trace_names_free(&trace.tracks);
	return result;
}
