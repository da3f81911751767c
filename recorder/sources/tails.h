/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tails.h: which order number a ring had reached at which time, so that a pin for a time is one look-up.
 *
 * An event that ends at or after `a` was committed after every sample taken before `a`, so its chunk closes
 * with an order number no lower than that sample's tail (ring.md 2.5). Older samples are thinned, which only
 * makes a pin keep more.
 */
#ifndef RECORDER_SOURCES_TAILS_H
#define RECORDER_SOURCES_TAILS_H

#include <stddef.h>
#include <stdint.h>

enum { TAILS_MAX = 512 };

struct tails {
	struct {
		int64_t mono_ns;
		uint64_t tail;
	} samples[TAILS_MAX]; /* both ascending; a tail is noted when it is first seen */
	size_t count;
};

/* `mono_ns` must have been read after `tail` was: else an event between the two could escape the pin. */
void tails_add(struct tails *tails, int64_t mono_ns, uint64_t tail);

/* The pin's `from` for a time; 0 if it is older than all samples. */
uint64_t tails_from(const struct tails *tails, int64_t mono_ns);

/* When a tail of at least this was first seen; 0 if none was, or none below it. */
int64_t tails_time(const struct tails *tails, uint64_t tail);

#endif
