/* SPDX-License-Identifier: Apache-2.0 */
#include "hooks/exec_hook.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support.h"

#define SECOND INT64_C(1000000000)

/* A result that outlives the call. */
struct kept {
	int calls;
	struct process_result result;
	char output[PROCESS_OUTPUT_MAX + 1];
	char failure[PROCESS_FAILURE_TEXT];
};

static void on_done(void *context, const struct process_result *result)
{
	struct kept *kept = context;
	char text[PROCESS_FAILURE_TEXT];
	const char *failure = process_failure(result, text);
	kept->calls++;
	kept->result = *result;
	ck_assert_uint_le(result->output_bytes, PROCESS_OUTPUT_MAX);
	memcpy(kept->output, result->output, result->output_bytes + 1);
	snprintf(kept->failure, sizeof(kept->failure), "%s", failure ? failure : "");
}

static uv_loop_t *new_loop(void)
{
	static uv_loop_t loop;
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	return &loop;
}

/* Runs to the end; nothing may be left in the loop. */
static const struct kept *run(const struct process_options *options)
{
	static struct kept kept;
	struct process *process;
	uv_loop_t *loop = new_loop();
	memset(&kept, 0, sizeof(kept));
	assert_ok(process_start(loop, options, on_done, &kept, &process));
	ck_assert_int_eq(kept.calls, 0);
	uv_run(loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(loop), 0);
	ck_assert_int_eq(kept.calls, 1);
	return &kept;
}

static const struct kept *run_shell(const char *script, int64_t timeout_ns)
{
	const char *const argv[] = {"sh", "-c", script, NULL};
	struct process_options options = {.argv = argv, .timeout_ns = timeout_ns};
	return run(&options);
}

START_TEST(arguments_input_and_environment_arrive)
{
	const char *const argv[] = {"sh", "-c",  "cat; echo \"$1 $2 $GIVEN $HOME\"; echo bad >&2",
				    "x",  "a b", NULL};
	const char *const environment[] = {"GIVEN=new value", "HOME=/elsewhere", NULL};
	setenv("GIVEN", "old", 1);
	struct process_options options = {.argv = argv,
					  .last_argument = "/m.json; exit 3",
					  .environment = environment,
					  .input = "{}\n",
					  .input_bytes = 3,
					  .timeout_ns = 10 * SECOND};
	const struct kept *kept = run(&options);
	ck_assert_str_eq(kept->output, "{}\na b /m.json; exit 3 new value /elsewhere\nbad\n");
	ck_assert_str_eq(kept->failure, "");
	ck_assert_int_gt(kept->result.taken_ns, 0);
	ck_assert(!kept->result.output_cut);
}
END_TEST

START_TEST(large_input_that_nobody_reads_is_no_problem)
{
	size_t bytes = 8 << 20;
	char *input = malloc(bytes);
	memset(input, 'x', bytes);
	const char *const argv[] = {"sh", "-c", "exec 0<&-; echo ok", NULL};
	struct process_options options = {
		.argv = argv, .input = input, .input_bytes = bytes, .timeout_ns = 10 * SECOND};
	const struct kept *kept = run(&options);
	ck_assert_str_eq(kept->output, "ok\n");
	ck_assert_str_eq(kept->failure, "");
	const char *const count[] = {"wc", "-c", NULL};
	options.argv = count;
	ck_assert_str_eq(run(&options)->output, "8388608\n");
	free(input);
}
END_TEST

START_TEST(failures_are_results)
{
	ck_assert_str_eq(run_shell("echo no; exit 3", 10 * SECOND)->failure, "exit status 3");
	const struct kept *kept = run_shell("kill -SEGV $$", 10 * SECOND);
	ck_assert_int_eq(kept->result.signal, SIGSEGV);
	ck_assert_str_eq(kept->failure, "killed by signal 11 (Segmentation fault)");
	const char *const argv[] = {"/nowhere/at/all", NULL};
	struct process_options options = {.argv = argv, .timeout_ns = SECOND};
	kept = run(&options);
	ck_assert_int_eq(kept->result.spawn_error, -ENOENT);
	ck_assert_str_eq(kept->failure, "cannot be started: No such file or directory");
	const char *const folder[] = {"/", NULL};
	options.argv = folder;
	ck_assert_int_eq(run(&options)->result.spawn_error, -EACCES);
	const char *const none[] = {NULL};
	options.argv = none;
	struct process *process;
	uv_loop_t *loop = new_loop();
	ck_assert_int_eq(process_start(loop, &options, on_done, NULL, &process), -EINVAL);
	uv_loop_close(loop);
}
END_TEST

START_TEST(one_that_hangs_gets_a_signal)
{
	const struct kept *kept = run_shell("echo begun; sleep 1000", SECOND / 5);
	ck_assert(kept->result.timed_out);
	ck_assert_int_eq(kept->result.signal, SIGTERM);
	ck_assert_str_eq(kept->output, "begun\n");
	ck_assert_str_eq(kept->failure, "did not end in time");
	ck_assert_int_lt(kept->result.taken_ns, 2 * SECOND);
}
END_TEST

static bool is_gone(void *context)
{
	return kill(*(pid_t *)context, 0) < 0 && errno == ESRCH;
}

START_TEST(one_that_ignores_it_is_killed_with_its_children)
{
	const struct kept *kept =
		run_shell("trap '' TERM; sleep 1000 & echo $!; wait; sleep 1000", SECOND / 5);
	ck_assert(kept->result.timed_out);
	ck_assert_int_eq(kept->result.signal, SIGKILL);
	ck_assert_int_ge(kept->result.taken_ns, 2 * SECOND);
	pid_t child = (pid_t)strtol(kept->output, NULL, 10);
	ck_assert_int_gt(child, 1);
	ck_assert(test_wait(is_gone, &child, 3000));
}
END_TEST

START_TEST(a_child_that_goes_on_does_not_hold_us)
{
	const struct kept *kept = run_shell("sleep 3 & echo $!", 60 * SECOND);
	ck_assert_str_eq(kept->failure, "");
	ck_assert_int_lt(kept->result.taken_ns, 3 * SECOND);
	pid_t child = (pid_t)strtol(kept->output, NULL, 10);
	ck_assert_int_eq(kill(child, SIGKILL), 0);
}
END_TEST

START_TEST(a_flood_is_cut)
{
	const char *const argv[] = {"yes", NULL};
	struct process_options options = {.argv = argv, .timeout_ns = 30 * SECOND};
	const struct kept *kept = run(&options);
	ck_assert_uint_eq(kept->result.output_bytes, PROCESS_OUTPUT_MAX);
	ck_assert(kept->result.output_cut);
	ck_assert(kept->result.signal == SIGPIPE || kept->result.exit_status != 0);
	ck_assert(!kept->result.timed_out);
	/* Much, but not without end, is read to its end. */
	kept = run_shell("head -c 3000000 /dev/zero; exit 5", 30 * SECOND);
	ck_assert_uint_eq(kept->result.output_bytes, PROCESS_OUTPUT_MAX);
	ck_assert_str_eq(kept->failure, "exit status 5");
}
END_TEST

START_TEST(our_descriptors_stay_ours)
{
	int fd = open("/dev/null", O_RDONLY); /* without O_CLOEXEC, as some library may */
	ck_assert_int_ge(fd, 3);
	const char *const argv[] = {"ls", "/proc/self/fd", NULL};
	struct process_options options = {.argv = argv, .timeout_ns = 10 * SECOND};
	/* 3 is ls's own, of the folder it lists. */
	ck_assert_str_eq(run(&options)->output, "0\n1\n2\n3\n");
	close(fd);
}
END_TEST

/* Hooks. */

struct told {
	int calls;
	char text[4096];
	struct exec_hook *tell_again, *to_free;
};

static void on_outcome(void *context, const struct exec_hook_outcome *outcome)
{
	struct told *told = context;
	size_t used = strlen(told->text);
	told->calls++;
	snprintf(told->text + used, sizeof(told->text) - used, "%s %s %s: %s;", outcome->hook, outcome->event,
		 outcome->incident, outcome->failure ? outcome->failure : "ok");
	if (told->tell_again) {
		struct exec_hook *hook = told->tell_again;
		told->tell_again = NULL;
		assert_ok(exec_hook_tell(hook, &(struct exec_hook_alert){.event = "again"}));
	}
	exec_hook_free(told->to_free);
	told->to_free = NULL;
}

static struct exec_hook *new_hook(uv_loop_t *loop, const char *script, struct told *told)
{
	const char *const argv[] = {"sh", "-c", script, "hook", NULL};
	struct exec_hook *hook;
	assert_ok(exec_hook_new(loop, "pager", argv, 10 * SECOND, on_outcome, told, &hook));
	return hook;
}

static void run_and_close(uv_loop_t *loop, struct exec_hook *hook)
{
	uv_run(loop, UV_RUN_DEFAULT);
	exec_hook_free(hook);
	uv_run(loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(loop), 0);
}

START_TEST(a_hook_is_told_everything_in_order)
{
	const char *log = test_path(test_folder(), "log");
	setenv("HOOK_LOG", log, 1);
	struct told told = {0};
	uv_loop_t *loop = new_loop();
	struct exec_hook *hook = new_hook(
		loop,
		"test $DRIVEREC_EVENT = opened && sleep 0.2; "
		"echo $DRIVEREC_EVENT $DRIVEREC_INCIDENT $DRIVEREC_MANIFEST $DRIVEREC_FOLDER "
		"$DRIVEREC_SEVERITY "
		"$DRIVEREC_TRIGGER $DRIVEREC_JOB $1 $(cat) >> $HOOK_LOG; test $DRIVEREC_EVENT != ready",
		&told);
	const char *events[] = {"opened", "ready", "resolved"};
	for (int i = 0; i < 3; i++) {
		char json[32];
		int bytes = snprintf(json, sizeof(json), "{\"n\":%d}", i);
		struct exec_hook_alert alert = {.event = events[i],
						.incident = "4f",
						.manifest = "/m",
						.folder = "/f",
						.severity = "warn",
						.trigger = "stall",
						.job = "j",
						.json = json,
						.json_bytes = (size_t)bytes};
		assert_ok(exec_hook_tell(hook, &alert));
	}
	ck_assert_uint_eq(exec_hook_busy(hook), 3);
	run_and_close(loop, hook);
	ck_assert_str_eq(told.text,
			 "pager opened 4f: ok;pager ready 4f: exit status 1;pager resolved 4f: ok;");
	char *text = test_read_file(log, NULL);
	ck_assert_str_eq(
		text, "opened 4f /m /f warn stall j /m {\"n\":0}\nready 4f /m /f warn stall j /m {\"n\":1}\n"
		      "resolved 4f /m /f warn stall j /m {\"n\":2}\n");
	free(text);
}
END_TEST

START_TEST(a_full_queue_refuses)
{
	struct told told = {0};
	uv_loop_t *loop = new_loop();
	struct exec_hook *hook = new_hook(loop, "true", &told);
	int taken = 0, rc;
	while ((rc = exec_hook_tell(hook, &(struct exec_hook_alert){.event = "e"})) == 0)
		taken++;
	ck_assert_int_eq(rc, -ENOBUFS);
	ck_assert_int_eq(taken, EXEC_HOOK_QUEUE_MAX + 1);
	run_and_close(loop, hook);
	ck_assert_int_eq(told.calls, taken);
}
END_TEST

START_TEST(a_hook_may_be_told_or_freed_from_its_outcome)
{
	struct told told = {0};
	uv_loop_t *loop = new_loop();
	struct exec_hook *hook = new_hook(loop, "true", &told);
	told.tell_again = hook;
	assert_ok(exec_hook_tell(hook, &(struct exec_hook_alert){.event = "first"}));
	uv_run(loop, UV_RUN_DEFAULT);
	ck_assert_str_eq(told.text, "pager first : ok;pager again : ok;");
	ck_assert_uint_eq(exec_hook_busy(hook), 0);
	told.to_free = hook;
	assert_ok(exec_hook_tell(hook, &(struct exec_hook_alert){.event = "last"}));
	assert_ok(exec_hook_tell(hook, &(struct exec_hook_alert){.event = "never"}));
	run_and_close(loop, NULL);
	ck_assert_int_eq(told.calls, 3);
}
END_TEST

START_TEST(freeing_kills_what_runs)
{
	struct told told = {0};
	uv_loop_t *loop = new_loop();
	struct exec_hook *hook = new_hook(loop, "sleep 1000", &told);
	assert_ok(exec_hook_tell(hook, &(struct exec_hook_alert){.event = "a"}));
	assert_ok(exec_hook_tell(hook, &(struct exec_hook_alert){.event = "b"}));
	uint64_t start = uv_hrtime();
	exec_hook_free(hook);
	run_and_close(loop, NULL);
	ck_assert_uint_lt(uv_hrtime() - start, (uint64_t)3 * SECOND);
	ck_assert_int_eq(told.calls, 0);
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
	Suite *suite = suite_create("process");
	add_case(suite, "what it gets", arguments_input_and_environment_arrive);
	add_case(suite, "unread input", large_input_that_nobody_reads_is_no_problem);
	add_case(suite, "failures", failures_are_results);
	add_case(suite, "hangs", one_that_hangs_gets_a_signal);
	add_case(suite, "ignores SIGTERM", one_that_ignores_it_is_killed_with_its_children);
	add_case(suite, "background child", a_child_that_goes_on_does_not_hold_us);
	add_case(suite, "flood", a_flood_is_cut);
	add_case(suite, "descriptors", our_descriptors_stay_ours);
	add_case(suite, "hook order", a_hook_is_told_everything_in_order);
	add_case(suite, "hook queue", a_full_queue_refuses);
	add_case(suite, "hook reentered", a_hook_may_be_told_or_freed_from_its_outcome);
	add_case(suite, "hook freed", freeing_kills_what_runs);
	return test_run(suite);
}
