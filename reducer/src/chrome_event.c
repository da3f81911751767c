/* SPDX-License-Identifier: Apache-2.0 */
#include "chrome_event.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decimal.h"
#include "text.h"

static bool is_string(struct reducer_text value)
{
	return value.bytes >= 2 && value.data[0] == '"';
}

/* A string, or a bare word that can only be meant as one. */
static bool is_text(struct reducer_text value)
{
	return is_string(value) || (value.bytes && *value.data != '{' && *value.data != '[' && !json_valid(value));
}

enum chrome_field chrome_field_of(struct reducer_text key)
{
	struct reducer_text inner = text_unquoted(key);
	const char *k = inner.data;
	switch (inner.bytes) {
	case 2:
		if (k[0] == 'p' && k[1] == 'h')
			return FIELD_PH;
		if (k[0] == 't' && k[1] == 's')
			return FIELD_TS;
		return k[0] == 'i' && k[1] == 'd' ? FIELD_ID : FIELD_OTHER;
	case 3:
		if (memcmp(k, "cat", 3) == 0)
			return FIELD_CAT;
		if (memcmp(k, "pid", 3) == 0)
			return FIELD_PID;
		if (memcmp(k, "tid", 3) == 0)
			return FIELD_TID;
		return memcmp(k, "dur", 3) == 0 ? FIELD_DUR : FIELD_OTHER;
	case 4:
		if (memcmp(k, "name", 4) == 0)
			return FIELD_NAME;
		return memcmp(k, "args", 4) == 0 ? FIELD_ARGS : FIELD_OTHER;
	default:
		return FIELD_OTHER;
	}
}

static void add_member(struct chrome_event *found, struct reducer_text key, struct reducer_text value)
{
	if (found->n_members == found->room) {
		size_t room = found->room ? found->room * 2 : 32;
		struct chrome_member *grown = realloc(found->member, room * sizeof(*grown));
		if (!grown) {
			found->failed = -ENOMEM;
			return;
		}
		found->member = grown;
		found->room = room;
	}
	enum chrome_field field = chrome_field_of(key);
	found->member[found->n_members++] = (struct chrome_member){key, value, field};
	if (field == FIELD_OTHER)
		return;
	if (found->at[field]) {
		/* The last one counts, as every JSON reader has it; the earlier one is told and left out. */
		found->member[found->at[field] - 1].value = (struct reducer_text){NULL, 0};
		found->doubled++;
	}
	found->at[field] = (int)found->n_members;
}

static enum json_end scan_key(const char **p, const char *end, enum json_how how)
{
	const char *at = *p;
	if (*at == '"') {
		at++;
		enum json_end result = how ? json_string_loose(&at, end, true, how) : json_string(&at, end);
		if (result == JSON_OK)
			*p = at;
		return result;
	}
	if (!how)
		return JSON_BAD;
	/* The opening quote is missing: tid": 7 */
	while (at < end && *at != '"' && *at != ':' && *at != '}' && *at != ',')
		at++;
	if (at == end)
		return JSON_MORE;
	if (at == *p || *at == '}' || *at == ',')
		return JSON_BAD;
	*p = at;
	return JSON_OK;
}

static struct reducer_text span_of(const char *from, const char *to)
{
	return (struct reducer_text){from, (size_t)(to - from)};
}

/* One member at *p, which is neither space, comma nor brace. */
static enum json_end scan_member(struct chrome_event *found, const char **p, const char *end, enum json_how how)
{
	const char *key = *p;
	enum json_end result = scan_key(p, end, how);
	if (result != JSON_OK)
		return result;
	struct reducer_text key_text = span_of(key, *p);
	if (*key != '"' && **p == '"')
		++*p;
	*p = json_skip_space(*p, end);
	if (*p == end)
		return JSON_MORE;
	if (**p != ':')
		return JSON_BAD;
	*p = json_skip_space(*p + 1, end);
	const char *value = *p;
	result = json_value(p, end, how);
	if (result == JSON_OK)
		add_member(found, key_text, span_of(value, *p));
	return result;
}

enum json_end chrome_event_scan(struct chrome_event *found, const char **p, const char *end, enum json_how how)
{
	found->n_members = 0;
	found->doubled = 0;
	found->loose = how != JSON_STRICT;
	memset(found->at, 0, sizeof(found->at));
	++*p;
	for (;;) {
		while (*p < end && (**p == ' ' || **p == '\n' || **p == ',' || **p == '\t' || **p == '\r'))
			++*p;
		if (*p == end)
			return JSON_MORE;
		if (**p == '}') {
			++*p;
			return JSON_OK;
		}
		enum json_end result = scan_member(found, p, end, how);
		if (result != JSON_OK)
			return result;
	}
}

static struct reducer_text value_of(const struct chrome_event *found, enum chrome_field field)
{
	int at = found->at[field];
	return at ? found->member[at - 1].value : (struct reducer_text){NULL, 0};
}

static const uint8_t kind_of_phase[128] = {
	['X'] = DREC_SPAN, ['B'] = DREC_BEGIN, ['E'] = DREC_END, ['i'] = DREC_INSTANT, ['C'] = DREC_COUNTER,
	['s'] = DREC_FLOW_BEGIN, ['t'] = DREC_FLOW_STEP, ['f'] = DREC_FLOW_END, ['b'] = DREC_ASYNC_BEGIN,
	['n'] = DREC_ASYNC_INSTANT, ['e'] = DREC_ASYNC_END, ['M'] = DREC_META,
};

uint8_t chrome_event_kind(struct reducer_text phase)
{
	/* The quotes may be missing. */
	phase = text_unquoted(phase);
	if (phase.bytes != 1 || (unsigned char)phase.data[0] >= 128)
		return DREC_OTHER;
	uint8_t kind = kind_of_phase[(unsigned char)phase.data[0]];
	return kind ? kind : DREC_OTHER;
}

/* A text's UTF-8: what stands between the quotes if that says itself, else undone into `scratch`. */
static struct reducer_text said(struct buffer *scratch, struct reducer_text raw)
{
	struct reducer_text inner = text_unquoted(raw);
	if (json_is_plain(inner))
		return inner;
	buffer_clear(scratch);
	json_unescape(scratch, inner);
	return (struct reducer_text){scratch->data, scratch->bytes};
}

/* A value as written, or as it must have been meant where quotes were not escaped. */
static struct reducer_text meant(struct chrome_event *found, struct buffer *scratch, struct reducer_text raw)
{
	if (!found->loose || !raw.data || json_valid(raw))
		return raw;
	buffer_clear(scratch);
	json_repair(scratch, raw);
	return (struct reducer_text){scratch->data, scratch->bytes};
}

static void add_extra(struct chrome_event *found, const struct chrome_member *member)
{
	struct buffer *out = &found->extra;
	if (out->bytes)
		buffer_add_byte(out, ',');
	if (found->loose && !json_valid_string(member->key))
		json_quote(out, text_unquoted(member->key));
	else
		buffer_add_text(out, member->key);
	buffer_add_byte(out, ':');
	if (found->loose && !json_valid(member->value))
		json_repair(out, member->value);
	else
		buffer_add_text(out, member->value);
}

double chrome_event_counter(struct reducer_text args)
{
	double value = 0;
	if (args.bytes < 2 || args.data[0] != '{')
		return value;
	struct reducer_text rest = {args.data + 1, args.bytes - 2}, key, one;
	while (json_next_member(&rest, &key, &one))
		if (decimal_double(text_unquoted(one), &value))
			break;
	return value;
}

static void map_times(struct chrome_event *found, struct reducer_event *event)
{
	struct reducer_text ts = text_unquoted(meant(found, &found->args, value_of(found, FIELD_TS)));
	struct reducer_text duration = text_unquoted(meant(found, &found->extra, value_of(found, FIELD_DUR)));
	if (ts.bytes)
		event->has_time = decimal_us(ts, &event->start_ns, &event->start_ps);
	if (event->kind == DREC_SPAN && duration.bytes)
		event->has_duration = decimal_us(duration, &event->duration_ns, &event->duration_ps);
}

static void map_texts(struct chrome_event *found, struct reducer_event *event)
{
	struct reducer_text name = value_of(found, FIELD_NAME), category = value_of(found, FIELD_CAT);
	if (is_text(name)) {
		event->name = said(&found->name, name);
		if (!found->loose && is_string(name))
			event->name_raw = name;
	}
	if (is_text(category)) {
		event->category = said(&found->category, category);
		if (!found->loose && is_string(category))
			event->category_raw = category;
	}
	event->group = meant(found, &found->group, value_of(found, FIELD_PID));
	event->track = meant(found, &found->track, value_of(found, FIELD_TID));
	event->args = meant(found, &found->args, value_of(found, FIELD_ARGS));
	if (event->args.bytes)
		event->args_flag = DREC_FLAG_ARGS_JSON;
}

/* Whether the event has a place for the member, so that it need not stay in extra. */
static bool has_place(const struct chrome_member *member, const struct reducer_event *event)
{
	switch (member->field) {
	case FIELD_PH:
		return event->kind != DREC_OTHER;
	case FIELD_NAME:
	case FIELD_CAT:
		return is_text(member->value);
	case FIELD_PID:
	case FIELD_TID:
	case FIELD_ARGS:
		return true;
	case FIELD_TS:
		return event->has_time;
	case FIELD_DUR:
		return event->has_duration;
	case FIELD_ID:
		return event->has_id;
	case FIELD_OTHER:
	case FIELD_COUNT:
		break;
	}
	return false;
}

int chrome_event_map(struct chrome_event *found, struct reducer_event *ret_event)
{
	struct reducer_event event = {.depth = DREC_DEPTH_UNKNOWN};
	/* The buffers of args and extra are free until those are mapped. */
	event.kind = chrome_event_kind(meant(found, &found->extra, value_of(found, FIELD_PH)));
	map_times(found, &event);
	map_texts(found, &event);
	event.has_id = decimal_u64(meant(found, &found->extra, value_of(found, FIELD_ID)), &event.id);
	if (event.kind == DREC_COUNTER)
		event.value = chrome_event_counter(event.args);
	event.no_value = event.kind == DREC_COUNTER && !event.args.bytes;
	buffer_clear(&found->extra);
	for (size_t i = 0; i < found->n_members; i++)
		if (found->member[i].value.data && !has_place(&found->member[i], &event))
			add_extra(found, &found->member[i]);
	event.extra = (struct reducer_text){found->extra.data, found->extra.bytes};
	const struct buffer *all[] = {&found->name, &found->category, &found->extra,
				      &found->args, &found->group, &found->track};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i]->failed)
			found->failed = all[i]->failed;
	if (found->failed)
		return found->failed;
	*ret_event = event;
	return 0;
}

void chrome_event_free(struct chrome_event *found)
{
	free(found->member);
	buffer_free(&found->name);
	buffer_free(&found->category);
	buffer_free(&found->extra);
	buffer_free(&found->args);
	buffer_free(&found->group);
	buffer_free(&found->track);
}
