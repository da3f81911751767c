/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/*
 * Tables of step times through the triggers: run,time_ms,kind,value_s,data_s,step, the columns in any order.
 *
 *   step          a step; its row is written at its end: it began value_s before, and is open in between
 *   evalstep      the same, a step of phase "eval"
 *   eval_start .. eval_stop      the phase "eval"
 *   block_start .. block_stop    where a run tells of no steps, the phase "block": the least that such logs
 *                                say of progress. Around steps it is as long as the schedule says: nothing
 *   run_stop      what follows but steps is bookkeeping, up to the next start
 *   init_stop, run_start         after steps the job began again: its next step is a first one, as slow as that
 *   all others (epochs lie around steps as blocks do)    nothing
 *
 * Only value_s must be there: without a run all is one, without a kind all rows are steps, without a time a
 * step begins when the one before it ended. `sample` of a firing is the number of the step row within its
 * run, for other rows of the step row before them, -1 = none yet.
 *
 * Time that goes back by more than a second is a clock that was set. The rows of a run stand together.
 */
/* clang-format on */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <reducer/input.h>

#include "csv.h"
#include "ns.h"
#include "plain_text.h"
#include "replay.h"

enum { LINE_MAX_BYTES = 4096, FIELDS_MAX = 64, SET_BACK_MAX = 16, RUNS_SEEN_MAX = 1 << 20 };
enum column { RUN, TIME, KIND, VALUE, STEP, COLUMNS };
static const char *const column_names[COLUMNS] = {"run", "time_ms", "kind", "value_s", "step"};

#define SET_BACK_NS INT64_C(1000000000)

enum kind { OTHER, STEP_ROW, EVAL_STEP, EVAL_START, EVAL_STOP, BLOCK_START, BLOCK_STOP, RUN_START, RUN_STOP };
static const struct {
	const char *text;
	enum kind kind;
} kinds[] = {
	{"step", STEP_ROW},       {"evalstep", EVAL_STEP},      {"eval_start", EVAL_START},
	{"eval_stop", EVAL_STOP}, {"block_start", BLOCK_START}, {"block_stop", BLOCK_STOP},
	{"init_stop", RUN_START}, {"run_start", RUN_START},     {"run_stop", RUN_STOP},
};

/* What lies between two rows. */
struct stretch {
	uint32_t series;
	const char *phase;
	int64_t begin_ns;
	bool begun;
};

/* Which runs there were: their hashes, open addressing, 0 = free. */
struct runs_seen {
	uint64_t *hash;
	uint32_t count, room;
};

struct steps {
	struct replay *replay;
	const char *path;
	int place[COLUMNS]; /* field number, -1 = not there */
	bool has_header;
	uint64_t line;
	struct runs_seen seen;
	/* The current run. */
	bool has_run, has_steps, has_stopped, has_restarted;
	char run[LINE_MAX_BYTES];
	uint32_t step_series;
	struct stretch eval, block;
	int64_t samples, blocks, now_ns;
	unsigned set_back;
	char *error;
	size_t error_room;
};

static int refuse(struct steps *steps, const char *what, const char *text)
{
	char shown[64];
	plain_text(shown, sizeof(shown), text, strlen(text));
	snprintf(steps->error, steps->error_room, "%.200s, line %llu: %s%s%s%s", steps->path,
		 (unsigned long long)steps->line, what, *text ? " \"" : "", shown, *text ? "\"" : "");
	return -EBADMSG;
}

/* ---- header ---- */

static int read_header(struct steps *steps, char *field[FIELDS_MAX], int count)
{
	for (int column = 0; column < COLUMNS; column++) {
		steps->place[column] = -1;
		for (int i = 0; i < count; i++) {
			if (strcmp(field[i], column_names[column]))
				continue;
			if (steps->place[column] >= 0)
				return refuse(steps, "there are two columns", field[i]);
			steps->place[column] = i;
		}
	}
	if (steps->place[VALUE] < 0) {
		snprintf(steps->error, steps->error_room,
			 "%.200s has no column \"%s\": it is no table of step times", steps->path,
			 column_names[VALUE]);
		return -EBADMSG;
	}
	steps->has_header = true;
	return 0;
}

/* ---- runs ---- */

static uint64_t hash_of(const char *text)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash ? hash : 1;
}

static uint64_t *seen_place(uint64_t *table, uint32_t room, uint64_t hash)
{
	uint32_t at = (uint32_t)(hash ^ hash >> 32) & (room - 1);
	while (table[at] && table[at] != hash)
		at = (at + 1) & (room - 1);
	return &table[at];
}

/* -EEXIST: it was seen before. -ENOMEM. More runs than can be remembered are not checked. */
static int see_run(struct runs_seen *seen, uint64_t hash)
{
	if (seen->count >= seen->room / 2 && seen->room < RUNS_SEEN_MAX) {
		uint32_t room = seen->room ? 2 * seen->room : 256;
		uint64_t *larger = calloc(room, sizeof(*larger));
		if (!larger)
			return -ENOMEM;
		for (uint32_t i = 0; i < seen->room; i++)
			if (seen->hash[i])
				*seen_place(larger, room, seen->hash[i]) = seen->hash[i];
		free(seen->hash);
		seen->hash = larger;
		seen->room = room;
	}
	if (seen->count >= seen->room / 2)
		return 0;
	uint64_t *place = seen_place(seen->hash, seen->room, hash);
	if (*place)
		return -EEXIST;
	*place = hash;
	seen->count++;
	return 0;
}

static void end_run(struct steps *steps)
{
	if (steps->has_run)
		replay_end(steps->replay);
	steps->has_run = false;
}

static uint32_t series_of(struct steps *steps, enum triggers_role role, const char *name)
{
	struct triggers_series_key key = {.role = role, .rank = UINT32_MAX, .name = name, .alarms = 1};
	return triggers_engine_series(steps->replay->engine, &key);
}

static int begin_run(struct steps *steps, const char *run)
{
	end_run(steps);
	int result = see_run(&steps->seen, hash_of(run));
	if (result == -EEXIST)
		return refuse(steps, "rows of another run stand between those of run", run);
	if (result == 0)
		result = replay_begin(steps->replay, run, steps->error, steps->error_room);
	if (result)
		return result;
	snprintf(steps->run, sizeof(steps->run), "%s", run);
	steps->step_series = series_of(steps, TRIGGERS_STEP, "step");
	steps->eval =
		(struct stretch){.series = series_of(steps, TRIGGERS_PHASE, "phase:eval"), .phase = "eval"};
	steps->block = (struct stretch){.series = TRIGGERS_SERIES_NONE, .phase = "block"};
	steps->samples = 0;
	steps->blocks = 0;
	steps->now_ns = INT64_MIN;
	steps->set_back = 0;
	steps->has_steps = steps->has_stopped = steps->has_restarted = false;
	steps->has_run = true;
	return 0;
}

/* ---- rows ---- */

/* The table says what time it is. */
static int pass_time(struct steps *steps, int64_t begin_ns, int64_t now_ns)
{
	struct replay *replay = steps->replay;
	if (steps->now_ns != INT64_MIN && now_ns < ns_sub(steps->now_ns, SET_BACK_NS)) {
		if (++steps->set_back > SET_BACK_MAX)
			return refuse(steps, "time goes back again and again: rows must be in their order", "");
		replay_set_back(replay, begin_ns);
	} else if (steps->now_ns != INT64_MIN && now_ns > steps->now_ns) {
		replay->job_ns = ns_add(replay->job_ns, ns_sub(now_ns, steps->now_ns));
	}
	if (steps->now_ns == INT64_MIN)
		replay->job_ns = ns_add(replay->job_ns, ns_sub(now_ns, begin_ns));
	steps->now_ns = now_ns;
	if (begin_ns > replay->clock_ns)
		replay_advance(replay, begin_ns);
	return 0;
}

static int take_step(struct steps *steps, int64_t end_ns, int64_t length_ns, int64_t step, const char *phase)
{
	struct replay *replay = steps->replay;
	bool is_first = !phase && steps->has_restarted;
	struct triggers_sample sample = {.start_ns = ns_sub(end_ns, length_ns),
					 .duration_ns = length_ns,
					 .step = step,
					 .phase = is_first ? "first" : phase,
					 .sample = phase ? steps->samples - 1 : steps->samples};
	int result = pass_time(steps, sample.start_ns, end_ns);
	if (result)
		return result;
	replay->sample = sample.sample;
	if (!steps->has_steps && steps->block.series != TRIGGERS_SERIES_NONE)
		triggers_engine_abandon(replay->engine, steps->block.series);
	steps->has_steps = true;
	triggers_engine_open(replay->engine, steps->step_series, sample.start_ns, step, sample.phase);
	replay_advance(replay, end_ns);
	triggers_engine_observe(replay->engine, steps->step_series, &sample);
	steps->has_restarted = steps->has_restarted && !is_first;
	steps->samples += !phase;
	replay->steps++;
	replay->samples++;
	return 0;
}

static int begin_stretch(struct steps *steps, struct stretch *stretch, int64_t now_ns, int64_t step)
{
	int result = pass_time(steps, now_ns, now_ns);
	if (result)
		return result;
	stretch->begin_ns = now_ns;
	stretch->begun = true;
	if (stretch->series != TRIGGERS_SERIES_NONE)
		triggers_engine_open(steps->replay->engine, stretch->series, now_ns, step, NULL);
	return 0;
}

static int end_stretch(struct steps *steps, struct stretch *stretch, int64_t now_ns, int64_t step)
{
	struct replay *replay = steps->replay;
	int result = pass_time(steps, now_ns, now_ns);
	if (result || !stretch->begun)
		return result;
	replay_advance(replay, now_ns);
	stretch->begun = false;
	struct triggers_sample sample = {.start_ns = stretch->begin_ns,
					 .duration_ns = ns_sub(now_ns, stretch->begin_ns),
					 .step = step,
					 .phase = stretch->phase,
					 .sample = steps->samples - 1};
	if (stretch->series == TRIGGERS_SERIES_NONE)
		return 0;
	triggers_engine_observe(replay->engine, stretch->series, &sample);
	replay->samples++;
	return 0;
}

/* A run that ends a block without having told of a step is one that logs blocks alone. */
static int take_block(struct steps *steps, int64_t now_ns, bool begins)
{
	if (steps->has_steps)
		return 0;
	if (begins)
		return begin_stretch(steps, &steps->block, now_ns, steps->blocks);
	if (steps->block.begun && steps->block.series == TRIGGERS_SERIES_NONE)
		steps->block.series = series_of(steps, TRIGGERS_PHASE, "phase:block");
	return end_stretch(steps, &steps->block, now_ns, steps->blocks++);
}

/* What was open when it stopped is so no more. */
static void restart(struct steps *steps)
{
	if (steps->eval.begun)
		triggers_engine_abandon(steps->replay->engine, steps->eval.series);
	steps->eval.begun = false;
	steps->has_stopped = false;
	steps->has_restarted = true;
}

static enum kind kind_of(const struct steps *steps, const char *text)
{
	if (steps->place[KIND] < 0)
		return STEP_ROW;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].text, text))
			return kinds[i].kind;
	return OTHER;
}

/* What comes with a row of a step, as numbers. */
static int take_step_row(struct steps *steps, const char *const text[COLUMNS], int64_t now_ns,
			 const char *phase)
{
	int64_t length_ns, step = -1;
	if (!*text[VALUE])
		return 0;
	int result = replay_decimal(text[VALUE], 9, &length_ns);
	if (result == 0 && length_ns < 0)
		return refuse(steps, "value_s is negative:", text[VALUE]);
	if (result == -ERANGE || (result == 0 && length_ns > INT64_MAX / 4))
		return refuse(steps, "value_s is out of all bounds:", text[VALUE]);
	if (result)
		return refuse(steps, "value_s is no number:", text[VALUE]);
	if (*text[STEP] && replay_decimal(text[STEP], 0, &step))
		return refuse(steps, "step is no number:", text[STEP]);
	if (!*text[TIME])
		now_ns = ns_add(steps->now_ns == INT64_MIN ? 0 : steps->now_ns, length_ns);
	return take_step(steps, now_ns, length_ns, step, phase);
}

static int take_row(struct steps *steps, char *field[FIELDS_MAX], int count)
{
	const char *text[COLUMNS];
	int64_t now_ns = 0;
	for (int i = 0; i < COLUMNS; i++)
		text[i] = steps->place[i] >= 0 && steps->place[i] < count ? field[steps->place[i]] : "";
	if (steps->place[RUN] < 0)
		text[RUN] = strrchr(steps->path, '/') ? strrchr(steps->path, '/') + 1 : steps->path;
	if (*text[TIME] && (replay_decimal(text[TIME], 6, &now_ns) || llabs(now_ns) > INT64_MAX / 4))
		return refuse(steps, "time_ms is no time:", text[TIME]);
	if (!steps->has_run || strcmp(steps->run, text[RUN])) {
		int result = begin_run(steps, text[RUN]);
		if (result)
			return result;
	}
	if (!*text[TIME])
		now_ns = steps->now_ns;
	enum kind kind = kind_of(steps, text[KIND]);
	if (kind == STEP_ROW || kind == EVAL_STEP)
		return take_step_row(steps, text, now_ns, kind == EVAL_STEP ? "eval" : NULL);
	if (kind == RUN_START && steps->has_steps)
		restart(steps);
	if (now_ns == INT64_MIN || steps->has_stopped)
		return 0;
	switch (kind) {
	case EVAL_START:
		return begin_stretch(steps, &steps->eval, now_ns, -1);
	case EVAL_STOP:
		return end_stretch(steps, &steps->eval, now_ns, -1);
	case BLOCK_START:
	case BLOCK_STOP:
		return take_block(steps, now_ns, kind == BLOCK_START);
	case RUN_STOP:
		steps->has_stopped = true;
		return 0;
	case RUN_START:
	case OTHER:
	case STEP_ROW:
	case EVAL_STEP:
		break;
	}
	return 0;
}

/* ---- lines ---- */

static int take_line(struct steps *steps, char *line, size_t bytes)
{
	static const char mark[] = "\xef\xbb\xbf";
	char *field[FIELDS_MAX];
	steps->line++;
	if (memchr(line, 0, bytes))
		return refuse(steps, "it holds a zero byte, so this is no text", "");
	if (steps->line == 1 && !strncmp(line, mark, strlen(mark)))
		line += strlen(mark);
	if (line[strspn(line, " \t\r")] == 0)
		return 0;
	int count = csv_split(line, field, FIELDS_MAX);
	if (count == -E2BIG)
		return refuse(steps, "it has more fields than a table of step times may have", "");
	if (count < 0)
		return refuse(steps, "a quoted field does not end where it should", "");
	return steps->has_header ? take_row(steps, field, count) : read_header(steps, field, count);
}

/* Feeds what is whole in buffer[0, used) and keeps the rest. */
static int take_lines(struct steps *steps, char *buffer, size_t *used)
{
	char *at = buffer, *end;
	while ((end = memchr(at, '\n', *used - (size_t)(at - buffer)))) {
		*end = 0;
		int result = take_line(steps, at, (size_t)(end - at));
		if (result)
			return result;
		at = end + 1;
	}
	*used -= (size_t)(at - buffer);
	memmove(buffer, at, *used);
	if (*used < LINE_MAX_BYTES)
		return 0;
	steps->line++;
	return refuse(steps, "it is longer than 4096 bytes", "");
}

static int read_all(struct steps *steps, struct reducer_input *input)
{
	char buffer[16384 + LINE_MAX_BYTES];
	size_t used = 0;
	int64_t got;
	while ((got = reducer_input_read(input, buffer + used, sizeof(buffer) - 1 - used)) > 0) {
		used += (size_t)got;
		int result = take_lines(steps, buffer, &used);
		if (!result && replay_interrupted())
			result = -EINTR;
		if (result)
			return result;
		replay_progress(steps->replay, steps->line, "rows");
	}
	const struct reducer_problem *problem = reducer_input_problem(input);
	if (got < 0 || problem) {
		snprintf(steps->error, steps->error_room, "%.200s: %s", steps->path,
			 problem ? problem->what : strerror((int)-got));
		return got < 0 ? (int)got : -EBADMSG;
	}
	buffer[used] = 0;
	int result = used ? take_line(steps, buffer, used) : 0;
	if (!result && !steps->has_header) {
		snprintf(steps->error, steps->error_room, "%.200s is empty", steps->path);
		return -EBADMSG;
	}
	return result;
}

static int replay_input(struct replay *replay, const char *path, int opened, struct reducer_input *input,
			const struct reducer_problem *problem, char *error, size_t error_room)
{
	struct steps *steps = calloc(1, sizeof(*steps));
	int result = opened ? opened : steps ? 0 : -ENOMEM;
	if (result) {
		snprintf(error, error_room, "%.200s: %s", path,
			 opened && problem->what[0] ? problem->what : strerror(-result));
	} else {
		*steps = (struct steps){
			.replay = replay, .path = path, .error = error, .error_room = error_room};
		result = read_all(steps, input);
		end_run(steps);
		replay_progress_clear(replay);
		free(steps->seen.hash);
	}
	reducer_input_free(input);
	free(steps);
	return result;
}

int replay_steps_fd(struct replay *replay, int fd, const char *name, char *error, size_t error_room)
{
	struct reducer_input *input = NULL;
	struct reducer_problem problem = {0};
	int opened = reducer_input_from_fd(fd, &input, &problem);
	return replay_input(replay, name, opened, input, &problem, error, error_room);
}

int replay_steps(struct replay *replay, const char *path, char *error, size_t error_room)
{
	struct reducer_input *input = NULL;
	struct reducer_problem problem = {0};
	if (!strcmp(path, "-"))
		return replay_steps_fd(replay, STDIN_FILENO, "stdin", error, error_room);
	int opened = reducer_input_open(path, &input, &problem);
	return replay_input(replay, path, opened, input, &problem, error, error_room);
}
