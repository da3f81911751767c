/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Firings that join an incident while it waits for its post window, and causes that are over. What comes
 * while a job is in hand waits for the job's end: the worker owns the incident until then.
 */
#include "lifecycle.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { WAITING_MAX = 64 };

/* ---- joining ---- */

/* A slow step that its slow span was told of before: the incident is the step's, the span says why. */
static bool is_around(const struct triggers_firing *firing, const struct triggers_firing *first)
{
	return firing->step >= 0 && first->step < 0 && firing->source == first->source && !firing->ongoing &&
	       !first->ongoing && !strcmp(firing->trigger, first->trigger) && firing->t0_ns <= first->t0_ns &&
	       firing->until_ns >= first->until_ns;
}

/* Whom it is named after: the worst, one that somebody is told of, one that is not over, the step. */
static bool leads(const struct triggers_firing *firing, const struct triggers_firing *first)
{
	if (firing->severity != first->severity)
		return firing->severity > first->severity;
	if (firing->quiet != first->quiet)
		return !firing->quiet;
	if (firing->ongoing != first->ongoing)
		return firing->ongoing != 0;
	return is_around(firing, first);
}

static unsigned count_of(const struct incident *incident, const char *trigger)
{
	unsigned count = 0;

	for (unsigned i = 0; i < incident->n_firings; i++)
		count += !strcmp(incident->firing[i].trigger, trigger);
	return count;
}

/* Whether it tells less than another one that is listed: milder, or as mild and of a trigger that says it more often. */
static bool tells_less(const struct incident *incident, unsigned at, unsigned than)
{
	const struct triggers_firing *a = &incident->firing[at], *b = &incident->firing[than];

	if (a->severity != b->severity)
		return a->severity < b->severity;
	if (a->ongoing != b->ongoing)
		return !a->ongoing;
	return count_of(incident, a->trigger) > count_of(incident, b->trigger);
}

/*
 * Where to put it once there is no more room: in place of what tells least, but for the first. 0: it is no worse. Of
 * each trigger one is listed: that a straggler was found must not drown in all ranks' slow steps.
 */
static unsigned place_of_mildest(const struct incident *incident, const struct triggers_firing *firing)
{
	unsigned at = 1;

	for (unsigned i = 2; i < INCIDENT_FIRINGS_MAX; i++) {
		if (tells_less(incident, i, at))
			at = i;
	}
	const struct triggers_firing *least = &incident->firing[at];

	if (least->severity != firing->severity)
		return least->severity < firing->severity ? at : 0;
	return !least->ongoing && count_of(incident, firing->trigger) == 0 &&
			       count_of(incident, least->trigger) > 1
		       ? at
		       : 0;
}

/* Its collectors are those of its first: they run now if those of the one before had none. */
static void put_first(struct incidents *incidents, struct incident *incident, unsigned at)
{
	struct triggers_firing was = incident->firing[0];
	bool moved_on = incident->moved_on[0];

	incident->firing[0] = incident->firing[at];
	incident->moved_on[0] = incident->moved_on[at];
	incident->firing[at] = was;
	incident->moved_on[at] = moved_on;
	incidents_collect(incidents, incident);
}

/* Returns whether it is listed, or only counted. */
static bool take_in(struct incidents *incidents, struct incident *incident,
		    const struct triggers_firing *firing)
{
	unsigned at = incident->n_firings;

	incident_extend(incident, firing);
	if (at == INCIDENT_FIRINGS_MAX) {
		incident->more_firings++;
		at = place_of_mildest(incident, firing);
		if (at == 0)
			return false;
	} else {
		incident->n_firings++;
	}
	incident->firing[at] = *firing;
	incident->moved_on[at] = false;
	if (leads(firing, incident_first(incident)))
		put_first(incidents, incident, at);
	return true;
}

/* Until the job in hand is done. */
static void wait_to_join(struct incident *incident, const struct triggers_firing *firing)
{
	struct triggers_firing *mildest = NULL;

	if (!incident->waiting)
		incident->waiting = calloc(WAITING_MAX, sizeof(*incident->waiting));
	if (incident->waiting && incident->n_waiting < WAITING_MAX) {
		incident->waiting[incident->n_waiting++] = *firing;
		return;
	}
	incident->more_waiting++;
	for (unsigned i = 0; i < incident->n_waiting; i++) {
		if (!mildest || incident->waiting[i].severity < mildest->severity)
			mildest = &incident->waiting[i];
	}
	if (mildest && mildest->severity < firing->severity)
		*mildest = *firing;
}

static struct incident *one_that_waits(struct incidents *incidents)
{
	struct incident *incident = incidents->list;

	while (incident && !incident_waits(incident))
		incident = incident->next;
	return incident;
}

int incidents_join(struct incidents *incidents, const struct triggers_firing *firing)
{
	struct incident *incident = one_that_waits(incidents);

	if (!incident)
		return -ENOENT;
	incidents->counters.joined++;
	incidents_suspicion_drop(incidents, firing->series_id);
	if (incident->working)
		wait_to_join(incident, firing);
	else if (take_in(incidents, incident, firing))
		incidents_job_record(incidents, incident);
	return 0;
}

void incidents_joined_more(struct incidents *incidents, uint64_t count)
{
	struct incident *incident = one_that_waits(incidents);

	incidents->counters.joined += count;
	if (!incident)
		return;
	unsigned *more = incident->working ? &incident->more_waiting : &incident->more_firings;
	*more = count < UINT_MAX - *more ? *more + (unsigned)count : UINT_MAX;
}

/* ---- progress ---- */

static bool same_cause(const struct triggers_firing *a, const struct triggers_firing *b)
{
	return !strcmp(a->trigger, b->trigger) && !strcmp(a->series, b->series) && a->rank == b->rank &&
	       (a->rank != UINT32_MAX || a->source == b->source);
}

/* An incident is resolved when the causes of all its ongoing firings are over. */
static bool all_moved_on(const struct incident *incident)
{
	for (unsigned i = 0; i < incident->n_firings; i++) {
		if (incident->firing[i].ongoing && !incident->moved_on[i])
			return false;
	}
	return true;
}

/* While nothing is written yet progress ends the wait for post. */
static void progress_in_post(struct incident *incident)
{
	struct incident_window *window = &incident->window[incident->n_windows - 1];
	int64_t end_ns = incident->progress_ns;

	if (end_ns < incident_first(incident)->detected_ns)
		end_ns = incident_first(incident)->detected_ns;
	if (end_ns < window->b_ns)
		window->b_ns = end_ns;
	incident->resolved_ns = incident->progress_ns;
}

/* What waits to join and is over by now joins as such. */
static void end_waiting(struct incident *incident, const struct triggers_firing *firing, int64_t now_ns)
{
	for (unsigned i = 0; i < incident->n_waiting; i++) {
		struct triggers_firing *waiting = &incident->waiting[i];

		if (!waiting->ongoing || !same_cause(waiting, firing))
			continue;
		waiting->ongoing = 0;
		if (now_ns > waiting->until_ns)
			waiting->until_ns = now_ns;
	}
}

void incidents_progress(struct incidents *incidents, const struct triggers_firing *firing, int64_t now_ns)
{
	struct incident *next;

	for (struct incident *incident = incidents->list; incident; incident = next) {
		bool touched = false;

		next = incident->next;
		end_waiting(incident, firing, now_ns);
		for (unsigned i = 0; i < incident->n_firings; i++) {
			if (incident->firing[i].ongoing && !incident->moved_on[i] &&
			    same_cause(&incident->firing[i], firing))
				touched = incident->moved_on[i] = true;
		}
		if (!touched || !all_moved_on(incident) || incident->to_resolve)
			continue;
		incident->progress_ns = now_ns;
		incident->to_resolve = true;
		if (incident->working)
			continue;
		if (incident_waits(incident))
			progress_in_post(incident);
		else if (incident->state == INCIDENT_HOOKED || incident->state == INCIDENT_READY)
			incidents_job_resolve(incidents, incident);
	}
}

void incidents_settle_waiting(struct incidents *incidents, struct incident *incident)
{
	bool joined = incident->n_waiting > 0;

	for (unsigned i = 0; i < incident->n_waiting; i++) {
		if (incident_waits(incident))
			incident->to_record |= take_in(incidents, incident, &incident->waiting[i]);
	}
	incident->more_firings = incident->more_waiting < UINT_MAX - incident->more_firings
					 ? incident->more_firings + incident->more_waiting
					 : UINT_MAX;
	incident->n_waiting = incident->more_waiting = 0;
	if (incident_waits(incident) && incident->to_resolve && !incident->resolved_ns &&
	    all_moved_on(incident))
		progress_in_post(incident);
	else if (joined && !all_moved_on(incident) && incident_waits(incident))
		incident->to_resolve = false;
}
