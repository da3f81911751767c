/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reducer/slices.h: fetch known pieces of a file's unpacked text again, without parsing it.
 *
 * While a file is read for the first time, seek points can be taken: copies of the decoder's state every so
 * many bytes of text. With them the text is unpacked a second time in sections, on several threads; without
 * them (or for a packing that has none) it is unpacked from the beginning, on one. A plain file is read in
 * place.
 *
 * Memory: seek points at most REDUCER_SEEK_POINTS_BYTES in all (every second one is dropped and the distance
 * doubled when there are more); the sections in flight at most REDUCER_SLICES_BYTES, more only where a single
 * slice is larger.
 *
 * Errors are -errno.
 */
#ifndef REDUCER_SLICES_H
#define REDUCER_SLICES_H

#include <stddef.h>
#include <stdint.h>

#include <reducer/input.h>

enum { REDUCER_SEEK_POINTS_BYTES = 8 << 20, REDUCER_SLICES_BYTES = 16 << 20 };

/* A piece of the unpacked text. */
struct reducer_slice {
	uint64_t offset;
	uint32_t bytes;
};

/* The seek points of one file, as it was when they were taken. */
struct reducer_seek_points;

/* To be called before the first read. 0, or -EINVAL where something was read; inputs that cannot be read
 * twice (a pipe) take none. */
int reducer_input_keep_seek_points(struct reducer_input *input);

/* After the last read: what was taken, to be freed by the caller. -ENOENT where none were to be kept. */
int reducer_input_take_seek_points(struct reducer_input *input, struct reducer_seek_points **ret_points);

void reducer_seek_points_free(struct reducer_seek_points *points);

/*
 * Hands each slice's bytes to `got`, in the order of the slices, on the calling thread. The slices ascend and
 * do not overlap. `points` may be NULL. `threads`: how many may unpack, 0 = 1. Returns 0, -ESTALE where the
 * file is not the one that the points are of, -EINVAL where the slices do not ascend, -ENODATA where a slice
 * is beyond what the file unpacks to, -ESPIPE where the path is no file, another -errno of the file, or what `got` returned when that was not 0.
 */
int reducer_slices_read(const char *path, const struct reducer_seek_points *points,
			const struct reducer_slice *slices, size_t count, unsigned threads,
			int (*got)(void *context, size_t index, const char *data, size_t bytes), void *context);

#endif
