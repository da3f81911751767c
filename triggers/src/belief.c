/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a series, for whoever looks on: a table of all modules' answers, and cheap single ones. */
#include "engine.h"

#include <errno.h>

uint32_t triggers_engine_series_count(const struct triggers_engine *engine)
{
	return engine->table.used;
}

enum triggers_role triggers_engine_role(const struct triggers_engine *engine, uint32_t id)
{
	const struct triggers_series *series = engine->table.place[id % TRIGGERS_SERIES_MAX];
	return series ? series->role : (enum triggers_role)0;
}

int triggers_engine_belief(const struct triggers_engine *engine, uint32_t id, struct triggers_belief *ret)
{
	const struct triggers_series *series = engine->table.place[id % TRIGGERS_SERIES_MAX];
	if (!series)
		return -ENOENT;
	*ret = (struct triggers_belief){
		.key = {.role = series->role,
			.source = series->source->number,
			.rank = series->rank,
			.track = series->track,
			.name = series->name,
			.alarms = series->alarms},
		.samples = series->samples,
		.median = triggers_window_median(&series->window),
		.deviation = triggers_window_deviation(&series->window),
		.warm = triggers_engine_is_warm(engine, series),
		.open = series->is_open,
		.open_since_ns = series->is_open ? series->open_ns : 0,
		.last_progress_ns = series->last_progress_ns,
	};
	for (unsigned i = 0; triggers_modules[i]; i++)
		if (series->state_at[i] && triggers_modules[i]->believe)
			triggers_modules[i]->believe(engine, series,
						     (const char *)series + series->state_at[i], ret);
	return 0;
}

int64_t triggers_engine_step_ns(const struct triggers_engine *engine, uint32_t source)
{
	const struct triggers_source *found = triggers_table_source(&engine->table, source);
	return found ? found->step_ns : 0;
}
