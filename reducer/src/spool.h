/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes put aside in an unnamed temporary file and fetched again by their place. Nothing is left of it
 * however the process ends. Up to SPOOL_MEMORY_BYTES no file is made.
 */
#ifndef REDUCER_SPOOL_H
#define REDUCER_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "buffer.h"

enum { SPOOL_MEMORY_BYTES = 1 << 20 };

struct spool;

/* `folder` NULL: $TMPDIR or /tmp. It is copied. 0 or -ENOMEM; errors of the folder come with spool_add(). */
int spool_new(const char *folder, struct spool **ret_spool);
int spool_add(struct spool *spool, const void *bytes, size_t count, uint64_t *ret_place);
/* Appends the bytes at `place` to `out`. Cheap where places come about in order, on a few lines at once. */
int spool_read(struct spool *spool, uint64_t place, size_t count, struct buffer *out);
void spool_free(struct spool *spool);

/* An unnamed file in `folder`, or -errno. */
int spool_file(const char *folder);

#endif
