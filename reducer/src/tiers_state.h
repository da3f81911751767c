/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live tiers inside: what is in memory, and how it lies in the file.
 *
 *   page 0        struct tiers_header, written once
 *   areas A, B    struct tiers_meta and its payload: all names, tracks, rows, references to blocks, cursors;
 *                 commit n writes area n & 1, so the other one is whole whatever happens
 *   blocks        2 KiB each, 42 entries; a commit never writes over a block that the last commit refers to
 *
 * A row has a strip per tier: references to blocks, ascending in time. Only bins that hold something have an
 * entry; equal neighbours that are busy time alone (a span of an hour) share one as a run. A block is in
 * memory while it is dirty or the last of its strip; everything else is read when somebody asks.
 *
 * Events go to the row's hot bin, the finest tier's bin of the last event, and reach the strips of all tiers
 * when another bin's turn comes. All sums commute, so late events take the same way.
 *
 * Page states make the commit safe: LIVE pages are referred to by memory (and, if not dirty, by the last
 * commit), KEPT ones by the last commit alone; they are free after the next.
 */
#ifndef REDUCER_TIERS_STATE_H
#define REDUCER_TIERS_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include <reducer/tiers.h>

#define TIERS_MAGIC       UINT64_C(0x31524549544c5244)
#define TIERS_META_MAGIC  UINT64_C(0x314154454d4c5244)
#define TIERS_BLOCK_MAGIC UINT32_C(0x4b4c4244)
#define TIERS_PAGE_NONE   UINT32_MAX
#define TIERS_NONE        UINT32_MAX

enum {
	TIERS_VERSION = 1,
	TIERS_HEADER_BYTES = 4096,
	TIERS_BLOCK_BYTES = 2048,
	TIERS_BLOCK_ENTRIES = 42,
	TIERS_COVER_ROOM = 32,
	TIERS_COVER_ROOM_MAX = 1024,
	TIERS_BUCKETS = 4096,
	TIERS_DIRTY_MAX = 4096, /* blocks in memory after which a commit is wanted: 8 MiB */
	TIERS_BINS_MAX = 1 << 24,
};

/* Rows that are always there and stand in for those that had no room. Their number is kind - 1. */
enum { TIERS_SHARED_ROWS = 3 };

struct tiers_header {
	uint64_t magic;
	uint32_t version, header_bytes;
	uint32_t incompatible, compatible;
	uint64_t bytes_max, area_bytes;
	uint32_t block_bytes, tiers;
	struct reducer_tier tier[REDUCER_TIERS_MAX];
	uint32_t reserved;
	uint32_t crc; /* of all before it */
};

struct tiers_meta {
	uint64_t magic;
	uint64_t commit;
	uint64_t payload_bytes;
	int64_t now_ns;
	uint64_t events, out_of_reach, overflow_spans, doubtful_ns, coarsened, dropped_bins, merged_rows,
		unnamed, damaged_blocks;
	uint32_t names, tracks, rows, cursors;
	uint32_t payload_crc;
	uint32_t crc; /* of all before it */
};

struct tiers_entry {
	uint32_t at;    /* bins after the block's first */
	uint32_t run;   /* bins that it stands for; more than 1 only where count is 0 */
	uint32_t count; /* stays at UINT32_MAX */
	uint32_t name;
	union {
		struct {
			int64_t busy_ns, track_busy_ns, sum_ns, longest_ns;
		} span;
		struct {
			double min, max, last;
			int64_t last_ns;
		} counter;
		struct {
			int64_t first_ns, reserved[3];
		} instant;
	};
};

struct tiers_block {
	uint32_t magic;
	uint32_t used;
	int64_t first;
	uint64_t reserved[2];
	struct tiers_entry entry[TIERS_BLOCK_ENTRIES];
};

/* A row's, on disk: followed by, per tier, that many references; then the cover. */
struct tiers_row_disk {
	uint32_t track;
	uint8_t kind, depth, finest, has_open;
	uint64_t events;
	int64_t busy_ns, first_ns, last_ns, open_from, open_to, gap_until_ns;
	uint32_t gap_tiers, reserved;
	uint32_t references[REDUCER_TIERS_MAX];
};

struct tiers_reference_disk {
	int64_t first;
	uint32_t span, page, crc, used;
};

struct tiers_cover_disk {
	uint32_t count, room;
	int64_t horizon;
	uint32_t late, reserved;
};

_Static_assert(sizeof(struct tiers_header) == 120, "layout");
_Static_assert(sizeof(struct tiers_meta) == 128, "layout");
_Static_assert(sizeof(struct tiers_entry) == 48, "layout");
_Static_assert(sizeof(struct tiers_block) == TIERS_BLOCK_BYTES, "layout");
_Static_assert(sizeof(struct tiers_row_disk) == 88, "layout");
_Static_assert(sizeof(struct tiers_reference_disk) == 24, "layout");
_Static_assert(sizeof(struct tiers_cover_disk) == 24, "layout");

struct tiers_reference {
	int64_t first, end; /* bins [first, end) */
	uint32_t page, crc;
	bool dirty;
	struct tiers_block *block; /* NULL while it is in the file alone */
};

struct tiers_strip {
	struct tiers_reference *reference;
	uint32_t count, room;
};

struct tiers_row {
	uint32_t track;
	uint32_t next; /* of the same track */
	uint8_t kind, depth, finest;
	bool has_open, has_hot;
	uint64_t events;
	int64_t busy_ns, first_ns, last_ns;
	int64_t open_from, open_to; /* an open span counted so far */
	/* The finest gap_tiers tiers may lack bins that began before gap_until_ns. */
	uint32_t gap_tiers;
	int64_t gap_until_ns;
	int64_t hot_bin;
	struct reducer_bin hot;
	struct reducer_cover cover;
	struct tiers_strip strip[REDUCER_TIERS_MAX];
};

struct tiers_text {
	char *data;
	uint32_t bytes;
};

struct tiers_track {
	struct tiers_text source, key, label;
	uint32_t next; /* in its bucket */
	uint32_t first_row;
	struct reducer_cover cover;
};

struct tiers_name {
	struct tiers_text text;
	uint32_t next;
};

struct tiers_cursor_copy {
	struct tiers_text source;
	void *data;
	size_t bytes;
};

enum tiers_page { TIERS_PAGE_FREE, TIERS_PAGE_LIVE, TIERS_PAGE_KEPT };

struct reducer_tiers {
	int fd;
	bool read_only;
	int broken; /* the error that makes a commit impossible */
	struct reducer_tiers_options options;
	uint64_t area_bytes;
	uint32_t pages;
	uint8_t *page; /* enum tiers_page */
	uint32_t next_page;
	uint32_t blocks, dirty, kept; /* references in memory; of them dirty; pages KEPT */
	uint64_t meta_bytes;          /* at most what names, tracks and rows will take in an area */
	struct reducer_tiers_stats stats;
	int64_t floor[REDUCER_TIERS_MAX]; /* the first bin within reach */

	struct tiers_name *name;
	uint32_t names, names_room;
	uint64_t name_bytes;
	struct tiers_track *track;
	uint32_t tracks, tracks_room;
	struct tiers_row **row;
	uint32_t rows, rows_room;
	uint32_t name_bucket[TIERS_BUCKETS], track_bucket[TIERS_BUCKETS];
	struct tiers_cursor_copy *cursor;
	uint32_t cursors;
};

/* tiers_table.c: names, tracks and rows. */
uint32_t tiers_hash(struct reducer_text a, struct reducer_text b);
int tiers_text_copy(struct tiers_text *text, struct reducer_text from);
int tiers_table_name(struct reducer_tiers *tiers, struct reducer_text text, uint32_t *ret_name);
int tiers_table_track(struct reducer_tiers *tiers, struct reducer_text source, struct reducer_text key,
		      struct reducer_text label, uint32_t *ret_track);
int tiers_table_row(struct reducer_tiers *tiers, uint32_t track, uint8_t kind, uint8_t depth,
		    uint32_t *ret_row);
uint32_t tiers_table_find_row(const struct reducer_tiers *tiers, uint32_t track, uint8_t kind, uint8_t depth);
/* Name 0, which is empty, track 0 and the rows that stand in for others: first of all in a new file. */
int tiers_table_add_shared(struct reducer_tiers *tiers);
void tiers_table_clear(struct reducer_tiers *tiers);
/* Leaves out rows that hold nothing and saw nothing within reach, and tracks without rows. */
void tiers_table_drop_dead(struct reducer_tiers *tiers);
/* Lets a late set remember more, where there is room to store it. */
void tiers_table_grow_cover(struct reducer_tiers *tiers, struct reducer_cover *cover);
uint64_t tiers_table_budget(const struct reducer_tiers *tiers);

/* tiers_strip.c: bins of one row and tier. */
int tiers_strip_add(struct reducer_tiers *tiers, struct tiers_row *row, unsigned tier, int64_t bin,
		    int64_t bins, const struct reducer_bin *delta);
/* A block for reading: in memory as it is, else read into *room. -EBADMSG if it is not what was referred to.
 */
int tiers_strip_peek(struct reducer_tiers *tiers, const struct tiers_reference *reference,
		     struct tiers_block *room, const struct tiers_block **ret_block);
void tiers_strip_clear(struct reducer_tiers *tiers, struct tiers_strip *strip);
/* Drops the references [0, count). */
void tiers_strip_drop(struct reducer_tiers *tiers, struct tiers_strip *strip, uint32_t count);
void tiers_entry_load(const struct tiers_entry *entry, uint8_t kind, struct reducer_bin *ret);
/* Hands the hot bin over to the strips. */
int tiers_row_flush(struct reducer_tiers *tiers, struct tiers_row *row);

/* tiers_room.c */
void tiers_room_set_now(struct reducer_tiers *tiers, int64_t now_ns);
void tiers_room_expire(struct reducer_tiers *tiers);
/* Coarsens until two more blocks fit. */
void tiers_room_make(struct reducer_tiers *tiers);
/* Coarsens until all dirty blocks can be written beside the committed ones. */
void tiers_room_make_for_commit(struct reducer_tiers *tiers);
/* Rows get their fine tiers back when half of the file is free. */
void tiers_room_refine(struct reducer_tiers *tiers);
uint32_t tiers_room_take_page(struct reducer_tiers *tiers);

/* tiers_file.c */
bool tiers_options_valid(const struct reducer_tiers_options *options);
/* area_bytes and pages from options. */
void tiers_file_lay_out(struct reducer_tiers *tiers);
uint64_t tiers_file_area_offset(const struct reducer_tiers *tiers, uint64_t commit);
uint64_t tiers_file_block_offset(const struct reducer_tiers *tiers, uint32_t page);
int tiers_file_create(struct reducer_tiers *tiers, const char *path);
int tiers_file_commit(struct reducer_tiers *tiers, const struct reducer_tiers_cursor *cursors, size_t count,
		      bool sync);

/* tiers_load.c: nothing that the file says is believed before it was checked. */
int tiers_load_header(struct reducer_tiers *tiers);
/* The newest whole commit. -EBADMSG if there is none; `tiers` then holds parts, to be freed. */
int tiers_load_commit(struct reducer_tiers *tiers);
/* Whether a newer commit than the one in memory has been begun. */
bool tiers_load_newer(const struct reducer_tiers *tiers);

#endif
