/* SPDX-License-Identifier: Apache-2.0 */
#include "intake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ns.h"
#include "plain_text.h"

enum {
	ROWS_FIRST = 256,
	ROWS_MAX = 1 << 16, /* beyond, events of new rows are left out of the macro view */
	NAMES_MAX = DREC_DICT_IDS_MAX + 1,
	NESTS_MAX = 256     /* tracks whose spans come without a depth */
};

/* A row's number, by track, kind and depth. */
struct row {
	uint64_t key; /* 0 = empty */
	uint32_t row;
};

/* The layout of a track whose source does not say how deep its spans are. */
struct nest {
	uint32_t track;
	int64_t last_start_ns;
	struct reducer_nest nest;
};

struct intake {
	struct producer *producer;
	struct series *series;
	struct reducer_tiers *tiers;
	struct series_source source;
	struct row *rows;
	size_t room, used;
	uint32_t *names; /* the tiers' number of a name, by id; UINT32_MAX = not asked yet */
	struct nest *nests;
	size_t n_nests;
	uint8_t depth; /* of the span that is being taken in */
};

static int text_of_name(void *context, uint32_t id, const char **ret_text, size_t *ret_bytes)
{
	const struct intake *intake = context;
	unsigned kind;
	uint32_t bytes;
	int result = drec_reader_text(intake->producer->reader, id, &kind, ret_text, &bytes);
	if (result == 0)
		*ret_bytes = bytes;
	return result;
}

static int text_of_track(void *context, uint32_t id, const char **ret_text, size_t *ret_bytes)
{
	const struct intake *intake = context;
	struct drec_track_info info;
	int result = drec_reader_track(intake->producer->reader, id, &info);
	if (result == 0) {
		*ret_text = info.name;
		*ret_bytes = info.name_bytes;
	}
	return result;
}

static bool is_stream(void *context, uint32_t id)
{
	const struct intake *intake = context;
	struct drec_track_info info;
	return drec_reader_track(intake->producer->reader, id, &info) == 0 && info.kind == DREC_TRACK_STREAM;
}

uint64_t intake_job(const struct drec_reader *reader)
{
	const char *job = drec_reader_header(reader)->job;
	uint64_t number = 0;
	for (size_t i = 0; i < DREC_TEXT_MAX && job[i]; i++)
		number = (number ^ (unsigned char)job[i]) * UINT64_C(0x9e3779b97f4a7c15);
	return number;
}

static struct reducer_text text_from(const char *data, size_t bytes)
{
	return (struct reducer_text){.data = data, .bytes = bytes};
}

/* A source in the macro view is one ring for as long as it lives: its id. */
static struct reducer_text source_text(const struct intake *intake)
{
	return text_from(intake->producer->key, strlen(intake->producer->key));
}

/*
 * A finished step in the macro view, beside its span: its length, and from where it would have been a spike. Bins of
 * spans lose both where several steps share one.
 */
static void on_step(void *context, const struct series_step *step)
{
	struct intake *intake = context;
	const char *ring_name = drec_reader_header(intake->producer->reader)->name;
	const double values[] = {(double)ns_sub(step->end_ns, step->start_ns), step->warn_ns};
	static const char *const what[] = {INTAKE_STEPS, INTAKE_LIMITS};
	for (int i = 0; intake->tiers && i < 2; i++) {
		char key[128], label[192];
		uint32_t track, row;
		if (!(values[i] > 0))
			continue;
		int key_bytes = snprintf(key, sizeof(key), "%s/%u/%u/%.63s", what[i], step->track, intake->depth,
					 step->phase);
		int label_bytes = snprintf(label, sizeof(label), "%.63s %s of %.63s, ns", ring_name, what[i], step->phase);
		if (reducer_tiers_track(intake->tiers, source_text(intake), text_from(key, (size_t)key_bytes),
					text_from(label, (size_t)label_bytes), &track) == 0 &&
		    reducer_tiers_row(intake->tiers, track, REDUCER_ROW_COUNTER, 0, &row) == 0)
			reducer_tiers_counter(intake->tiers, row, step->end_ns, values[i]);
	}
}

int intake_new(struct producer *producer, struct series *series, struct reducer_tiers *tiers,
	       struct intake **ret_intake)
{
	struct intake *intake = calloc(1, sizeof(*intake));
	if (!intake)
		return -ENOMEM;
	intake->producer = producer;
	intake->series = series;
	intake->tiers = tiers;
	intake->source = (struct series_source){
		.source = producer->source,
		.rank = producer->rank,
		.job = intake_job(producer->reader),
		.context = intake,
		.name = text_of_name,
		.track = text_of_track,
		.is_stream = is_stream,
		.step = on_step,
	};
	*ret_intake = intake;
	return 0;
}

void intake_free(struct intake *intake)
{
	if (!intake)
		return;
	free(intake->rows);
	free(intake->names);
	free(intake->nests);
	free(intake);
}

void intake_set_tiers(struct intake *intake, struct reducer_tiers *tiers)
{
	intake->tiers = tiers;
	free(intake->rows);
	free(intake->names);
	intake->rows = NULL;
	intake->names = NULL;
	intake->room = intake->used = 0;
}

void intake_name(struct intake *intake, uint32_t name, char *ret_text, size_t room)
{
	const char *text;
	size_t bytes;
	ret_text[0] = 0;
	if (name == 0 || text_of_name(intake, name, &text, &bytes) != 0)
		return;
	plain_text(ret_text, room, text, bytes);
}

static int shown(uint32_t bytes)
{
	return bytes < 80 ? (int)bytes : 80;
}

/* "rank3 group: name" of a track, for people. */
static struct reducer_text label_text(const struct intake *intake, uint32_t track, char *out, size_t room)
{
	const struct drec_header *header = drec_reader_header(intake->producer->reader);
	struct drec_track_info info = {0};
	int length;
	if (drec_reader_track(intake->producer->reader, track, &info) < 0)
		length = snprintf(out, room, "%.63s track %u", header->name, track);
	else
		length = snprintf(out, room, "%.63s %.*s%s%.*s", header->name, shown(info.group_bytes),
				  info.group_bytes ? info.group : "", info.group_bytes ? ": " : "",
				  shown(info.name_bytes), info.name_bytes ? info.name : "");
	return text_from(out, length < (int)room ? (size_t)length : room - 1);
}

static int make_row(struct intake *intake, uint32_t track, enum reducer_row_kind kind, uint8_t depth,
		    uint32_t name, uint32_t *ret_row)
{
	char key[32], label[256], counter[64];
	uint32_t number;
	/* A counter is a row of its own, whatever track its source put it on. */
	int length = kind == REDUCER_ROW_COUNTER ? snprintf(key, sizeof(key), "%u/%u", track, name)
						 : snprintf(key, sizeof(key), "%u", track);
	struct reducer_text text = label_text(intake, track, label, sizeof(label));
	if (kind == REDUCER_ROW_COUNTER) {
		intake_name(intake, name, counter, sizeof(counter));
		text = text_from(counter, strlen(counter));
	}
	int result = reducer_tiers_track(intake->tiers, source_text(intake), text_from(key, (size_t)length), text,
					 &number);
	return result < 0 ? result : reducer_tiers_row(intake->tiers, number, kind, depth, ret_row);
}

static size_t row_slot(const struct intake *intake, uint64_t key)
{
	size_t mask = intake->room - 1;
	size_t at = (size_t)((key * 0x9e3779b97f4a7c15u) >> 40) & mask;
	while (intake->rows[at].key != 0 && intake->rows[at].key != key)
		at = (at + 1) & mask;
	return at;
}

static int rows_grow(struct intake *intake)
{
	struct row *old = intake->rows;
	size_t old_room = intake->room, room = old_room ? old_room * 2 : ROWS_FIRST;
	if (room > ROWS_MAX)
		return -ENOSPC;
	struct row *rows = calloc(room, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	intake->rows = rows;
	intake->room = room;
	for (size_t i = 0; i < old_room; i++)
		if (old[i].key)
			rows[row_slot(intake, old[i].key)] = old[i];
	free(old);
	return 0;
}

static int find_row(struct intake *intake, uint32_t track, enum reducer_row_kind kind, uint8_t depth,
		    uint32_t name, uint32_t *ret_row)
{
	/* Never 0: kind is not. Depth and a counter's name never matter together. */
	uint64_t key = (uint64_t)track << 32 | (uint64_t)kind << 28 |
		       (kind == REDUCER_ROW_COUNTER ? name & 0xfffffffu : depth);
	if (intake->used >= intake->room / 2) {
		int result = rows_grow(intake);
		if (result < 0 && intake->used + 1 >= intake->room)
			return result;
	}
	size_t at = row_slot(intake, key);
	if (!intake->rows[at].key) {
		uint32_t row;
		int result = make_row(intake, track, kind, depth, name, &row);
		if (result < 0)
			return result;
		intake->rows[at] = (struct row){.key = key, .row = row};
		intake->used++;
	}
	*ret_row = intake->rows[at].row;
	return 0;
}

static uint32_t tiers_name(struct intake *intake, const struct drec_event *event)
{
	uint32_t number = 0;
	const char *text = event->name_text;
	size_t bytes = event->name_bytes;
	if (event->flags & DREC_FLAG_NAME) {
		reducer_tiers_name(intake->tiers, text_from(text, bytes), &number);
		return number;
	}
	uint32_t ids = drec_reader_header(intake->producer->reader)->n_dict_ids;
	if (event->name == 0 || event->name > ids || ids >= NAMES_MAX)
		return 0;
	if (!intake->names) {
		intake->names = malloc((ids + 1) * sizeof(*intake->names));
		if (!intake->names)
			return 0;
		memset(intake->names, 0xff, (ids + 1) * sizeof(*intake->names));
	}
	if (intake->names[event->name] != UINT32_MAX)
		return intake->names[event->name];
	if (text_of_name(intake, event->name, &text, &bytes) == 0)
		reducer_tiers_name(intake->tiers, text_from(text, bytes), &number);
	intake->names[event->name] = number;
	return number;
}

/* Spans that come in the order of their begin nest; one that comes late is laid out as if it stood alone. */
static uint8_t depth_of(struct intake *intake, uint32_t track, int64_t start_ns, int64_t end_ns)
{
	struct nest *nest = NULL;
	for (size_t i = 0; i < intake->n_nests && !nest; i++)
		if (intake->nests[i].track == track)
			nest = &intake->nests[i];
	if (!nest) {
		if (!intake->nests)
			intake->nests = calloc(NESTS_MAX, sizeof(*intake->nests));
		if (!intake->nests || intake->n_nests == NESTS_MAX)
			return 0;
		nest = &intake->nests[intake->n_nests++];
		nest->track = track;
		nest->last_start_ns = INT64_MIN;
	}
	if (start_ns < nest->last_start_ns)
		return 0;
	nest->last_start_ns = start_ns;
	return reducer_nest_place(&nest->nest, start_ns, end_ns);
}

static void to_tiers(struct intake *intake, const struct drec_event *event, int64_t start_ns, int64_t end_ns)
{
	uint32_t row;
	if (event->kind == DREC_SPAN || (event->kind == DREC_MARK && (event->category == DREC_MARK_STEP_END ||
								    event->category == DREC_MARK_PHASE_END))) {
		uint8_t depth = event->depth != DREC_DEPTH_UNKNOWN
					? event->depth
					: depth_of(intake, event->track, start_ns, end_ns);
		intake->depth = depth;
		if (find_row(intake, event->track, REDUCER_ROW_SPANS, depth, 0, &row) == 0)
			reducer_tiers_span(intake->tiers, row, tiers_name(intake, event), start_ns, end_ns);
	} else if (event->kind == DREC_COUNTER) {
		if (find_row(intake, event->track, REDUCER_ROW_COUNTER, 0, event->name, &row) == 0)
			reducer_tiers_counter(intake->tiers, row, start_ns, drec_event_value(event));
	} else if (event->kind == DREC_INSTANT || event->kind == DREC_ASYNC_INSTANT) {
		if (find_row(intake, event->track, REDUCER_ROW_INSTANTS, 0, 0, &row) == 0)
			reducer_tiers_instant(intake->tiers, row, tiers_name(intake, event), start_ns);
	}
}

void intake_event(struct intake *intake, const struct drec_event *event)
{
	int64_t start_ns, end_ns;
	if (drec_reader_event_time(intake->producer->reader, event, &start_ns, &end_ns) < 0)
		return;
	struct series_event seen = {
		.kind = event->kind,
		.mark = event->category,
		.track = event->track,
		.name = event->name,
		.text = event->flags & DREC_FLAG_NAME ? event->name_text : NULL,
		.text_bytes = event->name_bytes,
		.start_ns = start_ns,
		.end_ns = end_ns,
		.id = event->id,
		.value = event->kind == DREC_COUNTER ? drec_event_value(event) : 0,
		.sample = -1,
	};
	if (intake->tiers)
		to_tiers(intake, event, start_ns, end_ns);
	series_event(intake->series, &intake->source, &seen);
}

void intake_open_spans(struct intake *intake, int64_t now_ns)
{
	const struct producer *producer = intake->producer;
	bool whole = producer->n_open < PRODUCERS_OPEN_MAX;
	series_stack_begin(intake->series, intake->source.source);
	for (size_t i = 0; i < producer->n_open; i++) {
		const struct drec_open_info *open = &producer->open[i];
		int64_t start_ns = drec_reader_unix_ns(producer->reader, open->start);
		uint32_t row;
		whole &= !open->moving;
		if (open->moving)
			continue;
		series_open(intake->series, &intake->source, open->mark, open->thread_track, open->name, start_ns,
			    open->step);
		if (intake->tiers && start_ns < now_ns && open->depth < DREC_STACK_MAX &&
		    find_row(intake, open->thread_track, REDUCER_ROW_SPANS, (uint8_t)open->depth, 0, &row) == 0)
			reducer_tiers_open_span(intake->tiers, row, start_ns, now_ns);
	}
	if (whole)
		series_stack_end(intake->series, intake->source.source);
}
