/* SPDX-License-Identifier: Apache-2.0 */
/* Scanning, judging, mending, quoting and undoing JSON: against each other and against strict_json.c. */
#include <stdlib.h>
#include <string.h>

#include "decimal.h"
#include "fuzz.h"
#include "json.h"

static struct reducer_text text_of(const struct buffer *buffer)
{
	return (struct reducer_text){buffer->data, buffer->bytes};
}

static void same(const struct buffer *a, const struct buffer *b, const char *what)
{
	fuzz_require(!a->failed && !b->failed, "%s: no memory", what);
	fuzz_require(a->bytes == b->bytes && (a->bytes == 0 || memcmp(a->data, b->data, a->bytes) == 0),
		     "%s:\n%.*s\n%.*s", what, (int)a->bytes, a->data, (int)b->bytes, b->data);
}

static void check_valid(struct reducer_text text)
{
	size_t at = 0;
	bool strict = strict_json(text.data, text.bytes, &at);
	bool spaced = text.bytes && (json_skip_space(text.data, text.data + 1) > text.data ||
				     strchr(" \t\r\n", text.data[text.bytes - 1]));
	/* Ours takes the value alone, without space around it, and no deeper than its limit. */
	if (json_valid(text))
		fuzz_require(strict, "invalid at %zu, but accepted", at);
	else if (strict && !spaced)
		fuzz_require(text.bytes > JSON_DEPTH_MAX, "valid, but refused");
	if (!strict || spaced || text.bytes > JSON_DEPTH_MAX)
		return;
	const char *p = text.data, *end = text.data + text.bytes;
	enum json_end result = json_value(&p, end, JSON_STRICT);
	bool word = *text.data != '{' && *text.data != '[' && *text.data != '"';
	if (word)
		fuzz_require(result == JSON_MORE, "a bare word may go on");
	else
		fuzz_require(result == JSON_OK && p == end, "a valid value is scanned to its end");
	p = text.data;
	if (*p == '{' || *p == '[') {
		struct json_scan scan = {0};
		fuzz_require(json_scan(&scan, p, end) == end, "brackets end with the value");
	}
}

static void check_repair(struct reducer_text text)
{
	struct buffer once = {0}, twice = {0};
	size_t at = 0;
	json_repair(&once, text);
	fuzz_require(json_valid(text_of(&once)), "mended, but not valid: %.*s", (int)once.bytes, once.data);
	fuzz_require(strict_json(once.data, once.bytes, &at), "mended, but invalid at %zu: %.*s", at, (int)once.bytes,
		     once.data);
	json_repair(&twice, text_of(&once));
	same(&once, &twice, "mended again it stays");
	buffer_clear(&once);
	buffer_clear(&twice);
	json_repair_members(&once, text);
	fuzz_require(json_valid_members(text_of(&once)), "mended members, but not valid: %.*s", (int)once.bytes,
		     once.data);
	json_repair_members(&twice, text_of(&once));
	same(&once, &twice, "members mended again stay");
	buffer_clear(&twice);
	buffer_add_byte(&twice, '{');
	buffer_add_text(&twice, text_of(&once));
	buffer_add_byte(&twice, '}');
	fuzz_require(strict_json(twice.data, twice.bytes, &at), "mended members, but invalid at %zu: %.*s", at,
		     (int)twice.bytes, twice.data);
	buffer_free(&once);
	buffer_free(&twice);
}

static void check_texts(struct reducer_text text)
{
	struct buffer said = {0}, quoted = {0}, back = {0};
	json_unescape(&said, text);
	fuzz_require(strict_utf8(said.data, said.bytes), "undone, but no UTF-8");
	if (json_is_plain(text))
		fuzz_require(said.bytes == text.bytes && (!text.bytes || memcmp(said.data, text.data, text.bytes) == 0),
			     "a plain text says itself");
	json_quote(&quoted, text_of(&said));
	fuzz_require(json_valid_string(text_of(&quoted)) && strict_json(quoted.data, quoted.bytes, NULL),
		     "quoted, but not valid: %.*s", (int)quoted.bytes, quoted.data);
	json_unescape(&back, (struct reducer_text){quoted.data + 1, quoted.bytes - 2});
	same(&said, &back, "a quoted text says itself");
	buffer_clear(&quoted);
	json_quote(&quoted, text);
	fuzz_require(json_valid_string(text_of(&quoted)), "any bytes can be quoted");
	buffer_free(&said);
	buffer_free(&quoted);
	buffer_free(&back);
}

static void check_members(struct reducer_text text)
{
	struct reducer_text rest = text, key, value;
	const char *end = text.data + text.bytes, *last = text.data;
	size_t members = 0;
	while (json_next_member(&rest, &key, &value)) {
		fuzz_require(key.data >= last && key.bytes >= 2 && key.data + key.bytes <= value.data &&
				     value.bytes > 0 && value.data + value.bytes == rest.data &&
				     rest.data + rest.bytes == end,
			     "a member lies in the text");
		last = rest.data;
		members++;
	}
	fuzz_require(members <= text.bytes / 4, "%zu members", members);
}

/* What the scanners say of a beginning, they say of the whole. */
static void check_beginnings(struct reducer_text text, struct fuzz_dice dice)
{
	const char *all = text.data + text.bytes, *part = text.data + fuzz_roll(&dice, text.bytes + 1);
	for (unsigned i = 0; i < 5; i++) {
		const char *p = text.data, *q = text.data;
		bool is_key = i == 3;
		enum json_end first, then;
		if (i < 2) {
			first = json_value(&p, part, (enum json_how)i);
			then = json_value(&q, all, (enum json_how)i);
		} else if (i < 4) {
			first = json_string_loose(&p, part, is_key, JSON_LOOSE);
			then = json_string_loose(&q, all, is_key, JSON_LOOSE);
		} else {
			first = json_string(&p, part);
			then = json_string(&q, all);
		}
		fuzz_require(p >= text.data && p <= part && q >= text.data && q <= all, "scanner %u stays inside", i);
		fuzz_require(first == JSON_MORE || first == then, "scanner %u of %zu bytes: %d, of all: %d", i,
			     (size_t)(part - text.data), first, then);
		fuzz_require(first != JSON_OK || p == q, "scanner %u ends at the same place", i);
	}
	const char *p = text.data;
	json_value(&p, all, JSON_LOOSE_FINAL);
	fuzz_require(p >= text.data && p <= all, "it stays inside at the end, too");
}

static void check_scan(struct reducer_text text, struct fuzz_dice dice)
{
	struct json_scan whole = {0}, pieces = {0};
	const char *end = text.data + text.bytes, *found = json_scan(&whole, text.data, end), *at = text.data;
	const char *in_pieces = NULL;
	while (at < end && !in_pieces) {
		size_t some = 1 + fuzz_roll(&dice, 16);
		if (some > (size_t)(end - at))
			some = (size_t)(end - at);
		in_pieces = json_scan(&pieces, at, at + some);
		at += some;
	}
	fuzz_require(found == in_pieces, "brackets end at the same place in pieces");
}

static void check_numbers(struct reducer_text text)
{
	int64_t ns = 0, integer = 0;
	uint64_t whole = 0;
	uint16_t ps = 0;
	double value = 0;
	struct buffer out = {0};
	if (decimal_us(text, &ns, &ps)) {
		fuzz_require(ps < 1000, "%u ps", ps);
		/* Written out and read back it is the same time. */
		int64_t again_ns = 0;
		uint16_t again_ps = 0;
		buffer_add_us(&out, ns, ps, 0);
		fuzz_require(decimal_us(text_of(&out), &again_ns, &again_ps) && ns == again_ns && ps == again_ps,
			     "%.*s is %lld ns %u ps, written as %.*s", (int)text.bytes, text.data, (long long)ns, ps,
			     (int)out.bytes, out.data);
		fuzz_require(decimal_double(text, &value), "a time is a number");
	}
	buffer_clear(&out);
	if (decimal_u64(text, &whole)) {
		buffer_add_u64(&out, whole);
		fuzz_require(out.bytes == text.bytes && memcmp(out.data, text.data, text.bytes) == 0,
			     "it prints back as it was");
		fuzz_require(!decimal_i64(text, &integer) || (uint64_t)integer == whole, "the same integer");
	}
	buffer_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Memory of its own, to the last byte, and a place even for nothing. */
	char *own = malloc(size ? size : 1);
	fuzz_require(own != NULL, "no memory");
	if (size)
		memcpy(own, data, size);
	struct reducer_text text = {own, size};
	check_valid(text);
	check_repair(text);
	check_texts(text);
	check_members(text);
	check_beginnings(text, fuzz_dice(data, size));
	check_scan(text, fuzz_dice(data, size));
	check_numbers(text);
	free(own);
	return 0;
}
