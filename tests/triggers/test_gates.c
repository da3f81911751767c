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

START_TEST(warmup_holds_back)
{
	watch_steady(&watch, step, 10, S);
	watch_sample(&watch, step, 9 * S, NULL);
	ck_assert_uint_eq(watch.passed, 0);
	ck_assert_uint_eq(watch.by_gate[TRIGGERS_WARMUP], 1);
}
END_TEST

START_TEST(first_steps_after_a_compile_are_excused)
{
	watch_steady(&watch, step, 50, S);
	watch_sample(&watch, step, 100 * S, "compile");
	for (int i = 0; i < 3; i++)
		watch_sample(&watch, step, 9 * S, NULL);
	ck_assert_uint_eq(watch.passed, 0);
	watch_steady(&watch, step, 3, S);
	watch_sample(&watch, step, 9 * S, NULL);
	ck_assert_uint_eq(watch.passed, 1);
}
END_TEST

START_TEST(cooldown_yields_to_the_more_severe)
{
	watch_steady(&watch, step, 53, S);
	watch_sample(&watch, step, 2 * S, NULL);
	triggers_engine_settled(watch.engine, watch.now_ns);
	watch_steady(&watch, step, 11, S);
	watch_sample(&watch, step, 2 * S, NULL);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_uint_eq(watch.by_gate[TRIGGERS_COOLDOWN], 1);
	watch_sample(&watch, step, 5 * S, NULL);
	ck_assert_uint_eq(watch.passed, 2);
	triggers_engine_settled(watch.engine, watch.now_ns);
	watch_steady(&watch, step, 75, S);
	watch_sample(&watch, step, 5 * S, NULL);
	ck_assert_uint_eq(watch.passed, 3);
}
END_TEST

START_TEST(later_firings_join_while_it_waits)
{
	uint32_t load = watch_series(&watch, TRIGGERS_SPAN, 0, "load");
	watch_steady(&watch, step, 50, S);
	watch_steady(&watch, load, 50, S);
	watch_sample(&watch, step, 5 * S, NULL);
	watch_sample(&watch, load, 5 * S, NULL);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_uint_eq(watch.by_gate[TRIGGERS_COALESCED], 1);
	/* Nobody says that it is settled: it does not take in for ever. */
	watch.now_ns += 100 * S;
	watch_sample(&watch, load, 5 * S, NULL);
	ck_assert_uint_eq(watch.passed, 2);
}
END_TEST

START_TEST(budgets_keep_half_for_critical)
{
	watch_set(&watch, "gates.cooldown", "0 s");
	watch_set(&watch, "gates.per_hour", "6");
	watch_set(&watch, "gates.warmup_steps", "4");
	for (uint32_t source = 1; source <= 12; source++) {
		uint32_t series = watch_series(&watch, TRIGGERS_STEP, source, "step");
		watch_steady(&watch, series, 12, S);
		triggers_engine_settled(watch.engine, watch.now_ns);
		watch_sample(&watch, series, source <= 6 ? 2 * S : 5 * S, NULL);
	}
	ck_assert_uint_eq(watch.passed, 6);
	ck_assert_uint_eq(watch.by_gate[TRIGGERS_BUDGET_HOUR], 6);
	unsigned critical = 0;
	for (unsigned i = 0; i < watch.n; i++)
		critical += watch.gate[i] == TRIGGERS_PASSED && watch.firing[i].severity == TRIGGERS_CRITICAL;
	ck_assert_uint_eq(critical, 3);
}
END_TEST

START_TEST(budget_of_a_day)
{
	watch_set(&watch, "gates.per_day", "3");
	for (int i = 0; i < 10; i++) {
		triggers_engine_settled(watch.engine, watch.now_ns);
		triggers_engine_manual(watch.engine, 0, 0, watch.now_ns, watch.now_ns, "please");
		watch.now_ns += 7200 * S;
	}
	ck_assert_uint_eq(watch.passed, 3);
	ck_assert_uint_eq(watch.by_gate[TRIGGERS_BUDGET_DAY], 7);
	watch.now_ns += 86400 * S;
	triggers_engine_manual(watch.engine, 0, 0, watch.now_ns, watch.now_ns, "please");
	ck_assert_uint_eq(watch.passed, 4);
}
END_TEST

START_TEST(own_captures_never_fire)
{
	watch_steady(&watch, step, 50, S);
	triggers_engine_capture(watch.engine, watch.now_ns + 500 * MS, watch.now_ns + 2 * S);
	watch_sample(&watch, step, 5 * S, NULL);
	ck_assert_uint_eq(watch.passed, 0);
	ck_assert_uint_eq(watch.by_gate[TRIGGERS_OWN_CAPTURE], 1);
	watch_steady(&watch, step, 10, S);
	watch_sample(&watch, step, 5 * S, NULL);
	ck_assert_uint_eq(watch.passed, 1);
}
END_TEST

START_TEST(what_comes_every_100_steps_fades)
{
	enum triggers_severity seen[8];
	unsigned n = 0;
	watch_set(&watch, "gates.cooldown", "0 s");
	for (int i = 1; i <= 500; i++) {
		unsigned before = watch.n;
		watch_sample(&watch, step, i % 100 ? watch_noise(S) : 40 * S, NULL);
		if (watch.n > before)
			seen[n++] = watch.firing[before].severity;
	}
	ck_assert_uint_eq(n, 5);
	ck_assert_int_eq(seen[0], TRIGGERS_CRITICAL);
	ck_assert_int_eq(seen[1], TRIGGERS_WARN);
	ck_assert_uint_eq(watch.passed, 2);
	ck_assert_uint_eq(watch.by_gate[TRIGGERS_PERIODIC], 3);
}
END_TEST

START_TEST(a_storm_is_one_incident)
{
	enum { MANY = 10000 };
	static uint32_t series[MANY];
	for (uint32_t i = 0; i < MANY; i++) {
		char name[32];
		snprintf(name, sizeof(name), "span %u", i);
		series[i] = watch_series(&watch, TRIGGERS_SPAN, 1, name);
	}
	for (int n = 0; n < 20; n++)
		for (int i = 0; i < MANY; i++) {
			struct triggers_sample sample = {
				.start_ns = watch.now_ns, .duration_ns = 100 * MS, .step = -1};
			triggers_engine_observe(watch.engine, series[i], &sample);
		}
	for (int i = 0; i < MANY; i++) {
		struct triggers_sample sample = {
			.start_ns = watch.now_ns + i * 100000, .duration_ns = S, .step = -1};
		triggers_engine_observe(watch.engine, series[i], &sample);
	}
	ck_assert_uint_eq(watch.n, MANY);
	ck_assert_uint_eq(watch.passed, 1);
}
END_TEST

START_TEST(a_clock_set_back_shuts_no_gate)
{
	watch_steady(&watch, step, 53, S);
	watch_sample(&watch, step, 5 * S, NULL);
	triggers_engine_settled(watch.engine, watch.now_ns);
	watch.now_ns -= 900 * S;
	watch_steady(&watch, step, 90, S);
	/* The cooldown counts from now on, not from an hour that has yet to come. */
	watch_sample(&watch, step, 5 * S, NULL);
	watch_steady(&watch, step, 75, S);
	watch_sample(&watch, step, 5 * S, NULL);
	ck_assert_uint_eq(watch.passed, 2);
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
	Suite *suite = suite_create("gates");
	add(suite, "warm-up", warmup_holds_back);
	add(suite, "compile", first_steps_after_a_compile_are_excused);
	add(suite, "cooldown", cooldown_yields_to_the_more_severe);
	add(suite, "coalescing", later_firings_join_while_it_waits);
	add(suite, "budget of an hour", budgets_keep_half_for_critical);
	add(suite, "budget of a day", budget_of_a_day);
	add(suite, "own capture", own_captures_never_fire);
	add(suite, "periodic memory", what_comes_every_100_steps_fades);
	add(suite, "storm", a_storm_is_one_incident);
	add(suite, "clock set back", a_clock_set_back_shuts_no_gate);
	return test_run(suite);
}
