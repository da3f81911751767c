/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracks by what events say of them. A process is its `pid` as written, a thread its pid and tid; where these
 * are numbers that an operating system could have given, the track says them, else it is a named one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decimal.h"
#include "json.h"
#include "pftrace_inside.h"
#include "text.h"

enum { TRACKS_MAX = 1 << 20, TRACKS_BYTES_MAX = 256 << 20, LABEL_BYTES_MAX = 64 << 10 };

void *pf_list_add(struct pf_list *list, size_t bytes)
{
	if (list->count == list->room) {
		uint64_t room = list->room ? list->room + (uint64_t)list->room / 2 : 256;
		void *item = room > UINT32_MAX ? NULL : realloc(list->item, room * bytes);
		if (!item)
			return NULL;
		list->item = item;
		list->room = (uint32_t)room;
	}
	void *item = (char *)list->item + list->count++ * bytes;
	memset(item, 0, bytes);
	return item;
}

/* JSON as people read it: texts without their quotes, all else as written. */
static void add_said(struct buffer *out, struct reducer_text value)
{
	if (value.bytes >= 2 && *value.data == '"' && value.data[value.bytes - 1] == '"')
		json_unescape(out, (struct reducer_text){value.data + 1, value.bytes - 2});
	else
		pf_add_clean(out, value);
}

static char *said(struct reducer_text value)
{
	struct buffer text = {0};
	if (value.bytes > LABEL_BYTES_MAX)
		value.bytes = LABEL_BYTES_MAX;
	add_said(&text, value);
	buffer_add_byte(&text, 0);
	if (text.failed)
		buffer_free(&text);
	return text.data;
}

/* Old traces write a tid as a number at one event and as a text at another: it is one thread. */
static struct reducer_text plain_number(struct reducer_text value)
{
	if (value.bytes <= 2 || *value.data != '"')
		return value;
	struct reducer_text inner = {value.data + 1, value.bytes - 2};
	int64_t number;
	return decimal_i64(inner, &number) ? inner : value;
}

/* 1 .. INT32_MAX; 0 and below mean something of their own to Perfetto. */
static int64_t number_of(struct reducer_text value)
{
	int64_t number;
	return decimal_i64(value, &number) && number > 0 && number <= INT32_MAX ? number : PF_NO_NUMBER;
}

static bool grow(struct pf_tracks *tracks)
{
	uint32_t buckets = tracks->buckets ? tracks->buckets * 2 : 128;
	uint32_t *bucket = calloc(buckets, sizeof(*bucket));
	struct pf_track *track = realloc(tracks->track, buckets / 2 * sizeof(*track));
	if (track)
		tracks->track = track;
	if (!bucket || !track) {
		free(bucket);
		return false;
	}
	tracks->room = buckets / 2;
	for (uint32_t i = 0; i < tracks->count; i++) {
		uint32_t at = (uint32_t)tracks->track[i].hash & (buckets - 1);
		while (bucket[at])
			at = (at + 1) & (buckets - 1);
		bucket[at] = i + 1;
	}
	free(tracks->bucket);
	tracks->bucket = bucket;
	tracks->buckets = buckets;
	return true;
}

static uint32_t find(const struct pf_tracks *tracks, uint64_t hash, uint8_t kind, uint32_t parent,
		     struct reducer_text key, uint32_t *ret_at)
{
	uint32_t at = tracks->buckets ? (uint32_t)hash & (tracks->buckets - 1) : 0;
	for (; tracks->buckets && tracks->bucket[at]; at = (at + 1) & (tracks->buckets - 1)) {
		const struct pf_track *track = &tracks->track[tracks->bucket[at] - 1];
		if (track->hash == hash && track->kind == kind && track->parent == parent &&
		    track->key_bytes == key.bytes &&
		    (!key.bytes || memcmp(track->key, key.data, key.bytes) == 0))
			return tracks->bucket[at] - 1;
	}
	*ret_at = at;
	return PF_NO_TRACK;
}

static uint32_t take(struct pf_tracks *tracks, uint8_t kind, uint32_t parent, struct reducer_text key,
		     int *failed)
{
	uint64_t hash = pf_hash(0xcbf29ce484222325u + kind * 31u + parent * (uint64_t)0x9e3779b1u, key);
	uint32_t at = 0, found = find(tracks, hash, kind, parent, key, &at);
	if (found != PF_NO_TRACK)
		return found;
	if (tracks->count == TRACKS_MAX || key.bytes > TRACKS_BYTES_MAX - tracks->bytes)
		return PF_NO_TRACK;
	if (tracks->count == tracks->room) {
		if (!grow(tracks)) {
			*failed = -ENOMEM;
			return PF_NO_TRACK;
		}
		(void)find(tracks, hash, kind, parent, key, &at);
	}
	struct pf_track track = {.hash = hash,
				 .kind = kind,
				 .parent = parent,
				 .pid = PF_NO_NUMBER,
				 .tid = PF_NO_NUMBER,
				 .key_bytes = key.bytes};
	track.key = malloc(key.bytes + 1);
	if (!track.key) {
		*failed = -ENOMEM;
		return PF_NO_TRACK;
	}
	if (key.bytes)
		memcpy(track.key, key.data, key.bytes);
	track.key[key.bytes] = 0;
	tracks->bytes += key.bytes;
	tracks->track[tracks->count] = track;
	tracks->bucket[at] = ++tracks->count;
	return tracks->count - 1;
}

uint32_t pf_track_process(struct pf_tracks *tracks, struct reducer_text group, int *failed)
{
	group = plain_number(group);
	uint32_t index = take(tracks, PF_TRACK_KIND_PROCESS, PF_NO_TRACK, group, failed);
	if (index != PF_NO_TRACK)
		tracks->track[index].pid = number_of(group);
	return index;
}

uint32_t pf_track_thread(struct pf_tracks *tracks, struct reducer_text group, struct reducer_text tid,
			 int *failed)
{
	uint32_t process = pf_track_process(tracks, group, failed);
	if (process == PF_NO_TRACK || !tid.bytes)
		return process;
	tid = plain_number(tid);
	uint32_t index = take(tracks, PF_TRACK_KIND_THREAD, process, tid, failed);
	if (index != PF_NO_TRACK && tracks->track[process].pid != PF_NO_NUMBER)
		tracks->track[index].tid = number_of(tid);
	return index;
}

uint32_t pf_track_named(struct pf_tracks *tracks, enum pf_track_kind kind, struct reducer_text group,
			struct reducer_text name, int *failed)
{
	uint32_t process = kind == PF_TRACK_KIND_ROOT ? PF_NO_TRACK : pf_track_process(tracks, group, failed);
	if (process == PF_NO_TRACK && kind != PF_TRACK_KIND_ROOT)
		return PF_NO_TRACK;
	return take(tracks, (uint8_t)kind, process, name, failed);
}

static int set_text(char **text, struct reducer_text value)
{
	char *copy = said(value);
	if (!copy)
		return -ENOMEM;
	free(*text);
	*text = copy;
	return 1;
}

static int set_rank(struct pf_tracks *tracks, struct pf_track *track, struct reducer_text value)
{
	int64_t rank;
	if (!decimal_i64(value, &rank))
		return 0;
	track->has_rank = true;
	track->rank = rank > INT32_MAX ? INT32_MAX : rank < INT32_MIN ? INT32_MIN : (int32_t)rank;
	if (track->parent != PF_NO_TRACK)
		tracks->track[track->parent].ranks_children = true;
	return 1;
}

/* The member of an event's args, which are an object. */
static struct reducer_text arg(struct reducer_text args, const char *name)
{
	struct reducer_text key, value, none = {NULL, 0};
	if (args.bytes < 2 || *args.data != '{')
		return none;
	args = (struct reducer_text){args.data + 1, args.bytes - 2};
	while (json_next_member(&args, &key, &value))
		if (text_is((struct reducer_text){key.data + 1, key.bytes - 2}, name))
			return value;
	return none;
}

int pf_tracks_meta(struct pf_tracks *tracks, const struct reducer_event *event)
{
	static const struct {
		const char *name, *arg;
		bool of_process;
	} known[] = {
		{"process_name", "name", true},
		{"process_labels", "labels", true},
		{"process_sort_index", "sort_index", true},
		{"thread_name", "name", false},
		{"thread_sort_index", "sort_index", false},
	};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct reducer_text value = arg(event->args, known[i].arg);
		int failed = 0;
		if (!text_is(event->name, known[i].name) || !value.bytes)
			continue;
		uint32_t index = known[i].of_process
					 ? pf_track_process(tracks, event->group, &failed)
					 : pf_track_thread(tracks, event->group, event->track, &failed);
		if (index == PF_NO_TRACK)
			return failed;
		struct pf_track *track = &tracks->track[index];
		if (known[i].arg[0] == 's')
			return set_rank(tracks, track, value);
		return set_text(known[i].arg[0] == 'l' ? &track->labels : &track->name, value);
	}
	return 0;
}

void pf_tracks_free(struct pf_tracks *tracks)
{
	for (uint32_t i = 0; i < tracks->count; i++) {
		free(tracks->track[i].key);
		free(tracks->track[i].name);
		free(tracks->track[i].labels);
	}
	free(tracks->track);
	free(tracks->bucket);
}
