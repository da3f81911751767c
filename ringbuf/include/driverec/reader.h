/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driverec/reader.h: read a ring that is being written, one whose process is dead, or a kept window (.drec).
 *
 * One reader for all three. It never maps the file: every byte is pread() into private memory and checked
 * there, so a hostile or dying producer can ruin what is read from its own ring and nothing else.
 *
 * Events are delivered per thread (slot life) in the order of their commit; no order between threads is
 * promised. Each reader keeps its own cursors: calling drec_reader_poll() again brings only what is new.
 *
 * Not thread-safe: one thread a reader. Errors are -errno; the texts of struct drec_problem say which check
 * failed, with the offset in the file.
 */
#ifndef DRIVEREC_READER_H
#define DRIVEREC_READER_H

#include <driverec/event.h>
#include <driverec/format.h>

#ifdef __cplusplus
extern "C" {
#endif

struct drec_reader;

/* Filled in when something is refused. `what` is a whole clause: "section 3 (chunks) ends past the file". */
struct drec_problem {
	uint64_t offset;
	char what[160];
};

struct drec_reader_options {
	uint64_t file_bytes_max; /* larger files are refused; 0 = DREC_RING_BYTES_MAX */
	int rings_only;          /* refuse .drec */
	int safe_open;           /* as a daemon must: O_NOFOLLOW|O_NONBLOCK, regular, one link, on the
	                            file system of the folder */
	int writable;            /* try O_RDWR first, for pins; falls back to reading */
};

/*
 * Opens `path` relative to `dirfd` (AT_FDCWD allowed). -EBADMSG: not a ring or damaged, see ret_problem;
 * -EPROTONOSUPPORT: another major version or unknown incompatible features; -EFBIG: over the limit.
 */
int drec_reader_open(int dirfd, const char *path, const struct drec_reader_options *options,
		     struct drec_reader **ret_reader, struct drec_problem *ret_problem);
void drec_reader_free(struct drec_reader *reader);

/* The file's descriptor, for pins and locks; owned by the reader. */
int drec_reader_fd(const struct drec_reader *reader);
int drec_reader_writable(const struct drec_reader *reader);
const struct drec_header *drec_reader_header(const struct drec_reader *reader);

/* A section's place, or NULL if the file has none of that type. */
const struct drec_section *drec_reader_section(const struct drec_reader *reader, unsigned type);

/*
 * Cheap: reads STATE and the entries of the chunks last written to. Returns 1 if something may be new since the
 * last poll, 0 if not, or -errno. A thread that gets a used slot may be seen a few calls late.
 */
int drec_reader_changed(struct drec_reader *reader);

/* STATE as last read by drec_reader_changed() or drec_reader_poll(). */
const struct drec_state *drec_reader_state(const struct drec_reader *reader);

/* Where an event was found. */
struct drec_place {
	uint32_t slot;
	uint32_t life;
	uint32_t tid;
	uint32_t chunk;
	uint64_t index; /* of the event within its slot life */
};

/*
 * What drec_reader_poll() calls. `event` and what it points to are valid during the call. Return 0 to go on,
 * anything else ends the poll with that value; the event then counts as delivered. It may ask this reader for
 * texts, tracks and times, and for nothing else.
 */
typedef int drec_event_fn(void *context, const struct drec_event *event, const struct drec_place *place);

struct drec_poll_stats {
	uint64_t events;
	uint64_t bytes;
	uint64_t overwritten; /* events gone before this reader saw them */
	uint64_t lost;        /* events the producer could not write, from loss records read */
	uint64_t corrupt_bytes;
	uint64_t retried;     /* copies dropped since the chunk was taken meanwhile */
};

/*
 * Delivers every event that is new to this reader. Adds to *stats (may be NULL). `budget_events` bounds
 * one call (0 = none); returns 1 if there is more, 0 if not, -errno, or fn's value.
 */
int drec_reader_poll(struct drec_reader *reader, drec_event_fn *fn, void *context, uint64_t budget_events,
		     struct drec_poll_stats *stats);

/* Forgets what was delivered: the next poll starts from the oldest event. */
void drec_reader_rewind(struct drec_reader *reader);

/* Cursors, so that a restarted daemon neither doubles nor skips: a plain array to store and give back. */
struct drec_cursor {
	uint32_t slot;
	uint32_t life;
	uint64_t number; /* chunk number within the slot life */
	uint32_t bytes;  /* read of it */
	uint32_t reserved;
	uint64_t events; /* read of the slot life */
};
size_t drec_reader_cursors(const struct drec_reader *reader, struct drec_cursor *ret, size_t room);
void drec_reader_set_cursors(struct drec_reader *reader, const struct drec_cursor *cursors, size_t count);

/* Text of the dictionary, valid until the reader is freed. 0, or -ENOENT if there is none of that id. */
int drec_reader_text(struct drec_reader *reader, uint32_t id, unsigned *ret_kind, const char **ret_text,
		     uint32_t *ret_bytes);

struct drec_track_info {
	unsigned kind; /* enum drec_track_kind */
	uint32_t tid;
	const char *group, *name; /* name: the latest */
	uint32_t group_bytes, name_bytes;
};
int drec_reader_track(struct drec_reader *reader, uint32_t track, struct drec_track_info *ret);

/* Calls fn for every dictionary entry of a kind, in the order of ids. */
typedef int drec_text_fn(void *context, uint32_t id, const char *text, uint32_t bytes);
int drec_reader_each_text(struct drec_reader *reader, unsigned kind, drec_text_fn *fn, void *context);

/* Spans that are open now (live), were at death, or at the window's end. */
struct drec_open_info {
	uint32_t slot, life, tid, thread_track;
	uint32_t depth;   /* 0 = outermost */
	uint32_t name, track;
	unsigned mark;    /* 0, DREC_MARK_STEP_BEGIN, DREC_MARK_PHASE_BEGIN */
	uint64_t start;   /* ticks */
	uint64_t step;    /* where mark is STEP_BEGIN */
	int moving;       /* the stack changed while it was read: may be out of date */
	uint32_t deeper;  /* on the last one: spans beyond DREC_STACK_MAX */
};
/* Fills at most `room`, outermost first within a slot; returns how many there are, or -errno. */
int drec_reader_open_spans(struct drec_reader *reader, struct drec_open_info *ret, size_t room);

/*
 * Whether the producer is there: 1 alive, 0 dead (its lock is free and the process is gone, or it closed or
 * exited), 2 detached (lock free, same process still there: exec, closefrom), -errno.
 */
int drec_reader_alive(struct drec_reader *reader);

/* Clock. Conversions use the file's anchors (or those given to set_anchors, as the daemon does). */
int64_t drec_reader_mono_ns(const struct drec_reader *reader, uint64_t ticks);
int64_t drec_reader_unix_ns(const struct drec_reader *reader, uint64_t ticks);
uint64_t drec_reader_ticks(const struct drec_reader *reader, int64_t mono_ns);
int64_t drec_reader_mono_to_unix_ns(const struct drec_reader *reader);
void drec_reader_set_anchors(struct drec_reader *reader, const struct drec_anchor *anchors, size_t count,
			     int64_t mono_to_unix_ns);

/*
 * An event's begin and end in Unix ns, whatever its time base. Not for NOTIME events (-ENODATA).
 * A length that would pass INT64_MAX is cut there.
 */
int drec_reader_event_time(const struct drec_reader *reader, const struct drec_event *event,
			   int64_t *ret_start_ns, int64_t *ret_end_ns);

/* The WINDOW section of a .drec, or NULL. */
const struct drec_window *drec_reader_window(const struct drec_reader *reader);

/* Totals since the ring was made: lost by reason (DREC_LOSS_LIMIT entries), overwritten events. */
int drec_reader_losses(struct drec_reader *reader, uint64_t ret_lost[DREC_LOSS_LIMIT], uint64_t *ret_overwritten);

#ifdef __cplusplus
}
#endif
#endif
