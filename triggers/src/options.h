/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every setting of the triggers in one table. A row is id, key, unit, default, lowest, highest, help; the
 * engine keeps the values as numbers in base units (seconds, steps, shares, "x"), indexed by id.
 */
#ifndef TRIGGERS_OPTIONS_H
#define TRIGGERS_OPTIONS_H

#include <stddef.h>

/* clang-format off */
#define TRIGGERS_OPTION_ROWS(ROW) \
	ROW(SPIKE_WINDOW, "latency_spike.window", "steps", "128", 16, 256, \
	    "how many of the last durations the running median is taken over") \
	ROW(SPIKE_WARN, "latency_spike.warn", "x", "1.5", 1.01, 1000, \
	    "times the running median from which a slow step or span is a warning") \
	ROW(SPIKE_CRITICAL, "latency_spike.critical", "x", "3", 1.01, 1000, \
	    "times the running median from which it is critical") \
	ROW(SPIKE_FLOOR, "latency_spike.floor", "%", "10 %", 0, 10, \
	    "share above the median below which nothing is said, however steady the series") \
	ROW(SPIKE_SIGMA, "latency_spike.sigma", "x", "6", 1, 100, \
	    "deviations (1.4826 x MAD) above the median below which nothing is said") \
	ROW(SPIKE_SPAN_MIN, "latency_spike.span_min", "s", "5 ms", 0, 3600, \
	    "a span (not a step) must be slower by at least this much") \
	ROW(STALL_FACTOR, "stall.factor", "x", "3", 1.05, 1000, \
	    "times the running median after which an open step is stalled") \
	ROW(STALL_MIN, "stall.min", "s", "1 s", 0.001, 86400, \
	    "nothing that lasts less than this is a stall") \
	ROW(STALL_FIRST, "stall.first_step_max", "s", "30 min", 1, 604800, \
	    "how long a first or compiling step, or one without a learned usual length, may take") \
	ROW(STALL_SUSPECT, "stall.suspect_at", "x", "1.2", 1.01, 100, \
	    "times the running median after which the beginning is kept in case it becomes a stall") \
	ROW(IDLE_BELOW, "device_idle.below", "%", "5 %", 0, 1, \
	    "a device less busy than this is idle") \
	ROW(IDLE_FOR, "device_idle.for", "steps or s", "2 steps", 0, 1000, \
	    "how long a device must be idle while a step is open") \
	ROW(IDLE_MIN, "device_idle.min", "s", "10 s", 0.001, 86400, \
	    "and at least so long") \
	ROW(SHIFT_ALERT, "shift.alert", "", "false", 0, 1, \
	    "tell the hooks of a lasting change: true or false") \
	ROW(STRAGGLER_RATIO, "straggler.ratio", "x", "1.25", 1.01, 1000, \
	    "times the peers' work from which a track is behind in a step") \
	ROW(STRAGGLER_OF, "straggler.of", "of", "3 of 5", 1, 64, \
	    "in how many of how many steps it must be behind") \
	ROW(STRAGGLER_ALERT, "straggler.alert", "", "false", 0, 1, \
	    "tell the hooks of a straggler: true or false") \
	ROW(DIFFERENCE_ORDER, "difference.order", "", "1", 0, 3, \
	    "of the differences: 0 a level, 1 a line, 2 a parabola, 3 a cubic through the block medians") \
	ROW(DIFFERENCE_BLOCK, "difference.block", "steps", "16", 4, 64, \
	    "how many values a block median is taken over") \
	ROW(DIFFERENCE_FLOOR, "difference.floor", "%", "12.5 %", 0, 10, \
	    "share above the extrapolation below which nothing is said") \
	ROW(CRASH_SEVERITY, "crash.severity", "", "note", 0, 2, \
	    "what a producer's end without a mark is: note, warn or critical") \
	ROW(MANUAL_SEVERITY, "manual.severity", "", "warn", 0, 2, \
	    "what an incident asked for by the job or an operator is: note, warn or critical") \
	ROW(GATE_WARMUP, "gates.warmup_steps", "steps", "16", 4, 256, \
	    "samples of a series before it may fire") \
	ROW(GATE_COOLDOWN, "gates.cooldown", "s", "60 s", 0, 86400, \
	    "how long the same trigger makes no second incident, unless it is more severe; after a slow step at " \
	    "most 20 steps") \
	ROW(GATE_COALESCE, "gates.coalesce", "s", "30 s", 0, 3600, \
	    "how long at most an incident takes later firings in while it waits for its post window") \
	ROW(GATE_HOUR, "gates.per_hour", "", "12", 1, 1000, "incidents an hour at most") \
	ROW(GATE_DAY, "gates.per_day", "", "48", 1, 1000, "incidents a day at most") \
	ROW(GATE_RESERVE, "gates.reserve_critical", "%", "50 %", 0, 1, \
	    "share of both budgets kept for critical firings, for incidents asked for by hand and, up to half of " \
	    "it, for shifts") \
	ROW(THRESHOLD, "threshold", "rule", "", 0, 0, \
	    "adds a rule PATTERN >|< LIMIT[UNIT] [for TIME] [note|warn|critical]; empty: removes all")
/* clang-format on */

#define TRIGGERS_OPTION_ID(id, key, unit, value, low, high, help) TRIGGERS_OPTION_##id,
enum triggers_option_id { TRIGGERS_OPTION_ROWS(TRIGGERS_OPTION_ID) TRIGGERS_OPTION_COUNT };
#undef TRIGGERS_OPTION_ID

/* What may be given in steps or as a time is the number of steps, or minus the seconds. */
/* "3 of 5" is the number 3 x TRIGGERS_OF_UNIT + 5. */
enum { TRIGGERS_OF_UNIT = 1000 };

/* A number in decimal, with the unit's suffix where it has one, in base units. -EINVAL if it is none. */
int triggers_option_parse(const char *text, const char *unit, double *ret_value);
/* The row of a key, or -ENOENT. */
int triggers_option_find(const char *key);
/* Fills all with their defaults. */
void triggers_option_defaults(double value[TRIGGERS_OPTION_COUNT]);
/* Checks text against row `id` and stores it. On -EINVAL `error` has a plain sentence. */
int triggers_option_set(double value[TRIGGERS_OPTION_COUNT], int id, const char *text, char *error,
			size_t error_room);

#endif
