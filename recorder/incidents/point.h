/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named points after and between the durable steps of an incident. In the product they are nothing; in the
 * test variant (driverec_points) the one that $DRIVEREC_KILL_AT names kills the process there, as kill -9
 * would. $DRIVEREC_KILL_AFTER = n lets n passes go by first. The one that $DRIVEREC_STOP_AT names stops it, until
 * somebody lets it go on (SIGCONT).
 *
 * Points: pinned recorded early_copied opened drain_copied drain_synced drain_moved post_over tmp_made
 * raw_written raw_synced captures_linked macro_written raw_sealed report_written manifest_written sealed
 * published parent_synced released readied pending_removed revised
 */
#ifndef RECORDER_INCIDENTS_POINT_H
#define RECORDER_INCIDENTS_POINT_H

#ifdef DRIVEREC_POINTS
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static inline void incident_point(const char *name)
{
	const char *at = getenv("DRIVEREC_KILL_AT");
	const char *after = getenv("DRIVEREC_KILL_AFTER");
	static long passes;

	if (at && !strcmp(at, name) && passes++ >= (after ? strtol(after, NULL, 10) : 0))
		raise(SIGKILL);
	at = getenv("DRIVEREC_STOP_AT");
	if (at && !strcmp(at, name))
		raise(SIGSTOP);
}
#define INCIDENT_POINT(name) incident_point(#name)
#else
#define INCIDENT_POINT(name) ((void)0)
#endif

#endif
