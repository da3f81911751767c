/* SPDX-License-Identifier: Apache-2.0 */
#include "room.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { FREE_SHARE = 8, HEADROOM_SHARE = 4, FOLDER_SHARE = 4, LEVELS_MAX = 32 };

static size_t read_text(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t count = read(fd, text, room - 1);
	close(fd);
	text[count > 0 ? count : 0] = 0;
	return count > 0 ? (size_t)count : 0;
}

/* UINT64_MAX for "max" and for what is no number. */
static uint64_t read_number(const char *folder, const char *file)
{
	char path[700], text[32];
	uint64_t value = 0;
	snprintf(path, sizeof(path), "%s/%s", folder, file);
	if (read_text(path, text, sizeof(text)) == 0 || text[0] < '0' || text[0] > '9')
		return UINT64_MAX;
	for (const char *c = text; *c >= '0' && *c <= '9'; c++) {
		if (value > UINT64_MAX / 10 - 1)
			return UINT64_MAX;
		value = value * 10 + (uint64_t)(*c - '0');
	}
	return value;
}

static uint64_t group_headroom(const char *folder, const char *limit_file, const char *usage_file)
{
	uint64_t limit = read_number(folder, limit_file), usage = read_number(folder, usage_file);
	if (limit == UINT64_MAX || usage == UINT64_MAX)
		return UINT64_MAX;
	return limit > usage ? limit - usage : 0;
}

/* The least headroom of a group and those above it, up to `root` (its first root_bytes characters). */
static uint64_t tree_headroom(char *folder, size_t root_bytes, const char *limit_file, const char *usage_file)
{
	uint64_t least = UINT64_MAX;
	for (int level = 0; level < LEVELS_MAX; level++) {
		uint64_t room = group_headroom(folder, limit_file, usage_file);
		if (room < least)
			least = room;
		char *slash = strrchr(folder, '/');
		if (!slash || strlen(folder) <= root_bytes)
			break;
		*slash = 0;
	}
	return least;
}

/* One line of /proc/self/cgroup: "0::/path" (v2) or "5:memory:/path" (v1). */
static uint64_t line_headroom(const char *line)
{
	static const char v1[] = "/sys/fs/cgroup/memory", v2[] = "/sys/fs/cgroup";
	char folder[600];
	const char *controllers = strchr(line, ':');
	const char *path = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!path)
		return UINT64_MAX;
	if (strncmp(line, "0::", 3) == 0) {
		snprintf(folder, sizeof(folder), "%s%s", v2, path[1] == '/' && path[2] == 0 ? "" : path + 1);
		return tree_headroom(folder, sizeof(v2) - 1, "memory.max", "memory.current");
	}
	const char *memory = strstr(controllers, "memory");
	if (!memory || memory > path)
		return UINT64_MAX;
	snprintf(folder, sizeof(folder), "%s%s", v1, path[1] == '/' && path[2] == 0 ? "" : path + 1);
	uint64_t own = tree_headroom(folder, sizeof(v1) - 1, "memory.limit_in_bytes", "memory.usage_in_bytes");
	/* In a container the group's own path is not visible; its files then are at the root. */
	snprintf(folder, sizeof(folder), "%s", v1);
	uint64_t root = group_headroom(folder, "memory.limit_in_bytes", "memory.usage_in_bytes");
	return own < root ? own : root;
}

uint64_t room_cgroup_headroom(void)
{
	char text[8192];
	uint64_t least = UINT64_MAX;
	if (read_text("/proc/self/cgroup", text, sizeof(text)) == 0)
		return UINT64_MAX;
	for (char *line = text, *next; line && *line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		uint64_t room = line_headroom(line);
		if (room < least)
			least = room;
	}
	return least;
}

uint64_t room_for_ring(int dirfd, uint64_t rings_bytes)
{
	struct statvfs fs;
	if (fstatvfs(dirfd, &fs) < 0)
		return 0;
	uint64_t unit = fs.f_frsize ? fs.f_frsize : fs.f_bsize;
	uint64_t room = (uint64_t)fs.f_bavail * unit / FREE_SHARE;
	uint64_t folder = (uint64_t)fs.f_blocks * unit / FOLDER_SHARE;
	uint64_t headroom = room_cgroup_headroom();
	folder = folder > rings_bytes ? folder - rings_bytes : 0;
	if (folder < room)
		room = folder;
	if (headroom != UINT64_MAX && headroom / HEADROOM_SHARE < room)
		room = headroom / HEADROOM_SHARE;
	return room;
}
