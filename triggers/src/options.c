/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <triggers/triggers.h>

#define OPTION_ROW(id, key, unit, value, low, high, help) {key, unit, value, low, high, help},
static const struct triggers_option rows[] = {TRIGGERS_OPTION_ROWS(OPTION_ROW){0}};
#undef OPTION_ROW

struct suffix {
	const char *unit;
	const char *text;
	double scale;
};

static const struct suffix suffixes[] = {
	{"s", "ns", 1e-9}, {"s", "us", 1e-6},     {"s", "ms", 1e-3},    {"s", "s", 1},
	{"s", "min", 60},  {"s", "h", 3600},      {"s", "d", 86400},    {"%", "%", 0.01},
	{"x", "x", 1},     {"steps", "steps", 1}, {"steps", "step", 1},
};

const struct triggers_option *triggers_options(void)
{
	return rows;
}

int triggers_option_find(const char *key)
{
	for (int i = 0; i < TRIGGERS_OPTION_COUNT; i++)
		if (!strcmp(rows[i].key, key))
			return i;
	return -ENOENT;
}

/* Plain decimal, read by hand: strtod would follow the locale. Returns the place after it, or NULL. */
static const char *parse_decimal(const char *text, double *ret_value)
{
	double value = 0, scale = 1;
	int digits = 0, negative = *text == '-';
	text += negative;
	for (; *text >= '0' && *text <= '9' && digits < 18; text++, digits++)
		value = value * 10 + (*text - '0');
	if (*text == '.')
		for (text++; *text >= '0' && *text <= '9' && digits < 18; text++, digits++) {
			scale /= 10;
			value += scale * (*text - '0');
		}
	if (!digits)
		return NULL;
	*ret_value = negative ? -value : value;
	return text;
}

int triggers_option_parse(const char *text, const char *unit, double *ret_value)
{
	double value;
	const char *rest = parse_decimal(text, &value);
	if (!rest)
		return -EINVAL;
	while (*rest == ' ')
		rest++;
	if (!*rest) {
		/*
		 * A bare number is in the base unit; of a share both 0.1 and 10 would be read wrongly, so 10
		 * is 10 %.
		 */
		*ret_value = strcmp(unit, "%") ? value : value / 100;
		return 0;
	}
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (!strcmp(suffixes[i].unit, unit) && !strcmp(suffixes[i].text, rest)) {
			*ret_value = value * suffixes[i].scale;
			return 0;
		}
	return -EINVAL;
}

/* Options whose values are words: what they may be, and which number each is. */
enum words { WORDS_NONE, WORDS_SEVERITY, WORDS_BOOL, WORDS_OF, WORDS_AMOUNT };

static enum words words_of(int id)
{
	switch (id) {
	case TRIGGERS_OPTION_CRASH_SEVERITY:
	case TRIGGERS_OPTION_MANUAL_SEVERITY:
		return WORDS_SEVERITY;
	case TRIGGERS_OPTION_SHIFT_ALERT:
	case TRIGGERS_OPTION_STRAGGLER_ALERT:
		return WORDS_BOOL;
	case TRIGGERS_OPTION_STRAGGLER_OF:
		return WORDS_OF;
	case TRIGGERS_OPTION_IDLE_FOR:
		return WORDS_AMOUNT;
	default:
		return WORDS_NONE;
	}
}

static int parse_severity(const char *text, double *ret_value)
{
	for (int i = TRIGGERS_NOTE; i <= TRIGGERS_CRITICAL; i++)
		if (!strcmp(text, triggers_severity_name((enum triggers_severity)i))) {
			*ret_value = i;
			return 0;
		}
	return -EINVAL;
}

static int parse_bool(const char *text, double *ret_value)
{
	if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
		return -EINVAL;
	*ret_value = text[0] == 't';
	return 0;
}

/* "3 of 5" as 3 x TRIGGERS_OF_UNIT + 5. */
static int parse_of(const char *text, double *ret_value)
{
	double some, all;
	const char *rest = parse_decimal(text, &some);
	if (!rest || strncmp(rest, " of ", 4) != 0)
		return -EINVAL;
	rest = parse_decimal(rest + 4, &all);
	if (!rest || *rest || !(some >= 1 && some <= all && all <= 64) || some != (int)some ||
	    all != (int)all)
		return -EINVAL;
	*ret_value = some * TRIGGERS_OF_UNIT + all;
	return 0;
}

/* Steps as they are, a time as minus its seconds. */
static int parse_amount(const char *text, double *ret_value)
{
	double value;
	if (!triggers_option_parse(text, "steps", &value) && value >= 0 && value <= 1000) {
		*ret_value = value;
		return 0;
	}
	if (triggers_option_parse(text, "s", &value) || !(value > 0 && value <= 86400))
		return -EINVAL;
	*ret_value = -value;
	return 0;
}

static int parse_words(enum words words, const char *text, double *ret_value)
{
	switch (words) {
	case WORDS_SEVERITY:
		return parse_severity(text, ret_value);
	case WORDS_BOOL:
		return parse_bool(text, ret_value);
	case WORDS_OF:
		return parse_of(text, ret_value);
	default:
		return parse_amount(text, ret_value);
	}
}

void triggers_option_defaults(double value[TRIGGERS_OPTION_COUNT])
{
	for (int i = 0; i < TRIGGERS_OPTION_COUNT; i++) {
		value[i] = 0;
		if (words_of(i) != WORDS_NONE)
			parse_words(words_of(i), rows[i].value, &value[i]);
		else if (rows[i].value[0])
			triggers_option_parse(rows[i].value, rows[i].unit, &value[i]);
	}
}

int triggers_option_set(double value[TRIGGERS_OPTION_COUNT], int id, const char *text, char *error,
			size_t error_room)
{
	const struct triggers_option *row = &rows[id];
	double parsed;
	static const char *const wanted[] = {
		[WORDS_SEVERITY] = "note, warn or critical",
		[WORDS_BOOL] = "true or false",
		[WORDS_OF] = "like 3 of 5, at most 64",
		[WORDS_AMOUNT] = "like 2 steps or 30 s",
	};
	if (words_of(id) != WORDS_NONE) {
		if (!parse_words(words_of(id), text, &parsed)) {
			value[id] = parsed;
			return 0;
		}
		snprintf(error, error_room, "%s is \"%.40s\"; it must be %s", row->key, text,
			 wanted[words_of(id)]);
		return -EINVAL;
	}
	if (triggers_option_parse(text, row->unit, &parsed)) {
		snprintf(error, error_room, "%s is \"%.40s\"; it must be a number%s%s, such as %s", row->key,
			 text, row->unit[0] ? " in " : "", row->unit, row->value);
		return -EINVAL;
	}
	if (!(parsed >= row->low && parsed <= row->high)) {
		double shown = strcmp(row->unit, "%") ? 1 : 100;
		snprintf(error, error_room, "%s is \"%.40s\"; it must lie between %g and %g%s%s", row->key,
			 text, row->low * shown, row->high * shown, row->unit[0] ? " " : "", row->unit);
		return -EINVAL;
	}
	value[id] = parsed;
	return 0;
}
