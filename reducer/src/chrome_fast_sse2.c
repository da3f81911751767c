/* SPDX-License-Identifier: Apache-2.0 */
/* Fast reading with what every x86-64 has. */
#ifdef __SSE2__
#include "chrome_fast.h"

#include <emmintrin.h>

#define CHROME_FAST_NAME chrome_fast_sse2
#include "chrome_fast_run.h"

static inline __m128i load(const char *p)
{
	return _mm_loadu_si128((const __m128i_u *)p);
}

static inline __m128i is(__m128i v, char c)
{
	return _mm_cmpeq_epi8(v, _mm_set1_epi8(c));
}

static inline uint32_t bits(__m128i equal)
{
	return (uint32_t)_mm_movemask_epi8(equal);
}

static inline uint32_t equal32(const char *p, const char *text)
{
	return bits(_mm_cmpeq_epi8(load(p), load(text))) |
	       bits(_mm_cmpeq_epi8(load(p + 16), load(text + 16))) << 16;
}

static inline bool lanes_match(const char *p, const char *text, uint64_t mask)
{
	uint32_t low = (uint32_t)mask, high = (uint32_t)(mask >> 32);
	return (~equal32(p, text) & low) == 0 && (!high || (~equal32(p + 32, text + 32) & high) == 0);
}

static inline uint32_t lanes_stop(const char *p, uint32_t *high)
{
	__m128i low = load(p), up = load(p + 16);
	*high = bits(low) | bits(up) << 16;
	return bits(_mm_or_si128(is(low, '"'), is(low, '\\'))) |
	       bits(_mm_or_si128(is(up, '"'), is(up, '\\'))) << 16;
}

/* Moved down by '0' and up to the signed end, digits are the ten smallest bytes. */
static inline uint32_t digit16(const char *p)
{
	__m128i v = _mm_add_epi8(load(p), _mm_set1_epi8((char)(0x80 - '0')));
	return bits(_mm_cmplt_epi8(v, _mm_set1_epi8((char)(0x80 + 10))));
}

static inline uint32_t lanes_digit(const char *p)
{
	return digit16(p) | digit16(p + 16) << 16;
}

static inline void lanes_marks(const char *p, struct marks *ret)
{
	*ret = (struct marks){0};
	for (unsigned i = 0; i < BLOCK; i += 16) {
		__m128i v = load(p + i), folded = _mm_or_si128(v, _mm_set1_epi8(0x20)), close = is(folded, '}');
		ret->quote |= (uint64_t)bits(is(v, '"')) << i;
		ret->backslash |= (uint64_t)bits(is(v, '\\')) << i;
		ret->open |= (uint64_t)bits(is(folded, '{')) << i;
		ret->close |= (uint64_t)bits(close) << i;
		ret->follow |= (uint64_t)bits(_mm_or_si128(close, _mm_or_si128(is(v, ','), is(v, ':')))) << i;
	}
}
#else
typedef int reducer_no_sse2;
#endif
