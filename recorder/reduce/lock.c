/* SPDX-License-Identifier: Apache-2.0 */
#include "reduce/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <zlib.h>

#include "output.h"
#include "plain_text.h"
#include "reduce/cleanup.h"

enum { LOCK_BYTES_MAX = 1024, TRIES = 5, ENDING_MAX = 48 };

#define MAGIC "driverec reduce\n"

void reduce_lock_name(const char *name, const char *ending, char ret_name[REDUCE_NAME_MAX])
{
	size_t bytes = strlen(name), more = strlen(ending);

	/* A name takes 255 bytes at most, and ours are longer than theirs. */
	if (bytes + more + 2 <= NAME_MAX) {
		ret_name[0] = '.';
		memcpy(ret_name + 1, name, bytes);
		ret_name[1 + bytes] = '.';
		memcpy(ret_name + 2 + bytes, ending, more + 1);
		return;
	}
	unsigned long crc = crc32(0, (const Bytef *)name, (uInt)bytes);

	snprintf(ret_name, REDUCE_NAME_MAX, ".%.*s-%08lx.%s", NAME_MAX - ENDING_MAX - 12, name, crc, ending);
}

void reduce_lock_tmp_name(const char *name, const char *token, char ret_name[REDUCE_NAME_MAX])
{
	char ending[ENDING_MAX];

	snprintf(ending, sizeof(ending), "driverec-tmp-%s", token);
	reduce_lock_name(name, ending, ret_name);
}

/* --- who --- */

/* A small file of /proc, without its line end. */
static void read_line(const char *path, char *out, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, out, room - 1);

	if (fd >= 0)
		close(fd);
	out[n > 0 ? n : 0] = 0;
	out[strcspn(out, "\n")] = 0;
}

/* When a process started, in clock ticks after boot; 0 where that cannot be told. */
static uint64_t started(int64_t pid, char *ret_state)
{
	char path[64], line[1024];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%" PRId64 "/stat", pid);
	read_line(path, line, sizeof(line));
	at = strrchr(line, ')'); /* the name may hold anything */
	*ret_state = at && at[1] ? at[2] : 0;
	/* Field 22; the one behind the parenthesis is the third. */
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

void reduce_lock_self(struct reduce_lock_owner *ret_self)
{
	struct reduce_lock_owner self = {.pid = getpid(), .uid = geteuid()};
	struct stat st;
	char state;

	self.started = started(self.pid, &state);
	gethostname(self.host, sizeof(self.host) - 1);
	read_line("/proc/sys/kernel/random/boot_id", self.boot, sizeof(self.boot));
	if (stat("/proc/self/ns/pid", &st) == 0)
		self.pidns = (uint64_t)st.st_ino;
	*ret_self = self;
}

static int new_token(char token[REDUCE_TOKEN_TEXT])
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	snprintf(token, REDUCE_TOKEN_TEXT, "%016" PRIx64, random);
	return 0;
}

bool reduce_lock_is_stale(const struct reduce_lock_owner *owner, const struct reduce_lock_owner *self)
{
	/* The boot id alone names a kernel; the host's name is held against copied ids, the namespace against
	 * pids that mean another process here. */
	if (!owner->boot[0] || strcmp(owner->boot, self->boot) != 0 || strcmp(owner->host, self->host) != 0 ||
	    !owner->pidns || owner->pidns != self->pidns || owner->pid <= 0 || owner->pid > INT32_MAX)
		return false;
	if (kill((pid_t)owner->pid, 0) < 0 && errno == ESRCH)
		return true;

	char state;
	uint64_t now = started(owner->pid, &state);

	/* A zombie holds nothing any more; whoever should reap it may never come, in containers. */
	return owner->started && now && (now != owner->started || state == 'Z' || state == 'X');
}

void reduce_lock_say(const struct reduce_lock_owner *owner, char *out, size_t room)
{
	char when[OUTPUT_TEXT_MAX];

	output_time(when, owner->made_unix_s * 1000000000);
	if (owner->pid)
		snprintf(out, room, "pid %" PRId64 " on %s, since %s", owner->pid, owner->host, when);
	else
		snprintf(out, room, "a lock of uid %u that does not say whose it is, made %s",
			 (unsigned)owner->uid, when);
}

/* --- its text --- */

static bool take_text(const char *line, const char *key, char *out, size_t room)
{
	size_t bytes = strlen(key);

	if (strncmp(line, key, bytes) != 0 || line[bytes] != ' ')
		return false;
	plain_text(out, room, line + bytes + 1, strcspn(line + bytes + 1, "\n"));
	return true;
}

static bool take_number(const char *line, const char *key, uint64_t *out)
{
	char digits[24];
	uint64_t number = 0;

	if (!take_text(line, key, digits, sizeof(digits)))
		return false;
	for (const char *c = digits; *c; c++) {
		if (*c < '0' || *c > '9' || number > (UINT64_MAX - 9) / 10)
			return true; /* left as it was: not known */
		number = number * 10 + (uint64_t)(*c - '0');
	}
	*out = number;
	return true;
}

int reduce_lock_parse(const char *text, struct reduce_lock_owner *ret_owner)
{
	struct reduce_lock_owner owner = {0};
	uint64_t pid = 0;

	if (strncmp(text, MAGIC, strlen(MAGIC)) != 0)
		return -EBADMSG;
	for (const char *line = text; *line;) {
		size_t bytes = strcspn(line, "\n");

		if (!take_text(line, "token", owner.token, sizeof(owner.token)) &&
		    !take_text(line, "host", owner.host, sizeof(owner.host)) &&
		    !take_text(line, "boot", owner.boot, sizeof(owner.boot)) &&
		    !take_number(line, "pid", &pid) && !take_number(line, "started", &owner.started))
			take_number(line, "pidns", &owner.pidns);
		line += bytes + (line[bytes] != 0);
	}
	/* The token becomes a file's name. */
	if (strspn(owner.token, "0123456789abcdef") != REDUCE_TOKEN_TEXT - 1)
		return -EBADMSG;
	owner.pid = pid <= INT32_MAX ? (int64_t)pid : 0;
	*ret_owner = owner;
	return 0;
}

static int print_text(const struct reduce_lock_owner *self, const char *token, char out[LOCK_BYTES_MAX])
{
	return snprintf(out, LOCK_BYTES_MAX,
			MAGIC "token %s\nhost %s\npid %" PRId64 "\nstarted %" PRIu64
			      "\nboot %s\npidns %" PRIu64 "\n",
			token, self->host, self->pid, self->started, self->boot, self->pidns);
}

/* --- taking it --- */

static int fill(int fd, const char *text, int bytes)
{
	ssize_t n = write(fd, text, (size_t)bytes);

	if (n != bytes)
		return n < 0 ? -errno : -ENOSPC;
	return fsync(fd) < 0 ? -errno : 0;
}

/* An unnamed file that gets its name when it is whole. -EOPNOTSUPP where there is no such thing. */
static int make_at_once(int dirfd, const char *lock_name, const char *text, int bytes, int *ret_fd)
{
	char path[32];
	int fd = openat(dirfd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644);
	int r;

	/* An older kernel or another system takes it for an attempt to write the folder. */
	if (fd < 0)
		return errno == EISDIR || errno == ENOENT || errno == EINVAL ? -EOPNOTSUPP : -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = fill(fd, text, bytes);
	if (r == 0 && linkat(AT_FDCWD, path, dirfd, lock_name, AT_SYMLINK_FOLLOW) < 0)
		r = errno == EEXIST ? -EEXIST : -EOPNOTSUPP;
	if (r < 0)
		close(fd);
	else
		*ret_fd = fd;
	return r;
}

static int make_exclusive(int dirfd, const char *lock_name, const char *text, int bytes, int *ret_fd)
{
	int fd = openat(dirfd, lock_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	int r;

	if (fd < 0)
		return -errno;
	r = fill(fd, text, bytes);
	if (r < 0) {
		unlinkat(dirfd, lock_name, 0);
		close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

static int read_owner(int fd, struct reduce_lock_owner *ret_owner)
{
	char text[LOCK_BYTES_MAX];
	struct stat st;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n < 0 || fstat(fd, &st) < 0)
		return -errno;
	text[n] = 0;
	*ret_owner = (struct reduce_lock_owner){0};
	reduce_lock_parse(text, ret_owner); /* else nobody: refused */
	ret_owner->made_unix_s = (int64_t)st.st_mtime;
	ret_owner->uid = st.st_uid;
	return 0;
}

static bool is_same_file(int dirfd, const char *name, int fd)
{
	struct stat there, ours;

	return fstatat(dirfd, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &ours) == 0 &&
	       there.st_ino == ours.st_ino && there.st_dev == ours.st_dev;
}

/*
 * Removes the lock that stands in the way. Two processes may find it stale at once: whoever can judge that is
 * on the same host, so flock() on the stale file itself decides, and the name is looked at again under it. 0:
 * gone, or another one stands there now. -EBUSY: held by *ret_owner.
 */
static int remove_old(int dirfd, const char *name, const char *lock_name, bool even_held,
		      const struct reduce_lock_owner *self, struct reduce_lock_owner *ret_owner)
{
	char tmp[REDUCE_NAME_MAX];
	int fd = openat(dirfd, lock_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	r = read_owner(fd, ret_owner);
	if (r == 0 && !even_held && !reduce_lock_is_stale(ret_owner, self))
		r = -EBUSY;
	if (r == 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && (errno == EWOULDBLOCK || !even_held))
		r = -EBUSY;
	if (r == 0 && is_same_file(dirfd, lock_name, fd)) {
		/* The temporary file first: as long as it is there, so is the lock that names it. */
		if (ret_owner->token[0]) {
			reduce_lock_tmp_name(name, ret_owner->token, tmp);
			unlinkat(dirfd, tmp, 0);
		}
		if (unlinkat(dirfd, lock_name, 0) < 0 && errno != ENOENT)
			r = -errno;
	}
	close(fd);
	return r;
}

int reduce_lock_take(int dirfd, const char *name, bool even_held, struct reduce_lock *ret_lock,
		     struct reduce_lock_owner *ret_owner)
{
	struct reduce_lock lock = {.dirfd = dirfd, .fd = -1};
	struct reduce_lock_owner self;
	char text[LOCK_BYTES_MAX];
	int r = new_token(lock.token);

	if (r < 0)
		return r;
	reduce_lock_self(&self);
	reduce_lock_name(name, "driverec-lock", lock.name);
	int bytes = print_text(&self, lock.token, text);

	for (int i = 0; i < TRIES; i++) {
		cleanup_block();
		r = make_at_once(dirfd, lock.name, text, bytes, &lock.fd);
		if (r == -EOPNOTSUPP)
			r = make_exclusive(dirfd, lock.name, text, bytes, &lock.fd);
		if (r == 0)
			cleanup_add(CLEANUP_LOCK, dirfd, lock.name);
		cleanup_unblock();
		if (r != -EEXIST)
			break;
		r = remove_old(dirfd, name, lock.name, even_held, &self, ret_owner);
		if (r < 0)
			break;
		r = -EBUSY;
	}
	if (r == 0)
		*ret_lock = lock;
	return r;
}

void reduce_lock_sweep(const char *path)
{
	struct reduce_lock lock;
	struct reduce_lock_owner owner;
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char folder[PATH_MAX], lock_name[REDUCE_NAME_MAX];
	struct stat st;
	int dirfd;

	if ((size_t)snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) + 1 : 1,
			     slash ? path : ".") >= sizeof(folder))
		return;
	dirfd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0)
		return;
	reduce_lock_name(name, "driverec-lock", lock_name);
	if (fstatat(dirfd, lock_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    reduce_lock_take(dirfd, name, false, &lock, &owner) == 0)
		reduce_lock_release(&lock);
	close(dirfd);
}

bool reduce_lock_held(const struct reduce_lock *lock)
{
	return lock->fd >= 0 && is_same_file(lock->dirfd, lock->name, lock->fd);
}

void reduce_lock_release(struct reduce_lock *lock)
{
	if (lock->fd < 0)
		return;
	cleanup_block();
	if (reduce_lock_held(lock))
		unlinkat(lock->dirfd, lock->name, 0);
	cleanup_remove(CLEANUP_LOCK);
	cleanup_unblock();
	close(lock->fd);
	lock->fd = -1;
}
