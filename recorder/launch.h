/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.h: the command of `driverec run -- CMD`. It runs as if it had been started directly: same terminal,
 * process group, folder, descriptors, signal mask and dispositions. Only its environment has more.
 */
#ifndef RECORDER_LAUNCH_H
#define RECORDER_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <driverec/format.h>

#include "config.h"

enum { LAUNCH_NOT_FOUND = 127, LAUNCH_NOT_EXECUTABLE = 126 };

/* Puts into this process's environment what producers need to find the daemon; `ret_job` is the job's name. */
void launch_environment(const struct config *config, const char *run_dir, char *const *argv,
			char ret_job[DREC_TEXT_MAX]);

/* Blocks the signals that are passed on or acted upon. Before any thread is started. */
void launch_block_signals(void);
/* A signalfd of them, or -errno. */
int launch_signal_fd(void);

/* Starts the command. -errno: it could not be executed. */
int launch_start(char *const *argv, pid_t *ret_pid);

/* Becomes the command; returns only where it cannot be executed, with the exit status for that. */
int launch_become(const char *who, char *const *argv);

/* What a shell would return for this wait status, and what happened as a clause: "exited with status 3". */
int launch_exit_status(int wait_status);
void launch_describe(int wait_status, char *out, size_t room);

#endif
