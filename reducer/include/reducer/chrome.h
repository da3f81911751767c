/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reducer/chrome.h: read Chrome trace JSON, in every form that is really written.
 *
 * Three roots: an object with `traceEvents`, a bare array of events, or one event object a line (NDJSON).
 * Tolerated without a word: missing or extra commas, `{}`, an array without its end, bare NaN or N/A as a
 * value, raw control bytes, bad escapes and invalid UTF-8 in texts (each bad sequence becomes U+FFFD in
 * `name` and `category`; raw texts, args and extra stay byte for byte). Tolerated and reported with the byte
 * offset: unescaped quotes in a text (read as meant), events that are not whole (skipped up to the next
 * whole one), members that stand twice (the last one counts), a text that ends early.
 *
 * Mapping. ph X B E i C s t f b n e M become the kinds of driverec/event.h; any other event is DREC_OTHER
 * with `ph` in extra. `ts` (a number or a numeric string) is start, exact to the ps, rounded half to even
 * beyond; `dur` is the duration of X, `id` is id where it is a number that prints back as written. Whatever
 * has no place of its own, or cannot be read as what it should be, stays in extra as written.
 *
 * Memory: one buffer that grows with the largest single event or top-level member, up to the limits below.
 * A larger member is reported and left out, a larger event is skipped as damaged.
 * Several threads take 4 MB more.
 */
#ifndef REDUCER_CHROME_H
#define REDUCER_CHROME_H

#include <stddef.h>

#include <reducer/event.h>
#include <reducer/input.h>

struct reducer_chrome;

enum { REDUCER_EVENT_BYTES_MAX = 16 << 20, REDUCER_MEMBER_BYTES_MAX = 64 << 20 };

/* 0 in a field takes the limit above. */
struct reducer_chrome_options {
	size_t event_bytes_max;
	size_t member_bytes_max;
	/* reducer_chrome_read() only: how many may unpack and parse, the calling one among them, which alone calls
	 * the sink; 0 or 1: it does all. The result is the same. Files are read in pieces of 128 KiB then, so a live
	 * feed is better read by one. */
	unsigned threads;
};

/*
 * Reads all of `input` into `sink`. 0: read, see *report for what was damaged; -EBADMSG: no Chrome trace, the
 * last problem of the report says what it is; another -errno of the input; or the sink's own value.
 * `options` may be NULL. *report is overwritten.
 */
int reducer_chrome_read(struct reducer_input *input, const struct reducer_sink *sink,
			const struct reducer_chrome_options *options, struct reducer_read_report *report);

/*
 * The same for bytes that arrive in pieces. An event is delivered as soon as its last byte is there.
 * `sink` is copied; `report` must live as long as the reader and is kept up to date.
 */
int reducer_chrome_new(const struct reducer_sink *sink, const struct reducer_chrome_options *options,
		       struct reducer_read_report *report, struct reducer_chrome **ret_reader);

/* 0, or what reducer_chrome_read() would return; after a failure the reader only takes free(). */
int reducer_chrome_feed(struct reducer_chrome *reader, const void *bytes, size_t count);

/* No more bytes will come: delivers and judges what is left. */
int reducer_chrome_finish(struct reducer_chrome *reader);

void reducer_chrome_free(struct reducer_chrome *reader);

#endif
