/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobscript.h: what happens to a training job, and which firings an operator wants to see of it, as text.
 *
 * One statement a line, "#" begins a comment, a number and its unit may be written together or apart.
 *
 *   the job      seed 7                        of all that is random
 *                ranks 4                       that wait for each other in every step
 *                steps 400                     then it ends
 *                step 1 s jitter 0.5 %         the usual step, and how much it varies
 *                span load 80 ms jitter 5 %    at the beginning of each step, one after the other
 *                between 5 ms                  steps
 *                quantum 10 ms                 steps last a multiple of this
 *                device 0 duty 95              counter device:0:duty_cycle at 1 Hz from the host's ring
 *                run on 60 s                   how long is watched after the last event
 *
 *   when         at step 120, 135 :            (once each; what is no part of a step comes after it)
 *                every 100 steps : | every 8 steps from 40 to 80 :
 *                from step 300 : | from step 300 to 340 :
 *                one in 50 steps :             at random
 *                at start :                    before the first step of every life of the job
 *   and whom     at step 120 rank 2 :
 *   what         longer 20 s [jitter 10 %] [in load] [idle]    idle: the devices do nothing meanwhile
 *                stopped 20 s [after 310 ms]   whatever the step is doing then
 *                never ends [after 310 ms]
 *                times 1.12 | ramp 0.2 %       of the usual step; more so every step
 *                phase checkpoint 40 s [jitter 5 %] [uneven 5 %] [inside]
 *                                              uneven: not the same on all ranks
 *                phase eval 20 steps of 300 ms     half of each in the first of the spans
 *                pause 40 s                    between steps, with no mark
 *                capture 2 steps times 1.5     one of our own
 *                clock -1 h                    from now on all times are told so
 *                crash [after 310 ms] [again at step 300 in 90 s]
 *                close [again at step 300 in 90 s]
 *                daemon stopped 20 s | daemon gone 20 s | daemon anew 20 s
 *                           it goes on; it begins from what it saved; it has lost that and reads all again
 *
 *   wanted       expect critical stall [of SERIES] [phase P] [step 120] [after step 120] [rank 2] [life 2]
 *                       [t0 310 ms within 60 ms]   from the begin of that step
 *                       [detected 4 s]             at most so long after t0
 *                       [resolved | unresolved] [3 times | some times | any times]
 *                expect coalesced critical stall …   held back by that gate
 *                expect held critical stall …        by any gate
 *                expect at most 12 incidents         not counting those that joined one
 *                expect nothing
 *
 * Every wanted firing must come, once where no number is given. And every firing that made an incident, or that
 * warns or is critical and was held back, must be wanted. What is only recorded (shadows) is not looked at.
 */
#ifndef TESTS_JOBSCRIPT_H
#define TESTS_JOBSCRIPT_H

#include <stddef.h>
#include <stdint.h>

enum {
	JOBSCRIPT_BYTES_MAX = 1 << 16,
	JOBSCRIPT_SPANS_MAX = 8,
	JOBSCRIPT_RULES_MAX = 32,
	JOBSCRIPT_WANTED_MAX = 32,
	JOBSCRIPT_PLACES_MAX = 16,
	JOBSCRIPT_NAME_MAX = 64,
	JOBSCRIPT_RANKS_MAX = 16,
	JOBSCRIPT_STEPS_MAX = 100000,
	JOBSCRIPT_ALL = -1,  /* ranks */
	JOBSCRIPT_HELD = -1 /* gates, but for the one that lets pass */
};

enum jobscript_when { JOBSCRIPT_AT = 1, JOBSCRIPT_EVERY, JOBSCRIPT_FROM, JOBSCRIPT_RANDOM, JOBSCRIPT_START };

enum jobscript_what {
	JOBSCRIPT_LONGER = 1,
	JOBSCRIPT_STOPPED,
	JOBSCRIPT_HANG,
	JOBSCRIPT_TIMES,
	JOBSCRIPT_RAMP,
	JOBSCRIPT_PHASE,
	JOBSCRIPT_PAUSE,
	JOBSCRIPT_CAPTURE,
	JOBSCRIPT_CLOCK,
	JOBSCRIPT_CRASH,
	JOBSCRIPT_CLOSE,
	JOBSCRIPT_DAEMON_STOPPED,
	JOBSCRIPT_DAEMON_GONE,
	JOBSCRIPT_DAEMON_ANEW
};

struct jobscript_span {
	char name[JOBSCRIPT_NAME_MAX];
	int64_t ns, jitter_ppm;
};

struct jobscript_rule {
	enum jobscript_when when;
	int64_t place[JOBSCRIPT_PLACES_MAX]; /* steps of "at" */
	unsigned n_places;
	int64_t period, from, to; /* of "every", "from", "one in" */
	int rank;
	enum jobscript_what what;
	int64_t ns, jitter_ppm, uneven_ppm, ppm; /* ppm: of "times", "ramp" */
	int64_t after_ns;            /* -1 = not said */
	char name[JOBSCRIPT_NAME_MAX];
	int idle, inside;
	int64_t count, each_ns; /* "20 steps of 300 ms", "capture 2 steps" */
	int64_t again_step, again_ns; /* -1 = never */
};

struct jobscript_wanted {
	unsigned line;
	int severity, gate; /* as enum triggers_severity, triggers_gate */
	char trigger[JOBSCRIPT_NAME_MAX], series[JOBSCRIPT_NAME_MAX], phase[JOBSCRIPT_NAME_MAX];
	int64_t step, after_step; /* -1 = any */
	int rank, life;           /* -1 = any */
	int64_t t0_ns, within_ns; /* within -1 = not said */
	int64_t detected_ns;      /* -1 = any */
	int resolved;             /* -1 = any */
	unsigned least, most;
};

struct jobscript {
	char path[512];
	uint64_t seed;
	int ranks;
	int64_t steps;
	int64_t step_ns, jitter_ppm, between_ns, quantum_ns, run_on_ns;
	struct jobscript_span span[JOBSCRIPT_SPANS_MAX];
	unsigned n_spans;
	int device;        /* -1 = none */
	int64_t duty_ppm;  /* of 1, so 95 is 95000000 */
	struct jobscript_rule rule[JOBSCRIPT_RULES_MAX];
	unsigned n_rules;
	struct jobscript_wanted wanted[JOBSCRIPT_WANTED_MAX];
	unsigned n_wanted;
	int nothing; /* "expect nothing" */
	int64_t incidents_most; /* "expect at most 12 incidents", -1 = not said */
};

/* Reads a script. 0, or -errno with "PATH:LINE: what is wrong" in `why`; *ret is then not to be used. */
int jobscript_read(const char *path, struct jobscript *ret, char *why, size_t why_room);

#endif
