/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random traces from one format to another and back: what a format can say comes back, and what it cannot is
 * counted. Everything goes through the faces that the commands use, writer.h and trace.h.
 */
#include <reducer/chrome.h>
#include <reducer/drec_codec.h>
#include <reducer/trace.h>

#include <driverec/driverec.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support.h"

enum { TRACES = 12, EVENTS = 400, TEXT = 1 << 20 };

/* --- random traces, as JSON --- */

struct text {
	char *data;
	size_t used;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int wrote = vsnprintf(text->data + text->used, TEXT - text->used, format, args);
	va_end(args);
	ck_assert(wrote >= 0 && (size_t)wrote < TEXT - text->used);
	text->used += (size_t)wrote;
}

static unsigned one_of(unsigned count)
{
	return (unsigned)test_random_below(count);
}

static const char *word(void)
{
	static const char *const words[] = {"step",
					    "all_reduce",
					    "aten::mm",
					    "\\u00e4\\n\\\"q\\\"",
					    "\xe2\x82\xac uro",
					    "a,b",
					    "name with spaces",
					    "x",
					    "ncclDevKernel_AllReduce_Sum_f32<T>",
					    "0"};
	return words[one_of(sizeof(words) / sizeof(words[0]))];
}

/* In the form that the writers have: a text that says the same by other escapes is the same, and so is `{}`.
 */
static const char *plain_word(void)
{
	const char *text = word();
	while (strstr(text, "\\u"))
		text = word();
	return text;
}

static void add_args(struct text *out)
{
	add(out, ",\"args\":{");
	for (unsigned i = 0, count = 1 + one_of(4); i < count; i++) {
		add(out, "%s\"k%u\":", i ? "," : "", i);
		switch (one_of(7)) {
		case 0:
			add(out, "%lld", (long long)test_random());
			break;
		case 1:
			add(out, "%llu", (unsigned long long)test_random());
			break;
		case 2:
			add(out, "%u.5", one_of(1000));
			break;
		case 3:
			add(out, one_of(2) ? "true" : "null");
			break;
		case 4:
			add(out, "[1,[\"x\",2],{\"y\":false}]");
			break;
		default:
			add(out, "\"%s\"", plain_word());
		}
	}
	add(out, "}");
}

static void add_time(struct text *out, const char *key, unsigned long long us, bool ps)
{
	add(out, ",\"%s\":%llu.%03u", key, us, one_of(1000));
	if (ps)
		add(out, "%03u", one_of(999) + 1);
}

static void add_track(struct text *out)
{
	static const char *const pids[] = {"1", "1074", "0", "-1", "\"Spans\""};
	static const char *const tids[] = {"1", "7", "140022", "\"stream 7\"", "\"PyTorch Profiler\""};
	add(out, ",\"pid\":%s,\"tid\":%s", pids[one_of(5)], tids[one_of(5)]);
}

static void add_event(struct text *out, const char *kinds)
{
	char kind = kinds[one_of((unsigned)strlen(kinds))];
	add(out, "%s{\"ph\":\"%c\"", out->data[out->used - 1] == '[' ? "" : ",\n", kind);
	add(out, ",\"name\":\"%s\"", word());
	if (one_of(3))
		add(out, ",\"cat\":\"%s\"", word());
	add_track(out);
	add_time(out, "ts", 1000000 + test_random_below(2000000), one_of(4) == 0);
	if (kind == 'X')
		add_time(out, "dur", test_random_below(one_of(2) ? 20 : 20000), one_of(4) == 0);
	if (strchr("stfbne", kind) || (kind == 'X' && one_of(8) == 0))
		add(out, ",\"id\":%u", one_of(40));
	if (kind == 'i')
		add(out, ",\"s\":\"t\"");
	if (kind == 'f')
		add(out, ",\"bp\":\"e\"");
	if (one_of(10) == 0)
		add(out, ",\"tts\":%u", one_of(1000));
	if (kind == 'C')
		add(out, ",\"args\":{\"value\":%u.5}", one_of(100));
	else if (one_of(4))
		add_args(out);
	add(out, "}");
}

/* A trace with events of these kinds, in the file `path`. */
static void make_trace(const char *path, const char *kinds, const char *more)
{
	struct text out = {malloc(TEXT), 0};
	ck_assert_ptr_nonnull(out.data);
	add(&out, "{%s\"traceEvents\":[", more);
	for (int i = 0; i < EVENTS; i++)
		add_event(&out, kinds);
	add(&out, "],\"traceName\":\"a \\\"name\\\"\"}");
	test_write_file(path, out.data, out.used);
	free(out.data);
}

/* --- from format to format --- */

static const char *folder;

static const char *path_of(const char *name)
{
	return test_path(folder, name);
}

static uint64_t convert(const char *from, const char *to, struct reducer_left_out *left, size_t *count)
{
	enum reducer_format format;
	struct reducer_problem problem = {0};
	struct reducer_read_report report = {0};
	struct reducer_writer_options options = {0};
	const struct reducer_sink nobody = {0};
	struct reducer_writer *writer;
	int fd = open(to, O_RDWR | O_CREAT | O_TRUNC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_msg(reducer_trace_sniff(from, &format, &problem) == 0, "%s: %s", from, problem.what);
	assert_ok(reducer_trace_read(from, format, &nobody, &report));
	options.has_base = report.has_base;
	options.base_unix_ns = report.base_unix_ns;
	assert_ok(reducer_writer_new(fd, reducer_format_of_name(to), &options, folder, &writer));
	struct reducer_sink sink = reducer_writer_sink(writer);
	assert_ok(reducer_trace_read(from, format, &sink, &report));
	ck_assert_uint_eq(report.damaged, 0);
	assert_ok(reducer_writer_finish(writer));
	if (count)
		*count = reducer_writer_left_out(writer, left, 16);
	uint64_t events = reducer_writer_stats(writer)->events;
	reducer_writer_free(writer);
	close(fd);
	return events;
}

/* Through a ring: the path of what is left of it. */
static const char *through_ring(const char *from)
{
	struct drec_options options = {.run_dir = test_shm_folder(),
				       .job = "test",
				       .name = "feed",
				       .ring_bytes = 32 << 20,
				       .chunk_bytes = 1 << 20};
	struct reducer_read_report report;
	const struct reducer_sink nobody = {0};
	struct reducer_ring_sink *ring;
	const char *why = "";
	drec *rec = NULL;
	assert_ok(reducer_trace_read_any(from, &nobody, &report));
	const struct reducer_ring_sink_options base = {.has_base = report.has_base,
						       .base_unix_ns = report.base_unix_ns};
	ck_assert_msg(drec_open_strict(&options, &rec, &why) == 0, "no ring: %s", why);
	assert_ok(reducer_ring_sink_new(rec, &base, &ring));
	struct reducer_sink sink = reducer_ring_sink(ring);
	assert_ok(reducer_trace_read_any(from, &sink, &report));
	ck_assert_uint_eq(reducer_ring_sink_stats(ring)->refused, 0);
	drec_close(rec);
	reducer_ring_sink_free(ring);
	return drec_path(rec);
}

static void ck_same_file(const char *one, const char *other)
{
	size_t one_count, other_count, at = 0;
	char *a = test_read_file(one, &one_count), *b = test_read_file(other, &other_count);
	while (at < one_count && at < other_count && a[at] == b[at])
		at++;
	size_t from = at > 80 ? at - 80 : 0;
	ck_assert_msg(at == one_count && at == other_count, "%zu and %zu bytes; at %zu\n%.200s\nbut\n%.200s",
		      one_count, other_count, at, a + from, b + from);
	free(a);
	free(b);
}

/* --- events as sorted lines, times in Unix time, without what only an order or a form is --- */

struct lines {
	char **line;
	size_t count, room;
	struct reducer_read_report report;
	const char *kinds; /* enum drec_kind, as bytes */
};

static int add_line(void *context, const struct reducer_event *event)
{
	struct lines *lines = context;
	if (!strchr(lines->kinds, event->kind))
		return 0;
	__int128 start = ((__int128)event->start_ns + lines->report.base_unix_ns) * 1000 + event->start_ps;
	__int128 length = (__int128)event->duration_ns * 1000 + event->duration_ps;
	if (lines->count == lines->room) {
		lines->room = lines->room ? 2 * lines->room : 256;
		lines->line = realloc(lines->line, lines->room * sizeof(*lines->line));
		ck_assert_ptr_nonnull(lines->line);
	}
	ck_assert_int_gt(asprintf(&lines->line[lines->count],
				  "%d %lld.%012lld+%lld %.*s/%.*s '%.*s' [%.*s] %.*s {%.*s} %lld",
				  event->kind, (long long)(start / 1000000000000),
				  (long long)(start % 1000000000000), (long long)length,
				  (int)event->group.bytes, event->group.data, (int)event->track.bytes,
				  event->track.data, (int)event->name.bytes, event->name.data,
				  (int)event->category.bytes, event->category.data, (int)event->args.bytes,
				  event->args.data, (int)event->extra.bytes, event->extra.data,
				  event->has_id ? (long long)event->id : -1LL),
			 0);
	lines->count++;
	return 0;
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void read_lines(struct lines *lines, const char *path, const char *kinds)
{
	struct reducer_sink sink = {.context = lines, .event = add_line};
	*lines = (struct lines){.kinds = kinds};
	/* A base that comes after the events is known the second time. */
	const struct reducer_sink nobody = {0};
	assert_ok(reducer_trace_read_any(path, &nobody, &lines->report));
	struct reducer_read_report first = lines->report, again;
	assert_ok(reducer_trace_read_any(path, &sink, &again));
	lines->report = first;
	qsort(lines->line, lines->count, sizeof(*lines->line), compare_lines);
}

static void free_lines(struct lines *lines)
{
	for (size_t i = 0; i < lines->count; i++)
		free(lines->line[i]);
	free(lines->line);
}

static void ck_same_events(const char *one, const char *other, const char *kinds)
{
	struct lines a, b;
	read_lines(&a, one, kinds);
	read_lines(&b, other, kinds);
	for (size_t i = 0; i < a.count && i < b.count; i++)
		ck_assert_msg(strcmp(a.line[i], b.line[i]) == 0, "%s\nbut\n%s", a.line[i], b.line[i]);
	ck_assert_uint_eq(a.count, b.count);
	ck_assert_uint_gt(a.count, 0);
	free_lines(&a);
	free_lines(&b);
}

static const char *const bases[] = {"", "\"baseTimeNanoseconds\":1751410836000000000,",
				    "\"schemaVersion\":1,"};

/* --- properties --- */

START_TEST(chrome_through_drec)
{
	/* Every event; top-level members come first out of a ring, so the whole file is the same from then
	 * on. */
	make_trace(path_of("a.json"), "XXXXiCBEstfbneMP", bases[_i % 3]);
	convert(path_of("a.json"), path_of("plain.json"), NULL, NULL);
	convert(through_ring(path_of("a.json")), path_of("ring.json"), NULL, NULL);
	ck_same_events(path_of("plain.json"), path_of("ring.json"), "\1\2\3\4\5\6\7\10\11\12\13\15\16");
	convert(path_of("ring.json"), path_of("again.json"), NULL, NULL);
	ck_same_file(path_of("ring.json"), path_of("again.json"));
	ck_same_events(path_of("a.json"), path_of("ring.json"), "\1\2\3\4\5\6\7\10\11\12\13\15\16");
}
END_TEST

START_TEST(chrome_through_xplane)
{
	struct reducer_left_out left[16];
	size_t count;
	make_trace(path_of("a.json"), "XXXXi", bases[_i % 3]);
	ck_assert_uint_eq(convert(path_of("a.json"), path_of("b.xplane.pb"), left, &count), EVENTS);
	for (size_t i = 0; i < count; i++)
		ck_assert_msg(0, "left out: %s %llu", left[i].what, (unsigned long long)left[i].count);
	convert(path_of("b.xplane.pb"), path_of("c.json"), NULL, NULL);
	ck_same_events(path_of("a.json"), path_of("c.json"), "\1\2");
}
END_TEST

START_TEST(what_xplane_leaves_out)
{
	/* Every event is written or counted. */
	struct reducer_left_out left[16];
	size_t count;
	uint64_t gone = 0;
	make_trace(path_of("a.json"), "XiCstfP", bases[_i % 3]);
	uint64_t events = convert(path_of("a.json"), path_of("b.xplane.pb"), left, &count);
	for (size_t i = 0; i < count && i < 16; i++)
		gone += left[i].count;
	ck_assert_msg(events + gone == EVENTS, "%llu written and %llu left out", (unsigned long long)events,
		      (unsigned long long)gone);
	convert(path_of("b.xplane.pb"), path_of("c.json"), NULL, NULL);
	ck_same_events(path_of("a.json"), path_of("c.json"), "\1\2");
}
END_TEST

START_TEST(xplane_through_chrome)
{
	make_trace(path_of("a.json"), "XXXXiCbeBEM", bases[_i % 3]);
	convert(path_of("a.json"), path_of("b.xplane.pb"), NULL, NULL);
	convert(path_of("b.xplane.pb"), path_of("c.json"), NULL, NULL);
	convert(path_of("c.json"), path_of("d.xplane.pb"), NULL, NULL);
	convert(path_of("d.xplane.pb"), path_of("e.json"), NULL, NULL);
	ck_same_events(path_of("c.json"), path_of("e.json"), "\1\2\3\15");
	/* And through a ring. */
	convert(through_ring(path_of("b.xplane.pb")), path_of("f.json"), NULL, NULL);
	ck_same_events(path_of("c.json"), path_of("f.json"), "\1\2\3\15");
}
END_TEST

START_TEST(what_perfetto_leaves_out)
{
	/* Every event is written or counted; picoseconds and values are of events that are there. */
	struct reducer_left_out left[16];
	size_t count;
	uint64_t gone = 0;
	make_trace(path_of("a.json"), "XiBEstfbneP", bases[_i % 3]);
	uint64_t events = convert(path_of("a.json"), path_of("b.pftrace"), left, &count);
	for (size_t i = 0; i < count && i < 16; i++)
		if (!strstr(left[i].what, "picoseconds"))
			gone += left[i].count;
	ck_assert_msg(events + gone == EVENTS, "%llu written and %llu left out", (unsigned long long)events,
		      (unsigned long long)gone);
}
END_TEST

START_TEST(a_bare_array_takes_the_base)
{
	/* It has no member to say what its times count from. */
	struct reducer_writer_options options = {
		.array_root = 1, .has_base = 1, .base_unix_ns = 1751410836000000000};
	struct reducer_event event = {
		.kind = DREC_INSTANT, .has_time = 1, .start_ns = 1500, .name = {"a", 1}};
	struct reducer_writer *writer;
	size_t count;
	int fd = open(path_of("a.json"), O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_ok(reducer_writer_new(fd, REDUCER_FORMAT_CHROME, &options, NULL, &writer));
	assert_ok(reducer_writer_event(writer, &event));
	assert_ok(reducer_writer_finish(writer));
	reducer_writer_free(writer);
	close(fd);
	char *text = test_read_file(path_of("a.json"), &count);
	ck_assert_str_eq(text, "[\n{\"ph\":\"i\",\"name\":\"a\",\"ts\":1751410836000001.500}\n]\n");
	free(text);
}
END_TEST

START_TEST(what_is_no_trace)
{
	static const struct {
		const char *bytes, *what;
		size_t count;
	} files[] = {
		{"\x7f"
		 "ELF\2\1\1",
		 "no trace: a program or library (ELF)", 7},
		{"PK\3\4....", "no trace: a zip archive", 8},
		{"SQLite format 3\0", "no trace: an SQLite database", 16},
		{"\n\x04\x50\x01\x68\x01", "a Perfetto trace: this format is written, not read", 6},
		{"hello", "not a Chrome trace: begins with 'h', not with '{' or '['", 5},
		{"", "the file is empty", 0},
		{"  \n", "no JSON: nothing but space", 3},
	};
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct reducer_problem problem = {0};
		enum reducer_format format = REDUCER_FORMAT_NONE;
		test_write_file(path_of("x"), files[i].bytes, files[i].count);
		ck_assert_int_eq(reducer_trace_sniff(path_of("x"), &format, &problem), -EBADMSG);
		ck_assert_str_eq(problem.what, files[i].what);
		ck_assert_int_eq(format, REDUCER_FORMAT_NONE);
	}
	struct reducer_problem problem = {0};
	enum reducer_format format;
	ck_assert_int_eq(reducer_trace_sniff(path_of("none"), &format, &problem), -ENOENT);
	ck_assert_str_eq(problem.what, "No such file or directory");
}
END_TEST

static void make_folder(void)
{
	folder = test_folder();
}

int main(void)
{
	const struct {
		const char *name;
		const TTest *test;
		int rounds;
	} cases[] = {
		{"Chrome through a ring", chrome_through_drec, TRACES},
		{"Chrome through XPlane", chrome_through_xplane, TRACES},
		{"what XPlane leaves out", what_xplane_leaves_out, TRACES},
		{"XPlane through Chrome", xplane_through_chrome, TRACES},
		{"what Perfetto leaves out", what_perfetto_leaves_out, TRACES},
		{"a bare array", a_bare_array_takes_the_base, 1},
		{"what is no trace", what_is_no_trace, 1},
	};
	Suite *suite = suite_create("export_roundtrip");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		TCase *tcase = tcase_create(cases[i].name);
		tcase_set_timeout(tcase, 60);
		tcase_add_checked_fixture(tcase, make_folder, NULL);
		tcase_add_loop_test(tcase, cases[i].test, 0, cases[i].rounds);
		suite_add_tcase(suite, tcase);
	}
	return test_run(suite);
}
