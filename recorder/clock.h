/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h: the machine's clocks as the daemon saw them: one series of anchors that all rings of this boot
 * share, so that the ranks of a host cannot shear against each other.
 *
 * Inside the daemon time is "record time": MONOTONIC plus one offset to Unix time, fixed when the daemon
 * starts, so a clock step cannot turn anything inside out. Steps, suspends and changes of the clocksource
 * are noted beside it.
 */
#ifndef RECORDER_CLOCK_H
#define RECORDER_CLOCK_H

#include <driverec/format.h>
#include <driverec/reader.h>

#include <stddef.h>
#include <stdint.h>

enum { CLOCK_ANCHORS_MAX = 512, CLOCK_EVENTS_MAX = 64 };

enum clock_event_kind { CLOCK_STEP = 1, CLOCK_SUSPEND, CLOCK_SOURCE_CHANGED, CLOCK_COUNTER_JUMP };

/* Something that happened to a clock between two anchors. */
struct clock_event {
	enum clock_event_kind kind;
	int64_t mono_ns;   /* when it was seen */
	int64_t amount_ns; /* by how much; 0 where that has no meaning */
};

struct clock {
	struct drec_anchor anchors[CLOCK_ANCHORS_MAX]; /* by counter ticks; oldest first, thinned with age */
	size_t n_anchors;
	uint64_t sequence;     /* anchors taken so far */
	int64_t offset_ns;     /* record time = MONOTONIC + this */
	int64_t next_mono_ns;  /* when the next anchor is due */
	int64_t next_source_mono_ns;
	uint32_t clocksource;
	double ticks_per_ns;   /* of the counter, by the last two anchors; 0 = not known yet */
	struct clock_event events[CLOCK_EVENTS_MAX]; /* the latest, oldest first */
	size_t n_events;
};

/* Takes two anchors 2 ms apart. */
void clock_start(struct clock *clock);

/* Takes an anchor if a second has passed. Returns 1 if it did. */
int clock_tick(struct clock *clock);

/* Takes an anchor now. */
void clock_anchor(struct clock *clock);

int64_t clock_mono_ns(void);
int64_t clock_record_ns(const struct clock *clock);

/* MONOTONIC to Unix ns as it is now: what an incident whose t0 is now uses. */
int64_t clock_unix_offset_ns(const struct clock *clock);

/* Hands the anchors to a reader of this boot. Rings on MONOTONIC need and use none. */
void clock_give(const struct clock *clock, struct drec_reader *reader);

const char *clock_event_name(enum clock_event_kind kind);

#endif
