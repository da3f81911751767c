/* SPDX-License-Identifier: Apache-2.0 */
/* daemon_client.h: for commands that ask the daemon of a store something. */
#ifndef RECORDER_DAEMON_CLIENT_H
#define RECORDER_DAEMON_CLIENT_H

#include "command.h"
#include "http/client.h"

/* Where a command finds its daemon. NULL: as the configuration says. */
struct daemon_place {
	const char *store, *run_dir;
};

/*
 * Opens a client, or prints why not and returns what the command has to return (COMMAND_NO_DAEMON, …); 0 is
 * success.
 */
int daemon_client_open(const struct command_call *call, const struct daemon_place *place,
		       struct http_client **ret_client);

/* Asks and returns 0 with the answer, or prints and returns the exit status. An answer that says no is printed. */
int daemon_client_ask(const struct command_call *call, struct http_client *client, const char *path,
		      const cJSON *body, cJSON **ret_answer);

#endif
