/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon in the foreground, and with a command its parent. Whatever goes wrong on our side, the command
 * runs and its status is returned.
 */
#include <driverec/identity.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "config.h"
#include "daemon.h"
#include "launch.h"
#include "log.h"
#include "paths.h"

/* After the command's end: what is open gets written, and then its status is returned. */
static const int64_t FINISH_NS = 20000000000;

struct run_options {
	const char *store, *run_dir, *feed;
	bool quiet;
};

static const struct option_row run_options[] = {
	OPTION_ROW(0, "store", "DIR", OPTION_TEXT, struct run_options, store, "keep incidents here"),
	OPTION_ROW(0, "run-dir", "DIR", OPTION_TEXT, struct run_options, run_dir, "where rings are"),
	OPTION_ROW(0, "feed", "WHAT", OPTION_TEXT, struct run_options, feed,
		   "take events as Chrome JSON or NDJSON from a file, - (standard input), a FIFO or unix:PATH"),
	OPTION_ROW_FLAG('q', "quiet", struct run_options, quiet, "say nothing at the start"),
	OPTION_ROWS_END,
};

struct run {
	const struct command_call *call;
	const struct run_options *options;
	struct config *config;
	char run_dir[256];
	char job[DREC_TEXT_MAX];
	struct daemon *daemon;
	pid_t pid;               /* of the command, 0 = none or over */
	int wait_status;
	bool asked_to_end;       /* a signal that ends it came through us, or from the terminal to both */
	int signal_fd;
	uv_poll_t signals;
	uv_signal_t child;
};

static void on_signal(struct run *run, const struct signalfd_siginfo *info)
{
	int signal = (int)info->ssi_signo;
	bool ends = signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
	if (run->pid) {
		run->asked_to_end |= ends;
		/* What the terminal sends goes to the whole process group: the command has it already. */
		if (info->ssi_code != SI_KERNEL)
			kill(run->pid, signal);
	} else if (ends) {
		daemon_stop(run->daemon);
	} else if (signal == SIGUSR1) {
		char id[64];
		const char *gate = "";
		if (daemon_trigger(run->daemon, 0, "SIGUSR1", id, sizeof(id), &gate) < 0)
			log_warnx("trigger.refused", "SIGUSR1 made no incident: %s", gate);
	}
}

static void on_signals(uv_poll_t *poll, int status, int events)
{
	struct run *run = poll->data;
	struct signalfd_siginfo info;
	(void)status, (void)events;
	while (read(run->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		on_signal(run, &info);
}

static void on_child(uv_signal_t *handle, int signal)
{
	struct run *run = handle->data;
	char how[128];
	(void)signal;
	if (!run->pid || waitpid(run->pid, &run->wait_status, WNOHANG) != run->pid)
		return;
	run->pid = 0;
	launch_describe(run->wait_status, how, sizeof(how));
	bool failed = launch_exit_status(run->wait_status) != 0 && !run->asked_to_end;
	log_record("job.ended", "%s %s", run->job, how);
	daemon_job_ended(run->daemon, run->job, how, failed);
	daemon_finish(run->daemon, FINISH_NS);
}

static int watch_signals(struct run *run)
{
	run->signal_fd = launch_signal_fd();
	if (run->signal_fd < 0)
		return run->signal_fd;
	run->signals.data = run->child.data = run;
	int result = uv_poll_init(daemon_loop(run->daemon), &run->signals, run->signal_fd);
	if (result == 0)
		result = uv_poll_start(&run->signals, UV_READABLE, on_signals);
	if (result == 0)
		result = uv_signal_init(daemon_loop(run->daemon), &run->child);
	if (result == 0)
		result = uv_signal_start(&run->child, on_child, SIGCHLD);
	return result;
}

/* With a command, its terminal is not ours to write on. */
static void log_to_store(const char *store)
{
	char *path = paths_join(store, "daemon.log");
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
	if (fd >= 0)
		log_to(fd, LOG_LEVEL_INFO);
	free(path);
}

static int open_daemon(struct run *run, char *why, size_t why_room)
{
	const char *reason = "";
	const struct run_options *options = run->options;
	bool has_command = run->call->argc > 0;
	const char *store = options->store ? options->store : run->config->store;
	int result = drec_run_dir(options->run_dir ? options->run_dir : run->config->run_dir, run->run_dir,
				  sizeof(run->run_dir), &reason);
	if (result < 0) {
		snprintf(why, why_room, "%s: %s", reason, strerror(-result));
		return result;
	}
	const struct daemon_options opened = {
		.config = run->config,
		.run_dir = run->run_dir,
		.store = store,
		.feed = options->feed,
		.ends_with_feed = !has_command,
	};
	if (has_command)
		launch_environment(run->config, run->run_dir, run->call->argv, run->job);
	result = daemon_new(&opened, &run->daemon, why, why_room);
	if (result == 0 && has_command)
		log_to_store(store);
	if (result == 0 && (result = watch_signals(run)) < 0)
		snprintf(why, why_room, "signals cannot be watched: %s", strerror(-result));
	if (result == 0 && has_command && !options->quiet)
		fprintf(stderr, "driverec: recording job %s; store %s\n", run->job, store);
	return result;
}

static int start_command(struct run *run)
{
	int result = launch_start(run->call->argv, &run->pid);
	if (result == 0)
		return 0;
	command_failed(run->call, "%s: %s", run->call->argv[0], strerror(-result));
	return result == -ENOENT || result == -ENOTDIR ? LAUNCH_NOT_FOUND : LAUNCH_NOT_EXECUTABLE;
}

static int record(struct run *run)
{
	int status = COMMAND_DONE;
	bool has_command = run->call->argc > 0;
	if (has_command)
		status = start_command(run);
	if (status != COMMAND_DONE)
		return status;
	daemon_run(run->daemon);
	if (has_command)
		return launch_exit_status(run->wait_status);
	return daemon_feed_failed(run->daemon) ? COMMAND_FAILED : COMMAND_DONE;
}

static int run(const struct command_call *call)
{
	struct run run = {.call = call, .options = call->options, .signal_fd = -1};
	char why[512] = "the configuration has problems";
	int status = COMMAND_FAILED;
	launch_block_signals();
	run.config = config_load_or_complain(call->config_path);
	if (run.config && open_daemon(&run, why, sizeof(why)) == 0) {
		status = record(&run);
	} else if (call->argc > 0) {
		command_failed(call, "not recording: %s", why);
		daemon_free(run.daemon);
		return launch_become("driverec run", call->argv);
	} else if (run.config) {
		command_failed(call, "%s", why);
	}
	daemon_free(run.daemon);
	if (run.signal_fd >= 0)
		close(run.signal_fd);
	config_free(run.config);
	return status;
}

const struct command command_run = {
	.name = "run",
	.summary = "record: the daemon, in the foreground",
	.operands = "[-- CMD [ARG]...]",
	.details = "Without CMD it records whatever puts rings into the run directory, until SIGTERM or SIGINT; "
		   "SIGUSR1 makes an incident of now.\n"
		   "With --feed and without CMD it ends where a file or standard input does, writes what is open and "
		   "leaves the feed's ring in the run directory (driverec export RING); a file that is no trace makes "
		   "it exit with 1.\n"
		   "With CMD it runs it with the environment that producers look for, passes signals on, and returns "
		   "its exit status (128 and the number for a signal). Where recording is not possible CMD runs all "
		   "the same.",
	.examples = "driverec run\n"
		    "driverec run -- torchrun --nproc-per-node 8 train.py\n"
		    "driverec run --feed trace.json.gz",
	.options = run_options,
	.options_bytes = sizeof(struct run_options),
	.operands_min = 0,
	.operands_max = COMMAND_OPERANDS_ANY,
	.stop_at_operand = true,
	.run = run,
};
