/* SPDX-License-Identifier: Apache-2.0 */
/* What snapshot.c (copying) and snapshot_verdict.c (what the copy is worth) share of one snapshot. */
#ifndef RINGBUF_SNAPSHOT_H
#define RINGBUF_SNAPSHOT_H

#include <driverec/freeze.h>

#include "reader.h"

struct snapshot {
	struct drec_reader *reader;
	const struct drec_snapshot_request *request;
	int out_fd;
	struct ring_clock clock; /* by which [a, b] became ticks */
	uint64_t a_ticks, b_ticks;

	/* Read in this order. Everything committed before the call is in `first`, or was overwritten by then. */
	struct drec_slot *slots;    /* with only what is surely open on their stacks */
	uint32_t n_slots;
	uint64_t *words;            /* ORDER */
	struct drec_chunk *first;   /* CHUNKS */
	struct ringread_item *seen; /* what `first` has, sorted */
	size_t n_seen;
	uint64_t evicted_first;     /* STATE.evicted after that */
	uint64_t tail_first;

	struct drec_chunk *table;   /* what was written, in the file's order */
	uint32_t n_written;
	uint64_t data_bytes;
	int truncated;              /* bytes_max was reached */
	int left_out;               /* a chunk was taken over while it was copied */
};

/* Whether a chunk of the first table must be in the window by what its header says. */
int snapshot_wants(const struct snapshot *snapshot, const struct drec_chunk *chunk, uint64_t word);

/* Fills in *window, from what was copied and what STATE and the slots say; the events are not looked at. */
int snapshot_verdict(struct snapshot *snapshot, struct drec_window *ret_window);

#endif
