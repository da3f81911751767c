/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIGKILL at random moments of a process whose eight threads record as fast as they can; then its ring is read
 * as that of a dead process and held against what the threads said in shared memory before and after each call.
 *
 * A thread's n-th event carries the number n, but for every fourth: that is the end of a scope begun two events
 * before. So numbers, places in the slot's life and open spans all follow from one count.
 *
 * Every other round the parent also pins the ring at a random moment: what was closed from then on must stay, up
 * to half the ring.
 *
 * usage: kill_ring [--rounds N] [--seed S]
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <driverec/driverec.h>
#include <driverec/freeze.h>
#include <driverec/reader.h>

#include "support.h"

enum {
	THREADS = 8,
	CHUNKS = 64,
	CHUNK_BYTES = 8192,
	ARGS_MAX = 600,
	SCOPE_EVERY = 4, /* events 3, 7, 11 … are ends of scopes, begun before events 1, 5, 9 … */
	READY_MS = 5000,
	SPANS_MAX = 64
};

/* What one thread says; written by it alone. */
struct witness {
	_Alignas(64) _Atomic uint64_t begun; /* events whose call has begun */
	_Atomic uint64_t done;               /* … has returned */
	_Atomic uint64_t entered;            /* scopes whose begin has returned */
	_Atomic uint32_t tid;
};

struct shared {
	struct witness thread[THREADS];
	_Atomic int running;
	char path[640];
};

static struct shared *shared;
static const char *folder;
static drec *rec;

/* ---- the child ---- */

static void write_number(uint64_t number)
{
	static const char args[ARGS_MAX];
	struct drec_event event = {
		.kind = DREC_SPAN,
		.flags = DREC_FLAG_ID | DREC_FLAG_ARGS_XSTAT,
		.depth = DREC_DEPTH_UNKNOWN,
		.start = 1000 * number,
		.dur_or_value = number,
		.id = number,
		.args = args,
		.args_bytes = (uint32_t)(number * 37 % ARGS_MAX),
	};
	drec_write(rec, &event);
}

static void *record(void *context)
{
	struct witness *w = context;
	uint32_t name = drec_name(rec, "scope");
	drec_scope scope = 0;
	drec_thread_track(rec);
	atomic_store(&w->tid, (uint32_t)gettid());
	atomic_fetch_add(&shared->running, 1);
	for (uint64_t n = 0;; n++) {
		if (n % SCOPE_EVERY == 1) {
			scope = drec_begin(rec, name);
			atomic_store(&w->entered, n / SCOPE_EVERY + 1);
		}
		atomic_store(&w->begun, n + 1);
		if (n % SCOPE_EVERY == SCOPE_EVERY - 1)
			drec_end(rec, scope);
		else
			write_number(n);
		atomic_store(&w->done, n + 1);
	}
	return NULL;
}

static void child_main(void)
{
	struct drec_options options = {.run_dir = folder, .job = "kill", .name = "ring",
				       .ring_bytes = CHUNKS * CHUNK_BYTES, .chunk_bytes = CHUNK_BYTES};
	pthread_t thread;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rec = drec_open(&options);
	if (!rec)
		_exit(1);
	snprintf(shared->path, sizeof(shared->path), "%s", drec_path(rec));
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread, NULL, record, &shared->thread[i]) != 0)
			_exit(1);
	for (;;)
		pause();
}

/* ---- what is there afterwards ---- */

struct seen {
	uint64_t first, next; /* visible events: from first up to before next */
	uint64_t missing;     /* events before and between the visible ones */
	uint64_t gaps;
	uint64_t after_pin;   /* how many of the events since the pin follow each other */
	uint32_t slot;
	bool any;
};

struct check {
	struct seen thread[THREADS];
	uint64_t from;                /* the pin's, 0 = none */
	uint64_t since[THREADS];      /* events of this number and later came after the pin's sample */
	uint64_t evicted_at_pin;
	bool between[THREADS];        /* between two chunks when it was killed */
	char fault[200];
};

static void complain(struct check *check, int thread, const char *what)
{
	const struct witness *w = &shared->thread[thread];
	const struct seen *seen = &check->thread[thread];
	if (!check->fault[0])
		snprintf(check->fault, sizeof(check->fault),
			 "thread %d: %s; begun %llu, done %llu, visible %llu .. %llu, %llu gaps", thread, what,
			 (unsigned long long)w->begun, (unsigned long long)w->done, (unsigned long long)seen->first,
			 (unsigned long long)seen->next, (unsigned long long)seen->gaps);
}

static int thread_of(uint32_t tid)
{
	for (int i = 0; i < THREADS; i++)
		if (shared->thread[i].tid == tid)
			return i;
	return -1;
}

static int see(void *context, const struct drec_event *event, const struct drec_place *place)
{
	struct check *check = context;
	int i = thread_of(place->tid);
	if (i < 0)
		return -ESRCH;
	struct seen *seen = &check->thread[i];
	bool scope = place->index % SCOPE_EVERY == SCOPE_EVERY - 1;
	if (event->kind != DREC_SPAN || (scope ? event->depth != 0 : event->id != place->index ||
									  event->start != 1000 * event->id))
		complain(check, i, "not the event that belongs here");
	if (!seen->any)
		seen->first = place->index;
	else if (place->index != seen->next)
		seen->gaps++;
	seen->missing += place->index - seen->next;
	if (check->from && place->index == check->since[i] + seen->after_pin)
		seen->after_pin++;
	seen->any = true;
	seen->slot = place->slot;
	seen->next = place->index + 1;
	return 0;
}

/* Whether the thread was inside a chunk of its own, which nobody may take. */
static bool holds_chunk(struct drec_reader *ring, int thread)
{
	const struct drec_section *slots = drec_reader_section(ring, DREC_SEC_SLOTS);
	const struct drec_section *chunks = drec_reader_section(ring, DREC_SEC_CHUNKS);
	struct drec_slot slot;
	struct drec_chunk chunk;
	for (uint32_t i = 0; i < drec_reader_header(ring)->n_slots; i++) {
		if (pread(drec_reader_fd(ring), &slot, sizeof(slot), (off_t)(slots->offset + i * sizeof(slot))) !=
		    sizeof(slot))
			return true;
		if (slot.tid != shared->thread[thread].tid)
			continue;
		if (slot.chunk >= CHUNKS)
			return false;
		off_t at = (off_t)(chunks->offset + slot.chunk * sizeof(chunk));
		return pread(drec_reader_fd(ring), &chunk, sizeof(chunk), at) != sizeof(chunk) ||
		       (uint32_t)chunk.commit > 0;
	}
	return false;
}

/*
 * A thread that was stopped between two chunks may have lost all of its old ones to the others, and a chunk that
 * was claimed but not yet void outlives those closed after it. Anything else must be an unbroken run.
 */
static void check_threads(struct check *check, struct drec_reader *ring, uint64_t overwritten, uint64_t claimed)
{
	const struct drec_state *state = drec_reader_state(ring);
	bool half_passed = check->from && state->tail >= check->from + CHUNKS / 2;
	uint64_t missing = 0, gaps = 0;
	for (int i = 0; i < THREADS; i++) {
		const struct seen *seen = &check->thread[i];
		const struct witness *w = &shared->thread[i];
		missing += seen->missing;
		gaps += seen->gaps;
		if (seen->missing && !state->evicted)
			complain(check, i, "events are gone though nothing was overwritten");
		check->between[i] = state->evicted && !holds_chunk(ring, i);
		if (check->between[i])
			continue;
		if (seen->next != w->done && seen->next != w->begun)
			complain(check, i, "a committed event is not there, or one is that was not begun");
		if (check->from && !half_passed && check->evicted_at_pin < check->from &&
		    seen->next > check->since[i] && seen->after_pin != seen->next - check->since[i])
			complain(check, i, "an event since the pin is not there");
	}
	if (gaps > claimed && !half_passed)
		complain(check, 0, "a gap");
	if (overwritten != missing)
		complain(check, 0, "overwritten events are not counted exactly");
}

/* A scope that was entered is open, unless its end is committed. */
static void check_scopes(struct check *check, struct drec_reader *ring)
{
	struct drec_open_info spans[SPANS_MAX];
	int count = drec_reader_open_spans(ring, spans, SPANS_MAX);
	unsigned open[THREADS] = {0};
	for (int k = 0; k < count; k++) {
		int i = thread_of(spans[k].tid);
		if (i < 0 || spans[k].moving || spans[k].depth != 0)
			complain(check, 0, "an open span that cannot be");
		else
			open[i]++;
	}
	for (int i = 0; i < THREADS; i++) {
		uint64_t ended = check->thread[i].next / SCOPE_EVERY, entered = shared->thread[i].entered;
		if (check->between[i])
			continue;
		if (entered > ended && open[i] != 1)
			complain(check, i, "a scope that was entered is neither open nor committed");
		if (open[i] > 1 || (open[i] && check->thread[i].next % SCOPE_EVERY == 0))
			complain(check, i, "a scope is open that was not begun");
	}
}

/* Every order number of the pinned range is on a chunk; one a thread may just have been drawn. */
static void check_orders(struct check *check, const struct drec_state *state, const uint64_t *words)
{
	uint64_t end = check->from + CHUNKS / 2, there = 0;
	if (!check->from || check->evicted_at_pin >= check->from)
		return;
	if (state->tail < end)
		end = state->tail;
	for (int i = 0; i < CHUNKS; i++)
		there += DREC_ORDER_STATE(words[i]) != DREC_CHUNK_OPEN && DREC_ORDER_NUMBER(words[i]) >= check->from &&
			 DREC_ORDER_NUMBER(words[i]) < end;
	if (end > check->from && there + THREADS < end - check->from)
		complain(check, 0, "pinned chunks were overwritten");
}

static uint64_t read_words(struct check *check, struct drec_reader *ring, uint64_t words[CHUNKS])
{
	const struct drec_section *section = drec_reader_section(ring, DREC_SEC_ORDER);
	uint64_t claimed = 0;
	if (pread(drec_reader_fd(ring), words, CHUNKS * 8, (off_t)section->offset) != CHUNKS * 8)
		complain(check, 0, "the order words cannot be read");
	for (int i = 0; i < CHUNKS; i++)
		claimed += DREC_ORDER_STATE(words[i]) == DREC_CHUNK_TAKING;
	return claimed;
}

static int check_dead(struct check *check)
{
	struct drec_reader *ring = NULL;
	struct drec_problem problem = {0};
	struct drec_poll_stats stats = {0};
	uint64_t words[CHUNKS] = {0};
	int ret = drec_reader_open(AT_FDCWD, shared->path, NULL, &ring, &problem);
	if (ret < 0) {
		snprintf(check->fault, sizeof(check->fault), "%s", problem.what);
		return ret;
	}
	if (drec_reader_alive(ring) != 0)
		complain(check, 0, "a dead producer counts as alive");
	do
		ret = drec_reader_poll(ring, see, check, 0, &stats);
	while (ret == 1);
	if (ret < 0 || stats.corrupt_bytes || stats.lost || stats.retried)
		complain(check, 0, "unreadable, corrupt or lost events");
	uint64_t claimed = read_words(check, ring, words);
	check_threads(check, ring, stats.overwritten, claimed);
	check_scopes(check, ring);
	check_orders(check, drec_reader_state(ring), words);
	drec_reader_free(ring);
	return check->fault[0] ? -EBADMSG : 0;
}

/* ---- a round ---- */

static int pin_now(struct check *check)
{
	struct drec_reader_options writable = {.writable = 1};
	struct drec_problem problem;
	struct drec_reader *ring = NULL;
	unsigned entry;
	int ret = drec_reader_open(AT_FDCWD, shared->path, &writable, &ring, &problem);
	if (ret == 0)
		ret = drec_reader_changed(ring);
	if (ret >= 0) {
		check->from = drec_reader_state(ring)->tail;
		for (int i = 0; i < THREADS; i++)
			check->since[i] = shared->thread[i].begun;
		struct drec_pin pin = {.from = check->from};
		ret = drec_pin_set(ring, &pin, 1, &entry);
	}
	if (ret >= 0)
		ret = drec_reader_changed(ring);
	if (ret >= 0)
		check->evicted_at_pin = drec_reader_state(ring)->evicted;
	drec_reader_free(ring);
	return ret < 0 ? ret : 0;
}

static bool all_running(void *context)
{
	(void)context;
	return shared->running == THREADS;
}

static int one_round(unsigned long number)
{
	struct check check = {.from = 0};
	memset(shared, 0, sizeof(*shared));
	pid_t child = fork();
	if (child == 0)
		child_main();
	int ret = child < 0 || !test_wait(all_running, NULL, READY_MS) ? -EAGAIN : 0;
	if (ret == 0)
		usleep((useconds_t)test_random_below(12000));
	if (ret == 0 && test_random_below(2)) {
		ret = pin_now(&check);
		usleep((useconds_t)test_random_below(3000));
	}
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	if (ret == 0)
		ret = check_dead(&check);
	unlink(shared->path);
	if (ret < 0)
		fprintf(stderr, "round %lu: %s (%s)\n", number, check.fault, strerror(-ret));
	return ret;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"rounds", required_argument, NULL, 'r'}, {"seed", required_argument, NULL, 's'}, {0}};
	unsigned long rounds = 200;
	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (option == 'r')
			rounds = strtoul(optarg, NULL, 10);
		else if (option == 's')
			setenv("TEST_SEED", optarg, 1);
		else
			return 2;
	}
	folder = test_shm_folder();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	for (unsigned long n = 0; n < rounds; n++)
		if (one_round(n) < 0)
			return 1;
	printf("%lu kills, each ring whole\n", rounds);
	return 0;
}
