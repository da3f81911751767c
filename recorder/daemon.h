/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon.h: the recorder. Reads the rings of a run directory, judges, and keeps incidents in a store.
 *
 * One thread runs everything but disk work: a tick every 50 ms, slowed down to 250 ms while nothing changes.
 * What it believes (trigger state, macro view, how far each ring was read) is saved every 10 s and after every
 * incident, so that a killed daemon goes on where it was.
 */
#ifndef RECORDER_DAEMON_H
#define RECORDER_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

#include "config.h"

struct daemon;

struct daemon_options {
	const struct config *config; /* borrowed */
	const char *run_dir;         /* as of drec_run_dir() */
	const char *store;
	const char *feed;            /* FILE, "-", "unix:PATH" or a FIFO; NULL = none */
	bool ends_with_feed;         /* stop when a feed that has an end is at it, and leave its ring */
};

/* Takes the locks and opens everything. `why` gets a clause for the message where it fails. */
int daemon_new(const struct daemon_options *options, struct daemon **ret_daemon, char *why, size_t why_room);
void daemon_free(struct daemon *daemon);

uv_loop_t *daemon_loop(struct daemon *daemon);

/* Runs until daemon_stop() or daemon_finish() has done its part. */
void daemon_run(struct daemon *daemon);

/* Ends at once: what is open stays pinned for the next start. */
void daemon_stop(struct daemon *daemon);

/* Reads what dead rings still hold, finishes open incidents, then ends; at the latest after `most_ns`. */
void daemon_finish(struct daemon *daemon, int64_t most_ns);

/* An operator asks for an incident now; `last_ns` 0 = the usual window. Returns 0 and its id, or -EBUSY with the
 * gate that held it back. */
int daemon_trigger(struct daemon *daemon, int64_t last_ns, const char *reason, char *ret_id, size_t id_room,
		   const char **ret_gate);

/* A capture of ours runs from now on for so long: steps that it touches never fire. */
void daemon_capture(struct daemon *daemon, int64_t for_ns);

/*
 * The job that this daemon was started for has ended. `how` is a clause ("was killed by signal 9 (Killed)");
 * `failed`: nobody asked for that, so it is a crash and no note.
 */
void daemon_job_ended(struct daemon *daemon, const char *job, const char *how, bool failed);

/* Its feed has ended with something that is no trace or could not be read; the log says what. */
bool daemon_feed_failed(const struct daemon *daemon);

/* For a line on the terminal. */
size_t daemon_rings(const struct daemon *daemon);

#endif
