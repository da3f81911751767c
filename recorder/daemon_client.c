/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon_client.h"

#include <driverec/identity.h>

#include <errno.h>
#include <string.h>

#include "config.h"

static int no_daemon(const struct command_call *call, const char *store)
{
	command_failed(call, "no daemon is running for store %s; start one with driverec run", store);
	return COMMAND_NO_DAEMON;
}

int daemon_client_open(const struct command_call *call, const struct daemon_place *place,
		       struct http_client **ret_client)
{
	char run_dir[256];
	const char *why = "";
	struct config *config = config_load_or_complain(call->config_path);
	if (!config)
		return COMMAND_FAILED;
	const char *store = place->store ? place->store : config->store;
	int status = 0;
	int result = drec_run_dir(place->run_dir ? place->run_dir : config->run_dir, run_dir, sizeof(run_dir), &why);
	if (result < 0) {
		status = command_failed(call, "%s: %s", why, strerror(-result));
	} else {
		result = http_client_open(run_dir, store, ret_client);
		if (result == -ENOENT || result == -ECONNREFUSED)
			status = no_daemon(call, store);
		else if (result < 0)
			status = command_failed(call, "the daemon of store %s cannot be asked: %s", store,
						strerror(-result));
	}
	config_free(config);
	return status;
}

int daemon_client_ask(const struct command_call *call, struct http_client *client, const char *path,
		      const cJSON *body, cJSON **ret_answer)
{
	cJSON *answer;
	long status;
	int result = http_client_ask(client, path, body, &status, &answer);
	if (result == -ECONNREFUSED || result == -ENOENT) {
		command_failed(call, "the daemon is gone; start one with driverec run");
		return COMMAND_NO_DAEMON;
	}
	if (result < 0)
		return command_failed(call, "the daemon does not answer: %s", strerror(-result));
	if (status >= 400) {
		int failed = command_failed(call, "%s", http_client_error(answer, status));
		cJSON_Delete(answer);
		return failed;
	}
	*ret_answer = answer;
	return 0;
}
