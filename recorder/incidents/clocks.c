/* SPDX-License-Identifier: Apache-2.0 */
/* What the clocks did within the windows, from the anchors of the rings. */
#include <stdio.h>

#include "incident.h"
#include "ns.h"

static int64_t magnitude(int64_t value)
{
	return value < 0 ? ns_sub(0, value) : value;
}

static void mark_clock(struct incident *incident, const struct drec_anchor *at, int64_t by_ns,
		       const char *what)
{
	struct incident_clock_mark *mark;

	if (incident->n_clock_marks == INCIDENT_GAPS_MAX)
		return;
	mark = &incident->clock_mark[incident->n_clock_marks++];
	mark->at_ns = incident_add_ns(at->mono_ns, incident->mono_to_unix_ns);
	mark->by_ns = by_ns;
	snprintf(mark->what, sizeof(mark->what), "%s", what);
}

void incident_clocks(struct incident *incident)
{
	enum { STEP_NS = 1000000 };

	incident->n_clock_marks = 0;
	incident->clock_error_ns = 0;
	for (size_t i = 1; i < incident->n_anchors; i++) {
		const struct drec_anchor *before = &incident->anchors[i - 1], *at = &incident->anchors[i];
		/* `recover` has them from the ring alone, which may say anything. */
		int64_t stepped =
			ns_sub(ns_sub(at->real_ns, at->mono_ns), ns_sub(before->real_ns, before->mono_ns));
		int64_t slept =
			ns_sub(ns_sub(at->boot_ns, at->mono_ns), ns_sub(before->boot_ns, before->mono_ns));
		int64_t unix_ns = incident_add_ns(at->mono_ns, incident->mono_to_unix_ns);

		if (unix_ns < incident_begin_ns(incident) || unix_ns > incident_end_ns(incident))
			continue;
		if (magnitude(slept) >= STEP_NS)
			mark_clock(incident, at, slept, "suspend");
		else if (magnitude(stepped) >= STEP_NS)
			mark_clock(incident, at, stepped, "step");
		else if (magnitude(stepped) > incident->clock_error_ns)
			incident->clock_error_ns = magnitude(stepped);
		if (before->clocksource != at->clocksource)
			mark_clock(incident, at, 0, "clocksource");
	}
}
