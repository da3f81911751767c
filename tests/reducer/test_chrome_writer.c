/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever goes in, what comes out is JSON that says as much of it, for us and for Python's reader. */
#include <reducer/chrome.h>
#include <reducer/chrome_writer.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

enum { EVENTS_MAX = 64, TEXT_MAX = 8192 };

/* What was read back of one event. */
struct seen {
	uint8_t kind, has_time, has_duration;
	int64_t start_ns, duration_ns;
	uint16_t start_ps, duration_ps;
	char name[TEXT_MAX], category[TEXT_MAX], track[TEXT_MAX], args[TEXT_MAX];
	size_t name_bytes;
};

struct output {
	const char *path;
	int fd;
	struct reducer_chrome_writer *writer;
	struct reducer_chrome_writer_stats stats;
	unsigned empty; /* events that nothing can be said of: a reader passes {} over */
};

static struct seen seen[EVENTS_MAX];
static unsigned n_seen, n_members;

static struct reducer_text text(const char *from)
{
	return (struct reducer_text){from, from ? strlen(from) : 0};
}

static void keep(char out[TEXT_MAX], struct reducer_text from)
{
	ck_assert_uint_lt(from.bytes, TEXT_MAX);
	memcpy(out, from.bytes ? from.data : "", from.bytes);
	out[from.bytes] = 0;
}

static int see_event(void *context, const struct reducer_event *event)
{
	struct seen *one = &seen[n_seen];
	(void)context;
	ck_assert_uint_lt(n_seen, EVENTS_MAX);
	n_seen++;
	*one = (struct seen){.kind = event->kind, .has_time = event->has_time, .has_duration = event->has_duration,
			     .start_ns = event->start_ns, .duration_ns = event->duration_ns,
			     .start_ps = event->start_ps, .duration_ps = event->duration_ps};
	keep(one->name, event->name);
	one->name_bytes = event->name.bytes;
	keep(one->category, event->category);
	keep(one->track, event->track);
	keep(one->args, event->args);
	return 0;
}

static int see_member(void *context, const struct reducer_member *member)
{
	(void)context, (void)member;
	n_members++;
	return 0;
}

static struct output begin(const struct reducer_chrome_writer_options *options)
{
	struct output output = {.path = test_path(test_folder(), "out.json")};
	output.fd = open(output.path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_ge(output.fd, 0);
	assert_ok(reducer_chrome_writer_new(output.fd, options, &output.writer));
	return output;
}

/* Python's reader says nothing but yes; where there is no Python, ours is strict about damage too. */
static void ck_python_reads(const char *path)
{
#ifdef PYTHON3
	static char code[] = "import gzip, json, sys\n"
			     "raw = open(sys.argv[1], 'rb').read()\n"
			     "raw = gzip.decompress(raw) if raw[:2] == b'\\x1f\\x8b' else raw\n"
			     "def no(word): raise ValueError(word)\n"
			     "json.loads(raw.decode('utf-8'), parse_constant=no)\n";
	int status;
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		execl(PYTHON3, PYTHON3, "-c", code, path, (char *)NULL);
		_exit(127);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(status == 0, "%s is no JSON for Python: status %#x", path, (unsigned)status);
#else
	(void)path;
#endif
}

/* Ends the output and reads it back: undamaged JSON, with as many events as were written. */
static void end(struct output *output)
{
	struct reducer_input *input;
	struct reducer_read_report report;
	const struct reducer_sink sink = {.event = see_event, .member = see_member};
	assert_ok(reducer_chrome_writer_finish(output->writer));
	output->stats = *reducer_chrome_writer_stats(output->writer);
	reducer_chrome_writer_free(output->writer);
	close(output->fd);
	n_seen = n_members = 0;
	ck_python_reads(output->path);
	assert_ok(reducer_input_open(output->path, &input, NULL));
	assert_ok(reducer_chrome_read(input, &sink, NULL, &report));
	reducer_input_free(input);
	ck_assert_msg(report.damaged == 0 && report.n_problems == 0, "read back damaged: %s", report.problem[0].what);
	ck_assert_uint_eq(n_seen + output->empty, output->stats.events);
}

static void write_named(struct output *output, struct reducer_text name)
{
	struct reducer_event event = {.kind = DREC_SPAN, .has_time = 1, .has_duration = 1, .start_ns = 1000,
				      .duration_ns = 2000, .name = name, .category = name};
	event.group = text("7");
	event.track = text("\"a track\"");
	assert_ok(reducer_chrome_writer_event(output->writer, &event));
}

/* --- names --- */

#define NAME(bytes, back) {bytes, sizeof(bytes) - 1, back, sizeof(back) - 1}
static const struct {
	const char *bytes;
	size_t count;
	const char *back;
	size_t back_count;
} hostile[] = {
	NAME("plain", "plain"),
	NAME("say \"no\"", "say \"no\""),
	NAME("back\\slash\\", "back\\slash\\"),
	NAME("\\u0041 and \\\"", "\\u0041 and \\\""),
	NAME("\"}],\"traceEvents\":[{", "\"}],\"traceEvents\":[{"),
	NAME("\x01\x02\b\f\n\r\t\x1b\x1f\x7f", "\x01\x02\b\f\n\r\t\x1b\x1f\x7f"),
	NAME("a\0b", "a\0b"),
	NAME("\0", "\0"),
	NAME("µs → \xf0\x9f\x98\x80", "µs → \xf0\x9f\x98\x80"),
	NAME("bad \xff\xfe", "bad \xef\xbf\xbd\xef\xbf\xbd"),
	NAME("cut \xe2\x82", "cut \xef\xbf\xbd\xef\xbf\xbd"),
	NAME("overlong \xc0\xaf", "overlong \xef\xbf\xbd\xef\xbf\xbd"),
	NAME("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"),
	NAME("line\xe2\x80\xa8separator", "line\xe2\x80\xa8separator"),
	NAME("</script>", "</script>"),
};

START_TEST(hostile_names_come_back)
{
	struct output output = begin(NULL);
	for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++)
		write_named(&output, (struct reducer_text){hostile[i].bytes, hostile[i].count});
	end(&output);
	for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
		ck_assert_msg(seen[i].name_bytes == hostile[i].back_count &&
				      memcmp(seen[i].name, hostile[i].back, hostile[i].back_count) == 0,
			      "name %zu came back as \"%s\"", i, seen[i].name);
		ck_assert_str_eq(seen[i].category, seen[i].name);
		ck_assert_int_eq(seen[i].start_ns, 1000);
		ck_assert_int_eq(seen[i].duration_ns, 2000);
	}
}
END_TEST

START_TEST(long_names_come_back)
{
	static char name[5 << 10];
	struct output output = begin(NULL);
	for (size_t i = 0; i < sizeof(name); i++)
		name[i] = "abc\"\\ \n"[i % 7];
	write_named(&output, (struct reducer_text){name, sizeof(name)});
	write_named(&output, (struct reducer_text){NULL, 0});
	end(&output);
	ck_assert_uint_eq(seen[0].name_bytes, sizeof(name));
	ck_assert_mem_eq(seen[0].name, name, sizeof(name));
	ck_assert_str_eq(seen[1].name, "");
}
END_TEST

/* A JSON text as it was written stays byte for byte where it is one; else what it says is written. */
START_TEST(raw_names)
{
	static const struct {
		const char *raw, *said;
		int repaired;
	} names[] = {
		{"\"a\\u0062\\/c\"", "ab/c", 0},
		{"\"lone \\ud800 surrogate\"", "lone \xef\xbf\xbd surrogate", 0},
		{"\"low \\udc00\"", "low \xef\xbf\xbd", 0},
		{"\"not ended", "not ended", 1},
		{"\"quote\"inside\"", "quote\"inside", 1},
		{"\"bad \\x escape\"", "bad \\x escape", 1},
		{"\"control \x01\"", "control \x01", 1},
		{"\"utf8 \xff\"", "utf8 \xef\xbf\xbd", 1},
		{"name", "name", 1},
	};
	unsigned repaired = 0;
	size_t count = sizeof(names) / sizeof(names[0]), bytes;
	struct output output = begin(NULL);
	for (size_t i = 0; i < count; i++) {
		struct reducer_event event = {.kind = DREC_INSTANT, .name = text(names[i].said),
					      .name_raw = text(names[i].raw)};
		assert_ok(reducer_chrome_writer_event(output.writer, &event));
		repaired += names[i].repaired != 0;
	}
	end(&output);
	ck_assert_uint_eq(output.stats.repaired, repaired);
	char *file = test_read_file(output.path, &bytes);
	for (size_t i = 0; i < count; i++) {
		ck_assert_str_eq(seen[i].name, names[i].said);
		char member[80];
		snprintf(member, sizeof(member), "\"name\":%s}", names[i].raw);
		ck_assert_msg((strstr(file, member) != NULL) == !names[i].repaired, "%s", names[i].raw);
	}
	free(file);
}
END_TEST

/* --- values --- */

START_TEST(damaged_values_are_made_whole)
{
	static const char *const values[] = {"",     "N/A",    "NaN",     "{",    "[1,2",	 "{\"a\":}", "\"open",
					     "1e999", "-",     "01",      "}",    "],\"x\":[", "{\"a\":NaN}",
					     "\"\\u12\"", ",",    "{\"a\":1}}", "\xff", "{\"a\" 1}", "[[[[[[", "nul"};
	struct output output = begin(NULL);
	size_t count = sizeof(values) / sizeof(values[0]);
	for (size_t i = 0; i < count; i++) {
		struct reducer_event event = {.kind = DREC_INSTANT, .args_flag = DREC_FLAG_ARGS_JSON, .has_time = 1};
		event.name = text("value");
		event.group = event.track = event.args = text(values[i]);
		assert_ok(reducer_chrome_writer_event(output.writer, &event));
	}
	end(&output);
	ck_assert_uint_gt(output.stats.repaired, count);
	for (size_t i = 0; i < count; i++)
		ck_assert_str_eq(seen[i].name, "value");
}
END_TEST

START_TEST(damaged_members_are_made_whole)
{
	static const char *const members[] = {"\"s\":\"t\"",	 "\"a\":",     ",",	  "\"a\"",
					      "\"x\":1},{\"ph\":\"i\"", "a:1", "\"a\":1,", "\"a\":1,\"b\":[",
					      "}",		 "\"a\":NaN",  "\"\":0",  "\xff\xfe"};
	struct output output = begin(NULL);
	size_t count = sizeof(members) / sizeof(members[0]);
	for (size_t i = 0; i < count; i++) {
		struct reducer_event with = {.kind = DREC_INSTANT, .name = text("value"), .extra = text(members[i])};
		struct reducer_event alone = {.kind = DREC_OTHER, .extra = text(members[i])};
		assert_ok(reducer_chrome_writer_event(output.writer, &with));
		assert_ok(reducer_chrome_writer_event(output.writer, &alone));
	}
	output.empty = 2; /* "," and "}" */
	end(&output);
	ck_assert_uint_gt(output.stats.repaired, 0);
}
END_TEST

START_TEST(valid_args_stay_byte_for_byte)
{
	static const char args[] = "{ \"a\" : 1.50e+3,\t\"b\":[ ] , \"a\":\"\\u00e9\"}";
	struct reducer_event event = {.kind = DREC_INSTANT, .args_flag = DREC_FLAG_ARGS_JSON, .args = text(args)};
	struct output output = begin(NULL);
	assert_ok(reducer_chrome_writer_event(output.writer, &event));
	event.args_flag = DREC_FLAG_ARGS_XSTAT;
	assert_ok(reducer_chrome_writer_event(output.writer, &event));
	end(&output);
	ck_assert_str_eq(seen[0].args, args);
	ck_assert_str_eq(seen[1].args, "");
	ck_assert_uint_eq(output.stats.args_left_out, 1);
	const struct reducer_chrome_writer_options strip = {.strip_args = 1};
	event.args_flag = DREC_FLAG_ARGS_JSON;
	output = begin(&strip);
	assert_ok(reducer_chrome_writer_event(output.writer, &event));
	end(&output);
	ck_assert_str_eq(seen[0].args, "");
	ck_assert_uint_eq(output.stats.args_left_out, 1);
}
END_TEST

START_TEST(counter_values)
{
	static const struct {
		double value;
		const char *args;
	} counters[] = {
		{0, "{\"value\":0}"},
		{-0.0, "{\"value\":-0}"},
		{0.1, "{\"value\":0.1}"},
		{1.0 / 3, "{\"value\":0.3333333333333333}"},
		{9007199254740993.0, "{\"value\":9007199254740992}"},
		{1e308, "{\"value\":1e+308}"},
		{5e-324, "{\"value\":4.94065645841247e-324}"},
		{-INFINITY, "{\"value\":\"-Infinity\"}"},
		{INFINITY, "{\"value\":\"Infinity\"}"},
		{NAN, "{\"value\":\"NaN\"}"},
	};
	struct output output;
	size_t count = sizeof(counters) / sizeof(counters[0]);
	/* Where it is installed, a comma would stand for the point. */
	setlocale(LC_ALL, "de_DE.UTF-8");
	output = begin(NULL);
	for (size_t i = 0; i < count; i++) {
		struct reducer_event event = {.kind = DREC_COUNTER, .value = counters[i].value, .has_time = 1};
		assert_ok(reducer_chrome_writer_event(output.writer, &event));
	}
	end(&output);
	for (size_t i = 0; i < count; i++)
		ck_assert_str_eq(seen[i].args, counters[i].args);
}
END_TEST

/* --- times --- */

START_TEST(times_are_exact)
{
	static const struct {
		int64_t ns;
		uint16_t ps;
	} times[] = {{0, 0},   {1, 0},	      {1, 1},	      {999, 999},	     {-1, 0},
		     {-1, 999}, {-1000, 1},   {1000000, 500}, {1796022764118456789, 7}, {INT64_MAX, 999}};
	size_t count = sizeof(times) / sizeof(times[0]);
	struct output output = begin(NULL);
	for (size_t i = 0; i < count; i++) {
		struct reducer_event event = {.kind = DREC_SPAN, .has_time = 1, .has_duration = 1,
					      .start_ns = times[i].ns, .start_ps = times[i].ps, .duration_ns = 5};
		event.duration_ps = (uint16_t)i;
		assert_ok(reducer_chrome_writer_event(output.writer, &event));
	}
	end(&output);
	for (size_t i = 0; i + 1 < count; i++) {
		ck_assert_int_eq(seen[i].start_ns, times[i].ns);
		ck_assert_uint_eq(seen[i].start_ps, times[i].ps);
		ck_assert_int_eq(seen[i].duration_ns, 5);
		ck_assert_uint_eq(seen[i].duration_ps, i);
	}
}
END_TEST

START_TEST(base_is_subtracted_from_places_only)
{
	const struct reducer_chrome_writer_options options = {.has_base = 1, .base_unix_ns = 1796022764000000000};
	struct reducer_event event = {.kind = DREC_SPAN, .has_time = 1, .has_duration = 1,
				      .start_ns = 1796022764000001500, .duration_ns = 250};
	struct output output = begin(&options);
	assert_ok(reducer_chrome_writer_event(output.writer, &event));
	event.start_ns = 1796022763999999999;
	assert_ok(reducer_chrome_writer_event(output.writer, &event));
	end(&output);
	ck_assert_int_eq(seen[0].start_ns, 1500);
	ck_assert_int_eq(seen[0].duration_ns, 250);
	ck_assert_int_eq(seen[1].start_ns, -1);
}
END_TEST

/* --- marks and losses --- */

START_TEST(marks_and_losses)
{
	struct reducer_event step = {.kind = DREC_MARK, .mark = DREC_MARK_STEP_END, .id = 7, .has_time = 1,
				     .has_duration = 1, .start_ns = 1000, .duration_ns = 9000};
	struct reducer_event phase = {.kind = DREC_MARK, .mark = DREC_MARK_PHASE_BEGIN, .name = text("ev\"al"),
				      .has_time = 1, .start_ns = 2000};
	struct reducer_event loss = {.kind = DREC_LOSS, .mark = DREC_LOSS_TOO_BIG, .has_time = 1, .start_ns = 3000,
				     .count = 12, .duration_ns = 500};
	struct output output = begin(NULL);
	assert_ok(reducer_chrome_writer_event(output.writer, &step));
	assert_ok(reducer_chrome_writer_event(output.writer, &phase));
	assert_ok(reducer_chrome_writer_event(output.writer, &loss));
	end(&output);
	ck_assert_str_eq(seen[0].name, "step 7");
	ck_assert_int_eq(seen[0].kind, DREC_SPAN);
	ck_assert_int_eq(seen[0].duration_ns, 9000);
	ck_assert_str_eq(seen[0].category, "driverec.mark");
	ck_assert_str_eq(seen[1].name, "phase ev\"al begins");
	ck_assert_int_eq(seen[1].kind, DREC_INSTANT);
	ck_assert_str_eq(seen[2].category, "driverec.loss");
	ck_assert_int_eq(strncmp(seen[2].name, "lost: ", 6), 0);
	ck_assert_str_eq(seen[2].args, "{\"events\":12,\"for_us\":0.500}");
}
END_TEST

/* --- roots and packing --- */

static void write_some(struct output *output)
{
	const struct reducer_member early = {text("early \"key\""), text("{\"a\":1}")};
	const struct reducer_member late = {text("late"), text("[broken")};
	assert_ok(reducer_chrome_writer_member(output->writer, &early));
	for (unsigned i = 0; i < 20; i++)
		write_named(output, text("some"));
	assert_ok(reducer_chrome_writer_member(output->writer, &late));
}

START_TEST(object_root_has_members_on_both_sides)
{
	struct output output = begin(NULL);
	write_some(&output);
	end(&output);
	ck_assert_uint_eq(n_members, 2);
	ck_assert_uint_eq(n_seen, 20);
	ck_assert_uint_eq(output.stats.repaired, 1);
	ck_assert_uint_eq(output.stats.text_bytes, output.stats.file_bytes);
}
END_TEST

START_TEST(array_root_leaves_members_out)
{
	const struct reducer_chrome_writer_options options = {.array_root = 1};
	struct output output = begin(&options);
	size_t bytes;
	write_some(&output);
	end(&output);
	char *file = test_read_file(output.path, &bytes);
	ck_assert_int_eq(file[0], '[');
	free(file);
	ck_assert_uint_eq(n_members, 0);
	ck_assert_uint_eq(output.stats.members_left_out, 2);
}
END_TEST

START_TEST(nothing_at_all)
{
	for (int array = 0; array < 2; array++) {
		const struct reducer_chrome_writer_options options = {.array_root = array};
		struct output output = begin(&options);
		assert_ok(reducer_chrome_writer_finish(output.writer));
		reducer_chrome_writer_free(output.writer);
		close(output.fd);
		ck_python_reads(output.path);
	}
	reducer_chrome_writer_free(NULL);
}
END_TEST

START_TEST(gzip_says_the_same_in_fewer_bytes)
{
	struct output plain = begin(NULL);
	size_t bytes, least = SIZE_MAX;
	write_some(&plain);
	end(&plain);
	for (int level = 1; level <= 9; level += 4) {
		const struct reducer_chrome_writer_options options = {.gzip_level = level};
		struct output output = begin(&options);
		write_some(&output);
		end(&output);
		ck_assert_uint_eq(output.stats.text_bytes, plain.stats.text_bytes);
		ck_assert_uint_lt(output.stats.file_bytes, plain.stats.file_bytes);
		char *file = test_read_file(output.path, &bytes);
		ck_assert_uint_eq(bytes, output.stats.file_bytes);
		ck_assert_mem_eq(file, "\x1f\x8b", 2);
		free(file);
		/* The fast levels may be another library's. */
		if (level <= 3)
			continue;
		ck_assert_uint_le(bytes, least);
		least = bytes;
	}
	ck_assert_int_eq(reducer_chrome_writer_level("a.json.gz"), 6);
	ck_assert_int_eq(reducer_chrome_writer_level("a.json"), 0);
	ck_assert_int_eq(reducer_chrome_writer_level("gz"), 0);
	ck_assert_int_eq(reducer_chrome_writer_level(""), 0);
}
END_TEST

START_TEST(same_input_same_bytes)
{
	const struct reducer_chrome_writer_options options = {.gzip_level = 6};
	char *first = NULL;
	size_t first_bytes = 0, bytes;
	for (int i = 0; i < 2; i++) {
		struct output output = begin(&options);
		write_some(&output);
		end(&output);
		char *file = test_read_file(output.path, &bytes);
		if (first) {
			ck_assert_uint_eq(bytes, first_bytes);
			ck_assert_mem_eq(file, first, bytes);
			free(file);
		} else {
			first = file;
			first_bytes = bytes;
		}
	}
	free(first);
}
END_TEST

/* --- what cannot be written --- */

/* Writes until it fails; from then on every call says the same. */
static void ck_fails(int fd, int gzip_level, int expected)
{
	const struct reducer_chrome_writer_options options = {.gzip_level = gzip_level};
	const struct reducer_member member = {text("more"), text("1")};
	struct reducer_event event = {.kind = DREC_INSTANT, .has_time = 1};
	struct reducer_chrome_writer *writer;
	char name[64];
	int result = 0;
	assert_ok(reducer_chrome_writer_new(fd, &options, &writer));
	for (unsigned i = 0; i < 200000 && result == 0; i++) {
		snprintf(name, sizeof(name), "event %u %x", i, i * 2654435761u);
		event.name = text(name);
		event.start_ns = i;
		result = reducer_chrome_writer_event(writer, &event);
	}
	ck_assert_int_eq(result, expected);
	ck_assert_int_eq(reducer_chrome_writer_event(writer, &event), expected);
	ck_assert_int_eq(reducer_chrome_writer_member(writer, &member), expected);
	ck_assert_int_eq(reducer_chrome_writer_finish(writer), expected);
	reducer_chrome_writer_free(writer);
}

START_TEST(failures_are_told)
{
	for (int level = 0; level <= 6; level += 6) {
		int ends[2], fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
		ck_assert_int_ge(fd, 0);
		ck_fails(fd, level, -ENOSPC);
		close(fd);
		signal(SIGPIPE, SIG_IGN);
		ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
		close(ends[0]);
		ck_fails(ends[1], level, -EPIPE);
		close(ends[1]);
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		ck_fails(fd, level, -EBADF);
		close(fd);
	}
}
END_TEST

START_TEST(a_failure_at_the_very_end)
{
	struct reducer_chrome_writer *writer;
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	assert_ok(reducer_chrome_writer_new(fd, NULL, &writer));
	ck_assert_int_eq(reducer_chrome_writer_finish(writer), -ENOSPC);
	ck_assert_int_eq(reducer_chrome_writer_finish(writer), -ENOSPC);
	reducer_chrome_writer_free(writer);
	close(fd);
}
END_TEST

static void add(Suite *suite, const char *name, const TTest *const tests[])
{
	TCase *tcase = tcase_create(name);
	for (; *tests; tests++)
		tcase_add_test(tcase, *tests);
	tcase_set_timeout(tcase, 30);
	suite_add_tcase(suite, tcase);
}

int main(void)
{
	Suite *suite = suite_create("chrome_writer");
	add(suite, "names", (const TTest *const[]){hostile_names_come_back, long_names_come_back, raw_names, NULL});
	add(suite, "values", (const TTest *const[]){damaged_values_are_made_whole, damaged_members_are_made_whole,
						    valid_args_stay_byte_for_byte, counter_values, NULL});
	add(suite, "times", (const TTest *const[]){times_are_exact, base_is_subtracted_from_places_only, NULL});
	add(suite, "marks and losses", (const TTest *const[]){marks_and_losses, NULL});
	add(suite, "roots and packing",
	    (const TTest *const[]){object_root_has_members_on_both_sides, array_root_leaves_members_out, nothing_at_all,
				   gzip_says_the_same_in_fewer_bytes, same_input_same_bytes, NULL});
	add(suite, "failures", (const TTest *const[]){failures_are_told, a_failure_at_the_very_end, NULL});
	return test_run(suite);
}
