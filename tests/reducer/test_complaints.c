/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What people complained about in public, as small made-up files with the right reading: whoever has such a file
 * can see that it is read.
 *
 * Of PyTorch's, Kineto's, Perfetto's and other trackers' reports of malformed, odd or huge traces, these are not
 * about reading or writing a file and have no test here:
 *   pytorch#192021, kineto#996      events that the profiler dropped are not in the file
 *   HolisticTraceAnalysis#107, #238 no rank, no step marks in the trace: an analysis wants them, no reader does
 *   Hyperloom PR#1116               one bogus duration spoils a sum; it is read as written (see TraceLens#669)
 * Of the complaints about flight recorders these are about files: perfetto#845 (copied too early), #909 and #114
 * (losses without number or unit), #4280 (overlaps), pytorch#188956 (skew), tpu-inference#3601 (empty file), and
 * sizes (perfetto#3537, xprof#265). Overwritten metadata (perfetto#889, #414, async-profiler#945) is the ring's and
 * is held by tests/ringbuf/test_snapshot.c; windows out of a large trace (perfetto#3537) by test_reduce.c; readers
 * that loop for ever on what is incomplete (jdk#10629) by test_truncation.c. The others are about triggers, buffers,
 * costs, alerts and viewers.
 */
#include <reducer/chrome.h>
#include <reducer/chrome_writer.h>
#include <reducer/trace.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

struct heard {
	char text[8192];
	size_t used;
	uint64_t events;
	int64_t last_ns;
};

__attribute__((format(printf, 2, 3))) static void say(struct heard *heard, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int wrote = vsnprintf(heard->text + heard->used, sizeof(heard->text) - heard->used, format, args);
	va_end(args);
	ck_assert_int_lt(wrote, (int)(sizeof(heard->text) - heard->used));
	heard->used += (size_t)wrote;
}

static void say_text(struct heard *heard, const char *key, struct reducer_text text)
{
	if (text.bytes)
		say(heard, " %s=%.*s", key, (int)text.bytes, text.data);
}

static int hear_event(void *context, const struct reducer_event *event)
{
	struct heard *heard = context;
	say(heard, "%s", drec_kind_name(event->kind));
	say_text(heard, "name", event->name);
	say_text(heard, "pid", event->group);
	say_text(heard, "tid", event->track);
	if (event->has_time)
		say(heard, " ts=%lld", (long long)event->start_ns);
	if (event->has_duration)
		say(heard, " dur=%lld", (long long)event->duration_ns);
	if (event->has_id)
		say(heard, " id=%llu", (unsigned long long)event->id);
	say_text(heard, "args", event->args);
	say_text(heard, "extra", event->extra);
	say(heard, "\n");
	return 0;
}

static int hear_member(void *context, const struct reducer_member *member)
{
	say(context, "member %.*s=%.*s\n", (int)member->key.bytes, member->key.data, (int)member->value.bytes,
	    member->value.data);
	return 0;
}

static int read_text(const char *text, size_t bytes, const struct reducer_sink *sink, struct reducer_read_report *report)
{
	struct reducer_chrome *reader;
	assert_ok(reducer_chrome_new(sink, NULL, report, &reader));
	int result = reducer_chrome_feed(reader, text, bytes);
	if (result == 0)
		result = reducer_chrome_finish(reader);
	reducer_chrome_free(reader);
	return result;
}

struct complaint {
	const char *where, *text, *heard;
	unsigned damaged;
};

#define X(name, more) "{\"ph\":\"X\",\"name\":\"" name "\"," more "}"
#define OBJECT(events) "{\"traceEvents\":[" events "]}"
#define NEXT X("next", "\"ts\":9,\"dur\":1")
#define HEARD_NEXT "span name=next ts=9000 dur=1000\n"
#define U "\xef\xbf\xbd" /* U+FFFD */

static const struct complaint complaints[] = {
	{"pytorch#146900, kineto PR#1459: unescaped quotes in names",
	 OBJECT(X("torch/_dynamo/eval_frame.py(1): <lambda>(\"x\", y)", "\"ts\":1,\"dur\":2,\"pid\":3") "," NEXT),
	 "span name=torch/_dynamo/eval_frame.py(1): <lambda>(\"x\", y) pid=3 ts=1000 dur=2000\n" HEARD_NEXT, 1},
	{"pytorch#130622: control characters and freed memory in names",
	 OBJECT(X("\x03\x7f\xf0\x9f\xfe(\x1b[0m", "\"ts\":1,\"dur\":2") "," NEXT),
	 "span name=\x03\x7f" U U U "(\x1b[0m ts=1000 dur=2000\n" HEARD_NEXT, 0},
	{"pytorch#136180: stray bytes in frame names", OBJECT(X("torch/_inductor/config.py\xc0\x80\xe2\x82", "\"ts\":1,\"dur\":2") "," NEXT),
	 "span name=torch/_inductor/config.py" U U U U " ts=1000 dur=2000\n" HEARD_NEXT, 0},
	{"pytorch#113001: raw newline and quotes in a python_function",
	 OBJECT(X("<string>(2): f\n\"doc\"", "\"cat\":\"python_function\",\"ts\":1,\"dur\":2") "," NEXT),
	 "span name=<string>(2): f\n\"doc\" ts=1000 dur=2000\n" HEARD_NEXT, 1},
	{"pytorch#98432: backslashes unescaped in stacks",
	 OBJECT(X("f", "\"ts\":1,\"dur\":2,\"args\":{\"Call stack\":\"D:\\work\\x.py(3);E:\\u.py\"}") "," NEXT),
	 "span name=f ts=1000 dur=2000 args={\"Call stack\":\"D:\\work\\x.py(3);E:\\u.py\"}\n" HEARD_NEXT, 0},
	{"pytorch#33961: no opening quote before tid", OBJECT("{\"ph\":\"X\",\"name\":\"f\",\"ts\":1,\"dur\":2,tid\": 7}," NEXT),
	 "span name=f tid=7 ts=1000 dur=2000\n" HEARD_NEXT, 1},
	{"pytorch#95460: a bare array with pid as text", "[" X("f", "\"ts\":1,\"dur\":2,\"pid\":\"CPU functions\",\"tid\":0") "," NEXT "]",
	 "span name=f pid=\"CPU functions\" tid=0 ts=1000 dur=2000\n" HEARD_NEXT, 0},
	{"pytorch#126703, chakra#166: commas missing and too many",
	 OBJECT("," X("f", "\"ts\":1 \"dur\":2,,") NEXT ",,"), "span name=f ts=1000 dur=2000\n" HEARD_NEXT, 0},
	{"pytorch PR#172353, kineto PR#1213: empty value",
	 OBJECT(X("nccl", "\"ts\":1,\"dur\":2,\"args\":{\"Process Group Description\": , \"dtype\": \"x\"}") "," NEXT),
	 "span name=nccl ts=1000 dur=2000 args={\"Process Group Description\": , \"dtype\": \"x\"}\n" HEARD_NEXT, 0},
	{"kineto#80: texts that are not UTF-8", OBJECT(X("Gr\xf6\xdf" "e", "\"ts\":1,\"dur\":2") "," NEXT),
	 "span name=Gr" U U "e ts=1000 dur=2000\n" HEARD_NEXT, 0},
	{"kineto#336, #617: invalid escapes of Windows paths", OBJECT(X("C:\\Program Files\\mm.py(5): f", "\"ts\":1,\"dur\":2") "," NEXT),
	 "span name=C:\\Program Files\\mm.py(5): f ts=1000 dur=2000\n" HEARD_NEXT, 0},
	{"kineto PR#131, #133, #110: bare N/A", OBJECT(X("Memcpy", "\"ts\":1,\"dur\":0,\"args\":{\"memory bandwidth (GB/s)\": N/A}") "," NEXT),
	 "span name=Memcpy ts=1000 dur=0 args={\"memory bandwidth (GB/s)\": N/A}\n" HEARD_NEXT, 0},
	{"kineto#136: a kernel without length over its neighbour",
	 OBJECT(X("a", "\"pid\":0,\"tid\":7,\"ts\":5,\"dur\":0") "," X("b", "\"pid\":0,\"tid\":7,\"ts\":5,\"dur\":3")),
	 "span name=a pid=0 tid=7 ts=5000 dur=0\nspan name=b pid=0 tid=7 ts=5000 dur=3000\n", 0},
	{"kineto#888: ] in traceName", "{\"traceName\":\"/tmp/a],[b.json\",\"traceEvents\":[" NEXT "]}",
	 "member traceName=\"/tmp/a],[b.json\"\n" HEARD_NEXT, 0},
	{"perfetto#598: 0x01 in a name", OBJECT(X("a\x01" "b", "\"ts\":1,\"dur\":2") "," NEXT), "span name=a\x01" "b ts=1000 dur=2000\n" HEARD_NEXT, 0},
	{"perfetto#4280, #503, #432, #6277: overlapping slices",
	 OBJECT(X("a", "\"tid\":7,\"ts\":10,\"dur\":5") "," X("b", "\"tid\":7,\"ts\":12,\"dur\":5") "," X("c", "\"tid\":7,\"ts\":12,\"dur\":9")),
	 "span name=a tid=7 ts=10000 dur=5000\nspan name=b tid=7 ts=12000 dur=5000\nspan name=c tid=7 ts=12000 dur=9000\n", 0},
	{"perfetto#6421: all at one instant, for times beyond a double",
	 OBJECT(X("a", "\"ts\":1712170295123456.001,\"dur\":0.001") "," X("b", "\"ts\":1712170295123456.002,\"dur\":0.001")),
	 "span name=a ts=1712170295123456001 dur=1\nspan name=b ts=1712170295123456002 dur=1\n", 0},
	{"perfetto#6251: {} at the end", OBJECT(NEXT ",{}"), HEARD_NEXT, 0},
	{"perfetto#926: no ] at the end", "[" NEXT, HEARD_NEXT, 0},
	{"jax#30290: TPU traces with what no JSON parser takes",
	 OBJECT(X("f", "\"ts\":1,\"dur\":2,\"args\":{\"flops\":NaN,\"bw\":-Infinity,\"x\":-nan}") "," NEXT),
	 "span name=f ts=1000 dur=2000 args={\"flops\":NaN,\"bw\":-Infinity,\"x\":-nan}\n" HEARD_NEXT, 0},
	{"Ascend/pytorch#133: ts as text, all digits kept", "[" X("f", "\"ts\":\"1712170295123456.789\",\"dur\":\"0.02\"") "]",
	 "span name=f ts=1712170295123456789 dur=20\n", 0},
	{"Ascend/pytorch#27: invalid trace_view.json", "[" X("f", "\"ts\":1,\"dur\":2") ",\n" NEXT ",\n", "span name=f ts=1000 dur=2000\n" HEARD_NEXT, 0},
	{"TraceLens#669, Hyperloom PR#1116: a duration over the next slices", OBJECT(X("f", "\"ts\":1,\"dur\":2000000.5") "," NEXT),
	 "span name=f ts=1000 dur=2000000500\n" HEARD_NEXT, 0},
	{"TraceLens#1035: invalid UTF-8 of rocprofv3", OBJECT(X("hip\xfe\xffLaunch", "\"ts\":1,\"dur\":2") "," NEXT),
	 "span name=hip" U U "Launch ts=1000 dur=2000\n" HEARD_NEXT, 0},
	{"HolisticTraceAnalysis PR#324: integers above int64",
	 OBJECT(X("f", "\"ts\":1,\"dur\":2,\"id\":18446744073709551615,\"args\":{\"Comms Id\":17365883442516871873}") "," NEXT),
	 "span name=f ts=1000 dur=2000 id=18446744073709551615 args={\"Comms Id\":17365883442516871873}\n" HEARD_NEXT, 0},
	{"HolisticTraceAnalysis#317, PR#342: durations below 0 by rounding", OBJECT(X("f", "\"ts\":1,\"dur\":-0.001") "," NEXT),
	 "span name=f ts=1000 dur=-1\n" HEARD_NEXT, 0},
	{"pytorch-lightning#16634: ranges that intersect, cut short",
	 "{\"traceEvents\":[" X("a", "\"ts\":1,\"dur\":9") "," X("b", "\"ts\":5,\"dur\":9") ",{\"ph\":\"X\",\"name\":\"c",
	 "span name=a ts=1000 dur=9000\nspan name=b ts=5000 dur=9000\n", 1},
	{"perfetto#845: copied while it was written", "[" X("a", "\"ts\":1,\"dur\":2") ",\n" NEXT ",\n{\"ph\":\"X\",",
	 "span name=a ts=1000 dur=2000\n" HEARD_NEXT, 1},
	{"pytorch#188956: some hundred ns of skew",
	 OBJECT(X("outer", "\"ts\":100.000,\"dur\":50.000") "," X("inner", "\"ts\":99.800,\"dur\":50.100")),
	 "span name=outer ts=100000 dur=50000\nspan name=inner ts=99800 dur=50100\n", 0},
};

START_TEST(it_is_read_right)
{
	const struct complaint *complaint = &complaints[_i];
	static struct heard heard;
	struct reducer_read_report report;
	struct reducer_sink sink = {&heard, hear_event, hear_member};
	heard.used = 0;
	heard.text[0] = 0;
	int result = read_text(complaint->text, strlen(complaint->text), &sink, &report);
	ck_assert_msg(result == 0, "%s: %d", complaint->where, result);
	ck_assert_msg(strcmp(heard.text, complaint->heard) == 0, "%s: heard\n%snot\n%s", complaint->where, heard.text,
		      complaint->heard);
	ck_assert_msg(report.damaged == complaint->damaged, "%s: %llu damaged: %s", complaint->where,
		      (unsigned long long)report.damaged, report.problem[0].what);
}
END_TEST

static int count_event(void *context, const struct reducer_event *event)
{
	struct heard *heard = context;
	ck_assert(event->has_time && event->has_duration);
	heard->events++;
	heard->last_ns = event->start_ns;
	return 0;
}

/* kineto#109: more than 1000 kernels at 0 without length; each is an event. */
START_TEST(many_at_zero)
{
	static struct heard heard;
	struct reducer_sink sink = {&heard, count_event, NULL};
	struct reducer_read_report report;
	enum { KERNELS = 1500 };
	static const char kernel[] = X("k", "\"pid\":0,\"tid\":7,\"ts\":0,\"dur\":0") ",";
	char *text = malloc(KERNELS * sizeof(kernel) + 8);
	ck_assert_ptr_nonnull(text);
	size_t bytes = 1;
	text[0] = '[';
	for (unsigned i = 0; i < KERNELS; i++, bytes += sizeof(kernel) - 1)
		memcpy(text + bytes, kernel, sizeof(kernel) - 1);
	assert_ok(read_text(text, bytes, &sink, &report));
	ck_assert_uint_eq(heard.events, KERNELS);
	ck_assert_int_eq(heard.last_ns, 0);
	free(text);
}
END_TEST

/*
 * kineto#595, #805, #760, #615, perfetto#3537, xprof#720, #265, profile-data#3: too large for whoever loads it whole.
 * A million lines come in pieces; the reader holds one event, and drops none at any cap.
 */
START_TEST(as_large_as_it_comes)
{
	static struct heard heard;
	struct reducer_sink sink = {&heard, count_event, NULL};
	struct reducer_read_report report;
	struct reducer_chrome *reader;
	enum { EVENTS = 100000 };
	char event[400];
	assert_ok(reducer_chrome_new(&sink, NULL, &report, &reader));
	assert_ok(reducer_chrome_feed(reader, "{\"traceEvents\":[\n", 17));
	for (unsigned i = 0; i < EVENTS; i++) {
		int bytes = snprintf(event, sizeof(event),
				     "%s{\n\"ph\": \"X\",\n\"cat\": \"kernel\",\n\"name\": \"k%u\",\n\"pid\": 0,\n"
				     "\"tid\": 7,\n\"ts\": %u,\n\"dur\": 1,\n\"args\": {\n\"stream\": 7}\n}\n",
				     i ? "," : "", i % 7, i);
		assert_ok(reducer_chrome_feed(reader, event, (size_t)bytes));
	}
	assert_ok(reducer_chrome_feed(reader, "]}", 2));
	assert_ok(reducer_chrome_finish(reader));
	reducer_chrome_free(reader);
	ck_assert_uint_eq(heard.events, EVENTS);
	ck_assert_uint_eq(report.damaged, 0);
	ck_assert_int_eq(heard.last_ns, (EVENTS - 1) * 1000);
}
END_TEST

/* tpu-inference#3601: too large to be written, so the file is empty. It is refused with that reason. */
START_TEST(empty_file)
{
	const char *path = test_path(test_folder(), "host.xplane.pb");
	enum reducer_format format;
	struct reducer_problem problem = {0};
	test_write_file(path, "", 0);
	ck_assert_int_eq(reducer_trace_sniff(path, &format, &problem), -EBADMSG);
	ck_assert_msg(strstr(problem.what, "empty") != NULL, "%s", problem.what);
}
END_TEST

/* perfetto#909, #114: a loss is in the stream, and says how many events and over what time. */
START_TEST(losses_have_number_and_unit)
{
	const char *path = test_path(test_folder(), "losses.json");
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct reducer_chrome_writer *writer;
	struct reducer_event loss = {.kind = DREC_LOSS, .mark = DREC_LOSS_PINNED_FULL, .has_time = 1, .count = 237903,
				     .start_ns = 5000, .duration_ns = 2500};
	ck_assert_int_ge(fd, 0);
	assert_ok(reducer_chrome_writer_new(fd, NULL, &writer));
	assert_ok(reducer_chrome_writer_event(writer, &loss));
	assert_ok(reducer_chrome_writer_finish(writer));
	reducer_chrome_writer_free(writer);
	close(fd);
	char *text = test_read_file(path, NULL);
	ck_assert_msg(strstr(text, "\"ts\":5.000") && strstr(text, "\"events\":237903") &&
			      strstr(text, "\"for_us\":2.500") && strstr(text, "pinned"),
		      "%s", text);
	free(text);
}
END_TEST

static void add(Suite *suite, const char *name, const TTest *test)
{
	TCase *tcase = tcase_create(name);
	tcase_add_test(tcase, test);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
}

int main(void)
{
	Suite *suite = suite_create("complaints");
	for (int i = 0; i < (int)(sizeof(complaints) / sizeof(complaints[0])); i++) {
		TCase *tcase = tcase_create(complaints[i].where);
		tcase_add_loop_test(tcase, it_is_read_right, i, i + 1);
		suite_add_tcase(suite, tcase);
	}
	add(suite, "kineto#109: more than 1000 kernels at 0 without length", many_at_zero);
	add(suite, "kineto#595 and others: too large", as_large_as_it_comes);
	add(suite, "tpu-inference#3601: an empty file", empty_file);
	add(suite, "perfetto#909, #114: losses without number or unit", losses_have_number_and_unit);
	return test_run(suite);
}
