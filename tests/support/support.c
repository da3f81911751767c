/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FOLDERS_MAX = 64, PATHS = 8 };

static char folders[FOLDERS_MAX][256];
static int folder_count;
static pid_t folder_owner;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void remove_folders(void)
{
	if (getpid() != folder_owner)
		return;
	for (int i = 0; i < folder_count; i++)
		nftw(folders[i], remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *new_folder(const char *parent)
{
	if (folder_owner != getpid()) {
		folder_owner = getpid();
		folder_count = 0;
		atexit(remove_folders);
	}
	char *path = folders[folder_count];
	snprintf(path, sizeof(folders[0]), "%s/driverec-test-XXXXXX", parent);
	/* Not by ck_assert: programs that are no Check suites use this too. */
	if (folder_count == FOLDERS_MAX - 1 || !mkdtemp(path)) {
		perror(path);
		exit(1);
	}
	folder_count++;
	return path;
}

const char *test_folder(void)
{
	const char *tmp = getenv("TMPDIR");
	return new_folder(tmp && *tmp ? tmp : "/tmp");
}

const char *test_shm_folder(void)
{
	return new_folder("/dev/shm");
}

const char *test_path(const char *folder, const char *name)
{
	static char paths[PATHS][1024];
	static int next;
	char *path = paths[next++ % PATHS];
	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

const char *test_data_folder(void)
{
	static char path[1024];
	const char *given = getenv("DRIVEREC_TEST_DATA");
	snprintf(path, sizeof(path), "%s", given && *given ? given : DRIVEREC_SOURCE_DIR "/../shared/data");
	return access(path, R_OK) == 0 ? path : NULL;
}

uint64_t test_random(void)
{
	static uint64_t state;
	static pid_t owner;
	if (!owner) {
		const char *given = getenv("TEST_SEED");
		struct timespec now;
		clock_gettime(CLOCK_REALTIME, &now);
		state = given ? strtoull(given, NULL, 0) : (uint64_t)now.tv_nsec ^ ((uint64_t)getpid() << 32);
		owner = getpid();
		printf("seed: TEST_SEED=%llu\n", (unsigned long long)state);
		fflush(stdout);
	}
	/* splitmix64, Steele, Lea, Flood: Fast splittable pseudorandom number generators (2014) */
	uint64_t z = state += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint64_t test_random_below(uint64_t limit)
{
	return test_random() % limit;
}

void test_write_file(const char *path, const void *bytes, size_t count)
{
	FILE *file = fopen(path, "wb");
	ck_assert_msg(file != NULL, "cannot write %s", path);
	ck_assert_uint_eq(fwrite(bytes, 1, count, file), count);
	ck_assert_int_eq(fclose(file), 0);
}

char *test_read_file(const char *path, size_t *ret_count)
{
	FILE *file = fopen(path, "rb");
	ck_assert_msg(file != NULL, "cannot read %s", path);
	fseek(file, 0, SEEK_END);
	long size = ftell(file);
	ck_assert_int_ge(size, 0);
	rewind(file);
	char *bytes = malloc((size_t)size + 1);
	ck_assert_ptr_nonnull(bytes);
	ck_assert_uint_eq(fread(bytes, 1, (size_t)size, file), (size_t)size);
	fclose(file);
	bytes[size] = 0;
	if (ret_count)
		*ret_count = (size_t)size;
	return bytes;
}

bool test_wait(bool (*until)(void *context), void *context, int ms)
{
	struct timespec pause = {.tv_nsec = 1000000};
	for (int i = 0; i < ms; i++) {
		if (until(context))
			return true;
		nanosleep(&pause, NULL);
	}
	return until(context);
}

int test_run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	int ran = srunner_ntests_run(runner);
	srunner_free(runner);
	if (ran == 0)
		fprintf(stderr, "no test ran\n");
	return failed || ran == 0;
}
