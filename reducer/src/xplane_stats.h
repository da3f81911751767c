/* SPDX-License-Identifier: Apache-2.0 */
/* JSON args as stats: what xplane_value.h makes of stats, the other way round. */
#ifndef REDUCER_XPLANE_STATS_H
#define REDUCER_XPLANE_STATS_H

#include "xplane_names.h"

/* Where the stats of one event go. Zeroed at first. */
struct xplane_stats {
	struct xplane_names *names;
	struct buffer stats; /* fields `number` of the message */
	struct buffer rest;  /* further fields of the event's metadata ("meta." and "meta:") */
	struct buffer key, text;
	uint32_t number;
	bool plain_keys; /* "meta." means nothing */
};

/* Starts anew for a message whose stats are fields `number`. */
void xplane_stats_clear(struct xplane_stats *stats, struct xplane_names *names, uint32_t number);
void xplane_stats_free(struct xplane_stats *stats);

/* Args of any form: an object's members, or anything else as one stat. */
void xplane_stats_add_args(struct xplane_stats *stats, struct reducer_text args);
void xplane_stats_add_text(struct xplane_stats *stats, const char *name, struct reducer_text text);
void xplane_stats_add_u64(struct xplane_stats *stats, const char *name, uint64_t value);
/* Category, id and further members of an event. */
void xplane_stats_add_event(struct xplane_stats *stats, const struct reducer_event *event);

/* 0 or -ENOMEM. */
int xplane_stats_failed(const struct xplane_stats *stats);

/* A JSON number as an XStat's value, its field number XSTAT_INT64, XSTAT_UINT64 or XSTAT_DOUBLE; XSTAT_NONE
 * where it is none or no such value is it. */
unsigned xplane_number_of(struct reducer_text json, uint64_t *ret_bits);

/* The member of a JSON object, empty where there is none; a text's inner bytes undone into `out`. */
struct reducer_text xplane_member_of(struct reducer_text object, const char *key);
bool xplane_string_of(struct buffer *out, struct reducer_text json, struct reducer_text *ret_text);

#endif
