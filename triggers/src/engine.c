/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: series and sources in, firings out.
 *
 * A sample goes to its series (steps of a phase to the child of that phase), past every module that watches
 * its role, then into the series' window. Open steps and moving tracks are judged by tick(); due_ns is the
 * earliest time at which any module has something to say, so a tick before that costs one comparison.
 * Times from outside are limited to +-2^61 ns, so that no difference of two can overflow.
 */
#include "engine.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PHASE_WARM = 4, GRACE_STEPS = 3, STEP_KNOWN_FROM = 3 };

/* A tick earlier than the last one by more than this is a clock step. */
#define CLOCK_STEP_NS INT64_C(1000000000)
/* How far apart the begin of one step, or of an opening without a number, may be told. */
#define SAME_STEP_NS    INT64_C(1000000)
#define SAME_OPENING_NS INT64_C(100000)

static int64_t limited(int64_t ns)
{
	return ns > TRIGGERS_NS_MAX ? TRIGGERS_NS_MAX : ns < -TRIGGERS_NS_MAX ? -TRIGGERS_NS_MAX : ns;
}

int triggers_engine_new(const struct triggers_listener *listener, struct triggers_engine **ret_engine)
{
	struct triggers_engine *engine = calloc(1, sizeof(*engine));
	if (!engine)
		return -ENOMEM;
	if (listener)
		engine->listener = *listener;
	triggers_option_defaults(engine->option);
	triggers_gates_init(&engine->gates);
	triggers_table_init(&engine->table);
	engine->now_ns = INT64_MIN;
	engine->due_ns = INT64_MAX;
	*ret_engine = engine;
	return 0;
}

void triggers_engine_free(struct triggers_engine *engine)
{
	if (!engine)
		return;
	for (uint32_t i = 0; i < engine->table.used; i++)
		if (engine->table.place[i])
			triggers_engine_remove(engine, engine->table.place[i]);
	triggers_peers_free(&engine->peers);
	free(engine);
}

int triggers_engine_set(struct triggers_engine *engine, const char *key, const char *value, char *error,
			size_t error_room)
{
	int id = triggers_option_find(key);
	if (id < 0) {
		snprintf(error, error_room, "there is no trigger option \"%.60s\"", key);
		return -EINVAL;
	}
	if (id == TRIGGERS_OPTION_THRESHOLD)
		return triggers_rules_add(&engine->rules, value, error, error_room);
	return triggers_option_set(engine->option, id, value, error, error_room);
}

double triggers_engine_option(const struct triggers_engine *engine, enum triggers_option_id id)
{
	return engine->option[id];
}

int64_t triggers_engine_option_ns(const struct triggers_engine *engine, enum triggers_option_id id)
{
	return (int64_t)(engine->option[id] * 1e9);
}

const struct triggers_rules *triggers_engine_rules(const struct triggers_engine *engine)
{
	return &engine->rules;
}

int triggers_engine_is_warm(const struct triggers_engine *engine, const struct triggers_series *series)
{
	double wanted = engine->option[TRIGGERS_OPTION_GATE_WARMUP];
	if (series->role == TRIGGERS_PHASE && wanted > PHASE_WARM)
		wanted = PHASE_WARM;
	return (double)series->samples >= wanted && series->window.count >= PHASE_WARM;
}

/* ---- series ---- */

static size_t aligned(size_t bytes)
{
	return (bytes + 15) & ~(size_t)15;
}

static int watches(const struct triggers_module *module, enum triggers_role role)
{
	return (module->roles >> role & 1) != 0;
}

void *triggers_series_state(struct triggers_series *series, unsigned module)
{
	return series->state_at[module] ? (char *)series + series->state_at[module] : NULL;
}

static size_t block_bytes(const struct triggers_engine *engine, enum triggers_role role)
{
	size_t bytes = aligned(sizeof(struct triggers_series)) +
		       aligned(TRIGGERS_WINDOW_BYTES(engine->option[TRIGGERS_OPTION_SPIKE_WINDOW]));
	for (unsigned i = 0; triggers_modules[i]; i++)
		if (watches(triggers_modules[i], role))
			bytes += aligned(triggers_modules[i]->state_bytes);
	return bytes;
}

static void lay_out(struct triggers_engine *engine, struct triggers_series *series)
{
	unsigned capacity = (unsigned)engine->option[TRIGGERS_OPTION_SPIKE_WINDOW];
	size_t at = aligned(sizeof(*series));
	triggers_window_init(&series->window, (char *)series + at, capacity);
	at += aligned(TRIGGERS_WINDOW_BYTES(capacity));
	for (unsigned i = 0; triggers_modules[i]; i++) {
		const struct triggers_module *module = triggers_modules[i];
		if (!watches(module, series->role) || !module->state_bytes)
			continue;
		series->state_at[i] = at;
		at += aligned(module->state_bytes);
		series->timed |= module->tick != NULL;
		if (module->create)
			module->create(engine, series, triggers_series_state(series, i));
	}
}

/* Like tracks of one job; where the job is not known, of one source. */
static uint64_t group_of(const struct triggers_series_key *key)
{
	uint64_t hash = (key->job ? key->job : ~(uint64_t)key->source) ^ 0xcbf29ce484222325u;
	if (!key->group)
		return 0;
	for (const char *at = key->group; *at; at++)
		hash = (hash ^ (uint8_t)*at) * 0x100000001b3u;
	return (hash ^ hash >> 29) | 1;
}

static int has_no_usual_length(const char *phase)
{
	return !strcmp(phase, "phase:first") || !strcmp(phase, "phase:compile") || !strncmp(phase, "phase:compile/", 14);
}

struct triggers_series *triggers_engine_add(struct triggers_engine *engine,
					    const struct triggers_series_key *key, const char *name,
					    uint32_t id)
{
	size_t bytes = block_bytes(engine, key->role);
	struct triggers_series *series;
	if (id != TRIGGERS_SERIES_NONE) {
		series = triggers_table_add_at(&engine->table, id, key->role, key->source, key->track, name,
					       bytes);
	} else {
		if (engine->table.count == TRIGGERS_SERIES_MAX) {
			struct triggers_series *idle = triggers_table_idle(&engine->table, key->alarms);
			if (!idle)
				return NULL;
			triggers_engine_remove(engine, idle);
		}
		series = triggers_table_add(&engine->table, key->role, key->source, key->track, name, bytes);
	}
	if (!series)
		return NULL;
	series->rank = key->rank;
	series->alarms = key->alarms;
	series->learns = key->role != TRIGGERS_PHASE || !has_no_usual_length(name);
	series->varies = key->role == TRIGGERS_SPAN || (key->role == TRIGGERS_PHASE && strchr(name, '/'));
	series->group = group_of(key);
	if (key->job)
		triggers_table_set_job(&engine->table, series->source, key->job);
	if (series->role == TRIGGERS_STEP && series->source->n_series == 1)
		series->source->grace = GRACE_STEPS;
	lay_out(engine, series);
	return series;
}

void triggers_engine_remove(struct triggers_engine *engine, struct triggers_series *series)
{
	for (unsigned i = 0; triggers_modules[i]; i++)
		if (series->state_at[i] && triggers_modules[i]->destroy)
			triggers_modules[i]->destroy(triggers_series_state(series, i));
	if (series->group)
		triggers_peers_forget(&engine->peers, series->group, series->id);
	triggers_table_remove(&engine->table, series);
}

uint32_t triggers_engine_series(struct triggers_engine *engine, const struct triggers_series_key *key)
{
	char name[TRIGGERS_NAME_MAX];
	if (!key->name || key->role < TRIGGERS_STEP || key->role > TRIGGERS_BUSY)
		return TRIGGERS_SERIES_NONE;
	snprintf(name, sizeof(name), "%s", key->name);
	struct triggers_series *series =
		triggers_table_find(&engine->table, key->role, key->source, key->track, name);
	if (!series)
		series = triggers_engine_add(engine, key, name, TRIGGERS_SERIES_NONE);
	return series ? series->id : TRIGGERS_SERIES_NONE;
}

static int is_train(const char *phase)
{
	return !phase || !*phase || !strcmp(phase, "train");
}

/* The series that samples of this phase belong to: itself, or its child for steps and spans of another phase. */
static struct triggers_series *route(struct triggers_engine *engine, struct triggers_series *series,
				     const char *phase)
{
	char name[TRIGGERS_NAME_MAX];
	series->last_use = ++engine->table.uses;
	if ((series->role != TRIGGERS_STEP && series->role != TRIGGERS_SPAN) || is_train(phase))
		return series;
	/* Spans are told apart by name alone: a name that would be cut stays whole, for all phases. */
	if (series->role == TRIGGERS_SPAN && strlen(series->name) + 1 + strlen(phase) >= sizeof(name))
		return series;
	snprintf(name, sizeof(name), series->role == TRIGGERS_SPAN ? "%s@%s" : "%.30s@%.30s", series->name, phase);
	struct triggers_series *child = triggers_table_find(&engine->table, series->role,
							    series->source->number, series->track, name);
	if (!child) {
		struct triggers_series_key key = {.role = series->role,
						  .source = series->source->number,
						  .rank = series->rank,
						  .track = series->track,
						  .alarms = series->alarms};
		child = triggers_engine_add(engine, &key, name, TRIGGERS_SERIES_NONE);
		if (!child)
			return series;
		snprintf(child->phase, sizeof(child->phase), "%s", phase);
		child->learns = strcmp(phase, "first") != 0 && strcmp(phase, "compile") != 0;
	}
	child->parent = series->id;
	child->last_use = engine->table.uses;
	return child;
}

/* ---- what modules may do ---- */

struct triggers_peers *triggers_engine_peers(struct triggers_engine *engine)
{
	return &engine->peers;
}

struct triggers_series *triggers_engine_get(const struct triggers_engine *engine, uint32_t id)
{
	return triggers_table_get(&engine->table, id);
}

void *triggers_engine_state(struct triggers_series *series, const struct triggers_module *module)
{
	return triggers_series_state(series, triggers_module_number(module));
}

/* The length of "phase:eval" is of phase eval. */
static const char *phase_of(const struct triggers_series *series)
{
	static const char prefix[] = "phase:";
	if (series->role == TRIGGERS_PHASE && strncmp(series->name, prefix, sizeof(prefix) - 1) == 0)
		return series->name + sizeof(prefix) - 1;
	return series->phase[0] ? series->phase : "train";
}

static void fill_firing(const struct triggers_engine *engine, const struct triggers_claim *claim,
			struct triggers_firing *firing)
{
	const struct triggers_series *series = claim->series;
	const struct triggers_series *parent =
		series ? triggers_table_get(&engine->table, series->parent) : NULL;
	*firing = (struct triggers_firing){
		.severity = claim->severity,
		.series_id = series ? series->parent : TRIGGERS_SERIES_NONE,
		.source = series ? series->source->number : claim->source,
		.rank = series ? series->rank : claim->rank,
		.track = series ? series->track : 0,
		.t0_ns = claim->t0_ns,
		.until_ns = claim->until_ns,
		.detected_ns = claim->detected_ns,
		.value = claim->value,
		.expected = claim->expected,
		.ratio = claim->expected != 0 ? claim->value / claim->expected : 0,
		.step = claim->step,
		.sample = claim->sample,
		.ongoing = claim->ongoing,
		.shadow = claim->shadow,
		.quiet = claim->quiet,
	};
	snprintf(firing->trigger, sizeof(firing->trigger), "%s", claim->module->name);
	if (series) {
		snprintf(firing->series, sizeof(firing->series), "%s", parent ? parent->name : series->name);
		snprintf(firing->phase, sizeof(firing->phase), "%s", phase_of(series));
	}
	memcpy(firing->evidence, claim->evidence, sizeof(firing->evidence));
}

static void tell(struct triggers_engine *engine, const struct triggers_claim *claim, enum triggers_gate gate,
		 struct triggers_firing *ret_firing)
{
	struct triggers_firing firing;
	fill_firing(engine, claim, &firing);
	if (engine->listener.firing)
		engine->listener.firing(engine->listener.context, &firing, gate);
	if (ret_firing)
		*ret_firing = firing;
}

/* Whatever was proposed, by severity; of equals the one whose module stands first in the table. */
static void decide_proposed(struct triggers_engine *engine)
{
	unsigned count = engine->proposed.count;
	int taken = 0;
	engine->proposed.count = 0;
	for (int severity = TRIGGERS_CRITICAL; severity >= TRIGGERS_NOTE; severity--)
		for (unsigned i = 0; i < count; i++) {
			struct triggers_claim *claim = &engine->proposed.claim[i];
			if ((int)claim->severity != severity || !claim->module)
				continue;
			enum triggers_gate gate = taken && !claim->shadow && !claim->lasting
							  ? TRIGGERS_SAME_ANOMALY
							  : triggers_gates_judge(&engine->gates, engine, claim);
			taken |= gate == TRIGGERS_PASSED || gate == TRIGGERS_COALESCED;
			tell(engine, claim, gate, NULL);
			claim->module = NULL; /* told of: its severity may have been lowered */
		}
}

void triggers_engine_propose(struct triggers_engine *engine, const struct triggers_claim *claim)
{
	if (engine->proposed.count < TRIGGERS_PROPOSED_MAX)
		engine->proposed.claim[engine->proposed.count++] = *claim;
}

enum triggers_gate triggers_engine_fire(struct triggers_engine *engine, const struct triggers_claim *claim,
					struct triggers_firing *ret_firing)
{
	struct triggers_claim judged = *claim;
	decide_proposed(engine); /* the length as such comes before a limit that it broke */
	enum triggers_gate gate = triggers_gates_judge(&engine->gates, engine, &judged);
	tell(engine, &judged, gate, ret_firing);
	return gate;
}

void triggers_engine_rebase(struct triggers_engine *engine, struct triggers_series *series,
			    const struct triggers_reading *reading, const float *values, unsigned count)
{
	triggers_window_clear(&series->window);
	for (unsigned i = 0; i < count; i++)
		triggers_window_insert(&series->window, values[i], 0);
	for (unsigned i = 0; triggers_modules[i]; i++)
		if (series->state_at[i] && triggers_modules[i]->rebase)
			triggers_modules[i]->rebase(engine, series, triggers_series_state(series, i), reading, values,
						    count);
}

void triggers_engine_over(struct triggers_engine *engine, const struct triggers_firing *firing,
			  int64_t now_ns)
{
	struct triggers_firing over = *firing;
	if (now_ns < firing->t0_ns)
		now_ns = firing->t0_ns;
	over.until_ns = now_ns;
	over.ongoing = 0;
	if (engine->listener.progress)
		engine->listener.progress(engine->listener.context, &over, now_ns);
}

void triggers_engine_ended(struct triggers_engine *engine, const struct triggers_series *series, int64_t now_ns)
{
	triggers_gates_ended(&engine->gates, series->id, now_ns);
}

void triggers_engine_suspect(struct triggers_engine *engine, const struct triggers_series *series,
			     int64_t from_ns)
{
	if (engine->listener.suspicion)
		engine->listener.suspicion(engine->listener.context, series->parent, series->source->number,
					   from_ns);
}

void triggers_engine_unsuspect(struct triggers_engine *engine, const struct triggers_series *series)
{
	if (engine->listener.suspicion_end)
		engine->listener.suspicion_end(engine->listener.context, series->parent,
					       series->source->number);
}

/* What one source that has train steps adds: a phase that interrupts, or a step of another one, excuses all. */
static void add_activity(const struct triggers_source *source, int64_t now_ns, enum triggers_activity *activity,
			 int *excused)
{
	if (source->step_end_ns == INT64_MIN && !source->open_steps)
		return;
	int going = source->open_steps || (source->step_ns && now_ns - source->step_end_ns <= source->step_ns);
	for (uint32_t i = 0; i < source->n_open; i++)
		*excused |= !source->open[i].beside;
	*excused |= source->open_others != 0;
	if (going)
		*activity = TRIGGERS_ACTIVITY_STEPS;
	else if (*activity == TRIGGERS_ACTIVITY_NONE)
		*activity = TRIGGERS_ACTIVITY_EXCUSED;
}

enum triggers_activity triggers_engine_activity(const struct triggers_engine *engine,
						const struct triggers_source *source, int64_t now_ns,
						int64_t *ret_step_ns)
{
	enum triggers_activity activity = TRIGGERS_ACTIVITY_NONE;
	int excused = 0;
	*ret_step_ns = 0;
	for (int i = 0; i < TRIGGERS_SOURCE_BUCKETS; i++)
		for (const struct triggers_source *other = engine->table.sources[i]; other; other = other->next) {
			if (source->job && other->job != source->job)
				continue;
			add_activity(other, now_ns, &activity, &excused);
			if (other->step_ns > *ret_step_ns)
				*ret_step_ns = other->step_ns;
		}
	return excused && activity == TRIGGERS_ACTIVITY_STEPS ? TRIGGERS_ACTIVITY_EXCUSED : activity;
}

struct triggers_series *triggers_engine_at(const struct triggers_engine *engine, uint32_t place)
{
	return engine->table.place[place % TRIGGERS_SERIES_MAX];
}

/* ---- time ---- */

static int64_t tick_series(struct triggers_engine *engine, struct triggers_series *series, int64_t now_ns)
{
	int64_t due_ns = INT64_MAX;
	if (!series->timed || !series->is_open)
		return due_ns;
	for (unsigned i = 0; triggers_modules[i]; i++) {
		if (!series->state_at[i] || !triggers_modules[i]->tick)
			continue;
		int64_t next_ns =
			triggers_modules[i]->tick(engine, series, triggers_series_state(series, i), now_ns);
		if (next_ns < due_ns)
			due_ns = next_ns;
	}
	return due_ns;
}

/* What would begin in the future moves with a clock that was set back: its age stays what it was. */
static void follow_clock(struct triggers_engine *engine, int64_t now_ns)
{
	int64_t step_ns = now_ns - engine->now_ns;
	for (uint32_t i = 0; i < engine->table.used; i++) {
		struct triggers_series *series = engine->table.place[i];
		if (!series || !series->is_open)
			continue;
		if (series->open_ns > now_ns)
			series->open_ns = limited(series->open_ns + step_ns);
		if (series->last_progress_ns > now_ns)
			series->last_progress_ns = limited(series->last_progress_ns + step_ns);
	}
	for (int i = 0; i < TRIGGERS_SOURCE_BUCKETS; i++)
		for (struct triggers_source *source = engine->table.sources[i]; source; source = source->next)
			triggers_source_follow_clock(source, now_ns, step_ns);
	engine->due_ns = INT64_MIN;
}

void triggers_engine_tick(struct triggers_engine *engine, int64_t now_ns)
{
	now_ns = limited(now_ns);
	if (engine->now_ns != INT64_MIN && now_ns < engine->now_ns - CLOCK_STEP_NS)
		follow_clock(engine, now_ns);
	engine->now_ns = now_ns;
	if (now_ns < engine->due_ns)
		return;
	int64_t due_ns = INT64_MAX;
	for (uint32_t i = 0; i < engine->table.used; i++) {
		if (!engine->table.place[i])
			continue;
		int64_t next_ns = tick_series(engine, engine->table.place[i], now_ns);
		if (next_ns < due_ns)
			due_ns = next_ns;
	}
	engine->due_ns = due_ns;
}

int64_t triggers_engine_due(const struct triggers_engine *engine)
{
	return engine->due_ns;
}

/* Something opened or moved at `now_ns`: its deadline may be the next one. */
static void rearm(struct triggers_engine *engine, struct triggers_series *series, int64_t now_ns)
{
	int64_t due_ns = tick_series(engine, series, now_ns);
	if (due_ns < engine->due_ns)
		engine->due_ns = due_ns;
}

/* ---- what happens to series ---- */

static void note_progress(struct triggers_source *source, int64_t now_ns)
{
	if (now_ns > source->last_progress_ns)
		source->last_progress_ns = now_ns;
}

static void shut(struct triggers_engine *engine, struct triggers_series *parent,
		 struct triggers_series *series)
{
	series->is_open = 0;
	parent->open = TRIGGERS_SERIES_NONE;
	if (series->role == TRIGGERS_STEP)
		triggers_source_step_shut(series->source, !series->phase[0]);
	if (series->role == TRIGGERS_PHASE)
		engine->due_ns = INT64_MIN; /* deadlines that a phase held back count again */
}

static void close_series(struct triggers_engine *engine, struct triggers_series *parent,
			 struct triggers_series *series, int64_t now_ns, int died)
{
	if (!series->is_open)
		return;
	for (unsigned i = 0; triggers_modules[i]; i++)
		if (series->state_at[i] && triggers_modules[i]->close)
			triggers_modules[i]->close(engine, series, triggers_series_state(series, i), now_ns,
						   died);
	if (series->role == TRIGGERS_PHASE)
		triggers_source_phase_end(series->source, series->open_ns, now_ns, 1);
	shut(engine, parent, series);
}

static void close_current(struct triggers_engine *engine, struct triggers_series *parent, int64_t now_ns,
			  int died)
{
	struct triggers_series *current = parent->open == TRIGGERS_SERIES_NONE
						  ? NULL
						  : triggers_table_get(&engine->table, parent->open);
	if (current)
		close_series(engine, parent, current, now_ns, died);
	parent->open = TRIGGERS_SERIES_NONE;
}

/*
 * What is open is told again and again, and its begin is converted from ticks anew each time: by newer anchors it
 * moves by some ns. Taken for another step it would end a stall that goes on.
 */
static int same_opening(const struct triggers_series *series, int64_t start_ns, int64_t step)
{
	int64_t apart_ns = start_ns > series->open_ns ? start_ns - series->open_ns : series->open_ns - start_ns;
	if (step != series->open_step)
		return 0;
	/* No step begins before itself: the clock was set back, which the next tick follows. */
	if (step >= 0 && start_ns < series->open_ns)
		return 1;
	return apart_ns <= (step >= 0 ? SAME_STEP_NS : SAME_OPENING_NS);
}

void triggers_engine_open(struct triggers_engine *engine, uint32_t id, int64_t start_ns, int64_t step,
			  const char *phase)
{
	struct triggers_series *parent = triggers_table_get(&engine->table, id);
	if (!parent || (parent->role != TRIGGERS_STEP && parent->role != TRIGGERS_PHASE &&
			parent->role != TRIGGERS_SPAN))
		return;
	start_ns = limited(start_ns);
	struct triggers_series *series = route(engine, parent, phase);
	if (parent->open == series->id && same_opening(series, start_ns, step))
		return;
	close_current(engine, parent, start_ns, 0);
	series->is_open = 1;
	series->open_ns = start_ns;
	series->open_step = step;
	parent->open = series->id;
	if (series->role == TRIGGERS_PHASE)
		triggers_source_phase_begin(series->source, start_ns);
	if (series->role == TRIGGERS_STEP)
		triggers_source_step_open(series->source, !series->phase[0], start_ns);
	for (unsigned i = 0; triggers_modules[i]; i++)
		if (series->state_at[i] && triggers_modules[i]->open)
			triggers_modules[i]->open(engine, series, triggers_series_state(series, i));
	rearm(engine, series, start_ns);
}

void triggers_engine_progress(struct triggers_engine *engine, uint32_t id, int64_t now_ns)
{
	struct triggers_series *series = triggers_table_get(&engine->table, id);
	if (!series)
		return;
	now_ns = limited(now_ns);
	series->last_use = ++engine->table.uses;
	note_progress(series->source, now_ns);
	int first = series->role == TRIGGERS_TRACK && !series->is_open;
	for (unsigned i = 0; triggers_modules[i]; i++)
		if (series->state_at[i] && triggers_modules[i]->progress)
			triggers_modules[i]->progress(engine, series, triggers_series_state(series, i),
						      now_ns);
	if (now_ns > series->last_progress_ns || series->role == TRIGGERS_TRACK)
		series->last_progress_ns = now_ns;
	if (series->role == TRIGGERS_TRACK) {
		series->is_open = 1;
		series->open_ns = first ? now_ns : series->open_ns;
		rearm(engine, series, now_ns);
	}
}

void triggers_engine_abandon(struct triggers_engine *engine, uint32_t id)
{
	struct triggers_series *series = triggers_table_get(&engine->table, id);
	if (!series)
		return;
	int64_t now_ns = engine->now_ns != INT64_MIN ? engine->now_ns : series->open_ns;
	if (series->role == TRIGGERS_TRACK)
		close_series(engine, series, series, now_ns, 0);
	else
		close_current(engine, series, now_ns, 0);
}

/* ---- samples ---- */

static void read_sample(const struct triggers_engine *engine, const struct triggers_series *series,
			const struct triggers_sample *sample, struct triggers_reading *reading)
{
	int64_t start_ns = limited(sample->start_ns);
	int64_t duration_ns = sample->duration_ns > 0 ? limited(sample->duration_ns) : 0;
	*reading = (struct triggers_reading){
		.start_ns = start_ns,
		.end_ns = limited(start_ns + duration_ns),
		.value = (double)duration_ns,
		.median = triggers_window_median(&series->window),
		.step = sample->step,
		.sample = sample->sample,
		.note = sample->note,
		.index = series->samples,
		.warm = triggers_engine_is_warm(engine, series),
		.after_factor = 1,
	};
	if (series->role == TRIGGERS_COUNTER)
		reading->value = sample->value;
	else if (series->role == TRIGGERS_STEP)
		reading->value -= (double)triggers_source_excused(series->source, start_ns, reading->end_ns);
}

/* Steps after a start, a compile or a phase are slow by nature: says how the modules should take this one. */
static void place_step(struct triggers_series *series, struct triggers_reading *reading)
{
	struct triggers_source *source = series->source;
	if (series->role != TRIGGERS_STEP)
		return;
	if (!series->learns) {
		source->grace = GRACE_STEPS;
		return;
	}
	if (series->phase[0])
		return;
	if (source->after_phase) {
		uint32_t last = (source->n_phases - 1) % TRIGGERS_PHASES_KEPT;
		reading->after_phase = reading->start_ns >= source->phase[last].end_ns;
		source->after_phase = 0;
	}
	if (reading->after_phase) {
		reading->after_factor = triggers_after_phase_factor(&series->after);
		reading->after_slack = triggers_after_phase_slack(&series->after);
	}
	if (source->grace) {
		source->grace--;
		reading->warm = 0;
		reading->kept = 1;
	}
}

static void finish(struct triggers_engine *engine, struct triggers_series *parent,
		   struct triggers_series *series, const struct triggers_reading *reading)
{
	struct triggers_source *source = series->source;
	int was_open = series->is_open;
	if (!reading->kept)
		triggers_window_insert(&series->window, (float)reading->value, reading->alarm);
	if (reading->after_phase && reading->warm && reading->median > 0)
		triggers_after_phase_learn(&series->after, reading->value / reading->median);
	series->samples++;
	if (series->role == TRIGGERS_STEP && !series->phase[0] && series->window.count >= STEP_KNOWN_FROM)
		source->step_ns = (int64_t)triggers_window_median(&series->window);
	if (series->role == TRIGGERS_PHASE)
		triggers_source_phase_end(source, reading->start_ns, reading->end_ns, was_open);
	if (series->role == TRIGGERS_STEP)
		triggers_source_step(source, reading->start_ns, reading->end_ns);
	if (series->role == TRIGGERS_STEP && !series->phase[0])
		source->step_end_ns = reading->end_ns;
	if (was_open)
		shut(engine, parent, series);
	if (series->role == TRIGGERS_COUNTER)
		return;
	note_progress(source, reading->end_ns);
	series->last_progress_ns = reading->end_ns;
}

void triggers_engine_observe(struct triggers_engine *engine, uint32_t id,
			     const struct triggers_sample *sample)
{
	struct triggers_series *parent = triggers_table_get(&engine->table, id);
	struct triggers_reading reading;
	if (!parent)
		return;
	if (parent->role == TRIGGERS_TRACK) {
		triggers_engine_progress(engine, id, limited(sample->start_ns));
		return;
	}
	if (parent->role == TRIGGERS_COUNTER && !isfinite(sample->value))
		return;
	if (parent->role == TRIGGERS_BUSY && !is_train(sample->phase))
		return;
	struct triggers_series *series = route(engine, parent, sample->phase);
	read_sample(engine, series, sample, &reading);
	if (parent->open != TRIGGERS_SERIES_NONE && parent->open != series->id)
		close_current(engine, parent, reading.end_ns, 0);
	place_step(series, &reading);
	for (unsigned i = 0; triggers_modules[i]; i++)
		if (series->state_at[i] && triggers_modules[i]->observe)
			triggers_modules[i]->observe(engine, series, triggers_series_state(series, i),
						     &reading);
	decide_proposed(engine);
	finish(engine, parent, series, &reading);
}

/* ---- what happens to a producer ---- */

static void signal_modules(struct triggers_engine *engine, const struct triggers_signal *signal)
{
	for (unsigned i = 0; triggers_modules[i]; i++)
		if (triggers_modules[i]->signal)
			triggers_modules[i]->signal(engine, signal);
}

void triggers_engine_crash(struct triggers_engine *engine, uint32_t source, uint32_t rank, int64_t last_ns,
			   int64_t now_ns, const char *evidence)
{
	struct triggers_signal signal = {.kind = TRIGGERS_SIGNAL_CRASH,
					 .source = source,
					 .rank = rank,
					 .t0_ns = limited(last_ns),
					 .now_ns = limited(now_ns),
					 .text = evidence};
	signal_modules(engine, &signal);
	for (uint32_t i = 0; i < engine->table.used; i++) {
		struct triggers_series *series = engine->table.place[i];
		if (series && series->source->number == source)
			close_series(engine, series, series, signal.now_ns, 1);
	}
}

void triggers_engine_source_end(struct triggers_engine *engine, uint32_t source)
{
	for (uint32_t i = 0; i < engine->table.used; i++) {
		struct triggers_series *series = engine->table.place[i];
		if (!series || series->source->number != source)
			continue;
		close_series(engine, series, series, engine->now_ns, 1);
		triggers_engine_remove(engine, series);
	}
}

void triggers_engine_manual(struct triggers_engine *engine, uint32_t source, uint32_t rank, int64_t t0_ns,
			    int64_t now_ns, const char *reason)
{
	struct triggers_signal signal = {.kind = TRIGGERS_SIGNAL_MANUAL,
					 .source = source,
					 .rank = rank,
					 .t0_ns = limited(t0_ns),
					 .now_ns = limited(now_ns),
					 .text = reason};
	signal_modules(engine, &signal);
}

void triggers_engine_capture(struct triggers_engine *engine, int64_t begin_ns, int64_t end_ns)
{
	triggers_gates_capture(&engine->gates, limited(begin_ns), limited(end_ns));
}

void triggers_engine_settled(struct triggers_engine *engine, int64_t now_ns)
{
	(void)now_ns;
	triggers_gates_settled(&engine->gates);
}

/* ---- what is believed ---- */

uint32_t triggers_engine_series_count(const struct triggers_engine *engine)
{
	return engine->table.used;
}

enum triggers_role triggers_engine_role(const struct triggers_engine *engine, uint32_t id)
{
	const struct triggers_series *series = engine->table.place[id % TRIGGERS_SERIES_MAX];
	return series ? series->role : (enum triggers_role)0;
}

int triggers_engine_belief(const struct triggers_engine *engine, uint32_t id, struct triggers_belief *ret)
{
	const struct triggers_series *series = engine->table.place[id % TRIGGERS_SERIES_MAX];
	if (!series)
		return -ENOENT;
	*ret = (struct triggers_belief){
		.key = {.role = series->role,
			.source = series->source->number,
			.rank = series->rank,
			.track = series->track,
			.name = series->name,
			.alarms = series->alarms},
		.samples = series->samples,
		.median = triggers_window_median(&series->window),
		.deviation = triggers_window_deviation(&series->window),
		.warm = triggers_engine_is_warm(engine, series),
		.open = series->is_open,
		.open_since_ns = series->is_open ? series->open_ns : 0,
		.last_progress_ns = series->last_progress_ns,
	};
	for (unsigned i = 0; triggers_modules[i]; i++)
		if (series->state_at[i] && triggers_modules[i]->believe)
			triggers_modules[i]->believe(engine, series,
						     (const char *)series + series->state_at[i], ret);
	return 0;
}

int64_t triggers_engine_step_ns(const struct triggers_engine *engine, uint32_t source)
{
	const struct triggers_source *found = triggers_table_source(&engine->table, source);
	return found ? found->step_ns : 0;
}
