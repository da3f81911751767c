/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reducer/verify.h: hold a reduced trace against the trace it was made from.
 *
 * Shares the codecs with what reduces, and nothing else: it lays both files out by itself, with its own bins,
 * and says where they differ.
 *
 *   M1  busy time: per track and bin the union length of spans is the same, within 1 ns
 *   M2  first start and last end of every track, and every step mark, are the same
 *   M3  the longest span of every row and bin is there exactly, args byte for byte
 *   M4  counters' min, max and last a bin; instants' number and first; every metadata event; every top-level
 *       member; flows: those that are there are whole and unaltered; what is of no such kind is all there
 *   M5  every name of the reduced trace is a name of the raw one (but "merged"); what is not merged is an
 *       event of the raw trace, unaltered; what a merged span says of how many events it stands for, their
 *       summed and longest duration adds up
 *
 * The bins are those that the reduced trace names (reducer/marks.h); a window that it names limits both.
 * docs/verify.md has the definitions, and what is compared where the two formats differ.
 *
 * Memory: about 220 bytes an event of both traces, and their names. Texts that have no bound (args, members)
 * are compared by 128-bit fingerprints.
 */
#ifndef REDUCER_VERIFY_H
#define REDUCER_VERIFY_H

#include <stdint.h>

#include <reducer/event.h>
#include <reducer/writer.h>

enum reducer_promise { REDUCER_M1 = 1, REDUCER_M2, REDUCER_M3, REDUCER_M4, REDUCER_M5 };
/* "busy time", "firsts, lasts and steps", … */
const char *reducer_promise_name(enum reducer_promise promise);

/* A time or length: ns + ps / 1000, ps in 0 .. 999. Picoseconds alone do not fit: a trace may count from 1970.
 */
struct reducer_moment {
	int64_t ns;
	uint16_t ps;
};

struct reducer_difference {
	enum reducer_promise promise;
	char track[120]; /* "701/3 main", printable; "" where it is of no track */
	int has_time;
	struct reducer_moment time; /* in the raw trace's own time */
	char what[300];             /* "busy 1.204 us in the raw trace, 1.199 us in the reduced one" */
};

/* The first ones of each promise are told, so that many of one kind do not hide another. */
enum { REDUCER_DIFFERENCES_EACH = 4, REDUCER_DIFFERENCES_MAX = 20 };

struct reducer_verify_report {
	uint64_t checked[REDUCER_M5 + 1]; /* comparisons made, by promise */
	uint64_t failed[REDUCER_M5 + 1];
	unsigned n_differences; /* of `difference` */
	struct reducer_difference difference[REDUCER_DIFFERENCES_MAX];
	uint64_t raw_events, reduced_events, tracks;
	struct reducer_moment bin, origin;
	int has_window; /* the reduced trace names a window: the raw one was cut to it first */
	struct reducer_moment window_from, window_to;
	char track_pattern[120]; /* that it names; tracks that it does not hold were then not compared */
	enum reducer_format raw_format, reduced_format;
	int identical; /* the files are the same, byte for byte (M8) */
	struct reducer_read_report raw, reduced;
};

/*
 * 0: compared, see `failed`; -EBADMSG: one of them is no trace, or `reduced_path` does not say that it is
 * reduced and is not the same file: *ret_problem says which; another -errno.
 */
int reducer_verify(const char *raw_path, const char *reduced_path, struct reducer_verify_report *report,
		   struct reducer_problem *ret_problem);

#endif
