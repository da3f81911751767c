/* SPDX-License-Identifier: Apache-2.0 */
/* What is written as an XSpace comes back: from handed files, and event by event what the format has no field
 * for. */
#include "xplane_support.h"

#include <reducer/chrome.h>
#include <reducer/input.h>
#include <reducer/marks.h>
#include <sys/stat.h>
#include <sys/wait.h>

struct output {
	const char *path;
	int fd;
	struct reducer_xplane_writer *writer;
	struct reducer_writer_stats stats;
	struct reducer_left_out left_out[16];
	size_t n_left_out;
};

static struct reducer_text text(const char *from)
{
	return (struct reducer_text){from, from ? strlen(from) : 0};
}

static struct output begin(const char *name, const struct reducer_writer_options *options)
{
	struct output output = {.path = test_path(test_folder(), name)};
	output.fd = open(output.path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_ge(output.fd, 0);
	assert_ok(reducer_xplane_writer_new(output.fd, options, test_folder(), &output.writer));
	return output;
}

/* The rules of XProf, by another reading. */
static void ck_well_formed(const char *path, bool drawn)
{
#ifdef PYTHON3
	int status;
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		execl(PYTHON3, PYTHON3, SCHEMA, path, drawn ? "drawn" : NULL, (char *)NULL);
		_exit(127);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(status == 0, "%s breaks a rule", path);
#else
	(void)path, (void)drawn;
#endif
}

static void end(struct output *output)
{
	struct stat status;
	assert_ok(reducer_xplane_writer_finish(output->writer));
	output->stats = *reducer_xplane_writer_stats(output->writer);
	output->n_left_out = reducer_xplane_writer_left_out(output->writer, output->left_out, 16);
	reducer_xplane_writer_free(output->writer);
	ck_assert_int_eq(fstat(output->fd, &status), 0);
	ck_assert_uint_eq(output->stats.file_bytes, (uint64_t)status.st_size);
	close(output->fd);
}

/* Ends it; what it says when it is read again, metadata only where asked for. */
static char *read_back(struct output *output, bool with_meta, struct reducer_read_report *report)
{
	struct lines lines = {.with_meta = with_meta, .with_args = true};
	struct reducer_sink sink = lines_sink(&lines);
	end(output);
	lines_add(&lines, "", 0);
	assert_ok(reducer_xplane_read(output->path, &sink, report));
	ck_assert_uint_eq(report->damaged, 0);
	ck_well_formed(output->path, true);
	return lines.text;
}

static void expect(struct output *output, const char *expected)
{
	struct reducer_read_report report;
	char *lines = read_back(output, false, &report);
	ck_assert_str_eq(lines, expected);
	free(lines);
}

static uint64_t left_out(const struct output *output, const char *what)
{
	for (size_t i = 0; i < output->n_left_out; i++)
		if (strstr(output->left_out[i].what, what))
			return output->left_out[i].count;
	return 0;
}

/* An event at `us` of thread 7 of process 3. */
static struct reducer_event event_of(uint8_t kind, const char *name, int64_t us, int64_t duration_us)
{
	struct reducer_event event = {.kind = kind, .has_time = 1, .start_ns = us * 1000, .name = text(name),
				      .group = text("3"), .track = text("7"), .depth = DREC_DEPTH_UNKNOWN};
	if (kind == DREC_SPAN) {
		event.has_duration = 1;
		event.duration_ns = duration_us * 1000;
	}
	return event;
}

static void set_args(struct reducer_event *event, const char *args)
{
	event->args = text(args);
	event->args_flag = DREC_FLAG_ARGS_JSON;
}

static void add(struct output *output, struct reducer_event event)
{
	assert_ok(reducer_xplane_writer_event(output->writer, &event));
}

static void add_span(struct output *output, const char *name, int64_t us, int64_t duration_us)
{
	add(output, event_of(DREC_SPAN, name, us, duration_us));
}

static void add_meta(struct output *output, const char *name, const char *track, const char *args)
{
	struct reducer_event event = {
		.kind = DREC_META, .name = text(name), .group = text("3"), .track = text(track)};
	set_args(&event, args);
	add(output, event);
}

/* --- handed files --- */

static int pass_event(void *context, const struct reducer_event *event)
{
	return reducer_xplane_writer_event(context, event);
}

static int pass_member(void *context, const struct reducer_member *member)
{
	return reducer_xplane_writer_member(context, member);
}

static void convert_xplane(const char *from, struct output *to)
{
	struct reducer_read_report report;
	const struct reducer_sink sink = {to->writer, pass_event, pass_member};
	assert_ok(reducer_xplane_read(from, &sink, &report));
	end(to);
	ck_assert_uint_eq(to->stats.events, report.events - 0);
	ck_assert_uint_eq(to->n_left_out, 0);
}

START_TEST(handed_xplanes_come_back_whole)
{
	struct reducer_read_report report;
	const struct reducer_writer_options options = {.has_base = _i == 0,
						       .base_unix_ns = 1771595639214724894};
	size_t n, again;
	if (!handed_xplane(_i)) {
		puts("skipped: no handed data");
		return;
	}
	struct output first = begin("first.pb", &options);
	convert_xplane(handed_xplane(_i), &first);
	struct lines before = lines_of(handed_xplane(_i), &report), after = lines_of(first.path, &report);
	ck_assert_uint_gt(before.n, 100000);
	ck_assert_uint_eq(before.n, after.n);
	ck_assert_int_eq(memcmp(before.text, after.text, before.n), 0);
	ck_well_formed(first.path, false);
	/* And the same bytes from what was written. */
	struct output second = begin("second.pb", &options);
	convert_xplane(first.path, &second);
	char *a = test_read_file(first.path, &n), *b = test_read_file(second.path, &again);
	ck_assert_uint_eq(n, again);
	ck_assert_int_eq(memcmp(a, b, n), 0);
	free(a);
	free(b);
	free(before.text);
	free(after.text);
}
END_TEST

/* All that a file may hold, and the handed ones do not. */
static const char *make_rich(void)
{
	static struct pb space, plane, line, event, value, entry;
	const char *path = test_path(test_folder(), "rich.pb");
	space.n = plane.n = event.n = value.n = entry.n = 0;
	pb_number(&plane, 1, 77);
	pb_text(&plane, 2, "#Chip 3 HBM");
	pb_line_head(&line, -7, "_counters_", 12);
	pb_number(&event, 1, 1);
	pb_number(&event, 2, 3000);
	pb_stat(&event, 4, 1, 3, 42);
	pb_nest(&line, 4, &event);
	pb_nest(&plane, 3, &line);
	pb_line_head(&line, 5, "aggregated", -12);
	pb_number(&event, 1, 2);
	pb_number(&event, 3, 900);
	pb_stat(&event, 4, 1, 4, -1);
	pb_number(&event, 5, 1000);
	pb_nest(&line, 4, &event);
	/* Spans that overlap stay on their line: it was like that. */
	pb_event(&line, 2, 0, 100);
	pb_event(&line, 2, 50, 100);
	pb_event(&line, 99, 60, 10);
	pb_number(&line, 9, 12345);
	pb_number(&line, 10, 6);
	pb_text(&line, 11, "shown");
	pb_nest(&plane, 3, &line);
	pb_line_head(&line, 5, "the same id, and no events", 0);
	pb_nest(&plane, 3, &line);
	pb_metadata(&plane, 4, 1, "bandwidth", NULL);
	pb_number(&value, 1, 2);
	pb_text(&value, 2, "op");
	pb_text(&value, 3, "hlo \x01");
	pb_text(&value, 4, "op.1");
	pb_stat_text(&value, 5, 2, 5, "infeed");
	pb_bytes(&value, 6, "\x03\x84\x01", 3);
	pb_number(&entry, 1, 2);
	pb_nest(&entry, 2, &value);
	pb_nest(&plane, 4, &entry);
	pb_metadata(&plane, 4, 3, "not used", "so far");
	pb_metadata(&plane, 5, 1, "n", NULL);
	pb_metadata(&plane, 5, 2, "category", NULL);
	pb_stat_text(&plane, 6, 2, 6, "bytes");
	pb_nest(&space, 1, &plane);
	pb_text(&space, 2, "an error");
	pb_text(&space, 3, "a warning");
	pb_text(&space, 3, "and one more");
	test_write_file(path, space.bytes, space.n);
	return path;
}

START_TEST(rare_things_come_back_whole)
{
	struct reducer_read_report report;
	const char *path = make_rich();
	struct output output = begin("rich2.pb", NULL);
	convert_xplane(path, &output);
	struct lines before = lines_of(path, &report), after = lines_of(output.path, &report);
	ck_assert_ptr_nonnull(strstr(before.text,
				     "aggregated_event {\"name\":\"op\",\"num_occurrences\":1000,"
				     "\"duration_ps\":900,\"n\":-1,\"meta:display_name\":\"op.1\","));
	ck_assert_ptr_nonnull(strstr(before.text, "line_info {\"timestamp_ns\":-12,\"duration_ps\":12345,"
						  "\"display_id\":6,\"display_name\":\"shown\"}"));
	ck_assert_ptr_nonnull(strstr(before.text, "event_metadata {\"name\":\"not used\","
						  "\"meta:display_name\":\"so far\"}"));
	ck_assert_ptr_nonnull(strstr(before.text, "member warnings=[\"a warning\",\"and one more\"]"));
	ck_assert_ptr_nonnull(strstr(before.text, "\"meta:child_ids\":[3,132]"));
	/* The second line of one id has a number of its own now; and an event without name is named by its
	 * id. */
	ck_assert_str_eq(before.text, after.text);
	free(before.text);
	free(after.text);
}
END_TEST

START_TEST(metadata_events_of_unusual_form_are_noted)
{
	struct reducer_read_report report;
	struct output output = begin("odd.pb", NULL);
	static const char *const names[] = {"process_name", "thread_name", "line_info", "aggregated_event",
					    "event_metadata", "process_sort_index", "anything"};
	add_span(&output, "a", 1, 1);
	for (int i = 0; i < 7; i++)
		add_meta(&output, names[i], "7", "{\"name\":5,\"x\":[1]}");
	struct reducer_event bare = {.kind = DREC_META, .name = text("bare"), .group = text("3"),
				     .extra = text("\"ts\":0")};
	add(&output, bare);
	struct reducer_member member = {text("errors"), text("[1,2]")};
	assert_ok(reducer_xplane_writer_member(output.writer, &member));
	member = (struct reducer_member){text("hostnames"), text("{}")};
	assert_ok(reducer_xplane_writer_member(output.writer, &member));
	member = (struct reducer_member){text("broken"), text("{")};
	assert_ok(reducer_xplane_writer_member(output.writer, &member));
	char *lines = read_back(&output, true, &report);
	for (int i = 0; i < 7; i++) {
		char wanted[100];
		snprintf(wanted, sizeof(wanted), "meta 3/7 %s {\"name\":5,\"x\":[1]}\n", names[i]);
		ck_assert_msg(strstr(lines, wanted) != NULL, "%s in %s", wanted, lines);
	}
	ck_assert_ptr_nonnull(strstr(lines, "meta 3/ bare <\"ts\":0>\n"));
	ck_assert_ptr_nonnull(strstr(lines, "member errors=[1,2]\n"));
	ck_assert_ptr_nonnull(strstr(lines, "member hostnames={}\n"));
	ck_assert_uint_eq(left_out(&output, "members"), 1);
	free(lines);
}
END_TEST

static const char *const chrome_traces[] = {
	"traces/h100_bert_small.pt.trace.json.gz",     "traces/mi250_train.pt.trace.json.gz",
	"traces/cpu_only_gloo_rank34.pt.trace.json.gz", "traces/straggler_worker_44steps.trace.json.gz",
	"traces/mtia_inference_rank0.pt.trace.json.gz", "traces/128rank_sampled_rank0.pt.trace.json.gz",
};
enum { N_CHROME_TRACES = sizeof(chrome_traces) / sizeof(chrome_traces[0]) };

/* Args and extra members are compared elsewhere: spaces between members are not kept. Times are made Unix. */
struct chrome_lines {
	struct lines lines;
	struct reducer_xplane_writer *writer;
	int64_t base_ns;
};

static int chrome_event(void *context, const struct reducer_event *event)
{
	struct chrome_lines *to = context;
	struct reducer_event bare = *event;
	bare.extra.bytes = 0;
	bare.start_ns += to->base_ns;
	if (event->kind < DREC_FLOW_BEGIN || event->kind > DREC_FLOW_END)
		lines_event(&to->lines, &bare);
	return to->writer ? reducer_xplane_writer_event(to->writer, event) : 0;
}

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines, sorted. */
static char **sorted(char *all, size_t *ret_n)
{
	char **lines = NULL;
	size_t n = 0;
	for (char *p = strtok(all, "\n"); p; p = strtok(NULL, "\n")) {
		if ((n & (n - 1)) == 0)
			lines = realloc(lines, (n ? 2 * n : 1) * sizeof(*lines));
		lines[n++] = p;
	}
	qsort(lines, n, sizeof(*lines), compare_text);
	*ret_n = n;
	return lines;
}

START_TEST(handed_chrome_traces_come_back)
{
	struct reducer_read_report report;
	struct reducer_problem problem;
	struct reducer_input *input;
	const char *folder = test_data_folder();
	size_t n, m;
	if (!folder) {
		puts("skipped: no handed data");
		return;
	}
	struct output output = begin("chrome.pb", NULL);
	struct chrome_lines before = {.writer = output.writer}, after = {0};
	struct reducer_sink sink = {.context = &before, .event = chrome_event};
	assert_ok(reducer_input_open(test_path(folder, chrome_traces[_i]), &input, &problem));
	assert_ok(reducer_chrome_read(input, &sink, NULL, &report));
	reducer_input_free(input);
	end(&output);
	ck_well_formed(output.path, true);
	struct reducer_read_report again;
	const struct reducer_sink none = {0};
	assert_ok(reducer_xplane_read(output.path, &none, &again));
	after.base_ns = again.has_base ? again.base_unix_ns : 0;
	sink.context = &after;
	assert_ok(reducer_xplane_read(output.path, &sink, &again));
	char **a = sorted(before.lines.text, &n), **b = sorted(after.lines.text, &m);
	ck_assert_uint_gt(n, 10);
	for (size_t i = 0; i < n && i < m; i++)
		ck_assert_str_eq(a[i], b[i]);
	ck_assert_uint_eq(n, m);
	free(a);
	free(b);
	free(before.lines.text);
	free(after.lines.text);
}
END_TEST

/* --- what an XPlane has fields for --- */

START_TEST(spans_and_instants)
{
	struct output output = begin("a.pb", NULL);
	add_span(&output, "step", 10, 100);
	add_span(&output, "op", 20, 30);
	add_span(&output, "empty", 30, 0);
	add(&output, event_of(DREC_INSTANT, "here", 40, 0));
	expect(&output, "span 3/7 10000.000+100000.000 step\nspan 3/7 20000.000+30000.000 op\n"
			"span 3/7 30000.000+0.000 empty\ninstant 3/7 40000.000 here\n");
	ck_assert_uint_eq(output.stats.events, 4);
	ck_assert_uint_eq(output.n_left_out, 0);
}
END_TEST

START_TEST(args_of_all_forms)
{
	static const char args[] =
		"{\"i\":1,\"neg\":-9223372036854775808,\"big\":18446744073709551615,"
		"\"huge\":123456789012345678901234567890,\"f\":0.5,\"text\":\"a\\\"b\\u0001\","
		"\"list\":[1,{\"a\":[]}],\"yes\":true,\"nothing\":null,\"bytes\":{\"base64\":\"AAH/\"},"
		"\"not bytes\":{\"base64\":\"?\"},\"\":\"no name\",\"meta.stat\":7,"
		"\"zip\":{\"gzip_base64\":\"AAE=\"},\"i\":2}";
	static const char back[] =
		"{\"i\":1,\"neg\":-9223372036854775808,\"big\":18446744073709551615,"
		"\"huge\":123456789012345678901234567890,\"f\":0.5,\"text\":\"a\\\"b\\u0001\","
		"\"list\":[1,{\"a\":[]}],\"yes\":true,\"nothing\":null,\"bytes\":{\"base64\":\"AAH/\"},"
		"\"not bytes\":{\"base64\":\"?\"},\"\":\"no name\","
		"\"zip\":{\"gzip_base64\":\"AAE=\"},\"i\":2,\"meta.stat\":7}";
	struct reducer_read_report report;
	struct output output = begin("args.pb", NULL);
	struct reducer_event event = event_of(DREC_SPAN, "a", 0, 1);
	set_args(&event, args);
	add(&output, event);
	set_args(&event, "[1,2]");
	add(&output, event);
	set_args(&event, "\"text\"");
	add(&output, event);
	char *lines = read_back(&output, false, &report);
	char *second = strchr(lines, '\n') + 1;
	second[-1] = 0;
	ck_assert_str_eq(strchr(lines, '{'), back);
	ck_assert_str_eq(second, "span 3/7 0.000+1000.000 a [1,2]\nspan 3/7 0.000+1000.000 a \"text\"\n");
	free(lines);
}
END_TEST

START_TEST(doubles_are_exact)
{
	struct reducer_read_report report;
	struct output output = begin("doubles.pb", NULL);
	static char args[100][64];
	for (int i = 0; i < 100; i++) {
		struct reducer_event event = event_of(DREC_INSTANT, "d", i, 0);
		uint64_t bits = test_random();
		double value;
		/* No infinities, no NaN. */
		bits = (bits >> 52 & 0x7ff) == 0x7ff ? bits ^ UINT64_C(1) << 62 : bits;
		memcpy(&value, &bits, sizeof(value));
		snprintf(args[i], sizeof(args[i]), "{\"d\":%.17e}", value);
		set_args(&event, args[i]);
		add(&output, event);
	}
	char *lines = read_back(&output, false, &report), *at = lines;
	for (int i = 0; i < 100; i++) {
		at = strchr(at, '{');
		ck_assert_ptr_nonnull(at);
		double read = strtod(at + 5, NULL), written = strtod(args[i] + 5, NULL);
		ck_assert_msg(memcmp(&read, &written, sizeof(read)) == 0, "%s became %.40s", args[i], at);
		at++;
	}
	free(lines);
}
END_TEST

/* --- what it has none for --- */

START_TEST(category_id_and_extra_come_back)
{
	struct output output = begin("extra.pb", NULL);
	struct reducer_event event = event_of(DREC_SPAN, "a", 5, 1);
	event.category = text("cpu_op");
	event.has_id = 1;
	event.id = UINT64_MAX;
	event.extra = text("\"cname\":\"good\",\"s\":\"t\"");
	set_args(&event, "{\"x\":1}");
	add(&output, event);
	expect(&output, "span 3/7 5000.000+1000.000 a [cpu_op] id 18446744073709551615 "
			"<\"cname\":\"good\",\"s\":\"t\"> "
			"{\"x\":1}\n");
}
END_TEST

START_TEST(pids_and_tids_of_any_form_come_back)
{
	struct output output = begin("tids.pb", NULL);
	static const char *const groups[] = {"3", "\"Spans\"", "-1", "3", "99999999999999999999", "\"3\""};
	static const char *const tracks[] = {"7", "\"PyTorch Profiler\"", "-9", "\"7\"", "1.5", "0"};
	for (int i = 0; i < 6; i++) {
		struct reducer_event event = event_of(DREC_SPAN, "a", i, 1);
		event.group = text(groups[i]);
		event.track = text(tracks[i]);
		add(&output, event);
	}
	expect(&output, "span 3/7 0.000+1000.000 a\nspan 3/\"7\" 3000.000+1000.000 a\n"
			"span \"Spans\"/\"PyTorch Profiler\" 1000.000+1000.000 a\n"
			"span -1/-9 2000.000+1000.000 a\nspan 99999999999999999999/1.5 4000.000+1000.000 a\n"
			"span \"3\"/0 5000.000+1000.000 a\n");
}
END_TEST

START_TEST(metadata_and_members_come_back)
{
	struct reducer_read_report report;
	struct output output = begin("meta.pb", NULL);
	struct reducer_member member = {text("distributedInfo"), text("{\"rank\":3,\"f\":1.50}")};
	assert_ok(reducer_xplane_writer_member(output.writer, &member));
	member = (struct reducer_member){text("hostnames"), text("[\"a\",\"b\"]")};
	assert_ok(reducer_xplane_writer_member(output.writer, &member));
	add_meta(&output, "process_name", "0", "{\"name\":\"python\"}");
	add_meta(&output, "process_labels", "0", "{\"labels\":\"GPU 0\"}");
	add_meta(&output, "process_sort_index", "0", "{\"sort_index\":17}");
	add_meta(&output, "thread_name", "7", "{\"name\":\"thread 7 (python)\"}");
	add_meta(&output, "thread_sort_index", "7", "{\"sort_index\":5}");
	add_span(&output, "a", 1, 1);
	char *lines = read_back(&output, true, &report);
	ck_assert_str_eq(lines,
			 "member hostnames=[\"a\",\"b\"]\nmember distributedInfo={\"rank\":3,\"f\":1.50}\n"
			 "meta 3/ process_name {\"name\":\"python\"}\n"
			 "meta 3/0 process_labels {\"labels\":\"GPU 0\"}\n"
			 "meta 3/0 process_sort_index {\"sort_index\":17}\n"
			 "meta 3/7 thread_sort_index {\"sort_index\":5}\n"
			 "meta 3/7 thread_name {\"name\":\"thread 7 (python)\"}\n"
			 "span 3/7 1000.000+1000.000 a\n");
	free(lines);
}
END_TEST

START_TEST(processes_become_planes_that_are_drawn)
{
	struct output output = begin("planes.pb", NULL);
	static const char *const names[] = {"{\"name\":\"python\"}", "{\"name\":\"python\"}",
					    "{\"name\":\"/host:CPU\"}", "{\"name\":\"/device:GPU:3\"}",
					    "{\"name\":\"Spans\"}"};
	size_t n;
	for (int i = 0; i < 5; i++) {
		static const char *const pids[] = {"10", "11", "701", "4", "\"Spans\""};
		struct reducer_event event = event_of(DREC_SPAN, "a", i, 1);
		struct reducer_event meta = {
			.kind = DREC_META, .name = text("process_name"), .group = text(pids[i])};
		set_args(&meta, names[i]);
		add(&output, meta);
		event.group = text(pids[i]);
		add(&output, event);
	}
	end(&output);
	ck_well_formed(output.path, true);
	char *bytes = test_read_file(output.path, &n);
	static const char *const wanted[] = {"/device:CUSTOM:python", "/device:CUSTOM:python 11", "/host:CPU",
					     "\x08\x03\x12\x0d/device:GPU:3", "/device:CUSTOM:Spans"};
	for (int i = 0; i < 5; i++)
		ck_assert_msg(memmem(bytes, n, wanted[i], strlen(wanted[i])) != NULL, "%s", wanted[i]);
	free(bytes);
}
END_TEST

/* --- begins and ends, async, flows, counters --- */

START_TEST(begins_and_ends_become_spans)
{
	struct output output = begin("pairs.pb", NULL);
	struct reducer_event inner = event_of(DREC_BEGIN, "inner", 20, 0),
			     last = event_of(DREC_END, "", 90, 0);
	set_args(&inner, "{\"a\":1}");
	set_args(&last, "{\"b\":2}");
	/* An end that comes before its begin in the file, but not in time; one without a name; an orphan of
	 * each. */
	add(&output, event_of(DREC_END, "inner", 30, 0));
	add(&output, event_of(DREC_BEGIN, "outer", 10, 0));
	add(&output, inner);
	add(&output, last);
	add(&output, event_of(DREC_END, "orphan", 95, 0));
	add(&output, event_of(DREC_BEGIN, "open", 99, 0));
	expect(&output, "span 3/7 10000.000+80000.000 outer {\"b\":2}\nspan 3/7 20000.000+10000.000 inner "
			"{\"a\":1}\n");
	ck_assert_uint_eq(left_out(&output, "ends without a begin"), 1);
	ck_assert_uint_eq(left_out(&output, "never end"), 1);
}
END_TEST

START_TEST(asynchronous_pairs_become_spans)
{
	struct output output = begin("async.pb", NULL);
	for (uint64_t id = 1; id <= 2; id++) {
		struct reducer_event event = event_of(DREC_ASYNC_BEGIN, "copy", (int64_t)id * 10, 0);
		event.category = text("dma");
		event.has_id = 1;
		event.id = id;
		add(&output, event);
		event.kind = DREC_ASYNC_END;
		event.start_ns += 15000;
		add(&output, event);
	}
	/* The two overlap, so they are on two lines of one track. */
	expect(&output, "span 3/1000001 10000.000+15000.000 copy [dma] id 1\n"
			"span 3/1000001 20000.000+15000.000 copy [dma] id 2\n");
	ck_assert_uint_eq(left_out(&output, "asynchronous"), 4);
}
END_TEST

START_TEST(flows_and_unknown_kinds_are_told)
{
	struct output output = begin("left.pb", NULL);
	struct reducer_event no_time = event_of(DREC_SPAN, "when", 0, 1);
	no_time.has_time = 0;
	add(&output, event_of(DREC_FLOW_BEGIN, "f", 1, 0));
	add(&output, event_of(DREC_FLOW_END, "f", 2, 0));
	add(&output, event_of(DREC_OTHER, "?", 2, 0));
	add(&output, no_time);
	add_span(&output, "a", 1, 1);
	expect(&output, "span 3/7 1000.000+1000.000 a\n");
	ck_assert_uint_eq(output.stats.events, 1);
	ck_assert_uint_eq(left_out(&output, "flow"), 2);
	ck_assert_uint_eq(left_out(&output, "unknown"), 1);
	ck_assert_uint_eq(left_out(&output, "without a time"), 1);
	ck_assert_uint_eq(output.n_left_out, 3);
}
END_TEST

START_TEST(counters_of_one_and_more_series)
{
	struct output output = begin("counters.pb", NULL);
	struct reducer_event event = event_of(DREC_COUNTER, "mem", 1, 0);
	add_span(&output, "a", 0, 1);
	set_args(&event, "{\"used\":12}");
	add(&output, event);
	event.start_ns = 2000;
	set_args(&event, "{\"used\":-1.5,\"free\":7,\"unit\":\"GB\"}");
	add(&output, event);
	event.start_ns = 3000;
	event.value = 0.25;
	event.args.bytes = 0;
	event.args_flag = 0;
	add(&output, event);
	expect(&output,
	       "span 3/7 0.000+1000.000 a\ncounter 3/7 1000.000 mem {\"used\":12}\n"
	       "counter 3/7 2000.000 mem used {\"used\":-1.5}\ncounter 3/7 2000.000 mem free {\"free\":7}\n"
	       "counter 3/7 3000.000 mem {\"value\":0.25}\n");
	ck_assert_uint_eq(output.stats.events, 4);
	ck_assert_uint_eq(left_out(&output, "series"), 2);
	ck_assert_uint_eq(left_out(&output, "no numbers"), 1);
}
END_TEST

START_TEST(marks_and_losses_have_names)
{
	struct output output = begin("marks.pb", NULL);
	struct reducer_event mark = event_of(DREC_MARK, "train", 1, 0);
	mark.mark = DREC_MARK_STEP_END;
	mark.id = 12;
	mark.duration_ns = 5000;
	add(&output, mark);
	mark.mark = DREC_MARK_PHASE_BEGIN;
	add(&output, mark);
	struct reducer_event loss = event_of(DREC_LOSS, "", 2, 0);
	loss.mark = DREC_LOSS_PINNED_FULL;
	loss.count = 99;
	loss.duration_ns = 1000;
	add(&output, loss);
	expect(&output,
	       "span 3/7 1000.000+5000.000 step 12 [driverec.mark] {\"phase\":\"train\"}\n"
	       "instant 3/7 1000.000 phase train begins [driverec.mark] {\"phase\":\"train\"}\n"
	       "instant 3/7 2000.000 lost: pinned_full [driverec.loss] {\"events\":99,\"for_ns\":1000}\n");
}
END_TEST

/* --- lines --- */

START_TEST(overlaps_go_to_a_further_line)
{
	struct reducer_read_report report;
	struct output output = begin("overlap.pb", NULL);
	size_t n;
	add_meta(&output, "thread_name", "7", "{\"name\":\"stream 7\"}");
	add_span(&output, "a", 0, 10);
	add_span(&output, "b", 5, 10);
	add_span(&output, "in a", 1, 9);
	add_span(&output, "c", 10, 5);
	add_span(&output, "d", 12, 10);
	/* The lines are of one track when they are read again. */
	char *lines = read_back(&output, false, &report);
	ck_assert_str_eq(lines, "span 3/7 0.000+10000.000 a\nspan 3/7 1000.000+9000.000 in a\n"
				"span 3/7 10000.000+5000.000 c\nspan 3/7 5000.000+10000.000 b\n"
				"span 3/7 12000.000+10000.000 d\n");
	char *bytes = test_read_file(output.path, &n), *at = bytes;
	unsigned named = 0;
	while ((at = memmem(at, n - (size_t)(at - bytes), "stream 7", 8)) != NULL) {
		named++;
		at++;
	}
	ck_assert_uint_eq(named, 3);
	free(bytes);
	free(lines);
}
END_TEST

START_TEST(lines_are_bounded_and_nothing_is_lost)
{
	struct reducer_read_report report;
	struct output output = begin("many.pb", NULL);
	for (int i = 0; i < 600; i++)
		add_span(&output, "x", i, 1000);
	end(&output);
	ck_assert_uint_eq(left_out(&output, "overlap on one line"), 600 - 512);
	struct lines lines = lines_of(output.path, &report);
	ck_assert_uint_eq(lines.events, 600);
	free(lines.text);
}
END_TEST

START_TEST(random_spans_never_overlap_on_a_line)
{
	struct reducer_read_report report;
	struct output output = begin("random.pb", NULL);
	struct lines before = {0};
	for (int i = 0; i < 2000; i++) {
		struct reducer_event event = event_of(DREC_SPAN, "x", (int64_t)test_random_below(5000),
						      (int64_t)test_random_below(40));
		event.start_ps = (uint16_t)test_random_below(1000);
		add(&output, event);
		lines_event(&before, &event);
	}
	/* read_back() has the rule looked at. */
	size_t n, m;
	char *after = read_back(&output, false, &report);
	char **a = sorted(before.text, &n), **b = sorted(after, &m);
	ck_assert_uint_eq(n, m);
	for (size_t i = 0; i < n; i++)
		ck_assert_str_eq(a[i], b[i]);
	free(a);
	free(b);
	free(before.text);
	free(after);
}
END_TEST

/* --- time --- */

START_TEST(unix_times_become_session_relative)
{
	struct reducer_read_report report;
	struct output output = begin("unix.pb", NULL);
	struct reducer_event event = event_of(DREC_SPAN, "a", 0, 5);
	event.start_ns = 1700000000123456789;
	event.start_ps = 17;
	add(&output, event);
	event.start_ns += 1000;
	event.name = text("b");
	add(&output, event);
	char *lines = read_back(&output, false, &report);
	ck_assert_int_eq(report.has_base, 1);
	ck_assert_int_eq(report.base_unix_ns, 1700000000123456789);
	ck_assert_str_eq(lines, "span 3/7 0.017+5000.000 a\nspan 3/7 1000.017+5000.000 b\n");
	free(lines);
}
END_TEST

START_TEST(a_base_is_said_and_negative_times_move_it)
{
	struct reducer_read_report report;
	const struct reducer_writer_options options = {.has_base = 1, .base_unix_ns = 1700000000000000000};
	struct output output = begin("base.pb", &options);
	add_span(&output, "a", 7, 1);
	char *lines = read_back(&output, false, &report);
	ck_assert_int_eq(report.base_unix_ns, 1700000000000000000);
	ck_assert_str_eq(lines, "span 3/7 7000.000+1000.000 a\n");
	free(lines);
	output = begin("base.pb", &options);
	add_span(&output, "a", -7, 1);
	lines = read_back(&output, false, &report);
	ck_assert_int_eq(report.base_unix_ns, 1700000000000000000 - 7000);
	ck_assert_str_eq(lines, "span 3/7 0.000+1000.000 a\n");
	free(lines);
	/* Without one there is nothing that could move. */
	output = begin("base.pb", NULL);
	add_span(&output, "a", -7, 1);
	expect(&output, "span 3/7 -7000.000+1000.000 a\n");
}
END_TEST

START_TEST(one_far_event_is_left_out)
{
	struct output output = begin("far.pb", NULL);
	add(&output, event_of(DREC_INSTANT, "zero", 0, 0));
	for (int i = 0; i < 9; i++)
		add(&output, event_of(DREC_INSTANT, "now", INT64_C(1700000000000000), 0));
	end(&output);
	ck_assert_uint_eq(left_out(&output, "53 days"), 1);
	ck_assert_uint_eq(output.stats.events, 9);
}
END_TEST

/* --- reduced traces, options, failures --- */

START_TEST(a_reduced_trace_says_so)
{
	struct reducer_read_report report;
	static const char args[] = "{\"version\":1,\"bin_ps\":\"1000000\",\"lost\":{\"flows\":3}}";
	struct output output = begin("reduced.pb", NULL);
	struct reducer_event mark = {.kind = DREC_META, .name = text(REDUCER_MARK_REDUCED)};
	struct reducer_event merged = event_of(DREC_SPAN, "merged", 1, 2);
	set_args(&mark, args);
	set_args(&merged, "{\"driverec.events\":12,\"driverec.sum_ps\":1500000,\"driverec.longest\":\"op\"}");
	merged.category = text(REDUCER_MARK_MERGED);
	add(&output, mark);
	add(&output, merged);
	/* read_back() has group_id looked for. */
	char *lines = read_back(&output, true, &report);
	ck_assert_str_eq(
		lines,
		"member hostnames=[\"localhost\"]\n"
		"meta / driverec.reduced {\"version\":1,\"bin_ps\":\"1000000\",\"lost\":{\"flows\":3}}\n"
		"span 3/7 1000.000+2000.000 merged [driverec.merged] {\"driverec.events\":12,"
		"\"driverec.sum_ps\":1500000,\"driverec.longest\":\"op\"}\n");
	free(lines);
}
END_TEST

START_TEST(args_may_be_stripped)
{
	const struct reducer_writer_options options = {.strip_args = 1};
	struct output output = begin("strip.pb", &options);
	struct reducer_event event = event_of(DREC_SPAN, "a", 1, 1);
	set_args(&event, "{\"x\":1}");
	add(&output, event);
	expect(&output, "span 3/7 1000.000+1000.000 a\n");
	ck_assert_uint_eq(left_out(&output, "args"), 1);
}
END_TEST

START_TEST(a_full_disk_is_an_error)
{
	struct reducer_xplane_writer *writer;
	struct reducer_event event = event_of(DREC_SPAN, "a", 1, 1);
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	assert_ok(reducer_xplane_writer_new(fd, NULL, NULL, &writer));
	assert_ok(reducer_xplane_writer_event(writer, &event));
	ck_assert_int_eq(reducer_xplane_writer_finish(writer), -28);
	ck_assert_int_eq(reducer_xplane_writer_event(writer, &event), -28);
	reducer_xplane_writer_free(writer);
	close(fd);
}
END_TEST

START_TEST(nothing_is_a_file_too)
{
	struct reducer_read_report report;
	struct output output = begin("nothing.pb", NULL);
	char *lines = read_back(&output, true, &report);
	ck_assert_str_eq(lines, "member hostnames=[\"localhost\"]\n");
	free(lines);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xplane_writer");
	struct {
		const char *name;
		const TTest *test;
		int times;
	} cases[] = {
		{"handed XPlanes come back whole", handed_xplanes_come_back_whole, 2},
		{"rare things come back whole", rare_things_come_back_whole, 1},
		{"metadata events of unusual form are noted", metadata_events_of_unusual_form_are_noted, 1},
		{"handed Chrome traces come back", handed_chrome_traces_come_back, N_CHROME_TRACES},
		{"spans and instants", spans_and_instants, 1},
		{"args of all forms", args_of_all_forms, 1},
		{"doubles are exact", doubles_are_exact, 1},
		{"category, id and extra come back", category_id_and_extra_come_back, 1},
		{"pids and tids of any form come back", pids_and_tids_of_any_form_come_back, 1},
		{"metadata and members come back", metadata_and_members_come_back, 1},
		{"processes become planes that are drawn", processes_become_planes_that_are_drawn, 1},
		{"begins and ends become spans", begins_and_ends_become_spans, 1},
		{"asynchronous pairs become spans", asynchronous_pairs_become_spans, 1},
		{"flows and unknown kinds are told", flows_and_unknown_kinds_are_told, 1},
		{"counters of one and more series", counters_of_one_and_more_series, 1},
		{"marks and losses have names", marks_and_losses_have_names, 1},
		{"overlaps go to a further line", overlaps_go_to_a_further_line, 1},
		{"lines are bounded and nothing is lost", lines_are_bounded_and_nothing_is_lost, 1},
		{"random spans never overlap on a line", random_spans_never_overlap_on_a_line, 1},
		{"Unix times become session-relative", unix_times_become_session_relative, 1},
		{"a base is said, negative times move it", a_base_is_said_and_negative_times_move_it, 1},
		{"one far event is left out", one_far_event_is_left_out, 1},
		{"a reduced trace says so", a_reduced_trace_says_so, 1},
		{"args may be stripped", args_may_be_stripped, 1},
		{"a full disk is an error", a_full_disk_is_an_error, 1},
		{"nothing is a file, too", nothing_is_a_file_too, 1},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		TCase *one_case = tcase_create(cases[i].name);
		tcase_set_timeout(one_case, 120);
		tcase_add_loop_test(one_case, cases[i].test, 0, cases[i].times);
		suite_add_tcase(suite, one_case);
	}
	return test_run(suite);
}
