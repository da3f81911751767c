/* SPDX-License-Identifier: Apache-2.0 */
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

enum { COPY_BYTES = 1 << 16, NAME_BYTES = 512 };

static int write_all(int fd, const void *bytes, size_t count)
{
	const char *next = bytes;

	while (count > 0) {
		ssize_t n = write(fd, next, count);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		next += n;
		count -= (size_t)n;
	}
	return 0;
}

int files_sync_folder(int dirfd)
{
	/* Some network file systems have nothing to sync in a folder and say EINVAL. */
	if (fsync(dirfd) < 0 && errno != EINVAL)
		return -errno;
	return 0;
}

static int write_new(int dirfd, const char *name, int flags, const void *bytes, size_t count)
{
	int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
	int r;

	if (fd < 0)
		return -errno;
	r = write_all(fd, bytes, count);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (close(fd) < 0 && r == 0)
		r = -errno;
	return r;
}

int files_replace(int dirfd, const char *name, const void *bytes, size_t count)
{
	char tmp[NAME_BYTES];
	int r;

	if ((size_t)snprintf(tmp, sizeof(tmp), "%s.tmp", name) >= sizeof(tmp))
		return -ENAMETOOLONG;
	r = write_new(dirfd, tmp, O_TRUNC, bytes, count);
	if (r == 0 && renameat(dirfd, tmp, dirfd, name) < 0)
		r = -errno;
	if (r < 0) {
		unlinkat(dirfd, tmp, 0);
		return r;
	}
	return files_sync_folder(dirfd);
}

int files_append(int dirfd, const char *name, const void *bytes, size_t count)
{
	return write_new(dirfd, name, O_APPEND, bytes, count);
}

static int read_all(int fd, char *bytes, size_t count)
{
	size_t have = 0;

	while (have < count) {
		ssize_t n = read(fd, bytes + have, count - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		have += (size_t)n;
	}
	return 0;
}

int files_read(int dirfd, const char *name, size_t limit, char **ret_bytes, size_t *ret_count)
{
	int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	char *bytes = NULL;
	struct stat st;
	int r;

	if (fd < 0)
		return -errno;
	r = fstat(fd, &st) < 0 ? -errno : 0;
	if (r == 0 && !S_ISREG(st.st_mode))
		r = -EBADMSG;
	if (r == 0 && (uint64_t)st.st_size > limit)
		r = -EFBIG;
	if (r < 0)
		goto end;
	bytes = malloc((size_t)st.st_size + 1);
	r = bytes ? read_all(fd, bytes, (size_t)st.st_size) : -ENOMEM;
	if (r < 0)
		goto end;
	bytes[st.st_size] = 0;
	*ret_bytes = bytes;
	*ret_count = (size_t)st.st_size;
	bytes = NULL;
end:
	free(bytes);
	close(fd);
	return r;
}

int files_crc(int dirfd, const char *name, uint64_t *ret_bytes, uint32_t *ret_crc)
{
	int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	unsigned char *buffer = malloc(COPY_BYTES);
	uint64_t bytes = 0;
	uLong crc = crc32(0, NULL, 0);
	int r = 0;

	if (fd < 0 || !buffer)
		r = fd < 0 ? -errno : -ENOMEM;
	while (r == 0) {
		ssize_t n = read(fd, buffer, COPY_BYTES);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			r = -errno;
		if (n <= 0)
			break;
		crc = crc32(crc, buffer, (uInt)n);
		bytes += (uint64_t)n;
	}
	if (r == 0) {
		*ret_bytes = bytes;
		*ret_crc = (uint32_t)crc;
	}
	free(buffer);
	if (fd >= 0)
		close(fd);
	return r;
}

int files_folder(int dirfd, const char *name, int *ret_fd)
{
	int fd;

	if (mkdirat(dirfd, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int files_copy(int from, int to)
{
	char *buffer = malloc(COPY_BYTES);
	int r = buffer ? 0 : -ENOMEM;

	while (r == 0) {
		ssize_t n = read(from, buffer, COPY_BYTES);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			r = -errno;
		if (n <= 0)
			break;
		r = write_all(to, buffer, (size_t)n);
	}
	free(buffer);
	return r;
}

int files_link(int from_dirfd, const char *from, int to_dirfd, const char *to)
{
	int in, out, r;

	if (linkat(from_dirfd, from, to_dirfd, to, 0) == 0)
		return 0;
	in = openat(from_dirfd, from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (in < 0)
		return -errno;
	out = openat(to_dirfd, to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	r = out < 0 ? -errno : files_copy(in, out);
	if (r == 0 && fsync(out) < 0)
		r = -errno;
	if (out >= 0 && close(out) < 0 && r == 0)
		r = -errno;
	if (out >= 0 && r < 0)
		unlinkat(to_dirfd, to, 0);
	close(in);
	return r;
}

int files_each(int dirfd, const char *name, files_each_fn *fn, void *context)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct dirent *entry;
	DIR *dir;
	int r = 0;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		r = -errno;
		close(fd);
		return r;
	}
	while (r == 0 && (errno = 0, entry = readdir(dir)) != NULL) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = fn(context, fd, entry->d_name);
	}
	if (r == 0 && errno)
		r = -errno;
	closedir(dir);
	return r;
}

static int remove_entry(void *context, int dirfd, const char *name)
{
	unsigned *depth = context;
	unsigned below = *depth + 1;
	int r;

	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (*depth >= FILES_DEPTH_MAX)
		return -ELOOP;
	r = files_each(dirfd, name, remove_entry, &below);
	if (r == 0 && unlinkat(dirfd, name, AT_REMOVEDIR) < 0)
		r = -errno;
	return r;
}

int files_remove(int dirfd, const char *name)
{
	unsigned depth = 0;

	return remove_entry(&depth, dirfd, name);
}

struct tree_walk {
	unsigned depth;
	uint64_t bytes;
};

static int tree_entry(void *context, int dirfd, const char *name)
{
	struct tree_walk *walk = context;
	struct stat st;
	int r = 0;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	walk->bytes += (uint64_t)st.st_blocks * 512;
	if (S_ISDIR(st.st_mode) && walk->depth < FILES_DEPTH_MAX) {
		walk->depth++;
		r = files_each(dirfd, name, tree_entry, walk);
		walk->depth--;
	}
	return r;
}

int files_tree_bytes(int dirfd, const char *name, uint64_t *ret_bytes)
{
	struct tree_walk walk = {0};
	int r = tree_entry(&walk, dirfd, name);

	if (r == 0)
		*ret_bytes = walk.bytes;
	return r;
}
