/* SPDX-License-Identifier: Apache-2.0 */
/* One anomaly, one incident: in whatever order its series end, and however long after the incident has settled. */
#include <stdlib.h>

#include "watch.h"

static struct watch watch;
static uint32_t step, load, batch, phase;

static void setup(void)
{
	watch_begin(&watch);
	step = watch_series(&watch, TRIGGERS_STEP, 0, "step");
	load = watch_series(&watch, TRIGGERS_SPAN, 0, "load");
	batch = watch_series(&watch, TRIGGERS_SPAN, 0, "read_batch");
	phase = watch_series(&watch, TRIGGERS_PHASE, 0, "phase:epoch");
}

static void teardown(void)
{
	watch_end(&watch);
}

static void span(uint32_t series, int64_t begin_ns, int64_t end_ns)
{
	struct triggers_sample sample = {
		.start_ns = begin_ns, .duration_ns = end_ns - begin_ns, .step = -1, .sample = -1};
	triggers_engine_observe(watch.engine, series, &sample);
}

static void end_step(uint32_t series, int64_t begin_ns, int64_t number)
{
	struct triggers_sample sample = {.start_ns = begin_ns,
					 .duration_ns = watch.now_ns - begin_ns,
					 .step = number,
					 .sample = -1};
	triggers_engine_observe(watch.engine, series, &sample);
}

/* Steps of a second that load for 100 ms, on another thread for 150 ms. */
static void usual(int n)
{
	for (int i = 0; i < n; i++) {
		int64_t begin_ns = watch.now_ns;
		triggers_engine_open(watch.engine, step, begin_ns, i, NULL);
		span(load, begin_ns, begin_ns + watch_noise(100 * MS));
		span(batch, begin_ns, begin_ns + watch_noise(150 * MS));
		watch_ticks(&watch, watch_noise(S));
		end_step(step, begin_ns, i);
	}
}

static void settle(void)
{
	triggers_engine_settled(watch.engine, watch.now_ns);
}

/* A slow step that is slow because of its span; which of the two is told of first, and when the incident settles. */
static const struct {
	int step_first, settled_between;
	enum triggers_gate second;
} slow_orders[] = {
	{0, 0, TRIGGERS_COALESCED},
	{0, 1, TRIGGERS_SAME_ANOMALY},
	{1, 0, TRIGGERS_COALESCED},
	{1, 1, TRIGGERS_SAME_ANOMALY},
};

START_TEST(a_slow_step_and_its_span)
{
	usual(40);
	/* Without the cooldown, which would hide a second one of the same trigger. */
	watch_set(&watch, "gates.cooldown", "0 s");
	int64_t begin_ns = watch.now_ns;
	watch.now_ns += 2500 * MS;
	if (slow_orders[_i].step_first)
		end_step(step, begin_ns, 40);
	else
		span(load, begin_ns, begin_ns + 2 * S);
	ck_assert_uint_eq(watch.passed, 1);
	if (slow_orders[_i].settled_between)
		settle();
	if (slow_orders[_i].step_first)
		span(load, begin_ns, begin_ns + 2 * S);
	else
		end_step(step, begin_ns, 40);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_uint_eq(watch.n, 2);
	ck_assert_int_eq(watch.gate[1], slow_orders[_i].second);
	/* The next one is another one. */
	settle();
	usual(3);
	begin_ns = watch.now_ns;
	watch.now_ns += 2500 * MS;
	end_step(step, begin_ns, 44);
	ck_assert_uint_eq(watch.passed, 2);
}
END_TEST

/* Whatever hung with a step ends with it: its span, another thread's, the phase around, and the step itself. */
static const struct {
	const char *order; /* l load, b read_batch of another thread, s step, p phase */
	int settled;
} stall_orders[] = {
	{"lbsp", 0}, {"lbsp", 1}, {"slbp", 1}, {"bslp", 1}, {"pslb", 1}, {"sblp", 0},
};

static void end_all(const char *order, int64_t step_ns, int64_t phase_ns)
{
	for (; *order; order++)
		switch (*order) {
		case 'l':
			span(load, step_ns, watch.now_ns - 50 * MS);
			break;
		case 'b':
			/* It may be a little late, too. */
			span(batch, step_ns - 20 * MS, watch.now_ns + 5 * MS);
			break;
		case 's':
			end_step(step, step_ns, 40);
			break;
		default:
			span(phase, phase_ns, watch.now_ns + 10 * MS);
		}
}

START_TEST(what_hung_in_a_stall)
{
	watch_set(&watch, "gates.cooldown", "0 s");
	for (int i = 0; i < 20; i++)
		span(phase, watch.now_ns - (100 - i) * S, watch.now_ns - (99 - i) * S);
	int64_t phase_ns = watch.now_ns;
	usual(40);
	int64_t step_ns = watch.now_ns;
	triggers_engine_open(watch.engine, step, step_ns, 40, NULL);
	watch_ticks(&watch, 100 * S);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_str_eq(watch.last_passed.trigger, "stall");
	if (stall_orders[_i].settled)
		settle();
	end_all(stall_orders[_i].order, step_ns, phase_ns);
	ck_assert_uint_eq(watch.over, 1);
	ck_assert_uint_gt(watch.n, 1);
	for (unsigned i = 1; i < watch.n; i++)
		ck_assert_msg(watch.gate[i] == TRIGGERS_COALESCED || watch.gate[i] == TRIGGERS_SAME_ANOMALY,
			      "%s: %s", watch.firing[i].series, triggers_gate_name(watch.gate[i]));
	ck_assert_uint_eq(watch.passed, 1);
}
END_TEST

START_TEST(two_stalls_are_two)
{
	usual(40);
	watch_step(&watch, step, 40, 5 * S);
	settle();
	usual(30);
	int64_t begin_ns = watch.now_ns;
	triggers_engine_open(watch.engine, step, begin_ns, 71, NULL);
	watch_ticks(&watch, 5 * S);
	/* Not even the cooldown of a minute hides a job that hangs. */
	ck_assert_uint_eq(watch.passed, 2);
	ck_assert_str_eq(watch.last_passed.trigger, "stall");
	ck_assert_int_eq(watch.last_passed.t0_ns, begin_ns);
}
END_TEST

/* A slow span, then the step hangs elsewhere for good: that must be told of. */
START_TEST(a_stall_is_no_part_of_a_spike)
{
	usual(40);
	int64_t begin_ns = watch.now_ns;
	triggers_engine_open(watch.engine, step, begin_ns, 40, NULL);
	watch_ticks(&watch, 2 * S);
	span(load, begin_ns, begin_ns + 2 * S);
	ck_assert_uint_eq(watch.passed, 1);
	settle();
	watch_ticks(&watch, 20 * S);
	ck_assert_uint_eq(watch.passed, 2);
	ck_assert_str_eq(watch.last_passed.trigger, "stall");
}
END_TEST

static uint32_t other_rank(uint32_t source, uint64_t job, const char *name, enum triggers_role role)
{
	struct triggers_series_key key = {
		.role = role, .source = source, .rank = source, .job = job, .track = 1, .name = name, .alarms = 1};
	return triggers_engine_series(watch.engine, &key);
}

/* Two ranks hang together; the second is noticed when the first one's incident has settled. */
static void two_ranks(uint64_t job, unsigned expected)
{
	uint32_t second = other_rank(1, job, "step", TRIGGERS_STEP);
	uint32_t wait = other_rank(1, job, "load", TRIGGERS_SPAN);
	watch_set(&watch, "gates.cooldown", "0 s");
	for (int i = 0; i < 40; i++) {
		int64_t begin_ns = watch.now_ns;
		watch_ticks(&watch, S);
		end_step(step, begin_ns, i);
		span(wait, begin_ns, begin_ns + 100 * MS);
		end_step(second, begin_ns, i);
	}
	int64_t begin_ns = watch.now_ns;
	triggers_engine_open(watch.engine, step, begin_ns, 40, NULL);
	watch_ticks(&watch, 4 * S);
	ck_assert_uint_eq(watch.passed, 1);
	settle();
	triggers_engine_open(watch.engine, second, begin_ns + 3500 * MS, 40, NULL);
	watch_ticks(&watch, 6 * S);
	ck_assert_uint_eq(watch.passed, expected);
	settle();
	/* Rank 0 goes on first; what rank 1 waited in ends later and began before. */
	end_step(step, begin_ns, 40);
	watch.now_ns += 100 * MS;
	span(wait, begin_ns + 3500 * MS, watch.now_ns);
	end_step(second, begin_ns + 3500 * MS, 40);
	ck_assert_uint_eq(watch.passed, expected);
}

START_TEST(ranks_of_a_job_stall_together)
{
	two_ranks(7, 1);
}
END_TEST

START_TEST(jobs_do_not)
{
	two_ranks(8, 2);
}
END_TEST

/* A rank that died while it hung holds nothing up any more. */
START_TEST(the_dead_do_not_stall)
{
	uint32_t second = other_rank(1, 7, "step", TRIGGERS_STEP);
	for (int i = 0; i < 40; i++) {
		int64_t begin_ns = watch.now_ns;
		watch_ticks(&watch, S);
		end_step(step, begin_ns, i);
		end_step(second, begin_ns, i);
	}
	triggers_engine_open(watch.engine, step, watch.now_ns, 40, NULL);
	watch_ticks(&watch, 5 * S);
	ck_assert_uint_eq(watch.passed, 1);
	settle();
	triggers_engine_source_end(watch.engine, 0);
	watch_ticks(&watch, 5 * S);
	triggers_engine_open(watch.engine, second, watch.now_ns, 40, NULL);
	watch_ticks(&watch, 5 * S);
	ck_assert_uint_eq(watch.passed, 2);
}
END_TEST

/* A job without marks: the span is all there is. */
START_TEST(a_slow_span_without_steps)
{
	for (int i = 0; i < 40; i++)
		watch_sample(&watch, load, watch_noise(100 * MS), NULL);
	watch_set(&watch, "gates.cooldown", "0 s");
	int64_t begin_ns = watch.now_ns;
	watch_ticks(&watch, 3 * S);
	span(load, begin_ns, watch.now_ns);
	settle();
	/* Another thread's that waited for it, and what the same thread does from now on. */
	for (int i = 0; i < 40; i++)
		span(batch, begin_ns - (41 - i) * S, begin_ns - (41 - i) * S + 100 * MS);
	span(batch, begin_ns + 10 * MS, watch.now_ns + 10 * MS);
	for (int i = 0; i < 40; i++)
		watch_sample(&watch, load, watch_noise(100 * MS), NULL);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_str_eq(watch.last_passed.trigger, "latency_spike");
	ck_assert_str_eq(watch.last_passed.series, "load");
	ck_assert_uint_eq(watch.by_gate[TRIGGERS_SAME_ANOMALY], 1);
}
END_TEST

/* Four ranks work 500 ms of each step; the first one's factor, and when it begins to count. */
static void work(uint32_t *busy, int64_t begin_ns, int64_t number, int64_t first_ns)
{
	for (uint32_t i = 0; i < 4; i++) {
		struct triggers_sample sample = {.start_ns = begin_ns,
						 .duration_ns = i ? watch_noise(500 * MS) : first_ns,
						 .step = number,
						 .sample = -1};
		triggers_engine_observe(watch.engine, busy[i], &sample);
	}
}

/* A straggler of which nobody is told; then a step of its rank is far too slow, and somebody must be. */
START_TEST(what_is_quiet_hides_nothing)
{
	uint32_t busy[4];
	for (uint32_t i = 0; i < 4; i++) {
		struct triggers_series_key key = {.role = TRIGGERS_BUSY,
						  .source = i,
						  .rank = i,
						  .job = 7,
						  .track = 1,
						  .name = "busy:main",
						  .group = "step main",
						  .alarms = 1};
		busy[i] = triggers_engine_series(watch.engine, &key);
	}
	for (int64_t i = 0; i < 60; i++) {
		int64_t begin_ns = watch.now_ns;
		watch_ticks(&watch, watch_noise(S));
		end_step(step, begin_ns, i);
		work(busy, begin_ns, i, i < 40 ? watch_noise(500 * MS) : watch_noise(800 * MS));
	}
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_str_eq(watch.last_passed.trigger, "straggler");
	ck_assert(watch.last_passed.quiet);
	settle();
	/* It began before the straggler was named. */
	int64_t begin_ns = watch.last_passed.detected_ns - 100 * MS;
	watch.now_ns = begin_ns + 9 * S;
	end_step(step, begin_ns, 60);
	ck_assert_uint_eq(watch.passed, 2);
	ck_assert_str_eq(watch.last_passed.trigger, "latency_spike");
}
END_TEST

/* What has an incident is known after a restart, too. */
START_TEST(restarts_forget_nothing)
{
	usual(40);
	int64_t begin_ns = watch.now_ns;
	triggers_engine_open(watch.engine, step, begin_ns, 40, NULL);
	watch_ticks(&watch, 20 * S);
	ck_assert_uint_eq(watch.passed, 1);
	settle();
	watch_restart(&watch);
	watch_set(&watch, "gates.cooldown", "0 s");
	end_all("lbs", begin_ns, begin_ns);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_uint_gt(watch.by_gate[TRIGGERS_SAME_ANOMALY], 0);
}
END_TEST

static TCase *add(Suite *suite, const char *name)
{
	TCase *tcase = tcase_create(name);
	tcase_add_checked_fixture(tcase, setup, teardown);
	suite_add_tcase(suite, tcase);
	return tcase;
}

int main(void)
{
	Suite *suite = suite_create("anomalies");
	tcase_add_loop_test(add(suite, "a slow step and its span"), a_slow_step_and_its_span, 0,
			    sizeof(slow_orders) / sizeof(slow_orders[0]));
	tcase_add_loop_test(add(suite, "what hung in a stall"), what_hung_in_a_stall, 0,
			    sizeof(stall_orders) / sizeof(stall_orders[0]));
	tcase_add_test(add(suite, "two stalls"), two_stalls_are_two);
	tcase_add_test(add(suite, "a stall after a spike"), a_stall_is_no_part_of_a_spike);
	tcase_add_test(add(suite, "ranks of a job"), ranks_of_a_job_stall_together);
	tcase_add_test(add(suite, "other jobs"), jobs_do_not);
	tcase_add_test(add(suite, "dead ranks"), the_dead_do_not_stall);
	tcase_add_test(add(suite, "no steps"), a_slow_span_without_steps);
	tcase_add_test(add(suite, "quiet"), what_is_quiet_hides_nothing);
	tcase_add_test(add(suite, "restart"), restarts_forget_nothing);
	return test_run(suite);
}
