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
 *       member; flows: those that are there are whole and unaltered
 *   M5  every name of the reduced trace is a name of the raw one (but "merged"); what a merged span says of
 *       how many events it stands for, their summed and longest duration adds up
 *
 * The bins are those that the reduced trace names (reducer/marks.h); a window that it names limits both.
 */
#ifndef REDUCER_VERIFY_H
#define REDUCER_VERIFY_H

#include <stdint.h>

#include <reducer/event.h>

enum reducer_promise { REDUCER_M1 = 1, REDUCER_M2, REDUCER_M3, REDUCER_M4, REDUCER_M5 };

struct reducer_difference {
	enum reducer_promise promise;
	char track[120];  /* "701/3 main", printable */
	int64_t time_ps;  /* in the trace's own time */
	char what[300];   /* "busy 1.204 µs in the raw trace, 1.199 µs in the reduced one" */
};

enum { REDUCER_DIFFERENCES_MAX = 16 };

struct reducer_verify_report {
	uint64_t checked[REDUCER_M5 + 1];  /* comparisons made, by promise */
	uint64_t failed[REDUCER_M5 + 1];
	unsigned n_differences;            /* of `difference`: the first ones */
	struct reducer_difference difference[REDUCER_DIFFERENCES_MAX];
	uint64_t raw_events, reduced_events, tracks;
	int64_t bin_ps, origin_ps;
	int identical;                     /* the files are the same, byte for byte (M8) */
	struct reducer_read_report raw, reduced;
};

/*
 * 0: compared, see `failed`; -EBADMSG: one of them is no trace, or `reduced_path` does not say that it is
 * reduced and is not the same file: *ret_problem says which; another -errno.
 */
int reducer_verify(const char *raw_path, const char *reduced_path, struct reducer_verify_report *report,
		   struct reducer_problem *ret_problem);

#endif
