/* SPDX-License-Identifier: Apache-2.0 */
/* Perfetto's format behind writer.h. */
#include <reducer/pftrace.h>

#include "writer_inside.h"

static int pftrace_open(int fd, const struct reducer_writer_options *options, const char *spool_dir,
			void **ret_output)
{
	struct reducer_pftrace_writer *writer = NULL;
	int result = reducer_pftrace_writer_new(fd, options, spool_dir, &writer);
	if (result == 0)
		*ret_output = writer;
	return result;
}

static int pftrace_member(void *output, const struct reducer_member *member)
{
	return reducer_pftrace_writer_member(output, member);
}

static int pftrace_event(void *output, const struct reducer_event *event)
{
	return reducer_pftrace_writer_event(output, event);
}

static int pftrace_finish(void *output)
{
	return reducer_pftrace_writer_finish(output);
}

static const struct reducer_writer_stats *pftrace_stats(const void *output)
{
	return reducer_pftrace_writer_stats(output);
}

static size_t pftrace_left_out(const void *output, struct reducer_left_out *ret, size_t room)
{
	return reducer_pftrace_writer_left_out(output, ret, room);
}

static void pftrace_free(void *output)
{
	reducer_pftrace_writer_free(output);
}

const struct writer_format writer_pftrace = {
	.open = pftrace_open,
	.member = pftrace_member,
	.event = pftrace_event,
	.finish = pftrace_finish,
	.stats = pftrace_stats,
	.left_out = pftrace_left_out,
	.free = pftrace_free,
};
