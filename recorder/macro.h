/* SPDX-License-Identifier: Apache-2.0 */
/*
 * macro.h: a stretch of the macro view as JSON, for incidents and the API.
 *
 *     { "schema": "driverec.macro/1", "from_ns": "…", "width_ns": "…", "bins": n,
 *       "rows": [ { "source", "track", "label", "kind", "depth",
 *                   "bins": [ [index, count, busy_ns, longest_ns, "longest"], … ] } ] }
 *
 * Empty bins and empty rows are left out. Counters: [index, count, min, max, last]; instants: [index, count, "first"].
 */
#ifndef RECORDER_MACRO_H
#define RECORDER_MACRO_H

#include <stddef.h>
#include <stdint.h>

#include <reducer/tiers.h>

enum { MACRO_BINS_MAX = 1200, MACRO_BYTES_MAX = 16 << 20 };

/* Of [a, b] in the tiers' time, at the finest width that keeps it under MACRO_BINS_MAX bins. 0 or -errno. */
int macro_json(struct reducer_tiers *tiers, int64_t a_ns, int64_t b_ns, char **ret_text, size_t *ret_bytes);

#endif
