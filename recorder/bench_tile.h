/* SPDX-License-Identifier: Apache-2.0 */
/* Long traces for the benchmarks: a real one repeated in time, or one that is made up. */
#ifndef RECORDER_BENCH_TILE_H
#define RECORDER_BENCH_TILE_H

#include <stddef.h>
#include <stdint.h>

enum { BENCH_TRACE_EVENTS = 2000000, BENCH_PATH_MAX = 4096 };

/*
 * Writes a Chrome trace of `events` events, packed with gzip at level 6, to a new file below $TMPDIR or /tmp,
 * whose name goes to `ret_path` (BENCH_PATH_MAX bytes) and which the caller removes. The events are those of
 * the Chrome trace `source`, over and over: each copy later by the source's span, in whole microseconds so
 * that all decimals stay, its numeric flow and async ids beyond those of the copy before; metadata and members
 * are in the first copy only. Where `source` is NULL they are made up, like Kineto's. Deterministic. 0, or
 * -errno after a line on stderr.
 */
int bench_tile(const char *source, uint64_t events, char *ret_path);

#endif
