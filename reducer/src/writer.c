/* SPDX-License-Identifier: Apache-2.0 */
#include <reducer/writer.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "writer_inside.h"

struct reducer_writer {
	const struct writer_format *format;
	void *output;
	int failed;
};

static const struct {
	const char *ending;
	enum reducer_format format;
} endings[] = {
	{".json", REDUCER_FORMAT_CHROME},
	{".json.gz", REDUCER_FORMAT_CHROME},
	{".xplane.pb", REDUCER_FORMAT_XPLANE},
	{".pftrace", REDUCER_FORMAT_PFTRACE},
	{".perfetto-trace", REDUCER_FORMAT_PFTRACE},
	{".drec", REDUCER_FORMAT_DREC},
};

enum reducer_format reducer_format_of_name(const char *path)
{
	size_t bytes = strlen(path);
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		size_t tail = strlen(endings[i].ending);
		if (bytes >= tail && strcmp(path + bytes - tail, endings[i].ending) == 0)
			return endings[i].format;
	}
	return REDUCER_FORMAT_NONE;
}

const char *reducer_format_name(enum reducer_format format)
{
	switch (format) {
	case REDUCER_FORMAT_CHROME:
		return "chrome";
	case REDUCER_FORMAT_XPLANE:
		return "xplane";
	case REDUCER_FORMAT_PFTRACE:
		return "pftrace";
	case REDUCER_FORMAT_DREC:
		return "drec";
	case REDUCER_FORMAT_NONE:
		break;
	}
	return "none";
}

static const struct writer_format *writer_of(enum reducer_format format)
{
	switch (format) {
	case REDUCER_FORMAT_CHROME:
		return &writer_chrome;
	case REDUCER_FORMAT_PFTRACE:
		return &writer_pftrace;
	case REDUCER_FORMAT_XPLANE:
		return &writer_xplane;
	case REDUCER_FORMAT_DREC:
	case REDUCER_FORMAT_NONE:
		break;
	}
	return NULL;
}

int reducer_writer_new(int fd, enum reducer_format format, const struct reducer_writer_options *options,
		       const char *spool_dir, struct reducer_writer **ret_writer)
{
	const struct reducer_writer_options none = {0};
	const struct writer_format *of = writer_of(format);
	if (!of)
		return -EINVAL;
	struct reducer_writer *writer = calloc(1, sizeof(*writer));
	if (!writer)
		return -ENOMEM;
	writer->format = of;
	int result = of->open(fd, options ? options : &none, spool_dir, &writer->output);
	if (result < 0) {
		free(writer);
		return result;
	}
	*ret_writer = writer;
	return 0;
}

int reducer_writer_member(struct reducer_writer *writer, const struct reducer_member *member)
{
	if (!writer->failed)
		writer->failed = writer->format->member(writer->output, member);
	return writer->failed;
}

int reducer_writer_event(struct reducer_writer *writer, const struct reducer_event *event)
{
	if (!writer->failed)
		writer->failed = writer->format->event(writer->output, event);
	return writer->failed;
}

static int sink_event(void *context, const struct reducer_event *event)
{
	return reducer_writer_event(context, event);
}

static int sink_member(void *context, const struct reducer_member *member)
{
	return reducer_writer_member(context, member);
}

struct reducer_sink reducer_writer_sink(struct reducer_writer *writer)
{
	return (struct reducer_sink){writer, sink_event, sink_member};
}

int reducer_writer_finish(struct reducer_writer *writer)
{
	if (!writer->failed)
		writer->failed = writer->format->finish(writer->output);
	return writer->failed;
}

const struct reducer_writer_stats *reducer_writer_stats(const struct reducer_writer *writer)
{
	return writer->format->stats(writer->output);
}

size_t reducer_writer_left_out(const struct reducer_writer *writer, struct reducer_left_out *ret, size_t room)
{
	return writer->format->left_out(writer->output, ret, room);
}

void writer_add_left_out(struct reducer_left_out *ret, size_t room, size_t *count, const char *what,
			 uint64_t number)
{
	if (number == 0)
		return;
	if (*count < room)
		ret[*count] = (struct reducer_left_out){what, number};
	(*count)++;
}

void reducer_writer_free(struct reducer_writer *writer)
{
	if (!writer)
		return;
	writer->format->free(writer->output);
	free(writer);
}
