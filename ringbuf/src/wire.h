/* SPDX-License-Identifier: Apache-2.0 */
/* The base record of an event as it lies in a chunk; see driverec/event.h. */
#ifndef RINGBUF_WIRE_H
#define RINGBUF_WIRE_H

#include <driverec/format.h>

struct event_base {
	uint16_t words;
	uint8_t kind;
	uint8_t flags;
	uint16_t lap;
	uint16_t category;
	uint32_t name;
	uint32_t track_depth;
	uint64_t start;
	uint64_t dur_or_value;
};
DREC_STATIC_ASSERT(sizeof(struct event_base) == 32, "layout");

#endif
