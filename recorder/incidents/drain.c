/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copying what is pinned before the window is over, so that the pin can move on (see parts.h).
 *
 *     part.tmp written, sealed, fsynced -> renamed, folder fsynced -> pins moved up
 *
 * Killed before the rename the part is written again, for its chunks are still pinned; killed after it the
 * next start finds it and moves the pins.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "parts.h"
#include "point.h"

enum { ROUNDS_MAX = 8 };

struct drain {
	struct incident *incident;
	int folder_fd; /* pending/<id>/ */
	bool at_once;
};

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* A quarter is left for the copying to take its time. */
static bool is_due(uint64_t begin, uint64_t tail, uint32_t n_chunks)
{
	return tail > begin && tail - begin > n_chunks / 4;
}

bool incident_drain_due(const struct incident_ring *ring, struct drec_reader *reader)
{
	const struct drec_state *state;
	uint64_t begin = ring->drained.next;

	if (ring->dead || ring->fd < 0 || ring->drained.stopped || !ring->pin[0].from ||
	    drec_reader_changed(reader) < 0)
		return false;
	state = drec_reader_state(reader);
	if (!begin)
		begin = larger(ring->pin[0].from, state->evicted + 1);
	return is_due(begin, state->tail, drec_reader_header(reader)->n_chunks);
}

static void move_pins(const struct incident *incident, struct drec_reader *reader, uint64_t from)
{
	struct drec_pin pins[DREC_PINS_MAX];
	unsigned entry;

	if (drec_pins_read(reader, pins) < 0)
		return;
	for (unsigned i = 0; i < DREC_PINS_MAX; i++) {
		/* Where none can be moved the ring is drained all the same; the verdict sees what got lost.
		 */
		if (pins[i].active && pins[i].from < from &&
		    !memcmp(pins[i].incident, incident->id, INCIDENTS_ID_BYTES))
			drec_pin_move(reader, i, from, &entry);
	}
}

/* Where draining begins: at the lowest pin, which may lie above what the window needs. */
static uint64_t first_order(const struct incident *incident, const struct incident_ring *ring,
			    struct drec_reader *reader)
{
	uint64_t lowest = UINT64_MAX;
	struct drec_pin pins[DREC_PINS_MAX];
	int r = drec_pins_read(reader, pins);

	for (unsigned i = 0; r == 0 && i < DREC_PINS_MAX; i++) {
		if (pins[i].active && pins[i].from < lowest &&
		    !memcmp(pins[i].incident, incident->id, INCIDENTS_ID_BYTES))
			lowest = pins[i].from;
	}
	if (lowest == UINT64_MAX)
		lowest = drec_reader_state(reader)->evicted + 1;
	return larger(ring->pin[0].from, lowest);
}

/* What is drained and what every ring may still hold must fit into the incident. */
static bool fits(const struct incident *incident)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < incident->n_rings; i++) {
		struct stat st;

		bytes += incident->rings[i].drained.bytes;
		if (incident->rings[i].fd >= 0 && fstat(incident->rings[i].fd, &st) == 0)
			bytes += (uint64_t)st.st_size / 2;
	}
	return !incident->bytes_max || bytes <= incident->bytes_max;
}

/* 1 and where the next part ends; 0 = none is due. */
static int next_end(const struct drain *drain, const struct incident_ring *ring, struct drec_reader *reader,
		    uint64_t *ret_until)
{
	uint64_t begin, until, cut = incident_part_cut(drain->incident, ring);
	int r = drec_reader_changed(reader);

	if (r < 0)
		return r;
	begin = ring->drained.next ? ring->drained.next : first_order(drain->incident, ring, reader);
	if (!drain->at_once &&
	    !is_due(begin, drec_reader_state(reader)->tail, drec_reader_header(reader)->n_chunks))
		return 0;
	r = drec_pin_until(reader, begin, &until);
	if (r < 0)
		return r;
	if (cut > begin && until > cut)
		until = cut;
	*ret_until = until;
	return until > begin;
}

static int copy_part(struct drain *drain, struct incident_ring *ring, struct drec_reader *reader,
		     uint64_t until)
{
	struct incident_part part = incident_part_after(drain->incident, ring, until);
	struct incident_raw raw = {0};
	char name[INCIDENT_TEXT_MAX], tmp[INCIDENT_TEXT_MAX + 8];
	int fd, r;

	incident_part_name(ring, ring->drained.n_parts, name);
	snprintf(tmp, sizeof(tmp), "%s.tmp", name);
	fd = openat(drain->folder_fd, tmp, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	r = fd < 0 ? -errno : incident_part_write(drain->incident, reader, fd, &part, &raw);
	if (fd >= 0)
		close(fd);
	INCIDENT_POINT(drain_copied);
	if (r == 0 && renameat(drain->folder_fd, tmp, drain->folder_fd, name) < 0)
		r = -errno;
	if (r == 0)
		r = files_sync_folder(drain->folder_fd);
	if (r < 0) {
		unlinkat(drain->folder_fd, tmp, 0);
		return r;
	}
	INCIDENT_POINT(drain_synced);
	ring->drained.next = until;
	ring->drained.n_parts++;
	ring->drained.bytes += raw.bytes;
	move_pins(drain->incident, reader, until);
	INCIDENT_POINT(drain_moved);
	return 0;
}

static int drain_ring(struct drain *drain, struct incident_ring *ring)
{
	struct drec_reader *reader = NULL;
	uint64_t until;
	int r = incident_open_ring(ring, &reader);

	if (r < 0)
		return r;
	if (drain->incident->n_anchors)
		drec_reader_set_anchors(reader, drain->incident->anchors, drain->incident->n_anchors,
					drain->incident->mono_to_unix_ns);
	for (int i = 0; r == 0 && i < ROUNDS_MAX; i++) {
		r = next_end(drain, ring, reader, &until);
		if (r <= 0)
			break;
		if (ring->drained.n_parts >= INCIDENT_PARTS_MAX || !fits(drain->incident))
			r = -EFBIG;
		else
			r = copy_part(drain, ring, reader, until);
	}
	drec_reader_free(reader);
	return r;
}

/* Half a window is better than none: whatever is wrong with one ring, its onset stays pinned. */
static void stop_draining(struct incident *incident, struct incident_ring *ring, int r)
{
	ring->drained.stopped = true;
	incident_note(incident, "ring %.60s: no more than its onset is kept: %s", ring->name,
		      r == -EFBIG ? "the incident is as large as it may be" : strerror(-r));
}

int incident_drain(struct incident *incident, struct incidents_store *store, bool at_once)
{
	struct drain drain = {.incident = incident, .folder_fd = -1, .at_once = at_once};
	int r = files_folder(incidents_store_pending_fd(store), incident->id_text, &drain.folder_fd);

	for (unsigned i = 0; r == 0 && i < incident->n_rings; i++) {
		struct incident_ring *ring = &incident->rings[i];
		int one;

		if (ring->fd < 0 || !ring->pin[0].from || ring->drained.stopped || (at_once && !ring->copied))
			continue;
		one = drain_ring(&drain, ring);
		if (one < 0)
			stop_draining(incident, ring, one);
	}
	if (at_once)
		INCIDENT_POINT(early_copied);
	if (drain.folder_fd >= 0)
		close(drain.folder_fd);
	return r;
}

/* --- after a restart --- */

/* Whether the next part of the chain is there, whole. */
static bool recover_part(struct incident_ring *ring, int folder_fd)
{
	const struct drec_window *window;
	const struct drec_header *header;
	struct drec_reader *reader = NULL;
	struct drec_problem problem;
	char name[INCIDENT_TEXT_MAX];
	bool is;

	incident_part_name(ring, ring->drained.n_parts, name);
	if (faccessat(folder_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 ||
	    drec_window_verify(folder_fd, name, &problem) < 0 ||
	    drec_reader_open(folder_fd, name, NULL, &reader, &problem) < 0)
		return false;
	window = drec_reader_window(reader);
	header = drec_reader_header(reader);
	is = window && window->until > ring->drained.next && window->from >= ring->drained.next &&
	     !memcmp(header->ring_id, ring->ring_id, sizeof(ring->ring_id));
	if (is) {
		ring->drained.next = window->until;
		ring->drained.n_parts++;
		ring->drained.bytes += (uint64_t)header->n_chunks * header->chunk_bytes;
	}
	drec_reader_free(reader);
	return is;
}

void incident_drain_recover(struct incident *incident, struct incidents_store *store)
{
	int fd = openat(incidents_store_pending_fd(store), incident->id_text,
			O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	for (unsigned i = 0; fd >= 0 && i < incident->n_rings; i++) {
		struct incident_ring *ring = &incident->rings[i];
		struct drec_reader *reader = NULL;

		if (!ring->name[0])
			continue;
		while (ring->drained.n_parts < INCIDENT_PARTS_MAX && recover_part(ring, fd)) {
		}
		if (ring->drained.n_parts && incident_open_ring(ring, &reader) == 0)
			move_pins(incident, reader, ring->drained.next);
		drec_reader_free(reader);
	}
	if (fd >= 0)
		close(fd);
}
