/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's own state: for the files of the engine alone. Modules use module.h. */
#ifndef TRIGGERS_ENGINE_H
#define TRIGGERS_ENGINE_H

#include "gates.h"
#include "module.h"
#include "peers.h"
#include "rules.h"

enum { TRIGGERS_GRACE_STEPS = 3 }; /* may be slow after a start, restore, recompile */
enum {
	TRIGGERS_PROPOSED_MAX = 4
}; /* modules that grade: latency_spike, shift, difference, and one to come */

struct triggers_engine {
	struct triggers_listener listener;
	double option[TRIGGERS_OPTION_COUNT];
	struct triggers_rules rules;
	struct triggers_gates gates;
	struct {
		unsigned count;
		struct triggers_claim claim[TRIGGERS_PROPOSED_MAX];
	} proposed;     /* about the reading that is being observed */
	int64_t now_ns; /* of the last tick; INT64_MIN before the first */
	int64_t due_ns; /* no module needs a tick before */
	struct triggers_table table;
	struct triggers_peers peers;
};

/* A series with the state of its modules made, at `id` or (SERIES_NONE) anywhere. NULL: no room. */
struct triggers_series *triggers_engine_add(struct triggers_engine *engine,
					    const struct triggers_series_key *key, const char *name,
					    const char *phase, uint32_t id);
void triggers_engine_remove(struct triggers_engine *engine, struct triggers_series *series);
void *triggers_series_state(struct triggers_series *series, unsigned module);

static inline int64_t triggers_limited(int64_t ns)
{
	return ns > TRIGGERS_NS_MAX ? TRIGGERS_NS_MAX : ns < -TRIGGERS_NS_MAX ? -TRIGGERS_NS_MAX : ns;
}

/* "train", "" and NULL. */
int triggers_phase_is_train(const char *phase);
/*
 * The series that samples of this phase belong to: itself, or its child for steps and spans of another phase.
 */
struct triggers_series *triggers_engine_route(struct triggers_engine *engine, struct triggers_series *series,
					      const char *phase);

/* open.c */
void triggers_source_progress(struct triggers_source *source, int64_t now_ns);
/* Open no more; modules have been told. */
void triggers_engine_shut(struct triggers_engine *engine, struct triggers_series *parent,
			  struct triggers_series *series);
/* Ends without a sample; `died`: with its producer. */
void triggers_engine_close(struct triggers_engine *engine, struct triggers_series *parent,
			   struct triggers_series *series, int64_t now_ns, int died);
void triggers_engine_close_current(struct triggers_engine *engine, struct triggers_series *parent,
				   int64_t now_ns, int died);

/* claims.c: settles what was proposed about the reading that is being observed. */
void triggers_engine_decide(struct triggers_engine *engine);

#endif
