/* SPDX-License-Identifier: Apache-2.0 */
/* Events into columns. This runs once an event, on the thread that everything waits for: it copies no text. */
#include "reduce_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <reducer/chrome.h>
#include <reducer/marks.h>
#include <reducer/trace.h>

#include "decimal.h"
#include "json.h"
#include "text.h"

enum {
	ROOM_MIN = 1 << 15,
	HUGE_FROM_BYTES = 8 << 20,
	PLACE_BYTES_BITS = 24,
	EVENT_BYTES_MAX = (1 << PLACE_BYTES_BITS) - 1,
	NAMES_MAX = 1 << 20
};

/*
 * A column is a mapping of its own: growing it moves page tables and no bytes, what is not used yet costs
 * nothing, and large pages save a fault for every 4 KiB of it.
 */
static int grow_one(void **column, size_t size, uint32_t old_room, uint32_t room)
{
	size_t bytes = room * size;
	void *grown = *column ? mremap(*column, old_room * size, bytes, MREMAP_MAYMOVE)
			      : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (grown == MAP_FAILED)
		return -ENOMEM;
	*column = grown;
	if (bytes >= HUGE_FROM_BYTES)
		madvise(grown, bytes, MADV_HUGEPAGE);
	return 0;
}

static void free_one(void *column, size_t size, uint32_t room)
{
	if (column)
		munmap(column, room * size);
}

void reduce_columns_free_track(struct reduce_columns *col)
{
	free_one(col->track, sizeof(*col->track), col->room);
	col->track = NULL;
}

void reduce_columns_free(struct reduce_columns *col)
{
	free_one(col->start, sizeof(*col->start), col->room);
	free_one(col->length, sizeof(*col->length), col->room);
	free_one(col->place, sizeof(*col->place), col->room);
	free_one(col->name, sizeof(*col->name), col->room);
	free_one(col->bits, sizeof(*col->bits), col->room);
	reduce_columns_free_track(col);
}

static int grow(struct reduce_columns *col)
{
	if (col->room >= UINT32_MAX - 1 - col->room / 8)
		return -E2BIG;
	uint32_t old = col->room, room = old < 8 * ROOM_MIN ? old + ROOM_MIN : old + old / 8;
	struct {
		void **column;
		size_t size;
	} all[] = {{(void **)&col->start, sizeof(*col->start)},   {(void **)&col->length, sizeof(*col->length)},
		   {(void **)&col->place, sizeof(*col->place)},   {(void **)&col->track, sizeof(*col->track)},
		   {(void **)&col->name, sizeof(*col->name)},     {(void **)&col->bits, sizeof(*col->bits)}};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		int result = grow_one(all[i].column, all[i].size, old, room);
		if (result == 0)
			continue;
		/* All of one length again, so that they are freed by it. */
		while (i-- > 0) {
			void *column = *all[i].column;
			if (old)
				mremap(column, room * all[i].size, old * all[i].size, 0);
			else
				munmap(column, room * all[i].size);
			if (!old)
				*all[i].column = NULL;
		}
		return result;
	}
	col->room = room;
	return 0;
}

static bool text_begins(struct reducer_text text, const char *begin, size_t bytes)
{
	return text.bytes >= bytes && memcmp(text.data, begin, bytes) == 0;
}

/* Args of JAX's StepTraceAnnotation: "step_num". Looked for by its rarest byte. */
static bool has_step_number(struct reducer_text args)
{
	static const char key[] = "\"step_num\"";
	enum { BEFORE = 5, KEY_BYTES = sizeof(key) - 1 };
	if (!args.bytes)
		return false;
	const char *at = args.data, *end = args.data + args.bytes;
	while ((at = memchr(at, '_', (size_t)(end - at))) != NULL) {
		if (at - args.data >= BEFORE && end - at >= KEY_BYTES - BEFORE && memcmp(at - BEFORE, key, KEY_BYTES) == 0)
			return true;
		at++;
	}
	return false;
}

/* A span that says where a step begins and ends, whatever wrote it. */
static bool is_step_mark(const struct reducer_event *event)
{
	struct reducer_text name = event->name;
	if (name.bytes > 13 && name.data[0] == 'P' && text_begins(name, "ProfilerStep#", 13))
		return true;
	if (name.bytes > 15 && name.data[0] == 'O' && text_begins(name, "Optimizer.step#", 15))
		return true;
	if (event->category.bytes && text_is(event->category, "driverec.mark"))
		return true;
	return event->args.bytes < REDUCER_STEP_ARGS_MAX && has_step_number(event->args);
}

static bool is_merged(const struct reducer_event *event)
{
	return event->args.bytes > sizeof(REDUCER_MARK_MERGED_ARGS) && event->args.data[2] == 'd' &&
	       text_begins(event->args, REDUCER_MARK_MERGED_ARGS, sizeof(REDUCER_MARK_MERGED_ARGS) - 1) &&
	       text_is(event->category, REDUCER_MARK_MERGED) &&
	       (event->kind == DREC_SPAN || event->kind == DREC_INSTANT || event->kind == DREC_ASYNC_BEGIN);
}

static bool read_ps(struct reducer_text digits, int64_t *ret_ps)
{
	uint64_t ps;
	if (!decimal_u64(text_unquoted(digits), &ps) || ps > INT64_MAX)
		return false;
	*ret_ps = (int64_t)ps;
	return true;
}

/* What a merged event stands for. What does not say all of that only looks like one, and is what it is. */
static int note_stands(struct reducer_reduce *r, const struct reducer_event *event, uint32_t *bits)
{
	struct reduce_stands its = {.event = r->col.count, .longest_name = REDUCE_NONE};
	struct reducer_text rest = {event->args.data + 1, event->args.bytes - 2}, key, value;
	bool is_span = event->kind == DREC_SPAN, events = false, sum = !is_span, longest = !is_span;
	int result = 0;
	while (result == 0 && json_next_member(&rest, &key, &value)) {
		if (text_is(key, "\"driverec.events\""))
			events = decimal_u64(value, &its.events);
		else if (is_span && text_is(key, "\"driverec.sum_ps\""))
			sum = read_ps(value, &its.sum_ps);
		else if (is_span && text_is(key, "\"driverec.longest_ps\""))
			longest = read_ps(value, &its.longest_ps);
		else if (text_is(key, "\"driverec.longest\""))
			result = reduce_name_of(&r->names, value, text_unquoted(value), &its.longest_name);
	}
	if (result < 0 || !events || !sum || !longest || its.longest_ps > its.sum_ps)
		return result;
	struct reduce_stands *stands = reduce_vector_add(&r->stands, sizeof(*stands));
	if (!stands)
		return -ENOMEM;
	*stands = its;
	*bits |= BIT_MERGED;
	return 0;
}

/* All that says which of its name an event is, in whatever order it stands. */
static uint64_t id_hash(const struct reducer_event *event, uint64_t seed)
{
	static const char *const keys[] = {"\"id\"", "\"id2\"", "\"scope\""};
	enum { KEYS = sizeof(keys) / sizeof(keys[0]) };
	struct reducer_text rest = event->extra, key, value, said[KEYS] = {0};
	if (event->has_id)
		seed = reduce_hash(seed + 1, (const char *)&event->id, sizeof(event->id));
	while (rest.bytes && json_next_member(&rest, &key, &value))
		for (size_t i = 0; i < KEYS; i++)
			if (!said[i].bytes && text_is(key, keys[i]))
				said[i] = value;
	for (size_t i = 0; i < KEYS; i++)
		if (said[i].bytes)
			seed = reduce_hash(seed + i, said[i].data, said[i].bytes);
	return seed;
}

static bool same_text(const char *text, uint32_t bytes, struct reducer_text other)
{
	return bytes == other.bytes && (bytes == 0 || memcmp(text, other.data, bytes) == 0);
}

/* What joins the ends of a flow. */
static uint64_t flow_hash(struct reducer_reduce *r, const struct reducer_event *event)
{
	struct reduce_flow_name *last = &r->flow_name;
	struct reducer_text category = event->category, name = event->name;
	if (!same_text(last->text, last->category_bytes, category) ||
	    !same_text(last->text + last->category_bytes, last->name_bytes, name) || !last->hash) {
		uint64_t hash = reduce_hash(0, category.bytes ? category.data : "", category.bytes);
		hash = reduce_hash(hash, name.bytes ? name.data : "", name.bytes);
		if (category.bytes + name.bytes > sizeof(last->text))
			return id_hash(event, hash);
		last->category_bytes = (uint32_t)category.bytes;
		last->name_bytes = (uint32_t)name.bytes;
		if (category.bytes)
			memcpy(last->text, category.data, category.bytes);
		if (name.bytes)
			memcpy(last->text + category.bytes, name.data, name.bytes);
		last->hash = hash;
	}
	return id_hash(event, last->hash);
}

/* Whether the same metadata event came before. A negative value is -errno. */
static int was_seen(struct reducer_reduce *r, uint64_t hash)
{
	if (r->n_seen >= r->seen_slots / 2) {
		uint32_t slots = r->seen_slots ? r->seen_slots * 2 : 1024;
		uint64_t *seen = calloc(slots, sizeof(*seen));
		if (!seen)
			return -ENOMEM;
		for (uint32_t i = 0; i < r->seen_slots; i++) {
			if (!r->seen[i])
				continue;
			uint32_t at = (uint32_t)r->seen[i] & (slots - 1);
			while (seen[at])
				at = (at + 1) & (slots - 1);
			seen[at] = r->seen[i];
		}
		free(r->seen);
		r->seen = seen;
		r->seen_slots = slots;
	}
	hash += hash == 0;
	uint32_t at = (uint32_t)hash & (r->seen_slots - 1);
	while (r->seen[at] && r->seen[at] != hash)
		at = (at + 1) & (r->seen_slots - 1);
	if (r->seen[at])
		return 1;
	r->seen[at] = hash;
	r->n_seen++;
	return 0;
}

/* What one event becomes. */
struct row {
	int64_t start, length;
	int64_t track; /* or -errno */
	uint32_t name, bits;
};

static const struct reducer_text no_text = {NULL, 0};

static struct reducer_text name_of(const struct reducer_event *event)
{
	return event->name_raw.bytes ? event->name_raw : event->name;
}

static void set_times(struct row *row, const struct reducer_event *event, enum reduce_kind kind)
{
	row->start = event->start_ns;
	row->bits = (uint32_t)event->start_ps << BITS_START_PS | (uint32_t)kind << BITS_KIND;
}

static int take_span(struct reducer_reduce *r, const struct reducer_event *event, struct row *row)
{
	set_times(row, event, KIND_SPAN);
	if (event->kind == DREC_SPAN) {
		row->length = event->duration_ns;
		row->bits |= (uint32_t)event->duration_ps << BITS_LENGTH_PS;
	} else {
		row->bits = reduce_with_kind(row->bits, event->kind == DREC_BEGIN ? KIND_BEGIN : KIND_END);
	}
	if (is_step_mark(event))
		row->bits |= BIT_ALWAYS;
	row->track = reduce_track_of(&r->tracks, CLASS_THREAD, event->group, event->track, no_text);
	return is_merged(event) ? note_stands(r, event, &row->bits) : 0;
}

static int take_instant(struct reducer_reduce *r, const struct reducer_event *event, struct row *row)
{
	set_times(row, event, KIND_INSTANT);
	if (event->category.bytes && text_is(event->category, "driverec.mark"))
		row->bits |= BIT_ALWAYS;
	row->track = reduce_track_of(&r->tracks, CLASS_INSTANTS, event->group, event->track, no_text);
	return is_merged(event) ? note_stands(r, event, &row->bits) : 0;
}

static int take_flow(struct reducer_reduce *r, const struct reducer_event *event, struct row *row)
{
	set_times(row, event,
		  event->kind == DREC_FLOW_BEGIN ? KIND_FLOW_BEGIN
		  : event->kind == DREC_FLOW_END ? KIND_FLOW_END
						 : KIND_FLOW_STEP);
	uint64_t hash = flow_hash(r, event);
	memcpy(&row->length, &hash, sizeof(hash));
	r->n_flow_events++;
	if (event->kind != DREC_FLOW_END ||
	    (event->extra.bytes && memmem(event->extra.data, event->extra.bytes, "\"bp\"", 4)))
		row->bits |= BIT_ENCLOSING;
	row->track = reduce_track_of(&r->tracks, CLASS_FLOWS, event->group, event->track, no_text);
	return 0;
}

static int take_async(struct reducer_reduce *r, const struct reducer_event *event, struct row *row)
{
	set_times(row, event, event->kind == DREC_ASYNC_BEGIN ? KIND_ASYNC_BEGIN : KIND_ASYNC_END);
	uint64_t hash = id_hash(event, 0);
	memcpy(&row->length, &hash, sizeof(hash));
	row->track = reduce_track_of(&r->tracks, CLASS_ASYNC, event->group, event->category, event->name);
	return is_merged(event) ? note_stands(r, event, &row->bits) : 0;
}

/* The track of one value of a counter: its name, id and the value's key. */
static int64_t series_of(struct reducer_reduce *r, const struct reducer_event *event, struct reducer_text key)
{
	uint64_t id = id_hash(event, 0);
	buffer_clear(&r->member_texts);
	buffer_add_text(&r->member_texts, key);
	buffer_add(&r->member_texts, (const char *)&id, sizeof(id));
	if (r->member_texts.failed)
		return r->member_texts.failed;
	struct reducer_text rest = {r->member_texts.data, r->member_texts.bytes};
	return reduce_track_of(&r->tracks, CLASS_COUNTER, event->group, name_of(event), rest);
}

static int take_counter(struct reducer_reduce *r, const struct reducer_event *event, struct row *row)
{
	set_times(row, event, KIND_COUNTER);
	struct reducer_text args = event->args;
	row->track = -1;
	/* Damaged args are what the writer makes of them. */
	if (args.bytes && !json_valid(args)) {
		buffer_clear(&r->repaired);
		json_repair(&r->repaired, args);
		args = (struct reducer_text){r->repaired.data, r->repaired.bytes};
		if (r->repaired.failed)
			return r->repaired.failed;
	}
	if (args.bytes < 2 || args.data[0] != '{')
		return 0;
	struct reducer_text rest = {args.data + 1, args.bytes - 2}, key, value;
	while (json_next_member(&rest, &key, &value)) {
		double number;
		if (!decimal_double(text_unquoted(value), &number))
			continue;
		int64_t track = series_of(r, event, key);
		if (track < 0)
			return (int)track;
		if (row->track < 0) {
			row->track = track;
			memcpy(&row->length, &number, sizeof(number));
			continue;
		}
		struct reduce_sample *more = reduce_vector_add(&r->samples, sizeof(*more));
		if (!more)
			return -ENOMEM;
		*more = (struct reduce_sample){r->col.count, (uint32_t)track, number};
		row->bits |= BIT_MORE;
	}
	return 0;
}

/* Names of processes and threads, for --track: the index of a text pair in `names`. */
static int note_name(struct reducer_reduce *r, const struct reducer_event *event)
{
	bool process = text_is(event->name, "process_name");
	if ((!process && !text_is(event->name, "thread_name")) || r->called.count >= NAMES_MAX ||
	    event->args.bytes < 2)
		return 0;
	struct reducer_text rest = {event->args.data + 1, event->args.bytes - 2}, key, value;
	while (json_next_member(&rest, &key, &value)) {
		if (!text_is(key, "\"name\""))
			continue;
		int64_t track = reduce_track_of(&r->tracks, CLASS_NOWHERE, event->group,
						process ? no_text : event->track, text_unquoted(value));
		uint32_t *name = track < 0 ? NULL : reduce_vector_add(&r->called, sizeof(*name));
		if (!name)
			return track < 0 ? (int)track : -ENOMEM;
		*name = (uint32_t)track;
		break;
	}
	return 0;
}

static int take_meta(struct reducer_reduce *r, const struct reducer_event *event, struct row *row)
{
	struct reducer_text name = name_of(event);
	uint64_t hash = reduce_hash(1, name.bytes ? name.data : "", name.bytes);
	const struct reducer_text *texts[] = {&event->group, &event->track, &event->args, &event->extra};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		hash = reduce_hash(hash + i, texts[i]->bytes ? texts[i]->data : "", texts[i]->bytes);
	row->bits = (uint32_t)KIND_META << BITS_KIND;
	row->track = -1;
	int seen = was_seen(r, hash);
	if (seen < 0)
		return seen;
	if (seen)
		row->bits |= BIT_TWICE;
	/* Reduced again, the trace says so once, and anew. */
	if (text_is(event->name, REDUCER_MARK_REDUCED))
		row->bits |= BIT_TWICE;
	return seen || !r->options.track_pattern ? 0 : note_name(r, event);
}

static int take(struct reducer_reduce *r, const struct reducer_event *event, struct row *row)
{
	switch (event->has_time ? event->kind : 0) {
	case DREC_SPAN:
		if (event->has_duration && event->duration_ns >= 0)
			return take_span(r, event, row);
		break;
	case DREC_BEGIN:
	case DREC_END:
		return take_span(r, event, row);
	case DREC_INSTANT:
		return take_instant(r, event, row);
	case DREC_COUNTER:
		return take_counter(r, event, row);
	case DREC_FLOW_BEGIN:
	case DREC_FLOW_STEP:
	case DREC_FLOW_END:
		return take_flow(r, event, row);
	case DREC_ASYNC_BEGIN:
	case DREC_ASYNC_END:
		return take_async(r, event, row);
	default:
		break;
	}
	if (event->kind == DREC_META)
		return take_meta(r, event, row);
	set_times(row, event, event->has_time ? KIND_TIMED : KIND_OTHER);
	return 0;
}

/* Where tracks are asked for: the thread of what is kept as it is, and of what is on a track of another kind. */
static int take_thread(struct reducer_reduce *r, const struct reducer_event *event, struct row *row)
{
	int64_t thread = reduce_track_of(&r->tracks, CLASS_ALONE, event->group, event->track, no_text);
	if (thread < 0)
		return (int)thread;
	if (row->track < 0) {
		row->track = thread;
		row->bits |= BIT_ALWAYS;
		return 0;
	}
	uint8_t class = r->tracks.track[row->track].class;
	if (class != CLASS_COUNTER && class != CLASS_ASYNC)
		return 0;
	struct reduce_thread *its = reduce_vector_add(&r->threads, sizeof(*its));
	if (!its)
		return -ENOMEM;
	*its = (struct reduce_thread){r->col.count, (uint32_t)thread};
	return 0;
}

static int on_event(void *context, const struct reducer_event *event)
{
	struct reducer_reduce *r = context;
	struct reduce_columns *col = &r->col;
	struct row row = {.track = -1};
	int result = col->count == col->room ? grow(col) : 0;
	if (result == 0)
		result = take(r, event, &row);
	if (result < 0)
		return result;
	if (row.track < -1)
		return (int)row.track;
	if (event->offset >> (64 - PLACE_BYTES_BITS))
		return -EFBIG;
	if (r->options.track_pattern && event->kind != DREC_META)
		result = take_thread(r, event, &row);
	if (result < 0)
		return result;
	if (row.track < 0) {
		/* Nothing to merge it with. */
		row.track = reduce_track_of(&r->tracks, CLASS_NOWHERE, no_text, no_text, no_text);
		if (row.track < 0)
			return (int)row.track;
		row.bits |= BIT_ALWAYS;
	}
	result = reduce_name_of(&r->names, name_of(event), event->name, &row.name);
	if (result < 0)
		return result;
	uint32_t at = col->count++;
	r->has_ps |= (row.bits & (BITS_PS_MASK << BITS_START_PS | BITS_PS_MASK << BITS_LENGTH_PS)) != 0;
	col->start[at] = row.start;
	col->length[at] = row.length;
	col->place[at] = r->format == REDUCER_FORMAT_CHROME ? event->offset << PLACE_BYTES_BITS | event->bytes : at;
	col->track[at] = (uint32_t)row.track;
	col->name[at] = row.name;
	col->bits[at] = row.bits;
	r->tracks.track[row.track].n_events++;
	return 0;
}

static int on_member(void *context, const struct reducer_member *member)
{
	struct reducer_reduce *r = context;
	char *copy = malloc(member->key.bytes + member->value.bytes + 1);
	char **block = copy ? reduce_vector_add(&r->member_blocks, sizeof(*block)) : NULL;
	if (!block) {
		free(copy);
		return -ENOMEM;
	}
	*block = copy;
	struct reducer_member *kept = reduce_vector_add(&r->members, sizeof(*kept));
	if (!kept)
		return -ENOMEM;
	if (member->key.bytes)
		memcpy(copy, member->key.data, member->key.bytes);
	if (member->value.bytes)
		memcpy(copy + member->key.bytes, member->value.data, member->value.bytes);
	*kept = (struct reducer_member){{copy, member->key.bytes}, {copy + member->key.bytes, member->value.bytes}};
	return 0;
}

static int read_chrome(struct reducer_reduce *r, const struct reducer_sink *sink)
{
	struct reducer_input *input = NULL;
	struct reducer_problem problem = {0};
	int result = reducer_input_open(r->path, &input, &problem);
	if (result < 0) {
		r->read.problem[r->read.n_problems++] = problem;
		return result;
	}
	struct reducer_chrome_options options = {.event_bytes_max = EVENT_BYTES_MAX,
						 .threads = r->options.threads ? r->options.threads : 2};
	result = reducer_input_keep_seek_points(input);
	if (result == 0)
		result = reducer_chrome_read(input, sink, &options, &r->read);
	if (result == 0)
		result = reducer_input_take_seek_points(input, &r->points);
	reducer_input_free(input);
	return result == -ENOENT ? 0 : result;
}

int reduce_read_events(struct reducer_reduce *r)
{
	struct reducer_sink sink = {r, on_event, on_member};
	struct reducer_problem problem = {0};
	int result = reducer_trace_sniff(r->path, &r->format, &problem);
	if (result < 0) {
		r->read.problem[r->read.n_problems++] = problem;
		return result;
	}
	if (r->format == REDUCER_FORMAT_CHROME)
		result = read_chrome(r, &sink);
	else
		result = reducer_trace_read(r->path, r->format, &sink, &r->read);
	free(r->seen);
	r->seen = NULL;
	return result;
}
