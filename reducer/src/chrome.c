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

#include "chrome_event.h"
#include "chrome_inside.h"
#include "decimal.h"
#include "text.h"

enum state {
	STATE_START,   /* before the root */
	STATE_OBJECT,  /* between members of the root object */
	STATE_VALUE,   /* inside a member too large to hand on */
	STATE_FIND,    /* the root object is damaged: looking for the next member */
	STATE_EVENTS,  /* between events, in an array */
	STATE_LINES,   /* between events, one a line */
	STATE_DAMAGED, /* between events, after one that could not be read */
	STATE_DONE     /* the root has ended */
};

enum {
	ROOM_MIN = 256 << 10,
	LOOSE_WAIT_BYTES = 64 << 10, /* how long a damaged event may wait for its end */
	SEEN_BYTES = 96
};

struct reducer_chrome {
	struct reducer_sink sink;
	struct reducer_chrome_options limit;
	struct reducer_read_report *report;
	struct chrome_event found;
	struct chrome_shapes shapes;
	enum state state;
	enum state events_state; /* STATE_EVENTS or STATE_LINES, while STATE_DAMAGED */
	bool array_root, had_events, had_phase, had_elements, final, doubled_told, in_damage;
	bool after_end;          /* bytes that are not read have come after the root */
	int stop_value;          /* what the sink returned */
	char before;             /* the last byte that is no space, while STATE_DAMAGED */
	char *data;
	size_t at, bytes, room;  /* unused bytes are [at, bytes) */
	uint64_t base;           /* offset in the text of data[0] */
	/* The unfinished item at `at`. */
	struct json_scan scan;
	size_t scanned;          /* bytes of it that `scan` has seen */
	size_t retry_bytes;      /* read again when so many are there */
	struct buffer key;
	char seen[SEEN_BYTES];   /* the first members' names, to say what a file is */
	uint64_t seen_at;        /* where the last of them begins */
};

static uint64_t offset_of(const struct reducer_chrome *r, const char *p)
{
	return r->base + (uint64_t)(p - r->data);
}

__attribute__((format(printf, 3, 4))) static void note(struct reducer_read_report *report, uint64_t offset,
						       const char *format, ...)
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

/* The refusal is always the last problem of the report, if need be in the place of another one. */
__attribute__((format(printf, 3, 4))) static int refuse(struct reducer_chrome *r, uint64_t offset,
							const char *format, ...)
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

static void use_up_to(struct reducer_chrome *r, const char *p)
{
	r->at = (size_t)(p - r->data);
	r->scan = (struct json_scan){0};
	r->scanned = 0;
	r->retry_bytes = 0;
}

/* Whether an unfinished item at `at` is worth another look. */
static bool worth_reading(struct reducer_chrome *r)
{
	size_t have = r->bytes - r->at;
	if (r->retry_bytes == 0 || have >= r->retry_bytes || r->final)
		return true;
	const char *p = r->data + r->at;
	bool whole = json_scan(&r->scan, p + r->scanned, p + have) != NULL;
	r->scanned = have;
	if (whole)
		r->retry_bytes = 0;
	return whole;
}

/*
 * How far to look at an item at p that may have `limit` bytes: one byte further. What is read must not depend on
 * how much of the text is there already, so nothing is read beyond.
 */
static const char *reach(const struct reducer_chrome *r, const char *p, size_t limit)
{
	size_t have = (size_t)(r->data + r->bytes - p);
	return p + (have <= limit ? have : limit + 1);
}

static enum json_how how_loose(const struct reducer_chrome *r, const char *end)
{
	return r->final && end == r->data + r->bytes ? JSON_LOOSE_FINAL : JSON_LOOSE;
}

static int wait_for_more(struct reducer_chrome *r)
{
	size_t have = r->bytes - r->at;
	if (r->retry_bytes == 0) {
		/* Begin the scan at the item's first byte, for the pieces to come. */
		r->scan = (struct json_scan){0};
		json_scan(&r->scan, r->data + r->at, r->data + r->bytes);
		r->scanned = have;
	}
	r->retry_bytes = have * 2 + 64;
	return 0;
}

/* The sink's own value may be any number: it is kept apart, so that none looks like progress. */
static int sink_said(struct reducer_chrome *r, int value)
{
	if (!value)
		return 0;
	r->stop_value = value;
	return -ECANCELED;
}

static int deliver_event(struct reducer_chrome *r, const char *begin, const char *end)
{
	struct reducer_event event;
	int result = chrome_event_map(&r->found, &event);
	if (result < 0)
		return result;
	event.offset = offset_of(r, begin);
	event.bytes = (uint32_t)(end - begin); /* at most REDUCER_EVENT_BYTES_MAX and the buffer's room */
	if (r->found.loose) {
		r->report->damaged++;
		note(r->report, offset_of(r, begin), "quotes inside a text are not escaped; the event was read as meant");
	}
	if (r->found.doubled && !r->doubled_told) {
		r->doubled_told = true;
		note(r->report, offset_of(r, begin), "a member stands twice in an event; the last one counts");
	}
	r->report->damaged += r->found.doubled;
	r->report->events++;
	r->had_phase |= r->found.at[FIELD_PH] != 0;
	return sink_said(r, r->sink.event ? r->sink.event(r->sink.context, &event) : 0);
}

static void start_skipping(struct reducer_chrome *r, const char *p, const char *what)
{
	if (r->state != STATE_DAMAGED) {
		r->report->damaged++;
		note(r->report, offset_of(r, p), "%s; skipped up to the next whole one", what);
		r->events_state = r->state;
		r->state = STATE_DAMAGED;
		r->in_damage = true;
	}
	r->before = *p;
	r->report->skipped_bytes++;
	use_up_to(r, p + 1);
}

/*
 * The object at p. Returns 1 if it was used up (delivered, or skipping has begun), 0 to wait, or what the
 * sink returned. While skipping, only an event with `ph` is accepted.
 */
static int read_event(struct reducer_chrome *r, const char *p)
{
	const char *at = p, *end = reach(r, p, r->limit.event_bytes_max);
	bool skipping = r->state == STATE_DAMAGED;
	const char *what = "an event cannot be read";
	if (!worth_reading(r))
		return 0;
	enum json_end result = chrome_event_scan(&r->found, &at, end, JSON_STRICT);
	bool too_big = end - p > (ptrdiff_t)r->limit.event_bytes_max;
	if (result == JSON_MORE && !r->final && !too_big)
		return wait_for_more(r);
	if (result == JSON_MORE)
		what = too_big ? "an event is larger than the limit" : "the text ends inside an event";
	if (result != JSON_OK && !skipping) {
		at = p;
		end = reach(r, p, LOOSE_WAIT_BYTES);
		result = chrome_event_scan(&r->found, &at, end, how_loose(r, end));
		if (result == JSON_MORE && !r->final && end - p <= LOOSE_WAIT_BYTES)
			return wait_for_more(r);
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
	use_up_to(r, at);
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
		event.offset = offset_of(r, begin);
		event.bytes = (uint32_t)(at - begin);
		r->report->events++;
		r->had_elements = r->had_phase = true;
		r->in_damage = false;
		*p = at = chrome_skip_between(at, end);
		int value = r->sink.event ? r->sink.event(r->sink.context, &event) : 0;
		if (value)
			return sink_said(r, value);
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
		use_up_to(r, p);
	if (p == end)
		return 0;
	if (*p == '{') {
		r->had_elements = true;
		return read_event(r, p);
	}
	if (*p == ']' && r->state == STATE_EVENTS) {
		use_up_to(r, p + 1);
		r->state = r->array_root ? STATE_DONE : STATE_OBJECT;
		return 1;
	}
	if (*p == '}' && r->state == STATE_EVENTS && !r->array_root) {
		r->report->damaged++;
		note(r->report, offset_of(r, p), "the events are not ended by `]`");
		r->state = STATE_OBJECT;
		return 1;
	}
	start_skipping(r, p, "this is no event");
	return 1;
}

static bool is_known_member(struct reducer_text key)
{
	static const char *const known[] = {"traceName", "displayTimeUnit", "baseTimeNanoseconds", "distributedInfo",
					    "schemaVersion", "deviceProperties", "otherData", "stackFrames", "samples",
					    "systemTraceEvents", "metadata", "trace_id", "INFO", "WARNING", "ERROR"};
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
		use_up_to(r, p);
	if (p == end)
		return 0;
	if (*p == '{')
		return read_event(r, p);
	if (events_end_here(r, p, end) != JSON_OK)
		return 0;
	r->state = STATE_EVENTS;
	return 1;
}

/* The key of the member that begins at `offset`; once, however often it is looked at. */
static void remember_key(struct reducer_chrome *r, struct reducer_text key, uint64_t offset)
{
	size_t used = strlen(r->seen);
	if (used && r->seen_at == offset)
		return;
	r->seen_at = offset;
	if (used + key.bytes + 5 > sizeof(r->seen) || !json_is_plain(key))
		return;
	snprintf(r->seen + used, sizeof(r->seen) - used, "%s\"%.*s\"", used ? ", " : "", (int)key.bytes, key.data);
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
	return sink_said(r, r->sink.member ? r->sink.member(r->sink.context, &member) : 0);
}

/* Goes on at the next place that looks like a member, since what stands at p cannot be read. */
static int damaged_root(struct reducer_chrome *r, const char *p)
{
	r->report->damaged++;
	note(r->report, offset_of(r, p), "a top-level member cannot be read; skipped up to the next one");
	r->state = STATE_FIND;
	r->report->skipped_bytes++;
	use_up_to(r, p + 1);
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
static int leave_out_member(struct reducer_chrome *r, struct reducer_text key, const char *value, const char *begin)
{
	r->report->damaged++;
	note(r->report, offset_of(r, begin), "member \"%.*s\" is larger than %zu bytes; left out",
	     key.bytes > 64 ? 64 : (int)key.bytes, key.data, r->limit.member_bytes_max);
	r->state = *value == '{' || *value == '[' ? STATE_VALUE : STATE_FIND;
	use_up_to(r, value);
	return 1;
}

/* A text whose quotes are not escaped, as it must have been meant. 1, 0 to wait, or an error. */
static int read_loose_text(struct reducer_chrome *r, struct reducer_text key, const char *value, const char *begin)
{
	const char *end = reach(r, value, LOOSE_WAIT_BYTES), *p = value;
	enum json_end result = *value == '"' ? json_value(&p, end, how_loose(r, end)) : JSON_BAD;
	if (result == JSON_MORE && !r->final && end - value <= LOOSE_WAIT_BYTES)
		return wait_for_more(r);
	if (result != JSON_OK)
		return damaged_root(r, begin);
	r->report->damaged++;
	note(r->report, offset_of(r, value), "quotes inside a text are not escaped; it was read as meant");
	struct buffer fixed = {0};
	json_quote(&fixed, (struct reducer_text){value + 1, (size_t)(p - value) - 2});
	int sunk = fixed.failed ? fixed.failed
				: deliver_member(r, key, (struct reducer_text){fixed.data, fixed.bytes});
	buffer_free(&fixed);
	use_up_to(r, p);
	return sunk ? sunk : 1;
}

/* The member's value begins at `value`; `*key` is undone into r->key. 1, 0 to wait, or an error. */
static int read_value(struct reducer_chrome *r, struct reducer_text key, const char *value, const char *begin)
{
	const char *p = value, *end = reach(r, value, r->limit.member_bytes_max);
	enum json_end result = json_value(&p, end, JSON_STRICT);
	if (result == JSON_MORE && end - value > (ptrdiff_t)r->limit.member_bytes_max)
		return leave_out_member(r, key, value, begin);
	if (result == JSON_OK)
		result = value_ends_well(r, p, r->data + r->bytes);
	if (result == JSON_MORE && !r->final)
		return wait_for_more(r);
	if (result != JSON_OK)
		return read_loose_text(r, key, value, begin);
	int sunk = deliver_member(r, key, (struct reducer_text){value, (size_t)(p - value)});
	use_up_to(r, p);
	return sunk ? sunk : 1;
}

static int read_member(struct reducer_chrome *r, const char *begin)
{
	const char *p = begin + 1, *end = reach(r, begin, ROOM_MIN);
	if (!worth_reading(r))
		return 0;
	enum json_end result = json_string(&p, end);
	if (result == JSON_MORE)
		return r->final || end - begin > ROOM_MIN ? damaged_root(r, begin) : wait_for_more(r);
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
		return r->final ? damaged_root(r, begin) : wait_for_more(r);
	if (text_is(key, "rocprofiler-sdk-tool"))
		return refuse(r, offset_of(r, begin), "a JSON object without traceEvents, beginning with "
			      "\"rocprofiler-sdk-tool\": this is rocprofiler output, not a Chrome trace");
	remember_key(r, key, offset_of(r, begin));
	if (*p == '[' && text_is(key, "traceEvents")) {
		r->state = STATE_EVENTS;
		r->had_events = true;
		use_up_to(r, p + 1);
		return 1;
	}
	return read_value(r, key, p, begin);
}

static int step_object(struct reducer_chrome *r)
{
	const char *p = r->data + r->at, *end = r->data + r->bytes;
	while (p < end && (*p == ' ' || *p == '\n' || *p == ',' || *p == '\r' || *p == '\t'))
		p++;
	if (p != r->data + r->at)
		use_up_to(r, p);
	if (p == end)
		return 0;
	if (*p == '"')
		return read_member(r, p);
	if (*p != '}')
		return damaged_root(r, p);
	use_up_to(r, p + 1);
	r->state = STATE_DONE;
	return 1;
}

static int step_value(struct reducer_chrome *r)
{
	const char *p = r->data + r->at, *end = r->data + r->bytes;
	const char *past = json_scan(&r->scan, p, end);
	r->report->skipped_bytes += (uint64_t)((past ? past : end) - p);
	struct json_scan scan = r->scan;
	use_up_to(r, past ? past : end);
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

static int step_find(struct reducer_chrome *r)
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
		use_up_to(r, p);
	if (p == end || result != JSON_OK)
		return 0;
	r->state = STATE_OBJECT;
	return 1;
}

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
	const char *end = reach(r, p, r->limit.event_bytes_max);
	if (!worth_reading(r))
		return 0;
	enum json_end result = is_event_line(p, end);
	if (result == JSON_MORE && !r->final && end - p <= (ptrdiff_t)r->limit.event_bytes_max)
		return wait_for_more(r);
	if (result == JSON_OK) {
		r->state = STATE_LINES;
		use_up_to(r, p);
	} else {
		r->state = STATE_OBJECT;
		use_up_to(r, p + 1);
	}
	return 1;
}

static int refuse_start(struct reducer_chrome *r, const char *p)
{
	unsigned char first = (unsigned char)*p;
	if (first == 0x0a || first == 0x0d || first < 0x20)
		return refuse(r, offset_of(r, p), "not JSON: binary data (first byte 0x%02x)", first);
	if (first >= 0xfe || first == 0)
		return refuse(r, offset_of(r, p), "not UTF-8: first byte 0x%02x (UTF-16 is not read)", first);
	if (first >= 0x7f)
		return refuse(r, offset_of(r, p), "not JSON: begins with byte 0x%02x", first);
	return refuse(r, offset_of(r, p), "not a Chrome trace: begins with '%c', not with '{' or '['", first);
}

static int step_start(struct reducer_chrome *r)
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
		use_up_to(r, p);
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
		return refuse(r, offset_of(r, next), "a JSON array, but not of trace events");
	r->report->array_root = 1;
	r->array_root = true;
	r->state = STATE_EVENTS;
	use_up_to(r, p + 1);
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
			note(r->report, offset_of(r, next), "bytes after the end of the trace are not read");
		}
		r->in_damage = r->after_end = true;
		r->report->skipped_bytes += (uint64_t)(end - next);
	}
	use_up_to(r, end);
	return 0;
}

static int step(struct reducer_chrome *r)
{
	switch (r->state) {
	case STATE_START:
		return step_start(r);
	case STATE_OBJECT:
		return step_object(r);
	case STATE_VALUE:
		return step_value(r);
	case STATE_FIND:
		return step_find(r);
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
		return refuse(r, end, r->report->text_bytes ? "no JSON: nothing but space" : "the file is empty");
	case STATE_OBJECT:
	case STATE_VALUE:
	case STATE_FIND:
	case STATE_DONE:
		if (!r->array_root && !r->had_events)
			return refuse(r, 0,
				      strcmp(r->seen, "\"traceEvents\"") == 0
					      ? "a JSON object whose traceEvents are no array%.0s%.0s: not a Chrome trace"
					      : "a JSON object without traceEvents%s%s: not a Chrome trace",
				      r->seen[0] ? "; it has " : "", r->seen);
		if (r->state != STATE_DONE) {
			r->report->damaged++;
			note(r->report, end, "the text ends inside the root object");
		}
		break;
	case STATE_EVENTS:
	case STATE_LINES:
	case STATE_DAMAGED:
		if (!r->array_root && r->had_events && !r->in_damage) {
			r->report->damaged++;
			note(r->report, end, "the text ends inside traceEvents");
		}
		break;
	}
	if (!r->had_phase && (r->had_elements || r->report->damaged) && !r->had_events)
		return refuse(r, 0, "JSON objects without `ph`: not a Chrome trace");
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
		note(r->report, cut->offset, "%s", cut->what);
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
