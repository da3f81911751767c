/* SPDX-License-Identifier: Apache-2.0 */
/* The ceiling over the steps: what the orders do, and the ways in which such a ceiling fails. */
#include <stdlib.h>

#include "watch.h"

static struct watch watch;
static uint32_t step;

static void setup(void)
{
	watch_begin(&watch);
	watch.only = "difference";
	step = watch_series(&watch, TRIGGERS_STEP, 0, "step");
}

static void teardown(void)
{
	watch_end(&watch);
}

static double line_now(void)
{
	struct triggers_belief belief;
	assert_ok(triggers_engine_belief(watch.engine, step, &belief));
	return belief.line;
}

static double ceiling_now(void)
{
	struct triggers_belief belief;
	assert_ok(triggers_engine_belief(watch.engine, step, &belief));
	return belief.line_ceiling;
}

/* Order 1 on a ramp: the line is the next value, to the ns, in every place of a block. */
START_TEST(a_line_goes_on_exactly)
{
	int64_t value = S;
	watch_steady(&watch, step, 3, S); /* the grace after a start */
	for (int i = 0; i < 400; i++, value += 1000) {
		if (i >= 64)
			ck_assert_msg(line_now() == (double)value, "step %d: %f, not %lld", i, line_now(),
				      (long long)value);
		watch_sample(&watch, step, value, NULL);
	}
}
END_TEST

/* Medians that are polynomials of degree k - 1 … k: order k extrapolates its own degree exactly. */
START_TEST(order_k_goes_on_with_degree_k)
{
	enum { BLOCK = 5, BLOCKS = 12 };
	char order[2] = {(char)('0' + _i), 0};
	watch_set(&watch, "difference.block", "5");
	watch_set(&watch, "difference.order", order);
	watch_steady(&watch, step, 3, S);
	for (int64_t j = 0; j < BLOCKS; j++) {
		int64_t median = S;
		for (int64_t k = 0, power = 1000; k < _i; k++)
			median += power *= j; /* 1000 j, + 1000 j^2, + 1000 j^3 */
		for (int i = 0; i < BLOCK; i++) {
			/* The middle of the next block is one block after the middle of the last. */
			if (i == BLOCK / 2 && j > _i + 2)
				ck_assert_msg(line_now() == (double)median, "block %lld: %f, not %lld", (long long)j,
					      line_now(), (long long)median);
			watch_sample(&watch, step, median, NULL);
		}
	}
}
END_TEST

/* A raw difference of order 2 alarms once more two steps after every outlier. */
START_TEST(an_outlier_has_no_echo)
{
	char order[2] = {(char)('0' + _i), 0};
	watch_set(&watch, "difference.order", order);
	watch_steady(&watch, step, 100, S);
	watch_sample(&watch, step, 3 * S, NULL);
	ck_assert_uint_eq(watch.n, 1);
	watch_steady(&watch, step, 100, S);
	ck_assert_uint_eq(watch.n, 1);
}
END_TEST

START_TEST(one_odd_block_is_no_trend)
{
	watch_steady(&watch, step, 3 + 80, S);
	for (int i = 0; i < 16; i++)
		watch_sample(&watch, step, 105 * S / 100, NULL);
	double line = line_now();
	ck_assert_msg(line < 1.06e9, "the line runs away to %f", line);
	watch_steady(&watch, step, 16, S);
	ck_assert_msg(line_now() > 0.99e9 && line_now() < 1.06e9, "the line runs away to %f", line_now());
	ck_assert_uint_eq(watch.n, 0);
}
END_TEST

START_TEST(a_small_excess_warns)
{
	watch_steady(&watch, step, 100, S);
	int64_t begin_ns = watch.now_ns;
	watch_sample(&watch, step, 115 * S / 100, NULL);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_int_eq(watch.firing[0].severity, TRIGGERS_WARN);
	ck_assert_int_eq(watch.firing[0].t0_ns, begin_ns);
	ck_assert(watch.firing[0].ratio > 1.14 && watch.firing[0].ratio < 1.16);
	watch_steady(&watch, step, 100, S);
	watch_sample(&watch, step, 110 * S / 100, NULL);
	ck_assert_uint_eq(watch.n, 1);
}
END_TEST

START_TEST(equal_steps_have_a_floor)
{
	for (int i = 0; i < 100; i++)
		watch_sample(&watch, step, S, NULL);
	ck_assert(ceiling_now() == 1.125e9);
	for (int i = 0; i < 100; i++)
		watch_sample(&watch, step, i % 5 ? S : 111 * S / 100, NULL);
	ck_assert_uint_eq(watch.n, 0);
}
END_TEST

/* A median over 128 values lags behind a ramp and alarms at its end; the line does not. */
START_TEST(a_ramp_is_followed)
{
	double length = 1e9;
	watch_steady(&watch, step, 100, S);
	for (int i = 0; i < 400; i++, length *= 1.002)
		watch_sample(&watch, step, watch_noise((int64_t)length), NULL);
	for (int i = 0; i < 200; i++)
		watch_sample(&watch, step, watch_noise((int64_t)length), NULL);
	ck_assert_uint_eq(watch.n, 0);
}
END_TEST

START_TEST(a_new_level_does_not_latch)
{
	watch_steady(&watch, step, 100, S);
	watch_steady(&watch, step, 500, 13 * S / 10);
	ck_assert_uint_le(watch.n, 8);
	ck_assert_uint_eq(watch.passed, 1);
	watch_sample(&watch, step, 16 * S / 10, NULL);
	ck_assert_uint_eq(watch.passed, 2);
}
END_TEST

/* A line that follows a job that gets faster, and overshoots: what takes as long as expected is no news. */
START_TEST(the_ceiling_stays_above_the_line)
{
	watch_steady(&watch, step, 100, 13 * S / 10);
	for (int i = 0; i < 200; i++) {
		watch_sample(&watch, step, (i < 48 ? 13 * S / 10 - i * S / 160 : S) + (i % 2) * S / 100, NULL);
		ck_assert_msg(ceiling_now() > 1.12 * line_now(), "step %d: a ceiling of %f above %f", i,
			      ceiling_now(), line_now());
	}
	ck_assert_uint_eq(watch.n, 0);
}
END_TEST

/* The 51 s stall that sits in the first values of real jobs. */
START_TEST(a_stall_in_the_first_block_blinds_nothing)
{
	watch_steady(&watch, step, 8, S);
	watch_sample(&watch, step, 51 * S, NULL);
	watch_steady(&watch, step, 60, S);
	ck_assert(ceiling_now() < 1.2e9);
	watch_sample(&watch, step, 12 * S / 10, NULL);
	ck_assert_uint_eq(watch.passed, 1);
}
END_TEST

START_TEST(two_levels_are_no_news)
{
	for (int i = 0; i < 400; i++)
		watch_sample(&watch, step, watch_noise(i % 4 == 3 ? 22 * S / 10 : S), NULL);
	ck_assert_uint_eq(watch.n, 0);
	watch_sample(&watch, step, 4 * S, NULL);
	ck_assert_uint_eq(watch.n, 1);
}
END_TEST

/* Small slow steps at any time are a job's nature: said three times, then only what is worse. */
START_TEST(a_noisy_job_is_not_cried_over)
{
	watch_set(&watch, "gates.per_hour", "1000");
	watch_set(&watch, "gates.per_day", "1000");
	watch_steady(&watch, step, 100, S);
	for (int i = 0; i < 20; i++) {
		watch_steady(&watch, step, 20 + (int)test_random_below(30), S);
		watch_sample(&watch, step, 118 * S / 100 + (int64_t)test_random_below(20) * MS, NULL);
	}
	ck_assert_uint_le(watch.n, 8);
	watch_steady(&watch, step, 40, S); /* no incident waits any more */
	unsigned before = watch.passed;
	watch_sample(&watch, step, 13 * S / 10, NULL);
	ck_assert_uint_eq(watch.passed, before + 1);
}
END_TEST

START_TEST(other_phases_have_no_ceiling)
{
	for (int i = 0; i < 200; i++)
		watch_sample(&watch, step, watch_noise(S), "eval");
	watch_sample(&watch, step, 14 * S / 10, "eval");
	ck_assert_uint_eq(watch.n, 0);
}
END_TEST

START_TEST(the_first_step_after_a_phase_may_be_slow)
{
	uint32_t eval = watch_series(&watch, TRIGGERS_PHASE, 0, "phase:eval");
	watch_steady(&watch, step, 100, S);
	watch_sample(&watch, eval, 20 * S, "eval");
	watch_sample(&watch, step, 14 * S / 10, NULL); /* nothing is known yet: half as long again */
	ck_assert_uint_eq(watch.n, 0);
	watch_steady(&watch, step, 50, S);
	watch_sample(&watch, eval, 20 * S, "eval");
	watch_sample(&watch, step, 14 * S / 10, NULL); /* as the one before */
	ck_assert_uint_eq(watch.n, 0);
	watch_steady(&watch, step, 50, S);
	watch_sample(&watch, eval, 20 * S, "eval");
	watch_sample(&watch, step, 17 * S / 10, NULL);
	ck_assert_uint_eq(watch.passed, 1);
}
END_TEST

START_TEST(times_beyond_reason_are_bounded)
{
	watch_set(&watch, "difference.order", "3");
	for (int i = 0; i < 300; i++) {
		struct triggers_sample sample = {
			.start_ns = INT64_MIN / 4, .step = -1, .sample = -1,
			.duration_ns = test_random_below(3) ? INT64_MAX / 2 : (int64_t)test_random_below(2 * (uint64_t)S)};
		triggers_engine_observe(watch.engine, step, &sample);
	}
	ck_assert(line_now() >= 0 && line_now() < 1e17);
}
END_TEST

/* Saved at any place of a block, restored, and gone on: the same. */
START_TEST(goes_on_after_a_restart)
{
	struct watch other;
	watch_steady(&watch, step, 61, S);
	watch_begin(&other);
	other.only = "difference";
	watch_hand_over(watch.engine, other.engine);
	other.now_ns = watch.now_ns;
	other.digest = watch.digest;
	for (int i = 0; i < 200; i++) {
		int64_t length = test_random_below(10) ? watch_noise(S) : watch_noise(13 * S / 10);
		watch_sample(&watch, step, length, NULL);
		watch_sample(&other, step, length, NULL);
	}
	ck_assert_uint_gt(watch.n, 0);
	ck_assert_uint_eq(watch.digest, other.digest);
	watch_end(&other);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("difference");
	const struct {
		const char *name;
		const TTest *test;
		int from, to;
	} cases[] = {
		{"line", a_line_goes_on_exactly, 0, 1},
		{"orders", order_k_goes_on_with_degree_k, 0, 4},
		{"echo", an_outlier_has_no_echo, 0, 4},
		{"odd block", one_odd_block_is_no_trend, 0, 1},
		{"small excess", a_small_excess_warns, 0, 1},
		{"MAD of zero", equal_steps_have_a_floor, 0, 1},
		{"ramp", a_ramp_is_followed, 0, 1},
		{"new level", a_new_level_does_not_latch, 0, 1},
		{"above the line", the_ceiling_stays_above_the_line, 0, 1},
		{"contaminated calibration", a_stall_in_the_first_block_blinds_nothing, 0, 1},
		{"bimodal steps", two_levels_are_no_news, 0, 1},
		{"noisy job", a_noisy_job_is_not_cried_over, 0, 1},
		{"other phases", other_phases_have_no_ceiling, 0, 1},
		{"after a phase", the_first_step_after_a_phase_may_be_slow, 0, 1},
		{"bounds", times_beyond_reason_are_bounded, 0, 1},
		{"restart", goes_on_after_a_restart, 0, 1},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		TCase *tcase = tcase_create(cases[i].name);
		tcase_add_checked_fixture(tcase, setup, teardown);
		tcase_add_loop_test(tcase, cases[i].test, cases[i].from, cases[i].to);
		suite_add_tcase(suite, tcase);
	}
	return test_run(suite);
}
