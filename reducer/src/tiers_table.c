/* SPDX-License-Identifier: Apache-2.0 */
/* Names, tracks and rows: what a commit writes whole into an area, and so is bounded by its size. */
#include "tiers_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char others[] = "(others)";

static uint32_t hash_more(uint32_t hash, struct reducer_text text)
{
	for (size_t i = 0; i < text.bytes; i++)
		hash = (hash ^ (uint8_t)text.data[i]) * 16777619u; /* FNV-1a */
	return hash;
}

uint32_t tiers_hash(struct reducer_text a, struct reducer_text b)
{
	return hash_more(hash_more(2166136261u, a) * 31, b) % TIERS_BUCKETS;
}

static struct reducer_text cut(struct reducer_text text)
{
	if (text.bytes > REDUCER_TIERS_TEXT_MAX)
		text.bytes = REDUCER_TIERS_TEXT_MAX;
	return text;
}

static bool same(const struct tiers_text *a, struct reducer_text b)
{
	return a->bytes == b.bytes && (b.bytes == 0 || memcmp(a->data, b.data, b.bytes) == 0);
}

int tiers_text_copy(struct tiers_text *text, struct reducer_text from)
{
	char *data = malloc(from.bytes + 1);
	if (!data)
		return -ENOMEM;
	if (from.bytes)
		memcpy(data, from.data, from.bytes);
	data[from.bytes] = 0;
	free(text->data);
	text->data = data;
	text->bytes = (uint32_t)from.bytes;
	return 0;
}

/* The array with room for one more, or NULL and the array as it was. */
static void *more_room(void *array, uint32_t count, uint32_t *room, size_t each)
{
	if (count < *room)
		return array;
	uint32_t wanted = *room ? *room * 2 : 16;
	void *grown = realloc(array, wanted * each);
	if (grown)
		*room = wanted;
	return grown;
}

/*
 * Of an area: a reference for every block, an eighth for cursors, a quarter for names; the rest for tracks
 * and rows.
 */
uint64_t tiers_table_budget(const struct reducer_tiers *tiers)
{
	uint64_t taken = sizeof(struct tiers_meta) + tiers->pages * sizeof(struct tiers_reference_disk) +
			 tiers->area_bytes / 8 + tiers->area_bytes / 4;
	return tiers->area_bytes > taken ? tiers->area_bytes - taken : 0;
}

static uint64_t cover_bytes(uint32_t room)
{
	return sizeof(struct tiers_cover_disk) + room * sizeof(struct reducer_range);
}

static bool take_budget(struct reducer_tiers *tiers, uint64_t bytes)
{
	uint64_t budget = tiers_table_budget(tiers);
	if (tiers->meta_bytes > budget || bytes > budget - tiers->meta_bytes)
		return false;
	tiers->meta_bytes += bytes;
	return true;
}

int tiers_table_name(struct reducer_tiers *tiers, struct reducer_text text, uint32_t *ret_name)
{
	text = cut(text);
	uint32_t bucket = tiers_hash(text, (struct reducer_text){0});
	for (uint32_t i = tiers->name_bucket[bucket]; i != TIERS_NONE; i = tiers->name[i].next) {
		if (same(&tiers->name[i].text, text)) {
			*ret_name = i;
			return 0;
		}
	}
	if (text.bytes + 4 > tiers->area_bytes / 4 - tiers->name_bytes) {
		tiers->stats.unnamed++;
		*ret_name = 0;
		return 0;
	}
	struct tiers_name name = {.next = tiers->name_bucket[bucket]};
	struct tiers_name *array = more_room(tiers->name, tiers->names, &tiers->names_room, sizeof(*array));
	if (!array)
		return -ENOMEM;
	tiers->name = array;
	int rc = tiers_text_copy(&name.text, text);
	if (rc < 0)
		return rc;
	tiers->name_bytes += text.bytes + 4;
	tiers->name[tiers->names] = name;
	tiers->name_bucket[bucket] = tiers->names;
	*ret_name = tiers->names++;
	return 0;
}

static uint32_t find_track(const struct reducer_tiers *tiers, uint32_t bucket, struct reducer_text source,
			   struct reducer_text key)
{
	uint32_t i = tiers->track_bucket[bucket];
	while (i != TIERS_NONE && !(same(&tiers->track[i].source, source) && same(&tiers->track[i].key, key)))
		i = tiers->track[i].next;
	return i;
}

static void track_clear(struct tiers_track *track)
{
	free(track->source.data);
	free(track->key.data);
	free(track->label.data);
	reducer_cover_clear(&track->cover);
}

static int add_track(struct reducer_tiers *tiers, uint32_t bucket, struct reducer_text source,
		     struct reducer_text key, struct reducer_text label)
{
	struct tiers_track track = {.next = tiers->track_bucket[bucket], .first_row = TIERS_NONE};
	struct tiers_track *array =
		more_room(tiers->track, tiers->tracks, &tiers->tracks_room, sizeof(*array));
	if (!array)
		return -ENOMEM;
	tiers->track = array;
	int rc = tiers_text_copy(&track.source, source);
	if (rc == 0)
		rc = tiers_text_copy(&track.key, key);
	if (rc == 0)
		rc = tiers_text_copy(&track.label, label);
	if (rc == 0)
		rc = reducer_cover_init(&track.cover, TIERS_COVER_ROOM);
	if (rc < 0) {
		track_clear(&track);
		return rc;
	}
	tiers->track[tiers->tracks] = track;
	tiers->track_bucket[bucket] = tiers->tracks++;
	return 0;
}

int tiers_table_track(struct reducer_tiers *tiers, struct reducer_text source, struct reducer_text key,
		      struct reducer_text label, uint32_t *ret_track)
{
	source = cut(source);
	key = cut(key);
	label = cut(label);
	uint32_t bucket = tiers_hash(source, key);
	uint32_t found = find_track(tiers, bucket, source, key);
	if (found != TIERS_NONE) {
		*ret_track = found;
		return same(&tiers->track[found].label, label)
			       ? 0
			       : tiers_text_copy(&tiers->track[found].label, label);
	}
	/* A label may change later: room for the longest. */
	if (!take_budget(tiers, 3 + source.bytes + key.bytes + REDUCER_TIERS_TEXT_MAX +
					cover_bytes(TIERS_COVER_ROOM))) {
		tiers->stats.merged_rows++;
		*ret_track = 0;
		return 0;
	}
	int rc = add_track(tiers, bucket, source, key, label);
	if (rc == 0)
		*ret_track = tiers->tracks - 1;
	return rc;
}

uint32_t tiers_table_find_row(const struct reducer_tiers *tiers, uint32_t track, uint8_t kind, uint8_t depth)
{
	uint32_t i = tiers->track[track].first_row;
	while (i != TIERS_NONE && !(tiers->row[i]->kind == kind && tiers->row[i]->depth == depth))
		i = tiers->row[i]->next;
	return i;
}

static void row_free(struct reducer_tiers *tiers, struct tiers_row *row)
{
	if (!row)
		return;
	for (unsigned i = 0; i < REDUCER_TIERS_MAX; i++)
		tiers_strip_clear(tiers, &row->strip[i]);
	reducer_cover_clear(&row->cover);
	free(row);
}

int tiers_table_row(struct reducer_tiers *tiers, uint32_t track, uint8_t kind, uint8_t depth,
		    uint32_t *ret_row)
{
	uint32_t found = tiers_table_find_row(tiers, track, kind, depth);
	if (found != TIERS_NONE) {
		*ret_row = found;
		return 0;
	}
	/* What is merged into the shared track has shared rows, too. */
	bool shared = track == 0 && tiers->rows >= TIERS_SHARED_ROWS;
	if (shared || !take_budget(tiers, sizeof(struct tiers_row_disk) + cover_bytes(TIERS_COVER_ROOM))) {
		tiers->stats.merged_rows += !shared;
		*ret_row = kind - 1u;
		return 0;
	}
	struct tiers_row **array = more_room(tiers->row, tiers->rows, &tiers->rows_room, sizeof(*array));
	if (!array)
		return -ENOMEM;
	tiers->row = array;
	struct tiers_row *row = calloc(1, sizeof(*row));
	int rc = row ? reducer_cover_init(&row->cover, TIERS_COVER_ROOM) : -ENOMEM;
	if (rc < 0) {
		row_free(tiers, row);
		return rc;
	}
	row->track = track;
	row->kind = kind;
	row->depth = depth;
	row->next = tiers->track[track].first_row;
	tiers->row[tiers->rows] = row;
	tiers->track[track].first_row = tiers->rows;
	*ret_row = tiers->rows++;
	return 0;
}

void tiers_table_grow_cover(struct reducer_tiers *tiers, struct reducer_cover *cover)
{
	uint32_t room = cover->room * 2;
	if (!cover->late || cover->count < cover->room || room > TIERS_COVER_ROOM_MAX)
		return;
	if (!take_budget(tiers, (room - cover->room) * sizeof(struct reducer_range)))
		return;
	/* Without memory it forgets a little earlier: that is counted where it matters. */
	if (reducer_cover_grow(cover, room) < 0)
		tiers->meta_bytes -= (room - cover->room) * sizeof(struct reducer_range);
}

void tiers_table_clear(struct reducer_tiers *tiers)
{
	for (uint32_t i = 0; i < tiers->rows; i++)
		row_free(tiers, tiers->row[i]);
	for (uint32_t i = 0; i < tiers->tracks; i++)
		track_clear(&tiers->track[i]);
	for (uint32_t i = 0; i < tiers->names; i++)
		free(tiers->name[i].text.data);
	for (uint32_t i = 0; i < tiers->cursors; i++) {
		free(tiers->cursor[i].source.data);
		free(tiers->cursor[i].data);
	}
	free(tiers->row);
	free(tiers->track);
	free(tiers->name);
	free(tiers->cursor);
}

static bool row_is_dead(const struct reducer_tiers *tiers, uint32_t index)
{
	const struct tiers_row *row = tiers->row[index];
	for (unsigned i = 0; i < tiers->options.tiers; i++)
		if (row->strip[i].count)
			return false;
	unsigned last = tiers->options.tiers - 1;
	return index >= TIERS_SHARED_ROWS &&
	       row->last_ns / tiers->options.tier[last].width_ns < tiers->floor[last];
}

static uint64_t track_bytes(const struct tiers_track *track)
{
	return 3 + track->source.bytes + track->key.bytes + REDUCER_TIERS_TEXT_MAX +
	       cover_bytes(track->cover.room);
}

/* Moves the tracks that have rows together; track 0 always stays. */
static void drop_tracks_without_rows(struct reducer_tiers *tiers)
{
	uint32_t kept = 0;
	memset(tiers->track_bucket, 0xff, sizeof(tiers->track_bucket));
	tiers->meta_bytes = 0;
	for (uint32_t i = 0; i < tiers->tracks; i++) {
		struct tiers_track *track = &tiers->track[i];
		if (i > 0 && track->first_row == TIERS_NONE) {
			track_clear(track);
			continue;
		}
		for (uint32_t r = track->first_row; r != TIERS_NONE; r = tiers->row[r]->next)
			tiers->row[r]->track = kept;
		uint32_t bucket = tiers_hash((struct reducer_text){track->source.data, track->source.bytes},
					     (struct reducer_text){track->key.data, track->key.bytes});
		track->next = tiers->track_bucket[bucket];
		tiers->track_bucket[bucket] = kept;
		tiers->meta_bytes += track_bytes(track);
		tiers->track[kept++] = *track;
	}
	tiers->tracks = kept;
}

void tiers_table_drop_dead(struct reducer_tiers *tiers)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < tiers->tracks; i++)
		tiers->track[i].first_row = TIERS_NONE;
	for (uint32_t i = 0; i < tiers->rows; i++) {
		struct tiers_row *row = tiers->row[i];
		if (row_is_dead(tiers, i)) {
			row_free(tiers, row);
			continue;
		}
		row->next = tiers->track[row->track].first_row;
		tiers->track[row->track].first_row = kept;
		tiers->row[kept++] = row;
	}
	tiers->rows = kept;
	drop_tracks_without_rows(tiers);
	for (uint32_t i = 0; i < tiers->rows; i++)
		tiers->meta_bytes += sizeof(struct tiers_row_disk) + cover_bytes(tiers->row[i]->cover.room);
}

int tiers_table_add_shared(struct reducer_tiers *tiers)
{
	uint32_t row, track, name;
	struct reducer_text label = {others, sizeof(others) - 1};
	int rc = tiers_table_name(tiers, (struct reducer_text){0}, &name);
	if (rc == 0)
		rc = tiers_table_track(tiers, (struct reducer_text){0}, label, label, &track);
	for (uint8_t kind = 1; rc == 0 && kind < REDUCER_ROW_LIMIT; kind++)
		rc = tiers_table_row(tiers, track, kind,
				     kind == REDUCER_ROW_SPANS ? REDUCER_DEPTH_OVERFLOW : 0, &row);
	return rc;
}
