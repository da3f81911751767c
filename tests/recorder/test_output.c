/* SPDX-License-Identifier: Apache-2.0 */
#include "output.h"

#include <stdlib.h>
#include <time.h>

#include "support.h"

static char text[OUTPUT_TEXT_MAX];

START_TEST(quantities)
{
	ck_assert_str_eq(output_count(text, 0), "0");
	ck_assert_str_eq(output_count(text, 999), "999");
	ck_assert_str_eq(output_count(text, 14203), "14,203");
	ck_assert_str_eq(output_count(text, UINT64_MAX), "18,446,744,073,709,551,615");
	ck_assert_str_eq(output_signed(text, INT64_MIN), "-9,223,372,036,854,775,808");
	ck_assert_str_eq(output_bytes(text, 900), "900 B");
	ck_assert_str_eq(output_bytes(text, 41 << 20), "41 MiB");
	ck_assert_str_eq(output_bytes(text, 1503238553), "1.40 GiB");
	ck_assert_str_eq(output_bytes(text, UINT64_MAX), "16.0 EiB");
	ck_assert_str_eq(output_share(text, 4, 1000), "0.4 %");
	ck_assert_str_eq(output_share(text, 1, 1), "100 %");
	ck_assert_str_eq(output_share(text, 999999, 1000000), "99.9 %");
	ck_assert_str_eq(output_share(text, 1, 0), "-");
}
END_TEST

START_TEST(durations)
{
	ck_assert_str_eq(output_duration(text, 0), "0 ns");
	ck_assert_str_eq(output_duration(text, 1620000000), "1.62 s");
	ck_assert_str_eq(output_duration(text, 9700000000), "9.70 s");
	ck_assert_str_eq(output_duration(text, 999999999), "1.00 s");
	ck_assert_str_eq(output_duration(text, 12345), "12.3 us");
	ck_assert_str_eq(output_duration(text, 125000000000), "2 min 05 s");
	ck_assert_str_eq(output_duration(text, 7500000000000), "2 h 05 min");
	ck_assert_str_eq(output_duration(text, 90000000000000), "1 d 1 h");
	ck_assert_str_eq(output_duration(text, -1620000000), "-1.62 s");
	output_duration(text, INT64_MIN);
}
END_TEST

START_TEST(times)
{
	setenv("TZ", "CET-1", 1);
	tzset();
	ck_assert_str_eq(output_time(text, 1796022764118456789), "2026-11-30 07:12:44.118 UTC");
	ck_assert_str_eq(output_iso(text, 1796022764118456789), "2026-11-30T07:12:44.118Z");
	ck_assert_str_eq(output_clock(text, 1796022764118456789), "07:12:44 (08:12:44 CET)");
	ck_assert_str_eq(output_time(text, -1), "1969-12-31 23:59:59.999 UTC");
}
END_TEST

START_TEST(table_columns)
{
	static const struct output_column columns[] = {{"ID", 0}, {"STEP", 1}, {"TRIGGER", 0}};
	struct output_table *table = output_table_new(columns, 3);
	char *printed = NULL;
	size_t bytes;
	output_table_cell(table, "%s", "7f3a");
	output_table_cell(table, "%d", 14190);
	output_table_cell(table, "stall");
	output_table_cell(table, "é");
	output_table_cell(table, "%d", 3);
	output_table_cell(table, "x");
	FILE *out = open_memstream(&printed, &bytes);
	assert_ok(output_table_print(table, out));
	fclose(out);
	ck_assert_str_eq(printed, "ID     STEP  TRIGGER\n"
				  "7f3a  14190  stall\n"
				  "é         3  x\n");
	free(printed);
	output_table_free(table);
	output_table_free(NULL);
}
END_TEST

START_TEST(json_digits)
{
	cJSON *document = cJSON_CreateObject();
	char *printed = NULL;
	size_t bytes;
	output_json_ns(document, "t0_ns", 1796022764118456789);
	output_json_count(document, "events", UINT64_MAX);
	output_json_signed(document, "rank", -1);
	output_json_text(document, "none", NULL);
	FILE *out = open_memstream(&printed, &bytes);
	assert_ok(output_json_print(document, out));
	fclose(out);
	ck_assert_str_eq(printed,
			 "{\n\t\"t0_ns\":\t\"1796022764118456789\",\n\t\"events\":\t18446744073709551615,\n"
			 "\t\"rank\":\t-1,\n\t\"none\":\tnull\n}\n");
	free(printed);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("output");
	TCase *tcase = tcase_create("quantities for people");
	tcase_add_test(tcase, quantities);
	tcase_add_test(tcase, durations);
	tcase_add_test(tcase, times);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("tables");
	tcase_add_test(tcase, table_columns);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("json keeps every digit");
	tcase_add_test(tcase, json_digits);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
