/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings and window files. One is too large to be a corpus file and mostly empty, so the input is a list of
 * changes to a made-up one with every kind of record in it. It begins with a byte: bit 0 says that the ring was
 * fed from a trace, bit 1 that it is a window, bit 2 that the file is cut (a u32 follows, taken modulo its
 * length). Each change is where (u32, modulo the length), how many bytes (u8, 1 .. 16), and the bytes.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <driverec/freeze.h>

#include "drec_walk.h"
#include "fuzz.h"
#include "made_ring.h"

enum { CHANGE_BYTES_MAX = 16, FED = 1, WINDOW = 2, CUT = 4, BASES = 4 };

struct base {
	uint8_t *bytes;
	size_t size;
};

static uint8_t *window_of(const uint8_t *ring, size_t bytes, size_t *ret_bytes)
{
	int fd = fuzz_file(ring, bytes), out = fuzz_file("", 0);
	struct drec_reader *reader;
	struct drec_problem problem;
	struct drec_snapshot_result result;
	struct drec_snapshot_request request = {.t0_ns = 1000002500, .a_ns = 1000000000, .b_ns = 1000009500,
						.mono_to_unix_ns = 1000000000};
	int opened = drec_reader_open(AT_FDCWD, fuzz_file_path(fd), NULL, &reader, &problem);
	fuzz_require(opened == 0, "the made-up ring: %s", problem.what);
	int written = drec_snapshot_write(reader, out, &request, &result);
	fuzz_require(written == 0 && result.events_in_window > 0, "a window of it: %d", written);
	uint8_t *window = (uint8_t *)fuzz_file_bytes(out, ret_bytes);
	drec_reader_free(reader);
	close(fd);
	close(out);
	return window;
}

static const struct base *base_of(unsigned which)
{
	static struct base bases[BASES];
	struct base *base = &bases[which];
	if (base->bytes)
		return base;
	size_t bytes;
	uint8_t *ring = made_ring(which & FED, &bytes);
	*base = (struct base){ring, bytes};
	if (which & WINDOW) {
		base->bytes = window_of(ring, bytes, &base->size);
		free(ring);
	}
	return base;
}

static uint32_t take_u32(const uint8_t *data, size_t size, size_t *at)
{
	uint32_t value = 0;
	if (size - *at >= sizeof(value))
		memcpy(&value, data + *at, sizeof(value));
	*at += size - *at < sizeof(value) ? size - *at : sizeof(value);
	return value;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t at = size > 0;
	unsigned how = size > 0 ? data[0] : 0;
	const struct base *base = base_of(how % BASES);
	size_t bytes = how & CUT ? take_u32(data, size, &at) % base->size : base->size;
	uint8_t *changed = malloc(bytes + 1);
	fuzz_require(changed != NULL, "no memory");
	memcpy(changed, base->bytes, bytes);
	while (bytes > 0 && size - at >= 6) {
		size_t where = take_u32(data, size, &at) % bytes;
		size_t some = 1 + data[at++] % CHANGE_BYTES_MAX;
		if (some > size - at)
			some = size - at;
		memcpy(changed + where, data + at, some < bytes - where ? some : bytes - where);
		at += some;
	}
	drec_walk(changed, bytes);
	free(changed);
	return 0;
}
