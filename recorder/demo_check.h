/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demo_check.h: whether a kept window holds exactly what the job wrote in that time.
 *
 * The job's record has for each event between which two readings of the clock it began and ended. An event of
 * the window fits a record of the same kind and name within those. Everything that the job surely wrote in
 * [a, t0] must be there, once, and nothing else may be.
 */
#ifndef RECORDER_DEMO_CHECK_H
#define RECORDER_DEMO_CHECK_H

#include <stdint.h>

struct demo_check {
	uint64_t kept;    /* events of the window that meet [a, t0] */
	uint64_t written; /* of those, found in the record */
	uint64_t missing; /* surely written in that time, and not kept */
	uint64_t unknown; /* kept, and not in the record */
	char example[160];/* of the first difference */
};

/* `drec_paths`: the files of one ring, first to last. 0 if all could be read, whatever they say; else -errno. */
int demo_check_window(const char *const *drec_paths, unsigned count, const char *record_path, int64_t t0_ns,
		      struct demo_check *ret_check);

#endif
