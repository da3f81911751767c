/* SPDX-License-Identifier: Apache-2.0 */
#include "replay_report.h"

#include <stdlib.h>
#include <string.h>

#include "output.h"
#include "plain_text.h"

enum { RUNS_SHOWN = 10 };
/* Event time from here on is shown as a date: what counts from a start of its own lies below. */
#define DATE_FROM_NS (INT64_C(946684800) * 1000000000)
/* Rates of less job time than this say nothing. */
#define RATE_FROM_NS (INT64_C(60) * 1000000000)

static const enum triggers_severity severities[] = {TRIGGERS_CRITICAL, TRIGGERS_WARN, TRIGGERS_NOTE};

void replay_report_json(cJSON *json, FILE *out)
{
	plain_text_json(json);
	char *text = cJSON_PrintUnformatted(json);
	if (text)
		fprintf(out, "%s\n", text);
	cJSON_free(text);
	cJSON_Delete(json);
}

/* ---- firings ---- */

static void track_text(const struct replay *replay, uint32_t source, uint64_t track, char *out, size_t room)
{
	out[0] = 0;
	if (replay->track_text)
		replay->track_text(replay->track_context, source, track, out, room);
}

static void firing_json(const struct replay *replay, const struct triggers_firing *firing,
			enum triggers_gate gate)
{
	cJSON *json = cJSON_CreateObject();
	char track[256];
	track_text(replay, firing->source, firing->track, track, sizeof(track));
	output_json_text(json, "run", replay->run);
	output_json_signed(json, "sample", firing->sample);
	output_json_signed(json, "step", firing->step);
	output_json_text(json, "trigger", firing->trigger);
	output_json_text(json, "series", firing->series);
	if (track[0])
		output_json_text(json, "track", track);
	output_json_text(json, "phase", firing->phase);
	output_json_ns(json, "t0_ns", firing->t0_ns);
	output_json_ns(json, "detected_ns", firing->detected_ns);
	output_json_text(json, "severity", triggers_severity_name(firing->severity));
	cJSON_AddNumberToObject(json, "value", firing->value);
	cJSON_AddNumberToObject(json, "expected", firing->expected);
	cJSON_AddNumberToObject(json, "ratio", firing->ratio);
	output_json_text(json, "gate", triggers_gate_name(gate));
	output_json_text(json, "evidence", firing->evidence);
	replay_report_json(json, replay->out);
}

static void firing_line(const struct replay *replay, const struct triggers_firing *firing,
			enum triggers_gate gate)
{
	char when[OUTPUT_TEXT_MAX], track[256], evidence[TRIGGERS_TEXT_MAX];
	track_text(replay, firing->source, firing->track, track, sizeof(track));
	plain_text(track, sizeof(track), track, strlen(track));
	plain_text(evidence, sizeof(evidence), firing->evidence, strlen(firing->evidence));
	if (firing->t0_ns >= DATE_FROM_NS)
		output_time(when, firing->t0_ns);
	else
		snprintf(when, sizeof(when), "%lld.%03lld s", (long long)(firing->t0_ns / 1000000000),
			 (long long)(llabs(firing->t0_ns) / 1000000 % 1000));
	fprintf(replay->out, "%s: %-8s %s: %s, at %s", replay->run, triggers_severity_name(firing->severity),
		firing->trigger, evidence, when);
	if (track[0])
		fprintf(replay->out, " on %s", track);
	if (firing->sample >= 0)
		fprintf(replay->out, " (sample %lld)", (long long)firing->sample);
	if (gate != TRIGGERS_PASSED)
		fprintf(replay->out, " [%s]", triggers_gate_name(gate));
	fputc('\n', replay->out);
}

void replay_report_firing(const struct replay *replay, const struct triggers_firing *firing,
			  enum triggers_gate gate)
{
	if (replay->settings->json)
		firing_json(replay, firing, gate);
	else
		firing_line(replay, firing, gate);
}

/* ---- beliefs ---- */

enum belief_unit { OF_SERIES, NS, SHARE };

/* What detectors believe. A column that no series has is left out of the table. */
static const struct belief_column {
	const char *title, *json;
	enum belief_unit unit;
	size_t offset;
} belief_columns[] = {
	{"USUAL", "median", OF_SERIES, offsetof(struct triggers_belief, median)},
	{"DEVIATION", "deviation", OF_SERIES, offsetof(struct triggers_belief, deviation)},
	{"NOTE FROM", "ceiling", OF_SERIES, offsetof(struct triggers_belief, ceiling)},
	{"WARN FROM", "warn", OF_SERIES, offsetof(struct triggers_belief, warn)},
	{"CRITICAL FROM", "critical", OF_SERIES, offsetof(struct triggers_belief, critical)},
	{"DEADLINE", "deadline_ns", NS, offsetof(struct triggers_belief, deadline_ns)},
	{"LINE", "line", OF_SERIES, offsetof(struct triggers_belief, line)},
	{"LINE CEILING", "line_ceiling", OF_SERIES, offsetof(struct triggers_belief, line_ceiling)},
	{"LEVEL", "level", OF_SERIES, offsetof(struct triggers_belief, level)},
	{"SHIFT", "shift_share", SHARE, offsetof(struct triggers_belief, shift_share)},
	{"PEERS", "peers", OF_SERIES, offsetof(struct triggers_belief, peers)},
};
enum { BELIEF_COLUMNS = sizeof(belief_columns) / sizeof(belief_columns[0]), FIXED_COLUMNS = 4 };
_Static_assert(BELIEF_COLUMNS + FIXED_COLUMNS <= OUTPUT_COLUMNS_MAX, "all fit a table");

static double belief_value(const struct triggers_belief *belief, int column)
{
	double value;
	memcpy(&value, (const char *)belief + belief_columns[column].offset, sizeof(value));
	return value;
}

static const char *role_name(enum triggers_role role)
{
	switch (role) {
	case TRIGGERS_STEP:
		return "step";
	case TRIGGERS_PHASE:
		return "phase";
	case TRIGGERS_SPAN:
		return "span";
	case TRIGGERS_COUNTER:
		return "counter";
	case TRIGGERS_TRACK:
		return "track";
	case TRIGGERS_BUSY:
		return "busy";
	}
	return "unknown";
}

static void belief_json(const struct replay *replay, const struct triggers_belief *belief)
{
	cJSON *json = cJSON_CreateObject(), *inside = cJSON_AddObjectToObject(json, "belief");
	char track[256];
	track_text(replay, belief->key.source, belief->key.track, track, sizeof(track));
	output_json_text(inside, "run", replay->run);
	output_json_text(inside, "series", belief->key.name);
	output_json_text(inside, "role", role_name(belief->key.role));
	output_json_text(inside, "track", track[0] ? track : NULL);
	cJSON_AddBoolToObject(inside, "alarms", belief->key.alarms);
	output_json_count(inside, "samples", belief->samples);
	cJSON_AddBoolToObject(inside, "learned", belief->warm);
	output_json_text(inside, "unit", belief->key.role == TRIGGERS_COUNTER ? NULL : "ns");
	for (int i = 0; i < BELIEF_COLUMNS; i++) {
		double value = belief_value(belief, i);
		if (value > 0 || value < 0)
			cJSON_AddNumberToObject(inside, belief_columns[i].json, value);
		else
			cJSON_AddNullToObject(inside, belief_columns[i].json);
	}
	replay_report_json(json, replay->out);
}

static void belief_cell(struct output_table *table, const struct triggers_belief *belief, int column)
{
	char text[OUTPUT_TEXT_MAX];
	double value = belief_value(belief, column);
	enum belief_unit unit = belief_columns[column].unit;
	if (!(value > 0 || value < 0))
		output_table_cell(table, "-");
	else if (unit == SHARE)
		output_table_cell(table, "%.0f %%", 100 * value);
	else if (unit == OF_SERIES && belief->key.role == TRIGGERS_COUNTER)
		output_table_cell(table, "%.4g", value);
	else
		output_table_cell(table, "%s",
				  output_duration(text, value < 9e18 ? (int64_t)value : INT64_MAX));
}

/* A series that says something, and may fire or is asked for: its number in the table, or UINT32_MAX after
 * the last. */
static uint32_t next_belief(const struct replay *replay, uint32_t at, struct triggers_belief *ret_belief)
{
	uint32_t count = triggers_engine_series_count(replay->engine);
	for (; at < count; at++)
		if (!triggers_engine_belief(replay->engine, at, ret_belief) && ret_belief->samples &&
		    (ret_belief->key.alarms || replay->settings->all))
			return at;
	return UINT32_MAX;
}

static void beliefs_table(const struct replay *replay)
{
	struct output_column columns[OUTPUT_COLUMNS_MAX] = {
		{"SERIES", 0}, {"TRACK", 0}, {"SAMPLES", 1}, {"LEARNED", 0}};
	struct triggers_belief belief;
	int shown[BELIEF_COLUMNS], n = 0;
	for (int i = 0; i < BELIEF_COLUMNS; i++) {
		int used = 0;
		for (uint32_t at = 0; !used && (at = next_belief(replay, at, &belief)) != UINT32_MAX; at++)
			used = belief_value(&belief, i) > 0 || belief_value(&belief, i) < 0;
		if (used) {
			columns[FIXED_COLUMNS + n] = (struct output_column){belief_columns[i].title, 1};
			shown[n++] = i;
		}
	}
	struct output_table *table = output_table_new(columns, FIXED_COLUMNS + n);
	for (uint32_t at = 0; (at = next_belief(replay, at, &belief)) != UINT32_MAX; at++) {
		char track[256], samples[OUTPUT_TEXT_MAX];
		track_text(replay, belief.key.source, belief.key.track, track, sizeof(track));
		output_table_cell(table, "%s", belief.key.name);
		output_table_cell(table, "%s", track[0] ? track : "-");
		output_table_cell(table, "%s", output_count(samples, belief.samples));
		output_table_cell(table, "%s", belief.warm ? "yes" : "no");
		for (int i = 0; i < n; i++)
			belief_cell(table, &belief, shown[i]);
	}
	fprintf(replay->out, "%s:\n", replay->run);
	output_table_print(table, replay->out);
	output_table_free(table);
}

void replay_report_beliefs(const struct replay *replay)
{
	struct triggers_belief belief;
	if (!replay->settings->json)
		beliefs_table(replay);
	else
		for (uint32_t at = 0; (at = next_belief(replay, at, &belief)) != UINT32_MAX; at++)
			belief_json(replay, &belief);
}

/* ---- summary ---- */

static uint64_t held_back(const struct replay *replay)
{
	uint64_t count = 0;
	for (int gate = 0; gate < TRIGGERS_GATE_LIMIT; gate++)
		count += replay->counts.held_back[gate];
	return count;
}

static uint64_t alarms(const struct replay_firings *firings)
{
	return replay_firings_of(firings, TRIGGERS_WARN) + replay_firings_of(firings, TRIGGERS_CRITICAL);
}

static void rate_cells(struct output_table *table, uint64_t count, int64_t job_ns)
{
	if (job_ns < RATE_FROM_NS) {
		output_table_cell(table, "-");
		output_table_cell(table, "-");
		return;
	}
	output_table_cell(table, "%.2f", replay_rate(count, job_ns, REPLAY_HOUR_NS));
	output_table_cell(table, "%.1f", replay_rate(count, job_ns, REPLAY_DAY_NS));
}

static void run_row(struct output_table *table, const char *name, int64_t job_ns, uint64_t steps,
		    const struct replay_firings *firings)
{
	char text[OUTPUT_TEXT_MAX];
	output_table_cell(table, "%s", name);
	output_table_cell(table, "%s", output_duration(text, job_ns));
	output_table_cell(table, "%s", output_count(text, steps));
	output_table_cell(table, "%llu", (unsigned long long)replay_firings_of(firings, TRIGGERS_CRITICAL));
	output_table_cell(table, "%llu", (unsigned long long)replay_firings_of(firings, TRIGGERS_WARN));
	rate_cells(table, alarms(firings), job_ns);
}

static void runs_table(const struct replay *replay, const struct replay_firings *total)
{
	static const struct output_column columns[] = {{"RUN", 0},      {"JOB TIME", 1}, {"STEPS", 1},
						       {"CRITICAL", 1}, {"WARN", 1},     {"AN HOUR", 1},
						       {"A DAY", 1}};
	const struct replay_counts *counts = &replay->counts;
	uint64_t shown = replay->settings->all || counts->n_runs < RUNS_SHOWN ? counts->n_runs : RUNS_SHOWN;
	struct output_table *table = output_table_new(columns, sizeof(columns) / sizeof(columns[0]));
	char all[64];
	for (uint64_t i = 0; i < shown; i++)
		run_row(table, counts->run[i].name, counts->run[i].job_ns, counts->run[i].steps,
			&counts->run[i].firings);
	snprintf(all, sizeof(all), "all %llu", (unsigned long long)replay->runs);
	run_row(table, all, replay->job_ns, replay->steps, total);
	output_table_print(table, replay->out);
	output_table_free(table);
	if (shown < counts->n_runs)
		fprintf(replay->out, "the worst %llu of %llu runs; --all lists all\n",
			(unsigned long long)shown, (unsigned long long)counts->n_runs);
}

static void triggers_table(const struct replay *replay)
{
	static const struct output_column columns[] = {{"TRIGGER", 0}, {"SEVERITY", 0},
						       {"FIRINGS", 1}, {"OF WHICH JOINED", 1},
						       {"AN HOUR", 1}, {"A DAY", 1}};
	struct output_table *table = output_table_new(columns, sizeof(columns) / sizeof(columns[0]));
	for (unsigned i = 0; i < replay->counts.n_triggers; i++)
		for (unsigned n = 0; n < sizeof(severities) / sizeof(severities[0]); n++) {
			const struct replay_trigger *trigger = &replay->counts.trigger[i];
			uint64_t count = replay_firings_of(&trigger->firings, severities[n]);
			if (!count)
				continue;
			output_table_cell(table, "%s", trigger->name);
			output_table_cell(table, "%s", triggers_severity_name(severities[n]));
			output_table_cell(table, "%llu", (unsigned long long)count);
			output_table_cell(table, "%llu",
					  (unsigned long long)trigger->firings.joined[severities[n]]);
			rate_cells(table, count, replay->job_ns);
		}
	output_table_print(table, replay->out);
	output_table_free(table);
}

static void print_held_back(const struct replay *replay)
{
	const char *before = " (";
	fprintf(replay->out, "; %llu held back", (unsigned long long)held_back(replay));
	for (int gate = 0; gate < TRIGGERS_GATE_LIMIT; gate++)
		if (replay->counts.held_back[gate]) {
			fprintf(replay->out, "%s%llu %s", before,
				(unsigned long long)replay->counts.held_back[gate],
				triggers_gate_name((enum triggers_gate)gate));
			before = ", ";
		}
	fprintf(replay->out, "%s\n", held_back(replay) ? ")" : "");
}

static void summary_lines(const struct replay *replay, const struct replay_firings *total)
{
	char steps[OUTPUT_TEXT_MAX], samples[OUTPUT_TEXT_MAX], job[OUTPUT_TEXT_MAX];
	if (replay->runs > 1)
		runs_table(replay, total);
	if (alarms(total) || replay_firings_of(total, TRIGGERS_NOTE))
		triggers_table(replay);
	fprintf(replay->out,
		"%llu %s, %s steps, %s samples, %s of job time: %llu critical, %llu warn, %llu note",
		(unsigned long long)replay->runs, replay->runs == 1 ? "run" : "runs",
		output_count(steps, replay->steps), output_count(samples, replay->samples),
		output_duration(job, replay->job_ns),
		(unsigned long long)replay_firings_of(total, TRIGGERS_CRITICAL),
		(unsigned long long)replay_firings_of(total, TRIGGERS_WARN),
		(unsigned long long)replay_firings_of(total, TRIGGERS_NOTE));
	print_held_back(replay);
}

static void add_rates(cJSON *json, uint64_t count, int64_t job_ns)
{
	cJSON_AddNumberToObject(json, "an_hour", replay_rate(count, job_ns, REPLAY_HOUR_NS));
	cJSON_AddNumberToObject(json, "a_day", replay_rate(count, job_ns, REPLAY_DAY_NS));
}

static void add_firings(cJSON *json, const struct replay_firings *firings)
{
	for (unsigned n = 0; n < sizeof(severities) / sizeof(severities[0]); n++)
		output_json_count(json, triggers_severity_name(severities[n]),
				  replay_firings_of(firings, severities[n]));
}

static void add_triggers(cJSON *summary, const struct replay *replay)
{
	cJSON *list = cJSON_AddArrayToObject(summary, "triggers");
	for (unsigned i = 0; i < replay->counts.n_triggers; i++)
		for (unsigned n = 0; n < sizeof(severities) / sizeof(severities[0]); n++) {
			const struct replay_trigger *trigger = &replay->counts.trigger[i];
			uint64_t count = replay_firings_of(&trigger->firings, severities[n]);
			cJSON *item = count ? cJSON_CreateObject() : NULL;
			if (!item)
				continue;
			output_json_text(item, "trigger", trigger->name);
			output_json_text(item, "severity", triggers_severity_name(severities[n]));
			output_json_count(item, "firings", count);
			output_json_count(item, "joined", trigger->firings.joined[severities[n]]);
			add_rates(item, count, replay->job_ns);
			cJSON_AddItemToArray(list, item);
		}
}

static void add_runs(cJSON *summary, const struct replay *replay)
{
	const struct replay_counts *counts = &replay->counts;
	cJSON *list = cJSON_AddArrayToObject(summary, "worst_runs");
	for (uint64_t i = 0; i < counts->n_runs && (i < RUNS_SHOWN || replay->settings->all); i++) {
		cJSON *item = cJSON_CreateObject();
		output_json_text(item, "run", counts->run[i].name);
		output_json_ns(item, "job_ns", counts->run[i].job_ns);
		output_json_count(item, "steps", counts->run[i].steps);
		add_firings(item, &counts->run[i].firings);
		add_rates(item, alarms(&counts->run[i].firings), counts->run[i].job_ns);
		cJSON_AddItemToArray(list, item);
	}
}

static void summary_json(const struct replay *replay, const struct replay_firings *total)
{
	cJSON *json = cJSON_CreateObject(), *summary = cJSON_AddObjectToObject(json, "summary");
	output_json_count(summary, "runs", replay->runs);
	output_json_count(summary, "steps", replay->steps);
	output_json_count(summary, "samples", replay->samples);
	output_json_ns(summary, "job_ns", replay->job_ns);
	add_firings(summary, total);
	add_rates(summary, alarms(total), replay->job_ns);
	add_triggers(summary, replay);
	if (replay->runs > 1)
		add_runs(summary, replay);
	output_json_count(summary, "held_back", held_back(replay));
	cJSON *gates = cJSON_AddObjectToObject(summary, "gates");
	for (int gate = 0; gate < TRIGGERS_GATE_LIMIT; gate++)
		if (replay->counts.held_back[gate])
			output_json_count(gates, triggers_gate_name((enum triggers_gate)gate),
					  replay->counts.held_back[gate]);
	replay_report_json(json, replay->out);
}

void replay_report_summary(struct replay *replay)
{
	struct replay_firings total;
	replay_firings_total(&replay->counts, &total);
	replay_counts_sort(&replay->counts);
	if (replay->settings->json)
		summary_json(replay, &total);
	else
		summary_lines(replay, &total);
}
