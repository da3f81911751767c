/* SPDX-License-Identifier: Apache-2.0 */
/* An XSpace with fewer events: the same bytes but for what is left out and added. */
#include "xplane_support.h"

#include <reducer/marks.h>
#include <reducer/xplane_filter.h>

#include <sys/wait.h>

static struct pb space, plane, line;

static struct reducer_text text(const char *from)
{
	return (struct reducer_text){from, from ? strlen(from) : 0};
}

static struct reducer_xplane_filter *open_filter(const char *path)
{
	struct reducer_xplane_filter *filter;
	struct reducer_problem problem;
	int result = reducer_xplane_filter_open(path, &filter, &problem);
	ck_assert_msg(result == 0, "%s: %d, %s", path, result, problem.what);
	return filter;
}

/* Writes to `path` and frees the filter; the result. */
static int write_filter(struct reducer_xplane_filter *filter, const uint8_t *keep, uint64_t n_events,
			const char *path)
{
	uint64_t bytes = 0;
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	int result = reducer_xplane_filter_write(filter, keep, n_events, fd, &bytes);
	if (result == 0)
		ck_assert_int_eq((int64_t)bytes, lseek(fd, 0, SEEK_END));
	close(fd);
	reducer_xplane_filter_free(filter);
	return result;
}

static void ck_same_bytes(const char *a, const char *b)
{
	size_t n, m;
	char *x = test_read_file(a, &n), *y = test_read_file(b, &m);
	ck_assert_uint_eq(n, m);
	ck_assert_int_eq(memcmp(x, y, n), 0);
	free(x);
	free(y);
}

static void ck_well_formed(const char *path)
{
#ifdef PYTHON3
	int status;
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		execl(PYTHON3, PYTHON3, SCHEMA, path, (char *)NULL);
		_exit(127);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(status == 0, "%s breaks a rule", path);
#else
	(void)path;
#endif
}

static uint64_t count_events(const char *path)
{
	struct reducer_read_report report;
	struct lines lines = lines_of(path, &report);
	free(lines.text);
	return lines.events;
}

/* Two planes of two lines, with fields that nobody knows and lengths longer than they need be. */
static const char *make_file(void)
{
	const char *path = test_path(test_folder(), "made.xplane.pb");
	space.n = 0;
	for (int i = 0; i < 2; i++) {
		plane.n = 0;
		pb_text(&plane, 2, i ? "/device:GPU:0" : "/host:CPU");
		pb_text(&plane, 900, "an unknown field of a plane");
		pb_line_head(&line, 1, "one", 3);
		for (int j = 0; j < 10; j++)
			pb_event(&line, 1, j * 2000, 1000);
		pb_text(&line, 901, "an unknown field of a line");
		pb_nest(&plane, 3, &line);
		/* The same with a length of five bytes. */
		pb_line_head(&line, 2, "two", 0);
		pb_event(&line, 2, 500, NO_DURATION);
		pb_varint(&plane, 3 << 3 | 2);
		static const unsigned char tail[4] = {0x80, 0x80, 0x80, 0x00};
		plane.bytes[plane.n++] = (unsigned char)(line.n | 0x80);
		memcpy(plane.bytes + plane.n, tail, 4);
		plane.n += 4;
		memcpy(plane.bytes + plane.n, line.bytes, line.n);
		plane.n += line.n;
		line.n = 0;
		pb_metadata(&plane, 4, 1, "a", NULL);
		pb_metadata(&plane, 4, 2, "b", NULL);
		pb_metadata(&plane, 5, 1, "old", NULL);
		pb_nest(&space, 1, &plane);
	}
	pb_text(&space, 4, "host");
	pb_text(&space, 903, "an unknown field of the space");
	test_write_file(path, space.bytes, space.n);
	return path;
}

START_TEST(nothing_to_do_is_the_same_file)
{
	const char *out = test_path(test_folder(), "out.xplane.pb");
	static uint8_t all[1 << 16];
	memset(all, 0xff, sizeof(all));
	for (int i = -1; i < 2; i++) {
		const char *path = i < 0 ? make_file() : handed_xplane(i);
		if (!path) {
			puts("skipped: no handed data");
			continue;
		}
		ck_assert_int_eq(write_filter(open_filter(path), NULL, 0, out), 0);
		ck_same_bytes(path, out);
		uint64_t n = count_events(path);
		ck_assert_uint_lt(n, 8 * sizeof(all));
		ck_assert_int_eq(write_filter(open_filter(path), all, n, out), 0);
		ck_same_bytes(path, out);
	}
}
END_TEST

/* The metadata events, and of the others those whose bit is set. */
struct kept {
	struct lines lines;
	const uint8_t *keep;
	uint64_t n;
};

static int kept_event(void *context, const struct reducer_event *event)
{
	struct kept *kept = context;
	if (event->kind != DREC_META) {
		uint64_t n = kept->n++;
		if (kept->keep && !(kept->keep[n / 8] >> (n % 8) & 1))
			return 0;
	}
	/* What no event uses is said of the metadata alone, and which that is changes. */
	if (event->kind == DREC_META && event->name.bytes == 14 &&
	    !memcmp(event->name.data, "event_metadata", 14))
		return 0;
	return lines_event(&kept->lines, event);
}

static char *kept_lines(const char *path, const uint8_t *keep)
{
	struct reducer_read_report report;
	struct kept kept = {.lines = {.with_meta = true, .with_args = true}, .keep = keep};
	const struct reducer_sink sink = {.context = &kept, .event = kept_event};
	lines_add(&kept.lines, "", 0);
	assert_ok(reducer_xplane_read(path, &sink, &report));
	ck_assert_uint_eq(report.damaged, 0);
	return kept.lines.text;
}

START_TEST(just_the_events_of_the_bits_stay)
{
	const char *out = test_path(test_folder(), "out.xplane.pb");
	const char *path = _i == 0 ? make_file() : handed_xplane(_i - 1);
	static uint8_t some[1 << 16];
	if (!path) {
		puts("skipped: no handed data");
		return;
	}
	uint64_t n = count_events(path);
	for (int round = 0; round < 4; round++) {
		for (size_t i = 0; i < sizeof(some); i++)
			some[i] = round == 0 ? 0
					     : (uint8_t)(test_random() & (round == 1 ? test_random() : 0xff));
		ck_assert_int_eq(write_filter(open_filter(path), some, n, out), 0);
		char *wanted = kept_lines(path, some), *got = kept_lines(out, NULL);
		ck_assert_str_eq(wanted, got);
		ck_well_formed(out);
		free(wanted);
		free(got);
	}
}
END_TEST

START_TEST(what_is_not_touched_stays_as_it_is)
{
	const char *out = test_path(test_folder(), "out.xplane.pb");
	const char *path = make_file();
	uint8_t keep[3] = {0xff, 0xff, 0xff};
	size_t n, m;
	keep[0] = 0xfe; /* the very first event goes */
	ck_assert_int_eq(write_filter(open_filter(path), keep, 22, out), 0);
	char *before = test_read_file(path, &n), *after = test_read_file(out, &m);
	/* tag, length, and an event of 8 bytes at offset 0 */
	ck_assert_uint_eq(n - m, 9);
	/* The second plane and all that follows, byte for byte. */
	char *second = memmem(before, n, "/device:GPU:0", 13);
	size_t tail = n - (size_t)(second - before);
	ck_assert_int_eq(memcmp(second, after + m - tail, tail), 0);
	/* And in the first one the line that keeps its event, in its long form. */
	ck_assert_ptr_nonnull(memmem(after, m, "\x80\x80\x80\x00", 4));
	static const char *const unknown[] = {"an unknown field of a plane", "an unknown field of a line",
					      "an unknown field of the space"};
	for (int i = 0; i < 3; i++)
		ck_assert_ptr_nonnull(memmem(after, m, unknown[i], strlen(unknown[i])));
	free(before);
	free(after);
}
END_TEST

static struct reducer_event added(const char *group, const char *track, int64_t us, const char *args)
{
	struct reducer_event event = {.kind = DREC_SPAN,
				      .has_time = 1,
				      .has_duration = 1,
				      .start_ns = us * 1000,
				      .start_ps = 7,
				      .duration_ns = 5000,
				      .name = text("merged"),
				      .category = text(REDUCER_MARK_MERGED),
				      .group = text(group),
				      .track = text(track),
				      .args = text(args),
				      .args_flag = DREC_FLAG_ARGS_JSON};
	return event;
}

START_TEST(events_are_added_to_their_lines)
{
	struct reducer_read_report report;
	const char *out = test_path(test_folder(), "out.xplane.pb");
	struct reducer_xplane_filter *filter = open_filter(make_file());
	static const uint8_t none[3];
	struct reducer_event one =
		added("1", "1", 100, "{\"driverec.events\":10,\"driverec.longest\":\"a\"}");
	struct reducer_event two = added("701", "2", -100, "{\"driverec.events\":3}");
	struct reducer_event three = added("1", "1", 200, "");
	three.kind = DREC_INSTANT;
	three.category = text("x");
	assert_ok(reducer_xplane_filter_add(filter, &one));
	assert_ok(reducer_xplane_filter_add(filter, &two));
	assert_ok(reducer_xplane_filter_add(filter, &three));
	ck_assert_int_eq(write_filter(filter, none, 22, out), 0);
	struct lines lines = lines_of(out, &report);
	const char *events = strstr(lines.text, "span ");
	ck_assert_ptr_nonnull(events);
	ck_assert_ptr_nonnull(strstr(events, "span 701/2 -100000.007+5000.000 merged [driverec.merged] "
					     "{\"driverec.events\":3}\n"));
	ck_assert_ptr_nonnull(strstr(events, "span 1/1 100000.007+5000.000 merged [driverec.merged] "
					     "{\"driverec.events\":10,\"driverec.longest\":\"a\"}\n"
					     "instant 1/1 200000.007 merged [x]\n"));
	ck_assert_uint_eq(lines.events, 3);
	/* Names of before are as they were. */
	ck_assert_ptr_nonnull(strstr(lines.text, "event_metadata {\"name\":\"a\"}"));
	ck_well_formed(out);
	free(lines.text);
}
END_TEST

START_TEST(the_mark_is_a_plane)
{
	struct reducer_read_report report;
	const char *once = test_path(test_folder(), "once.xplane.pb");
	const char *twice = test_path(test_folder(), "twice.xplane.pb");
	struct reducer_event mark = {.kind = DREC_META, .name = text(REDUCER_MARK_REDUCED),
				     .args_flag = DREC_FLAG_ARGS_JSON};
	struct reducer_xplane_filter *filter = open_filter(make_file());
	mark.args = text("{\"version\":1,\"bin_ps\":\"5\"}");
	assert_ok(reducer_xplane_filter_add(filter, &mark));
	ck_assert_int_eq(write_filter(filter, NULL, 0, once), 0);
	struct lines lines = lines_of(once, &report);
	ck_assert_ptr_nonnull(
		strstr(lines.text, "meta / driverec.reduced {\"version\":1,\"bin_ps\":\"5\"}\n"));
	ck_assert_uint_eq(lines.events, 22);
	/* This one looks for group_id in the planes that are drawn. */
	ck_well_formed(once);
	free(lines.text);
	/* A second mark takes the place of the first. */
	filter = open_filter(once);
	mark.args = text("{\"version\":1,\"bin_ps\":\"6\"}");
	assert_ok(reducer_xplane_filter_add(filter, &mark));
	ck_assert_int_eq(write_filter(filter, NULL, 0, twice), 0);
	lines = lines_of(twice, &report);
	ck_assert_ptr_null(strstr(lines.text, "\"bin_ps\":\"5\""));
	ck_assert_ptr_nonnull(strstr(lines.text, "\"bin_ps\":\"6\""));
	ck_well_formed(twice);
	free(lines.text);
}
END_TEST

START_TEST(handed_files_take_additions)
{
	struct reducer_read_report report;
	const char *out = test_path(test_folder(), "out.xplane.pb");
	static const char *const tracks[2][2] = {{"1", "17"}, {"701", "1630881670"}};
	static uint8_t some[1 << 16];
	const char *path = handed_xplane(_i);
	if (!path) {
		puts("skipped: no handed data");
		return;
	}
	uint64_t n = count_events(path);
	for (size_t i = 0; i < sizeof(some); i++)
		some[i] = (uint8_t)test_random();
	struct reducer_xplane_filter *filter = open_filter(path);
	struct reducer_event mark = {.kind = DREC_META,
				     .name = text(REDUCER_MARK_REDUCED),
				     .args = text("{\"version\":1}"),
				     .args_flag = DREC_FLAG_ARGS_JSON};
	assert_ok(reducer_xplane_filter_add(filter, &mark));
	for (int i = 0; i < 1000; i++) {
		struct reducer_event event = added(tracks[_i][0], tracks[_i][1], 10000000 + i * 10,
						   "{\"driverec.events\":2,\"driverec.sum_us\":0.125}");
		assert_ok(reducer_xplane_filter_add(filter, &event));
	}
	ck_assert_int_eq(write_filter(filter, some, n, out), 0);
	ck_well_formed(out);
	char *wanted = kept_lines(path, some);
	struct lines got = lines_of(out, &report);
	unsigned merged = 0;
	for (char *p = got.text; (p = strstr(p, "[driverec.merged] {\"driverec.events\":2,")); p++)
		merged++;
	ck_assert_uint_eq(merged, 1000);
	/* Every line that was to stay is there. */
	ck_assert_uint_gt(got.n, strlen(wanted));
	free(wanted);
	free(got.text);
}
END_TEST

START_TEST(what_cannot_be_added_is_said)
{
	const char *path = make_file();
	struct reducer_xplane_filter *filter = open_filter(path);
	struct reducer_event event = added("1", "99", 1, "");
	ck_assert_int_eq(reducer_xplane_filter_add(filter, &event), -2);
	event = added("9", "1", 1, "");
	ck_assert_int_eq(reducer_xplane_filter_add(filter, &event), -2);
	event = added("1", "1", INT64_MAX / 1000, "");
	ck_assert_int_eq(reducer_xplane_filter_add(filter, &event), -34);
	event = added("1", "1", 1, "");
	event.duration_ns = -1;
	ck_assert_int_eq(reducer_xplane_filter_add(filter, &event), -34);
	event.kind = DREC_META;
	ck_assert_int_eq(reducer_xplane_filter_add(filter, &event), -2);
	/* None of it has left anything behind. */
	const char *out = test_path(test_folder(), "out.xplane.pb");
	ck_assert_int_eq(write_filter(filter, NULL, 0, out), 0);
	ck_same_bytes(path, out);
}
END_TEST

START_TEST(the_bits_must_be_of_this_file)
{
	const char *out = test_path(test_folder(), "out.xplane.pb");
	static const uint8_t keep[8];
	ck_assert_int_eq(write_filter(open_filter(make_file()), keep, 21, out), -22);
	ck_assert_int_eq(write_filter(open_filter(make_file()), keep, 23, out), -22);
	ck_assert_int_eq(access(out, F_OK), 0);
	size_t n;
	free(test_read_file(out, &n));
	ck_assert_uint_eq(n, 0);
}
END_TEST

START_TEST(damaged_files_are_refused)
{
	struct reducer_xplane_filter *filter;
	struct reducer_problem problem;
	const char *path = make_file(), *out = test_path(test_folder(), "out.xplane.pb");
	size_t n;
	char *bytes = test_read_file(path, &n);
	const char *cut = test_path(test_folder(), "cut.xplane.pb");
	for (size_t m = 0; m < n; m += 7) {
		/* A file may end between two fields of the space: then it is whole. */
		if (m > n - 60)
			break;
		test_write_file(cut, bytes, m);
		int result = reducer_xplane_filter_open(cut, &filter, &problem);
		if (result == 0) {
			result = write_filter(filter, NULL, 0, out);
			ck_assert_msg(result == 0 || result == -74, "%zu bytes: %d", m, result);
			if (result == 0)
				ck_same_bytes(cut, out);
		} else {
			ck_assert_int_eq(result, -74);
			ck_assert(problem.what[0]);
		}
	}
	/* One event that cannot be read: which bit would be its own? */
	char *event = memmem(bytes, n, "\x22\x07\x08\x01\x10", 5);
	ck_assert_ptr_nonnull(event);
	event[2] = 0x0f;
	test_write_file(cut, bytes, n);
	filter = open_filter(cut);
	ck_assert_int_eq(write_filter(filter, NULL, 0, out), -74);
	ck_assert_int_eq(reducer_xplane_filter_open("/nonexistent", &filter, &problem), -2);
	free(bytes);
}
END_TEST

START_TEST(a_full_disk_is_an_error)
{
	struct reducer_xplane_filter *filter = open_filter(make_file());
	uint64_t bytes = 0;
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	ck_assert_int_eq(reducer_xplane_filter_write(filter, NULL, 0, fd, &bytes), -28);
	ck_assert_uint_eq(bytes, 0);
	close(fd);
	reducer_xplane_filter_free(filter);
	reducer_xplane_filter_free(NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xplane_filter");
	struct {
		const char *name;
		const TTest *test;
		int times;
	} cases[] = {
		{"nothing to do is the same file", nothing_to_do_is_the_same_file, 1},
		{"just the events of the bits stay", just_the_events_of_the_bits_stay, 3},
		{"what is not touched stays as it is", what_is_not_touched_stays_as_it_is, 1},
		{"events are added to their lines", events_are_added_to_their_lines, 1},
		{"the mark is a plane", the_mark_is_a_plane, 1},
		{"handed files take additions", handed_files_take_additions, 2},
		{"what cannot be added is said", what_cannot_be_added_is_said, 1},
		{"the bits must be of this file", the_bits_must_be_of_this_file, 1},
		{"damaged files are refused", damaged_files_are_refused, 1},
		{"a full disk is an error", a_full_disk_is_an_error, 1},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		TCase *one_case = tcase_create(cases[i].name);
		tcase_set_timeout(one_case, 120);
		tcase_add_loop_test(one_case, cases[i].test, 0, cases[i].times);
		suite_add_tcase(suite, one_case);
	}
	return test_run(suite);
}
