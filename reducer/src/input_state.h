/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of an input, and its seek points: copies of the decoder between two reads. */
#ifndef REDUCER_INPUT_STATE_H
#define REDUCER_INPUT_STATE_H

#include <reducer/input.h>

#include <stdbool.h>
#include <sys/stat.h>

#include <zstd.h>
#ifdef REDUCER_HAVE_ISAL
#include <isa-l/igzip_lib.h>
typedef struct inflate_state input_inflate;
#else
#include <zlib.h>
typedef z_stream input_inflate;
#endif

/* A zstd frame's header is at least 6 bytes: so the first look at one never holds the whole frame. */
enum { PACKED_BYTES = 128 << 10, MAGIC_BYTES = 4, ZSTD_WANTS_FIRST = 5, ZSTD_HEADER_BYTES = 3 };

#ifdef REDUCER_HAVE_ISAL
/* A gzip member's header is passed over here: ISA-L takes some for damaged when they come in pieces. */
struct gzip_header {
	unsigned at;        /* bytes of the fixed part read */
	unsigned char left; /* of the flags: the parts still to come */
	unsigned extra_at, extra_bytes, crc_at;
	int done;
};
#endif

struct reducer_input {
	int fd;
	int owns_fd;
	enum reducer_packing packing;
	int file_ended;
	int ended;
	int in_member;    /* inside a gzip member or zstd frame */
	int damaged;      /* it cannot be unpacked further; what was made before is still handed over */
	uint64_t members; /* whole ones so far */
	uint64_t offset;
	uint64_t file_offset;
	size_t packed_at, packed_bytes;
	struct reducer_problem problem;
	input_inflate inflate;
#ifdef REDUCER_HAVE_ISAL
	struct gzip_header header;
#else
	int inflate_ready;
#endif
	ZSTD_DStream *zstd;
	size_t zstd_wants; /* packed bytes up to the end of the block at hand */
	int zstd_full;     /* the last call filled its room, so that more may be held */
	struct reducer_seek_points *points; /* being taken, or NULL */
	uint64_t next_point;                /* at this offset or beyond */
	unsigned char packed[PACKED_BYTES];
};

struct seek_point {
	uint64_t offset;        /* in the text */
	uint64_t file_offset;
	input_inflate *inflate; /* NULL between members and frames */
};

/* The first point is the file's beginning. */
struct reducer_seek_points {
	struct stat file;
	enum reducer_packing packing;
	uint64_t distance;
	size_t n, room;
	struct seek_point *point;
};

/* Takes a point where the input now stands, if one can be. Failing is no harm. */
void input_note_point(struct reducer_input *input);

/* An input on `fd`, which becomes its own also on failure, that goes on from a point. */
int input_from_point(int fd, const struct reducer_seek_points *points, size_t index,
		     struct reducer_input **ret_input);

#endif
