/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of reducing a file, in order; each returns 0 to go on, anything else to end with what is in the
 * result. Whatever a step leaves behind (descriptors, the temporary file, the lock) is undone in one place.
 */
#include "reduce/one.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "incidents/files.h"
#include "output.h"
#include "reduce/holder.h"
#include "reduce/look.h"
#include "reduce/names.h"
#include "reduce/place.h"
#include "reduce/point.h"
#include "reduce/spool.h"
#include "reduce/target.h"

/* Year 2001: no trace that counts from the start of something gets there. */
#define UNIX_TIME_SINCE_NS 978307200000000000

/* Somebody else replaced the file between our look at it and our lock: once more from the start. */
enum { STOP = 1, START_OVER = 2, STARTS_MAX = 3, OWNER_TEXT = 256 };

/* Packing well costs a tenth of a second for so many events, and as much again for each further so many. */
enum { PACK_WELL = 6, PACK_FAST = 1, PACK_WELL_EVENTS_MAX = 50000 };

struct one {
	const struct reduce_settings *settings;
	const struct reduce_job *job;
	struct reduce_result *result;
	void (*progress)(void *context);
	void *context;
	int fd; /* of the input */
	bool spooled;
	struct stat st;
	struct holder_stamp stamp;
	char path[REDUCE_PATH_MAX]; /* what is read: the input, links resolved where it is replaced */
	struct reduce_look look;
	bool as_it_is; /* to be copied */
	bool pack_well;
	struct reduce_place place;
	int out_fd;                                       /* the place's, or an unnamed file */
	char out_path[REDUCE_PATH_MAX + REDUCE_NAME_MAX]; /* the same to be opened again */
	struct reducer_reduce_options options;
	struct reducer_reduce *reduce;
};

__attribute__((format(printf, 3, 4))) static int end(struct one *one, enum reduce_outcome outcome,
						     const char *format, ...)
{
	va_list values;

	va_start(values, format);
	vsnprintf(one->result->why, sizeof(one->result->why), format, values);
	va_end(values);
	one->result->outcome = outcome;
	return STOP;
}

/* Nobody asked for this very file: no failure. */
static enum reduce_outcome let_be(const struct one *one)
{
	return one->job->from_folder ? REDUCE_SKIPPED : REDUCE_FAILED;
}

__attribute__((format(printf, 2, 3))) static void note(struct one *one, const char *format, ...)
{
	size_t used = strlen(one->result->note);
	char *at = one->result->note + used;
	size_t room = sizeof(one->result->note) - used;
	va_list values;

	if (used && room > 3) {
		strcpy(at, "; ");
		at += 2;
		room -= 2;
	}
	va_start(values, format);
	vsnprintf(at, room, format, values);
	va_end(values);
}

static int advance(void *context, unsigned permille)
{
	struct one *one = context;

	atomic_store_explicit(&one->result->permille, permille, memory_order_relaxed);
	if (one->progress)
		one->progress(one->context);
	return 0;
}

/* --- the input --- */

static int spool(struct one *one, int from)
{
	char bytes[OUTPUT_TEXT_MAX];
	uint64_t taken = 0;
	int r = reduce_spool_pipe(from, &one->fd, &taken);

	if (r == -ENOSPC)
		return end(one, REDUCE_FAILED,
			   "more than %s come, half of what is free in %s; set TMPDIR to a larger folder",
			   output_bytes(bytes, taken), reduce_spool_folder());
	if (r < 0)
		return end(one, REDUCE_FAILED, "cannot be kept in %s meanwhile: %s", reduce_spool_folder(),
			   strerror(-r));
	one->spooled = true;
	snprintf(one->path, sizeof(one->path), "/proc/self/fd/%d", one->fd);
	return 0;
}

static int open_path(struct one *one)
{
	const char *path = one->job->path;
	struct stat st;
	int from, r;

	if (stat(path, &st) < 0)
		return end(one, errno == ENOENT ? let_be(one) : REDUCE_FAILED, "%s",
			   errno == ENOENT && one->job->from_folder ? "is gone again" : strerror(errno));
	if (S_ISDIR(st.st_mode) || S_ISBLK(st.st_mode))
		return end(one, let_be(one), "is no file");
	if (!S_ISREG(st.st_mode) && one->settings->in_place)
		return end(one, REDUCE_FAILED, "is a pipe: nothing can be put in its place");
	from = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (from < 0)
		return end(one, REDUCE_FAILED, "cannot be read: %s", strerror(errno));
	if (S_ISREG(st.st_mode)) {
		one->fd = from;
		return 0;
	}
	r = spool(one, from);
	close(from);
	return r;
}

static int open_input(struct one *one)
{
	const char *path = one->job->path;
	char *real = NULL;
	int r;

	snprintf(one->path, sizeof(one->path), "%s", path);
	if (strcmp(path, "-") == 0)
		r = spool(one, STDIN_FILENO);
	else
		r = open_path(one);
	if (r != 0)
		return r;
	if (one->settings->in_place) {
		real = realpath(path, NULL);
		if (!real || strlen(real) >= sizeof(one->path))
			r = end(one, REDUCE_FAILED, "%s", strerror(real ? ENAMETOOLONG : errno));
		else
			strcpy(one->path, real);
		free(real);
	}
	if (r == 0 && fstat(one->fd, &one->st) < 0)
		r = end(one, REDUCE_FAILED, "%s", strerror(errno));
	holder_stamp(&one->st, &one->stamp);
	one->result->input_bytes = (uint64_t)one->st.st_size;
	if (r == 0 && one->st.st_size == 0)
		r = end(one, let_be(one), "is empty: its writer has not begun, or died");
	return r;
}

/* Into an output of its own it goes as it is, so that a folder of them is whole. */
static int pass_over(struct one *one)
{
	const struct reduce_settings *settings = one->settings;

	if ((settings->output || settings->output_folder) && !settings->has_window &&
	    !settings->reduce.track_pattern) {
		one->as_it_is = true;
		snprintf(one->result->why, sizeof(one->result->why),
			 "is reduced already: %s byte for byte (--again reduces it further)",
			 settings->dry_run ? "would be copied" : "copied");
		return 0;
	}
	/* Perhaps by one that was killed when all was done but this. */
	if (settings->in_place)
		reduce_lock_sweep(one->path);
	return end(one, REDUCE_SKIPPED, "is reduced already (--again reduces it further)");
}

static int look(struct one *one)
{
	struct reducer_problem problem = {0};
	int r = reduce_look(one->path, &one->look, &problem);

	if (r == -EBADMSG)
		return end(one, let_be(one), "%s (at byte %" PRIu64 ")", problem.what, problem.offset);
	if (r < 0)
		return end(one, REDUCE_FAILED, "%s", problem.what[0] ? problem.what : strerror(-r));
	return one->look.reduced && !one->settings->again ? pass_over(one) : 0;
}

/* --- where it goes --- */

static int choose_in_place(struct one *one)
{
	bool plain = one->look.packing == REDUCER_PLAIN;

	if (one->look.format == REDUCER_FORMAT_DREC)
		return end(one, let_be(one), "is a raw ring or window file: it stays raw; -o OUT");
	if (one->look.packing == REDUCER_ZSTD || (one->look.format == REDUCER_FORMAT_XPLANE && !plain))
		return end(one, let_be(one), "is packed in a way that is read but not written; -o OUT");
	if (one->settings->format && one->settings->format != one->look.format)
		return end(one, REDUCE_FAILED, "in place means in its own format; -o OUT --format %s",
			   reducer_format_name(one->settings->format));
	strcpy(one->result->output, one->path);
	one->result->format = one->look.format;
	return 0;
}

static int choose_output(struct one *one)
{
	const struct reduce_settings *settings = one->settings;
	struct reduce_result *result = one->result;
	enum reducer_format own =
		one->look.format == REDUCER_FORMAT_DREC ? REDUCER_FORMAT_CHROME : one->look.format;
	enum reducer_format by_name = settings->output ? reducer_format_of_name(settings->output) : 0;
	int r = 0;

	if (settings->in_place)
		return choose_in_place(one);
	result->format = settings->format ? settings->format : by_name ? by_name : own;
	if (settings->output && strlen(settings->output) < sizeof(result->output))
		strcpy(result->output, settings->output);
	else if (settings->output_folder)
		r = reduce_names_below(settings->output_folder, one->job->path, one->job->relative,
				       result->format, own == result->format && own == one->look.format,
				       result->output, sizeof(result->output));
	else
		r = reduce_names_beside(one->job->path, result->format, result->output,
					sizeof(result->output));
	if (r < 0)
		return end(one, REDUCE_FAILED, "its output's name is too long");
	return 0;
}

static bool to_stdout(const struct one *one)
{
	return strcmp(one->result->output, "-") == 0;
}

/* --- alone with it --- */

/* In place: nobody has written it for a while, and nobody has it open to write. */
static int check_quiet(struct one *one)
{
	struct holder holder;
	struct timespec now;
	char text[OUTPUT_TEXT_MAX], who[OWNER_TEXT];
	int64_t settle_s = one->settings->settle_ns / 1000000000;

	if (!one->settings->in_place)
		return 0;
	clock_gettime(CLOCK_REALTIME, &now);
	/* The clock of a file server may be ahead of ours: a time to come is a moment ago, too. */
	if (one->settings->settle_ns && one->st.st_mtim.tv_sec > now.tv_sec - settle_s)
		return end(one, let_be(one),
			   "was written less than %s ago, it may not be finished (--settle 0)",
			   output_duration(text, one->settings->settle_ns));
	if (holder_find(one->fd, &holder) == 1) {
		holder_say(&holder, who, sizeof(who));
		return end(one, let_be(one), "is being written by %s", who);
	}
	return 0;
}

static int say_not_opened(struct one *one, int error, const struct reduce_lock_owner *owner)
{
	char who[OWNER_TEXT];
	const char *output = one->result->output;

	if (error == -EBUSY) {
		reduce_lock_say(owner, who, sizeof(who));
		return end(one, let_be(one), "%s%sis locked by %s; if that is dead: --break-lock",
			   one->settings->in_place ? "" : output, one->settings->in_place ? "" : " ", who);
	}
	if (error == -ENXIO)
		return end(one, REDUCE_FAILED, "%s is no regular file, and is not replaced by one", output);
	if (error == -EEXIST)
		return end(one, let_be(one), "%s is there already (--force)", output);
	return end(one, REDUCE_FAILED, "%s cannot be written: %s", output, strerror(-error));
}

static bool is_input(const struct one *one)
{
	struct stat st;

	return !one->spooled && stat(one->result->output, &st) == 0 && st.st_ino == one->st.st_ino &&
	       st.st_dev == one->st.st_dev;
}

static int open_place(struct one *one)
{
	const struct reduce_settings *settings = one->settings;
	struct reduce_lock_owner owner = {0};
	struct stat st;
	struct holder_stamp stamp;
	int r = 0;

	if (!to_stdout(one) && !settings->in_place && is_input(one))
		return end(one, REDUCE_FAILED, "would be its own output; --in-place does that");
	if (settings->dry_run)
		return 0;
	if (to_stdout(one)) {
		one->out_fd = reduce_spool_new();
		snprintf(one->out_path, sizeof(one->out_path), "/proc/self/fd/%d", one->out_fd);
		return one->out_fd < 0 ? end(one, REDUCE_FAILED, "%s: %s", reduce_spool_folder(),
					     strerror(-one->out_fd))
				       : 0;
	}
	if (settings->output_folder)
		r = reduce_names_make_folders(one->result->output);
	if (r == 0)
		r = reduce_place_open(one->result->output, settings->force || settings->in_place,
				      settings->break_lock, &one->place, &owner);
	if (r < 0)
		return say_not_opened(one, r, &owner);
	one->out_fd = one->place.fd;
	snprintf(one->out_path, sizeof(one->out_path), "%.*s%s",
		 (int)(strlen(one->result->output) - strlen(one->place.name)), one->result->output,
		 one->place.tmp);
	if (settings->in_place) {
		/* Whoever had the lock before us may have replaced it. */
		if (fstatat(one->place.dirfd, one->place.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return START_OVER;
		holder_stamp(&st, &stamp);
		if (!holder_stamp_same(&stamp, &one->stamp))
			return START_OVER;
	}
	return 0;
}

/* --- the work --- */

static int say_not_read(struct one *one, int error)
{
	const struct reducer_read_report *read = &one->result->report.read;
	const struct reducer_problem *last = read->n_problems && read->n_problems <= REDUCER_PROBLEMS_MAX
						     ? &read->problem[read->n_problems - 1]
						     : NULL;

	if (last && error != -ENOMEM)
		return end(one, error == -EBADMSG ? let_be(one) : REDUCE_FAILED, "%s (at byte %" PRIu64 ")",
			   last->what, last->offset);
	return end(one, REDUCE_FAILED, "%s", strerror(-error));
}

static int read_input(struct one *one)
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
		return end(one, let_be(one),
			   "is damaged (%" PRIu64
			   " places), and in place would lose what cannot be read; -o OUT, or --force",
			   one->result->report.read.damaged);
	return 0;
}

static int say_window(struct one *one, int error)
{
	if (error == -ERANGE)
		return end(one, REDUCE_FAILED, "--window is years away from it");
	if (error == -ENODATA)
		return end(one, REDUCE_FAILED,
			   "does not say when it was recorded: --window with times from its start");
	return end(one, REDUCE_FAILED, "--window ends before it begins");
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
		return end(one, REDUCE_FAILED, "%s", strerror(-r));
	*ret_span = (struct reduce_span){report->origin_ns, report->bin_ps,
					 report->read.has_base || report->origin_ns > UNIX_TIME_SINCE_NS,
					 report->read.has_base ? report->read.base_unix_ns : 0};
	reducer_reduce_free(one->reduce);
	one->reduce = NULL;
	return 0;
}

/* A window that counts from the end, or in UTC, can be told only of a trace that has been read: once more,
 * then. */
static int read_for_window(struct one *one)
{
	struct reduce_span span = {0};
	int64_t from, to;
	int r = 0;

	if (!one->settings->has_window)
		return 0;
	if (reduce_window_needs_span(&one->settings->window)) {
		r = read_input(one);
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

/* Small results are packed well, large ones fast; where the size is the aim it is not to jump between the two. */
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
	bool packed = one->settings->in_place || to_stdout(one)
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

static int say_not_written(struct one *one, int error)
{
	const char *output = to_stdout(one)            ? reduce_spool_folder()
			     : one->settings->in_place ? "the result"
						       : one->result->output;

	if (error == -ENOSPC || error == -EDQUOT || error == -EFBIG)
		return end(one, REDUCE_FAILED, "%s does not fit: %s; make room, or write elsewhere (-o)",
			   output, strerror(-error));
	return end(one, REDUCE_FAILED, "%s cannot be written: %s", output, strerror(-error));
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
		return end(one, REDUCE_FAILED, "%s: %s", reduce_spool_folder(), strerror(-r));
	if (!fits)
		note(one, "even the coarsest bins take more than %s",
		     output_bytes(target, one->settings->target_bytes));
	return 0;
}

static int plan(struct one *one)
{
	uint32_t bins = 0;
	int r;

	if (one->as_it_is) {
		one->result->outcome = one->settings->dry_run ? REDUCE_WOULD : REDUCE_WAITING;
		return one->settings->dry_run ? STOP : 0;
	}
	r = one->settings->target_bytes ? search_bytes(one, &bins) : 0;
	if (r != 0)
		return r;
	r = reducer_reduce_plan(one->reduce, bins, &one->result->report);
	if (r < 0)
		return end(one, REDUCE_FAILED, "%s", strerror(-r));
	if (one->result->report.bound_reached)
		note(one, "even the coarsest bins leave more events than were asked for");
	if (one->result->report.spans_in > 0 && one->result->report.spans_out == 0)
		note(one,
		     one->result->has_window ? "no span meets the window" : "no span is on such a track");
	if (one->settings->dry_run) {
		one->result->outcome = REDUCE_WOULD;
		return STOP;
	}
	return 0;
}

static int write_out(struct one *one)
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
		return say_not_written(one, r);
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

/* M8 */
static int judge_size(struct one *one)
{
	struct reduce_result *result = one->result;
	int r;

	if (one->as_it_is && !input_would_do(one))
		return end(one, REDUCE_SKIPPED,
			   "is reduced already, in another format (--again writes it anew)");
	if (!one->as_it_is && (result->output_bytes < result->input_bytes || !input_would_do(one)))
		return 0;
	if (one->settings->in_place) {
		result->outcome = REDUCE_LEFT;
		return STOP;
	}
	result->outcome = REDUCE_COPIED;
	if (ftruncate(one->out_fd, 0) < 0 || lseek(one->out_fd, 0, SEEK_SET) < 0 ||
	    lseek(one->fd, 0, SEEK_SET) < 0)
		return say_not_written(one, -errno);
	r = files_copy(one->fd, one->out_fd);
	if (r < 0)
		return say_not_written(one, r);
	result->output_bytes = result->input_bytes;
	return 0;
}

/* --- the end --- */

static int check_unchanged(struct one *one)
{
	struct holder_stamp by_fd, by_name;
	struct stat st;

	if (one->spooled)
		return 0;
	if (fstat(one->fd, &st) < 0)
		return end(one, REDUCE_FAILED, "%s", strerror(errno));
	holder_stamp(&st, &by_fd);
	if (stat(one->path, &st) < 0)
		return end(one, let_be(one), "was removed while it was read; nothing was written");
	holder_stamp(&st, &by_name);
	if (!holder_stamp_same(&by_fd, &one->stamp) || !holder_stamp_same(&by_name, &one->stamp))
		return end(one, let_be(one),
			   "changed while it was read: it is still being written; nothing was %s",
			   one->settings->in_place ? "touched" : "written");
	return 0;
}

static int make_durable(struct one *one)
{
	int r = 0;

	if (to_stdout(one))
		return 0;
	/* A pipe has no mode that its file should have. */
	if (one->spooled)
		reduce_place_look_new(&one->place);
	else
		r = reduce_place_look_like(&one->place, one->fd, &one->st, one->settings->in_place);
	if (r == -EPERM)
		return end(one, let_be(one),
			   "owner, group or mode (uid %u, gid %u) cannot be kept by this user; run as that "
			   "one, or -o OUT",
			   (unsigned)one->st.st_uid, (unsigned)one->st.st_gid);
	if (r == 0)
		r = reduce_place_sync(&one->place);
	return r < 0 ? say_not_written(one, r) : 0;
}

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

/* True where it is the same. Whatever looks otherwise, or cannot be told, the independent verification decides. */
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
		return end(one, REDUCE_FAILED, "the result could not be verified and was removed: %s",
			   problem.what[0] ? problem.what : strerror(-r));
	failed = count_differences(&result->verify);
	if (failed)
		return end(one, REDUCE_DIFFERS, "verification found %" PRIu64 " differences", failed);
	result->verified_independently = true;
	return 0;
}

static int verify(struct one *one)
{
	struct reduce_result *result = one->result;
	bool independently = one->settings->verify || one->settings->in_place;
	int r = 0;

	if (one->settings->no_verify)
		return 0;
	if (result->format == REDUCER_FORMAT_PFTRACE) {
		note(one, "a .pftrace is written, not read");
		return 0;
	}
	advance(one, REDUCE_VERIFYING);
	if (!check(one) || independently)
		r = verify_independently(one);
	if (r != 0)
		return r;
	result->verified = true;
	REDUCE_POINT(verified);
	return 0;
}

static int put_out(struct one *one)
{
	int r = lseek(one->out_fd, 0, SEEK_SET) < 0 ? -errno : files_copy(one->out_fd, STDOUT_FILENO);

	return r < 0 ? end(one, REDUCE_FAILED, "standard output: %s", strerror(-r)) : 0;
}

/* What else one should know after a file was replaced. */
static void note_in_place(struct one *one)
{
	if (one->st.st_nlink > 1)
		note(one, "it has %lu names, the others keep the original", (unsigned long)one->st.st_nlink);
	if (one->result->format == REDUCER_FORMAT_XPLANE &&
	    faccessat(one->place.dirfd, "cache_version.txt", F_OK, 0) == 0)
		note(one, "XProf shows its cached copy until cache_version.txt beside it is removed");
}

static int put_in_place(struct one *one)
{
	bool in_place = one->settings->in_place;
	int r = check_unchanged(one);

	if (r != 0)
		return r;
	if (to_stdout(one))
		return put_out(one);
	if (in_place) {
		r = check_quiet(one);
		if (r != 0)
			return r;
	}
	r = reduce_place_commit(&one->place, in_place || one->settings->force);
	if (r == -ESTALE)
		return end(one, REDUCE_FAILED, "our lock was broken by another; nothing was touched");
	if (r == -EEXIST)
		return say_not_opened(one, r, NULL);
	if (r < 0)
		return say_not_written(one, r);
	if (in_place)
		note_in_place(one);
	return 0;
}

static void clean_up(struct one *one)
{
	if (one->place.fd >= 0)
		reduce_place_close(&one->place);
	else if (one->out_fd >= 0)
		close(one->out_fd);
	reducer_reduce_free(one->reduce);
	if (one->fd >= 0)
		close(one->fd);
}

static int run(struct one *one)
{
	static int (*const steps[])(struct one * one) = {
		open_input, look,      choose_output, check_quiet,  open_place, read_for_window, read_input,
		plan,       write_out, judge_size,    make_durable, verify,     put_in_place,
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(steps) / sizeof(steps[0]); i++)
		r = steps[i](one);
	clean_up(one);
	return r;
}

void reduce_one(const struct reduce_settings *settings, const struct reduce_job *job,
		struct reduce_result *result, void (*progress)(void *context), void *context)
{
	int r = START_OVER;

	for (int i = 0; r == START_OVER && i < STARTS_MAX; i++) {
		struct one one = {.settings = settings,
				  .job = job,
				  .result = result,
				  .fd = -1,
				  .out_fd = -1,
				  .progress = progress,
				  .context = context,
				  .options = settings->reduce};

		one.place = (struct reduce_place)REDUCE_PLACE_NONE;
		one.options.progress = advance;
		one.options.context = &one;
		*result = (struct reduce_result){0};
		r = run(&one);
		if (r == START_OVER)
			end(&one, REDUCE_FAILED, "changes again and again: somebody else is writing it");
	}
	if (r == 0 && result->outcome == REDUCE_WAITING)
		result->outcome = REDUCE_DONE;
}
