/* SPDX-License-Identifier: Apache-2.0 */
#include "store_option.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "paths.h"

/* People type the folder that they saw. */
static void to_store(char *path)
{
	static const char part[] = "/incidents";
	size_t length = strlen(path);

	while (length > 1 && path[length - 1] == '/')
		path[--length] = 0;
	if (length > sizeof(part) - 1 && !strcmp(path + length - (sizeof(part) - 1), part))
		path[length - (sizeof(part) - 1)] = 0;
}

char *store_option_path(const struct command_call *call, const char *option)
{
	struct config *config;
	char *path;

	if (option) {
		path = paths_expand(option);
		if (path)
			to_store(path);
		else
			command_failed(call, "out of memory");
		return path;
	}
	config = config_load_or_complain(call->config_path);
	if (!config)
		return NULL;
	path = config->store ? strdup(config->store) : paths_default_store();
	config_free(config);
	if (!path)
		command_failed(call, "no home folder for the store: name one with --store DIR");
	return path;
}

/* "D/incidents/20261130T031244Z-stall-7f3a0000" is in the store D, whatever the configuration says. */
static char *store_of_folder(const char *folder)
{
	char *manifest = NULL, *path = NULL;

	if (asprintf(&manifest, "%s/manifest.json", folder) < 0)
		return NULL;
	if (strchr(folder, '/') && access(manifest, F_OK) == 0)
		path = realpath(folder, NULL);
	free(manifest);
	char *slash = path ? strrchr(path, '/') : NULL;
	if (slash && slash != path) {
		*slash = 0;
		to_store(path);
	}
	return path;
}

int store_option_open(const struct command_call *call, const char *option, struct incidents_store **ret_store)
{
	char *path = !option && call->argc > 0 ? store_of_folder(call->argv[0]) : NULL;
	int r;

	if (!path)
		path = store_option_path(call, option);

	if (!path)
		return COMMAND_FAILED;
	r = incidents_store_open(path, false, ret_store);
	if (r == -ENOENT)
		r = command_failed(call,
				   "%s: no store there; a daemon makes it (driverec run), or name one with "
				   "--store DIR",
				   path);
	else if (r < 0)
		r = command_failed(call, "%s: the store could not be opened: %s", path, strerror(-r));
	free(path);
	return r;
}

int store_option_find(const struct command_call *call, struct incidents_store *store, const char *what,
		      struct incidents_entry *ret_entry)
{
	int r = incidents_store_find(store, what, ret_entry);

	switch (r) {
	case 0:
		return COMMAND_DONE;
	case -EEXIST:
		return command_failed(call,
				      "%s: several incidents begin like this; give more digits "
				      "(driverec incidents)",
				      what);
	case -EINVAL:
		return command_failed(
			call, "%s: too short for an id; give at least 4 digits (driverec incidents)", what);
	case -ENOENT:
		return command_failed(call, "%s: no such incident in %s (driverec incidents --all)", what,
				      incidents_store_path(store));
	default:
		return command_failed(call, "%s: %s", incidents_store_path(store), strerror(-r));
	}
}
