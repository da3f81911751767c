/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The next start after a daemon was killed. What it left is in three places: pins in the rings, records in
 * pending/, folders in incidents/. From them every incident is taken up where it can be: a pin without a
 * record becomes one; a record without a folder is waited for and written; a folder with a record is told of
 * again.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "lifecycle.h"
#include "manifest.h"

static int adopt_record(void *context, int dirfd, const char *name)
{
	struct incidents *incidents = context;
	struct incident *incident = NULL;
	size_t length = strlen(name);
	int r;

	(void)dirfd;
	if (length != INCIDENTS_ID_TEXT - 1 + strlen(".json") ||
	    strcmp(name + INCIDENTS_ID_TEXT - 1, ".json") != 0)
		return 0;
	r = incident_record_read(incidents->store, name, &incident);
	if (r < 0) {
		incidents_log(incidents, "incident_record", "The record %s could not be read: %s", name,
			      strerror(-r));
		return 0;
	}
	incident->restarted = memcmp(incident->boot_id, incidents->boot_id, sizeof(incident->boot_id)) != 0;
	incidents_add(incidents, incident);
	return 0;
}

static struct incident *find_by_id(struct incidents *incidents, const uint8_t id[INCIDENTS_ID_BYTES])
{
	for (struct incident *incident = incidents->list; incident; incident = incident->next) {
		if (!memcmp(incident->id, id, INCIDENTS_ID_BYTES))
			return incident;
	}
	return NULL;
}

static bool is_published(const struct incidents_entry *entries, size_t count, const char *id)
{
	for (size_t i = 0; i < count; i++) {
		if (!strcmp(entries[i].id, id))
			return true;
	}
	return false;
}

/* The daemon was killed between the pins and the record: the pin says enough to go on. */
static struct incident *from_pin(struct incidents *incidents, const struct drec_pin *pin)
{
	struct incident *incident = incident_new();
	struct triggers_firing *firing;

	if (!incident)
		return NULL;
	firing = &incident->firing[incident->n_firings++];
	snprintf(firing->trigger, sizeof(firing->trigger), "%.*s", (int)sizeof(pin->trigger) - 1,
		 pin->trigger);
	snprintf(firing->evidence, sizeof(firing->evidence), "taken up from its pins after a restart");
	firing->severity = TRIGGERS_WARN;
	firing->series_id = TRIGGERS_SERIES_NONE;
	firing->source = firing->rank = UINT32_MAX;
	firing->t0_ns = firing->until_ns = firing->detected_ns = pin->t0_ns;
	firing->step = firing->sample = -1;
	memcpy(incident->id, pin->incident, sizeof(incident->id));
	incidents_id_text(incident->id_text, incident->id);
	incidents_folder_name(incident->folder, pin->t0_ns, firing->trigger, incident->id);
	memcpy(incident->boot_id, incidents->boot_id, sizeof(incident->boot_id));
	memcpy(incident->host, incidents->host_name, sizeof(incident->host));
	incident->mono_to_unix_ns = incidents->host.mono_to_unix_ns(incidents->host.context);
	incident->window[incident->n_windows].a_ns = pin->a_ns;
	incident->window[incident->n_windows++].b_ns = pin->b_ns;
	incident->bytes_max = incidents->sizing.bytes_max;
	incidents_add(incidents, incident);
	return incident;
}

/* A second window of the same incident may be known from another pin only. */
static void widen(struct incident *incident, const struct drec_pin *pin)
{
	struct incident_window window = {pin->a_ns, pin->b_ns};

	for (unsigned i = 0; i < incident->n_windows; i++) {
		if (incident->window[i].a_ns == pin->a_ns)
			return;
	}
	if (incident->n_windows == INCIDENT_WINDOWS_MAX)
		return;
	if (window.a_ns < incident->window[0].a_ns) {
		incident->window[incident->n_windows++] = incident->window[0];
		incident->window[0] = window;
	} else {
		incident->window[incident->n_windows++] = window;
	}
}

static void adopt_pins(struct incidents *incidents, const struct incidents_ring *ring,
		       const struct incidents_entry *entries, size_t count)
{
	struct drec_pin pins[DREC_PINS_MAX];

	if (drec_pins_read(ring->reader, pins) < 0)
		return;
	for (unsigned i = 0; i < DREC_PINS_MAX; i++) {
		char id[INCIDENTS_ID_TEXT];
		struct incident *incident;

		if (!pins[i].active ||
		    memcmp(pins[i].store, incidents_store_id(incidents->store), INCIDENTS_ID_BYTES) != 0)
			continue;
		pins[i].trigger[sizeof(pins[i].trigger) - 1] = 0;
		incidents_id_text(id, pins[i].incident);
		incident = find_by_id(incidents, pins[i].incident);
		if (!strcmp(pins[i].trigger, SUSPICION_TRIGGER) ||
		    (!incident && is_published(entries, count, id))) {
			drec_pin_release(ring->reader, i);
			continue;
		}
		if (!incident)
			incident = from_pin(incidents, &pins[i]);
		if (incident && incident->n_rings == 0)
			widen(incident, &pins[i]);
	}
}

/* A daemon that ended without a next start pins its half for ever; after a day nobody will come for it. */
void incidents_release_left(struct incidents *incidents)
{
	const struct incidents_host *host = &incidents->host;
	int64_t now_ns = host->mono_ns(host->context) + host->mono_to_unix_ns(host->context);

	incidents->left_looked_mono_ns = host->mono_ns(host->context);
	for (size_t r = 0; host->abandoned && r < incidents->n_rings; r++) {
		struct drec_reader *reader = incidents->rings[r].reader;
		struct drec_pin pins[DREC_PINS_MAX];

		if (!drec_reader_writable(reader) || drec_pins_read(reader, pins) < 0)
			continue;
		for (unsigned i = 0; i < DREC_PINS_MAX; i++) {
			if (!pins[i].active || pins[i].t0_ns > incident_add_ns(now_ns, -LEFT_ALONE_NS) ||
			    !memcmp(pins[i].store, incidents_store_id(incidents->store),
				    INCIDENTS_ID_BYTES) ||
			    !host->abandoned(host->context, pins[i].store, LEFT_ALONE_NS))
				continue;
			if (drec_pin_release(reader, i) == 0)
				incidents_log(incidents, "incident_left",
					      "A pin in %s was let go of: its daemon has been gone for a day",
					      incidents->rings[r].path);
		}
	}
}

static struct incident_ring *ring_of(struct incident *incident, const struct incidents_ring *ring)
{
	const uint8_t *id = drec_reader_header(ring->reader)->ring_id;
	struct incident_ring *more;

	for (unsigned i = 0; i < incident->n_rings; i++) {
		if (!memcmp(incident->rings[i].ring_id, id, sizeof(incident->rings[i].ring_id)))
			return &incident->rings[i];
	}
	if (incident->n_rings == INCIDENTS_RINGS_MAX)
		return NULL;
	more = realloc(incident->rings, (incident->n_rings + 1) * sizeof(*more));
	if (!more)
		return NULL;
	incident->rings = more;
	memset(&more[incident->n_rings], 0, sizeof(*more));
	more[incident->n_rings].fd = -1;
	return &more[incident->n_rings++];
}

static bool has_pin(struct drec_reader *reader, const uint8_t id[INCIDENTS_ID_BYTES])
{
	struct drec_pin pins[DREC_PINS_MAX];

	if (drec_pins_read(reader, pins) < 0)
		return false;
	for (unsigned i = 0; i < DREC_PINS_MAX; i++) {
		if (pins[i].active && !memcmp(pins[i].incident, id, INCIDENTS_ID_BYTES))
			return true;
	}
	return false;
}

/*
 * Takes up one ring of an incident. The order number that its window needs is that of the record; where there
 * is none, or the ring lost or never got its pin, it is worked out anew, which never claims too much.
 */
static void attach(struct incidents *incidents, struct incident *incident, const struct incidents_ring *now,
		   bool published)
{
	struct incident_ring *ring = ring_of(incident, now), fresh;
	bool pinned = has_pin(now->reader, incident->id), known;

	if (!ring)
		return;
	known = ring->pin[0].from > 0;
	if (!published && (!pinned || !known)) {
		if (pinned)
			incident_unpin(now->reader, incident->id);
		incident_pin(incident, &incidents->host, incidents_store_id(incidents->store), now, true,
			     &fresh);
		for (unsigned i = 0; i < incident->n_windows; i++) {
			if (!known)
				ring->pin[i] = fresh.pin[i];
		}
		ring->copied |= fresh.copied;
	}
	free(ring->path);
	ring->path = NULL;
	if (incident_hold(incident, now, ring) < 0)
		incident_note(incident, "ring %.60s could not be held", ring->name);
	if (incident->n_open < INCIDENT_OPEN_MAX && !known)
		incident_look(incident, (unsigned)(ring - incident->rings), now->reader,
			      incidents_now_ns(incidents, incident));
}

static void go_on(struct incidents *incidents, struct incident *incident, bool published)
{
	for (size_t i = 0; i < incidents->n_rings && !incident->restarted; i++)
		attach(incidents, incident, &incidents->rings[i], published);
	incident->adopted = true;
	incidents->counters.adopted++;
	incidents->counters.open++;
	incident_note(incident, "finished after a restart of the daemon");
	if (incident->restarted)
		incident_note(incident, "machine restarted");
	if (published) {
		/* It was to be told that it is over, which the record alone knows. */
		incident->progress_ns = incident->resolved_ns;
		incident->to_resolve = incident->resolved_ns != 0;
		incidents_job_write(incidents, incident); /* lets the rings go, and tells */
		return;
	}
	incident->state = INCIDENT_PINNED;
	incidents_job_record(incidents, incident);
}

/* What is needed of a published one to see it resolved. As every incident it has a window and a firing. */
static int read_published(struct incident *incident, const cJSON *manifest)
{
	const cJSON *json, *asked;

	cJSON_ArrayForEach(json, cJSON_GetObjectItemCaseSensitive(manifest, "windows"))
	{
		if (incident->n_windows == INCIDENT_WINDOWS_MAX)
			return -EBADMSG;
		asked = cJSON_GetObjectItemCaseSensitive(json, "asked");
		incident->window[incident->n_windows].a_ns = json_ns(asked, "a_ns", 0);
		incident->window[incident->n_windows++].b_ns = json_ns(asked, "b_ns", 0);
	}
	cJSON_ArrayForEach(json, cJSON_GetObjectItemCaseSensitive(manifest, "firings"))
	{
		if (incident->n_firings == INCIDENT_FIRINGS_MAX)
			break;
		json_read_firing(json, &incident->firing[incident->n_firings++]);
	}
	return incident->n_windows && incident->n_firings ? 0 : -EBADMSG;
}

/* Unresolved ones that are published: progress may still come. */
static void watch_ongoing(struct incidents *incidents, const struct incidents_entry *entries, size_t count)
{
	unsigned watched = 0;

	for (size_t i = count; i > 0 && watched < ONGOING_MAX; i--) {
		const struct incidents_entry *entry = &entries[i - 1];
		struct incident *incident;
		cJSON *json = NULL;
		int r;

		if (!entry->readable || !entry->ongoing || entry->resolved_ns ||
		    incidents_find(incidents, entry->id) ||
		    incident_manifest_read(incidents->store, entry->folder, &json) < 0)
			continue;
		incident = incident_new();
		r = incident ? read_published(incident, json) : -ENOMEM;
		cJSON_Delete(json);
		if (r < 0 || incidents_id_parse(entry->id, incident->id) < 0) {
			incident_free(incident);
			continue;
		}
		snprintf(incident->id_text, sizeof(incident->id_text), "%s", entry->id);
		snprintf(incident->folder, sizeof(incident->folder), "%s", entry->folder);
		incident->mono_to_unix_ns = incidents->host.mono_to_unix_ns(incidents->host.context);
		memcpy(incident->boot_id, incidents->boot_id, sizeof(incident->boot_id));
		incident->window[0].a_ns = incident->window[0].b_ns = entry->t0_ns;
		incident->n_windows = 1;
		incident->state = INCIDENT_HOOKED;
		incidents_add(incidents, incident);
		watched++;
	}
}

/* What is published and may be followed by the next one. */
static void remember_past(struct incidents *incidents, const struct incidents_entry *entries, size_t count)
{
	for (size_t i = count > PAST_MAX ? count - PAST_MAX : 0; i < count; i++) {
		struct incident *read = incident_new();
		char first[INCIDENTS_ID_TEXT];
		cJSON *json = NULL;

		if (read && entries[i].readable &&
		    incident_manifest_read(incidents->store, entries[i].folder, &json) == 0 &&
		    read_published(read, json) == 0) {
			json_text(json, "continues", first, sizeof(first));
			incidents_remember(incidents, first[0] ? first : entries[i].id,
					   incident_begin_ns(read), incident_end_ns(read));
		}
		cJSON_Delete(json);
		incident_free(read);
	}
}

struct leftover {
	struct incidents *incidents;
};

/* Hidden folders that belong to no record. */
static int remove_leftover(void *context, int dirfd, const char *name)
{
	struct leftover *leftover = context;

	if (!strncmp(name, ".tmp-", 5)) {
		for (struct incident *incident = leftover->incidents->list; incident;
		     incident = incident->next) {
			if (!strcmp(incident->folder, name + 5))
				return 0;
		}
	} else if (strncmp(name, ".gone-", 6) != 0) {
		return 0;
	}
	files_remove(dirfd, name);
	return 0;
}

int incidents_adopt(struct incidents *incidents)
{
	struct leftover leftover = {incidents};
	struct incidents_entry *entries = NULL;
	struct incident *incident, *next;
	size_t count = 0;
	int r;

	r = incidents_store_list(incidents->store, &entries, &count);
	if (r < 0)
		return r;
	r = files_each(incidents_store_pending_fd(incidents->store), ".", adopt_record, incidents);
	if (r < 0)
		goto end;
	incidents_rings(incidents);
	for (size_t i = 0; i < incidents->n_rings; i++)
		adopt_pins(incidents, &incidents->rings[i], entries, count);
	incidents_release_left(incidents);
	files_each(incidents_store_folder_fd(incidents->store), ".", remove_leftover, &leftover);
	for (incident = incidents->list; incident; incident = next) {
		next = incident->next;
		go_on(incidents, incident, is_published(entries, count, incident->id_text));
	}
	watch_ongoing(incidents, entries, count);
	remember_past(incidents, entries, count);
	/* The triggers were told to join what the earlier daemon had open; it may be written since. */
	incidents_tell_settled(incidents);
end:
	free(entries);
	return r;
}
