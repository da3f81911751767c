/* SPDX-License-Identifier: Apache-2.0 */
#include "reduce/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "incidents/files.h"
#include "reduce/cleanup.h"
#include "reduce/point.h"

enum { PATH_BYTES = 4096, ATTRIBUTES_BYTES_MAX = 1 << 16 };

/* The folder of `path`, and the name in it. */
static int open_folder(const char *path, struct reduce_place *place)
{
	char folder[PATH_BYTES];
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	if (strlen(path) >= sizeof(folder) || strlen(name) >= sizeof(place->name))
		return -ENAMETOOLONG;
	if (!*name)
		return -EISDIR;
	strcpy(place->name, name);
	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
	place->dirfd = open(*folder ? folder : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return place->dirfd < 0 ? -errno : 0;
}

/* A leftover of this name is impossible: its token is in no other lock. */
static int make_tmp(struct reduce_place *place)
{
	int r = 0;

	reduce_lock_tmp_name(place->name, place->lock.token, place->tmp);
	cleanup_block();
	place->fd =
		openat(place->dirfd, place->tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (place->fd < 0)
		r = -errno;
	else
		cleanup_add(CLEANUP_TMP, place->dirfd, place->tmp);
	cleanup_unblock();
	return r;
}

/* A rename would replace a device, a pipe or a link itself. */
static int check_old(const struct reduce_place *place, bool replace)
{
	struct stat st;

	if (fstatat(place->dirfd, place->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -ENXIO;
	return replace ? 0 : -EEXIST;
}

int reduce_place_open(const char *path, bool replace, bool break_lock, struct reduce_place *ret_place,
		      struct reduce_lock_owner *ret_owner)
{
	struct reduce_place place = REDUCE_PLACE_NONE;
	int r = open_folder(path, &place);

	if (r < 0)
		return r;
	/* Before there is a lock as well: none is made in a folder of devices. */
	r = check_old(&place, true);
	if (r == 0)
		r = reduce_lock_take(place.dirfd, place.name, break_lock, &place.lock, ret_owner);
	if (r < 0)
		goto end;
	REDUCE_POINT(lock_made);
	r = check_old(&place, replace);
	if (r == 0)
		r = make_tmp(&place);
	if (r < 0)
		goto end;
	REDUCE_POINT(tmp_made);
	*ret_place = place;
end:
	if (r < 0)
		reduce_place_close(&place);
	return r;
}

/* One attribute; what the new file cannot have, it does not get. */
static void copy_attribute(int from, int to, const char *name, char *value)
{
	ssize_t bytes = fgetxattr(from, name, value, ATTRIBUTES_BYTES_MAX);

	if (bytes >= 0 && fsetxattr(to, name, value, (size_t)bytes, 0) < 0)
		errno = 0;
}

static int copy_attributes(int from, int to)
{
	char *names = malloc(2 * ATTRIBUTES_BYTES_MAX);
	ssize_t bytes = names ? flistxattr(from, names, ATTRIBUTES_BYTES_MAX) : 0;

	if (!names)
		return -ENOMEM;
	for (const char *name = names; bytes > 0 && name < names + bytes; name += strlen(name) + 1)
		copy_attribute(from, to, name, names + ATTRIBUTES_BYTES_MAX);
	free(names);
	return 0;
}

int reduce_place_look_like(struct reduce_place *place, int old_fd, const struct stat *old, bool strict)
{
	struct stat st;
	int r;

	if (fstat(place->fd, &st) < 0)
		return -errno;
	if (st.st_uid != old->st_uid && fchown(place->fd, old->st_uid, (gid_t)-1) < 0 && strict)
		return -EPERM;
	if (st.st_gid != old->st_gid && fchown(place->fd, (uid_t)-1, old->st_gid) < 0 && strict)
		return -EPERM;
	r = strict ? copy_attributes(old_fd, place->fd) : 0;
	if (r < 0)
		return r;
	/* After the owner, whose change takes bits away; not at all where all files have one mode anyway
	 * (SMB, FAT). */
	if (fstat(place->fd, &st) < 0)
		return -errno;
	if (st.st_mode != old->st_mode && fchmod(place->fd, old->st_mode & (strict ? 07777u : 0666u)) < 0 &&
	    strict)
		return -EPERM;
	if (!strict)
		return 0;
	if (fstat(place->fd, &st) < 0 || (st.st_mode & 0777) != (old->st_mode & 0777))
		return -EPERM;
	futimens(place->fd, (const struct timespec[]){old->st_atim, old->st_mtim});
	return 0;
}

void reduce_place_look_new(struct reduce_place *place)
{
	mode_t mask = umask(0);

	umask(mask);
	/* Where files have one mode anyway, it is that. */
	(void)!fchmod(place->fd, 0666 & ~mask);
}

int reduce_place_sync(struct reduce_place *place)
{
	if (fsync(place->fd) < 0)
		return -errno;
	posix_fadvise(place->fd, 0, 0, POSIX_FADV_DONTNEED);
	REDUCE_POINT(fsynced);
	return 0;
}

/* Where nothing may be replaced the rename itself must see to it, if the file system knows how. */
static int move(struct reduce_place *place, bool replace)
{
	struct stat st;

	if (replace)
		return renameat(place->dirfd, place->tmp, place->dirfd, place->name) < 0 ? -errno : 0;
	if (renameat2(place->dirfd, place->tmp, place->dirfd, place->name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (fstatat(place->dirfd, place->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	return renameat(place->dirfd, place->tmp, place->dirfd, place->name) < 0 ? -errno : 0;
}

int reduce_place_commit(struct reduce_place *place, bool replace)
{
	int r;

	REDUCE_POINT(before_rename);
	if (!reduce_lock_held(&place->lock))
		return -ESTALE;
	cleanup_block();
	r = move(place, replace);
	if (r == 0) {
		cleanup_remove(CLEANUP_TMP);
		place->tmp[0] = 0;
	}
	cleanup_unblock();
	if (r < 0)
		return r;
	REDUCE_POINT(after_rename);
	r = files_sync_folder(place->dirfd);
	REDUCE_POINT(folder_synced);
	return r;
}

void reduce_place_close(struct reduce_place *place)
{
	bool was_locked = place->lock.fd >= 0;

	cleanup_block();
	if (place->fd >= 0 && place->tmp[0])
		unlinkat(place->dirfd, place->tmp, 0);
	cleanup_remove(CLEANUP_TMP);
	cleanup_unblock();
	reduce_lock_release(&place->lock);
	if (was_locked)
		REDUCE_POINT(lock_removed);
	if (place->fd >= 0)
		close(place->fd);
	if (place->dirfd >= 0)
		close(place->dirfd);
	*place = (struct reduce_place)REDUCE_PLACE_NONE;
}
