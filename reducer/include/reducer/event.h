/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reducer/event.h: a trace event with its texts, the common currency of all codecs.
 *
 * Readers (Chrome JSON, XPlane, .drec) produce it, writers consume it, the macro view and inspect look at
 * it. Every pointer is borrowed and valid only during the call that hands the event over.
 *
 * Time: an event's place is `start_ns` plus `start_ps` (0 .. 999): exact to the picosecond, never through
 * a double. For Chrome traces it is `ts` as written (relative to the file's base where it has one), for
 * rings Unix ns. Times before the epoch are negative start_ns with a positive start_ps.
 */
#ifndef REDUCER_EVENT_H
#define REDUCER_EVENT_H

#include <stddef.h>
#include <stdint.h>

#include <driverec/event.h>

/* A borrowed text; data may be NULL only where bytes is 0. Not terminated. */
struct reducer_text {
	const char *data;
	size_t bytes;
};

struct reducer_event {
	uint8_t kind;      /* enum drec_kind */
	uint8_t args_flag; /* 0, DREC_FLAG_ARGS_JSON or DREC_FLAG_ARGS_XSTAT */
	uint8_t depth;
	uint8_t has_time;     /* the source gave a time */
	uint8_t has_duration; /* spans: the source gave a length */
	uint8_t has_id;       /* id is a number that prints back as it was written */
	uint8_t no_value;     /* counters: the source gave neither args nor a value */
	uint16_t mark;        /* enum drec_mark for DREC_MARK, enum drec_loss for DREC_LOSS */
	uint16_t start_ps;
	uint16_t duration_ps;
	int64_t start_ns;
	int64_t duration_ns;
	uint64_t id;
	double value;         /* counters: the first number among the args */
	uint64_t count;       /* DREC_LOSS: events lost */
	/* Names as UTF-8 with JSON escapes undone. `name_raw` is the JSON string as written, quotes included,
	 * or empty where the event had none or did not come from JSON. */
	struct reducer_text name, name_raw;
	struct reducer_text category, category_raw;
	/* The track: group and name as JSON values as written (1074, "Spans", -1) where they came from JSON. */
	struct reducer_text group; /* pid */
	struct reducer_text track; /* tid */
	struct reducer_text args;  /* byte for byte */
	struct reducer_text extra; /* further members, comma separated: "bp":"e","s":"t" */
	/* Where the event stands in the unpacked text, so that it can be fetched again; 0 bytes where the reader
	 * does not say. */
	uint64_t offset;
	uint32_t bytes;
};

/* A top-level member of a trace: `"key":value` as written, value possibly large (pieces follow in order). */
struct reducer_member {
	struct reducer_text key;   /* escapes undone */
	struct reducer_text value; /* JSON, byte for byte */
};

/* Receives what a reader finds. Any callback may be NULL. A non-zero return ends the reading with it. */
struct reducer_sink {
	void *context;
	int (*event)(void *context, const struct reducer_event *event);
	int (*member)(void *context, const struct reducer_member *member);
};

/* What was wrong with an input that could still be read in part, or why it was refused. */
struct reducer_problem {
	uint64_t offset; /* in the uncompressed text */
	char what[200];
};

enum { REDUCER_PROBLEMS_MAX = 16 };

struct reducer_read_report {
	uint64_t text_bytes;  /* uncompressed */
	uint64_t events;
	uint64_t damaged;     /* places where something was skipped */
	uint64_t skipped_bytes;
	unsigned n_problems;  /* of `problem`: the first ones */
	struct reducer_problem problem[REDUCER_PROBLEMS_MAX];
	int array_root;       /* the root was a bare array */
	int has_base;
	int64_t base_unix_ns; /* baseTimeNanoseconds */
};

#endif
