/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every handed trace through `replay`, as it is and with one step's worth of its spans stretched ten times: that must
 * give exactly one latency_spike, at that place, and the trace as it is none. What is stretched is a step where there
 * are enough to learn from, else one instance of a span that repeats; time on all tracks stretches with it. Where a
 * file has neither, the table says why.
 */
#include <stdio.h>
#include <stdlib.h>

#include <reducer/chrome.h>

#include "replay.h"
#include "support.h"

enum { STEPS_ENOUGH = 24, FREQUENT = 32, LEARNED = 20, WINDOW = 128 };

static const int64_t SPAN_MIN_NS = 5000000; /* latency_spike.span_min */

/* `how`: what is stretched, else why nothing can be. */
static const struct {
	const char *file;
	enum { NOTHING, A_SPIKE, A_NOTE } stretched; /* what must fire; a note where no step becomes longer by a tenth */
	const char *how;
} traces[] = {
	{"128rank_sampled_rank0.pt.trace.json.gz", A_SPIKE, "aten::copy_"},
	{"128rank_sampled_rank1.pt.trace.json.gz", NOTHING, "2 steps; ten times 160 us is under the 5 ms of span_min"},
	{"a100_nccl_late_base_time.pt.trace.json.gz", A_SPIKE, "cudaStreamGetPriority"},
	{"b200_eager_8rank.pt.trace.json.gz", A_SPIKE, "a custom op's forward"},
	{"cpu_only_gloo_rank34.pt.trace.json.gz", NOTHING, "1 step, 16 spans: nothing repeats"},
	{"h100_bert_small.pt.trace.json.gz", NOTHING, "2 steps; ten times 4 us is under the 5 ms of span_min"},
	{"mi250_train.pt.trace.json.gz", NOTHING, "3 steps, 113 spans: nothing repeats often enough"},
	{"mtia_inference_rank0.pt.trace.json.gz", A_SPIKE, "dma_request"},
	{"straggler_worker_44steps.trace.json.gz", A_SPIKE, "a step"},
	{"v100_2021_resnet50.pt.trace.json.gz", A_NOTE, "aten::empty"},
	{"v100_nccl_abs_time.pt.trace.json.gz", A_SPIKE, "cudaLaunchKernel"},
};

/* What replay does not read: refused in words. */
static const char *const refused[] = {"not_chrome_rocprof.json.gz"};
static const char *const xplanes[] = {"mi300_jax_conv.xplane.pb", "tf_gpu_multi_worker.xplane.pb"};

struct span {
	int64_t start_ns, duration_ns, step; /* step -1 = none */
	char *name, *place;                  /* place: group and track, as two JSON members */
};

static struct span *spans;
static size_t n_spans, room;

/* A stretch of time that is to be ten times as long. */
struct stretch {
	int64_t begin_ns, end_ns;
	size_t steps;       /* that the trace has on one track */
	const char *name;   /* of the span */
	size_t repeats;     /* the most often repeated span's */
	int64_t usually_ns; /* the longest median of a repeated span */
};

/* Text that needs no escapes. */
static char *plain(struct reducer_text text)
{
	char *copy = strndup(text.bytes ? text.data : "", text.bytes);
	ck_assert_ptr_nonnull(copy);
	for (char *at = copy; *at; at++)
		if (*at == '"' || *at == '\\' || (unsigned char)*at < ' ')
			*at = '_';
	return copy;
}

static int64_t step_in(struct reducer_text args)
{
	const char *step = args.bytes ? memmem(args.data, args.bytes, "\"step\":", 7) : NULL;
	return step ? strtoll(step + 7, NULL, 10) : -1;
}

static int keep(void *context, const struct reducer_event *event)
{
	(void)context;
	if (event->kind != DREC_SPAN || !event->has_time || !event->has_duration || event->duration_ns < 0)
		return 0;
	if (n_spans == room) {
		room = room ? 2 * room : 4096;
		spans = realloc(spans, room * sizeof(*spans));
		ck_assert_ptr_nonnull(spans);
	}
	char *group = plain(event->group), *track = plain(event->track);
	struct span *span = &spans[n_spans++];
	*span = (struct span){.start_ns = event->start_ns, .duration_ns = event->duration_ns,
			      .step = step_in(event->args), .name = plain(event->name)};
	ck_assert_int_gt(asprintf(&span->place, "\"pid\":\"%s\",\"tid\":\"%s\"", group, track), 0);
	free(group);
	free(track);
	return 0;
}

static void read_spans(const char *path)
{
	struct reducer_input *input;
	struct reducer_problem problem;
	struct reducer_read_report report;
	struct reducer_sink sink = {.event = keep};
	assert_ok(reducer_input_open(path, &input, &problem));
	assert_ok(reducer_chrome_read(input, &sink, NULL, &report));
	reducer_input_free(input);
}

static void free_spans(void)
{
	for (size_t i = 0; i < n_spans; i++) {
		free(spans[i].name);
		free(spans[i].place);
	}
	free(spans);
	spans = NULL;
	n_spans = room = 0;
}

static int64_t end_of(const struct span *span)
{
	return span->start_ns + span->duration_ns;
}

/* --- what to stretch --- */

static int by_step(const void *a_, const void *b_)
{
	const struct span *a = a_, *b = b_;
	return a->step < b->step ? -1 : a->step > b->step;
}

/* The last step but ten of those that the args of spans number. */
static bool find_step(struct stretch *stretch)
{
	size_t n = 0;
	qsort(spans, n_spans, sizeof(*spans), by_step);
	for (size_t i = 0; i < n_spans; i++)
		n += spans[i].step >= 0 && (i == 0 || spans[i].step != spans[i - 1].step);
	stretch->steps = n;
	if (n < STEPS_ENOUGH)
		return false;
	size_t nth = 0;
	for (size_t i = 0; i < n_spans; i++) {
		nth += spans[i].step >= 0 && (i == 0 || spans[i].step != spans[i - 1].step);
		if (nth != n - 10)
			continue;
		if (spans[i].start_ns < stretch->begin_ns)
			stretch->begin_ns = spans[i].start_ns;
		if (end_of(&spans[i]) > stretch->end_ns)
			stretch->end_ns = end_of(&spans[i]);
	}
	return true;
}

static int by_row(const void *a_, const void *b_)
{
	const struct span *a = a_, *b = b_;
	int order = strcmp(a->place, b->place);
	if (!order)
		order = strcmp(a->name, b->name);
	if (!order)
		order = a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
	return order ? order : a->duration_ns > b->duration_ns ? -1 : a->duration_ns < b->duration_ns;
}

static int by_number(const void *a, const void *b)
{
	double difference = *(const double *)a - *(const double *)b;
	return difference < 0 ? -1 : difference > 0;
}

/* Whether ten times its length stands out from those before it, by the documented formula and a fifth more. */
static bool stands_out(const struct span *row, size_t at)
{
	double sorted[WINDOW], deviation[WINDOW], longest = 0, value = 10 * (double)row[at].duration_ns;
	size_t n = at < WINDOW ? at : WINDOW;
	for (size_t i = 0; i < n; i++) {
		sorted[i] = (double)row[at - n + i].duration_ns;
		longest = sorted[i] > longest ? sorted[i] : longest;
	}
	qsort(sorted, n, sizeof(sorted[0]), by_number);
	double median = sorted[n / 2];
	for (size_t i = 0; i < n; i++)
		deviation[i] = sorted[i] > median ? sorted[i] - median : median - sorted[i];
	qsort(deviation, n, sizeof(deviation[0]), by_number);
	double wanted = 1.5 * median;
	wanted = 1.5 * longest > wanted ? 1.5 * longest : wanted;
	wanted = median + 6 * 1.4826 * deviation[n / 2] > wanted ? median + 6 * 1.4826 * deviation[n / 2] : wanted;
	wanted = median + (double)SPAN_MIN_NS > wanted ? median + (double)SPAN_MIN_NS : wanted;
	return value > 1.2 * wanted;
}

static bool nests(const struct span *row, size_t count)
{
	int64_t end_ns = INT64_MIN;
	for (size_t i = 0; i < count; i++) {
		if (row[i].start_ns < end_ns && end_of(&row[i]) <= end_ns)
			return true;
		end_ns = end_of(&row[i]) > end_ns ? end_of(&row[i]) : end_ns;
	}
	return false;
}

static int64_t median_of(const struct span *row, size_t count)
{
	double *sorted = calloc(count, sizeof(*sorted));
	ck_assert_ptr_nonnull(sorted);
	for (size_t i = 0; i < count; i++)
		sorted[i] = (double)row[i].duration_ns;
	qsort(sorted, count, sizeof(*sorted), by_number);
	int64_t median = (int64_t)sorted[count / 2];
	free(sorted);
	return median;
}

/* The span that repeats most often of those that can stand out, in the middle of its row. */
static bool find_span(struct stretch *stretch)
{
	size_t most = 0;
	qsort(spans, n_spans, sizeof(*spans), by_row);
	for (size_t i = 0, count; i < n_spans; i += count) {
		const struct span *row = &spans[i];
		for (count = 1; i + count < n_spans && !strcmp(row->name, row[count].name) &&
				!strcmp(row->place, row[count].place);
		     count++)
			;
		if (count < FREQUENT || nests(row, count))
			continue;
		int64_t median = median_of(row, count);
		stretch->repeats = count > stretch->repeats ? count : stretch->repeats;
		stretch->usually_ns = median > stretch->usually_ns ? median : stretch->usually_ns;
		for (size_t at = count / 2 > LEARNED ? count / 2 : LEARNED; at < count && count > most; at++)
			if (stands_out(row, at)) {
				most = count;
				stretch->begin_ns = row[at].start_ns;
				stretch->end_ns = end_of(&row[at]);
				stretch->name = row[at].name;
			}
	}
	return most > 0;
}

/* --- replaying --- */

static int64_t moved(int64_t ns, const struct stretch *stretch)
{
	if (ns <= stretch->begin_ns)
		return ns;
	return ns < stretch->end_ns ? stretch->begin_ns + 10 * (ns - stretch->begin_ns)
				    : ns + 9 * (stretch->end_ns - stretch->begin_ns);
}

static void write_stretched(const char *path, const struct stretch *stretch)
{
	FILE *file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fprintf(file, "[");
	for (size_t i = 0; i < n_spans; i++) {
		const struct span *span = &spans[i];
		int64_t start_ns = moved(span->start_ns, stretch), length_ns = moved(end_of(span), stretch) - start_ns;
		fprintf(file, "%s{\"ph\":\"X\",\"name\":\"%s\",%s,\"ts\":%lld.%03lld,\"dur\":%lld.%03lld",
			i ? ",\n" : "", span->name, span->place, (long long)(start_ns / 1000),
			(long long)(start_ns % 1000), (long long)(length_ns / 1000), (long long)(length_ns % 1000));
		if (span->step >= 0)
			fprintf(file, ",\"args\":{\"step\":%lld}", (long long)span->step);
		fprintf(file, "}");
	}
	fprintf(file, "]\n");
	ck_assert_int_eq(fclose(file), 0);
}

/*
 * The firings of what judges single spans that passed, as lines of JSON in *ret_lines; how many. (One of the traces has
 * a real straggler, stretched or not: test_replay.c, tests/cli/straggler.sh.)
 * `all`: the lines of notes as well.
 */
static unsigned passed(const char *path, bool all, char **ret_lines)
{
	const struct replay_settings settings = {
		.json = true, .all = all, .trigger = {2, {"latency_spike", "stall"}}};
	char error[512] = "";
	size_t bytes;
	struct replay replay = {.settings = &settings, .out = open_memstream(ret_lines, &bytes)};
	ck_assert_ptr_nonnull(replay.out);
	ck_assert_msg(replay_trace(&replay, path, error, sizeof(error)) == 0, "%s", error);
	fclose(replay.out);
	replay_counts_free(&replay.counts);
	return (unsigned)(replay.firings[TRIGGERS_WARN] + replay.firings[TRIGGERS_CRITICAL]);
}

static int64_t number_after(const char *lines, const char *key)
{
	const char *at = strstr(lines, key);
	ck_assert_msg(at != NULL, "no %s in %s", key, lines);
	return strtoll(at + strlen(key), NULL, 10);
}

START_TEST(untouched_is_quiet)
{
	char path[256], *lines;
	snprintf(path, sizeof(path), "traces/%s", traces[_i].file);
	unsigned count = passed(test_path(test_data_folder(), path), false, &lines);
	ck_assert_msg(count == 0, "%s: %s", traces[_i].file, lines);
	free(lines);
}
END_TEST

START_TEST(stretched_is_one_spike)
{
	char path[256], *lines;
	struct stretch stretch = {.begin_ns = INT64_MAX, .end_ns = INT64_MIN};
	snprintf(path, sizeof(path), "traces/%s", traces[_i].file);
	read_spans(test_path(test_data_folder(), path));
	bool found = find_step(&stretch) || find_span(&stretch);
	printf("%s: %zu spans, %zu numbered steps, a span repeats %zu times, the longest usually takes %lld us: %s%s\n",
	       traces[_i].file, n_spans, stretch.steps, stretch.repeats, (long long)(stretch.usually_ns / 1000),
	       found ? "stretched " : "nothing to stretch: ", traces[_i].how);
	fflush(stdout);
	ck_assert_msg(found == (traces[_i].stretched != NOTHING), "%s: %s", traces[_i].file, stretch.name ? stretch.name : "");
	if (found) {
		const char *copy = test_path(test_folder(), "stretched.json");
		write_stretched(copy, &stretch);
		unsigned count = passed(copy, traces[_i].stretched == A_NOTE, &lines);
		ck_assert_msg(count == (traces[_i].stretched == A_SPIKE), "%s, %s: %u firings: %s", traces[_i].file,
			      stretch.name ? stretch.name : "step", count, lines);
		ck_assert_msg(strstr(lines, "\"trigger\":\"latency_spike\"") != NULL, "%s: nothing", traces[_i].file);
		/* The firing's time meets the stretched one. */
		ck_assert_int_lt(number_after(lines, "\"t0_ns\":\""), moved(stretch.end_ns, &stretch));
		ck_assert_int_gt(number_after(lines, "\"detected_ns\":\""), stretch.begin_ns);
		free(lines);
	}
	free_spans();
}
END_TEST

START_TEST(others_are_refused)
{
	static const struct replay_settings settings = {.json = true};
	char path[256], error[512] = "";
	struct replay replay = {.settings = &settings, .out = stdout};
	snprintf(path, sizeof(path), "traces/%s", refused[_i]);
	int result = replay_trace(&replay, test_path(test_data_folder(), path), error, sizeof(error));
	ck_assert_msg(result < 0 && strstr(error, refused[_i]), "%s: %d, %s", refused[_i], result, error);
	printf("%s: not stretched: %s\n", refused[_i], error);
}
END_TEST

/* Step times of an XPlane are its own; so few steps are no ground to fire. */
START_TEST(xplanes_are_quiet)
{
	char path[256], *lines;
	snprintf(path, sizeof(path), "traces/%s", xplanes[_i]);
	unsigned count = passed(test_path(test_data_folder(), path), false, &lines);
	ck_assert_msg(count == 0, "%s: %u firings: %s", xplanes[_i], count, lines);
	free(lines);
}
END_TEST

int main(void)
{
	if (!test_data_folder()) {
		puts("no handed data: set DRIVEREC_TEST_DATA");
		return 77;
	}
	const int count = sizeof(traces) / sizeof(traces[0]);
	Suite *suite = suite_create("replay_stretched");
	TCase *untouched = tcase_create("a real trace is quiet");
	tcase_set_timeout(untouched, 120);
	tcase_add_loop_test(untouched, untouched_is_quiet, 0, count);
	suite_add_tcase(suite, untouched);
	TCase *stretched = tcase_create("one stretched step is one latency_spike");
	tcase_set_timeout(stretched, 120);
	tcase_add_loop_test(stretched, stretched_is_one_spike, 0, count);
	suite_add_tcase(suite, stretched);
	TCase *others = tcase_create("what is no trace is refused");
	tcase_add_loop_test(others, others_are_refused, 0, sizeof(refused) / sizeof(refused[0]));
	suite_add_tcase(suite, others);
	TCase *planes = tcase_create("a real XPlane is quiet");
	tcase_set_timeout(planes, 120);
	tcase_add_loop_test(planes, xplanes_are_quiet, 0, sizeof(xplanes) / sizeof(xplanes[0]));
	suite_add_tcase(suite, planes);
	return test_run(suite);
}
