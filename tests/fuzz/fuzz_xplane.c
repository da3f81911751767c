/* SPDX-License-Identifier: Apache-2.0 */
/* The XPlane reader: the same each time, and whatever it delivers can be written as strict JSON. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <reducer/chrome_writer.h>
#include <reducer/xplane.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz_heard once, twice;
	struct reducer_read_report report, again;
	struct reducer_chrome_writer *writer;
	size_t bytes, at = 0;
	int fd = fuzz_file("", 0);
	once = (struct fuzz_heard){.events = 0};
	twice = (struct fuzz_heard){.events = 0};
	fuzz_require(reducer_chrome_writer_new(fd, NULL, &writer) == 0, "a writer");
	once.also = reducer_chrome_writer_sink(writer);
	struct reducer_sink sink = fuzz_hear(&once);
	int result = reducer_xplane_read_bytes(data, size, &sink, &report);
	fuzz_require(result == 0 || result == -EBADMSG, "result %d", result);
	fuzz_require(result == 0 || report.n_problems > 0, "a refusal without a reason");
	fuzz_require(reducer_chrome_writer_finish(writer) == 0, "the writer finishes");
	char *text = fuzz_file_bytes(fd, &bytes);
	fuzz_require(strict_json(text, bytes, &at), "invalid at %zu: %.200s", at, text + (at > 100 ? at - 100 : 0));
	free(text);
	reducer_chrome_writer_free(writer);
	close(fd);
	sink = fuzz_hear(&twice);
	fuzz_require(reducer_xplane_read_bytes(data, size, &sink, &again) == result, "the same result");
	fuzz_same(&once, &twice, "read again");
	fuzz_same_report(&report, &again, "read again");
	return 0;
}
