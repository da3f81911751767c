/* SPDX-License-Identifier: Apache-2.0 */
/*
 * units.h: quantities as people write them ("16 MiB", "12 %", "5 steps", "1.5 s"), parsed and printed
 * exactly.
 *
 * Everything is integers: bytes, ns, millionths. Parsing does not look at the locale. A decimal fraction is
 * taken where it comes out whole ("1.5 s", "0.5 MiB"), never rounded. The blank before the unit is optional.
 *
 * Errors: -EINVAL is no such quantity, -ERANGE does not fit. `ret_` is untouched then.
 */
#ifndef RECORDER_UNITS_H
#define RECORDER_UNITS_H

#include <stddef.h>
#include <stdint.h>

enum { UNITS_TEXT_MAX = 48 };

/* ns, us, ms, s, min (m), h, d. A bare number other than 0 is refused: which unit would it be? */
int units_parse_duration(const char *text, int64_t *ret_ns);
/* B, KiB, MiB, GiB, TiB and kB, MB, GB, TB. */
int units_parse_bytes(const char *text, int64_t *ret_bytes);
/* "12 %" is 120,000 millionths. */
int units_parse_percent(const char *text, int64_t *ret_ppm);
/* "1.25" is 1,250,000 millionths. */
int units_parse_decimal(const char *text, int64_t *ret_millionths);
int units_parse_integer(const char *text, int64_t *ret_number);

/* A length of time, or a number of steps: the other one is 0. "5 steps", "1 iteration", "30 s". */
struct units_amount {
	int64_t steps;
	int64_t ns;
};
int units_parse_amount(const char *text, struct units_amount *ret_amount);

/* "10 ms x 10 min": bins of 10 ms for the last 10 min. The span is a whole number of bins. */
struct units_tier {
	int64_t bin_ns;
	int64_t span_ns;
};
int units_parse_tier(const char *text, struct units_tier *ret_tier);

/* "3 of 5". 1 <= share <= whole. */
struct units_of {
	int64_t share;
	int64_t whole;
};
int units_parse_of(const char *text, struct units_of *ret_of);

/* The shortest exact form, which parses back to the same value. Return `out`, of UNITS_TEXT_MAX bytes. */
char *units_print_duration(char *out, int64_t ns);
char *units_print_bytes(char *out, int64_t bytes);
char *units_print_percent(char *out, int64_t ppm);
char *units_print_decimal(char *out, int64_t millionths);
char *units_print_amount(char *out, struct units_amount amount);
char *units_print_tier(char *out, struct units_tier tier);
char *units_print_of(char *out, struct units_of of);

#endif
