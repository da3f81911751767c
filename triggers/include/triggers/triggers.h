/* SPDX-License-Identifier: Apache-2.0 */
/*
 * triggers/triggers.h: watch series of samples and say where something is wrong.
 *
 * The engine owns series (one name on one track, or the step times of a rank), runs every trigger module on
 * those that alarm, and passes what they say through gates (warm-up, severity, cooldown, coalescing,
 * budgets). It does not know who feeds it, never reads a clock (every call brings its time), and does no
 * I/O: `driverec replay` and the daemon run the same code.
 *
 * Time is int64 ns on one clock of the caller's choice (the daemon: Unix ns by the one offset of design.md).
 * It may repeat or step back by a little; nothing breaks.
 *
 * Not thread-safe; one engine belongs to one thread. Memory is bounded: TRIGGERS_SERIES_MAX series of at
 * most 4 KiB. Errors are -errno.
 */
#ifndef TRIGGERS_TRIGGERS_H
#define TRIGGERS_TRIGGERS_H

#include <stddef.h>
#include <stdint.h>

enum {
	TRIGGERS_SERIES_MAX = 16384,
	TRIGGERS_NAME_MAX = 64,
	TRIGGERS_TEXT_MAX = 256,
	TRIGGERS_SERIES_NONE = UINT32_MAX
};

enum triggers_severity { TRIGGERS_NOTE = 0, TRIGGERS_WARN = 1, TRIGGERS_CRITICAL = 2 };
/* "note", "warn", "critical". */
const char *triggers_severity_name(enum triggers_severity severity);

enum triggers_role {
	TRIGGERS_STEP = 1,    /* whole steps of one rank; an open one has a deadline */
	TRIGGERS_PHASE = 2,   /* lengths of one phase other than train */
	TRIGGERS_SPAN = 3,    /* durations of one name on one track */
	TRIGGERS_COUNTER = 4, /* values */
	TRIGGERS_TRACK = 5,   /* progress of a track: any event on it */
	TRIGGERS_BUSY = 6     /* own work of one track in one step: told to peers, who wait for it */
};

/* What a series is. `source` is the caller's number of the producer (ring, rank). */
struct triggers_series_key {
	enum triggers_role role;
	uint32_t source;
	uint32_t rank;     /* UINT32_MAX = unknown */
	uint64_t job;      /* the caller's number of the job: its ranks stall together; 0 = not known */
	uint64_t track;    /* the caller's id of the track */
	const char *name;  /* "step", "phase:eval", "load", "device:0:power" */
	const char *group; /* TRIGGERS_BUSY: which tracks do the like work ("compute", "stream"); else NULL */
	int alarms;        /* may fire; else it is only followed for diagnosis */
};

struct triggers_sample {
	int64_t start_ns;
	int64_t duration_ns; /* counters: 0 */
	double value;        /* counters; for the others the duration in ns is taken */
	int64_t step;        /* -1 = not known */
	const char *phase;   /* "train" where NULL */
	int64_t sample;      /* the caller's own number, returned in the firing; -1 = none */
	const char *note;    /* of counters of devices: what the host waited in meanwhile; NULL = not known */
};

/* The names of the triggers in the order in which they judge; NULL after the last. */
const char *triggers_name(unsigned number);

/* What a trigger says. Texts are inline, so it may be kept. */
struct triggers_firing {
	char trigger[TRIGGERS_NAME_MAX];
	char series[TRIGGERS_NAME_MAX];
	char phase[TRIGGERS_NAME_MAX];
	enum triggers_severity severity;
	uint32_t series_id;
	uint32_t source;
	uint32_t rank;
	uint64_t track;
	int64_t t0_ns;    /* the anomaly: for a stall the LAST progress, for a spike the span's begin */
	int64_t until_ns; /* the anomaly's end where known, else detected_ns */
	int64_t detected_ns;
	double value; /* ns, or the counter's unit */
	double expected;
	double ratio;
	int64_t step;
	int64_t sample;
	int ongoing;                      /* not over yet: a `progress` call will follow if it ends */
	int shadow;                       /* settled as a note on purpose: recorded, no incident */
	int quiet;                        /* an incident, but nobody is told (shift.alert, straggler.alert) */
	char evidence[TRIGGERS_TEXT_MAX]; /* one plain sentence */
};

/* Why a firing made no incident of its own. */
enum triggers_gate {
	TRIGGERS_PASSED = 0,
	TRIGGERS_WARMUP,
	TRIGGERS_PERIODIC,
	TRIGGERS_COOLDOWN,
	TRIGGERS_COALESCED, /* joined an incident that was still waiting for its post window */
	TRIGGERS_BUDGET_HOUR,
	TRIGGERS_BUDGET_DAY,
	TRIGGERS_OWN_CAPTURE,
	TRIGGERS_SILENCED,     /* `shadow`: a note that is only recorded */
	TRIGGERS_SAME_ANOMALY, /* part of an anomaly that has an incident, which no longer waits */
	TRIGGERS_GATE_LIMIT
};
/* "cooldown", as docs and JSON say it. */
const char *triggers_gate_name(enum triggers_gate gate);

/* Where the engine speaks. Any may be NULL. Called from inside observe and tick. */
struct triggers_listener {
	void *context;
	/* gate = TRIGGERS_PASSED: make an incident of it; else why not. */
	void (*firing)(void *context, const struct triggers_firing *firing, enum triggers_gate gate);
	/* An ongoing firing's cause is over (the step ended, the track moved). */
	void (*progress)(void *context, const struct triggers_firing *firing, int64_t now_ns);
	/* Keep everything from `from_ns` on: this may become a firing. Ends with suspicion_end. */
	void (*suspicion)(void *context, uint32_t series_id, uint32_t source, int64_t from_ns);
	void (*suspicion_end)(void *context, uint32_t series_id, uint32_t source);
};

struct triggers_engine;

/* The listener is copied, its context borrowed; NULL: nobody listens. -ENOMEM. */
int triggers_engine_new(const struct triggers_listener *listener, struct triggers_engine **ret_engine);
/* NULL is fine. What is still going on is not told to be over. */
void triggers_engine_free(struct triggers_engine *engine);

/*
 * Options by name, as in the configuration: "latency_spike.warn" = "1.5". May be set at any time. Unknown
 * names and values out of bounds are -EINVAL with a plain sentence in `error` (of `error_room` bytes).
 */
int triggers_engine_set(struct triggers_engine *engine, const char *key, const char *value, char *error,
			size_t error_room);

/* Every option: for the configuration table, help and docs. */
struct triggers_option {
	const char *key;   /* "stall.factor" */
	const char *unit;  /* "x", "s", "steps", "", "%" */
	const char *value; /* default, as text */
	double low, high;
	const char *help;
};
/* The table, which ends with key == NULL. */
const struct triggers_option *triggers_options(void);

/*
 * The id of the series of this key, made if new; its texts are copied, cut to what fits. TRIGGERS_SERIES_NONE
 * if there is no room, or the key says no role or no name. Where the table is full the one unused for longest
 * gives way; calls with an id of one that is gone do nothing.
 */
uint32_t triggers_engine_series(struct triggers_engine *engine, const struct triggers_series_key *key);

/* A finished step, phase, span, or a counter's sample. */
void triggers_engine_observe(struct triggers_engine *engine, uint32_t series,
			     const struct triggers_sample *sample);

/* A step, phase or span that has begun, or is known to be open (idempotent); `step` -1 = not known. */
void triggers_engine_open(struct triggers_engine *engine, uint32_t series, int64_t start_ns, int64_t step,
			  const char *phase);
/* Something moved in what is open, or on the track: it was not hung until then. */
void triggers_engine_progress(struct triggers_engine *engine, uint32_t series, int64_t now_ns);
/* It is open no more, and how long it took is not known. */
void triggers_engine_abandon(struct triggers_engine *engine, uint32_t series);

/*
 * A producer died without a mark, after last_ns; `evidence` is the sentence of the firing. What it left open
 * is closed. Its series stay until triggers_engine_source_end().
 */
void triggers_engine_crash(struct triggers_engine *engine, uint32_t source, uint32_t rank, int64_t last_ns,
			   int64_t now_ns, const char *evidence);
/* A producer is gone, well or not: its series are given up, and its number may be used again. */
void triggers_engine_source_end(struct triggers_engine *engine, uint32_t source);
/* An operator or the job asks for an incident about t0_ns. */
void triggers_engine_manual(struct triggers_engine *engine, uint32_t source, uint32_t rank, int64_t t0_ns,
			    int64_t now_ns, const char *reason);

/* One of our own captures touches steps from now on until its end: they never fire. */
void triggers_engine_capture(struct triggers_engine *engine, int64_t begin_ns, int64_t end_ns);

/* The incident that firings joined takes no others in from now on: its post window is over. */
void triggers_engine_settled(struct triggers_engine *engine, int64_t now_ns);

/* Time passes: deadlines are judged. Call about 20 times a second, and in replay before each event. */
void triggers_engine_tick(struct triggers_engine *engine, int64_t now_ns);

/* No tick before this time says anything (INT64_MAX: until something else happens): for replay and timers. */
int64_t triggers_engine_due(const struct triggers_engine *engine);

/* What a detector believes, for `replay --explain`, status and the page. */
struct triggers_belief {
	struct triggers_series_key key;
	uint64_t samples;
	double median, deviation;  /* running median and 1.4826 x MAD; ns or the counter's unit */
	double ceiling;            /* from where latency_spike fires */
	double warn;               /* from where it, or difference, does so as a warning */
	double critical;           /* from where it does so as critical */
	double deadline_ns;        /* of an open step; 0 = none learned yet */
	double line, line_ceiling; /* difference: expected next value and its ceiling; 0 = not known yet */
	double level;              /* shift: the usual level it compares with; 0 = none yet */
	double shift_share;        /* shift: how much of the evidence that makes it fire there is, 0 .. 1 */
	double peers;              /* straggler: median of the peers in the last whole step; 0 = no peers */
	int warm;
	int open;
	int64_t open_since_ns;
	int64_t last_progress_ns;
};
/*
 * Of a series, by its id or by its place, 0 .. triggers_engine_series_count() - 1; the key's name lives as
 * long as the series, its job and group are left out. -ENOENT where the place is free.
 */
int triggers_engine_belief(const struct triggers_engine *engine, uint32_t series,
			   struct triggers_belief *ret);
/* How many places have ever been taken: some may be free again. */
uint32_t triggers_engine_series_count(const struct triggers_engine *engine);
/* Cheap, for who looks for one kind among many; 0 where there is no such series. */
enum triggers_role triggers_engine_role(const struct triggers_engine *engine, uint32_t series);

/* The median step of a source's step series in ns, 0 where not yet known: windows are sized in steps. */
int64_t triggers_engine_step_ns(const struct triggers_engine *engine, uint32_t source);

/*
 * State as bytes (versioned, checked), so that a restart goes on as if uninterrupted; options are not part of
 * it. save returns the length, or -ENOSPC if `room` is too small (call with NULL, 0 to learn it). restore
 * goes into an engine without series (-EBUSY) and keeps no pointer: -EPROTONOSUPPORT for another version,
 * -EBADMSG for what is damaged; then nothing is known.
 */
int64_t triggers_engine_save(const struct triggers_engine *engine, void *out, size_t room);
int triggers_engine_restore(struct triggers_engine *engine, const void *bytes, size_t count);

/* Whether `text` is matched whole by `pattern`, in which * stands for any number of characters. */
int triggers_pattern_match(const char *pattern, const char *text);

#endif
