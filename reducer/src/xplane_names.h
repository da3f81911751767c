/* SPDX-License-Identifier: Apache-2.0 */
/* A plane's metadata while it is written: each name gets an id once. */
#ifndef REDUCER_XPLANE_NAMES_H
#define REDUCER_XPLANE_NAMES_H

#include <stdbool.h>

#include "buffer.h"
#include "xplane_map.h"

/* Runs of bytes, each with a number. Zeroed at first. */
struct xplane_intern {
	struct xplane_interned {
		uint64_t hash;
		size_t at, bytes;
		int64_t id; /* 0 = none stands here */
	} *entry;
	size_t room, n;
	struct buffer keys;
};

/* The place of the key's number, 0 at first: the caller sets it at once. NULL where memory ran out. */
int64_t *xplane_intern(struct xplane_intern *intern, struct reducer_text key);
/* The number of a key that is there, or NULL. */
int64_t *xplane_intern_find(const struct xplane_intern *intern, struct reducer_text key);
void xplane_intern_free(struct xplane_intern *intern);

/* Zeroed at first; `taken_…` are ids that are in use already, or NULL. */
struct xplane_names {
	struct xplane_intern stats, events;
	int64_t last_stat, last_event;
	const struct xplane_map *taken_stats, *taken_events;
	struct buffer key;
	struct buffer fields; /* the map entries, as fields of the plane */
};

/* Ids; 0 where memory ran out, and names->fields.failed then says so. `json`: its texts are JSON values. */
int64_t xplane_names_stat(struct xplane_names *names, struct reducer_text name, bool json);
/* `rest`: further fields of the XEventMetadata, encoded. */
int64_t xplane_names_event(struct xplane_names *names, struct reducer_text name, struct reducer_text rest);
/* The id of a text that a stat may refer to; 0 where it is better written in place. */
int64_t xplane_names_ref(struct xplane_names *names, struct reducer_text text);

void xplane_names_free(struct xplane_names *names);

#endif
