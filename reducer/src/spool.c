/* SPDX-License-Identifier: Apache-2.0 */
#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK_BYTES = 64 << 10, BLOCKS = 16 };

struct block {
	uint64_t number; /* + 1; 0 = empty */
	char *data;
};

struct spool {
	char *folder;
	int fd;         /* -1: nothing has been written to a file */
	uint64_t filed; /* bytes in the file */
	char *data;     /* those after them */
	size_t bytes;
	struct block block[BLOCKS];
};

int spool_new(const char *folder, struct spool **ret_spool)
{
	struct spool *spool = calloc(1, sizeof(*spool));
	if (!spool)
		return -ENOMEM;
	spool->fd = -1;
	if (!folder || !*folder)
		folder = getenv("TMPDIR");
	spool->folder = strdup(folder && *folder ? folder : "/tmp");
	spool->data = malloc(SPOOL_MEMORY_BYTES);
	if (!spool->folder || !spool->data) {
		spool_free(spool);
		return -ENOMEM;
	}
	*ret_spool = spool;
	return 0;
}

int spool_file(const char *folder)
{
	char path[4096];
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	/* Not every file system knows O_TMPFILE. */
	if ((size_t)snprintf(path, sizeof(path), "%s/.driverec-spool-XXXXXX", folder) >= sizeof(path))
		return -ENAMETOOLONG;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

static int flush(struct spool *spool)
{
	size_t at = 0;
	if (spool->fd < 0)
		spool->fd = spool_file(spool->folder);
	if (spool->fd < 0)
		return spool->fd;
	while (at < spool->bytes) {
		ssize_t wrote =
			pwrite(spool->fd, spool->data + at, spool->bytes - at, (off_t)(spool->filed + at));
		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote <= 0)
			return wrote < 0 ? -errno : -EIO;
		at += (size_t)wrote;
	}
	spool->filed += spool->bytes;
	spool->bytes = 0;
	return 0;
}

int spool_add(struct spool *spool, const void *bytes, size_t count, uint64_t *ret_place)
{
	const char *from = bytes;
	uint64_t place = spool->filed + spool->bytes;
	while (count > 0) {
		size_t some = SPOOL_MEMORY_BYTES - spool->bytes;
		some = some < count ? some : count;
		memcpy(spool->data + spool->bytes, from, some);
		spool->bytes += some;
		from += some;
		count -= some;
		int result = spool->bytes == SPOOL_MEMORY_BYTES ? flush(spool) : 0;
		if (result < 0)
			return result;
	}
	*ret_place = place;
	return 0;
}

/* A block of the file; the last one may be short. */
static int load(struct spool *spool, uint64_t number, const char **ret_data)
{
	struct block *block = &spool->block[number % BLOCKS];
	if (!block->data && !(block->data = malloc(BLOCK_BYTES)))
		return -ENOMEM;
	if (block->number != number + 1) {
		size_t have = 0, all = BLOCK_BYTES;
		uint64_t from = number * BLOCK_BYTES;
		block->number = 0;
		if (spool->filed - from < all)
			all = (size_t)(spool->filed - from);
		while (have < all) {
			ssize_t got = pread(spool->fd, block->data + have, all - have, (off_t)(from + have));
			if (got < 0 && errno == EINTR)
				continue;
			if (got <= 0)
				return got < 0 ? -errno : -EIO;
			have += (size_t)got;
		}
		block->number = number + 1;
	}
	*ret_data = block->data;
	return 0;
}

int spool_read(struct spool *spool, uint64_t place, size_t count, struct buffer *out)
{
	while (count > 0 && place < spool->filed) {
		const char *data = NULL;
		size_t at = (size_t)(place % BLOCK_BYTES), some = BLOCK_BYTES - at;
		int result = load(spool, place / BLOCK_BYTES, &data);
		if (result < 0)
			return result;
		some = some < count ? some : count;
		/* SPOOL_MEMORY_BYTES is a multiple of a block: what is filed is whole blocks. */
		buffer_add(out, data + at, some);
		place += some;
		count -= some;
	}
	if (count > spool->filed + spool->bytes - place)
		return -EINVAL;
	buffer_add(out, spool->data + (place - spool->filed), count);
	return out->failed;
}

void spool_free(struct spool *spool)
{
	if (!spool)
		return;
	for (unsigned i = 0; i < BLOCKS; i++)
		free(spool->block[i].data);
	if (spool->fd >= 0)
		close(spool->fd);
	free(spool->data);
	free(spool->folder);
	free(spool);
}
