/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "watch.h"

static struct watch watch;
static uint32_t step;

static void setup(void)
{
	watch_begin(&watch);
	step = watch_series(&watch, TRIGGERS_STEP, 0, "step");
}

static void teardown(void)
{
	watch_end(&watch);
}

static void steps(int n, int64_t duration_ns)
{
	for (int i = 0; i < n; i++)
		watch_step(&watch, step, i, watch_noise(duration_ns));
}

START_TEST(t0_is_the_last_progress)
{
	uint32_t load = watch_series(&watch, TRIGGERS_SPAN, 0, "load");
	steps(30, S);
	ck_assert_uint_eq(watch.n, 0);
	int64_t begin_ns = watch.now_ns;
	triggers_engine_open(watch.engine, step, begin_ns, 30, NULL);
	watch_ticks(&watch, 400 * MS);
	struct triggers_sample sample = {
		.start_ns = begin_ns, .duration_ns = 400 * MS, .step = 30, .sample = -1};
	triggers_engine_observe(watch.engine, load, &sample);
	watch_ticks(&watch, 5 * S);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_str_eq(watch.last_passed.trigger, "stall");
	ck_assert_int_eq(watch.last_passed.severity, TRIGGERS_CRITICAL);
	ck_assert_int_eq(watch.last_passed.ongoing, 1);
	ck_assert_int_eq(watch.last_passed.step, 30);
	ck_assert_int_eq(watch.last_passed.t0_ns, begin_ns + 400 * MS);
	ck_assert_int_ge(watch.last_passed.detected_ns, begin_ns + 2950 * MS);
	ck_assert_int_le(watch.last_passed.detected_ns, begin_ns + 3100 * MS);
}
END_TEST

START_TEST(without_progress_t0_is_the_begin)
{
	steps(30, S);
	int64_t begin_ns = watch.now_ns;
	triggers_engine_open(watch.engine, step, begin_ns, 30, NULL);
	watch_ticks(&watch, 5 * S);
	ck_assert_int_eq(watch.last_passed.t0_ns, begin_ns);
}
END_TEST

START_TEST(one_incident_a_stall)
{
	steps(30, S);
	watch_step(&watch, step, 30, 60 * S);
	ck_assert_uint_eq(watch.n, 1);
	ck_assert_uint_eq(watch.over, 1);
	ck_assert_int_eq(watch.last_over.until_ns, watch.now_ns);
	ck_assert_int_eq(watch.last_over.t0_ns, watch.last_passed.t0_ns);
	steps(30, S);
	ck_assert_uint_eq(watch.n, 1);
	ck_assert_uint_eq(watch.over, 1);
}
END_TEST

/* The same step told again, its begin converted by newer anchors. */
START_TEST(a_begin_that_moves_is_the_same_step)
{
	steps(30, S);
	int64_t begin_ns = watch.now_ns;
	for (int i = 0; i < 200; i++) {
		triggers_engine_open(watch.engine, step, begin_ns + i % 7 - 3, 30, NULL);
		watch_ticks(&watch, 50 * MS);
	}
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_uint_eq(watch.over, 0);
	struct triggers_sample sample = {
		.start_ns = begin_ns + 2, .duration_ns = watch.now_ns - begin_ns, .step = 30, .sample = -1};
	triggers_engine_observe(watch.engine, step, &sample);
	ck_assert_uint_eq(watch.over, 1);
	ck_assert_int_ge(watch.last_over.until_ns, watch.last_passed.detected_ns);
	ck_assert_uint_eq(watch.passed, 1);
}
END_TEST

START_TEST(suspicion_begins_early_and_ends)
{
	steps(30, S);
	int64_t begin_ns = watch.now_ns;
	ck_assert_uint_eq(watch.suspicions, 0);
	watch_step(&watch, step, 30, 1300 * MS);
	ck_assert_uint_eq(watch.suspicions, 1);
	ck_assert_uint_eq(watch.suspicion_ends, 1);
	ck_assert_int_eq(watch.suspected_from_ns, begin_ns);
	watch_step(&watch, step, 31, 10 * S);
	ck_assert_uint_eq(watch.suspicions, 2);
	ck_assert_uint_eq(watch.suspicion_ends, 2);
}
END_TEST

START_TEST(hiccups_of_short_steps_are_none)
{
	steps(100, 10 * MS);
	for (int i = 0; i < 50; i++) {
		watch_step(&watch, step, i, 15 * MS);
		steps(10, 10 * MS);
	}
	for (unsigned i = 0; i < watch.n && i < WATCH_KEPT; i++)
		ck_assert_str_ne(watch.firing[i].trigger, "stall");
	triggers_engine_open(watch.engine, step, watch.now_ns, 999, NULL);
	watch_ticks(&watch, 900 * MS);
	for (unsigned i = 0; i < watch.n && i < WATCH_KEPT; i++)
		ck_assert_str_ne(watch.firing[i].trigger, "stall");
	unsigned before = watch.n;
	watch_ticks(&watch, 200 * MS);
	ck_assert_uint_eq(watch.n, before + 1);
	ck_assert_str_eq(watch.firing[before].trigger, "stall");
}
END_TEST

START_TEST(first_steps_have_a_ceiling_only)
{
	triggers_engine_open(watch.engine, step, watch.now_ns, 0, NULL);
	watch_ticks(&watch, 1790 * S);
	ck_assert_uint_eq(watch.n, 0);
	ck_assert_uint_eq(watch.suspicions, 0);
	watch_ticks(&watch, 20 * S);
	ck_assert_uint_eq(watch.passed, 1);
}
END_TEST

START_TEST(a_phase_excuses_the_step_around_it)
{
	uint32_t save = watch_series(&watch, TRIGGERS_PHASE, 0, "phase:checkpoint");
	steps(30, S);
	int64_t begin_ns = watch.now_ns;
	triggers_engine_open(watch.engine, step, begin_ns, 30, NULL);
	watch_ticks(&watch, 500 * MS);
	triggers_engine_open(watch.engine, save, watch.now_ns, -1, "checkpoint");
	watch_ticks(&watch, 40 * S);
	watch.now_ns -= 40 * S;
	watch_sample(&watch, save, 40 * S, "checkpoint");
	watch_ticks(&watch, 500 * MS);
	struct triggers_sample sample = {
		.start_ns = begin_ns, .duration_ns = watch.now_ns - begin_ns, .step = 30};
	triggers_engine_observe(watch.engine, step, &sample);
	ck_assert_uint_eq(watch.n, 0);
	triggers_engine_open(watch.engine, step, watch.now_ns, 31, NULL);
	watch_ticks(&watch, 4 * S);
	ck_assert_uint_eq(watch.passed, 1);
}
END_TEST

/* An evaluation on other devices, or an epoch around all steps: neither hides a step in it. */
START_TEST(steps_inside_a_phase_are_judged)
{
	uint32_t epoch = watch_series(&watch, TRIGGERS_PHASE, 0, "phase:epoch");
	steps(30, S);
	triggers_engine_open(watch.engine, epoch, watch.now_ns, -1, "epoch");
	watch_ticks(&watch, 10 * MS);
	steps(10, S);
	watch_sample(&watch, step, 2 * S, NULL);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_str_eq(watch.last_passed.trigger, "latency_spike");
	triggers_engine_settled(watch.engine, watch.now_ns);
	watch_step(&watch, step, 41, 5 * S);
	ck_assert_uint_eq(watch.passed, 2);
	ck_assert_str_eq(watch.last_passed.trigger, "stall");
	ck_assert_uint_eq(watch.over, 1);
}
END_TEST

/* What interrupts such a step still excuses it. */
START_TEST(a_phase_inside_a_step_inside_a_phase)
{
	uint32_t epoch = watch_series(&watch, TRIGGERS_PHASE, 0, "phase:epoch");
	uint32_t save = watch_series(&watch, TRIGGERS_PHASE, 0, "phase:checkpoint");
	steps(30, S);
	triggers_engine_open(watch.engine, epoch, watch.now_ns, -1, "epoch");
	watch_ticks(&watch, 10 * MS);
	steps(10, S);
	int64_t begin_ns = watch.now_ns;
	triggers_engine_open(watch.engine, step, begin_ns, 40, NULL);
	watch_ticks(&watch, 500 * MS);
	triggers_engine_open(watch.engine, save, watch.now_ns, -1, "checkpoint");
	int64_t save_ns = watch.now_ns;
	watch_ticks(&watch, 40 * S);
	struct triggers_sample saved = {
		.start_ns = save_ns, .duration_ns = 40 * S, .step = -1, .phase = "checkpoint"};
	triggers_engine_observe(watch.engine, save, &saved);
	watch_ticks(&watch, 500 * MS);
	struct triggers_sample sample = {
		.start_ns = begin_ns, .duration_ns = watch.now_ns - begin_ns, .step = 40};
	triggers_engine_observe(watch.engine, step, &sample);
	ck_assert_uint_eq(watch.n, 0);
	triggers_engine_open(watch.engine, step, watch.now_ns, 41, NULL);
	watch_ticks(&watch, 5 * S);
	ck_assert_uint_eq(watch.passed, 1);
}
END_TEST

START_TEST(a_silent_track)
{
	uint32_t track = watch_series(&watch, TRIGGERS_TRACK, 7, "track:worker");
	for (int i = 0; i < 3000; i++) {
		triggers_engine_progress(watch.engine, track, watch.now_ns);
		watch_ticks(&watch, 10 * MS);
	}
	ck_assert_uint_eq(watch.n, 0);
	int64_t last_ns = watch.now_ns - 10 * MS;
	watch_ticks(&watch, 3 * S);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_uint_eq(watch.suspicions, 1);
	ck_assert_int_eq(watch.last_passed.t0_ns, last_ns);
	triggers_engine_progress(watch.engine, track, watch.now_ns);
	ck_assert_uint_eq(watch.over, 1);
}
END_TEST

START_TEST(the_clock_steps_back_an_hour)
{
	steps(30, S);
	watch.now_ns -= 3600 * S;
	steps(30, S);
	ck_assert_uint_eq(watch.n, 0);
	triggers_engine_open(watch.engine, step, watch.now_ns, 60, NULL);
	watch_ticks(&watch, 500 * MS);
	watch.now_ns -= 3600 * S;
	watch_ticks(&watch, 4 * S);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_str_eq(watch.last_passed.trigger, "stall");
}
END_TEST

START_TEST(abandoned_and_dead_are_not_stalled)
{
	steps(30, S);
	triggers_engine_open(watch.engine, step, watch.now_ns, 30, NULL);
	triggers_engine_abandon(watch.engine, step);
	watch_ticks(&watch, 100 * S);
	ck_assert_uint_eq(watch.n, 0);
	triggers_engine_open(watch.engine, step, watch.now_ns, 30, NULL);
	triggers_engine_source_end(watch.engine, 0);
	watch_ticks(&watch, 100 * S);
	ck_assert_uint_eq(watch.n, 0);
	watch_sample(&watch, step, S, NULL);
}
END_TEST

static unsigned stalls(void)
{
	unsigned count = 0;
	for (unsigned i = 0; i < watch.n && i < WATCH_KEPT; i++)
		count += strcmp(watch.firing[i].trigger, "stall") == 0;
	return count;
}

/* Opens a step that never ends; how long after its begin it was noticed. */
static int64_t hang(int64_t step_number)
{
	int64_t begin_ns = watch.now_ns;
	unsigned before = stalls();
	triggers_engine_settled(watch.engine, watch.now_ns);
	triggers_engine_open(watch.engine, step, begin_ns, step_number, NULL);
	for (int i = 0; i < 4000 && stalls() == before; i++)
		watch_ticks(&watch, 50 * MS);
	ck_assert_uint_eq(stalls(), before + 1);
	return watch.firing[watch.n - 1].detected_ns - begin_ns;
}

START_TEST(a_long_stall_does_not_blind)
{
	steps(30, S);
	watch_step(&watch, step, 30, 50 * S);
	ck_assert_uint_eq(stalls(), 1);
	steps(2, S);
	ck_assert_int_le(hang(33), 3100 * MS);
}
END_TEST

START_TEST(a_stall_long_ago_and_another_do_not_blind)
{
	steps(30, S);
	watch_step(&watch, step, 30, 50 * S);
	steps(100, S);
	watch_step(&watch, step, 131, 50 * S);
	ck_assert_uint_eq(stalls(), 2);
	steps(2, S);
	ck_assert_int_le(hang(134), 3100 * MS);
}
END_TEST

/* Four times slower from one place on is slow, not stuck. */
START_TEST(a_slower_level_does_not_flood)
{
	steps(200, S);
	for (int i = 0; i < 40; i++) {
		triggers_engine_settled(watch.engine, watch.now_ns);
		watch_step(&watch, step, 200 + i, watch_noise(4 * S));
	}
	ck_assert_uint_ge(stalls(), 1);
	ck_assert_uint_le(stalls(), 2);
	ck_assert_int_le(hang(240), 13 * S);
}
END_TEST

START_TEST(what_never_resumes_is_told_once)
{
	steps(30, S);
	hang(30);
	for (int i = 0; i < 100; i++) {
		triggers_engine_settled(watch.engine, watch.now_ns);
		watch_ticks(&watch, 60 * S);
	}
	ck_assert_uint_eq(watch.n, 1);
	ck_assert_uint_eq(watch.over, 0);
}
END_TEST

/* As SIGSTOP does: nothing for 20 s, then the step goes on and ends. */
START_TEST(a_stopped_job_resolves)
{
	uint32_t load = watch_series(&watch, TRIGGERS_SPAN, 0, "load");
	steps(30, S);
	int64_t begin_ns = watch.now_ns;
	triggers_engine_open(watch.engine, step, begin_ns, 30, NULL);
	watch_ticks(&watch, 300 * MS);
	watch_sample(&watch, load, 0, NULL);
	int64_t last_ns = watch.now_ns;
	watch_ticks(&watch, 20 * S);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_int_eq(watch.last_passed.t0_ns, last_ns);
	triggers_engine_settled(watch.engine, watch.now_ns);
	watch_ticks(&watch, 700 * MS);
	struct triggers_sample sample = {
		.start_ns = begin_ns, .duration_ns = watch.now_ns - begin_ns, .step = 30, .sample = -1};
	triggers_engine_observe(watch.engine, step, &sample);
	ck_assert_uint_eq(watch.over, 1);
	steps(30, S);
	ck_assert_uint_eq(watch.n, 1);
}
END_TEST

START_TEST(what_a_capture_held_back_is_told_later)
{
	steps(30, S);
	triggers_engine_capture(watch.engine, watch.now_ns, watch.now_ns + 2 * S);
	int64_t begin_ns = watch.now_ns;
	hang(30);
	ck_assert_uint_eq(watch.by_gate[TRIGGERS_OWN_CAPTURE], 1);
	watch_ticks(&watch, 70 * S);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_int_eq(watch.last_passed.t0_ns, begin_ns);
	ck_assert_int_le(watch.last_passed.detected_ns, begin_ns + 64 * S);
	watch_ticks(&watch, 3600 * S);
	ck_assert_uint_eq(watch.n, 2);
}
END_TEST

/* The third at equal gaps is kept out, as those before were over after 40 s; that one is not. */
START_TEST(what_equal_gaps_held_back_is_told_later)
{
	for (int i = 0; i < 3; i++) {
		steps(99, S);
		triggers_engine_settled(watch.engine, watch.now_ns);
		if (i < 2)
			watch_step(&watch, step, 99, 40 * S);
	}
	unsigned passed = watch.passed;
	int64_t begin_ns = watch.now_ns;
	triggers_engine_open(watch.engine, step, begin_ns, 99, NULL);
	watch_ticks(&watch, 60 * S);
	ck_assert_uint_eq(watch.by_gate[TRIGGERS_PERIODIC], 1);
	ck_assert_uint_eq(watch.passed, passed);
	watch_ticks(&watch, 60 * S);
	ck_assert_uint_eq(watch.passed, passed + 1);
	ck_assert_int_eq(watch.last_passed.severity, TRIGGERS_CRITICAL);
	ck_assert_int_ge(watch.last_passed.detected_ns, begin_ns + 80 * S);
}
END_TEST

START_TEST(steps_after_a_compile_have_a_ceiling_only)
{
	steps(30, S);
	watch_sample(&watch, step, 60 * S, "compile");
	for (int i = 0; i < 3; i++)
		watch_step(&watch, step, 31 + i, 20 * S);
	ck_assert_uint_eq(stalls(), 0);
	ck_assert_uint_eq(watch.passed, 0);
	ck_assert_int_le(hang(34), 3100 * MS);
}
END_TEST

START_TEST(a_phase_ends_the_suspicion)
{
	uint32_t save = watch_series(&watch, TRIGGERS_PHASE, 0, "phase:checkpoint");
	steps(30, S);
	triggers_engine_open(watch.engine, step, watch.now_ns, 30, NULL);
	watch_ticks(&watch, 1500 * MS);
	ck_assert_uint_eq(watch.suspicions, 1);
	triggers_engine_open(watch.engine, save, watch.now_ns, -1, "checkpoint");
	watch_ticks(&watch, 5 * S);
	ck_assert_uint_eq(watch.suspicion_ends, 1);
	watch_ticks(&watch, 35 * S);
	watch.now_ns -= 40 * S;
	watch_sample(&watch, save, 40 * S, "checkpoint");
	watch_ticks(&watch, 200 * MS);
	ck_assert_uint_eq(watch.suspicions, 2);
	ck_assert_uint_eq(watch.n, 0);
	watch_ticks(&watch, 2 * S);
	ck_assert_uint_eq(watch.passed, 1);
}
END_TEST

/* An hour back inside the step: t0 is where the last event would lie on the new clock. */
START_TEST(t0_follows_the_clock)
{
	uint32_t load = watch_series(&watch, TRIGGERS_SPAN, 0, "load");
	steps(30, S);
	triggers_engine_open(watch.engine, step, watch.now_ns, 30, NULL);
	watch_ticks(&watch, 400 * MS);
	watch_sample(&watch, load, 0, NULL);
	int64_t last_ns = watch.now_ns;
	watch_ticks(&watch, 600 * MS);
	watch.now_ns -= 3600 * S;
	watch_ticks(&watch, 4 * S);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_int_le(watch.last_passed.t0_ns, last_ns - 3600 * S + 100 * MS);
	ck_assert_int_ge(watch.last_passed.t0_ns, last_ns - 3600 * S - 100 * MS);
}
END_TEST

/* ---- ranks of one job ---- */

static uint32_t other, save, other_save;

static void two_ranks(void)
{
	other = watch_series(&watch, TRIGGERS_STEP, 1, "step");
	save = watch_series(&watch, TRIGGERS_PHASE, 0, "phase:checkpoint");
	other_save = watch_series(&watch, TRIGGERS_PHASE, 1, "phase:checkpoint");
	for (int i = 0; i < 30; i++) {
		int64_t begin_ns = watch.now_ns;
		triggers_engine_open(watch.engine, other, begin_ns, i, NULL);
		watch_step(&watch, step, i, S);
		struct triggers_sample sample = {
			.start_ns = begin_ns, .duration_ns = watch.now_ns - begin_ns, .step = i, .sample = -1};
		triggers_engine_observe(watch.engine, other, &sample);
	}
	ck_assert_uint_eq(watch.n, 0);
}

static void end_since(uint32_t series, int64_t begin_ns, int64_t number, const char *phase)
{
	struct triggers_sample sample = {.start_ns = begin_ns, .duration_ns = watch.now_ns - begin_ns,
					 .step = number, .phase = phase, .sample = -1};
	triggers_engine_observe(watch.engine, series, &sample);
}

/* Rank 0 is done with its checkpoint 20 s earlier, and waits in its next step. */
START_TEST(a_rank_that_waits_for_a_phase_of_another)
{
	two_ranks();
	int64_t saved_ns = watch.now_ns;
	triggers_engine_open(watch.engine, save, saved_ns, -1, "checkpoint");
	triggers_engine_open(watch.engine, other_save, saved_ns, -1, "checkpoint");
	watch_ticks(&watch, 20 * S);
	end_since(save, saved_ns, -1, "checkpoint");
	int64_t begin_ns = watch.now_ns;
	triggers_engine_open(watch.engine, step, begin_ns, 30, NULL);
	watch_ticks(&watch, 20 * S);
	end_since(other_save, saved_ns, -1, "checkpoint");
	int64_t other_ns = watch.now_ns;
	triggers_engine_open(watch.engine, other, other_ns, 30, NULL);
	watch_ticks(&watch, S);
	end_since(step, begin_ns, 30, NULL);
	end_since(other, other_ns, 30, NULL);
	ck_assert_uint_eq(watch.n, 0);
	ck_assert_int_le(hang(31), 3100 * MS);
}
END_TEST

/* An evaluation of rank 1 alone, while rank 0 goes on: that one's stall is found in it. */
START_TEST(a_rank_that_does_not_wait)
{
	two_ranks();
	triggers_engine_open(watch.engine, other_save, watch.now_ns, -1, "checkpoint");
	watch_ticks(&watch, 10 * MS);
	steps(10, S);
	ck_assert_uint_eq(watch.n, 0);
	ck_assert_int_le(hang(40), 3100 * MS);
}
END_TEST

/* Both are in an epoch, and hang in its first step. */
START_TEST(a_phase_around_steps_excuses_nobody)
{
	two_ranks();
	uint32_t epoch = watch_series(&watch, TRIGGERS_PHASE, 0, "phase:epoch");
	uint32_t other_epoch = watch_series(&watch, TRIGGERS_PHASE, 1, "phase:epoch");
	triggers_engine_open(watch.engine, epoch, watch.now_ns, -1, "epoch");
	triggers_engine_open(watch.engine, other_epoch, watch.now_ns, -1, "epoch");
	watch_ticks(&watch, 10 * MS);
	triggers_engine_open(watch.engine, other, watch.now_ns, 30, NULL);
	triggers_engine_open(watch.engine, step, watch.now_ns, 30, NULL);
	watch_ticks(&watch, 5 * S);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_str_eq(watch.last_passed.trigger, "stall");
}
END_TEST

/* Nor does the phase of another job, or of a rank that is gone. */
START_TEST(a_phase_of_nobody_that_it_waits_for)
{
	two_ranks();
	struct triggers_series_key key = {.role = TRIGGERS_PHASE, .source = 2, .rank = 0, .job = 8, .track = 1,
					  .name = "phase:checkpoint", .alarms = 1};
	uint32_t foreign = triggers_engine_series(watch.engine, &key);
	triggers_engine_open(watch.engine, foreign, watch.now_ns, -1, "checkpoint");
	triggers_engine_open(watch.engine, other_save, watch.now_ns, -1, "checkpoint");
	watch_ticks(&watch, S);
	triggers_engine_source_end(watch.engine, 1);
	ck_assert_int_le(hang(30), 3100 * MS);
}
END_TEST

/* ---- named spans ---- */

static uint32_t loads(int n, int64_t duration_ns)
{
	uint32_t load = watch_series(&watch, TRIGGERS_SPAN, 0, "load");
	watch_steady(&watch, load, n, duration_ns);
	return load;
}

START_TEST(an_open_span_of_a_job_without_steps)
{
	uint32_t load = loads(30, 5 * MS);
	int64_t begin_ns = watch.now_ns;
	for (int i = 0; i < 36; i++) {
		triggers_engine_open(watch.engine, load, begin_ns + i % 5, -1, NULL);
		watch_ticks(&watch, 250 * MS);
	}
	ck_assert_uint_eq(watch.n, 0);
	ck_assert_uint_eq(watch.suspicions, 1);
	watch_ticks(&watch, 2 * S);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_str_eq(watch.last_passed.trigger, "stall");
	ck_assert_str_eq(watch.last_passed.series, "load");
	ck_assert_int_eq(watch.last_passed.t0_ns, begin_ns);
	struct triggers_sample sample = {
		.start_ns = begin_ns, .duration_ns = watch.now_ns - begin_ns, .step = -1, .sample = -1};
	triggers_engine_observe(watch.engine, load, &sample);
	ck_assert_uint_eq(watch.over, 1);
	ck_assert_uint_eq(watch.n, 1);
}
END_TEST

/* Mostly 5 ms, at times two seconds: never stuck. */
START_TEST(noisy_spans_do_not_cry_wolf)
{
	uint32_t load = loads(30, 5 * MS);
	for (int i = 0; i < 500; i++) {
		int64_t start_ns = watch.now_ns;
		triggers_engine_open(watch.engine, load, start_ns, -1, NULL);
		watch_ticks(&watch, test_random_below(20) ? 5 * MS : 2 * S);
		struct triggers_sample sample = {
			.start_ns = start_ns, .duration_ns = watch.now_ns - start_ns, .step = -1, .sample = -1};
		triggers_engine_observe(watch.engine, load, &sample);
	}
	ck_assert_uint_eq(stalls(), 0);
	ck_assert_uint_eq(watch.suspicions, 0);
}
END_TEST

START_TEST(a_span_inside_a_step_leaves_it_to_the_step)
{
	uint32_t load = loads(30, 5 * MS);
	steps(30, 20 * S);
	triggers_engine_open(watch.engine, step, watch.now_ns, 30, NULL);
	triggers_engine_open(watch.engine, load, watch.now_ns, -1, NULL);
	watch_ticks(&watch, 59 * S);
	ck_assert_uint_eq(watch.n, 0);
	watch_ticks(&watch, 2 * S);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_str_eq(watch.last_passed.series, "step");
}
END_TEST

/* Also where that may take half an hour. */
START_TEST(a_span_inside_a_step_after_a_compile)
{
	uint32_t load = loads(30, 5 * MS);
	steps(30, S);
	watch_sample(&watch, step, 60 * S, "compile");
	triggers_engine_open(watch.engine, step, watch.now_ns, 30, NULL);
	triggers_engine_open(watch.engine, load, watch.now_ns, -1, NULL);
	watch_ticks(&watch, 1700 * S);
	ck_assert_uint_eq(watch.n, 0);
}
END_TEST

START_TEST(a_span_between_steps)
{
	uint32_t load = loads(30, 5 * MS);
	steps(30, 20 * S);
	triggers_engine_open(watch.engine, load, watch.now_ns, -1, NULL);
	watch_ticks(&watch, 59 * S);
	ck_assert_uint_eq(watch.n, 0);
	watch_ticks(&watch, 2 * S);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_str_eq(watch.last_passed.series, "load");
}
END_TEST

START_TEST(a_span_without_a_usual_length_has_no_deadline)
{
	uint32_t load = loads(3, 5 * MS);
	triggers_engine_open(watch.engine, load, watch.now_ns, -1, NULL);
	watch_ticks(&watch, 4000 * S);
	ck_assert_uint_eq(watch.n, 0);
}
END_TEST

/* ---- restarts ---- */

/* The same whether it restarts at every second or never. */
static uint64_t stalls_of_a_day(int restarts)
{
	watch_end(&watch);
	setup();
	for (int i = 0; i < 3; i++) {
		for (int j = 0; j < 99; j++)
			watch_step(&watch, step, j, S);
		if (restarts)
			watch_restart(&watch);
		int64_t begin_ns = watch.now_ns;
		triggers_engine_open(watch.engine, step, begin_ns, 99, NULL);
		/* The last one, held back as the third at equal gaps, goes on for so long that it is told. */
		for (int j = 0; j < (i < 2 ? 90 : 200); j++) {
			watch_ticks(&watch, S);
			if (restarts)
				watch_restart(&watch);
		}
		struct triggers_sample sample = {
			.start_ns = begin_ns, .duration_ns = watch.now_ns - begin_ns, .step = 99, .sample = -1};
		triggers_engine_observe(watch.engine, step, &sample);
	}
	ck_assert_uint_eq(watch.over, 3);
	return watch.digest;
}

START_TEST(restarts_change_nothing)
{
	uint64_t whole = stalls_of_a_day(0);
	ck_assert_uint_eq(stalls_of_a_day(1), whole);
}
END_TEST

static void add(Suite *suite, const char *name, const TTest *test)
{
	TCase *tcase = tcase_create(name);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test);
	suite_add_tcase(suite, tcase);
}

int main(void)
{
	Suite *suite = suite_create("stall");
	add(suite, "t0 is the last progress", t0_is_the_last_progress);
	add(suite, "t0 without progress", without_progress_t0_is_the_begin);
	add(suite, "steps inside a phase", steps_inside_a_phase_are_judged);
	add(suite, "a phase inside a step inside a phase", a_phase_inside_a_step_inside_a_phase);
	add(suite, "one incident, over when the step ends", one_incident_a_stall);
	add(suite, "a begin that moves", a_begin_that_moves_is_the_same_step);
	add(suite, "suspicion", suspicion_begins_early_and_ends);
	add(suite, "short steps", hiccups_of_short_steps_are_none);
	add(suite, "first steps", first_steps_have_a_ceiling_only);
	add(suite, "phases excuse", a_phase_excuses_the_step_around_it);
	add(suite, "silent track", a_silent_track);
	add(suite, "clock steps back", the_clock_steps_back_an_hour);
	add(suite, "abandoned", abandoned_and_dead_are_not_stalled);
	add(suite, "a long stall does not blind", a_long_stall_does_not_blind);
	add(suite, "a stall long ago does not blind", a_stall_long_ago_and_another_do_not_blind);
	add(suite, "a slower level does not flood", a_slower_level_does_not_flood);
	add(suite, "never resumes", what_never_resumes_is_told_once);
	add(suite, "stopped and continued", a_stopped_job_resolves);
	add(suite, "held back by a capture", what_a_capture_held_back_is_told_later);
	add(suite, "held back by equal gaps", what_equal_gaps_held_back_is_told_later);
	add(suite, "after a compile", steps_after_a_compile_have_a_ceiling_only);
	add(suite, "a phase ends the suspicion", a_phase_ends_the_suspicion);
	add(suite, "t0 follows the clock", t0_follows_the_clock);
	add(suite, "waits for a phase of another rank", a_rank_that_waits_for_a_phase_of_another);
	add(suite, "does not wait for it", a_rank_that_does_not_wait);
	add(suite, "a phase around steps", a_phase_around_steps_excuses_nobody);
	add(suite, "a phase of nobody", a_phase_of_nobody_that_it_waits_for);
	add(suite, "open span, no steps", an_open_span_of_a_job_without_steps);
	add(suite, "noisy spans", noisy_spans_do_not_cry_wolf);
	add(suite, "span inside a step", a_span_inside_a_step_leaves_it_to_the_step);
	add(suite, "span inside a step after a compile", a_span_inside_a_step_after_a_compile);
	add(suite, "span between steps", a_span_between_steps);
	add(suite, "span without a usual length", a_span_without_a_usual_length_has_no_deadline);
	add(suite, "restarts", restarts_change_nothing);
	return test_run(suite);
}
