/* SPDX-License-Identifier: Apache-2.0 */
/* Stats as JSON args. */
#ifndef REDUCER_XPLANE_VALUE_H
#define REDUCER_XPLANE_VALUE_H

#include "xplane_map.h"
#include "xplane_parse.h"
#include "xplane_space.h"

#define XPLANE_META_STAT "meta."
#define XPLANE_META_DISPLAY_NAME "meta:display_name"
#define XPLANE_META_BYTES "meta:metadata"
#define XPLANE_META_CHILDREN "meta:child_ids"

/* 17 significant digits, always with a point or an exponent, whatever the locale; the not finite as texts. */
void xplane_add_double(struct buffer *out, double value);

void xplane_add_base64(struct buffer *out, struct reducer_text bytes);
/* False where it is no base64; out is then as it was. */
bool xplane_decode_base64(struct buffer *out, struct reducer_text text);

/* What the stats of one message say. */
struct xplane_said {
	struct buffer args;          /* `{"a":1` without the closing brace, or empty */
	struct reducer_text own[XPLANE_OWN_LIMIT]; /* values of our own stats that are no args */
	double first_number;
	bool merged, has_number;
};

/* Starts anew for an event. */
void xplane_said_clear(struct xplane_said *said);

/* Adds the stats of field `number` of the message, names prefixed. */
void xplane_say_stats(struct xplane_said *said, const struct xplane_space *space, struct proto message,
		      uint32_t number, const struct xplane_map *stats, const char *prefix);
/* Adds what stands in an event's metadata beside its name. */
void xplane_say_metadata(struct xplane_said *said, const struct xplane_space *space, struct proto metadata,
			 const struct xplane_map *stats);
void xplane_say_text(struct xplane_said *said, const char *key, struct reducer_text text);
void xplane_say_i64(struct xplane_said *said, const char *key, int64_t value);

/* Closes the args; empty where nothing was said. */
struct reducer_text xplane_said_args(struct xplane_said *said);

#endif
