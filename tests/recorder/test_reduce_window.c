/* SPDX-License-Identifier: Apache-2.0 */
/* What --window, --target-events and --target-bytes mean, and where outputs go. */
#include "reduce/window.h"

#include <errno.h>
#include <limits.h>

#include "reduce/files.h"
#include "reduce/names.h"
#include "reduce/progress.h"
#include "reduce/target.h"
#include "support.h"

#define S_NS  INT64_C(1000000000)
#define S_PS  INT64_C(1000000000000)
#define OPEN  REDUCE_BOUND_OPEN
#define START REDUCE_BOUND_START
#define END   REDUCE_BOUND_END
#define UTC   REDUCE_BOUND_UTC
#define NONE  {{OPEN, 0}, {OPEN, 0}}

static const struct {
	const char *text;
	int result;
	struct reduce_window window;
} windows[] = {
	{"10s:20s", 0, {{START, 10 * S_NS}, {START, 20 * S_NS}}},
	{"10:20", 0, {{START, 10 * S_NS}, {START, 20 * S_NS}}},
	{"1.5:2 min", 0, {{START, 1500000000}, {START, 120 * S_NS}}},
	{":5s", 0, {{OPEN, 0}, {START, 5 * S_NS}}},
	{"-5s:", 0, {{END, 5 * S_NS}, {OPEN, 0}}},
	{"-5s:-250ms", 0, {{END, 5 * S_NS}, {END, 250000000}}},
	{"0:1us", 0, {{START, 0}, {START, 1000}}},
	{"2026-11-30T03:12:44Z:2026-11-30T03:12:50.25Z", 0,
	 {{UTC, 1796008364 * S_NS}, {UTC, 1796008370 * S_NS + 250000000}}},
	{"2026-11-30 03:12:44.118 UTC:", 0, {{UTC, 1796008364 * S_NS + 118000000}, {OPEN, 0}}},
	{":2026-11-30T03:12:44Z", 0, {{OPEN, 0}, {UTC, 1796008364 * S_NS}}},
	{"1s:2026-11-30T03:12:44Z", 0, {{START, S_NS}, {UTC, 1796008364 * S_NS}}},
	{":", -EINVAL, NONE},
	{"", -EINVAL, NONE},
	{"10s", -EINVAL, NONE},
	{"10s-20s", -EINVAL, NONE},
	{"1:2:3", -EINVAL, NONE},
	{"a:b", -EINVAL, NONE},
	{"1 x:2", -EINVAL, NONE},
	{"--1s:2s", -EINVAL, NONE},
	{"2026-11-30T03:12:44:", -EINVAL, NONE},      /* of which zone? */
	{"2026-02-31T03:12:44Z:", -EINVAL, NONE},     /* no such day */
	{"2026-13-01T03:12:44Z:", -EINVAL, NONE},
	{"2026-11-30T24:12:44Z:", -EINVAL, NONE},
	{"2026-11-30T03:12:44.Z:", -EINVAL, NONE},
	{"2026-11-30T03:12:44.1234567890Z:", -EINVAL, NONE},
	{"99999999999999999999s:", -ERANGE, NONE},
};

START_TEST(window)
{
	struct reduce_window got = {{OPEN, 42}, {OPEN, 42}};
	int r = reduce_window_parse(windows[_i].text, &got);

	ck_assert_msg(r == windows[_i].result, "'%s': %d", windows[_i].text, r);
	if (r < 0) {
		ck_assert_int_eq(got.from.ns, 42);
		return;
	}
	ck_assert_msg(got.from.kind == windows[_i].window.from.kind && got.from.ns == windows[_i].window.from.ns &&
			      got.to.kind == windows[_i].window.to.kind && got.to.ns == windows[_i].window.to.ns,
		      "'%s': %d %lld, %d %lld", windows[_i].text, got.from.kind, (long long)got.from.ns, got.to.kind,
		      (long long)got.to.ns);
}
END_TEST

/* A trace of 100 s whose first event is 7 s after its base, which is 03:12:30. */
static const struct reduce_span span = {7 * S_NS, 100 * S_PS, true, 1796008350 * S_NS};

static const struct {
	const char *text;
	int result;
	int64_t from_ps, to_ps;
} resolved[] = {
	{"10s:20s", 0, 10 * S_PS, 20 * S_PS},
	{":5s", 0, -REDUCE_WINDOW_FAR_PS, 5 * S_PS},
	{"5s:", 0, 5 * S_PS, REDUCE_WINDOW_FAR_PS},
	{"-5s:", 0, 95 * S_PS, REDUCE_WINDOW_FAR_PS},
	{"-5s:-1s", 0, 95 * S_PS, 99 * S_PS},
	{"-200s:5s", 0, -100 * S_PS, 5 * S_PS},
	{"2026-11-30T03:12:44Z:2026-11-30T03:12:50Z", 0, 7 * S_PS, 13 * S_PS},
	{"2s:1s", -EDOM, 0, 0},
	{"-1s:-5s", -EDOM, 0, 0},
	{"2200-01-01T00:00:00Z:", -ERANGE, 0, 0},
	{"3000 d:", -ERANGE, 0, 0},
};

START_TEST(resolve)
{
	struct reduce_window parsed;
	int64_t from = 0, to = 0;

	assert_ok(reduce_window_parse(resolved[_i].text, &parsed));
	int r = reduce_window_resolve(&parsed, &span, &from, &to);

	ck_assert_msg(r == resolved[_i].result, "'%s': %d", resolved[_i].text, r);
	ck_assert_msg(from == resolved[_i].from_ps && to == resolved[_i].to_ps, "'%s': %lld .. %lld", resolved[_i].text,
		      (long long)from, (long long)to);
}
END_TEST

START_TEST(needs_the_trace)
{
	struct reduce_window parsed;
	struct reduce_span without = span;
	int64_t from, to;

	assert_ok(reduce_window_parse("1s:2s", &parsed));
	ck_assert(!reduce_window_needs_span(&parsed));
	assert_ok(reduce_window_resolve(&parsed, NULL, &from, &to));
	assert_ok(reduce_window_parse("1s:-2s", &parsed));
	ck_assert(reduce_window_needs_span(&parsed));
	assert_ok(reduce_window_parse("2026-11-30T03:12:44Z:", &parsed));
	ck_assert(reduce_window_needs_span(&parsed));
	without.has_base = false;
	ck_assert_int_eq(reduce_window_resolve(&parsed, &without, &from, &to), -ENODATA);
}
END_TEST

static const struct {
	const char *text;
	int result;
	uint64_t events;
	uint32_t permille;
} targets[] = {
	{"50000", 0, 50000, 0}, {"10%", 0, 0, 100},	 {"2.5 %", 0, 0, 25},	 {"100%", 0, 0, 1000}, {"0.1%", 0, 0, 1},
	{"0", -ERANGE, 0, 0},	{"0%", -ERANGE, 0, 0},	 {"101%", -ERANGE, 0, 0}, {"-1", -ERANGE, 0, 0},
	{"", -EINVAL, 0, 0},	{"0.05%", -ERANGE, 0, 0}, {"many", -EINVAL, 0, 0},
};

START_TEST(target)
{
	struct reduce_target got = {1, 1};
	int r = reduce_target_parse(targets[_i].text, &got);

	ck_assert_msg(r == targets[_i].result, "'%s': %d", targets[_i].text, r);
	ck_assert_uint_eq(got.events, r < 0 ? 1 : targets[_i].events);
	ck_assert_uint_eq(got.permille, r < 0 ? 1 : targets[_i].permille);
}
END_TEST

/* An output of `fixed` bytes and `each` a bin, up to `most` bins that differ. */
struct model {
	uint64_t fixed, each, most;
	unsigned tries;
	int fails_at;
};

static uint64_t model_bytes(const struct model *model, uint32_t bins)
{
	return model->fixed + model->each * (bins < model->most ? bins : model->most);
}

static int try_model(void *context, uint32_t bins, uint64_t *ret_bytes)
{
	struct model *model = context;

	ck_assert_uint_ge(bins, REDUCE_BINS_MIN);
	ck_assert_uint_le(bins, REDUCE_BINS_MAX);
	model->tries++;
	if (model->fails_at && (int)model->tries == model->fails_at)
		return -ENOSPC;
	*ret_bytes = model_bytes(model, bins);
	return 0;
}

START_TEST(bytes_search)
{
	static const uint64_t aims[] = {1100, 5000, 50000, 123456, 1000000, 20000000, UINT64_C(1) << 40};
	struct model model = {.fixed = 1000, .each = 50, .most = UINT32_MAX};
	uint64_t aim = aims[_i];
	uint32_t bins;
	bool fits;

	assert_ok(reduce_target_search(aim, try_model, &model, &bins, &fits));
	ck_assert(fits);
	ck_assert_uint_le(model_bytes(&model, bins), aim);
	ck_assert_msg(bins == REDUCE_BINS_MAX || model_bytes(&model, bins + 1) > aim ||
			      model_bytes(&model, bins) >= aim / 100 * 95,
		      "%u bins, %llu of %llu bytes", bins, (unsigned long long)model_bytes(&model, bins),
		      (unsigned long long)aim);
	ck_assert_uint_le(model.tries, REDUCE_TRIES_MAX);
}
END_TEST

START_TEST(bytes_search_ends)
{
	struct model too_big = {.fixed = 1000, .each = 50, .most = UINT32_MAX};
	struct model flat = {.fixed = 1000, .each = 50, .most = 100};
	struct model broken = {.fixed = 1000, .each = 50, .most = UINT32_MAX, .fails_at = 3};
	uint32_t bins;
	bool fits;

	assert_ok(reduce_target_search(500, try_model, &too_big, &bins, &fits));
	ck_assert(!fits);
	ck_assert_uint_eq(bins, REDUCE_BINS_MIN);
	/* Everything is there already: finer bins change nothing, and are not tried for ever. */
	assert_ok(reduce_target_search(100000, try_model, &flat, &bins, &fits));
	ck_assert(fits);
	ck_assert_uint_eq(flat.tries, 2);
	ck_assert_int_eq(reduce_target_search(123456, try_model, &broken, &bins, &fits), -ENOSPC);
}
END_TEST

static const struct {
	const char *input;
	enum reducer_format format;
	const char *beside, *below;
} outputs[] = {
	{"a/x.json.gz", REDUCER_FORMAT_CHROME, "a/x.reduced.json.gz", "out/x.json.gz"},
	{"a/x.pt.trace.json.gz", REDUCER_FORMAT_CHROME, "a/x.pt.trace.reduced.json.gz", "out/x.pt.trace.json.gz"},
	{"a/x.json", REDUCER_FORMAT_CHROME, "a/x.reduced.json.gz", "out/x.json"},
	{"a/x.json.zst", REDUCER_FORMAT_CHROME, "a/x.reduced.json.gz", "out/x.json.gz"},
	{"a/h.xplane.pb", REDUCER_FORMAT_XPLANE, "a/h.reduced.xplane.pb", "out/h.xplane.pb"},
	{"a/h.xplane.pb", REDUCER_FORMAT_CHROME, "a/h.reduced.json.gz", "out/h.json.gz"},
	{"a/x.json.gz", REDUCER_FORMAT_PFTRACE, "a/x.reduced.pftrace", "out/x.pftrace"},
	{"a/trace", REDUCER_FORMAT_CHROME, "a/trace.reduced.json.gz", "out/trace.json.gz"},
	{"a/.json", REDUCER_FORMAT_CHROME, "a/.json.reduced.json.gz", "out/.json"},
};

START_TEST(output_names)
{
	char name[256];

	assert_ok(reduce_names_beside(outputs[_i].input, outputs[_i].format, name, sizeof(name)));
	ck_assert_str_eq(name, outputs[_i].beside);
	assert_ok(reduce_names_below("out", outputs[_i].input, 2, outputs[_i].format, 1, name, sizeof(name)));
	ck_assert_str_eq(name, outputs[_i].below);
	ck_assert_int_eq(reduce_names_beside(outputs[_i].input, outputs[_i].format, name, 5), -ENAMETOOLONG);
}
END_TEST

START_TEST(trace_names)
{
	ck_assert(reduce_files_is_trace_name("x.json"));
	ck_assert(reduce_files_is_trace_name("x.pt.trace.json.gz"));
	ck_assert(reduce_files_is_trace_name("h.xplane.pb"));
	ck_assert(!reduce_files_is_trace_name("x.pb"));
	ck_assert(!reduce_files_is_trace_name(".x.json"));
	ck_assert(!reduce_files_is_trace_name("json"));
	ck_assert(reduce_files_is_output_name("x.reduced.json.gz"));
	ck_assert(!reduce_files_is_output_name("reduced.json.gz"));
}
END_TEST

START_TEST(progress_line)
{
	struct progress progress = {.files = 12, .done = 3, .bytes = 1000000000, .done_bytes = 300000000};
	char line[200];

	progress_print(&progress, 2 * S_NS, 110000000, "reducing", "a/rank7.pt.trace.json.gz", line, sizeof(line));
	ck_assert_str_eq(line, "3 of 12 files   41 %   204.8 MB/s   0:02 left   reducing rank7.pt.trace.json.gz");
	/* Nothing is known yet, nothing is divided by. */
	progress = (struct progress){.files = 1};
	progress_print(&progress, 0, 0, "verifying", "x\n\033[2J", line, sizeof(line));
	ck_assert_str_eq(line, "0 of 1 file   0 %   0.0 MB/s   0:00 left   verifying x??[2J");
}
END_TEST

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

int main(void)
{
	Suite *suite = suite_create("reduce: what is asked for");
	TCase *tc = tcase_create("window");

	tcase_add_loop_test(tc, window, 0, COUNT(windows));
	tcase_add_loop_test(tc, resolve, 0, COUNT(resolved));
	tcase_add_test(tc, needs_the_trace);
	suite_add_tcase(suite, tc);
	tc = tcase_create("targets");
	tcase_add_loop_test(tc, target, 0, COUNT(targets));
	tcase_add_loop_test(tc, bytes_search, 0, 7);
	tcase_add_test(tc, bytes_search_ends);
	suite_add_tcase(suite, tc);
	tc = tcase_create("names");
	tcase_add_loop_test(tc, output_names, 0, COUNT(outputs));
	tcase_add_test(tc, trace_names);
	suite_add_tcase(suite, tc);
	tc = tcase_create("progress");
	tcase_add_test(tc, progress_line);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}
