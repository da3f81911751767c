/* SPDX-License-Identifier: Apache-2.0 */
/* What a hostile or unlucky producer gives: names, times, values and numbers that are taken for something else. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "watch.h"

static struct triggers_belief belief_of(const struct watch *watch, uint32_t series)
{
	struct triggers_belief belief;
	assert_ok(triggers_engine_belief(watch->engine, series, &belief));
	return belief;
}

/* ---- no room ---- */

/* Tracks are open from their first event on, so that only the series in use could give way. */
START_TEST(a_full_table_takes_nothing_from_who_asks)
{
	static struct watch watch;
	watch_begin(&watch);
	uint32_t step = watch_series(&watch, TRIGGERS_STEP, 1, "step");
	for (uint32_t i = 1; i < TRIGGERS_SERIES_MAX; i++)
		triggers_engine_progress(watch.engine, watch_series(&watch, TRIGGERS_TRACK, 2 + i, "track"),
					 S);
	watch_sample(&watch, step, S, "eval"); /* no room for its child */
	ck_assert_uint_eq(belief_of(&watch, step).samples, 1);
	ck_assert_str_eq(belief_of(&watch, step).key.name, "step");
	watch_end(&watch);
}
END_TEST

START_TEST(what_is_open_in_a_phase_does_not_give_way)
{
	static struct watch watch;
	watch_begin(&watch);
	uint32_t step = watch_series(&watch, TRIGGERS_STEP, 1, "step");
	triggers_engine_open(watch.engine, step, watch.now_ns, 1, "eval");
	for (uint32_t i = 1; i < 2 * TRIGGERS_SERIES_MAX; i++)
		watch_series(&watch, TRIGGERS_SPAN, 2 + i, "load");
	ck_assert_uint_eq(watch_series(&watch, TRIGGERS_STEP, 1, "step"), step);
	watch_end(&watch);
}
END_TEST

/* ---- names ---- */

START_TEST(a_name_with_an_at_is_no_phase)
{
	static struct watch watch;
	watch_begin(&watch);
	uint32_t whole = watch_series(&watch, TRIGGERS_SPAN, 1, "load@eval");
	uint32_t load = watch_series(&watch, TRIGGERS_SPAN, 1, "load");
	for (int i = 0; i < 5; i++)
		watch_sample(&watch, whole, S, NULL);
	for (int i = 0; i < 3; i++)
		watch_sample(&watch, load, 9 * S, "eval");
	ck_assert_uint_eq(belief_of(&watch, whole).samples, 5);
	ck_assert_double_eq_tol(belief_of(&watch, whole).median, 1e9, 1e3);
	ck_assert_uint_eq(triggers_engine_series_count(watch.engine), 3);
	watch_end(&watch);
}
END_TEST

START_TEST(phases_that_begin_alike_are_two)
{
	static struct watch watch;
	static const char *const phases[] = {"validation_on_the_first_held_out_set",
					     "validation_on_the_first_held_in_set"};
	watch_begin(&watch);
	uint32_t step = watch_series(&watch, TRIGGERS_STEP, 1, "step");
	for (int i = 0; i < 80; i++)
		watch_sample(&watch, step, i % 8 == 7 ? 3 * S : S, phases[i % 8 == 7]);
	ck_assert_uint_eq(watch.n, 0);
	watch_restart(&watch);
	watch_sample(&watch, step, S, phases[0]);
	ck_assert_uint_eq(triggers_engine_series_count(watch.engine), 3);
	watch_end(&watch);
}
END_TEST

/* ---- numbers ---- */

START_TEST(ids_are_not_given_again_after_a_restart)
{
	static struct watch watch;
	watch_begin(&watch);
	uint32_t first = watch_series(&watch, TRIGGERS_STEP, 1, "step");
	watch_series(&watch, TRIGGERS_STEP, 2, "step");
	uint32_t last = watch_series(&watch, TRIGGERS_STEP, 3, "step");
	triggers_engine_source_end(watch.engine, 1);
	triggers_engine_source_end(watch.engine, 3);
	watch_restart(&watch);
	watch_restart(&watch);
	for (uint32_t source = 4; source < 8; source++) {
		uint32_t id = watch_series(&watch, TRIGGERS_STEP, source, "step");
		ck_assert_uint_ne(id, first);
		ck_assert_uint_ne(id, last);
	}
	watch_end(&watch);
}
END_TEST

/* ---- values ---- */

static void counter(struct watch *watch, uint32_t series, double value)
{
	struct triggers_sample sample = {.start_ns = watch->now_ns, .value = value, .step = -1, .sample = -1};
	triggers_engine_observe(watch->engine, series, &sample);
	watch->now_ns += S;
}

START_TEST(values_beyond_what_a_float_holds)
{
	static struct watch watch;
	static const double values[] = {1e300, -1e300, 4e38, 1e-300, -0.0, 1.7e308, 5e-324};
	watch_begin(&watch);
	watch_set(&watch, "threshold", "load > 0.00000000000000001");
	uint32_t load = watch_series(&watch, TRIGGERS_COUNTER, 1, "load");
	for (int i = 0; i < 70; i++)
		counter(&watch, load, values[i % 7]);
	ck_assert_uint_gt(watch.n, 1);
	for (unsigned i = 0; i < watch.n; i++)
		ck_assert(isfinite(watch.firing[i].value) && isfinite(watch.firing[i].ratio));
	ck_assert(isfinite(belief_of(&watch, load).median) && isfinite(belief_of(&watch, load).deviation));
	watch_restart(&watch);
	ck_assert_uint_eq(belief_of(&watch, load).samples, 70);
	watch_end(&watch);
}
END_TEST

/* ---- times ---- */

START_TEST(nothing_begins_after_it_was_found)
{
	static struct watch watch;
	watch_begin(&watch);
	triggers_engine_crash(watch.engine, 1, 1, watch.now_ns + 3600 * S, watch.now_ns, NULL);
	triggers_engine_manual(watch.engine, 1, 1, INT64_MAX, watch.now_ns, NULL);
	ck_assert_uint_eq(watch.n, 2);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(watch.firing[i].t0_ns, watch.now_ns);
	watch_end(&watch);
}
END_TEST

/* A producer whose times jump by months must not have a budget of its own each time. */
START_TEST(wrong_times_do_not_age_budgets)
{
	static struct watch watch;
	const int64_t wrong[] = {0, 1, 400LL * 86400 * S, 2 * S, INT64_MAX};
	watch_begin(&watch);
	watch_set(&watch, "gates.cooldown", "0 s");
	watch_set(&watch, "crash.severity", "critical");
	for (int i = 0; i < 600; i++) {
		watch.now_ns += S;
		triggers_engine_tick(watch.engine, watch.now_ns);
		triggers_engine_crash(watch.engine, 1, 1, 0, i % 2 ? wrong[i / 2 % 5] : watch.now_ns, NULL);
		triggers_engine_settled(watch.engine, watch.now_ns);
	}
	ck_assert_uint_eq(watch.passed, 12);
	/* An hour later there are some again. */
	for (int i = 0; i < 20; i++) {
		watch.now_ns += 300 * S;
		triggers_engine_tick(watch.engine, watch.now_ns);
		triggers_engine_crash(watch.engine, 1, 1, 0, watch.now_ns, NULL);
		triggers_engine_settled(watch.engine, watch.now_ns);
	}
	ck_assert_uint_gt(watch.passed, 20);
	ck_assert_uint_le(watch.passed, 24);
	watch_end(&watch);
}
END_TEST

START_TEST(a_limit_holds_on_after_the_clock_was_set_back)
{
	static struct watch watch;
	watch_begin(&watch);
	watch.now_ns = 100000 * S;
	watch_set(&watch, "threshold", "load > 1 for 10 s");
	uint32_t load = watch_series(&watch, TRIGGERS_COUNTER, 1, "load");
	for (int i = 0; i < 5; i++)
		counter(&watch, load, 2);
	watch.now_ns -= 3600 * S;
	for (int i = 0; i < 11; i++)
		counter(&watch, load, 2);
	ck_assert_uint_eq(watch.n, 1);
	ck_assert_int_le(watch.firing[0].t0_ns, watch.firing[0].detected_ns);
	watch_end(&watch);
}
END_TEST

/* A rank's phase that is told of once it is over excuses the silence of another's track: what was pinned is let go. */
START_TEST(a_suspicion_ends_that_a_phase_excuses_late)
{
	static struct watch watch;
	watch_begin(&watch);
	uint32_t track = watch_series(&watch, TRIGGERS_TRACK, 1, "track");
	uint32_t eval = watch_series(&watch, TRIGGERS_PHASE, 2, "phase:eval");
	for (int i = 0; i < 400; i++) {
		triggers_engine_progress(watch.engine, track, watch.now_ns);
		watch_ticks(&watch, 500 * MS);
	}
	watch_ticks(&watch, 700 * MS);
	ck_assert_uint_eq(watch.suspicions, 1);
	ck_assert_uint_eq(watch.suspicion_ends, 0);
	struct triggers_sample phase = {
		.start_ns = watch.now_ns - 1150 * MS, .duration_ns = 1150 * MS, .step = -1};
	triggers_engine_observe(watch.engine, eval, &phase);
	watch_ticks(&watch, 400 * MS); /* past the deadline that there was */
	ck_assert_uint_eq(watch.suspicion_ends, 1);
	ck_assert_uint_eq(watch.n, 0);
	watch_end(&watch);
}
END_TEST

/* ---- damaged state, with the right checksum ---- */

static uint32_t crc32_of(const uint8_t *bytes, size_t count)
{
	uint32_t crc = UINT32_MAX;
	for (size_t i = 0; i < count; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

/* A bit of everything, and some of it open. */
static void live(struct watch *watch, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		uint32_t step = watch_series(watch, TRIGGERS_STEP, 1, "step");
		triggers_engine_open(watch->engine, step, watch->now_ns, i, i % 7 == 6 ? "eval" : NULL);
		triggers_engine_progress(watch->engine, watch_series(watch, TRIGGERS_TRACK, 1, "track"),
					 watch->now_ns);
		triggers_engine_open(watch->engine, watch_series(watch, TRIGGERS_PHASE, 2, "phase:eval"),
				     watch->now_ns, -1, NULL);
		counter(watch, watch_series(watch, TRIGGERS_COUNTER, 1, "device:0:power"), i < 20 ? 300 : 5);
		for (uint32_t rank = 1; rank < 4; rank++) {
			struct triggers_series_key key = {.role = TRIGGERS_BUSY,
							  .source = rank,
							  .job = 7,
							  .name = "busy",
							  .group = "compute",
							  .alarms = 1};
			struct triggers_sample work = {.start_ns = watch->now_ns,
						       .step = i,
						       .duration_ns = rank == 3 ? 900 * MS : 300 * MS};
			triggers_engine_observe(watch->engine, triggers_engine_series(watch->engine, &key),
						&work);
		}
		struct triggers_sample sample = {.start_ns = watch->now_ns - S,
						 .duration_ns = i % 9 == 8 ? 2 * S : S,
						 .step = i,
						 .phase = i % 7 == 6 ? "eval" : NULL};
		triggers_engine_observe(watch->engine, step, &sample);
	}
	triggers_engine_capture(watch->engine, watch->now_ns, watch->now_ns + S);
	triggers_engine_open(watch->engine, watch_series(watch, TRIGGERS_STEP, 1, "step"), watch->now_ns,
			     rounds, NULL);
	watch_ticks(watch, 10 * S);
}

/* Restores what has `with` in eight bytes of it, and lives on. Whether it was taken. */
static int live_on_damaged(uint8_t *own, const uint8_t *state, size_t bytes, size_t at, uint64_t with)
{
	static struct watch broken;
	memcpy(own, state, bytes);
	memcpy(own + at, &with, 8);
	uint32_t crc = crc32_of(own + 24, bytes - 24);
	memcpy(own + 16, &crc, 4);
	watch_begin(&broken);
	broken.now_ns = 1040 * S;
	int result = triggers_engine_restore(broken.engine, own, bytes);
	ck_assert_msg(result == 0 || result == -EBADMSG, "at %zu: %d", at, result);
	if (result == 0)
		live(&broken, 4);
	watch_end(&broken);
	return result == 0;
}

/* Every eight bytes of it once "never", and once the largest number, a value that is none, or the like. */
START_TEST(damaged_state_stays_in_bounds)
{
	static struct watch watch;
	static const uint64_t damage[] = {INT64_MAX, UINT64_C(0x7fefffffffffffff), UINT64_MAX, 0,
					  UINT64_C(1) << 62};
	size_t bytes;
	watch_begin(&watch);
	live(&watch, 40);
	uint8_t *state = watch_saved(watch.engine, &bytes), *own = malloc(bytes);
	ck_assert_ptr_nonnull(own);
	int taken = 0;
	for (size_t at = 24 + (size_t)_i; at + 8 <= bytes; at += 25) {
		taken += live_on_damaged(own, state, bytes, at, UINT64_C(1) << 63);
		taken += live_on_damaged(own, state, bytes, at, damage[at / 25 % 5]);
	}
	ck_assert_int_gt(taken, 0);
	free(own);
	free(state);
	watch_end(&watch);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hostile");
	TCase *room = tcase_create("no room");
	tcase_set_timeout(room, 60);
	tcase_add_test(room, a_full_table_takes_nothing_from_who_asks);
	tcase_add_test(room, what_is_open_in_a_phase_does_not_give_way);
	suite_add_tcase(suite, room);
	TCase *names = tcase_create("names");
	tcase_add_test(names, a_name_with_an_at_is_no_phase);
	tcase_add_test(names, phases_that_begin_alike_are_two);
	suite_add_tcase(suite, names);
	TCase *numbers = tcase_create("numbers");
	tcase_add_test(numbers, ids_are_not_given_again_after_a_restart);
	suite_add_tcase(suite, numbers);
	TCase *values = tcase_create("values");
	tcase_add_test(values, values_beyond_what_a_float_holds);
	suite_add_tcase(suite, values);
	TCase *times = tcase_create("times");
	tcase_add_test(times, nothing_begins_after_it_was_found);
	tcase_add_test(times, wrong_times_do_not_age_budgets);
	tcase_add_test(times, a_limit_holds_on_after_the_clock_was_set_back);
	tcase_add_test(times, a_suspicion_ends_that_a_phase_excuses_late);
	suite_add_tcase(suite, times);
	TCase *damage = tcase_create("damaged state");
	tcase_set_timeout(damage, 60);
	tcase_add_loop_test(damage, damaged_state_stays_in_bounds, 0, 25);
	suite_add_tcase(suite, damage);
	return test_run(suite);
}
