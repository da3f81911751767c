/* SPDX-License-Identifier: Apache-2.0 */
/* reduce/names.h: where the result of a file goes, by its name. */
#ifndef RECORDER_REDUCE_NAMES_H
#define RECORDER_REDUCE_NAMES_H

#include <stddef.h>

#include <reducer/writer.h>

/* "dir/x.json.gz" -> "dir/x" */
size_t reduce_names_stem(const char *path);

/* ".json.gz", ".xplane.pb", ".pftrace"; "" for a format that reduced traces are not written in. */
const char *reduce_names_ending(enum reducer_format format);

/* Beside the input: "dir/x.reduced.json.gz". -ENAMETOOLONG. */
int reduce_names_beside(const char *input, enum reducer_format format, char *out, size_t room);

/* Below a folder: `input` from `relative` on, with its own name where `same_format`. -ENAMETOOLONG. */
int reduce_names_below(const char *folder, const char *input, size_t relative, enum reducer_format format,
		       int same_format, char *out, size_t room);

/* The folders above a path, as mkdir -p would. -errno. */
int reduce_names_make_folders(const char *path);

#endif
