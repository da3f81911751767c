/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The job must not feel the recorder: whatever is missing, full, hostile or ending, the API returns and counts. It
 * never blocks, prints, raises a signal, starts a thread or changes errno.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <driverec/driverec.h>
#include <driverec/freeze.h>
#include <driverec/reader.h>

#include "support.h"

extern char **environ;

enum { SMALL_RING = 64 * 8192, NOBODY = 65534, MANY = 600 };

static const char *folder;
static drec *rec;
static char path[700];

static struct drec_options options_of(const char *run_dir)
{
	return (struct drec_options){.run_dir = run_dir, .job = "test", .name = "ring", .ring_bytes = SMALL_RING};
}

static void open_small(void)
{
	struct drec_options options = options_of(folder);
	rec = drec_open(&options);
	ck_assert_msg(rec != NULL, "%s", strerror(errno));
	snprintf(path, sizeof(path), "%s", drec_path(rec));
}

static void setup(void)
{
	folder = test_shm_folder();
}

static int count_event(void *context, const struct drec_event *event, const struct drec_place *place)
{
	(void)event, (void)place;
	++*(uint64_t *)context;
	return 0;
}

static struct drec_reader *open_reader(void)
{
	struct drec_reader_options writable = {.writable = 1};
	struct drec_reader *reader = NULL;
	struct drec_problem problem = {0};
	int ret = drec_reader_open(AT_FDCWD, path, &writable, &reader, &problem);
	ck_assert_msg(ret == 0, "%s: %s", path, problem.what);
	return reader;
}

/* Events that are, or were, in the ring. */
static uint64_t events_there(void)
{
	uint64_t count = 0;
	struct drec_poll_stats stats = {0};
	struct drec_reader *reader = open_reader();
	while (drec_reader_poll(reader, count_event, &count, 0, &stats) == 1)
		;
	ck_assert_uint_eq(stats.corrupt_bytes, 0);
	drec_reader_free(reader);
	return count + stats.overwritten;
}

static int exit_status(pid_t child)
{
	int status;
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* ---- where no ring can be made ---- */

static void expect_none(const char *run_dir, int error)
{
	struct drec_options options = options_of(run_dir);
	drec *none = drec_open(&options);
	ck_assert_ptr_null(none);
	ck_assert_int_eq(errno, error);
	drec_end(none, drec_begin(none, DREC_NAME(none, "as if nothing were amiss")));
}

START_TEST(missing_run_directory)
{
	expect_none("/nowhere/at/all", ENOENT);
}
END_TEST

START_TEST(run_directory_of_somebody_else)
{
	ck_assert_int_eq(chmod(folder, 0755), 0);
	if (geteuid() == 0)
		ck_assert_int_eq(seteuid(NOBODY), 0);
	else
		ck_assert_int_eq(chmod(folder, 0500), 0);
	expect_none(folder, EACCES);
	if (getuid() == 0)
		ck_assert_int_eq(seteuid(0), 0);
}
END_TEST

START_TEST(options_that_cannot_be)
{
	struct drec_options options = options_of(folder);
	options.job = "../up";
	ck_assert_ptr_null(drec_open(&options));
	ck_assert_int_eq(errno, EINVAL);
}
END_TEST

static bool may_mount(void)
{
	pid_t child = fork();
	int status = -1;
	if (child == 0)
		_exit(unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0);
	return waitpid(child, &status, 0) == child && status == 0;
}

static void mount_small(void)
{
	ck_assert_int_eq(unshare(CLONE_NEWNS), 0);
	ck_assert_int_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	ck_assert_int_eq(mount("none", folder, "tmpfs", 0, "size=64m"), 0);
}

START_TEST(a_small_file_system_is_left_to_the_job)
{
	struct drec_options options = options_of(folder);
	struct statvfs fs;
	mount_small();
	options.ring_bytes = 64 << 20;
	rec = drec_open(&options);
	ck_assert_ptr_nonnull(rec);
	ck_assert_uint_lt(drec_ring_bytes(rec), 8 << 20);
	ck_assert_int_eq(statvfs(folder, &fs), 0);
	ck_assert_uint_ge(fs.f_bavail * fs.f_frsize, 56 << 20);
	/* Many of them together leave three quarters. */
	for (int i = 0; i < 40; i++)
		drec_open(&options);
	ck_assert_int_eq(statvfs(folder, &fs), 0);
	ck_assert_uint_ge(fs.f_bavail * fs.f_frsize, 47 << 20);
}
END_TEST

START_TEST(no_room_at_all)
{
	mount_small();
	int fd = open(test_path(folder, "full"), O_WRONLY | O_CREAT, 0600);
	ck_assert_int_eq(fallocate(fd, 0, 0, 63 << 20), 0);
	close(fd);
	expect_none(folder, ENOSPC);
	ck_assert_int_eq(mount("none", folder, "tmpfs", MS_REMOUNT | MS_RDONLY, "size=64m"), 0);
	expect_none(test_path(folder, "new"), EROFS);
}
END_TEST

/* ---- full, dead, gone ---- */

START_TEST(a_ring_pinned_all_over_is_as_quick)
{
	struct drec_pin pin = {.from = 1};
	struct timespec began, ended;
	unsigned entry;
	open_small();
	struct drec_reader *reader = open_reader();
	for (int i = 0; i < 3; i++, pin.from += 32)
		ck_assert_int_ge(drec_pin_set(reader, &pin, 1, &entry), 0);
	clock_gettime(CLOCK_MONOTONIC, &began);
	for (int i = 0; i < 200000; i++)
		drec_span(rec, 0, 0, 1, 2);
	clock_gettime(CLOCK_MONOTONIC, &ended);
	ck_assert_uint_gt(drec_lost(rec, DREC_LOSS_PINNED_FULL), 100000);
	/* 20 us each would be 4 s: no call searches, let alone waits. */
	ck_assert_int_lt(ended.tv_sec - began.tv_sec, 4);
	drec_reader_free(reader);
}
END_TEST

START_TEST(an_unlinked_ring_goes_on)
{
	open_small();
	unlink(path);
	for (int i = 0; i < 100000; i++)
		drec_span(rec, 0, 0, 1, 2);
	ck_assert_uint_eq(drec_lost(rec, 0), 0);
}
END_TEST

/* ---- children ---- */

static int child_record(void)
{
	for (int i = 0; i < 1000; i++) {
		drec_end(rec, drec_begin(rec, 0));
		drec_span(rec, 0, drec_name(rec, "of the child"), 1, 2);
	}
	drec_close(rec);
	struct drec_options options = options_of(folder);
	options.name = "child";
	drec *own = drec_open(&options);
	drec_span(own, 0, 0, 1, 2);
	return own && drec_lost(own, 0) == 0 ? 0 : 1;
}

static void check_only_the_parents(void)
{
	drec_instant(rec, 0, 0);
	ck_assert_uint_eq(events_there(), 2);
	ck_assert_uint_eq(drec_lost(rec, 0), 0);
	struct drec_reader *reader = open_reader();
	ck_assert_uint_eq(drec_reader_state(reader)->end_mark, 0);
	drec_reader_free(reader);
}

START_TEST(a_forked_child_writes_nothing)
{
	open_small();
	drec_instant(rec, 0, 0);
	pid_t child = fork();
	if (child == 0) /* by exit(): the library's own end runs as well */
		exit(child_record());
	ck_assert_int_eq(exit_status(child), 0);
	check_only_the_parents();
}
END_TEST

START_TEST(a_cloned_child_writes_nothing)
{
	open_small();
	drec_instant(rec, 0, 0);
	pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (child == 0)
		_exit(child_record());
	ck_assert_int_eq(exit_status(child), 0);
	check_only_the_parents();
}
END_TEST

START_TEST(a_spawned_command_changes_nothing)
{
	char name[] = "true";
	char *const command[] = {name, NULL};
	pid_t child;
	open_small();
	drec_instant(rec, 0, 0);
	ck_assert_int_eq(posix_spawnp(&child, "true", NULL, NULL, command, environ), 0);
	ck_assert_int_eq(exit_status(child), 0);
	check_only_the_parents();
}
END_TEST

START_TEST(exec_detaches_and_exit_is_marked)
{
	int ready[2];
	char byte;
	ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
	pid_t child = fork();
	if (child == 0) {
		open_small();
		drec_begin(rec, 0);
		ck_assert_int_eq(write(ready[1], path, sizeof(path)), sizeof(path));
		execlp("sleep", "sleep", "60", (char *)NULL);
		_exit(1);
	}
	close(ready[1]);
	ck_assert_int_eq(read(ready[0], path, sizeof(path)), sizeof(path));
	ck_assert_int_eq(read(ready[0], &byte, 1), 0); /* closed by exec */
	struct drec_reader *reader = open_reader();
	ck_assert_int_eq(drec_reader_alive(reader), 2);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	ck_assert_int_eq(drec_reader_alive(reader), 0);
	ck_assert_uint_eq(drec_reader_state(reader)->end_mark, 0);
	drec_reader_free(reader);
}
END_TEST

START_TEST(an_exit_without_close_is_marked)
{
	open_small();
	strcpy(path, drec_path(rec));
	pid_t child = fork();
	if (child == 0) {
		struct drec_options options = options_of(folder);
		options.name = "child";
		rec = drec_open(&options);
		drec_begin(rec, 0);
		ck_assert_int_eq(rename(drec_path(rec), test_path(folder, "kept.ring")), 0);
		exit(rec == NULL);
	}
	ck_assert_int_eq(exit_status(child), 0);
	strcpy(path, test_path(folder, "kept.ring"));
	struct drec_reader *reader = open_reader();
	struct drec_open_info open;
	ck_assert_int_eq(drec_reader_alive(reader), 0);
	ck_assert_uint_eq(drec_reader_state(reader)->end_mark, DREC_MARK_EXIT);
	ck_assert_int_eq(drec_reader_open_spans(reader, &open, 1), 1);
	drec_reader_free(reader);
}
END_TEST

/* ---- threads ---- */

static _Atomic unsigned running, stop;
static _Atomic uint64_t recorded;

static void *record_some(void *context)
{
	(void)context;
	for (int i = 0; i < 100; i++)
		drec_end(rec, drec_begin(rec, DREC_NAME(rec, "some")));
	atomic_fetch_add(&recorded, 100);
	return NULL;
}

static void *record_until_stop(void *context)
{
	atomic_fetch_add(&running, 1);
	while (!atomic_load(&stop))
		record_some(context);
	return NULL;
}

static void *record_and_wait(void *context)
{
	record_some(context);
	atomic_fetch_add(&running, 1);
	while (!atomic_load(&stop))
		usleep(1000);
	return record_some(context);
}

START_TEST(many_threads_on_few_slots)
{
	struct drec_options options = options_of(folder);
	options.ring_bytes = 8 << 20; /* 1024 chunks, so that nothing is overwritten; 256 slots */
	options.chunk_bytes = 8192;
	static pthread_t thread[MANY];
	pthread_attr_t small_stack;
	pthread_attr_init(&small_stack);
	pthread_attr_setstacksize(&small_stack, 256 << 10);
	rec = drec_open(&options);
	ck_assert_ptr_nonnull(rec);
	strcpy(path, drec_path(rec));
	for (int i = 0; i < MANY; i++)
		ck_assert_int_eq(pthread_create(&thread[i], &small_stack, record_and_wait, NULL), 0);
	while (running < MANY)
		usleep(1000);
	ck_assert_uint_eq(drec_lost(rec, DREC_LOSS_NO_SLOT), (MANY - 256) * 100);
	atomic_store(&stop, 1);
	for (int i = 0; i < MANY; i++)
		pthread_join(thread[i], NULL);
	/* A begin that finds no slot is counted, its end has nothing to end. */
	ck_assert_uint_eq(events_there() + drec_lost(rec, 0), recorded);
}
END_TEST

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* their own books of threads break */
/* Threads that vanish without their exit handlers leave slots behind, which others take: each only once. */
static void *vanish(void *context)
{
	record_some(context);
	syscall(SYS_exit, 0);
	return NULL;
}

START_TEST(threads_that_vanish)
{
	pthread_t thread;
	pthread_t busy[4];
	open_small();
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&busy[i], NULL, record_until_stop, NULL), 0);
	for (int i = 0; i < 100; i++) {
		ck_assert_int_eq(pthread_create(&thread, NULL, vanish, NULL), 0);
		pthread_join(thread, NULL);
	}
	atomic_store(&stop, 1);
	for (int i = 0; i < 4; i++)
		pthread_join(busy[i], NULL);
	ck_assert_uint_gt(events_there(), 0);
	ck_assert_uint_eq(drec_lost(rec, 0), 0);
}
END_TEST
#endif

static void *close_it(void *context)
{
	drec_close(context);
	return NULL;
}

START_TEST(close_while_others_record)
{
	pthread_t thread[4], closer[2];
	open_small();
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, record_until_stop, NULL), 0);
	while (running < 4 || recorded < 10000)
		sched_yield();
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&closer[i], NULL, close_it, rec), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(closer[i], NULL);
	uint64_t at_close = recorded;
	while (recorded < at_close + 10000)
		sched_yield();
	atomic_store(&stop, 1);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	ck_assert_uint_gt(events_there(), 0);
	struct drec_reader *reader = open_reader();
	ck_assert_int_eq(drec_reader_alive(reader), 0);
	ck_assert_uint_eq(drec_reader_state(reader)->end_mark, DREC_MARK_CLOSE);
	drec_reader_free(reader);
}
END_TEST

/* ---- the process ---- */

#ifdef LIBDRIVEREC
static void (*loaded_span)(drec *, uint32_t, uint32_t, drec_time, drec_time);
static drec *loaded_rec;

static void *use_loaded(void *context)
{
	(void)context;
	do
		loaded_span(loaded_rec, 0, 0, 1, 2);
	while (!atomic_load(&stop));
	return NULL;
}

START_TEST(unloading_the_library_changes_nothing)
{
	struct drec_options options = options_of(folder);
	pthread_t thread;
	void *library = dlopen(LIBDRIVEREC, RTLD_NOW | RTLD_LOCAL);
	ck_assert_msg(library != NULL, "%s", dlerror());
	drec *(*loaded_open)(const struct drec_options *);
	*(void **)&loaded_open = dlsym(library, "drec_open");
	*(void **)&loaded_span = dlsym(library, "drec_span");
	loaded_rec = loaded_open(&options);
	ck_assert_ptr_nonnull(loaded_rec);
	ck_assert_int_eq(pthread_create(&thread, NULL, use_loaded, NULL), 0);
	dlclose(library);
	usleep(1000);
	atomic_store(&stop, 1);
	pthread_join(thread, NULL); /* its exit handler is the library's */
	loaded_span(loaded_rec, 0, 0, 1, 2);
}
END_TEST
#endif

static int count_tasks(void)
{
	int count = 0;
	DIR *dir = opendir("/proc/self/task");
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

START_TEST(nothing_printed_no_thread_no_handler_no_errno)
{
	struct sigaction before[65], after;
	char text[16];
	int tasks = count_tasks(), out = dup(1), err = dup(2);
	int quiet = open(test_path(folder, "quiet"), O_RDWR | O_CREAT, 0600);
	for (int i = 1; i < 65; i++)
		sigaction(i, NULL, &before[i]);
	fflush(NULL);
	dup2(quiet, 1), dup2(quiet, 2);
	errno = 1234;
	struct drec_options options = options_of(folder), none = options_of("/nowhere/at/all");
	rec = drec_open(&options);
	int opened = errno;
	for (int i = 0; i < 40000; i++) {
		snprintf(text, sizeof(text), "n%d", i);
		drec_end(rec, drec_begin(rec, drec_name(rec, text)));
		drec_step_begin(rec, (uint64_t)i, 0);
	}
	drec_trigger(rec, "quiet?");
	drec_close(rec);
	int closed = errno;
	drec_open(&none);
	fflush(NULL);
	dup2(out, 1), dup2(err, 2);
	ck_assert_ptr_nonnull(rec);
	ck_assert_int_eq(opened, 1234);
	ck_assert_int_eq(closed, 1234);
	ck_assert_int_eq(lseek(quiet, 0, SEEK_END), 0);
	ck_assert_int_eq(count_tasks(), tasks);
	for (int i = 1; i < 65; i++) {
		if (sigaction(i, NULL, &after) == 0)
			ck_assert(after.sa_handler == before[i].sa_handler && after.sa_flags == before[i].sa_flags);
	}
}
END_TEST

static int count_rings(void)
{
	int count = 0;
	const struct dirent *entry;
	DIR *dir = opendir(test_path(folder, "rings"));
	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir)) != NULL)
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

START_TEST(old_dead_rings_are_removed)
{
	for (int i = 0; i < 6; i++) {
		pid_t child = fork();
		if (child == 0) {
			open_small();
			_exit(0);
		}
		ck_assert_int_eq(exit_status(child), 0);
	}
	open_small();
	ck_assert_int_eq(count_rings(), 2 + 1);
	open_small(); /* our own live one is none of them */
	ck_assert_int_eq(count_rings(), 2 + 2);
	ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST

START_TEST(modes_do_not_hang_on_the_umask)
{
	struct stat st;
	umask(077);
	open_small();
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	ck_assert_int_eq(chmod(test_path(folder, "rings"), 03777), 0);
	open_small();
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0660);
}
END_TEST

/* ---- near the memory limit ---- */

static const char cgroups[] = "/sys/fs/cgroup/memory";
static char group[200];

static bool write_group(const char *file, const char *text)
{
	char at[300];
	snprintf(at, sizeof(at), "%s/%s", group, file);
	int fd = open(at, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) > 0;
	if (fd >= 0)
		close(fd);
	return ok;
}

/* Not with the thread sanitizer, whose own memory alone is beyond the limit. */
static bool may_limit(void)
{
#ifdef __SANITIZE_THREAD__
	return false;
#endif
	snprintf(group, sizeof(group), "%s/driverec-test-%d", cgroups, (int)getpid());
	return mkdir(group, 0700) == 0 && write_group("memory.limit_in_bytes", "60000000");
}

START_TEST(near_the_memory_limit_the_job_lives)
{
	struct drec_options options = options_of(folder);
	char pid[16];
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	ck_assert(write_group("cgroup.procs", pid));
	options.ring_bytes = 64 << 20;
	drec *first = drec_open(&options);
	if (first)
		ck_assert_uint_le(drec_ring_bytes(first), 60000000 / 4);
	for (int i = 0; i < 30; i++)
		drec_open(&options);
	for (int i = 0; i < 100000; i++)
		drec_span(first, 0, 0, 1, 2);
}
END_TEST

static TCase *add(Suite *suite, const char *name)
{
	TCase *tcase = tcase_create(name);
	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	return tcase;
}

int main(void)
{
	Suite *suite = suite_create("job untouched");
	TCase *none = add(suite, "no ring"), *full = add(suite, "full or gone"), *children = add(suite, "children"),
	      *threads = add(suite, "threads"), *process = add(suite, "process"), *limit = add(suite, "memory limit");
	tcase_add_test(none, missing_run_directory);
	tcase_add_test(none, run_directory_of_somebody_else);
	tcase_add_test(none, options_that_cannot_be);
	if (may_mount()) {
		tcase_add_test(none, a_small_file_system_is_left_to_the_job);
		tcase_add_test(none, no_room_at_all);
	} else {
		printf("left out: small file systems (mounting is not allowed)\n");
	}
	tcase_add_test(full, a_ring_pinned_all_over_is_as_quick);
	tcase_add_test(full, an_unlinked_ring_goes_on);
	tcase_add_test(children, a_forked_child_writes_nothing);
	tcase_add_test(children, a_cloned_child_writes_nothing);
	tcase_add_test(children, a_spawned_command_changes_nothing);
	tcase_add_test(children, exec_detaches_and_exit_is_marked);
	tcase_add_test(children, an_exit_without_close_is_marked);
	tcase_add_test(threads, many_threads_on_few_slots);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	tcase_add_test(threads, threads_that_vanish);
#endif
	tcase_add_test(threads, close_while_others_record);
#ifdef LIBDRIVEREC
	tcase_add_test(process, unloading_the_library_changes_nothing);
#endif
	tcase_add_test(process, nothing_printed_no_thread_no_handler_no_errno);
	tcase_add_test(process, old_dead_rings_are_removed);
	tcase_add_test(process, modes_do_not_hang_on_the_umask);
	if (may_limit())
		tcase_add_test(limit, near_the_memory_limit_the_job_lives);
	else
		printf("left out: the memory limit (no cgroup can be made, or the sanitizer needs more)\n");
	int ret = test_run(suite);
	if (group[0])
		rmdir(group);
	return ret;
}
