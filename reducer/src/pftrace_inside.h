/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the Perfetto writer. pftrace.c takes events and puts each one's content aside as the encoded
 * fields of a TrackEvent; what is needed to order it stays in memory as a record. At the end pftrace_pair.c
 * makes spans of begins and ends, pftrace_lanes.c lays records out so that nothing on a lane overlaps without
 * nesting, and pftrace_out.c merges the lanes into packets in the order of time.
 */
#ifndef REDUCER_PFTRACE_INSIDE_H
#define REDUCER_PFTRACE_INSIDE_H

#include <stdbool.h>

#include <reducer/pftrace.h>

#include "buffer.h"
#include "spool.h"

/* Field numbers of the messages that we write. */
enum {
	PF_TRACE_PACKET = 1,

	PF_PACKET_CLOCK_SNAPSHOT = 6,
	PF_PACKET_TIMESTAMP = 8,
	PF_PACKET_SEQUENCE_ID = 10,
	PF_PACKET_TRACK_EVENT = 11,
	PF_PACKET_INTERNED_DATA = 12,
	PF_PACKET_SEQUENCE_FLAGS = 13,
	PF_PACKET_TRACK_DESCRIPTOR = 60,
	PF_PACKET_FIRST_ON_SEQUENCE = 87,

	PF_SNAPSHOT_CLOCKS = 1,
	PF_SNAPSHOT_PRIMARY = 2,
	PF_CLOCK_ID = 1,
	PF_CLOCK_TIMESTAMP = 2,
	PF_CLOCK_REALTIME = 1,
	PF_CLOCK_BOOTTIME = 6,

	PF_TRACK_UUID = 1,
	PF_TRACK_NAME = 2,
	PF_TRACK_PROCESS = 3,
	PF_TRACK_THREAD = 4,
	PF_TRACK_PARENT = 5,
	PF_TRACK_COUNTER = 8,
	PF_TRACK_CHILD_ORDERING = 11,
	PF_TRACK_RANK = 12,
	PF_ORDERING_EXPLICIT = 3,
	PF_PROCESS_PID = 1,
	PF_PROCESS_NAME = 6,
	PF_PROCESS_LABELS = 8,
	PF_THREAD_PID = 1,
	PF_THREAD_TID = 2,
	PF_THREAD_NAME = 5,

	PF_EVENT_CATEGORY_IIDS = 3,
	PF_EVENT_ANNOTATIONS = 4,
	PF_EVENT_TYPE = 9,
	PF_EVENT_NAME_IID = 10,
	PF_EVENT_TRACK_UUID = 11,
	PF_EVENT_CATEGORIES = 22,
	PF_EVENT_NAME = 23,
	PF_EVENT_COUNTER = 30,
	PF_EVENT_COUNTER_DOUBLE = 44,
	PF_EVENT_FLOW_IDS = 47,
	PF_EVENT_FLOW_ENDS = 48,
	PF_TYPE_BEGIN = 1,
	PF_TYPE_END = 2,
	PF_TYPE_INSTANT = 3,
	PF_TYPE_COUNTER = 4,

	PF_ANNOTATION_NAME_IID = 1,
	PF_ANNOTATION_BOOL = 2,
	PF_ANNOTATION_UINT = 3,
	PF_ANNOTATION_INT = 4,
	PF_ANNOTATION_DOUBLE = 5,
	PF_ANNOTATION_STRING = 6,
	PF_ANNOTATION_NAME = 10,
	PF_ANNOTATION_DICT = 11,
	PF_ANNOTATION_ARRAY = 12,

	PF_INTERNED_CATEGORIES = 1,
	PF_INTERNED_NAMES = 2,
	PF_INTERNED_ANNOTATIONS = 3,
	PF_INTERNED_IID = 1,
	PF_INTERNED_TEXT = 2,
};

/* --- names that stand once in the file --- */

enum pf_name_kind { PF_NAME_CATEGORY, PF_NAME_EVENT, PF_NAME_ANNOTATION, PF_NAME_KINDS };

struct pf_name {
	uint64_t hash;
	uint32_t iid;
	uint32_t at, bytes; /* in text */
	uint8_t kind;
};

struct pf_names {
	struct pf_name *name;
	uint32_t count, room;
	uint32_t *bucket; /* index + 1 */
	uint32_t buckets;
	uint32_t last_iid[PF_NAME_KINDS];
	struct buffer text;
};

/* The number of a text, 0 where the table is full: then it is to be written inline. */
uint32_t pf_names_iid(struct pf_names *names, enum pf_name_kind kind, struct reducer_text text);
void pf_names_free(struct pf_names *names);

/* Appends the text as valid UTF-8: what is not becomes U+FFFD, as in what a ring of others holds. */
void pf_add_clean(struct buffer *out, struct reducer_text text);

/* --- args --- */

/* Adds the members of a JSON object (without its braces) as debug annotations; `skip` leaves some out. */
void pf_add_members(struct buffer *out, struct pf_names *names, struct reducer_text members,
		    bool (*skip)(struct reducer_text key));
/* Args of any form: an object's members, or one annotation "args". */
void pf_add_args(struct buffer *out, struct pf_names *names, struct reducer_text args);
/* One annotation: `key` as plain text, `value` as JSON. */
void pf_add_annotation(struct buffer *out, struct pf_names *names, struct reducer_text key,
		       struct reducer_text value);
/* A number as the fields of an annotation or a counter want it. */
struct pf_number {
	enum { PF_NUMBER_NONE, PF_NUMBER_INT, PF_NUMBER_UINT, PF_NUMBER_DOUBLE } kind;
	int64_t integer;
	double real;
};
struct pf_number pf_number_of(struct reducer_text value);

/* --- tracks as the events name them --- */

enum pf_track_kind {
	PF_TRACK_KIND_ROOT,
	PF_TRACK_KIND_PROCESS,
	PF_TRACK_KIND_THREAD,
	PF_TRACK_KIND_COUNTER,
	PF_TRACK_KIND_ASYNC
};

enum { PF_NO_TRACK = UINT32_MAX, PF_NO_NUMBER = -1 };

struct pf_track {
	uint64_t hash;
	uint8_t kind;
	bool has_rank, ranks_children;
	int32_t rank;
	int64_t pid, tid; /* PF_NO_NUMBER where it has none */
	uint32_t parent;  /* PF_NO_TRACK = none */
	uint32_t lanes, first_lane;
	char *key; /* what tells it from others */
	size_t key_bytes;
	char *name, *labels; /* UTF-8, terminated; NULL = none */
};

struct pf_tracks {
	struct pf_track *track;
	uint32_t count, room;
	uint32_t *bucket; /* index + 1 */
	uint32_t buckets;
	uint64_t bytes;
};

/* Each finds a track or makes it. PF_NO_TRACK: there are too many; -ENOMEM in *failed. */
uint32_t pf_track_process(struct pf_tracks *tracks, struct reducer_text group, int *failed);
uint32_t pf_track_thread(struct pf_tracks *tracks, struct reducer_text group, struct reducer_text tid,
			 int *failed);
uint32_t pf_track_named(struct pf_tracks *tracks, enum pf_track_kind kind, struct reducer_text group,
			struct reducer_text name, int *failed);
/* Takes what a metadata event says of a track. 1 = taken, 0 = not one of those, or -errno. */
int pf_tracks_meta(struct pf_tracks *tracks, const struct reducer_event *event);
void pf_tracks_free(struct pf_tracks *tracks);

/* --- records --- */

enum pf_record_kind { PF_SPAN, PF_OPEN, PF_INSTANT, PF_COUNTER };
enum { PF_HAS_FLOWS = 1, PF_HAS_END = 2 };

struct pf_time {
	int64_t ns;
	uint16_t ps;
};

struct pf_record {
	int64_t start_ns, end_ns; /* PF_OPEN: INT64_MAX */
	uint64_t place;           /* of its content */
	uint32_t bytes;
	uint32_t order; /* of arrival */
	uint32_t track; /* once it is laid out: the lane */
	uint32_t scope; /* async: the number of its id, so that only its own nest in it; else 0 */
	uint16_t start_ps, end_ps;
	uint8_t kind, flags;
};
_Static_assert(sizeof(struct pf_record) == 48, "said in pftrace.h");

/* A begin or end that is to be paired, or an async instant among them. */
struct pf_half {
	uint64_t key;  /* the track, or what async ones share */
	uint64_t name; /* hash; 0 = none given */
	int64_t ns;
	uint64_t place;
	uint32_t bytes, order, track;
	uint16_t ps;
	uint8_t kind; /* enum drec_kind */
	bool async;
};

struct pf_flow {
	uint64_t id;
	int64_t ns;
	uint32_t track;
	uint32_t order; /* of the span that it is on, once known; UINT32_MAX = none */
	uint16_t ps;
	bool ends, next; /* the last end; on the span that begins next */
};

/* What an end says beyond its time. */
struct pf_end {
	uint64_t place;
	uint32_t bytes, order; /* of the begin */
};

enum pf_left_out {
	PF_LEFT_ARGS,
	PF_LEFT_PS,
	PF_LEFT_NO_TIME,
	PF_LEFT_NO_LENGTH,
	PF_LEFT_END,
	PF_LEFT_FLOW_NOWHERE,
	PF_LEFT_FLOW_ORPHAN,
	PF_LEFT_OTHER,
	PF_LEFT_COUNTER,
	PF_LEFT_MEMBER,
	PF_LEFT_TRACKS,
	PF_LEFT_LANES,
	PF_LEFT_SHIFTED,
	PF_LEFT_COUNT
};

/* A growing array of items of one size. */
struct pf_list {
	void *item;
	uint32_t count, room;
};
/* Room for one more item of `bytes`, zeroed, or NULL. */
void *pf_list_add(struct pf_list *list, size_t bytes);

struct reducer_pftrace_writer {
	int fd;
	struct reducer_writer_options options;
	struct reducer_writer_stats stats;
	uint64_t left_out[PF_LEFT_COUNT];
	int failed;
	uint32_t order;
	struct spool *spool;
	struct pf_names names;
	struct pf_tracks tracks;
	struct pf_list records, halves, flows, ends; /* pf_record, pf_half, pf_flow, pf_end */
	struct pf_list metas;                        /* pf_record without a time */
	struct buffer content, members, scratch, clean, reduced;
	uint64_t salt; /* of what came, so that the ids of two traces differ */
};

static inline struct pf_record *pf_records(const struct reducer_pftrace_writer *w)
{
	return w->records.item;
}

static inline int pf_compare(int64_t a_ns, uint16_t a_ps, int64_t b_ns, uint16_t b_ps)
{
	if (a_ns != b_ns)
		return a_ns < b_ns ? -1 : 1;
	return (a_ps > b_ps) - (a_ps < b_ps);
}

/* The ns that is written for a time: rounding keeps order, so what nests goes on doing so. */
static inline int64_t pf_rounded(int64_t ns, uint16_t ps)
{
	return ps >= 500 && ns < INT64_MAX ? ns + 1 : ns;
}

uint64_t pf_hash(uint64_t hash, struct reducer_text text);

int pf_pair(struct reducer_pftrace_writer *w);

/* The spans that are open on a lane, the innermost last. */
struct pf_open {
	int64_t end_ns;
	uint16_t end_ps;
	bool never_ends;
	uint32_t scope;
	uint32_t order;
	uint32_t record;
};

struct pf_lane {
	uint32_t track;
	uint32_t next, end; /* its records */
	struct pf_open *open;
	uint32_t depth, room;
};

struct pf_lanes {
	struct pf_lane *lane;
	uint32_t count, room;
};

enum { PF_DEPTH_MAX = 512, PF_LANES_MAX = 1024 };

/* Whether the innermost open span ends before the record begins. */
bool pf_ends_before(const struct pf_open *open, const struct pf_record *record);
int pf_lane_push(struct pf_lane *lane, const struct pf_record *record, uint32_t index);
/* Gives every record its lane, and every flow its span. */
int pf_lay_out(struct reducer_pftrace_writer *w, struct pf_lanes *lanes);
void pf_lanes_free(struct pf_lanes *lanes);

int pf_write(struct reducer_pftrace_writer *w, struct pf_lanes *lanes);

#endif
