/* SPDX-License-Identifier: Apache-2.0 */
#include "hooks/collectors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "support.h"

#define SECOND INT64_C(1000000000)

struct kept {
	int calls;
	size_t count;
	struct collectors_result result[COLLECTORS_MAX];
};

static void on_done(void *context, const struct collectors_result *results, size_t count)
{
	struct kept *kept = context;
	kept->calls++;
	kept->count = count;
	memcpy(kept->result, results, count * sizeof(*results));
}

/* Runs `count` commands to the end. */
static struct kept run(const char *const *const *commands, size_t count, const char *folder, int64_t pid,
		       int64_t timeout_ns)
{
	struct kept kept = {0};
	struct collectors *collectors;
	uv_loop_t loop;
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	struct collectors_options options = {.commands = commands,
					     .count = count,
					     .timeout_ns = timeout_ns,
					     .pid = pid,
					     .rank = 3,
					     .incident = "ab12",
					     .folder = folder};
	assert_ok(collectors_start(&loop, &options, on_done, &kept, &collectors));
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	ck_assert_int_eq(kept.calls, 1);
	ck_assert_uint_eq(kept.count, count);
	return kept;
}

START_TEST(each_output_becomes_a_file)
{
	const char *folder = test_folder();
	const char *const echo[] = {
		"echo", "pid={pid} rank={rank}", "{incident}", "{folder}/x", "{other}{", "{pid", NULL};
	const char *const fails[] = {"/bin/sh", "-c", "echo half; exit 4", NULL};
	const char *const quiet[] = {"true", NULL};
	const char *const missing[] = {"no-such-command-here", NULL};
	const char *const *const commands[] = {echo, fails, quiet, missing};
	struct kept kept = run(commands, 4, folder, 77, 10 * SECOND);
	char expected[1024];
	snprintf(expected, sizeof(expected), "pid=77 rank=3 ab12 %s/x {other}{ {pid\n", folder);
	ck_assert_str_eq(kept.result[0].file, "collect-1-echo.txt");
	ck_assert_str_eq(kept.result[0].failure, "");
	char *text = test_read_file(test_path(folder, "collect-1-echo.txt"), NULL);
	ck_assert_str_eq(text, expected);
	free(text);
	ck_assert_str_eq(kept.result[1].failure, "exit status 4");
	text = test_read_file(test_path(folder, "collect-2-sh.txt"), NULL);
	ck_assert_str_eq(text, "half\n");
	free(text);
	ck_assert_str_eq(kept.result[2].file, "");
	ck_assert_str_eq(kept.result[3].failure, "cannot be started: No such file or directory");
}
END_TEST

START_TEST(the_list_says_what_was_run)
{
	const char *folder = test_folder();
	const char *const echo[] = {"echo", "{pid}", NULL};
	const char *const fails[] = {"false", NULL};
	const char *const *const commands[] = {echo, fails};
	run(commands, 2, folder, 5, 10 * SECOND);
	char *text = test_read_file(test_path(folder, "collectors.ndjson"), NULL);
	char *second = strchr(text, '\n');
	ck_assert_ptr_nonnull(second);
	*second++ = 0;
	cJSON *line = cJSON_Parse(text);
	ck_assert_str_eq(cJSON_GetArrayItem(cJSON_GetObjectItem(line, "command"), 1)->valuestring, "5");
	ck_assert_str_eq(cJSON_GetObjectItem(line, "file")->valuestring, "collect-1-echo.txt");
	ck_assert_ptr_null(cJSON_GetObjectItem(line, "failure"));
	ck_assert(cJSON_IsString(cJSON_GetObjectItem(line, "taken_ns")));
	cJSON_Delete(line);
	line = cJSON_Parse(second);
	ck_assert_str_eq(cJSON_GetObjectItem(line, "failure")->valuestring, "exit status 1");
	cJSON_Delete(line);
	free(text);
}
END_TEST

START_TEST(what_has_no_value_is_not_run)
{
	const char *folder = test_folder();
	const char *const needs_pid[] = {"kill", "-QUIT", "{pid}", NULL};
	const char *const *const commands[] = {needs_pid};
	struct kept kept = run(commands, 1, folder, 0, 10 * SECOND);
	ck_assert_str_eq(kept.result[0].failure, "not run: the pid or rank it asks for is not known");
	ck_assert_int_eq(access(test_path(folder, "collectors.ndjson"), R_OK), 0);
}
END_TEST

START_TEST(they_run_side_by_side_and_end_in_time)
{
	const char *folder = test_folder();
	const char *const sleeps[] = {"sh", "-c", "echo stack; exec sleep 1000", NULL};
	const char *const flood[] = {"yes", NULL};
	const char *const *const commands[] = {sleeps, sleeps, sleeps, flood};
	uint64_t start = uv_hrtime();
	struct kept kept = run(commands, 4, folder, 1, SECOND / 2);
	ck_assert_uint_lt(uv_hrtime() - start, (uint64_t)8 * SECOND);
	for (int i = 0; i < 3; i++) {
		ck_assert_str_eq(kept.result[i].failure, "did not end in time");
		ck_assert_uint_eq(kept.result[i].bytes, 6);
	}
	ck_assert(kept.result[3].cut);
	struct stat st;
	ck_assert_int_eq(stat(test_path(folder, "collect-4-yes.txt"), &st), 0);
	ck_assert_int_eq(st.st_size, COLLECTORS_OUTPUT_MAX);
}
END_TEST

START_TEST(a_folder_that_is_gone_is_a_result)
{
	const char *const echo[] = {"echo", "x", NULL};
	const char *const *const commands[] = {echo};
	struct kept kept = run(commands, 1, "/nowhere/at/all", 1, 10 * SECOND);
	ck_assert_str_eq(kept.result[0].file, "");
	ck_assert_str_eq(kept.result[0].failure, "output not kept: No such file or directory");
}
END_TEST

START_TEST(stopping_ends_them_with_what_there_is)
{
	const char *folder = test_folder();
	const char *const sleeps[] = {"sleep", "1000", NULL};
	const char *const *const commands[] = {sleeps, sleeps};
	struct kept kept = {0};
	struct collectors *collectors;
	uv_loop_t loop;
	uv_loop_init(&loop);
	struct collectors_options options = {
		.commands = commands, .count = 2, .timeout_ns = 1000 * SECOND, .rank = -1, .folder = folder};
	assert_ok(collectors_start(&loop, &options, on_done, &kept, &collectors));
	collectors_stop(collectors);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	ck_assert_int_eq(kept.calls, 1);
	ck_assert_str_eq(kept.result[1].failure, "killed by signal 9 (Killed)");
}
END_TEST

START_TEST(nothing_or_too_much_is_refused)
{
	const char *const echo[] = {"echo", NULL};
	const char *const *commands[COLLECTORS_MAX + 1];
	struct collectors *collectors;
	uv_loop_t loop;
	uv_loop_init(&loop);
	for (int i = 0; i <= COLLECTORS_MAX; i++)
		commands[i] = echo;
	struct collectors_options options = {.commands = commands, .folder = "/"};
	ck_assert_int_eq(collectors_start(&loop, &options, on_done, NULL, &collectors), -ENOENT);
	options.count = COLLECTORS_MAX + 1;
	ck_assert_int_eq(collectors_start(&loop, &options, on_done, NULL, &collectors), -E2BIG);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
}
END_TEST

static void add_case(Suite *suite, const char *name, const TTest *test)
{
	TCase *tcase = tcase_create(name);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, test);
	suite_add_tcase(suite, tcase);
}

int main(void)
{
	Suite *suite = suite_create("collectors");
	add_case(suite, "files", each_output_becomes_a_file);
	add_case(suite, "list", the_list_says_what_was_run);
	add_case(suite, "no value", what_has_no_value_is_not_run);
	add_case(suite, "timeout", they_run_side_by_side_and_end_in_time);
	add_case(suite, "no folder", a_folder_that_is_gone_is_a_result);
	add_case(suite, "stop", stopping_ends_them_with_what_there_is);
	add_case(suite, "refused", nothing_or_too_much_is_refused);
	return test_run(suite);
}
