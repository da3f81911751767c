/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `reduce` remembers of a trace, and the steps it takes:
 *
 *   reduce_read.c     events -> columns, 36 bytes each, whatever their text weighs
 *   reduce_tracks.c   which track an event is of
 *   reduce_settle.c   one zero for all times, pairs of begin and end, every track in order of time
 *   reduce_spans.c    per track: rows, what stays exactly
 *   reduce_cells.c    per track: merged spans in the place of the rest
 *   reduce_names.c    names by number
 *   reduce_select.c   which tracks were asked for
 *   reduce_sort.c     sorting what is nearly sorted
 *   reduce_threads.c  tracks over threads
 *   reduce_overlap.c  the same for spans that overlap without nesting
 *   reduce_points.c   instants, counters, async pairs
 *   reduce_flows.c    flows whose ends are all still there
 *   reduce_plan.c     all of that for one number of bins, and the search for a number of bins
 *   reduce_write.c    the second sweep: fetches what stays, writes it and the merged spans
 */
#ifndef REDUCER_REDUCE_INSIDE_H
#define REDUCER_REDUCE_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <reducer/bins.h>
#include <reducer/reduce.h>
#include <reducer/slices.h>

#include "buffer.h"

enum { REDUCE_ROWS = 254, REDUCE_OVERFLOW = REDUCER_DEPTH_OVERFLOW };
/* No index; and a name that is known by its hash only. */
#define REDUCE_NONE 0xffffffffu
#define REDUCE_NAME_UNKNOWN 0x80000000u

/* What an event is to the reducer. */
enum reduce_kind {
	KIND_SPAN = 0, /* with a time and a length >= 0, or a begin that found its end */
	KIND_BEGIN,
	KIND_END, /* of a begin that is now a span: `length` is its index */
	KIND_INSTANT,
	KIND_COUNTER,
	KIND_FLOW_BEGIN,
	KIND_FLOW_STEP,
	KIND_FLOW_END,
	KIND_ASYNC_BEGIN,
	KIND_ASYNC_END,
	KIND_TIMED, /* something else that has a time */
	KIND_META,
	KIND_OTHER
};

/* One word an event. While reading the low 20 bits hold the picoseconds, later the row and the plan. */
enum {
	BITS_START_PS = 0,
	BITS_LENGTH_PS = 10,
	BITS_PS_MASK = 0x3ff,
	BITS_ROW_MASK = 0xff,
	BIT_KEEP = 1 << 8,       /* planned: stays exactly */
	BIT_SHUT = 1 << 9,       /* outside of the window, or on a track not asked for */
	BIT_ELSEWHERE = 1 << 10, /* the latter */
	BITS_KIND = 20,
	BITS_KIND_MASK = 0xf,
	BIT_MERGED = 1 << 24,    /* it stands for several events already */
	BIT_ALWAYS = 1 << 25,    /* a step mark, or nothing that could be merged */
	BIT_TWICE = 1 << 26,     /* metadata that came before */
	BIT_ENCLOSING = 1 << 27, /* a flow's end that is bound to the span around it */
	BIT_MORE = 1 << 28,      /* a counter of several values */
	BIT_FAR = 1 << 29,       /* its time is out of reach: stays, and is on no track */
	BIT_PAIR = 1 << 30       /* a begin or end that found its partner */
};

struct reduce_columns {
	int64_t *start;   /* ns; ps since zero when settled */
	int64_t *length;  /* the same; counters: the bits of the value; flows: a hash, their number when settled */
	uint64_t *place;  /* offset << 24 | bytes; for other formats than Chrome: how many events came before */
	uint32_t *track;
	uint32_t *name;   /* its number in `names` */
	uint32_t *bits;
	uint32_t count, room;
};

/* ALONE: a thread as such, where tracks are asked for; NOWHERE: of no thread. */
enum reduce_class {
	CLASS_THREAD = 1,
	CLASS_FLOWS,
	CLASS_INSTANTS,
	CLASS_COUNTER,
	CLASS_ASYNC,
	CLASS_ALONE,
	CLASS_NOWHERE
};

struct reduce_track {
	uint8_t class;
	bool shut;          /* not of the tracks asked for */
	bool unruly;        /* a time that is out of reach lies between its others: stays as it is */
	uint32_t key, group_bytes, track_bytes, rest_bytes; /* texts, one after the other in `texts` */
	uint64_t hash;
	uint32_t n_events;
	uint32_t first;     /* of them in `order` */
	uint32_t n_spans;   /* threads: the first so many of them are spans, outer ones first */
	uint32_t n_overlapping;
	int64_t first_ps, last_ps, longest_ps; /* threads: of their spans */
	bool dense;         /* too busy with short spans for rectangles to be as short */
	uint32_t first_sample, n_samples; /* counters: of `samples`, in order of time */
	uint32_t thread;    /* flows: the track of the spans that they are bound to, and the other way round */
	size_t first_out, n_out; /* planned: its rectangles, in the list of the worker that made them */
	unsigned worker;
};

struct reduce_tracks {
	struct reduce_track *track;
	uint32_t count, room;
	uint32_t *slot; /* hash table of indices, REDUCE_NONE where empty */
	uint32_t slots;
	struct buffer texts;
	uint32_t last[CLASS_NOWHERE + 1][2];
};

struct reduce_name {
	uint32_t text, bytes;      /* in `texts`: the JSON text as written, or the name where there is none */
	uint32_t json, json_bytes; /* a valid JSON text that says it; mostly the same */
	uint32_t hash;
};

struct reduce_names {
	struct reduce_name *at;
	uint32_t count, room;
	uint32_t *slot, slots;
	uint32_t last[2];
	struct buffer texts;
};

/* A further value of a counter event. */
struct reduce_sample {
	uint32_t event, track;
	double value;
};

/* The thread of an event whose track is none: a counter's or an async one's. */
struct reduce_thread {
	uint32_t event, track;
};

/* What an event that stands for others says of them. */
struct reduce_stands {
	uint32_t event;
	uint64_t events;
	int64_t sum_ps, longest_ps;
	uint32_t longest_name; /* of `names`, or REDUCE_NONE */
};

/* A span in the place of others. */
struct reduce_rectangle {
	int64_t from, to;
	uint64_t events;
	int64_t sum_ps, longest_ps;
	uint32_t members; /* the same, where what stands for several counts as one */
	uint32_t longest; /* the event */
	uint32_t name;    /* where all have one name */
	uint32_t track;
	uint8_t row;
	bool one_name;
};

struct reduce_rectangles {
	struct reduce_rectangle *at;
	size_t count, room;
	int failed;
};

struct reduce_vector {
	void *at;
	size_t count, room;
};

/* The category and name of the last flow, and their hash: mostly those of the next one. */
struct reduce_flow_name {
	char text[64];
	uint32_t category_bytes, name_bytes;
	uint64_t hash;
};

struct reducer_reduce {
	struct reducer_reduce_options options;
	char *path;
	enum reducer_format format;
	struct reducer_read_report read;
	struct reduce_columns col;
	struct reduce_tracks tracks;
	struct reduce_names names;
	uint32_t *order; /* events by track, in order of time */
	struct reduce_vector samples, stands;
	struct reduce_vector members, member_blocks; /* their texts: one block a member */
	struct buffer member_texts, repaired; /* of one event at a time */
	struct reduce_vector called; /* names of processes and threads, for --track */
	struct reduce_vector threads; /* the same: the threads of what is on other tracks (struct reduce_thread) */
	struct reducer_seek_points *points;
	uint32_t n_flow_events, n_flows; /* flows are numbered */
	struct reduce_flow_name flow_name;
	struct reduce_vector far_flows; /* numbers of flows with an end whose time is out of reach */
	uint8_t *flow;
	uint64_t *seen; /* hashes of metadata events */
	uint32_t seen_slots, n_seen;
	/* Times. */
	int64_t zero_ns;
	int64_t low_ps, high_ps; /* of what the bins are cut from */
	bool has_ps;
	/* The plan. */
	uint32_t bins;
	int64_t bin_ps;
	struct reduce_rectangles spans, instants, pairs;
	uint64_t events_out;
	uint64_t gone[REDUCER_GONE_COUNT];
	uint64_t exact, exact_spans;
	bool bound_reached;
	bool uncapped; /* merged spans may be longer than a track's longest one */
};

static inline enum reduce_kind reduce_kind_of(uint32_t bits)
{
	return (enum reduce_kind)(bits >> BITS_KIND & BITS_KIND_MASK);
}

static inline uint32_t reduce_with_kind(uint32_t bits, enum reduce_kind kind)
{
	return (bits & ~((uint32_t)BITS_KIND_MASK << BITS_KIND)) | (uint32_t)kind << BITS_KIND;
}

/* What is summed may say anything of itself: over 106 days of spans in one place end there, and fail verification. */
static inline void reduce_add_ps(int64_t *sum_ps, int64_t more_ps)
{
	if (__builtin_add_overflow(*sum_ps, more_ps, sum_ps))
		*sum_ps = INT64_MAX;
}

/* Floor, also for times before zero. */
static inline int64_t reduce_bin_of(int64_t at, int64_t bin_ps)
{
	int64_t bin = at / bin_ps;
	return at % bin_ps < 0 ? bin - 1 : bin;
}

uint64_t reduce_hash(uint64_t seed, const char *data, size_t bytes);

/* reduce_tracks.c: the index, or -errno. Texts are copied. */
int reduce_tracks_init(struct reduce_tracks *tracks);
int64_t reduce_track_of(struct reduce_tracks *tracks, enum reduce_class class, struct reducer_text group,
			struct reducer_text track, struct reducer_text rest);
struct reducer_text reduce_track_group(const struct reduce_tracks *tracks, uint32_t at);
struct reducer_text reduce_track_track(const struct reduce_tracks *tracks, uint32_t at);
struct reducer_text reduce_track_rest(const struct reduce_tracks *tracks, uint32_t at);
/* The track of another class with the group and track of `at`; -ENOENT. */
int64_t reduce_track_find(const struct reduce_tracks *tracks, enum reduce_class class, uint32_t at);
void reduce_tracks_free(struct reduce_tracks *tracks);

/* reduce_names.c */
int reduce_names_init(struct reduce_names *names);
/* The number of a name by how it is written; `said` is what that says. */
int reduce_name_of(struct reduce_names *names, struct reducer_text raw, struct reducer_text said, uint32_t *ret_name);
/* As valid JSON; empty where only the hash is known. */
struct reducer_text reduce_name_text(const struct reduce_names *names, uint32_t name);
void reduce_names_free(struct reduce_names *names);

/* Room for one more element of `size`; NULL without memory. */
void *reduce_vector_add(struct reduce_vector *vector, size_t size);
const struct reduce_stands *reduce_stands_of(const struct reducer_reduce *reduce, uint32_t event);

/* reduce_read.c */
int reduce_read_events(struct reducer_reduce *reduce);
void reduce_columns_free_track(struct reduce_columns *col);
void reduce_columns_free(struct reduce_columns *col);

/* reduce_settle.c: after reading. */
int reduce_settle(struct reducer_reduce *reduce);
int reduce_settle_track(struct reducer_reduce *reduce, uint32_t track);
bool reduce_in_window(const struct reducer_reduce *reduce, int64_t from, int64_t to);

/* reduce_select.c: marks the tracks that were not asked for; and, when the bits are settled, the events of such
 * threads that are on other tracks. */
int reduce_select(struct reducer_reduce *reduce);
void reduce_select_events(struct reducer_reduce *reduce);

/* reduce_sort.c */
int reduce_sort(uint32_t *order, size_t count, bool (*before)(const void *context, uint32_t a, uint32_t b),
		const void *context);

/* reduce_spans.c: marks what stays of a track's spans; `cuts` gets the times (int64_t, ascending) where spans of
 * the overflow row that stay begin and end. */
int reduce_choose_spans(struct reducer_reduce *reduce, uint32_t track, int64_t bin_ps, struct reduce_vector *cuts);

/* How long a rectangle of the track may be. */
int64_t reduce_rectangle_limit(const struct reducer_reduce *reduce, const struct reduce_track *track);

/* reduce_cells.c: the rectangles of what does not; may mark more to stay (what a rectangle would be equal to). */
struct reduce_cells;
int reduce_cells_new(struct reduce_cells **ret_cells);
int reduce_cells_track(struct reduce_cells *cells, struct reducer_reduce *reduce, uint32_t track, int64_t bin_ps,
		       const struct reduce_vector *cuts, struct reduce_rectangles *out);
void reduce_cells_free(struct reduce_cells *cells);
int reduce_rectangle_add(struct reduce_rectangles *out, const struct reduce_rectangle *one);

/* reduce_overlap.c: after the cells of the track, whose rectangles begin at `first_rectangle` of `out`. */
int reduce_overlap_track(struct reducer_reduce *reduce, uint32_t track, int64_t bin_ps, struct reduce_rectangles *out,
			 size_t first_rectangle);

/* reduce_threads.c: work on every track, largest first, on all threads. What a worker adds to its own lists is
 * gathered in the order of the tracks. */
enum reduce_task { REDUCE_SETTLE, REDUCE_PLAN };
int reduce_each_track(struct reducer_reduce *reduce, enum reduce_task task);

/* reduce_points.c */
int reduce_plan_instants(struct reducer_reduce *reduce, uint32_t track, int64_t bin_ps,
			 struct reduce_rectangles *out);
int reduce_plan_async(struct reducer_reduce *reduce, uint32_t track, int64_t bin_ps,
		      struct reduce_rectangles *out);
/* All counters are begun before the first of them is planned. */
void reduce_begin_counters(struct reducer_reduce *reduce, uint32_t track);
void reduce_plan_counters(struct reducer_reduce *reduce, uint32_t track, int64_t bin_ps);

/* reduce_flows.c: numbers flows after reading. */
int reduce_number_flows(struct reducer_reduce *reduce);
/* What the ends on one track say, after its spans are planned; then, after all tracks, what becomes of each flow. */
void reduce_look_at_flows(struct reducer_reduce *reduce, uint32_t track);
void reduce_begin_flows(struct reducer_reduce *reduce);
void reduce_finish_flows(struct reducer_reduce *reduce);

/* reduce_plan.c: whether the event stays, as planned. */
bool reduce_stays(const struct reducer_reduce *reduce, uint32_t event);
int reduce_plan_target(struct reducer_reduce *reduce);
int reduce_plan_bins(struct reducer_reduce *reduce, uint32_t bins);

#endif
