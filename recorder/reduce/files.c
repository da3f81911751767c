/* SPDX-License-Identifier: Apache-2.0 */
#include "reduce/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

static bool ends_with(const char *name, const char *ending)
{
	size_t bytes = strlen(name), tail = strlen(ending);

	return bytes >= tail && strcmp(name + bytes - tail, ending) == 0;
}

bool reduce_files_is_trace_name(const char *name)
{
	static const char *const endings[] = {".json", ".json.gz", ".json.zst", ".xplane.pb"};

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
		if (ends_with(name, endings[i]))
			return name[0] != '.';
	return false;
}

bool reduce_files_is_output_name(const char *name)
{
	static const char *const endings[] = {".reduced.json", ".reduced.json.gz", ".reduced.xplane.pb",
					      ".reduced.pftrace"};

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
		if (ends_with(name, endings[i]))
			return true;
	return false;
}

static int append(struct reduce_files *files, const char *path, size_t relative, bool from_folder,
		  uint64_t bytes)
{
	if (files->count == REDUCE_FILES_MAX)
		return -E2BIG;
	if (files->count == files->room) {
		size_t room = files->room ? files->room * 2 : 64;
		struct reduce_file *file = realloc(files->file, room * sizeof(*file));

		if (!file)
			return -ENOMEM;
		files->file = file;
		files->room = room;
	}
	char *copy = strdup(path);

	if (!copy)
		return -ENOMEM;
	files->file[files->count++] = (struct reduce_file){copy, relative, from_folder, bytes};
	return 0;
}

static void note_error(struct reduce_files *files, const char *path, int error)
{
	if (files->errors++ > 0)
		return;
	files->error = error;
	snprintf(files->error_path, sizeof(files->error_path), "%s", path);
}

/* Where we are, in a path that grows and shrinks with the depth. */
struct walk {
	struct reduce_files *files;
	char path[PATH_BYTES];
	size_t relative;
};

static int walk_folder(struct walk *walk, int dirfd, unsigned depth);

static int walk_entry(struct walk *walk, int dirfd, const char *name, unsigned depth)
{
	size_t bytes = strlen(walk->path);
	struct stat st;
	int r = 0;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0; /* gone meanwhile */
	if ((size_t)snprintf(walk->path + bytes, sizeof(walk->path) - bytes, "/%s", name) >=
	    sizeof(walk->path) - bytes) {
		walk->path[bytes] = 0;
		note_error(walk->files, walk->path, -ENAMETOOLONG);
		return 0;
	}
	if (S_ISDIR(st.st_mode) && depth == REDUCE_DEPTH_MAX) {
		note_error(walk->files, walk->path, -ELOOP);
	} else if (S_ISDIR(st.st_mode)) {
		int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

		if (fd < 0)
			note_error(walk->files, walk->path, -errno);
		else
			r = walk_folder(walk, fd, depth + 1);
	} else if (S_ISREG(st.st_mode) && reduce_files_is_trace_name(name) &&
		   !reduce_files_is_output_name(name)) {
		r = append(walk->files, walk->path, walk->relative, true, (uint64_t)st.st_size);
	}
	walk->path[bytes] = 0;
	return r;
}

/* Takes `dirfd`. */
static int walk_folder(struct walk *walk, int dirfd, unsigned depth)
{
	DIR *folder = fdopendir(dirfd);
	const struct dirent *entry;
	int r = 0;

	if (!folder) {
		close(dirfd);
		return -ENOMEM;
	}
	while (r == 0 && (entry = readdir(folder))) {
		if (entry->d_name[0] == '.')
			continue;
		if (walk->files->entries++ == REDUCE_ENTRIES_MAX)
			r = -E2BIG;
		else
			r = walk_entry(walk, dirfd, entry->d_name, depth);
	}
	closedir(folder);
	return r;
}

static int by_path(const void *a, const void *b)
{
	const struct reduce_file *left = a, *right = b;

	return strcmp(left->path, right->path);
}

static int add_folder(struct reduce_files *files, const char *path)
{
	struct walk walk = {.files = files};
	size_t bytes = strlen(path), first = files->count;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	while (bytes > 1 && path[bytes - 1] == '/')
		bytes--;
	if (bytes >= sizeof(walk.path)) {
		close(fd);
		return -ENAMETOOLONG;
	}
	if (!(bytes == 1 && path[0] == '/'))
		memcpy(walk.path, path, bytes);
	walk.relative = strlen(walk.path) + 1;
	r = walk_folder(&walk, fd, 0);
	if (files->count > first)
		qsort(files->file + first, files->count - first, sizeof(*files->file), by_path);
	return r;
}

int reduce_files_add(struct reduce_files *files, const char *path)
{
	const char *slash = strrchr(path, '/');
	struct stat st;

	/* One that is not there is told of in its turn. */
	if (stat(path, &st) < 0)
		st = (struct stat){0};
	if (S_ISDIR(st.st_mode))
		return add_folder(files, path);
	return append(files, path, slash ? (size_t)(slash + 1 - path) : 0, false,
		      S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0);
}

void reduce_files_free(struct reduce_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		free(files->file[i].path);
	free(files->file);
	*files = (struct reduce_files){0};
}
