/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a ring as dead after every single instruction of its producer.
 *
 * A child runs one scenario of API calls and says in a shared page, before and after each call, what it
 * begins and what is done. The parent single-steps the child's thread (ptrace) and after each instruction
 * opens the ring with the ordinary reader, as if the child had died there: every call that has returned must
 * show its event, and no event may show that was not begun; every span that is begun must be committed or
 * open; the visible events are one unbroken run of numbers, the overwritten ones counted exactly.
 *
 * Random kills almost never hit the gaps of a few instructions in a takeover; this visits all of them.
 *
 * usage: step_ring SCENARIO     exit 0, 1 a broken promise, 77 where ptrace is not allowed
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <driverec/driverec.h>
#include <driverec/freeze.h>
#include <driverec/reader.h>

#include "support.h"

enum {
	CHUNKS = 64,
	CHUNK_BYTES = 8192,
	RING_BYTES = CHUNKS * CHUNK_BYTES,
	/* Large args, so that a takeover comes every few events. */
	ARGS_BYTES = 2600,
	EVENTS_A_CHUNK = 4, /* three large ones and, of four numbers, one plain span */
	OPEN_MAX_SEEN = 64,
	PIN_STRIDE = 97,
	/* Numbers in the pinned half, less the chunk that may have been claimed just before. */
	PINNED_LEAST = (CHUNKS / 2 - 2) * EVENTS_A_CHUNK,
	NUMBERS_MAX = 4096,
	STEPS_MAX = 3000000
};

extern void (*drec_point_hook)(const char *name);

/* What the child says. Written by its traced thread alone; `parked` by the second one. */
struct witness {
	volatile uint64_t begun;      /* number of the last event or scope whose call has begun */
	volatile uint64_t done;       /* … has returned */
	volatile uint64_t scope_begun, scope_entered, scope_ending, scope_left;
	volatile int stepping;        /* the child is inside the region to step through */
	volatile int inside;          /* … and inside a call: instructions between calls change nothing */
	volatile int parked;
	volatile int release;
	char path[640];
	char park_at[32];
	volatile uint64_t second_done; /* events of the second thread that are committed */
};

static struct witness *w;
static const char *folder;

static void stop_here(int begin)
{
	w->stepping = begin;
	raise(SIGSTOP);
}

/* ---- scenarios, in the child ---- */

static drec *open_ring(void)
{
	struct drec_options options = {.run_dir = folder, .job = "step", .name = "ring", .ring_bytes = RING_BYTES,
				       .chunk_bytes = CHUNK_BYTES, .dict_ids = 4096, .dict_bytes = 128 << 10,
				       .no_exit_mark = 1};
	const char *why = "";
	drec *rec = NULL;
	int ret = drec_open_strict(&options, &rec, &why);
	if (ret < 0) {
		fprintf(stderr, "open: %s: %s\n", why, strerror(-ret));
		_exit(1);
	}
	snprintf(w->path, sizeof(w->path), "%s", drec_path(rec));
	return rec;
}

/* Event `number` carries its number and a piece of a pattern that says which it is, to see torn bytes. */
static uint8_t pattern[ARGS_BYTES + NUMBERS_MAX];

static void make_pattern(void)
{
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)((i * 2654435761u) >> 13);
}

static const uint8_t *args_of(uint64_t number)
{
	return pattern + number % NUMBERS_MAX;
}

static void write_number(drec *rec, uint64_t number, bool large)
{
	struct drec_event event = {
		.kind = DREC_SPAN,
		.flags = DREC_FLAG_ID,
		.depth = DREC_DEPTH_UNKNOWN,
		.start = 1000 * number,
		.dur_or_value = number,
		.id = number,
	};
	if (large) {
		event.flags |= DREC_FLAG_ARGS_XSTAT;
		event.args = args_of(number);
		event.args_bytes = ARGS_BYTES;
	}
	w->begun = number;
	w->inside = 1;
	drec_write(rec, &event);
	w->done = number;
	w->inside = 0;
}

/* A plain span through drec_span(): its number is in start. */
static void span_number(drec *rec, uint64_t number)
{
	w->begun = number;
	w->inside = 1;
	drec_span(rec, 0, 0, 1000 * number, 1000 * number + number);
	w->done = number;
	w->inside = 0;
}

static void mixed(drec *rec, uint64_t from, uint64_t count)
{
	for (uint64_t n = from; n < from + count; n++)
		if (n % 4 == 0)
			span_number(rec, n);
		else
			write_number(rec, n, true);
}

static void run_append(void)
{
	drec *rec = open_ring();
	mixed(rec, 1, CHUNKS * EVENTS_A_CHUNK + 40);
	stop_here(1);
	mixed(rec, w->done + 1, 12);
	stop_here(0);
}

static void run_short(void)
{
	drec *rec = open_ring();
	mixed(rec, 1, CHUNKS * EVENTS_A_CHUNK + 40);
	stop_here(1);
	mixed(rec, w->done + 1, 5);
	stop_here(0);
}

static void run_scope(void)
{
	drec *rec = open_ring();
	uint32_t name = drec_name(rec, "scope");
	/* Fill chunks up to a few bytes, so that some of the ends need a takeover. */
	mixed(rec, 1, CHUNKS * EVENTS_A_CHUNK + 40);
	stop_here(1);
	for (uint64_t n = 1; n <= 6; n++) {
		w->scope_begun = n;
		w->inside = 1;
		drec_scope scope = drec_begin(rec, name);
		w->scope_entered = n;
		drec_scope inner = drec_begin(rec, name);
		drec_end(rec, inner);
		if (n % 3 == 0)
			write_number(rec, w->done + 1, true);
		w->inside = 1;
		w->scope_ending = n;
		drec_end(rec, scope);
		w->scope_left = n;
		w->inside = 0;
	}
	stop_here(0);
}

static void run_intern(void)
{
	char text[32];
	drec *rec = open_ring();
	stop_here(1);
	for (int i = 0; i < 40; i++) {
		snprintf(text, sizeof(text), "name %d", i / 2);
		w->inside = 1;
		uint32_t name = drec_name(rec, text);
		w->begun++;
		drec_span(rec, 0, name, 1000 * w->begun, 1000 * w->begun + w->begun);
		w->done = w->begun;
		w->inside = 0;
	}
	stop_here(0);
}

static void run_register(void)
{
	drec *rec = open_ring();
	stop_here(1);
	span_number(rec, 1);
	write_number(rec, 2, true);
	stop_here(0);
}

static void run_close(void)
{
	drec *rec = open_ring();
	mixed(rec, 1, 10);
	stop_here(1);
	w->inside = 1;
	drec_close(rec);
	drec_span(rec, 0, 0, 11000, 11011);
	w->inside = 0;
	stop_here(0);
}

static void run_create(void)
{
	stop_here(1);
	w->inside = 1;
	open_ring();
	w->inside = 0;
	stop_here(0);
}

static void *second_thread(void *context)
{
	drec *rec = context;
	uint32_t name = drec_name(rec, "second");
	while (!w->release) {
		drec_scope scope = drec_begin(rec, name);
		drec_end(rec, scope);
		struct drec_event event = {.kind = DREC_INSTANT, .flags = DREC_FLAG_ARGS_XSTAT, .name = name,
					   .args = pattern, .args_bytes = ARGS_BYTES};
		drec_write(rec, &event);
		w->second_done++;
	}
	return NULL;
}

static _Thread_local bool may_park;

static void park(const char *point)
{
	if (!may_park || w->parked || strcmp(point, w->park_at) != 0)
		return;
	w->parked = 1;
	while (!w->release)
		usleep(1000);
}

static void *parking_thread(void *context)
{
	may_park = true;
	/* The slot points are passed at the first call, before any loop. */
	return second_thread(context);
}

static void run_parked(void)
{
	drec *rec = open_ring();
	pthread_t thread;
	drec_point_hook = park;
	mixed(rec, 1, CHUNKS * EVENTS_A_CHUNK + 40);
	if (pthread_create(&thread, NULL, parking_thread, rec) != 0)
		_exit(1);
	while (!w->parked)
		usleep(1000);
	stop_here(1);
	/* Three large events do not fit a chunk that holds one: there is a takeover in between. */
	mixed(rec, w->done + 1, 4);
	w->inside = 1;
	uint32_t name = drec_name(rec, "first");
	drec_scope scope = drec_begin(rec, name);
	drec_end(rec, scope);
	drec_close(rec);
	w->inside = 0;
	stop_here(0);
	w->release = 1;
	pthread_join(thread, NULL);
}

/* ---- the parent's reading ---- */

struct seen {
	uint64_t count;
	uint64_t low, high;
	uint64_t before_gap;
	unsigned gaps;
	bool gap, torn;
	bool second_claims; /* a second thread may hold a claimed chunk */
	uint64_t scopes;   /* committed outer scopes (depth 0) */
	uint32_t slot;
	uint32_t skip_chunk;
};

static int see(void *context, const struct drec_event *event, const struct drec_place *place)
{
	struct seen *seen = context;
	if (place->slot != seen->slot || event->kind != DREC_SPAN || place->chunk == seen->skip_chunk)
		return 0;
	if (event->depth != DREC_DEPTH_UNKNOWN) {
		seen->scopes += event->depth == 0;
		return 0;
	}
	uint64_t number = event->start / 1000;
	if (number == 0 || number >= NUMBERS_MAX || event->dur_or_value != number || event->start % 1000 ||
	    ((event->flags & DREC_FLAG_ID) && event->id != number))
		seen->torn = true;
	else if ((event->flags & DREC_FLAG_ARGS_XSTAT) &&
		 (event->args_bytes != ARGS_BYTES || memcmp(event->args, args_of(number), ARGS_BYTES) != 0))
		seen->torn = true;
	if (seen->count && number != seen->high + 1) {
		if (!seen->gaps++)
			seen->before_gap = seen->high;
		/* What a parked thread has claimed is the oldest chunk, and stays while younger ones go. */
		if (seen->gaps > 1 || !seen->second_claims || seen->before_gap - seen->low >= EVENTS_A_CHUNK)
			seen->gap = true;
	}
	if (!seen->count)
		seen->low = number;
	seen->high = number;
	seen->count++;
	return 0;
}

static char complaint[512];

static int complain(const char *what, const struct seen *seen)
{
	snprintf(complaint, sizeof(complaint),
		 "%s: begun %llu done %llu, visible %llu .. %llu (%llu)%s%s; scopes begun %llu entered %llu ending "
		 "%llu left %llu",
		 what, (unsigned long long)w->begun, (unsigned long long)w->done, (unsigned long long)seen->low,
		 (unsigned long long)seen->high, (unsigned long long)seen->count, seen->gap ? " gap" : "",
		 seen->torn ? " torn" : "", (unsigned long long)w->scope_begun,
		 (unsigned long long)w->scope_entered, (unsigned long long)w->scope_ending,
		 (unsigned long long)w->scope_left);
	return -1;
}

static uint64_t scopes_before;

/* Every scope entered and not left is open, or committed at once (between the commit and the pop). */
static int check_scopes(struct drec_reader *reader, const struct seen *seen)
{
	struct drec_open_info open[OPEN_MAX_SEEN];
	int count = drec_reader_open_spans(reader, open, OPEN_MAX_SEEN), outer = 0;
	if (count < 0)
		return complain("open spans unreadable", seen);
	for (int i = 0; i < count; i++) {
		outer += open[i].depth == 0;
		if (open[i].moving)
			return complain("open spans moving though the producer stands still", seen);
	}
	if (seen->scopes < scopes_before + w->scope_left)
		return complain("a scope that was ended is not there", seen);
	uint64_t known = seen->scopes - scopes_before + (uint64_t)outer;
	if (known < w->scope_entered || seen->scopes - scopes_before > w->scope_ending)
		return complain("a begun scope is neither open nor committed", seen);
	if (w->scope_begun == w->scope_left && outer)
		return complain("a scope is open that was left", seen);
	return 0;
}

static uint64_t pin_from;

/* One reading as dead. 0 or -1 with the complaint. */
static int check_ring(const char *scenario)
{
	struct drec_reader *reader = NULL;
	struct drec_problem problem = {0};
	struct drec_poll_stats stats = {0};
	struct seen seen = {
		.slot = 0, .skip_chunk = UINT32_MAX, .second_claims = strcmp(scenario, "parked") == 0};
	int ret = drec_reader_open(AT_FDCWD, w->path, NULL, &reader, &problem);
	if (ret < 0) {
		snprintf(complaint, sizeof(complaint), "unreadable: %s (%s)", problem.what, strerror(-ret));
		return -1;
	}
	do
		ret = drec_reader_poll(reader, see, &seen, 0, &stats);
	while (ret == 1);
	if (ret < 0)
		ret = complain("poll failed", &seen);
	else if (seen.torn || (seen.gap && !pin_from))
		ret = complain("not what was written", &seen);
	else if (stats.corrupt_bytes)
		ret = complain("corrupt bytes", &seen);
	else if (w->done && seen.high != w->done && seen.high != w->begun)
		ret = complain("a committed event is not there", &seen);
	else if (seen.high > w->begun)
		ret = complain("an event is there that was not begun", &seen);
	else if (pin_from && (seen.low > pin_from || (seen.gap && seen.before_gap < pin_from + PINNED_LEAST)))
		ret = complain("a pinned chunk was overwritten", &seen);
	else if (strcmp(scenario, "scope") == 0)
		ret = check_scopes(reader, &seen);
	else if (seen.count && seen.low != 1 && stats.overwritten + 1 < seen.low)
		ret = complain("overwritten events are not all counted", &seen);
	drec_reader_free(reader);
	return ret;
}

/* While a ring is made: either nothing is visible, or a whole ring. */
static int check_create(void)
{
	char rings[600], path[900];
	struct dirent *entry;
	int ret = 0;
	snprintf(rings, sizeof(rings), "%s/rings", folder);
	DIR *dir = opendir(rings);
	if (!dir)
		return 0;
	while (ret == 0 && (entry = readdir(dir)) != NULL) {
		struct drec_reader *reader = NULL;
		struct drec_problem problem = {0};
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", rings, entry->d_name);
		ret = drec_reader_open(AT_FDCWD, path, NULL, &reader, &problem);
		if (ret < 0)
			snprintf(complaint, sizeof(complaint), "a visible ring is not whole: %s", problem.what);
		drec_reader_free(reader);
	}
	closedir(dir);
	return ret;
}

/* ---- stepping ---- */

static int check_create_any(const char *scenario)
{
	(void)scenario;
	return check_create();
}

static int wait_stop(pid_t child)
{
	int status;
	if (waitpid(child, &status, __WALL) < 0)
		return -1;
	if (WIFSTOPPED(status))
		return WSTOPSIG(status);
	return -2;
}

/*
 * Whether the ring's bytes or what the child has said differ from the last reading: the same bytes read the
 * same, and most instructions of a call change neither.
 */
static bool anything_new(void)
{
	static uint8_t *map, *copy;
	static size_t bytes;
	static char path[sizeof(w->path)];
	static struct witness said;
	struct stat st;
	if (strcmp(path, w->path) != 0) {
		int fd = open(w->path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || fstat(fd, &st) < 0)
			return true;
		if (map)
			munmap(map, bytes);
		bytes = (size_t)st.st_size;
		map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
		close(fd);
		copy = realloc(copy, bytes);
		if (map == MAP_FAILED || !copy)
			exit(1);
		snprintf(path, sizeof(path), "%s", w->path);
	} else if (memcmp(map, copy, bytes) == 0 && memcmp(&said, w, sizeof(said)) == 0) {
		return false;
	}
	memcpy(copy, map, bytes);
	memcpy(&said, w, sizeof(said));
	return true;
}

/* Returns how many instructions inside calls were looked at. */
static long step_all(pid_t child, const char *scenario, int (*check)(const char *), int every)
{
	long looked = 0;
	for (long steps = 0; steps < STEPS_MAX; steps++) {
		if (w->inside && steps % every == 0) {
			looked++;
			if ((check == check_create_any || anything_new()) && check(scenario) < 0) {
				fprintf(stderr, "%s: after instruction %ld: %s\n", scenario, steps, complaint);
				return -1;
			}
		}
		if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) < 0)
			return -1;
		int signal = wait_stop(child);
		if (signal < 0)
			return -1;
		if (signal == SIGSTOP && !w->stepping)
			return looked;
	}
	fprintf(stderr, "%s: no end after %d instructions\n", scenario, STEPS_MAX);
	return -1;
}

/* Runs the child up to its next stop of its own. */
static int run_to_stop(pid_t child)
{
	if (ptrace(PTRACE_CONT, child, NULL, NULL) < 0)
		return -1;
	return wait_stop(child) == SIGSTOP ? 0 : -1;
}

struct scenario {
	const char *name;
	void (*run)(void);
	int every; /* read after every n-th instruction: 1, more only where thousands of them touch nothing */
};

static void child_main(const struct scenario *scenario)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		_exit(77);
	raise(SIGSTOP);
	scenario->run();
	_exit(0);
}

static pid_t start(const struct scenario *scenario)
{
	memset(w, 0, sizeof(*w));
	pid_t child = fork();
	if (child == 0)
		child_main(scenario);
	int signal = wait_stop(child);
	if (signal != SIGSTOP) {
		fprintf(stderr, "ptrace is not allowed here\n");
		exit(77);
	}
	return child;
}

static void end(pid_t child)
{
	int status;
	kill(child, SIGKILL);
	while (waitpid(child, &status, __WALL) > 0 && !WIFEXITED(status) && !WIFSIGNALED(status))
		;
	unlink(w->path);
}

static int count_scopes(void)
{
	struct drec_reader *reader = NULL;
	struct drec_problem problem;
	struct seen seen = {.slot = 0, .skip_chunk = UINT32_MAX};
	if (drec_reader_open(AT_FDCWD, w->path, NULL, &reader, &problem) < 0)
		return -1;
	while (drec_reader_poll(reader, see, &seen, 0, NULL) == 1)
		;
	scopes_before = seen.scopes;
	drec_reader_free(reader);
	return 0;
}

/* The chunk that is claimed and not yet void: what it holds was lost before any pin. NO_CHUNK if none is. */
static uint32_t chunk_in_taking(struct drec_reader *reader)
{
	uint64_t order[CHUNKS];
	const struct drec_section *section = drec_reader_section(reader, DREC_SEC_ORDER);
	if (pread(drec_reader_fd(reader), order, sizeof(order), (off_t)section->offset) != (ssize_t)sizeof(order))
		return 0;
	for (uint32_t i = 0; i < CHUNKS; i++)
		if (DREC_ORDER_STATE(order[i]) == DREC_CHUNK_TAKING)
			return i;
	return UINT32_MAX;
}

/* Pins the oldest half, and notes the lowest number that was in a closed chunk when the pin was there. */
static int set_pin(void)
{
	struct drec_reader_options options = {.writable = 1};
	struct drec_reader *reader = NULL;
	struct drec_problem problem;
	struct drec_pin pin = {.active = 0};
	unsigned entry;
	if (drec_reader_open(AT_FDCWD, w->path, &options, &reader, &problem) < 0)
		return -1;
	int ret = drec_reader_changed(reader) < 0 ? -1 : 0;
	pin.from = drec_reader_state(reader)->evicted + 1;
	if (ret == 0)
		ret = drec_pin_set(reader, &pin, 1, &entry) < 0 ? -1 : 0;
	struct seen seen = {.slot = 0, .skip_chunk = chunk_in_taking(reader)};
	while (ret == 0 && drec_reader_poll(reader, see, &seen, 0, NULL) == 1)
		;
	pin_from = seen.low;
	drec_reader_free(reader);
	return ret;
}

/* With a pin over the oldest half of the ring before the first instruction, or without. */
static int run_scenario(const struct scenario *scenario, bool pin)
{
	pid_t child = start(scenario);
	bool create = scenario->run == run_create;
	long steps = run_to_stop(child);
	if (steps == 0 && !create && count_scopes() < 0)
		steps = -1;
	if (steps == 0 && pin)
		steps = set_pin();
	if (steps == 0)
		steps = step_all(child, scenario->name, create ? check_create_any : check_ring, scenario->every);
	end(child);
	pin_from = 0;
	if (steps < 0)
		return 1;
	printf("%s%s: %ld instructions, each read as dead\n", scenario->name, pin ? ", pinned" : "", steps);
	return 0;
}

/* A second thread parked at each named point while the first is stepped. */
static int run_parked_all(void)
{
	static const char *const points[] = {
		"append_stored", "append_committed", "scope_pushed", "scope_committed", "scope_popped",
		"take_closed", "take_counted", "take_chosen", "take_claimed", "take_checked", "take_void",
		"take_header", "take_open", "slot_claimed", "slot_ready", "dict_reserved", "dict_copied",
		"dict_committed"};
	static const struct scenario parked = {"parked", run_parked, 1};
	long total = 0;
	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		pid_t child = start(&parked);
		snprintf(w->park_at, sizeof(w->park_at), "%s", points[i]);
		long steps = run_to_stop(child) < 0 ? -1 : step_all(child, "parked", check_ring, 1);
		end(child);
		if (steps < 0) {
			fprintf(stderr, "parked at %s\n", points[i]);
			return 1;
		}
		total += steps;
	}
	printf("parked: %ld instructions at %zu points, each read as dead\n", total,
	       sizeof(points) / sizeof(points[0]));
	return 0;
}

/* At every k-th instruction a pin is set; the rest of the region runs, and what was pinned must be there. */
static int run_pinned(void)
{
	static const struct scenario append = {"append", run_short, 1};
	long at, tried = 0;
	for (at = 0;; at += PIN_STRIDE) {
		pid_t child = start(&append);
		int ret = run_to_stop(child);
		for (long step = 0; ret == 0 && step < at && w->stepping; step++)
			if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) < 0 || wait_stop(child) < 0)
				ret = -1;
		bool over = !w->stepping;
		if (ret == 0 && !over) {
			ret = set_pin();
			if (ret == 0)
				ret = run_to_stop(child);
			if (ret == 0)
				ret = check_ring("pinned");
			tried++;
		}
		end(child);
		pin_from = 0;
		if (ret < 0) {
			fprintf(stderr, "pinned at instruction %ld: %s\n", at, complaint);
			return 1;
		}
		if (over)
			break;
	}
	printf("pinned: a pin at %ld places of %ld instructions kept what it said\n", tried, at);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{"append", run_append, 1},     {"scope", run_scope, 1}, {"intern", run_intern, 1},
		{"register", run_register, 1}, {"close", run_close, 1}, {"create", run_create, 7},
	};
	if (argc != 2) {
		fprintf(stderr, "usage: step_ring SCENARIO\n");
		return 2;
	}
	folder = test_shm_folder();
	make_pattern();
	w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (w == MAP_FAILED)
		return 1;
	if (strcmp(argv[1], "parked") == 0)
		return run_parked_all();
	if (strcmp(argv[1], "pinned") == 0)
		return run_pinned();
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		if (strcmp(argv[1], scenarios[i].name) == 0)
			return run_scenario(&scenarios[i], false) ||
			       (scenarios[i].run != run_create && run_scenario(&scenarios[i], true));
	fprintf(stderr, "no scenario '%s'\n", argv[1]);
	return 2;
}
