/* SPDX-License-Identifier: Apache-2.0 */
/* Phases from the names of spans, and spans that stay open. */
#include <stdio.h>

#include "config.h"
#include "sources/phases.h"
#include "sources/series.h"
#include "support.h"
#include "trigger_settings.h"

#define MS INT64_C(1000000)
#define S  INT64_C(1000000000)

static const char *const names[] = {"",     "train",           "load",       "save_checkpoint", "eval",
				    "eval_step", "backend_compile", "my_save", "ProfilerStep#7"};
enum { TRAIN = 1, LOAD, SAVE, EVAL, EVAL_STEP, COMPILE, MY_SAVE, PROFILER_STEP, NAMES };

static int name_of(void *context, uint32_t id, const char **ret_text, size_t *ret_bytes)
{
	(void)context;
	if (id == 0 || id >= NAMES)
		return -1;
	*ret_text = names[id];
	*ret_bytes = strlen(names[id]);
	return 0;
}

struct heard {
	unsigned passed, stalls, spikes, over;
	struct triggers_firing last;
};

static struct heard heard;
static struct triggers_engine *engine;
static struct series *series;
static const struct series_source source = {.source = 3, .rank = 1, .name = name_of};
static char *patterns[] = {(char[]){"step"}, (char[]){"phase:*"}, (char[]){"load"}};
static int64_t now_ns;
static uint64_t step_number;

static void on_firing(void *context, const struct triggers_firing *firing, enum triggers_gate gate)
{
	(void)context;
	if (gate != TRIGGERS_PASSED || firing->shadow)
		return;
	heard.passed++;
	heard.stalls += strcmp(firing->trigger, "stall") == 0;
	heard.spikes += strcmp(firing->trigger, "latency_spike") == 0;
	heard.last = *firing;
}

static void on_over(void *context, const struct triggers_firing *firing, int64_t at_ns)
{
	(void)context, (void)firing, (void)at_ns;
	heard.over++;
}

static void set_up(void)
{
	const struct triggers_listener listener = {.firing = on_firing, .progress = on_over};
	memset(&heard, 0, sizeof(heard));
	now_ns = 1000 * S;
	step_number = 0;
	assert_ok(triggers_engine_new(&listener, &engine));
	assert_ok(series_new(engine, patterns, sizeof(patterns) / sizeof(patterns[0]), &series));
}

static void tear_down(void)
{
	series_free(series);
	triggers_engine_free(engine);
}

/* What is open on the stack of thread 5, outermost first. */
static struct {
	uint32_t name;
	unsigned mark;
	int64_t start_ns;
} stack[8];
static unsigned depth;

static void look(void)
{
	series_stack_begin(series, source.source);
	for (unsigned i = 0; i < depth; i++)
		series_open(series, &source, stack[i].mark, 5, stack[i].name, stack[i].start_ns, step_number);
	series_stack_end(series, source.source);
}

static void pass(int64_t ns)
{
	for (int64_t end_ns = now_ns + ns; now_ns < end_ns;) {
		now_ns += end_ns - now_ns < 250 * MS ? end_ns - now_ns : 250 * MS;
		look();
		triggers_engine_tick(engine, now_ns);
	}
}

static void push(unsigned mark, uint32_t name)
{
	stack[depth].mark = mark;
	stack[depth].name = name;
	stack[depth++].start_ns = now_ns;
}

/* Ends the innermost, and tells its event. */
static void pop(void)
{
	struct series_event event = {.kind = DREC_SPAN, .track = 5, .name = stack[--depth].name,
				     .start_ns = stack[depth].start_ns, .end_ns = now_ns, .sample = -1};
	if (stack[depth].mark == DREC_MARK_STEP_BEGIN) {
		event.kind = DREC_MARK;
		event.mark = DREC_MARK_STEP_END;
		event.id = step_number++;
	}
	series_event(series, &source, &event);
	series_progress(series, source.source, now_ns);
}

static void span(uint32_t name, int64_t ns)
{
	push(0, name);
	pass(ns);
	pop();
}

static void steps(int count, int64_t ns)
{
	for (int i = 0; i < count; i++) {
		push(DREC_MARK_STEP_BEGIN, TRAIN);
		pass(ns);
		pop();
	}
}

static bool belief_named(const char *name, struct triggers_belief *ret)
{
	for (uint32_t id = 0; id < triggers_engine_series_count(engine); id++)
		if (triggers_engine_belief(engine, id, ret) == 0 && strcmp(ret->key.name, name) == 0)
			return true;
	return false;
}

static const struct {
	const char *name;
	unsigned phase;
} known[] = {
	{"backend_compile", PHASES_COMPILE},
	{"/jax/core/compile/backend_compile_duration", PHASES_COMPILE},
	{"PjRtCApiClient::CompileAndLoad", PHASES_COMPILE},
	{"TpuCompiler::Compile", PHASES_COMPILE},
	{"compile_fx_inner (dynamo_timed)", PHASES_COMPILE},
	{"torch.compiled_region", PHASES_NONE},
	{"save_checkpoint", PHASES_CHECKPOINT},
	{"train.py(88): save_checkpoint", PHASES_CHECKPOINT},
	{"$checkpointing.py:310 maybe_save_checkpoint", PHASES_CHECKPOINT},
	{"$checkpoint_manager.py:1210 save", PHASES_CHECKPOINT},
	{"torch/serialization.py(934): save", PHASES_CHECKPOINT},
	{"/jax/checkpoint/write/async/blocking_duration_secs", PHASES_CHECKPOINT},
	{"/jax/checkpoint/write/async/total_duration_secs", PHASES_NONE},
	{"/jax/checkpoint/write/duration_since_last_checkpoint_secs", PHASES_NONE},
	{"[pl][profile][Callback]ModelCheckpoint{'monitor': None}.on_train_epoch_end", PHASES_CHECKPOINT},
	{"checkpoint_recompute", PHASES_NONE},
	{"CheckpointFunctionBackward", PHASES_NONE},
	{"SaveV2:SaveV2", PHASES_CHECKPOINT},
	{"[pl][profile][Strategy]DDPStrategy.validation_step", PHASES_EVAL},
	{"[pl][profile][Strategy]DDPStrategy.training_step", PHASES_NONE},
	{"eval_step", PHASES_EVAL},
	{"trainer.py(4021): evaluation_loop", PHASES_EVAL},
	{"autograd::engine::evaluate_function: AddmmBackward0", PHASES_NONE},
	{"evaluate_spherical_harmonics_forward", PHASES_NONE},
	{"train", PHASES_NONE},
	{"train_step", PHASES_NONE},
	{"load", PHASES_NONE},
	{"", PHASES_NONE},
};

START_TEST(names_that_are_known)
{
	ck_assert_msg(phases_shipped(known[_i].name) == known[_i].phase, "\"%s\" is %u", known[_i].name,
		      phases_shipped(known[_i].name));
}
END_TEST

START_TEST(names_of_the_job)
{
	static const char text[] = "{\"phases\": {\"train\": [\"eval_step\"], \"checkpoint\": [\"my_*\"], "
				   "\"eval\": [\"quality\"], \"compile\": [\"build\"]}}";
	static struct config_problems problems;
	struct config *config = NULL;
	assert_ok(config_parse(text, strlen(text), "c.json", &config, &problems));
	const struct phases own = trigger_settings_phases(config);
	ck_assert_uint_eq(phases_find(&own, "my_save"), PHASES_CHECKPOINT);
	ck_assert_uint_eq(phases_find(&own, "quality"), PHASES_EVAL);
	ck_assert_uint_eq(phases_find(&own, "build"), PHASES_COMPILE);
	ck_assert_uint_eq(phases_find(&own, "eval_step"), PHASES_NONE);
	ck_assert_uint_eq(phases_find(&own, "eval_step_2"), PHASES_EVAL);
	ck_assert_uint_eq(phases_find(&own, "save_checkpoint"), PHASES_CHECKPOINT);
	ck_assert_uint_eq(phases_find(NULL, "my_save"), PHASES_NONE);
	series_free(series);
	assert_ok(trigger_settings_series(config, engine, &series));
	steps(30, S);
	push(DREC_MARK_STEP_BEGIN, TRAIN);
	span(MY_SAVE, 40 * S);
	pass(S);
	pop();
	ck_assert_uint_eq(heard.passed, 0);
	config_free(config);
}
END_TEST

START_TEST(a_save_excuses_its_step)
{
	struct triggers_belief belief;
	steps(30, S);
	for (int i = 0; i < 3; i++) {
		push(DREC_MARK_STEP_BEGIN, TRAIN);
		pass(500 * MS);
		span(SAVE, 40 * S);
		pass(500 * MS);
		pop();
		steps(5, S);
	}
	ck_assert_uint_eq(heard.passed, 0);
	ck_assert(belief_named("phase:checkpoint/save_checkpoint", &belief));
	ck_assert_uint_eq(belief.samples, 3);
	ck_assert_int_eq((int64_t)belief.median / S, 40);
	push(DREC_MARK_STEP_BEGIN, TRAIN);
	pass(4 * S);
	ck_assert_uint_eq(heard.stalls, 1);
}
END_TEST

/* The same, told by events alone. */
START_TEST(a_save_that_no_stack_showed)
{
	steps(30, S);
	int64_t begin_ns = now_ns;
	const struct series_event save = {.kind = DREC_SPAN, .track = 5, .text = "save_checkpoint",
					  .text_bytes = strlen("save_checkpoint"), .start_ns = begin_ns + 500 * MS,
					  .end_ns = begin_ns + 40 * S, .sample = -1};
	series_event(series, &source, &save);
	const struct series_event end = {.kind = DREC_MARK, .mark = DREC_MARK_STEP_END, .track = 5, .name = TRAIN,
					 .id = step_number, .start_ns = begin_ns, .end_ns = begin_ns + 40500 * MS,
					 .sample = -1};
	series_event(series, &source, &end);
	ck_assert_uint_eq(heard.passed, 0);
}
END_TEST

START_TEST(a_save_that_hangs)
{
	steps(30, S);
	for (int i = 0; i < 6; i++) {
		span(SAVE, 30 * S);
		steps(5, S);
	}
	ck_assert_uint_eq(heard.passed, 0);
	push(DREC_MARK_STEP_BEGIN, TRAIN);
	push(0, SAVE);
	pass(85 * S);
	ck_assert_uint_eq(heard.passed, 0);
	pass(10 * S);
	ck_assert_uint_eq(heard.stalls, 1);
	ck_assert_str_eq(heard.last.series, "phase:checkpoint/save_checkpoint");
	pop();
	ck_assert_uint_eq(heard.over, 1);
}
END_TEST

START_TEST(the_first_save_has_a_ceiling)
{
	steps(30, S);
	push(DREC_MARK_STEP_BEGIN, TRAIN);
	push(0, SAVE);
	pass(1790 * S);
	ck_assert_uint_eq(heard.passed, 0);
	pass(20 * S);
	ck_assert_uint_eq(heard.stalls, 1);
}
END_TEST

START_TEST(a_compile_has_no_usual_length)
{
	steps(30, S);
	for (int i = 0; i < 20; i++) {
		push(DREC_MARK_STEP_BEGIN, TRAIN);
		span(COMPILE, 2 * S);
		pass(S);
		pop();
		steps(2, S);
	}
	push(DREC_MARK_STEP_BEGIN, TRAIN);
	span(COMPILE, 600 * S);
	pass(S);
	pop();
	ck_assert_uint_eq(heard.passed, 0);
}
END_TEST

/* The outermost counts: the steps in an evaluation are no phases of their own. */
START_TEST(evaluation_steps_in_an_evaluation)
{
	struct triggers_belief belief;
	steps(30, S);
	for (int i = 0; i < 8; i++) {
		push(DREC_MARK_STEP_BEGIN, TRAIN);
		push(0, EVAL);
		pass(S);
		for (int j = 0; j < 40; j++) {
			span(EVAL_STEP, 500 * MS);
			pass(50 * MS);
		}
		pop();
		pass(S);
		pop();
		steps(10, S);
	}
	ck_assert_uint_eq(heard.passed, 0);
	ck_assert(belief_named("phase:eval/eval", &belief));
	ck_assert_uint_eq(belief.samples, 8);
}
END_TEST

/* A save that saves its parts by the same name is one. */
START_TEST(a_save_in_a_save)
{
	struct triggers_belief belief;
	steps(30, S);
	for (int i = 0; i < 8; i++) {
		push(DREC_MARK_STEP_BEGIN, TRAIN);
		push(0, SAVE);
		pass(S);
		for (int j = 0; j < 20; j++)
			span(SAVE, 2 * S);
		pop();
		pass(S);
		pop();
		steps(10, S);
	}
	ck_assert_uint_eq(heard.passed, 0);
	ck_assert(belief_named("phase:checkpoint/save_checkpoint", &belief));
	ck_assert_uint_eq(belief.samples, 8);
	ck_assert_int_eq((int64_t)belief.median / S, 41);
}
END_TEST

/* Without anything around them, a hundred of them still excuse the step that they interrupt. */
START_TEST(many_evaluation_steps)
{
	steps(30, S);
	push(DREC_MARK_STEP_BEGIN, TRAIN);
	for (int j = 0; j < 100; j++) {
		span(EVAL_STEP, 500 * MS);
		pass(20 * MS);
	}
	pass(S);
	pop();
	ck_assert_uint_eq(heard.passed, 0);
}
END_TEST

START_TEST(hooks_that_do_nothing)
{
	struct triggers_belief belief;
	for (int i = 0; i < 40; i++) {
		push(DREC_MARK_STEP_BEGIN, TRAIN);
		pass(S);
		push(0, SAVE);
		now_ns += MS;
		pop();
		pop();
	}
	ck_assert(belief_named("phase:checkpoint/save_checkpoint", &belief));
	ck_assert_uint_eq(belief.samples, 0);
}
END_TEST

START_TEST(step_marks_named_for_a_phase)
{
	struct triggers_belief belief;
	steps(30, S);
	for (int i = 0; i < 20; i++) {
		push(DREC_MARK_STEP_BEGIN, EVAL_STEP);
		pass(4 * S);
		pop();
	}
	ck_assert_uint_eq(heard.passed, 0);
	ck_assert(belief_named("step@eval", &belief));
	ck_assert_uint_eq(belief.samples, 20);
}
END_TEST

/* ---- spans that stay open ---- */

START_TEST(an_open_loader)
{
	for (int i = 0; i < 40; i++)
		span(LOAD, 250 * MS);
	int64_t begin_ns = now_ns;
	push(0, LOAD);
	pass(9 * S);
	ck_assert_uint_eq(heard.passed, 0);
	pass(2 * S);
	ck_assert_uint_eq(heard.stalls, 1);
	ck_assert_str_eq(heard.last.series, "load");
	ck_assert_int_eq(heard.last.t0_ns, begin_ns);
	pass(100 * S);
	ck_assert_uint_eq(heard.passed, 1);
	pop();
	ck_assert_uint_eq(heard.over, 1);
}
END_TEST

/* Its end was overwritten: the next look at the stack shows that it is over. */
START_TEST(an_end_that_was_lost)
{
	for (int i = 0; i < 40; i++)
		span(LOAD, 250 * MS);
	push(0, LOAD);
	pass(S);
	depth--;
	pass(100 * S);
	ck_assert_uint_eq(heard.passed, 0);
	/* So of a phase: it excuses nothing any more. */
	steps(30, S);
	push(0, SAVE);
	pass(S);
	depth--;
	push(DREC_MARK_STEP_BEGIN, TRAIN);
	pass(4 * S);
	ck_assert_uint_eq(heard.stalls, 1);
}
END_TEST

START_TEST(a_span_that_lies_in_itself_is_not_followed)
{
	for (int i = 0; i < 40; i++)
		span(LOAD, 250 * MS);
	push(0, LOAD);
	push(0, LOAD);
	stack[1].start_ns += MS;
	pass(100 * S);
	ck_assert_uint_eq(heard.passed, 0);
}
END_TEST

START_TEST(a_profilers_step_that_stays_open)
{
	char text[32];
	for (int i = 0; i < 30; i++, now_ns += S) {
		snprintf(text, sizeof(text), "ProfilerStep#%d", i);
		const struct series_event event = {.kind = DREC_SPAN, .track = 5, .text = text,
						   .text_bytes = strlen(text), .start_ns = now_ns, .end_ns = now_ns + S,
						   .sample = -1};
		series_event(series, &source, &event);
	}
	push(0, PROFILER_STEP);
	pass(4 * S);
	ck_assert_uint_eq(heard.stalls, 1);
	ck_assert_int_eq(heard.last.step, 7);
}
END_TEST

static void add(Suite *suite, const char *name, const TTest *test)
{
	TCase *tcase = tcase_create(name);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test);
	suite_add_tcase(suite, tcase);
}

int main(void)
{
	Suite *suite = suite_create("phases");
	TCase *tcase = tcase_create("names");
	tcase_add_loop_test(tcase, names_that_are_known, 0, (int)(sizeof(known) / sizeof(known[0])));
	suite_add_tcase(suite, tcase);
	add(suite, "the job's own names", names_of_the_job);
	add(suite, "excuses its step", a_save_excuses_its_step);
	add(suite, "no stack", a_save_that_no_stack_showed);
	add(suite, "hangs", a_save_that_hangs);
	add(suite, "the first one", the_first_save_has_a_ceiling);
	add(suite, "compile", a_compile_has_no_usual_length);
	add(suite, "nested", evaluation_steps_in_an_evaluation);
	add(suite, "save in a save", a_save_in_a_save);
	add(suite, "many", many_evaluation_steps);
	add(suite, "hooks", hooks_that_do_nothing);
	add(suite, "step marks", step_marks_named_for_a_phase);
	add(suite, "open loader", an_open_loader);
	add(suite, "lost end", an_end_that_was_lost);
	add(suite, "lies in itself", a_span_that_lies_in_itself_is_not_followed);
	add(suite, "profiler step", a_profilers_step_that_stays_open);
	return test_run(suite);
}
