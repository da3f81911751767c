/* SPDX-License-Identifier: Apache-2.0 */
#include "hooks/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

enum {
	TERM_TO_KILL_MS = 2000,
	KILL_TO_GIVE_UP_MS = 5000,
	LINGER_MS = 200,                /* for output of children that outlive the command */
	DISCARD_MAX = 16 * 1024 * 1024, /* output read and dropped before the pipe is closed */
	FIRST_OUTPUT_ROOM = 4096,
};

enum stage { STAGE_RUNNING, STAGE_TERMED, STAGE_KILLED, STAGE_LINGER };

/* Two or three handles; freed when all of them are closed. */
struct process {
	uv_process_t child;
	uv_pipe_t pipe;
	uv_timer_t timer;
	unsigned handles;
	enum stage stage;
	bool has_child; /* uv_spawn() made the handle, whether or not the command could be started */
	bool running, piped, finishing;
	uint64_t started_ns;
	size_t output_room, output_max;
	uint64_t discarded;
	char *output;
	char scratch[16384];
	struct process_result result;
	process_done_fn *done;
	void *context;
};

static void on_closed(uv_handle_t *handle)
{
	struct process *process = handle->data;
	if (--process->handles > 0)
		return;
	process->result.output = process->output;
	process->output[process->result.output_bytes] = 0;
	process->done(process->context, &process->result);
	free(process->output);
	free(process);
}

static void finish(struct process *process)
{
	if (process->finishing)
		return;
	process->finishing = true;
	process->result.unkillable = process->running;
	process->result.taken_ns = (int64_t)(uv_hrtime() - process->started_ns);
	if (process->has_child)
		uv_close((uv_handle_t *)&process->child, on_closed);
	uv_close((uv_handle_t *)&process->timer, on_closed);
	if (!uv_is_closing((uv_handle_t *)&process->pipe))
		uv_close((uv_handle_t *)&process->pipe, on_closed);
}

static void signal_group(const struct process *process, int number)
{
	/* The group's id stays taken while it has members: while the command runs, or the pipe is held open.
	 */
	if (process->child.pid > 0)
		kill(-process->child.pid, number);
}

static void on_timer(uv_timer_t *timer)
{
	struct process *process = timer->data;
	switch (process->stage) {
	case STAGE_RUNNING:
		process->result.timed_out = true;
		process->stage = STAGE_TERMED;
		signal_group(process, SIGTERM);
		uv_timer_start(timer, on_timer, TERM_TO_KILL_MS, 0);
		break;
	case STAGE_TERMED:
		process->stage = STAGE_KILLED;
		signal_group(process, SIGKILL);
		uv_timer_start(timer, on_timer, process->running ? KILL_TO_GIVE_UP_MS : LINGER_MS, 0);
		break;
	case STAGE_KILLED:
	case STAGE_LINGER:
		finish(process);
		break;
	}
}

static void on_exit_of(uv_process_t *child, int64_t status, int number)
{
	struct process *process = child->data;
	process->running = false;
	process->result.exit_status = (int)status;
	process->result.signal = number;
	if (!process->piped) {
		finish(process);
	} else if (process->stage != STAGE_TERMED) {
		/* Somebody it started holds the pipe: what is in it is read, then it is let go. */
		process->stage = STAGE_LINGER;
		uv_timer_start(&process->timer, on_timer, LINGER_MS, 0);
	}
}

static void end_of_output(struct process *process)
{
	process->piped = false;
	uv_close((uv_handle_t *)&process->pipe, on_closed);
	if (!process->running)
		finish(process);
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
	struct process *process = handle->data;
	(void)suggested;
	*buffer = uv_buf_init(process->scratch, sizeof(process->scratch));
}

/* As much of it as is kept. Without memory less is kept. */
static size_t keep(struct process *process, const char *data, size_t bytes)
{
	size_t used = process->result.output_bytes;
	if (bytes > process->output_max - used)
		bytes = process->output_max - used;
	if (bytes > process->output_room - used) {
		size_t room = process->output_room;
		while (room - used < bytes)
			room *= 2;
		char *grown = realloc(process->output, room + 1);
		if (!grown)
			return 0;
		process->output = grown;
		process->output_room = room;
	}
	memcpy(process->output + used, data, bytes);
	process->result.output_bytes += bytes;
	return bytes;
}

static void on_output(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer)
{
	struct process *process = stream->data;
	if (got < 0) {
		end_of_output(process);
		return;
	}
	size_t kept = keep(process, buffer->base, (size_t)got);
	process->discarded += (size_t)got - kept;
	if (process->discarded > 0)
		process->result.output_cut = true;
	/* Whoever writes without end is not read without end: it gets SIGPIPE. */
	if (process->discarded > DISCARD_MAX)
		end_of_output(process);
}

static int make_input(const struct process_options *options)
{
	if (!options->input)
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	int fd = memfd_create("driverec-input", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	const char *from = options->input;
	size_t left = options->input_bytes;
	while (fd >= 0 && left > 0) {
		ssize_t done = write(fd, from, left);
		if (done <= 0) {
			close(fd);
			return -1;
		}
		from += done;
		left -= (size_t)done;
	}
	if (fd >= 0) {
		lseek(fd, 0, SEEK_SET);
		fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
	}
	return fd;
}

/* Descriptors of ours that some library opened without O_CLOEXEC would reach the command. */
static void close_on_exec_all(void)
{
#ifdef SYS_close_range
	enum { CLOSE_ON_EXEC = 1 << 2 };
	if (syscall(SYS_close_range, 3u, ~0u, CLOSE_ON_EXEC) == 0)
		return;
#endif
	long limit = sysconf(_SC_OPEN_MAX);
	if (limit < 0 || limit > 65536)
		limit = 65536;
	for (int fd = 3; fd < limit; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* Ours, but for those that are given anew. */
static bool is_given(const char *variable, const char *const *given)
{
	size_t name = strcspn(variable, "=");
	for (; given && *given; given++)
		if (strncmp(variable, *given, name) == 0 && (*given)[name] == '=')
			return true;
	return false;
}

/* Borrows all texts; the caller frees the array. */
static char **make_environment(const char *const *given)
{
	char **made = calloc(PROCESS_ENVIRONMENT_MAX + 1, sizeof(*made));
	size_t count = 0;
	if (!made)
		return NULL;
	for (const char *const *at = given; at && *at && count < PROCESS_ENVIRONMENT_MAX; at++)
		memcpy(&made[count++], at, sizeof(*made));
	for (char **at = environ; at && *at && count < PROCESS_ENVIRONMENT_MAX; at++)
		if (!is_given(*at, given))
			made[count++] = *at;
	return made;
}

static char **make_argv(const struct process_options *options)
{
	size_t count = 0;
	while (count < PROCESS_ARGS_MAX && options->argv[count])
		count++;
	char **argv = calloc(count + 2, sizeof(*argv));
	if (!argv)
		return NULL;
	memcpy(argv, options->argv, count * sizeof(*argv));
	if (options->last_argument)
		memcpy(&argv[count], &options->last_argument, sizeof(*argv));
	return argv;
}

static int spawn(uv_loop_t *loop, struct process *process, char **argv, char **environment, int in, int out)
{
	uv_stdio_container_t stdio[3] = {
		{.flags = UV_INHERIT_FD, .data.fd = in},
		{.flags = UV_INHERIT_FD, .data.fd = out},
		{.flags = UV_INHERIT_FD, .data.fd = out},
	};
	uv_process_options_t options = {
		.exit_cb = on_exit_of,
		.file = argv[0],
		.args = argv,
		.env = environment,
		.flags = UV_PROCESS_DETACHED, /* a session, and so a group, of its own */
		.stdio_count = 3,
		.stdio = stdio,
	};
	close_on_exec_all();
	process->has_child = true;
	process->handles++;
	return uv_spawn(loop, &process->child, &options);
}

/* Opens both ends, starts it, and listens. -errno: it could not be started. */
static int launch(uv_loop_t *loop, struct process *process, const struct process_options *options,
		  char **argv, char **environment)
{
	int pipe_fd[2] = {-1, -1};
	int in = make_input(options);
	int rc = in < 0 ? -errno : 0;
	if (rc == 0 && pipe2(pipe_fd, O_CLOEXEC) < 0)
		rc = -errno;
	if (rc == 0)
		rc = uv_pipe_open(&process->pipe, pipe_fd[0]);
	if (rc == 0) {
		pipe_fd[0] = -1; /* the handle's */
		rc = spawn(loop, process, argv, environment, in, pipe_fd[1]);
	}
	if (rc == 0) {
		process->running = process->piped = true;
		uv_read_start((uv_stream_t *)&process->pipe, on_room, on_output);
	}
	for (int i = 0; i < 2; i++)
		if (pipe_fd[i] >= 0)
			close(pipe_fd[i]);
	if (in >= 0)
		close(in);
	return rc;
}

static struct process *new_process(uv_loop_t *loop, const struct process_options *options)
{
	struct process *process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	process->output = malloc(FIRST_OUTPUT_ROOM + 1);
	if (!process->output) {
		free(process);
		return NULL;
	}
	process->output_room = FIRST_OUTPUT_ROOM;
	process->output_max = options->output_max ? options->output_max : PROCESS_OUTPUT_MAX;
	process->started_ns = uv_hrtime();
	uv_timer_init(loop, &process->timer);
	uv_pipe_init(loop, &process->pipe, 0);
	process->handles = 2;
	process->timer.data = process->pipe.data = process->child.data = process;
	return process;
}

int process_start(uv_loop_t *loop, const struct process_options *options, process_done_fn *done,
		  void *context, struct process **ret_process)
{
	size_t count = 0;
	while (options->argv && options->argv[count] && count < PROCESS_ARGS_MAX)
		count++;
	if (count == 0 || count == PROCESS_ARGS_MAX || options->timeout_ns < 0)
		return -EINVAL;
	char **argv = make_argv(options);
	char **environment = make_environment(options->environment);
	struct process *process = argv && environment ? new_process(loop, options) : NULL;
	if (!process) {
		free(argv);
		free(environment);
		return -ENOMEM;
	}
	process->done = done;
	process->context = context;
	int rc = launch(loop, process, options, argv, environment);
	free(argv);
	free(environment);
	if (rc < 0) {
		process->result.spawn_error = rc;
		process->stage = STAGE_LINGER;
		uv_timer_start(&process->timer, on_timer, 0, 0);
	} else {
		uv_update_time(loop);
		uv_timer_start(&process->timer, on_timer, (uint64_t)options->timeout_ns / 1000000, 0);
	}
	*ret_process = process;
	return 0;
}

void process_kill(struct process *process)
{
	if (process->finishing || !process->running)
		return;
	process->stage = STAGE_KILLED;
	signal_group(process, SIGKILL);
	uv_timer_start(&process->timer, on_timer, KILL_TO_GIVE_UP_MS, 0);
}

const char *process_failure(const struct process_result *result, char text[PROCESS_FAILURE_TEXT])
{
	if (result->spawn_error)
		snprintf(text, PROCESS_FAILURE_TEXT, "cannot be started: %s", strerror(-result->spawn_error));
	else if (result->timed_out)
		snprintf(text, PROCESS_FAILURE_TEXT, "did not end in time%s",
			 result->unkillable ? " and cannot be killed" : "");
	else if (result->signal)
		snprintf(text, PROCESS_FAILURE_TEXT, "killed by signal %d (%s)", result->signal,
			 strsignal(result->signal));
	else if (result->exit_status)
		snprintf(text, PROCESS_FAILURE_TEXT, "exit status %d", result->exit_status);
	else
		return NULL;
	return text;
}
