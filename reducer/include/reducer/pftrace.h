/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reducer/pftrace.h: write Perfetto's native trace format, through reducer_writer_new() as well.
 *
 * Processes, threads and counters become tracks of their own kind; what has no number for a process or thread
 * becomes a named track. Spans that overlap on a track without nesting, and async spans, go to further tracks
 * with the same name and parent, which the UI shows as one. B and E are paired. A span that never ends has no
 * end. Args, and further members of an event, are debug annotations; top-level members are those of an
 * instant "trace members" on a track "driverec", where an instant "driverec.reduced" (reducer/marks.h) may be
 * too.
 *
 * Other metadata events are instants on a track "metadata" of their process, where the trace begins.
 *
 * Packets are in the order of time. A flow is kept where it has two ends and each lies on a span.
 *
 * Time: whole ns, rounded, so that spans stay nested as they were. Where the trace has a base, times are Unix
 * ns and a clock snapshot says so; else they are as written, moved so that none is below 0.
 *
 * Memory: 48 bytes an event (56 more for a begin or end till it is paired), 32 a flow, names and tracks; the
 * events' contents are in an unnamed file in `spool_dir`.
 */
#ifndef REDUCER_PFTRACE_H
#define REDUCER_PFTRACE_H

#include <reducer/writer.h>

struct reducer_pftrace_writer;

int reducer_pftrace_writer_new(int fd, const struct reducer_writer_options *options, const char *spool_dir,
			       struct reducer_pftrace_writer **ret_writer);
int reducer_pftrace_writer_member(struct reducer_pftrace_writer *writer, const struct reducer_member *member);
int reducer_pftrace_writer_event(struct reducer_pftrace_writer *writer, const struct reducer_event *event);
/* Sorts and writes everything. */
int reducer_pftrace_writer_finish(struct reducer_pftrace_writer *writer);
const struct reducer_writer_stats *reducer_pftrace_writer_stats(const struct reducer_pftrace_writer *writer);
size_t reducer_pftrace_writer_left_out(const struct reducer_pftrace_writer *writer,
				       struct reducer_left_out *ret, size_t room);
void reducer_pftrace_writer_free(struct reducer_pftrace_writer *writer);

#endif
