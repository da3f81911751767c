/* SPDX-License-Identifier: Apache-2.0 */
/* A plane's metadata by id: what an id of an event or a stat means. */
#ifndef REDUCER_XPLANE_MAP_H
#define REDUCER_XPLANE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto.h"

enum { XPLANE_METADATA_MAX = 1 << 22 }; /* entries a plane; further ones are not known */

/* Stats of our own, by which what an XPlane has no field for comes back as it was (xplane_writer.h). */
enum xplane_own {
	XPLANE_NOT_OWN,
	XPLANE_OWN_EVENTS,
	XPLANE_OWN_CATEGORY,
	XPLANE_OWN_ID,
	XPLANE_OWN_EXTRA,
	XPLANE_OWN_ARGS,
	XPLANE_OWN_PID,
	XPLANE_OWN_PROCESS_NAME,
	XPLANE_OWN_LINE,
	XPLANE_OWN_META,
	XPLANE_OWN_LIMIT
};
const char *xplane_own_name(enum xplane_own own);

/* The description of a stat whose texts are JSON values. */
#define XPLANE_JSON_DESCRIPTION "driverec.json"

struct xplane_entry {
	int64_t id;
	const uint8_t *at; /* event metadata: the message; stat metadata: the name */
	uint32_t bytes;
	uint8_t own;  /* enum xplane_own */
	uint8_t json; /* texts are JSON values */
	uint8_t used;
	uint8_t taken; /* the place in the table is */
};

/* Zeroed at first. */
struct xplane_map {
	struct xplane_entry *entry;
	size_t room; /* a power of two, or 0 */
	size_t n;
	size_t left_out; /* beyond XPLANE_METADATA_MAX */
	bool merges;     /* a stat of it is driverec.events */
};

/* Takes all of a plane's entries of field XPLANE_EVENT_METADATA or XPLANE_STAT_METADATA; of several with one
 * id the last counts. 0 or -ENOMEM. */
int xplane_map_fill(struct xplane_map *map, struct proto plane, uint32_t field);

/* The entry of the id, or NULL. */
struct xplane_entry *xplane_map_find(const struct xplane_map *map, int64_t id);

/* The entry of the id, made where there was none; NULL where it cannot be made: *ret_new says. */
struct xplane_entry *xplane_map_put(struct xplane_map *map, int64_t id, bool *ret_new);

struct reducer_text xplane_entry_text(const struct xplane_entry *entry);

void xplane_map_free(struct xplane_map *map);

#endif
