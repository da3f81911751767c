/* SPDX-License-Identifier: Apache-2.0 */
#include "gates.h"

#include <float.h>
#include <string.h>

#define HOUR_NS (INT64_C(3600) * 1000000000)
#define DAY_NS  (24 * HOUR_NS)

/* By how much more than the last one a firing must exceed the usual to be news in its cooldown. */
#define WORSE 1.25

/* For so many steps, but at least 2 s, another slow step is no news; one that is large, for fewer. */
#define LARGE            0.4
#define COOLING_STEPS    20
#define COOLING_LARGE    4
#define COOLING_LEAST_NS INT64_C(2000000000)

/* Closer alarms are a cluster, not a period; so far apart, others in between do not hide one. */
enum { PERIOD_MIN = 8, PERIOD_LONG = 100, PERIOD_APART = 400 };

void triggers_gates_init(struct triggers_gates *gates)
{
	memset(gates, 0, sizeof(*gates));
	gates->now_ns = INT64_MIN;
	for (int i = 0; i < TRIGGERS_MODULES_MAX; i++)
		gates->passed_ns[i] = INT64_MIN;
}

static void clamp(int64_t *ns, int64_t now_ns)
{
	if (*ns > now_ns)
		*ns = now_ns;
}

/* After a clock step back nothing lies in the future, so no gate stays shut for as long as the step was. */
static void follow_clock(struct triggers_gates *gates, int64_t now_ns)
{
	if (now_ns < gates->now_ns) {
		clamp(&gates->waiting_ns, now_ns);
		for (int i = 0; i < TRIGGERS_MODULES_MAX; i++)
			clamp(&gates->passed_ns[i], now_ns);
	}
	gates->now_ns = now_ns;
}

static int touches_capture(const struct triggers_gates *gates, const struct triggers_claim *claim)
{
	int64_t step_ns = claim->series ? claim->series->source->step_ns : 0;
	uint32_t kept =
		gates->n_captures < TRIGGERS_CAPTURES_KEPT ? gates->n_captures : TRIGGERS_CAPTURES_KEPT;
	for (uint32_t i = 0; i < kept; i++) {
		const struct triggers_interval *capture = &gates->capture[i];
		if (claim->until_ns >= capture->begin_ns - step_ns &&
		    claim->t0_ns <= capture->end_ns + 2 * step_ns)
			return 1;
	}
	return 0;
}

static double excess(const struct triggers_claim *claim)
{
	return claim->expected > 0 ? triggers_ratio(claim->value, claim->expected) - 1 : 0;
}

/*
 * Within 2 samples or 0.5 %; of short gaps within one, as there are few of them to be alike by chance. Where others came
 * between there are more pairs to be alike by chance, and 0.5 % of a thousand is too much.
 */
static int same_gap(uint64_t a, uint64_t b, int others_between)
{
	uint64_t difference = a > b ? a - b : b - a;
	if (a < PERIOD_LONG)
		return difference <= 1;
	return difference <= 2 || (!others_between && difference <= a / 200);
}

/* How often in a row the gap from at[0] to at[i] is found before at[i], and the worst that is met on the way. */
static int repeats(const uint64_t at[6], const double bad[6], unsigned n, unsigned i, double *ret_worst)
{
	uint64_t gap = at[0] - at[i];
	int equal = 0;
	if (gap < PERIOD_MIN)
		return 0;
	for (unsigned from = i, to = i + 1; to < n && at[from] >= at[to]; to++) {
		if (!same_gap(gap, at[from] - at[to], i > 1 || to > from + 1)) {
			/* Of short gaps there would soon be some alike by chance. */
			if (gap < PERIOD_APART)
				break;
			continue;
		}
		if (bad[from] > *ret_worst)
			*ret_worst = bad[from];
		from = to;
		equal++;
	}
	return equal;
}

/*
 * How many times in a row a gap up to this alarm has been seen: 0 .. 3. Between those that are so far apart as to be no
 * chance others may have come. One that is worse than those before is not explained by them: in a job with a few slow
 * steps two gaps are soon alike by chance.
 */
static int periods(const struct triggers_series *series, const struct triggers_claim *claim)
{
	uint64_t at[6] = {claim->index};
	double bad[6] = {0};
	unsigned n = 1;
	int most = 0;
	/* Another module may have claimed the same sample. */
	unsigned same = series->n_alarm_index && series->alarm_index[0] >= claim->index;
	for (unsigned i = same; i < series->n_alarm_index && i < 4; i++, n++) {
		at[n] = series->alarm_index[i];
		bad[n] = (double)series->alarm_excess[i];
	}
	/* The start counts as one while it is remembered, for what comes at every so many hundred steps. */
	if (series->n_alarm_index <= 4 && n > 1 && at[n - 1] + 1 >= PERIOD_LONG)
		at[n++] = 0;
	for (unsigned i = 1; i + 1 < n && at[i] < at[0]; i++) {
		double worst = 0;
		int equal = i == 1 || at[0] - at[i] >= PERIOD_APART ? repeats(at, bad, n, i, &worst) : 0;
		if (claim->graded && excess(claim) > WORSE * worst)
			equal = 0;
		most = equal > most ? equal : most;
	}
	return most;
}

static void remember_alarm(struct triggers_series *series, const struct triggers_claim *claim)
{
	if (series->n_alarm_index && series->alarm_index[0] >= claim->index)
		return;
	memmove(series->alarm_index + 1, series->alarm_index, 3 * sizeof(series->alarm_index[0]));
	memmove(series->alarm_excess + 1, series->alarm_excess, 3 * sizeof(series->alarm_excess[0]));
	series->alarm_index[0] = claim->index;
	series->alarm_excess[0] = claim->graded ? (float)excess(claim) : FLT_MAX;
	series->n_alarm_index += series->n_alarm_index < UINT32_MAX;
}

/* True where the claim falls below a note. */
static int lower_periodic(struct triggers_claim *claim)
{
	struct triggers_series *series = claim->series;
	if (!series || claim->shadow || claim->lasting || claim->severity == TRIGGERS_NOTE)
		return 0;
	int equal = periods(series, claim);
	int lowered = (int)claim->severity - (equal > 2 ? 2 : equal);
	remember_alarm(series, claim);
	if (equal)
		claim->severity = lowered > TRIGGERS_NOTE ? (enum triggers_severity)lowered : TRIGGERS_NOTE;
	return equal && claim->severity == TRIGGERS_NOTE;
}

static int is_coalesced(struct triggers_gates *gates, const struct triggers_engine *engine,
			const struct triggers_claim *claim)
{
	int64_t longest_ns = triggers_engine_option_ns(engine, TRIGGERS_OPTION_GATE_COALESCE);
	if (gates->waiting && claim->detected_ns - gates->waiting_ns >= longest_ns)
		gates->waiting = 0;
	return gates->waiting && (!claim->by_hand || gates->waiting_by_hand);
}

/* How long one step of training took. */
static int is_of_step(const struct triggers_claim *claim)
{
	return claim->series && triggers_series_is_train(claim->series) && claim->graded && !claim->lasting;
}

/*
 * Those that judge the same lengths cool down together: else each would in turn tell of what the other has
 * told. A slow evaluation or span says nothing of the steps of training, which only both of them judge.
 */
static unsigned cooling_place(const struct triggers_claim *claim)
{
	return triggers_module_number(is_of_step(claim) ? &triggers_module_difference : claim->module);
}

/* A minute is 200 steps of a fast job. What would be critical wakes somebody: it keeps all of it. */
static int64_t cooldown_of(const struct triggers_engine *engine, const struct triggers_claim *claim)
{
	int64_t cooldown_ns = triggers_engine_option_ns(engine, TRIGGERS_OPTION_GATE_COOLDOWN);
	if (!is_of_step(claim) ||
	    excess(claim) >= triggers_engine_option(engine, TRIGGERS_OPTION_SPIKE_CRITICAL) - 1)
		return cooldown_ns;
	int64_t steps = excess(claim) < LARGE ? COOLING_STEPS : COOLING_LARGE;
	int64_t step_ns = claim->series->source->step_ns;
	int64_t steps_ns = step_ns < cooldown_ns ? steps * step_ns : cooldown_ns;
	steps_ns = steps_ns > COOLING_LEAST_NS ? steps_ns : COOLING_LEAST_NS;
	return steps_ns < cooldown_ns ? steps_ns : cooldown_ns;
}

/*
 * What was under way already when the last one passed is the same event, seen on another track or rank. For a
 * stall of a known job that has been judged by what its anomaly meets.
 */
static int is_cooling(const struct triggers_gates *gates, const struct triggers_engine *engine,
		      const struct triggers_claim *claim)
{
	unsigned module = cooling_place(claim);
	int64_t passed_ns = gates->passed_ns[module];
	int64_t cooldown_ns = cooldown_of(engine, claim);
	if (claim->by_hand || passed_ns == INT64_MIN || (int)claim->severity > gates->passed_severity[module])
		return 0;
	if (claim->module == &triggers_module_stall)
		return cooldown_ns && !claim->series->source->job && claim->t0_ns < passed_ns;
	if (claim->graded && excess(claim) > WORSE * gates->passed_excess[module])
		return 0;
	return claim->detected_ns - passed_ns < cooldown_ns ||
	       (cooldown_ns && !claim->lasting && claim->t0_ns < passed_ns);
}

static void forget_older_than_a_day(struct triggers_gates *gates, int64_t now_ns)
{
	uint32_t old = 0;
	while (old < gates->n_spent && now_ns - gates->spent[old].at_ns >= DAY_NS)
		old++;
	gates->n_spent -= old;
	memmove(gates->spent, gates->spent + old, gates->n_spent * sizeof(gates->spent[0]));
}

static enum triggers_weight weight_of(const struct triggers_claim *claim)
{
	if (claim->severity == TRIGGERS_CRITICAL || claim->by_hand)
		return TRIGGERS_WEIGHT_RESERVED;
	if (!claim->graded)
		return TRIGGERS_WEIGHT_LARGE;
	if (claim->lasting)
		return TRIGGERS_WEIGHT_LASTING;
	return excess(claim) < 0.25    ? TRIGGERS_WEIGHT_SMALL
	       : excess(claim) < LARGE ? TRIGGERS_WEIGHT_MIDDLE
				       : TRIGGERS_WEIGHT_LARGE;
}

/* Whether one more fits a budget of `limit`, of which the share `reserve` is kept for the weightiest. */
static int fits(const struct triggers_gates *gates, int64_t now_ns, int64_t period_ns, double limit,
		double reserve, enum triggers_weight weight)
{
	static const double share[TRIGGERS_WEIGHT_LASTING] = {1. / 3, 2. / 3, 1};
	double spent = 0, as_light = 0, open = 0, lasting = 0;
	for (uint32_t i = 0; i < gates->n_spent; i++)
		if (now_ns - gates->spent[i].at_ns < period_ns) {
			spent++;
			as_light += gates->spent[i].weight <= weight;
			open += gates->spent[i].weight < TRIGGERS_WEIGHT_LASTING;
			lasting += gates->spent[i].weight == TRIGGERS_WEIGHT_LASTING;
		}
	if (weight == TRIGGERS_WEIGHT_RESERVED)
		return spent + 1 <= limit;
	if (weight == TRIGGERS_WEIGHT_LASTING)
		return spent + 1 <= limit && (lasting < 1 || lasting + 1 <= limit * reserve / 2);
	double open_limit = limit * (1 - reserve), light_limit = open_limit * share[weight];
	if (light_limit < 1)
		light_limit = 1; /* a small budget has room for a small one too, if for any */
	return spent + 1 <= limit && open + 1 <= open_limit && as_light + 1 <= light_limit;
}

static enum triggers_gate spend(struct triggers_gates *gates, const struct triggers_engine *engine,
				const struct triggers_claim *claim)
{
	int64_t now_ns = triggers_engine_near_now(engine, claim->detected_ns);
	enum triggers_weight weight = weight_of(claim);
	double reserve = triggers_engine_option(engine, TRIGGERS_OPTION_GATE_RESERVE);
	for (uint32_t i = 0; i < gates->n_spent; i++)
		clamp(&gates->spent[i].at_ns, now_ns);
	forget_older_than_a_day(gates, now_ns);
	if (!fits(gates, now_ns, HOUR_NS, triggers_engine_option(engine, TRIGGERS_OPTION_GATE_HOUR), reserve,
		  weight))
		return TRIGGERS_BUDGET_HOUR;
	if (gates->n_spent == TRIGGERS_SPENT_MAX ||
	    !fits(gates, now_ns, DAY_NS, triggers_engine_option(engine, TRIGGERS_OPTION_GATE_DAY), reserve,
		  weight))
		return TRIGGERS_BUDGET_DAY;
	gates->spent[gates->n_spent++] = (struct triggers_spent){.at_ns = now_ns, .weight = weight};
	return TRIGGERS_PASSED;
}

/* The next one of this trigger cools down, unless it is worse. */
static void note_passed(struct triggers_gates *gates, const struct triggers_claim *claim)
{
	unsigned module = cooling_place(claim);
	gates->passed_ns[module] = claim->detected_ns;
	gates->passed_severity[module] = (int)claim->severity;
	gates->passed_excess[module] = excess(claim);
}

enum triggers_gate triggers_gates_judge(struct triggers_gates *gates, const struct triggers_engine *engine,
					struct triggers_claim *claim)
{
	follow_clock(gates, claim->detected_ns);
	if (!claim->by_hand && !claim->still && touches_capture(gates, claim))
		return TRIGGERS_OWN_CAPTURE;
	if (claim->warmup)
		return TRIGGERS_WARMUP;
	if (!claim->still && lower_periodic(claim))
		return TRIGGERS_PERIODIC;
	if (claim->shadow)
		return TRIGGERS_SILENCED;
	if (is_coalesced(gates, engine, claim)) {
		/*
		 * What joins is in an incident, too: else each trigger of a storm would open one of its own.
		 */
		if (!is_cooling(gates, engine, claim))
			note_passed(gates, claim);
		triggers_anomalies_add(&gates->anomalies, claim);
		return TRIGGERS_COALESCED;
	}
	if (triggers_anomalies_meet(&gates->anomalies, claim))
		return TRIGGERS_SAME_ANOMALY;
	if (is_cooling(gates, engine, claim))
		return TRIGGERS_COOLDOWN;
	enum triggers_gate gate = spend(gates, engine, claim);
	if (gate != TRIGGERS_PASSED)
		return gate;
	note_passed(gates, claim);
	gates->waiting = 1;
	gates->waiting_by_hand = claim->by_hand;
	gates->waiting_ns = claim->detected_ns;
	triggers_anomalies_add(&gates->anomalies, claim);
	return TRIGGERS_PASSED;
}

void triggers_gates_capture(struct triggers_gates *gates, int64_t begin_ns, int64_t end_ns)
{
	uint32_t last = (gates->n_captures + TRIGGERS_CAPTURES_KEPT - 1) % TRIGGERS_CAPTURES_KEPT;
	if (gates->n_captures && gates->capture[last].begin_ns == begin_ns) {
		gates->capture[last].end_ns = end_ns; /* the end of one that was under way has become known */
		return;
	}
	gates->capture[gates->n_captures % TRIGGERS_CAPTURES_KEPT] =
		(struct triggers_interval){begin_ns, end_ns};
	gates->n_captures++;
	if (gates->n_captures == 2 * TRIGGERS_CAPTURES_KEPT)
		gates->n_captures = TRIGGERS_CAPTURES_KEPT;
}

void triggers_gates_settled(struct triggers_gates *gates)
{
	gates->waiting = 0;
}

void triggers_gates_ended(struct triggers_gates *gates, uint32_t series, int64_t now_ns)
{
	triggers_anomalies_end(&gates->anomalies, series, now_ns);
}

void triggers_gates_save(const struct triggers_gates *gates, struct triggers_writer *writer)
{
	unsigned n = 0;
	while (triggers_modules[n])
		n++;
	triggers_write_i64(writer, gates->now_ns);
	triggers_write_u32(writer, n);
	for (unsigned i = 0; i < n; i++) {
		triggers_write_text(writer, triggers_modules[i]->name);
		triggers_write_i64(writer, gates->passed_ns[i]);
		triggers_write_u32(writer, (uint32_t)gates->passed_severity[i]);
		triggers_write_double(writer, gates->passed_excess[i]);
	}
	triggers_write_u32(writer, (uint32_t)gates->waiting | (uint32_t)gates->waiting_by_hand << 1);
	triggers_write_i64(writer, gates->waiting_ns);
	triggers_anomalies_save(&gates->anomalies, writer);
	triggers_write_u32(writer, gates->n_spent);
	for (uint32_t i = 0; i < gates->n_spent; i++) {
		triggers_write_i64(writer, gates->spent[i].at_ns);
		triggers_write_u32(writer, (uint32_t)gates->spent[i].weight);
	}
	triggers_write_u32(writer, gates->n_captures);
	for (int i = 0; i < TRIGGERS_CAPTURES_KEPT; i++) {
		triggers_write_i64(writer, gates->capture[i].begin_ns);
		triggers_write_i64(writer, gates->capture[i].end_ns);
	}
}

/* Cooldowns are kept by name, so that a module more or less in the next version does no harm. */
static void restore_passed(struct triggers_gates *gates, struct triggers_cursor *cursor)
{
	char name[TRIGGERS_NAME_MAX];
	triggers_read_text(cursor, name, sizeof(name));
	int64_t passed_ns = triggers_read_ns(cursor);
	uint32_t severity = triggers_read_u32(cursor);
	double passed_excess = triggers_read_double(cursor);
	if (severity > TRIGGERS_CRITICAL)
		cursor->failed = 1;
	for (unsigned i = 0; triggers_modules[i] && !cursor->failed; i++)
		if (!strcmp(triggers_modules[i]->name, name)) {
			gates->passed_ns[i] = passed_ns;
			gates->passed_severity[i] = (int)severity;
			gates->passed_excess[i] = passed_excess;
		}
}

void triggers_gates_restore(struct triggers_gates *gates, struct triggers_cursor *cursor)
{
	triggers_gates_init(gates);
	gates->now_ns = triggers_read_ns(cursor);
	uint32_t n = triggers_read_u32(cursor);
	for (uint32_t i = 0; i < n && !cursor->failed; i++)
		restore_passed(gates, cursor);
	uint32_t waiting = triggers_read_u32(cursor);
	gates->waiting = waiting & 1;
	gates->waiting_by_hand = waiting >> 1 & 1;
	gates->waiting_ns = triggers_read_time(cursor);
	triggers_anomalies_restore(&gates->anomalies, cursor);
	uint32_t n_spent = triggers_read_u32(cursor);
	if (n_spent > TRIGGERS_SPENT_MAX)
		cursor->failed = 1;
	for (uint32_t i = 0; i < n_spent && !cursor->failed; i++) {
		gates->spent[i].at_ns = triggers_read_time(cursor);
		uint32_t weight = triggers_read_u32(cursor);
		if (weight >= TRIGGERS_WEIGHT_LIMIT)
			cursor->failed = 1;
		else
			gates->spent[i].weight = (enum triggers_weight)weight;
		gates->n_spent = i + 1;
	}
	gates->n_captures = triggers_read_u32(cursor);
	if (gates->n_captures >= 2 * TRIGGERS_CAPTURES_KEPT)
		cursor->failed = 1;
	for (int i = 0; i < TRIGGERS_CAPTURES_KEPT; i++) {
		gates->capture[i].begin_ns = triggers_read_time(cursor);
		gates->capture[i].end_ns = triggers_read_time(cursor);
	}
}
