/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The streaming part of the Chrome reader: which root, where events and members begin and end, and how to go
 * on after damage.
 *
 * Bytes gather in one buffer. step() looks at its beginning and either uses bytes up or says that it needs
 * more. An item (event or member value) that is not whole yet is looked at again when a scan by brackets says
 * that it is complete, or when twice as much of it is there: so the cost stays linear however small the
 * pieces are, and a live event is delivered with its last byte.
 *
 * Damage. An event that cannot be read strictly is read with unescaped quotes allowed. If that fails too,
 * bytes are skipped up to the next `{` that stands where an event can (after a comma, bracket, brace or line
 * end) and turns out to be an event with `ph`, or up to what can only be the end of the events.
 */
#include <reducer/chrome.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chrome_state.h"

void chrome_note(struct reducer_read_report *report, uint64_t offset, const char *format, ...)
{
	if (report->n_problems == REDUCER_PROBLEMS_MAX)
		return;
	struct reducer_problem *problem = &report->problem[report->n_problems++];
	va_list args;
	va_start(args, format);
	problem->offset = offset;
	vsnprintf(problem->what, sizeof(problem->what), format, args);
	va_end(args);
}

int chrome_refuse(struct reducer_chrome *r, uint64_t offset, const char *format, ...)
{
	struct reducer_read_report *report = r->report;
	if (report->n_problems == REDUCER_PROBLEMS_MAX)
		report->n_problems--;
	struct reducer_problem *problem = &report->problem[report->n_problems++];
	va_list args;
	va_start(args, format);
	problem->offset = offset;
	vsnprintf(problem->what, sizeof(problem->what), format, args);
	va_end(args);
	return -EBADMSG;
}

static int deliver_event(struct reducer_chrome *r, const char *begin, const char *end)
{
	struct reducer_event event;
	int result = chrome_event_map(&r->found, &event);
	if (result < 0)
		return result;
	event.offset = chrome_offset_of(r, begin);
	event.bytes = (uint32_t)(end - begin); /* at most REDUCER_EVENT_BYTES_MAX and the buffer's room */
	if (r->found.loose) {
		r->report->damaged++;
		chrome_note(r->report, chrome_offset_of(r, begin),
			    "quotes inside a text are not escaped; the event was read as meant");
	}
	if (r->found.doubled && !r->doubled_told) {
		r->doubled_told = true;
		chrome_note(r->report, chrome_offset_of(r, begin),
			    "a member stands twice in an event; the last one counts");
	}
	r->report->damaged += r->found.doubled;
	r->report->events++;
	r->had_phase |= r->found.at[FIELD_PH] != 0;
	return chrome_sink_said(r, r->sink.event ? r->sink.event(r->sink.context, &event) : 0);
}

static void start_skipping(struct reducer_chrome *r, const char *p, const char *what)
{
	if (r->state != STATE_DAMAGED) {
		r->report->damaged++;
		chrome_note(r->report, chrome_offset_of(r, p), "%s; skipped up to the next whole one", what);
		r->events_state = r->state;
		r->state = STATE_DAMAGED;
		r->in_damage = true;
	}
	r->before = *p;
	r->report->skipped_bytes++;
	chrome_use_up_to(r, p + 1);
}

/*
 * The object at p. Returns 1 if it was used up (delivered, or skipping has begun), 0 to wait, or what the
 * sink returned. While skipping, only an event with `ph` is accepted.
 */
static int read_event(struct reducer_chrome *r, const char *p)
{
	const char *at = p, *end = chrome_reach(r, p, r->limit.event_bytes_max);
	bool skipping = r->state == STATE_DAMAGED;
	const char *what = "an event cannot be read";
	if (!chrome_worth_reading(r))
		return 0;
	enum json_end result = chrome_event_scan(&r->found, &at, end, JSON_STRICT);
	bool too_big = end - p > (ptrdiff_t)r->limit.event_bytes_max;
	if (result == JSON_MORE && !r->final && !too_big)
		return chrome_wait_for_more(r);
	if (result == JSON_MORE)
		what = too_big ? "an event is larger than the limit" : "the text ends inside an event";
	if (result != JSON_OK && !skipping) {
		at = p;
		end = chrome_reach(r, p, LOOSE_WAIT_BYTES);
		result = chrome_event_scan(&r->found, &at, end, chrome_how_loose(r, end));
		if (result == JSON_MORE && !r->final && end - p <= LOOSE_WAIT_BYTES)
			return chrome_wait_for_more(r);
	}
	if (r->found.failed)
		return r->found.failed;
	if (result != JSON_OK || (skipping && !r->found.at[FIELD_PH])) {
		start_skipping(r, p, what);
		return 1;
	}
	if (skipping)
		r->state = r->events_state;
	r->in_damage = false;
	chrome_shapes_learn(&r->shapes, &r->found, p, at);
	int value = r->found.n_members ? deliver_event(r, p, at) : 0;
	chrome_use_up_to(r, at);
	return value ? value : 1;
}

/* Delivers events from *p on as long as they are written as others before were; *p is put where that ends.
 * 0, or what the sink returned. */
static int read_alike(struct reducer_chrome *r, const char **p)
{
	const char *end = r->data + r->bytes, *at = *p;
	struct reducer_event event;
	while (at < end && *at == '{') {
		const char *begin = at;
		if (!chrome_fast_event(&r->shapes, &r->found, &at, end, &event) ||
		    (size_t)(at - begin) > r->limit.event_bytes_max)
			break;
		event.offset = chrome_offset_of(r, begin);
		event.bytes = (uint32_t)(at - begin);
		r->report->events++;
		r->had_elements = r->had_phase = true;
		r->in_damage = false;
		*p = at = chrome_skip_between(at, end);
		int value = r->sink.event ? r->sink.event(r->sink.context, &event) : 0;
		if (value)
			return chrome_sink_said(r, value);
	}
	return 0;
}

static int step_events(struct reducer_chrome *r)
{
	const char *end = r->data + r->bytes, *p = chrome_skip_between(r->data + r->at, end);
	if (r->retry_bytes == 0) {
		int value = read_alike(r, &p);
		if (value)
			return value;
	}
	if (p != r->data + r->at)
		chrome_use_up_to(r, p);
	if (p == end)
		return 0;
	if (*p == '{') {
		r->had_elements = true;
		return read_event(r, p);
	}
	if (*p == ']' && r->state == STATE_EVENTS) {
		chrome_use_up_to(r, p + 1);
		r->state = r->array_root ? STATE_DONE : STATE_OBJECT;
		return 1;
	}
	if (*p == '}' && r->state == STATE_EVENTS && !r->array_root) {
		r->report->damaged++;
		chrome_note(r->report, chrome_offset_of(r, p), "the events are not ended by `]`");
		r->state = STATE_OBJECT;
		return 1;
	}
	start_skipping(r, p, "this is no event");
	return 1;
}

static bool is_known_member(struct reducer_text key)
{
	static const char *const known[] = {"traceName",
					    "displayTimeUnit",
					    "baseTimeNanoseconds",
					    "distributedInfo",
					    "schemaVersion",
					    "deviceProperties",
					    "otherData",
					    "stackFrames",
					    "samples",
					    "systemTraceEvents",
					    "metadata",
					    "trace_id",
					    "INFO",
					    "WARNING",
					    "ERROR"};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (text_is(key, known[i]))
			return true;
	return false;
}

/* Whether `]` at p, after a `}`, ends the events: the root's end or a member that stands in roots follows. */
static enum json_end events_end_here(const struct reducer_chrome *r, const char *p, const char *end)
{
	if (r->events_state == STATE_LINES || (r->before != '}' && r->before != ','))
		return JSON_BAD;
	p = json_skip_space(p + 1, end);
	if (p == end)
		return r->final && r->array_root ? JSON_OK : JSON_MORE;
	if (r->array_root)
		return JSON_BAD;
	if (*p == '}') {
		p = json_skip_space(p + 1, end);
		return p < end ? JSON_BAD : r->final ? JSON_OK : JSON_MORE;
	}
	if (*p != ',')
		return JSON_BAD;
	p = json_skip_space(p + 1, end);
	if (p == end)
		return JSON_MORE;
	const char *key = p + 1;
	if (*p != '"')
		return JSON_BAD;
	const char *close = memchr(key, '"', (size_t)(end - key));
	if (!close)
		return end - key > SEEN_BYTES ? JSON_BAD : JSON_MORE;
	return is_known_member((struct reducer_text){key, (size_t)(close - key)}) ? JSON_OK : JSON_BAD;
}

static bool event_may_follow(char before)
{
	return before == ',' || before == '}' || before == '[' || before == ']' || before == 0;
}

static int step_damaged(struct reducer_chrome *r)
{
	const char *begin = r->data + r->at, *end = r->data + r->bytes, *p = begin;
	for (; p < end; p++) {
		if (*p == ' ' || *p == '\t' || *p == '\r')
			continue;
		if (*p == '\n') {
			if (r->events_state == STATE_LINES)
				r->before = 0;
			continue;
		}
		if (*p == '{' && event_may_follow(r->before))
			break;
		if (*p == ']') {
			enum json_end result = events_end_here(r, p, end);
			if (result == JSON_OK || (result == JSON_MORE && !r->final))
				break;
		}
		r->before = *p;
	}
	r->report->skipped_bytes += (uint64_t)(p - begin);
	if (p != begin)
		chrome_use_up_to(r, p);
	if (p == end)
		return 0;
	if (*p == '{')
		return read_event(r, p);
	if (events_end_here(r, p, end) != JSON_OK)
		return 0;
	r->state = STATE_EVENTS;
	return 1;
}

static int step_done(struct reducer_chrome *r)
{
	const char *p = r->data + r->at, *end = r->data + r->bytes;
	const char *next = r->after_end ? p : json_skip_space(p, end);
	while (next < end && *next == 0 && !r->after_end)
		next = json_skip_space(next + 1, end);
	if (next < end) {
		if (!r->in_damage) {
			r->report->damaged++;
			chrome_note(r->report, chrome_offset_of(r, next),
				    "bytes after the end of the trace are not read");
		}
		r->in_damage = r->after_end = true;
		r->report->skipped_bytes += (uint64_t)(end - next);
	}
	chrome_use_up_to(r, end);
	return 0;
}

static int step(struct reducer_chrome *r)
{
	switch (r->state) {
	case STATE_START:
		return chrome_step_start(r);
	case STATE_OBJECT:
		return chrome_step_object(r);
	case STATE_VALUE:
		return chrome_step_value(r);
	case STATE_FIND:
		return chrome_step_find(r);
	case STATE_EVENTS:
	case STATE_LINES:
		return step_events(r);
	case STATE_DAMAGED:
		return step_damaged(r);
	case STATE_DONE:
		return step_done(r);
	}
	return -EINVAL;
}

/* Steps until more bytes are needed. */
static int run(struct reducer_chrome *r)
{
	int result;
	do
		result = step(r);
	while (result == 1);
	return r->stop_value ? r->stop_value : result;
}

bool chrome_reader_between_events(const struct reducer_chrome *r)
{
	return r->at == r->bytes && (r->state == STATE_EVENTS || r->state == STATE_LINES);
}

size_t chrome_reader_event_bytes_max(const struct reducer_chrome *r)
{
	return r->limit.event_bytes_max;
}

int chrome_reader_take(struct reducer_chrome *r, const struct chrome_batch *batch, size_t bytes)
{
	r->report->text_bytes += bytes;
	r->base += r->bytes + bytes;
	r->at = r->bytes = 0;
	if (batch->n == 0)
		return 0;
	r->had_elements = r->had_phase = true;
	r->in_damage = false;
	for (size_t i = 0; i < batch->n; i++) {
		r->report->events++;
		int value = r->sink.event ? r->sink.event(r->sink.context, &batch->event[i]) : 0;
		if (value)
			return value;
	}
	return 0;
}

/* Room for at least one more byte at the buffer's end. */
static int make_room(struct reducer_chrome *r)
{
	if (r->at == r->bytes) {
		r->base += r->bytes;
		r->at = r->bytes = 0;
	} else if (r->at > 0 && r->bytes == r->room) {
		memmove(r->data, r->data + r->at, r->bytes - r->at);
		r->base += r->at;
		r->bytes -= r->at;
		r->at = 0;
	}
	if (r->bytes < r->room)
		return 0;
	size_t room = r->room ? r->room * 2 : ROOM_MIN;
	char *data = realloc(r->data, room);
	if (!data)
		return -ENOMEM;
	r->data = data;
	r->room = room;
	return 0;
}

int reducer_chrome_new(const struct reducer_sink *sink, const struct reducer_chrome_options *options,
		       struct reducer_read_report *report, struct reducer_chrome **ret_reader)
{
	struct reducer_chrome *r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->sink = *sink;
	if (options)
		r->limit = *options;
	if (!r->limit.event_bytes_max)
		r->limit.event_bytes_max = REDUCER_EVENT_BYTES_MAX;
	if (!r->limit.member_bytes_max)
		r->limit.member_bytes_max = REDUCER_MEMBER_BYTES_MAX;
	r->report = report;
	*report = (struct reducer_read_report){0};
	*ret_reader = r;
	return 0;
}

int reducer_chrome_feed(struct reducer_chrome *r, const void *bytes, size_t count)
{
	const char *from = bytes;
	r->report->text_bytes += count;
	while (count > 0) {
		int result = make_room(r);
		if (result < 0)
			return result;
		size_t some = r->room - r->bytes < count ? r->room - r->bytes : count;
		memcpy(r->data + r->bytes, from, some);
		r->bytes += some;
		from += some;
		count -= some;
		result = run(r);
		if (result)
			return result;
	}
	return 0;
}

/* Keeps in the reader's own buffer, which is empty, what is not used up yet. */
static int keep_rest(struct reducer_chrome *r, const char *rest, size_t bytes)
{
	size_t room = r->room ? r->room : ROOM_MIN;
	while (room < bytes)
		room *= 2;
	char *data = room == r->room ? r->data : realloc(r->data, room);
	if (!data)
		return -ENOMEM;
	r->data = data;
	r->room = room;
	memcpy(data, rest, bytes);
	r->bytes = bytes;
	return 0;
}

int chrome_reader_feed_block(struct reducer_chrome *r, char *text, size_t bytes)
{
	if (r->at != r->bytes)
		return reducer_chrome_feed(r, text, bytes);
	char *own = r->data;
	size_t room = r->room;
	r->report->text_bytes += bytes;
	r->base += r->bytes;
	r->data = text;
	r->at = 0;
	r->bytes = r->room = bytes;
	int result = run(r);
	size_t used = r->at;
	r->data = own;
	r->room = room;
	r->base += used;
	r->at = r->bytes = 0;
	return result || used == bytes ? result : keep_rest(r, text + used, bytes - used);
}

static int judge(struct reducer_chrome *r)
{
	uint64_t end = r->report->text_bytes;
	switch (r->state) {
	case STATE_START:
		return chrome_refuse(
			r, end, r->report->text_bytes ? "no JSON: nothing but space" : "the file is empty");
	case STATE_OBJECT:
	case STATE_VALUE:
	case STATE_FIND:
	case STATE_DONE:
		if (!r->array_root && !r->had_events)
			return chrome_refuse(
				r, 0,
				strcmp(r->seen, "\"traceEvents\"") == 0
					? "a JSON object whose traceEvents are no array%.0s%.0s: not a "
					  "Chrome trace"
					: "a JSON object without traceEvents%s%s: not a Chrome trace",
				r->seen[0] ? "; it has " : "", r->seen);
		if (r->state != STATE_DONE) {
			r->report->damaged++;
			chrome_note(r->report, end, "the text ends inside the root object");
		}
		break;
	case STATE_EVENTS:
	case STATE_LINES:
	case STATE_DAMAGED:
		if (!r->array_root && r->had_events && !r->in_damage) {
			r->report->damaged++;
			chrome_note(r->report, end, "the text ends inside traceEvents");
		}
		break;
	}
	if (!r->had_phase && (r->had_elements || r->report->damaged) && !r->had_events)
		return chrome_refuse(r, 0, "JSON objects without `ph`: not a Chrome trace");
	return 0;
}

int reducer_chrome_finish(struct reducer_chrome *r)
{
	r->final = true;
	int result = r->data ? run(r) : 0;
	return result ? result : judge(r);
}

void reducer_chrome_free(struct reducer_chrome *r)
{
	if (!r)
		return;
	chrome_event_free(&r->found);
	chrome_shapes_free(&r->shapes);
	buffer_free(&r->key);
	free(r->data);
	free(r);
}

/* Unpacks straight into the reader's buffer. */
static int read_alone(struct reducer_chrome *r, struct reducer_input *input)
{
	for (;;) {
		int result = make_room(r);
		if (result < 0)
			return result;
		int64_t got = reducer_input_read(input, r->data + r->bytes, r->room - r->bytes);
		if (got < 0)
			return (int)got;
		if (got == 0)
			return 0;
		r->bytes += (size_t)got;
		r->report->text_bytes += (uint64_t)got;
		result = run(r);
		if (result)
			return result;
	}
}

static int read_all(struct reducer_chrome *r, struct reducer_input *input, unsigned threads)
{
	int result = threads > 1 ? chrome_blocks_read(r, input, threads) : read_alone(r, input);
	if (result)
		return result;
	const struct reducer_problem *cut = reducer_input_problem(input);
	if (cut) {
		r->report->damaged++;
		chrome_note(r->report, cut->offset, "%s", cut->what);
	}
	return reducer_chrome_finish(r);
}

int reducer_chrome_read(struct reducer_input *input, const struct reducer_sink *sink,
			const struct reducer_chrome_options *options, struct reducer_read_report *report)
{
	struct reducer_chrome *r;
	int result = reducer_chrome_new(sink, options, report, &r);
	if (result < 0)
		return result;
	result = read_all(r, input, options ? options->threads : 1);
	reducer_chrome_free(r);
	return result;
}
