/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads raw files back, event by event: which class each is of, how many of it lie in the windows, what was
 * lost.
 */
#include "coverage.h"

#include <errno.h>
#include <string.h>

struct walk {
	struct incident *incident;
	unsigned ring; /* index */
	struct incident_raw *raw;
	struct drec_reader *reader;
	struct coverage_found *found;
};

static bool text_begins(const char *text, uint32_t bytes, const char *with)
{
	size_t length = strlen(with);

	return bytes >= length && !memcmp(text, with, length);
}

/* Tracks of device counters are named "device:<n>:…" in either part; sources write names as JSON strings. */
static bool about_device(const struct drec_track_info *track)
{
	return text_begins(track->group, track->group_bytes, "device") ||
	       text_begins(track->group, track->group_bytes, "\"device") ||
	       text_begins(track->name, track->name_bytes, "device") ||
	       text_begins(track->name, track->name_bytes, "\"device");
}

/* Kineto's and XPlane's categories of work that ran on a device. */
static bool device_category(struct walk *walk, uint16_t category)
{
	static const char *const names[] = {"kernel", "gpu_memcpy", "gpu_memset", "device_op"};
	const char *text;
	uint32_t bytes;
	unsigned kind;

	if (category == 0 || drec_reader_text(walk->reader, category, &kind, &text, &bytes) < 0)
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (bytes == strlen(names[i]) && !memcmp(text, names[i], bytes))
			return true;
	}
	return false;
}

/* INCIDENT_CLASSES for what is in none. */
static enum incident_class class_of(struct walk *walk, const struct drec_event *event)
{
	struct drec_track_info track = {0};
	bool known = drec_reader_track(walk->reader, event->track, &track) == 0;

	switch (event->kind) {
	case DREC_MARK:
		return INCIDENT_MARKS;
	case DREC_COUNTER:
		return known && about_device(&track) ? INCIDENT_DEVICE_COUNTERS : INCIDENT_HOST_COUNTERS;
	case DREC_SPAN:
	case DREC_INSTANT:
	case DREC_BEGIN:
	case DREC_END:
	case DREC_ASYNC_BEGIN:
	case DREC_ASYNC_INSTANT:
	case DREC_ASYNC_END:
		if (device_category(walk, event->category))
			return INCIDENT_DEVICE_EVENTS;
		return known && track.kind == DREC_TRACK_STREAM ? INCIDENT_DEVICE_LAUNCHES
								: INCIDENT_HOST_SPANS;
	default:
		return INCIDENT_CLASSES;
	}
}

static bool in_windows(const struct incident *incident, int64_t start_ns, int64_t end_ns)
{
	for (unsigned i = 0; i < incident->n_windows; i++) {
		if (start_ns <= incident->window[i].b_ns && end_ns >= incident->window[i].a_ns)
			return true;
	}
	return false;
}

static int note_loss(struct walk *walk, const struct drec_event *event)
{
	struct incident *incident = walk->incident;
	int64_t offset = incident->mono_to_unix_ns;
	struct incident_loss loss = {
		.ring = walk->ring, .reason = event->category, .count = event->dur_or_value};

	loss.first_ns = incident_add_ns(drec_reader_mono_ns(walk->reader, event->start), offset);
	loss.last_ns = incident_add_ns(drec_reader_mono_ns(walk->reader, event->id), offset);
	if (!in_windows(incident, loss.first_ns, loss.last_ns))
		return 0;
	for (unsigned i = 0; i < incident->n_losses; i++) {
		const struct incident_loss *known = &incident->loss[i];

		if (known->ring == loss.ring && known->first_ns == loss.first_ns &&
		    known->last_ns == loss.last_ns && known->reason == loss.reason)
			return 0; /* both windows' files hold it */
	}
	if (incident->n_losses == INCIDENT_LOSSES_MAX)
		incident->more_losses++;
	else
		incident->loss[incident->n_losses++] = loss;
	return 0;
}

static int walk_event(void *context, const struct drec_event *event, const struct drec_place *place)
{
	struct walk *walk = context;
	enum incident_class class;
	int64_t start_ns, end_ns;
	int r;

	(void)place;
	if (event->kind == DREC_LOSS)
		return note_loss(walk, event);
	class = class_of(walk, event);
	if (class < INCIDENT_CLASSES)
		walk->found->seen[class] = true;
	r = drec_reader_event_time(walk->reader, event, &start_ns, &end_ns);
	/* A part may hold events of the other window, too. */
	if (r == 0 && !in_windows(walk->incident, start_ns, end_ns))
		return 0;
	walk->raw->events++;
	if (class == INCIDENT_CLASSES)
		return 0;
	walk->found->events[class]++;
	if (class == INCIDENT_DEVICE_EVENTS && r == 0) {
		if (!walk->found->device_first_ns || start_ns < walk->found->device_first_ns)
			walk->found->device_first_ns = start_ns;
		if (end_ns > walk->found->device_last_ns)
			walk->found->device_last_ns = end_ns;
	}
	return 0;
}

int coverage_walk(struct incident *incident, unsigned ring, struct incident_raw *raw, int raw_fd,
		  struct coverage_found *found)
{
	struct walk walk = {.incident = incident, .ring = ring, .raw = raw, .found = found};
	struct drec_poll_stats stats = {0};
	struct drec_open_info info[INCIDENT_OPEN_MAX];
	struct drec_problem problem;
	int r;

	r = drec_reader_open(raw_fd, raw->file, NULL, &walk.reader, &problem);
	if (r < 0)
		return r;
	if (!drec_reader_window(walk.reader)) {
		drec_reader_free(walk.reader);
		return -EBADMSG;
	}
	/* The verdict is the one that was sealed into the file, not the one that was meant. */
	raw->window = *drec_reader_window(walk.reader);
	r = drec_reader_poll(walk.reader, walk_event, &walk, 0, &stats);
	if (r > 0)
		r = -EOVERFLOW;
	if (r == 0 && stats.corrupt_bytes && raw->window.complete) {
		raw->window.complete = 0;
		raw->window.reason = DREC_INCOMPLETE_CORRUPT;
	}
	for (int i = 0, n = r == 0 ? drec_reader_open_spans(walk.reader, info, INCIDENT_OPEN_MAX) : 0;
	     i < n && i < INCIDENT_OPEN_MAX; i++)
		found->seen[info[i].mark ? INCIDENT_MARKS : INCIDENT_HOST_SPANS] = true;
	drec_reader_free(walk.reader);
	return r;
}
