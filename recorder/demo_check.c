/* SPDX-License-Identifier: Apache-2.0 */
#include "demo_check.h"

#include <driverec/reader.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_BYTES = 32, EVENTS_MAX = 1 << 20 };

struct seen {
	char kind[16], name[NAME_MAX_BYTES];
	uint64_t begin[2], end[2]; /* kept events: both the same */
	bool matched;
};

struct list {
	struct seen *item;
	size_t count, room;
};

static struct seen *list_add(struct list *list)
{
	if (list->count == EVENTS_MAX)
		return NULL;
	if (list->count == list->room) {
		size_t room = list->room ? list->room * 2 : 1024;
		struct seen *grown = realloc(list->item, room * sizeof(*grown));
		if (!grown)
			return NULL;
		list->item = grown;
		list->room = room;
	}
	struct seen *seen = &list->item[list->count++];
	memset(seen, 0, sizeof(*seen));
	return seen;
}

static int by_kind_name_begin(const void *left, const void *right)
{
	const struct seen *a = left, *b = right;
	int order = strcmp(a->kind, b->kind);
	if (order == 0)
		order = strcmp(a->name, b->name);
	if (order == 0)
		order = a->begin[0] < b->begin[0] ? -1 : a->begin[0] > b->begin[0];
	return order;
}

static int read_record(const char *path, struct list *list)
{
	FILE *file = fopen(path, "re");
	if (!file)
		return -errno;
	int result = 0;
	char kind[16], name[NAME_MAX_BYTES];
	unsigned long long times[4];
	while (fscanf(file, "%15s %31s %llu %llu %llu %llu", kind, name, &times[0], &times[1], &times[2],
		      &times[3]) == 6) {
		struct seen *seen = list_add(list);
		if (!seen) {
			result = -ENOMEM;
			break;
		}
		memcpy(seen->kind, kind, sizeof(kind));
		memcpy(seen->name, name, sizeof(name));
		seen->begin[0] = times[0];
		seen->begin[1] = times[1];
		seen->end[0] = times[2];
		seen->end[1] = times[3];
	}
	if (result == 0 && !feof(file))
		result = -EBADMSG;
	fclose(file);
	return result;
}

struct window {
	struct drec_reader *reader;
	struct list *list;
	uint64_t a_ticks, t0_ticks;
};

static const char *kind_of(const struct drec_event *event)
{
	if (event->kind == DREC_SPAN || event->kind == DREC_COUNTER)
		return drec_kind_name(event->kind);
	if (event->kind == DREC_MARK &&
	    (event->category == DREC_MARK_STEP_BEGIN || event->category == DREC_MARK_STEP_END))
		return drec_mark_name(event->category);
	return NULL;
}

static int on_event(void *context, const struct drec_event *event, const struct drec_place *place)
{
	const struct window *window = context;
	const char *kind = kind_of(event), *text;
	uint64_t duration = event->kind == DREC_COUNTER ? 0 : event->dur_or_value;
	unsigned text_kind;
	uint32_t bytes;
	(void)place;
	if (!kind || event->start > window->t0_ticks || event->start + duration < window->a_ticks)
		return 0;
	struct seen *seen = list_add(window->list);
	if (!seen)
		return -ENOMEM;
	snprintf(seen->kind, sizeof(seen->kind), "%s", kind);
	if (drec_reader_text(window->reader, event->name, &text_kind, &text, &bytes) == 0)
		snprintf(seen->name, sizeof(seen->name), "%.*s", bytes < NAME_MAX_BYTES ? (int)bytes : NAME_MAX_BYTES - 1,
			 text);
	seen->begin[0] = seen->begin[1] = event->start;
	seen->end[0] = seen->end[1] = event->start + duration;
	return 0;
}

/* The first file says from when to when. */
static int read_window(const char *path, int64_t t0_ns, struct list *list, uint64_t *ret_a, uint64_t *ret_t0)
{
	struct drec_reader *reader;
	struct drec_problem problem;
	int result = drec_reader_open(AT_FDCWD, path, NULL, &reader, &problem);
	if (result < 0)
		return result;
	const struct drec_window *kept = drec_reader_window(reader);
	result = -EBADMSG;
	if (kept) {
		struct window window = {
			.reader = reader,
			.list = list,
			.a_ticks = *ret_a ? *ret_a : kept->a_ticks,
			.t0_ticks = *ret_t0 ? *ret_t0 : drec_reader_ticks(reader, t0_ns - kept->mono_to_unix_ns),
		};
		*ret_a = window.a_ticks;
		*ret_t0 = window.t0_ticks;
		result = drec_reader_poll(reader, on_event, &window, 0, NULL);
	}
	drec_reader_free(reader);
	return result < 0 ? result : 0;
}

static bool fits(const struct seen *kept, const struct seen *written)
{
	return !written->matched && strcmp(kept->kind, written->kind) == 0 && strcmp(kept->name, written->name) == 0 &&
	       kept->begin[0] >= written->begin[0] && kept->begin[0] <= written->begin[1] &&
	       kept->end[0] >= written->end[0] && kept->end[0] <= written->end[1];
}

static void note_difference(struct demo_check *check, const char *what, const struct seen *seen)
{
	if (!check->example[0])
		snprintf(check->example, sizeof(check->example), "%s %s \"%s\" at tick %llu", what, seen->kind, seen->name,
			 (unsigned long long)seen->begin[0]);
}

/* Both lists are sorted alike, so what fits stands close to where the search for the one before it ended. */
static void compare(const struct list *kept, const struct list *written, uint64_t a, uint64_t t0,
		    struct demo_check *check)
{
	size_t from = 0;
	for (size_t i = 0; i < kept->count; i++) {
		const struct seen *one = &kept->item[i];
		size_t j = from;
		while (j < written->count && by_kind_name_begin(&written->item[j], one) <= 0 &&
		       !fits(one, &written->item[j]))
			j++;
		if (j < written->count && fits(one, &written->item[j])) {
			written->item[j].matched = true;
			check->written++;
			from = j;
		} else {
			check->unknown++;
			note_difference(check, "kept but not written:", one);
		}
	}
	for (size_t j = 0; j < written->count; j++) {
		const struct seen *one = &written->item[j];
		if (!one->matched && one->end[0] >= a && one->begin[1] <= t0) {
			check->missing++;
			note_difference(check, "written but not kept:", one);
		}
	}
	check->kept = kept->count;
}

int demo_check_window(const char *const *drec_paths, unsigned count, const char *record_path, int64_t t0_ns,
		      struct demo_check *ret_check)
{
	struct list kept = {0}, written = {0};
	uint64_t a = 0, t0 = 0;
	int result = read_record(record_path, &written);
	for (unsigned i = 0; result == 0 && i < count; i++)
		result = read_window(drec_paths[i], t0_ns, &kept, &a, &t0);
	if (result == 0) {
		struct demo_check check = {0};
		if (kept.count > 0)
			qsort(kept.item, kept.count, sizeof(*kept.item), by_kind_name_begin);
		if (written.count > 0)
			qsort(written.item, written.count, sizeof(*written.item), by_kind_name_begin);
		compare(&kept, &written, a, t0, &check);
		*ret_check = check;
	}
	free(kept.item);
	free(written.item);
	return result;
}
