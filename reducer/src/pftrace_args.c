/* SPDX-License-Identifier: Apache-2.0 */
/* JSON values as debug annotations. */
#include <math.h>
#include <string.h>

#include "decimal.h"
#include "json.h"
#include "pftrace_inside.h"
#include "proto.h"
#include "text.h"

enum { DEPTH_MAX = 32 }; /* deeper values are written as the JSON that they are */

static bool add_value(struct buffer *out, struct pf_names *names, struct reducer_text value, unsigned depth);

void pf_add_clean(struct buffer *out, struct reducer_text text)
{
	const char *p = text.data, *end = text.bytes ? p + text.bytes : p, *from = p;
	while (p < end) {
		size_t bytes = (unsigned char)*p < 0x80 ? 1 : utf8_sequence(p, end);
		if (bytes) {
			p += bytes;
			continue;
		}
		buffer_add(out, from, (size_t)(p - from));
		buffer_add_literal(out, "\xef\xbf\xbd");
		from = ++p;
	}
	if (from != end)
		buffer_add(out, from, (size_t)(end - from));
}

static void add_name(struct buffer *out, struct pf_names *names, struct reducer_text key)
{
	uint32_t iid = pf_names_iid(names, PF_NAME_ANNOTATION, key);
	if (iid)
		proto_add_u64(out, PF_ANNOTATION_NAME_IID, iid);
	else
		proto_add_bytes(out, PF_ANNOTATION_NAME, key);
}

static void add_text(struct buffer *out, struct reducer_text inner)
{
	struct buffer said = {0};
	if (json_is_plain(inner)) {
		proto_add_bytes(out, PF_ANNOTATION_STRING, inner);
		return;
	}
	json_unescape(&said, inner);
	proto_add_bytes(out, PF_ANNOTATION_STRING, (struct reducer_text){said.data, said.bytes});
	if (said.failed)
		out->failed = said.failed;
	buffer_free(&said);
}

struct pf_number pf_number_of(struct reducer_text value)
{
	struct pf_number number = {.kind = PF_NUMBER_NONE};
	uint64_t large;
	if (decimal_i64(value, &number.integer)) {
		number.kind = PF_NUMBER_INT;
	} else if (decimal_u64(value, &large)) {
		number.kind = PF_NUMBER_UINT;
		number.integer = (int64_t)large;
	} else if (text_is(value, "NaN") || text_is(value, "-nan") || text_is(value, "nan")) {
		number.kind = PF_NUMBER_DOUBLE;
		number.real = (double)NAN;
	} else if (text_is(value, "Infinity") || text_is(value, "-Infinity")) {
		number.kind = PF_NUMBER_DOUBLE;
		number.real = *value.data == '-' ? -(double)INFINITY : (double)INFINITY;
	} else if (decimal_double(value, &number.real)) {
		/* A whole number beyond 64 bits would lose its digits. */
		bool whole = !memchr(value.data, '.', value.bytes) && !memchr(value.data, 'e', value.bytes) &&
			     !memchr(value.data, 'E', value.bytes);
		number.kind = whole && value.bytes > 17 ? PF_NUMBER_NONE : PF_NUMBER_DOUBLE;
	}
	return number;
}

static void add_word(struct buffer *out, struct reducer_text value)
{
	struct pf_number number = pf_number_of(value);
	if (number.kind == PF_NUMBER_INT)
		proto_add_u64(out, PF_ANNOTATION_INT, (uint64_t)number.integer);
	else if (number.kind == PF_NUMBER_UINT)
		proto_add_u64(out, PF_ANNOTATION_UINT, (uint64_t)number.integer);
	else if (number.kind == PF_NUMBER_DOUBLE)
		proto_add_double(out, PF_ANNOTATION_DOUBLE, number.real);
	else if (text_is(value, "true") || text_is(value, "false"))
		proto_add_u64(out, PF_ANNOTATION_BOOL, *value.data == 't');
	else
		add_text(out, value);
}

/* Whether nothing is left but what may stand between values. */
static bool used_up(struct reducer_text rest)
{
	for (size_t i = 0; i < rest.bytes; i++)
		if (!strchr(", \t\r\n", rest.data[i]) || !rest.data[i])
			return false;
	return true;
}

static bool add_members(struct buffer *out, uint32_t field, struct pf_names *names, struct reducer_text rest,
			unsigned depth, bool (*skip)(struct reducer_text key))
{
	struct reducer_text raw, value;
	struct buffer key = {0};
	bool whole = true;
	while (json_next_member(&rest, &raw, &value)) {
		struct reducer_text said = {raw.data + 1, raw.bytes - 2};
		if (!json_is_plain(said)) {
			buffer_clear(&key);
			json_unescape(&key, said);
			said = (struct reducer_text){key.data, key.bytes};
		}
		if (skip && skip(said))
			continue;
		size_t begun = proto_begin(out, field);
		add_name(out, names, said);
		whole &= add_value(out, names, value, depth);
		proto_end(out, begun);
	}
	if (key.failed)
		out->failed = key.failed;
	buffer_free(&key);
	return whole && used_up(rest);
}

static bool add_elements(struct buffer *out, struct pf_names *names, struct reducer_text inner,
			 unsigned depth)
{
	const char *p = inner.data, *end = inner.data + inner.bytes;
	bool whole = true;
	for (;;) {
		while (p < end && (*p == ',' || *p == ' ' || *p == '\t' || *p == '\r' || *p == '\n'))
			p++;
		if (p == end)
			return whole;
		const char *from = p;
		enum json_end result = json_value(&p, end, false);
		if (result == JSON_MORE && from < end && *from != '"' && *from != '[' && *from != '{')
			p = end; /* a bare word is ended by the array's end */
		else if (result != JSON_OK || p == from)
			return false;
		size_t begun = proto_begin(out, PF_ANNOTATION_ARRAY);
		whole &= add_value(out, names, (struct reducer_text){from, (size_t)(p - from)}, depth);
		proto_end(out, begun);
	}
}

static bool add_value(struct buffer *out, struct pf_names *names, struct reducer_text value, unsigned depth)
{
	char first = value.bytes ? *value.data : 0, last = value.bytes ? value.data[value.bytes - 1] : 0;
	struct reducer_text inner = {value.data + 1, value.bytes >= 2 ? value.bytes - 2 : 0};
	size_t before = out->bytes;
	bool whole = true;
	if (value.bytes >= 2 && first == '"' && last == '"') {
		add_text(out, inner);
		return true;
	}
	if (value.bytes >= 2 && depth < DEPTH_MAX && first == '{' && last == '}')
		whole = add_members(out, PF_ANNOTATION_DICT, names, inner, depth + 1, NULL);
	else if (value.bytes >= 2 && depth < DEPTH_MAX && first == '[' && last == ']')
		whole = add_elements(out, names, inner, depth + 1);
	else
		add_word(out, value);
	/* Neither an empty object nor an empty array has a form of its own. */
	if (out->bytes == before)
		add_text(out, value);
	return whole;
}

void pf_add_annotation(struct buffer *out, struct pf_names *names, struct reducer_text key,
		       struct reducer_text value)
{
	size_t begun = proto_begin(out, PF_EVENT_ANNOTATIONS);
	add_name(out, names, key);
	(void)add_value(out, names, value, 0);
	proto_end(out, begun);
}

/* What is damaged is read once more, as what it must have meant. */
void pf_add_members(struct buffer *out, struct pf_names *names, struct reducer_text members,
		    bool (*skip)(struct reducer_text key))
{
	size_t before = out->bytes;
	if (add_members(out, PF_EVENT_ANNOTATIONS, names, members, 0, skip))
		return;
	struct buffer fixed = {0};
	json_repair_members(&fixed, members);
	out->bytes = before;
	(void)add_members(out, PF_EVENT_ANNOTATIONS, names, (struct reducer_text){fixed.data, fixed.bytes}, 0,
			  skip);
	if (fixed.failed)
		out->failed = fixed.failed;
	buffer_free(&fixed);
}

void pf_add_args(struct buffer *out, struct pf_names *names, struct reducer_text args)
{
	if (args.bytes >= 2 && *args.data == '{' && args.data[args.bytes - 1] == '}')
		pf_add_members(out, names, (struct reducer_text){args.data + 1, args.bytes - 2}, NULL);
	else if (args.bytes)
		pf_add_annotation(out, names, (struct reducer_text){"args", 4}, args);
}
