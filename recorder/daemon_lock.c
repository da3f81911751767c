/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "incidents/store.h"

/* The file holds its owner's pid and host, for the message to whoever comes second. */
static pid_t read_owner(int fd)
{
	char text[128] = "", host[64] = "", own[64] = "";
	long pid = 0;
	if (pread(fd, text, sizeof(text) - 1, 0) <= 0)
		return 0;
	char *space = strchr(text, ' ');
	if (!space)
		return 0;
	*space = 0;
	for (const char *c = text; *c >= '0' && *c <= '9' && pid < 100000000; c++)
		pid = pid * 10 + (*c - '0');
	snprintf(host, sizeof(host), "%.*s", (int)strcspn(space + 1, "\n"), space + 1);
	gethostname(own, sizeof(own) - 1);
	return strcmp(host, own) == 0 ? (pid_t)pid : 0;
}

static int write_owner(int fd)
{
	char text[128], host[64] = "";
	gethostname(host, sizeof(host) - 1);
	int length = snprintf(text, sizeof(text), "%ld %s\n", (long)getpid(), host);
	if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)length, 0) != length)
		return -EIO;
	return 0;
}

/* The locked descriptor, or -EBUSY with the owner. */
static int lock_file(const char *path, mode_t mode, pid_t *ret_pid)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int result = errno == EWOULDBLOCK ? -EBUSY : -errno;
		if (result == -EBUSY)
			*ret_pid = read_owner(fd);
		close(fd);
		return result;
	}
	int result = write_owner(fd);
	if (result < 0) {
		close(fd);
		return result;
	}
	return fd;
}

static int run_path(char *out, size_t room, const char *run_dir, const uint8_t id[INCIDENTS_ID_BYTES],
		    const char *ending)
{
	char text[INCIDENTS_ID_TEXT];
	incidents_id_text(text, id);
	int length = snprintf(out, room, "%s/daemons/%s.%s", run_dir, text, ending);
	return length < 0 || (size_t)length >= room ? -ENAMETOOLONG : 0;
}

static int take_store(struct daemon_lock *lock, const struct incidents_store *store, pid_t *ret_pid)
{
	char path[INCIDENTS_PATH_MAX];
	int length = snprintf(path, sizeof(path), "%s/lock", incidents_store_path(store));
	if (length < 0 || (size_t)length >= sizeof(path))
		return -ENAMETOOLONG;
	lock->store_fd = lock_file(path, 0600, ret_pid);
	return lock->store_fd < 0 ? lock->store_fd : 0;
}

static int take_run(struct daemon_lock *lock, const char *run_dir, const struct incidents_store *store,
		    pid_t *ret_pid)
{
	char path[512];
	int length = snprintf(path, sizeof(path), "%s/daemons", run_dir);
	if (length < 0 || (size_t)length >= sizeof(path))
		return -ENAMETOOLONG;
	/* Not followed by a check of the owner: who may write the run directory may do worse. */
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return -errno;
	int result = run_path(path, sizeof(path), run_dir, incidents_store_id(store), "lock");
	if (result == 0)
		result = run_path(lock->socket_path, sizeof(lock->socket_path), run_dir, incidents_store_id(store),
				  "sock");
	if (result < 0)
		return result;
	lock->run_fd = lock_file(path, 0644, ret_pid);
	return lock->run_fd < 0 ? lock->run_fd : 0;
}

int daemon_lock_take(struct daemon_lock *lock, const char *run_dir, const struct incidents_store *store,
		     pid_t *ret_pid)
{
	*lock = (struct daemon_lock){.store_fd = -1, .run_fd = -1};
	int result = take_store(lock, store, ret_pid);
	if (result == 0)
		result = take_run(lock, run_dir, store, ret_pid);
	if (result < 0) {
		lock->socket_path[0] = 0;
		daemon_lock_release(lock);
	}
	return result;
}

void daemon_lock_release(struct daemon_lock *lock)
{
	if (lock->socket_path[0])
		unlink(lock->socket_path);
	if (lock->run_fd >= 0)
		close(lock->run_fd);
	if (lock->store_fd >= 0)
		close(lock->store_fd);
	*lock = (struct daemon_lock){.store_fd = -1, .run_fd = -1};
}

bool daemon_lock_abandoned(const char *run_dir, const uint8_t *store_id, int64_t for_ns)
{
	char path[512];
	struct stat st;
	struct timespec now;
	if (run_path(path, sizeof(path), run_dir, store_id, "lock") < 0)
		return false;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT;
	/* A shared lock, given back at once: whoever starts just now fails for a moment at worst. */
	bool gone = fstat(fd, &st) == 0 && clock_gettime(CLOCK_REALTIME, &now) == 0 &&
		    now.tv_sec - st.st_mtim.tv_sec >= for_ns / 1000000000 && flock(fd, LOCK_SH | LOCK_NB) == 0;
	close(fd);
	return gone;
}

int daemon_lock_socket(const char *run_dir, const char *store_path, char *ret_path, size_t room)
{
	struct incidents_store *store;
	struct stat st;
	char path[512];
	int result = incidents_store_open(store_path, false, &store);
	if (result < 0)
		return result;
	result = run_path(path, sizeof(path), run_dir, incidents_store_id(store), "sock");
	incidents_store_free(store);
	if (result < 0)
		return result;
	size_t length = strlen(path);
	if (length >= room)
		return -ENAMETOOLONG;
	if (stat(path, &st) < 0)
		return -errno;
	memcpy(ret_path, path, length + 1);
	return 0;
}
