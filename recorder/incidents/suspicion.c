/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pins for what may become a firing. A stall is noticed at a multiple of the usual step; by then a chatty
 * thread may have overwritten how it began. So a step that is past its usual length is pinned at once, and
 * let go of when it ends. Ranks of one job get late together: those of about the same time share one pin.
 */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "lifecycle.h"

/* The firing's window is converted to the ring's clock anew: its begin may come out a little earlier then. */
#define MARGIN_NS INT64_C(1000000)

static struct suspicion *find_series(struct incidents *incidents, uint32_t series_id, unsigned *ret_at)
{
	for (unsigned i = 0; i < SUSPICIONS_MAX; i++) {
		struct suspicion *suspicion = &incidents->suspicion[i];

		for (unsigned s = 0; suspicion->on && s < suspicion->n_series; s++) {
			if (suspicion->series[s] == series_id) {
				*ret_at = s;
				return suspicion;
			}
		}
	}
	return NULL;
}

static void pin_all(struct incidents *incidents, struct suspicion *suspicion)
{
	struct incident stand_in = {.n_windows = 1, .n_firings = 1};

	stand_in.mono_to_unix_ns = incidents->host.mono_to_unix_ns(incidents->host.context);
	stand_in.window[0].a_ns = stand_in.window[0].b_ns = suspicion->from_ns;
	stand_in.firing[0].t0_ns = suspicion->from_ns;
	snprintf(stand_in.firing[0].trigger, sizeof(stand_in.firing[0].trigger), SUSPICION_TRIGGER);
	memcpy(stand_in.id, suspicion->id, sizeof(stand_in.id));
	incidents_rings(incidents);
	for (size_t i = 0; i < incidents->n_rings; i++) {
		struct incident_ring kept;

		incident_pin(&stand_in, &incidents->host, incidents_store_id(incidents->store),
			     &incidents->rings[i], false, &kept);
	}
}

static void unpin_all(struct incidents *incidents, struct suspicion *suspicion)
{
	incidents_rings(incidents);
	for (size_t i = 0; i < incidents->n_rings; i++)
		incident_unpin(incidents->rings[i].reader, suspicion->id);
	memset(suspicion, 0, sizeof(*suspicion));
}

void incidents_suspicion(struct incidents *incidents, uint32_t series_id, uint32_t source, int64_t from_ns)
{
	int64_t step_ns =
		incidents->host.step_ns ? incidents->host.step_ns(incidents->host.context, source) : 0;
	struct incident sizes = {.n_firings = 1};
	struct suspicion *free_one = NULL;
	unsigned at;

	if (incidents->stopping || find_series(incidents, series_id, &at))
		return;
	sizes.firing[0].t0_ns = sizes.firing[0].until_ns = sizes.firing[0].detected_ns = from_ns;
	incident_size(&sizes, &incidents->sizing, step_ns, 0);
	for (unsigned i = 0; i < SUSPICIONS_MAX; i++) {
		struct suspicion *suspicion = &incidents->suspicion[i];

		if (!suspicion->on) {
			free_one = free_one ? free_one : suspicion;
			continue;
		}
		/* Not later than the pin, and not so much later that its half would be over too soon. */
		if (sizes.window[0].a_ns >= suspicion->from_ns &&
		    from_ns <= incident_add_ns(suspicion->from_ns, incident_add_ns(sizes.window[0].b_ns,
										   -sizes.window[0].a_ns)) &&
		    suspicion->n_series < SUSPICION_SERIES_MAX) {
			suspicion->series[suspicion->n_series++] = series_id;
			return;
		}
	}
	if (!free_one || getrandom(free_one->id, sizeof(free_one->id), 0) != (ssize_t)sizeof(free_one->id))
		return;
	free_one->on = true;
	free_one->from_ns = incident_add_ns(sizes.window[0].a_ns, -MARGIN_NS);
	free_one->series[0] = series_id;
	free_one->n_series = 1;
	incidents->counters.suspicions++;
	pin_all(incidents, free_one);
}

void incidents_suspicion_drop(struct incidents *incidents, uint32_t series_id)
{
	unsigned at;
	struct suspicion *suspicion = find_series(incidents, series_id, &at);

	if (!suspicion)
		return;
	suspicion->series[at] = suspicion->series[--suspicion->n_series];
	if (suspicion->n_series == 0)
		unpin_all(incidents, suspicion);
}

void incidents_suspicion_end(struct incidents *incidents, uint32_t series_id, uint32_t source)
{
	(void)source;
	incidents_suspicion_drop(incidents, series_id);
}

bool incidents_suspected(const struct incidents *incidents, int64_t a_ns)
{
	for (unsigned i = 0; i < SUSPICIONS_MAX; i++) {
		if (incidents->suspicion[i].on &&
		    incidents->suspicion[i].from_ns <= incident_add_ns(a_ns, incidents->sizing.pre_min_ns))
			return true;
	}
	return false;
}
