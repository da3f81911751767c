/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources/phases.h: which spans are a phase other than train, by their names.
 *
 * A job that marks its phases needs none of this. For all others the names that frameworks and training loops use are
 * known, and the configuration (`phases`) adds a job's own, or takes names out again (`phases.train`). In patterns
 * '*' stands for any text; the job's own are looked at first.
 *
 * `checkpoint` is for both ways, saving and restoring. Activation checkpointing, which recomputes in the backward pass,
 * is none: "checkpoint*" would be wrong.
 */
#ifndef RECORDER_SOURCES_PHASES_H
#define RECORDER_SOURCES_PHASES_H

#include <stddef.h>
#include <stdint.h>

enum { PHASES_NONE = 0, PHASES_TRAIN, PHASES_CHECKPOINT, PHASES_EVAL, PHASES_COMPILE, PHASES_COUNT };

/* A span that is shorter than this is none, whatever its name: hooks that usually do nothing. */
#define PHASES_SPAN_MIN_NS INT64_C(10000000)

/* "checkpoint" of PHASES_CHECKPOINT; NULL of PHASES_NONE. */
const char *phases_text(unsigned phase);
/* The phase that a shipped pattern gives a span's name; PHASES_NONE where it is none. */
unsigned phases_shipped(const char *name);

/* A job's own patterns, borrowed: by phase. */
struct phases {
	char *const *pattern[PHASES_COUNT];
	size_t count[PHASES_COUNT];
};

/* What a span of this name is: PHASES_NONE also where the job's own patterns say "train". `own` may be NULL. */
unsigned phases_find(const struct phases *own, const char *name);

#endif
