/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an event costs the job.
 *
 * The limit is what no recorder can do without: one read of the clock and a store of the event's 32 bytes
 * into a buffer that stays in the cache (for a scoped span two reads, one at each end).
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <driverec/freeze.h>

#include "bench.h"

enum { ROUNDS = 7, EVENTS = 4000000, THREADS = 2, LIMIT_EVENTS = 512 };

struct record {
	uint64_t head, name, start, length;
};

/* The clock as the ring of `rec` reads it; a call into the library would not be the limit but our cost. */
#if defined(__x86_64__)
#include <x86intrin.h>
static inline uint64_t read_clock(void)
{
	return __rdtsc();
}
#else
static inline uint64_t read_clock(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
#endif

static double limit_ns(int reads)
{
	static _Thread_local struct record buffer[LIMIT_EVENTS];
	int64_t begin = bench_ns();
	for (uint64_t i = 0; i < EVENTS; i++) {
		struct record *record = &buffer[i % LIMIT_EVENTS];
		uint64_t start = reads == 2 ? read_clock() : i;
		uint64_t end = read_clock();
		*record = (struct record){i, 1, start, end - start};
		__asm__ volatile("" : : "r"(record) : "memory");
	}
	return (double)(bench_ns() - begin) / EVENTS;
}

static double span_ns(drec *rec, uint32_t name, uint64_t events)
{
	drec_time start = drec_now(rec);
	int64_t begin = bench_ns();
	for (uint64_t i = 0; i < events; i++)
		drec_span(rec, 0, name, start, 0);
	return (double)(bench_ns() - begin) / (double)events;
}

static double scoped_ns(drec *rec, uint32_t name)
{
	int64_t begin = bench_ns();
	for (uint64_t i = 0; i < EVENTS; i++) {
		drec_scope scope = drec_begin(rec, name);
		drec_end(rec, scope);
	}
	return (double)(bench_ns() - begin) / EVENTS;
}

static void keep_least(double *least, double value)
{
	if (*least == 0 || value < *least)
		*least = value;
}

/* Half of the ring pinned by the oldest order number, as a daemon does. */
static int pin_half(drec *rec)
{
	struct drec_reader_options options = {.writable = 1};
	struct drec_reader *reader;
	struct drec_problem problem;
	struct drec_pin pin = {.active = 0};
	unsigned entry;
	int ret = drec_reader_open(AT_FDCWD, drec_path(rec), &options, &reader, &problem);
	if (ret < 0)
		return ret;
	ret = drec_reader_changed(reader);
	pin.from = drec_reader_state(reader)->evicted + 1;
	if (ret >= 0)
		ret = drec_pin_set(reader, &pin, 1, &entry);
	drec_reader_free(reader);
	return ret;
}

int bench_ring_one(void)
{
	const char *folder = bench_folder_make();
	int64_t begin = bench_ns();
	drec *rec = folder ? bench_ring(folder, "ring", 0) : NULL;
	double opening = (double)(bench_ns() - begin) / 1e6;
	struct stat st;
	int ret = rec ? 0 : -ENOMEM;
	if (!rec)
		goto end;
	uint32_t name = drec_name(rec, "span");
	double limit1 = 0, limit2 = 0, span = 0, scoped = 0, pinned = 0;
	uint64_t lap = drec_ring_bytes(rec) / DREC_EVENT_BASE_BYTES;
	double first_lap = span_ns(rec, name, lap);
	for (int i = 0; i < ROUNDS; i++) {
		keep_least(&limit1, limit_ns(1));
		keep_least(&span, span_ns(rec, name, EVENTS));
		keep_least(&limit2, limit_ns(2));
		keep_least(&scoped, scoped_ns(rec, name));
	}
	ret = pin_half(rec);
	for (int i = 0; ret >= 0 && i < ROUNDS; i++)
		keep_least(&pinned, span_ns(rec, name, EVENTS));
	bench_print(&(struct bench_figure){"span", span, "ns", limit1, 2});
	bench_print(&(struct bench_figure){"span_first_lap", first_lap, "ns", limit1, 2});
	if (ret >= 0)
		bench_print(&(struct bench_figure){"span_half_pinned", pinned, "ns", limit1, 2});
	bench_print(&(struct bench_figure){"span_scoped", scoped, "ns", limit2, 1.5});
	bench_print(&(struct bench_figure){"open", opening, "ms", 0, 0});
	if (stat(drec_path(rec), &st) == 0)
		bench_print(&(struct bench_figure){"ring_file", (double)st.st_size / (1 << 20), "MiB", 0, 0});
	if (drec_lost(rec, 0))
		ret = -EIO;
end:
	drec_close(rec);
	bench_folder_remove(folder);
	return ret < 0 ? ret : 0;
}

struct worker {
	pthread_t thread;
	pthread_barrier_t *barrier;
	drec *rec;
	double limit, span;
};

static void *work(void *context)
{
	struct worker *worker = context;
	uint32_t name = drec_name(worker->rec, "span");
	drec_span(worker->rec, 0, name, 1, 2);
	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(worker->barrier);
		keep_least(&worker->limit, limit_ns(1));
		pthread_barrier_wait(worker->barrier);
		keep_least(&worker->span, span_ns(worker->rec, name, EVENTS));
	}
	return NULL;
}

int bench_ring_many(void)
{
	struct worker worker[THREADS] = {{0}};
	pthread_barrier_t barrier;
	const char *folder = bench_folder_make();
	drec *rec = folder ? bench_ring(folder, "ring", 0) : NULL;
	int started = 0, ret = rec ? 0 : -ENOMEM;
	double span = 0, limit = 0;
	if (!rec)
		goto end;
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (; started < THREADS; started++) {
		worker[started].rec = rec;
		worker[started].barrier = &barrier;
		if (pthread_create(&worker[started].thread, NULL, work, &worker[started]) != 0) {
			fprintf(stderr, "driverec bench: cannot start a thread\n");
			return -EAGAIN;
		}
	}
	for (int i = 0; i < started; i++) {
		pthread_join(worker[i].thread, NULL);
		span += worker[i].span / THREADS;
		limit += worker[i].limit / THREADS;
	}
	pthread_barrier_destroy(&barrier);
	bench_print(&(struct bench_figure){"span_two_threads", span, "ns", limit, 2});
end:
	drec_close(rec);
	bench_folder_remove(folder);
	return ret;
}
