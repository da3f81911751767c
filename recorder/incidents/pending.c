/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pending/<id>.json: what an incident is, from its pins until everybody was told. With the pins in the rings
 * it is all that a later daemon needs to finish the incident.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "manifest.h"
#include "plain_text.h"
#include "point.h"

enum { RECORD_BYTES_MAX = 4 << 20 };

static void record_name(char ret_name[INCIDENTS_ID_TEXT + 8], const char *id)
{
	snprintf(ret_name, INCIDENTS_ID_TEXT + 8, "%s.json", id);
}

static void add_rings(const struct incident *incident, cJSON *root)
{
	cJSON *list = cJSON_AddArrayToObject(root, "rings");

	for (unsigned i = 0; i < incident->n_rings; i++) {
		const struct incident_ring *ring = &incident->rings[i];
		cJSON *json = cJSON_CreateObject();

		cJSON_AddStringToObject(json, "name", ring->name);
		cJSON_AddStringToObject(json, "path", ring->path ? ring->path : "");
		json_add_hex(json, "ring_id", ring->ring_id, sizeof(ring->ring_id));
		cJSON_AddStringToObject(json, "job", ring->job);
		cJSON_AddStringToObject(json, "host", ring->host);
		cJSON_AddNumberToObject(json, "source", ring->source);
		cJSON_AddNumberToObject(json, "rank", ring->rank);
		cJSON_AddNumberToObject(json, "clock", ring->clock);
		json_add_u64(json, "pid", ring->pid);
		json_add_ns(json, "born_ns", ring->born_ns);
		cJSON_AddBoolToObject(json, "copied", ring->copied);
		cJSON_AddStringToObject(json, "why_copied", ring->why_copied);
		json_add_u64(json, "from0", ring->pin[0].from);
		json_add_u64(json, "from1", ring->pin[1].from);
		cJSON_AddItemToArray(list, json);
	}
}

static void add_open(const struct incident *incident, cJSON *root)
{
	cJSON *list = cJSON_AddArrayToObject(root, "open");

	for (unsigned i = 0; i < incident->n_open; i++) {
		const struct incident_open *open = &incident->open[i];
		cJSON *json = cJSON_CreateObject();

		cJSON_AddNumberToObject(json, "ring", open->ring);
		cJSON_AddNumberToObject(json, "tid", open->tid);
		cJSON_AddNumberToObject(json, "depth", open->depth);
		cJSON_AddNumberToObject(json, "mark", open->mark);
		json_add_ns(json, "start_ns", open->start_ns);
		json_add_ns(json, "seen_ns", open->seen_ns);
		json_add_ns(json, "step", open->step);
		cJSON_AddBoolToObject(json, "moving", open->moving);
		cJSON_AddStringToObject(json, "thread", open->thread);
		cJSON_AddStringToObject(json, "name", open->name);
		cJSON_AddItemToArray(list, json);
	}
}

static cJSON *record_json(const struct incident *incident)
{
	cJSON *root = cJSON_CreateObject(), *list;

	cJSON_AddStringToObject(root, "schema", INCIDENT_PENDING_SCHEMA);
	cJSON_AddStringToObject(root, "id", incident->id_text);
	cJSON_AddStringToObject(root, "folder", incident->folder);
	cJSON_AddStringToObject(root, "trigger", incident_first(incident)->trigger);
	cJSON_AddStringToObject(root, "host", incident->host);
	cJSON_AddStringToObject(root, "continues", incident->continues);
	json_add_hex(root, "boot_id", incident->boot_id, sizeof(incident->boot_id));
	json_add_ns(root, "mono_to_unix_ns", incident->mono_to_unix_ns);
	json_add_ns(root, "post_ns", incident->post_ns);
	json_add_ns(root, "longest_ns", incident->longest_ns);
	json_add_ns(root, "pin_took_ns", incident->pin_took_ns);
	json_add_u64(root, "bytes_max", incident->bytes_max);
	json_add_ns(root, "resolved_ns", incident->resolved_ns);
	list = cJSON_AddArrayToObject(root, "windows");
	for (unsigned i = 0; i < incident->n_windows; i++) {
		cJSON *window = cJSON_CreateObject();

		json_add_ns(window, "a_ns", incident->window[i].a_ns);
		json_add_ns(window, "b_ns", incident->window[i].b_ns);
		cJSON_AddItemToArray(list, window);
	}
	list = cJSON_AddArrayToObject(root, "firings");
	for (unsigned i = 0; i < incident->n_firings; i++)
		cJSON_AddItemToArray(list, json_firing(&incident->firing[i]));
	cJSON_AddNumberToObject(root, "more_firings", incident->more_firings);
	add_rings(incident, root);
	add_open(incident, root);
	return root;
}

int incident_record(struct incident *incident, struct incidents_store *store)
{
	char name[INCIDENTS_ID_TEXT + 8], *text;
	cJSON *json = record_json(incident);
	int r = -ENOMEM;

	record_name(name, incident->id_text);
	plain_text_json(json);
	text = cJSON_PrintUnformatted(json);
	cJSON_Delete(json);
	if (text)
		r = files_replace(incidents_store_pending_fd(store), name, text, strlen(text));
	if (r == 0) {
		free(incident->manifest);
		incident->manifest = strdup(text);
	}
	cJSON_free(text);
	INCIDENT_POINT(recorded);
	return r;
}

static uint32_t number(const cJSON *object, const char *name, uint32_t limit)
{
	double value = json_number(object, name, 0);

	return value >= 0 && value <= (double)limit ? (uint32_t)value : limit;
}

static int read_rings(struct incident *incident, const cJSON *list)
{
	const cJSON *json;
	int count = cJSON_GetArraySize(list);

	if (count > INCIDENTS_RINGS_MAX)
		return -EBADMSG;
	incident->rings = calloc((size_t)count + 1, sizeof(*incident->rings));
	if (!incident->rings)
		return -ENOMEM;
	cJSON_ArrayForEach(json, list)
	{
		struct incident_ring *ring = &incident->rings[incident->n_rings++];
		char path[INCIDENTS_PATH_MAX];

		ring->fd = -1;
		json_text(json, "name", ring->name, sizeof(ring->name));
		json_text(json, "path", path, sizeof(path));
		json_text(json, "job", ring->job, sizeof(ring->job));
		json_text(json, "host", ring->host, sizeof(ring->host));
		json_text(json, "why_copied", ring->why_copied, sizeof(ring->why_copied));
		ring->source = number(json, "source", UINT32_MAX);
		ring->rank = number(json, "rank", UINT32_MAX);
		ring->clock = number(json, "clock", DREC_CLOCK_UNIX);
		ring->pid = json_u64(json, "pid", 0);
		ring->born_ns = json_ns(json, "born_ns", 0);
		ring->copied = json_true(json, "copied");
		ring->pin[0].from = json_u64(json, "from0", 0);
		ring->pin[1].from = json_u64(json, "from1", 0);
		ring->path = strdup(path);
		if (!ring->path || strchr(ring->name, '/') ||
		    json_hex(json, "ring_id", ring->ring_id, sizeof(ring->ring_id)) < 0)
			return -EBADMSG;
	}
	return 0;
}

static int read_open(struct incident *incident, const cJSON *list)
{
	const cJSON *json;

	incident->open = calloc(INCIDENT_OPEN_MAX, sizeof(*incident->open));
	if (!incident->open)
		return -ENOMEM;
	cJSON_ArrayForEach(json, list)
	{
		struct incident_open *open = &incident->open[incident->n_open];

		open->ring = number(json, "ring", INCIDENTS_RINGS_MAX);
		if (incident->n_open == INCIDENT_OPEN_MAX || open->ring >= incident->n_rings)
			return -EBADMSG;
		open->tid = number(json, "tid", UINT32_MAX);
		open->depth = number(json, "depth", UINT32_MAX);
		open->mark = number(json, "mark", DREC_MARK_LIMIT);
		open->start_ns = json_ns(json, "start_ns", 0);
		open->seen_ns = json_ns(json, "seen_ns", 0);
		open->step = json_ns(json, "step", -1);
		open->moving = json_true(json, "moving");
		json_text(json, "thread", open->thread, sizeof(open->thread));
		json_text(json, "name", open->name, sizeof(open->name));
		incident->n_open++;
	}
	return 0;
}

static int read_windows(struct incident *incident, const cJSON *root)
{
	const cJSON *json;

	cJSON_ArrayForEach(json, cJSON_GetObjectItemCaseSensitive(root, "windows"))
	{
		if (incident->n_windows == INCIDENT_WINDOWS_MAX)
			return -EBADMSG;
		incident->window[incident->n_windows].a_ns = json_ns(json, "a_ns", 0);
		incident->window[incident->n_windows++].b_ns = json_ns(json, "b_ns", 0);
	}
	cJSON_ArrayForEach(json, cJSON_GetObjectItemCaseSensitive(root, "firings"))
	{
		if (incident->n_firings == INCIDENT_FIRINGS_MAX)
			return -EBADMSG;
		json_read_firing(json, &incident->firing[incident->n_firings++]);
	}
	return incident->n_windows && incident->n_firings ? 0 : -EBADMSG;
}

static int read_record(struct incident *incident, const cJSON *root)
{
	char schema[32];
	int r;

	json_text(root, "schema", schema, sizeof(schema));
	json_text(root, "id", incident->id_text, sizeof(incident->id_text));
	json_text(root, "folder", incident->folder, sizeof(incident->folder));
	json_text(root, "host", incident->host, sizeof(incident->host));
	json_text(root, "continues", incident->continues, sizeof(incident->continues));
	if (strcmp(schema, INCIDENT_PENDING_SCHEMA) != 0 || !incident->folder[0] ||
	    incident->folder[0] == '.' || strchr(incident->folder, '/') ||
	    incidents_id_parse(incident->id_text, incident->id) < 0 ||
	    json_hex(root, "boot_id", incident->boot_id, sizeof(incident->boot_id)) < 0)
		return -EBADMSG;
	incident->mono_to_unix_ns = json_ns(root, "mono_to_unix_ns", 0);
	incident->post_ns = json_ns(root, "post_ns", 0);
	incident->longest_ns = json_ns(root, "longest_ns", 0);
	incident->pin_took_ns = json_ns(root, "pin_took_ns", 0);
	incident->bytes_max = json_u64(root, "bytes_max", 0);
	incident->resolved_ns = json_ns(root, "resolved_ns", 0);
	incident->more_firings = number(root, "more_firings", UINT32_MAX);
	r = read_windows(incident, root);
	if (r == 0)
		r = read_rings(incident, cJSON_GetObjectItemCaseSensitive(root, "rings"));
	if (r == 0)
		r = read_open(incident, cJSON_GetObjectItemCaseSensitive(root, "open"));
	return r;
}

int incident_record_read(struct incidents_store *store, const char *name, struct incident **ret_incident)
{
	struct incident *incident = incident_new();
	char *text = NULL;
	size_t bytes;
	cJSON *json;
	int r;

	if (!incident)
		return -ENOMEM;
	r = files_read(incidents_store_pending_fd(store), name, RECORD_BYTES_MAX, &text, &bytes);
	if (r == 0) {
		json = cJSON_ParseWithOpts(text, NULL, 1);
		r = json ? read_record(incident, json) : -EBADMSG;
		cJSON_Delete(json);
	}
	free(text);
	if (r == 0)
		*ret_incident = incident;
	else
		incident_free(incident);
	return r;
}

int incident_record_remove(struct incident *incident, struct incidents_store *store)
{
	int fd = incidents_store_pending_fd(store), r;
	char name[INCIDENTS_ID_TEXT + 8];

	/* What was gathered first: a record without it is finished again, not the other way round. */
	r = files_remove(fd, incident->id_text);
	record_name(name, incident->id_text);
	if (r == 0)
		r = files_remove(fd, name);
	if (r == 0)
		r = files_sync_folder(fd);
	INCIDENT_POINT(pending_removed);
	return r;
}
