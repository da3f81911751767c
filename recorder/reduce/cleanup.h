/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce/cleanup.h: what a signal that ends us has to remove first.
 *
 * SIGINT, SIGTERM and SIGHUP may come in the middle of seconds of work inside a library, so the handler
 * itself unlinks what is registered and then ends the process by the signal. One file of each kind at a time.
 */
#ifndef RECORDER_REDUCE_CLEANUP_H
#define RECORDER_REDUCE_CLEANUP_H

enum cleanup_kind { CLEANUP_TMP = 0, CLEANUP_LOCK, CLEANUP_KINDS };

/* The handlers; SIGPIPE and SIGXFSZ become errors of write(), SIGIO (a broken lease) nothing. */
void cleanup_install(void);

/* The caller removes the file itself and then says so. Both only between block and unblock. */
void cleanup_add(enum cleanup_kind kind, int dirfd, const char *name);
void cleanup_remove(enum cleanup_kind kind);

/* Processes that do part of the work: they get the signal too, and are waited for. Room for
 * CLEANUP_CHILDREN_MAX. */
enum { CLEANUP_CHILDREN_MAX = 64 };
void cleanup_add_child(int pid);
void cleanup_remove_child(int pid);
/* In such a process itself: the files and children of the other are not its own. */
void cleanup_forget(void);

/* Keeps the signals back, so that what is done and what is registered agree. Not nested. */
void cleanup_block(void);
void cleanup_unblock(void);

#endif
