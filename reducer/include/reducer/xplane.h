/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reducer/xplane.h: read an XSpace, the file of XProf and of JAX's and TensorFlow's profilers (*.xplane.pb),
 * plain, gzip or zstd.
 *
 * Order: members "errors", "warnings" and "hostnames" (JSON arrays), then for all planes the metadata ("M")
 * events, then plane by plane and line by line the events in the order of the file.
 *
 * Tracks: pid is 701 for /host:CPU, 1 + id for TPU and GPU planes, 501 + id for /device:CUSTOM:*, as the
 * profiler's own conversion to Chrome JSON has it, and a free number from 1001 for any other plane and for
 * one whose number is taken. tid is the line's id, or a free number where the plane has it twice.
 *
 * Metadata events of a plane: process_name, process_sort_index, plane_info {"id"}, plane_stats (all stats of
 * the plane); of a line: thread_name, thread_sort_index, line_info {"timestamp_ns", and "duration_ps",
 * "display_id", "display_name" where they are set}. An event that was aggregated has no place in time and is
 * a metadata event "aggregated_event" {"name", "num_occurrences", "duration_ps", …}. Event metadata that no
 * event uses (HLO protos) follow their plane as "event_metadata" {"name", …}.
 *
 * Events: spans; instants where the file gives no length (a length of 0 that is there is a span of 0);
 * counter samples on lines named `_counters_`. Their time is line.timestamp_ns * 1000 + offset_ps, exactly;
 * its zero is the profile_start_time of the plane "Task Environment" where there is one
 * (report->base_unix_ns).
 *
 * Args: the event's stats by name in their order, then of the event's metadata "meta:display_name",
 * "meta:metadata" and "meta:child_ids" and its stats as "meta.<name>". Integers are JSON integers, doubles
 * have 17 digits (the not finite ones are texts: NaN, Infinity), references are the text that they refer to,
 * bytes are {"base64":"…"}, packed texts {"gzip_base64":"…"}, a stat without value is null. A name that is
 * missing is
 * "#<id>". A text or bytes that would make an event larger than REDUCER_XPLANE_ARGS_MAX becomes {"bytes":N}
 * and is reported.
 *
 * What xplane_writer.h put in stats and planes of its own (driverec.*) comes back as what it was.
 *
 * Damage is contained by the message around it: an event, else the rest of its line, of its plane, of the
 * file is skipped and reported with its byte offset (in the unpacked file). A file that is cut off gives all
 * events that are whole; their names may be "#<id>", for the names of a plane stand after its lines.
 * `offset` and `bytes` of an event are those of its field in the file.
 *
 * Not thread-safe. Errors are -errno.
 */
#ifndef REDUCER_XPLANE_H
#define REDUCER_XPLANE_H

#include <stddef.h>
#include <stdint.h>

#include <reducer/event.h>

enum {
	REDUCER_XPLANE_ARGS_MAX = 16 << 20,
	REDUCER_XPLANE_PLANES_MAX = 1 << 16,
	REDUCER_XPLANE_LINES_MAX = 1 << 20
};

/* Whether the first `n` bytes of a file (a few hundred are enough) look like an XSpace. */
int reducer_xplane_sniff(const void *head, size_t n);

/*
 * Reads all of the file into `sink`. 0: read, see *report for what was damaged; -EBADMSG: no XSpace, the last
 * problem of the report says why; -EFBIG: over 2 GiB; another -errno of the file; or the sink's own value.
 * *report is overwritten. A plain file is mapped: it must not shrink meanwhile.
 */
int reducer_xplane_read(const char *path, const struct reducer_sink *sink,
			struct reducer_read_report *report);

/* The same for an XSpace in memory. */
int reducer_xplane_read_bytes(const void *bytes, size_t count, const struct reducer_sink *sink,
			      struct reducer_read_report *report);

#endif
