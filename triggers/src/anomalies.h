/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One anomaly, one incident: which stretches of time have an incident already.
 *
 * An anomaly shows on many series: the step that hung, the span that it hung in, the phase around both, the
 * spans of other threads and the steps of other ranks that waited for it. They end, and so fire, one after
 * the other, some long after the incident has settled. A firing whose time meets that of an anomaly with an
 * incident is part of it:
 *
 *   same source           always, but a stall is part of a stall alone: what is still open is no late end of
 *                         a spike
 *   same job, other rank  where the anomaly is a stall, which holds up the others
 *
 * Times that only touch do not meet: what follows an anomaly is another one. A stalled step is one anomaly
 * until it ends; a stalled phase or silent track only until it was noticed, since work may go on in it or
 * beside it for hours. Crashes and what is asked for by hand are never part of anything, and nothing is part
 * of what nobody is told of.
 *
 * The last 64 are kept. What lies within one that is kept is not kept again, and what is not over goes last.
 */
#ifndef TRIGGERS_ANOMALIES_H
#define TRIGGERS_ANOMALIES_H

#include "module.h"

enum { TRIGGERS_ANOMALIES_KEPT = 64 };

struct triggers_anomaly {
	uint32_t source;
	uint64_t job;    /* 0 = not known */
	uint32_t series; /* id */
	int64_t t0_ns, until_ns;
	int is_stall;
	int is_open; /* not over yet: until_ns is when it was noticed */
	int holds;   /* while it is open nothing else goes on: a stalled step */
};

struct triggers_anomalies {
	uint32_t count;
	struct triggers_anomaly kept[TRIGGERS_ANOMALIES_KEPT];
};

/* Whether the claim is part of an anomaly that has an incident. */
int triggers_anomalies_meet(const struct triggers_anomalies *anomalies, const struct triggers_claim *claim);
/* The claim made or joined an incident. */
void triggers_anomalies_add(struct triggers_anomalies *anomalies, const struct triggers_claim *claim);
/* The stall of this series is over. */
void triggers_anomalies_end(struct triggers_anomalies *anomalies, uint32_t series, int64_t now_ns);

void triggers_anomalies_save(const struct triggers_anomalies *anomalies, struct triggers_writer *writer);
void triggers_anomalies_restore(struct triggers_anomalies *anomalies, struct triggers_cursor *cursor);

#endif
