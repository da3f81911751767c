/* SPDX-License-Identifier: Apache-2.0 */
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
	return test_run(suite);
}
