/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.h: what the benchmarks of `driverec bench` share.
 *
 * Every figure is printed as one JSON line {"bench","value","unit","limit","ratio"}; the limit is measured in
 * the same run, by the same loop with nothing but what cannot be left out. Each is the best of several
 * rounds: on a shared machine that is what says something about the code.
 */
#ifndef RECORDER_BENCH_H
#define RECORDER_BENCH_H

#include <stdint.h>
#include <stdio.h>

#include <driverec/driverec.h>

struct bench_figure {
	const char *name;
	double value;
	const char *unit;
	double limit; /* 0 = none to compare with */
	double goal;  /* the ratio (or value, where there is no limit) that docs/performance.md promises; 0 = none */
};

void bench_print(const struct bench_figure *figure);

int64_t bench_ns(void);

/* A scratch run directory on /dev/shm, and its removal with everything in it. NULL if it cannot be made. */
const char *bench_folder_make(void);
void bench_folder_remove(const char *folder);

/* A ring in that folder; NULL after a line on stderr. */
drec *bench_ring(const char *folder, const char *name, uint64_t bytes);

/* The benchmarks: 0, or -errno after a line on stderr. */
int bench_ring_one(void);
int bench_ring_many(void);
int bench_freeze(void);
int bench_snapshot(const char *folder);
int bench_ingest(void);
int bench_triggers(void);
/* Reads `trace`; where it is NULL one that is made of `source` (NULL: made up). */
int bench_parse(const char *trace, const char *source);
int bench_reduce(const char *trace, const char *source);
int bench_reduce_scale(const char *source);

#endif
