/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scanning JSON in place: where texts and values end, what texts say, and making valid what is not.
 *
 * All scanners take [p, end) and never read beyond. JSON_MORE says that the value goes on after `end`,
 * JSON_BAD that no continuation would make it right.
 */
#ifndef REDUCER_JSON_H
#define REDUCER_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include <reducer/event.h>

#include "buffer.h"

enum json_end { JSON_OK, JSON_MORE, JSON_BAD };

enum { JSON_DEPTH_MAX = 1024 };

const char *json_skip_space(const char *p, const char *end);

/* `*p` is after the opening quote; on JSON_OK it is put after the closing one. */
enum json_end json_string(const char **p, const char *end);

/* How to read what may be damaged. Whatever is read is the same however much of it is there already. */
enum json_how {
	JSON_STRICT = 0,
	JSON_LOOSE = 1,      /* quotes inside texts may not be escaped, values may be missing */
	JSON_LOOSE_FINAL = 2 /* the same, and nothing comes after `end` */
};

/*
 * The same where quotes inside may not be escaped: the closing quote is the first one that is followed by
 * what can follow a text: a colon after a key; after a value `}` `]` or a comma and a further member. On
 * JSON_MORE `*p` is put at the quote of which that cannot be said yet, or at `end`.
 */
enum json_end json_string_loose(const char **p, const char *end, bool is_key, enum json_how how);

/* `*p` is at the value's first byte; on JSON_OK it is put after its last. A bare word of any letters is a
 * value. */
enum json_end json_value(const char **p, const char *end, enum json_how how);

/* A container's end found in pieces, by its brackets and quotes alone. Start zeroed at its first byte. */
struct json_scan {
	unsigned depth;
	bool in_string;
	bool escaped;
	bool begun;
};
/* Returns the place after the container's last byte, or NULL if it goes on. */
const char *json_scan(struct json_scan *scan, const char *p, const char *end);

/* Strict validity (RFC 8259, UTF-8), for what is about to be written. */
bool json_valid(struct reducer_text value);
bool json_valid_string(struct reducer_text value);
/* `"key":value,"key":value`; empty is valid. */
bool json_valid_members(struct reducer_text members);

/* Appends the UTF-8 that a text says; `inner` is what stands between the quotes. Bad escapes stay as they
 * are, bad UTF-8 and lone surrogates become U+FFFD. */
void json_unescape(struct buffer *out, struct reducer_text inner);
bool json_is_plain(struct reducer_text inner); /* no escapes and valid UTF-8: it says itself */

/* Appends a quoted JSON text that says `text`; bad UTF-8 becomes U+FFFD. */
void json_quote(struct buffer *out, struct reducer_text text);

/* Appends valid JSON that says as much of a damaged value (or run of members) as can be told. */
void json_repair(struct buffer *out, struct reducer_text value);
void json_repair_members(struct buffer *out, struct reducer_text members);

/* Walks `"key":value,…`: 1 and the next member (key and value raw), 0 at the end or at damage. */
int json_next_member(struct reducer_text *rest, struct reducer_text *ret_key, struct reducer_text *ret_value);

/* Bytes of one well-formed UTF-8 sequence at p, 0 if there is none. */
size_t utf8_sequence(const char *p, const char *end);

#endif
