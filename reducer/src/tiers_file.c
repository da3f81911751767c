/* SPDX-License-Identifier: Apache-2.0 */
/* The file: laying it out, writing a commit. Layout and safety argument in tiers_state.h. */
#include "tiers_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

bool tiers_options_valid(const struct reducer_tiers_options *options)
{
	if (options->tiers < 1 || options->tiers > REDUCER_TIERS_MAX ||
	    options->bytes_max < REDUCER_TIERS_BYTES_MIN || options->bytes_max > REDUCER_TIERS_BYTES_MAX)
		return false;
	for (unsigned i = 0; i < options->tiers; i++) {
		const struct reducer_tier *tier = &options->tier[i];
		if (tier->width_ns < 1000 || tier->width_ns > INT64_C(86400) * 1000000000 || tier->bins < 1 ||
		    tier->bins > TIERS_BINS_MAX)
			return false;
		if (i > 0 && (tier->width_ns <= tier[-1].width_ns || tier->width_ns % tier[-1].width_ns != 0))
			return false;
	}
	return true;
}

void tiers_file_lay_out(struct reducer_tiers *tiers)
{
	uint64_t bytes = tiers->options.bytes_max;
	tiers->area_bytes = bytes / 16 & ~(uint64_t)4095;
	tiers->pages = (uint32_t)((bytes - TIERS_HEADER_BYTES - 2 * tiers->area_bytes) / TIERS_BLOCK_BYTES);
}

uint64_t tiers_file_area_offset(const struct reducer_tiers *tiers, uint64_t commit)
{
	return TIERS_HEADER_BYTES + (commit & 1) * tiers->area_bytes;
}

uint64_t tiers_file_block_offset(const struct reducer_tiers *tiers, uint32_t page)
{
	return TIERS_HEADER_BYTES + 2 * tiers->area_bytes + (uint64_t)page * TIERS_BLOCK_BYTES;
}

static int write_all(int fd, const void *data, size_t bytes, uint64_t offset)
{
	const char *from = data;
	while (bytes > 0) {
		ssize_t done = pwrite(fd, from, bytes, (off_t)offset);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		if (done == 0)
			return -EIO;
		from += done;
		bytes -= (size_t)done;
		offset += (uint64_t)done;
	}
	return 0;
}

/* Writes one after the other; `full` stays once something did not fit. */
struct output {
	uint8_t *data;
	size_t used, room;
	bool full;
};

static void put(struct output *out, const void *data, size_t bytes)
{
	if (out->full || bytes > out->room - out->used) {
		out->full = true;
		return;
	}
	if (bytes)
		memcpy(out->data + out->used, data, bytes);
	out->used += bytes;
}

static void put_text(struct output *out, const struct tiers_text *text)
{
	uint8_t bytes = (uint8_t)text->bytes;
	put(out, &bytes, 1);
	put(out, text->data, bytes);
}

static void put_cover(struct output *out, const struct reducer_cover *cover)
{
	struct tiers_cover_disk disk = {
		.count = cover->count, .room = cover->room, .horizon = cover->horizon, .late = cover->late};
	put(out, &disk, sizeof(disk));
	put(out, cover->range, cover->count * sizeof(cover->range[0]));
}

static void put_row(struct output *out, const struct reducer_tiers *tiers, const struct tiers_row *row)
{
	struct tiers_row_disk disk = {.track = row->track,
				      .kind = row->kind,
				      .depth = row->depth,
				      .finest = row->finest,
				      .has_open = row->has_open,
				      .events = row->events,
				      .busy_ns = row->busy_ns,
				      .first_ns = row->first_ns,
				      .last_ns = row->last_ns,
				      .open_from = row->open_from,
				      .open_to = row->open_to,
				      .gap_until_ns = row->gap_until_ns,
				      .gap_tiers = row->gap_tiers};
	for (unsigned i = 0; i < tiers->options.tiers; i++)
		disk.references[i] = row->strip[i].count;
	put(out, &disk, sizeof(disk));
	for (unsigned i = 0; i < tiers->options.tiers; i++) {
		for (uint32_t r = 0; r < row->strip[i].count; r++) {
			const struct tiers_reference *reference = &row->strip[i].reference[r];
			struct tiers_reference_disk bytes = {
				.first = reference->first,
				.span = (uint32_t)(reference->end - reference->first),
				.page = reference->page,
				.crc = reference->crc};
			put(out, &bytes, sizeof(bytes));
		}
	}
	put_cover(out, &row->cover);
}

static void put_cursor(struct output *out, const struct reducer_tiers_cursor *cursor)
{
	uint8_t text_bytes = (uint8_t)cursor->source.bytes;
	uint32_t bytes = (uint32_t)cursor->bytes;
	put(out, &text_bytes, 1);
	put(out, cursor->source.data, text_bytes);
	put(out, &bytes, sizeof(bytes));
	put(out, cursor->data, bytes);
}

static int check_cursors(const struct reducer_tiers *tiers, const struct reducer_tiers_cursor *cursors,
			 size_t count)
{
	uint64_t left = tiers->area_bytes / 8;
	for (size_t i = 0; i < count; i++) {
		uint64_t text = cursors[i].source.bytes;
		if (text > REDUCER_TIERS_TEXT_MAX || left < text + 5 || cursors[i].bytes > left - text - 5)
			return -E2BIG;
		left -= text + 5 + cursors[i].bytes;
	}
	return 0;
}

static struct tiers_meta make_meta(const struct reducer_tiers *tiers, const struct output *out,
				   size_t cursors)
{
	const struct reducer_tiers_stats *stats = &tiers->stats;
	size_t payload = out->used - sizeof(struct tiers_meta);
	struct tiers_meta meta = {
		.magic = TIERS_META_MAGIC,
		.commit = stats->commits + 1,
		.payload_bytes = payload,
		.now_ns = stats->now_ns,
		.events = stats->events,
		.out_of_reach = stats->out_of_reach,
		.overflow_spans = stats->overflow_spans,
		.doubtful_ns = stats->doubtful_ns,
		.coarsened = stats->coarsened,
		.dropped_bins = stats->dropped_bins,
		.merged_rows = stats->merged_rows,
		.unnamed = stats->unnamed,
		.damaged_blocks = stats->damaged_blocks,
		.names = tiers->names,
		.tracks = tiers->tracks,
		.rows = tiers->rows,
		.cursors = (uint32_t)cursors,
		.payload_crc = (uint32_t)crc32_z(0, out->data + sizeof(struct tiers_meta), payload)};
	meta.crc = (uint32_t)crc32(0, (const Bytef *)&meta, offsetof(struct tiers_meta, crc));
	return meta;
}

static int write_area(struct reducer_tiers *tiers, const struct reducer_tiers_cursor *cursors, size_t count,
		      bool sync)
{
	struct output out = {.data = malloc(tiers->area_bytes),
			     .used = sizeof(struct tiers_meta),
			     .room = tiers->area_bytes};
	if (!out.data)
		return -ENOMEM;
	for (uint32_t i = 0; i < tiers->names; i++)
		put_text(&out, &tiers->name[i].text);
	for (uint32_t i = 0; i < tiers->tracks; i++) {
		put_text(&out, &tiers->track[i].source);
		put_text(&out, &tiers->track[i].key);
		put_text(&out, &tiers->track[i].label);
		put_cover(&out, &tiers->track[i].cover);
	}
	for (uint32_t i = 0; i < tiers->rows; i++)
		put_row(&out, tiers, tiers->row[i]);
	for (size_t i = 0; i < count; i++)
		put_cursor(&out, &cursors[i]);
	struct tiers_meta meta = make_meta(tiers, &out, count);
	memcpy(out.data, &meta, sizeof(meta));
	int rc = out.full ? -ENOSPC
			  : write_all(tiers->fd, out.data, out.used,
				      tiers_file_area_offset(tiers, meta.commit));
	if (rc == 0 && sync && fdatasync(tiers->fd) < 0)
		rc = -errno;
	if (rc < 0 && !out.full) {
		/* It may be whole all the same, but the blocks it names are about to be given back. */
		memset(out.data, 0, sizeof(meta));
		(void)write_all(tiers->fd, out.data, sizeof(meta),
				tiers_file_area_offset(tiers, meta.commit));
	}
	free(out.data);
	return rc;
}

/* Calls `each` for every reference; stops at an error. */
static int for_each(struct reducer_tiers *tiers,
		    int (*each)(struct reducer_tiers *, struct tiers_reference *, bool))
{
	for (uint32_t r = 0; r < tiers->rows; r++) {
		for (unsigned tier = 0; tier < tiers->options.tiers; tier++) {
			struct tiers_strip *strip = &tiers->row[r]->strip[tier];
			for (uint32_t i = 0; i < strip->count; i++) {
				int rc = each(tiers, &strip->reference[i], i + 1 == strip->count);
				if (rc < 0)
					return rc;
			}
		}
	}
	return 0;
}

static int write_block(struct reducer_tiers *tiers, struct tiers_reference *reference, bool last)
{
	(void)last;
	if (!reference->dirty)
		return 0;
	reference->page = tiers_room_take_page(tiers);
	if (reference->page == TIERS_PAGE_NONE)
		return -ENOSPC;
	reference->crc = (uint32_t)crc32(0, (const Bytef *)reference->block, TIERS_BLOCK_BYTES);
	return write_all(tiers->fd, reference->block, TIERS_BLOCK_BYTES,
			 tiers_file_block_offset(tiers, reference->page));
}

static int give_back(struct reducer_tiers *tiers, struct tiers_reference *reference, bool last)
{
	(void)last;
	if (reference->dirty && reference->page != TIERS_PAGE_NONE) {
		tiers->page[reference->page] = TIERS_PAGE_FREE;
		reference->page = TIERS_PAGE_NONE;
	}
	return 0;
}

static int make_clean(struct reducer_tiers *tiers, struct tiers_reference *reference, bool last)
{
	(void)tiers;
	reference->dirty = false;
	if (!last) {
		free(reference->block);
		reference->block = NULL;
	}
	return 0;
}

static void free_copies(struct tiers_cursor_copy *copies, size_t count)
{
	for (size_t i = 0; copies && i < count; i++) {
		free(copies[i].source.data);
		free(copies[i].data);
	}
	free(copies);
}

static struct tiers_cursor_copy *copy_cursors(const struct reducer_tiers_cursor *cursors, size_t count)
{
	struct tiers_cursor_copy *copies = calloc(count + 1, sizeof(*copies));
	for (size_t i = 0; copies && i < count; i++) {
		copies[i].data = malloc(cursors[i].bytes + 1);
		copies[i].bytes = cursors[i].bytes;
		if (!copies[i].data || tiers_text_copy(&copies[i].source, cursors[i].source) < 0) {
			free_copies(copies, count);
			return NULL;
		}
		if (cursors[i].bytes)
			memcpy(copies[i].data, cursors[i].data, cursors[i].bytes);
	}
	return copies;
}

int tiers_file_commit(struct reducer_tiers *tiers, const struct reducer_tiers_cursor *cursors, size_t count,
		      bool sync)
{
	int rc = check_cursors(tiers, cursors, count);
	if (rc < 0)
		return rc;
	struct tiers_cursor_copy *copies = copy_cursors(cursors, count);
	if (!copies)
		return -ENOMEM;
	tiers_room_make_for_commit(tiers);
	rc = for_each(tiers, write_block);
	if (rc == 0 && sync && fdatasync(tiers->fd) < 0)
		rc = -errno;
	if (rc == 0)
		rc = write_area(tiers, cursors, count, sync);
	if (rc < 0) {
		for_each(tiers, give_back);
		free_copies(copies, count);
		return rc;
	}
	for_each(tiers, make_clean);
	for (uint32_t i = 0; i < tiers->pages; i++)
		if (tiers->page[i] == TIERS_PAGE_KEPT)
			tiers->page[i] = TIERS_PAGE_FREE;
	tiers->dirty = tiers->kept = 0;
	tiers->stats.commits++;
	free_copies(tiers->cursor, tiers->cursors);
	tiers->cursor = copies;
	tiers->cursors = (uint32_t)count;
	return 0;
}

static int write_header(struct reducer_tiers *tiers)
{
	struct tiers_header header = {.magic = TIERS_MAGIC,
				      .version = TIERS_VERSION,
				      .header_bytes = TIERS_HEADER_BYTES,
				      .bytes_max = tiers->options.bytes_max,
				      .area_bytes = tiers->area_bytes,
				      .block_bytes = TIERS_BLOCK_BYTES,
				      .tiers = tiers->options.tiers};
	memcpy(header.tier, tiers->options.tier, sizeof(header.tier));
	header.crc = (uint32_t)crc32(0, (const Bytef *)&header, offsetof(struct tiers_header, crc));
	return write_all(tiers->fd, &header, sizeof(header), 0);
}

/*
 * A visible file is a whole file: made under another name and renamed after its first commit. Two that create
 * at once meet at the lock, which the second keeps missing until it finds the file made.
 */
int tiers_file_create(struct reducer_tiers *tiers, const char *path)
{
	char *hidden = NULL;
	int rc = 0;
	if (asprintf(&hidden, "%s.new", path) < 0)
		return -ENOMEM;
	tiers->fd = open(hidden, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (tiers->fd < 0 || flock(tiers->fd, LOCK_EX | LOCK_NB) < 0)
		rc = errno == EWOULDBLOCK ? -EBUSY : -errno;
	else if (access(path, F_OK) == 0)
		rc = -EBUSY; /* somebody made it between our two looks */
	else if (ftruncate(tiers->fd, 0) < 0)
		rc = -errno;
	if (rc == 0)
		rc = write_header(tiers);
	if (rc == 0)
		rc = tiers_file_commit(tiers, NULL, 0, true);
	if (rc == 0 && rename(hidden, path) < 0)
		rc = -errno;
	free(hidden);
	return rc;
}
