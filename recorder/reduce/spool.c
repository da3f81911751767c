/* SPDX-License-Identifier: Apache-2.0 */
#include "reduce/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 18, PATH_BYTES = 4096 };

const char *reduce_spool_folder(void)
{
	const char *folder = getenv("TMPDIR");

	return folder && *folder ? folder : "/tmp";
}

int reduce_spool_new(void)
{
	char path[PATH_BYTES];
	int fd = open(reduce_spool_folder(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	if ((size_t)snprintf(path, sizeof(path), "%s/.driverec-XXXXXX", reduce_spool_folder()) >=
	    sizeof(path))
		return -ENAMETOOLONG;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

static int write_all(int fd, const char *bytes, size_t count)
{
	while (count > 0) {
		ssize_t n = write(fd, bytes, count);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		bytes += n;
		count -= (size_t)n;
	}
	return 0;
}

static int copy(int from, int to, uint64_t most, uint64_t *ret_bytes)
{
	char *piece = malloc(PIECE_BYTES);
	uint64_t bytes = 0;
	int r = piece ? 0 : -ENOMEM;

	while (r == 0) {
		ssize_t n = read(from, piece, PIECE_BYTES);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			r = n < 0 ? -errno : 0;
			break;
		}
		r = (uint64_t)n > most - bytes ? -ENOSPC : write_all(to, piece, (size_t)n);
		bytes += r == 0 ? (uint64_t)n : 0;
	}
	free(piece);
	*ret_bytes = bytes;
	return r;
}

int reduce_spool_pipe(int from, int *ret_fd, uint64_t *ret_bytes)
{
	struct statvfs room;
	int fd = reduce_spool_new();
	int r;

	if (fd < 0)
		return fd;
	if (fstatvfs(fd, &room) < 0)
		r = -errno;
	else
		r = copy(from, fd, (uint64_t)room.f_bavail * room.f_frsize / 2, ret_bytes);
	if (r < 0)
		close(fd);
	else
		*ret_fd = fd;
	return r;
}
