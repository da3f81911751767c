/* SPDX-License-Identifier: Apache-2.0 */
/* Steps put together from what each member tells: when they are whole, and what happens where somebody is missing. */
#include <stdlib.h>

#include "../../triggers/src/peers.h"
#include "support.h"

static struct triggers_peers peers;
static struct triggers_whole_step whole;

static void set_up(void)
{
	memset(&peers, 0, sizeof(peers));
}

static void tear_down(void)
{
	triggers_peers_free(&peers);
}

static struct triggers_peer_group *tell(uint64_t group, uint32_t series, int64_t number)
{
	struct triggers_peer_work work = {.value = 1 + series, .start_ns = number, .sample = -1};
	return triggers_peers_tell(&peers, group, series, number, &work);
}

/* Tells, and takes all that is whole then: the number of the last one, its members in `whole`; -1 = none. */
static int64_t told(uint32_t series, int64_t number)
{
	struct triggers_peer_group *group = tell(1, series, number);
	int64_t last = -1;
	ck_assert_ptr_nonnull(group);
	while (triggers_peers_take(group, &whole))
		last = whole.number;
	return last;
}

/* Members 0, 1, 2 know each other: step 0 is behind them. */
static void three_members(void)
{
	told(0, 0);
	told(1, 0);
	told(2, 0);
	told(0, 1);
	told(1, 1);
	ck_assert_int_eq(told(2, 1), 1);
	ck_assert_uint_eq(whole.count, 3);
}

START_TEST(a_step_is_whole_with_its_last_member)
{
	three_members();
	ck_assert_int_eq(told(2, 5), -1);
	ck_assert_int_eq(told(0, 5), -1);
	ck_assert_int_eq(told(1, 5), 5);
	ck_assert_uint_eq(whole.count, 3);
	for (uint32_t i = 0; i < 3; i++)
		ck_assert_double_eq(whole.member[i].work.value, 1 + whole.member[i].series);
}
END_TEST

START_TEST(who_is_further_is_not_waited_for)
{
	three_members();
	ck_assert_int_eq(told(0, 2), -1);
	ck_assert_int_eq(told(1, 2), -1);
	ck_assert_int_eq(told(2, 3), 2); /* it has gone past */
	ck_assert_uint_eq(whole.count, 2);
}
END_TEST

START_TEST(what_is_told_again_counts_once)
{
	struct triggers_peer_work work = {.value = 99, .sample = -1};
	three_members();
	told(0, 2);
	triggers_peers_tell(&peers, 1, 0, 2, &work);
	told(1, 2);
	ck_assert_int_eq(told(2, 2), 2);
	ck_assert_uint_eq(whole.count, 3);
	ck_assert_double_eq(whole.member[0].work.value, 99);
}
END_TEST

/* Eight steps are waited for, then they go one by one; after four without it the silent one is let go. */
START_TEST(a_silent_member_holds_up_no_more_than_eight_steps)
{
	int64_t first = 0;
	three_members();
	for (int64_t number = 2; number < 40; number++) {
		int64_t forced = told(0, number), taken = told(1, number);
		if (!first && (forced >= 0 || taken >= 0))
			first = number;
		if (number > 14) {
			ck_assert_int_eq(taken, number);
			ck_assert_uint_eq(whole.count, 2);
		}
	}
	ck_assert_int_eq(first, 2 + TRIGGERS_PEERS_STEPS - 1);
	told(0, 40);
	told(2, 40);
	ck_assert_int_eq(told(1, 40), 40);
	ck_assert_uint_eq(whole.count, 3);
}
END_TEST

START_TEST(who_is_forgotten_is_not_waited_for)
{
	three_members();
	told(0, 2);
	triggers_peers_forget(&peers, 1, 2);
	triggers_peers_forget(&peers, 1, 7);
	triggers_peers_forget(&peers, 2, 0);
	ck_assert_int_eq(told(1, 2), 2);
	triggers_peers_forget(&peers, 1, 0);
	triggers_peers_forget(&peers, 1, 1);
	ck_assert_uint_eq(peers.count, 0);
}
END_TEST

START_TEST(numbers_that_begin_again_bring_all_together_again)
{
	three_members();
	for (int64_t number = 100; number < 120; number++) {
		told(0, number);
		told(1, number);
		told(2, number);
	}
	/* One after the other is back at step 50, and ahead of the next by two. */
	told(0, 50);
	told(0, 51);
	told(1, 50);
	told(0, 52);
	told(1, 51);
	told(2, 50);
	for (int64_t number = 53; number < 60; number++) {
		told(0, number);
		told(1, number - 1);
		ck_assert_int_eq(told(2, number - 2), number - 2);
		if (number > 55)
			ck_assert_uint_eq(whole.count, 3);
	}
}
END_TEST

START_TEST(groups_and_members_are_bounded)
{
	for (uint32_t i = 0; i < TRIGGERS_PEERS_MEMBERS_MAX; i++)
		ck_assert_ptr_nonnull(tell(1, i, 0));
	ck_assert_ptr_null(tell(1, 1000, 0));
	for (uint64_t group = 2; group <= TRIGGERS_PEERS_GROUPS_MAX; group++)
		ck_assert_ptr_nonnull(tell(group, 0, 0));
	ck_assert_ptr_null(tell(1000, 0, 0));
	ck_assert_ptr_nonnull(tell(1, 3, 1));
}
END_TEST

START_TEST(a_full_group_gives_the_place_of_a_silent_member_away)
{
	for (int64_t number = 0; number < 30; number++)
		for (uint32_t i = number < 2 ? 0 : 1; i < TRIGGERS_PEERS_MEMBERS_MAX; i++)
			told(i, number);
	ck_assert_ptr_nonnull(tell(1, 1000, 30));
	ck_assert_ptr_null(tell(1, 1001, 30));
}
END_TEST

/* Whatever the bytes, restoring either fails or gives what can be used. */
START_TEST(damaged_state_does_no_harm)
{
	uint8_t bytes[4096], copy[4096];
	struct triggers_writer writer = {.out = bytes, .room = sizeof(bytes)};
	three_members();
	told(0, 2);
	tell(7, 9, 3);
	triggers_peers_save(&peers, &writer);
	ck_assert_uint_le(writer.bytes, sizeof(bytes));
	for (int round = 0; round < 4000; round++) {
		size_t cut = round % 4 ? writer.bytes : (size_t)test_random_below(writer.bytes);
		memcpy(copy, bytes, sizeof(copy));
		for (int i = 0; i < round % 3; i++)
			copy[test_random_below(writer.bytes)] ^= (uint8_t)(1u << test_random_below(8));
		struct triggers_cursor cursor = {.at = copy, .left = cut};
		tear_down();
		triggers_peers_restore(&peers, &cursor);
		ck_assert(round % 12 || cut == writer.bytes || cursor.failed);
		for (int64_t number = 0; number < 4; number++)
			told((uint32_t)number, number);
	}
}
END_TEST

static void add(Suite *suite, const char *name, const TTest *test)
{
	TCase *tcase = tcase_create(name);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test);
	suite_add_tcase(suite, tcase);
}

int main(void)
{
	Suite *suite = suite_create("peers");
	add(suite, "whole steps", a_step_is_whole_with_its_last_member);
	add(suite, "past", who_is_further_is_not_waited_for);
	add(suite, "twice", what_is_told_again_counts_once);
	add(suite, "silence", a_silent_member_holds_up_no_more_than_eight_steps);
	add(suite, "forgotten", who_is_forgotten_is_not_waited_for);
	add(suite, "restart", numbers_that_begin_again_bring_all_together_again);
	add(suite, "bounds", groups_and_members_are_bounded);
	add(suite, "full", a_full_group_gives_the_place_of_a_silent_member_away);
	add(suite, "damage", damaged_state_does_no_harm);
	return test_run(suite);
}
