/* SPDX-License-Identifier: Apache-2.0 */
/* trigger_settings.h: from the configuration to the trigger engine: every setting of triggers and gates, and limits. */
#ifndef RECORDER_TRIGGER_SETTINGS_H
#define RECORDER_TRIGGER_SETTINGS_H

#include <triggers/triggers.h>

#include "config.h"
#include "sources/series.h"

/*
 * Sets everything. What the engine does not take (`triggers.threshold` can hold more rules than it has room for) is
 * told to `refused` (may be NULL) with its sentence, and left out. Returns how many were refused.
 */
unsigned trigger_settings_apply(const struct config *config, struct triggers_engine *engine,
				void (*refused)(void *context, const char *key, const char *why), void *context);

/* The mapping from events to series that the configuration asks for. It borrows both. 0 or -errno. */
int trigger_settings_series(const struct config *config, struct triggers_engine *engine, struct series **ret_series);
/* Names of phases as configured, borrowed from it. */
struct phases trigger_settings_phases(const struct config *config);
/* What is no own work, the same way. */
struct waits trigger_settings_waits(const struct config *config);

#endif
