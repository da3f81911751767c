/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "config.h"
#include "incidents/manifest.h"
#include "replay.h"
#include "replay_compare.h"
#include "replay_report.h"
#include "replay_set.h"
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
			"the files (- is stdin) are tables of step times: run,time_ms,kind,value_s,step"),
	OPTION_ROW(0, "step", "PATTERN", OPTION_TEXTS, struct replay_options, settings.step,
		   "names of spans that are steps (default: ProfilerStep#* step train_step \"train #*\")"),
	OPTION_ROW(0, "store", "DIR", OPTION_TEXT, struct replay_options, store,
		   "where incidents are kept (default: as configured)"),
	OPTION_ROW(
		0, "set", "KEY=VALUE", OPTION_TEXTS, struct replay_options, settings.set,
		"another setting of a trigger or gate, such as latency_spike.warn=2; the difference from the "
		"configured one is said"),
	OPTION_ROW(0, "trigger", "NAME", OPTION_TEXTS, struct replay_options, settings.trigger,
		   "only firings of this trigger, or of several"),
	OPTION_ROW_FLAG('a', "all", struct replay_options, settings.all,
			"also notes, what the gates held back, and all runs"),
	OPTION_ROW_FLAG(0, "explain", struct replay_options, settings.explain,
			"what each detector believed of every series at the end"),
	OPTION_ROW(0, "fail-on", "SEVERITY", OPTION_TEXT, struct replay_options, fail_on,
		   "exit with 3 if anything as severe as this fired: note, warn or critical"),
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

/* Rings and windows that make one run. */
struct windows {
	char *path[REPLAY_RINGS_MAX];
	unsigned count;
};

static int add_window(struct windows *windows, const char *folder, const char *name)
{
	if (windows->count == REPLAY_RINGS_MAX)
		return -E2BIG;
	if (asprintf(&windows->path[windows->count], "%s/%s", folder, name) < 0)
		return -ENOMEM;
	windows->count++;
	return 0;
}

static void forget_windows(struct windows *windows)
{
	for (unsigned i = 0; i < windows->count; i++)
		free(windows->path[i]);
	windows->count = 0;
}

static int find_windows(struct incidents_store *store, const struct incidents_entry *entry,
			struct windows *windows)
{
	static const char ending[] = ".drec";
	char folder[4096];
	const cJSON *file;
	cJSON *manifest;
	int result = incident_manifest_read(store, entry->folder, &manifest);
	if (result < 0)
		return result;
	snprintf(folder, sizeof(folder), "%s/incidents/%s", incidents_store_path(store), entry->folder);
	cJSON_ArrayForEach(file, cJSON_GetObjectItemCaseSensitive(manifest, "files"))
	{
		char name[256];
		json_text(file, "path", name, sizeof(name));
		size_t bytes = strlen(name);
		if (bytes < sizeof(ending) || strcmp(name + bytes - (sizeof(ending) - 1), ending) != 0 ||
		    strncmp(name, "raw/", 4) != 0 || strstr(name, ".."))
			continue;
		result = add_window(windows, folder, name);
		if (result < 0)
			break;
	}
	cJSON_Delete(manifest);
	return result;
}

static int replay_incident(const struct command_call *call, struct replay *replay, const char *what,
			   struct replay_about *ret_about)
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
		*ret_about = (struct replay_about){.known = true, .t0_ns = entry.t0_ns};
		snprintf(ret_about->trigger, sizeof(ret_about->trigger), "%s", entry.trigger);
		snprintf(ret_about->store, sizeof(ret_about->store), "%s", incidents_store_path(store));
		if (result < 0)
			status = command_failed(call, "%s: %s", entry.folder, strerror(-result));
		else if (windows.count == 0)
			status = command_failed(call, "%s: holds no raw window; driverec show %.8s says why",
						entry.folder, entry.id);
		else if (replay_rings(replay, run, (const char *const *)windows.path, windows.count, error,
				      sizeof(error)) < 0)
			status = command_failed(call, "%s", error);
	}
	forget_windows(&windows);
	incidents_store_free(store);
	return status;
}

static int is_shown(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* The rings of a folder. -ENOENT: it is an incident's; -ENODATA: there are none. */
static int find_rings(const char *folder, struct windows *windows)
{
	struct dirent **entry = NULL;
	int result = 0, count = scandir(folder, &entry, is_shown, alphasort);
	for (int i = 0; i < count; i++) {
		if (result == 0 && !strcmp(entry[i]->d_name, "manifest.json"))
			result = -ENOENT;
		if (result == 0)
			result = add_window(windows, folder, entry[i]->d_name);
		free(entry[i]);
		unsigned last = windows->count - 1;
		if (result == 0 && !ring_file_is(windows->path[last])) {
			free(windows->path[last]);
			windows->count--;
		}
	}
	free(entry);
	return result ? result : windows->count ? 0 : -ENODATA;
}

/* The rings of a job are one run: its ranks wait for each other. */
static int replay_folder(const struct command_call *call, struct replay *replay, const char *folder,
			 struct replay_about *ret_about)
{
	struct windows windows = {.count = 0};
	char error[512] = "";
	int status = COMMAND_DONE, result = find_rings(folder, &windows);
	if (result == -E2BIG)
		status = command_failed(call, "%s: more than %d files", folder, REPLAY_RINGS_MAX);
	else if (result == -ENOENT)
		status = replay_incident(call, replay, folder, ret_about);
	else if (result < 0)
		status = command_failed(call, "%s: %s", folder,
					result == -ENODATA ? "no incident, and no ring or window file in it"
							   : strerror(-result));
	else if (replay_rings(replay, folder, (const char *const *)windows.path, windows.count, error,
			      sizeof(error)) < 0 &&
		 !replay_interrupted())
		status = command_failed(call, "%s", error);
	forget_windows(&windows);
	return status;
}

/* A pipe can be read once, and settings are compared in two passes. */
static int spool_stdin(void)
{
	char buffer[65536];
	ssize_t count = 1;
	FILE *file = tmpfile();
	int fd = file ? dup(fileno(file)) : -1;
	if (file)
		fclose(file);
	while (fd >= 0 && count > 0 && !replay_interrupted()) {
		count = read(STDIN_FILENO, buffer, sizeof(buffer));
		if (count > 0 && write(fd, buffer, (size_t)count) != count)
			count = -1;
	}
	if (fd >= 0 && (count < 0 || lseek(fd, 0, SEEK_SET) < 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* A file that is there is meant as one; anything else names an incident. `fd`: what was stdin, -1 = stdin
 * itself. */
static int replay_one(const struct command_call *call, struct replay *replay, const char *what, int fd,
		      struct replay_about *ret_about)
{
	const struct replay_options *options = call->options;
	const char *name = strrchr(what, '/') ? strrchr(what, '/') + 1 : what;
	char error[512] = "";
	struct stat st;
	int result;
	if (!options->steps && !strcmp(what, "-"))
		return command_misuse(call, "from stdin only tables of step times are read: --steps -");
	bool is_there = stat(what, &st) == 0;
	if (!options->steps && is_there && S_ISDIR(st.st_mode))
		return replay_folder(call, replay, what, ret_about);
	if (!options->steps && !is_there && !strchr(what, '.'))
		return replay_incident(call, replay, what, ret_about);
	if (fd >= 0)
		result = lseek(fd, 0, SEEK_SET) < 0
				 ? -errno
				 : replay_steps_fd(replay, fd, "stdin", error, sizeof(error));
	else if (options->steps)
		result = replay_steps(replay, what, error, sizeof(error));
	else if (ring_file_is(what))
		result = replay_rings(replay, name, &what, 1, error, sizeof(error));
	else
		result = replay_trace(replay, what, error, sizeof(error));
	if (replay_interrupted())
		return COMMAND_DONE;
	if (result == -EBADMSG && !options->steps && strstr(name, ".csv"))
		return command_failed(call, "%s; of a table of step times say --steps", error);
	return result ? command_failed(call, "%s", error) : COMMAND_DONE;
}

/* As configured first, without a word; then as asked for; then what the difference is. */
static int replay_twice(const struct command_call *call, struct replay *replay, const char *what,
			FILE *compared)
{
	const struct replay_options *options = call->options;
	bool is_stdin = options->steps && !strcmp(what, "-");
	struct replay_settings settings = *replay->settings;
	struct replay_sides *sides = calloc(1, sizeof(*sides));
	struct replay configured = {
		.settings = &settings, .progress = replay->progress, .fired = replay_side_take};
	struct replay_about about = {.known = false};
	int fd = is_stdin && sides ? spool_stdin() : -1;
	int status = COMMAND_DONE;
	if (!sides)
		status = command_failed(call, "out of memory");
	else if (is_stdin && fd < 0)
		status = command_failed(call, "stdin: %s", strerror(errno));
	settings.set.count = 0;
	configured.fired_context = sides ? &sides->before : NULL;
	if (status == COMMAND_DONE)
		status = replay_one(call, &configured, what, fd, &about);
	replay_free(&configured);
	replay->fired = replay_side_take;
	replay->fired_context = sides ? &sides->after : NULL;
	if (status == COMMAND_DONE)
		status = replay_one(call, replay, what, fd, &about);
	replay->fired = NULL;
	if (status == COMMAND_DONE && !replay_interrupted()) {
		replay_compare_past(&about, replay->settings, sides);
		replay_compare(sides, &about, call->argc > 1 ? what : NULL, options->settings.json, compared);
	}
	if (fd >= 0)
		close(fd);
	free(sides);
	return status;
}

/* A read of stdin that waits is tried again, and finds its end. */
static void on_signal(int number)
{
	int saved = errno, nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	(void)number;
	replay_interrupt();
	if (nothing >= 0)
		dup2(nothing, STDIN_FILENO);
	errno = saved;
}

/* The first one ends the reading, the second one the command. */
static void catch_signals(void)
{
	const struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
	struct sigaction old;
	if (sigaction(SIGINT, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
		sigaction(SIGINT, &action, NULL);
}

static int check(const struct command_call *call, int *ret_fail_on)
{
	const struct replay_options *options = call->options;
	char error[512] = "";
	*ret_fail_on = options->fail_on ? severity_number(options->fail_on) : TRIGGERS_CRITICAL + 1;
	if (*ret_fail_on < 0)
		return command_misuse(call, "--fail-on %s: it must be note, warn or critical",
				      options->fail_on);
	if (replay_set_check(&options->settings.set, error, sizeof(error)) ||
	    replay_trigger_check(&options->settings.trigger, error, sizeof(error)))
		return command_misuse(call, "%s", error);
	return COMMAND_DONE;
}

static int verdict(const struct replay *replay, int fail_on)
{
	struct replay_firings total;
	replay_firings_total(&replay->counts, &total);
	for (int severity = fail_on; severity <= TRIGGERS_CRITICAL; severity++)
		if (replay_firings_of(&total, (enum triggers_severity)severity))
			return COMMAND_PROBLEMS;
	return COMMAND_DONE;
}

/* The firings of all operands, then the totals, and last what other settings make of it. */
static int replay_all(const struct command_call *call, struct replay *replay)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *compared = open_memstream(&text, &bytes);
	struct replay_about about = {.known = false};
	int status = compared ? COMMAND_DONE : command_failed(call, "out of memory");
	for (int i = 0; i < call->argc && compared && !replay_interrupted(); i++) {
		int one = replay->settings->set.count ? replay_twice(call, replay, call->argv[i], compared)
						      : replay_one(call, replay, call->argv[i], -1, &about);
		status = one != COMMAND_DONE ? one : status;
	}
	if (replay->runs)
		replay_report_summary(replay);
	if (compared && fclose(compared) == 0)
		fputs(text, replay->out);
	free(text);
	return status;
}

static int replay_run(const struct command_call *call)
{
	const struct replay_options *options = call->options;
	struct replay_settings settings = options->settings;
	struct replay replay = {.settings = &settings, .out = stdout};
	int fail_on, status = check(call, &fail_on);
	if (status != COMMAND_DONE)
		return status;
	struct config *config = config_load_or_complain(call->config_path);
	if (!config)
		return COMMAND_FAILED;
	settings.config = config;
	replay.progress = isatty(STDERR_FILENO) ? stderr : NULL;
	catch_signals();
	status = replay_all(call, &replay);
	if (status == COMMAND_DONE)
		status = verdict(&replay, fail_on);
	replay_free(&replay);
	config_free(config);
	if (replay_interrupted()) {
		fflush(stdout);
		fprintf(stderr, "driverec replay: interrupted; this is what was read until then\n");
		raise(SIGINT);
	}
	return status;
}

const struct command command_replay = {
	.name = "replay",
	.summary = "run the triggers over recorded history",
	.operands = "FILE|FOLDER|ID...",
	.details = "Reads Chrome traces, XPlane files, rings, window files, folders of them (one run) and "
		   "incidents, or with --steps tables of step "
		   "times, and says what would have fired: the same triggers, gates and configuration as "
		   "live, in event time. "
		   "Printed are warnings and critical firings that made an incident or joined one that still "
		   "waited.\n"
		   "With --set it runs twice, as configured and with the settings given, and says the "
		   "difference.\n"
		   "In a trace, steps are the spans whose name matches --step, else spans with the same "
		   "\"step\" in their "
		   "args; where there are too few to learn from, every frequent name on a track is watched. "
		   "In rings "
		   "and incidents the configured series are watched, as live.",
	.examples = "driverec replay trace.json.gz\ndriverec replay 7f3a --set stall.factor=2\n"
		    "driverec replay 7f3a --explain\ndriverec replay --steps history.csv.gz --json --trigger "
		    "shift",
	.options = replay_rows,
	.options_bytes = sizeof(struct replay_options),
	.operands_min = 1,
	.operands_max = COMMAND_OPERANDS_ANY,
	.run = replay_run,
};
