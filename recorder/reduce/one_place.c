/* SPDX-License-Identifier: Apache-2.0 */
#include "reduce/one_steps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "output.h"
#include "reduce/lock.h"
#include "reduce/names.h"
#include "reduce/spool.h"

enum { OWNER_TEXT = 256 };

/* ---- where it goes ---- */

static int choose_in_place(struct one *one)
{
	bool plain = one->look.packing == REDUCER_PLAIN;

	if (one->look.format == REDUCER_FORMAT_DREC)
		return one_end(one, one_let_be(one), "is a raw ring or window file: it stays raw; -o OUT");
	if (one->look.packing == REDUCER_ZSTD || (one->look.format == REDUCER_FORMAT_XPLANE && !plain))
		return one_end(one, one_let_be(one),
			       "is packed in a way that is read but not written; -o OUT");
	if (one->settings->format && one->settings->format != one->look.format)
		return one_end(one, REDUCE_FAILED, "in place means in its own format; -o OUT --format %s",
			       reducer_format_name(one->settings->format));
	strcpy(one->result->output, one->path);
	one->result->format = one->look.format;
	return 0;
}

int one_choose_output(struct one *one)
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
		return one_end(one, REDUCE_FAILED, "its output's name is too long");
	return 0;
}

bool one_to_stdout(const struct one *one)
{
	return strcmp(one->result->output, "-") == 0;
}

/* ---- alone with it ---- */

int one_check_quiet(struct one *one)
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
		return one_end(one, one_let_be(one),
			       "was written less than %s ago, it may not be finished (--settle 0)",
			       output_duration(text, one->settings->settle_ns));
	if (holder_find(one->fd, &holder) == 1) {
		holder_say(&holder, who, sizeof(who));
		return one_end(one, one_let_be(one), "is being written by %s", who);
	}
	return 0;
}

int one_say_not_opened(struct one *one, int error, const struct reduce_lock_owner *owner)
{
	char who[OWNER_TEXT];
	const char *output = one->result->output;

	if (error == -EBUSY) {
		reduce_lock_say(owner, who, sizeof(who));
		return one_end(one, one_let_be(one), "%s%sis locked by %s; if that is dead: --break-lock",
			       one->settings->in_place ? "" : output, one->settings->in_place ? "" : " ",
			       who);
	}
	if (error == -ENXIO)
		return one_end(one, REDUCE_FAILED, "%s is no regular file, and is not replaced by one",
			       output);
	if (error == -EEXIST)
		return one_end(one, one_let_be(one), "%s is there already (--force)", output);
	return one_end(one, REDUCE_FAILED, "%s cannot be written: %s", output, strerror(-error));
}

static bool is_input(const struct one *one)
{
	struct stat st;

	return !one->spooled && stat(one->result->output, &st) == 0 && st.st_ino == one->st.st_ino &&
	       st.st_dev == one->st.st_dev;
}

int one_open_place(struct one *one)
{
	const struct reduce_settings *settings = one->settings;
	struct reduce_lock_owner owner = {0};
	struct stat st;
	struct holder_stamp stamp;
	int r = 0;

	if (!one_to_stdout(one) && !settings->in_place && is_input(one))
		return one_end(one, REDUCE_FAILED, "would be its own output; --in-place does that");
	if (settings->dry_run)
		return 0;
	if (one_to_stdout(one)) {
		one->out_fd = reduce_spool_new();
		snprintf(one->out_path, sizeof(one->out_path), "/proc/self/fd/%d", one->out_fd);
		return one->out_fd < 0 ? one_end(one, REDUCE_FAILED, "%s: %s", reduce_spool_folder(),
						 strerror(-one->out_fd))
				       : 0;
	}
	if (settings->output_folder)
		r = reduce_names_make_folders(one->result->output);
	if (r == 0)
		r = reduce_place_open(one->result->output, settings->force || settings->in_place,
				      settings->break_lock, &one->place, &owner);
	if (r < 0)
		return one_say_not_opened(one, r, &owner);
	one->out_fd = one->place.fd;
	snprintf(one->out_path, sizeof(one->out_path), "%.*s%s",
		 (int)(strlen(one->result->output) - strlen(one->place.name)), one->result->output,
		 one->place.tmp);
	if (settings->in_place) {
		/* Whoever had the lock before us may have replaced it. */
		if (fstatat(one->place.dirfd, one->place.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return ONE_START_OVER;
		holder_stamp(&st, &stamp);
		if (!holder_stamp_same(&stamp, &one->stamp))
			return ONE_START_OVER;
	}
	return 0;
}
