/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of packed files against the same pieces of the text they were packed from. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <reducer/slices.h>

#include "support.h"

enum { TEXT_BYTES = 30 << 20, SLICES_MAX = 200000 };

static char text[TEXT_BYTES + 64];
static struct reducer_slice slice[SLICES_MAX];

/* Lines of words and numbers: neither without repetition nor trivial to pack. */
static void make_text(void)
{
	for (size_t at = 0; at < TEXT_BYTES;)
		at += (size_t)snprintf(text + at, 64, "{\"name\": \"aten::op%u\", \"ts\": %u.%03u}\n",
				       (unsigned)test_random_below(50), (unsigned)test_random_below(1u << 30),
				       (unsigned)test_random_below(1000));
}

static size_t pack_gzip(const char *from, size_t bytes, char *to, size_t room)
{
	z_stream z = {0};
	ck_assert_int_eq(deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (unsigned char *)(uintptr_t)from;
	z.avail_in = (unsigned)bytes;
	z.next_out = (unsigned char *)to;
	z.avail_out = (unsigned)room;
	ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
	size_t made = room - z.avail_out;
	deflateEnd(&z);
	return made;
}

enum form { FORM_PLAIN, FORM_GZIP, FORM_MEMBERS, FORM_ZSTD, FORM_FRAMES, FORM_COUNT };

static const char *write_packed(enum form form, size_t *ret_bytes)
{
	const char *path = test_path(test_folder(), "packed");
	size_t room = TEXT_BYTES + (1 << 20), bytes = 0;
	char *packed = malloc(room);
	ck_assert_ptr_nonnull(packed);
	size_t member = form == FORM_MEMBERS || form == FORM_FRAMES ? 3333333 : TEXT_BYTES;
	for (size_t at = 0; form != FORM_PLAIN && at < TEXT_BYTES; at += member) {
		size_t some = TEXT_BYTES - at < member ? TEXT_BYTES - at : member;
		if (form == FORM_GZIP || form == FORM_MEMBERS)
			bytes += pack_gzip(text + at, some, packed + bytes, room - bytes);
		else
			bytes += ZSTD_compress(packed + bytes, room - bytes, text + at, some, 1);
	}
	if (form == FORM_PLAIN)
		test_write_file(path, text, bytes = TEXT_BYTES);
	else
		test_write_file(path, packed, bytes);
	free(packed);
	if (ret_bytes)
		*ret_bytes = bytes;
	return path;
}

static struct reducer_seek_points *points_of(const char *path, uint64_t *ret_bytes)
{
	static char buffer[200000];
	struct reducer_input *input;
	struct reducer_seek_points *points;
	struct reducer_problem problem;
	int64_t got;
	assert_ok(reducer_input_open(path, &input, &problem));
	assert_ok(reducer_input_keep_seek_points(input));
	while ((got = reducer_input_read(input, buffer, 1 + test_random_below(sizeof(buffer)))) > 0)
		;
	ck_assert_int_eq(got, 0);
	*ret_bytes = reducer_input_offset(input);
	assert_ok(reducer_input_take_seek_points(input, &points));
	ck_assert_int_eq(reducer_input_take_seek_points(input, &points), -ENOENT);
	reducer_input_free(input);
	return points;
}

/* Slices at random, `share` of 1000 of the text about, each up to `most` bytes. */
static size_t choose_slices(uint64_t limit, unsigned share, uint32_t most)
{
	size_t n = 0;
	for (uint64_t at = test_random_below(1000); n < SLICES_MAX;) {
		uint32_t bytes = (uint32_t)test_random_below(most + 1);
		if (at > limit || bytes > limit - at)
			break;
		slice[n++] = (struct reducer_slice){at, bytes};
		at += bytes + (share >= 1000 ? 0 : test_random_below(1 + (uint64_t)most * (1000 - share) / share));
	}
	return n;
}

struct heard {
	size_t n;
	size_t stop_at;
};

static int hear(void *context, size_t index, const char *data, size_t bytes)
{
	struct heard *heard = context;
	ck_assert_uint_eq(index, heard->n);
	ck_assert_uint_eq(bytes, slice[index].bytes);
	ck_assert_msg(memcmp(data, text + slice[index].offset, bytes) == 0, "slice %zu differs", index);
	heard->n++;
	return heard->n == heard->stop_at ? 17 : 0;
}

static int count_one(void *context, size_t index, const char *data, size_t bytes)
{
	size_t *count = context;
	(void)data, (void)bytes;
	ck_assert_uint_le(index, 1);
	++*count;
	return 0;
}

static void assert_slices(const char *path, const struct reducer_seek_points *points, size_t count)
{
	for (unsigned threads = 0; threads <= 3; threads++) {
		struct heard heard = {0};
		ck_assert_int_eq(reducer_slices_read(path, points, slice, count, threads, hear, &heard), 0);
		ck_assert_uint_eq(heard.n, count);
	}
}

START_TEST(any_slices_of_any_form)
{
	uint64_t bytes;
	const char *path = write_packed((enum form)_i, NULL);
	struct reducer_seek_points *points = points_of(path, &bytes);
	ck_assert_uint_eq(bytes, TEXT_BYTES);
	assert_slices(path, points, 0);
	assert_slices(path, points, choose_slices(bytes, 10, 200));
	assert_slices(path, points, choose_slices(bytes, 300, 5000));
	assert_slices(path, points, choose_slices(bytes, 1000, 3 << 20));
	assert_slices(path, points, choose_slices(bytes, 2, 300000));
	slice[0] = (struct reducer_slice){(8 << 20) - 100, 200 + 9 * 32768};
	slice[1] = (struct reducer_slice){TEXT_BYTES - 1, 1};
	assert_slices(path, points, 2);
	assert_slices(path, NULL, 2);
	slice[0] = (struct reducer_slice){0, TEXT_BYTES};
	assert_slices(path, points, 1);
	reducer_seek_points_free(points);
}
END_TEST

START_TEST(cut_files_give_what_is_there)
{
	size_t packed;
	uint64_t bytes;
	const char *path = write_packed(FORM_GZIP, &packed);
	ck_assert_int_eq(truncate(path, (off_t)(packed * 3 / 4)), 0);
	struct reducer_seek_points *points = points_of(path, &bytes);
	ck_assert_uint_gt(bytes, TEXT_BYTES / 2);
	assert_slices(path, points, choose_slices(bytes, 500, 10000));
	slice[0] = (struct reducer_slice){bytes - 10, 10};
	slice[1] = (struct reducer_slice){bytes, 1};
	for (unsigned threads = 1; threads <= 2; threads++) {
		struct heard heard = {0};
		ck_assert_int_eq(reducer_slices_read(path, points, slice, 2, threads, hear, &heard), -ENODATA);
		ck_assert_uint_eq(heard.n, 1);
	}
	reducer_seek_points_free(points);
}
END_TEST

/* Whatever the first reading gave before the damage, the second one gives. */
START_TEST(damaged_files_give_what_was_read)
{
	size_t packed;
	uint64_t bytes;
	const char *path = write_packed(FORM_GZIP, NULL);
	char *data = test_read_file(path, &packed);
	for (int round = 0; round < 10; round++) {
		size_t at = packed / 4 + test_random_below(packed / 2), length = 3000;
		char *copy = malloc(packed);
		memcpy(copy, data, packed);
		for (size_t i = 0; i < length; i++)
			copy[at + i] = (char)test_random();
		test_write_file(path, copy, packed);
		free(copy);
		struct reducer_seek_points *points = points_of(path, &bytes);
		/* What the damaged part says is anything, but what stands before it is known. */
		slice[0] = (struct reducer_slice){0, 1000};
		size_t there = 0;
		ck_assert_int_eq(reducer_slices_read(path, points, slice, 1, 1, count_one, &there), 0);
		slice[1] = (struct reducer_slice){bytes - 10, 10};
		for (unsigned threads = 1; threads <= 2; threads++)
			ck_assert_int_eq(reducer_slices_read(path, points, slice, 2, threads, count_one, &there), 0);
		ck_assert_uint_eq(there, 5);
		reducer_seek_points_free(points);
	}
	free(data);
}
END_TEST

START_TEST(a_changed_file_is_told)
{
	uint64_t bytes;
	const char *path = write_packed(_i ? FORM_PLAIN : FORM_GZIP, NULL);
	struct reducer_seek_points *points = points_of(path, &bytes);
	struct heard heard = {0};
	FILE *file = fopen(path, "a");
	fputc('\n', file);
	fclose(file);
	slice[0] = (struct reducer_slice){5, 5};
	ck_assert_int_eq(reducer_slices_read(path, points, slice, 1, 2, hear, &heard), -ESTALE);
	ck_assert_uint_eq(heard.n, 0);
	reducer_seek_points_free(points);
}
END_TEST

START_TEST(wrong_slices_and_early_ends)
{
	uint64_t bytes;
	const char *path = write_packed(FORM_GZIP, NULL);
	struct reducer_seek_points *points = points_of(path, &bytes);
	size_t count = choose_slices(bytes, 500, 1000);
	for (unsigned threads = 1; threads <= 3; threads++) {
		struct heard heard = {.stop_at = count * threads / 4};
		ck_assert_int_eq(reducer_slices_read(path, points, slice, count, threads, hear, &heard), 17);
		ck_assert_uint_eq(heard.n, heard.stop_at);
	}
	slice[0] = (struct reducer_slice){5, 5};
	slice[1] = (struct reducer_slice){9, 1};
	struct heard heard = {0};
	ck_assert_int_eq(reducer_slices_read(path, points, slice, 2, 1, hear, &heard), -EINVAL);
	ck_assert_int_eq(reducer_slices_read("/nonexistent", points, slice, 1, 1, hear, &heard), -ENOENT);
	reducer_seek_points_free(points);
}
END_TEST

START_TEST(pipes_take_no_points)
{
	int end[2];
	struct reducer_input *input;
	struct reducer_seek_points *points;
	assert_ok(pipe(end));
	ck_assert_int_eq(write(end[1], "hello", 5), 5);
	close(end[1]);
	assert_ok(reducer_input_from_fd(end[0], &input, NULL));
	assert_ok(reducer_input_keep_seek_points(input));
	char byte;
	ck_assert_int_eq(reducer_input_read(input, &byte, 1), 1);
	ck_assert_int_eq(reducer_input_keep_seek_points(input), -EINVAL);
	ck_assert_int_eq(reducer_input_take_seek_points(input, &points), -ENOENT);
	reducer_input_free(input);
	close(end[0]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("slices");
	TCase *forms = tcase_create("forms"), *cut = tcase_create("cut"), *changed = tcase_create("changed");
	TCase *wrong = tcase_create("wrong"), *pipes = tcase_create("pipes");
	TCase *const all[] = {forms, cut, changed, wrong, pipes};
	tcase_add_loop_test(forms, any_slices_of_any_form, 0, FORM_COUNT);
	tcase_add_test(cut, cut_files_give_what_is_there);
	tcase_add_test(cut, damaged_files_give_what_was_read);
	tcase_add_loop_test(changed, a_changed_file_is_told, 0, 2);
	tcase_add_test(wrong, wrong_slices_and_early_ends);
	tcase_add_test(pipes, pipes_take_no_points);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		tcase_add_unchecked_fixture(all[i], make_text, NULL);
		tcase_set_timeout(all[i], 60);
		suite_add_tcase(suite, all[i]);
	}
	return test_run(suite);
}
