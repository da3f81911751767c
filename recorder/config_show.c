/* SPDX-License-Identifier: Apache-2.0 */
/* The settings as they stand, for `config show`, `config example`, the docs and the trigger engine. */
#include "config.h"

#include <string.h>

#include <triggers/triggers.h>

#include "config_table.h"

void config_each(const struct config *config,
		 void (*each)(void *context, const struct config_setting *setting), void *context)
{
	for (size_t i = 0; i < config_row_count; i++) {
		const struct config_row *row = &config_rows[i];
		const struct config_value *value = config ? &config->values[i] : NULL;
		char bounds[2 * UNITS_TEXT_MAX];
		struct config_setting setting = {
			.key = row->key,
			.unit = config_kind_unit(row->kind),
			.wanted = config_kind_wanted(row->kind),
			.help = row->help,
			.bounds = config_row_bounds(row, bounds),
			.preset = row->preset,
			.value = value ? value->json : row->preset,
			.text = value ? value->text : row->preset,
			.line = value ? value->line : 0,
		};
		each(context, &setting);
	}
}

static bool engine_knows(const char *key)
{
	for (const struct triggers_option *option = triggers_options(); option->key; option++)
		if (strcmp(option->key, key) == 0)
			return true;
	return false;
}

int config_each_option(const struct config *config,
		       int (*each)(void *context, const char *key, const char *value), void *context)
{
	static const char prefix[] = "triggers.";
	for (size_t i = 0; i < config_row_count; i++) {
		const struct config_row *row = &config_rows[i];
		if (row->offset != CONFIG_NO_FIELD)
			continue;
		const char *key = row->key;
		if (strncmp(key, prefix, strlen(prefix)) == 0)
			key += strlen(prefix);
		if (!engine_knows(key))
			continue;
		int result = each(context, key, config->values[i].text);
		if (result < 0)
			return result;
	}
	return 0;
}
