/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Save and restore of an engine: sources, series with their windows, the state of every module by name and
 * length (one that this version does not know is skipped), gates. Options are not state.
 */
#include "engine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define STATE_MAGIC UINT64_C(0x3154535347525444) /* "DTRGSST1" */

enum { STATE_VERSION = 5, HEADER_BYTES = 24, SERIES_END = 0, SERIES_FOLLOWS = 1 };

static uint32_t phase_flags(const struct triggers_phase *phase)
{
	return (uint32_t)phase->beside | (uint32_t)phase->apart << 1;
}

static void restore_flags(struct triggers_phase *phase, struct triggers_cursor *cursor)
{
	uint32_t flags = triggers_read_u32(cursor);
	phase->beside = flags & 1;
	phase->apart = flags >> 1 & 1;
}

static void save_source(const struct triggers_source *source, struct triggers_writer *writer)
{
	triggers_write_u64(writer, source->job);
	triggers_write_i64(writer, source->last_progress_ns);
	triggers_write_i64(writer, source->step_ns);
	triggers_write_i64(writer, source->step_end_ns);
	triggers_write_i64(writer, source->step_begin_ns);
	triggers_write_u32(writer, source->n_open);
	for (uint32_t i = 0; i < source->n_open; i++) {
		triggers_write_i64(writer, source->open[i].begin_ns);
		triggers_write_u32(writer, phase_flags(&source->open[i]));
	}
	triggers_write_u32(writer, source->n_phases);
	for (int i = 0; i < TRIGGERS_PHASES_KEPT; i++) {
		triggers_write_i64(writer, source->phase[i].begin_ns);
		triggers_write_i64(writer, source->phase[i].end_ns);
		triggers_write_u32(writer, phase_flags(&source->phase[i]));
	}
	triggers_write_u32(writer, (uint32_t)source->after_phase);
	triggers_write_u32(writer, source->grace);
}

static void restore_source(struct triggers_engine *engine, struct triggers_source *source,
			   struct triggers_cursor *cursor)
{
	triggers_table_set_job(&engine->table, source, triggers_read_u64(cursor));
	source->last_progress_ns = triggers_read_ns(cursor);
	source->step_ns = triggers_read_time(cursor);
	source->step_end_ns = triggers_read_ns(cursor);
	source->step_begin_ns = triggers_read_time(cursor);
	uint32_t n_open = triggers_read_u32(cursor);
	if (n_open > TRIGGERS_PHASES_KEPT)
		cursor->failed = 1;
	source->n_open = 0;
	for (uint32_t i = 0; i < n_open && !cursor->failed; i++) {
		triggers_source_phase_begin(source, triggers_read_time(cursor));
		restore_flags(&source->open[i], cursor);
	}
	source->n_phases = triggers_read_u32(cursor);
	if (source->n_phases >= 2 * TRIGGERS_PHASES_KEPT)
		cursor->failed = 1;
	for (int i = 0; i < TRIGGERS_PHASES_KEPT; i++) {
		source->phase[i].begin_ns = triggers_read_time(cursor);
		source->phase[i].end_ns = triggers_read_time(cursor);
		restore_flags(&source->phase[i], cursor);
	}
	source->after_phase = triggers_read_u32(cursor) != 0 && source->n_phases;
	source->grace = triggers_read_u32(cursor);
	if (source->step_ns < 0)
		cursor->failed = 1;
}

static void save_modules(struct triggers_series *series, struct triggers_writer *writer)
{
	for (unsigned i = 0; triggers_modules[i]; i++) {
		const struct triggers_module *module = triggers_modules[i];
		const void *state = triggers_series_state(series, i);
		if (!state || !module->save)
			continue;
		struct triggers_writer length = {0};
		module->save(state, &length);
		triggers_write_text(writer, module->name);
		triggers_write_u32(writer, (uint32_t)length.bytes);
		module->save(state, writer);
	}
	triggers_write_text(writer, "");
}

/* False after the last one. */
static int restore_module(struct triggers_series *series, struct triggers_cursor *cursor)
{
	char name[TRIGGERS_NAME_MAX];
	triggers_read_text(cursor, name, sizeof(name));
	if (cursor->failed || !name[0])
		return 0;
	size_t bytes = triggers_read_u32(cursor);
	if (cursor->failed || bytes > cursor->left) {
		cursor->failed = 1;
		return 0;
	}
	struct triggers_cursor part = {.at = cursor->at, .left = bytes};
	cursor->at += bytes;
	cursor->left -= bytes;
	for (unsigned i = 0; triggers_modules[i]; i++)
		if (!strcmp(triggers_modules[i]->name, name) && series->state_at[i] &&
		    triggers_modules[i]->restore)
			triggers_modules[i]->restore(triggers_series_state(series, i), &part);
	cursor->failed |= part.failed;
	return !cursor->failed;
}

static void save_series(struct triggers_series *series, struct triggers_writer *writer)
{
	triggers_write_u32(writer, SERIES_FOLLOWS);
	triggers_write_u32(writer, series->id);
	triggers_write_u32(writer, series->role);
	triggers_write_u32(writer, series->source->number);
	triggers_write_u32(writer, series->rank);
	triggers_write_u64(writer, series->track);
	triggers_write_u64(writer, series->group);
	triggers_write_text(writer, series->name);
	triggers_write_text(writer, series->phase);
	triggers_write_u32(writer, (uint32_t)series->alarms | (uint32_t)series->learns << 1 |
					   (uint32_t)series->is_open << 2);
	triggers_write_u32(writer, series->parent);
	triggers_write_u32(writer, series->open);
	triggers_write_i64(writer, series->open_ns);
	triggers_write_i64(writer, series->open_step);
	triggers_write_u64(writer, series->samples);
	triggers_write_u64(writer, series->last_use);
	triggers_write_i64(writer, series->last_progress_ns);
	triggers_write_u32(writer, series->n_alarm_index);
	for (int i = 0; i < 4; i++) {
		triggers_write_u64(writer, series->alarm_index[i]);
		triggers_write_float(writer, series->alarm_excess[i]);
	}
	triggers_after_phase_save(&series->after, writer);
	save_source(series->source, writer);
	triggers_window_save(&series->window, writer);
	save_modules(series, writer);
}

static void restore_fields(struct triggers_series *series, struct triggers_cursor *cursor)
{
	uint32_t flags = triggers_read_u32(cursor);
	series->alarms = flags & 1;
	series->learns = flags >> 1 & 1;
	series->is_open = flags >> 2 & 1;
	series->parent = triggers_read_u32(cursor);
	series->open = triggers_read_u32(cursor);
	series->open_ns = triggers_read_time(cursor);
	series->open_step = triggers_read_i64(cursor);
	series->samples = triggers_read_u64(cursor);
	series->last_use = triggers_read_u64(cursor);
	series->last_progress_ns = triggers_read_ns(cursor);
	series->n_alarm_index = triggers_read_u32(cursor);
	for (int i = 0; i < 4; i++) {
		series->alarm_index[i] = triggers_read_u64(cursor);
		series->alarm_excess[i] = triggers_read_float(cursor);
	}
	if (series->is_open && series->role == TRIGGERS_TRACK && series->last_progress_ns == INT64_MIN)
		cursor->failed = 1;
	if (series->is_open && series->role == TRIGGERS_STEP)
		triggers_source_step_open(series->source, !series->phase[0], series->open_ns);
}

static void restore_series(struct triggers_engine *engine, struct triggers_cursor *cursor)
{
	char name[TRIGGERS_NAME_MAX], phase[TRIGGERS_NAME_MAX];
	struct triggers_series_key key = {0};
	uint32_t id = triggers_read_u32(cursor), role = triggers_read_u32(cursor);
	key.role = (enum triggers_role)role;
	key.source = triggers_read_u32(cursor);
	key.rank = triggers_read_u32(cursor);
	key.track = triggers_read_u64(cursor);
	uint64_t group = triggers_read_u64(cursor);
	triggers_read_text(cursor, name, sizeof(name));
	triggers_read_text(cursor, phase, sizeof(phase));
	if (role < TRIGGERS_STEP || role > TRIGGERS_BUSY)
		cursor->failed = 1;
	if (cursor->failed)
		return;
	struct triggers_series *series = NULL;
	if (!triggers_table_find(&engine->table, key.role, key.source, key.track, name, phase))
		series = triggers_engine_add(engine, &key, name, phase, id);
	if (!series) {
		cursor->failed = 1;
		return;
	}
	series->group = group;
	restore_fields(series, cursor);
	triggers_after_phase_restore(&series->after, cursor);
	restore_source(engine, series->source, cursor);
	triggers_window_restore(&series->window, cursor);
	while (restore_module(series, cursor))
		;
}

static void save_body(const struct triggers_engine *engine, struct triggers_writer *writer)
{
	triggers_write_i64(writer, engine->now_ns);
	triggers_write_u64(writer, engine->table.uses);
	triggers_write_u32(writer, triggers_table_newest_generation(&engine->table));
	triggers_gates_save(&engine->gates, writer);
	for (uint32_t i = 0; i < engine->table.used; i++)
		if (engine->table.place[i])
			save_series(engine->table.place[i], writer);
	triggers_write_u32(writer, SERIES_END);
	triggers_peers_save(&engine->peers, writer);
}

int64_t triggers_engine_save(const struct triggers_engine *engine, void *out, size_t room)
{
	struct triggers_writer body = {0}, header = {.out = out, .room = HEADER_BYTES};
	save_body(engine, &body);
	if (body.bytes > UINT32_MAX)
		return -E2BIG;
	size_t bytes = HEADER_BYTES + body.bytes;
	if (!out)
		return (int64_t)bytes;
	if (room < bytes)
		return -ENOSPC;
	body = (struct triggers_writer){.out = (uint8_t *)out + HEADER_BYTES, .room = room - HEADER_BYTES};
	save_body(engine, &body);
	triggers_write_u64(&header, STATE_MAGIC);
	triggers_write_u32(&header, STATE_VERSION);
	triggers_write_u32(&header, (uint32_t)body.bytes);
	triggers_write_u32(&header, triggers_crc32((const uint8_t *)out + HEADER_BYTES, body.bytes));
	triggers_write_u32(&header, 0);
	return (int64_t)bytes;
}

static int check_header(struct triggers_cursor *cursor)
{
	uint64_t magic = triggers_read_u64(cursor);
	uint32_t version = triggers_read_u32(cursor), bytes = triggers_read_u32(cursor);
	uint32_t crc = triggers_read_u32(cursor);
	triggers_read_u32(cursor);
	if (cursor->failed || magic != STATE_MAGIC)
		return -EBADMSG;
	if (version != STATE_VERSION)
		return -EPROTONOSUPPORT;
	if (bytes != cursor->left || crc != triggers_crc32(cursor->at, cursor->left))
		return -EBADMSG;
	return 0;
}

static void forget_all(struct triggers_engine *engine)
{
	for (uint32_t i = 0; i < engine->table.used; i++)
		if (engine->table.place[i])
			triggers_engine_remove(engine, engine->table.place[i]);
	triggers_peers_free(&engine->peers);
	triggers_table_init(&engine->table);
	triggers_gates_init(&engine->gates);
	engine->now_ns = INT64_MIN;
	engine->due_ns = INT64_MAX;
}

int triggers_engine_restore(struct triggers_engine *engine, const void *bytes, size_t count)
{
	struct triggers_cursor cursor = {.at = bytes, .left = count};
	if (engine->table.count)
		return -EBUSY;
	int result = check_header(&cursor);
	if (result)
		return result;
	engine->now_ns = triggers_read_ns(&cursor);
	engine->table.uses = triggers_read_u64(&cursor);
	uint32_t generation = triggers_read_u32(&cursor);
	triggers_gates_restore(&engine->gates, &cursor);
	uint32_t follows = triggers_read_u32(&cursor);
	for (; follows == SERIES_FOLLOWS && !cursor.failed; follows = triggers_read_u32(&cursor))
		restore_series(engine, &cursor);
	triggers_peers_restore(&engine->peers, &cursor);
	if (cursor.failed || follows != SERIES_END || cursor.left) {
		forget_all(engine);
		return -EBADMSG;
	}
	triggers_table_follow_generation(&engine->table, generation);
	engine->due_ns = INT64_MIN;
	return 0;
}

void triggers_firing_save(const struct triggers_firing *firing, struct triggers_writer *writer)
{
	triggers_write_text(writer, firing->trigger);
	triggers_write_text(writer, firing->series);
	triggers_write_text(writer, firing->phase);
	triggers_write_u32(writer, firing->severity);
	triggers_write_u32(writer, firing->series_id);
	triggers_write_u32(writer, firing->source);
	triggers_write_u32(writer, firing->rank);
	triggers_write_u64(writer, firing->track);
	triggers_write_i64(writer, firing->t0_ns);
	triggers_write_i64(writer, firing->until_ns);
	triggers_write_i64(writer, firing->detected_ns);
	triggers_write_double(writer, firing->value);
	triggers_write_double(writer, firing->expected);
	triggers_write_double(writer, firing->ratio);
	triggers_write_i64(writer, firing->step);
	triggers_write_i64(writer, firing->sample);
	triggers_write_u32(writer, (uint32_t)firing->ongoing | (uint32_t)firing->shadow << 1 |
					   (uint32_t)firing->quiet << 2);
	triggers_write_text(writer, firing->evidence);
}

void triggers_firing_restore(struct triggers_firing *firing, struct triggers_cursor *cursor)
{
	triggers_read_text(cursor, firing->trigger, sizeof(firing->trigger));
	triggers_read_text(cursor, firing->series, sizeof(firing->series));
	triggers_read_text(cursor, firing->phase, sizeof(firing->phase));
	uint32_t severity = triggers_read_u32(cursor);
	firing->severity = (enum triggers_severity)severity;
	firing->series_id = triggers_read_u32(cursor);
	firing->source = triggers_read_u32(cursor);
	firing->rank = triggers_read_u32(cursor);
	firing->track = triggers_read_u64(cursor);
	firing->t0_ns = triggers_read_time(cursor);
	firing->until_ns = triggers_read_time(cursor);
	firing->detected_ns = triggers_read_time(cursor);
	firing->value = triggers_read_double(cursor);
	firing->expected = triggers_read_double(cursor);
	firing->ratio = triggers_read_double(cursor);
	firing->step = triggers_read_i64(cursor);
	firing->sample = triggers_read_i64(cursor);
	uint32_t flags = triggers_read_u32(cursor);
	firing->ongoing = flags & 1;
	firing->shadow = flags >> 1 & 1;
	firing->quiet = flags >> 2 & 1;
	triggers_read_text(cursor, firing->evidence, sizeof(firing->evidence));
	if (severity > TRIGGERS_CRITICAL)
		cursor->failed = 1;
}
