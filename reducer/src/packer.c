/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two packers: zlib, and for the fast levels ISA-L where the build has it (about ten times as fast as zlib's
 * default level, a quarter larger). Which of them packs depends on the build and the level alone, so the same
 * input gives the same bytes.
 */
#include "packer.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#ifdef REDUCER_HAVE_ISAL
#include <isa-l/igzip_lib.h>
#endif

enum { PACKED_BYTES = 64 << 10, GZIP_WINDOW = 15 + 16, FAST_LEVEL_MAX = 3, BLOCK_BYTES = 512 << 10 };

struct packer {
	int fd;
	enum { PLAIN, ZLIB, ISAL } by;
	uint64_t file_bytes; /* of the thread, while it works apart */
	z_stream deflate;
#ifdef REDUCER_HAVE_ISAL
	struct isal_zstream isal;
	unsigned char *isal_buffer;
#endif
	/* Working apart: the caller fills one block while the thread packs the other. `filled` and `done` belong to
	 * the lock, as `result` does. */
	struct apart *apart;
	unsigned char packed[PACKED_BYTES];
};

struct apart {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned char *block[2];
	size_t bytes[2];
	unsigned next;    /* the block that the caller fills */
	bool filled;      /* the other one waits to be packed, or is being packed */
	bool done;        /* no more will come */
	int result;
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

#ifdef REDUCER_HAVE_ISAL
static int open_isal(struct packer *packer, int level)
{
	static const uint32_t buffer_bytes[FAST_LEVEL_MAX + 1] = {0, ISAL_DEF_LVL1_DEFAULT, ISAL_DEF_LVL2_DEFAULT,
								  ISAL_DEF_LVL3_DEFAULT};
	packer->isal_buffer = malloc(buffer_bytes[level]);
	if (!packer->isal_buffer)
		return -ENOMEM;
	isal_deflate_init(&packer->isal);
	packer->isal.level = (uint32_t)level;
	packer->isal.level_buf = packer->isal_buffer;
	packer->isal.level_buf_size = buffer_bytes[level];
	packer->isal.gzip_flag = IGZIP_GZIP;
	packer->by = ISAL;
	return 0;
}

static int pack_isal(struct packer *packer, const unsigned char *bytes, size_t count, int finish)
{
	/* ISA-L does not write to its input; its field merely lacks the const. */
	packer->isal.next_in = (uint8_t *)(uintptr_t)bytes;
	packer->isal.avail_in = (uint32_t)count;
	packer->isal.end_of_stream = (uint16_t)finish;
	do {
		packer->isal.next_out = packer->packed;
		packer->isal.avail_out = sizeof(packer->packed);
		if (isal_deflate(&packer->isal) != COMP_OK)
			return -EIO;
		int wrote = write_whole(packer, packer->packed, sizeof(packer->packed) - packer->isal.avail_out);
		if (wrote < 0)
			return wrote;
	} while (packer->isal.avail_out == 0 || (finish && packer->isal.internal_state.state != ZSTATE_END));
	return 0;
}
#else
static int open_isal(struct packer *packer, int level)
{
	(void)packer;
	(void)level;
	return -ENOSYS;
}

static int pack_isal(struct packer *packer, const unsigned char *bytes, size_t count, int finish)
{
	(void)packer;
	(void)bytes;
	(void)count;
	(void)finish;
	return -ENOSYS;
}
#endif

/* Packs what is in the stream's input; with Z_FINISH up to the very end. */
static int pack_zlib(struct packer *packer, int flush)
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

static int open_zlib(struct packer *packer, int level)
{
	if (deflateInit2(&packer->deflate, level > 9 ? 9 : level, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	packer->by = ZLIB;
	return 0;
}

int packer_new(int fd, int gzip_level, struct packer **ret_packer)
{
	struct packer *packer = calloc(1, sizeof(*packer));
	if (!packer)
		return -ENOMEM;
	packer->fd = fd;
	int result = 0;
	if (gzip_level > 0)
		result = gzip_level <= FAST_LEVEL_MAX ? open_isal(packer, gzip_level) : -ENOSYS;
	if (result == -ENOSYS)
		result = open_zlib(packer, gzip_level);
	if (result < 0) {
		free(packer);
		return result;
	}
	*ret_packer = packer;
	return 0;
}

static int pack(struct packer *packer, const unsigned char *from, size_t count)
{
	if (packer->by == PLAIN)
		return write_whole(packer, from, count);
	while (count > 0) {
		size_t some = count < (1u << 30) ? count : 1u << 30;
		/* zlib does not write to its input either. */
		packer->deflate.next_in = (z_const Bytef *)(uintptr_t)from;
		packer->deflate.avail_in = (unsigned)some;
		int result = packer->by == ISAL ? pack_isal(packer, from, some, 0) : pack_zlib(packer, Z_NO_FLUSH);
		if (result < 0)
			return result;
		from += some;
		count -= some;
	}
	return 0;
}

static void *pack_apart(void *context)
{
	struct packer *packer = context;
	struct apart *apart = packer->apart;
	pthread_mutex_lock(&apart->lock);
	for (;;) {
		while (!apart->filled && !apart->done)
			pthread_cond_wait(&apart->changed, &apart->lock);
		if (!apart->filled)
			break;
		unsigned at = !apart->next;
		pthread_mutex_unlock(&apart->lock);
		int result = pack(packer, apart->block[at], apart->bytes[at]);
		pthread_mutex_lock(&apart->lock);
		if (apart->result == 0)
			apart->result = result;
		apart->filled = false;
		pthread_cond_signal(&apart->changed);
	}
	pthread_mutex_unlock(&apart->lock);
	return NULL;
}

static void free_apart(struct apart *apart)
{
	pthread_cond_destroy(&apart->changed);
	pthread_mutex_destroy(&apart->lock);
	free(apart->block[0]);
	free(apart->block[1]);
	free(apart);
}

int packer_work_apart(struct packer *packer)
{
	struct apart *apart = calloc(1, sizeof(*apart));
	if (!apart)
		return -ENOMEM;
	pthread_mutex_init(&apart->lock, NULL);
	pthread_cond_init(&apart->changed, NULL);
	for (int i = 0; i < 2; i++)
		apart->block[i] = malloc(BLOCK_BYTES);
	packer->apart = apart;
	int result = apart->block[0] && apart->block[1] ? 0 : -ENOMEM;
	if (result == 0)
		result = -pthread_create(&apart->thread, NULL, pack_apart, packer);
	if (result < 0) {
		packer->apart = NULL;
		free_apart(apart);
	}
	return result;
}

/* Hands the caller's block over, once the one before is packed. */
static int hand_over(struct apart *apart)
{
	pthread_mutex_lock(&apart->lock);
	while (apart->filled)
		pthread_cond_wait(&apart->changed, &apart->lock);
	int result = apart->result;
	apart->next = !apart->next;
	apart->filled = true;
	pthread_cond_signal(&apart->changed);
	pthread_mutex_unlock(&apart->lock);
	apart->bytes[apart->next] = 0;
	return result;
}

/* Ends the thread; what it could not do is returned. */
static int join_apart(struct packer *packer)
{
	struct apart *apart = packer->apart;
	if (!apart)
		return 0;
	pthread_mutex_lock(&apart->lock);
	apart->done = true;
	pthread_cond_signal(&apart->changed);
	pthread_mutex_unlock(&apart->lock);
	pthread_join(apart->thread, NULL);
	int result = apart->result;
	packer->apart = NULL;
	free_apart(apart);
	return result;
}

int packer_write(struct packer *packer, const void *bytes, size_t count)
{
	struct apart *apart = packer->apart;
	const unsigned char *from = bytes;
	if (!apart)
		return pack(packer, from, count);
	while (count > 0) {
		size_t some = BLOCK_BYTES - apart->bytes[apart->next];
		some = some < count ? some : count;
		memcpy(apart->block[apart->next] + apart->bytes[apart->next], from, some);
		apart->bytes[apart->next] += some;
		from += some;
		count -= some;
		int result = apart->bytes[apart->next] == BLOCK_BYTES ? hand_over(apart) : 0;
		if (result < 0)
			return result;
	}
	return 0;
}

int packer_finish(struct packer *packer)
{
	int result = packer->apart && packer->apart->bytes[packer->apart->next] ? hand_over(packer->apart) : 0;
	int joined = join_apart(packer);
	if (result < 0 || joined < 0)
		return result < 0 ? result : joined;
	if (packer->by == ISAL)
		return pack_isal(packer, NULL, 0, 1);
	return packer->by == ZLIB ? pack_zlib(packer, Z_FINISH) : 0;
}

uint64_t packer_file_bytes(const struct packer *packer)
{
	return packer->file_bytes;
}

void packer_free(struct packer *packer)
{
	if (!packer)
		return;
	join_apart(packer);
	if (packer->by == ZLIB)
		deflateEnd(&packer->deflate);
#ifdef REDUCER_HAVE_ISAL
	free(packer->isal_buffer);
#endif
	free(packer);
}
