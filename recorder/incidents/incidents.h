/* SPDX-License-Identifier: Apache-2.0 */
/*
 * incidents/incidents.h: the life of an incident, from a firing to a folder that somebody was told of.
 *
 *     firing -> PINNED -> PENDING -> POST -> WRITE -> SEALED -> PUBLISHED -> RELEASED -> HOOKED
 *
 * PINNED: one pin in every ring, before anything touches a disk. PENDING: a record of it is on disk. POST:
 * waits until the window's end is in the rings. WRITE: windows, evidence and report go to a hidden folder.
 * SEALED: read back, checksummed, manifest in place. PUBLISHED: the folder appears by rename. RELEASED: pins
 * off. HOOKED: everybody was told; the pending record goes. A daemon killed in any of these finishes the
 * incident at its next start, once; hooks hear of it at least once, with the same id.
 *
 * Owned by the daemon's loop thread: every function here is called from it and every callback of the host
 * runs on it. Disk work runs on libuv's worker threads with readers of its own.
 *
 * Time: Unix ns by the one offset of design.md (MONOTONIC + host.mono_to_unix_ns at the incident's t0)
 * unless the name says mono. Errors are -errno.
 */
#ifndef RECORDER_INCIDENTS_H
#define RECORDER_INCIDENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include <driverec/format.h>
#include <driverec/reader.h>
#include <triggers/triggers.h>

struct incidents;
struct incidents_store;

enum {
	INCIDENTS_ID_BYTES = 16,
	INCIDENTS_ID_TEXT = 2 * INCIDENTS_ID_BYTES + 1,
	INCIDENTS_SHORT_ID = 8, /* hex digits of the id in a folder's name */
	INCIDENTS_RINGS_MAX = 256,
	INCIDENTS_CAPTURES_MAX = 32
};

/* A ring as the daemon knows it. The reader stays valid until incidents_ring_gone(). */
struct incidents_ring {
	struct drec_reader *reader;
	const char *path;
	uint32_t source;      /* the daemon's number of it, as in firings */
	uint32_t rank;        /* UINT32_MAX = unknown */
	int64_t watermark_ns; /* everything that ended before is in the ring; INT64_MAX once the producer is
				 dead */
	bool dead;
	bool fed; /* with events of others, which may be older than the ring */
};

/* A framework's own profile file, and what time it is of. */
struct incidents_capture {
	const char *path;
	int64_t begin_ns, end_ns;
};

/* What a hook is told. Valid during the call. */
struct incidents_alert {
	const char *event; /* "opened", "ready", "resolved" */
	const char *id;
	const char *trigger;
	const char *job; /* "" = not known */
	enum triggers_severity severity;
	int told;             /* "opened": the severity of an earlier one, which a worse firing joined; -1 = none */
	int64_t step;         /* -1 = not known */
	const char *manifest; /* path; for "opened" that of the pending record */
	const char *folder;   /* path; "" for "opened" */
	const char *json;     /* the manifest's text */
};

/* How large a window is; all ns. */
struct incidents_sizing {
	uint32_t pre_steps, post_steps;
	int64_t pre_ns;  /* instead of pre_steps where > 0 */
	int64_t post_ns; /* instead of post_steps where > 0 */
	int64_t pre_min_ns;
	int64_t post_max_ns;
	uint64_t bytes_max; /* raw data of one incident, all rings together */
};

/* Which incidents go when; 0 = no such limit. Kept ones never go. */
struct incidents_retention {
	int64_t age_ns;
	uint64_t count;
	uint64_t bytes;
};

/* What the daemon does for incidents. Callbacks may be NULL where not said otherwise. */
struct incidents_host {
	void *context;
	uv_loop_t *loop; /* for disk work; NULL: it is done inside the call (tests, the command line) */
	/* Every ring there is now; returns how many (at most `room` are filled in). Required. */
	size_t (*rings)(void *context, struct incidents_ring *ret, size_t room);
	/* CLOCK_MONOTONIC now, and Unix = MONOTONIC + this. Required. */
	int64_t (*mono_ns)(void *context);
	int64_t (*mono_to_unix_ns)(void *context);
	/* The host's anchors of the last minutes, oldest first; returns how many. */
	size_t (*anchors)(void *context, struct drec_anchor *ret, size_t room);
	/* The order number from which the ring keeps all that ends at or after `a_ns` (STATE.tail as sampled
	 * at the last tick before it); 0 = not known, then the ring's chunks are looked at. */
	uint64_t (*from)(void *context, const struct incidents_ring *ring, int64_t a_ns);
	/* A source's median step, 0 = not known. */
	int64_t (*step_ns)(void *context, uint32_t source);
	/* Tells the hooks; never called for an incident all of whose firings are quiet. Returns how many outcomes
	 * will be reported by incidents_alerted(); 0 = none. */
	unsigned (*alert)(void *context, const struct incidents_alert *alert);
	/* Starts the collectors of a trigger, which put files into `folder`. Returns true if one was started;
	 * then incidents_collected() follows. Begun at the firing, since a stall may be over after post. */
	bool (*collect)(void *context, const char *id, const struct triggers_firing *firing, uint32_t pid,
			const char *folder);
	/* Whether no daemon of that store has run here for `for_ns`: then its pins are in nobody's use. */
	bool (*abandoned)(void *context, const uint8_t store_id[INCIDENTS_ID_BYTES], int64_t for_ns);
	/* The incident takes no further firings in: triggers_engine_settled(). */
	void (*settled)(void *context);
	/* Captures that meet [a, b], and the nearest before and after; returns how many. */
	size_t (*captures)(void *context, int64_t a_ns, int64_t b_ns, struct incidents_capture *ret,
			   size_t room);
	/* The macro view of [a, b] as a JSON text (malloc); 0 or -errno. */
	int (*macro)(void *context, int64_t a_ns, int64_t b_ns, char **ret_text, size_t *ret_bytes);
	/* One line for the log: key of the kind, and a plain sentence. */
	void (*log)(void *context, const char *kind, const char *sentence);
};

struct incidents_counters {
	uint64_t opened, joined, published, resolved;
	uint64_t complete, partial;
	uint64_t refused;      /* could not be written at all; see the log */
	uint64_t smaller;      /* kept with less than was asked, for want of room */
	uint64_t adopted;      /* finished after a restart */
	uint64_t suspicions;   /* pins set early */
	uint64_t pin_worst_ns; /* decision to last ring pinned */
	uint64_t open;         /* now between firing and publishing */
};

/* The store is borrowed and outlives it. `host` and `sizing` are copied. */
int incidents_new(const struct incidents_host *host, struct incidents_store *store,
		  const struct incidents_sizing *sizing, struct incidents **ret_incidents);
/* Stops between two states and waits for disk work in hand; what is open stays pinned for the next start. */
void incidents_free(struct incidents *incidents);

/* Takes up what an earlier daemon of this store left; call once, when the rings are known. */
int incidents_adopt(struct incidents *incidents);

/* A firing that passed the gates: a new incident. The id is copied to ret_id if not NULL. */
int incidents_firing(struct incidents *incidents, const struct triggers_firing *firing,
		     char ret_id[INCIDENTS_ID_TEXT]);
/* A coalesced firing: joins the incident that is in POST. -ENOENT if there is none. A worse one becomes its first, and
 * those who listen from its severity on are told. */
int incidents_join(struct incidents *incidents, const struct triggers_firing *firing);
/* So many more of a storm would have joined: they are counted. */
void incidents_joined_more(struct incidents *incidents, uint64_t count);
/* `trigger --last D`: the window is [t0 - last, t0]. */
int incidents_manual(struct incidents *incidents, const struct triggers_firing *firing, int64_t last_ns,
		     char ret_id[INCIDENTS_ID_TEXT]);
/* The cause of an ongoing firing is over. */
void incidents_progress(struct incidents *incidents, const struct triggers_firing *firing, int64_t now_ns);

/* Keep everything from `from_ns` on: it may become a firing. The pins go with the suspicion's end, or when
 * a firing of that series has pins of its own. */
void incidents_suspicion(struct incidents *incidents, uint32_t series_id, uint32_t source, int64_t from_ns);
void incidents_suspicion_end(struct incidents *incidents, uint32_t series_id, uint32_t source);

/* Time passes: windows end. Call about 20 times a second; cheap where nothing is open. */
void incidents_tick(struct incidents *incidents);

/* The daemon is about to free this ring's reader. The incident keeps a descriptor of its own. */
void incidents_ring_gone(struct incidents *incidents, uint32_t source);
/* Whether an unpublished incident still needs the ring's file. */
bool incidents_ring_needed(const struct incidents *incidents, uint32_t source);

/* All collectors of the incident have ended. */
void incidents_collected(struct incidents *incidents, const char *id);
/* One hook has ended; `failure` NULL = it worked. Written to the incident's alerts.ndjson. */
void incidents_alerted(struct incidents *incidents, const char *id, const char *event, const char *hook,
		       const char *failure);

const struct incidents_counters *incidents_counters(const struct incidents *incidents);
/* How many are between firing and HOOKED: 0 = nothing is left to do. */
size_t incidents_busy(const struct incidents *incidents);

#endif
