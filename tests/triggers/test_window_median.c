/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "../../triggers/src/window_median.h"
#include "support.h"

enum { CAPACITY = 32 };

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double middle(double *value, int n)
{
	qsort(value, (size_t)n, sizeof(*value), compare);
	return n % 2 ? value[n / 2] : (value[n / 2 - 1] + value[n / 2]) / 2;
}

/* Against sorting everything anew after each value. */
START_TEST(matches_sorting)
{
	float memory[2 * CAPACITY], kept[1000];
	struct triggers_window window;
	triggers_window_init(&window, memory, CAPACITY);
	for (int i = 0; i < 1000; i++) {
		kept[i] = (float)test_random_below(i < 500 ? 20 : 1000000);
		triggers_window_insert(&window, kept[i], 0);
		int n = i + 1 < CAPACITY ? i + 1 : CAPACITY;
		double value[CAPACITY], distance[CAPACITY];
		for (int j = 0; j < n; j++)
			value[j] = (double)kept[i - j];
		double median = middle(value, n);
		ck_assert(fabs(triggers_window_median(&window) - median) < 1e-6);
		for (int j = 0; j < n; j++)
			distance[j] = fabs((double)kept[i - j] - median);
		qsort(distance, (size_t)n, sizeof(*distance), compare);
		double mad = distance[(n + 1) / 2 - 1];
		ck_assert_msg(fabs(triggers_window_deviation(&window) - 1.4826 * mad) < 1e-3,
			      "after %d values", i + 1);
	}
}
END_TEST

START_TEST(counts_alarms_as_they_leave)
{
	float memory[2 * CAPACITY];
	struct triggers_window window;
	triggers_window_init(&window, memory, CAPACITY);
	for (int i = 0; i < CAPACITY; i++)
		triggers_window_insert(&window, i % 4 ? 1.0f : 3.0f, i % 4 == 0);
	ck_assert_uint_eq(window.alarmed, CAPACITY / 4);
	ck_assert(triggers_window_bimodal(&window));
	ck_assert(fabs(triggers_window_upper(&window) - 3) < 1e-6);
	ck_assert(fabs(triggers_window_longest_calm(&window) - 3) < 1e-6);
	for (int i = 0; i < CAPACITY; i++)
		triggers_window_insert(&window, 1.0f, 0);
	ck_assert_uint_eq(window.alarmed, 0);
	ck_assert(fabs(triggers_window_longest_calm(&window) - 1) < 1e-6);
}
END_TEST

START_TEST(empty_says_zero)
{
	float memory[2 * CAPACITY];
	struct triggers_window window;
	triggers_window_init(&window, memory, CAPACITY);
	ck_assert(fpclassify(triggers_window_median(&window)) == FP_ZERO);
	ck_assert(fpclassify(triggers_window_deviation(&window)) == FP_ZERO);
	ck_assert(fpclassify(triggers_window_longest_calm(&window)) == FP_ZERO);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("window_median");
	TCase *sorting = tcase_create("median and MAD equal those of a sort");
	tcase_add_test(sorting, matches_sorting);
	suite_add_tcase(suite, sorting);
	TCase *alarms = tcase_create("alarms are forgotten with their values");
	tcase_add_test(alarms, counts_alarms_as_they_leave);
	tcase_add_test(alarms, empty_says_zero);
	suite_add_tcase(suite, alarms);
	return test_run(suite);
}
