/* SPDX-License-Identifier: Apache-2.0 */
/* The reading side against the producer itself: rings that are being written while they are read. */
#include <driverec/driverec.h>
#include <driverec/freeze.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support.h"

enum { WRITERS = 3, LOG_MAX = 1 << 20, ROUNDS = 12 };

static drec *rec;
static struct drec_reader *reader;

static drec *open_ring(void)
{
	const char *folder = test_shm_folder();
	/* MONO: by a counter, a young ring's own anchors place the window's end only to some microseconds. */
	struct drec_options options = {.run_dir = folder, .job = "job", .name = "live", .ring_bytes = 1 << 20,
				       .clock = DREC_CLOCK_MONO};
	const char *why = "";
	drec *opened;
	int r = drec_open_strict(&options, &opened, &why);
	ck_assert_msg(r == 0, "%d: %s", r, why);
	return opened;
}

static void open_reader(const char *path)
{
	struct drec_reader_options options = {.writable = 1, .safe_open = 1};
	struct drec_problem problem;
	int r = drec_reader_open(AT_FDCWD, path, &options, &reader, &problem);
	ck_assert_msg(r == 0, "%d: %s", r, problem.what);
}

/* --- every event once, in order, or counted --- */

struct writer {
	pthread_t thread;
	uint64_t count;
};

static atomic_bool stop;

/* Starts are consecutive numbers, so that a reader can tell any gap or repetition. */
static void *write_numbers(void *context)
{
	struct writer *writer = context;
	for (; !atomic_load(&stop); writer->count++) {
		struct drec_event event = {.kind = DREC_SPAN, .flags = DREC_FLAG_ID, .name = 1, .id = writer->count,
					   .start = drec_now(rec), .dur_or_value = 1};
		if (drec_write(rec, &event) < 0)
			break;
	}
	return NULL;
}

struct tally {
	uint64_t next[DREC_SLOTS_MAX];
	uint64_t events, jumps;
	int wrong;
};

static int check_number(void *context, const struct drec_event *event, const struct drec_place *place)
{
	struct tally *tally = context;
	if (event->kind != DREC_SPAN)
		return 0;
	if (event->id < tally->next[place->slot] || event->id != place->index || event->name != 1)
		tally->wrong++;
	tally->jumps += event->id - tally->next[place->slot];
	tally->next[place->slot] = event->id + 1;
	tally->events++;
	return 0;
}

START_TEST(read_while_written)
{
	struct writer writers[WRITERS] = {0};
	static struct tally tally;
	struct drec_poll_stats stats = {0};
	rec = open_ring();
	open_reader(drec_path(rec));
	atomic_store(&stop, false);
	for (int i = 0; i < WRITERS; i++)
		ck_assert_int_eq(pthread_create(&writers[i].thread, NULL, write_numbers, &writers[i]), 0);
	for (int i = 0; i < 200; i++) {
		ck_assert_int_eq(drec_reader_poll(reader, check_number, &tally, 0, &stats), 0);
		nanosleep(&(struct timespec){.tv_nsec = (long)test_random_below(3000000)}, NULL);
	}
	atomic_store(&stop, true);
	uint64_t written = 0;
	for (int i = 0; i < WRITERS; i++) {
		pthread_join(writers[i].thread, NULL);
		written += writers[i].count;
	}
	ck_assert_int_eq(drec_reader_poll(reader, check_number, &tally, 0, &stats), 0);
	ck_assert_int_eq(tally.wrong, 0);
	ck_assert_uint_eq(stats.corrupt_bytes, 0);
	ck_assert_uint_eq(tally.events + stats.overwritten, written);
	ck_assert_uint_eq(tally.jumps, stats.overwritten);
	ck_assert_uint_gt(tally.events, 1000);
	ck_assert_int_eq(drec_reader_changed(reader), 0);
	drec_reader_free(reader);
	drec_close(rec);
}
END_TEST

/* --- what a dead process was inside of --- */

START_TEST(killed_inside_a_span)
{
	int ready[2];
	char path[1024] = "";
	ck_assert_int_eq(pipe(ready), 0);
	const char *folder = test_shm_folder();
	pid_t child = fork();
	if (child == 0) {
		struct drec_options options = {.run_dir = folder, .job = "job", .name = "dies", .ring_bytes = 1 << 20};
		drec *own = drec_open(&options);
		drec_step_begin(own, 41, 0);
		drec_scope done = drec_begin(own, DREC_NAME(own, "load"));
		drec_end(own, done);
		drec_begin(own, DREC_NAME(own, "allreduce"));
		const char *where = drec_path(own) ? drec_path(own) : "";
		if (write(ready[1], where, strlen(where) + 1) > 0)
			pause();
		_exit(1);
	}
	ck_assert_int_gt(read(ready[0], path, sizeof(path) - 1), 1);
	open_reader(path);
	ck_assert_int_eq(drec_reader_alive(reader), 1);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	ck_assert_int_eq(drec_reader_alive(reader), 0);
	struct drec_open_info infos[4];
	ck_assert_int_eq(drec_reader_open_spans(reader, infos, 4), 2);
	ck_assert_uint_eq(infos[0].mark, DREC_MARK_STEP_BEGIN);
	ck_assert_uint_eq(infos[0].step, 41);
	unsigned kind;
	const char *text;
	uint32_t bytes;
	assert_ok(drec_reader_text(reader, infos[1].name, &kind, &text, &bytes));
	ck_assert_uint_eq(bytes, 9);
	ck_assert_mem_eq(text, "allreduce", 9);
	struct drec_track_info track;
	assert_ok(drec_reader_track(reader, infos[1].thread_track, &track));
	ck_assert_uint_eq(track.kind, DREC_TRACK_THREAD);
	drec_reader_free(reader);
}
END_TEST

/* --- the completeness oracle: complete if and only if nothing is missing --- */

struct entry {
	uint64_t start, end;
};

static struct entry *entries;
static atomic_ullong n_entries;
static uint64_t pause_ns;

static void *write_logged(void *context)
{
	(void)context;
	for (uint64_t i = 0; !atomic_load(&stop) && i < LOG_MAX; i++) {
		uint64_t start = drec_now(rec), end = drec_now(rec);
		drec_span(rec, 0, 1, start, end);
		entries[i] = (struct entry){start, end};
		atomic_store(&n_entries, i + 1);
		if (pause_ns && i % 16 == 0)
			nanosleep(&(struct timespec){.tv_nsec = (long)pause_ns}, NULL);
	}
	return NULL;
}

static uint64_t count_logged(uint64_t a_ticks, uint64_t b_ticks)
{
	uint64_t count = 0, n = atomic_load(&n_entries);
	for (uint64_t i = 0; i < n; i++)
		count += entries[i].start <= b_ticks && entries[i].end >= a_ticks;
	return count;
}

struct members {
	uint64_t a, b, count;
};

static int count_member(void *context, const struct drec_event *event, const struct drec_place *place)
{
	struct members *members = context;
	(void)place;
	if (event->kind == DREC_SPAN && event->start <= members->b &&
	    event->start + event->dur_or_value >= members->a)
		members->count++;
	return 0;
}

static uint64_t count_kept(const char *path, struct drec_window *ret_window)
{
	struct drec_reader *kept;
	struct drec_problem problem;
	int r = drec_window_verify(AT_FDCWD, path, &problem);
	ck_assert_msg(r == 0, "%d: %s", r, problem.what);
	assert_ok(drec_reader_open(AT_FDCWD, path, NULL, &kept, &problem));
	*ret_window = *drec_reader_window(kept);
	struct members members = {ret_window->a_ticks, ret_window->b_ticks, 0};
	ck_assert_int_eq(drec_reader_poll(kept, count_member, &members, 0, NULL), 0);
	drec_reader_free(kept);
	return members.count;
}

/* How many windows of this run ended with each reason. */
static int reasons[DREC_INCOMPLETE_UNSEALED + 1];

static void one_window(int pinned, const char *path)
{
	struct drec_snapshot_result result;
	unsigned entry = 0;
	assert_ok(drec_reader_changed(reader));
	uint64_t from = drec_reader_state(reader)->tail, a = drec_now(rec);
	if (!pinned)
		from = 0;
	struct drec_pin pin = {.from = from};
	nanosleep(&(struct timespec){.tv_nsec = (long)test_random_below(2000000)}, NULL);
	if (pinned)
		assert_ok(drec_pin_set(reader, &pin, 1, &entry));
	nanosleep(&(struct timespec){.tv_nsec = (long)test_random_below(8000000)}, NULL);
	uint64_t b = drec_now(rec);
	/* Whatever is stamped before b is committed once the writer has logged two more. */
	unsigned long long logged = atomic_load(&n_entries);
	while (atomic_load(&n_entries) < logged + 2 && logged + 2 < LOG_MAX)
		nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
	int64_t offset = drec_reader_mono_to_unix_ns(reader);
	struct drec_snapshot_request request = {.a_ns = drec_reader_unix_ns(reader, a),
						.b_ns = drec_reader_unix_ns(reader, b),
						.mono_to_unix_ns = offset, .from = from};
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_ok(drec_snapshot_write(reader, fd, &request, &result));
	close(fd);
	if (pinned)
		assert_ok(drec_pin_release(reader, entry));
	struct drec_window window;
	uint64_t kept = count_kept(path, &window), wanted = count_logged(window.a_ticks, window.b_ticks);
	ck_assert_uint_eq(kept, result.events_in_window);
	if (window.complete)
		ck_assert_uint_eq(kept, wanted);
	else
		ck_assert_uint_le(kept, wanted);
	reasons[window.reason]++;
}

START_TEST(complete_means_nothing_is_missing)
{
	static const uint64_t pauses[] = {0, 20000, 200000, 1000000};
	struct writer writer;
	pause_ns = pauses[_i / 2];
	entries = calloc(LOG_MAX, sizeof(*entries));
	ck_assert_ptr_nonnull(entries);
	rec = open_ring();
	open_reader(drec_path(rec));
	const char *path = test_path(test_shm_folder(), "a.drec");
	atomic_store(&stop, false);
	ck_assert_int_eq(pthread_create(&writer.thread, NULL, write_logged, NULL), 0);
	for (int i = 0; i < ROUNDS; i++)
		one_window(_i % 2, path);
	atomic_store(&stop, true);
	pthread_join(writer.thread, NULL);
	/* A slow writer never fills half the ring in a window: then all of them are. */
	if (pause_ns >= 200000)
		ck_assert_msg(reasons[DREC_COMPLETE] == ROUNDS, "%d complete, %d overwritten, %d lost, %d early",
			      reasons[DREC_COMPLETE], reasons[DREC_INCOMPLETE_OVERWRITTEN],
			      reasons[DREC_INCOMPLETE_LOST], reasons[DREC_INCOMPLETE_EARLY]);
	drec_reader_free(reader);
	drec_close(rec);
	free(entries);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("reader on live rings");
	TCase *live = tcase_create("read while written");
	tcase_set_timeout(live, 60);
	tcase_add_test(live, read_while_written);
	suite_add_tcase(suite, live);
	TCase *dead = tcase_create("dead process");
	tcase_add_test(dead, killed_inside_a_span);
	suite_add_tcase(suite, dead);
	TCase *oracle = tcase_create("completeness oracle");
	tcase_set_timeout(oracle, 60);
	tcase_add_loop_test(oracle, complete_means_nothing_is_missing, 0, 8);
	suite_add_tcase(suite, oracle);
	return test_run(suite);
}
