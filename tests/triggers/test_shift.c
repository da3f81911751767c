/* SPDX-License-Identifier: Apache-2.0 */
/* A lasting change of level: found soon, said once, and nothing else taken for one. */
#include <stdlib.h>

#include "watch.h"

static struct watch watch;
static uint32_t step;

static void setup(void)
{
	watch_begin(&watch);
	watch.only = "shift";
	step = watch_series(&watch, TRIGGERS_STEP, 0, "step");
}

static void teardown(void)
{
	watch_end(&watch);
}

/* Steps until it fires, -1 if it does not within `n`. */
static int steps_until(int n, int64_t length_ns)
{
	unsigned before = watch.n;
	for (int i = 0; i < n; i++) {
		watch_sample(&watch, step, watch_noise(length_ns), NULL);
		if (watch.n > before) {
			/* Or it joins the incident of the first slow steps. */
			ck_assert(watch.gate[before] == TRIGGERS_PASSED || watch.gate[before] == TRIGGERS_COALESCED);
			return i + 1;
		}
	}
	return -1;
}

static const struct {
	int percent, within;
} found[] = {{5, 32}, {10, 16}, {30, 12}, {100, 12}};

START_TEST(a_slower_level_is_said_once)
{
	watch_steady(&watch, step, 200, S);
	int64_t begin_ns = watch.now_ns;
	int after = steps_until(found[_i].within, S + found[_i].percent * S / 100);
	ck_assert_msg(after > 0, "+%d %% is not found in %d steps", found[_i].percent, found[_i].within);
	ck_assert_int_eq(watch.firing[0].severity, TRIGGERS_WARN);
	ck_assert_int_eq(watch.firing[0].quiet, 1);
	/* The onset, but for steps that noise put above the level right before. */
	ck_assert_int_le(llabs(watch.firing[0].t0_ns - begin_ns), 6 * S);
	watch_steady(&watch, step, 1000, S + found[_i].percent * S / 100);
	ck_assert_uint_eq(watch.n, 1);
}
END_TEST

START_TEST(each_of_two_is_said)
{
	watch_steady(&watch, step, 200, S);
	ck_assert_int_gt(steps_until(32, 106 * S / 100), 0);
	watch_steady(&watch, step, 200, 106 * S / 100);
	ck_assert_int_gt(steps_until(32, 113 * S / 100), 0);
	ck_assert_uint_eq(watch.n, 2);
}
END_TEST

START_TEST(back_to_the_old_level_is_no_shift)
{
	watch_steady(&watch, step, 200, S);
	ck_assert_int_gt(steps_until(32, 12 * S / 10), 0);
	watch_steady(&watch, step, 200, 12 * S / 10);
	watch_steady(&watch, step, 500, S);
	ck_assert_uint_eq(watch.n, 1);
}
END_TEST

/* Faster for a while, and as slow again as before: half a window of the running median is time enough. */
START_TEST(what_makes_it_slow_again_is_a_shift)
{
	static const int percent[] = {95, 90, 80};
	watch_steady(&watch, step, 200, S);
	watch_steady(&watch, step, 54, percent[_i] * S / 100);
	ck_assert_uint_eq(watch.n, 0);
	ck_assert_int_gt(steps_until(32, S), 0);
	ck_assert_double_eq_tol(watch.firing[0].expected, percent[_i] * 1e7, 1e7);
}
END_TEST

/* A few fast steps are no level to compare with. */
START_TEST(a_short_dip_is_no_shift)
{
	watch_steady(&watch, step, 200, S);
	for (int i = 0; i < 10; i++) {
		watch_steady(&watch, step, 12, 9 * S / 10);
		watch_steady(&watch, step, 60, S);
	}
	ck_assert_uint_eq(watch.n, 0);
}
END_TEST

START_TEST(noise_is_no_shift)
{
	watch_steady(&watch, step, 5000, S);
	ck_assert_uint_eq(watch.n, 0);
}
END_TEST

/* 2 % over a day is the weather. */
START_TEST(a_drift_is_no_shift)
{
	for (int i = 0; i < 4000; i++)
		watch_sample(&watch, step, watch_noise(S + i * S / 4000 * 2 / 100), NULL);
	ck_assert_uint_eq(watch.n, 0);
}
END_TEST

START_TEST(one_stall_is_no_shift)
{
	watch_steady(&watch, step, 200, S);
	for (int i = 0; i < 5; i++) {
		watch_sample(&watch, step, 50 * S, NULL);
		watch_steady(&watch, step, 10, S);
	}
	ck_assert_uint_eq(watch.n, 0);
	ck_assert_int_gt(steps_until(32, 11 * S / 10), 0); /* and blinds nothing */
}
END_TEST

START_TEST(a_cluster_is_no_shift)
{
	watch_steady(&watch, step, 200, S);
	for (int i = 0; i < 4; i++) {
		watch_steady(&watch, step, 5, 13 * S / 10);
		watch_steady(&watch, step, 40, S);
	}
	ck_assert_uint_eq(watch.n, 0);
}
END_TEST

/* Real jobs creep up by a tenth over their first fifty steps. */
START_TEST(a_job_that_warms_up_is_waited_for)
{
	for (int i = 0; i < 60; i++)
		watch_sample(&watch, step, watch_noise(9 * S / 10 + i * S / 600), NULL);
	watch_steady(&watch, step, 200, S);
	ck_assert_uint_eq(watch.n, 0);
	ck_assert_int_gt(steps_until(32, 106 * S / 100), 0);
}
END_TEST

START_TEST(two_levels_are_no_shift)
{
	for (int i = 0; i < 1000; i++)
		watch_sample(&watch, step, watch_noise(i % 4 == 3 ? 22 * S / 10 : S), NULL);
	ck_assert_uint_eq(watch.n, 0);
}
END_TEST

START_TEST(phases_between_add_nothing)
{
	uint32_t eval = watch_series(&watch, TRIGGERS_PHASE, 0, "phase:eval");
	for (int i = 0; i < 100; i++) {
		watch_steady(&watch, step, 6, S);
		watch_sample(&watch, eval, 3 * S, "eval");
		watch_sample(&watch, step, 14 * S / 10, NULL);
	}
	ck_assert_uint_eq(watch.n, 0);
}
END_TEST

START_TEST(hooks_are_told_where_asked)
{
	watch_set(&watch, "shift.alert", "true");
	watch_steady(&watch, step, 200, S);
	ck_assert_int_gt(steps_until(32, 11 * S / 10), 0);
	ck_assert_int_eq(watch.firing[0].quiet, 0);
}
END_TEST

START_TEST(goes_on_after_a_restart)
{
	struct watch other;
	watch_steady(&watch, step, 200, S);
	watch_steady(&watch, step, 4, 106 * S / 100); /* the evidence is half together */
	watch_begin(&other);
	other.only = "shift";
	watch_hand_over(watch.engine, other.engine);
	other.now_ns = watch.now_ns;
	for (int i = 0; i < 60; i++) {
		int64_t length = watch_noise(106 * S / 100);
		watch_sample(&watch, step, length, NULL);
		watch_sample(&other, step, length, NULL);
	}
	ck_assert_uint_eq(watch.n, 1);
	ck_assert_uint_eq(watch.digest, other.digest);
	watch_end(&other);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("shift");
	const struct {
		const char *name;
		const TTest *test;
		int count;
	} cases[] = {
		{"slower", a_slower_level_is_said_once, sizeof(found) / sizeof(found[0])},
		{"twice", each_of_two_is_said, 1},
		{"and back", back_to_the_old_level_is_no_shift, 1},
		{"slow again", what_makes_it_slow_again_is_a_shift, 3},
		{"a short dip", a_short_dip_is_no_shift, 1},
		{"noise", noise_is_no_shift, 1},
		{"drift", a_drift_is_no_shift, 1},
		{"stalls", one_stall_is_no_shift, 1},
		{"cluster", a_cluster_is_no_shift, 1},
		{"warming up", a_job_that_warms_up_is_waited_for, 1},
		{"bimodal steps", two_levels_are_no_shift, 1},
		{"phases", phases_between_add_nothing, 1},
		{"alert", hooks_are_told_where_asked, 1},
		{"restart", goes_on_after_a_restart, 1},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		TCase *tcase = tcase_create(cases[i].name);
		tcase_add_checked_fixture(tcase, setup, teardown);
		tcase_add_loop_test(tcase, cases[i].test, 0, cases[i].count);
		suite_add_tcase(suite, tcase);
	}
	return test_run(suite);
}
