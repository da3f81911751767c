/* SPDX-License-Identifier: Apache-2.0 */
#include "gather.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "http/client.h"
#include "overlay.h"

enum { ANSWER_MS = 500, TRIES = 4 };

static const int64_t SECOND_NS = 1000000000;
static const int64_t RETRY_NS = 2000000000; /* what is not there, or did not answer */
static const int64_t RELIST_NS = 30000000000;

struct scope_gather {
	char run_dir[256];
	char store_path[INCIDENTS_PATH_MAX];
	char tiers_path[INCIDENTS_PATH_MAX + 16];

	struct reducer_tiers *tiers;
	int tiers_error;
	struct stat tiers_file; /* as it was opened: a daemon may begin a new one */
	int64_t next_tiers_mono_ns;

	struct http_client *client;
	cJSON *answer; /* the latest one; NULL = nothing is live */
	char not_live[SCOPE_TEXT_MAX];
	int64_t next_ask_mono_ns;

	struct incidents_store *store;
	struct incidents_entry *entries;
	size_t n_entries;
	unsigned digits;
	struct timespec listed;
	int64_t next_store_mono_ns, next_list_mono_ns;

	char overlay_id[INCIDENTS_ID_TEXT];
	struct scope_overlay_data *overlay;
	int overlay_error;
};

static void drop_daemon(struct scope_gather *gather, const char *why)
{
	http_client_free(gather->client);
	gather->client = NULL;
	cJSON_Delete(gather->answer);
	gather->answer = NULL;
	snprintf(gather->not_live, sizeof(gather->not_live), "%s", why);
}

/* 1 if what is known of it has changed. */
static int ask_daemon(struct scope_gather *gather, int64_t mono_ns)
{
	bool was_live = gather->answer != NULL;
	cJSON *answer;
	long status;
	if (mono_ns < gather->next_ask_mono_ns)
		return 0;
	gather->next_ask_mono_ns = mono_ns + RETRY_NS;
	int result =
		gather->client ? 0 : http_client_open(gather->run_dir, gather->store_path, &gather->client);
	if (result == 0) {
		http_client_wait_at_most(gather->client, ANSWER_MS);
		result = http_client_ask(gather->client, "/api/v1/steps", NULL, &status, &answer);
	}
	if (result < 0) {
		drop_daemon(gather, result == -ENOENT || result == -ECONNREFUSED ? "no daemon is running"
				    : result == -ETIMEDOUT ? "the daemon does not answer"
							   : strerror(-result));
		return was_live;
	}
	if (status != 200) {
		cJSON_Delete(answer);
		drop_daemon(gather, "the daemon is of another version");
		return was_live;
	}
	cJSON_Delete(gather->answer);
	gather->answer = answer;
	gather->next_ask_mono_ns = mono_ns + SECOND_NS;
	return 1;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static int open_tiers(struct scope_gather *gather)
{
	struct reducer_tiers *tiers;
	struct stat st;
	if (stat(gather->tiers_path, &st) < 0) {
		gather->tiers_error = gather->tiers ? 0 : -errno;
		return 0;
	}
	if (gather->tiers && same_file(&st, &gather->tiers_file))
		return 0;
	int result = reducer_tiers_open_read(gather->tiers_path, &tiers);
	if (result < 0) {
		gather->tiers_error = gather->tiers ? 0 : result;
		return 0;
	}
	reducer_tiers_free(gather->tiers);
	gather->tiers = tiers;
	gather->tiers_file = st;
	gather->tiers_error = 0;
	return 1;
}

static int look_at_tiers(struct scope_gather *gather, int64_t mono_ns)
{
	int changed = 0;
	if (mono_ns >= gather->next_tiers_mono_ns) {
		gather->next_tiers_mono_ns = mono_ns + RETRY_NS;
		changed = open_tiers(gather);
	}
	/* A commit that cannot be read is being written over: the next look finds its successor. */
	if (gather->tiers && reducer_tiers_refresh(gather->tiers) == 1)
		changed = 1;
	return changed;
}

static int list_incidents(struct scope_gather *gather, const struct stat *folder)
{
	struct incidents_entry *entries;
	size_t count;
	if (incidents_store_list(gather->store, &entries, &count) < 0)
		return 0;
	free(gather->entries);
	gather->entries = entries;
	gather->n_entries = count;
	gather->digits = incidents_store_id_digits(entries, count);
	gather->listed = folder->st_mtim;
	return 1;
}

static int look_at_store(struct scope_gather *gather, int64_t mono_ns)
{
	struct stat st;
	if (mono_ns < gather->next_store_mono_ns)
		return 0;
	gather->next_store_mono_ns = mono_ns + SECOND_NS;
	if (!gather->store && incidents_store_open(gather->store_path, false, &gather->store) < 0)
		return 0;
	if (fstat(incidents_store_folder_fd(gather->store), &st) < 0)
		return 0;
	bool same =
		st.st_mtim.tv_sec == gather->listed.tv_sec && st.st_mtim.tv_nsec == gather->listed.tv_nsec;
	if (same && mono_ns < gather->next_list_mono_ns)
		return 0;
	gather->next_list_mono_ns = mono_ns + RELIST_NS;
	return list_incidents(gather, &st);
}

int scope_gather_poll(struct scope_gather *gather, int64_t mono_ns)
{
	int changed = ask_daemon(gather, mono_ns);
	changed |= look_at_tiers(gather, mono_ns);
	changed |= look_at_store(gather, mono_ns);
	return changed;
}

int scope_gather_new(const char *run_dir, const char *store, struct scope_gather **ret_gather)
{
	struct scope_gather *gather = calloc(1, sizeof(*gather));
	if (!gather)
		return -ENOMEM;
	snprintf(gather->run_dir, sizeof(gather->run_dir), "%s", run_dir);
	snprintf(gather->store_path, sizeof(gather->store_path), "%s", store);
	snprintf(gather->tiers_path, sizeof(gather->tiers_path), "%s/macro.tiers", store);
	scope_gather_poll(gather, 0);
	if (!gather->answer && !gather->tiers && !gather->store) {
		scope_gather_free(gather);
		return -ENOENT;
	}
	*ret_gather = gather;
	return 0;
}

void scope_gather_free(struct scope_gather *gather)
{
	if (!gather)
		return;
	drop_daemon(gather, "");
	reducer_tiers_free(gather->tiers);
	incidents_store_free(gather->store);
	scope_overlay_free(gather->overlay);
	free(gather->entries);
	free(gather);
}

void scope_gather_tiers(const struct scope_gather *gather, struct reducer_tiers_options *ret_options)
{
	struct reducer_tiers_stats stats;
	reducer_tiers_defaults(ret_options);
	if (!gather->tiers)
		return;
	reducer_tiers_stats(gather->tiers, &stats);
	*ret_options = stats.options;
}

static void fill_incidents(const struct scope_gather *gather, const struct scope_view *view,
			   struct scope_model *model)
{
	size_t first = gather->n_entries > SCOPE_INCIDENTS_MAX ? gather->n_entries - SCOPE_INCIDENTS_MAX : 0;
	for (size_t i = first; i < gather->n_entries; i++) {
		const struct incidents_entry *entry = &gather->entries[i];
		struct scope_incident *incident = &model->incident[model->n_incidents];
		if (!entry->readable)
			continue;
		*incident = (struct scope_incident){.digits = gather->digits,
						    .severity = entry->severity,
						    .t0_ns = entry->t0_ns,
						    .step = entry->step,
						    .ongoing = entry->ongoing && entry->resolved_ns == 0};
		memcpy(incident->id, entry->id, sizeof(incident->id));
		snprintf(incident->trigger, sizeof(incident->trigger), "%s", entry->trigger);
		snprintf(incident->sentence, sizeof(incident->sentence), "%s", entry->sentence);
		model->n_incidents++;
	}
	model->selected = model->n_incidents ? model->n_incidents - 1 : 0;
	for (unsigned i = 0; i < model->n_incidents; i++)
		if (view->selected[0] && strcmp(model->incident[i].id, view->selected) == 0)
			model->selected = i;
}

static const struct incidents_entry *entry_of(const struct scope_gather *gather, const char *id)
{
	for (size_t i = 0; i < gather->n_entries; i++)
		if (strcmp(gather->entries[i].id, id) == 0)
			return &gather->entries[i];
	return NULL;
}

/* The raw window is read once an incident: it does not change. */
static void fill_overlay(struct scope_gather *gather, unsigned cells, struct scope_model *model)
{
	const char *id = model->n_incidents ? model->incident[model->selected].id : "";
	const struct incidents_entry *entry = *id ? entry_of(gather, id) : NULL;
	if (strcmp(id, gather->overlay_id) != 0) {
		scope_overlay_free(gather->overlay);
		gather->overlay = NULL;
		gather->overlay_error =
			entry ? scope_overlay_load(gather->store, entry, &gather->overlay) : 0;
		snprintf(gather->overlay_id, sizeof(gather->overlay_id), "%s", id);
	}
	scope_overlay_fill(gather->overlay, cells, &model->overlay);
	snprintf(model->overlay.id, sizeof(model->overlay.id), "%s", id);
	if (gather->overlay_error < 0)
		snprintf(model->overlay.why, sizeof(model->overlay.why), "its raw window cannot be read: %s",
			 strerror(-gather->overlay_error));
}

static int fill_picture(struct scope_gather *gather, const struct scope_view *view,
			const struct scope_room *room, struct scope_model *model)
{
	struct reducer_tiers_stats stats;
	if (!gather->tiers) {
		snprintf(model->no_picture, sizeof(model->no_picture), "macro.tiers: %s",
			 strerror(gather->tiers_error ? -gather->tiers_error : ENOENT));
		model->picture_ns = model->now_ns;
		model->from_ns = scope_view_from_ns(view, model->now_ns, room->columns);
		return 0;
	}
	reducer_tiers_stats(gather->tiers, &stats);
	model->has_picture = true;
	model->picture_ns = stats.now_ns > 0 ? stats.now_ns : 0;
	model->now_ns = model->live ? model->now_ns : model->picture_ns;
	model->from_ns = scope_view_from_ns(view, model->picture_ns, room->columns);
	return scope_gather_bins(gather->tiers, view->first_track, room->tracks, model);
}

static int try_fill(struct scope_gather *gather, const struct scope_view *view, const struct scope_room *room,
		    struct scope_model *model)
{
	memset(model, 0, sizeof(*model));
	model->step = -1;
	snprintf(model->not_live, sizeof(model->not_live), "%s", gather->not_live);
	if (gather->answer)
		scope_gather_live(gather->answer, model);
	model->columns = room->columns < SCOPE_WIDTH_MAX ? room->columns : SCOPE_WIDTH_MAX;
	model->width_ns = scope_view_width_ns(view);
	fill_incidents(gather, view, model);
	return fill_picture(gather, view, room, model);
}

int scope_gather_fill(struct scope_gather *gather, const struct scope_view *view,
		      const struct scope_room *room, struct scope_model *ret_model)
{
	int result = -EAGAIN;
	for (int i = 0; i < TRIES && result == -EAGAIN; i++) {
		result = try_fill(gather, view, room, ret_model);
		if (result == -EAGAIN)
			reducer_tiers_refresh(gather->tiers);
	}
	if (result == 0)
		fill_overlay(gather, room->overlay_cells, ret_model);
	return result;
}
