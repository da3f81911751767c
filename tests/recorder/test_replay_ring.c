/* SPDX-License-Identifier: Apache-2.0 */
/* Rings through replay, while their producer lives and after: the same series as live, in event time. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <driverec/driverec.h>
#include <driverec/format.h>

#include "config.h"
#include "replay.h"
#include "replay_set.h"
#include "ring_file.h"
#include "sources/intake.h"
#include "trigger_settings.h"
#include "support.h"

#define MS UINT64_C(1000000)

static struct config *config;
static char ring[256];

static void setup(void)
{
	static struct config_problems problems;
	assert_ok(config_parse("", 0, NULL, &config, &problems));
}

static void teardown(void)
{
	config_free(config);
}

/* Its ticks are ns of CLOCK_MONOTONIC. */
static drec *open_ring(void)
{
	const char *folder = test_shm_folder(), *why = "";
	const struct drec_options options = {.run_dir = folder, .job = "replay", .ring_bytes = 1 << 20,
					     .clock = DREC_CLOCK_MONO};
	drec *rec = NULL;
	mkdir(test_path(folder, "rings"), 0700);
	int result = drec_open_strict(&options, &rec, &why);
	ck_assert_msg(result == 0, "%s", why);
	snprintf(ring, sizeof(ring), "%s", drec_path(rec));
	return rec;
}

static void replayed(const struct option_texts *set, struct replay *replay, char **ret_lines)
{
	static struct replay_settings settings;
	const char *path = ring;
	char error[512] = "";
	size_t bytes;
	settings = (struct replay_settings){.json = true, .config = config, .set = *set};
	*replay = (struct replay){.settings = &settings, .out = open_memstream(ret_lines, &bytes)};
	ck_assert(ring_file_is(ring));
	int result = replay_rings(replay, "ring", &path, 1, error, sizeof(error));
	ck_assert_msg(result == 0, "%s", error);
	fclose(replay->out);
	replay_counts_free(&replay->counts);
}

/* A job without steps: the span that hung is one incident. */
START_TEST(a_slow_span)
{
	drec *rec = open_ring();
	uint32_t load = drec_name(rec, "load"), other = drec_name(rec, "other");
	drec_time at = drec_now(rec) - 10000 * MS;
	for (int i = 0; i < 60; i++) {
		drec_time length = i == 50 ? 400 * MS : 20 * MS;
		drec_span(rec, 0, load, at, at + length);
		drec_span(rec, 0, other, at, at + length);
		at += length + 10 * MS;
	}
	drec_close(rec);
	struct replay replay;
	const struct option_texts none = {.count = 0};
	char *lines;
	replayed(&none, &replay, &lines);
	/* "other" is not among the series that alarm. */
	ck_assert_msg(replay.firings[TRIGGERS_CRITICAL] == 1 && replay.firings[TRIGGERS_WARN] == 0, "%s", lines);
	ck_assert_ptr_nonnull(strstr(lines, "\"trigger\":\"latency_spike\",\"series\":\"load\""));
	free(lines);
}
END_TEST

/* Writes the ring's path once its 25th step has been open for 400 ms, and stays in it. */
static _Noreturn void hang(int fd)
{
	const struct timespec step = {.tv_nsec = 2500000}, long_step = {.tv_nsec = 200000000};
	drec *rec = open_ring();
	uint32_t train = drec_name(rec, "train");
	for (unsigned i = 0; i < 25; i++) {
		drec_step_begin(rec, i, train);
		nanosleep(i < 24 ? &step : &long_step, NULL);
		/* What another thread measures goes on: no sign that the step does. */
		drec_counter(rec, 0, DREC_NAME(rec, "device:0:power"), 300);
		nanosleep(i < 24 ? &step : &long_step, NULL);
		if (i < 24)
			drec_step_end(rec);
	}
	if (write(fd, ring, sizeof(ring)) != (ssize_t)sizeof(ring))
		_exit(1);
	for (;;)
		pause();
}

/* Another process: a lock of one's own is no sign of life. */
START_TEST(a_step_that_hangs_now)
{
	int ends[2];
	assert_ok(pipe(ends));
	pid_t child = fork();
	if (child == 0)
		hang(ends[1]);
	close(ends[1]);
	ck_assert_int_eq(read(ends[0], ring, sizeof(ring)), sizeof(ring));
	struct replay replay;
	const struct option_texts set = {.count = 2, .text = {"stall.min=300ms", "latency_spike.warn=1000"}};
	char *lines;
	replayed(&set, &replay, &lines);
	ck_assert_uint_eq(replay.steps, 24);
	ck_assert_msg(strstr(lines, "\"step\":24,\"trigger\":\"stall\",\"series\":\"step\"") != NULL, "%s", lines);
	ck_assert_msg(strstr(lines, "nothing has moved for 300 ms") != NULL, "%s", lines);
	free(lines);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}
END_TEST

/* What fired in one of two ways of looking at a ring. */
struct heard {
	unsigned count;
	struct triggers_firing firing[64];
};

static void hear(struct heard *heard, const struct triggers_firing *firing)
{
	if (firing->severity >= TRIGGERS_WARN && heard->count < 64)
		heard->firing[heard->count++] = *firing;
}

static void hear_live(void *context, const struct triggers_firing *firing, enum triggers_gate gate)
{
	if (gate == TRIGGERS_PASSED)
		hear(context, firing);
}

static void hear_replay(void *context, const struct triggers_firing *firing)
{
	hear(context, firing);
}

/* The daemon's own path, without the daemon. */
struct live {
	struct producer producer;
	struct triggers_engine *engine;
	struct series *series;
	struct intake *intake;
};

static int take(void *context, const struct drec_event *event, const struct drec_place *place)
{
	(void)place;
	intake_event(((struct live *)context)->intake, event);
	return 0;
}

static void open_live(struct live *live, const struct option_texts *set, struct heard *heard)
{
	const struct triggers_listener listener = {.context = heard, .firing = hear_live};
	struct drec_problem problem;
	char error[256];
	*live = (struct live){.producer = {.rank = UINT32_MAX}};
	assert_ok(drec_reader_open(AT_FDCWD, ring, NULL, &live->producer.reader, &problem));
	assert_ok(triggers_engine_new(&listener, &live->engine));
	trigger_settings_apply(config, live->engine, NULL, NULL);
	assert_ok(replay_set(set, live->engine, error, sizeof(error)));
	assert_ok(series_new(live->engine, config->series.text, config->series.count, &live->series));
	assert_ok(intake_new(&live->producer, live->series, NULL, &live->intake));
}

static void close_live(struct live *live)
{
	intake_free(live->intake);
	series_free(live->series);
	triggers_engine_free(live->engine);
	drec_reader_free(live->producer.reader);
}

static void look(struct live *live)
{
	struct timespec now;
	ck_assert_int_ge(drec_reader_poll(live->producer.reader, take, live, 0, NULL), 0);
	series_tick(live->series);
	clock_gettime(CLOCK_REALTIME, &now);
	int64_t now_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	intake_open_spans(live->intake, now_ns);
	triggers_engine_tick(live->engine, now_ns);
}

/* Stays in the open step, as a job does, and looks every 5 ms, as a daemon does. */
static void pass(struct live *live, unsigned ms)
{
	static const struct timespec five = {.tv_nsec = 5000000};
	for (unsigned i = 0; i < ms; i += 5) {
		nanosleep(&five, NULL);
		look(live);
	}
}

/* A checkpoint that only its name tells excuses its step, though its event comes when it is over. */
START_TEST(a_checkpoint_by_name)
{
	const struct timespec step = {.tv_nsec = 5000000}, lasts = {.tv_nsec = 700000000};
	drec *rec = open_ring();
	uint32_t train = drec_name(rec, "train"), save = drec_name(rec, "save_checkpoint");
	for (unsigned i = 0; i < 40; i++) {
		drec_step_begin(rec, i, train);
		nanosleep(&step, NULL);
		if (i == 30) {
			drec_scope scope = drec_begin(rec, save);
			nanosleep(&lasts, NULL);
			drec_end(rec, scope);
		}
		drec_step_end(rec);
	}
	drec_close(rec);
	struct replay replay;
	const struct option_texts set = {.count = 2, .text = {"stall.min=500ms", "latency_spike.warn=1000"}};
	char *lines;
	replayed(&set, &replay, &lines);
	ck_assert_uint_eq(replay.steps, 40);
	ck_assert_msg(strstr(lines, "\"trigger\":\"stall\"") == NULL, "%s", lines);
	free(lines);
}
END_TEST

/*
 * No gate that counts on when an incident settles, so that both see every firing. A slow machine makes steps slow, but
 * for both.
 */
START_TEST(a_ring_fires_as_it_did_live)
{
	static const struct option_texts set = {
		.count = 5,
		.text = {"stall.min=300ms", "gates.coalesce=0", "gates.cooldown=0", "gates.per_hour=1000", "gates.per_day=1000"}};
	static struct heard live_heard, replay_heard;
	struct live live;
	drec *rec = open_ring();
	uint32_t train = drec_name(rec, "train"), eval = drec_name(rec, "eval"), load = drec_name(rec, "load");
	open_live(&live, &set, &live_heard);
	for (unsigned step = 0; step < 60; step++) {
		drec_step_begin(rec, step, train);
		drec_time begin = drec_now(rec);
		pass(&live, step == 40 ? 100 : step == 50 ? 700 : 20);
		drec_span(rec, 0, load, begin, drec_now(rec));
		drec_step_end(rec);
		if (step % 20 == 10) {
			drec_scope phase = drec_phase_begin(rec, eval);
			pass(&live, 60);
			drec_phase_end(rec, phase);
		}
	}
	look(&live);
	close_live(&live);
	drec_close(rec);
	const char *path = ring;
	char error[512] = "";
	struct replay_settings settings = {.config = config, .set = set};
	struct replay replay = {.settings = &settings, .fired = hear_replay, .fired_context = &replay_heard};
	assert_ok(replay_rings(&replay, "ring", &path, 1, error, sizeof(error)));
	replay_free(&replay);
	ck_assert_uint_ge(live_heard.count, 2);
	for (unsigned i = 0; i < live_heard.count && i < replay_heard.count; i++) {
		const struct triggers_firing *a = &live_heard.firing[i], *b = &replay_heard.firing[i];
		ck_assert_msg(!strcmp(a->trigger, b->trigger) && a->step == b->step && a->severity == b->severity &&
				      llabs(a->t0_ns - b->t0_ns) < 1000000,
			      "firing %u: live \"%s\", replay \"%s\"", i, a->evidence, b->evidence);
	}
	ck_assert_uint_eq(live_heard.count, replay_heard.count);
}
END_TEST

START_TEST(what_is_no_ring_is_refused)
{
	char error[512] = "";
	static const char text[] = "{\"traceEvents\":[]}";
	struct replay_settings settings = {.config = config};
	struct replay replay = {.settings = &settings, .out = stdout};
	const char *path = test_path(test_folder(), "trace.json");
	test_write_file(path, text, sizeof(text) - 1);
	ck_assert(!ring_file_is(path));
	ck_assert_int_lt(replay_rings(&replay, "trace", &path, 1, error, sizeof(error)), 0);
	ck_assert_ptr_nonnull(strstr(error, "trace.json: "));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("replay_ring");
	TCase *tcase = tcase_create("rings");
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_slow_span);
	tcase_add_test(tcase, a_step_that_hangs_now);
	tcase_add_test(tcase, a_checkpoint_by_name);
	tcase_add_test(tcase, a_ring_fires_as_it_did_live);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, what_is_no_ring_is_refused);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
