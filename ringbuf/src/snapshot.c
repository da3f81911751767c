/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A window of a ring, written to a file.
 *
 *     slots -> ORDER -> CHUNKS -> STATE -> data, chunk by chunk -> dictionary, anchors -> header
 *
 * Slots come first: a span on a stack then is either still open afterwards, or its event was committed
 * before a chunk was copied; read the other way round, a span that ends in between would be in neither.
 * Sealing drops the entries that are there twice. The same holds for losses that wait in a slot for their
 * record. Names come after the events that use them.
 *
 * Data goes by write() from a read-only mapping, which is nearly as fast as writing a buffer, and gives
 * EFAULT, not SIGBUS, if the producer truncates its ring; nothing here looks into the mapping. A chunk that
 * was taken over while it was copied is seen by its generation and left out.
 *
 * The file: header, WINDOW, a hole, DATA (chunks in the order of their closing, open ones last; each begins at
 * a multiple of chunk_bytes; open ones leave holes), then the rest.
 */
#include "snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* DATA begins where large pages of the page cache do: copied half as fast otherwise. The gap is a hole. */
enum { WINDOW_OFFSET = DREC_PAGE_BYTES, DATA_OFFSET = 1 << 20, COPY_BYTES = 1 << 16 };
enum { BATCH_BYTES = 2 << 20, BATCH_CHUNKS = 256 };

/* --- what there is --- */

static int read_slots(struct snapshot *s)
{
	const struct drec_header *header = &s->reader->header;
	int r = ringread_state(s->reader);
	if (r < 0)
		return r;
	uint64_t used = s->reader->state.slots_used;
	s->n_slots = used < header->n_slots ? (uint32_t)used : header->n_slots;
	for (uint32_t i = 0; i < s->n_slots; i++) {
		uint32_t stable = 0;
		r = ringread_slot(s->reader, i, &s->slots[i], &stable);
		if (r < 0)
			return r;
		uint32_t depth = (uint32_t)s->slots[i].open;
		if (depth <= DREC_STACK_MAX ? stable < depth : stable < DREC_STACK_MAX)
			s->slots[i].open = (s->slots[i].open >> 32 << 32) | stable;
		if (s->request->until)
			s->slots[i].open = s->slots[i].open >> 32 << 32; /* for the last part to say */
	}
	return 0;
}

/*
 * A chunk that was taken over between the two tables has another's order. In a part it would be told twice, so
 * it counts as open there; that its order is missing shows.
 */
static int leave_out_moved(struct snapshot *s)
{
	uint64_t again[DREC_CHUNKS_MAX];
	uint32_t n = s->reader->header.n_chunks;
	int r = ringread_bytes(s->reader->fd, s->reader->section[DREC_SEC_ORDER]->offset, again, n * sizeof(again[0]));
	for (uint32_t i = 0; r == 0 && i < n; i++) {
		if (DREC_ORDER_NUMBER(again[i]) != DREC_ORDER_NUMBER(s->words[i]) ||
		    DREC_ORDER_STATE(again[i]) == DREC_CHUNK_OPEN)
			s->words[i] = DREC_ORDER_WORD(DREC_CHUNK_OPEN, 0, i);
	}
	return r;
}

static int read_tables(struct snapshot *s)
{
	struct drec_reader *reader = s->reader;
	uint32_t n = reader->header.n_chunks;
	int r = ringread_bytes(reader->fd, reader->section[DREC_SEC_ORDER]->offset, s->words, n * sizeof(*s->words));
	if (r == 0)
		r = ringread_chunks(reader, s->first);
	if (r == 0 && s->request->until)
		r = leave_out_moved(s);
	if (r == 0)
		r = ringread_state(reader);
	if (r == 0)
		r = ringread_anchors(reader);
	if (r < 0)
		return r;
	s->evicted_first = reader->state.evicted;
	s->tail_first = reader->state.tail;
	for (uint32_t i = 0; i < n; i++) {
		const struct drec_chunk *chunk = &s->first[i];
		if (ringread_chunk_bytes(reader, chunk))
			s->seen[s->n_seen++] = (struct ringread_item){chunk->slot, chunk->life, chunk->number, i};
	}
	qsort(s->seen, s->n_seen, sizeof(*s->seen), ringread_by_life);
	return 0;
}

int snapshot_wants(const struct snapshot *s, const struct drec_chunk *chunk, uint64_t word)
{
	const struct drec_snapshot_request *request = s->request;
	uint64_t order = DREC_ORDER_NUMBER(word);
	if (DREC_ORDER_STATE(word) == DREC_CHUNK_OPEN)
		return !request->until;
	if (order < request->since || (request->until && order >= request->until))
		return 0;
	return request->since || chunk->last >= s->a_ticks || (request->from && order >= request->from);
}

/* --- data --- */

struct pick {
	uint64_t order; /* UINT64_MAX = open */
	uint32_t chunk;
};

static int by_order(const void *left, const void *right)
{
	const struct pick *a = left, *b = right;
	return a->order < b->order ? -1 : a->order > b->order;
}

/* How much of a chunk goes into the file: closed ones whole, so that they follow each other without a gap. */
static uint32_t written_bytes(const struct snapshot *s, const struct pick *pick)
{
	return pick->order == UINT64_MAX ? ringread_chunk_bytes(s->reader, &s->first[pick->chunk])
					 : s->reader->header.chunk_bytes;
}

/* From the mapping where there is one, else through the reader's buffer. */
static int copy_data(struct snapshot *s, const uint8_t *map, const struct pick *picks, size_t count)
{
	const struct drec_reader *reader = s->reader;
	const uint64_t stride = reader->header.chunk_bytes;
	uint64_t to = DATA_OFFSET + s->n_written * stride;
	struct iovec parts[BATCH_CHUNKS];
	if (!map) {
		uint32_t bytes = written_bytes(s, picks);
		int r = ringread_bytes(reader->fd, ringread_data_offset(reader, picks->chunk), reader->data, bytes);
		return r < 0 ? r : ringread_write(s->out_fd, to, reader->data, bytes);
	}
	uint64_t total = 0;
	for (size_t i = 0; i < count; i++) {
		uintptr_t from = (uintptr_t)map + picks[i].chunk * stride;
		parts[i] = (struct iovec){(void *)from, written_bytes(s, &picks[i])};
		total += parts[i].iov_len;
	}
	ssize_t written = pwritev(s->out_fd, parts, (int)count, (off_t)to);
	if (written < 0)
		return errno == EFAULT ? -EBADMSG : -errno; /* EFAULT: the producer cut its ring short */
	return (uint64_t)written == total ? 0 : -ENOSPC;
}

/* The next chunks that go in one piece, and fit. */
static size_t next_batch(struct snapshot *s, const uint8_t *map, const struct pick *picks, size_t count)
{
	size_t most = map ? BATCH_BYTES / s->reader->header.chunk_bytes : 1, n = 0;
	uint64_t sum = s->data_bytes;
	if (most > BATCH_CHUNKS)
		most = BATCH_CHUNKS;
	while (n < count && n < most) {
		uint32_t bytes = ringread_chunk_bytes(s->reader, &s->first[picks[n].chunk]);
		if (s->request->bytes_max && (sum > s->request->bytes_max || bytes > s->request->bytes_max - sum)) {
			s->truncated = n == 0;
			break;
		}
		sum += bytes;
		if (n++ + 1 < count && picks[n - 1].order == UINT64_MAX)
			break; /* an open chunk leaves a gap behind it */
	}
	return n;
}

/* Copies a batch and accepts its chunks up to the first that was taken meanwhile, which is left out. */
static int copy_batch(struct snapshot *s, const uint8_t *map, const struct pick *picks, size_t count,
		      size_t *ret_done)
{
	int r = copy_data(s, map, picks, count);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++) {
		const struct drec_chunk *chunk = &s->first[picks[i].chunk];
		struct drec_chunk now;
		r = ringread_chunk(s->reader, picks[i].chunk, &now);
		if (r < 0)
			return r;
		*ret_done = i + 1;
		if (!ringread_same_chunk(chunk, &now)) {
			s->left_out = 1;
			return 0;
		}
		s->table[s->n_written] = *chunk;
		s->table[s->n_written].order = picks[i].order == UINT64_MAX ? 0 : picks[i].order;
		s->n_written++;
		s->data_bytes += ringread_chunk_bytes(s->reader, chunk);
	}
	return 0;
}

static int copy_picks(struct snapshot *s, const struct pick *picks, size_t count, const uint8_t *map)
{
	for (size_t i = 0, done = 0; i < count; i += done) {
		size_t n = next_batch(s, map, picks + i, count - i);
		if (n == 0)
			return 0;
		int r = copy_batch(s, map, picks + i, n, &done);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Reading a hole through a mapping would allocate it, at our expense: sparse rings are read by pread. */
static const uint8_t *map_data(const struct snapshot *s)
{
	const struct drec_section *data = s->reader->section[DREC_SEC_DATA];
	struct stat st;
	if (data->bytes == 0 || fstat(s->reader->fd, &st) < 0 ||
	    (uint64_t)st.st_blocks * 512 < s->reader->header.file_bytes)
		return NULL;
	void *map = mmap(NULL, data->bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, s->reader->fd, (off_t)data->offset);
	return map == MAP_FAILED ? NULL : map;
}

/*
 * Space for the closed chunks in one go: a third faster than having it found write by write. Not where a limit may
 * cut the window, and where it cannot be had the writes say so.
 */
static void reserve_space(const struct snapshot *s, const struct pick *picks, size_t count)
{
	uint64_t closed = 0;
	while (closed < count && picks[closed].order != UINT64_MAX)
		closed++;
	if (closed && !s->request->bytes_max)
		(void)fallocate(s->out_fd, FALLOC_FL_KEEP_SIZE, DATA_OFFSET,
				(off_t)(closed * s->reader->header.chunk_bytes));
}

static int copy_chunks(struct snapshot *s)
{
	const uint32_t n = s->reader->header.n_chunks;
	struct pick *picks = malloc((n + 1) * sizeof(*picks));
	size_t count = 0;
	int r;
	if (!picks)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const struct drec_chunk *chunk = &s->first[i];
		if (!ringread_chunk_bytes(s->reader, chunk) || !snapshot_wants(s, chunk, s->words[i]))
			continue;
		int open = DREC_ORDER_STATE(s->words[i]) == DREC_CHUNK_OPEN;
		picks[count++] = (struct pick){open ? UINT64_MAX : DREC_ORDER_NUMBER(s->words[i]), i};
	}
	qsort(picks, count, sizeof(*picks), by_order);
	reserve_space(s, picks, count);
	const uint8_t *map = map_data(s);
	r = copy_picks(s, picks, count, map);
	if (map)
		munmap((void *)(uintptr_t)map, s->reader->section[DREC_SEC_DATA]->bytes);
	free(picks);
	return r;
}

/* --- the other sections --- */

struct output {
	int fd;
	uint64_t offset; /* where the next section begins */
	struct drec_header *header;
};

static struct drec_section *begin_section(struct output *out, unsigned type, uint64_t bytes, uint32_t item_bytes)
{
	struct drec_section *section = &out->header->section[out->header->n_sections++];
	*section = (struct drec_section){
		.type = type, .offset = out->offset, .bytes = bytes, .item_bytes = item_bytes};
	out->offset = (out->offset + bytes + DREC_PAGE_BYTES - 1) / DREC_PAGE_BYTES * DREC_PAGE_BYTES;
	return section;
}

static int write_section(struct output *out, unsigned type, const void *bytes, uint64_t count, uint32_t item_bytes)
{
	const struct drec_section *section = begin_section(out, type, count, item_bytes);
	return ringread_write(out->fd, section->offset, bytes, count);
}

static int copy_section(struct output *out, const struct drec_reader *reader, unsigned type, uint64_t bytes,
			uint32_t item_bytes)
{
	const struct drec_section *from = reader->section[type];
	const struct drec_section *to = begin_section(out, type, bytes, item_bytes);
	char buffer[COPY_BYTES];
	for (uint64_t done = 0; done < bytes;) {
		size_t count = bytes - done < sizeof(buffer) ? (size_t)(bytes - done) : sizeof(buffer);
		int r = ringread_bytes(reader->fd, from->offset + done, buffer, count);
		if (r == 0)
			r = ringread_write(out->fd, to->offset + done, buffer, count);
		if (r < 0)
			return r;
		done += count;
	}
	return 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Entries that were never used need not be copied: they are a hole, unless a chunk left out has written there. */
static int copy_index(const struct snapshot *s, struct output *out)
{
	const uint64_t item = sizeof(struct drec_dict_entry), all = out->header->n_dict_ids * item;
	uint64_t used = s->left_out ? all : least(s->reader->state.dict_next_id, out->header->n_dict_ids) * item;
	uint64_t begin = out->offset;
	int r = copy_section(out, s->reader, DREC_SEC_DICT_INDEX, used, (uint32_t)item);
	out->header->section[out->header->n_sections - 1].bytes = all;
	out->offset = (begin + all + DREC_PAGE_BYTES - 1) / DREC_PAGE_BYTES * DREC_PAGE_BYTES;
	return r;
}

static int write_tables(struct snapshot *s, struct output *out)
{
	const struct drec_reader *reader = s->reader;
	const struct drec_snapshot_request *request = s->request;
	size_t host = request->n_host_anchors < DREC_ANCHORS_MAX ? request->n_host_anchors : DREC_ANCHORS_MAX;
	struct drec_header *header = out->header;
	header->n_anchors = (uint32_t)least(reader->state.anchor_seq, reader->header.n_anchors);
	uint64_t dict_bytes = least(reader->state.dict_next_off, reader->section[DREC_SEC_DICT]->bytes);
	int r = write_section(out, DREC_SEC_STATE, &reader->state, sizeof(reader->state), sizeof(reader->state));
	if (r == 0)
		r = write_section(out, DREC_SEC_CHUNKS, s->table, s->n_written * sizeof(*s->table), sizeof(*s->table));
	if (r == 0)
		r = write_section(out, DREC_SEC_SLOTS, s->slots, s->n_slots * sizeof(*s->slots), sizeof(*s->slots));
	if (r == 0)
		r = copy_section(out, reader, DREC_SEC_ANCHORS, header->n_anchors * sizeof(struct drec_anchor),
				 sizeof(struct drec_anchor));
	if (r == 0 && host)
		r = write_section(out, DREC_SEC_HOST_ANCHORS,
				  request->host_anchors + (request->n_host_anchors - host),
				  host * sizeof(struct drec_anchor), sizeof(struct drec_anchor));
	if (r == 0)
		r = copy_index(s, out);
	if (r == 0)
		r = copy_section(out, reader, DREC_SEC_DICT, dict_bytes, 1);
	return r;
}

/* The header last: without it the file is none. */
static int write_rest(struct snapshot *s, struct drec_window *ret_window, uint64_t *ret_file_bytes)
{
	const uint8_t end = 0;
	struct drec_header header = s->reader->header;
	struct output out = {s->out_fd, WINDOW_OFFSET, &header};
	memset(header.section, 0, sizeof(header.section));
	header.n_sections = 0;
	header.kind = DREC_FILE_WINDOW;
	header.n_chunks = s->n_written;
	header.n_slots = s->n_slots;
	header.n_pins = 0;
	int r = ringread_state(s->reader); /* F4, and how far the dictionary reaches */
	if (r == 0)
		r = snapshot_verdict(s, ret_window);
	if (r == 0)
		r = write_section(&out, DREC_SEC_WINDOW, ret_window, sizeof(*ret_window), sizeof(*ret_window));
	if (r < 0)
		return r;
	out.offset = DATA_OFFSET;
	begin_section(&out, DREC_SEC_DATA, (uint64_t)s->n_written * header.chunk_bytes, header.chunk_bytes);
	r = write_tables(s, &out);
	/* A last page of zeros, so that the file is as long as it says whatever its last section is. */
	out.offset += DREC_PAGE_BYTES;
	if (r == 0)
		r = ringread_write(s->out_fd, out.offset - 1, &end, 1);
	header.file_bytes = out.offset;
	if (r == 0)
		r = ringread_write(s->out_fd, 0, &header, sizeof(header));
	if (r == 0)
		*ret_file_bytes = out.offset;
	return r;
}

static int allocate(struct snapshot *s)
{
	size_t n = s->reader->header.n_chunks;
	s->slots = calloc(s->reader->header.n_slots + 1u, sizeof(*s->slots));
	s->words = calloc(n + 1, sizeof(*s->words));
	s->first = calloc(n + 1, sizeof(*s->first));
	s->table = calloc(n + 1, sizeof(*s->table));
	s->seen = calloc(n + 1, sizeof(*s->seen));
	return s->slots && s->words && s->first && s->table && s->seen ? 0 : -ENOMEM;
}

static int choose_clock(struct snapshot *s)
{
	const struct drec_snapshot_request *request = s->request;
	const struct ring_clock *own = &s->reader->clock;
	int host = request->n_host_anchors >= 2;
	int r = ring_clock_set(&s->clock, s->reader->header.clock, host ? request->host_anchors : own->anchors,
			       host ? request->n_host_anchors : own->count, request->mono_to_unix_ns);
	if (r < 0)
		return r;
	s->clock.mono_to_unix_ns = request->mono_to_unix_ns;
	s->a_ticks = ring_clock_ticks(&s->clock, ring_sub(request->a_ns, request->mono_to_unix_ns));
	s->b_ticks = ring_clock_ticks(&s->clock, ring_sub(request->b_ns, request->mono_to_unix_ns));
	return 0;
}

static int run(struct snapshot *s, struct drec_window *ret_window, uint64_t *ret_file_bytes)
{
	int r = allocate(s);
	if (r == 0)
		r = read_slots(s);
	if (r == 0)
		r = read_tables(s);
	if (r == 0)
		r = choose_clock(s);
	if (r == 0)
		r = copy_chunks(s);
	if (r == 0)
		r = write_rest(s, ret_window, ret_file_bytes);
	if (r == 0 && !s->request->no_crc) {
		r = drec_window_seal(s->out_fd);
		if (r == 0)
			r = ringread_bytes(s->out_fd, WINDOW_OFFSET, ret_window, sizeof(*ret_window));
	}
	return r;
}

int drec_snapshot_write(struct drec_reader *reader, int out_fd, const struct drec_snapshot_request *request,
			struct drec_snapshot_result *ret_result)
{
	struct snapshot s = {.reader = reader, .request = request, .out_fd = out_fd};
	struct drec_snapshot_result result = {0};
	if (reader->header.kind != DREC_FILE_RING || request->b_ns < request->a_ns ||
	    (request->since && request->since != request->from) ||
	    (request->until && (!request->from || request->until < request->from)))
		return -EINVAL;
	int r = run(&s, &result.window, &result.file_bytes);
	if (r == 0) {
		result.data_bytes = s.data_bytes;
		result.events_in_window = result.window.events;
		result.chunks = s.n_written;
		*ret_result = result;
	}
	ring_clock_clear(&s.clock);
	free(s.slots);
	free(s.words);
	free(s.first);
	free(s.table);
	free(s.seen);
	return r;
}
