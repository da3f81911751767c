/* SPDX-License-Identifier: Apache-2.0 */
#include "reduce/progress.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "plain_text.h"

#define SECOND_NS 1000000000
#define DRAW_NS   200000000

enum { LINE_MAX_BYTES = 200, NAME_COLUMNS = 24 };

static int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (int64_t)time.tv_sec * SECOND_NS + time.tv_nsec;
}

void progress_begin(struct progress *progress, FILE *out, size_t files, uint64_t bytes)
{
	*progress = (struct progress){.files = files, .bytes = bytes, .began_ns = now()};
	progress->out = out && isatty(fileno(out)) ? out : NULL;
}

void progress_file_done(struct progress *progress, uint64_t bytes)
{
	progress->done++;
	progress->done_bytes += bytes;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

void progress_print(const struct progress *progress, int64_t now_ns, uint64_t under_way_bytes,
		    const char *what, const char *path, char *out, size_t room)
{
	uint64_t bytes = progress->done_bytes + under_way_bytes;
	uint64_t ms = (uint64_t)((now_ns - progress->began_ns) / 1000000) + 1;
	uint64_t speed = bytes * 1000 / ms; /* a second */
	uint64_t left = speed && progress->bytes > bytes ? (progress->bytes - bytes) / speed : 0;
	unsigned percent = progress->bytes ? (unsigned)((unsigned __int128)bytes * 100 / progress->bytes) : 0;
	char name[NAME_COLUMNS + 1];

	plain_text(name, sizeof(name), base_name(path), strlen(base_name(path)));
	snprintf(out, room,
		 "%zu of %zu file%s   %u %%   %" PRIu64 ".%" PRIu64 " MB/s   %" PRIu64 ":%02d left   %s %s",
		 progress->done, progress->files, progress->files == 1 ? "" : "s",
		 percent > 100 ? 100 : percent, speed / 1000000, speed / 100000 % 10, left / 60,
		 (int)(left % 60), what, name);
}

void progress_draw(struct progress *progress, uint64_t under_way_bytes, const char *what, const char *path)
{
	char line[LINE_MAX_BYTES];
	int64_t now_ns;

	if (!progress->out)
		return;
	now_ns = now();
	if (now_ns - progress->drawn_ns < DRAW_NS)
		return;
	progress->drawn_ns = now_ns;
	progress_print(progress, now_ns, under_way_bytes, what, path, line, sizeof(line));
	fprintf(progress->out, "\r%s\033[K", line);
	fflush(progress->out);
	progress->is_drawn = 1;
}

void progress_clear(struct progress *progress)
{
	if (!progress->out || !progress->is_drawn)
		return;
	fputs("\r\033[K", progress->out);
	fflush(progress->out);
	progress->is_drawn = 0;
}
