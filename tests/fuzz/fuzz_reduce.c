/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever can be read is reduced, to few bins and to many, and what comes of it keeps its promises. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <reducer/reduce.h>
#include <reducer/verify.h>

#include "fuzz.h"

static void verify(const char *raw, const char *reduced)
{
	static struct reducer_verify_report report;
	struct reducer_problem problem = {0};
	int result = reducer_verify(raw, reduced, &report, &problem);
	fuzz_require(result == 0, "verify: %s: %s", strerror(-result), problem.what);
	fuzz_require(report.n_differences == 0, "M%d on %s: %s", report.difference[0].promise, report.difference[0].track,
		     report.difference[0].what);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t bins[] = {1, 2, 5, 40, 1000, 3840};
	static struct reducer_reduce_report report;
	struct fuzz_dice dice = fuzz_dice(data, size);
	struct reducer_reduce_options options = {.bins = bins[fuzz_roll(&dice, 6)], .threads = 1};
	struct reducer_reduce *reduce = NULL;
	/* Each in a file of its own name: fuzz_file_path() has one place. */
	char raw[64], reduced[64];
	int fd = fuzz_file(data, size), out = fuzz_file("", 0);
	if (fuzz_roll(&dice, 4) == 0)
		options.target_permille = 1 + (unsigned)fuzz_roll(&dice, 900);
	strcpy(raw, fuzz_file_path(fd));
	strcpy(reduced, fuzz_file_path(out));
	int result = reducer_reduce_read(raw, &options, &reduce, &report);
	fuzz_require(result == 0 || (result != -ENOMEM && result != -EINVAL && result != -EIO), "result %d", result);
	fuzz_require(result == 0 || report.read.n_problems > 0, "a refusal without a reason");
	if (result == 0) {
		uint64_t gone = 0;
		for (int i = 0; i < REDUCER_GONE_COUNT; i++)
			gone += report.gone[i];
		fuzz_require(report.events_in == report.exact + gone, "%lu events, %lu stay, %lu go",
			     (unsigned long)report.events_in, (unsigned long)report.exact, (unsigned long)gone);
		fuzz_require(reducer_reduce_write(reduce, out, REDUCER_FORMAT_CHROME, NULL, &report) == 0, "write");
		reducer_reduce_free(reduce);
		verify(raw, reduced);
	}
	close(fd);
	close(out);
	return 0;
}
