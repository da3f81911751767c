/* SPDX-License-Identifier: Apache-2.0 */
#include "verify_args.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <reducer/marks.h>

#include "decimal.h"
#include "json.h"
#include "text.h"

static bool begins(struct reducer_text text, const char *literal)
{
	size_t bytes = strlen(literal);
	return text.bytes >= bytes && memcmp(text.data, literal, bytes) == 0;
}

bool verify_args_member(struct reducer_text args, const char *key, struct reducer_text *ret_value)
{
	bool found = false;
	if (args.bytes < 2 || args.data[0] != '{')
		return false;
	struct reducer_text rest = {args.data + 1, args.bytes - 2}, name, value;
	while (json_next_member(&rest, &name, &value))
		if (text_is(text_unquoted(name), key)) {
			*ret_value = value;
			found = true;
		}
	return found;
}

int verify_args_text(struct verify_house *house, struct reducer_text args, const char *key,
		     uint32_t *ret_number)
{
	struct reducer_text value;
	if (!verify_args_member(args, key, &value) || value.bytes < 2 || value.data[0] != '"')
		return -ENOENT;
	struct buffer said = {0};
	json_unescape(&said, text_unquoted(value));
	int result = said.failed;
	if (result == 0)
		result = verify_texts_add(&house->texts, (struct reducer_text){said.data, said.bytes},
					  ret_number);
	buffer_free(&said);
	return result;
}

bool verify_is_step(const struct reducer_event *event)
{
	static const char step_num[] = "step_num";
	struct reducer_text value;
	if (event->kind == DREC_MARK)
		return true;
	bool is_span = event->kind == DREC_SPAN || event->kind == DREC_BEGIN;
	if (is_span || event->kind == DREC_INSTANT)
		if (text_is(event->category, "driverec.mark"))
			return true;
	if (!is_span)
		return false;
	if (begins(event->name, "ProfilerStep#") || begins(event->name, "Optimizer.step#"))
		return true;
	return event->args.bytes && event->args.bytes < REDUCER_STEP_ARGS_MAX &&
	       memmem(event->args.data, event->args.bytes, step_num, sizeof(step_num) - 1) &&
	       verify_args_member(event->args, step_num, &value);
}

/* Picoseconds, a number or a decimal text, as far as int64 nanoseconds go. */
static bool ps_member(struct reducer_text args, const char *key, verify_ps *ret_ps)
{
	struct reducer_text value;
	if (!verify_args_member(args, key, &value))
		return false;
	value = text_unquoted(value);
	bool negative = value.bytes && value.data[0] == '-';
	verify_ps ps = 0;
	size_t at = negative;
	for (; at < value.bytes && value.data[at] >= '0' && value.data[at] <= '9'; at++) {
		ps = ps * 10 + (value.data[at] - '0');
		if (ps > (verify_ps)INT64_MAX * 1000)
			return false;
	}
	if (at != value.bytes || at == (size_t)negative)
		return false;
	*ret_ps = negative ? -ps : ps;
	return true;
}

/* A length: not negative. */
static bool length_member(struct reducer_text args, const char *key, verify_ps *ret_ps)
{
	return ps_member(args, key, ret_ps) && *ret_ps >= 0 && *ret_ps <= INT64_MAX;
}

int verify_args_merged(struct verify_house *house, const struct reducer_event *event,
		       struct verify_merged *ret_merged)
{
	struct verify_merged merged = {.events = 1, .longest_name = VERIFY_NONE};
	struct reducer_text value;
	bool whole = verify_args_member(event->args, "driverec.events", &value) &&
		     decimal_u64(value, &merged.events);
	if (event->kind == DREC_SPAN) {
		whole &= length_member(event->args, "driverec.sum_ps", &merged.sum);
		whole &= length_member(event->args, "driverec.longest_ps", &merged.longest);
		int result = verify_args_text(house, event->args, "driverec.longest", &merged.longest_name);
		if (result < 0 && result != -ENOENT)
			return result;
	}
	merged.is_whole = whole;
	*ret_merged = merged;
	return 0;
}

void verify_args_mark(struct reducer_text args, struct verify_mark *ret_mark)
{
	struct verify_mark mark = {.is_there = true};
	struct reducer_text value;
	uint64_t version = 0;
	mark.is_readable = verify_args_member(args, "version", &value) && decimal_u64(value, &version) &&
			   version == REDUCER_MARK_VERSION && ps_member(args, "bin_ps", &mark.bin) &&
			   mark.bin > 0 && ps_member(args, "origin_ps", &mark.origin);
	bool from = verify_args_member(args, "window_from_ps", &value);
	bool to = verify_args_member(args, "window_to_ps", &value);
	if (from || to) {
		mark.has_window = ps_member(args, "window_from_ps", &mark.window_from) &&
				  ps_member(args, "window_to_ps", &mark.window_to);
		mark.is_readable &= mark.has_window;
	}
	if (verify_args_member(args, "tracks", &value)) {
		value = text_unquoted(value);
		mark.has_tracks = true;
		snprintf(mark.tracks, sizeof(mark.tracks), "%.*s",
			 (int)(value.bytes < sizeof(mark.tracks) ? value.bytes : sizeof(mark.tracks)),
			 value.data);
	}
	*ret_mark = mark;
}

verify_ps verify_bin(const struct verify_mark *mark, verify_ps time)
{
	verify_ps from_origin = time - mark->origin, bin = from_origin / mark->bin;
	return from_origin % mark->bin < 0 ? bin - 1 : bin;
}
