/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks whose own work in each step is made up: who is named, when, and who is not. The settings of a case are like
 * those that published studies tell of; the noise is 1 % unless a case says otherwise.
 */
#include <math.h>
#include <stdlib.h>

#include "watch.h"

enum { RANKS_MAX = 64, STEP_MS = 100 };

static struct watch watch;

struct job {
	unsigned ranks;
	uint32_t series[RANKS_MAX];
	double usual[RANKS_MAX];  /* of STEP_MS */
	double factor[RANKS_MAX]; /* now */
	int gone[RANKS_MAX];
	double noise, common;
	int64_t step;
};

static struct job job;

static uint32_t busy_series(unsigned rank, const char *group)
{
	struct triggers_series_key key = {.role = TRIGGERS_BUSY,
					  .source = rank,
					  .rank = rank,
					  .job = 7,
					  .track = 1,
					  .name = "busy:main",
					  .group = group,
					  .alarms = 1};
	uint32_t id = triggers_engine_series(watch.engine, &key);
	ck_assert_uint_ne(id, TRIGGERS_SERIES_NONE);
	return id;
}

static void set_up_ranks(unsigned ranks)
{
	watch_begin(&watch);
	job = (struct job){.ranks = ranks, .noise = 0.01, .common = 1};
	for (unsigned i = 0; i < ranks; i++) {
		job.series[i] = busy_series(i, "step main");
		job.usual[i] = job.factor[i] = 1;
	}
}

static void set_up(void)
{
	set_up_ranks(8);
}

static void tear_down(void)
{
	watch_end(&watch);
}

/* About normal: the sum of twelve uniform numbers. */
static double normal(void)
{
	double sum = -6;
	for (int i = 0; i < 12; i++)
		sum += (double)(test_random() % 1000000) / 1e6;
	return sum;
}

static void tell_phase(unsigned rank, int64_t step, double share, const char *phase)
{
	struct triggers_sample sample = {.start_ns = watch.now_ns + rank * 1000,
					 .duration_ns = (int64_t)(share * STEP_MS * (double)MS),
					 .step = step,
					 .phase = phase,
					 .sample = step};
	triggers_engine_observe(watch.engine, job.series[rank], &sample);
}

static void tell(unsigned rank, int64_t step)
{
	double share = job.usual[rank] * job.factor[rank] * job.common * (1 + job.noise * normal());
	tell_phase(rank, step, share, NULL);
}

/* One step of all, told of in any order of ranks. */
static void step(void)
{
	unsigned first = (unsigned)(test_random() % job.ranks);
	for (unsigned i = 0; i < job.ranks; i++)
		if (!job.gone[(first + i) % job.ranks])
			tell((first + i) % job.ranks, job.step);
	job.step++;
	watch.now_ns += STEP_MS * MS;
}

static void steps(unsigned count)
{
	while (count--)
		step();
}

static void expect_only(uint32_t rank)
{
	ck_assert_msg(watch.n == 1, "%u firings, the last: %s", watch.n,
		      watch.n ? watch.firing[(watch.n - 1) % WATCH_KEPT].evidence : "");
	ck_assert_str_eq(watch.firing[0].trigger, "straggler");
	ck_assert_msg(watch.firing[0].rank == rank, "rank %u, not %u", watch.firing[0].rank, rank);
	ck_assert_int_eq(watch.firing[0].severity, TRIGGERS_WARN);
}

static void expect_nothing(void)
{
	ck_assert_msg(watch.n == 0, "%u firings, the first: %s", watch.n, watch.firing[0].evidence);
}

/* ---- from the start ---- */

START_TEST(one_slow_from_the_start_is_named_within_ten_steps_and_once)
{
	job.usual[5] = 2.4;
	steps(10);
	expect_only(5);
	ck_assert_int_eq(watch.firing[0].step, 7); /* three do not count, then five */
	ck_assert_int_eq(watch.firing[0].t0_ns, 1000 * S + 3 * STEP_MS * MS + 5000);
	ck_assert_double_eq_tol(watch.firing[0].ratio, 2.4, 0.2);
	ck_assert_ptr_nonnull(strstr(watch.firing[0].evidence, "rank 5, main, worked"));
	ck_assert_ptr_nonnull(strstr(watch.firing[0].evidence, "7 peers"));
	ck_assert_ptr_nonnull(strstr(watch.firing[0].evidence, "behind in 5 of the last 5 steps"));
	steps(2000);
	expect_only(5);
}
END_TEST

START_TEST(twelve_in_a_hundred_slower_is_enough)
{
	job.usual[2] = 1.13;
	steps(30);
	expect_only(2);
}
END_TEST

START_TEST(six_in_a_hundred_slower_is_not)
{
	job.usual[2] = 1.06;
	steps(2000);
	expect_nothing();
}
END_TEST

START_TEST(the_fastest_is_nobodys_straggler)
{
	job.usual[3] = 0.5;
	steps(2000);
	expect_nothing();
}
END_TEST

START_TEST(an_unsteady_group_needs_more)
{
	job.noise = 0.1;
	job.usual[6] = 1.12;
	steps(3000);
	expect_nothing();
}
END_TEST

/* ---- roles ---- */

START_TEST(two_classes_of_speed_are_no_stragglers)
{
	for (unsigned i = 4; i < 8; i++)
		job.usual[i] = 1.6;
	steps(2000);
	expect_nothing();
}
END_TEST

START_TEST(two_of_the_like_are_a_class_of_their_own)
{
	job.usual[6] = job.usual[7] = 1.4;
	steps(2000);
	expect_nothing();
}
END_TEST

START_TEST(the_slow_one_of_the_slow_class_is_named)
{
	tear_down();
	set_up_ranks(12);
	for (unsigned i = 6; i < 12; i++)
		job.usual[i] = 1.6;
	job.usual[9] = 2.2;
	steps(500);
	expect_only(9);
	ck_assert_double_eq_tol(watch.firing[0].ratio, 2.2 / 1.6, 0.1);
}
END_TEST

START_TEST(two_stragglers_unlike_each_other_are_named_both)
{
	tear_down();
	set_up_ranks(16);
	job.usual[3] = 1.5;
	job.usual[11] = 2.1;
	steps(500);
	ck_assert_uint_eq(watch.n, 2);
	ck_assert_uint_eq(watch.firing[0].rank + watch.firing[1].rank, 14);
	ck_assert_uint_ne(watch.firing[0].rank, watch.firing[1].rank);
}
END_TEST

START_TEST(where_all_differ_nobody_is_behind)
{
	for (unsigned i = 0; i < 8; i++)
		job.usual[i] = pow(1.2, i);
	steps(2000);
	expect_nothing();
}
END_TEST

START_TEST(groups_are_not_mixed)
{
	tear_down();
	set_up_ranks(16);
	for (unsigned i = 8; i < 16; i++) {
		job.series[i] = busy_series(i + 100, "stream 7");
		job.usual[i] = 5;
	}
	job.usual[9] = 9;
	steps(100);
	expect_only(109);
}
END_TEST

/* ---- few ---- */

START_TEST(of_two_the_slow_class_is_not_named)
{
	tear_down();
	set_up_ranks(2);
	job.usual[1] = 1.5;
	steps(1000);
	expect_nothing();
}
END_TEST

START_TEST(of_two_the_one_that_becomes_slow_is)
{
	tear_down();
	set_up_ranks(2);
	job.usual[1] = 1.5;
	steps(100);
	job.factor[1] = 1.5;
	steps(300);
	job.factor[1] = 1; /* the other one is not slower for it */
	steps(300);
	expect_only(1);
}
END_TEST

START_TEST(of_three_the_others_are_not_slower_when_it_is_well_again)
{
	tear_down();
	set_up_ranks(3);
	steps(100);
	job.factor[0] = 3;
	steps(100);
	job.factor[0] = 1;
	steps(100);
	expect_only(0);
}
END_TEST

START_TEST(of_four_a_slow_one_must_be_far_behind_all)
{
	tear_down();
	set_up_ranks(4);
	job.usual[1] = 1.2;
	steps(200);
	expect_nothing();
	job.usual[1] = 1.4;
	steps(50);
	expect_only(1);
}
END_TEST

START_TEST(one_alone_has_no_peers)
{
	tear_down();
	set_up_ranks(1);
	steps(100);
	job.factor[0] = 10;
	steps(100);
	expect_nothing();
}
END_TEST

/* ---- becoming slow ---- */

START_TEST(one_that_becomes_slow_is_one_episode)
{
	steps(100);
	job.factor[6] = 1.4;
	steps(60);
	expect_only(6);
	ck_assert_int_eq(watch.firing[0].step, 102); /* 3 of 5 */
	ck_assert_int_eq(watch.firing[0].t0_ns, 1000 * S + 100 * STEP_MS * MS + 6000);
	ck_assert_ptr_nonnull(strstr(watch.firing[0].evidence, "behind in 3 of the last 5 steps"));
	job.factor[6] = 1;
	steps(200);
	expect_only(6);
	job.factor[6] = 1.5;
	steps(20);
	ck_assert_uint_eq(watch.n, 2);
	ck_assert_int_eq(watch.firing[1].step, 362);
}
END_TEST

START_TEST(one_that_stays_slow_is_not_told_of_again)
{
	steps(100);
	job.factor[6] = 1.4;
	steps(3000);
	expect_only(6);
}
END_TEST

START_TEST(a_slow_step_in_six_is_no_straggler)
{
	steps(100);
	for (int i = 0; i < 200; i++) {
		job.factor[1] = 2;
		steps(1);
		job.factor[1] = 1;
		steps(5);
	}
	expect_nothing();
}
END_TEST

/* Three slow steps of five, again and again: the first time it is news. */
START_TEST(what_varies_by_nature_is_told_of_once)
{
	steps(100);
	for (int i = 0; i < 200 * 12; i++) {
		job.factor[1] = i % 12 == 0 || i % 12 == 2 || i % 12 == 4 ? 1.6 : 1;
		steps(1);
	}
	expect_only(1);
}
END_TEST

START_TEST(one_about_the_limit_is_one_episode)
{
	for (int i = 0; i < 100; i++) {
		job.usual[2] = i % 2 ? 1.13 : 1.08;
		steps(8);
	}
	expect_only(2);
	job.usual[2] = 1;
	steps(20);
	job.usual[2] = 1.15;
	steps(20);
	ck_assert_uint_eq(watch.n, 2);
}
END_TEST

START_TEST(all_slow_together_are_none)
{
	steps(100);
	job.common = 2;
	steps(300);
	job.common = 1;
	steps(300);
	job.common = 0.5;
	steps(300);
	expect_nothing();
}
END_TEST

/* Four workers on one host at once, of sixteen: each is one, and none of the others is when they are well again. */
START_TEST(several_at_once_are_named_each)
{
	uint32_t named = 0;
	tear_down();
	set_up_ranks(16);
	steps(100);
	for (unsigned i = 6; i < 10; i++)
		job.factor[i] = 1.5;
	steps(100);
	for (unsigned i = 6; i < 10; i++)
		job.factor[i] = 1;
	steps(200);
	for (unsigned i = 0; i < watch.n; i++)
		named |= 1u << watch.firing[i].rank;
	ck_assert_uint_eq(named, 0xf << 6);
	ck_assert_uint_eq(watch.n, 4);
}
END_TEST

/* Work that depends on the data: every rank now and then has much more of it. */
START_TEST(imbalance_by_data_is_none)
{
	for (int i = 0; i < 3000; i++) {
		for (unsigned rank = 0; rank < job.ranks; rank++)
			job.factor[rank] = 0.7 + (double)(test_random() % 600) / 1000;
		steps(1);
	}
	expect_nothing();
}
END_TEST

START_TEST(what_costs_nothing_is_none)
{
	for (unsigned i = 0; i < job.ranks; i++)
		job.usual[i] = 0.005; /* half a ms of a step of 100 */
	job.usual[2] = 0.01;
	steps(200);
	expect_nothing();
}
END_TEST

/* ---- steps ---- */

START_TEST(ranks_may_tell_in_any_order_and_be_steps_apart)
{
	int64_t next[8] = {0};
	job.usual[4] = 1.8;
	while (job.step < 40) {
		unsigned rank = (unsigned)(test_random() % 8);
		if (next[rank] - job.step >= 5)
			continue;
		tell(rank, next[rank]++);
		job.step = INT64_MAX;
		for (int i = 0; i < 8; i++)
			job.step = next[i] < job.step ? next[i] : job.step;
		watch.now_ns += MS;
	}
	expect_only(4);
	ck_assert_int_le(watch.firing[0].step, 14); /* who comes first is alone for some steps */
}
END_TEST

START_TEST(missing_steps_are_not_waited_for)
{
	job.usual[4] = 1.8;
	for (int i = 0; i < 40; i++) {
		for (unsigned rank = 0; rank < 8; rank++)
			if ((i + 3 * rank) % 8)
				tell(rank, 7 * i);
		watch.now_ns += STEP_MS * MS;
	}
	expect_only(4);
	ck_assert_int_le(watch.firing[0].step, 7 * 11);
}
END_TEST

START_TEST(a_rank_that_leaves_holds_up_nobody)
{
	steps(50);
	job.gone[0] = 1;
	steps(20);
	job.factor[3] = 1.6;
	steps(4);
	expect_only(3);
	job.gone[0] = 0;
	steps(100);
	expect_only(3);
}
END_TEST

START_TEST(a_source_that_ends_leaves_at_once)
{
	steps(50);
	job.factor[3] = 1.6;
	for (unsigned i = 4; i < 8; i++) {
		triggers_engine_source_end(watch.engine, i);
		job.gone[i] = 1;
	}
	steps(3);
	expect_only(3);
	for (unsigned i = 4; i < 8; i++) {
		job.series[i] = busy_series(i, "step main");
		job.gone[i] = 0;
	}
	steps(100);
	expect_only(3);
}
END_TEST

START_TEST(numbers_that_begin_again_do_no_harm)
{
	steps(100);
	job.step = 40; /* restored from a checkpoint, all but two that come later */
	job.gone[1] = job.gone[6] = 1;
	steps(2);
	job.gone[1] = job.gone[6] = 0;
	steps(60);
	expect_nothing();
	job.step = 3;
	job.factor[2] = 1.5;
	steps(4); /* in the first one they are not together yet */
	expect_only(2);
}
END_TEST

START_TEST(only_train_steps_with_a_number_count)
{
	for (int i = 0; i < 100; i++) {
		for (unsigned rank = 0; rank < 8; rank++) {
			tell_phase(rank, i, rank == 2 ? 3 : 1, "eval");
			tell_phase(rank, -1, rank == 2 ? 3 : 1, NULL);
			tell_phase(rank, i, rank == 2 ? 0 : 1, NULL);
		}
		watch.now_ns += STEP_MS * MS;
	}
	expect_nothing();
}
END_TEST

/* ---- settings ---- */

START_TEST(the_settings_are_heard)
{
	watch_set(&watch, "straggler.ratio", "2");
	watch_set(&watch, "straggler.of", "8 of 10");
	steps(100);
	job.factor[6] = 1.3;
	steps(100);
	job.factor[6] = 1;
	steps(200);
	expect_nothing();
	job.factor[6] = 3;
	steps(12);
	expect_only(6);
	ck_assert_int_eq(watch.firing[0].step, 407);
	ck_assert_int_eq(watch.firing[0].quiet, 1);
}
END_TEST

START_TEST(it_alerts_where_that_is_asked_for)
{
	watch_set(&watch, "straggler.alert", "true");
	job.usual[1] = 2;
	steps(20);
	expect_only(1);
	ck_assert_int_eq(watch.firing[0].quiet, 0);
}
END_TEST

START_TEST(it_says_what_the_peers_did)
{
	struct triggers_belief belief;
	job.usual[1] = 2;
	steps(20);
	for (uint32_t i = 0; i < 8; i++) {
		assert_ok(triggers_engine_belief(watch.engine, job.series[i], &belief));
		ck_assert_double_eq_tol(belief.peers, STEP_MS * (double)MS, 0.04 * STEP_MS * (double)MS);
	}
}
END_TEST

/* ---- state ---- */

static struct triggers_engine *restored_copy(const struct triggers_listener *listener)
{
	struct triggers_engine *copy;
	assert_ok(triggers_engine_new(listener, &copy));
	watch_hand_over(watch.engine, copy);
	return copy;
}

/* One job twice: at any moment the engine may be another one that was restored. */
static uint64_t history(unsigned restart_every, uint64_t seed)
{
	const struct triggers_listener listener = {&watch, watch_firing, watch_over, watch_suspicion,
						   watch_suspicion_end};
	uint64_t random = seed;
	tear_down();
	set_up();
	for (unsigned i = 0; i < 8 * 250; i++) {
		unsigned rank = i * 5 % 8;
		int64_t number = i / 8 + (rank == 1);
		random = random * 6364136223846793005u + 1442695040888963407u;
		double noise = (double)(random >> 40) / (1 << 24) * 0.04;
		int slow = (rank == 3 && number > 120 && number < 140) || (rank == 6 && number > 200);
		tell_phase(rank, number, (slow ? 1.5 : rank == 4 ? 1.2 : 1) + noise, NULL);
		watch.now_ns += STEP_MS * MS / 8;
		if (restart_every && i % restart_every == restart_every - 1) {
			struct triggers_engine *copy = restored_copy(&listener);
			triggers_engine_free(watch.engine);
			watch.engine = copy;
		}
	}
	ck_assert_uint_eq(watch.n, 3);
	return watch.digest;
}

START_TEST(a_restart_changes_nothing)
{
	uint64_t seed = test_random(), expected = history(0, seed);
	ck_assert_uint_eq(history(333, seed), expected);
	ck_assert_uint_eq(history(37, seed), expected);
}
END_TEST

START_TEST(a_series_takes_less_than_four_kib_with_all)
{
	int64_t before = triggers_engine_save(watch.engine, NULL, 0);
	steps(100);
	int64_t bytes = triggers_engine_save(watch.engine, NULL, 0) - before;
	ck_assert_int_lt(bytes / 8, 4096);
}
END_TEST

static TCase *add_case(Suite *suite, const char *name)
{
	TCase *tcase = tcase_create(name);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	suite_add_tcase(suite, tcase);
	return tcase;
}

int main(void)
{
	Suite *suite = suite_create("straggler");
	TCase *tcase;
	tcase = add_case(suite, "slow from the start");
	tcase_add_test(tcase, one_slow_from_the_start_is_named_within_ten_steps_and_once);
	tcase_add_test(tcase, twelve_in_a_hundred_slower_is_enough);
	tcase_add_test(tcase, six_in_a_hundred_slower_is_not);
	tcase_add_test(tcase, the_fastest_is_nobodys_straggler);
	tcase_add_test(tcase, an_unsteady_group_needs_more);
	tcase = add_case(suite, "roles");
	tcase_add_test(tcase, two_classes_of_speed_are_no_stragglers);
	tcase_add_test(tcase, two_of_the_like_are_a_class_of_their_own);
	tcase_add_test(tcase, the_slow_one_of_the_slow_class_is_named);
	tcase_add_test(tcase, two_stragglers_unlike_each_other_are_named_both);
	tcase_add_test(tcase, where_all_differ_nobody_is_behind);
	tcase_add_test(tcase, groups_are_not_mixed);
	tcase = add_case(suite, "few peers");
	tcase_add_test(tcase, of_two_the_slow_class_is_not_named);
	tcase_add_test(tcase, of_two_the_one_that_becomes_slow_is);
	tcase_add_test(tcase, of_three_the_others_are_not_slower_when_it_is_well_again);
	tcase_add_test(tcase, of_four_a_slow_one_must_be_far_behind_all);
	tcase_add_test(tcase, one_alone_has_no_peers);
	tcase = add_case(suite, "becoming slow");
	tcase_add_test(tcase, one_that_becomes_slow_is_one_episode);
	tcase_add_test(tcase, one_that_stays_slow_is_not_told_of_again);
	tcase_add_test(tcase, a_slow_step_in_six_is_no_straggler);
	tcase_add_test(tcase, what_varies_by_nature_is_told_of_once);
	tcase_add_test(tcase, one_about_the_limit_is_one_episode);
	tcase_add_test(tcase, all_slow_together_are_none);
	tcase_add_test(tcase, several_at_once_are_named_each);
	tcase_add_test(tcase, imbalance_by_data_is_none);
	tcase_add_test(tcase, what_costs_nothing_is_none);
	tcase = add_case(suite, "steps");
	tcase_add_test(tcase, ranks_may_tell_in_any_order_and_be_steps_apart);
	tcase_add_test(tcase, missing_steps_are_not_waited_for);
	tcase_add_test(tcase, a_rank_that_leaves_holds_up_nobody);
	tcase_add_test(tcase, a_source_that_ends_leaves_at_once);
	tcase_add_test(tcase, numbers_that_begin_again_do_no_harm);
	tcase_add_test(tcase, only_train_steps_with_a_number_count);
	tcase = add_case(suite, "settings");
	tcase_add_test(tcase, the_settings_are_heard);
	tcase_add_test(tcase, it_alerts_where_that_is_asked_for);
	tcase_add_test(tcase, it_says_what_the_peers_did);
	tcase = add_case(suite, "state");
	tcase_add_test(tcase, a_restart_changes_nothing);
	tcase_add_test(tcase, a_series_takes_less_than_four_kib_with_all);
	return test_run(suite);
}
