/* SPDX-License-Identifier: Apache-2.0 */
/* Save and restore: the same firings as if nothing had happened, and no harm from bad bytes. */
#include <errno.h>
#include <stdlib.h>

#include "watch.h"

enum { SOURCES = 3, STEPS = 600 };

static int64_t length_of(uint64_t n)
{
	uint64_t mixed = (n + 1) * 0x9e3779b97f4a7c15u;
	mixed ^= mixed >> 29;
	int64_t length = 990 * MS + (int64_t)(mixed % (20 * MS));
	return mixed % 97 == 0 ? 2 * length : mixed % 61 == 0 ? 12 * length : length;
}

/* Three ranks' steps with evals, spikes and stalls; a restart after every `every` steps, also inside one. */
static uint64_t history(struct watch *watch, int every)
{
	watch_begin(watch);
	watch_set(watch, "gates.cooldown", "60 s");
	for (int n = 0; n < STEPS; n++) {
		uint32_t source = (uint32_t)n % SOURCES;
		uint32_t step = watch_series(watch, TRIGGERS_STEP, source, "step");
		int64_t start_ns = watch->now_ns, length_ns = length_of((uint64_t)n);
		triggers_engine_open(watch->engine, step, start_ns, n, NULL);
		watch_ticks(watch, length_ns / 2);
		if (every && n % every == 0)
			watch_restart(watch);
		watch_ticks(watch, length_ns - length_ns / 2);
		struct triggers_sample sample = {.start_ns = start_ns, .duration_ns = length_ns, .step = n};
		triggers_engine_observe(watch->engine, step, &sample);
		if (n % 50 == 49)
			watch_sample(watch, watch_series(watch, TRIGGERS_PHASE, source, "phase:eval"), 10 * S,
				     "eval");
	}
	return watch->digest;
}

START_TEST(restarts_change_nothing)
{
	static struct watch whole, broken;
	uint64_t expected = history(&whole, 0);
	ck_assert_uint_gt(whole.passed, 3);
	ck_assert_uint_gt(whole.over, 0);
	ck_assert_uint_eq(history(&broken, 7), expected);
	ck_assert_uint_eq(broken.n, whole.n);
	watch_end(&whole);
	watch_end(&broken);
}
END_TEST

START_TEST(damaged_bytes_are_refused)
{
	static struct watch watch;
	size_t bytes;
	history(&watch, 0);
	uint8_t *state = watch_saved(watch.engine, &bytes);
	for (int i = 0; i < 200; i++) {
		struct triggers_engine *engine;
		size_t at = test_random_below(bytes);
		uint8_t bit = (uint8_t)(1u << test_random_below(8));
		assert_ok(triggers_engine_new(NULL, &engine));
		state[at] ^= bit;
		int result = triggers_engine_restore(engine, state, bytes);
		/* The reserved word is not covered. */
		ck_assert_msg(result < 0 || (at >= 20 && at < 24), "byte %zu flipped and taken", at);
		state[at] ^= bit;
		if (result < 0)
			ck_assert_uint_eq(triggers_engine_series_count(engine), 0);
		ck_assert_int_lt(triggers_engine_restore(engine, state, test_random_below(bytes)), 0);
		triggers_engine_free(engine);
	}
	free(state);
	watch_end(&watch);
}
END_TEST

START_TEST(series_are_bounded)
{
	static struct watch watch;
	watch_begin(&watch);
	uint32_t first = watch_series(&watch, TRIGGERS_SPAN, 0, "first");
	for (uint32_t i = 0; i < TRIGGERS_SERIES_MAX + 1000; i++) {
		struct triggers_series_key key = {
			.role = TRIGGERS_SPAN, .source = i, .name = "other", .alarms = 0};
		ck_assert_uint_ne(triggers_engine_series(watch.engine, &key), TRIGGERS_SERIES_NONE);
	}
	ck_assert_uint_eq(triggers_engine_series_count(watch.engine), TRIGGERS_SERIES_MAX);
	ck_assert_uint_eq(watch_series(&watch, TRIGGERS_SPAN, 0, "first"), first);
	watch_end(&watch);
}
END_TEST

START_TEST(wild_times_do_no_harm)
{
	static struct watch watch;
	const int64_t wild[] = {INT64_MIN, INT64_MAX, 0, -1, 1, INT64_MAX / 2, INT64_MIN / 2, 1700000000 * S};
	watch_begin(&watch);
	uint32_t series[5];
	for (int i = 0; i < 5; i++)
		series[i] = watch_series(&watch, (enum triggers_role)(i + 1), (uint32_t)i % 2, "any");
	for (int i = 0; i < 20000; i++) {
		int64_t a = wild[test_random_below(8)], b = wild[test_random_below(8)];
		uint32_t id = series[test_random_below(5)];
		struct triggers_sample sample = {.start_ns = a,
						 .duration_ns = b,
						 .value = (double)b,
						 .step = -1,
						 .phase = test_random_below(2) ? "eval" : NULL};
		switch (test_random_below(7)) {
		case 0:
			triggers_engine_observe(watch.engine, id, &sample);
			break;
		case 1:
			triggers_engine_open(watch.engine, id, a, b, NULL);
			break;
		case 2:
			triggers_engine_progress(watch.engine, id, a);
			break;
		case 3:
			triggers_engine_tick(watch.engine, a);
			break;
		case 4:
			triggers_engine_capture(watch.engine, a, b);
			break;
		case 5:
			triggers_engine_manual(watch.engine, 0, 0, a, b, NULL);
			break;
		default:
			triggers_engine_abandon(watch.engine, id);
		}
	}
	watch_restart(&watch);
	watch_end(&watch);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("state");
	TCase *restore = tcase_create("a restart changes no firing");
	tcase_set_timeout(restore, 60);
	tcase_add_test(restore, restarts_change_nothing);
	suite_add_tcase(suite, restore);
	TCase *damage = tcase_create("damaged state");
	tcase_set_timeout(damage, 60);
	tcase_add_test(damage, damaged_bytes_are_refused);
	suite_add_tcase(suite, damage);
	TCase *bounds = tcase_create("bounds");
	tcase_set_timeout(bounds, 60);
	tcase_add_test(bounds, series_are_bounded);
	tcase_add_test(bounds, wild_times_do_no_harm);
	suite_add_tcase(suite, bounds);
	return test_run(suite);
}
