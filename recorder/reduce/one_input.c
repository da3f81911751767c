/* SPDX-License-Identifier: Apache-2.0 */
#include "reduce/one_steps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "output.h"
#include "reduce/lock.h"
#include "reduce/spool.h"

static int spool(struct one *one, int from)
{
	char bytes[OUTPUT_TEXT_MAX];
	uint64_t taken = 0;
	int r = reduce_spool_pipe(from, &one->fd, &taken);

	if (r == -ENOSPC)
		return one_end(one, REDUCE_FAILED,
			       "more than %s come, half of what is free in %s; set TMPDIR to a larger folder",
			       output_bytes(bytes, taken), reduce_spool_folder());
	if (r < 0)
		return one_end(one, REDUCE_FAILED, "cannot be kept in %s meanwhile: %s",
			       reduce_spool_folder(), strerror(-r));
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
		return one_end(one, errno == ENOENT ? one_let_be(one) : REDUCE_FAILED, "%s",
			       errno == ENOENT && one->job->from_folder ? "is gone again" : strerror(errno));
	if (S_ISDIR(st.st_mode) || S_ISBLK(st.st_mode))
		return one_end(one, one_let_be(one), "is no file");
	if (!S_ISREG(st.st_mode) && one->settings->in_place)
		return one_end(one, REDUCE_FAILED, "is a pipe: nothing can be put in its place");
	from = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (from < 0)
		return one_end(one, REDUCE_FAILED, "cannot be read: %s", strerror(errno));
	if (S_ISREG(st.st_mode)) {
		one->fd = from;
		return 0;
	}
	r = spool(one, from);
	close(from);
	return r;
}

int one_open_input(struct one *one)
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
			r = one_end(one, REDUCE_FAILED, "%s", strerror(real ? ENAMETOOLONG : errno));
		else
			strcpy(one->path, real);
		free(real);
	}
	if (r == 0 && fstat(one->fd, &one->st) < 0)
		r = one_end(one, REDUCE_FAILED, "%s", strerror(errno));
	holder_stamp(&one->st, &one->stamp);
	one->result->input_bytes = (uint64_t)one->st.st_size;
	if (r == 0 && one->st.st_size == 0)
		r = one_end(one, one_let_be(one), "is empty: its writer has not begun, or died");
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
	return one_end(one, REDUCE_SKIPPED, "is reduced already (--again reduces it further)");
}

int one_look(struct one *one)
{
	struct reducer_problem problem = {0};
	int r = reduce_look(one->path, &one->look, &problem);

	if (r == -EBADMSG)
		return one_end(one, one_let_be(one), "%s (at byte %" PRIu64 ")", problem.what,
			       problem.offset);
	if (r < 0)
		return one_end(one, REDUCE_FAILED, "%s", problem.what[0] ? problem.what : strerror(-r));
	return one->look.reduced && !one->settings->again ? pass_over(one) : 0;
}
