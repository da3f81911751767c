/* SPDX-License-Identifier: Apache-2.0 */
#include "units.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>

#include "support.h"
#include "suggest.h"

static const struct {
	const char *text;
	int result;
	int64_t value;
} durations[] = {
	{"10 s", 0, 10000000000},
	{"10s", 0, 10000000000},
	{"1.5 s", 0, 1500000000},
	{"2 min", 0, 120000000000},
	{"2m", 0, 120000000000},
	{"30 d", 0, 2592000000000000},
	{"0", 0, 0},
	{"0 s", 0, 0},
	{"  7 ms  ", 0, 7000000},
	{"0.5 ns", -EINVAL, 0},
	{"5", -EINVAL, 0},
	{"", -EINVAL, 0},
	{"s", -EINVAL, 0},
	{"-1 s", -EINVAL, 0},
	{"1 S", -EINVAL, 0},
	{"1 s 2", -EINVAL, 0},
	{"1e3 s", -EINVAL, 0},
	{"1. s", -EINVAL, 0},
	{"1,5 s", -EINVAL, 0},
	{"0x10 s", -EINVAL, 0},
	{"9223372036854775807 ns", 0, INT64_MAX},
	{"9223372036854775808 ns", -ERANGE, 0},
	{"106752 d", -ERANGE, 0},
	{"1.000000000000000000 s", 0, 1000000000},
	{"0.1234567891 s", -EINVAL, 0},
	{"99999999999999999999 s", -ERANGE, 0},
};

START_TEST(duration)
{
	int64_t ns = 42;
	int result = units_parse_duration(durations[_i].text, &ns);
	ck_assert_msg(result == durations[_i].result, "'%s': %d", durations[_i].text, result);
	ck_assert_msg(ns == (result < 0 ? 42 : durations[_i].value), "'%s': %ld", durations[_i].text,
		      (long)ns);
}
END_TEST

static const struct {
	const char *text;
	int result;
	int64_t value;
} sizes[] = {
	{"16 MiB", 0, 16 << 20},    {"16MiB", 0, 16 << 20},  {"64 KiB", 0, 64 << 10},
	{"1 kB", 0, 1000},          {"1 GB", 0, 1000000000}, {"0", 0, 0},
	{"1.5 KiB", 0, 1536},       {"0.3 B", -EINVAL, 0},   {"16 mib", -EINVAL, 0},
	{"1.0001 KiB", -EINVAL, 0}, {"16", -EINVAL, 0},      {"8388608 TiB", -ERANGE, 0},
};

START_TEST(bytes)
{
	int64_t value = 42;
	int result = units_parse_bytes(sizes[_i].text, &value);
	ck_assert_msg(result == sizes[_i].result, "'%s': %d", sizes[_i].text, result);
	ck_assert_msg(value == (result < 0 ? 42 : sizes[_i].value), "'%s': %ld", sizes[_i].text, (long)value);
}
END_TEST

START_TEST(shares_and_ratios)
{
	int64_t value;
	assert_ok(units_parse_percent("12 %", &value));
	ck_assert_int_eq(value, 120000);
	assert_ok(units_parse_percent("0.0001%", &value));
	ck_assert_int_eq(value, 1);
	ck_assert_int_eq(units_parse_percent("0.00001 %", &value), -EINVAL);
	ck_assert_int_eq(units_parse_percent("12", &value), -EINVAL);
	assert_ok(units_parse_decimal("1.2", &value));
	ck_assert_int_eq(value, 1200000);
	ck_assert_int_eq(units_parse_decimal("1.2 x", &value), -EINVAL);
	assert_ok(units_parse_integer("-5", &value));
	ck_assert_int_eq(value, -5);
	ck_assert_int_eq(units_parse_integer("5.5", &value), -EINVAL);
	assert_ok(units_parse_integer("5.0", &value));
}
END_TEST

START_TEST(amounts)
{
	struct units_amount amount;
	assert_ok(units_parse_amount("5 steps", &amount));
	ck_assert(amount.steps == 5 && amount.ns == 0);
	assert_ok(units_parse_amount("1 iteration", &amount));
	ck_assert(amount.steps == 1 && amount.ns == 0);
	assert_ok(units_parse_amount("2 s", &amount));
	ck_assert(amount.steps == 0 && amount.ns == 2000000000);
	ck_assert_int_eq(units_parse_amount("5", &amount), -EINVAL);
	ck_assert_int_eq(units_parse_amount("1.5 steps", &amount), -EINVAL);
}
END_TEST

START_TEST(tiers)
{
	struct units_tier tier;
	assert_ok(units_parse_tier("10 ms x 10 min", &tier));
	ck_assert(tier.bin_ns == 10000000 && tier.span_ns == 600000000000);
	ck_assert_int_eq(units_parse_tier("10 ms", &tier), -EINVAL);
	ck_assert_int_eq(units_parse_tier("7 s x 10 s", &tier), -EINVAL);
	ck_assert_int_eq(units_parse_tier("0 s x 10 s", &tier), -EINVAL);
	ck_assert_int_eq(units_parse_tier("10 s x 1 s", &tier), -EINVAL);
	struct units_of of;
	assert_ok(units_parse_of("3 of 5", &of));
	ck_assert(of.share == 3 && of.whole == 5);
	ck_assert_int_eq(units_parse_of("6 of 5", &of), -EINVAL);
	ck_assert_int_eq(units_parse_of("0 of 5", &of), -EINVAL);
	ck_assert_int_eq(units_parse_of("3 of", &of), -EINVAL);
}
END_TEST

START_TEST(round_trip)
{
	for (int i = 0; i < 10000; i++) {
		char text[UNITS_TEXT_MAX];
		int64_t value = (int64_t)(test_random() >> (1 + test_random_below(62))), back;
		assert_ok(units_parse_duration(units_print_duration(text, value), &back));
		ck_assert_int_eq(back, value);
		assert_ok(units_parse_bytes(units_print_bytes(text, value), &back));
		ck_assert_int_eq(back, value);
		assert_ok(units_parse_percent(units_print_percent(text, value / 10000), &back));
		ck_assert_int_eq(back, value / 10000);
		assert_ok(units_parse_decimal(units_print_decimal(text, value), &back));
		ck_assert_int_eq(back, value);
	}
}
END_TEST

START_TEST(any_locale)
{
	int64_t value;
	if (!setlocale(LC_ALL, "de_DE.UTF-8"))
		setlocale(LC_ALL, "");
	assert_ok(units_parse_duration("1.5 s", &value));
	ck_assert_int_eq(value, 1500000000);
	ck_assert_int_eq(units_parse_duration("1,5 s", &value), -EINVAL);
}
END_TEST

START_TEST(any_bytes)
{
	for (int i = 0; i < 20000; i++) {
		static const char letters[] = "0123456789. xofsminhdKMGTPiB%step-,e";
		char text[24];
		size_t length = test_random_below(sizeof(text) - 1);
		for (size_t n = 0; n < length; n++)
			text[n] = letters[test_random_below(sizeof(letters) - 1)];
		text[length] = 0;
		struct units_amount amount;
		struct units_tier tier;
		struct units_of of;
		int64_t value;
		if (units_parse_duration(text, &value) == 0)
			ck_assert_int_ge(value, 0);
		if (units_parse_bytes(text, &value) == 0)
			ck_assert_int_ge(value, 0);
		units_parse_amount(text, &amount);
		units_parse_tier(text, &tier);
		units_parse_of(text, &of);
		units_parse_integer(text, &value);
	}
}
END_TEST

static const char *nearest(const char *given)
{
	static const char *const known[] = {"show", "status", "incidents", "inspect", "config", NULL};
	struct suggest suggest;
	suggest_init(&suggest, given);
	for (int i = 0; known[i]; i++)
		suggest_offer(&suggest, known[i]);
	return suggest.best ? suggest.best : "-";
}

START_TEST(suggestions)
{
	ck_assert_str_eq(nearest("shwo"), "show");
	ck_assert_str_eq(nearest("stauts"), "status");
	ck_assert_str_eq(nearest("inc"), "incidents");
	ck_assert_str_eq(nearest("confg"), "config");
	ck_assert_str_eq(nearest("banana"), "-");
	ck_assert_str_eq(nearest(""), "-");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("units");
	TCase *tcase = tcase_create("durations");
	tcase_add_loop_test(tcase, duration, 0, sizeof(durations) / sizeof(durations[0]));
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("sizes");
	tcase_add_loop_test(tcase, bytes, 0, sizeof(sizes) / sizeof(sizes[0]));
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("shares, amounts and tiers");
	tcase_add_test(tcase, shares_and_ratios);
	tcase_add_test(tcase, amounts);
	tcase_add_test(tcase, tiers);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("printed and parsed back");
	tcase_add_test(tcase, round_trip);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("any locale, any bytes");
	tcase_add_test(tcase, any_locale);
	tcase_add_test(tcase, any_bytes);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("suggestions");
	tcase_add_test(tcase, suggestions);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
