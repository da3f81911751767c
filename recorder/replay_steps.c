/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Step times as rows: run,time_ms,kind,value_s,data_s,step; the columns may stand in any order. A step row is
 * written at the step's end; its begin is that minus value_s, so an open step is judged as it would be live.
 * eval_start .. eval_stop is the phase "eval". Other kinds say nothing about steps.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <reducer/input.h>

#include "ns.h"
#include "replay.h"

enum { LINE_MAX_BYTES = 4096, FIELDS_MAX = 32 };
enum column { RUN, TIME, KIND, VALUE, STEP, COLUMNS };
static const char *const column_names[COLUMNS] = {"run", "time_ms", "kind", "value_s", "step"};

struct steps {
	struct replay *replay;
	const char *path;
	int place[COLUMNS]; /* field number, -1 = not there */
	bool has_header, has_run;
	uint64_t line;
	uint32_t step_series, eval_series;
	int64_t sample, eval_ns, first_ns;
	bool in_eval;
	char *error;
	size_t error_room;
};

static int split(char *line, char *field[FIELDS_MAX])
{
	int count = 0;
	for (char *at = line; count < FIELDS_MAX;) {
		field[count++] = at;
		at = strchr(at, ',');
		if (!at)
			break;
		*at++ = 0;
	}
	return count;
}

static int read_header(struct steps *steps, char *field[FIELDS_MAX], int count)
{
	for (int column = 0; column < COLUMNS; column++) {
		steps->place[column] = -1;
		for (int i = 0; i < count; i++)
			if (!strcmp(field[i], column_names[column]))
				steps->place[column] = i;
		if (steps->place[column] < 0 && column != STEP) {
			snprintf(steps->error, steps->error_room,
				 "%.200s has no column \"%s\": it is no table of step times", steps->path,
				 column_names[column]);
			return -EBADMSG;
		}
	}
	steps->has_header = true;
	return 0;
}

static void end_run(struct steps *steps)
{
	if (!steps->has_run)
		return;
	if (steps->replay->clock_ns > steps->first_ns)
		steps->replay->job_ns += ns_sub(steps->replay->clock_ns, steps->first_ns);
	replay_end(steps->replay);
	steps->has_run = false;
}

static int begin_run(struct steps *steps, const char *run, int64_t now_ns)
{
	end_run(steps);
	int result = replay_begin(steps->replay, run, steps->error, steps->error_room);
	if (result)
		return result;
	struct triggers_series_key step = {
		.role = TRIGGERS_STEP, .rank = UINT32_MAX, .name = "step", .alarms = 1};
	struct triggers_series_key eval = {
		.role = TRIGGERS_PHASE, .rank = UINT32_MAX, .name = "phase:eval", .alarms = 1};
	steps->step_series = triggers_engine_series(steps->replay->engine, &step);
	steps->eval_series = triggers_engine_series(steps->replay->engine, &eval);
	steps->sample = 0;
	steps->in_eval = false;
	steps->first_ns = now_ns;
	steps->has_run = true;
	return 0;
}

static void take_step(struct steps *steps, int64_t end_ns, int64_t length_ns, int64_t step)
{
	struct replay *replay = steps->replay;
	struct triggers_sample sample = {.start_ns = ns_sub(end_ns, length_ns),
					 .duration_ns = length_ns,
					 .step = step,
					 .sample = steps->sample++};
	if (sample.start_ns > replay->clock_ns)
		replay_advance(replay, sample.start_ns);
	triggers_engine_open(replay->engine, steps->step_series, sample.start_ns, step, NULL);
	replay_advance(replay, end_ns);
	triggers_engine_observe(replay->engine, steps->step_series, &sample);
	replay->steps++;
	replay->samples++;
}

static void take_eval(struct steps *steps, int64_t now_ns, bool begins)
{
	struct replay *replay = steps->replay;
	replay_advance(replay, now_ns);
	if (begins) {
		triggers_engine_open(replay->engine, steps->eval_series, now_ns, -1, NULL);
		steps->eval_ns = now_ns;
	} else if (steps->in_eval) {
		struct triggers_sample sample = {.start_ns = steps->eval_ns,
						 .duration_ns = ns_sub(now_ns, steps->eval_ns),
						 .step = -1,
						 .phase = "eval",
						 .sample = steps->sample};
		triggers_engine_observe(replay->engine, steps->eval_series, &sample);
		replay->samples++;
	}
	steps->in_eval = begins;
}

static int bad_number(struct steps *steps, const char *name, const char *text)
{
	snprintf(steps->error, steps->error_room, "%.200s, line %llu: %s is \"%.40s\", which is no number",
		 steps->path, (unsigned long long)steps->line, name, text);
	return -EBADMSG;
}

static int take_row(struct steps *steps, char *field[FIELDS_MAX], int count)
{
	const char *text[COLUMNS];
	int64_t now_ns, length_ns, step = -1;
	for (int i = 0; i < COLUMNS; i++)
		text[i] = steps->place[i] >= 0 && steps->place[i] < count ? field[steps->place[i]] : "";
	if (!*text[TIME])
		return 0;
	if (replay_decimal(text[TIME], 6, &now_ns))
		return bad_number(steps, "time_ms", text[TIME]);
	if (!steps->has_run || strcmp(steps->replay->run, text[RUN])) {
		int result = begin_run(steps, text[RUN], now_ns);
		if (result)
			return result;
	}
	if (!strcmp(text[KIND], "eval_start") || !strcmp(text[KIND], "eval_stop")) {
		take_eval(steps, now_ns, !strcmp(text[KIND], "eval_start"));
		return 0;
	}
	if (strcmp(text[KIND], "step") || !*text[VALUE])
		return 0;
	if (replay_decimal(text[VALUE], 9, &length_ns) || length_ns < 0)
		return bad_number(steps, "value_s", text[VALUE]);
	if (*text[STEP] && replay_decimal(text[STEP], 0, &step))
		return bad_number(steps, "step", text[STEP]);
	take_step(steps, now_ns, length_ns, step);
	return 0;
}

static int take_line(struct steps *steps, char *line)
{
	char *field[FIELDS_MAX];
	size_t bytes = strlen(line);
	steps->line++;
	while (bytes && (line[bytes - 1] == '\r' || line[bytes - 1] == ' '))
		line[--bytes] = 0;
	if (!bytes)
		return 0;
	int count = split(line, field);
	return steps->has_header ? take_row(steps, field, count) : read_header(steps, field, count);
}

/* Feeds what is whole in buffer[0, used) and keeps the rest. */
static int take_lines(struct steps *steps, char *buffer, size_t *used)
{
	char *at = buffer, *end;
	while ((end = memchr(at, '\n', *used - (size_t)(at - buffer)))) {
		*end = 0;
		int result = take_line(steps, at);
		if (result)
			return result;
		at = end + 1;
	}
	*used -= (size_t)(at - buffer);
	memmove(buffer, at, *used);
	if (*used < LINE_MAX_BYTES)
		return 0;
	snprintf(steps->error, steps->error_room, "%.200s, line %llu: longer than %d bytes", steps->path,
		 (unsigned long long)steps->line + 1, LINE_MAX_BYTES);
	return -EBADMSG;
}

static int read_all(struct steps *steps, struct reducer_input *input)
{
	char buffer[16384 + LINE_MAX_BYTES];
	size_t used = 0;
	int64_t got;
	while ((got = reducer_input_read(input, buffer + used, sizeof(buffer) - 1 - used)) > 0) {
		used += (size_t)got;
		int result = take_lines(steps, buffer, &used);
		if (result)
			return result;
	}
	const struct reducer_problem *problem = reducer_input_problem(input);
	if (got < 0 || problem) {
		snprintf(steps->error, steps->error_room, "%.200s: %s", steps->path,
			 problem ? problem->what : strerror((int)-got));
		return got < 0 ? (int)got : -EBADMSG;
	}
	buffer[used] = 0;
	int result = take_line(steps, buffer);
	if (!result && !steps->has_header) {
		snprintf(steps->error, steps->error_room, "%.200s is empty", steps->path);
		return -EBADMSG;
	}
	return result;
}

int replay_steps(struct replay *replay, const char *path, char *error, size_t error_room)
{
	struct steps steps = {.replay = replay, .path = path, .error = error, .error_room = error_room};
	struct reducer_input *input;
	struct reducer_problem problem = {0};
	int result = reducer_input_open(path, &input, &problem);
	if (result) {
		snprintf(error, error_room, "%.200s: %s", path,
			 problem.what[0] ? problem.what : strerror(-result));
		return result;
	}
	result = read_all(&steps, input);
	end_run(&steps);
	reducer_input_free(input);
	return result;
}
