/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_past.h: the steps of the day before an incident, as the macro view of its store has them, through
 * the triggers.
 *
 * The macro view keeps every finished step as a counter, one bin a second for a day (sources/intake.h). A bin
 * with one or two steps gives both back exactly; where one has more, or the file had to give up bins, the
 * past is not known and nothing is said of it. Phases inside of steps are not known either: a job whose steps
 * hold checkpoints has them here as long steps.
 */
#ifndef RECORDER_REPLAY_PAST_H
#define RECORDER_REPLAY_PAST_H

#include "replay.h"

struct replay_past;

/*
 * Reads what there is of [t0_ns - a day, t0_ns). -ENODATA: too little, or not exactly known; -errno. Freed by
 * replay_past_free(), which takes NULL.
 */
int replay_past_read(const char *store_path, int64_t t0_ns, struct replay_past **ret_past);
void replay_past_free(struct replay_past *past);

/* From the first step to t0. */
int64_t replay_past_length_ns(const struct replay_past *past);
/* One run of them all. 0, or -errno with a sentence. */
int replay_past_run(const struct replay_past *past, struct replay *replay, char *error, size_t error_room);

#endif
