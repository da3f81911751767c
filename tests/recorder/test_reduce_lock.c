/* SPDX-License-Identifier: Apache-2.0 */
/* One reducer a file, no half-written files, no file taken from under its writer. */
#include "reduce/lock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reduce/cleanup.h"
#include "reduce/holder.h"
#include "reduce/place.h"
#include "support.h"

enum { RACERS = 6, ROUNDS = 30 };

static const char *folder;
static int dirfd_of_folder;

static void make_folder(void)
{
	folder = test_folder();
	dirfd_of_folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(dirfd_of_folder, 0);
}

static unsigned entries(void)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	unsigned count = 0;

	while ((entry = readdir(dir)))
		count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	closedir(dir);
	return count;
}

static bool exists(const char *name)
{
	return access(test_path(folder, name), F_OK) == 0;
}

/* Runs `work` in a process of its own; its exit status, or 256 + signal. */
static int in_child(int (*work)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(work());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? 256 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void write_lock(const struct reduce_lock_owner *owner)
{
	char text[1024];
	int bytes = snprintf(text, sizeof(text),
			     "driverec reduce\ntoken %s\nhost %s\npid %lld\nstarted %llu\nboot %s\npidns %llu\n",
			     owner->token, owner->host, (long long)owner->pid, (unsigned long long)owner->started,
			     owner->boot, (unsigned long long)owner->pidns);

	test_write_file(test_path(folder, ".x.json.driverec-lock"), text, (size_t)bytes);
}

/* --- the lock --- */

static int take_fails(void)
{
	struct reduce_lock lock = {.fd = -1};
	struct reduce_lock_owner owner = {0};

	return reduce_lock_take(dirfd_of_folder, "x.json", false, &lock, &owner) == -EBUSY && owner.pid == getppid() ? 0
														     : 1;
}

START_TEST(taken_once)
{
	struct reduce_lock lock;
	struct reduce_lock_owner owner;

	make_folder();
	assert_ok(reduce_lock_take(dirfd_of_folder, "x.json", false, &lock, &owner));
	ck_assert(exists(".x.json.driverec-lock"));
	ck_assert(reduce_lock_held(&lock));
	ck_assert_int_eq(in_child(take_fails), 0);
	reduce_lock_release(&lock);
	reduce_lock_release(&lock);
	ck_assert_uint_eq(entries(), 0);
}
END_TEST

static int take_and_die(void)
{
	struct reduce_lock lock;
	struct reduce_lock_owner owner;
	char tmp[REDUCE_NAME_MAX];

	if (reduce_lock_take(dirfd_of_folder, "x.json", false, &lock, &owner) < 0)
		return 1;
	reduce_lock_tmp_name("x.json", lock.token, tmp);
	close(openat(dirfd_of_folder, tmp, O_WRONLY | O_CREAT, 0600));
	raise(SIGKILL);
	return 2;
}

START_TEST(killed_owner_leaves_nothing)
{
	struct reduce_lock lock;
	struct reduce_lock_owner owner;

	make_folder();
	ck_assert_int_eq(in_child(take_and_die), 256 + SIGKILL);
	ck_assert_uint_eq(entries(), 2);
	assert_ok(reduce_lock_take(dirfd_of_folder, "x.json", false, &lock, &owner));
	ck_assert_uint_eq(entries(), 1);
	reduce_lock_release(&lock);
	ck_assert_uint_eq(entries(), 0);
}
END_TEST

/* Killed, and nobody has waited for it yet. */
START_TEST(zombie_is_dead)
{
	struct reduce_lock lock;
	struct reduce_lock_owner owner;
	siginfo_t info;
	pid_t pid;

	make_folder();
	pid = fork();
	if (pid == 0)
		_exit(take_and_die());
	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_ok(reduce_lock_take(dirfd_of_folder, "x.json", false, &lock, &owner));
	reduce_lock_release(&lock);
	ck_assert_uint_eq(entries(), 0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
END_TEST

/* What makes a lock stale, one thing at a time: each row is a lock of ours but for one member. */
static const struct {
	const char *what;
	const char *host, *boot;
	int64_t pid;           /* 0: our own, -1: one that is not there */
	int64_t started_shift;
	int pidns_shift;
	bool stale;
} owners[] = {
	{"alive", NULL, NULL, 0, 0, 0, false},
	{"gone", NULL, NULL, -1, 0, 0, true},
	{"another process has its pid", NULL, NULL, 0, 1, 0, true},
	{"its start is not known", NULL, NULL, 0, INT64_MIN, 0, false},
	{"of another host", "elsewhere", NULL, -1, 0, 0, false},
	{"of another boot", NULL, "00000000-0000-0000-0000-000000000000", -1, 0, 0, false},
	{"of another pid namespace", NULL, NULL, -1, 0, 1, false},
	{"of no boot", NULL, "", -1, 0, 0, false},
};

static struct reduce_lock_owner owner_of(int row)
{
	struct reduce_lock_owner owner;
	pid_t gone = fork();

	if (gone == 0)
		_exit(0);
	waitpid(gone, NULL, 0);
	reduce_lock_self(&owner);
	strcpy(owner.token, "0123456789abcdef");
	if (owners[row].host)
		strcpy(owner.host, owners[row].host);
	if (owners[row].boot)
		strcpy(owner.boot, owners[row].boot);
	if (owners[row].pid < 0)
		owner.pid = gone;
	if (owners[row].started_shift == INT64_MIN)
		owner.started = 0;
	else
		owner.started += (uint64_t)owners[row].started_shift;
	owner.pidns += (uint64_t)owners[row].pidns_shift;
	return owner;
}

START_TEST(stale_only_if_certainly_dead)
{
	struct reduce_lock_owner owner = owner_of(_i), self, holder = {0};
	struct reduce_lock lock;
	char what[256];

	reduce_lock_self(&self);
	ck_assert_msg(reduce_lock_is_stale(&owner, &self) == owners[_i].stale, "%s", owners[_i].what);
	make_folder();
	write_lock(&owner);
	test_write_file(test_path(folder, ".x.json.driverec-tmp-0123456789abcdef"), "half", 4);
	test_write_file(test_path(folder, ".x.json.driverec-tmp-fedcba9876543210"), "of others", 9);
	int r = reduce_lock_take(dirfd_of_folder, "x.json", false, &lock, &holder);

	ck_assert_msg(r == (owners[_i].stale ? 0 : -EBUSY), "%s: %d", owners[_i].what, r);
	ck_assert_msg(exists(".x.json.driverec-tmp-0123456789abcdef") == !owners[_i].stale, "%s", owners[_i].what);
	if (r < 0) {
		reduce_lock_say(&holder, what, sizeof(what));
		ck_assert_ptr_nonnull(strstr(what, owner.host));
		/* By force, with what it left. */
		assert_ok(reduce_lock_take(dirfd_of_folder, "x.json", true, &lock, &holder));
		ck_assert(!exists(".x.json.driverec-tmp-0123456789abcdef"));
	}
	ck_assert(exists(".x.json.driverec-tmp-fedcba9876543210"));
	reduce_lock_release(&lock);
	ck_assert_uint_eq(entries(), 1);
}
END_TEST

static const char *const strange_locks[] = {
	"",
	"hello",
	"driverec reduce\n",
	"driverec reduce\ntoken ../../../../etc/x\npid 1\n",
	"driverec reduce\ntoken 0123456789abcdeg\npid 1\n",
	"driverec reduce\ntoken 0123456789abcdef\npid 99999999999999999999999\nhost \x1b[2J\n",
};

START_TEST(strange_lock_is_refused)
{
	struct reduce_lock lock = {.fd = -1};
	struct reduce_lock_owner owner = {0};
	char what[256];

	make_folder();
	test_write_file(test_path(folder, ".x.json.driverec-lock"), strange_locks[_i], strlen(strange_locks[_i]));
	ck_assert_int_eq(reduce_lock_take(dirfd_of_folder, "x.json", false, &lock, &owner), -EBUSY);
	reduce_lock_say(&owner, what, sizeof(what));
	ck_assert_ptr_null(strchr(what, '\x1b'));
	ck_assert_ptr_nonnull(strstr(what, "that does not say whose it is"));
	assert_ok(reduce_lock_take(dirfd_of_folder, "x.json", true, &lock, &owner));
	reduce_lock_release(&lock);
	ck_assert_uint_eq(entries(), 0);
}
END_TEST

START_TEST(broken_lock_is_noticed)
{
	struct reduce_lock first, second;
	struct reduce_lock_owner owner;

	make_folder();
	assert_ok(reduce_lock_take(dirfd_of_folder, "x.json", false, &first, &owner));
	assert_ok(reduce_lock_take(dirfd_of_folder, "x.json", true, &second, &owner));
	ck_assert(!reduce_lock_held(&first));
	ck_assert(reduce_lock_held(&second));
	/* The first one's end does not unlock the second one. */
	reduce_lock_release(&first);
	ck_assert(reduce_lock_held(&second));
	reduce_lock_release(&second);
	ck_assert_uint_eq(entries(), 0);
}
END_TEST

/* Counts who is inside; every other one is killed there, so that the rest finds stale locks. */
static atomic_int *inside, *most, *finished;

static int race(void)
{
	struct reduce_lock lock;
	struct reduce_lock_owner owner;

	for (int i = 0; i < 100000; i++) {
		int r = reduce_lock_take(dirfd_of_folder, "x.json", false, &lock, &owner);

		if (r == -EBUSY)
			continue;
		if (r < 0)
			return 1;
		int now = atomic_fetch_add(inside, 1) + 1;

		if (now > atomic_load(most))
			atomic_store(most, now);
		atomic_fetch_sub(inside, 1);
		if (atomic_fetch_add(finished, 1) % 2)
			raise(SIGKILL);
		reduce_lock_release(&lock);
		return 0;
	}
	return 2;
}

START_TEST(racers)
{
	atomic_int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(shared, MAP_FAILED);
	inside = shared;
	most = shared + 1;
	finished = shared + 2;
	make_folder();
	for (int round = 0; round < ROUNDS; round++) {
		int status;

		for (int i = 0; i < RACERS; i++)
			if (fork() == 0)
				_exit(race());
		while (wait(&status) > 0)
			ck_assert_msg(WIFSIGNALED(status) || WEXITSTATUS(status) == 0, "status %x", status);
	}
	ck_assert_int_eq(atomic_load(most), 1);
	ck_assert_int_eq(atomic_load(finished), RACERS * ROUNDS);
}
END_TEST

START_TEST(long_names)
{
	char name[256], first[REDUCE_NAME_MAX], second[REDUCE_NAME_MAX];
	struct reduce_lock lock;
	struct reduce_lock_owner owner;

	memset(name, 'n', 255);
	name[255] = 0;
	reduce_lock_tmp_name(name, "0123456789abcdef", first);
	ck_assert_uint_le(strlen(first), 255);
	name[254] = 'm'; /* the part that is cut off */
	reduce_lock_tmp_name(name, "0123456789abcdef", second);
	ck_assert_str_ne(first, second);
	make_folder();
	assert_ok(reduce_lock_take(dirfd_of_folder, name, false, &lock, &owner));
	reduce_lock_release(&lock);
}
END_TEST

/* As on NFS and SMB: no unnamed file can be linked. Without /proc nothing is known of processes either. */
static int take_exclusively(void)
{
	struct reduce_lock lock, second;
	struct reduce_lock_owner owner = {0};

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    umount2("/proc", MNT_DETACH) < 0)
		return 77;
	if (reduce_lock_take(dirfd_of_folder, "x.json", false, &lock, &owner) < 0)
		return 1;
	if (reduce_lock_take(dirfd_of_folder, "x.json", false, &second, &owner) != -EBUSY)
		return 2;
	if (owner.pid != getpid() || entries() != 1)
		return 3;
	reduce_lock_release(&lock);
	return entries() == 0 ? 0 : 4;
}

START_TEST(exclusive_creation)
{
	int status;

	make_folder();
	status = in_child(take_exclusively);
	if (status == 77)
		printf("exclusive_creation: skipped, it takes the right to unmount\n");
	else
		ck_assert_int_eq(status, 0);
}
END_TEST

/* --- the place --- */

static void expect_content(const char *name, const char *content)
{
	char *bytes = test_read_file(test_path(folder, name), NULL);

	ck_assert_str_eq(bytes, content);
	free(bytes);
}

START_TEST(appears_whole)
{
	struct reduce_place place, other;
	struct reduce_lock_owner owner;

	make_folder();
	assert_ok(reduce_place_open(test_path(folder, "out.json"), false, false, &place, &owner));
	ck_assert(!exists("out.json"));
	ck_assert_int_eq(write(place.fd, "whole", 5), 5);
	ck_assert_int_eq(reduce_place_open(test_path(folder, "out.json"), true, false, &other, &owner), -EBUSY);
	assert_ok(reduce_place_sync(&place));
	ck_assert(!exists("out.json"));
	assert_ok(reduce_place_commit(&place, false));
	reduce_place_close(&place);
	reduce_place_close(&place);
	expect_content("out.json", "whole");
	ck_assert_uint_eq(entries(), 1);
	/* It is there now. */
	ck_assert_int_eq(reduce_place_open(test_path(folder, "out.json"), false, false, &place, &owner), -EEXIST);
	ck_assert_int_eq(reduce_place_open(test_path(folder, "none/out.json"), false, false, &place, &owner), -ENOENT);
	ck_assert_int_eq(reduce_place_open(folder, true, false, &place, &owner), -EISDIR);
	ck_assert_int_eq(symlink("out.json", test_path(folder, "link.json")), 0);
	ck_assert_int_eq(mkfifo(test_path(folder, "pipe.json"), 0600), 0);
	ck_assert_int_eq(reduce_place_open(test_path(folder, "link.json"), true, false, &place, &owner), -ENXIO);
	ck_assert_int_eq(reduce_place_open(test_path(folder, "pipe.json"), true, false, &place, &owner), -ENXIO);
	ck_assert_uint_eq(entries(), 3);
}
END_TEST

START_TEST(given_up)
{
	struct reduce_place place, other;
	struct reduce_lock_owner owner;

	make_folder();
	test_write_file(test_path(folder, "out.json"), "old", 3);
	assert_ok(reduce_place_open(test_path(folder, "out.json"), true, false, &place, &owner));
	ck_assert_int_eq(write(place.fd, "half", 4), 4);
	reduce_place_close(&place);
	expect_content("out.json", "old");
	ck_assert_uint_eq(entries(), 1);
	/* A place whose lock was broken does nothing more. */
	assert_ok(reduce_place_open(test_path(folder, "out.json"), true, false, &place, &owner));
	assert_ok(reduce_place_open(test_path(folder, "out.json"), true, true, &other, &owner));
	ck_assert_int_eq(reduce_place_commit(&place, true), -ESTALE);
	reduce_place_close(&place);
	ck_assert(reduce_lock_held(&other.lock));
	reduce_place_close(&other);
	expect_content("out.json", "old");
	ck_assert_uint_eq(entries(), 1);
}
END_TEST

/* Somebody makes the file while we work on it. */
START_TEST(not_over_a_new_one)
{
	struct reduce_place place;
	struct reduce_lock_owner owner;

	make_folder();
	assert_ok(reduce_place_open(test_path(folder, "out.json"), false, false, &place, &owner));
	test_write_file(test_path(folder, "out.json"), "theirs", 6);
	ck_assert_int_eq(reduce_place_commit(&place, false), -EEXIST);
	reduce_place_close(&place);
	expect_content("out.json", "theirs");
	ck_assert_uint_eq(entries(), 1);
}
END_TEST

START_TEST(looks_like_the_old_one)
{
	const struct timespec times[] = {{1000000000, 5}, {1100000000, 7}};
	struct reduce_place place;
	struct reduce_lock_owner owner;
	struct stat old, new;
	const char *path;

	make_folder();
	path = test_path(folder, "out.json");
	test_write_file(path, "old", 3);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	ck_assert_int_eq(fchmod(fd, 0640), 0);
	if (geteuid() == 0)
		ck_assert_int_eq(fchown(fd, 12345, 23456), 0);
	ck_assert_int_eq(futimens(fd, times), 0);
	ck_assert_int_eq(fstat(fd, &old), 0);
	assert_ok(reduce_place_open(path, true, false, &place, &owner));
	ck_assert_int_eq(write(place.fd, "new", 3), 3);
	assert_ok(reduce_place_look_like(&place, fd, &old, true));
	assert_ok(reduce_place_commit(&place, true));
	reduce_place_close(&place);
	close(fd);
	ck_assert_int_eq(stat(path, &new), 0);
	expect_content("out.json", "new");
	ck_assert_uint_eq(new.st_mode, old.st_mode);
	ck_assert_uint_eq(new.st_uid, old.st_uid);
	ck_assert_uint_eq(new.st_gid, old.st_gid);
	ck_assert_int_eq(new.st_mtim.tv_sec, old.st_mtim.tv_sec);
	ck_assert_int_eq(new.st_mtim.tv_nsec, old.st_mtim.tv_nsec);
}
END_TEST

static int wait_for_signal(void)
{
	struct reduce_place place;
	struct reduce_lock_owner owner;

	cleanup_install();
	if (reduce_place_open(test_path(folder, "out.json"), true, false, &place, &owner) < 0)
		return 1;
	raise(SIGTERM);
	return 2;
}

START_TEST(signal_cleans_up)
{
	make_folder();
	test_write_file(test_path(folder, "out.json"), "old", 3);
	ck_assert_int_eq(in_child(wait_for_signal), 256 + SIGTERM);
	ck_assert_uint_eq(entries(), 1);
	expect_content("out.json", "old");
}
END_TEST

/* --- who writes it --- */

/* A process that has the file open until told to end. */
static pid_t open_elsewhere(const char *path, int flags, int *ret_end)
{
	int ready[2], end[2];
	char c;

	ck_assert_int_eq(pipe(ready), 0);
	ck_assert_int_eq(pipe(end), 0);
	pid_t pid = fork();

	if (pid == 0) {
		close(end[1]);
		int fd = open(path, flags);

		if (fd < 0 || write(ready[1], "r", 1) != 1)
			_exit(1);
		_exit(read(end[0], &c, 1) == 0 ? 0 : 2);
	}
	close(end[0]);
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
	*ret_end = end[1];
	return pid;
}

static const struct {
	int flags, found;
} openings[] = {{O_WRONLY, 1}, {O_RDWR, 1}, {O_WRONLY | O_APPEND, 1}, {O_RDONLY, 0}, {O_PATH, 0}};

START_TEST(writer_is_named)
{
	struct holder holder = {0};
	const char *path;
	char who[128];
	int end, status;

	make_folder();
	path = test_path(folder, "x.json");
	test_write_file(path, "x", 1);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	pid_t pid = open_elsewhere(path, openings[_i].flags, &end);

	signal(SIGIO, SIG_IGN);
	ck_assert_int_eq(holder_find(fd, &holder), openings[_i].found);
	if (openings[_i].found) {
		ck_assert_int_eq(holder.pid, pid);
		holder_say(&holder, who, sizeof(who));
		ck_assert_ptr_nonnull(strstr(who, "recorder_test_r"));
	}
	close(end);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(holder_find(fd, &holder), 0);
	close(fd);
}
END_TEST

START_TEST(stamp_sees_every_change)
{
	struct holder_stamp before, after;
	struct stat st;
	const char *path;

	make_folder();
	path = test_path(folder, "x.json");
	test_write_file(path, "x", 1);
	ck_assert_int_eq(stat(path, &st), 0);
	holder_stamp(&st, &before);
	ck_assert(holder_stamp_same(&before, &before));
	st.st_size++;
	holder_stamp(&st, &after);
	ck_assert(!holder_stamp_same(&before, &after));
	ck_assert_int_eq(stat(path, &st), 0);
	st.st_mtim.tv_nsec ^= 1;
	holder_stamp(&st, &after);
	ck_assert(!holder_stamp_same(&before, &after));
	ck_assert_int_eq(stat(path, &st), 0);
	st.st_ino++;
	holder_stamp(&st, &after);
	ck_assert(!holder_stamp_same(&before, &after));
}
END_TEST

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

int main(void)
{
	Suite *suite = suite_create("reduce: locks and places");
	TCase *tc = tcase_create("lock");

	tcase_add_test(tc, taken_once);
	tcase_add_test(tc, killed_owner_leaves_nothing);
	tcase_add_test(tc, zombie_is_dead);
	tcase_add_loop_test(tc, stale_only_if_certainly_dead, 0, COUNT(owners));
	tcase_add_loop_test(tc, strange_lock_is_refused, 0, COUNT(strange_locks));
	tcase_add_test(tc, broken_lock_is_noticed);
	tcase_add_test(tc, exclusive_creation);
	tcase_add_test(tc, long_names);
	suite_add_tcase(suite, tc);
	tc = tcase_create("racers");
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, racers);
	suite_add_tcase(suite, tc);
	tc = tcase_create("place");
	tcase_add_test(tc, appears_whole);
	tcase_add_test(tc, given_up);
	tcase_add_test(tc, not_over_a_new_one);
	tcase_add_test(tc, looks_like_the_old_one);
	tcase_add_test(tc, signal_cleans_up);
	suite_add_tcase(suite, tc);
	tc = tcase_create("writers");
	tcase_add_loop_test(tc, writer_is_named, 0, COUNT(openings));
	tcase_add_test(tc, stamp_sees_every_change);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}
