/* SPDX-License-Identifier: Apache-2.0 */
/* reduce/say.h: what became of a file, for people and for programs. */
#ifndef RECORDER_REDUCE_SAY_H
#define RECORDER_REDUCE_SAY_H

#include <stdbool.h>
#include <stdio.h>

#include "reduce/one.h"

struct reduce_say {
	bool with_name;   /* several files: each line begins with its path */
	bool with_output; /* the name of the output was not the user's */
	bool verbose;
};

/*
 * "2,000,001 -> 188,204 events (-91 %), 47.9 -> 4.1 MB; busy time exact on 214 tracks; verified" on `out`;
 * damage of the input, failures and differences on `errors`, one line each.
 */
void reduce_say_result(const struct reduce_say *say, const char *path, const struct reduce_result *result,
		       FILE *out, FILE *errors);

/* One JSON object in one line; counts are texts. -errno. */
int reduce_say_json(const char *path, const struct reduce_result *result, FILE *out);

const char *reduce_say_outcome(enum reduce_outcome outcome);

#endif
