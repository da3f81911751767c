/* SPDX-License-Identifier: Apache-2.0 */
#include <driverec/freeze.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ring_maker.h"
#include "support.h"

enum { CHUNKS = 64, CHUNK = 8192 };
static const int64_t OFFSET = 1000000000; /* of ring_maker: Unix = MONO + this */

static struct ring_maker *maker;
static struct drec_reader *reader;
static const char *path, *folder;
static char kept[1024];
static struct drec_snapshot_result result;

static void make(void)
{
	folder = test_shm_folder();
	maker = ring_maker_new(CHUNKS, CHUNK, 16);
	maker->header->created_mono_ns = 0;
	path = test_path(folder, "a.ring");
	strcpy(kept, test_path(folder, "a.drec"));
}

static void release(void)
{
	drec_reader_free(reader);
	ring_maker_free(maker);
}

static void save_and_open(void)
{
	struct drec_problem problem;
	ring_maker_save(maker, path);
	int r = drec_reader_open(AT_FDCWD, path, NULL, &reader, &problem);
	ck_assert_msg(r == 0, "%d: %s", r, problem.what);
}

static struct drec_snapshot_request window(uint64_t a, uint64_t b, uint64_t from)
{
	return (struct drec_snapshot_request){.t0_ns = (int64_t)a + OFFSET, .a_ns = (int64_t)a + OFFSET,
					      .b_ns = (int64_t)b + OFFSET, .mono_to_unix_ns = OFFSET, .from = from};
}

static void keep(struct drec_snapshot_request request)
{
	struct drec_problem problem = {0};
	int fd = open(kept, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	assert_ok(drec_snapshot_write(reader, fd, &request, &result));
	close(fd);
	if (!request.no_crc && result.window.reason != DREC_INCOMPLETE_CORRUPT) {
		int r = drec_window_verify(AT_FDCWD, kept, &problem);
		ck_assert_msg(r == 0, "%d: %s", r, problem.what);
	}
}

static void one_chunk(uint32_t slot, uint32_t chunk, uint64_t start, uint64_t end)
{
	ring_maker_take(maker, slot, chunk);
	ring_maker_span(maker, slot, 0, start, start + 1);
	ring_maker_span(maker, slot, 0, end - 1, end);
	ring_maker_close(maker, slot);
}

struct seen {
	uint64_t count;
	uint64_t start[4096];
};

static int note(void *context, const struct drec_event *event, const struct drec_place *place)
{
	struct seen *seen = context;
	(void)place;
	seen->start[seen->count++ % 4096] = event->start;
	return 0;
}

static struct seen seen;

static struct drec_reader *open_kept(void)
{
	struct drec_reader *other;
	struct drec_problem problem;
	struct drec_poll_stats stats = {0};
	memset(&seen, 0, sizeof(seen));
	int r = drec_reader_open(AT_FDCWD, kept, NULL, &other, &problem);
	ck_assert_msg(r == 0, "%d: %s", r, problem.what);
	ck_assert_int_eq(drec_reader_poll(other, note, &seen, 0, &stats), 0);
	ck_assert_uint_eq(stats.corrupt_bytes, 0);
	return other;
}

START_TEST(a_window_reads_as_its_ring)
{
	uint32_t name = ring_maker_name(maker, "allreduce");
	ring_maker_register(maker, 0, 5);
	ring_maker_take(maker, 0, 10);
	for (uint64_t i = 0; i < 100; i++)
		ring_maker_span(maker, 0, name, 1000 + 10 * i, 1005 + 10 * i);
	ring_maker_close(maker, 0);
	ring_maker_take(maker, 0, 3);
	ring_maker_span(maker, 0, name, 5000, 5001);
	ring_maker_push(maker, 0, name, 6000);
	save_and_open();
	keep(window(1000, 10000, 0));
	ck_assert_uint_eq(result.window.reason, DREC_COMPLETE);
	ck_assert_uint_eq(result.window.complete, 1);
	ck_assert_uint_eq(result.events_in_window, 101);
	ck_assert_uint_eq(result.chunks, 2);
	ck_assert_uint_eq(result.data_bytes, 101 * 32);
	struct drec_reader *other = open_kept();
	ck_assert_uint_eq(seen.count, 101);
	for (uint64_t i = 0; i < 100; i++)
		ck_assert_uint_eq(seen.start[i], 1000 + 10 * i);
	unsigned kind;
	const char *text;
	uint32_t bytes;
	assert_ok(drec_reader_text(other, name, &kind, &text, &bytes));
	ck_assert_mem_eq(text, "allreduce", 9);
	struct drec_open_info open_span;
	ck_assert_int_eq(drec_reader_open_spans(other, &open_span, 1), 1);
	ck_assert_uint_eq(open_span.start, 6000);
	ck_assert_uint_eq(open_span.name, name);
	ck_assert_str_eq(drec_reader_header(other)->job, "job");
	ck_assert_int_eq(drec_reader_window(other)->a_ns, 1000 + OFFSET);
	ck_assert_int_eq(drec_reader_alive(other), 0);
	drec_reader_free(other);
}
END_TEST

START_TEST(only_what_meets_the_window_counts)
{
	struct drec_event timeless = {.kind = DREC_META, .flags = DREC_FLAG_NOTIME};
	struct drec_event absolute = {.kind = DREC_INSTANT, .flags = DREC_FLAG_ABS};
	ring_maker_register(maker, 0, 5);
	one_chunk(0, 0, 100, 200);
	ring_maker_take(maker, 0, 1);
	ring_maker_span(maker, 0, 0, 100, 999);
	ring_maker_span(maker, 0, 0, 100, 1000);   /* touches a */
	ring_maker_span(maker, 0, 0, 1500, 1600);
	ring_maker_span(maker, 0, 0, 100, 9000);   /* covers all */
	ring_maker_span(maker, 0, 0, 2000, 9000);  /* touches b */
	ring_maker_span(maker, 0, 0, 2001, 9000);
	ring_maker_append(maker, 0, &timeless, 0);
	absolute.start = (uint64_t)(1500 + OFFSET);
	ring_maker_append(maker, 0, &absolute, 0);
	absolute.start = (uint64_t)(2500 + OFFSET);
	ring_maker_append(maker, 0, &absolute, 0);
	save_and_open();
	keep(window(1000, 2000, 0));
	ck_assert_uint_eq(result.chunks, 1);
	ck_assert_uint_eq(result.events_in_window, 6);
	ck_assert_uint_eq(result.window.complete, 1);
}
END_TEST

START_TEST(overwritten_before_the_pin_is_not_complete)
{
	ring_maker_register(maker, 0, 1);
	one_chunk(0, 0, 100, 200); /* 65 */
	one_chunk(0, 1, 200, 300); /* 66 */
	one_chunk(0, 0, 300, 400); /* 67, over 65 */
	one_chunk(0, 2, 400, 500); /* 68 */
	one_chunk(0, 3, 500, 600); /* 69 */
	save_and_open();
	keep(window(150, 600, 0));
	ck_assert_uint_eq(result.window.reason, DREC_INCOMPLETE_OVERWRITTEN);
	ck_assert_int_ge(result.window.covered_a_ns, 200 + OFFSET);
	/* What is above the last one overwritten is whole, whether pinned or proved. */
	keep(window(150, 600, 66));
	ck_assert_uint_eq(result.window.complete, 1);
	/* 66 lies above what was overwritten, and the chunk after it was taken at 300. */
	keep(window(301, 600, 0));
	ck_assert_uint_eq(result.window.complete, 1);
	keep(window(300, 600, 65));
	ck_assert_uint_eq(result.window.complete, 0);
}
END_TEST

START_TEST(another_thread_s_overwritten_events_count_too)
{
	ring_maker_register(maker, 0, 1);
	ring_maker_register(maker, 1, 2);
	one_chunk(1, 0, 500, 550); /* its thread then ended */
	one_chunk(0, 0, 100, 600);
	one_chunk(0, 1, 600, 700);
	save_and_open();
	keep(window(400, 700, 0));
	ck_assert_uint_eq(result.window.reason, DREC_INCOMPLETE_OVERWRITTEN);
}
END_TEST

START_TEST(losses_inside_are_not_complete)
{
	struct drec_event loss = {.kind = DREC_LOSS, .flags = DREC_FLAG_ID, .category = DREC_LOSS_PINNED_FULL,
				  .start = 1500, .dur_or_value = 9, .id = 1600};
	ring_maker_register(maker, 0, 1);
	ring_maker_take(maker, 0, 0);
	ring_maker_append(maker, 0, &loss, 1600);
	save_and_open();
	keep(window(1000, 2000, 0));
	ck_assert_uint_eq(result.window.reason, DREC_INCOMPLETE_LOST);
	ck_assert_uint_eq(result.window.lost, 9);
	ck_assert_uint_eq(result.events_in_window, 0);
	keep(window(1000, 1499, 0));
	ck_assert_uint_eq(result.window.complete, 1);
}
END_TEST

START_TEST(losses_not_yet_in_the_stream_count)
{
	ring_maker_register(maker, 0, 1);
	maker->slots[0].pending_count = 3;
	maker->slots[0].pending_first = 1500;
	maker->slots[0].pending_last = 1600;
	maker->state->loss[DREC_LOSS_NO_SLOT] = (struct drec_slotless_loss){.count = 2, .first = 1, .last = 1000};
	save_and_open();
	keep(window(1000, 2000, 0));
	ck_assert_uint_eq(result.window.reason, DREC_INCOMPLETE_LOST);
	ck_assert_uint_eq(result.window.lost, 5);
	keep(window(1001, 1400, 0));
	ck_assert_uint_eq(result.window.complete, 1);
}
END_TEST

START_TEST(bytes_that_are_no_events_are_not_complete)
{
	ring_maker_register(maker, 0, 1);
	ring_maker_take(maker, 0, 0);
	for (uint64_t i = 0; i < 4; i++)
		ring_maker_span(maker, 0, 0, 1000 + i, 1001 + i);
	maker->data[64] = 0;
	save_and_open();
	keep(window(1000, 2000, 0));
	ck_assert_uint_eq(result.window.reason, DREC_INCOMPLETE_CORRUPT);
	ck_assert_uint_eq(result.events_in_window, 2);
}
END_TEST

START_TEST(a_ring_younger_than_the_window_says_so)
{
	maker->header->created_mono_ns = 1500;
	save_and_open();
	keep(window(1000, 2000, 0));
	ck_assert_uint_eq(result.window.reason, DREC_INCOMPLETE_LATE_START);
	ck_assert_int_eq(result.window.covered_a_ns, 1500 + OFFSET);
	ck_assert_int_eq(result.window.covered_b_ns, 2000 + OFFSET);
}
END_TEST

START_TEST(reading_before_the_end_says_so)
{
	struct stat st;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	uint64_t later = (uint64_t)(now.tv_sec + 1000) * 1000000000;
	ck_assert_int_eq(stat("/proc/self/ns/pid", &st), 0);
	maker->header->pidns_ino = st.st_ino + 1; /* of a namespace that cannot be seen: alive for now */
	save_and_open();
	keep(window(1000, later, 0));
	ck_assert_uint_eq(result.window.reason, DREC_INCOMPLETE_EARLY);
	/* Nothing more comes from a ring that was closed. */
	maker->state->end_mark = DREC_MARK_CLOSE;
	ring_maker_save(maker, path);
	keep(window(1000, later, 0));
	ck_assert_uint_eq(result.window.complete, 1);
}
END_TEST

START_TEST(beyond_half_the_onset_is_kept)
{
	ring_maker_register(maker, 0, 1);
	/* Orders 65 .. 96 are pinned from 65 on; 97 is overwritten by the last one. */
	for (uint32_t i = 0; i < 33; i++)
		one_chunk(0, i, 100 * i, 100 * i + 99);
	one_chunk(0, 32, 4000, 4099);
	save_and_open();
	keep(window(10, 4050, 65));
	ck_assert_uint_eq(result.window.reason, DREC_INCOMPLETE_BEYOND_HALF);
	ck_assert_int_eq(result.window.covered_a_ns, 10 + OFFSET);
	ck_assert_int_eq(result.window.covered_b_ns, 3199 + OFFSET);
}
END_TEST

START_TEST(a_size_limit_keeps_the_oldest)
{
	struct drec_snapshot_request request = window(0, 1000, 0);
	ring_maker_register(maker, 0, 1);
	one_chunk(0, 5, 100, 200);
	one_chunk(0, 1, 200, 300);
	one_chunk(0, 3, 300, 400);
	save_and_open();
	request.bytes_max = 2 * 64 + 63;
	keep(request);
	ck_assert_uint_eq(result.window.reason, DREC_INCOMPLETE_TRUNCATED);
	ck_assert_uint_eq(result.chunks, 2);
	ck_assert_uint_eq(result.data_bytes, 128);
	ck_assert_int_eq(result.window.covered_b_ns, 300 + OFFSET);
	drec_reader_free(open_kept());
	ck_assert_uint_eq(seen.count, 4);
	ck_assert_uint_eq(seen.start[0], 100);
}
END_TEST

START_TEST(a_clock_that_jumped_says_so)
{
	maker->header->clock = DREC_CLOCK_TSC;
	for (uint64_t i = 0; i < 10; i++) {
		uint64_t ns = i * 1000000000 + (i > 5 ? 50000000 : 0); /* 50 ms asleep after the sixth */
		maker->anchors[i] = (struct drec_anchor){i + 1, i * 1000000000 + 1, (int64_t)ns, (int64_t)ns + OFFSET,
							 0, 7, 0, {0}};
	}
	maker->state->anchor_seq = 10;
	save_and_open();
	keep(window(1500000000, 2500000000, 0));
	ck_assert_uint_eq(result.window.complete, 1);
	keep(window(4500000000, 7500000000, 0));
	ck_assert_uint_eq(result.window.reason, DREC_INCOMPLETE_CLOCK);
}
END_TEST

START_TEST(host_anchors_are_what_the_window_goes_by)
{
	struct drec_anchor host[2] = {{1, 0, 0, 0, 0, 0, 0, {0}}, {2, 2000000000, 1000000000, 0, 0, 0, 0, {0}}};
	struct drec_snapshot_request request = window(500, 1000, 0);
	maker->header->clock = DREC_CLOCK_TSC;
	ring_maker_register(maker, 0, 1);
	one_chunk(0, 0, 1200, 1300);
	save_and_open();
	request.host_anchors = host;
	request.n_host_anchors = 2;
	keep(request);
	ck_assert_uint_eq(result.window.a_ticks, 1000);
	ck_assert_uint_eq(result.window.b_ticks, 2000);
	ck_assert_uint_eq(result.events_in_window, 2);
	struct drec_reader *other = open_kept();
	ck_assert_int_eq(drec_reader_mono_ns(other, 1200), 600);
	ck_assert_int_eq(drec_reader_unix_ns(other, 1200), 600 + OFFSET);
	drec_reader_free(other);
}
END_TEST

START_TEST(a_span_that_ended_meanwhile_is_there_once)
{
	struct drec_open_info open_span;
	ring_maker_register(maker, 0, 1);
	ring_maker_push(maker, 0, 4, 100);
	ring_maker_push(maker, 0, 5, 150);
	ring_maker_take(maker, 0, 0);
	struct drec_event ended = {.kind = DREC_SPAN, .depth = 1, .name = 5, .start = 150, .dur_or_value = 10};
	ring_maker_append(maker, 0, &ended, 160);
	for (uint64_t i = 0; i < 200; i++)
		ring_maker_span(maker, 0, 9, 200 + i, 201 + i);
	ring_maker_close(maker, 0);
	one_chunk(0, 1, 500, 600);
	one_chunk(0, 2, 700, 800);
	save_and_open();
	keep(window(0, 1000, 0));
	struct drec_reader *other = open_kept();
	ck_assert_int_eq(drec_reader_open_spans(other, &open_span, 1), 1);
	ck_assert_uint_eq(open_span.name, 4);
	drec_reader_free(other);
}
END_TEST

START_TEST(without_the_second_pass_it_is_not_complete)
{
	struct drec_snapshot_request request = window(0, 1000, 0);
	ring_maker_register(maker, 0, 1);
	one_chunk(0, 0, 100, 200);
	save_and_open();
	request.no_crc = 1;
	keep(request);
	ck_assert_uint_eq(result.window.complete, 0);
	ck_assert_uint_eq(result.window.reason, DREC_INCOMPLETE_UNSEALED);
	ck_assert_int_eq(drec_window_verify(AT_FDCWD, kept, NULL), -EBADMSG);
	int fd = open(kept, O_RDWR | O_CLOEXEC);
	assert_ok(drec_window_seal(fd));
	assert_ok(drec_window_seal(fd));
	close(fd);
	assert_ok(drec_window_verify(AT_FDCWD, kept, NULL));
	struct drec_reader *other = open_kept();
	ck_assert_uint_eq(drec_reader_window(other)->complete, 1);
	ck_assert_uint_eq(drec_reader_window(other)->events, 2);
	drec_reader_free(other);
}
END_TEST

START_TEST(every_flipped_bit_of_content_is_found)
{
	size_t size, found = 0, tried = 0;
	ring_maker_name(maker, "name");
	ring_maker_register(maker, 0, 1);
	one_chunk(0, 0, 100, 200);
	save_and_open();
	keep(window(0, 1000, 0));
	char *bytes = test_read_file(kept, &size);
	const struct drec_header *header = (const void *)bytes;
	for (unsigned i = 0; i < header->n_sections; i++) {
		const struct drec_section *section = &header->section[i];
		uint64_t used = section->type == DREC_SEC_DATA ? 64 : section->bytes;
		for (int k = 0; used && k < 20; k++, tried++) {
			uint64_t at = section->offset + test_random_below(used);
			char flip = (char)(1 << test_random_below(8));
			bytes[at] = (char)(bytes[at] ^ flip);
			test_write_file(kept, bytes, size);
			found += drec_window_verify(AT_FDCWD, kept, NULL) < 0;
			bytes[at] = (char)(bytes[at] ^ flip);
		}
	}
	ck_assert_uint_gt(tried, 100);
	ck_assert_uint_eq(found, tried);
	free(bytes);
}
END_TEST

START_TEST(sparse_rings_are_not_mapped_and_give_the_same)
{
	ring_maker_register(maker, 0, 1);
	one_chunk(0, 0, 100, 200);
	save_and_open();
	int fd = open(path, O_RDWR | O_CLOEXEC);
	off_t hole = (off_t)(maker->header->file_bytes - 4 * DREC_PAGE_BYTES);
	ck_assert_int_eq(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, hole, 4 * DREC_PAGE_BYTES), 0);
	close(fd);
	keep(window(0, 1000, 0));
	ck_assert_uint_eq(result.events_in_window, 2);
	struct stat st;
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_lt((uint64_t)st.st_blocks * 512, maker->header->file_bytes);
}
END_TEST

START_TEST(a_ring_cut_short_gives_no_window)
{
	struct drec_snapshot_request request = window(0, 1000, 0);
	ring_maker_register(maker, 0, 1);
	one_chunk(0, CHUNKS - 1, 100, 200);
	save_and_open();
	ck_assert_int_eq(truncate(path, 4096 * 20), 0);
	int fd = open(kept, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_eq(drec_snapshot_write(reader, fd, &request, &result), -EBADMSG);
	close(fd);
	struct drec_reader *other;
	ck_assert_int_eq(drec_reader_open(AT_FDCWD, kept, NULL, &other, NULL), -EBADMSG);
}
END_TEST

#define ADD(suite, name, ...)                                                                     \
	do {                                                                                      \
		const TTest *const tests_[] = {__VA_ARGS__};                                      \
		add(suite, name, tests_, sizeof(tests_) / sizeof(tests_[0]));                     \
	} while (0)

static void add(Suite *suite, const char *name, const TTest *const *tests, size_t count)
{
	TCase *tcase = tcase_create(name);
	tcase_set_timeout(tcase, 20);
	tcase_add_checked_fixture(tcase, make, release);
	for (size_t i = 0; i < count; i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
}

int main(void)
{
	Suite *suite = suite_create("snapshot");
	ADD(suite, "content", a_window_reads_as_its_ring, only_what_meets_the_window_counts,
	    a_size_limit_keeps_the_oldest, host_anchors_are_what_the_window_goes_by,
	    a_span_that_ended_meanwhile_is_there_once);
	ADD(suite, "complete", overwritten_before_the_pin_is_not_complete,
	    another_thread_s_overwritten_events_count_too, losses_inside_are_not_complete,
	    losses_not_yet_in_the_stream_count, bytes_that_are_no_events_are_not_complete,
	    a_ring_younger_than_the_window_says_so, reading_before_the_end_says_so, beyond_half_the_onset_is_kept,
	    a_clock_that_jumped_says_so);
	ADD(suite, "sealing", without_the_second_pass_it_is_not_complete, every_flipped_bit_of_content_is_found);
	ADD(suite, "hostile rings", sparse_rings_are_not_mapped_and_give_the_same, a_ring_cut_short_gives_no_window);
	return test_run(suite);
}
