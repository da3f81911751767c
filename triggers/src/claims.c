/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What modules say, on its way to the listener: filled in, held against what else was said of the same
 * reading, judged by the gates.
 */
#include "engine.h"

#include <stdio.h>
#include <string.h>

/* The length of "phase:eval" is of phase eval. */
static const char *phase_of(const struct triggers_series *series)
{
	static const char prefix[] = "phase:";
	if (series->role == TRIGGERS_PHASE && strncmp(series->name, prefix, sizeof(prefix) - 1) == 0)
		return series->name + sizeof(prefix) - 1;
	return series->phase[0] ? series->phase : "train";
}

static void fill_firing(const struct triggers_engine *engine, const struct triggers_claim *claim,
			struct triggers_firing *firing)
{
	const struct triggers_series *series = claim->series;
	const struct triggers_series *parent =
		series ? triggers_table_get(&engine->table, series->parent) : NULL;
	*firing = (struct triggers_firing){
		.severity = claim->severity,
		.series_id = series ? series->parent : TRIGGERS_SERIES_NONE,
		.source = series ? series->source->number : claim->source,
		.rank = series ? series->rank : claim->rank,
		.track = series ? series->track : 0,
		.t0_ns = claim->t0_ns,
		.until_ns = claim->until_ns,
		.detected_ns = claim->detected_ns,
		.value = claim->value,
		.expected = claim->expected,
		.ratio = triggers_ratio(claim->value, claim->expected),
		.step = claim->step,
		.sample = claim->sample,
		.ongoing = claim->ongoing,
		.shadow = claim->shadow,
		.quiet = claim->quiet,
	};
	snprintf(firing->trigger, sizeof(firing->trigger), "%s", claim->module->name);
	if (series) {
		snprintf(firing->series, sizeof(firing->series), "%s", parent ? parent->name : series->name);
		snprintf(firing->phase, sizeof(firing->phase), "%s", phase_of(series));
	}
	memcpy(firing->evidence, claim->evidence, sizeof(firing->evidence));
}

static void tell(struct triggers_engine *engine, const struct triggers_claim *claim, enum triggers_gate gate,
		 struct triggers_firing *ret_firing)
{
	struct triggers_firing firing;
	fill_firing(engine, claim, &firing);
	if (engine->listener.firing)
		engine->listener.firing(engine->listener.context, &firing, gate);
	if (ret_firing)
		*ret_firing = firing;
}

/* Whatever was proposed, by severity; of equals the one whose module stands first in the table. */
void triggers_engine_decide(struct triggers_engine *engine)
{
	unsigned count = engine->proposed.count;
	int taken = 0;
	engine->proposed.count = 0;
	for (int severity = TRIGGERS_CRITICAL; severity >= TRIGGERS_NOTE; severity--)
		for (unsigned i = 0; i < count; i++) {
			struct triggers_claim *claim = &engine->proposed.claim[i];
			if ((int)claim->severity != severity || !claim->module)
				continue;
			enum triggers_gate gate =
				taken && !claim->shadow && !claim->lasting
					? TRIGGERS_SAME_ANOMALY
					: triggers_gates_judge(&engine->gates, engine, claim);
			taken |= gate == TRIGGERS_PASSED || gate == TRIGGERS_COALESCED;
			tell(engine, claim, gate, NULL);
			claim->module = NULL; /* told of: its severity may have been lowered */
		}
}

void triggers_engine_propose(struct triggers_engine *engine, const struct triggers_claim *claim)
{
	if (engine->proposed.count < TRIGGERS_PROPOSED_MAX)
		engine->proposed.claim[engine->proposed.count++] = *claim;
}

enum triggers_gate triggers_engine_fire(struct triggers_engine *engine, const struct triggers_claim *claim,
					struct triggers_firing *ret_firing)
{
	struct triggers_claim judged = *claim;
	triggers_engine_decide(engine); /* the length as such comes before a limit that it broke */
	enum triggers_gate gate = triggers_gates_judge(&engine->gates, engine, &judged);
	tell(engine, &judged, gate, ret_firing);
	return gate;
}

void triggers_engine_rebase(struct triggers_engine *engine, struct triggers_series *series,
			    const struct triggers_reading *reading, const float *values, unsigned count)
{
	triggers_window_clear(&series->window);
	for (unsigned i = 0; i < count; i++)
		triggers_window_insert(&series->window, values[i], 0);
	for (unsigned i = 0; triggers_modules[i]; i++)
		if (series->state_at[i] && triggers_modules[i]->rebase)
			triggers_modules[i]->rebase(engine, series, triggers_series_state(series, i), reading,
						    values, count);
}

void triggers_engine_over(struct triggers_engine *engine, const struct triggers_firing *firing,
			  int64_t now_ns)
{
	struct triggers_firing over = *firing;
	if (now_ns < firing->t0_ns)
		now_ns = firing->t0_ns;
	over.until_ns = now_ns;
	over.ongoing = 0;
	if (engine->listener.progress)
		engine->listener.progress(engine->listener.context, &over, now_ns);
}

void triggers_engine_ended(struct triggers_engine *engine, const struct triggers_series *series,
			   int64_t now_ns)
{
	triggers_gates_ended(&engine->gates, series->id, now_ns);
}

void triggers_engine_suspect(struct triggers_engine *engine, const struct triggers_series *series,
			     int64_t from_ns)
{
	if (engine->listener.suspicion)
		engine->listener.suspicion(engine->listener.context, series->parent, series->source->number,
					   from_ns);
}

void triggers_engine_unsuspect(struct triggers_engine *engine, const struct triggers_series *series)
{
	if (engine->listener.suspicion_end)
		engine->listener.suspicion_end(engine->listener.context, series->parent,
					       series->source->number);
}
