/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reducer/reduce.h: a trace made small, the same at the scale one looks at.
 *
 * The promises are M1 to M8 of docs/reduce.md: busy time a track and bin, first and last of a track, the
 * longest span a row and bin, counters' min, max and last, names, metadata. What is not kept exactly is merged
 * into spans that say how many events they stand for (reducer/marks.h), and counted.
 *
 * The text is parsed once. What stays is then fetched by its place, which unpacks the file again but reads
 * nothing of what goes. The input must therefore be a file (a pipe is spooled by the caller).
 *
 * Memory: at most 40 bytes an event beyond 64 MB. Threads: as many as `threads` says, none of them left when
 * a function returns. Not thread-safe otherwise. Errors are -errno.
 */
#ifndef REDUCER_REDUCE_H
#define REDUCER_REDUCE_H

#include <stdbool.h>
#include <stdint.h>

#include <reducer/event.h>
#include <reducer/writer.h>

struct reducer_reduce;
struct reducer_verify_report; /* reducer/verify.h */

struct reducer_reduce_options {
	uint32_t bins;            /* 0: REDUCER_BINS_DEFAULT */
	uint64_t target_events;   /* 0: none; else the finest bins that leave at most so many events */
	uint32_t target_permille; /* the same as a share of the events that came, 1 .. 1000 */
	bool has_window;          /* only events that meet [from, to], in ps since the trace's first event */
	int64_t window_from_ps, window_to_ps;
	/* Tracks to keep, a shell pattern (fnmatch) that must match "group/track", the thread's name or the
	 * process's name; NULL: all. */
	const char *track_pattern;
	unsigned threads;         /* 0: 2 */
	/* Called from time to time with a share of the work between 0 and 1000; another value than 0 ends the work
	 * with it. May be NULL. */
	int (*progress)(void *context, unsigned permille);
	void *context;
};

/* Why an event is not in the output. */
enum reducer_gone {
	REDUCER_GONE_MERGED_SPANS = 0,  /* a merged span stands for it */
	REDUCER_GONE_MERGED_INSTANTS,   /* a merged instant stands for it */
	REDUCER_GONE_MERGED_ASYNC,      /* a merged pair stands for it */
	REDUCER_GONE_COUNTERS,          /* between the min, max and last of its bin */
	REDUCER_GONE_FLOWS,             /* an end of the flow lies on a merged span */
	REDUCER_GONE_FLOW_ORPHANS,      /* the flow has only one end */
	REDUCER_GONE_META_TWICE,        /* the same metadata event came before */
	REDUCER_GONE_WINDOW,            /* outside of the window asked for */
	REDUCER_GONE_TRACK,             /* on a track not asked for */
	REDUCER_GONE_COUNT
};
/* "merged into spans", "flow with one end only", … */
const char *reducer_gone_name(enum reducer_gone gone);

struct reducer_reduce_report {
	struct reducer_read_report read; /* of the input; read.problem says why it was refused */
	enum reducer_format format;      /* of the input */
	uint64_t events_in;              /* as in the file, metadata included */
	uint64_t spans_in;               /* X events */
	uint64_t events_out;             /* = exact + merged (+ the one that says it is reduced) */
	uint64_t spans_out;
	uint64_t exact, merged;
	uint64_t gone[REDUCER_GONE_COUNT];
	uint64_t overlapping;            /* spans that overlap others of their row without nesting */
	uint64_t tracks;
	uint32_t bins;                   /* used */
	int64_t bin_ps;
	int64_t origin_ns;               /* where bin 0 begins, in the trace's own time */
	int64_t text_bytes;              /* of the input, unpacked */
	uint64_t output_bytes;           /* set by reducer_reduce_write() */
	bool bound_reached;              /* a target that even the coarsest bins do not reach */
	bool uncapped;                   /* to reach it, merged spans may be longer than their track's longest span */
};

/* Reads `path` and lays its events out. On failure *report says what it can. */
int reducer_reduce_read(const char *path, const struct reducer_reduce_options *options,
			struct reducer_reduce **ret_reduce, struct reducer_reduce_report *report);

/* Chooses the bins: by options of read(), or anew with another number. Fills report: events_out is known
 * before anything is written (--dry-run). */
int reducer_reduce_plan(struct reducer_reduce *reduce, uint32_t bins, struct reducer_reduce_report *report);

/*
 * Writes what was planned last to `fd` (empty, seekable). `format` is CHROME (root form and packing follow
 * `options`) or what reducer_writer_new() takes. May be called again with another plan.
 */
int reducer_reduce_write(struct reducer_reduce *reduce, int fd, enum reducer_format format,
			 const struct reducer_writer_options *options, struct reducer_reduce_report *report);

/*
 * Reads back what was written last, which must be of the input's format, and holds it against what is still
 * remembered of the input: columns of times, names and values, not what was planned. M1, M2, M3 (by start,
 * length and name), M4 and M5 as verify.h has them, but for texts that are not remembered: args, categories,
 * ids and whatever else stands in an event, metadata beyond its name. It shares with the reducer how events are
 * read and laid out in rows; reducer_verify() shares neither that nor anything but the codecs, and costs as much
 * as reading the input once more.
 *
 * 0: compared, see `failed` of the report (bin, origin and window are not filled in); -EINVAL: another format;
 * -EBADMSG: it cannot be read, *ret_problem says why; another -errno. Memory: what the output's events take.
 */
int reducer_reduce_check(const struct reducer_reduce *reduce, const char *path, struct reducer_verify_report *report,
			 struct reducer_problem *ret_problem);

void reducer_reduce_free(struct reducer_reduce *reduce);

#endif
