/* SPDX-License-Identifier: Apache-2.0 */
/* What inspect gathers (inspect.c) and prints (inspect_json.c). */
#ifndef REDUCER_INSPECT_STATE_H
#define REDUCER_INSPECT_STATE_H

#include <reducer/inspect.h>
#include <stdbool.h>

#include "json.h"

struct inspect_time {
	int64_t ns;
	uint16_t ps;
};

struct inspect_interval {
	int64_t start_ns, end_ns;
	uint16_t start_ps, end_ps;
};

struct inspect_track {
	char *name;
	uint64_t hash;
	uint64_t spans;
	struct inspect_time first, last, longest;
	char *longest_name; /* NULL: it had none */
	struct inspect_interval *interval;
	size_t n_intervals, room;
	unsigned __int128 busy_ps; /* once sorted */
};

struct inspect_name {
	uint64_t low, high; /* low is never 0 in use */
};

struct inspect_kind {
	char *name;
	uint64_t count;
};

struct reducer_inspect {
	uint64_t events;
	struct inspect_kind kind[REDUCER_INSPECT_KINDS_MAX];
	size_t n_kinds;
	struct inspect_name *names;
	size_t n_names, names_room;
	struct inspect_track **track;
	size_t n_tracks;
	uint32_t *track_index; /* index + 1 by hash; twice the room of `track` */
	size_t index_room;
	char *base;
	struct buffer key;
	bool sorted; /* tracks and kinds by name, busy_ps is right, track_index is void */
};

#endif
