/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of step times through replay: from a file and from a socket in pieces the same is printed, all of it
 * lines of strict JSON; what is refused is refused in one line of text, with a line that there is; and no
 * more samples are taken than there are lines.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "replay.h"
#include "replay_report.h"

enum { SOCKET_BYTES_MAX = 16 << 10, PIECES_MAX = 16 };

struct reading {
	int result;
	char error[512];
	char *text;
	size_t bytes;
	uint64_t samples;
};

static void read_from(int fd, struct reading *ret)
{
	static const struct replay_settings settings = {.json = true, .all = true, .explain = true};
	struct replay replay = {.settings = &settings};
	*ret = (struct reading){.result = 0};
	replay.out = open_memstream(&ret->text, &ret->bytes);
	ret->result = replay_steps_fd(&replay, fd, "table", ret->error, sizeof(ret->error));
	replay_report_summary(&replay);
	ret->samples = replay.samples;
	fclose(replay.out);
	replay_free(&replay);
}

static void check(const struct reading *reading, size_t lines)
{
	const char *line = strstr(reading->error, ", line ");
	size_t at = 0, bad;
	fuzz_require((reading->result < 0) == (reading->error[0] != 0),
		     "refused without a word, or a word too many");
	fuzz_require(!strchr(reading->error, '\n'), "the error is no line");
	fuzz_require(!line || strtoull(line + 7, NULL, 10) <= lines, "there is no such line: %s",
		     reading->error);
	fuzz_require(reading->samples <= lines, "more samples than lines");
	while (at < reading->bytes) {
		const char *end = memchr(reading->text + at, '\n', reading->bytes - at);
		fuzz_require(end != NULL, "a line has no end");
		size_t bytes = (size_t)(end - reading->text) - at;
		fuzz_require(strict_json(reading->text + at, bytes, &bad), "no JSON: %.*s", (int)bytes,
			     reading->text + at);
		at += bytes + 1;
	}
}

static size_t lines_of(const uint8_t *data, size_t size)
{
	size_t lines = 1;
	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	return lines;
}

static bool is_packed(const uint8_t *data, size_t size)
{
	return size > 1 && (data[0] == 0x1f || data[0] == 0x28);
}

/* Sent before it is read: a socket holds more than is sent. */
static void send_in_pieces(int fd, const uint8_t *data, size_t size, struct fuzz_dice *dice)
{
	for (size_t at = 0, pieces = 0; at < size; pieces++) {
		size_t some = pieces < PIECES_MAX ? (size_t)fuzz_roll(dice, size - at) + 1 : size - at;
		fuzz_require(send(fd, data + at, some, 0) == (ssize_t)some, "a socket takes 16 KiB");
		at += some;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_dice dice = fuzz_dice(data, size);
	struct reading whole, pieces;
	int ends[2], fd;
	if (is_packed(data, size))
		return 0; /* fuzz_input.c */
	fd = fuzz_file(data, size);
	read_from(fd, &whole);
	close(fd);
	check(&whole, lines_of(data, size));
	if (size <= SOCKET_BYTES_MAX && socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0) {
		send_in_pieces(ends[0], data, size, &dice);
		close(ends[0]);
		read_from(ends[1], &pieces);
		close(ends[1]);
		fuzz_require(whole.result == pieces.result && !strcmp(whole.error, pieces.error),
			     "from a socket: \"%s\", not \"%s\"", pieces.error, whole.error);
		fuzz_require(whole.bytes == pieces.bytes && !memcmp(whole.text, pieces.text, whole.bytes),
			     "from a socket it fires otherwise");
		free(pieces.text);
	}
	free(whole.text);
	return 0;
}
