/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon_inside.h"
#include "hooks/collectors.h"
#include "hooks/exec_hook.h"
#include "log.h"

enum { COLLECTING_MAX = 16 };

/* One run of the collectors of a firing. */
struct collecting {
	struct daemon *daemon;
	struct collectors *collectors; /* NULL = free */
	char id[INCIDENTS_ID_TEXT];
};

struct daemon_hooks {
	struct exec_hook *hook[CONFIG_LIST_MAX]; /* as config->alerts.hooks */
	size_t count;
	struct collecting collecting[COLLECTING_MAX];
};

static void on_outcome(void *context, const struct exec_hook_outcome *outcome)
{
	struct daemon *daemon = context;
	if (outcome->failure)
		log_warnx("hook.failed", "%s for %s of %.8s: %s", outcome->hook, outcome->event, outcome->incident,
			  outcome->failure);
	if (daemon->incidents)
		incidents_alerted(daemon->incidents, outcome->incident, outcome->event, outcome->hook,
				  outcome->failure);
}

int daemon_hooks_new(struct daemon *daemon)
{
	const struct config_hooks *hooks = &daemon->config->alerts.hooks;
	daemon->hooks = calloc(1, sizeof(*daemon->hooks));
	if (!daemon->hooks)
		return -ENOMEM;
	for (size_t i = 0; i < hooks->count && i < CONFIG_LIST_MAX; i++) {
		const struct config_hook *hook = &hooks->item[i];
		int result = exec_hook_new(&daemon->loop, hook->name, (const char *const *)hook->exec.argv,
					   hook->timeout_ns, on_outcome, daemon, &daemon->hooks->hook[i]);
		if (result < 0)
			return result;
		daemon->hooks->count++;
	}
	return 0;
}

void daemon_hooks_free(struct daemon *daemon)
{
	struct daemon_hooks *hooks = daemon->hooks;
	if (!hooks)
		return;
	for (size_t i = 0; i < hooks->count; i++)
		exec_hook_free(hooks->hook[i]);
	hooks->count = 0;
	for (size_t i = 0; i < COLLECTING_MAX; i++)
		if (hooks->collecting[i].collectors)
			collectors_stop(hooks->collecting[i].collectors);
	/* What was stopped says so from the loop, and needs its place until then: daemon_free() frees it. */
}

static unsigned bit_of(const char *event)
{
	return strcmp(event, "opened") == 0 ? CONFIG_OPENED : strcmp(event, "ready") == 0 ? CONFIG_READY
								: CONFIG_RESOLVED;
}

/* Whom an incident belongs to: as the operator says, else as its ring does. */
static const char *job_of(const struct daemon *daemon, const struct incidents_alert *alert)
{
	return daemon->config->job.name ? daemon->config->job.name : alert->job;
}

unsigned daemon_hooks_alert(struct daemon *daemon, const struct incidents_alert *alert)
{
	const struct config_hooks *hooks = &daemon->config->alerts.hooks;
	const struct exec_hook_alert told = {
		.event = alert->event,
		.incident = alert->id,
		.manifest = alert->manifest,
		.folder = alert->folder,
		.severity = triggers_severity_name(alert->severity),
		.trigger = alert->trigger,
		.job = job_of(daemon, alert),
		.json = alert->json,
		.json_bytes = alert->json ? strlen(alert->json) : 0,
	};
	unsigned count = 0;
	for (size_t i = 0; i < daemon->hooks->count; i++) {
		const struct config_hook *hook = &hooks->item[i];
		if ((int)alert->severity < (int)hook->min_severity || !(hook->on & bit_of(alert->event)))
			continue;
		/* Joined by a worse firing: whoever heard of it has it already. */
		if (strcmp(alert->event, "opened") == 0 && (int)hook->min_severity <= alert->told)
			continue;
		int result = exec_hook_tell(daemon->hooks->hook[i], &told);
		if (result == 0)
			count++;
		else
			log_warnx("hook.full", "%s is not told of %s: %s", hook->name, alert->id, strerror(-result));
	}
	return count;
}

static void on_collected(void *context, const struct collectors_result *results, size_t count)
{
	struct collecting *collecting = context;
	for (size_t i = 0; i < count; i++)
		if (results[i].failure[0])
			log_info("collect.failed", "%s: %s", results[i].command, results[i].failure);
	collecting->collectors = NULL;
	if (collecting->daemon->incidents)
		incidents_collected(collecting->daemon->incidents, collecting->id);
}

static size_t commands_for(const struct daemon *daemon, const char *trigger,
			   const char *const *ret_commands[COLLECTORS_MAX])
{
	const struct config_collectors *collectors = &daemon->config->collect.collectors;
	size_t count = 0;
	for (size_t i = 0; i < collectors->count && count < COLLECTORS_MAX; i++) {
		const struct config_collector *collector = &collectors->item[i];
		if (strcmp(collector->trigger, trigger) == 0 || strcmp(collector->trigger, "any") == 0)
			ret_commands[count++] = (const char *const *)collector->command.argv;
	}
	return count;
}

bool daemon_hooks_collect(struct daemon *daemon, const char *id, const struct triggers_firing *firing, uint32_t pid,
			  const char *folder)
{
	const char *const *commands[COLLECTORS_MAX];
	size_t count = commands_for(daemon, firing->trigger, commands);
	struct collecting *collecting = NULL;
	for (size_t i = 0; i < COLLECTING_MAX && !collecting; i++)
		if (!daemon->hooks->collecting[i].collectors)
			collecting = &daemon->hooks->collecting[i];
	if (count == 0 || !collecting)
		return false;
	collecting->daemon = daemon;
	snprintf(collecting->id, sizeof(collecting->id), "%s", id);
	const struct collectors_options options = {
		.commands = commands,
		.count = count,
		.timeout_ns = daemon->config->collect.timeout_ns,
		.pid = pid,
		.rank = firing->rank == UINT32_MAX ? -1 : (int64_t)firing->rank,
		.incident = id,
		.folder = folder,
	};
	return collectors_start(&daemon->loop, &options, on_collected, collecting, &collecting->collectors) == 0;
}
