/* SPDX-License-Identifier: Apache-2.0 */
/* Fast reading with the compiler's own vectors, for any machine. */
#include "chrome_fast.h"

#define CHROME_FAST_NAME chrome_fast_generic
#include "chrome_fast_run.h"

typedef uint8_t vector __attribute__((vector_size(16)));
typedef uint64_t halves __attribute__((vector_size(16)));

static inline vector load(const char *p)
{
	vector v;
	memcpy(&v, p, sizeof(v));
	return v;
}

/* One bit a byte of a comparison's result: each byte keeps the bit of its own place, then they are summed. */
static inline uint32_t bits(vector equal)
{
	const vector place = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
	halves word = (halves)(equal & place);
	const uint64_t ones = 0x0101010101010101u;
	return (uint32_t)(word[0] * ones >> 56 | word[1] * ones >> 56 << 8);
}

static inline uint32_t equal32(const char *p, const char *text)
{
	return bits((vector)(load(p) == load(text))) | bits((vector)(load(p + 16) == load(text + 16))) << 16;
}

static inline bool lanes_match(const char *p, const char *text, uint64_t mask)
{
	uint32_t low = (uint32_t)mask, high = (uint32_t)(mask >> 32);
	return (~equal32(p, text) & low) == 0 && (!high || (~equal32(p + 32, text + 32) & high) == 0);
}

static inline uint32_t stop16(const char *p, uint32_t *high)
{
	vector v = load(p);
	*high = bits((vector)(v >= 0x80));
	return bits((vector)(v == '"') | (vector)(v == '\\'));
}

static inline uint32_t lanes_stop(const char *p, uint32_t *high)
{
	uint32_t high_low, high_high;
	uint32_t low = stop16(p, &high_low), up = stop16(p + 16, &high_high);
	*high = high_low | high_high << 16;
	return low | up << 16;
}

static inline uint32_t lanes_digit(const char *p)
{
	return bits((vector)(load(p) - '0' < 10)) | bits((vector)(load(p + 16) - '0' < 10)) << 16;
}

static inline void lanes_marks(const char *p, struct marks *ret)
{
	*ret = (struct marks){0};
	for (unsigned i = 0; i < BLOCK; i += 16) {
		vector v = load(p + i), folded = v | 0x20, close = (vector)(folded == '}');
		ret->quote |= (uint64_t)bits((vector)(v == '"')) << i;
		ret->backslash |= (uint64_t)bits((vector)(v == '\\')) << i;
		ret->open |= (uint64_t)bits((vector)(folded == '{')) << i;
		ret->close |= (uint64_t)bits(close) << i;
		ret->follow |= (uint64_t)bits(close | (vector)(v == ',') | (vector)(v == ':')) << i;
	}
}
