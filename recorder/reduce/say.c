/* SPDX-License-Identifier: Apache-2.0 */
#include "reduce/say.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "moment.h"
#include "output.h"
#include "plain_text.h"

enum { LINE_BYTES = 4096 + REDUCE_WHY_MAX + 512 };

static unsigned problems_of(const struct reducer_read_report *read)
{
	return read->n_problems < REDUCER_PROBLEMS_MAX ? read->n_problems : REDUCER_PROBLEMS_MAX;
}

/* A piece of a line; the line is made plain as a whole. */
__attribute__((format(printf, 2, 3))) static void add(char line[LINE_BYTES], const char *format, ...)
{
	size_t used = strlen(line);
	va_list values;

	va_start(values, format);
	vsnprintf(line + used, LINE_BYTES - used, format, values);
	va_end(values);
}

static void put(char line[LINE_BYTES], FILE *out)
{
	plain_text(line, LINE_BYTES, line, strlen(line));
	fprintf(out, "%s\n", line);
	line[0] = 0;
}

static unsigned unit_of(uint64_t bytes, uint64_t *ret_unit)
{
	uint64_t unit = 1;
	unsigned n = 0;

	for (; n < 4 && bytes / unit >= 1000; n++)
		unit *= 1000;
	*ret_unit = unit;
	return n;
}

/* In tenths, half up; bytes as they are. */
static void add_size(char line[LINE_BYTES], uint64_t bytes, uint64_t unit, const char *name)
{
	uint64_t tenth = unit / 10, tenths = tenth ? bytes / tenth + (bytes % tenth >= tenth / 2) : 0;

	if (tenth)
		add(line, "%" PRIu64 ".%" PRIu64 "%s", tenths / 10, tenths % 10, name);
	else
		add(line, "%" PRIu64 "%s", bytes, name);
}

/* "47.9 -> 4.1 MB": one unit for both, but where that would leave less than one of them. */
static void add_sizes(char line[LINE_BYTES], uint64_t from, uint64_t to)
{
	static const char *const names[] = {" B", " kB", " MB", " GB", " TB"};
	uint64_t unit, to_unit;
	unsigned n = unit_of(from, &unit), to_n = unit_of(to, &to_unit);

	add_size(line, from, unit, n == to_n ? "" : names[n]);
	add(line, " -> ");
	add_size(line, to, to_unit, names[to_n]);
}

/* "(-91 %)": towards none, so that -100 % is none left. */
static void add_change(char line[LINE_BYTES], uint64_t from, uint64_t to)
{
	uint64_t by = from > to ? from - to : to - from;

	if (from && by)
		add(line, " (%s%" PRIu64 " %%)", to > from ? "+" : "-",
		    (uint64_t)((unsigned __int128)by * 100 / from));
}

static void add_events(char line[LINE_BYTES], const struct reducer_reduce_report *report)
{
	char from[OUTPUT_TEXT_MAX], to[OUTPUT_TEXT_MAX];

	add(line, "%s -> %s events", output_count(from, report->events_in),
	    output_count(to, report->events_out));
	add_change(line, report->events_in, report->events_out);
}

static void add_outcome(char line[LINE_BYTES], const struct reduce_result *result)
{
	const struct reducer_reduce_report *report = &result->report;
	char text[OUTPUT_TEXT_MAX];

	if (result->why[0]) {
		add(line, "%s", result->why);
		return;
	}
	switch (result->outcome) {
	case REDUCE_DONE:
		add_events(line, report);
		add(line, ", ");
		add_sizes(line, result->input_bytes, result->output_bytes);
		if (result->verified)
			add(line, "; busy time exact on %s track%s; verified",
			    output_count(text, result->verify.tracks), result->verify.tracks == 1 ? "" : "s");
		else
			add(line, "; not verified");
		break;
	case REDUCE_COPIED:
		add(line, "%s events, reducing would not make it smaller: copied byte for byte",
		    output_count(text, report->events_in));
		break;
	case REDUCE_LEFT:
		add(line, "%s events, reducing would not make it smaller: left as it is",
		    output_count(text, report->events_in));
		break;
	case REDUCE_WOULD:
		add(line, "would be ");
		add_events(line, report);
		add(line, "; nothing was written");
		break;
	case REDUCE_WAITING:
	case REDUCE_SKIPPED:
	case REDUCE_FAILED:
	case REDUCE_DIFFERS:
		add(line, "%s", reduce_say_outcome(result->outcome));
		break;
	}
}

static void say_more(const struct reduce_result *result, FILE *out)
{
	const struct reducer_reduce_report *report = &result->report;
	char line[LINE_BYTES] = "", text[OUTPUT_TEXT_MAX], more[OUTPUT_TEXT_MAX];
	const char *before = "  gone: ";

	add(line, "  events left: %s = %s exact + ", output_count(text, report->events_out),
	    output_count(more, report->exact));
	add(line, "%s merged rectangles", output_count(text, report->merged));
	put(line, out);
	for (int gone = 0; gone < REDUCER_GONE_COUNT; gone++) {
		if (!report->gone[gone])
			continue;
		add(line, "%s%s %s", before, output_count(text, report->gone[gone]),
		    reducer_gone_name((enum reducer_gone)gone));
		before = ", ";
	}
	if (*line)
		put(line, out);
	add(line, "  bins: %s of %s", output_count(text, report->bins),
	    output_duration(more, report->bin_ps / 1000));
	add(line, "; %s of text", output_bytes(text, (uint64_t)report->text_bytes));
	if (report->overlapping)
		add(line, "; %s spans overlap without nesting", output_count(text, report->overlapping));
	put(line, out);
	if (!result->verified)
		return;
	for (int promise = REDUCER_M1; promise <= REDUCER_M5; promise++)
		add(line, "%sM%d %s", promise == REDUCER_M1 ? "  comparisons: " : ", ", promise,
		    output_count(text, result->verify.checked[promise]));
	put(line, out);
}

static void say_damage(const char *path, const struct reduce_result *result, FILE *errors)
{
	const struct reducer_read_report *read = &result->report.read;
	char line[LINE_BYTES] = "";

	for (unsigned i = 0; i < problems_of(read); i++) {
		add(line, "driverec reduce: %s: %s (at byte %" PRIu64 ")", path, read->problem[i].what,
		    read->problem[i].offset);
		put(line, errors);
	}
	if (read->damaged > problems_of(read)) {
		add(line, "driverec reduce: %s: and %" PRIu64 " more places", path,
		    read->damaged - problems_of(read));
		put(line, errors);
	}
}

static void say_differences(const char *path, const struct reduce_result *result, FILE *errors)
{
	const struct reducer_verify_report *verify = &result->verify;
	char line[LINE_BYTES] = "", time[MOMENT_TEXT_MAX];

	for (unsigned i = 0; i < verify->n_differences && i < REDUCER_DIFFERENCES_MAX; i++) {
		const struct reducer_difference *one = &verify->difference[i];

		add(line, "driverec reduce: %s: M%d", path, (int)one->promise);
		if (one->track[0])
			add(line, " %s", one->track);
		if (one->has_time)
			add(line, " at %s us", moment_print(time, one->time));
		add(line, ": %s", one->what);
		put(line, errors);
	}
	add(line,
	    "driverec reduce: %s: this is a bug of driverec, and nothing was put in place; please report it "
	    "with the "
	    "lines above, driverec --version, the options, and if you may the file (--no-verify writes it "
	    "all the same)",
	    path);
	put(line, errors);
}

void reduce_say_result(const struct reduce_say *say, const char *path, const struct reduce_result *result,
		       FILE *out, FILE *errors)
{
	bool bad = result->outcome == REDUCE_FAILED || result->outcome == REDUCE_DIFFERS;
	char line[LINE_BYTES] = "";

	if (result->has_report)
		say_damage(path, result, errors);
	if (bad)
		add(line, "driverec reduce: ");
	if (bad || say->with_name || result->why[0])
		add(line, "%s: ", path);
	if (result->outcome == REDUCE_SKIPPED)
		add(line, "skipped: ");
	add_outcome(line, result);
	if (result->note[0])
		add(line, "; %s", result->note);
	if (say->with_output && (result->outcome == REDUCE_DONE || result->outcome == REDUCE_COPIED ||
				 result->outcome == REDUCE_WOULD))
		add(line, "; %s %s", result->outcome == REDUCE_WOULD ? "for" : "in", result->output);
	put(line, bad ? errors : out);
	if (result->outcome == REDUCE_DIFFERS)
		say_differences(path, result, errors);
	if (say->verbose && result->has_report && !bad)
		say_more(result, out);
}

/* --- JSON --- */

const char *reduce_say_outcome(enum reduce_outcome outcome)
{
	static const char *const names[] = {"waiting", "done",    "copied", "left",
					    "would",   "skipped", "failed", "differs"};

	return names[outcome];
}

static void add_u64(cJSON *object, const char *name, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	cJSON_AddStringToObject(object, name, text);
}

static void add_read_json(cJSON *object, const struct reducer_read_report *read)
{
	cJSON *list = cJSON_AddArrayToObject(object, "damage");

	for (unsigned i = 0; i < problems_of(read); i++) {
		cJSON *one = cJSON_CreateObject();

		add_u64(one, "offset", read->problem[i].offset);
		cJSON_AddStringToObject(one, "what", read->problem[i].what);
		cJSON_AddItemToArray(list, one);
	}
	add_u64(object, "damaged", read->damaged);
	add_u64(object, "skipped_bytes", read->skipped_bytes);
}

static void add_report_json(cJSON *object, const struct reducer_reduce_report *report)
{
	cJSON *gone;

	cJSON_AddStringToObject(object, "input_format", reducer_format_name(report->format));
	add_u64(object, "text_bytes", (uint64_t)report->text_bytes);
	add_u64(object, "events_in", report->events_in);
	add_u64(object, "spans_in", report->spans_in);
	add_u64(object, "events_out", report->events_out);
	add_u64(object, "spans_out", report->spans_out);
	add_u64(object, "exact", report->exact);
	add_u64(object, "merged", report->merged);
	add_u64(object, "overlapping", report->overlapping);
	add_u64(object, "tracks", report->tracks);
	cJSON_AddNumberToObject(object, "bins", report->bins);
	output_json_ns(object, "bin_ps", report->bin_ps);
	output_json_ns(object, "origin_ns", report->origin_ns);
	cJSON_AddBoolToObject(object, "bound_reached", report->bound_reached);
	gone = cJSON_AddObjectToObject(object, "gone");
	for (int i = 0; i < REDUCER_GONE_COUNT; i++)
		add_u64(gone, reducer_gone_name((enum reducer_gone)i), report->gone[i]);
	add_read_json(object, &report->read);
}

static void add_verify_json(cJSON *object, const struct reducer_verify_report *verify)
{
	cJSON *promises = cJSON_AddObjectToObject(object, "verify");
	char time[MOMENT_TEXT_MAX];
	cJSON *list;

	for (int i = REDUCER_M1; i <= REDUCER_M5; i++) {
		char name[16];
		cJSON *one;

		snprintf(name, sizeof(name), "M%d", i);
		one = cJSON_AddObjectToObject(promises, name);
		add_u64(one, "checked", verify->checked[i]);
		add_u64(one, "failed", verify->failed[i]);
	}
	add_u64(promises, "tracks", verify->tracks);
	cJSON_AddBoolToObject(promises, "identical", verify->identical);
	list = cJSON_AddArrayToObject(promises, "differences");
	for (unsigned i = 0; i < verify->n_differences && i < REDUCER_DIFFERENCES_MAX; i++) {
		const struct reducer_difference *difference = &verify->difference[i];
		cJSON *one = cJSON_CreateObject();

		cJSON_AddNumberToObject(one, "promise", (int)difference->promise);
		cJSON_AddStringToObject(one, "track", difference->track);
		output_json_text(one, "time_us",
				 difference->has_time ? moment_print(time, difference->time) : NULL);
		cJSON_AddStringToObject(one, "what", difference->what);
		cJSON_AddItemToArray(list, one);
	}
}

int reduce_say_json(const char *path, const struct reduce_result *result, FILE *out)
{
	cJSON *object = cJSON_CreateObject();
	char *text;

	cJSON_AddStringToObject(object, "file", path);
	cJSON_AddStringToObject(object, "outcome", reduce_say_outcome(result->outcome));
	output_json_text(object, "why", result->why[0] ? result->why : NULL);
	output_json_text(object, "note", result->note[0] ? result->note : NULL);
	output_json_text(object, "output", result->output[0] ? result->output : NULL);
	output_json_text(object, "format", result->format ? reducer_format_name(result->format) : NULL);
	add_u64(object, "input_bytes", result->input_bytes);
	add_u64(object, "output_bytes", result->output_bytes);
	cJSON_AddBoolToObject(object, "verified", result->verified);
	cJSON_AddBoolToObject(object, "verified_independently", result->verified_independently);
	if (result->has_report)
		add_report_json(object, &result->report);
	if (result->verified || result->outcome == REDUCE_DIFFERS)
		add_verify_json(object, &result->verify);
	plain_text_json(object);
	text = cJSON_PrintUnformatted(object);
	cJSON_Delete(object);
	if (!text)
		return -ENOMEM;
	fprintf(out, "%s\n", text);
	cJSON_free(text);
	return 0;
}
