/* SPDX-License-Identifier: Apache-2.0 */
#include <driverec/freeze.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "ring_maker.h"
#include "support.h"

enum { CHUNKS = 64, CHUNK = 8192 };

static struct ring_maker *maker;
static struct drec_reader *reader;
static const char *path;

static void make(void)
{
	maker = ring_maker_new(CHUNKS, CHUNK, 16);
	path = test_path(test_shm_folder(), "a.ring");
}

static void release(void)
{
	drec_reader_free(reader);
	ring_maker_free(maker);
}

static void save_and_open(int writable)
{
	struct drec_reader_options options = {.writable = writable};
	struct drec_problem problem;
	ring_maker_save(maker, path);
	int r = drec_reader_open(AT_FDCWD, path, &options, &reader, &problem);
	ck_assert_msg(r == 0, "%d: %s", r, problem.what);
}

static struct drec_pin pin_at(uint64_t from)
{
	struct drec_pin pin = {.from = from, .t0_ns = 3, .a_ns = 2, .b_ns = 4, .trigger = "stall"};
	memset(pin.incident, 0xab, sizeof(pin.incident));
	return pin;
}

/* One span in a chunk of its own. */
static void one_chunk(uint32_t slot, uint32_t chunk, uint64_t start, uint64_t end)
{
	ring_maker_take(maker, slot, chunk);
	ring_maker_span(maker, slot, 0, start, end);
	ring_maker_close(maker, slot);
}

START_TEST(a_pin_is_what_the_ring_has)
{
	struct drec_pin pin = pin_at(77), pins[DREC_PINS_MAX];
	unsigned entry = 99;
	save_and_open(1);
	ck_assert_int_eq(drec_reader_writable(reader), 1);
	ck_assert_int_eq(drec_pin_set(reader, &pin, 0, &entry), 0);
	ck_assert_uint_eq(entry, 0);
	assert_ok(drec_pins_read(reader, pins));
	ck_assert_uint_eq(pins[0].active, 1);
	ck_assert_uint_eq(pins[0].from, 77);
	ck_assert_str_eq(pins[0].trigger, "stall");
	ck_assert_mem_eq(pins[0].incident, pin.incident, 16);
	ck_assert_int_eq(pins[0].b_ns, 4);
	ck_assert_uint_eq(pins[1].active, 0);
	assert_ok(drec_pin_release(reader, entry));
	assert_ok(drec_pins_read(reader, pins));
	ck_assert_uint_eq(pins[0].active, 0);
}
END_TEST

START_TEST(a_move_is_on_before_the_old_one_is_off)
{
	struct drec_pin pin = pin_at(77), pins[DREC_PINS_MAX];
	unsigned entry, moved;
	save_and_open(1);
	assert_ok(drec_pin_set(reader, &pin, 0, &entry));
	ck_assert_int_eq(drec_pin_move(reader, entry, 76, &moved), -EINVAL);
	assert_ok(drec_pin_move(reader, entry, 90, &moved));
	ck_assert_uint_ne(moved, entry);
	assert_ok(drec_pins_read(reader, pins));
	ck_assert_uint_eq(pins[entry].active, 0);
	ck_assert_uint_eq(pins[moved].active, 1);
	ck_assert_uint_eq(pins[moved].from, 90);
	ck_assert_mem_eq(pins[moved].incident, pin.incident, 16);
	ck_assert_int_eq(drec_pin_move(reader, entry, 95, &moved), -EINVAL);
}
END_TEST

START_TEST(sixteen_pins_and_no_more)
{
	struct drec_pin pin = pin_at(77);
	unsigned entry;
	save_and_open(1);
	for (unsigned i = 0; i < DREC_PINS_MAX; i++)
		ck_assert_int_eq(drec_pin_set(reader, &pin, 0, &entry), 0);
	entry = 99;
	ck_assert_int_eq(drec_pin_set(reader, &pin, 0, &entry), -EBUSY);
	ck_assert_uint_eq(entry, 99);
	assert_ok(drec_pin_release(reader, 7));
	ck_assert_int_eq(drec_pin_set(reader, &pin, 0, &entry), 0);
	ck_assert_uint_eq(entry, 7);
}
END_TEST

START_TEST(half_the_ring_and_no_more)
{
	struct drec_pin low = pin_at(1), high = pin_at(20);
	unsigned entry;
	save_and_open(1);
	ck_assert_int_eq(drec_pin_set(reader, &low, 0, &entry), 0);
	ck_assert_int_eq(drec_pin_set(reader, &high, 0, &entry), -EDQUOT);
	ck_assert_int_eq(drec_pin_set(reader, &high, 1, &entry), 1);
	ck_assert_uint_eq(entry, 1);
}
END_TEST

START_TEST(reading_only_is_said)
{
	struct drec_pin pin = pin_at(1);
	unsigned entry;
	save_and_open(0);
	ck_assert_int_eq(drec_pin_set(reader, &pin, 0, &entry), -EROFS);
	ck_assert_int_eq(drec_pin_release(reader, 0), -EROFS);
}
END_TEST

START_TEST(another_daemon_s_lock_is_waited_for_but_not_for_ever)
{
	struct drec_pin pin = pin_at(1);
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = 1};
	unsigned entry;
	save_and_open(1);
	int other = open(path, O_RDWR);
	ck_assert_int_eq(fcntl(other, F_OFD_SETLK, &lock), 0);
	ck_assert_int_eq(drec_pin_set(reader, &pin, 0, &entry), -EBUSY);
	close(other);
	ck_assert_int_eq(drec_pin_set(reader, &pin, 0, &entry), 0);
}
END_TEST

START_TEST(from_is_the_first_chunk_that_reaches_the_time)
{
	uint64_t from;
	ring_maker_register(maker, 0, 1);
	ring_maker_register(maker, 1, 2);
	one_chunk(0, 0, 100, 200);   /* order 65 */
	one_chunk(1, 1, 50, 400);    /* order 66 */
	one_chunk(0, 2, 200, 300);   /* order 67 */
	one_chunk(0, 3, 300, 500);   /* order 68 */
	save_and_open(0);
	assert_ok(drec_pin_from(reader, 350, &from));
	ck_assert_uint_eq(from, 66);
	assert_ok(drec_pin_from(reader, 450, &from));
	ck_assert_uint_eq(from, 68);
	/* Nothing closed reaches it: what is open, or comes, closes from `tail` on. */
	assert_ok(drec_pin_from(reader, 600, &from));
	ck_assert_uint_eq(from, 69);
	assert_ok(drec_pin_from(reader, 0, &from));
	ck_assert_uint_eq(from, 65);
}
END_TEST

START_TEST(from_does_not_hide_what_was_overwritten)
{
	uint64_t from;
	ring_maker_register(maker, 0, 1);
	one_chunk(0, 0, 100, 200); /* 65 */
	one_chunk(0, 1, 200, 300); /* 66 */
	one_chunk(0, 0, 300, 400); /* 67, over 65 */
	one_chunk(0, 2, 400, 500); /* 68 */
	one_chunk(0, 3, 500, 600); /* 69 */
	save_and_open(0);
	assert_ok(drec_pin_from(reader, 0, &from));
	ck_assert_uint_le(from, 65);
	/* 66 lies above what was overwritten, and the chunk after it was taken at 300. */
	assert_ok(drec_pin_from(reader, 301, &from));
	ck_assert_uint_eq(from, 67);
	assert_ok(drec_pin_from(reader, 300, &from));
	ck_assert_uint_le(from, 65);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pins");
	TCase *set = tcase_create("set, move, release");
	tcase_add_checked_fixture(set, make, release);
	tcase_add_test(set, a_pin_is_what_the_ring_has);
	tcase_add_test(set, a_move_is_on_before_the_old_one_is_off);
	tcase_add_test(set, sixteen_pins_and_no_more);
	tcase_add_test(set, half_the_ring_and_no_more);
	tcase_add_test(set, reading_only_is_said);
	tcase_add_test(set, another_daemon_s_lock_is_waited_for_but_not_for_ever);
	suite_add_tcase(suite, set);
	TCase *from = tcase_create("from");
	tcase_add_checked_fixture(from, make, release);
	tcase_add_test(from, from_is_the_first_chunk_that_reaches_the_time);
	tcase_add_test(from, from_does_not_hide_what_was_overwritten);
	suite_add_tcase(suite, from);
	return test_run(suite);
}
