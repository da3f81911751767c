/* SPDX-License-Identifier: Apache-2.0 */
#include "units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct unit {
	const char *name;
	int64_t size;
};

/* Largest first: printing takes the first that divides. Later rows of a size are other spellings. */
static const struct unit durations[] = {
	{"d", 86400000000000}, {"h", 3600000000000}, {"min", 60000000000}, {"m", 60000000000},
	{"s", 1000000000},     {"ms", 1000000},      {"us", 1000},         {"ns", 1},
};

static const struct unit binary_sizes[] = {
	{"TiB", (int64_t)1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1},
};

static const struct unit decimal_sizes[] = {
	{"TB", 1000000000000}, {"GB", 1000000000}, {"MB", 1000000}, {"kB", 1000}, {"KB", 1000},
};

static const struct unit percents[] = {{"%", 10000}};
static const struct unit bare[] = {{"", 1000000}};
static const struct unit steps[] = {{"steps", 1}, {"step", 1}, {"iterations", 1}, {"iteration", 1}};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A decimal number as digits and the place of its point: value = digits / 10^places. */
struct decimal {
	int64_t digits;
	unsigned places;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *skip_blanks(const char *text)
{
	while (*text == ' ' || *text == '\t')
		text++;
	return text;
}

static int add_digit(struct decimal *number, char digit)
{
	if (__builtin_mul_overflow(number->digits, 10, &number->digits) ||
	    __builtin_add_overflow(number->digits, digit - '0', &number->digits))
		return -ERANGE;
	return 0;
}

static int parse_decimal(const char **text, struct decimal *ret_number)
{
	struct decimal number = {0};
	const char *at = skip_blanks(*text);
	if (!is_digit(*at))
		return -EINVAL;
	for (; is_digit(*at); at++)
		if (add_digit(&number, *at) < 0)
			return -ERANGE;
	if (*at == '.') {
		if (!is_digit(*++at))
			return -EINVAL;
		for (; is_digit(*at); at++, number.places++)
			if (add_digit(&number, *at) < 0)
				return -ERANGE;
	}
	*text = at;
	*ret_number = number;
	return 0;
}

/* digits / 10^places x size, or -EINVAL where that is not whole. */
static int scale(struct decimal number, int64_t size, int64_t *ret_value)
{
	for (; number.places > 0 && number.digits % 10 == 0; number.places--)
		number.digits /= 10;
	for (; number.places > 0 && size % 10 == 0; number.places--)
		size /= 10;
	int64_t value;
	if (__builtin_mul_overflow(number.digits, size, &value))
		return -ERANGE;
	for (; number.places > 0; number.places--, value /= 10)
		if (value % 10)
			return -EINVAL;
	*ret_value = value;
	return 0;
}

static const struct unit *find_unit(const struct unit *units, size_t count, const char *name, size_t bytes)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(units[i].name) == bytes && memcmp(units[i].name, name, bytes) == 0)
			return &units[i];
	return NULL;
}

/* One quantity at *text, up to a blank or the end; *text moves behind it. */
static int parse_quantity(const char **text, const struct unit *units, size_t count, int64_t *ret_value)
{
	const char *at = *text;
	struct decimal number;
	int result = parse_decimal(&at, &number);
	if (result < 0)
		return result;
	const char *name = skip_blanks(at);
	size_t bytes = strcspn(name, " \t");
	const struct unit *unit = find_unit(units, count, name, bytes);
	if (!unit)
		return -EINVAL;
	result = scale(number, unit->size, ret_value);
	if (result == 0)
		*text = name + bytes;
	return result;
}

static int parse_whole(const char *text, const struct unit *units, size_t count, int64_t *ret_value)
{
	int64_t value;
	int result = parse_quantity(&text, units, count, &value);
	if (result < 0)
		return result;
	if (*skip_blanks(text))
		return -EINVAL;
	*ret_value = value;
	return 0;
}

static bool is_zero(const char *text)
{
	return strcmp(text, "0") == 0;
}

int units_parse_duration(const char *text, int64_t *ret_ns)
{
	if (is_zero(text)) {
		*ret_ns = 0;
		return 0;
	}
	return parse_whole(text, durations, COUNT(durations), ret_ns);
}

int units_parse_bytes(const char *text, int64_t *ret_bytes)
{
	if (is_zero(text)) {
		*ret_bytes = 0;
		return 0;
	}
	int result = parse_whole(text, binary_sizes, COUNT(binary_sizes), ret_bytes);
	return result == -EINVAL ? parse_whole(text, decimal_sizes, COUNT(decimal_sizes), ret_bytes) : result;
}

int units_parse_percent(const char *text, int64_t *ret_ppm)
{
	return parse_whole(text, percents, COUNT(percents), ret_ppm);
}

int units_parse_decimal(const char *text, int64_t *ret_millionths)
{
	return parse_whole(text, bare, COUNT(bare), ret_millionths);
}

int units_parse_integer(const char *text, int64_t *ret_number)
{
	static const struct unit ones[] = {{"", 1}};
	bool negative = *text == '-';
	int64_t number;
	int result = parse_whole(text + negative, ones, 1, &number);
	if (result == 0)
		*ret_number = negative ? -number : number;
	return result;
}

int units_parse_amount(const char *text, struct units_amount *ret_amount)
{
	struct units_amount amount = {0};
	int result = parse_whole(text, steps, COUNT(steps), &amount.steps);
	if (result == -EINVAL)
		result = units_parse_duration(text, &amount.ns);
	if (result == 0)
		*ret_amount = amount;
	return result;
}

int units_parse_tier(const char *text, struct units_tier *ret_tier)
{
	struct units_tier tier;
	int result = parse_quantity(&text, durations, COUNT(durations), &tier.bin_ns);
	if (result < 0)
		return result;
	text = skip_blanks(text);
	if (*text++ != 'x')
		return -EINVAL;
	result = parse_whole(text, durations, COUNT(durations), &tier.span_ns);
	if (result < 0)
		return result;
	if (tier.bin_ns == 0 || tier.span_ns < tier.bin_ns || tier.span_ns % tier.bin_ns)
		return -EINVAL;
	*ret_tier = tier;
	return 0;
}

int units_parse_of(const char *text, struct units_of *ret_of)
{
	struct decimal share, whole;
	int result = parse_decimal(&text, &share);
	if (result < 0)
		return result;
	text = skip_blanks(text);
	if (strncmp(text, "of ", 3) != 0)
		return -EINVAL;
	text += 3;
	result = parse_decimal(&text, &whole);
	if (result < 0)
		return result;
	if (*skip_blanks(text) || share.places || whole.places || share.digits < 1 ||
	    share.digits > whole.digits)
		return -EINVAL;
	*ret_of = (struct units_of){share.digits, whole.digits};
	return 0;
}

static char *print_quantity(char *out, int64_t value, const struct unit *units, size_t count,
			    const char *smallest)
{
	for (size_t i = 0; value && i < count; i++) {
		if (value % units[i].size)
			continue;
		snprintf(out, UNITS_TEXT_MAX, "%" PRId64 " %s", value / units[i].size, units[i].name);
		return out;
	}
	snprintf(out, UNITS_TEXT_MAX, "0 %s", smallest);
	return out;
}

char *units_print_duration(char *out, int64_t ns)
{
	return print_quantity(out, ns, durations, COUNT(durations), "s");
}

char *units_print_bytes(char *out, int64_t bytes)
{
	return print_quantity(out, bytes, binary_sizes, COUNT(binary_sizes), "B");
}

static char *print_fraction(char *out, int64_t value, int64_t one, const char *unit)
{
	int length = snprintf(out, UNITS_TEXT_MAX - 8, "%" PRId64, value / one);
	int64_t rest = value % one;
	if (rest) {
		out[length++] = '.';
		for (; rest; rest %= one) {
			rest *= 10;
			out[length++] = (char)('0' + rest / one);
		}
	}
	snprintf(out + length, UNITS_TEXT_MAX - (size_t)length, "%s", unit);
	return out;
}

char *units_print_percent(char *out, int64_t ppm)
{
	return print_fraction(out, ppm, 10000, " %");
}

char *units_print_decimal(char *out, int64_t millionths)
{
	return print_fraction(out, millionths, 1000000, "");
}

char *units_print_amount(char *out, struct units_amount amount)
{
	if (!amount.steps)
		return units_print_duration(out, amount.ns);
	snprintf(out, UNITS_TEXT_MAX, "%" PRId64 " step%s", amount.steps, amount.steps == 1 ? "" : "s");
	return out;
}

char *units_print_tier(char *out, struct units_tier tier)
{
	char bin[UNITS_TEXT_MAX], span[UNITS_TEXT_MAX];
	snprintf(out, UNITS_TEXT_MAX, "%.20s x %.20s", units_print_duration(bin, tier.bin_ns),
		 units_print_duration(span, tier.span_ns));
	return out;
}

char *units_print_of(char *out, struct units_of of)
{
	snprintf(out, UNITS_TEXT_MAX, "%" PRId64 " of %" PRId64, of.share, of.whole);
	return out;
}
