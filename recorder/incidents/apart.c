/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which rank stands apart in a stall.
 *
 * Ranks that step together stop together: most wait in the same collective, and the one they wait for is inside
 * something else. The first to be noticed is chance. So the innermost span of each rank's step is compared: where
 * more than half of at least three ranks are in the same one, those in another are who the others wait for. Other
 * jobs' rings are pinned as well, but their ranks wait for none of these.
 */
#include <string.h>

#include "incident.h"

enum { RANKS_LEAST = 3 };

const struct incident_open *incident_innermost(const struct incident *incident, uint32_t ring)
{
	const struct incident_open *best = NULL;
	uint32_t step_tid = 0;

	for (unsigned i = 0; i < incident->n_open; i++) {
		const struct incident_open *open = &incident->open[i];

		if (open->ring == ring && open->step >= 0)
			step_tid = open->tid;
	}
	for (unsigned i = 0; i < incident->n_open; i++) {
		const struct incident_open *open = &incident->open[i];
		bool same = best && open->tid == best->tid;

		if (open->ring != ring || open->mark)
			continue;
		if (!best || (same && open->depth > best->depth) ||
		    (!same && open->tid == step_tid && best->tid != step_tid))
			best = open;
	}
	return best;
}

uint32_t incident_first_ring(const struct incident *incident)
{
	for (uint32_t i = 0; i < incident->n_rings; i++)
		if (incident->rings[i].source == incident_first(incident)->source)
			return i;
	return UINT32_MAX;
}

const char *incident_job(const struct incident *incident)
{
	uint32_t ring = incident_first_ring(incident);

	if (ring == UINT32_MAX)
		ring = 0;
	return ring < incident->n_rings ? incident->rings[ring].job : "";
}

const struct triggers_firing *incident_straggler(const struct incident *incident)
{
	if (incident_first(incident)->ongoing || strcmp(incident_first(incident)->series, "step") != 0)
		return NULL;
	for (unsigned i = 1; i < incident->n_firings; i++)
		if (!strcmp(incident->firing[i].trigger, "straggler") && incident->firing[i].rank != UINT32_MAX)
			return &incident->firing[i];
	return NULL;
}

uint32_t incident_rank(const struct incident *incident)
{
	const struct triggers_firing *straggler = incident_straggler(incident);
	struct incident_apart apart;

	if (!strcmp(incident_first(incident)->trigger, "stall") && incident_apart(incident, &apart))
		return incident->rings[apart.ring].rank;
	return straggler ? straggler->rank : incident_first(incident)->rank;
}

/* A rank of the incident's job that has a step open. */
static bool in_step(const struct incident *incident, uint32_t ring)
{
	if (strcmp(incident->rings[ring].job, incident_job(incident)) != 0)
		return false;
	for (unsigned i = 0; i < incident->n_open; i++)
		if (incident->open[i].ring == ring && incident->open[i].step >= 0)
			return true;
	return false;
}

/* How many ranks in a step are innermost in a span of this name. */
static unsigned count_in(const struct incident *incident, const char *name)
{
	unsigned count = 0;

	for (uint32_t ring = 0; ring < incident->n_rings; ring++) {
		const struct incident_open *open = in_step(incident, ring) ? incident_innermost(incident, ring) : NULL;

		count += open && !strcmp(open->name, name);
	}
	return count;
}

bool incident_apart(const struct incident *incident, struct incident_apart *ret_apart)
{
	struct incident_apart apart = {.ring = UINT32_MAX};

	for (uint32_t ring = 0; ring < incident->n_rings; ring++) {
		const struct incident_open *open = in_step(incident, ring) ? incident_innermost(incident, ring) : NULL;
		unsigned alike;

		if (!in_step(incident, ring))
			continue;
		apart.n_stepping++;
		alike = open ? count_in(incident, open->name) : 0;
		if (alike > apart.n_waiting) {
			apart.n_waiting = alike;
			apart.waiting_in = open->name;
		}
	}
	*ret_apart = apart;
	if (apart.n_stepping < RANKS_LEAST || 2 * apart.n_waiting <= apart.n_stepping ||
	    apart.n_waiting == apart.n_stepping)
		return false;
	for (uint32_t ring = 0; ring < incident->n_rings && apart.ring == UINT32_MAX; ring++) {
		const struct incident_open *open = incident_innermost(incident, ring);

		if (in_step(incident, ring) && (!open || strcmp(open->name, apart.waiting_in)))
			apart.ring = ring;
	}
	apart.n_apart = apart.n_stepping - apart.n_waiting;
	*ret_apart = apart;
	return true;
}
