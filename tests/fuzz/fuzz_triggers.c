/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of calls to the trigger engine: whatever is told to it, in whatever order and at whatever times, an engine
 * that was saved and restored says and believes the same as one that went on; firings are whole and within their
 * budgets, suspicions end; and an engine restored from damaged bytes stays in bounds.
 *
 * The first byte says how many options are set. Then each call is a byte that says which, and the bytes it takes.
 */
#include <stdio.h>
#include <string.h>

#include "engine_pair.h"
#include "fuzz.h"
#include "fuzz_bytes.h"

enum { CALLS_MAX = 400, RESTARTS_MAX = 6, DAMAGES_MAX = 2, BURST_MAX = 64, SOURCES = 5 };

struct program {
	struct fuzz_bytes in;
	struct pair *pair;
	int64_t now_ns;
	int64_t step;
	unsigned restarts, damages;
};

static uint8_t byte(struct program *program)
{
	return fuzz_byte(&program->in);
}

static int64_t length(struct program *program)
{
	return fuzz_length(&program->in);
}

static int64_t time_of(struct program *program)
{
	return fuzz_time(&program->in, program->now_ns);
}

static const char *phase_of(struct program *program)
{
	static const char *const phases[] = {
		NULL,
		"train",
		"eval",
		"checkpoint",
		"first",
		"compile",
		"",
		"a phase whose name is longer than there is room for in a series' name",
		"a phase whose name is longer than there is room for in a series"};
	uint8_t which = byte(program);
	return which < 160 ? NULL : phases[which % (sizeof(phases) / sizeof(phases[0]))];
}

static double value_of(struct program *program)
{
	return fuzz_value(&program->in);
}

static int64_t step_of(struct program *program)
{
	return fuzz_step(&program->in, &program->step);
}

static void series_of(struct program *program, struct triggers_series_key *ret_key)
{
	static const char *const names[] = {
		"step",
		"load",
		"load@eval",
		"phase:eval",
		"phase:eval/inner",
		"device:0:power",
		"device:0:duty_cycle",
		"device:0:queue",
		"busy:0/1",
		"phase:compile",
		"a name of sixty-three bytes, which is all that there is room for, as is",
		"a name of sixty-three bytes, which is all that there is room for, as it is",
		"phase:first"};
	uint8_t what = byte(program), whose = byte(program);
	*ret_key = (struct triggers_series_key){
		.role = (enum triggers_role)(what % 6 + 1),
		.source = whose % SOURCES,
		.rank = whose % SOURCES,
		.job = whose & 0x20   ? 7
		       : whose & 0x40 ? whose % SOURCES
				      : 0,
		.track = whose >> 3 & 3,
		.name = names[what / 6 % (sizeof(names) / sizeof(names[0]))],
		.alarms = !(whose & 0x80),
	};
	if (ret_key->role == TRIGGERS_BUSY)
		ret_key->group = whose & 0x10 ? "compute" : "stream";
}

/* Does something with each engine there is, and its own id of the series. */
#define EACH_ENGINE(program, engine)                                                                         \
	for (unsigned i_ = 0; i_ < PAIR_ENGINES; i_++)                                                       \
		for (struct triggers_engine *engine = (program)->pair->is[i_].engine; engine; engine = NULL)

static void call_observe(struct program *program)
{
	struct triggers_series_key key;
	series_of(program, &key);
	struct triggers_sample sample = {.start_ns = time_of(program), .duration_ns = length(program)};
	sample.step = step_of(program);
	sample.phase = phase_of(program);
	sample.value = value_of(program);
	sample.sample = sample.step;
	sample.note = sample.step & 1 ? "poll" : NULL;
	EACH_ENGINE(program, engine)
	triggers_engine_observe(engine, triggers_engine_series(engine, &key), &sample);
}

/* Steps, spans or samples as a job has them: all alike but for a few, one after the other, the clock with them. */
static void call_burst(struct program *program)
{
	struct triggers_series_key key;
	series_of(program, &key);
	unsigned count = byte(program) % BURST_MAX + 1, spread = byte(program), odd = byte(program);
	int64_t usual_ns = length(program);
	const char *phase = phase_of(program);
	double value = value_of(program);
	struct fuzz_dice dice = {count * 31u + spread};
	if (usual_ns < 0 || usual_ns > INT64_C(1) << 45)
		usual_ns = 1000000;
	for (unsigned i = 0; i < count; i++) {
		int64_t ns =
			usual_ns + (int64_t)fuzz_roll(&dice, (uint64_t)(usual_ns / 256 * (spread % 32) + 1));
		if (i == odd)
			ns *= 4;
		struct triggers_sample sample = {.start_ns = program->now_ns,
						 .duration_ns = ns,
						 .value = value,
						 .step = ++program->step,
						 .phase = phase,
						 .sample = i};
		EACH_ENGINE(program, engine)
		if (spread & 0x80)
			triggers_engine_open(engine, triggers_engine_series(engine, &key), sample.start_ns,
					     sample.step, phase);
		program->now_ns = fuzz_after(program->now_ns, ns);
		pair_tick(program->pair, program->now_ns);
		EACH_ENGINE(program, engine)
		triggers_engine_observe(engine, triggers_engine_series(engine, &key), &sample);
		if (spread & 0x40)
			pair_same(program->pair);
	}
}

static void call_open(struct program *program)
{
	struct triggers_series_key key;
	series_of(program, &key);
	int64_t start_ns = time_of(program), step = step_of(program);
	const char *phase = phase_of(program);
	EACH_ENGINE(program, engine)
	triggers_engine_open(engine, triggers_engine_series(engine, &key), start_ns, step, phase);
}

static void call_progress(struct program *program)
{
	struct triggers_series_key key;
	series_of(program, &key);
	int64_t now_ns = time_of(program);
	EACH_ENGINE(program, engine)
	triggers_engine_progress(engine, triggers_engine_series(engine, &key), now_ns);
}

static void call_abandon(struct program *program)
{
	struct triggers_series_key key;
	series_of(program, &key);
	EACH_ENGINE(program, engine)
	triggers_engine_abandon(engine, triggers_engine_series(engine, &key));
}

static void call_signal(struct program *program, bool by_hand)
{
	uint32_t source = byte(program) % SOURCES;
	int64_t t0_ns = time_of(program), now_ns = time_of(program);
	const char *text = source & 1 ? NULL
				      : "a reason that is longer than what there is room for, said again: a "
					"reason that is longer than what there is room for, said again: a "
					"reason that is longer than what there is room for, said again: a "
					"reason that is longer than what there is room for";
	EACH_ENGINE(program, engine)
	{
		if (by_hand)
			triggers_engine_manual(engine, source, source, t0_ns, now_ns, text);
		else
			triggers_engine_crash(engine, source, source, t0_ns, now_ns, text);
	}
}

static void call_source_end(struct program *program)
{
	uint32_t source = byte(program) % SOURCES;
	EACH_ENGINE(program, engine)
	triggers_engine_source_end(engine, source);
}

static void call_capture(struct program *program)
{
	int64_t begin_ns = time_of(program), end_ns = time_of(program);
	EACH_ENGINE(program, engine)
	triggers_engine_capture(engine, begin_ns, end_ns);
}

/* The clock goes on, a call a while; or it is set, and may be at either end of what there is. */
static void call_tick(struct program *program, bool set)
{
	int64_t more_ns = length(program);
	unsigned ticks = set ? 1 : byte(program) % 16 + 1;
	if (set && more_ns != INT64_MIN)
		more_ns = -more_ns;
	for (unsigned i = 0; i < ticks; i++) {
		program->now_ns = fuzz_after(program->now_ns, more_ns);
		pair_tick(program->pair, program->now_ns);
		pair_same(program->pair);
	}
	/* From the ends of time it is brought back, else nothing happens any more. */
	if (program->now_ns > INT64_C(1) << 61 || program->now_ns < -(INT64_C(1) << 61))
		program->now_ns = INT64_C(1700000000000000000);
}

static void call_set(struct program *program, bool early)
{
	static const char *const rules[] = {"load > 2 s critical",
					    "step > 1",
					    "device:* < 20 for 3 s note",
					    "",
					    "\"load\" > 1 ms for 1 h",
					    "* > 0.000000000000000001",
					    "load >"};
	const struct triggers_option *options = triggers_options();
	unsigned count = 0, which = byte(program), how = byte(program);
	char value[48];
	while (options[count].key)
		count++;
	const struct triggers_option *option = &options[which % count];
	if (which >= 224 || !strcmp(option->key, "threshold")) {
		option = &options[count - 1];
		snprintf(value, sizeof(value), "%s", rules[how % (sizeof(rules) / sizeof(rules[0]))]);
	} else if (how < 16) {
		snprintf(value, sizeof(value), "%s", option->value);
	} else {
		double scale = strcmp(option->unit, "%") ? 1 : 100;
		double number =
			option->low + (option->high - option->low) * (how - 16) * (how - 16) / (239. * 239.);
		snprintf(value, sizeof(value), "%.6f", scale * number);
		if (!strcmp(option->key, "straggler.of"))
			snprintf(value, sizeof(value), "%u of %u", how % 7, how / 32 + 1);
		else if (option->high == 1 && option->unit[0] == 0)
			snprintf(value, sizeof(value), "%s", how & 1 ? "true" : "false");
		else if (strstr(option->key, "severity"))
			snprintf(value, sizeof(value), "%s",
				 triggers_severity_name((enum triggers_severity)(how % 3)));
	}
	/* Series keep the window that they were made with; restored ones get that of now. */
	if (early || strcmp(option->key, "latency_spike.window") != 0)
		pair_set(program->pair, option->key, value);
}

static void call_restart(struct program *program)
{
	if (program->restarts++ >= RESTARTS_MAX)
		return;
	pair_restart(program->pair, program->now_ns);
	pair_same(program->pair);
	pair_same_beliefs(program->pair);
}

static void call_damage(struct program *program)
{
	size_t count = byte(program) % 4 + 1;
	if (program->damages++ >= DAMAGES_MAX || program->in.left < 4 * count)
		return;
	pair_damage(program->pair, program->in.at, count);
	program->in.at += 4 * count;
	program->in.left -= 4 * count;
}

static void call(struct program *program)
{
	switch (byte(program) % 16) {
	case 0:
	case 1:
		call_observe(program);
		break;
	case 2:
	case 3:
		call_burst(program);
		break;
	case 4:
	case 5:
		call_open(program);
		break;
	case 6:
		call_progress(program);
		break;
	case 7:
		call_abandon(program);
		break;
	case 8:
		call_signal(program, byte(program) & 1);
		break;
	case 9:
		call_source_end(program);
		break;
	case 10:
		call_capture(program);
		break;
	case 11:
		EACH_ENGINE(program, engine)
		triggers_engine_settled(engine, program->now_ns);
		break;
	case 12:
		call_tick(program, byte(program) % 4 == 0);
		break;
	case 13:
		call_set(program, false);
		break;
	case 14:
		call_restart(program);
		break;
	default:
		call_damage(program);
		break;
	}
}

/* All producers end: nothing is left, and nobody is suspected any more. */
static void end_all(struct program *program)
{
	for (uint32_t source = 0; source < SOURCES; source++)
		EACH_ENGINE(program, engine)
	triggers_engine_source_end(engine, source);
	pair_same(program->pair);
	for (unsigned i = 0; i < PAIR_DAMAGED; i++) {
		const struct pair_engine *engine = &program->pair->is[i];
		struct triggers_belief belief;
		for (uint32_t place = 0; place < triggers_engine_series_count(engine->engine); place++)
			fuzz_require(triggers_engine_belief(engine->engine, place, &belief) < 0,
				     "%s is left of a source that has ended", belief.key.name);
		for (unsigned at = 0; at < PAIR_SUSPECTS; at++)
			fuzz_require(!engine->suspect[at].count, "a suspicion never ends");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct pair pair;
	struct program program = {.in = {data, size}, .pair = &pair, .now_ns = INT64_C(1700000000000000000)};
	pair_begin(&pair);
	for (unsigned options = byte(&program) % 4; options; options--)
		call_set(&program, true);
	pair_tick(&pair, program.now_ns);
	for (unsigned calls = 0; program.in.left && calls < CALLS_MAX; calls++) {
		call(&program);
		pair_same(&pair);
	}
	pair_restart(&pair, program.now_ns);
	pair_same(&pair);
	pair_same_beliefs(&pair);
	end_all(&program);
	pair_end(&pair);
	return 0;
}
