/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_trace.h: a trace file on its way through the triggers, for the files that are parts of it.
 *
 *   replay_trace.c         begins and ends it
 *   replay_trace_read.c    the file becomes spans
 *   replay_trace_table.c   names, tracks, and what one name on one track is
 *   replay_trace_make.c    what of it is a step, a series, a device
 *   replay_trace_feed.c    all of it to the engine, in the order of time
 */
#ifndef RECORDER_REPLAY_TRACE_H
#define RECORDER_REPLAY_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ns.h"
#include "replay.h"
#include "replay_busy.h"
#include "sources/device_busy.h"

struct trace_span {
	int64_t start_ns, duration_ns;
	int64_t step; /* INT64_MIN = none */
	uint32_t track, name;
	int64_t sample;
};

static inline int64_t trace_span_end_ns(const struct trace_span *span)
{
	return ns_add(span->start_ns, span->duration_ns);
}

/* Texts numbered in the order they were first seen. */
struct trace_names {
	char **text;
	uint32_t count, room;
	uint32_t *bucket; /* index + 1 */
	uint32_t buckets; /* a power of two, more than 2 x count */
};

/* What one name on one track is: counted, then made a series. */
struct trace_row {
	uint32_t track, name;
	uint32_t count;
	uint32_t series;
	int64_t samples;
	int64_t end_ns; /* of the spans looked at so far */
	bool nests;     /* some lie in others: a wrapper around different work, without a usual length */
	unsigned phase; /* that its spans are: enum of phases.h */
};

struct trace_rows {
	struct trace_row *row;
	uint32_t count, buckets; /* open addressing; name UINT32_MAX = free */
};

struct trace {
	struct replay *replay;
	struct trace_names tracks, names;
	struct trace_rows rows;
	struct trace_span *span;
	size_t count, room;
	uint32_t step_name;
	struct replay_busy *busy; /* where steps are made of args */
	struct device_busy *devices;
	bool has_step_args, has_named_steps;
};

/* ---- replay_trace_table.c ---- */

/* The number of a text of at most 255 bytes (longer ones are cut), or -errno. */
int64_t trace_names_number(struct trace_names *names, const char *text, size_t bytes);
void trace_names_free(struct trace_names *names);
/* The row, or the free one where it would be: only once there is any row. */
struct trace_row *trace_rows_place(const struct trace_rows *rows, uint32_t track, uint32_t name);
/* The row, a new one where there was none. NULL: out of memory. */
struct trace_row *trace_rows_take(struct trace_rows *rows, uint32_t track, uint32_t name);

/* ---- replay_trace_read.c ---- */

/* 0, or -errno with a sentence. */
int trace_read(struct trace *trace, const char *path, char *error, size_t error_room);
/* -E2BIG, -ENOMEM. */
int trace_append(struct trace *trace, struct trace_span span);

/* ---- replay_trace_make.c ---- */

/* Adds one step a track and step number, from the first begin to the last end of its spans. */
int trace_make_steps(struct trace *trace);
/* Decides which rows are series of the engine. */
void trace_make_series(struct trace *trace);
/* Tells the devices which steps and phases there are; makes their series. */
int trace_make_devices(struct trace *trace);

/* ---- replay_trace_feed.c ---- */

void trace_feed(struct trace *trace);

#endif
