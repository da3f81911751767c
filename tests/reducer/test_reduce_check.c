/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The check of a result against what is remembered of its input: random traces pass, in all formats, windows and
 * selections of tracks; and whatever is done to a written output is found.
 */
#include <reducer/reduce.h>
#include <reducer/trace.h>
#include <reducer/verify.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"
#include "trace_maker.h"

static const char *folder;
static struct reducer_reduce_report reported;
static struct reducer_verify_report checked;

static void setup(void)
{
	if (!folder)
		folder = test_folder();
}

/* Reduces `in` to `out`; the caller frees. */
static struct reducer_reduce *reduce_to(const char *in, const char *out, const struct reducer_reduce_options *options)
{
	struct reducer_reduce *reduce = NULL;
	assert_ok(reducer_reduce_read(in, options, &reduce, &reported));
	int fd = open(out, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	struct reducer_writer_options writer = {.gzip_level = strstr(out, ".gz") ? 1 : 0};
	assert_ok(reducer_reduce_write(reduce, fd, reducer_format_of_name(out), &writer, &reported));
	close(fd);
	return reduce;
}

static uint64_t count_failed(void)
{
	uint64_t failed = 0;
	for (int promise = 0; promise <= REDUCER_M5; promise++)
		failed += checked.failed[promise];
	return failed;
}

/* Reduces and checks; what verify finds the same must pass. */
static void assert_passes(const char *in, const char *out, const struct reducer_reduce_options *options)
{
	struct reducer_problem problem = {0};
	struct reducer_reduce *reduce = reduce_to(in, out, options);
	int result = reducer_reduce_check(reduce, out, &checked, &problem);
	ck_assert_msg(result == 0, "%s (%s)", strerror(-result), problem.what);
	for (unsigned i = 0; i < checked.n_differences; i++)
		fprintf(stderr, "M%d on %s: %s\n", checked.difference[i].promise, checked.difference[i].track,
		       checked.difference[i].what);
	ck_assert_msg(checked.n_differences == 0, "M%d on %s at %lld: %s (%s in %u bins)", checked.difference[0].promise,
		      checked.difference[0].track, (long long)checked.difference[0].time.ns, checked.difference[0].what,
		      in, reported.bins);
	ck_assert_uint_eq(count_failed(), 0);
	ck_assert_uint_eq(checked.raw_events, reported.events_in);
	/* An XPlane may go on describing events that are gone. */
	ck_assert_uint_ge(checked.reduced_events, reported.events_out);
	reducer_reduce_free(reduce);
}

START_TEST(test_random_traces_pass)
{
	static const uint32_t bins[] = {1, 2, 7, 30, 100, 1000, 100000};
	const char *raw = test_path(folder, "raw.json"), *out = test_path(folder, "out.json.gz");
	const char *again = test_path(folder, "again.json.gz");
	for (int round = 0; round < 40; round++) {
		trace_maker_file(raw, round % 5 == 4);
		for (size_t i = 0; i < sizeof(bins) / sizeof(bins[0]); i++) {
			struct reducer_reduce_options options = {.bins = bins[i], .threads = 1 + (unsigned)round % 3};
			assert_passes(raw, out, &options);
			ck_assert_uint_gt(checked.checked[REDUCER_M1], 0);
			ck_assert_uint_gt(checked.checked[REDUCER_M3], 0);
			/* What was reduced is a trace like any other. */
			options.bins = bins[i] / 3 + 1;
			assert_passes(out, again, &options);
		}
	}
}
END_TEST

START_TEST(test_windows_and_tracks_pass)
{
	static const char *const patterns[] = {"1/2", "1/*", "nothing", "worker"};
	const char *raw = test_path(folder, "raw.json"), *out = test_path(folder, "out.json");
	for (int round = 0; round < 60; round++) {
		trace_maker_file(raw, false);
		struct reducer_reduce_options options = {.bins = 40, .has_window = true};
		options.window_from_ps = (int64_t)test_random_below(2000000);
		options.window_to_ps = options.window_from_ps + (int64_t)test_random_below(2000000);
		assert_passes(raw, out, &options);
		options.track_pattern = patterns[round % 4];
		assert_passes(raw, out, &options);
		options.has_window = false;
		assert_passes(raw, out, &options);
	}
}
END_TEST

static void convert(const char *in, const char *out)
{
	struct reducer_read_report *report = calloc(1, sizeof(*report));
	struct reducer_writer *writer = NULL;
	struct reducer_writer_options options = {0};
	int fd = open(out, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	assert_ok(reducer_writer_new(fd, reducer_format_of_name(out), &options, NULL, &writer));
	struct reducer_sink sink = reducer_writer_sink(writer);
	assert_ok(reducer_trace_read_any(in, &sink, report));
	assert_ok(reducer_writer_finish(writer));
	reducer_writer_free(writer);
	close(fd);
	free(report);
}

START_TEST(test_xplane_passes)
{
	static const uint32_t bins[] = {1, 7, 100, 1000};
	const char *text = test_path(folder, "raw.json"), *raw = test_path(folder, "raw.xplane.pb");
	const char *out = test_path(folder, "out.xplane.pb"), *again = test_path(folder, "again.xplane.pb");
	for (int round = 0; round < 20; round++) {
		trace_maker_file(text, false);
		convert(text, raw);
		for (size_t i = 0; i < sizeof(bins) / sizeof(bins[0]); i++) {
			struct reducer_reduce_options options = {.bins = bins[i]};
			assert_passes(raw, out, &options);
			options.bins = bins[i] / 3 + 1;
			assert_passes(out, again, &options);
		}
	}
}
END_TEST

START_TEST(test_another_format_is_refused)
{
	const char *raw = test_path(folder, "raw.json"), *out = test_path(folder, "out.xplane.pb");
	struct reducer_problem problem = {0};
	trace_maker_file(raw, false);
	struct reducer_reduce *reduce = reduce_to(raw, out, NULL);
	ck_assert_int_eq(reducer_reduce_check(reduce, out, &checked, &problem), -EINVAL);
	test_write_file(out, "hello", 5);
	ck_assert_int_eq(reducer_reduce_check(reduce, out, &checked, &problem), -EBADMSG);
	ck_assert_str_ne(problem.what, "");
	ck_assert_int_eq(reducer_reduce_check(reduce, test_path(folder, "none"), &checked, &problem), -ENOENT);
	reducer_reduce_free(reduce);
}
END_TEST

/* A trace of known longest spans, peaks and firsts. Each bin of 200 us holds 20 rounds. */
static void make_known(const char *path)
{
	FILE *file = fopen(path, "we");
	ck_assert_ptr_nonnull(file);
	fputs("{\"schemaVersion\":1,\"traceEvents\":[\n"
	      "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"train\"}},\n"
	      "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":1,\"args\":{\"name\":\"main\"}},\n",
	      file);
	for (int i = 0; i < 200; i++) {
		int t = i * 10;
		fprintf(file, "{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"op\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":%d},\n",
			i % 2 ? "add" : "mm", t, i % 20 == 7 ? 8 : 3 + i % 3);
		fprintf(file, "{\"ph\":\"X\",\"name\":\"inner\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":1},\n", t + 1);
		fprintf(file, "{\"ph\":\"i\",\"name\":\"tick\",\"s\":\"t\",\"pid\":1,\"tid\":1,\"ts\":%d},\n", t + 1);
		fprintf(file, "{\"ph\":\"C\",\"name\":\"mem\",\"pid\":1,\"ts\":%d,\"args\":{\"used\":%d}},\n", t,
			i % 20 == 5 ? 1000 : i % 20 == 9 ? -1000 : i % 20);
		fprintf(file, "{\"ph\":\"b\",\"cat\":\"rpc\",\"name\":\"get\",\"id\":\"0x%x\",\"pid\":1,\"tid\":1,\"ts\":%d},\n", i,
			t);
		fprintf(file, "{\"ph\":\"e\",\"cat\":\"rpc\",\"name\":\"get\",\"id\":\"0x%x\",\"pid\":1,\"tid\":1,\"ts\":%d},\n", i,
			t + (i % 20 == 3 ? 7 : 2));
	}
	fputs("{\"ph\":\"X\",\"name\":\"ProfilerStep#3\",\"pid\":1,\"tid\":1,\"ts\":1999,\"dur\":1},\n"
	      "{\"ph\":\"s\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":7,\"pid\":1,\"tid\":1,\"ts\":70},\n"
	      "{\"ph\":\"t\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":7,\"pid\":1,\"tid\":1,\"ts\":270},\n"
	      "{\"ph\":\"f\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":7,\"pid\":1,\"tid\":1,\"ts\":470,\"bp\":\"e\"},\n"
	      "{\"ph\":\"B\",\"name\":\"open\",\"pid\":1,\"tid\":2,\"ts\":5},\n"
	      "{\"ph\":\"R\",\"name\":\"other\",\"ts\":4}\n"
	      "],\"traceName\":\"x\"}\n",
	      file);
	ck_assert_int_eq(fclose(file), 0);
}

/* A line of the output that has `line` in it; `from` in it is replaced by `to`; NULL: the line is dropped. */
struct damage {
	const char *line, *from, *to;
	enum reducer_promise promise;
};

static const struct damage damages[] = {
	/* merged spans */
	{"\"ph\":\"X\",\"cat\":\"driverec.merged\",\"name\":\"merged\"", ".000,\"args\"", ".002,\"args\"", REDUCER_M1},
	{"\"ph\":\"X\",\"cat\":\"driverec.merged\",\"name\":\"merged\"", "\"dur\":", "\"dur\":1", REDUCER_M1},
	{"\"ph\":\"X\",\"cat\":\"driverec.merged\",\"name\":\"merged\"", "\"ts\":", "\"ts\":1", REDUCER_M1},
	{"\"ph\":\"X\",\"cat\":\"driverec.merged\",\"name\":\"merged\"", NULL, NULL, REDUCER_M1},
	{"\"ph\":\"X\",\"cat\":\"driverec.merged\",\"name\":\"inner\"", NULL, NULL, REDUCER_M5},
	{"\"ph\":\"X\",\"cat\":\"driverec.merged\"", "\"driverec.events\":", "\"driverec.events\":1", REDUCER_M5},
	{"\"ph\":\"X\",\"cat\":\"driverec.merged\"", "\"driverec.sum_ps\":", "\"driverec.sum_ps\":1", REDUCER_M5},
	{"\"ph\":\"X\",\"cat\":\"driverec.merged\"", "\"driverec.longest_ps\":", "\"driverec.longest_ps\":1", REDUCER_M5},
	{"\"ph\":\"X\",\"cat\":\"driverec.merged\"", "\"driverec.longest\":\"", "\"driverec.longest\":\"x", REDUCER_M5},
	{"\"ph\":\"X\",\"cat\":\"driverec.merged\"", "\"name\":\"", "\"name\":\"x", REDUCER_M5},
	{"\"ph\":\"X\",\"cat\":\"driverec.merged\"", "driverec.merged", "merged", REDUCER_M5},
	{"\"ph\":\"X\",\"cat\":\"driverec.merged\"", "\"tid\":1", "\"tid\":3", REDUCER_M1},
	/* spans that stay */
	{"\"ts\":70,\"dur\":8", NULL, NULL, REDUCER_M3},
	{"\"ts\":70,\"dur\":8", "\"dur\":8", "\"dur\":9", REDUCER_M3},
	{"\"ts\":70,\"dur\":8", "\"dur\":8", "\"dur\":8.001", REDUCER_M3},
	{"\"ts\":70,\"dur\":8", "\"ts\":70", "\"ts\":70.001", REDUCER_M3},
	{"\"ts\":70,\"dur\":8", "\"name\":\"add\"", "\"name\":\"mm\"", REDUCER_M3},
	{"\"ts\":70,\"dur\":8", "\"name\":\"add\"", "\"name\":\"subtract\"", REDUCER_M5},
	{"\"ts\":70,\"dur\":8", "\"tid\":1", "\"tid\":2", REDUCER_M3},
	{"\"ts\":70,\"dur\":8", "\"tid\":1", "\"tid\":9", REDUCER_M3},
	{"\"name\":\"mm\",\"cat\":\"op\",\"pid\":1,\"tid\":1,\"ts\":0,", NULL, NULL, REDUCER_M2},
	{"\"name\":\"mm\",\"cat\":\"op\",\"pid\":1,\"tid\":1,\"ts\":0,", "\"ts\":0", "\"ts\":0.5", REDUCER_M2},
	{"ProfilerStep#3", NULL, NULL, REDUCER_M2},
	{"ProfilerStep#3", "\"dur\":1", "\"dur\":2", REDUCER_M2},
	{"ProfilerStep#3", "#3", "#4", REDUCER_M2},
	/* counters */
	{"\"used\":1000", NULL, NULL, REDUCER_M4},
	{"\"used\":1000", "1000", "999", REDUCER_M4},
	{"\"used\":-1000", NULL, NULL, REDUCER_M4},
	{"\"used\":-1000", "\"ts\":90", "\"ts\":290", REDUCER_M4},
	{"\"used\":19", NULL, NULL, REDUCER_M4},
	{"\"used\":19", "used", "free", REDUCER_M4},
	{"\"used\":19", "\"mem\"", "\"memory\"", REDUCER_M4},
	/* instants */
	{"\"ph\":\"i\",\"name\":\"tick\",\"s\":\"t\",\"pid\":1,\"tid\":1,\"ts\":1}", NULL, NULL, REDUCER_M4},
	{"\"ph\":\"i\",\"name\":\"tick\",\"s\":\"t\",\"pid\":1,\"tid\":1,\"ts\":1}", "\"ts\":1}", "\"ts\":2}", REDUCER_M4},
	{"\"ph\":\"i\",\"name\":\"tick\",\"s\":\"t\",\"pid\":1,\"tid\":1,\"ts\":1}", "tick", "mm", REDUCER_M4},
	{"\"ph\":\"i\",\"cat\":\"driverec.merged\"", NULL, NULL, REDUCER_M4},
	{"\"ph\":\"i\",\"cat\":\"driverec.merged\"", "\"driverec.events\":", "\"driverec.events\":1", REDUCER_M4},
	/* async events */
	{"\"ph\":\"b\",\"cat\":\"rpc\"", NULL, NULL, REDUCER_M5},
	{"\"ph\":\"e\",\"cat\":\"rpc\"", NULL, NULL, REDUCER_M5},
	{"\"ph\":\"b\",\"cat\":\"rpc\",\"name\":\"get\",\"id\":\"0x3\"", "\"ts\":30", "\"ts\":31", REDUCER_M5},
	{"\"ph\":\"b\",\"cat\":\"rpc\"", "\"get\"", "\"put\"", REDUCER_M5},
	{"\"ph\":\"b\",\"cat\":\"driverec.merged\"", NULL, NULL, REDUCER_M5},
	{"\"ph\":\"b\",\"cat\":\"driverec.merged\"", "\"driverec.events\":", "\"driverec.events\":1", REDUCER_M5},
	/* flows */
	{"\"ph\":\"s\"", NULL, NULL, REDUCER_M4},
	{"\"ph\":\"t\"", NULL, NULL, REDUCER_M4},
	{"\"ph\":\"f\"", NULL, NULL, REDUCER_M4},
	{"\"ph\":\"t\"", "\"ts\":270", "\"ts\":271", REDUCER_M4},
	{"\"ph\":\"t\"", "\"id\":7", "\"id\":8", REDUCER_M4},
	{"\"ph\":\"t\"", "\"tid\":1", "\"tid\":2", REDUCER_M4},
	{"\"ph\":\"t\"", "\"ph\":\"t\"", "\"ph\":\"f\"", REDUCER_M4},
	/* metadata, members, and what stays as it is */
	{"\"name\":\"thread_name\"", NULL, NULL, REDUCER_M4},
	{"\"name\":\"thread_name\"", "thread_name", "process_name", REDUCER_M4},
	{"\"driverec.reduced\"", NULL, NULL, REDUCER_M5},
	{"\"driverec.reduced\"", "\"bin_ps\":\"", "\"bin_ps\":\"1", REDUCER_M5},
	{"\"driverec.reduced\"", "\"origin_ps\":\"", "\"origin_ps\":\"1", REDUCER_M5},
	{"\"driverec.reduced\"", "\"bin_ps\"", "\"window_from_ps\":\"1\",\"window_to_ps\":\"2\",\"bin_ps\"", REDUCER_M5},
	{"\"traceName\"", NULL, NULL, REDUCER_M4},
	{"\"traceName\"", "\"x\"", "\"y\"", REDUCER_M4},
	{"\"ph\":\"R\"", NULL, NULL, REDUCER_M4},
	{"\"ph\":\"R\"", "\"ts\":4", "\"ts\":5", REDUCER_M4},
	{"\"ph\":\"B\"", NULL, NULL, REDUCER_M4},
	{"\"ph\":\"B\"", "\"ts\":5", "\"ts\":6", REDUCER_M4},
	/* once too often */
	{"\"ts\":70,\"dur\":8", "{", "{\"ph\":\"X\",\"name\":\"add\",\"pid\":1,\"tid\":1,\"ts\":70,\"dur\":8},\n{", REDUCER_M5},
	{"\"used\":1000", "{\"ph\"", "{\"ph\":\"C\",\"name\":\"mem\",\"pid\":1,\"ts\":60,\"args\":{\"used\":2000}},\n{\"ph\"",
	 REDUCER_M4},
	{"\"ph\":\"R\"", "{", "{\"ph\":\"R\",\"name\":\"other\",\"ts\":4},\n{", REDUCER_M4},
};
enum { DAMAGES = sizeof(damages) / sizeof(damages[0]) };

static void put_damaged(const char *path, const char *text, size_t bytes, const struct damage *damage)
{
	const char *in = strstr(text, damage->line);
	ck_assert_msg(in != NULL, "no line with %s", damage->line);
	const char *line = in, *end = strchr(in, '\n');
	while (line > text && line[-1] != '\n')
		line--;
	ck_assert_ptr_nonnull(end);
	FILE *file = fopen(path, "we");
	ck_assert_ptr_nonnull(file);
	const char *from = line, *rest = end + 1;
	if (damage->from) {
		from = strstr(line, damage->from);
		ck_assert_msg(from && from < end, "no %s in the line with %s", damage->from, damage->line);
		rest = from + strlen(damage->from);
	}
	fwrite(text, 1, (size_t)(from - text), file);
	if (damage->to)
		fputs(damage->to, file);
	fwrite(rest, 1, bytes - (size_t)(rest - text), file);
	ck_assert_int_eq(fclose(file), 0);
}

START_TEST(test_damage_is_found)
{
	const struct damage *damage = &damages[_i];
	const char *raw = test_path(folder, "raw.json"), *out = test_path(folder, "out.json");
	struct reducer_problem problem = {0};
	struct reducer_reduce_options options = {.bins = 10};
	size_t bytes = 0;
	make_known(raw);
	struct reducer_reduce *reduce = reduce_to(raw, out, &options);
	char *text = test_read_file(out, &bytes);
	assert_ok(reducer_reduce_check(reduce, out, &checked, &problem));
	ck_assert_msg(count_failed() == 0, "undamaged: %s", checked.difference[0].what);
	put_damaged(out, text, bytes, damage);
	assert_ok(reducer_reduce_check(reduce, out, &checked, &problem));
	ck_assert_msg(checked.failed[damage->promise] > 0, "%s: %s -> %s is not found by M%d (%s)", damage->line,
		      damage->from ? damage->from : "all", damage->to ? damage->to : "nothing", damage->promise,
		      checked.n_differences ? checked.difference[0].what : "nothing is");
	ck_assert_uint_gt(checked.n_differences, 0);
	free(text);
	reducer_reduce_free(reduce);
}
END_TEST

START_TEST(test_the_first_difference_says_where)
{
	static const struct damage damage = {"\"ts\":70,\"dur\":8", "\"dur\":8", "\"dur\":8.002", REDUCER_M1};
	const char *raw = test_path(folder, "raw.json"), *out = test_path(folder, "out.json");
	struct reducer_problem problem = {0};
	struct reducer_reduce_options options = {.bins = 10};
	size_t bytes = 0;
	make_known(raw);
	struct reducer_reduce *reduce = reduce_to(raw, out, &options);
	char *text = test_read_file(out, &bytes);
	put_damaged(out, text, bytes, &damage);
	assert_ok(reducer_reduce_check(reduce, out, &checked, &problem));
	bool found = false;
	for (unsigned i = 0; i < checked.n_differences; i++) {
		const struct reducer_difference *one = &checked.difference[i];
		if (one->promise != REDUCER_M3)
			continue;
		found = true;
		ck_assert_str_eq(one->track, "1/1");
		ck_assert(one->has_time);
		ck_assert_int_eq(one->time.ns, 70000);
		ck_assert_str_eq(one->what, "the longest span of a bin in row 0, \"add\" of 8.000 us, is missing");
	}
	ck_assert(found);
	free(text);
	reducer_reduce_free(reduce);
}
END_TEST

/* Cut anywhere, it is found: by the reader, or by what is missing. */
START_TEST(test_a_cut_output_is_found)
{
	const char *raw = test_path(folder, "raw.json"), *out = test_path(folder, "out.json");
	struct reducer_problem problem = {0};
	struct reducer_reduce_options options = {.bins = 10};
	size_t bytes = 0;
	make_known(raw);
	struct reducer_reduce *reduce = reduce_to(raw, out, &options);
	char *text = test_read_file(out, &bytes);
	/* The last two bytes close the list and the object; the events are all there without. */
	size_t last = bytes;
	while (text[last - 1] != '}' || text[last - 2] == ']')
		last--;
	for (size_t cut = 0; cut < last; cut += 1 + test_random_below(60)) {
		test_write_file(out, text, cut);
		int result = reducer_reduce_check(reduce, out, &checked, &problem);
		ck_assert_msg(result < 0 || count_failed() > 0, "%zu of %zu bytes pass", cut, bytes);
	}
	free(text);
	reducer_reduce_free(reduce);
}
END_TEST

START_TEST(test_handed_traces_pass)
{
	static const char *const names[] = {
		"128rank_sampled_rank0.pt.trace.json.gz", "a100_nccl_late_base_time.pt.trace.json.gz",
		"b200_eager_8rank.pt.trace.json.gz", "mi250_train.pt.trace.json.gz",
		"mtia_inference_rank0.pt.trace.json.gz", "straggler_worker_44steps.trace.json.gz",
		"v100_2021_resnet50.pt.trace.json.gz", "v100_nccl_abs_time.pt.trace.json.gz"};
	const char *data = test_data_folder();
	if (!data) {
		puts("skipped: no handed data");
		return;
	}
	char raw[4096];
	snprintf(raw, sizeof(raw), "%s/traces/%s", data, names[_i]);
	assert_passes(raw, test_path(folder, "out.json.gz"), NULL);
	struct reducer_reduce_options options = {.target_permille = 100, .threads = 3};
	assert_passes(raw, test_path(folder, "out.json.gz"), &options);
}
END_TEST

static void add_case(Suite *suite, const char *name, const TTest *test, int rounds)
{
	TCase *tcase = tcase_create(name);
	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_set_timeout(tcase, 120);
	if (rounds > 1)
		tcase_add_loop_test(tcase, test, 0, rounds);
	else
		tcase_add_test(tcase, test);
	suite_add_tcase(suite, tcase);
}

int main(void)
{
	Suite *suite = suite_create("reduce_check");
	folder = test_folder();
	add_case(suite, "random", test_random_traces_pass, 1);
	add_case(suite, "window, tracks", test_windows_and_tracks_pass, 1);
	add_case(suite, "xplane", test_xplane_passes, 1);
	add_case(suite, "refused", test_another_format_is_refused, 1);
	add_case(suite, "damage", test_damage_is_found, DAMAGES);
	add_case(suite, "where", test_the_first_difference_says_where, 1);
	add_case(suite, "cut", test_a_cut_output_is_found, 1);
	add_case(suite, "handed", test_handed_traces_pass, 8);
	return test_run(suite);
}
