/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driverec/driverec.h: record trace events from inside a job.
 *
 *     drec *rec = drec_open(NULL);
 *     for (uint64_t n = 0; n < steps; n++) {
 *             drec_step_begin(rec, n, DREC_NAME(rec, "train"));
 *             drec_scope load = drec_begin(rec, DREC_NAME(rec, "load"));
 *             load_batch();
 *             drec_end(rec, load);
 *             ...
 *             drec_step_end(rec);
 *     }
 *     drec_close(rec);
 *
 * Events go to a ring file in the run directory, where they outlive the process. Whether anybody reads it
 * makes no difference to the job.
 *
 * Promises. No call blocks, prints, raises a signal or exits. After a thread's first event no call takes a
 * lock, allocates or makes a system call (once a second one reads the clocks). What cannot be recorded is
 * counted. Every function accepts NULL for the recorder and then does nothing, so a job runs the same where no
 * ring could be made.
 *
 * Caveats. Safe from any thread; a call from a signal handler that interrupts another call of the same
 * thread is counted as lost. A forked or cloned child records nothing until it opens a ring of its own.
 * The library must stay loaded (it is linked with -z nodelete).
 *
 * Errors. Only drec_open() and drec_open_strict() can fail, and only they say why.
 */
#ifndef DRIVEREC_DRIVEREC_H
#define DRIVEREC_DRIVEREC_H

#include <stddef.h>
#include <stdint.h>

#include <driverec/event.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One ring and what the process needs to write it. Never freed: other threads may still hold it. */
typedef struct drec drec;

/* A moment on the ring's clock: ticks, or ns where the machine has no steady counter. */
typedef uint64_t drec_time;

/* What drec_begin() returns and drec_end() takes: the depth of the span, 0 = none. */
typedef uint32_t drec_scope;

enum { DREC_RANK_UNKNOWN = -1 };

/* Every field may be 0. Texts are copied; what they may hold: [A-Za-z0-9._-]{1,63}, no leading dot. */
struct drec_options {
	const char *run_dir; /* default: $DRIVEREC_RUN_DIR, /run/driverec, /dev/shm/driverec-<uid> */
	const char *job;     /* default: the environment's job name (driverec/identity.h) */
	const char *name;    /* default: rank<N>, else the process name */
	const int *rank;     /* default: the environment's rank */
	uint64_t ring_bytes; /* of event data; default 16 MiB, or $DRIVEREC_RING_SIZE bytes */
	uint32_t chunk_bytes; /* default: by ring size; the largest event fits one chunk */
	uint32_t dict_ids;    /* most names; default: by ring size */
	uint64_t dict_bytes;  /* of all names together; default: by ring size */
	int no_exit_mark;    /* do not write the exit mark at process exit */
	uint32_t clock;      /* enum drec_clock of format.h; 0 = the best there is */
};

/*
 * Opens a ring for this process, or returns NULL if none can be made; then errno says why
 * (ENOSPC: no room or too near the memory limit; EACCES, ENOENT: the run directory; EINVAL: an option).
 * errno is otherwise untouched. Makes the file whole before it appears: about 1 ms a MiB.
 * `options` may be NULL and is not kept.
 */
drec *drec_open(const struct drec_options *options);

/* As drec_open(), but returns 0 or -errno, and a static text that says what failed in *ret_why. */
int drec_open_strict(const struct drec_options *options, drec **ret_rec, const char **ret_why);

/*
 * Ends recording: writes the close mark; later calls on `rec` do nothing. Other threads may be inside calls.
 * The ring file stays, for the daemon to read and remove.
 */
void drec_close(drec *rec);

/* The ring's path; valid for ever. NULL for NULL. */
const char *drec_path(const drec *rec);

/* Bytes of event data the ring really has, which may be fewer than asked. */
uint64_t drec_ring_bytes(const drec *rec);

/* Events that this process could not record, by enum drec_loss, or all together for 0. */
uint64_t drec_lost(const drec *rec, unsigned reason);

/*
 * The id of a name, category or track for this recorder; the same text always gives the same id. Takes about
 * 20 ns for a text already known: keep the id, or use DREC_NAME. 0 (a nameless event) if the dictionary is
 * full or `text` is NULL. Texts are UTF-8 of at most 4096 bytes; longer ones are cut.
 */
uint32_t drec_name(drec *rec, const char *text);
uint32_t drec_name_n(drec *rec, const char *text, size_t bytes);
uint16_t drec_category(drec *rec, const char *text);
uint32_t drec_track(drec *rec, const char *group, const char *name);
uint32_t drec_track_n(drec *rec, unsigned track_kind, const char *group, size_t group_bytes, const char *name,
		      size_t name_bytes);

/* Adds a later name of a track, or a source's top-level member `"key":value`. 0 or -errno. */
int drec_track_rename(drec *rec, uint32_t track, const char *name, size_t bytes);
int drec_meta(drec *rec, const char *member, size_t bytes);

/* The calling thread's own track; made, named after the thread, at the thread's first event. */
uint32_t drec_thread_track(drec *rec);

/* The id of a string literal, looked up once a call site and recorder. */
#define DREC_NAME(rec, literal)                                                         \
	(__extension__({                                                                \
		static uint64_t drec_site_;                                             \
		drec_site_name((rec), &drec_site_, "" literal, sizeof(literal) - 1);    \
	}))
uint32_t drec_site_name(drec *rec, uint64_t *site, const char *text, size_t bytes);

/* Now, on the ring's clock. 0 for NULL. */
drec_time drec_now(const drec *rec);

/* A span on a track (0 = the thread's own) from `start` to `end`; end 0 = now. */
void drec_span(drec *rec, uint32_t track, uint32_t name, drec_time start, drec_time end);

/*
 * A scoped span on the thread's own track. While it is open the ring says so, so a stall or a crash inside
 * it shows what the thread was inside of. drec_end() also ends every span begun inside that was left open.
 */
drec_scope drec_begin(drec *rec, uint32_t name);
void drec_end(drec *rec, drec_scope scope);

void drec_instant(drec *rec, uint32_t track, uint32_t name);
void drec_counter(drec *rec, uint32_t track, uint32_t name, double value);

/*
 * Where the job is. A step belongs to the thread that begins it; a begin while one is open ends that one.
 * `phase` is a name id: "train", "eval", "checkpoint", "compile"; 0 = "train".
 */
void drec_step_begin(drec *rec, uint64_t step, uint32_t phase);
void drec_step_end(drec *rec);
drec_scope drec_phase_begin(drec *rec, uint32_t phase);
void drec_phase_end(drec *rec, drec_scope scope);

/* Asks the daemon for an incident around now. `reason` is at most 255 bytes of UTF-8. */
void drec_trigger(drec *rec, const char *reason);

/*
 * Any event, as given: ids of this recorder, times in its clock unless DREC_FLAG_ABS. For sources that
 * bring events of others. Returns 0, or -errno if it was not recorded (and counted): ENOSPC, E2BIG, EBUSY,
 * EINVAL (no event: an unknown kind, an id beyond the dictionary, picoseconds beyond 999).
 */
int drec_write(drec *rec, const struct drec_event *event);

/* Counts `count` events that a source could not bring, between two times of the ring's clock. */
void drec_note_loss(drec *rec, unsigned reason, uint64_t count, drec_time first, drec_time last);

#ifdef __cplusplus
}
#endif
#endif
