/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The XPlane and Perfetto writers, fed by the Chrome reader. An XPlane that was written is read without damage. A
 * Perfetto trace is protobuf to its last byte: packets (field 1) of fields with known wire types.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <reducer/chrome.h>
#include <reducer/writer.h>
#include <reducer/xplane.h>

#include "fuzz.h"

static char *export(const uint8_t *data, size_t size, enum reducer_format format, size_t *ret_bytes, int *ret_result)
{
	static struct fuzz_heard heard;
	struct reducer_writer *writer;
	struct reducer_input *input;
	struct reducer_read_report report;
	int fd = fuzz_file("", 0), from = fuzz_file(data, size);
	fuzz_require(reducer_writer_new(fd, format, NULL, "/dev/shm", &writer) == 0, "a writer");
	heard = (struct fuzz_heard){.also = reducer_writer_sink(writer)};
	struct reducer_sink sink = fuzz_hear(&heard);
	fuzz_require(reducer_input_from_fd(from, &input, NULL) == 0, "an input");
	*ret_result = reducer_chrome_read(input, &sink, NULL, &report);
	fuzz_require(*ret_result == 0 || *ret_result == -EBADMSG, "the writer takes every event: %d", *ret_result);
	int finished = reducer_writer_finish(writer);
	fuzz_require(finished == 0, "the writer finishes: %d", finished);
	char *bytes = fuzz_file_bytes(fd, ret_bytes);
	fuzz_require(reducer_writer_stats(writer)->file_bytes == *ret_bytes, "bytes are counted");
	reducer_writer_free(writer);
	reducer_input_free(input);
	close(from);
	close(fd);
	return bytes;
}

static bool take_varint(const uint8_t **p, const uint8_t *end, uint64_t *ret)
{
	uint64_t value = 0;
	for (unsigned shift = 0; shift < 70 && *p < end; shift += 7) {
		uint8_t byte = *(*p)++;
		if (shift < 64)
			value |= (uint64_t)(byte & 127) << shift;
		if (byte < 128) {
			*ret = value;
			return true;
		}
	}
	return false;
}

/* One field: the whole of it is there. */
static void walk_field(const uint8_t **p, const uint8_t *end, bool top)
{
	uint64_t key, value;
	fuzz_require(take_varint(p, end, &key) && key >> 3 > 0, "a field's key");
	fuzz_require(!top || key == (1 << 3 | 2), "a packet, not key %llu", (unsigned long long)key);
	switch (key & 7) {
	case 0:
		fuzz_require(take_varint(p, end, &value), "a number");
		break;
	case 1:
	case 5:
		value = (key & 7) == 1 ? 8 : 4;
		fuzz_require(value <= (uint64_t)(end - *p), "a fixed number");
		*p += value;
		break;
	case 2:
		fuzz_require(take_varint(p, end, &value) && value <= (uint64_t)(end - *p), "a length");
		for (const uint8_t *inner = *p; top && inner < *p + value;)
			walk_field(&inner, *p + value, false);
		*p += value;
		break;
	default:
		fuzz_require(false, "wire type %u", (unsigned)(key & 7));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz_heard heard;
	struct reducer_read_report report;
	size_t bytes;
	int result;
	char *written = export(data, size, REDUCER_FORMAT_PFTRACE, &bytes, &result);
	const uint8_t *p = (const uint8_t *)written, *end = p + bytes;
	while (p < end)
		walk_field(&p, end, true);
	free(written);
	written = export(data, size, REDUCER_FORMAT_XPLANE, &bytes, &result);
	heard = (struct fuzz_heard){.events = 0};
	struct reducer_sink sink = fuzz_hear(&heard);
	int read = reducer_xplane_read_bytes(written, bytes, &sink, &report);
	fuzz_require(result < 0 || read == 0, "the XPlane is read: %d, %s", read, report.problem[0].what);
	fuzz_require(report.damaged == 0, "it is whole: %s", report.problem[0].what);
	free(written);
	return 0;
}
