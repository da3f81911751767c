/* SPDX-License-Identifier: Apache-2.0 */
/*
 * incidents/files.h: files and folders as the store needs them. Names are relative to an open folder, so
 * nobody can swap a folder for a link on the way. Errors are -errno.
 */
#ifndef RECORDER_INCIDENTS_FILES_H
#define RECORDER_INCIDENTS_FILES_H

#include <stddef.h>
#include <stdint.h>

enum { FILES_DEPTH_MAX = 8 };

/* Writes name.tmp, fsyncs it and renames it to `name`; the folder is fsynced too. */
int files_replace(int dirfd, const char *name, const void *bytes, size_t count);
/* Appends and fsyncs. */
int files_append(int dirfd, const char *name, const void *bytes, size_t count);
/* The whole file, terminated by a 0 beyond its length; freed by the caller. -EFBIG beyond `limit`. */
int files_read(int dirfd, const char *name, size_t limit, char **ret_bytes, size_t *ret_count);
/* A file's length and CRC32 (zlib's polynomial), read back. */
int files_crc(int dirfd, const char *name, uint64_t *ret_bytes, uint32_t *ret_crc);
/* Makes a folder (0700) if it is not there, and opens it. */
int files_folder(int dirfd, const char *name, int *ret_fd);
/* Copies what is left of `from` to `to`; not fsynced. */
int files_copy(int from, int to);
/* Hard-links a file, or copies it where that cannot be. */
int files_link(int from_dirfd, const char *from, int to_dirfd, const char *to);
/* Removes a file or a folder with all that is in it. 0 if there is none. */
int files_remove(int dirfd, const char *name);
/* Bytes that a folder takes on disk. */
int files_tree_bytes(int dirfd, const char *name, uint64_t *ret_bytes);
int files_sync_folder(int dirfd);

/* Calls fn for every entry but "." and ".."; a non-zero return ends it. */
typedef int files_each_fn(void *context, int dirfd, const char *name);
int files_each(int dirfd, const char *name, files_each_fn *fn, void *context);

#endif
