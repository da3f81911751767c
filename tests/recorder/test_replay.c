/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real traces through `replay`: all of them without harm, and one with a step's worth of spans stretched ten
 * times, which must give exactly one latency_spike, at that place.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <reducer/chrome.h>

#include "replay.h"
#include "support.h"

enum { EVENTS_MAX = 200000 };

struct event {
	int64_t start_ns, duration_ns, step;
	char name[48], group[16], track[16];
};

static struct event *events;
static size_t n_events;

static void text(char *out, size_t room, struct reducer_text from)
{
	snprintf(out, room, "%.*s", (int)from.bytes, from.bytes ? from.data : "");
}

static int keep(void *context, const struct reducer_event *event)
{
	(void)context;
	if (event->kind != DREC_SPAN || n_events == EVENTS_MAX)
		return 0;
	struct event *kept = &events[n_events++];
	const char *step =
		event->args.bytes ? memmem(event->args.data, event->args.bytes, "\"step\":", 7) : NULL;
	kept->start_ns = event->start_ns;
	kept->duration_ns = event->duration_ns;
	kept->step = step ? strtoll(step + 7, NULL, 10) : -1;
	text(kept->name, sizeof(kept->name), event->name);
	text(kept->group, sizeof(kept->group), event->group);
	text(kept->track, sizeof(kept->track), event->track);
	return 0;
}

static void read_events(const char *path)
{
	struct reducer_input *input;
	struct reducer_problem problem;
	struct reducer_read_report report;
	struct reducer_sink sink = {.event = keep};
	events = calloc(EVENTS_MAX, sizeof(*events));
	ck_assert_ptr_nonnull(events);
	n_events = 0;
	assert_ok(reducer_input_open(path, &input, &problem));
	assert_ok(reducer_chrome_read(input, &sink, NULL, &report));
	reducer_input_free(input);
}

/* Where `ns` lies once [begin, end) is ten times as long. */
static int64_t moved(int64_t ns, int64_t begin_ns, int64_t end_ns)
{
	if (ns <= begin_ns)
		return ns;
	return ns < end_ns ? begin_ns + 10 * (ns - begin_ns) : ns + 9 * (end_ns - begin_ns);
}

static void write_stretched(const char *path, int64_t begin_ns, int64_t end_ns)
{
	FILE *file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fprintf(file, "[");
	for (size_t i = 0; i < n_events; i++) {
		const struct event *event = &events[i];
		int64_t start_ns = moved(event->start_ns, begin_ns, end_ns);
		int64_t length_ns = moved(event->start_ns + event->duration_ns, begin_ns, end_ns) - start_ns;
		fprintf(file,
			"%s{\"ph\":\"X\",\"name\":\"%s\",\"pid\":%s,\"tid\":%s,\"ts\":%lld.%03lld,\"dur\":%"
			"lld.%03lld,"
			"\"args\":{\"step\":%lld}}",
			i ? ",\n" : "", event->name, event->group, event->track, (long long)(start_ns / 1000),
			(long long)(start_ns % 1000), (long long)(length_ns / 1000),
			(long long)(length_ns % 1000), (long long)event->step);
	}
	fprintf(file, "]\n");
	ck_assert_int_eq(fclose(file), 0);
}

/* Replays `path`, the lines printed in *ret_text. */
static int replayed(const char *path, struct replay *replay, char **ret_text)
{
	static const struct replay_settings settings = {.json = true};
	char error[512] = "";
	size_t bytes;
	*replay = (struct replay){.settings = &settings, .out = open_memstream(ret_text, &bytes)};
	ck_assert_ptr_nonnull(replay->out);
	int result = replay_trace(replay, path, error, sizeof(error));
	ck_assert_msg(result == 0 || error[0], "%s is refused without a word", path);
	fclose(replay->out);
	replay_counts_free(&replay->counts);
	return result;
}

static void stretch_step(size_t which)
{
	int64_t begin_ns = INT64_MAX, end_ns = INT64_MIN, numbers[64];
	size_t n = 0;
	char *lines;
	struct replay replay;
	read_events(test_path(test_data_folder(), "traces/straggler_worker_44steps.trace.json.gz"));
	for (size_t i = 0; i < n_events; i++) {
		size_t at = 0;
		while (at < n && numbers[at] < events[i].step)
			at++;
		if (at < n && numbers[at] == events[i].step)
			continue;
		ck_assert_uint_lt(n, 64);
		memmove(numbers + at + 1, numbers + at, (n++ - at) * sizeof(numbers[0]));
		numbers[at] = events[i].step;
	}
	ck_assert_uint_eq(n, 44);
	for (size_t i = 0; i < n_events; i++) {
		if (events[i].step != numbers[which])
			continue;
		if (events[i].start_ns < begin_ns)
			begin_ns = events[i].start_ns;
		if (events[i].start_ns + events[i].duration_ns > end_ns)
			end_ns = events[i].start_ns + events[i].duration_ns;
	}
	const char *path = test_path(test_folder(), "stretched.json");
	write_stretched(path, begin_ns, end_ns);
	assert_ok(replayed(path, &replay, &lines));
	ck_assert_uint_eq(replay.firings[TRIGGERS_CRITICAL], 1);
	ck_assert_uint_eq(replay.firings[TRIGGERS_WARN], 1); /* the straggler that is in it */
	const char *spike = strstr(lines, "\"trigger\":\"latency_spike\"");
	ck_assert_ptr_nonnull(spike);
	const char *t0 = strstr(spike, "\"t0_ns\":\"");
	ck_assert_ptr_nonnull(t0);
	int64_t t0_ns = strtoll(t0 + 9, NULL, 10);
	ck_assert_msg(t0_ns >= begin_ns && t0_ns < moved(end_ns, begin_ns, end_ns), "fires at %lld",
		      (long long)t0_ns);
	free(lines);
	free(events);
}

START_TEST(one_stretched_step_is_one_spike)
{
	static const size_t places[] = {18, 25, 33, 41};
	stretch_step(places[_i]);
}
END_TEST

START_TEST(the_slow_worker_is_named_and_nothing_else)
{
	char *lines;
	struct replay replay;
	const char *path = test_path(test_data_folder(), "traces/straggler_worker_44steps.trace.json.gz");
	assert_ok(replayed(path, &replay, &lines));
	ck_assert_uint_eq(replay.firings[TRIGGERS_CRITICAL], 0);
	ck_assert_uint_eq(replay.firings[TRIGGERS_WARN], 1);
	ck_assert_ptr_nonnull(strstr(lines, "\"trigger\":\"straggler\""));
	ck_assert_ptr_nonnull(strstr(lines, "\"track\":\"pid 0 tid 0\""));
	const char *sample = strstr(lines, "\"sample\":");
	ck_assert_ptr_nonnull(sample);
	ck_assert_int_lt(strtol(sample + 9, NULL, 10), 10);
	ck_assert_uint_eq(replay.steps % 44, 0);
	free(lines);
}
END_TEST

static const char *const traces[] = {
	"128rank_sampled_rank0.pt.trace.json.gz",
	"128rank_sampled_rank1.pt.trace.json.gz",
	"a100_nccl_late_base_time.pt.trace.json.gz",
	"b200_eager_8rank.pt.trace.json.gz",
	"cpu_only_gloo_rank34.pt.trace.json.gz",
	"h100_bert_small.pt.trace.json.gz",
	"mi250_train.pt.trace.json.gz",
	"mtia_inference_rank0.pt.trace.json.gz",
	"not_chrome_rocprof.json.gz",
	"v100_2021_resnet50.pt.trace.json.gz",
	"v100_nccl_abs_time.pt.trace.json.gz",
};

START_TEST(every_trace_replays)
{
	char path[256], *lines;
	struct replay replay;
	snprintf(path, sizeof(path), "traces/%s", traces[_i]);
	int result = replayed(test_path(test_data_folder(), path), &replay, &lines);
	ck_assert_msg(result == (strstr(traces[_i], "not_chrome") ? -EBADMSG : 0), "%s: %d", traces[_i],
		      result);
	ck_assert_msg(!strstr(lines, "\"trigger\":\"straggler\""), "%s: %s", traces[_i], lines);
	free(lines);
}
END_TEST

static const struct {
	const char *text;
	int scale;
	int64_t value;
} decimals[] = {
	{"12.160857439041138", 9, 12160857439},
	{"1684040083374", 6, 1684040083374000000},
	{"1e-05", 9, 10000},
	{"0.0", 9, 0},
	{"5.5e1", 0, 55},
	{"-2.5", 1, -25},
};

START_TEST(decimals_are_exact)
{
	int64_t value = 0;
	assert_ok(replay_decimal(decimals[_i].text, decimals[_i].scale, &value));
	ck_assert_int_eq(value, decimals[_i].value);
	ck_assert_int_eq(replay_decimal("12x", 0, &value), -EINVAL);
	ck_assert_int_eq(replay_decimal("", 0, &value), -EINVAL);
	ck_assert_int_eq(replay_decimal("1e30", 9, &value), -ERANGE);
}
END_TEST

START_TEST(step_tables_fire_with_their_row)
{
	const char *path = test_path(test_folder(), "steps.csv");
	FILE *file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fprintf(file, "run,time_ms,kind,value_s,data_s,step\n");
	long long now_ms = 1700000000000;
	for (int i = 0; i < 60; i++) {
		int length_ms = i == 40 ? 2000 : i == 50 ? 60000 : 1000;
		now_ms += length_ms;
		fprintf(file, "a,%lld,step,%d.%03d,,%d\n", now_ms, length_ms / 1000, length_ms % 1000,
			100 + i);
	}
	fclose(file);
	char error[512] = "", *lines;
	size_t bytes;
	static const struct replay_settings settings = {.json = true};
	struct replay replay = {.settings = &settings, .out = open_memstream(&lines, &bytes)};
	assert_ok(replay_steps(&replay, path, error, sizeof(error)));
	fclose(replay.out);
	replay_counts_free(&replay.counts);
	ck_assert_uint_eq(replay.firings[TRIGGERS_WARN], 1);
	ck_assert_ptr_nonnull(strstr(lines, "\"sample\":40,\"step\":140,\"trigger\":\"latency_spike\""));
	ck_assert_msg(replay.firings[TRIGGERS_CRITICAL] + replay.held_back[TRIGGERS_COALESCED] == 1, "%s",
		      lines);
	free(lines);
}
END_TEST

/* What it says of a job that stops after 60 steps and goes on after 20 min, slowly at first; `marked`: and says so. */
static char *replay_restarted(bool marked, struct replay *replay)
{
	static const struct replay_settings settings = {.json = true};
	const char *path = test_path(test_folder(), "restarted.csv");
	FILE *file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fprintf(file, "run,time_ms,kind,value_s\na,1700000000000,init_stop,\na,1700000000000,run_start,\n");
	long long now_ms = 1700000000000;
	for (int i = 0; i < 120; i++) {
		if (i == 60)
			now_ms += 1200000;
		if (i == 60 && marked)
			fprintf(file, "a,%lld,run_stop,\na,%lld,run_start,\n", now_ms - 1200000, now_ms);
		int length_ms = i == 60 ? 9000 : i == 61 ? 1400 : i == 100 ? 2000 : 1000;
		now_ms += length_ms;
		fprintf(file, "a,%lld,step,%d.%03d\n", now_ms, length_ms / 1000, length_ms % 1000);
	}
	fclose(file);
	char error[512] = "", *lines;
	size_t bytes;
	*replay = (struct replay){.settings = &settings, .out = open_memstream(&lines, &bytes)};
	assert_ok(replay_steps(replay, path, error, sizeof(error)));
	fclose(replay->out);
	replay_counts_free(&replay->counts);
	return lines;
}

START_TEST(a_restart_in_mid_run_is_no_stall)
{
	struct replay replay;
	char *lines = replay_restarted(true, &replay);
	ck_assert_msg(replay.firings[TRIGGERS_CRITICAL] == 0, "%s", lines);
	ck_assert_uint_eq(replay.firings[TRIGGERS_WARN], 1);
	ck_assert_ptr_nonnull(strstr(lines, "\"sample\":100,"));
	free(lines);
	lines = replay_restarted(false, &replay);
	ck_assert_uint_eq(replay.firings[TRIGGERS_CRITICAL], 1);
	free(lines);
}
END_TEST

/* Times at the ends of what 64 bits hold, and nothing at all. */
static const char *const far_traces[] = {
	"[]",
	"[{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":9000000000000000,\"dur\":9000000000000000},"
	"{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":-9000000000000000,\"dur\":9223372036854775.807},"
	"{\"ph\":\"X\",\"name\":\"a\\u001b[2J\",\"pid\":1,\"tid\":1,\"ts\":1e999999999,\"dur\":-5}]",
	"{\"baseTimeNanoseconds\":9223372036854775807,\"traceEvents\":["
	"{\"ph\":\"X\",\"name\":\"ProfilerStep#1\",\"pid\":1,\"tid\":1,\"ts\":9200000000000000,\"dur\":9e15},"
	"{\"ph\":\"X\",\"name\":\"ProfilerStep#1\",\"pid\":1,\"tid\":1,\"ts\":-9200000000000000,\"dur\":9e15}]}",
};

START_TEST(times_out_of_all_bounds_do_no_harm)
{
	const char *path = test_path(test_folder(), "far.json");
	char error[512] = "", *lines;
	size_t bytes;
	static const struct replay_settings settings = {.json = true};
	struct replay replay = {.settings = &settings, .out = open_memstream(&lines, &bytes)};
	test_write_file(path, far_traces[_i], strlen(far_traces[_i]));
	assert_ok(replay_trace(&replay, path, error, sizeof(error)));
	fclose(replay.out);
	replay_counts_free(&replay.counts);
	free(lines);
}
END_TEST

int main(void)
{
	if (!test_data_folder()) {
		puts("no handed data: set DRIVEREC_TEST_DATA");
		return 77;
	}
	Suite *suite = suite_create("replay");
	TCase *stretched = tcase_create("one stretched step is one latency_spike");
	tcase_set_timeout(stretched, 120);
	tcase_add_loop_test(stretched, one_stretched_step_is_one_spike, 0, 4);
	tcase_add_test(stretched, the_slow_worker_is_named_and_nothing_else);
	suite_add_tcase(suite, stretched);
	TCase *every = tcase_create("every trace replays");
	tcase_set_timeout(every, 120);
	tcase_add_loop_test(every, every_trace_replays, 0, sizeof(traces) / sizeof(traces[0]));
	suite_add_tcase(suite, every);
	TCase *steps = tcase_create("step tables");
	tcase_add_loop_test(steps, decimals_are_exact, 0, sizeof(decimals) / sizeof(decimals[0]));
	tcase_add_test(steps, step_tables_fire_with_their_row);
	tcase_add_test(steps, a_restart_in_mid_run_is_no_stall);
	suite_add_tcase(suite, steps);
	TCase *far = tcase_create("far times");
	tcase_add_loop_test(far, times_out_of_all_bounds_do_no_harm, 0, sizeof(far_traces) / sizeof(far_traces[0]));
	suite_add_tcase(suite, far);
	return test_run(suite);
}
