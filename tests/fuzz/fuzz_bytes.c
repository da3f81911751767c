/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz_bytes.h"

#include <math.h>

uint8_t fuzz_byte(struct fuzz_bytes *bytes)
{
	if (!bytes->left)
		return 0;
	bytes->left--;
	return *bytes->at++;
}

int64_t fuzz_length(struct fuzz_bytes *bytes)
{
	static const int64_t extreme[] = {INT64_MAX, INT64_MIN, INT64_C(1) << 61, -1};
	uint8_t how = fuzz_byte(bytes);
	if (how >= 0xfc)
		return extreme[how & 3];
	return (int64_t)fuzz_byte(bytes) << how % 54;
}

int64_t fuzz_after(int64_t ns, int64_t more_ns)
{
	int64_t sum;
	if (__builtin_add_overflow(ns, more_ns, &sum))
		return more_ns > 0 ? INT64_MAX : INT64_MIN;
	return sum;
}

int64_t fuzz_time(struct fuzz_bytes *bytes, int64_t now_ns)
{
	uint8_t how = fuzz_byte(bytes);
	if (how < 128)
		return now_ns;
	int64_t away = fuzz_length(bytes);
	if (!(how & 1) && away != INT64_MIN)
		away = -away;
	return fuzz_after(how < 192 ? now_ns : 0, away);
}

double fuzz_value(struct fuzz_bytes *bytes)
{
	static const double values[] = {0,      1,  50,   99.5, 100,  250, 1e9,    1e300, -1e300,
					1e-300, -1, 4e38, 1e18, 0.04, 3,   5e-324, -0.0,  2e9};
	uint8_t which = fuzz_byte(bytes);
	if (which >= 254)
		return which == 255 ? (double)NAN : (double)INFINITY;
	return which < 128 ? which : values[which % (sizeof(values) / sizeof(values[0]))];
}

int64_t fuzz_step(struct fuzz_bytes *bytes, int64_t *step)
{
	uint8_t how = fuzz_byte(bytes);
	if (how < 200)
		return *step += how < 100;
	return how < 240 ? how - 220 : how & 1 ? INT64_MAX : INT64_MIN;
}
