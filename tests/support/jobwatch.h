/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobwatch.h: a simulated job (jobsim.h) as the daemon watches it: through sources/series.c into the engine with
 * the default configuration, ring by ring 20 times a second, what is open told anew every 250 ms, an incident's post
 * window of two steps; and what of that a script wanted.
 */
#ifndef TESTS_JOBWATCH_H
#define TESTS_JOBWATCH_H

#include <stdbool.h>

#include <triggers/triggers.h>

#include "jobsim.h"

enum { JOBWATCH_FIRINGS_MAX = 4096 };

struct jobwatch_firing {
	struct triggers_firing firing;
	enum triggers_gate gate;
	int64_t resolved_ns; /* 0 = not */
	uint64_t poll;       /* in which it was said */
	bool wanted;
};

struct jobwatch_options {
	/*
	 * The daemon dies and begins from what it saved, while no time passes: after every so many polls (0 = never),
	 * or after each from `restart_from` on, so many times.
	 */
	unsigned restart_every;
	uint64_t restart_from;
	unsigned restart_times;
	const char *set_key, *set_value; /* one setting that is not the default's; NULL = none */
};

struct jobwatch {
	struct jobwatch_firing *firing;
	unsigned n, restarts;
	uint64_t events, polls; /* polls that found nothing to do are left out */
	bool overflow; /* more firings than are kept */
};

/* 0 or -errno. Free it in either case. */
int jobwatch_run(const struct jobsim *sim, const struct jobwatch_options *options, struct jobwatch *ret);
void jobwatch_free(struct jobwatch *watch);

/* Whether the firings are those that the script wants; else what is missing and too much, a line each. */
bool jobwatch_judge(const struct jobsim *sim, struct jobwatch *watch, char *why, size_t why_room);

/* The first difference between two runs: false with a sentence, true if there is none. */
bool jobwatch_same(const struct jobwatch *a, const struct jobwatch *b, const struct jobsim *sim, char *why,
		   size_t why_room);

/* A firing as a line, for people. */
const char *jobwatch_text(const struct jobsim *sim, const struct jobwatch_firing *fired, char *text, size_t room);

#endif
