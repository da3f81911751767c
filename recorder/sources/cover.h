/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources/cover.h: the union of spans, as a short list of pieces in the order of time.
 *
 * Spans come about in the order of their ends, so a new one touches the last pieces alone: usually one or two. One that
 * encloses many replaces them by itself, and the sum stays exact however long the list was. Where the list is full every
 * two neighbours are joined to one piece that knows how much of it is covered.
 */
#ifndef RECORDER_SOURCES_COVER_H
#define RECORDER_SOURCES_COVER_H

#include <stdint.h>

enum { COVER_PIECES = 48 };
/* Farther times are taken for this, so that no difference overflows: 73 years from 1970. */
#define COVER_NS_MAX (INT64_C(1) << 61)

struct cover_piece {
	int64_t start_ns, end_ns;
	int64_t covered_ns; /* less than its length where it stands for several */
};

struct cover {
	uint32_t count;
	struct cover_piece piece[COVER_PIECES];
};

void cover_add(struct cover *cover, int64_t start_ns, int64_t end_ns);
/* How much of [from, to) is covered; a joined piece that crosses either end counts by its share. */
int64_t cover_within(const struct cover *cover, int64_t from_ns, int64_t to_ns);
/* Forgets all before `to_ns`. */
void cover_cut(struct cover *cover, int64_t to_ns);

#endif
