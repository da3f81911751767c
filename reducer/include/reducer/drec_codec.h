/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reducer/drec_codec.h: events into a ring, and out of a ring or window file.
 *
 * What a source wrote comes back: times to the picosecond, args byte for byte, tracks, further members and
 * top-level members as they were. Whatever a ring record has no place for goes into its extra members.
 *
 * Time. Rings keep Unix ns. Where a trace has a base (baseTimeNanoseconds) that is known before its first
 * event, it is added on the way in and noted in the ring; the reader says it in the report, for a writer to
 * subtract. A base that comes later cannot be added any more: then times stay as written.
 */
#ifndef REDUCER_DREC_CODEC_H
#define REDUCER_DREC_CODEC_H

#include <stdbool.h>

#include <driverec/driverec.h>
#include <driverec/reader.h>
#include <reducer/event.h>

struct reducer_ring_sink;

struct reducer_ring_sink_options {
	int array_root; /* noted, so that an export can take the same form */
	int has_base;   /* known beforehand; else the member says it */
	int64_t base_unix_ns;
};

struct reducer_ring_sink_stats {
	uint64_t events;  /* written */
	uint64_t refused; /* by the ring, which counted them as lost */
	uint64_t members;
	int late_base;    /* the base came after the first event */
};

/* `rec` stays the caller's; `options` may be NULL. */
int reducer_ring_sink_new(drec *rec, const struct reducer_ring_sink_options *options,
			  struct reducer_ring_sink **ret_sink);
struct reducer_sink reducer_ring_sink(struct reducer_ring_sink *sink);
const struct reducer_ring_sink_stats *reducer_ring_sink_stats(const struct reducer_ring_sink *sink);
void reducer_ring_sink_free(struct reducer_ring_sink *sink);

struct reducer_drec_options {
	int has_window;     /* only events that meet [a_ns, b_ns], Unix ns, and those without time */
	int64_t a_ns, b_ns;
	int has_second;     /* or [second_a_ns, second_b_ns] */
	int64_t second_a_ns, second_b_ns;
	/* Asked about every event that the window lets through; true leaves it out. May be NULL. */
	bool (*leave_out)(void *context, const struct drec_place *place);
	void *context;
};

/* What a ring says of the source it was fed from, before its events are read. */
struct reducer_drec_source {
	int fed;              /* its events came from a trace: marks of whoever fed it are left out */
	int array_root;
	int has_base;
	int64_t base_unix_ns; /* to be subtracted to get the source's times */
};
int reducer_drec_source(struct drec_reader *reader, struct reducer_drec_source *ret_source);

/*
 * Reads every event that is new to `reader` into `sink`: first top-level members, then thread names as "M"
 * events, then the events of each thread in the order of their commit. Threads become pid and tid. Returns 0,
 * -errno, or the sink's value. `options` and `stats` may be NULL. *report is overwritten; damage is that of
 * the ring's bytes.
 */
int reducer_drec_read(struct drec_reader *reader, const struct reducer_sink *sink,
		      const struct reducer_drec_options *options, struct drec_poll_stats *stats,
		      struct reducer_read_report *report);

#endif
