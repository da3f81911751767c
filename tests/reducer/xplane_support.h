/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of the XPlane codec: an XSpace built byte by byte, and events as lines of text. */
#ifndef TESTS_XPLANE_SUPPORT_H
#define TESTS_XPLANE_SUPPORT_H

#include <reducer/xplane.h>
#include <reducer/xplane_writer.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support.h"

#define MAYBE __attribute__((unused))

/* --- bytes of protobuf, without the code that is tested --- */

struct pb {
	unsigned char bytes[1 << 16];
	size_t n;
};

MAYBE static void pb_varint(struct pb *pb, uint64_t value)
{
	while (value >= 0x80) {
		pb->bytes[pb->n++] = (unsigned char)(value | 0x80);
		value >>= 7;
	}
	pb->bytes[pb->n++] = (unsigned char)value;
}

MAYBE static void pb_number(struct pb *pb, unsigned field, int64_t value)
{
	pb_varint(pb, field << 3);
	pb_varint(pb, (uint64_t)value);
}

MAYBE static void pb_bytes(struct pb *pb, unsigned field, const void *bytes, size_t n)
{
	pb_varint(pb, field << 3 | 2);
	pb_varint(pb, n);
	ck_assert_uint_lt(pb->n + n, sizeof(pb->bytes));
	memcpy(pb->bytes + pb->n, bytes, n);
	pb->n += n;
}

MAYBE static void pb_text(struct pb *pb, unsigned field, const char *text)
{
	pb_bytes(pb, field, text, strlen(text));
}

MAYBE static void pb_double(struct pb *pb, unsigned field, double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	pb_varint(pb, field << 3 | 1);
	for (int i = 0; i < 8; i++)
		pb->bytes[pb->n++] = (unsigned char)(bits >> (8 * i));
}

/* Adds `inner` as a field and empties it. */
MAYBE static void pb_nest(struct pb *pb, unsigned field, struct pb *inner)
{
	pb_bytes(pb, field, inner->bytes, inner->n);
	inner->n = 0;
}

/* --- the messages of an XSpace --- */

/* A map entry: field 4 (of an event, name and display name) or 5 (of a stat). */
MAYBE static void pb_metadata(struct pb *plane, unsigned field, int64_t id, const char *name,
			      const char *display)
{
	static struct pb value, entry;
	value.n = entry.n = 0;
	pb_number(&value, 1, id);
	pb_text(&value, 2, name);
	if (display)
		pb_text(&value, 4, display);
	pb_number(&entry, 1, id);
	pb_nest(&entry, 2, &value);
	pb_nest(plane, field, &entry);
}

/* A stat of a number: kind 3 uint64, 4 int64, 7 reference. */
MAYBE static void pb_stat(struct pb *to, unsigned field, int64_t id, unsigned kind, int64_t value)
{
	static struct pb stat;
	stat.n = 0;
	pb_number(&stat, 1, id);
	pb_number(&stat, kind, value);
	pb_nest(to, field, &stat);
}

MAYBE static void pb_stat_text(struct pb *to, unsigned field, int64_t id, unsigned kind, const char *value)
{
	static struct pb stat;
	stat.n = 0;
	pb_number(&stat, 1, id);
	pb_text(&stat, kind, value);
	pb_nest(to, field, &stat);
}

enum { NO_DURATION = -1 };

MAYBE static void pb_event(struct pb *line, int64_t name, int64_t offset_ps, int64_t duration_ps)
{
	static struct pb event;
	event.n = 0;
	pb_number(&event, 1, name);
	pb_number(&event, 2, offset_ps);
	if (duration_ps != NO_DURATION)
		pb_number(&event, 3, duration_ps);
	pb_nest(line, 4, &event);
}

MAYBE static void pb_line_head(struct pb *line, int64_t id, const char *name, int64_t timestamp_ns)
{
	line->n = 0;
	pb_number(line, 1, id);
	pb_text(line, 2, name);
	if (timestamp_ns)
		pb_number(line, 3, timestamp_ns);
}

/* --- what a reader delivers, as text --- */

struct lines {
	char *text;
	size_t n, room;
	bool with_meta, with_args;
	uint64_t events;
};

MAYBE static void lines_add(struct lines *lines, const char *text, size_t n)
{
	while (lines->room - lines->n < n + 1) {
		lines->room = lines->room ? lines->room * 2 : 1 << 16;
		lines->text = realloc(lines->text, lines->room);
		ck_assert_ptr_nonnull(lines->text);
	}
	memcpy(lines->text + lines->n, n ? text : "", n);
	lines->n += n;
	lines->text[lines->n] = 0;
}

MAYBE static void lines_add_text(struct lines *lines, struct reducer_text text, const char *end)
{
	lines_add(lines, text.data, text.bytes);
	lines_add(lines, end, strlen(end));
}

/* "span 701/5 12.000000345+7.000000000 name [category] {args}" */
MAYBE static int lines_event(void *context, const struct reducer_event *event)
{
	struct lines *lines = context;
	char times[120];
	if (event->kind == DREC_META && !lines->with_meta)
		return 0;
	lines->events += event->kind != DREC_META;
	lines_add_text(
		lines,
		(struct reducer_text){drec_kind_name(event->kind), strlen(drec_kind_name(event->kind))}, " ");
	lines_add_text(lines, event->group, "/");
	lines_add_text(lines, event->track, " ");
	if (event->has_time) {
		int n = snprintf(times, sizeof(times), "%" PRId64 ".%03u", event->start_ns, event->start_ps);
		if (event->has_duration)
			n += snprintf(times + n, sizeof(times) - (size_t)n, "+%" PRId64 ".%03u",
				      event->duration_ns, event->duration_ps);
		lines_add(lines, times, (size_t)n);
		lines_add(lines, " ", 1);
	}
	lines_add_text(lines, event->name, "");
	if (event->category.bytes) {
		lines_add(lines, " [", 2);
		lines_add_text(lines, event->category, "]");
	}
	if (event->has_id)
		lines_add(lines, times, (size_t)snprintf(times, sizeof(times), " id %" PRIu64, event->id));
	if (event->extra.bytes) {
		lines_add(lines, " <", 2);
		lines_add_text(lines, event->extra, ">");
	}
	if (event->args.bytes && lines->with_args) {
		lines_add(lines, " ", 1);
		lines_add_text(lines, event->args, "");
	}
	lines_add(lines, "\n", 1);
	return 0;
}

MAYBE static int lines_member(void *context, const struct reducer_member *member)
{
	struct lines *lines = context;
	if (!lines->with_meta)
		return 0;
	lines_add(lines, "member ", 7);
	lines_add_text(lines, member->key, "=");
	lines_add_text(lines, member->value, "\n");
	return 0;
}

MAYBE static struct reducer_sink lines_sink(struct lines *lines)
{
	return (struct reducer_sink){lines, lines_event, lines_member};
}

/* All that a file says, metadata and args included. */
MAYBE static struct lines lines_of(const char *path, struct reducer_read_report *report)
{
	struct lines lines = {.with_meta = true, .with_args = true};
	struct reducer_sink sink = lines_sink(&lines);
	lines_add(&lines, "", 0);
	assert_ok(reducer_xplane_read(path, &sink, report));
	return lines;
}

/* The same of bytes, events alone. */
MAYBE static struct lines lines_of_bytes(const void *bytes, size_t n, struct reducer_read_report *report)
{
	struct lines lines = {.with_args = true};
	struct reducer_sink sink = lines_sink(&lines);
	lines_add(&lines, "", 0);
	assert_ok(reducer_xplane_read_bytes(bytes, n, &sink, report));
	return lines;
}

MAYBE static const char *handed_xplane(int index)
{
	static const char *const names[] = {"traces/mi300_jax_conv.xplane.pb",
					    "traces/tf_gpu_multi_worker.xplane.pb"};
	const char *folder = test_data_folder();
	return folder ? test_path(folder, names[index]) : NULL;
}

#endif
