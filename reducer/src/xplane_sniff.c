/* SPDX-License-Identifier: Apache-2.0 */
#include <reducer/xplane.h>

#include "json.h"
#include "xplane_parse.h"

enum { NAME_BYTES_MAX = 4096 };

/* Text as people write it: no control bytes. The head may end inside its last letter. */
static bool is_words(struct reducer_text text, bool cut)
{
	const char *p = text.data, *end = text.data + text.bytes;
	while (p < end) {
		size_t length = utf8_sequence(p, end);
		if (length == 0 && cut && end - p < 4)
			return true;
		if (length == 0 || (unsigned char)*p < 0x20 || *p == 0x7f)
			return false;
		p += length;
	}
	return text.bytes > 0;
}

static bool plane_field_is_known(const struct proto_field *field)
{
	if (field->number == XPLANE_ID)
		return field->wire == PROTO_VARINT;
	return field->number > XPLANE_STATS || field->wire == PROTO_BYTES;
}

/*
 * Every writer of protobuf puts fields in the order of their numbers: an optional id, then the name.
 * Perfetto's packets begin with 0x0a too, but nothing that looks like a name stands there.
 */
static bool is_plane(struct proto plane)
{
	struct proto_field field;
	bool cut, named = false;
	int result;
	while ((result = xplane_next(&plane, &field, &cut)) > 0) {
		if (!plane_field_is_known(&field))
			return false;
		if (field.number == XPLANE_ID)
			continue;
		if (!named && (field.number != XPLANE_NAME ||
			       (!cut && proto_bytes(field.content) > NAME_BYTES_MAX) ||
			       !is_words(proto_text(field.content), cut)))
			return false;
		named = true;
		if (cut)
			return true;
	}
	/* The head may end inside a tag, but not after junk. */
	return named && (result == 0 || proto_bytes(plane) < PROTO_VARINT_BYTES_MAX);
}

int reducer_xplane_sniff(const void *head, size_t n)
{
	struct proto message = proto_of((struct reducer_text){head, n});
	struct proto_field field;
	bool cut;
	if (xplane_next(&message, &field, &cut) <= 0 || field.wire != PROTO_BYTES)
		return 0;
	if (field.number == XSPACE_PLANES)
		return is_plane(field.content);
	/* Without planes: errors, warnings and hostnames alone, all of them texts. */
	for (;;) {
		if (cut || field.wire != PROTO_BYTES || field.number < XSPACE_ERRORS ||
		    field.number > XSPACE_HOSTNAMES || !is_words(proto_text(field.content), false))
			return 0;
		int result = xplane_next(&message, &field, &cut);
		if (result <= 0)
			return result == 0;
	}
}
