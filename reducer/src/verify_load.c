/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a file into a verify_trace. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <reducer/marks.h>

#include "decimal.h"
#include "json.h"
#include "text.h"
#include "verify_args.h"

struct loader {
	struct verify *verify;
	struct verify_trace *trace;
	struct buffer args, extra, other; /* repaired texts */
};

/* JSON as every writer of ours must write it: as it is, or made valid where it is not. */
static struct reducer_text valid(struct buffer *scratch, struct reducer_text value)
{
	if (value.bytes == 0 || json_valid(value))
		return value;
	buffer_clear(scratch);
	json_repair(scratch, value);
	return (struct reducer_text){scratch->data, scratch->bytes};
}

static struct reducer_text valid_members(struct buffer *scratch, struct reducer_text members)
{
	if (members.bytes == 0 || json_valid_members(members))
		return members;
	buffer_clear(scratch);
	json_repair_members(scratch, members);
	return (struct reducer_text){scratch->data, scratch->bytes};
}

static bool extra_member(const struct reducer_event *event, const char *key, struct reducer_text *ret_value)
{
	struct reducer_text rest = event->extra, name, value;
	while (json_next_member(&rest, &name, &value))
		if (name.bytes == strlen(key) + 2 && memcmp(name.data + 1, key, name.bytes - 2) == 0) {
			*ret_value = value;
			return true;
		}
	return false;
}

/* Marks and losses of a ring: writers make spans and instants of them, and give them names. */
static bool is_note(const struct reducer_event *event)
{
	return event->kind == DREC_MARK || event->kind == DREC_LOSS ||
	       text_is(event->category, "driverec.mark") || text_is(event->category, "driverec.loss");
}

static enum verify_class class_of(const struct verify *verify, const struct reducer_event *event,
				  const struct verify_event *known)
{
	struct reducer_text phase;
	if (event->kind == DREC_META)
		return known->name == verify->house.mark_name ? VERIFY_MARK : VERIFY_META;
	if (!event->has_time)
		return VERIFY_KEPT;
	if (event->kind == DREC_FLOW_BEGIN || event->kind == DREC_FLOW_STEP || event->kind == DREC_FLOW_END)
		return VERIFY_FLOW;
	if (verify->crossed && is_note(event))
		return VERIFY_NOTE;
	switch (event->kind) {
	case DREC_SPAN:
		/* Not every format can say that it has no length, or a negative one: there it is 0. */
		return verify->crossed || (event->has_duration && known->duration >= 0) ? VERIFY_SPAN
											: VERIFY_KEPT;
	case DREC_BEGIN:
		return VERIFY_BEGIN;
	case DREC_END:
		return VERIFY_END;
	case DREC_INSTANT:
		return VERIFY_INSTANT;
	case DREC_COUNTER:
		return VERIFY_COUNTER;
	case DREC_ASYNC_BEGIN:
	case DREC_ASYNC_END:
		return VERIFY_ASYNC;
	case DREC_ASYNC_INSTANT:
		return VERIFY_ASYNC_POINT;
	default:
		/* The old name of an instant, which other formats do not know. */
		return !verify->crossed && extra_member(event, "ph", &phase) && text_is(phase, "\"I\"")
			       ? VERIFY_INSTANT
			       : VERIFY_KEPT;
	}
}

/* The id of what has one, as it was written, with what else tells it from others; VERIFY_NONE: none. */
static int read_id(struct loader *loader, const struct reducer_event *event, uint32_t *ret_id)
{
	static const char *const further[] = {"id", "id2", "scope"};
	char digits[24];
	struct reducer_text part = {digits, 0};
	struct buffer *id = &loader->other;
	*ret_id = VERIFY_NONE;
	buffer_clear(id);
	if (event->has_id) {
		part.bytes = (size_t)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)event->id);
		buffer_add_text(id, part);
	}
	for (size_t i = 0; event->extra.bytes && i < sizeof(further) / sizeof(further[0]); i++) {
		if (!extra_member(event, further[i], &part))
			continue;
		if (id->bytes)
			buffer_add(id, " ", 1);
		/* An id alone is told as it was written. */
		if (i > 0)
			buffer_add(id, further[i], strlen(further[i]));
		buffer_add_text(id, part);
	}
	if (!id->bytes)
		return id->failed;
	return verify_texts_add(&loader->verify->house.texts, (struct reducer_text){id->data, id->bytes}, ret_id);
}

/*
 * Some formats have one number a counter, and call it by both names: so where formats differ a series is
 * "NAME KEY", or the name alone where that ends so already.
 */
static int name_series(struct verify_house *house, struct verify_counter *key)
{
	struct reducer_text name = verify_texts_at(&house->texts, key->name);
	struct reducer_text word = verify_texts_at(&house->texts, key->key);
	struct buffer both = {0};
	if (word.bytes >= 2 && word.data[0] == '"')
		word = (struct reducer_text){word.data + 1, word.bytes - 2};
	bool ends_so = name.bytes > word.bytes && name.data[name.bytes - word.bytes - 1] == ' ' &&
		       memcmp(name.data + name.bytes - word.bytes, word.data, word.bytes) == 0;
	buffer_add_text(&both, name);
	if (!ends_so) {
		buffer_add_byte(&both, ' ');
		buffer_add_text(&both, word);
	}
	int result = both.failed;
	if (result == 0)
		result = verify_texts_add(&house->texts, (struct reducer_text){both.data, both.bytes},
					  &key->name);
	buffer_free(&both);
	key->key = house->no_name;
	return result;
}

static int add_value(struct loader *loader, struct verify_counter key, uint32_t id, double value,
		     verify_ps start)
{
	struct verify_trace *trace = loader->trace;
	struct verify_house *house = &loader->verify->house;
	uint32_t counter;
	struct verify_value *grown =
		verify_grow(trace->value, trace->n_values, &trace->values_room, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	trace->value = grown;
	int result = loader->verify->crossed ? name_series(house, &key) : 0;
	if (result == 0)
		result = verify_house_counter(house, key.group, key.name,
					      loader->verify->crossed ? VERIFY_NONE : id, key.key, &counter);
	if (result == 0)
		trace->value[trace->n_values++] =
			(struct verify_value){start, value, counter, (uint32_t)trace->n_events};
	return result;
}

/* A key as valid JSON has it: one that is none is written anew with what it says. */
static int add_key(struct verify_house *house, struct reducer_text name, uint32_t *ret_number)
{
	if (json_valid_string(name))
		return verify_texts_add(&house->texts, name, ret_number);
	struct buffer said = {0}, json = {0};
	if (name.bytes >= 2 && name.data[0] == '"')
		name = (struct reducer_text){name.data + 1, name.bytes - 2};
	json_unescape(&said, name);
	json_quote(&json, (struct reducer_text){said.data, said.bytes});
	int result = said.failed ? said.failed : json.failed;
	if (result == 0)
		result = verify_texts_add(&house->texts, (struct reducer_text){json.data, json.bytes}, ret_number);
	buffer_free(&said);
	buffer_free(&json);
	return result;
}

/* Each number among the args of a counter sample; one in quotes is a number too, where the format can say so.
 */
static int read_values(struct loader *loader, const struct reducer_event *event,
		       const struct verify_event *known)
{
	struct verify_house *house = &loader->verify->house;
	struct verify_counter key = {house->track[known->track].group, known->name, 0};
	double number;
	int result = 0;
	if (event->args.bytes == 0 && loader->verify->crossed) {
		/* A ring's sample is a number alone; this is what writers call it. */
		result = verify_texts_add(&house->texts, (struct reducer_text){"\"value\"", 7}, &key.key);
		return result ? result : add_value(loader, key, known->id, event->value, known->start);
	}
	/* Damaged args are what a writer makes of them. */
	struct buffer repaired = {0};
	struct reducer_text args = event->args;
	if (args.bytes && !json_valid(args)) {
		json_repair(&repaired, args);
		args = (struct reducer_text){repaired.data, repaired.bytes};
		result = repaired.failed;
	}
	if (args.bytes < 2 || args.data[0] != '{') {
		buffer_free(&repaired);
		return result;
	}
	struct reducer_text rest = {args.data + 1, args.bytes - 2}, name, value;
	while (result == 0 && json_next_member(&rest, &name, &value)) {
		if (value.bytes >= 2 && value.data[0] == '"' && !loader->verify->crossed)
			value = (struct reducer_text){value.data + 1, value.bytes - 2};
		if (!decimal_double(value, &number))
			continue;
		result = add_key(house, name, &key.key);
		if (result == 0)
			result = add_value(loader, key, known->id, number, known->start);
	}
	buffer_free(&repaired);
	return result;
}

static int read_merged(struct loader *loader, const struct reducer_event *event, struct verify_event *known)
{
	static const char head[] = REDUCER_MARK_MERGED_ARGS;
	struct verify_trace *trace = loader->trace;
	bool can_be = event->kind == DREC_SPAN || event->kind == DREC_INSTANT || event->kind == DREC_ASYNC_BEGIN;
	if (known->category != loader->verify->house.merged_category || !can_be)
		return 0;
	if (event->args.bytes < sizeof(head) - 1 || memcmp(event->args.data, head, sizeof(head) - 1) != 0)
		return 0;
	struct verify_merged *grown =
		verify_grow(trace->merged, trace->n_merged, &trace->merged_room, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	trace->merged = grown;
	int result = verify_args_merged(&loader->verify->house, event, &trace->merged[trace->n_merged]);
	if (result < 0)
		return result;
	/* The raw trace may hold what only looks like one; then the reduced one may, too. */
	const struct verify_merged *its = &trace->merged[trace->n_merged];
	bool whole = its->is_whole && its->longest <= its->sum;
	loader->verify->house.has_unwhole |= !whole && !trace->is_reduced;
	if (whole || !loader->verify->house.has_unwhole)
		known->merged = (uint32_t)++trace->n_merged;
	return result;
}

/* What metadata says for us: that the trace is reduced, and what threads are called. */
static int read_meta(struct loader *loader, const struct reducer_event *event,
		     const struct verify_event *known)
{
	struct verify_house *house = &loader->verify->house;
	if (known->class == VERIFY_MARK) {
		loader->trace->marks++;
		if (loader->trace->is_reduced)
			verify_args_mark(event->args, &loader->verify->mark);
		return 0;
	}
	struct verify_track *track = &house->track[known->track];
	int result = 0;
	if (text_is(event->name, "thread_name"))
		result = verify_args_text(house, event->args, "name", &track->thread);
	else if (text_is(event->name, "process_name"))
		result = verify_args_text(house, event->args, "name", &track->process);
	return result == -ENOENT ? 0 : result;
}

/* Of all that must not change but kind, track and time. Metadata is its track, name and args; of formats that
 * differ no more than the name is compared. */
static struct verify_print content_of(struct loader *loader, const struct reducer_event *event,
				      const struct verify_event *known)
{
	if (loader->verify->crossed)
		return verify_print_mix(verify_print_of(NULL, 0), known->name);
	struct reducer_text args = valid(&loader->args, event->args);
	struct verify_print print = verify_print_of(args.data, args.bytes);
	print = verify_print_mix(print, known->name);
	if (event->kind == DREC_META)
		return print;
	struct reducer_text extra = valid_members(&loader->extra, event->extra);
	print = verify_print_mix(print, (uint64_t)known->category << 32 | event->has_id);
	print = verify_print_mix(print, event->has_id ? event->id : 0);
	return verify_print_join(print, verify_print_of(extra.data, extra.bytes));
}

static int read_names(struct loader *loader, const struct reducer_event *event, struct verify_event *known)
{
	struct verify_house *house = &loader->verify->house;
	struct reducer_text group = valid(&loader->args, event->group),
			    track = valid(&loader->other, event->track);
	struct reducer_text name = event->name;
	if (loader->verify->crossed && is_note(event))
		name.bytes = 0;
	int result = verify_texts_add(&house->texts, name, &known->name);
	if (result == 0)
		result = verify_texts_add(&house->texts, event->category, &known->category);
	if (result == 0)
		result = verify_house_track(house, group, track, &known->track);
	return result ? result : read_id(loader, event, &known->id);
}

static int take_event(void *context, const struct reducer_event *event)
{
	struct loader *loader = context;
	struct verify_trace *trace = loader->trace;
	struct verify_event *grown =
		verify_grow(trace->event, trace->n_events, &trace->events_room, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	trace->event = grown;
	struct verify_event known = {.kind = event->kind, .has_time = event->has_time};
	if (event->has_time)
		known.start = verify_time(event->start_ns, event->start_ps);
	if (event->has_duration)
		known.duration = verify_time(event->duration_ns, event->duration_ps);
	if (known.duration < 0 && loader->verify->crossed)
		known.duration = 0;
	int result = read_names(loader, event, &known);
	if (result == 0)
		result = read_merged(loader, event, &known);
	if (result < 0)
		return result;
	known.class = (uint8_t)class_of(loader->verify, event, &known);
	if (known.class == VERIFY_NOTE)
		known.kind = DREC_MARK;
	known.has_more = !loader->verify->crossed && (event->args.bytes || event->extra.bytes);
	known.is_step = verify_is_step(event);
	known.same = content_of(loader, event, &known);
	if (known.class == VERIFY_META || known.class == VERIFY_MARK)
		result = read_meta(loader, event, &known);
	else if (known.class == VERIFY_COUNTER)
		result = read_values(loader, event, &known);
	if (result == 0)
		result = loader->args.failed | loader->extra.failed | loader->other.failed;
	if (result == 0)
		trace->event[trace->n_events++] = known;
	return result;
}

static int take_member(void *context, const struct reducer_member *member)
{
	struct loader *loader = context;
	struct verify_trace *trace = loader->trace;
	struct verify_member *grown =
		verify_grow(trace->member, trace->n_members, &trace->members_room, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	trace->member = grown;
	struct verify_member known;
	struct reducer_text value = valid(&loader->args, member->value);
	int result = verify_texts_add(&loader->verify->house.texts, member->key, &known.key);
	if (result == 0)
		result = loader->args.failed;
	if (result < 0)
		return result;
	/* No event's: those go on with kind, track and time. */
	known.same = verify_print_mix(verify_print_of(value.data, value.bytes), known.key);
	trace->member[trace->n_members++] = known;
	return 0;
}

int verify_load(struct verify *verify, struct verify_trace *trace, const char *path,
		enum reducer_format format, struct reducer_read_report *report)
{
	struct loader loader = {.verify = verify, .trace = trace};
	struct reducer_sink sink = {&loader, take_event, take_member};
	int result = reducer_trace_read(path, format, &sink, report);
	buffer_free(&loader.args);
	buffer_free(&loader.extra);
	buffer_free(&loader.other);
	return result;
}

void verify_trace_free(struct verify_trace *trace)
{
	free(trace->event);
	free(trace->merged);
	free(trace->value);
	free(trace->member);
	free(trace->span);
	free(trace->track_spans);
}
