/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_count.h: how much a replay fired, by severity, by trigger and by run.
 *
 * A firing either passed (it makes an incident), joined (it came while an incident waited: part of that one),
 * or was held back by a gate. What passed or joined is what is printed, and what rates are of.
 */
#ifndef RECORDER_REPLAY_COUNT_H
#define RECORDER_REPLAY_COUNT_H

#include <stdint.h>

#include <triggers/triggers.h>

enum {
	REPLAY_TRIGGERS_MAX = 16,
	REPLAY_RUNS_LISTED = 1 << 16, /* later ones are in the totals alone */
	REPLAY_SEVERITIES = TRIGGERS_CRITICAL + 1
};

struct replay_firings {
	uint64_t passed[REPLAY_SEVERITIES], joined[REPLAY_SEVERITIES];
};

struct replay_trigger {
	char name[TRIGGERS_NAME_MAX];
	struct replay_firings firings;
};

struct replay_run {
	char *name;
	int64_t job_ns;
	uint64_t steps;
	struct replay_firings firings;
};

/* Zeroed to begin with. */
struct replay_counts {
	unsigned n_triggers;
	struct replay_trigger trigger[REPLAY_TRIGGERS_MAX];
	uint64_t held_back[TRIGGERS_GATE_LIMIT];
	struct replay_run *run;
	uint64_t n_runs, room;
	struct replay_firings now; /* of the current run */
};

/* Whether it counts as fired, rather than as held back. */
int replay_fired(enum triggers_gate gate);
void replay_count(struct replay_counts *counts, const struct triggers_firing *firing,
		  enum triggers_gate gate);
/* The current run is over. Out of memory, or with too many, it is not listed. */
void replay_count_run(struct replay_counts *counts, const char *name, int64_t job_ns, uint64_t steps);
void replay_counts_free(struct replay_counts *counts);

uint64_t replay_firings_of(const struct replay_firings *firings, enum triggers_severity severity);
/* Of all triggers. */
void replay_firings_total(const struct replay_counts *counts, struct replay_firings *ret_total);
/* Runs with the most critical firings first, then with the most warnings a day. */
void replay_counts_sort(struct replay_counts *counts);
/* How many that is in `per_ns` of job time; 0 where no time has passed. */
double replay_rate(uint64_t count, int64_t job_ns, int64_t per_ns);

#define REPLAY_HOUR_NS (INT64_C(3600) * 1000000000)
#define REPLAY_DAY_NS  (24 * REPLAY_HOUR_NS)

#endif
