/* SPDX-License-Identifier: Apache-2.0 */
#include <reducer/trace.h>

#include <driverec/format.h>
#include <driverec/reader.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <reducer/chrome.h>
#include <reducer/drec_codec.h>
#include <reducer/xplane.h>

#include "proto.h"

enum { HEAD_BYTES = 4096 };

/* The first unpacked bytes of a file. */
struct head {
	unsigned char bytes[HEAD_BYTES];
	size_t count;
	enum reducer_packing packing;
};

static int read_head(const char *path, struct head *head, struct reducer_problem *ret_problem)
{
	struct reducer_input *input;
	int64_t got = 1;
	int result = reducer_input_open(path, &input, ret_problem);
	if (result < 0)
		return result;
	head->count = 0;
	head->packing = reducer_input_packing(input);
	while (head->count < HEAD_BYTES && got > 0) {
		got = reducer_input_read(input, head->bytes + head->count, HEAD_BYTES - head->count);
		head->count += got > 0 ? (size_t)got : 0;
	}
	const struct reducer_problem *cut = reducer_input_problem(input);
	if (got < 0)
		snprintf(ret_problem->what, sizeof(ret_problem->what), "%s", strerrordesc_np((int)-got));
	else if (head->count == 0 && cut)
		*ret_problem = *cut;
	reducer_input_free(input);
	return got < 0 ? (int)got : head->count == 0 && cut ? -EBADMSG : 0;
}

static bool starts_with(const struct head *head, const char *magic, size_t bytes)
{
	return head->count >= bytes && memcmp(head->bytes, magic, bytes) == 0;
}

/* `{` or `[`, after what may stand before it. */
static bool is_json(const struct head *head)
{
	size_t i = starts_with(head, "\xef\xbb\xbf", 3) ? 3 : 0;
	while (i < head->count && strchr(" \t\r\n", head->bytes[i]) && head->bytes[i])
		i++;
	return i < head->count && (head->bytes[i] == '{' || head->bytes[i] == '[');
}

/* Perfetto's own format: packets, the first one with what no XPlane has: a sequence id, a time, a track. */
static bool is_pftrace(const struct head *head)
{
	enum { PACKET = 1, TIME = 8, SEQUENCE = 10, TRACK_EVENT = 11, UUID = 89, DESCRIPTOR = 60 };
	struct proto file = proto_of((struct reducer_text){(const char *)head->bytes, head->count});
	struct proto_field packet, field;
	if (proto_next(&file, &packet) != 1 && proto_next_cut(&file, &packet) != 1)
		return false;
	if (packet.number != PACKET || packet.wire != PROTO_BYTES)
		return false;
	while (proto_next(&packet.content, &field) == 1)
		switch (field.number) {
		case TIME:
		case SEQUENCE:
		case TRACK_EVENT:
		case UUID:
		case DESCRIPTOR:
			return true;
		default:
			break;
		}
	return false;
}

static const struct {
	const char *magic;
	size_t bytes;
	const char *what;
} strangers[] = {
	{"\x7f"
	 "ELF",
	 4, "a program or library (ELF)"},
	{"PK\x03\x04", 4, "a zip archive"},
	{"\xfd"
	 "7zXZ",
	 5, "packed with xz"},
	{"BZh", 3, "packed with bzip2"},
	{"SQLite format 3", 15, "an SQLite database"},
	{"\x89PNG", 4, "a picture (PNG)"},
	{"%PDF", 4, "a PDF"},
	{"\x89HDF", 4, "an HDF5 file"},
};

/* What no reader of ours takes: said as well as can be, in the Chrome reader's words where nothing is known.
 */
static int refuse(const struct head *head, struct reducer_problem *ret_problem)
{
	const char *what = NULL;
	if (starts_with(head, DREC_MAGIC, 8))
		what = "a packed ring or window file: unpack it first";
	else if (is_pftrace(head))
		what = "a Perfetto trace: this format is written, not read";
	for (size_t i = 0; !what && i < sizeof(strangers) / sizeof(strangers[0]); i++)
		if (starts_with(head, strangers[i].magic, strangers[i].bytes))
			what = strangers[i].what;
	if (what) {
		bool first = starts_with(head, DREC_MAGIC, 8) || is_pftrace(head);
		ret_problem->offset = 0;
		snprintf(ret_problem->what, sizeof(ret_problem->what), "%s%s",
			 first ? "" : "no trace: ", what);
		return -EBADMSG;
	}
	const struct reducer_sink nobody = {0};
	struct reducer_read_report report;
	struct reducer_chrome *reader;
	int result = reducer_chrome_new(&nobody, NULL, &report, &reader);
	if (result < 0)
		return result;
	result = reducer_chrome_feed(reader, head->bytes, head->count);
	if (result == 0)
		result = reducer_chrome_finish(reader);
	reducer_chrome_free(reader);
	if (result == -EBADMSG && report.n_problems)
		*ret_problem = report.problem[report.n_problems - 1];
	else if (result == 0)
		snprintf(ret_problem->what, sizeof(ret_problem->what), "no trace");
	return result < 0 ? result : -EBADMSG;
}

int reducer_trace_sniff(const char *path, enum reducer_format *ret_format,
			struct reducer_problem *ret_problem)
{
	struct head head;
	int result = read_head(path, &head, ret_problem);
	if (result < 0)
		return result;
	if (starts_with(&head, DREC_MAGIC, 8) && head.packing == REDUCER_PLAIN)
		*ret_format = REDUCER_FORMAT_DREC;
	else if (is_json(&head))
		*ret_format = REDUCER_FORMAT_CHROME;
	else if (reducer_xplane_sniff(head.bytes, head.count) && !is_pftrace(&head))
		*ret_format = REDUCER_FORMAT_XPLANE;
	else
		return refuse(&head, ret_problem);
	return 0;
}

/* --- reading --- */

static void say(struct reducer_read_report *report, uint64_t offset, const char *what)
{
	*report = (struct reducer_read_report){.n_problems = 1};
	report->problem[0].offset = offset;
	snprintf(report->problem[0].what, sizeof(report->problem[0].what), "%s", what);
}

static int read_chrome(const char *path, const struct reducer_sink *sink, struct reducer_read_report *report)
{
	struct reducer_problem problem = {0};
	struct reducer_input *input;
	int result = reducer_input_open(path, &input, &problem);
	if (result < 0) {
		say(report, problem.offset, problem.what);
		return result;
	}
	result = reducer_chrome_read(input, sink, NULL, report);
	reducer_input_free(input);
	return result;
}

/* Gives a fed ring's events the times that its source had, and says from the first one on what they count
 * from. */
struct rebase {
	const struct reducer_sink *sink;
	struct reducer_read_report *report;
	int has_base;
	int64_t base_unix_ns;
};

static void say_base(const struct rebase *rebase)
{
	rebase->report->has_base = rebase->has_base;
	rebase->report->base_unix_ns = rebase->base_unix_ns;
}

static int rebase_event(void *context, const struct reducer_event *event)
{
	const struct rebase *rebase = context;
	struct reducer_event moved = *event;
	say_base(rebase);
	if (event->has_time && __builtin_sub_overflow(event->start_ns, rebase->base_unix_ns, &moved.start_ns))
		moved.start_ns = event->start_ns < 0 ? INT64_MIN : INT64_MAX;
	return rebase->sink->event ? rebase->sink->event(rebase->sink->context, &moved) : 0;
}

static int rebase_member(void *context, const struct reducer_member *member)
{
	const struct rebase *rebase = context;
	say_base(rebase);
	return rebase->sink->member ? rebase->sink->member(rebase->sink->context, member) : 0;
}

static int read_drec(const char *path, const struct reducer_sink *sink, struct reducer_read_report *report)
{
	struct drec_problem problem = {0};
	struct drec_reader *reader;
	struct reducer_drec_source source;
	int result = drec_reader_open(AT_FDCWD, path, NULL, &reader, &problem);
	if (result < 0) {
		say(report, problem.offset, problem.what[0] ? problem.what : strerrordesc_np(-result));
		return result;
	}
	result = reducer_drec_source(reader, &source);
	if (result == 0) {
		/* What was fed without a base keeps its own time; rings of programs are in Unix time. */
		struct rebase rebase = {sink, report, source.has_base || !source.fed,
					source.has_base ? source.base_unix_ns : 0};
		struct reducer_sink moved = {&rebase, rebase_event, rebase_member};
		result = reducer_drec_read(reader, &moved, NULL, NULL, report);
		say_base(&rebase);
	}
	drec_reader_free(reader);
	return result;
}

int reducer_trace_read(const char *path, enum reducer_format format, const struct reducer_sink *sink,
		       struct reducer_read_report *report)
{
	switch (format) {
	case REDUCER_FORMAT_CHROME:
		return read_chrome(path, sink, report);
	case REDUCER_FORMAT_XPLANE:
		return reducer_xplane_read(path, sink, report);
	case REDUCER_FORMAT_DREC:
		return read_drec(path, sink, report);
	case REDUCER_FORMAT_PFTRACE:
	case REDUCER_FORMAT_NONE:
		break;
	}
	say(report, 0, "this format is not read");
	return -EINVAL;
}

int reducer_trace_read_any(const char *path, const struct reducer_sink *sink,
			   struct reducer_read_report *report)
{
	enum reducer_format format = REDUCER_FORMAT_CHROME;
	struct reducer_problem problem = {0};
	struct stat st;
	if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
		int result = reducer_trace_sniff(path, &format, &problem);
		if (result < 0) {
			say(report, problem.offset, problem.what);
			return result;
		}
	}
	return reducer_trace_read(path, format, sink, report);
}
