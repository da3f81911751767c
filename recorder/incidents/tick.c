/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time passes: an incident waits until all that its window asks for is in the rings, or it is no use to wait
 * for more; then what others know of the window is gathered, and it is written.
 */
#include "lifecycle.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "parts.h"
#include "point.h"

static const struct incidents_ring *host_ring(const struct incidents *incidents, uint32_t source)
{
	for (size_t i = 0; i < incidents->n_rings; i++) {
		if (incidents->rings[i].source == source)
			return &incidents->rings[i];
	}
	return NULL;
}

/* Whether everything up to the window's end is in the rings; marks those that are late. */
static bool sources_past(struct incidents *incidents, struct incident *incident, int64_t end_ns)
{
	bool past = true;

	for (unsigned i = 0; i < incident->n_rings; i++) {
		struct incident_ring *ring = &incident->rings[i];
		const struct incidents_ring *now = host_ring(incidents, ring->source);

		ring->dead = ring->dead || !now || now->dead;
		ring->late = !ring->dead && now->watermark_ns < end_ns;
		past = past && !ring->late;
	}
	return past;
}

/* Another firing may have joined that leads. */
static const struct triggers_firing *crash_of(const struct incident *incident)
{
	for (unsigned i = 0; i < incident->n_firings; i++) {
		if (!strcmp(incident->firing[i].trigger, "crash"))
			return &incident->firing[i];
	}
	return NULL;
}

/* Crashes of one job within a minute make one incident: wait while others of the job are alive. */
static bool holds_for_crashes(const struct incident *incident, int64_t now_ns)
{
	const struct triggers_firing *first = crash_of(incident);
	const char *job = NULL;

	if (!first || now_ns >= incident_add_ns(first->detected_ns, CRASH_HOLD_NS))
		return false;
	for (unsigned i = 0; i < incident->n_rings; i++) {
		if (incident->rings[i].source == first->source)
			job = incident->rings[i].job;
	}
	for (unsigned i = 0; job && i < incident->n_rings; i++) {
		const struct incident_ring *ring = &incident->rings[i];

		if (!ring->dead && ring->pid != (uint64_t)getpid() && !strcmp(ring->job, job))
			return true;
	}
	return false;
}

/* Rings made since the firing belong to the window too, from their birth. */
static void add_new_rings(struct incidents *incidents, struct incident *incident)
{
	for (size_t i = 0; i < incidents->n_rings && incident->n_rings < INCIDENTS_RINGS_MAX; i++) {
		const struct incidents_ring *now = &incidents->rings[i];
		struct incident_ring *more;
		bool known = false;

		for (unsigned k = 0; k < incident->n_rings; k++)
			known |= incident->rings[k].source == now->source;
		if (known)
			continue;
		more = realloc(incident->rings, (incident->n_rings + 1) * sizeof(*more));
		if (!more)
			return;
		incident->rings = more;
		incident_pin(incident, &incidents->host, incidents_store_id(incidents->store), now, true,
			     &more[incident->n_rings]);
		if (incident_hold(incident, now, &more[incident->n_rings]) < 0)
			incident_note(incident, "ring %.60s could not be held", more[incident->n_rings].name);
		incident->n_rings++;
	}
}

static void gather_anchors(struct incidents *incidents, struct incident *incident)
{
	const struct incidents_host *host = &incidents->host;

	if (!incident->anchors)
		incident->anchors = calloc(ANCHORS_MAX, sizeof(*incident->anchors));
	incident->n_anchors = 0;
	if (host->anchors && incident->anchors && !incident->restarted) {
		size_t n = host->anchors(host->context, incident->anchors, ANCHORS_MAX);

		incident->n_anchors = n < ANCHORS_MAX ? n : ANCHORS_MAX;
	}
}

static void gather_for_write(struct incidents *incidents, struct incident *incident)
{
	const struct incidents_host *host = &incidents->host;
	int64_t a_ns = incident_begin_ns(incident), b_ns = incident_end_ns(incident);

	gather_anchors(incidents, incident);
	if (host->captures && incident->n_captures == 0) {
		size_t n =
			host->captures(host->context, a_ns, b_ns, incident->capture, INCIDENTS_CAPTURES_MAX);

		for (size_t i = 0; i < n && i < INCIDENTS_CAPTURES_MAX; i++) {
			char *path = strdup(incident->capture[i].path);

			if (!path)
				break;
			incident->capture_path[incident->n_captures] = path;
			incident->capture[incident->n_captures] = incident->capture[i];
			incident->capture[incident->n_captures++].path = path;
		}
	}
	if (host->macro && !incident->macro) {
		const int64_t around = INT64_C(600000000000);

		if (host->macro(host->context, incident_add_ns(a_ns, -around), incident_add_ns(b_ns, around),
				&incident->macro, &incident->macro_bytes) < 0)
			incident->macro = NULL;
	}
}

void incidents_tell_settled(struct incidents *incidents)
{
	for (const struct incident *incident = incidents->list; incident; incident = incident->next) {
		if (incident_waits(incident))
			return;
	}
	if (incidents->host.settled)
		incidents->host.settled(incidents->host.context);
}

static void post_over(struct incidents *incidents, struct incident *incident)
{
	INCIDENT_POINT(post_over);
	add_new_rings(incidents, incident);
	gather_for_write(incidents, incident);
	incident->state = INCIDENT_WRITE;
	incidents_tell_settled(incidents);
	incidents_job_write(incidents, incident);
}

/* Rings that fill up before the window is over are copied as far as they go. */
static void drain(struct incidents *incidents, struct incident *incident)
{
	bool due = false;

	for (unsigned i = 0; !due && i < incident->n_rings; i++) {
		const struct incidents_ring *now = host_ring(incidents, incident->rings[i].source);

		due = now && incident_drain_due(&incident->rings[i], now->reader);
	}
	if (!due)
		return;
	gather_anchors(incidents, incident);
	incidents_job_drain(incidents, incident);
}

/* Whether all is in the rings that the window asks for, or it is no use to wait for more. */
static bool is_over(struct incidents *incidents, struct incident *incident, int64_t mono_ns)
{
	int64_t now_ns = incident_add_ns(mono_ns, incident->mono_to_unix_ns);
	int64_t end_ns = incident_end_ns(incident), over_ns;
	bool past = sources_past(incidents, incident, end_ns);

	if (now_ns < end_ns || holds_for_crashes(incident, now_ns))
		return false;
	if (!incident->late_mono_ns)
		incident->late_mono_ns = mono_ns;
	over_ns = mono_ns - incident->late_mono_ns;
	if (!past && over_ns < LATE_NS)
		return false;
	return !incident->collecting || over_ns >= COLLECT_NS;
}

static void tick_one(struct incidents *incidents, struct incident *incident)
{
	int64_t mono_ns = incidents->host.mono_ns(incidents->host.context);

	if (incident->working || incident->state != INCIDENT_POST)
		return;
	if (incident->to_record) {
		incidents_job_record(incidents, incident);
		return;
	}
	if (mono_ns < incident->retry_mono_ns || !is_over(incidents, incident, mono_ns)) {
		drain(incidents, incident);
		return;
	}
	if (incident->collecting)
		incident_note(incident, "collectors were still running when the incident was written");
	post_over(incidents, incident);
}

void incidents_tick(struct incidents *incidents)
{
	struct incident *next;

	bool look = incidents->host.mono_ns(incidents->host.context) - incidents->left_looked_mono_ns >=
		    LEFT_LOOK_NS;

	if ((!incidents->list && !look) || incidents->stopping)
		return;
	incidents_rings(incidents);
	if (look)
		incidents_release_left(incidents);
	for (struct incident *incident = incidents->list; incident; incident = next) {
		next = incident->next;
		tick_one(incidents, incident);
	}
}
