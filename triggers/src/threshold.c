/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threshold: a value beyond a limit that the operator wrote down.
 *
 * Formula   a rule PATTERN >|< LIMIT [for TIME] [severity] fires once when every sample of TIME was beyond
 *           the limit, and again only after one was not. Durations compare in time, counters in their own
 *           unit. A rule names its series, so it fires also where the series does not alarm otherwise. t0 =
 *           the first sample beyond the limit.
 * State     48 bytes a series: the first four rules that match its name.
 * Cost      one comparison a matching rule; names are matched once a series.
 * Defaults  no rules; a rule's severity is warn.
 */
#include <stdio.h>
#include <string.h>

#include "module.h"

enum { RULES_A_SERIES = 4 };

struct threshold_state {
	uint32_t version; /* of the rules that were matched */
	uint8_t count;
	uint8_t rule[RULES_A_SERIES];
	uint8_t beyond[RULES_A_SERIES]; /* 0 no, 1 since since_ns, 2 has fired */
	int64_t since_ns[RULES_A_SERIES];
};

static void match(const struct triggers_rules *rules, const struct triggers_series *series,
		  struct threshold_state *state)
{
	struct threshold_state old = *state;
	*state = (struct threshold_state){.version = rules->version};
	/* A limit of a span holds in every phase. */
	char name[TRIGGERS_NAME_MAX];
	int bytes = (int)(series->role == TRIGGERS_SPAN ? triggers_series_span_bytes(series)
							: strlen(series->name));
	snprintf(name, sizeof(name), "%.*s", bytes, series->name);
	for (uint32_t i = 0; i < rules->count && state->count < RULES_A_SERIES; i++)
		if (triggers_pattern_match(rules->rule[i].pattern, name)) {
			uint8_t at = state->count++;
			state->rule[at] = (uint8_t)i;
			for (int j = 0; j < old.count; j++)
				if (old.rule[j] == i) {
					state->beyond[at] = old.beyond[j];
					state->since_ns[at] = old.since_ns[j];
				}
		}
}

static void say(const struct triggers_series *series, const struct triggers_rule *rule,
		struct triggers_claim *claim)
{
	char value[TRIGGERS_DURATION_TEXT], limit[TRIGGERS_DURATION_TEXT],
		lasting[TRIGGERS_DURATION_TEXT + 8] = "";
	char what[2 * TRIGGERS_NAME_MAX], time[TRIGGERS_DURATION_TEXT];
	if (series->role == TRIGGERS_COUNTER) {
		snprintf(value, sizeof(value), "%.6g", claim->value);
		snprintf(limit, sizeof(limit), "%.6g", claim->expected);
	} else {
		triggers_duration_text(claim->value, value);
		triggers_duration_text(claim->expected, limit);
	}
	if (rule->for_ns)
		snprintf(lasting, sizeof(lasting), " for %s",
			 triggers_duration_text((double)rule->for_ns, time));
	snprintf(claim->evidence, sizeof(claim->evidence), "%s is %s, %s the limit of %s%s (rule %s)",
		 triggers_series_text(series, what), value, rule->above ? "above" : "below", limit, lasting,
		 rule->pattern);
}

static void judge(struct triggers_engine *engine, struct triggers_series *series,
		  struct threshold_state *state, int at, const struct triggers_reading *reading)
{
	const struct triggers_rule *rule = &triggers_engine_rules(engine)->rule[state->rule[at]];
	double limit = rule->limit;
	if (series->role != TRIGGERS_COUNTER && !rule->is_time)
		limit *= 1e9;
	if (rule->above ? !(reading->value > limit) : !(reading->value < limit)) {
		state->beyond[at] = 0;
		return;
	}
	/* Since a time to come: the clock was set back. */
	if (!state->beyond[at] || (state->beyond[at] == 1 && state->since_ns[at] > reading->start_ns)) {
		state->beyond[at] = 1;
		state->since_ns[at] = reading->start_ns;
	}
	if (state->beyond[at] == 2 || reading->end_ns - state->since_ns[at] < rule->for_ns)
		return;
	state->beyond[at] = 2;
	struct triggers_claim claim = {
		.module = &triggers_module_threshold,
		.series = series,
		.severity = rule->severity,
		.t0_ns = state->since_ns[at],
		.until_ns = reading->end_ns,
		.detected_ns = reading->end_ns,
		.value = reading->value,
		.expected = limit,
		.step = reading->step,
		.sample = reading->sample,
		.index = reading->index,
	};
	say(series, rule, &claim);
	triggers_engine_fire(engine, &claim, NULL);
}

static void threshold_observe(struct triggers_engine *engine, struct triggers_series *series, void *state_,
			      struct triggers_reading *reading)
{
	struct threshold_state *state = state_;
	const struct triggers_rules *rules = triggers_engine_rules(engine);
	if (state->version != rules->version)
		match(rules, series, state);
	for (int i = 0; i < state->count; i++)
		judge(engine, series, state, i, reading);
}

static void threshold_save(const void *state_, struct triggers_writer *writer)
{
	const struct threshold_state *state = state_;
	triggers_write_u32(writer, state->count);
	for (int i = 0; i < state->count; i++) {
		triggers_write_u32(writer, state->rule[i]);
		triggers_write_u32(writer, state->beyond[i]);
		triggers_write_i64(writer, state->since_ns[i]);
	}
}

/* No version that rules can have: they are matched anew, and what was beyond stays so for the same rules. */
static void threshold_restore(void *state_, struct triggers_cursor *cursor)
{
	struct threshold_state *state = state_;
	uint32_t count = triggers_read_u32(cursor);
	if (count > RULES_A_SERIES) {
		cursor->failed = 1;
		return;
	}
	state->count = (uint8_t)count;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t rule = triggers_read_u32(cursor), beyond = triggers_read_u32(cursor);
		state->rule[i] = (uint8_t)rule;
		state->beyond[i] = (uint8_t)beyond;
		state->since_ns[i] = triggers_read_time(cursor);
		if (rule >= TRIGGERS_RULES_MAX || beyond > 2)
			cursor->failed = 1;
	}
	state->version = UINT32_MAX;
}

const struct triggers_module triggers_module_threshold = {
	.name = "threshold",
	.roles = 1u << TRIGGERS_STEP | 1u << TRIGGERS_PHASE | 1u << TRIGGERS_SPAN | 1u << TRIGGERS_COUNTER,
	.state_bytes = sizeof(struct threshold_state),
	.observe = threshold_observe,
	.save = threshold_save,
	.restore = threshold_restore,
};
