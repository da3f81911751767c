/* SPDX-License-Identifier: Apache-2.0 */
#include "clock.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

enum { ANCHOR_TRIES = 5 };

static const int64_t ANCHOR_EVERY_NS = 1000000000;
static const int64_t SOURCE_EVERY_NS = 10000000000;
static const int64_t STEP_MIN_NS = 1000000;     /* slewing never moves REAL against MONO by this a second */
static const int64_t SUSPEND_MIN_NS = 10000000;

static int64_t read_ns(clockid_t id)
{
	struct timespec ts;
	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t clock_mono_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

static uint64_t read_counter(void)
{
#if defined(__x86_64__)
	return __rdtsc();
#elif defined(__aarch64__)
	uint64_t count;
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
	return count;
#else
	return (uint64_t)read_ns(CLOCK_MONOTONIC);
#endif
}

/* The same form as producers put into their rings: CRC32 of the kernel's name for it. */
static uint32_t read_clocksource(void)
{
	char text[64];
	int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t count = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (count <= 0)
		return 0;
	text[count] = 0;
	size_t bytes = strcspn(text, "\n");
	return bytes ? (uint32_t)crc32(0, (const Bytef *)text, (uInt)bytes) : 0;
}

/* The tightest of a few readings: MONOTONIC between two counter reads that are closest together. */
static struct drec_anchor read_anchor(void)
{
	struct drec_anchor best = {0};
	uint64_t best_width = UINT64_MAX;
	for (int i = 0; i < ANCHOR_TRIES; i++) {
		uint64_t before = read_counter();
		int64_t mono = read_ns(CLOCK_MONOTONIC);
		uint64_t after = read_counter();
		int64_t real = read_ns(CLOCK_REALTIME), boot = read_ns(CLOCK_BOOTTIME);
		if (after - before >= best_width)
			continue;
		best_width = after - before;
		best.ticks = before + best_width / 2;
		best.mono_ns = mono;
		best.real_ns = real;
		best.boot_ns = boot;
	}
	return best;
}

static void note(struct clock *clock, enum clock_event_kind kind, int64_t mono_ns, int64_t amount_ns)
{
	if (clock->n_events == CLOCK_EVENTS_MAX) {
		memmove(clock->events, clock->events + 1, sizeof(clock->events) - sizeof(clock->events[0]));
		clock->n_events--;
	}
	clock->events[clock->n_events++] =
		(struct clock_event){.kind = kind, .mono_ns = mono_ns, .amount_ns = amount_ns};
}

static int64_t magnitude(int64_t value)
{
	return value < 0 ? -value : value;
}

/* What must not happen between two anchors, and is noted where it does. */
static void compare(struct clock *clock, const struct drec_anchor *last, const struct drec_anchor *now)
{
	int64_t passed = now->mono_ns - last->mono_ns;
	int64_t step = (now->real_ns - now->mono_ns) - (last->real_ns - last->mono_ns);
	int64_t asleep = (now->boot_ns - now->mono_ns) - (last->boot_ns - last->mono_ns);
	if (magnitude(step - asleep) >= STEP_MIN_NS)
		note(clock, CLOCK_STEP, now->mono_ns, step - asleep);
	if (asleep >= SUSPEND_MIN_NS)
		note(clock, CLOCK_SUSPEND, now->mono_ns, asleep);
	if (now->clocksource != last->clocksource)
		note(clock, CLOCK_SOURCE_CHANGED, now->mono_ns, 0);
	if (passed < ANCHOR_EVERY_NS / 2)
		return;
	double ticks = (double)(now->ticks - last->ticks);
	if (clock->ticks_per_ns > 0) {
		int64_t ahead = (int64_t)(ticks / clock->ticks_per_ns) - passed;
		if (magnitude(ahead) > passed / 10000 + 10000)
			note(clock, CLOCK_COUNTER_JUMP, now->mono_ns, ahead);
	}
	clock->ticks_per_ns = ticks / (double)passed;
}

/* Keeps every second anchor of the older half: the whole history stays, finer where it is recent. */
static void thin(struct clock *clock)
{
	size_t kept = 0;
	for (size_t i = 0; i < clock->n_anchors; i++)
		if (i >= clock->n_anchors / 2 || i % 2 == 0)
			clock->anchors[kept++] = clock->anchors[i];
	clock->n_anchors = kept;
}

void clock_anchor(struct clock *clock)
{
	struct drec_anchor anchor = read_anchor();
	if (anchor.mono_ns >= clock->next_source_mono_ns) {
		clock->clocksource = read_clocksource();
		clock->next_source_mono_ns = anchor.mono_ns + SOURCE_EVERY_NS;
	}
	anchor.clocksource = clock->clocksource;
	anchor.seq = ++clock->sequence;
	if (clock->n_anchors > 0)
		compare(clock, &clock->anchors[clock->n_anchors - 1], &anchor);
	if (clock->n_anchors == CLOCK_ANCHORS_MAX)
		thin(clock);
	clock->anchors[clock->n_anchors++] = anchor;
	clock->next_mono_ns = anchor.mono_ns + ANCHOR_EVERY_NS;
}

void clock_start(struct clock *clock)
{
	struct timespec pause = {.tv_nsec = 2000000};
	memset(clock, 0, sizeof(*clock));
	clock_anchor(clock);
	nanosleep(&pause, NULL);
	clock_anchor(clock);
	clock->offset_ns = clock_unix_offset_ns(clock);
}

int clock_tick(struct clock *clock)
{
	if (clock_mono_ns() < clock->next_mono_ns)
		return 0;
	clock_anchor(clock);
	return 1;
}

int64_t clock_record_ns(const struct clock *clock)
{
	return clock_mono_ns() + clock->offset_ns;
}

int64_t clock_unix_offset_ns(const struct clock *clock)
{
	const struct drec_anchor *last = &clock->anchors[clock->n_anchors - 1];
	return last->real_ns - last->mono_ns;
}

void clock_give(const struct clock *clock, struct drec_reader *reader)
{
	drec_reader_set_anchors(reader, clock->anchors, clock->n_anchors, clock->offset_ns);
}

const char *clock_event_name(enum clock_event_kind kind)
{
	static const char *const names[] = {[CLOCK_STEP] = "clock_step",
					    [CLOCK_SUSPEND] = "suspend",
					    [CLOCK_SOURCE_CHANGED] = "clocksource_changed",
					    [CLOCK_COUNTER_JUMP] = "counter_jump"};
	return (unsigned)kind < sizeof(names) / sizeof(names[0]) && names[kind] ? names[kind] : "unknown";
}
