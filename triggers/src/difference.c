/* SPDX-License-Identifier: Apache-2.0 */
/*
 * difference: a step is above a ceiling that follows where the series is going, after Babbage's Difference
 * Engine.
 *
 * Formula   Values are cut into blocks of B; b_j = the median of block j, in whole ns. Backward differences
 *           of order k, d1 = b_j - b_(j-1), d2 = d1 - its predecessor, …, are tabulated with additions alone,
 *           so nothing drifts: the next block is expected at b_j + d1 + … + dk. The highest difference counts
 *           only as far as the one before it agrees (0 where the signs differ, else the smaller of the two):
 *           one odd block makes no trend.
 *           The line of value i = 0, 1, … after block j, a block median standing for the middle of its block:
 *           L = b_j + (expected - b_j) (2 i + B + 1) / (2 B)
 *           Its ceiling, r = the last 64 residuals x - L, s = 1.4826 x their MAD (of the first 16 residuals:
 *           no less than that of the steps):
 *           C = L + max(floor L, med(r) + max(floor L, min(6 s, max(20 % L, 4.5 s))))
 *           20 % so that a noisy series is not let off everything, 4.5 so that it does not flood. A job that
 *           was above the floor three times in its last 128 values (eight are remembered) is noisy by nature:
 *           the ceiling is then at least 1.15 x as high above L as the third of those, up to 25 %.
 *           x > C fires a warning, t0 = the step's begin. Whatever x was, it goes into its block: a block
 *           median is not moved by it, and nothing latches. Eight values in a row above it and within 5 % of
 *           each other are a new level: the blocks begin again.
 * State     1,104 bytes a series of steps: the block, eight medians, 64 residuals, eight high values.
 * Cost      one subtraction, multiplication and division a step, an insertion into 64 residuals; a sort of B
 *           a block.
 * Defaults  order 1, B 16: on public logs blocks of 16 keep the noise of a line (1.25 s / 4) below the floor,
 *           and raw values of order 2 echo every outlier (0.92-1.00 false alarms a spike against 0.00). Floor
 *           12.5 %: from 10 to 14 % the firings of all triggers on five public sets fall from 11.4 to 10.0 in
 *           10,000 steps, and the runs in which a step 1.15 x too slow is found from 0.92 to 0.87;
 *           docs/difference.md has the curve. Warm from three blocks on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "module.h"

enum {
	BLOCK_MAX = 64,
	MEDIANS = 8,
	RESIDUALS = 64,
	RESIDUALS_KNOWN = 16,
	HIGHS = 8,
	HIGH_FOR = 128,
	NATURAL = 3,
	LEVEL_RUN = 8,
	WARM_BLOCKS = 3
};

#define SIGMAS        6
#define NOISE_MAX     0.20
#define SIGMAS_LEAST  4.5 /* however noisy: 2 would be every fiftieth step */
#define NATURAL_MAX   0.25
#define NATURAL_SLACK 1.15
/* Longer values are taken for this, so that no sum of differences leaves 64 bits: 13 days. */
#define VALUE_MAX_NS (INT64_C(1) << 50)

struct difference_state {
	uint32_t n_block; /* values in the block that is being filled */
	uint32_t n_medians;
	uint32_t n_highs, n_level;
	int64_t block[BLOCK_MAX];
	int64_t median[MEDIANS]; /* newest first */
	int64_t step_ns;         /* expected change from the last block to the next */
	uint64_t high_index[HIGHS];
	float high[HIGHS]; /* above the line, as a share */
	float level[LEVEL_RUN];
	struct triggers_window residuals;
	float residual_memory[TRIGGERS_WINDOW_BYTES(RESIDUALS) / sizeof(float)];
};

static int64_t bounded(double value)
{
	return value < (double)VALUE_MAX_NS ? (int64_t)value : VALUE_MAX_NS;
}

static unsigned block_size(const struct triggers_engine *engine)
{
	return (unsigned)triggers_engine_option(engine, TRIGGERS_OPTION_DIFFERENCE_BLOCK);
}

static void difference_create(struct triggers_engine *engine, struct triggers_series *series, void *state_)
{
	struct difference_state *state = state_;
	(void)engine, (void)series;
	triggers_window_init(&state->residuals, state->residual_memory, RESIDUALS);
}

static int ascending(const void *a_, const void *b_)
{
	const int64_t *a = a_, *b = b_;
	return *a < *b ? -1 : *a > *b;
}

/* The middle one, or the mean of the two middle ones, rounded down. Sorts. */
static int64_t median_of(int64_t *value, unsigned count)
{
	qsort(value, count, sizeof(*value), ascending);
	if (count % 2)
		return value[count / 2];
	return value[count / 2 - 1] + (value[count / 2] - value[count / 2 - 1]) / 2;
}

/* What both agree on. */
static int64_t agreed(int64_t a, int64_t b)
{
	if ((a < 0) != (b < 0))
		return 0;
	return llabs(a) < llabs(b) ? a : b;
}

/* The change to the next block: the sum of the newest differences of order 1 .. k. */
static int64_t tabulate(const int64_t median[MEDIANS], unsigned count, unsigned order)
{
	int64_t row[MEDIANS], sum = 0;
	memcpy(row, median, count * sizeof(row[0]));
	for (unsigned k = 1; k <= order && k + 1 < count; k++) {
		for (unsigned i = 0; i + k < count; i++)
			row[i] -= row[i + 1];
		sum += k == order || k + 2 >= count ? agreed(row[0], row[1]) : row[0];
	}
	return sum;
}

static void end_block(struct difference_state *state, unsigned order)
{
	memmove(state->median + 1, state->median, (MEDIANS - 1) * sizeof(state->median[0]));
	state->median[0] = median_of(state->block, state->n_block);
	if (state->n_medians < MEDIANS)
		state->n_medians++;
	state->n_block = 0;
	state->step_ns = tabulate(state->median, state->n_medians, order);
}

/* Where the next value is expected; never below half the last median, however steep the fall. */
static int64_t line(const struct difference_state *state, unsigned size)
{
	int64_t last = state->median[0];
	int64_t at = last + state->step_ns * (int64_t)(2 * state->n_block + size + 1) / (int64_t)(2 * size);
	return at > last / 2 ? at : last / 2;
}

/* How far above the line high values are usual, as a share: 0 where there were too few of late. */
static double natural(const struct difference_state *state, uint64_t index)
{
	float highest[NATURAL] = {0};
	uint32_t kept = state->n_highs < HIGHS ? state->n_highs : HIGHS;
	for (uint32_t i = 0; i < kept; i++) {
		float value = state->high[i];
		if (index - state->high_index[i] > HIGH_FOR)
			continue;
		for (unsigned at = 0; at < NATURAL; at++)
			if (value > highest[at]) {
				float lower = highest[at];
				highest[at] = value;
				value = lower;
			}
	}
	double share = NATURAL_SLACK * (double)highest[NATURAL - 1];
	return share < NATURAL_MAX ? share : NATURAL_MAX;
}

/* How far above the line the ceiling is. */
static double headroom(const struct triggers_engine *engine, const struct triggers_series *series,
		       const struct difference_state *state, double line_ns, uint64_t index)
{
	double floor = triggers_engine_option(engine, TRIGGERS_OPTION_DIFFERENCE_FLOOR) * line_ns;
	double deviation = triggers_window_deviation(&state->residuals);
	/* Of a few residuals it means little. */
	if (state->residuals.count < RESIDUALS_KNOWN &&
	    deviation < triggers_window_deviation(&series->window))
		deviation = triggers_window_deviation(&series->window);
	double noise = SIGMAS * deviation, most = NOISE_MAX * line_ns;
	double usual = natural(state, index) * line_ns;
	if (most < SIGMAS_LEAST * deviation)
		most = SIGMAS_LEAST * deviation;
	noise = noise < most ? noise : most;
	double room = floor > noise ? floor : noise;
	room = (room > usual ? room : usual) + triggers_window_median(&state->residuals);
	/* Residuals of a line that fell would put the ceiling below the line: what is as expected is no news. */
	return room > floor ? room : floor;
}

static void begin_again(struct difference_state *state, const float *values, unsigned count)
{
	int64_t level[BLOCK_MAX];
	count = count < BLOCK_MAX ? count : BLOCK_MAX;
	for (unsigned i = 0; i < count; i++)
		level[i] = bounded((double)values[i]);
	state->median[0] = median_of(level, count);
	for (unsigned i = 1; i < MEDIANS; i++)
		state->median[i] = state->median[0];
	state->step_ns = 0;
	state->n_block = 0;
	state->n_level = 0;
	state->n_highs = 0;
	triggers_window_clear(&state->residuals);
}

static void difference_rebase(struct triggers_engine *engine, struct triggers_series *series, void *state_,
			      const struct triggers_reading *reading, const float *values, unsigned count)
{
	struct difference_state *state = state_;
	(void)engine, (void)series, (void)reading;
	if (state->n_medians && count)
		begin_again(state, values, count);
}

/* Eight in a row that are alike: begins again from them. */
static int is_level(struct difference_state *state, double value)
{
	double first = state->n_level ? (double)state->level[0] : value;
	if (value > 1.05 * first || value < 0.95 * first)
		state->n_level = 0;
	state->level[state->n_level++] = (float)value;
	return state->n_level == LEVEL_RUN;
}

static void say(struct triggers_claim *claim, const struct triggers_series *series, double ceiling_ns)
{
	char took[TRIGGERS_DURATION_TEXT], expected[TRIGGERS_DURATION_TEXT], ceiling[TRIGGERS_DURATION_TEXT];
	char what[2 * TRIGGERS_NAME_MAX], number[32] = "";
	if (claim->step >= 0)
		snprintf(number, sizeof(number), " %lld", (long long)claim->step);
	snprintf(claim->evidence, sizeof(claim->evidence),
		 "%.60s%s took %s, %.2f times the %s that the steps before it led to expect, and is above "
		 "the ceiling of %s",
		 triggers_series_text(series, what), number, triggers_duration_text(claim->value, took),
		 claim->value / claim->expected, triggers_duration_text(claim->expected, expected),
		 triggers_duration_text(ceiling_ns, ceiling));
}

static void fire(struct triggers_engine *engine, struct triggers_series *series,
		 const struct triggers_reading *reading, double expected, double ceiling_ns)
{
	struct triggers_claim claim = {
		.module = &triggers_module_difference,
		.series = series,
		.severity = TRIGGERS_WARN,
		.t0_ns = reading->start_ns,
		.until_ns = reading->end_ns,
		.detected_ns = reading->end_ns,
		.value = reading->value,
		.expected = expected,
		.step = reading->step,
		.sample = reading->sample,
		.index = reading->index,
		.warmup = !reading->warm,
		.graded = 1,
	};
	say(&claim, series, ceiling_ns);
	triggers_engine_propose(engine, &claim);
}

/* Holds a value against the ceiling; true where it is above. */
static int judge(struct triggers_engine *engine, struct triggers_series *series,
		 struct difference_state *state, const struct triggers_reading *reading, unsigned size)
{
	double line_ns = (double)line(state, size), expected = line_ns * reading->after_factor;
	double floor = triggers_engine_option(engine, TRIGGERS_OPTION_DIFFERENCE_FLOOR);
	double share = expected > 0 ? reading->value / expected - 1 : 0;
	double ceiling_ns = expected * (1 + reading->after_slack) +
			    headroom(engine, series, state, expected, reading->index);
	if (!reading->after_phase)
		triggers_window_insert(&state->residuals, (float)(reading->value - line_ns), 0);
	if (share > floor) {
		state->high_index[state->n_highs % HIGHS] = reading->index;
		state->high[state->n_highs % HIGHS] = (float)share;
		if (++state->n_highs == 2 * HIGHS)
			state->n_highs = HIGHS;
	}
	/* Of a series with two levels by nature the upper one counts. */
	if (triggers_window_bimodal(&series->window)) {
		double upper = triggers_window_upper(&series->window);
		double over_upper = upper + headroom(engine, series, state, upper, reading->index);
		ceiling_ns = ceiling_ns > over_upper ? ceiling_ns : over_upper;
	}
	if (!(expected > 0) || reading->value <= ceiling_ns)
		return 0;
	if (series->alarms && !reading->stalled)
		fire(engine, series, reading, expected, ceiling_ns);
	return 1;
}

static void difference_observe(struct triggers_engine *engine, struct triggers_series *series, void *state_,
			       struct triggers_reading *reading)
{
	struct difference_state *state = state_;
	unsigned size = block_size(engine);
	unsigned order = (unsigned)triggers_engine_option(engine, TRIGGERS_OPTION_DIFFERENCE_ORDER);
	/* Steps of the grace after a start are no part of the usual; kept == 1: one was put elsewhere. */
	if (!triggers_series_is_train(series) || (reading->kept && !reading->warm))
		return;
	int above = state->n_medians >= WARM_BLOCKS && judge(engine, series, state, reading, size);
	if (!above)
		state->n_level = 0;
	else if (is_level(state, reading->value)) {
		float level[LEVEL_RUN];
		memcpy(level, state->level, sizeof(level));
		triggers_engine_rebase(engine, series, reading, level, LEVEL_RUN);
		reading->kept = 1;
		return;
	}
	state->block[state->n_block++] = bounded(reading->value);
	if (state->n_block >= size)
		end_block(state, order);
}

static void difference_believe(const struct triggers_engine *engine, const struct triggers_series *series,
			       const void *state_, struct triggers_belief *belief)
{
	const struct difference_state *state = state_;
	if (state->n_medians < WARM_BLOCKS)
		return;
	belief->line = (double)line(state, block_size(engine));
	belief->line_ceiling = belief->line + headroom(engine, series, state, belief->line, series->samples);
	if (series->alarms && belief->line_ceiling < belief->warn)
		belief->warn = belief->line_ceiling;
}

static void difference_save(const void *state_, struct triggers_writer *writer)
{
	const struct difference_state *state = state_;
	triggers_write_u32(writer, state->n_block);
	triggers_write_u32(writer, state->n_medians);
	triggers_write_u32(writer, state->n_highs);
	triggers_write_u32(writer, state->n_level);
	triggers_write_i64(writer, state->step_ns);
	for (uint32_t i = 0; i < state->n_block; i++)
		triggers_write_i64(writer, state->block[i]);
	for (int i = 0; i < MEDIANS; i++)
		triggers_write_i64(writer, state->median[i]);
	for (int i = 0; i < HIGHS; i++) {
		triggers_write_u64(writer, state->high_index[i]);
		triggers_write_float(writer, state->high[i]);
	}
	for (int i = 0; i < LEVEL_RUN; i++)
		triggers_write_float(writer, state->level[i]);
	triggers_window_save(&state->residuals, writer);
}

/* A value or a sum of differences of values. */
static int64_t read_value(struct triggers_cursor *cursor)
{
	int64_t value = triggers_read_i64(cursor);
	if (value > 16 * VALUE_MAX_NS || value < -16 * VALUE_MAX_NS)
		cursor->failed = 1;
	return cursor->failed ? 0 : value;
}

static void difference_restore(void *state_, struct triggers_cursor *cursor)
{
	struct difference_state *state = state_;
	state->n_block = triggers_read_u32(cursor);
	state->n_medians = triggers_read_u32(cursor);
	state->n_highs = triggers_read_u32(cursor);
	state->n_level = triggers_read_u32(cursor);
	if (state->n_block >= BLOCK_MAX || state->n_medians > MEDIANS || state->n_highs >= 2 * HIGHS ||
	    state->n_level >= LEVEL_RUN) {
		cursor->failed = 1;
		memset(state, 0, offsetof(struct difference_state, residuals));
		return;
	}
	state->step_ns = read_value(cursor);
	for (uint32_t i = 0; i < state->n_block; i++)
		state->block[i] = read_value(cursor);
	for (int i = 0; i < MEDIANS; i++)
		state->median[i] = read_value(cursor);
	for (int i = 0; i < HIGHS; i++) {
		state->high_index[i] = triggers_read_u64(cursor);
		state->high[i] = triggers_read_float(cursor);
	}
	for (int i = 0; i < LEVEL_RUN; i++)
		state->level[i] = triggers_read_float(cursor);
	triggers_window_restore(&state->residuals, cursor);
}

const struct triggers_module triggers_module_difference = {
	.name = "difference",
	.roles = 1u << TRIGGERS_STEP,
	.state_bytes = sizeof(struct difference_state),
	.create = difference_create,
	.observe = difference_observe,
	.rebase = difference_rebase,
	.believe = difference_believe,
	.save = difference_save,
	.restore = difference_restore,
};
