/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The producer's side of a ring: what a process keeps privately while it writes one.
 *
 * Owner: the job's process; each `struct local` belongs to the thread that holds its slot. What is in the
 * mapped file is written for others and never trusted back: indices and bounds come from here.
 *
 *   create.c  makes the file        thread.c  gives threads slots     append.c  puts events into chunks
 *   dict.c    names                 mark.c    scopes, steps, marks    close.c   ends
 */
#ifndef RINGBUF_RING_H
#define RINGBUF_RING_H

#include <driverec/driverec.h>
#include <driverec/format.h>

#include <string.h>

#include "atomic.h"
#include "point.h"
#include "ticks.h"
#include "wire.h"

enum {
	SCOPES_MAX = 254, /* depth is 8 bits, 255 = unknown */
	NO_CHUNK = 0xffffffff
};

struct scope {
	uint64_t start;
	uint32_t name;
	uint32_t mark; /* 0, or the mark that begins it */
};

/* A thread's private side of its slot. */
struct local {
	struct drec *rec;
	/* Where the next event goes; off == end while the thread has no chunk. */
	uint8_t *data;
	uint64_t *commit;
	uint64_t generation_bits; /* generation << 32 */
	uint32_t off;
	uint32_t end;
	uint16_t lap;
	volatile uint8_t busy;    /* an append is under way: a signal handler must not begin another */
	uint8_t leaving;          /* the thread's exit handlers run */
	uint32_t depth;           /* open scopes */
	uint64_t last;            /* latest end of an event in this chunk */
	uint64_t events;          /* committed in this slot life */
	struct drec_slot *slot;
	uint64_t owner;           /* life << 32 | tid; 0 = free, or being given out */
	uint32_t index;
	uint32_t life;
	uint32_t chunk;
	uint32_t track;
	uint32_t begins;
	uint32_t step_scope;      /* drec_scope of the open step, 0 = none */
	uint64_t step;
	uint64_t number;          /* of the next chunk in this slot life */
	uint64_t prev_last;
	uint64_t full_tail;       /* the last search for a chunk failed while this was so: see take.c */
	uint64_t full_pins;
	struct local *next_of_thread;
	struct scope scope[SCOPES_MAX];
};

struct drec {
	uint64_t *live;       /* a MADV_WIPEONFORK page: 0 in any child, and after drec_close() */
	uint32_t clock;
	uint32_t n_chunks;
	uint32_t chunk_bytes;
	uint32_t n_slots;
	uint32_t n_dict_ids;
	uint32_t n_anchors;
	uint64_t dict_bytes;
	uint64_t generation;  /* of recorders in this process, for DREC_NAME sites */
	uint64_t ticks_per_second;
	uint64_t first_ticks; /* of the first anchor */
	/* the mapped file */
	struct drec_header *header;
	struct drec_state *state;
	struct drec_pin *pins;
	uint64_t *order;
	struct drec_chunk *chunks;
	struct drec_slot *slots;
	struct drec_anchor *anchors;
	struct drec_dict_entry *dict_index;
	uint8_t *dict;
	uint8_t *data;
	/* private */
	struct local *locals; /* n_slots */
	uint64_t *names;      /* hash table of names: hash << 32 | id, 0 = empty */
	uint32_t names_mask;
	int fd;
	int exit_mark;
	uint64_t closing;     /* a drec_close() is under way or done */
	uint64_t file_bytes;
	uint64_t inode;
	struct drec *next;    /* all recorders of the process, for exit */
	char job[DREC_TEXT_MAX];
	char name[DREC_TEXT_MAX];
	char path[640];
};

extern _Thread_local struct local *thread_local_slot __attribute__((tls_model("initial-exec")));

/* thread.c: the calling thread's local of this recorder, registered if new; NULL (counted) if there is none. */
struct local *local_find(struct drec *rec, uint64_t since);
int threads_init(void);

/* append.c */
uint8_t *chunk_take(struct local *l, uint32_t need, uint64_t start, uint64_t end);
void chunk_close(struct local *l);
void loss_flush(struct local *l);
void loss_pending(struct local *l, unsigned reason, uint64_t count, uint64_t first, uint64_t last);
void loss_slotless(struct drec *rec, unsigned reason, uint64_t count, uint64_t first, uint64_t last);
int append_event(struct local *l, const struct drec_event *event, uint64_t now);
void anchor_write(struct drec *rec);

/* dict.c */
uint32_t dict_add(struct drec *rec, unsigned kind, const void *head, size_t head_bytes, const void *text,
		  size_t bytes);

/* mark.c */
void scopes_end(struct local *l, uint32_t depth, uint64_t now);

/* create.c: recorders of this process */
struct drec *recorders_first(void);

/*
 * Begins a call: the thread's local, marked busy; NULL if nothing may be written. Every call that gets one
 * ends with leave(). A child of fork reads *live as 0 and touches nothing shared. `since`: when the event to
 * be written begins, if that is before now; a window that it meets must learn of its loss.
 */
static inline struct local *enter_since(struct drec *rec, uint64_t since)
{
	if (!rec || !load_relaxed(rec->live))
		return NULL;
	struct local *l = thread_local_slot;
	if (__builtin_expect(!l || l->rec != rec, 0)) {
		l = local_find(rec, since);
		if (!l)
			return NULL;
	}
	if (__builtin_expect(l->busy, 0)) {
		uint64_t now = ticks_now(rec->clock);
		loss_slotless(rec, DREC_LOSS_REENTRANT, 1, since < now ? since : now, now);
		return NULL;
	}
	l->busy = 1;
	fence_signal();
	return l;
}

static inline struct local *enter(struct drec *rec)
{
	return enter_since(rec, UINT64_MAX);
}

static inline void leave(struct local *l)
{
	fence_signal();
	l->busy = 0;
}

/* Room for an event of `need` bytes that lasts from `start` to `end`, or NULL (counted). */
static inline uint8_t *reserve(struct local *l, uint32_t need, uint64_t start, uint64_t end)
{
	if (__builtin_expect(need > l->end - l->off, 0))
		return chunk_take(l, need, start, end);
	return l->data + l->off;
}

/* A name of another recorder may lie beyond this dictionary: then the event is nameless. */
static inline uint32_t known_name(const struct drec *rec, uint32_t name)
{
	return name < rec->n_dict_ids ? name : 0;
}

static inline void append_commit(struct local *l, uint32_t bytes)
{
	l->off += bytes;
	l->events++;
	store_release(l->commit, l->generation_bits | l->off); /* A4, partner: the reader's acquire at R1 */
	POINT(append_committed);
}

/* A3, A4 of a plain span: the base record alone, stored as four words. */
static inline void append_span(struct local *l, uint32_t track_depth, uint32_t name, uint64_t start, uint64_t end)
{
	if (end < start)
		end = start;
	uint8_t *out = reserve(l, DREC_EVENT_BASE_BYTES, start, end);
	if (__builtin_expect(!out, 0))
		return;
	struct event_base base = {
		.words = DREC_EVENT_BASE_BYTES / 8,
		.kind = DREC_SPAN,
		.lap = l->lap,
		.name = name,
		.track_depth = track_depth,
		.start = start,
		.dur_or_value = end - start,
	};
	if (end > l->last)
		l->last = end;
#ifdef DREC_MUTANT_COMMIT_BEFORE_STORE
	append_commit(l, DREC_EVENT_BASE_BYTES);
	POINT(append_stored);
	fence_release();
	memcpy(out, &base, sizeof(base));
#else
	memcpy(out, &base, sizeof(base));
	POINT(append_stored);
	append_commit(l, DREC_EVENT_BASE_BYTES);
#endif
}

#endif
