/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many events a second one core takes from a ring to the macro view and the series filter, by the daemon's
 * own path: poll, decode, series, tiers. The limit is reading the same bytes once.
 *
 * The ring is full of what a job writes: steps, in each of them scoped spans of 32 names nested three deep.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <triggers/triggers.h>

#include "bench.h"
#include "sources/intake.h"

enum { NAMES = 32, NESTED = 16, INGESTS = 5 };
#define INGEST_RING_BYTES ((uint64_t)64 << 20)

static void fill(drec *rec)
{
	uint32_t names[NAMES];
	for (int i = 0; i < NAMES; i++) {
		char text[32];
		snprintf(text, sizeof(text), "layer%d", i);
		names[i] = drec_name(rec, text);
	}
	/* A step is 3 + 3 x NESTED events of 32 bytes or a little more: 1.1 laps. */
	uint64_t steps = drec_ring_bytes(rec) / (DREC_EVENT_BASE_BYTES * 3 * NESTED) + 10;
	for (uint64_t step = 0; step < steps; step++) {
		drec_step_begin(rec, step, 0);
		for (unsigned i = 0; i < NESTED; i++) {
			drec_scope outer = drec_begin(rec, names[i % NAMES]);
			drec_scope inner = drec_begin(rec, names[(i + 7) % NAMES]);
			drec_scope leaf = drec_begin(rec, names[(i + 19) % NAMES]);
			drec_end(rec, leaf);
			drec_end(rec, inner);
			drec_end(rec, outer);
		}
		drec_step_end(rec);
	}
}

struct ingest {
	struct producer producer;
	struct triggers_engine *engine;
	struct series *series;
	struct reducer_tiers *tiers;
	struct intake *intake;
};

static int take(void *context, const struct drec_event *event, const struct drec_place *place)
{
	struct ingest *ingest = context;
	(void)place;
	intake_event(ingest->intake, event);
	return 0;
}

static int ingest_open(struct ingest *ingest, const char *path, const char *folder)
{
	static char pattern[][16] = {"step", "phase:*", "load", "next(*)", "device:*"};
	char *patterns[] = {pattern[0], pattern[1], pattern[2], pattern[3], pattern[4]};
	struct triggers_listener listener = {.context = NULL};
	struct reducer_tiers_options options;
	struct drec_problem problem;
	struct timespec now;
	char file[128];
	clock_gettime(CLOCK_REALTIME, &now);
	reducer_tiers_defaults(&options);
	snprintf(file, sizeof(file), "%s/macro.tiers", folder);
	unlink(file);
	ingest->producer.rank = 0;
	memcpy(ingest->producer.key, "bench", 6);
	int ret = drec_reader_open(AT_FDCWD, path, NULL, &ingest->producer.reader, &problem);
	if (ret == 0)
		ret = triggers_engine_new(&listener, &ingest->engine);
	if (ret == 0)
		ret = series_new(ingest->engine, patterns, sizeof(patterns) / sizeof(patterns[0]), &ingest->series);
	if (ret == 0)
		ret = reducer_tiers_open(file, &options, (int64_t)now.tv_sec * 1000000000, &ingest->tiers);
	if (ret == 0)
		ret = intake_new(&ingest->producer, ingest->series, ingest->tiers, &ingest->intake);
	return ret;
}

static void ingest_close(struct ingest *ingest)
{
	intake_free(ingest->intake);
	reducer_tiers_free(ingest->tiers);
	series_free(ingest->series);
	triggers_engine_free(ingest->engine);
	drec_reader_free(ingest->producer.reader);
}

/* M events/s, or -errno. */
static int ingest_once(const char *path, const char *folder, double *ret_speed)
{
	struct ingest ingest = {.engine = NULL};
	struct drec_poll_stats stats = {0};
	int ret = ingest_open(&ingest, path, folder);
	int64_t begin = bench_ns();
	while (ret == 0) {
		ret = drec_reader_poll(ingest.producer.reader, take, &ingest, 65536, &stats);
		series_tick(ingest.series);
		if (ret <= 0)
			break;
		if (reducer_tiers_wants_commit(ingest.tiers))
			reducer_tiers_commit(ingest.tiers, 0, NULL, 0, false);
		ret = 0;
	}
	*ret_speed = (double)stats.events * 1e3 / (double)(bench_ns() - begin);
	ingest_close(&ingest);
	return ret < 0 ? ret : stats.events ? 0 : -ENODATA;
}

/* M events/s of this size if they were only read: pread and a sum over the words. */
static double read_once(const char *path, uint64_t events)
{
	static uint64_t words[(64 << 10) / 8];
	uint64_t sum = 0, bytes = 0;
	ssize_t count;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	int64_t begin = bench_ns();
	while (bytes < INGEST_RING_BYTES && (count = read(fd, words, sizeof(words))) > 0) {
		for (ssize_t i = 0; i < count / 8; i++)
			sum += words[i];
		bytes += (uint64_t)count;
	}
	int64_t took = bench_ns() - begin;
	close(fd);
	__asm__ volatile("" : : "r"(sum));
	return (double)events * 1e3 / (double)took;
}

int bench_ingest(void)
{
	const char *folder = bench_folder_make();
	drec *rec = folder ? bench_ring(folder, "ring", INGEST_RING_BYTES) : NULL;
	int ret = rec ? 0 : -ENOMEM;
	double speed = 0, limit = 0;
	if (rec)
		fill(rec);
	for (int i = 0; ret == 0 && i < INGESTS; i++) {
		double one = 0, read = read_once(drec_path(rec), INGEST_RING_BYTES / DREC_EVENT_BASE_BYTES);
		ret = ingest_once(drec_path(rec), folder, &one);
		speed = one > speed ? one : speed;
		limit = read > limit ? read : limit;
	}
	if (ret == 0) {
		bench_print(&(struct bench_figure){"ingest", speed, "M events/s", 0, 5});
		bench_print(&(struct bench_figure){"ingest_beside_reading", speed, "M events/s", limit, 0});
	}
	drec_close(rec);
	bench_folder_remove(folder);
	return ret;
}
