/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources/intake.h: what becomes of a ring's events: series for the triggers, bins for the macro view.
 *
 * One intake a ring; the caches in it (row of a track and depth, number of a name) hold for as long as the
 * tiers object does. Without tiers (NULL) events go to the series alone.
 */
#ifndef RECORDER_SOURCES_INTAKE_H
#define RECORDER_SOURCES_INTAKE_H

#include <reducer/tiers.h>

#include "producers.h"
#include "series.h"

struct intake;

/*
 * Finished steps are counters of the macro view as well, in ns at the step's end: tracks with the keys
 * "steps/<track>/<depth of the step's span>/<phase>", and "limits/…" for what would have been a spike, once learned.
 */
#define INTAKE_STEPS  "steps"
#define INTAKE_LIMITS "limits"

int intake_new(struct producer *producer, struct series *series, struct reducer_tiers *tiers,
	       struct intake **ret_intake);
void intake_free(struct intake *intake);

/* The tiers were opened anew (or are gone: NULL). */
void intake_set_tiers(struct intake *intake, struct reducer_tiers *tiers);

void intake_event(struct intake *intake, const struct drec_event *event);

/* The ring's stacks were read: open steps and phases to the series, open spans to the macro view. */
void intake_open_spans(struct intake *intake, int64_t now_ns);

/* A number for the job of a ring, the same for all its rings; 0 where the job has no name. */
uint64_t intake_job(const struct drec_reader *reader);

/* A name's text, cut to `room`; "" where it has none. */
void intake_name(struct intake *intake, uint32_t name, char *ret_text, size_t room);

#endif
