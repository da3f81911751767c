/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verification: a pair of traces made by hand that belong together, and each promise broken in it in several
 * ways; the difference must be found, at the right track and time.
 */
#include <reducer/verify.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <reducer/trace.h>
#include <reducer/writer.h>

#include "support.h"

#define SPAN(tid, name, ts, dur, args)                                                                           \
	"{\"ph\":\"X\",\"cat\":\"op\",\"name\":\"" name "\",\"pid\":1,\"tid\":" #tid ",\"ts\":" #ts ",\"dur\":" #dur   \
	",\"args\":" args "},\n"
#define MERGED(tid, name, ts, dur, n, sum, longest, which)                                                       \
	"{\"ph\":\"X\",\"cat\":\"driverec.merged\",\"name\":\"" name "\",\"pid\":1,\"tid\":" #tid ",\"ts\":" #ts        \
	",\"dur\":" #dur ",\"args\":{\"driverec.events\":" #n ",\"driverec.sum_ps\":" #sum                           \
	",\"driverec.longest_ps\":" #longest ",\"driverec.longest\":\"" which "\"}},\n"
#define INSTANT(name, ts)                                                                                        \
	"{\"ph\":\"i\",\"name\":\"" name "\",\"pid\":1,\"tid\":9,\"ts\":" #ts ",\"s\":\"t\"},\n"
#define COUNTER(name, ts, args)                                                                                  \
	"{\"ph\":\"C\",\"name\":\"" name "\",\"pid\":1,\"ts\":" #ts ",\"args\":" args "},\n"
#define META(name, args) "{\"ph\":\"M\",\"name\":\"" name "\",\"pid\":1,\"tid\":8,\"args\":" args "},\n"
#define FLOW(ph, id, ts)                                                                                         \
	"{\"ph\":\"" ph "\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":" #id ",\"pid\":1,\"tid\":8,\"ts\":" #ts "},\n"
#define ASYNC(ph, name, id, ts)                                                                                  \
	"{\"ph\":\"" ph "\",\"cat\":\"rpc\",\"name\":\"" name "\",\"id\":\"" id "\",\"pid\":1,\"tid\":8,\"ts\":" #ts "},\n"
#define BINS(bin, origin, more)                                                                                  \
	"{\"ph\":\"M\",\"name\":\"driverec.reduced\",\"pid\":0,\"tid\":0,\"args\":{\"version\":1,\"bin_ps\":\"" #bin     \
	"\",\"origin_ps\":\"" #origin "\"" more "}}\n"

/* Bins of 100 us from 0 on. */
static const char raw_text[] =
	"{\"schemaVersion\": 1,\"deviceProperties\":[{\"id\": 0}],\"traceEvents\":[\n"
	META("thread_name", "{\"name\":\"worker\"}") META("thread_name", "{\"name\":\"worker\"}")
	SPAN(7, "ProfilerStep#1", 0, 300, "{}") SPAN(7, "ProfilerStep#2", 300, 300.5, "{}")
	SPAN(8, "mm", 10, 20, "{\"k\": 1}") SPAN(8, "add", 40, 5, "{}") SPAN(8, "add", 50, 5, "{\"k\":2}")
	SPAN(8, "mm", 110, 30, "{}") SPAN(8, "add", 115, 5, "{}") SPAN(8, "relu", 120, 8, "{}")
	SPAN(8, "add", 130, 2, "{}") SPAN(8, "overlap", 135, 15, "{\"o\":[1,2]}") SPAN(8, "overlap", 136, 14.5, "{}")
	"{\"ph\":\"B\",\"name\":\"load\",\"pid\":1,\"tid\":8,\"ts\":310,\"args\":{\"f\":1}},\n"
	"{\"ph\":\"E\",\"pid\":1,\"tid\":8,\"ts\":330},\n"
	SPAN(8, "tick", 350, 0, "{}") SPAN(8, "tick", 351, 0, "{}")
	SPAN(6, "long", 50, 1000.25, "{}") SPAN(6, "a", 1060, 1, "{}") SPAN(6, "b", 1070, 1.5, "{}")
	SPAN(6, "b", 1080, 1, "{}")
	INSTANT("one", 5) INSTANT("two", 6) INSTANT("three", 7) INSTANT("four", 250)
	COUNTER("mem", 1, "{\"used\":5,\"free\":3}") COUNTER("mem", 2, "{\"used\":9,\"free\":3}")
	COUNTER("mem", 3, "{\"used\":1,\"free\":3}") COUNTER("mem", 4, "{\"used\":4,\"free\":3}")
	COUNTER("mem", 8, "{\"used\":6,\"free\":3}") COUNTER("mem", 8, "{\"used\":7,\"free\":3}")
	COUNTER("mem", 150, "{\"used\":2.5,\"free\":-1}")
	FLOW("s", 1, 12) FLOW("t", 1, 20) FLOW("f", 1, 115) FLOW("s", 2, 41) FLOW("f", 2, 116) FLOW("s", 3, 42)
	ASYNC("b", "get", "0x1", 10) ASYNC("b", "get", "0x2", 11) ASYNC("b", "get", "0x3", 12)
	ASYNC("e", "get", "0x1", 20) ASYNC("e", "get", "0x2", 12) ASYNC("e", "get", "0x3", 14)
	ASYNC("b", "open", "0x4", 30)
	SPAN(8, "backwards", 60, -1, "{}") "{\"ph\":\"R\",\"name\":\"other\",\"ts\":4},\n"
	"{\"ph\":\"E\",\"name\":\"lonely\",\"pid\":1,\"tid\":5,\"ts\":1}\n"
	"],\"traceName\":\"x\"}\n";

static const char reduced_text[] =
	"{\"schemaVersion\": 1,\"deviceProperties\":[{\"id\": 0}],\"traceEvents\":[\n"
	META("thread_name", "{\"name\":\"worker\"}")
	SPAN(7, "ProfilerStep#1", 0, 300, "{}") SPAN(7, "ProfilerStep#2", 300, 300.5, "{}")
	SPAN(8, "mm", 10, 20, "{\"k\": 1}") MERGED(8, "add", 40, 10, 2, 10000000, 5000000, "add")
	SPAN(8, "mm", 110, 30, "{}") SPAN(8, "relu", 120, 8, "{}") MERGED(8, "merged", 128, 7, 2, 7000000, "5000000", "add")
	SPAN(8, "overlap", 135, 15, "{\"o\":[1,2]}") MERGED(8, "overlap", 150, 0.5, 1, 14500000, 14500000, "overlap")
	"{\"ph\":\"B\",\"name\":\"load\",\"pid\":1,\"tid\":8,\"ts\":310,\"args\":{\"f\":1}},\n"
	"{\"ph\":\"E\",\"pid\":1,\"tid\":8,\"ts\":330},\n"
	MERGED(8, "tick", 350, 0, 1, 0, 0, "tick") SPAN(8, "tick", 351, 0, "{}")
	SPAN(6, "long", 50, 1000.25, "{}") SPAN(6, "b", 1070, 1.5, "{}") MERGED(6, "merged", 1079, 2, 2, 2000000, 1000000, "a")
	INSTANT("one", 5) INSTANT("four", 250)
	"{\"ph\":\"i\",\"cat\":\"driverec.merged\",\"name\":\"merged\",\"pid\":1,\"tid\":9,\"ts\":6,"
	"\"args\":{\"driverec.events\":2}},\n"
	COUNTER("mem", 2, "{\"used\":9,\"free\":3}") COUNTER("mem", 3, "{\"used\":1,\"free\":3}")
	COUNTER("mem", 8, "{\"used\":7,\"free\":3}") COUNTER("mem", 150, "{\"used\":2.5,\"free\":-1}")
	FLOW("s", 1, 12) FLOW("t", 1, 20) FLOW("f", 1, 115)
	ASYNC("b", "get", "0x1", 10) ASYNC("e", "get", "0x1", 20)
	"{\"ph\":\"b\",\"cat\":\"driverec.merged\",\"name\":\"get\",\"id\":\"m\",\"pid\":1,\"tid\":8,\"ts\":11,"
	"\"args\":{\"driverec.events\":2}},\n"
	"{\"ph\":\"e\",\"cat\":\"driverec.merged\",\"name\":\"get\",\"id\":\"m\",\"pid\":1,\"tid\":8,\"ts\":14},\n"
	ASYNC("b", "open", "0x4", 30)
	SPAN(8, "backwards", 60, -1, "{}") "{\"ph\":\"R\",\"name\":\"other\",\"ts\":4},\n"
	"{\"ph\":\"E\",\"name\":\"lonely\",\"pid\":1,\"tid\":5,\"ts\":1},\n"
	BINS(100000000, 0, "") "],\"traceName\":\"x\"}\n";

/* The text with `from`, which stands there once, replaced. The caller frees. */
static char *swapped(const char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);
	ck_assert_msg(at != NULL && !strstr(at + 1, from), "\"%s\" does not stand there once", from);
	size_t bytes = strlen(text) - strlen(from) + strlen(to) + 1;
	char *out = malloc(bytes);
	ck_assert_ptr_nonnull(out);
	snprintf(out, bytes, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
	return out;
}

static int compare(const char *raw, const char *reduced, struct reducer_verify_report *report,
		   struct reducer_problem *problem)
{
	static const char *folder;
	if (!folder)
		folder = test_folder();
	const char *raw_path = test_path(folder, "raw.json"), *reduced_path = test_path(folder, "reduced.json");
	test_write_file(raw_path, raw, strlen(raw));
	test_write_file(reduced_path, reduced, strlen(reduced));
	return reducer_verify(raw_path, reduced_path, report, problem);
}

static uint64_t failures(const struct reducer_verify_report *report)
{
	uint64_t all = 0;
	for (int promise = REDUCER_M1; promise <= REDUCER_M5; promise++)
		all += report->failed[promise];
	return all;
}

static void verify(const char *raw, const char *reduced, struct reducer_verify_report *report)
{
	struct reducer_problem problem = {0};
	int result = compare(raw, reduced, report, &problem);
	ck_assert_msg(result == 0, "%d: %s", result, problem.what);
}

static void print_differences(const char *what, const struct reducer_verify_report *report)
{
	for (unsigned i = 0; i < report->n_differences; i++)
		fprintf(stderr, "%s: M%d %s at %lld.%03u: %s\n", what, (int)report->difference[i].promise,
			report->difference[i].track, (long long)report->difference[i].time.ns,
			report->difference[i].time.ps, report->difference[i].what);
}

START_TEST(what_belongs_together_passes)
{
	struct reducer_verify_report report;
	verify(raw_text, reduced_text, &report);
	print_differences("pair", &report);
	ck_assert_uint_eq(failures(&report), 0);
	for (int promise = REDUCER_M1; promise <= REDUCER_M5; promise++)
		ck_assert_uint_gt(report.checked[promise], 3);
	ck_assert_int_eq(report.identical, 0);
	ck_assert_int_eq(report.bin.ns, 100000);
	ck_assert_uint_eq(report.tracks, 7);
	ck_assert_uint_eq(report.raw_events, 48);
	ck_assert_uint_eq(report.reduced_events, 36);
}
END_TEST

/* A change of the reduced text, and the difference that must be among those told. */
struct change {
	const char *what, *from, *to;
	enum reducer_promise promise; /* 0: it still passes */
	const char *track;
	int64_t ns; /* -1: none */
	const char *words;
};

static const struct change changes[] = {
	/* M1 */
	{"busy off by 2 ns", "\"ts\":40,\"dur\":10", "\"ts\":40,\"dur\":10.002", REDUCER_M1, "1/8 worker", 0,
	 "busy 30.000 us in the raw trace, 30.002 us in the reduced one"},
	{"busy off by 1 ns", "\"ts\":40,\"dur\":10", "\"ts\":40,\"dur\":9.999", 0, "", 0, ""},
	{"busy off by 1.001 ns", "\"ts\":40,\"dur\":10", "\"ts\":40,\"dur\":9.998999", REDUCER_M1, "1/8 worker", 0,
	 "29.998999 us in the reduced"},
	{"rectangle in the wrong bin", "\"ts\":40,\"dur\":10", "\"ts\":240,\"dur\":10", REDUCER_M1, "1/8 worker",
	 200000, "busy 0.000 us in the raw trace, 10.000 us"},
	{"rectangle over the bin's end", "\"ts\":40,\"dur\":10", "\"ts\":91,\"dur\":10", REDUCER_M1, "1/8 worker", 0,
	 "busy 30.000 us in the raw trace, 29.000 us"},
	{"rectangle under another", "\"ts\":40,\"dur\":10", "\"ts\":25,\"dur\":10", REDUCER_M1, "1/8 worker", 0,
	 "30.000 us in the raw trace, 25.000 us"},
	{"many bins", SPAN(6, "long", 50, 1000.25, "{}"), SPAN(6, "long", 50, 850.25, "{}"), REDUCER_M1, "1/6", 900000,
	 "busy 100.000 us in the raw trace, 0.250 us in the reduced one"},
	/* M2 */
	{"first start", SPAN(8, "mm", 10, 20, "{\"k\": 1}"), SPAN(8, "mm", 11, 20, "{\"k\": 1}"), REDUCER_M2, "1/8 worker",
	 10000, "first start 10.000 us in the raw trace, 11.000 us in the reduced one"},
	{"last end", MERGED(6, "merged", 1079, 2, 2, 2000000, 1000000, "a"), MERGED(6, "merged", 1078, 2, 2, 2000000, 1000000, "a"), REDUCER_M2,
	 "1/6", 1081000, "last end 1081.000 us"},
	{"no such track", "\"ProfilerStep#1\",\"pid\":1,\"tid\":7", "\"ProfilerStep#1\",\"pid\":1,\"tid\":77", REDUCER_M2,
	 "1/77", 0, "in the reduced trace only"},
	{"step", "\"ProfilerStep#2\",\"pid\":1,\"tid\":7,\"ts\":300,\"dur\":300.5,\"args\":{}",
	 "\"ProfilerStep#2\",\"pid\":1,\"tid\":7,\"ts\":300,\"dur\":300.5,\"args\":{\"x\":1}", REDUCER_M2, "1/7", 300000,
	 "step mark \"ProfilerStep#2\" has other args"},
	{"step time", "\"ts\":0,\"dur\":300", "\"ts\":0,\"dur\":299.999999", REDUCER_M2, "1/7", 0,
	 "step mark \"ProfilerStep#1\" is missing"},
	/* M3 */
	{"longest missing", SPAN(8, "relu", 120, 8, "{}"), "", REDUCER_M3, "1/8 worker", 120000,
	 "in row 1, \"relu\" of 8.000 us, is missing"},
	{"args by a space", SPAN(8, "mm", 10, 20, "{\"k\": 1}"), SPAN(8, "mm", 10, 20, "{\"k\":1}"), REDUCER_M3,
	 "1/8 worker", 10000, "in row 0, \"mm\" of 20.000 us, has other args"},
	{"longest's name", "\"mm\",\"pid\":1,\"tid\":8,\"ts\":110", "\"add\",\"pid\":1,\"tid\":8,\"ts\":110", REDUCER_M3,
	 "1/8 worker", 110000, "another name stands there"},
	{"longest's category", "{\"ph\":\"X\",\"cat\":\"op\",\"name\":\"relu\"", "{\"ph\":\"X\",\"cat\":\"Op\",\"name\":\"relu\"",
	 REDUCER_M3, "1/8 worker", 120000, "has another category"},
	{"longest of overlaps", SPAN(8, "overlap", 135, 15, "{\"o\":[1,2]}"),
	 MERGED(8, "overlap", 140, 10, 1, 15000000, 15000000, "overlap"), REDUCER_M3, "1/8 worker", 135000, "row of overlaps"},
	{"B and E", "\"args\":{\"f\":1}", "\"args\":{\"f\":2}", REDUCER_M3, "1/8 worker", 310000, "\"load\" of 20.000 us"},
	{"B and E as X",
	 "{\"ph\":\"B\",\"name\":\"load\",\"pid\":1,\"tid\":8,\"ts\":310,\"args\":{\"f\":1}},\n"
	 "{\"ph\":\"E\",\"pid\":1,\"tid\":8,\"ts\":330},\n",
	 "{\"ph\":\"X\",\"name\":\"load\",\"pid\":1,\"tid\":8,\"ts\":310,\"dur\":20,\"args\":{\"f\":1}},\n", 0, "", 0, ""},
	/* M4 */
	{"counter's max", COUNTER("mem", 2, "{\"used\":9,\"free\":3}"), "", REDUCER_M4, "1", 1000,
	 "largest value of counter \"mem\" \"used\" in one bin is 9 in the raw trace, 7"},
	{"counter's min", COUNTER("mem", 3, "{\"used\":1,\"free\":3}"), "", REDUCER_M4, "1", 1000, "least value"},
	{"counter's last of equal times", "\"ts\":8,\"args\":{\"used\":7", "\"ts\":8,\"args\":{\"used\":6", REDUCER_M4, "1",
	 1000, "last value of counter \"mem\" \"used\" in one bin is 7 in the raw trace, 6"},
	{"counter's only", COUNTER("mem", 150, "{\"used\":2.5,\"free\":-1}"), "", REDUCER_M4, "1", 150000,
	 "has samples in this bin in the raw trace only"},
	{"counter's other key", "\"free\":-1", "\"free\":-1.5", REDUCER_M4, "1", 150000, "\"free\""},
	{"instants one more", "\"args\":{\"driverec.events\":2}},\n{\"ph\":\"C\"", "\"args\":{\"driverec.events\":3}},\n{\"ph\":\"C\"",
	 REDUCER_M4, "1/9", 5000, "3 instants in one bin in the raw trace; the reduced one has or stands for 4"},
	{"instants in another bin", INSTANT("four", 250), INSTANT("four", 350), REDUCER_M4, "1/9", 250000, "1 instants"},
	{"first instant moved", INSTANT("one", 5), INSTANT("one", 5.000001), REDUCER_M4, "1/9", 5000,
	 "first instant of a bin, \"one\", is missing or altered"},
	{"first instant's scope", "\"ts\":250,\"s\":\"t\"", "\"ts\":250,\"s\":\"g\"", REDUCER_M4, "1/9", 250000,
	 "\"four\", is missing or altered"},
	{"metadata missing", META("thread_name", "{\"name\":\"worker\"}"), "", REDUCER_M4, "1/8 worker", -1,
	 "metadata \"thread_name\""},
	{"metadata altered", "{\"name\":\"worker\"}", "{\"name\":\"Worker\"}", REDUCER_M4, "1/8 Worker", -1, "metadata"},
	{"member altered", "[{\"id\": 0}]", "[{\"id\":0}]", REDUCER_M4, "", -1, "member \"deviceProperties\""},
	{"member missing", "\"schemaVersion\": 1,", "", REDUCER_M4, "", -1, "member \"schemaVersion\""},
	{"late member missing", ",\"traceName\":\"x\"", "", REDUCER_M4, "", -1, "member \"traceName\""},
	{"flow end missing", FLOW("f", 1, 115), "", REDUCER_M4, "1/8 worker", 115000, "flow \"ac2g\" 1 has lost"},
	{"flow step missing", FLOW("t", 1, 20), "", REDUCER_M4, "1/8 worker", 20000, "flow \"ac2g\" 1 has lost"},
	{"flow end altered", FLOW("s", 1, 12), FLOW("s", 1, 12.001), REDUCER_M4, "1/8 worker", 12000, "lost or altered"},
	{"flow of one end", FLOW("f", 1, 115), FLOW("f", 1, 115) FLOW("s", 3, 42), REDUCER_M4, "1/8 worker", 42000,
	 "one end only"},
	{"flow made up", FLOW("f", 1, 115), FLOW("f", 1, 115) FLOW("s", 9, 42), REDUCER_M4, "1/8 worker", 42000, "no end"},
	{"flow dropped whole", FLOW("s", 1, 12) FLOW("t", 1, 20) FLOW("f", 1, 115), "", 0, "", 0, ""},
	{"backwards span altered", SPAN(8, "backwards", 60, -1, "{}"), SPAN(8, "backwards", 60, -2, "{}"), REDUCER_M4,
	 "1/8 worker", 60000, "\"backwards\", an event of a kind that is kept"},
	{"other kind missing", "{\"ph\":\"R\",\"name\":\"other\",\"ts\":4},\n", "", REDUCER_M4, "", 4000, "\"other\""},
	{"unmatched end missing", "{\"ph\":\"E\",\"name\":\"lonely\",\"pid\":1,\"tid\":5,\"ts\":1},\n", "", REDUCER_M4, "1/5", 1000,
	 "\"lonely\""},
	{"unmatched async missing", ASYNC("b", "open", "0x4", 30), "", REDUCER_M4, "1/8 worker", 30000, "\"open\""},
	{"instant made up", INSTANT("four", 250), INSTANT("four", 250) INSTANT("four", 450), REDUCER_M4, "1/9", 450000,
	 "does not stand so in the raw trace"},
	/* M5 */
	{"name altered", "\"relu\"", "\"rely\"", REDUCER_M5, "1/8 worker", 120000, "\"rely\" is no name of the raw trace"},
	{"merged name", "\"driverec.merged\",\"name\":\"add\"", "\"driverec.merged\",\"name\":\"adder\"", REDUCER_M5,
	 "1/8 worker", 40000, "a merged span is called \"adder\""},
	{"merged name of another track", "\"driverec.merged\",\"name\":\"tick\"",
	 "\"driverec.merged\",\"name\":\"ProfilerStep#1\"", REDUCER_M5, "1/8 worker", 350000, "ProfilerStep#1"},
	{"longest's name is none", "\"driverec.longest\":\"a\"", "\"driverec.longest\":\"c\"", REDUCER_M5, "1/6", 1079000,
	 "the longest of a merged span is called \"c\""},
	{"count off", "\"driverec.events\":2,\"driverec.sum_ps\":10000000", "\"driverec.events\":3,\"driverec.sum_ps\":10000000",
	 REDUCER_M5, "1/8 worker", -1, "12 spans in the raw trace; the reduced one has or stands for 13"},
	{"sum off by 1 ps", "\"driverec.sum_ps\":10000000", "\"driverec.sum_ps\":10000001", REDUCER_M5, "1/8 worker", -1,
	 "124.500 us together in the raw trace; those that the reduced one has or stands for 124.500001 us"},
	{"longest too long", "\"driverec.longest_ps\":14500000", "\"driverec.longest_ps\":30001000", REDUCER_M5, "1/8 worker",
	 150000, "the longest of a merged span has 30.001 us; the longest raw span of the track 30.000 us"},
	{"says no number", "\"driverec.events\":2,\"driverec.sum_ps\":10000000", "\"driverec.events\":2,\"driverec.sum\":10000000",
	 REDUCER_M5, "1/8 worker", 40000, "does not say"},
	{"async count off", "\"ts\":11,\"args\":{\"driverec.events\":2}", "\"ts\":11,\"args\":{\"driverec.events\":1}",
	 REDUCER_M5, "", -1, "group 1 has 4 async begins in the raw trace; the reduced one has or stands for 3"},
	{"async name", "\"driverec.merged\",\"name\":\"get\",\"id\":\"m\",\"pid\":1,\"tid\":8,\"ts\":11",
	 "\"driverec.merged\",\"name\":\"got\",\"id\":\"m\",\"pid\":1,\"tid\":8,\"ts\":11", REDUCER_M5, "1/8 worker", 11000,
	 "\"got\""},
	{"span made up", SPAN(8, "relu", 120, 8, "{}"), SPAN(8, "relu", 120, 8, "{}") SPAN(8, "relu", 121, 1, "{}"),
	 REDUCER_M5, "1/8 worker", 121000, "\"relu\" does not stand so in the raw trace"},
	{"span twice", SPAN(8, "relu", 120, 8, "{}"), SPAN(8, "relu", 120, 8, "{}") SPAN(8, "relu", 120, 8, "{}"),
	 REDUCER_M5, "1/8 worker", 120000, "\"relu\" does not stand so in the raw trace"},
};

static bool is_told(const struct change *change, const struct reducer_verify_report *report)
{
	for (unsigned i = 0; i < report->n_differences; i++) {
		const struct reducer_difference *one = &report->difference[i];
		bool timed = change->ns < 0 ? !one->has_time : one->has_time && one->time.ns == change->ns;
		if (one->promise == change->promise && timed && one->time.ps == 0 &&
		    strcmp(one->track, change->track) == 0 && strstr(one->what, change->words))
			return true;
	}
	return false;
}

START_TEST(change_is_told)
{
	const struct change *change = &changes[_i];
	struct reducer_verify_report report;
	char *reduced = swapped(reduced_text, change->from, change->to);
	verify(raw_text, reduced, &report);
	free(reduced);
	bool good = change->promise ? is_told(change, &report) : failures(&report) == 0;
	if (!good)
		print_differences(change->what, &report);
	ck_assert_msg(good, "%s", change->what);
}
END_TEST

/* Small pairs, each of one concern. */
struct pair {
	const char *what, *raw, *reduced;
	enum reducer_promise promise; /* 0: passes */
	const char *words;
};

#define ONE_SPAN SPAN(1, "a", 5, 10, "{}")
/* Two bins of 10 us, the second one with a merged span of an earlier reduction. */
#define REDUCED_BEFORE                                                                                           \
	"[" SPAN(1, "a", 1, 3, "{}") MERGED(1, "merged", 12, 4, 5, 6000000, 2000000, "b") MERGED(1, "b", 22, 4, 3, 4000000, 2000000, "b")

static const struct pair pairs[] = {
	{"negative bins", "[" SPAN(1, "a", -15, 2, "{}") SPAN(1, "b", -4, 2, "{}") "]",
	 "[" SPAN(1, "a", -15, 2, "{}") SPAN(1, "b", -4, 2, "{}") BINS(10000000, 0, "") "]", 0, ""},
	{"bin of -15 is not that of -4", "[" SPAN(1, "a", -15, 2, "{}") SPAN(1, "b", -4, 1, "{}") SPAN(1, "b", -2, 1, "{}") "]",
	 "[" SPAN(1, "a", -15, 2, "{}") MERGED(1, "b", -4, 2, 2, 2000000, 1000000, "b") BINS(10000000, 0, "") "]", REDUCER_M3,
	 "row 0, \"b\" of 1.000 us"},
	{"origin between", "[" SPAN(1, "a", 4, 2, "{}") SPAN(1, "b", 6, 1, "{}") SPAN(1, "c", 14, 2, "{}") "]",
	 "[" SPAN(1, "a", 4, 2, "{}") MERGED(1, "b", 6, 1, 1, 1000000, 1000000, "b") SPAN(1, "c", 14, 2, "{}") BINS(10000000, -6000000, "")
	 "]", 0, ""},
	{"from 1970", "[" SPAN(1, "a", 1623142623460016.5, 2, "{}") SPAN(2, "a", 0, 2, "{}") "]",
	 "[" SPAN(1, "a", 1623142623460016.5, 2, "{}") SPAN(2, "a", 0, 2, "{}")
	 BINS(1000000, 1623142623460016500000, "") "]", 0, ""},
	{"ps since 1970", "[" SPAN(1, "a", 1623142623460016.5, 2, "{}") "]",
	 "[" SPAN(1, "a", 1623142623460016.500001, 2, "{}") BINS(1000000, 1623142623460016500000, "") "]", REDUCER_M2,
	 "first start 1623142623460016.500 us in the raw trace, 1623142623460016.500001"},
	{"bins of a ps", "[" SPAN(1, "a", 0, 9223372036854775, "{}") "]",
	 "[" SPAN(1, "a", 0, 9223372036854775, "{}") BINS(1, 0, "") "]", 0, ""},
	{"bins of a ps, shorter", "[" SPAN(1, "a", 0, 9223372036854775, "{}") "]",
	 "[" SPAN(1, "a", 0, 9223372036854774, "{}") BINS(1000000000, 0, "") "]", REDUCER_M1, "busy"},
	{"window", "[" ONE_SPAN SPAN(1, "b", 20, 5, "{}") SPAN(1, "c", 30, 4, "{}") SPAN(1, "d", 36, 1, "{}") "]",
	 "[" SPAN(1, "b", 20, 5, "{}") SPAN(1, "c", 30, 4, "{}")
	 BINS(1000000, 0, ",\"window_from_ps\":\"22000000\",\"window_to_ps\":\"33000000\"") "]", 0, ""},
	{"window left out", "[" ONE_SPAN SPAN(1, "b", 20, 5, "{}") SPAN(1, "c", 30, 4, "{}") "]",
	 "[" SPAN(1, "b", 20, 5, "{}") BINS(1000000, 0, ",\"window_from_ps\":\"22000000\",\"window_to_ps\":\"33000000\"") "]",
	 REDUCER_M2, "last end 34.000 us"},
	{"window cuts a span", "[" SPAN(1, "b", 20, 5, "{}") "]",
	 "[" SPAN(1, "b", 22, 3, "{}") BINS(1000000, 0, ",\"window_from_ps\":\"22000000\",\"window_to_ps\":\"33000000\"") "]",
	 REDUCER_M2, "first start 20.000 us"},
	{"beyond the window", "[" SPAN(1, "b", 20, 5, "{}") SPAN(1, "d", 36, 1, "{}") "]",
	 "[" SPAN(1, "b", 20, 5, "{}") SPAN(1, "d", 36, 1, "{}")
	 BINS(1000000, 0, ",\"window_from_ps\":\"22000000\",\"window_to_ps\":\"33000000\"") "]", REDUCER_M5,
	 "\"d\" does not stand so"},
	{"no window is named", "[" ONE_SPAN SPAN(1, "b", 20, 5, "{}") "]", "[" SPAN(1, "b", 20, 5, "{}") BINS(1000000, 0, "") "]",
	 REDUCER_M2, "first start 5.000 us"},
	{"tracks", "[" ONE_SPAN SPAN(2, "b", 20, 5, "{}") "]",
	 "[" ONE_SPAN BINS(1000000, 0, ",\"tracks\":\"1/1\"") "]", 0, ""},
	{"tracks that are there", "[" ONE_SPAN SPAN(1, "b", 20, 5, "{}") SPAN(2, "b", 20, 5, "{}") "]",
	 "[" ONE_SPAN BINS(1000000, 0, ",\"tracks\":\"1/1\"") "]", REDUCER_M2, "last end 25.000 us"},
	{"a track is lost", "[" ONE_SPAN SPAN(2, "b", 20, 5, "{}") "]", "[" ONE_SPAN BINS(1000000, 0, "") "]", REDUCER_M2,
	 "in the raw trace only"},
	{"root", "{\"a\":1,\"traceEvents\":[" ONE_SPAN "]}", "[" ONE_SPAN BINS(1000000, 0, "") "]", REDUCER_M4,
	 "an object with 1 members, the reduced one an array"},
	{"reduced twice", REDUCED_BEFORE BINS(10000000, 0, "") "]",
	 "[" SPAN(1, "a", 1, 3, "{}") MERGED(1, "merged", 12, 8, 8, 10000000, 2000000, "b") BINS(30000000, 0, "") "]", REDUCER_M3,
	 "\"merged\" of 4.000 us, is missing"},
	{"reduced twice, right", REDUCED_BEFORE BINS(10000000, 0, "") "]",
	 "[" SPAN(1, "a", 1, 3, "{}") MERGED(1, "merged", 12, 4, 5, 6000000, 2000000, "b") MERGED(1, "b", 22, 4, 3, 4000000, 2000000, "b")
	 BINS(30000000, 0, "") "]", 0, ""},
	{"reduced twice, count", REDUCED_BEFORE BINS(10000000, 0, "") "]",
	 "[" SPAN(1, "a", 1, 3, "{}") MERGED(1, "merged", 12, 4, 5, 6000000, 2000000, "b") MERGED(1, "b", 22, 4, 2, 4000000, 2000000, "b")
	 BINS(30000000, 0, "") "]", REDUCER_M5, "9 spans in the raw trace; the reduced one has or stands for 8"},
	{"says so twice", "[" ONE_SPAN "]", "[" ONE_SPAN BINS(1000000, 0, "") "," BINS(1000000, 0, "") "]", REDUCER_M4,
	 "2 times that it is reduced"},
	{"rows of equal starts", "[" SPAN(1, "in", 0, 5, "{}") SPAN(1, "out", 0, 9, "{}") SPAN(1, "in", 6, 2, "{}") "]",
	 "[" SPAN(1, "out", 0, 9, "{}") SPAN(1, "in", 0, 5, "{}") MERGED(1, "in", 6, 2, 1, 2000000, 2000000, "in") BINS(9000000, 0, "") "]",
	 0, ""},
	{"an end closes the innermost",
	 "[{\"ph\":\"B\",\"name\":\"o\",\"ts\":0},{\"ph\":\"B\",\"name\":\"i\",\"ts\":2},{\"ph\":\"E\",\"ts\":3},{\"ph\":\"E\",\"ts\":9}]",
	 "[{\"ph\":\"X\",\"name\":\"o\",\"ts\":0,\"dur\":9},{\"ph\":\"X\",\"name\":\"i\",\"ts\":2,\"dur\":1}," BINS(1000000, 0, "") "]",
	 0, ""},
	{"an end closes the innermost, not the first",
	 "[{\"ph\":\"B\",\"name\":\"o\",\"ts\":0},{\"ph\":\"B\",\"name\":\"i\",\"ts\":2},{\"ph\":\"E\",\"ts\":3},{\"ph\":\"E\",\"ts\":9}]",
	 "[{\"ph\":\"X\",\"name\":\"o\",\"ts\":0,\"dur\":3},{\"ph\":\"X\",\"name\":\"i\",\"ts\":2,\"dur\":7}," BINS(1000000, 0, "") "]",
	 REDUCER_M3, "\"o\" of 9.000 us, is missing"},
	{"begins and ends in the order of time",
	 "[{\"ph\":\"B\",\"name\":\"b\",\"ts\":10},{\"ph\":\"B\",\"name\":\"a\",\"ts\":0},{\"ph\":\"E\",\"ts\":3},{\"ph\":\"E\",\"ts\":20}]",
	 "[{\"ph\":\"X\",\"name\":\"a\",\"ts\":0,\"dur\":3},{\"ph\":\"X\",\"name\":\"b\",\"ts\":10,\"dur\":10}," BINS(1000000, 0, "") "]",
	 0, ""},
	{"old instants", "[{\"ph\":\"I\",\"name\":\"a\",\"ts\":1},{\"ph\":\"I\",\"name\":\"a\",\"ts\":2}]",
	 "[{\"ph\":\"I\",\"name\":\"a\",\"ts\":1}," BINS(9000000, 0, "") "]", REDUCER_M4, "2 instants in one bin"},
	{"steps by args", "[" SPAN(1, "a", 0, 9, "{}") SPAN(1, "s", 1, 2, "{\"step_num\":4}") SPAN(1, "s", 4, 2, "{\"x\":1}") "]",
	 "[" SPAN(1, "a", 0, 9, "{}") SPAN(1, "s", 4, 2, "{\"x\":1}") MERGED(1, "s", 1, 2, 1, 2000000, 2000000, "s") BINS(9000000, 0, "") "]",
	 REDUCER_M2, "step mark \"s\" is missing"},
	{"steps of optimizers",
	 "[" SPAN(1, "a", 0, 9, "{}") SPAN(1, "Optimizer.step#Adam.step", 1, 2, "{}") SPAN(1, "s", 4, 2, "{}") "]",
	 "[" SPAN(1, "a", 0, 9, "{}") SPAN(1, "s", 4, 2, "{}")
	 MERGED(1, "Optimizer.step#Adam.step", 1, 2, 1, 2000000, 2000000, "Optimizer.step#Adam.step") BINS(9000000, 0, "") "]",
	 REDUCER_M2, "step mark \"Optimizer.step#Adam.step\" is missing"},
	{"marks of driverec",
	 "[{\"ph\":\"i\",\"cat\":\"driverec.mark\",\"name\":\"a\",\"ts\":1},{\"ph\":\"i\",\"cat\":\"driverec.mark\",\"name\":\"a\",\"ts\":2}]",
	 "[{\"ph\":\"i\",\"cat\":\"driverec.mark\",\"name\":\"a\",\"ts\":1},{\"ph\":\"i\",\"cat\":\"driverec.merged\",\"name\":\"a\","
	 "\"ts\":2,\"args\":{\"driverec.events\":1}}," BINS(9000000, 0, "") "]",
	 REDUCER_M2, "step mark \"a\" is missing"},
	{"damaged args are the same repaired", "[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1,\"args\":{\"v\":NaN}}]",
	 "[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1,\"args\":{\"v\":\"NaN\"}}," BINS(9000000, 0, "") "]", 0, ""},
};

START_TEST(pair_is_judged)
{
	const struct pair *pair = &pairs[_i];
	struct reducer_verify_report report;
	bool told = false;
	verify(pair->raw, pair->reduced, &report);
	for (unsigned i = 0; i < report.n_differences; i++)
		told |= report.difference[i].promise == pair->promise && strstr(report.difference[i].what, pair->words);
	bool good = pair->promise ? told : failures(&report) == 0;
	if (!good)
		print_differences(pair->what, &report);
	ck_assert_msg(good, "%s", pair->what);
}
END_TEST

START_TEST(what_limits_is_reported)
{
	struct reducer_verify_report report;
	verify("[" ONE_SPAN "]",
	       "[" ONE_SPAN
	       BINS(1000000, -5, ",\"window_from_ps\":\"-1\",\"window_to_ps\":\"6000000\",\"tracks\":\"a*\"") "]",
	       &report);
	ck_assert_uint_eq(failures(&report), 0);
	ck_assert_int_eq(report.has_window, 1);
	ck_assert_int_eq(report.window_from.ns, -1);
	ck_assert_uint_eq(report.window_from.ps, 999);
	ck_assert_int_eq(report.window_to.ns, 6000);
	ck_assert_int_eq(report.origin.ns, -1);
	ck_assert_uint_eq(report.origin.ps, 995);
	ck_assert_str_eq(report.track_pattern, "a*");
}
END_TEST

START_TEST(identical_files_need_no_mark)
{
	struct reducer_verify_report report;
	verify(raw_text, raw_text, &report);
	ck_assert_int_eq(report.identical, 1);
	ck_assert_uint_eq(failures(&report), 0);
	ck_assert_uint_eq(report.reduced_events, report.raw_events);
}
END_TEST

static const struct {
	const char *raw, *reduced, *words;
} refused[] = {
	{"[" ONE_SPAN "]", "[" ONE_SPAN " ]", "reduced.json: it does not say that it is reduced"},
	{"[" ONE_SPAN "]", "hello", "reduced.json: not a Chrome trace"},
	{"hello", "[" ONE_SPAN "]", "raw.json: not a Chrome trace"},
	{"hello", "hello", "raw.json: not a Chrome trace"},
	{"[" ONE_SPAN "]", "[" BINS(0, 0, "") "]", "cannot be read"},
	{"[" ONE_SPAN "]", "[" BINS(-1, 0, "") "]", "cannot be read"},
	{"[" ONE_SPAN "]", "[" BINS(1e3, 0, "") "]", "cannot be read"},
	{"[" ONE_SPAN "]", "[" BINS(1, 99999999999999999999999999, "") "]", "cannot be read"},
	{"[" ONE_SPAN "]", "[" BINS(1, 0, ",\"window_from_ps\":\"1\"") "]", "cannot be read"},
	{"[" ONE_SPAN "]", "[{\"ph\":\"M\",\"name\":\"driverec.reduced\",\"args\":{\"version\":2,\"bin_ps\":\"1\",\"origin_ps\":\"0\"}}]",
	 "cannot be read"},
};

START_TEST(what_cannot_be_compared_is_refused)
{
	struct reducer_verify_report report;
	struct reducer_problem problem = {0};
	ck_assert_int_eq(compare(refused[_i].raw, refused[_i].reduced, &report, &problem), -EBADMSG);
	ck_assert_msg(strstr(problem.what, refused[_i].words) != NULL, "row %d: %s", _i, problem.what);
}
END_TEST

START_TEST(missing_file_is_an_error)
{
	struct reducer_verify_report report;
	struct reducer_problem problem = {0};
	const char *raw = test_path(test_folder(), "raw.json");
	test_write_file(raw, raw_text, sizeof(raw_text) - 1);
	ck_assert_int_eq(reducer_verify(raw, test_path(test_folder(), "none"), &report, &problem), -ENOENT);
	ck_assert_int_eq(reducer_verify(test_path(test_folder(), "none"), raw, &report, &problem), -ENOENT);
}
END_TEST

/* The reduced text with a change, as an XPlane beside the raw text. */
static void cross(const char *from, const char *to, struct reducer_verify_report *report)
{
	const char *folder = test_folder(), *raw = test_path(folder, "raw.json");
	const char *text = test_path(folder, "text.json"), *reduced = test_path(folder, "reduced.xplane.pb");
	struct reducer_problem problem = {0};
	struct reducer_read_report read;
	struct reducer_writer *writer;
	char *changed = swapped(reduced_text, from, to);
	test_write_file(raw, raw_text, sizeof(raw_text) - 1);
	test_write_file(text, changed, strlen(changed));
	free(changed);
	int fd = open(reduced, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	assert_ok(fd);
	assert_ok(reducer_writer_new(fd, REDUCER_FORMAT_XPLANE, NULL, NULL, &writer));
	struct reducer_sink sink = reducer_writer_sink(writer);
	assert_ok(reducer_trace_read(text, REDUCER_FORMAT_CHROME, &sink, &read));
	assert_ok(reducer_writer_finish(writer));
	reducer_writer_free(writer);
	close(fd);
	int result = reducer_verify(raw, reduced, report, &problem);
	ck_assert_msg(result == 0, "%d: %s", result, problem.what);
	ck_assert_int_eq(report->reduced_format, REDUCER_FORMAT_XPLANE);
}

static const struct change crossed[] = {
	{"as it is", "\"ts\":40,\"dur\":10", "\"ts\":40,\"dur\":10", 0, "", 0, ""},
	{"other args", SPAN(8, "mm", 10, 20, "{\"k\": 1}"), SPAN(8, "mm", 10, 20, "{\"k\":2}"), 0, "", 0, ""},
	{"busy", "\"ts\":40,\"dur\":10", "\"ts\":40,\"dur\":10.002", REDUCER_M1, "1/8 worker", 0,
	 "busy 30.000 us in the raw trace, 30.002 us"},
	{"step", "\"ts\":0,\"dur\":300", "\"ts\":0,\"dur\":299", REDUCER_M2, "1/7", 0, "step mark \"ProfilerStep#1\""},
	{"longest", SPAN(8, "relu", 120, 8, "{}"), "", REDUCER_M3, "1/8 worker", 120000, "\"relu\" of 8.000 us, is missing"},
	{"counter", "\"used\":9", "\"used\":8", REDUCER_M4, "1", 1000, "largest value of counter \"mem used\""},
	{"name", "\"relu\"", "\"rely\"", REDUCER_M5, "1/8 worker", 120000, "\"rely\" is no name of the raw trace"},
};

START_TEST(formats_may_differ)
{
	const struct change *change = &crossed[_i];
	struct reducer_verify_report report;
	cross(change->from, change->to, &report);
	bool good = change->promise ? is_told(change, &report) : failures(&report) == 0;
	if (!good)
		print_differences(change->what, &report);
	ck_assert_msg(good, "%s", change->what);
}
END_TEST

enum { EVENTS = 60, LINE = 160, HORIZON = 400 };

/* A random trace: one event a line, flows whole. Times are ns below HORIZON. */
struct random_trace {
	char line[EVENTS][LINE];
	int start[EVENTS], length[EVENTS]; /* of spans; length -1 for anything else */
	int n;
};

__attribute__((format(printf, 2, 3))) static char *add_line(struct random_trace *trace, const char *format, ...)
{
	va_list values;
	va_start(values, format);
	vsnprintf(trace->line[trace->n], LINE, format, values);
	va_end(values);
	trace->length[trace->n] = -1;
	return trace->line[trace->n++];
}

static void add_span(struct random_trace *trace, int start, int length)
{
	add_line(trace, "{\"ph\":\"X\",\"name\":\"s%d\",\"pid\":1,\"tid\":1,\"ts\":0.%03d,\"dur\":0.%03d}",
		 (int)test_random_below(3), start, length);
	trace->start[trace->n - 1] = start;
	trace->length[trace->n - 1] = length;
}

static void make_spans(struct random_trace *trace)
{
	trace->n = 0;
	while (trace->n < EVENTS / 2) {
		int start = (int)test_random_below(HORIZON);
		add_span(trace, start, (int)test_random_below((uint64_t)(HORIZON - start) / 4 + 1));
	}
}

static void add_any(struct random_trace *trace)
{
	unsigned ts = (unsigned)test_random_below(HORIZON), tid = (unsigned)test_random_below(3);
	switch (test_random_below(7)) {
	case 0:
		add_line(trace, "{\"ph\":\"i\",\"name\":\"i\",\"pid\":1,\"tid\":%u,\"ts\":0.%03u}", tid, ts);
		break;
	case 1:
		add_line(trace, "{\"ph\":\"C\",\"name\":\"c\",\"pid\":1,\"ts\":0.%03u,\"args\":{\"v\":%u}}", ts, tid);
		break;
	case 2:
		add_line(trace, "{\"ph\":\"B\",\"name\":\"b\",\"pid\":1,\"tid\":%u,\"ts\":0.%03u}", tid, ts);
		break;
	case 3:
		add_line(trace, "{\"ph\":\"E\",\"pid\":1,\"tid\":%u,\"ts\":0.%03u,\"args\":{\"r\":1}}", tid, ts);
		break;
	case 4:
		add_line(trace, "{\"ph\":\"b\",\"name\":\"a\",\"cat\":\"a\",\"id\":%u,\"pid\":1,\"ts\":0.%03u}", tid, ts);
		break;
	case 5:
		add_line(trace, "{\"ph\":\"e\",\"name\":\"a\",\"cat\":\"a\",\"id\":%u,\"pid\":1,\"ts\":0.%03u}", tid, ts);
		break;
	default:
		add_line(trace, "{\"ph\":\"X\",\"name\":\"x\",\"pid\":1,\"tid\":%u,\"ts\":0.%03u,\"dur\":%d}", tid, ts,
			 (int)test_random_below(3) - 1);
		break;
	}
}

/* As a text, without line `without` (-1: all), and with a mark where `bin_ns` is not 0. */
static void write_trace(const struct random_trace *trace, int without, int bin_ns, char *out, size_t room)
{
	size_t used = (size_t)snprintf(out, room, "[");
	for (int i = 0; i < trace->n; i++)
		if (i != without)
			used += (size_t)snprintf(out + used, room - used, "%s,\n", trace->line[i]);
	if (bin_ns)
		snprintf(out + used, room - used,
			 "{\"ph\":\"M\",\"name\":\"driverec.reduced\",\"args\":{\"version\":1,\"bin_ps\":\"%d000\","
			 "\"origin_ps\":\"0\"}}]", bin_ns);
	else
		snprintf(out + used, room - used, "]");
}

static char raw_random[EVENTS * LINE + 256], reduced_random[EVENTS * LINE + 256];

START_TEST(copies_pass_and_what_is_gone_is_missed)
{
	struct reducer_verify_report report;
	struct random_trace trace;
	for (int round = 0; round < 100; round++) {
		make_spans(&trace);
		while (trace.n < EVENTS)
			add_any(&trace);
		int bin = 1 + (int)test_random_below(HORIZON);
		write_trace(&trace, -1, 0, raw_random, sizeof(raw_random));
		write_trace(&trace, -1, bin, reduced_random, sizeof(reduced_random));
		verify(raw_random, reduced_random, &report);
		print_differences("copy", &report);
		ck_assert_uint_eq(failures(&report), 0);
		/* Any of them but a counter sample, which another may stand for. */
		int gone = (int)test_random_below(EVENTS);
		if (strstr(trace.line[gone], "\"C\""))
			continue;
		write_trace(&trace, gone, bin, reduced_random, sizeof(reduced_random));
		verify(raw_random, reduced_random, &report);
		ck_assert_msg(failures(&report) > 0, "%s is not missed", trace.line[gone]);
	}
}
END_TEST

/* Busy ns a bin, from a row of ns. */
static void brute_busy(const struct random_trace *trace, int bin_ns, int busy[HORIZON])
{
	bool at[HORIZON] = {false};
	for (int i = 0; i < trace->n; i++)
		for (int ns = 0; ns < trace->length[i]; ns++)
			at[trace->start[i] + ns] = true;
	memset(busy, 0, HORIZON * sizeof(*busy));
	for (int ns = 0; ns < HORIZON; ns++)
		busy[ns / bin_ns] += at[ns];
}

START_TEST(busy_time_is_that_of_brute_force)
{
	struct reducer_verify_report report;
	struct random_trace trace;
	int raw[HORIZON], reduced[HORIZON], found = 0;
	for (int round = 0; round < 200; round++) {
		int bin = 1 + (int)test_random_below(60), at = (int)test_random_below(EVENTS / 2);
		uint64_t wrong = 0;
		make_spans(&trace);
		write_trace(&trace, -1, 0, raw_random, sizeof(raw_random));
		brute_busy(&trace, bin, raw);
		trace.n = at;
		add_span(&trace, (int)test_random_below(HORIZON / 2), (int)test_random_below(HORIZON / 8));
		trace.n = EVENTS / 2;
		brute_busy(&trace, bin, reduced);
		write_trace(&trace, -1, bin, reduced_random, sizeof(reduced_random));
		for (int i = 0; i < HORIZON; i++)
			wrong += abs(raw[i] - reduced[i]) > 1;
		verify(raw_random, reduced_random, &report);
		/* Bins that are full for long are told as one. */
		ck_assert_msg((report.failed[REDUCER_M1] > 0) == (wrong > 0), "%d bins are wrong, %d told", (int)wrong,
			      (int)report.failed[REDUCER_M1]);
		ck_assert_uint_le(report.failed[REDUCER_M1], wrong);
		found += wrong > 0;
	}
	ck_assert_int_gt(found, 20);
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

int main(void)
{
	Suite *suite = suite_create("verify");
	TCase *passes = tcase_create("passes"), *changed = tcase_create("changed"), *judged = tcase_create("pairs");
	TCase *limits = tcase_create("refused"), *formats = tcase_create("formats");
	TCase *random = tcase_create("random");
	tcase_add_test(passes, what_belongs_together_passes);
	tcase_add_test(passes, what_limits_is_reported);
	tcase_add_test(passes, identical_files_need_no_mark);
	tcase_add_loop_test(changed, change_is_told, 0, COUNT(changes));
	tcase_add_loop_test(judged, pair_is_judged, 0, COUNT(pairs));
	tcase_add_loop_test(limits, what_cannot_be_compared_is_refused, 0, COUNT(refused));
	tcase_add_test(limits, missing_file_is_an_error);
	tcase_add_loop_test(formats, formats_may_differ, 0, COUNT(crossed));
	tcase_set_timeout(random, 60);
	tcase_add_test(random, copies_pass_and_what_is_gone_is_missed);
	tcase_add_test(random, busy_time_is_that_of_brute_force);
	suite_add_tcase(suite, passes);
	suite_add_tcase(suite, changed);
	suite_add_tcase(suite, judged);
	suite_add_tcase(suite, limits);
	suite_add_tcase(suite, formats);
	suite_add_tcase(suite, random);
	return test_run(suite);
}
