/* SPDX-License-Identifier: Apache-2.0 */
/* What is open is saved beside the engine, which knows the series but not the places. */
#include "series_object.h"

#include <errno.h>
#include <string.h>

enum {
	SAVED_VERSION = 1,
	PLACE_OPEN = 1,
	PLACE_STEP = 2,
	PLACE_SPAN = 4,
	PLACE_FROM_STACK = 8,
	PLACE_NESTS = 16
};

struct saved_head {
	uint32_t version, n_places;
};

struct saved_place {
	uint32_t source, series, flags, zero;
	int64_t open_ns, last_end_ns, last_step;
	char phase[TRIGGERS_NAME_MAX];
};

int64_t series_save(const struct series *series, void *out, size_t room)
{
	struct state_writer writer = {.out = out, .room = room};
	const struct saved_head head = {.version = SAVED_VERSION, .n_places = (uint32_t)series->n_places};
	state_put(&writer, &head, sizeof(head));
	for (size_t i = 0; i < series->n_places; i++) {
		const struct series_place *place = &series->places[i];
		struct saved_place saved = {
			.source = place->source,
			.series = place->series,
			.flags = (place->open ? PLACE_OPEN : 0u) | (place->is_step ? PLACE_STEP : 0u) |
				 (place->is_span ? PLACE_SPAN : 0u) |
				 (place->from_stack ? PLACE_FROM_STACK : 0u) |
				 (place->nests ? PLACE_NESTS : 0u),
			.open_ns = place->open_ns,
			.last_end_ns = place->last_end_ns,
			.last_step = place->last_step,
		};
		memcpy(saved.phase, place->phase, sizeof(saved.phase));
		state_put(&writer, &saved, sizeof(saved));
	}
	busy_save(series->busy, &writer);
	return out && writer.bytes > room ? -ENOSPC : (int64_t)writer.bytes;
}

static void restore_place(struct series *series, struct state_reader *reader)
{
	struct saved_place saved;
	struct triggers_belief belief;
	if (!state_take(reader, &saved, sizeof(saved)))
		return;
	if (!memchr(saved.phase, 0, sizeof(saved.phase)) || saved.open_ns > INT64_MAX / 2 ||
	    saved.open_ns < INT64_MIN / 2)
		reader->failed = true;
	if (reader->failed || triggers_engine_belief(series->engine, saved.series, &belief) < 0 ||
	    belief.key.source != saved.source)
		return;
	struct series_place *place = &series->places[series->n_places++];
	*place = (struct series_place){
		.source = saved.source,
		.series = saved.series,
		.open_ns = saved.open_ns,
		.last_end_ns = saved.last_end_ns,
		.last_step = saved.last_step,
		.open = (saved.flags & PLACE_OPEN) != 0,
		.is_step = (saved.flags & PLACE_STEP) != 0,
		.is_span = (saved.flags & PLACE_SPAN) != 0,
		.from_stack = (saved.flags & PLACE_FROM_STACK) != 0,
		.nests = (saved.flags & PLACE_NESTS) != 0,
	};
	memcpy(place->phase, saved.phase, sizeof(place->phase));
}

int series_restore(struct series *series, const void *bytes, size_t count)
{
	struct state_reader reader = {.at = bytes, .left = count};
	struct saved_head head = {0};
	if (!state_take(&reader, &head, sizeof(head)) || head.version != SAVED_VERSION ||
	    head.n_places > SERIES_STEPS_MAX - series->n_places)
		return -EBADMSG;
	for (uint32_t i = 0; i < head.n_places && !reader.failed; i++)
		restore_place(series, &reader);
	busy_restore(series->busy, &reader);
	if (!reader.failed && !reader.left)
		return 0;
	struct busy *fresh;
	series->n_places = 0;
	if (busy_new(series->engine, &fresh) == 0) {
		busy_free(series->busy);
		series->busy = fresh;
	}
	return -EBADMSG;
}
