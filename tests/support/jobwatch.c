/* SPDX-License-Identifier: Apache-2.0 */
#include "jobwatch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <driverec/event.h>

#include "config.h"
#include "sources/series.h"
#include "trigger_settings.h"

enum { OPEN_MAX = 8 };

static const int64_t POLL_NS = 50000000, OPEN_EVERY_NS = 250000000, ALIVE_EVERY_NS = 500000000;
static const int64_t POST_MAX_NS = 30000000000;

/* What a ring's stack holds. */
struct open_mark {
	uint16_t mark;
	uint32_t name;
	int64_t start_ns;
	uint64_t id;
};

struct ring_state {
	size_t next;
	struct open_mark open[OPEN_MAX];
	unsigned n_open;
	int64_t next_open_ns, last_event_ns;
	bool ended;
};

struct world {
	const struct jobsim *sim;
	const struct jobwatch_options *options;
	struct jobwatch *out;
	struct config *config;
	struct triggers_engine *engine;
	struct series *series;
	struct ring_state ring[JOBSIM_RINGS_MAX];
	unsigned next_world;
	int64_t now_ns;    /* of the job's clock */
	int64_t offset_ns; /* what it is told as */
	int64_t settle_ns; /* of the job's clock; INT64_MAX = nothing waits */
	int result;
};

/* ---- what the engine says ---- */

static int64_t post_ns(const struct world *world, const struct triggers_firing *firing)
{
	int64_t step_ns = triggers_engine_step_ns(world->engine, firing->source);
	int64_t post = step_ns > 0 ? 2 * step_ns : 5000000000;
	return post < POST_MAX_NS ? post : POST_MAX_NS;
}

static void on_firing(void *context, const struct triggers_firing *firing, enum triggers_gate gate)
{
	struct world *world = context;
	struct jobwatch *out = world->out;
	if (gate == TRIGGERS_PASSED || gate == TRIGGERS_COALESCED) {
		int64_t settle_ns = firing->detected_ns - world->offset_ns + post_ns(world, firing);
		if (world->settle_ns == INT64_MAX || settle_ns > world->settle_ns)
			world->settle_ns = settle_ns;
	}
	if (out->n == JOBWATCH_FIRINGS_MAX) {
		out->overflow = true;
		return;
	}
	out->firing[out->n++] = (struct jobwatch_firing){.firing = *firing, .gate = gate, .poll = out->polls};
}

static void on_progress(void *context, const struct triggers_firing *firing, int64_t now_ns)
{
	struct jobwatch *out = ((struct world *)context)->out;
	for (unsigned i = out->n; i-- > 0;) {
		struct jobwatch_firing *kept = &out->firing[i];
		if (kept->firing.series_id == firing->series_id && kept->firing.t0_ns == firing->t0_ns &&
		    strcmp(kept->firing.trigger, firing->trigger) == 0) {
			kept->resolved_ns = now_ns;
			return;
		}
	}
}

/* ---- the daemon's life ---- */

static int begin(struct world *world)
{
	char why[256] = "";
	const struct triggers_listener listener = {
		.context = world, .firing = on_firing, .progress = on_progress};
	int result = triggers_engine_new(&listener, &world->engine);
	if (result < 0)
		return result;
	trigger_settings_apply(world->config, world->engine, NULL, NULL);
	if (world->options->set_key)
		result = triggers_engine_set(world->engine, world->options->set_key,
					     world->options->set_value, why, sizeof(why));
	return result < 0 ? result : trigger_settings_series(world->config, world->engine, &world->series);
}

static void end(struct world *world)
{
	series_free(world->series);
	triggers_engine_free(world->engine);
	world->series = NULL;
	world->engine = NULL;
}

struct saved {
	int64_t engine_bytes, series_bytes;
	char *bytes;
};

static int save(const struct world *world, struct saved *ret)
{
	*ret = (struct saved){.engine_bytes = triggers_engine_save(world->engine, NULL, 0),
			      .series_bytes = series_save(world->series, NULL, 0)};
	if (ret->engine_bytes < 0 || ret->series_bytes < 0)
		return -EIO;
	ret->bytes = malloc((size_t)(ret->engine_bytes + ret->series_bytes));
	if (!ret->bytes)
		return -ENOMEM;
	triggers_engine_save(world->engine, ret->bytes, (size_t)ret->engine_bytes);
	series_save(world->series, ret->bytes + ret->engine_bytes, (size_t)ret->series_bytes);
	return 0;
}

/* What outlives the daemon is what it saved, and how far each ring was read. */
static void restart(struct world *world)
{
	struct saved saved;
	world->result = save(world, &saved);
	if (world->result == 0) {
		end(world);
		world->result = begin(world);
	}
	if (world->result == 0)
		world->result =
			triggers_engine_restore(world->engine, saved.bytes, (size_t)saved.engine_bytes);
	if (world->result == 0)
		world->result = series_restore(world->series, saved.bytes + saved.engine_bytes,
					       (size_t)saved.series_bytes);
	free(saved.bytes);
	for (unsigned i = 0; i < world->sim->n_rings; i++)
		world->ring[i].next_open_ns = world->now_ns;
	world->out->restarts++;
}

/* Nothing did. All that is in the rings is read again. */
static void forget(struct world *world)
{
	end(world);
	world->result = begin(world);
	world->settle_ns = INT64_MAX;
	for (unsigned i = 0; i < world->sim->n_rings; i++)
		world->ring[i] = (struct ring_state){.last_event_ns = INT64_MIN, .ended = world->ring[i].ended};
}

/* ---- reading ---- */

static int text_of_name(void *context, uint32_t id, const char **ret_text, size_t *ret_bytes)
{
	const char *name = jobsim_name(context, id);
	if (!name)
		return -ENOENT;
	*ret_text = name;
	*ret_bytes = strlen(name);
	return 0;
}

static int text_of_track(void *context, uint32_t id, const char **ret_text, size_t *ret_bytes)
{
	(void)context;
	*ret_text = id == JOBSIM_MAIN_TRACK ? "main" : "devices";
	*ret_bytes = strlen(*ret_text);
	return 0;
}

static struct series_source source_of(const struct world *world, const struct jobsim_ring *ring)
{
	return (struct series_source){
		.source = ring->source,
		.rank = ring->rank,
		.job = ring->rank == UINT32_MAX ? 0 : 1,
		.context = (void *)(uintptr_t)world->sim,
		.name = text_of_name,
		.track = text_of_track,
	};
}

static void keep_stack(struct ring_state *state, const struct jobsim_moment *moment)
{
	if (moment->kind != DREC_MARK)
		return;
	if (moment->mark == DREC_MARK_STEP_BEGIN || moment->mark == DREC_MARK_PHASE_BEGIN) {
		if (state->n_open < OPEN_MAX)
			state->open[state->n_open++] =
				(struct open_mark){moment->mark, moment->name, moment->start_ns, moment->id};
		return;
	}
	if (state->n_open > 0)
		state->n_open--;
}

static void read_event(struct world *world, const struct jobsim_ring *ring, struct ring_state *state,
		       const struct jobsim_moment *moment)
{
	const struct series_source source = source_of(world, ring);
	const struct series_event event = {
		.kind = moment->kind,
		.mark = moment->mark,
		.track = moment->track,
		.name = moment->name,
		.start_ns = moment->start_ns + world->offset_ns,
		.end_ns = moment->end_ns + world->offset_ns,
		.id = moment->id,
		.value = moment->value,
		.sample = -1,
	};
	keep_stack(state, moment);
	series_event(world->series, &source, &event);
	if (state->last_event_ns == INT64_MIN || moment->end_ns > state->last_event_ns)
		state->last_event_ns = moment->end_ns;
	world->out->events++;
}

/* The span that has begun and not ended: the next one that can be read, or the one that never will. */
static void tell_open_span(struct world *world, const struct series_source *source,
			   const struct jobsim_ring *ring, const struct ring_state *state)
{
	const struct jobsim_moment *span = &ring->hangs_in;
	for (size_t i = state->next; i < ring->count && ring->moment[i].kind == DREC_SPAN; i++)
		if (ring->moment[i].track == JOBSIM_MAIN_TRACK) {
			span = &ring->moment[i];
			break;
		}
	if (span->kind == DREC_SPAN && span->start_ns <= world->now_ns && state->n_open > 0)
		series_open(world->series, source, 0, span->track, span->name,
			    span->start_ns + world->offset_ns, 0);
}

static void tell_open(struct world *world, const struct jobsim_ring *ring, struct ring_state *state)
{
	const struct series_source source = source_of(world, ring);
	series_stack_begin(world->series, ring->source);
	for (unsigned i = 0; i < state->n_open; i++)
		series_open(world->series, &source, state->open[i].mark, JOBSIM_MAIN_TRACK,
			    state->open[i].name, state->open[i].start_ns + world->offset_ns,
			    state->open[i].id);
	tell_open_span(world, &source, ring, state);
	series_stack_end(world->series, ring->source);
	state->next_open_ns = world->now_ns + OPEN_EVERY_NS;
}

static void ring_ended(struct world *world, const struct jobsim_ring *ring, struct ring_state *state,
		       const struct jobsim_moment *moment)
{
	if (moment->what == JOBSIM_CRASHED)
		triggers_engine_crash(world->engine, ring->source, ring->rank,
				      state->last_event_ns + world->offset_ns,
				      world->now_ns + world->offset_ns, "the process ended without a word");
	series_source_end(world->series, ring->source);
	state->ended = true;
}

/* In the daemon's order: events, open spans, progress, then a death, which is looked for twice a second. */
static void poll_ring(struct world *world, unsigned at)
{
	const struct jobsim_ring *ring = &world->sim->ring[at];
	struct ring_state *state = &world->ring[at];
	bool fresh = false;
	while (state->next < ring->count && ring->moment[state->next].what == JOBSIM_EVENT &&
	       ring->moment[state->next].at_ns <= world->now_ns) {
		read_event(world, ring, state, &ring->moment[state->next++]);
		fresh = true;
	}
	if (state->ended || (state->next == 0 && !fresh))
		return;
	if (fresh || world->now_ns >= state->next_open_ns)
		tell_open(world, ring, state);
	if (fresh)
		series_progress(world->series, ring->source, state->last_event_ns + world->offset_ns);
	const struct jobsim_moment *moment = state->next < ring->count ? &ring->moment[state->next] : NULL;
	if (moment && moment->what != JOBSIM_EVENT && moment->at_ns + ALIVE_EVERY_NS <= world->now_ns)
		ring_ended(world, ring, state, moment);
}

/* ---- time ---- */

/* The daemon does not poll until then; returns when it does. */
static int64_t be_away(struct world *world, const struct jobsim_moment *moment)
{
	if (moment->what == JOBSIM_GONE)
		restart(world);
	else if (moment->what == JOBSIM_ANEW)
		forget(world);
	return moment->end_ns;
}

/* What of the world has happened by now. Returns when the daemon polls, which is now if nothing keeps it. */
static int64_t world_goes_on(struct world *world)
{
	int64_t poll_ns = world->now_ns;
	while (world->next_world < world->sim->n_world) {
		const struct jobsim_moment *moment = &world->sim->world[world->next_world];
		if (moment->at_ns > world->now_ns)
			break;
		world->next_world++;
		if (moment->what == JOBSIM_CAPTURE)
			triggers_engine_capture(world->engine, moment->start_ns + world->offset_ns,
						moment->end_ns + world->offset_ns);
		else if (moment->what == JOBSIM_CLOCK)
			world->offset_ns += moment->end_ns;
		else
			poll_ns = be_away(world, moment);
	}
	return poll_ns;
}

static void tick(struct world *world)
{
	triggers_engine_tick(world->engine, world->now_ns + world->offset_ns);
	if (world->now_ns >= world->settle_ns) {
		world->settle_ns = INT64_MAX;
		triggers_engine_settled(world->engine, world->now_ns + world->offset_ns);
	}
}

static void sooner(int64_t *ns, int64_t other_ns)
{
	if (other_ns < *ns)
		*ns = other_ns;
}

/* The next poll that finds anything to do: polls that would not are left out. */
static int64_t next_poll_ns(const struct world *world)
{
	const struct jobsim *sim = world->sim;
	int64_t next_ns = sim->end_ns;
	for (unsigned i = 0; i < sim->n_rings; i++) {
		const struct ring_state *state = &world->ring[i];
		const struct jobsim_moment *moment = &sim->ring[i].moment[state->next];
		if (state->ended)
			continue;
		if (state->next < sim->ring[i].count)
			sooner(&next_ns,
			       moment->what == JOBSIM_EVENT ? moment->at_ns : moment->at_ns + ALIVE_EVERY_NS);
		if (state->n_open)
			sooner(&next_ns, state->next_open_ns);
	}
	if (world->next_world < sim->n_world)
		sooner(&next_ns, sim->world[world->next_world].at_ns);
	int64_t due_ns = triggers_engine_due(world->engine);
	if (due_ns < world->now_ns + world->offset_ns)
		due_ns = world->now_ns + world->offset_ns;
	if (due_ns != INT64_MAX)
		sooner(&next_ns, due_ns - world->offset_ns);
	sooner(&next_ns, world->settle_ns);
	int64_t polls = (next_ns - JOBSIM_BEGIN_NS + POLL_NS - 1) / POLL_NS;
	next_ns = JOBSIM_BEGIN_NS + polls * POLL_NS;
	return next_ns > world->now_ns ? next_ns : world->now_ns + POLL_NS;
}

static bool dies(const struct world *world)
{
	const struct jobwatch_options *options = world->options;
	uint64_t poll = world->out->polls;
	if (options->restart_every && poll % options->restart_every == 0)
		return true;
	return poll >= options->restart_from && poll - options->restart_from < options->restart_times;
}

static void watch(struct world *world)
{
	const struct jobsim *sim = world->sim;
	while (world->now_ns < sim->end_ns && world->result == 0) {
		world->now_ns = next_poll_ns(world);
		world->now_ns = world_goes_on(world);
		series_tick(world->series);
		for (unsigned i = 0; i < sim->n_rings; i++)
			poll_ring(world, i);
		tick(world);
		if (dies(world))
			restart(world);
		world->out->polls++;
	}
}

int jobwatch_run(const struct jobsim *sim, const struct jobwatch_options *options, struct jobwatch *ret)
{
	static const struct jobwatch_options usual;
	struct config_problems problems;
	struct world *world = calloc(1, sizeof(*world));
	*ret = (struct jobwatch){.firing = calloc(JOBWATCH_FIRINGS_MAX, sizeof(*ret->firing))};
	int result = world && ret->firing ? 0 : -ENOMEM;
	if (result == 0) {
		*world = (struct world){.sim = sim,
					.options = options ? options : &usual,
					.out = ret,
					.now_ns = JOBSIM_BEGIN_NS - POLL_NS,
					.settle_ns = INT64_MAX};
		for (unsigned i = 0; i < sim->n_rings; i++)
			world->ring[i].last_event_ns = INT64_MIN;
		result = config_parse("{}", 2, NULL, &world->config, &problems);
	}
	if (result == 0)
		result = begin(world);
	if (result == 0) {
		watch(world);
		result = world->result;
	}
	if (world) {
		end(world);
		config_free(world->config);
	}
	free(world);
	return result;
}

void jobwatch_free(struct jobwatch *watch)
{
	free(watch->firing);
	watch->firing = NULL;
}
