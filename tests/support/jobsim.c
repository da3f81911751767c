/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The job goes from step to step; in each, every rank works through its pieces (the spans of the script, then
 * "compute"), and then waits in "all_reduce" for the slowest. What a rule adds becomes part of a piece, or a
 * piece.
 */
#include "jobsim.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <driverec/event.h>

enum { PIECES_MAX = 2 * JOBSCRIPT_SPANS_MAX + JOBSCRIPT_RULES_MAX, IDLE_MAX = 4096, HOST_SOURCE = 9000 };

static const int64_t SECOND_NS = 1000000000, MILLION = 1000000;

struct piece {
	uint32_t name;
	int64_t ns;
	bool idle;
};

/* What one rank does in a step. */
struct plan {
	struct piece piece[PIECES_MAX];
	unsigned n;
	int64_t cut_ns; /* it stops there for ever; INT64_MAX = not */
};

struct idle {
	int64_t begin_ns, end_ns;
};

struct job {
	struct jobsim *sim;
	const struct jobscript *script;
	uint64_t random;
	int64_t now_ns, first_ns;
	int64_t ready_ns[JOBSCRIPT_RANKS_MAX]; /* when a rank may begin its next step; before now_ns: then */
	int life;
	uint32_t next_source;
	unsigned ring[JOBSCRIPT_RANKS_MAX]; /* of this life */
	bool done[JOBSCRIPT_RULES_MAX][JOBSCRIPT_PLACES_MAX];
	struct idle idle[IDLE_MAX];
	unsigned n_idle;
	int64_t capture_left; /* steps of a capture that goes on */
	const struct jobscript_rule *capture;
	int64_t capture_ns;
	bool over;
	int result;
};

static int64_t random_below(struct job *job, int64_t limit)
{
	uint64_t z = (job->random += 0x9e3779b97f4a7c15u);
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return limit > 0 ? (int64_t)((z ^ z >> 31) % (uint64_t)limit) : 0;
}

/* `ns` up to `ppm` millionths longer or shorter. */
static int64_t varied(struct job *job, int64_t ns, int64_t ppm)
{
	int64_t most = ns / 1000 * ppm / 1000;
	return ns + random_below(job, 2 * most + 1) - most;
}

static int64_t scaled(int64_t ns, int64_t ppm)
{
	return (int64_t)((__int128)ns * ppm / MILLION);
}

static uint32_t name_id(struct job *job, const char *name)
{
	struct jobsim *sim = job->sim;
	for (unsigned i = 0; i < sim->n_names; i++)
		if (strcmp(sim->name[i], name) == 0)
			return i + 1;
	if (sim->n_names == JOBSIM_NAMES_MAX) {
		job->result = -E2BIG;
		return 0;
	}
	snprintf(sim->name[sim->n_names], sizeof(sim->name[0]), "%s", name);
	return ++sim->n_names;
}

static void add_moment(struct job *job, unsigned at, const struct jobsim_moment *moment)
{
	struct jobsim_ring *ring = &job->sim->ring[at];
	if (ring->count == ring->room) {
		size_t room = ring->room ? 2 * ring->room : 256;
		void *larger =
			room > JOBSIM_MOMENTS_MAX ? NULL : realloc(ring->moment, room * sizeof(*moment));
		if (!larger) {
			job->result = -E2BIG;
			return;
		}
		ring->moment = larger;
		ring->room = room;
	}
	ring->moment[ring->count++] = *moment;
}

static void add_world(struct job *job, enum jobsim_what what, int64_t at_ns, int64_t start_ns, int64_t end_ns)
{
	struct jobsim *sim = job->sim;
	if (sim->n_world == JOBSIM_WORLD_MAX) {
		job->result = -E2BIG;
		return;
	}
	unsigned at = sim->n_world++;
	for (; at > 0 && sim->world[at - 1].at_ns > at_ns; at--)
		sim->world[at] = sim->world[at - 1];
	sim->world[at] =
		(struct jobsim_moment){.what = what, .at_ns = at_ns, .start_ns = start_ns, .end_ns = end_ns};
}

static unsigned add_ring(struct job *job, uint32_t source, uint32_t rank)
{
	struct jobsim *sim = job->sim;
	if (sim->n_rings == JOBSIM_RINGS_MAX) {
		job->result = -E2BIG;
		return 0;
	}
	sim->ring[sim->n_rings] = (struct jobsim_ring){.source = source, .rank = rank, .life = job->life};
	return sim->n_rings++;
}

static void add_idle(struct job *job, int64_t begin_ns, int64_t end_ns)
{
	if (job->n_idle == IDLE_MAX)
		job->result = -E2BIG;
	else
		job->idle[job->n_idle++] = (struct idle){begin_ns, end_ns};
}

/* ---- events ---- */

static void mark(struct job *job, int rank, unsigned mark, const char *phase, int64_t step, int64_t start_ns,
		 int64_t end_ns)
{
	const struct jobsim_moment moment = {
		.at_ns = end_ns,
		.what = JOBSIM_EVENT,
		.kind = DREC_MARK,
		.mark = (uint16_t)mark,
		.track = JOBSIM_MAIN_TRACK,
		.name = name_id(job, phase),
		.start_ns = start_ns,
		.end_ns = end_ns,
		.id = (uint64_t)step,
	};
	add_moment(job, job->ring[rank], &moment);
}

static void span(struct job *job, int rank, uint32_t name, int64_t start_ns, int64_t end_ns)
{
	const struct jobsim_moment moment = {
		.at_ns = end_ns,
		.what = JOBSIM_EVENT,
		.kind = DREC_SPAN,
		.track = JOBSIM_MAIN_TRACK,
		.name = name,
		.start_ns = start_ns,
		.end_ns = end_ns,
	};
	add_moment(job, job->ring[rank], &moment);
}

static void end_ring(struct job *job, int rank, enum jobsim_what what, int64_t at_ns)
{
	const struct jobsim_moment moment = {
		.at_ns = at_ns, .what = what, .start_ns = at_ns, .end_ns = at_ns};
	add_moment(job, job->ring[rank], &moment);
}

/* ---- rules ---- */

static bool concerns(const struct jobscript_rule *rule, int rank)
{
	return rule->rank == JOBSCRIPT_ALL || rule->rank == rank;
}

static bool is_due(struct job *job, unsigned at, int64_t step)
{
	const struct jobscript_rule *rule = &job->script->rule[at];
	for (unsigned i = 0; rule->when == JOBSCRIPT_AT && i < rule->n_places; i++)
		if (rule->place[i] == step && !job->done[at][i])
			return true;
	if (rule->when == JOBSCRIPT_AT || step < rule->from || step > rule->to)
		return false;
	if (rule->when == JOBSCRIPT_EVERY)
		return step > 0 && step % rule->period == 0;
	if (rule->when == JOBSCRIPT_RANDOM)
		return random_below(job, rule->period) == 0;
	return rule->when == JOBSCRIPT_FROM;
}

/* Which rules are due in this step: asked once a step, as chance has a part in it. */
static void find_due(struct job *job, int64_t step, bool ret_due[JOBSCRIPT_RULES_MAX])
{
	for (unsigned i = 0; i < job->script->n_rules; i++) {
		ret_due[i] = is_due(job, i, step);
		for (unsigned j = 0; j < job->script->rule[i].n_places; j++)
			job->done[i][j] |= job->script->rule[i].place[j] == step;
	}
}

/* ---- a step ---- */

static struct piece *piece_named(struct plan *plan, uint32_t name)
{
	for (unsigned i = 0; i < plan->n; i++)
		if (plan->piece[i].name == name)
			return &plan->piece[i];
	return NULL;
}

static void add_piece(struct job *job, struct plan *plan, uint32_t name, int64_t ns)
{
	if (plan->n == PIECES_MAX)
		job->result = -E2BIG;
	else if (ns > 0)
		plan->piece[plan->n++] = (struct piece){.name = name, .ns = ns};
}

/* The piece that goes on `after_ns` after the step's begin; -1: the last one. */
static struct piece *piece_after(struct plan *plan, int64_t after_ns)
{
	for (unsigned i = 0; after_ns >= 0 && i < plan->n; i++) {
		if (after_ns < plan->piece[i].ns)
			return &plan->piece[i];
		after_ns -= plan->piece[i].ns;
	}
	return plan->n ? &plan->piece[plan->n - 1] : NULL;
}

/* How long the step is by all that changes its usual length, in millionths of it. */
static int64_t factor(const struct job *job, int64_t step, int rank, const bool due[JOBSCRIPT_RULES_MAX])
{
	int64_t ppm = MILLION;
	for (unsigned i = 0; i < job->script->n_rules; i++) {
		const struct jobscript_rule *rule = &job->script->rule[i];
		if (!due[i] || !concerns(rule, rank))
			continue;
		if (rule->what == JOBSCRIPT_TIMES)
			ppm = scaled(ppm, rule->ppm);
		else if (rule->what == JOBSCRIPT_RAMP)
			ppm += rule->ppm * (step - rule->from);
	}
	return job->capture_left > 0 ? scaled(ppm, job->capture->ppm) : ppm;
}

static void usual_pieces(struct job *job, int64_t ppm, struct plan *plan)
{
	const struct jobscript *script = job->script;
	int64_t own_ns = scaled(varied(job, script->step_ns, script->jitter_ppm), ppm), spent_ns = 0;
	if (script->quantum_ns)
		own_ns = (own_ns + script->quantum_ns / 2) / script->quantum_ns * script->quantum_ns;
	for (unsigned i = 0; i < script->n_spans; i++) {
		const struct jobscript_span *given = &script->span[i];
		int64_t ns = scaled(varied(job, given->ns, given->jitter_ppm), ppm);
		add_piece(job, plan, name_id(job, given->name), ns);
		spent_ns += ns;
	}
	add_piece(job, plan, name_id(job, "compute"), own_ns - spent_ns);
}

static void lengthen(struct job *job, const struct jobscript_rule *rule, struct plan *plan)
{
	int64_t ns = varied(job, rule->ns, rule->jitter_ppm);
	uint32_t name = rule->name[0] ? name_id(job, rule->name) : 0;
	struct piece *piece = name ? piece_named(plan, name) : piece_after(plan, rule->after_ns);
	if (!piece) {
		add_piece(job, plan, name, ns);
		piece = &plan->piece[plan->n - 1];
	} else {
		piece->ns += ns;
	}
	piece->idle |= rule->idle;
}

static void make_plan(struct job *job, int64_t step, int rank, const bool due[JOBSCRIPT_RULES_MAX],
		      struct plan *plan)
{
	*plan = (struct plan){.cut_ns = INT64_MAX};
	usual_pieces(job, factor(job, step, rank, due), plan);
	for (unsigned i = 0; i < job->script->n_rules; i++) {
		const struct jobscript_rule *rule = &job->script->rule[i];
		if (!due[i] || !concerns(rule, rank))
			continue;
		if (rule->what == JOBSCRIPT_LONGER || rule->what == JOBSCRIPT_STOPPED)
			lengthen(job, rule, plan);
		if (rule->what == JOBSCRIPT_HANG || rule->what == JOBSCRIPT_CRASH)
			plan->cut_ns = rule->after_ns >= 0 ? rule->after_ns : job->script->step_ns / 2;
	}
}

static int64_t begin_of(const struct job *job, int rank)
{
	return job->ready_ns[rank] > job->now_ns ? job->ready_ns[rank] : job->now_ns;
}

static int64_t plan_ns(const struct plan *plan)
{
	int64_t ns = 0;
	for (unsigned i = 0; i < plan->n; i++)
		ns += plan->piece[i].ns;
	return ns;
}

static void hang_in(struct job *job, int rank, uint32_t name, int64_t start_ns)
{
	job->sim->ring[job->ring[rank]].hangs_in = (struct jobsim_moment){
		.at_ns = INT64_MAX,
		.what = JOBSIM_EVENT,
		.kind = DREC_SPAN,
		.track = JOBSIM_MAIN_TRACK,
		.name = name,
		.start_ns = start_ns,
		.end_ns = INT64_MAX,
	};
}

/* What the rank writes of its pieces; returns when they are done. */
static int64_t work(struct job *job, int rank, const struct plan *plan)
{
	int64_t begin_ns = begin_of(job, rank), at_ns = begin_ns;
	for (unsigned i = 0; i < plan->n; i++) {
		int64_t end_ns = at_ns + plan->piece[i].ns;
		if (plan->cut_ns != INT64_MAX && end_ns - begin_ns > plan->cut_ns) {
			hang_in(job, rank, plan->piece[i].name, at_ns);
			break;
		}
		span(job, rank, plan->piece[i].name, at_ns, end_ns);
		if (plan->piece[i].idle)
			add_idle(job, at_ns, end_ns);
		at_ns = end_ns;
	}
	return at_ns;
}

static void keep_step(struct job *job, int64_t step, int64_t begin_ns, int64_t end_ns)
{
	struct jobsim *sim = job->sim;
	if (sim->n_steps == sim->steps_room) {
		size_t room = sim->steps_room ? 2 * sim->steps_room : 256;
		void *larger = realloc(sim->step, room * sizeof(*sim->step));
		if (!larger) {
			job->result = -ENOMEM;
			return;
		}
		sim->step = larger;
		sim->steps_room = room;
	}
	if (sim->n_steps)
		sim->step[sim->n_steps - 1].next_ns = begin_ns;
	sim->step[sim->n_steps++] = (struct jobsim_step){.step = step,
							 .life = job->life,
							 .begin_ns = begin_ns,
							 .end_ns = end_ns,
							 .next_ns = INT64_MAX};
}

/* Phases within the step, after its work: they delay its end. */
static int64_t phases_inside(struct job *job, int rank, const bool due[JOBSCRIPT_RULES_MAX],
			     const int64_t phase_ns[JOBSCRIPT_RULES_MAX], int64_t at_ns)
{
	for (unsigned i = 0; i < job->script->n_rules; i++) {
		const struct jobscript_rule *rule = &job->script->rule[i];
		if (!due[i] || !concerns(rule, rank) || rule->what != JOBSCRIPT_PHASE || !rule->inside)
			continue;
		int64_t end_ns = at_ns + varied(job, phase_ns[i], rule->uneven_ppm);
		mark(job, rank, DREC_MARK_PHASE_BEGIN, rule->name, 0, at_ns, at_ns);
		mark(job, rank, DREC_MARK_PHASE_END, rule->name, 0, at_ns, end_ns);
		add_idle(job, at_ns, end_ns);
		at_ns = end_ns;
	}
	return at_ns;
}

/* A rank that stops within the step holds up the others for ever. */
static void hang(struct job *job, int64_t step, const struct plan plan[JOBSCRIPT_RANKS_MAX])
{
	int64_t last_ns = job->now_ns;
	for (int rank = 0; rank < job->script->ranks; rank++) {
		int64_t done_ns = work(job, rank, &plan[rank]);
		if (plan[rank].cut_ns == INT64_MAX)
			hang_in(job, rank, name_id(job, "all_reduce"), done_ns);
		last_ns = done_ns > last_ns ? done_ns : last_ns;
	}
	add_idle(job, last_ns, INT64_MAX);
	keep_step(job, step, job->now_ns, INT64_MAX);
	job->over = true;
	job->now_ns = last_ns;
}

static void run_step(struct job *job, int64_t step, const bool due[JOBSCRIPT_RULES_MAX])
{
	struct plan plan[JOBSCRIPT_RANKS_MAX];
	int64_t done_ns[JOBSCRIPT_RANKS_MAX], end_ns = job->now_ns;
	bool hangs = false;
	for (int rank = 0; rank < job->script->ranks; rank++) {
		make_plan(job, step, rank, due, &plan[rank]);
		hangs |= plan[rank].cut_ns != INT64_MAX;
		int64_t begin_ns = begin_of(job, rank);
		mark(job, rank, DREC_MARK_STEP_BEGIN, "train", step, begin_ns, begin_ns);
		if (plan_ns(&plan[rank]) > end_ns - begin_ns)
			end_ns = begin_ns + plan_ns(&plan[rank]);
	}
	if (hangs) {
		hang(job, step, plan);
		return;
	}
	for (int rank = 0; rank < job->script->ranks; rank++) {
		done_ns[rank] = work(job, rank, &plan[rank]);
		if (done_ns[rank] < end_ns)
			span(job, rank, name_id(job, "all_reduce"), done_ns[rank], end_ns);
	}
	int64_t phase_ns[JOBSCRIPT_RULES_MAX], last_ns = end_ns;
	for (unsigned i = 0; i < job->script->n_rules; i++)
		phase_ns[i] = varied(job, job->script->rule[i].ns, job->script->rule[i].jitter_ppm);
	for (int rank = 0; rank < job->script->ranks; rank++) {
		done_ns[rank] = phases_inside(job, rank, due, phase_ns, end_ns);
		last_ns = done_ns[rank] > last_ns ? done_ns[rank] : last_ns;
	}
	for (int rank = 0; rank < job->script->ranks; rank++)
		mark(job, rank, DREC_MARK_STEP_END, "train", step, begin_of(job, rank), last_ns);
	keep_step(job, step, job->now_ns, last_ns);
	job->now_ns = last_ns + job->script->between_ns;
}

/* ---- between steps ---- */

static int64_t steps_of_phase(struct job *job, const struct jobscript_rule *rule, int64_t at_ns)
{
	for (int64_t i = 0; i < rule->count; i++) {
		int64_t end_ns = at_ns + varied(job, rule->each_ns, job->script->jitter_ppm);
		for (int rank = 0; rank < job->script->ranks; rank++) {
			mark(job, rank, DREC_MARK_STEP_BEGIN, rule->name, i, at_ns, at_ns);
			if (job->script->n_spans)
				span(job, rank, name_id(job, job->script->span[0].name), at_ns,
				     at_ns + rule->each_ns / 2);
			mark(job, rank, DREC_MARK_STEP_END, rule->name, i, at_ns, end_ns);
		}
		at_ns = end_ns + job->script->between_ns;
	}
	return at_ns;
}

static void run_phase(struct job *job, const struct jobscript_rule *rule)
{
	int64_t begin_ns = job->now_ns, end_ns = begin_ns;
	for (int rank = 0; rank < job->script->ranks; rank++)
		mark(job, rank, DREC_MARK_PHASE_BEGIN, rule->name, 0, begin_ns, begin_ns);
	if (rule->count)
		end_ns = steps_of_phase(job, rule, begin_ns + job->script->between_ns);
	else
		add_idle(job, begin_ns, end_ns = begin_ns + varied(job, rule->ns, rule->jitter_ppm));
	int64_t first_ns = INT64_MAX, length_ns = end_ns - begin_ns;
	for (int rank = 0; rank < job->script->ranks; rank++) {
		end_ns = begin_ns + varied(job, length_ns, rule->uneven_ppm);
		mark(job, rank, DREC_MARK_PHASE_END, rule->name, 0, begin_ns, end_ns);
		job->ready_ns[rank] = end_ns + job->script->between_ns;
		first_ns = job->ready_ns[rank] < first_ns ? job->ready_ns[rank] : first_ns;
	}
	job->now_ns = first_ns;
}

static void begin_capture(struct job *job, const struct jobscript_rule *rule)
{
	job->capture = rule;
	job->capture_left = rule->count;
	job->capture_ns = job->now_ns;
	/* Its end is not known yet: what was asked for is. */
	add_world(job, JOBSIM_CAPTURE, job->now_ns, job->now_ns,
		  job->now_ns + rule->count * job->script->step_ns);
}

static void go_on_capturing(struct job *job)
{
	if (job->capture_left > 0 && --job->capture_left == 0)
		add_world(job, JOBSIM_CAPTURE, job->now_ns, job->capture_ns, job->now_ns);
}

static void phases_at_start(struct job *job)
{
	for (unsigned i = 0; i < job->script->n_rules; i++)
		if (job->script->rule[i].when == JOBSCRIPT_START &&
		    job->script->rule[i].what == JOBSCRIPT_PHASE)
			run_phase(job, &job->script->rule[i]);
}

static void begin_life(struct job *job)
{
	job->life++;
	for (int rank = 0; rank < job->script->ranks; rank++)
		job->ring[rank] = add_ring(job, job->next_source++, (uint32_t)rank);
	phases_at_start(job);
}

/* What happens to the daemon or the clock while the step goes on. */
static void around_step(struct job *job, const struct jobscript_rule *rule)
{
	int64_t at_ns = job->now_ns + (rule->after_ns >= 0 ? rule->after_ns : 0);
	if (rule->what == JOBSCRIPT_CAPTURE)
		begin_capture(job, rule);
	else if (rule->what == JOBSCRIPT_CLOCK)
		add_world(job, JOBSIM_CLOCK, at_ns, at_ns, rule->ns);
	else if (rule->what == JOBSCRIPT_DAEMON_STOPPED)
		add_world(job, JOBSIM_STOPPED, at_ns, at_ns, at_ns + rule->ns);
	else if (rule->what == JOBSCRIPT_DAEMON_GONE)
		add_world(job, JOBSIM_GONE, at_ns, at_ns, at_ns + rule->ns);
	else if (rule->what == JOBSCRIPT_DAEMON_ANEW)
		add_world(job, JOBSIM_ANEW, at_ns, at_ns, at_ns + rule->ns);
}

/* Ends of rings. Returns the step that is next, or -1 if the job is over. */
static int64_t end_life(struct job *job, const struct jobscript_rule *rule, int64_t next)
{
	enum jobsim_what what = rule->what == JOBSCRIPT_CRASH ? JOBSIM_CRASHED : JOBSIM_CLOSED;
	for (int rank = 0; rank < job->script->ranks; rank++)
		if (concerns(rule, rank))
			end_ring(job, rank, what, job->now_ns);
	if (rule->rank != JOBSCRIPT_ALL && what == JOBSIM_CRASHED)
		return job->over ? -1 : next;
	if (rule->again_step < 0)
		return -1;
	add_idle(job, job->now_ns, job->now_ns + rule->again_ns);
	job->now_ns += rule->again_ns;
	job->over = false;
	begin_life(job);
	return rule->again_step;
}

static int64_t after_step(struct job *job, int64_t step, const bool due[JOBSCRIPT_RULES_MAX])
{
	int64_t next = step + 1;
	go_on_capturing(job);
	for (unsigned i = 0; i < job->script->n_rules && next >= 0; i++) {
		const struct jobscript_rule *rule = &job->script->rule[i];
		if (!due[i])
			continue;
		if (rule->what == JOBSCRIPT_CRASH || rule->what == JOBSCRIPT_CLOSE) {
			next = end_life(job, rule, next);
		} else if (rule->what == JOBSCRIPT_PHASE && !rule->inside) {
			run_phase(job, rule);
		} else if (rule->what == JOBSCRIPT_PAUSE) {
			add_idle(job, job->now_ns, job->now_ns + rule->ns);
			job->now_ns += rule->ns;
		}
	}
	return job->over ? -1 : next;
}

static void run_job(struct job *job)
{
	begin_life(job);
	for (int64_t step = 0; step >= 0 && step < job->script->steps && job->result == 0;) {
		bool due[JOBSCRIPT_RULES_MAX];
		find_due(job, step, due);
		for (unsigned i = 0; i < job->script->n_rules; i++)
			if (due[i])
				around_step(job, &job->script->rule[i]);
		run_step(job, step, due);
		step = after_step(job, step, due);
	}
	bool ended = !job->over;
	for (int rank = 0; rank < job->script->ranks && ended; rank++) {
		const struct jobsim_ring *ring = &job->sim->ring[job->ring[rank]];
		if (ring->moment[ring->count - 1].what == JOBSIM_EVENT)
			end_ring(job, rank, JOBSIM_CLOSED, job->now_ns);
	}
	job->sim->end_ns = job->now_ns + job->script->run_on_ns;
}

/* ---- the host's counters ---- */

static bool is_idle(const struct job *job, int64_t at_ns)
{
	for (unsigned i = 0; i < job->n_idle; i++)
		if (at_ns >= job->idle[i].begin_ns && at_ns < job->idle[i].end_ns)
			return true;
	return false;
}

static void count_devices(struct job *job)
{
	char name[32];
	snprintf(name, sizeof(name), "device:%d:duty_cycle", job->script->device);
	unsigned ring = add_ring(job, HOST_SOURCE, UINT32_MAX);
	uint32_t id = name_id(job, name);
	for (int64_t at_ns = job->first_ns; at_ns < job->sim->end_ns && job->result == 0;
	     at_ns += SECOND_NS) {
		double duty = (double)job->script->duty_ppm / 1e6;
		const struct jobsim_moment moment = {
			.at_ns = at_ns,
			.what = JOBSIM_EVENT,
			.kind = DREC_COUNTER,
			.track = JOBSIM_DEVICE_TRACK,
			.name = id,
			.start_ns = at_ns,
			.end_ns = at_ns,
			.value = is_idle(job, at_ns) ? 0 : duty - (double)random_below(job, 100) / 100,
		};
		add_moment(job, ring, &moment);
	}
}

/* ---- */

int jobsim_new(const struct jobscript *script, struct jobsim **ret_sim)
{
	struct job *job = calloc(1, sizeof(*job));
	struct jobsim *sim = calloc(1, sizeof(*sim));
	int result = -ENOMEM;
	*ret_sim = sim;
	if (job && sim) {
		sim->script = script;
		*job = (struct job){.sim = sim,
				    .script = script,
				    .random = script->seed,
				    .next_source = 1,
				    .now_ns = JOBSIM_BEGIN_NS,
				    .first_ns = JOBSIM_BEGIN_NS};
		run_job(job);
		if (script->device >= 0)
			count_devices(job);
		result = job->result;
	}
	free(job);
	return result;
}

void jobsim_free(struct jobsim *sim)
{
	if (!sim)
		return;
	for (unsigned i = 0; i < sim->n_rings; i++)
		free(sim->ring[i].moment);
	free(sim->step);
	free(sim);
}

int64_t jobsim_told(const struct jobsim *sim, int64_t now_ns, int64_t ns)
{
	for (unsigned i = 0; i < sim->n_world; i++)
		if (sim->world[i].what == JOBSIM_CLOCK && sim->world[i].at_ns <= now_ns)
			ns += sim->world[i].end_ns;
	return ns;
}

const char *jobsim_name(const struct jobsim *sim, uint32_t id)
{
	return id > 0 && id <= sim->n_names ? sim->name[id - 1] : NULL;
}
