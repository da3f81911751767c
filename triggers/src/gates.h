/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands between a claim and an incident, in this order: our own captures, warm-up, periodic memory,
 * severity (shadows), coalescing, same anomaly, cooldown, budgets. One verdict a claim; all state is bounded
 * and saved.
 *
 *  own capture   the span touches one of our captures, from one step before to two after it
 *  warm-up       the module says that the series is not known well enough
 *  periodic      two equal gaps between the last alarms of a series (within 2 samples or 0.5 %; from 100 on
 *                counting the start as one of them, from 400 on whatever else was in between) lower the
 *                severity by one, three by two; what falls below a note is kept out
 *  shadow        a note that its module only records
 *  coalescing    an incident still waits for its post window: the firing joins it
 *  same anomaly  its time meets an anomaly that has an incident (anomalies.h)
 *  cooldown      the same trigger (for steps latency_spike and difference are one) passed or joined less than
 *                60 s ago (warnings of steps: or 20 steps, 4 for one of 1.4 x, if that is less, but 2 s at
 *                least), at least as severe and about as bad: what exceeds the usual by a quarter more than
 *                the last one did passes. Not for a stall: it is still going on, and nothing else would ever
 *                tell of it
 *  budgets       at most 12 an hour and 48 a day; half of each only for critical firings, those by hand, and
 *                up to half of that half for shifts, which nothing would tell of again. Of the other half
 *                slow steps below 1.25 x the usual take at most a third, and below 1.4 x two thirds: a job
 *                that is noisy by nature must not spend what is wanted for the bad ones. They are counted by
 *                the engine's clock, from which a firing's own time may differ by a minute: else a producer
 *                that gives wrong times had no budget
 */
#ifndef TRIGGERS_GATES_H
#define TRIGGERS_GATES_H

#include "anomalies.h"
#include "module.h"

enum { TRIGGERS_CAPTURES_KEPT = 16, TRIGGERS_SPENT_MAX = 1024 };

/* How bad a claim is: what it may spend. */
enum triggers_weight {
	TRIGGERS_WEIGHT_SMALL,    /* a length below 1.25 x the usual */
	TRIGGERS_WEIGHT_MIDDLE,   /* below 1.4 x */
	TRIGGERS_WEIGHT_LARGE,    /* any other */
	TRIGGERS_WEIGHT_LASTING,  /* a shift: it goes on, and is told of once */
	TRIGGERS_WEIGHT_RESERVED, /* critical or by hand */
	TRIGGERS_WEIGHT_LIMIT
};

struct triggers_spent {
	int64_t at_ns;
	enum triggers_weight weight;
};

struct triggers_gates {
	int64_t now_ns;                          /* newest time seen */
	int64_t passed_ns[TRIGGERS_MODULES_MAX]; /* a module's last passed claim; INT64_MIN = none */
	int passed_severity[TRIGGERS_MODULES_MAX];
	double passed_excess[TRIGGERS_MODULES_MAX]; /* of graded ones: value over expected, less 1 */
	int waiting;                                /* an incident takes others in */
	int waiting_by_hand;
	int64_t waiting_ns;
	struct triggers_anomalies anomalies;
	uint32_t n_spent; /* of the last day, oldest first */
	struct triggers_spent spent[TRIGGERS_SPENT_MAX];
	uint32_t n_captures; /* so far; the last 16 are kept */
	struct triggers_interval capture[TRIGGERS_CAPTURES_KEPT];
};

void triggers_gates_init(struct triggers_gates *gates);
/* Lowers claim->severity where the periodic memory says so, and remembers what the verdict needs. */
enum triggers_gate triggers_gates_judge(struct triggers_gates *gates, const struct triggers_engine *engine,
					struct triggers_claim *claim);
void triggers_gates_capture(struct triggers_gates *gates, int64_t begin_ns, int64_t end_ns);
void triggers_gates_settled(struct triggers_gates *gates);
/* The stall of a series is over, in whatever way. */
void triggers_gates_ended(struct triggers_gates *gates, uint32_t series, int64_t now_ns);

void triggers_gates_save(const struct triggers_gates *gates, struct triggers_writer *writer);
void triggers_gates_restore(struct triggers_gates *gates, struct triggers_cursor *cursor);

#endif
