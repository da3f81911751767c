/* SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "module.h"

const char *triggers_duration_text(double ns, char text[TRIGGERS_DURATION_TEXT])
{
	static const struct {
		double from_ns;
		const char *unit;
	} units[] = {{3600e9, "h"}, {60e9, "min"}, {1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {0, "ns"}};
	size_t i = 0;
	/* Seconds up to two minutes: "105 s" reads better than "1.75 min". */
	while (i < 5 && ns < units[i].from_ns * (i == 1 ? 2 : 1))
		i++;
	double value = units[i].from_ns > 0 ? ns / units[i].from_ns : ns;
	int digits = value < 10 ? 2 : value < 100 ? 1 : 0;
	snprintf(text, TRIGGERS_DURATION_TEXT, "%.*f %s", digits, value, units[i].unit);
	return text;
}

double triggers_ratio(double value, double expected)
{
	double ratio = expected != 0 ? value / expected : 0;
	return ratio > (double)FLT_MAX    ? (double)FLT_MAX
	       : ratio < -(double)FLT_MAX ? -(double)FLT_MAX
					  : ratio;
}

int triggers_series_is_train(const struct triggers_series *series)
{
	return series->role == TRIGGERS_STEP && !series->phase[0];
}

size_t triggers_series_span_bytes(const struct triggers_series *series)
{
	size_t bytes = strlen(series->name), phase = strlen(series->phase);
	return phase && bytes > phase ? bytes - phase - 1 : bytes;
}

const char *triggers_series_text(const struct triggers_series *series, char text[2 * TRIGGERS_NAME_MAX])
{
	int name = 0;
	while (series->name[name] && series->name[name] != '@')
		name++;
	if (series->role == TRIGGERS_SPAN)
		name = (int)triggers_series_span_bytes(series);
	if (series->role != TRIGGERS_PHASE && series->phase[0])
		snprintf(text, 2 * TRIGGERS_NAME_MAX, "%.*s in %s", name, series->name, series->phase);
	else
		snprintf(text, 2 * TRIGGERS_NAME_MAX, "%s", series->name);
	return text;
}
