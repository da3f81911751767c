/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "command.h"
#include "config.h"
#include "incidents/manifest.h"
#include "replay.h"
#include "ring_file.h"
#include "store_option.h"

struct replay_options {
	bool steps;
	const char *store;
	const char *fail_on;
	struct replay_settings settings;
};

static const struct option_row replay_rows[] = {
	OPTION_ROW_FLAG(0, "steps", struct replay_options, steps,
			"the files are tables of step times: run,time_ms,kind,value_s,…"),
	OPTION_ROW(0, "step", "PATTERN", OPTION_TEXTS, struct replay_options, settings.step,
		   "names of spans that are steps (default: ProfilerStep#* step train_step \"train #*\")"),
	OPTION_ROW(0, "store", "DIR", OPTION_TEXT, struct replay_options, store,
		   "where incidents are kept (default: as configured)"),
	OPTION_ROW(0, "set", "KEY=VALUE", OPTION_TEXTS, struct replay_options, settings.set,
		   "a trigger's setting, such as latency_spike.warn=2"),
	OPTION_ROW(0, "trigger", "NAME", OPTION_TEXT, struct replay_options, settings.trigger,
		   "only firings of this trigger"),
	OPTION_ROW_FLAG('a', "all", struct replay_options, settings.all,
			"also notes, and what the gates held back"),
	OPTION_ROW_FLAG(0, "explain", struct replay_options, settings.explain,
			"what was believed of every series at the end"),
	OPTION_ROW(0, "fail-on", "SEVERITY", OPTION_TEXT, struct replay_options, fail_on,
		   "exit with 3 if anything as severe as this fired"),
	OPTION_ROW_FLAG('j', "json", struct replay_options, settings.json, "one JSON object a firing"),
	OPTION_ROWS_END,
};

static int severity_number(const char *name)
{
	for (int i = TRIGGERS_NOTE; i <= TRIGGERS_CRITICAL; i++)
		if (!strcmp(name, triggers_severity_name((enum triggers_severity)i)))
			return i;
	return -1;
}

/* The paths of an incident's windows. */
struct windows {
	char *path[REPLAY_RINGS_MAX];
	unsigned count;
};

static int find_windows(struct incidents_store *store, const struct incidents_entry *entry, struct windows *windows)
{
	static const char ending[] = ".drec";
	const cJSON *file;
	cJSON *manifest;
	int result = incident_manifest_read(store, entry->folder, &manifest);
	if (result < 0)
		return result;
	cJSON_ArrayForEach(file, cJSON_GetObjectItemCaseSensitive(manifest, "files"))
	{
		char name[256];
		json_text(file, "path", name, sizeof(name));
		size_t bytes = strlen(name);
		if (bytes < sizeof(ending) || strcmp(name + bytes - (sizeof(ending) - 1), ending) != 0 ||
		    strncmp(name, "raw/", 4) != 0 || strstr(name, ".."))
			continue;
		if (windows->count == REPLAY_RINGS_MAX)
			result = -E2BIG;
		else if (asprintf(&windows->path[windows->count], "%s/incidents/%s/%s", incidents_store_path(store),
				  entry->folder, name) < 0)
			result = -ENOMEM;
		else
			windows->count++;
		if (result < 0)
			break;
	}
	cJSON_Delete(manifest);
	return result;
}

static int replay_incident(const struct command_call *call, struct replay *replay, const char *what)
{
	const struct replay_options *options = call->options;
	struct incidents_store *store = NULL;
	struct incidents_entry entry;
	struct windows windows = {.count = 0};
	char run[32], error[512] = "";
	int status = store_option_open(call, options->store, &store);
	if (status == COMMAND_DONE)
		status = store_option_find(call, store, what, &entry);
	if (status == COMMAND_DONE) {
		int result = find_windows(store, &entry, &windows);
		snprintf(run, sizeof(run), "%.8s", entry.id);
		if (result < 0)
			status = command_failed(call, "%s: %s", entry.folder, strerror(-result));
		else if (windows.count == 0)
			status = command_failed(call, "%s: holds no raw window; driverec show %.8s says why",
						entry.folder, entry.id);
		else if (replay_rings(replay, run, (const char *const *)windows.path, windows.count, error,
				      sizeof(error)) < 0)
			status = command_failed(call, "%s", error);
	}
	for (unsigned i = 0; i < windows.count; i++)
		free(windows.path[i]);
	incidents_store_free(store);
	return status;
}

/* A file that is there is meant as one; anything else names an incident. */
static int replay_one(const struct command_call *call, struct replay *replay, const char *what)
{
	const struct replay_options *options = call->options;
	const char *name = strrchr(what, '/') ? strrchr(what, '/') + 1 : what;
	char error[512] = "";
	struct stat st;
	int result;
	if (!options->steps && (stat(what, &st) < 0 ? !strchr(what, '.') : S_ISDIR(st.st_mode)))
		return replay_incident(call, replay, what);
	if (options->steps)
		result = replay_steps(replay, what, error, sizeof(error));
	else if (ring_file_is(what))
		result = replay_rings(replay, name, &what, 1, error, sizeof(error));
	else
		result = replay_trace(replay, what, error, sizeof(error));
	return result ? command_failed(call, "%s", error) : COMMAND_DONE;
}

static int replay_run(const struct command_call *call)
{
	const struct replay_options *options = call->options;
	struct replay_settings settings = options->settings;
	struct replay replay = {.settings = &settings, .out = stdout};
	int fail_on = options->fail_on ? severity_number(options->fail_on) : TRIGGERS_CRITICAL + 1;
	if (fail_on < 0)
		return command_misuse(call, "--fail-on %s: it must be note, warn or critical",
				      options->fail_on);
	struct config *config = config_load_or_complain(call->config_path);
	if (!config)
		return COMMAND_FAILED;
	settings.config = config;
	int status = COMMAND_DONE;
	for (int i = 0; i < call->argc && status == COMMAND_DONE; i++)
		status = replay_one(call, &replay, call->argv[i]);
	config_free(config);
	if (status != COMMAND_DONE)
		return status;
	replay_summary(&replay);
	for (int severity = fail_on; severity <= TRIGGERS_CRITICAL; severity++)
		if (replay.firings[severity])
			return COMMAND_PROBLEMS;
	return COMMAND_DONE;
}

const struct command command_replay = {
	.name = "replay",
	.summary = "run the triggers over recorded history",
	.operands = "FILE|ID...",
	.details = "Reads Chrome traces, XPlane files, rings, window files and incidents, or with --steps tables of step "
		   "times, and says what would have fired: the same triggers, gates and configuration as live, in event time. "
		   "Warnings and critical firings are printed.\n"
		   "In a trace, steps are the spans whose name matches --step, else spans with the same "
		   "\"step\" in their "
		   "args; where there are too few to learn from, every frequent name on a track is watched. In rings "
		   "and incidents the configured series are watched, as live.",
	.examples = "driverec replay trace.json.gz\ndriverec replay 7f3a --explain\ndriverec replay --steps history.csv.gz --set "
		    "latency_spike.warn=2 --json",
	.options = replay_rows,
	.options_bytes = sizeof(struct replay_options),
	.operands_min = 1,
	.operands_max = COMMAND_OPERANDS_ANY,
	.run = replay_run,
};
