/* SPDX-License-Identifier: Apache-2.0 */
/* moment.h: times and lengths to the picosecond, as people and programs read them. */
#ifndef RECORDER_MOMENT_H
#define RECORDER_MOMENT_H

#include <reducer/verify.h>

enum { MOMENT_TEXT_MAX = 40 };

/* Decimal microseconds, exactly: 3 decimals, 6 where there are picoseconds. Returns `out`. */
const char *moment_print(char out[MOMENT_TEXT_MAX], struct reducer_moment moment);

#endif
