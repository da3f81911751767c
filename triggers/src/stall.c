/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stall: an open step or phase, or a track that should move, is past its learned deadline.
 *
 * Formula   deadline = max(1 s, 3 m, 1.5 x the longest usual value of the window), m = running median of the
 *           lengths; time that other phases of the same source overlap does not count. Before the series is
 *           warm, and for the phases "first" and "compile", the deadline is 30 min.
 *           t0 = the LAST progress of the source inside the open step, else the step's begin: the moment from
 *           which nothing moved. One firing a stall; it is over when the step ends or the track moves, and
 *           that late end fires nothing else.
 *           A track has no lengths: m is the median of the longest gap in each second in which it moved.
 *           Suspicion from 1.2 m on (not before 50 ms; tracks: half a second), from the step's begin.
 * State     about 700 bytes a series of steps, a phase or a track (the ongoing firing); none for spans.
 * Cost      a few comparisons a step or progress; a walk of W once a step for the longest usual length.
 * Defaults  3: on public logs 1.5 x fires 4.8, 2 x 3.5, 3 x 3.2, 5 x 3.1 times in 10,000 steps: 3 is the
 * knee. 1 s, so that a hiccup of a 10 ms step is none. 30 min: a large model's first compile.
 */
#include <stdio.h>

#include "module.h"

#define SECOND_NS       INT64_C(1000000000)
#define SUSPECT_STEP_NS (SECOND_NS / 20)

struct stall_state {
	int fired;
	int counted; /* the firing made or joined an incident */
	int suspected;
	int64_t deadline_ns; /* lengths, from the begin; INT64_MAX = none */
	int64_t suspect_ns;  /* 0 = none */
	/* Tracks: the longest gap of the second that began at bucket_ns. */
	int64_t bucket_ns, longest_gap_ns;
	int gap_fired;
	struct triggers_firing firing;
};

static int64_t at_least(double ns, int64_t floor_ns)
{
	if (ns >= (double)TRIGGERS_NS_MAX)
		return TRIGGERS_NS_MAX;
	return (int64_t)ns > floor_ns ? (int64_t)ns : floor_ns;
}

static void learn_deadline(const struct triggers_engine *engine, const struct triggers_series *series,
			   struct stall_state *state)
{
	int is_track = series->role == TRIGGERS_TRACK;
	int64_t least_ns = triggers_engine_option_ns(engine, TRIGGERS_OPTION_STALL_MIN);
	state->suspect_ns = 0;
	if (!series->learns || !triggers_engine_is_warm(engine, series)) {
		int64_t first_ns = triggers_engine_option_ns(engine, TRIGGERS_OPTION_STALL_FIRST);
		state->deadline_ns = is_track ? INT64_MAX : first_ns;
		return;
	}
	double median = triggers_window_median(&series->window);
	double longest = 1.5 * triggers_window_longest_calm(&series->window);
	double learned = triggers_engine_option(engine, TRIGGERS_OPTION_STALL_FACTOR) * median;
	double suspect = triggers_engine_option(engine, TRIGGERS_OPTION_STALL_SUSPECT) * median;
	state->deadline_ns = at_least(learned > longest ? learned : longest, least_ns);
	state->suspect_ns = at_least(suspect, is_track ? least_ns / 2 : SUSPECT_STEP_NS);
}

static void end_suspicion(struct triggers_engine *engine, const struct triggers_series *series,
			  struct stall_state *state)
{
	if (state->suspected)
		triggers_engine_unsuspect(engine, series);
	state->suspected = 0;
}

static void resolve(struct triggers_engine *engine, const struct triggers_series *series,
		    struct stall_state *state, int64_t now_ns, int died)
{
	if (state->fired)
		triggers_engine_ended(engine, series, now_ns);
	if (state->fired && state->counted && !died)
		triggers_engine_over(engine, &state->firing, now_ns);
	state->fired = 0;
	end_suspicion(engine, series, state);
}

static void stall_open(struct triggers_engine *engine, struct triggers_series *series, void *state)
{
	learn_deadline(engine, series, state);
}

static void stall_close(struct triggers_engine *engine, struct triggers_series *series, void *state,
			int64_t now_ns, int died)
{
	resolve(engine, series, state, now_ns, died);
}

static void stall_observe(struct triggers_engine *engine, struct triggers_series *series, void *state_,
			  struct triggers_reading *reading)
{
	struct stall_state *state = state_;
	reading->stalled = state->fired;
	resolve(engine, series, state, reading->end_ns, 0);
}

/* A track moved: series->last_progress_ns is still the progress before. */
static void stall_progress(struct triggers_engine *engine, struct triggers_series *series, void *state_,
			   int64_t now_ns)
{
	struct stall_state *state = state_;
	if (series->role != TRIGGERS_TRACK)
		return;
	if (!series->is_open || now_ns < state->bucket_ns) {
		state->bucket_ns = now_ns;
		state->deadline_ns = series->is_open ? state->deadline_ns : INT64_MAX;
		return;
	}
	int64_t gap_ns = now_ns - series->last_progress_ns;
	gap_ns = gap_ns < TRIGGERS_NS_MAX ? gap_ns : TRIGGERS_NS_MAX; /* as saved state can hold it */
	if (gap_ns > state->longest_gap_ns)
		state->longest_gap_ns = gap_ns;
	state->gap_fired |= state->fired;
	if (state->fired || state->suspected)
		resolve(engine, series, state, now_ns, 0);
	if (now_ns - state->bucket_ns < SECOND_NS)
		return;
	triggers_window_insert(&series->window, (float)state->longest_gap_ns, state->gap_fired);
	series->samples++;
	state->bucket_ns = now_ns;
	state->longest_gap_ns = 0;
	state->gap_fired = 0;
	learn_deadline(engine, series, state);
}

static void say(const struct triggers_series *series, const struct stall_state *state,
		struct triggers_claim *claim)
{
	char open[TRIGGERS_DURATION_TEXT], usual[TRIGGERS_DURATION_TEXT], still[TRIGGERS_DURATION_TEXT];
	char what[2 * TRIGGERS_NAME_MAX], number[32] = "";
	if (claim->step >= 0)
		snprintf(number, sizeof(number), " %lld", (long long)claim->step);
	triggers_series_text(series, what);
	triggers_duration_text(claim->value, open);
	triggers_duration_text(claim->expected, usual);
	triggers_duration_text((double)(claim->detected_ns - claim->t0_ns), still);
	if (series->role == TRIGGERS_TRACK)
		snprintf(claim->evidence, sizeof(claim->evidence),
			 "%.60s has been silent for %s; its longest gap is usually %s", what, open, usual);
	else if (state->suspect_ns)
		snprintf(claim->evidence, sizeof(claim->evidence),
			 "%.60s%s has been open for %s, usually it takes %s; nothing has moved for %s", what,
			 number, open, usual, still);
	else
		snprintf(claim->evidence, sizeof(claim->evidence),
			 "%.48s%s has been open for %s, without a known length it may take %s; nothing moved "
			 "for %s",
			 what, number, open, usual, still);
}

static void fire(struct triggers_engine *engine, struct triggers_series *series, struct stall_state *state,
		 int64_t begin_ns, int64_t excused_ns, int64_t now_ns)
{
	const struct triggers_source *source = series->source;
	int64_t t0_ns = begin_ns;
	if (series->role != TRIGGERS_TRACK && source->last_progress_ns > begin_ns)
		t0_ns = source->last_progress_ns < now_ns ? source->last_progress_ns : now_ns;
	struct triggers_claim claim = {
		.module = &triggers_module_stall,
		.series = series,
		.severity = TRIGGERS_CRITICAL,
		.t0_ns = t0_ns,
		.until_ns = now_ns,
		.detected_ns = now_ns,
		.value = (double)(now_ns - begin_ns - excused_ns),
		.expected = state->suspect_ns ? triggers_window_median(&series->window)
					      : (double)state->deadline_ns,
		.step = series->role == TRIGGERS_TRACK ? -1 : series->open_step,
		.sample = -1,
		.index = series->samples,
		.ongoing = 1,
	};
	say(series, state, &claim);
	enum triggers_gate gate = triggers_engine_fire(engine, &claim, &state->firing);
	state->fired = 1;
	state->counted = gate == TRIGGERS_PASSED || gate == TRIGGERS_COALESCED;
	end_suspicion(engine, series, state);
}

static int64_t stall_tick(struct triggers_engine *engine, struct triggers_series *series, void *state_,
			  int64_t now_ns)
{
	struct stall_state *state = state_;
	const struct triggers_source *source = series->source;
	int is_phase = series->role == TRIGGERS_PHASE, is_track = series->role == TRIGGERS_TRACK;
	if (!series->alarms || !series->is_open || state->fired || state->deadline_ns == INT64_MAX ||
	    (!is_phase && triggers_source_interrupted(source, series->open_ns, is_track)))
		return INT64_MAX;
	int64_t begin_ns = is_track ? series->last_progress_ns : series->open_ns;
	int64_t excused_ns = is_phase ? 0 : triggers_source_excused(source, begin_ns, now_ns);
	int64_t elapsed_ns = now_ns - begin_ns - excused_ns;
	if (elapsed_ns >= state->deadline_ns) {
		fire(engine, series, state, begin_ns, excused_ns, now_ns);
		return INT64_MAX;
	}
	if (state->suspect_ns && elapsed_ns >= state->suspect_ns && !state->suspected) {
		state->suspected = 1;
		triggers_engine_suspect(engine, series, begin_ns);
	}
	int64_t next_ns = state->suspect_ns && !state->suspected ? state->suspect_ns : state->deadline_ns;
	if (next_ns > state->deadline_ns)
		next_ns = state->deadline_ns;
	return now_ns + (next_ns - elapsed_ns);
}

static void stall_believe(const struct triggers_engine *engine, const struct triggers_series *series,
			  const void *state_, struct triggers_belief *belief)
{
	struct stall_state state = *(const struct stall_state *)state_;
	learn_deadline(engine, series, &state);
	belief->deadline_ns = state.suspect_ns ? (double)state.deadline_ns : 0;
}

static void stall_save(const void *state_, struct triggers_writer *writer)
{
	const struct stall_state *state = state_;
	triggers_write_u32(writer, (uint32_t)state->fired | (uint32_t)state->counted << 1 |
					   (uint32_t)state->gap_fired << 2);
	triggers_write_i64(writer, state->deadline_ns);
	triggers_write_i64(writer, state->suspect_ns);
	triggers_write_i64(writer, state->bucket_ns);
	triggers_write_i64(writer, state->longest_gap_ns);
	if (state->fired)
		triggers_firing_save(&state->firing, writer);
}

/* A suspicion is not restored: whoever pins must be told anew. */
static void stall_restore(void *state_, struct triggers_cursor *cursor)
{
	struct stall_state *state = state_;
	uint32_t flags = triggers_read_u32(cursor);
	state->fired = flags & 1;
	state->counted = flags >> 1 & 1;
	state->gap_fired = flags >> 2 & 1;
	state->deadline_ns = triggers_read_i64(cursor);
	state->suspect_ns = triggers_read_ns(cursor);
	state->bucket_ns = triggers_read_ns(cursor);
	state->longest_gap_ns = triggers_read_ns(cursor);
	if (state->fired)
		triggers_firing_restore(&state->firing, cursor);
	if (state->deadline_ns < 0 ||
	    (state->deadline_ns > TRIGGERS_NS_MAX && state->deadline_ns != INT64_MAX) ||
	    state->suspect_ns < 0)
		cursor->failed = 1;
}

const struct triggers_module triggers_module_stall = {
	.name = "stall",
	.roles = 1u << TRIGGERS_STEP | 1u << TRIGGERS_PHASE | 1u << TRIGGERS_TRACK,
	.state_bytes = sizeof(struct stall_state),
	.observe = stall_observe,
	.open = stall_open,
	.progress = stall_progress,
	.close = stall_close,
	.tick = stall_tick,
	.believe = stall_believe,
	.save = stall_save,
	.restore = stall_restore,
};
