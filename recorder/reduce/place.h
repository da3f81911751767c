/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce/place.h: a file that appears whole, or not at all.
 *
 * Written under a hidden name beside its place, under a lock (lock.h); synced, renamed, the folder synced.
 * The old file, if there is one, is untouched until the rename. Killed at any point, the next run removes
 * what was left: the lock names the temporary file.
 *
 * Errors are -errno.
 */
#ifndef RECORDER_REDUCE_PLACE_H
#define RECORDER_REDUCE_PLACE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "reduce/lock.h"

struct reduce_place {
	int dirfd;
	int fd; /* of the temporary file, for reading and writing */
	char name[REDUCE_NAME_MAX];
	char tmp[REDUCE_NAME_MAX];
	struct reduce_lock lock;
};

/*
 * Locks the place and makes the temporary file. -EBUSY: locked by *ret_owner. -EEXIST: there is a file
 * already and not `replace`; -ENXIO: what is there is a link, a device or the like.
 */
int reduce_place_open(const char *path, bool replace, bool break_lock, struct reduce_place *ret_place,
		      struct reduce_lock_owner *ret_owner);

/*
 * Gives the written file the mode, owner and group of another, as far as that is permitted. `strict` (in
 * place): -EPERM where it is not, and it gets the time of change and the extended attributes (access lists
 * among them) as well: the time says when the trace was taken, and what removes old traces goes by it.
 */
int reduce_place_look_like(struct reduce_place *place, int old_fd, const struct stat *old, bool strict);

/* The mode of any new file. */
void reduce_place_look_new(struct reduce_place *place);

/* Onto the disk; what is read of it from here on comes from there. */
int reduce_place_sync(struct reduce_place *place);

/* -ESTALE: the lock was taken from us, and nothing was done. -EEXIST as for open. */
int reduce_place_commit(struct reduce_place *place, bool replace);

/* Removes what is left of it, and the lock. Safe twice, and on one that was never opened. */
void reduce_place_close(struct reduce_place *place);

#define REDUCE_PLACE_NONE                                                                                    \
	{                                                                                                    \
		.dirfd = -1, .fd = -1, .lock = {.fd = -1 }                                                   \
	}

#endif
