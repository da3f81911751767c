/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A step of a track is closed by the first span of another one, a track by the first of another: only the names of the
 * track at hand are kept (16 bytes each), and 48 bytes a step of a track.
 */
#include "replay_busy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ns.h"
#include "plain_text.h"

enum { NAMES_FIRST = 64, STEPS_FIRST = 256, TRACKS_FIRST = 64 };
#define NOT_ASKED 0
#define OWN_WORK  1
#define WAITS     2

/* A union of spans that come in the order of their begins. */
struct cover {
	int64_t end_ns, ns;
};

struct done {
	uint32_t track, series;
	uint32_t row; /* of the track's steps, from 0 */
	int64_t step, start_ns, end_ns, own_ns;
};

struct name {
	uint32_t name; /* + 1; 0 = free */
	uint32_t steps;
	int64_t last_step;
};

struct alike {
	uint32_t track;
	uint64_t names; /* hash of the set */
};

struct replay_busy {
	bool any;
	struct done open; /* the step at hand */
	struct cover all, waits;
	uint32_t track_steps;
	struct name *name; /* of the track at hand, by hash */
	uint32_t names, name_room;
	struct waits known; /* names */
	uint8_t *kind;      /* by number of a name */
	size_t kinds;
	struct alike *track;
	size_t tracks, track_room;
	struct done *done;
	size_t count, room, next;
};

int replay_busy_new(const struct waits *own, struct replay_busy **ret_busy)
{
	struct replay_busy *busy = calloc(1, sizeof(*busy));
	if (!busy)
		return -ENOMEM;
	busy->name = calloc(NAMES_FIRST, sizeof(*busy->name));
	busy->name_room = NAMES_FIRST;
	busy->known = *own;
	if (!busy->name) {
		free(busy);
		return -ENOMEM;
	}
	*ret_busy = busy;
	return 0;
}

void replay_busy_free(struct replay_busy *busy)
{
	if (!busy)
		return;
	free(busy->name);
	free(busy->kind);
	free(busy->track);
	free(busy->done);
	free(busy);
}

static void cover_add(struct cover *cover, int64_t start_ns, int64_t end_ns)
{
	if (start_ns < cover->end_ns)
		start_ns = cover->end_ns;
	if (end_ns <= start_ns)
		return;
	cover->ns = ns_add(cover->ns, ns_sub(end_ns, start_ns));
	cover->end_ns = end_ns;
}

/* Makes room for one more. */
static int grow(void **array, size_t *room, size_t count, size_t first, size_t each)
{
	if (count < *room)
		return 0;
	size_t larger_room = *room ? 2 * *room : first;
	void *larger = realloc(*array, larger_room * each);
	if (!larger)
		return -ENOMEM;
	*array = larger;
	*room = larger_room;
	return 0;
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
	return x ^ x >> 32;
}

static struct name *name_place(struct name *table, uint32_t room, uint32_t name)
{
	uint32_t at = (uint32_t)mix(name) & (room - 1);
	while (table[at].name && table[at].name != name + 1)
		at = (at + 1) & (room - 1);
	return &table[at];
}

static int names_grow(struct replay_busy *busy)
{
	struct name *larger = calloc(2 * (size_t)busy->name_room, sizeof(*larger));
	if (!larger)
		return -ENOMEM;
	for (uint32_t i = 0; i < busy->name_room; i++)
		if (busy->name[i].name)
			*name_place(larger, 2 * busy->name_room, busy->name[i].name - 1) = busy->name[i];
	free(busy->name);
	busy->name = larger;
	busy->name_room *= 2;
	return 0;
}

/* The name has come in the step at hand. */
static int name_seen(struct replay_busy *busy, uint32_t name)
{
	if (2 * busy->names >= busy->name_room && names_grow(busy) < 0)
		return -ENOMEM;
	struct name *place = name_place(busy->name, busy->name_room, name);
	busy->names += place->name == 0;
	if (place->name == 0 || place->last_step != busy->open.step)
		place->steps++;
	place->name = name + 1;
	place->last_step = busy->open.step;
	return 0;
}

static int kind_of(struct replay_busy *busy, uint32_t name, const char *text)
{
	if (name >= busy->kinds) {
		size_t kinds = busy->kinds ? 2 * busy->kinds : NAMES_FIRST;
		while (kinds <= name)
			kinds *= 2;
		uint8_t *larger = realloc(busy->kind, kinds);
		if (!larger)
			return -ENOMEM;
		memset(larger + busy->kinds, NOT_ASKED, kinds - busy->kinds);
		busy->kind = larger;
		busy->kinds = kinds;
	}
	if (busy->kind[name] == NOT_ASKED)
		busy->kind[name] = waits_name(&busy->known, text, strlen(text)) ? WAITS : OWN_WORK;
	return busy->kind[name];
}

static int close_step(struct replay_busy *busy)
{
	busy->open.own_ns = ns_sub(busy->all.ns, busy->waits.ns);
	busy->open.end_ns = busy->all.end_ns;
	busy->open.row = busy->track_steps++;
	if (busy->open.own_ns <= 0)
		return 0;
	void *done = busy->done;
	int result = grow(&done, &busy->room, busy->count, STEPS_FIRST, sizeof(*busy->done));
	busy->done = done;
	if (result == 0)
		busy->done[busy->count++] = busy->open;
	return result;
}

static int close_track(struct replay_busy *busy)
{
	struct alike alike = {.track = busy->open.track};
	for (uint32_t i = 0; i < busy->name_room; i++) {
		const struct name *name = &busy->name[i];
		if (name->name && 2 * name->steps >= busy->track_steps)
			alike.names += mix(name->name);
	}
	memset(busy->name, 0, busy->name_room * sizeof(*busy->name));
	busy->names = busy->track_steps = 0;
	void *track = busy->track;
	int result = grow(&track, &busy->track_room, busy->tracks, TRACKS_FIRST, sizeof(*busy->track));
	busy->track = track;
	if (result == 0)
		busy->track[busy->tracks++] = alike;
	return result;
}

static int begin_step(struct replay_busy *busy, uint32_t track, int64_t step, int64_t start_ns)
{
	int result = busy->any ? close_step(busy) : 0;
	if (result == 0 && busy->any && track != busy->open.track)
		result = close_track(busy);
	busy->any = true;
	busy->open = (struct done){
		.track = track, .step = step, .start_ns = start_ns, .series = TRIGGERS_SERIES_NONE};
	busy->all = busy->waits = (struct cover){.end_ns = INT64_MIN};
	return result;
}

int replay_busy_span(struct replay_busy *busy, uint32_t track, int64_t step, uint32_t name, const char *text,
		     int64_t start_ns, int64_t end_ns)
{
	int kind = kind_of(busy, name, text);
	int result = kind < 0 ? kind : 0;
	if (result == 0 && (!busy->any || track != busy->open.track || step != busy->open.step))
		result = begin_step(busy, track, step, start_ns);
	if (result < 0)
		return result;
	cover_add(&busy->all, start_ns, end_ns);
	if (kind == WAITS)
		cover_add(&busy->waits, start_ns, end_ns);
	return kind == OWN_WORK ? name_seen(busy, name) : 0;
}

static int by_end(const void *a_, const void *b_)
{
	const struct done *a = a_, *b = b_;
	if (a->end_ns != b->end_ns)
		return a->end_ns < b->end_ns ? -1 : 1;
	return a->track < b->track ? -1 : a->track > b->track;
}

/* The done steps of a track follow each other, as do the tracks. */
int replay_busy_series(struct replay_busy *busy, struct triggers_engine *engine,
		       void (*track_text)(const void *context, uint32_t source, uint64_t track, char *out,
					  size_t room),
		       const void *context)
{
	int result = busy->any ? close_step(busy) : 0;
	if (result == 0 && busy->any)
		result = close_track(busy);
	if (result < 0)
		return result;
	for (size_t i = 0, at = 0; i < busy->tracks; i++) {
		char text[256] = "", name[TRIGGERS_NAME_MAX] = "busy:", group[32];
		track_text(context, 0, busy->track[i].track, text, sizeof(text));
		plain_text(name + 5, sizeof(name) - 5, text, strlen(text));
		snprintf(group, sizeof(group), "%016llx", (unsigned long long)busy->track[i].names);
		struct triggers_series_key key = {.role = TRIGGERS_BUSY,
						  .rank = UINT32_MAX,
						  .track = busy->track[i].track,
						  .name = name,
						  .group = group,
						  .alarms = 1};
		uint32_t series = TRIGGERS_SERIES_NONE;
		if (at < busy->count && busy->done[at].track == key.track)
			series = triggers_engine_series(engine, &key);
		for (; at < busy->count && busy->done[at].track == key.track; at++)
			busy->done[at].series = series;
	}
	if (busy->count)
		qsort(busy->done, busy->count, sizeof(*busy->done), by_end);
	return 0;
}

uint32_t replay_busy_next(struct replay_busy *busy, int64_t now_ns, struct triggers_sample *ret_sample)
{
	while (busy->next < busy->count && busy->done[busy->next].end_ns <= now_ns) {
		const struct done *done = &busy->done[busy->next++];
		if (done->series == TRIGGERS_SERIES_NONE)
			continue;
		*ret_sample = (struct triggers_sample){.start_ns = done->start_ns,
						       .duration_ns = done->own_ns,
						       .step = done->step,
						       .sample = done->row};
		return done->series;
	}
	return TRIGGERS_SERIES_NONE;
}
