/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small traces, each of one concern that once went wrong: each is reduced to few bins, verified, and must still
 * hold a text as often as is said.
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

static void reduce(const char *raw, const char *reduced, const struct reducer_reduce_options *options)
{
	struct reducer_reduce *reduce = NULL;
	struct reducer_reduce_report report = {0};
	assert_ok(reducer_reduce_read(raw, options, &reduce, &report));
	int fd = open(reduced, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	assert_ok(reducer_reduce_write(reduce, fd, REDUCER_FORMAT_CHROME, NULL, &report));
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

#define X(tid, ts, dur, more)                                                                                          \
	"{\"ph\":\"X\",\"name\":\"x\",\"pid\":1,\"tid\":" #tid ",\"ts\":" #ts ",\"dur\":" #dur more "},\n"
#define POINT(ph, tid, ts, more)                                                                                       \
	"{\"ph\":\"" ph "\",\"name\":\"p\",\"pid\":1,\"tid\":" #tid ",\"ts\":" #ts more "},\n"
#define MARK ",\"cat\":\"driverec.mark\""
#define IDS ",\"cat\":\"c\",\"id\":7"
#define VALUE(value) ",\"args\":{\"v\":" value "}"
#define FORGED(rest) ",\"cat\":\"driverec.merged\",\"args\":{\"driverec.events\":3" rest "}"
#define FAR_END X(9, 1000, 1, "")

struct trial {
	const char *what, *text, *tracks;
	int64_t from_ps, to_ps; /* a window where to > 0 */
	const char *part;       /* stands `parts` times in what comes of it */
	unsigned parts;
};

static const struct trial trials[] = {
	{"marks that are instants stay",
	 POINT("i", 1, 1, MARK) POINT("i", 1, 2, MARK) POINT("i", 1, 3, "") POINT("i", 1, 4, MARK) POINT("i", 1, 5, "")
		 POINT("i", 1, 6, MARK) FAR_END, NULL, 0, 0, MARK, 4},
	{"one instant among marks stays",
	 POINT("i", 1, 1, MARK) POINT("i", 1, 2, MARK) POINT("i", 1, 3, "") POINT("i", 1, 4, MARK) FAR_END, NULL, 0, 0,
	 "driverec.merged", 0},
	{"step_num however it is written",
	 X(1, 1, 8, "") X(1, 2, 1, ",\"args\":{\"step_num\" : 3}") X(1, 4, 1, ",\"args\":{\"step_num\" : 4}") X(1, 6, 2, "")
		 X(1, 7, 1, "") FAR_END, NULL, 0, 0, "step_num", 2},
	{"what has no time or kind is on a track, too",
	 "{\"ph\":\"X\",\"name\":\"timeless\",\"pid\":1,\"tid\":2},\n" X(2, 5, -1, "") POINT("D", 2, 3, "") POINT("D", 3, 3, "")
		 X(2, 1, 2, "") X(3, 1, 2, "") FAR_END, "1/3", 0, 0, "\"tid\":2", 0},
	{"counters are chosen by the thread they name",
	 POINT("C", 2, 1, VALUE("1")) POINT("C", 3, 2, VALUE("9")) POINT("C", 2, 3, VALUE("2")) POINT("C", 2, 3, "")
		 X(2, 1, 2, "") X(3, 1, 2, "") FAR_END, "1/3", 0, 0, "\"ph\":\"C\"", 1},
	{"async pairs are chosen by the thread of their begin",
	 POINT("b", 2, 1, IDS) POINT("b", 3, 2, IDS) POINT("e", 2, 4, IDS) POINT("e", 3, 5, IDS) POINT("e", 2, 7, IDS)
		 X(2, 1, 2, "") X(3, 1, 2, "") FAR_END, "1/3", 0, 0, IDS, 2},
	{"a window cuts counters without a value",
	 POINT("C", 2, 1, VALUE("null")) POINT("C", 2, 2, VALUE("null")) POINT("C", 2, 900, VALUE("null"))
		 POINT("C", 2, 900, VALUE("4")) FAR_END, NULL, 0, 100000000, "null", 2},
	{"flow ends without a time",
	 "{\"ph\":\"s\",\"name\":\"f\",\"pid\":1,\"tid\":1,\"id\":1},\n" POINT("f", 1, 2, IDS) X(1, 1, 2, "") FAR_END, NULL, 0, 0,
	 "\"ph\":\"s\"", 1},
	{"an id is all that tells one from another",
	 POINT("b", 1, 1, IDS ",\"scope\":\"u\"") POINT("b", 1, 2, IDS ",\"scope\":\"v\"") POINT("e", 1, 3, ",\"scope\":\"u\"" IDS)
		 POINT("e", 1, 7, IDS ",\"scope\":\"v\"") POINT("b", 1, 2, IDS ",\"id2\":4,\"scope\":1")
			 POINT("e", 1, 2, ",\"scope\":1,\"id2\":4" IDS) POINT("b", 1, 2, IDS)
				 POINT("b", 1, 2, ",\"id2\":7") FAR_END, NULL, 0, 0, "driverec.events", 1},
	{"what looks merged is what it is",
	 X(1, 1, 2, FORGED("")) X(1, 1, 1, FORGED(",\"driverec.sum_ps\":\"x\"")) X(1, 2, 1, FORGED(",\"driverec.sum_ps\":3,\"driverec.longest_ps\":4")) X(1, 4, 3, FORGED(""))
		 POINT("i", 1, 3, FORGED("")) POINT("b", 1, 2, FORGED("")) POINT("B", 1, 5, FORGED(""))
			 POINT("E", 1, 6, FORGED("")) FAR_END, NULL, 0, 0, "driverec.reduced", 1},
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
		ck_assert_msg(count(text, trial->part) == trial->parts, "%s: %u times %s, not %u", trial->what,
			      count(text, trial->part), trial->part, trial->parts);
		free(text);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("reduce_cases");
	TCase *tcase = tcase_create("small");
	tcase_add_loop_test(tcase, small_trace_keeps_its_promises, 0, sizeof(trials) / sizeof(trials[0]));
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
