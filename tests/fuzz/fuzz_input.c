/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unpacking: the bytes and what is said of them are the same from a file, read in large and in small pieces, and
 * from a socket that gives the packed bytes in pieces. Built twice: with the inflater that the build has, and
 * with zlib.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <reducer/input.h>

#include "fuzz.h"

enum { OUT_MAX = 4 << 20, PIECES_MAX = 24, SOCKET_BYTES_MAX = 16 << 10, DOUBTFUL_BYTES = 1024 };

struct reading {
	int result;    /* of opening */
	int64_t last;  /* of the last read */
	size_t count;
	uint64_t offset;
	enum reducer_packing packing;
	struct reducer_problem problem;
	unsigned char bytes[OUT_MAX];
};

static void read_all(int fd, size_t room, struct reading *ret)
{
	struct reducer_input *input = NULL;
	ret->count = 0;
	ret->last = 0;
	ret->problem = (struct reducer_problem){0};
	ret->result = reducer_input_from_fd(fd, &input, &ret->problem);
	if (ret->result < 0)
		return;
	ret->packing = reducer_input_packing(input);
	while (ret->count < OUT_MAX) {
		size_t some = room < OUT_MAX - ret->count ? room : OUT_MAX - ret->count;
		ret->last = reducer_input_read(input, ret->bytes + ret->count, some);
		if (ret->last <= 0)
			break;
		fuzz_require((size_t)ret->last <= some, "more bytes than there is room");
		ret->count += (size_t)ret->last;
	}
	ret->offset = reducer_input_offset(input);
	if (ret->last == 0) {
		fuzz_require(reducer_input_read(input, ret->bytes, room ? 1 : 0) == 0, "the end stays the end");
		if (reducer_input_problem(input))
			ret->problem = *reducer_input_problem(input);
	}
	reducer_input_free(input);
}

/*
 * Where the data is damaged, the last bytes before it was found out may differ: ISA-L goes on for a symbol or two with
 * a distance that is none, and copies what happens to be there. `loosely`: more of them, and how many there are (it
 * looks several symbols ahead, and less far at the end of what it has).
 */
static void judge(const struct reading *a, const struct reading *b, bool loosely, const char *what)
{
	size_t common = a->count < b->count ? a->count : b->count;
	fuzz_require(a->result == b->result && a->packing == b->packing, "%s: the same packing", what);
	fuzz_require(a->last >= 0 && b->last >= 0, "%s: no error of the file", what);
	fuzz_require(a->offset == a->count && b->offset == b->count, "%s: offsets", what);
	fuzz_require(a->count == OUT_MAX || b->count == OUT_MAX ||
			     (a->problem.what[0] == 0) == (b->problem.what[0] == 0),
		     "%s: \"%s\", not \"%s\"", what, a->problem.what, b->problem.what);
	bool damaged = a->problem.what[0] || b->problem.what[0];
	if (loosely && damaged)
		return;
	if (damaged)
		common -= common < DOUBTFUL_BYTES ? common : DOUBTFUL_BYTES;
	fuzz_require(memcmp(a->bytes, b->bytes, common) == 0, "%s: the same bytes", what);
	if (a->count == OUT_MAX || b->count == OUT_MAX || damaged)
		return;
	fuzz_require(a->count == b->count, "%s: as many bytes: %zu and %zu", what, a->count, b->count);
	fuzz_require(a->problem.offset == b->problem.offset && strcmp(a->problem.what, b->problem.what) == 0,
		     "%s: the same problem: \"%s\" at %llu and \"%s\" at %llu", what, a->problem.what,
		     (unsigned long long)a->problem.offset, b->problem.what, (unsigned long long)b->problem.offset);
}

/* A socket whose every read gives one of the pieces. */
static int socket_of(const uint8_t *data, size_t size)
{
	int pair[2];
	struct fuzz_dice dice = fuzz_dice(data, size);
	fuzz_require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0, "no socket");
	for (size_t at = 0, pieces = 0; at < size; pieces++) {
		size_t some = pieces < PIECES_MAX ? 1 + fuzz_roll(&dice, pieces < 4 ? 4 : 512) : size;
		if (some > size - at)
			some = size - at;
		fuzz_require(send(pair[1], data + at, some, MSG_DONTWAIT) == (ssize_t)some, "the socket is full");
		at += some;
	}
	close(pair[1]);
	return pair[0];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct reading large, other;
	struct fuzz_dice dice = fuzz_dice(data, size);
	int fd = fuzz_file(data, size);
	read_all(fd, OUT_MAX, &large);
	if (large.packing == REDUCER_PLAIN && large.result == 0)
		fuzz_require(large.count == size && memcmp(large.bytes, data, size) == 0, "plain bytes are themselves");
	fuzz_require(lseek(fd, 0, SEEK_SET) == 0, "no beginning");
	read_all(fd, 1 + large.count / 256 + fuzz_roll(&dice, 64), &other);
	judge(&large, &other, false, "small pieces");
	close(fd);
	if (size <= SOCKET_BYTES_MAX) {
		fd = socket_of(data, size);
		read_all(fd, 4096, &other);
		judge(&large, &other, true, "from a socket");
		close(fd);
	}
	return 0;
}
