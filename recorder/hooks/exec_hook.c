/* SPDX-License-Identifier: Apache-2.0 */
#include "hooks/exec_hook.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VARIABLES = 7 };

struct waiting {
	struct waiting *next;
	char *event, *incident, *manifest;
	char *variable[VARIABLES + 1]; /* "NAME=value", up to a NULL */
	char *json;
	size_t json_bytes;
};

struct exec_hook {
	uv_loop_t *loop;
	char *name;
	char **argv;
	int64_t timeout_ns;
	exec_hook_done_fn *done;
	void *context;
	struct waiting *first, **end; /* the first one runs */
	size_t count;
	struct process *process;
	bool reporting; /* inside `done`, which may tell or free */
	bool freed;
};

static void waiting_free(struct waiting *waiting)
{
	if (!waiting)
		return;
	for (int i = 0; i < VARIABLES; i++)
		free(waiting->variable[i]);
	free(waiting->event);
	free(waiting->incident);
	free(waiting->manifest);
	free(waiting->json);
	free(waiting);
}

static void really_free(struct exec_hook *hook)
{
	while (hook->first) {
		struct waiting *waiting = hook->first;
		hook->first = waiting->next;
		waiting_free(waiting);
	}
	for (size_t i = 0; hook->argv && hook->argv[i]; i++)
		free(hook->argv[i]);
	free(hook->argv);
	free(hook->name);
	free(hook);
}

static char *copy(const char *text)
{
	return strdup(text ? text : "");
}

static bool make_variables(struct waiting *waiting, const struct exec_hook_alert *alert)
{
	const struct {
		const char *name, *value;
	} table[VARIABLES] = {
		{"DRIVEREC_EVENT", alert->event},       {"DRIVEREC_INCIDENT", alert->incident},
		{"DRIVEREC_MANIFEST", alert->manifest}, {"DRIVEREC_FOLDER", alert->folder},
		{"DRIVEREC_SEVERITY", alert->severity}, {"DRIVEREC_TRIGGER", alert->trigger},
		{"DRIVEREC_JOB", alert->job},
	};
	for (int i = 0; i < VARIABLES; i++) {
		const char *value = table[i].value ? table[i].value : "";
		if (asprintf(&waiting->variable[i], "%s=%s", table[i].name, value) < 0) {
			waiting->variable[i] = NULL;
			return false;
		}
	}
	return true;
}

static struct waiting *waiting_new(const struct exec_hook_alert *alert)
{
	struct waiting *waiting = calloc(1, sizeof(*waiting));
	if (!waiting)
		return NULL;
	waiting->event = copy(alert->event);
	waiting->incident = copy(alert->incident);
	waiting->manifest = copy(alert->manifest);
	waiting->json = malloc(alert->json_bytes + 1);
	waiting->json_bytes = alert->json_bytes;
	if (!waiting->event || !waiting->incident || !waiting->manifest || !waiting->json ||
	    !make_variables(waiting, alert)) {
		waiting_free(waiting);
		return NULL;
	}
	if (alert->json_bytes)
		memcpy(waiting->json, alert->json, alert->json_bytes);
	return waiting;
}

static struct waiting *pop(struct exec_hook *hook)
{
	struct waiting *waiting = hook->first;
	hook->first = waiting->next;
	if (!hook->first)
		hook->end = &hook->first;
	hook->count--;
	return waiting;
}

static void report(struct exec_hook *hook, const struct waiting *waiting, const struct process_result *result)
{
	char text[PROCESS_FAILURE_TEXT];
	struct exec_hook_outcome outcome = {
		.hook = hook->name,
		.event = waiting->event,
		.incident = waiting->incident,
		.failure = process_failure(result, text),
		.result = result,
	};
	hook->reporting = true;
	hook->done(hook->context, &outcome);
	hook->reporting = false;
}

static void on_done(void *context, const struct process_result *result);

static int run_first(struct exec_hook *hook)
{
	const struct waiting *waiting = hook->first;
	struct process_options options = {
		.argv = (const char *const *)hook->argv,
		.last_argument = waiting->manifest,
		.environment = (const char *const *)waiting->variable,
		.input = waiting->json,
		.input_bytes = waiting->json_bytes,
		.timeout_ns = hook->timeout_ns,
	};
	return process_start(hook->loop, &options, on_done, hook, &hook->process);
}

/* Starts the next one. What cannot even be begun, for want of memory, has that as its outcome. */
static void go_on(struct exec_hook *hook)
{
	while (hook->first && !hook->process && !hook->freed) {
		int rc = run_first(hook);
		if (rc == 0)
			return;
		struct waiting *waiting = pop(hook);
		report(hook, waiting, &(struct process_result){.spawn_error = rc, .output = ""});
		waiting_free(waiting);
	}
	if (hook->freed && !hook->process)
		really_free(hook);
}

static void on_done(void *context, const struct process_result *result)
{
	struct exec_hook *hook = context;
	hook->process = NULL;
	if (!hook->freed) {
		struct waiting *waiting = pop(hook);
		report(hook, waiting, result);
		waiting_free(waiting);
	}
	go_on(hook);
}

static char **copy_argv(const char *const *argv)
{
	size_t count = 0;
	while (argv[count] && count < PROCESS_ARGS_MAX)
		count++;
	char **copied = calloc(count + 1, sizeof(*copied));
	for (size_t i = 0; copied && i < count; i++) {
		copied[i] = strdup(argv[i]);
		if (!copied[i]) {
			while (i > 0)
				free(copied[--i]);
			free(copied);
			return NULL;
		}
	}
	return copied;
}

int exec_hook_new(uv_loop_t *loop, const char *name, const char *const *argv, int64_t timeout_ns,
		  exec_hook_done_fn *done, void *context, struct exec_hook **ret_hook)
{
	if (!argv || !argv[0] || timeout_ns < 0)
		return -EINVAL;
	struct exec_hook *hook = calloc(1, sizeof(*hook));
	if (!hook)
		return -ENOMEM;
	*hook = (struct exec_hook){.loop = loop, .timeout_ns = timeout_ns, .done = done, .context = context};
	hook->end = &hook->first;
	hook->name = copy(name);
	hook->argv = copy_argv(argv);
	if (!hook->name || !hook->argv) {
		really_free(hook);
		return -ENOMEM;
	}
	*ret_hook = hook;
	return 0;
}

int exec_hook_tell(struct exec_hook *hook, const struct exec_hook_alert *alert)
{
	/* The first one runs, it does not wait. */
	if (hook->count > EXEC_HOOK_QUEUE_MAX)
		return -ENOBUFS;
	struct waiting *waiting = waiting_new(alert);
	if (!waiting)
		return -ENOMEM;
	*hook->end = waiting;
	hook->end = &waiting->next;
	if (hook->count++ > 0)
		return 0;
	int rc = run_first(hook);
	if (rc < 0)
		waiting_free(pop(hook));
	return rc;
}

size_t exec_hook_busy(const struct exec_hook *hook)
{
	return hook->count;
}

void exec_hook_free(struct exec_hook *hook)
{
	if (!hook)
		return;
	hook->freed = true;
	if (hook->process)
		process_kill(hook->process);
	else if (!hook->reporting)
		really_free(hook);
}
