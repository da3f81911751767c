/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources/producers.h: the rings of this host, from their appearance to their removal.
 *
 * Per ring: its reader and cursors, how far it was read, which order number it had at which time, which spans
 * are open, whether its process lives. A ring that cannot be read is put aside with one line in the log and
 * never looked at again while the same file stands there; no ring's trouble is another's.
 *
 * One thread: the loop's. Nothing here is called back from another.
 */
#ifndef RECORDER_SOURCES_PRODUCERS_H
#define RECORDER_SOURCES_PRODUCERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <driverec/freeze.h>
#include <driverec/reader.h>

#include "clock.h"
#include "tails.h"

enum {
	PRODUCERS_MAX = 256,      /* rings read at a time; more are waited with */
	PRODUCERS_DONE_MAX = 4096,/* names of rings that are not to be looked at again */
	PRODUCERS_OPEN_MAX = 512  /* open spans looked at a ring */
};

enum producer_life {
	PRODUCER_ALIVE = 0,
	PRODUCER_ENDED,   /* dead, and it said that it would end */
	PRODUCER_CRASHED  /* dead without a mark */
};

struct producer {
	struct drec_reader *reader;
	char file[256];           /* name within rings/ */
	char path[512];
	char key[33];             /* the ring's id as hex */
	uint32_t source;          /* the daemon's number of it */
	uint32_t rank;            /* UINT32_MAX = unknown */
	enum producer_life life;
	bool known_before;        /* an earlier daemon of this store had read it */
	bool drained;             /* dead, and everything was read */
	bool of_this_boot;
	int64_t last_event_ns;    /* record time: latest end of an event; 0 = none yet */
	int64_t last_work_ns;     /* of one that is no counter: those go on in a step that hangs */
	int64_t last_new_mono_ns; /* when something new was last seen */
	int64_t died_mono_ns;     /* when death was noticed */
	int64_t next_alive_mono_ns, next_open_mono_ns;
	struct tails tails;
	struct drec_poll_stats stats;
	struct drec_open_info *open; /* open spans as last read */
	size_t n_open;
	void *intake;             /* of the host: see producers_host.end */
};

/* What the daemon makes of rings. Times are record time. */
struct producers_host {
	void *context;
	/* A ring was taken up: its number and cursors may be set here (known_before). */
	void (*begin)(void *context, struct producer *producer);
	void (*event)(void *context, struct producer *producer, const struct drec_event *event);
	/* After each poll that brought something, and whenever open spans were read. */
	void (*polled)(void *context, struct producer *producer);
	void (*open_spans)(void *context, struct producer *producer);
	/* Dead and drained: once. */
	void (*ended)(void *context, struct producer *producer);
	/* Whether its file or reader is still needed. */
	bool (*needed)(void *context, const struct producer *producer);
	/* The reader is about to be freed. */
	void (*end)(void *context, struct producer *producer);
};

struct producers;

/* `run_dir` as of drec_run_dir(). The clock is borrowed. */
int producers_new(const char *run_dir, const struct clock *clock, const struct producers_host *host,
		  struct producers **ret_producers);
void producers_free(struct producers *producers);

/* Readable when producers_found() has something to do. */
int producers_fd(const struct producers *producers);
void producers_found(struct producers *producers);
void producers_rescan(struct producers *producers);

/* Reads what is new everywhere. Returns 1 if anything was, 2 if more is waiting. */
int producers_tick(struct producers *producers);

/* The anchors of the clock moved on: hands them to the readers. */
void producers_give_clock(struct producers *producers);

size_t producers_count(const struct producers *producers);
struct producer *producers_at(const struct producers *producers, size_t index);
struct producer *producers_find(const struct producers *producers, uint32_t source);

/* Reads its open spans now, for who cannot wait for the next tick. */
void producers_look(struct producers *producers, struct producer *producer);

/* Order number for a pin that keeps what ends at or after `record_ns`; 0 = look at the chunks. */
uint64_t producer_from(const struct producer *producer, const struct clock *clock, int64_t record_ns);

/*
 * What a thread of it hangs in: the innermost open span of the thread that has a step open, else of the one
 * whose innermost span is open the longest. NULL if nothing is open, or only steps and phases are.
 */
const struct drec_open_info *producer_innermost(const struct producer *producer);

/* Numbers below were given out by an earlier daemon of this store. */
void producers_number_from(struct producers *producers, uint32_t next_source);
uint32_t producers_next_number(const struct producers *producers);

/* Removes every ring that is dead, read and not needed, without waiting. */
void producers_flush(struct producers *producers);

/* How far back the ring reaches at its present rate; INT64_MAX while nothing was overwritten. */
int64_t producer_depth_ns(const struct producer *producer, int64_t mono_ns);

struct producers_totals {
	uint64_t events, bytes, lost, overwritten, corrupt_bytes;
	uint64_t rings_seen, rings_refused, rings_removed, crashed;
	uint32_t alive, dead;
};
void producers_totals(const struct producers *producers, struct producers_totals *ret_totals);

#endif
