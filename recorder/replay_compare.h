/* SPDX-License-Identifier: Apache-2.0 */
/* replay_compare.h: what the same history says with other settings: "firings 1 -> 1, found 3.2 s earlier". */
#ifndef RECORDER_REPLAY_COMPARE_H
#define RECORDER_REPLAY_COMPARE_H

#include "replay.h"

enum { REPLAY_FOUND_MAX = 256 };

struct replay_found {
	char trigger[TRIGGERS_NAME_MAX];
	int64_t t0_ns, detected_ns;
};

/* Warnings and critical firings of one pass. */
struct replay_side {
	uint64_t warn, critical;
	unsigned n_found; /* the first of them */
	struct replay_found found[REPLAY_FOUND_MAX];
};

/* For struct replay: `fired`, with the side as its context. */
void replay_side_take(void *side, const struct triggers_firing *firing);

/* What the operand is about, where that is known: an incident's own firing, and the store that it lies in. */
struct replay_about {
	bool known;
	char trigger[TRIGGERS_NAME_MAX];
	int64_t t0_ns;
	char store[4096];
};

/* The same history with one and with the other settings. */
struct replay_sides {
	struct replay_side before, after;
	int64_t past_ns; /* so long is known of the time before the incident; 0 = nothing */
	struct replay_side past_before, past_after;
};

/* What an incident's store knows of the steps before it, with both settings; leaves `sides` alone where it
 * knows none. */
void replay_compare_past(const struct replay_about *about, const struct replay_settings *settings,
			 struct replay_sides *sides);

/* Writes it as a line to `out`. `name` is said before it where there are several operands; NULL = it is the
 * only one. */
void replay_compare(const struct replay_sides *sides, const struct replay_about *about, const char *name,
		    bool json, FILE *out);

#endif
