/* SPDX-License-Identifier: Apache-2.0 */
#include "paths.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES = 16 };

char *paths_join(const char *a, const char *b)
{
	char *path = NULL;
	size_t length = strlen(a);
	const char *slash = length && a[length - 1] == '/' ? "" : "/";
	return asprintf(&path, "%s%s%s", a, slash, b) < 0 ? NULL : path;
}

static const char *home_folder(void)
{
	const char *home = getenv("HOME");
	if (home && *home)
		return home;
	const struct passwd *user = getpwuid(getuid());
	return user ? user->pw_dir : NULL;
}

char *paths_expand(const char *path)
{
	if (path[0] != '~' || (path[1] && path[1] != '/'))
		return strdup(path);
	const char *home = home_folder();
	if (!home)
		return NULL;
	return path[1] ? paths_join(home, path + 2) : strdup(home);
}

char *paths_default_store(void)
{
	const char *state = getenv("XDG_STATE_HOME");
	/* The XDG rules say to ignore a relative one. */
	return state && *state == '/' ? paths_join(state, "driverec")
				      : paths_expand("~/.local/state/driverec");
}

static int make_one(const char *path, mode_t mode)
{
	struct stat st;
	if (mkdir(path, mode) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	if (stat(path, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int paths_make_folder(const char *path, mode_t mode)
{
	char *copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	int result = *path ? 0 : -ENOENT;
	for (char *slash = copy; result == 0 && (slash = strchr(slash + 1, '/'));) {
		*slash = 0;
		/* Above may be unreadable or read-only, as long as it is there: the last one decides. */
		result = make_one(copy, mode);
		if (result == -EACCES || result == -EROFS)
			result = 0;
		*slash = '/';
	}
	if (result == 0)
		result = make_one(copy, mode);
	free(copy);
	return result;
}

static int write_all(int fd, const char *bytes, size_t count)
{
	while (count) {
		ssize_t done = write(fd, bytes, count);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		bytes += done;
		count -= (size_t)done;
	}
	return 0;
}

/* A new file ".tmp-<random>"; its name in `name`, of 32 bytes. */
static int open_temporary(int dirfd, mode_t mode, char *name)
{
	for (int i = 0; i < TRIES; i++) {
		uint64_t random;
		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			return -errno;
		snprintf(name, 32, ".tmp-%016llx", (unsigned long long)random);
		int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

/* fsync of a folder that may be AT_FDCWD or opened with O_PATH. */
static int sync_folder(int dirfd)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int result = fsync(fd) < 0 ? -errno : 0;
	close(fd);
	return result;
}

int paths_write_file(int dirfd, const char *name, const void *bytes, size_t count, mode_t mode)
{
	char temporary[32];
	int fd = open_temporary(dirfd, mode, temporary);
	if (fd < 0)
		return fd;
	int result = write_all(fd, bytes, count);
	if (result == 0 && fsync(fd) < 0)
		result = -errno;
	if (close(fd) < 0 && result == 0)
		result = -errno;
	if (result == 0 && renameat(dirfd, temporary, dirfd, name) < 0)
		result = -errno;
	if (result < 0) {
		unlinkat(dirfd, temporary, 0);
		return result;
	}
	return sync_folder(dirfd);
}

static int read_all(int fd, size_t most, char **ret_bytes, size_t *ret_count)
{
	size_t room = 4096, count = 0;
	char *bytes = NULL;
	int result = -ENOMEM;
	for (;;) {
		char *grown = realloc(bytes, room + 1);
		if (!grown)
			break;
		bytes = grown;
		ssize_t got = read(fd, bytes + count, room - count);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			result = -errno;
			break;
		}
		count += (size_t)got;
		if (count > most) {
			result = -EFBIG;
			break;
		}
		if (got == 0) {
			bytes[count] = 0;
			*ret_bytes = bytes;
			*ret_count = count;
			return 0;
		}
		if (count == room)
			room *= 2;
	}
	free(bytes);
	return result;
}

int paths_read_file(int dirfd, const char *name, size_t most, char **ret_bytes, size_t *ret_count)
{
	int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int result = read_all(fd, most, ret_bytes, ret_count);
	close(fd);
	return result;
}
