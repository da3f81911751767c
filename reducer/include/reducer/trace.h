/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reducer/trace.h: read a trace file of any of the formats that are known, told apart by their content.
 *
 * Chrome JSON (plain, gzip, zstd), XPlane (plain, gzip, zstd), and ring or window files. Reading the same file
 * twice gives the same events in the same order.
 *
 * Not thread-safe. Errors are -errno.
 */
#ifndef REDUCER_TRACE_H
#define REDUCER_TRACE_H

#include <reducer/event.h>
#include <reducer/writer.h>

/* What the file is. -EBADMSG with the reason in *ret_problem where it is no trace; -errno of the file. */
int reducer_trace_sniff(const char *path, enum reducer_format *ret_format, struct reducer_problem *ret_problem);

/*
 * Reads all of it into `sink`. Returns 0 (what was damaged is in *report), -EBADMSG (no trace of this format:
 * the last problem of the report says why), another -errno of the file, or the sink's own value. The base that
 * report names (has_base, base_unix_ns) is what 0 of the events' times means; for a Chrome trace it may be
 * known at the end only.
 */
int reducer_trace_read(const char *path, enum reducer_format format, const struct reducer_sink *sink,
		       struct reducer_read_report *report);

/*
 * Sniffs and reads. What is no regular file can be read only once and is taken for a Chrome trace. Returns what
 * either would; a refusal is the last problem of the report.
 */
int reducer_trace_read_any(const char *path, const struct reducer_sink *sink, struct reducer_read_report *report);

#endif
