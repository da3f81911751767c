/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_idle: a device does nothing while steps go on.
 *
 * Reads     counters named device:<n>:<what>. Percent: busy, duty_cycle, duty_cycle_pct, utilization, util,
 *           tensorcore_util. Levels: power, clock. Depth: queue, hlo_queue_size. Others it leaves alone.
 * Formula   A percent is idle below 5 %; a level below 40 % of its own median of when it was last busy.
 *           Levels are judged for themselves: in a hung collective utilization stays at 100 % and power falls
 *           from 700 W to 100 W. Fires once all samples of max(10 s, 2 steps) were idle and steps went on at
 *           each of them: a train step was open, or had ended less than a step ago, in the counter's own
 *           source, or in one of its job, or, where a host's counters name no job, in any; and no phase
 *           (eval, checkpoint, compile, first, ...) was open in those. The device must have been busy at 16
 *           samples since those steps began: one that the job does not use is not idle. Where a sample is
 *           missing (the next one late by four usual gaps) nothing is known of that time, and it begins anew.
 *           t0 = the last busy sample. One firing until the device is busy again or the job is in a phase;
 *           several devices that idle together are one incident (gates.h). The queue's latest sample says
 *           which end hangs: work waits in it = the device is stuck, it is empty = the host sends nothing. In
 *           captures, where the counter is made of the device's own spans, the evidence names what the host
 *           waited in.
 * State     608 bytes a counter, 552 of them the ongoing firing.
 * Cost      a look at the open steps of all sources a sample: 1,024 buckets, about a microsecond; at 1 Hz.
 * Defaults  5 %, 10 s, 2 steps: an operator of TPUs acts on a duty cycle of about 0. 40 %: the reported hang
 *           fell to 14 % of the usual power; a device that waits for its host draws 20-35 %, one that
 *           computes above half.
 */
#include <stdio.h>
#include <string.h>

#include "module.h"

#define SECOND_NS INT64_C(1000000000)

enum { USED_FROM = 16, GAPS_MISSED = 4 };
enum kind { KIND_NONE, KIND_PERCENT, KIND_LEVEL, KIND_QUEUE };

static const double LEVEL_SHARE = 0.4;

struct idle_state {
	enum kind kind;
	int fired, counted;
	uint32_t used;   /* busy samples while steps went on, up to USED_FROM */
	int64_t last_ns; /* the newest sample; INT64_MIN = none yet */
	int64_t gap_ns;  /* usual time between two */
	int64_t from_ns; /* idle since: the last sample that was busy, or at which no step went on */
	double last;
	double usual; /* median when last busy */
	struct triggers_firing firing;
};

static const struct {
	const char *what;
	enum kind kind;
} readings[] = {
	{"busy", KIND_PERCENT},         {"duty_cycle", KIND_PERCENT}, {"duty_cycle_pct", KIND_PERCENT},
	{"utilization", KIND_PERCENT},  {"util", KIND_PERCENT},       {"tensorcore_util", KIND_PERCENT},
	{"power", KIND_LEVEL},          {"clock", KIND_LEVEL},        {"queue", KIND_QUEUE},
	{"hlo_queue_size", KIND_QUEUE},
};

/* "device:3:power": the bytes of "device:3:", 0 where it is no such name. */
static size_t device_bytes(const char *name)
{
	static const char prefix[] = "device:";
	const size_t before = sizeof(prefix) - 1;
	const char *end = strncmp(name, prefix, before) == 0 ? strchr(name + before, ':') : NULL;
	return end && end > name + before ? (size_t)(end + 1 - name) : 0;
}

static void idle_create(struct triggers_engine *engine, struct triggers_series *series, void *state_)
{
	struct idle_state *state = state_;
	size_t device = device_bytes(series->name);
	(void)engine;
	state->last_ns = INT64_MIN;
	for (size_t i = 0; device && i < sizeof(readings) / sizeof(readings[0]); i++)
		if (strcmp(series->name + device, readings[i].what) == 0)
			state->kind = readings[i].kind;
}

static const char *what_of(const struct triggers_series *series)
{
	return series->name + device_bytes(series->name);
}

/*
 * The latest sample of another reading of the same device: NULL where there is none, or none of about this
 * time.
 */
static const struct idle_state *sibling(struct triggers_engine *engine, const struct triggers_series *series,
					const struct idle_state *own, enum kind kind,
					const struct triggers_series **ret_series)
{
	size_t device = device_bytes(series->name);
	for (uint32_t i = 0; i < triggers_engine_series_count(engine); i++) {
		struct triggers_series *other = triggers_engine_at(engine, i);
		if (!other || other == series || other->role != TRIGGERS_COUNTER ||
		    other->source != series->source || strncmp(other->name, series->name, device) != 0)
			continue;
		const struct idle_state *state = triggers_engine_state(other, &triggers_module_device_idle);
		if (state->kind != kind || state->last_ns == INT64_MIN ||
		    own->last_ns - state->last_ns > GAPS_MISSED * (own->gap_ns + SECOND_NS))
			continue;
		*ret_series = other;
		return state;
	}
	return NULL;
}

static const char *unit_of(const struct triggers_series *series, enum kind kind)
{
	if (kind == KIND_PERCENT)
		return " %";
	return strcmp(what_of(series), "power") == 0 ? " W" : " MHz";
}

static void say(struct triggers_engine *engine, const struct triggers_series *series,
		const struct idle_state *state, const char *note, struct triggers_claim *claim)
{
	char lasting[TRIGGERS_DURATION_TEXT], number[40];
	const struct triggers_series *other;
	const struct idle_state *queue = sibling(engine, series, state, KIND_QUEUE, &other), *percent = NULL;
	if (!queue && state->kind == KIND_LEVEL)
		percent = sibling(engine, series, state, KIND_PERCENT, &other);
	size_t device = device_bytes(series->name);
	snprintf(number, sizeof(number), "%.*s", (int)(device - sizeof("device:")), series->name + 7);
	int bytes = snprintf(
		claim->evidence, sizeof(claim->evidence),
		"device %.20s has been idle for %s while steps go on: %.20s is %.3g%s, usually %.3g%s",
		number, triggers_duration_text((double)(claim->detected_ns - claim->t0_ns), lasting),
		what_of(series), state->last, unit_of(series, state->kind), state->usual,
		unit_of(series, state->kind));
	char *rest = claim->evidence + bytes;
	size_t room = sizeof(claim->evidence) - (size_t)bytes;
	if (queue && queue->last > 0)
		snprintf(rest, room, "; %.3g wait in its queue: the device is stuck", queue->last);
	else if (queue)
		snprintf(rest, room, "; its queue is empty: the host sends it nothing");
	else if (note)
		snprintf(rest, room, "; the host waits in \"%.60s\"", note);
	else if (percent && percent->last >= percent->usual / 2)
		snprintf(rest, room, ", though %.20s says %.3g %%", what_of(other), percent->last);
}

static void fire(struct triggers_engine *engine, struct triggers_series *series, struct idle_state *state,
		 const struct triggers_reading *reading)
{
	struct triggers_claim claim = {
		.module = &triggers_module_device_idle,
		.series = series,
		.severity = TRIGGERS_WARN,
		.t0_ns = state->from_ns,
		.until_ns = reading->start_ns,
		.detected_ns = reading->start_ns,
		.value = reading->value,
		.expected = state->usual,
		.step = reading->step,
		.sample = reading->sample,
		.index = reading->index,
		.ongoing = 1,
	};
	say(engine, series, state, reading->note, &claim);
	enum triggers_gate gate = triggers_engine_fire(engine, &claim, &state->firing);
	state->fired = 1;
	state->counted = gate == TRIGGERS_PASSED || gate == TRIGGERS_COALESCED;
}

/* `died`: with the job, so nothing got better. */
static void end(struct triggers_engine *engine, const struct triggers_series *series,
		struct idle_state *state, int64_t now_ns, int died)
{
	if (!state->fired)
		return;
	triggers_engine_ended(engine, series, now_ns);
	if (state->counted && !died)
		triggers_engine_over(engine, &state->firing, now_ns);
	state->fired = 0;
}

static double limit_of(const struct triggers_engine *engine, const struct idle_state *state)
{
	double below = 100 * triggers_engine_option(engine, TRIGGERS_OPTION_IDLE_BELOW);
	return state->kind == KIND_PERCENT ? below : LEVEL_SHARE * state->usual;
}

/* How long it must be idle; INT64_MAX: nothing can be said of it. */
static int64_t needed_ns(const struct triggers_engine *engine, const struct idle_state *state,
			 int64_t step_ns)
{
	double lasting = triggers_engine_option(engine, TRIGGERS_OPTION_IDLE_FOR);
	int64_t least_ns = triggers_engine_option_ns(engine, TRIGGERS_OPTION_IDLE_MIN);
	double ns = lasting < 0 ? -1e9 * lasting : lasting * (double)step_ns;
	/* A device that is hardly ever busy is idle by nature. */
	if (state->used < USED_FROM || !step_ns || !(state->usual >= 2 * limit_of(engine, state)))
		return INT64_MAX;
	if (ns >= (double)TRIGGERS_NS_MAX)
		return TRIGGERS_NS_MAX;
	return (int64_t)ns > least_ns ? (int64_t)ns : least_ns;
}

/* Takes the sample's time in; whether it follows the one before as usual. */
static int in_time(struct idle_state *state, int64_t now_ns)
{
	int64_t gap_ns = state->last_ns == INT64_MIN ? -1 : now_ns - state->last_ns;
	int timely = gap_ns >= 0 && (!state->gap_ns || gap_ns <= GAPS_MISSED * state->gap_ns);
	state->last_ns = now_ns;
	if (gap_ns > TRIGGERS_NS_MAX / GAPS_MISSED)
		gap_ns = TRIGGERS_NS_MAX / GAPS_MISSED;
	if (gap_ns > 0)
		state->gap_ns = state->gap_ns ? state->gap_ns + (gap_ns - state->gap_ns) / 8 : gap_ns;
	return timely;
}

static void on_busy(struct triggers_engine *engine, const struct triggers_series *series,
		    struct idle_state *state, const struct triggers_reading *reading,
		    enum triggers_activity activity)
{
	end(engine, series, state, reading->start_ns, 0);
	state->from_ns = reading->start_ns;
	state->usual = reading->median > 0 ? reading->median : reading->value;
	if (activity == TRIGGERS_ACTIVITY_STEPS && state->used < USED_FROM)
		state->used++;
}

static void idle_observe(struct triggers_engine *engine, struct triggers_series *series, void *state_,
			 struct triggers_reading *reading)
{
	struct idle_state *state = state_;
	int64_t now_ns = reading->start_ns, step_ns;
	if (state->kind == KIND_NONE)
		return;
	int timely = in_time(state, now_ns);
	state->last = reading->value;
	if (state->kind == KIND_QUEUE || !series->alarms)
		return;
	enum triggers_activity activity = triggers_engine_activity(engine, series->source, now_ns, &step_ns);
	if (activity == TRIGGERS_ACTIVITY_NONE) {
		state->used = 0;
		state->usual = 0;
	}
	if (!timely)
		state->from_ns = now_ns;
	if (reading->value >= limit_of(engine, state)) {
		on_busy(engine, series, state, reading, activity);
		return;
	}
	reading->kept = state->used != 0; /* the median is of a device at work */
	if (activity != TRIGGERS_ACTIVITY_STEPS) {
		end(engine, series, state, now_ns, activity == TRIGGERS_ACTIVITY_NONE);
		state->from_ns = now_ns;
		return;
	}
	int64_t wanted_ns = needed_ns(engine, state, step_ns);
	if (!state->fired && wanted_ns != INT64_MAX && now_ns - state->from_ns >= wanted_ns)
		fire(engine, series, state, reading);
}

static void idle_save(const void *state_, struct triggers_writer *writer)
{
	const struct idle_state *state = state_;
	triggers_write_u32(writer, (uint32_t)state->fired | (uint32_t)state->counted << 1);
	triggers_write_u32(writer, state->used);
	triggers_write_i64(writer, state->last_ns);
	triggers_write_i64(writer, state->gap_ns);
	triggers_write_i64(writer, state->from_ns);
	triggers_write_double(writer, state->last);
	triggers_write_double(writer, state->usual);
	if (state->fired)
		triggers_firing_save(&state->firing, writer);
}

static void idle_restore(void *state_, struct triggers_cursor *cursor)
{
	struct idle_state *state = state_;
	uint32_t flags = triggers_read_u32(cursor);
	state->fired = flags & 1;
	state->counted = flags >> 1 & 1;
	state->used = triggers_read_u32(cursor);
	state->last_ns = triggers_read_ns(cursor);
	state->gap_ns = triggers_read_time(cursor);
	state->from_ns = triggers_read_time(cursor);
	state->last = triggers_read_double(cursor);
	state->usual = triggers_read_double(cursor);
	if (state->fired)
		triggers_firing_restore(&state->firing, cursor);
	if (state->used > USED_FROM || state->gap_ns < 0 || state->gap_ns > TRIGGERS_NS_MAX / GAPS_MISSED)
		cursor->failed = 1;
}

const struct triggers_module triggers_module_device_idle = {
	.name = "device_idle",
	.roles = 1u << TRIGGERS_COUNTER,
	.state_bytes = sizeof(struct idle_state),
	.create = idle_create,
	.observe = idle_observe,
	.save = idle_save,
	.restore = idle_restore,
};
