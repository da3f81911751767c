/* SPDX-License-Identifier: Apache-2.0 */
#include "reduce/crew.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "reduce/cleanup.h"

/* The fixed part of a reduction, decoder windows and buffers included. */
#define MEMORY_FIXED ((uint64_t)96 << 20)
#define WATCH_NS     100000000

uint64_t crew_memory_needed(const struct reduce_file *file, bool independently)
{
	size_t bytes = strlen(file->path);
	bool text = bytes > 5 && strcmp(file->path + bytes - 5, ".json") == 0;
	uint64_t packed = file->bytes > UINT64_MAX / 16 ? file->bytes : file->bytes * 12;

	/* Verifying independently takes some 200 bytes an event, which is about what it takes as text; packed
	 * that is a tenth. What else there is takes less than 40. */
	return MEMORY_FIXED + (text ? file->bytes : packed) / (independently ? 1 : 4);
}

static uint64_t needed_of(const struct crew *crew, const struct reduce_file *file)
{
	const struct reduce_settings *settings = crew->settings;

	return crew_memory_needed(file, (settings->verify || settings->in_place) && !settings->no_verify);
}

static uint64_t number_of_file(const char *path, const char *key)
{
	char text[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	const char *at = text;

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	if (key) {
		at = strstr(text, key);
		at = at ? at + strlen(key) : "";
	}
	at += strspn(at, " \t");
	return *at >= '0' && *at <= '9' ? strtoull(at, NULL, 10) : UINT64_MAX;
}

/* The cgroup's own limit; above it there may be others, which MemAvailable does not know either. */
static uint64_t cgroup_free(void)
{
	char line[1024] = "", path[1200];
	FILE *file = fopen("/proc/self/cgroup", "re");
	uint64_t max = UINT64_MAX, used;

	while (file && fgets(line, sizeof(line), file) && strncmp(line, "0::", 3) != 0)
		line[0] = 0;
	if (file)
		fclose(file);
	line[strcspn(line, "\n")] = 0;
	if (strncmp(line, "0::", 3) != 0)
		return UINT64_MAX;
	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.max", line + 3);
	max = number_of_file(path, NULL);
	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.current", line + 3);
	used = number_of_file(path, NULL);
	if (max == UINT64_MAX || used == UINT64_MAX)
		return UINT64_MAX;
	return max > used ? max - used : 0;
}

uint64_t crew_memory_free(void)
{
	uint64_t kib = number_of_file("/proc/meminfo", "MemAvailable:");
	uint64_t machine = kib > UINT64_MAX / 1024 ? UINT64_MAX : kib * 1024, cgroup = cgroup_free();

	return machine < cgroup ? machine : cgroup;
}

static struct reduce_job job_of(const struct reduce_file *file)
{
	return (struct reduce_job){file->path, file->relative, file->from_folder};
}

static bool is_bad(const struct reduce_result *result)
{
	return result->outcome == REDUCE_FAILED || result->outcome == REDUCE_DIFFERS;
}

/* --- one at a time --- */

struct alone {
	const struct crew *crew;
	const struct reduce_file *file;
	struct reduce_result *result;
};

static void watch_alone(void *context)
{
	const struct alone *alone = context;
	const struct reduce_result *result = alone->result;

	if (alone->crew->watch)
		alone->crew->watch(alone->crew->context, &result, &alone->file, 1);
}

static int run_alone(const struct crew *crew)
{
	struct reduce_result *result = malloc(sizeof(*result));
	bool stop = false;

	if (!result)
		return -ENOMEM;
	for (size_t i = 0; i < crew->files->count && !stop; i++) {
		struct alone alone = {crew, &crew->files->file[i], result};
		struct reduce_job job = job_of(alone.file);

		reduce_one(crew->settings, &job, result, watch_alone, &alone);
		crew->done(crew->context, alone.file, result);
		stop = is_bad(result) && !crew->keep_going;
	}
	free(result);
	return 0;
}

/* --- several --- */

struct worker {
	pid_t pid; /* 0: none */
	const struct reduce_file *file;
	uint64_t memory;
};

struct gang {
	const struct crew *crew;
	struct reduce_result *result; /* shared, one a worker */
	struct worker worker[CREW_MAX];
	unsigned running;
	size_t next;
	bool stop;
};

static void work(const struct gang *gang, unsigned at, pid_t parent)
{
	struct reduce_job job = job_of(gang->worker[at].file);

	cleanup_forget();
	cleanup_unblock();
	/* Its death by a signal that it cannot catch must not leave us behind. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() == parent)
		reduce_one(gang->crew->settings, &job, &gang->result[at], NULL, NULL);
	_exit(0);
}

static int start(struct gang *gang, unsigned at)
{
	pid_t self = getpid(), pid;

	gang->worker[at].file = &gang->crew->files->file[gang->next];
	gang->worker[at].memory = needed_of(gang->crew, gang->worker[at].file);
	gang->result[at] = (struct reduce_result){0};
	fflush(stdout);
	fflush(stderr);
	cleanup_block();
	pid = fork();
	if (pid == 0)
		work(gang, at, self);
	if (pid > 0)
		cleanup_add_child(pid);
	cleanup_unblock();
	if (pid < 0)
		return -errno;
	gang->worker[at].pid = pid;
	gang->running++;
	gang->next++;
	return 0;
}

/* The first one always has room. */
static bool has_room(const struct gang *gang)
{
	uint64_t needed = needed_of(gang->crew, &gang->crew->files->file[gang->next]);
	uint64_t available = crew_memory_free(), planned = needed;

	for (unsigned i = 0; i < gang->crew->at_once; i++)
		if (gang->worker[i].pid)
			planned += gang->worker[i].memory;
	return gang->running == 0 || planned <= available / 4 * 3;
}

static int start_more(struct gang *gang)
{
	int r = 0;

	for (unsigned i = 0; i < gang->crew->at_once; i++) {
		if (gang->worker[i].pid)
			continue;
		if (gang->stop || gang->next == gang->crew->files->count || !has_room(gang))
			return 0;
		r = start(gang, i);
		if (r < 0)
			return gang->running ? 0 : r;
	}
	return 0;
}

static void finish(struct gang *gang, pid_t pid, int status)
{
	const struct crew *crew = gang->crew;

	for (unsigned i = 0; i < crew->at_once; i++) {
		struct reduce_result *result = &gang->result[i];

		if (gang->worker[i].pid != pid)
			continue;
		gang->worker[i].pid = 0;
		gang->running--;
		if (WIFSIGNALED(status) || result->outcome == REDUCE_WAITING) {
			result->outcome = REDUCE_FAILED;
			snprintf(result->why, sizeof(result->why),
				 WIFSIGNALED(status) ? "its process was ended by signal %d%s"
						     : "its process ended (%d)%s",
				 WIFSIGNALED(status) ? WTERMSIG(status) : status,
				 WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
					 ? " (out of memory? fewer --jobs)"
					 : "");
		}
		crew->done(crew->context, gang->worker[i].file, result);
		gang->stop = gang->stop || (is_bad(result) && !crew->keep_going);
	}
}

static void watch(const struct gang *gang)
{
	const struct reduce_result *results[CREW_MAX];
	const struct reduce_file *files[CREW_MAX];
	unsigned count = 0;

	for (unsigned i = 0; i < gang->crew->at_once; i++) {
		if (!gang->worker[i].pid)
			continue;
		results[count] = &gang->result[i];
		files[count++] = gang->worker[i].file;
	}
	gang->crew->watch(gang->crew->context, results, files, count);
}

/* The next process that ends; where somebody watches, 0 after a moment if none did. */
static pid_t wait_for_one(const struct gang *gang, int *ret_status)
{
	const struct timespec moment = {.tv_nsec = WATCH_NS};
	pid_t pid = waitpid(-1, ret_status, gang->crew->watch ? WNOHANG : 0);

	if (pid == 0) {
		watch(gang);
		nanosleep(&moment, NULL);
	}
	return pid < 0 && errno == EINTR ? 0 : pid;
}

static int run_gang(const struct crew *crew)
{
	struct gang gang = {.crew = crew};
	size_t bytes = crew->at_once * sizeof(*gang.result);
	int status, r = 0;

	gang.result = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (gang.result == MAP_FAILED)
		return -errno;
	r = start_more(&gang);
	while (r == 0 && gang.running > 0) {
		pid_t pid = wait_for_one(&gang, &status);

		if (pid < 0)
			r = -errno;
		if (pid <= 0)
			continue;
		cleanup_remove_child(pid);
		finish(&gang, pid, status);
		r = start_more(&gang);
	}
	munmap(gang.result, bytes);
	return r;
}

int crew_run(const struct crew *crew)
{
	return crew->at_once > 1 && crew->files->count > 1 ? run_gang(crew) : run_alone(crew);
}
