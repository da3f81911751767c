/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stall: an open step, phase or named span, or a track that should move, is past its learned deadline.
 *
 * Formula   deadline = max(1 s, 3 m, 1.5 x the longest usual value of the window), m = running median of the
 *           lengths; time that other phases of the same source overlap does not count. Before the series is
 *           warm, in the three steps after a start or a compile, and for the phases "first" and "compile",
 *           the deadline is 30 min.
 *           t0 = the LAST progress of the source inside the open step, else the step's begin: the moment from
 *           which nothing moved. One firing a stall; it is over when the step ends or the track moves, and
 *           that late end fires nothing else, nor does it count as usual: the next stall is found as early.
 *           Where two of 64 steps stalled, the deadline of the next 64 is at least 1.5 x the shorter one:
 *           they are slow, not stuck, and latency_spike tells of that.
 *           A track has no lengths: m is the median of the longest gap in each second in which it moved. A
 *           track or span of which too little is known has no deadline.
 *           A span (a loader's wait, a phase known by its span's name) varies more than a step does: its
 *           deadline is at least ten times that least second, and of a span that is no phase three steps
 *           where the source marks steps. While a step is open the step's own deadline holds. Nothing watches
 *           the time between two steps in which no span is open either: a job that has ended its steps may
 *           well go on for hours.
 *           Suspicion from 1.2 m on (not before 50 ms; tracks: half a second; spans: half the deadline), from
 *           the step's begin. Ends with progress, and while a phase excuses the step.
 *           A firing that made no incident (a capture of ours, equal gaps, budgets) is claimed again where
 *           the stall still goes on 60 s later, and twice as long as the last two were, then at every
 *           doubling: what never resumes is told, whatever held it back at first.
 * State     632 bytes a series but counters, 552 of them the ongoing firing.
 * Cost      a few comparisons a step or progress; a walk of W once a step for the longest usual length.
 * Defaults  3: on public logs 1.5 x fires 4.8, 2 x 3.5, 3 x 3.2, 5 x 3.1 times in 10,000 steps: 3 is the
 *           knee. 1 s, so that a hiccup of a 10 ms step is none. 30 min: a large model's first compile.
 */
#include <stdio.h>

#include "module.h"

#define SECOND_NS       INT64_C(1000000000)
#define SUSPECT_STEP_NS (SECOND_NS / 20)
#define AGAIN_NS        (60 * SECOND_NS)

enum { RECENT = 64, SPAN_FLOOR = 10 };

struct stall_state {
	int fired;
	int counted; /* the firing made or joined an incident */
	int suspected;
	int64_t deadline_ns; /* lengths, from the begin; INT64_MAX = none */
	int64_t suspect_ns;  /* 0 = none */
	int64_t again_ns;    /* age at which a firing that made no incident is claimed again; 0 = never */
	/* Lengths of the last two stalls, newest first, and the newest one's sample number. */
	float past[2];
	uint64_t past_index;
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

/* Without a usual length: new, after a start or a compile, or by nature. */
static int is_cold(const struct triggers_engine *engine, const struct triggers_series *series)
{
	int train = series->role == TRIGGERS_STEP && !series->phase[0];
	return !series->learns || !triggers_engine_is_warm(engine, series) ||
	       (train && series->source->grace);
}

/* What stalls again and again is slow. */
static double recurring(const struct triggers_series *series, const struct stall_state *state)
{
	double shorter = (double)(state->past[0] < state->past[1] ? state->past[0] : state->past[1]);
	return series->samples - state->past_index <= RECENT ? shorter : 0;
}

static void remember(struct stall_state *state, double ns, uint64_t index)
{
	state->past[1] = index - state->past_index <= RECENT ? state->past[0] : 0;
	state->past[0] = (float)ns;
	state->past_index = index;
}

static int64_t span_floor(const struct triggers_engine *engine, const struct triggers_series *series,
			  int64_t least_ns)
{
	double factor = triggers_engine_option(engine, TRIGGERS_OPTION_STALL_FACTOR);
	double steps = series->role == TRIGGERS_SPAN ? factor * (double)series->source->step_ns : 0;
	return at_least(steps, SPAN_FLOOR * least_ns);
}

static void learn_deadline(const struct triggers_engine *engine, const struct triggers_series *series,
			   struct stall_state *state)
{
	int is_track = series->role == TRIGGERS_TRACK, is_span = series->role == TRIGGERS_SPAN;
	int64_t least_ns = triggers_engine_option_ns(engine, TRIGGERS_OPTION_STALL_MIN);
	state->suspect_ns = 0;
	if (is_cold(engine, series)) {
		int64_t first_ns = triggers_engine_option_ns(engine, TRIGGERS_OPTION_STALL_FIRST);
		state->deadline_ns = is_track || is_span ? INT64_MAX : first_ns;
		return;
	}
	double median = triggers_window_median(&series->window);
	double longest = triggers_window_longest_calm(&series->window), again = recurring(series, state);
	double learned = triggers_engine_option(engine, TRIGGERS_OPTION_STALL_FACTOR) * median;
	double suspect = triggers_engine_option(engine, TRIGGERS_OPTION_STALL_SUSPECT) * median;
	longest = 1.5 * (again > longest ? again : longest);
	state->deadline_ns = at_least(learned > longest ? learned : longest,
				      series->varies ? span_floor(engine, series, least_ns) : least_ns);
	state->suspect_ns = series->varies ? state->deadline_ns / 2
					   : at_least(suspect, is_track ? least_ns / 2 : SUSPECT_STEP_NS);
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
	state->again_ns = 0;
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
	if (state->fired) {
		reading->alarm = 1;
		remember(state, reading->value, series->samples);
	}
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
		resolve(engine, series, state, now_ns, 0);
		return;
	}
	int64_t gap_ns = now_ns - series->last_progress_ns;
	gap_ns = gap_ns < TRIGGERS_NS_MAX ? gap_ns : TRIGGERS_NS_MAX; /* as saved state can hold it */
	if (gap_ns > state->longest_gap_ns)
		state->longest_gap_ns = gap_ns;
	state->gap_fired |= state->fired;
	if (state->fired)
		remember(state, (double)gap_ns, series->samples);
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

/* When, if at all, a firing that made no incident is claimed again, counted from the begin. */
static int64_t again_at(const struct stall_state *state, enum triggers_gate gate, int64_t elapsed_ns)
{
	float longer = state->past[0] > state->past[1] ? state->past[0] : state->past[1];
	if (gate == TRIGGERS_PASSED || gate == TRIGGERS_COALESCED || gate == TRIGGERS_SAME_ANOMALY)
		return 0;
	double once_more = state->fired ? 2 * (double)elapsed_ns : (double)elapsed_ns + (double)AGAIN_NS;
	return at_least(once_more > 2 * (double)longer ? once_more : 2 * (double)longer, 1);
}

static void fire(struct triggers_engine *engine, struct triggers_series *series, struct stall_state *state,
		 int64_t begin_ns, int64_t elapsed_ns, int64_t now_ns)
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
		.value = (double)elapsed_ns,
		.expected = state->suspect_ns ? triggers_window_median(&series->window)
					      : (double)state->deadline_ns,
		.step = series->role == TRIGGERS_STEP || series->role == TRIGGERS_PHASE ? series->open_step
											: -1,
		.sample = -1,
		.index = series->samples,
		.ongoing = 1,
		.still = state->fired,
	};
	say(series, state, &claim);
	enum triggers_gate gate = triggers_engine_fire(engine, &claim, &state->firing);
	state->again_ns = again_at(state, gate, elapsed_ns);
	state->fired = 1;
	state->counted = gate == TRIGGERS_PASSED || gate == TRIGGERS_COALESCED;
	end_suspicion(engine, series, state);
}

/* The begin of what is judged, and its age without what phases excuse; INT64_MIN = a phase interrupts it. */
static int64_t age(const struct triggers_series *series, int64_t now_ns, int64_t *ret_begin_ns)
{
	const struct triggers_source *source = series->source;
	int is_track = series->role == TRIGGERS_TRACK;
	int64_t begin_ns = is_track ? series->last_progress_ns : series->open_ns;
	*ret_begin_ns = begin_ns;
	if (series->role == TRIGGERS_PHASE)
		return now_ns - begin_ns;
	if (triggers_source_interrupted(source, series->open_ns, is_track))
		return INT64_MIN;
	return now_ns - begin_ns - triggers_source_excused(source, begin_ns, now_ns);
}

static int64_t stall_tick(struct triggers_engine *engine, struct triggers_series *series, void *state_,
			  int64_t now_ns)
{
	struct stall_state *state = state_;
	int64_t begin_ns, limit_ns = state->fired ? state->again_ns : state->deadline_ns;
	if (!series->alarms || !series->is_open || limit_ns == INT64_MAX || !limit_ns)
		return INT64_MAX;
	int64_t elapsed_ns = age(series, now_ns, &begin_ns);
	if (elapsed_ns == INT64_MIN) {
		end_suspicion(engine, series, state);
		return INT64_MAX; /* a phase's end asks again */
	}
	/* The step around it is judged; asked again in case that ends first. */
	if (series->role == TRIGGERS_SPAN && series->source->open_steps)
		return now_ns + limit_ns / 4;
	if (elapsed_ns >= limit_ns) {
		fire(engine, series, state, begin_ns, elapsed_ns, now_ns);
		return state->again_ns ? now_ns + (state->again_ns - elapsed_ns) : INT64_MAX;
	}
	if (elapsed_ns < state->suspect_ns)
		end_suspicion(engine, series, state); /* a phase was told of that excuses it after all */
	int may_suspect = !state->fired && state->suspect_ns && !state->suspected;
	if (may_suspect && elapsed_ns >= state->suspect_ns) {
		state->suspected = 1;
		may_suspect = 0;
		triggers_engine_suspect(engine, series, begin_ns);
	}
	int64_t next_ns = may_suspect && state->suspect_ns < limit_ns ? state->suspect_ns : limit_ns;
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
	triggers_write_i64(writer, state->again_ns);
	triggers_write_float(writer, state->past[0]);
	triggers_write_float(writer, state->past[1]);
	triggers_write_u64(writer, state->past_index);
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
	state->suspect_ns = triggers_read_time(cursor);
	state->again_ns = triggers_read_time(cursor);
	state->past[0] = triggers_read_float(cursor);
	state->past[1] = triggers_read_float(cursor);
	state->past_index = triggers_read_u64(cursor);
	state->bucket_ns = triggers_read_time(cursor);
	state->longest_gap_ns = triggers_read_time(cursor);
	if (state->fired)
		triggers_firing_restore(&state->firing, cursor);
	if (state->deadline_ns < 0 ||
	    (state->deadline_ns > TRIGGERS_NS_MAX && state->deadline_ns != INT64_MAX) ||
	    state->suspect_ns < 0 || state->again_ns < 0)
		cursor->failed = 1;
}

const struct triggers_module triggers_module_stall = {
	.name = "stall",
	.roles = 1u << TRIGGERS_STEP | 1u << TRIGGERS_PHASE | 1u << TRIGGERS_TRACK | 1u << TRIGGERS_SPAN,
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
