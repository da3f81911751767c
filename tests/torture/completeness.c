/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The completeness oracle: a window that is called complete must hold every event of its time.
 *
 * Writers put events into a small ring and keep a log of their own of everything they tried, what was refused
 * included. At random moments the main thread pins (in time, late, or not at all), waits, and takes a window.
 * Its verdict is held against the logs: "complete" with one event of the window missing, or one loss inside,
 * is a false complete, the one unforgivable fault. The other way round, "incomplete" though all is there, is
 * only counted by reason.
 *
 * Writers differ by round: bursts and pauses, small and large events, events reported late, threads that end
 * and come anew, losses injected, more than half the ring while it is pinned, size limits.
 *
 * usage: completeness [--rounds N] [--seed S]     exit 0, or 1 after a false complete
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <driverec/driverec.h>
#include <driverec/freeze.h>
#include <driverec/reader.h>

#include "support.h"

enum {
	CHUNKS = 64,
	CHUNK_BYTES = 8192,
	RING_BYTES = CHUNKS * CHUNK_BYTES,
	WRITERS_MAX = 5,
	LOG_MAX = 1 << 17,
	NUMBER_BITS = 17,
	ARGS_MAX = 3000,
	REASONS = 10,
	BATCH = 20,
	FILLERS = 2
};

enum { ENTRY_EVENT = 1, ENTRY_LOSS = 2 };

/* One thing that a writer did. `kind` is set before the call, the entry counts once `done` passed it. */
struct entry {
	uint64_t start, end;
	uint8_t kind;
	uint8_t found;
};

struct writer {
	pthread_t thread;
	struct entry *log;
	_Atomic uint64_t done;
	uint64_t begun;
	uint64_t seed;
	uint32_t name;
	unsigned index;
	drec *rec;
};

/* How the writers of a round behave. */
struct manner {
	unsigned writers;
	unsigned args_chance;  /* of 100: events with args */
	unsigned burst;        /* events between two pauses */
	unsigned pause_us;
	uint64_t late_ns;      /* events are reported up to so much after they ended */
	unsigned loss_chance;  /* of 100,000: an injected loss, or an event too large */
	unsigned life;         /* events after which a thread ends and another comes, 0 = never */
};

static struct writer writers[WRITERS_MAX];
static struct manner manner;
static _Atomic int stop;
static const char *folder;

/* splitmix64 of the writer's own, since test_random() is for one thread. */
static uint64_t next_random(struct writer *w)
{
	uint64_t z = w->seed += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* ---- writers ---- */

static void write_loss(struct writer *w, struct entry *entry, uint64_t now)
{
	static const char big[CHUNK_BYTES];
	entry->kind = ENTRY_LOSS;
	entry->start = entry->end = now;
	if (next_random(w) % 2) {
		drec_note_loss(w->rec, DREC_LOSS_SOURCE, 3, now, now);
		return;
	}
	struct drec_event event = {.kind = DREC_SPAN, .flags = DREC_FLAG_ARGS_JSON, .start = now, .args = big,
				   .args_bytes = sizeof(big)};
	drec_write(w->rec, &event);
}

/* The event's number stands in the low bits of its length, so that it is known wherever it turns up. */
static void write_event(struct writer *w, struct entry *entry, uint64_t number, uint64_t now)
{
	static const char args[ARGS_MAX];
	uint64_t late = manner.late_ns ? next_random(w) % manner.late_ns : 0;
	uint64_t dur = (next_random(w) % 16) << NUMBER_BITS | number;
	entry->kind = ENTRY_EVENT;
	entry->end = now - late;
	entry->start = entry->end - dur;
	if (next_random(w) % 100 >= manner.args_chance) {
		drec_span(w->rec, 0, w->name, entry->start, entry->end);
		return;
	}
	struct drec_event event = {
		.kind = DREC_SPAN,
		.flags = DREC_FLAG_ARGS_JSON,
		.depth = DREC_DEPTH_UNKNOWN,
		.name = w->name,
		.start = entry->start,
		.dur_or_value = dur,
		.args = args,
		.args_bytes = (uint32_t)(next_random(w) % ARGS_MAX),
	};
	drec_write(w->rec, &event);
}

static bool log_full(const struct writer *w)
{
	return w->begun == LOG_MAX;
}

/* One thread's life; returns when it is to end, all or for another to come. */
static void *write_some(void *context)
{
	struct writer *w = context;
	for (unsigned n = 1; !log_full(w) && !atomic_load(&stop); n++) {
		struct entry *entry = &w->log[w->begun];
		uint64_t number = w->begun++, now = drec_now(w->rec);
		if (next_random(w) % 100000 < manner.loss_chance)
			write_loss(w, entry, now);
		else
			write_event(w, entry, number, now);
		atomic_store_explicit(&w->done, w->begun, memory_order_release);
		if (n % manner.burst == 0 && manner.pause_us)
			usleep(manner.pause_us);
		if (manner.life && n == manner.life)
			break;
	}
	return NULL;
}

static void *write_all(void *context)
{
	struct writer *w = context;
	while (!log_full(w) && !atomic_load(&stop)) {
		pthread_t life;
		if (!manner.life || pthread_create(&life, NULL, write_some, w) != 0)
			write_some(w);
		else
			pthread_join(life, NULL);
	}
	return NULL;
}

static void choose_manner(void)
{
	static const unsigned bursts[] = {1, 20, 400, 4000}, pauses[] = {0, 100, 1000, 3000};
	manner.writers = 1 + (unsigned)test_random_below(WRITERS_MAX);
	manner.args_chance = (unsigned)test_random_below(3) * 20;
	manner.burst = bursts[test_random_below(4)];
	manner.pause_us = pauses[test_random_below(4)];
	manner.late_ns = test_random_below(3) ? 0 : 1000 + test_random_below(30000000);
	manner.loss_chance = test_random_below(3) ? 0 : 20;
	manner.life = test_random_below(4) ? 0 : 500 + (unsigned)test_random_below(3000);
}

static bool start_writers(drec *rec)
{
	char name[16];
	atomic_store(&stop, 0);
	for (unsigned i = 0; i < manner.writers; i++) {
		struct writer *w = &writers[i];
		snprintf(name, sizeof(name), "w%u", i);
		w->rec = rec;
		w->index = i;
		w->begun = 0;
		w->name = drec_name(rec, name);
		w->seed = test_random();
		atomic_store(&w->done, 0);
		memset(w->log, 0, LOG_MAX * sizeof(*w->log));
		if (pthread_create(&w->thread, NULL, write_all, w) != 0)
			return false;
	}
	return true;
}

static void end_writers(void)
{
	atomic_store(&stop, 1);
	for (unsigned i = 0; i < manner.writers; i++)
		pthread_join(writers[i].thread, NULL);
}

/* ---- holding a window against the logs ---- */

struct check {
	struct drec_reader *file;
	struct drec_window window;
	uint64_t count[WRITERS_MAX]; /* entries that were done when the window was taken */
	uint64_t met;                /* events of the file that meet the window */
	uint64_t missing, lost;      /* entries of the window that are not in the file */
	const char *fault;
};

static bool meets(const struct check *check, uint64_t start, uint64_t end)
{
	return start <= check->window.b_ticks && end >= check->window.a_ticks;
}

static struct writer *writer_of(const struct drec_event *event)
{
	for (unsigned i = 0; i < manner.writers; i++)
		if (event->name && writers[i].name == event->name)
			return &writers[i];
	return NULL;
}

static int see(void *context, const struct drec_event *event, const struct drec_place *place)
{
	struct check *check = context;
	(void)place;
	if (event->kind != DREC_SPAN)
		return 0;
	const struct writer *w = writer_of(event);
	uint64_t number = event->dur_or_value & (((uint64_t)1 << NUMBER_BITS) - 1);
	if (!w)
		check->fault = "an event of nobody";
	else if (w->log[number].kind != ENTRY_EVENT || w->log[number].start != event->start ||
		 w->log[number].end - w->log[number].start != event->dur_or_value)
		check->fault = "an event that was not written so";
	else if (w->log[number].found)
		check->fault = "an event twice";
	else
		w->log[number].found = 1;
	if (meets(check, event->start, event->start + event->dur_or_value))
		check->met++;
	return 0;
}

static void compare(struct check *check)
{
	for (unsigned i = 0; i < manner.writers; i++) {
		for (uint64_t n = 0; n < check->count[i]; n++) {
			const struct entry *entry = &writers[i].log[n];
			if (!meets(check, entry->start, entry->end))
				continue;
			check->lost += entry->kind == ENTRY_LOSS;
			check->missing += entry->kind == ENTRY_EVENT && !entry->found;
		}
	}
}

static int check_file(struct check *check, const char *path)
{
	struct drec_problem problem = {0};
	struct drec_poll_stats stats = {0};
	int ret = drec_window_verify(AT_FDCWD, path, &problem);
	if (ret == 0)
		ret = drec_reader_open(AT_FDCWD, path, NULL, &check->file, &problem);
	if (ret < 0) {
		fprintf(stderr, "%s: %s\n", problem.what, strerror(-ret));
		return ret;
	}
	check->window = *drec_reader_window(check->file);
	do
		ret = drec_reader_poll(check->file, see, check, 0, &stats);
	while (ret == 1);
	if (stats.corrupt_bytes)
		check->fault = "corrupt bytes";
	drec_reader_free(check->file);
	compare(check);
	if (check->met != check->window.events)
		check->fault = "the window's count of events is wrong";
	else if (check->window.complete && check->missing)
		check->fault = "called complete, but events are missing";
	else if (check->window.complete && check->lost)
		check->fault = "called complete, but events were lost inside";
	return ret;
}

/* ---- a round ---- */

enum pinning { PIN_NONE, PIN_SAMPLED, PIN_LATE, PIN_KINDS };

struct totals {
	unsigned long windows, complete, spared[PIN_KINDS][REASONS], right[PIN_KINDS][REASONS];
};

static struct totals *totals; /* shared with the children that run the rounds */

static uint64_t written(void)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < manner.writers; i++)
		sum += atomic_load_explicit(&writers[i].done, memory_order_acquire);
	return sum;
}

/* Until about so many more events are written, or 30 ms passed. */
static void let_write(uint64_t events)
{
	uint64_t from = written();
	for (int i = 0; i < 100 && written() - from < events; i++)
		usleep(300);
}

/* How many events about fill a quarter of the ring. */
static uint64_t quarter(void)
{
	uint64_t mean = 32 + manner.args_chance * (ARGS_MAX / 2) / 100;
	return RING_BYTES / 4 / mean;
}

struct taking {
	struct drec_reader *ring;
	drec *rec;
	enum pinning pinning;
	unsigned entry, filler[FILLERS];
	uint64_t a, t0, from;
	bool pinned, filled;
};

static int set_pin(struct taking *t)
{
	int ret = 0;
	if (t->pinning == PIN_LATE)
		ret = drec_pin_from(t->ring, t->a, &t->from);
	struct drec_pin pin = {.from = t->from};
	if (ret == 0)
		ret = drec_pin_set(t->ring, &pin, 1, &t->entry);
	t->pinned = ret >= 0;
	/* At times others' pins keep the rest, so that the writers find no chunk and lose what they write. */
	for (int i = test_random_below(4) ? FILLERS : 0; ret >= 0 && i < FILLERS; i++) {
		pin.from += CHUNKS / 2;
		ret = drec_pin_set(t->ring, &pin, 1, &t->filler[i]);
		t->filled = ret >= 0;
	}
	return ret < 0 ? ret : 0;
}

static int snapshot(struct taking *t, struct check *check, const char *path)
{
	struct drec_snapshot_result result;
	uint64_t now = drec_now(t->rec);
	/* Mostly up to now; sometimes up to a time that is long past, or has not come. */
	uint64_t b = t->a + (test_random_below(4) ? now - t->a : test_random_below(2 * (now - t->a) + 1));
	struct drec_snapshot_request request = {
		.mono_to_unix_ns = drec_reader_mono_to_unix_ns(t->ring),
		.t0_ns = drec_reader_unix_ns(t->ring, t->t0),
		.a_ns = drec_reader_unix_ns(t->ring, t->a),
		.b_ns = drec_reader_unix_ns(t->ring, b),
		.from = t->pinned ? t->from : 0,
		.bytes_max = test_random_below(8) ? 0 : RING_BYTES / 8,
	};
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	for (unsigned i = 0; i < manner.writers; i++)
		check->count[i] = atomic_load_explicit(&writers[i].done, memory_order_acquire);
	int ret = drec_snapshot_write(t->ring, fd, &request, &result);
	close(fd);
	return ret;
}

static void tally(const struct check *check, enum pinning pinning)
{
	unsigned reason = check->window.reason < REASONS ? check->window.reason : 0;
	totals->windows++;
	totals->complete += check->window.complete;
	if (check->missing || check->lost)
		totals->right[pinning][reason]++;
	else
		totals->spared[pinning][reason]++;
}

/* One window of a running ring, from the sample of the tail to the comparison. */
static int take_window(drec *rec, struct drec_reader *ring, const char *path)
{
	struct taking t = {.ring = ring, .rec = rec, .pinning = (enum pinning)test_random_below(PIN_KINDS)};
	struct check check = {.file = NULL};
	int ret = drec_reader_changed(ring);
	if (ret < 0)
		return ret;
	t.from = drec_reader_state(ring)->tail;
	t.a = drec_now(rec) + 1;
	let_write(test_random_below(quarter() * 3));
	t.t0 = drec_now(rec);
	ret = t.pinning == PIN_NONE ? 0 : set_pin(&t);
	if (ret < 0)
		return ret;
	let_write(test_random_below(quarter() * 5));
	ret = snapshot(&t, &check, path);
	if (t.pinned)
		drec_pin_release(ring, t.entry);
	for (int i = 0; t.filled && i < FILLERS; i++)
		drec_pin_release(ring, t.filler[i]);
	/* What was under way when the window was taken may be in it: the logs are read when all stand still. */
	end_writers();
	if (ret == 0)
		ret = check_file(&check, path);
	if (check.fault) {
		fprintf(stderr, "pinning %d, %u writers, late %llu ns, life %u: %s (%llu missing, %llu lost), reason %u\n",
			(int)t.pinning, manner.writers, (unsigned long long)manner.late_ns, manner.life, check.fault,
			(unsigned long long)check.missing, (unsigned long long)check.lost, check.window.reason);
		return -EBADMSG;
	}
	if (ret == 0)
		tally(&check, t.pinning);
	return ret;
}

static int one_round(unsigned long number)
{
	struct drec_options options = {.run_dir = folder, .job = "complete", .name = "ring", .ring_bytes = RING_BYTES,
				       .chunk_bytes = CHUNK_BYTES, .no_exit_mark = 1, .clock = DREC_CLOCK_MONO};
	struct drec_reader_options writable = {.writable = 1};
	struct drec_problem problem = {0};
	struct drec_reader *ring = NULL;
	drec *rec = drec_open(&options);
	if (!rec) {
		perror("drec_open");
		return -1;
	}
	choose_manner();
	int ret = drec_reader_open(AT_FDCWD, drec_path(rec), &writable, &ring, &problem);
	if (ret == 0 && !start_writers(rec))
		ret = -EAGAIN;
	if (ret == 0) {
		let_write(test_random_below(quarter() * 6));
		ret = take_window(rec, ring, test_path(folder, "window.drec"));
	}
	drec_reader_free(ring);
	drec_close(rec);
	unlink(drec_path(rec));
	if (ret < 0)
		fprintf(stderr, "round %lu: %s\n", number, strerror(-ret));
	return ret;
}

static void report(void)
{
	static const char *const pinnings[PIN_KINDS] = {"no pin", "pin in time", "late pin"};
	static const char *const reasons[REASONS] = {"complete", "overwritten", "lost", "corrupt", "late start",
						     "early", "beyond half", "truncated", "clock", "unsealed"};
	printf("%lu windows, %lu complete, none falsely\n", totals->windows, totals->complete);
	for (unsigned p = 0; p < PIN_KINDS; p++)
		for (unsigned r = 0; r < REASONS; r++)
			if (totals->spared[p][r] || totals->right[p][r])
				printf("  %-12s %-12s all there %lu, something missing %lu\n", pinnings[p], reasons[r],
				       totals->spared[p][r], totals->right[p][r]);
}

/* Rounds run in children, a few each: a recorder is never unmapped. Each has a seed that can be given alone. */
static int run_batch(unsigned long rounds, uint64_t seed)
{
	char text[24];
	int status = 0;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)seed);
	setenv("TEST_SEED", text, 1);
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		int ret = 0;
		for (unsigned long n = 0; n < rounds && ret == 0; n++)
			ret = one_round(n);
		_exit(ret < 0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
		fprintf(stderr, "failed with --seed %s --rounds %lu\n", text, rounds);
		return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"rounds", required_argument, NULL, 'r'}, {"seed", required_argument, NULL, 's'}, {0}};
	unsigned long rounds = 60;
	uint64_t seed = (uint64_t)time(NULL) << 20;
	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (option == 'r')
			rounds = strtoul(optarg, NULL, 10);
		else if (option == 's')
			seed = strtoull(optarg, NULL, 10);
		else
			return 2;
	}
	folder = test_shm_folder();
	totals = mmap(NULL, sizeof(*totals), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	size_t log_bytes = LOG_MAX * sizeof(struct entry);
	uint8_t *logs = mmap(NULL, WRITERS_MAX * log_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (totals == MAP_FAILED || logs == MAP_FAILED)
		return 1;
	for (unsigned i = 0; i < WRITERS_MAX; i++)
		writers[i].log = (struct entry *)(logs + i * log_bytes);
	int ret = 0;
	for (unsigned long n = 0; n < rounds && ret == 0; n += BATCH)
		ret = run_batch(rounds - n < BATCH ? rounds - n : BATCH, seed + n);
	if (ret < 0)
		return 1;
	report();
	return totals->complete == 0;
}
