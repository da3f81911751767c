/* SPDX-License-Identifier: Apache-2.0 */
/* driverec config check | show | example */
#include "command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "output.h"

struct config_options {
	bool origin;
	bool json;
};

static const struct option_row rows[] = {
	OPTION_ROW_FLAG('o', "origin", struct config_options, origin, "show: where each value comes from"),
	OPTION_ROW_FLAG('j', "json", struct config_options, json, "show, check: print JSON"),
	OPTION_ROWS_END,
};

static void add_problems(cJSON *document, const struct config_problems *problems)
{
	cJSON *list = cJSON_AddArrayToObject(document, "problems");
	for (unsigned i = 0; i < problems->count && i < CONFIG_PROBLEMS_MAX; i++) {
		const struct config_problem *problem = &problems->problem[i];
		cJSON *item = cJSON_CreateObject();
		output_json_text(item, "key", problem->key);
		output_json_count(item, "line", problem->line);
		output_json_count(item, "column", problem->column);
		output_json_text(item, "text", problem->text);
		cJSON_AddItemToArray(list, item);
	}
	output_json_count(document, "count", problems->count);
}

static int print_check(const struct command_call *call, const struct config_problems *problems, int result)
{
	const struct config_options *options = call->options;
	const char *path = *problems->path ? problems->path : NULL;
	if (options->json) {
		cJSON *document = cJSON_CreateObject();
		output_json_text(document, "path", path);
		add_problems(document, problems);
		if (output_json_print(document, stdout) < 0)
			return COMMAND_FAILED;
	} else if (problems->count) {
		config_problems_print(problems, stdout);
		printf("%u problem%s found; next: driverec config example\n", problems->count,
		       problems->count == 1 ? "" : "s");
	} else {
		printf("%s: no problem found\n", path ? path : "defaults alone");
	}
	if (result < 0 && result != -EINVAL)
		return COMMAND_FAILED;
	return problems->count ? COMMAND_PROBLEMS : COMMAND_DONE;
}

static int check(const struct command_call *call)
{
	struct config *config = NULL;
	struct config_problems *problems = calloc(1, sizeof(*problems));
	int status = COMMAND_FAILED;
	int result = -ENOMEM;
	if (problems)
		result = config_load(call->argc > 1 ? call->argv[1] : call->config_path, &config, problems);
	if (result == -ENOMEM)
		command_failed(call, "out of memory");
	else
		status = print_check(call, problems, result);
	config_free(result < 0 ? NULL : config);
	free(problems);
	return status;
}

struct show {
	const struct config *config;
	bool origin;
	struct output_table *table;
	cJSON *list;
};

static void show_line(void *context, const struct config_setting *setting)
{
	struct show *show = context;
	output_table_cell(show->table, "%s", setting->key);
	output_table_cell(show->table, "%s", setting->value);
	if (!show->origin)
		return;
	if (setting->line)
		output_table_cell(show->table, "%s:%u", show->config->path, setting->line);
	else
		output_table_cell(show->table, "default");
}

static void show_json(void *context, const struct config_setting *setting)
{
	struct show *show = context;
	cJSON *item = cJSON_CreateObject();
	output_json_text(item, "key", setting->key);
	cJSON_AddRawToObject(item, "value", setting->value);
	cJSON_AddRawToObject(item, "default", setting->preset);
	output_json_text(item, "unit", setting->unit);
	output_json_text(item, "bounds", setting->bounds);
	output_json_text(item, "help", setting->help);
	output_json_text(item, "path", setting->line ? show->config->path : NULL);
	output_json_count(item, "line", setting->line);
	cJSON_AddItemToArray(show->list, item);
}

static int show(const struct command_call *call)
{
	static const struct output_column columns[] = {{"KEY", 0}, {"VALUE", 0}, {"ORIGIN", 0}};
	const struct config_options *options = call->options;
	struct config *config = config_load_or_complain(call->config_path);
	if (!config)
		return COMMAND_PROBLEMS;
	struct show show = {.config = config, .origin = options->origin};
	int result;
	if (options->json) {
		cJSON *document = cJSON_CreateObject();
		output_json_text(document, "path", config->path);
		show.list = cJSON_AddArrayToObject(document, "settings");
		config_each(config, show_json, &show);
		result = output_json_print(document, stdout);
	} else {
		show.table = output_table_new(columns, options->origin ? 3 : 2);
		config_each(config, show_line, &show);
		result = output_table_print(show.table, stdout);
		output_table_free(show.table);
	}
	config_free(config);
	return result < 0 ? command_failed(call, "cannot print: %s", strerror(-result)) : COMMAND_DONE;
}

/* The groups that are open, as "triggers.stall." */
struct example {
	char group[96];
	bool first;
};

static int dots(const char *text)
{
	int count = 0;
	for (; *text; text++)
		count += *text == '.';
	return count;
}

static void close_groups(struct example *example, const char *key)
{
	while (*example->group && strncmp(example->group, key, strlen(example->group)) != 0) {
		example->group[strlen(example->group) - 1] = 0;
		char *dot = strrchr(example->group, '.');
		if (dot)
			dot[1] = 0;
		else
			*example->group = 0;
		printf("\n%*s}", 2 * (dots(example->group) + 1), "");
		example->first = false;
	}
}

static void example_line(void *context, const struct config_setting *setting)
{
	struct example *example = context;
	close_groups(example, setting->key);
	printf("%s", example->first ? "\n" : ",\n");
	example->first = true;
	const char *rest = setting->key + strlen(example->group);
	for (const char *dot; (dot = strchr(rest, '.')); rest = dot + 1) {
		printf("%*s\"%.*s\": {\n", 2 * (dots(example->group) + 1), "", (int)(dot - rest), rest);
		strncat(example->group, rest, (size_t)(dot - rest) + 1);
	}
	int indent = 2 * (dots(example->group) + 1);
	printf("%*s// %s%s%s\n", indent, "", setting->help, *setting->bounds ? "; " : "", setting->bounds);
	printf("%*s\"%s\": %s", indent, "", rest, setting->preset);
	example->first = false;
}

/* The comma goes before the next member, so that none is left at the end. */
static int print_example(void)
{
	struct example example = {.first = true};
	printf("// driverec's configuration with every default. Keep only what you change.\n{");
	config_each(NULL, example_line, &example);
	close_groups(&example, "");
	printf("\n}\n");
	return COMMAND_DONE;
}

static int run(const struct command_call *call)
{
	const char *what = call->argv[0];
	if (strcmp(what, "check") != 0 && call->argc > 1)
		return command_misuse(call, "'%s' is too much: only check takes a FILE", call->argv[1]);
	if (strcmp(what, "check") == 0)
		return check(call);
	if (strcmp(what, "show") == 0)
		return show(call);
	if (strcmp(what, "example") == 0)
		return print_example();
	return command_misuse(call, "'%s' is none of check, show, example", what);
}

const struct command command_config = {
	.name = "config",
	.summary = "check and show the configuration",
	.operands = "check [FILE] | show | example",
	.details = "check reads FILE, or the configuration that would be used, and lists every problem; the "
		   "exit "
		   "status is 3 if there is any.\n"
		   "show prints every setting with its value.\n"
		   "example prints a file with every default and what it means.\n"
		   "The configuration is the first of --config, $DRIVEREC_CONFIG, "
		   "~/.config/driverec/config.json and "
		   "/etc/driverec/config.json. None is needed.",
	.examples = "driverec config check my.json\n"
		    "driverec config show --origin\n"
		    "driverec config example > ~/.config/driverec/config.json",
	.options = rows,
	.options_bytes = sizeof(struct config_options),
	.operands_min = 1,
	.operands_max = 2,
	.run = run,
};
