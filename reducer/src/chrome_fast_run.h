/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of every variant of the fast reading. A variant defines, for its instruction set, and includes it:
 *
 *   uint32_t lanes_equal(const char *p, const char *text)  which of 32 bytes are the same
 *   uint32_t lanes_stop(const char *p, uint32_t *high)     quotes and backslashes among 32 bytes; not ASCII
 *   uint32_t lanes_digit(const char *p)                    digits among 32 bytes
 *   void lanes_marks(const char *p, struct marks *ret)     what matters in a container, 64 bytes
 *
 * Every load is inside [p, end): where less is left, the event is not read this way.
 */
#include <string.h>

#include "decimal.h"

struct marks {
	uint64_t quote, backslash, open, close;
	uint64_t follow; /* comma, colon or closing bracket: what may stand after a text */
};

static uint32_t lanes_equal(const char *p, const char *text);
static uint32_t lanes_stop(const char *p, uint32_t *high);
static uint32_t lanes_digit(const char *p);
static void lanes_marks(const char *p, struct marks *ret);

enum { LANES = 32, BLOCK = 64 };

static inline uint64_t load8(const char *p)
{
	uint64_t word;
	memcpy(&word, p, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	return word;
}

/* The number that eight digits say, the first one in the lowest byte; zero bytes count as the digit 0. */
static inline uint64_t digits8(uint64_t word)
{
	word = (word & 0x0f0f0f0f0f0f0f0fu) * 2561 >> 8;
	word = (word & 0x00ff00ff00ff00ffu) * 6553601 >> 16;
	return (word & 0x0000ffff0000ffffu) * 42949672960001u >> 32;
}

/* The number that the `n` digits at p say, n in 1 .. 16; 8 bytes more than n can be read. */
static inline uint64_t digits16(const char *p, unsigned n)
{
	if (n <= 8)
		return digits8(load8(p) << (64 - 8 * n));
	return digits8(load8(p) << (128 - 8 * n)) * 100000000u + digits8(load8(p + n - 8));
}

static inline bool ends_word(char c)
{
	return c == ',' || c == '}' || c == ' ' || c == '\n' || c == ']' || c == '\r' || c == '\t' || c == ':' ||
	       c == '"' || c == '{' || c == '[';
}

/* The end of the word at p, or NULL. */
static inline const char *word_end(const char *p, const char *end)
{
	if (end - p >= LANES) {
		uint32_t others = ~lanes_digit(p);
		unsigned n = others ? (unsigned)__builtin_ctz(others) : LANES;
		if (n > 0 && n < LANES && ends_word(p[n]))
			return p + n;
	}
	return json_value(&p, end, false) == JSON_OK ? p : NULL;
}

static const char *slow_time(const char *p, const char *end, int64_t *ret_ns, uint16_t *ret_ps)
{
	const char *from = p;
	if (json_value(&p, end, false) != JSON_OK)
		return NULL;
	return decimal_us((struct reducer_text){from, (size_t)(p - from)}, ret_ns, ret_ps) ? p : NULL;
}

/* Decimal us with up to 16 digits and 6 decimals here, all others slowly. The place after it, or NULL. */
static inline const char *take_time(const char *p, const char *end, int64_t *ret_ns, uint16_t *ret_ps)
{
	const uint64_t whole_max = INT64_MAX / 1000 - 1;
	if (end - p < BLOCK)
		return NULL;
	uint32_t others = ~lanes_digit(p);
	unsigned n = others ? (unsigned)__builtin_ctz(others) : LANES;
	if (n == 0 || n > 16)
		return slow_time(p, end, ret_ns, ret_ps);
	uint64_t whole = digits16(p, n), decimals = 0;
	const char *q = p + n;
	if (*q == '.') {
		others >>= n + 1;
		unsigned m = others ? (unsigned)__builtin_ctz(others) : LANES;
		if (m == 0 || m > 6)
			return slow_time(p, end, ret_ns, ret_ps);
		decimals = digits8(load8(q + 1) & (((uint64_t)1 << 8 * m) - 1));
		q += 1 + m;
	}
	if (!ends_word(*q) || whole > whole_max)
		return slow_time(p, end, ret_ns, ret_ps);
	uint32_t ps = (uint32_t)decimals / 100;
	*ret_ns = (int64_t)(whole * 1000 + ps / 1000);
	*ret_ps = (uint16_t)(ps % 1000);
	return q;
}

/* The closing quote of the text at p (after its opening one), or NULL; *ret_plain: it says itself. */
static inline const char *string_end(const char *p, const char *end, bool *ret_plain)
{
	const char *q = p;
	uint32_t any_high = 0;
	for (;;) {
		uint32_t high;
		if (end - q < LANES)
			return NULL;
		uint32_t stop = lanes_stop(q, &high);
		if (stop) {
			any_high |= high & (stop ^ (stop - 1));
			q += __builtin_ctz(stop);
			break;
		}
		any_high |= high;
		q += LANES;
	}
	*ret_plain = true;
	if (*q == '\\') {
		if (json_string(&q, end) != JSON_OK)
			return NULL;
		*ret_plain = false;
		return q - 1;
	}
	if (any_high)
		*ret_plain = json_is_plain((struct reducer_text){p, (size_t)(q - p)});
	return q;
}

/* Bit i: the parity of bits 0 .. i. */
static inline uint64_t parity_up_to(uint64_t bits)
{
	bits ^= bits << 1;
	bits ^= bits << 2;
	bits ^= bits << 4;
	bits ^= bits << 8;
	bits ^= bits << 16;
	return bits ^ bits << 32;
}

/* The characters that a backslash before them escapes; *escaped: whether the first one is, then the next. */
static inline uint64_t escaped_by(uint64_t backslash, uint64_t *escaped)
{
	uint64_t result = *escaped;
	*escaped = 0;
	backslash &= ~result;
	while (backslash) {
		uint64_t first = backslash & -backslash;
		result |= first << 1;
		*escaped = first >> 63;
		backslash &= ~(first | first << 1);
	}
	return result;
}

/* A container's levels: bit d says whether level d is an object. Deeper ones are not read this way. */
struct nesting {
	uint64_t object;
	unsigned depth;
};

/* Follows the brackets `bits` of the block at p; the place after the container, p itself if it goes on, or
 * NULL. `open` of them open. */
static inline const char *follow_brackets(struct nesting *nesting, const char *p, uint64_t bits, uint64_t open)
{
	while (bits) {
		unsigned at = (unsigned)__builtin_ctzll(bits);
		uint64_t is_object = p[at] >> 5 & 1; /* of the pairs {} and [] only braces have this bit */
		if (open >> at & 1) {
			if (nesting->depth == 64)
				return NULL;
			nesting->object = nesting->object << 1 | is_object;
			nesting->depth++;
		} else {
			if ((nesting->object & 1) != is_object)
				return NULL;
			nesting->object >>= 1;
			if (--nesting->depth == 0)
				return p + at + 1;
		}
		bits &= bits - 1;
	}
	return p;
}

/* Whether after each of the texts that end before the bits `after`, what may follow one stands after space. */
static inline bool all_followed(const char *p, const char *end, uint64_t after)
{
	for (; after; after &= after - 1) {
		const char *next = json_skip_space(p + __builtin_ctzll(after), end);
		if (next == end || (*next != ',' && *next != ':' && *next != '}' && *next != ']'))
			return false;
	}
	return true;
}

/* The end of the container whose opening bracket is before p, or NULL. */
static inline const char *container_end(const char *p, const char *end)
{
	struct nesting nesting = {.object = (uint64_t)(p[-1] >> 5 & 1), .depth = 1};
	uint64_t in_string = 0, escaped = 0, ended = 0;
	for (;; p += BLOCK) {
		struct marks marks;
		if (end - p < BLOCK)
			return NULL;
		lanes_marks(p, &marks);
		uint64_t quote = marks.quote;
		if (marks.backslash | escaped)
			quote &= ~escaped_by(marks.backslash, &escaped);
		/* From each opening quote up to before its closing one. */
		uint64_t inside = parity_up_to(quote) ^ in_string;
		if (marks.backslash & ~inside)
			return NULL; /* it escapes nothing there: not what was assumed */
		in_string = (uint64_t)((int64_t)inside >> 63);
		uint64_t closing = quote & ~inside, after = closing << 1 | ended;
		ended = closing >> 63;
		const char *past = follow_brackets(&nesting, p, (marks.open | marks.close) & ~inside, marks.open);
		if (!past)
			return NULL;
		uint64_t odd = after & ~marks.follow;
		if (past > p && past - p < BLOCK)
			odd &= ((uint64_t)1 << (past - p)) - 1;
		if (odd && !all_followed(p, end, odd))
			return NULL;
		if (past > p)
			return past;
	}
}

static inline void add_extra(struct buffer *out, const struct chrome_shape *shape, const char *value,
			     const char *value_end)
{
	size_t bytes = (size_t)(value_end - value);
	size_t comma = out->bytes > 0;
	char *to = buffer_room(out, comma + shape->key_bytes + 1 + bytes);
	if (!to)
		return;
	*to = ',';
	to += comma;
	memcpy(to, shape->text + shape->key_at, shape->key_bytes);
	to += shape->key_bytes;
	*to++ = ':';
	memcpy(to, value, bytes);
	out->bytes += comma + shape->key_bytes + 1 + bytes;
}

static inline struct reducer_text between(const char *from, const char *to)
{
	return (struct reducer_text){from, (size_t)(to - from)};
}

/* A value as written goes where it belongs. */
static inline void place_raw(struct chrome_event *found, const struct chrome_shape *shape, const char *from,
			     const char *to, struct reducer_event *event)
{
	struct reducer_text raw = between(from, to);
	switch (shape->field) {
	case FIELD_PID:
		event->group = raw;
		break;
	case FIELD_TID:
		event->track = raw;
		break;
	case FIELD_ARGS:
		event->args = raw;
		event->args_flag = DREC_FLAG_ARGS_JSON;
		break;
	default:
		add_extra(&found->extra, shape, from, to);
	}
}

static inline struct reducer_text said(struct buffer *scratch, struct reducer_text inner, bool plain)
{
	if (plain)
		return inner;
	buffer_clear(scratch);
	json_unescape(scratch, inner);
	return (struct reducer_text){scratch->data, scratch->bytes};
}

static inline bool take_time_text(struct reducer_text inner, bool is_duration, struct reducer_event *event)
{
	if (is_duration) {
		event->has_duration = 1;
		return decimal_us(inner, &event->duration_ns, &event->duration_ps);
	}
	event->has_time = 1;
	return decimal_us(inner, &event->start_ns, &event->start_ps);
}

/* The text that begins at p, after its quote. */
static inline const char *take_string(struct chrome_event *found, const struct chrome_shape *shape, const char *p,
				      const char *end, struct reducer_event *event)
{
	bool plain;
	const char *close = string_end(p, end, &plain);
	if (!close)
		return NULL;
	switch (shape->field) {
	case FIELD_NAME:
		event->name_raw = between(p - 1, close + 1);
		event->name = said(&found->name, between(p, close), plain);
		break;
	case FIELD_CAT:
		event->category_raw = between(p - 1, close + 1);
		event->category = said(&found->category, between(p, close), plain);
		break;
	case FIELD_TS:
	case FIELD_DUR:
		if (!take_time_text(between(p, close), shape->field == FIELD_DUR, event))
			return NULL;
		break;
	default:
		place_raw(found, shape, p - 1, close + 1, event);
	}
	return close + 1;
}

static inline const char *take_word(struct chrome_event *found, const struct chrome_shape *shape, const char *p,
				    const char *end, struct reducer_event *event)
{
	if (shape->field == FIELD_TS) {
		event->has_time = 1;
		return take_time(p, end, &event->start_ns, &event->start_ps);
	}
	if (shape->field == FIELD_DUR) {
		event->has_duration = 1;
		return take_time(p, end, &event->duration_ns, &event->duration_ps);
	}
	const char *past = word_end(p, end);
	if (!past)
		return NULL;
	if (shape->field != FIELD_ID)
		place_raw(found, shape, p, past, event);
	else if (decimal_u64(between(p, past), &event->id))
		event->has_id = 1;
	else
		add_extra(&found->extra, shape, p, past);
	return past;
}

static inline bool opens_value(char c)
{
	return c == '"' || c == '{' || c == '[';
}

/* The shape below `parent` that stands at p, where 64 bytes can be read; or NULL. */
static inline const struct chrome_shape *shape_at(const struct chrome_shapes *shapes,
						  const struct chrome_shape *parent, const char *p)
{
	for (unsigned i = 0; i < parent->n_children; i++) {
		const struct chrome_shape *child = &shapes->shape[parent->child[i]];
		uint32_t low = (uint32_t)child->mask;
		if ((lanes_equal(p, child->text) & low) != low)
			continue;
		uint32_t high = (uint32_t)(child->mask >> 32);
		if (high && (lanes_equal(p + LANES, child->text + LANES) & high) != high)
			continue;
		if (child->value != SHAPE_WORD || !opens_value(p[child->bytes]))
			return child;
	}
	return NULL;
}

static inline bool end_event(struct chrome_event *found, enum drec_kind kind, struct reducer_event *event)
{
	event->kind = (uint8_t)kind;
	event->extra = (struct reducer_text){found->extra.data, found->extra.bytes};
	if (kind == DREC_COUNTER)
		event->value = chrome_event_counter(event->args);
	return !(found->extra.failed | found->name.failed | found->category.failed);
}

CHROME_FAST_FUNCTION(CHROME_FAST_NAME)
{
	const struct chrome_shape *shape = shapes->shape;
	const char *p = *at;
	*ret_event = (struct reducer_event){.depth = DREC_DEPTH_UNKNOWN};
	buffer_clear(&found->extra);
	do {
		if (end - p < BLOCK)
			return false;
		shape = shape_at(shapes, shape, p);
		if (!shape)
			return false;
		p += shape->bytes;
		if (shape->value == SHAPE_STRING) {
			p = take_string(found, shape, p, end, ret_event);
		} else if (shape->value == SHAPE_WORD) {
			p = take_word(found, shape, p, end, ret_event);
		} else if (shape->value == SHAPE_CONTAINER) {
			const char *past = container_end(p, end);
			if (past)
				place_raw(found, shape, p - 1, past, ret_event);
			p = past;
		} else {
			*at = p;
			return end_event(found, (enum drec_kind)shape->kind, ret_event);
		}
	} while (p);
	return false;
}
