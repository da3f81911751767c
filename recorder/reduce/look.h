/* SPDX-License-Identifier: Apache-2.0 */
/* reduce/look.h: what a file is, before any work is done on it. */
#ifndef RECORDER_REDUCE_LOOK_H
#define RECORDER_REDUCE_LOOK_H

#include <stdbool.h>

#include <reducer/input.h>
#include <reducer/writer.h>

struct reduce_look {
	enum reducer_format format;
	enum reducer_packing packing;
	bool reduced; /* it says that it is reduced already */
};

/* -EBADMSG: no trace, *ret_problem says why; another -errno of the file. */
int reduce_look(const char *path, struct reduce_look *ret_look, struct reducer_problem *ret_problem);

#endif
