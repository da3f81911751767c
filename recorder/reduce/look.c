/* SPDX-License-Identifier: Apache-2.0 */
#include "reduce/look.h"

#include <errno.h>
#include <string.h>

#include <reducer/marks.h>
#include <reducer/trace.h>

/* A reduced trace says so before its first event in time; others have metadata there, but not without end. */
enum { LOOK_EVENTS_MAX = 4096, FOUND = 1, ENOUGH = 2 };

static int look_at(void *context, const struct reducer_event *event)
{
	unsigned *events = context;

	if (event->kind == DREC_META && event->name.bytes == strlen(REDUCER_MARK_REDUCED) &&
	    memcmp(event->name.data, REDUCER_MARK_REDUCED, event->name.bytes) == 0)
		return FOUND;
	return ++*events == LOOK_EVENTS_MAX ? ENOUGH : 0;
}

static int look_for_mark(const char *path, enum reducer_format format)
{
	unsigned events = 0;
	struct reducer_sink sink = {.context = &events, .event = look_at};
	struct reducer_read_report report;

	/* Damage is for the real reading to tell of. */
	return reducer_trace_read(path, format, &sink, &report);
}

int reduce_look(const char *path, struct reduce_look *ret_look, struct reducer_problem *ret_problem)
{
	struct reduce_look look = {0};
	struct reducer_input *input;
	int r = reducer_trace_sniff(path, &look.format, ret_problem);

	if (r < 0)
		return r;
	r = reducer_input_open(path, &input, ret_problem);
	if (r < 0)
		return r;
	look.packing = reducer_input_packing(input);
	reducer_input_free(input);
	look.reduced = look_for_mark(path, look.format) == FOUND;
	*ret_look = look;
	return 0;
}
