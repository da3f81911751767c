/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce/spool.h: standard input, or a pipe, as a file that can be read twice.
 *
 * Into an unnamed file in $TMPDIR (else /tmp): it is gone with the process, however that ends. At most half
 * of what is free there is taken.
 */
#ifndef RECORDER_REDUCE_SPOOL_H
#define RECORDER_REDUCE_SPOOL_H

#include <stddef.h>
#include <stdint.h>

/* The folder of temporary files. */
const char *reduce_spool_folder(void);

/* An unnamed file there, for reading and writing; -errno. */
int reduce_spool_new(void);

/* -ENOSPC: more comes than may be taken, *ret_bytes says how much that is; -errno. *ret_fd is the caller's.
 */
int reduce_spool_pipe(int from, int *ret_fd, uint64_t *ret_bytes);

#endif
