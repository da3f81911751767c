/* SPDX-License-Identifier: Apache-2.0 */
#include "replay.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ns.h"
#include "output.h"
#include "replay_report.h"
#include "replay_set.h"
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

static volatile sig_atomic_t interrupted;

void replay_interrupt(void)
{
	interrupted = 1;
}

bool replay_interrupted(void)
{
	return interrupted != 0;
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

static bool is_wanted(const struct replay_settings *settings, const char *trigger)
{
	for (int i = 0; i < settings->trigger.count; i++)
		if (!strcmp(settings->trigger.text[i], trigger))
			return true;
	return settings->trigger.count == 0;
}

/* What joins an incident makes it wait for what follows that as well. */
static void wait_for_post(struct replay *replay, const struct triggers_firing *firing,
			  enum triggers_gate gate)
{
	int64_t over_ns = ns_add(firing->detected_ns, post_ns(replay, firing));
	if (gate == TRIGGERS_PASSED)
		replay->settle_ns = over_ns;
	else if (gate == TRIGGERS_COALESCED && replay->settle_ns != INT64_MAX && over_ns > replay->settle_ns)
		replay->settle_ns = over_ns;
}

static void on_firing(void *context, const struct triggers_firing *as_fired, enum triggers_gate gate)
{
	struct replay *replay = context;
	struct triggers_firing numbered = *as_fired;
	const struct triggers_firing *firing = &numbered;
	if (numbered.sample < 0)
		numbered.sample = replay->sample;
	wait_for_post(replay, firing, gate);
	if (!is_wanted(replay->settings, firing->trigger))
		return;
	replay_count(&replay->counts, firing, gate);
	if (gate == TRIGGERS_PASSED)
		replay->firings[firing->severity]++;
	else
		replay->held_back[gate]++;
	if (replay->fired && replay_fired(gate))
		replay->fired(replay->fired_context, firing);
	bool shown = replay_fired(gate) && firing->severity >= TRIGGERS_WARN;
	if (!replay->out || (!shown && !replay->settings->all))
		return;
	replay_progress_clear(replay);
	replay_report_firing(replay, firing, gate);
	fflush(replay->out); /* what is read may still be being written */
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
	result = replay_set(&replay->settings->set, replay->engine, error, error_room);
	if (result) {
		triggers_engine_free(replay->engine);
		replay->engine = NULL;
		return result;
	}
	snprintf(replay->run, sizeof(replay->run), "%s", run);
	replay->clock_ns = INT64_MIN;
	replay->sample = -1;
	replay->settle_ns = INT64_MAX;
	replay->runs++;
	replay->steps_before = replay->steps;
	replay->job_before_ns = replay->job_ns;
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

void replay_set_back(struct replay *replay, int64_t now_ns)
{
	if (now_ns >= replay->clock_ns)
		return;
	/* Incidents wait for as long as they would have. */
	if (replay->settle_ns != INT64_MAX)
		replay->settle_ns = ns_add(replay->settle_ns, ns_sub(now_ns, replay->clock_ns));
	replay->clock_ns = now_ns;
	triggers_engine_tick(replay->engine, now_ns);
}

void replay_end(struct replay *replay)
{
	if (!replay->engine)
		return;
	if (replay->settings->explain && replay->out) {
		replay_progress_clear(replay);
		replay_report_beliefs(replay);
	}
	replay_count_run(&replay->counts, replay->run, ns_sub(replay->job_ns, replay->job_before_ns),
			 replay->steps - replay->steps_before);
	triggers_engine_free(replay->engine);
	replay->engine = NULL;
	replay->track_text = NULL;
}

void replay_free(struct replay *replay)
{
	triggers_engine_free(replay->engine);
	replay->engine = NULL;
	replay_counts_free(&replay->counts);
}

void replay_progress(struct replay *replay, uint64_t done, const char *what)
{
	static const int64_t often_ns = 200000000;
	struct timespec now;
	char count[OUTPUT_TEXT_MAX];
	if (!replay->progress || clock_gettime(CLOCK_MONOTONIC, &now) < 0)
		return;
	int64_t now_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	if (replay->said_ns && now_ns - replay->said_ns < often_ns)
		return;
	fprintf(replay->progress, "\r%s %s\033[K", output_count(count, done), what);
	fflush(replay->progress);
	replay->said_ns = now_ns;
	replay->is_said = true;
}

void replay_progress_clear(struct replay *replay)
{
	if (!replay->is_said)
		return;
	fprintf(replay->progress, "\r\033[K");
	fflush(replay->progress);
	replay->is_said = false;
}
