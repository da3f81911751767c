/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an incident begins: pins before all else, for the rings are written on; then what the rings say, the
 * collectors, and last the record on disk, which is a worker's job.
 */
#include "lifecycle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "files.h"
#include "point.h"

void incidents_remember(struct incidents *incidents, const char *id, int64_t a_ns, int64_t b_ns)
{
	struct past *past = &incidents->past[incidents->n_past++ % PAST_MAX];

	snprintf(past->id, sizeof(past->id), "%s", id);
	past->a_ns = a_ns;
	past->b_ns = b_ns;
}

static const char *first_of(const struct incident *incident)
{
	return incident->continues[0] ? incident->continues : incident->id_text;
}

/* What fires when an incident no longer waits opens another one, which names the first if the windows meet. */
static void continue_from(struct incidents *incidents, struct incident *incident)
{
	int64_t a_ns = incident_begin_ns(incident), b_ns = incident_end_ns(incident);
	const char *first = NULL;

	for (const struct incident *other = incidents->list; other && !first; other = other->next) {
		if (other->state >= INCIDENT_WRITE && other->state < INCIDENT_HOOKED && other->n_windows &&
		    incident_end_ns(other) >= a_ns && incident_begin_ns(other) <= b_ns)
			first = first_of(other);
	}
	for (unsigned i = 0; i < PAST_MAX && i < incidents->n_past && !first; i++) {
		const struct past *past = &incidents->past[(incidents->n_past - 1 - i) % PAST_MAX];

		if (past->b_ns >= a_ns && past->a_ns <= b_ns)
			first = past->id;
	}
	if (first)
		snprintf(incident->continues, sizeof(incident->continues), "%s", first);
}

static void describe_rings(struct incidents *incidents, struct incident *incident)
{
	for (unsigned i = 0; i < incident->n_rings; i++) {
		int r = incident_hold(incident, &incidents->rings[i], &incident->rings[i]);

		if (r < 0)
			incident_note(incident, "ring %.60s could not be held: %s", incident->rings[i].name,
				      strerror(-r));
		incident_look(incident, i, incidents->rings[i].reader, incidents_now_ns(incidents, incident));
	}
}

static uint64_t pid_of(const struct incident *incident, uint32_t source)
{
	for (unsigned i = 0; i < incident->n_rings; i++) {
		if (incident->rings[i].source == source)
			return incident->rings[i].pid;
	}
	return 0;
}

void incidents_collect(struct incidents *incidents, struct incident *incident)
{
	const struct triggers_firing *firing = incident_first(incident);
	int pending_fd = incidents_store_pending_fd(incidents->store), fd = -1, below = -1;
	char folder[INCIDENTS_PATH_MAX + 64];
	bool made;

	if (!incidents->host.collect || incident->collected)
		return;
	made = faccessat(pending_fd, incident->id_text, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
	if (files_folder(pending_fd, incident->id_text, &fd) == 0 &&
	    files_folder(fd, "collected", &below) == 0) {
		snprintf(folder, sizeof(folder), "%s/pending/%s/collected",
			 incidents_store_path(incidents->store), incident->id_text);
		incident->collecting =
			incidents->host.collect(incidents->host.context, incident->id_text, firing,
						(uint32_t)pid_of(incident, firing->source), folder);
	}
	incident->collected = incident->collecting;
	if (!incident->collected && made)
		files_remove(pending_fd, incident->id_text);
	if (below >= 0)
		close(below);
	if (fd >= 0)
		close(fd);
}

/* Everything up to the last ring's pin. */
static int pin_now(struct incidents *incidents, struct incident *incident, int64_t last_ns)
{
	const struct incidents_host *host = &incidents->host;
	const struct triggers_firing *firing = incident_first(incident);
	int64_t decided_mono_ns = host->mono_ns(host->context), step_ns = 0;
	bool suspected;

	incidents_rings(incidents);
	incident->rings = calloc(incidents->n_rings + 1, sizeof(*incident->rings));
	if (!incident->rings)
		return -ENOMEM;
	if (getrandom(incident->id, sizeof(incident->id), 0) != (ssize_t)sizeof(incident->id))
		return -EIO;
	incident->mono_to_unix_ns = host->mono_to_unix_ns(host->context);
	if (host->step_ns)
		step_ns = host->step_ns(host->context, firing->source);
	incident_size(incident, &incidents->sizing, step_ns, last_ns);
	suspected = incidents_suspected(incidents, incident_begin_ns(incident));
	for (size_t i = 0; i < incidents->n_rings; i++)
		incident_pin(incident, host, incidents_store_id(incidents->store), &incidents->rings[i],
			     suspected, &incident->rings[incident->n_rings++]);
	incident->pin_took_ns = host->mono_ns(host->context) - decided_mono_ns;
	if ((uint64_t)incident->pin_took_ns > incidents->counters.pin_worst_ns)
		incidents->counters.pin_worst_ns = (uint64_t)incident->pin_took_ns;
	INCIDENT_POINT(pinned);
	return 0;
}

static int begin(struct incidents *incidents, const struct triggers_firing *firing, int64_t last_ns,
		 char ret_id[INCIDENTS_ID_TEXT])
{
	struct incident *incident = incident_new();
	int r;

	if (!incident)
		return -ENOMEM;
	incident->firing[incident->n_firings++] = *firing;
	r = pin_now(incidents, incident, last_ns);
	if (r < 0) {
		incident_free(incident);
		return r;
	}
	incidents_id_text(incident->id_text, incident->id);
	incidents_folder_name(incident->folder, firing->t0_ns, firing->trigger, incident->id);
	memcpy(incident->boot_id, incidents->boot_id, sizeof(incident->boot_id));
	memcpy(incident->host, incidents->host_name, sizeof(incident->host));
	continue_from(incidents, incident);
	describe_rings(incidents, incident);
	incidents_suspicion_drop(incidents, firing->series_id);
	incidents->counters.opened++;
	incidents->counters.open++;
	if (ret_id)
		memcpy(ret_id, incident->id_text, INCIDENTS_ID_TEXT);
	incidents_add(incidents, incident);
	incidents_collect(incidents, incident);
	incidents_job_record(incidents, incident);
	return 0;
}

int incidents_firing(struct incidents *incidents, const struct triggers_firing *firing,
		     char ret_id[INCIDENTS_ID_TEXT])
{
	return begin(incidents, firing, 0, ret_id);
}

int incidents_manual(struct incidents *incidents, const struct triggers_firing *firing, int64_t last_ns,
		     char ret_id[INCIDENTS_ID_TEXT])
{
	return begin(incidents, firing, last_ns, ret_id);
}
