/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chrome JSON behind writer.h. Times are written as they come; what they count from is said by the member
 * baseTimeNanoseconds, which is added where there is a base and no such member came before the first event. A
 * bare array has no members: there the base is added to every time.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <reducer/chrome_writer.h>

#include "text.h"
#include "writer_inside.h"

struct output {
	struct reducer_chrome_writer *writer;
	struct reducer_writer_stats stats;
	int64_t base_unix_ns;
	int add_base; /* the member is still to be written */
	int own_base; /* we wrote it */
};

static int chrome_open(int fd, const struct reducer_writer_options *options, const char *spool_dir,
		       void **ret_output)
{
	(void)spool_dir;
	bool shift = options->array_root && options->has_base && options->base_unix_ns > INT64_MIN;
	struct reducer_chrome_writer_options own = {
		.array_root = options->array_root,
		.gzip_level = options->gzip_level,
		.has_base = shift,
		.base_unix_ns = shift ? -options->base_unix_ns : 0,
		.strip_args = options->strip_args,
	};
	struct output *output = calloc(1, sizeof(*output));
	if (!output)
		return -ENOMEM;
	output->base_unix_ns = options->base_unix_ns;
	output->add_base = options->has_base && options->base_unix_ns != 0 && !options->array_root;
	int result = reducer_chrome_writer_new(fd, &own, &output->writer);
	if (result < 0) {
		free(output);
		return result;
	}
	*ret_output = output;
	return 0;
}

static int chrome_member(void *context, const struct reducer_member *member)
{
	struct output *output = context;
	if (text_is(member->key, "baseTimeNanoseconds")) {
		if (output->own_base)
			return 0;
		output->add_base = 0;
	}
	return reducer_chrome_writer_member(output->writer, member);
}

static int write_base(struct output *output)
{
	static const char key[] = "baseTimeNanoseconds";
	char digits[24];
	int bytes = snprintf(digits, sizeof(digits), "%" PRId64, output->base_unix_ns);
	struct reducer_member member = {{key, sizeof(key) - 1}, {digits, (size_t)bytes}};
	output->add_base = 0;
	output->own_base = 1;
	return reducer_chrome_writer_member(output->writer, &member);
}

static int chrome_event(void *context, const struct reducer_event *event)
{
	struct output *output = context;
	int result = output->add_base ? write_base(output) : 0;
	return result < 0 ? result : reducer_chrome_writer_event(output->writer, event);
}

static int chrome_finish(void *context)
{
	struct output *output = context;
	int result = output->add_base ? write_base(output) : 0;
	return result < 0 ? result : reducer_chrome_writer_finish(output->writer);
}

static const struct reducer_writer_stats *chrome_stats(const void *context)
{
	/* The output is ours, and was not made const. */
	struct output *output = (struct output *)(uintptr_t)context;
	const struct reducer_chrome_writer_stats *stats = reducer_chrome_writer_stats(output->writer);
	output->stats.events = stats->events;
	output->stats.file_bytes = stats->file_bytes;
	return &output->stats;
}

static size_t chrome_left_out(const void *context, struct reducer_left_out *ret, size_t room)
{
	const struct output *output = context;
	const struct reducer_chrome_writer_stats *stats = reducer_chrome_writer_stats(output->writer);
	size_t count = 0;
	writer_add_left_out(ret, room, &count, "args of events", stats->args_left_out);
	writer_add_left_out(ret, room, &count, "top-level members", stats->members_left_out);
	return count;
}

static void chrome_free(void *context)
{
	struct output *output = context;
	reducer_chrome_writer_free(output->writer);
	free(output);
}

const struct writer_format writer_chrome = {
	.open = chrome_open,
	.member = chrome_member,
	.event = chrome_event,
	.finish = chrome_finish,
	.stats = chrome_stats,
	.left_out = chrome_left_out,
	.free = chrome_free,
};
