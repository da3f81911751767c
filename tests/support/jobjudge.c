/* SPDX-License-Identifier: Apache-2.0 */
/* What a script wanted against what fired, and one run against another (jobwatch.h). */
#include "jobwatch.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Times of steps are exact; what is told of them was rounded by no more than this. */
static const int64_t NEAR_NS = 1000000;

struct judge {
	const struct jobsim *sim;
	struct jobwatch *watch;
	char *why;
	size_t room, used;
	bool fine;
};

static void complain(struct judge *judge, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void complain(struct judge *judge, const char *format, ...)
{
	va_list arguments;
	judge->fine = false;
	if (judge->used >= judge->room)
		return;
	va_start(arguments, format);
	int length = vsnprintf(judge->why + judge->used, judge->room - judge->used, format, arguments);
	va_end(arguments);
	judge->used += length > 0 ? (size_t)length : 0;
}

/* ---- when it was ---- */

static int64_t told(const struct jobsim *sim, int64_t ns)
{
	return jobsim_told(sim, ns, ns);
}

static const struct jobsim_step *step_named(const struct jobsim *sim, int64_t step, int life)
{
	for (size_t i = 0; i < sim->n_steps; i++)
		if (sim->step[i].step == step && (life < 0 || sim->step[i].life == life))
			return &sim->step[i];
	return NULL;
}

static int life_of(const struct jobsim *sim, uint32_t source)
{
	for (unsigned i = 0; i < sim->n_rings; i++)
		if (sim->ring[i].source == source)
			return sim->ring[i].life;
	return -1;
}

static bool is_within(const struct jobsim *sim, int64_t t0_ns, int64_t begin_ns, int64_t end_ns)
{
	return t0_ns >= told(sim, begin_ns) - NEAR_NS &&
	       (end_ns == INT64_MAX || t0_ns <= told(sim, end_ns) + NEAR_NS);
}

/* The step by its number; where the series has none (spans, phases, tracks) by its time. */
static bool is_of_step(const struct jobsim *sim, const struct jobscript_wanted *wanted,
		       const struct triggers_firing *firing)
{
	int64_t number = wanted->step >= 0 ? wanted->step : wanted->after_step;
	const struct jobsim_step *step = step_named(sim, number, wanted->life);
	if (number < 0)
		return true;
	if (!step)
		return false;
	if (wanted->after_step >= 0)
		return is_within(sim, firing->t0_ns, step->end_ns, step->next_ns);
	return firing->step >= 0 ? firing->step == number
				 : is_within(sim, firing->t0_ns, step->begin_ns, step->end_ns);
}

static bool is_when(const struct jobsim *sim, const struct jobscript_wanted *wanted,
		    const struct triggers_firing *firing)
{
	const struct jobsim_step *step = step_named(sim, wanted->step, wanted->life);
	if (wanted->detected_ns >= 0 && firing->detected_ns - firing->t0_ns > wanted->detected_ns)
		return false;
	if (wanted->within_ns < 0)
		return true;
	return step && llabs(firing->t0_ns - told(sim, step->begin_ns) - wanted->t0_ns) <= wanted->within_ns;
}

static bool is_kind(const struct jobscript_wanted *wanted, const struct jobwatch_firing *fired)
{
	const struct triggers_firing *firing = &fired->firing;
	bool gate = wanted->gate == JOBSCRIPT_HELD ? fired->gate != TRIGGERS_PASSED
						   : (int)fired->gate == wanted->gate;
	return gate && (int)firing->severity == wanted->severity &&
	       strcmp(firing->trigger, wanted->trigger) == 0 &&
	       (!wanted->series[0] || strcmp(firing->series, wanted->series) == 0) &&
	       (!wanted->phase[0] || strcmp(firing->phase, wanted->phase) == 0);
}

static bool is_wanted(const struct jobsim *sim, const struct jobscript_wanted *wanted,
		      const struct jobwatch_firing *fired)
{
	const struct triggers_firing *firing = &fired->firing;
	if (!is_kind(wanted, fired) || !is_of_step(sim, wanted, firing) || !is_when(sim, wanted, firing))
		return false;
	if (wanted->rank >= 0 && firing->rank != (uint32_t)wanted->rank)
		return false;
	if (wanted->life >= 0 && life_of(sim, firing->source) != wanted->life)
		return false;
	return wanted->resolved < 0 || (fired->resolved_ns != 0) == (wanted->resolved != 0);
}

/* ---- the verdict ---- */

static void judge_wanted(struct judge *judge, const struct jobscript_wanted *wanted)
{
	unsigned times = 0;
	for (unsigned i = 0; i < judge->watch->n && times < wanted->most; i++) {
		struct jobwatch_firing *fired = &judge->watch->firing[i];
		if (fired->wanted || !is_wanted(judge->sim, wanted, fired))
			continue;
		fired->wanted = true;
		times++;
	}
	if (times < wanted->least)
		complain(judge, "%s:%u: wanted %u times, came %u times\n", judge->sim->script->path,
			 wanted->line, wanted->least, times);
}

const char *jobwatch_text(const struct jobsim *sim, const struct jobwatch_firing *fired, char *text,
			  size_t room)
{
	const struct triggers_firing *firing = &fired->firing;
	int64_t begin_ns = told(sim, JOBSIM_BEGIN_NS);
	snprintf(text, room, "%s %s %s of %s step %lld rank %d at %.3f s, %.3f s later%s: %s",
		 triggers_gate_name(fired->gate), triggers_severity_name(firing->severity), firing->trigger,
		 firing->series, (long long)firing->step, (int)firing->rank,
		 (double)(firing->t0_ns - begin_ns) / 1e9,
		 (double)(firing->detected_ns - firing->t0_ns) / 1e9, fired->resolved_ns ? ", resolved" : "",
		 firing->evidence);
	return text;
}

bool jobwatch_judge(const struct jobsim *sim, struct jobwatch *watch, char *why, size_t why_room)
{
	struct judge judge = {.sim = sim, .watch = watch, .why = why, .room = why_room, .fine = true};
	char text[512];
	int64_t incidents = 0;
	for (unsigned i = 0; i < watch->n; i++) {
		watch->firing[i].wanted = false;
		incidents += watch->firing[i].gate == TRIGGERS_PASSED && !watch->firing[i].firing.shadow;
	}
	if (sim->script->incidents_most >= 0 && incidents > sim->script->incidents_most)
		complain(&judge, "%s: %lld incidents, of at most %lld\n", sim->script->path,
			 (long long)incidents, (long long)sim->script->incidents_most);
	for (unsigned i = 0; i < sim->script->n_wanted; i++)
		judge_wanted(&judge, &sim->script->wanted[i]);
	for (unsigned i = 0; i < watch->n; i++) {
		const struct jobwatch_firing *fired = &watch->firing[i];
		bool counts = fired->gate == TRIGGERS_PASSED || fired->firing.severity >= TRIGGERS_WARN;
		if (!fired->wanted && counts && !fired->firing.shadow)
			complain(&judge, "%s: not wanted: %s\n", sim->script->path,
				 jobwatch_text(sim, fired, text, sizeof(text)));
	}
	if (watch->overflow)
		complain(&judge, "%s: more than %d firings\n", sim->script->path, JOBWATCH_FIRINGS_MAX);
	return judge.fine;
}

static bool is_same(const struct jobwatch_firing *a, const struct jobwatch_firing *b)
{
	const struct triggers_firing *x = &a->firing, *y = &b->firing;
	return a->gate == b->gate && a->resolved_ns == b->resolved_ns && x->severity == y->severity &&
	       strcmp(x->trigger, y->trigger) == 0 && strcmp(x->series, y->series) == 0 &&
	       strcmp(x->phase, y->phase) == 0 && strcmp(x->evidence, y->evidence) == 0 &&
	       x->source == y->source && x->t0_ns == y->t0_ns && x->until_ns == y->until_ns &&
	       x->detected_ns == y->detected_ns && x->step == y->step && x->ongoing == y->ongoing &&
	       x->shadow == y->shadow && x->quiet == y->quiet;
}

bool jobwatch_same(const struct jobwatch *a, const struct jobwatch *b, const struct jobsim *sim, char *why,
		   size_t why_room)
{
	char one[512] = "nothing", other[512] = "nothing";
	for (unsigned i = 0; i < a->n || i < b->n; i++) {
		if (i < a->n && i < b->n && is_same(&a->firing[i], &b->firing[i]))
			continue;
		if (i < a->n)
			jobwatch_text(sim, &a->firing[i], one, sizeof(one));
		if (i < b->n)
			jobwatch_text(sim, &b->firing[i], other, sizeof(other));
		snprintf(why, why_room, "firing %u is\n  %s\nand is\n  %s", i, one, other);
		return false;
	}
	return true;
}
