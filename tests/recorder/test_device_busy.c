/* SPDX-License-Identifier: Apache-2.0 */
/* Device tracks of captures as counters, and what device_idle says of them in replay. */
#include <stdio.h>
#include <stdlib.h>

#include <driverec/event.h>

#include "replay.h"
#include "sources/device_busy.h"
#include "support.h"

#define MS INT64_C(1000000)
#define S  INT64_C(1000000000)

static struct device_busy *busy;
static struct triggers_engine *engine;

static struct reducer_text text(const char *from)
{
	return (struct reducer_text){from, strlen(from)};
}

static void set_up(void)
{
	assert_ok(device_busy_new(&busy));
	assert_ok(triggers_engine_new(NULL, &engine));
}

static void tear_down(void)
{
	device_busy_free(busy);
	triggers_engine_free(engine);
}

static void meta(const char *what, const char *group, const char *track, const char *name)
{
	char args[128];
	snprintf(args, sizeof(args), "{\"name\":\"%s\"}", name);
	struct reducer_event event = {.kind = DREC_META,
				      .name = text(what),
				      .group = text(group),
				      .track = text(track),
				      .args = text(args)};
	assert_ok(device_busy_event(busy, &event));
}

static void span(const char *name, const char *category, const char *group, const char *track,
		 int64_t start_ns, int64_t end_ns)
{
	struct reducer_event event = {.kind = DREC_SPAN,
				      .has_time = 1,
				      .has_duration = 1,
				      .name = text(name),
				      .category = text(category),
				      .group = text(group),
				      .track = text(track),
				      .start_ns = start_ns,
				      .duration_ns = end_ns - start_ns};
	assert_ok(device_busy_event(busy, &event));
}

struct told {
	double value[64];
	int64_t at_ns[64];
	const char *note[64];
	unsigned count;
};

/* The samples of the counter of this name. */
static void samples(const char *name, struct told *told)
{
	struct triggers_belief belief;
	memset(told, 0, sizeof(*told));
	for (struct device_busy_next next = device_busy_next(busy, INT64_MAX); next.kind;
	     next = device_busy_next(busy, INT64_MAX)) {
		if (next.kind != DEVICE_BUSY_SAMPLE ||
		    triggers_engine_belief(engine, next.series, &belief) < 0 ||
		    strcmp(belief.key.name, name) != 0 || told->count == 64)
			continue;
		told->value[told->count] = next.sample.value;
		told->note[told->count] = next.sample.note;
		told->at_ns[told->count++] = next.at_ns;
	}
}

START_TEST(kernels_of_kineto)
{
	struct told told;
	/* The first second: 300 ms in the union of two streams; the second: 100 ms; the third: nothing. */
	span("gemm", "kernel", "1", "7", 10 * S, 10 * S + 200 * MS);
	span("copy", "gpu_memcpy", "1", "9", 10 * S + 100 * MS, 10 * S + 300 * MS);
	span("old", "Kernel", "1", "7", 11 * S, 11 * S + 100 * MS);
	span("step", "gpu_user_annotation", "1", "7", 10 * S, 13 * S);
	span("python", "python_function", "1234", "1", 9 * S, 13 * S);
	assert_ok(device_busy_series(busy, engine));
	samples("device:1:busy", &told);
	ck_assert_uint_eq(told.count, 3);
	ck_assert_double_eq_tol(told.value[0], 30, 0.01);
	ck_assert_double_eq_tol(told.value[1], 10, 0.01);
	ck_assert_double_eq_tol(told.value[2], 0, 0.01);
	ck_assert_int_eq(told.at_ns[0], 11 * S);
}
END_TEST

START_TEST(lines_of_xplanes)
{
	struct told told;
	meta("process_name", "3", "", "/device:TPU:0");
	meta("process_name", "4", "", "/device:TPU:0 SparseCore 1");
	meta("process_name", "5", "", "/device:GPU:2");
	meta("process_name", "701", "", "/host:CPU");
	meta("thread_name", "3", "1", "Steps");
	meta("thread_name", "3", "2", "XLA Ops");
	meta("thread_name", "4", "2", "XLA Ops");
	meta("thread_name", "5", "14", "Stream #14(Compute)");
	meta("thread_name", "5", "-1", "XLA Modules");
	span("7", "", "3", "1", 0, 4 * S);
	span("fusion.3", "", "3", "2", 0, 500 * MS);
	span("infeed.1", "", "3", "2", 500 * MS, 2 * S);
	span("fusion.4", "", "3", "2", 2 * S, 3 * S);
	span("sparse", "", "4", "2", 0, 4 * S);
	span("kernel", "", "5", "14", 1 * S, 2 * S);
	span("module", "", "5", "-1", 0, 4 * S);
	span("python", "", "701", "1", 0, 4 * S);
	assert_ok(device_busy_series(busy, engine));
	samples("device:0:busy", &told);
	ck_assert_uint_eq(told.count, 4);
	ck_assert_double_eq_tol(told.value[0], 50, 0.01);
	ck_assert_double_eq_tol(told.value[1], 0, 0.01);
	ck_assert_double_eq_tol(told.value[2], 100, 0.01);
	ck_assert_double_eq_tol(told.value[3], 0, 0.01);
}
END_TEST

START_TEST(what_the_host_waits_in)
{
	struct told told;
	span("gemm", "kernel", "0", "7", 0, S);
	span("cudaStreamSynchronize", "cuda_runtime", "99", "99", 1100 * MS, 3 * S);
	span("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "user_annotation", "99", "99",
	     2 * S, 4 * S);
	span("cudaDeviceSynchronize", "cuda_runtime", "99", "99", 4 * S, 4400 * MS);
	span("train", "user_annotation", "99", "99", 0, 6 * S);
	assert_ok(device_busy_series(busy, engine));
	samples("device:0:busy", &told);
	ck_assert_uint_eq(told.count, 6);
	ck_assert_ptr_null(told.note[0]);
	ck_assert_str_eq(told.note[1], "cudaStreamSynchronize");
	ck_assert_ptr_nonnull(strstr(told.note[2], "enumerate(DataLoader)"));
	ck_assert_ptr_nonnull(strstr(told.note[3], "enumerate(DataLoader)"));
	ck_assert_ptr_null(told.note[4]);
}
END_TEST

START_TEST(bins_follow_the_steps)
{
	struct told told;
	span("gemm", "kernel", "0", "7", 0, 3 * S);
	for (int i = 0; i < 5; i++)
		assert_ok(device_busy_step(busy, 0, i * 600 * MS, (i + 1) * 600 * MS, i));
	assert_ok(device_busy_series(busy, engine));
	samples("device:0:busy", &told);
	ck_assert_uint_eq(told.count, 15);
	ck_assert_int_eq(told.at_ns[0], 200 * MS);
}
END_TEST

START_TEST(times_out_of_all_bounds_do_no_harm)
{
	struct told told;
	span("gemm", "kernel", "0", "7", INT64_MIN, -1);
	span("gemm", "kernel", "0", "7", 0, INT64_MAX);
	span("gemm", "kernel", "1", "7", INT64_MAX - 5, INT64_MAX);
	span("cudaStreamSynchronize", "cuda_runtime", "99", "99", INT64_MIN, -1);
	assert_ok(device_busy_step(busy, 0, INT64_MIN, INT64_MAX, 1));
	assert_ok(device_busy_step(busy, 0, INT64_MIN, INT64_MAX, INT64_MIN));
	assert_ok(device_busy_series(busy, engine));
	samples("device:0:busy", &told);
	ck_assert_uint_eq(told.count, 64);
	ck_assert_double_eq_tol(told.value[5], 100, 0.01);
}
END_TEST

START_TEST(no_devices_no_steps_opened)
{
	span("python", "python_function", "1234", "1", 9 * S, 13 * S);
	assert_ok(device_busy_step(busy, 0, 0, S, 1));
	assert_ok(device_busy_series(busy, engine));
	ck_assert_int_eq(device_busy_next(busy, INT64_MAX).kind, DEVICE_BUSY_NONE);
}
END_TEST

/* ---- in replay ---- */

static FILE *trace;
static const char *path;

static void begin_trace(void)
{
	path = test_path(test_folder(), "devices.json");
	trace = fopen(path, "w");
	ck_assert_ptr_nonnull(trace);
	fprintf(trace, "[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":99,\"tid\":0,\"args\":{\"name\":"
		       "\"python\"}}");
}

static void write_span(const char *name, const char *category, int pid, int64_t start_ns, int64_t end_ns)
{
	fprintf(trace,
		",\n{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"%s\",\"pid\":%d,\"tid\":1,\"ts\":%lld,\"dur\":%"
		"lld}",
		name, category, pid, (long long)(start_ns / 1000), (long long)((end_ns - start_ns) / 1000));
}

/* Steps of a second of which kernels take 800 ms. Returns the end of the last. */
static int64_t write_steps(int count)
{
	char name[32];
	for (int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "ProfilerStep#%d", i);
		write_span(name, "user_annotation", 99, i * S, (i + 1) * S);
		write_span("gemm", "kernel", 0, i * S + 50 * MS, i * S + 850 * MS);
	}
	return count * S;
}

static char *replayed(const char *trigger)
{
	char error[512] = "", *lines;
	size_t bytes;
	struct replay_settings settings = {.json = true, .all = true};
	if (trigger)
		settings.trigger.text[settings.trigger.count++] = trigger;
	/* A stall of the same step would have the incident. */
	settings.set.text[settings.set.count++] = "stall.factor=1000";
	struct replay replay = {.settings = &settings, .out = open_memstream(&lines, &bytes)};
	fprintf(trace, "]\n");
	fclose(trace);
	assert_ok(replay_trace(&replay, path, error, sizeof(error)));
	fclose(replay.out);
	replay_counts_free(&replay.counts);
	return lines;
}

START_TEST(a_device_idles_inside_a_step)
{
	begin_trace();
	int64_t end_ns = write_steps(40);
	write_span("ProfilerStep#40", "user_annotation", 99, end_ns, end_ns + 30 * S);
	write_span("cudaStreamSynchronize", "cuda_runtime", 99, end_ns + S, end_ns + 29 * S);
	char *lines = replayed("device_idle");
	ck_assert_msg(strstr(lines, "\"trigger\":\"device_idle\"") != NULL, "%s", lines);
	ck_assert_msg(strstr(lines, "\"series\":\"device:0:busy\"") != NULL, "%s", lines);
	ck_assert_msg(strstr(lines, "the host waits in \\\"cudaStreamSynchronize\\\"") != NULL, "%s", lines);
	free(lines);
}
END_TEST

/* Two steps, and a device that idles for a while of them: too short to say anything. */
START_TEST(a_short_capture_says_nothing)
{
	begin_trace();
	int64_t end_ns = write_steps(2);
	write_span("ProfilerStep#2", "user_annotation", 99, end_ns, end_ns + 8 * S);
	char *lines = replayed("device_idle");
	ck_assert_msg(strstr(lines, "\"trigger\":\"device_idle\"") == NULL, "%s", lines);
	free(lines);
}
END_TEST

/* Neither the step that a save interrupts is slow, nor does the device idle for no reason. */
START_TEST(a_save_in_a_step_says_nothing)
{
	begin_trace();
	int64_t end_ns = write_steps(40);
	write_span("ProfilerStep#40", "user_annotation", 99, end_ns, end_ns + 31 * S);
	write_span("save_checkpoint", "user_annotation", 99, end_ns + S / 2, end_ns + 30 * S + S / 2);
	char *lines = replayed(NULL);
	ck_assert_msg(strstr(lines, "\"trigger\"") == NULL, "%s", lines);
	free(lines);
}
END_TEST

START_TEST(devices_that_work_say_nothing)
{
	begin_trace();
	write_steps(60);
	char *lines = replayed(NULL);
	ck_assert_msg(strstr(lines, "\"trigger\"") == NULL, "%s", lines);
	free(lines);
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
	Suite *suite = suite_create("device_busy");
	add(suite, "kineto", kernels_of_kineto);
	add(suite, "xplane", lines_of_xplanes);
	add(suite, "host waits", what_the_host_waits_in);
	add(suite, "bins", bins_follow_the_steps);
	add(suite, "far times", times_out_of_all_bounds_do_no_harm);
	add(suite, "no devices", no_devices_no_steps_opened);
	add(suite, "idle in a step", a_device_idles_inside_a_step);
	add(suite, "short capture", a_short_capture_says_nothing);
	add(suite, "a save", a_save_in_a_step_says_nothing);
	add(suite, "at work", devices_that_work_say_nothing);
	return test_run(suite);
}
