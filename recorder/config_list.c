/* SPDX-License-Identifier: Apache-2.0 */
/* Settings that are lists: texts, tiers, commands, thresholds, hooks. */
#include "config_table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_MAX = 96, HOOK_NAME_MAX = 63 };
#define HOOK_TIMEOUT_NS 10000000000

static void free_command(struct config_command *command)
{
	for (size_t i = 0; i < command->argc; i++)
		free(command->argv[i]);
	free(command->argv);
	*command = (struct config_command){0};
}

static void free_texts(struct config_texts *texts)
{
	for (size_t i = 0; i < texts->count; i++)
		free(texts->text[i]);
	free(texts->text);
	*texts = (struct config_texts){0};
}

static void free_thresholds(struct config_thresholds *thresholds)
{
	for (size_t i = 0; i < thresholds->count; i++)
		free(thresholds->item[i].series);
	free(thresholds->item);
	*thresholds = (struct config_thresholds){0};
}

static void free_hooks(struct config_hooks *hooks)
{
	for (size_t i = 0; i < hooks->count; i++) {
		free(hooks->item[i].name);
		free_command(&hooks->item[i].exec);
	}
	free(hooks->item);
	*hooks = (struct config_hooks){0};
}

/* Takes the collectors of one trigger out; NULL = all. */
static void drop_collectors(struct config_collectors *collectors, const char *trigger)
{
	size_t kept = 0;
	for (size_t i = 0; i < collectors->count; i++) {
		struct config_collector *item = &collectors->item[i];
		if (trigger && strcmp(item->trigger, trigger) != 0) {
			collectors->item[kept++] = *item;
			continue;
		}
		free(item->trigger);
		free_command(&item->command);
	}
	collectors->count = kept;
}

void config_list_free(struct config *config)
{
	free_texts(&config->captures.xprof.targets);
	free_texts(&config->captures.logdir);
	free_texts(&config->series);
	free_texts(&config->phases.train);
	free_texts(&config->phases.checkpoint);
	free_texts(&config->phases.eval);
	free_texts(&config->phases.compile);
	free_texts(&config->work.waits);
	free_texts(&config->work.own);
	free_thresholds(&config->thresholds);
	free_hooks(&config->alerts.hooks);
	drop_collectors(&config->collect.collectors, NULL);
	free(config->collect.collectors.item);
}

static const char *item_key(char *out, const char *key, int index, const char *member)
{
	snprintf(out, KEY_MAX, "%s[%d]%s%s", key, index, *member ? "." : "", member);
	return out;
}

/* A list of non-empty texts; tells what is wrong with it. 0, -ENOMEM, or -EINVAL once told. */
static int read_texts(struct config_reader *reader, const char *key, const cJSON *list, const char *wanted,
		      struct config_texts *ret_texts)
{
	char path[KEY_MAX];
	if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > CONFIG_LIST_MAX) {
		config_value_refuse(reader, key, list, wanted);
		return -EINVAL;
	}
	struct config_texts texts = {0};
	int result = 0;
	/* One more, for commands: argv ends with NULL. */
	texts.text = calloc((size_t)cJSON_GetArraySize(list) + 1, sizeof(*texts.text));
	if (!texts.text)
		return -ENOMEM;
	for (const cJSON *item = list->child; item; item = item->next) {
		if (!cJSON_IsString(item) || !*item->valuestring) {
			config_value_refuse(reader, item_key(path, key, (int)texts.count, ""), item,
					    "a text");
			result = -EINVAL;
			break;
		}
		if (!(texts.text[texts.count] = strdup(item->valuestring))) {
			result = -ENOMEM;
			break;
		}
		texts.count++;
	}
	if (result == 0)
		*ret_texts = texts;
	else
		free_texts(&texts);
	return result;
}

static int read_command(struct config_reader *reader, const char *key, const cJSON *list,
			struct config_command *ret_command)
{
	static const char wanted[] = "a command: a list of texts, the program first";
	struct config_texts texts;
	int result = read_texts(reader, key, list, wanted, &texts);
	if (result < 0)
		return result;
	if (texts.count == 0) {
		config_value_refuse(reader, key, list, wanted);
		free_texts(&texts);
		return -EINVAL;
	}
	*ret_command = (struct config_command){texts.count, texts.text};
	return 0;
}

static int set_texts(struct config_reader *reader, const struct config_row *row, const cJSON *list,
		     struct config_texts *field)
{
	struct config_texts texts;
	int result = read_texts(reader, row->key, list, config_kind_wanted(row->kind), &texts);
	if (result < 0)
		return result;
	free_texts(field);
	*field = texts;
	return 0;
}

static int set_targets(struct config_reader *reader, const struct config_row *row, const cJSON *item)
{
	bool automatic = cJSON_IsString(item) && strcmp(item->valuestring, "auto") == 0;
	struct config_texts *texts = &reader->config->captures.xprof.targets;
	int result = 0;
	if (automatic)
		free_texts(texts);
	else
		result = set_texts(reader, row, item, texts);
	if (result == 0)
		reader->config->captures.xprof.targets_auto = automatic;
	return result;
}

static int set_tiers(struct config_reader *reader, const struct config_row *row, const cJSON *list)
{
	struct config_tiers tiers = {0};
	char path[KEY_MAX];
	int count = cJSON_GetArraySize(list);
	if (!cJSON_IsArray(list) || count < 1 || count > CONFIG_TIERS_MAX) {
		config_value_refuse(reader, row->key, list, config_kind_wanted(row->kind));
		return -EINVAL;
	}
	for (const cJSON *item = list->child; item; item = item->next) {
		struct units_tier *tier = &tiers.tier[tiers.count];
		const char *key = item_key(path, row->key, (int)tiers.count, "");
		if (!cJSON_IsString(item) || units_parse_tier(item->valuestring, tier) < 0) {
			config_value_refuse(reader, key, item,
					    "a text like \"10 ms x 10 min\", the second a multiple");
			return -EINVAL;
		}
		if (tiers.count && (tier->bin_ns <= tier[-1].bin_ns || tier->bin_ns % tier[-1].bin_ns)) {
			config_value_refuse(reader, key, item, "of longer bins, a multiple of those before");
			return -EINVAL;
		}
		tiers.count++;
	}
	reader->config->macro.tiers = tiers;
	return 0;
}

static int add_collector(struct config_reader *reader, const char *key, const cJSON *item)
{
	struct config_collectors *collectors = &reader->config->collect.collectors;
	struct config_collector collector = {0};
	int result = read_command(reader, key, item, &collector.command);
	if (result < 0)
		return result;
	const char *trigger = strchr(key, '.') + 1;
	collector.trigger = strndup(trigger, strcspn(trigger, "["));
	struct config_collector *grown =
		realloc(collectors->item, (collectors->count + 1) * sizeof(*collectors->item));
	if (grown)
		collectors->item = grown;
	if (!grown || !collector.trigger) {
		free(collector.trigger);
		free_command(&collector.command);
		return -ENOMEM;
	}
	collectors->item[collectors->count++] = collector;
	return 0;
}

static int set_collectors(struct config_reader *reader, const struct config_row *row, const cJSON *list)
{
	char path[KEY_MAX];
	int index = 0;
	if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > CONFIG_LIST_MAX) {
		config_value_refuse(reader, row->key, list, config_kind_wanted(row->kind));
		return -EINVAL;
	}
	drop_collectors(&reader->config->collect.collectors, strchr(row->key, '.') + 1);
	for (const cJSON *item = list->child; item; item = item->next) {
		int result = add_collector(reader, item_key(path, row->key, index++, ""), item);
		if (result < 0)
			return result;
	}
	return 0;
}

/* A member of an item of a list: its name and what takes it. -EINVAL once told, -ENOMEM, or 0. */
struct member {
	const char *name;
	int (*read)(struct config_reader *reader, const char *key, const cJSON *value, void *item);
};

static int read_members(struct config_reader *reader, const char *key, int index, const cJSON *object,
			const struct member *members, size_t count, void *item)
{
	char path[KEY_MAX], wanted[KEY_MAX] = "an object of ";
	size_t length = strlen(wanted);
	for (size_t i = 0; i < count; i++)
		length += (size_t)snprintf(wanted + length, sizeof(wanted) - length, "%s\"%s\"",
					   i ? ", " : "", members[i].name);
	if (!cJSON_IsObject(object)) {
		config_value_refuse(reader, item_key(path, key, index, ""), object, wanted);
		return -EINVAL;
	}
	for (const cJSON *value = object->child; value; value = value->next) {
		size_t i = 0;
		while (i < count && strcmp(members[i].name, value->string) != 0)
			i++;
		item_key(path, key, index, value->string);
		if (i == count || cJSON_GetObjectItemCaseSensitive(object, value->string) != value) {
			config_problem_add(reader->problems, reader->document->text,
					   json_text_place(reader->document, value).key_offset, path,
					   i == count ? "unknown; it is %s" : "given twice", wanted);
			return -EINVAL;
		}
		int result = members[i].read(reader, path, value, item);
		if (result < 0)
			return result;
	}
	return 0;
}

static int read_name(struct config_reader *reader, const char *key, const cJSON *value, char **ret_text)
{
	if (!cJSON_IsString(value) || !*value->valuestring || strlen(value->valuestring) > HOOK_NAME_MAX) {
		config_value_refuse(reader, key, value, "a text of at most 63 bytes");
		return -EINVAL;
	}
	*ret_text = strdup(value->valuestring);
	return *ret_text ? 0 : -ENOMEM;
}

static int read_severity(struct config_reader *reader, const char *key, const cJSON *value,
			 enum config_severity *ret_severity)
{
	int severity = cJSON_IsString(value) ? config_severity_find(value->valuestring) : -1;
	if (severity < 0) {
		config_value_refuse(reader, key, value, config_kind_wanted(CONFIG_KIND_SEVERITY));
		return -EINVAL;
	}
	*ret_severity = (enum config_severity)severity;
	return 0;
}

/* A plain number, or one with a unit of time. */
static int read_limit(struct config_reader *reader, const char *key, const cJSON *value,
		      struct config_limit *ret_limit)
{
	char digits[JSON_TEXT_NUMBER_MAX];
	int64_t ns, ppm = 0;
	int result = -EINVAL;
	if (cJSON_IsNumber(value))
		result = units_parse_decimal(json_text_number(reader->document, value, digits), &ppm);
	else if (cJSON_IsString(value) && units_parse_duration(value->valuestring, &ns) == 0)
		result = __builtin_mul_overflow(ns, 1000000, &ppm) ? -EINVAL : 0;
	if (result < 0) {
		config_value_refuse(reader, key, value, "a number like 700, or a time like \"250 ms\"");
		return -EINVAL;
	}
	*ret_limit = (struct config_limit){.given = true, .is_time = cJSON_IsString(value), .ppm = ppm};
	return 0;
}

static int threshold_series(struct config_reader *reader, const char *key, const cJSON *value, void *item)
{
	return read_name(reader, key, value, &((struct config_threshold *)item)->series);
}

static int threshold_above(struct config_reader *reader, const char *key, const cJSON *value, void *item)
{
	return read_limit(reader, key, value, &((struct config_threshold *)item)->above);
}

static int threshold_below(struct config_reader *reader, const char *key, const cJSON *value, void *item)
{
	return read_limit(reader, key, value, &((struct config_threshold *)item)->below);
}

static int threshold_severity(struct config_reader *reader, const char *key, const cJSON *value, void *item)
{
	return read_severity(reader, key, value, &((struct config_threshold *)item)->severity);
}

static const struct member threshold_members[] = {
	{"series", threshold_series},
	{"above", threshold_above},
	{"below", threshold_below},
	{"severity", threshold_severity},
};

static int hook_name(struct config_reader *reader, const char *key, const cJSON *value, void *item)
{
	return read_name(reader, key, value, &((struct config_hook *)item)->name);
}

static int hook_exec(struct config_reader *reader, const char *key, const cJSON *value, void *item)
{
	return read_command(reader, key, value, &((struct config_hook *)item)->exec);
}

static int hook_timeout(struct config_reader *reader, const char *key, const cJSON *value, void *item)
{
	int64_t ns = 0;
	if (!cJSON_IsString(value) || units_parse_duration(value->valuestring, &ns) < 0 || ns < 100000000 ||
	    ns > 600000000000) {
		config_value_refuse(reader, key, value, "a time in 100 ms .. 10 min");
		return -EINVAL;
	}
	((struct config_hook *)item)->timeout_ns = ns;
	return 0;
}

static int hook_on(struct config_reader *reader, const char *key, const cJSON *value, void *item)
{
	static const char *const alerts[] = {"opened", "ready", "resolved"};
	unsigned on = 0;
	bool good = cJSON_IsArray(value) && value->child;
	for (const cJSON *alert = value->child; good && alert; alert = alert->next) {
		unsigned i = 0;
		while (i < 3 && !(cJSON_IsString(alert) && strcmp(alert->valuestring, alerts[i]) == 0))
			i++;
		good = i < 3;
		on |= 1u << i;
	}
	if (!good) {
		config_value_refuse(reader, key, value, "a list of \"opened\", \"ready\", \"resolved\"");
		return -EINVAL;
	}
	((struct config_hook *)item)->on = on;
	return 0;
}

static int hook_severity(struct config_reader *reader, const char *key, const cJSON *value, void *item)
{
	return read_severity(reader, key, value, &((struct config_hook *)item)->min_severity);
}

static const struct member hook_members[] = {
	{"name", hook_name},
	{"exec", hook_exec},
	{"timeout", hook_timeout},
	{"on", hook_on},
	{"min_severity", hook_severity},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int list_room(struct config_reader *reader, const struct config_row *row, const cJSON *list,
		     size_t size, void **ret_items)
{
	int count = cJSON_GetArraySize(list);
	if (!cJSON_IsArray(list) || count > CONFIG_LIST_MAX) {
		config_value_refuse(reader, row->key, list, config_kind_wanted(row->kind));
		return -EINVAL;
	}
	*ret_items = calloc((size_t)count + 1, size);
	return *ret_items ? 0 : -ENOMEM;
}

static int refuse_item(struct config_reader *reader, const struct config_row *row, int index,
		       const cJSON *item, const char *wanted)
{
	char path[KEY_MAX];
	config_value_refuse(reader, item_key(path, row->key, index, ""), item, wanted);
	return -EINVAL;
}

static int set_thresholds(struct config_reader *reader, const struct config_row *row, const cJSON *list)
{
	struct config_thresholds thresholds = {0};
	int result = list_room(reader, row, list, sizeof(*thresholds.item), (void **)&thresholds.item);
	if (result < 0)
		return result;
	for (const cJSON *item = list->child; item && result == 0; item = item->next) {
		int index = (int)thresholds.count++;
		struct config_threshold *threshold = &thresholds.item[index];
		threshold->severity = CONFIG_WARN;
		result = read_members(reader, row->key, index, item, threshold_members,
				      COUNT(threshold_members), threshold);
		if (result == 0 && (!threshold->series || (!threshold->above.given && !threshold->below.given)))
			result = refuse_item(reader, row, index, item,
					     "a limit: it needs \"series\" and \"above\" or \"below\"");
	}
	if (result < 0) {
		free_thresholds(&thresholds);
		return result;
	}
	free_thresholds(&reader->config->thresholds);
	reader->config->thresholds = thresholds;
	return 0;
}

/* `min_severity` of a hook without one is set once the whole file is read: it may stand behind the hooks. */
static int set_hooks(struct config_reader *reader, const struct config_row *row, const cJSON *list)
{
	struct config_hooks hooks = {0};
	int result = list_room(reader, row, list, sizeof(*hooks.item), (void **)&hooks.item);
	if (result < 0)
		return result;
	for (const cJSON *item = list->child; item && result == 0; item = item->next) {
		int index = (int)hooks.count++;
		struct config_hook *hook = &hooks.item[index];
		*hook = (struct config_hook){.timeout_ns = HOOK_TIMEOUT_NS,
					     .on = CONFIG_OPENED | CONFIG_READY | CONFIG_RESOLVED,
					     .min_severity = CONFIG_SEVERITY_UNSET};
		result = read_members(reader, row->key, index, item, hook_members, COUNT(hook_members), hook);
		if (result == 0 && (!hook->name || !hook->exec.argc))
			result = refuse_item(reader, row, index, item,
					     "a hook: it needs \"name\" and \"exec\"");
	}
	if (result < 0) {
		free_hooks(&hooks);
		return result;
	}
	free_hooks(&reader->config->alerts.hooks);
	reader->config->alerts.hooks = hooks;
	return 0;
}

static int set_list(struct config_reader *reader, const struct config_row *row, const cJSON *item)
{
	switch ((int)row->kind) {
	case CONFIG_KIND_TEXTS:
		return set_texts(reader, row, item,
				 (struct config_texts *)((char *)reader->config + row->offset));
	case CONFIG_KIND_AUTO_TEXTS:
		return set_targets(reader, row, item);
	case CONFIG_KIND_TIERS:
		return set_tiers(reader, row, item);
	case CONFIG_KIND_COMMANDS:
		return set_collectors(reader, row, item);
	case CONFIG_KIND_THRESHOLDS:
		return set_thresholds(reader, row, item);
	default:
		return set_hooks(reader, row, item);
	}
}

int config_list_set(struct config_reader *reader, const struct config_row *row, const cJSON *item)
{
	int result = set_list(reader, row, item);
	if (result < 0)
		return result == -EINVAL ? 0 : result;
	char *text = cJSON_PrintUnformatted(item);
	if (!text)
		return -ENOMEM;
	struct config_value *value = &reader->config->values[row - config_rows];
	free(value->text);
	value->text = text;
	return 0;
}
