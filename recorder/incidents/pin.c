/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeping a ring's window from being overwritten. Between a decision and the last ring's pin nothing may
 * wait: no file is made, no memory taken that grows with the ring. Descriptors are duplicated afterwards.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "incident.h"
#include "plain_text.h"

/* Sound by itself: whatever was overwritten is below it, or it is not above STATE.evicted. 0 = not known. */
static uint64_t order_from(const struct incidents_host *host, const struct incidents_ring *ring,
			   const struct incident *incident, int64_t a_ns)
{
	int64_t mono = incident_add_ns(a_ns, -incident->mono_to_unix_ns);
	uint64_t from = 0;

	/* A window that begins before the ring did needs all of it; the first orders are those of empty
	 * chunks. */
	if (mono <= drec_reader_header(ring->reader)->created_mono_ns)
		return (uint64_t)drec_reader_header(ring->reader)->n_chunks + 1;
	if (host->from)
		from = host->from(host->context, ring, a_ns);
	if (!from)
		drec_pin_from(ring->reader, drec_reader_ticks(ring->reader, mono), &from);
	return from;
}

/*
 * Where a pin does most good: what is overwritten already needs none of its extent. What another pin has kept
 * of it, a suspicion's above all, is still there though later chunks are not.
 */
static uint64_t still_there(struct drec_reader *reader, uint64_t from)
{
	uint64_t lowest;

	if (drec_reader_changed(reader) < 0 || drec_reader_state(reader)->evicted < from ||
	    drec_pin_lowest(reader, from, &lowest) < 0)
		return from;
	return lowest;
}

static void pin_window(struct incident *incident, const struct incidents_host *host, const uint8_t *store_id,
		       const struct incidents_ring *ring, bool taking_over, unsigned which,
		       struct incident_ring *kept)
{
	const struct incident_window *window = &incident->window[which];
	struct drec_pin pin = {
		.t0_ns = incident_first(incident)->t0_ns, .a_ns = window->a_ns, .b_ns = window->b_ns};
	struct incident_pin *mine = &kept->pin[which];
	int r;

	memcpy(pin.incident, incident->id, sizeof(pin.incident));
	memcpy(pin.store, store_id, sizeof(pin.store));
	snprintf(pin.trigger, sizeof(pin.trigger), "%.*s", (int)sizeof(pin.trigger) - 1,
		 incident_first(incident)->trigger);
	mine->from = order_from(host, ring, incident, window->a_ns);
	pin.from = still_there(ring->reader, mine->from);
	r = drec_pin_set(ring->reader, &pin, taking_over, &mine->entry);
	mine->set = r >= 0;
	if (r >= 0)
		return;
	kept->copied = true;
	snprintf(kept->why_copied, sizeof(kept->why_copied), "%s",
		 r == -EROFS    ? "no write permission"
		 : r == -EDQUOT ? "other incidents hold half the ring"
		 : r == -EBUSY  ? "all pins of the ring are taken"
				: strerror(-r));
}

void incident_pin(struct incident *incident, const struct incidents_host *host, const uint8_t *store_id,
		  const struct incidents_ring *ring, bool taking_over, struct incident_ring *ret_ring)
{
	memset(ret_ring, 0, sizeof(*ret_ring));
	ret_ring->fd = -1;
	ret_ring->source = ring->source;
	for (unsigned i = 0; i < incident->n_windows; i++)
		pin_window(incident, host, store_id, ring, taking_over || i > 0, i, ret_ring);
}

int incident_hold(struct incident *incident, const struct incidents_ring *ring, struct incident_ring *kept)
{
	const struct drec_header *header = drec_reader_header(ring->reader);
	const char *slash = strrchr(ring->path, '/'), *base = slash ? slash + 1 : ring->path;
	size_t length = strlen(base);

	if (length > 5 && !strcmp(base + length - 5, ".ring"))
		length -= 5;
	plain_text(kept->name, sizeof(kept->name), base, length < 100 ? length : 100);
	memcpy(kept->ring_id, header->ring_id, sizeof(kept->ring_id));
	snprintf(kept->job, sizeof(kept->job), "%.*s", DREC_TEXT_MAX - 1, header->job);
	snprintf(kept->host, sizeof(kept->host), "%.*s", DREC_TEXT_MAX - 1, header->host);
	kept->source = ring->source;
	kept->rank = ring->rank;
	kept->clock = header->clock;
	kept->pid = header->pid;
	kept->dead = ring->dead;
	kept->born_ns = ring->fed ? 0 : incident_add_ns(header->created_mono_ns, incident->mono_to_unix_ns);
	kept->path = strdup(ring->path);
	kept->fd = fcntl(drec_reader_fd(ring->reader), F_DUPFD_CLOEXEC, 0);
	return kept->fd < 0 ? -errno : kept->path ? 0 : -ENOMEM;
}

static void copy_text(struct drec_reader *reader, uint32_t id, char *ret_text, size_t room)
{
	const char *text = NULL;
	uint32_t bytes = 0;
	unsigned kind;

	ret_text[0] = 0;
	if (id == 0)
		return;
	if (drec_reader_text(reader, id, &kind, &text, &bytes) < 0) {
		snprintf(ret_text, room, "name %u", id);
		return;
	}
	plain_text(ret_text, room, text, bytes);
}

void incident_look(struct incident *incident, unsigned ring, struct drec_reader *reader, int64_t now_ns)
{
	struct drec_open_info info[INCIDENT_OPEN_MAX];
	int n = drec_reader_open_spans(reader, info, INCIDENT_OPEN_MAX);

	if (!incident->open)
		incident->open = calloc(INCIDENT_OPEN_MAX, sizeof(*incident->open));
	if (!incident->open)
		return;
	for (int i = 0; i < n && i < INCIDENT_OPEN_MAX && incident->n_open < INCIDENT_OPEN_MAX; i++) {
		struct incident_open *open = &incident->open[incident->n_open++];
		struct drec_track_info track;

		memset(open, 0, sizeof(*open));
		open->ring = ring;
		open->tid = info[i].tid;
		open->depth = info[i].depth;
		open->mark = info[i].mark;
		open->moving = info[i].moving != 0;
		open->step = info[i].mark == DREC_MARK_STEP_BEGIN ? (int64_t)info[i].step : -1;
		open->start_ns = incident_add_ns(drec_reader_mono_ns(reader, info[i].start),
						 incident->mono_to_unix_ns);
		open->seen_ns = now_ns;
		copy_text(reader, info[i].name, open->name, sizeof(open->name));
		if (drec_reader_track(reader, info[i].thread_track, &track) == 0)
			plain_text(open->thread, sizeof(open->thread), track.name, track.name_bytes);
	}
}

int incident_open_ring(const struct incident_ring *ring, struct drec_reader **ret_reader)
{
	const struct drec_reader_options options = {.rings_only = 1, .writable = 1};
	struct drec_problem problem;
	char path[32];

	if (ring->fd < 0)
		return -ENOENT;
	/* Works for a ring that was unlinked meanwhile, and gives the worker a descriptor of its own. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ring->fd);
	return drec_reader_open(AT_FDCWD, path, &options, ret_reader, &problem);
}

void incident_unpin(struct drec_reader *reader, const uint8_t id[INCIDENTS_ID_BYTES])
{
	struct drec_pin pins[DREC_PINS_MAX];

	if (drec_pins_read(reader, pins) < 0)
		return;
	for (unsigned i = 0; i < DREC_PINS_MAX; i++) {
		if (pins[i].active && !memcmp(pins[i].incident, id, INCIDENTS_ID_BYTES))
			drec_pin_release(reader, i);
	}
}

void incident_release(struct incident *incident)
{
	for (unsigned i = 0; i < incident->n_rings; i++) {
		struct drec_reader *reader = NULL;

		if (incident_open_ring(&incident->rings[i], &reader) < 0)
			continue;
		incident_unpin(reader, incident->id);
		drec_reader_free(reader);
	}
}
