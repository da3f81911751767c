/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A place is opened by marks as they come, and by what a look at the stacks of a ring's threads says: spans
 * are written when they end, so that only the stacks tell of one that hangs. Stacks are read without a lock,
 * again and again; what they say never opens what is known to have ended.
 */
#include "series_object.h"

#include <stdio.h>
#include <string.h>

#include "ns.h"

struct series_place *series_place_find(struct series *series, struct series_known *known)
{
	struct series_place *place = &series->places[known->place % SERIES_STEPS_MAX];
	if (known->place < series->n_places && place->series == known->series &&
	    place->source == known->source)
		return place;
	for (uint32_t i = 0; i < series->n_places; i++) {
		place = &series->places[i];
		if (place->series == known->series && place->source == known->source) {
			known->place = i;
			return place;
		}
	}
	return NULL;
}

struct series_place *series_place_of(struct series *series, struct series_known *known, bool is_step)
{
	struct series_place *place = series_place_find(series, known);
	if (place || series->n_places == SERIES_STEPS_MAX)
		return place;
	known->place = (uint32_t)series->n_places++;
	place = &series->places[known->place];
	*place = (struct series_place){.source = known->source,
				       .series = known->series,
				       .is_step = is_step,
				       .last_end_ns = INT64_MIN,
				       .last_step = -1};
	return place;
}

void series_place_shut(struct series_place *place, int64_t end_ns)
{
	place->open = place->from_stack = false;
	place->last_end_ns = end_ns;
}

const char *series_phase_now(const struct series *series, uint32_t source)
{
	const struct series_place *best = NULL;
	for (size_t i = 0; i < series->n_places; i++) {
		const struct series_place *place = &series->places[i];
		if (place->source != source)
			continue;
		if (!place->is_step && !place->is_span && place->open)
			return place->phase;
		if (place->is_step && (!best || place->open > best->open ||
				       (place->open == best->open && place->last_end_ns > best->last_end_ns)))
			best = place;
	}
	return best ? best->phase : NULL;
}

const char *series_phase_of_step(const struct series *series, char text[TRIGGERS_NAME_MAX])
{
	unsigned phase = phases_find(&series->phases, text);
	return phase ? phases_text(phase) : text;
}

static void open_known(struct series *series, struct series_known *known, int64_t start_ns, int64_t step,
		       const char *phase)
{
	struct series_place *place = series_place_of(series, known, step >= 0);
	/* A stack is read without a lock: an end that was already told of is no longer open. */
	if (!place || start_ns < place->last_end_ns)
		return;
	place->open = true;
	/* As saved state can hold it: one producer's wild times must not make that of all unreadable. */
	place->open_ns = start_ns > INT64_MAX / 2   ? INT64_MAX / 2
			 : start_ns < INT64_MIN / 2 ? INT64_MIN / 2
						    : start_ns;
	snprintf(place->phase, sizeof(place->phase), "%s", phase ? phase : "");
	triggers_engine_open(series->engine, known->series, start_ns, step, phase);
}

/* A span that a stack says to be open. The outermost of a phase counts; what lies in itself is not followed. */
static void open_span(struct series *series, struct series_known *known, int64_t start_ns)
{
	const char *phase =
		known->phase ? phases_text(known->phase) : series_phase_now(series, known->source);
	struct series_place *place = series_place_of(series, known, false);
	if (!place || place->nests || start_ns < place->last_end_ns)
		return;
	bool inside = place->open && start_ns > ns_add(place->open_ns, SERIES_SAME_OPENING_NS) && place->told;
	bool around = place->open && start_ns < ns_sub(place->open_ns, SERIES_SAME_OPENING_NS);
	place->is_span = !known->phase;
	if (place->is_span && (inside || around)) {
		place->nests = true;
		if (place->open)
			triggers_engine_abandon(series->engine, known->series);
		place->open = false;
		return;
	}
	place->told = true;
	if (inside || (place->open && !place->from_stack))
		return;
	open_known(series, known, start_ns, -1, phase);
	place->from_stack = true;
}

static void open_unmarked(struct series *series, const struct series_source *source, uint32_t track,
			  uint32_t name, int64_t start_ns)
{
	char text[TRIGGERS_NAME_MAX];
	struct series_known *known = series_known_get(series, source, track, name, TRIGGERS_SPAN, "");
	if (!known)
		return;
	if (known->is_step && series_name_text(series, source, name, "", text)) {
		struct series_known *step = series_known_step(series, source, track);
		if (step && step->series != TRIGGERS_SERIES_NONE)
			open_known(series, step, start_ns, series_step_of_name(text, strlen(text)), NULL);
	} else if (known->series != TRIGGERS_SERIES_NONE && (known->phase || known->alarms)) {
		open_span(series, known, start_ns);
	}
}

void series_open(struct series *series, const struct series_source *source, unsigned mark, uint32_t track,
		 uint32_t name, int64_t start_ns, uint64_t step)
{
	bool is_step = mark == DREC_MARK_STEP_BEGIN;
	char phase[TRIGGERS_NAME_MAX];
	if (!mark) {
		open_unmarked(series, source, track, name, start_ns);
		return;
	}
	struct series_known *known =
		is_step ? series_known_step(series, source, track)
			: series_known_get(series, source, track, name, TRIGGERS_PHASE, "phase:");
	if (!known || known->series == TRIGGERS_SERIES_NONE)
		return;
	const char *named = series_name_text(series, source, name, "", phase) ? phase : NULL;
	if (is_step && named)
		named = series_phase_of_step(series, phase);
	open_known(series, known, start_ns, is_step ? (int64_t)(step & INT64_MAX) : -1, named);
}

void series_stack_begin(struct series *series, uint32_t source)
{
	for (size_t i = 0; i < series->n_places; i++)
		if (series->places[i].source == source)
			series->places[i].told = false;
}

void series_stack_end(struct series *series, uint32_t source)
{
	for (size_t i = 0; i < series->n_places; i++) {
		struct series_place *place = &series->places[i];
		if (place->source != source || !place->from_stack || place->told)
			continue;
		triggers_engine_abandon(series->engine, place->series);
		place->open = place->from_stack = false;
	}
}

void series_progress(struct series *series, uint32_t source, int64_t now_ns)
{
	for (size_t i = 0; i < series->n_places; i++)
		if (series->places[i].source == source && series->places[i].open)
			triggers_engine_progress(series->engine, series->places[i].series, now_ns);
}

int64_t series_last_step(const struct series *series, uint32_t source)
{
	int64_t step = -1;
	for (size_t i = 0; i < series->n_places; i++)
		if (series->places[i].source == source && series->places[i].is_step &&
		    series->places[i].last_step > step)
			step = series->places[i].last_step;
	return step;
}

void series_places_forget(struct series *series, uint32_t source)
{
	size_t kept = 0;
	for (size_t i = 0; i < series->n_places; i++) {
		struct series_place *place = &series->places[i];
		if (place->source != source)
			series->places[kept++] = *place;
		else if (place->open)
			triggers_engine_abandon(series->engine, place->series);
	}
	series->n_places = kept;
}
