/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_set.h: settings and names given on the command line, checked before anything is read.
 *
 * A setting reads KEY=VALUE; the key as the engine knows it ("stall.factor", "gates.cooldown") or as the
 * configuration spells it ("triggers.stall.factor").
 */
#ifndef RECORDER_REPLAY_SET_H
#define RECORDER_REPLAY_SET_H

#include <triggers/triggers.h>

#include "options.h"

/* Sets them all. -EINVAL with a sentence that says what is known where one is refused. */
int replay_set(const struct option_texts *set, struct triggers_engine *engine, char *error,
	       size_t error_room);
/* The same with an engine that is thrown away. */
int replay_set_check(const struct option_texts *set, char *error, size_t error_room);
/* -EINVAL with a sentence where one is no trigger. */
int replay_trigger_check(const struct option_texts *triggers, char *error, size_t error_room);

#endif
