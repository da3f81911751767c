/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reducer/input.h: the bytes of a file, unpacked while they are read.
 *
 * Plain, gzip (several members too) and zstd (several frames too) are told apart by their first bytes, never
 * by the name. Memory is fixed: one input buffer and the decoder's window; the file is never whole in memory.
 * What cannot be unpacked ends the reading where it is: bytes before it are delivered first.
 *
 * Not thread-safe. Errors are -errno.
 */
#ifndef REDUCER_INPUT_H
#define REDUCER_INPUT_H

#include <stddef.h>
#include <stdint.h>

#include <reducer/event.h>

struct reducer_input;

enum reducer_packing { REDUCER_PLAIN = 0, REDUCER_GZIP = 1, REDUCER_ZSTD = 2 };

/* Opens a file for reading. *ret_problem says what failed. */
int reducer_input_open(const char *path, struct reducer_input **ret_input, struct reducer_problem *ret_problem);

/* Reads from `fd`, which stays the caller's and is not closed. A pipe or socket will do. */
int reducer_input_from_fd(int fd, struct reducer_input **ret_input, struct reducer_problem *ret_problem);

/* Reads unpacked bytes; returns how many (0 at the end), or -errno of the file itself. */
int64_t reducer_input_read(struct reducer_input *input, void *buffer, size_t room);

/* Unpacked bytes read so far, and bytes of the file read so far. */
uint64_t reducer_input_offset(const struct reducer_input *input);
uint64_t reducer_input_file_offset(const struct reducer_input *input);

enum reducer_packing reducer_input_packing(const struct reducer_input *input);

/* Why the bytes ended early (truncated or damaged packing), or NULL where they did not. */
const struct reducer_problem *reducer_input_problem(const struct reducer_input *input);

void reducer_input_free(struct reducer_input *input);

#endif
