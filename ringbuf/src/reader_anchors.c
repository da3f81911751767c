/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's clock: which anchors it goes by, and the times of events. */
#include "reader.h"

#include <errno.h>
#include <stdlib.h>

/* Anchors of a section, by the count it can hold; *ret is to be freed. */
static int read_section(const struct drec_reader *reader, unsigned type, size_t most, struct drec_anchor **ret,
			size_t *ret_count)
{
	const struct drec_section *section = reader->section[type];
	size_t count = section->bytes / sizeof(**ret) < most ? (size_t)(section->bytes / sizeof(**ret)) : most;
	struct drec_anchor *anchors = malloc((count + 1) * sizeof(*anchors));
	if (!anchors)
		return -ENOMEM;
	int r = ringread_bytes(reader->fd, section->offset, anchors, count * sizeof(*anchors));
	if (r < 0) {
		free(anchors);
		return r;
	}
	*ret = anchors;
	*ret_count = count;
	return 0;
}

/* Reads them again only when there are new ones. A window's host anchors are what its daemon went by. */
int ringread_anchors(struct drec_reader *reader)
{
	const struct drec_header *header = &reader->header;
	const struct drec_section *host = reader->section[DREC_SEC_HOST_ANCHORS];
	struct drec_anchor *anchors;
	size_t count;
	if (reader->anchors_given || (reader->clock.anchors && reader->anchor_seq == reader->state.anchor_seq))
		return 0;
	unsigned type = DREC_SEC_ANCHORS;
	if (header->kind == DREC_FILE_WINDOW && host && host->bytes >= 2 * sizeof(struct drec_anchor))
		type = DREC_SEC_HOST_ANCHORS;
	int r = read_section(reader, type, type == DREC_SEC_ANCHORS ? header->n_anchors : DREC_ANCHORS_MAX, &anchors,
			     &count);
	if (r < 0)
		return r;
	r = ring_clock_set(&reader->clock, header->clock, anchors, count,
			   ring_sub(header->created_real_ns, header->created_mono_ns));
	free(anchors);
	if (r == 0)
		reader->anchor_seq = reader->state.anchor_seq;
	if (r == 0 && header->kind == DREC_FILE_WINDOW)
		reader->clock.mono_to_unix_ns = reader->window.mono_to_unix_ns;
	return r;
}

void drec_reader_set_anchors(struct drec_reader *reader, const struct drec_anchor *anchors, size_t count,
			     int64_t mono_to_unix_ns)
{
	/* Without memory for the new ones the old ones go on being used: coarser, not wrong. */
	if (ring_clock_set(&reader->clock, reader->header.clock, anchors, count, mono_to_unix_ns) == 0)
		reader->anchors_given = 1;
	reader->clock.mono_to_unix_ns = mono_to_unix_ns;
}

int64_t drec_reader_mono_ns(const struct drec_reader *reader, uint64_t ticks)
{
	return ring_clock_mono_ns(&reader->clock, ticks);
}

int64_t drec_reader_unix_ns(const struct drec_reader *reader, uint64_t ticks)
{
	return ring_clock_unix_ns(&reader->clock, ticks);
}

uint64_t drec_reader_ticks(const struct drec_reader *reader, int64_t mono_ns)
{
	return ring_clock_ticks(&reader->clock, mono_ns);
}

int64_t drec_reader_mono_to_unix_ns(const struct drec_reader *reader)
{
	return reader->clock.mono_to_unix_ns;
}

static int has_duration(const struct drec_event *event)
{
	return event->kind == DREC_SPAN || event->kind == DREC_MARK;
}

int drec_reader_event_time(const struct drec_reader *reader, const struct drec_event *event,
			   int64_t *ret_start_ns, int64_t *ret_end_ns)
{
	if (event->flags & DREC_FLAG_NOTIME)
		return -ENODATA;
	uint64_t duration = has_duration(event) ? event->dur_or_value : 0;
	if (!(event->flags & DREC_FLAG_ABS)) {
		uint64_t end = event->kind == DREC_LOSS && event->id > event->start
				       ? event->id
				       : ring_add_u64(event->start, duration);
		*ret_start_ns = ring_clock_unix_ns(&reader->clock, event->start);
		*ret_end_ns = end == event->start ? *ret_start_ns : ring_clock_unix_ns(&reader->clock, end);
		return 0;
	}
	int64_t start = (int64_t)event->start, end;
	if (event->kind == DREC_LOSS)
		end = (int64_t)event->id > start ? (int64_t)event->id : start;
	else
		end = ring_add(start, duration > INT64_MAX ? INT64_MAX : (int64_t)duration);
	*ret_start_ns = start;
	*ret_end_ns = ring_add(end, (event->start_ps + event->dur_ps) / 1000);
	return 0;
}
