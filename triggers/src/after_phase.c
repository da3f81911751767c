/* SPDX-License-Identifier: Apache-2.0 */
#include "after_phase.h"

#define FIRST_SLACK 0.5

static uint32_t kept(const struct triggers_after_phase *after)
{
	return after->count < TRIGGERS_AFTER_KEPT ? after->count : TRIGGERS_AFTER_KEPT;
}

double triggers_after_phase_factor(const struct triggers_after_phase *after)
{
	float sorted[TRIGGERS_AFTER_KEPT];
	uint32_t n = kept(after);
	if (!n)
		return 1;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = i;
		for (; at > 0 && sorted[at - 1] > after->ratio[i]; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = after->ratio[i];
	}
	double lower_median = (double)sorted[(n - 1) / 2];
	return lower_median > 1 ? lower_median : 1;
}

double triggers_after_phase_slack(const struct triggers_after_phase *after)
{
	return after->count ? 0 : FIRST_SLACK;
}

void triggers_after_phase_learn(struct triggers_after_phase *after, double ratio)
{
	after->ratio[after->count % TRIGGERS_AFTER_KEPT] = (float)ratio;
	after->count++;
	if (after->count == 2 * TRIGGERS_AFTER_KEPT)
		after->count = TRIGGERS_AFTER_KEPT;
}

void triggers_after_phase_save(const struct triggers_after_phase *after, struct triggers_writer *writer)
{
	triggers_write_u32(writer, after->count);
	for (uint32_t i = 0; i < kept(after); i++)
		triggers_write_float(writer, after->ratio[i]);
}

void triggers_after_phase_restore(struct triggers_after_phase *after, struct triggers_cursor *cursor)
{
	after->count = triggers_read_u32(cursor);
	if (after->count >= 2 * TRIGGERS_AFTER_KEPT)
		cursor->failed = 1;
	for (uint32_t i = 0; !cursor->failed && i < kept(after); i++)
		after->ratio[i] = triggers_read_float(cursor);
}
