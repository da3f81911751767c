/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the detectors cost with everything on: 10,000 series that may all fire, as a host of 64 ranks has
 * them. In one round every rank does a step: its step opens, its spans, counters, own work and tracks tell
 * one sample each, every tenth round its phases too, and the step ends; then time passes. Values wander by 1
 * %, one in 4096 is three times as long, so what happens on an alarm is part of it. A rule watches every
 * counter.
 *
 * Each kind is also measured for itself. The tick is the one that looks at every deadline, with all 10,000
 * open; a tick before the next deadline is one comparison.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include <triggers/triggers.h>

#include "bench.h"

enum {
	SERIES = 10000,
	RANKS = 64,
	WARM_ROUNDS = 300, /* fills the largest window */
	ROUNDS = 100,
	TAKES = 3,
	TICKS = 200,
	SIZED = 256, /* series of a kind whose memory is taken */
	EVERY_PHASE = 10
};
#define SECOND_NS INT64_C(1000000000)
#define STEP_NS   (SECOND_NS / 2)

/* A rank's series of one kind. */
static const struct kind {
	enum triggers_role role;
	const char *name;
	unsigned a_rank;
} kinds[] = {
	{TRIGGERS_STEP, "step", 1},        {TRIGGERS_PHASE, "phase", 2}, {TRIGGERS_SPAN, "span", 100},
	{TRIGGERS_COUNTER, "counter", 40}, {TRIGGERS_BUSY, "busy", 8},   {TRIGGERS_TRACK, "track", 5},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

struct load {
	struct triggers_engine *engine;
	uint32_t id[SERIES];
	enum triggers_role role[SERIES];
	unsigned rank[SERIES];
	unsigned count;
	int64_t now_ns;
	int64_t step;
	uint64_t random, firings;
};

static void on_firing(void *context, const struct triggers_firing *firing, enum triggers_gate gate)
{
	struct load *load = context;
	(void)firing;
	load->firings += gate == TRIGGERS_PASSED;
}

static uint64_t next_random(struct load *load)
{
	load->random ^= load->random << 13;
	load->random ^= load->random >> 7;
	load->random ^= load->random << 17;
	return load->random;
}

static int add_series(struct load *load, const struct kind *kind, unsigned rank, unsigned number)
{
	char name[32];
	struct triggers_series_key key = {.role = kind->role,
					  .source = rank,
					  .rank = rank,
					  .job = 1,
					  .track = number,
					  .name = name,
					  .alarms = 1};
	snprintf(name, sizeof(name), "%s%u", kind->role == TRIGGERS_COUNTER ? "device:" : kind->name, number);
	if (kind->role == TRIGGERS_BUSY)
		key.group = number % 2 ? "compute" : "stream";
	uint32_t id = triggers_engine_series(load->engine, &key);
	if (id == TRIGGERS_SERIES_NONE || load->count == SERIES)
		return -ENOMEM;
	load->id[load->count] = id;
	load->role[load->count] = kind->role;
	load->rank[load->count++] = rank;
	return 0;
}

static int load_new(const char *window, struct load **ret_load)
{
	char error[256];
	struct load *load = calloc(1, sizeof(*load));
	if (!load)
		return -ENOMEM;
	load->random = 0x9e3779b97f4a7c15u;
	load->now_ns = 1700000000 * SECOND_NS;
	const struct triggers_listener listener = {.context = load, .firing = on_firing};
	int ret = triggers_engine_new(&listener, &load->engine);
	if (ret == 0)
		ret = triggers_engine_set(load->engine, "latency_spike.window", window, error, sizeof(error));
	if (ret == 0)
		ret = triggers_engine_set(load->engine, "threshold", "device:* > 1000000000 for 10 s", error,
					  sizeof(error));
	if (ret < 0) {
		triggers_engine_free(load->engine);
		free(load);
		return ret;
	}
	*ret_load = load;
	return 0;
}

static void load_free(struct load *load)
{
	if (!load)
		return;
	triggers_engine_free(load->engine);
	free(load);
}

/* All ranks with all kinds, or `only` one kind of 10,000 series; what is missing to 10,000 are more spans. */
static int fill(struct load *load, const struct kind *only)
{
	int ret = 0;
	if (only)
		for (unsigned i = 0; ret == 0 && i < SERIES; i++)
			ret = add_series(load, only, i % RANKS, i / RANKS);
	for (unsigned rank = 0; !only && rank < RANKS; rank++)
		for (unsigned i = 0; i < KINDS; i++)
			for (unsigned n = 0; ret == 0 && n < kinds[i].a_rank; n++)
				ret = add_series(load, &kinds[i], rank, n);
	for (unsigned n = 0; ret == 0 && load->count < SERIES; n++)
		ret = add_series(load, &kinds[2], n % RANKS, 1000 + n);
	return ret;
}

static int64_t length(struct load *load, int64_t usual_ns)
{
	uint64_t random = next_random(load);
	int64_t ns = usual_ns - usual_ns / 100 + (int64_t)(random % (uint64_t)(usual_ns / 50));
	return random >> 52 == 0 ? 3 * ns : ns;
}

static int is_open_kind(enum triggers_role role)
{
	return role == TRIGGERS_STEP || role == TRIGGERS_PHASE;
}

/* What one series tells in a round; returns how many samples. */
static unsigned tell(struct load *load, unsigned i)
{
	enum triggers_role role = load->role[i];
	struct triggers_sample sample = {
		.start_ns = load->now_ns + STEP_NS / 8, .step = load->step, .sample = -1};
	switch (role) {
	case TRIGGERS_STEP:
		sample.duration_ns = length(load, STEP_NS / 2);
		break;
	case TRIGGERS_PHASE:
		if (load->step % EVERY_PHASE)
			return 0;
		sample.start_ns = load->now_ns + STEP_NS - STEP_NS / 16;
		sample.duration_ns = length(load, STEP_NS / 32);
		break;
	case TRIGGERS_SPAN:
	case TRIGGERS_BUSY:
		sample.duration_ns = length(load, STEP_NS / 4);
		break;
	case TRIGGERS_COUNTER:
		sample.value = (double)length(load, 1000000);
		break;
	case TRIGGERS_TRACK:
		triggers_engine_progress(load->engine, load->id[i], load->now_ns + STEP_NS / 2);
		return 1;
	}
	if (is_open_kind(role))
		triggers_engine_open(load->engine, load->id[i], sample.start_ns, load->step, NULL);
	triggers_engine_observe(load->engine, load->id[i], &sample);
	return 1;
}

static uint64_t run(struct load *load, unsigned rounds)
{
	uint64_t samples = 0;
	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned i = 0; i < load->count; i++)
			samples += tell(load, i);
		load->now_ns += STEP_NS;
		load->step++;
		/* As the daemon: 20 times a second. */
		for (int tick = 0; tick < 10; tick++)
			triggers_engine_tick(load->engine, load->now_ns + tick * (STEP_NS / 10));
		triggers_engine_settled(load->engine, load->now_ns);
	}
	return samples;
}

/* Samples a second, the best of some; -errno. */
static int speed(const struct kind *only, double *ret_speed)
{
	struct load *load = NULL;
	int ret = load_new("128", &load);
	if (ret == 0)
		ret = fill(load, only);
	*ret_speed = 0;
	if (ret == 0)
		run(load, WARM_ROUNDS / 2);
	for (int i = 0; ret == 0 && i < TAKES; i++) {
		int64_t begin = bench_ns();
		uint64_t samples = run(load, only ? ROUNDS / 4 : ROUNDS);
		double one = (double)samples * 1e9 / (double)(bench_ns() - begin);
		*ret_speed = one > *ret_speed ? one : *ret_speed;
	}
	load_free(load);
	return ret;
}

/* Memory a series of the kind that takes most, its share of the sources included. */
static int bytes_a_series(const char *window, double *ret_bytes)
{
	*ret_bytes = 0;
	for (unsigned i = 0; i < KINDS; i++) {
		struct load *load = NULL;
		int ret = load_new(window, &load);
		size_t before = mallinfo2().uordblks;
		for (unsigned n = 0; ret == 0 && n < SIZED; n++)
			ret = add_series(load, &kinds[i], n % 8, n / 8);
		if (ret == 0)
			run(load, kinds[i].role == TRIGGERS_PHASE ? WARM_ROUNDS * 3 : WARM_ROUNDS);
		double bytes = (double)(mallinfo2().uordblks - before) / SIZED;
		*ret_bytes = bytes > *ret_bytes ? bytes : *ret_bytes;
		load_free(load);
		if (ret < 0)
			return ret;
	}
	return 0;
}

/* us for a look at 10,000 open series. */
static int tick(double *ret_us)
{
	static const struct kind tracks = {TRIGGERS_TRACK, "track", 0}, phase = {TRIGGERS_PHASE, "phase", 0};
	struct load *load = NULL;
	int ret = load_new("128", &load);
	if (ret == 0)
		ret = add_series(load, &phase, RANKS, 0);
	for (unsigned i = 0; ret == 0 && load->count < SERIES; i++)
		ret = add_series(load, &tracks, i % RANKS, i / RANKS);
	*ret_us = 0;
	if (ret == 0)
		run(load, WARM_ROUNDS / 10);
	for (int i = 0; ret == 0 && i < TICKS; i++) {
		/* A phase that ends has every deadline looked at again. */
		triggers_engine_open(load->engine, load->id[0], load->now_ns, -1, NULL);
		triggers_engine_abandon(load->engine, load->id[0]);
		int64_t begin = bench_ns();
		triggers_engine_tick(load->engine, load->now_ns);
		double us = (double)(bench_ns() - begin) / 1e3;
		*ret_us = i == 0 || us < *ret_us ? us : *ret_us;
	}
	load_free(load);
	return ret;
}

int bench_triggers(void)
{
	double value;
	int ret = speed(NULL, &value);
	if (ret == 0)
		bench_print(&(struct bench_figure){"triggers", value / 1e3, "k samples/s", 0, 200});
	for (unsigned i = 0; ret == 0 && i < KINDS; i++) {
		char name[32];
		snprintf(name, sizeof(name), "triggers_%s", kinds[i].name);
		ret = speed(&kinds[i], &value);
		if (ret == 0)
			bench_print(&(struct bench_figure){name, value / 1e3, "k samples/s", 0, 0});
	}
	if (ret == 0)
		ret = tick(&value);
	if (ret == 0)
		bench_print(&(struct bench_figure){"triggers_tick_of_10000", value, "us", 0, 0});
	if (ret == 0)
		ret = bytes_a_series("128", &value);
	if (ret == 0)
		bench_print(&(struct bench_figure){"triggers_bytes_a_series", value, "B", 0, 4096});
	if (ret == 0)
		ret = bytes_a_series("256", &value);
	if (ret == 0)
		bench_print(&(struct bench_figure){"triggers_bytes_a_series_largest_window", value, "B", 0,
						   4096});
	return ret;
}
