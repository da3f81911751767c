/* SPDX-License-Identifier: Apache-2.0 */
/*
 * incidents/lifecycle.h: the object behind incidents.h, for the files that are parts of it.
 *
 *   lifecycle.c   the object, its incidents, and what they need of rings
 *   begin.c       a firing: pins, what the rings say, collectors
 *   join.c        firings that join, causes that are over
 *   tick.c        time passes, until it is written
 *   jobs.c        disk work, and the state that follows from it
 *   outcomes.c    what came of alerts
 *   suspicion.c   pins before anything fires
 *   adopt.c       what daemons before this one left
 *
 * All of it is of the loop thread; only jobs.c has parts that run on a worker.
 */
#ifndef RECORDER_INCIDENTS_LIFECYCLE_H
#define RECORDER_INCIDENTS_LIFECYCLE_H

#include "incident.h"

enum {
	SUSPICIONS_MAX = 4,
	SUSPICION_SERIES_MAX = 64,
	ONGOING_MAX = 64,
	PAST_MAX = 16,
	TRIES_MAX = 3,
	OUTCOMES_BYTES_MAX = 64 << 10,
	ANCHORS_MAX = 1024
};
#define LATE_NS           INT64_C(5000000000)
#define COLLECT_NS        INT64_C(20000000000)
#define RETRY_NS          INT64_C(10000000000)
#define CRASH_HOLD_NS     INT64_C(60000000000)
#define LEFT_ALONE_NS     INT64_C(86400000000000)
#define LEFT_LOOK_NS      INT64_C(60000000000)
#define SUSPICION_TRIGGER "suspicion"

/* Series that are suspicious since about the same time share one pin a ring. */
struct suspicion {
	bool on;
	uint8_t id[INCIDENTS_ID_BYTES];
	int64_t from_ns;
	uint32_t series[SUSPICION_SERIES_MAX];
	unsigned n_series;
};

/* One that was written: a later one may follow it. */
struct past {
	char id[INCIDENTS_ID_TEXT]; /* or of the first of those that it follows */
	int64_t a_ns, b_ns;
};

struct incidents {
	struct incidents_host host;
	struct incidents_store *store;
	struct incidents_sizing sizing;
	struct incidents_counters counters;
	struct incident *list;
	struct suspicion suspicion[SUSPICIONS_MAX];
	struct incidents_ring rings[INCIDENTS_RINGS_MAX]; /* scratch: as of the last incidents_rings() */
	size_t n_rings;
	struct past past[PAST_MAX]; /* the last ones, in a circle */
	unsigned n_past;
	uint8_t boot_id[16];
	char host_name[DREC_TEXT_MAX];
	unsigned jobs;
	int64_t left_looked_mono_ns; /* when pins of daemons long gone were last looked for */
	bool stopping;
};

/* Refreshes incidents->rings. */
void incidents_rings(struct incidents *incidents);
int64_t incidents_now_ns(const struct incidents *incidents, const struct incident *incident);
void incidents_log(struct incidents *incidents, const char *kind, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
struct incident *incidents_find(struct incidents *incidents, const char *id);
void incidents_add(struct incidents *incidents, struct incident *incident);
void incidents_drop(struct incidents *incidents, struct incident *incident);

/* Whether firings may still join: it waits for its post window. */
static inline bool incident_waits(const struct incident *incident)
{
	return incident->state <= INCIDENT_POST;
}

/* begin.c: one was written, which later ones may follow. */
void incidents_remember(struct incidents *incidents, const char *id, int64_t a_ns, int64_t b_ns);
/* Starts the collectors of what it is named after, unless some were started before. */
void incidents_collect(struct incidents *incidents, struct incident *incident);

/* jobs.c: disk work, and the state that follows from it. */
void incidents_job_record(struct incidents *incidents, struct incident *incident);
void incidents_job_drain(struct incidents *incidents, struct incident *incident);
void incidents_job_write(struct incidents *incidents, struct incident *incident);
void incidents_job_finish(struct incidents *incidents, struct incident *incident);
void incidents_job_resolve(struct incidents *incidents, struct incident *incident);
void incidents_tell(struct incidents *incidents, struct incident *incident, const char *event);
/* join.c: takes in what waited for a job's end. */
void incidents_settle_waiting(struct incidents *incidents, struct incident *incident);
/* The host may know that nothing takes firings in any more, if so. */
void incidents_tell_settled(struct incidents *incidents);

/* adopt.c: lets go of what daemons of other stores pinned and left. */
void incidents_release_left(struct incidents *incidents);

/* suspicion.c */
bool incidents_suspected(const struct incidents *incidents, int64_t a_ns);
void incidents_suspicion_drop(struct incidents *incidents, uint32_t series_id);

#endif
