/* SPDX-License-Identifier: Apache-2.0 */
/* The ring's clock: the cheapest steady counter of the machine. */
#ifndef RINGBUF_TICKS_H
#define RINGBUF_TICKS_H

#include <driverec/format.h>

#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/* ticks.c: enum drec_clock that may be trusted here; `asked` 0 = the best. */
uint32_t ticks_choose(uint32_t asked);
/* ticks.c: FNV-1a of the kernel's clocksource name, 0 if it is not known. */
uint32_t ticks_clocksource(void);

static inline int64_t clock_ns(clockid_t clock)
{
	struct timespec ts;
	clock_gettime(clock, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static inline uint64_t ticks_now(uint32_t clock)
{
#if defined(__x86_64__)
	if (__builtin_expect(clock == DREC_CLOCK_TSC, 1))
		return __rdtsc();
#elif defined(__aarch64__)
	if (__builtin_expect(clock == DREC_CLOCK_CNTVCT, 1)) {
		uint64_t count;
		__asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
		return count;
	}
#endif
	return (uint64_t)clock_ns(clock == DREC_CLOCK_UNIX ? CLOCK_REALTIME : CLOCK_MONOTONIC);
}

#endif
