/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the XPlane writer. xplane_writer.c takes events: the stats of each go, encoded, to the spool,
 * and what orders it stays in memory. xplane_writer_meta.c takes metadata events and members. At the end
 * xplane_writer_pair.c makes spans of begins and ends, xplane_writer_rows.c gives lines their ids and splits
 * those whose events overlap, and xplane_writer_out.c measures and writes the file.
 */
#ifndef REDUCER_XPLANE_WRITER_INSIDE_H
#define REDUCER_XPLANE_WRITER_INSIDE_H

#include <stdbool.h>

#include <reducer/xplane_writer.h>

#include "spool.h"
#include "xplane_names.h"
#include "xplane_stats.h"

enum xw_kind {
	XW_SPAN,
	XW_INSTANT,
	XW_AGGREGATED, /* start_ns is the number of occurrences */
	XW_BEGIN,      /* from here on: not yet paired */
	XW_END,
	XW_ASYNC_BEGIN,
	XW_ASYNC_END,
	XW_GONE /* an end whose begin has it, or left out */
};

enum { XW_NOTHING = UINT32_MAX };

struct xw_event {
	int64_t start_ns, duration_ns;
	uint64_t place;    /* of its stats, in the spool */
	uint32_t bytes;
	uint32_t metadata; /* id of its name; 0: an end without name */
	uint32_t row;
	uint32_t partner;  /* begins: the end whose stats follow; async ones not yet paired: their key */
	uint16_t start_ps, duration_ps;
	uint8_t kind;
	uint8_t has_duration; /* aggregated ones: whether they have one */
};

enum xw_row_kind { XW_THREAD, XW_COUNTERS, XW_ASYNC };

struct xw_row {
	uint32_t plane;
	enum xw_row_kind kind;
	uint32_t part_of;     /* the row whose events did not all fit, or XW_NOTHING */
	struct buffer track;  /* tid as JSON */
	struct buffer name, display_name, sort_index;
	bool has_info;        /* it is a line of an XPlane: written as it was */
	int64_t id, timestamp_ns, duration_ps, display_id;
	/* Set at the end. */
	uint32_t first, n;    /* its events, in `order` */
	uint64_t bytes;       /* of its message */
};

struct xw_plane {
	struct buffer group; /* pid as JSON */
	struct buffer name;  /* process_name */
	bool named, has_info, special, numbered;
	int64_t id;
	struct xplane_names names;
	struct buffer stats; /* fields XPLANE_STATS */
	uint64_t bytes;
};

enum xw_left {
	XW_LEFT_FLOWS,
	XW_LEFT_OPEN,
	XW_LEFT_ENDS,
	XW_LEFT_ASYNC,
	XW_LEFT_OTHER,
	XW_LEFT_SERIES,
	XW_LEFT_NO_NUMBER,
	XW_LEFT_ARGS,
	XW_LEFT_NO_TIME,
	XW_LEFT_FAR,
	XW_LEFT_MEMBERS,
	XW_LEFT_OVERLAP,
	XW_LEFT_KINDS
};

struct reducer_xplane_writer {
	int fd;
	struct reducer_writer_options options;
	struct reducer_writer_stats stats;
	uint64_t left_out[XW_LEFT_KINDS];
	struct spool *spool;
	struct xw_event *event;
	uint32_t n_events, room_events;
	struct xw_row *row;
	uint32_t n_rows, room_rows;
	struct xw_plane *plane;
	uint32_t n_planes, room_planes;
	struct xplane_intern planes, rows, keys; /* by their texts; the number is the index + 1 */
	uint32_t n_keys;
	struct xplane_stats scratch;
	struct buffer text, key;
	struct buffer texts; /* errors, warnings, hostnames, as fields of the XSpace */
	uint32_t *order;     /* events by row */
	int64_t shift_ns;    /* the session's start, in the events' time */
	bool has_start, reduced, has_hostname, any_info;
	int failed;
};

/* The plane of a pid, the row of a tid; made where there is none. XW_NOTHING where memory ran out. */
uint32_t xw_plane_of(struct reducer_xplane_writer *w, struct reducer_text group);
uint32_t xw_row_of(struct reducer_xplane_writer *w, uint32_t plane, enum xw_row_kind kind,
		   struct reducer_text track);
/* A plane that is no process. */
uint32_t xw_special_plane(struct reducer_xplane_writer *w, const char *name);
uint32_t xw_add_row(struct reducer_xplane_writer *w, const struct xw_row *row);

/* Adds an event whose stats are in w->scratch. */
int xw_add_event(struct reducer_xplane_writer *w, struct xw_event event);

int xw_meta(struct reducer_xplane_writer *w, const struct reducer_event *event);
int xw_member(struct reducer_xplane_writer *w, const struct reducer_member *member);
/* The metadata events that a row stands for, where they came and no line says them. */
int xw_note_rows(struct reducer_xplane_writer *w);

int xw_pair(struct reducer_xplane_writer *w);
int xw_lay_out(struct reducer_xplane_writer *w);
int xw_write(struct reducer_xplane_writer *w);

bool xw_is_drawn(struct reducer_text name);
struct reducer_text xw_text(const struct buffer *buffer);
struct reducer_text xw_literal(const char *literal);

#endif
