/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and differences of times that a ring or a trace gave: they stop at the ends of what 64 bits hold. */
#ifndef NS_H
#define NS_H

#include <stdint.h>

static inline int64_t ns_add(int64_t a, int64_t b)
{
	int64_t sum;
	if (!__builtin_add_overflow(a, b, &sum))
		return sum;
	return b > 0 ? INT64_MAX : INT64_MIN;
}

static inline int64_t ns_sub(int64_t a, int64_t b)
{
	int64_t difference;
	if (!__builtin_sub_overflow(a, b, &difference))
		return difference;
	return b < 0 ? INT64_MAX : INT64_MIN;
}

#endif
