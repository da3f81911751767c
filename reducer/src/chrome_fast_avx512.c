/* SPDX-License-Identifier: Apache-2.0 */
/* Fast reading where the machine has AVX-512 with bytes, and BMI; this file alone is compiled for them. */
#ifdef REDUCER_HAVE_AVX512
#include "chrome_fast.h"

#include <immintrin.h>

#define CHROME_FAST_NAME chrome_fast_avx512
#include "chrome_fast_run.h"

static inline __m512i load64(const char *p)
{
	return _mm512_loadu_si512(p);
}

static inline __m256i load32(const char *p)
{
	return _mm256_loadu_si256((const __m256i_u *)p);
}

static inline uint64_t is(__m512i v, char c)
{
	return _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8(c));
}

static inline bool lanes_match(const char *p, const char *text, uint64_t mask)
{
	return (~_mm512_cmpeq_epi8_mask(load64(p), load64(text)) & mask) == 0;
}

static inline uint32_t lanes_stop(const char *p, uint32_t *high)
{
	__m256i v = load32(p);
	*high = _mm256_movepi8_mask(v);
	return _mm256_cmpeq_epi8_mask(v, _mm256_set1_epi8('"')) | _mm256_cmpeq_epi8_mask(v, _mm256_set1_epi8('\\'));
}

static inline uint32_t lanes_digit(const char *p)
{
	__m256i v = _mm256_sub_epi8(load32(p), _mm256_set1_epi8('0'));
	return _mm256_cmplt_epu8_mask(v, _mm256_set1_epi8(10));
}

static inline void lanes_marks(const char *p, struct marks *ret)
{
	__m512i v = load64(p), folded = _mm512_or_si512(v, _mm512_set1_epi8(0x20));
	ret->quote = is(v, '"');
	ret->backslash = is(v, '\\');
	ret->open = is(folded, '{');
	ret->close = is(folded, '}');
	ret->follow = ret->close | is(v, ',') | is(v, ':');
}
#else
typedef int reducer_no_avx512;
#endif
