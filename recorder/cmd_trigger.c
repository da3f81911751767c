/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon_client.h"
#include "output.h"
#include "units.h"

enum { POLL_MS = 100 };

struct trigger_options {
	bool json;
	int64_t last_ns, wait_ns;
	const char *reason;
	struct daemon_place place;
};

static const struct trigger_options trigger_defaults = {.wait_ns = 60000000000};

static const struct option_row trigger_options[] = {
	OPTION_ROW_BOUND(0, "last", "TIME", OPTION_DURATION, struct trigger_options, last_ns, 1000000, 86400000000000,
			 "keep the last TIME, instead of the usual window around now"),
	OPTION_ROW(0, "reason", "TEXT", OPTION_TEXT, struct trigger_options, reason, "why, for the report"),
	OPTION_ROW(0, "wait", "TIME", OPTION_DURATION, struct trigger_options, wait_ns,
		   "wait at most TIME for the incident to be written (60 s); 0 = do not wait"),
	OPTION_ROW(0, "store", "DIR", OPTION_TEXT, struct trigger_options, place.store, "the daemon's store"),
	OPTION_ROW(0, "run-dir", "DIR", OPTION_TEXT, struct trigger_options, place.run_dir, "the daemon's run directory"),
	OPTION_ROW_FLAG('j', "json", struct trigger_options, json, "print JSON"),
	OPTION_ROWS_END,
};

static cJSON *body_of(const struct trigger_options *options)
{
	cJSON *body = cJSON_CreateObject();
	char text[UNITS_TEXT_MAX];
	if (options->last_ns > 0)
		output_json_text(body, "last", units_print_duration(text, options->last_ns));
	output_json_text(body, "reason", options->reason ? options->reason : "asked for on the command line");
	return body;
}

/* The incident's entry once it is written, NULL if that takes longer than we wait. */
static cJSON *wait_for(struct http_client *client, const char *id, int64_t wait_ns)
{
	char path[128];
	const struct timespec pause = {.tv_nsec = POLL_MS * 1000000};
	snprintf(path, sizeof(path), "/api/v1/incidents/%s", id);
	for (int64_t waited = 0; waited < wait_ns; waited += POLL_MS * INT64_C(1000000)) {
		cJSON *answer;
		long status;
		if (http_client_ask(client, path, NULL, &status, &answer) < 0)
			return NULL;
		if (status == 200)
			return answer;
		cJSON_Delete(answer);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static const char *text_of(const cJSON *json, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(json, key));
	return text ? text : "";
}

static void print(const struct trigger_options *options, const char *id, cJSON *entry)
{
	if (options->json) {
		cJSON *json = entry ? entry : cJSON_CreateObject();
		if (!entry)
			output_json_text(json, "id", id);
		cJSON_AddBoolToObject(json, "written", entry != NULL);
		output_json_print(json, stdout);
		return;
	}
	if (entry)
		printf("incident %.8s: %s; %s   %s\n", id, text_of(entry, "verdict"), text_of(entry, "sentence"),
		       text_of(entry, "folder"));
	else
		printf("incident %.8s is open; driverec show %.8s once it is written\n", id, id);
	cJSON_Delete(entry);
}

static int run(const struct command_call *call)
{
	const struct trigger_options *options = call->options;
	struct http_client *client;
	cJSON *answer;
	int status = daemon_client_open(call, &options->place, &client);
	if (status)
		return status;
	cJSON *body = body_of(options);
	status = daemon_client_ask(call, client, "/api/v1/trigger", body, &answer);
	cJSON_Delete(body);
	if (status == 0) {
		const char *id = text_of(answer, "id");
		print(options, id, wait_for(client, id, options->wait_ns));
		cJSON_Delete(answer);
	}
	http_client_free(client);
	return status;
}

const struct command command_trigger = {
	.name = "trigger",
	.summary = "keep what happened just now as an incident",
	.operands = "",
	.details = "Asks the running daemon to freeze the rings now. Without --last the incident has the usual window "
		   "around now; with it, what the rings still hold of the last TIME.",
	.examples = "driverec trigger --last 2min --reason \"loss jumped\"",
	.options = trigger_options,
	.options_bytes = sizeof(struct trigger_options),
	.defaults = &trigger_defaults,
	.run = run,
};
