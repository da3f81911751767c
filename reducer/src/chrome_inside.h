/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's inside, for reading by several threads. */
#ifndef REDUCER_CHROME_INSIDE_H
#define REDUCER_CHROME_INSIDE_H

#include <reducer/chrome.h>

#include "chrome_batch.h"

/* Whether the reader stands between two events, with nothing unused: so that a batch may be delivered. */
bool chrome_reader_between_events(const struct reducer_chrome *reader);

size_t chrome_reader_event_bytes_max(const struct reducer_chrome *reader);

/* Delivers a batch of the `bytes` bytes that come next; what is in them is used up. As feed(). */
int chrome_reader_take(struct reducer_chrome *reader, const struct chrome_batch *batch, size_t bytes);

/* Like reducer_chrome_feed() without a copy where none is needed. The text is not changed. */
int chrome_reader_feed_block(struct reducer_chrome *reader, char *text, size_t bytes);

/* Feeds all of `input`, unpacked and parsed ahead by `threads` threads, the calling one among them. */
int chrome_blocks_read(struct reducer_chrome *reader, struct reducer_input *input, unsigned threads);

#endif
