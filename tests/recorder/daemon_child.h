/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of a whole daemon share: `driverec run` in a child, with a store and a run directory of its
 * own, and its answers. Header-only, so that a test stays one program.
 */
#ifndef TESTS_RECORDER_DAEMON_CHILD_H
#define TESTS_RECORDER_DAEMON_CHILD_H

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <driverec/driverec.h>

#include "command.h"
#include "http/client.h"
#include "support.h"

enum { SECONDS_30 = 30000 };

static const char *folder, *run_dir, *store_path, *config_path, *self;

static inline void set_up_with(const char *config)
{
	folder = test_folder();
	run_dir = test_shm_folder();
	store_path = strdup(test_path(folder, "store"));
	config_path = strdup(test_path(folder, "config.json"));
	self = "/proc/self/exe";
	mkdir(test_path(run_dir, "rings"), 0700);
	test_write_file(config_path, config, strlen(config));
	setenv("DRIVEREC_RUN_DIR", run_dir, 1);
	unsetenv("DRIVEREC_JOB");
}

/* Short windows, so that a test of a few seconds has whole ones. */
static inline void set_up(void)
{
	set_up_with("{ \"window\": { \"pre\": \"10 steps\", \"pre_min\": \"100 ms\", \"post_max\": \"1 s\" },"
		    "  \"collect\": { \"stall\": [] } }");
}

/* Starts `driverec run …` in a child. The list ends with NULL. */
static inline pid_t start_run(const char *const *more, int stdin_fd)
{
	char *argv[32] = {(char[]){"driverec"}, (char[]){"run"},     (char[]){"--config"},
			  strdup(config_path),  (char[]){"--store"}, strdup(store_path)};
	int argc = 6;
	for (; *more && argc < 31; more++)
		argv[argc++] = strdup(*more);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		int log_fd = open(test_path(folder, "run.log"), O_WRONLY | O_CREAT | O_APPEND, 0600);
		dup2(log_fd, STDERR_FILENO);
		if (stdin_fd >= 0)
			dup2(stdin_fd, STDIN_FILENO);
		/* The test's ends of pipes are not ours: who holds one keeps it from ending. */
		closefrom(3);
		exit(command_main(argc, argv));
	}
	for (int i = 3; i < argc; i++)
		if (i != 4)
			free(argv[i]);
	ck_assert_int_gt(pid, 0);
	return pid;
}

/* The exit status, or 1000 and the signal. */
static inline int wait_for(pid_t pid)
{
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static inline bool answers(void *context)
{
	struct http_client *client;
	cJSON *answer = NULL;
	long status;
	(void)context;
	if (http_client_open(run_dir, store_path, &client) < 0)
		return false;
	int result = http_client_ask(client, "/api/v1/status", NULL, &status, &answer);
	http_client_free(client);
	cJSON_Delete(answer);
	return result == 0;
}

static inline pid_t start_daemon(void)
{
	static const char *const none[] = {NULL};
	pid_t pid = start_run(none, -1);
	ck_assert(test_wait(answers, NULL, SECONDS_30));
	return pid;
}

static inline void stop_daemon(pid_t pid)
{
	kill(pid, SIGTERM);
	ck_assert_int_eq(wait_for(pid), 0);
}

static inline drec *open_ring(void)
{
	const struct drec_options options = {
		.run_dir = run_dir, .job = "test", .name = "job", .ring_bytes = 1 << 20};
	drec *rec = drec_open(&options);
	ck_assert_ptr_nonnull(rec);
	return rec;
}

#endif
