/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reducer/tiers.h: the live macro view, one bounded file of bins that survives whoever writes it.
 *
 * A source has tracks, a track has rows: its spans by nesting depth, its instants, its counter. Each row
 * keeps bins in several tiers at once (10 ms for 10 min, 1 s for 24 h, 1 min for 30 d), all fed by the same
 * events.
 *
 *   reducer_tiers_open(path, &options, now, &tiers);          the file as of its last commit
 *   reducer_tiers_cursor(tiers, "ring-17", &data, &bytes);    where that source was read up to
 *   reducer_tiers_track(tiers, "ring-17", "main", "main thread", &track);
 *   reducer_tiers_row(tiers, track, REDUCER_ROW_SPANS, 0, &row);
 *   reducer_tiers_span(tiers, row, name, start_ns, end_ns);   millions a second
 *   reducer_tiers_commit(tiers, now, cursors, count, false);  bins and cursors together, or neither
 *
 * Promises
 * - A bin's busy time is the union of the row's spans, exact to 1 ns, in whatever order they come, as long as
 * a late span is not older than the row's memory of its last 24 to 1024 disjoint busy ranges. What is older
 *   is added as if it overlapped nothing and counted as `doubtful_ns`.
 * - A span that shares time with one of its own depth goes to the track's overflow row, and is counted.
 * - An event is counted in the bin of its own start; a span's busy time goes to every bin that it covers.
 * - Killed at any instruction, the file is that of the last commit: bins added since are gone and the cursors
 *   say so. With `sync` this holds for a machine that goes down, too.
 * - The file never grows beyond its size. When it is full, the least busy row gives up its finest tier
 *   (coarser ones go on), then the next; the last tier gives up its oldest bins. All of it is counted.
 * - Readers in other processes see the last commit, whole.
 *
 * Unix ns everywhere. Errors are -errno. Not thread-safe: one thread an object. An event whose time is out of
 * the tiers' reach is counted, not an error; -ENOMEM and -EIO from adding are sticky: commit then refuses
 * with the same, and the caller frees the object and opens the file again.
 */
#ifndef REDUCER_TIERS_H
#define REDUCER_TIERS_H

#include <reducer/bins.h>
#include <reducer/event.h>

enum {
	REDUCER_TIERS_MAX = 4,
	REDUCER_TIERS_TEXT_MAX = 255, /* bytes of a source, track key, label or name; longer ones are cut */
};
#define REDUCER_TIERS_BYTES_MIN ((uint64_t)1 << 20)
#define REDUCER_TIERS_BYTES_MAX ((uint64_t)1 << 32)

/* Events may lie this far beyond the time told; clocks of sources differ a little. */
#define REDUCER_TIERS_AHEAD_NS ((int64_t)60 * 1000000000)

struct reducer_tiers;

struct reducer_tier {
	int64_t width_ns; /* of a bin; a multiple of the finer tier's */
	int64_t bins;     /* how many it reaches back */
};

struct reducer_tiers_options {
	struct reducer_tier tier[REDUCER_TIERS_MAX]; /* finest first */
	unsigned tiers;
	uint64_t bytes_max;
};

/* 10 ms x 10 min, 1 s x 24 h, 1 min x 30 d in 64 MiB. */
void reducer_tiers_defaults(struct reducer_tiers_options *ret_options);

/*
 * Opens for writing, creating the file if there is none. -EBUSY: another process writes it; -ESTALE: it was
 * made with other options; -EPROTONOSUPPORT: by another version; -EBADMSG: damaged beyond its last two
 * commits or no such file: remove it and open again.
 */
int reducer_tiers_open(const char *path, const struct reducer_tiers_options *options, int64_t now_ns,
		       struct reducer_tiers **ret_tiers);

/* Opens for reading what another process writes. Functions that add or commit return -EROFS. */
int reducer_tiers_open_read(const char *path, struct reducer_tiers **ret_tiers);

/* Readers: takes over a newer commit. 1 if there was one: numbers of rows and names may have changed. */
int reducer_tiers_refresh(struct reducer_tiers *tiers);

/* Closes without a commit. NULL is fine. */
void reducer_tiers_free(struct reducer_tiers *tiers);

/*
 * Finds or makes a track by (source, key), and its row of a kind and depth (0 for what is no span). `label`
 * is what people see; the latest stays. Numbers hold until the object is freed (readers: refreshed). When
 * there is no room for more, a shared row stands in, named "(others)", and stats say how often.
 */
int reducer_tiers_track(struct reducer_tiers *tiers, struct reducer_text source, struct reducer_text key,
			struct reducer_text label, uint32_t *ret_track);
int reducer_tiers_row(struct reducer_tiers *tiers, uint32_t track, enum reducer_row_kind kind, uint8_t depth,
		      uint32_t *ret_row);
/* The number of a span's name, 0 when the table is full. */
int reducer_tiers_name(struct reducer_tiers *tiers, struct reducer_text text, uint32_t *ret_name);

/* Adding: no lock, no system call and, but for new blocks of bins, no allocation. */
int reducer_tiers_span(struct reducer_tiers *tiers, uint32_t row, uint32_t name, int64_t start_ns,
		       int64_t end_ns);
int reducer_tiers_instant(struct reducer_tiers *tiers, uint32_t row, uint32_t name, int64_t time_ns);
int reducer_tiers_counter(struct reducer_tiers *tiers, uint32_t row, int64_t time_ns, double value);
/*
 * A span began at start_ns and is still open: its busy time counts up to now_ns, a time at which it was seen
 * open (not later: it may have ended meanwhile). Tell it again and again; when it ends, add it as a span with
 * the same start, and only the rest is counted then.
 */
int reducer_tiers_open_span(struct reducer_tiers *tiers, uint32_t row, int64_t start_ns, int64_t now_ns);

/* Moves the time on, never back: where tiers end, and how far ahead events may lie. */
void reducer_tiers_tick(struct reducer_tiers *tiers, int64_t now_ns);

/* Much has changed since the last commit: commit now, else rows may be coarsened for want of room to write.
 */
bool reducer_tiers_wants_commit(const struct reducer_tiers *tiers);

struct reducer_tiers_cursor {
	struct reducer_text source;
	const void *data; /* opaque: an array of struct drec_cursor, a file offset */
	size_t bytes;
};

/*
 * Writes all bins and these cursors; those of sources not named are forgotten. -E2BIG: more cursor bytes than
 * 1/8 of a metadata area (512 KiB of a 64 MiB file). -ENOSPC, -EIO and so on: the last commit is still there
 * and the call may be repeated.
 */
int reducer_tiers_commit(struct reducer_tiers *tiers, int64_t now_ns,
			 const struct reducer_tiers_cursor *cursors, size_t count, bool sync);

/* A source's cursor as of the last commit, valid until the next one. -ENOENT. */
int reducer_tiers_cursor(const struct reducer_tiers *tiers, struct reducer_text source, const void **ret_data,
			 size_t *ret_bytes);

/*
 * Fills bins [0, count) of width_ns each, the first one beginning at from_ns rounded down to a multiple of
 * width_ns. The width is a multiple of a tier's; the coarsest such tier is read. -EINVAL: no such tier.
 * Returns 1 if the file was full and the row gave up bins of that tier, so that some may be missing here:
 * read a coarser width. -EAGAIN (readers): the writer went on meanwhile; refresh and read again.
 */
int reducer_tiers_read(struct reducer_tiers *tiers, uint32_t row, int64_t from_ns, int64_t width_ns,
		       size_t count, struct reducer_bin *ret_bins);

struct reducer_tiers_row_info {
	struct reducer_text source, key, label; /* valid until a track is added */
	uint32_t track;
	enum reducer_row_kind kind;
	uint8_t depth;
	uint8_t finest; /* the finest tier that it still keeps */
	uint64_t events;
	int64_t busy_ns;  /* over its whole life */
	int64_t first_ns; /* exact first start and last end; meaningless while events is 0 */
	int64_t last_ns;
};

uint32_t reducer_tiers_rows(const struct reducer_tiers *tiers);
/* -ENOENT for numbers from reducer_tiers_rows() on. */
int reducer_tiers_row_info(const struct reducer_tiers *tiers, uint32_t row,
			   struct reducer_tiers_row_info *ret_info);
/* Empty for number 0 and for unknown ones. */
struct reducer_text reducer_tiers_name_text(const struct reducer_tiers *tiers, uint32_t name);

struct reducer_tiers_stats {
	struct reducer_tiers_options options;
	uint64_t commits;
	int64_t now_ns;
	uint64_t blocks, blocks_used;
	uint64_t events;
	uint64_t out_of_reach; /* events too old for every tier, too far ahead, or ending before they begin */
	uint64_t overflow_spans; /* overlapped a span of their depth */
	uint64_t doubtful_ns;    /* busy time whose overlap is not known */
	uint64_t coarsened;      /* times a row gave up a tier */
	uint64_t dropped_bins;   /* bins that the last tier gave up before their time */
	uint64_t merged_rows;    /* lookups that ended in a shared row */
	uint64_t unnamed;        /* names that had no room */
	uint64_t damaged_blocks; /* could not be read back */
};
void reducer_tiers_stats(const struct reducer_tiers *tiers, struct reducer_tiers_stats *ret_stats);

#endif
