/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The planes and lines of an XSpace: where they are and which track they are. Nothing is copied; all of it
 * points into the file's bytes.
 */
#ifndef REDUCER_XPLANE_SPACE_H
#define REDUCER_XPLANE_SPACE_H

#include <stdbool.h>

#include "proto.h"
#include "xplane_map.h"
#include "xplane_parse.h"

struct xplane_row {
	struct proto content;
	const uint8_t *from; /* its field */
	int64_t tid;
	bool noted;                /* by the writer: what its tid is */
	struct reducer_text given; /* that, as JSON; nothing where it has none */
	bool part;                 /* a further line of a track: has no metadata events of its own */
	bool cut;                  /* the file ends inside */
};

enum xplane_special { XPLANE_ORDINARY, XPLANE_MEMBERS, XPLANE_REDUCED };

struct xplane_plane {
	struct proto content;
	const uint8_t *from;
	struct reducer_text name;
	int64_t id;
	int64_t pid;
	bool noted;                /* by the writer: what its pid is */
	struct reducer_text given; /* that, as JSON; nothing where it has none */
	struct xplane_row *row;
	size_t n_rows;
	enum xplane_special special;
	bool cut;
};

struct xplane_space {
	const uint8_t *data;
	size_t bytes;
	struct xplane_plane *plane;
	size_t n_planes, room, n_rows;
	int has_base;
	int64_t base_unix_ns;
	struct buffer texts[3]; /* errors, warnings, hostnames: JSON arrays without their brackets */
	struct reducer_read_report *report; /* may be NULL */
};

/* Finds all of it. 0, -ENOMEM, or -EBADMSG where nothing of an XSpace is there. What is damaged goes to
 * space->report. */
int xplane_space_find(struct xplane_space *space, const uint8_t *data, size_t bytes,
		      struct reducer_read_report *report);
void xplane_space_free(struct xplane_space *space);

/* Reports something at `at` that is not delivered; `skipped` bytes of it. */
void xplane_problem(const struct xplane_space *space, const uint8_t *at, size_t skipped, const char *format,
		    ...) __attribute__((format(printf, 4, 5)));

/* pid and tid as JSON. */
void xplane_add_group(struct buffer *out, const struct xplane_plane *plane);
void xplane_add_track(struct buffer *out, const struct xplane_row *row);
void xplane_add_i64(struct buffer *out, int64_t value);

#define XPLANE_MEMBERS_PLANE "driverec.members"
#define XPLANE_ENVIRONMENT "Task Environment"
#define XPLANE_COUNTERS "_counters_"

#endif
