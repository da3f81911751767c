/* SPDX-License-Identifier: Apache-2.0 */
/* The input of a target as a program: numbers read off it one after the other, 0 where it has ended. */
#ifndef TESTS_FUZZ_BYTES_H
#define TESTS_FUZZ_BYTES_H

#include <stddef.h>
#include <stdint.h>

struct fuzz_bytes {
	const uint8_t *at;
	size_t left;
};

uint8_t fuzz_byte(struct fuzz_bytes *bytes);
/* By how many bits the next byte is shifted, and that byte; the ends of what there is among them. */
int64_t fuzz_length(struct fuzz_bytes *bytes);
/* Mostly now, or a little off it; else anything. */
int64_t fuzz_time(struct fuzz_bytes *bytes, int64_t now_ns);
/* Usual ones, and all that are special. */
double fuzz_value(struct fuzz_bytes *bytes);
/* Mostly the next one, or the same again; else anything. */
int64_t fuzz_step(struct fuzz_bytes *bytes, int64_t *step);
/* The sum, as far as it can be told. */
int64_t fuzz_after(int64_t ns, int64_t more_ns);

#endif
