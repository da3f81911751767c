/* SPDX-License-Identifier: Apache-2.0 */
#include "window_median.h"

#include <string.h>

_Static_assert(TRIGGERS_WINDOW_MAX <= UINT8_MAX + 1, "a place is one byte");

void triggers_window_init(struct triggers_window *window, void *memory, unsigned capacity)
{
	window->capacity = (uint16_t)capacity;
	window->ring = memory;
	window->order = (uint8_t *)(window->ring + capacity);
	triggers_window_clear(window);
}

void triggers_window_clear(struct triggers_window *window)
{
	window->count = 0;
	window->next = 0;
	window->alarmed = 0;
	memset(window->alarm_bits, 0, sizeof(window->alarm_bits));
}

/* The i-th lowest. */
static float lowest(const struct triggers_window *window, unsigned i)
{
	return window->ring[window->order[i]];
}

/* The first in order[0, count) whose value is not below `value`. */
static unsigned lower_bound(const struct triggers_window *window, float value)
{
	unsigned low = 0, high = window->count;
	while (low < high) {
		unsigned middle = (low + high) / 2;
		if (lowest(window, middle) < value)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int alarm_get(const struct triggers_window *window, unsigned place)
{
	return (int)(window->alarm_bits[place / 64] >> (place % 64) & 1);
}

static void alarm_put(struct triggers_window *window, unsigned place, int alarm)
{
	uint64_t bit = UINT64_C(1) << (place % 64);
	if (alarm)
		window->alarm_bits[place / 64] |= bit;
	else
		window->alarm_bits[place / 64] &= ~bit;
}

/* Where in the order a place of the ring stands: among those of equal value. */
static unsigned find_place(const struct triggers_window *window, unsigned place)
{
	unsigned from = lower_bound(window, window->ring[place]);
	const uint8_t *found = memchr(window->order + from, (int)place, window->count - from);
	return found ? (unsigned)(found - window->order) : from;
}

void triggers_window_insert(struct triggers_window *window, float value, int alarm)
{
	uint8_t *order = window->order;
	unsigned place = window->next;
	unsigned to = lower_bound(window, value);
	if (window->count == window->capacity) {
		/* The oldest leaves its place; only what lies between the two moves. */
		unsigned from = find_place(window, place);
		if (from < to) {
			to--;
			memmove(order + from, order + from + 1, to - from);
		} else {
			memmove(order + to + 1, order + to, from - to);
		}
		window->alarmed = (uint16_t)(window->alarmed - alarm_get(window, place));
	} else {
		memmove(order + to + 1, order + to, window->count - to);
		window->count++;
	}
	order[to] = (uint8_t)place;
	window->ring[place] = value;
	alarm_put(window, place, alarm);
	window->alarmed = (uint16_t)(window->alarmed + (alarm != 0));
	window->next = (uint16_t)((place + 1) % window->capacity);
}

double triggers_window_median(const struct triggers_window *window)
{
	unsigned n = window->count;
	if (!n)
		return 0;
	if (n % 2)
		return (double)lowest(window, n / 2);
	return ((double)lowest(window, n / 2 - 1) + (double)lowest(window, n / 2)) / 2;
}

double triggers_window_deviation(const struct triggers_window *window)
{
	int n = window->count, high = n / 2, low = high - 1;
	double median = triggers_window_median(window), distance = 0;
	for (int taken = 0; taken < (n + 1) / 2; taken++) {
		double up = high < n ? (double)lowest(window, (unsigned)high) - median : -1;
		double down = low >= 0 ? median - (double)lowest(window, (unsigned)low) : -1;
		if (low < 0 || (high < n && up <= down)) {
			distance = up;
			high++;
		} else {
			distance = down;
			low--;
		}
	}
	return 1.4826 * distance;
}

int triggers_window_bimodal(const struct triggers_window *window)
{
	unsigned high = window->alarmed, n = window->count;
	if (high < 2 || high * 20 <= n)
		return 0;
	if (high * 8 >= n)
		return 1;
	/* Few: a level of their own only if the middle half of them is within a twentieth. */
	return lowest(window, n - 1 - high / 4) <= 1.05f * lowest(window, n - 1 - 3 * high / 4);
}

double triggers_window_upper(const struct triggers_window *window)
{
	if (!window->alarmed)
		return 0;
	return (double)lowest(window, window->count - 1u - window->alarmed / 2u);
}

double triggers_window_longest_calm(const struct triggers_window *window)
{
	float longest = 0;
	for (unsigned i = 0; i < window->count; i++)
		if (window->ring[i] > longest && !alarm_get(window, i))
			longest = window->ring[i];
	double upper = triggers_window_bimodal(window) ? triggers_window_upper(window) : 0;
	return upper > (double)longest ? upper : (double)longest;
}

void triggers_window_save(const struct triggers_window *window, struct triggers_writer *writer)
{
	unsigned at = window->count < window->capacity ? 0 : window->next;
	triggers_write_u16(writer, window->count);
	for (unsigned i = 0; i < window->count; i++, at = (at + 1) % window->capacity) {
		triggers_write_float(writer, window->ring[at]);
		triggers_write_u16(writer, window->alarm_bits[at / 64] >> (at % 64) & 1);
	}
}

void triggers_window_restore(struct triggers_window *window, struct triggers_cursor *cursor)
{
	unsigned count = triggers_read_u16(cursor);
	for (unsigned i = 0; i < count && !cursor->failed; i++) {
		float value = triggers_read_float(cursor);
		int alarm = triggers_read_u16(cursor) != 0;
		if (!cursor->failed)
			triggers_window_insert(window, value, alarm);
	}
}
