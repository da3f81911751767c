/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.h: recorded history through the trigger engine, in event time, with the gates of the daemon.
 *
 * A reader (replay_trace.c, replay_steps.c, replay_ring.c) begins a run, feeds its engine and ends it; replay.c owns the
 * engine, prints firings and counts. One run is one job: its budgets and cooldowns are its own.
 */
#ifndef RECORDER_REPLAY_H
#define RECORDER_REPLAY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <triggers/triggers.h>

#include "options.h"

struct config;

enum { REPLAY_RINGS_MAX = 512 }; /* files of one run */

struct replay_settings {
	const struct config *config; /* triggers, gates and series as configured; NULL = the defaults */
	bool json, all, explain;
	const char *trigger;      /* only firings of this one are printed; NULL = all */
	struct option_texts set;  /* key=value for the engine */
	struct option_texts step; /* patterns of span names that are steps; none = the usual ones */
};

struct replay {
	const struct replay_settings *settings;
	FILE *out;
	struct triggers_engine *engine;
	char run[512];
	int64_t clock_ns; /* event time of the current run */
	int64_t settle_ns; /* when the incident of the last firing has its post window; INT64_MAX = none */
	/* Over all runs. */
	uint64_t runs, steps, samples;
	int64_t job_ns;
	uint64_t firings[TRIGGERS_CRITICAL + 1];
	uint64_t held_back[TRIGGERS_GATE_LIMIT];
};

/* 0, or -EINVAL with a sentence in `error` where a setting is refused. */
int replay_begin(struct replay *replay, const char *run, char *error, size_t error_room);
/* Event time goes on: every deadline up to then is judged at its own time. */
void replay_advance(struct replay *replay, int64_t now_ns);
void replay_end(struct replay *replay);
/* The totals, as a table line or as {"summary": …}. */
void replay_summary(const struct replay *replay);

/* A Chrome trace. 0, or -errno with a sentence. */
int replay_trace(struct replay *replay, const char *path, char *error, size_t error_room);
/* Rings and windows together, as one run in the order of time; needs a configuration, which names the series. 0, or -errno with a sentence. */
int replay_rings(struct replay *replay, const char *run, const char *const *paths, unsigned count, char *error,
		 size_t error_room);
/* run,time_ms,kind,value_s,data_s,step rows, also packed. */
int replay_steps(struct replay *replay, const char *path, char *error, size_t error_room);

/* Decimal text ("12.06", "1e-05") times 10^scale as an integer, rounded down. -EINVAL, -ERANGE. */
int replay_decimal(const char *text, int scale, int64_t *ret_value);

#endif
