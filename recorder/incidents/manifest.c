/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "files.h"
#include "ns.h"
#include "plain_text.h"

static cJSON *window_json(int64_t a_ns, int64_t b_ns)
{
	cJSON *json = cJSON_CreateObject();

	json_add_ns(json, "a_ns", a_ns);
	json_add_ns(json, "b_ns", b_ns);
	return json;
}

/* What all rings cover of a window without a gap. */
static struct incident_window covered(const struct incident *incident, unsigned which)
{
	struct incident_window all = incident->window[which];
	int64_t born_ns = INT64_MAX;

	for (unsigned i = 0; i < incident->n_rings; i++) {
		const struct incident_ring *ring = &incident->rings[i];

		for (unsigned f = 0; f < ring->n_raw; f++) {
			const struct drec_window *w = &ring->raw[f].window;
			bool first = w->a_ns <= ring->born_ns || w->a_ns <= incident->window[which].a_ns;

			if (ring->raw[f].error < 0 || w->b_ns < all.a_ns || w->a_ns > all.b_ns || w->complete)
				continue;
			if (first && w->covered_a_ns > all.a_ns && w->covered_a_ns > ring->born_ns)
				all.a_ns = w->covered_a_ns;
			if (w->b_ns >= incident->window[which].b_ns && w->covered_b_ns < all.b_ns)
				all.b_ns = w->covered_b_ns;
		}
		if (ring->n_raw == 0 && ring->born_ns < all.b_ns)
			all.b_ns = all.a_ns;
		if (ring->born_ns < born_ns)
			born_ns = ring->born_ns;
	}
	/* Before the first ring there was nothing, and nothing is claimed of that time. */
	if (incident->n_rings && born_ns > all.a_ns)
		all.a_ns = born_ns;
	if (all.b_ns < all.a_ns)
		all.b_ns = all.a_ns;
	return all;
}

static void add_windows(const struct incident *incident, cJSON *root)
{
	cJSON *list = cJSON_AddArrayToObject(root, "windows");

	for (unsigned i = 0; i < incident->n_windows; i++) {
		struct incident_window have = covered(incident, i);
		cJSON *json = cJSON_CreateObject();

		cJSON_AddStringToObject(json, "around", i ? "detection" : "t0");
		cJSON_AddItemToObject(json, "asked",
				      window_json(incident->window[i].a_ns, incident->window[i].b_ns));
		cJSON_AddItemToObject(json, "covered", window_json(have.a_ns, have.b_ns));
		cJSON_AddItemToArray(list, json);
	}
}

static const char *const clock_names[] = {"unknown", "tsc", "cntvct", "monotonic", "unix"};

static cJSON *raw_json(const struct incident_raw *raw)
{
	const struct drec_window *window = &raw->window;
	cJSON *json = cJSON_CreateObject();
	char path[INCIDENT_TEXT_MAX + 8];

	snprintf(path, sizeof(path), "raw/%s", raw->file);
	cJSON_AddStringToObject(json, "file", raw->error < 0 ? "" : path);
	cJSON_AddItemToObject(json, "asked", window_json(window->a_ns, window->b_ns));
	cJSON_AddItemToObject(json, "covered", window_json(window->covered_a_ns, window->covered_b_ns));
	json_add_u64(json, "events", raw->events);
	json_add_u64(json, "lost", window->lost);
	cJSON_AddBoolToObject(json, "complete", raw->error == 0 && window->complete);
	cJSON_AddNumberToObject(json, "incomplete_reason", window->reason);
	cJSON_AddBoolToObject(json, "copied_at_once", raw->early);
	if (raw->error < 0)
		cJSON_AddStringToObject(json, "error", strerror(-raw->error));
	return json;
}

static void add_rings(const struct incident *incident, cJSON *root)
{
	cJSON *list = cJSON_AddArrayToObject(root, "rings");

	for (unsigned i = 0; i < incident->n_rings; i++) {
		const struct incident_ring *ring = &incident->rings[i];
		cJSON *json = cJSON_CreateObject(), *raw;

		cJSON_AddStringToObject(json, "name", ring->name);
		cJSON_AddStringToObject(json, "path", ring->path ? ring->path : "");
		json_add_hex(json, "ring_id", ring->ring_id, sizeof(ring->ring_id));
		cJSON_AddStringToObject(json, "job", ring->job);
		if (ring->rank != UINT32_MAX)
			cJSON_AddNumberToObject(json, "rank", ring->rank);
		json_add_u64(json, "pid", ring->pid);
		cJSON_AddStringToObject(json, "clock",
					clock_names[ring->clock <= DREC_CLOCK_UNIX ? ring->clock : 0]);
		json_add_ns(json, "born_ns", ring->born_ns);
		cJSON_AddBoolToObject(json, "dead", ring->dead);
		cJSON_AddBoolToObject(json, "late", ring->late);
		cJSON_AddStringToObject(json, "kept_by", ring->copied ? "copy" : "pin");
		if (ring->copied)
			cJSON_AddStringToObject(json, "why_copied", ring->why_copied);
		raw = cJSON_AddArrayToObject(json, "windows");
		for (unsigned f = 0; f < ring->n_raw; f++)
			cJSON_AddItemToArray(raw, raw_json(&ring->raw[f]));
		cJSON_AddItemToArray(list, json);
	}
}

static void add_open(const struct incident *incident, cJSON *root)
{
	cJSON *list = cJSON_AddArrayToObject(root, "open_spans");

	for (unsigned i = 0; i < incident->n_open; i++) {
		const struct incident_open *open = &incident->open[i];
		const struct incident_ring *ring = &incident->rings[open->ring];
		cJSON *json = cJSON_CreateObject();

		cJSON_AddStringToObject(json, "ring", ring->name);
		if (ring->rank != UINT32_MAX)
			cJSON_AddNumberToObject(json, "rank", ring->rank);
		cJSON_AddNumberToObject(json, "tid", open->tid);
		cJSON_AddStringToObject(json, "thread", open->thread);
		cJSON_AddNumberToObject(json, "depth", open->depth);
		cJSON_AddStringToObject(json, "name", open->name);
		cJSON_AddStringToObject(json, "kind",
					open->mark == DREC_MARK_STEP_BEGIN ? "step"
					: open->mark                       ? "phase"
									   : "span");
		if (open->step >= 0)
			json_add_ns(json, "step", open->step);
		json_add_ns(json, "start_ns", open->start_ns);
		json_add_ns(json, "open_for_ns", ns_sub(open->seen_ns, open->start_ns));
		cJSON_AddBoolToObject(json, "moving", open->moving);
		cJSON_AddItemToArray(list, json);
	}
}

static void add_losses(const struct incident *incident, cJSON *root)
{
	cJSON *list = cJSON_AddArrayToObject(root, "losses");

	for (unsigned i = 0; i < incident->n_losses; i++) {
		const struct incident_loss *loss = &incident->loss[i];
		cJSON *json = cJSON_CreateObject();

		cJSON_AddStringToObject(json, "ring", incident->rings[loss->ring].name);
		cJSON_AddStringToObject(json, "reason", drec_loss_name(loss->reason));
		json_add_u64(json, "count", loss->count);
		json_add_ns(json, "first_ns", loss->first_ns);
		json_add_ns(json, "last_ns", loss->last_ns);
		cJSON_AddItemToArray(list, json);
	}
	if (incident->more_losses)
		cJSON_AddNumberToObject(root, "losses_not_listed", incident->more_losses);
}

static double share(const struct incident_coverage *coverage)
{
	return coverage->asked_ns > 0 ? (double)coverage->recorded_ns / (double)coverage->asked_ns : 0;
}

static cJSON *coverage_json(const struct incident_coverage *coverage)
{
	cJSON *json = cJSON_CreateObject(), *gaps;

	cJSON_AddStringToObject(json, "verdict", incident_verdict_name(coverage->verdict));
	cJSON_AddNumberToObject(json, "recorded_share", share(coverage));
	json_add_ns(json, "recorded_ns", coverage->recorded_ns);
	json_add_ns(json, "asked_ns", coverage->asked_ns);
	json_add_u64(json, "events", coverage->events);
	gaps = cJSON_AddArrayToObject(json, "gaps");
	for (unsigned i = 0; i < coverage->n_gaps; i++) {
		cJSON *gap = window_json(coverage->gap[i].a_ns, coverage->gap[i].b_ns);

		cJSON_AddStringToObject(gap, "why", coverage->gap[i].why);
		cJSON_AddItemToArray(gaps, gap);
	}
	if (coverage->more_gaps)
		cJSON_AddNumberToObject(json, "gaps_joined_into_last", coverage->more_gaps);
	if (coverage->before_end_ns)
		json_add_ns(json, "nearest_capture_before_end_ns", coverage->before_end_ns);
	if (coverage->after_begin_ns)
		json_add_ns(json, "nearest_capture_after_begin_ns", coverage->after_begin_ns);
	if (coverage->why[0])
		cJSON_AddStringToObject(json, "why", coverage->why);
	return json;
}

static void add_coverage(const struct incident *incident, cJSON *root)
{
	cJSON *json = cJSON_AddObjectToObject(root, "coverage");
	char sentence[256];

	for (unsigned i = 0; i < INCIDENT_CLASSES; i++)
		cJSON_AddItemToObject(json, incident_class_name(i), coverage_json(&incident->coverage[i]));
	incident_device_sentence(incident, sentence, sizeof(sentence));
	cJSON_AddStringToObject(root, "device_sentence", sentence);
}

static void add_clock(const struct incident *incident, cJSON *root)
{
	cJSON *json = cJSON_AddObjectToObject(root, "clock"), *changes;
	unsigned source = incident->n_rings ? incident->rings[0].clock : 0;

	cJSON_AddStringToObject(json, "source", clock_names[source <= DREC_CLOCK_UNIX ? source : 0]);
	json_add_ns(json, "mono_to_unix_ns", incident->mono_to_unix_ns);
	json_add_ns(json, "error_ns", incident->clock_error_ns);
	changes = cJSON_AddArrayToObject(json, "changes");
	for (unsigned i = 0; i < incident->n_clock_marks; i++) {
		cJSON *change = cJSON_CreateObject();

		cJSON_AddStringToObject(change, "what", incident->clock_mark[i].what);
		json_add_ns(change, "at_ns", incident->clock_mark[i].at_ns);
		json_add_ns(change, "by_ns", incident->clock_mark[i].by_ns);
		cJSON_AddItemToArray(changes, change);
	}
}

struct file_list {
	cJSON *files;
	char prefix[256];
	unsigned depth;
	unsigned count;
};

static int list_file(void *context, int dirfd, const char *name)
{
	struct file_list *list = context;
	size_t length = strlen(list->prefix);
	struct stat st;
	char text[520];
	uint64_t bytes;
	uint32_t crc;
	cJSON *json;
	int r;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode)) {
		if (list->depth >= FILES_DEPTH_MAX ||
		    (size_t)snprintf(list->prefix + length, sizeof(list->prefix) - length, "%s/", name) >=
			    sizeof(list->prefix) - length)
			return -ENAMETOOLONG;
		list->depth++;
		r = files_each(dirfd, name, list_file, list);
		list->depth--;
		list->prefix[length] = 0;
		return r;
	}
	if (!strncmp(name, "manifest.json", strlen("manifest.json")))
		return 0;
	if (list->count++ >= INCIDENT_FILES_MAX)
		return -E2BIG;
	r = files_crc(dirfd, name, &bytes, &crc);
	if (r < 0)
		return r;
	json = cJSON_CreateObject();
	snprintf(text, sizeof(text), "%s%s", list->prefix, name);
	cJSON_AddStringToObject(json, "path", text);
	json_add_u64(json, "bytes", bytes);
	snprintf(text, sizeof(text), "%08x", crc);
	cJSON_AddStringToObject(json, "crc32", text);
	cJSON_AddItemToArray(list->files, json);
	return 0;
}

static void add_texts(const struct incident *incident, cJSON *root)
{
	cJSON *notes = cJSON_AddArrayToObject(root, "notes");
	cJSON *firings = cJSON_AddArrayToObject(root, "firings");

	for (unsigned i = 0; i < incident->n_notes; i++)
		cJSON_AddItemToArray(notes, cJSON_CreateString(incident->note[i]));
	for (unsigned i = 0; i < incident->n_firings; i++)
		cJSON_AddItemToArray(firings, json_firing(&incident->firing[i]));
	if (incident->more_firings)
		cJSON_AddNumberToObject(root, "firings_not_listed", incident->more_firings);
}

static void add_head(const struct incident *incident, cJSON *root)
{
	const struct triggers_firing *first = incident_first(incident);
	enum triggers_severity severity = TRIGGERS_NOTE;
	uint32_t rank = incident_rank(incident);
	char utc[32];

	for (unsigned i = 0; i < incident->n_firings; i++) {
		if (incident->firing[i].severity > severity)
			severity = incident->firing[i].severity;
	}
	cJSON_AddStringToObject(root, "schema", INCIDENT_SCHEMA);
	cJSON_AddNumberToObject(root, "revision", incident->revision);
	cJSON_AddStringToObject(root, "id", incident->id_text);
	cJSON_AddStringToObject(root, "folder", incident->folder);
	cJSON_AddStringToObject(root, "written_by", "driverec " DRIVEREC_VERSION);
	cJSON_AddStringToObject(root, "sentence", incident->sentence);
	cJSON_AddStringToObject(root, "trigger", first->trigger);
	cJSON_AddStringToObject(root, "severity", triggers_severity_name(severity));
	cJSON_AddStringToObject(root, "verdict", incident_verdict_name(incident->verdict));
	if (incident->why_partial[0])
		cJSON_AddStringToObject(root, "why_partial", incident->why_partial);
	cJSON_AddStringToObject(root, "evidence", first->evidence);
	cJSON_AddStringToObject(root, "job", incident_job(incident));
	if (rank != UINT32_MAX)
		cJSON_AddNumberToObject(root, "rank", rank);
	cJSON_AddStringToObject(root, "host", incident->host);
	if (first->step >= 0)
		json_add_ns(root, "step", first->step);
	cJSON_AddStringToObject(root, "phase", first->phase);
	json_utc(utc, first->t0_ns);
	cJSON_AddStringToObject(root, "t0_utc", utc);
	json_add_ns(root, "t0_ns", first->t0_ns);
	json_add_ns(root, "detected_ns", first->detected_ns);
	json_add_ns(root, "pinned_in_ns", incident->pin_took_ns);
	cJSON_AddBoolToObject(root, "ongoing", incident_is_ongoing(incident));
	cJSON_AddBoolToObject(root, "quiet", incident_is_quiet(incident));
	if (incident->resolved_ns)
		json_add_ns(root, "resolved_ns", incident->resolved_ns);
	if (incident->continues[0])
		cJSON_AddStringToObject(root, "continues", incident->continues);
}

/* cJSON's text, in memory that free() frees whatever hooks cJSON has. */
static int print(cJSON *root, char **ret_text)
{
	plain_text_json(root);
	char *text = cJSON_Print(root), *copy = text ? strdup(text) : NULL;

	cJSON_free(text);
	if (!copy)
		return -ENOMEM;
	*ret_text = copy;
	return 0;
}

int incident_manifest(const struct incident *incident, int folder_fd, char **ret_text)
{
	cJSON *root = cJSON_CreateObject();
	struct file_list list = {0};
	int r;

	if (!root)
		return -ENOMEM;
	add_head(incident, root);
	add_texts(incident, root);
	add_windows(incident, root);
	add_coverage(incident, root);
	add_open(incident, root);
	add_losses(incident, root);
	add_clock(incident, root);
	add_rings(incident, root);
	list.files = cJSON_AddArrayToObject(root, "files");
	r = list.files ? files_each(folder_fd, ".", list_file, &list) : -ENOMEM;
	if (r == 0)
		r = print(root, ret_text);
	cJSON_Delete(root);
	return r;
}

int incident_manifest_read(struct incidents_store *store, const char *folder, cJSON **ret_json)
{
	char path[INCIDENTS_FOLDER_MAX + 16], schema[32], *text = NULL;
	size_t bytes;
	cJSON *json;
	int r;

	snprintf(path, sizeof(path), "%s/manifest.json", folder);
	r = files_read(incidents_store_folder_fd(store), path, INCIDENT_MANIFEST_BYTES_MAX, &text, &bytes);
	if (r < 0)
		return r;
	json = cJSON_ParseWithOpts(text, NULL, 1);
	free(text);
	json_text(json, "schema", schema, sizeof(schema));
	if (!cJSON_IsObject(json) || strcmp(schema, INCIDENT_SCHEMA) != 0) {
		cJSON_Delete(json);
		return -EBADMSG;
	}
	*ret_json = json;
	return 0;
}

static void resolve_sentence(cJSON *json, int64_t resolved_ns)
{
	char text[512];

	json_text(json, "sentence", text, sizeof(text));
	incident_sentence_resolve(text, sizeof(text), ns_sub(resolved_ns, json_ns(json, "t0_ns", resolved_ns)));
	cJSON_ReplaceItemInObjectCaseSensitive(json, "sentence", cJSON_CreateString(text));
}

int incident_manifest_resolve(struct incidents_store *store, const char *folder, int64_t resolved_ns,
			      char **ret_text)
{
	char path[INCIDENTS_FOLDER_MAX + 16], *text = NULL;
	cJSON *json = NULL;
	double revision;
	int r = incident_manifest_read(store, folder, &json);

	if (r < 0)
		return r;
	revision = json_number(json, "revision", 1);
	/* Killed after it was written and before anybody was told. */
	if (json_ns(json, "resolved_ns", 0) == resolved_ns) {
		r = print(json, ret_text);
		cJSON_Delete(json);
		return r;
	}
	cJSON_DeleteItemFromObjectCaseSensitive(json, "resolved_ns");
	cJSON_DeleteItemFromObjectCaseSensitive(json, "revision");
	cJSON_AddNumberToObject(json, "revision", revision + 1);
	json_add_ns(json, "resolved_ns", resolved_ns);
	resolve_sentence(json, resolved_ns);
	r = print(json, &text);
	cJSON_Delete(json);
	snprintf(path, sizeof(path), "%s/manifest.json", folder);
	if (r == 0)
		r = files_replace(incidents_store_folder_fd(store), path, text, strlen(text));
	if (r == 0)
		*ret_text = text;
	else
		free(text);
	return r;
}

static void class_verdict(const cJSON *json, enum incident_class which, char *ret_text, size_t room)
{
	const cJSON *coverage = cJSON_GetObjectItemCaseSensitive(json, "coverage");

	json_text(cJSON_GetObjectItemCaseSensitive(coverage, incident_class_name(which)), "verdict", ret_text,
		  room);
}

void incident_manifest_entry(const cJSON *json, struct incidents_entry *ret_entry)
{
	const cJSON *firings = cJSON_GetObjectItemCaseSensitive(json, "firings");
	struct triggers_firing head, first;

	json_read_firing(json, &head);
	json_read_firing(cJSON_GetArrayItem(firings, 0), &first);
	class_verdict(json, INCIDENT_HOST_SPANS, ret_entry->host_spans, sizeof(ret_entry->host_spans));
	class_verdict(json, INCIDENT_DEVICE_EVENTS, ret_entry->device_events,
		      sizeof(ret_entry->device_events));
	json_text(json, "id", ret_entry->id, sizeof(ret_entry->id));
	json_text(json, "job", ret_entry->job, sizeof(ret_entry->job));
	json_text(json, "verdict", ret_entry->verdict, sizeof(ret_entry->verdict));
	json_text(json, "sentence", ret_entry->sentence, sizeof(ret_entry->sentence));
	snprintf(ret_entry->trigger, sizeof(ret_entry->trigger), "%s", head.trigger);
	ret_entry->severity = head.severity;
	ret_entry->t0_ns = head.t0_ns;
	ret_entry->detected_ns = head.detected_ns;
	ret_entry->resolved_ns = json_ns(json, "resolved_ns", 0);
	if (ret_entry->resolved_ns)
		ret_entry->lasted_ns = ns_sub(ret_entry->resolved_ns, head.t0_ns);
	else
		ret_entry->lasted_ns = ns_sub(head.ongoing ? head.detected_ns : first.until_ns, head.t0_ns);
	ret_entry->step = head.step;
	ret_entry->rank = head.rank;
	ret_entry->ongoing = head.ongoing;
}
