/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce/holder.h: whether a file is still being written, and by whom.
 *
 * What this host can know is asked of the kernel: a read lease is given only where nobody has the file open
 * for writing, whoever that is (it is given back at once: a writer that comes never waits). Where leases are
 * refused (someone else's file, NFS, SMB), /proc is searched for descriptors open for writing, as far as we
 * may see them; that search also finds the names. Writers on other hosts show only in the file's size and
 * times: a file is left alone that was written a moment ago, and one that changes during the work is not
 * touched.
 */
#ifndef RECORDER_REDUCE_HOLDER_H
#define RECORDER_REDUCE_HOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct holder {
	pid_t pid;     /* 0: somebody whom we may not see */
	char name[64]; /* of the program, printable */
};

/* 0: nobody that we know of; 1: *ret_holder writes it; -errno. `fd` is open for reading only. */
int holder_find(int fd, struct holder *ret_holder);

/* What must be the same before and after the work. */
struct holder_stamp {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec mtime, ctime;
};
void holder_stamp(const struct stat *st, struct holder_stamp *ret_stamp);
bool holder_stamp_same(const struct holder_stamp *a, const struct holder_stamp *b);

/* "pid 4211 (python3)" */
void holder_say(const struct holder *holder, char *out, size_t room);

#endif
