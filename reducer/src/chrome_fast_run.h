/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of every variant of the fast reading. A variant defines, for its instruction set, and includes it:
 *
 *   bool lanes_match(p, text, mask)  whether those of 64 bytes are the same that `mask` has a bit for, the lowest ones
 *   uint32_t lanes_stop(p, *high)    quotes and backslashes among 32 bytes; those that are not ASCII
 *   uint32_t lanes_digit(p)          digits among 32 bytes
 *   void lanes_marks(p, *ret)        what matters in a container, among 64 bytes
 *
 * Every load is inside [p, end): where less is left, the event is not read this way.
 */
#include <string.h>

#include "decimal.h"

struct marks {
	uint64_t quote, backslash, open, close;
	uint64_t follow; /* comma, colon or closing bracket: what may stand after a text */
};

static bool lanes_match(const char *p, const char *text, uint64_t mask);
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

/* The number that the `n` digits at p say, n in 1 .. 16, where 16 bytes can be read. */
static inline uint64_t digits16(const char *p, unsigned n)
{
	if (n <= 8)
		return digits8(load8(p) << (64 - 8 * n));
	return digits8(load8(p) << (128 - 8 * n)) * 100000000u + digits8(load8(p + n - 8));
}

static inline bool ends_word(char c)
{
	static const uint64_t low = (uint64_t)1 << ' ' | (uint64_t)1 << '\n' | (uint64_t)1 << '\r' | (uint64_t)1 << '\t' |
				    (uint64_t)1 << ',' | (uint64_t)1 << ':' | (uint64_t)1 << '"';
	return ((uint8_t)c < 64 && low >> c & 1) || (c | 0x20) == '{' || (c | 0x20) == '}';
}

/* The end of what is no plain number, or NULL also where it is no word at all. */
static __attribute__((noinline)) const char *slow_word(const char *p, const char *end)
{
	if (p == end || *p == '"' || *p == '{' || *p == '[')
		return NULL;
	return json_value(&p, end, false) == JSON_OK ? p : NULL;
}

static __attribute__((noinline)) const char *slow_time(const char *p, const char *end, int64_t *ret_ns,
						       uint16_t *ret_ps)
{
	const char *past = slow_word(p, end);
	if (!past || !decimal_us((struct reducer_text){p, (size_t)(past - p)}, ret_ns, ret_ps))
		return NULL;
	return past;
}

/* The digits at p, where LANES bytes can be read, if a word is all digits: how many there are; else 0. */
static inline unsigned digits_of_word(const char *p)
{
	uint32_t others = ~lanes_digit(p);
	unsigned n = others ? (unsigned)__builtin_ctz(others) : 0;
	return ends_word(p[n]) ? n : 0;
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

static inline struct reducer_text *text_at(struct reducer_event *event, size_t place)
{
	return (struct reducer_text *)(void *)((char *)event + place);
}

/* A value as written goes where it belongs. */
static inline void place_raw(struct chrome_event *found, const struct chrome_shape *shape, const char *from,
			     const char *to, struct reducer_event *event)
{
	if (shape->place)
		*text_at(event, shape->place) = between(from, to);
	else
		add_extra(&found->extra, shape, from, to);
}

static __attribute__((noinline)) struct reducer_text said(struct buffer *scratch, struct reducer_text inner)
{
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
	if (shape->field == FIELD_NAME || shape->field == FIELD_CAT) {
		struct reducer_text *text = text_at(event, shape->place);
		text[0] = between(p, close);
		text[1] = between(p - 1, close + 1); /* name_raw, category_raw */
		if (!plain)
			text[0] = said(shape->field == FIELD_NAME ? &found->name : &found->category, text[0]);
	} else if (shape->field == FIELD_TS || shape->field == FIELD_DUR) {
		if (!take_time_text(between(p, close), shape->field == FIELD_DUR, event))
			return NULL;
	} else {
		place_raw(found, shape, p - 1, close + 1, event);
	}
	return close + 1;
}

static inline const char *place_time(bool is_duration, const char *p, const char *end, struct reducer_event *event)
{
	int64_t ns;
	uint16_t ps;
	const char *past = take_time(p, end, &ns, &ps);
	if (!past)
		return NULL;
	if (is_duration) {
		event->has_duration = 1;
		event->duration_ns = ns;
		event->duration_ps = ps;
	} else {
		event->has_time = 1;
		event->start_ns = ns;
		event->start_ps = ps;
	}
	return past;
}

/* `n`: how many digits the word is, or 0 where it is another one. */
static inline void place_id(struct chrome_event *found, const struct chrome_shape *shape, const char *p,
			    const char *past, unsigned n, struct reducer_event *event)
{
	if (n > 0 && n <= 16 && *p != '0') {
		event->id = digits16(p, n);
		event->has_id = 1;
		return;
	}
	event->has_id = decimal_u64(between(p, past), &event->id);
	if (!event->has_id)
		add_extra(&found->extra, shape, p, past);
}

static inline const char *take_word(struct chrome_event *found, const struct chrome_shape *shape, const char *p,
				    const char *end, struct reducer_event *event)
{
	if (shape->field == FIELD_TS || shape->field == FIELD_DUR)
		return place_time(shape->field == FIELD_DUR, p, end, event);
	unsigned n = end - p >= LANES ? digits_of_word(p) : 0;
	const char *past = n ? p + n : slow_word(p, end);
	if (!past)
		return NULL;
	if (shape->place)
		*text_at(event, shape->place) = between(p, past);
	else if (shape->field != FIELD_ID)
		add_extra(&found->extra, shape, p, past);
	else if (n > 0 && n <= 16 && *p != '0') {
		event->id = digits16(p, n);
		event->has_id = 1;
	} else if (decimal_u64(between(p, past), &event->id)) {
		event->has_id = 1;
	} else {
		add_extra(&found->extra, shape, p, past);
	}
	return past;
}

/* The shape below `parent` that stands at p, where BLOCK bytes can be read; or NULL. */
static inline const struct chrome_shape *shape_at(const struct chrome_shape *parent, const char *p)
{
	const struct chrome_shape *child = parent->child;
	while (child && !lanes_match(p, child->text, child->mask))
		child = child->sibling;
	return child;
}

static inline bool end_event(struct chrome_event *found, enum drec_kind kind, struct reducer_event *event)
{
	event->kind = (uint8_t)kind;
	event->args_flag = event->args.bytes ? DREC_FLAG_ARGS_JSON : 0;
	event->extra = (struct reducer_text){found->extra.data, found->extra.bytes};
	event->no_value = kind == DREC_COUNTER && !event->args.bytes;
	if (kind == DREC_COUNTER)
		event->value = chrome_event_counter(event->args);
	return !(found->extra.failed | found->name.failed | found->category.failed);
}

/* In pieces, since for all of it at once the compiler takes an instruction that is slow to start. */
static inline void clear_event(struct reducer_event *event)
{
	enum { PIECE = 40, PIECES = sizeof(*event) / PIECE };
	_Static_assert(PIECES == 5 && sizeof(*event) == (size_t)PIECE * PIECES, "all of the event is cleared");
	char *at = (char *)event;
	memset(at, 0, PIECE);
	memset(at + PIECE, 0, PIECE);
	memset(at + 2 * PIECE, 0, PIECE);
	memset(at + 3 * PIECE, 0, PIECE);
	memset(at + 4 * PIECE, 0, PIECE);
	event->depth = DREC_DEPTH_UNKNOWN;
}

CHROME_FAST_FUNCTION(CHROME_FAST_NAME)
{
	const struct chrome_shape *shape = shapes->shape;
	const char *p = *at;
	clear_event(ret_event);
	buffer_clear(&found->extra);
	do {
		if (end - p < BLOCK)
			return false;
		shape = shape_at(shape, p);
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
