/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which events of a ring have been exported: windows of one ring may overlap (what was copied at once and what
 * came later, or around t0 and from detection on), and an event that is in both is exported once.
 *
 * An event is known by its ring, its thread's life and its number in it: 64 bits of them are kept, 8 to 16
 * bytes an event.
 */
#ifndef RECORDER_EXPORT_SEEN_H
#define RECORDER_EXPORT_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <driverec/reader.h>

/* Start zeroed. */
struct export_seen {
	uint64_t ring; /* whose events come now */
	uint64_t *key; /* open addressing; 0 = free */
	size_t count, room;
};

void export_seen_ring(struct export_seen *seen, const struct drec_header *header);
/* Whether it was there before; notes it. Out of memory it is taken as new: rather twice than not at all. */
bool export_seen_before(struct export_seen *seen, const struct drec_place *place);
void export_seen_free(struct export_seen *seen);

#endif
