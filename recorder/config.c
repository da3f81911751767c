/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading: defaults first, then the file's members one by one by the table. A bad value leaves the default
 * and a problem behind, so that all problems are found at once.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config_table.h"
#include "paths.h"
#include "suggest.h"

enum { KEY_MAX = 96, NEAREST_MAX = 2 * KEY_MAX };

void config_problem_add(struct config_problems *problems, const char *text, size_t offset, const char *key,
			const char *format, ...)
{
	unsigned n = problems->count++;
	if (n >= CONFIG_PROBLEMS_MAX)
		return;
	struct config_problem *problem = &problems->problem[n];
	*problem = (struct config_problem){0};
	snprintf(problem->key, sizeof(problem->key), "%s", key);
	if (text)
		json_text_line(text, offset, &problem->line, &problem->column);
	va_list values;
	va_start(values, format);
	vsnprintf(problem->text, sizeof(problem->text), format, values);
	va_end(values);
}

static const struct config_row *find_row(const char *key)
{
	for (size_t i = 0; i < config_row_count; i++)
		if (strcmp(config_rows[i].key, key) == 0)
			return &config_rows[i];
	return NULL;
}

static bool is_group(const char *key)
{
	size_t bytes = strlen(key);
	for (size_t i = 0; i < config_row_count; i++)
		if (strncmp(config_rows[i].key, key, bytes) == 0 && config_rows[i].key[bytes] == '.')
			return true;
	return false;
}

/* The nearest key beside the unknown one, else a key elsewhere that ends with the same word. */
static bool find_nearest(const char *group, const char *word, char *ret_key)
{
	struct suggest suggest;
	char names[128][KEY_MAX];
	size_t group_bytes = strlen(group);
	suggest_init(&suggest, word);
	for (size_t i = 0; i < config_row_count && i < 128; i++) {
		const char *key = config_rows[i].key;
		if (strncmp(key, group, group_bytes) != 0)
			continue;
		const char *rest = key + group_bytes;
		snprintf(names[i], sizeof(names[i]), "%.*s", (int)strcspn(rest, "."), rest);
		suggest_offer(&suggest, names[i]);
	}
	if (suggest.best) {
		snprintf(ret_key, NEAREST_MAX, "%s%s", group, suggest.best);
		return true;
	}
	for (size_t i = 0; i < config_row_count; i++) {
		const char *dot = strrchr(config_rows[i].key, '.');
		if (!dot || strcmp(dot + 1, word) != 0)
			continue;
		snprintf(ret_key, NEAREST_MAX, "%s", config_rows[i].key);
		return true;
	}
	return false;
}

static void refuse_unknown(struct config_reader *reader, const char *group, const cJSON *item,
			   const char *key)
{
	char nearest[NEAREST_MAX];
	size_t offset = json_text_place(reader->document, item).key_offset;
	if (find_nearest(group, item->string, nearest))
		config_problem_add(reader->problems, reader->document->text, offset, key,
				   "unknown; did you mean %s?", nearest);
	else
		config_problem_add(reader->problems, reader->document->text, offset, key,
				   "unknown; see driverec config example");
}

static int set_json(struct config_reader *reader, const struct config_row *row, const cJSON *item)
{
	struct config_value *value = &reader->config->values[row - config_rows];
	char digits[JSON_TEXT_NUMBER_MAX];
	char *json = cJSON_IsNumber(item) ? strdup(json_text_number(reader->document, item, digits))
					  : cJSON_PrintUnformatted(item);
	if (!json)
		return -ENOMEM;
	free(value->json);
	value->json = json;
	unsigned column;
	value->line = 0;
	if (!reader->is_preset)
		json_text_line(reader->document->text, json_text_place(reader->document, item).key_offset,
			       &value->line, &column);
	return 0;
}

static int take_value(struct config_reader *reader, const struct config_row *row, const cJSON *item)
{
	unsigned before = reader->problems->count;
	int result = config_value_set(reader, row, item);
	if (result == 0 && reader->problems->count == before)
		result = set_json(reader, row, item);
	return result;
}

static bool is_repeated(struct config_reader *reader, const cJSON *object, const cJSON *item, const char *key)
{
	const cJSON *first = cJSON_GetObjectItemCaseSensitive(object, item->string);
	if (first == item)
		return false;
	unsigned line, column;
	json_text_line(reader->document->text, json_text_place(reader->document, first).key_offset, &line,
		       &column);
	config_problem_add(reader->problems, reader->document->text,
			   json_text_place(reader->document, item).key_offset, key,
			   "given twice; the first is in line %u", line);
	return true;
}

/* `group` is "" or ends with a dot. As deep as the keys of the table have dots. */
static int take_members(struct config_reader *reader, const char *group, const cJSON *object)
{
	int members = 0;
	for (const cJSON *item = object->child; item; item = item->next) {
		char key[KEY_MAX];
		int length = snprintf(key, sizeof(key), "%s%s", group, item->string);
		if (++members > CONFIG_LIST_MAX) {
			config_problem_add(reader->problems, reader->document->text,
					   json_text_place(reader->document, item).key_offset, group,
					   "more than %d members", CONFIG_LIST_MAX);
			return 0;
		}
		if (is_repeated(reader, object, item, key))
			continue;
		const struct config_row *row = length < KEY_MAX ? find_row(key) : NULL;
		int result = 0;
		if (row) {
			result = take_value(reader, row, item);
		} else if (length >= KEY_MAX - 1 || !is_group(key)) {
			refuse_unknown(reader, group, item, key);
		} else if (!cJSON_IsObject(item)) {
			config_value_refuse(reader, key, item, "an object");
		} else {
			key[length] = '.';
			key[length + 1] = 0;
			result = take_members(reader, key, item);
		}
		if (result < 0)
			return result;
	}
	return 0;
}

static int take_presets(struct config *config, struct config_problems *problems)
{
	for (size_t i = 0; i < config_row_count; i++) {
		const struct config_row *row = &config_rows[i];
		struct json_text document;
		struct json_text_error error;
		int result = json_text_parse(row->preset, strlen(row->preset), &document, &error);
		if (result < 0)
			return result;
		struct config_reader reader = {config, &document, problems, true};
		result = config_value_set(&reader, row, document.root);
		if (result == 0)
			result = set_json(&reader, row, document.root);
		json_text_free(&document);
		if (result < 0)
			return result;
	}
	return 0;
}

/* What no single value can be blamed for. */
static void check_together(struct config_reader *reader)
{
	const struct config *config = reader->config;
	if (config->ring.worker_size_bytes > config->ring.size_bytes)
		config_problem_add(reader->problems, NULL, 0, "ring.worker_size", "larger than ring.size");
	if (config->window.pre.ns && config->window.pre.ns < config->window.pre_min_ns)
		config_problem_add(reader->problems, NULL, 0, "window.pre", "shorter than window.pre_min");
	if (config->window.post.ns > config->window.post_max_ns)
		config_problem_add(reader->problems, NULL, 0, "window.post", "longer than window.post_max");
	for (size_t i = 0; i < config->alerts.hooks.count; i++)
		if (config->alerts.hooks.item[i].min_severity == CONFIG_SEVERITY_UNSET)
			config->alerts.hooks.item[i].min_severity = config->alerts.min_severity;
}

static int take_file(struct config *config, const char *text, size_t bytes, struct config_problems *problems)
{
	struct json_text document;
	struct json_text_error error;
	int result = json_text_parse(text, bytes, &document, &error);
	if (result == -EINVAL) {
		config_problem_add(problems, text, error.offset, "", "%s", error.why);
		return 0;
	}
	if (result < 0)
		return result;
	struct config_reader reader = {config, &document, problems, false};
	if (cJSON_IsObject(document.root))
		result = take_members(&reader, "", document.root);
	else
		config_value_refuse(&reader, "", document.root, "an object");
	if (result == 0)
		check_together(&reader);
	json_text_free(&document);
	return result;
}

void config_free(struct config *config)
{
	if (!config)
		return;
	for (size_t i = 0; config->values && i < config_row_count; i++) {
		free(config->values[i].json);
		free(config->values[i].text);
	}
	free(config->values);
	config_list_free(config);
	free(config->job.name);
	free(config->run_dir);
	free(config->store);
	free(config->alerts.dedup);
	free(config->http.listen);
	free(config->path);
	free(config);
}

int config_parse(const char *text, size_t bytes, const char *path, struct config **ret_config,
		 struct config_problems *ret_problems)
{
	*ret_problems = (struct config_problems){0};
	snprintf(ret_problems->path, sizeof(ret_problems->path), "%s", path ? path : "");
	int result = -ENOMEM;
	struct config *config = calloc(1, sizeof(*config));
	if (!config)
		return result;
	config->values = calloc(config_row_count, sizeof(*config->values));
	if (!config->values || (path && !(config->path = strdup(path))))
		goto out;
	result = take_presets(config, ret_problems);
	if (result == 0 && bytes)
		result = take_file(config, text, bytes, ret_problems);
	if (result == 0 && ret_problems->count)
		result = -EINVAL;
out:
	if (result < 0)
		config_free(config);
	else
		*ret_config = config;
	return result;
}

/* The first of the places that is there; NULL = none. Only the user's own choices must be there. */
static char *find_file(const char *given)
{
	const char *variable = getenv("DRIVEREC_CONFIG");
	if (given || (variable && *variable))
		return paths_expand(given ? given : variable);
	static const char *const places[] = {"~/.config/driverec/config.json", "/etc/driverec/config.json"};
	for (size_t i = 0; i < 2; i++) {
		char *path = paths_expand(places[i]);
		int fd = path ? open(path, O_PATH | O_CLOEXEC) : -1;
		bool missing = fd < 0 && (!path || errno == ENOENT || errno == ENOTDIR);
		if (fd >= 0)
			close(fd);
		if (!missing)
			return path;
		free(path);
	}
	return NULL;
}

int config_load(const char *path, struct config **ret_config, struct config_problems *ret_problems)
{
	char *found = find_file(path);
	if (!found)
		return config_parse("", 0, NULL, ret_config, ret_problems);
	char *text = NULL;
	size_t bytes = 0;
	int result = paths_read_file(AT_FDCWD, found, CONFIG_FILE_BYTES_MAX, &text, &bytes);
	if (result < 0) {
		*ret_problems = (struct config_problems){0};
		snprintf(ret_problems->path, sizeof(ret_problems->path), "%s", found);
		config_problem_add(ret_problems, NULL, 0, "", "cannot be read: %s", strerror(-result));
	} else if (bytes == 0) {
		result = config_parse(" ", 1, found, ret_config, ret_problems);
	} else {
		result = config_parse(text, bytes, found, ret_config, ret_problems);
	}
	free(text);
	free(found);
	return result;
}

void config_problems_print(const struct config_problems *problems, FILE *out)
{
	unsigned kept = problems->count < CONFIG_PROBLEMS_MAX ? problems->count : CONFIG_PROBLEMS_MAX;
	for (unsigned i = 0; i < kept; i++) {
		const struct config_problem *problem = &problems->problem[i];
		fprintf(out, "%s:", problems->path);
		if (problem->line)
			fprintf(out, "%u:%u:", problem->line, problem->column);
		if (*problem->key)
			fprintf(out, " %s:", problem->key);
		fprintf(out, " %s\n", problem->text);
	}
	if (problems->count > kept)
		fprintf(out, "%s: and %u more\n", problems->path, problems->count - kept);
}

struct config *config_load_or_complain(const char *path)
{
	struct config *config = NULL;
	struct config_problems *problems = malloc(sizeof(*problems));
	int result = problems ? config_load(path, &config, problems) : -ENOMEM;
	if (problems && result < 0)
		config_problems_print(problems, stderr);
	if (result == -ENOMEM)
		fprintf(stderr, "driverec: out of memory while reading the configuration\n");
	free(problems);
	return result < 0 ? NULL : config;
}
