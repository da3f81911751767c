/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Most events end in one look-up: (source, track, name) is known, and known to be of no interest or out of
 * its share of the tick. Texts are looked at when a combination is seen for the first time.
 */
#include "series.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "busy.h"
#include "ns.h"
#include "plain_text.h"

enum {
	KNOWN_FIRST = 1024,
	TEXT_BUCKETS = 2 * SERIES_TEXTS_MAX,
	STEP_NAME = UINT16_MAX + 2, /* stands for the step series; names of rings end at 65535 */
	OWN_NAMES = 1 << 24,        /* ids from here on are of our own texts */
	PHASE_NAMES = 1 << 25       /* added to a name's id where it names a phase */
};

/* How far apart the begin of one opening may be told: it is converted from ticks anew each time. */
#define SAME_OPENING_NS INT64_C(100000)

/* What became of a (source, track, name). */
struct known {
	uint32_t source, track, name;
	uint32_t series; /* TRIGGERS_SERIES_NONE: not followed */
	uint32_t place;  /* where it was last found in `places` */
	uint8_t used, alarms, is_step;
	uint8_t phase;   /* of spans that are one: enum of phases.h */
	uint8_t waits;   /* of spans that are no own work: collectives, waits */
};

/* A step series, or that of a phase or of an alarming span: what may be open. */
struct place {
	uint32_t source, series;
	int64_t open_ns;
	int64_t last_end_ns; /* of the latest finished one: an older open one is out of date */
	int64_t last_step;
	bool open, is_step, is_span;
	bool from_stack, told; /* open because a stack says so; the stack that is being told says so too */
	bool nests;            /* lies in itself: a wrapper around different work, without a usual length */
	char phase[TRIGGERS_NAME_MAX]; /* "" = train */
};

struct series {
	struct triggers_engine *engine;
	char *patterns[SERIES_PATTERNS_MAX];
	size_t n_patterns;
	struct phases phases;
	struct waits waits;
	struct busy *busy;
	bool follows_tracks;
	struct known *known;
	size_t room, used;
	struct {
		uint64_t hash;
		char text[TRIGGERS_NAME_MAX];
	} *texts;
	uint16_t bucket[TEXT_BUCKETS]; /* index + 1 of a text */
	size_t n_texts;
	struct place places[SERIES_STEPS_MAX];
	size_t n_places;
	unsigned samples_left;
	struct series_counters counters;
};

int series_matches(const char *pattern, const char *name)
{
	const char *star = NULL, *resume = NULL;
	while (*name) {
		if (*pattern == '*') {
			star = pattern++;
			resume = name;
		} else if (*pattern == *name) {
			pattern++;
			name++;
		} else if (star) {
			pattern = star + 1;
			name = ++resume;
		} else {
			return 0;
		}
	}
	while (*pattern == '*')
		pattern++;
	return *pattern == 0;
}

static bool alarms(const struct series *series, const char *name)
{
	for (size_t i = 0; i < series->n_patterns; i++)
		if (series_matches(series->patterns[i], name))
			return true;
	return false;
}

int series_new(struct triggers_engine *engine, char *const *patterns, size_t count, struct series **ret_series)
{
	if (count > SERIES_PATTERNS_MAX)
		return -EINVAL;
	struct series *series = calloc(1, sizeof(*series));
	if (!series)
		return -ENOMEM;
	series->engine = engine;
	series->room = KNOWN_FIRST;
	series->known = calloc(series->room, sizeof(*series->known));
	series->samples_left = SERIES_SAMPLES_A_TICK;
	for (size_t i = 0; i < count && series->known; i++) {
		series->patterns[i] = strdup(patterns[i]);
		if (!series->patterns[i])
			break;
		series->follows_tracks |= strncmp(patterns[i], "track:", 6) == 0;
		series->n_patterns++;
	}
	if (!series->known || series->n_patterns != count || busy_new(engine, &series->busy) < 0) {
		series_free(series);
		return -ENOMEM;
	}
	*ret_series = series;
	return 0;
}

void series_free(struct series *series)
{
	if (!series)
		return;
	for (size_t i = 0; i < series->n_patterns; i++)
		free(series->patterns[i]);
	busy_free(series->busy);
	free(series->known);
	free(series->texts);
	free(series);
}

void series_phases(struct series *series, const struct phases *own)
{
	series->phases = *own;
}

void series_waits(struct series *series, const struct waits *own)
{
	series->waits = *own;
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	return x * 0xd6e8feb86659fd93u;
}

static size_t known_hash(uint32_t source, uint32_t track, uint32_t name)
{
	return (size_t)(mix((uint64_t)name << 32 | track) ^ mix(source)) >> 7;
}

/* The entry, or the empty one where it would be. */
static struct known *known_find(const struct series *series, uint32_t source, uint32_t track, uint32_t name)
{
	size_t mask = series->room - 1;
	for (size_t i = known_hash(source, track, name) & mask;; i = (i + 1) & mask) {
		struct known *known = &series->known[i];
		if (!known->used || (known->name == name && known->track == track && known->source == source))
			return known;
	}
}

/* Puts all that are not of source `without` into a table of `room`. */
static int known_rebuild(struct series *series, size_t room, uint32_t without)
{
	struct known *old = series->known;
	size_t old_room = series->room;
	struct known *table = calloc(room, sizeof(*table));
	if (!table)
		return -ENOMEM;
	series->known = table;
	series->room = room;
	series->used = 0;
	for (size_t i = 0; i < old_room; i++) {
		if (!old[i].used || old[i].source == without)
			continue;
		*known_find(series, old[i].source, old[i].track, old[i].name) = old[i];
		series->used++;
	}
	free(old);
	return 0;
}

/* NULL if there is no room for another one. */
static struct known *known_add(struct series *series, uint32_t source, uint32_t track, uint32_t name)
{
	if (series->used >= series->room / 4 * 3) {
		if (series->room >= SERIES_KNOWN_MAX || known_rebuild(series, series->room * 2, UINT32_MAX) < 0)
			return NULL;
	}
	struct known *known = known_find(series, source, track, name);
	*known = (struct known){.source = source, .track = track, .name = name, .used = 1,
				.series = TRIGGERS_SERIES_NONE};
	series->used++;
	return known;
}

static uint64_t text_hash(const char *text, size_t bytes)
{
	uint64_t hash = bytes;
	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
	return mix(hash);
}

/* Our own id of a text that has none, 0 if there is no room. Texts that are alike in 63 bytes are one. */
static uint32_t text_id(struct series *series, const char *text, size_t bytes)
{
	if (!text || bytes == 0)
		return 0;
	if (bytes > TRIGGERS_NAME_MAX - 1)
		bytes = TRIGGERS_NAME_MAX - 1;
	if (!series->texts)
		series->texts = malloc(SERIES_TEXTS_MAX * sizeof(*series->texts));
	if (!series->texts)
		return 0;
	uint64_t hash = text_hash(text, bytes);
	size_t at = (size_t)hash % TEXT_BUCKETS;
	for (; series->bucket[at]; at = (at + 1) % TEXT_BUCKETS) {
		size_t i = series->bucket[at] - 1u;
		if (series->texts[i].hash == hash && strncmp(series->texts[i].text, text, bytes) == 0 &&
		    series->texts[i].text[bytes] == 0)
			return OWN_NAMES + (uint32_t)i;
	}
	if (series->n_texts == SERIES_TEXTS_MAX)
		return 0;
	size_t i = series->n_texts++;
	series->texts[i].hash = hash;
	memcpy(series->texts[i].text, text, bytes);
	series->texts[i].text[bytes] = 0;
	series->bucket[at] = (uint16_t)(i + 1);
	return OWN_NAMES + (uint32_t)i;
}

/* A name's text, terminated, with a prefix; false if it has none. */
static bool name_text(const struct series *series, const struct series_source *source, uint32_t name,
		      const char *prefix, char ret_text[TRIGGERS_NAME_MAX])
{
	const char *text;
	size_t bytes;
	if (name >= OWN_NAMES) {
		/* An id that no ring has, and that is not ours. */
		if (name - OWN_NAMES >= series->n_texts)
			return false;
		text = series->texts[name - OWN_NAMES].text;
		bytes = strlen(text);
	} else if (!source->name || source->name(source->context, name, &text, &bytes) < 0) {
		return false;
	}
	size_t before = strlen(prefix);
	memcpy(ret_text, prefix, before);
	plain_text(ret_text + before, TRIGGERS_NAME_MAX - before, text, bytes);
	return true;
}

/* "ProfilerStep#12" (PyTorch): its number, else -1. */
static int64_t step_of_name(const char *text, size_t bytes)
{
	static const char prefix[] = "ProfilerStep#";
	const size_t before = sizeof(prefix) - 1;
	int64_t step = 0;
	if (bytes <= before || bytes > before + 12 || memcmp(text, prefix, before) != 0)
		return -1;
	for (size_t i = before; i < bytes; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		step = step * 10 + (text[i] - '0');
	}
	return step;
}

static void decide(struct series *series, struct known *known, const struct series_source *source,
		   enum triggers_role role, const char *name)
{
	bool alarming = alarms(series, name);
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
static void decide_phase(struct series *series, struct known *known, const struct series_source *source,
			 const char *span)
{
	char name[TRIGGERS_NAME_MAX];
	snprintf(name, sizeof(name), "phase:%s/%.*s", phases_text(known->phase), TRIGGERS_NAME_MAX - 20, span);
	decide(series, known, source, TRIGGERS_PHASE, name);
}

/* The combination, decided upon where it is new. NULL if there is no room to know it. */
static struct known *known_get(struct series *series, const struct series_source *source, uint32_t track,
			       uint32_t name, enum triggers_role role, const char *prefix)
{
	uint32_t kept = role == TRIGGERS_PHASE ? name + PHASE_NAMES : name;
	struct known *known = known_find(series, source->source, track, kept);
	if (known->used)
		return known;
	known = known_add(series, source->source, track, kept);
	char text[TRIGGERS_NAME_MAX] = "step";
	if (!known || (role != TRIGGERS_STEP && !name_text(series, source, name, prefix, text)))
		return known;
	if (role == TRIGGERS_SPAN) {
		known->phase = (uint8_t)phases_find(&series->phases, text);
		known->waits = known->phase || waits_name(&series->waits, text, strlen(text));
	}
	if (role == TRIGGERS_SPAN && step_of_name(text, strlen(text)) >= 0)
		known->is_step = 1;
	else if (known->phase)
		decide_phase(series, known, source, text);
	else
		decide(series, known, source, role, text);
	return known;
}

static void observe(struct series *series, const struct known *known, const struct triggers_sample *sample)
{
	if (!known || known->series == TRIGGERS_SERIES_NONE)
		return;
	if (!known->alarms) {
		if (series->samples_left == 0) {
			series->counters.left_out++;
			return;
		}
		series->samples_left--;
	}
	series->counters.samples++;
	triggers_engine_observe(series->engine, known->series, sample);
}

static struct place *place_find(struct series *series, struct known *known)
{
	struct place *place = &series->places[known->place % SERIES_STEPS_MAX];
	if (known->place < series->n_places && place->series == known->series && place->source == known->source)
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

static struct place *place_of(struct series *series, struct known *known, bool is_step)
{
	struct place *place = place_find(series, known);
	if (place || series->n_places == SERIES_STEPS_MAX)
		return place;
	known->place = (uint32_t)series->n_places++;
	place = &series->places[known->place];
	*place = (struct place){.source = known->source, .series = known->series, .is_step = is_step,
				.last_end_ns = INT64_MIN, .last_step = -1};
	return place;
}

static void place_shut(struct place *place, int64_t end_ns)
{
	place->open = place->from_stack = false;
	place->last_end_ns = end_ns;
}

static struct known *known_step(struct series *series, const struct series_source *source, uint32_t track)
{
	return known_get(series, source, track, STEP_NAME, TRIGGERS_STEP, "");
}

static void tell_step(const struct series *series, const struct series_source *source, const struct known *known,
		      const struct series_event *event, const char *phase)
{
	struct triggers_belief belief = {0};
	if (!source->step)
		return;
	bool known_well = triggers_engine_belief(series->engine, known->series, &belief) == 0 && belief.warm;
	const struct series_step step = {
		.track = event->track,
		.start_ns = event->start_ns,
		.end_ns = event->end_ns,
		.phase = phase ? phase : "train",
		.warn_ns = known_well ? belief.warn : 0,
	};
	source->step(source->context, &step);
}

/* A step or phase has ended. */
static void finish(struct series *series, const struct series_source *source, struct known *known,
		   const struct series_event *event, int64_t step, const char *phase)
{
	if (!known || known->series == TRIGGERS_SERIES_NONE)
		return;
	struct place *place = place_of(series, known, step >= 0);
	if (place) {
		place_shut(place, event->end_ns);
		snprintf(place->phase, sizeof(place->phase), "%s", phase ? phase : "");
		if (step >= 0)
			place->last_step = step;
	}
	if (step >= 0) {
		tell_step(series, source, known, event, phase);
		busy_step(series->busy, source,
			  &(struct busy_step){event->track, event->start_ns, event->end_ns, step, phase});
	}
	struct triggers_sample sample = {
		.start_ns = event->start_ns,
		.duration_ns = ns_sub(event->end_ns, event->start_ns),
		.value = (double)(ns_sub(event->end_ns, event->start_ns)),
		.step = step,
		.phase = phase,
		.sample = event->sample,
	};
	observe(series, known, &sample);
}

/* What a source does now: the phase that is open, else that of the step that is, or was, the latest. */
static const char *phase_now(const struct series *series, uint32_t source)
{
	const struct place *best = NULL;
	for (size_t i = 0; i < series->n_places; i++) {
		const struct place *place = &series->places[i];
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

/* Step marks say in which phase: by its own name, or as the job calls it ("eval_step"). */
static const char *phase_of_step(const struct series *series, char text[TRIGGERS_NAME_MAX])
{
	unsigned phase = phases_find(&series->phases, text);
	return phase ? phases_text(phase) : text;
}

static void open_known(struct series *series, struct known *known, int64_t start_ns, int64_t step, const char *phase)
{
	struct place *place = place_of(series, known, step >= 0);
	/* A stack is read without a lock: an end that was already told of is no longer open. */
	if (!place || start_ns < place->last_end_ns)
		return;
	place->open = true;
	place->open_ns = start_ns;
	snprintf(place->phase, sizeof(place->phase), "%s", phase ? phase : "");
	triggers_engine_open(series->engine, known->series, start_ns, step, phase);
}

/* A span that a stack says to be open. The outermost of a phase counts; what lies in itself is not followed. */
static void open_span(struct series *series, struct known *known, int64_t start_ns)
{
	const char *phase = known->phase ? phases_text(known->phase) : phase_now(series, known->source);
	struct place *place = place_of(series, known, false);
	if (!place || place->nests || start_ns < place->last_end_ns)
		return;
	bool inside = place->open && start_ns > place->open_ns + SAME_OPENING_NS && place->told;
	bool around = place->open && start_ns < place->open_ns - SAME_OPENING_NS;
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

static void open_unmarked(struct series *series, const struct series_source *source, uint32_t track, uint32_t name,
			  int64_t start_ns)
{
	char text[TRIGGERS_NAME_MAX];
	struct known *known = known_get(series, source, track, name, TRIGGERS_SPAN, "");
	if (!known)
		return;
	if (known->is_step && name_text(series, source, name, "", text)) {
		struct known *step = known_step(series, source, track);
		if (step && step->series != TRIGGERS_SERIES_NONE)
			open_known(series, step, start_ns, step_of_name(text, strlen(text)), NULL);
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
	struct known *known = is_step ? known_step(series, source, track)
				      : known_get(series, source, track, name, TRIGGERS_PHASE, "phase:");
	if (!known || known->series == TRIGGERS_SERIES_NONE)
		return;
	const char *named = name_text(series, source, name, "", phase) ? phase : NULL;
	if (is_step && named)
		named = phase_of_step(series, phase);
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
		struct place *place = &series->places[i];
		if (place->source != source || !place->from_stack || place->told)
			continue;
		triggers_engine_abandon(series->engine, place->series);
		place->open = place->from_stack = false;
	}
}

static void on_mark(struct series *series, const struct series_source *source, const struct series_event *event)
{
	char phase[TRIGGERS_NAME_MAX];
	int64_t step = (int64_t)(event->id & INT64_MAX);
	bool named = name_text(series, source, event->name, "", phase);
	switch (event->mark) {
	case DREC_MARK_STEP_BEGIN:
	case DREC_MARK_PHASE_BEGIN:
		series_open(series, source, event->mark, event->track, event->name, event->start_ns, event->id);
		break;
	case DREC_MARK_STEP_END:
		finish(series, source, known_step(series, source, event->track), event, step,
		       named ? phase_of_step(series, phase) : NULL);
		break;
	case DREC_MARK_PHASE_END:
		finish(series, source,
		       known_get(series, source, event->track, event->name, TRIGGERS_PHASE, "phase:"), event, -1,
		       named ? phase : NULL);
		break;
	default:
		break;
	}
}

/* A profiler's step span; its name says which step. */
static void on_step_span(struct series *series, const struct series_source *source, const struct series_event *event)
{
	const char *text = event->text;
	size_t bytes = event->text_bytes;
	if (!text && (!source->name || source->name(source->context, event->name, &text, &bytes) < 0))
		return;
	finish(series, source, known_step(series, source, event->track), event, step_of_name(text, bytes), NULL);
}

/* One that lies in an open one of its kind tells nothing new; what a hook did that did nothing is no phase. */
static void on_phase_span(struct series *series, const struct series_source *source, struct known *known,
			  const struct series_event *event)
{
	const struct place *place = place_find(series, known);
	bool open = place && place->open;
	if (known->series == TRIGGERS_SERIES_NONE || (open && event->start_ns > place->open_ns + SAME_OPENING_NS) ||
	    (!open && ns_sub(event->end_ns, event->start_ns) < PHASES_SPAN_MIN_NS))
		return;
	finish(series, source, known, event, -1, phases_text(known->phase));
}

static void on_span(struct series *series, const struct series_source *source, const struct series_event *event)
{
	if (!event->name && event->text && step_of_name(event->text, event->text_bytes) >= 0) {
		on_step_span(series, source, event);
		return;
	}
	uint32_t name = event->name ? event->name : text_id(series, event->text, event->text_bytes);
	if (!name)
		return;
	struct known *known = known_get(series, source, event->track, name, TRIGGERS_SPAN, "");
	if (known && known->is_step) {
		on_step_span(series, source, event);
		return;
	}
	busy_span(series->busy, source, event->track, known && known->waits, event->start_ns, event->end_ns);
	if (known && known->phase) {
		on_phase_span(series, source, known, event);
		return;
	}
	struct place *place = known && known->alarms ? place_find(series, known) : NULL;
	if (place)
		place_shut(place, event->end_ns);
	struct triggers_sample sample = {
		.start_ns = event->start_ns,
		.duration_ns = ns_sub(event->end_ns, event->start_ns),
		.value = (double)(ns_sub(event->end_ns, event->start_ns)),
		.step = -1,
		.phase = known && known->alarms ? phase_now(series, source->source) : NULL,
		.sample = event->sample,
	};
	observe(series, known, &sample);
}

static void on_counter(struct series *series, const struct series_source *source, const struct series_event *event)
{
	uint32_t name = event->name ? event->name : text_id(series, event->text, event->text_bytes);
	if (!name)
		return;
	struct triggers_sample sample = {.start_ns = event->start_ns, .value = event->value, .step = -1,
					 .sample = event->sample};
	observe(series, known_get(series, source, event->track, name, TRIGGERS_COUNTER, ""), &sample);
}

/* Only where a pattern "track:…" asks for it. */
static void on_track(struct series *series, const struct series_source *source, const struct series_event *event)
{
	struct known *known = known_find(series, source->source, event->track, 0);
	if (!known->used) {
		char name[TRIGGERS_NAME_MAX];
		const char *text;
		size_t bytes;
		known = known_add(series, source->source, event->track, 0);
		if (!known || !source->track || source->track(source->context, event->track, &text, &bytes) < 0)
			return;
		memcpy(name, "track:", 6);
		plain_text(name + 6, sizeof(name) - 6, text, bytes);
		if (alarms(series, name))
			decide(series, known, source, TRIGGERS_TRACK, name);
	}
	if (known->series != TRIGGERS_SERIES_NONE)
		triggers_engine_progress(series->engine, known->series, event->end_ns);
}

void series_event(struct series *series, const struct series_source *source, const struct series_event *event)
{
	if (series->follows_tracks)
		on_track(series, source, event);
	if (event->kind == DREC_SPAN)
		on_span(series, source, event);
	else if (event->kind == DREC_COUNTER)
		on_counter(series, source, event);
	else if (event->kind == DREC_MARK)
		on_mark(series, source, event);
}

void series_progress(struct series *series, uint32_t source, int64_t now_ns)
{
	for (size_t i = 0; i < series->n_places; i++)
		if (series->places[i].source == source && series->places[i].open)
			triggers_engine_progress(series->engine, series->places[i].series, now_ns);
}

void series_source_end(struct series *series, uint32_t source)
{
	size_t kept = 0;
	for (size_t i = 0; i < series->n_places; i++) {
		struct place *place = &series->places[i];
		if (place->source != source)
			series->places[kept++] = *place;
		else if (place->open)
			triggers_engine_abandon(series->engine, place->series);
	}
	series->n_places = kept;
	for (size_t i = 0; i < series->room; i++) {
		const struct known *known = &series->known[i];
		if (!known->used || known->source != source || known->series == TRIGGERS_SERIES_NONE)
			continue;
		if (known->alarms)
			series->counters.alarming--;
		else
			series->counters.followed--;
	}
	/* Out of memory the entries stay, and would only be found again by the same source. */
	known_rebuild(series, series->room, source);
	busy_source_end(series->busy, source);
	triggers_engine_source_end(series->engine, source);
}

void series_tick(struct series *series)
{
	series->samples_left = SERIES_SAMPLES_A_TICK;
}

const struct series_counters *series_counters(const struct series *series)
{
	return &series->counters;
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

/* ---- over a restart ---- */

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
		const struct place *place = &series->places[i];
		struct saved_place saved = {
			.source = place->source,
			.series = place->series,
			.flags = (place->open ? PLACE_OPEN : 0u) | (place->is_step ? PLACE_STEP : 0u) |
				 (place->is_span ? PLACE_SPAN : 0u) | (place->from_stack ? PLACE_FROM_STACK : 0u) |
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
	if (!memchr(saved.phase, 0, sizeof(saved.phase)) || saved.open_ns > INT64_MAX / 2 || saved.open_ns < INT64_MIN / 2)
		reader->failed = true;
	if (reader->failed || triggers_engine_belief(series->engine, saved.series, &belief) < 0 ||
	    belief.key.source != saved.source)
		return;
	struct place *place = &series->places[series->n_places++];
	*place = (struct place){
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
	series->n_places = 0;
	return -EBADMSG;
}
