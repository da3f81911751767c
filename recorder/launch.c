/* SPDX-License-Identifier: Apache-2.0 */
#include "launch.h"

#include <driverec/identity.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "standard_fds.h"

static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

static sigset_t mask_before;
static bool blocked;

static void caught_set(sigset_t *set)
{
	sigemptyset(set);
	for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
		sigaddset(set, caught[i]);
}

void launch_block_signals(void)
{
	sigset_t set;
	caught_set(&set);
	if (!blocked)
		sigprocmask(SIG_BLOCK, &set, &mask_before);
	blocked = true;
}

int launch_signal_fd(void)
{
	sigset_t set;
	caught_set(&set);
	int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static void set_number(const char *name, long long value)
{
	char text[32];
	snprintf(text, sizeof(text), "%lld", value);
	setenv(name, text, 0);
}

void launch_environment(const struct config *config, const char *run_dir, char *const *argv,
			char ret_job[DREC_TEXT_MAX])
{
	struct drec_identity identity;
	char name[DREC_TEXT_MAX + 24];
	setenv("DRIVEREC_RUN_DIR", run_dir, 1);
	if (config->job.name)
		setenv("DRIVEREC_JOB", config->job.name, 0);
	drec_identity_read(&identity);
	if (strcmp(identity.job_origin, "default") == 0) {
		/* Nobody named it: the program and a number tell this run from the next one. */
		const char *slash = strrchr(argv[0], '/');
		snprintf(name, sizeof(name), "%.48s-%ld", slash ? slash + 1 : argv[0], (long)getpid());
		drec_text_clean(identity.job, name);
		setenv("DRIVEREC_JOB", identity.job, 0);
	}
	if (config->job.rank >= 0)
		set_number("DRIVEREC_RANK", config->job.rank);
	if (config->ring.size_bytes > 0)
		set_number("DRIVEREC_RING_SIZE", config->ring.size_bytes);
	memcpy(ret_job, identity.job, DREC_TEXT_MAX);
}

static int status_of(int error)
{
	return error == ENOENT || error == ENOTDIR ? LAUNCH_NOT_FOUND : LAUNCH_NOT_EXECUTABLE;
}

int launch_become(const char *who, char *const *argv)
{
	if (blocked)
		sigprocmask(SIG_SETMASK, &mask_before, NULL);
	standard_fds_restore();
	execvp(argv[0], argv);
	int error = errno;
	fprintf(stderr, "%s: %s: %s\n", who, argv[0], strerror(error));
	return status_of(error);
}

/* In the child: only what is safe between fork and exec. */
static _Noreturn void become(char *const *argv, int report_fd)
{
	if (blocked)
		sigprocmask(SIG_SETMASK, &mask_before, NULL);
	standard_fds_restore();
	execvp(argv[0], argv);
	int error = errno;
	ssize_t wrote = write(report_fd, &error, sizeof(error));
	(void)wrote;
	_exit(status_of(error));
}

int launch_start(char *const *argv, pid_t *ret_pid)
{
	int report[2], error = 0;
	if (pipe2(report, O_CLOEXEC) < 0)
		return -errno;
	pid_t pid = fork();
	if (pid == 0)
		become(argv, report[1]);
	int result = pid < 0 ? -errno : 0;
	close(report[1]);
	/* The pipe closes at exec; what comes before that is why there is none. */
	if (pid > 0) {
		ssize_t got;
		do
			got = read(report[0], &error, sizeof(error));
		while (got < 0 && errno == EINTR);
		if (got == (ssize_t)sizeof(error)) {
			waitpid(pid, NULL, 0);
			result = -error;
		}
	}
	close(report[0]);
	if (result == 0)
		*ret_pid = pid;
	return result;
}

int launch_exit_status(int wait_status)
{
	if (WIFEXITED(wait_status))
		return WEXITSTATUS(wait_status);
	return 128 + WTERMSIG(wait_status);
}

void launch_describe(int wait_status, char *out, size_t room)
{
	if (WIFSIGNALED(wait_status))
		snprintf(out, room, "was killed by signal %d (%s)", WTERMSIG(wait_status),
			 strsignal(WTERMSIG(wait_status)));
	else
		snprintf(out, room, "exited with status %d", WEXITSTATUS(wait_status));
}
