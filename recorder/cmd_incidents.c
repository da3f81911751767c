/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command.h"
#include "output.h"
#include "store_option.h"
#include "suppressed_list.h"

struct incidents_options {
	const char *store, *trigger, *severity;
	int64_t since_ns;
	bool json, all, suppressed;
};

static const struct option_row incidents_rows[] = {
	OPTION_ROW_FLAG('j', "json", struct incidents_options, json, "print JSON"),
	OPTION_ROW_FLAG('a', "all", struct incidents_options, all,
			"notes too, and folders that cannot be read"),
	OPTION_ROW_FLAG(0, "suppressed", struct incidents_options, suppressed,
			"instead: what fired and made no incident, and why"),
	OPTION_ROW(0, "severity", "LEVEL", OPTION_TEXT, struct incidents_options, severity,
		   "note, warn or critical, and what is above"),
	OPTION_ROW(0, "trigger", "NAME", OPTION_TEXT, struct incidents_options, trigger,
		   "only of this trigger"),
	OPTION_ROW(0, "since", "TIME", OPTION_DURATION, struct incidents_options, since_ns,
		   "only of the last TIME"),
	OPTION_ROW(0, "last", "TIME", OPTION_DURATION, struct incidents_options, since_ns,
		   "the same as --since"),
	OPTION_ROW(0, "store", "DIR", OPTION_TEXT, struct incidents_options, store,
		   "where incidents are kept"),
	OPTION_ROWS_END,
};

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int parse_severity(const char *text)
{
	for (int i = TRIGGERS_NOTE; i <= TRIGGERS_CRITICAL; i++) {
		if (!strcmp(text, triggers_severity_name((enum triggers_severity)i)))
			return i;
	}
	return -EINVAL;
}

/* Notes of others than the operator stay out of the short list. */
static bool wanted(const struct incidents_options *options, int severity, int64_t since,
		   const struct incidents_entry *entry)
{
	bool asked_for = !strcmp(entry->trigger, "manual") || !strcmp(entry->trigger, "crash");

	if (!entry->readable)
		return options->all;
	if (options->trigger && strcmp(options->trigger, entry->trigger) != 0)
		return false;
	if (options->since_ns && entry->t0_ns < since)
		return false;
	if (options->severity)
		return (int)entry->severity >= severity;
	return options->all || asked_for || entry->severity > TRIGGERS_NOTE || options->trigger;
}

static const char *state_of(const struct incidents_entry *entry)
{
	if (!entry->ongoing)
		return entry->kept ? "kept" : "";
	if (entry->resolved_ns)
		return entry->kept ? "resolved, kept" : "resolved";
	return entry->kept ? "open, kept" : "open";
}

static void add_row(struct output_table *table, struct incidents_store *store,
		    const struct incidents_entry *entry, unsigned digits)
{
	char text[OUTPUT_TEXT_MAX];
	uint64_t bytes = 0;

	incidents_store_bytes(store, entry->folder, &bytes);
	if (!entry->readable) {
		output_table_cell(table, "?");
		output_table_cell(table, "%s", entry->folder);
		for (int i = 0; i < 6; i++)
			output_table_cell(table, "%s", "");
		output_table_cell(table, "%s", output_bytes(text, bytes));
		output_table_cell(table, "no manifest");
		return;
	}
	output_table_cell(table, "%.*s", (int)digits, entry->id);
	output_table_cell(table, "%s", output_clock(text, entry->t0_ns));
	output_table_cell(table, "%s", triggers_severity_name(entry->severity));
	output_table_cell(table, "%s", entry->trigger);
	if (entry->rank == UINT32_MAX)
		output_table_cell(table, "%s", "");
	else
		output_table_cell(table, "%u", entry->rank);
	output_table_cell(table, "%s", entry->step < 0 ? "" : output_count(text, (uint64_t)entry->step));
	output_table_cell(table, "%s", output_duration(text, entry->lasted_ns));
	output_table_cell(table, "%s/%s", entry->host_spans, entry->device_events);
	output_table_cell(table, "%s", output_bytes(text, bytes));
	output_table_cell(table, "%s", state_of(entry));
}

static cJSON *entry_json(struct incidents_store *store, const struct incidents_entry *entry, unsigned digits)
{
	cJSON *json = cJSON_CreateObject();
	char path[INCIDENTS_PATH_MAX + INCIDENTS_FOLDER_MAX + 16], text[OUTPUT_TEXT_MAX];
	uint64_t bytes = 0;

	incidents_store_bytes(store, entry->folder, &bytes);
	snprintf(path, sizeof(path), "%s/incidents/%s", incidents_store_path(store), entry->folder);
	output_json_text(json, "id", entry->id);
	snprintf(text, sizeof(text), "%.*s", (int)digits, entry->id);
	output_json_text(json, "short_id", text);
	output_json_text(json, "folder", path);
	cJSON_AddBoolToObject(json, "readable", entry->readable);
	output_json_text(json, "trigger", entry->trigger);
	output_json_text(json, "severity", triggers_severity_name(entry->severity));
	output_json_text(json, "job", entry->job);
	if (entry->rank != UINT32_MAX)
		output_json_count(json, "rank", entry->rank);
	if (entry->step >= 0)
		output_json_signed(json, "step", entry->step);
	output_json_ns(json, "t0_ns", entry->t0_ns);
	output_json_ns(json, "detected_ns", entry->detected_ns);
	if (entry->resolved_ns)
		output_json_ns(json, "resolved_ns", entry->resolved_ns);
	output_json_ns(json, "lasted_ns", entry->lasted_ns);
	cJSON_AddBoolToObject(json, "ongoing", entry->ongoing);
	cJSON_AddBoolToObject(json, "kept", entry->kept);
	output_json_text(json, "verdict", entry->verdict);
	output_json_text(json, "host_spans", entry->host_spans);
	output_json_text(json, "device_events", entry->device_events);
	output_json_count(json, "bytes", bytes);
	output_json_text(json, "sentence", entry->sentence);
	return json;
}

static int print_table(struct incidents_store *store, const struct incidents_entry *entries,
		       const bool *shown, size_t count, unsigned digits)
{
	static const struct output_column columns[] = {
		{"ID", 0},   {"AT", 0},     {"SEVERITY", 0},     {"TRIGGER", 0}, {"RANK", 1},
		{"STEP", 1}, {"LASTED", 1}, {"SPANS/DEVICE", 0}, {"SIZE", 1},    {"", 0},
	};
	struct output_table *table = output_table_new(columns, sizeof(columns) / sizeof(columns[0]));
	int r;

	if (!table)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		if (shown[i])
			add_row(table, store, &entries[i], digits);
	}
	r = output_table_print(table, stdout);
	output_table_free(table);
	return r;
}

/* The latest one of those shown that can be looked into. */
static void print_next(const struct incidents_options *options, const struct incidents_entry *entries,
		       const bool *shown, size_t count, unsigned digits)
{
	const char *more = "";

	for (size_t i = 0; i < count; i++) {
		if (!shown[i])
			more = "   (more with --all)";
	}
	while (count > 0 && (!shown[count - 1] || !entries[count - 1].readable))
		count--;
	if (count > 0)
		printf("next: driverec show %.*s%s%s%s\n", (int)digits, entries[count - 1].id,
		       options->store ? " --store " : "", options->store ? options->store : "", more);
}

static int print(struct incidents_store *store, const struct incidents_options *options,
		 const struct incidents_entry *entries, const bool *shown, size_t count)
{
	unsigned digits = incidents_store_id_digits(entries, count);
	size_t n = 0, hidden = 0;
	cJSON *list;

	for (size_t i = 0; i < count; i++) {
		n += shown[i];
		hidden += !shown[i];
	}
	if (options->json) {
		list = cJSON_CreateArray();
		for (size_t i = 0; i < count; i++) {
			if (shown[i])
				cJSON_AddItemToArray(list, entry_json(store, &entries[i], digits));
		}
		return output_json_print(list, stdout);
	}
	if (n == 0)
		printf("no incidents in %s/incidents%s\n", incidents_store_path(store),
		       hidden ? " that fit; see --all" : "");
	else if (print_table(store, entries, shown, count, digits) < 0)
		return -ENOMEM;
	else
		print_next(options, entries, shown, count, digits);
	return 0;
}

static int suppressed_run(const struct command_call *call, struct incidents_store *store, int severity,
			  int64_t since)
{
	const struct incidents_options *options = call->options;
	const struct suppressed_choice choice = {
		.trigger = options->trigger,
		.since_ns = options->since_ns ? since : INT64_MIN,
		.severity = (enum triggers_severity)severity,
		.notes = options->all || options->severity || options->trigger,
		.json = options->json,
	};
	const char *path = incidents_store_path(store);
	int r = suppressed_list_print(path, &choice, stdout);

	if (r == -EBADMSG)
		return command_failed(call,
				      "%s/%s: damaged, or not written by this version of driverec; "
				      "it can be removed",
				      path, SUPPRESSED_FILE);
	return r < 0 ? command_failed(call, "%s/%s: %s", path, SUPPRESSED_FILE, strerror(-r)) : COMMAND_DONE;
}

static int incidents_run(const struct command_call *call)
{
	const struct incidents_options *options = call->options;
	int severity = options->severity ? parse_severity(options->severity) : TRIGGERS_NOTE;
	int64_t since = now_ns() - options->since_ns;
	struct incidents_store *store = NULL;
	struct incidents_entry *entries = NULL;
	size_t count = 0;
	bool *shown;
	int r;

	if (severity < 0)
		return command_misuse(call, "--severity %s: note, warn or critical", options->severity);
	r = store_option_open(call, options->store, &store);
	if (r != COMMAND_DONE)
		return r;
	if (options->suppressed) {
		r = suppressed_run(call, store, severity, since);
		incidents_store_free(store);
		return r;
	}
	r = incidents_store_list(store, &entries, &count);
	shown = calloc(count + 1, sizeof(*shown));
	for (size_t i = 0; shown && i < count; i++)
		shown[i] = wanted(options, severity, since, &entries[i]);
	if (r == 0)
		r = shown ? print(store, options, entries, shown, count) : -ENOMEM;
	if (r < 0)
		r = command_failed(call, "%s: %s", incidents_store_path(store), strerror(-r));
	free(shown);
	free(entries);
	incidents_store_free(store);
	return r;
}

const struct command command_incidents = {
	.name = "incidents",
	.summary = "list what was kept",
	.operands = "",
	.details = "One line an incident, oldest first: when, how bad, which trigger, rank and step, how "
		   "long it lasted, "
		   "whether its host spans and device events are complete, partial or none, and its size.\n"
		   "Notes of triggers that alarm nobody are left out without --all.\n"
		   "With --suppressed one line a firing that made no incident, with the gate that held it "
		   "back; a "
		   "storm is one line with a count. What was only recorded is left out without --all.",
	.examples = "driverec incidents --since 1d\ndriverec incidents --severity critical --json\n"
		    "driverec incidents --suppressed --last 1h",
	.options = incidents_rows,
	.options_bytes = sizeof(struct incidents_options),
	.operands_min = 0,
	.operands_max = 0,
	.run = incidents_run,
};
