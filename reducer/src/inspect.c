/* SPDX-License-Identifier: Apache-2.0 */
#include <reducer/inspect.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inspect_state.h"
#include "text.h"

static const char phase_of_kind[DREC_KIND_LIMIT] = {
	[DREC_SPAN] = 'X', [DREC_INSTANT] = 'i', [DREC_COUNTER] = 'C', [DREC_FLOW_BEGIN] = 's',
	[DREC_FLOW_STEP] = 't', [DREC_FLOW_END] = 'f', [DREC_BEGIN] = 'B', [DREC_END] = 'E',
	[DREC_ASYNC_BEGIN] = 'b', [DREC_ASYNC_INSTANT] = 'n', [DREC_ASYNC_END] = 'e', [DREC_META] = 'M',
};

static uint64_t hash_text(struct reducer_text text, uint64_t seed)
{
	uint64_t hash = seed ^ text.bytes;
	for (size_t i = 0; i < text.bytes; i++)
		hash = (hash ^ (unsigned char)text.data[i]) * 0x100000001b3u;
	hash ^= hash >> 32;
	hash *= 0x9fb21c651e98df25u;
	return hash ^ hash >> 28;
}

int reducer_inspect_new(struct reducer_inspect **ret_inspect)
{
	struct reducer_inspect *inspect = calloc(1, sizeof(*inspect));
	if (!inspect)
		return -ENOMEM;
	*ret_inspect = inspect;
	return 0;
}

void reducer_inspect_free(struct reducer_inspect *inspect)
{
	if (!inspect)
		return;
	for (size_t i = 0; i < inspect->n_tracks; i++) {
		struct inspect_track *track = inspect->track[i];
		free(track->name);
		free(track->longest_name);
		free(track->interval);
		free(track);
	}
	for (size_t i = 0; i < inspect->n_kinds; i++)
		free(inspect->kind[i].name);
	free(inspect->track);
	free(inspect->track_index);
	free(inspect->names);
	free(inspect->base);
	buffer_free(&inspect->key);
	free(inspect);
}

/* A set of 128-bit hashes: two names in a thousand million are the same by chance once in 10^20. */
static int names_grow(struct reducer_inspect *inspect)
{
	size_t room = inspect->names_room ? inspect->names_room * 2 : 1024;
	struct inspect_name *names = calloc(room, sizeof(*names));
	if (!names)
		return -ENOMEM;
	for (size_t i = 0; i < inspect->names_room; i++) {
		struct inspect_name name = inspect->names[i];
		if (!name.low)
			continue;
		size_t at = name.low & (room - 1);
		while (names[at].low)
			at = (at + 1) & (room - 1);
		names[at] = name;
	}
	free(inspect->names);
	inspect->names = names;
	inspect->names_room = room;
	return 0;
}

static int add_name(struct reducer_inspect *inspect, struct reducer_text text)
{
	struct inspect_name name = {hash_text(text, 0xcbf29ce484222325u) | 1, hash_text(text, 0x2545f4914f6cdd1du)};
	if (inspect->n_names >= inspect->names_room / 2) {
		int result = names_grow(inspect);
		if (result < 0)
			return result;
	}
	size_t at = name.low & (inspect->names_room - 1);
	while (inspect->names[at].low) {
		if (inspect->names[at].low == name.low && inspect->names[at].high == name.high)
			return 0;
		at = (at + 1) & (inspect->names_room - 1);
	}
	inspect->names[at] = name;
	inspect->n_names++;
	return 0;
}

static int count_kind(struct reducer_inspect *inspect, struct reducer_text kind)
{
	for (size_t i = 0; i < inspect->n_kinds; i++)
		if (text_is(kind, inspect->kind[i].name)) {
			inspect->kind[i].count++;
			return 0;
		}
	if (inspect->n_kinds == REDUCER_INSPECT_KINDS_MAX)
		return -E2BIG;
	char *name = strndup(kind.data ? kind.data : "", kind.bytes);
	if (!name)
		return -ENOMEM;
	inspect->kind[inspect->n_kinds++] = (struct inspect_kind){name, 1};
	return 0;
}

/* The `ph` of an event of another kind; false if it has none. */
static bool other_phase(const struct reducer_event *event, struct reducer_text *ret)
{
	struct reducer_text rest = event->extra, key, value;
	while (json_next_member(&rest, &key, &value))
		if (text_is(key, "\"ph\"")) {
			bool quoted = value.bytes >= 2 && value.data[0] == '"';
			*ret = quoted ? (struct reducer_text){value.data + 1, value.bytes - 2} : value;
			return true;
		}
	return false;
}

static bool kind_of(const struct reducer_event *event, struct reducer_text *ret)
{
	if (event->kind == DREC_OTHER)
		return other_phase(event, ret);
	if (event->kind == DREC_MARK || event->kind == DREC_LOSS) {
		*ret = (struct reducer_text){event->kind == DREC_MARK ? "mark" : "loss", 4};
		return true;
	}
	if (event->kind >= DREC_KIND_LIMIT || !phase_of_kind[event->kind])
		return false;
	*ret = (struct reducer_text){&phase_of_kind[event->kind], 1};
	return true;
}

/* A pid or tid as a word: texts without quotes, null and nothing as None. */
static void add_track_word(struct buffer *out, struct reducer_text value)
{
	if (value.bytes >= 2 && value.data[0] == '"')
		json_unescape(out, (struct reducer_text){value.data + 1, value.bytes - 2});
	else if (value.bytes == 0 || text_is(value, "null"))
		buffer_add_literal(out, "None");
	else if (text_is(value, "true"))
		buffer_add_literal(out, "True");
	else if (text_is(value, "false"))
		buffer_add_literal(out, "False");
	else
		buffer_add_text(out, value);
}

static int index_grow(struct reducer_inspect *inspect)
{
	size_t room = inspect->index_room ? inspect->index_room * 2 : 256;
	uint32_t *index = calloc(room, sizeof(*index));
	struct inspect_track **track = realloc(inspect->track, room / 2 * sizeof(*track));
	if (track)
		inspect->track = track;
	if (!index || !track) {
		free(index);
		return -ENOMEM;
	}
	for (size_t i = 0; i < inspect->n_tracks; i++) {
		size_t at = inspect->track[i]->hash & (room - 1);
		while (index[at])
			at = (at + 1) & (room - 1);
		index[at] = (uint32_t)i + 1;
	}
	free(inspect->track_index);
	inspect->track_index = index;
	inspect->index_room = room;
	return 0;
}

static int find_track(struct reducer_inspect *inspect, const struct reducer_event *event,
		      struct inspect_track **ret_track)
{
	struct buffer *key = &inspect->key;
	buffer_clear(key);
	add_track_word(key, event->group);
	buffer_add_byte(key, '/');
	add_track_word(key, event->track);
	if (key->failed)
		return key->failed;
	struct reducer_text name = {key->data, key->bytes};
	uint64_t hash = hash_text(name, 1);
	if (inspect->n_tracks >= inspect->index_room / 2) {
		int result = index_grow(inspect);
		if (result < 0)
			return result;
	}
	size_t at = hash & (inspect->index_room - 1);
	for (; inspect->track_index[at]; at = (at + 1) & (inspect->index_room - 1)) {
		struct inspect_track *track = inspect->track[inspect->track_index[at] - 1];
		if (track->hash == hash && text_is(name, track->name)) {
			*ret_track = track;
			return 0;
		}
	}
	if (inspect->n_tracks == REDUCER_INSPECT_TRACKS_MAX)
		return -E2BIG;
	struct inspect_track *track = calloc(1, sizeof(*track));
	if (!track || !(track->name = strndup(name.data, name.bytes))) {
		free(track);
		return -ENOMEM;
	}
	track->hash = hash;
	inspect->track[inspect->n_tracks++] = track;
	inspect->track_index[at] = (uint32_t)inspect->n_tracks;
	*ret_track = track;
	return 0;
}

static struct inspect_time time_add(struct inspect_time a, int64_t ns, uint16_t ps)
{
	uint16_t rest = (uint16_t)(a.ps + ps);
	int64_t sum;
	if (__builtin_add_overflow(a.ns, ns, &sum) || (rest >= 1000 && sum == INT64_MAX))
		return (struct inspect_time){ns < 0 ? INT64_MIN : INT64_MAX, 0};
	return (struct inspect_time){sum + rest / 1000, (uint16_t)(rest % 1000)};
}

static int time_compare(struct inspect_time a, struct inspect_time b)
{
	if (a.ns != b.ns)
		return a.ns < b.ns ? -1 : 1;
	return a.ps < b.ps ? -1 : a.ps > b.ps;
}

static int add_interval(struct inspect_track *track, struct inspect_time start, struct inspect_time end)
{
	if (track->n_intervals) {
		struct inspect_interval *last = &track->interval[track->n_intervals - 1];
		struct inspect_time last_start = {last->start_ns, last->start_ps}, last_end = {last->end_ns, last->end_ps};
		if (time_compare(start, last_start) >= 0 && time_compare(start, last_end) <= 0) {
			if (time_compare(end, last_end) > 0) {
				last->end_ns = end.ns;
				last->end_ps = end.ps;
			}
			return 0;
		}
	}
	if (track->n_intervals == track->room) {
		size_t room = track->room ? track->room * 2 : 16;
		struct inspect_interval *grown = realloc(track->interval, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		track->interval = grown;
		track->room = room;
	}
	track->interval[track->n_intervals++] = (struct inspect_interval){start.ns, end.ns, start.ps, end.ps};
	return 0;
}

static int add_span(struct reducer_inspect *inspect, const struct reducer_event *event)
{
	struct inspect_track *track;
	int result = find_track(inspect, event, &track);
	if (result != 0)
		return result;
	struct inspect_time start = {event->start_ns, event->start_ps};
	struct inspect_time length = {event->duration_ns, event->duration_ps};
	struct inspect_time end = time_add(start, length.ns, length.ps);
	if (!track->spans || time_compare(start, track->first) < 0)
		track->first = start;
	if (!track->spans || time_compare(end, track->last) > 0)
		track->last = end;
	if (!track->spans || time_compare(length, track->longest) > 0) {
		char *name = NULL;
		if (event->name.bytes || event->name_raw.bytes) {
			name = strndup(event->name.bytes ? event->name.data : "", event->name.bytes);
			if (!name)
				return -ENOMEM;
		}
		free(track->longest_name);
		track->longest_name = name;
		track->longest = length;
	}
	track->spans++;
	return length.ns < 0 ? 0 : add_interval(track, start, end);
}

int reducer_inspect_event(struct reducer_inspect *inspect, const struct reducer_event *event)
{
	struct reducer_text kind;
	if (!kind_of(event, &kind))
		return 0;
	int result = count_kind(inspect, kind);
	if (result < 0)
		return result;
	inspect->events++;
	inspect->sorted = false;
	if (event->name.bytes || event->name_raw.bytes) {
		result = add_name(inspect, event->name);
		if (result < 0)
			return result;
	}
	if (event->kind == DREC_SPAN && event->has_time && event->has_duration)
		return add_span(inspect, event);
	return 0;
}

int reducer_inspect_member(struct reducer_inspect *inspect, const struct reducer_member *member)
{
	if (!text_is(member->key, "baseTimeNanoseconds"))
		return 0;
	struct reducer_text value = member->value;
	if (value.bytes >= 2 && value.data[0] == '"')
		value = (struct reducer_text){value.data + 1, value.bytes - 2};
	char *base = strndup(value.data, value.bytes);
	if (!base)
		return -ENOMEM;
	free(inspect->base);
	inspect->base = base;
	return 0;
}

static int sink_event(void *context, const struct reducer_event *event)
{
	return reducer_inspect_event(context, event);
}

static int sink_member(void *context, const struct reducer_member *member)
{
	return reducer_inspect_member(context, member);
}

struct reducer_sink reducer_inspect_sink(struct reducer_inspect *inspect)
{
	return (struct reducer_sink){inspect, sink_event, sink_member};
}
