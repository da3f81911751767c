/* SPDX-License-Identifier: Apache-2.0 */
/* The producer's API, seen through the reader: what was said comes back, what was lost is counted. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <driverec/driverec.h>
#include <driverec/freeze.h>
#include <driverec/reader.h>

#include "support.h"

enum { SEEN_MAX = 20000, TEXT_ROOM = 600, SMALL_RING = 64 * 8192 };

/* An event with its texts copied. */
struct seen {
	struct drec_event event;
	struct drec_place place;
	char name[64], args[TEXT_ROOM], extra[64];
};

static struct seen *seen;
static size_t n_seen;
static struct drec_poll_stats stats;
static struct drec_reader *reader;
static drec *rec;
static const char *folder;

static struct drec_options small(void)
{
	return (struct drec_options){.run_dir = folder, .job = "test", .name = "ring", .ring_bytes = SMALL_RING,
				     .chunk_bytes = 8192};
}

static drec *open_with(const struct drec_options *options)
{
	drec *opened = NULL;
	const char *why = "";
	int ret = drec_open_strict(options, &opened, &why);
	ck_assert_msg(ret == 0, "%s: %s", why, strerror(-ret));
	return opened;
}

static void setup(void)
{
	folder = test_shm_folder();
	struct drec_options options = small();
	rec = open_with(&options);
	seen = calloc(SEEN_MAX, sizeof(*seen));
	ck_assert_ptr_nonnull(seen);
}

static void teardown(void)
{
	drec_reader_free(reader);
	free(seen);
}

static int copy(void *context, const struct drec_event *event, const struct drec_place *place)
{
	struct seen *to = &seen[n_seen % SEEN_MAX];
	(void)context;
	*to = (struct seen){.event = *event, .place = *place};
	if (event->flags & DREC_FLAG_NAME)
		snprintf(to->name, sizeof(to->name), "%.*s", (int)event->name_bytes, event->name_text);
	if (event->flags & (DREC_FLAG_ARGS_JSON | DREC_FLAG_ARGS_XSTAT))
		snprintf(to->args, sizeof(to->args), "%.*s", (int)event->args_bytes, (const char *)event->args);
	if (event->flags & DREC_FLAG_EXTRA)
		snprintf(to->extra, sizeof(to->extra), "%.*s", (int)event->extra_bytes, event->extra);
	n_seen++;
	return 0;
}

static void read_path(const char *path)
{
	struct drec_reader_options options = {.writable = 1};
	struct drec_problem problem = {0};
	drec_reader_free(reader);
	reader = NULL;
	n_seen = 0;
	stats = (struct drec_poll_stats){0};
	int ret = drec_reader_open(AT_FDCWD, path, &options, &reader, &problem);
	ck_assert_msg(ret == 0, "%s: %s", problem.what, strerror(-ret));
	while ((ret = drec_reader_poll(reader, copy, NULL, 0, &stats)) == 1)
		;
	assert_ok(ret);
	ck_assert_uint_eq(stats.corrupt_bytes, 0);
}

static void read_ring(void)
{
	read_path(drec_path(rec));
}

static const char *text_of(uint32_t id)
{
	static char text[DREC_TEXT_MAX * 2];
	unsigned kind;
	const char *at;
	uint32_t bytes;
	if (drec_reader_text(reader, id, &kind, &at, &bytes) < 0)
		return "(none)";
	snprintf(text, sizeof(text), "%.*s", (int)bytes, at);
	return text;
}

static uint64_t lost_in_stream(unsigned reason)
{
	uint64_t count = 0;
	for (size_t i = 0; i < n_seen; i++)
		if (seen[i].event.kind == DREC_LOSS && seen[i].event.category == reason)
			count += seen[i].event.dur_or_value;
	return count;
}

/* ---- events ---- */

START_TEST(every_kind_comes_back_bit_for_bit)
{
	uint8_t kind = (uint8_t)_i;
	uint32_t name = drec_name(rec, "name"), track = drec_track(rec, "gpu0", "stream 7");
	for (unsigned flags = 0; flags < 128; flags++) {
		if ((flags & DREC_FLAG_ARGS_JSON) && (flags & DREC_FLAG_ARGS_XSTAT))
			continue;
		struct drec_event event = {
			.kind = kind,
			.flags = (uint8_t)flags,
			.depth = 3,
			.category = kind == DREC_MARK ? DREC_MARK_TRIGGER : kind == DREC_LOSS ? DREC_LOSS_SOURCE : 0,
			.start_ps = 999,
			.dur_ps = 1,
			.name = flags & DREC_FLAG_NAME ? 0 : name,
			.track = track,
			.start = UINT64_C(0x0123456789abcdef),
			.dur_or_value = flags,
			.id = UINT64_MAX - flags,
			.name_text = "inline",
			.name_bytes = 6,
			.args = "{\"a\":1.50}",
			.args_bytes = 10,
			.extra = "\"s\":\"t\"",
			.extra_bytes = 7,
		};
		ck_assert_int_eq(drec_write(rec, &event), 0);
	}
	read_ring();
	ck_assert_uint_eq(n_seen, 96);
	for (size_t i = 0; i < n_seen; i++) {
		const struct drec_event *event = &seen[i].event;
		unsigned flags = event->flags;
		ck_assert_uint_eq(event->kind, kind);
		ck_assert_uint_eq(event->depth, 3);
		ck_assert_uint_eq(event->track, track);
		ck_assert_uint_eq(event->start, UINT64_C(0x0123456789abcdef));
		ck_assert_uint_eq(event->dur_or_value, flags);
		ck_assert_uint_eq(event->start_ps, flags & DREC_FLAG_PS ? 999 : 0);
		ck_assert_uint_eq(event->dur_ps, flags & DREC_FLAG_PS ? 1 : 0);
		ck_assert_uint_eq(event->id, flags & DREC_FLAG_ID ? UINT64_MAX - flags : 0);
		ck_assert_str_eq(seen[i].name, flags & DREC_FLAG_NAME ? "inline" : "");
		ck_assert_str_eq(seen[i].args, flags & 48 ? "{\"a\":1.50}" : "");
		ck_assert_str_eq(seen[i].extra, flags & DREC_FLAG_EXTRA ? "\"s\":\"t\"" : "");
		ck_assert_uint_eq(seen[i].place.index, i);
	}
}
END_TEST

START_TEST(spans_instants_and_counters)
{
	uint32_t name = drec_name(rec, "op"), track = drec_track(rec, NULL, "lane");
	drec_time before = drec_now(rec);
	drec_span(rec, track, name, 100, 350);
	drec_span(rec, 0, name, before, 0);
	drec_span(rec, 0, name, 500, 400);
	drec_instant(rec, track, name);
	drec_counter(rec, 0, name, -0.1);
	read_ring();
	ck_assert_uint_eq(n_seen, 5);
	ck_assert_uint_eq(seen[0].event.track, track);
	ck_assert_uint_eq(seen[0].event.start, 100);
	ck_assert_uint_eq(seen[0].event.dur_or_value, 250);
	ck_assert_uint_eq(seen[1].event.track, drec_thread_track(rec));
	ck_assert_uint_le(seen[1].event.start + seen[1].event.dur_or_value, drec_now(rec));
	ck_assert_uint_eq(seen[2].event.start, 500);
	ck_assert_uint_eq(seen[2].event.dur_or_value, 0);
	ck_assert_uint_eq(seen[3].event.kind, DREC_INSTANT);
	ck_assert_uint_eq(seen[4].event.dur_or_value, drec_value_bits(-0.1));
	ck_assert_str_eq(text_of(seen[0].event.name), "op");
}
END_TEST

/* An id of another recorder, or a kind of nobody, must not hide the events behind it. */
START_TEST(what_is_no_event_harms_no_other)
{
	struct drec_event bad[] = {
		{.kind = 0}, {.kind = DREC_KIND_LIMIT}, {.kind = DREC_SPAN, .name = 60000},
		{.kind = DREC_SPAN, .track = 60000}, {.kind = DREC_SPAN, .category = 60000},
		{.kind = DREC_MARK, .category = DREC_MARK_LIMIT}, {.kind = DREC_SPAN, .flags = DREC_FLAG_PS, .dur_ps = 1000},
	};
	const size_t count = sizeof(bad) / sizeof(bad[0]);
	for (size_t i = 0; i < count; i++)
		ck_assert_int_eq(drec_write(rec, &bad[i]), -EINVAL);
	drec_span(rec, 70000, 70000, 1, 2);
	drec_end(rec, drec_begin(rec, 70000));
	drec_counter(rec, 70000, 70000, 1);
	read_ring();
	ck_assert_uint_eq(n_seen, 3 + 1);
	ck_assert_uint_eq(lost_in_stream(DREC_LOSS_SOURCE), count);
	ck_assert_uint_eq(drec_lost(rec, 0), count);
	for (size_t i = 1; i < n_seen; i++)
		ck_assert_uint_eq(seen[i].event.name, 0);
}
END_TEST

/* ---- scopes, steps, marks ---- */

START_TEST(scopes_nest_and_an_outer_end_ends_inner_ones)
{
	uint32_t a = drec_name(rec, "a"), b = drec_name(rec, "b"), c = drec_name(rec, "c");
	struct drec_open_info open[4];
	drec_scope outer = drec_begin(rec, a);
	drec_begin(rec, b);
	drec_begin(rec, c);
	read_ring();
	ck_assert_uint_eq(n_seen, 0);
	ck_assert_int_eq(drec_reader_open_spans(reader, open, 4), 3);
	ck_assert_uint_eq(open[0].name, a);
	ck_assert_uint_eq(open[2].name, c);
	ck_assert_uint_eq(open[2].depth, 2);
	drec_end(rec, outer);
	read_ring();
	ck_assert_int_eq(drec_reader_open_spans(reader, open, 4), 0);
	ck_assert_uint_eq(n_seen, 3);
	ck_assert_uint_eq(seen[0].event.name, c);
	ck_assert_uint_eq(seen[0].event.depth, 2);
	ck_assert_uint_eq(seen[2].event.name, a);
	ck_assert_uint_eq(seen[2].event.depth, 0);
	drec_end(rec, outer); /* once more, and one that never was: nothing */
	drec_end(rec, 77);
	read_ring();
	ck_assert_uint_eq(n_seen, 3);
}
END_TEST

START_TEST(longjmp_out_of_scopes_heals)
{
	static jmp_buf back;
	static drec_scope outer;
	uint32_t name = drec_name(rec, "deep");
	outer = drec_begin(rec, name);
	if (setjmp(back) == 0) {
		drec_begin(rec, name);
		drec_begin(rec, name);
		longjmp(back, 1);
	}
	drec_end(rec, outer);
	ck_assert_uint_eq(drec_begin(rec, name), 1);
	read_ring();
	ck_assert_uint_eq(n_seen, 3);
}
END_TEST

START_TEST(deeper_than_the_stack)
{
	enum { DEPTH = 300 };
	static struct drec_open_info open[DEPTH];
	uint32_t name = drec_name(rec, "f");
	drec_scope scope[DEPTH];
	for (int i = 0; i < DEPTH; i++)
		scope[i] = drec_begin(rec, name);
	read_ring();
	ck_assert_int_eq(drec_reader_open_spans(reader, open, DEPTH), DREC_STACK_MAX);
	ck_assert_uint_eq(open[DREC_STACK_MAX - 1].deeper, DEPTH - DREC_STACK_MAX);
	for (int i = DEPTH; i-- > 0;)
		drec_end(rec, scope[i]);
	drec_instant(rec, 0, name);
	drec_close(rec);
	read_ring();
	/* 254 can be told; the rest is counted. */
	ck_assert_uint_eq(drec_lost(rec, DREC_LOSS_TOO_BIG), DEPTH - 254);
	uint64_t spans = 0;
	for (size_t i = 0; i < n_seen; i++)
		spans += seen[i].event.kind == DREC_SPAN;
	ck_assert_uint_eq(spans, 254);
	ck_assert_int_eq(drec_reader_open_spans(reader, open, DEPTH), 0);
}
END_TEST

START_TEST(steps_and_phases)
{
	struct drec_open_info open[4];
	uint32_t eval = drec_name(rec, "eval");
	drec_scope phase = drec_phase_begin(rec, eval);
	drec_step_begin(rec, 41, 0);
	drec_begin(rec, drec_name(rec, "inner"));
	read_ring();
	ck_assert_int_eq(drec_reader_open_spans(reader, open, 4), 3);
	ck_assert_uint_eq(open[0].mark, DREC_MARK_PHASE_BEGIN);
	ck_assert_uint_eq(open[1].mark, DREC_MARK_STEP_BEGIN);
	ck_assert_uint_eq(open[1].step, 41);
	drec_step_begin(rec, 42, eval); /* ends 41 and what was open in it */
	drec_step_end(rec);
	drec_step_end(rec);
	drec_phase_end(rec, phase);
	read_ring();
	static const struct { unsigned kind, category; uint64_t id; const char *name; } expected[] = {
		{DREC_MARK, DREC_MARK_PHASE_BEGIN, 0, "eval"}, {DREC_MARK, DREC_MARK_STEP_BEGIN, 41, "train"},
		{DREC_SPAN, 0, 0, "inner"},		       {DREC_MARK, DREC_MARK_STEP_END, 41, "train"},
		{DREC_MARK, DREC_MARK_STEP_BEGIN, 42, "eval"}, {DREC_MARK, DREC_MARK_STEP_END, 42, "eval"},
		{DREC_MARK, DREC_MARK_PHASE_END, 0, "eval"},
	};
	ck_assert_uint_eq(n_seen, 7);
	for (size_t i = 0; i < 7; i++) {
		ck_assert_uint_eq(seen[i].event.kind, expected[i].kind);
		ck_assert_uint_eq(seen[i].event.category, expected[i].category);
		ck_assert_uint_eq(seen[i].event.id, expected[i].id);
		ck_assert_str_eq(text_of(seen[i].event.name), expected[i].name);
	}
	ck_assert_uint_eq(seen[3].event.start, seen[1].event.start);
}
END_TEST

START_TEST(a_reason_is_quoted)
{
	char text[400];
	drec_trigger(rec, "loss \"nan\" \\ at\n7");
	drec_trigger(rec, NULL);
	memset(text, 'x', sizeof(text));
	memcpy(text + 254, "\xc3\xa9", 2); /* would be cut in two at 255 */
	text[399] = 0;
	drec_trigger(rec, text);
	read_ring();
	ck_assert_uint_eq(seen[0].event.category, DREC_MARK_TRIGGER);
	ck_assert_str_eq(seen[0].args, "\"loss \\\"nan\\\" \\\\ at 7\"");
	ck_assert_str_eq(seen[1].args, "\"\"");
	ck_assert_uint_eq(seen[2].event.args_bytes, 254 + 2);
	ck_assert_int_eq(seen[2].args[255], '"');
}
END_TEST

/* ---- names ---- */

START_TEST(same_text_same_id)
{
	char again[] = "alpha";
	uint32_t alpha = drec_name(rec, "alpha");
	ck_assert_uint_ne(alpha, 0);
	ck_assert_uint_eq(drec_name(rec, again), alpha);
	ck_assert_uint_eq(drec_name_n(rec, "alphabet", 5), alpha);
	ck_assert_uint_ne(drec_name(rec, "alph"), alpha);
	ck_assert_uint_ne(drec_category(rec, "alpha"), alpha);
	ck_assert_uint_eq(drec_name(rec, NULL), 0);
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(DREC_NAME(rec, "alpha"), alpha);
	uint32_t track = drec_track(rec, "g", "n");
	ck_assert_uint_eq(drec_track(rec, "g", "n"), track);
	ck_assert_uint_ne(drec_track(rec, "gn", ""), track);
	assert_ok(drec_track_rename(rec, track, "better", 6));
	assert_ok(drec_meta(rec, "\"k\":1", 5));
	read_ring();
	struct drec_track_info info;
	assert_ok(drec_reader_track(reader, track, &info));
	ck_assert_mem_eq(info.name, "better", 6);
	ck_assert_mem_eq(info.group, "g", 1);
	ck_assert_str_eq(text_of(alpha), "alpha");
}
END_TEST

enum { NAMES = 400, NAMERS = 8 };

static void *name_all(void *context)
{
	uint32_t *ids = context;
	char text[32];
	for (int i = 0; i < NAMES; i++) {
		snprintf(text, sizeof(text), "name %d", i);
		ids[i] = drec_name(rec, text);
	}
	return NULL;
}

START_TEST(same_id_from_threads_at_once)
{
	static uint32_t ids[NAMERS][NAMES];
	pthread_t thread[NAMERS];
	char text[32];
	struct drec_options options = small();
	options.dict_ids = 8192;
	rec = open_with(&options);
	for (int t = 0; t < NAMERS; t++)
		ck_assert_int_eq(pthread_create(&thread[t], NULL, name_all, ids[t]), 0);
	for (int t = 0; t < NAMERS; t++)
		pthread_join(thread[t], NULL);
	read_ring();
	for (int i = 0; i < NAMES; i++) {
		snprintf(text, sizeof(text), "name %d", i);
		ck_assert_str_eq(text_of(ids[0][i]), text);
		for (int t = 1; t < NAMERS; t++)
			ck_assert_uint_eq(ids[t][i], ids[0][i]);
	}
}
END_TEST

START_TEST(a_full_dictionary_gives_0_and_counts)
{
	char text[16];
	struct drec_options options = small();
	options.dict_ids = 10;
	rec = open_with(&options);
	uint32_t first = drec_name(rec, "first");
	for (int i = 0; i < 20; i++) {
		snprintf(text, sizeof(text), "n%d", i);
		uint32_t id = drec_name(rec, text);
		ck_assert_msg(i < 8 ? id != 0 : id == 0, "name %d got %u", i, id);
	}
	ck_assert_uint_eq(drec_name(rec, "first"), first);
	ck_assert_int_eq(drec_meta(rec, "\"k\":1", 5), -ENOSPC);
	drec_span(rec, 0, drec_name(rec, "n19"), 1, 2); /* the thread's track finds no room either */
	read_ring();
	ck_assert_uint_eq(n_seen, 1);
	ck_assert_uint_eq(seen[0].event.name, 0);
	ck_assert_uint_ge(drec_reader_state(reader)->dict_full, 12);
	ck_assert_uint_eq(drec_lost(rec, 0), 0);
}
END_TEST

/* ---- losses ---- */

START_TEST(too_big_is_counted_and_told)
{
	static char big[9000];
	struct drec_event event = {.kind = DREC_INSTANT, .flags = DREC_FLAG_ARGS_JSON, .start = 5, .args = big};
	event.args_bytes = sizeof(big);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(drec_write(rec, &event), -E2BIG);
	event.args_bytes = 8192 - 32 - 4; /* fills a chunk to the last byte */
	ck_assert_int_eq(drec_write(rec, &event), 0);
	read_ring();
	ck_assert_uint_eq(lost_in_stream(DREC_LOSS_TOO_BIG), 3);
	ck_assert_uint_eq(drec_lost(rec, DREC_LOSS_TOO_BIG), 3);
	ck_assert_uint_eq(stats.lost, 3);
	ck_assert_uint_eq(n_seen, 2);
}
END_TEST

/* 512 KiB is the most an event's length can say, whatever the chunk. */
START_TEST(too_big_for_the_format)
{
	struct drec_options options = small();
	options.ring_bytes = 64 << 20;
	options.chunk_bytes = 1 << 20;
	rec = open_with(&options);
	char *big = calloc(1, 1 << 20);
	struct drec_event event = {.kind = DREC_INSTANT, .flags = DREC_FLAG_ARGS_JSON, .start = 5, .args = big};
	event.args_bytes = DREC_EVENT_BYTES_MAX - 32;
	ck_assert_int_eq(drec_write(rec, &event), -E2BIG);
	event.args_bytes -= 4;
	ck_assert_int_eq(drec_write(rec, &event), 0);
	read_ring();
	ck_assert_uint_eq(n_seen, 2);
	ck_assert_uint_eq(drec_lost(rec, 0), 1);
	free(big);
}
END_TEST

static volatile sig_atomic_t in_handler;

static void record_in_handler(int signal)
{
	(void)signal;
	in_handler++;
	drec_instant(rec, 0, 0);
}

START_TEST(from_a_signal_handler)
{
	struct sigaction action = {.sa_handler = record_in_handler};
	struct itimerspec often = {.it_interval = {.tv_nsec = 50000}, .it_value = {.tv_nsec = 50000}};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	timer_t timer;
	uint64_t written = 0;
	drec_instant(rec, 0, 0);
	sigaction(SIGUSR1, &action, NULL);
	ck_assert_int_eq(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	timer_settime(timer, 0, &often, NULL);
	for (; written < 20000000 && (in_handler < 50 || drec_lost(rec, DREC_LOSS_REENTRANT) == 0); written++)
		drec_span(rec, 0, 0, 1, 2);
	timer_delete(timer);
	read_ring();
	/* Every call is in the ring, overwritten, or counted. */
	ck_assert_uint_gt(drec_lost(rec, DREC_LOSS_REENTRANT), 0);
	ck_assert_uint_eq(stats.events + stats.overwritten + drec_lost(rec, DREC_LOSS_REENTRANT),
			  written + (uint64_t)in_handler + 1);
}
END_TEST

static atomic_int hold;

static void *one_event_and_wait(void *context)
{
	drec_instant(context, 0, 0);
	atomic_fetch_add(&hold, 1);
	while (atomic_load(&hold) < 1000)
		usleep(100);
	return NULL;
}

START_TEST(more_threads_than_slots)
{
	enum { SLOTS = 16, THREADS = 24 };
	pthread_t thread[THREADS];
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, one_event_and_wait, rec), 0);
	while (atomic_load(&hold) < THREADS)
		usleep(100);
	ck_assert_uint_eq(drec_lost(rec, DREC_LOSS_NO_SLOT), THREADS - SLOTS);
	atomic_store(&hold, 1000);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	drec_instant(rec, 0, 0); /* slots are free again */
	ck_assert_uint_eq(drec_lost(rec, 0), THREADS - SLOTS);
	read_ring();
	ck_assert_uint_eq(n_seen, SLOTS + 1);
}
END_TEST

static void pin_all(unsigned entries[3])
{
	struct drec_pin pin = {.from = 1};
	read_ring();
	uint64_t tail = drec_reader_state(reader)->tail;
	pin.from = tail > 64 ? tail - 64 : 1;
	assert_ok(drec_pin_set(reader, &pin, 1, &entries[0]));
	for (int i = 1; i < 3; i++) { /* the third keeps what the thread closes from now on */
		pin.from += 32;
		assert_ok(drec_pin_set(reader, &pin, 1, &entries[i]));
	}
}

static void unpin_all(const unsigned entries[3])
{
	for (int i = 0; i < 3; i++)
		assert_ok(drec_pin_release(reader, entries[i]));
}

START_TEST(everything_pinned)
{
	unsigned entries[3];
	uint64_t before, after, tried = 1000;
	drec_instant(rec, 0, 0);
	pin_all(entries);
	for (before = 0; drec_lost(rec, 0) == 0 && before < 100000; before++)
		drec_span(rec, 0, 0, 10 + before, 11 + before);
	for (uint64_t i = 1; i < tried; i++)
		drec_span(rec, 0, 0, 10, 11);
	ck_assert_uint_eq(drec_lost(rec, DREC_LOSS_PINNED_FULL), tried);
	ck_assert_int_eq(drec_write(rec, &(struct drec_event){.kind = DREC_INSTANT}), -ENOSPC);
	unpin_all(entries);
	for (after = 0; after < 5; after++)
		drec_instant(rec, 0, 0);
	read_ring();
	ck_assert_uint_eq(lost_in_stream(DREC_LOSS_PINNED_FULL), tried + 1);
	for (size_t i = 0; i < n_seen; i++) /* a lost span is missed from its begin on */
		if (seen[i].event.kind == DREC_LOSS)
			ck_assert_uint_eq(seen[i].event.start, 0);
	ck_assert_uint_eq(stats.lost, drec_lost(rec, 0));
	ck_assert_uint_eq(stats.events + stats.overwritten, 1 + before - 1 + after + 1);
}
END_TEST

static void *lose_and_exit(void *context)
{
	drec_span(context, 0, 0, 10, 11);
	return NULL;
}

/* What a thread lost before it ended is told by the next that has its slot. */
START_TEST(a_loss_outlives_its_thread)
{
	unsigned entries[3];
	pthread_t thread;
	drec_instant(rec, 0, 0);
	pin_all(entries);
	while (drec_lost(rec, 0) == 0)
		drec_instant(rec, 0, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, lose_and_exit, rec), 0);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(drec_lost(rec, 0), 2);
	unpin_all(entries);
	ck_assert_int_eq(pthread_create(&thread, NULL, lose_and_exit, rec), 0);
	pthread_join(thread, NULL);
	drec_instant(rec, 0, 0);
	read_ring();
	ck_assert_uint_eq(lost_in_stream(DREC_LOSS_PINNED_FULL), 2);
	ck_assert_uint_eq(drec_lost(rec, 0), 2);
}
END_TEST

static pthread_key_t late_key;

static void record_late(void *value)
{
	static int again;
	if (again++ == 0)
		pthread_setspecific(late_key, value); /* another turn: after the library's own */
	else
		drec_instant(rec, 0, 0);
}

static void *exit_late(void *context)
{
	drec_instant(rec, 0, 0);
	pthread_setspecific(late_key, context);
	return NULL;
}

START_TEST(after_a_thread_s_exit_handlers)
{
	pthread_t thread;
	ck_assert_int_eq(pthread_key_create(&late_key, record_late), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, exit_late, &late_key), 0);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(drec_lost(rec, DREC_LOSS_THREAD_EXIT), 1);
	read_ring();
	ck_assert_uint_eq(n_seen, 1);
}
END_TEST

START_TEST(losses_of_a_source)
{
	drec_note_loss(rec, DREC_LOSS_SOURCE, 17, 100, 900);
	drec_note_loss(rec, 0, 1, 950, 950);
	drec_instant(rec, 0, 0);
	read_ring();
	ck_assert_uint_eq(seen[0].event.kind, DREC_LOSS);
	ck_assert_uint_eq(seen[0].event.start, 100);
	ck_assert_uint_eq(seen[0].event.id, 950);
	ck_assert_uint_eq(stats.lost, 18);
}
END_TEST

/* ---- the ring ---- */

START_TEST(wrap_counts_what_is_overwritten)
{
	const uint64_t total = 3 * SMALL_RING / 32 + 777;
	for (uint64_t i = 0; i < total; i++)
		drec_span(rec, 0, 0, i, i + 1);
	read_ring();
	ck_assert_uint_eq(stats.events + stats.overwritten, total);
	ck_assert_uint_ge(stats.events, SMALL_RING / 32 - 256);
	ck_assert_uint_eq(seen[0].event.start, stats.overwritten);
	uint64_t lost[DREC_LOSS_LIMIT], overwritten;
	assert_ok(drec_reader_losses(reader, lost, &overwritten));
	ck_assert_uint_eq(overwritten, stats.overwritten);
}
END_TEST

START_TEST(several_recorders_and_reopening)
{
	struct drec_options options = small();
	options.name = "other";
	drec *other = open_with(&options);
	for (int i = 0; i < 10; i++) {
		drec_span(rec, 0, DREC_NAME(rec, "here"), 1, 2);
		drec_span(other, 0, drec_name(other, "there"), 3, 4);
	}
	drec_close(rec);
	drec_span(rec, 0, 0, 1, 2);
	drec_span(other, 0, 0, 3, 4);
	read_path(drec_path(other));
	ck_assert_uint_eq(n_seen, 11);
	read_ring();
	ck_assert_uint_eq(n_seen, 11);
	ck_assert_uint_eq(seen[10].event.category, DREC_MARK_CLOSE);
	ck_assert_uint_eq(drec_reader_state(reader)->end_mark, DREC_MARK_CLOSE);
	ck_assert_int_eq(drec_reader_alive(reader), 0);
	options = small();
	rec = open_with(&options);
	drec_span(rec, 0, DREC_NAME(rec, "here"), 1, 2);
	read_ring();
	ck_assert_uint_eq(n_seen, 1);
	ck_assert_str_eq(text_of(seen[0].event.name), "here");
}
END_TEST

static const struct {
	uint64_t bytes;
	uint32_t chunk;
	uint64_t expected; /* 0 = refused */
} sizes[] = {
	{1, 0, 512 << 10},	 {1 << 20, 0, 1 << 20},	      {4 << 20, 0, 4 << 20}, {16 << 20, 0, 16 << 20},
	{64 << 20, 0, 64 << 20}, {0, 0, 16 << 20},	      {1 << 20, 16384, 1 << 20}, {64 << 20, 1 << 20, 64 << 20},
	{1 << 20, 1000, 0},	 {1 << 20, 24576, 0},	      {1 << 20, 4096, 0},    {1 << 20, 2 << 20, 0},
	{UINT64_MAX, 0, 0},
};

START_TEST(ring_sizes)
{
	struct drec_options options = {.run_dir = folder, .job = "test", .name = "sized",
				       .ring_bytes = sizes[_i].bytes, .chunk_bytes = sizes[_i].chunk};
	drec *sized = NULL;
	const char *why = NULL;
	int ret = drec_open_strict(&options, &sized, &why);
	if (!sizes[_i].expected) {
		ck_assert_int_eq(ret, -EINVAL);
		ck_assert_ptr_nonnull(why);
		ck_assert_ptr_null(sized);
		return;
	}
	ck_assert_int_eq(ret, 0);
	ck_assert_uint_eq(drec_ring_bytes(sized), sizes[_i].expected);
	drec_span(sized, 0, 0, 1, 2);
	read_path(drec_path(sized));
	ck_assert_uint_eq(n_seen, 1);
	if (sizes[_i].chunk)
		ck_assert_uint_eq(drec_reader_header(reader)->chunk_bytes, sizes[_i].chunk);
}
END_TEST

START_TEST(two_anchors_from_the_start_and_one_a_second)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	int64_t began = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	read_ring();
	ck_assert_uint_ge(drec_reader_state(reader)->anchor_seq, 2);
	int64_t error = drec_reader_mono_ns(reader, drec_now(rec)) - began;
	ck_assert_msg(error > -1000000 && error < 1000000000, "%lld ns", (long long)error);
	/* The next is written by the first chunk taken after it is due. */
	uint64_t due = drec_reader_state(reader)->anchor_due;
	while (drec_now(rec) < due)
		usleep(10000);
	for (int i = 0; i < 1000; i++)
		drec_span(rec, 0, 0, 1, 2);
	read_ring();
	ck_assert_uint_ge(drec_reader_state(reader)->anchor_seq, 3);
}
END_TEST

START_TEST(nothing_for_no_recorder)
{
	struct drec_event event = {.kind = DREC_INSTANT};
	uint64_t site = 0;
	drec_close(NULL);
	ck_assert_ptr_null(drec_path(NULL));
	ck_assert_uint_eq(drec_ring_bytes(NULL), 0);
	ck_assert_uint_eq(drec_lost(NULL, 0), 0);
	ck_assert_uint_eq(drec_name(NULL, "a"), 0);
	ck_assert_uint_eq(drec_name_n(NULL, "a", 1), 0);
	ck_assert_uint_eq(drec_category(NULL, "a"), 0);
	ck_assert_uint_eq(drec_track(NULL, "a", "b"), 0);
	ck_assert_uint_eq(drec_track_n(NULL, DREC_TRACK_OTHER, NULL, 0, "b", 1), 0);
	ck_assert_int_lt(drec_track_rename(NULL, 1, "b", 1), 0);
	ck_assert_int_lt(drec_meta(NULL, "b", 1), 0);
	ck_assert_uint_eq(drec_thread_track(NULL), 0);
	ck_assert_uint_eq(DREC_NAME(NULL, "a"), 0);
	ck_assert_uint_eq(drec_site_name(NULL, &site, "a", 1), 0);
	ck_assert_uint_eq(drec_now(NULL), 0);
	drec_span(NULL, 0, 0, 1, 2);
	ck_assert_uint_eq(drec_begin(NULL, 0), 0);
	drec_end(NULL, 1);
	drec_instant(NULL, 0, 0);
	drec_counter(NULL, 0, 0, 1);
	drec_step_begin(NULL, 1, 0);
	drec_step_end(NULL);
	ck_assert_uint_eq(drec_phase_begin(NULL, 0), 0);
	drec_phase_end(NULL, 1);
	drec_trigger(NULL, "a");
	ck_assert_int_lt(drec_write(NULL, &event), 0);
	drec_note_loss(NULL, DREC_LOSS_SOURCE, 1, 1, 2);
}
END_TEST

static TCase *add(Suite *suite, const char *name)
{
	TCase *tcase = tcase_create(name);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	return tcase;
}

int main(void)
{
	Suite *suite = suite_create("ring");
	TCase *events = add(suite, "events"), *marks = add(suite, "scopes and marks"), *names = add(suite, "names"),
	      *losses = add(suite, "losses"), *ring = add(suite, "ring");
	tcase_add_loop_test(events, every_kind_comes_back_bit_for_bit, DREC_SPAN, DREC_KIND_LIMIT);
	tcase_add_test(events, spans_instants_and_counters);
	tcase_add_test(events, what_is_no_event_harms_no_other);
	tcase_add_test(marks, scopes_nest_and_an_outer_end_ends_inner_ones);
	tcase_add_test(marks, longjmp_out_of_scopes_heals);
	tcase_add_test(marks, deeper_than_the_stack);
	tcase_add_test(marks, steps_and_phases);
	tcase_add_test(marks, a_reason_is_quoted);
	tcase_add_test(names, same_text_same_id);
	tcase_add_test(names, same_id_from_threads_at_once);
	tcase_add_test(names, a_full_dictionary_gives_0_and_counts);
	tcase_add_test(losses, too_big_is_counted_and_told);
	tcase_add_test(losses, too_big_for_the_format);
	tcase_add_test(losses, from_a_signal_handler);
	tcase_add_test(losses, more_threads_than_slots);
	tcase_add_test(losses, everything_pinned);
	tcase_add_test(losses, a_loss_outlives_its_thread);
	tcase_add_test(losses, after_a_thread_s_exit_handlers);
	tcase_add_test(losses, losses_of_a_source);
	tcase_add_test(ring, wrap_counts_what_is_overwritten);
	tcase_add_test(ring, several_recorders_and_reopening);
	tcase_add_loop_test(ring, ring_sizes, 0, (int)(sizeof(sizes) / sizeof(sizes[0])));
	tcase_add_test(ring, two_anchors_from_the_start_and_one_a_second);
	tcase_add_test(ring, nothing_for_no_recorder);
	return test_run(suite);
}
