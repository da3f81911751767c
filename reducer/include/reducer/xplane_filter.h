/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reducer/xplane_filter.h: an XSpace with fewer events, and nothing else changed.
 *
 * The file is copied byte for byte, unknown fields, HLO protos and the order of fields included, but events
 * that are not to be kept are left out and added ones stand at the end of their lines. Planes and lines of
 * which nothing is left out and to which nothing is added are the same bytes as before.
 *
 * Events are counted in the order in which xplane.h delivers them, metadata ("M") events not counted: event n
 * is bit n % 8 of byte n / 8. Aggregated events and metadata always stay.
 *
 * A damaged file is refused: no copy of it could be told to be right. Packed input gives plain output.
 *
 * Not thread-safe. Errors are -errno.
 */
#ifndef REDUCER_XPLANE_FILTER_H
#define REDUCER_XPLANE_FILTER_H

#include <stdint.h>

#include <reducer/event.h>

struct reducer_xplane_filter;

/* -EBADMSG for a file that is damaged or no XSpace; *ret_problem says where. A plain file is mapped: it must
 * not shrink until free(). */
int reducer_xplane_filter_open(const char *path, struct reducer_xplane_filter **ret_filter,
			       struct reducer_problem *ret_problem);

/*
 * Adds an event to the line that xplane.h delivers as its group and track. Spans get a duration, all others
 * none; name, category, id, extra members and args are written as xplane_writer.h has them. -ENOENT where
 * there is no such line, -ERANGE where the line cannot say the time.
 *
 * The metadata event driverec.reduced (marks.h) becomes a plane, in the place of one that is there; then all
 * planes that are drawn get a `group_id`, too.
 */
int reducer_xplane_filter_add(struct reducer_xplane_filter *filter, const struct reducer_event *event);

/* Writes the result to `fd`, which stays the caller's. `keep` is of `n_events` bits, which must be as many as
 * there are (-EINVAL); NULL keeps all. -EFBIG beyond 2 GiB: then nothing is written. */
int reducer_xplane_filter_write(struct reducer_xplane_filter *filter, const uint8_t *keep, uint64_t n_events,
				int fd, uint64_t *ret_bytes);

void reducer_xplane_filter_free(struct reducer_xplane_filter *filter);

#endif
