/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooks/process.h: runs one command of the configuration and says how it ended.
 *
 * Never a shell: argv goes to exec as it is. The command gets a process group of its own, none of our file
 * descriptors, its input from a sealed file (so that one that does not read it costs nothing), and one pipe
 * for output and errors together. After the timeout the whole group gets SIGTERM, 2 s later SIGKILL.
 *
 * Whatever a command does (fail, hang, flood, ignore SIGTERM, not exist) is a result and nothing else.
 * Nothing here blocks the loop. One loop thread.
 */
#ifndef RECORDER_HOOKS_PROCESS_H
#define RECORDER_HOOKS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

enum {
	PROCESS_ARGS_MAX = 256,
	PROCESS_ENVIRONMENT_MAX = 4096, /* variables, ours and inherited */
	PROCESS_OUTPUT_MAX = 64 * 1024,
	PROCESS_FAILURE_TEXT = 160,
};

struct process;

struct process_options {
	const char *const *argv;        /* up to a NULL */
	const char *last_argument;      /* appended to argv; may be NULL */
	const char *const *environment; /* "NAME=value" up to a NULL, over ours; may be NULL */
	const void *input;              /* NULL: /dev/null */
	size_t input_bytes;
	size_t output_max; /* bytes kept; 0 = PROCESS_OUTPUT_MAX */
	int64_t timeout_ns;
};

struct process_result {
	int spawn_error; /* -errno: it could not be started, and nothing below means anything; else 0 */
	int exit_status;
	int signal; /* that ended it, or 0 */
	bool timed_out;
	bool unkillable; /* still there after SIGKILL; left alone */
	int64_t taken_ns;
	const char *output; /* the first bytes of output and errors, as they came; followed by a 0 */
	size_t output_bytes;
	bool output_cut; /* there was more */
};

/* The result and its texts are valid during the call. */
typedef void process_done_fn(void *context, const struct process_result *result);

/*
 * Starts a command; all options are copied. `done` is called once, from the loop, even where it could not be
 * started. -EINVAL: no command, or too many arguments; -ENOMEM. On an error `done` is not called.
 */
int process_start(uv_loop_t *loop, const struct process_options *options, process_done_fn *done,
		  void *context, struct process **ret_process);

/* Kills the group at once; `done` follows. */
void process_kill(struct process *process);

/* Why it counts as failed, in a clause ("exit status 3"); NULL if it did not. `text` holds it. */
const char *process_failure(const struct process_result *result, char text[PROCESS_FAILURE_TEXT]);

#endif
