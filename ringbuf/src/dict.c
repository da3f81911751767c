/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dictionary: names that are never overwritten, so every window carries them whole.
 *
 * In the file: an index of {kind, bytes | committed, offset} and the bytes. Ids and bytes are reserved by
 * addition, the bytes written, and the index word last (release): killed in between, a hole costs one id
 * and nothing else. No event can name a hole, since its id is handed out only after the commit.
 *
 * Beside it, private to the process: a hash table from text to id. Lock-free, so a signal handler or a
 * thread that is never scheduled again blocks nobody; two threads that add the same text at once waste an
 * id, and both get the one that won.
 */
#include "ring.h"

#include <errno.h>
#include <string.h>

#include "point.h"

enum { TEXT_MAX = 4096 };

/* FNV-1a, 64 bit (Fowler, Noll, Vo), folded; fast enough for short names. */
static uint32_t hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
	const uint8_t *byte = data;
	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ byte[i]) * 0x100000001b3u;
	return (uint32_t)(hash ^ hash >> 32);
}

struct item {
	unsigned kind;
	const void *head;
	size_t head_bytes;
	const void *text;
	size_t bytes;
};

static bool same(const struct drec *rec, uint32_t id, const struct item *item)
{
	const struct drec_dict_entry *entry = &rec->dict_index[id];
	if (entry->kind != item->kind || (entry->bytes & ~DREC_DICT_COMMITTED) != item->head_bytes + item->bytes)
		return false;
	const uint8_t *at = rec->dict + entry->offset;
	return (item->head_bytes == 0 || memcmp(at, item->head, item->head_bytes) == 0) &&
	       (item->bytes == 0 || memcmp(at + item->head_bytes, item->text, item->bytes) == 0);
}

static bool room_for(const struct drec *rec, uint64_t offset, size_t bytes)
{
	return offset <= rec->dict_bytes && bytes <= rec->dict_bytes - offset;
}

/* Writes the text; 0 if there is no room for it. */
static uint32_t store(struct drec *rec, const struct item *item)
{
	struct drec_state *state = rec->state;
	size_t total = item->head_bytes + item->bytes;
	/* Looked at before it is reserved, so that a text too large does not use up what others fit in. */
	uint64_t id = load_relaxed(&state->dict_next_id), offset = load_relaxed(&state->dict_next_off);
	if (id < rec->n_dict_ids && room_for(rec, offset, total)) {
		id = fetch_add_relaxed(&state->dict_next_id, 1);
		offset = fetch_add_relaxed(&state->dict_next_off, total);
	}
	POINT(dict_reserved);
	if (id >= rec->n_dict_ids || !room_for(rec, offset, total)) {
		fetch_add_relaxed(&state->dict_full, 1);
		return 0;
	}
	if (item->head_bytes)
		memcpy(rec->dict + offset, item->head, item->head_bytes);
	if (item->bytes)
		memcpy(rec->dict + offset + item->head_bytes, item->text, item->bytes);
	struct drec_dict_entry *entry = &rec->dict_index[id];
	entry->kind = item->kind;
	entry->offset = offset;
	POINT(dict_copied);
	store32_release(&entry->bytes, (uint32_t)total | DREC_DICT_COMMITTED);
	POINT(dict_committed);
	return (uint32_t)id;
}

static uint32_t find_or_store(struct drec *rec, const struct item *item)
{
	uint32_t hash = hash_bytes(0xcbf29ce484222325u + item->kind, item->head, item->head_bytes);
	hash = hash_bytes(0xcbf29ce484222325u ^ hash, item->text, item->bytes);
	uint32_t at = hash & rec->names_mask, id = 0;
	for (uint32_t probe = 0; probe <= rec->names_mask; probe++, at = (at + 1) & rec->names_mask) {
		uint64_t seen = load_acquire(&rec->names[at]);
		if (seen == 0) {
			if (id == 0)
				id = store(rec, item);
			if (id == 0)
				return 0;
			if (compare_exchange(&rec->names[at], &seen, (uint64_t)hash << 32 | id))
				return id;
		}
		if ((uint32_t)(seen >> 32) == hash && same(rec, (uint32_t)seen, item))
			return (uint32_t)seen;
	}
	return id;
}

uint32_t dict_add(struct drec *rec, unsigned kind, const void *head, size_t head_bytes, const void *text,
		  size_t bytes)
{
	struct item item = {kind, head, head_bytes, text, bytes};
	return find_or_store(rec, &item);
}

static bool may_name(const drec *rec)
{
	return rec && load_relaxed(rec->live);
}

/* Cuts at a character's begin, so that what is kept stays UTF-8. */
static size_t cut(const char *text, size_t bytes)
{
	if (bytes <= TEXT_MAX)
		return bytes;
	bytes = TEXT_MAX;
	while (bytes > TEXT_MAX - 4 && ((unsigned char)text[bytes] & 0xc0) == 0x80)
		bytes--;
	return bytes;
}

uint32_t drec_name_n(drec *rec, const char *text, size_t bytes)
{
	if (!may_name(rec) || !text)
		return 0;
	return dict_add(rec, DREC_DICT_NAME, NULL, 0, text, cut(text, bytes));
}

uint32_t drec_name(drec *rec, const char *text)
{
	return text ? drec_name_n(rec, text, strlen(text)) : 0;
}

uint16_t drec_category(drec *rec, const char *text)
{
	if (!may_name(rec) || !text)
		return 0;
	return (uint16_t)dict_add(rec, DREC_DICT_CATEGORY, NULL, 0, text, cut(text, strlen(text)));
}

/*
 * The track's texts stand behind one another; a stack buffer of bounded size joins them, since the table
 * compares whole entries.
 */
uint32_t drec_track_n(drec *rec, unsigned track_kind, const char *group, size_t group_bytes, const char *name,
		      size_t name_bytes)
{
	struct {
		struct drec_track_text head;
		char group[1024];
	} joined;
	if (!may_name(rec) || !name)
		return 0;
	if (!group)
		group_bytes = 0;
	if (group_bytes > sizeof(joined.group))
		group_bytes = sizeof(joined.group);
	name_bytes = cut(name, name_bytes);
	joined.head = (struct drec_track_text){track_kind, (uint32_t)group_bytes, (uint32_t)name_bytes, 0};
	if (group_bytes)
		memcpy(joined.group, group, group_bytes);
	return dict_add(rec, DREC_DICT_TRACK, &joined, sizeof(joined.head) + group_bytes, name, name_bytes);
}

uint32_t drec_track(drec *rec, const char *group, const char *name)
{
	if (!name)
		return 0;
	return drec_track_n(rec, DREC_TRACK_OTHER, group, group ? strlen(group) : 0, name, strlen(name));
}

int drec_track_rename(drec *rec, uint32_t track, const char *name, size_t bytes)
{
	if (!may_name(rec) || !name)
		return -EINVAL;
	return dict_add(rec, DREC_DICT_TRACK_NAME, &track, sizeof(track), name, cut(name, bytes)) ? 0 : -ENOSPC;
}

int drec_meta(drec *rec, const char *member, size_t bytes)
{
	if (!may_name(rec) || !member)
		return -EINVAL;
	if (bytes > rec->dict_bytes / 4)
		return -E2BIG;
	return dict_add(rec, DREC_DICT_META, NULL, 0, member, bytes) ? 0 : -ENOSPC;
}

uint32_t drec_site_name(drec *rec, uint64_t *site, const char *text, size_t bytes)
{
	if (!may_name(rec))
		return 0;
	uint64_t seen = load_relaxed(site);
	if (seen >> 32 == rec->generation)
		return (uint32_t)seen;
	uint32_t id = drec_name_n(rec, text, bytes);
	store_relaxed(site, rec->generation << 32 | id);
	return id;
}
