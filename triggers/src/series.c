/* SPDX-License-Identifier: Apache-2.0 */
#include "series.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "save.h"

#define PHASE_GAP_NS     INT64_C(10000000)
#define PHASE_GAP_MAX_NS INT64_C(1000000000)

enum { PLACE_MASK = TRIGGERS_SERIES_MAX - 1, GENERATION_LIMIT = (1 << (32 - TRIGGERS_PLACE_BITS)) - 1 };

void triggers_table_init(struct triggers_table *table)
{
	memset(table, 0, sizeof(*table));
	for (int i = 0; i < TRIGGERS_BUCKETS; i++)
		table->bucket[i] = TRIGGERS_SERIES_NONE;
}

static uint32_t hash_of(enum triggers_role role, uint32_t source, uint64_t track, const char *name)
{
	uint64_t hash = 0xcbf29ce484222325u ^ (uint64_t)role ^ (uint64_t)source << 8;
	hash = (hash ^ track) * 0x9e3779b97f4a7c15u;
	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * 0x100000001b3u;
	return (uint32_t)(hash >> 32) % TRIGGERS_BUCKETS;
}

struct triggers_series *triggers_table_get(const struct triggers_table *table, uint32_t id)
{
	struct triggers_series *series = table->place[id & PLACE_MASK];
	return series && series->id == id ? series : NULL;
}

struct triggers_series *triggers_table_find(const struct triggers_table *table, enum triggers_role role,
					    uint32_t source, uint64_t track, const char *name,
					    const char *phase)
{
	uint32_t place = table->bucket[hash_of(role, source, track, name)];
	while (place != TRIGGERS_SERIES_NONE) {
		struct triggers_series *series = table->place[place];
		if (series->role == role && series->source->number == source && series->track == track &&
		    !strcmp(series->name, name) && !strcmp(series->phase, phase))
			return series;
		place = series->next;
	}
	return NULL;
}

struct triggers_source *triggers_table_source(const struct triggers_table *table, uint32_t number)
{
	struct triggers_source *source = table->sources[number % TRIGGERS_SOURCE_BUCKETS];
	while (source && source->number != number)
		source = source->next;
	return source;
}

static struct triggers_source *source_take(struct triggers_table *table, uint32_t number)
{
	struct triggers_source *source = triggers_table_source(table, number);
	if (!source) {
		source = calloc(1, sizeof(*source));
		if (!source)
			return NULL;
		source->number = number;
		source->last_progress_ns = INT64_MIN;
		source->step_end_ns = INT64_MIN;
		source->next = table->sources[number % TRIGGERS_SOURCE_BUCKETS];
		table->sources[number % TRIGGERS_SOURCE_BUCKETS] = source;
	}
	source->n_series++;
	return source;
}

static void leave_job(struct triggers_source *source)
{
	struct triggers_source *before = source->mate;
	if (!before)
		return;
	while (before->mate != source)
		before = before->mate;
	before->mate = source->mate == before ? NULL : source->mate;
	source->mate = NULL;
}

static void source_drop(struct triggers_table *table, struct triggers_source *source)
{
	if (--source->n_series)
		return;
	struct triggers_source **link = &table->sources[source->number % TRIGGERS_SOURCE_BUCKETS];
	while (*link != source)
		link = &(*link)->next;
	*link = source->next;
	leave_job(source);
	free(source);
}

void triggers_table_set_job(struct triggers_table *table, struct triggers_source *source, uint64_t job)
{
	if (source->job == job)
		return;
	leave_job(source);
	source->job = job;
	for (int i = 0; i < TRIGGERS_SOURCE_BUCKETS && job; i++)
		for (struct triggers_source *other = table->sources[i]; other; other = other->next)
			if (other != source && other->job == job) {
				source->mate = other->mate ? other->mate : other;
				other->mate = source;
				return;
			}
}

static struct triggers_series *add_at(struct triggers_table *table, uint32_t place, enum triggers_role role,
				      uint32_t source, uint64_t track, const char *name, const char *phase,
				      size_t bytes)
{
	struct triggers_series *series = calloc(1, bytes);
	if (!series)
		return NULL;
	series->source = source_take(table, source);
	if (!series->source) {
		free(series);
		return NULL;
	}
	series->id = place | table->generation[place] << TRIGGERS_PLACE_BITS;
	series->parent = series->id;
	series->open = TRIGGERS_SERIES_NONE;
	series->role = role;
	series->track = track;
	series->last_progress_ns = INT64_MIN;
	snprintf(series->name, sizeof(series->name), "%s", name);
	snprintf(series->phase, sizeof(series->phase), "%s", phase);
	series->bucket = hash_of(role, source, track, series->name);
	series->next = table->bucket[series->bucket];
	table->bucket[series->bucket] = place;
	table->place[place] = series;
	table->count++;
	if (place >= table->used)
		table->used = place + 1;
	return series;
}

struct triggers_series *triggers_table_add(struct triggers_table *table, enum triggers_role role,
					   uint32_t source, uint64_t track, const char *name,
					   const char *phase, size_t bytes)
{
	if (table->count == TRIGGERS_SERIES_MAX)
		return NULL;
	uint32_t place = table->used;
	if (place == TRIGGERS_SERIES_MAX)
		for (place = 0; table->place[place];)
			place++;
	return add_at(table, place, role, source, track, name, phase, bytes);
}

struct triggers_series *triggers_table_add_at(struct triggers_table *table, uint32_t id,
					      enum triggers_role role, uint32_t source, uint64_t track,
					      const char *name, const char *phase, size_t bytes)
{
	uint32_t place = id & PLACE_MASK;
	if (table->place[place] || id >> TRIGGERS_PLACE_BITS >= GENERATION_LIMIT)
		return NULL;
	table->generation[place] = id >> TRIGGERS_PLACE_BITS;
	return add_at(table, place, role, source, track, name, phase, bytes);
}

struct triggers_series *triggers_table_idle(struct triggers_table *table, int for_alarms)
{
	enum { LOOKED_AT = 64 };
	struct triggers_series *idle = NULL;
	for (int i = 0; i < LOOKED_AT; i++) {
		struct triggers_series *series = table->place[table->hand];
		table->hand = (table->hand + 1) % TRIGGERS_SERIES_MAX;
		if (!series || series->is_open || series->open != TRIGGERS_SERIES_NONE ||
		    series->last_use == table->uses || (series->alarms && !for_alarms))
			continue;
		if (!idle || series->last_use < idle->last_use)
			idle = series;
	}
	return idle;
}

void triggers_table_remove(struct triggers_table *table, struct triggers_series *series)
{
	uint32_t place = series->id & PLACE_MASK;
	uint32_t *link = &table->bucket[series->bucket];
	while (*link != place)
		link = &table->place[*link]->next;
	*link = series->next;
	table->place[place] = NULL;
	table->generation[place] = (table->generation[place] + 1) % GENERATION_LIMIT;
	table->count--;
	source_drop(table, series->source);
	free(series);
}

uint32_t triggers_table_newest_generation(const struct triggers_table *table)
{
	uint32_t newest = 0;
	for (uint32_t i = 0; i < TRIGGERS_SERIES_MAX; i++)
		if (table->generation[i] > newest)
			newest = table->generation[i];
	return newest;
}

void triggers_table_follow_generation(struct triggers_table *table, uint32_t newest)
{
	for (uint32_t i = 0; i < TRIGGERS_SERIES_MAX; i++)
		if (!table->place[i])
			table->generation[i] = newest % GENERATION_LIMIT;
}

void triggers_source_phase_begin(struct triggers_source *source, int64_t begin_ns)
{
	if (source->n_open < TRIGGERS_PHASES_KEPT)
		source->open[source->n_open++] =
			(struct triggers_phase){.begin_ns = begin_ns, .end_ns = INT64_MAX};
}

static int64_t apart(int64_t a_ns, int64_t b_ns)
{
	return a_ns > b_ns ? a_ns - b_ns : b_ns - a_ns;
}

/*
 * Takes the open phase that began then (nearest to it, as the clock may have been set) off the list; whether
 * steps were seen in it.
 */
static int take_open(struct triggers_source *source, int64_t begin_ns)
{
	uint32_t at = 0;
	if (source->n_open == 0)
		return 0;
	for (uint32_t i = 1; i < source->n_open; i++)
		if (apart(source->open[i].begin_ns, begin_ns) <= apart(source->open[at].begin_ns, begin_ns))
			at = i;
	int beside = source->open[at].beside;
	source->n_open--;
	memmove(source->open + at, source->open + at + 1, (source->n_open - at) * sizeof(source->open[0]));
	return beside;
}

uint32_t triggers_source_phases_kept(const struct triggers_source *source)
{
	return source->n_phases < TRIGGERS_PHASES_KEPT ? source->n_phases : TRIGGERS_PHASES_KEPT;
}

/* Evaluation steps, or compiles of one step after another, are one phase: only eight are kept. */
static int joins(const struct triggers_source *source, int64_t begin_ns, int64_t end_ns)
{
	const struct triggers_phase *last = &source->phase[(source->n_phases - 1) % TRIGGERS_PHASES_KEPT];
	int64_t gap_ns = PHASE_GAP_NS + (end_ns - begin_ns) / 4;
	return source->n_phases && !last->beside && begin_ns >= last->begin_ns &&
	       begin_ns - last->end_ns <= (gap_ns < PHASE_GAP_MAX_NS ? gap_ns : PHASE_GAP_MAX_NS);
}

void triggers_source_phase_end(struct triggers_source *source, int64_t begin_ns, int64_t end_ns, int was_open)
{
	int beside = was_open ? take_open(source, begin_ns) : 0;
	if (!beside && joins(source, begin_ns, end_ns)) {
		struct triggers_phase *last = &source->phase[(source->n_phases - 1) % TRIGGERS_PHASES_KEPT];
		last->end_ns = end_ns > last->end_ns ? end_ns : last->end_ns;
		source->after_phase = 1;
		return;
	}
	source->phase[source->n_phases % TRIGGERS_PHASES_KEPT] =
		(struct triggers_phase){.begin_ns = begin_ns, .end_ns = end_ns, .beside = beside};
	if (++source->n_phases == 2 * TRIGGERS_PHASES_KEPT)
		source->n_phases = TRIGGERS_PHASES_KEPT;
	source->after_phase = 1;
}

/* What it says of a phase: that the source's own steps go on beside it, or those of its job's other ranks. */
static void mark_phases(struct triggers_source *source, int64_t begin_ns, int64_t end_ns, int own)
{
	for (uint32_t i = 0; i < source->n_open; i++)
		if (source->open[i].begin_ns <= begin_ns)
			*(own ? &source->open[i].beside : &source->open[i].apart) = 1;
	for (uint32_t i = 0; i < triggers_source_phases_kept(source); i++)
		if (source->phase[i].begin_ns <= begin_ns && source->phase[i].end_ns >= end_ns)
			*(own ? &source->phase[i].beside : &source->phase[i].apart) = 1;
}

void triggers_source_step(struct triggers_source *source, int64_t begin_ns, int64_t end_ns)
{
	mark_phases(source, begin_ns, end_ns, 1);
	for (struct triggers_source *other = source->mate; other && other != source; other = other->mate)
		mark_phases(other, begin_ns, end_ns, 0);
}

void triggers_source_step_open(struct triggers_source *source, int is_train, int64_t begin_ns)
{
	(*(is_train ? &source->open_steps : &source->open_others))++;
	if (is_train)
		source->step_begin_ns = begin_ns;
}

void triggers_source_step_shut(struct triggers_source *source, int is_train)
{
	(*(is_train ? &source->open_steps : &source->open_others))--;
}

static void follow(int64_t *ns, int64_t now_ns, int64_t step_ns)
{
	if (*ns > now_ns)
		*ns = *ns + step_ns > -TRIGGERS_NS_MAX ? *ns + step_ns : -TRIGGERS_NS_MAX;
}

void triggers_source_follow_clock(struct triggers_source *source, int64_t now_ns, int64_t step_ns)
{
	follow(&source->last_progress_ns, now_ns, step_ns);
	follow(&source->step_end_ns, now_ns, step_ns);
	follow(&source->step_begin_ns, now_ns, step_ns);
	for (uint32_t i = 0; i < source->n_open; i++)
		follow(&source->open[i].begin_ns, now_ns, step_ns);
	for (uint32_t i = 0; i < triggers_source_phases_kept(source); i++) {
		follow(&source->phase[i].begin_ns, now_ns, step_ns);
		follow(&source->phase[i].end_ns, now_ns, step_ns);
	}
}
