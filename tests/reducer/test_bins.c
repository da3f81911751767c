/* SPDX-License-Identifier: Apache-2.0 */
#include <reducer/bins.h>

#include <stdlib.h>

#include "support.h"

enum { TIMELINE = 4000 };

/* Adds a span to the set and to a bitmap of ns; the pieces given must be those that the bitmap lacks. */
static void add_and_compare(struct reducer_cover *cover, uint8_t *busy, int64_t from, int64_t to)
{
	int64_t expected = 0, given = 0;
	bool meets = false;
	for (int64_t i = from; i < to; i++) {
		expected += !busy[i];
		meets |= busy[i];
	}
	ck_assert_int_eq(reducer_cover_meets(cover, from, to), meets);
	struct reducer_range piece;
	for (int64_t at = from; reducer_cover_gap(cover, at, to, &piece); at = piece.to) {
		for (int64_t i = piece.from; i < piece.to; i++)
			ck_assert_msg(!busy[i], "%d was given twice", (int)i);
		given += piece.to - piece.from;
	}
	ck_assert_int_eq(given, expected);
	reducer_cover_add(cover, from, to);
	memset(busy + from, 1, (size_t)(to - from));
	for (uint32_t i = 0; i < cover->count; i++) {
		ck_assert_int_lt(cover->range[i].from, cover->range[i].to);
		ck_assert(i == 0 || cover->range[i - 1].to < cover->range[i].from);
	}
}

START_TEST(union_is_exact)
{
	uint8_t busy[TIMELINE] = {0};
	struct reducer_cover cover;
	assert_ok(reducer_cover_init(&cover, 1024));
	for (int i = 0; i < 800; i++) {
		int64_t from = (int64_t)test_random_below(TIMELINE - 64);
		add_and_compare(&cover, busy, from, from + (int64_t)test_random_below(_i ? 8 : 64));
	}
	reducer_cover_clear(&cover);
}
END_TEST

START_TEST(a_full_set_forgets_the_earliest_and_says_so)
{
	struct reducer_cover cover;
	assert_ok(reducer_cover_init(&cover, 8));
	for (int64_t i = 0; i < 9; i++)
		reducer_cover_add(&cover, i * 10, i * 10 + 5);
	ck_assert_int_eq(cover.horizon, 15);
	ck_assert_uint_eq(cover.count, 7);
	ck_assert(!cover.late);
	/* Before the horizon nothing is known; after it everything is. */
	struct reducer_range piece;
	ck_assert(reducer_cover_gap(&cover, 12, 26, &piece));
	ck_assert_int_eq(piece.from, 12);
	ck_assert_int_eq(piece.to, 20);
	ck_assert(!reducer_cover_meets(&cover, 0, 15));
	reducer_cover_add(&cover, 0, 12);
	ck_assert_uint_eq(cover.count, 7);
	assert_ok(reducer_cover_grow(&cover, 16));
	for (int64_t i = 9; i < 18; i++)
		reducer_cover_add(&cover, i * 10, i * 10 + 5);
	ck_assert_int_eq(cover.horizon, 15);
	reducer_cover_clear(&cover);
}
END_TEST

START_TEST(folding_in_any_groups_gives_the_same)
{
	for (int round = 0; round < 200; round++) {
		struct reducer_bin whole = {0}, parts[3] = {0}, folded = {0};
		enum reducer_row_kind kind = (enum reducer_row_kind)(1 + _i);
		for (int i = 0; i < 12; i++) {
			struct reducer_bin *part = &parts[i / 4];
			uint32_t name = (uint32_t)test_random_below(4);
			int64_t time = (int64_t)test_random_below(10);
			if (kind == REDUCER_ROW_SPANS) {
				reducer_bin_span(&whole, name, time);
				reducer_bin_span(part, name, time);
			} else if (kind == REDUCER_ROW_INSTANTS) {
				reducer_bin_instant(&whole, name, time);
				reducer_bin_instant(part, name, time);
			} else {
				double value = (double)test_random_below(100) - 50;
				reducer_bin_counter(&whole, time, value);
				reducer_bin_counter(part, time, value);
			}
		}
		for (int i = 0; i < 3; i++)
			reducer_bin_fold(&folded, &parts[i], kind);
		ck_assert_mem_eq(&folded, &whole, sizeof(whole));
	}
}
END_TEST

START_TEST(a_late_counter_sample_does_not_become_the_last)
{
	struct reducer_bin bin = {0};
	reducer_bin_counter(&bin, 100, 3.0);
	reducer_bin_counter(&bin, 50, 9.0);
	reducer_bin_counter(&bin, 60, -1.0);
	ck_assert_double_eq(bin.last, 3.0);
	ck_assert_double_eq(bin.max, 9.0);
	ck_assert_double_eq(bin.min, -1.0);
	ck_assert_uint_eq(bin.count, 3);
}
END_TEST

START_TEST(spans_are_laid_out_by_nesting)
{
	struct reducer_nest nest = {0};
	ck_assert_uint_eq(reducer_nest_place(&nest, 0, 100), 0);
	ck_assert_uint_eq(reducer_nest_place(&nest, 0, 50), 1);
	ck_assert_uint_eq(reducer_nest_place(&nest, 10, 50), 2);
	ck_assert_uint_eq(reducer_nest_place(&nest, 50, 60), 1);
	ck_assert_uint_eq(reducer_nest_place(&nest, 55, 70), REDUCER_DEPTH_OVERFLOW);
	ck_assert_uint_eq(reducer_nest_place(&nest, 70, 100), 1);
	ck_assert_uint_eq(reducer_nest_place(&nest, 100, 101), 0);
	for (int i = 1; i < REDUCER_NEST_MAX; i++)
		ck_assert_uint_eq(reducer_nest_place(&nest, 100, 101), i);
	ck_assert_uint_eq(reducer_nest_place(&nest, 100, 101), REDUCER_DEPTH_OVERFLOW);
}
END_TEST

static void add_case(Suite *suite, const char *name, const TTest *test, int rows)
{
	TCase *tcase = tcase_create(name);
	tcase_add_loop_test(tcase, test, 0, rows);
	suite_add_tcase(suite, tcase);
}

int main(void)
{
	Suite *suite = suite_create("bins");
	add_case(suite, "union", union_is_exact, 2);
	add_case(suite, "horizon", a_full_set_forgets_the_earliest_and_says_so, 1);
	add_case(suite, "fold", folding_in_any_groups_gives_the_same, 3);
	add_case(suite, "late sample", a_late_counter_sample_does_not_become_the_last, 1);
	add_case(suite, "nesting", spans_are_laid_out_by_nesting, 1);
	return test_run(suite);
}
