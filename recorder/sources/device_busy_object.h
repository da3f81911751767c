/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources/device_busy_object.h: the object behind device_busy.h, for its two parts.
 *
 *   device_busy_read.c   events of a capture: which device did what when, what the host waited in
 *   device_busy.c        once all is known: bins, and what is told of them in the order of time
 */
#ifndef RECORDER_SOURCES_DEVICE_BUSY_OBJECT_H
#define RECORDER_SOURCES_DEVICE_BUSY_OBJECT_H

#include <stdbool.h>
#include <stddef.h>

#include "device_busy.h"

#define BIN_MAX_NS       INT64_C(1000000000)
#define BIN_MIN_NS       INT64_C(100000000)
#define BUSY_TIME_MAX_NS (INT64_C(1) << 61)

enum { BUSY_NAMES_MAX = 256 };

struct device_piece {
	int64_t start_ns, end_ns;
	uint32_t what; /* of waits: number of the name */
};

struct device_pieces {
	struct device_piece *piece;
	size_t count, room;
};

struct device {
	int64_t number;
	uint32_t series;
	struct device_pieces spans;
	float *percent; /* a bin each */
};

/* What the names of processes and threads said of a track or group. */
enum device_line { LINE_UNKNOWN = 0, LINE_OTHER, LINE_STREAM, LINE_OPS };
struct device_named {
	uint64_t key;
	int64_t device; /* of groups: -1 = none */
	bool is_gpu;
	enum device_line line; /* of tracks */
};

struct device_named_table {
	struct device_named *named;
	size_t count, room;
	size_t last; /* found last: events come track by track */
};

struct device_step {
	uint32_t series;
	int64_t start_ns, end_ns, step;
};

struct device_busy {
	struct device device[DEVICE_BUSY_DEVICES_MAX];
	unsigned n_devices;
	struct device_named_table groups, tracks;
	struct device_pieces waits;
	char name[BUSY_NAMES_MAX][TRIGGERS_NAME_MAX];
	uint32_t n_names;
	struct device_step *steps;
	size_t n_steps, steps_room, next_step;
	int64_t last_ns; /* end of the capture */
	int64_t from_ns, bin_ns;
	size_t n_bins, next_bin;
	unsigned next_device;
	uint16_t *wait; /* of a bin: number + 1 of the name */
};

/* So that no difference of two times overflows. */
static inline int64_t device_busy_limited(int64_t ns)
{
	return ns > BUSY_TIME_MAX_NS ? BUSY_TIME_MAX_NS : ns < -BUSY_TIME_MAX_NS ? -BUSY_TIME_MAX_NS : ns;
}

#endif
