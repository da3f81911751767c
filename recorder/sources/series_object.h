/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources/series_object.h: the object behind series.h, for series.c and the files that are parts of it.
 *
 *   series.c          events, and what they tell the engine
 *   series_known.c    what became of each (source, track, name): decided once, looked up ever after
 *   series_texts.c    the texts of names, and ids for those that come without one
 *   series_places.c   what may be open: steps, phases and alarming spans, as marks and stacks say
 *   series_save.c     what of it outlives a restart
 */
#ifndef RECORDER_SOURCES_SERIES_OBJECT_H
#define RECORDER_SOURCES_SERIES_OBJECT_H

#include "busy.h"
#include "series.h"

enum {
	SERIES_TEXT_BUCKETS = 2 * SERIES_TEXTS_MAX,
	SERIES_STEP_NAME = UINT16_MAX + 2,  /* stands for the step series; names of rings end at 65535 */
	SERIES_TRACK_NAME = UINT16_MAX + 3, /* for the progress of a track: what is open may have no name */
	SERIES_OWN_NAMES = 1 << 24,         /* ids from here on are of our own texts */
	SERIES_PHASE_NAMES = 1 << 25,       /* added to a name's id where it names a phase */
	SERIES_COUNTER_NAMES = 1 << 26      /* or a counter: a span may be called the same */
};

/* How far apart the begin of one opening may be told: it is converted from ticks anew each time. */
#define SERIES_SAME_OPENING_NS INT64_C(100000)

/* What became of a (source, track, name). */
struct series_known {
	uint32_t source, track, name;
	uint32_t series; /* TRIGGERS_SERIES_NONE: not followed */
	uint32_t place;  /* where it was last found in `places` */
	uint8_t used, alarms, is_step;
	uint8_t phase; /* of spans that are one: enum of phases.h */
	uint8_t waits; /* of spans that are no own work: collectives, waits */
};

/* A step series, or that of a phase or of an alarming span: what may be open. */
struct series_place {
	uint32_t source, series;
	int64_t open_ns;
	int64_t last_end_ns; /* of the latest finished one: an older open one is out of date */
	int64_t last_step;
	bool open, is_step, is_span;
	bool from_stack, told; /* open because a stack says so; the stack that is being told says so too */
	bool nests;            /* lies in itself: a wrapper around different work, without a usual length */
	char phase[TRIGGERS_NAME_MAX]; /* "" = train */
};

/* A name that came without an id. */
struct series_text {
	uint64_t hash;
	char text[TRIGGERS_NAME_MAX];
};

struct series {
	struct triggers_engine *engine;
	char *patterns[SERIES_PATTERNS_MAX];
	size_t n_patterns;
	struct phases phases;
	struct waits waits;
	struct busy *busy;
	bool follows_tracks;
	struct series_known *known;
	size_t room, used;                    /* of `known`: open addressing */
	struct series_text *texts;            /* SERIES_TEXTS_MAX, once there is one */
	uint16_t bucket[SERIES_TEXT_BUCKETS]; /* index + 1 of a text */
	size_t n_texts;
	struct series_place places[SERIES_STEPS_MAX];
	size_t n_places;
	unsigned samples_left;
	struct series_counters counters;
};

/* Spreads all bits of a key over all of the result. */
static inline uint64_t series_mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	return x * 0xd6e8feb86659fd93u;
}

/* ---- series_known.c ---- */

/* The first table, empty. -ENOMEM. */
int series_known_new(struct series *series);
/* The entry, or the empty one where it would be. */
struct series_known *series_known_find(const struct series *series, uint32_t source, uint32_t track,
				       uint32_t name);
/*
 * A new entry that is not followed. NULL if there is no room for another one. Entries move; where the table is full, those
 * of no interest are forgotten, to be looked at again when they are seen again.
 */
struct series_known *series_known_add(struct series *series, uint32_t source, uint32_t track, uint32_t name);
/* The combination, decided upon where it is new. NULL if there is no room to know it. */
struct series_known *series_known_get(struct series *series, const struct series_source *source,
				      uint32_t track, uint32_t name, enum triggers_role role,
				      const char *prefix);
/* The same of a track's step series. */
struct series_known *series_known_step(struct series *series, const struct series_source *source,
				       uint32_t track);
/* Whether a pattern of the configuration asks for a name. */
bool series_alarms(const struct series *series, const char *name);
/* Makes the entry a series of the engine, if it alarms or there is room to follow it. */
void series_decide(struct series *series, struct series_known *known, const struct series_source *source,
		   enum triggers_role role, const char *name);
/* Our own texts get new ids, 0 = none any more: forgets the entries of those that have none. */
void series_known_renumber(struct series *series, const uint16_t new_id[SERIES_TEXTS_MAX]);
/* Marks the texts of all entries that are a series of the engine. */
void series_known_mark_texts(const struct series *series, uint16_t marks[SERIES_TEXTS_MAX]);
/* Forgets all entries of a source, and with them their share of what may be followed. */
void series_known_forget(struct series *series, uint32_t source);

/* ---- series_texts.c ---- */

/*
 * Our own id of a text that has none, 0 if there is no room. Texts that are alike in 63 bytes are one. Where there is no
 * room for another one, those that no series is called by are forgotten, so that entries move and ids change.
 */
uint32_t series_text_id(struct series *series, const char *text, size_t bytes);
/* A name's text, terminated, with a prefix; false if it has none. */
bool series_name_text(const struct series *series, const struct series_source *source, uint32_t name,
		      const char *prefix, char ret_text[TRIGGERS_NAME_MAX]);
/* "ProfilerStep#12" (PyTorch): its number, else -1. */
int64_t series_step_of_name(const char *text, size_t bytes);

/* ---- series_places.c ---- */

/* NULL if there is none. */
struct series_place *series_place_find(struct series *series, struct series_known *known);
/* A new one where there is none. NULL if there is no room for another one. */
struct series_place *series_place_of(struct series *series, struct series_known *known, bool is_step);
void series_place_shut(struct series_place *place, int64_t end_ns);
/* What a source does now: the phase that is open, else that of the step that is, or was, the latest. */
const char *series_phase_now(const struct series *series, uint32_t source);
/* Step marks say in which phase: by its own name, or as the job calls it ("eval_step"). */
const char *series_phase_of_step(const struct series *series, char text[TRIGGERS_NAME_MAX]);
/* Forgets all of a source; what it left open is no stall. */
void series_places_forget(struct series *series, uint32_t source);

#endif
