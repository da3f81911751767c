/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.h: recorded history through the trigger engine, in event time, with the gates of the daemon.
 *
 * A reader (replay_trace.c, replay_steps.c, replay_ring.c) begins a run, feeds its engine and ends it;
 * replay.c owns the engine, prints firings and counts. One run is one job: its budgets and cooldowns are its
 * own.
 */
#ifndef RECORDER_REPLAY_H
#define RECORDER_REPLAY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <triggers/triggers.h>

#include "options.h"
#include "replay_count.h"

struct config;

enum { REPLAY_RINGS_MAX = 512 }; /* files of one run */

struct replay_settings {
	const struct config *config; /* triggers, gates and series as configured; NULL = the defaults */
	bool json, all, explain;
	struct option_texts trigger; /* only firings of these are printed and counted; none = all */
	struct option_texts set;  /* key=value for the engine, with or without "triggers." before the key */
	struct option_texts step; /* patterns of span names that are steps; none = the usual ones */
};

struct replay {
	const struct replay_settings *settings;
	FILE *out;      /* NULL: only count */
	FILE *progress; /* where to say how far long work is; NULL = nowhere */
	struct triggers_engine *engine;
	char run[512];
	int64_t clock_ns;  /* event time of the current run */
	int64_t sample;    /* of the row that is read, for firings that come of time passing; -1 = none */
	int64_t settle_ns; /* when the incident of the last firing has its post window; INT64_MAX = none */
	/* The name of a track, for people: set by the reader of the current run, may be NULL. Fills `out` or
	 * leaves it. */
	void (*track_text)(const void *context, uint32_t source, uint64_t track, char *out, size_t room);
	const void *track_context;
	/* Sees every firing that passed or joined; may be NULL. */
	void (*fired)(void *context, const struct triggers_firing *firing);
	void *fired_context;
	/* Over all runs. */
	uint64_t runs, steps, samples;
	int64_t job_ns;
	uint64_t firings[TRIGGERS_CRITICAL + 1]; /* that passed */
	uint64_t held_back[TRIGGERS_GATE_LIMIT];
	struct replay_counts counts;
	/* Of the current run, to know its share. */
	uint64_t steps_before;
	int64_t job_before_ns;
	int64_t said_ns; /* when progress was said last */
	bool is_said;    /* and is still on the terminal */
};

/* Asks all replays to end soon: readers return -EINTR. For signal handlers. */
void replay_interrupt(void);
bool replay_interrupted(void);

/* 0, or -EINVAL with a sentence in `error` where a setting is refused. */
int replay_begin(struct replay *replay, const char *run, char *error, size_t error_room);
/* Event time goes on: every deadline up to then is judged at its own time. */
void replay_advance(struct replay *replay, int64_t now_ns);
/* The clock was set back, or the rows are of an earlier time: what is open keeps its age. */
void replay_set_back(struct replay *replay, int64_t now_ns);
void replay_end(struct replay *replay);
void replay_free(struct replay *replay);
/* Now and then, where somebody watches: so much of this has been read. */
void replay_progress(struct replay *replay, uint64_t done, const char *what);
/* Takes what was said of progress off the terminal, before something else is printed. */
void replay_progress_clear(struct replay *replay);

/* A Chrome trace. 0, or -errno with a sentence. */
int replay_trace(struct replay *replay, const char *path, char *error, size_t error_room);
/* Rings and windows together, as one run in the order of time; needs a configuration, which names the series.
 * 0, or -errno with a sentence. */
int replay_rings(struct replay *replay, const char *run, const char *const *paths, unsigned count,
		 char *error, size_t error_room);
/* run,time_ms,kind,value_s,data_s,step rows, also packed; "-" = stdin. */
int replay_steps(struct replay *replay, const char *path, char *error, size_t error_room);

/* The same of what can be read from `fd`; `name` is for messages. */
int replay_steps_fd(struct replay *replay, int fd, const char *name, char *error, size_t error_room);

/* Decimal text ("12.06", "1e-05") times 10^scale as an integer, rounded down. -EINVAL, -ERANGE. */
int replay_decimal(const char *text, int scale, int64_t *ret_value);

#endif
