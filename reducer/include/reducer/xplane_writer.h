/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reducer/xplane_writer.h: write an XSpace (*.xplane.pb), as XProf and TensorBoard read it.
 *
 * Planes are processes, lines are tracks. Events from xplane.h come back as they were: the same planes,
 * lines, ids, names, times, stats. For events of another origin
 * - a process whose name XProf draws (/host:CPU, /device:TPU:N, /device:GPU:N, /device:CUSTOM:…) keeps it,
 * any other one becomes /device:CUSTOM:<name, or pid>;
 * - events that overlap without nesting go to a further line of the same name, up to 512 of them;
 * - counters go to lines `_counters_`, each series one counter;
 * - begins and ends become spans; asynchronous ones on a line of their name; marks and losses become spans
 * and instants;
 * - what an XPlane has no field for stands in stats named driverec.* (category, id, extra, args that are no
 *   object), pids, tids and further metadata events in stats of the plane, top-level members in a plane
 *   "driverec.members": reading the file gives them back. Values that are neither number nor text are JSON
 * texts of a stat whose description says so. Instants have no duration field, spans have one even if it is 0.
 *
 * Time: an XPlane counts picoseconds from the session's start in 63 bits. Where the events' times do not fit,
 * or are negative although there is a base, the session starts at the first event. The plane "Task
 * Environment" says the Unix time of it, where that is known.
 *
 * A trace that is marked as reduced (marks.h) gets a plane driverec.reduced, and a `group_id` in all planes
 * that are drawn, which tells XProf to leave the lines as they are.
 *
 * The file is laid out at the end: events wait in an unnamed temporary file, at 48 bytes of memory each.
 * -EFBIG where the file would be larger than 2 GiB, which no reader of protobuf accepts.
 *
 * Not thread-safe. Errors are -errno; after one only stats(), left_out() and free() may be called.
 */
#ifndef REDUCER_XPLANE_WRITER_H
#define REDUCER_XPLANE_WRITER_H

#include <reducer/writer.h>

struct reducer_xplane_writer;

/* Of the options: has_base, base_unix_ns, strip_args. Writes to `fd`, which stays the caller's. */
int reducer_xplane_writer_new(int fd, const struct reducer_writer_options *options, const char *spool_dir,
			      struct reducer_xplane_writer **ret_writer);
int reducer_xplane_writer_member(struct reducer_xplane_writer *writer, const struct reducer_member *member);
int reducer_xplane_writer_event(struct reducer_xplane_writer *writer, const struct reducer_event *event);
int reducer_xplane_writer_finish(struct reducer_xplane_writer *writer);
const struct reducer_writer_stats *reducer_xplane_writer_stats(const struct reducer_xplane_writer *writer);
size_t reducer_xplane_writer_left_out(const struct reducer_xplane_writer *writer,
				      struct reducer_left_out *ret, size_t room);
void reducer_xplane_writer_free(struct reducer_xplane_writer *writer);

#endif
