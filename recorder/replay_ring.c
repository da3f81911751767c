/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings and window files through the triggers: all files of a run together, an incident's or a job's. Their events
 * are kept (56 bytes each), put in the order in which they were over, which is when a daemon could know of them, and
 * go through the daemon's own mapping to series (sources/series.h). What was open at a file's end is opened there, and
 * a scoped span that lasts is opened when the daemon would have seen it on its thread's stack: a checkpoint known by its
 * name must excuse the step that it is in while it lasts, not once it is over.
 *
 * Windows of the same ring are one source. A ring that is still written to is open until now.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <driverec/reader.h>

#include "config.h"
#include "ns.h"
#include "replay.h"
#include "sources/intake.h"
#include "sources/series.h"
#include "trigger_settings.h"

/* How often a daemon looks at the stacks of open spans. */
static const int64_t LOOK_EVERY_NS = 250000000;

/* What was fed further in the past than this was not fed as it happened. */
static const int64_t FED_LATE_NS = INT64_C(3600000000000);

enum { MOMENTS_MAX = 1 << 24, TEXT_BYTES_MAX = 1 << 30, OPEN_MAX = 1024 };

/* An event, or (kind 0) a step, phase or span that was seen open. */
struct moment {
	int64_t at_ns; /* when it was known */
	int64_t start_ns, end_ns;
	uint64_t id; /* or the bits of a counter's value */
	uint32_t track, name, text_at;
	uint32_t order;
	uint16_t text_bytes, mark, file;
	uint8_t kind;
	bool absolute; /* a time that its source gave, not the ring's clock */
};

struct file {
	struct drec_reader *reader;
	struct series_source source;
	int64_t end_ns;
	bool fed; /* has times that its source gave */
};

struct rings {
	struct replay *replay;
	struct file file[REPLAY_RINGS_MAX];
	unsigned n_files;
	struct moment *moment;
	size_t count, room;
	char *texts; /* of names that have no id */
	size_t text_bytes, text_room;
	struct series *series;
};

/* --- reading --- */

static struct moment *append(struct rings *rings)
{
	if (rings->count == rings->room) {
		size_t room = rings->room ? 2 * rings->room : 4096;
		struct moment *larger =
			room > MOMENTS_MAX ? NULL : realloc(rings->moment, room * sizeof(*larger));
		if (!larger)
			return NULL;
		rings->moment = larger;
		rings->room = room;
	}
	struct moment *moment = &rings->moment[rings->count];
	*moment = (struct moment){.order = (uint32_t)rings->count++, .file = (uint16_t)(rings->n_files - 1)};
	return moment;
}

/* A copy of an inline name; longer ones are cut, as series names are. */
static int keep_text(struct rings *rings, struct moment *moment, const char *text, size_t bytes)
{
	bytes = bytes < TRIGGERS_NAME_MAX ? bytes : TRIGGERS_NAME_MAX;
	if (rings->text_room - rings->text_bytes < bytes) {
		size_t room = rings->text_room ? 2 * rings->text_room : 65536;
		char *larger = room > TEXT_BYTES_MAX ? NULL : realloc(rings->texts, room);
		if (!larger)
			return -ENOMEM;
		rings->texts = larger;
		rings->text_room = room;
	}
	if (bytes)
		memcpy(rings->texts + rings->text_bytes, text, bytes);
	moment->text_at = (uint32_t)rings->text_bytes;
	moment->text_bytes = (uint16_t)bytes;
	rings->text_bytes += bytes;
	return 0;
}

static int open_for_a_while(struct rings *rings, const struct drec_event *event, int64_t start_ns, int64_t end_ns)
{
	if (event->kind != DREC_SPAN || event->depth == DREC_DEPTH_UNKNOWN || event->flags & DREC_FLAG_NAME ||
	    ns_sub(end_ns, start_ns) <= LOOK_EVERY_NS)
		return 0;
	struct moment *moment = append(rings);
	if (!moment)
		return -E2BIG;
	moment->at_ns = ns_add(start_ns, LOOK_EVERY_NS);
	moment->start_ns = start_ns;
	moment->track = event->track;
	moment->name = event->name;
	return 0;
}

static int on_event(void *context, const struct drec_event *event, const struct drec_place *place)
{
	struct rings *rings = context;
	struct file *file = &rings->file[rings->n_files - 1];
	int64_t start_ns, end_ns;
	(void)place;
	if (replay_interrupted())
		return -EINTR;
	if (drec_reader_event_time(file->reader, event, &start_ns, &end_ns) < 0)
		return 0;
	int result = open_for_a_while(rings, event, start_ns, end_ns);
	if (result < 0)
		return result;
	struct moment *moment = append(rings);
	if (!moment)
		return -E2BIG;
	moment->at_ns = end_ns;
	moment->start_ns = start_ns;
	moment->end_ns = end_ns;
	moment->id = event->kind == DREC_COUNTER ? event->dur_or_value : event->id;
	moment->track = event->track;
	moment->name = event->name;
	moment->mark = event->category;
	moment->kind = event->kind;
	moment->absolute = event->flags & DREC_FLAG_ABS;
	file->fed |= moment->absolute;
	return event->flags & DREC_FLAG_NAME ? keep_text(rings, moment, event->name_text, event->name_bytes) : 0;
}

/*
 * Where the events of a file end, and without what is not of the job: the daemon's own marks in the ring of a feed are
 * of when it was read, which may be years later.
 */
static void find_last(struct rings *rings, size_t first)
{
	struct file *file = &rings->file[rings->n_files - 1];
	size_t kept = first;
	for (size_t i = first; i < rings->count; i++) {
		struct moment moment = rings->moment[i];
		if (file->fed && moment.kind && !moment.absolute)
			continue;
		moment.order = (uint32_t)kept;
		rings->moment[kept++] = moment;
		if (moment.kind && moment.end_ns > file->end_ns)
			file->end_ns = moment.end_ns;
	}
	rings->count = kept;
}

/* Where what a file tells of ends: its window, or for one that is being written now. */
static void find_end(struct file *file)
{
	const struct drec_window *window = drec_reader_window(file->reader);
	const int64_t last_ns = file->end_ns;
	struct timespec now;
	if (window && window->covered_b_ns > file->end_ns)
		file->end_ns = window->covered_b_ns;
	if (!window && drec_reader_alive(file->reader) == 1 && clock_gettime(CLOCK_REALTIME, &now) == 0)
		file->end_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	if (file->fed && ns_sub(file->end_ns, last_ns) > FED_LATE_NS)
		file->end_ns = last_ns;
}

static int read_open(struct rings *rings)
{
	struct file *file = &rings->file[rings->n_files - 1];
	struct drec_open_info *open = calloc(OPEN_MAX, sizeof(*open));
	int found = open ? drec_reader_open_spans(file->reader, open, OPEN_MAX) : -ENOMEM;
	find_end(file);
	for (int i = 0; i < found && i < OPEN_MAX; i++) {
		struct moment *moment = open[i].moving ? NULL : append(rings);
		if (!moment)
			continue;
		moment->at_ns = file->end_ns;
		moment->start_ns = drec_reader_unix_ns(file->reader, open[i].start);
		moment->id = open[i].step;
		moment->track = open[i].thread_track;
		moment->name = open[i].name;
		moment->mark = (uint16_t)open[i].mark;
	}
	free(open);
	return found < 0 ? found : 0;
}

static int text_of_name(void *context, uint32_t id, const char **ret_text, size_t *ret_bytes)
{
	unsigned kind;
	uint32_t bytes;
	int result = drec_reader_text(context, id, &kind, ret_text, &bytes);
	if (result == 0)
		*ret_bytes = bytes;
	return result;
}

static int text_of_track(void *context, uint32_t id, const char **ret_text, size_t *ret_bytes)
{
	struct drec_track_info info;
	int result = drec_reader_track(context, id, &info);
	if (result == 0) {
		*ret_text = info.name;
		*ret_bytes = info.name_bytes;
	}
	return result;
}

static bool is_stream(void *context, uint32_t id)
{
	struct drec_track_info info;
	return drec_reader_track(context, id, &info) == 0 && info.kind == DREC_TRACK_STREAM;
}

static uint32_t source_of(const struct rings *rings, const struct drec_header *header)
{
	for (unsigned i = 0; i + 1 < rings->n_files; i++)
		if (!memcmp(drec_reader_header(rings->file[i].reader)->ring_id, header->ring_id,
			    sizeof(header->ring_id)))
			return rings->file[i].source.source;
	return rings->n_files;
}

static int read_file(struct rings *rings, const char *path, char *error, size_t error_room)
{
	struct drec_problem problem = {0};
	struct file *file = &rings->file[rings->n_files];
	int result = drec_reader_open(AT_FDCWD, path, NULL, &file->reader, &problem);
	if (result < 0) {
		snprintf(error, error_room, "%.200s: %s", path,
			 problem.what[0] ? problem.what : strerror(-result));
		return result;
	}
	rings->n_files++;
	const struct drec_header *header = drec_reader_header(file->reader);
	file->source = (struct series_source){
		.source = source_of(rings, header),
		.rank = header->rank,
		.job = intake_job(file->reader),
		.context = file->reader,
		.name = text_of_name,
		.track = text_of_track,
		.is_stream = is_stream,
	};
	file->end_ns = INT64_MIN;
	size_t first = rings->count;
	result = drec_reader_poll(file->reader, on_event, rings, 0, NULL);
	find_last(rings, first);
	if (result >= 0)
		result = read_open(rings);
	if (result < 0)
		snprintf(error, error_room, "%.200s: %s", path,
			 result == -E2BIG ? "more events than fit; export a part of it" : strerror(-result));
	return result;
}

/* --- feeding --- */

static int by_time(const void *a_, const void *b_)
{
	const struct moment *a = a_, *b = b_;
	if (a->at_ns != b->at_ns)
		return a->at_ns < b->at_ns ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static void feed_event(struct rings *rings, const struct moment *moment, int64_t sample)
{
	const struct series_source *source = &rings->file[moment->file].source;
	struct series_event event = {
		.kind = moment->kind,
		.mark = moment->mark,
		.track = moment->track,
		.name = moment->name,
		.text = moment->text_bytes ? rings->texts + moment->text_at : NULL,
		.text_bytes = moment->text_bytes,
		.start_ns = moment->start_ns,
		.end_ns = moment->end_ns,
		.id = moment->id,
		.sample = sample,
	};
	if (moment->kind == DREC_COUNTER)
		memcpy(&event.value, &moment->id, sizeof(event.value));
	series_event(rings->series, source, &event);
	/* Counters go on in a step that hangs. */
	if (moment->kind != DREC_COUNTER)
		series_progress(rings->series, source->source, moment->end_ns);
}

static void feed(struct rings *rings)
{
	struct replay *replay = rings->replay;
	int64_t end_ns = INT64_MIN, steps = 0;
	if (rings->count)
		qsort(rings->moment, rings->count, sizeof(*rings->moment), by_time);
	for (size_t i = 0; i < rings->count && !replay_interrupted(); i++) {
		const struct moment *moment = &rings->moment[i];
		if (i % 4096 == 0)
			replay_progress(replay, i, "events");
		bool is_step = moment->kind == DREC_MARK && moment->mark == DREC_MARK_STEP_END;
		replay->sample = steps; /* of what is open */
		replay_advance(replay, moment->at_ns);
		series_tick(rings->series);
		if (moment->kind)
			feed_event(rings, moment, is_step ? steps : steps - 1);
		else
			series_open(rings->series, &rings->file[moment->file].source, moment->mark, moment->track,
				    moment->name, moment->start_ns, moment->id);
		steps += is_step;
	}
	for (unsigned i = 0; i < rings->n_files; i++)
		if (rings->file[i].end_ns > end_ns)
			end_ns = rings->file[i].end_ns;
	replay->steps += (uint64_t)steps;
	replay->sample = steps;
	if (!rings->count)
		return;
	replay_advance(replay, end_ns);
	replay->samples += series_counters(rings->series)->samples;
	replay->job_ns = ns_add(replay->job_ns, ns_sub(end_ns, rings->moment[0].at_ns));
}

/* "rank 3/main", or without the rank where none is known. */
static void track_text(const void *context, uint32_t source, uint64_t track, char *out, size_t room)
{
	const struct rings *rings = context;
	struct drec_track_info info;
	for (unsigned i = 0; i < rings->n_files; i++) {
		const struct file *file = &rings->file[i];
		if (file->source.source != source || drec_reader_track(file->reader, (uint32_t)track, &info) < 0)
			continue;
		int bytes = info.name_bytes < 128 ? (int)info.name_bytes : 128;
		if (file->source.rank == UINT32_MAX)
			snprintf(out, room, "%.*s", bytes, bytes ? info.name : "");
		else
			snprintf(out, room, "rank %u/%.*s", file->source.rank, bytes,
				 bytes ? info.name : "");
		return;
	}
}

/* A window is often too short to learn from: then silence means nothing. */
static void say_if_cold(const struct rings *rings)
{
	struct triggers_belief belief;
	uint32_t count = triggers_engine_series_count(rings->replay->engine);
	for (uint32_t i = 0; i < count; i++)
		if (!triggers_engine_belief(rings->replay->engine, i, &belief) && belief.key.alarms && belief.warm)
			return;
	if (!rings->replay->settings->json && rings->replay->out)
		fprintf(rings->replay->out,
			"%s: too little to learn from; --set gates.warmup_steps=4 asks for less, --explain shows it\n",
			rings->replay->run);
}

int replay_rings(struct replay *replay, const char *run, const char *const *paths, unsigned count, char *error,
		 size_t error_room)
{
	struct rings *rings = calloc(1, sizeof(*rings));
	const struct config *config = replay->settings->config;
	int result = !rings ? -ENOMEM : !config ? -EINVAL : count > REPLAY_RINGS_MAX ? -E2BIG : 0;
	if (result < 0)
		snprintf(error, error_room, "%.200s: %s", run, strerror(-result));
	for (unsigned i = 0; i < count && result == 0; i++) {
		rings->replay = replay;
		result = read_file(rings, paths[i], error, error_room);
	}
	if (result == 0)
		result = replay_begin(replay, run, error, error_room);
	if (result == 0) {
		replay->track_text = track_text;
		replay->track_context = rings;
		result = trigger_settings_series(config, replay->engine, &rings->series);
		if (result < 0)
			snprintf(error, error_room, "%.200s: %s", run, strerror(-result));
		else {
			feed(rings);
			say_if_cold(rings);
			series_free(rings->series);
		}
		replay_end(replay);
	}
	replay_progress_clear(replay);
	for (unsigned i = 0; rings && i < rings->n_files; i++)
		drec_reader_free(rings->file[i].reader);
	free(rings ? rings->moment : NULL);
	free(rings ? rings->texts : NULL);
	free(rings);
	return result;
}
