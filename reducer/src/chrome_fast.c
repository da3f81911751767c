/* SPDX-License-Identifier: Apache-2.0 */
/* Learning the shapes of events, and the choice of how to read by them. */
#include "chrome_fast.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* So many events without room make it worth to forget all shapes and to learn anew. */
enum { MISSES_MAX = 4096 };

static _Atomic enum chrome_fast_variant chosen = CHROME_FAST_BEST;

typedef CHROME_FAST_FUNCTION(fast_function);

static fast_function *function_of(enum chrome_fast_variant variant)
{
	switch (variant) {
	case CHROME_FAST_NONE:
		return NULL;
	case CHROME_FAST_GENERIC:
		return chrome_fast_generic;
	case CHROME_FAST_SSE2:
#ifdef __SSE2__
		return chrome_fast_sse2;
#else
		return NULL;
#endif
	case CHROME_FAST_AVX2:
#ifdef REDUCER_HAVE_AVX2
		return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") ? chrome_fast_avx2 : NULL;
#else
		return NULL;
#endif
	case CHROME_FAST_AVX512:
#ifdef REDUCER_HAVE_AVX512
		return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
				       __builtin_cpu_supports("bmi") ? chrome_fast_avx512 : NULL;
#else
		return NULL;
#endif
	case CHROME_FAST_BEST:
		break;
	}
	fast_function *best = NULL;
	for (enum chrome_fast_variant i = CHROME_FAST_AVX512; !best; i--)
		best = function_of(i);
	return best;
}

bool chrome_fast_choose(enum chrome_fast_variant variant)
{
	if (variant != CHROME_FAST_NONE && !function_of(variant))
		return false;
	chosen = variant;
	return true;
}

/* Whether anything can be learned; forgets all when too much did not fit. */
static bool make_room(struct chrome_shapes *shapes)
{
	if (shapes->off)
		return false;
	if (!shapes->shape) {
		shapes->read = function_of(chosen);
		shapes->off = !shapes->read;
		if (shapes->off)
			return false;
		shapes->shape = aligned_alloc(64, SHAPES_MAX * sizeof(*shapes->shape));
		if (!shapes->shape) {
			/* It only saves time. */
			shapes->off = true;
			shapes->read = NULL;
			return false;
		}
	} else if (shapes->misses < MISSES_MAX) {
		return true;
	}
	memset(shapes->shape, 0, sizeof(*shapes->shape));
	shapes->n = 1;
	shapes->misses = 0;
	return true;
}

/* The shape that a stretch of text up to a value (or the end) asks for, less its place in the tree. */
struct wanted {
	const char *from;
	size_t bytes;
	enum shape_value value;
	enum chrome_field field;
	const char *key;
	size_t key_bytes;
};

static struct chrome_shape *find_child(struct chrome_shape *parent, const struct wanted *wanted)
{
	struct chrome_shape *child = parent->child;
	while (child && (child->bytes != wanted->bytes || child->value != wanted->value ||
			 memcmp(child->text, wanted->from, wanted->bytes) != 0))
		child = child->sibling;
	return child;
}

static uint8_t place_of(enum chrome_field field)
{
	switch (field) {
	case FIELD_NAME:
		return offsetof(struct reducer_event, name);
	case FIELD_CAT:
		return offsetof(struct reducer_event, category);
	case FIELD_PID:
		return offsetof(struct reducer_event, group);
	case FIELD_TID:
		return offsetof(struct reducer_event, track);
	case FIELD_ARGS:
		return offsetof(struct reducer_event, args);
	case FIELD_OTHER:
	case FIELD_PH:
	case FIELD_TS:
	case FIELD_DUR:
	case FIELD_ID:
	case FIELD_COUNT:
		break;
	}
	return 0;
}

/* Where another child goes in the chain of them, or NULL if there are enough. */
static struct chrome_shape **child_place(struct chrome_shape *parent, enum shape_value value)
{
	struct chrome_shape **place = NULL, **link = &parent->child;
	for (unsigned i = 0; *link; link = &(*link)->sibling, i++) {
		if (i == SHAPE_CHILDREN_MAX)
			return NULL;
		if (!place && value != SHAPE_WORD && (*link)->value == SHAPE_WORD)
			place = link;
	}
	return place ? place : link;
}

static struct chrome_shape *add_child(struct chrome_shapes *shapes, struct chrome_shape *parent,
				      const struct wanted *wanted, uint8_t kind)
{
	struct chrome_shape **place = child_place(parent, wanted->value);
	if (wanted->bytes > SHAPE_TEXT_MAX || !place || shapes->n == SHAPES_MAX)
		return NULL;
	struct chrome_shape *child = &shapes->shape[shapes->n++];
	*child = (struct chrome_shape){
		.mask = ((uint64_t)1 << wanted->bytes) - 1,
		.bytes = (uint8_t)wanted->bytes,
		.value = (uint8_t)wanted->value,
		.field = (uint8_t)wanted->field,
		.place = place_of(wanted->field),
		.kind = kind,
		.seen = (uint16_t)(parent->seen | 1u << wanted->field),
		.key_at = (uint8_t)(wanted->key ? wanted->key - wanted->from : 0),
		.key_bytes = (uint8_t)wanted->key_bytes,
		.sibling = *place,
	};
	memcpy(child->text, wanted->from, wanted->bytes);
	*place = child;
	return child;
}

/* What the value of a member is, and the field that it fills; false where only the other reading can say. */
static bool want_member(const struct chrome_member *member, const char *from, struct wanted *ret)
{
	struct reducer_text value = member->value;
	enum chrome_field field = member->field;
	enum shape_value kind = SHAPE_WORD;
	if (member->key.data[0] != '"' || value.bytes == 0)
		return false;
	if (*value.data == '"')
		kind = SHAPE_STRING;
	else if (*value.data == '{' || *value.data == '[')
		kind = SHAPE_CONTAINER;
	/* No time; and a word that may be a name or none. */
	if (kind == SHAPE_CONTAINER && (field == FIELD_TS || field == FIELD_DUR))
		return false;
	if (kind == SHAPE_WORD && (field == FIELD_NAME || field == FIELD_CAT))
		return false;
	/* These have a place of their own only in one form. */
	if (kind == SHAPE_CONTAINER && (field == FIELD_NAME || field == FIELD_CAT))
		field = FIELD_OTHER;
	if (kind != SHAPE_WORD && field == FIELD_ID)
		field = FIELD_OTHER;
	*ret = (struct wanted){
		.from = from,
		.bytes = (size_t)(value.data - from) + (kind != SHAPE_WORD),
		.value = kind,
		.field = field,
		.key = member->key.data,
		.key_bytes = member->key.bytes,
	};
	return true;
}

void chrome_shapes_learn(struct chrome_shapes *shapes, const struct chrome_event *found, const char *begin,
			 const char *end)
{
	if (found->loose || found->doubled || found->n_members == 0 || !make_room(shapes))
		return;
	struct chrome_shape *at = &shapes->shape[0];
	const char *from = begin;
	uint8_t kind = 0;
	for (size_t i = 0; i <= found->n_members; i++) {
		const struct chrome_member *member = i < found->n_members ? &found->member[i] : NULL;
		struct wanted wanted = {.from = from, .bytes = (size_t)(end - from), .value = SHAPE_END};
		if (member && member->field == FIELD_PH) {
			kind = chrome_event_kind(member->value);
			if (kind == DREC_OTHER)
				return;
			continue;
		}
		if (member && !want_member(member, from, &wanted))
			return;
		/* A length of what is no span has no place. */
		if (!member && (!kind || (kind != DREC_SPAN && at->seen & 1u << FIELD_DUR)))
			return;
		struct chrome_shape *next = find_child(at, &wanted);
		if (!next)
			next = add_child(shapes, at, &wanted, kind);
		if (!next) {
			shapes->misses++;
			return;
		}
		at = next;
		if (member)
			from = member->value.data + member->value.bytes;
	}
}

void chrome_shapes_free(struct chrome_shapes *shapes)
{
	free(shapes->shape);
	*shapes = (struct chrome_shapes){0};
}
