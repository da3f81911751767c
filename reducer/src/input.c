/* SPDX-License-Identifier: Apache-2.0 */
#include <reducer/input.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <reducer/slices.h>

#include "input_state.h"

static void set_problem(struct reducer_problem *problem, uint64_t offset, const char *what)
{
	problem->offset = offset;
	snprintf(problem->what, sizeof(problem->what), "%s", what);
}

static int end_early(struct reducer_input *input, const char *what)
{
	set_problem(&input->problem, input->offset, what);
	input->ended = 1;
	return 0;
}

/* Makes sure that there is a packed byte, unless the file has ended. */
static int refill(struct reducer_input *input)
{
	if (input->packed_at < input->packed_bytes || input->file_ended)
		return 0;
	ssize_t got;
	do
		got = read(input->fd, input->packed, sizeof(input->packed));
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	input->packed_at = 0;
	input->packed_bytes = (size_t)got;
	input->file_offset += (uint64_t)got;
	input->file_ended = got == 0;
	return 0;
}

/* Reads until the magic of any packing would be there; a pipe may bring it in pieces. */
static int read_magic(struct reducer_input *input)
{
	while (input->packed_bytes < MAGIC_BYTES && !input->file_ended) {
		ssize_t got = read(input->fd, input->packed + input->packed_bytes,
				   sizeof(input->packed) - input->packed_bytes);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		input->packed_bytes += (size_t)got;
		input->file_offset += (uint64_t)got;
		input->file_ended = got == 0;
		/* Plain text needs no second look, and a live feed may pause after its first byte. */
		if (got > 0 && input->packed[0] != 0x1f && input->packed[0] != 0x28)
			break;
	}
	return 0;
}

static enum reducer_packing sniff(const struct reducer_input *input)
{
	static const unsigned char zstd_magic[MAGIC_BYTES] = {0x28, 0xb5, 0x2f, 0xfd};
	if (input->packed_bytes >= 2 && input->packed[0] == 0x1f && input->packed[1] == 0x8b)
		return REDUCER_GZIP;
	if (input->packed_bytes >= MAGIC_BYTES && memcmp(input->packed, zstd_magic, MAGIC_BYTES) == 0)
		return REDUCER_ZSTD;
	return REDUCER_PLAIN;
}

#ifdef REDUCER_HAVE_ISAL
static int inflate_begin(struct reducer_input *input)
{
	isal_inflate_init(&input->inflate);
	input->inflate.crc_flag = ISAL_GZIP_NO_HDR_VER;
	input->header = (struct gzip_header){0};
	return 0;
}

enum { GZIP_FIXED_BYTES = 10, GZIP_CRC = 2, GZIP_EXTRA = 4, GZIP_NAME = 8, GZIP_COMMENT = 16, GZIP_RESERVED = 0xe0 };

static int fixed_byte(struct gzip_header *header, unsigned char byte)
{
	static const unsigned char magic[] = {0x1f, 0x8b, 8};
	unsigned at = header->at++;
	if (at < sizeof(magic))
		return byte == magic[at] ? 0 : -EBADMSG;
	if (at == 3)
		header->left = byte;
	return at == 3 && byte & GZIP_RESERVED ? -EBADMSG : 0;
}

/* One byte of a part that the flags announced; they come in this order. */
static void further_byte(struct gzip_header *header, unsigned char byte)
{
	unsigned char left = header->left;
	if (left & GZIP_EXTRA) {
		if (header->extra_at < 2)
			header->extra_bytes |= (unsigned)byte << (8 * header->extra_at);
		if (++header->extra_at >= 2 && header->extra_at == header->extra_bytes + 2)
			header->left &= (unsigned char)~GZIP_EXTRA;
	} else if (left & (GZIP_NAME | GZIP_COMMENT)) {
		if (byte == 0)
			header->left &= (unsigned char)~(left & GZIP_NAME ? GZIP_NAME : GZIP_COMMENT);
	} else if (++header->crc_at == 2) {
		header->left &= (unsigned char)~GZIP_CRC;
	}
}

/* 1 = all of it is read, 0 = goes on, -EBADMSG. */
static int pass_header(struct reducer_input *input)
{
	struct gzip_header *header = &input->header;
	while (!header->done && input->packed_at < input->packed_bytes) {
		unsigned char byte = input->packed[input->packed_at++];
		if (header->at < GZIP_FIXED_BYTES) {
			if (fixed_byte(header, byte) < 0)
				return -EBADMSG;
		} else {
			further_byte(header, byte);
		}
		header->done = header->at == GZIP_FIXED_BYTES &&
			       !(header->left & (GZIP_EXTRA | GZIP_NAME | GZIP_COMMENT | GZIP_CRC));
	}
	return header->done;
}

/* One call of the decoder. 1 = the member has ended, 0 = goes on, -EBADMSG. */
static int inflate_some(struct reducer_input *input, unsigned char *out, size_t room, size_t *ret_made)
{
	struct inflate_state *state = &input->inflate;
	int header = pass_header(input);
	if (header <= 0) {
		*ret_made = 0;
		return header;
	}
	size_t packed = input->packed_bytes - input->packed_at;
	state->next_in = input->packed + input->packed_at;
	state->avail_in = (uint32_t)packed;
	state->next_out = out;
	state->avail_out = (uint32_t)room;
	uint32_t total = state->total_out;
	int result = isal_inflate(state);
	input->packed_at += packed - state->avail_in;
	*ret_made = room - state->avail_out;
	if (result < 0 && result != ISAL_END_INPUT) {
		/* What lies beyond the total it may or may not have made, by how much room there was. */
		uint32_t made = state->total_out - total;
		if (made < *ret_made)
			*ret_made = made;
		return -EBADMSG;
	}
	return state->block_state == ISAL_BLOCK_FINISH;
}

/* Takes what was made before the damage and is still held by the decoder. */
static size_t inflate_held(struct reducer_input *input, unsigned char *out, size_t room)
{
	struct inflate_state *state = &input->inflate;
	if (input->packing != REDUCER_GZIP || state->tmp_out_valid <= state->tmp_out_processed)
		return 0;
	size_t held = (size_t)(state->tmp_out_valid - state->tmp_out_processed);
	size_t some = held < room ? held : room;
	memcpy(out, state->tmp_out_buffer + state->tmp_out_processed, some);
	state->tmp_out_processed += (int32_t)some;
	return some;
}

static void inflate_free(struct reducer_input *input)
{
	(void)input;
}
#else
static int inflate_begin(struct reducer_input *input)
{
	if (!input->inflate_ready) {
		if (inflateInit2(&input->inflate, 15 + 16) != Z_OK)
			return -ENOMEM;
		input->inflate_ready = 1;
		return 0;
	}
	return inflateReset(&input->inflate) == Z_OK ? 0 : -ENOMEM;
}

static int inflate_some(struct reducer_input *input, unsigned char *out, size_t room, size_t *ret_made)
{
	z_stream *state = &input->inflate;
	size_t packed = input->packed_bytes - input->packed_at;
	state->next_in = input->packed + input->packed_at;
	state->avail_in = (unsigned)packed;
	state->next_out = out;
	state->avail_out = (unsigned)room;
	int result = inflate(state, Z_NO_FLUSH);
	input->packed_at += packed - state->avail_in;
	*ret_made = room - state->avail_out;
	if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
		return -EBADMSG;
	return result == Z_STREAM_END;
}

static size_t inflate_held(struct reducer_input *input, unsigned char *out, size_t room)
{
	(void)input, (void)out, (void)room; /* zlib holds nothing back */
	return 0;
}

static void inflate_free(struct reducer_input *input)
{
	if (input->inflate_ready)
		inflateEnd(&input->inflate);
}
#endif

/*
 * One block at a time, and none while something made before is held: in a call that fails the decoder does not say
 * what it made before the damage.
 */
static int zstd_some(struct reducer_input *input, unsigned char *out, size_t room, size_t *ret_made)
{
	size_t have = input->packed_bytes - input->packed_at;
	size_t some = input->zstd_full ? 0 : input->zstd_wants < have ? input->zstd_wants : have;
	ZSTD_inBuffer in = {input->packed, input->packed_at + some, input->packed_at};
	ZSTD_outBuffer made = {out, room, 0};
	size_t result = ZSTD_decompressStream(input->zstd, &made, &in);
	input->packed_at = in.pos;
	*ret_made = made.pos;
	input->zstd_full = made.pos == room;
	if (ZSTD_isError(result))
		return -EBADMSG;
	/* What it asks for reaches over the next block's header, which may be the damage. */
	input->zstd_wants = result > ZSTD_HEADER_BYTES ? result - ZSTD_HEADER_BYTES : result;
	if (result == 0)
		input->zstd_wants = ZSTD_WANTS_FIRST;
	return result == 0;
}

/* At the end of a member: whether another one follows. Zero padding is allowed, other bytes are told. */
static int next_member(struct reducer_input *input)
{
	for (;;) {
		int result = refill(input);
		if (result < 0)
			return result;
		if (input->packed_at == input->packed_bytes) {
			input->ended = 1;
			return 0;
		}
		if (input->packed[input->packed_at] != 0)
			break;
		input->packed_at++;
	}
	unsigned char first = input->packed[input->packed_at];
	if (first != (input->packing == REDUCER_GZIP ? 0x1f : 0x28))
		return end_early(input, "bytes after the end of the packed data are not read");
	if (input->packing == REDUCER_GZIP) {
		int result = inflate_begin(input);
		if (result < 0)
			return result;
	}
	input->in_member = 1;
	return 0;
}

static int64_t read_plain(struct reducer_input *input, void *buffer, size_t room)
{
	size_t held = input->packed_bytes - input->packed_at;
	if (held > 0) {
		size_t count = held < room ? held : room;
		memcpy(buffer, input->packed + input->packed_at, count);
		input->packed_at += count;
		return (int64_t)count;
	}
	ssize_t got;
	do
		got = input->file_ended ? 0 : read(input->fd, buffer, room);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	input->file_offset += (uint64_t)got;
	input->file_ended = got == 0;
	return got;
}

static int64_t read_packed(struct reducer_input *input, unsigned char *buffer, size_t room)
{
	const char *truncated = input->packing == REDUCER_GZIP ? "the gzip data is cut off"
							       : "the zstd data is cut off";
	if (room > (1u << 30))
		room = 1u << 30;
	while (!input->ended) {
		if (input->damaged) {
			size_t held = inflate_held(input, buffer, room);
			return held ? (int64_t)held : end_early(input, "the packed data is damaged");
		}
		if (!input->in_member) {
			int result = next_member(input);
			if (result < 0)
				return result;
			continue;
		}
		int result = refill(input);
		if (result < 0)
			return result;
		size_t made = 0;
		size_t before = input->packed_at;
		result = input->packing == REDUCER_GZIP ? inflate_some(input, buffer, room, &made)
							: zstd_some(input, buffer, room, &made);
		if (result == 1) {
			input->in_member = 0;
			input->members++;
		} else if (result < 0) {
			input->damaged = 1;
		} else if (made == 0 && before == input->packed_bytes && input->file_ended) {
			end_early(input, truncated);
		}
		if (made > 0)
			return (int64_t)made;
	}
	return 0;
}

int64_t reducer_input_read(struct reducer_input *input, void *buffer, size_t room)
{
	int64_t got = input->packing == REDUCER_PLAIN ? read_plain(input, buffer, room)
						      : read_packed(input, buffer, room);
	if (got > 0)
		input->offset += (uint64_t)got;
	if (input->points && input->offset >= input->next_point)
		input_note_point(input);
	return got;
}

static int begin(struct reducer_input *input)
{
	int result = read_magic(input);
	if (result < 0)
		return result;
	input->packing = sniff(input);
	input->in_member = input->packing != REDUCER_PLAIN;
	if (input->packing == REDUCER_GZIP)
		return inflate_begin(input);
	if (input->packing == REDUCER_ZSTD) {
		input->zstd = ZSTD_createDStream();
		input->zstd_wants = ZSTD_WANTS_FIRST;
		return input->zstd ? 0 : -ENOMEM;
	}
	return 0;
}

static int new_input(int fd, int owns_fd, struct reducer_input **ret_input, struct reducer_problem *ret_problem)
{
	struct reducer_input *input = calloc(1, sizeof(*input));
	int result = input ? 0 : -ENOMEM;
	if (input) {
		input->fd = fd;
		input->owns_fd = owns_fd;
		result = begin(input);
	}
	if (result < 0) {
		if (ret_problem)
			set_problem(ret_problem, 0, strerrordesc_np(-result));
		if (input)
			reducer_input_free(input);
		else if (owns_fd)
			close(fd);
		return result;
	}
	*ret_input = input;
	return 0;
}

int reducer_input_open(const char *path, struct reducer_input **ret_input, struct reducer_problem *ret_problem)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		int result = -errno;
		if (ret_problem)
			set_problem(ret_problem, 0, strerrordesc_np(-result));
		return result;
	}
	return new_input(fd, 1, ret_input, ret_problem);
}

int reducer_input_from_fd(int fd, struct reducer_input **ret_input, struct reducer_problem *ret_problem)
{
	return new_input(fd, 0, ret_input, ret_problem);
}

uint64_t reducer_input_offset(const struct reducer_input *input)
{
	return input->offset;
}

uint64_t reducer_input_file_offset(const struct reducer_input *input)
{
	return input->file_offset;
}

enum reducer_packing reducer_input_packing(const struct reducer_input *input)
{
	return input->packing;
}

const struct reducer_problem *reducer_input_problem(const struct reducer_input *input)
{
	return input->problem.what[0] ? &input->problem : NULL;
}

void reducer_input_free(struct reducer_input *input)
{
	if (!input)
		return;
	inflate_free(input);
	ZSTD_freeDStream(input->zstd);
	reducer_seek_points_free(input->points);
	if (input->owns_fd)
		close(input->fd);
	free(input);
}
