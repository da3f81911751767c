/* SPDX-License-Identifier: Apache-2.0 */
/* Holds a reduced trace against the raw one: the steps, in order. */
#include <reducer/verify.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "verify_trace.h"

const char *reducer_promise_name(enum reducer_promise promise)
{
	switch (promise) {
	case REDUCER_M1:
		return "busy time of each bin";
	case REDUCER_M2:
		return "first, last and steps";
	case REDUCER_M3:
		return "longest span of each row and bin";
	case REDUCER_M4:
		return "counters, instants, metadata, members, flows";
	case REDUCER_M5:
		return "names, counts and sums";
	}
	return "unknown";
}

/* 1: the same bytes; 0: not, or not files that can be read twice. */
static int same_bytes(FILE *one, FILE *other)
{
	static const size_t room = 65536;
	struct stat a, b;
	int result = 0;
	if (fstat(fileno(one), &a) < 0 || fstat(fileno(other), &b) < 0)
		return -errno;
	if (!S_ISREG(a.st_mode) || !S_ISREG(b.st_mode) || a.st_size != b.st_size)
		return 0;
	char *block = malloc(2 * room);
	if (!block)
		return -ENOMEM;
	for (;;) {
		size_t got = fread(block, 1, room, one);
		if (fread(block + room, 1, room, other) != got || memcmp(block, block + room, got) != 0)
			break;
		if (got == 0) {
			result = 1;
			break;
		}
	}
	if (ferror(one) || ferror(other))
		result = -EIO;
	free(block);
	return result;
}

static int are_same(const char *raw_path, const char *reduced_path)
{
	struct stat a, b;
	/* What cannot be looked at is left to the readers, which say why. A pipe must not be opened twice. */
	if (stat(raw_path, &a) < 0 || stat(reduced_path, &b) < 0 || !S_ISREG(a.st_mode) ||
	    !S_ISREG(b.st_mode))
		return 0;
	FILE *raw = fopen(raw_path, "rbe"), *reduced = fopen(reduced_path, "rbe");
	int result = raw && reduced ? same_bytes(raw, reduced) : 0;
	if (raw)
		fclose(raw);
	if (reduced)
		fclose(reduced);
	return result;
}

/* "the reduced trace: …" */
static int blame(struct reducer_problem *ret_problem, const char *which, const struct reducer_problem *why,
		 int result)
{
	struct reducer_problem problem = {.offset = why->offset};
	snprintf(problem.what, sizeof(problem.what), "%s: %.160s", which,
		 why->what[0] ? why->what : strerror(-result));
	*ret_problem = problem;
	return result;
}

static int load(struct verify *verify, struct verify_trace *trace, const char *path,
		enum reducer_format format, struct reducer_problem *ret_problem)
{
	struct reducer_read_report *read =
		trace->is_reduced ? &verify->report->reduced : &verify->report->raw;
	int result = verify_load(verify, trace, path, format, read);
	if (result < 0) {
		struct reducer_problem why = {0};
		if (result == -EBADMSG && read->n_problems)
			why = read->problem[read->n_problems - 1];
		return blame(ret_problem, path, &why, result);
	}
	*(trace->is_reduced ? &verify->report->reduced_events : &verify->report->raw_events) =
		trace->n_events;
	return 0;
}

static int sniff(const char *path, enum reducer_format *ret_format, struct reducer_problem *ret_problem)
{
	struct reducer_problem why = {.what = "a pipe or device, and verifying reads files more than once"};
	struct stat st;
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return blame(ret_problem, path, &why, -ESPIPE);
	why.what[0] = '\0';
	int result = reducer_trace_sniff(path, ret_format, &why);
	return result < 0 ? blame(ret_problem, path, &why, result) : 0;
}

/* The names of raw events that are there so far. */
static int note_names(struct verify *verify)
{
	struct verify_house *house = &verify->house;
	house->is_raw_name = calloc((size_t)house->texts.count + 1, 1);
	if (!house->is_raw_name)
		return -ENOMEM;
	house->n_raw_names = house->texts.count;
	for (size_t i = 0; i < verify->raw.n_events; i++)
		house->is_raw_name[verify->raw.event[i].name] = 1;
	return 0;
}

static int check_mark(const struct verify *verify, const char *path, struct reducer_problem *ret_problem)
{
	struct reducer_problem why = {0};
	if (verify->mark.is_there && verify->mark.is_readable)
		return 0;
	snprintf(why.what, sizeof(why.what), "%s",
		 verify->mark.is_there ? "what it says of its bins cannot be read"
				       : "it does not say that it is reduced (no event driverec.reduced), "
					 "and is not the same file");
	return blame(ret_problem, path, &why, -EBADMSG);
}

static void report_mark(struct verify *verify)
{
	struct reducer_verify_report *report = verify->report;
	const struct verify_mark *mark = &verify->mark;
	report->bin = verify_moment(mark->bin);
	report->origin = verify_moment(mark->origin);
	report->has_window = mark->has_window;
	report->window_from = verify_moment(mark->window_from);
	report->window_to = verify_moment(mark->window_to);
	snprintf(report->track_pattern, sizeof(report->track_pattern), "%s", mark->tracks);
	for (uint32_t i = 0; i < verify->house.tracks.count; i++)
		report->tracks += verify->house.track[i].is_raw || verify->house.track[i].is_reduced;
}

static int compare(struct verify *verify)
{
	static const struct {
		int (*check)(struct verify *verify);
		bool in_one_format; /* the traces cannot differ in format for it */
	} step[] = {
		{verify_pair, false},        {verify_cross_tracks, false}, {verify_cut, false},
		{verify_align, false},       {verify_count_events, false}, {verify_sort_both, false},
		{verify_busy, false},        {verify_ends, false},         {verify_longest, false},
		{verify_instants, false},    {verify_counters, false},     {verify_flows, true},
		{verify_descriptions, true}, {verify_merged_spans, false}, {verify_unaltered, false},
		{verify_async, true},
	};
	int result = 0;
	for (size_t i = 0; result == 0 && i < sizeof(step) / sizeof(step[0]); i++)
		if (!verify->crossed || !step[i].in_one_format)
			result = step[i].check(verify);
	return result;
}

/* By promise; those of one in the order in which they were found. */
static void sort_differences(struct reducer_verify_report *report)
{
	struct reducer_difference *difference = report->difference;
	for (unsigned i = 1; i < report->n_differences; i++) {
		struct reducer_difference one = difference[i];
		unsigned at = i;
		for (; at > 0 && difference[at - 1].promise > one.promise; at--)
			difference[at] = difference[at - 1];
		difference[at] = one;
	}
}

static int run(struct verify *verify, const char *raw_path, const char *reduced_path,
	       struct reducer_problem *ret_problem)
{
	struct reducer_verify_report *report = verify->report;
	int result = sniff(raw_path, &report->raw_format, ret_problem);
	if (result == 0)
		result = sniff(reduced_path, &report->reduced_format, ret_problem);
	verify->crossed = report->raw_format != report->reduced_format;
	if (result == 0)
		result = load(verify, &verify->raw, raw_path, report->raw_format, ret_problem);
	if (result < 0)
		return result;
	result = are_same(raw_path, reduced_path);
	if (result != 0) {
		report->identical = result > 0;
		report->reduced_events = report->raw_events;
		report->reduced = report->raw;
		return result < 0 ? result : 0;
	}
	result = note_names(verify);
	if (result == 0)
		result = load(verify, &verify->reduced, reduced_path, report->reduced_format, ret_problem);
	if (result == 0)
		result = check_mark(verify, reduced_path, ret_problem);
	if (result == 0)
		result = compare(verify);
	if (result < 0)
		return result;
	report_mark(verify);
	sort_differences(report);
	return 0;
}

int reducer_verify(const char *raw_path, const char *reduced_path, struct reducer_verify_report *report,
		   struct reducer_problem *ret_problem)
{
	struct verify verify = {.report = report, .reduced = {.is_reduced = true}};
	*report = (struct reducer_verify_report){0};
	int result = verify_house_start(&verify.house);
	if (result == 0)
		result = run(&verify, raw_path, reduced_path, ret_problem);
	verify_trace_free(&verify.raw);
	verify_trace_free(&verify.reduced);
	verify_counts_free(&verify.counts);
	verify_house_free(&verify.house);
	return result;
}
