/* SPDX-License-Identifier: Apache-2.0 */
/*
 * paths.h: where things are, and files that are either whole or not there.
 *
 * Errors are -errno.
 */
#ifndef RECORDER_PATHS_H
#define RECORDER_PATHS_H

#include <stddef.h>
#include <sys/types.h>

/* "~" and "~/…" by $HOME, else the password file; others as they are. The caller frees. NULL: no home, or
 * out of memory. */
char *paths_expand(const char *path);

/* $XDG_STATE_HOME/driverec, else ~/.local/state/driverec. The caller frees. */
char *paths_default_store(void);

/* "A/B", allocated. */
char *paths_join(const char *a, const char *b);

/* Makes the folder and what is missing above it. A folder that is there is fine, whatever its mode. */
int paths_make_folder(const char *path, mode_t mode);

/*
 * Replaces dirfd/name by these bytes: temporary file, fsync, rename, fsync of the folder. The old file stays
 * untouched up to the rename; a temporary file that a crash left over is ".tmp-" and a random text.
 */
int paths_write_file(int dirfd, const char *name, const void *bytes, size_t count, mode_t mode);

/* Reads a whole file of at most `most` bytes; -EFBIG beyond. Terminated by a 0 that is not counted. */
int paths_read_file(int dirfd, const char *name, size_t most, char **ret_bytes, size_t *ret_count);

#endif
