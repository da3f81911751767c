/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "watch.h"

static struct watch watch;
static uint32_t step;

/* Firings of one trigger with one gate, of the first 256. */
static unsigned count_of(const char *trigger, enum triggers_gate gate)
{
	unsigned count = 0;
	for (unsigned i = 0; i < watch.n && i < WATCH_KEPT; i++)
		count += watch.gate[i] == gate && !strcmp(watch.firing[i].trigger, trigger);
	return count;
}

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
	watch_steady(&watch, step, 1, S);
	watch_sample(&watch, step, 2 * S, NULL);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_uint_eq(count_of("latency_spike", TRIGGERS_COOLDOWN), 1);
	watch_sample(&watch, step, 5 * S, NULL);
	ck_assert_uint_eq(watch.passed, 2);
	triggers_engine_settled(watch.engine, watch.now_ns);
	watch_steady(&watch, step, 75, S);
	watch_sample(&watch, step, 5 * S, NULL);
	ck_assert_uint_eq(watch.passed, 3);
}
END_TEST

/* How many steps after a slow one another as slow is an incident again. */
START_TEST(slow_steps_cool_by_steps)
{
	static const struct {
		int64_t step_ns;
		double slow;
		int held, passes;
	} of[] = {
		{500 * MS, 1.2, 16, 22}, /* 20 steps, less the slow ones' own length */
		{500 * MS, 1.35, 16, 22}, {500 * MS, 1.5, 2, 5},  /* 4 of them */
		{500 * MS, 2, 1, 5},      {10 * MS, 2, 190, 205}, /* 2 s at least */
		{20 * S, 1.2, 1, 3},                              /* never longer than the minute */
		{500 * MS, 4, 100, 125},                          /* critical: the whole minute */
	};
	int64_t step_ns = of[_i].step_ns, slow_ns = (int64_t)((double)step_ns * of[_i].slow);
	for (int passes = 0; passes < 2; passes++) {
		if (passes) {
			teardown();
			setup();
		}
		watch_steady(&watch, step, 60, step_ns);
		watch_sample(&watch, step, slow_ns, NULL);
		ck_assert_uint_eq(watch.passed, 1);
		triggers_engine_settled(watch.engine, watch.now_ns);
		watch_steady(&watch, step, passes ? of[_i].passes : of[_i].held, step_ns);
		watch_sample(&watch, step, slow_ns, NULL);
		ck_assert_uint_eq(watch.passed, passes ? 2 : 1);
	}
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

/* Slow steps that have spent what is theirs leave room for a shift, and shifts no more than leave to the others. */
START_TEST(shifts_have_a_budget_of_their_own)
{
	int64_t level_ns = S;
	watch_set(&watch, "gates.cooldown", "0 s");
	watch_steady(&watch, step, 60, S);
	for (int i = 0; i < 8; i++) {
		watch_sample(&watch, step, 1800 * MS, NULL);
		triggers_engine_settled(watch.engine, watch.now_ns);
		watch_steady(&watch, step, 21 + 4 * i, S);
	}
	ck_assert_uint_gt(watch.by_gate[TRIGGERS_BUDGET_HOUR], 0);
	ck_assert_uint_eq(count_of("shift", TRIGGERS_PASSED), 0);
	for (int i = 0; i < 5; i++) {
		level_ns = level_ns * 108 / 100;
		watch_steady(&watch, step, 80, level_ns);
		triggers_engine_settled(watch.engine, watch.now_ns);
	}
	ck_assert_uint_eq(count_of("shift", TRIGGERS_PASSED), 3);
	ck_assert_uint_eq(count_of("shift", TRIGGERS_BUDGET_HOUR), 2);
	watch_sample(&watch, step, 6 * S, NULL);
	ck_assert_int_eq(watch.last_passed.severity, TRIGGERS_CRITICAL);
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

/* Of 500 steps each hundredth takes 40 s; `restarts`: the daemon does before each of them. */

/* Where a slow step of 5 s (usually 1 s) begins, after the end of a capture of 1 s, and whether it is told
 * of. */
static const struct {
	int64_t begin_ns; /* after the capture's begin */
	unsigned passed;
} around_captures[] = {
	{-6500 * MS, 1}, {-5900 * MS, 0}, {-2 * S, 0}, {500 * MS, 0}, {2900 * MS, 0}, {3200 * MS, 1},
};

START_TEST(own_captures_from_one_step_before_to_two_after)
{
	watch_steady(&watch, step, 50, S);
	int64_t begin_ns = watch.now_ns;
	triggers_engine_capture(watch.engine, begin_ns - around_captures[_i].begin_ns,
				begin_ns - around_captures[_i].begin_ns + S);
	/* A restart in between forgets no capture. */
	watch_restart(&watch);
	watch_sample(&watch, step, 5 * S, NULL);
	ck_assert_uint_eq(watch.passed, around_captures[_i].passed);
	ck_assert_uint_eq(count_of("latency_spike", TRIGGERS_OWN_CAPTURE), 1 - around_captures[_i].passed);
}
END_TEST

/* Its begin is told first, then its end: the same one. What is asked for by hand is never held back. */
START_TEST(a_capture_under_way)
{
	watch_steady(&watch, step, 50, S);
	int64_t begin_ns = watch.now_ns;
	triggers_engine_capture(watch.engine, begin_ns, begin_ns + 3600 * S);
	watch_sample(&watch, step, 5 * S, NULL);
	triggers_engine_manual(watch.engine, 0, 0, watch.now_ns, watch.now_ns, "please");
	triggers_engine_settled(watch.engine, watch.now_ns);
	ck_assert_uint_eq(count_of("latency_spike", TRIGGERS_OWN_CAPTURE), 1);
	ck_assert_uint_eq(count_of("manual", TRIGGERS_PASSED), 1);
	triggers_engine_capture(watch.engine, begin_ns, watch.now_ns);
	watch_steady(&watch, step, 3, S);
	watch_sample(&watch, step, 5 * S, NULL);
	ck_assert_uint_eq(count_of("latency_spike", TRIGGERS_PASSED), 1);
	/* Only the last 16 are known. */
	begin_ns = watch.now_ns;
	for (int i = 0; i < 40; i++)
		triggers_engine_capture(watch.engine, begin_ns + i * 100 * S, begin_ns + i * 100 * S + S);
	triggers_engine_settled(watch.engine, watch.now_ns);
	watch.now_ns = begin_ns + 39 * 100 * S;
	watch_sample(&watch, step, 50 * S, NULL);
	ck_assert_uint_eq(count_of("latency_spike", TRIGGERS_OWN_CAPTURE), 2);
}
END_TEST

/* A step that a checkpoint of 40 s interrupts is no slow one, nor are the checkpoints; a slow one is. */
START_TEST(phases_have_lengths_of_their_own)
{
	uint32_t checkpoint = watch_series(&watch, TRIGGERS_PHASE, 0, "phase:checkpoint");
	watch_steady(&watch, step, 30, S);
	for (int i = 0; i < 8; i++) {
		int64_t begin_ns = watch.now_ns, wait_ns = watch_noise(40 * S);
		triggers_engine_open(watch.engine, step, begin_ns, i, NULL);
		watch.now_ns += 500 * MS;
		triggers_engine_open(watch.engine, checkpoint, watch.now_ns, -1, NULL);
		watch_sample(&watch, checkpoint, wait_ns, NULL);
		watch.now_ns = begin_ns;
		watch_sample(&watch, step, wait_ns + S, NULL);
		watch_steady(&watch, step, 10 + i, S);
	}
	ck_assert_uint_eq(watch.n, 0);
	/* Steps of another phase are held to their own usual length. */
	for (int i = 0; i < 20; i++)
		watch_sample(&watch, step, watch_noise(3 * S), "eval");
	ck_assert_uint_eq(watch.n, 0);
	watch_steady(&watch, step, 5, S);
	ck_assert_uint_eq(watch.n, 0);
	watch_sample(&watch, checkpoint, 130 * S, NULL);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_str_eq(watch.last_passed.series, "phase:checkpoint");
	triggers_engine_settled(watch.engine, watch.now_ns);
	watch.now_ns += 100 * S;
	watch_sample(&watch, step, 12 * S, "eval");
	ck_assert_uint_ge(watch.passed, 2);
	ck_assert_str_eq(watch.last_passed.phase, "eval");
}
END_TEST

/* A lasting change is learned: eight firings at most, and one incident. Back at the old level all is quiet.
 */
START_TEST(a_lasting_change_is_learned)
{
	watch_steady(&watch, step, 60, S);
	watch_steady(&watch, step, 100, 1800 * MS);
	ck_assert_uint_le(count_of("latency_spike", TRIGGERS_PASSED), 2);
	unsigned spikes = 0;
	for (unsigned i = 0; i < watch.n; i++)
		spikes += !strcmp(watch.firing[i].trigger, "latency_spike");
	ck_assert_uint_ge(spikes, 1);
	ck_assert_uint_le(spikes, 8);
	unsigned before = watch.n;
	watch_steady(&watch, step, 200, S);
	for (unsigned i = before; i < watch.n; i++)
		ck_assert_str_ne(watch.firing[i].trigger, "latency_spike");
}
END_TEST

START_TEST(notes_are_recorded)
{
	watch_set(&watch, "difference.floor", "900 %");
	watch_steady(&watch, step, 60, S);
	watch_sample(&watch, step, 1300 * MS, NULL);
	ck_assert_uint_eq(count_of("latency_spike", TRIGGERS_SILENCED), 1);
	ck_assert_int_eq(watch.firing[0].severity, TRIGGERS_NOTE);
	/* It is no incident, so it neither cools down nor is joined. */
	watch_sample(&watch, step, 5 * S, NULL);
	ck_assert_uint_eq(count_of("latency_spike", TRIGGERS_PASSED), 1);
}
END_TEST

/* Who asks gets an incident of his own, and what fires meanwhile joins it; another wish does, too. */
/* Two triggers find the same steps: the one that joined the other's incident opens none a little later,
 * either. */
START_TEST(what_joined_cools_down)
{
	watch_set(&watch, "threshold", "step > 3 s warn");
	watch_steady(&watch, step, 60, S);
	for (int i = 0; i < 3; i++) {
		watch_sample(&watch, step, 5 * S, NULL);
		triggers_engine_settled(watch.engine, watch.now_ns);
		watch_steady(&watch, step, 5, S);
	}
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_uint_eq(count_of("threshold", TRIGGERS_COALESCED), 1);
	ck_assert_uint_eq(count_of("threshold", TRIGGERS_COOLDOWN), 2);
	watch.now_ns += 100 * S;
	watch_sample(&watch, step, 5 * S, NULL);
	ck_assert_uint_eq(watch.passed, 2);
}
END_TEST

START_TEST(by_hand_and_coalescing)
{
	watch_steady(&watch, step, 60, S);
	watch_sample(&watch, step, 5 * S, NULL);
	triggers_engine_manual(watch.engine, 0, 0, watch.now_ns, watch.now_ns, "please");
	ck_assert_uint_eq(count_of("manual", TRIGGERS_PASSED), 1);
	triggers_engine_manual(watch.engine, 0, 0, watch.now_ns, watch.now_ns, "please");
	ck_assert_uint_eq(count_of("manual", TRIGGERS_COALESCED), 1);
	watch_steady(&watch, step, 5, S);
	watch_sample(&watch, step, 9 * S, NULL);
	ck_assert_uint_eq(count_of("latency_spike", TRIGGERS_COALESCED), 1);
	watch_restart(&watch);
	watch_steady(&watch, step, 5, S);
	watch_sample(&watch, step, 6 * S, NULL);
	ck_assert_uint_eq(count_of("latency_spike", TRIGGERS_COALESCED), 2);
	ck_assert_uint_eq(watch.passed, 2);
}
END_TEST

START_TEST(a_cooldown_outlives_a_restart)
{
	watch_steady(&watch, step, 60, S);
	watch_sample(&watch, step, 5 * S, NULL);
	triggers_engine_settled(watch.engine, watch.now_ns);
	watch_restart(&watch);
	watch_steady(&watch, step, 20, S);
	watch_sample(&watch, step, 5 * S, NULL);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_uint_eq(count_of("latency_spike", TRIGGERS_COOLDOWN), 1);
}
END_TEST

/* A rule that each source breaks once: as many warnings as wished, an hour apart or less. */
static void break_rule(uint32_t source, double value)
{
	uint32_t series = watch_series(&watch, TRIGGERS_COUNTER, source, "temp");
	struct triggers_sample sample = {.start_ns = watch.now_ns, .value = value, .step = -1, .sample = -1};
	triggers_engine_settled(watch.engine, watch.now_ns);
	triggers_engine_observe(watch.engine, series, &sample);
	watch.now_ns += S;
}

static void set_rules(void)
{
	watch_set(&watch, "gates.cooldown", "0 s");
	watch_set(&watch, "threshold", "temp > 85 warn");
	watch_set(&watch, "threshold", "temp > 100 critical");
}

/* Six warnings an hour, twelve in all; restarts forget neither, and what was held back has spent nothing. */
START_TEST(budgets_outlive_restarts)
{
	set_rules();
	for (uint32_t i = 1; i <= 20; i++) {
		break_rule(i, 90);
		watch_restart(&watch);
		set_rules();
	}
	ck_assert_uint_eq(watch.passed, 6);
	ck_assert_uint_eq(watch.by_gate[TRIGGERS_BUDGET_HOUR], 14);
	for (uint32_t i = 101; i <= 120; i++) {
		break_rule(i, 110);
		watch_restart(&watch);
		set_rules();
	}
	/* Each critical one breaks the rule of the warning as well, which joins or is held back. */
	unsigned critical = 0;
	for (unsigned i = 0; i < watch.n && i < WATCH_KEPT; i++)
		critical += watch.gate[i] == TRIGGERS_PASSED && watch.firing[i].severity == TRIGGERS_CRITICAL;
	ck_assert_uint_eq(critical, 6);
	ck_assert_uint_eq(watch.passed, 12);
	/* The next hour has a budget of its own, up to that of the day: 24 warnings and as many others. */
	for (int hour = 0; hour < 8; hour++) {
		watch.now_ns += 3600 * S;
		for (uint32_t i = 0; i < 8; i++)
			break_rule(1000 + (uint32_t)hour * 10 + i, 90);
		watch_restart(&watch);
		set_rules();
	}
	ck_assert_uint_eq(watch.passed, 12 + 18);
	ck_assert_uint_gt(watch.by_gate[TRIGGERS_BUDGET_DAY], 0);
}
END_TEST

/* What the first steps of a job are slow by, whatever has been learned before. */
START_TEST(first_steps_are_excused)
{
	watch_set(&watch, "gates.warmup_steps", "4");
	uint32_t other = watch_series(&watch, TRIGGERS_STEP, 5, "step");
	for (int i = 0; i < 3; i++)
		watch_sample(&watch, other, (30 - 10 * i) * S, NULL);
	ck_assert_uint_eq(watch.passed, 0);
	watch_steady(&watch, other, 10, S);
	watch_restart(&watch);
	watch_set(&watch, "gates.warmup_steps", "4");
	watch_sample(&watch, other, 9 * S, NULL);
	ck_assert_uint_eq(watch.passed, 1);
}
END_TEST

START_TEST(what_comes_every_100_steps_fades)
{
	static const enum triggers_severity wanted[5] = {TRIGGERS_CRITICAL, TRIGGERS_WARN, TRIGGERS_NOTE,
							 TRIGGERS_NOTE, TRIGGERS_NOTE};
	unsigned n = 0;
	watch_set(&watch, "gates.cooldown", "0 s");
	for (int i = 1; i <= 500; i++) {
		if (_i && i % 100 == 0)
			watch_restart(&watch);
		if (_i)
			watch_set(&watch, "gates.cooldown", "0 s");
		watch_sample(&watch, step, i % 100 ? watch_noise(S) : 40 * S, NULL);
	}
	for (unsigned i = 0; i < watch.n && i < WATCH_KEPT; i++)
		if (!strcmp(watch.firing[i].trigger, "latency_spike") && !watch.firing[i].shadow) {
			ck_assert_uint_lt(n, 5);
			ck_assert_int_eq(watch.firing[i].severity, wanted[n++]);
		}
	ck_assert_uint_eq(n, 5);
	ck_assert_uint_eq(count_of("latency_spike", TRIGGERS_PERIODIC), 3);
	ck_assert_uint_eq(watch.passed, 2);
}
END_TEST

/* Every 1,005th step stalls, and once another one is slow in between: it hides nothing. */
START_TEST(what_is_in_between_hides_no_period)
{
	static const enum triggers_severity wanted[3] = {TRIGGERS_CRITICAL, TRIGGERS_WARN, TRIGGERS_NOTE};
	unsigned n = 0;
	watch_set(&watch, "gates.cooldown", "0 s");
	for (int i = 1; i <= 3015; i++) {
		int64_t length_ns = i % 1005 == 0 ? (i == 1005 ? 50 : 6) * S
				    : i == 1157   ? 1650 * MS
						  : watch_noise(S);
		watch_sample(&watch, step, length_ns, NULL);
	}
	for (unsigned i = 0; i < watch.n && i < WATCH_KEPT; i++)
		if (!strcmp(watch.firing[i].trigger, "latency_spike") && watch.firing[i].value > 3e9) {
			ck_assert_uint_lt(n, 3);
			ck_assert_int_eq(watch.firing[i].severity, wanted[n++]);
		}
	ck_assert_uint_eq(n, 3);
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
	Suite *suite = suite_create("gates");
	add(suite, "warm-up", warmup_holds_back);
	add(suite, "compile", first_steps_after_a_compile_are_excused);
	add(suite, "cooldown", cooldown_yields_to_the_more_severe);
	add_loop(suite, "cooldown in steps", slow_steps_cool_by_steps, 7);
	add(suite, "coalescing", later_firings_join_while_it_waits);
	add(suite, "budget of an hour", budgets_keep_half_for_critical);
	add(suite, "budget of shifts", shifts_have_a_budget_of_their_own);
	add(suite, "budget of a day", budget_of_a_day);
	add(suite, "own capture", own_captures_never_fire);
	add_loop(suite, "own capture, margins", own_captures_from_one_step_before_to_two_after,
		 sizeof(around_captures) / sizeof(around_captures[0]));
	add(suite, "own capture, under way", a_capture_under_way);
	add(suite, "phases", phases_have_lengths_of_their_own);
	add(suite, "re-baseline", a_lasting_change_is_learned);
	add(suite, "severity", notes_are_recorded);
	add(suite, "joined and cooldown", what_joined_cools_down);
	add(suite, "by hand", by_hand_and_coalescing);
	add(suite, "cooldown over a restart", a_cooldown_outlives_a_restart);
	add(suite, "budgets over restarts", budgets_outlive_restarts);
	add(suite, "first steps", first_steps_are_excused);
	add_loop(suite, "periodic memory", what_comes_every_100_steps_fades, 2);
	add(suite, "period with another between", what_is_in_between_hides_no_period);
	add(suite, "storm", a_storm_is_one_incident);
	add(suite, "clock set back", a_clock_set_back_shuts_no_gate);
	return test_run(suite);
}
