/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a freeze takes, and how fast a window gets to disk.
 *
 * freeze: from the decision to the last of eight rings pinned, while a writer fills one of them as fast as
 * it can on every core but one. snapshot: a whole pinned ring written to a window file, beside write() of as
 * many bytes to the same folder; neither waits for the disk (no fsync).
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <driverec/freeze.h>

#include "bench.h"

enum { RINGS = 8, FREEZES = 4000, WRITERS_MAX = 64, SNAPSHOTS = 7 };
#define SNAPSHOT_RING_BYTES ((uint64_t)64 << 20)

struct writer {
	pthread_t thread;
	drec *rec;
	volatile int *stop;
};

static void *write_on(void *context)
{
	struct writer *writer = context;
	uint32_t name = drec_name(writer->rec, "span");
	while (!*writer->stop)
		for (int i = 0; i < 1000; i++)
			drec_span(writer->rec, 0, name, 1, 0);
	return NULL;
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* What the daemon does at a firing: one pin in every ring, from the order number it has sampled. */
static int freeze_all(struct drec_reader **readers, unsigned *entries, uint64_t *from)
{
	for (int i = 0; i < RINGS; i++) {
		struct drec_pin pin = {.from = from[i]};
		int ret = drec_pin_set(readers[i], &pin, 1, &entries[i]);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static int freeze_rounds(struct drec_reader **readers, int64_t *took)
{
	unsigned entries[RINGS];
	uint64_t from[RINGS];
	struct timespec pause = {.tv_nsec = 200000};
	for (int n = 0; n < FREEZES; n++) {
		for (int i = 0; i < RINGS; i++) {
			if (drec_reader_changed(readers[i]) < 0)
				return -EIO;
			from[i] = drec_reader_state(readers[i])->tail;
		}
		/* As in the daemon, which decides after it woke from its tick. */
		nanosleep(&pause, NULL);
		int64_t begin = bench_ns();
		int ret = freeze_all(readers, entries, from);
		took[n] = bench_ns() - begin;
		for (int i = 0; i < RINGS && ret == 0; i++)
			ret = drec_pin_release(readers[i], entries[i]);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static int open_rings(const char *folder, drec **rings, struct drec_reader **readers)
{
	struct drec_reader_options options = {.writable = 1};
	struct drec_problem problem = {0};
	for (int i = 0; i < RINGS; i++) {
		char name[16];
		snprintf(name, sizeof(name), "ring%d", i);
		rings[i] = bench_ring(folder, name, 0);
		if (!rings[i])
			return -ENOMEM;
		drec_span(rings[i], 0, 0, 1, 0);
		int ret = drec_reader_open(AT_FDCWD, drec_path(rings[i]), &options, &readers[i], &problem);
		if (ret < 0) {
			fprintf(stderr, "driverec bench: %s: %s\n", drec_path(rings[i]), problem.what);
			return ret;
		}
	}
	return 0;
}

int bench_freeze(void)
{
	drec *rings[RINGS] = {NULL};
	struct drec_reader *readers[RINGS] = {NULL};
	struct writer writer[WRITERS_MAX];
	volatile int stop = 0;
	int writers = 0, wanted = get_nprocs() - 1;
	const char *folder = bench_folder_make();
	int64_t *took = calloc(FREEZES, sizeof(*took));
	int ret = folder && took ? open_rings(folder, rings, readers) : -ENOMEM;
	for (; ret == 0 && writers < wanted && writers < WRITERS_MAX; writers++) {
		writer[writers] = (struct writer){.rec = rings[writers % RINGS], .stop = &stop};
		if (pthread_create(&writer[writers].thread, NULL, write_on, &writer[writers]) != 0)
			break;
	}
	if (ret == 0)
		ret = freeze_rounds(readers, took);
	stop = 1;
	for (int i = 0; i < writers; i++)
		pthread_join(writer[i].thread, NULL);
	if (ret == 0) {
		qsort(took, FREEZES, sizeof(*took), compare);
		bench_print(&(struct bench_figure){"freeze_p50", (double)took[FREEZES / 2] / 1e6, "ms", 0, 0});
		bench_print(&(struct bench_figure){"freeze_p99", (double)took[FREEZES * 99 / 100] / 1e6, "ms", 0, 1});
	}
	for (int i = 0; i < RINGS; i++) {
		drec_reader_free(readers[i]);
		drec_close(rings[i]);
	}
	free(took);
	bench_folder_remove(folder);
	return ret;
}

static int fresh_file(const char *folder)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/driverec-bench-XXXXXX", folder);
	int fd = mkstemp(path);
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

/* MB/s of write() from memory that is warm, in pieces of 1 MiB. */
static double plain_speed(const char *folder, const uint8_t *bytes, uint64_t count)
{
	int fd = fresh_file(folder);
	if (fd < 0)
		return 0;
	int64_t begin = bench_ns();
	for (uint64_t at = 0; at < count; at += 1 << 20)
		if (write(fd, bytes + at, 1 << 20) != 1 << 20)
			count = 0;
	double speed = (double)count * 1e3 / (double)(bench_ns() - begin);
	close(fd);
	return speed;
}

static double snapshot_speed(struct drec_reader *reader, const char *folder, uint64_t *ret_bytes)
{
	struct drec_snapshot_request request = {.a_ns = INT64_MIN / 4, .b_ns = INT64_MAX / 4, .no_crc = 1};
	struct drec_snapshot_result result;
	int fd = fresh_file(folder);
	if (fd < 0)
		return 0;
	request.mono_to_unix_ns = drec_reader_mono_to_unix_ns(reader);
	int64_t begin = bench_ns();
	int ret = drec_snapshot_write(reader, fd, &request, &result);
	double speed = ret < 0 ? 0 : (double)result.data_bytes * 1e3 / (double)(bench_ns() - begin);
	close(fd);
	*ret_bytes = ret < 0 ? 0 : result.data_bytes;
	return speed;
}

int bench_snapshot(const char *target)
{
	const char *folder = bench_folder_make();
	drec *rec = folder ? bench_ring(folder, "ring", SNAPSHOT_RING_BYTES) : NULL;
	struct drec_reader *reader = NULL;
	struct drec_problem problem;
	uint8_t *bytes = malloc(SNAPSHOT_RING_BYTES);
	double plain = 0, snapshot = 0;
	uint64_t written = 0;
	int ret = rec && bytes ? 0 : -ENOMEM;
	if (ret == 0) {
		memset(bytes, 1, SNAPSHOT_RING_BYTES);
		for (uint64_t i = 0; i < 2 * drec_ring_bytes(rec) / DREC_EVENT_BASE_BYTES; i++)
			drec_span(rec, 0, 1, i + 1, i + 2);
		ret = drec_reader_open(AT_FDCWD, drec_path(rec), NULL, &reader, &problem);
	}
	for (int i = 0; ret == 0 && i < SNAPSHOTS; i++) {
		double speed = plain_speed(target, bytes, SNAPSHOT_RING_BYTES);
		plain = speed > plain ? speed : plain;
		speed = snapshot_speed(reader, target, &written);
		snapshot = speed > snapshot ? speed : snapshot;
	}
	if (ret == 0 && (plain <= 0 || snapshot <= 0)) {
		fprintf(stderr, "driverec bench: cannot write to %s: %s\n", target, strerror(errno));
		ret = -EIO;
	}
	if (ret == 0)
		bench_print(&(struct bench_figure){"snapshot", snapshot, "MB/s", plain, 0.7});
	drec_reader_free(reader);
	drec_close(rec);
	free(bytes);
	bench_folder_remove(folder);
	return ret;
}
