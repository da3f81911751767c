/* SPDX-License-Identifier: Apache-2.0 */
/* suppressed_list.h: what `driverec incidents --suppressed` prints: the firings that made no incident, and
 * why. */
#ifndef RECORDER_SUPPRESSED_LIST_H
#define RECORDER_SUPPRESSED_LIST_H

#include <stdio.h>

#include "incidents/suppressed.h"

struct suppressed_choice {
	const char *trigger; /* NULL = all */
	int64_t since_ns;    /* lines with a firing since then */
	enum triggers_severity severity;
	bool notes; /* also what was recorded only */
	bool json;
};

/* The log of a store, where it has one. Returns 0 or -errno, -EBADMSG where the file is none of ours. */
int suppressed_list_print(const char *store_path, const struct suppressed_choice *choice, FILE *out);

#endif
