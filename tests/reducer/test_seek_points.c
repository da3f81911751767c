/* SPDX-License-Identifier: Apache-2.0 */
/* Seek points beyond their room, where every second one goes and what is left is still right; and failing files. */
#include <reducer/slices.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "input_state.h"
#include "support.h"

enum { BLOCK = 4096, BLOCKS = 240 << 10, SLICES = 40 };

static void fill_block(char *block, unsigned number)
{
	memset(block, 'x', BLOCK);
	int bytes = snprintf(block, 32, "block %u\n", number);
	block[bytes] = 'x';
}

static void write_packed(const char *path)
{
	char block[BLOCK];
	gzFile file = gzopen(path, "wb1");
	ck_assert_ptr_nonnull(file);
	for (unsigned i = 0; i < BLOCKS; i++) {
		fill_block(block, i);
		ck_assert_int_eq(gzwrite(file, block, BLOCK), BLOCK);
	}
	ck_assert_int_eq(gzclose(file), Z_OK);
}

static struct reducer_seek_points *take_points(const char *path)
{
	struct reducer_input *input;
	struct reducer_seek_points *points = NULL;
	char *buffer = malloc(1 << 20);
	int64_t got;
	uint64_t bytes = 0;
	ck_assert_ptr_nonnull(buffer);
	assert_ok(reducer_input_open(path, &input, NULL));
	assert_ok(reducer_input_keep_seek_points(input));
	while ((got = reducer_input_read(input, buffer, 1 << 20)) > 0)
		bytes += (uint64_t)got;
	ck_assert_int_eq(got, 0);
	ck_assert_uint_eq(bytes, (uint64_t)BLOCKS * BLOCK);
	assert_ok(reducer_input_take_seek_points(input, &points));
	reducer_input_free(input);
	free(buffer);
	return points;
}

static struct reducer_slice slices[SLICES];

static int check_slice(void *context, size_t index, const char *data, size_t bytes)
{
	char block[BLOCK];
	unsigned *count = context;
	uint64_t offset = slices[index].offset;
	fill_block(block, (unsigned)(offset / BLOCK));
	ck_assert_uint_eq(index, *count);
	ck_assert_uint_eq(bytes, slices[index].bytes);
	ck_assert_mem_eq(data, block + offset % BLOCK, bytes);
	++*count;
	return 0;
}

START_TEST(thinned_out)
{
	const char *path = test_path(test_folder(), "long.gz");
	write_packed(path);
	struct reducer_seek_points *points = take_points(path);
	for (unsigned i = 0; i < SLICES; i++)
		slices[i] = (struct reducer_slice){(uint64_t)(BLOCKS / SLICES) * BLOCK * i + test_random_below(64), 500};
	for (unsigned threads = 1; threads <= 2; threads++) {
		unsigned count = 0;
		assert_ok(reducer_slices_read(path, points, slices, SLICES, threads, check_slice, &count));
		ck_assert_uint_eq(count, SLICES);
	}
	reducer_seek_points_free(points);
}
END_TEST

/* The descriptor is the input's own from the call on, also where it fails. */
START_TEST(files_that_fail)
{
	struct reducer_input *input = NULL;
	const char *path = test_path(test_folder(), "file");
	int ends[2];
	test_write_file(path, "[]", 2);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_ok(reducer_input_from_fd(fd, &input, NULL));
	close(fd);
	ck_assert_int_eq(reducer_input_keep_seek_points(input), -EBADF);
	reducer_input_free(input);
	assert_ok(reducer_input_open(path, &input, NULL));
	assert_ok(reducer_input_keep_seek_points(input));
	struct reducer_seek_points *points = NULL;
	assert_ok(reducer_input_take_seek_points(input, &points));
	reducer_input_free(input);
	input = NULL;
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	ck_assert_int_eq(input_from_point(ends[0], points, 0, &input), -ESPIPE);
	ck_assert_ptr_null(input);
	ck_assert_int_eq(fcntl(ends[0], F_GETFD), -1);
	close(ends[1]);
	reducer_seek_points_free(points);
	reducer_seek_points_free(NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("seek_points");
	TCase *tcase = tcase_create("thinned out");
	tcase_add_test(tcase, thinned_out);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("files that fail");
	tcase_add_test(tcase, files_that_fail);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
