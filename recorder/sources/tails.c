/* SPDX-License-Identifier: Apache-2.0 */
#include "tails.h"

static void thin(struct tails *tails)
{
	size_t kept = 0;
	for (size_t i = 0; i < tails->count; i++)
		if (i >= tails->count / 2 || i % 2 == 0)
			tails->samples[kept++] = tails->samples[i];
	tails->count = kept;
}

void tails_add(struct tails *tails, int64_t mono_ns, uint64_t tail)
{
	if (tails->count > 0 && tails->samples[tails->count - 1].tail >= tail)
		return;
	if (tails->count == TAILS_MAX)
		thin(tails);
	tails->samples[tails->count].mono_ns = mono_ns;
	tails->samples[tails->count].tail = tail;
	tails->count++;
}

uint64_t tails_from(const struct tails *tails, int64_t mono_ns)
{
	size_t low = 0, high = tails->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (tails->samples[middle].mono_ns <= mono_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? tails->samples[low - 1].tail : 0;
}

int64_t tails_time(const struct tails *tails, uint64_t tail)
{
	for (size_t i = 1; i < tails->count; i++)
		if (tails->samples[i].tail >= tail && tails->samples[i - 1].tail < tail)
			return tails->samples[i].mono_ns;
	return 0;
}
