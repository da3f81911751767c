/* SPDX-License-Identifier: Apache-2.0 */
/* crash, manual and threshold, and the options that they and the others take. */
#include "watch.h"

static struct watch watch;

static void setup(void)
{
	watch_begin(&watch);
}

static void teardown(void)
{
	watch_end(&watch);
}

START_TEST(a_crash_is_a_note_with_an_incident)
{
	triggers_engine_crash(watch.engine, 3, 7, watch.now_ns - S, watch.now_ns, "rank 7 is gone");
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_int_eq(watch.firing[0].severity, TRIGGERS_NOTE);
	ck_assert_int_eq(watch.firing[0].shadow, 0);
	ck_assert_uint_eq(watch.firing[0].source, 3);
	ck_assert_uint_eq(watch.firing[0].rank, 7);
	ck_assert_int_eq(watch.firing[0].t0_ns, watch.now_ns - S);
	ck_assert_str_eq(watch.firing[0].evidence, "rank 7 is gone");
	for (uint32_t i = 10; i < 18; i++)
		triggers_engine_crash(watch.engine, i, i, watch.now_ns, watch.now_ns + 5 * S, NULL);
	ck_assert_uint_eq(watch.passed, 1);
	watch_set(&watch, "crash.severity", "critical");
	triggers_engine_crash(watch.engine, 4, 8, watch.now_ns, watch.now_ns + 40 * S, NULL);
	ck_assert_int_eq(watch.last_passed.severity, TRIGGERS_CRITICAL);
}
END_TEST

START_TEST(a_crash_ends_the_open_step)
{
	uint32_t step = watch_series(&watch, TRIGGERS_STEP, 3, "step");
	triggers_engine_open(watch.engine, step, watch.now_ns, 0, NULL);
	triggers_engine_crash(watch.engine, 3, 3, watch.now_ns, watch.now_ns, NULL);
	watch_ticks(&watch, 1900 * S);
	ck_assert_uint_eq(watch.n, 1);
	ck_assert_uint_eq(watch.over, 0);
}
END_TEST

START_TEST(by_hand_needs_no_cooldown)
{
	for (int i = 0; i < 3; i++) {
		triggers_engine_manual(watch.engine, 0, 0, watch.now_ns - 5 * S, watch.now_ns, "look");
		triggers_engine_manual(watch.engine, 0, 0, watch.now_ns, watch.now_ns, "again");
		triggers_engine_settled(watch.engine, watch.now_ns);
		watch.now_ns += S;
	}
	ck_assert_uint_eq(watch.passed, 3);
	ck_assert_uint_eq(watch.by_gate[TRIGGERS_COALESCED], 3);
	ck_assert_str_eq(watch.firing[0].evidence, "look");
}
END_TEST

START_TEST(a_limit_fires_once_until_it_is_kept)
{
	struct triggers_series_key key = {.role = TRIGGERS_COUNTER, .name = "device:0:temp", .alarms = 0};
	watch_set(&watch, "gates.cooldown", "0 s");
	watch_set(&watch, "threshold", "device:*:temp > 85 for 2 s critical");
	uint32_t series = triggers_engine_series(watch.engine, &key);
	const double value[] = {80, 90, 80, 90, 91, 92, 93, 94, 80, 90, 91, 92};
	for (size_t i = 0; i < sizeof(value) / sizeof(value[0]); i++) {
		struct triggers_sample sample = {.start_ns = watch.now_ns, .value = value[i], .step = -1};
		triggers_engine_observe(watch.engine, series, &sample);
		triggers_engine_settled(watch.engine, watch.now_ns);
		watch.now_ns += S;
	}
	ck_assert_uint_eq(watch.n, 2);
	ck_assert_int_eq(watch.firing[0].severity, TRIGGERS_CRITICAL);
	ck_assert_int_eq(watch.firing[0].t0_ns, 1003 * S);
	ck_assert_int_eq(watch.firing[0].detected_ns, 1005 * S);
}
END_TEST

START_TEST(a_limit_on_durations)
{
	uint32_t load = watch_series(&watch, TRIGGERS_SPAN, 0, "load");
	watch_set(&watch, "threshold", "load > 1.5 s");
	watch_sample(&watch, load, S, NULL);
	watch_sample(&watch, load, 2 * S, NULL);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_str_eq(watch.firing[0].trigger, "threshold");
	ck_assert_int_eq(watch.firing[0].severity, TRIGGERS_WARN);
}
END_TEST

static const struct {
	const char *key, *value;
	int good;
} settings[] = {
	{"stall.factor", "3", 1},
	{"stall.factor", "3 x", 1},
	{"stall.factor", "0.5", 0},
	{"stall.factor", "", 0},
	{"stall.factor", "nan", 0},
	{"stall.first_step_max", "30 min", 1},
	{"stall.first_step_max", "30min", 1},
	{"stall.first_step_max", "30 eons", 0},
	{"latency_spike.floor", "10 %", 1},
	{"latency_spike.window", "1000", 0},
	{"gates.cooldown", "0 s", 1},
	{"gates.per_hour", "1e9", 0},
	{"crash.severity", "warn", 1},
	{"crash.severity", "loud", 0},
	{"stall.facto", "3", 0},
	{"threshold", "load > 2 s for 10 s critical", 1},
	{"threshold", "load > 2s note", 1},
	{"threshold", "load", 0},
	{"threshold", "load >= 2", 0},
	{"threshold", "load > fast", 0},
	{"threshold", "load > 2 s loudly", 0},
	{"threshold", "load > 2 s warn now", 0},
	{"threshold", "", 1},
};

START_TEST(settings_are_checked)
{
	char error[200] = "";
	int result =
		triggers_engine_set(watch.engine, settings[_i].key, settings[_i].value, error, sizeof(error));
	ck_assert_msg((result == 0) == settings[_i].good, "%s = %s: %s", settings[_i].key, settings[_i].value,
		      error);
	ck_assert_msg(result == 0 || error[0], "%s = %s is refused without a word", settings[_i].key,
		      settings[_i].value);
}
END_TEST

START_TEST(defaults_lie_within_their_bounds)
{
	char error[200];
	for (const struct triggers_option *option = triggers_options(); option->key; option++) {
		int result =
			triggers_engine_set(watch.engine, option->key, option->value, error, sizeof(error));
		ck_assert_msg(result == 0, "%s", error);
		ck_assert(option->help && option->help[0]);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("signals");
	TCase *crash = tcase_create("crash");
	tcase_add_checked_fixture(crash, setup, teardown);
	tcase_add_test(crash, a_crash_is_a_note_with_an_incident);
	tcase_add_test(crash, a_crash_ends_the_open_step);
	suite_add_tcase(suite, crash);
	TCase *manual = tcase_create("manual");
	tcase_add_checked_fixture(manual, setup, teardown);
	tcase_add_test(manual, by_hand_needs_no_cooldown);
	suite_add_tcase(suite, manual);
	TCase *threshold = tcase_create("threshold");
	tcase_add_checked_fixture(threshold, setup, teardown);
	tcase_add_test(threshold, a_limit_fires_once_until_it_is_kept);
	tcase_add_test(threshold, a_limit_on_durations);
	suite_add_tcase(suite, threshold);
	TCase *options = tcase_create("options");
	tcase_add_checked_fixture(options, setup, teardown);
	tcase_add_loop_test(options, settings_are_checked, 0, sizeof(settings) / sizeof(settings[0]));
	tcase_add_test(options, defaults_lie_within_their_bounds);
	suite_add_tcase(suite, options);
	return test_run(suite);
}
