/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the producer is there. Its POSIX lock on byte 0 says yes whatever pid namespace it lives in. With
 * the lock free it is gone, or it is the same process without the descriptor (exec, closefrom), or we cannot
 * see its processes: then two seconds without a commit decide.
 */
#include "reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { QUIET_S = 2, PROCESS_GONE = 0, PROCESS_THERE = 1, PROCESS_UNSEEN = 2 };

static int lock_held(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
	if (fcntl(fd, F_GETLK, &lock) < 0)
		return -errno;
	return lock.l_type != F_UNLCK;
}

/* State letter and start time of a process, from /proc/<pid>/stat; the command may hold any character. */
static int read_process(uint64_t pid, char *ret_state, uint64_t *ret_start)
{
	char path[64], text[1024];
	snprintf(path, sizeof(path), "/proc/%ju/stat", (uintmax_t)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t count = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (count <= 0)
		return -ESRCH;
	text[count] = 0;
	const char *at = strrchr(text, ')');
	if (!at || at[1] != ' ')
		return -ESRCH;
	*ret_state = at[2];
	at++;
	for (int field = 3; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (!at)
		return -ESRCH;
	*ret_start = strtoull(at + 1, NULL, 10);
	return 0;
}

/* A zombie is gone: its memory and locks are. */
static int find_process(const struct drec_header *header)
{
	struct stat st;
	char state = 0;
	uint64_t start = 0;
	if (stat("/proc/self/ns/pid", &st) < 0 || (uint64_t)st.st_ino != header->pidns_ino)
		return PROCESS_UNSEEN;
	int r = read_process(header->pid, &state, &start);
	if (r == -ENOENT || r == -ESRCH)
		return PROCESS_GONE;
	if (r < 0)
		return PROCESS_UNSEEN;
	return start == header->pid_start && state != 'Z' && state != 'X' ? PROCESS_THERE : PROCESS_GONE;
}

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Whether there was a commit since the last look; 0 at the first, and *ret_quiet_ns since which there was none. */
static int note_commits(struct drec_reader *reader, int64_t *ret_quiet_ns)
{
	int r = ringread_chunks(reader, reader->again);
	if (r < 0)
		return r;
	uint64_t sum = 0;
	for (uint32_t i = 0; i < reader->header.n_chunks; i++)
		sum = sum * 31 + reader->again[i].commit;
	int64_t now = now_ns();
	int moved = reader->commit_seen_ns != 0 && sum != reader->commit_sum;
	if (moved || reader->commit_seen_ns == 0)
		reader->commit_seen_ns = now;
	reader->commit_sum = sum;
	*ret_quiet_ns = now - reader->commit_seen_ns;
	return moved;
}

int drec_reader_alive(struct drec_reader *reader)
{
	int64_t quiet_ns;
	if (reader->header.kind != DREC_FILE_RING)
		return 0;
	int r = ringread_state(reader);
	if (r < 0)
		return r;
	if (reader->state.end_mark)
		return 0;
	r = lock_held(reader->fd);
	if (r != 0)
		return r;
	int process = find_process(&reader->header);
	if (process == PROCESS_GONE)
		return 0;
	int moved = note_commits(reader, &quiet_ns);
	if (moved)
		return moved;
	if (process == PROCESS_THERE)
		return 2;
	return quiet_ns < (int64_t)QUIET_S * 1000000000;
}
