/* SPDX-License-Identifier: Apache-2.0 */
#include "reduce/one_steps.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "incidents/files.h"

static int check_unchanged(struct one *one)
{
	struct holder_stamp by_fd, by_name;
	struct stat st;

	if (one->spooled)
		return 0;
	if (fstat(one->fd, &st) < 0)
		return one_end(one, REDUCE_FAILED, "%s", strerror(errno));
	holder_stamp(&st, &by_fd);
	if (stat(one->path, &st) < 0)
		return one_end(one, one_let_be(one), "was removed while it was read; nothing was written");
	holder_stamp(&st, &by_name);
	if (!holder_stamp_same(&by_fd, &one->stamp) || !holder_stamp_same(&by_name, &one->stamp))
		return one_end(one, one_let_be(one),
			       "changed while it was read: it is still being written; nothing was %s",
			       one->settings->in_place ? "touched" : "written");
	return 0;
}

int one_make_durable(struct one *one)
{
	int r = 0;

	if (one_to_stdout(one))
		return 0;
	/* A pipe has no mode that its file should have. */
	if (one->spooled)
		reduce_place_look_new(&one->place);
	else
		r = reduce_place_look_like(&one->place, one->fd, &one->st, one->settings->in_place);
	if (r == -EPERM)
		return one_end(
			one, one_let_be(one),
			"owner, group or mode (uid %u, gid %u) cannot be kept by this user; run as that "
			"one, or -o OUT",
			(unsigned)one->st.st_uid, (unsigned)one->st.st_gid);
	if (r == 0)
		r = reduce_place_sync(&one->place);
	return r < 0 ? one_say_not_written(one, r) : 0;
}

static int put_out(struct one *one)
{
	int r = lseek(one->out_fd, 0, SEEK_SET) < 0 ? -errno : files_copy(one->out_fd, STDOUT_FILENO);

	return r < 0 ? one_end(one, REDUCE_FAILED, "standard output: %s", strerror(-r)) : 0;
}

/* What else one should know after a file was replaced. */
static void note_in_place(struct one *one)
{
	if (one->st.st_nlink > 1)
		one_note(one, "it has %lu names, the others keep the original",
			 (unsigned long)one->st.st_nlink);
	if (one->result->format == REDUCER_FORMAT_XPLANE &&
	    faccessat(one->place.dirfd, "cache_version.txt", F_OK, 0) == 0)
		one_note(one, "XProf shows its cached copy until cache_version.txt beside it is removed");
}

int one_put_in_place(struct one *one)
{
	bool in_place = one->settings->in_place;
	int r = check_unchanged(one);

	if (r != 0)
		return r;
	if (one_to_stdout(one))
		return put_out(one);
	if (in_place) {
		r = one_check_quiet(one);
		if (r != 0)
			return r;
	}
	r = reduce_place_commit(&one->place, in_place || one->settings->force);
	if (r == -ESTALE)
		return one_end(one, REDUCE_FAILED, "our lock was broken by another; nothing was touched");
	if (r == -EEXIST)
		return one_say_not_opened(one, r, NULL);
	if (r < 0)
		return one_say_not_written(one, r);
	if (in_place)
		note_in_place(one);
	return 0;
}
