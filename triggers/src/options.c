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
		/* A bare number is in the base unit; of a share both 0.1 and 10 would be read wrongly, so 10
		 * is 10 %. */
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

static int is_severity(int id)
{
	return id == TRIGGERS_OPTION_CRASH_SEVERITY || id == TRIGGERS_OPTION_MANUAL_SEVERITY;
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

void triggers_option_defaults(double value[TRIGGERS_OPTION_COUNT])
{
	for (int i = 0; i < TRIGGERS_OPTION_COUNT; i++) {
		value[i] = 0;
		if (is_severity(i))
			parse_severity(rows[i].value, &value[i]);
		else if (rows[i].value[0])
			triggers_option_parse(rows[i].value, rows[i].unit, &value[i]);
	}
}

int triggers_option_set(double value[TRIGGERS_OPTION_COUNT], int id, const char *text, char *error,
			size_t error_room)
{
	const struct triggers_option *row = &rows[id];
	double parsed;
	if (is_severity(id)) {
		if (!parse_severity(text, &parsed)) {
			value[id] = parsed;
			return 0;
		}
		snprintf(error, error_room, "%s is \"%.40s\"; it must be note, warn or critical", row->key,
			 text);
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
