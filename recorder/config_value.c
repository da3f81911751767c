/* SPDX-License-Identifier: Apache-2.0 */
/* Single settings: from JSON into their field, by kind. */
#include "config_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "paths.h"

static const struct {
	const char *unit;
	const char *wanted;
} kinds[] = {
	[CONFIG_KIND_BOOL] = {"", "true or false"},
	[CONFIG_KIND_COUNT] = {"", "a whole number"},
	[CONFIG_KIND_DURATION] = {"time", "a time like \"10 s\" or \"2 min\""},
	[CONFIG_KIND_BYTES] = {"bytes", "a size like \"16 MiB\""},
	[CONFIG_KIND_PERCENT] = {"%", "a share like \"12 %\""},
	[CONFIG_KIND_RATIO] = {"x", "a number like 1.5"},
	[CONFIG_KIND_AMOUNT] = {"steps or time", "a number of steps or a time, like \"5 steps\" or \"30 s\""},
	[CONFIG_KIND_OF] = {"", "a text like \"3 of 5\""},
	[CONFIG_KIND_SEVERITY] = {"", "\"note\", \"warn\" or \"critical\""},
	[CONFIG_KIND_ARGS] = {"", "\"keep\" or \"strip\""},
	[CONFIG_KIND_RANK] = {"", "\"auto\" or a whole number"},
	[CONFIG_KIND_JOB] = {"", "\"auto\" or a name of at most 63 letters, digits and . _ -"},
	[CONFIG_KIND_RUN_DIR] = {"path", "\"auto\" or an absolute path"},
	[CONFIG_KIND_STORE] = {"path", "an absolute path, or one that begins with ~/"},
	[CONFIG_KIND_LISTEN] = {"", "an ADDRESS:PORT like \"127.0.0.1:9477\", or \"\""},
	[CONFIG_KIND_TEMPLATE] = {"", "a text with {job} {trigger} {step} {rank} {host} {id} only"},
	[CONFIG_KIND_TEXTS] = {"list", "a list of texts"},
	[CONFIG_KIND_AUTO_TEXTS] = {"list", "\"auto\" or a list of texts"},
	[CONFIG_KIND_TIERS] = {"list", "1 to 4 texts like \"10 ms x 10 min\""},
	[CONFIG_KIND_COMMANDS] = {"list", "a list of commands, each a list of texts"},
	[CONFIG_KIND_THRESHOLDS] = {"list", "a list of limits"},
	[CONFIG_KIND_HOOKS] = {"list", "a list of hooks"},
};

const char *config_kind_unit(enum config_kind kind)
{
	return kinds[kind].unit;
}

const char *config_kind_wanted(enum config_kind kind)
{
	return kinds[kind].wanted;
}

static const char *const severities[] = {"note", "warn", "critical"};

const char *config_severity_name(enum config_severity severity)
{
	return (unsigned)severity <= CONFIG_CRITICAL ? severities[severity] : "unknown";
}

int config_severity_find(const char *name)
{
	for (int i = 0; i <= CONFIG_CRITICAL; i++)
		if (strcmp(severities[i], name) == 0)
			return i;
	return -EINVAL;
}

static void print_number(const struct config_row *row, int64_t number, char *out)
{
	switch ((int)row->kind) {
	case CONFIG_KIND_DURATION:
	case CONFIG_KIND_AMOUNT:
		units_print_duration(out, number);
		return;
	case CONFIG_KIND_BYTES:
		units_print_bytes(out, number);
		return;
	case CONFIG_KIND_PERCENT:
		units_print_percent(out, number);
		return;
	case CONFIG_KIND_RATIO:
		units_print_decimal(out, number);
		return;
	default:
		snprintf(out, UNITS_TEXT_MAX, "%" PRId64, number);
	}
}

char *config_row_bounds(const struct config_row *row, char *out)
{
	char low[UNITS_TEXT_MAX], high[UNITS_TEXT_MAX];
	*out = 0;
	if (row->low == 0 && row->high == 0)
		return out;
	print_number(row, row->low, low);
	print_number(row, row->high, high);
	snprintf(out, (size_t)2 * UNITS_TEXT_MAX, "%.44s .. %.44s", low, high);
	return out;
}

void config_value_refuse(struct config_reader *reader, const char *key, const cJSON *item, const char *wanted)
{
	struct json_place place = json_text_place(reader->document, item);
	char *given = cJSON_PrintUnformatted(item);
	config_problem_add(reader->problems, reader->document->text, place.value_offset, key,
			   "%.60s%s is not %s", given ? given : "this",
			   given && strlen(given) > 60 ? "…" : "", wanted);
	cJSON_free(given);
}

static void refuse(struct config_reader *reader, const struct config_row *row, const cJSON *item)
{
	config_value_refuse(reader, row->key, item, kinds[row->kind].wanted);
}

static bool in_bounds(struct config_reader *reader, const struct config_row *row, const cJSON *item,
		      int64_t number)
{
	char bounds[2 * UNITS_TEXT_MAX], wanted[2 * UNITS_TEXT_MAX + 8];
	if (number >= row->low && number <= row->high)
		return true;
	snprintf(wanted, sizeof(wanted), "in %s", config_row_bounds(row, bounds));
	config_value_refuse(reader, row->key, item, wanted);
	return false;
}

/* A number of any kind: JSON numbers are read from the text, so that none goes through a double. */
static int parse_number(struct config_reader *reader, const struct config_row *row, const cJSON *item,
			int64_t *ret_number)
{
	char digits[JSON_TEXT_NUMBER_MAX];
	const char *text = cJSON_IsNumber(item)   ? json_text_number(reader->document, item, digits)
			   : cJSON_IsString(item) ? item->valuestring
						  : "";
	switch ((int)row->kind) {
	case CONFIG_KIND_DURATION:
		return units_parse_duration(text, ret_number);
	case CONFIG_KIND_BYTES:
		return units_parse_bytes(text, ret_number);
	case CONFIG_KIND_PERCENT:
		return units_parse_percent(text, ret_number);
	case CONFIG_KIND_RATIO:
		return cJSON_IsNumber(item) ? units_parse_decimal(text, ret_number) : -EINVAL;
	case CONFIG_KIND_RANK:
		if (cJSON_IsString(item)) {
			*ret_number = CONFIG_RANK_AUTO;
			return strcmp(text, "auto") == 0 ? 0 : -EINVAL;
		}
		return units_parse_integer(text, ret_number);
	default:
		return cJSON_IsNumber(item) ? units_parse_integer(text, ret_number) : -EINVAL;
	}
}

static bool has_field(const struct config_row *row)
{
	return row->offset != CONFIG_NO_FIELD;
}

static void *field_of(struct config_reader *reader, const struct config_row *row)
{
	return (char *)reader->config + row->offset;
}

/* The canonical text, which the trigger engine gets and `config show` prints. */
static int set_text(struct config_reader *reader, const struct config_row *row, const char *text)
{
	char *copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	struct config_value *value = &reader->config->values[row - config_rows];
	free(value->text);
	value->text = copy;
	return 0;
}

static int set_number(struct config_reader *reader, const struct config_row *row, const cJSON *item)
{
	int64_t number;
	char text[UNITS_TEXT_MAX];
	if (parse_number(reader, row, item, &number) < 0) {
		refuse(reader, row, item);
		return 0;
	}
	bool automatic = row->kind == CONFIG_KIND_RANK && cJSON_IsString(item);
	if (!automatic && !in_bounds(reader, row, item, number))
		return 0;
	if (has_field(row))
		*(int64_t *)field_of(reader, row) = number;
	print_number(row, number, text);
	return set_text(reader, row, automatic ? "auto" : text);
}

static int set_bool(struct config_reader *reader, const struct config_row *row, const cJSON *item)
{
	if (!cJSON_IsBool(item)) {
		refuse(reader, row, item);
		return 0;
	}
	if (has_field(row))
		*(bool *)field_of(reader, row) = cJSON_IsTrue(item);
	return set_text(reader, row, cJSON_IsTrue(item) ? "true" : "false");
}

static int set_amount(struct config_reader *reader, const struct config_row *row, const cJSON *item)
{
	struct units_amount amount;
	char text[UNITS_TEXT_MAX];
	if (!cJSON_IsString(item) || units_parse_amount(item->valuestring, &amount) < 0 ||
	    amount.steps > 10000) {
		refuse(reader, row, item);
		return 0;
	}
	if (!amount.steps && !in_bounds(reader, row, item, amount.ns))
		return 0;
	if (has_field(row))
		*(struct units_amount *)field_of(reader, row) = amount;
	return set_text(reader, row, units_print_amount(text, amount));
}

static int set_of(struct config_reader *reader, const struct config_row *row, const cJSON *item)
{
	struct units_of of;
	char text[UNITS_TEXT_MAX];
	if (!cJSON_IsString(item) || units_parse_of(item->valuestring, &of) < 0) {
		refuse(reader, row, item);
		return 0;
	}
	if (!in_bounds(reader, row, item, of.whole))
		return 0;
	if (has_field(row))
		*(struct units_of *)field_of(reader, row) = of;
	return set_text(reader, row, units_print_of(text, of));
}

static int set_choice(struct config_reader *reader, const struct config_row *row, const cJSON *item)
{
	const char *name = cJSON_IsString(item) ? item->valuestring : "";
	int choice = config_severity_find(name);
	if (row->kind == CONFIG_KIND_ARGS)
		choice = strcmp(name, "keep") == 0    ? CONFIG_ARGS_KEEP
			 : strcmp(name, "strip") == 0 ? CONFIG_ARGS_STRIP
						      : -1;
	if (choice < 0) {
		refuse(reader, row, item);
		return 0;
	}
	if (row->kind == CONFIG_KIND_ARGS)
		*(enum config_args *)field_of(reader, row) = (enum config_args)choice;
	else if (has_field(row))
		*(enum config_severity *)field_of(reader, row) = (enum config_severity)choice;
	return set_text(reader, row, name);
}

/* As the producer's rule for names in rings. */
static bool is_job_name(const char *text)
{
	size_t bytes = strlen(text);
	return bytes >= 1 && bytes <= 63 && text[0] != '.' &&
	       strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == bytes;
}

static bool is_listen(const char *text)
{
	const char *colon = strrchr(text, ':');
	int64_t port;
	if (!*text)
		return true;
	return colon && colon > text && units_parse_integer(colon + 1, &port) == 0 && port >= 1 &&
	       port <= 65535;
}

static bool is_template(const char *text)
{
	static const char *const names[] = {"{job}", "{trigger}", "{step}", "{rank}", "{host}", "{id}"};
	while ((text = strchr(text, '{'))) {
		size_t i = 0;
		while (i < 6 && strncmp(text, names[i], strlen(names[i])) != 0)
			i++;
		if (i == 6)
			return false;
		text += strlen(names[i]);
	}
	return true;
}

static bool is_good_text(enum config_kind kind, const char *text)
{
	switch ((int)kind) {
	case CONFIG_KIND_JOB:
		return is_job_name(text);
	case CONFIG_KIND_RUN_DIR:
		return text[0] == '/' || strcmp(text, "auto") == 0;
	case CONFIG_KIND_STORE:
		return text[0] == '/' || strncmp(text, "~/", 2) == 0;
	case CONFIG_KIND_LISTEN:
		return is_listen(text);
	default:
		return is_template(text);
	}
}

static int set_string(struct config_reader *reader, const struct config_row *row, const cJSON *item)
{
	if (!cJSON_IsString(item) || !is_good_text(row->kind, item->valuestring)) {
		refuse(reader, row, item);
		return 0;
	}
	const char *text = item->valuestring;
	bool automatic = strcmp(text, "auto") == 0 && row->kind <= CONFIG_KIND_RUN_DIR;
	char *copy = NULL;
	if (row->kind == CONFIG_KIND_STORE)
		/* The default follows XDG_STATE_HOME; what somebody wrote is taken as written. */
		copy = reader->is_preset ? paths_default_store() : paths_expand(text);
	else if (!automatic)
		copy = strdup(text);
	if (!copy && !automatic)
		return -ENOMEM;
	char **field = field_of(reader, row);
	free(*field);
	*field = copy;
	return set_text(reader, row, text);
}

int config_value_set(struct config_reader *reader, const struct config_row *row, const cJSON *item)
{
	switch (row->kind) {
	case CONFIG_KIND_BOOL:
		return set_bool(reader, row, item);
	case CONFIG_KIND_COUNT:
	case CONFIG_KIND_DURATION:
	case CONFIG_KIND_BYTES:
	case CONFIG_KIND_PERCENT:
	case CONFIG_KIND_RATIO:
	case CONFIG_KIND_RANK:
		return set_number(reader, row, item);
	case CONFIG_KIND_AMOUNT:
		return set_amount(reader, row, item);
	case CONFIG_KIND_OF:
		return set_of(reader, row, item);
	case CONFIG_KIND_SEVERITY:
	case CONFIG_KIND_ARGS:
		return set_choice(reader, row, item);
	case CONFIG_KIND_JOB:
	case CONFIG_KIND_RUN_DIR:
	case CONFIG_KIND_STORE:
	case CONFIG_KIND_LISTEN:
	case CONFIG_KIND_TEMPLATE:
		return set_string(reader, row, item);
	case CONFIG_KIND_TEXTS:
	case CONFIG_KIND_AUTO_TEXTS:
	case CONFIG_KIND_TIERS:
	case CONFIG_KIND_COMMANDS:
	case CONFIG_KIND_THRESHOLDS:
	case CONFIG_KIND_HOOKS:
		return config_list_set(reader, row, item);
	}
	return -EINVAL;
}
