/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trigger engine in the daemon. It speaks from inside observe and tick, while a ring is being read; what
 * it says is put down and acted upon as soon as that call is over, so that nothing reads a ring from within
 * the reading of it.
 *
 * What a storm says is bounded: a firing that was held back goes into the log of those at once, of firings
 * that join an incident 256 wait at a time (the worst ones) and the rest is counted. Passed firings are
 * bounded by the budgets, the others by the number of series; none of them is ever dropped but for want of
 * memory.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon_inside.h"
#include "incidents/manifest.h"
#include "log.h"
#include "ns.h"
#include "plain_text.h"
#include "trigger_settings.h"

enum { TOLD_ROOM = 64, TOLD_MAX = 4 * TRIGGERS_SERIES_MAX, JOINING_MAX = 256, KNOWN_INCIDENTS = 24 };

static const int64_t SAME_NS = 50000000; /* the same anomaly seen again after a restart is this close */

static bool make_room(struct daemon *daemon)
{
	size_t room = daemon->told_room ? 2 * daemon->told_room : TOLD_ROOM;
	if (daemon->n_told < daemon->told_room)
		return true;
	struct daemon_told *more = room <= TOLD_MAX ? realloc(daemon->told, room * sizeof(*more)) : NULL;
	if (!more)
		return false;
	daemon->told = more;
	daemon->told_room = room;
	return true;
}

/* The firing, if there is one, is copied. */
static void tell(struct daemon *daemon, struct daemon_told told, const struct triggers_firing *firing)
{
	if (firing && (told.firing = malloc(sizeof(*firing))))
		*told.firing = *firing;
	if ((!firing || told.firing) && make_room(daemon)) {
		daemon->told[daemon->n_told++] = told;
		return;
	}
	free(told.firing);
	daemon->told_dropped++;
	log_warnx("trigger.unheard", "%s is not acted upon: there is no memory for it",
		  firing ? firing->trigger : "a suspicion");
}

/* From record time to the time of incidents. */
static void shift(const struct daemon *daemon, struct triggers_firing *firing)
{
	int64_t by_ns = daemon_incident_shift(daemon);
	firing->t0_ns += by_ns;
	firing->until_ns += by_ns;
	firing->detected_ns += by_ns;
}

static void note_suppressed(struct daemon *daemon, const struct triggers_firing *firing,
			    enum triggers_gate gate)
{
	struct triggers_firing shifted = *firing;
	if (strcmp(firing->trigger, "manual") == 0)
		daemon->manual_gate = gate;
	shift(daemon, &shifted);
	suppressed_add(daemon->suppressed, &shifted, gate);
	log_info("trigger.suppressed", "%s of \"%s\" made no incident: %s; %s", firing->trigger,
		 firing->series, firing->shadow ? "recorded only" : triggers_gate_name(gate),
		 firing->evidence);
}

/* Where too many wait to join, the worse ones do. */
static void join_later(struct daemon *daemon, const struct triggers_firing *firing)
{
	struct daemon_told *mildest = NULL;
	if (daemon->n_joining < JOINING_MAX) {
		daemon->n_joining++;
		tell(daemon, (struct daemon_told){.what = TOLD_FIRING, .gate = TRIGGERS_COALESCED}, firing);
		return;
	}
	daemon->joined_more++;
	for (size_t i = 0; i < daemon->n_told; i++) {
		struct daemon_told *told = &daemon->told[i];
		if (told->what == TOLD_FIRING && told->gate == TRIGGERS_COALESCED &&
		    (!mildest || told->firing->severity < mildest->firing->severity))
			mildest = told;
	}
	if (mildest && mildest->firing->severity < firing->severity)
		*mildest->firing = *firing;
}

static void on_firing(void *context, const struct triggers_firing *firing, enum triggers_gate gate)
{
	struct daemon *daemon = context;
	if ((unsigned)gate < TRIGGERS_GATE_LIMIT)
		daemon->gated[gate]++;
	if (firing->shadow || (gate != TRIGGERS_PASSED && gate != TRIGGERS_COALESCED))
		note_suppressed(daemon, firing, gate);
	else if (gate == TRIGGERS_COALESCED)
		join_later(daemon, firing);
	else
		tell(daemon, (struct daemon_told){.what = TOLD_FIRING, .gate = gate}, firing);
}

static void on_progress(void *context, const struct triggers_firing *firing, int64_t now_ns)
{
	tell(context, (struct daemon_told){.what = TOLD_PROGRESS, .ns = now_ns}, firing);
}

static void on_suspicion(void *context, uint32_t series_id, uint32_t source, int64_t from_ns)
{
	tell(context,
	     (struct daemon_told){
		     .what = TOLD_SUSPICION, .series_id = series_id, .source = source, .ns = from_ns},
	     NULL);
}

static void on_suspicion_end(void *context, uint32_t series_id, uint32_t source)
{
	tell(context,
	     (struct daemon_told){.what = TOLD_SUSPICION_END, .series_id = series_id, .source = source},
	     NULL);
}

static void on_refused(void *context, const char *key, const char *why)
{
	(void)context;
	log_warnx("config.trigger", "%s is not taken: %s", key, why);
}

int daemon_watch_new(struct daemon *daemon, char *why, size_t why_room)
{
	const struct triggers_listener listener = {
		.context = daemon,
		.firing = on_firing,
		.progress = on_progress,
		.suspicion = on_suspicion,
		.suspicion_end = on_suspicion_end,
	};
	int result = suppressed_new(&daemon->suppressed);
	if (result == 0)
		result = triggers_engine_new(&listener, &daemon->engine);
	if (result == 0) {
		trigger_settings_apply(daemon->config, daemon->engine, on_refused, NULL);
		result = trigger_settings_series(daemon->config, daemon->engine, &daemon->series);
	}
	if (result < 0)
		snprintf(why, why_room, "the triggers cannot be set up: %s", strerror(-result));
	return result;
}

void daemon_watch_free(struct daemon *daemon)
{
	for (size_t i = 0; i < daemon->n_told; i++)
		free(daemon->told[i].firing);
	free(daemon->told);
	suppressed_free(daemon->suppressed);
}

/* "inside "load" for 1.2 s (thread main)" of what a ring's process hangs in; false if that is not known. */
static bool describe_hang(const struct daemon *daemon, const struct producer *producer, char *out, size_t room)
{
	const struct drec_open_info *open = producer_innermost(producer);
	struct drec_track_info track = {0};
	char name[TRIGGERS_NAME_MAX] = "", thread[41] = "";
	if (!open || !producer->intake)
		return false;
	intake_name(producer->intake, open->name, name, sizeof(name));
	int64_t end_ns = producer->life == PRODUCER_ALIVE ? clock_record_ns(&daemon->clock)
							   : producer->last_event_ns;
	int64_t for_ns = ns_sub(end_ns, drec_reader_unix_ns(producer->reader, open->start));
	if (for_ns < 0)
		for_ns = 0;
	if (drec_reader_track(producer->reader, open->thread_track, &track) == 0)
		plain_text(thread, sizeof(thread), track.name, track.name_bytes);
	snprintf(out, room, "inside \"%s\" for %lld.%lld s (thread %s)", name, (long long)(for_ns / 1000000000),
		 (long long)(for_ns / 100000000 % 10), thread);
	return true;
}

/* A stall's sentence gets what the process hangs in: it is why anybody reads it. */
static void enrich(const struct daemon *daemon, struct triggers_firing *firing)
{
	const struct producer *producer = producers_find(daemon->producers, firing->source);
	char hang[128];
	if (strcmp(firing->trigger, "stall") != 0 || !producer || !describe_hang(daemon, producer, hang, sizeof(hang)))
		return;
	char was[TRIGGERS_TEXT_MAX];
	memcpy(was, firing->evidence, sizeof(was));
	size_t length = strnlen(was, sizeof(was) - 1);
	while (length > 0 && was[length - 1] == '.')
		length--;
	const size_t most = TRIGGERS_TEXT_MAX - sizeof(hang) - 4;
	snprintf(firing->evidence, sizeof(firing->evidence), "%.*s; %s", (int)(length < most ? length : most), was,
		 hang);
	plain_text(firing->evidence, sizeof(firing->evidence), firing->evidence, strlen(firing->evidence));
}

/* `before`: of those that an earlier daemon made. Ranks that stall at once are no repetition of each other.
 */
static bool is_known(const struct daemon *daemon, const struct triggers_firing *firing, bool before)
{
	if (strcmp(firing->trigger, "manual") == 0)
		return false;
	for (size_t i = 0; i < daemon->n_known; i++) {
		int64_t apart = daemon->known[i].t0_ns - firing->t0_ns;
		if (before && !daemon->known[i].before)
			continue;
		if (strcmp(daemon->known[i].trigger, firing->trigger) == 0 && apart < SAME_NS && apart > -SAME_NS)
			return true;
	}
	return false;
}

static void add_known(struct daemon *daemon, const char *trigger, int64_t t0_ns, bool before)
{
	if (daemon->n_known == DAEMON_KNOWN_MAX) {
		memmove(daemon->known, daemon->known + 1, sizeof(daemon->known) - sizeof(daemon->known[0]));
		daemon->n_known--;
	}
	struct daemon_known *known = &daemon->known[daemon->n_known++];
	snprintf(known->trigger, sizeof(known->trigger), "%s", trigger);
	known->t0_ns = t0_ns;
	known->before = before;
}

/* All that is in an incident: what joined it must not open one when it is read again, either. */
static void add_known_incident(struct daemon *daemon, const char *folder)
{
	const cJSON *item;
	cJSON *manifest = NULL;
	if (incident_manifest_read(daemon->store, folder, &manifest) < 0)
		return;
	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(manifest, "firings"))
	{
		struct triggers_firing firing;
		json_read_firing(item, &firing);
		add_known(daemon, firing.trigger, firing.t0_ns, true);
	}
	cJSON_Delete(manifest);
}

void daemon_watch_known(struct daemon *daemon)
{
	struct incidents_entry *entries;
	size_t count;
	if (incidents_store_list(daemon->store, &entries, &count) == 0) {
		for (size_t i = count > KNOWN_INCIDENTS ? count - KNOWN_INCIDENTS : 0; i < count; i++)
			if (entries[i].readable)
				add_known_incident(daemon, entries[i].folder);
		free(entries);
	}
	for (size_t i = 0; i < producers_count(daemon->producers); i++) {
		struct drec_pin pins[DREC_PINS_MAX];
		if (drec_pins_read(producers_at(daemon->producers, i)->reader, pins) < 0)
			continue;
		for (size_t j = 0; j < DREC_PINS_MAX; j++) {
			if (!pins[j].active || memcmp(pins[j].store, incidents_store_id(daemon->store), 16) != 0)
				continue;
			char trigger[sizeof(pins[j].trigger) + 1] = "";
			memcpy(trigger, pins[j].trigger, sizeof(pins[j].trigger));
			add_known(daemon, trigger, pins[j].t0_ns, true);
		}
	}
}

static void open_incident(struct daemon *daemon, const struct triggers_firing *firing)
{
	char id[INCIDENTS_ID_TEXT] = "";
	bool manual = strcmp(firing->trigger, "manual") == 0;
	if (is_known(daemon, firing, false)) {
		log_info("incident.known", "%s at the same time is an incident already", firing->trigger);
		return;
	}
	int result = manual && daemon->manual_last_ns > 0
			     ? incidents_manual(daemon->incidents, firing, daemon->manual_last_ns, id)
			     : incidents_firing(daemon->incidents, firing, id);
	if (result < 0) {
		log_warnx("incident.refused", "%s: %s; %s", firing->trigger, strerror(-result), firing->evidence);
		return;
	}
	add_known(daemon, firing->trigger, firing->t0_ns, false);
	if (manual)
		snprintf(daemon->manual_id, sizeof(daemon->manual_id), "%s", id);
	log_record("incident.opened", "%.8s %s %s: %s", id, triggers_severity_name(firing->severity),
		   firing->trigger, firing->evidence);
	daemon->save_soon = true;
}

/* It joins the incident that waits; without one it opens its own. */
static void join_incident(struct daemon *daemon, const struct triggers_firing *firing)
{
	if (!is_known(daemon, firing, true) && incidents_join(daemon->incidents, firing) == -ENOENT)
		open_incident(daemon, firing);
}

static void act_on_firing(struct daemon *daemon, const struct daemon_told *told)
{
	struct triggers_firing *firing = told->firing;
	bool manual = strcmp(firing->trigger, "manual") == 0;
	enrich(daemon, firing);
	shift(daemon, firing);
	if (manual)
		daemon->manual_gate = told->gate;
	/* Where a window of its own was asked for, another incident's is no answer. */
	if (told->gate == TRIGGERS_PASSED || (manual && daemon->manual_last_ns > 0))
		open_incident(daemon, firing);
	else
		join_incident(daemon, firing);
}

static void act_on(struct daemon *daemon, const struct daemon_told *told)
{
	switch (told->what) {
	case TOLD_FIRING:
		act_on_firing(daemon, told);
		break;
	case TOLD_PROGRESS:
		shift(daemon, told->firing);
		incidents_progress(daemon->incidents, told->firing, told->ns + daemon_incident_shift(daemon));
		break;
	case TOLD_SUSPICION:
		daemon->suspicions++;
		incidents_suspicion(daemon->incidents, told->series_id, told->source,
				    told->ns + daemon_incident_shift(daemon));
		break;
	case TOLD_SUSPICION_END:
		daemon->suspicions -= daemon->suspicions > 0;
		incidents_suspicion_end(daemon->incidents, told->series_id, told->source);
		break;
	}
}

void daemon_watch_act(struct daemon *daemon)
{
	/* Acting may let the engine speak again: those words are appended and acted upon as well. */
	for (size_t i = 0; i < daemon->n_told; i++) {
		struct daemon_told told = daemon->told[i];
		daemon->told[i].firing = NULL;
		act_on(daemon, &told);
		free(told.firing);
	}
	if (daemon->joined_more)
		incidents_joined_more(daemon->incidents, daemon->joined_more);
	daemon->n_told = daemon->n_joining = 0;
	daemon->joined_more = 0;
}

void daemon_watch_tick(struct daemon *daemon)
{
	triggers_engine_tick(daemon->engine, clock_record_ns(&daemon->clock));
	daemon_watch_act(daemon);
}

void daemon_watch_crash(struct daemon *daemon, struct producer *producer, const char *evidence)
{
	char text[TRIGGERS_TEXT_MAX], hang[128] = "";
	producers_look(daemon->producers, producer);
	bool hung = describe_hang(daemon, producer, hang, sizeof(hang));
	snprintf(text, sizeof(text), "%.110s%s%s", evidence, hung ? "; " : "", hung ? hang : "");
	int64_t now_ns = clock_record_ns(&daemon->clock);
	int64_t last_ns = producer->last_event_ns > 0 ? producer->last_event_ns : now_ns;
	plain_text(text, sizeof(text), text, strlen(text));
	triggers_engine_crash(daemon->engine, producer->source, producer->rank, last_ns, now_ns, text);
	daemon_watch_act(daemon);
}

void daemon_capture(struct daemon *daemon, int64_t for_ns)
{
	int64_t now_ns = clock_record_ns(&daemon->clock);
	triggers_engine_capture(daemon->engine, now_ns, ns_add(now_ns, for_ns));
}

int daemon_trigger(struct daemon *daemon, int64_t last_ns, const char *reason, char *ret_id, size_t id_room,
		   const char **ret_gate)
{
	int64_t now_ns = clock_record_ns(&daemon->clock);
	uint32_t source = 0, rank = UINT32_MAX;
	if (producers_count(daemon->producers) > 0) {
		source = producers_at(daemon->producers, 0)->source;
		rank = producers_at(daemon->producers, 0)->rank;
	}
	daemon->manual_last_ns = last_ns;
	daemon->manual_id[0] = 0;
	daemon->manual_gate = TRIGGERS_GATE_LIMIT;
	char said[TRIGGERS_TEXT_MAX];
	plain_text(said, sizeof(said), reason, strlen(reason));
	triggers_engine_manual(daemon->engine, source, rank, now_ns, now_ns, said);
	daemon_watch_act(daemon);
	daemon->manual_last_ns = 0;
	if (!daemon->manual_id[0]) {
		*ret_gate = daemon->manual_gate == TRIGGERS_PASSED ? "store" : triggers_gate_name(daemon->manual_gate);
		return -EBUSY;
	}
	snprintf(ret_id, id_room, "%s", daemon->manual_id);
	return 0;
}
