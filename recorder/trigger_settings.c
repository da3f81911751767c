/* SPDX-License-Identifier: Apache-2.0 */
#include "trigger_settings.h"

#include <stdio.h>

struct applying {
	struct triggers_engine *engine;
	void (*refused)(void *context, const char *key, const char *why);
	void *context;
	unsigned count; /* refused */
};

static int set_option(void *context, const char *key, const char *value)
{
	struct applying *applying = context;
	char why[256] = "";
	if (triggers_engine_set(applying->engine, key, value, why, sizeof(why)) < 0) {
		applying->count++;
		if (applying->refused)
			applying->refused(applying->context, key, why);
	}
	return 0;
}

/* A limit in the engine's own words: "load" > 250000000 ns critical. */
static void set_limit(struct applying *applying, const struct config_threshold *threshold,
		      const struct config_limit *limit, char direction)
{
	char rule[256], number[UNITS_TEXT_MAX];
	if (!limit->given)
		return;
	units_print_decimal(number, limit->ppm);
	snprintf(rule, sizeof(rule), "\"%.120s\" %c %s%s %s", threshold->series, direction, number,
		 limit->is_time ? " ns" : "", config_severity_name(threshold->severity));
	set_option(applying, "threshold", rule);
}

unsigned trigger_settings_apply(const struct config *config, struct triggers_engine *engine,
				void (*refused)(void *context, const char *key, const char *why), void *context)
{
	struct applying applying = {.engine = engine, .refused = refused, .context = context};
	config_each_option(config, set_option, &applying);
	for (size_t i = 0; i < config->thresholds.count; i++) {
		const struct config_threshold *threshold = &config->thresholds.item[i];
		set_limit(&applying, threshold, &threshold->above, '>');
		set_limit(&applying, threshold, &threshold->below, '<');
	}
	return applying.count;
}

struct phases trigger_settings_phases(const struct config *config)
{
	const struct config_texts *const own[PHASES_COUNT] = {
		[PHASES_TRAIN] = &config->phases.train,
		[PHASES_CHECKPOINT] = &config->phases.checkpoint,
		[PHASES_EVAL] = &config->phases.eval,
		[PHASES_COMPILE] = &config->phases.compile,
	};
	struct phases phases = {0};
	for (unsigned phase = PHASES_TRAIN; phase < PHASES_COUNT; phase++) {
		phases.pattern[phase] = own[phase]->text;
		phases.count[phase] = own[phase]->count;
	}
	return phases;
}

struct waits trigger_settings_waits(const struct config *config)
{
	return (struct waits){
		.wait = config->work.waits.text,
		.n_wait = config->work.waits.count,
		.own = config->work.own.text,
		.n_own = config->work.own.count,
	};
}

int trigger_settings_series(const struct config *config, struct triggers_engine *engine, struct series **ret_series)
{
	const struct phases phases = trigger_settings_phases(config);
	const struct waits waits = trigger_settings_waits(config);
	int result = series_new(engine, config->series.text, config->series.count, ret_series);
	if (result < 0)
		return result;
	series_phases(*ret_series, &phases);
	series_waits(*ret_series, &waits);
	return 0;
}
