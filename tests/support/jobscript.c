/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over the words of each line. A parser of a part takes the words that are its own and returns 0, or
 * says what is wrong and returns -EINVAL; what no one takes is an error.
 */
#include "jobscript.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <triggers/triggers.h>

enum { WORDS_MAX = 48, WORD_MAX = JOBSCRIPT_NAME_MAX };

static const int64_t MILLION = 1000000;

struct line {
	struct jobscript *script;
	unsigned number;
	char word[WORDS_MAX][WORD_MAX];
	unsigned n, at;
	char *why;
	size_t why_room;
};

static int wrong(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int wrong(struct line *line, const char *format, ...)
{
	va_list arguments;
	int length = snprintf(line->why, line->why_room, "%s:%u: ", line->script->path, line->number);
	va_start(arguments, format);
	if (length > 0 && (size_t)length < line->why_room)
		vsnprintf(line->why + length, line->why_room - (size_t)length, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

static const char *seen(const struct line *line)
{
	return line->at < line->n ? line->word[line->at] : "the end of the line";
}

/* Takes the word if it is this one. */
static int take(struct line *line, const char *word)
{
	if (line->at >= line->n || strcmp(line->word[line->at], word) != 0)
		return 0;
	line->at++;
	return 1;
}

static int must(struct line *line, const char *word)
{
	return take(line, word) ? 0 : wrong(line, "\"%s\" is expected, not \"%s\"", word, seen(line));
}

static int name(struct line *line, char ret_name[JOBSCRIPT_NAME_MAX])
{
	if (line->at >= line->n)
		return wrong(line, "a name is missing");
	snprintf(ret_name, JOBSCRIPT_NAME_MAX, "%s", line->word[line->at++]);
	return 0;
}

/* A decimal in millionths; *ret_unit is what follows it in the same word, or the next word if nothing does.
 */
static int decimal(struct line *line, int64_t *ret_millionths, const char **ret_unit)
{
	const char *text = seen(line);
	int negative = *text == '-', digits = 0;
	int64_t value = 0, place = MILLION;
	text += negative;
	for (; *text >= '0' && *text <= '9' && value < INT64_MAX / 100 / MILLION; text++, digits++)
		value = value * 10 + (*text - '0');
	value *= MILLION;
	if (*text == '.')
		for (text++; *text >= '0' && *text <= '9'; text++, digits++)
			value += (*text - '0') * (place /= 10);
	if (!digits)
		return wrong(line, "a number is expected, not \"%s\"", seen(line));
	line->at++;
	*ret_millionths = negative ? -value : value;
	*ret_unit = text;
	if (!*text && line->at < line->n)
		*ret_unit = line->word[line->at++];
	return 0;
}

static int integer(struct line *line, int64_t low, int64_t high, int64_t *ret_value)
{
	int64_t value;
	const char *unit;
	unsigned at = line->at;
	if (decimal(line, &value, &unit) < 0)
		return -EINVAL;
	line->at = at + 1;
	if (value % MILLION || value / MILLION < low || value / MILLION > high)
		return wrong(line, "\"%s\" must be a whole number from %lld to %lld", line->word[at],
			     (long long)low, (long long)high);
	*ret_value = value / MILLION;
	return 0;
}

static int duration(struct line *line, int64_t *ret_ns)
{
	static const struct {
		const char *unit;
		int64_t ns;
	} units[] = {
		{"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {"min", 60000000000}, {"h", 3600000000000}};
	int64_t value;
	const char *unit;
	if (decimal(line, &value, &unit) < 0)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(units[i].unit, unit) == 0) {
			if (value > 1000000 * MILLION || value < -1000000 * MILLION)
				return wrong(line, "so long a time is not meant");
			/* Millionths of an hour are 3.6 ms. */
			*ret_ns =
				value / MILLION * units[i].ns + value % MILLION * (units[i].ns / 1000) / 1000;
			return 0;
		}
	return wrong(line, "a time needs us, ms, s, min or h, not \"%s\"", unit);
}

static int percent(struct line *line, int64_t *ret_ppm)
{
	const char *unit;
	if (decimal(line, ret_ppm, &unit) < 0)
		return -EINVAL;
	if (strcmp(unit, "%") != 0)
		return wrong(line, "a share needs %%, not \"%s\"", unit);
	*ret_ppm /= 100;
	return 0;
}

/* A number without a unit, in millionths. */
static int plain(struct line *line, int64_t *ret_ppm)
{
	const char *unit;
	unsigned at = line->at;
	int result = decimal(line, ret_ppm, &unit);
	line->at = at + 1;
	return result;
}

static int jitter(struct line *line, int64_t *ret_ppm)
{
	return take(line, "jitter") ? percent(line, ret_ppm) : 0;
}

/* ---- the job ---- */

static int on_seed(struct line *line)
{
	int64_t seed;
	int result = integer(line, 0, INT32_MAX, &seed);
	line->script->seed = result == 0 ? (uint64_t)seed : 0;
	return result;
}

static int on_ranks(struct line *line)
{
	int64_t ranks;
	int result = integer(line, 1, JOBSCRIPT_RANKS_MAX, &ranks);
	if (result == 0)
		line->script->ranks = (int)ranks;
	return result;
}

static int on_steps(struct line *line)
{
	return integer(line, 1, JOBSCRIPT_STEPS_MAX, &line->script->steps);
}

static int on_step(struct line *line)
{
	int result = duration(line, &line->script->step_ns);
	return result < 0 ? result : jitter(line, &line->script->jitter_ppm);
}

static int on_span(struct line *line)
{
	struct jobscript *script = line->script;
	if (script->n_spans == JOBSCRIPT_SPANS_MAX)
		return wrong(line, "more than %d spans", JOBSCRIPT_SPANS_MAX);
	struct jobscript_span *span = &script->span[script->n_spans++];
	span->jitter_ppm = script->jitter_ppm;
	if (name(line, span->name) < 0 || duration(line, &span->ns) < 0)
		return -EINVAL;
	return jitter(line, &span->jitter_ppm);
}

static int on_between(struct line *line)
{
	return duration(line, &line->script->between_ns);
}

static int on_quantum(struct line *line)
{
	return duration(line, &line->script->quantum_ns);
}

static int on_device(struct line *line)
{
	int64_t device;
	if (integer(line, 0, 15, &device) < 0 || must(line, "duty") < 0)
		return -EINVAL;
	line->script->device = (int)device;
	return plain(line, &line->script->duty_ppm);
}

static int on_run(struct line *line)
{
	return must(line, "on") < 0 ? -EINVAL : duration(line, &line->script->run_on_ns);
}

/* ---- what happens ---- */

static int on_longer(struct line *line, struct jobscript_rule *rule)
{
	if (duration(line, &rule->ns) < 0 || jitter(line, &rule->jitter_ppm) < 0)
		return -EINVAL;
	return take(line, "in") ? name(line, rule->name) : 0;
}

static int on_stopped(struct line *line, struct jobscript_rule *rule)
{
	return duration(line, &rule->ns);
}

static int on_never(struct line *line, struct jobscript_rule *rule)
{
	(void)rule;
	return must(line, "ends");
}

static int on_times(struct line *line, struct jobscript_rule *rule)
{
	return plain(line, &rule->ppm);
}

static int on_ramp(struct line *line, struct jobscript_rule *rule)
{
	return percent(line, &rule->ppm);
}

static int phase_length(struct line *line, struct jobscript_rule *rule)
{
	if (duration(line, &rule->ns) < 0 || jitter(line, &rule->jitter_ppm) < 0)
		return -EINVAL;
	return take(line, "uneven") ? percent(line, &rule->uneven_ppm) : 0;
}

static int on_phase(struct line *line, struct jobscript_rule *rule)
{
	if (name(line, rule->name) < 0)
		return -EINVAL;
	if (line->at + 1 >= line->n || strcmp(line->word[line->at + 1], "steps") != 0)
		return phase_length(line, rule);
	if (integer(line, 1, JOBSCRIPT_STEPS_MAX, &rule->count) < 0 || must(line, "steps") < 0 ||
	    must(line, "of") < 0)
		return -EINVAL;
	return duration(line, &rule->each_ns);
}

static int on_pause(struct line *line, struct jobscript_rule *rule)
{
	return duration(line, &rule->ns);
}

static int on_capture(struct line *line, struct jobscript_rule *rule)
{
	if (integer(line, 1, 100, &rule->count) < 0 || must(line, "steps") < 0 || must(line, "times") < 0)
		return -EINVAL;
	return plain(line, &rule->ppm);
}

static int on_clock(struct line *line, struct jobscript_rule *rule)
{
	return duration(line, &rule->ns);
}

static int on_end(struct line *line, struct jobscript_rule *rule)
{
	if (take(line, "after") && duration(line, &rule->after_ns) < 0)
		return -EINVAL;
	if (!take(line, "again"))
		return 0;
	if (must(line, "at") < 0 || must(line, "step") < 0 ||
	    integer(line, 0, JOBSCRIPT_STEPS_MAX, &rule->again_step) < 0 || must(line, "in") < 0)
		return -EINVAL;
	return duration(line, &rule->again_ns);
}

static int on_daemon(struct line *line, struct jobscript_rule *rule)
{
	if (take(line, "gone"))
		rule->what = JOBSCRIPT_DAEMON_GONE;
	else if (take(line, "anew"))
		rule->what = JOBSCRIPT_DAEMON_ANEW;
	else if (must(line, "stopped") < 0)
		return -EINVAL;
	return duration(line, &rule->ns);
}

static const struct {
	const char *word;
	enum jobscript_what what;
	int (*parse)(struct line *line, struct jobscript_rule *rule);
} effects[] = {
	{"longer", JOBSCRIPT_LONGER, on_longer}, {"stopped", JOBSCRIPT_STOPPED, on_stopped},
	{"never", JOBSCRIPT_HANG, on_never},     {"times", JOBSCRIPT_TIMES, on_times},
	{"ramp", JOBSCRIPT_RAMP, on_ramp},       {"phase", JOBSCRIPT_PHASE, on_phase},
	{"pause", JOBSCRIPT_PAUSE, on_pause},    {"capture", JOBSCRIPT_CAPTURE, on_capture},
	{"clock", JOBSCRIPT_CLOCK, on_clock},    {"crash", JOBSCRIPT_CRASH, on_end},
	{"close", JOBSCRIPT_CLOSE, on_end},      {"daemon", JOBSCRIPT_DAEMON_STOPPED, on_daemon},
};

static int effect(struct line *line, struct jobscript_rule *rule)
{
	for (size_t i = 0; i < sizeof(effects) / sizeof(effects[0]); i++) {
		if (!take(line, effects[i].word))
			continue;
		rule->what = effects[i].what;
		if (effects[i].parse(line, rule) < 0)
			return -EINVAL;
		if (take(line, "after") && duration(line, &rule->after_ns) < 0)
			return -EINVAL;
		rule->idle = take(line, "idle");
		rule->inside = take(line, "inside");
		return 0;
	}
	return wrong(line, "\"%s\" is nothing that happens", seen(line));
}

/* ---- when ---- */

static int when_at(struct line *line, struct jobscript_rule *rule)
{
	if (take(line, "start")) {
		rule->when = JOBSCRIPT_START;
		return 0;
	}
	if (must(line, "step") < 0)
		return -EINVAL;
	do {
		if (rule->n_places == JOBSCRIPT_PLACES_MAX)
			return wrong(line, "more than %d steps", JOBSCRIPT_PLACES_MAX);
		if (integer(line, 0, JOBSCRIPT_STEPS_MAX, &rule->place[rule->n_places++]) < 0)
			return -EINVAL;
	} while (take(line, ","));
	return 0;
}

static int range(struct line *line, struct jobscript_rule *rule)
{
	if (take(line, "from") && integer(line, 0, JOBSCRIPT_STEPS_MAX, &rule->from) < 0)
		return -EINVAL;
	return take(line, "to") ? integer(line, 0, JOBSCRIPT_STEPS_MAX, &rule->to) : 0;
}

static int when_every(struct line *line, struct jobscript_rule *rule)
{
	if (integer(line, 1, JOBSCRIPT_STEPS_MAX, &rule->period) < 0 || must(line, "steps") < 0)
		return -EINVAL;
	return range(line, rule);
}

static int when_from(struct line *line, struct jobscript_rule *rule)
{
	if (must(line, "step") < 0 || integer(line, 0, JOBSCRIPT_STEPS_MAX, &rule->from) < 0)
		return -EINVAL;
	return range(line, rule);
}

static int when_random(struct line *line, struct jobscript_rule *rule)
{
	return must(line, "in") < 0 ? -EINVAL : when_every(line, rule);
}

static const struct {
	const char *word;
	enum jobscript_when when;
	int (*parse)(struct line *line, struct jobscript_rule *rule);
} whens[] = {
	{"at", JOBSCRIPT_AT, when_at},
	{"every", JOBSCRIPT_EVERY, when_every},
	{"from", JOBSCRIPT_FROM, when_from},
	{"one", JOBSCRIPT_RANDOM, when_random},
};

static int whom(struct line *line, struct jobscript_rule *rule)
{
	int64_t rank = JOBSCRIPT_ALL;
	if (take(line, "rank") && integer(line, 0, JOBSCRIPT_RANKS_MAX - 1, &rank) < 0)
		return -EINVAL;
	rule->rank = (int)rank;
	return must(line, ":");
}

/* 1 if the line is a rule. */
static int on_rule(struct line *line)
{
	struct jobscript *script = line->script;
	for (size_t i = 0; i < sizeof(whens) / sizeof(whens[0]); i++) {
		if (!take(line, whens[i].word))
			continue;
		if (script->n_rules == JOBSCRIPT_RULES_MAX)
			return wrong(line, "more than %d rules", JOBSCRIPT_RULES_MAX);
		struct jobscript_rule *rule = &script->rule[script->n_rules++];
		*rule = (struct jobscript_rule){
			.when = whens[i].when, .to = INT64_MAX, .after_ns = -1, .again_step = -1};
		if (whens[i].parse(line, rule) < 0 || whom(line, rule) < 0 || effect(line, rule) < 0)
			return -EINVAL;
		return 1;
	}
	return 0;
}

/* ---- what is wanted ---- */

static int gate_of(struct line *line)
{
	if (take(line, "held"))
		return JOBSCRIPT_HELD;
	for (int gate = TRIGGERS_PASSED + 1; gate < TRIGGERS_GATE_LIMIT; gate++)
		if (take(line, triggers_gate_name((enum triggers_gate)gate)))
			return gate;
	return TRIGGERS_PASSED;
}

static int severity(struct line *line, int *ret_severity)
{
	for (int i = TRIGGERS_NOTE; i <= TRIGGERS_CRITICAL; i++)
		if (take(line, triggers_severity_name((enum triggers_severity)i))) {
			*ret_severity = i;
			return 0;
		}
	return wrong(line, "a gate, note, warn or critical is expected, not \"%s\"", seen(line));
}

static int number_of_times(struct line *line, struct jobscript_wanted *wanted)
{
	int64_t times;
	wanted->least = wanted->most = 1;
	if (take(line, "some") || take(line, "any")) {
		wanted->least = strcmp(line->word[line->at - 1], "some") == 0;
		wanted->most = UINT32_MAX;
		return must(line, "times");
	}
	if (line->at == line->n)
		return 0;
	if (integer(line, 1, 100000, &times) < 0)
		return -EINVAL;
	wanted->least = wanted->most = (unsigned)times;
	return must(line, "times");
}

static int one_whole(struct line *line, int *ret_value)
{
	int64_t value;
	int result = integer(line, 0, 1000, &value);
	if (result == 0)
		*ret_value = (int)value;
	return result;
}

/* 1 if there was a clause, 0 if not. */
static int clause(struct line *line, struct jobscript_wanted *wanted)
{
	int result;
	if (take(line, "of"))
		result = name(line, wanted->series);
	else if (take(line, "phase"))
		result = name(line, wanted->phase);
	else if (take(line, "step"))
		result = integer(line, 0, JOBSCRIPT_STEPS_MAX, &wanted->step);
	else if (take(line, "after"))
		result = must(line, "step") < 0 ? -EINVAL
						: integer(line, 0, JOBSCRIPT_STEPS_MAX, &wanted->after_step);
	else if (take(line, "rank"))
		result = one_whole(line, &wanted->rank);
	else if (take(line, "life"))
		result = one_whole(line, &wanted->life);
	else if (take(line, "t0"))
		result = duration(line, &wanted->t0_ns) < 0 || must(line, "within") < 0
				 ? -EINVAL
				 : duration(line, &wanted->within_ns);
	else if (take(line, "detected"))
		result = duration(line, &wanted->detected_ns);
	else if (take(line, "resolved"))
		wanted->resolved = 1, result = 0;
	else if (take(line, "unresolved"))
		wanted->resolved = 0, result = 0;
	else
		return 0;
	return result < 0 ? result : 1;
}

static int on_expect(struct line *line)
{
	struct jobscript *script = line->script;
	int result;
	if (take(line, "nothing")) {
		script->nothing = 1;
		return 0;
	}
	if (take(line, "at")) {
		if (must(line, "most") < 0 || integer(line, 1, 100000, &script->incidents_most) < 0)
			return -EINVAL;
		return must(line, "incidents");
	}
	if (script->n_wanted == JOBSCRIPT_WANTED_MAX)
		return wrong(line, "more than %d firings wanted", JOBSCRIPT_WANTED_MAX);
	struct jobscript_wanted *wanted = &script->wanted[script->n_wanted++];
	*wanted = (struct jobscript_wanted){.line = line->number,
					    .step = -1,
					    .after_step = -1,
					    .rank = -1,
					    .life = -1,
					    .within_ns = -1,
					    .detected_ns = -1,
					    .resolved = -1};
	wanted->gate = gate_of(line);
	if (severity(line, &wanted->severity) < 0 || name(line, wanted->trigger) < 0)
		return -EINVAL;
	while ((result = clause(line, wanted)) > 0)
		;
	return result < 0 ? result : number_of_times(line, wanted);
}

/* ---- lines ---- */

static const struct {
	const char *word;
	int (*parse)(struct line *line);
} statements[] = {
	{"seed", on_seed},       {"ranks", on_ranks},     {"steps", on_steps},   {"step", on_step},
	{"span", on_span},       {"between", on_between}, {"device", on_device}, {"run", on_run},
	{"quantum", on_quantum}, {"expect", on_expect},
};

static int statement(struct line *line)
{
	int result = on_rule(line);
	for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]) && result == 0; i++)
		if (take(line, statements[i].word)) {
			result = statements[i].parse(line);
			result = result < 0 ? result : 1;
		}
	if (result == 0)
		return wrong(line, "\"%s\" is no statement", seen(line));
	if (result > 0 && line->at < line->n)
		return wrong(line, "\"%s\" is too much", seen(line));
	return result < 0 ? result : 0;
}

static int add_word(struct line *line, const char *text, size_t bytes)
{
	if (line->n == WORDS_MAX || bytes >= WORD_MAX)
		return wrong(line, "the line or a word is too long");
	memcpy(line->word[line->n], text, bytes);
	line->word[line->n++][bytes] = 0;
	return 0;
}

/* Words end at blanks; a ':' or ',' at a word's end is one of its own. */
static int split(struct line *line, const char *text)
{
	for (text += strspn(text, " \t"); *text && *text != '#'; text += strspn(text, " \t")) {
		size_t bytes = strcspn(text, " \t"), whole = bytes;
		int mark = bytes > 1 && (text[bytes - 1] == ':' || text[bytes - 1] == ',');
		if (add_word(line, text, bytes - (size_t)mark) < 0)
			return -EINVAL;
		if (mark && add_word(line, text + bytes - 1, 1) < 0)
			return -EINVAL;
		text += whole;
	}
	return 0;
}

static int check(struct line *line)
{
	const struct jobscript *script = line->script;
	int passed = 0;
	for (unsigned i = 0; i < script->n_wanted; i++)
		passed += script->wanted[i].gate == TRIGGERS_PASSED;
	if (script->nothing == (passed > 0))
		return wrong(line, script->nothing ? "nothing and something is wanted"
						   : "nothing is wanted: say \"expect nothing\"");
	return 0;
}

int jobscript_read(const char *path, struct jobscript *ret, char *why, size_t why_room)
{
	char text[512];
	FILE *file = fopen(path, "re");
	struct line line = {.script = ret, .why = why, .why_room = why_room};
	int result = 0;
	*ret = (struct jobscript){.seed = 1,
				  .ranks = 1,
				  .steps = 100,
				  .step_ns = 1000000000,
				  .between_ns = 1000000,
				  .run_on_ns = 10000000000,
				  .device = -1,
				  .incidents_most = -1};
	snprintf(ret->path, sizeof(ret->path), "%s", path);
	if (!file) {
		result = -errno;
		snprintf(why, why_room, "%s: %s", path, strerror(errno));
		return result;
	}
	while (result == 0 && fgets(text, sizeof(text), file)) {
		line.number++;
		line.n = line.at = 0;
		size_t bytes = strcspn(text, "\n");
		if (!text[bytes] && !feof(file))
			result = wrong(&line, "the line is too long");
		text[bytes] = 0;
		if (result == 0)
			result = split(&line, text);
		if (result == 0 && line.n)
			result = statement(&line);
	}
	fclose(file);
	return result < 0 ? result : check(&line);
}
