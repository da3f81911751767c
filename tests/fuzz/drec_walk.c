/* SPDX-License-Identifier: Apache-2.0 */
#include "drec_walk.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <driverec/freeze.h>
#include <driverec/reader.h>
#include <reducer/chrome_writer.h>
#include <reducer/drec_codec.h>

#include "fuzz.h"

enum { OPEN_SPANS = 64, CURSORS = 64 };

static void ask(struct drec_reader *reader)
{
	struct drec_open_info open[OPEN_SPANS];
	uint64_t lost[DREC_LOSS_LIMIT], overwritten;
	drec_reader_open_spans(reader, open, OPEN_SPANS);
	drec_reader_losses(reader, lost, &overwritten);
	drec_reader_changed(reader);
	const struct drec_window *window = drec_reader_window(reader);
	if (window)
		drec_reader_ticks(reader, window->a_ns);
	drec_reader_mono_ns(reader, UINT64_MAX);
	drec_reader_unix_ns(reader, 1u << 30);
	for (unsigned type = 0; type < 16; type++)
		drec_reader_section(reader, type);
}

static void read_into(struct drec_reader *reader, struct fuzz_heard *heard, const struct reducer_drec_options *options,
		      struct reducer_read_report *report)
{
	struct drec_poll_stats stats = {0};
	struct reducer_sink sink = fuzz_hear(heard);
	int result = reducer_drec_read(reader, &sink, options, &stats, report);
	fuzz_require(result <= 0, "result %d", result);
	/* Thread names come as metadata events beyond those of the ring. */
	fuzz_require(report->events <= heard->events, "%llu events counted, %llu heard",
		     (unsigned long long)report->events, (unsigned long long)heard->events);
}

/* What a hostile ring says comes out as strict JSON all the same. */
static void write_out(struct drec_reader *reader, struct fuzz_heard *heard)
{
	int fd = fuzz_file("", 0);
	struct reducer_chrome_writer *writer;
	struct reducer_chrome_writer_options options = {.array_root = 0};
	struct reducer_read_report report;
	size_t bytes, at = 0;
	fuzz_require(reducer_chrome_writer_new(fd, &options, &writer) == 0, "a writer");
	heard->also = reducer_chrome_writer_sink(writer);
	read_into(reader, heard, NULL, &report);
	fuzz_require(reducer_chrome_writer_finish(writer) == 0, "the writer finishes");
	char *text = fuzz_file_bytes(fd, &bytes);
	fuzz_require(strict_json(text, bytes, &at), "invalid at %zu: %.200s", at, text + (at > 100 ? at - 100 : 0));
	free(text);
	reducer_chrome_writer_free(writer);
	close(fd);
}

void drec_walk(const void *bytes, size_t size)
{
	static struct fuzz_heard once, twice;
	struct drec_reader *reader = NULL;
	struct drec_problem problem = {0};
	struct reducer_read_report report;
	struct reducer_drec_options window = {.has_window = 1, .a_ns = INT64_MIN, .b_ns = INT64_MAX};
	int fd = fuzz_file(bytes, size);
	int result = drec_reader_open(AT_FDCWD, fuzz_file_path(fd), NULL, &reader, &problem);
	if (result == 0) {
		ask(reader);
		once = (struct fuzz_heard){.events = 0};
		write_out(reader, &once);
		drec_reader_rewind(reader);
		twice = (struct fuzz_heard){.events = 0};
		read_into(reader, &twice, &window, &report);
		fuzz_same(&once, &twice, "read again");
		struct drec_cursor cursors[CURSORS];
		drec_reader_set_cursors(reader, cursors, drec_reader_cursors(reader, cursors, CURSORS) % (CURSORS + 1));
		ask(reader);
	} else {
		fuzz_require(problem.what[0] != 0, "refused without a reason: %d", result);
	}
	drec_reader_free(reader);
	drec_window_verify(AT_FDCWD, fuzz_file_path(fd), &problem);
	drec_window_seal(fd);
	drec_window_verify(AT_FDCWD, fuzz_file_path(fd), &problem);
	close(fd);
}
