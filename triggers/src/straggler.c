/* SPDX-License-Identifier: Apache-2.0 */
/*
 * straggler: one track does its own work of a step more slowly than the tracks that do the like work.
 *
 * Formula   x = a track's own work in a train step: the union of its spans without collectives and waits.
 *           (The length of a synchronous step is the same on all ranks, and the slow one waits the SHORTEST
 *           in its collectives.) A step is judged once all peers of the group have told of it (peers.h); the
 *           first 3 of a track are not.
 *           Roles: the like work may still come in classes: pipeline stages, tensor groups, two generations
 *           of device. Members are sorted by their own median m of the last 64 steps and parted where it
 *           grows by more than f. A part of two or more is a role; one that is alone belongs to the role
 *           below it, which makes it a straggler and no role. Without any role nobody is behind in it.
 *           Behind in role: x > M + max(4 s, (f - 1) M) with M the median of the others of the role,
 *           s = 1.4826 x MAD of the role in this step, f = 1.10; with fewer than 5 in the role there is no
 *           such median: then by 1.25 times the slowest of the others. Finds who is slow from the start.
 *           Behind by itself: u = x / m, u > U max(1.25, 1 + 6 d) with U the upper median of the others' u
 *           and d = 1.4826 x MAD of its own x, as a share. Cancels what slows all, and classes of speed. Of
 *           two, u > 1.25 as well. Either only if it costs 2 % of a step (1 ms where steps are not known).
 *           Fires when behind in role in 5 steps in a row, or by itself in 3 of the last 5; in all 5 where it
 *           was so more than once in the 59 before: work that varies by nature. Once an episode, which ends
 *           when it was behind in neither way, and less than half way to it in role, for 5 steps. t0 = the
 *           begin of the first of these steps. A warning.
 * State     1,120 bytes a series, and 208 as a member of its group (peers.h).
 * Cost      a step of n members: two sorts of n, one insert into a window of 64 each; about 0.3 us a sample.
 * Defaults  1.25, 3 of 5, W 64: on Alibaba's traces of jobs exactly the documented stragglers (1.15 gives
 *           four times as many episodes in a noisy one). 1.10 in a row of 5: real steps differ by 0.1-1.3 %,
 *           and 0.5 % of machines were 10 % slower in a published fleet. f follows straggler.ratio: 1 + 0.4
 *           (ratio - 1).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "module.h"
#include "peers.h"

enum {
	LEVEL_WINDOW = 64,
	GRACE_STEPS = 3, /* slow by nature */
	HISTORY_STEPS = 64,
	CHANCE = 1,     /* times behind by itself in the steps before that say nothing */
	MEDIAN_FROM = 5 /* members of a role from which a median says something */
};
#define ROLE_SIGMAS   4.0
#define ITSELF_SIGMAS 6.0
#define STEP_SHARE    0.02
#define LEAST_NS      1e6
_Static_assert(TRIGGERS_PEERS_MEMBERS_MAX <= 256, "what judge() keeps on its stack");

struct straggler_state {
	uint32_t skipped;
	uint32_t in_role;                /* steps in a row behind in its role */
	uint32_t back;                   /* steps in a row well within all limits */
	uint32_t fired;                  /* in an episode */
	uint64_t by_itself;              /* bit i: was so i steps ago */
	uint32_t steps;                  /* judged so far */
	int64_t start_ns[HISTORY_STEPS]; /* of the last ones, by number */
	double peers;                    /* median of the others in the last one */
	struct triggers_window level;
	float memory[2 * LEVEL_WINDOW];
};

/* One member in the step that is judged. */
struct view {
	struct triggers_series *series;
	struct straggler_state *state;
	struct triggers_peer_work work;
	double level;    /* its usual work */
	double relative; /* its work by that; 0 = not known well enough */
	double expected; /* by the rule that finds it behind */
	uint32_t others; /* that it is held against */
	int in_role, by_itself;
	int near; /* half way to being behind in role */
};

struct limits {
	double ratio, floor;
	uint32_t wanted, of;
};

static struct limits limits_of(const struct triggers_engine *engine)
{
	double both = triggers_engine_option(engine, TRIGGERS_OPTION_STRAGGLER_OF);
	double ratio = triggers_engine_option(engine, TRIGGERS_OPTION_STRAGGLER_RATIO);
	return (struct limits){.ratio = ratio,
			       .floor = 1 + 0.4 * (ratio - 1),
			       .wanted = (uint32_t)(both / TRIGGERS_OF_UNIT),
			       .of = (uint32_t)fmod(both, TRIGGERS_OF_UNIT)};
}

static int by_level(const void *a_, const void *b_)
{
	const struct view *a = a_, *b = b_;
	return a->level < b->level ? -1 : a->level > b->level;
}

static int by_value(const void *a_, const void *b_)
{
	const double *a = a_, *b = b_;
	return *a < *b ? -1 : *a > *b;
}

/* The upper median of `n` sorted values without one that is `own`. */
static double median_without(const double *sorted, uint32_t n, double own)
{
	uint32_t middle = (n - 1) / 2;
	return sorted[middle] < own ? sorted[middle] : sorted[middle + 1];
}

/* Whether so much more work is worth a word. */
static int matters(const struct view *view, double expected)
{
	double step_ns = (double)view->series->source->step_ns;
	return view->work.value - expected >= (step_ns > 0 ? STEP_SHARE * step_ns : LEAST_NS);
}

/* What the others did: of all, until a role says better. */
static void note_peers(struct view *view, uint32_t n)
{
	double sorted[TRIGGERS_PEERS_MEMBERS_MAX];
	for (uint32_t i = 0; i < n; i++)
		sorted[i] = view[i].work.value;
	qsort(sorted, n, sizeof(sorted[0]), by_value);
	for (uint32_t i = 0; i < n; i++)
		view[i].state->peers = median_without(sorted, n, view[i].work.value);
}

/* ---- in role ---- */

static double role_spread(const double *sorted, uint32_t n)
{
	double away[TRIGGERS_PEERS_MEMBERS_MAX], median = sorted[n / 2];
	for (uint32_t i = 0; i < n; i++)
		away[i] = fabs(sorted[i] - median);
	qsort(away, n, sizeof(away[0]), by_value);
	return 1.4826 * away[n / 2];
}

static void judge_role(struct view *view, uint32_t n, const struct limits *limits)
{
	double sorted[TRIGGERS_PEERS_MEMBERS_MAX];
	for (uint32_t i = 0; i < n; i++)
		sorted[i] = view[i].work.value;
	qsort(sorted, n, sizeof(sorted[0]), by_value);
	double spread = ROLE_SIGMAS * role_spread(sorted, n);
	for (uint32_t i = 0; i < n; i++) {
		double value = view[i].work.value, median = median_without(sorted, n, value);
		double slowest = value < sorted[n - 1] ? sorted[n - 1] : sorted[n - 2];
		double usual = n >= MEDIAN_FROM ? median : slowest;
		double margin = ((n >= MEDIAN_FROM ? limits->floor : limits->ratio) - 1) * usual;
		if (n >= MEDIAN_FROM && spread > margin)
			margin = spread;
		view[i].state->peers = median;
		view[i].others = n - 1;
		view[i].in_role = value > usual + margin && matters(&view[i], median);
		view[i].near = value > usual + margin / 2;
		if (view[i].in_role)
			view[i].expected = median;
	}
}

/* Members that are sorted by their levels: the end of the part that begins at `from`. */
static uint32_t part_end(const struct view *view, uint32_t from, uint32_t n, double floor)
{
	uint32_t end = from + 1;
	while (end < n && view[end].level <= floor * view[end - 1].level)
		end++;
	return end;
}

/*
 * Parts of one go with the role below; those before the first role with that one, where they are the fast
 * ones.
 */
static void judge_roles(struct view *view, uint32_t n, const struct limits *limits)
{
	uint32_t from = 0, at = 0;
	int has_role = 0;
	qsort(view, n, sizeof(*view), by_level);
	while (at < n) {
		uint32_t end = part_end(view, at, n, limits->floor);
		if (end - at > 1 && has_role) {
			judge_role(view + from, at - from, limits);
			from = at;
		}
		has_role |= end - at > 1;
		at = end;
	}
	if (has_role)
		judge_role(view + from, n - from, limits);
}

/* ---- by itself ---- */

static void judge_itself(struct view *view, uint32_t n, const struct limits *limits)
{
	double sorted[TRIGGERS_PEERS_MEMBERS_MAX];
	uint32_t known = 0;
	for (uint32_t i = 0; i < n; i++)
		if (view[i].relative > 0)
			sorted[known++] = view[i].relative;
	if (known < 2)
		return;
	qsort(sorted, known, sizeof(sorted[0]), by_value);
	for (uint32_t i = 0; i < n; i++) {
		double relative = view[i].relative;
		double others = relative > 0 ? median_without(sorted, known, relative) : relative;
		if (!(relative > limits->ratio * others) || (known == 2 && !(relative > limits->ratio)))
			continue;
		double noise =
			ITSELF_SIGMAS * triggers_window_deviation(&view[i].state->level) / view[i].level;
		double expected = others * view[i].level;
		view[i].by_itself = relative > (1 + noise) * others && matters(&view[i], expected);
		if (!view[i].by_itself)
			continue;
		view[i].expected = expected;
		view[i].others = known - 1;
	}
}

/* ---- episodes ---- */

static uint64_t last_steps(uint64_t bits, uint32_t of)
{
	return of < HISTORY_STEPS ? bits & ((UINT64_C(1) << of) - 1) : bits;
}

static int64_t begin_ns(const struct straggler_state *state, uint32_t steps_ago)
{
	return state->start_ns[(state->steps - 1 - steps_ago) % HISTORY_STEPS];
}

static const char *who(const struct triggers_series *series, char *text, size_t room)
{
	const char *name = strncmp(series->name, "busy:", 5) == 0 ? series->name + 5 : series->name;
	if (series->rank == UINT32_MAX)
		snprintf(text, room, "%s", name);
	else
		snprintf(text, room, "rank %u, %s,", series->rank, name);
	return text;
}

/* In how many of how many steps it was behind, by the rule that speaks. */
static uint32_t times_behind(const struct straggler_state *state, const struct limits *limits,
			     uint32_t *ret_of)
{
	int in_role = state->in_role >= limits->of;
	*ret_of = in_role ? state->in_role : limits->of;
	return in_role ? state->in_role
		       : (uint32_t)__builtin_popcountll(last_steps(state->by_itself, limits->of));
}

/* How many steps ago the first of those was that make it fire. */
static uint32_t first_behind(const struct straggler_state *state, const struct limits *limits)
{
	uint64_t behind = last_steps(state->by_itself, limits->of);
	uint32_t by_itself = behind ? 63 - (uint32_t)__builtin_clzll(behind) : 0;
	uint32_t in_role = state->in_role >= limits->of ? state->in_role - 1 : 0;
	uint32_t first = in_role > by_itself ? in_role : by_itself;
	return first < HISTORY_STEPS ? first : HISTORY_STEPS - 1;
}

static void say(struct triggers_claim *claim, const struct view *view, const struct limits *limits)
{
	const struct straggler_state *state = view->state;
	char name[2 * TRIGGERS_NAME_MAX], took[TRIGGERS_DURATION_TEXT], usual[TRIGGERS_DURATION_TEXT],
		peers[TRIGGERS_DURATION_TEXT];
	uint32_t of, times = times_behind(state, limits, &of);
	snprintf(claim->evidence, sizeof(claim->evidence),
		 "%s worked %s in step %lld, %.2f times the %s to expect of it (%u peer%s, median %s); "
		 "behind in %u of "
		 "the last %u steps",
		 who(view->series, name, sizeof(name)), triggers_duration_text(claim->value, took),
		 (long long)claim->step, claim->value / claim->expected,
		 triggers_duration_text(claim->expected, usual), view->others, view->others == 1 ? "" : "s",
		 triggers_duration_text(state->peers, peers), times, of);
}

static void fire(struct triggers_engine *engine, const struct view *view, int64_t number, int64_t now_ns,
		 const struct limits *limits)
{
	int64_t first_ns = begin_ns(view->state, first_behind(view->state, limits));
	struct triggers_claim claim = {
		.module = &triggers_module_straggler,
		.series = view->series,
		.severity = TRIGGERS_WARN,
		.t0_ns = first_ns < now_ns ? first_ns
					   : view->work.start_ns, /* the clock may have been set back */
		.until_ns = now_ns,
		.detected_ns = now_ns,
		.value = view->work.value,
		.expected = view->expected,
		.step = number,
		.sample = view->work.sample,
		.index = view->series->samples,
		.quiet = triggers_engine_option(engine, TRIGGERS_OPTION_STRAGGLER_ALERT) == 0,
	};
	say(&claim, view, limits);
	triggers_engine_fire(engine, &claim, NULL);
}

/*
 * Behind by itself often enough. For one that often is, now and then, so many in a few steps are chance: then
 * in all of them.
 */
static int is_often(uint64_t by_itself, const struct limits *limits)
{
	uint32_t often = (uint32_t)__builtin_popcountll(last_steps(by_itself, limits->of));
	uint64_t before = limits->of < HISTORY_STEPS ? by_itself >> limits->of : 0;
	return often >= limits->wanted && (often == limits->of || __builtin_popcountll(before) <= CHANCE);
}

static void follow(struct triggers_engine *engine, const struct view *view, int64_t number, int64_t now_ns,
		   const struct limits *limits)
{
	struct straggler_state *state = view->state;
	int is_behind = view->in_role || view->by_itself;
	state->start_ns[state->steps++ % HISTORY_STEPS] = view->work.start_ns;
	state->in_role = view->in_role ? state->in_role + 1 : 0;
	state->by_itself = state->by_itself << 1 | (uint64_t)view->by_itself;
	state->back = is_behind || view->near ? 0 : state->back + 1;
	if (state->back >= limits->of)
		state->fired = 0;
	if (!is_behind || state->fired ||
	    (state->in_role < limits->of && !is_often(state->by_itself, limits)))
		return;
	state->fired = 1;
	if (view->series->alarms)
		fire(engine, view, number, now_ns, limits);
}

/* ---- steps ---- */

/* A member of the step, with what is known of it; its first steps do not count. */
static int look(struct triggers_engine *engine, uint32_t id, const struct triggers_peer_work *work,
		struct view *ret_view)
{
	struct triggers_series *series = triggers_engine_get(engine, id);
	struct straggler_state *state =
		series ? triggers_engine_state(series, &triggers_module_straggler) : NULL;
	if (!state)
		return 0;
	if (state->skipped < GRACE_STEPS) {
		state->skipped++;
		return 0;
	}
	double level = triggers_window_median(&state->level);
	int is_known = state->level.count >= triggers_engine_option(engine, TRIGGERS_OPTION_GATE_WARMUP);
	*ret_view = (struct view){.series = series,
				  .state = state,
				  .work = *work,
				  .level = level > 0 ? level : work->value,
				  .relative = is_known && level > 0 ? work->value / level : 0};
	return 1;
}

static void judge(struct triggers_engine *engine, const struct triggers_whole_step *step)
{
	struct view view[TRIGGERS_PEERS_MEMBERS_MAX];
	struct limits limits = limits_of(engine);
	int64_t now_ns = INT64_MIN;
	uint32_t n = 0;
	for (uint32_t i = 0; i < step->count; i++) {
		const struct triggers_peer_work *work = &step->member[i].work;
		int64_t end_ns = work->start_ns + (int64_t)work->value;
		if (!look(engine, step->member[i].series, work, &view[n]))
			continue;
		n++;
		now_ns = end_ns > now_ns ? end_ns : now_ns;
	}
	if (n > 1) {
		note_peers(view, n);
		judge_roles(view, n, &limits);
		judge_itself(view, n, &limits);
	}
	for (uint32_t i = 0; i < n; i++) {
		triggers_window_insert(&view[i].state->level, (float)view[i].work.value, 0);
		if (n > 1)
			follow(engine, &view[i], step->number, now_ns, &limits);
	}
}

static void straggler_create(struct triggers_engine *engine, struct triggers_series *series, void *state_)
{
	struct straggler_state *state = state_;
	(void)engine;
	(void)series;
	triggers_window_init(&state->level, state->memory, LEVEL_WINDOW);
}

static void straggler_observe(struct triggers_engine *engine, struct triggers_series *series, void *state,
			      struct triggers_reading *reading)
{
	struct triggers_peer_work work = {
		.value = reading->value, .start_ns = reading->start_ns, .sample = reading->sample};
	struct triggers_whole_step step;
	(void)state;
	if (reading->step < 0 || !(reading->value > 0))
		return;
	struct triggers_peer_group *group = triggers_peers_tell(triggers_engine_peers(engine), series->group,
								series->id, reading->step, &work);
	while (group && triggers_peers_take(group, &step))
		judge(engine, &step);
}

static void straggler_believe(const struct triggers_engine *engine, const struct triggers_series *series,
			      const void *state_, struct triggers_belief *belief)
{
	const struct straggler_state *state = state_;
	(void)engine;
	(void)series;
	belief->peers = state->peers;
}

static void straggler_save(const void *state_, struct triggers_writer *writer)
{
	const struct straggler_state *state = state_;
	const struct triggers_window *level = &state->level;
	unsigned at = level->count < level->capacity ? 0 : level->next;
	triggers_write_u32(writer, state->skipped);
	triggers_write_u32(writer, state->in_role);
	triggers_write_u32(writer, state->back);
	triggers_write_u32(writer, state->fired);
	triggers_write_u64(writer, state->by_itself);
	triggers_write_u32(writer, state->steps);
	for (int i = 0; i < HISTORY_STEPS; i++)
		triggers_write_i64(writer, state->start_ns[i]);
	triggers_write_double(writer, state->peers);
	triggers_write_u32(writer, level->count);
	for (unsigned i = 0; i < level->count; i++, at = (at + 1) % level->capacity)
		triggers_write_float(writer, level->ring[at]);
}

static void straggler_restore(void *state_, struct triggers_cursor *cursor)
{
	struct straggler_state *state = state_;
	state->skipped = triggers_read_u32(cursor);
	state->in_role = triggers_read_u32(cursor);
	state->back = triggers_read_u32(cursor);
	state->fired = triggers_read_u32(cursor) != 0;
	state->by_itself = triggers_read_u64(cursor);
	state->steps = triggers_read_u32(cursor);
	for (int i = 0; i < HISTORY_STEPS; i++)
		state->start_ns[i] = triggers_read_time(cursor);
	state->peers = triggers_read_double(cursor);
	uint32_t count = triggers_read_u32(cursor);
	if (count > LEVEL_WINDOW)
		cursor->failed = 1;
	for (uint32_t i = 0; i < count && !cursor->failed; i++)
		triggers_window_insert(&state->level, triggers_read_float(cursor), 0);
}

const struct triggers_module triggers_module_straggler = {
	.name = "straggler",
	.roles = 1u << TRIGGERS_BUSY,
	.state_bytes = sizeof(struct straggler_state),
	.create = straggler_create,
	.observe = straggler_observe,
	.believe = straggler_believe,
	.save = straggler_save,
	.restore = straggler_restore,
};
