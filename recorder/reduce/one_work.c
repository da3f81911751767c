/* SPDX-License-Identifier: Apache-2.0 */
#include "reduce/one_steps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "incidents/files.h"
#include "output.h"
#include "reduce/point.h"
#include "reduce/spool.h"
#include "reduce/target.h"

/* Year 2001: no trace that counts from the start of something gets there. */
#define UNIX_TIME_SINCE_NS 978307200000000000

/* Packing well costs a tenth of a second for so many events, and as much again for each further so many. */
enum { PACK_WELL = 6, PACK_FAST = 1, PACK_WELL_EVENTS_MAX = 50000 };

/* ---- reading ---- */

static int say_not_read(struct one *one, int error)
{
	const struct reducer_read_report *read = &one->result->report.read;
	const struct reducer_problem *last = read->n_problems && read->n_problems <= REDUCER_PROBLEMS_MAX
						     ? &read->problem[read->n_problems - 1]
						     : NULL;

	if (last && error != -ENOMEM)
		return one_end(one, error == -EBADMSG ? one_let_be(one) : REDUCE_FAILED,
			       "%s (at byte %" PRIu64 ")", last->what, last->offset);
	return one_end(one, REDUCE_FAILED, "%s", strerror(-error));
}

int one_read_input(struct one *one)
{
	int r;

	if (one->as_it_is)
		return 0;
	r = reducer_reduce_read(one->path, &one->options, &one->reduce, &one->result->report);
	if (r != 0)
		return say_not_read(one, r);
	one->result->has_report = true;
	/* The rest of it would be gone for good. */
	if (one->settings->in_place && !one->settings->force && one->result->report.read.damaged)
		return one_end(one, one_let_be(one),
			       "is damaged (%" PRIu64
			       " places), and in place would lose what cannot be read; -o OUT, or --force",
			       one->result->report.read.damaged);
	return 0;
}

static int say_window(struct one *one, int error)
{
	if (error == -ERANGE)
		return one_end(one, REDUCE_FAILED, "--window is years away from it");
	if (error == -ENODATA)
		return one_end(one, REDUCE_FAILED,
			       "does not say when it was recorded: --window with times from its start");
	return one_end(one, REDUCE_FAILED, "--window ends before it begins");
}

static void set_window(struct one *one, int64_t from_ps, int64_t to_ps)
{
	one->options.has_window = one->result->has_window = true;
	one->options.window_from_ps = one->result->window_from_ps = from_ps;
	one->options.window_to_ps = one->result->window_to_ps = to_ps;
}

/* One bin is as long as the trace. A trace that counts from 1970 is in Unix time, whether it says so or not.
 */
static int measure(struct one *one, struct reduce_span *ret_span)
{
	const struct reducer_reduce_report *report = &one->result->report;
	int r = reducer_reduce_plan(one->reduce, 1, &one->result->report);

	if (r < 0)
		return one_end(one, REDUCE_FAILED, "%s", strerror(-r));
	*ret_span = (struct reduce_span){report->origin_ns, report->bin_ps,
					 report->read.has_base || report->origin_ns > UNIX_TIME_SINCE_NS,
					 report->read.has_base ? report->read.base_unix_ns : 0};
	reducer_reduce_free(one->reduce);
	one->reduce = NULL;
	return 0;
}

int one_read_for_window(struct one *one)
{
	struct reduce_span span = {0};
	int64_t from, to;
	int r = 0;

	if (!one->settings->has_window)
		return 0;
	if (reduce_window_needs_span(&one->settings->window)) {
		r = one_read_input(one);
		if (r == 0)
			r = measure(one, &span);
	}
	if (r != 0)
		return r;
	r = reduce_window_resolve(&one->settings->window, &span, &from, &to);
	if (r < 0)
		return say_window(one, r);
	set_window(one, from, to);
	return 0;
}

/* ---- writing ---- */

/* Small results are packed well, large ones fast; where the size is the aim it does not jump between the two. */
static int gzip_level(const struct one *one)
{
	if (one->settings->gzip_level)
		return one->settings->gzip_level;
	if (one->pack_well || one->settings->target_bytes)
		return PACK_WELL;
	return one->result->report.events_out <= PACK_WELL_EVENTS_MAX ? PACK_WELL : PACK_FAST;
}

static struct reducer_writer_options writer_options(const struct one *one)
{
	const struct reducer_read_report *read = &one->result->report.read;
	const char *output = one->result->output;
	size_t bytes = strlen(output);
	bool packed = one->settings->in_place || one_to_stdout(one)
			      ? one->look.packing == REDUCER_GZIP
			      : bytes > 3 && strcmp(output + bytes - 3, ".gz") == 0;
	struct reducer_writer_options options = {.array_root = read->array_root,
						 .gzip_level = packed ? gzip_level(one) : 0};

	options.has_base = read->has_base;
	options.base_unix_ns = read->base_unix_ns;
	return options;
}

static int write_to(struct one *one, int fd)
{
	struct reducer_writer_options options = writer_options(one);

	if (ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	return reducer_reduce_write(one->reduce, fd, one->result->format, &options, &one->result->report);
}

int one_say_not_written(struct one *one, int error)
{
	const char *output = one_to_stdout(one)        ? reduce_spool_folder()
			     : one->settings->in_place ? "the result"
						       : one->result->output;

	if (error == -ENOSPC || error == -EDQUOT || error == -EFBIG)
		return one_end(one, REDUCE_FAILED, "%s does not fit: %s; make room, or write elsewhere (-o)",
			       output, strerror(-error));
	return one_end(one, REDUCE_FAILED, "%s cannot be written: %s", output, strerror(-error));
}

struct trial {
	struct one *one;
	int fd;
};

static int try_bins(void *context, uint32_t bins, uint64_t *ret_bytes)
{
	struct trial *trial = context;
	int r = reducer_reduce_plan(trial->one->reduce, bins, &trial->one->result->report);

	if (r == 0)
		r = write_to(trial->one, trial->fd);
	if (r == 0)
		*ret_bytes = trial->one->result->report.output_bytes;
	return r;
}

static int search_bytes(struct one *one, uint32_t *ret_bins)
{
	struct trial trial = {one, reduce_spool_new()};
	char target[OUTPUT_TEXT_MAX];
	bool fits = true;
	int r = trial.fd;

	if (r >= 0)
		r = reduce_target_search(one->settings->target_bytes, try_bins, &trial, ret_bins, &fits);
	if (trial.fd >= 0)
		close(trial.fd);
	if (r < 0)
		return one_end(one, REDUCE_FAILED, "%s: %s", reduce_spool_folder(), strerror(-r));
	if (!fits)
		one_note(one, "even the coarsest bins take more than %s",
			 output_bytes(target, one->settings->target_bytes));
	return 0;
}

int one_plan(struct one *one)
{
	uint32_t bins = 0;
	int r;

	if (one->as_it_is) {
		one->result->outcome = one->settings->dry_run ? REDUCE_WOULD : REDUCE_WAITING;
		return one->settings->dry_run ? ONE_STOP : 0;
	}
	r = one->settings->target_bytes ? search_bytes(one, &bins) : 0;
	if (r != 0)
		return r;
	r = reducer_reduce_plan(one->reduce, bins, &one->result->report);
	if (r < 0)
		return one_end(one, REDUCE_FAILED, "%s", strerror(-r));
	if (one->result->report.bound_reached)
		one_note(one, "even the coarsest bins leave more events than were asked for");
	if (one->result->report.spans_in > 0 && one->result->report.spans_out == 0)
		one_note(one,
			 one->result->has_window ? "no span meets the window" : "no span is on such a track");
	if (one->settings->dry_run) {
		one->result->outcome = REDUCE_WOULD;
		return ONE_STOP;
	}
	return 0;
}

int one_write_out(struct one *one)
{
	int r;

	if (one->as_it_is)
		return 0;
	r = write_to(one, one->out_fd);
	/* Before it is given up as no smaller than its input. */
	if (r == 0 && one->result->report.output_bytes >= one->result->input_bytes &&
	    writer_options(one).gzip_level == PACK_FAST && !one->settings->gzip_level) {
		one->pack_well = true;
		r = write_to(one, one->out_fd);
	}
	if (r < 0)
		return one_say_not_written(one, r);
	one->result->output_bytes = one->result->report.output_bytes;
	REDUCE_POINT(written);
	return 0;
}

/* Whether the input is an answer to what was asked for. */
static bool input_would_do(const struct one *one)
{
	bool packed = writer_options(one).gzip_level > 0;

	return !one->result->has_window && !one->settings->reduce.track_pattern &&
	       one->result->format == one->look.format &&
	       one->look.packing == (packed ? REDUCER_GZIP : REDUCER_PLAIN);
}

int one_judge_size(struct one *one)
{
	struct reduce_result *result = one->result;
	int r;

	if (one->as_it_is && !input_would_do(one))
		return one_end(one, REDUCE_SKIPPED,
			       "is reduced already, in another format (--again writes it anew)");
	if (!one->as_it_is && (result->output_bytes < result->input_bytes || !input_would_do(one)))
		return 0;
	if (one->settings->in_place) {
		result->outcome = REDUCE_LEFT;
		return ONE_STOP;
	}
	result->outcome = REDUCE_COPIED;
	if (ftruncate(one->out_fd, 0) < 0 || lseek(one->out_fd, 0, SEEK_SET) < 0 ||
	    lseek(one->fd, 0, SEEK_SET) < 0)
		return one_say_not_written(one, -errno);
	r = files_copy(one->fd, one->out_fd);
	if (r < 0)
		return one_say_not_written(one, r);
	result->output_bytes = result->input_bytes;
	return 0;
}
