/* SPDX-License-Identifier: Apache-2.0 */
/* Texts by number, and 128-bit fingerprints of what is too long or too many to keep. */
#ifndef REDUCER_VERIFY_TEXTS_H
#define REDUCER_VERIFY_TEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <reducer/event.h>

/* Equal for equal bytes; for others by a chance that no trace meets. */
struct verify_print {
	uint64_t a, b;
};

struct verify_print verify_print_of(const void *bytes, size_t count);
/* Depends on the order of mixing. */
struct verify_print verify_print_mix(struct verify_print print, uint64_t more);
struct verify_print verify_print_join(struct verify_print print, struct verify_print more);
static inline bool verify_print_is(struct verify_print one, struct verify_print other)
{
	return one.a == other.a && one.b == other.b;
}

/* Each different text has a number from 0 on, in the order of their coming. Zeroed at first. */
struct verify_texts {
	uint32_t *slot; /* number + 1; 0 = free */
	size_t slots;   /* a power of two, or 0 */
	struct verify_text_row {
		struct verify_print print;
		char *data;
		size_t bytes;
	} *row;
	uint32_t count, room;
};

/* -ENOMEM, or -EFBIG beyond 2^31 of them. */
int verify_texts_add(struct verify_texts *texts, struct reducer_text text, uint32_t *ret_number);
bool verify_texts_find(const struct verify_texts *texts, struct reducer_text text, uint32_t *ret_number);
struct reducer_text verify_texts_at(const struct verify_texts *texts, uint32_t number);
void verify_texts_free(struct verify_texts *texts);

/* Several numbers as one text: the key of a pair or more. */
#define VERIFY_KEY(...)                                                                                      \
	((struct reducer_text){(const char *)(const uint32_t[]){__VA_ARGS__},                                \
			       sizeof((const uint32_t[]){__VA_ARGS__})})

/* How often each thing stands in either trace. Zeroed at first. */
struct verify_counts {
	struct verify_count {
		struct verify_print print;
		uint32_t raw, reduced;           /* times it stands there */
		uint32_t seen_raw, seen_reduced; /* the caller's: how many of them are accounted for */
	} *slot;
	size_t slots, used;
};

/* It stands once more in the raw or the reduced trace. 0 or -ENOMEM. */
int verify_counts_add(struct verify_counts *counts, struct verify_print print, bool reduced);
/* NULL where it stands in neither. */
struct verify_count *verify_counts_find(const struct verify_counts *counts, struct verify_print print);
void verify_counts_free(struct verify_counts *counts);

#endif
