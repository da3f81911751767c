/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole trace in memory, as verification looks at it.
 *
 * Loading (verify_load.c) turns each event into one verify_event; names and tracks of both traces have common
 * numbers (verify_house). Pairing (verify_pairs.c) then finds the spans of B and E events and the pairs of
 * async ones. What is left decides by `class` what is promised of an event.
 */
#ifndef REDUCER_VERIFY_TRACE_H
#define REDUCER_VERIFY_TRACE_H

#include <reducer/trace.h>
#include <reducer/verify.h>

#include "verify_texts.h"

/* Picoseconds; a number of bins of a ps since 1970 does not fit into 64 bits either. */
typedef __int128 verify_ps;

enum { VERIFY_NONE = UINT32_MAX };

/* What is promised of an event. */
enum verify_class {
	VERIFY_GONE = 0, /* an E that its B speaks for, or outside of what is compared */
	VERIFY_SPAN,     /* X, or the B of a pair: time and a length >= 0 */
	VERIFY_BEGIN,    /* until pairing */
	VERIFY_END,      /* until pairing */
	VERIFY_INSTANT,
	VERIFY_COUNTER,
	VERIFY_FLOW,
	VERIFY_ASYNC,       /* until pairing */
	VERIFY_ASYNC_BEGIN, /* of a pair; its duration is the pair's */
	VERIFY_ASYNC_END,   /* of a pair; so is its */
	VERIFY_ASYNC_POINT,
	VERIFY_NOTE, /* a mark or loss of a ring, whatever its format has made of it */
	VERIFY_META,
	VERIFY_MARK, /* it says that the trace is reduced */
	VERIFY_KEPT  /* anything else: must be there as it was */
};

struct verify_event {
	verify_ps start, duration;
	/* While loading, of name, category, id, args and more members; then of all that must not change. */
	struct verify_print same;
	uint32_t track, name, category, id; /* numbers of the house; id VERIFY_NONE: none */
	uint32_t merged;                    /* index + 1 of trace->merged; 0: it stands for itself */
	uint32_t begin;                     /* of the end of an async pair: its begin's index */
	uint8_t class;                      /* enum verify_class */
	uint8_t kind;                       /* enum drec_kind */
	uint8_t has_time;
	uint8_t has_more; /* args or further members that are compared */
	uint8_t is_step;  /* a step mark */
};

/* What a merged event says that it stands for. */
struct verify_merged {
	verify_ps sum, longest;
	uint64_t events;
	uint32_t longest_name; /* VERIFY_NONE: not said */
	bool is_whole;         /* it says all that a merged event of its kind must say */
};

/* One number of a counter sample. */
struct verify_value {
	verify_ps start;
	double value;
	uint32_t counter; /* number of the house */
	uint32_t event;
};

struct verify_member {
	struct verify_print same;
	uint32_t key; /* number of the house's names */
};

struct verify_span {
	verify_ps start, end;
	uint32_t track, event;
};

/* Arrays that only grow: `n` used of `room`. */
struct verify_trace {
	bool is_reduced; /* which of the two it is */
	struct verify_event *event;
	size_t n_events, events_room;
	struct verify_merged *merged;
	size_t n_merged, merged_room;
	struct verify_value *value;
	size_t n_values, values_room;
	struct verify_member *member;
	size_t n_members, members_room;
	/* Made when sorted: by track, start, then the longest and the earliest in the file. */
	struct verify_span *span;
	size_t n_spans;
	size_t *track_spans; /* the spans of track t are [track_spans[t], track_spans[t + 1]) */
	uint32_t marks;      /* events that say that it is reduced; the last one is in verify->mark */
};

struct verify_track {
	uint32_t group, name; /* numbers of texts: JSON values as written */
	uint32_t thread;      /* what a thread_name event calls it, or VERIFY_NONE */
	uint32_t process;     /* what a process_name event there calls its group, or VERIFY_NONE */
	bool is_reduced;      /* the reduced trace has events there that are no metadata */
	bool is_raw;          /* so has the raw one, after what is not compared is gone */
};

struct verify_counter {
	uint32_t group, name, key; /* numbers of texts */
};

/* What both traces share: texts, tracks and counters by number. */
struct verify_house {
	struct verify_texts texts;    /* names, categories, ids, groups, … */
	struct verify_texts tracks;   /* keys of two numbers */
	struct verify_texts counters; /* keys of four numbers */
	struct verify_track *track;
	size_t tracks_room;
	struct verify_counter *counter;
	size_t counters_room;
	uint8_t *is_raw_name; /* by number of text: a name of the raw trace; made when that is loaded */
	bool has_unwhole;     /* the raw trace has merged events that do not say for what they stand */
	uint32_t n_raw_names; /* numbers from here on are no names of the raw trace */
	uint32_t merged_category, mark_name, merged_name, no_name, unused_name;
};

/* What the reduced trace says of itself. */
struct verify_mark {
	bool is_there, is_readable;
	verify_ps bin, origin;
	bool has_window;
	verify_ps window_from, window_to;
	bool has_tracks;
	char tracks[120];
};

struct verify {
	struct verify_house house;
	struct verify_trace raw, reduced;
	struct verify_counts counts; /* by verify_event.same */
	struct verify_mark mark;
	bool crossed; /* the formats differ: only what both can say is compared */
	struct reducer_verify_report *report;
};

int verify_house_start(struct verify_house *house);
int verify_house_track(struct verify_house *house, struct reducer_text group, struct reducer_text track,
		       uint32_t *ret_track);
int verify_house_counter(struct verify_house *house, uint32_t group, uint32_t name, uint32_t id, uint32_t key,
			 uint32_t *ret_counter);
void verify_house_free(struct verify_house *house);

/* The array, moved or not, with room for one more of `bytes` each; NULL (and the array as it was) where there
 * is no memory or numbers end. */
void *verify_grow(void *array, size_t used, size_t *room, size_t bytes);

/* verify_load.c: reads a file. -EBADMSG with the reason in *ret_problem. */
int verify_load(struct verify *verify, struct verify_trace *trace, const char *path,
		enum reducer_format format, struct reducer_read_report *report);
void verify_trace_free(struct verify_trace *trace);

/* verify_crossed.c: makes two traces of different formats comparable, as far as can be. The times are aligned
 * when the raw one is cut. */
int verify_cross_tracks(struct verify *verify);
int verify_align(struct verify *verify);

/* verify_pairs.c */
int verify_pair(struct verify *verify);
/* Takes out of the raw trace what lies outside of the window or of the tracks that the reduced one holds. */
int verify_cut(struct verify *verify);
int verify_sort_both(struct verify *verify);
/* Finishes verify_event.same and counts all events of both traces. */
int verify_count_events(struct verify *verify);

/* verify_spans.c, verify_points.c, verify_rest.c: the promises. 0 or -ENOMEM. */
int verify_busy(struct verify *verify);         /* M1 */
int verify_ends(struct verify *verify);         /* M2 */
int verify_longest(struct verify *verify);      /* M3 */
int verify_instants(struct verify *verify);     /* M4 */
int verify_counters(struct verify *verify);     /* M4 */
int verify_flows(struct verify *verify);        /* M4 */
int verify_descriptions(struct verify *verify); /* M4: metadata, members, what is kept as it was */
int verify_merged_spans(struct verify *verify); /* M5 */
int verify_unaltered(struct verify *verify);    /* M5 */
int verify_async(struct verify *verify);        /* M5 */

/* The bin that a time lies in, rounded down. */
verify_ps verify_bin(const struct verify_mark *mark, verify_ps time);

static inline struct reducer_moment verify_moment(verify_ps ps)
{
	verify_ps rest = ps % 1000;
	if (rest < 0)
		rest += 1000;
	return (struct reducer_moment){(int64_t)((ps - rest) / 1000), (uint16_t)rest};
}

static inline verify_ps verify_time(int64_t ns, uint16_t ps)
{
	return (verify_ps)ns * 1000 + ps;
}

#endif
