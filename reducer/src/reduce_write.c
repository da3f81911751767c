/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second sweep. What stays is fetched from the file by its place and written as it stands there, in its
 * order; then come the merged spans, track by track.
 *
 * From Chrome JSON to Chrome JSON the events are never parsed again (but where the file is damaged: what a damaged
 * event says may depend on what stands around it), and from XPlane to XPlane the file is copied
 * but for the events that go. For other pairs of formats the file is read again and events are told by their
 * number.
 */
#include "reduce_inside.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <reducer/chrome.h>
#include <reducer/chrome_writer.h>
#include <reducer/marks.h>
#include <reducer/trace.h>
#include <reducer/xplane_filter.h>

#include "chrome_event.h"
#include "chrome_writer_inside.h"

enum { PLACE_BYTES_BITS = 24, DIGITS = 48 };

/* Where events go: one of these. */
struct output {
	struct reducer_reduce *reduce;
	struct reducer_chrome_writer *chrome;
	struct reducer_xplane_filter *filter; /* takes what is new; what stays never leaves the file */
	struct reducer_writer *other;
	bool as_chrome;  /* Chrome to Chrome: by place */
	bool as_written; /* and with the args: as a text */
	uint32_t *event; /* those that stay */
	size_t n_events;
	struct chrome_event found;
	struct buffer text;
	struct buffer track_text; /* of `track` */
	uint32_t track;
	bool has_track_text;
	uint32_t next; /* reading again: the number of the next event */
	size_t at;     /* of `event` */
};

static int write_event(struct output *out, const struct reducer_event *event)
{
	if (out->filter)
		return reducer_xplane_filter_add(out->filter, event);
	return out->chrome ? reducer_chrome_writer_event(out->chrome, event)
			   : reducer_writer_event(out->other, event);
}

/* Lists what is to be fetched. */
static int list_events(struct output *out)
{
	struct reducer_reduce *r = out->reduce;
	out->event = malloc(((size_t)r->exact + 1) * sizeof(*out->event));
	if (!out->event)
		return -ENOMEM;
	for (uint32_t e = 0; e < r->col.count; e++)
		if (reduce_stays(r, e))
			out->event[out->n_events++] = e;
	return 0;
}

static int got_slice(void *context, size_t index, const char *data, size_t bytes)
{
	struct output *out = context;
	(void)index;
	if (out->as_written) {
		int result = reducer_chrome_writer_text(out->chrome, (struct reducer_text){data, bytes});
		if (result != -EBADMSG)
			return result;
	}
	const char *at = data;
	struct reducer_event event;
	if (chrome_event_scan(&out->found, &at, data + bytes, JSON_STRICT) != JSON_OK) {
		at = data;
		if (chrome_event_scan(&out->found, &at, data + bytes, JSON_LOOSE_FINAL) != JSON_OK)
			return out->found.failed ? out->found.failed : -ESTALE;
	}
	int result = chrome_event_map(&out->found, &event);
	return result < 0 ? result : write_event(out, &event);
}

/* Chrome to Chrome: by place. */
static int fetch_slices(struct output *out)
{
	const struct reducer_reduce *r = out->reduce;
	struct reducer_slice *slices = malloc((out->n_events + 1) * sizeof(*slices));
	if (!slices)
		return -ENOMEM;
	for (size_t i = 0; i < out->n_events; i++) {
		uint64_t place = r->col.place[out->event[i]];
		slices[i] = (struct reducer_slice){place >> PLACE_BYTES_BITS,
						   (uint32_t)(place & ((1u << PLACE_BYTES_BITS) - 1))};
	}
	int result = reducer_slices_read(r->path, r->points, slices, out->n_events,
					 r->options.threads ? r->options.threads : 2, got_slice, out);
	free(slices);
	return result;
}

static int again_event(void *context, const struct reducer_event *event)
{
	struct output *out = context;
	uint32_t e = out->next++;
	if (out->at == out->n_events || out->event[out->at] != e)
		return 0;
	out->at++;
	return write_event(out, event);
}

/* Any format to any: read again. */
static int read_again(struct output *out)
{
	struct reducer_reduce *r = out->reduce;
	struct reducer_sink sink = {out, again_event, NULL};
	struct reducer_read_report *report = malloc(sizeof(*report));
	if (!report)
		return -ENOMEM;
	int result = reducer_trace_read(r->path, r->format, &sink, report);
	free(report);
	if (result == 0 && out->next != r->col.count)
		result = -ESTALE;
	return result;
}

/* Decimal digits of a number of picoseconds that may be beyond int64. */
static void print_ps(char digits[DIGITS], __int128 ps)
{
	bool negative = ps < 0;
	unsigned __int128 left = negative ? (unsigned __int128)-ps : (unsigned __int128)ps;
	char *at = digits + DIGITS - 1;
	*at = '\0';
	do {
		*--at = (char)('0' + (int)(left % 10));
		left /= 10;
	} while (left);
	if (negative)
		*--at = '-';
	memmove(digits, at, strlen(at) + 1);
}

static void add_count(struct buffer *out, const char *key, uint64_t value)
{
	buffer_add_literal(out, ",\"");
	buffer_add_literal(out, key);
	buffer_add_literal(out, "\":");
	buffer_add_u64(out, value);
}

static void add_ps(struct buffer *out, const char *key, __int128 ps)
{
	char digits[DIGITS];
	print_ps(digits, ps);
	buffer_add_literal(out, ",\"");
	buffer_add_literal(out, key);
	buffer_add_literal(out, "\":\"");
	buffer_add_literal(out, digits);
	buffer_add_byte(out, '"');
}

/* The event that says that the trace is reduced, and how (reducer/marks.h). */
static int write_mark(struct output *out)
{
	static const char *const gone[REDUCER_GONE_COUNT] = {
		"merged_spans", "merged_instants", "merged_async", "counter_values", "flows_merged",
		"flows_one_end", "metadata_twice", "outside_window", "other_tracks"};
	const struct reducer_reduce *r = out->reduce;
	const __int128 zero = (__int128)r->zero_ns * 1000;
	struct buffer args = {0};
	buffer_add_literal(&args, "{\"version\":");
	buffer_add_u64(&args, REDUCER_MARK_VERSION);
	add_ps(&args, "bin_ps", r->bin_ps);
	add_ps(&args, "origin_ps", zero);
	add_count(&args, "events", r->col.count);
	for (int i = 0; i < REDUCER_GONE_COUNT; i++)
		if (r->gone[i])
			add_count(&args, gone[i], r->gone[i]);
	if (r->options.has_window) {
		add_ps(&args, "window_from_ps", zero + r->options.window_from_ps);
		add_ps(&args, "window_to_ps", zero + r->options.window_to_ps);
	}
	if (r->options.track_pattern) {
		buffer_add_literal(&args, ",\"tracks\":");
		json_quote(&args, (struct reducer_text){r->options.track_pattern, strlen(r->options.track_pattern)});
	}
	buffer_add_byte(&args, '}');
	struct reducer_event event = {.kind = DREC_META,
				      .args_flag = DREC_FLAG_ARGS_JSON,
				      .depth = DREC_DEPTH_UNKNOWN,
				      .name = {REDUCER_MARK_REDUCED, sizeof(REDUCER_MARK_REDUCED) - 1},
				      .args = {args.data, args.bytes}};
	int result = args.failed ? args.failed : write_event(out, &event);
	buffer_free(&args);
	return result;
}

/* Splits ps since zero into the trace's own ns and ps. */
static void set_time(const struct reducer_reduce *r, int64_t at, int64_t *ret_ns, uint16_t *ret_ps)
{
	int64_t ns = at / 1000, ps = at % 1000;
	if (ps < 0) {
		ps += 1000;
		ns--;
	}
	*ret_ns = r->zero_ns + ns;
	*ret_ps = (uint16_t)ps;
}

/* What the longest of them is called, as JSON; nothing where it is not known. */
static void add_longest(struct output *out, uint32_t event)
{
	const struct reducer_reduce *r = out->reduce;
	uint32_t name = r->col.name[event];
	if (r->col.bits[event] & BIT_MERGED) {
		const struct reduce_stands *stands = reduce_stands_of(r, event);
		name = stands && stands->longest_name != REDUCE_NONE ? stands->longest_name : name;
	}
	struct reducer_text text = reduce_name_text(&r->names, name);
	if (!text.data)
		return;
	buffer_add_literal(&out->text, ",\"driverec.longest\":");
	buffer_add_text(&out->text, text);
}

/* What all rectangles have in common. Texts of `args` stay in out->text until the next one. */
static void begin_rectangle(struct output *out, const struct reduce_rectangle *one, bool spans,
			    struct reducer_event *event)
{
	const struct reducer_reduce *r = out->reduce;
	struct buffer *args = &out->text;
	*event = (struct reducer_event){.args_flag = DREC_FLAG_ARGS_JSON,
					.depth = DREC_DEPTH_UNKNOWN,
					.has_time = 1,
					.name = {REDUCER_MARK_MERGED_NAME, sizeof(REDUCER_MARK_MERGED_NAME) - 1},
					.category = {REDUCER_MARK_MERGED, sizeof(REDUCER_MARK_MERGED) - 1},
					.group = reduce_track_group(&r->tracks, one->track)};
	set_time(r, one->from, &event->start_ns, &event->start_ps);
	buffer_clear(args);
	buffer_add_literal(args, REDUCER_MARK_MERGED_ARGS);
	buffer_add_u64(args, one->events);
	if (spans) {
		add_count(args, "driverec.sum_ps", (uint64_t)one->sum_ps);
		add_count(args, "driverec.longest_ps", (uint64_t)one->longest_ps);
		add_longest(out, one->longest);
	}
	buffer_add_byte(args, '}');
	event->args = (struct reducer_text){args->data, args->bytes};
}

/* The name that all have: as it was written, and unescaped for formats that need it so. */
static int set_name(struct output *out, const struct reduce_rectangle *one, struct reducer_event *event)
{
	struct reducer_text raw = reduce_name_text(&out->reduce->names, one->name);
	if (!one->one_name || !raw.data)
		return 0;
	event->name_raw = raw;
	event->name = (struct reducer_text){raw.data + 1, raw.bytes - 2};
	if (json_is_plain(event->name))
		return 0;
	buffer_clear(&out->found.name);
	json_unescape(&out->found.name, event->name);
	event->name = (struct reducer_text){out->found.name.data, out->found.name.bytes};
	return out->found.name.failed;
}

static int write_span_event(struct output *out, const struct reduce_rectangle *one)
{
	struct reducer_event event;
	begin_rectangle(out, one, true, &event);
	event.kind = DREC_SPAN;
	event.track = reduce_track_track(&out->reduce->tracks, one->track);
	event.has_duration = 1;
	event.duration_ns = (one->to - one->from) / 1000;
	event.duration_ps = (uint16_t)((one->to - one->from) % 1000);
	int result = set_name(out, one, &event);
	if (result == 0)
		result = out->text.failed;
	return result < 0 ? result : write_event(out, &event);
}

/* The part of a rectangle's text that all of its track share; none where that would not be valid JSON. */
static void begin_track(struct output *out, uint32_t track)
{
	const struct reduce_tracks *tracks = &out->reduce->tracks;
	struct reducer_text group = reduce_track_group(tracks, track), its = reduce_track_track(tracks, track);
	out->track = track;
	out->has_track_text = (!group.bytes || json_valid(group)) && (!its.bytes || json_valid(its));
	buffer_clear(&out->track_text);
	if (group.bytes) {
		buffer_add_literal(&out->track_text, ",\"pid\":");
		buffer_add_text(&out->track_text, group);
	}
	if (its.bytes) {
		buffer_add_literal(&out->track_text, ",\"tid\":");
		buffer_add_text(&out->track_text, its);
	}
	buffer_add_literal(&out->track_text, ",\"ts\":");
}

static void add_name(struct output *out, const struct reduce_rectangle *one)
{
	struct reducer_text raw = reduce_name_text(&out->reduce->names, one->name);
	if (!one->one_name || !raw.data)
		buffer_add_literal(&out->text, "\"" REDUCER_MARK_MERGED_NAME "\"");
	else
		buffer_add_text(&out->text, raw);
}

/* The same as write_span_event(), straight to text: there are many. */
static int write_span(struct output *out, const struct reduce_rectangle *one)
{
	struct buffer *text = &out->text;
	int64_t ns, length = one->to - one->from;
	uint16_t ps;
	if (!out->chrome)
		return write_span_event(out, one);
	if (out->track != one->track)
		begin_track(out, one->track);
	if (!out->has_track_text)
		return write_span_event(out, one);
	set_time(out->reduce, one->from, &ns, &ps);
	buffer_clear(text);
	buffer_add_literal(text, "{\"ph\":\"X\",\"cat\":\"" REDUCER_MARK_MERGED "\",\"name\":");
	add_name(out, one);
	buffer_add(text, out->track_text.data, out->track_text.bytes);
	buffer_add_us(text, ns, ps, 0);
	buffer_add_literal(text, ",\"dur\":");
	buffer_add_us(text, length / 1000, (uint16_t)(length % 1000), 0);
	buffer_add_literal(text, ",\"args\":" REDUCER_MARK_MERGED_ARGS);
	buffer_add_u64(text, one->events);
	add_count(text, "driverec.sum_ps", (uint64_t)one->sum_ps);
	add_count(text, "driverec.longest_ps", (uint64_t)one->longest_ps);
	add_longest(out, one->longest);
	buffer_add_literal(text, "}}");
	if (text->failed || out->track_text.failed)
		return -ENOMEM;
	return chrome_writer_valid_text(out->chrome, (struct reducer_text){text->data, text->bytes});
}

static int write_instant(struct output *out, const struct reduce_rectangle *one)
{
	struct reducer_event event;
	begin_rectangle(out, one, false, &event);
	event.kind = DREC_INSTANT;
	event.track = reduce_track_track(&out->reduce->tracks, one->track);
	event.extra = (struct reducer_text){"\"s\":\"t\"", 7};
	int result = set_name(out, one, &event);
	return result < 0 ? result : write_event(out, &event);
}

static int write_pair(struct output *out, const struct reduce_rectangle *one, size_t number)
{
	char id[64];
	struct reducer_event event;
	begin_rectangle(out, one, true, &event);
	event.kind = DREC_ASYNC_BEGIN;
	event.extra.bytes = (size_t)snprintf(id, sizeof(id), "\"id\":\"driverec.%zu\"", number);
	event.extra.data = id;
	int result = set_name(out, one, &event);
	if (result == 0)
		result = write_event(out, &event);
	if (result < 0)
		return result;
	event.kind = DREC_ASYNC_END;
	event.args = (struct reducer_text){NULL, 0};
	set_time(out->reduce, one->to, &event.start_ns, &event.start_ps);
	return write_event(out, &event);
}

static int write_rectangles(struct output *out)
{
	const struct reducer_reduce *r = out->reduce;
	int result = 0;
	for (size_t i = 0; i < r->spans.count && result == 0; i++)
		result = write_span(out, &r->spans.at[i]);
	for (size_t i = 0; i < r->instants.count && result == 0; i++)
		result = write_instant(out, &r->instants.at[i]);
	for (size_t i = 0; i < r->pairs.count && result == 0; i++)
		result = write_pair(out, &r->pairs.at[i], i);
	return result;
}

static int write_members(struct output *out)
{
	const struct reducer_member *members = out->reduce->members.at;
	int result = 0;
	for (size_t i = 0; i < out->reduce->members.count && result == 0; i++)
		result = out->chrome ? reducer_chrome_writer_member(out->chrome, &members[i])
				     : reducer_writer_member(out->other, &members[i]);
	return result;
}

static int open_output(struct output *out, int fd, enum reducer_format format,
		       const struct reducer_writer_options *options)
{
	const struct reducer_reduce *r = out->reduce;
	struct reducer_writer_options base = options ? *options : (struct reducer_writer_options){0};
	if (format != REDUCER_FORMAT_CHROME) {
		base.has_base = r->read.has_base;
		base.base_unix_ns = r->read.base_unix_ns;
		return reducer_writer_new(fd, format, &base, NULL, &out->other);
	}
	struct reducer_chrome_writer_options chrome = {.array_root = r->read.array_root,
						       .gzip_level = base.gzip_level,
						       .strip_args = base.strip_args,
						       .threaded = 1};
	out->as_chrome = r->format == REDUCER_FORMAT_CHROME;
	out->as_written = out->as_chrome && !base.strip_args;
	return reducer_chrome_writer_new(fd, &chrome, &out->chrome);
}

static int finish_output(struct output *out, struct reducer_reduce_report *report)
{
	int result = out->chrome ? reducer_chrome_writer_finish(out->chrome) : reducer_writer_finish(out->other);
	if (result == 0)
		report->output_bytes = out->chrome ? reducer_chrome_writer_stats(out->chrome)->file_bytes
						   : reducer_writer_stats(out->other)->file_bytes;
	return result;
}

static void close_output(struct output *out)
{
	reducer_chrome_writer_free(out->chrome);
	reducer_writer_free(out->other);
	reducer_xplane_filter_free(out->filter);
	chrome_event_free(&out->found);
	buffer_free(&out->text);
	buffer_free(&out->track_text);
	free(out->event);
}

/* XPlane to XPlane: metadata is no event there. */
static int write_filtered(struct output *out, int fd, struct reducer_reduce_report *report)
{
	const struct reducer_reduce *r = out->reduce;
	uint8_t *keep = calloc((size_t)r->col.count / 8 + 1, 1);
	uint64_t n_events = 0;
	if (!keep)
		return -ENOMEM;
	for (uint32_t e = 0; e < r->col.count; e++) {
		if (reduce_kind_of(r->col.bits[e]) == KIND_META)
			continue;
		if (reduce_stays(r, e))
			keep[n_events / 8] |= (uint8_t)(1u << n_events % 8);
		n_events++;
	}
	int result = write_mark(out);
	if (result == 0)
		result = write_rectangles(out);
	if (result == 0)
		result = reducer_xplane_filter_write(out->filter, keep, n_events, fd, &report->output_bytes);
	free(keep);
	return result;
}

static int write_all(struct output *out, int fd, enum reducer_format format,
		     const struct reducer_writer_options *options, struct reducer_reduce_report *report)
{
	int result = open_output(out, fd, format, options);
	if (result == 0)
		result = list_events(out);
	if (result == 0)
		result = write_members(out);
	if (result == 0)
		result = write_mark(out);
	if (result == 0)
		result = out->as_chrome && out->reduce->read.damaged == 0 ? fetch_slices(out) : read_again(out);
	if (result == 0)
		result = write_rectangles(out);
	return result < 0 ? result : finish_output(out, report);
}

/* A damaged XPlane cannot be filtered; it is read and written anew. */
static bool can_filter(struct output *out, enum reducer_format format, const struct reducer_writer_options *options)
{
	const struct reducer_reduce *r = out->reduce;
	struct reducer_problem problem;
	return format == REDUCER_FORMAT_XPLANE && r->format == REDUCER_FORMAT_XPLANE &&
	       !(options && options->strip_args) && r->read.damaged == 0 &&
	       reducer_xplane_filter_open(r->path, &out->filter, &problem) == 0;
}

int reducer_reduce_write(struct reducer_reduce *r, int fd, enum reducer_format format,
			 const struct reducer_writer_options *options, struct reducer_reduce_report *report)
{
	struct output out = {.reduce = r, .track = REDUCE_NONE};
	int result = can_filter(&out, format, options) ? write_filtered(&out, fd, report)
						       : write_all(&out, fd, format, options, report);
	close_output(&out);
	return result;
}
