/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small traces, each of one concern that once went wrong: each is reduced to few bins, verified, and must
 * still hold a text as often as is said.
 */
#include <reducer/reduce.h>
#include <reducer/verify.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

static const char *folder;

struct test_bytes {
	unsigned char at[32768];
	size_t n;
};

static void reduce(const char *raw, const char *reduced, const struct reducer_reduce_options *options)
{
	struct reducer_reduce *reduce = NULL;
	struct reducer_reduce_report report = {0};
	assert_ok(reducer_reduce_read(raw, options, &reduce, &report));
	int fd = open(reduced, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	assert_ok(reducer_reduce_write(reduce, fd, reducer_format_of_name(reduced), NULL, &report));
	close(fd);
	reducer_reduce_free(reduce);
	uint64_t gone = 0;
	for (int reason = 0; reason < REDUCER_GONE_COUNT; reason++)
		gone += report.gone[reason];
	ck_assert_uint_eq(report.events_in, report.exact + gone);
}

static void verify(const char *what, const char *raw, const char *reduced)
{
	struct reducer_verify_report *report = calloc(1, sizeof(*report));
	struct reducer_problem problem = {0};
	ck_assert_ptr_nonnull(report);
	int result = reducer_verify(raw, reduced, report, &problem);
	ck_assert_msg(result == 0, "%s: %s (%s)", what, strerror(-result), problem.what);
	ck_assert_msg(report->n_differences == 0, "%s: M%d on %s: %s", what, report->difference[0].promise,
		      report->difference[0].track, report->difference[0].what);
	free(report);
}

static unsigned count(const char *text, const char *part)
{
	unsigned n = 0;
	for (; (text = strstr(text, part)) != NULL; text++)
		n++;
	return n;
}

#define X(tid, ts, dur, more)                                                                                \
	"{\"ph\":\"X\",\"name\":\"x\",\"pid\":1,\"tid\":" #tid ",\"ts\":" #ts ",\"dur\":" #dur more "},\n"
#define POINT(ph, tid, ts, more)                                                                             \
	"{\"ph\":\"" ph "\",\"name\":\"p\",\"pid\":1,\"tid\":" #tid ",\"ts\":" #ts more "},\n"
#define MARK         ",\"cat\":\"driverec.mark\""
#define IDS          ",\"cat\":\"c\",\"id\":7"
#define VALUE(value) ",\"args\":{\"v\":" value "}"
#define FORGED(rest) ",\"cat\":\"driverec.merged\",\"args\":{\"driverec.events\":3" rest "}"
#define FAR_END      X(9, 1000, 1, "")

struct trial {
	const char *what, *text, *tracks;
	int64_t from_ps, to_ps; /* a window where to > 0 */
	const char *part;       /* stands `parts` times in what comes of it */
	unsigned parts;
};

static const struct trial trials[] = {
	{"marks that are instants stay",
	 POINT("i", 1, 1, MARK) POINT("i", 1, 2, MARK) POINT("i", 1, 3, "") POINT("i", 1, 4, MARK)
		 POINT("i", 1, 5, "") POINT("i", 1, 6, MARK) FAR_END,
	 NULL, 0, 0, MARK, 4},
	{"one instant among marks stays",
	 POINT("i", 1, 1, MARK) POINT("i", 1, 2, MARK) POINT("i", 1, 3, "") POINT("i", 1, 4, MARK) FAR_END,
	 NULL, 0, 0, "driverec.merged", 0},
	{"step_num however it is written",
	 X(1, 1, 8, "") X(1, 2, 1, ",\"args\":{\"step_num\" : 3}") X(1, 4, 1, ",\"args\":{\"step_num\" : 4}")
		 X(1, 6, 2, "") X(1, 7, 1, "") FAR_END,
	 NULL, 0, 0, "step_num", 2},
	{"what has no time or kind is on a track, too",
	 "{\"ph\":\"X\",\"name\":\"timeless\",\"pid\":1,\"tid\":2},\n" X(2, 5, -1, "") POINT("D", 2, 3, "")
		 POINT("D", 3, 3, "") X(2, 1, 2, "") X(3, 1, 2, "") FAR_END,
	 "1/3", 0, 0, "\"tid\":2", 0},
	{"counters are chosen by the thread they name",
	 POINT("C", 2, 1, VALUE("1")) POINT("C", 3, 2, VALUE("9")) POINT("C", 2, 3, VALUE("2"))
		 POINT("C", 2, 3, "") X(2, 1, 2, "") X(3, 1, 2, "") FAR_END,
	 "1/3", 0, 0, "\"ph\":\"C\"", 1},
	{"async pairs are chosen by the thread of their begin",
	 POINT("b", 2, 1, IDS) POINT("b", 3, 2, IDS) POINT("e", 2, 4, IDS) POINT("e", 3, 5, IDS)
		 POINT("e", 2, 7, IDS) X(2, 1, 2, "") X(3, 1, 2, "") FAR_END,
	 "1/3", 0, 0, IDS, 2},
	{"a window cuts counters without a value",
	 POINT("C", 2, 1, VALUE("null")) POINT("C", 2, 2, VALUE("null")) POINT("C", 2, 900, VALUE("null"))
		 POINT("C", 2, 900, VALUE("4")) FAR_END,
	 NULL, 0, 100000000, "null", 2},
	{"flow ends without a time",
	 "{\"ph\":\"s\",\"name\":\"f\",\"pid\":1,\"tid\":1,\"id\":1},\n" POINT("f", 1, 2, IDS) X(1, 1, 2, "")
		 FAR_END,
	 NULL, 0, 0, "\"ph\":\"s\"", 1},
	{"an id is all that tells one from another",
	 POINT("b", 1, 1, IDS ",\"scope\":\"u\"") POINT("b", 1, 2, IDS ",\"scope\":\"v\"") POINT(
		 "e", 1, 3, ",\"scope\":\"u\"" IDS) POINT("e", 1, 7, IDS ",\"scope\":\"v\"")
		 POINT("b", 1, 2, IDS ",\"id2\":4,\"scope\":1") POINT("e", 1, 2, ",\"scope\":1,\"id2\":4" IDS)
			 POINT("b", 1, 2, IDS) POINT("b", 1, 2, ",\"id2\":7") FAR_END,
	 NULL, 0, 0, "driverec.events", 1},
	{"what looks merged is what it is",
	 X(1, 1, 2, FORGED("")) X(1, 1, 1, FORGED(",\"driverec.sum_ps\":\"x\""))
		 X(1, 2, 1, FORGED(",\"driverec.sum_ps\":3,\"driverec.longest_ps\":4")) X(1, 4, 3, FORGED(""))
			 POINT("i", 1, 3, FORGED("")) POINT("b", 1, 2, FORGED(""))
				 POINT("B", 1, 5, FORGED("")) POINT("E", 1, 6, FORGED("")) FAR_END,
	 NULL, 0, 0, "driverec.reduced", 1},
};

START_TEST(small_trace_keeps_its_promises)
{
	const struct trial *trial = &trials[_i];
	char raw[4096], reduced[4096], *text = NULL;
	folder = folder ? folder : test_folder();
	snprintf(raw, sizeof(raw), "%s/raw.json", folder);
	snprintf(reduced, sizeof(reduced), "%s/reduced.json", folder);
	size_t bytes = strlen(trial->text) + 16;
	ck_assert_ptr_nonnull(text = malloc(bytes));
	/* The last comma is one too many. */
	snprintf(text, bytes, "[%.*s]", (int)strlen(trial->text) - 2, trial->text);
	test_write_file(raw, text, strlen(text));
	free(text);
	static const uint32_t bins[] = {1, 3, 100};
	for (size_t i = 0; i < sizeof(bins) / sizeof(bins[0]); i++) {
		struct reducer_reduce_options options = {.bins = bins[i],
							 .track_pattern = trial->tracks,
							 .has_window = trial->to_ps > 0,
							 .window_from_ps = trial->from_ps,
							 .window_to_ps = trial->to_ps};
		reduce(raw, reduced, &options);
		verify(trial->what, raw, reduced);
		text = test_read_file(reduced, &bytes);
		ck_assert_msg(count(text, trial->part) == trial->parts, "%s: %u times %s, not %u",
			      trial->what, count(text, trial->part), trial->part, trial->parts);
		free(text);
	}
}
END_TEST

/* What names no process or no thread is on a track of its own in other formats, too. */
START_TEST(nameless_tracks_in_another_format)
{
	static const char text[] = "[" X(2, 1, 2, "") X(2, 4, 2, "") FAR_END
		"{\"ph\":\"X\",\"name\":\"no tid\",\"pid\":1,\"ts\":3,\"dur\":2},{\"ph\":\"X\",\"name\":\"no "
		"pid\",\"tid\":2,\"ts\":3,\"dur\":2},"
		"{\"ph\":\"X\",\"name\":\"bad\",\"pid\":\"\xff\",\"tid\":\"\xfe\",\"ts\":3,\"dur\":2},"
		"{\"ph\":\"C\",\"name\":\"m\",\"pid\":1,\"ts\":3,\"args\":{\"v\":5}},{\"ph\":\"X\",\"name\":"
		"\"none\",\"ts\":3,\"dur\":2}]";
	char raw[4096], reduced[4096];
	folder = folder ? folder : test_folder();
	snprintf(raw, sizeof(raw), "%s/raw.json", folder);
	snprintf(reduced, sizeof(reduced), "%s/reduced.xplane.pb", folder);
	test_write_file(raw, text, sizeof(text) - 1);
	struct reducer_reduce_options options = {.bins = 3};
	reduce(raw, reduced, &options);
	verify("nameless", raw, reduced);
}
END_TEST

/* One field of a protobuf message: bytes, or a number where there are none. */
static void put(struct test_bytes *out, unsigned number, const void *bytes, uint64_t n)
{
	out->at[out->n++] = (unsigned char)(number << 3 | (bytes ? 2 : 0));
	for (uint64_t rest = n;; rest >>= 7) {
		out->at[out->n++] = (unsigned char)(rest & 0x7f) | (rest > 0x7f ? 0x80 : 0);
		if (rest <= 0x7f)
			break;
	}
	if (bytes && n)
		memcpy(out->at + out->n, bytes, n);
	out->n += bytes ? n : 0;
}

/* A plane without a number of its own, with many short events. */
static void make_plane(struct test_bytes *space)
{
	static struct test_bytes plane, line;
	plane.n = line.n = 0;
	put(&line, 1, NULL, 5);
	for (unsigned i = 0; i < 600; i++) {
		struct test_bytes event = {.n = 0};
		put(&event, 1, NULL, 1);
		put(&event, 2, NULL, i * 2000);
		put(&event, 3, NULL, 1000);
		put(&line, 4, event.at, event.n);
	}
	put(&plane, 2, "/host:metadata", 14);
	put(&plane, 3, line.at, line.n);
	put(space, 1, plane.at, plane.n);
}

/* It cannot be filtered, so it is written anew; the plane that says so must not move the others' numbers. */
START_TEST(damaged_xplane_is_reduced)
{
	static struct test_bytes space;
	char raw[4096], reduced[4096];
	folder = folder ? folder : test_folder();
	snprintf(raw, sizeof(raw), "%s/raw.xplane.pb", folder);
	snprintf(reduced, sizeof(reduced), "%s/reduced.xplane.pb", folder);
	space.n = 0;
	make_plane(&space);
	make_plane(&space);
	test_write_file(raw, space.at, space.n - 3);
	struct reducer_reduce_options options = {.bins = 10};
	reduce(raw, reduced, &options);
	verify("cut off", raw, reduced);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("reduce_cases");
	TCase *tcase = tcase_create("small");
	tcase_add_loop_test(tcase, small_trace_keeps_its_promises, 0, sizeof(trials) / sizeof(trials[0]));
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("nameless");
	tcase_add_test(tcase, nameless_tracks_in_another_format);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("damaged");
	tcase_add_test(tcase, damaged_xplane_is_reduced);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
