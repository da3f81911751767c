/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events read by what their producer wrote before.
 *
 * A producer writes the same keys in the same order with the same space between them. So the texts between
 * values are learned, as a tree: a shape is one such text (`, "cat": "`), below the one that stood before it,
 * with what the value after it is and where it goes. An event whose texts are all known is read by comparing
 * them and finding the values' ends; any other one, and any value that is not plainly right, is left to
 * chrome_event_scan(), from whose findings the shapes are learned. The results are the same by construction:
 * a learned text holds whole tokens only, so it reads the same wherever it stands between values.
 *
 * `ph` is part of the text between values, so that the kind of an event is known by its place in the tree.
 */
#ifndef REDUCER_CHROME_FAST_H
#define REDUCER_CHROME_FAST_H

#include <stdbool.h>
#include <stdint.h>

#include "chrome_event.h"

enum { SHAPE_TEXT_MAX = 63, SHAPE_CHILDREN_MAX = 16, SHAPES_MAX = 192 };

enum shape_value {
	SHAPE_END,      /* none: the event ends after the text */
	SHAPE_STRING,   /* the text ends with its quote */
	SHAPE_WORD,     /* a number or bare word */
	SHAPE_CONTAINER /* the text ends with its bracket */
};

struct chrome_shape {
	_Alignas(64) char text[SHAPE_TEXT_MAX + 1];
	uint64_t mask;  /* one bit for each byte of the text */
	uint8_t bytes;
	uint8_t value;  /* enum shape_value */
	uint8_t field;  /* enum chrome_field; FIELD_OTHER goes to extra */
	uint8_t place;  /* offset in the event of the text that the value becomes; 0 = none */
	uint8_t kind;   /* enum drec_kind that `ph` so far says; 0 = none yet */
	uint8_t key_at, key_bytes; /* the key, in the text, with its quotes */
	uint16_t seen;  /* one bit for each field so far */
	/* The shapes that were seen to follow; words last, since their text may be the beginning of another one's. */
	struct chrome_shape *child, *sibling;
};

/* Zeroed at first. shape[0] is the root, before the event's first byte. */
struct chrome_shapes {
	struct chrome_shape *shape;
	unsigned n;
	unsigned misses; /* events that found no room since all was forgotten */
	bool off;
	bool (*read)(const struct chrome_shapes *shapes, struct chrome_event *found, const char **p,
		     const char *end, struct reducer_event *ret_event);
};

/*
 * The event at *p, which is a brace. True: *p is after it and *ret_event is what chrome_event_map() would have
 * said (offset and bytes not set), valid until the next event. False: read it another way; *p is where it was
 * and *ret_event is anything. At least 64 bytes must follow an event that is read this way.
 */
static inline bool chrome_fast_event(const struct chrome_shapes *shapes, struct chrome_event *found, const char **p,
				     const char *end, struct reducer_event *ret_event)
{
	return shapes->read && shapes->read(shapes, found, p, end, ret_event);
}

/* Learns from what chrome_event_scan() found, strictly, in [begin, end). */
void chrome_shapes_learn(struct chrome_shapes *shapes, const struct chrome_event *found, const char *begin,
			 const char *end);
void chrome_shapes_free(struct chrome_shapes *shapes);

/* For tests: which of the variants below new readers use. CHROME_FAST_BEST is the default. */
enum chrome_fast_variant {
	CHROME_FAST_BEST,
	CHROME_FAST_NONE,
	CHROME_FAST_GENERIC,
	CHROME_FAST_SSE2,
	CHROME_FAST_AVX2,
	CHROME_FAST_AVX512
};
/* False where this machine cannot run it. */
bool chrome_fast_choose(enum chrome_fast_variant variant);

#define CHROME_FAST_FUNCTION(name)                                                                       \
	bool name(const struct chrome_shapes *shapes, struct chrome_event *found, const char **at,          \
		  const char *end, struct reducer_event *ret_event)

CHROME_FAST_FUNCTION(chrome_fast_generic);
#ifdef __SSE2__
CHROME_FAST_FUNCTION(chrome_fast_sse2);
#endif
#ifdef REDUCER_HAVE_AVX2
CHROME_FAST_FUNCTION(chrome_fast_avx2);
#endif
#ifdef REDUCER_HAVE_AVX512
CHROME_FAST_FUNCTION(chrome_fast_avx512);
#endif

#endif
