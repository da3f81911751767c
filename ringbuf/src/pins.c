/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pins, as the daemon sets them. The producer looks at `active` and `from` after it has claimed a chunk and
 * before it voids it; we write the entry, then `active` as one byte, then fence: so either it sees the pin, or
 * we see the chunk's order number in STATE.evicted and its generation changed.
 *
 * Daemons exclude each other by an OFD lock on byte 1. The holder needs microseconds, so whoever still finds
 * it taken after a while has met a process that holds it for harm.
 */
#include <driverec/freeze.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "atomic.h"
#include "reader.h"

enum { LOCK_TRIES = 200, LOCK_PAUSE_NS = 50000 };

static int set_lock(int fd, short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = 1, .l_len = 1};
	return fcntl(fd, F_OFD_SETLK, &lock) < 0 ? -errno : 0;
}

static int lock_pins(const struct drec_reader *reader)
{
	const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};
	if (reader->header.kind != DREC_FILE_RING)
		return -EINVAL;
	if (!reader->writable)
		return -EROFS;
	int r = set_lock(reader->fd, F_WRLCK);
	for (int i = 0; (r == -EAGAIN || r == -EACCES) && i < LOCK_TRIES; i++) {
		nanosleep(&pause, NULL);
		r = set_lock(reader->fd, F_WRLCK);
	}
	return r == -EAGAIN || r == -EACCES ? -EBUSY : r;
}

static void unlock_pins(const struct drec_reader *reader)
{
	set_lock(reader->fd, F_UNLCK);
}

static uint64_t entry_offset(const struct drec_reader *reader, unsigned entry)
{
	return reader->section[DREC_SEC_PINS]->offset + entry * sizeof(struct drec_pin);
}

int drec_pins_read(struct drec_reader *reader, struct drec_pin ret_pins[DREC_PINS_MAX])
{
	struct drec_pin pins[DREC_PINS_MAX] = {0};
	if (reader->header.kind != DREC_FILE_RING)
		return -EINVAL;
	int r = ringread_bytes(reader->fd, entry_offset(reader, 0), pins, reader->header.n_pins * sizeof(pins[0]));
	if (r == 0)
		memcpy(ret_pins, pins, sizeof(pins));
	return r;
}

static int free_entry(const struct drec_reader *reader, const struct drec_pin *pins)
{
	for (unsigned i = 0; i < reader->header.n_pins; i++) {
		if (!pins[i].active)
			return (int)i;
	}
	return -EBUSY;
}

static int is_pinned(const struct drec_reader *reader, const struct drec_pin *pins, uint64_t order)
{
	for (unsigned i = 0; i < reader->header.n_pins; i++) {
		if (pins[i].active && order >= pins[i].from && order - pins[i].from < reader->header.n_chunks / 2)
			return 1;
	}
	return 0;
}

/* Whether more than half of the chunks would be pinned as things are now. */
static int passes_half(const struct drec_reader *reader, const struct drec_pin *pins)
{
	uint64_t words[DREC_CHUNKS_MAX];
	uint32_t pinned = 0, n = reader->header.n_chunks;
	int r = ringread_bytes(reader->fd, reader->section[DREC_SEC_ORDER]->offset, words, n * sizeof(words[0]));
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < n; i++) {
		if (DREC_ORDER_STATE(words[i]) != DREC_CHUNK_OPEN &&
		    is_pinned(reader, pins, DREC_ORDER_NUMBER(words[i])))
			pinned++;
	}
	return pinned > n / 2;
}

/* F2 and F3: one byte cannot tear; the fence pairs with the producer's second look at the pins. */
static int write_entry(const struct drec_reader *reader, unsigned entry, struct drec_pin pin)
{
	const uint8_t active = 1;
	memset(pin.reserved0, 0, sizeof(pin.reserved0));
	memset(pin.reserved1, 0, sizeof(pin.reserved1));
	uint64_t offset = entry_offset(reader, entry);
	size_t head = offsetof(struct drec_pin, from);
	int r = ringread_write(reader->fd, offset + head, (const char *)&pin + head, sizeof(pin) - head);
	if (r == 0)
		r = ringread_write(reader->fd, offset, &active, 1);
	fence_seq_cst();
	return r;
}

static int clear_entry(const struct drec_reader *reader, unsigned entry)
{
	const uint8_t inactive = 0;
	return ringread_write(reader->fd, entry_offset(reader, entry), &inactive, 1);
}

/* 0, or 1 where it is set past half. */
static int set_locked(struct drec_reader *reader, const struct drec_pin *pin, int force, unsigned *ret_entry)
{
	struct drec_pin pins[DREC_PINS_MAX];
	int r = drec_pins_read(reader, pins);
	if (r < 0)
		return r;
	int entry = free_entry(reader, pins);
	if (entry < 0)
		return entry;
	pins[entry] = *pin;
	pins[entry].active = 1;
	int past_half = passes_half(reader, pins);
	if (past_half < 0)
		return past_half;
	if (past_half && !force)
		return -EDQUOT;
	r = write_entry(reader, (unsigned)entry, *pin);
	if (r == 0)
		r = ringread_state(reader);
	if (r < 0)
		return r;
	*ret_entry = (unsigned)entry;
	return past_half;
}

int drec_pin_set(struct drec_reader *reader, const struct drec_pin *pin, int force, unsigned *ret_entry)
{
	int r = lock_pins(reader);
	if (r < 0)
		return r;
	r = set_locked(reader, pin, force, ret_entry);
	unlock_pins(reader);
	return r;
}

static int move_locked(struct drec_reader *reader, unsigned entry, uint64_t from, unsigned *ret_entry)
{
	struct drec_pin pins[DREC_PINS_MAX];
	int r = drec_pins_read(reader, pins);
	if (r < 0)
		return r;
	if (!pins[entry].active || from < pins[entry].from)
		return -EINVAL;
	int fresh = free_entry(reader, pins);
	if (fresh < 0)
		return fresh;
	struct drec_pin pin = pins[entry];
	pin.from = from;
	r = write_entry(reader, (unsigned)fresh, pin);
	if (r == 0)
		r = clear_entry(reader, entry);
	if (r == 0)
		*ret_entry = (unsigned)fresh;
	return r;
}

int drec_pin_move(struct drec_reader *reader, unsigned entry, uint64_t from, unsigned *ret_entry)
{
	if (entry >= reader->header.n_pins)
		return -EINVAL;
	int r = lock_pins(reader);
	if (r < 0)
		return r;
	r = move_locked(reader, entry, from, ret_entry);
	unlock_pins(reader);
	return r;
}

int drec_pin_release(struct drec_reader *reader, unsigned entry)
{
	if (reader->header.kind != DREC_FILE_RING || entry >= reader->header.n_pins)
		return -EINVAL;
	return reader->writable ? clear_entry(reader, entry) : -EROFS;
}

/* --- how far what is pinned can be copied --- */

int drec_pin_until(struct drec_reader *reader, uint64_t from, uint64_t *ret_until)
{
	uint64_t words[DREC_CHUNKS_MAX];
	uint8_t there[DREC_CHUNKS_MAX / 2] = {0};
	uint32_t n = reader->header.n_chunks;
	if (reader->header.kind != DREC_FILE_RING || from == 0)
		return -EINVAL;
	/* tail first: an order below it was given out, though its word may not be written yet. */
	int r = ringread_state(reader);
	if (r < 0)
		return r;
	uint64_t tail = reader->state.tail, until = from;
	r = ringread_bytes(reader->fd, reader->section[DREC_SEC_ORDER]->offset, words, n * sizeof(words[0]));
	if (r == 0)
		r = ringread_state(reader);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t order = DREC_ORDER_NUMBER(words[i]);
		if (DREC_ORDER_STATE(words[i]) != DREC_CHUNK_OPEN && order >= from && order - from < n / 2)
			there[order - from] = 1;
	}
	while (until < tail && until - from < n / 2 && (there[until - from] || until <= reader->state.evicted))
		until++;
	*ret_until = until;
	return 0;
}

int drec_pin_lowest(struct drec_reader *reader, uint64_t from, uint64_t *ret_order)
{
	uint64_t words[DREC_CHUNKS_MAX];
	uint32_t n = reader->header.n_chunks;
	if (reader->header.kind != DREC_FILE_RING)
		return -EINVAL;
	int r = ringread_state(reader);
	if (r == 0)
		r = ringread_bytes(reader->fd, reader->section[DREC_SEC_ORDER]->offset, words, n * sizeof(words[0]));
	if (r < 0)
		return r;
	uint64_t lowest = reader->state.tail > from ? reader->state.tail : from;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t order = DREC_ORDER_NUMBER(words[i]);
		if (DREC_ORDER_STATE(words[i]) != DREC_CHUNK_OPEN && order >= from && order < lowest)
			lowest = order;
	}
	*ret_order = lowest;
	return 0;
}

/* --- from where to pin, for who has not watched `tail` --- */

struct closed_chunk {
	uint32_t slot, life;
	uint64_t number, order, last, taken;
};

static int closed_by_life(const void *left, const void *right)
{
	const struct closed_chunk *a = left, *b = right;
	if (a->slot != b->slot)
		return a->slot < b->slot ? -1 : 1;
	if (a->life != b->life)
		return a->life < b->life ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

static int list_closed(struct drec_reader *reader, struct closed_chunk *ret, size_t *ret_count)
{
	uint64_t words[DREC_CHUNKS_MAX];
	uint32_t n = reader->header.n_chunks;
	int r = ringread_bytes(reader->fd, reader->section[DREC_SEC_ORDER]->offset, words, n * sizeof(words[0]));
	if (r == 0)
		r = ringread_chunks(reader, reader->again);
	if (r < 0)
		return r;
	*ret_count = 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct drec_chunk *chunk = &reader->again[i];
		if (ringread_chunk_bytes(reader, chunk) && DREC_ORDER_STATE(words[i]) != DREC_CHUNK_OPEN)
			ret[(*ret_count)++] = (struct closed_chunk){chunk->slot, chunk->life, chunk->number,
								    DREC_ORDER_NUMBER(words[i]), chunk->last,
								    chunk->taken};
	}
	return 0;
}

/*
 * Whether everything that was overwritten (orders up to `evicted`) had been closed before `ticks`. A chunk's
 * number k+1 is taken after number k was closed. So if k has an order above `evicted` and k+1 was taken before
 * `ticks`, all lower orders were given out before `ticks` too.
 */
static int all_overwritten_before(struct closed_chunk *chunks, size_t count, uint64_t evicted, uint64_t ticks)
{
	qsort(chunks, count, sizeof(*chunks), closed_by_life);
	for (size_t i = 1; i < count; i++) {
		const struct closed_chunk *one = &chunks[i - 1], *next = &chunks[i];
		if (one->slot == next->slot && one->life == next->life && one->number + 1 == next->number &&
		    one->order > evicted && next->taken && next->taken < ticks)
			return 1;
	}
	return 0;
}

int drec_pin_from(struct drec_reader *reader, uint64_t ticks, uint64_t *ret_from)
{
	if (reader->header.kind != DREC_FILE_RING)
		return -EINVAL;
	/* tail first: what is closed after this reading gets an order at or above it. */
	int r = ringread_state(reader);
	if (r < 0)
		return r;
	struct closed_chunk *chunks = malloc(DREC_CHUNKS_MAX * sizeof(*chunks));
	if (!chunks)
		return -ENOMEM;
	size_t count;
	r = list_closed(reader, chunks, &count);
	if (r < 0)
		goto out;
	uint64_t from = reader->state.tail, evicted = reader->state.evicted;
	for (size_t i = 0; i < count; i++) {
		if (chunks[i].last >= ticks && chunks[i].order < from)
			from = chunks[i].order;
	}
	/* What was overwritten may have met the window: then the pin says so, by not lying above it. */
	if (evicted > reader->header.n_chunks && evicted < from &&
	    !all_overwritten_before(chunks, count, evicted, ticks))
		from = evicted;
	*ret_from = from;
out:
	free(chunks);
	return r;
}
