/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a file, whatever it is packed with and wherever it was cut. Built twice: with the inflater that
 * the build has, and with zlib.
 */
#include <reducer/chrome.h>
#include <reducer/input.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "support.h"

enum { EVENTS = 20000, EVENT_BYTES_MAX = 80, PACKED_MAX = 4 << 20 };

/* What has been packed so far. */
struct file {
	unsigned char *bytes;
	size_t count;
};

struct reading {
	char *text;
	size_t count;
	int64_t result; /* of the last read */
	enum reducer_packing packing;
	struct reducer_problem problem; /* what = "": none */
};

/* A trace of numbered events that do not pack away to nothing; one a line, closed by its bracket. */
static char *make_trace(unsigned events, size_t *ret_bytes)
{
	char *text = malloc((size_t)events * EVENT_BYTES_MAX + 16);
	size_t used = 1;
	uint32_t random = 1;
	ck_assert_ptr_nonnull(text);
	text[0] = '[';
	for (unsigned i = 0; i < events; i++) {
		random = random * 1664525u + 1013904223u;
		used += (size_t)sprintf(text + used, "%s\n{\"ph\":\"i\",\"name\":\"event %u\",\"ts\":%u,\"id\":%u}",
					i ? "," : "", i, i, random);
	}
	used += (size_t)sprintf(text + used, "\n]\n");
	*ret_bytes = used;
	return text;
}

static void file_begin(struct file *file)
{
	file->bytes = malloc(PACKED_MAX);
	file->count = 0;
	ck_assert_ptr_nonnull(file->bytes);
}

static void file_add(struct file *file, const void *bytes, size_t count)
{
	ck_assert_uint_le(count, PACKED_MAX - file->count);
	memcpy(file->bytes + file->count, bytes, count);
	file->count += count;
}

static void file_add_gzip(struct file *file, const char *text, size_t count)
{
	z_stream deflating = {0};
	ck_assert_int_eq(deflateInit2(&deflating, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	deflating.next_in = (z_const Bytef *)(uintptr_t)text;
	deflating.avail_in = (unsigned)count;
	deflating.next_out = file->bytes + file->count;
	deflating.avail_out = (unsigned)(PACKED_MAX - file->count);
	ck_assert_int_eq(deflate(&deflating, Z_FINISH), Z_STREAM_END);
	file->count += deflating.total_out;
	deflateEnd(&deflating);
}

static void file_add_zstd(struct file *file, const char *text, size_t count)
{
	size_t packed = ZSTD_compress(file->bytes + file->count, PACKED_MAX - file->count, text, count, 3);
	ck_assert(!ZSTD_isError(packed));
	file->count += packed;
}

static void file_add_packed(struct file *file, enum reducer_packing packing, const char *text, size_t count)
{
	if (packing == REDUCER_GZIP)
		file_add_gzip(file, text, count);
	else
		file_add_zstd(file, text, count);
}

static const char *file_save(const struct file *file, const char *name)
{
	static const char *folder;
	if (!folder)
		folder = test_folder();
	const char *path = test_path(folder, name);
	test_write_file(path, file->bytes, file->count);
	return path;
}

/* Reads to the end in pieces of `piece` bytes. */
static struct reading read_all(struct reducer_input *input, size_t piece)
{
	struct reading reading = {.packing = reducer_input_packing(input)};
	size_t room = (size_t)EVENTS * EVENT_BYTES_MAX * 4;
	reading.text = malloc(room);
	ck_assert_ptr_nonnull(reading.text);
	do {
		ck_assert_uint_le(piece, room - reading.count);
		reading.result = reducer_input_read(input, reading.text + reading.count, piece);
		if (reading.result > 0)
			reading.count += (size_t)reading.result;
	} while (reading.result > 0);
	ck_assert_uint_eq(reducer_input_offset(input), reading.count);
	if (reducer_input_problem(input))
		reading.problem = *reducer_input_problem(input);
	return reading;
}

static struct reading read_path(const char *path, size_t piece)
{
	struct reducer_input *input = NULL;
	struct reducer_problem problem = {0};
	int result = reducer_input_open(path, &input, &problem);
	ck_assert_msg(result == 0, "%s: %s", path, problem.what);
	struct reading reading = read_all(input, piece);
	ck_assert_int_eq(reading.result, 0);
	reducer_input_free(input);
	return reading;
}

static void ck_text(const struct reading *reading, const char *text, size_t count)
{
	ck_assert_uint_eq(reading->count, count);
	ck_assert_mem_eq(reading->text, text, count);
}

/* --- packings --- */

START_TEST(several_members)
{
	static const enum reducer_packing packings[] = {REDUCER_GZIP, REDUCER_ZSTD};
	size_t bytes, third;
	char *text = make_trace(EVENTS, &bytes);
	struct file file;
	file_begin(&file);
	third = bytes / 3;
	file_add_packed(&file, packings[_i], text, third);
	file_add_packed(&file, packings[_i], "", 0);
	file_add_packed(&file, packings[_i], text + third, 1);
	file_add_packed(&file, packings[_i], text + third + 1, bytes - third - 1);
	const char *path = file_save(&file, "several");
	static const size_t pieces[] = {1 << 20, 4096, 7};
	for (size_t i = 0; i < 3; i++) {
		struct reading reading = read_path(path, pieces[i]);
		ck_assert_int_eq(reading.packing, packings[_i]);
		ck_assert_str_eq(reading.problem.what, "");
		ck_text(&reading, text, bytes);
		free(reading.text);
	}
	free(file.bytes);
	free(text);
}
END_TEST

/* Cut after `kept` packed bytes: all that could be unpacked is a beginning of the text, and the cut is told. */
static void ck_cut(const struct file *file, size_t kept, const char *text, size_t bytes)
{
	struct file cut = {file->bytes, kept};
	struct reading reading = read_path(file_save(&cut, "cut"), 65536);
	ck_assert_msg(reading.count <= bytes && memcmp(reading.text, text, reading.count) == 0,
		      "cut after %zu bytes: other text", kept);
	ck_assert_msg(strstr(reading.problem.what, "cut off"), "cut after %zu bytes: \"%s\"", kept,
		      reading.problem.what);
	ck_assert_uint_eq(reading.problem.offset, reading.count);
	free(reading.text);
}

START_TEST(cut_anywhere)
{
	static const enum reducer_packing packings[] = {REDUCER_GZIP, REDUCER_ZSTD};
	size_t bytes;
	char *text = make_trace(300, &bytes);
	struct file file;
	file_begin(&file);
	file_add_packed(&file, packings[_i], text, bytes);
	for (size_t kept = 4; kept < file.count; kept += kept < 64 || file.count - kept < 64 ? 1 : 37)
		ck_cut(&file, kept, text, bytes);
	free(file.bytes);
	free(text);
}
END_TEST

static int count_event(void *context, const struct reducer_event *event)
{
	unsigned *count = context;
	char name[32];
	snprintf(name, sizeof(name), "event %u", *count);
	ck_assert_uint_eq(event->name.bytes, strlen(name));
	ck_assert_mem_eq(event->name.data, name, event->name.bytes);
	(*count)++;
	return 0;
}

START_TEST(whole_events_before_the_cut)
{
	static const enum reducer_packing packings[] = {REDUCER_GZIP, REDUCER_ZSTD};
	size_t bytes, whole = 0;
	unsigned count = 0, expected = 0;
	char *text = make_trace(EVENTS, &bytes);
	struct file file;
	file_begin(&file);
	file_add_packed(&file, packings[_i], text, bytes);
	file.count = file.count * 2 / 3;
	const char *path = file_save(&file, "cut.json.gz");
	struct reading reading = read_path(path, 65536);
	for (size_t i = 0; i < reading.count; i++)
		if (reading.text[i] == '}') {
			expected++;
			whole = i + 1;
		}
	ck_assert_uint_gt(expected, EVENTS / 2);
	struct reducer_input *input;
	struct reducer_read_report report;
	const struct reducer_sink sink = {.context = &count, .event = count_event};
	assert_ok(reducer_input_open(path, &input, NULL));
	assert_ok(reducer_chrome_read(input, &sink, NULL, &report));
	ck_assert_uint_eq(count, expected);
	ck_assert_uint_eq(report.events, expected);
	ck_assert_uint_gt(report.n_problems, 0);
	bool told = false;
	for (unsigned i = 0; i < report.n_problems; i++) {
		told |= strstr(report.problem[i].what, "cut off") != NULL;
		ck_assert_uint_ge(report.problem[i].offset, whole);
		ck_assert_uint_le(report.problem[i].offset, reading.count);
	}
	ck_assert(told);
	reducer_input_free(input);
	free(reading.text);
	free(file.bytes);
	free(text);
}
END_TEST

START_TEST(garbage_behind)
{
	static const enum reducer_packing packings[] = {REDUCER_GZIP, REDUCER_ZSTD};
	static const char zeros[1000], garbage[] = "this is not packed";
	size_t bytes;
	char *text = make_trace(1000, &bytes);
	struct file file;
	file_begin(&file);
	file_add_packed(&file, packings[_i], text, bytes);
	file_add(&file, zeros, sizeof(zeros));
	struct reading reading = read_path(file_save(&file, "padded"), 65536);
	ck_assert_str_eq(reading.problem.what, "");
	ck_text(&reading, text, bytes);
	free(reading.text);
	file_add(&file, garbage, sizeof(garbage) - 1);
	reading = read_path(file_save(&file, "garbage"), 65536);
	ck_assert_ptr_nonnull(strstr(reading.problem.what, "after the end"));
	ck_assert_uint_eq(reading.problem.offset, bytes);
	ck_text(&reading, text, bytes);
	free(reading.text);
	free(file.bytes);
	free(text);
}
END_TEST

/* A changed byte in the middle is found, at the latest by the check sum. */
START_TEST(damaged_inside)
{
	size_t bytes;
	char *text = make_trace(EVENTS, &bytes);
	struct file file;
	file_begin(&file);
	file_add_gzip(&file, text, bytes);
	file.bytes[file.count / 2] ^= 0x55;
	struct reading reading = read_path(file_save(&file, "damaged"), 65536);
	ck_assert_msg(strstr(reading.problem.what, "damaged") || strstr(reading.problem.what, "cut off"), "\"%s\"",
		      reading.problem.what);
	free(reading.text);
	file.bytes[file.count / 2] ^= 0x55;
	file.bytes[file.count - 6] ^= 1; /* of the check sum */
	reading = read_path(file_save(&file, "sum"), 65536);
	ck_assert_ptr_nonnull(strstr(reading.problem.what, "damaged"));
	ck_text(&reading, text, bytes);
	free(reading.text);
	free(file.bytes);
	free(text);
}
END_TEST

/* --- files that are something else --- */

START_TEST(plain_by_any_name)
{
	static const char text[] = "[{\"ph\":\"i\",\"ts\":1}]", beginning[] = {0x1f}, other[] = {0x28, 'x', 'y', 'z', '!'};
	const char *path = test_path(test_folder(), "plain.json.gz");
	test_write_file(path, text, sizeof(text) - 1);
	struct reading reading = read_path(path, 3);
	ck_assert_int_eq(reading.packing, REDUCER_PLAIN);
	ck_text(&reading, text, sizeof(text) - 1);
	free(reading.text);
	test_write_file(path, beginning, sizeof(beginning));
	reading = read_path(path, 3);
	ck_text(&reading, beginning, sizeof(beginning));
	free(reading.text);
	test_write_file(path, other, sizeof(other));
	reading = read_path(path, 3);
	ck_text(&reading, other, sizeof(other));
	free(reading.text);
}
END_TEST

START_TEST(empty_file)
{
	const char *path = test_path(test_folder(), "empty.json.gz");
	struct reducer_input *input;
	struct reducer_read_report report;
	const struct reducer_sink sink = {0};
	test_write_file(path, "", 0);
	struct reading reading = read_path(path, 100);
	ck_text(&reading, "", 0);
	ck_assert_str_eq(reading.problem.what, "");
	free(reading.text);
	assert_ok(reducer_input_open(path, &input, NULL));
	ck_assert_int_eq(reducer_chrome_read(input, &sink, NULL, &report), -EBADMSG);
	ck_assert_uint_gt(report.n_problems, 0);
	ck_assert_str_ne(report.problem[report.n_problems - 1].what, "");
	reducer_input_free(input);
}
END_TEST

START_TEST(what_cannot_be_read)
{
	struct reducer_input *input = NULL;
	struct reducer_problem problem = {0};
	ck_assert_int_eq(reducer_input_open(test_path(test_folder(), "none"), &input, &problem), -ENOENT);
	ck_assert_str_eq(problem.what, "No such file or directory");
	ck_assert_int_eq(reducer_input_open(test_folder(), &input, &problem), -EISDIR);
	ck_assert_str_eq(problem.what, "Is a directory");
	ck_assert_ptr_null(input);
	const char *path = test_path(test_folder(), "mine");
	uid_t self = geteuid();
	test_write_file(path, "[]", 2);
	ck_assert_int_eq(chmod(path, 0), 0);
	if (self == 0)
		ck_assert_int_eq(seteuid(65534), 0);
	ck_assert_int_eq(reducer_input_open(path, &input, &problem), -EACCES);
	ck_assert_str_eq(problem.what, "Permission denied");
	ck_assert_ptr_null(input);
	ck_assert_int_eq(seteuid(self), 0);
	prctl(PR_SET_DUMPABLE, 1); /* the leak check attaches */
}
END_TEST

START_TEST(descriptor_stays_the_callers)
{
	const char *path = test_path(test_folder(), "mine");
	struct reducer_input *input;
	test_write_file(path, "[]", 2);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_ok(reducer_input_from_fd(fd, &input, NULL));
	reducer_input_free(input);
	ck_assert_int_ge(fcntl(fd, F_GETFD), 0);
	close(fd);
	reducer_input_free(NULL);
}
END_TEST

/* --- pipes --- */

struct writing {
	const char *path;
	const struct file *file;
	size_t first; /* bytes written on their own, before the rest */
};

static void *write_pipe(void *context)
{
	const struct writing *writing = context;
	const unsigned char *bytes = writing->file->bytes;
	size_t at = 0, count = writing->file->count;
	int fd = open(writing->path, O_WRONLY | O_CLOEXEC);
	while (fd >= 0 && at < count) {
		size_t some = at < writing->first ? 1 : count - at;
		ssize_t wrote = write(fd, bytes + at, some);
		if (wrote <= 0)
			break;
		at += (size_t)wrote;
	}
	if (fd >= 0)
		close(fd);
	return NULL;
}

START_TEST(fifo)
{
	static const enum reducer_packing packings[] = {REDUCER_PLAIN, REDUCER_GZIP, REDUCER_ZSTD};
	size_t bytes;
	char *text = make_trace(EVENTS, &bytes);
	struct file file;
	pthread_t thread;
	file_begin(&file);
	if (packings[_i] == REDUCER_PLAIN)
		file_add(&file, text, bytes);
	else
		file_add_packed(&file, packings[_i], text, bytes);
	struct writing writing = {test_path(test_folder(), "fifo"), &file, 6};
	ck_assert_int_eq(mkfifo(writing.path, 0600), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, write_pipe, &writing), 0);
	struct reading reading = read_path(writing.path, 65536);
	pthread_join(thread, NULL);
	ck_assert_int_eq(reading.packing, packings[_i]);
	ck_assert_str_eq(reading.problem.what, "");
	ck_text(&reading, text, bytes);
	free(reading.text);
	free(file.bytes);
	free(text);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("input");
	TCase *tcase = tcase_create("packings");
	tcase_add_loop_test(tcase, several_members, 0, 2);
	tcase_add_loop_test(tcase, cut_anywhere, 0, 2);
	tcase_add_loop_test(tcase, whole_events_before_the_cut, 0, 2);
	tcase_add_loop_test(tcase, garbage_behind, 0, 2);
	tcase_add_test(tcase, damaged_inside);
	tcase_set_timeout(tcase, 30);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("other files");
	tcase_add_test(tcase, plain_by_any_name);
	tcase_add_test(tcase, empty_file);
	tcase_add_test(tcase, what_cannot_be_read);
	tcase_add_test(tcase, descriptor_stays_the_callers);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("pipes");
	tcase_add_loop_test(tcase, fifo, 0, 3);
	tcase_set_timeout(tcase, 30);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
