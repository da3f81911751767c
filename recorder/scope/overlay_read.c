/* SPDX-License-Identifier: Apache-2.0 */
/* Two passes over the raw files of one ring: which steps there are, then the spans of the two that were
 * chosen. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <driverec/reader.h>

#include "ns.h"
#include "overlay_data.h"

enum { OPEN_MAX = 512 };

struct reading {
	struct scope_overlay_data *data;
	struct drec_reader *reader;
	uint16_t
		of_name[DREC_DICT_IDS_MAX + 1]; /* numbers of this file's names; UINT16_MAX = not asked yet */
	uint32_t track;                         /* the last one asked for, and its number */
	uint16_t of_track;
	struct overlay_step *step;
	size_t n_steps, steps_room;
	int64_t last_ns; /* the latest end of an event: what is open was so at least until then */
};

static uint16_t text_number(struct scope_overlay_data *data, const char *text, size_t bytes)
{
	if (bytes > SCOPE_TEXT_MAX - 1)
		bytes = SCOPE_TEXT_MAX - 1;
	for (unsigned i = 0; i < data->n_texts; i++)
		if (strlen(data->text[i]) == bytes && memcmp(data->text[i], text, bytes) == 0)
			return (uint16_t)i;
	char *copy = data->n_texts < OVERLAY_TEXTS_MAX ? malloc(bytes + 1) : NULL;
	if (!copy)
		return 0;
	memcpy(copy, text, bytes);
	copy[bytes] = 0;
	/* A name ends at its first 0, as every text shown does. */
	data->text[data->n_texts] = copy;
	return (uint16_t)data->n_texts++;
}

static uint16_t name_number(struct reading *reading, uint32_t name, const char *inline_text,
			    size_t inline_bytes)
{
	const char *text = inline_text;
	uint32_t bytes;
	unsigned kind;
	if (text)
		return text_number(reading->data, text, strnlen(text, inline_bytes));
	if (name == 0 || name > DREC_DICT_IDS_MAX)
		return 0;
	if (reading->of_name[name] == UINT16_MAX)
		reading->of_name[name] = drec_reader_text(reading->reader, name, &kind, &text, &bytes) < 0
						 ? 0
						 : text_number(reading->data, text, strnlen(text, bytes));
	return reading->of_name[name];
}

static uint16_t track_number(struct reading *reading, uint32_t track)
{
	struct drec_track_info info;
	if (reading->track == track)
		return reading->of_track;
	reading->track = track;
	reading->of_track =
		drec_reader_track(reading->reader, track, &info) < 0 || info.name_bytes == 0
			? 0
			: text_number(reading->data, info.name, strnlen(info.name, info.name_bytes));
	return reading->of_track;
}

/* The number of a profiler's step span, -1 where the name is not one. */
static int64_t profiler_step(const char *name)
{
	static const char prefix[] = "ProfilerStep#";
	if (strncmp(name, prefix, sizeof(prefix) - 1) != 0 || strlen(name) > sizeof(prefix) - 1 + 12)
		return -1;
	int64_t number = 0;
	const char *digit = name + sizeof(prefix) - 1;
	for (; *digit >= '0' && *digit <= '9'; digit++)
		number = number * 10 + (*digit - '0');
	return *digit ? -1 : number;
}

static int add_step(struct reading *reading, const struct overlay_step *step)
{
	if (reading->n_steps == reading->steps_room) {
		size_t room = reading->steps_room ? 2 * reading->steps_room : 256;
		struct overlay_step *larger =
			room > OVERLAY_STEPS_MAX ? NULL : realloc(reading->step, room * sizeof(*larger));
		if (!larger)
			return room > OVERLAY_STEPS_MAX ? 0 : -ENOMEM;
		reading->step = larger;
		reading->steps_room = room;
	}
	reading->step[reading->n_steps++] = *step;
	return 0;
}

/* False for events that have no time. */
static bool times_of(struct reading *reading, const struct drec_event *event, int64_t *ret_start_ns,
		     int64_t *ret_end_ns)
{
	if (drec_reader_event_time(reading->reader, event, ret_start_ns, ret_end_ns) < 0)
		return false;
	if (*ret_end_ns > reading->last_ns)
		reading->last_ns = *ret_end_ns;
	return true;
}

static int on_step_event(void *context, const struct drec_event *event, const struct drec_place *place)
{
	struct reading *reading = context;
	struct overlay_step step = {.number = -1, .track = event->track};
	(void)place;
	if (!times_of(reading, event, &step.start_ns, &step.end_ns))
		return 0;
	if (event->kind == DREC_MARK && event->category == DREC_MARK_STEP_END) {
		step.number = (int64_t)(event->id & INT64_MAX);
		step.phase = name_number(reading, event->name,
					 event->flags & DREC_FLAG_NAME ? event->name_text : NULL,
					 event->name_bytes);
	} else if (event->kind == DREC_SPAN) {
		uint16_t name = name_number(reading, event->name,
					    event->flags & DREC_FLAG_NAME ? event->name_text : NULL,
					    event->name_bytes);
		step.number = profiler_step(reading->data->text[name]);
	}
	return step.number >= 0 ? add_step(reading, &step) : 0;
}

static int keep_span(struct reading *reading, const struct overlay_span *span)
{
	struct scope_overlay_data *data = reading->data;
	if (data->n_spans == data->spans_room) {
		size_t room = data->spans_room ? 2 * data->spans_room : 1024;
		struct overlay_span *larger =
			room > OVERLAY_SPANS_MAX ? NULL : realloc(data->span, room * sizeof(*larger));
		if (!larger)
			return room > OVERLAY_SPANS_MAX ? 0 : -ENOMEM;
		data->span = larger;
		data->spans_room = room;
	}
	data->span[data->n_spans++] = *span;
	return 0;
}

/* To the step or steps that it meets. */
static int sort_span(struct reading *reading, struct overlay_span *span)
{
	int result = 0;
	for (uint8_t which = 0; which < SCOPE_OVERLAY_STEPS && result == 0; which++) {
		const struct scope_overlay_step *step = &reading->data->step[which];
		if (!step->there || span->end_ns <= step->start_ns ||
		    span->start_ns >= ns_add(step->start_ns, step->length_ns))
			continue;
		span->which = which;
		result = keep_span(reading, span);
	}
	return result;
}

static int on_span_event(void *context, const struct drec_event *event, const struct drec_place *place)
{
	struct reading *reading = context;
	struct overlay_span span = {.depth = event->depth};
	(void)place;
	if (!times_of(reading, event, &span.start_ns, &span.end_ns) || event->kind != DREC_SPAN)
		return 0;
	span.name = name_number(reading, event->name, event->flags & DREC_FLAG_NAME ? event->name_text : NULL,
				event->name_bytes);
	if (profiler_step(reading->data->text[span.name]) >= 0)
		return 0;
	span.track = track_number(reading, event->track);
	return sort_span(reading, &span);
}

/* What was open at the file's end: steps in the first pass, spans in the second. */
static int read_open(struct reading *reading, bool steps)
{
	struct drec_open_info open[OPEN_MAX];
	int count = drec_reader_open_spans(reading->reader, open, OPEN_MAX), result = 0;
	const struct drec_window *window = drec_reader_window(reading->reader);
	int64_t end_ns = window ? window->covered_b_ns : reading->last_ns;
	for (int i = 0; i < count && i < OPEN_MAX && result == 0; i++) {
		int64_t start_ns = drec_reader_unix_ns(reading->reader, open[i].start);
		if (start_ns >= end_ns)
			continue;
		if (steps && open[i].mark == DREC_MARK_STEP_BEGIN) {
			struct overlay_step step = {.number = (int64_t)(open[i].step & INT64_MAX),
						    .start_ns = start_ns,
						    .end_ns = end_ns,
						    .track = open[i].thread_track,
						    .phase = name_number(reading, open[i].name, NULL, 0),
						    .unfinished = true};
			result = add_step(reading, &step);
		} else if (!steps && open[i].mark == 0) {
			struct overlay_span span = {.start_ns = start_ns,
						    .end_ns = end_ns,
						    .name = name_number(reading, open[i].name, NULL, 0),
						    .track = track_number(reading, open[i].thread_track),
						    .depth = (uint8_t)open[i].depth};
			result = sort_span(reading, &span);
		}
	}
	return result;
}

static int read_file(struct reading *reading, const struct overlay_files *files, unsigned index, bool steps)
{
	const struct drec_reader_options options = {.safe_open = 1};
	struct drec_problem problem;
	int result =
		drec_reader_open(files->folder_fd, files->name[index], &options, &reading->reader, &problem);
	if (result < 0)
		return result;
	memset(reading->of_name, 0xff, sizeof(reading->of_name));
	reading->track = UINT32_MAX;
	result = drec_reader_poll(reading->reader, steps ? on_step_event : on_span_event, reading, 0, NULL);
	if (result >= 0)
		result = read_open(reading, steps);
	drec_reader_free(reading->reader);
	reading->reader = NULL;
	return result < 0 ? result : 0;
}

/* One file that cannot be read leaves the others. */
static int read_files(struct reading *reading, const struct overlay_files *files, bool steps)
{
	uint64_t left = SCOPE_OVERLAY_BYTES_MAX;
	int failed = 0, whole = 0;
	/* Number 0 is the text of what has none. */
	if (reading->data->n_texts == 0) {
		text_number(reading->data, "", 0);
		if (reading->data->n_texts == 0)
			return -ENOMEM;
	}
	for (unsigned i = 0; i < files->count; i++) {
		struct stat st;
		if (fstatat(files->folder_fd, files->name[i], &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    st.st_size < 0 || (uint64_t)st.st_size > left)
			continue;
		left -= (uint64_t)st.st_size;
		int result = read_file(reading, files, i, steps);
		if (result == -ENOMEM)
			return result;
		failed = result < 0 ? result : failed;
		whole += result == 0;
	}
	return whole > 0 ? 0 : failed;
}

int overlay_read_steps(struct scope_overlay_data *data, const struct overlay_files *files,
		       struct overlay_step **ret_steps, size_t *ret_count)
{
	struct reading *reading = calloc(1, sizeof(*reading));
	if (!reading)
		return -ENOMEM;
	reading->data = data;
	reading->last_ns = INT64_MIN;
	int result = read_files(reading, files, true);
	if (result == 0) {
		*ret_steps = reading->step;
		*ret_count = reading->n_steps;
	} else {
		free(reading->step);
	}
	free(reading);
	return result;
}

int overlay_read_spans(struct scope_overlay_data *data, const struct overlay_files *files)
{
	struct reading *reading = calloc(1, sizeof(*reading));
	if (!reading)
		return -ENOMEM;
	reading->data = data;
	reading->last_ns = INT64_MIN;
	int result = read_files(reading, files, false);
	free(reading);
	return result;
}
