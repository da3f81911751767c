/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Most events end in one look-up: (source, track, name) is known, and known to be of no interest or out of
 * its share of the tick. Texts are looked at when a combination is seen for the first time.
 */
#include "series_object.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KNOWN_FIRST = 1024 }; /* a power of two, as all sizes of the table */

int series_known_new(struct series *series)
{
	series->known = calloc(KNOWN_FIRST, sizeof(*series->known));
	if (!series->known)
		return -ENOMEM;
	series->room = KNOWN_FIRST;
	return 0;
}

static size_t known_hash(uint32_t source, uint32_t track, uint32_t name)
{
	return (size_t)(series_mix((uint64_t)name << 32 | track) ^ series_mix(source)) >> 7;
}

struct series_known *series_known_find(const struct series *series, uint32_t source, uint32_t track,
				       uint32_t name)
{
	size_t mask = series->room - 1;
	for (size_t i = known_hash(source, track, name) & mask;; i = (i + 1) & mask) {
		struct series_known *known = &series->known[i];
		if (!known->used || (known->name == name && known->track == track && known->source == source))
			return known;
	}
}

/* Whether an entry stays in a table that is made anew, as it then is. */
typedef bool keeps(struct series_known *known, const void *context);

static int known_rebuild(struct series *series, size_t room, keeps *keep, const void *context)
{
	struct series_known *old = series->known;
	size_t old_room = series->room;
	struct series_known *table = calloc(room, sizeof(*table));
	if (!table)
		return -ENOMEM;
	series->known = table;
	series->room = room;
	series->used = 0;
	for (size_t i = 0; i < old_room; i++) {
		if (!old[i].used || !keep(&old[i], context))
			continue;
		*series_known_find(series, old[i].source, old[i].track, old[i].name) = old[i];
		series->used++;
	}
	free(old);
	return 0;
}

static bool keep_all(struct series_known *known, const void *context)
{
	(void)known, (void)context;
	return true;
}

static bool keep_series(struct series_known *known, const void *context)
{
	(void)context;
	return known->series != TRIGGERS_SERIES_NONE;
}

static bool keep_others(struct series_known *known, const void *context)
{
	const uint32_t *source = context;
	return known->source != *source;
}

static bool is_own_text(const struct series_known *known)
{
	return (known->name & SERIES_OWN_NAMES) != 0;
}

static size_t own_text(const struct series_known *known)
{
	return known->name % SERIES_OWN_NAMES % SERIES_TEXTS_MAX;
}

static bool keep_renumbered(struct series_known *known, const void *context)
{
	const uint16_t *new_id = context;
	if (!is_own_text(known))
		return true;
	uint16_t id = new_id[own_text(known)];
	if (known->series == TRIGGERS_SERIES_NONE || !id)
		return false;
	known->name = known->name / SERIES_OWN_NAMES * SERIES_OWN_NAMES + id - 1u;
	return true;
}

void series_known_renumber(struct series *series, const uint16_t new_id[SERIES_TEXTS_MAX])
{
	/* Out of memory the entries lead to no text, or to a wrong one: then nothing is known. */
	if (known_rebuild(series, series->room, keep_renumbered, new_id) < 0) {
		memset(series->known, 0, series->room * sizeof(*series->known));
		series->used = 0;
	}
}

void series_known_mark_texts(const struct series *series, uint16_t marks[SERIES_TEXTS_MAX])
{
	for (size_t i = 0; i < series->room; i++) {
		const struct series_known *known = &series->known[i];
		if (known->used && known->series != TRIGGERS_SERIES_NONE && is_own_text(known))
			marks[own_text(known)] = 1;
	}
}

/* False where most of a full table is of interest: it would be full again at once. */
static bool make_room(struct series *series)
{
	size_t of_interest = (size_t)series->counters.alarming + series->counters.followed;
	if (series->room < SERIES_KNOWN_MAX)
		return known_rebuild(series, series->room * 2, keep_all, NULL) == 0;
	return of_interest < series->room / 2 && known_rebuild(series, series->room, keep_series, NULL) == 0;
}

struct series_known *series_known_add(struct series *series, uint32_t source, uint32_t track, uint32_t name)
{
	if (series->used >= series->room / 4 * 3 && !make_room(series))
		return NULL;
	struct series_known *known = series_known_find(series, source, track, name);
	*known = (struct series_known){
		.source = source, .track = track, .name = name, .used = 1, .series = TRIGGERS_SERIES_NONE};
	series->used++;
	return known;
}

void series_known_forget(struct series *series, uint32_t source)
{
	for (size_t i = 0; i < series->room; i++) {
		const struct series_known *known = &series->known[i];
		if (!known->used || known->source != source || known->series == TRIGGERS_SERIES_NONE)
			continue;
		if (known->alarms)
			series->counters.alarming--;
		else
			series->counters.followed--;
	}
	/* Out of memory the entries stay, and would only be found again by the same source. */
	known_rebuild(series, series->room, keep_others, &source);
}

/* ---- deciding ---- */

bool series_alarms(const struct series *series, const char *name)
{
	for (size_t i = 0; i < series->n_patterns; i++)
		if (triggers_pattern_match(series->patterns[i], name))
			return true;
	return false;
}

void series_decide(struct series *series, struct series_known *known, const struct series_source *source,
		   enum triggers_role role, const char *name)
{
	bool alarming = series_alarms(series, name);
	if (!alarming && series->counters.followed >= SERIES_FOLLOWED_MAX) {
		series->counters.no_room++;
		return;
	}
	struct triggers_series_key key = {
		.role = role,
		.source = source->source,
		.rank = source->rank,
		.job = source->job,
		.track = known->track,
		.name = name,
		.alarms = alarming,
	};
	known->series = triggers_engine_series(series->engine, &key);
	known->alarms = alarming;
	if (known->series == TRIGGERS_SERIES_NONE)
		series->counters.no_room++;
	else if (alarming)
		series->counters.alarming++;
	else
		series->counters.followed++;
}

/* A span that is a phase: as if it had been marked, but each name has a usual length of its own. */
static void decide_phase(struct series *series, struct series_known *known,
			 const struct series_source *source, const char *span)
{
	char name[TRIGGERS_NAME_MAX];
	snprintf(name, sizeof(name), "phase:%s/%.*s", phases_text(known->phase), TRIGGERS_NAME_MAX - 20,
		 span);
	series_decide(series, known, source, TRIGGERS_PHASE, name);
}

struct series_known *series_known_get(struct series *series, const struct series_source *source,
				      uint32_t track, uint32_t name, enum triggers_role role,
				      const char *prefix)
{
	uint32_t kept = role == TRIGGERS_PHASE     ? name + SERIES_PHASE_NAMES
			: role == TRIGGERS_COUNTER ? name + SERIES_COUNTER_NAMES
						   : name;
	struct series_known *known = series_known_find(series, source->source, track, kept);
	if (known->used)
		return known;
	known = series_known_add(series, source->source, track, kept);
	char text[TRIGGERS_NAME_MAX] = "step";
	if (!known || (role != TRIGGERS_STEP && !series_name_text(series, source, name, prefix, text)))
		return known;
	if (role == TRIGGERS_SPAN) {
		known->phase = (uint8_t)phases_find(&series->phases, text);
		known->waits = known->phase || waits_name(&series->waits, text, strlen(text));
	}
	if (role == TRIGGERS_SPAN && series_step_of_name(text, strlen(text)) >= 0)
		known->is_step = 1;
	else if (known->phase)
		decide_phase(series, known, source, text);
	else
		series_decide(series, known, source, role, text);
	return known;
}

struct series_known *series_known_step(struct series *series, const struct series_source *source,
				       uint32_t track)
{
	return series_known_get(series, source, track, SERIES_STEP_NAME, TRIGGERS_STEP, "");
}
