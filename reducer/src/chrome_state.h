/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Chrome reader as a machine of states, for chrome.c (events, damage among them, feeding) and
 * chrome_root.c (what stands around the events).
 *
 * A step looks at the bytes from r->at on and returns 1 if it used some up or changed the state, 0 if it
 * needs more, or an error. What both files need of each event is inline.
 */
#ifndef REDUCER_CHROME_STATE_H
#define REDUCER_CHROME_STATE_H

#include <reducer/chrome.h>

#include <errno.h>

#include "chrome_event.h"
#include "chrome_inside.h"
#include "text.h"

enum chrome_state {
	STATE_START,   /* before the root */
	STATE_OBJECT,  /* between members of the root object */
	STATE_VALUE,   /* inside a member too large to hand on */
	STATE_FIND,    /* the root object is damaged: looking for the next member */
	STATE_EVENTS,  /* between events, in an array */
	STATE_LINES,   /* between events, one a line */
	STATE_DAMAGED, /* between events, after one that could not be read */
	STATE_DONE     /* the root has ended */
};

enum {
	ROOM_MIN = 256 << 10,
	LOOSE_WAIT_BYTES = 64 << 10, /* how long a damaged event may wait for its end */
	SEEN_BYTES = 96
};

struct reducer_chrome {
	struct reducer_sink sink;
	struct reducer_chrome_options limit;
	struct reducer_read_report *report;
	struct chrome_event found;
	struct chrome_shapes shapes;
	enum chrome_state state;
	enum chrome_state events_state; /* STATE_EVENTS or STATE_LINES, while STATE_DAMAGED */
	bool array_root, had_events, had_phase, had_elements, final, doubled_told, in_damage;
	bool after_end; /* bytes that are not read have come after the root */
	int stop_value; /* what the sink returned */
	char before;    /* the last byte that is no space, while STATE_DAMAGED */
	char *data;
	size_t at, bytes, room; /* unused bytes are [at, bytes) */
	uint64_t base;          /* offset in the text of data[0] */
	/* The unfinished item at `at`. */
	struct json_scan scan;
	size_t scanned;     /* bytes of it that `scan` has seen */
	size_t retry_bytes; /* read again when so many are there */
	struct buffer key;
	char seen[SEEN_BYTES]; /* the first members' names, to say what a file is */
	uint64_t seen_at;      /* where the last of them begins */
};

static inline uint64_t chrome_offset_of(const struct reducer_chrome *r, const char *p)
{
	return r->base + (uint64_t)(p - r->data);
}

static inline void chrome_use_up_to(struct reducer_chrome *r, const char *p)
{
	r->at = (size_t)(p - r->data);
	r->scan = (struct json_scan){0};
	r->scanned = 0;
	r->retry_bytes = 0;
}

/* Whether an unfinished item at `at` is worth another look. */
static inline bool chrome_worth_reading(struct reducer_chrome *r)
{
	size_t have = r->bytes - r->at;
	if (r->retry_bytes == 0 || have >= r->retry_bytes || r->final)
		return true;
	const char *p = r->data + r->at;
	bool whole = json_scan(&r->scan, p + r->scanned, p + have) != NULL;
	r->scanned = have;
	if (whole)
		r->retry_bytes = 0;
	return whole;
}

/*
 * How far to look at an item at p that may have `limit` bytes: one byte further. What is read must not depend
 * on how much of the text is there already, so nothing is read beyond.
 */
static inline const char *chrome_reach(const struct reducer_chrome *r, const char *p, size_t limit)
{
	size_t have = (size_t)(r->data + r->bytes - p);
	return p + (have <= limit ? have : limit + 1);
}

static inline enum json_how chrome_how_loose(const struct reducer_chrome *r, const char *end)
{
	return r->final && end == r->data + r->bytes ? JSON_LOOSE_FINAL : JSON_LOOSE;
}

static inline int chrome_wait_for_more(struct reducer_chrome *r)
{
	size_t have = r->bytes - r->at;
	if (r->retry_bytes == 0) {
		/* Begin the scan at the item's first byte, for the pieces to come. */
		r->scan = (struct json_scan){0};
		json_scan(&r->scan, r->data + r->at, r->data + r->bytes);
		r->scanned = have;
	}
	r->retry_bytes = have * 2 + 64;
	return 0;
}

/* The sink's own value may be any number: it is kept apart, so that none looks like progress. */
static inline int chrome_sink_said(struct reducer_chrome *r, int value)
{
	if (!value)
		return 0;
	r->stop_value = value;
	return -ECANCELED;
}

/* Keeps a problem for the report, as far as there is room. */
void chrome_note(struct reducer_read_report *report, uint64_t offset, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The refusal is always the last problem of the report, if need be in the place of another one. -EBADMSG. */
int chrome_refuse(struct reducer_chrome *r, uint64_t offset, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- chrome_root.c ---- */

/* STATE_START: which root. */
int chrome_step_start(struct reducer_chrome *r);
/* STATE_OBJECT: a member of the root. */
int chrome_step_object(struct reducer_chrome *r);
/* STATE_VALUE: passes over a container. */
int chrome_step_value(struct reducer_chrome *r);
/* STATE_FIND: up to the next member. */
int chrome_step_find(struct reducer_chrome *r);

#endif
