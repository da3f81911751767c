/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources/busy.h: own work of the tracks of a source in each of its train steps, told to the trigger engine.
 *
 *   own work   the union of a track's spans within a step, without the union of its collectives and waits (waits.h).
 *              Spans that nest count once; a wait inside a span is taken out of it.
 *   tracks     those that mark steps, each in its own steps; and a device's streams, in the steps of the first track
 *              of their source that marks them, told one step later, as they run behind
 *   peers      the same tracks of the other ranks of the job on this host, or of the same source: those that mark steps
 *              by their name, digits aside; streams by their name within their device
 *
 * Cost: a look-up (none where the last span was of the same track) and an insert into a short list, no allocation. A
 * track keeps at most 48 pieces of its latest work; beyond that neighbours are joined, which keeps their sum exact and
 * blurs only where in the step it lies. 2.4 KB each, at most BUSY_FOLLOWED_MAX; what there is no room for is left out.
 *
 * Knows no ring. Not thread-safe.
 */
#ifndef RECORDER_SOURCES_BUSY_H
#define RECORDER_SOURCES_BUSY_H

#include <stdbool.h>
#include <stdint.h>

#include <triggers/triggers.h>

#include "state_bytes.h"

enum { BUSY_FOLLOWED_MAX = 512, BUSY_KNOWN_MAX = 1 << 13 };

struct busy;
struct series_source; /* series.h */

/* A finished step of a track. */
struct busy_step {
	uint32_t track;
	int64_t start_ns, end_ns;
	int64_t number;    /* -1 = none: it is only passed over */
	const char *phase; /* NULL or "train"; others are only passed over */
};

/* The engine is borrowed. */
int busy_new(struct triggers_engine *engine, struct busy **ret_busy);
void busy_free(struct busy *busy);

/* A span has ended. `waits`: it is no own work. */
void busy_span(struct busy *busy, const struct series_source *source, uint32_t track, bool waits,
	       int64_t start_ns, int64_t end_ns);
void busy_step(struct busy *busy, const struct series_source *source, const struct busy_step *step);
/* Forgets a source; its number may be used again. */
void busy_source_end(struct busy *busy, uint32_t source);

/*
 * What has been noted of steps that go on, so that a daemon that begins anew tells of them as if nothing had been. To be
 * restored into a new one, once the engine is; tracks whose series is gone are left out.
 */
void busy_save(const struct busy *busy, struct state_writer *writer);
void busy_restore(struct busy *busy, struct state_reader *reader);

#endif
