/* SPDX-License-Identifier: Apache-2.0 */
#include "lifecycle.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "files.h"
#include "manifest.h"
#include "parts.h"
#include "point.h"

enum { WAITING_MAX = 64 };

/* --- the object --- */

static void read_boot_id(uint8_t ret_id[16])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	char text[64], digits[33] = "";
	ssize_t bytes = fd < 0 ? 0 : read(fd, text, sizeof(text));
	size_t n = 0;

	if (fd >= 0)
		close(fd);
	for (ssize_t i = 0; i < bytes && n < 32; i++) {
		if (text[i] != '-' && text[i] != '\n')
			digits[n++] = text[i];
	}
	incidents_id_parse(digits, ret_id);
}

int incidents_new(const struct incidents_host *host, struct incidents_store *store,
		  const struct incidents_sizing *sizing, struct incidents **ret_incidents)
{
	struct incidents *incidents;

	if (!host->rings || !host->mono_ns || !host->mono_to_unix_ns)
		return -EINVAL;
	incidents = calloc(1, sizeof(*incidents));
	if (!incidents)
		return -ENOMEM;
	incidents->host = *host;
	incidents->store = store;
	incidents->sizing = *sizing;
	read_boot_id(incidents->boot_id);
	if (gethostname(incidents->host_name, sizeof(incidents->host_name) - 1) < 0)
		incidents->host_name[0] = 0;
	*ret_incidents = incidents;
	return 0;
}

void incidents_free(struct incidents *incidents)
{
	if (!incidents)
		return;
	incidents->stopping = true;
	while (incidents->jobs > 0)
		uv_run(incidents->host.loop, UV_RUN_ONCE);
	while (incidents->list)
		incidents_drop(incidents, incidents->list);
	free(incidents);
}

void incidents_rings(struct incidents *incidents)
{
	size_t n = incidents->host.rings(incidents->host.context, incidents->rings, INCIDENTS_RINGS_MAX);

	incidents->n_rings = n < INCIDENTS_RINGS_MAX ? n : INCIDENTS_RINGS_MAX;
}

int64_t incidents_now_ns(const struct incidents *incidents, const struct incident *incident)
{
	return incident_add_ns(incidents->host.mono_ns(incidents->host.context), incident->mono_to_unix_ns);
}

void incidents_log(struct incidents *incidents, const char *kind, const char *format, ...)
{
	char sentence[512];
	va_list list;

	if (!incidents->host.log)
		return;
	va_start(list, format);
	vsnprintf(sentence, sizeof(sentence), format, list);
	va_end(list);
	incidents->host.log(incidents->host.context, kind, sentence);
}

struct incident *incidents_find(struct incidents *incidents, const char *id)
{
	for (struct incident *incident = incidents->list; incident; incident = incident->next) {
		if (!strcmp(incident->id_text, id))
			return incident;
	}
	return NULL;
}

void incidents_add(struct incidents *incidents, struct incident *incident)
{
	incident->next = incidents->list;
	incidents->list = incident;
}

void incidents_drop(struct incidents *incidents, struct incident *incident)
{
	struct incident **at = &incidents->list;

	while (*at && *at != incident)
		at = &(*at)->next;
	if (*at)
		*at = incident->next;
	incident_free(incident);
}

const struct incidents_counters *incidents_counters(const struct incidents *incidents)
{
	return &incidents->counters;
}

size_t incidents_busy(const struct incidents *incidents)
{
	size_t busy = 0;

	for (const struct incident *incident = incidents->list; incident; incident = incident->next)
		busy += incident->state != INCIDENT_HOOKED || incident->working;
	return busy;
}

/* --- firing --- */

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

/* What fires when an incident no longer waits opens another one, which names the first where the windows
 * meet. */
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

static void start_collectors(struct incidents *incidents, struct incident *incident)
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
	start_collectors(incidents, incident);
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

/* --- joining and progress --- */

/* A slow step that its slow span was told of before: the incident is the step's, the span says why. */
static bool is_around(const struct triggers_firing *firing, const struct triggers_firing *first)
{
	return firing->step >= 0 && first->step < 0 && firing->source == first->source && !firing->ongoing &&
	       !first->ongoing && !strcmp(firing->trigger, first->trigger) && firing->t0_ns <= first->t0_ns &&
	       firing->until_ns >= first->until_ns;
}

/* Whom the incident is named after: the worst, one that somebody is told of, one that is not over, the step.
 */
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

/* Where to put it once there is no more room: in the place of the mildest, but for the first. 0: it is no
 * worse. */
static unsigned place_of_mildest(const struct incident *incident, const struct triggers_firing *firing)
{
	unsigned mildest = 1;

	for (unsigned i = 2; i < INCIDENT_FIRINGS_MAX; i++) {
		if (incident->firing[i].severity < incident->firing[mildest].severity)
			mildest = i;
	}
	return incident->firing[mildest].severity < firing->severity ? mildest : 0;
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
	start_collectors(incidents, incident);
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

static bool waits(const struct incident *incident)
{
	return incident->state <= INCIDENT_POST;
}

static struct incident *one_that_waits(struct incidents *incidents)
{
	struct incident *incident = incidents->list;

	while (incident && !waits(incident))
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
		if (waits(incident))
			progress_in_post(incident);
		else if (incident->state == INCIDENT_HOOKED || incident->state == INCIDENT_READY)
			incidents_job_resolve(incidents, incident);
	}
}

void incidents_settle_waiting(struct incidents *incidents, struct incident *incident)
{
	bool joined = incident->n_waiting > 0;

	for (unsigned i = 0; i < incident->n_waiting; i++) {
		if (waits(incident))
			incident->to_record |= take_in(incidents, incident, &incident->waiting[i]);
	}
	incident->more_firings = incident->more_waiting < UINT_MAX - incident->more_firings
					 ? incident->more_firings + incident->more_waiting
					 : UINT_MAX;
	incident->n_waiting = incident->more_waiting = 0;
	if (waits(incident) && incident->to_resolve && !incident->resolved_ns && all_moved_on(incident))
		progress_in_post(incident);
	else if (joined && !all_moved_on(incident) && waits(incident))
		incident->to_resolve = false;
}

/* --- time passes --- */

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

static void tell_settled(struct incidents *incidents)
{
	for (const struct incident *incident = incidents->list; incident; incident = incident->next) {
		if (waits(incident))
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
	tell_settled(incidents);
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

/* --- rings, collectors, hooks --- */

void incidents_ring_gone(struct incidents *incidents, uint32_t source)
{
	for (struct incident *incident = incidents->list; incident; incident = incident->next) {
		for (unsigned i = 0; !incident->working && i < incident->n_rings; i++)
			incident->rings[i].dead |= incident->rings[i].source == source;
	}
}

bool incidents_ring_needed(const struct incidents *incidents, uint32_t source)
{
	for (const struct incident *incident = incidents->list; incident; incident = incident->next) {
		for (unsigned i = 0; incident->state < INCIDENT_RELEASED && i < incident->n_rings; i++) {
			if (incident->rings[i].source == source)
				return true;
		}
	}
	return false;
}

void incidents_collected(struct incidents *incidents, const char *id)
{
	struct incident *incident = incidents_find(incidents, id);

	if (incident)
		incident->collecting = false;
}

static void add_outcome(struct incident *incident, const char *event, const char *hook, const char *failure,
			int64_t now_ns)
{
	cJSON *json = cJSON_CreateObject();
	char *text, *more;
	size_t bytes;

	cJSON_AddStringToObject(json, "event", event);
	cJSON_AddStringToObject(json, "hook", hook);
	cJSON_AddBoolToObject(json, "worked", failure == NULL);
	if (failure)
		cJSON_AddStringToObject(json, "failure", failure);
	json_add_ns(json, "at_ns", now_ns);
	text = cJSON_PrintUnformatted(json);
	cJSON_Delete(json);
	bytes = text ? strlen(text) : 0;
	if (bytes && incident->outcomes_bytes + bytes + 1 < OUTCOMES_BYTES_MAX) {
		more = realloc(incident->outcomes, incident->outcomes_bytes + bytes + 1);
		if (more) {
			memcpy(more + incident->outcomes_bytes, text, bytes);
			more[incident->outcomes_bytes + bytes] = '\n';
			incident->outcomes = more;
			incident->outcomes_bytes += bytes + 1;
		}
	}
	cJSON_free(text);
}

void incidents_alerted(struct incidents *incidents, const char *id, const char *event, const char *hook,
		       const char *failure)
{
	struct incident *incident = incidents_find(incidents, id);

	if (!incident)
		return;
	add_outcome(incident, event, hook, failure, incidents_now_ns(incidents, incident));
	if (incident->alerts_out > 0)
		incident->alerts_out--;
	if (incident->alerts_out == 0 && !incident->working &&
	    (incident->state == INCIDENT_READY || incident->state == INCIDENT_HOOKED))
		incidents_job_finish(incidents, incident);
}
