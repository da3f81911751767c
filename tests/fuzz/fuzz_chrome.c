/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Chrome reader: whatever comes in, it delivers the same events and says the same of them at once, byte by
 * byte, and in pieces.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <reducer/chrome.h>

#include "fuzz.h"

enum { BYTE_BY_BYTE_MAX = 2048, SMALL_EVENT = 96, SMALL_MEMBER = 160 };

struct reading {
	int result;
	struct fuzz_heard heard;
	struct reducer_read_report report;
};

/* In pieces of up to `piece` bytes, drawn anew for each. Each lies in memory of its own, to its last byte. */
static void read_in_pieces(const uint8_t *data, size_t size, size_t piece, const struct reducer_chrome_options *options,
			   struct reading *ret)
{
	struct fuzz_dice dice = fuzz_dice(data, size);
	struct reducer_sink sink = fuzz_hear(&ret->heard);
	struct reducer_chrome *reader;
	ret->heard = (struct fuzz_heard){.events = 0};
	int result = reducer_chrome_new(&sink, options, &ret->report, &reader);
	fuzz_require(result == 0, "a reader");
	for (size_t at = 0; at < size && result == 0;) {
		size_t some = piece == SIZE_MAX ? size : 1 + fuzz_roll(&dice, piece);
		if (some > size - at)
			some = size - at;
		uint8_t *own = malloc(some);
		fuzz_require(own != NULL, "no memory");
		memcpy(own, data + at, some);
		result = reducer_chrome_feed(reader, own, some);
		free(own);
		at += some;
	}
	if (result == 0)
		result = reducer_chrome_finish(reader);
	reducer_chrome_free(reader);
	ret->result = result;
}

static void judge(const struct reading *whole, const struct reading *pieces, const char *what)
{
	fuzz_same(&whole->heard, &pieces->heard, what);
	fuzz_require(whole->result == pieces->result, "%s: the same result: %d and %d", what, whole->result,
		     pieces->result);
	/* A refusal may come before all bytes are in. */
	if (whole->result == 0)
		fuzz_same_report(&whole->report, &pieces->report, what);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct reading whole, pieces;
	struct fuzz_dice dice = fuzz_dice(data, size);
	struct reducer_chrome_options small = {.event_bytes_max = SMALL_EVENT, .member_bytes_max = SMALL_MEMBER};
	const struct reducer_chrome_options *options = fuzz_roll(&dice, 8) == 0 ? &small : NULL;
	read_in_pieces(data, size, SIZE_MAX, options, &whole);
	fuzz_require(whole.result == 0 || whole.result == -EBADMSG, "result %d", whole.result);
	fuzz_require(whole.result == 0 || whole.report.n_problems > 0, "a refusal without a reason");
	fuzz_require(whole.heard.events == whole.report.events, "the report counts all events");
	read_in_pieces(data, size, 1 + fuzz_roll(&dice, 256), options, &pieces);
	judge(&whole, &pieces, "in pieces");
	if (size <= BYTE_BY_BYTE_MAX) {
		read_in_pieces(data, size, 1, options, &pieces);
		judge(&whole, &pieces, "byte by byte");
	}
	return 0;
}
