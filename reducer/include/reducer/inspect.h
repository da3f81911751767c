/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reducer/inspect.h: exact figures of a trace: counts by kind, names, and each track's spans, first start,
 * last end, busy time (the length of the union of its spans) and longest span, in picoseconds.
 *
 * Memory: 16 bytes for each distinct name, and 24 bytes for each span that cannot be joined with the one
 * before it on its track. Spans of negative length count, but are never busy.
 *
 * Not thread-safe. Errors are -errno.
 */
#ifndef REDUCER_INSPECT_H
#define REDUCER_INSPECT_H

#include <reducer/event.h>

struct reducer_inspect;

enum { REDUCER_INSPECT_TRACKS_MAX = 1 << 20, REDUCER_INSPECT_KINDS_MAX = 64 };

int reducer_inspect_new(struct reducer_inspect **ret_inspect);
void reducer_inspect_free(struct reducer_inspect *inspect);

/* What a reader hands its events to. */
struct reducer_sink reducer_inspect_sink(struct reducer_inspect *inspect);
int reducer_inspect_event(struct reducer_inspect *inspect, const struct reducer_event *event);
int reducer_inspect_member(struct reducer_inspect *inspect, const struct reducer_member *member);

/*
 * One JSON object, keys sorted, no newline: base_ns, events, file, kinds, names, tracks. Kinds are the `ph` of
 * the trace (for rings the one that export would write, or "mark" and "loss"). The caller frees *ret_text.
 * More members may follow in `more` ("\"clock\":\"tsc\",…", or NULL); they go first.
 */
int reducer_inspect_json(struct reducer_inspect *inspect, const char *file, const char *more, char **ret_text);

/* A track's figures for a table; index from 0, -ENOENT beyond the last. Texts live as long as `inspect`. */
struct reducer_inspect_track {
	const char *name; /* "pid/tid" */
	uint64_t spans;
	int64_t first_ns, last_ns, busy_ns, longest_ns;
	const char *longest_name;
};
int reducer_inspect_track(struct reducer_inspect *inspect, size_t index, struct reducer_inspect_track *ret);

/* Events by kind, in the order of their names. */
int reducer_inspect_kind(struct reducer_inspect *inspect, size_t index, const char **ret_kind, uint64_t *ret_count);
uint64_t reducer_inspect_events(const struct reducer_inspect *inspect);
uint64_t reducer_inspect_names(const struct reducer_inspect *inspect);

#endif
