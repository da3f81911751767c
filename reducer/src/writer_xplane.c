/* SPDX-License-Identifier: Apache-2.0 */
/* XPlane behind writer.h. */
#include <reducer/xplane_writer.h>

#include "writer_inside.h"

static int xplane_open(int fd, const struct reducer_writer_options *options, const char *spool_dir, void **ret_output)
{
	struct reducer_xplane_writer *writer;
	int result = reducer_xplane_writer_new(fd, options, spool_dir, &writer);
	if (result == 0)
		*ret_output = writer;
	return result;
}

static int xplane_member(void *output, const struct reducer_member *member)
{
	return reducer_xplane_writer_member(output, member);
}

static int xplane_event(void *output, const struct reducer_event *event)
{
	return reducer_xplane_writer_event(output, event);
}

static int xplane_finish(void *output)
{
	return reducer_xplane_writer_finish(output);
}

static const struct reducer_writer_stats *xplane_stats(const void *output)
{
	return reducer_xplane_writer_stats(output);
}

static size_t xplane_left_out(const void *output, struct reducer_left_out *ret, size_t room)
{
	return reducer_xplane_writer_left_out(output, ret, room);
}

static void xplane_free(void *output)
{
	reducer_xplane_writer_free(output);
}

const struct writer_format writer_xplane = {
	.open = xplane_open, .member = xplane_member, .event = xplane_event, .finish = xplane_finish,
	.stats = xplane_stats, .left_out = xplane_left_out, .free = xplane_free,
};
