/* SPDX-License-Identifier: Apache-2.0 */
#include "overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "incidents/manifest.h"
#include "ns.h"
#include "overlay_data.h"

static int64_t length_of(const struct overlay_step *step)
{
	return ns_sub(step->end_ns, step->start_ns);
}

static void say(struct scope_overlay_data *data, const char *why)
{
	snprintf(data->why, sizeof(data->why), "%s", why);
}

/* The raw files of a ring. Their names are the manifest's, so they may say anything. */
static void list_files(const cJSON *ring, struct overlay_files *files)
{
	const cJSON *window;
	files->count = 0;
	cJSON_ArrayForEach(window, cJSON_GetObjectItemCaseSensitive(ring, "windows"))
	{
		const char *file = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(window, "file"));
		if (!file || strncmp(file, "raw/", 4) != 0 || strchr(file + 4, '/') || file[4] == '.' ||
		    !file[4] || strlen(file) >= sizeof(files->name[0]) || files->count == OVERLAY_FILES_MAX)
			continue;
		snprintf(files->name[files->count++], sizeof(files->name[0]), "%s", file);
	}
}

/* By number where the incident has one, else the longest around t0. A finished one goes before one that was
 * open. */
static const struct overlay_step *bad_step(const struct incidents_entry *entry,
					   const struct overlay_step *steps, size_t count)
{
	const struct overlay_step *best = NULL;
	int64_t until_ns = entry->detected_ns > entry->t0_ns ? entry->detected_ns : entry->t0_ns;
	for (size_t i = 0; i < count; i++) {
		const struct overlay_step *step = &steps[i];
		bool fits = entry->step >= 0 ? step->number == entry->step
					     : step->end_ns > entry->t0_ns && step->start_ns <= until_ns;
		if (!fits)
			continue;
		if (!best || best->unfinished > step->unfinished ||
		    (best->unfinished == step->unfinished && length_of(step) > length_of(best)))
			best = step;
	}
	return best;
}

static int by_length(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static bool before(const struct overlay_step *step, const struct overlay_step *bad)
{
	return !step->unfinished && step->track == bad->track && step->phase == bad->phase &&
	       step->end_ns <= bad->start_ns;
}

/* NULL if there is none; -ENOMEM counts as none. */
static const struct overlay_step *good_step(const struct overlay_step *bad, const struct overlay_step *steps,
					    size_t count)
{
	const struct overlay_step *best = NULL;
	size_t n = 0;
	int64_t *lengths = malloc((count + 1) * sizeof(*lengths));
	if (!lengths)
		return NULL;
	for (size_t i = 0; i < count; i++)
		if (before(&steps[i], bad))
			lengths[n++] = length_of(&steps[i]);
	qsort(lengths, n, sizeof(*lengths), by_length);
	int64_t median = n ? lengths[n / 2] : 0;
	free(lengths);
	for (size_t i = 0; i < count; i++) {
		int64_t length = length_of(&steps[i]);
		if (before(&steps[i], bad) && length <= median + median / 5 && length >= median / 2 &&
		    (!best || steps[i].start_ns > best->start_ns))
			best = &steps[i];
	}
	return best;
}

static void take_step(struct scope_overlay_step *to, const struct overlay_step *from)
{
	*to = (struct scope_overlay_step){.there = true,
					  .unfinished = from->unfinished,
					  .number = from->number,
					  .start_ns = from->start_ns,
					  .length_ns = length_of(from) > 0 ? length_of(from) : 1};
}

/* 1 if the ring has the bad step. */
static int choose(struct scope_overlay_data *data, const struct incidents_entry *entry,
		  const struct overlay_files *files)
{
	struct overlay_step *steps = NULL;
	size_t count = 0;
	int result = overlay_read_steps(data, files, &steps, &count);
	const struct overlay_step *bad = result == 0 ? bad_step(entry, steps, count) : NULL;
	if (bad) {
		const struct overlay_step *good = good_step(bad, steps, count);
		take_step(&data->step[SCOPE_BAD_STEP], bad);
		if (good)
			take_step(&data->step[SCOPE_GOOD_STEP], good);
	}
	result = result < 0 ? result : bad != NULL;
	free(steps);
	return result;
}

static int by_place(const void *a_, const void *b_)
{
	const struct overlay_span *a = a_, *b = b_;
	if (a->which != b->which)
		return a->which < b->which ? -1 : 1;
	if (a->track != b->track)
		return a->track < b->track ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->end_ns == b->end_ns ? (int)a->name - (int)b->name : a->end_ns > b->end_ns ? -1 : 1;
}

/* Two windows of one ring can both hold a chunk, and a span that was open may have its end in the next one.
 */
static void drop_doubles(struct scope_overlay_data *data)
{
	size_t kept = 0;
	if (data->n_spans)
		qsort(data->span, data->n_spans, sizeof(data->span[0]), by_place);
	for (size_t i = 0; i < data->n_spans; i++) {
		const struct overlay_span *span = &data->span[i], *last = kept ? &data->span[kept - 1] : NULL;
		if (last && last->which == span->which && last->track == span->track &&
		    last->name == span->name && last->start_ns == span->start_ns &&
		    last->depth == span->depth)
			continue;
		data->span[kept++] = *span;
	}
	data->n_spans = kept;
}

/* First the ring of the incident's rank, then the others. */
static int search(struct scope_overlay_data *data, const struct incidents_entry *entry, const cJSON *manifest,
		  struct overlay_files *files)
{
	const cJSON *ring;
	int found = 0, failed = 0;
	for (int others = 0; others < 2 && found <= 0; others++) {
		cJSON_ArrayForEach(ring, cJSON_GetObjectItemCaseSensitive(manifest, "rings"))
		{
			bool of_rank = json_number(ring, "rank", (double)UINT32_MAX) == (double)entry->rank;
			if (found > 0 || of_rank != !others)
				continue;
			list_files(ring, files);
			found = files->count ? choose(data, entry, files) : 0;
			failed = found < 0 ? found : failed;
		}
		if (found == -ENOMEM)
			return found;
	}
	return found > 0 ? 1 : failed;
}

int scope_overlay_load(struct incidents_store *store, const struct incidents_entry *entry,
		       struct scope_overlay_data **ret_data)
{
	cJSON *manifest = NULL;
	struct overlay_files *files = calloc(1, sizeof(*files));
	struct scope_overlay_data *data = calloc(1, sizeof(*data));
	int result = files && data ? incident_manifest_read(store, entry->folder, &manifest) : -ENOMEM;
	if (result == 0) {
		files->folder_fd = openat(incidents_store_folder_fd(store), entry->folder,
					  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		result = files->folder_fd < 0 ? -errno : search(data, entry, manifest, files);
		if (result > 0)
			result = overlay_read_spans(data, files);
		else if (result == 0)
			say(data, "no step in the window");
		if (files->folder_fd >= 0)
			close(files->folder_fd);
	}
	cJSON_Delete(manifest);
	free(files);
	if (result < 0) {
		scope_overlay_free(data);
		return result;
	}
	memcpy(data->id, entry->id, sizeof(data->id));
	drop_doubles(data);
	*ret_data = data;
	return 0;
}

void scope_overlay_free(struct scope_overlay_data *data)
{
	if (!data)
		return;
	for (unsigned i = 0; i < data->n_texts; i++)
		free(data->text[i]);
	free(data->span);
	free(data);
}
