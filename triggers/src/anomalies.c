/* SPDX-License-Identifier: Apache-2.0 */
#include "anomalies.h"

#include <string.h>

static int64_t end_of(const struct triggers_anomaly *anomaly)
{
	return anomaly->is_open && anomaly->holds ? INT64_MAX : anomaly->until_ns;
}

static int is_stall(const struct triggers_claim *claim)
{
	return claim->module == &triggers_module_stall;
}

static int is_part(const struct triggers_anomaly *anomaly, const struct triggers_claim *claim)
{
	const struct triggers_source *source = claim->series->source;
	/* A host's counters that name no job are of whatever runs there. */
	int of_host = claim->module == &triggers_module_device_idle && !source->job;
	int same_job = of_host || (anomaly->job && anomaly->job == source->job);
	if (is_stall(claim) && !anomaly->is_stall)
		return 0;
	/* The next step is another one, however its begin was rounded. */
	if (claim->graded && !anomaly->is_stall && anomaly->series == claim->series->id)
		return 0;
	if (anomaly->source != source->number && !(same_job && anomaly->is_stall))
		return 0;
	return claim->t0_ns < end_of(anomaly) && claim->until_ns > anomaly->t0_ns;
}

int triggers_anomalies_meet(const struct triggers_anomalies *anomalies, const struct triggers_claim *claim)
{
	if (!claim->series || claim->by_hand || claim->lasting)
		return 0;
	for (uint32_t i = 0; i < anomalies->count; i++)
		if (is_part(&anomalies->kept[i], claim))
			return 1;
	return 0;
}

static int is_within(const struct triggers_anomaly *anomaly, const struct triggers_claim *claim)
{
	return !claim->ongoing && anomaly->source == claim->series->source->number &&
	       anomaly->t0_ns <= claim->t0_ns && end_of(anomaly) >= claim->until_ns;
}

/* A free place, else that of the one that was over first; NULL where none is over. */
static struct triggers_anomaly *place(struct triggers_anomalies *anomalies)
{
	struct triggers_anomaly *oldest = NULL;
	if (anomalies->count < TRIGGERS_ANOMALIES_KEPT)
		return &anomalies->kept[anomalies->count++];
	for (uint32_t i = 0; i < anomalies->count; i++) {
		struct triggers_anomaly *anomaly = &anomalies->kept[i];
		if (!anomaly->is_open && (!oldest || anomaly->until_ns < oldest->until_ns))
			oldest = anomaly;
	}
	return oldest;
}

void triggers_anomalies_add(struct triggers_anomalies *anomalies, const struct triggers_claim *claim)
{
	/* What nobody was told of must not hide what somebody would be. */
	if (!claim->series || claim->by_hand || claim->lasting || claim->quiet)
		return;
	for (uint32_t i = 0; i < anomalies->count; i++)
		if (is_within(&anomalies->kept[i], claim))
			return;
	struct triggers_anomaly *anomaly = place(anomalies);
	if (!anomaly)
		return;
	*anomaly = (struct triggers_anomaly){
		.source = claim->series->source->number,
		.job = claim->series->source->job,
		.series = claim->series->id,
		.t0_ns = claim->t0_ns,
		.until_ns = claim->until_ns,
		.is_stall = is_stall(claim),
		.is_open = claim->ongoing,
		.holds = claim->series->role == TRIGGERS_STEP,
	};
}

void triggers_anomalies_end(struct triggers_anomalies *anomalies, uint32_t series, int64_t now_ns)
{
	for (uint32_t i = 0; i < anomalies->count; i++) {
		struct triggers_anomaly *anomaly = &anomalies->kept[i];
		if (!anomaly->is_open || anomaly->series != series)
			continue;
		anomaly->is_open = 0;
		if (now_ns > anomaly->until_ns)
			anomaly->until_ns = now_ns;
	}
}

void triggers_anomalies_save(const struct triggers_anomalies *anomalies, struct triggers_writer *writer)
{
	triggers_write_u32(writer, anomalies->count);
	for (uint32_t i = 0; i < anomalies->count; i++) {
		const struct triggers_anomaly *anomaly = &anomalies->kept[i];
		triggers_write_u32(writer, anomaly->source);
		triggers_write_u64(writer, anomaly->job);
		triggers_write_u32(writer, anomaly->series);
		triggers_write_i64(writer, anomaly->t0_ns);
		triggers_write_i64(writer, anomaly->until_ns);
		triggers_write_u32(writer, (uint32_t)anomaly->is_stall | (uint32_t)anomaly->is_open << 1 |
						   (uint32_t)anomaly->holds << 2);
	}
}

void triggers_anomalies_restore(struct triggers_anomalies *anomalies, struct triggers_cursor *cursor)
{
	uint32_t count = triggers_read_u32(cursor);
	memset(anomalies, 0, sizeof(*anomalies));
	if (count > TRIGGERS_ANOMALIES_KEPT)
		cursor->failed = 1;
	for (uint32_t i = 0; i < count && !cursor->failed; i++) {
		struct triggers_anomaly *anomaly = &anomalies->kept[i];
		anomaly->source = triggers_read_u32(cursor);
		anomaly->job = triggers_read_u64(cursor);
		anomaly->series = triggers_read_u32(cursor);
		anomaly->t0_ns = triggers_read_time(cursor);
		anomaly->until_ns = triggers_read_time(cursor);
		uint32_t flags = triggers_read_u32(cursor);
		anomaly->is_stall = flags & 1;
		anomaly->is_open = flags >> 1 & 1;
		anomaly->holds = flags >> 2 & 1;
		anomalies->count = i + 1;
	}
}
