/* SPDX-License-Identifier: Apache-2.0 */
/*
 * incidents/incident.h: one incident in memory, between firing and HOOKED; for the files of this folder.
 *
 * Owned by the loop thread, except while a job is in hand (`working`): then the worker owns everything but
 * the fields under "loop only".
 */
#ifndef RECORDER_INCIDENTS_INCIDENT_H
#define RECORDER_INCIDENTS_INCIDENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <driverec/freeze.h>

#include "incidents.h"
#include "store.h"

enum {
	INCIDENT_WINDOWS_MAX = 2,
	INCIDENT_FIRINGS_MAX = 16,
	INCIDENT_OPEN_MAX = 128,
	INCIDENT_GAPS_MAX = 16,
	INCIDENT_LOSSES_MAX = 64,
	INCIDENT_NOTES_MAX = 16,
	INCIDENT_FILES_MAX = 4096,
	INCIDENT_TEXT_MAX = 128,
	INCIDENT_MANIFEST_BYTES_MAX = 16 << 20
};
#define INCIDENT_SCHEMA         "driverec.incident/1"
#define INCIDENT_PENDING_SCHEMA "driverec.pending/1"

struct incident_window {
	int64_t a_ns, b_ns;
};

/* How the window of one ring was kept. */
struct incident_pin {
	bool set;
	unsigned entry;
	uint64_t from; /* the order number the window needs: whole iff nothing from it on was overwritten */
};

/* What became of one window of one ring. */
struct incident_raw {
	char file[INCIDENT_TEXT_MAX]; /* under raw/, "" = none */
	struct drec_window window;
	uint64_t events; /* that belong to the window */
	uint64_t bytes;
	bool early; /* copied before the window's end, for want of a pin */
	int error;  /* -errno where it could not be written */
};

/* What of a ring was copied before the window's end; see parts.h. */
struct incident_drained {
	uint64_t next; /* the first order number that is not; 0 = nothing was */
	uint64_t bytes;
	unsigned n_parts;
	bool stopped; /* no room, or no more than may be */
};

struct incident_ring {
	int fd; /* our own, -1 = the ring is gone */
	char name[INCIDENT_TEXT_MAX];
	char *path;
	uint8_t ring_id[16];
	char job[DREC_TEXT_MAX];
	char host[DREC_TEXT_MAX];
	uint32_t source, rank, clock;
	uint64_t pid;
	int64_t born_ns;
	bool dead, late; /* late: its watermark had not reached the end when the wait ran out */
	bool copied;     /* no pin could be had: copied at once */
	char why_copied[64];
	struct incident_pin pin[INCIDENT_WINDOWS_MAX];
	struct incident_drained drained;
	struct incident_raw *raw; /* in the order of the chain */
	unsigned n_raw, raw_room;
};

struct incident_open {
	uint32_t ring; /* index */
	uint32_t tid, depth;
	int64_t start_ns, seen_ns;
	int64_t step; /* -1 = no step */
	unsigned mark;
	bool moving;
	char thread[INCIDENT_TEXT_MAX];
	char name[INCIDENT_TEXT_MAX];
};

struct incident_loss {
	uint32_t ring;
	unsigned reason;
	uint64_t count;
	int64_t first_ns, last_ns;
};

enum incident_class {
	INCIDENT_MARKS,
	INCIDENT_HOST_SPANS,
	INCIDENT_HOST_COUNTERS,
	INCIDENT_DEVICE_COUNTERS,
	INCIDENT_DEVICE_LAUNCHES,
	INCIDENT_DEVICE_EVENTS,
	INCIDENT_CLASSES
};
enum incident_verdict { INCIDENT_NONE, INCIDENT_PARTIAL, INCIDENT_COMPLETE };
const char *incident_class_name(enum incident_class which);  /* "host_spans" */
const char *incident_class_words(enum incident_class which); /* "host spans" */
const char *incident_verdict_name(enum incident_verdict verdict);

struct incident_gap {
	int64_t a_ns, b_ns;
	char why[48];
};

struct incident_coverage {
	enum incident_verdict verdict;
	uint64_t events;
	int64_t asked_ns, recorded_ns;
	struct incident_gap gap[INCIDENT_GAPS_MAX];
	unsigned n_gaps, more_gaps;
	int64_t before_end_ns, after_begin_ns; /* nearest captures; 0 = none */
	char why[160];                         /* why not complete */
};

/* A change of the clocks within the anchors of the window. */
struct incident_clock_mark {
	int64_t at_ns;
	int64_t by_ns;
	char what[16]; /* "step", "suspend", "clocksource" */
};

enum incident_state {
	INCIDENT_PINNED,
	INCIDENT_PENDING, /* the record is on disk; opened not yet told */
	INCIDENT_POST,
	INCIDENT_WRITE,
	INCIDENT_RELEASED, /* published, pins off; ready not yet told */
	INCIDENT_READY,    /* told; waits for the outcomes of hooks */
	INCIDENT_HOOKED,   /* nothing left but, where ongoing, to be resolved */
	INCIDENT_REFUSED
};

struct incident {
	struct incident *next;
	uint8_t id[INCIDENTS_ID_BYTES];
	char id_text[INCIDENTS_ID_TEXT];
	char folder[INCIDENTS_FOLDER_MAX];
	char continues[INCIDENTS_ID_TEXT]; /* the first of those that it follows without a gap */
	char host[DREC_TEXT_MAX];
	uint8_t boot_id[16];
	enum incident_state state;
	struct triggers_firing firing[INCIDENT_FIRINGS_MAX];
	unsigned n_firings, more_firings;
	struct incident_window window[INCIDENT_WINDOWS_MAX];
	unsigned n_windows;
	int64_t mono_to_unix_ns;
	int64_t post_ns, longest_ns; /* the window's post, and the length that joining may reach */
	int64_t pin_took_ns;
	uint64_t bytes_max;
	struct incident_ring *rings;
	unsigned n_rings;
	struct incident_open *open;
	unsigned n_open;
	bool adopted, restarted; /* restarted: the machine was, so the rings are gone */
	char note[INCIDENT_NOTES_MAX][INCIDENT_TEXT_MAX];
	unsigned n_notes;
	/* filled in by the writer */
	struct incident_loss loss[INCIDENT_LOSSES_MAX];
	unsigned n_losses, more_losses;
	struct incident_coverage coverage[INCIDENT_CLASSES];
	struct incidents_capture capture[INCIDENTS_CAPTURES_MAX];
	char *capture_path[INCIDENTS_CAPTURES_MAX];
	unsigned n_captures;
	struct drec_anchor *anchors;
	size_t n_anchors;
	struct incident_clock_mark clock_mark[INCIDENT_GAPS_MAX];
	unsigned n_clock_marks;
	int64_t clock_error_ns;
	char *macro;
	size_t macro_bytes;
	enum incident_verdict verdict;
	char why_partial[160];
	char sentence[512];
	int64_t resolved_ns; /* 0 = not */
	unsigned revision;
	char *manifest; /* its text, once written */
	int result;     /* of the last job */
	/* loop only */
	bool working; /* a job is in hand */
	bool collecting, collected; /* collected: collectors were started, once */
	bool moved_on[INCIDENT_FIRINGS_MAX]; /* firings whose cause is over */
	bool to_resolve;                     /* resolved, not yet told */
	struct triggers_firing *waiting;     /* joined while a job was in hand */
	unsigned n_waiting, more_waiting;
	bool to_record; /* the record on disk is behind */
	int told;       /* severity that was told as opened, -1 = none */
	int64_t progress_ns;  /* 0 = none */
	int64_t late_mono_ns; /* when waiting for sources and collectors ends */
	unsigned alerts_out;
	unsigned tries;
	int64_t retry_mono_ns;
	char *outcomes; /* of hooks, as NDJSON, not yet on disk */
	size_t outcomes_bytes;
};

struct incident *incident_new(void);
void incident_free(struct incident *incident);
/* Adds a remark for the manifest; dropped beyond INCIDENT_NOTES_MAX. */
void incident_note(struct incident *incident, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline const struct triggers_firing *incident_first(const struct incident *incident)
{
	return &incident->firing[0];
}
bool incident_is_ongoing(const struct incident *incident);
/* Nobody is told: all of its firings are quiet. */
bool incident_is_quiet(const struct incident *incident);
/* The worst firing's; of those that are told, where any is. */
enum triggers_severity incident_severity(const struct incident *incident);
/* The whole time that the windows span. */
int64_t incident_begin_ns(const struct incident *incident);
int64_t incident_end_ns(const struct incident *incident);

/* a + b, cut to what int64 holds. */
int64_t incident_add_ns(int64_t a, int64_t b);

/* window.c: the windows of a firing; `last_ns` > 0: [t0 - last, t0] alone. Returns how many. */
unsigned incident_size(struct incident *incident, const struct incidents_sizing *sizing, int64_t step_ns,
		       int64_t last_ns);
/* Makes room for a joining firing within the longest length. */
void incident_extend(struct incident *incident, const struct triggers_firing *firing);
/* pin.c: sets the pins of every window in one ring; nothing here touches a disk. */
struct incidents_host;
void incident_pin(struct incident *incident, const struct incidents_host *host, const uint8_t *store_id,
		  const struct incidents_ring *ring, bool taking_over, struct incident_ring *ret_ring);
/* A descriptor of our own, and what the header says. */
int incident_hold(struct incident *incident, const struct incidents_ring *ring, struct incident_ring *kept);
/* A reader of our own, for a worker; -ENOENT if the ring is gone. */
int incident_open_ring(const struct incident_ring *ring, struct drec_reader **ret_reader);
/* Every pin of this incident off, in one ring or in all of them. */
void incident_unpin(struct drec_reader *reader, const uint8_t id[INCIDENTS_ID_BYTES]);
void incident_release(struct incident *incident);
/* What the ring's threads are inside of, now. */
void incident_look(struct incident *incident, unsigned ring, struct drec_reader *reader, int64_t now_ns);

/* coverage.c: reads the raw files back: members, losses, gaps, verdicts. */
int incident_cover(struct incident *incident, int raw_fd);
/* The innermost plain span of a ring when the incident was pinned, preferably of the thread that has a step open;
 * NULL if none was. */
const struct incident_open *incident_innermost(const struct incident *incident, uint32_t ring);

/* The ring of the first firing; UINT32_MAX: it has none. */
uint32_t incident_first_ring(const struct incident *incident);
/* The first firing's job; with several on a host each is told apart by it. */
const char *incident_job(const struct incident *incident);
/* The rank to look at: that which the others wait for, else the first to be noticed; UINT32_MAX = not known. */
uint32_t incident_rank(const struct incident *incident);

/* Steps of all ranks are slow where one is: that which does its own work more slowly, if one joined; else NULL. */
const struct triggers_firing *incident_straggler(const struct incident *incident);

/* Which ranks the others wait for: see apart.c. */
struct incident_apart {
	uint32_t ring;          /* the first that stands apart */
	unsigned n_apart;       /* how many do */
	unsigned n_waiting;     /* how many are alike */
	unsigned n_stepping;    /* how many have a step open */
	const char *waiting_in; /* what those that are alike are inside of */
};
/* False where none stands apart; then how many are alike is known all the same, and `ring` is UINT32_MAX. */
bool incident_apart(const struct incident *incident, struct incident_apart *ret_apart);

/* One sentence about device events, the same everywhere. */
void incident_device_sentence(const struct incident *incident, char *ret_text, size_t room);
/* clocks.c: clock steps and the error bound from the anchors. */
void incident_clocks(struct incident *incident);

/* report.c */
void incident_sentence(const struct incident *incident, char *ret_text, size_t room);
/* The sentence of an incident that was told before it was over, now that it is. */
void incident_sentence_resolve(char *text, size_t room, int64_t lasted_ns);
/* The text of report.md (malloc). */
int incident_report(const struct incident *incident, char **ret_text, size_t *ret_bytes);

/* write.c: WRITE to RELEASED on a worker thread. 0 or -errno; re-entrant after a kill. */
int incident_write(struct incident *incident, struct incidents_store *store);
/* pending.c: the record that makes an incident survive the daemon. */
int incident_record(struct incident *incident, struct incidents_store *store);
int incident_record_read(struct incidents_store *store, const char *name, struct incident **ret_incident);
int incident_record_remove(struct incident *incident, struct incidents_store *store);

#endif
