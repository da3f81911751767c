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

#include "incident.h"

static uint64_t order_from(const struct incidents_host *host, const struct incidents_ring *ring,
			   const struct incident *incident, int64_t a_ns, bool *ret_sampled)
{
	int64_t mono = incident_add_ns(a_ns, -incident->mono_to_unix_ns);
	const struct drec_header *header = drec_reader_header(ring->reader);
	uint64_t from = 0;

	*ret_sampled = true;
	/* A window that begins before the ring did needs all of it: order numbers start at 1. */
	if (mono <= header->created_mono_ns)
		from = 1;
	else if (host->from)
		from = host->from(host->context, ring, a_ns);
	if (from)
		return from;
	*ret_sampled = false;
	if (drec_pin_from(ring->reader, drec_reader_ticks(ring->reader, mono), &from) < 0)
		return 0;
	return from;
}

/* Where a pin does most good: what is overwritten already needs none of its extent. */
static uint64_t still_there(struct drec_reader *reader, uint64_t from)
{
	const struct drec_state *state;

	if (drec_reader_changed(reader) < 0)
		return from;
	state = drec_reader_state(reader);
	return state->evicted >= from ? state->evicted + 1 : from;
}

static void pin_window(struct incident *incident, const struct incidents_host *host, const uint8_t *store_id,
		       const struct incidents_ring *ring, bool taking_over, unsigned which,
		       struct incident_ring *kept)
{
	const struct incident_window *window = &incident->window[which];
	struct drec_pin pin = { .t0_ns = incident_first(incident)->t0_ns, .a_ns = window->a_ns,
				.b_ns = window->b_ns };
	struct incident_pin *mine = &kept->pin[which];
	int r;

	memcpy(pin.incident, incident->id, sizeof(pin.incident));
	memcpy(pin.store, store_id, sizeof(pin.store));
	snprintf(pin.trigger, sizeof(pin.trigger), "%.*s", (int)sizeof(pin.trigger) - 1,
		 incident_first(incident)->trigger);
	mine->from = order_from(host, ring, incident, window->a_ns, &mine->sampled);
	pin.from = still_there(ring->reader, mine->from);
	r = drec_pin_set(ring->reader, &pin, taking_over, &mine->entry);
	mine->set = r == 0;
	if (r == 0)
		return;
	kept->copied = true;
	snprintf(kept->why_copied, sizeof(kept->why_copied), "%s",
		 r == -EROFS ? "no write permission" :
		 r == -EDQUOT ? "other incidents hold half the ring" :
		 r == -EBUSY ? "all pins of the ring are taken" : strerror(-r));
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

static void copy_text(struct drec_reader *reader, uint32_t id, char *ret_text, size_t room)
{
	const char *text = NULL;
	uint32_t bytes = 0;
	unsigned kind;

	if (id == 0 || drec_reader_text(reader, id, &kind, &text, &bytes) < 0) {
		snprintf(ret_text, room, id ? "name %u" : "", id);
		return;
	}
	snprintf(ret_text, room, "%.*s", (int)(bytes < room ? bytes : room - 1), text);
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
			snprintf(open->thread, sizeof(open->thread), "%.*s",
				 (int)(track.name_bytes < 100 ? track.name_bytes : 100), track.name);
	}
}
