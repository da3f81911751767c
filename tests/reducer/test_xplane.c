/* SPDX-License-Identifier: Apache-2.0 */
/* An XSpace read: handed files against an independent reading, each rule of xplane.h, each kind of damage. */
#include "xplane_support.h"

#include <locale.h>
#include <math.h>
#include <zlib.h>

static struct pb space, plane, line, one;

/* Ends the line into the plane, the plane into the space. */
static void end_line(void)
{
	pb_nest(&plane, 3, &line);
}

static void begin_plane(const char *name)
{
	plane.n = 0;
	pb_text(&plane, 2, name);
}

static void end_plane(void)
{
	pb_nest(&space, 1, &plane);
}

/* One plane, one line: 3 events, names and stats after them, as all writers put them. */
static void make_small(void)
{
	space.n = 0;
	begin_plane("/device:TPU:0");
	pb_line_head(&line, 7, "XLA Ops", 5);
	one.n = 0;
	pb_number(&one, 1, 1);
	pb_number(&one, 2, 1001);
	pb_number(&one, 3, 2500);
	pb_stat(&one, 4, 1, 4, -3);
	pb_nest(&line, 4, &one);
	pb_event(&line, 2, 4000, NO_DURATION);
	pb_event(&line, 1, 5000, 0);
	end_line();
	pb_metadata(&plane, 4, 1, "fusion.1", NULL);
	pb_metadata(&plane, 4, 2, "mark", NULL);
	pb_metadata(&plane, 5, 1, "cost", NULL);
	end_plane();
	pb_text(&space, 4, "host1");
}

static void expect(const char *text)
{
	struct reducer_read_report report;
	struct lines lines = lines_of_bytes(space.bytes, space.n, &report);
	ck_assert_str_eq(lines.text, text);
	ck_assert_uint_eq(report.damaged, 0);
	free(lines.text);
}

static void expect_damaged(const char *text, unsigned damaged)
{
	struct reducer_read_report report;
	struct lines lines = lines_of_bytes(space.bytes, space.n, &report);
	ck_assert_str_eq(lines.text, text);
	ck_assert_uint_eq(report.damaged, damaged);
	free(lines.text);
}

START_TEST(spans_instants_and_stats)
{
	make_small();
	expect("span 1/7 6.001+2.500 fusion.1 {\"cost\":-3}\n"
	       "instant 1/7 9.000 mark\n"
	       "span 1/7 10.000+0.000 fusion.1\n");
}
END_TEST

/* --- handed files --- */

struct totals {
	struct lines out;
	char group[32], track[32];
	uint64_t n;
	__int128 first, last, sum;
	char names[400][3][128]; /* group, track or "", name */
	unsigned n_names;
};

static const char *name_of(const struct totals *totals, const char *group, const char *track)
{
	for (unsigned i = 0; i < totals->n_names; i++)
		if (!strcmp(totals->names[i][0], group) && !strcmp(totals->names[i][1], track))
			return totals->names[i][2];
	return "";
}

static void add_i128(struct lines *out, __int128 value)
{
	char text[64];
	ck_assert(value <= INT64_MAX && value >= INT64_MIN);
	lines_add(out, text, (size_t)snprintf(text, sizeof(text), "\t%" PRId64, (int64_t)value));
}

static void end_track(struct totals *totals)
{
	char text[300];
	if (!totals->n)
		return;
	int n = snprintf(text, sizeof(text), "%s\t%s\t%" PRIu64, name_of(totals, totals->group, ""),
			 name_of(totals, totals->group, totals->track), totals->n);
	lines_add(&totals->out, text, (size_t)n);
	add_i128(&totals->out, totals->first);
	add_i128(&totals->out, totals->last);
	add_i128(&totals->out, totals->sum);
	lines_add(&totals->out, "\n", 1);
	totals->n = 0;
}

static void copy_text(char *to, size_t room, struct reducer_text from)
{
	ck_assert_uint_lt(from.bytes, room);
	memcpy(to, from.bytes ? from.data : "", from.bytes);
	to[from.bytes] = 0;
}

static int totals_event(void *context, const struct reducer_event *event)
{
	struct totals *totals = context;
	char group[32], track[32];
	copy_text(group, sizeof(group), event->group);
	copy_text(track, sizeof(track), event->track);
	if (event->kind == DREC_META) {
		bool process = event->name.bytes == 12 && !memcmp(event->name.data, "process_name", 12);
		bool thread = event->name.bytes == 11 && !memcmp(event->name.data, "thread_name", 11);
		if (!process && !thread)
			return 0;
		ck_assert_uint_lt(totals->n_names, 400);
		strcpy(totals->names[totals->n_names][0], group);
		strcpy(totals->names[totals->n_names][1], track);
		/* {"name":"…"} */
		copy_text(totals->names[totals->n_names++][2], 128,
			  (struct reducer_text){event->args.data + 9, event->args.bytes - 11});
		return 0;
	}
	if (strcmp(group, totals->group) || strcmp(track, totals->track))
		end_track(totals);
	strcpy(totals->group, group);
	strcpy(totals->track, track);
	__int128 start = (__int128)event->start_ns * 1000 + event->start_ps;
	__int128 length = (__int128)event->duration_ns * 1000 + event->duration_ps;
	totals->first = totals->n && totals->first < start ? totals->first : start;
	totals->last = totals->n && totals->last > start + length ? totals->last : start + length;
	totals->sum = (totals->n ? totals->sum : 0) + length;
	totals->n++;
	return 0;
}

START_TEST(agrees_with_an_independent_reading)
{
#ifdef PYTHON3
	static struct totals totals;
	struct reducer_read_report report;
	const struct reducer_sink sink = {.context = &totals, .event = totals_event};
	const char *path = handed_xplane(_i);
	char command[1024];
	static char theirs[1 << 16];
	if (!path) {
		puts("skipped: no handed data");
		return;
	}
	assert_ok(reducer_xplane_read(path, &sink, &report));
	end_track(&totals);
	ck_assert_uint_eq(report.damaged, 0);
	snprintf(command, sizeof(command), "%s %s %s", PYTHON3, ORACLE, path);
	FILE *pipe = popen(command, "r");
	ck_assert_ptr_nonnull(pipe);
	theirs[fread(theirs, 1, sizeof(theirs) - 1, pipe)] = 0;
	ck_assert_int_eq(pclose(pipe), 0);
	ck_assert_uint_gt(totals.out.n, 100);
	ck_assert_str_eq(totals.out.text, theirs);
#else
	puts("skipped: no Python");
#endif
}
END_TEST

START_TEST(handed_files_say_what_is_in_them)
{
	struct reducer_read_report report;
	if (!handed_xplane(0)) {
		puts("skipped: no handed data");
		return;
	}
	struct lines jax = lines_of(handed_xplane(0), &report);
	ck_assert_int_eq(report.has_base, 1);
	ck_assert_int_eq(report.base_unix_ns, 1771595639214724894);
	ck_assert_uint_eq(report.damaged, 0);
	ck_assert_ptr_nonnull(strstr(jax.text, "member hostnames=[\"tw003\"]\n"));
	ck_assert_ptr_nonnull(strstr(jax.text, "meta 1/ plane_stats {\"device_vendor\":\"AMD\","
					       "\"clock_rate\":2100000,"));
	ck_assert_ptr_nonnull(strstr(jax.text, "event_metadata {\"name\":"));
	ck_assert_ptr_nonnull(strstr(jax.text, "\"fragmentation\":0.424371,"));
	struct lines tf = lines_of(handed_xplane(1), &report);
	ck_assert_int_eq(report.has_base, 0);
	ck_assert_ptr_nonnull(strstr(tf.text, "/-559038734 "));
	free(jax.text);
	free(tf.text);
}
END_TEST

/* --- planes and lines --- */

START_TEST(pids_and_tids_are_each_one_track)
{
	struct reducer_read_report report;
	space.n = 0;
	static const char *const names[] = {"/host:CPU", "/device:GPU:0", "/device:GPU:1", "/device:CUSTOM:a",
					    "#Chip0", "/host:CPU"};
	static const int ids[] = {0, 3, 3, 5, 0, 0};
	for (int i = 0; i < 6; i++) {
		begin_plane(names[i]);
		pb_number(&plane, 1, ids[i]);
		pb_line_head(&line, 9, "a", 0);
		pb_event(&line, 1, 1000, 1000);
		end_line();
		pb_line_head(&line, 9, "b", 0);
		pb_event(&line, 1, 1000, 1000);
		end_line();
		end_plane();
	}
	struct lines lines = lines_of_bytes(space.bytes, space.n, &report);
	ck_assert_str_eq(lines.text, "span 701/9 1.000+1.000 #1\nspan 701/1000001 1.000+1.000 #1\n"
				     "span 4/9 1.000+1.000 #1\nspan 4/1000001 1.000+1.000 #1\n"
				     "span 1001/9 1.000+1.000 #1\nspan 1001/1000001 1.000+1.000 #1\n"
				     "span 506/9 1.000+1.000 #1\nspan 506/1000001 1.000+1.000 #1\n"
				     "span 1002/9 1.000+1.000 #1\nspan 1002/1000001 1.000+1.000 #1\n"
				     "span 1003/9 1.000+1.000 #1\nspan 1003/1000001 1.000+1.000 #1\n");
	free(lines.text);
}
END_TEST

START_TEST(metadata_comes_first)
{
	struct reducer_read_report report;
	const char *path = test_path(test_folder(), "small.xplane.pb");
	make_small();
	test_write_file(path, space.bytes, space.n);
	struct lines lines = lines_of(path, &report);
	ck_assert_str_eq(lines.text, "member hostnames=[\"host1\"]\n"
				     "meta 1/ process_name {\"name\":\"/device:TPU:0\"}\n"
				     "meta 1/ process_sort_index {\"sort_index\":1}\n"
				     "meta 1/ plane_info {\"id\":0}\n"
				     "meta 1/7 thread_name {\"name\":\"XLA Ops\"}\n"
				     "meta 1/7 thread_sort_index {\"sort_index\":1}\n"
				     "meta 1/7 line_info {\"timestamp_ns\":5}\n"
				     "span 1/7 6.001+2.500 fusion.1 {\"cost\":-3}\n"
				     "instant 1/7 9.000 mark\n"
				     "span 1/7 10.000+0.000 fusion.1\n");
	ck_assert_uint_eq(report.events, 9);
	ck_assert_uint_eq(report.text_bytes, space.n);
	free(lines.text);
}
END_TEST

START_TEST(places_in_the_file_are_said)
{
	struct reducer_read_report report;
	struct lines lines;
	make_small();
	unsigned char *at = memmem(space.bytes, space.n, "\x08\x02\x10\xa0\x1f", 5);
	ck_assert_ptr_nonnull(at);
	lines = lines_of_bytes(space.bytes, space.n, &report);
	free(lines.text);
	/* The damage of one event is reported where its field stands: its tag and length are before `at`. */
	at[0] = 0x0f; /* a group's end: no field */
	lines = lines_of_bytes(space.bytes, space.n, &report);
	ck_assert_uint_eq(report.problem[0].offset, (uint64_t)(at - 2 - space.bytes));
	ck_assert_uint_eq(report.skipped_bytes, 5);
	ck_assert_uint_eq(report.damaged, 1);
	ck_assert_uint_eq(lines.events, 2);
	free(lines.text);
}
END_TEST

START_TEST(base_is_of_the_task_environment)
{
	struct reducer_read_report report;
	const struct reducer_sink none = {0};
	make_small();
	begin_plane("Task Environment");
	pb_metadata(&plane, 5, 4, "profile_start_time", NULL);
	pb_stat(&plane, 6, 4, 3, 1700000000123456789);
	end_plane();
	assert_ok(reducer_xplane_read_bytes(space.bytes, space.n, &none, &report));
	ck_assert_int_eq(report.has_base, 1);
	ck_assert_int_eq(report.base_unix_ns, 1700000000123456789);
}
END_TEST

/* --- times --- */

START_TEST(times_are_exact_and_may_be_negative)
{
	space.n = 0;
	begin_plane("/host:CPU");
	pb_line_head(&line, -5, "t", -1);
	pb_event(&line, 1, -1, 1);
	pb_event(&line, 1, 1001, 999999999999999999);
	end_line();
	pb_line_head(&line, 2, "u", 9000000000000000000);
	pb_event(&line, 1, 999, 1);
	end_line();
	end_plane();
	expect("span 701/-5 -2.999+0.001 #1\n"
	       "span 701/-5 0.001+999999999999999.999 #1\n"
	       "span 701/2 9000000000000000000.999+0.001 #1\n");
}
END_TEST

START_TEST(times_beyond_all_are_damage)
{
	space.n = 0;
	begin_plane("/host:CPU");
	pb_line_head(&line, 1, "t", INT64_MAX);
	pb_event(&line, 1, 999, 1);
	pb_event(&line, 1, 1000, 1);
	pb_event(&line, 1, 0, -5);
	end_line();
	end_plane();
	expect_damaged("span 701/1 9223372036854775807.999+0.001 #1\n"
		       "span 701/1 9223372036854775807.000+0.000 #1\n", 2);
}
END_TEST

/* --- stats --- */

START_TEST(stats_of_all_kinds)
{
	static struct pb stat;
	space.n = 0;
	begin_plane("/host:CPU");
	pb_line_head(&line, 1, "t", 0);
	one.n = 0;
	pb_number(&one, 1, 1);
	pb_number(&one, 2, 0);
	pb_stat(&one, 4, 1, 3, -1);        /* uint64 of 10 bytes */
	pb_stat(&one, 4, 1, 4, INT64_MIN); /* int64 of 10 bytes */
	pb_stat_text(&one, 4, 2, 5, "a \"b\"\n\xff");
	pb_stat_text(&one, 4, 3, 6, "\x01\xff");
	pb_stat(&one, 4, 4, 7, 5); /* a reference */
	pb_stat(&one, 4, 4, 7, 99);
	pb_stat_text(&one, 4, 77, 8, "zip");
	stat.n = 0;
	pb_number(&stat, 1, 1);
	pb_nest(&one, 4, &stat);
	const double doubles[] = {0.1, 1e300, -2.0, 5e-324, 1.0 / 3e9, INFINITY, NAN};
	for (size_t i = 0; i < sizeof(doubles) / sizeof(doubles[0]); i++) {
		pb_number(&stat, 1, 6);
		pb_double(&stat, 2, doubles[i]);
		pb_nest(&one, 4, &stat);
	}
	pb_nest(&line, 4, &one);
	end_line();
	static const char *const names[] = {"n", "s", "b\x1f", "r", "value", "d"};
	for (int i = 0; i < 6; i++)
		pb_metadata(&plane, 5, i + 1, names[i], NULL);
	pb_metadata(&plane, 4, 1, "e", "shown");
	end_plane();
	const char *text =
		"instant 701/1 0.000 e {\"n\":18446744073709551615,\"n\":-9223372036854775808,"
		"\"s\":\"a \\\"b\\\"\\n\xef\xbf\xbd\",\"b\\u001f\":{\"base64\":\"Af8=\"},\"r\":\"value\","
		"\"r\":\"#99\",\"#77\":{\"gzip_base64\":\"emlw\"},\"n\":null,"
		"\"d\":0.10000000000000001,\"d\":1.0000000000000001e300,\"d\":-2.0,"
		"\"d\":4.9406564584124654e-324,\"d\":3.3333333333333332e-10,\"d\":\"Infinity\","
		"\"d\":\"NaN\",\"meta:display_name\":\"shown\"}\n";
	expect(text);
	/* Where a point is a comma, too. */
	if (setlocale(LC_ALL, "de_DE.UTF-8") || setlocale(LC_ALL, "fr_FR.UTF-8"))
		expect(text);
}
END_TEST

START_TEST(metadata_stats_follow_the_events)
{
	static struct pb value, entry;
	space.n = value.n = entry.n = 0;
	begin_plane("/device:TPU:0");
	pb_line_head(&line, 1, "t", 0);
	one.n = 0;
	pb_number(&one, 1, 1);
	pb_number(&one, 2, 0);
	pb_number(&one, 3, 5);
	pb_stat(&one, 4, 2, 4, 8);
	pb_nest(&line, 4, &one);
	end_line();
	pb_number(&value, 1, 1);
	pb_text(&value, 2, "op");
	pb_text(&value, 3, "hlo");
	pb_text(&value, 4, "op.1");
	pb_stat_text(&value, 5, 1, 5, "infeed");
	pb_bytes(&value, 6, "\x03\x04", 2);
	pb_number(&entry, 1, 1);
	pb_nest(&entry, 2, &value);
	pb_nest(&plane, 4, &entry);
	pb_metadata(&plane, 5, 1, "hlo_category", NULL);
	pb_metadata(&plane, 5, 2, "x", NULL);
	end_plane();
	expect("span 1/1 0.000+0.005 op {\"x\":8,\"meta:display_name\":\"op.1\",\"meta:metadata\":"
	       "{\"base64\":\"aGxv\"},\"meta:child_ids\":[3,4],\"meta.hlo_category\":\"infeed\"}\n");
}
END_TEST

START_TEST(counters_are_values)
{
	space.n = 0;
	begin_plane("/device:GPU:0");
	pb_line_head(&line, 1, "_counters_", 0);
	one.n = 0;
	pb_number(&one, 1, 1);
	pb_number(&one, 2, 3000);
	pb_stat(&one, 4, 1, 3, 42);
	pb_nest(&line, 4, &one);
	end_line();
	pb_metadata(&plane, 4, 1, "HBM", NULL);
	pb_metadata(&plane, 5, 1, "value", NULL);
	end_plane();
	expect("counter 1/1 3.000 HBM {\"value\":42}\n");
}
END_TEST

START_TEST(merged_events_say_so_first)
{
	space.n = 0;
	begin_plane("/device:GPU:0");
	pb_line_head(&line, 1, "s", 0);
	one.n = 0;
	pb_number(&one, 1, 1);
	pb_number(&one, 2, 0);
	pb_number(&one, 3, 1000);
	pb_stat(&one, 4, 1, 4, 1);
	pb_stat(&one, 4, 2, 3, 12);
	pb_nest(&line, 4, &one);
	end_line();
	pb_metadata(&plane, 4, 1, "merged", NULL);
	pb_metadata(&plane, 5, 1, "driverec.longest_ps", NULL);
	pb_metadata(&plane, 5, 2, "driverec.events", NULL);
	end_plane();
	expect("span 1/1 0.000+1.000 merged [driverec.merged] "
	       "{\"driverec.events\":12,\"driverec.longest_ps\":1}\n");
}
END_TEST

START_TEST(aggregated_events_have_no_time)
{
	struct reducer_read_report report;
	struct lines lines = {.with_meta = true, .with_args = true};
	struct reducer_sink sink = lines_sink(&lines);
	space.n = 0;
	begin_plane("/device:GPU:0");
	pb_line_head(&line, 1, "s", 0);
	one.n = 0;
	pb_number(&one, 1, 1);
	pb_number(&one, 5, 12);
	pb_number(&one, 3, 777);
	pb_nest(&line, 4, &one);
	end_line();
	end_plane();
	assert_ok(reducer_xplane_read_bytes(space.bytes, space.n, &sink, &report));
	ck_assert_ptr_nonnull(strstr(lines.text, "meta 1/1 aggregated_event {\"name\":\"#1\","
						 "\"num_occurrences\":12,\"duration_ps\":777}\n"));
	ck_assert_uint_eq(lines.events, 0);
	free(lines.text);
}
END_TEST

/* --- damage --- */

START_TEST(any_truncation_gives_all_whole_events)
{
	make_small();
	size_t whole = space.n, ends[3], n_ends = 0, n;
	const struct reducer_sink count_nothing = {0};
	struct reducer_read_report report;
	/* Where each event ends: its bytes are found by their durations and offsets. */
	static const char *const tails[] = {"\x22\x04\x08\x02\x10\xa0\x1f",
					    "\x22\x07\x08\x01\x10\x88\x27\x18\x00"};
	unsigned char *second = memmem(space.bytes, whole, tails[0], 2);
	ck_assert_ptr_null(second);
	second = memmem(space.bytes, whole, "\x08\x02\x10\xa0\x1f", 5);
	ends[n_ends++] = (size_t)(second - 2 - space.bytes);
	ends[n_ends++] = (size_t)(second + 5 - space.bytes);
	unsigned char *third = memmem(space.bytes, whole, "\x08\x01\x10\x88\x27\x18\x00", 7);
	ck_assert_ptr_nonnull(third);
	ends[n_ends++] = (size_t)(third + 7 - space.bytes);
	for (n = 1; n <= whole; n++) {
		/* In memory of just that size, so that a byte too many is seen. */
		unsigned char *cut = malloc(n);
		memcpy(cut, space.bytes, n);
		struct lines lines = {.with_args = true};
		struct reducer_sink sink = lines_sink(&lines);
		int result = reducer_xplane_read_bytes(cut, n, &sink, &report);
		uint64_t expected = (n >= ends[0]) + (n >= ends[1]) + (n >= ends[2]);
		ck_assert_msg(result == 0 || (n < 3 && result == -74), "%zu bytes: %d", n, result);
		ck_assert_msg(lines.events == expected, "%zu of %zu bytes: %" PRIu64 " events, not %" PRIu64,
			      n, whole, lines.events, expected);
		/* The hostname after the plane is the only field that may be missing unnoticed. */
		ck_assert_msg(n == whole || n == whole - 7 || report.damaged > 0, "%zu bytes", n);
		free(lines.text);
		free(cut);
	}
	ck_assert_int_eq(reducer_xplane_read_bytes("", 0, &count_nothing, &report), -74);
	ck_assert_uint_eq(report.n_problems, 1);
}
END_TEST

START_TEST(damage_is_contained)
{
	struct reducer_read_report report;
	/* Every byte changed in every way that matters: nothing is read that is not there, nor made up. */
	make_small();
	for (size_t i = 0; i < space.n; i++) {
		static const unsigned char values[] = {0x00, 0x01, 0x0f, 0x7f, 0x80, 0xff, 0x22, 0x0b};
		unsigned char before = space.bytes[i];
		for (size_t j = 0; j < sizeof(values); j++) {
			struct lines lines = {.with_meta = true, .with_args = true};
			struct reducer_sink sink = lines_sink(&lines);
			unsigned char *copy = malloc(space.n);
			space.bytes[i] = values[j];
			memcpy(copy, space.bytes, space.n);
			int result = reducer_xplane_read_bytes(copy, space.n, &sink, &report);
			ck_assert(result == 0 || result == -74);
			ck_assert_uint_le(lines.events, 8);
			free(copy);
			free(lines.text);
		}
		space.bytes[i] = before;
	}
	/* A length that reaches beyond its line takes the rest of the line with it, and no other line. */
	space.n = 0;
	begin_plane("/host:CPU");
	pb_line_head(&line, 1, "t", 0);
	pb_event(&line, 1, 1000, 1000);
	size_t at = line.n;
	pb_event(&line, 1, 2000, 1000);
	line.bytes[at + 1] = 0x7e;
	end_line();
	pb_line_head(&line, 2, "u", 0);
	pb_event(&line, 1, 3000, 1000);
	end_line();
	end_plane();
	expect_damaged("span 701/1 1.000+1.000 #1\nspan 701/2 3.000+1.000 #1\n", 1);
}
END_TEST

START_TEST(unknown_fields_are_passed_over)
{
	static struct pb unknown;
	space.n = 0;
	unknown.n = 0;
	pb_number(&unknown, 2000, -1);
	pb_double(&unknown, 77, 1.5);
	pb_text(&unknown, 19, "whatever");
	begin_plane("/host:CPU");
	pb_bytes(&plane, 100, unknown.bytes, unknown.n);
	pb_line_head(&line, 1, "t", 0);
	memcpy(line.bytes + line.n, unknown.bytes, unknown.n);
	line.n += unknown.n;
	one.n = 0;
	pb_number(&one, 1, 1);
	pb_number(&one, 2, 1000);
	memcpy(one.bytes + one.n, unknown.bytes, unknown.n);
	one.n += unknown.n;
	pb_text(&one, 3, "a length that is a text");
	pb_nest(&line, 4, &one);
	end_line();
	end_plane();
	memcpy(space.bytes + space.n, unknown.bytes, unknown.n);
	space.n += unknown.n;
	expect("instant 701/1 1.000 #1\n");
}
END_TEST

START_TEST(what_is_no_file_is_said)
{
	struct reducer_read_report report;
	const struct reducer_sink none = {0};
	ck_assert_int_eq(reducer_xplane_read("/nonexistent", &none, &report), -2);
	ck_assert_uint_eq(report.n_problems, 1);
	const char *path = test_path(test_folder(), "none.xplane.pb");
	test_write_file(path, "hello, world", 12);
	ck_assert_int_eq(reducer_xplane_read(path, &none, &report), -74);
	ck_assert_uint_ge(report.n_problems, 1);
}
END_TEST

START_TEST(packed_files_are_unpacked)
{
	struct reducer_read_report report;
	static unsigned char packed[1 << 16];
	const char *path = test_path(test_folder(), "small.xplane.pb.gz");
	z_stream stream = {.next_in = space.bytes, .next_out = packed, .avail_out = sizeof(packed)};
	make_small();
	stream.avail_in = (unsigned)space.n;
	ck_assert_int_eq(deflateInit2(&stream, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	ck_assert_int_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
	test_write_file(path, packed, stream.total_out);
	struct lines lines = lines_of(path, &report);
	ck_assert_uint_eq(lines.events, 3);
	ck_assert_uint_eq(report.text_bytes, space.n);
	ck_assert_uint_eq(report.damaged, 0);
	free(lines.text);
	/* What comes before the packing ends is read, and that it ends is said. */
	test_write_file(path, packed, stream.total_out - 12);
	lines = lines_of(path, &report);
	ck_assert_uint_ge(report.damaged, 1);
	ck_assert_ptr_nonnull(strstr(report.problem[report.n_problems - 1].what, "cut off"));
	free(lines.text);
	deflateEnd(&stream);
}
END_TEST

START_TEST(no_message_is_over_2_gib)
{
	struct reducer_read_report report;
	const struct reducer_sink none = {0};
	const char *path = test_path(test_folder(), "large.xplane.pb");
	test_write_file(path, "\x0a", 1);
	ck_assert_int_eq(truncate(path, INT64_C(1) << 31), 0);
	ck_assert_int_eq(reducer_xplane_read(path, &none, &report), -27);
	ck_assert_uint_eq(report.n_problems, 1);
	ck_assert_ptr_nonnull(strstr(report.problem[0].what, "2 GiB"));
	ck_assert_int_eq(reducer_xplane_read_bytes("", SIZE_MAX, &none, &report), -27);
}
END_TEST

START_TEST(a_pipe_will_do)
{
	struct reducer_read_report report;
	char path[64];
	int fds[2];
	ck_assert_int_eq(pipe(fds), 0);
	make_small();
	ck_assert_int_eq(write(fds[1], space.bytes, space.n), (ssize_t)space.n);
	close(fds[1]);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[0]);
	struct lines lines = lines_of(path, &report);
	ck_assert_uint_eq(lines.events, 3);
	free(lines.text);
	close(fds[0]);
	const struct reducer_sink none = {0};
	ck_assert_int_eq(reducer_xplane_read(test_folder(), &none, &report), -21);
}
END_TEST

static int stop_at_second(void *context, const struct reducer_event *event)
{
	(void)event;
	return ++*(int *)context == 2 ? 42 : 0;
}

START_TEST(a_sink_may_end_the_reading)
{
	struct reducer_read_report report;
	int n = 0;
	const struct reducer_sink sink = {.context = &n, .event = stop_at_second};
	make_small();
	ck_assert_int_eq(reducer_xplane_read_bytes(space.bytes, space.n, &sink, &report), 42);
	ck_assert_int_eq(n, 2);
}
END_TEST

/* --- sniffing --- */

START_TEST(an_xspace_is_known_by_its_content)
{
	make_small();
	ck_assert(reducer_xplane_sniff(space.bytes, space.n));
	for (size_t n = 24; n <= space.n; n++)
		ck_assert_msg(reducer_xplane_sniff(space.bytes, n), "%zu bytes", n);
	ck_assert(reducer_xplane_sniff("\x22\x04" "host", 6));
	for (int i = 0; i < 2 && handed_xplane(i); i++) {
		size_t count;
		char *bytes = test_read_file(handed_xplane(i), &count);
		for (size_t n = 64; n <= 4096; n++)
			ck_assert_msg(reducer_xplane_sniff(bytes, n), "%zu bytes of %s", n, handed_xplane(i));
		free(bytes);
	}
}
END_TEST

START_TEST(other_files_are_no_xspace)
{
	/* Perfetto: packets of a clock snapshot, of a process tree, of a time. */
	static const char *const pftraces[] = {"\x0a\x0a\x32\x08\x0a\x06\x08\x06\x10\xc0\x84\x3d",
					       "\x0a\x08\x12\x06\x0a\x04\x08\x01\x12\x00",
					       "\x0a\x06\x40\x80\x01\x50\x01\x00",
					       "\x0a\x04\x08\x01\x10\x02"};
	static const size_t bytes[] = {12, 10, 8, 6};
	for (int i = 0; i < 4; i++)
		ck_assert_msg(!reducer_xplane_sniff(pftraces[i], bytes[i]), "pftrace %d", i);
	static const char *const texts[] = {"{\"traceEvents\":[]}",
					    "[{\"ph\":\"X\"}]",
					    "\n\n{\"traceEvents\":[]}",
					    "\"text\"",
					    "hello, world",
					    "",
					    "\x1f\x8b\x08",
					    "\n"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		ck_assert_msg(!reducer_xplane_sniff(texts[i], strlen(texts[i])), "%s", texts[i]);
	unsigned taken = 0;
	for (int i = 0; i < 20000; i++) {
		unsigned char random[256];
		for (size_t j = 0; j < sizeof(random); j++)
			random[j] = (unsigned char)test_random();
		taken += reducer_xplane_sniff(random, sizeof(random)) != 0;
	}
	ck_assert_uint_le(taken, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xplane");
	struct {
		const char *name;
		const TTest *test;
		int times;
	} cases[] = {
		{"spans, instants and stats", spans_instants_and_stats, 1},
		{"agrees with an independent reading", agrees_with_an_independent_reading, 2},
		{"handed files say what is in them", handed_files_say_what_is_in_them, 1},
		{"pids and tids are each one track", pids_and_tids_are_each_one_track, 1},
		{"metadata comes first", metadata_comes_first, 1},
		{"places in the file are said", places_in_the_file_are_said, 1},
		{"base is of the Task Environment", base_is_of_the_task_environment, 1},
		{"times are exact and may be negative", times_are_exact_and_may_be_negative, 1},
		{"times beyond all are damage", times_beyond_all_are_damage, 1},
		{"stats of all kinds", stats_of_all_kinds, 1},
		{"metadata stats follow the event's", metadata_stats_follow_the_events, 1},
		{"counters are values", counters_are_values, 1},
		{"merged events say so first", merged_events_say_so_first, 1},
		{"aggregated events have no time", aggregated_events_have_no_time, 1},
		{"any truncation gives all whole events", any_truncation_gives_all_whole_events, 1},
		{"damage is contained", damage_is_contained, 1},
		{"unknown fields are passed over", unknown_fields_are_passed_over, 1},
		{"what is no file is said", what_is_no_file_is_said, 1},
		{"packed files are unpacked", packed_files_are_unpacked, 1},
		{"no message is over 2 GiB", no_message_is_over_2_gib, 1},
		{"a pipe will do", a_pipe_will_do, 1},
		{"a sink may end the reading", a_sink_may_end_the_reading, 1},
		{"an XSpace is known by its content", an_xspace_is_known_by_its_content, 1},
		{"other files are no XSpace", other_files_are_no_xspace, 1},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		TCase *one_case = tcase_create(cases[i].name);
		tcase_set_timeout(one_case, 60);
		tcase_add_loop_test(one_case, cases[i].test, 0, cases[i].times);
		suite_add_tcase(suite, one_case);
	}
	return test_run(suite);
}
