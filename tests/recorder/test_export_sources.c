/* SPDX-License-Identifier: Apache-2.0 */
/* Several files in one trace: what two windows of a ring share is exported once, and processes stay apart. */
#include "export_pids.h"
#include "export_seen.h"

#include <driverec/driverec.h>
#include <driverec/freeze.h>
#include <reducer/drec_codec.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "support.h"

enum { EVENTS = 5000 };

static unsigned times_seen[2 * EVENTS + 1];

static int64_t unix_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Windows reach beyond now: a new ring's clock may still be a little off. */
static const int64_t AHEAD_NS = 1000000000;

static void write_window(const char *ring, const char *path, int64_t a_ns, int64_t b_ns)
{
	struct drec_reader *reader;
	struct drec_problem problem;
	struct drec_snapshot_result result;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	assert_ok(drec_reader_open(AT_FDCWD, ring, NULL, &reader, &problem));
	const struct drec_snapshot_request request = {.a_ns = a_ns, .b_ns = b_ns, .t0_ns = b_ns,
						      .mono_to_unix_ns = drec_reader_mono_to_unix_ns(reader)};
	assert_ok(drec_snapshot_write(reader, fd, &request, &result));
	drec_reader_free(reader);
	close(fd);
}

static int count_event(void *context, const struct reducer_event *event)
{
	unsigned *spans = context;
	if (event->kind == DREC_COUNTER) {
		ck_assert_uint_le((unsigned)event->value, 2 * EVENTS);
		times_seen[(unsigned)event->value]++;
	}
	*spans += event->kind == DREC_SPAN;
	return 0;
}

static bool was_exported(void *context, const struct drec_place *place)
{
	return export_seen_before(context, place);
}

static void read_window(struct export_seen *seen, const char *path, unsigned *spans)
{
	struct drec_reader *reader;
	struct drec_problem problem;
	struct reducer_read_report report;
	const struct reducer_sink sink = {.context = spans, .event = count_event};
	assert_ok(drec_reader_open(AT_FDCWD, path, NULL, &reader, &problem));
	const struct drec_window *window = drec_reader_window(reader);
	const struct reducer_drec_options options = {.has_window = 1, .a_ns = window->a_ns, .b_ns = window->b_ns,
						     .leave_out = was_exported, .context = seen};
	export_seen_ring(seen, drec_reader_header(reader));
	assert_ok(reducer_drec_read(reader, &sink, &options, NULL, &report));
	drec_reader_free(reader);
}

/* The second window begins within the first one, or where that does. */
START_TEST(an_event_across_the_seam_is_exported_once)
{
	const char *folder = test_shm_folder(), *why = "";
	const struct drec_options options = {.run_dir = folder, .job = "test", .name = "seam"};
	struct export_seen seen = {0};
	unsigned spans = 0;
	drec *rec;
	assert_ok(drec_open_strict(&options, &rec, &why));
	uint32_t name = drec_name(rec, "n");
	int64_t a_ns = unix_ns() - AHEAD_NS;
	uint64_t begin = drec_now(rec);
	for (unsigned i = 0; i < EVENTS; i++)
		drec_counter(rec, 0, name, i);
	int64_t seam_ns = unix_ns();
	const char *first = test_path(folder, "first.drec"), *second = test_path(folder, "second.drec");
	drec_span(rec, 0, name, begin, drec_now(rec));
	write_window(drec_path(rec), first, a_ns, unix_ns() + AHEAD_NS);
	for (unsigned i = EVENTS; i < 2 * EVENTS; i++)
		drec_counter(rec, 0, name, i);
	drec_span(rec, 0, name, begin, drec_now(rec));
	write_window(drec_path(rec), second, _i ? a_ns : seam_ns, unix_ns() + AHEAD_NS);
	read_window(&seen, first, &spans);
	read_window(&seen, second, &spans);
	for (unsigned i = 0; i < 2 * EVENTS; i++)
		ck_assert_msg(times_seen[i] == 1, "event %u is there %u times", i, times_seen[i]);
	ck_assert_uint_eq(spans, 2);
	export_seen_free(&seen);
	drec_close(rec);
}
END_TEST

START_TEST(rings_do_not_hide_each_others_events)
{
	struct export_seen seen = {0};
	struct drec_header one = {.ring_id = {1}}, other = {.ring_id = {2}};
	const struct drec_place place = {.slot = 1, .life = 2, .index = 3};
	export_seen_ring(&seen, &one);
	ck_assert(!export_seen_before(&seen, &place));
	ck_assert(export_seen_before(&seen, &place));
	export_seen_ring(&seen, &other);
	ck_assert(!export_seen_before(&seen, &place));
	export_seen_ring(&seen, &one);
	ck_assert(export_seen_before(&seen, &place));
	export_seen_free(&seen);
}
END_TEST

static void ck_pid(struct export_pids *pids, size_t source, const char *given, const char *expected)
{
	struct reducer_text written;
	assert_ok(export_pids_of(pids, source, (struct reducer_text){given, strlen(given)}, &written));
	ck_assert_msg(written.bytes == strlen(expected) && memcmp(written.data, expected, written.bytes) == 0,
		      "%s of source %zu became %.*s, not %s", given, source, (int)written.bytes, written.data,
		      expected);
}

START_TEST(the_same_pid_in_two_sources)
{
	struct export_pids pids = {0};
	ck_pid(&pids, 0, "1", "1");
	ck_pid(&pids, 0, "77", "77");
	ck_pid(&pids, 1, "1", "4194305");
	ck_pid(&pids, 2, "1", "8388609");
	ck_pid(&pids, 1, "1", "4194305");
	ck_pid(&pids, 0, "1", "1");
	/* One that is taken by a number made up before goes on to the next free one. */
	ck_pid(&pids, 3, "4194305", "12582913");
	export_pids_free(&pids);
}
END_TEST

START_TEST(pids_that_are_texts)
{
	struct export_pids pids = {0};
	ck_pid(&pids, 0, "\"Spans\"", "\"Spans\"");
	ck_pid(&pids, 1, "\"Spans\"", "\"Spans (2)\"");
	ck_pid(&pids, 2, "\"Spans\"", "\"Spans (3)\"");
	ck_pid(&pids, 0, "null", "null");
	ck_pid(&pids, 1, "null", "4194304");
	export_pids_free(&pids);
}
END_TEST

START_TEST(pids_are_bounded)
{
	struct export_pids pids = {0};
	struct reducer_text written;
	char pid[16];
	int result = 0;
	for (unsigned i = 0; i <= EXPORT_PIDS_MAX && result == 0; i++) {
		snprintf(pid, sizeof(pid), "%u", i);
		result = export_pids_of(&pids, 0, (struct reducer_text){pid, strlen(pid)}, &written);
	}
	ck_assert_int_eq(result, -E2BIG);
	export_pids_free(&pids);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("export_sources");
	TCase *tcase = tcase_create("windows of one ring");
	tcase_add_loop_test(tcase, an_event_across_the_seam_is_exported_once, 0, 2);
	tcase_add_test(tcase, rings_do_not_hide_each_others_events);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("processes of several sources");
	tcase_add_test(tcase, the_same_pid_in_two_sources);
	tcase_add_test(tcase, pids_that_are_texts);
	tcase_add_test(tcase, pids_are_bounded);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
