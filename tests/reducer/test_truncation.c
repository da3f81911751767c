/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that is cut anywhere still gives every event that is whole before the cut, and nothing else: for the small
 * cuts of real traces at every length, plain and packed; for the handed traces at lengths drawn by chance. (XPlane
 * at every length: test_xplane.c; rings and windows: fuzz/replay_drec.)
 */
#include <reducer/chrome.h>
#include <reducer/trace.h>

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "support.h"

enum { EVENTS_MAX = 1 << 20, SAMPLES = 6 };

struct seen {
	uint64_t *end;  /* of each event, in the text */
	uint64_t *hash; /* of all up to it */
	size_t count;
	uint64_t now;
};

static uint64_t mix(uint64_t hash, struct reducer_text text)
{
	for (size_t i = 0; i < text.bytes; i++)
		hash = (hash ^ (unsigned char)text.data[i]) * 0x100000001b3u;
	return (hash ^ text.bytes) * 0x100000001b3u;
}

static int see(void *context, const struct reducer_event *event)
{
	struct seen *seen = context;
	ck_assert_uint_lt(seen->count, EVENTS_MAX);
	uint64_t hash = mix(mix(mix(seen->now + event->kind, event->name), event->args), event->extra);
	seen->now = (hash ^ (uint64_t)event->start_ns) * 31 + (uint64_t)event->duration_ns;
	seen->end[seen->count] = event->offset + event->bytes;
	seen->hash[seen->count++] = seen->now;
	return 0;
}

static struct seen *new_seen(void)
{
	struct seen *seen = calloc(1, sizeof(*seen));
	ck_assert_ptr_nonnull(seen);
	seen->end = malloc(EVENTS_MAX * sizeof(uint64_t));
	seen->hash = malloc(EVENTS_MAX * sizeof(uint64_t));
	ck_assert(seen->end && seen->hash);
	return seen;
}

static void clear(struct seen *seen)
{
	seen->count = 0;
	seen->now = 0;
}

static void free_seen(struct seen *seen)
{
	free(seen->end);
	free(seen->hash);
	free(seen);
}

static void read_text(const char *text, size_t bytes, struct seen *seen)
{
	struct reducer_sink sink = {seen, see, NULL};
	struct reducer_read_report report;
	struct reducer_chrome *reader;
	clear(seen);
	assert_ok(reducer_chrome_new(&sink, NULL, &report, &reader));
	int result = reducer_chrome_feed(reader, text, bytes);
	if (result == 0)
		result = reducer_chrome_finish(reader);
	reducer_chrome_free(reader);
	ck_assert_msg(result == 0 || result == -EBADMSG, "%d", result);
	ck_assert(result == 0 || seen->count == 0);
}

/* `cut` has what ends in the first `bytes` of the text, all of it and in the same order. */
static void ck_whole_ones(const struct seen *all, const struct seen *cut, size_t bytes, const char *what)
{
	size_t whole = 0;
	while (whole < all->count && all->end[whole] <= bytes)
		whole++;
	ck_assert_msg(cut->count == whole, "%s cut after %zu bytes: %zu events, not %zu", what, bytes, cut->count, whole);
	ck_assert_msg(whole == 0 || cut->hash[whole - 1] == all->hash[whole - 1], "%s cut after %zu bytes: others", what,
		      bytes);
}

static const char *const small[] = {
	"cpu_only_gloo_rank34.pt.trace.json", "straggler_worker_44steps.trace.json", "v100_2021_resnet50.pt.trace.json",
	"h100_bert_small.pt.trace.json", "a100_nccl_late_base_time.pt.trace.json",
};
enum { SMALL = sizeof(small) / sizeof(small[0]) };

static char *read_small(int i, size_t *ret_bytes)
{
	return test_read_file(test_path(FUZZ_CORPUS, small[i]), ret_bytes);
}

START_TEST(plain_at_every_length)
{
	size_t bytes;
	char *text = read_small(_i, &bytes);
	struct seen *all = new_seen(), *cut = new_seen();
	read_text(text, bytes, all);
	ck_assert_uint_gt(all->count, 5);
	for (size_t n = 0; n < bytes; n++) {
		char *own = malloc(n ? n : 1);
		ck_assert_ptr_nonnull(own);
		memcpy(own, text, n);
		read_text(own, n, cut);
		ck_whole_ones(all, cut, n, small[_i]);
		free(own);
	}
	free_seen(all);
	free_seen(cut);
	free(text);
}
END_TEST

static size_t pack(int zstd, const char *text, size_t bytes, unsigned char *out, size_t room)
{
	if (zstd) {
		size_t packed = ZSTD_compress(out, room, text, bytes, 3);
		ck_assert(!ZSTD_isError(packed));
		return packed;
	}
	z_stream deflating = {.next_in = (z_const Bytef *)(uintptr_t)text, .avail_in = (unsigned)bytes,
			      .next_out = out, .avail_out = (unsigned)room};
	ck_assert_int_eq(deflateInit2(&deflating, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	ck_assert_int_eq(deflate(&deflating, Z_FINISH), Z_STREAM_END);
	size_t packed = deflating.total_out;
	deflateEnd(&deflating);
	return packed;
}

static void read_packed(const void *bytes, size_t count, struct seen *seen, uint64_t *ret_text_bytes)
{
	struct reducer_sink sink = {seen, see, NULL};
	struct reducer_read_report report;
	struct reducer_input *input;
	int fd = memfd_create("cut", MFD_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, bytes, count), (ssize_t)count);
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	clear(seen);
	assert_ok(reducer_input_from_fd(fd, &input, NULL));
	int result = reducer_chrome_read(input, &sink, NULL, &report);
	ck_assert_msg(result == 0 || result == -EBADMSG, "%d", result);
	*ret_text_bytes = report.text_bytes;
	reducer_input_free(input);
	close(fd);
}

/* What can be unpacked is read as a plain text that is cut there; all but the last block can be unpacked. */
START_TEST(packed_at_every_length)
{
	int zstd = _i % 2;
	size_t bytes, room = 1 << 20;
	char *text = read_small(_i / 2, &bytes);
	unsigned char *packed = malloc(room);
	struct seen *all = new_seen(), *cut = new_seen();
	uint64_t got = 0, before = 0;
	ck_assert_ptr_nonnull(packed);
	size_t count = pack(zstd, text, bytes, packed, room);
	read_text(text, bytes, all);
	for (size_t n = 4; n <= count; n++, before = got) {
		read_packed(packed, n, cut, &got);
		ck_whole_ones(all, cut, got, small[_i / 2]);
		ck_assert_msg(got >= before, "%zu packed bytes give less than %zu", n, n - 1);
	}
	ck_assert_uint_eq(got, bytes);
	/* Deflate gives out as it goes; a zstd block of this size is all or nothing. */
	if (!zstd) {
		read_packed(packed, count * 3 / 4, cut, &got);
		ck_assert_uint_gt(got, bytes / 2);
	}
	free_seen(all);
	free_seen(cut);
	free(packed);
	free(text);
}
END_TEST

static void read_path(const char *path, struct seen *seen, struct reducer_read_report *report)
{
	struct reducer_sink sink = {seen, see, NULL};
	enum reducer_format format;
	struct reducer_problem problem = {0};
	clear(seen);
	*report = (struct reducer_read_report){0};
	int result = reducer_trace_sniff(path, &format, &problem);
	if (result == 0)
		result = reducer_trace_read(path, format, &sink, report);
	ck_assert_msg(result == 0 || result == -EBADMSG, "%s: %d", path, result);
}

static void cut_handed(const char *path, struct seen *all, struct seen *cut)
{
	struct reducer_read_report report;
	size_t bytes;
	char *file = test_read_file(path, &bytes);
	const char *part = test_path(test_folder(), strrchr(path, '/') + 1);
	read_path(path, all, &report);
	for (int i = 0; i < SAMPLES && all->count > 0; i++) {
		size_t n = 1000 + test_random_below(bytes - 1000);
		test_write_file(part, file, n);
		read_path(part, cut, &report);
		ck_whole_ones(all, cut, strstr(path, ".gz") ? report.text_bytes : n, path);
	}
	unlink(part);
	free(file);
}

START_TEST(handed_at_some_lengths)
{
	const char *data = test_data_folder();
	glob_t found;
	if (!data) {
		printf("no handed traces here: not tested\n");
		return;
	}
	ck_assert_int_eq(glob(test_path(data, "traces/*.json.gz"), 0, NULL, &found), 0);
	struct seen *all = new_seen(), *cut = new_seen();
	for (size_t i = 0; i < found.gl_pathc; i++)
		cut_handed(found.gl_pathv[i], all, cut);
	free_seen(all);
	free_seen(cut);
	globfree(&found);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("truncation");
	TCase *plain = tcase_create("plain"), *packed = tcase_create("packed"), *handed = tcase_create("handed");
	tcase_add_loop_test(plain, plain_at_every_length, 0, SMALL);
	tcase_add_loop_test(packed, packed_at_every_length, 0, 2 * SMALL);
	tcase_add_test(handed, handed_at_some_lengths);
	TCase *const all[] = {plain, packed, handed};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		tcase_set_timeout(all[i], 120);
		suite_add_tcase(suite, all[i]);
	}
	return test_run(suite);
}
