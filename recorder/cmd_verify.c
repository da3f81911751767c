/* SPDX-License-Identifier: Apache-2.0 */
/* driverec verify: hold a reduced trace against the raw one. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <reducer/verify.h>

#include "command.h"
#include "moment.h"
#include "output.h"
#include "plain_text.h"

struct verify_options {
	bool json;
};

static const struct option_row verify_rows[] = {
	OPTION_ROW_FLAG('j', "json", struct verify_options, json, "print one JSON object"),
	OPTION_ROWS_END,
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static bool differ(const struct reducer_verify_report *report)
{
	for (int promise = REDUCER_M1; promise <= REDUCER_M5; promise++)
		if (report->failed[promise])
			return true;
	return false;
}

static void add_moment(cJSON *object, const char *name, struct reducer_moment moment)
{
	char text[MOMENT_TEXT_MAX];
	output_json_text(object, name, moment_print(text, moment));
}

static void add_differences(cJSON *document, const struct reducer_verify_report *report)
{
	cJSON *list = cJSON_AddArrayToObject(document, "differences");
	for (unsigned i = 0; list && i < report->n_differences; i++) {
		const struct reducer_difference *difference = &report->difference[i];
		char promise[4];
		cJSON *one = cJSON_CreateObject();
		snprintf(promise, sizeof(promise), "M%u", (unsigned)difference->promise % 10);
		output_json_text(one, "promise", promise);
		output_json_text(one, "track", difference->track[0] ? difference->track : NULL);
		if (difference->has_time)
			add_moment(one, "time_us", difference->time);
		else
			output_json_text(one, "time_us", NULL);
		output_json_text(one, "what", difference->what);
		cJSON_AddItemToArray(list, one);
	}
}

static int print_json(const char *raw_path, const char *reduced_path,
		      const struct reducer_verify_report *report)
{
	cJSON *document = cJSON_CreateObject();
	output_json_text(document, "raw", base_name(raw_path));
	output_json_text(document, "reduced", base_name(reduced_path));
	cJSON_AddBoolToObject(document, "same", !differ(report));
	cJSON_AddBoolToObject(document, "identical", report->identical);
	output_json_count(document, "raw_events", report->raw_events);
	output_json_count(document, "reduced_events", report->reduced_events);
	output_json_count(document, "tracks", report->tracks);
	if (!report->identical) {
		add_moment(document, "bin_us", report->bin);
		add_moment(document, "origin_us", report->origin);
	}
	if (report->has_window) {
		add_moment(document, "window_from_us", report->window_from);
		add_moment(document, "window_to_us", report->window_to);
	}
	if (report->track_pattern[0])
		output_json_text(document, "track_pattern", report->track_pattern);
	cJSON *promises = cJSON_AddObjectToObject(document, "promises");
	for (int i = REDUCER_M1; i <= REDUCER_M5; i++) {
		char name[4];
		snprintf(name, sizeof(name), "M%d", i % 10);
		cJSON *promise = cJSON_AddObjectToObject(promises, name);
		output_json_count(promise, "checked", report->checked[i]);
		output_json_count(promise, "failed", report->failed[i]);
	}
	add_differences(document, report);
	return output_json_print(document, stdout);
}

static int print_promises(const struct reducer_verify_report *report)
{
	static const struct output_column columns[] = {
		{"promise", 0}, {"", 0}, {"compared", 1}, {"different", 1}};
	struct output_table *table = output_table_new(columns, 4);
	char text[OUTPUT_TEXT_MAX];
	if (!table)
		return -ENOMEM;
	for (int i = REDUCER_M1; i <= REDUCER_M5; i++) {
		output_table_cell(table, "M%d", i);
		output_table_cell(table, "%s", reducer_promise_name((enum reducer_promise)i));
		output_table_cell(table, "%s", output_count(text, report->checked[i]));
		output_table_cell(table, "%s", output_count(text, report->failed[i]));
	}
	int result = output_table_print(table, stdout);
	output_table_free(table);
	return result;
}

static void print_differences(const struct reducer_verify_report *report)
{
	uint64_t all = 0;
	for (int i = REDUCER_M1; i <= REDUCER_M5; i++)
		all += report->failed[i];
	printf("\n%s:\n", report->n_differences < all ? "the first differences of each" : "differences");
	for (unsigned i = 0; i < report->n_differences; i++) {
		const struct reducer_difference *difference = &report->difference[i];
		char text[MOMENT_TEXT_MAX], line[640];
		int used = snprintf(line, sizeof(line), "M%d", (int)difference->promise);
		if (difference->track[0])
			used += snprintf(line + used, sizeof(line) - (size_t)used, " %s", difference->track);
		if (difference->has_time)
			used += snprintf(line + used, sizeof(line) - (size_t)used, " at %s us",
					 moment_print(text, difference->time));
		snprintf(line + used, sizeof(line) - (size_t)used, ": %s", difference->what);
		plain_text(line, sizeof(line), line, strlen(line));
		printf("  %s\n", line);
	}
}

static int print_plain(const char *raw_path, const char *reduced_path,
		       const struct reducer_verify_report *report)
{
	char raw[OUTPUT_TEXT_MAX], reduced[OUTPUT_TEXT_MAX], from[MOMENT_TEXT_MAX], to[MOMENT_TEXT_MAX];
	char names[2][256];
	plain_text(names[0], sizeof(names[0]), base_name(raw_path), strlen(base_name(raw_path)));
	plain_text(names[1], sizeof(names[1]), base_name(reduced_path), strlen(base_name(reduced_path)));
	printf("raw      %s: %s events\nreduced  %s: %s events", names[0],
	       output_count(raw, report->raw_events), names[1],
	       output_count(reduced, report->reduced_events));
	if (report->identical) {
		printf("\nsame: the files are identical\n");
		return 0;
	}
	printf(", bins of %s us from %s us on\n", moment_print(from, report->bin),
	       moment_print(to, report->origin));
	if (report->has_window)
		printf("window   %s us to %s us; the raw trace is cut to it\n",
		       moment_print(from, report->window_from), moment_print(to, report->window_to));
	if (report->track_pattern[0])
		printf("tracks   asked for by \"%s\": only those that the reduced trace has are compared\n",
		       report->track_pattern);
	if (report->raw_format != report->reduced_format)
		printf("formats  %s and %s: only what both can say is compared\n",
		       reducer_format_name(report->raw_format), reducer_format_name(report->reduced_format));
	printf("%s, in %s tracks\n\n", differ(report) ? "DIFFERENT" : "same",
	       output_count(raw, report->tracks));
	int result = print_promises(report);
	if (result == 0 && differ(report))
		print_differences(report);
	return result;
}

/* What could not be read is in neither comparison. */
static void print_damage(const char *path, const struct reducer_read_report *read)
{
	for (unsigned i = 0; i < read->n_problems; i++)
		fprintf(stderr, "driverec verify: %s: %s (at byte %" PRIu64 ")\n", base_name(path),
			read->problem[i].what, read->problem[i].offset);
}

static int run(const struct command_call *call)
{
	const struct verify_options *options = call->options;
	const char *raw = call->argv[0], *reduced = call->argv[1];
	struct reducer_problem problem = {0};
	struct reducer_verify_report *report = calloc(1, sizeof(*report));
	if (!report)
		return command_failed(call, "out of memory");
	int result = reducer_verify(raw, reduced, report, &problem);
	int status = COMMAND_DONE;
	if (result < 0) {
		status = problem.offset ? command_failed(call, "%s (at byte %" PRIu64 ")", problem.what,
							 problem.offset)
					: command_failed(call, "%s",
							 problem.what[0] ? problem.what : strerror(-result));
	} else {
		print_damage(raw, &report->raw);
		if (!report->identical)
			print_damage(reduced, &report->reduced);
		result = options->json ? print_json(raw, reduced, report) : print_plain(raw, reduced, report);
		if (result < 0)
			status = command_failed(call, "%s", strerror(-result));
		else if (differ(report))
			status = COMMAND_PROBLEMS;
	}
	free(report);
	return status;
}

const struct command command_verify = {
	.name = "verify",
	.summary = "prove that a reduced trace says what the raw one does",
	.operands = "RAW REDUCED",
	.details =
		"Reads both files, lays them out by itself, in the bins that the reduced trace names, and compares: "
		"the busy time of each track and bin (to 1 ns); the first start and last end of each track and every "
		"step mark; the longest span of each row and bin, args byte for byte; counters' least, largest and "
		"last value and the number and first of instants of each bin; metadata, top-level members and "
		"flows; and that no name is altered and the merged spans' counts and durations add up. Nothing of "
		"the code that reduces is used. Files that are identical are the same without further proof.\n"
		"Exit status: 0 the same, 3 differences found (the first ones are printed with track and time), 1 a "
		"file cannot be read or does not say that it is reduced, 2 misuse. Times are microseconds as the "
		"raw trace counts them. What is damaged in a file is told on standard error and is in neither "
		"side.\n"
		"Needs about 220 bytes of memory an event of both files. docs/verify.md has the definitions.",
	.examples = "driverec verify trace.json.gz trace.reduced.json.gz\n"
		    "driverec verify --json raw.xplane.pb reduced.xplane.pb | jq .promises.M1",
	.options = verify_rows,
	.options_bytes = sizeof(struct verify_options),
	.operands_min = 2,
	.operands_max = 2,
	.run = run,
};
