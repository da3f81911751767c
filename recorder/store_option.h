/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_option.h: the store of a command that looks at kept incidents: --store, else the configuration's.
 */
#ifndef RECORDER_STORE_OPTION_H
#define RECORDER_STORE_OPTION_H

#include "command.h"
#include "incidents/store.h"

/* The store's path, allocated; NULL after a message. A folder named "incidents" is taken for the store around
 * it. */
char *store_option_path(const struct command_call *call, const char *option);

/* Opens it: --store, else the store that the first operand is a folder of, else the configuration's. On failure returns the command's exit status, after a message; else COMMAND_DONE. */
int store_option_open(const struct command_call *call, const char *option,
		      struct incidents_store **ret_store);

/* Finds the incident of an operand. As above. */
int store_option_find(const struct command_call *call, struct incidents_store *store, const char *what,
		      struct incidents_entry *ret_entry);

#endif
