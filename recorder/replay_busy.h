/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_busy.h: own work of the tracks of a trace, step by step, for the straggler trigger.
 *
 * Own work is the union of a track's spans of one step without waits (sources/waits.h). Peers are tracks on which the
 * like happens: with the same set of names, but for waits and for what comes in fewer than half of the steps.
 */
#ifndef REPLAY_BUSY_H
#define REPLAY_BUSY_H

#include <stdint.h>

#include <triggers/triggers.h>

#include "sources/waits.h"

struct replay_busy;

/* `own`: the names that the configuration adds. */
int replay_busy_new(const struct waits *own, struct replay_busy **ret_busy);
void replay_busy_free(struct replay_busy *busy);

/*
 * Spans by track, step and begin, in this order. `name` is the number of `text`: the same for the same text, less than
 * the count of names. 0 or -ENOMEM.
 */
int replay_busy_span(struct replay_busy *busy, uint32_t track, int64_t step, uint32_t name, const char *text,
		     int64_t start_ns, int64_t end_ns);

/*
 * All spans are known: makes the series in `engine`, named by `track_text`, and puts the steps in the order in which
 * they were over. 0 or -ENOMEM.
 */
int replay_busy_series(struct replay_busy *busy, struct triggers_engine *engine,
		       void (*track_text)(const void *context, uint32_t source, uint64_t track, char *out,
					  size_t room),
		       const void *context);
/* The next step that was over by `now_ns`; its series, or TRIGGERS_SERIES_NONE where there is none. */
uint32_t replay_busy_next(struct replay_busy *busy, int64_t now_ns, struct triggers_sample *ret_sample);

#endif
