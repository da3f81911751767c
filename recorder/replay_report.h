/* SPDX-License-Identifier: Apache-2.0 */
/* replay_report.h: what a replay prints, for people and (settings.json) as one JSON object a line. */
#ifndef RECORDER_REPLAY_REPORT_H
#define RECORDER_REPLAY_REPORT_H

#include <cjson/cJSON.h>

#include "replay.h"

void replay_report_firing(const struct replay *replay, const struct triggers_firing *firing,
			  enum triggers_gate gate);
/* What the engine of the current run believes of every series that may fire; with settings.all of all others
 * too. */
void replay_report_beliefs(const struct replay *replay);
/* The worst runs, the triggers and the totals. */
void replay_report_summary(struct replay *replay);

/* Prints the object as one line of plain text and frees it. */
void replay_report_json(cJSON *json, FILE *out);

#endif
