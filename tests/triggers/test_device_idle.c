/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "watch.h"

enum { JOB, HOST, DEVICES = 4 };

/* What the counters say each second; negative: nothing. */
struct device {
	double duty, queue, power, utilization;
};

static struct watch watch;
static uint32_t step, duty[DEVICES], queue[DEVICES], power[DEVICES], utilization[DEVICES];
static struct device device[DEVICES];
static int64_t step_number;

static uint32_t counter(int number, const char *what)
{
	char name[40];
	snprintf(name, sizeof(name), "device:%d:%s", number, what);
	struct triggers_series_key key = {.role = TRIGGERS_COUNTER, .source = HOST, .rank = UINT32_MAX,
					  .track = (uint64_t)number, .name = name, .alarms = 1};
	return triggers_engine_series(watch.engine, &key);
}

static void setup(void)
{
	watch_begin(&watch);
	step = watch_series(&watch, TRIGGERS_STEP, JOB, "step");
	step_number = 0;
	for (int i = 0; i < DEVICES; i++) {
		duty[i] = counter(i, "duty_cycle");
		queue[i] = counter(i, "queue");
		power[i] = counter(i, "power");
		utilization[i] = counter(i, "utilization");
		device[i] = (struct device){-1, -1, -1, -1};
	}
	/* Of device_idle alone is the talk here. */
	watch_set(&watch, "stall.factor", "1000");
}

static void teardown(void)
{
	watch_end(&watch);
}

static void say(uint32_t series, double value)
{
	struct triggers_sample sample = {.start_ns = watch.now_ns, .value = value, .step = -1, .sample = -1};
	if (value >= 0)
		triggers_engine_observe(watch.engine, series, &sample);
}

static void counters(void)
{
	for (int i = 0; i < DEVICES; i++) {
		say(queue[i], device[i].queue);
		say(utilization[i], device[i].utilization);
		say(duty[i], device[i].duty);
		say(power[i], device[i].power);
	}
}

static void seconds(int n)
{
	for (int i = 0; i < n; i++) {
		watch_ticks(&watch, S);
		counters();
	}
}

static void begin_step(void)
{
	triggers_engine_open(watch.engine, step, watch.now_ns, step_number++, NULL);
}

static void end_step(int64_t begin_ns, const char *phase)
{
	struct triggers_sample sample = {.start_ns = begin_ns, .duration_ns = watch.now_ns - begin_ns,
					 .step = step_number - 1, .phase = phase, .sample = -1};
	triggers_engine_observe(watch.engine, step, &sample);
}

static void steps(int n, int lasting)
{
	for (int i = 0; i < n; i++) {
		int64_t begin_ns = watch.now_ns;
		begin_step();
		seconds(lasting);
		end_step(begin_ns, NULL);
	}
}

static void phase(const char *name, int lasting)
{
	char full[40];
	snprintf(full, sizeof(full), "phase:%s", name);
	uint32_t series = watch_series(&watch, TRIGGERS_PHASE, JOB, full);
	int64_t begin_ns = watch.now_ns;
	triggers_engine_open(watch.engine, series, begin_ns, -1, name);
	seconds(lasting);
	struct triggers_sample sample = {
		.start_ns = begin_ns, .duration_ns = watch.now_ns - begin_ns, .step = -1, .phase = name, .sample = -1};
	triggers_engine_observe(watch.engine, series, &sample);
}

START_TEST(a_stuck_device)
{
	device[1] = (struct device){97, 2, -1, -1};
	steps(40, 1);
	int64_t last_busy_ns = watch.now_ns;
	device[1].duty = 0;
	begin_step();
	seconds(9);
	ck_assert_uint_eq(watch.n, 0);
	seconds(3);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_str_eq(watch.last_passed.trigger, "device_idle");
	ck_assert_str_eq(watch.last_passed.series, "device:1:duty_cycle");
	ck_assert_int_eq(watch.last_passed.severity, TRIGGERS_WARN);
	ck_assert_int_eq(watch.last_passed.ongoing, 1);
	ck_assert_int_eq(watch.last_passed.t0_ns, last_busy_ns);
	ck_assert_int_eq(watch.last_passed.detected_ns, last_busy_ns + 10 * S);
	ck_assert_ptr_nonnull(strstr(watch.last_passed.evidence, "device 1 has been idle for 10.0 s"));
	ck_assert_ptr_nonnull(strstr(watch.last_passed.evidence, "duty_cycle is 0 %, usually 97 %"));
	ck_assert_ptr_nonnull(strstr(watch.last_passed.evidence, "2 wait in its queue: the device is stuck"));
}
END_TEST

START_TEST(a_starved_device)
{
	device[0] = (struct device){80, 1, -1, -1};
	steps(40, 1);
	device[0] = (struct device){1, 0, -1, -1};
	begin_step();
	seconds(20);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_ptr_nonnull(strstr(watch.last_passed.evidence, "its queue is empty: the host sends it nothing"));
}
END_TEST

/* A collective that spins: the device says that it is busy, its power that it is not. */
START_TEST(power_tells_where_utilization_lies)
{
	device[0] = (struct device){-1, -1, 690, 100};
	steps(40, 1);
	device[0].power = 105;
	begin_step();
	seconds(20);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_str_eq(watch.last_passed.series, "device:0:power");
	ck_assert_ptr_nonnull(strstr(watch.last_passed.evidence, "power is 105 W, usually 690 W, though utilization says 100 %"));
}
END_TEST

START_TEST(two_steps_where_those_are_longer)
{
	device[0] = (struct device){97, -1, -1, -1};
	steps(20, 30);
	device[0].duty = 0;
	begin_step();
	seconds(59);
	ck_assert_uint_eq(watch.n, 0);
	seconds(2);
	ck_assert_uint_eq(watch.passed, 1);
}
END_TEST

START_TEST(a_time_of_its_own)
{
	watch_set(&watch, "device_idle.for", "45 s");
	device[0] = (struct device){97, -1, -1, -1};
	steps(40, 1);
	device[0].duty = 0;
	begin_step();
	seconds(44);
	ck_assert_uint_eq(watch.n, 0);
	seconds(2);
	ck_assert_uint_eq(watch.passed, 1);
}
END_TEST

/* Steps that go on without the device: it fell out of the job. */
START_TEST(idle_over_many_steps)
{
	device[0] = (struct device){97, -1, -1, -1};
	steps(40, 1);
	device[0].duty = 0;
	steps(20, 1);
	ck_assert_uint_eq(watch.passed, 1);
}
END_TEST

START_TEST(busy_again_it_resolves)
{
	device[0] = (struct device){97, -1, -1, -1};
	steps(40, 1);
	int64_t begin_ns = watch.now_ns;
	device[0].duty = 0;
	begin_step();
	seconds(120);
	ck_assert_uint_eq(watch.n, 1);
	ck_assert_uint_eq(watch.over, 0);
	device[0].duty = 97;
	seconds(1);
	ck_assert_uint_eq(watch.over, 1);
	ck_assert_str_eq(watch.last_over.trigger, "device_idle");
	end_step(begin_ns, NULL);
	steps(40, 1);
	ck_assert_uint_eq(watch.over, 1);
}
END_TEST

/* What idled for long is known by what it drew before, not by that. */
START_TEST(idle_for_long_and_again)
{
	device[0] = (struct device){-1, -1, 690, -1};
	steps(60, 1);
	for (int i = 0; i < 2; i++) {
		device[0].power = 105;
		int64_t begin_ns = watch.now_ns;
		begin_step();
		seconds(300);
		triggers_engine_settled(watch.engine, watch.now_ns);
		device[0].power = 690;
		seconds(1);
		end_step(begin_ns, NULL);
		steps(20, 1);
	}
	unsigned idle = 0;
	for (unsigned i = 0; i < watch.n && i < WATCH_KEPT; i++)
		idle += strcmp(watch.firing[i].trigger, "device_idle") == 0;
	ck_assert_uint_eq(idle, 2);
}
END_TEST

START_TEST(several_devices_are_one_incident)
{
	for (int i = 0; i < DEVICES; i++)
		device[i] = (struct device){97, 2, -1, -1};
	steps(40, 1);
	for (int i = 0; i < DEVICES; i++)
		device[i].duty = 0;
	begin_step();
	seconds(11);
	triggers_engine_settled(watch.engine, watch.now_ns);
	seconds(200);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_uint_eq(watch.n, DEVICES);
}
END_TEST

/* A hung step: the stall is told first, and the device belongs to it whether or not it still waits. */
START_TEST(a_stall_and_its_idle_device_are_one_incident)
{
	watch_set(&watch, "stall.factor", "3");
	device[0] = (struct device){97, 2, -1, -1};
	steps(40, 1);
	device[0].duty = 0;
	begin_step();
	seconds(5);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_str_eq(watch.last_passed.trigger, "stall");
	triggers_engine_settled(watch.engine, watch.now_ns);
	seconds(60);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_uint_eq(watch.by_gate[TRIGGERS_SAME_ANOMALY], 1);
}
END_TEST

/* The other way round the stall is told as well: it is worse. */
START_TEST(a_stall_after_an_idle_device)
{
	watch_set(&watch, "stall.factor", "3");
	device[0] = (struct device){97, 2, -1, -1};
	steps(20, 40);
	device[0].duty = 0;
	begin_step();
	seconds(85);
	ck_assert_uint_eq(watch.passed, 1);
	ck_assert_str_eq(watch.last_passed.trigger, "device_idle");
	triggers_engine_settled(watch.engine, watch.now_ns);
	seconds(60);
	ck_assert_uint_eq(watch.passed, 2);
	ck_assert_str_eq(watch.last_passed.trigger, "stall");
}
END_TEST

static const char *const phases[] = {"eval", "checkpoint", "compile", "first", "restore"};

START_TEST(not_in_a_phase)
{
	device[0] = (struct device){97, -1, -1, -1};
	steps(40, 1);
	device[0].duty = 0;
	begin_step();
	phase(phases[_i], 300);
	seconds(9);
	ck_assert_uint_eq(watch.n, 0);
	seconds(3);
	ck_assert_uint_eq(watch.passed, 1);
	/* And a phase ends it: the job goes on. */
	phase(phases[_i], 300);
	ck_assert_uint_eq(watch.over, 1);
	ck_assert_uint_eq(watch.passed, 1);
}
END_TEST

START_TEST(not_in_steps_of_a_phase)
{
	device[0] = (struct device){97, -1, -1, -1};
	steps(40, 1);
	device[0].duty = 0;
	for (int i = 0; i < 20; i++) {
		int64_t begin_ns = watch.now_ns;
		triggers_engine_open(watch.engine, step, begin_ns, step_number++, "eval");
		seconds(3);
		end_step(begin_ns, "eval");
	}
	ck_assert_uint_eq(watch.n, 0);
}
END_TEST

START_TEST(not_between_steps)
{
	device[0] = (struct device){97, -1, -1, -1};
	steps(40, 1);
	device[0].duty = 0;
	seconds(600);
	begin_step();
	seconds(9);
	ck_assert_uint_eq(watch.n, 0);
}
END_TEST

START_TEST(missing_samples_are_no_idleness)
{
	device[0] = (struct device){97, -1, -1, -1};
	steps(40, 1);
	device[0].duty = -1;
	begin_step();
	seconds(60);
	device[0].duty = 0;
	seconds(9);
	ck_assert_uint_eq(watch.n, 0);
	seconds(3);
	ck_assert_uint_eq(watch.passed, 1);
}
END_TEST

START_TEST(a_device_that_the_job_does_not_use)
{
	device[0] = (struct device){97, -1, -1, -1};
	device[1] = (struct device){0, 0, 60, 0};
	steps(400, 1);
	ck_assert_uint_eq(watch.n, 0);
}
END_TEST

/* Used by the job before, not by this one. */
START_TEST(a_device_of_an_earlier_job)
{
	device[0] = (struct device){97, -1, 690, -1};
	device[1] = (struct device){97, -1, 690, -1};
	steps(100, 1);
	triggers_engine_source_end(watch.engine, JOB);
	device[0] = device[1] = (struct device){0, -1, 70, -1};
	seconds(30);
	ck_assert_uint_eq(watch.n, 0);
	step = watch_series(&watch, TRIGGERS_STEP, JOB, "step");
	device[0] = (struct device){97, -1, 690, -1};
	steps(400, 1);
	ck_assert_uint_eq(watch.n, 0);
}
END_TEST

START_TEST(hardly_used_is_idle_by_nature)
{
	steps(10, 1);
	for (int i = 0; i < 400; i++) {
		device[0] = (struct device){(double)test_random_below(9), -1, 60 + (double)test_random_below(80), -1};
		steps(1, 1);
	}
	device[0].duty = 0;
	steps(60, 1);
	ck_assert_uint_eq(watch.n, 0);
}
END_TEST

START_TEST(a_dead_job_is_no_recovery)
{
	device[0] = (struct device){97, -1, -1, -1};
	steps(40, 1);
	device[0].duty = 0;
	begin_step();
	seconds(30);
	ck_assert_uint_eq(watch.passed, 1);
	triggers_engine_source_end(watch.engine, JOB);
	seconds(30);
	device[0].duty = 97;
	seconds(30);
	ck_assert_uint_eq(watch.over, 0);
	ck_assert_uint_eq(watch.n, 1);
}
END_TEST

START_TEST(other_counters_are_left_alone)
{
	uint32_t other[] = {counter(0, "memory"), counter(0, "power:x"), counter(0, "")};
	for (int i = 0; i < 100; i++) {
		for (size_t j = 0; j < sizeof(other) / sizeof(other[0]); j++)
			say(other[j], i < 60 ? 97 : 0);
		steps(1, 1);
	}
	ck_assert_uint_eq(watch.n, 0);
}
END_TEST

static void restart(void)
{
	watch_restart(&watch);
	watch_set(&watch, "stall.factor", "1000");
}

static uint64_t idle_twice(int restarts)
{
	teardown();
	setup();
	for (int i = 0; i < 2; i++) {
		device[0] = (struct device){97, 1, 690, -1};
		steps(40, 1);
		device[0] = (struct device){0, 0, 100, -1};
		int64_t begin_ns = watch.now_ns;
		begin_step();
		for (int j = 0; j < 100; j++) {
			seconds(1);
			if (restarts)
				restart();
		}
		device[0] = (struct device){97, 1, 690, -1};
		seconds(1);
		end_step(begin_ns, NULL);
	}
	ck_assert_uint_ge(watch.passed, 2);
	return watch.digest;
}

START_TEST(restarts_change_nothing)
{
	uint64_t whole = idle_twice(0);
	ck_assert_uint_eq(idle_twice(1), whole);
}
END_TEST

static TCase *add(Suite *suite, const char *name, const TTest *test)
{
	TCase *tcase = tcase_create(name);
	tcase_add_checked_fixture(tcase, setup, teardown);
	if (test)
		tcase_add_test(tcase, test);
	suite_add_tcase(suite, tcase);
	return tcase;
}

int main(void)
{
	Suite *suite = suite_create("device_idle");
	add(suite, "stuck", a_stuck_device);
	add(suite, "starved", a_starved_device);
	add(suite, "power", power_tells_where_utilization_lies);
	add(suite, "two steps", two_steps_where_those_are_longer);
	add(suite, "a time of its own", a_time_of_its_own);
	add(suite, "many steps", idle_over_many_steps);
	add(suite, "resolves", busy_again_it_resolves);
	add(suite, "for long and again", idle_for_long_and_again);
	add(suite, "several devices", several_devices_are_one_incident);
	add(suite, "with a stall", a_stall_and_its_idle_device_are_one_incident);
	add(suite, "before a stall", a_stall_after_an_idle_device);
	tcase_add_loop_test(add(suite, "phases", NULL), not_in_a_phase, 0, (int)(sizeof(phases) / sizeof(phases[0])));
	add(suite, "steps of a phase", not_in_steps_of_a_phase);
	add(suite, "between steps", not_between_steps);
	add(suite, "missing samples", missing_samples_are_no_idleness);
	add(suite, "an unused device", a_device_that_the_job_does_not_use);
	add(suite, "a device of an earlier job", a_device_of_an_earlier_job);
	add(suite, "hardly used", hardly_used_is_idle_by_nature);
	add(suite, "a dead job", a_dead_job_is_no_recovery);
	add(suite, "other counters", other_counters_are_left_alone);
	add(suite, "restarts", restarts_change_nothing);
	return test_run(suite);
}
