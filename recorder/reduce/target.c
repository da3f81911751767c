/* SPDX-License-Identifier: Apache-2.0 */
#include "reduce/target.h"

#include <reducer/marks.h>

/* Good enough: what a further try could win is not worth its time. */
enum { CLOSE_ENOUGH_PERCENT = 95 };

struct search {
	uint32_t fits, too_many; /* 0: none known */
	uint64_t fits_bytes;
};

/* Where two bounds are known the middle of their powers, else four times further. */
static uint32_t next_bins(const struct search *search)
{
	uint32_t low = search->fits, high = search->too_many;

	if (low == 0 && high == 0)
		return REDUCER_BINS_DEFAULT;
	if (low == 0)
		return high > 4 ? high / 4 : REDUCE_BINS_MIN;
	if (high == 0)
		return low < REDUCE_BINS_MAX / 4 ? low * 4 : REDUCE_BINS_MAX;
	uint64_t product = (uint64_t)low * high;
	uint32_t root = low;

	for (uint32_t step = (high - low) / 2; step > 0; step /= 2)
		while (root + step < high && (uint64_t)(root + step) * (root + step) <= product)
			root += step;
	return root > low ? root : low + (high - low) / 2;
}

static bool is_over(const struct search *search, uint64_t target_bytes)
{
	if (search->fits == REDUCE_BINS_MAX || search->too_many == REDUCE_BINS_MIN)
		return true;
	if (search->fits == 0)
		return false;
	if (search->too_many && search->too_many - search->fits <= 1)
		return true;
	return search->too_many && search->fits_bytes >= target_bytes / 100 * CLOSE_ENOUGH_PERCENT;
}

int reduce_target_search(uint64_t target_bytes, reduce_try_fn *try, void *context, uint32_t *ret_bins,
			 bool *ret_fits)
{
	struct search search = {0};

	for (int i = 0; i < REDUCE_TRIES_MAX && !is_over(&search, target_bytes); i++) {
		uint32_t bins = next_bins(&search);
		uint64_t bytes;
		int r = try(context, bins, &bytes);

		if (r < 0)
			return r;
		if (bytes > target_bytes) {
			search.too_many = bins;
			continue;
		}
		/* Finer bins that change nothing: everything is there already. */
		bool same = search.fits && bytes == search.fits_bytes && search.too_many == 0;

		search.fits = bins;
		search.fits_bytes = bytes;
		if (same)
			break;
	}
	*ret_fits = search.fits != 0;
	*ret_bins = search.fits ? search.fits : REDUCE_BINS_MIN;
	return 0;
}
