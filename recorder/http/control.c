/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon tells and is told:
 *
 *     GET  /api/v1/status           what it reads and believes
 *     GET  /api/v1/steps            how each ring's steps go; cheap: for who asks once a second
 *     GET  /api/v1/incidents        those kept, newest first, and how many are open
 *     GET  /api/v1/incidents/<id>   one of them; 404 while it is not yet written
 *     POST /api/v1/capture          {"for": "2 s"}: a profiler runs from now on for so long, and what it
 * slows is no anomaly POST /api/v1/trigger          {"last": "2 min", "reason": "…"} -> {"id"}
 */
#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon_inside.h"
#include "ns.h"
#include "output.h"
#include "units.h"
#include "version.h"

enum { LIST_MAX = 200, SCHEMA = 1 };

static const int64_t CAPTURE_MAX_NS = 600000000000;

/* The belief about a ring's steps: the step series with the most samples. */
static bool step_belief(const struct daemon *daemon, uint32_t source, struct triggers_belief *ret)
{
	uint32_t count = triggers_engine_series_count(daemon->engine);
	bool found = false;
	for (uint32_t id = 0; id < count; id++) {
		struct triggers_belief belief;
		if (triggers_engine_role(daemon->engine, id) != TRIGGERS_STEP ||
		    triggers_engine_belief(daemon->engine, id, &belief) < 0 || belief.key.source != source || (found && belief.samples <= ret->samples))
			continue;
		*ret = belief;
		found = true;
	}
	return found;
}

static cJSON *open_json(const struct daemon *daemon, const struct producer *producer)
{
	cJSON *list = cJSON_CreateArray();
	int64_t now_ns = clock_record_ns(&daemon->clock);
	for (size_t i = 0; i < producer->n_open && i < 64; i++) {
		const struct drec_open_info *open = &producer->open[i];
		char name[TRIGGERS_NAME_MAX] = "";
		cJSON *item = cJSON_CreateObject();
		if (producer->intake)
			intake_name(producer->intake, open->name, name, sizeof(name));
		output_json_text(item, "name", name);
		output_json_count(item, "tid", open->tid);
		output_json_count(item, "depth", open->depth);
		if (open->mark == DREC_MARK_STEP_BEGIN)
			output_json_count(item, "step", open->step);
		output_json_ns(item, "for_ns", ns_sub(now_ns, drec_reader_unix_ns(producer->reader, open->start)));
		cJSON_AddItemToArray(list, item);
	}
	return list;
}

static const char *life_name(enum producer_life life)
{
	return life == PRODUCER_ALIVE ? "alive" : life == PRODUCER_ENDED ? "ended" : "crashed";
}

/* What is believed of a ring's steps, with the limits that latency_spike and stall judge by. */
static void add_belief(cJSON *item, const struct daemon *daemon, const struct producer *producer)
{
	struct triggers_belief belief = {0};
	bool steps = step_belief(daemon, producer->source, &belief);
	output_json_signed(item, "step", series_last_step(daemon->series, producer->source));
	output_json_ns(item, "step_median_ns", steps ? (int64_t)belief.median : 0);
	output_json_ns(item, "step_ceiling_ns", steps ? (int64_t)belief.ceiling : 0);
	output_json_ns(item, "step_warn_ns", steps ? (int64_t)belief.warn : 0);
	output_json_ns(item, "step_critical_ns", steps ? (int64_t)belief.critical : 0);
	output_json_ns(item, "step_deadline_ns", steps ? (int64_t)belief.deadline_ns : 0);
	cJSON_AddBoolToObject(item, "learned", steps && belief.warm);
}

static cJSON *ring_json(const struct daemon *daemon, const struct producer *producer)
{
	const struct drec_header *header = drec_reader_header(producer->reader);
	cJSON *item = cJSON_CreateObject();
	int64_t depth_ns = producer_depth_ns(producer, clock_mono_ns());
	output_json_text(item, "path", producer->path);
	output_json_text(item, "job", header->job);
	output_json_text(item, "name", header->name);
	if (producer->rank != UINT32_MAX)
		output_json_count(item, "rank", producer->rank);
	output_json_count(item, "pid", header->pid);
	output_json_text(item, "life", life_name(producer->life));
	output_json_text(item, "access", drec_reader_writable(producer->reader) ? "pin" : "copy");
	add_belief(item, daemon, producer);
	output_json_count(item, "events", producer->stats.events);
	output_json_count(item, "lost", producer->stats.lost);
	output_json_count(item, "unread", producer->stats.overwritten);
	output_json_count(item, "corrupt_bytes", producer->stats.corrupt_bytes);
	output_json_ns(item, "last_event_ns", producer->last_event_ns);
	if (depth_ns != INT64_MAX)
		output_json_ns(item, "depth_ns", depth_ns);
	cJSON_AddItemToObject(item, "open", open_json(daemon, producer));
	return item;
}

static cJSON *totals_json(const struct daemon *daemon)
{
	struct producers_totals totals;
	cJSON *item = cJSON_CreateObject();
	producers_totals(daemon->producers, &totals);
	output_json_count(item, "events", totals.events);
	output_json_count(item, "bytes", totals.bytes);
	output_json_count(item, "lost", totals.lost);
	output_json_count(item, "unread", totals.overwritten);
	output_json_count(item, "corrupt_bytes", totals.corrupt_bytes);
	output_json_count(item, "rings_seen", totals.rings_seen);
	output_json_count(item, "rings_refused", totals.rings_refused);
	output_json_count(item, "rings_removed", totals.rings_removed);
	output_json_count(item, "crashed", totals.crashed);
	output_json_count(item, "alive", totals.alive);
	output_json_count(item, "dead", totals.dead);
	return item;
}

static cJSON *triggers_json(const struct daemon *daemon)
{
	const struct series_counters *counters = series_counters(daemon->series);
	cJSON *item = cJSON_CreateObject();
	cJSON *gates = cJSON_AddObjectToObject(item, "gates");
	cJSON *list = cJSON_AddArrayToObject(item, "suppressed");
	output_json_count(item, "series_alarming", counters->alarming);
	output_json_count(item, "series_followed", counters->followed);
	output_json_count(item, "samples", counters->samples);
	output_json_count(item, "samples_left_out", counters->left_out);
	output_json_count(item, "no_room", counters->no_room);
	output_json_count(item, "unheard", daemon->told_dropped);
	for (unsigned gate = 0; gate < TRIGGERS_GATE_LIMIT; gate++)
		if (daemon->gated[gate])
			output_json_count(gates, triggers_gate_name(gate), daemon->gated[gate]);
	output_json_count(item, "suppressed_lines", suppressed_count(daemon->suppressed));
	size_t skip = suppressed_count(daemon->suppressed);
	const struct suppressed_line *line = suppressed_oldest(daemon->suppressed);
	for (; line; line = suppressed_newer(daemon->suppressed, line))
		if (skip-- <= DAEMON_SUPPRESSED_SHOWN)
			cJSON_AddItemToArray(list, suppressed_json(line));
	return item;
}

static cJSON *incidents_json(const struct daemon *daemon)
{
	const struct incidents_counters *counters = incidents_counters(daemon->incidents);
	struct incidents_entry *entries;
	size_t count, critical = 0;
	cJSON *item = cJSON_CreateObject();
	output_json_count(item, "open", counters->open);
	output_json_count(item, "opened", counters->opened);
	output_json_count(item, "published", counters->published);
	output_json_count(item, "complete", counters->complete);
	output_json_count(item, "partial", counters->partial);
	output_json_count(item, "refused", counters->refused);
	output_json_count(item, "adopted", counters->adopted);
	output_json_ns(item, "pin_worst_ns", (int64_t)counters->pin_worst_ns);
	if (incidents_store_list(daemon->store, &entries, &count) < 0)
		return item;
	for (size_t i = 0; i < count; i++)
		critical += entries[i].severity == TRIGGERS_CRITICAL;
	output_json_count(item, "kept", count);
	output_json_count(item, "critical", critical);
	free(entries);
	return item;
}

static cJSON *clock_json(const struct daemon *daemon)
{
	cJSON *item = cJSON_CreateObject();
	cJSON *list = cJSON_AddArrayToObject(item, "events");
	output_json_ns(item, "offset_ns", clock_unix_offset_ns(&daemon->clock));
	for (size_t i = 0; i < daemon->clock.n_events; i++) {
		const struct clock_event *event = &daemon->clock.events[i];
		cJSON *entry = cJSON_CreateObject();
		output_json_text(entry, "what", clock_event_name(event->kind));
		output_json_ns(entry, "at_ns", event->mono_ns + daemon->clock.offset_ns);
		output_json_ns(entry, "by_ns", event->amount_ns);
		cJSON_AddItemToArray(list, entry);
	}
	return item;
}

static cJSON *feed_json(const struct daemon *daemon)
{
	struct feed_counters counters;
	cJSON *item = cJSON_CreateObject();
	feed_counters(daemon->feed, &counters);
	output_json_count(item, "events", counters.events);
	output_json_count(item, "bytes", counters.bytes);
	output_json_count(item, "lost", counters.lost);
	output_json_count(item, "damaged", counters.damaged);
	cJSON_AddBoolToObject(item, "ended", feed_ended(daemon->feed));
	if (counters.problem[0])
		output_json_text(item, "problem", counters.problem);
	return item;
}

static void get_status(void *context, const struct http_request *request, struct http_answer *answer)
{
	const struct daemon *daemon = context;
	cJSON *json = cJSON_CreateObject();
	(void)request;
	output_json_count(json, "schema", SCHEMA);
	output_json_text(json, "version", version_text());
	output_json_count(json, "pid", (uint64_t)getpid());
	output_json_ns(json, "started_ns", daemon->started_ns);
	output_json_ns(json, "now_ns", clock_record_ns(&daemon->clock));
	output_json_text(json, "run_dir", daemon->run_dir);
	output_json_text(json, "store", daemon->store_path);
	cJSON *rings = cJSON_AddArrayToObject(json, "rings");
	for (size_t i = 0; i < producers_count(daemon->producers); i++)
		cJSON_AddItemToArray(rings, ring_json(daemon, producers_at(daemon->producers, i)));
	cJSON_AddItemToObject(json, "totals", totals_json(daemon));
	cJSON_AddItemToObject(json, "triggers", triggers_json(daemon));
	cJSON_AddItemToObject(json, "incidents", incidents_json(daemon));
	cJSON_AddItemToObject(json, "clock", clock_json(daemon));
	if (daemon->feed)
		cJSON_AddItemToObject(json, "feed", feed_json(daemon));
	answer->json = json;
}

/* Touches no disk and no ring. Whoever asks is looking on: the macro view is then committed more often. */
static void get_steps(void *context, const struct http_request *request, struct http_answer *answer)
{
	struct daemon *daemon = context;
	cJSON *json = cJSON_CreateObject();
	(void)request;
	daemon->watched_mono_ns = clock_mono_ns();
	output_json_count(json, "schema", SCHEMA);
	output_json_ns(json, "now_ns", clock_record_ns(&daemon->clock));
	output_json_count(json, "incidents_open", incidents_counters(daemon->incidents)->open);
	cJSON *rings = cJSON_AddArrayToObject(json, "rings");
	for (size_t i = 0; i < producers_count(daemon->producers); i++) {
		const struct producer *producer = producers_at(daemon->producers, i);
		cJSON *item = cJSON_CreateObject();
		output_json_text(item, "source", producer->key);
		output_json_text(item, "job", drec_reader_header(producer->reader)->job);
		output_json_text(item, "name", drec_reader_header(producer->reader)->name);
		output_json_text(item, "life", life_name(producer->life));
		add_belief(item, daemon, producer);
		cJSON_AddItemToObject(item, "open", open_json(daemon, producer));
		cJSON_AddItemToArray(rings, item);
	}
	answer->json = json;
}

static cJSON *entry_json(const struct daemon *daemon, const struct incidents_entry *entry)
{
	char path[INCIDENTS_PATH_MAX + INCIDENTS_FOLDER_MAX + 16];
	cJSON *item = cJSON_CreateObject();
	snprintf(path, sizeof(path), "%s/incidents/%s", daemon->store_path, entry->folder);
	output_json_text(item, "id", entry->id);
	output_json_text(item, "folder", path);
	output_json_text(item, "trigger", entry->trigger);
	output_json_text(item, "severity", triggers_severity_name(entry->severity));
	output_json_text(item, "job", entry->job);
	output_json_text(item, "verdict", entry->verdict);
	output_json_text(item, "sentence", entry->sentence);
	output_json_ns(item, "t0_ns", entry->t0_ns);
	output_json_ns(item, "detected_ns", entry->detected_ns);
	output_json_ns(item, "resolved_ns", entry->resolved_ns);
	output_json_signed(item, "step", entry->step);
	if (entry->rank != UINT32_MAX)
		output_json_count(item, "rank", entry->rank);
	cJSON_AddBoolToObject(item, "ongoing", entry->ongoing);
	cJSON_AddBoolToObject(item, "kept", entry->kept);
	return item;
}

static void get_incidents(void *context, const struct http_request *request, struct http_answer *answer)
{
	const struct daemon *daemon = context;
	struct incidents_entry *entries;
	size_t count;
	(void)request;
	int result = incidents_store_list(daemon->store, &entries, &count);
	if (result < 0) {
		http_answer_error(answer, MHD_HTTP_INTERNAL_SERVER_ERROR, "the store cannot be read: %s",
				  strerror(-result));
		return;
	}
	cJSON *json = cJSON_CreateObject();
	cJSON *list = cJSON_AddArrayToObject(json, "incidents");
	for (size_t i = count; i > 0 && count - i < LIST_MAX; i--)
		cJSON_AddItemToArray(list, entry_json(daemon, &entries[i - 1]));
	output_json_count(json, "kept", count);
	output_json_count(json, "open", incidents_counters(daemon->incidents)->open);
	free(entries);
	answer->json = json;
}

static void get_incident(void *context, const struct http_request *request, struct http_answer *answer)
{
	const struct daemon *daemon = context;
	struct incidents_entry entry;
	int result = incidents_store_find(daemon->store, request->rest, &entry);
	if (result == -ENOENT)
		http_answer_error(answer, MHD_HTTP_NOT_FOUND, "there is no incident %s (yet)", request->rest);
	else if (result == -EEXIST)
		http_answer_error(answer, MHD_HTTP_CONFLICT, "%s fits several incidents", request->rest);
	else if (result < 0)
		http_answer_error(answer, MHD_HTTP_BAD_REQUEST, "%s is no incident's id", request->rest);
	else
		answer->json = entry_json(daemon, &entry);
}

static bool is_text_or_none(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItem(object, name);
	return !item || cJSON_IsNull(item) || cJSON_IsString(item);
}

static void post_trigger(void *context, const struct http_request *request, struct http_answer *answer)
{
	struct daemon *daemon = context;
	char id[INCIDENTS_ID_TEXT];
	const char *gate = "";
	int64_t last_ns = 0;
	const char *last = cJSON_GetStringValue(cJSON_GetObjectItem(request->body, "last"));
	const char *reason = cJSON_GetStringValue(cJSON_GetObjectItem(request->body, "reason"));
	if (request->body && (!cJSON_IsObject(request->body) || !is_text_or_none(request->body, "last") ||
			      !is_text_or_none(request->body, "reason"))) {
		http_answer_error(answer, MHD_HTTP_BAD_REQUEST, "the body must read {\"last\": \"2 min\", \"reason\": \"…\"}");
		return;
	}
	if (last && (units_parse_duration(last, &last_ns) < 0 || last_ns <= 0)) {
		http_answer_error(answer, MHD_HTTP_BAD_REQUEST, "\"last\" is \"%.64s\", which is no time like \"2 min\"",
				  last);
		return;
	}
	int result = daemon_trigger(daemon, last_ns, reason ? reason : "asked for over HTTP", id, sizeof(id), &gate);
	if (result < 0) {
		http_answer_error(answer, MHD_HTTP_CONFLICT, "no incident of its own was opened: %s", gate);
		return;
	}
	answer->json = cJSON_CreateObject();
	output_json_text(answer->json, "id", id);
}

/* Whoever captures says so: the daemon's own sources do it themselves. */
static void post_capture(void *context, const struct http_request *request, struct http_answer *answer)
{
	struct daemon *daemon = context;
	const char *length = cJSON_GetStringValue(cJSON_GetObjectItem(request->body, "for"));
	int64_t for_ns = 0;
	if (!length || units_parse_duration(length, &for_ns) < 0 || for_ns <= 0 || for_ns > CAPTURE_MAX_NS) {
		http_answer_error(answer, MHD_HTTP_BAD_REQUEST,
				  "the body must read {\"for\": \"2 s\"}, at most 10 min");
		return;
	}
	daemon_capture(daemon, for_ns);
	answer->json = cJSON_CreateObject();
	output_json_ns(answer->json, "for_ns", for_ns);
}

const struct http_route daemon_routes[] = {
	{"GET", "/api/v1/status", get_status},
	{"GET", "/api/v1/steps", get_steps},
	{"GET", "/api/v1/incidents", get_incidents},
	{"GET", "/api/v1/incidents/*", get_incident},
	{"POST", "/api/v1/capture", post_capture},
	{"POST", "/api/v1/trigger", post_trigger},
	{NULL, NULL, NULL},
};
