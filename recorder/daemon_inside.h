/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon_inside.h: the parts of the daemon, for daemon*.c and http/control.c.
 *
 *   daemon.c            set-up, loop, ticks
 *   daemon_watch.c      the trigger engine and what becomes of what it says
 *   daemon_incidents.c  what the daemon does for incidents
 *   daemon_hooks.c      who is told of them, and the commands that gather for them
 *   daemon_state.c      saved state: tiers with cursors, engine
 *   http/control.c      what it tells and is told over its socket
 */
#ifndef RECORDER_DAEMON_INSIDE_H
#define RECORDER_DAEMON_INSIDE_H

#include <reducer/tiers.h>
#include <triggers/triggers.h>

#include "clock.h"
#include "daemon.h"
#include "daemon_lock.h"
#include "http/server.h"
#include "incidents/incidents.h"
#include "incidents/store.h"
#include "incidents/suppressed.h"
#include "sources/feed.h"
#include "sources/intake.h"
#include "sources/producers.h"
#include "sources/series.h"

struct daemon_hooks;

enum { DAEMON_KNOWN_MAX = 512, DAEMON_SUPPRESSED_SHOWN = 64 };

/* What the engine said during a call into it: acted upon right after, outside of it. */
struct daemon_told {
	enum { TOLD_FIRING, TOLD_PROGRESS, TOLD_SUSPICION, TOLD_SUSPICION_END } what;
	enum triggers_gate gate;
	struct triggers_firing *firing; /* owned; NULL for suspicions */
	int64_t ns; /* progress: now; suspicion: from */
	uint32_t series_id, source;
};

/* What is in an incident: events read again must not open it anew. */
struct daemon_known {
	char trigger[TRIGGERS_NAME_MAX];
	int64_t t0_ns;
	bool before; /* there was one already when the daemon started */
};

struct daemon {
	const struct config *config;
	char run_dir[256];
	char store_path[INCIDENTS_PATH_MAX];
	bool ends_with_feed;
	int64_t started_mono_ns, started_ns;

	uv_loop_t loop;
	uv_timer_t timer;
	uv_poll_t found;
	unsigned tick_ms;
	bool stopping, in_tick;
	int64_t finish_by_mono_ns; /* 0 = not finishing */
	int64_t quiet_since_mono_ns;

	struct clock clock;
	struct daemon_lock lock;
	struct incidents_store *store;
	struct incidents *incidents;
	struct daemon_hooks *hooks;
	struct producers *producers;
	struct triggers_engine *engine;
	struct series *series;
	struct reducer_tiers *tiers; /* NULL: no macro view, for want of room */
	struct feed *feed;
	struct http_server *http;

	struct daemon_told *told;
	size_t n_told, told_room;
	size_t n_joining;     /* of them, firings that join an incident */
	uint64_t joined_more; /* and beyond those: only counted */
	uint64_t told_dropped;
	unsigned suspicions; /* not ended: then ticks stay short */
	struct daemon_known known[DAEMON_KNOWN_MAX];
	size_t n_known;
	struct suppressed *suppressed;
	int64_t suppressed_saved_mono_ns, suppressed_took_ns;
	uint64_t gated[TRIGGERS_GATE_LIMIT];

	int64_t manual_last_ns;          /* while a manual firing is being asked for */
	char manual_id[INCIDENTS_ID_TEXT];
	enum triggers_gate manual_gate;

	int64_t last_save_mono_ns, next_sync_mono_ns, next_retain_mono_ns;
	int64_t save_took_ns;    /* the last one */
	int64_t judged_mono_ns;  /* deadlines were, last */
	int64_t watched_mono_ns; /* somebody looked on (GET /api/v1/steps) */
	bool save_soon;
};

/* daemon_watch.c */
int daemon_watch_new(struct daemon *daemon, char *why, size_t why_room);
void daemon_watch_free(struct daemon *daemon);
void daemon_watch_act(struct daemon *daemon); /* does what was told */
void daemon_watch_tick(struct daemon *daemon);
void daemon_watch_crash(struct daemon *daemon, struct producer *producer, const char *evidence);
/* Looks up which incidents there are, in the store and as pins of the rings. */
void daemon_watch_known(struct daemon *daemon);

/* Whether it is the ring of a feed, ours or an earlier daemon's. */
bool daemon_is_feed(const struct producer *producer);

/* daemon_incidents.c */
int daemon_incidents_new(struct daemon *daemon);
/* Record time to the Unix time that incidents are in: apart only after a clock step. */
int64_t daemon_incident_shift(const struct daemon *daemon);

/* daemon_hooks.c */
int daemon_hooks_new(struct daemon *daemon);
void daemon_hooks_free(struct daemon *daemon);
unsigned daemon_hooks_alert(struct daemon *daemon, const struct incidents_alert *alert);
bool daemon_hooks_collect(struct daemon *daemon, const char *id, const struct triggers_firing *firing, uint32_t pid,
			  const char *folder);

/* daemon_state.c */
int daemon_state_open(struct daemon *daemon);
void daemon_state_restore_producer(struct daemon *daemon, struct producer *producer);
void daemon_state_tick(struct daemon *daemon, int64_t mono_ns);
void daemon_state_save(struct daemon *daemon, bool sync);
void daemon_state_close(struct daemon *daemon);

/* http/control.c */
extern const struct http_route daemon_routes[];

#endif
