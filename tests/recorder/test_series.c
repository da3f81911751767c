/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "sources/series.h"
#include "support.h"

static const char *const names[] = {"", "train", "load", "eval", "matmul", "ProfilerStep#7", "device:0:power"};
enum { TRAIN = 1, LOAD, EVAL, MATMUL, PROFILER_STEP, POWER, NAMES };

struct heard {
	unsigned firings, spikes, stalls;
	struct triggers_firing last;
};

static int name_of(void *context, uint32_t id, const char **ret_text, size_t *ret_bytes)
{
	(void)context;
	if (id == 0 || id >= NAMES)
		return -1;
	*ret_text = names[id];
	*ret_bytes = strlen(names[id]);
	return 0;
}

static int track_of(void *context, uint32_t id, const char **ret_text, size_t *ret_bytes)
{
	(void)context;
	*ret_text = id == 9 ? "heartbeat" : "main";
	*ret_bytes = strlen(*ret_text);
	return 0;
}

static void on_firing(void *context, const struct triggers_firing *firing, enum triggers_gate gate)
{
	struct heard *heard = context;
	if (gate != TRIGGERS_PASSED || firing->shadow)
		return;
	heard->firings++;
	heard->spikes += strcmp(firing->trigger, "latency_spike") == 0;
	heard->stalls += strcmp(firing->trigger, "stall") == 0;
	heard->last = *firing;
}

static struct heard heard;
static struct triggers_engine *engine;
static struct series *series;
static const struct series_source source = {.source = 3, .rank = 1, .name = name_of, .track = track_of};
static char *patterns[] = {(char[]){"step"}, (char[]){"phase:*"}, (char[]){"load"}, (char[]){"next(*)"},
			   (char[]){"device:*"}, (char[]){"track:heart*"}};

enum { MS = 1000000 };

static void set_up(void)
{
	const struct triggers_listener listener = {.context = &heard, .firing = on_firing};
	memset(&heard, 0, sizeof(heard));
	assert_ok(triggers_engine_new(&listener, &engine));
	assert_ok(series_new(engine, patterns, sizeof(patterns) / sizeof(patterns[0]), &series));
}

static void tear_down(void)
{
	series_free(series);
	triggers_engine_free(engine);
}

static void span(uint32_t name, int64_t start_ns, int64_t end_ns)
{
	const struct series_event event = {.kind = DREC_SPAN, .track = 5, .name = name, .start_ns = start_ns,
					   .end_ns = end_ns, .sample = -1};
	series_event(series, &source, &event);
}

static void text_span(const char *text, int64_t start_ns, int64_t end_ns)
{
	const struct series_event event = {.kind = DREC_SPAN, .track = 5, .text = text, .text_bytes = strlen(text),
					   .start_ns = start_ns, .end_ns = end_ns, .sample = -1};
	series_event(series, &source, &event);
}

static void mark(unsigned mark, uint32_t name, int64_t start_ns, int64_t end_ns, uint64_t step)
{
	const struct series_event event = {.kind = DREC_MARK, .mark = (uint16_t)mark, .track = 5, .name = name,
					   .start_ns = start_ns, .end_ns = end_ns, .id = step, .sample = -1};
	series_event(series, &source, &event);
}

/* Steps of 100 ms, back to back. Returns the end of the last. */
static int64_t steps(int64_t from_ns, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		int64_t begin = from_ns + i * INT64_C(100) * MS;
		mark(DREC_MARK_STEP_BEGIN, TRAIN, begin, begin, i);
		mark(DREC_MARK_STEP_END, TRAIN, begin, begin + 100 * MS, i);
	}
	return from_ns + count * INT64_C(100) * MS;
}

static bool belief_named(const char *name, enum triggers_role role, struct triggers_belief *ret)
{
	for (uint32_t id = 0; id < triggers_engine_series_count(engine); id++)
		if (triggers_engine_belief(engine, id, ret) == 0 && ret->key.role == role &&
		    strcmp(ret->key.name, name) == 0)
			return true;
	return false;
}

static const struct {
	const char *pattern, *name;
	int fits;
} matches[] = {
	{"step", "step", 1},	   {"step", "steps", 0},     {"phase:*", "phase:", 1},	{"phase:*", "phase:eval", 1},
	{"phase:*", "phas", 0},	   {"next(*)", "next(x)", 1}, {"next(*)", "next(x) ", 0}, {"*", "", 1},
	{"a*b*c", "a-b-b-c", 1},   {"a*b*c", "a-c", 0},	     {"**x", "x", 1},		{"", "x", 0},
};

START_TEST(patterns_match)
{
	ck_assert_msg(triggers_pattern_match(matches[_i].pattern, matches[_i].name) == matches[_i].fits,
		      "\"%s\" on \"%s\"", matches[_i].pattern, matches[_i].name);
}
END_TEST

START_TEST(step_marks_make_the_step_series)
{
	struct triggers_belief belief;
	steps(0, 40);
	ck_assert(belief_named("step", TRIGGERS_STEP, &belief));
	ck_assert_uint_eq(belief.samples, 40);
	ck_assert_uint_eq(belief.key.source, 3);
	ck_assert_uint_eq(belief.key.rank, 1);
	ck_assert_int_eq(belief.key.alarms, 1);
	ck_assert_int_eq((int64_t)belief.median / MS, 100);
	ck_assert_int_eq(series_last_step(series, 3), 39);
	ck_assert_int_eq(series_last_step(series, 4), -1);
}
END_TEST

START_TEST(a_slow_step_fires_once)
{
	int64_t at = steps(0, 40);
	mark(DREC_MARK_STEP_END, TRAIN, at, at + 900 * MS, 40);
	ck_assert_uint_eq(heard.spikes, 1);
	ck_assert_int_eq(heard.last.t0_ns, at);
	ck_assert_int_eq(heard.last.step, 40);
	steps(at + 900 * MS, 20);
	ck_assert_uint_eq(heard.firings, 1);
}
END_TEST

START_TEST(names_in_the_configuration_alarm_and_others_are_followed)
{
	struct triggers_belief belief;
	span(LOAD, 0, 5 * MS);
	span(MATMUL, 5 * MS, 9 * MS);
	text_span("next(loader)", 9 * MS, 12 * MS);
	ck_assert(belief_named("load", TRIGGERS_SPAN, &belief));
	ck_assert_int_eq(belief.key.alarms, 1);
	ck_assert(belief_named("next(loader)", TRIGGERS_SPAN, &belief));
	ck_assert_int_eq(belief.key.alarms, 1);
	ck_assert(belief_named("matmul", TRIGGERS_SPAN, &belief));
	ck_assert_int_eq(belief.key.alarms, 0);
	ck_assert_uint_eq(series_counters(series)->alarming, 2);
	ck_assert_uint_eq(series_counters(series)->followed, 1);
}
END_TEST

START_TEST(names_of_profilers_are_steps)
{
	struct triggers_belief belief;
	char text[32];
	for (int i = 0; i < 20; i++) {
		snprintf(text, sizeof(text), "ProfilerStep#%d", i);
		text_span(text, i * 10 * MS, (i + 1) * 10 * MS);
	}
	span(PROFILER_STEP, 200 * MS, 210 * MS);
	text_span("ProfilerStep#x", 0, 1);
	ck_assert(belief_named("step", TRIGGERS_STEP, &belief));
	ck_assert_uint_eq(belief.samples, 21);
	ck_assert(!belief_named("ProfilerStep#7", TRIGGERS_SPAN, &belief));
}
END_TEST

START_TEST(phases_have_series_of_their_own)
{
	struct triggers_belief belief;
	mark(DREC_MARK_PHASE_BEGIN, EVAL, 0, 0, 0);
	ck_assert(belief_named("phase:eval", TRIGGERS_PHASE, &belief));
	ck_assert_int_eq(belief.open, 1);
	mark(DREC_MARK_PHASE_END, EVAL, 0, 50 * MS, 0);
	ck_assert(belief_named("phase:eval", TRIGGERS_PHASE, &belief));
	ck_assert_int_eq(belief.open, 0);
	ck_assert_uint_eq(belief.samples, 1);
	/* A span of such a name is a phase too, but of a length of its own. */
	span(EVAL, 0, 50 * MS);
	ck_assert(belief_named("phase:eval/eval", TRIGGERS_PHASE, &belief));
	ck_assert(!belief_named("eval", TRIGGERS_SPAN, &belief));
}
END_TEST

/* Steps of 100 ms that load for some of it. Returns the end of the last. */
static int64_t loading_steps(uint32_t phase, int64_t from_ns, unsigned count, int64_t load_ns)
{
	for (unsigned i = 0; i < count; i++) {
		mark(DREC_MARK_STEP_BEGIN, phase, from_ns, from_ns, i);
		span(LOAD, from_ns, from_ns + load_ns);
		from_ns += 500 * MS;
		mark(DREC_MARK_STEP_END, phase, from_ns - 500 * MS, from_ns, i);
	}
	return from_ns;
}

START_TEST(spans_have_a_usual_length_in_each_phase)
{
	struct triggers_belief belief;
	char error[64];
	int64_t at = loading_steps(TRAIN, 0, 60, 15 * MS);
	at = loading_steps(EVAL, at, 40, 60 * MS);
	at = loading_steps(TRAIN, at, 20, 15 * MS);
	ck_assert_uint_eq(heard.firings, 0);
	ck_assert(belief_named("load@eval", TRIGGERS_SPAN, &belief));
	ck_assert_uint_eq(belief.samples, 40);
	loading_steps(EVAL, at, 1, 300 * MS);
	ck_assert_uint_eq(heard.spikes, 1);
	ck_assert_str_eq(heard.last.series, "load");
	ck_assert_str_eq(heard.last.phase, "eval");
	/* A limit is for all phases. */
	assert_ok(triggers_engine_set(engine, "threshold", "load > 50 ms critical", error, sizeof(error)));
	loading_steps(EVAL, at + INT64_C(120000) * MS, 1, 60 * MS);
	ck_assert_str_eq(heard.last.trigger, "threshold");
}
END_TEST

START_TEST(counters_by_their_value)
{
	struct triggers_belief belief;
	const struct series_event event = {.kind = DREC_COUNTER, .track = 5, .name = POWER, .value = 300};
	series_event(series, &source, &event);
	ck_assert(belief_named("device:0:power", TRIGGERS_COUNTER, &belief));
	ck_assert_int_eq(belief.key.alarms, 1);
	ck_assert_int_eq((int)belief.median, 300);
}
END_TEST

START_TEST(an_open_step_stalls)
{
	int64_t at = steps(0, 40);
	series_open(series, &source, DREC_MARK_STEP_BEGIN, 5, TRAIN, at, 40);
	series_progress(series, 3, at + 200 * MS);
	for (int64_t now = at; now < at + INT64_C(3000) * MS; now += 50 * MS)
		triggers_engine_tick(engine, now);
	ck_assert_uint_eq(heard.stalls, 1);
	ck_assert_int_eq(heard.last.t0_ns, at + 200 * MS);
	ck_assert_int_eq(heard.last.step, 40);
}
END_TEST

START_TEST(a_stack_read_late_opens_nothing)
{
	struct triggers_belief belief;
	int64_t at = steps(0, 40);
	series_open(series, &source, DREC_MARK_STEP_BEGIN, 5, TRAIN, at - 100 * MS, 39);
	ck_assert(belief_named("step", TRIGGERS_STEP, &belief));
	ck_assert_int_eq(belief.open, 0);
}
END_TEST

START_TEST(a_source_that_ends_is_no_stall)
{
	int64_t at = steps(0, 40);
	series_open(series, &source, DREC_MARK_STEP_BEGIN, 5, TRAIN, at, 40);
	series_source_end(series, 3);
	triggers_engine_tick(engine, at + INT64_C(60000) * MS);
	ck_assert_uint_eq(heard.firings, 0);
	/* The number may be used again, and starts anew. */
	steps(at, 3);
	ck_assert_int_eq(series_last_step(series, 3), 2);
}
END_TEST

START_TEST(tracks_only_where_asked_for)
{
	struct triggers_belief belief;
	struct series_event event = {.kind = DREC_INSTANT, .track = 9, .name = LOAD, .sample = -1};
	series_event(series, &source, &event);
	event.track = 5;
	series_event(series, &source, &event);
	ck_assert(belief_named("track:heartbeat", TRIGGERS_TRACK, &belief));
	ck_assert(!belief_named("track:main", TRIGGERS_TRACK, &belief));
}
END_TEST

START_TEST(room_and_time_are_bounded)
{
	char text[32];
	for (unsigned i = 0; i < 2 * SERIES_TEXTS_MAX; i++) {
		snprintf(text, sizeof(text), "name %u", i);
		text_span(text, i, i + 1);
	}
	const struct series_counters *counters = series_counters(series);
	ck_assert_uint_eq(counters->followed, SERIES_FOLLOWED_MAX);
	ck_assert_uint_le(counters->samples, SERIES_SAMPLES_A_TICK);
	ck_assert_uint_gt(counters->no_room, 0);
	/* What alarms still gets through, and so does what is followed in the next tick. */
	uint64_t before = counters->samples;
	span(LOAD, 0, 5 * MS);
	ck_assert_uint_eq(counters->samples, before + 1);
	series_tick(series);
	text_span("name 1", 0, 1);
	ck_assert_uint_eq(counters->samples, before + 2);
}
END_TEST

START_TEST(random_events_do_no_harm)
{
	char text[80];
	for (int i = 0; i < 20000; i++) {
		struct series_event event = {
			.kind = (uint8_t)test_random_below(DREC_KIND_LIMIT + 2),
			.mark = (uint16_t)test_random_below(DREC_MARK_LIMIT + 2),
			.track = (uint32_t)test_random_below(20),
			.name = (uint32_t)test_random_below(NAMES + 3),
			.start_ns = (int64_t)test_random() / 4,
			.end_ns = (int64_t)test_random() / 4,
			.id = test_random(),
			.value = (double)test_random(),
		};
		if (test_random_below(3) == 0) {
			event.text_bytes = test_random_below(sizeof(text));
			for (size_t j = 0; j < event.text_bytes; j++)
				text[j] = (char)test_random();
			event.text = text;
			event.name = 0;
		}
		series_event(series, &source, &event);
		if (test_random_below(50) == 0)
			series_source_end(series, 3);
		if (test_random_below(20) == 0)
			series_tick(series);
	}
}
END_TEST

static TCase *add_case(Suite *suite, const char *name)
{
	TCase *tcase = tcase_create(name);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	suite_add_tcase(suite, tcase);
	return tcase;
}

int main(void)
{
	Suite *suite = suite_create("series");
	tcase_add_loop_test(add_case(suite, "patterns"), patterns_match, 0, sizeof(matches) / sizeof(matches[0]));
	TCase *tcase = add_case(suite, "steps");
	tcase_add_test(tcase, step_marks_make_the_step_series);
	tcase_add_test(tcase, a_slow_step_fires_once);
	tcase_add_test(tcase, names_of_profilers_are_steps);
	tcase = add_case(suite, "names");
	tcase_add_test(tcase, names_in_the_configuration_alarm_and_others_are_followed);
	tcase_add_test(tcase, phases_have_series_of_their_own);
	tcase_add_test(tcase, spans_have_a_usual_length_in_each_phase);
	tcase_add_test(tcase, counters_by_their_value);
	tcase_add_test(tcase, tracks_only_where_asked_for);
	tcase = add_case(suite, "open");
	tcase_add_test(tcase, an_open_step_stalls);
	tcase_add_test(tcase, a_stack_read_late_opens_nothing);
	tcase_add_test(tcase, a_source_that_ends_is_no_stall);
	tcase = add_case(suite, "bounds");
	tcase_add_test(tcase, room_and_time_are_bounded);
	tcase_add_test(tcase, random_events_do_no_harm);
	return test_run(suite);
}
