/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce/lock.h: one reducer a file, on any file system.
 *
 * A file is locked by a hidden file beside it, ".NAME.driverec-lock", which appears with its content, all at
 * once (an unnamed file that is linked), or is made by O_EXCL where a file system knows no such thing (NFS,
 * SMB): one client wins there too. No lock of the kernel would do: flock() over NFS and SMB depends on
 * versions, mount options and servers. It is text:
 *
 *     driverec reduce
 *     token 5f0a…        of this run; its temporary file is ".NAME.driverec-tmp-<token>"
 *     host node17
 *     pid 4211
 *     started 8123456    of the process, in clock ticks after boot
 *     boot 3e1c…         boot id of the kernel
 *     pidns 4026531836   pid namespace, for containers
 *
 * A lock is stale only if its process is certainly dead: of this boot of this host and this pid namespace,
 * and there is no such pid or it started at another time. All others are refused by name, and --break-lock is
 * for people who know better.
 */
#ifndef RECORDER_REDUCE_LOCK_H
#define RECORDER_REDUCE_LOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { REDUCE_NAME_MAX = 256, REDUCE_TOKEN_TEXT = 17 };

/* Who holds a lock. Texts are "" where the lock does not say. */
struct reduce_lock_owner {
	char token[REDUCE_TOKEN_TEXT];
	char host[65];
	char boot[40];
	int64_t pid;
	uint64_t started;
	uint64_t pidns;
	int64_t made_unix_s; /* the file's time */
	uid_t uid;           /* the file's owner */
};

struct reduce_lock {
	int dirfd; /* the caller's; -1 = not locked */
	int fd;
	char name[REDUCE_NAME_MAX];
	char token[REDUCE_TOKEN_TEXT];
};

/*
 * Locks `name` in the folder. A stale lock is removed, with its temporary file, and so is any other where
 * `even_held`. -EBUSY: held, by *ret_owner; another -errno of the folder.
 */
int reduce_lock_take(int dirfd, const char *name, bool even_held, struct reduce_lock *ret_lock,
		     struct reduce_lock_owner *ret_owner);

/* Removes a stale lock, with its temporary file, where nothing else is to be done with the file at `path`. */
void reduce_lock_sweep(const char *path);

/* Whether the lock is still there and still ours. */
bool reduce_lock_held(const struct reduce_lock *lock);

/* Safe twice. */
void reduce_lock_release(struct reduce_lock *lock);

/* Ours, as it stands in a lock. */
void reduce_lock_self(struct reduce_lock_owner *ret_self);

/* Reads the text of a lock. -EBADMSG: it is none (an empty one too). */
int reduce_lock_parse(const char *text, struct reduce_lock_owner *ret_owner);

/* Whether `owner` is dead beyond doubt, as seen by `self`. */
bool reduce_lock_is_stale(const struct reduce_lock_owner *owner, const struct reduce_lock_owner *self);

/* "pid 4211 on node17, since 2026-11-30 03:12:44.000 UTC", for a message. */
void reduce_lock_say(const struct reduce_lock_owner *owner, char *out, size_t room);

/* The hidden names beside `name`: ".NAME.driverec-lock". Long names are shortened, with a checksum. */
void reduce_lock_name(const char *name, const char *ending, char ret_name[REDUCE_NAME_MAX]);
/* ".NAME.driverec-tmp-<token>" */
void reduce_lock_tmp_name(const char *name, const char *token, char ret_name[REDUCE_NAME_MAX]);

#endif
