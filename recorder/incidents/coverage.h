/* SPDX-License-Identifier: Apache-2.0 */
/* incidents/coverage.h: between coverage.c, which judges, and coverage_walk.c, which reads. */
#ifndef RECORDER_INCIDENTS_COVERAGE_H
#define RECORDER_INCIDENTS_COVERAGE_H

#include "incident.h"

/* What files brought. */
struct coverage_found {
	bool seen[INCIDENT_CLASSES]; /* any of this class, in the windows or not: the ring brings it at all */
	uint64_t events[INCIDENT_CLASSES];
	int64_t device_first_ns, device_last_ns; /* device events that came through the ring; 0 = none */
};

/*
 * Reads one of an incident's raw files back. The verdict that was sealed into it becomes raw->window;
 * raw->events and the incident's losses are counted; what it brings goes into *found, which begins empty. 0, or
 * -errno: then *found has what was read before.
 */
int coverage_walk(struct incident *incident, unsigned ring, struct incident_raw *raw, int raw_fd,
		  struct coverage_found *found);

#endif
