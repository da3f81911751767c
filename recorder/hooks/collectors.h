/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooks/collectors.h: commands that gather what a trace does not have: stacks, a flight recorder's dump,
 * nvidia-smi. Run at a firing, all at once, each one's output kept as a file.
 *
 * In arguments {pid}, {rank}, {incident} and {folder} stand for what the firing is about. A command whose
 * placeholder has no value (no pid known) is not run, and that is its result.
 *
 * Writes into the folder: collect-<n>-<command>.txt for each one with output, and collectors.ndjson, one line
 * a command: what was run, how it ended, how long it took, its file. One loop thread; files are written on a
 * worker.
 */
#ifndef RECORDER_HOOKS_COLLECTORS_H
#define RECORDER_HOOKS_COLLECTORS_H

#include "hooks/process.h"

enum {
	COLLECTORS_MAX = 32, /* commands a firing */
	COLLECTORS_OUTPUT_MAX = 4 * 1024 * 1024,
	COLLECTORS_FILE_NAME = 80,
	COLLECTORS_ARGUMENT_MAX = 8192, /* bytes of an argument with its placeholders filled in */
};

struct collectors;

/* Copied. `commands` are argv arrays up to a NULL. */
struct collectors_options {
	const char *const *const *commands;
	size_t count;
	int64_t timeout_ns;
	int64_t pid;  /* 0 = not known */
	int64_t rank; /* -1 = not known */
	const char *incident;
	const char *folder; /* where it writes; it must exist */
};

struct collectors_result {
	const char *command;                /* argv[0] */
	char file[COLLECTORS_FILE_NAME];    /* in the folder; "" = there was no output */
	char failure[PROCESS_FAILURE_TEXT]; /* "" = it worked */
	size_t bytes;
	bool cut; /* there was more output than is kept */
	int64_t taken_ns;
};

/* Called once, from the loop, when all have ended and their files are there. Valid during the call. */
typedef void collectors_done_fn(void *context, const struct collectors_result *results, size_t count);

/*
 * -ENOENT: nothing to run; -E2BIG: more than COLLECTORS_MAX commands; -ENOMEM. On an error `done` is not
 * called. The object is gone after `done`.
 */
int collectors_start(uv_loop_t *loop, const struct collectors_options *options, collectors_done_fn *done,
		     void *context, struct collectors **ret_collectors);

/* Kills what still runs; `done` follows soon, with what there is. */
void collectors_stop(struct collectors *collectors);

#endif
