/* SPDX-License-Identifier: Apache-2.0 */
#include "parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "point.h"

void incident_part_name(const struct incident_ring *ring, unsigned index, char ret_name[INCIDENT_TEXT_MAX])
{
	if (index == 0)
		snprintf(ret_name, INCIDENT_TEXT_MAX, "%.100s.drec", ring->name);
	else
		snprintf(ret_name, INCIDENT_TEXT_MAX, "%.100s.part%04u.drec", ring->name, index + 1);
}

uint64_t incident_part_cut(const struct incident *incident, const struct incident_ring *ring)
{
	bool cut = incident->n_windows > 1 && ring->pin[0].from && ring->pin[1].from > ring->pin[0].from;

	return cut ? ring->pin[1].from : 0;
}

struct incident_part incident_part_after(const struct incident *incident, const struct incident_ring *ring,
					 uint64_t until)
{
	uint64_t since = ring->drained.next, cut = incident_part_cut(incident, ring);
	bool second = cut && since >= cut;
	struct incident_part part = {
		.from = since ? since : ring->pin[0].from, .since = since, .until = until};

	part.a_ns = incident->window[second].a_ns;
	/* A chain that could not be cut ends in one part for both windows. */
	part.b_ns = until ? incident->window[second].b_ns : incident_end_ns(incident);
	/* What was not yet there cannot be missing: a ring's window begins with the ring. */
	if (part.a_ns < ring->born_ns)
		part.a_ns = ring->born_ns;
	if (part.b_ns < part.a_ns)
		part.b_ns = part.a_ns;
	return part;
}

int incident_part_write(const struct incident *incident, struct drec_reader *reader, int fd,
			const struct incident_part *part, struct incident_raw *raw)
{
	struct drec_snapshot_request request = {
		.t0_ns = incident_first(incident)->t0_ns,
		.a_ns = part->a_ns,
		.b_ns = part->b_ns,
		.mono_to_unix_ns = incident->mono_to_unix_ns,
		.from = part->from,
		.since = part->since,
		.until = part->until,
		.bytes_max = part->bytes_max,
		.host_anchors = incident->anchors,
		.n_host_anchors = incident->n_anchors,
		.no_crc = 1,
	};
	struct drec_snapshot_result result = {0};
	int r = drec_snapshot_write(reader, fd, &request, &result);

	if (r < 0)
		return r;
	INCIDENT_POINT(raw_written);
	raw->window = result.window;
	raw->bytes = result.data_bytes;
	if (fsync(fd) < 0)
		return -errno;
	INCIDENT_POINT(raw_synced);
	r = drec_window_seal(fd);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	return r;
}

struct incident_raw *incident_raw_add(struct incident_ring *ring)
{
	struct incident_raw *raw;

	if (ring->n_raw == ring->raw_room) {
		unsigned room = ring->raw_room ? 2 * ring->raw_room : 4;

		raw = realloc(ring->raw, room * sizeof(*raw));
		if (!raw)
			return NULL;
		ring->raw = raw;
		ring->raw_room = room;
	}
	raw = &ring->raw[ring->n_raw++];
	memset(raw, 0, sizeof(*raw));
	return raw;
}
