/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random Chrome traces: events of every kind, with ties, overlaps, pairs that find no mate and times out of reach.
 * Random numbers are those of test_random().
 */
#ifndef TESTS_TRACE_MAKER_H
#define TESTS_TRACE_MAKER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct trace_maker {
	FILE *file;
	bool first;     /* no event was written yet */
	uint64_t grain; /* times are multiples of so many ns: few distinct ones, so that ties are common */
};

/* Times are in ns. */
void trace_maker_span(struct trace_maker *m, unsigned tid, uint64_t from, uint64_t length, bool as_pair);

/* A whole trace; `array`: as a bare array. */
void trace_maker_file(const char *path, bool array);

#endif
