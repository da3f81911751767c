/* SPDX-License-Identifier: Apache-2.0 */
/* Differences, in words. */
#ifndef REDUCER_VERIFY_SAY_H
#define REDUCER_VERIFY_SAY_H

#include "verify_trace.h"

/* Texts to be printed in the same expression. */
struct verify_us {
	char text[56];
};
struct verify_short {
	char text[96];
};
/* Decimal microseconds: 3 decimals, 6 where there are picoseconds. */
struct verify_us verify_us(verify_ps ps);
/* A text of the house, printable and cut to size. */
struct verify_short verify_short(const struct verify_house *house, uint32_t number);

/* One comparison was made. */
void verify_checked(struct verify *verify, enum reducer_promise promise);

/* It failed: at a track or VERIFY_NONE, at a time or NULL. */
__attribute__((format(printf, 5, 6))) void verify_fail(struct verify *verify, enum reducer_promise promise,
						       uint32_t track, const verify_ps *time,
						       const char *format, ...);

#endif
