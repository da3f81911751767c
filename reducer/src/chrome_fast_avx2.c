/* SPDX-License-Identifier: Apache-2.0 */
/* Fast reading where the machine has AVX2 and BMI; this file alone is compiled for them. */
#ifdef REDUCER_HAVE_AVX2
#include "chrome_fast.h"

#include <immintrin.h>

#define CHROME_FAST_NAME chrome_fast_avx2
#include "chrome_fast_run.h"

static inline __m256i load(const char *p)
{
	return _mm256_loadu_si256((const __m256i_u *)p);
}

static inline __m256i is(__m256i v, char c)
{
	return _mm256_cmpeq_epi8(v, _mm256_set1_epi8(c));
}

static inline uint32_t bits(__m256i equal)
{
	return (uint32_t)_mm256_movemask_epi8(equal);
}

static inline uint32_t equal32(const char *p, const char *text)
{
	return bits(_mm256_cmpeq_epi8(load(p), load(text)));
}

static inline bool lanes_match(const char *p, const char *text, uint64_t mask)
{
	uint32_t low = (uint32_t)mask, high = (uint32_t)(mask >> 32);
	return (~equal32(p, text) & low) == 0 && (!high || (~equal32(p + 32, text + 32) & high) == 0);
}

static inline uint32_t lanes_stop(const char *p, uint32_t *high)
{
	__m256i v = load(p);
	*high = bits(v);
	return bits(_mm256_or_si256(is(v, '"'), is(v, '\\')));
}

/* Moved down by '0' and up to the signed end, digits are the ten smallest bytes. */
static inline uint32_t lanes_digit(const char *p)
{
	__m256i v = _mm256_add_epi8(load(p), _mm256_set1_epi8((char)(0x80 - '0')));
	return bits(_mm256_cmpgt_epi8(_mm256_set1_epi8((char)(0x80 + 10)), v));
}

static inline void lanes_marks(const char *p, struct marks *ret)
{
	*ret = (struct marks){0};
	for (unsigned i = 0; i < BLOCK; i += 32) {
		__m256i v = load(p + i), folded = _mm256_or_si256(v, _mm256_set1_epi8(0x20));
		__m256i close = is(folded, '}');
		ret->quote |= (uint64_t)bits(is(v, '"')) << i;
		ret->backslash |= (uint64_t)bits(is(v, '\\')) << i;
		ret->open |= (uint64_t)bits(is(folded, '{')) << i;
		ret->close |= (uint64_t)bits(close) << i;
		ret->follow |= (uint64_t)bits(_mm256_or_si256(close, _mm256_or_si256(is(v, ','), is(v, ':')))) << i;
	}
}
#else
typedef int reducer_no_avx2;
#endif
