/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds what was written against the input: by what is still in memory of it, which is fast, and
 * independently by reading both anew, where that is asked for, the input is to be replaced, or the first found
 * anything.
 */
#include "reduce/one_steps.h"

#include <inttypes.h>
#include <string.h>

#include "reduce/point.h"

static uint64_t count_differences(const struct reducer_verify_report *report)
{
	uint64_t failed = 0;

	for (int promise = 0; promise <= REDUCER_M5; promise++)
		failed += report->failed[promise];
	return failed;
}

/* Whether the result can be held against what is still remembered of the input. */
static bool can_check(const struct one *one)
{
	enum reducer_format format = one->result->format;

	if (!one->reduce || one->result->outcome == REDUCE_COPIED || format != one->look.format)
		return false;
	return format == REDUCER_FORMAT_CHROME ||
	       (format == REDUCER_FORMAT_XPLANE && !one->result->report.read.damaged);
}

/* True where it is the same. What looks otherwise, or cannot be told, the independent verification decides. */
static bool check(struct one *one)
{
	struct reducer_problem problem;

	return can_check(one) &&
	       reducer_reduce_check(one->reduce, one->out_path, &one->result->verify, &problem) == 0 &&
	       count_differences(&one->result->verify) == 0;
}

static int verify_independently(struct one *one)
{
	struct reduce_result *result = one->result;
	struct reducer_problem problem = {0};
	uint64_t failed;
	int r;

	reducer_reduce_free(one->reduce);
	one->reduce = NULL;
	r = reducer_verify(one->path, one->out_path, &result->verify, &problem);
	if (r < 0)
		return one_end(one, REDUCE_FAILED, "the result could not be verified and was removed: %s",
			       problem.what[0] ? problem.what : strerror(-r));
	failed = count_differences(&result->verify);
	if (failed)
		return one_end(one, REDUCE_DIFFERS, "verification found %" PRIu64 " differences", failed);
	result->verified_independently = true;
	return 0;
}

int one_verify(struct one *one)
{
	struct reduce_result *result = one->result;
	bool independently = one->settings->verify || one->settings->in_place;
	int r = 0;

	if (one->settings->no_verify)
		return 0;
	if (result->format == REDUCER_FORMAT_PFTRACE) {
		one_note(one, "a .pftrace is written, not read");
		return 0;
	}
	one_advance(one, REDUCE_VERIFYING);
	if (!check(one) || independently)
		r = verify_independently(one);
	if (r != 0)
		return r;
	result->verified = true;
	REDUCE_POINT(verified);
	return 0;
}
