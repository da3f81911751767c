/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of an XSpace that are read by us, one at a time; unknown fields are passed over. */
#ifndef REDUCER_XPLANE_PARSE_H
#define REDUCER_XPLANE_PARSE_H

#include <stdbool.h>

#include "proto.h"

/* Field numbers. */
enum {
	XSPACE_PLANES = 1,
	XSPACE_ERRORS = 2,
	XSPACE_WARNINGS = 3,
	XSPACE_HOSTNAMES = 4,

	XPLANE_ID = 1,
	XPLANE_NAME = 2,
	XPLANE_LINES = 3,
	XPLANE_EVENT_METADATA = 4,
	XPLANE_STAT_METADATA = 5,
	XPLANE_STATS = 6,

	XLINE_ID = 1,
	XLINE_NAME = 2,
	XLINE_TIMESTAMP_NS = 3,
	XLINE_EVENTS = 4,
	XLINE_DURATION_PS = 9,
	XLINE_DISPLAY_ID = 10,
	XLINE_DISPLAY_NAME = 11,

	XEVENT_METADATA_ID = 1,
	XEVENT_OFFSET_PS = 2,
	XEVENT_DURATION_PS = 3,
	XEVENT_STATS = 4,
	XEVENT_OCCURRENCES = 5,

	XSTAT_METADATA_ID = 1,
	XSTAT_NONE = 0, /* no value */
	XSTAT_DOUBLE = 2,
	XSTAT_UINT64 = 3,
	XSTAT_INT64 = 4,
	XSTAT_STR = 5,
	XSTAT_BYTES = 6,
	XSTAT_REF = 7,
	XSTAT_GZIP = 8,

	XEVENT_METADATA_NAME = 2,
	XEVENT_METADATA_BYTES = 3,
	XEVENT_METADATA_DISPLAY_NAME = 4,
	XEVENT_METADATA_STATS = 5,
	XEVENT_METADATA_CHILD = 6,

	XSTAT_METADATA_NAME = 2,
	XSTAT_METADATA_DESCRIPTION = 3,

	MAP_KEY = 1,
	MAP_VALUE = 2
};

struct xplane_line {
	int64_t id;
	int64_t timestamp_ns;
	int64_t duration_ps;
	int64_t display_id;
	struct reducer_text name, display_name;
};

struct xplane_event {
	int64_t metadata_id;
	int64_t offset_ps;
	int64_t duration_ps;
	int64_t occurrences;
	bool aggregated;   /* occurrences instead of a place in time */
	bool has_duration; /* the field stands, be it 0 */
};

struct xplane_stat {
	int64_t metadata_id;
	unsigned kind;   /* XSTAT_NONE .. XSTAT_GZIP */
	uint64_t number; /* the bits of all but texts */
	struct reducer_text text;
};

/*
 * All return 0, or -EBADMSG where the message cannot be read to its end; what stood before is in *ret then.
 * A line's end is not looked for where its events are cut off.
 */
int xplane_parse_line(struct proto message, struct xplane_line *ret);
int xplane_parse_event(struct proto message, struct xplane_event *ret);
int xplane_parse_stat(struct proto message, struct xplane_stat *ret);

/* Start in ns and ps; false beyond int64 ns. */
bool xplane_event_start(const struct xplane_line *line, const struct xplane_event *event, int64_t *ret_ns,
			uint16_t *ret_ps);

/* The next field, or one of PROTO_BYTES that the end cuts off: then *ret_cut is set. */
int xplane_next(struct proto *message, struct proto_field *ret_field, bool *ret_cut);

/* The text of the last field `number`, empty where there is none. */
struct reducer_text xplane_text_field(struct proto message, uint32_t number);

#endif
