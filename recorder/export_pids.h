/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several sources in one trace: processes of different sources stay apart although they have the same pid (two
 * ranks in containers of their own are both process 1).
 */
#ifndef RECORDER_EXPORT_PIDS_H
#define RECORDER_EXPORT_PIDS_H

#include <stddef.h>

#include <reducer/event.h>

enum { EXPORT_PIDS_MAX = 1 << 14 };

/* Start zeroed. */
struct export_pids {
	struct export_pid *pid;
	size_t count, last;
};

/*
 * The pid to write for one of a source's: the same where no other source has it, else a number above all of
 * Linux, or the text with a number. `source` says which pids are of one process space (the index of a trace, the
 * first file of a ring). Valid until free(). -E2BIG beyond EXPORT_PIDS_MAX, -ENOMEM.
 */
int export_pids_of(struct export_pids *pids, size_t source, struct reducer_text pid, struct reducer_text *ret_pid);
void export_pids_free(struct export_pids *pids);

#endif
