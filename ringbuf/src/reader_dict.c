/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts of the dictionary. The producer never changes an entry once it is committed, so each is copied once,
 * at the first use, to its own place in a private copy of the section: memory is bounded by the section, and
 * texts stay where they are. A hostile ring may make entries overlap; that garbles its own texts alone.
 */
#include "reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { INDEX_BATCH = 256 };

static int allocate(struct drec_reader *reader)
{
	struct ringread_dict *dict = &reader->dict;
	size_t ids = reader->header.n_dict_ids;
	if (dict->entries)
		return 0;
	struct drec_dict_entry *entries = calloc(ids + 1, sizeof(*entries));
	char *text = malloc(reader->section[DREC_SEC_DICT]->bytes + 1);
	uint32_t *latest = calloc(ids + 1, sizeof(*latest));
	if (!entries || !text || !latest) {
		free(entries);
		free(text);
		free(latest);
		return -ENOMEM;
	}
	dict->entries = entries;
	dict->text = text;
	dict->latest_name = latest;
	dict->scanned = 1;
	return 0;
}

/* 0, or -ENOENT where the entry is not committed or does not lie inside the section. */
static int load(struct drec_reader *reader, uint32_t id, const struct drec_dict_entry *found)
{
	uint64_t section_bytes = reader->section[DREC_SEC_DICT]->bytes;
	uint32_t bytes = found->bytes & ~DREC_DICT_COMMITTED;
	if (!(found->bytes & DREC_DICT_COMMITTED) || found->offset > section_bytes ||
	    bytes > section_bytes - found->offset)
		return -ENOENT;
	int r = ringread_bytes(reader->fd, reader->section[DREC_SEC_DICT]->offset + found->offset,
			       reader->dict.text + found->offset, bytes);
	if (r == 0)
		reader->dict.entries[id] = *found;
	return r;
}

static uint64_t index_offset(const struct drec_reader *reader, uint32_t id)
{
	return reader->section[DREC_SEC_DICT_INDEX]->offset + id * sizeof(struct drec_dict_entry);
}

static int need(struct drec_reader *reader, uint32_t id)
{
	struct drec_dict_entry found;
	if (id == 0 || id >= reader->header.n_dict_ids)
		return -ENOENT;
	int r = allocate(reader);
	if (r < 0 || reader->dict.entries[id].bytes)
		return r;
	r = ringread_bytes(reader->fd, index_offset(reader, id), &found, sizeof(found));
	return r < 0 ? r : load(reader, id, &found);
}

int drec_reader_text(struct drec_reader *reader, uint32_t id, unsigned *ret_kind, const char **ret_text,
		     uint32_t *ret_bytes)
{
	int r = need(reader, id);
	if (r < 0)
		return r;
	const struct drec_dict_entry *entry = &reader->dict.entries[id];
	*ret_kind = entry->kind;
	*ret_text = reader->dict.text + entry->offset;
	*ret_bytes = entry->bytes & ~DREC_DICT_COMMITTED;
	return 0;
}

/* A TRACK_NAME entry's track id. */
static void note_later_name(struct drec_reader *reader, uint32_t id)
{
	const struct drec_dict_entry *entry = &reader->dict.entries[id];
	uint32_t track;
	if (entry->kind != DREC_DICT_TRACK_NAME || (entry->bytes & ~DREC_DICT_COMMITTED) < sizeof(track))
		return;
	memcpy(&track, reader->dict.text + entry->offset, sizeof(track));
	if (track < reader->header.n_dict_ids && reader->dict.latest_name[track] < id)
		reader->dict.latest_name[track] = id;
}

/*
 * Loads every entry there is. Starts at the first one that was not committed the last time, and at most once
 * a reading of STATE: an entry whose writer died stays a hole.
 */
static int scan(struct drec_reader *reader)
{
	struct ringread_dict *dict = &reader->dict;
	struct drec_dict_entry batch[INDEX_BATCH];
	int r = allocate(reader);
	if (r < 0 || dict->epoch == reader->epoch)
		return r;
	uint64_t next_id = reader->state.dict_next_id;
	uint32_t end = next_id < reader->header.n_dict_ids ? (uint32_t)next_id : reader->header.n_dict_ids;
	uint32_t hole = 0;
	for (uint32_t id = dict->scanned; id < end;) {
		uint32_t count = end - id < INDEX_BATCH ? end - id : INDEX_BATCH;
		r = ringread_bytes(reader->fd, index_offset(reader, id), batch, count * sizeof(batch[0]));
		if (r < 0)
			return r;
		for (uint32_t i = 0; i < count; i++, id++) {
			r = dict->entries[id].bytes ? 0 : load(reader, id, &batch[i]);
			if (r == 0)
				note_later_name(reader, id);
			else if (r != -ENOENT)
				return r;
			else if (!hole)
				hole = id;
		}
	}
	if (hole || dict->scanned < end)
		dict->scanned = hole ? hole : end;
	dict->epoch = reader->epoch;
	return 0;
}

static int parse_track(const char *text, uint32_t bytes, struct drec_track_info *ret)
{
	struct drec_track_text head;
	if (bytes < sizeof(head))
		return -ENOENT;
	memcpy(&head, text, sizeof(head));
	uint32_t rest = bytes - (uint32_t)sizeof(head);
	if (head.group_bytes > rest || head.name_bytes > rest - head.group_bytes)
		return -ENOENT;
	ret->kind = head.kind;
	ret->tid = head.tid;
	ret->group = text + sizeof(head);
	ret->group_bytes = head.group_bytes;
	ret->name = ret->group + head.group_bytes;
	ret->name_bytes = head.name_bytes;
	return 0;
}

int drec_reader_track(struct drec_reader *reader, uint32_t track, struct drec_track_info *ret)
{
	unsigned kind;
	const char *text;
	uint32_t bytes;
	struct drec_track_info info;
	int r = scan(reader);
	if (r == 0)
		r = drec_reader_text(reader, track, &kind, &text, &bytes);
	if (r == 0)
		r = kind == DREC_DICT_TRACK ? parse_track(text, bytes, &info) : -ENOENT;
	if (r < 0)
		return r;
	uint32_t later = reader->dict.latest_name[track];
	if (later) {
		const struct drec_dict_entry *entry = &reader->dict.entries[later];
		info.name = reader->dict.text + entry->offset + sizeof(uint32_t);
		info.name_bytes = (entry->bytes & ~DREC_DICT_COMMITTED) - (uint32_t)sizeof(uint32_t);
	}
	*ret = info;
	return 0;
}

int drec_reader_each_text(struct drec_reader *reader, unsigned kind, drec_text_fn *fn, void *context)
{
	int r = scan(reader);
	if (r < 0)
		return r;
	/* Not beyond what STATE says: in a damaged ring events may have asked for texts there since. */
	uint64_t next_id = reader->state.dict_next_id;
	uint32_t end = next_id < reader->header.n_dict_ids ? (uint32_t)next_id : reader->header.n_dict_ids;
	for (uint32_t id = 1; id < end; id++) {
		const struct drec_dict_entry *entry = &reader->dict.entries[id];
		if (!entry->bytes || entry->kind != kind)
			continue;
		r = fn(context, id, reader->dict.text + entry->offset, entry->bytes & ~DREC_DICT_COMMITTED);
		if (r != 0)
			return r;
	}
	return 0;
}
