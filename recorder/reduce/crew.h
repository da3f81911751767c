/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce/crew.h: many files, several at once.
 *
 * One at a time is done in this process. Several are done in a process each: what a damaged file does to one
 * does nothing to the others, and their memory is given back. No more are begun than fit into three quarters
 * of the memory that is free (of the machine, and of our cgroup), by a guess from the size of the files.
 */
#ifndef RECORDER_REDUCE_CREW_H
#define RECORDER_REDUCE_CREW_H

#include "reduce/files.h"
#include "reduce/one.h"

enum { CREW_MAX = 64 };

struct crew {
	const struct reduce_settings *settings;
	const struct reduce_files *files;
	unsigned at_once;
	bool keep_going;
	/* Called here for each file that is done, in the order in which they are. */
	void (*done)(void *context, const struct reduce_file *file, const struct reduce_result *result);
	/* Called from time to time with what is under way; may be NULL. */
	void (*watch)(void *context, const struct reduce_result *const *results,
		      const struct reduce_file *const *files, unsigned count);
	void *context;
};

/* 0, or -errno where no process could be begun. */
int crew_run(const struct crew *crew);

/* What reducing the file may take, in bytes, and what is there. */
uint64_t crew_memory_needed(const struct reduce_file *file, bool independently);
uint64_t crew_memory_free(void);

#endif
