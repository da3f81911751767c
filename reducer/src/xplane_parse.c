/* SPDX-License-Identifier: Apache-2.0 */
#include "xplane_parse.h"

#include <errno.h>

int xplane_next(struct proto *message, struct proto_field *ret_field, bool *ret_cut)
{
	int result = proto_next(message, ret_field);
	*ret_cut = false;
	if (result == -EBADMSG && proto_next_cut(message, ret_field)) {
		*ret_cut = true;
		return 1;
	}
	return result;
}

/* A field of another wire type than the format has is an unknown field. */
static bool is_number(const struct proto_field *field, uint32_t number)
{
	return field->number == number && field->wire == PROTO_VARINT;
}

static bool is_text(const struct proto_field *field, uint32_t number)
{
	return field->number == number && field->wire == PROTO_BYTES;
}

struct reducer_text xplane_text_field(struct proto message, uint32_t number)
{
	struct reducer_text text = {NULL, 0};
	struct proto_field field;
	while (proto_next(&message, &field) > 0)
		if (is_text(&field, number))
			text = proto_text(field.content);
	return text;
}

int xplane_parse_line(struct proto message, struct xplane_line *ret)
{
	struct proto_field field;
	int result;
	*ret = (struct xplane_line){0};
	while ((result = proto_next(&message, &field)) > 0) {
		if (is_number(&field, XLINE_ID))
			ret->id = (int64_t)field.value;
		else if (is_text(&field, XLINE_NAME))
			ret->name = proto_text(field.content);
		else if (is_number(&field, XLINE_TIMESTAMP_NS))
			ret->timestamp_ns = (int64_t)field.value;
		else if (is_number(&field, XLINE_DURATION_PS))
			ret->duration_ps = (int64_t)field.value;
		else if (is_number(&field, XLINE_DISPLAY_ID))
			ret->display_id = (int64_t)field.value;
		else if (is_text(&field, XLINE_DISPLAY_NAME))
			ret->display_name = proto_text(field.content);
	}
	return result;
}

int xplane_parse_event(struct proto message, struct xplane_event *ret)
{
	struct proto_field field;
	int result;
	*ret = (struct xplane_event){0};
	while ((result = proto_next(&message, &field)) > 0) {
		if (field.wire != PROTO_VARINT)
			continue;
		switch (field.number) {
		case XEVENT_METADATA_ID:
			ret->metadata_id = (int64_t)field.value;
			break;
		case XEVENT_OFFSET_PS:
			ret->offset_ps = (int64_t)field.value;
			ret->aggregated = false;
			break;
		case XEVENT_OCCURRENCES:
			ret->occurrences = (int64_t)field.value;
			ret->aggregated = true;
			break;
		case XEVENT_DURATION_PS:
			ret->duration_ps = (int64_t)field.value;
			ret->has_duration = true;
			break;
		default:
			break;
		}
	}
	return result;
}

static const uint8_t wire_of_stat[] = {
	[XSTAT_DOUBLE] = PROTO_FIXED64, [XSTAT_UINT64] = PROTO_VARINT, [XSTAT_INT64] = PROTO_VARINT,
	[XSTAT_STR] = PROTO_BYTES,	[XSTAT_BYTES] = PROTO_BYTES,   [XSTAT_REF] = PROTO_VARINT,
	[XSTAT_GZIP] = PROTO_BYTES,
};

int xplane_parse_stat(struct proto message, struct xplane_stat *ret)
{
	struct proto_field field;
	int result;
	*ret = (struct xplane_stat){0};
	while ((result = proto_next(&message, &field)) > 0) {
		if (is_number(&field, XSTAT_METADATA_ID)) {
			ret->metadata_id = (int64_t)field.value;
		} else if (field.number >= XSTAT_DOUBLE && field.number <= XSTAT_GZIP &&
			   field.wire == wire_of_stat[field.number]) {
			ret->kind = field.number;
			ret->number = field.value;
			ret->text = proto_text(field.content);
		}
	}
	return result;
}

bool xplane_event_start(const struct xplane_line *line, const struct xplane_event *event, int64_t *ret_ns,
			uint16_t *ret_ps)
{
	__int128 ps = (__int128)line->timestamp_ns * 1000 + event->offset_ps;
	__int128 ns = ps / 1000;
	int rest = (int)(ps % 1000);
	if (rest < 0) {
		rest += 1000;
		ns--;
	}
	if (ns < INT64_MIN || ns > INT64_MAX)
		return false;
	*ret_ns = (int64_t)ns;
	*ret_ps = (uint16_t)rest;
	return true;
}
