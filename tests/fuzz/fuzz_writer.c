/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Chrome writer, fed by the Chrome reader: whatever was read, what is written is strict JSON, reads back
 * without damage as the same events, and writes out again as the same bytes.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <reducer/chrome.h>
#include <reducer/chrome_writer.h>

#include "fuzz.h"

struct written {
	int result; /* of reading */
	char *text;
	size_t bytes;
	struct fuzz_heard heard;
	struct reducer_read_report report;
};

static void read_and_write(const char *text, size_t bytes, const struct reducer_chrome_writer_options *options,
			   struct written *ret)
{
	int fd = fuzz_file("", 0), from = fuzz_file(text, bytes);
	struct reducer_chrome_writer *writer;
	struct reducer_input *input;
	ret->heard = (struct fuzz_heard){.meaning = true};
	fuzz_require(reducer_chrome_writer_new(fd, options, &writer) == 0, "a writer");
	ret->heard.also = reducer_chrome_writer_sink(writer);
	struct reducer_sink sink = fuzz_hear(&ret->heard);
	fuzz_require(reducer_input_from_fd(from, &input, NULL) == 0, "an input");
	ret->result = reducer_chrome_read(input, &sink, NULL, &ret->report);
	fuzz_require(reducer_chrome_writer_finish(writer) == 0, "the writer finishes");
	fuzz_require(reducer_chrome_writer_stats(writer)->events == ret->heard.events, "every event is written");
	ret->text = fuzz_file_bytes(fd, &ret->bytes);
	fuzz_require(options->gzip_level || reducer_chrome_writer_stats(writer)->text_bytes == ret->bytes,
		     "bytes are counted");
	fuzz_require(reducer_chrome_writer_stats(writer)->file_bytes == ret->bytes, "bytes of the file are counted");
	reducer_chrome_writer_free(writer);
	reducer_input_free(input);
	close(from);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct written once, twice;
	struct fuzz_dice dice = fuzz_dice(data, size);
	struct reducer_chrome_writer_options options = {.strip_args = fuzz_roll(&dice, 8) == 0};
	size_t at = 0;
	read_and_write((const char *)data, size, &options, &once);
	if (once.report.array_root) {
		options.array_root = 1;
		free(once.text);
		read_and_write((const char *)data, size, &options, &once);
	}
	fuzz_require(strict_json(once.text, once.bytes, &at), "invalid at %zu: %.*s", at, (int)once.bytes, once.text);
	/*
	 * Of an event that is nothing but args nothing is left when they are stripped, and a root that begins with `ph`
	 * reads as an event.
	 */
	if (once.result == 0 && once.heard.events > 0 && !options.strip_args && !once.heard.like_event) {
		read_and_write(once.text, once.bytes, &options, &twice);
		fuzz_require(twice.result == 0, "what was written is read: %d, %s", twice.result,
			     twice.report.problem[0].what);
		fuzz_require(twice.report.damaged == 0, "it is not damaged: %s", twice.report.problem[0].what);
		if (!options.array_root)
			fuzz_require(once.heard.members == twice.heard.members, "every member is there");
		fuzz_same(&once.heard, &twice.heard, "read back");
		fuzz_require(once.bytes == twice.bytes && memcmp(once.text, twice.text, once.bytes) == 0,
			     "the same bytes:\n%.*s\n%.*s", (int)once.bytes, once.text, (int)twice.bytes, twice.text);
		free(twice.text);
	}
	free(once.text);
	return 0;
}
