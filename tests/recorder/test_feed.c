/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "sources/feed.h"
#include "support.h"

static uv_loop_t loop;

/* What a feed of this text says is all in. */
static int64_t watermark_of(const char *text)
{
	const char *run_dir = test_shm_folder(), *path = test_path(test_folder(), "trace.json");
	struct feed *feed;
	char why[256] = "";
	mkdir(test_path(run_dir, "rings"), 0700);
	test_write_file(path, text, strlen(text));
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	ck_assert_msg(feed_new(&loop, path, run_dir, &feed, why, sizeof(why)) == 0, "%s", why);
	while (feed_tick(feed))
		;
	int64_t watermark_ns = feed_watermark_ns(feed);
	feed_free(feed);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	return watermark_ns;
}

START_TEST(the_future_says_nothing_of_what_is_in)
{
	char text[1024];
	long long now_us = (long long)time(NULL) * 1000000;
	snprintf(text, sizeof(text),
		 "[{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":%lld,\"dur\":5},"
		 "{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":%lld,\"dur\":5}]",
		 now_us - 1000000, now_us + 3600000000);
	ck_assert_int_eq(watermark_of(text), (now_us - 1000000 + 5) * 1000);
}
END_TEST

START_TEST(ends_out_of_all_bounds_do_no_harm)
{
	static const char text[] = "{\"baseTimeNanoseconds\":9223372036854775807,\"traceEvents\":["
				   "{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":9e15,\"dur\":9e15}]}";
	ck_assert_int_lt(watermark_of(text), (int64_t)time(NULL) * 1000000000);
}
END_TEST

/* The watermark while a document of many events is half read, and when it has ended. */
static void half_and_whole(bool disordered, int64_t *ret_half_ns, int64_t *ret_whole_ns)
{
	enum { EVENTS = 60000, LINE = 80 };
	const char *run_dir = test_shm_folder(), *path = test_path(test_folder(), "trace.json");
	long long now_us = (long long)time(NULL) * 1000000;
	char *text = malloc(EVENTS * LINE), why[256] = "";
	size_t bytes = 0;
	struct feed *feed;
	ck_assert_ptr_nonnull(text);
	for (int i = 0; i < EVENTS; i++)
		bytes += (size_t)snprintf(text + bytes, LINE, "{\"ph\":\"X\",\"name\":\"a\",\"ts\":%lld,\"dur\":1}\n",
					  now_us - 1000000 + (disordered && i == 10 ? 0 : i));
	mkdir(test_path(run_dir, "rings"), 0700);
	test_write_file(path, text, bytes);
	free(text);
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	ck_assert_msg(feed_new(&loop, path, run_dir, &feed, why, sizeof(why)) == 0, "%s", why);
	ck_assert_int_eq(feed_tick(feed), 1);
	*ret_half_ns = feed_watermark_ns(feed);
	while (feed_tick(feed))
		;
	*ret_whole_ns = feed_watermark_ns(feed);
	ck_assert_int_eq(*ret_whole_ns, (now_us - 1000000 + EVENTS) * 1000);
	feed_free(feed);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
}

START_TEST(nothing_is_known_of_a_document_out_of_order_until_it_ends)
{
	int64_t half_ns, whole_ns;
	half_and_whole(false, &half_ns, &whole_ns);
	ck_assert_int_gt(half_ns, whole_ns - 1000000000);
	ck_assert_int_lt(half_ns, whole_ns);
	half_and_whole(true, &half_ns, &whole_ns);
	ck_assert_int_lt(half_ns, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("feed");
	TCase *tcase = tcase_create("watermark");
	tcase_add_test(tcase, the_future_says_nothing_of_what_is_in);
	tcase_add_test(tcase, ends_out_of_all_bounds_do_no_harm);
	tcase_add_test(tcase, nothing_is_known_of_a_document_out_of_order_until_it_ends);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
