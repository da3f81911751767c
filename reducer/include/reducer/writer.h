/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reducer/writer.h: write events in any of the formats, behind one face.
 *
 *   chrome   Chrome trace JSON, plain or gzip (chrome_writer.h)
 *   xplane   XSpace protobuf, as XProf and TensorBoard read it (xplane_writer.h)
 *   pftrace  Perfetto's native trace (pftrace.h)
 *
 * (A window file, .drec, is written through a ring: drec_codec.h.)
 *
 * What a format has no place for is left out, counted by kind, and listed by reducer_writer_left_out(), for
 * people to read. Events may come in any order of time; members and metadata ("M") events may come at any
 * place. Texts need only live during the call.
 *
 * Not thread-safe. Errors are -errno; after one every further call returns it again.
 */
#ifndef REDUCER_WRITER_H
#define REDUCER_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include <reducer/event.h>

struct reducer_writer;

enum reducer_format {
	REDUCER_FORMAT_NONE = 0,
	REDUCER_FORMAT_CHROME = 1,
	REDUCER_FORMAT_XPLANE = 2,
	REDUCER_FORMAT_PFTRACE = 3, /* written only */
	REDUCER_FORMAT_DREC = 4     /* written through a ring */
};

/* The format that a name asks for: .json .json.gz .trace.json.gz, .xplane.pb, .pftrace .perfetto-trace, .drec;
 * NONE for another one. */
enum reducer_format reducer_format_of_name(const char *path);
const char *reducer_format_name(enum reducer_format format);

struct reducer_writer_options {
	int array_root;       /* chrome: a bare array */
	int gzip_level;       /* chrome: 0 = plain, 1 .. 3 fast, 4 .. 9 smaller */
	int has_base;         /* 0 of the events' times is this Unix time */
	int64_t base_unix_ns;
	int strip_args;
};

/* One thing that the output has no place for. `what` is plural and plain: "HLO protos", "flow steps". */
struct reducer_left_out {
	const char *what; /* static text */
	uint64_t count;
};

struct reducer_writer_stats {
	uint64_t events;     /* written, of those that came */
	uint64_t file_bytes;
};

/*
 * Writes to `fd`, which stays the caller's; formats that need to seek or to spool use unnamed temporary files
 * in `spool_dir` (NULL: $TMPDIR or /tmp). -EINVAL for a format that cannot be written this way.
 */
int reducer_writer_new(int fd, enum reducer_format format, const struct reducer_writer_options *options,
		       const char *spool_dir, struct reducer_writer **ret_writer);

int reducer_writer_member(struct reducer_writer *writer, const struct reducer_member *member);
int reducer_writer_event(struct reducer_writer *writer, const struct reducer_event *event);
/* The two above as a sink for a reader. */
struct reducer_sink reducer_writer_sink(struct reducer_writer *writer);

/* Ends the file. Without it the file is not whole. */
int reducer_writer_finish(struct reducer_writer *writer);

const struct reducer_writer_stats *reducer_writer_stats(const struct reducer_writer *writer);
/* Fills up to `room` kinds of things left out, counts above 0 only; returns how many there are. */
size_t reducer_writer_left_out(const struct reducer_writer *writer, struct reducer_left_out *ret, size_t room);

void reducer_writer_free(struct reducer_writer *writer);

#endif
