/* SPDX-License-Identifier: Apache-2.0 */
#include "replay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ns.h"
#include "output.h"
#include "plain_text.h"
#include "trigger_settings.h"

int replay_decimal(const char *text, int scale, int64_t *ret_value)
{
	uint64_t mantissa = 0;
	int exponent = scale, digits = 0, past_point = 0, negative = *text == '-';
	for (text += negative; (*text >= '0' && *text <= '9') || (*text == '.' && !past_point); text++) {
		if (*text == '.') {
			past_point = 1;
			continue;
		}
		digits++;
		if (mantissa < UINT64_MAX / 100) {
			mantissa = mantissa * 10 + (uint64_t)(*text - '0');
			exponent -= past_point;
		} else {
			exponent += !past_point;
		}
	}
	if ((*text == 'e' || *text == 'E') && digits) {
		int down = text[1] == '-', power = 0;
		for (text += 1 + (text[1] == '-' || text[1] == '+'); *text >= '0' && *text <= '9'; text++)
			power = power < 1000 ? power * 10 + (*text - '0') : power;
		exponent += down ? -power : power;
	}
	if (!digits || *text)
		return -EINVAL;
	for (; exponent < 0 && mantissa; exponent++)
		mantissa /= 10;
	for (; exponent > 0 && mantissa; exponent--) {
		if (mantissa > INT64_MAX / 10)
			return -ERANGE;
		mantissa *= 10;
	}
	if (mantissa > INT64_MAX)
		return -ERANGE;
	*ret_value = negative ? -(int64_t)mantissa : (int64_t)mantissa;
	return 0;
}

static void print_on_one_line(cJSON *json, FILE *out)
{
	plain_text_json(json);
	char *text = cJSON_PrintUnformatted(json);
	if (text)
		fprintf(out, "%s\n", text);
	cJSON_free(text);
	cJSON_Delete(json);
}

static void print_json(const struct replay *replay, const struct triggers_firing *firing,
		       enum triggers_gate gate)
{
	cJSON *json = cJSON_CreateObject();
	output_json_text(json, "run", replay->run);
	output_json_signed(json, "sample", firing->sample);
	output_json_signed(json, "step", firing->step);
	output_json_text(json, "trigger", firing->trigger);
	output_json_text(json, "series", firing->series);
	output_json_text(json, "phase", firing->phase);
	output_json_ns(json, "t0_ns", firing->t0_ns);
	output_json_ns(json, "detected_ns", firing->detected_ns);
	output_json_text(json, "severity", triggers_severity_name(firing->severity));
	cJSON_AddNumberToObject(json, "value", firing->value);
	cJSON_AddNumberToObject(json, "expected", firing->expected);
	cJSON_AddNumberToObject(json, "ratio", firing->ratio);
	output_json_text(json, "gate", triggers_gate_name(gate));
	output_json_text(json, "evidence", firing->evidence);
	print_on_one_line(json, replay->out);
}

static void print_line(const struct replay *replay, const struct triggers_firing *firing,
		       enum triggers_gate gate)
{
	fprintf(replay->out, "%s: %-8s %s: %s at %lld.%03lld s", replay->run,
		triggers_severity_name(firing->severity), firing->trigger, firing->evidence,
		(long long)(firing->t0_ns / 1000000000), (long long)(llabs(firing->t0_ns) / 1000000 % 1000));
	if (gate != TRIGGERS_PASSED)
		fprintf(replay->out, " [%s]", triggers_gate_name(gate));
	fputc('\n', replay->out);
}

/* As live: two steps, or 5 s where the step is not known, at most 30 s; until then others join. */
static int64_t post_ns(const struct replay *replay, const struct triggers_firing *firing)
{
	static const int64_t second = 1000000000;
	int64_t step_ns = triggers_engine_step_ns(replay->engine, firing->source);
	if (step_ns <= 0)
		return 5 * second;
	return step_ns < 15 * second ? 2 * step_ns : 30 * second;
}

static void on_firing(void *context, const struct triggers_firing *firing, enum triggers_gate gate)
{
	struct replay *replay = context;
	const struct replay_settings *settings = replay->settings;
	if (gate == TRIGGERS_PASSED)
		replay->settle_ns = ns_add(firing->detected_ns, post_ns(replay, firing));
	if (settings->trigger && strcmp(settings->trigger, firing->trigger))
		return;
	if (gate == TRIGGERS_PASSED)
		replay->firings[firing->severity]++;
	else
		replay->held_back[gate]++;
	int shown = gate == TRIGGERS_PASSED && firing->severity >= TRIGGERS_WARN;
	if (!shown && !settings->all)
		return;
	if (settings->json)
		print_json(replay, firing, gate);
	else
		print_line(replay, firing, gate);
}

static int apply_settings(struct replay *replay, char *error, size_t error_room)
{
	const struct option_texts *set = &replay->settings->set;
	for (int i = 0; i < set->count; i++) {
		char key[64];
		const char *value = strchr(set->text[i], '=');
		size_t bytes = value ? (size_t)(value - set->text[i]) : sizeof(key);
		if (bytes >= sizeof(key)) {
			snprintf(error, error_room, "--set %.60s: it must read KEY=VALUE", set->text[i]);
			return -EINVAL;
		}
		memcpy(key, set->text[i], bytes);
		key[bytes] = 0;
		int result = triggers_engine_set(replay->engine, key, value + 1, error, error_room);
		if (result)
			return result;
	}
	return 0;
}

int replay_begin(struct replay *replay, const char *run, char *error, size_t error_room)
{
	struct triggers_listener listener = {.context = replay, .firing = on_firing};
	int result = triggers_engine_new(&listener, &replay->engine);
	if (result) {
		snprintf(error, error_room, "out of memory");
		return result;
	}
	if (replay->settings->config)
		trigger_settings_apply(replay->settings->config, replay->engine, NULL, NULL);
	result = apply_settings(replay, error, error_room);
	if (result) {
		triggers_engine_free(replay->engine);
		replay->engine = NULL;
		return result;
	}
	snprintf(replay->run, sizeof(replay->run), "%s", run);
	replay->clock_ns = INT64_MIN;
	replay->settle_ns = INT64_MAX;
	replay->runs++;
	return 0;
}

static void settle(struct replay *replay)
{
	if (replay->clock_ns < replay->settle_ns)
		return;
	replay->settle_ns = INT64_MAX;
	triggers_engine_settled(replay->engine, replay->clock_ns);
}

void replay_advance(struct replay *replay, int64_t now_ns)
{
	if (now_ns < replay->clock_ns)
		now_ns = replay->clock_ns;
	for (;;) {
		int64_t due_ns = triggers_engine_due(replay->engine);
		if (due_ns >= now_ns)
			break;
		if (due_ns < replay->clock_ns)
			due_ns = replay->clock_ns == INT64_MIN ? now_ns : replay->clock_ns;
		triggers_engine_tick(replay->engine, due_ns);
		if (triggers_engine_due(replay->engine) <= due_ns)
			break;
	}
	triggers_engine_tick(replay->engine, now_ns);
	replay->clock_ns = now_ns;
	settle(replay);
}

static void explain(const struct replay *replay)
{
	uint32_t count = triggers_engine_series_count(replay->engine);
	for (uint32_t i = 0; i < count; i++) {
		struct triggers_belief belief;
		char median[OUTPUT_TEXT_MAX], ceiling[OUTPUT_TEXT_MAX], deadline[OUTPUT_TEXT_MAX];
		if (triggers_engine_belief(replay->engine, i, &belief) || belief.key.role == TRIGGERS_COUNTER)
			continue;
		fprintf(replay->out,
			"%s: %s on track %llu: %llu samples, %s, usually %s, high from %s, deadline %s\n",
			replay->run, belief.key.name, (unsigned long long)belief.key.track,
			(unsigned long long)belief.samples, belief.warm ? "warm" : "not warm yet",
			output_duration(median, (int64_t)belief.median),
			output_duration(ceiling, (int64_t)belief.ceiling),
			belief.deadline_ns > 0 ? output_duration(deadline, (int64_t)belief.deadline_ns)
					       : "not learned");
	}
}

void replay_end(struct replay *replay)
{
	if (!replay->engine)
		return;
	if (replay->settings->explain && !replay->settings->json)
		explain(replay);
	triggers_engine_free(replay->engine);
	replay->engine = NULL;
}

void replay_summary(const struct replay *replay)
{
	uint64_t held_back = 0;
	double hours = (double)replay->job_ns / 3600e9;
	uint64_t fired = replay->firings[TRIGGERS_WARN] + replay->firings[TRIGGERS_CRITICAL];
	double an_hour = hours > 0 ? (double)fired / hours : 0;
	for (int gate = TRIGGERS_PASSED + 1; gate < TRIGGERS_GATE_LIMIT; gate++)
		held_back += replay->held_back[gate];
	if (!replay->settings->json) {
		fprintf(replay->out,
			"%llu runs, %llu steps, %llu samples, %.2f h of job time: %llu critical, %llu warn, "
			"%llu note; %.2f an hour, %.1f a day; %llu held back\n",
			(unsigned long long)replay->runs, (unsigned long long)replay->steps,
			(unsigned long long)replay->samples, hours,
			(unsigned long long)replay->firings[TRIGGERS_CRITICAL],
			(unsigned long long)replay->firings[TRIGGERS_WARN],
			(unsigned long long)replay->firings[TRIGGERS_NOTE], an_hour, 24 * an_hour,
			(unsigned long long)held_back);
		return;
	}
	cJSON *json = cJSON_CreateObject(), *summary = cJSON_AddObjectToObject(json, "summary");
	output_json_count(summary, "runs", replay->runs);
	output_json_count(summary, "steps", replay->steps);
	output_json_count(summary, "samples", replay->samples);
	output_json_ns(summary, "job_ns", replay->job_ns);
	for (int i = TRIGGERS_NOTE; i <= TRIGGERS_CRITICAL; i++)
		output_json_count(summary, triggers_severity_name((enum triggers_severity)i),
				  replay->firings[i]);
	cJSON_AddNumberToObject(summary, "an_hour", an_hour);
	cJSON_AddNumberToObject(summary, "a_day", 24 * an_hour);
	output_json_count(summary, "held_back", held_back);
	print_on_one_line(json, replay->out);
}
