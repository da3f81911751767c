/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Series and the sources they belong to: made by key, found by key or id, bounded in number.
 *
 * An id is place | generation << 14: one that was given up is never taken for its successor, nor after a
 * restore, where free places take the newest generation there was. A series is one block of memory: this
 * struct, the window's values, and the state of every module that watches its role. Where the table is full
 * the series unused for longest gives way, provided nothing of it is open.
 *
 * Steps of another phase than "train" are followed by a child series "step@eval" of their own: phases have
 * their own usual lengths. Callers and firings see only the parent. A child is found by name and phase, so
 * that neither a name with an "@" nor two phases that are cut to one name are taken for each other.
 */
#ifndef TRIGGERS_SERIES_H
#define TRIGGERS_SERIES_H

#include <stddef.h>
#include <stdint.h>

#include <triggers/triggers.h>

#include "after_phase.h"
#include "window_median.h"

enum {
	TRIGGERS_PLACE_BITS = 14,
	TRIGGERS_BUCKETS = 1 << 15,
	TRIGGERS_SOURCE_BUCKETS = 1 << 10,
	TRIGGERS_PHASES_KEPT = 8,
	TRIGGERS_MODULES_MAX = 16
};
_Static_assert(1 << TRIGGERS_PLACE_BITS == TRIGGERS_SERIES_MAX, "a place fits its bits");

struct triggers_interval {
	int64_t begin_ns, end_ns;
};

/*
 * A stretch of another phase. It excuses a step that it interrupts: one that had begun before, or that it
 * delayed the end of. A step that begins and ends in it runs beside it (an evaluation on other devices, an
 * epoch around all steps) and is held to the usual length. The steps of other ranks of the job wait for who
 * is in such a phase, and are excused for as long as they overlap; unless one of them has run a whole step in
 * it, or the rank itself is in a step of it.
 */
struct triggers_phase {
	int64_t begin_ns, end_ns; /* end INT64_MAX: open */
	int beside;               /* a whole step has been seen in it */
	int apart;                /* a whole step of another rank has: these do not wait for it */
};

/* What is known of one producer. Lives as long as it has series. */
struct triggers_source {
	uint32_t number;
	uint32_t n_series;
	uint64_t job; /* 0 = not known */
	struct triggers_source *next;
	struct triggers_source *mate; /* the next of the same job, in a circle; NULL = alone */
	int64_t last_progress_ns;     /* INT64_MIN = none yet */
	int64_t step_ns;              /* median train step, 0 = not yet known */
	int64_t step_end_ns;          /* of the last whole train step; INT64_MIN = none yet */
	int64_t step_begin_ns;        /* of the latest train step that was opened */
	uint32_t open_steps;          /* train steps that are open */
	uint32_t open_others;         /* steps of other phases that are */
	uint32_t n_open;              /* phases that are open; at most 8 are known of */
	struct triggers_phase open[TRIGGERS_PHASES_KEPT];
	uint32_t n_phases; /* closed ones so far; the last 8 are kept */
	struct triggers_phase phase[TRIGGERS_PHASES_KEPT];
	int after_phase; /* the next train step is the first one after a phase */
	uint32_t grace;  /* steps that still may be slow: after start, restore, recompile */
};

struct triggers_series {
	uint32_t id;
	uint32_t next; /* place of the next one in the bucket, or SERIES_NONE */
	uint32_t bucket;
	uint32_t parent; /* id that callers know it by: its own, or of the series it is a phase of */
	uint32_t open; /* parents of step phases: id of the child (or itself) that is open, or SERIES_NONE */
	enum triggers_role role;
	uint32_t rank;
	uint64_t track;
	uint64_t group; /* of TRIGGERS_BUSY: the like tracks of its job; 0 = none */
	char name[TRIGGERS_NAME_MAX];
	char phase[TRIGGERS_NAME_MAX];
	int alarms;
	int learns;  /* 0: phases "first" and "compile" have no usual length */
	int varies;  /* spans, and phases known by a span's name ("phase:eval/x"): less steady than steps */
	int timed;   /* a module judges it as time passes */
	int is_open; /* begun and not ended; for tracks: seen at least once */
	int64_t open_ns, open_step;
	uint64_t samples;
	uint64_t last_use; /* the engine's count of uses */
	int64_t last_progress_ns;
	uint64_t alarm_index[4]; /* periodic memory: sample numbers of the last alarms, newest first */
	float alarm_excess[4];   /* how bad they were: value over expected, less 1; FLT_MAX = not told */
	uint32_t n_alarm_index;
	struct triggers_after_phase after;
	struct triggers_source *source;
	struct triggers_window window;
	size_t state_at[TRIGGERS_MODULES_MAX]; /* byte offset of a module's state in this block, 0 = none */
};

struct triggers_table {
	struct triggers_series *place[TRIGGERS_SERIES_MAX];
	uint32_t generation[TRIGGERS_SERIES_MAX];
	uint32_t used; /* places ever taken */
	uint32_t count;
	uint32_t bucket[TRIGGERS_BUCKETS];
	struct triggers_source *sources[TRIGGERS_SOURCE_BUCKETS];
	uint64_t uses;
	uint32_t hand; /* where the next search for one to give up begins */
};

void triggers_table_init(struct triggers_table *table);
struct triggers_series *triggers_table_get(const struct triggers_table *table, uint32_t id);
struct triggers_series *triggers_table_find(const struct triggers_table *table, enum triggers_role role,
					    uint32_t source, uint64_t track, const char *name,
					    const char *phase);
struct triggers_source *triggers_table_source(const struct triggers_table *table, uint32_t number);
/* A series whose block has `bytes` bytes, the struct included, the rest zero; NULL where there is no room. */
struct triggers_series *triggers_table_add(struct triggers_table *table, enum triggers_role role,
					   uint32_t source, uint64_t track, const char *name,
					   const char *phase, size_t bytes);
/* The same at a given id, for restore: NULL also if the place is taken. */
struct triggers_series *triggers_table_add_at(struct triggers_table *table, uint32_t id,
					      enum triggers_role role, uint32_t source, uint64_t track,
					      const char *name, const char *phase, size_t bytes);
/*
 * One to give up for a new one, if any may be: nothing of it open nor used just now, unused for longest among
 * those looked at.
 */
struct triggers_series *triggers_table_idle(struct triggers_table *table, int for_alarms);
void triggers_table_remove(struct triggers_table *table, struct triggers_series *series);
uint32_t triggers_table_newest_generation(const struct triggers_table *table);
void triggers_table_follow_generation(struct triggers_table *table, uint32_t newest);
/* Which job a source is of: its ranks wait for each other. */
void triggers_table_set_job(struct triggers_table *table, struct triggers_source *source, uint64_t job);

/* Phases of a source: silence, and steps that they interrupt, are excused for as long as they overlap. */
void triggers_source_phase_begin(struct triggers_source *source, int64_t begin_ns);
void triggers_source_phase_end(struct triggers_source *source, int64_t begin_ns, int64_t end_ns,
			       int was_open);
/* A whole step: the phases that it lies in go on beside steps. */
void triggers_source_step(struct triggers_source *source, int64_t begin_ns, int64_t end_ns);
/* A step is open, or no more. */
void triggers_source_step_open(struct triggers_source *source, int is_train, int64_t begin_ns);
void triggers_source_step_shut(struct triggers_source *source, int is_train);
uint32_t triggers_source_phases_kept(const struct triggers_source *source);
/* The clock was set by `step_ns`: what would lie after now_ns moves with it. */
void triggers_source_follow_clock(struct triggers_source *source, int64_t now_ns, int64_t step_ns);
/* Whether a phase is open that interrupts the step that began then (or, of tracks, silences them). */
int triggers_source_interrupted(const struct triggers_source *source, int64_t begin_ns, int is_track);
int64_t triggers_source_excused(const struct triggers_source *source, int64_t from_ns, int64_t to_ns);

#endif
