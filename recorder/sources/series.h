/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources/series.h: which events make which series of the trigger engine.
 *
 *   step marks, and spans named as profilers name steps ("ProfilerStep#12")   the step series of their track
 *   phase marks                                                               "phase:<phase>"
 *   spans whose name is known as a phase (phases.h)                           "phase:<phase>/<name>"
 *   spans                                                                     their name, on their track
 *   counters                                                                  their name, on their track
 *   any event of a thread whose "track:<name>" is asked for                   progress of that track
 *
 * The patterns of the configuration (`series`: "step", "phase:*", "load", "next(*)", "device:*") say which of
 * them alarm. All others are followed for diagnosis, as far as there is room and time: at most
 * SERIES_FOLLOWED_MAX, and SERIES_SAMPLES_A_TICK samples a tick of all of them together.
 *
 * Knows no ring and no file: the daemon and `replay` feed the same code. Not thread-safe.
 */
#ifndef RECORDER_SOURCES_SERIES_H
#define RECORDER_SOURCES_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <driverec/event.h>
#include <triggers/triggers.h>

#include "phases.h"
#include "waits.h"

enum {
	SERIES_PATTERNS_MAX = 256,
	SERIES_FOLLOWED_MAX = 1024,
	SERIES_SAMPLES_A_TICK = 1024,
	SERIES_KNOWN_MAX = 1 << 16, /* (source, track, name) seen so far */
	SERIES_TEXTS_MAX = 4096,    /* names that come without an id */
	SERIES_STEPS_MAX = 1024     /* step series, phases, and alarming spans that may be open */
};

struct series;

/* A step that has ended, as it is handed to the engine. */
struct series_step {
	uint32_t track;
	int64_t start_ns, end_ns;
	const char *phase; /* "train" where none is named */
	double warn_ns;    /* from where it would be a spike that warns; 0 = not learned yet */
};

/* Who an event is from, and how its ids become texts. The texts stay valid during the call alone. */
struct series_source {
	uint32_t source;
	uint32_t rank; /* UINT32_MAX = unknown */
	uint64_t job;  /* a number for the job, 0 = unknown: what stalls together */
	void *context;
	/* A name's text, or of a track. 0 or -errno. */
	int (*name)(void *context, uint32_t id, const char **ret_text, size_t *ret_bytes);
	int (*track)(void *context, uint32_t id, const char **ret_text, size_t *ret_bytes);
	/* Whether a track is a device's stream or core. NULL = none is. */
	bool (*is_stream)(void *context, uint32_t track);
	/* Told of every finished step before it is judged. NULL = not. */
	void (*step)(void *context, const struct series_step *step);
};

struct series_event {
	uint8_t kind;  /* enum drec_kind */
	uint16_t mark; /* enum drec_mark of marks */
	uint32_t track;
	uint32_t name;    /* id; 0 = text (may be NULL) */
	const char *text; /* not terminated */
	size_t text_bytes;
	int64_t start_ns, end_ns;
	uint64_t id;    /* the step number of step marks */
	double value;   /* of counters */
	int64_t sample; /* the caller's own number, comes back in firings; -1 = none */
};

/* The engine is borrowed. -EINVAL: too many patterns. */
int series_new(struct triggers_engine *engine, char *const *patterns, size_t count,
	       struct series **ret_series);
void series_free(struct series *series);
/* The job's own names of phases, borrowed for as long as the series live. */
void series_phases(struct series *series, const struct phases *own);
/* And of what is no own work. */
void series_waits(struct series *series, const struct waits *own);

void series_event(struct series *series, const struct series_source *source,
		  const struct series_event *event);

/*
 * A step (mark DREC_MARK_STEP_BEGIN), phase or (mark 0) span is open now, as a ring's stacks say. May be told
 * again and again; of one thread the outermost first. Spans matter where they are a phase or may alarm.
 */
void series_open(struct series *series, const struct series_source *source, unsigned mark, uint32_t track,
		 uint32_t name, int64_t start_ns, uint64_t step);

/* Around all that a look at a source's stacks says to be open: spans that are so no longer have ended unseen. */
void series_stack_begin(struct series *series, uint32_t source);
void series_stack_end(struct series *series, uint32_t source);

/* The source did something at this time: whatever is open in it was not yet hung. */
void series_progress(struct series *series, uint32_t source, int64_t now_ns);

/* Forgets a source; its number may be used again. What it left open is no stall. */
void series_source_end(struct series *series, uint32_t source);

/* A tick has begun: there is time for new samples. */
void series_tick(struct series *series);

struct series_counters {
	uint64_t samples;  /* handed to the engine */
	uint64_t left_out; /* samples of followed series that there was no time for */
	uint64_t no_room;  /* events whose series there was no room for */
	uint32_t alarming, followed;
};
const struct series_counters *series_counters(const struct series *series);

/* The latest finished step of a source, -1 = none yet. */
int64_t series_last_step(const struct series *series, uint32_t source);

/*
 * What is known beside the engine: what is open and in which phase, and the work of steps that go on. Saved
 * and restored with it, into new series; what the engine does not know any more is left out. The length, or
 * -ENOSPC; call with NULL, 0 to learn it. -EBADMSG: damaged, or of another version; then nothing is known.
 */
int64_t series_save(const struct series *series, void *out, size_t room);
int series_restore(struct series *series, const void *bytes, size_t count);

#endif
