/* SPDX-License-Identifier: Apache-2.0 */
#include "suppressed_list.h"

#include <errno.h>
#include <string.h>

#include "output.h"

static bool is_recorded_only(const struct suppressed_line *line)
{
	return strcmp(line->gate, triggers_gate_name(TRIGGERS_SILENCED)) == 0;
}

static bool fits(const struct suppressed_choice *choice, const struct suppressed_line *line)
{
	if (choice->trigger && strcmp(choice->trigger, line->trigger) != 0)
		return false;
	return line->last_ns >= choice->since_ns && line->severity >= choice->severity;
}

static bool is_chosen(const struct suppressed_choice *choice, const struct suppressed_line *line)
{
	return fits(choice, line) && (choice->notes || !is_recorded_only(line));
}

static void add_row(struct output_table *table, const struct suppressed_line *line)
{
	char text[OUTPUT_TEXT_MAX];

	output_table_cell(table, "%s", output_clock(text, line->first_ns));
	output_table_cell(table, "%s",
			  line->count > 1 ? output_duration(text, line->last_ns - line->first_ns) : "");
	output_table_cell(table, "%s", output_count(text, line->count));
	output_table_cell(table, "%s", triggers_severity_name(line->severity));
	output_table_cell(table, "%s", line->trigger);
	output_table_cell(table, "%s%s", line->series, line->others ? " and others" : "");
	if (line->rank == UINT32_MAX)
		output_table_cell(table, "%s", "");
	else
		output_table_cell(table, "%u", line->rank);
	output_table_cell(table, "%s", line->step < 0 ? "" : output_count(text, (uint64_t)line->step));
	output_table_cell(table, "%s", line->gate);
	output_table_cell(table, "%s", line->evidence);
}

struct shown {
	size_t lines, notes; /* notes: left out as such */
};

static int print_table(const struct suppressed *log, const struct suppressed_choice *choice,
		       struct shown *shown, FILE *out)
{
	static const struct output_column columns[] = {
		{"AT", 0},     {"FOR", 1},  {"COUNT", 1}, {"SEVERITY", 0}, {"TRIGGER", 0},
		{"SERIES", 0}, {"RANK", 1}, {"STEP", 1},  {"GATE", 0},     {"EVIDENCE", 0},
	};
	struct output_table *table = output_table_new(columns, sizeof(columns) / sizeof(columns[0]));
	int r = 0;

	if (!table)
		return -ENOMEM;
	for (const struct suppressed_line *line = suppressed_oldest(log); line;
	     line = suppressed_newer(log, line)) {
		shown->notes += fits(choice, line) && !is_chosen(choice, line);
		if (is_chosen(choice, line)) {
			add_row(table, line);
			shown->lines++;
		}
	}
	if (shown->lines > 0)
		r = output_table_print(table, out);
	output_table_free(table);
	return r;
}

static int print_json(const struct suppressed *log, const struct suppressed_choice *choice, FILE *out)
{
	cJSON *list = cJSON_CreateArray();
	const struct suppressed_line *line = log ? suppressed_oldest(log) : NULL;

	for (; line; line = suppressed_newer(log, line)) {
		if (is_chosen(choice, line))
			cJSON_AddItemToArray(list, suppressed_json(line));
	}
	return output_json_print(list, out);
}

static int print(const char *store_path, const struct suppressed *log, const struct suppressed_choice *choice,
		 FILE *out)
{
	struct shown shown = {0};
	uint64_t forgotten = log ? suppressed_forgotten(log) : 0;
	int r = log ? print_table(log, choice, &shown, out) : 0;

	if (r < 0)
		return r;
	if (shown.lines == 0)
		fprintf(out, "nothing was held back%s in %s\n",
			log && suppressed_count(log) > 0 ? " that fits" : "", store_path);
	if (shown.notes > 0)
		fprintf(out, "%zu more that were only recorded with --all\n", shown.notes);
	if (forgotten > 0)
		fprintf(out, "%llu older lines were forgotten\n", (unsigned long long)forgotten);
	return 0;
}

int suppressed_list_print(const char *store_path, const struct suppressed_choice *choice, FILE *out)
{
	struct suppressed *log = NULL;
	int r = suppressed_read(store_path, &log);

	if (r == -ENOENT || r == 0)
		r = choice->json ? print_json(log, choice, out) : print(store_path, log, choice, out);
	suppressed_free(log);
	return r;
}
