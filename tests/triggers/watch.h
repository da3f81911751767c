/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the triggers share: an engine whose firings are written down, and short ways to feed it.
 * Header-only, so that a test stays one program.
 */
#ifndef TESTS_TRIGGERS_WATCH_H
#define TESTS_TRIGGERS_WATCH_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <triggers/triggers.h>

#include "support.h"

#define MS INT64_C(1000000)
#define S  INT64_C(1000000000)

enum { WATCH_KEPT = 256 };

struct watch {
	struct triggers_engine *engine;
	struct triggers_firing firing[WATCH_KEPT]; /* the first ones, whatever the gate */
	enum triggers_gate gate[WATCH_KEPT];
	unsigned n, passed, by_gate[TRIGGERS_GATE_LIMIT];
	unsigned over, suspicions, suspicion_ends;
	struct triggers_firing last_passed, last_over;
	int64_t suspected_from_ns;
	uint64_t digest; /* of every firing and its gate, in order */
	int64_t now_ns;
	const char *only; /* firings of this trigger alone are written down; NULL = of all */
};

static inline void watch_digest(struct watch *watch, const void *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		watch->digest = (watch->digest ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
}

static inline void watch_firing(void *context, const struct triggers_firing *firing, enum triggers_gate gate)
{
	struct watch *watch = context;
	if (watch->only && strcmp(watch->only, firing->trigger) != 0)
		return;
	if (watch->n < WATCH_KEPT) {
		watch->firing[watch->n] = *firing;
		watch->gate[watch->n] = gate;
	}
	watch->n++;
	watch->by_gate[gate]++;
	watch_digest(watch, firing->trigger, strlen(firing->trigger));
	watch_digest(watch, firing->evidence, strlen(firing->evidence));
	watch_digest(watch, &firing->t0_ns, sizeof(firing->t0_ns));
	watch_digest(watch, &firing->severity, sizeof(firing->severity));
	watch_digest(watch, &gate, sizeof(gate));
	if (gate == TRIGGERS_PASSED) {
		watch->passed++;
		watch->last_passed = *firing;
	}
}

static inline void watch_over(void *context, const struct triggers_firing *firing, int64_t now_ns)
{
	struct watch *watch = context;
	watch->over++;
	watch->last_over = *firing;
	watch_digest(watch, &now_ns, sizeof(now_ns));
}

static inline void watch_suspicion(void *context, uint32_t series, uint32_t source, int64_t from_ns)
{
	struct watch *watch = context;
	(void)series, (void)source;
	watch->suspicions++;
	watch->suspected_from_ns = from_ns;
}

static inline void watch_suspicion_end(void *context, uint32_t series, uint32_t source)
{
	(void)series, (void)source;
	((struct watch *)context)->suspicion_ends++;
}

static inline void watch_begin(struct watch *watch)
{
	*watch = (struct watch){.now_ns = 1000 * S, .digest = 0xcbf29ce484222325u};
	struct triggers_listener listener = {watch, watch_firing, watch_over, watch_suspicion,
					     watch_suspicion_end};
	assert_ok(triggers_engine_new(&listener, &watch->engine));
}

static inline void watch_end(struct watch *watch)
{
	triggers_engine_free(watch->engine);
}

/* An engine's state, to be freed; one byte less of room is refused. */
static inline void *watch_saved(const struct triggers_engine *engine, size_t *ret_bytes)
{
	int64_t bytes = triggers_engine_save(engine, NULL, 0);
	ck_assert_int_gt(bytes, 0);
	void *state = malloc((size_t)bytes);
	ck_assert_ptr_nonnull(state);
	ck_assert_int_eq(triggers_engine_save(engine, state, (size_t)bytes - 1), -ENOSPC);
	ck_assert_int_eq(triggers_engine_save(engine, state, (size_t)bytes), bytes);
	*ret_bytes = (size_t)bytes;
	return state;
}

/* Saves one engine and restores the other, a new one, from it. */
static inline void watch_hand_over(const struct triggers_engine *from, struct triggers_engine *to)
{
	size_t bytes;
	void *state = watch_saved(from, &bytes);
	assert_ok(triggers_engine_restore(to, state, bytes));
	free(state);
}

/* What a daemon's restart does. Options are the new engine's defaults. */
static inline void watch_restart(struct watch *watch)
{
	struct triggers_listener listener = {watch, watch_firing, watch_over, watch_suspicion,
					     watch_suspicion_end};
	struct triggers_engine *next;
	assert_ok(triggers_engine_new(&listener, &next));
	watch_hand_over(watch->engine, next);
	triggers_engine_free(watch->engine);
	watch->engine = next;
}

static inline void watch_set(struct watch *watch, const char *key, const char *value)
{
	char error[200] = "";
	int result = triggers_engine_set(watch->engine, key, value, error, sizeof(error));
	ck_assert_msg(result == 0, "%s = %s: %s", key, value, error);
}

static inline uint32_t watch_series(struct watch *watch, enum triggers_role role, uint32_t source,
				    const char *name)
{
	struct triggers_series_key key = {
		.role = role, .source = source, .rank = source, .job = 7, .track = 1, .name = name, .alarms = 1};
	uint32_t id = triggers_engine_series(watch->engine, &key);
	ck_assert_uint_ne(id, TRIGGERS_SERIES_NONE);
	return id;
}

/* A sample that begins now; now moves to its end. */
static inline void watch_sample(struct watch *watch, uint32_t series, int64_t duration_ns, const char *phase)
{
	struct triggers_sample sample = {.start_ns = watch->now_ns,
					 .duration_ns = duration_ns,
					 .step = -1,
					 .phase = phase,
					 .sample = -1};
	triggers_engine_observe(watch->engine, series, &sample);
	watch->now_ns += duration_ns;
}

/* Time passes as live: 20 ticks a second. */
static inline void watch_ticks(struct watch *watch, int64_t duration_ns)
{
	for (int64_t end_ns = watch->now_ns + duration_ns; watch->now_ns < end_ns;) {
		int64_t left_ns = end_ns - watch->now_ns;
		watch->now_ns += left_ns < 50 * MS ? left_ns : 50 * MS;
		triggers_engine_tick(watch->engine, watch->now_ns);
	}
}

/* A whole step: begin, time, end. */
static inline void watch_step(struct watch *watch, uint32_t series, int64_t step, int64_t duration_ns)
{
	int64_t start_ns = watch->now_ns;
	triggers_engine_open(watch->engine, series, start_ns, step, NULL);
	watch_ticks(watch, duration_ns);
	struct triggers_sample sample = {
		.start_ns = start_ns, .duration_ns = duration_ns, .step = step, .sample = step};
	triggers_engine_observe(watch->engine, series, &sample);
}

/* A duration of `ns` with a noise of +-0.5 %. */
static inline int64_t watch_noise(int64_t ns)
{
	return ns + (int64_t)test_random_below((uint64_t)ns / 100) - ns / 200;
}

static inline void watch_steady(struct watch *watch, uint32_t series, int n, int64_t duration_ns)
{
	for (int i = 0; i < n; i++)
		watch_sample(watch, series, watch_noise(duration_ns), NULL);
}

#endif
