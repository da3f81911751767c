/* SPDX-License-Identifier: Apache-2.0 */
/* Small made-up traces: each form and each damage that real writers produce, with the right reading. */
#include <reducer/chrome.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

/* What was read, as text: one event a line, members as KEY=VALUE. */
struct heard {
	char text[16384];
	size_t used;
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
	say_text(heard, "cat", event->category);
	say_text(heard, "pid", event->group);
	say_text(heard, "tid", event->track);
	if (event->has_time)
		say(heard, " ts=%lld.%03u", (long long)event->start_ns, event->start_ps);
	if (event->has_duration)
		say(heard, " dur=%lld.%03u", (long long)event->duration_ns, event->duration_ps);
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

/* Feeds `text` in pieces of at most `piece` bytes (0 = at once; SIZE_MAX = 1 .. 64 by chance). */
static int hear(const char *text, size_t bytes, size_t piece, struct heard *heard, struct reducer_read_report *report)
{
	struct reducer_sink sink = {heard, hear_event, hear_member};
	struct reducer_chrome *reader;
	int result = 0;
	heard->used = 0;
	heard->text[0] = 0;
	assert_ok(reducer_chrome_new(&sink, NULL, report, &reader));
	for (size_t at = 0; at < bytes && result == 0;) {
		size_t some = piece == SIZE_MAX ? 1 + test_random_below(64) : piece ? piece : bytes;
		if (some > bytes - at)
			some = bytes - at;
		result = reducer_chrome_feed(reader, text + at, some);
		at += some;
	}
	if (result == 0)
		result = reducer_chrome_finish(reader);
	reducer_chrome_free(reader);
	return result;
}

struct form {
	const char *what, *text, *heard;
	unsigned damaged;
};

#define A "{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":2}"
#define B "{\"ph\":\"X\",\"name\":\"b\",\"ts\":3,\"dur\":4}"
#define HEARD_A "span name=a ts=1000.000 dur=2000.000\n"
#define HEARD_B "span name=b ts=3000.000 dur=4000.000\n"

static const struct form forms[] = {
	{"array", "[" A "," B "]", HEARD_A HEARD_B, 0},
	{"array without end", "[" A "," B, HEARD_A HEARD_B, 0},
	{"object", "{\"traceEvents\":[" A "]}", HEARD_A, 0},
	{"metadata first", "{\"metadata\":{\"x\":[1]},\"traceEvents\":[" A "]}", "member metadata={\"x\":[1]}\n" HEARD_A, 0},
	{"late base", "{\"traceEvents\":[" A "],\"baseTimeNanoseconds\":1711964646000000000}",
	 HEARD_A "member baseTimeNanoseconds=1711964646000000000\n", 0},
	{"lines", A "\n" B "\n", HEARD_A HEARD_B, 0},
	{"trailing {}", "{\"traceEvents\":[" A ",{}]}", HEARD_A, 0},
	{"commas missing and too many", "[," A B ",,]", HEARD_A HEARD_B, 0},
	{"unterminated object", "{\"traceEvents\":[" A, HEARD_A, 1},
	{"cut event", "{\"traceEvents\":[" A ",{\"ph\":\"X\",\"na", HEARD_A, 1},
	{"NaN, Infinity, N/A", "[{\"ph\":\"C\",\"args\":{\"a\":NaN,\"b\":-Infinity,\"c\":N/A}}]",
	 "counter args={\"a\":NaN,\"b\":-Infinity,\"c\":N/A}\n", 0},
	{"empty value", "[{\"ph\":\"i\",\"args\":{\"d\": , \"e\":1}}]", "instant args={\"d\": , \"e\":1}\n", 0},
	{"bad escape", "[{\"ph\":\"i\",\"name\":\"C:\\dir\"}]", "instant name=C:\\dir\n", 0},
	{"good escapes", "[{\"ph\":\"i\",\"name\":\"\\u00e9\\ud83d\\ude00\\n\"}]", "instant name=\xc3\xa9\xf0\x9f\x98\x80\n\n", 0},
	{"invalid UTF-8", "[{\"ph\":\"i\",\"name\":\"x\xff\"}]", "instant name=x\xef\xbf\xbd\n", 0},
	{"raw newline", "[{\"ph\":\"i\",\"name\":\"a\nb\"}]", "instant name=a\nb\n", 0},
	{"unescaped quotes", "[{\"ph\":\"i\",\"name\":\"f(\"a\", b)\",\"pid\":1}," A "]",
	 "instant name=f(\"a\", b) pid=1\n" HEARD_A, 1},
	{"missing quote before tid", "[{\"ph\":\"i\",\"pid\":1,tid\":7}," A "]", "instant pid=1 tid=7\n" HEARD_A, 1},
	{"junk between", "[" A ",}}garbage," B "]", HEARD_A HEARD_B, 1},
	{"string tid and ts", "[{\"ph\":\"X\",\"tid\":\"stream 7\",\"ts\":\"1.5\",\"dur\":0}]",
	 "span tid=\"stream 7\" ts=1500.000 dur=0.000\n", 0},
	{"64-bit id", "[{\"ph\":\"s\",\"id\":18446744073709551615}]", "flow_begin id=18446744073709551615\n", 0},
	{"id that does not print back", "[{\"ph\":\"s\",\"id\":\"0x1\"}]", "flow_begin extra=\"id\":\"0x1\"\n", 0},
	{"19 digits", "[{\"ph\":\"i\",\"ts\":1712170295123456.789}]", "instant ts=1712170295123456789.000\n", 0},
	{"half to even", "[{\"ph\":\"i\",\"ts\":0.0000005},{\"ph\":\"i\",\"ts\":0.0000015}]",
	 "instant ts=0.000\ninstant ts=0.002\n", 0},
	{"exponents and signs", "[{\"ph\":\"i\",\"ts\":-1.5e-3},{\"ph\":\"i\",\"ts\":2E3}]",
	 "instant ts=-2.500\ninstant ts=2000000.000\n", 0},
	{"bad ts", "[{\"ph\":\"X\",\"ts\":null,\"dur\":\"q\"}]", "span extra=\"ts\":null,\"dur\":\"q\"\n", 0},
	{"other kinds", "[{\"ph\":\"R\",\"name\":\"r\",\"s\":\"g\"}]", "other name=r extra=\"ph\":\"R\",\"s\":\"g\"\n", 0},
	{"flow end", "[{\"ph\":\"f\",\"id\":3,\"bp\":\"e\"}]", "flow_end id=3 extra=\"bp\":\"e\"\n", 0},
	{"] in a text", "{\"traceName\":\"a],[b\",\"traceEvents\":[" A "]}", "member traceName=\"a],[b\"\n" HEARD_A, 0},
	{"damaged member", "{\"m\":{\"a\":\"x\"y},\"traceEvents\":[" A "]}", HEARD_A, 1},
	{"twice", "[{\"ph\":\"i\",\"name\":\"a\",\"name\":\"b\"}]", "instant name=b\n", 1},
};

START_TEST(form_is_read)
{
	const struct form *form = &forms[_i];
	static struct heard heard;
	struct reducer_read_report report;
	const size_t pieces[] = {0, 1, 7, SIZE_MAX};
	for (size_t i = 0; i < 4; i++) {
		int result = hear(form->text, strlen(form->text), pieces[i], &heard, &report);
		ck_assert_msg(result == 0, "%s: %d", form->what, result);
		ck_assert_msg(strcmp(heard.text, form->heard) == 0, "%s: heard\n%snot\n%s", form->what, heard.text,
			      form->heard);
		ck_assert_msg(report.damaged == form->damaged, "%s: %llu damaged: %s", form->what,
			      (unsigned long long)report.damaged, report.problem[0].what);
	}
}
END_TEST

static const struct {
	const char *text, *why;
} refused[] = {
	{"", "empty"},
	{" \n", "nothing but space"},
	{"hello", "begins with 'h'"},
	{"[1,2]", "not of trace events"},
	{"{\"a\":1,\"b\":2}", "without traceEvents; it has \"a\", \"b\""},
	{"{\"rocprofiler-sdk-tool\":[{}]}", "rocprofiler"},
	{"\x0a\x05xyz", "binary data"},
	{"{}", "without `ph`"},
};

START_TEST(no_trace_is_refused)
{
	static struct heard heard;
	struct reducer_read_report report;
	ck_assert_int_eq(hear(refused[_i].text, strlen(refused[_i].text), 0, &heard, &report), -EBADMSG);
	ck_assert_uint_gt(report.n_problems, 0);
	const char *what = report.problem[report.n_problems - 1].what;
	ck_assert_msg(strstr(what, refused[_i].why) != NULL, "row %d: %s", _i, what);
}
END_TEST

START_TEST(any_cut_keeps_what_is_whole)
{
	static const char text[] = "{\"traceEvents\":[" A ",\n" B ",\n" A "],\"traceName\":\"x\"}";
	static struct heard heard;
	struct reducer_read_report report;
	for (size_t bytes = sizeof("{\"traceEvents\":[") - 1; bytes < sizeof(text); bytes++) {
		size_t whole = 0;
		for (size_t i = 0; i < bytes; i++)
			whole += text[i] == '}' && i < sizeof(text) - 2;
		ck_assert_int_eq(hear(text, bytes, 0, &heard, &report), 0);
		ck_assert_msg(report.events == whole, "cut at %zu: %llu events, not %zu", bytes,
			      (unsigned long long)report.events, whole);
		ck_assert_msg((report.damaged > 0) == (bytes < sizeof(text) - 1), "cut at %zu", bytes);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("chrome_forms");
	TCase *read = tcase_create("forms"), *refuse = tcase_create("refused"), *cut = tcase_create("cut");
	tcase_add_loop_test(read, form_is_read, 0, (int)(sizeof(forms) / sizeof(forms[0])));
	tcase_add_loop_test(refuse, no_trace_is_refused, 0, (int)(sizeof(refused) / sizeof(refused[0])));
	tcase_add_test(cut, any_cut_keeps_what_is_whole);
	suite_add_tcase(suite, read);
	suite_add_tcase(suite, refuse);
	suite_add_tcase(suite, cut);
	return test_run(suite);
}
