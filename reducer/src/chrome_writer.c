/* SPDX-License-Identifier: Apache-2.0 */
#include <reducer/chrome_writer.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chrome_writer_inside.h"
#include "json.h"
#include "packer.h"

enum { FLUSH_BYTES = 256 << 10, LATE_MEMBERS_MAX = 64 << 20 };

struct reducer_chrome_writer {
	struct reducer_chrome_writer_options options;
	struct reducer_chrome_writer_stats stats;
	struct packer *packer;
	struct buffer text;
	struct buffer late; /* members that came after the first event */
	int begun;          /* the root's opening is written */
	int in_events;
	int any_member;
	int failed;
};

static const char phase_of_kind[DREC_KIND_LIMIT] = {
	[DREC_SPAN] = 'X', [DREC_INSTANT] = 'i', [DREC_COUNTER] = 'C', [DREC_FLOW_BEGIN] = 's',
	[DREC_FLOW_STEP] = 't', [DREC_FLOW_END] = 'f', [DREC_BEGIN] = 'B', [DREC_END] = 'E',
	[DREC_ASYNC_BEGIN] = 'b', [DREC_ASYNC_INSTANT] = 'n', [DREC_ASYNC_END] = 'e', [DREC_META] = 'M',
};

int reducer_chrome_writer_level(const char *path)
{
	size_t bytes = strlen(path);
	return bytes >= 3 && strcmp(path + bytes - 3, ".gz") == 0 ? 6 : 0;
}

static int flush(struct reducer_chrome_writer *w)
{
	if (w->text.failed)
		return w->text.failed;
	int result = packer_write(w->packer, w->text.data, w->text.bytes);
	w->stats.text_bytes += w->text.bytes;
	if (!w->options.threaded)
		w->stats.file_bytes = packer_file_bytes(w->packer);
	buffer_clear(&w->text);
	return result;
}

static int flush_if_due(struct reducer_chrome_writer *w)
{
	if (w->text.failed || w->text.bytes >= FLUSH_BYTES)
		w->failed = flush(w);
	return w->failed;
}

int reducer_chrome_writer_new(int fd, const struct reducer_chrome_writer_options *options,
			      struct reducer_chrome_writer **ret_writer)
{
	struct reducer_chrome_writer *w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	if (options)
		w->options = *options;
	int result = packer_new(fd, w->options.gzip_level, &w->packer);
	/* Without a thread it is slower, and else the same. */
	if (result == 0 && w->options.threaded)
		packer_work_apart(w->packer);
	if (result < 0) {
		free(w);
		return result;
	}
	*ret_writer = w;
	return 0;
}

static void add_value(struct reducer_chrome_writer *w, struct buffer *out, struct reducer_text value)
{
	if (json_valid(value)) {
		buffer_add_text(out, value);
		return;
	}
	w->stats.repaired++;
	json_repair(out, value);
}

static void add_string(struct reducer_chrome_writer *w, struct reducer_text raw, struct reducer_text text)
{
	if (raw.bytes && json_valid_string(raw)) {
		buffer_add_text(&w->text, raw);
		return;
	}
	w->stats.repaired += raw.bytes != 0;
	json_quote(&w->text, text);
}

static void add_members(struct reducer_chrome_writer *w, struct reducer_text members)
{
	if (!members.bytes)
		return;
	buffer_add_byte(&w->text, ',');
	if (json_valid_members(members)) {
		buffer_add_text(&w->text, members);
		return;
	}
	w->stats.repaired++;
	size_t before = w->text.bytes;
	json_repair_members(&w->text, members);
	if (w->text.bytes == before && !w->text.failed)
		w->text.bytes--;
}

/* The shortest of 15 to 17 digits that reads back as the same double. */
static void add_double(struct buffer *out, double value)
{
	char digits[40];
	if (!isfinite(value)) {
		buffer_add_literal(out, isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
		return;
	}
	for (int precision = 15; precision <= 17; precision++) {
		snprintf(digits, sizeof(digits), "%.*g", precision, value);
		if (strtod(digits, NULL) == value)
			break;
	}
	/* The locale may have put another decimal point. */
	for (char *c = digits; *c; c++)
		if (!strchr("0123456789+-e", *c))
			*c = '.';
	buffer_add_literal(out, digits);
}

static void add_key(struct buffer *out, const char *literal)
{
	if (out->bytes && out->data[out->bytes - 1] != '{')
		buffer_add_byte(out, ',');
	buffer_add_literal(out, literal);
}

static void add_track(struct reducer_chrome_writer *w, const struct reducer_event *event)
{
	if (event->group.bytes) {
		add_key(&w->text, "\"pid\":");
		add_value(w, &w->text, event->group);
	}
	if (event->track.bytes) {
		add_key(&w->text, "\"tid\":");
		add_value(w, &w->text, event->track);
	}
}

static void add_args(struct reducer_chrome_writer *w, const struct reducer_event *event)
{
	if (event->args.bytes && (w->options.strip_args || event->args_flag != DREC_FLAG_ARGS_JSON)) {
		w->stats.args_left_out++;
	} else if (event->args.bytes) {
		add_key(&w->text, "\"args\":");
		add_value(w, &w->text, event->args);
	} else if (event->kind == DREC_COUNTER && !event->no_value) {
		add_key(&w->text, "\"args\":{\"value\":");
		add_double(&w->text, event->value);
		buffer_add_byte(&w->text, '}');
	}
}

static int64_t base_of(const struct reducer_chrome_writer *w)
{
	return w->options.has_base ? w->options.base_unix_ns : 0;
}

static void add_plain_event(struct reducer_chrome_writer *w, const struct reducer_event *event)
{
	struct buffer *out = &w->text;
	char phase = event->kind < DREC_KIND_LIMIT ? phase_of_kind[event->kind] : 0;
	if (phase) {
		char member[] = "\"ph\":\"?\"";
		member[6] = phase;
		add_key(out, member);
	}
	if (event->category.bytes || event->category_raw.bytes) {
		add_key(out, "\"cat\":");
		add_string(w, event->category_raw, event->category);
	}
	if (event->name.bytes || event->name_raw.bytes) {
		add_key(out, "\"name\":");
		add_string(w, event->name_raw, event->name);
	}
	add_track(w, event);
	if (event->has_time) {
		add_key(out, "\"ts\":");
		buffer_add_us(out, event->start_ns, event->start_ps, base_of(w));
	}
	if (event->has_duration) {
		add_key(out, "\"dur\":");
		buffer_add_us(out, event->duration_ns, event->duration_ps, 0);
	}
	if (event->has_id) {
		add_key(out, "\"id\":");
		buffer_add_u64(out, event->id);
	}
	if (event->extra.bytes && out->data && out->data[out->bytes - 1] == '{') {
		/* add_members() begins with a comma, which has no place after the brace. */
		size_t at = out->bytes;
		add_members(w, event->extra);
		if (!out->failed && out->bytes > at) {
			memmove(out->data + at, out->data + at + 1, out->bytes - at - 1);
			out->bytes--;
		}
	} else {
		add_members(w, event->extra);
	}
	add_args(w, event);
}

static void add_mark_name(struct buffer *out, const struct reducer_event *event)
{
	struct buffer name = {0};
	bool step = event->mark == DREC_MARK_STEP_BEGIN || event->mark == DREC_MARK_STEP_END;
	bool phase = event->mark == DREC_MARK_PHASE_BEGIN || event->mark == DREC_MARK_PHASE_END;
	if (step) {
		buffer_add_literal(&name, "step ");
		buffer_add_u64(&name, event->id);
	} else if (phase) {
		buffer_add_literal(&name, "phase ");
		buffer_add_text(&name, event->name);
	} else {
		buffer_add_literal(&name, drec_mark_name(event->mark));
	}
	if (event->mark == DREC_MARK_STEP_BEGIN || event->mark == DREC_MARK_PHASE_BEGIN)
		buffer_add_literal(&name, " begins");
	json_quote(out, (struct reducer_text){name.data, name.bytes});
	if (name.failed)
		out->failed = name.failed;
	buffer_free(&name);
}

static void add_mark(struct reducer_chrome_writer *w, const struct reducer_event *event)
{
	struct buffer *out = &w->text;
	bool span = event->mark == DREC_MARK_STEP_END || event->mark == DREC_MARK_PHASE_END;
	add_key(out, span ? "\"ph\":\"X\"" : "\"ph\":\"i\",\"s\":\"t\"");
	add_key(out, "\"cat\":\"driverec.mark\",\"name\":");
	add_mark_name(out, event);
	add_track(w, event);
	add_key(out, "\"ts\":");
	buffer_add_us(out, event->start_ns, event->start_ps, base_of(w));
	if (span) {
		add_key(out, "\"dur\":");
		buffer_add_us(out, event->duration_ns, event->duration_ps, 0);
	}
	if (event->args.bytes) {
		add_args(w, event);
	} else if (event->name.bytes) {
		add_key(out, "\"args\":{\"phase\":");
		json_quote(out, event->name);
		buffer_add_byte(out, '}');
	}
}

static void add_loss(struct reducer_chrome_writer *w, const struct reducer_event *event)
{
	struct buffer *out = &w->text;
	add_key(out, "\"ph\":\"i\",\"s\":\"t\",\"cat\":\"driverec.loss\",\"name\":\"lost: ");
	buffer_add_literal(out, drec_loss_name(event->mark));
	buffer_add_byte(out, '"');
	add_track(w, event);
	add_key(out, "\"ts\":");
	buffer_add_us(out, event->start_ns, event->start_ps, base_of(w));
	add_key(out, "\"args\":{\"events\":");
	buffer_add_u64(out, event->count);
	add_key(out, "\"for_us\":");
	buffer_add_us(out, event->duration_ns, event->duration_ps, 0);
	buffer_add_byte(out, '}');
}

static void begin_root(struct reducer_chrome_writer *w)
{
	if (w->begun)
		return;
	w->begun = 1;
	buffer_add_literal(&w->text, w->options.array_root ? "[" : "{");
}

static void begin_events(struct reducer_chrome_writer *w)
{
	if (w->in_events)
		return;
	begin_root(w);
	w->in_events = 1;
	if (!w->options.array_root)
		buffer_add_literal(&w->text, w->any_member ? ",\n\"traceEvents\":[" : "\"traceEvents\":[");
}

static void add_member(struct reducer_chrome_writer *w, struct buffer *out, const struct reducer_member *member)
{
	json_quote(out, member->key);
	buffer_add_byte(out, ':');
	add_value(w, out, member->value);
}

int reducer_chrome_writer_member(struct reducer_chrome_writer *w, const struct reducer_member *member)
{
	if (w->failed)
		return w->failed;
	if (w->options.array_root) {
		w->stats.members_left_out++;
		return 0;
	}
	/* A root that begins with `ph` would be taken for an event. */
	if (w->in_events || (member->key.bytes == 2 && memcmp(member->key.data, "ph", 2) == 0)) {
		if (member->value.bytes + member->key.bytes > LATE_MEMBERS_MAX - w->late.bytes) {
			w->stats.members_left_out++;
			return 0;
		}
		buffer_add_literal(&w->late, ",\n");
		add_member(w, &w->late, member);
		return w->failed = w->late.failed;
	}
	begin_root(w);
	if (w->any_member)
		buffer_add_literal(&w->text, ",\n");
	w->any_member = 1;
	add_member(w, &w->text, member);
	return flush_if_due(w);
}

int reducer_chrome_writer_event(struct reducer_chrome_writer *w, const struct reducer_event *event)
{
	if (w->failed)
		return w->failed;
	begin_events(w);
	buffer_add_literal(&w->text, w->stats.events ? ",\n{" : "\n{");
	if (event->kind == DREC_MARK)
		add_mark(w, event);
	else if (event->kind == DREC_LOSS)
		add_loss(w, event);
	else
		add_plain_event(w, event);
	buffer_add_byte(&w->text, '}');
	w->stats.events++;
	return flush_if_due(w);
}

int chrome_writer_valid_text(struct reducer_chrome_writer *w, struct reducer_text event)
{
	if (w->failed)
		return w->failed;
	begin_events(w);
	buffer_add_literal(&w->text, w->stats.events ? ",\n" : "\n");
	buffer_add_text(&w->text, event);
	w->stats.events++;
	return flush_if_due(w);
}

int reducer_chrome_writer_text(struct reducer_chrome_writer *w, struct reducer_text event)
{
	if (w->failed)
		return w->failed;
	if (event.bytes < 2 || event.data[0] != '{' || !json_valid(event))
		return -EBADMSG;
	return chrome_writer_valid_text(w, event);
}

static int sink_event(void *context, const struct reducer_event *event)
{
	return reducer_chrome_writer_event(context, event);
}

static int sink_member(void *context, const struct reducer_member *member)
{
	return reducer_chrome_writer_member(context, member);
}

struct reducer_sink reducer_chrome_writer_sink(struct reducer_chrome_writer *writer)
{
	return (struct reducer_sink){writer, sink_event, sink_member};
}

int reducer_chrome_writer_finish(struct reducer_chrome_writer *w)
{
	if (w->failed)
		return w->failed;
	begin_events(w);
	buffer_add_literal(&w->text, "\n]");
	if (!w->options.array_root) {
		buffer_add(&w->text, w->late.data, w->late.bytes);
		buffer_add_byte(&w->text, '}');
	}
	buffer_add_byte(&w->text, '\n');
	w->failed = flush(w);
	if (!w->failed)
		w->failed = packer_finish(w->packer);
	w->stats.file_bytes = packer_file_bytes(w->packer);
	return w->failed;
}

const struct reducer_chrome_writer_stats *reducer_chrome_writer_stats(const struct reducer_chrome_writer *writer)
{
	return &writer->stats;
}

void reducer_chrome_writer_free(struct reducer_chrome_writer *w)
{
	if (!w)
		return;
	packer_free(w->packer);
	buffer_free(&w->text);
	buffer_free(&w->late);
	free(w);
}
