/* SPDX-License-Identifier: Apache-2.0 */
#include "log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support.h"

static int64_t now_ns;

static int64_t fake_now(void)
{
	return now_ns;
}

static int fd;

static void setup(void)
{
	now_ns = 1796022064123456789;
	fd = memfd_create("log", MFD_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	log_to(fd, LOG_LEVEL_INFO);
	log_clock(fake_now);
}

/* What was written since the last call. */
static const char *written(void)
{
	static char text[65536];
	static off_t from;
	ssize_t count = pread(fd, text, sizeof(text) - 1, from);
	ck_assert_int_ge(count, 0);
	from += count;
	text[count] = 0;
	return text;
}

START_TEST(form)
{
	errno = EACCES;
	log_warn("ring.open", "%s: a \"quoted\"\nline\\", "rank3");
	ck_assert_int_eq(errno, EACCES);
	ck_assert_str_eq(written(),
			 "time=2026-11-30T07:01:04.123Z level=warn kind=ring.open "
			 "msg=\"rank3: a \\\"quoted\\\"\\nline\\\\\" error=\"Permission denied\"\n");
	log_info("start", "driverec %d", 1);
	ck_assert_str_eq(written(),
			 "time=2026-11-30T07:01:04.123Z level=info kind=start msg=\"driverec 1\"\n");
	log_debug("start.more", "nothing");
	ck_assert_str_eq(written(), "");
}
END_TEST

START_TEST(hostile_names)
{
	log_info("ring.found", "\x1b[2J\x7f \xc2\x9b 31m \xff\xc0\x80 \xe2\x80\xae h\xc3\xbcgel");
	ck_assert_str_eq(written(), "time=2026-11-30T07:01:04.123Z level=info kind=ring.found "
				    "msg=\"\\x1b[2J\\x7f \\xc2\\x9b 31m \\xff\\xc0\\x80 \\xe2\\x80\\xae h\xc3\xbcgel\"\n");
}
END_TEST

START_TEST(once_a_minute)
{
	log_warnx("ring.open", "first");
	ck_assert_str_ne(written(), "");
	for (int i = 0; i < 5; i++)
		log_warnx("ring.open", "again");
	ck_assert_str_eq(written(), "");
	log_warnx("ring.lost", "another kind");
	ck_assert_str_ne(written(), "");
	now_ns += 59999999999;
	log_warnx("ring.open", "almost");
	ck_assert_str_eq(written(), "");
	now_ns += 1;
	log_warnx("ring.open", "a minute later");
	ck_assert_ptr_nonnull(strstr(written(), "msg=\"a minute later\" suppressed=6\n"));
	now_ns -= 3600000000000;
	log_warnx("ring.open", "clock set back");
	ck_assert_ptr_nonnull(strstr(written(), "clock set back"));
	log_record("incident", "one");
	log_record("incident", "two");
	ck_assert_ptr_nonnull(strstr(written(), "msg=\"two\""));
}
END_TEST

START_TEST(many_kinds)
{
	for (int i = 0; i < 1000; i++) {
		char kind[32];
		snprintf(kind, sizeof(kind), "kind%d", i);
		log_info(kind, "x");
	}
	int lines = 0;
	for (const char *at = written(); (at = strchr(at, '\n')); at++)
		lines++;
	ck_assert_int_ge(lines, 100);
	ck_assert_int_le(lines, 128);
}
END_TEST

START_TEST(long_lines)
{
	char text[8192];
	memset(text, '"', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	log_errorx("long", "%s", text);
	const char *line = written();
	ck_assert_uint_le(strlen(line), 2048);
	ck_assert_int_eq(line[strlen(line) - 1], '\n');
}
END_TEST

START_TEST(no_descriptor)
{
	log_to(-1, LOG_LEVEL_INFO);
	errno = EIO;
	log_error("gone", "nobody reads this");
	ck_assert_int_eq(errno, EIO);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("log");
	TCase *tcase = tcase_create("one logfmt line");
	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, form);
	tcase_add_test(tcase, hostile_names);
	tcase_add_test(tcase, long_lines);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("each kind once a minute");
	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, once_a_minute);
	tcase_add_test(tcase, many_kinds);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("nowhere to write");
	tcase_add_test(tcase, no_descriptor);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
