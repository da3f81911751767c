/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reducing: random traces of every kind of event are reduced to few and to many bins, and the result is held
 * against the trace by verify, which shares no layout with what reduces.
 */
#include <reducer/reduce.h>
#include <reducer/verify.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"
#include "trace_maker.h"

static const char *folder;
static struct reducer_reduce_report reported;

static void setup(void)
{
	if (!folder)
		folder = test_folder();
}

/* Reduces `in` to `out`; returns what the library said. */
static int reduce_to(const char *in, const char *out, const struct reducer_reduce_options *options, int gzip_level)
{
	struct reducer_reduce *reduce = NULL;
	int result = reducer_reduce_read(in, options, &reduce, &reported);
	if (result != 0)
		return result;
	int fd = open(out, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	struct reducer_writer_options writer = {.gzip_level = gzip_level};
	enum reducer_format format = reducer_format_of_name(out);
	result = reducer_reduce_write(reduce, fd, format, &writer, &reported);
	close(fd);
	reducer_reduce_free(reduce);
	return result;
}

static void assert_verified(const char *raw, const char *reduced)
{
	struct reducer_verify_report *report = calloc(1, sizeof(*report));
	struct reducer_problem problem = {0};
	ck_assert_ptr_nonnull(report);
	int result = reducer_verify(raw, reduced, report, &problem);
	ck_assert_msg(result == 0, "verify: %s (%s)", strerror(-result), problem.what);
	ck_assert_msg(report->n_differences == 0, "M%d on %s: %s (%s)", report->difference[0].promise,
		      report->difference[0].track, report->difference[0].what, raw);
	uint64_t checked = 0;
	for (int promise = REDUCER_M1; promise <= REDUCER_M5; promise++)
		checked += report->checked[promise];
	ck_assert_uint_gt(checked, 0);
	free(report);
}

static bool same_files(const char *a, const char *b)
{
	size_t n = 0, m = 0;
	char *x = test_read_file(a, &n), *y = test_read_file(b, &m);
	bool same = n == m && memcmp(x, y, n) == 0;
	free(x);
	free(y);
	return same;
}

START_TEST(test_random_traces_keep_their_promises)
{
	static const uint32_t bins[] = {1, 2, 7, 30, 100, 1000, 100000};
	char raw[4096], reduced[4096], again[4096];
	snprintf(raw, sizeof(raw), "%s/raw.json", folder);
	snprintf(reduced, sizeof(reduced), "%s/reduced.json", folder);
	snprintf(again, sizeof(again), "%s/again.json", folder);
	for (int round = 0; round < 60; round++) {
		trace_maker_file(raw, round % 5 == 4);
		for (size_t i = 0; i < sizeof(bins) / sizeof(bins[0]); i++) {
			struct reducer_reduce_options options = {.bins = bins[i]};
			assert_ok(reduce_to(raw, reduced, &options, 0));
			assert_verified(raw, reduced);
			uint64_t gone = 0;
			for (int g = 0; g < REDUCER_GONE_COUNT; g++)
				gone += reported.gone[g];
			ck_assert_uint_eq(reported.events_in, reported.exact + gone);
			/* What was reduced is a trace like any other. */
			struct reducer_reduce_options coarser = {.bins = bins[i] / 3 + 1};
			assert_ok(reduce_to(reduced, again, &coarser, 0));
			assert_verified(reduced, again);
		}
	}
}
END_TEST

/* What overlaps, and what is all of one length, must shrink too. */
START_TEST(test_dense_tracks_shrink)
{
	char raw[4096], reduced[4096];
	snprintf(raw, sizeof(raw), "%s/raw.json", folder);
	snprintf(reduced, sizeof(reduced), "%s/reduced.json", folder);
	struct trace_maker m = {.file = fopen(raw, "we"), .first = true, .grain = 1};
	ck_assert_ptr_nonnull(m.file);
	fputs("[", m.file);
	for (unsigned i = 0; i < 6000; i++) {
		trace_maker_span(&m, 1, i * 100, 90, false);
		trace_maker_span(&m, 2, i * 100, i % 7 ? 120 : 80, false);
	}
	fputs("]", m.file);
	ck_assert_int_eq(fclose(m.file), 0);
	struct reducer_reduce_options options = {.bins = 100};
	assert_ok(reduce_to(raw, reduced, &options, 0));
	assert_verified(raw, reduced);
	ck_assert_uint_gt(reported.overlapping, 1000);
	ck_assert_uint_lt(reported.spans_out, reported.spans_in / 10);
}
END_TEST

START_TEST(test_the_same_input_gives_the_same_bytes)
{
	char raw[4096], one[4096], two[4096];
	snprintf(raw, sizeof(raw), "%s/raw.json", folder);
	snprintf(one, sizeof(one), "%s/one.json.gz", folder);
	snprintf(two, sizeof(two), "%s/two.json.gz", folder);
	trace_maker_file(raw, false);
	struct reducer_reduce_options options = {.bins = 50, .threads = 1};
	assert_ok(reduce_to(raw, one, &options, 6));
	options.threads = 4;
	assert_ok(reduce_to(raw, two, &options, 6));
	ck_assert(same_files(one, two));
}
END_TEST

START_TEST(test_a_target_gives_the_finest_bins_that_fit)
{
	char raw[4096], reduced[4096];
	snprintf(raw, sizeof(raw), "%s/raw.json", folder);
	snprintf(reduced, sizeof(reduced), "%s/reduced.json", folder);
	for (int round = 0; round < 10; round++) {
		trace_maker_file(raw, false);
		struct reducer_reduce_options options = {.target_permille = 500};
		assert_ok(reduce_to(raw, reduced, &options, 0));
		ck_assert(reported.bound_reached || reported.events_out <= reported.events_in / 2);
		assert_verified(raw, reduced);
		options.target_permille = 1;
		assert_ok(reduce_to(raw, reduced, &options, 0));
		ck_assert(reported.bound_reached);
		ck_assert_uint_eq(reported.bins, 1);
	}
}
END_TEST

START_TEST(test_a_window_limits_what_is_read)
{
	char raw[4096], reduced[4096];
	snprintf(raw, sizeof(raw), "%s/raw.json", folder);
	snprintf(reduced, sizeof(reduced), "%s/reduced.json", folder);
	for (int round = 0; round < 40; round++) {
		trace_maker_file(raw, false);
		struct reducer_reduce_options options = {.bins = 40, .has_window = true};
		options.window_from_ps = (int64_t)test_random_below(2000000);
		options.window_to_ps = options.window_from_ps + (int64_t)test_random_below(2000000);
		assert_ok(reduce_to(raw, reduced, &options, 0));
		assert_verified(raw, reduced);
		ck_assert_uint_gt(reported.gone[REDUCER_GONE_WINDOW], 0);
	}
}
END_TEST

START_TEST(test_tracks_are_chosen_by_path_and_by_name)
{
	static const char text[] =
		"[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"train\"}},"
		"{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":2,\"tid\":4,\"args\":{\"name\":\"loader 0\"}},"
		"{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":3,\"ts\":1,\"dur\":1},"
		"{\"ph\":\"X\",\"name\":\"b\",\"pid\":2,\"tid\":4,\"ts\":1,\"dur\":1},"
		"{\"ph\":\"X\",\"name\":\"c\",\"pid\":2,\"tid\":\"s 7\",\"ts\":1,\"dur\":1}]";
	static const struct {
		const char *pattern;
		unsigned spans;
	} cases[] = {{"1/3", 1}, {"2/*", 2}, {"train", 1}, {"loader*", 1}, {"2/s 7", 1}, {"nothing", 0}, {"*", 3}};
	char raw[4096], reduced[4096];
	snprintf(raw, sizeof(raw), "%s/raw.json", folder);
	snprintf(reduced, sizeof(reduced), "%s/reduced.json", folder);
	test_write_file(raw, text, sizeof(text) - 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct reducer_reduce_options options = {.track_pattern = cases[i].pattern};
		assert_ok(reduce_to(raw, reduced, &options, 0));
		ck_assert_msg(reported.spans_out == cases[i].spans, "%s: %" PRIu64, cases[i].pattern, reported.spans_out);
		ck_assert_uint_eq(reported.gone[REDUCER_GONE_TRACK], 3 - cases[i].spans);
		assert_verified(raw, reduced);
	}
}
END_TEST

START_TEST(test_what_is_no_trace_is_refused)
{
	char raw[4096];
	struct reducer_reduce *reduce = NULL;
	snprintf(raw, sizeof(raw), "%s/none.json", folder);
	test_write_file(raw, "hello", 5);
	ck_assert_int_eq(reducer_reduce_read(raw, NULL, &reduce, &reported), -EBADMSG);
	ck_assert_uint_gt(reported.read.n_problems, 0);
	ck_assert_int_eq(reducer_reduce_read("/nonexistent/x", NULL, &reduce, &reported), -ENOENT);
	test_write_file(raw, "[]", 2);
	assert_ok(reducer_reduce_read(raw, NULL, &reduce, &reported));
	ck_assert_uint_eq(reported.events_in, 0);
	reducer_reduce_free(reduce);
}
END_TEST

START_TEST(test_handed_traces_verify_at_any_size)
{
	static const char *const names[] = {
		"128rank_sampled_rank0.pt.trace.json.gz", "a100_nccl_late_base_time.pt.trace.json.gz",
		"b200_eager_8rank.pt.trace.json.gz", "cpu_only_gloo_rank34.pt.trace.json.gz",
		"h100_bert_small.pt.trace.json.gz", "mi250_train.pt.trace.json.gz",
		"mtia_inference_rank0.pt.trace.json.gz", "straggler_worker_44steps.trace.json.gz",
		"v100_2021_resnet50.pt.trace.json.gz", "v100_nccl_abs_time.pt.trace.json.gz"};
	const char *data = test_data_folder();
	if (!data) {
		puts("skipped: no handed data");
		return;
	}
	char raw[4096], reduced[4096];
	snprintf(reduced, sizeof(reduced), "%s/reduced.json.gz", folder);
	snprintf(raw, sizeof(raw), "%s/traces/%s", data, names[_i]);
	struct reducer_reduce_options options = {.bins = 3840};
	assert_ok(reduce_to(raw, reduced, &options, 1));
	assert_verified(raw, reduced);
	options = (struct reducer_reduce_options){.target_permille = 100};
	assert_ok(reduce_to(raw, reduced, &options, 1));
	if (reported.events_in > 20000) {
		ck_assert(!reported.bound_reached);
		ck_assert_uint_le(reported.events_out, reported.events_in / 10);
	}
	assert_verified(raw, reduced);
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
	Suite *suite = suite_create("reduce");
	folder = test_folder();
	add_case(suite, "random", test_random_traces_keep_their_promises, 1);
	add_case(suite, "dense", test_dense_tracks_shrink, 1);
	add_case(suite, "deterministic", test_the_same_input_gives_the_same_bytes, 1);
	add_case(suite, "target", test_a_target_gives_the_finest_bins_that_fit, 1);
	add_case(suite, "window", test_a_window_limits_what_is_read, 1);
	add_case(suite, "tracks", test_tracks_are_chosen_by_path_and_by_name, 1);
	add_case(suite, "refused", test_what_is_no_trace_is_refused, 1);
	add_case(suite, "handed", test_handed_traces_verify_at_any_size, 10);
	return test_run(suite);
}
