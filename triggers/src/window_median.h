/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last values of a series with their median and MAD: in order of arrival, and their places in order of
 * size.
 *
 * Values are floats: 24 bits tell 1 part in 16 million, a thousand times finer than the steadiest step time.
 * A place is one byte, so a window of 256 takes 1,280 bytes.
 * Insert costs two binary searches and one memmove of at most 256 bytes; the median is O(1); the MAD walks
 * outward from the median with two pointers, O(n/2).
 */
#ifndef TRIGGERS_WINDOW_MEDIAN_H
#define TRIGGERS_WINDOW_MEDIAN_H

#include <stddef.h>
#include <stdint.h>

#include "save.h"

enum { TRIGGERS_WINDOW_MAX = 256 };

struct triggers_window {
	uint16_t capacity;
	uint16_t count;
	uint16_t next;    /* where the next value goes in `ring` */
	uint16_t alarmed; /* how many of the kept values alarmed */
	uint64_t alarm_bits[TRIGGERS_WINDOW_MAX / 64];
	float *ring;    /* capacity values, memory of the owner */
	uint8_t *order; /* places in the ring, of the lowest value first */
};

#define TRIGGERS_WINDOW_BYTES(capacity) ((size_t)(capacity) * (sizeof(float) + sizeof(uint8_t)))

/* `memory` has TRIGGERS_WINDOW_BYTES(capacity), aligned as floats are, and outlives the window. */
void triggers_window_init(struct triggers_window *window, void *memory, unsigned capacity);
/* Forgets all. */
void triggers_window_clear(struct triggers_window *window);
/* Takes a finite value in, the oldest out. `alarm`: a detector found it too high. */
void triggers_window_insert(struct triggers_window *window, float value, int alarm);
/* The mean of the two middle values where their number is even; 0 where empty. */
double triggers_window_median(const struct triggers_window *window);
/* 1.4826 x the ceil(n/2)-th smallest distance to the median. */
double triggers_window_deviation(const struct triggers_window *window);
/*
 * So many values alarmed, one in eight or one in twenty that are alike, that they are the series' nature, not
 * news.
 */
int triggers_window_bimodal(const struct triggers_window *window);
/* The median of the values that alarmed, taken as the highest ones; 0 where there is none. */
double triggers_window_upper(const struct triggers_window *window);
/* The longest value that is usual: that did not alarm, or the upper level where there are two. */
double triggers_window_longest_calm(const struct triggers_window *window);

/* In the order of arrival. What does not fit a smaller window on restore is forgotten, oldest first. */
void triggers_window_save(const struct triggers_window *window, struct triggers_writer *writer);
void triggers_window_restore(struct triggers_window *window, struct triggers_cursor *cursor);

#endif
