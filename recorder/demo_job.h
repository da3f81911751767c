/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demo_job.h: a training job that is none, for `driverec demo` and the tests: steps of about 50 ms with the
 * spans load, forward, backward, all_reduce and optimizer, a loader thread, counters; one step that takes 8
 * times as long, and one that hangs inside "load".
 *
 * It writes down every event that it puts into its ring, so that what was kept can be compared to what was: a
 * line each of kind, name, and the readings of the ring's clock right before and after its begin and its end.
 */
#ifndef RECORDER_DEMO_JOB_H
#define RECORDER_DEMO_JOB_H

#include <stdint.h>

struct demo_job {
	const char *run_dir;
	const char *record_path;  /* one line an event; demo_check.c reads it */
	unsigned steps;
	unsigned spike_at, stall_at; /* step numbers; UINT32_MAX = none */
	int64_t step_ns;
	int64_t stall_ns;
};

#define DEMO_STALL_SPAN "load"
#define DEMO_JOB_NAME "demo"

/* Runs it in this process, to its end. Returns 0 or -errno. */
int demo_job_run(const struct demo_job *job);

#endif
