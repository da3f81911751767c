/* SPDX-License-Identifier: Apache-2.0 */
#include "paths.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support.h"

static void check(char *path, const char *wanted)
{
	ck_assert_ptr_nonnull(path);
	ck_assert_str_eq(path, wanted);
	free(path);
}

START_TEST(home)
{
	setenv("HOME", "/home/ann", 1);
	unsetenv("XDG_STATE_HOME");
	check(paths_expand("~"), "/home/ann");
	check(paths_expand("~/x/y"), "/home/ann/x/y");
	check(paths_expand("~bob/x"), "~bob/x");
	check(paths_expand("/a/~"), "/a/~");
	check(paths_default_store(), "/home/ann/.local/state/driverec");
	setenv("XDG_STATE_HOME", "/var/state", 1);
	check(paths_default_store(), "/var/state/driverec");
	setenv("XDG_STATE_HOME", "relative", 1);
	check(paths_default_store(), "/home/ann/.local/state/driverec");
	check(paths_join("/a/", "b"), "/a/b");
	unsetenv("HOME");
	char *path = paths_expand("~/x");
	ck_assert(path == NULL || path[0] == '/');
	free(path);
}
END_TEST

START_TEST(folders)
{
	const char *folder = test_folder();
	const char *deep = test_path(folder, "a/b/c");
	struct stat st;
	umask(0);
	assert_ok(paths_make_folder(deep, 0700));
	assert_ok(paths_make_folder(deep, 0700));
	ck_assert_int_eq(stat(deep, &st), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0700);
	assert_ok(paths_make_folder(test_path(folder, "d/"), 0755));
	test_write_file(test_path(folder, "file"), "x", 1);
	ck_assert_int_eq(paths_make_folder(test_path(folder, "file"), 0700), -ENOTDIR);
	ck_assert_int_eq(paths_make_folder(test_path(folder, "file/x"), 0700), -ENOTDIR);
	ck_assert_int_eq(paths_make_folder("", 0700), -ENOENT);
}
END_TEST

static int count_entries(const char *path)
{
	DIR *dir = opendir(path);
	int count = -2; /* . and .. */
	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

START_TEST(files)
{
	const char *folder = test_folder();
	int dirfd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(dirfd, 0);
	size_t big = 100000, count;
	char *bytes = malloc(big), *back;
	memset(bytes, 'a', big);
	assert_ok(paths_write_file(dirfd, "f", "old", 3, 0600));
	assert_ok(paths_write_file(dirfd, "f", bytes, big, 0600));
	assert_ok(paths_read_file(dirfd, "f", big, &back, &count));
	ck_assert_uint_eq(count, big);
	ck_assert_mem_eq(back, bytes, big);
	ck_assert_int_eq(back[count], 0);
	free(back);
	ck_assert_int_eq(count_entries(folder), 1);
	ck_assert_int_eq(paths_read_file(dirfd, "f", big - 1, &back, &count), -EFBIG);
	ck_assert_int_eq(paths_read_file(dirfd, "none", big, &back, &count), -ENOENT);
	ck_assert_int_eq(paths_read_file(AT_FDCWD, folder, big, &back, &count), -EISDIR);
	close(dirfd);
	free(bytes);
}
END_TEST

START_TEST(old_file_stays)
{
	const char *folder = test_folder();
	int dirfd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_ok(paths_write_file(dirfd, "f", "old", 3, 0600));
	assert_ok(paths_make_folder(test_path(folder, "d/inside"), 0700));
	/* Onto a folder that is not empty: the rename fails, and nothing is left behind. */
	ck_assert_int_lt(paths_write_file(dirfd, "d", "new", 3, 0600), 0);
	ck_assert_int_eq(count_entries(folder), 2);
	ck_assert_int_lt(paths_write_file(dirfd, "none/f", "new", 3, 0600), 0);
	ck_assert_int_eq(count_entries(folder), 2);
	close(dirfd);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("paths");
	TCase *tcase = tcase_create("home and state folders");
	tcase_add_test(tcase, home);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("folders are made");
	tcase_add_test(tcase, folders);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("files are whole or not there");
	tcase_add_test(tcase, files);
	tcase_add_test(tcase, old_file_stays);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
