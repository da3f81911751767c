/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first step after a phase (evaluation, checkpoint, compile) is slow by nature, in some jobs by a third:
 * caches are cold, ranks are apart. How much is learned: each such step is held against the lower median of
 * those before it, and the very first one, of which nothing is known, may take half as long again. Of 230
 * first steps after an evaluation in public 405B runs 8 took more than 1.2 x the median, nearly all of them
 * after the first evaluation.
 */
#ifndef TRIGGERS_AFTER_PHASE_H
#define TRIGGERS_AFTER_PHASE_H

#include <stdint.h>

#include "save.h"

enum { TRIGGERS_AFTER_KEPT = 8 };

struct triggers_after_phase {
	uint32_t count; /* so far; the last 8 ratios to the median are kept */
	float ratio[TRIGGERS_AFTER_KEPT];
};

/* How many times the usual such a step takes, at least 1. */
double triggers_after_phase_factor(const struct triggers_after_phase *after);
/* How much longer than that it may take before anything is said, as a share: 0 once one has been seen. */
double triggers_after_phase_slack(const struct triggers_after_phase *after);
void triggers_after_phase_learn(struct triggers_after_phase *after, double ratio);

void triggers_after_phase_save(const struct triggers_after_phase *after, struct triggers_writer *writer);
void triggers_after_phase_restore(struct triggers_after_phase *after, struct triggers_cursor *cursor);

#endif
