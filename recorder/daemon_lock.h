/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon_lock.h: one daemon a store, and how others find it.
 *
 *     <store>/lock                              held while a daemon writes this store, wherever it runs
 *     <run dir>/daemons/<store id>.lock         held while it reads rings here; its pins are in use
 *     <run dir>/daemons/<store id>.sock         where it listens
 *
 * Both are flock()s, so they end with the process, however it ends.
 */
#ifndef RECORDER_DAEMON_LOCK_H
#define RECORDER_DAEMON_LOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct incidents_store;

struct daemon_lock {
	int store_fd, run_fd;
	char socket_path[512];
};

/* -EBUSY: another daemon holds the store; *ret_pid is its process, 0 = not known (another host). */
int daemon_lock_take(struct daemon_lock *lock, const char *run_dir, const struct incidents_store *store,
		     pid_t *ret_pid);
/* Whether no daemon of that store holds its lock here, and none has begun within the last `for_ns`. */
bool daemon_lock_abandoned(const char *run_dir, const uint8_t *store_id, int64_t for_ns);
/* Removes the socket. Safe after a failed take and twice. */
void daemon_lock_release(struct daemon_lock *lock);

/* The socket of whichever daemon holds the store at this path. -ENOENT: there is no store, or no daemon of it. */
int daemon_lock_socket(const char *run_dir, const char *store_path, char *ret_path, size_t room);

#endif
