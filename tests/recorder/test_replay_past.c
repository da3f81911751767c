/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of the day before an incident, out of the macro view: exact, or not at all. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <reducer/tiers.h>

#include "replay_past.h"
#include "support.h"

#define SECOND_NS INT64_C(1000000000)
#define BASE_NS   (INT64_C(1700000000) * SECOND_NS)

static const char *store;

static void set_up(void)
{
	store = test_folder();
}

static struct reducer_text text(const char *data)
{
	return (struct reducer_text){.data = data, .bytes = strlen(data)};
}

/* No period, and no more than the budget of an hour. */
static bool is_slow(unsigned step)
{
	static const unsigned slow[] = {300, 811, 1402, 2500, 3003, 4444};
	for (unsigned i = 0; i < sizeof(slow) / sizeof(slow[0]); i++)
		if (slow[i] == step)
			return true;
	return false;
}

/* `count` steps back to back, of which a few take 1.8 times as long; returns when the last one ended. */
static int64_t write_steps(int64_t step_ns, unsigned count, const char *key)
{
	struct reducer_tiers_options options;
	struct reducer_tiers *tiers;
	uint32_t track, row;
	int64_t now_ns = BASE_NS;
	reducer_tiers_defaults(&options);
	assert_ok(reducer_tiers_open(test_path(store, "macro.tiers"), &options, now_ns, &tiers));
	assert_ok(reducer_tiers_track(tiers, text("ring-1"), text(key), text("label"), &track));
	assert_ok(reducer_tiers_row(tiers, track, REDUCER_ROW_COUNTER, 0, &row));
	for (unsigned i = 0; i < count; i++) {
		int64_t length_ns = is_slow(i) ? step_ns * 18 / 10 : step_ns + (int64_t)(i % 7) * 1000000;
		now_ns += length_ns;
		reducer_tiers_tick(tiers, now_ns);
		assert_ok(reducer_tiers_counter(tiers, row, now_ns, (double)length_ns));
	}
	assert_ok(reducer_tiers_commit(tiers, now_ns, NULL, 0, false));
	reducer_tiers_free(tiers);
	return now_ns;
}

static void run(const struct replay_past *past, const char *set, struct replay *replay)
{
	static struct replay_settings settings;
	char error[256];
	settings = (struct replay_settings){.trigger = {.count = 1, .text = {"latency_spike"}}};
	if (set)
		settings.set = (struct option_texts){.count = 1, .text = {set}};
	*replay = (struct replay){.settings = &settings};
	assert_ok(replay_past_run(past, replay, error, sizeof(error)));
}

static uint64_t warnings(const struct replay_past *past, const char *set)
{
	struct replay replay;
	struct replay_firings total;
	run(past, set, &replay);
	replay_firings_total(&replay.counts, &total);
	replay_free(&replay);
	return replay_firings_of(&total, TRIGGERS_WARN);
}

/* Of 700 ms: bins of one second hold one or two. */
START_TEST(each_step_comes_back)
{
	struct replay_past *past = NULL;
	int64_t end_ns = write_steps(700000000, 5000, "steps/3/0/train");
	assert_ok(replay_past_read(store, end_ns + SECOND_NS, &past));
	ck_assert_int_eq(replay_past_length_ns(past), end_ns + SECOND_NS - BASE_NS);
	ck_assert_uint_eq(warnings(past, NULL), 6);
	ck_assert_uint_eq(warnings(past, "latency_spike.warn=2"), 0);
	replay_past_free(past);
}
END_TEST

START_TEST(what_comes_after_is_not_looked_at)
{
	struct replay_past *past = NULL;
	write_steps(2 * SECOND_NS, 2000, "steps/3/0/train");
	assert_ok(replay_past_read(store, BASE_NS + 1100 * SECOND_NS, &past));
	ck_assert_uint_eq(warnings(past, NULL), 1);
	replay_past_free(past);
}
END_TEST

START_TEST(steps_that_share_a_bin_are_not_guessed)
{
	struct replay_past *past = NULL;
	int64_t end_ns = write_steps(200000000, 5000, "steps/3/0/train");
	ck_assert_int_eq(replay_past_read(store, end_ns, &past), -ENODATA);
	ck_assert_ptr_null(past);
}
END_TEST

START_TEST(too_little_is_nothing)
{
	struct replay_past *past = NULL;
	int64_t end_ns = write_steps(SECOND_NS, 60, "steps/3/0/train");
	ck_assert_int_eq(replay_past_read(store, end_ns, &past), -ENODATA);
}
END_TEST

START_TEST(other_counters_are_no_steps)
{
	struct replay_past *past = NULL;
	int64_t end_ns = write_steps(SECOND_NS, 3000, "limits/3/0/train");
	ck_assert_int_eq(replay_past_read(store, end_ns, &past), -ENODATA);
	ck_assert_int_lt(replay_past_read(test_path(store, "none"), end_ns, &past), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("replay_past");
	TCase *tcase = tcase_create("past");
	tcase_add_checked_fixture(tcase, set_up, NULL);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, each_step_comes_back);
	tcase_add_test(tcase, what_comes_after_is_not_looked_at);
	tcase_add_test(tcase, steps_that_share_a_bin_are_not_guessed);
	tcase_add_test(tcase, too_little_is_nothing);
	tcase_add_test(tcase, other_counters_are_no_steps);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
