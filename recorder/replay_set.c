/* SPDX-License-Identifier: Apache-2.0 */
#include "replay_set.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "suggest.h"

static const char prefix[] = "triggers.";

/* The engine's own key of one as given: texts of the configuration have a "triggers." before all but the
 * gates. */
static const char *own_key(const char *key)
{
	return strncmp(key, prefix, sizeof(prefix) - 1) ? key : key + sizeof(prefix) - 1;
}

static int is_known(const char *key)
{
	for (const struct triggers_option *option = triggers_options(); option->key; option++)
		if (!strcmp(option->key, key))
			return 1;
	return 0;
}

static int unknown_key(const char *given, const char *key, char *error, size_t error_room)
{
	struct suggest suggest;
	suggest_init(&suggest, key);
	for (const struct triggers_option *option = triggers_options(); option->key; option++)
		suggest_offer(&suggest, option->key);
	if (suggest.best)
		snprintf(error, error_room, "--set %s: this setting is unknown; did you mean %s?", given,
			 suggest.best);
	else
		snprintf(error, error_room,
			 "--set %s: this setting is unknown; driverec config example lists them under "
			 "\"triggers\" and \"gates\"",
			 given);
	return -EINVAL;
}

static int set_one(const char *text, struct triggers_engine *engine, char *error, size_t error_room)
{
	char given[64], why[256] = "";
	const char *value = strchr(text, '=');
	size_t bytes = value ? (size_t)(value - text) : sizeof(given);
	if (bytes >= sizeof(given)) {
		snprintf(error, error_room, "--set %.60s: it must read KEY=VALUE", text);
		return -EINVAL;
	}
	memcpy(given, text, bytes);
	given[bytes] = 0;
	const char *key = own_key(given);
	if (!is_known(key))
		return unknown_key(given, key, error, error_room);
	int result = triggers_engine_set(engine, key, value + 1, why, sizeof(why));
	if (result)
		snprintf(error, error_room, "--set %.100s: %s", text, why);
	return result;
}

int replay_set(const struct option_texts *set, struct triggers_engine *engine, char *error, size_t error_room)
{
	for (int i = 0; i < set->count; i++) {
		int result = set_one(set->text[i], engine, error, error_room);
		if (result)
			return result;
	}
	return 0;
}

int replay_set_check(const struct option_texts *set, char *error, size_t error_room)
{
	const struct triggers_listener nobody = {.context = NULL};
	struct triggers_engine *engine = NULL;
	int result = triggers_engine_new(&nobody, &engine);
	if (result == 0)
		result = replay_set(set, engine, error, error_room);
	else
		snprintf(error, error_room, "out of memory");
	triggers_engine_free(engine);
	return result;
}

static int is_trigger(const char *name)
{
	for (unsigned i = 0; triggers_name(i); i++)
		if (!strcmp(triggers_name(i), name))
			return 1;
	return 0;
}

int replay_trigger_check(const struct option_texts *triggers, char *error, size_t error_room)
{
	for (int i = 0; i < triggers->count; i++) {
		const char *name = triggers->text[i];
		struct suggest suggest;
		if (is_trigger(name))
			continue;
		size_t used = (size_t)snprintf(error, error_room, "--trigger %.60s: there are", name);
		suggest_init(&suggest, name);
		for (unsigned n = 0; triggers_name(n); n++) {
			suggest_offer(&suggest, triggers_name(n));
			if (used < error_room)
				used += (size_t)snprintf(error + used, error_room - used, "%s %s",
							 n ? "," : "", triggers_name(n));
		}
		if (suggest.best && used < error_room)
			snprintf(error + used, error_room - used, "; did you mean %s?", suggest.best);
		return -EINVAL;
	}
	return 0;
}
