/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shift: from some place on every step is slower, by less than would stand out in one.
 *
 * Formula   CUSUM on the value over the level m0 that the series had, s0 = max(2 % m0, 1.4826 x MAD):
 *           S = max(0, S + min((x - m0) / s0, 4) - 1.5)
 *           Clipped at 4, so that one stall of 50 s adds 2.5. Where S > 12 the last eight values are looked
 *           at: their median must be 3.5 % above m0 and their lower quartile 2.1 %, so that it is a level and
 *           no cluster of slow steps; then it fires, a warning, and the series begins again from those eight.
 *           Else S waits at 36 at most. t0 = the begin of the value from which S has not been 0 since.
 *           m0 = the median of the last 32 values, taken once the series has settled: after 48 values (32
 *           after a new level), when the medians of the two halves are within 1.5 % or 0.6 deviations. So a
 *           job that warms up, or gets faster or slower for a while, is first waited for. After that m0
 *           follows the running median, by at most 0.2 % up and 2 % down every 8 values: a drift of 1-2 % a
 *           day is no news. Where three of the last 24 in four are 2 % below it the steps have become faster,
 *           and it is their median from then on: so that what makes them slow again is found.
 *           Where others begin again, after eight high values that are alike, it fires for those. The first
 *           step after a phase adds nothing. Gradient accumulation and the like: the level of a series with
 *           two levels is their common median, and both lie in the eight.
 * State     184 bytes a series of steps.
 * Cost      a few operations a step; every 8 steps, and where S is high, a sort of 24 or 32 and a walk for
 *           the MAD.
 * Defaults  k 1.5, clip 4, 2 %: of those tried on public logs (facts: k 0.5 gives 188 alarms in 10,000 steps,
 *           k 1.5 with 2 % gives 16). h 12 with the look at the last eight gives 5 in 10,000, and finds +5 %
 *           in 97 % of the runs after a median of 11 steps, +10 % in 99 % after 5. Hooks are not told
 *           (shift.alert).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "module.h"

enum { KEPT = 32, HALF = 16, LAST = 8, SETTLED_FROM = 48, AGAIN_FROM = 32, FOLLOW_EVERY = 8, FALLEN = 24 };

#define ALLOWANCE     1.5
#define CLIP          4.0
#define FIRES_ABOVE   12.0
#define WAITS_AT      36.0
#define DEVIATION_MIN 0.02
#define LEAST         0.035
#define LEAST_QUARTER 0.021
#define SETTLED       0.015
#define SETTLED_NOISE 0.6
#define FOLLOW_UP     0.002
#define FOLLOW_DOWN   0.02
#define FALL          0.02

struct shift_state {
	uint32_t seen;   /* values since the start or the last new level, up to SETTLED_FROM */
	uint32_t wanted; /* of them before a level is taken */
	uint32_t count;  /* values that the level has held for */
	uint32_t next;   /* where the next one goes in `value` */
	float value[KEPT];
	double level;     /* 0 = none yet */
	double deviation; /* of the series, as last looked at */
	double sum;
	int64_t t0_ns, t0_step;
};

static int ascending(const void *a_, const void *b_)
{
	const float *a = a_, *b = b_;
	return *a < *b ? -1 : *a > *b;
}

/* The last `count` values of those `skip` before now, sorted. */
static void sorted_last(const struct shift_state *state, unsigned skip, unsigned count, float *out)
{
	for (unsigned i = 0; i < count; i++)
		out[i] = state->value[(state->next + 2 * KEPT - 1 - skip - i) % KEPT];
	qsort(out, count, sizeof(*out), ascending);
}

static double median_last(const struct shift_state *state, unsigned skip, unsigned count)
{
	float sorted[KEPT];
	sorted_last(state, skip, count, sorted);
	return (double)sorted[count / 2];
}

static void take_level(const struct triggers_series *series, struct shift_state *state)
{
	double before = median_last(state, HALF, HALF), now = median_last(state, 0, HALF);
	double median = triggers_window_median(&series->window);
	state->deviation = triggers_window_deviation(&series->window);
	double apart = median > 0 ? SETTLED_NOISE * state->deviation / median : 0;
	if (!(before > 0) || fabs(now / before - 1) > (apart > SETTLED ? apart : SETTLED))
		return;
	state->level = median_last(state, 0, KEPT);
	state->sum = 0;
	state->count = 0;
}

/* The running median sees 64 steps later that steps have become faster; until then it is no level to rise to. */
static void follow(const struct triggers_series *series, struct shift_state *state)
{
	float last[KEPT];
	sorted_last(state, 0, FALLEN, last);
	double lately = (double)last[FALLEN / 2], median = triggers_window_median(&series->window);
	state->deviation = triggers_window_deviation(&series->window);
	if ((double)last[FALLEN * 3 / 4] < state->level * (1 - FALL)) {
		state->level = lately;
		return;
	}
	double change = median - state->level;
	if (change > 0 && lately < median)
		change = lately > state->level ? lately - state->level : 0;
	if (change > FOLLOW_UP * state->level)
		change = FOLLOW_UP * state->level;
	if (change < -FOLLOW_DOWN * state->level)
		change = -FOLLOW_DOWN * state->level;
	state->level += change;
}

static double share_of(const struct shift_state *state)
{
	return state->sum / FIRES_ABOVE;
}

static void forget(struct shift_state *state, const float *values, unsigned count)
{
	*state = (struct shift_state){.wanted = AGAIN_FROM};
	for (unsigned i = count > KEPT ? count - KEPT : 0; i < count; i++) {
		state->value[state->next] = values[i];
		state->next = (state->next + 1) % KEPT;
		state->seen++;
	}
}

static void shift_create(struct triggers_engine *engine, struct triggers_series *series, void *state_)
{
	struct shift_state *state = state_;
	(void)engine, (void)series;
	state->wanted = SETTLED_FROM;
}

static void say(struct triggers_claim *claim, const struct triggers_series *series,
		const struct shift_state *state)
{
	char now[TRIGGERS_DURATION_TEXT], before[TRIGGERS_DURATION_TEXT];
	char what[2 * TRIGGERS_NAME_MAX], since[48] = "for a while";
	if (state->t0_step >= 0)
		snprintf(since, sizeof(since), "since step %lld", (long long)state->t0_step);
	snprintf(claim->evidence, sizeof(claim->evidence),
		 "%.60s has been taking %s %s, %.1f %% more than the %s before",
		 triggers_series_text(series, what), triggers_duration_text(claim->value, now), since,
		 100 * (claim->value / claim->expected - 1), triggers_duration_text(claim->expected, before));
}

static void fire(struct triggers_engine *engine, struct triggers_series *series,
		 const struct shift_state *state, const struct triggers_reading *reading, double now)
{
	if (!series->alarms)
		return;
	struct triggers_claim claim = {
		.module = &triggers_module_shift,
		.series = series,
		.severity = TRIGGERS_WARN,
		.t0_ns = state->t0_ns < reading->end_ns ? state->t0_ns : reading->start_ns,
		.until_ns = reading->end_ns,
		.detected_ns = reading->end_ns,
		.value = now,
		.expected = state->level,
		.step = reading->step,
		.sample = reading->sample,
		.index = reading->index,
		.warmup = !reading->warm,
		.quiet = triggers_engine_option(engine, TRIGGERS_OPTION_SHIFT_ALERT) == 0,
		.graded = 1,
		.lasting = 1,
	};
	say(&claim, series, state);
	triggers_engine_propose(engine, &claim);
}

/* Others have seen eight high values that are alike: a change so large that none of them is usual. */
static void shift_rebase(struct triggers_engine *engine, struct triggers_series *series, void *state_,
			 const struct triggers_reading *reading, const float *values, unsigned count)
{
	struct shift_state *state = state_;
	float sorted[KEPT];
	unsigned used = count < KEPT ? count : KEPT;
	memcpy(sorted, values, used * sizeof(*sorted));
	qsort(sorted, used, sizeof(*sorted), ascending);
	if (used && state->level > 0 && (double)sorted[used / 2] > state->level * (1 + LEAST) &&
	    !reading->stalled)
		fire(engine, series, state, reading, (double)sorted[used / 2]);
	forget(state, values, count);
}

/*
 * Enough has come together: whether it is a level, and if so what follows. True if the series begins again.
 */
static int conclude(struct triggers_engine *engine, struct triggers_series *series, struct shift_state *state,
		    const struct triggers_reading *reading)
{
	float last[LAST], level[LAST];
	sorted_last(state, 0, LAST, last);
	double now = (double)last[LAST / 2];
	if (state->count < LAST || now <= state->level * (1 + LEAST) ||
	    (double)last[LAST / 4] <= state->level * (1 + LEAST_QUARTER)) {
		if (state->sum > WAITS_AT)
			state->sum = FIRES_ABOVE;
		return 0;
	}
	if (!reading->stalled)
		fire(engine, series, state, reading, now);
	state->level = 0; /* told of */
	for (unsigned i = 0; i < LAST; i++)
		level[i] = state->value[(state->next + KEPT - LAST + i) % KEPT];
	triggers_engine_rebase(engine, series, reading, level, LAST);
	return 1;
}

static void add(struct shift_state *state, const struct triggers_reading *reading)
{
	double least = DEVIATION_MIN * state->level;
	double deviation = state->deviation > least ? state->deviation : least;
	double far = (reading->value - state->level) / deviation;
	double more = (far < CLIP ? far : CLIP) - ALLOWANCE;
	if (more > 0 && state->sum <= 0) {
		state->t0_ns = reading->start_ns;
		state->t0_step = reading->step;
	}
	if (more < 0 || !reading->after_phase)
		state->sum += more;
	if (state->sum < 0)
		state->sum = 0;
}

static void shift_observe(struct triggers_engine *engine, struct triggers_series *series, void *state_,
			  struct triggers_reading *reading)
{
	struct shift_state *state = state_;
	if (!triggers_series_is_train(series) || (reading->kept && !reading->warm))
		return;
	state->value[state->next] = (float)reading->value;
	state->next = (state->next + 1) % KEPT;
	state->seen += state->seen < SETTLED_FROM;
	if (!(state->level > 0)) {
		if (state->seen >= state->wanted && state->next % 4 == 0)
			take_level(series, state);
		return;
	}
	state->count += state->count < UINT32_MAX;
	add(state, reading);
	if (state->sum > FIRES_ABOVE) {
		reading->kept |= conclude(engine, series, state, reading);
		return;
	}
	if (state->count % FOLLOW_EVERY == 0)
		follow(series, state);
}

static void shift_believe(const struct triggers_engine *engine, const struct triggers_series *series,
			  const void *state_, struct triggers_belief *belief)
{
	const struct shift_state *state = state_;
	(void)engine, (void)series;
	belief->level = state->level;
	belief->shift_share = share_of(state) < 1 ? share_of(state) : 1;
}

static void shift_save(const void *state_, struct triggers_writer *writer)
{
	const struct shift_state *state = state_;
	triggers_write_u32(writer, state->seen);
	triggers_write_u32(writer, state->wanted);
	triggers_write_u32(writer, state->count);
	triggers_write_u32(writer, state->next);
	for (int i = 0; i < KEPT; i++)
		triggers_write_float(writer, state->value[i]);
	triggers_write_double(writer, state->level);
	triggers_write_double(writer, state->deviation);
	triggers_write_double(writer, state->sum);
	triggers_write_i64(writer, state->t0_ns);
	triggers_write_i64(writer, state->t0_step);
}

static void shift_restore(void *state_, struct triggers_cursor *cursor)
{
	struct shift_state *state = state_;
	state->seen = triggers_read_u32(cursor);
	state->wanted = triggers_read_u32(cursor);
	state->count = triggers_read_u32(cursor);
	state->next = triggers_read_u32(cursor);
	for (int i = 0; i < KEPT; i++)
		state->value[i] = triggers_read_float(cursor);
	state->level = triggers_read_double(cursor);
	state->deviation = triggers_read_double(cursor);
	state->sum = triggers_read_double(cursor);
	state->t0_ns = triggers_read_time(cursor);
	state->t0_step = triggers_read_i64(cursor);
	if (state->next >= KEPT) {
		state->next = 0;
		cursor->failed = 1;
	}
}

const struct triggers_module triggers_module_shift = {
	.name = "shift",
	.roles = 1u << TRIGGERS_STEP,
	.state_bytes = sizeof(struct shift_state),
	.create = shift_create,
	.observe = shift_observe,
	.rebase = shift_rebase,
	.believe = shift_believe,
	.save = shift_save,
	.restore = shift_restore,
};
