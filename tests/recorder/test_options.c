/* SPDX-License-Identifier: Apache-2.0 */
#include "command.h"

#include <errno.h>
#include <stdlib.h>

#include "support.h"

struct fields {
	bool json;
	const char *from;
	struct option_texts sets;
	int64_t count, last_ns, size_bytes;
};

static const struct option_row rows[] = {
	OPTION_ROW_FLAG('j', "json", struct fields, json, "print JSON"),
	OPTION_ROW('f', "from", "FILE", OPTION_TEXT, struct fields, from, "where from"),
	OPTION_ROW('s', "set", "KEY=VALUE", OPTION_TEXTS, struct fields, sets, "set"),
	OPTION_ROW_BOUND('n', "count", "N", OPTION_NUMBER, struct fields, count, 1, 10, "how many"),
	OPTION_ROW(0, "last", "TIME", OPTION_DURATION, struct fields, last_ns, "how long"),
	OPTION_ROW(0, "size", "SIZE", OPTION_BYTES, struct fields, size_bytes, "how large"),
	OPTION_ROWS_END,
};

enum { WORDS_MAX = 64 };

/* Parses the words of `line`; what was printed is in `said`. */
struct outcome {
	int result;
	struct fields fields;
	struct options_result parsed;
	char said[512];
	char words[1024];
	char *argv[WORDS_MAX + 1];
};

static void parse(struct outcome *out, bool stop, const char *line)
{
	*out = (struct outcome){0};
	snprintf(out->words, sizeof(out->words), "%s", line);
	int argc = 0;
	for (char *word = strtok(out->words, " "); word && argc < WORDS_MAX; word = strtok(NULL, " "))
		out->argv[argc++] = word;
	FILE *errors = fmemopen(out->said, sizeof(out->said), "w");
	out->result = options_parse(rows, "driverec show", stop, argc, out->argv, &out->fields, errors,
				    &out->parsed);
	fclose(errors);
}

START_TEST(all_kinds)
{
	struct outcome out;
	parse(&out, false,
	      "show -j 7f3a --from=a.json --set a=1 -sb=2 -n 3 more --last 2min --size 16MiB --config c");
	assert_ok(out.result);
	ck_assert(out.fields.json);
	ck_assert_str_eq(out.fields.from, "a.json");
	ck_assert_int_eq(out.fields.sets.count, 2);
	ck_assert_str_eq(out.fields.sets.text[1], "b=2");
	ck_assert_int_eq(out.fields.count, 3);
	ck_assert_int_eq(out.fields.last_ns, 120000000000);
	ck_assert_int_eq(out.fields.size_bytes, 16 << 20);
	ck_assert_str_eq(out.parsed.config_path, "c");
	ck_assert_int_eq(out.parsed.argc, 2);
	ck_assert_str_eq(out.parsed.argv[0], "7f3a");
	ck_assert_str_eq(out.parsed.argv[1], "more");
	ck_assert_ptr_null(out.parsed.argv[2]);
}
END_TEST

START_TEST(operands)
{
	struct outcome out;
	parse(&out, false, "show -- --json");
	assert_ok(out.result);
	ck_assert(!out.fields.json);
	ck_assert_str_eq(out.parsed.argv[0], "--json");
	parse(&out, true, "run -j python --count 99 -x");
	assert_ok(out.result);
	ck_assert(out.fields.json);
	ck_assert_int_eq(out.parsed.argc, 4);
	ck_assert_str_eq(out.parsed.argv[1], "--count");
	parse(&out, true, "run -- python");
	assert_ok(out.result);
	ck_assert_str_eq(out.parsed.argv[0], "python");
}
END_TEST

static const struct {
	const char *line, *said;
} mistakes[] = {
	{"show --form x", "driverec show: option '--form' is unknown; did you mean --from?\n"},
	{"show --zzzzzzzz=3", "driverec show: option '--zzzzzzzz' is unknown; see driverec show --help\n"},
	{"show -x", "driverec show: option '-x' is unknown; see driverec show --help\n"},
	{"show --count", "driverec show: option '--count' needs a value: N\n"},
	{"show -f", "driverec show: option '--from' needs a value: FILE\n"},
	{"show --json=1", "driverec show: option '--json' takes no value\n"},
	{"show -n x", "driverec show: option '--count': 'x' is not a whole number\n"},
	{"show -n 11", "driverec show: option '--count': '11' is not in 1 .. 10\n"},
	{"show --last 5", "driverec show: option '--last': '5' is not a time like 30s or 2min\n"},
	{"show --size 5", "driverec show: option '--size': '5' is not a size like 16MiB\n"},
};

START_TEST(mistake)
{
	struct outcome out;
	parse(&out, false, mistakes[_i].line);
	ck_assert_msg(out.result == -EINVAL, "%s", mistakes[_i].line);
	ck_assert_str_eq(out.said, mistakes[_i].said);
}
END_TEST

START_TEST(too_many)
{
	char line[1024] = "show";
	struct outcome out;
	for (int i = 0; i < OPTION_TEXTS_MAX + 1; i++)
		strcat(line, " -sa=1");
	parse(&out, false, line);
	ck_assert_int_eq(out.result, -EINVAL);
	ck_assert_str_eq(out.said, "driverec show: option '--set' is given more than 32 times\n");
}
END_TEST

static char *printed(const struct command *command, void (*print)(const struct command *command, FILE *out))
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	print(command, out);
	fclose(out);
	return text;
}

/* A long name as roff has it: the dashes escaped. */
static void roff_name(const char *name, char *out)
{
	*out++ = '\\', *out++ = '-', *out++ = '\\', *out++ = '-';
	for (; *name; name++) {
		if (*name == '-')
			*out++ = '\\';
		*out++ = *name;
	}
	*out = 0;
}

static void check_rows(const struct option_row *row, const char *help, const char *man)
{
	for (; row && row->long_name; row++) {
		char name[128];
		snprintf(name, sizeof(name), "--%s", row->long_name);
		ck_assert_msg(strstr(help, name) != NULL, "--help lacks %s", name);
		roff_name(row->long_name, name);
		ck_assert_msg(strstr(man, name) != NULL, "the man page lacks %s", name);
		ck_assert_int_eq(row->value == NULL, row->kind == OPTION_FLAG);
	}
}

START_TEST(pages_hold_tables)
{
	char *main_help = printed(NULL, command_print_help);
	char *main_man = printed(NULL, command_print_man);
	ck_assert_ptr_nonnull(commands[0]);
	for (const struct command *const *at = commands; *at; at++) {
		char *help = printed(*at, command_print_help);
		char *man = printed(*at, command_print_man);
		check_rows((*at)->options, help, man);
		check_rows(options_common(), help, man);
		ck_assert_msg((*at)->hidden || strstr(main_help, (*at)->summary), "--help lacks %s",
			      (*at)->name);
		ck_assert_msg((*at)->hidden || strstr(main_man, (*at)->name), "the man page lacks %s",
			      (*at)->name);
		ck_assert_msg((*at)->options_bytes <= OPTIONS_BYTES_MAX, "%s has too many options",
			      (*at)->name);
		ck_assert_ptr_eq(command_find((*at)->name), *at);
		free(help);
		free(man);
	}
	free(main_help);
	free(main_man);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("options");
	TCase *tcase = tcase_create("values of every kind");
	tcase_add_test(tcase, all_kinds);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("operands");
	tcase_add_test(tcase, operands);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("mistakes are told in one line");
	tcase_add_loop_test(tcase, mistake, 0, sizeof(mistakes) / sizeof(mistakes[0]));
	tcase_add_test(tcase, too_many);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("help and man pages hold the tables");
	tcase_add_test(tcase, pages_hold_tables);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
