/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, lookups and reading of the live tiers. How it works is told in tiers_state.h. */
#include "tiers_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

void reducer_tiers_defaults(struct reducer_tiers_options *ret_options)
{
	const int64_t second = 1000000000;
	*ret_options = (struct reducer_tiers_options){
		.tier = {{second / 100, 60000}, {second, 86400}, {60 * second, 43200}},
		.tiers = 3,
		.bytes_max = (uint64_t)64 << 20,
	};
}

void reducer_tiers_free(struct reducer_tiers *tiers)
{
	if (!tiers)
		return;
	tiers_table_clear(tiers);
	free(tiers->page);
	if (tiers->fd >= 0)
		close(tiers->fd);
	free(tiers);
}

static struct reducer_tiers *new_tiers(int fd, bool read_only)
{
	struct reducer_tiers *tiers = calloc(1, sizeof(*tiers));
	if (!tiers)
		return NULL;
	tiers->fd = fd;
	tiers->read_only = read_only;
	tiers->stats.now_ns = -1;
	memset(tiers->name_bucket, 0xff, sizeof(tiers->name_bucket));
	memset(tiers->track_bucket, 0xff, sizeof(tiers->track_bucket));
	return tiers;
}

static int make_pages(struct reducer_tiers *tiers)
{
	tiers->page = calloc(tiers->pages, sizeof(*tiers->page));
	return tiers->page ? 0 : -ENOMEM;
}

static int open_existing(struct reducer_tiers *tiers, const struct reducer_tiers_options *options,
			 int64_t now_ns)
{
	if (flock(tiers->fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	int rc = tiers_load_header(tiers);
	if (rc < 0)
		return rc;
	if (tiers->options.bytes_max != options->bytes_max || tiers->options.tiers != options->tiers ||
	    memcmp(tiers->options.tier, options->tier, options->tiers * sizeof(options->tier[0])) != 0)
		return -ESTALE;
	rc = make_pages(tiers);
	if (rc == 0)
		rc = tiers_load_commit(tiers);
	if (rc < 0)
		return rc;
	tiers_room_set_now(tiers, now_ns);
	tiers_room_expire(tiers);
	tiers_table_drop_dead(tiers);
	return 0;
}

static int create(struct reducer_tiers *tiers, const char *path, const struct reducer_tiers_options *options,
		  int64_t now_ns)
{
	tiers->options.tiers = options->tiers;
	tiers->options.bytes_max = options->bytes_max;
	memcpy(tiers->options.tier, options->tier, options->tiers * sizeof(options->tier[0]));
	tiers_file_lay_out(tiers);
	int rc = make_pages(tiers);
	if (rc < 0)
		return rc;
	tiers_room_set_now(tiers, now_ns);
	rc = tiers_table_add_shared(tiers);
	return rc < 0 ? rc : tiers_file_create(tiers, path);
}

int reducer_tiers_open(const char *path, const struct reducer_tiers_options *options, int64_t now_ns,
		       struct reducer_tiers **ret_tiers)
{
	if (!tiers_options_valid(options) || now_ns < 0)
		return -EINVAL;
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno != ENOENT)
		return -errno;
	struct reducer_tiers *tiers = new_tiers(fd, false);
	if (!tiers) {
		if (fd >= 0)
			close(fd);
		return -ENOMEM;
	}
	int rc = fd < 0 ? create(tiers, path, options, now_ns) : open_existing(tiers, options, now_ns);
	if (rc < 0) {
		reducer_tiers_free(tiers);
		return rc;
	}
	*ret_tiers = tiers;
	return 0;
}

/* A reader may meet the area just while it is written over: then the other one has become the newest. */
static int load_for_reading(int fd, struct reducer_tiers **ret_tiers)
{
	int rc = -EBADMSG;
	for (int i = 0; i < 8 && rc == -EBADMSG; i++) {
		struct reducer_tiers *tiers = new_tiers(fd, true);
		if (!tiers)
			return -ENOMEM;
		rc = tiers_load_header(tiers);
		if (rc == 0)
			rc = make_pages(tiers);
		if (rc == 0)
			rc = tiers_load_commit(tiers);
		if (rc == 0) {
			*ret_tiers = tiers;
			return 0;
		}
		tiers->fd = -1; /* the caller's */
		reducer_tiers_free(tiers);
	}
	return rc;
}

int reducer_tiers_open_read(const char *path, struct reducer_tiers **ret_tiers)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	int rc = load_for_reading(fd, ret_tiers);
	if (rc < 0)
		close(fd);
	return rc;
}

int reducer_tiers_refresh(struct reducer_tiers *tiers)
{
	struct reducer_tiers *newer;
	if (!tiers->read_only || !tiers_load_newer(tiers))
		return 0;
	int rc = load_for_reading(tiers->fd, &newer);
	if (rc < 0)
		return rc;
	struct reducer_tiers old = *tiers;
	*tiers = *newer;
	*newer = old;
	newer->fd = -1;
	reducer_tiers_free(newer);
	return 1;
}

int reducer_tiers_track(struct reducer_tiers *tiers, struct reducer_text source, struct reducer_text key,
			struct reducer_text label, uint32_t *ret_track)
{
	return tiers->read_only ? -EROFS : tiers_table_track(tiers, source, key, label, ret_track);
}

int reducer_tiers_row(struct reducer_tiers *tiers, uint32_t track, enum reducer_row_kind kind, uint8_t depth,
		      uint32_t *ret_row)
{
	if (tiers->read_only)
		return -EROFS;
	if (track >= tiers->tracks || kind < REDUCER_ROW_SPANS || kind >= REDUCER_ROW_LIMIT)
		return -EINVAL;
	return tiers_table_row(tiers, track, (uint8_t)kind, kind == REDUCER_ROW_SPANS ? depth : 0, ret_row);
}

int reducer_tiers_name(struct reducer_tiers *tiers, struct reducer_text text, uint32_t *ret_name)
{
	return tiers->read_only ? -EROFS : tiers_table_name(tiers, text, ret_name);
}

void reducer_tiers_tick(struct reducer_tiers *tiers, int64_t now_ns)
{
	if (!tiers->read_only)
		tiers_room_set_now(tiers, now_ns);
}

int reducer_tiers_commit(struct reducer_tiers *tiers, int64_t now_ns,
			 const struct reducer_tiers_cursor *cursors, size_t count, bool sync)
{
	if (tiers->read_only)
		return -EROFS;
	if (tiers->broken)
		return tiers->broken;
	for (uint32_t i = 0; i < tiers->rows; i++) {
		int rc = tiers_row_flush(tiers, tiers->row[i]);
		if (rc < 0)
			return tiers->broken = rc;
	}
	tiers_room_set_now(tiers, now_ns);
	tiers_room_expire(tiers);
	tiers_room_refine(tiers);
	return tiers_file_commit(tiers, cursors, count, sync);
}

int reducer_tiers_cursor(const struct reducer_tiers *tiers, struct reducer_text source, const void **ret_data,
			 size_t *ret_bytes)
{
	for (uint32_t i = 0; i < tiers->cursors; i++) {
		const struct tiers_cursor_copy *cursor = &tiers->cursor[i];
		if (cursor->source.bytes == source.bytes &&
		    (source.bytes == 0 || memcmp(cursor->source.data, source.data, source.bytes) == 0)) {
			*ret_data = cursor->data;
			*ret_bytes = cursor->bytes;
			return 0;
		}
	}
	return -ENOENT;
}

static struct reducer_text borrow(const struct tiers_text *text)
{
	return (struct reducer_text){text->data, text->bytes};
}

uint32_t reducer_tiers_rows(const struct reducer_tiers *tiers)
{
	return tiers->rows;
}

int reducer_tiers_row_info(const struct reducer_tiers *tiers, uint32_t index,
			   struct reducer_tiers_row_info *ret_info)
{
	if (index >= tiers->rows)
		return -ENOENT;
	const struct tiers_row *row = tiers->row[index];
	const struct tiers_track *track = &tiers->track[row->track];
	*ret_info = (struct reducer_tiers_row_info){.source = borrow(&track->source),
						    .key = borrow(&track->key),
						    .label = borrow(&track->label),
						    .track = row->track,
						    .kind = row->kind,
						    .depth = row->depth,
						    .finest = row->finest,
						    .events = row->events,
						    .busy_ns = row->busy_ns,
						    .first_ns = row->first_ns,
						    .last_ns = row->last_ns};
	return 0;
}

struct reducer_text reducer_tiers_name_text(const struct reducer_tiers *tiers, uint32_t name)
{
	return name < tiers->names ? borrow(&tiers->name[name].text) : (struct reducer_text){0};
}

void reducer_tiers_stats(const struct reducer_tiers *tiers, struct reducer_tiers_stats *ret_stats)
{
	*ret_stats = tiers->stats;
	ret_stats->options = tiers->options;
	ret_stats->blocks = tiers->pages;
	ret_stats->blocks_used = tiers->blocks;
}
