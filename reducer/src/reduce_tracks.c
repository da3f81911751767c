/* SPDX-License-Identifier: Apache-2.0 */
/* Tracks by class and texts. Most events are of the track of the one before: that is looked at first. */
#include "reduce_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS_MIN = 1024, TEXTS_MAX = 1 << 30 };

uint64_t reduce_hash(uint64_t seed, const char *data, size_t bytes)
{
	uint64_t hash = seed ^ bytes * 0x9e3779b97f4a7c15u, word;
	for (; bytes >= 8; bytes -= 8, data += 8) {
		memcpy(&word, data, 8);
		hash = (hash ^ word) * 0xff51afd7ed558ccdu;
		hash ^= hash >> 32;
	}
	word = 0;
	memcpy(&word, data, bytes);
	hash = (hash ^ word) * 0xc4ceb9fe1a85ec53u;
	return hash ^ hash >> 29;
}

static uint64_t hash_of(enum reduce_class class, struct reducer_text group, struct reducer_text track,
			struct reducer_text rest)
{
	uint64_t hash = reduce_hash(class, group.bytes ? group.data : "", group.bytes);
	hash = reduce_hash(hash, track.bytes ? track.data : "", track.bytes);
	return reduce_hash(hash, rest.bytes ? rest.data : "", rest.bytes);
}

static bool text_at(const struct reduce_tracks *tracks, uint32_t at, uint32_t bytes, struct reducer_text text)
{
	return bytes == text.bytes && (!bytes || memcmp(tracks->texts.data + at, text.data, bytes) == 0);
}

static bool is_track(const struct reduce_tracks *tracks, uint32_t at, enum reduce_class class,
		     struct reducer_text group, struct reducer_text track, struct reducer_text rest)
{
	const struct reduce_track *t = &tracks->track[at];
	return t->class == class && text_at(tracks, t->key, t->group_bytes, group) &&
	       text_at(tracks, t->key + t->group_bytes, t->track_bytes, track) &&
	       text_at(tracks, t->key + t->group_bytes + t->track_bytes, t->rest_bytes, rest);
}

int reduce_tracks_init(struct reduce_tracks *tracks)
{
	tracks->slot = malloc(SLOTS_MIN * sizeof(*tracks->slot));
	if (!tracks->slot)
		return -ENOMEM;
	tracks->slots = SLOTS_MIN;
	memset(tracks->slot, 0xff, SLOTS_MIN * sizeof(*tracks->slot));
	memset(tracks->last, 0xff, sizeof(tracks->last));
	return 0;
}

static int grow_slots(struct reduce_tracks *tracks)
{
	uint32_t slots = tracks->slots * 2;
	uint32_t *slot = malloc(slots * sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	memset(slot, 0xff, slots * sizeof(*slot));
	for (uint32_t i = 0; i < tracks->count; i++) {
		uint32_t at = (uint32_t)tracks->track[i].hash & (slots - 1);
		while (slot[at] != REDUCE_NONE)
			at = (at + 1) & (slots - 1);
		slot[at] = i;
	}
	free(tracks->slot);
	tracks->slot = slot;
	tracks->slots = slots;
	return 0;
}

static int add_track(struct reduce_tracks *tracks, const struct reduce_track *one, struct reducer_text group,
		     struct reducer_text track, struct reducer_text rest)
{
	if (tracks->count == tracks->room) {
		uint32_t room = tracks->room ? tracks->room + tracks->room / 2 : 256;
		struct reduce_track *grown = realloc(tracks->track, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		tracks->track = grown;
		tracks->room = room;
	}
	if (tracks->texts.bytes + group.bytes + track.bytes + rest.bytes > TEXTS_MAX)
		return -E2BIG;
	buffer_add_text(&tracks->texts, group);
	buffer_add_text(&tracks->texts, track);
	buffer_add_text(&tracks->texts, rest);
	if (tracks->texts.failed)
		return tracks->texts.failed;
	tracks->track[tracks->count++] = *one;
	return 0;
}

int64_t reduce_track_of(struct reduce_tracks *tracks, enum reduce_class class, struct reducer_text group,
			struct reducer_text track, struct reducer_text rest)
{
	uint32_t *last = tracks->last[class];
	if (last[0] != REDUCE_NONE && is_track(tracks, last[0], class, group, track, rest))
		return last[0];
	/* A launch and what it launched take turns. */
	if (last[1] != REDUCE_NONE && is_track(tracks, last[1], class, group, track, rest)) {
		uint32_t found = last[1];
		last[1] = last[0];
		return last[0] = found;
	}
	uint64_t hash = hash_of(class, group, track, rest);
	uint32_t at = (uint32_t)hash & (tracks->slots - 1);
	for (; tracks->slot[at] != REDUCE_NONE; at = (at + 1) & (tracks->slots - 1)) {
		uint32_t i = tracks->slot[at];
		if (tracks->track[i].hash == hash && is_track(tracks, i, class, group, track, rest)) {
			last[1] = last[0];
			return last[0] = i;
		}
	}
	struct reduce_track one = {.class = (uint8_t)class,
				   .key = (uint32_t)tracks->texts.bytes,
				   .group_bytes = (uint32_t)group.bytes,
				   .track_bytes = (uint32_t)track.bytes,
				   .rest_bytes = (uint32_t)rest.bytes,
				   .hash = hash,
				   .thread = REDUCE_NONE};
	int result = add_track(tracks, &one, group, track, rest);
	if (result < 0)
		return result;
	tracks->slot[at] = tracks->count - 1;
	if (tracks->count > tracks->slots / 2)
		result = grow_slots(tracks);
	if (result < 0)
		return result;
	last[1] = last[0];
	return last[0] = tracks->count - 1;
}

/* A part of the texts; nothing where there are none at all. */
static struct reducer_text part_of(const struct reduce_tracks *tracks, uint32_t at, uint32_t bytes)
{
	return bytes ? (struct reducer_text){tracks->texts.data + at, bytes} : (struct reducer_text){NULL, 0};
}

struct reducer_text reduce_track_group(const struct reduce_tracks *tracks, uint32_t at)
{
	const struct reduce_track *t = &tracks->track[at];
	return part_of(tracks, t->key, t->group_bytes);
}

struct reducer_text reduce_track_track(const struct reduce_tracks *tracks, uint32_t at)
{
	const struct reduce_track *t = &tracks->track[at];
	return part_of(tracks, t->key + t->group_bytes, t->track_bytes);
}

struct reducer_text reduce_track_rest(const struct reduce_tracks *tracks, uint32_t at)
{
	const struct reduce_track *t = &tracks->track[at];
	return part_of(tracks, t->key + t->group_bytes + t->track_bytes, t->rest_bytes);
}

int64_t reduce_track_find(const struct reduce_tracks *tracks, enum reduce_class class, uint32_t at)
{
	struct reducer_text group = reduce_track_group(tracks, at), track = reduce_track_track(tracks, at);
	struct reducer_text none = {NULL, 0};
	uint64_t hash = hash_of(class, group, track, none);
	for (uint32_t i = (uint32_t)hash & (tracks->slots - 1);; i = (i + 1) & (tracks->slots - 1)) {
		uint32_t found = tracks->slot[i];
		if (found == REDUCE_NONE)
			return -ENOENT;
		if (tracks->track[found].hash == hash && is_track(tracks, found, class, group, track, none))
			return found;
	}
}

void reduce_tracks_free(struct reduce_tracks *tracks)
{
	free(tracks->track);
	free(tracks->slot);
	buffer_free(&tracks->texts);
}

void *reduce_vector_add(struct reduce_vector *vector, size_t size)
{
	if (vector->count == vector->room) {
		size_t room = vector->room ? vector->room + vector->room / 2 : 64;
		void *grown = realloc(vector->at, room * size);
		if (!grown)
			return NULL;
		vector->at = grown;
		vector->room = room;
	}
	return (char *)vector->at + vector->count++ * size;
}

const struct reduce_stands *reduce_stands_of(const struct reducer_reduce *reduce, uint32_t event)
{
	const struct reduce_stands *at = reduce->stands.at;
	size_t low = 0, high = reduce->stands.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (at[middle].event < event)
			low = middle + 1;
		else
			high = middle;
	}
	return low < reduce->stands.count && at[low].event == event ? &at[low] : NULL;
}

int reduce_rectangle_add(struct reduce_rectangles *out, const struct reduce_rectangle *one)
{
	if (out->count == out->room) {
		size_t room = out->room ? out->room + out->room / 2 : 1024;
		struct reduce_rectangle *grown = realloc(out->at, room * sizeof(*grown));
		if (!grown)
			return out->failed = -ENOMEM;
		out->at = grown;
		out->room = room;
	}
	out->at[out->count++] = *one;
	return 0;
}
