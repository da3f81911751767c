/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a commit back. The file may be damaged, or be written while it is read. */
#include "tiers_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

int tiers_load_header(struct reducer_tiers *tiers)
{
	struct tiers_header header;
	ssize_t got = pread(tiers->fd, &header, sizeof(header), 0);
	if (got < 0)
		return -errno;
	if (got != sizeof(header) || header.magic != TIERS_MAGIC || header.tiers > REDUCER_TIERS_MAX ||
	    crc32(0, (const Bytef *)&header, offsetof(struct tiers_header, crc)) != header.crc)
		return -EBADMSG;
	if (header.version != TIERS_VERSION || header.incompatible ||
	    header.block_bytes != TIERS_BLOCK_BYTES || header.header_bytes != TIERS_HEADER_BYTES)
		return -EPROTONOSUPPORT;
	tiers->options = (struct reducer_tiers_options){.tiers = header.tiers, .bytes_max = header.bytes_max};
	memcpy(tiers->options.tier, header.tier, sizeof(header.tier));
	if (!tiers_options_valid(&tiers->options))
		return -EBADMSG;
	tiers_file_lay_out(tiers);
	return header.area_bytes == tiers->area_bytes ? 0 : -EBADMSG;
}

static bool meta_read(const struct reducer_tiers *tiers, uint64_t area, struct tiers_meta *ret)
{
	return pread(tiers->fd, ret, sizeof(*ret), (off_t)tiers_file_area_offset(tiers, area)) ==
		       sizeof(*ret) &&
	       ret->magic == TIERS_META_MAGIC && (ret->commit & 1) == area &&
	       ret->payload_bytes <= tiers->area_bytes - sizeof(*ret) &&
	       crc32(0, (const Bytef *)ret, offsetof(struct tiers_meta, crc)) == ret->crc;
}

bool tiers_load_newer(const struct reducer_tiers *tiers)
{
	struct tiers_meta meta;
	return meta_read(tiers, (tiers->stats.commits + 1) & 1, &meta) && meta.commit > tiers->stats.commits;
}

/* The one cursor through which a payload is parsed; `bad` stays once it asked for more than there was. */
struct input {
	const uint8_t *data;
	size_t left;
	bool bad;
};

static const void *take(struct input *in, size_t bytes)
{
	if (in->bad || bytes > in->left) {
		in->bad = true;
		return NULL;
	}
	const uint8_t *data = in->data;
	in->data += bytes;
	in->left -= bytes;
	return data;
}

static bool take_copy(struct input *in, void *ret, size_t bytes)
{
	const void *data = take(in, bytes);
	if (data)
		memcpy(ret, data, bytes);
	return data != NULL;
}

static struct reducer_text take_text(struct input *in)
{
	uint8_t bytes = 0;
	take_copy(in, &bytes, 1);
	const char *data = take(in, bytes);
	return (struct reducer_text){data, data ? bytes : 0};
}

static int load_cover(struct input *in, struct reducer_cover *cover)
{
	struct tiers_cover_disk disk = {0};
	if (!take_copy(in, &disk, sizeof(disk)) || disk.room < 4 || disk.room > TIERS_COVER_ROOM_MAX ||
	    disk.count > disk.room)
		return -EBADMSG;
	int rc = reducer_cover_grow(cover, disk.room);
	if (rc < 0)
		return rc;
	if (!take_copy(in, cover->range, disk.count * sizeof(cover->range[0])))
		return -EBADMSG;
	cover->count = disk.count;
	cover->horizon = disk.horizon;
	cover->late = disk.late != 0;
	for (uint32_t i = 0; i < cover->count; i++)
		if (cover->range[i].from >= cover->range[i].to ||
		    (i > 0 && cover->range[i].from <= cover->range[i - 1].to))
			return -EBADMSG;
	return 0;
}

static int load_names(struct reducer_tiers *tiers, struct input *in, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t number;
		struct reducer_text text = take_text(in);
		if (in->bad)
			return -EBADMSG;
		int rc = tiers_table_name(tiers, text, &number);
		if (rc < 0)
			return rc;
		if (number != i)
			return -EBADMSG;
	}
	return 0;
}

static int load_tracks(struct reducer_tiers *tiers, struct input *in, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t number;
		struct reducer_text source = take_text(in), key = take_text(in), label = take_text(in);
		if (in->bad)
			return -EBADMSG;
		int rc = tiers_table_track(tiers, source, key, label, &number);
		if (rc == 0)
			rc = number == i ? load_cover(in, &tiers->track[i].cover) : -EBADMSG;
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int load_strip(struct reducer_tiers *tiers, struct input *in, struct tiers_strip *strip,
		      uint32_t count)
{
	const uint8_t *bytes = take(in, (size_t)count * sizeof(struct tiers_reference_disk));
	if (!bytes)
		return -EBADMSG;
	if (count == 0)
		return 0;
	strip->reference = calloc(count, sizeof(*strip->reference));
	if (!strip->reference)
		return -ENOMEM;
	strip->room = count;
	for (uint32_t i = 0; i < count; i++) {
		struct tiers_reference_disk disk;
		memcpy(&disk, bytes + i * sizeof(disk), sizeof(disk));
		if (disk.page >= tiers->pages || tiers->page[disk.page] != TIERS_PAGE_FREE ||
		    disk.first < 0 || disk.first > INT64_MAX - disk.span ||
		    (i > 0 && disk.first < strip->reference[i - 1].end))
			return -EBADMSG;
		tiers->page[disk.page] = TIERS_PAGE_LIVE;
		strip->reference[i] = (struct tiers_reference){.first = disk.first,
							       .end = disk.first + disk.span,
							       .page = disk.page,
							       .crc = disk.crc};
		strip->count++;
		tiers->blocks++;
	}
	return 0;
}

static int load_row(struct reducer_tiers *tiers, struct input *in, uint32_t expected)
{
	struct tiers_row_disk disk;
	uint32_t number;
	if (!take_copy(in, &disk, sizeof(disk)) || disk.track >= tiers->tracks || disk.kind < 1 ||
	    disk.kind >= REDUCER_ROW_LIMIT || disk.finest >= tiers->options.tiers)
		return -EBADMSG;
	int rc = tiers_table_row(tiers, disk.track, disk.kind, disk.depth, &number);
	if (rc < 0)
		return rc;
	if (number != expected)
		return -EBADMSG;
	struct tiers_row *row = tiers->row[number];
	row->finest = disk.finest;
	row->has_open = disk.has_open != 0;
	row->events = disk.events;
	row->busy_ns = disk.busy_ns;
	row->first_ns = disk.first_ns;
	row->last_ns = disk.last_ns;
	row->open_from = disk.open_from;
	row->open_to = disk.open_to;
	row->gap_tiers = disk.gap_tiers;
	row->gap_until_ns = disk.gap_until_ns;
	for (unsigned i = 0; rc == 0 && i < tiers->options.tiers; i++)
		rc = load_strip(tiers, in, &row->strip[i], disk.references[i]);
	return rc < 0 ? rc : load_cover(in, &row->cover);
}

static int load_cursors(struct reducer_tiers *tiers, struct input *in, uint32_t count)
{
	if (count > in->left)
		return -EBADMSG;
	tiers->cursor = calloc((size_t)count + 1, sizeof(*tiers->cursor));
	if (!tiers->cursor)
		return -ENOMEM;
	for (; tiers->cursors < count; tiers->cursors++) {
		struct tiers_cursor_copy *cursor = &tiers->cursor[tiers->cursors];
		struct reducer_text source = take_text(in);
		uint32_t bytes = 0;
		take_copy(in, &bytes, sizeof(bytes));
		const void *data = take(in, bytes);
		if (!data)
			return -EBADMSG;
		cursor->data = malloc((size_t)bytes + 1);
		if (!cursor->data || tiers_text_copy(&cursor->source, source) < 0) {
			free(cursor->data);
			return -ENOMEM;
		}
		memcpy(cursor->data, data, bytes);
		cursor->bytes = bytes;
	}
	return 0;
}

static int load_payload(struct reducer_tiers *tiers, struct input *in, const struct tiers_meta *meta)
{
	int rc = load_names(tiers, in, meta->names);
	if (rc == 0)
		rc = load_tracks(tiers, in, meta->tracks);
	for (uint32_t i = 0; rc == 0 && i < meta->rows; i++)
		rc = load_row(tiers, in, i);
	if (rc == 0)
		rc = load_cursors(tiers, in, meta->cursors);
	if (rc == 0 && (tiers->rows < TIERS_SHARED_ROWS || tiers->names < 1 || tiers->tracks < 1))
		rc = -EBADMSG;
	return rc;
}

static void take_meta(struct reducer_tiers *tiers, const struct tiers_meta *meta)
{
	struct reducer_tiers_stats *stats = &tiers->stats;
	stats->commits = meta->commit;
	stats->events = meta->events;
	stats->out_of_reach = meta->out_of_reach;
	stats->overflow_spans = meta->overflow_spans;
	stats->doubtful_ns = meta->doubtful_ns;
	stats->coarsened = meta->coarsened;
	stats->dropped_bins = meta->dropped_bins;
	stats->merged_rows = meta->merged_rows;
	stats->unnamed = meta->unnamed;
	stats->damaged_blocks = meta->damaged_blocks;
	tiers_room_set_now(tiers, meta->now_ns);
}

/* The payload of a commit if it is whole; the caller frees. NULL with -EBADMSG or -ENOMEM in *ret_rc. */
static uint8_t *read_payload(const struct reducer_tiers *tiers, const struct tiers_meta *meta, int *ret_rc)
{
	uint8_t *data = malloc(meta->payload_bytes + 1);
	*ret_rc = -ENOMEM;
	if (!data)
		return NULL;
	uint64_t offset = tiers_file_area_offset(tiers, meta->commit) + sizeof(*meta);
	ssize_t got = pread(tiers->fd, data, meta->payload_bytes, (off_t)offset);
	*ret_rc = -EBADMSG;
	if (got == (ssize_t)meta->payload_bytes && crc32_z(0, data, meta->payload_bytes) == meta->payload_crc)
		return data;
	free(data);
	return NULL;
}

int tiers_load_commit(struct reducer_tiers *tiers)
{
	struct tiers_meta meta[2];
	bool whole[2] = {meta_read(tiers, 0, &meta[0]), meta_read(tiers, 1, &meta[1])};
	unsigned newest = whole[1] && (!whole[0] || meta[1].commit > meta[0].commit);
	int rc = -EBADMSG;
	uint8_t *payload = NULL;
	for (unsigned i = 0; i < 2 && !payload; i++) {
		if (!whole[newest ^ i])
			continue;
		payload = read_payload(tiers, &meta[newest ^ i], &rc);
		if (payload)
			newest ^= i;
	}
	if (!payload)
		return rc;
	struct input in = {.data = payload, .left = meta[newest].payload_bytes};
	rc = load_payload(tiers, &in, &meta[newest]);
	if (rc == 0)
		take_meta(tiers, &meta[newest]);
	free(payload);
	return rc;
}
