/* SPDX-License-Identifier: Apache-2.0 */
#include "discovery.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { STALE_SECONDS = 60, NAMES_A_SCAN_MAX = 65536 };

struct discovery {
	int folder_fd, inotify_fd;
	discovery_found_fn *found;
	void *context;
};

int discovery_is_ring(const char *name)
{
	size_t length = strlen(name);
	return name[0] != '.' && length > 5 && strcmp(name + length - 5, ".ring") == 0;
}

int discovery_new(const char *rings_path, discovery_found_fn *found, void *context, struct discovery **ret_discovery)
{
	int result;
	struct discovery *discovery = calloc(1, sizeof(*discovery));
	if (!discovery)
		return -ENOMEM;
	discovery->found = found;
	discovery->context = context;
	discovery->inotify_fd = -1;
	discovery->folder_fd = open(rings_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (discovery->folder_fd < 0)
		goto fail;
	discovery->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (discovery->inotify_fd < 0 ||
	    inotify_add_watch(discovery->inotify_fd, rings_path, IN_MOVED_TO | IN_CREATE | IN_ONLYDIR) < 0)
		goto fail;
	*ret_discovery = discovery;
	return 0;
fail:
	result = -errno;
	discovery_free(discovery);
	return result;
}

void discovery_free(struct discovery *discovery)
{
	if (!discovery)
		return;
	if (discovery->inotify_fd >= 0)
		close(discovery->inotify_fd);
	if (discovery->folder_fd >= 0)
		close(discovery->folder_fd);
	free(discovery);
}

int discovery_fd(const struct discovery *discovery)
{
	return discovery->inotify_fd;
}

int discovery_folder_fd(const struct discovery *discovery)
{
	return discovery->folder_fd;
}

/* A file that its maker did not live to rename. Its lock is held for as long as it is being made. */
static void remove_stale(const struct discovery *discovery, const char *name)
{
	struct stat st;
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	int fd = openat(discovery->folder_fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && time(NULL) - st.st_mtime > STALE_SECONDS &&
	    fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK)
		unlinkat(discovery->folder_fd, name, 0);
	close(fd);
}

void discovery_rescan(struct discovery *discovery)
{
	/* A descriptor of its own, since folders are read at the descriptor's position. */
	int fd = openat(discovery->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
	if (!folder) {
		if (fd >= 0)
			close(fd);
		return;
	}
	const struct dirent *entry;
	for (unsigned n = 0; n < NAMES_A_SCAN_MAX && (entry = readdir(folder)); n++) {
		if (discovery_is_ring(entry->d_name))
			discovery->found(discovery->context, entry->d_name);
		else if (strncmp(entry->d_name, ".tmp-", 5) == 0)
			remove_stale(discovery, entry->d_name);
	}
	closedir(folder);
}

void discovery_read(struct discovery *discovery)
{
	_Alignas(struct inotify_event) char buffer[4096];
	int overflowed = 0;
	for (;;) {
		ssize_t got = read(discovery->inotify_fd, buffer, sizeof(buffer));
		if (got <= 0)
			break;
		for (ssize_t at = 0; at < got;) {
			const struct inotify_event *event = (const void *)(buffer + at);
			at += (ssize_t)(sizeof(*event) + event->len);
			if (event->mask & IN_Q_OVERFLOW)
				overflowed = 1;
			else if (event->len > 0 && discovery_is_ring(event->name))
				discovery->found(discovery->context, event->name);
		}
	}
	if (overflowed)
		discovery_rescan(discovery);
}
