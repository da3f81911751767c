/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: series and sources in, firings out.
 *
 * A sample goes to its series (steps of a phase to the child of that phase), past every module that watches
 * its role, then into the series' window (observe.c). Open steps and moving tracks are judged by tick()
 * (open.c). What modules say goes through claims.c. Times from outside are limited to +-2^61 ns, so that no
 * difference of two can overflow.
 */
#include "engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PHASE_WARM = 4 };
#define NEAR_NS INT64_C(60000000000)

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

int64_t triggers_engine_near_now(const struct triggers_engine *engine, int64_t ns)
{
	if (engine->now_ns == INT64_MIN)
		return ns;
	if (ns > engine->now_ns + NEAR_NS)
		return engine->now_ns + NEAR_NS;
	return ns < engine->now_ns - NEAR_NS ? engine->now_ns - NEAR_NS : ns;
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
	return !strcmp(phase, "phase:first") || !strcmp(phase, "phase:compile") ||
	       !strncmp(phase, "phase:compile/", 14);
}

struct triggers_series *triggers_engine_add(struct triggers_engine *engine,
					    const struct triggers_series_key *key, const char *name,
					    const char *phase, uint32_t id)
{
	size_t bytes = block_bytes(engine, key->role);
	struct triggers_series *series;
	if (id != TRIGGERS_SERIES_NONE) {
		series = triggers_table_add_at(&engine->table, id, key->role, key->source, key->track, name,
					       phase, bytes);
	} else {
		if (engine->table.count == TRIGGERS_SERIES_MAX) {
			struct triggers_series *idle = triggers_table_idle(&engine->table, key->alarms);
			if (!idle)
				return NULL;
			triggers_engine_remove(engine, idle);
		}
		series = triggers_table_add(&engine->table, key->role, key->source, key->track, name, phase,
					    bytes);
	}
	if (!series)
		return NULL;
	if (id == TRIGGERS_SERIES_NONE)
		series->last_use = ++engine->table.uses;
	series->rank = key->rank;
	series->alarms = key->alarms;
	series->learns = key->role != TRIGGERS_PHASE || !has_no_usual_length(name);
	series->varies = key->role == TRIGGERS_SPAN || (key->role == TRIGGERS_PHASE && strchr(name, '/'));
	series->group = group_of(key);
	if (key->job)
		triggers_table_set_job(&engine->table, series->source, key->job);
	if (series->role == TRIGGERS_STEP && series->source->n_series == 1)
		series->source->grace = TRIGGERS_GRACE_STEPS;
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
		triggers_table_find(&engine->table, key->role, key->source, key->track, name, "");
	if (!series)
		series = triggers_engine_add(engine, key, name, "", TRIGGERS_SERIES_NONE);
	return series ? series->id : TRIGGERS_SERIES_NONE;
}

int triggers_phase_is_train(const char *phase)
{
	return !phase || !*phase || !strcmp(phase, "train");
}

/* The series that samples of this phase belong to: itself, or its child for steps and spans of another phase.
 */
struct triggers_series *triggers_engine_route(struct triggers_engine *engine, struct triggers_series *series,
					      const char *phase)
{
	char name[TRIGGERS_NAME_MAX], kept[TRIGGERS_NAME_MAX];
	series->last_use = ++engine->table.uses;
	if ((series->role != TRIGGERS_STEP && series->role != TRIGGERS_SPAN) ||
	    triggers_phase_is_train(phase))
		return series;
	/* Spans are told apart by name alone: a name that would be cut stays whole, for all phases. */
	if (series->role == TRIGGERS_SPAN && strlen(series->name) + 1 + strlen(phase) >= sizeof(name))
		return series;
	snprintf(name, sizeof(name), series->role == TRIGGERS_SPAN ? "%s@%s" : "%.30s@%.30s", series->name,
		 phase);
	snprintf(kept, sizeof(kept), "%s", phase);
	struct triggers_series *child = triggers_table_find(
		&engine->table, series->role, series->source->number, series->track, name, kept);
	if (!child) {
		struct triggers_series_key key = {.role = series->role,
						  .source = series->source->number,
						  .rank = series->rank,
						  .track = series->track,
						  .alarms = series->alarms};
		child = triggers_engine_add(engine, &key, name, kept, TRIGGERS_SERIES_NONE);
		if (!child)
			return series;
		child->learns = strcmp(phase, "first") != 0 && strcmp(phase, "compile") != 0;
	}
	child->parent = series->id;
	child->last_use = engine->table.uses;
	return child;
}

/* ---- what modules may ask ---- */

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

/* What one source that has train steps adds: a phase that interrupts, or a step of another one, excuses all.
 */
static void add_activity(const struct triggers_source *source, int64_t now_ns,
			 enum triggers_activity *activity, int *excused)
{
	if (source->step_end_ns == INT64_MIN && !source->open_steps)
		return;
	int going =
		source->open_steps || (source->step_ns && now_ns - source->step_end_ns <= source->step_ns);
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
		for (const struct triggers_source *other = engine->table.sources[i]; other;
		     other = other->next) {
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

/* ---- what happens to a producer ---- */

static void signal_modules(struct triggers_engine *engine, const struct triggers_signal *signal)
{
	for (unsigned i = 0; triggers_modules[i]; i++)
		if (triggers_modules[i]->signal)
			triggers_modules[i]->signal(engine, signal);
}

/* What ends with its producer, known by whichever series callers know it by. */
static void close_own(struct triggers_engine *engine, struct triggers_series *series, int64_t now_ns)
{
	struct triggers_series *parent = triggers_table_get(&engine->table, series->parent);
	triggers_engine_close(engine, parent && parent->open == series->id ? parent : series, series, now_ns,
			      1);
}

void triggers_engine_crash(struct triggers_engine *engine, uint32_t source, uint32_t rank, int64_t last_ns,
			   int64_t now_ns, const char *evidence)
{
	struct triggers_signal signal = {.kind = TRIGGERS_SIGNAL_CRASH,
					 .source = source,
					 .rank = rank,
					 .t0_ns = triggers_limited(last_ns < now_ns ? last_ns : now_ns),
					 .now_ns = triggers_limited(now_ns),
					 .text = evidence};
	signal_modules(engine, &signal);
	for (uint32_t i = 0; i < engine->table.used; i++) {
		struct triggers_series *series = engine->table.place[i];
		if (series && series->source->number == source)
			close_own(engine, series, signal.now_ns);
	}
}

void triggers_engine_source_end(struct triggers_engine *engine, uint32_t source)
{
	int64_t now_ns = triggers_limited(engine->now_ns); /* it may not have ticked yet */
	for (uint32_t i = 0; i < engine->table.used; i++) {
		struct triggers_series *series = engine->table.place[i];
		if (!series || series->source->number != source)
			continue;
		close_own(engine, series, now_ns);
		triggers_engine_remove(engine, series);
	}
}

void triggers_engine_manual(struct triggers_engine *engine, uint32_t source, uint32_t rank, int64_t t0_ns,
			    int64_t now_ns, const char *reason)
{
	struct triggers_signal signal = {.kind = TRIGGERS_SIGNAL_MANUAL,
					 .source = source,
					 .rank = rank,
					 .t0_ns = triggers_limited(t0_ns < now_ns ? t0_ns : now_ns),
					 .now_ns = triggers_limited(now_ns),
					 .text = reason};
	signal_modules(engine, &signal);
}

void triggers_engine_capture(struct triggers_engine *engine, int64_t begin_ns, int64_t end_ns)
{
	triggers_gates_capture(&engine->gates, triggers_limited(begin_ns), triggers_limited(end_ns));
}

void triggers_engine_settled(struct triggers_engine *engine, int64_t now_ns)
{
	(void)now_ns;
	triggers_gates_settled(&engine->gates);
}
