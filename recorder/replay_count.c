/* SPDX-License-Identifier: Apache-2.0 */
#include "replay_count.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int replay_fired(enum triggers_gate gate)
{
	return gate == TRIGGERS_PASSED || gate == TRIGGERS_COALESCED;
}

static struct replay_trigger *trigger_of(struct replay_counts *counts, const char *name)
{
	for (unsigned i = 0; i < counts->n_triggers; i++)
		if (!strcmp(counts->trigger[i].name, name))
			return &counts->trigger[i];
	if (counts->n_triggers == REPLAY_TRIGGERS_MAX)
		return NULL;
	struct replay_trigger *trigger = &counts->trigger[counts->n_triggers++];
	snprintf(trigger->name, sizeof(trigger->name), "%s", name);
	return trigger;
}

void replay_count(struct replay_counts *counts, const struct triggers_firing *firing, enum triggers_gate gate)
{
	struct replay_trigger *trigger = trigger_of(counts, firing->trigger);
	unsigned severity = firing->severity;
	if (!replay_fired(gate))
		counts->held_back[gate]++;
	if (!replay_fired(gate) || !trigger || severity > TRIGGERS_CRITICAL)
		return;
	if (gate == TRIGGERS_PASSED) {
		trigger->firings.passed[severity]++;
		counts->now.passed[severity]++;
	} else {
		trigger->firings.joined[severity]++;
		counts->now.joined[severity]++;
	}
}

void replay_count_run(struct replay_counts *counts, const char *name, int64_t job_ns, uint64_t steps)
{
	struct replay_run run = {.job_ns = job_ns, .steps = steps, .firings = counts->now};
	counts->now = (struct replay_firings){.passed = {0}};
	if (counts->n_runs == counts->room) {
		uint64_t room = counts->room ? 2 * counts->room : 64;
		struct replay_run *larger =
			room > REPLAY_RUNS_LISTED ? NULL : realloc(counts->run, room * sizeof(*larger));
		if (!larger)
			return;
		counts->run = larger;
		counts->room = room;
	}
	run.name = strdup(name);
	if (run.name)
		counts->run[counts->n_runs++] = run;
}

void replay_counts_free(struct replay_counts *counts)
{
	for (uint64_t i = 0; i < counts->n_runs; i++)
		free(counts->run[i].name);
	free(counts->run);
	*counts = (struct replay_counts){.n_triggers = 0};
}

uint64_t replay_firings_of(const struct replay_firings *firings, enum triggers_severity severity)
{
	return firings->passed[severity] + firings->joined[severity];
}

void replay_firings_total(const struct replay_counts *counts, struct replay_firings *ret_total)
{
	*ret_total = (struct replay_firings){.passed = {0}};
	for (unsigned i = 0; i < counts->n_triggers; i++)
		for (int severity = 0; severity < REPLAY_SEVERITIES; severity++) {
			ret_total->passed[severity] += counts->trigger[i].firings.passed[severity];
			ret_total->joined[severity] += counts->trigger[i].firings.joined[severity];
		}
}

double replay_rate(uint64_t count, int64_t job_ns, int64_t per_ns)
{
	return job_ns > 0 ? (double)count * (double)per_ns / (double)job_ns : 0;
}

static int by_harm(const void *a_, const void *b_)
{
	const struct replay_run *a = a_, *b = b_;
	uint64_t a_critical = replay_firings_of(&a->firings, TRIGGERS_CRITICAL),
		 b_critical = replay_firings_of(&b->firings, TRIGGERS_CRITICAL);
	double a_warn = replay_rate(replay_firings_of(&a->firings, TRIGGERS_WARN), a->job_ns, REPLAY_DAY_NS),
	       b_warn = replay_rate(replay_firings_of(&b->firings, TRIGGERS_WARN), b->job_ns, REPLAY_DAY_NS);
	if (a_critical != b_critical)
		return a_critical > b_critical ? -1 : 1;
	if (a_warn < b_warn || a_warn > b_warn)
		return a_warn > b_warn ? -1 : 1;
	return strcmp(a->name, b->name);
}

void replay_counts_sort(struct replay_counts *counts)
{
	if (counts->n_runs)
		qsort(counts->run, counts->n_runs, sizeof(*counts->run), by_harm);
}
