/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration and the trigger engine must name the same options, with the same defaults and bounds. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <triggers/triggers.h>

#include "config_table.h"
#include "support.h"

/* Triggers that have settings and no module. */
static const char *const without_module[] = {"device_idle.", "shift.", "straggler.", "difference."};

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

static bool is_without_module(const char *key)
{
	for (size_t i = 0; i < sizeof(without_module) / sizeof(without_module[0]); i++)
		if (strncmp(key, without_module[i], strlen(without_module[i])) == 0)
			return true;
	return false;
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
	if (row->kind == CONFIG_KIND_SEVERITY)
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
		ck_assert_msg((option == NULL) == is_without_module(engine_key(row)), "%s: %s", row->key,
			      option ? "has a module" : "the engine lacks it");
		if (!option)
			continue;
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
	for (size_t i = 0; i < config_row_count; i++) {
		const struct config_row *row = &config_rows[i];
		char bounds[2 * UNITS_TEXT_MAX], text[512];
		if (row->offset != CONFIG_NO_FIELD || !find_option(engine_key(row)) ||
		    row->kind == CONFIG_KIND_SEVERITY)
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

int main(void)
{
	Suite *suite = suite_create("config_triggers");
	TCase *tcase = tcase_create("the same options, defaults and bounds");
	tcase_add_test(tcase, same_table);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("the same values");
	tcase_add_test(tcase, same_values);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
