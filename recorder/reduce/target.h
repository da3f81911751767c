/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce/target.h: the finest bins whose output takes at most so many bytes.
 *
 * The size falls with the number of bins, so it is halved in, on a scale of powers, with an output written to
 * an unnamed file for each try.
 */
#ifndef RECORDER_REDUCE_TARGET_H
#define RECORDER_REDUCE_TARGET_H

#include <stdbool.h>
#include <stdint.h>

enum { REDUCE_BINS_MIN = 1, REDUCE_BINS_MAX = 1 << 20, REDUCE_TRIES_MAX = 14 };

/* Plans and writes with so many bins. 0 or -errno. */
typedef int reduce_try_fn(void *context, uint32_t bins, uint64_t *ret_bytes);

/*
 * *ret_bins fits, and the next size up does not: by less than 5 % of the bytes or within REDUCE_TRIES_MAX
 * tries. *ret_fits is false where even the coarsest bins do not.
 */
int reduce_target_search(uint64_t target_bytes, reduce_try_fn *try, void *context, uint32_t *ret_bins,
			 bool *ret_fits);

#endif
