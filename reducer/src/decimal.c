/* SPDX-License-Identifier: Apache-2.0 */
#include "decimal.h"

#include <limits.h>
#include <string.h>

/* A decimal taken apart: digits of whole and fraction as written, and the exponent. */
struct decimal {
	bool negative;
	const char *digits;   /* whole part */
	size_t n_digits;
	const char *fraction;
	size_t n_fraction;
	long exponent;
};

enum { EXPONENT_MAX = 100000 };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool read_exponent(const char *p, const char *end, long *ret)
{
	bool negative = false;
	long value = 0;
	if (p < end && (*p == '+' || *p == '-'))
		negative = *p++ == '-';
	if (p == end)
		return false;
	for (; p < end; p++) {
		if (!is_digit(*p))
			return false;
		if (value < EXPONENT_MAX)
			value = value * 10 + (*p - '0');
	}
	*ret = negative ? -value : value;
	return true;
}

static bool take_apart(struct reducer_text text, struct decimal *ret)
{
	if (text.bytes == 0)
		return false;
	const char *p = text.data, *end = text.data + text.bytes;
	struct decimal d = {0};
	if (p < end && (*p == '-' || *p == '+'))
		d.negative = *p++ == '-';
	d.digits = p;
	while (p < end && is_digit(*p))
		p++;
	d.n_digits = (size_t)(p - d.digits);
	if (p < end && *p == '.') {
		d.fraction = ++p;
		while (p < end && is_digit(*p))
			p++;
		d.n_fraction = (size_t)(p - d.fraction);
	}
	if (d.n_digits == 0 && d.n_fraction == 0)
		return false;
	if (p < end && (*p == 'e' || *p == 'E')) {
		if (!read_exponent(p + 1, end, &d.exponent))
			return false;
		p = end;
	}
	if (p != end)
		return false;
	*ret = d;
	return true;
}

static unsigned digit_at(const struct decimal *d, size_t index)
{
	if (index < d->n_digits)
		return (unsigned)(d->digits[index] - '0');
	index -= d->n_digits;
	return index < d->n_fraction ? (unsigned)(d->fraction[index] - '0') : 0;
}

/* The ps of |ts|: all digits up to 10^-6 us, then rounded half to even. False where too large. */
static bool magnitude_ps(const struct decimal *d, unsigned __int128 *ret)
{
	const unsigned __int128 limit = (unsigned __int128)INT64_MAX * 1000;
	long total = (long)(d->n_digits + d->n_fraction);
	long wanted = (long)d->n_digits + d->exponent + 6; /* digits before the rounding point */
	unsigned __int128 value = 0;
	for (long i = 0; i < wanted; i++) {
		if (i >= total && value == 0)
			break;
		value = value * 10 + digit_at(d, (size_t)i);
		if (value > limit)
			return false;
	}
	if (wanted < 0 || wanted >= total) {
		*ret = value;
		return true;
	}
	unsigned first = digit_at(d, (size_t)wanted);
	bool beyond = false;
	for (long i = wanted + 1; i < total && !beyond; i++)
		beyond = digit_at(d, (size_t)i) != 0;
	if (first > 5 || (first == 5 && (beyond || (value & 1))))
		value++;
	*ret = value;
	return value <= limit;
}

/* Up to 15 digits and 6 decimals, as nearly all times are: no 128-bit work. */
static bool plain_us(struct reducer_text text, int64_t *ret_ns, uint16_t *ret_ps)
{
	uint64_t whole = 0, fraction = 0;
	size_t i = 0, decimals = 0;
	for (; i < text.bytes && is_digit(text.data[i]); i++)
		whole = whole * 10 + (uint64_t)(text.data[i] - '0');
	if (i == 0 || i > 15)
		return false;
	if (i < text.bytes && text.data[i] == '.')
		for (i++; i < text.bytes && decimals < 6 && is_digit(text.data[i]); i++, decimals++)
			fraction = fraction * 10 + (uint64_t)(text.data[i] - '0');
	if (i != text.bytes || text.data[text.bytes - 1] == '.')
		return false;
	for (; decimals < 6; decimals++)
		fraction *= 10;
	*ret_ns = (int64_t)(whole * 1000 + fraction / 1000);
	*ret_ps = (uint16_t)(fraction % 1000);
	return true;
}

bool decimal_us(struct reducer_text text, int64_t *ret_ns, uint16_t *ret_ps)
{
	struct decimal d;
	unsigned __int128 ps;
	if (text.bytes <= 23 && plain_us(text, ret_ns, ret_ps))
		return true;
	if (!take_apart(text, &d) || !magnitude_ps(&d, &ps))
		return false;
	int64_t ns = (int64_t)(ps / 1000);
	uint16_t rest = (uint16_t)(ps % 1000);
	if (d.negative) {
		ns = rest ? -ns - 1 : -ns;
		rest = rest ? (uint16_t)(1000 - rest) : 0;
	}
	*ret_ns = ns;
	*ret_ps = rest;
	return true;
}

bool decimal_u64(struct reducer_text text, uint64_t *ret_value)
{
	uint64_t value = 0;
	if (text.bytes == 0 || text.bytes > 20 || (text.data[0] == '0' && text.bytes > 1))
		return false;
	for (size_t i = 0; i < text.bytes; i++) {
		if (!is_digit(text.data[i]))
			return false;
		uint64_t digit = (uint64_t)(text.data[i] - '0');
		if (value > (UINT64_MAX - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*ret_value = value;
	return true;
}

bool decimal_i64(struct reducer_text text, int64_t *ret_value)
{
	uint64_t value;
	bool negative = text.bytes > 0 && text.data[0] == '-';
	if (negative) {
		text.data++;
		text.bytes--;
	}
	if (!decimal_u64(text, &value) || value > (uint64_t)INT64_MAX)
		return false;
	*ret_value = negative ? -(int64_t)value : (int64_t)value;
	return true;
}

static long double power_of_ten(long exponent)
{
	long double value = 1, factor = 10;
	for (; exponent > 0; exponent >>= 1, factor *= factor)
		if (exponent & 1)
			value *= factor;
	return value;
}

bool decimal_double(struct reducer_text text, double *ret_value)
{
	struct decimal d;
	if (!take_apart(text, &d))
		return false;
	size_t total = d.n_digits + d.n_fraction, at = 0;
	uint64_t mantissa = 0;
	for (; at < total && mantissa <= UINT64_MAX / 10 - 1; at++)
		mantissa = mantissa * 10 + digit_at(&d, at);
	long exponent = (long)d.n_digits - (long)at + d.exponent;
	long double value = (long double)mantissa;
	if (mantissa == 0)
		value = 0;
	else if (exponent >= 0)
		value = exponent > 400 ? (long double)__builtin_inf() : value * power_of_ten(exponent);
	else
		value = exponent < -400 ? 0 : value / power_of_ten(-exponent);
	*ret_value = (double)(d.negative ? -value : value);
	return true;
}
