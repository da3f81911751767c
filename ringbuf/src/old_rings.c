/* SPDX-License-Identifier: Apache-2.0 */
#include "old_rings.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ring.h"

enum { KEEP = 2, ENTRIES_MAX = 4096, CANDIDATES_MAX = 64, FILE_NAME_MAX = 160 };

struct candidate {
	char file[FILE_NAME_MAX];
	int64_t created_ns;
};

/* Closing any descriptor of a file drops the process's own lock on it: its rings must not even be opened. */
static bool is_own(ino_t inode)
{
	for (const struct drec *rec = recorders_first(); rec; rec = rec->next)
		if (rec->inode == inode && load_relaxed(rec->live))
			return true;
	return false;
}

static bool is_dead_ring(int dirfd, const char *file, const char *job, const char *name, int64_t *ret_created_ns)
{
	struct drec_header header;
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
	bool dead = false;
	int fd = openat(dirfd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return false;
	if (pread(fd, &header, sizeof(header), 0) == sizeof(header) &&
	    memcmp(header.magic, DREC_MAGIC, sizeof(header.magic)) == 0 &&
	    strncmp(header.job, job, sizeof(header.job)) == 0 &&
	    strncmp(header.name, name, sizeof(header.name)) == 0 && header.uid == geteuid() &&
	    fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK) {
		*ret_created_ns = header.created_real_ns;
		dead = true;
	}
	close(fd);
	return dead;
}

/* Keeps the newest KEEP of the candidates: unlinks the oldest while there are more. */
static void unlink_oldest(int dirfd, struct candidate *list, unsigned *count)
{
	while (*count > KEEP) {
		unsigned oldest = 0;
		for (unsigned i = 1; i < *count; i++)
			if (list[i].created_ns < list[oldest].created_ns)
				oldest = i;
		unlinkat(dirfd, list[oldest].file, 0);
		list[oldest] = list[--*count];
	}
}

static bool has_prefix(const char *file, const char *name)
{
	size_t bytes = strlen(name);
	return strncmp(file, name, bytes) == 0 && file[bytes] == '.' && strlen(file) < FILE_NAME_MAX;
}

uint64_t old_rings_clean(int dirfd, const char *job, const char *name)
{
	static const char suffix[] = ".ring";
	struct candidate list[CANDIDATES_MAX];
	unsigned count = 0;
	uint64_t bytes = 0;
	int copy = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = copy < 0 ? NULL : fdopendir(copy);
	if (!folder) {
		if (copy >= 0)
			close(copy);
		return 0;
	}
	const struct dirent *entry;
	for (unsigned seen = 0; seen < ENTRIES_MAX && (entry = readdir(folder)) != NULL; seen++) {
		struct stat st;
		size_t length = strlen(entry->d_name);
		if (length <= sizeof(suffix) - 1 || strcmp(entry->d_name + length - 5, suffix) != 0 ||
		    fstatat(dirfd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
			continue;
		bytes += (uint64_t)st.st_blocks * 512;
		int64_t created_ns;
		if (is_own(st.st_ino) || !has_prefix(entry->d_name, name) || count == CANDIDATES_MAX ||
		    !is_dead_ring(dirfd, entry->d_name, job, name, &created_ns))
			continue;
		snprintf(list[count].file, sizeof(list[count].file), "%.*s", FILE_NAME_MAX - 1, entry->d_name);
		list[count++].created_ns = created_ns;
	}
	closedir(folder);
	unlink_oldest(dirfd, list, &count);
	return bytes;
}
