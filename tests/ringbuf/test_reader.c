/* SPDX-License-Identifier: Apache-2.0 */
#include <driverec/reader.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ring_maker.h"
#include "support.h"

enum { CHUNKS = 64, CHUNK = 8192, A_CHUNK = CHUNK / 32 };

static struct ring_maker *maker;
static struct drec_reader *reader;
static const char *path;

static void make(void)
{
	maker = ring_maker_new(CHUNKS, CHUNK, 16);
	path = test_path(test_shm_folder(), "a.ring");
}

static void release(void)
{
	drec_reader_free(reader);
	reader = NULL;
	ring_maker_free(maker);
}

static void save_and_open(void)
{
	struct drec_problem problem;
	ring_maker_save(maker, path);
	int r = drec_reader_open(AT_FDCWD, path, NULL, &reader, &problem);
	ck_assert_msg(r == 0, "%d: %s", r, problem.what);
}

struct seen {
	uint64_t count;
	uint64_t start[4096];
	struct drec_place place[4096];
	uint64_t stop_after;
};

static int note(void *context, const struct drec_event *event, const struct drec_place *place)
{
	struct seen *seen = context;
	seen->start[seen->count % 4096] = event->start;
	seen->place[seen->count % 4096] = *place;
	seen->count++;
	return seen->stop_after && seen->count == seen->stop_after ? -ECANCELED : 0;
}

static struct seen seen;
static struct drec_poll_stats stats;

static int poll_all(uint64_t budget)
{
	memset(&seen, 0, sizeof(seen));
	memset(&stats, 0, sizeof(stats));
	return drec_reader_poll(reader, note, &seen, budget, &stats);
}

/* Fills the slot's next chunk with spans that start at first, first + 10, ... and closes it. */
static void fill(uint32_t slot, uint32_t chunk, uint64_t first)
{
	ring_maker_take(maker, slot, chunk);
	for (uint32_t i = 0; i < A_CHUNK; i++)
		ring_maker_span(maker, slot, 0, first + 10 * i, first + 10 * i + 5);
	ring_maker_close(maker, slot);
}

START_TEST(events_come_in_the_order_of_commit)
{
	ring_maker_register(maker, 3, 77);
	fill(3, 40, 1000);
	fill(3, 2, 10000);
	ring_maker_take(maker, 3, 9);
	ring_maker_span(maker, 3, 0, 50000, 50001);
	save_and_open();
	ck_assert_int_eq(poll_all(0), 0);
	ck_assert_uint_eq(seen.count, 2 * A_CHUNK + 1);
	for (uint64_t i = 1; i < seen.count; i++) {
		ck_assert_uint_gt(seen.start[i], seen.start[i - 1]);
		ck_assert_uint_eq(seen.place[i].index, i);
		ck_assert_uint_eq(seen.place[i].tid, 77);
	}
	ck_assert_uint_eq(stats.events, seen.count);
	ck_assert_uint_eq(stats.bytes, 32 * seen.count);
	ck_assert_uint_eq(stats.overwritten, 0);
}
END_TEST

START_TEST(only_what_is_new_comes_again)
{
	ring_maker_register(maker, 0, 1);
	ring_maker_take(maker, 0, 5);
	ring_maker_span(maker, 0, 0, 1, 2);
	save_and_open();
	poll_all(0);
	ck_assert_uint_eq(seen.count, 1);
	ck_assert_int_eq(drec_reader_changed(reader), 0);
	poll_all(0);
	ck_assert_uint_eq(seen.count, 0);
	ring_maker_span(maker, 0, 0, 3, 4);
	ring_maker_save(maker, path);
	ck_assert_int_eq(drec_reader_changed(reader), 1);
	poll_all(0);
	ck_assert_uint_eq(seen.count, 1);
	ck_assert_uint_eq(seen.start[0], 3);
	drec_reader_rewind(reader);
	poll_all(0);
	ck_assert_uint_eq(seen.count, 2);
}
END_TEST

START_TEST(overwritten_events_are_counted_exactly)
{
	ring_maker_register(maker, 0, 1);
	fill(0, 0, 1000);
	ring_maker_take(maker, 0, 1);
	ring_maker_span(maker, 0, 0, 9000, 9001);
	save_and_open();
	poll_all(0);
	ck_assert_uint_eq(seen.count, A_CHUNK + 1);
	/* Two more events of chunk 1 that are never read, and all of chunk 2, which are taken over. */
	ring_maker_span(maker, 0, 0, 9002, 9003);
	ring_maker_span(maker, 0, 0, 9004, 9005);
	ring_maker_close(maker, 0);
	fill(0, 2, 10000);
	fill(0, 1, 20000);
	fill(0, 2, 30000);
	ring_maker_save(maker, path);
	poll_all(0);
	ck_assert_uint_eq(stats.overwritten, 2 + A_CHUNK);
	ck_assert_uint_eq(seen.count, 2 * A_CHUNK);
	uint64_t lost[DREC_LOSS_LIMIT], overwritten;
	assert_ok(drec_reader_losses(reader, lost, &overwritten));
	ck_assert_uint_eq(overwritten, 0);
}
END_TEST

START_TEST(a_late_reader_counts_what_it_missed)
{
	ring_maker_register(maker, 0, 1);
	fill(0, 0, 1000);
	fill(0, 1, 10000);
	fill(0, 0, 20000);
	save_and_open();
	poll_all(0);
	ck_assert_uint_eq(stats.overwritten, A_CHUNK);
	ck_assert_uint_eq(seen.count, 2 * A_CHUNK);
}
END_TEST

START_TEST(lives_of_a_slot_are_told_apart)
{
	ring_maker_register(maker, 0, 1);
	ring_maker_take(maker, 0, 0);
	ring_maker_span(maker, 0, 0, 1, 2);
	ring_maker_close(maker, 0);
	ring_maker_register(maker, 0, 2);
	ring_maker_take(maker, 0, 1);
	ring_maker_span(maker, 0, 0, 3, 4);
	save_and_open();
	poll_all(0);
	ck_assert_uint_eq(seen.count, 2);
	ck_assert_uint_eq(seen.place[0].life, 1);
	ck_assert_uint_eq(seen.place[1].life, 2);
	ck_assert_uint_eq(seen.place[1].index, 0);
	ck_assert_uint_eq(seen.place[1].tid, 2);
	ck_assert_uint_eq(stats.overwritten, 0);
}
END_TEST

START_TEST(chunks_being_taken_still_count)
{
	ring_maker_register(maker, 0, 1);
	fill(0, 0, 1000);
	maker->order[0] |= (uint64_t)DREC_CHUNK_TAKING << 62;
	save_and_open();
	poll_all(0);
	ck_assert_uint_eq(seen.count, A_CHUNK);
}
END_TEST

START_TEST(a_budget_stops_between_events)
{
	ring_maker_register(maker, 0, 1);
	fill(0, 0, 1000);
	save_and_open();
	ck_assert_int_eq(poll_all(10), 1);
	ck_assert_uint_eq(seen.count, 10);
	ck_assert_int_eq(poll_all(0), 0);
	ck_assert_uint_eq(seen.count, A_CHUNK - 10);
	ck_assert_uint_eq(seen.start[0], 1100);
	ck_assert_uint_eq(stats.overwritten, 0);
}
END_TEST

START_TEST(an_event_that_stops_the_poll_is_delivered)
{
	ring_maker_register(maker, 0, 1);
	fill(0, 0, 1000);
	save_and_open();
	memset(&seen, 0, sizeof(seen));
	seen.stop_after = 3;
	ck_assert_int_eq(drec_reader_poll(reader, note, &seen, 0, NULL), -ECANCELED);
	poll_all(0);
	ck_assert_uint_eq(seen.start[0], 1030);
}
END_TEST

START_TEST(cursors_carry_over_to_another_reader)
{
	struct drec_cursor cursors[8];
	ring_maker_register(maker, 0, 1);
	ring_maker_register(maker, 1, 2);
	fill(0, 0, 1000);
	fill(1, 1, 1000);
	save_and_open();
	poll_all(300);
	size_t count = drec_reader_cursors(reader, cursors, 8);
	ck_assert_uint_eq(count, 2);
	drec_reader_free(reader);
	save_and_open();
	drec_reader_set_cursors(reader, cursors, count);
	poll_all(0);
	ck_assert_uint_eq(seen.count, 2 * A_CHUNK - 300);
	ck_assert_uint_eq(stats.overwritten, 0);
}
END_TEST

START_TEST(bytes_of_another_lap_are_corrupt)
{
	ring_maker_register(maker, 0, 1);
	ring_maker_take(maker, 0, 0);
	for (int i = 0; i < 10; i++)
		ring_maker_span(maker, 0, 0, (uint64_t)i, (uint64_t)i);
	maker->data[5 * 32 + 4] ^= 1;
	save_and_open();
	poll_all(0);
	ck_assert_uint_eq(seen.count, 5);
	ck_assert_uint_eq(stats.corrupt_bytes, 5 * 32);
	poll_all(0);
	ck_assert_uint_eq(stats.corrupt_bytes, 0);
}
END_TEST

START_TEST(ids_past_the_limits_are_corrupt)
{
	ring_maker_register(maker, 0, 1);
	ring_maker_take(maker, 0, 0);
	ring_maker_span(maker, 0, RING_MAKER_IDS, 1, 2);
	save_and_open();
	poll_all(0);
	ck_assert_uint_eq(seen.count, 0);
	ck_assert_uint_eq(stats.corrupt_bytes, 32);
}
END_TEST

START_TEST(losses_are_told)
{
	struct drec_event loss = {.kind = DREC_LOSS, .flags = DREC_FLAG_ID, .category = DREC_LOSS_TOO_BIG,
				  .start = 5, .dur_or_value = 42, .id = 9};
	ring_maker_register(maker, 0, 1);
	ring_maker_take(maker, 0, 0);
	ring_maker_append(maker, 0, &loss, 9);
	maker->slots[0].lost[DREC_LOSS_TOO_BIG] = 42;
	maker->state->loss[DREC_LOSS_NO_SLOT].count = 3;
	save_and_open();
	poll_all(0);
	ck_assert_uint_eq(stats.lost, 42);
	uint64_t lost[DREC_LOSS_LIMIT], overwritten;
	assert_ok(drec_reader_losses(reader, lost, &overwritten));
	ck_assert_uint_eq(lost[DREC_LOSS_TOO_BIG], 42);
	ck_assert_uint_eq(lost[DREC_LOSS_NO_SLOT], 3);
}
END_TEST

/* --- dictionary --- */

static uint32_t make_track(const char *group, const char *name)
{
	char text[256];
	struct drec_track_text head = {DREC_TRACK_THREAD, (uint32_t)strlen(group), (uint32_t)strlen(name), 5};
	memcpy(text, &head, sizeof(head));
	memcpy(text + sizeof(head), group, head.group_bytes);
	memcpy(text + sizeof(head) + head.group_bytes, name, head.name_bytes);
	return ring_maker_text(maker, DREC_DICT_TRACK, text, (uint32_t)sizeof(head) + head.group_bytes + head.name_bytes);
}

static int count_text(void *context, uint32_t id, const char *text, uint32_t bytes)
{
	(void)id, (void)text, (void)bytes;
	++*(int *)context;
	return 0;
}

START_TEST(texts_and_holes)
{
	unsigned kind;
	const char *text;
	uint32_t bytes;
	int count = 0;
	uint32_t first = ring_maker_name(maker, "allreduce"), hole = ring_maker_name(maker, "never");
	uint32_t third = ring_maker_name(maker, "step");
	maker->dict_index[hole].bytes = 0;
	save_and_open();
	assert_ok(drec_reader_text(reader, third, &kind, &text, &bytes));
	ck_assert_uint_eq(bytes, 4);
	ck_assert_mem_eq(text, "step", 4);
	const char *kept = text;
	assert_ok(drec_reader_text(reader, first, &kind, &text, &bytes));
	ck_assert_mem_eq(text, "allreduce", 9);
	ck_assert_int_eq(drec_reader_text(reader, hole, &kind, &text, &bytes), -ENOENT);
	ck_assert_int_eq(drec_reader_text(reader, 0, &kind, &text, &bytes), -ENOENT);
	ck_assert_int_eq(drec_reader_text(reader, UINT32_MAX, &kind, &text, &bytes), -ENOENT);
	assert_ok(drec_reader_each_text(reader, DREC_DICT_NAME, count_text, &count));
	ck_assert_int_eq(count, 2);
	/* The hole's writer was only late. */
	maker->dict_index[hole].bytes = 5 | DREC_DICT_COMMITTED;
	ring_maker_save(maker, path);
	poll_all(0);
	count = 0;
	assert_ok(drec_reader_each_text(reader, DREC_DICT_NAME, count_text, &count));
	ck_assert_int_eq(count, 3);
	ck_assert_mem_eq(kept, "step", 4);
}
END_TEST

START_TEST(a_track_goes_by_its_latest_name)
{
	struct drec_track_info info;
	uint32_t track = make_track("python", "MainThread");
	save_and_open();
	assert_ok(drec_reader_track(reader, track, &info));
	ck_assert_mem_eq(info.name, "MainThread", 10);
	ck_assert_mem_eq(info.group, "python", 6);
	ck_assert_uint_eq(info.tid, 5);
	char later[16];
	memcpy(later, &track, 4);
	memcpy(later + 4, "loader", 6);
	ring_maker_text(maker, DREC_DICT_TRACK_NAME, later, 10);
	ring_maker_save(maker, path);
	poll_all(0);
	assert_ok(drec_reader_track(reader, track, &info));
	ck_assert_uint_eq(info.name_bytes, 6);
	ck_assert_mem_eq(info.name, "loader", 6);
	ck_assert_int_eq(drec_reader_track(reader, track + 1, &info), -ENOENT);
}
END_TEST

/* --- open spans --- */

START_TEST(open_spans_outermost_first)
{
	struct drec_open_info info[8];
	ring_maker_register(maker, 2, 9);
	ring_maker_push(maker, 2, 4, 100);
	ring_maker_push(maker, 2, 5, 200);
	maker->slots[2].stack[0].track = 7 | DREC_MARK_STEP_BEGIN << 24;
	maker->slots[2].step = 31;
	save_and_open();
	ck_assert_int_eq(drec_reader_open_spans(reader, info, 8), 2);
	ck_assert_uint_eq(info[0].name, 4);
	ck_assert_uint_eq(info[0].mark, DREC_MARK_STEP_BEGIN);
	ck_assert_uint_eq(info[0].step, 31);
	ck_assert_uint_eq(info[0].track, 7);
	ck_assert_uint_eq(info[1].start, 200);
	ck_assert_uint_eq(info[1].depth, 1);
	ck_assert_int_eq(info[1].moving, 0);
	ck_assert_int_eq(drec_reader_open_spans(reader, info, 1), 2);
}
END_TEST

START_TEST(a_span_whose_end_is_committed_is_not_open)
{
	struct drec_open_info info[8];
	ring_maker_register(maker, 0, 9);
	ring_maker_push(maker, 0, 4, 100);
	ring_maker_push(maker, 0, 5, 200);
	ring_maker_take(maker, 0, 0);
	struct drec_event end = {.kind = DREC_SPAN, .depth = 1, .name = 5, .start = 200, .dur_or_value = 10};
	ring_maker_append(maker, 0, &end, 210);
	save_and_open();
	ck_assert_int_eq(drec_reader_open_spans(reader, info, 8), 1);
	ck_assert_uint_eq(info[0].name, 4);
}
END_TEST

START_TEST(a_stack_too_deep_is_counted)
{
	static struct drec_open_info info[64];
	ring_maker_register(maker, 0, 9);
	for (uint64_t i = 0; i < 60; i++)
		ring_maker_push(maker, 0, 1, i);
	save_and_open();
	ck_assert_int_eq(drec_reader_open_spans(reader, info, 64), DREC_STACK_MAX);
	ck_assert_uint_eq(info[DREC_STACK_MAX - 1].deeper, 4);
	ck_assert_uint_eq(info[0].deeper, 0);
}
END_TEST

/* --- clock --- */

START_TEST(ticks_follow_the_anchors)
{
	maker->header->clock = DREC_CLOCK_TSC;
	/* 3 ticks a ns at first, 2 after a second. */
	maker->anchors[0] = (struct drec_anchor){1, 3000000000, 1000000000, 5000000000, 0, 0, 0, {0}};
	maker->anchors[1] = (struct drec_anchor){2, 6000000000, 2000000000, 6000000000, 0, 0, 0, {0}};
	maker->anchors[2] = (struct drec_anchor){3, 8000000000, 3000000000, 7000000000, 0, 0, 0, {0}};
	maker->state->anchor_seq = 3;
	save_and_open();
	ck_assert_int_eq(drec_reader_mono_ns(reader, 3000000000), 1000000000);
	ck_assert_int_eq(drec_reader_mono_ns(reader, 4500000000), 1500000000);
	ck_assert_int_eq(drec_reader_mono_ns(reader, 7000000000), 2500000000);
	ck_assert_int_eq(drec_reader_mono_ns(reader, 10000000000), 4000000000);
	ck_assert_int_eq(drec_reader_mono_ns(reader, 0), 0);
	ck_assert_int_eq(drec_reader_unix_ns(reader, 4500000000), 5500000000);
	ck_assert_uint_eq(drec_reader_ticks(reader, 1500000000), 4500000000);
	ck_assert_uint_eq(drec_reader_ticks(reader, 4000000000), 10000000000);
	int64_t before = INT64_MIN;
	for (int i = 0; i < 64; i++) {
		int64_t now = drec_reader_mono_ns(reader, UINT64_MAX >> (63 - i));
		ck_assert_int_ge(now, before);
		before = now;
	}
}
END_TEST

START_TEST(times_of_events)
{
	int64_t start, end;
	save_and_open();
	struct drec_event event = {.kind = DREC_SPAN, .start = 500, .dur_or_value = 20};
	assert_ok(drec_reader_event_time(reader, &event, &start, &end));
	ck_assert_int_eq(start, 1000000500);
	ck_assert_int_eq(end, 1000000520);
	event.dur_or_value = UINT64_MAX;
	assert_ok(drec_reader_event_time(reader, &event, &start, &end));
	ck_assert_int_eq(end, INT64_MAX);
	event = (struct drec_event){.kind = DREC_SPAN, .flags = DREC_FLAG_ABS | DREC_FLAG_PS, .start = 7,
				    .dur_or_value = 3, .start_ps = 600, .dur_ps = 500};
	assert_ok(drec_reader_event_time(reader, &event, &start, &end));
	ck_assert_int_eq(start, 7);
	ck_assert_int_eq(end, 11);
	event = (struct drec_event){.kind = DREC_COUNTER, .start = 500, .dur_or_value = 99};
	assert_ok(drec_reader_event_time(reader, &event, &start, &end));
	ck_assert_int_eq(end, start);
	event.flags = DREC_FLAG_NOTIME;
	ck_assert_int_eq(drec_reader_event_time(reader, &event, &start, &end), -ENODATA);
}
END_TEST

/* --- alive --- */

static uint64_t start_time(pid_t pid)
{
	char name[64], text[1024] = "";
	snprintf(name, sizeof(name), "/proc/%d/stat", (int)pid);
	FILE *file = fopen(name, "r");
	ck_assert_ptr_nonnull(file);
	ck_assert_uint_gt(fread(text, 1, sizeof(text) - 1, file), 0);
	fclose(file);
	char *at = strrchr(text, ')') + 1;
	for (int field = 2; field < 21; field++)
		at = strchr(at + 1, ' ');
	return strtoull(at, NULL, 10);
}

static void name_owner(uint64_t pid, uint64_t start)
{
	struct stat st;
	ck_assert_int_eq(stat("/proc/self/ns/pid", &st), 0);
	maker->header->pid = pid;
	maker->header->pid_start = start;
	maker->header->pidns_ino = st.st_ino;
}

START_TEST(a_held_lock_is_alive)
{
	int ready[2];
	name_owner(1, 0);
	save_and_open();
	ck_assert_int_eq(pipe(ready), 0);
	pid_t child = fork();
	if (child == 0) {
		struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
		int fd = open(path, O_RDWR);
		if (fcntl(fd, F_SETLK, &lock) == 0 && write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	char byte;
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	ck_assert_int_eq(drec_reader_alive(reader), 1);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	ck_assert_int_eq(drec_reader_alive(reader), 0);
}
END_TEST

START_TEST(the_same_process_without_the_lock_is_detached)
{
	name_owner((uint64_t)getpid(), start_time(getpid()));
	ring_maker_register(maker, 0, 1);
	ring_maker_take(maker, 0, 0);
	save_and_open();
	ck_assert_int_eq(drec_reader_alive(reader), 2);
	ring_maker_span(maker, 0, 0, 1, 2);
	ring_maker_save(maker, path);
	ck_assert_int_eq(drec_reader_alive(reader), 1);
	ck_assert_int_eq(drec_reader_alive(reader), 2);
	maker->state->end_mark = DREC_MARK_EXIT;
	ring_maker_save(maker, path);
	ck_assert_int_eq(drec_reader_alive(reader), 0);
}
END_TEST

START_TEST(a_reused_pid_or_a_zombie_is_dead)
{
	name_owner((uint64_t)getpid(), start_time(getpid()) + 1);
	save_and_open();
	ck_assert_int_eq(drec_reader_alive(reader), 0);
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	siginfo_t info;
	ck_assert_int_eq(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	drec_reader_free(reader);
	name_owner((uint64_t)child, start_time(child));
	save_and_open();
	ck_assert_int_eq(drec_reader_alive(reader), 0);
	waitpid(child, NULL, 0);
}
END_TEST

/* --- opening --- */

static int open_again(const struct drec_reader_options *options, struct drec_problem *problem)
{
	struct drec_reader *other = NULL;
	int r = drec_reader_open(AT_FDCWD, path, options, &other, problem);
	drec_reader_free(other);
	return r;
}

START_TEST(what_is_no_ring_is_refused)
{
	struct drec_problem problem;
	struct drec_reader_options safe = {.safe_open = 1}, small = {.file_bytes_max = 4096};
	ck_assert_int_eq(open_again(NULL, &problem), -ENOENT);
	test_write_file(path, "{\"traceEvents\":[]}", 18);
	ck_assert_int_eq(open_again(NULL, &problem), -EBADMSG);
	ring_maker_save(maker, path);
	ck_assert_int_eq(open_again(&safe, &problem), 0);
	ck_assert_int_eq(open_again(&small, &problem), -EFBIG);
	maker->header->major = 2;
	ring_maker_save(maker, path);
	ck_assert_int_eq(open_again(NULL, &problem), -EPROTONOSUPPORT);
	maker->header->major = 1;
	maker->header->incompat = 4;
	ring_maker_save(maker, path);
	ck_assert_int_eq(open_again(NULL, &problem), -EPROTONOSUPPORT);
	maker->header->incompat = 0;
	maker->header->section[3].bytes = UINT64_MAX;
	ring_maker_save(maker, path);
	ck_assert_int_eq(open_again(NULL, &problem), -EBADMSG);
	ck_assert_str_eq(problem.what, "section 3 (chunks) ends past the file");
	ck_assert_uint_eq(problem.offset, 512 + 3 * 32);
}
END_TEST

START_TEST(a_daemon_opens_only_whole_regular_files)
{
	struct drec_problem problem;
	struct drec_reader_options safe = {.safe_open = 1};
	char other[1024];
	snprintf(other, sizeof(other), "%s.link", path);
	ring_maker_save(maker, path);
	ck_assert_int_eq(link(path, other), 0);
	ck_assert_int_eq(open_again(&safe, &problem), -EBADMSG);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(symlink(other, path), 0);
	ck_assert_int_eq(open_again(&safe, &problem), -ELOOP);
	ck_assert_int_eq(open_again(NULL, &problem), 0);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(open_again(&safe, &problem), -EBADMSG);
	ck_assert_int_eq(open_again(NULL, &problem), -EBADMSG);
}
END_TEST

START_TEST(a_ring_cut_short_under_the_reader)
{
	ring_maker_register(maker, 0, 1);
	fill(0, CHUNKS - 1, 1000);
	save_and_open();
	ck_assert_int_eq(truncate(path, 4096 * 20), 0);
	ck_assert_int_eq(poll_all(0), -EBADMSG);
	ck_assert_int_eq(truncate(path, 4096), 0);
	ck_assert_int_eq(drec_reader_changed(reader), -EBADMSG);
}
END_TEST

static void add(Suite *suite, const char *name, const TTest *const *tests, size_t count)
{
	TCase *tcase = tcase_create(name);
	tcase_add_checked_fixture(tcase, make, release);
	for (size_t i = 0; i < count; i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
}

#define ADD(suite, name, ...)                                                                     \
	do {                                                                                      \
		const TTest *const tests_[] = {__VA_ARGS__};                                      \
		add(suite, name, tests_, sizeof(tests_) / sizeof(tests_[0]));                     \
	} while (0)

int main(void)
{
	Suite *suite = suite_create("reader");
	ADD(suite, "poll", events_come_in_the_order_of_commit, only_what_is_new_comes_again,
	    lives_of_a_slot_are_told_apart, chunks_being_taken_still_count);
	ADD(suite, "overwritten", overwritten_events_are_counted_exactly, a_late_reader_counts_what_it_missed);
	ADD(suite, "cursors", a_budget_stops_between_events, an_event_that_stops_the_poll_is_delivered,
	    cursors_carry_over_to_another_reader);
	ADD(suite, "corrupt", bytes_of_another_lap_are_corrupt, ids_past_the_limits_are_corrupt);
	ADD(suite, "losses", losses_are_told);
	ADD(suite, "dictionary", texts_and_holes, a_track_goes_by_its_latest_name);
	ADD(suite, "open spans", open_spans_outermost_first, a_span_whose_end_is_committed_is_not_open,
	    a_stack_too_deep_is_counted);
	ADD(suite, "clock", ticks_follow_the_anchors, times_of_events);
	ADD(suite, "alive", a_held_lock_is_alive, the_same_process_without_the_lock_is_detached,
	    a_reused_pid_or_a_zombie_is_dead);
	ADD(suite, "opening", what_is_no_ring_is_refused, a_daemon_opens_only_whole_regular_files,
	    a_ring_cut_short_under_the_reader);
	return test_run(suite);
}
