/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobsim.h: a training job in simulated time, as a script says (jobscript.h): for each ring what can be read
 * in it from when on, and what happens besides. No clock is read; the same script makes the same job.
 *
 * Times are ns of the job's own steady clock from JOBSIM_BEGIN_NS on. A "clock" statement changes what they are
 * told as, see jobsim_told().
 */
#ifndef TESTS_JOBSIM_H
#define TESTS_JOBSIM_H

#include "jobscript.h"

enum {
	JOBSIM_RINGS_MAX = 128,
	JOBSIM_NAMES_MAX = 64,
	JOBSIM_MOMENTS_MAX = 1 << 21, /* of one ring */
	JOBSIM_WORLD_MAX = 256,
	JOBSIM_MAIN_TRACK = 1,
	JOBSIM_DEVICE_TRACK = 2
};

#define JOBSIM_BEGIN_NS INT64_C(1700000000000000000)

enum jobsim_what {
	JOBSIM_EVENT = 1,
	JOBSIM_CLOSED,  /* the ring's process has ended with a mark */
	JOBSIM_CRASHED, /* … without one */
	/* Of the world: */
	JOBSIM_CAPTURE, /* start .. end of one of our captures; told at its begin, and again at its end */
	JOBSIM_CLOCK,   /* from at_ns on times are told `end_ns` later */
	JOBSIM_STOPPED, /* the daemon reads nothing from at_ns until end_ns */
	JOBSIM_GONE,    /* … and begins from what it saved */
	JOBSIM_ANEW     /* … and begins with nothing */
};

/* An event as it is in a ring, or something of the world. */
struct jobsim_moment {
	int64_t at_ns; /* from when on it can be read */
	enum jobsim_what what;
	uint8_t kind;  /* enum drec_kind */
	uint16_t mark; /* enum drec_mark */
	uint32_t track, name;
	int64_t start_ns, end_ns;
	uint64_t id;
	double value;
};

struct jobsim_ring {
	uint32_t source, rank; /* rank UINT32_MAX: the host's */
	int life;
	struct jobsim_moment *moment; /* by at_ns */
	size_t count, room;
	struct jobsim_moment hangs_in; /* a span that never ends; kind 0 = none */
};

/* A step as it was. Of the phases' own steps nothing is kept. */
struct jobsim_step {
	int64_t step;
	int life;
	int64_t begin_ns;
	int64_t end_ns; /* INT64_MAX: it never ended */
	int64_t next_ns; /* when the next one began; INT64_MAX: there was none */
};

struct jobsim {
	const struct jobscript *script;
	struct jobsim_ring ring[JOBSIM_RINGS_MAX];
	unsigned n_rings;
	struct jobsim_moment world[JOBSIM_WORLD_MAX]; /* by at_ns */
	unsigned n_world;
	char name[JOBSIM_NAMES_MAX][JOBSCRIPT_NAME_MAX]; /* ids are indexes + 1 */
	unsigned n_names;
	struct jobsim_step *step;
	size_t n_steps, steps_room;
	int64_t end_ns; /* when watching ends */
};

/* 0, or -errno: -E2BIG where the script makes more than there is room for. Free it in either case. */
int jobsim_new(const struct jobscript *script, struct jobsim **ret_sim);
void jobsim_free(struct jobsim *sim);

/* What a time of the job is told as at `now_ns`. */
int64_t jobsim_told(const struct jobsim *sim, int64_t now_ns, int64_t ns);

/* A name of an id, NULL where there is none. */
const char *jobsim_name(const struct jobsim *sim, uint32_t id);

#endif
