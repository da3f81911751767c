/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows longer than what a pin keeps: chatty threads fill a small ring several times while an incident is
 * open. What the files hold is compared with what the threads say they wrote: each event once, and all of
 * them where the verdict is complete.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <driverec/driverec.h>
#include <driverec/freeze.h>

#include "incidents/incidents.h"
#include "incidents/manifest.h"
#include "incidents/store.h"
#include "support.h"

#define MS INT64_C(1000000)

enum { WRITERS = 2, LOG_MAX = 1 << 22 };

struct writer {
	pthread_t thread;
	drec *rec;
	const _Atomic int *stop;
	unsigned burst; /* events between two pauses of a millisecond */
	uint32_t name;
	uint64_t *log; /* start of each event, rising */
	_Atomic size_t count;
};

struct world {
	const char *run_dir, *store_path;
	drec *rec;
	struct incidents_store *store;
	struct incidents *incidents;
	struct drec_reader *reader;
	struct writer writer[WRITERS];
	_Atomic int stop;
	int64_t pre_ns, post_ns, behind_ns;
	uint64_t bytes_max;
	bool read_only, gone; /* gone: so is the ring's file */
};

static int64_t mono_ns(void *context)
{
	struct timespec now;

	(void)context;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t mono_to_unix_ns(void *context)
{
	static int64_t offset;
	struct timespec now;

	(void)context;
	if (!offset) {
		clock_gettime(CLOCK_REALTIME, &now);
		offset = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - mono_ns(NULL);
	}
	return offset;
}

static int64_t unix_ns(void)
{
	return mono_ns(NULL) + mono_to_unix_ns(NULL);
}

static size_t rings(void *context, struct incidents_ring *ret, size_t room)
{
	struct world *world = context;

	if (world->gone)
		return 0;
	if (room)
		ret[0] = (struct incidents_ring){.reader = world->reader,
						 .path = drec_path(world->rec),
						 .watermark_ns = unix_ns() - world->behind_ns};
	return 1;
}

static void start(struct world *world)
{
	const struct incidents_sizing sizing = {.pre_ns = world->pre_ns,
						.post_ns = world->post_ns,
						.post_max_ns = 60000 * MS,
						.bytes_max = world->bytes_max};
	const struct incidents_host host = {
		.context = world, .rings = rings, .mono_ns = mono_ns, .mono_to_unix_ns = mono_to_unix_ns};
	const struct drec_reader_options options = {.writable = !world->read_only, .rings_only = 1};
	struct drec_problem problem;

	assert_ok(drec_reader_open(AT_FDCWD, drec_path(world->rec), &options, &world->reader, &problem));
	assert_ok(incidents_store_open(world->store_path, true, &world->store));
	assert_ok(incidents_new(&host, world->store, &sizing, &world->incidents));
}

static void stop(struct world *world)
{
	incidents_free(world->incidents);
	incidents_store_free(world->store);
	drec_reader_free(world->reader);
}

static void make_world(struct world *world)
{
	const struct drec_options options = {.job = "job", .name = "rank0", .ring_bytes = 1 << 20};
	struct drec_options here = options;

	memset(world, 0, sizeof(*world));
	world->run_dir = here.run_dir = test_shm_folder();
	ck_assert_int_eq(mkdir(test_path(world->run_dir, "rings"), 0700), 0);
	world->store_path = test_folder();
	world->pre_ns = 50 * MS;
	world->post_ns = 1500 * MS;
	world->bytes_max = 256 << 20;
	mono_to_unix_ns(NULL);
	world->rec = drec_open(&here);
	ck_assert_ptr_nonnull(world->rec);
}

static void *chat(void *context)
{
	struct writer *writer = context;
	const struct timespec pause = {.tv_nsec = MS};
	uint64_t last = 0;

	while (!atomic_load(writer->stop) && writer->count < LOG_MAX) {
		for (unsigned i = 0; i < writer->burst && writer->count < LOG_MAX; i++) {
			uint64_t now = drec_now(writer->rec);

			last = now > last ? now : last + 1;
			drec_span(writer->rec, 0, writer->name, last, last);
			writer->log[writer->count++] = last;
		}
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static void start_writers(struct world *world, unsigned burst)
{
	for (unsigned i = 0; i < WRITERS; i++) {
		struct writer *writer = &world->writer[i];

		writer->rec = world->rec;
		writer->stop = &world->stop;
		writer->burst = i ? burst / 3 + 1 : burst;
		writer->name = drec_name(world->rec, i ? "one" : "other");
		writer->log = malloc(LOG_MAX * sizeof(*writer->log));
		ck_assert_ptr_nonnull(writer->log);
		ck_assert_int_eq(pthread_create(&writer->thread, NULL, chat, writer), 0);
	}
}

static void stop_writers(struct world *world)
{
	atomic_store(&world->stop, 1);
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_join(world->writer[i].thread, NULL);
}

static void end_world(struct world *world)
{
	for (unsigned i = 0; i < WRITERS; i++)
		free(world->writer[i].log);
	drec_close(world->rec);
}

static void sleep_ms(int64_t ms)
{
	const struct timespec pause = {ms / 1000, ms % 1000 * MS};

	nanosleep(&pause, NULL);
}

static size_t written(const struct world *world)
{
	size_t count = 0;

	for (unsigned i = 0; i < WRITERS; i++)
		count += atomic_load(&world->writer[i].count);
	return count;
}

/* Until so many more were written than the ring holds twice, however long a loaded machine takes for it. */
static void outwrite_the_ring(const struct world *world)
{
	size_t enough = written(world) + 2 * drec_ring_bytes(world->rec) / 32;

	for (int i = 0; i < 60000 && written(world) < enough; i++)
		sleep_ms(1);
	ck_assert_uint_ge(written(world), enough);
}

static struct triggers_firing fired(int64_t t0_ns)
{
	int64_t now = unix_ns();
	struct triggers_firing firing = {.trigger = "stall",
					 .series = "step",
					 .severity = TRIGGERS_CRITICAL,
					 .series_id = 3,
					 .t0_ns = t0_ns,
					 .until_ns = now,
					 .detected_ns = now,
					 .step = 7,
					 .sample = -1,
					 .evidence = "no progress"};

	return firing;
}

static void run(struct world *world, int64_t pause_ms)
{
	for (int i = 0; i < 12000 && incidents_busy(world->incidents) > 0; i++) {
		incidents_tick(world->incidents);
		sleep_ms(pause_ms);
	}
	ck_assert_uint_eq(incidents_busy(world->incidents), 0);
}

/* --- the truth --- */

struct kept {
	uint64_t *start;
	uint32_t name[WRITERS];
	size_t count, room;
	unsigned writer;
	struct drec_reader *reader;
};

static int keep(void *context, const struct drec_event *event, const struct drec_place *place)
{
	struct kept *kept = context;

	(void)place;
	if (event->kind != DREC_SPAN || event->name != kept->name[kept->writer])
		return 0;
	if (kept->count == kept->room) {
		kept->room = kept->room ? 2 * kept->room : 1024;
		kept->start = realloc(kept->start, kept->room * sizeof(*kept->start));
		ck_assert_ptr_nonnull(kept->start);
	}
	kept->start[kept->count++] = event->start;
	return 0;
}

static int by_value(const void *a_, const void *b_)
{
	const uint64_t *a = a_, *b = b_;

	return *a < *b ? -1 : *a > *b;
}

struct outcome {
	bool complete, onset_whole;
	uint64_t written, found, files;
	char why[160], verdict[16];
};

/* One writer's events in [a, b], from all files, against its log. */
static void compare(const struct world *world, unsigned w, char *const *path, unsigned files, int64_t a_ns,
		    int64_t b_ns, int64_t onset_ns, struct outcome *outcome)
{
	const struct writer *writer = &world->writer[w];
	struct kept kept = {.writer = w};
	uint64_t a = 0, b = 0, onset = 0;
	size_t at = 0;

	for (unsigned i = 0; i < WRITERS; i++)
		kept.name[i] = world->writer[i].name;
	for (unsigned i = 0; i < files; i++) {
		struct drec_reader *reader;
		struct drec_problem problem;

		assert_ok(drec_reader_open(AT_FDCWD, path[i], NULL, &reader, &problem));
		a = drec_reader_ticks(reader, a_ns - mono_to_unix_ns(NULL));
		b = drec_reader_ticks(reader, b_ns - mono_to_unix_ns(NULL));
		onset = drec_reader_ticks(reader, onset_ns - mono_to_unix_ns(NULL));
		ck_assert_int_eq(drec_reader_poll(reader, keep, &kept, 0, NULL), 0);
		drec_reader_free(reader);
	}
	if (kept.count)
		qsort(kept.start, kept.count, sizeof(*kept.start), by_value);
	for (size_t i = 1; i < kept.count; i++)
		ck_assert_msg(kept.start[i] != kept.start[i - 1], "an event is there twice");
	for (size_t i = 0; i < writer->count; i++) {
		uint64_t start = writer->log[i];

		while (at < kept.count && kept.start[at] < start)
			at++;
		if (start < a || start > b)
			continue;
		outcome->written++;
		if (at < kept.count && kept.start[at] == start)
			outcome->found++;
		else if (start <= onset)
			outcome->onset_whole = false;
	}
	free(kept.start);
}

static struct outcome judge(struct world *world, int64_t onset_ns)
{
	struct outcome outcome = {.onset_whole = true};
	struct incidents_entry *entries;
	char *path[300];
	cJSON *json = NULL, *window;
	size_t count;
	unsigned files = 0;

	assert_ok(incidents_store_list(world->store, &entries, &count));
	ck_assert_uint_eq(count, 1);
	assert_ok(incident_manifest_read(world->store, entries[0].folder, &json));
	cJSON_ArrayForEach(
		window,
		cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(json, "rings"), 0), "windows"))
	{
		const char *file = cJSON_GetStringValue(cJSON_GetObjectItem(window, "file"));
		struct drec_problem problem;

		if (!file || !file[0])
			continue;
		ck_assert_int_gt(asprintf(&path[files], "%s/incidents/%s/%s", world->store_path,
					  entries[0].folder, file),
				 0);
		assert_ok(drec_window_verify(AT_FDCWD, path[files++], &problem));
	}
	outcome.files = files;
	json_text(json, "why_partial", outcome.why, sizeof(outcome.why));
	json_text(json, "verdict", outcome.verdict, sizeof(outcome.verdict));
	cJSON_ArrayForEach(window, cJSON_GetObjectItem(json, "windows"))
	{
		const cJSON *asked = cJSON_GetObjectItem(window, "asked");

		for (unsigned w = 0; w < WRITERS; w++)
			compare(world, w, path, files, json_ns(asked, "a_ns", 0), json_ns(asked, "b_ns", 0),
				onset_ns, &outcome);
	}
	outcome.complete = !strcmp(outcome.verdict, "complete");
	ck_assert_msg(!outcome.complete || outcome.found == outcome.written,
		      "complete with %ju of %ju events in %ju files", (uintmax_t)outcome.found,
		      (uintmax_t)outcome.written, (uintmax_t)outcome.files);
	cJSON_Delete(json);
	for (unsigned i = 0; i < files; i++)
		free(path[i]);
	free(entries);
	return outcome;
}

/* --- tests --- */

START_TEST(long_window_is_whole)
{
	struct world world;
	struct triggers_firing firing;
	struct outcome outcome;

	make_world(&world);
	world.read_only = _i == 1; /* copied from the firing on, without a pin */
	start(&world);
	start_writers(&world, 60);
	sleep_ms(100);
	firing = fired(unix_ns());
	assert_ok(incidents_firing(world.incidents, &firing, NULL));
	run(&world, 1);
	stop_writers(&world);
	outcome = judge(&world, firing.t0_ns);
	ck_assert_msg(outcome.complete, "%s: %ju of %ju", outcome.why, (uintmax_t)outcome.found,
		      (uintmax_t)outcome.written);
	ck_assert_uint_gt(outcome.written, 2 * (1 << 20) / 32);
	ck_assert_uint_gt(outcome.files, 3);
	stop(&world);
	end_world(&world);
}
END_TEST

/* Too slow: nobody drains for a while. Too small: no more may be drained than a bit. */
START_TEST(onset_is_kept_where_draining_fails)
{
	struct world world;
	struct triggers_firing firing;
	struct outcome outcome;

	make_world(&world);
	if (_i == 1)
		world.bytes_max = 1 << 20;
	start(&world);
	/* Half the ring must hold what lies before t0, else the onset is gone before anybody can pin it. */
	start_writers(&world, _i == 0 ? 150 : 60);
	sleep_ms(60);
	firing = fired(unix_ns());
	assert_ok(incidents_firing(world.incidents, &firing, NULL));
	if (_i == 0)
		outwrite_the_ring(&world);
	run(&world, 1);
	stop_writers(&world);
	outcome = judge(&world, firing.t0_ns);
	ck_assert_str_eq(outcome.verdict, "partial");
	ck_assert_msg(strstr(outcome.why, "onset") || strstr(outcome.why, "room"), "%s", outcome.why);
	ck_assert_msg(outcome.onset_whole, "%ju of %ju events", (uintmax_t)outcome.found,
		      (uintmax_t)outcome.written);
	stop(&world);
	end_world(&world);
}
END_TEST

START_TEST(full_disk_keeps_what_was_drained)
{
	struct world world;
	struct triggers_firing firing;
	struct outcome outcome;
	const struct rlimit small = {32 << 10, RLIM_INFINITY}, all = {RLIM_INFINITY, RLIM_INFINITY};

	make_world(&world);
	start(&world);
	start_writers(&world, 60);
	sleep_ms(60);
	firing = fired(unix_ns());
	assert_ok(incidents_firing(world.incidents, &firing, NULL));
	for (int i = 0; i < 600; i++) {
		incidents_tick(world.incidents);
		sleep_ms(1);
	}
	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
	run(&world, 1);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &all), 0);
	stop_writers(&world);
	outcome = judge(&world, firing.t0_ns);
	ck_assert_str_eq(outcome.verdict, "partial");
	ck_assert(outcome.onset_whole);
	ck_assert_uint_ge(outcome.files, 1);
	stop(&world);
	end_world(&world);
}
END_TEST

/* The suspicion keeps how it began; what the thread wrote meanwhile is more than the ring holds. */
START_TEST(suspicion_keeps_the_onset)
{
	struct world world;
	struct triggers_firing firing;
	struct outcome outcome;
	int64_t t0;

	make_world(&world);
	world.post_ns = 300 * MS;
	start(&world);
	start_writers(&world, 60);
	sleep_ms(100);
	t0 = unix_ns();
	incidents_suspicion(world.incidents, 3, 0, t0);
	outwrite_the_ring(&world);
	firing = fired(t0);
	firing.ongoing = _i;
	assert_ok(incidents_firing(world.incidents, &firing, NULL));
	run(&world, 1);
	if (_i) {
		incidents_progress(world.incidents, &firing, unix_ns());
		run(&world, 1);
	}
	stop_writers(&world);
	outcome = judge(&world, t0);
	ck_assert_str_eq(outcome.verdict, "partial");
	ck_assert_msg(outcome.onset_whole, "%ju of %ju: %s", (uintmax_t)outcome.found,
		      (uintmax_t)outcome.written, outcome.why);
	/* On a loaded machine more may be gone by the firing than the suspicion kept; never the onset. */
	ck_assert_msg(strstr(outcome.why, "onset") || strstr(outcome.why, "overwritten"), "%s", outcome.why);
	stop(&world);
	end_world(&world);
}
END_TEST

/* --- killed while draining --- */

static const char *const points[] = {"drain_copied", "drain_synced",     "drain_moved", "early_copied",
				     "raw_written",  "manifest_written", "published"};

static void live_until_killed(struct world *world, const char *point, const char *after)
{
	struct triggers_firing firing;

	setenv("DRIVEREC_KILL_AT", point, 1);
	setenv("DRIVEREC_KILL_AFTER", after, 1);
	sleep_ms(60);
	start(world);
	firing = fired(unix_ns());
	incidents_firing(world->incidents, &firing, NULL);
	for (int i = 0; i < 8000 && incidents_busy(world->incidents) > 0; i++) {
		incidents_tick(world->incidents);
		sleep_ms(1);
	}
	_exit(0);
}

START_TEST(killed_while_draining)
{
	struct world world;
	const char *point = points[_i];
	struct outcome outcome;
	int status;
	pid_t child;

	make_world(&world);
	world.read_only = !strcmp(point, "early_copied");
	world.post_ns = 800 * MS;
	child = fork();
	if (child == 0)
		live_until_killed(&world, point,
				  strncmp(point, "drain", 5) == 0 ? (_i % 2 ? "1" : "2") : "0");
	start_writers(&world, 60);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "point %s was not reached", point);
	start(&world);
	assert_ok(incidents_adopt(world.incidents));
	run(&world, 1);
	stop_writers(&world);
	outcome = judge(&world, 0);
	/* Where the machine takes long to start the next daemon, half the ring passes meanwhile: then it says so. */
	ck_assert_msg(outcome.complete || world.read_only || (strstr(outcome.why, "onset") && outcome.onset_whole),
		      "%s: %s: %ju of %ju", point, outcome.why, (uintmax_t)outcome.found,
		      (uintmax_t)outcome.written);
	stop(&world);
	end_world(&world);
}
END_TEST

/* What was drained outlives the ring, as after a restart of the machine. */
START_TEST(drained_parts_outlive_the_ring)
{
	struct world world;
	struct outcome outcome;
	int64_t t0;
	int status;
	pid_t child;

	make_world(&world);
	world.post_ns = 800 * MS;
	t0 = unix_ns();
	child = fork();
	if (child == 0)
		live_until_killed(&world, _i ? "raw_sealed" : "drain_moved", "0");
	start_writers(&world, 60);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	start(&world);
	world.gone = true;
	assert_ok(incidents_adopt(world.incidents));
	run(&world, 1);
	stop_writers(&world);
	outcome = judge(&world, t0);
	ck_assert_uint_ge(outcome.files, 1);
	ck_assert_uint_gt(outcome.found, 0);
	ck_assert(outcome.onset_whole);
	/* Killed after the last part was written there is nothing more to want of the ring. */
	if (_i)
		ck_assert_uint_eq(outcome.found, outcome.written);
	else
		ck_assert_str_eq(outcome.why, "a ring was gone");
	stop(&world);
	end_world(&world);
}
END_TEST

/* --- at random --- */

START_TEST(verdict_is_the_truth)
{
	unsigned complete = 0;

	for (int round = 0; round < 8; round++) {
		struct world world;
		struct triggers_firing firing;
		struct outcome outcome;
		uint64_t dice = test_random();

		make_world(&world);
		world.read_only = dice % 4 == 0;
		world.post_ns = (int64_t)(100 + dice / 4 % 500) * MS;
		world.bytes_max = dice / 64 % 4 == 0 ? 2 << 20 : 256 << 20;
		start(&world);
		start_writers(&world, 5 + (unsigned)(dice / 1024 % (round % 2 ? 400 : 40)));
		sleep_ms((int64_t)(dice / 4096 % 120));
		firing = fired(unix_ns() - (int64_t)(dice / 8192 % 3) * 100 * MS);
		firing.ongoing = (int)(dice / 65536 % 2);
		assert_ok(incidents_firing(world.incidents, &firing, NULL));
		for (int i = 0; i < 4000 && incidents_counters(world.incidents)->published == 0; i++) {
			incidents_tick(world.incidents);
			sleep_ms((int64_t)(test_random() % (dice / 131072 % 2 ? 60 : 3)) + 1);
		}
		stop_writers(&world);
		outcome = judge(&world, 0);
		complete += outcome.complete;
		stop(&world);
		end_world(&world);
	}
	ck_assert_uint_gt(complete, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("draining");
	const struct {
		const char *name;
		const TTest *test;
		int times;
	} cases[] = {
		{"long window", long_window_is_whole, 2},
		{"too slow, too small", onset_is_kept_where_draining_fails, 2},
		{"full disk", full_disk_keeps_what_was_drained, 1},
		{"suspicion", suspicion_keeps_the_onset, 2},
		{"killed while draining", killed_while_draining, (int)(sizeof(points) / sizeof(points[0]))},
		{"parts without a ring", drained_parts_outlive_the_ring, 2},
		{"verdict and truth", verdict_is_the_truth, 1},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		TCase *one = tcase_create(cases[i].name);

		tcase_set_timeout(one, 60);
		tcase_add_loop_test(one, cases[i].test, 0, cases[i].times);
		suite_add_tcase(suite, one);
	}
	return test_run(suite);
}
