/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon that finds a state it cannot read says which and why in one line, begins anew, and leaves one that it can. */
#include "daemon_child.h"

enum { HEAD_BYTES = 24 };

static char *state;
static size_t bytes;

static void run_once(void)
{
	const char *const argv[] = {"--", "true", NULL};
	unlink(test_path(folder, "run.log"));
	ck_assert_int_eq(wait_for(start_run(argv, -1)), 0);
}

static void expect(const char *words)
{
	size_t count;
	char *log = test_read_file(test_path(folder, "run.log"), &count);
	ck_assert_msg(!words == !strstr(log, "engine.anew"), "%s", log);
	ck_assert_msg(!words || strstr(log, words), "no \"%s\" in %s", words, log);
	free(log);
}

static void put(const char *with, size_t count)
{
	test_write_file(test_path(store_path, "engine.state"), with, count);
}

static void set_up_state(void)
{
	set_up();
	run_once();
	expect(NULL);
	state = test_read_file(test_path(store_path, "engine.state"), &bytes);
	ck_assert_uint_gt(bytes, 2 * HEAD_BYTES + 8);
}

static const struct {
	const char *what, *words;
	size_t kept; /* of a hundred */
	int changed; /* byte, from the end where negative; 0 = none */
} cases[] = {
	{"empty", "is damaged", 0, 0},
	{"a part of the head", "is damaged", 1, 0},
	{"half", "is damaged", 50, 0},
	{"all but a bit", "is damaged", 99, 0},
	{"a bit in the body", "is damaged", 100, -2},
	{"another file", "is damaged", 100, 1},
	{"the next version", "is of another version", 100, 7},
};

START_TEST(what_cannot_be_read_is_said)
{
	put(state, bytes);
	run_once();
	expect(NULL);
	if (cases[_i].changed)
		state[cases[_i].changed < 0 ? bytes - (size_t)-cases[_i].changed
					    : (size_t)cases[_i].changed] ^= 4;
	put(state, bytes * cases[_i].kept / 100);
	run_once();
	expect(cases[_i].words);
	run_once();
	expect(NULL);
	free(state);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("state files");
	TCase *files = tcase_create("what cannot be read");
	tcase_add_checked_fixture(files, set_up_state, NULL);
	tcase_set_timeout(files, 60);
	tcase_add_loop_test(files, what_cannot_be_read_is_said, 0, sizeof(cases) / sizeof(cases[0]));
	suite_add_tcase(suite, files);
	return test_run(suite);
}
