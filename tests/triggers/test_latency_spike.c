/* SPDX-License-Identifier: Apache-2.0 */
#include "watch.h"

static struct watch watch;
static uint32_t step;

static void setup(void)
{
	watch_begin(&watch);
	watch.only = "latency_spike";
	step = watch_series(&watch, TRIGGERS_STEP, 0, "step");
}

static void teardown(void)
{
	watch_end(&watch);
}

START_TEST(critical_from_three_times)
{
	watch_steady(&watch, step, 50, S);
	int64_t begin_ns = watch.now_ns;
	watch_sample(&watch, step, 10 * S, NULL);
	ck_assert_uint_eq(watch.n, 1);
	ck_assert_int_eq(watch.gate[0], TRIGGERS_PASSED);
	ck_assert_int_eq(watch.firing[0].severity, TRIGGERS_CRITICAL);
	ck_assert_str_eq(watch.firing[0].trigger, "latency_spike");
	ck_assert_int_eq(watch.firing[0].t0_ns, begin_ns);
	ck_assert_int_eq(watch.firing[0].until_ns, begin_ns + 10 * S);
	ck_assert(watch.firing[0].ratio > 9.8 && watch.firing[0].ratio < 10.2);
}
END_TEST

/* A job with steps of 2 ms loses its core for 10 ms now and then. */
START_TEST(nobody_is_called_for_milliseconds)
{
	watch_steady(&watch, step, 50, 2 * MS);
	watch_sample(&watch, step, 12 * MS, NULL);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_int_eq(watch.firing[0].severity, TRIGGERS_WARN);
	watch_steady(&watch, step, 50, 2 * MS);
	watch_sample(&watch, step, 60 * MS, NULL);
	ck_assert_int_eq(watch.firing[1].severity, TRIGGERS_CRITICAL);
}
END_TEST

START_TEST(warn_from_one_and_a_half)
{
	watch_steady(&watch, step, 50, S);
	watch_sample(&watch, step, 17 * S / 10, NULL);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_int_eq(watch.firing[0].severity, TRIGGERS_WARN);
}
END_TEST

START_TEST(note_is_recorded_only)
{
	watch_steady(&watch, step, 50, S);
	watch_sample(&watch, step, 12 * S / 10, NULL);
	ck_assert_uint_eq(watch.n, 1);
	ck_assert_int_eq(watch.gate[0], TRIGGERS_SILENCED);
	ck_assert_int_eq(watch.firing[0].severity, TRIGGERS_NOTE);
	ck_assert_int_eq(watch.firing[0].shadow, 1);
}
END_TEST

START_TEST(below_the_floor_is_nothing)
{
	/* MAD is 0 on steps that are all alike: only the floor stands between noise and a flood. */
	for (int i = 0; i < 50; i++)
		watch_sample(&watch, step, S, NULL);
	for (int i = 0; i < 50; i++)
		watch_sample(&watch, step, i % 5 ? S : 109 * S / 100, NULL);
	ck_assert_uint_eq(watch.n, 0);
}
END_TEST

START_TEST(a_shift_does_not_latch)
{
	watch_steady(&watch, step, 100, S);
	for (int i = 0; i < 2000; i++)
		watch_sample(&watch, step, watch_noise(13 * S / 10), NULL);
	ck_assert_uint_le(watch.n, 8);
	unsigned before = watch.passed;
	watch_sample(&watch, step, 3 * S, NULL);
	ck_assert_msg(watch.passed == before + 1, "a spike above the new level is not seen");
}
END_TEST

START_TEST(a_ramp_warns_never)
{
	double length = 1e9;
	watch_steady(&watch, step, 100, S);
	for (int i = 0; i < 200; i++, length *= 1.002)
		watch_sample(&watch, step, (int64_t)length, NULL);
	for (int i = 0; i < 300; i++)
		watch_sample(&watch, step, watch_noise((int64_t)length), NULL);
	ck_assert_uint_eq(watch.passed, 0);
}
END_TEST

START_TEST(one_stall_neither_blinds_nor_floods)
{
	watch_steady(&watch, step, 100, S);
	watch_sample(&watch, step, 50 * S, NULL);
	watch_steady(&watch, step, 70, S);
	ck_assert_uint_eq(watch.n, 1);
	watch_sample(&watch, step, 2 * S, NULL);
	ck_assert_uint_eq(watch.passed, 2);
}
END_TEST

START_TEST(two_levels_are_no_news)
{
	for (int i = 0; i < 400; i++)
		watch_sample(&watch, step, watch_noise(i % 4 == 3 ? 4 * S : S), NULL);
	ck_assert_uint_eq(watch.passed, 0);
	watch_sample(&watch, step, 20 * S, NULL);
	ck_assert_uint_eq(watch.passed, 1);
}
END_TEST

START_TEST(first_step_after_a_phase_has_its_own_usual)
{
	uint32_t eval = watch_series(&watch, TRIGGERS_PHASE, 0, "phase:eval");
	unsigned fired_late = 0;
	for (int round = 0; round < 12; round++) {
		watch_steady(&watch, step, 30 + round, S);
		watch_sample(&watch, eval, watch_noise(20 * S), "eval");
		unsigned before = watch.passed;
		/* Of a table that rounds to milliseconds it may have begun before the other's end. */
		watch.now_ns -= _i * MS;
		watch_sample(&watch, step, watch_noise(2 * S), NULL);
		if (round >= 4)
			fired_late += watch.passed - before;
	}
	ck_assert_uint_eq(fired_late, 0);
}
END_TEST

START_TEST(phases_have_lengths_of_their_own)
{
	for (int i = 0; i < 40; i++) {
		watch_steady(&watch, step, 5, S);
		watch_sample(&watch, step, watch_noise(10 * S), "checkpoint");
	}
	ck_assert_uint_eq(watch.n, 0);
	watch_sample(&watch, step, 100 * S, "checkpoint");
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_str_eq(watch.firing[0].phase, "checkpoint");
	ck_assert_str_eq(watch.firing[0].series, "step");
	ck_assert_uint_eq(watch.firing[0].series_id, step);
	for (int i = 0; i < 20; i++)
		watch_sample(&watch, step, 600 * S, "compile");
	ck_assert_uint_eq(watch.n, 1);
}
END_TEST

START_TEST(a_span_must_stand_out_by_more)
{
	uint32_t span = watch_series(&watch, TRIGGERS_SPAN, 0, "load");
	watch_steady(&watch, span, 50, MS / 10);
	watch_sample(&watch, span, 2 * MS, NULL);
	ck_assert_uint_eq(watch.n, 0);
	watch_sample(&watch, span, 20 * MS, NULL);
	ck_assert_uint_eq(watch.passed, 1);
}
END_TEST

START_TEST(unnamed_series_never_fire)
{
	struct triggers_series_key key = {.role = TRIGGERS_SPAN, .name = "other", .alarms = 0};
	uint32_t span = triggers_engine_series(watch.engine, &key);
	watch_steady(&watch, span, 50, S);
	watch_sample(&watch, span, 100 * S, NULL);
	ck_assert_uint_eq(watch.n, 0);
	struct triggers_belief belief;
	assert_ok(triggers_engine_belief(watch.engine, span, &belief));
	ck_assert_uint_eq(belief.samples, 51);
	ck_assert(belief.median > 0.99e9 && belief.median < 1.01e9);
}
END_TEST

static void add_loop(Suite *suite, const char *name, const TTest *test, int count)
{
	TCase *tcase = tcase_create(name);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, test, 0, count);
	suite_add_tcase(suite, tcase);
}

static void add(Suite *suite, const char *name, const TTest *test)
{
	add_loop(suite, name, test, 1);
}

int main(void)
{
	Suite *suite = suite_create("latency_spike");
	add(suite, "critical from 3 x", critical_from_three_times);
	add(suite, "milliseconds", nobody_is_called_for_milliseconds);
	add(suite, "warn from 1.5 x", warn_from_one_and_a_half);
	add(suite, "notes are recorded only", note_is_recorded_only);
	add(suite, "MAD zero", below_the_floor_is_nothing);
	add(suite, "masking latch and shift", a_shift_does_not_latch);
	add(suite, "ramp", a_ramp_warns_never);
	add(suite, "contaminated window", one_stall_neither_blinds_nor_floods);
	add(suite, "bimodal steps", two_levels_are_no_news);
	add_loop(suite, "after a phase", first_step_after_a_phase_has_its_own_usual, 2);
	add(suite, "phases", phases_have_lengths_of_their_own);
	add(suite, "spans", a_span_must_stand_out_by_more);
	add(suite, "series without alarms", unnamed_series_never_fire);
	return test_run(suite);
}
