/* SPDX-License-Identifier: Apache-2.0 */
#include "incidents/incident.h"
#include "support.h"

#define S INT64_C(1000000000)

static const struct incidents_sizing defaults = {
	.pre_steps = 5, .post_steps = 2, .pre_min_ns = 10 * S, .post_max_ns = 30 * S, .bytes_max = 1 << 20};

static struct incident with_firing(int64_t t0_ns, int64_t detected_ns, int ongoing)
{
	struct incident incident = {.n_firings = 1};

	incident.firing[0].t0_ns = t0_ns;
	incident.firing[0].until_ns = incident.firing[0].detected_ns = detected_ns;
	incident.firing[0].ongoing = ongoing;
	return incident;
}

START_TEST(in_steps_with_a_least_and_a_most)
{
	/* step, begin before t0, end after it was noticed */
	static const int64_t rows[][3] = {
		{1 * S, 10 * S, 2 * S},
		{4 * S, 20 * S, 8 * S},
		{60 * S, 300 * S, 30 * S},
		{0, 10 * S, 5 * S},
	};
	struct incident incident = with_firing(1000 * S, 1001 * S, 0);

	ck_assert_uint_eq(incident_size(&incident, &defaults, rows[_i][0], 0), 1);
	ck_assert_int_eq(incident.window[0].a_ns, 1000 * S - rows[_i][1]);
	ck_assert_int_eq(incident.window[0].b_ns, 1001 * S + rows[_i][2]);
}
END_TEST

START_TEST(a_late_stall_has_two)
{
	struct incident incident = with_firing(1000 * S, 1180 * S, 1);

	ck_assert_uint_eq(incident_size(&incident, &defaults, 4 * S, 0), 2);
	ck_assert_int_eq(incident.window[0].a_ns, 980 * S);
	ck_assert_int_eq(incident.window[0].b_ns, 1008 * S);
	ck_assert_int_eq(incident.window[1].a_ns, 1180 * S);
	ck_assert_int_eq(incident.window[1].b_ns, 1188 * S);
}
END_TEST

START_TEST(an_early_stall_has_one)
{
	struct incident incident = with_firing(1000 * S, 1012 * S, 1);

	ck_assert_uint_eq(incident_size(&incident, &defaults, 4 * S, 0), 1);
	ck_assert_int_eq(incident.window[0].a_ns, 980 * S);
	ck_assert_int_eq(incident.window[0].b_ns, 1020 * S);
}
END_TEST

START_TEST(last_is_exact)
{
	struct incident incident = with_firing(1000 * S, 1000 * S, 0);

	ck_assert_uint_eq(incident_size(&incident, &defaults, 4 * S, 120 * S), 1);
	ck_assert_int_eq(incident.window[0].a_ns, 880 * S);
	ck_assert_int_eq(incident.window[0].b_ns, 1000 * S);
}
END_TEST

START_TEST(joining_is_bounded)
{
	struct incident incident = with_firing(1000 * S, 1000 * S, 0);
	struct triggers_firing later = {.detected_ns = 1005 * S};

	incident_size(&incident, &defaults, 1 * S, 0);
	incident_extend(&incident, &later);
	ck_assert_int_eq(incident.window[0].b_ns, 1007 * S);
	later.detected_ns = 100000 * S;
	incident_extend(&incident, &later);
	ck_assert_int_eq(incident.window[0].b_ns, 990 * S + 120 * S);
	later.detected_ns = 1;
	incident_extend(&incident, &later);
	ck_assert_int_eq(incident.window[0].b_ns, 990 * S + 120 * S);
}
END_TEST

START_TEST(extremes_do_not_overflow)
{
	struct incident incident = with_firing(INT64_MAX - 1, INT64_MAX, 1);

	incident_size(&incident, &defaults, INT64_MAX, 0);
	ck_assert_int_le(incident.window[0].a_ns, incident.window[0].b_ns);
	incident = with_firing(INT64_MIN + 1, INT64_MIN + 2, 0);
	incident_size(&incident, &defaults, INT64_MAX, INT64_MAX);
	ck_assert_int_eq(incident.window[0].a_ns, INT64_MIN);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("incident windows");
	TCase *sizes = tcase_create("sizes"), *stalls = tcase_create("stalls"),
	      *joins = tcase_create("joining");

	tcase_add_loop_test(sizes, in_steps_with_a_least_and_a_most, 0, 4);
	tcase_add_test(sizes, last_is_exact);
	tcase_add_test(sizes, extremes_do_not_overflow);
	tcase_add_test(stalls, a_late_stall_has_two);
	tcase_add_test(stalls, an_early_stall_has_one);
	tcase_add_test(joins, joining_is_bounded);
	suite_add_tcase(suite, sizes);
	suite_add_tcase(suite, stalls);
	suite_add_tcase(suite, joins);
	return test_run(suite);
}
