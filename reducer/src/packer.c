/* SPDX-License-Identifier: Apache-2.0 */
#include "packer.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

enum { PACKED_BYTES = 64 << 10, GZIP_WINDOW = 15 + 16 };

struct packer {
	int fd;
	int packs;
	uint64_t file_bytes;
	z_stream deflate;
	unsigned char packed[PACKED_BYTES];
};

static int write_whole(struct packer *packer, const unsigned char *bytes, size_t count)
{
	while (count > 0) {
		ssize_t wrote = write(packer->fd, bytes, count);
		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0)
			return -errno;
		bytes += wrote;
		count -= (size_t)wrote;
		packer->file_bytes += (uint64_t)wrote;
	}
	return 0;
}

/* Packs what is in the stream's input; with Z_FINISH up to the very end. */
static int pack(struct packer *packer, int flush)
{
	int result;
	do {
		packer->deflate.next_out = packer->packed;
		packer->deflate.avail_out = sizeof(packer->packed);
		result = deflate(&packer->deflate, flush);
		if (result == Z_STREAM_ERROR)
			return -EIO;
		int wrote = write_whole(packer, packer->packed, sizeof(packer->packed) - packer->deflate.avail_out);
		if (wrote < 0)
			return wrote;
	} while (packer->deflate.avail_out == 0 || (flush == Z_FINISH && result != Z_STREAM_END));
	return 0;
}

int packer_new(int fd, int gzip_level, struct packer **ret_packer)
{
	struct packer *packer = calloc(1, sizeof(*packer));
	if (!packer)
		return -ENOMEM;
	packer->fd = fd;
	packer->packs = gzip_level > 0;
	if (packer->packs && deflateInit2(&packer->deflate, gzip_level > 9 ? 9 : gzip_level, Z_DEFLATED, GZIP_WINDOW,
					  8, Z_DEFAULT_STRATEGY) != Z_OK) {
		free(packer);
		return -ENOMEM;
	}
	*ret_packer = packer;
	return 0;
}

int packer_write(struct packer *packer, const void *bytes, size_t count)
{
	const unsigned char *from = bytes;
	if (!packer->packs)
		return write_whole(packer, from, count);
	while (count > 0) {
		size_t some = count < (1u << 30) ? count : 1u << 30;
		/* zlib does not write to its input; its field merely lacks the const. */
		packer->deflate.next_in = (z_const Bytef *)(uintptr_t)from;
		packer->deflate.avail_in = (unsigned)some;
		int result = pack(packer, Z_NO_FLUSH);
		if (result < 0)
			return result;
		from += some;
		count -= some;
	}
	return 0;
}

int packer_finish(struct packer *packer)
{
	return packer->packs ? pack(packer, Z_FINISH) : 0;
}

uint64_t packer_file_bytes(const struct packer *packer)
{
	return packer->file_bytes;
}

void packer_free(struct packer *packer)
{
	if (!packer)
		return;
	if (packer->packs)
		deflateEnd(&packer->deflate);
	free(packer);
}
