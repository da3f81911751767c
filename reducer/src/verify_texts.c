/* SPDX-License-Identifier: Apache-2.0 */
#include "verify_texts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS_MIN = 1024 };

/* Odd numbers without a pattern (binary digits of e and pi). */
static const uint64_t factor_a = 0xadf85458a2bb4a9bu, factor_b = 0xc90fdaa22168c235u;

static uint64_t fold(uint64_t x, uint64_t y)
{
	unsigned __int128 product = (unsigned __int128)x * y;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

struct verify_print verify_print_mix(struct verify_print print, uint64_t more)
{
	/* Two lanes that treat the same word differently; added constants keep a zero from staying zero. */
	print.a = fold(print.a ^ more, factor_a) + factor_b;
	print.b = fold(print.b + (more << 32 | more >> 32), factor_b) ^ factor_a;
	return print;
}

struct verify_print verify_print_join(struct verify_print print, struct verify_print more)
{
	return verify_print_mix(verify_print_mix(print, more.a), more.b);
}

struct verify_print verify_print_of(const void *bytes, size_t count)
{
	const unsigned char *p = bytes;
	struct verify_print print = {factor_b ^ count, factor_a + count};
	uint64_t word;
	for (; count >= sizeof(word); p += sizeof(word), count -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		print = verify_print_mix(print, word);
	}
	if (count) {
		word = 0;
		memcpy(&word, p, count);
		print = verify_print_mix(print, word);
	}
	return verify_print_mix(print, 0);
}

/* The slot that holds the print, or the free one where it would go. */
static size_t text_slot(const struct verify_texts *texts, struct verify_print print)
{
	size_t at = (size_t)print.a & (texts->slots - 1);
	while (texts->slot[at] && !verify_print_is(texts->row[texts->slot[at] - 1].print, print))
		at = (at + 1) & (texts->slots - 1);
	return at;
}

static int text_room(struct verify_texts *texts)
{
	if (texts->count == texts->room) {
		if (texts->room >= (1u << 31))
			return -EFBIG;
		uint32_t room = texts->room ? texts->room * 2 : SLOTS_MIN / 2;
		struct verify_text_row *row = realloc(texts->row, room * sizeof(*row));
		if (!row)
			return -ENOMEM;
		texts->row = row;
		texts->room = room;
	}
	if (texts->count < texts->slots / 2)
		return 0;
	size_t slots = texts->slots ? texts->slots * 2 : SLOTS_MIN;
	uint32_t *slot = calloc(slots, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	free(texts->slot);
	texts->slot = slot;
	texts->slots = slots;
	for (uint32_t i = 0; i < texts->count; i++)
		slot[text_slot(texts, texts->row[i].print)] = i + 1;
	return 0;
}

int verify_texts_add(struct verify_texts *texts, struct reducer_text text, uint32_t *ret_number)
{
	int result = text_room(texts);
	if (result < 0)
		return result;
	struct verify_print print = verify_print_of(text.data, text.bytes);
	size_t at = text_slot(texts, print);
	if (texts->slot[at]) {
		*ret_number = texts->slot[at] - 1;
		return 0;
	}
	char *data = malloc(text.bytes + 1);
	if (!data)
		return -ENOMEM;
	if (text.bytes)
		memcpy(data, text.data, text.bytes);
	data[text.bytes] = 0;
	texts->row[texts->count] = (struct verify_text_row){print, data, text.bytes};
	*ret_number = texts->count;
	texts->slot[at] = ++texts->count;
	return 0;
}

bool verify_texts_find(const struct verify_texts *texts, struct reducer_text text, uint32_t *ret_number)
{
	if (!texts->slots)
		return false;
	size_t at = text_slot(texts, verify_print_of(text.data, text.bytes));
	if (!texts->slot[at])
		return false;
	*ret_number = texts->slot[at] - 1;
	return true;
}

struct reducer_text verify_texts_at(const struct verify_texts *texts, uint32_t number)
{
	return (struct reducer_text){texts->row[number].data, texts->row[number].bytes};
}

void verify_texts_free(struct verify_texts *texts)
{
	for (uint32_t i = 0; i < texts->count; i++)
		free(texts->row[i].data);
	free(texts->row);
	free(texts->slot);
	*texts = (struct verify_texts){0};
}

static bool count_free(const struct verify_count *count)
{
	return count->raw == 0 && count->reduced == 0;
}

static struct verify_count *count_slot(struct verify_count *slot, size_t slots, struct verify_print print)
{
	size_t at = (size_t)print.a & (slots - 1);
	while (!count_free(&slot[at]) && !verify_print_is(slot[at].print, print))
		at = (at + 1) & (slots - 1);
	return &slot[at];
}

static int count_room(struct verify_counts *counts)
{
	if (counts->used < counts->slots / 3 * 2)
		return 0;
	size_t slots = counts->slots ? counts->slots * 2 : SLOTS_MIN;
	struct verify_count *slot = calloc(slots, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	for (size_t i = 0; i < counts->slots; i++)
		if (!count_free(&counts->slot[i]))
			*count_slot(slot, slots, counts->slot[i].print) = counts->slot[i];
	free(counts->slot);
	counts->slot = slot;
	counts->slots = slots;
	return 0;
}

int verify_counts_add(struct verify_counts *counts, struct verify_print print, bool reduced)
{
	if (count_room(counts) < 0)
		return -ENOMEM;
	struct verify_count *count = count_slot(counts->slot, counts->slots, print);
	if (count_free(count)) {
		count->print = print;
		counts->used++;
	}
	if (reduced)
		count->reduced++;
	else
		count->raw++;
	return 0;
}

struct verify_count *verify_counts_find(const struct verify_counts *counts, struct verify_print print)
{
	if (!counts->slots)
		return NULL;
	struct verify_count *count = count_slot(counts->slot, counts->slots, print);
	return count_free(count) ? NULL : count;
}

void verify_counts_free(struct verify_counts *counts)
{
	free(counts->slot);
	*counts = (struct verify_counts){0};
}
