/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as JSON writes them, read exactly and without the locale. */
#ifndef REDUCER_DECIMAL_H
#define REDUCER_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>

#include <reducer/event.h>

/*
 * Decimal microseconds to ns and ps (0 .. 999, also for negative times), rounded half to even at the ps.
 * Exponents and signs are allowed. False if it is no decimal number or beyond int64 ns.
 */
bool decimal_us(struct reducer_text text, int64_t *ret_ns, uint16_t *ret_ps);

/* Exactly the digits of a uint64, without sign or leading zeros: it prints back as it was. */
bool decimal_u64(struct reducer_text text, uint64_t *ret_value);

/* An integer that may be signed. */
bool decimal_i64(struct reducer_text text, int64_t *ret_value);

/* The nearest double, to within one unit in the last place. */
bool decimal_double(struct reducer_text text, double *ret_value);

#endif
