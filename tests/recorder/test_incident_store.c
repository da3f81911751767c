/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "incidents/files.h"
#include "incidents/store.h"
#include "support.h"

#define S INT64_C(1000000000)

static struct incidents_store *new_store(const char **ret_path)
{
	struct incidents_store *store = NULL;

	*ret_path = test_folder();
	assert_ok(incidents_store_open(*ret_path, true, &store));
	return store;
}

/* A folder as the writer leaves it. Returns its name. */
static const char *put(const char *path, const char *id, int64_t t0_s, const char *more)
{
	static char names[8][INCIDENTS_FOLDER_MAX];
	static unsigned next;
	char *name = names[next++ % 8], folder[512], text[1024];
	uint8_t bytes[INCIDENTS_ID_BYTES];

	assert_ok(incidents_id_parse(id, bytes));
	incidents_folder_name(name, t0_s * S, "stall", bytes);
	snprintf(folder, sizeof(folder), "%s/incidents/%s", path, name);
	ck_assert_int_eq(mkdir(folder, 0700), 0);
	snprintf(text, sizeof(text),
		 "{\"schema\":\"driverec.incident/"
		 "1\",\"id\":\"%s\",\"trigger\":\"stall\",\"severity\":\"critical\","
		 "\"t0_ns\":\"%lld\",\"files\":[{\"path\":\"raw/a.drec\"},{\"path\":\"report.md\"}]%s}",
		 id, (long long)(t0_s * S), more);
	test_write_file(test_path(folder, "manifest.json"), text, strlen(text));
	test_write_file(test_path(folder, "report.md"), "x\n", 2);
	ck_assert_int_eq(mkdir(test_path(folder, "raw"), 0700), 0);
	test_write_file(test_path(folder, "raw/a.drec"), "data", 4);
	return name;
}

static const char id_a[] = "3f9c12ab000000000000000000000000", id_b[] = "3f9c12ac000000000000000000000000",
		  id_c[] = "7f3a000000000000000000000000000f";

START_TEST(names_say_when_and_why)
{
	uint8_t id[INCIDENTS_ID_BYTES];
	char name[INCIDENTS_FOLDER_MAX];

	assert_ok(incidents_id_parse(id_a, id));
	incidents_folder_name(name, 1796008364 * S + 118000000, "stall", id);
	ck_assert_str_eq(name, "20261130T031244Z-stall-3f9c12ab");
	incidents_folder_name(name, -1, "../x y", id);
	ck_assert_str_eq(name, "19691231T235959Z-___x_y-3f9c12ab");
	ck_assert_int_eq(incidents_id_parse("3f9c", id), -EINVAL);
	ck_assert_int_eq(incidents_id_parse("3F9c12ab000000000000000000000000", id), -EINVAL);
}
END_TEST

START_TEST(the_store_keeps_its_id)
{
	const char *path;
	struct incidents_store *store = new_store(&path), *again = NULL;

	assert_ok(incidents_store_open(path, false, &again));
	ck_assert_mem_eq(incidents_store_id(store), incidents_store_id(again), INCIDENTS_ID_BYTES);
	incidents_store_free(again);
	ck_assert_int_eq(incidents_store_open(test_path(path, "none"), false, &again), -ENOENT);
	incidents_store_free(store);
}
END_TEST

START_TEST(lists_by_time_and_finds_by_prefix)
{
	const char *path;
	struct incidents_store *store = new_store(&path);
	struct incidents_entry *entries, entry;
	size_t count;

	put(path, id_b, 200, "");
	put(path, id_a, 100, "");
	put(path, id_c, 300, "");
	ck_assert_int_eq(mkdir(test_path(path, "incidents/.tmp-x"), 0700), 0);
	assert_ok(incidents_store_list(store, &entries, &count));
	ck_assert_uint_eq(count, 3);
	ck_assert_str_eq(entries[0].id, id_a);
	ck_assert_str_eq(entries[2].id, id_c);
	ck_assert_uint_eq(incidents_store_id_digits(entries, count), 8);
	free(entries);

	assert_ok(incidents_store_find(store, "7f3a", &entry));
	ck_assert_str_eq(entry.id, id_c);
	ck_assert_int_eq(incidents_store_find(store, "3f9c", &entry), -EEXIST);
	assert_ok(incidents_store_find(store, "3f9c12ac", &entry));
	ck_assert_str_eq(entry.id, id_b);
	ck_assert_int_eq(incidents_store_find(store, "7f3", &entry), -EINVAL);
	ck_assert_int_eq(incidents_store_find(store, "0000", &entry), -ENOENT);
	assert_ok(incidents_store_find(store, test_path(path, "incidents/19700101T000500Z-stall-7f3a0000/"),
				       &entry));
	ck_assert_str_eq(entry.id, id_c);
	incidents_store_free(store);
}
END_TEST

START_TEST(deletes_only_what_it_made)
{
	const char *path, *name;
	struct incidents_store *store = new_store(&path);
	char folder[512];

	name = put(path, id_a, 100, "");
	assert_ok(incidents_store_keep(store, name, true));
	ck_assert_int_eq(incidents_store_delete(store, name, false), -EBUSY);
	assert_ok(incidents_store_keep(store, name, false));
	snprintf(folder, sizeof(folder), "%s/incidents/%s", path, name);
	test_write_file(test_path(folder, "raw/mine.txt"), "x", 1);
	ck_assert_int_eq(incidents_store_delete(store, name, true), -EPERM);
	ck_assert_int_eq(access(test_path(folder, "manifest.json"), F_OK), 0);
	ck_assert_int_eq(unlink(test_path(folder, "raw/mine.txt")), 0);
	assert_ok(incidents_store_delete(store, name, false));
	ck_assert_int_ne(access(folder, F_OK), 0);

	ck_assert_int_eq(mkdir(test_path(path, "incidents/notes"), 0700), 0);
	ck_assert_int_eq(incidents_store_delete(store, "notes", true), -EPERM);
	ck_assert_int_eq(incidents_store_delete(store, "../pending", true), -EPERM);
	ck_assert_int_eq(incidents_store_delete(store, "..", true), -EPERM);
	ck_assert_int_eq(incidents_store_delete(store, "gone", true), -ENOENT);
	incidents_store_free(store);
}
END_TEST

START_TEST(retention_spares_kept_and_open)
{
	const char *path;
	struct incidents_store *store = new_store(&path);
	const struct incidents_retention age = {.age_ns = 500 * S}, one = {.count = 1};
	struct incidents_entry *entries;
	size_t count;

	assert_ok(incidents_store_keep(store, put(path, id_a, 100, ""), true));
	put(path, id_b, 200, "");
	put(path, id_c, 900, ",\"ongoing\":true");
	ck_assert_int_eq(incidents_store_retain(store, &age, 1000 * S), 1);
	assert_ok(incidents_store_list(store, &entries, &count));
	ck_assert_uint_eq(count, 2);
	ck_assert(entries[0].kept);
	free(entries);
	ck_assert_int_eq(incidents_store_retain(store, &one, 1000 * S), 0);
	incidents_store_free(store);
}
END_TEST

START_TEST(replaces_whole_files)
{
	const char *path = test_folder();
	struct incidents_store *store = NULL;
	uint64_t bytes;
	uint32_t crc;
	char *text;
	size_t count;

	assert_ok(incidents_store_open(path, true, &store));
	assert_ok(files_replace(incidents_store_pending_fd(store), "a", "123456789", 9));
	assert_ok(files_crc(incidents_store_pending_fd(store), "a", &bytes, &crc));
	ck_assert_uint_eq(bytes, 9);
	ck_assert_uint_eq(crc, 0xcbf43926);
	ck_assert_int_eq(files_read(incidents_store_pending_fd(store), "a", 8, &text, &count), -EFBIG);
	assert_ok(files_remove(incidents_store_pending_fd(store), "a"));
	assert_ok(files_remove(incidents_store_pending_fd(store), "a"));
	incidents_store_free(store);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("incident store");
	TCase *names = tcase_create("names"), *list = tcase_create("list and find");
	TCase *gone = tcase_create("delete and retain"), *files = tcase_create("files");

	tcase_add_test(names, names_say_when_and_why);
	tcase_add_test(names, the_store_keeps_its_id);
	tcase_add_test(list, lists_by_time_and_finds_by_prefix);
	tcase_add_test(gone, deletes_only_what_it_made);
	tcase_add_test(gone, retention_spares_kept_and_open);
	tcase_add_test(files, replaces_whole_files);
	suite_add_tcase(suite, names);
	suite_add_tcase(suite, list);
	suite_add_tcase(suite, gone);
	suite_add_tcase(suite, files);
	return test_run(suite);
}
