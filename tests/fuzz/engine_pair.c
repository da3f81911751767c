/* SPDX-License-Identifier: Apache-2.0 */
#include "engine_pair.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "save.h"

#define MINUTE_NS INT64_C(60000000000)
#define HOUR_NS   (60 * MINUTE_NS)

enum { HEADER_BYTES = 24, CRC_AT = 16, CHANGE_BYTES = 4, NOBODY = 0x7fffffff };

static bool ends(const char *text, size_t room)
{
	return memchr(text, 0, room) != NULL;
}

static void check_firing(const struct triggers_firing *firing, bool sound)
{
	fuzz_require(ends(firing->trigger, sizeof(firing->trigger)) &&
			     ends(firing->series, sizeof(firing->series)) &&
			     ends(firing->phase, sizeof(firing->phase)) &&
			     ends(firing->evidence, sizeof(firing->evidence)),
		     "a text of a firing has no end");
	if (!sound)
		return;
	fuzz_require(firing->evidence[0] != 0, "%s says nothing", firing->trigger);
	fuzz_require(firing->severity <= TRIGGERS_CRITICAL, "severity %d", (int)firing->severity);
	fuzz_require(isfinite(firing->value) && isfinite(firing->expected) && isfinite(firing->ratio),
		     "%s: value %g, expected %g, ratio %g", firing->trigger, firing->value, firing->expected,
		     firing->ratio);
	fuzz_require(firing->t0_ns <= firing->detected_ns, "%s begins at %lld and is detected at %lld",
		     firing->trigger, (long long)firing->t0_ns, (long long)firing->detected_ns);
}

/* No more incidents in an hour or a day than there may be, whatever times producers give, give or take a minute. */
static void count_passed(struct pair *pair)
{
	const uint32_t most = sizeof(pair->passed_ns) / sizeof(pair->passed_ns[0]);
	uint32_t hour = 0, day = 0;
	pair->passed_ns[pair->n_passed++ % most] = pair->now_ns;
	for (uint32_t i = 0; i < pair->n_passed && i < most; i++) {
		hour += pair->now_ns - pair->passed_ns[i] < HOUR_NS - 2 * MINUTE_NS;
		day += pair->now_ns - pair->passed_ns[i] < 24 * HOUR_NS - 2 * MINUTE_NS;
	}
	fuzz_require(hour <= pair->per_hour && day <= pair->per_day, "%u incidents in an hour, %u in a day",
		     hour, day);
}

static void keep(struct pair_engine *engine, const struct triggers_firing *firing, int gate)
{
	if (engine->said < PAIR_SAID_MAX) {
		engine->kept[engine->said].firing = *firing;
		engine->kept[engine->said].firing.series_id = 0; /* each engine has its own */
		engine->kept[engine->said].gate = gate;
	}
	engine->said++;
}

static struct pair *counted; /* whose first engine's incidents are counted */

/* Where FUZZ_SAY is set. */
static void say(const struct pair_engine *engine, const struct triggers_firing *firing, const char *gate)
{
	static int says = -1;
	if (says < 0)
		says = getenv("FUZZ_SAY") != NULL;
	if (says)
		fprintf(stderr, "%s %s %s, %s: %s\n", engine->sound ? "engine" : "damaged", firing->trigger,
			gate, firing->series, firing->evidence);
}

static void on_firing(void *context, const struct triggers_firing *firing, enum triggers_gate gate)
{
	struct pair_engine *engine = context;
	check_firing(firing, engine->sound);
	fuzz_require(gate < TRIGGERS_GATE_LIMIT, "gate %d", (int)gate);
	say(engine, firing, triggers_gate_name(gate));
	keep(engine, firing, (int)gate);
	if (counted && engine == &counted->is[PAIR_GOES_ON] && gate == TRIGGERS_PASSED && counted->forward)
		count_passed(counted);
}

static void on_progress(void *context, const struct triggers_firing *firing, int64_t now_ns)
{
	struct pair_engine *engine = context;
	check_firing(firing, false);
	fuzz_require(!engine->sound || now_ns >= firing->t0_ns, "over before it began");
	say(engine, firing, "is over");
	keep(engine, firing, -1);
}

/* The place of a series that is suspected, else a free one; PAIR_SUSPECTS where all are taken. */
static unsigned suspect_of(const struct pair_engine *engine, uint32_t series)
{
	unsigned place = PAIR_SUSPECTS;
	for (unsigned i = 0; i < PAIR_SUSPECTS; i++) {
		if (engine->suspect[i].count && engine->suspect[i].series == series)
			return i;
		if (!engine->suspect[i].count)
			place = i;
	}
	return place;
}

static void on_suspicion(void *context, uint32_t series, uint32_t source, int64_t from_ns)
{
	struct pair_engine *engine = context;
	unsigned at = suspect_of(engine, series);
	(void)source, (void)from_ns;
	if (at == PAIR_SUSPECTS)
		return;
	engine->suspect[at].series = series;
	engine->suspect[at].count++;
	fuzz_require(!engine->sound || engine->suspect[at].count == 1, "suspected twice");
}

static void on_suspicion_end(void *context, uint32_t series, uint32_t source)
{
	struct pair_engine *engine = context;
	unsigned at = suspect_of(engine, series);
	(void)source;
	if (at == PAIR_SUSPECTS)
		return;
	fuzz_require(!engine->sound || engine->suspect[at].count == 1, "a suspicion ends that has not begun");
	engine->suspect[at].count = 0;
}

static void make(struct pair *pair, unsigned which, bool sound)
{
	struct pair_engine *engine = &pair->is[which];
	const struct triggers_listener listener = {engine, on_firing, on_progress, on_suspicion,
						   on_suspicion_end};
	char error[256];
	triggers_engine_free(engine->engine);
	engine->engine = NULL;
	engine->sound = sound;
	memset(engine->suspect, 0, sizeof(engine->suspect));
	fuzz_require(triggers_engine_new(&listener, &engine->engine) == 0, "no memory for an engine");
	for (unsigned i = 0; i < pair->n_options; i++)
		triggers_engine_set(engine->engine, pair->option[i][0], pair->option[i][1], error,
				    sizeof(error));
}

void pair_begin(struct pair *pair)
{
	memset(pair, 0, sizeof(*pair));
	pair->per_hour = 12;
	pair->per_day = 48;
	pair->now_ns = INT64_MIN;
	pair->forward = true;
	counted = pair;
	make(pair, PAIR_GOES_ON, true);
	make(pair, PAIR_RESTORED, true);
}

void pair_end(struct pair *pair)
{
	for (unsigned i = 0; i < PAIR_ENGINES; i++)
		triggers_engine_free(pair->is[i].engine);
	counted = NULL;
}

void pair_set(struct pair *pair, const char *key, const char *value)
{
	char error[256];
	int first = 1;
	if (pair->n_options == sizeof(pair->option) / sizeof(pair->option[0]))
		return;
	for (unsigned i = 0; i < PAIR_ENGINES; i++) {
		if (!pair->is[i].engine)
			continue;
		error[0] = 0;
		int result = triggers_engine_set(pair->is[i].engine, key, value, error, sizeof(error));
		fuzz_require((result == -EINVAL) == (error[0] != 0) && ends(error, sizeof(error)),
			     "refused without a word, or a word too many");
		fuzz_require(first == 1 || first == result, "one engine takes an option, the other does not");
		first = result;
	}
	if (first)
		return;
	strncpy(pair->option[pair->n_options][0], key, sizeof(pair->option[0][0]) - 1);
	strncpy(pair->option[pair->n_options++][1], value, sizeof(pair->option[0][1]) - 1);
	if (!strcmp(key, "gates.per_hour"))
		pair->per_hour = atof(value);
	if (!strcmp(key, "gates.per_day"))
		pair->per_day = atof(value);
	pair->n_passed = 0; /* what a larger budget let through a smaller one need not answer for */
	pair->forward &= strncmp(key, "gates.per_", 10) != 0 || pair->now_ns == INT64_MIN;
}

void pair_tick(struct pair *pair, int64_t now_ns)
{
	const int64_t most_ns = INT64_C(1) << 61;
	now_ns = now_ns > most_ns ? most_ns : now_ns < -most_ns ? -most_ns : now_ns;
	pair->forward &= now_ns >= pair->now_ns;
	pair->now_ns = now_ns;
	for (unsigned i = 0; i < PAIR_ENGINES; i++)
		if (pair->is[i].engine)
			triggers_engine_tick(pair->is[i].engine, now_ns);
}

static void same_firing(const struct pair_said *a, const struct pair_said *b)
{
	const struct triggers_firing *x = &a->firing, *y = &b->firing;
	fuzz_require(
		a->gate == b->gate && !strcmp(x->trigger, y->trigger) && !strcmp(x->series, y->series) &&
			!strcmp(x->phase, y->phase) && x->severity == y->severity && x->source == y->source &&
			x->rank == y->rank && x->track == y->track && x->t0_ns == y->t0_ns &&
			x->until_ns == y->until_ns && x->detected_ns == y->detected_ns &&
			x->value == y->value && x->expected == y->expected && x->step == y->step &&
			x->sample == y->sample && x->ongoing == y->ongoing && x->shadow == y->shadow &&
			x->quiet == y->quiet && !strcmp(x->evidence, y->evidence),
		"restored it says otherwise: %s of %s, gate %d: %s; and %s of %s, gate %d: %s", x->trigger,
		x->series, a->gate, x->evidence, y->trigger, y->series, b->gate, y->evidence);
}

void pair_same(struct pair *pair)
{
	struct pair_engine *a = &pair->is[PAIR_GOES_ON], *b = &pair->is[PAIR_RESTORED];
	for (uint32_t i = 0; i < a->said && i < b->said && i < PAIR_SAID_MAX; i++)
		same_firing(&a->kept[i], &b->kept[i]);
	fuzz_require(a->said == b->said, "restored it says %u things, not %u", b->said, a->said);
	int64_t due_ns = triggers_engine_due(a->engine), restored_ns = triggers_engine_due(b->engine);
	fuzz_require(due_ns == restored_ns, "restored it is due at %lld, not %lld", (long long)restored_ns,
		     (long long)due_ns);
	for (unsigned i = 0; i < PAIR_ENGINES; i++)
		pair->is[i].said = 0;
}

static bool same_key(const struct triggers_series_key *a, const struct triggers_series_key *b)
{
	return a->role == b->role && a->source == b->source && a->track == b->track &&
	       !strcmp(a->name, b->name);
}

static void same_belief(const struct triggers_belief *a, const struct triggers_belief *b)
{
	const double numbers[][2] = {
		{a->median, b->median}, {a->deviation, b->deviation},       {a->ceiling, b->ceiling},
		{a->warn, b->warn},     {a->critical, b->critical},         {a->deadline_ns, b->deadline_ns},
		{a->line, b->line},     {a->line_ceiling, b->line_ceiling}, {a->level, b->level},
		{a->peers, b->peers},   {a->shift_share, b->shift_share},
	};
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		fuzz_require(isfinite(numbers[i][0]) && numbers[i][0] == numbers[i][1],
			     "%s: belief %zu is %.17g, restored %.17g", a->key.name, i, numbers[i][0],
			     numbers[i][1]);
	fuzz_require(a->samples == b->samples && a->warm == b->warm && a->open == b->open &&
			     a->open_since_ns == b->open_since_ns &&
			     a->last_progress_ns == b->last_progress_ns && a->key.rank == b->key.rank &&
			     a->key.alarms == b->key.alarms,
		     "%s is restored as another: open %d and %d since %lld and %lld, %llu and %llu samples, "
		     "progress at %lld and %lld",
		     a->key.name, a->open, b->open, (long long)a->open_since_ns, (long long)b->open_since_ns,
		     (unsigned long long)a->samples, (unsigned long long)b->samples,
		     (long long)a->last_progress_ns, (long long)b->last_progress_ns);
}

/* The next series at or after a place that there is one in; false at the end. */
static bool next_belief(const struct triggers_engine *engine, uint32_t *place,
			struct triggers_belief *ret_belief)
{
	for (; *place < triggers_engine_series_count(engine); (*place)++)
		if (triggers_engine_belief(engine, *place, ret_belief) == 0)
			return true;
	return false;
}

void pair_same_beliefs(const struct pair *pair)
{
	const struct triggers_engine *a = pair->is[PAIR_GOES_ON].engine, *b = pair->is[PAIR_RESTORED].engine;
	struct triggers_belief in_a, in_b;
	uint32_t at = 0, other = 0;
	for (; next_belief(a, &at, &in_a); at++, other++) {
		/* Places that are free are not restored, but the order is. */
		fuzz_require(next_belief(b, &other, &in_b) && same_key(&in_a.key, &in_b.key),
			     "%s is not restored", in_a.key.name);
		same_belief(&in_a, &in_b);
	}
	fuzz_require(!next_belief(b, &other, &in_b), "a series is restored that there was not");
	for (uint32_t source = 0; source < 8; source++)
		fuzz_require(triggers_engine_step_ns(a, source) == triggers_engine_step_ns(b, source),
			     "a step of source %u is restored as another", source);
}

static uint8_t *saved(const struct triggers_engine *engine, size_t *ret_size)
{
	int64_t size = triggers_engine_save(engine, NULL, 0);
	fuzz_require(size > HEADER_BYTES, "nothing is saved");
	uint8_t *bytes = malloc((size_t)size);
	fuzz_require(bytes != NULL, "no memory for the state");
	fuzz_require(triggers_engine_save(engine, bytes, (size_t)size - 1) == -ENOSPC,
		     "too small a room is enough");
	fuzz_require(triggers_engine_save(engine, bytes, (size_t)size) == size,
		     "the same state has two sizes");
	*ret_size = (size_t)size;
	return bytes;
}

/* Deadlines within a step are asked for now and then: from here on at the same times in both. */
static void ask_at_once(struct triggers_engine *engine, int64_t now_ns)
{
	const struct triggers_series_key key = {
		.role = TRIGGERS_PHASE, .source = NOBODY, .name = "phase:restart"};
	uint32_t series = triggers_engine_series(engine, &key);
	triggers_engine_open(engine, series, now_ns, -1, NULL);
	triggers_engine_abandon(engine, series);
	triggers_engine_source_end(engine, NOBODY);
}

void pair_restart(struct pair *pair, int64_t now_ns)
{
	size_t size, again;
	uint8_t *bytes = saved(pair->is[PAIR_RESTORED].engine, &size);
	make(pair, PAIR_RESTORED, true);
	int result = triggers_engine_restore(pair->is[PAIR_RESTORED].engine, bytes, size);
	fuzz_require(result == 0, "what was saved cannot be restored: %d", result);
	uint8_t *second = saved(pair->is[PAIR_RESTORED].engine, &again);
	fuzz_require(size == again && !memcmp(bytes, second, size),
		     "restored and saved again it is not the same");
	free(second);
	free(bytes);
	ask_at_once(pair->is[PAIR_GOES_ON].engine, now_ns);
	ask_at_once(pair->is[PAIR_RESTORED].engine, now_ns);
	pair_tick(pair, now_ns);
}

bool pair_damage(struct pair *pair, const uint8_t *changes, size_t count)
{
	size_t size;
	uint8_t *bytes = saved(pair->is[PAIR_GOES_ON].engine, &size);
	for (size_t i = 0; i < count; i++) {
		const uint8_t *change = changes + CHANGE_BYTES * i;
		size_t at = HEADER_BYTES +
			    ((size_t)change[0] | (size_t)change[1] << 8 | (size_t)change[2] << 16) %
				    (size - HEADER_BYTES);
		bytes[at] = change[3];
	}
	uint32_t crc = triggers_crc32(bytes + HEADER_BYTES, size - HEADER_BYTES);
	for (unsigned i = 0; i < 4; i++)
		bytes[CRC_AT + i] = (uint8_t)(crc >> (8 * i));
	make(pair, PAIR_DAMAGED, false);
	int result = triggers_engine_restore(pair->is[PAIR_DAMAGED].engine, bytes, size);
	fuzz_require(result == 0 || result == -EBADMSG, "a damaged state gives %d", result);
	fuzz_require(result == 0 || triggers_engine_series_count(pair->is[PAIR_DAMAGED].engine) == 0,
		     "what could not be restored is there");
	free(bytes);
	return result == 0;
}
