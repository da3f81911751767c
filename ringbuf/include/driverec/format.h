/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driverec/format.h: the layout of a ring file (`.ring`) and of a window file (`.drec`).
 *
 * Both are one section format, little-endian, offsets from the start of the file, sections aligned to
 * 4096 bytes and found through the section table alone. docs/ring-format.md describes it for readers in
 * other languages; ringbuf/src/ring.c describes the protocol by which producer, daemon and readers share it.
 *
 * The structs are for memory layout. Whoever reads a live ring reads a field once into private memory and
 * checks the copy: the writer may be hostile or dying.
 */
#ifndef DRIVEREC_FORMAT_H
#define DRIVEREC_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DREC_MAGIC "DRVREC\r\n" /* 8 bytes; CR LF shows a file that went through a text transfer */

enum {
	DREC_FORMAT_MAJOR = 1,
	DREC_FORMAT_MINOR = 0,
	DREC_PAGE_BYTES = 4096,
	DREC_SECTIONS_MAX = 32,
	DREC_STACK_MAX = 56,
	DREC_PINS_MAX = 16,
	/* Limits a reader enforces before it allocates anything. */
	DREC_CHUNKS_MIN = 64,
	DREC_CHUNKS_MAX = 2048,
	DREC_CHUNK_BYTES_MIN = 8192,
	DREC_CHUNK_BYTES_MAX = 1 << 20,
	DREC_SLOTS_MAX = 512,
	DREC_DICT_IDS_MAX = 65535,
	DREC_DICT_BYTES_MAX = 16 << 20,
	DREC_ANCHORS_MAX = 4096,
	DREC_TEXT_MAX = 64
};
#define DREC_RING_BYTES_MAX ((uint64_t)4 << 30)

enum drec_file_kind { DREC_FILE_RING = 1, DREC_FILE_WINDOW = 2 };
enum drec_clock { DREC_CLOCK_TSC = 1, DREC_CLOCK_CNTVCT = 2, DREC_CLOCK_MONO = 3, DREC_CLOCK_UNIX = 4 };

enum drec_section_type {
	DREC_SEC_STATE = 1,
	DREC_SEC_PINS = 2,
	DREC_SEC_ORDER = 3,
	DREC_SEC_CHUNKS = 4,
	DREC_SEC_SLOTS = 5,
	DREC_SEC_ANCHORS = 6,
	DREC_SEC_DICT_INDEX = 7,
	DREC_SEC_DICT = 8,
	DREC_SEC_DATA = 9,
	/* window files only */
	DREC_SEC_WINDOW = 10,
	DREC_SEC_HOST_ANCHORS = 11
};

/* The section's crc field is the CRC32 (zlib's polynomial) of its bytes. Set in window files alone. */
enum { DREC_SECTION_HAS_CRC = 1 };

struct drec_section {
	uint32_t type;
	uint32_t flags;
	uint64_t offset;
	uint64_t bytes;
	uint32_t item_bytes;
	uint32_t crc;
};

struct drec_header {
	char magic[8];
	uint16_t major;
	uint16_t minor;
	uint32_t header_bytes;
	uint64_t incompat; /* a reader that does not know one of these bits refuses the file */
	uint64_t compat;   /* may be ignored */
	uint64_t file_bytes;
	uint32_t n_sections;
	uint32_t kind; /* enum drec_file_kind */
	uint8_t ring_id[16];
	uint8_t boot_id[16];
	uint64_t pid;
	uint64_t pid_start;  /* field 22 of /proc/<pid>/stat */
	uint64_t pidns_ino;
	uint32_t rank;       /* UINT32_MAX = unknown */
	uint32_t clock;      /* enum drec_clock */
	int64_t created_mono_ns;
	int64_t created_real_ns;
	uint32_t n_chunks;
	uint32_t chunk_bytes;
	uint32_t n_slots;
	uint32_t n_pins;
	uint32_t n_dict_ids;
	uint32_t n_anchors;
	uint32_t uid;
	uint8_t reserved0[36];
	char job[DREC_TEXT_MAX];
	char name[DREC_TEXT_MAX];
	char host[DREC_TEXT_MAX];
	uint8_t reserved2[128];
	struct drec_section section[DREC_SECTIONS_MAX];
	uint8_t reserved3[DREC_PAGE_BYTES - 512 - DREC_SECTIONS_MAX * 32];
};

/* Loss of events that belong to no slot: by reason. first/last in ring ticks. */
struct drec_slotless_loss {
	uint64_t count;
	uint64_t first;
	uint64_t last;
	uint64_t reserved[5];
};

/* One cache line each, since different threads write them. */
struct drec_state {
	uint64_t tail;         /* the next order number; 1 .. n are given out at creation */
	uint64_t reserved0[7];
	uint64_t evicted;      /* highest order number that was overwritten */
	uint64_t reserved1[7];
	uint64_t end_mark;     /* 0, or enum drec_mark CLOSE / EXIT */
	uint64_t reserved2[7];
	uint64_t slots_used;   /* highest slot ever used + 1 */
	uint64_t reserved3[7];
	uint64_t dict_next_id; /* the next free id; ids start at 1 */
	uint64_t reserved4[7];
	uint64_t dict_next_off;
	uint64_t reserved5[7];
	uint64_t anchor_due;   /* ticks from which the next anchor is due */
	uint64_t anchor_seq;   /* anchors written or being written */
	uint64_t reserved6[6];
	uint64_t dict_full;    /* names that stayed inline since the dictionary had no room */
	uint64_t reserved7[7];
	struct drec_slotless_loss loss[DREC_PAGE_BYTES / 512]; /* indexed by enum drec_loss */
	uint8_t reserved8[DREC_PAGE_BYTES - 8 * 64 - (DREC_PAGE_BYTES / 512) * 64];
};

/* What a daemon writes to keep chunks from being overwritten: order in [from, from + n_chunks / 2). */
struct drec_pin {
	uint8_t active; /* written last, by one byte, so it cannot tear */
	uint8_t reserved0[7];
	uint64_t from;
	uint8_t incident[16];
	uint8_t store[16];
	int64_t t0_ns;  /* Unix ns: the anomaly, and the window asked for */
	int64_t a_ns;
	int64_t b_ns;
	char trigger[48];
	uint8_t reserved1[8];
};

/* An ORDER word: state in bits 63-62, order number in 61-12, chunk index in 11-0. */
enum drec_chunk_state { DREC_CHUNK_CLOSED = 0, DREC_CHUNK_TAKING = 1, DREC_CHUNK_OPEN = 3 };
#define DREC_ORDER_STATE(word) ((unsigned)((word) >> 62))
#define DREC_ORDER_NUMBER(word) (((word) >> 12) & (((uint64_t)1 << 50) - 1))
#define DREC_ORDER_CHUNK(word) ((unsigned)((word) & 0xfff))
#define DREC_ORDER_WORD(state, number, chunk) \
	((uint64_t)(state) << 62 | (uint64_t)(number) << 12 | (uint64_t)(chunk))

struct drec_chunk {
	uint64_t commit;      /* generation << 32 | committed bytes; the store that publishes events */
	uint32_t slot;
	uint32_t life;        /* which life of the slot */
	uint64_t number;      /* of this chunk within the slot life, from 0 */
	uint64_t first_event; /* events the slot life had committed before this chunk */
	uint64_t prev_last;   /* end time in ticks of the last event before this chunk, 0 if none */
	uint64_t last;        /* latest end time in ticks of this chunk's events, set when it is closed */
	union {
		uint64_t taken; /* rings: the clock, in ticks, when the thread took it */
		uint64_t order; /* window files: the order number it had; 0 = was open */
	};
	uint32_t crc;         /* window files: CRC32 of the committed bytes */
	uint32_t reserved;
};

struct drec_open_span {
	uint64_t start; /* ticks */
	uint32_t name;  /* dictionary id */
	uint32_t track; /* track id | mark << 24: a step or phase (enum drec_mark *_BEGIN), 0 = plain span */
};

/* A thread's place in the ring. */
struct drec_slot {
	uint64_t life_state; /* life << 32 | 0 free, 1 used */
	uint64_t open;       /* begins so far << 32 | depth now */
	uint32_t chunk;      /* its open chunk, UINT32_MAX = none */
	uint32_t tid;
	uint32_t track;      /* the thread's own track */
	uint32_t pending_reason; /* a loss that could not yet be put into the stream */
	uint64_t pending_count;
	uint64_t pending_first;
	uint64_t pending_last;
	uint64_t step;       /* the open step's number; meaningful while a step is on the stack */
	uint64_t lost[8];    /* by enum drec_loss, over all lives of the slot */
	struct drec_open_span stack[DREC_STACK_MAX];
};

/* The same moment on every clock. seq is written last and is never 0 in a whole anchor. */
struct drec_anchor {
	uint64_t seq;
	uint64_t ticks;
	int64_t mono_ns;
	int64_t real_ns;
	int64_t boot_ns;
	uint32_t clocksource; /* FNV-1a (32 bit) of the kernel's clocksource name: shows a change */
	uint32_t reserved0;
	uint64_t reserved1[2];
};

enum drec_dict_kind {
	DREC_DICT_NAME = 1,
	DREC_DICT_CATEGORY = 2,
	DREC_DICT_TRACK = 3,      /* struct drec_track_text and its texts */
	DREC_DICT_TRACK_NAME = 4, /* u32 track id, then text: a later, better name of a track */
	DREC_DICT_META = 5        /* "key":value, a top-level JSON member of a source */
};
#define DREC_DICT_COMMITTED ((uint32_t)1 << 31)

struct drec_dict_entry {
	uint32_t kind;
	uint32_t bytes; /* | DREC_DICT_COMMITTED, written last */
	uint64_t offset; /* into the DICT section */
};

enum drec_track_kind {
	DREC_TRACK_THREAD = 1,
	DREC_TRACK_STREAM = 2,  /* a device's stream or core */
	DREC_TRACK_COUNTER = 3,
	DREC_TRACK_SOURCE = 4,  /* as a source has it: group and name are its pid and tid as JSON values */
	DREC_TRACK_OTHER = 5
};

/* A DREC_DICT_TRACK entry: this, then group_bytes of group (process, device), then name_bytes of name. */
struct drec_track_text {
	uint32_t kind;
	uint32_t group_bytes;
	uint32_t name_bytes;
	uint32_t tid; /* the kernel's thread id where it is a thread */
};

/* WINDOW section of a .drec. Times are Unix ns by the incident's one offset, and ring ticks. */
struct drec_window {
	int64_t t0_ns;
	int64_t a_ns;          /* asked */
	int64_t b_ns;
	uint64_t a_ticks;
	uint64_t b_ticks;
	int64_t covered_a_ns;  /* what the file has without a gap */
	int64_t covered_b_ns;
	int64_t mono_to_unix_ns; /* Unix = MONOTONIC + this, used for the whole window */
	uint64_t evicted;      /* STATE.evicted as read after the copy */
	uint64_t from;         /* the pin's first order number; 0 = there was no pin (copied at once) */
	uint64_t lost;         /* events known lost inside the window */
	uint32_t complete;     /* 1 = nothing inside [a, b] is missing */
	uint32_t reason;       /* enum drec_incomplete if not */
	uint64_t events;       /* that meet [a, b] or have no time; loss records are none. Set by sealing */
	uint64_t lost_unrecorded;  /* of `lost`: what no loss record in the chunks tells */
	uint32_t reason_unread;    /* enum drec_incomplete before the events themselves were looked at */
	uint32_t sealed;           /* 1 = read back: events, complete and the CRCs are final */
	uint64_t until;            /* a part: it has chunks closed with orders in [from, until), and a later part
	                              has the rest; 0 = the only or the last part, with the open chunks */
};

/* Why a window is not complete, the first that applies. */
enum drec_incomplete {
	DREC_COMPLETE = 0,
	DREC_INCOMPLETE_OVERWRITTEN = 1, /* chunks of the window were overwritten before they were pinned */
	DREC_INCOMPLETE_LOST = 2,        /* loss records meet the window */
	DREC_INCOMPLETE_CORRUPT = 3,     /* some bytes of it could not be read as events */
	DREC_INCOMPLETE_LATE_START = 4,  /* the ring was made after the window's begin */
	DREC_INCOMPLETE_EARLY = 5,       /* read before the window's end */
	DREC_INCOMPLETE_BEYOND_HALF = 6, /* the window needs more than half the ring: the onset was kept */
	DREC_INCOMPLETE_TRUNCATED = 7,   /* cut to the size limit, or the disk had no room */
	DREC_INCOMPLETE_CLOCK = 8,       /* the clock was not continuous: times are doubtful */
	DREC_INCOMPLETE_UNSEALED = 9     /* not yet read back by drec_window_seal() */
};

#ifdef __cplusplus
#define DREC_STATIC_ASSERT(what, why) static_assert(what, why)
#else
#define DREC_STATIC_ASSERT(what, why) _Static_assert(what, why)
#endif
DREC_STATIC_ASSERT(sizeof(struct drec_section) == 32, "layout");
DREC_STATIC_ASSERT(sizeof(struct drec_header) == DREC_PAGE_BYTES, "layout");
DREC_STATIC_ASSERT(offsetof(struct drec_header, ring_id) == 48, "layout");
DREC_STATIC_ASSERT(offsetof(struct drec_header, job) == 192, "layout");
DREC_STATIC_ASSERT(offsetof(struct drec_header, section) == 512, "layout");
DREC_STATIC_ASSERT(sizeof(struct drec_state) == DREC_PAGE_BYTES, "layout");
DREC_STATIC_ASSERT(offsetof(struct drec_state, loss) == 512, "layout");
DREC_STATIC_ASSERT(sizeof(struct drec_pin) == 128, "layout");
DREC_STATIC_ASSERT(sizeof(struct drec_chunk) == 64, "layout");
DREC_STATIC_ASSERT(sizeof(struct drec_slot) == 1024, "layout");
DREC_STATIC_ASSERT(offsetof(struct drec_slot, stack) == 128, "layout");
DREC_STATIC_ASSERT(sizeof(struct drec_anchor) == 64, "layout");
DREC_STATIC_ASSERT(sizeof(struct drec_dict_entry) == 16, "layout");
DREC_STATIC_ASSERT(sizeof(struct drec_track_text) == 16, "layout");
DREC_STATIC_ASSERT(sizeof(struct drec_window) == 128, "layout");

#ifdef __cplusplus
}
#endif
#endif
