/* SPDX-License-Identifier: Apache-2.0 */
#include "reduce/window.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "units.h"

#define SECOND_NS 1000000000
#define PS_OF_NS  1000

enum { TIME_TEXT_MAX = 64, YEAR_FIRST = 1970, YEAR_LAST = 2200 };

/* Exactly `digits` digits at *text, which moves behind them. */
static int take_number(const char **text, int digits, int low, int high, int *ret_number)
{
	int number = 0;

	for (int i = 0; i < digits; i++) {
		char c = (*text)[i];

		if (c < '0' || c > '9')
			return -EINVAL;
		number = number * 10 + (c - '0');
	}
	if (number < low || number > high)
		return -EINVAL;
	*text += digits;
	*ret_number = number;
	return 0;
}

static int take_char(const char **text, const char *set)
{
	if (!**text || !strchr(set, **text))
		return -EINVAL;
	++*text;
	return 0;
}

/* Up to nine digits behind a point, as ns. */
static int take_fraction(const char **text, int64_t *ret_ns)
{
	int64_t ns = 0;
	int digits = 0;

	if (**text != '.') {
		*ret_ns = 0;
		return 0;
	}
	for (++*text; **text >= '0' && **text <= '9'; ++*text, digits++)
		ns = ns * 10 + (digits < 9 ? **text - '0' : 0);
	if (digits == 0 || digits > 9)
		return -EINVAL;
	for (; digits < 9; digits++)
		ns *= 10;
	*ret_ns = ns;
	return 0;
}

/* "2026-11-30T03:12:44.118Z" */
static int parse_utc(const char *text, int64_t *ret_unix_ns)
{
	struct tm utc = {0};
	int64_t fraction;

	if (take_number(&text, 4, YEAR_FIRST, YEAR_LAST, &utc.tm_year) < 0 || take_char(&text, "-") < 0 ||
	    take_number(&text, 2, 1, 12, &utc.tm_mon) < 0 || take_char(&text, "-") < 0 ||
	    take_number(&text, 2, 1, 31, &utc.tm_mday) < 0 || take_char(&text, "T ") < 0 ||
	    take_number(&text, 2, 0, 23, &utc.tm_hour) < 0 || take_char(&text, ":") < 0 ||
	    take_number(&text, 2, 0, 59, &utc.tm_min) < 0 || take_char(&text, ":") < 0 ||
	    take_number(&text, 2, 0, 59, &utc.tm_sec) < 0 || take_fraction(&text, &fraction) < 0)
		return -EINVAL;
	if (strcmp(text, "Z") != 0 && strcmp(text, " UTC") != 0)
		return -EINVAL;

	int day = utc.tm_mday;

	utc.tm_year -= 1900;
	utc.tm_mon -= 1;
	*ret_unix_ns = (int64_t)timegm(&utc) * SECOND_NS + fraction;
	return utc.tm_mday == day ? 0 : -EINVAL; /* timegm() turns 31 February into 3 March */
}

/* A bare number is seconds. */
static int parse_length(const char *text, int64_t *ret_ns)
{
	char with_unit[TIME_TEXT_MAX];
	size_t bytes = strlen(text);

	if (bytes == 0 || bytes > sizeof(with_unit) - 2)
		return -EINVAL;
	bool bare = strspn(text, "0123456789.") == bytes;

	snprintf(with_unit, sizeof(with_unit), "%s%s", text, bare ? "s" : "");
	return units_parse_duration(with_unit, ret_ns);
}

static int parse_bound(const char *text, size_t bytes, struct reduce_bound *ret_bound)
{
	struct reduce_bound bound = {.kind = REDUCE_BOUND_OPEN};
	char copy[TIME_TEXT_MAX];
	int r = 0;

	if (bytes >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, text, bytes);
	copy[bytes] = 0;
	if (bytes == 0)
		goto end;
	bound.kind = REDUCE_BOUND_UTC;
	r = parse_utc(copy, &bound.ns);
	if (r == 0)
		goto end;
	bound.kind = copy[0] == '-' ? REDUCE_BOUND_END : REDUCE_BOUND_START;
	r = parse_length(copy + (copy[0] == '-'), &bound.ns);
end:
	if (r == 0)
		*ret_bound = bound;
	return r;
}

/* Times hold colons themselves: the one between the bounds is the one that leaves two bounds. */
int reduce_window_parse(const char *text, struct reduce_window *ret_window)
{
	struct reduce_window window;
	int result = -EINVAL;

	for (const char *colon = strchr(text, ':'); colon; colon = strchr(colon + 1, ':')) {
		int r = parse_bound(text, (size_t)(colon - text), &window.from);

		if (r == 0)
			r = parse_bound(colon + 1, strlen(colon + 1), &window.to);
		if (r == 0 && window.from.kind == REDUCE_BOUND_OPEN && window.to.kind == REDUCE_BOUND_OPEN)
			return -EINVAL;
		if (r == 0) {
			*ret_window = window;
			return 0;
		}
		if (r == -ERANGE)
			result = r;
	}
	return result;
}

bool reduce_window_needs_span(const struct reduce_window *window)
{
	return window->from.kind >= REDUCE_BOUND_END || window->to.kind >= REDUCE_BOUND_END;
}

/* In ps after the first event. */
static int resolve(const struct reduce_bound *bound, const struct reduce_span *span, int64_t open,
		   int64_t *ret_ps)
{
	int64_t ps, ns = bound->ns;

	if (bound->kind == REDUCE_BOUND_OPEN) {
		*ret_ps = open;
		return 0;
	}
	if (bound->kind == REDUCE_BOUND_UTC) {
		if (!span->has_base)
			return -ENODATA;
		if (__builtin_sub_overflow(ns, span->base_unix_ns, &ns) ||
		    __builtin_sub_overflow(ns, span->first_ns, &ns))
			return -ERANGE;
	}
	if (__builtin_mul_overflow(ns, (int64_t)PS_OF_NS, &ps))
		return -ERANGE;
	if (bound->kind == REDUCE_BOUND_END && __builtin_sub_overflow(span->length_ps, ps, &ps))
		return -ERANGE;
	*ret_ps = ps;
	return 0;
}

int reduce_window_resolve(const struct reduce_window *window, const struct reduce_span *span,
			  int64_t *ret_from_ps, int64_t *ret_to_ps)
{
	int64_t from, to;
	int r = resolve(&window->from, span, -REDUCE_WINDOW_FAR_PS, &from);

	if (r == 0)
		r = resolve(&window->to, span, REDUCE_WINDOW_FAR_PS, &to);
	if (r < 0)
		return r;
	if (from > to)
		return -EDOM;
	*ret_from_ps = from;
	*ret_to_ps = to;
	return 0;
}

int reduce_target_parse(const char *text, struct reduce_target *ret_target)
{
	int64_t number;
	int r;

	if (text[0] && text[strlen(text) - 1] == '%') {
		r = units_parse_percent(text, &number); /* millionths */
		if (r < 0)
			return r;
		if (number < 1000 || number > 1000000 || number % 1000)
			return -ERANGE;
		*ret_target = (struct reduce_target){.permille = (uint32_t)(number / 1000)};
		return 0;
	}
	r = units_parse_integer(text, &number);
	if (r < 0)
		return r;
	if (number < 1)
		return -ERANGE;
	*ret_target = (struct reduce_target){.events = (uint64_t)number};
	return 0;
}
