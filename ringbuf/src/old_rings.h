/* SPDX-License-Identifier: Apache-2.0 */
/* Rings that earlier processes left: counted, and one's own predecessors removed, so crashes do not pile up. */
#ifndef RINGBUF_OLD_RINGS_H
#define RINGBUF_OLD_RINGS_H

#include <stdint.h>

/*
 * Unlinks the dead rings of this job and name in the folder, except the newest two. Returns the bytes that
 * all rings of the folder take.
 */
uint64_t old_rings_clean(int dirfd, const char *job, const char *name);

#endif
