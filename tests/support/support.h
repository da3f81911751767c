/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every Check program of this project uses: the runner, scratch folders, a seeded random number
 * generator that says its seed, and waiting for a condition without sleeping for luck.
 */
#ifndef TESTS_SUPPORT_H
#define TESTS_SUPPORT_H

#include <check.h>
#include <string.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Runs the suite as the environment says (CK_*). Fails if a test failed or if no test ran. */
int test_run(Suite *suite);

/* A new empty folder under $TMPDIR, removed at the program's end. Never NULL. */
const char *test_folder(void);
/* The same on /dev/shm, for rings. */
const char *test_shm_folder(void);
/* "<folder>/<name>", in one of eight rotating buffers. */
const char *test_path(const char *folder, const char *name);

/* The handed data ($DRIVEREC_TEST_DATA, else ../shared/data beside the source tree), or NULL. */
const char *test_data_folder(void);

/* Random numbers from $TEST_SEED, else from the clock; the seed is printed at first use. */
uint64_t test_random(void);
uint64_t test_random_below(uint64_t limit);

/* Writes a whole file, or fails the test. */
void test_write_file(const char *path, const void *bytes, size_t count);
/* Reads a whole file; the caller frees. Terminated by a 0 beyond *ret_count. */
char *test_read_file(const char *path, size_t *ret_count);

/* Calls `until` about every ms until it is true; false after `ms`. */
bool test_wait(bool (*until)(void *context), void *context, int ms);

#define assert_ok(call)                                                                          \
	do {                                                                                     \
		long result_ = (long)(call);                                                     \
		ck_assert_msg(result_ >= 0, "%s: %s (%ld)", #call, strerror((int)-result_), result_); \
	} while (0)

#endif
