/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is open and what moves, judged as time passes: ticks, begins, progress, ends without a sample. due_ns
 * is the earliest time at which any module has something to say, so a tick before that costs one comparison.
 */
#include "engine.h"

/* A tick earlier than the last one by more than this is a clock step. */
#define CLOCK_STEP_NS INT64_C(1000000000)
/* How far apart the begin of one step, or of an opening without a number, may be told. */
#define SAME_STEP_NS    INT64_C(1000000)
#define SAME_OPENING_NS INT64_C(100000)

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
			series->open_ns = triggers_limited(series->open_ns + step_ns);
		if (series->last_progress_ns > now_ns)
			series->last_progress_ns = triggers_limited(series->last_progress_ns + step_ns);
	}
	for (int i = 0; i < TRIGGERS_SOURCE_BUCKETS; i++)
		for (struct triggers_source *source = engine->table.sources[i]; source; source = source->next)
			triggers_source_follow_clock(source, now_ns, step_ns);
	engine->due_ns = INT64_MIN;
}

void triggers_engine_tick(struct triggers_engine *engine, int64_t now_ns)
{
	now_ns = triggers_limited(now_ns);
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

void triggers_source_progress(struct triggers_source *source, int64_t now_ns)
{
	if (now_ns > source->last_progress_ns)
		source->last_progress_ns = now_ns;
}

void triggers_engine_shut(struct triggers_engine *engine, struct triggers_series *parent,
			  struct triggers_series *series)
{
	series->is_open = 0;
	parent->open = TRIGGERS_SERIES_NONE;
	if (series->role == TRIGGERS_STEP)
		triggers_source_step_shut(series->source, !series->phase[0]);
	if (series->role == TRIGGERS_PHASE)
		engine->due_ns = INT64_MIN; /* deadlines that a phase held back count again */
}

void triggers_engine_close(struct triggers_engine *engine, struct triggers_series *parent,
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
	triggers_engine_shut(engine, parent, series);
}

void triggers_engine_close_current(struct triggers_engine *engine, struct triggers_series *parent,
				   int64_t now_ns, int died)
{
	struct triggers_series *current = parent->open == TRIGGERS_SERIES_NONE
						  ? NULL
						  : triggers_table_get(&engine->table, parent->open);
	if (current)
		triggers_engine_close(engine, parent, current, now_ns, died);
	parent->open = TRIGGERS_SERIES_NONE;
}

/*
 * What is open is told again and again, and its begin is converted from ticks anew each time: by newer
 * anchors it moves by some ns. Taken for another step it would end a stall that goes on.
 */
static int same_opening(const struct triggers_series *series, int64_t start_ns, int64_t step)
{
	int64_t apart_ns =
		start_ns > series->open_ns ? start_ns - series->open_ns : series->open_ns - start_ns;
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
	start_ns = triggers_limited(start_ns);
	struct triggers_series *series = triggers_engine_route(engine, parent, phase);
	if (parent->open == series->id && same_opening(series, start_ns, step))
		return;
	triggers_engine_close_current(engine, parent, start_ns, 0);
	/* Opened by a parent that gave way: it must not count twice. */
	triggers_engine_close(engine, parent, series, start_ns, 0);
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
	now_ns = triggers_limited(now_ns);
	series->last_use = ++engine->table.uses;
	triggers_source_progress(series->source, now_ns);
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
		triggers_engine_close(engine, series, series, now_ns, 0);
	else
		triggers_engine_close_current(engine, series, now_ns, 0);
}
