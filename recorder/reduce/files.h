/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce/files.h: which files the operands mean, and where each goes.
 *
 * A folder means the files in it, recursively, whose names are those of traces; whether they are is for their
 * content to say. Links are not followed inside of folders (a file in reach has its own name there too),
 * names that begin with a dot and what `reduce` itself has made are left out. Sorted by name, so that runs
 * are alike.
 */
#ifndef RECORDER_REDUCE_FILES_H
#define RECORDER_REDUCE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REDUCE_FILES_MAX = 100000, REDUCE_ENTRIES_MAX = 4000000, REDUCE_DEPTH_MAX = 24 };

struct reduce_file {
	char *path;
	size_t relative;  /* where the part of `path` begins that is kept below an output folder */
	bool from_folder; /* found, not named */
	uint64_t bytes;   /* as it was found; 0 = not known */
};

struct reduce_files {
	struct reduce_file *file;
	size_t count, room;
	/* What went wrong on the way: the first place, and how many. */
	int error; /* -errno */
	char error_path[4096];
	uint64_t errors;
	uint64_t entries; /* looked at */
};

/*
 * Adds a file or a folder. A folder that cannot be read is noted and passed over. -E2BIG: more than the
 * limits above; -ENOMEM; -errno where the folder `path` itself cannot be read.
 */
int reduce_files_add(struct reduce_files *files, const char *path);
void reduce_files_free(struct reduce_files *files);

/* Whether a file of a folder is looked into. */
bool reduce_files_is_trace_name(const char *name);
/* "x.reduced.json.gz" */
bool reduce_files_is_output_name(const char *name);

#endif
