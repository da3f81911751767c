/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration and the trigger engine must name the same options, with the same defaults and bounds. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <triggers/triggers.h>

#include "config_table.h"
#include "support.h"
#include "trigger_settings.h"

static const struct triggers_option *find_option(const char *key)
{
	for (const struct triggers_option *option = triggers_options(); option->key; option++)
		if (strcmp(option->key, key) == 0)
			return option;
	return NULL;
}

static const char *engine_key(const struct config_row *row)
{
	return strncmp(row->key, "triggers.", 9) == 0 ? row->key + 9 : row->key;
}

/* Words, not numbers: both sides check them on their own. */
static bool is_words(const struct config_row *row)
{
	return row->kind == CONFIG_KIND_SEVERITY || row->kind == CONFIG_KIND_BOOL || row->kind == CONFIG_KIND_OF ||
	       row->kind == CONFIG_KIND_AMOUNT;
}

/* Our integers in the engine's base units: seconds, shares, "x", counts. */
static double base_unit(const struct config_row *row, int64_t number)
{
	if (row->kind == CONFIG_KIND_DURATION)
		return (double)number / 1e9;
	if (row->kind == CONFIG_KIND_PERCENT || row->kind == CONFIG_KIND_RATIO)
		return (double)number / 1e6;
	return (double)number;
}

static void check_row(const struct config_row *row, const struct triggers_option *option)
{
	char preset[64];
	size_t bytes = strlen(row->preset);
	bool quoted = row->preset[0] == '"';
	snprintf(preset, sizeof(preset), "%.*s", (int)(bytes - 2 * quoted), row->preset + quoted);
	ck_assert_msg(strcmp(preset, option->value) == 0, "%s: %s here, %s there", row->key, preset, option->value);
	ck_assert_msg(strcmp(row->help, option->help) == 0, "%s: %s here, %s there", row->key, row->help,
		      option->help);
	if (is_words(row))
		return;
	ck_assert_msg(base_unit(row, row->low) == option->low && base_unit(row, row->high) == option->high,
		      "%s: %g .. %g here, %g .. %g there", row->key, base_unit(row, row->low),
		      base_unit(row, row->high), option->low, option->high);
}

START_TEST(same_table)
{
	unsigned shared = 0, theirs = 0;
	for (size_t i = 0; i < config_row_count; i++) {
		const struct config_row *row = &config_rows[i];
		if (row->offset != CONFIG_NO_FIELD)
			continue;
		const struct triggers_option *option = find_option(engine_key(row));
		ck_assert_msg(option != NULL, "%s: the engine lacks it", row->key);
		check_row(row, option);
		shared++;
	}
	for (const struct triggers_option *option = triggers_options(); option->key; option++)
		theirs += strcmp(option->key, "threshold") != 0; /* a list of rules: config->thresholds */
	ck_assert_uint_eq(shared, theirs);
}
END_TEST

static int set_option(void *context, const char *key, const char *value)
{
	char error[256] = "";
	int result = triggers_engine_set(context, key, value, error, sizeof(error));
	ck_assert_msg(result == 0, "%s = %s: %s", key, value, error);
	return 0;
}

static struct triggers_engine *engine;

static const char *const words[] = {
	"{\"triggers\":{\"shift\":{\"alert\":true},\"straggler\":{\"alert\":false,\"of\":\"64 of 64\"}}}",
	"{\"triggers\":{\"straggler\":{\"of\":\"1 of 1\"},\"device_idle\":{\"for\":\"1 d\"}}}",
	"{\"triggers\":{\"device_idle\":{\"for\":\"7 steps\"},\"crash\":{\"severity\":\"warn\"}}}",
};

static void try_text(const char *text)
{
	static struct config_problems problems;
	struct config *config = NULL;
	assert_ok(config_parse(text, strlen(text), NULL, &config, &problems));
	assert_ok(config_each_option(config, set_option, engine));
	config_free(config);
}

/* Whatever the table lets through, the engine takes: both ends of every bound, in the form it is passed. */
START_TEST(same_values)
{
	assert_ok(triggers_engine_new(NULL, &engine));
	try_text("");
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		try_text(words[i]);
	for (size_t i = 0; i < config_row_count; i++) {
		const struct config_row *row = &config_rows[i];
		char bounds[2 * UNITS_TEXT_MAX], text[512];
		if (row->offset != CONFIG_NO_FIELD || !find_option(engine_key(row)) ||
		    is_words(row))
			continue;
		char *high = strstr(config_row_bounds(row, bounds), " .. ");
		const char *quote = row->kind == CONFIG_KIND_COUNT || row->kind == CONFIG_KIND_RATIO ? "" : "\"";
		const char *ends[] = {bounds, high + 4};
		*high = 0;
		for (int end = 0; end < 2; end++) {
			char key[96], *dot;
			snprintf(key, sizeof(key), "%s", row->key);
			size_t length = 0;
			unsigned depth = 0;
			const char *rest = key;
			for (; (dot = strchr(rest, '.')); rest = dot + 1, depth++) {
				*dot = 0;
				length += (size_t)snprintf(text + length, sizeof(text) - length, "{\"%s\":", rest);
			}
			snprintf(text + length, sizeof(text) - length, "{\"%s\":%s%s%s}%.*s", rest, quote, ends[end],
				 quote, (int)depth, "}}}}");
			try_text(text);
		}
	}
	triggers_engine_free(engine);
}
END_TEST

/* What fired last, of the triggers whose settings are tried. */
static struct triggers_firing fired;
static unsigned n_fired, n_refused;

static void on_firing(void *context, const struct triggers_firing *firing, enum triggers_gate gate)
{
	(void)context, (void)gate;
	fired = *firing;
	n_fired++;
}

static void on_refused(void *context, const char *key, const char *why)
{
	(void)context;
	ck_assert_str_eq(key, "threshold");
	ck_assert_msg(strstr(why, "more than") != NULL, "%s", why);
	n_refused++;
}

static void engine_of(const char *text, unsigned refused)
{
	static struct config_problems problems;
	struct config *config = NULL;
	const struct triggers_listener listener = {.firing = on_firing};
	int result = config_parse(text, strlen(text), NULL, &config, &problems);
	if (result < 0)
		config_problems_print(&problems, stderr);
	assert_ok(result);
	assert_ok(triggers_engine_new(&listener, &engine));
	ck_assert_uint_eq(trigger_settings_apply(config, engine, on_refused, NULL), refused);
	ck_assert_uint_eq(n_refused, refused);
	config_free(config);
}

static uint32_t series(enum triggers_role role, const char *name)
{
	const struct triggers_series_key key = {.role = role, .rank = UINT32_MAX, .name = name};
	uint32_t id = triggers_engine_series(engine, &key);
	ck_assert_uint_ne(id, TRIGGERS_SERIES_NONE);
	return id;
}

static const struct {
	const char *name;
	enum triggers_role role;
	double calm, beyond; /* seconds, or the counter's unit */
	enum triggers_severity severity;
} limits[] = {
	{"load", TRIGGERS_SPAN, 0.2, 0.3, TRIGGERS_CRITICAL},
	{"save model", TRIGGERS_SPAN, 1.9, 2.1, TRIGGERS_WARN},
	{"device:0:power", TRIGGERS_COUNTER, 700.25, 701, TRIGGERS_WARN},
	{"device:0:power", TRIGGERS_COUNTER, 60, 49.5, TRIGGERS_WARN},
};

START_TEST(limits_reach_the_engine)
{
	engine_of("{\"triggers\":{\"threshold\":["
		  "{\"series\":\"load\",\"above\":\"250 ms\",\"severity\":\"critical\"},"
		  "{\"series\":\"save model\",\"above\":2},"
		  "{\"series\":\"device:*:power\",\"above\":700.5,\"below\":50}]}}",
		  0);
	uint32_t id = series(limits[_i].role, limits[_i].name);
	struct triggers_sample sample = {.start_ns = 1, .step = -1, .sample = -1};
	const double values[] = {limits[_i].calm, limits[_i].beyond};
	for (int i = 0; i < 2; i++) {
		ck_assert_uint_eq(n_fired, 0);
		sample.value = values[i];
		sample.duration_ns = limits[_i].role == TRIGGERS_SPAN ? (int64_t)(values[i] * 1e9) : 0;
		sample.start_ns += 10000000000;
		triggers_engine_observe(engine, id, &sample);
	}
	ck_assert_uint_eq(n_fired, 1);
	ck_assert_str_eq(fired.trigger, "threshold");
	ck_assert_int_eq(fired.severity, limits[_i].severity);
	triggers_engine_free(engine);
}
END_TEST

START_TEST(too_many_limits_are_told)
{
	static char text[16384];
	size_t used = (size_t)snprintf(text, sizeof(text), "{\"triggers\":{\"threshold\":[");
	for (int i = 0; i < 70; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s{\"series\":\"s%d\",\"above\":%d}",
					 i ? "," : "", i, i);
	snprintf(text + used, sizeof(text) - used, "]}}");
	engine_of(text, 6);
	triggers_engine_free(engine);
}
END_TEST

/* The engine behaves as the configuration says: settings of modules and of gates. */
START_TEST(settings_reach_the_engine)
{
	engine_of("{\"triggers\":{\"latency_spike\":{\"warn\":4,\"critical\":5},\"stall\":{\"factor\":10}},"
		  "\"gates\":{\"warmup_steps\":8}}",
		  0);
	const struct triggers_series_key key = {
		.role = TRIGGERS_STEP, .rank = UINT32_MAX, .name = "step", .alarms = 1};
	uint32_t id = triggers_engine_series(engine, &key);
	struct triggers_sample sample = {.duration_ns = 1000000000, .step = -1, .sample = -1};
	struct triggers_belief belief;
	for (int i = 0; i < 12; i++) {
		assert_ok(triggers_engine_belief(engine, id, &belief));
		ck_assert_int_eq(belief.warm, i >= 8);
		triggers_engine_observe(engine, id, &sample);
		sample.start_ns += sample.duration_ns;
	}
	assert_ok(triggers_engine_belief(engine, id, &belief));
	ck_assert(belief.deadline_ns == 10e9);
	sample.duration_ns = 3500000000;
	triggers_engine_observe(engine, id, &sample);
	ck_assert_int_eq(fired.severity, TRIGGERS_NOTE);
	sample.start_ns += sample.duration_ns;
	sample.duration_ns = 4500000000;
	triggers_engine_observe(engine, id, &sample);
	ck_assert_uint_eq(n_fired, 2);
	ck_assert_int_eq(fired.severity, TRIGGERS_WARN);
	triggers_engine_free(engine);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("config_triggers");
	TCase *tcase = tcase_create("the same options, defaults and bounds");
	tcase_add_test(tcase, same_table);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("the same values");
	tcase_add_test(tcase, same_values);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("limits");
	tcase_add_loop_test(tcase, limits_reach_the_engine, 0, sizeof(limits) / sizeof(limits[0]));
	tcase_add_test(tcase, too_many_limits_are_told);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("settings take effect");
	tcase_add_test(tcase, settings_reach_the_engine);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
