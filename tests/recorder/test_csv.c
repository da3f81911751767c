/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of a line: quotes, blanks, and what is refused. */
#include <errno.h>
#include <stdlib.h>

#include "csv.h"
#include "support.h"

enum { FIELDS = 4 };

static const struct {
	const char *line;
	int count;
	const char *field[FIELDS];
} lines[] = {
	{"", 1, {""}},
	{"a", 1, {"a"}},
	{"a,b", 2, {"a", "b"}},
	{",", 2, {"", ""}},
	{"a,,c,", 4, {"a", "", "c", ""}},
	{" a b ,\tc\r", 2, {"a b", "c"}},
	{"\"a,b\",c", 2, {"a,b", "c"}},
	{"\"\"", 1, {""}},
	{"\"\",\"\"", 2, {"", ""}},
	{" \" a \" , b", 2, {" a ", "b"}},
	{"\"say \"\"go\"\"\",x", 2, {"say \"go\"", "x"}},
	{"\"\"\"\"", 1, {"\""}},
	{"\"a\"\r", 1, {"a"}},
	{"a\"b,c\"d", 2, {"a\"b", "c\"d"}},
	{"a,b,c,d,e", -E2BIG, {NULL}},
	{"\"", -EBADMSG, {NULL}},
	{"\"a", -EBADMSG, {NULL}},
	{"\"a\"\"", -EBADMSG, {NULL}},
	{"\"a\"b,c", -EBADMSG, {NULL}},
	{"x,\"a\" b", -EBADMSG, {NULL}},
};

START_TEST(a_line_is_cut)
{
	/* Of its own length, so that a byte too many is seen. */
	char *line = strdup(lines[_i].line), *field[FIELDS];
	int count = csv_split(line, field, FIELDS);
	ck_assert_msg(count == lines[_i].count, "%s: %d", lines[_i].line, count);
	for (int i = 0; i < count; i++)
		ck_assert_str_eq(field[i], lines[_i].field[i]);
	free(line);
}
END_TEST

/* Whatever it is: no byte beyond the line, no more fields than there is room for. */
START_TEST(any_line_does_no_harm)
{
	static const char letters[] = "\",, a\t\r\"";
	for (int i = 0; i < 20000; i++) {
		size_t bytes = test_random_below(12);
		char *line = calloc(1, bytes + 1), *field[FIELDS];
		for (size_t n = 0; n < bytes; n++)
			line[n] = letters[test_random_below(sizeof(letters) - 1)];
		int count = csv_split(line, field, FIELDS);
		ck_assert_int_le(count, FIELDS);
		for (int n = 0; n < count; n++)
			ck_assert(field[n] >= line && field[n] + strlen(field[n]) <= line + bytes);
		free(line);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("csv");
	TCase *tcase = tcase_create("lines");
	tcase_add_loop_test(tcase, a_line_is_cut, 0, sizeof(lines) / sizeof(lines[0]));
	tcase_add_test(tcase, any_line_does_no_harm);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
