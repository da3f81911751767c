/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A finished step, phase, span, or a counter's sample: to the series of its phase, past every module that
 * watches its role, into the window.
 */
#include "engine.h"

#include <math.h>

enum { STEP_KNOWN_FROM = 3, AFTER_SLACK = 50 };

/* Windows hold floats, and what is computed of two of them must be one, too. */
#define VALUE_MAX 1e37

static void read_sample(const struct triggers_engine *engine, const struct triggers_series *series,
			const struct triggers_sample *sample, struct triggers_reading *reading)
{
	int64_t start_ns = triggers_limited(sample->start_ns);
	int64_t duration_ns = sample->duration_ns > 0 ? triggers_limited(sample->duration_ns) : 0;
	*reading = (struct triggers_reading){
		.start_ns = start_ns,
		.end_ns = triggers_limited(start_ns + duration_ns),
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
		reading->value = fmin(fmax(sample->value, -VALUE_MAX), VALUE_MAX);
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
		source->grace = TRIGGERS_GRACE_STEPS;
		return;
	}
	if (series->phase[0])
		return;
	if (source->after_phase) {
		uint32_t last = (source->n_phases - 1) % TRIGGERS_PHASES_KEPT;
		/* However its begin was rounded: tables have milliseconds. */
		int64_t slack_ns = (reading->end_ns - reading->start_ns) / AFTER_SLACK;
		reading->after_phase = reading->start_ns >= source->phase[last].end_ns - slack_ns;
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
		triggers_engine_shut(engine, parent, series);
	if (series->role == TRIGGERS_COUNTER)
		return;
	triggers_source_progress(source, reading->end_ns);
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
		triggers_engine_progress(engine, id, triggers_limited(sample->start_ns));
		return;
	}
	if (parent->role == TRIGGERS_COUNTER && !isfinite(sample->value))
		return;
	if (parent->role == TRIGGERS_BUSY && !triggers_phase_is_train(sample->phase))
		return;
	struct triggers_series *series = triggers_engine_route(engine, parent, sample->phase);
	read_sample(engine, series, sample, &reading);
	if (parent->open != TRIGGERS_SERIES_NONE && parent->open != series->id)
		triggers_engine_close_current(engine, parent, reading.end_ns, 0);
	place_step(series, &reading);
	for (unsigned i = 0; triggers_modules[i]; i++)
		if (series->state_at[i] && triggers_modules[i]->observe)
			triggers_modules[i]->observe(engine, series, triggers_series_state(series, i),
						     &reading);
	triggers_engine_decide(engine);
	finish(engine, parent, series, &reading);
}
