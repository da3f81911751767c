/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real daemon in a child, as `driverec run` starts it, and real producers in others. This program is the job of
 * `run -- CMD` as well: started with TEST_JOB set it records, and does what that says.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <driverec/driverec.h>
#include <reducer/tiers.h>

#include "daemon_child.h"
#include "incidents/manifest.h"
#include "incidents/store.h"

/* The kept incident of a trigger. */
struct wanted {
	const char *trigger;
	struct incidents_entry entry;
	unsigned count;
};

static bool is_kept(void *context)
{
	struct wanted *wanted = context;
	struct incidents_store *store;
	struct incidents_entry *entries;
	size_t count;
	if (incidents_store_open(store_path, false, &store) < 0)
		return false;
	wanted->count = 0;
	if (incidents_store_list(store, &entries, &count) == 0) {
		for (size_t i = 0; i < count; i++) {
			if (!entries[i].readable || strcmp(entries[i].trigger, wanted->trigger) != 0)
				continue;
			wanted->entry = entries[i];
			wanted->count++;
		}
		free(entries);
	}
	incidents_store_free(store);
	return wanted->count > 0;
}

static char *evidence_of(const struct wanted *wanted)
{
	struct incidents_store *store;
	cJSON *manifest;
	assert_ok(incidents_store_open(store_path, false, &store));
	assert_ok(incident_manifest_read(store, wanted->entry.folder, &manifest));
	char *text = strdup(cJSON_GetStringValue(cJSON_GetObjectItem(manifest, "evidence")));
	cJSON_Delete(manifest);
	incidents_store_free(store);
	return text;
}

static void write_steps(drec *rec, unsigned count, int ms)
{
	const struct timespec pause = {.tv_nsec = ms * 1000000};
	for (unsigned i = 0; i < count; i++) {
		drec_step_begin(rec, i, 0);
		drec_scope scope = drec_begin(rec, drec_name(rec, "load"));
		nanosleep(&pause, NULL);
		drec_end(rec, scope);
		drec_step_end(rec);
	}
}

/* What this program does as a job. */
/* Fills a small ring several times a second. */
static void chat(drec *rec)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	uint32_t name = drec_name(rec, "chat");
	for (;;) {
		for (int i = 0; i < 60; i++) {
			drec_time now = drec_now(rec);
			drec_span(rec, 0, name, now, now + 1);
		}
		nanosleep(&pause, NULL);
	}
}

static int be_job(const char *what)
{
	drec *rec = drec_open(NULL);
	/* For tests/torture/kill_daemon.sh. */
	if (strcmp(what, "runs") == 0)
		write_steps(rec, 1000000, 5);
	if (strcmp(what, "chats") == 0)
		chat(rec);
	write_steps(rec, 5, 5);
	if (strcmp(what, "killed") == 0) {
		drec_begin(rec, drec_name(rec, "all_reduce"));
		raise(SIGKILL);
	}
	if (strcmp(what, "fails") == 0)
		return 3;
	if (strcmp(what, "asks") == 0)
		drec_trigger(rec, "loss is NaN");
	drec_close(rec);
	return rec ? 0 : 9;
}

static const struct {
	const char *argv[6];
	int status;
} commands_run[] = {
	{{"--", "true"}, 0},
	{{"--", "false"}, 1},
	{{"--", "sh", "-c", "exit 42"}, 42},
	{{"sh", "-c", "exit 9"}, 9},
	{{"--", "sh", "-c", "kill -KILL $$"}, 137},
	{{"--", "sh", "-c", "kill -SEGV $$"}, 139},
	{{"--", "/nowhere/at/all"}, 127},
	{{"--", "/etc/passwd"}, 126},
	{{"--", "sh", "-c", "test \"$DRIVEREC_RUN_DIR\" && test \"$DRIVEREC_JOB\""}, 0},
};

START_TEST(run_returns_the_status_of_the_command)
{
	ck_assert_int_eq(wait_for(start_run(commands_run[_i].argv, -1)), commands_run[_i].status);
}
END_TEST

START_TEST(run_leaves_input_and_output_alone)
{
	const char *const argv[] = {"--quiet", "--", "sh", "-c", "cat > \"$OUT\"", NULL};
	int ends[2];
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	setenv("OUT", test_path(folder, "out"), 1);
	pid_t pid = start_run(argv, ends[0]);
	close(ends[0]);
	ck_assert_int_eq(write(ends[1], "line\n", 5), 5);
	close(ends[1]);
	ck_assert_int_eq(wait_for(pid), 0);
	size_t count;
	char *text = test_read_file(test_path(folder, "out"), &count);
	ck_assert_str_eq(text, "line\n");
	free(text);
	/* --quiet: nothing of ours was said on its terminal. */
	text = test_read_file(test_path(folder, "run.log"), &count);
	ck_assert_str_eq(text, "");
	free(text);
}
END_TEST

static bool file_is_there(void *context)
{
	return access(context, F_OK) == 0;
}

static const int passed_on[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};

START_TEST(run_passes_signals_on)
{
	char script[256], *ready = strdup(test_path(folder, "ready"));
	snprintf(script, sizeof(script),
		 "trap 'exit 5' %d; : > \"$READY\"; n=0; while [ $n -lt 600 ]; do sleep 0.05; n=$((n+1)); done; exit 6",
		 passed_on[_i]);
	const char *const argv[] = {"--", "sh", "-c", script, NULL};
	setenv("READY", ready, 1);
	pid_t pid = start_run(argv, -1);
	ck_assert(test_wait(file_is_there, ready, SECONDS_30));
	kill(pid, passed_on[_i]);
	ck_assert_int_eq(wait_for(pid), 5);
	free(ready);
}
END_TEST

START_TEST(run_runs_the_command_where_it_cannot_record)
{
	const char *const argv[] = {"--", "sh", "-c", "exit 4", NULL};
	test_write_file(store_path, "no folder", 9);
	ck_assert_int_eq(wait_for(start_run(argv, -1)), 4);
	size_t count;
	char *text = test_read_file(test_path(folder, "run.log"), &count);
	ck_assert_ptr_nonnull(strstr(text, "not recording"));
	ck_assert_ptr_eq(strchr(text, '\n'), text + count - 1);
	free(text);
}
END_TEST

START_TEST(a_second_daemon_of_a_store_says_who_has_it)
{
	static const char *const none[] = {NULL};
	pid_t first = start_daemon();
	ck_assert_int_eq(wait_for(start_run(none, -1)), 1);
	size_t count;
	char *text = test_read_file(test_path(folder, "run.log"), &count), pid[32];
	snprintf(pid, sizeof(pid), "process %d", (int)first);
	ck_assert_ptr_nonnull(strstr(text, pid));
	free(text);
	stop_daemon(first);
	ck_assert(!answers(NULL));
}
END_TEST

START_TEST(a_job_that_is_killed_is_a_crash_that_alarms)
{
	const char *const argv[] = {"--", self, NULL};
	struct wanted wanted = {.trigger = "crash"};
	setenv("TEST_JOB", "killed", 1);
	ck_assert_int_eq(wait_for(start_run(argv, -1)), 137);
	ck_assert(is_kept(&wanted));
	ck_assert_uint_eq(wanted.count, 1);
	ck_assert_int_eq(wanted.entry.severity, TRIGGERS_CRITICAL);
	char *evidence = evidence_of(&wanted);
	ck_assert_msg(strstr(evidence, "signal 9"), "%s", evidence);
	ck_assert_msg(strstr(evidence, "inside \"all_reduce\""), "%s", evidence);
	free(evidence);
}
END_TEST

START_TEST(a_job_that_fails_is_a_crash_and_one_that_is_told_to_end_is_none)
{
	const char *const argv[] = {"--", self, NULL};
	struct wanted wanted = {.trigger = "crash"};
	setenv("TEST_JOB", "fails", 1);
	ck_assert_int_eq(wait_for(start_run(argv, -1)), 3);
	ck_assert(is_kept(&wanted));
	ck_assert_uint_eq(wanted.count, 1);
	setenv("TEST_JOB", "closes", 1);
	ck_assert_int_eq(wait_for(start_run(argv, -1)), 0);
	ck_assert(is_kept(&wanted));
	ck_assert_uint_eq(wanted.count, 1);
}
END_TEST

START_TEST(a_job_may_ask_for_an_incident)
{
	const char *const argv[] = {"--", self, NULL};
	struct wanted wanted = {.trigger = "manual"};
	setenv("TEST_JOB", "asks", 1);
	ck_assert_int_eq(wait_for(start_run(argv, -1)), 0);
	ck_assert(is_kept(&wanted));
	char *evidence = evidence_of(&wanted);
	ck_assert_msg(strstr(evidence, "loss is NaN"), "%s", evidence);
	free(evidence);
}
END_TEST

START_TEST(sigusr1_and_http_make_incidents)
{
	struct wanted wanted = {.trigger = "manual"};
	struct http_client *client;
	cJSON *answer;
	long status;
	pid_t pid = start_daemon();
	drec *rec = open_ring();
	write_steps(rec, 5, 5);
	kill(pid, SIGUSR1);
	ck_assert(test_wait(is_kept, &wanted, SECONDS_30));
	assert_ok(http_client_open(run_dir, store_path, &client));
	cJSON *body = cJSON_Parse("{\"last\":\"1 s\",\"reason\":\"by http\"}");
	assert_ok(http_client_ask(client, "/api/v1/trigger", body, &status, &answer));
	ck_assert_int_eq(status, 200);
	ck_assert_ptr_nonnull(cJSON_GetObjectItem(answer, "id"));
	cJSON_Delete(answer);
	cJSON_Delete(body);
	body = cJSON_Parse("{\"last\":\"soon\"}");
	assert_ok(http_client_ask(client, "/api/v1/trigger", body, &status, &answer));
	ck_assert_int_eq(status, 400);
	cJSON_Delete(answer);
	cJSON_Delete(body);
	assert_ok(http_client_ask(client, "/api/v1/nothing", NULL, &status, &answer));
	ck_assert_int_eq(status, 404);
	cJSON_Delete(answer);
	http_client_free(client);
	drec_close(rec);
	stop_daemon(pid);
	ck_assert(is_kept(&wanted));
}
END_TEST

/* Events of that kind that the macro view has, as of its last commit. */
static uint64_t macro_events(enum reducer_row_kind kind)
{
	struct reducer_tiers *tiers;
	struct reducer_tiers_row_info info;
	char path[600];
	uint64_t events = 0;
	snprintf(path, sizeof(path), "%s/macro.tiers", store_path);
	assert_ok(reducer_tiers_open_read(path, &tiers));
	for (uint32_t row = 0; reducer_tiers_row_info(tiers, row, &info) == 0; row++)
		events += info.kind == kind ? info.events : 0;
	reducer_tiers_free(tiers);
	return events;
}

START_TEST(a_restart_neither_doubles_nor_skips)
{
	pid_t pid = start_daemon();
	drec *rec = open_ring();
	write_steps(rec, 40, 2);
	stop_daemon(pid);
	uint64_t before = macro_events(REDUCER_ROW_SPANS);
	ck_assert_uint_eq(before, 80); /* a step and a load each */
	/* The length of each step, and the limit of those that came after 16 were known. */
	ck_assert_uint_eq(macro_events(REDUCER_ROW_COUNTER), 40 + 40 - 16);
	write_steps(rec, 10, 2);
	pid = start_daemon();
	stop_daemon(pid);
	ck_assert_uint_eq(macro_events(REDUCER_ROW_SPANS), 100);
	/* Killed, it is as of its last commit; nothing is lost by that, since the ring still has it. */
	pid = start_daemon();
	write_steps(rec, 10, 2);
	kill(pid, SIGKILL);
	ck_assert_int_eq(wait_for(pid), 1000 + SIGKILL);
	pid = start_daemon();
	stop_daemon(pid);
	ck_assert_uint_eq(macro_events(REDUCER_ROW_SPANS), 120);
	ck_assert_uint_eq(macro_events(REDUCER_ROW_COUNTER), 60 + 60 - 16);
	drec_close(rec);
}
END_TEST

static bool feed_events_are(void *context)
{
	struct http_client *client;
	cJSON *answer = NULL;
	long status;
	if (http_client_open(run_dir, store_path, &client) < 0)
		return false;
	int result = http_client_ask(client, "/api/v1/status", NULL, &status, &answer);
	const cJSON *feed = cJSON_GetObjectItem(answer, "feed");
	const cJSON *ring = cJSON_GetArrayItem(cJSON_GetObjectItem(answer, "rings"), 0);
	bool equal = result == 0 &&
		     (unsigned)cJSON_GetNumberValue(cJSON_GetObjectItem(feed, "events")) == *(unsigned *)context &&
		     cJSON_GetNumberValue(cJSON_GetObjectItem(ring, "events")) >= *(unsigned *)context;
	cJSON_Delete(answer);
	http_client_free(client);
	return equal;
}

static void send_events(int fd, unsigned count)
{
	char line[128];
	unsigned long long now = (unsigned long long)time(NULL);
	for (unsigned i = 0; i < count; i++) {
		int length = snprintf(line, sizeof(line),
				      "{\"ph\":\"X\",\"name\":\"load\",\"pid\":1,\"tid\":2,\"ts\":%llu,\"dur\":5}\n",
				      now * 1000000 + i * 10);
		ck_assert_int_eq(write(fd, line, (size_t)length), length);
	}
}

START_TEST(events_come_through_a_socket)
{
	char what[300];
	snprintf(what, sizeof(what), "unix:%s/feed.sock", run_dir);
	const char *const argv[] = {"--feed", what, NULL};
	pid_t pid = start_run(argv, -1);
	ck_assert(test_wait(answers, NULL, SECONDS_30));
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof(address.sun_path), "%.90s", what + 5);
	unsigned sent = 0;
	for (int client = 0; client < 2; client++) {
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);
		ck_assert_int_eq(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
		send_events(fd, 50);
		sent += 50;
		ck_assert(test_wait(feed_events_are, &sent, SECONDS_30));
		close(fd);
	}
	stop_daemon(pid);
}
END_TEST

START_TEST(events_come_through_a_pipe_to_its_end)
{
	const char *const argv[] = {"--feed", "-", NULL};
	int ends[2];
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	pid_t pid = start_run(argv, ends[0]);
	close(ends[0]);
	send_events(ends[1], 200);
	close(ends[1]);
	ck_assert_int_eq(wait_for(pid), 0);
	ck_assert_uint_eq(macro_events(REDUCER_ROW_SPANS), 200);
}
END_TEST

START_TEST(a_feed_that_is_none_is_refused_in_one_line)
{
	const char *const argv[] = {"--feed", "/nowhere/trace.json", NULL};
	ck_assert_int_eq(wait_for(start_run(argv, -1)), 1);
	size_t count;
	char *text = test_read_file(test_path(folder, "run.log"), &count);
	ck_assert_ptr_nonnull(strstr(text, "/nowhere/trace.json"));
	ck_assert_ptr_eq(strchr(text, '\n'), text + count - 1);
	free(text);
}
END_TEST

static TCase *add_case(Suite *suite, const char *name)
{
	TCase *tcase = tcase_create(name);
	tcase_add_checked_fixture(tcase, set_up, NULL);
	tcase_set_timeout(tcase, 45);
	suite_add_tcase(suite, tcase);
	return tcase;
}

int main(void)
{
	const char *job = getenv("TEST_JOB");
	if (job)
		return be_job(job);
	Suite *suite = suite_create("daemon");
	TCase *tcase = add_case(suite, "run with a command");
	tcase_add_loop_test(tcase, run_returns_the_status_of_the_command, 0,
			    sizeof(commands_run) / sizeof(commands_run[0]));
	tcase_add_loop_test(tcase, run_passes_signals_on, 0, sizeof(passed_on) / sizeof(passed_on[0]));
	tcase_add_test(tcase, run_leaves_input_and_output_alone);
	tcase_add_test(tcase, run_runs_the_command_where_it_cannot_record);
	tcase = add_case(suite, "crash");
	tcase_add_test(tcase, a_job_that_is_killed_is_a_crash_that_alarms);
	tcase_add_test(tcase, a_job_that_fails_is_a_crash_and_one_that_is_told_to_end_is_none);
	tcase = add_case(suite, "asked for");
	tcase_add_test(tcase, a_job_may_ask_for_an_incident);
	tcase_add_test(tcase, sigusr1_and_http_make_incidents);
	tcase = add_case(suite, "restart");
	tcase_add_test(tcase, a_second_daemon_of_a_store_says_who_has_it);
	tcase_add_test(tcase, a_restart_neither_doubles_nor_skips);
	tcase = add_case(suite, "feed");
	tcase_add_test(tcase, events_come_through_a_socket);
	tcase_add_test(tcase, events_come_through_a_pipe_to_its_end);
	tcase_add_test(tcase, a_feed_that_is_none_is_refused_in_one_line);
	return test_run(suite);
}
