/* SPDX-License-Identifier: Apache-2.0 */
#include "demo_job.h"

#include <driverec/driverec.h>

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RING_BYTES = 4 << 20, PARTS = 5 };

/* What was called, between which two readings of the clock it began and ended. */
struct written {
	const char *kind, *name;
	drec_time begin[2], end[2];
};

struct thread_record {
	struct written *list;
	size_t count, room;
	bool failed;
};

struct shared {
	const struct demo_job *job;
	drec *rec;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned wanted, loaded; /* batches asked for, and there */
	bool over;
	struct thread_record main, loader;
};

static struct written *add(struct thread_record *record)
{
	if (record->count == record->room) {
		size_t room = record->room ? record->room * 2 : 1024;
		struct written *grown = realloc(record->list, room * sizeof(*grown));
		if (!grown) {
			static struct written nowhere;
			record->failed = true;
			return &nowhere;
		}
		record->list = grown;
		record->room = room;
	}
	struct written *written = &record->list[record->count++];
	memset(written, 0, sizeof(*written));
	return written;
}

static void sleep_ns(int64_t ns)
{
	struct timespec pause = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
	while (nanosleep(&pause, &pause) < 0 && errno == EINTR)
		;
}

/* An event that is there as soon as it is called. */
static struct written *note_moment(struct thread_record *record, const char *kind, const char *name,
				   const drec_time at[2])
{
	struct written *written = add(record);
	*written = (struct written){.kind = kind, .name = name, .begin = {at[0], at[1]}, .end = {at[0], at[1]}};
	return written;
}

static void note_span(struct thread_record *record, const char *kind, const char *name, const drec_time begin[2],
		      const drec_time end[2])
{
	struct written *written = add(record);
	*written = (struct written){.kind = kind, .name = name, .begin = {begin[0], begin[1]},
				    .end = {end[0], end[1]}};
}

/* A scoped span around a wait, the call's two ends between readings of the clock. */
static void part(struct shared *shared, const char *name, int64_t ns)
{
	drec *rec = shared->rec;
	uint32_t id = drec_name(rec, name);
	drec_time begin[2], end[2];
	begin[0] = drec_now(rec);
	drec_scope scope = drec_begin(rec, id);
	begin[1] = drec_now(rec);
	sleep_ns(ns);
	end[0] = drec_now(rec);
	drec_end(rec, scope);
	end[1] = drec_now(rec);
	note_span(&shared->main, "span", name, begin, end);
}

static void wait_for_batch(struct shared *shared)
{
	pthread_mutex_lock(&shared->lock);
	unsigned number = ++shared->wanted;
	pthread_cond_broadcast(&shared->changed);
	while (shared->loaded < number)
		pthread_cond_wait(&shared->changed, &shared->lock);
	pthread_mutex_unlock(&shared->lock);
}

static void load(struct shared *shared)
{
	drec *rec = shared->rec;
	uint32_t id = drec_name(rec, DEMO_STALL_SPAN);
	drec_time begin[2], end[2];
	begin[0] = drec_now(rec);
	drec_scope scope = drec_begin(rec, id);
	begin[1] = drec_now(rec);
	wait_for_batch(shared);
	end[0] = drec_now(rec);
	drec_end(rec, scope);
	end[1] = drec_now(rec);
	note_span(&shared->main, "span", DEMO_STALL_SPAN, begin, end);
}

static void count(struct shared *shared, struct thread_record *record, const char *name, double value)
{
	drec_time at[2];
	uint32_t id = drec_name(shared->rec, name);
	at[0] = drec_now(shared->rec);
	drec_counter(shared->rec, 0, id, value);
	at[1] = drec_now(shared->rec);
	note_moment(record, "counter", name, at);
}

static void step(struct shared *shared, unsigned number)
{
	static const struct {
		const char *name;
		int percent;
	} parts[PARTS - 1] = {{"forward", 25}, {"backward", 35}, {"all_reduce", 12}, {"optimizer", 8}};
	const struct demo_job *job = shared->job;
	drec *rec = shared->rec;
	drec_time begin[2], end[2];
	uint32_t phase = drec_name(rec, "train");
	begin[0] = drec_now(rec);
	drec_step_begin(rec, number, phase);
	begin[1] = drec_now(rec);
	note_moment(&shared->main, "step_begin", "train", begin);
	load(shared);
	for (int i = 0; i < PARTS - 1; i++) {
		int64_t ns = job->step_ns / 100 * parts[i].percent;
		if (number == job->spike_at && strcmp(parts[i].name, "all_reduce") == 0)
			ns += 7 * job->step_ns;
		part(shared, parts[i].name, ns);
	}
	count(shared, &shared->main, "loss", 2.0 / (1 + number));
	end[0] = drec_now(rec);
	drec_step_end(rec);
	end[1] = drec_now(rec);
	note_span(&shared->main, "step_end", "train", begin, end);
}

/* Reads a batch ahead of each step; once it hangs on the way, as a disk does. */
static void *loader_main(void *context)
{
	struct shared *shared = context;
	const struct demo_job *job = shared->job;
	drec *rec = shared->rec;
	uint32_t id = drec_name(rec, "read_batch");
	pthread_setname_np(pthread_self(), "loader");
	for (unsigned number = 0;; number++) {
		pthread_mutex_lock(&shared->lock);
		while (shared->wanted <= number && !shared->over)
			pthread_cond_wait(&shared->changed, &shared->lock);
		bool over = shared->over;
		pthread_mutex_unlock(&shared->lock);
		if (over)
			return NULL;
		drec_time begin[2], end[2];
		begin[0] = drec_now(rec);
		drec_scope scope = drec_begin(rec, id);
		begin[1] = drec_now(rec);
		sleep_ns(number == job->stall_at ? job->stall_ns : job->step_ns / 5);
		end[0] = drec_now(rec);
		drec_end(rec, scope);
		end[1] = drec_now(rec);
		note_span(&shared->loader, "span", "read_batch", begin, end);
		count(shared, &shared->loader, "batches", number + 1.0);
		pthread_mutex_lock(&shared->lock);
		shared->loaded++;
		pthread_cond_broadcast(&shared->changed);
		pthread_mutex_unlock(&shared->lock);
	}
}

static void print_record(FILE *out, const struct thread_record *record)
{
	for (size_t i = 0; i < record->count; i++) {
		const struct written *written = &record->list[i];
		fprintf(out, "%s %s %llu %llu %llu %llu\n", written->kind, written->name,
			(unsigned long long)written->begin[0], (unsigned long long)written->begin[1],
			(unsigned long long)written->end[0], (unsigned long long)written->end[1]);
	}
}

static int save(const struct shared *shared)
{
	FILE *out = fopen(shared->job->record_path, "we");
	if (!out)
		return -errno;
	print_record(out, &shared->main);
	print_record(out, &shared->loader);
	if (ferror(out) | fclose(out))
		return -EIO;
	return shared->main.failed || shared->loader.failed ? -ENOMEM : 0;
}

int demo_job_run(const struct demo_job *job)
{
	struct shared shared = {.job = job, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
	const int rank = 0;
	const struct drec_options options = {.run_dir = job->run_dir, .job = DEMO_JOB_NAME, .rank = &rank,
					     .ring_bytes = RING_BYTES};
	const char *why;
	pthread_t loader;
	int result = drec_open_strict(&options, &shared.rec, &why);
	if (result < 0)
		return result;
	result = -pthread_create(&loader, NULL, loader_main, &shared);
	if (result < 0) {
		drec_close(shared.rec);
		return result;
	}
	for (unsigned number = 0; number < job->steps; number++)
		step(&shared, number);
	pthread_mutex_lock(&shared.lock);
	shared.over = true;
	pthread_cond_broadcast(&shared.changed);
	pthread_mutex_unlock(&shared.lock);
	pthread_join(loader, NULL);
	drec_close(shared.rec);
	result = save(&shared);
	free(shared.main.list);
	free(shared.loader.list);
	return result;
}
