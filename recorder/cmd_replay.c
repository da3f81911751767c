/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "command.h"
#include "replay.h"

struct replay_options {
	bool steps;
	const char *fail_on;
	struct replay_settings settings;
};

static const struct option_row replay_rows[] = {
	OPTION_ROW_FLAG(0, "steps", struct replay_options, steps,
			"the files are tables of step times: run,time_ms,kind,value_s,…"),
	OPTION_ROW(0, "step", "PATTERN", OPTION_TEXTS, struct replay_options, settings.step,
		   "names of spans that are steps (default: ProfilerStep#* step train_step \"train #*\")"),
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

static int replay_run(const struct command_call *call)
{
	const struct replay_options *options = call->options;
	struct replay replay = {.settings = &options->settings, .out = stdout};
	int fail_on = options->fail_on ? severity_number(options->fail_on) : TRIGGERS_CRITICAL + 1;
	char error[512] = "";
	if (fail_on < 0)
		return command_misuse(call, "--fail-on %s: it must be note, warn or critical",
				      options->fail_on);
	for (int i = 0; i < call->argc; i++) {
		int result = options->steps ? replay_steps(&replay, call->argv[i], error, sizeof(error))
					    : replay_trace(&replay, call->argv[i], error, sizeof(error));
		if (result)
			return command_failed(call, "%s", error);
	}
	replay_summary(&replay);
	for (int severity = fail_on; severity <= TRIGGERS_CRITICAL; severity++)
		if (replay.firings[severity])
			return COMMAND_PROBLEMS;
	return COMMAND_DONE;
}

const struct command command_replay = {
	.name = "replay",
	.summary = "run the triggers over recorded history",
	.operands = "FILE...",
	.details = "Reads Chrome traces, or with --steps tables of step times, and says what would have "
		   "fired: the same "
		   "triggers and gates as live, in event time. Warnings and critical firings are printed.\n"
		   "In a trace, steps are the spans whose name matches --step, else spans with the same "
		   "\"step\" in their "
		   "args; where there are too few to learn from, every frequent name on a track is watched.",
	.examples = "driverec replay trace.json.gz\ndriverec replay --steps history.csv.gz --set "
		    "latency_spike.warn=2 --json",
	.options = replay_rows,
	.options_bytes = sizeof(struct replay_options),
	.operands_min = 1,
	.operands_max = COMMAND_OPERANDS_ANY,
	.run = replay_run,
};
