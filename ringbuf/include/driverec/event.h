/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driverec/event.h: one trace event, in memory and as bytes in a ring chunk.
 *
 * The byte form is described in docs/ring-format.md: a 32-byte base record, little-endian, followed by
 * flagged additions, each padded to 8 bytes. A plain native span is exactly the base record.
 *
 *   0 u16 words     length in 8-byte words, base included (4 .. 65535)
 *   2 u8  kind      enum drec_kind
 *   3 u8  flags     enum drec_flag
 *   4 u16 lap       low 16 bits of the chunk's generation: bytes of an older lap are refused
 *   6 u16 category  dictionary id; for DREC_MARK enum drec_mark; for DREC_LOSS enum drec_loss
 *   8 u32 name      dictionary id, 0 = none or inline
 *  12 u32 track:24 | depth:8
 *  16 u64 start
 *  24 u64 dur_or_value
 *  then, in this order, where flagged:
 *     PS     { u16 start_ps, u16 dur_ps, u32 0 }
 *     ID     { u64 id }
 *     NAME   { u32 bytes, text }
 *     ARGS   { u32 bytes, data }          (both tag bits together say of which form)
 *     EXTRA  { u32 bytes, data }
 *
 * All functions here are pure, thread-safe, and neither allocate nor fail other than by -errno.
 */
#ifndef DRIVEREC_EVENT_H
#define DRIVEREC_EVENT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum drec_kind {
	DREC_SPAN = 1,      /* start .. start + dur */
	DREC_INSTANT = 2,
	DREC_COUNTER = 3,   /* dur_or_value holds the bits of an IEEE 754 double */
	DREC_FLOW_BEGIN = 4,
	DREC_FLOW_STEP = 5,
	DREC_FLOW_END = 6,
	DREC_BEGIN = 7,     /* a foreign span's begin or end as its source wrote it, unpaired */
	DREC_END = 8,
	DREC_ASYNC_BEGIN = 9,
	DREC_ASYNC_INSTANT = 10,
	DREC_ASYNC_END = 11,
	DREC_MARK = 12,     /* where the job is; category = enum drec_mark */
	DREC_META = 13,     /* a source's metadata event; describes, has no place in time */
	DREC_OTHER = 14,    /* a source's event of a kind we do not interpret; all of it is in extra */
	DREC_LOSS = 15,     /* dur_or_value events lost between start and id; category = enum drec_loss */
	DREC_KIND_LIMIT
};

/* Marks. `id` is the step number for the step marks, `name` the phase ("train", "eval", …). */
enum drec_mark {
	DREC_MARK_STEP_BEGIN = 1,
	DREC_MARK_STEP_END = 2,  /* start = the step's begin, dur = its length */
	DREC_MARK_PHASE_BEGIN = 3,
	DREC_MARK_PHASE_END = 4, /* start = the phase's begin, dur = its length */
	DREC_MARK_CLOSE = 5,     /* the producer called drec_close() */
	DREC_MARK_EXIT = 6,      /* the process exited by itself without drec_close() */
	DREC_MARK_TRIGGER = 7,   /* the producer asked for an incident; args: the reason as JSON text */
	DREC_MARK_LIMIT
};

/* Why events are missing. */
enum drec_loss {
	DREC_LOSS_PINNED_FULL = 1, /* every chunk was pinned or open */
	DREC_LOSS_TOO_BIG = 2,     /* larger than a chunk or 512 KiB */
	DREC_LOSS_REENTRANT = 3,   /* from a signal handler that interrupted an append of the same thread */
	DREC_LOSS_NO_SLOT = 4,     /* more threads than slots */
	DREC_LOSS_CONTENDED = 5,   /* the bounded search for a chunk ran out of tries */
	DREC_LOSS_THREAD_EXIT = 6, /* after the thread's exit handlers had run */
	DREC_LOSS_SOURCE = 7,      /* a source said that it lost them, or its input could not be read */
	DREC_LOSS_LIMIT = 8
};

enum drec_flag {
	DREC_FLAG_ABS = 1,        /* start is Unix ns and dur is ns; else both are in ring clock ticks */
	DREC_FLAG_PS = 2,
	DREC_FLAG_ID = 4,
	DREC_FLAG_NAME = 8,       /* name is inline */
	DREC_FLAG_ARGS_JSON = 16, /* args: a JSON value, byte for byte as the source wrote it */
	DREC_FLAG_ARGS_XSTAT = 32,/* args: XPlane stats (protobuf) */
	DREC_FLAG_EXTRA = 64,     /* further JSON members of the source's record: "bp":"e","s":"t" */
	DREC_FLAG_NOTIME = 128    /* the source gave no time; belongs to every window */
};

enum {
	DREC_EVENT_BASE_BYTES = 32,
	DREC_EVENT_BYTES_MAX = 65535 * 8,
	DREC_TRACK_MAX = (1 << 24) - 1,
	DREC_DEPTH_UNKNOWN = 255
};

/*
 * An event in memory. The pointers refer to memory of whoever filled it in: for decoded events the buffer
 * that was decoded, valid as long as that is.
 */
struct drec_event {
	uint8_t kind;
	uint8_t flags;
	uint8_t depth;      /* nesting depth at begin, DREC_DEPTH_UNKNOWN where not known */
	uint16_t category;
	uint16_t start_ps;  /* 0 .. 999, added to start */
	uint16_t dur_ps;    /* 0 .. 999, added to dur */
	uint32_t name;
	uint32_t track;
	uint64_t start;
	uint64_t dur_or_value;
	uint64_t id;
	const char *name_text; /* not terminated; only with DREC_FLAG_NAME */
	uint32_t name_bytes;
	uint32_t args_bytes;
	uint32_t extra_bytes;
	const void *args;
	const char *extra;
};

/*
 * Bytes that drec_event_encode() would write, a multiple of 8; 0 if the event is larger than
 * DREC_EVENT_BYTES_MAX.
 */
size_t drec_event_bytes(const struct drec_event *event);

/* Writes the event at `out`, which has room for drec_event_bytes(event). Padding is zeroed. */
void drec_event_encode(void *out, const struct drec_event *event, uint16_t lap);

/*
 * Reads the event at `bytes`, of which `avail` bytes may be read. Returns its length in bytes, or -EBADMSG
 * if it is no whole, well-formed event of this `lap`; then *ret_event is untouched.
 */
int drec_event_decode(const void *bytes, size_t avail, uint16_t lap, struct drec_event *ret_event);

/* The counter's value, and the bits to store for one. */
double drec_event_value(const struct drec_event *event);
uint64_t drec_value_bits(double value);

/* Static names for reports: "span", "pinned_full", "step_begin"; "unknown" outside the range. */
const char *drec_kind_name(unsigned kind);
const char *drec_loss_name(unsigned reason);
const char *drec_mark_name(unsigned mark);

#ifdef __cplusplus
}
#endif
#endif
