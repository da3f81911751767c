/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <driverec/driverec.h>

#include "log.h"
#include "sources/discovery.h"
#include "sources/producers.h"
#include "support.h"

struct heard {
	unsigned begun, events, spans, ended, polls, opens, freed;
	enum producer_life life;
	bool needed;
};

static struct heard heard;
static struct clock host_clock;
static struct producers *producers;
static const char *run_dir;

static void on_begin(void *context, struct producer *producer)
{
	(void)context, (void)producer;
	heard.begun++;
}

static void on_event(void *context, struct producer *producer, const struct drec_event *event)
{
	(void)context, (void)producer;
	heard.events++;
	heard.spans += event->kind == DREC_SPAN;
}

static void on_polled(void *context, struct producer *producer)
{
	(void)context, (void)producer;
	heard.polls++;
}

static void on_open_spans(void *context, struct producer *producer)
{
	(void)context, (void)producer;
	heard.opens++;
}

static void on_ended(void *context, struct producer *producer)
{
	(void)context;
	heard.ended++;
	heard.life = producer->life;
}

static bool on_needed(void *context, const struct producer *producer)
{
	(void)context, (void)producer;
	return heard.needed;
}

static void on_end(void *context, struct producer *producer)
{
	(void)context, (void)producer;
	heard.freed++;
}

static void set_up(void)
{
	const struct producers_host host = {
		.begin = on_begin,
		.event = on_event,
		.polled = on_polled,
		.open_spans = on_open_spans,
		.ended = on_ended,
		.needed = on_needed,
		.end = on_end,
	};
	memset(&heard, 0, sizeof(heard));
	log_to(open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_LEVEL_ERROR);
	run_dir = test_shm_folder();
	mkdir(test_path(run_dir, "rings"), 0700);
	clock_start(&host_clock);
	assert_ok(producers_new(run_dir, &host_clock, &host, &producers));
}

static void tear_down(void)
{
	producers_free(producers);
}

static drec *open_ring(const char *name)
{
	const struct drec_options options = {.run_dir = run_dir, .job = "test", .name = name, .ring_bytes = 1 << 20};
	drec *rec = drec_open(&options);
	ck_assert_ptr_nonnull(rec);
	return rec;
}

static void write_spans(drec *rec, unsigned count)
{
	uint32_t name = drec_name(rec, "work");
	for (unsigned i = 0; i < count; i++)
		drec_span(rec, 0, name, drec_now(rec) - 1, 0);
}

static void tick(void)
{
	producers_found(producers);
	producers_tick(producers);
}

static bool has_ended(void *context)
{
	(void)context;
	tick();
	return heard.ended > 0;
}

/* A child that opens a ring, writes `count` spans, tells, and then does as `end` says. */
enum child_end { CHILD_CLOSES, CHILD_EXITS, CHILD_IS_KILLED };

static pid_t child_with_ring(unsigned count, enum child_end end)
{
	int told[2];
	char byte;
	ck_assert_int_eq(pipe(told), 0);
	pid_t pid = fork();
	if (pid == 0) {
		drec *rec = open_ring("child");
		write_spans(rec, count);
		drec_begin(rec, drec_name(rec, "hang"));
		if (write(told[1], "r", 1) != 1)
			_exit(2);
		if (end == CHILD_IS_KILLED)
			raise(SIGKILL);
		if (end == CHILD_CLOSES)
			drec_close(rec);
		exit(0);
	}
	close(told[1]);
	ck_assert_int_eq(read(told[0], &byte, 1), 1);
	close(told[0]);
	return pid;
}

START_TEST(a_ring_made_later_is_found_by_its_name)
{
	tick();
	ck_assert_uint_eq(producers_count(producers), 0);
	drec *rec = open_ring("one");
	producers_found(producers);
	ck_assert_uint_eq(producers_count(producers), 1);
	write_spans(rec, 100);
	tick();
	ck_assert_uint_eq(heard.spans, 100);
	tick();
	ck_assert_uint_eq(heard.spans, 100);
	drec_close(rec);
}
END_TEST

START_TEST(a_ring_made_before_is_found_by_the_scan)
{
	drec *rec = open_ring("early");
	producers_free(producers);
	const struct producers_host host = {.event = on_event, .ended = on_ended};
	assert_ok(producers_new(run_dir, &host_clock, &host, &producers));
	write_spans(rec, 10);
	producers_tick(producers);
	ck_assert_uint_eq(producers_count(producers), 1);
	ck_assert_uint_eq(heard.spans, 10);
	drec_close(rec);
}
END_TEST

START_TEST(open_spans_are_seen)
{
	drec *rec = open_ring("one");
	drec_step_begin(rec, 7, 0);
	drec_scope scope = drec_begin(rec, drec_name(rec, "outer"));
	drec_begin(rec, drec_name(rec, "inner"));
	tick();
	struct producer *producer = producers_at(producers, 0);
	ck_assert_uint_eq(producer->n_open, 3);
	const struct drec_open_info *open = producer_innermost(producer);
	ck_assert_ptr_nonnull(open);
	const char *text;
	uint32_t bytes;
	unsigned kind;
	assert_ok(drec_reader_text(producer->reader, open->name, &kind, &text, &bytes));
	ck_assert_uint_eq(bytes, 5);
	ck_assert_mem_eq(text, "inner", 5);
	drec_end(rec, scope);
	drec_step_end(rec);
	drec_close(rec);
}
END_TEST

START_TEST(a_child_that_ends_is_told_of)
{
	pid_t pid = child_with_ring(50, (enum child_end)_i);
	tick();
	waitpid(pid, NULL, 0);
	ck_assert(test_wait(has_ended, NULL, 6000));
	ck_assert_uint_eq(heard.spans, _i == CHILD_IS_KILLED ? 50 : heard.spans);
	ck_assert_uint_ge(heard.spans, 50);
	ck_assert_int_eq(heard.life, _i == CHILD_IS_KILLED ? PRODUCER_CRASHED : PRODUCER_ENDED);
	ck_assert_uint_eq(heard.ended, 1);
	tick();
	ck_assert_uint_eq(heard.ended, 1);
}
END_TEST

static size_t files_in_rings(void)
{
	char command[600];
	snprintf(command, sizeof(command), "exit $(ls -A %s/rings | wc -l)", run_dir);
	int status = system(command);
	return (size_t)WEXITSTATUS(status);
}

START_TEST(a_dead_ring_goes_when_nobody_needs_it)
{
	pid_t pid = child_with_ring(5, CHILD_CLOSES);
	waitpid(pid, NULL, 0);
	ck_assert(test_wait(has_ended, NULL, 6000));
	heard.needed = true;
	producers_flush(producers);
	ck_assert_uint_eq(producers_count(producers), 1);
	ck_assert_uint_eq(files_in_rings(), 1);
	heard.needed = false;
	producers_flush(producers);
	ck_assert_uint_eq(producers_count(producers), 0);
	ck_assert_uint_eq(heard.freed, 1);
	ck_assert_uint_eq(files_in_rings(), 0);
}
END_TEST

START_TEST(a_live_ring_is_not_removed)
{
	drec *rec = open_ring("one");
	tick();
	producers_flush(producers);
	ck_assert_uint_eq(producers_count(producers), 1);
	drec_close(rec);
}
END_TEST

/* Files that are no rings, beside one that is. */
static const char *const bad[] = {"empty", "text", "fifo", "symlink", "hardlink", "directory", "truncated", "huge"};

static void make_bad(const char *kind, const char *good_path)
{
	char path[600], other[600];
	snprintf(path, sizeof(path), "%s/rings/bad-%s.0123456789abcdef.ring", run_dir, kind);
	snprintf(other, sizeof(other), "%s/elsewhere", run_dir);
	if (strcmp(kind, "empty") == 0) {
		test_write_file(path, "", 0);
	} else if (strcmp(kind, "text") == 0) {
		char text[8192];
		memset(text, 'x', sizeof(text));
		test_write_file(path, text, sizeof(text));
	} else if (strcmp(kind, "fifo") == 0) {
		ck_assert_int_eq(mkfifo(path, 0600), 0);
	} else if (strcmp(kind, "symlink") == 0) {
		ck_assert_int_eq(symlink(good_path, path), 0);
	} else if (strcmp(kind, "hardlink") == 0) {
		test_write_file(other, "", 0);
		ck_assert_int_eq(link(other, path), 0);
	} else if (strcmp(kind, "directory") == 0) {
		ck_assert_int_eq(mkdir(path, 0700), 0);
	} else {
		size_t count;
		char *bytes = test_read_file(good_path, &count);
		test_write_file(path, bytes, strcmp(kind, "huge") == 0 ? count : 20000);
		free(bytes);
		if (strcmp(kind, "huge") == 0)
			ck_assert_int_eq(truncate(path, (off_t)64 << 30), 0);
	}
}

START_TEST(a_bad_ring_disturbs_no_other)
{
	drec *rec = open_ring("good");
	write_spans(rec, 10);
	make_bad(bad[_i], drec_path(rec));
	producers_rescan(producers);
	tick();
	ck_assert_msg(producers_count(producers) == 1, "%s", bad[_i]);
	ck_assert_uint_eq(heard.spans, 10);
	struct producers_totals totals;
	producers_totals(producers, &totals);
	ck_assert_msg(totals.rings_refused == 1, "%s", bad[_i]);
	/* It is complained of once. */
	producers_rescan(producers);
	producers_totals(producers, &totals);
	ck_assert_uint_eq(totals.rings_refused, 1);
	drec_close(rec);
}
END_TEST

START_TEST(a_ring_cut_short_while_it_is_read_goes_alone)
{
	drec *rec = open_ring("good");
	pid_t pid = child_with_ring(10, CHILD_IS_KILLED);
	waitpid(pid, NULL, 0);
	tick();
	ck_assert_uint_eq(producers_count(producers), 2);
	for (size_t i = 0; i < 2; i++) {
		const struct producer *producer = producers_at(producers, i);
		if (strstr(producer->path, "child"))
			ck_assert_int_eq(truncate(producer->path, 100), 0);
	}
	tick();
	ck_assert_uint_eq(producers_count(producers), 1);
	unsigned before = heard.spans;
	write_spans(rec, 7);
	tick();
	ck_assert_uint_eq(heard.spans, before + 7);
	drec_close(rec);
}
END_TEST

START_TEST(a_pin_from_the_past_is_found_by_time)
{
	drec *rec = open_ring("one");
	tick();
	struct producer *producer = producers_at(producers, 0);
	uint64_t tail = drec_reader_state(producer->reader)->tail;
	int64_t then = clock_record_ns(&host_clock);
	write_spans(rec, 60000);
	tick();
	int64_t later = clock_record_ns(&host_clock);
	ck_assert_uint_gt(drec_reader_state(producer->reader)->tail, tail);
	ck_assert_uint_eq(producer_from(producer, &host_clock, then), tail);
	ck_assert_uint_eq(producer_from(producer, &host_clock, later), drec_reader_state(producer->reader)->tail);
	ck_assert_uint_eq(producer_from(producer, &host_clock, then - INT64_C(3600000000000)), 0);
	drec_close(rec);
}
END_TEST

START_TEST(tails_never_promise_too_much)
{
	static struct tails tails;
	static struct {
		int64_t at;
		uint64_t tail;
	} all[20000];
	uint64_t tail = 100;
	for (size_t i = 0; i < 20000; i++) {
		tail += test_random_below(3);
		all[i].at = (int64_t)i * 50;
		all[i].tail = tail;
		tails_add(&tails, all[i].at, tail);
	}
	for (int i = 0; i < 2000; i++) {
		size_t at = test_random_below(20000);
		uint64_t from = tails_from(&tails, all[at].at + 1);
		ck_assert_uint_le(from, all[at].tail);
	}
	/* What is recent is exact. */
	ck_assert_uint_eq(tails_from(&tails, all[19990].at), all[19990].tail);
	ck_assert_uint_eq(tails_from(&tails, -1), 0);
}
END_TEST

START_TEST(hidden_leftovers_are_removed_and_fresh_ones_are_not)
{
	const char *old = test_path(run_dir, "rings/.tmp-0000000000000001");
	const char *fresh = test_path(run_dir, "rings/.tmp-0000000000000002");
	const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	test_write_file(old, "x", 1);
	test_write_file(fresh, "x", 1);
	ck_assert_int_eq(utimensat(AT_FDCWD, old, times, 0), 0);
	producers_rescan(producers);
	ck_assert_int_ne(access(old, F_OK), 0);
	ck_assert_int_eq(access(fresh, F_OK), 0);
}
END_TEST

static int ignore(void *context, const struct drec_event *event, const struct drec_place *place)
{
	(void)context, (void)event, (void)place;
	return 0;
}

START_TEST(cursors_go_on_where_they_were)
{
	drec *rec = open_ring("one");
	write_spans(rec, 100);
	tick();
	struct producer *producer = producers_at(producers, 0);
	struct drec_cursor cursors[8];
	size_t count = drec_reader_cursors(producer->reader, cursors, 8);
	struct drec_reader *reader;
	assert_ok(drec_reader_open(AT_FDCWD, producer->path, NULL, &reader, NULL));
	drec_reader_set_cursors(reader, cursors, count);
	write_spans(rec, 3);
	struct drec_poll_stats stats = {0};
	assert_ok(drec_reader_poll(reader, ignore, NULL, 0, &stats));
	ck_assert_uint_eq(stats.events, 3);
	drec_reader_free(reader);
	drec_close(rec);
}
END_TEST

static TCase *add_case(Suite *suite, const char *name)
{
	TCase *tcase = tcase_create(name);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_set_timeout(tcase, 20);
	suite_add_tcase(suite, tcase);
	return tcase;
}

int main(void)
{
	Suite *suite = suite_create("producers");
	TCase *tcase = add_case(suite, "discovery");
	tcase_add_test(tcase, a_ring_made_later_is_found_by_its_name);
	tcase_add_test(tcase, a_ring_made_before_is_found_by_the_scan);
	tcase_add_test(tcase, hidden_leftovers_are_removed_and_fresh_ones_are_not);
	tcase = add_case(suite, "reading");
	tcase_add_test(tcase, open_spans_are_seen);
	tcase_add_test(tcase, cursors_go_on_where_they_were);
	tcase_add_test(tcase, a_pin_from_the_past_is_found_by_time);
	tcase_add_test(tcase, tails_never_promise_too_much);
	tcase = add_case(suite, "death");
	tcase_add_loop_test(tcase, a_child_that_ends_is_told_of, CHILD_CLOSES, CHILD_IS_KILLED + 1);
	tcase_add_test(tcase, a_dead_ring_goes_when_nobody_needs_it);
	tcase_add_test(tcase, a_live_ring_is_not_removed);
	tcase = add_case(suite, "bad rings");
	tcase_add_loop_test(tcase, a_bad_ring_disturbs_no_other, 0, sizeof(bad) / sizeof(bad[0]));
	tcase_add_test(tcase, a_ring_cut_short_while_it_is_read_goes_alone);
	return test_run(suite);
}
