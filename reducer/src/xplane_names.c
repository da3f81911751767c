/* SPDX-License-Identifier: Apache-2.0 */
#include "xplane_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "xplane_parse.h"

enum { REF_BYTES_MAX = 512, REFS_MAX = 1 << 16 };

static uint64_t hash_of(struct reducer_text key)
{
	uint64_t hash = 0xcbf29ce484222325u ^ key.bytes;
	size_t i = 0;
	for (; key.bytes - i >= 8; i += 8) {
		uint64_t word;
		memcpy(&word, key.data + i, sizeof(word));
		hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 29;
	}
	for (; i < key.bytes; i++)
		hash = (hash ^ (unsigned char)key.data[i]) * 0x100000001b3u;
	return hash ^ hash >> 32;
}

static struct xplane_interned *slot_of(const struct xplane_intern *intern, uint64_t hash,
				       struct reducer_text key)
{
	size_t at = (size_t)hash & (intern->room - 1);
	for (;; at = (at + 1) & (intern->room - 1)) {
		struct xplane_interned *entry = &intern->entry[at];
		if (!entry->id ||
		    (entry->hash == hash && entry->bytes == key.bytes &&
		     memcmp(intern->keys.data + entry->at, key.bytes ? key.data : "", key.bytes) == 0))
			return entry;
	}
}

static int grow(struct xplane_intern *intern)
{
	size_t room = intern->room ? intern->room * 2 : 64;
	struct xplane_interned *entry = calloc(room, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	for (size_t i = 0; i < intern->room; i++) {
		if (!intern->entry[i].id)
			continue;
		size_t at = (size_t)intern->entry[i].hash & (room - 1);
		while (entry[at].id)
			at = (at + 1) & (room - 1);
		entry[at] = intern->entry[i];
	}
	free(intern->entry);
	intern->entry = entry;
	intern->room = room;
	return 0;
}

int64_t *xplane_intern(struct xplane_intern *intern, struct reducer_text key)
{
	if (intern->n >= intern->room / 2 && grow(intern) < 0)
		return NULL;
	/* An empty key needs a place to be compared with, too. */
	if (!buffer_room(&intern->keys, key.bytes + 1))
		return NULL;
	uint64_t hash = hash_of(key);
	struct xplane_interned *entry = slot_of(intern, hash, key);
	if (!entry->id) {
		*entry = (struct xplane_interned){.hash = hash, .at = intern->keys.bytes, .bytes = key.bytes};
		buffer_add_text(&intern->keys, key);
		intern->n++;
	}
	return &entry->id;
}

int64_t *xplane_intern_find(const struct xplane_intern *intern, struct reducer_text key)
{
	struct xplane_interned *entry = intern->room ? slot_of(intern, hash_of(key), key) : NULL;
	return entry && entry->id ? &entry->id : NULL;
}

void xplane_intern_free(struct xplane_intern *intern)
{
	free(intern->entry);
	buffer_free(&intern->keys);
	*intern = (struct xplane_intern){0};
}

static int64_t next_id(int64_t *last, const struct xplane_map *taken)
{
	do
		++*last;
	while (taken && xplane_map_find(taken, *last));
	return *last;
}

static int64_t out_of_memory(struct xplane_names *names)
{
	names->fields.failed = -ENOMEM;
	return 0;
}

static int64_t *stat_of(struct xplane_names *names, struct reducer_text name, bool json)
{
	buffer_clear(&names->key);
	buffer_add_byte(&names->key, json ? 'j' : ' ');
	buffer_add_text(&names->key, name);
	if (names->key.failed)
		return NULL;
	return xplane_intern(&names->stats, (struct reducer_text){names->key.data, names->key.bytes});
}

int64_t xplane_names_stat(struct xplane_names *names, struct reducer_text name, bool json)
{
	struct buffer *out = &names->fields;
	int64_t *id = stat_of(names, name, json);
	if (!id)
		return out_of_memory(names);
	if (*id)
		return *id;
	*id = next_id(&names->last_stat, names->taken_stats);
	size_t entry = proto_begin(out, XPLANE_STAT_METADATA);
	proto_add_u64(out, MAP_KEY, (uint64_t)*id);
	size_t value = proto_begin(out, MAP_VALUE);
	proto_add_u64(out, 1, (uint64_t)*id);
	proto_add_bytes(out, XSTAT_METADATA_NAME, name);
	if (json)
		proto_add_bytes(
			out, XSTAT_METADATA_DESCRIPTION,
			(struct reducer_text){XPLANE_JSON_DESCRIPTION, sizeof(XPLANE_JSON_DESCRIPTION) - 1});
	proto_end(out, value);
	proto_end(out, entry);
	return *id;
}

int64_t xplane_names_ref(struct xplane_names *names, struct reducer_text text)
{
	if (text.bytes > REF_BYTES_MAX || names->stats.n >= REFS_MAX)
		return 0;
	return xplane_names_stat(names, text, false);
}

int64_t xplane_names_event(struct xplane_names *names, struct reducer_text name, struct reducer_text rest)
{
	struct buffer *out = &names->fields;
	buffer_clear(&names->key);
	proto_add_bytes(&names->key, XEVENT_METADATA_NAME, name);
	buffer_add_text(&names->key, rest);
	struct reducer_text key = {names->key.data, names->key.bytes};
	int64_t *id = names->key.failed ? NULL : xplane_intern(&names->events, key);
	if (!id)
		return out_of_memory(names);
	if (*id)
		return *id;
	*id = next_id(&names->last_event, names->taken_events);
	size_t entry = proto_begin(out, XPLANE_EVENT_METADATA);
	proto_add_u64(out, MAP_KEY, (uint64_t)*id);
	size_t value = proto_begin(out, MAP_VALUE);
	proto_add_u64(out, 1, (uint64_t)*id);
	buffer_add_text(out, key);
	proto_end(out, value);
	proto_end(out, entry);
	return *id;
}

void xplane_names_free(struct xplane_names *names)
{
	xplane_intern_free(&names->stats);
	xplane_intern_free(&names->events);
	buffer_free(&names->key);
	buffer_free(&names->fields);
}
