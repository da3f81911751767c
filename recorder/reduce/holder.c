/* SPDX-License-Identifier: Apache-2.0 */
#include "reduce/holder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plain_text.h"

enum { PROCESSES_MAX = 1 << 17, DESCRIPTORS_MAX = 1 << 16 };

static bool is_number(const char *name)
{
	return *name && strspn(name, "0123456789") == strlen(name);
}

/* Its flags, from /proc/PID/fdinfo/N: "flags:\t0100001", in octal. */
static bool writes(int fdinfo_dirfd, const char *number)
{
	char text[256];
	int fd = openat(fdinfo_dirfd, number, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	const char *flags;

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	flags = strstr(text, "flags:");
	return flags && (strtoul(flags + 6, NULL, 8) & O_ACCMODE) != O_RDONLY;
}

/* Whether the process of this folder of /proc has the file open for writing. */
static bool process_writes(int process_dirfd, const struct stat *file)
{
	int dirfd = openat(process_dirfd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int info = openat(process_dirfd, "fdinfo", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = dirfd < 0 || info < 0 ? NULL : fdopendir(dirfd);
	const struct dirent *entry;
	struct stat st;
	bool found = false;

	for (unsigned seen = 0; folder && !found && seen < DESCRIPTORS_MAX && (entry = readdir(folder));
	     seen++)
		found = is_number(entry->d_name) && fstatat(dirfd, entry->d_name, &st, 0) == 0 &&
			st.st_ino == file->st_ino && st.st_dev == file->st_dev && writes(info, entry->d_name);
	if (folder)
		closedir(folder);
	else if (dirfd >= 0)
		close(dirfd);
	if (info >= 0)
		close(info);
	return found;
}

static void read_name(int process_dirfd, char *out, size_t room)
{
	char text[64];
	int fd = openat(process_dirfd, "comm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	plain_text(out, room, text, strcspn(text, "\n"));
}

/* Of the processes whose descriptors we may see. */
static int search(const struct stat *file, struct holder *ret_holder)
{
	int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = proc < 0 ? NULL : fdopendir(proc);
	const struct dirent *entry;
	int found = 0;

	if (!folder) {
		if (proc >= 0)
			close(proc);
		return 0;
	}
	for (unsigned seen = 0; !found && seen < PROCESSES_MAX && (entry = readdir(folder)); seen++) {
		/* A descriptor that we were started with is another's, too. */
		int dirfd = is_number(entry->d_name) && strtol(entry->d_name, NULL, 10) != getpid()
				    ? openat(proc, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
				    : -1;

		if (dirfd < 0)
			continue;
		if (process_writes(dirfd, file)) {
			ret_holder->pid = (pid_t)strtol(entry->d_name, NULL, 10);
			read_name(dirfd, ret_holder->name, sizeof(ret_holder->name));
			found = 1;
		}
		close(dirfd);
	}
	closedir(folder);
	return found;
}

int holder_find(int fd, struct holder *ret_holder)
{
	struct holder holder = {0};
	struct stat st;
	bool held = false;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (fcntl(fd, F_SETLEASE, F_RDLCK) == 0) {
		fcntl(fd, F_SETLEASE, F_UNLCK);
		return 0;
	}
	/* EAGAIN: open for writing. (Any other: leases are not for us here.) */
	held = errno == EAGAIN;
	if (search(&st, &holder) == 1)
		held = true;
	if (!held)
		return 0;
	*ret_holder = holder;
	return 1;
}

void holder_stamp(const struct stat *st, struct holder_stamp *ret_stamp)
{
	*ret_stamp = (struct holder_stamp){st->st_dev, st->st_ino, st->st_size, st->st_mtim, st->st_ctim};
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool holder_stamp_same(const struct holder_stamp *a, const struct holder_stamp *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       same_time(&a->mtime, &b->mtime) && same_time(&a->ctime, &b->ctime);
}

void holder_say(const struct holder *holder, char *out, size_t room)
{
	if (holder->pid)
		snprintf(out, room, "pid %ld (%s)", (long)holder->pid, holder->name);
	else
		snprintf(out, room,
			 "a process that cannot be seen from here (another user's or container's)");
}
