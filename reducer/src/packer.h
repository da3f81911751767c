/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to a descriptor, packed by gzip where asked, in a fixed buffer. */
#ifndef REDUCER_PACKER_H
#define REDUCER_PACKER_H

#include <stddef.h>
#include <stdint.h>

struct packer;

/* `gzip_level`: 0 = plain, 1 .. 3 fast, 4 .. 9 as zlib. The descriptor stays the caller's. */
int packer_new(int fd, int gzip_level, struct packer **ret_packer);
/*
 * From now on another thread packs and writes, while the caller makes the next bytes ready. What fails is told by a
 * later call. -errno where no thread can be had: then all goes on as before.
 */
int packer_work_apart(struct packer *packer);
int packer_write(struct packer *packer, const void *bytes, size_t count);
int packer_finish(struct packer *packer);
uint64_t packer_file_bytes(const struct packer *packer);
void packer_free(struct packer *packer);

#endif
