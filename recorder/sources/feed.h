/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources/feed.h: events from outside as Chrome JSON or NDJSON, put through a ring of the daemon.
 *
 * The ring makes them equal to all others: macro view, triggers, windows, `.drec`. What may be fed:
 *
 *     FILE         a trace file, plain or packed; read to its end
 *     -            standard input; read to its end
 *     FIFO         a named pipe; writers may come and go
 *     unix:PATH    a socket that the daemon makes; up to FEED_CLIENTS_MAX clients, a document each
 *
 * One thread: the loop's.
 */
#ifndef RECORDER_SOURCES_FEED_H
#define RECORDER_SOURCES_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

enum { FEED_CLIENTS_MAX = 16 };
#define FEED_RING_NAME "driverec.feed"
#define FEED_RING_BYTES ((uint64_t)64 << 20)

struct feed;

/* `why` gets a clause for the message where it fails. */
int feed_new(uv_loop_t *loop, const char *what, const char *run_dir, struct feed **ret_feed, char *why,
	     size_t why_room);
/* The loop must run once more before it is closed. */
void feed_free(struct feed *feed);

/* Reads a piece of a file; sockets and pipes are read as their bytes come. 1: there is more at once. */
int feed_tick(struct feed *feed);

/* The path of its ring. */
const char *feed_ring_path(const struct feed *feed);
/* Everything was read. Never for a FIFO or a socket. */
bool feed_ended(const struct feed *feed);
/* Of the document that ended last: 0, -EBADMSG for no trace, -errno where it could not be read. */
int feed_result(const struct feed *feed);
/* Events up to this time (Unix ns) are in the ring, INT64_MIN while there was none. */
int64_t feed_watermark_ns(const struct feed *feed);

struct feed_counters {
	uint64_t events, bytes, lost, damaged;
	char problem[200]; /* of the first damage, "" = none */
};
void feed_counters(const struct feed *feed, struct feed_counters *ret_counters);

#endif
