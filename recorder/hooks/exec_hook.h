/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooks/exec_hook.h: tells a configured command of incidents.
 *
 * The command's last argument is the manifest's path, its standard input the manifest's JSON text, and its
 * environment has DRIVEREC_EVENT (opened, ready, resolved), DRIVEREC_INCIDENT, DRIVEREC_MANIFEST,
 * DRIVEREC_FOLDER, DRIVEREC_SEVERITY, DRIVEREC_TRIGGER and DRIVEREC_JOB.
 *
 * One hook runs one command at a time, in the order of the alerts, so `resolved` never overtakes `ready`;
 * hooks do not wait for each other. How it ended is reported and never in the way of anything. One loop
 * thread.
 */
#ifndef RECORDER_HOOKS_EXEC_HOOK_H
#define RECORDER_HOOKS_EXEC_HOOK_H

#include "hooks/process.h"

enum { EXEC_HOOK_QUEUE_MAX = 64 }; /* alerts that wait */

struct exec_hook;

/* All copied. Texts may be NULL, which is "". */
struct exec_hook_alert {
	const char *event, *incident, *manifest, *folder, *severity, *trigger, *job;
	const void *json;
	size_t json_bytes;
};

/* An alert's outcome. `failure` is NULL if it worked. Valid during the call. */
struct exec_hook_outcome {
	const char *hook, *event, *incident;
	const char *failure;
	const struct process_result *result;
};
typedef void exec_hook_done_fn(void *context, const struct exec_hook_outcome *outcome);

/* Name and argv are copied. -EINVAL: no command; -ENOMEM. */
int exec_hook_new(uv_loop_t *loop, const char *name, const char *const *argv, int64_t timeout_ns,
		  exec_hook_done_fn *done, void *context, struct exec_hook **ret_hook);

/*
 * Takes an alert in; its outcome follows by `done`, from the loop. -ENOBUFS: too many wait already, and no
 * outcome follows; -ENOMEM.
 */
int exec_hook_tell(struct exec_hook *hook, const struct exec_hook_alert *alert);

/* Alerts without an outcome yet. */
size_t exec_hook_busy(const struct exec_hook *hook);

/*
 * No further outcomes: what waits is forgotten, what runs is killed. The memory goes once the loop has run
 * the handles' closing. NULL is fine.
 */
void exec_hook_free(struct exec_hook *hook);

#endif
