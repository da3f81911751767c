/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the reading side (driverec/reader.h, driverec/freeze.h). Everything comes from the file by
 * ringread_bytes() into private memory; nothing is looked at in the file itself, so what was checked is what
 * is used.
 *
 * Why a poll reads the chunk table twice. A thread may fill chunk 5 and take chunk 6 while the table is being
 * read, and the copy then shows 6 but not 5. Whatever the first copy shows had its predecessors committed
 * before; so in a second copy, read after it, everything up to what the first one shows is there and final,
 * or overwritten. Chunks newer than the first copy wait for the next poll.
 */
#ifndef RINGBUF_READER_H
#define RINGBUF_READER_H

#include <driverec/reader.h>

#include "clock.h"

enum { RINGREAD_SECTION_LIMIT = DREC_SEC_HOST_ANCHORS + 1 };

struct ringread_cursor {
	struct drec_cursor at;
	uint32_t chunk;   /* where at.number lies */
	uint8_t started;  /* at.number and at.bytes mean something */
	uint8_t resync;   /* bytes could not be read as events, so their number is not known */
};

struct ringread_dict {
	struct drec_dict_entry *entries; /* by id; bytes 0 = not loaded */
	char *text;                      /* a private copy of the DICT section, filled where it was asked for */
	uint32_t *latest_name;           /* by track: id of its TRACK_NAME entry */
	uint32_t scanned;                /* every entry below is known to be committed, and in latest_name */
	uint64_t epoch;                  /* of the last scan */
};

struct drec_reader {
	int fd;
	int writable;
	struct drec_header header;
	const struct drec_section *section[RINGREAD_SECTION_LIMIT];
	struct drec_state state;   /* as last read */
	struct drec_state polled;  /* as it was when the last poll began */
	uint64_t epoch;            /* counts the readings of STATE */
	int caught_up;             /* the last poll delivered all that there was */
	unsigned quiet;            /* calls of drec_reader_changed() since the whole table was looked at */
	struct drec_window window;

	struct ring_clock clock;
	int anchors_given;
	uint64_t anchor_seq;

	struct drec_chunk *chunks; /* first copy of the table */
	struct drec_chunk *again;  /* second copy */
	uint64_t *commits;         /* as last polled, by chunk */
	struct ringread_item *items;
	uint8_t *data;             /* one chunk */
	struct ringread_cursor *cursors; /* sorted by slot, life */
	size_t n_cursors, cursor_room;

	struct ringread_dict dict;

	uint64_t commit_sum;       /* of the whole table, for drec_reader_alive() */
	int64_t commit_seen_ns;    /* MONOTONIC when it last changed; 0 = never looked */
};

struct ringread_item {
	uint32_t slot, life;
	uint64_t number;
	uint32_t chunk;
};

/* Opens what `fd` has, which the reader then owns; on failure it is closed. */
int ringread_open_fd(int fd, int writable, const struct drec_reader_options *options,
		     struct drec_reader **ret_reader, struct drec_problem *ret_problem);
void ringread_problem(struct drec_problem *problem, uint64_t offset, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* All of it or -EBADMSG (the file is shorter) or what pread says. */
int ringread_bytes(int fd, uint64_t offset, void *ret, size_t bytes);
int ringread_state(struct drec_reader *reader);
int ringread_chunks(const struct drec_reader *reader, struct drec_chunk *ret);
int ringread_chunk(const struct drec_reader *reader, uint32_t index, struct drec_chunk *ret);
/* Committed bytes of a chunk, 0 for a line that cannot be right. */
uint32_t ringread_chunk_bytes(const struct drec_reader *reader, const struct drec_chunk *chunk);
/* Whether `now` still is the chunk that `then` was: same generation and owner, nothing gone. */
int ringread_same_chunk(const struct drec_chunk *then, const struct drec_chunk *now);
uint64_t ringread_data_offset(const struct drec_reader *reader, uint32_t chunk);

/* Sorts items by slot, life, number. */
int ringread_by_life(const void *left, const void *right);
/* Whether sorted `seen`, the first copy of the table, has this chunk or a later one of its life. */
int ringread_reached(const struct ringread_item *seen, size_t n_seen, const struct ringread_item *item);

/* Decodes one event and checks its ids against the limits. Bytes, or -EBADMSG. */
int ringread_event(const struct drec_reader *reader, const uint8_t *bytes, size_t avail, uint16_t lap,
		   struct drec_event *ret_event);

int ringread_anchors(struct drec_reader *reader);

/*
 * A slot and its stack as they were at one moment: the outermost spans that two readings agree on (they were
 * open all the time between). *ret_stable counts those; `slot->open` is that of the second reading.
 */
int ringread_slot(const struct drec_reader *reader, uint32_t index, struct drec_slot *ret_slot,
		  uint32_t *ret_stable);

/*
 * Lowers *depth to the outermost entry of `slot` that `event` is the end of: a thread that died after the
 * commit left the entry behind.
 */
void ringread_drop_ended(const struct drec_slot *slot, const struct drec_event *event, uint32_t *depth);

/* All of it or -errno; a short write is -ENOSPC. */
int ringread_write(int fd, uint64_t offset, const void *bytes, size_t count);

#define RINGREAD_GENERATION(commit) ((uint32_t)((commit) >> 32))
#define RINGREAD_LAP(commit)        ((uint16_t)((commit) >> 32))

#endif
