/* SPDX-License-Identifier: Apache-2.0 */
/*
 * incidents/parts.h: one ring's window as a chain of files.
 *
 * A pin keeps half a ring. A longer window is drained: what is pinned is copied oldest first into a part, and
 * the pin moves on once the part is on disk. A ring that could not be pinned is drained from the firing on.
 * Part k holds the chunks closed with orders in [from_k, from_k+1), the last one the rest and the open ones,
 * so every event is in one file: <ring>.drec, <ring>.part0002.drec, … Parts wait in pending/<id>/ and tell by
 * themselves where the next one begins, so a later daemon goes on after the last that is whole.
 *
 * Where an incident has two windows the chain is cut at the second one's first order number.
 */
#ifndef RECORDER_INCIDENTS_PARTS_H
#define RECORDER_INCIDENTS_PARTS_H

#include "incident.h"

enum { INCIDENT_PARTS_MAX = 256 };

struct incident_part {
	int64_t a_ns, b_ns;
	uint64_t from, since, until; /* as in struct drec_snapshot_request */
	uint64_t bytes_max;
};

void incident_part_name(const struct incident_ring *ring, unsigned index, char ret_name[INCIDENT_TEXT_MAX]);
/* The part that follows what was drained; `until` 0 = the last one. */
struct incident_part incident_part_after(const struct incident *incident, const struct incident_ring *ring,
					 uint64_t until);
/* Where the chain is cut for a second window, 0 = nowhere. */
uint64_t incident_part_cut(const struct incident *incident, const struct incident_ring *ring);
/* Writes one and seals it; fsynced. */
int incident_part_write(const struct incident *incident, struct drec_reader *reader, int fd,
			const struct incident_part *part, struct incident_raw *raw);
/* A further entry of ring->raw, cleared; NULL = no memory. Counted by ring->n_raw already. */
struct incident_raw *incident_raw_add(struct incident_ring *ring);

/* Whether so much of the ring is pinned that it should be drained. Loop thread. */
bool incident_drain_due(const struct incident_ring *ring, struct drec_reader *reader);
/* Drains rings into pending/<id>/; with `at_once` those without a pin, all that is closed. Worker. */
int incident_drain(struct incident *incident, struct incidents_store *store, bool at_once);
/* Finds what an earlier daemon drained. Worker. */
void incident_drain_recover(struct incident *incident, struct incidents_store *store);

#endif
