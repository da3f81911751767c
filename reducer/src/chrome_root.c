/* SPDX-License-Identifier: Apache-2.0 */
/* The root of a Chrome trace: its kind, and the members around the events, damaged or not. */
#include "chrome_state.h"

#include <stdio.h>
#include <string.h>

#include "decimal.h"

/* ---- members ---- */

/* The key of the member that begins at `offset`; once, however often it is looked at. */
static void remember_key(struct reducer_chrome *r, struct reducer_text key, uint64_t offset)
{
	size_t used = strlen(r->seen);
	if (used && r->seen_at == offset)
		return;
	r->seen_at = offset;
	if (used + key.bytes + 5 > sizeof(r->seen) || !json_is_plain(key))
		return;
	snprintf(r->seen + used, sizeof(r->seen) - used, "%s\"%.*s\"", used ? ", " : "", (int)key.bytes,
		 key.data);
}

static int deliver_member(struct reducer_chrome *r, struct reducer_text key, struct reducer_text value)
{
	struct reducer_read_report *report = r->report;
	if (text_is(key, "baseTimeNanoseconds")) {
		struct reducer_text number = value;
		if (number.bytes >= 2 && *number.data == '"')
			number = (struct reducer_text){value.data + 1, value.bytes - 2};
		report->has_base = decimal_i64(number, &report->base_unix_ns);
	}
	struct reducer_member member = {key, value};
	return chrome_sink_said(r, r->sink.member ? r->sink.member(r->sink.context, &member) : 0);
}

/* Goes on at the next place that looks like a member, since what stands at p cannot be read. */
static int damaged_root(struct reducer_chrome *r, const char *p)
{
	r->report->damaged++;
	chrome_note(r->report, chrome_offset_of(r, p),
		    "a top-level member cannot be read; skipped up to the next one");
	r->state = STATE_FIND;
	r->report->skipped_bytes++;
	chrome_use_up_to(r, p + 1);
	return 1;
}

/* What follows a member's value shows whether the value was read rightly. */
static enum json_end value_ends_well(const struct reducer_chrome *r, const char *p, const char *end)
{
	p = json_skip_space(p, end);
	if (p == end)
		return r->final ? JSON_OK : JSON_MORE;
	return *p == ',' || *p == '}' || *p == '"' ? JSON_OK : JSON_BAD;
}

/* The value is passed over, and so is the rest of what is no container. */
static int leave_out_member(struct reducer_chrome *r, struct reducer_text key, const char *value,
			    const char *begin)
{
	r->report->damaged++;
	chrome_note(r->report, chrome_offset_of(r, begin),
		    "member \"%.*s\" is larger than %zu bytes; left out",
		    key.bytes > 64 ? 64 : (int)key.bytes, key.data, r->limit.member_bytes_max);
	r->state = *value == '{' || *value == '[' ? STATE_VALUE : STATE_FIND;
	chrome_use_up_to(r, value);
	return 1;
}

/* A text whose quotes are not escaped, as it must have been meant. 1, 0 to wait, or an error. */
static int read_loose_text(struct reducer_chrome *r, struct reducer_text key, const char *value,
			   const char *begin)
{
	const char *end = chrome_reach(r, value, LOOSE_WAIT_BYTES), *p = value;
	enum json_end result = *value == '"' ? json_value(&p, end, chrome_how_loose(r, end)) : JSON_BAD;
	if (result == JSON_MORE && !r->final && end - value <= LOOSE_WAIT_BYTES)
		return chrome_wait_for_more(r);
	if (result != JSON_OK)
		return damaged_root(r, begin);
	r->report->damaged++;
	chrome_note(r->report, chrome_offset_of(r, value),
		    "quotes inside a text are not escaped; it was read as meant");
	struct buffer fixed = {0};
	json_quote(&fixed, (struct reducer_text){value + 1, (size_t)(p - value) - 2});
	int sunk = fixed.failed ? fixed.failed
				: deliver_member(r, key, (struct reducer_text){fixed.data, fixed.bytes});
	buffer_free(&fixed);
	chrome_use_up_to(r, p);
	return sunk ? sunk : 1;
}

/* The member's value begins at `value`; `*key` is undone into r->key. 1, 0 to wait, or an error. */
static int read_value(struct reducer_chrome *r, struct reducer_text key, const char *value, const char *begin)
{
	const char *p = value, *end = chrome_reach(r, value, r->limit.member_bytes_max);
	enum json_end result = json_value(&p, end, JSON_STRICT);
	if (result == JSON_MORE && end - value > (ptrdiff_t)r->limit.member_bytes_max)
		return leave_out_member(r, key, value, begin);
	if (result == JSON_OK)
		result = value_ends_well(r, p, r->data + r->bytes);
	if (result == JSON_MORE && !r->final)
		return chrome_wait_for_more(r);
	if (result != JSON_OK)
		return read_loose_text(r, key, value, begin);
	int sunk = deliver_member(r, key, (struct reducer_text){value, (size_t)(p - value)});
	chrome_use_up_to(r, p);
	return sunk ? sunk : 1;
}

static int read_member(struct reducer_chrome *r, const char *begin)
{
	const char *p = begin + 1, *end = chrome_reach(r, begin, ROOM_MIN);
	if (!chrome_worth_reading(r))
		return 0;
	enum json_end result = json_string(&p, end);
	if (result == JSON_MORE)
		return r->final || end - begin > ROOM_MIN ? damaged_root(r, begin) : chrome_wait_for_more(r);
	end = r->data + r->bytes;
	buffer_clear(&r->key);
	json_unescape(&r->key, (struct reducer_text){begin + 1, (size_t)(p - begin) - 2});
	if (r->key.failed)
		return r->key.failed;
	struct reducer_text key = {r->key.data, r->key.bytes};
	p = json_skip_space(p, end);
	if (p < end && *p == ':')
		p = json_skip_space(p + 1, end);
	else if (p < end)
		return damaged_root(r, begin);
	if (p == end)
		return r->final ? damaged_root(r, begin) : chrome_wait_for_more(r);
	if (text_is(key, "rocprofiler-sdk-tool"))
		return chrome_refuse(
			r, chrome_offset_of(r, begin),
			"a JSON object without traceEvents, beginning with "
			"\"rocprofiler-sdk-tool\": this is rocprofiler output, not a Chrome trace");
	remember_key(r, key, chrome_offset_of(r, begin));
	if (*p == '[' && text_is(key, "traceEvents")) {
		r->state = STATE_EVENTS;
		r->had_events = true;
		chrome_use_up_to(r, p + 1);
		return 1;
	}
	return read_value(r, key, p, begin);
}

int chrome_step_object(struct reducer_chrome *r)
{
	const char *p = r->data + r->at, *end = r->data + r->bytes;
	while (p < end && (*p == ' ' || *p == '\n' || *p == ',' || *p == '\r' || *p == '\t'))
		p++;
	if (p != r->data + r->at)
		chrome_use_up_to(r, p);
	if (p == end)
		return 0;
	if (*p == '"')
		return read_member(r, p);
	if (*p != '}')
		return damaged_root(r, p);
	chrome_use_up_to(r, p + 1);
	r->state = STATE_DONE;
	return 1;
}

int chrome_step_value(struct reducer_chrome *r)
{
	const char *p = r->data + r->at, *end = r->data + r->bytes;
	const char *past = json_scan(&r->scan, p, end);
	r->report->skipped_bytes += (uint64_t)((past ? past : end) - p);
	struct json_scan scan = r->scan;
	chrome_use_up_to(r, past ? past : end);
	if (!past) {
		r->scan = scan;
		return 0;
	}
	r->state = STATE_OBJECT;
	return 1;
}

/* Whether at p (a comma) a member of the root begins: a key of some length, a colon. */
static enum json_end root_member_at(const char *p, const char *end)
{
	p = json_skip_space(p + 1, end);
	if (p == end)
		return JSON_MORE;
	if (*p != '"')
		return JSON_BAD;
	size_t left = (size_t)(end - p - 1);
	const char *close = memchr(p + 1, '"', left < SEEN_BYTES ? left : SEEN_BYTES);
	if (!close)
		return left < SEEN_BYTES ? JSON_MORE : JSON_BAD;
	p = json_skip_space(close + 1, end);
	if (p == end)
		return JSON_MORE;
	return *p == ':' ? JSON_OK : JSON_BAD;
}

int chrome_step_find(struct reducer_chrome *r)
{
	const char *begin = r->data + r->at, *end = r->data + r->bytes, *p = begin;
	enum json_end result = JSON_BAD;
	for (;;) {
		const char *comma = memchr(p, ',', (size_t)(end - p));
		p = comma ? comma : end;
		if (!comma)
			break;
		result = root_member_at(p, end);
		if (result == JSON_OK || (result == JSON_MORE && !r->final))
			break;
		p++;
	}
	r->report->skipped_bytes += (uint64_t)(p - begin);
	if (p != begin)
		chrome_use_up_to(r, p);
	if (p == end || result != JSON_OK)
		return 0;
	r->state = STATE_OBJECT;
	return 1;
}

/* ---- the start ---- */

/*
 * Whether the object at p is the root of a trace or the first of many events: JSON_OK for an event. Members
 * that stand in events alone leave it open, `ph` and traceEvents decide, any other member makes it a root.
 */
static enum json_end is_event_line(const char *p, const char *end)
{
	p++;
	for (;;) {
		while (p < end && (*p == ' ' || *p == '\n' || *p == ',' || *p == '\r' || *p == '\t'))
			p++;
		if (p == end)
			return JSON_MORE;
		if (*p == '}')
			return JSON_OK;
		const char *key = p;
		if (*p++ != '"')
			return JSON_BAD;
		if (json_string(&p, end) != JSON_OK)
			return JSON_MORE;
		struct reducer_text text = {key, (size_t)(p - key)};
		enum chrome_field field = chrome_field_of(text);
		if (field == FIELD_PH)
			return JSON_OK;
		if (field == FIELD_OTHER && !text_is(text, "\"s\"") && !text_is(text, "\"bp\"") &&
		    !text_is(text, "\"tts\"") && !text_is(text, "\"tdur\"") && !text_is(text, "\"id2\""))
			return JSON_BAD;
		p = json_skip_space(p, end);
		if (p == end)
			return JSON_MORE;
		if (*p++ != ':')
			return JSON_BAD;
		p = json_skip_space(p, end);
		enum json_end result = json_value(&p, end, JSON_STRICT);
		if (result != JSON_OK)
			return result;
	}
}

static int start_with_object(struct reducer_chrome *r, const char *p)
{
	const char *end = chrome_reach(r, p, r->limit.event_bytes_max);
	if (!chrome_worth_reading(r))
		return 0;
	enum json_end result = is_event_line(p, end);
	if (result == JSON_MORE && !r->final && end - p <= (ptrdiff_t)r->limit.event_bytes_max)
		return chrome_wait_for_more(r);
	if (result == JSON_OK) {
		r->state = STATE_LINES;
		chrome_use_up_to(r, p);
	} else {
		r->state = STATE_OBJECT;
		chrome_use_up_to(r, p + 1);
	}
	return 1;
}

static int refuse_start(struct reducer_chrome *r, const char *p)
{
	unsigned char first = (unsigned char)*p;
	if (first == 0x0a || first == 0x0d || first < 0x20)
		return chrome_refuse(r, chrome_offset_of(r, p), "not JSON: binary data (first byte 0x%02x)",
				     first);
	if (first >= 0xfe || first == 0)
		return chrome_refuse(r, chrome_offset_of(r, p),
				     "not UTF-8: first byte 0x%02x (UTF-16 is not read)", first);
	if (first >= 0x7f)
		return chrome_refuse(r, chrome_offset_of(r, p), "not JSON: begins with byte 0x%02x", first);
	return chrome_refuse(r, chrome_offset_of(r, p),
			     "not a Chrome trace: begins with '%c', not with '{' or '['", first);
}

int chrome_step_start(struct reducer_chrome *r)
{
	const char *end = r->data + r->bytes, *p = r->data + r->at;
	if (r->base + r->at == 0 && p < end && (unsigned char)*p == 0xef) {
		if (end - p < 3 && !r->final)
			return 0;
		if (end - p >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
			p += 3;
	}
	p = json_skip_space(p, end);
	if (p != r->data + r->at)
		chrome_use_up_to(r, p);
	if (p == end)
		return 0;
	if (*p == '{')
		return start_with_object(r, p);
	if (*p != '[')
		return refuse_start(r, p);
	const char *next = json_skip_space(p + 1, end);
	if (next == end && !r->final)
		return 0;
	if (next < end && *next != '{' && *next != ']' && *next != ',')
		return chrome_refuse(r, chrome_offset_of(r, next), "a JSON array, but not of trace events");
	r->report->array_root = 1;
	r->array_root = true;
	r->state = STATE_EVENTS;
	chrome_use_up_to(r, p + 1);
	return 1;
}
