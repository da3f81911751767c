/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every atomic operation of the ring, on plain integers in shared memory. Nothing else in ringbuf/ may use
 * atomics, so a test build can replace this file by a simulated memory.
 *
 * Loads and stores are named by their order; a comment at each release or fence names its partner.
 */
#ifndef RINGBUF_ATOMIC_H
#define RINGBUF_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

static inline uint64_t load_relaxed(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static inline uint64_t load_acquire(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline uint64_t load_seq_cst(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_SEQ_CST);
}

static inline uint32_t load32_relaxed(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static inline uint32_t load32_acquire(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline uint8_t load8_seq_cst(const uint8_t *p)
{
	return __atomic_load_n(p, __ATOMIC_SEQ_CST);
}

static inline uint8_t load8_relaxed(const uint8_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static inline void store_relaxed(uint64_t *p, uint64_t value)
{
	__atomic_store_n(p, value, __ATOMIC_RELAXED);
}

static inline void store_release(uint64_t *p, uint64_t value)
{
	__atomic_store_n(p, value, __ATOMIC_RELEASE);
}

static inline void store32_relaxed(uint32_t *p, uint32_t value)
{
	__atomic_store_n(p, value, __ATOMIC_RELAXED);
}

static inline void store32_release(uint32_t *p, uint32_t value)
{
	__atomic_store_n(p, value, __ATOMIC_RELEASE);
}

static inline uint64_t fetch_add_relaxed(uint64_t *p, uint64_t value)
{
	return __atomic_fetch_add(p, value, __ATOMIC_RELAXED);
}

/* Strong, seq_cst on success; *expected is the value found on failure, read with acquire. */
static inline bool compare_exchange(uint64_t *p, uint64_t *expected, uint64_t value)
{
	return __atomic_compare_exchange_n(p, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE);
}

static inline void fetch_max_relaxed(uint64_t *p, uint64_t value)
{
	uint64_t seen = __atomic_load_n(p, __ATOMIC_RELAXED);
	while (seen < value &&
	       !__atomic_compare_exchange_n(p, &seen, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static inline void fence_acquire(void)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
}

static inline void fence_release(void)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

static inline void fence_seq_cst(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Orders a thread against its own signal handlers: the compiler alone. */
static inline void fence_signal(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

#endif
