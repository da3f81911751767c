/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reducer/bins.h: the binning core of the macro view, shared by the live tiers and by `reduce`.
 *
 *   reducer_bin    what is kept of the events of one row in one bin; folding two bins is associative, so a
 *                  coarse bin is the fold of its fine ones
 *   reducer_cover  which times are already busy: a set of disjoint ranges that gives the part of a new span
 *                  that is not covered yet, so that busy time is a union, exact to 1 ns
 *   reducer_nest   lays the spans of a track out by nesting depth; `reduce` lays whole files out with it too
 *
 * Times are Unix ns, or ns since whatever the caller likes; ranges are half open, [from, to).
 */
#ifndef REDUCER_BINS_H
#define REDUCER_BINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The row of a track that takes spans which overlap others of their depth without nesting. */
#define REDUCER_DEPTH_OVERFLOW 255

/* All zero is an empty bin. Which members mean something depends on what the row holds. */
struct reducer_bin {
	uint64_t count;        /* events that start in this bin */
	int64_t busy_ns;       /* spans: union length of this row's spans within the bin */
	int64_t track_busy_ns; /* spans: the part of it that no other row of the track had covered before;
				  the sum over a track's rows is the track's union length */
	int64_t sum_ns;        /* spans that start here: summed and longest duration, and the latter's name */
	int64_t longest_ns;
	uint32_t name;         /* of the longest span; instants: of the first one */
	int64_t first_ns;      /* instants: time of the first one */
	double min, max, last; /* counters */
	int64_t last_ns;       /* counters: time of `last` */
};

void reducer_bin_span(struct reducer_bin *bin, uint32_t name, int64_t duration_ns);
void reducer_bin_instant(struct reducer_bin *bin, uint32_t name, int64_t time_ns);
void reducer_bin_counter(struct reducer_bin *bin, int64_t time_ns, double value);

enum reducer_row_kind {
	REDUCER_ROW_SPANS = 1,
	REDUCER_ROW_INSTANTS = 2,
	REDUCER_ROW_COUNTER = 3,
	REDUCER_ROW_LIMIT
};

/* Adds what `from` holds to `into`; of equal last times `from` wins: give it the events that came later. */
void reducer_bin_fold(struct reducer_bin *into, const struct reducer_bin *from, enum reducer_row_kind kind);

struct reducer_range {
	int64_t from, to;
};

/*
 * Ranges ascend and neither overlap nor touch. When the set is full the earliest quarter is forgotten and
 * `horizon` moves on: what lies before it is reported as uncovered, and the caller should count it as in
 * doubt.
 */
struct reducer_cover {
	struct reducer_range *range;
	uint32_t count;
	uint32_t room;
	int64_t horizon; /* INT64_MIN while nothing was forgotten */
	bool late;       /* something came before the end of what was there */
};

/* -ENOMEM. `room` is at least 4. */
int reducer_cover_init(struct reducer_cover *cover, uint32_t room);
/* More room; never less. */
int reducer_cover_grow(struct reducer_cover *cover, uint32_t room);
void reducer_cover_clear(struct reducer_cover *cover);

/* Whether [from, to) shares time with the set. */
bool reducer_cover_meets(const struct reducer_cover *cover, int64_t from, int64_t to);

/* The first uncovered piece of [from, to). False if there is none. */
bool reducer_cover_gap(const struct reducer_cover *cover, int64_t from, int64_t to,
		       struct reducer_range *ret);

void reducer_cover_add(struct reducer_cover *cover, int64_t from, int64_t to);

enum { REDUCER_NEST_MAX = 64 };

/* All zero is an empty layout. */
struct reducer_nest {
	int64_t end[REDUCER_NEST_MAX];
	unsigned depth;
};

/*
 * The depth of a span among those placed before it, or REDUCER_DEPTH_OVERFLOW if it overlaps one without
 * nesting in it. Spans come in the order of their start; of equal starts the longer comes first.
 */
uint8_t reducer_nest_place(struct reducer_nest *nest, int64_t from, int64_t to);

/* The same with the caller's own stack: the ends of the spans that are open, `*depth` of at most `room`. */
uint8_t reducer_nest_place_in(int64_t *end, unsigned *depth, unsigned room, int64_t from, int64_t to);

#endif
