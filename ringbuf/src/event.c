/* SPDX-License-Identifier: Apache-2.0 */
#include <driverec/event.h>

#include <errno.h>
#include <string.h>

#include "wire.h"

static size_t text_bytes(uint32_t bytes)
{
	return ((size_t)bytes + 4 + 7) & ~(size_t)7;
}

size_t drec_event_bytes(const struct drec_event *event)
{
	size_t total = DREC_EVENT_BASE_BYTES;
	if (event->flags & DREC_FLAG_PS)
		total += 8;
	if (event->flags & DREC_FLAG_ID)
		total += 8;
	if (event->flags & DREC_FLAG_NAME)
		total += text_bytes(event->name_bytes);
	if (event->flags & (DREC_FLAG_ARGS_JSON | DREC_FLAG_ARGS_XSTAT))
		total += text_bytes(event->args_bytes);
	if (event->flags & DREC_FLAG_EXTRA)
		total += text_bytes(event->extra_bytes);
	return total <= DREC_EVENT_BYTES_MAX ? total : 0;
}

static uint8_t *put_text(uint8_t *out, const void *data, uint32_t bytes)
{
	size_t padded = text_bytes(bytes);
	/* The last word first, so that the padding is zero. */
	memset(out + padded - 8, 0, 8);
	memcpy(out, &bytes, 4);
	if (bytes)
		memcpy(out + 4, data, bytes);
	return out + padded;
}

void drec_event_encode(void *out, const struct drec_event *event, uint16_t lap)
{
	uint8_t *bytes = out;
	struct event_base base = {
		.words = (uint16_t)(drec_event_bytes(event) / 8),
		.kind = event->kind,
		.flags = event->flags,
		.lap = lap,
		.category = event->category,
		.name = event->name,
		.track_depth = (event->track & DREC_TRACK_MAX) | (uint32_t)event->depth << 24,
		.start = event->start,
		.dur_or_value = event->dur_or_value,
	};
	memcpy(bytes, &base, sizeof(base));
	bytes += sizeof(base);
	if (event->flags & DREC_FLAG_PS) {
		uint16_t ps[4] = {event->start_ps, event->dur_ps, 0, 0};
		memcpy(bytes, ps, 8);
		bytes += 8;
	}
	if (event->flags & DREC_FLAG_ID) {
		memcpy(bytes, &event->id, 8);
		bytes += 8;
	}
	if (event->flags & DREC_FLAG_NAME)
		bytes = put_text(bytes, event->name_text, event->name_bytes);
	if (event->flags & (DREC_FLAG_ARGS_JSON | DREC_FLAG_ARGS_XSTAT))
		bytes = put_text(bytes, event->args, event->args_bytes);
	if (event->flags & DREC_FLAG_EXTRA)
		put_text(bytes, event->extra, event->extra_bytes);
}

/* The one cursor through which an event's additions are read: bounds by subtraction. */
struct cursor {
	const uint8_t *at;
	size_t left;
};

static int take(struct cursor *cursor, size_t bytes, const uint8_t **ret)
{
	if (bytes > cursor->left)
		return -EBADMSG;
	*ret = cursor->at;
	cursor->at += bytes;
	cursor->left -= bytes;
	return 0;
}

static int take_text(struct cursor *cursor, const void **ret_data, uint32_t *ret_bytes)
{
	uint32_t bytes;
	const uint8_t *data;
	if (cursor->left < 8)
		return -EBADMSG;
	memcpy(&bytes, cursor->at, 4);
	if (bytes > cursor->left - 4 || take(cursor, text_bytes(bytes), &data) < 0)
		return -EBADMSG;
	*ret_data = data + 4;
	*ret_bytes = bytes;
	return 0;
}

static int take_additions(struct cursor *cursor, struct drec_event *event)
{
	const uint8_t *data;
	if (event->flags & DREC_FLAG_PS) {
		if (take(cursor, 8, &data) < 0)
			return -EBADMSG;
		memcpy(&event->start_ps, data, 2);
		memcpy(&event->dur_ps, data + 2, 2);
		if (event->start_ps > 999 || event->dur_ps > 999)
			return -EBADMSG;
	}
	if (event->flags & DREC_FLAG_ID) {
		if (take(cursor, 8, &data) < 0)
			return -EBADMSG;
		memcpy(&event->id, data, 8);
	}
	if (event->flags & DREC_FLAG_NAME) {
		const void *text;
		if (take_text(cursor, &text, &event->name_bytes) < 0)
			return -EBADMSG;
		event->name_text = text;
	}
	if (event->flags & (DREC_FLAG_ARGS_JSON | DREC_FLAG_ARGS_XSTAT)) {
		if (take_text(cursor, &event->args, &event->args_bytes) < 0)
			return -EBADMSG;
	}
	if (event->flags & DREC_FLAG_EXTRA) {
		const void *text;
		if (take_text(cursor, &text, &event->extra_bytes) < 0)
			return -EBADMSG;
		event->extra = text;
	}
	return cursor->left == 0 ? 0 : -EBADMSG;
}

int drec_event_decode(const void *bytes, size_t avail, uint16_t lap, struct drec_event *ret_event)
{
	struct event_base base;
	if (avail < sizeof(base))
		return -EBADMSG;
	memcpy(&base, bytes, sizeof(base));
	size_t total = (size_t)base.words * 8;
	if (total < sizeof(base) || total > avail || base.lap != lap || base.kind == 0 ||
	    base.kind >= DREC_KIND_LIMIT)
		return -EBADMSG;
	struct drec_event event = {
		.kind = base.kind,
		.flags = base.flags,
		.depth = (uint8_t)(base.track_depth >> 24),
		.category = base.category,
		.name = base.name,
		.track = base.track_depth & DREC_TRACK_MAX,
		.start = base.start,
		.dur_or_value = base.dur_or_value,
	};
	struct cursor rest = {(const uint8_t *)bytes + sizeof(base), total - sizeof(base)};
	if (take_additions(&rest, &event) < 0)
		return -EBADMSG;
	*ret_event = event;
	return (int)total;
}

double drec_event_value(const struct drec_event *event)
{
	double value;
	memcpy(&value, &event->dur_or_value, sizeof(value));
	return value;
}

uint64_t drec_value_bits(double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static const char *name_of(const char *const *names, size_t count, unsigned index)
{
	return index < count && names[index] ? names[index] : "unknown";
}

const char *drec_kind_name(unsigned kind)
{
	static const char *const names[DREC_KIND_LIMIT] = {
		[DREC_SPAN] = "span",
		[DREC_INSTANT] = "instant",
		[DREC_COUNTER] = "counter",
		[DREC_FLOW_BEGIN] = "flow_begin",
		[DREC_FLOW_STEP] = "flow_step",
		[DREC_FLOW_END] = "flow_end",
		[DREC_BEGIN] = "begin",
		[DREC_END] = "end",
		[DREC_ASYNC_BEGIN] = "async_begin",
		[DREC_ASYNC_INSTANT] = "async_instant",
		[DREC_ASYNC_END] = "async_end",
		[DREC_MARK] = "mark",
		[DREC_META] = "meta",
		[DREC_OTHER] = "other",
		[DREC_LOSS] = "loss",
	};
	return name_of(names, DREC_KIND_LIMIT, kind);
}

const char *drec_loss_name(unsigned reason)
{
	static const char *const names[DREC_LOSS_LIMIT] = {
		[DREC_LOSS_PINNED_FULL] = "pinned_full",
		[DREC_LOSS_TOO_BIG] = "too_big",
		[DREC_LOSS_REENTRANT] = "reentrant",
		[DREC_LOSS_NO_SLOT] = "no_slot",
		[DREC_LOSS_CONTENDED] = "contended",
		[DREC_LOSS_THREAD_EXIT] = "thread_exit",
		[DREC_LOSS_SOURCE] = "source",
	};
	return name_of(names, DREC_LOSS_LIMIT, reason);
}

const char *drec_mark_name(unsigned mark)
{
	static const char *const names[DREC_MARK_LIMIT] = {
		[DREC_MARK_STEP_BEGIN] = "step_begin",
		[DREC_MARK_STEP_END] = "step_end",
		[DREC_MARK_PHASE_BEGIN] = "phase_begin",
		[DREC_MARK_PHASE_END] = "phase_end",
		[DREC_MARK_CLOSE] = "close",
		[DREC_MARK_EXIT] = "exit",
		[DREC_MARK_TRIGGER] = "trigger",
	};
	return name_of(names, DREC_MARK_LIMIT, mark);
}
