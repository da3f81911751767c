/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latency_spike: one step, phase or span is far slower than the ones before it.
 *
 * Formula   m = median of the last W values, s = 1.4826 x MAD. A value x is high where
 *           x > e + max(6 s, 10 % e), e = m (for the first step after a phase: m times its usual slowness,
 *           see after_phase.h).
 *           Severity by the ratio x/e: note, warn from 1.5, critical from 3 and 50 ms: less than that the
 *           kernel's scheduler takes from a job with steps of 2 ms all day, and nobody is called for it. Notes are
 *           only recorded.
 *           Then x goes into the window whatever it was: a window that kept high values out would alarm for
 *           ever after a shift (8,034 late alarms instead of 17 on real data).
 *           Eight high values in a row within 5 % of each other are a new level: the window begins again from
 *           them. Where more than 5 % of the window is high the series has two levels by nature (gradient
 *           accumulation, logging every k steps): a value then must exceed the upper one as well.
 *           A span (not a step) must also be slower by 5 ms and exceed 1.5 times the longest calm one in the
 *           window: operators vary with their shapes, steps do not. And it is no worse than what it does to a
 *           step, where their length is known: critical only if a step becomes so much longer, a note below
 *           10 % of one.
 *           t0 = the span's begin.
 * State     36 bytes a series, beside its window (5 bytes a value, shared by all modules).
 * Cost      a comparison for usual values; for high ones a walk of W/2 for the MAD, about 100 ns.
 * Defaults  W 128, 6 s, 10 %, 1.5, 3: public MLPerf logs (347 runs, 198,415 steps) have a robust deviation of
 *           0.1-1.3 %, 0.07 % of steps beyond 1.5 x and half of those real stalls.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "module.h"

enum { LEVEL_RUN = 8, JUDGED_FROM = 4 };

#define CRITICAL_MIN_NS 50e6

struct spike_state {
	uint32_t n_level;
	float level[LEVEL_RUN]; /* high values in a row, alike */
};

static double margin(const struct triggers_engine *engine, double deviation, double expected)
{
	double spread = triggers_engine_option(engine, TRIGGERS_OPTION_SPIKE_SIGMA) * deviation;
	double floor = triggers_engine_option(engine, TRIGGERS_OPTION_SPIKE_FLOOR) * expected;
	return spread > floor ? spread : floor;
}

/* True once the last eight high values are a level of their own; then the series begins again from them. */
static int new_level(struct triggers_engine *engine, struct triggers_series *series,
		     struct spike_state *state, const struct triggers_reading *reading)
{
	double value = reading->value;
	float level[LEVEL_RUN];
	double first = state->n_level ? (double)state->level[0] : value;
	if (fabs(value - first) > 0.05 * first)
		state->n_level = 0;
	state->level[state->n_level++] = (float)value;
	if (state->n_level < LEVEL_RUN)
		return 0;
	memcpy(level, state->level, sizeof(level));
	triggers_engine_rebase(engine, series, reading, level, LEVEL_RUN);
	return 1;
}

static void spike_rebase(struct triggers_engine *engine, struct triggers_series *series, void *state_,
			 const struct triggers_reading *reading, const float *values, unsigned count)
{
	struct spike_state *state = state_;
	(void)engine, (void)series, (void)reading, (void)values, (void)count;
	state->n_level = 0;
}

/* High, but not for a series that has two levels or for an operator that varies. */
static int is_usual(const struct triggers_engine *engine, const struct triggers_series *series,
		    double deviation, double expected, double value)
{
	if (triggers_window_bimodal(&series->window)) {
		double upper = triggers_window_upper(&series->window);
		if (value <= upper + margin(engine, deviation, upper))
			return 1;
	}
	if (!series->varies)
		return 0;
	double warn = triggers_engine_option(engine, TRIGGERS_OPTION_SPIKE_WARN);
	return value - expected < triggers_engine_option(engine, TRIGGERS_OPTION_SPIKE_SPAN_MIN) * 1e9 ||
	       value < warn * triggers_window_longest_calm(&series->window);
}

/* By how much it is too slow; of a span no more than it makes a step longer. */
static enum triggers_severity severity_of(const struct triggers_engine *engine,
					  const struct triggers_series *series, double value, double expected)
{
	double step = series->role == TRIGGERS_SPAN ? (double)series->source->step_ns : 0;
	double ratio = value / expected, longer = step > 0 ? 1 + (value - expected) / step : ratio;
	if (ratio < triggers_engine_option(engine, TRIGGERS_OPTION_SPIKE_WARN) ||
	    longer < 1 + triggers_engine_option(engine, TRIGGERS_OPTION_SPIKE_FLOOR))
		return TRIGGERS_NOTE;
	double critical = triggers_engine_option(engine, TRIGGERS_OPTION_SPIKE_CRITICAL);
	int much = ratio >= critical && longer >= critical && value - expected >= CRITICAL_MIN_NS;
	return much ? TRIGGERS_CRITICAL : TRIGGERS_WARN;
}

static void say(const struct triggers_engine *engine, struct triggers_claim *claim,
		const struct triggers_series *series, double deviation)
{
	char took[TRIGGERS_DURATION_TEXT], usual[TRIGGERS_DURATION_TEXT], spread[TRIGGERS_DURATION_TEXT];
	char what[2 * TRIGGERS_NAME_MAX], number[32] = "";
	double ratio = claim->value / claim->expected;
	if (claim->step >= 0)
		snprintf(number, sizeof(number), " %lld", (long long)claim->step);
	claim->severity = severity_of(engine, series, claim->value, claim->expected);
	claim->shadow = claim->severity == TRIGGERS_NOTE;
	snprintf(claim->evidence, sizeof(claim->evidence),
		 "%s%s took %s, %.2f times the usual %s (median of the last %u, deviation %s)",
		 triggers_series_text(series, what), number, triggers_duration_text(claim->value, took),
		 ratio, triggers_duration_text(claim->expected, usual), (unsigned)series->window.count,
		 triggers_duration_text(deviation, spread));
}

static void spike_observe(struct triggers_engine *engine, struct triggers_series *series, void *state_,
			  struct triggers_reading *reading)
{
	struct spike_state *state = state_;
	double median = reading->median, value = reading->value;
	if (!series->learns || series->window.count < JUDGED_FROM || !(median > 0))
		return;
	double expected = median * reading->after_factor;
	double floor = 1 + triggers_engine_option(engine, TRIGGERS_OPTION_SPIKE_FLOOR);
	double deviation = value > expected * floor ? triggers_window_deviation(&series->window) : 0;
	if (value <= expected + margin(engine, deviation, expected)) {
		state->n_level = 0;
		return;
	}
	reading->alarm = 1;
	if (series->alarms && !reading->stalled && !is_usual(engine, series, deviation, expected, value)) {
		struct triggers_claim claim = {
			.module = &triggers_module_latency_spike,
			.series = series,
			.t0_ns = reading->start_ns,
			.until_ns = reading->end_ns,
			.detected_ns = reading->end_ns,
			.value = value,
			.expected = expected,
			.step = reading->step,
			.sample = reading->sample,
			.index = reading->index,
			.warmup = !reading->warm,
			.graded = 1,
		};
		say(engine, &claim, series, deviation);
		triggers_engine_propose(engine, &claim);
	}
	if (reading->warm && new_level(engine, series, state, reading))
		reading->kept = 1;
}

static void spike_believe(const struct triggers_engine *engine, const struct triggers_series *series,
			  const void *state, struct triggers_belief *belief)
{
	(void)series;
	(void)state;
	double warn = triggers_engine_option(engine, TRIGGERS_OPTION_SPIKE_WARN) * belief->median;
	double critical = triggers_engine_option(engine, TRIGGERS_OPTION_SPIKE_CRITICAL) * belief->median;
	belief->ceiling = belief->median + margin(engine, belief->deviation, belief->median);
	belief->warn = warn > belief->ceiling ? warn : belief->ceiling;
	double much = belief->median + CRITICAL_MIN_NS;
	critical = critical > much ? critical : much;
	belief->critical = critical > belief->warn ? critical : belief->warn;
}

static void spike_save(const void *state_, struct triggers_writer *writer)
{
	const struct spike_state *state = state_;
	triggers_write_u32(writer, state->n_level);
	for (int i = 0; i < LEVEL_RUN; i++)
		triggers_write_float(writer, state->level[i]);
}

static void spike_restore(void *state_, struct triggers_cursor *cursor)
{
	struct spike_state *state = state_;
	state->n_level = triggers_read_u32(cursor);
	for (int i = 0; i < LEVEL_RUN; i++)
		state->level[i] = triggers_read_float(cursor);
	if (state->n_level >= LEVEL_RUN)
		cursor->failed = 1;
}

const struct triggers_module triggers_module_latency_spike = {
	.name = "latency_spike",
	.roles = 1u << TRIGGERS_STEP | 1u << TRIGGERS_PHASE | 1u << TRIGGERS_SPAN,
	.state_bytes = sizeof(struct spike_state),
	.observe = spike_observe,
	.rebase = spike_rebase,
	.believe = spike_believe,
	.save = spike_save,
	.restore = spike_restore,
};
