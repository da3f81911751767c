/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources/waits.h: which spans are no own work of their track: collectives, transfers between ranks, and waiting.
 *
 * Names are told apart without regard to case, '-' and '_': "all-reduce.3" (XLA), "c10d::allreduce_" (PyTorch),
 * "ncclDevKernel_AllReduce_Sum_f32_RING_LL" and "grads_all_reduce" are one kind of thing.
 */
#ifndef RECORDER_SOURCES_WAITS_H
#define RECORDER_SOURCES_WAITS_H

#include <stdbool.h>
#include <stddef.h>

/* A job's own patterns, borrowed. */
struct waits {
	char *const *wait, *const *own;
	size_t n_wait, n_own;
};

/* Whether a name (only its first 255 bytes count) is no own work: by `own` (may be NULL), else by what is known. */
bool waits_name(const struct waits *own, const char *name, size_t bytes);

#endif
