/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two traces of different formats.
 *
 * Times of the reduced one are put on the raw one's zero. Where one of them does not say what its zero is in
 * Unix time (a format may have to count from the first event on), their first spans are put at the same time.
 * A track that the raw trace does not have by number is taken for the first raw one whose process and thread
 * are called the same (a format may need two lines for what overlaps); what is on a track that is unknown by
 * name, too, is not compared (a format may draw as a track what is none).
 */
#include <errno.h>
#include <stdlib.h>

#include "verify_trace.h"

/* What 0 of the trace means in Unix ns; false where that is not known. */
static bool zero_of(const struct reducer_read_report *read, enum reducer_format format, int64_t *ret_zero_ns)
{
	*ret_zero_ns = read->has_base ? read->base_unix_ns : 0;
	return read->has_base || format == REDUCER_FORMAT_DREC;
}

/* When the first span starts; false where there is none. */
static bool first_start(const struct verify_trace *trace, verify_ps *ret_start)
{
	bool found = false;
	for (size_t i = 0; i < trace->n_events; i++) {
		const struct verify_event *event = &trace->event[i];
		if (event->class != VERIFY_SPAN || (found && event->start >= *ret_start))
			continue;
		*ret_start = event->start;
		found = true;
	}
	return found;
}

/* What to add to a time of the reduced trace. */
static verify_ps find_shift(const struct verify *verify)
{
	const struct reducer_verify_report *report = verify->report;
	verify_ps raw_first = 0, reduced_first = 0;
	int64_t raw_ns, reduced_ns;
	if (zero_of(&report->raw, report->raw_format, &raw_ns) &&
	    zero_of(&report->reduced, report->reduced_format, &reduced_ns))
		return ((verify_ps)reduced_ns - raw_ns) * 1000;
	if (!first_start(&verify->raw, &raw_first) || !first_start(&verify->reduced, &reduced_first))
		return 0;
	return raw_first - reduced_first;
}

int verify_align(struct verify *verify)
{
	struct verify_trace *reduced = &verify->reduced;
	verify_ps shift = verify->crossed ? find_shift(verify) : 0;
	for (size_t i = 0; i < reduced->n_events; i++)
		reduced->event[i].start += shift;
	for (size_t i = 0; i < reduced->n_values; i++)
		reduced->value[i].start += shift;
	return 0;
}

/* What processes are called: by number of the group's text; VERIFY_NONE where nothing says. */
static uint32_t *process_names(const struct verify_house *house)
{
	uint32_t *name = malloc(((size_t)house->texts.count + 1) * sizeof(*name));
	if (!name)
		return NULL;
	for (uint32_t i = 0; i < house->texts.count; i++)
		name[i] = VERIFY_NONE;
	for (uint32_t i = 0; i < house->tracks.count; i++)
		if (house->track[i].process != VERIFY_NONE)
			name[house->track[i].group] = house->track[i].process;
	return name;
}

static bool is_drawn(const struct verify_event *event)
{
	return event->class != VERIFY_META && event->class != VERIFY_MARK;
}

/* For each track the one that it is taken for, or VERIFY_NONE. */
static int find_tracks(struct verify *verify, const uint32_t *process, uint32_t *take)
{
	struct verify_house *house = &verify->house;
	struct verify_texts labels = {0};
	uint32_t *first = malloc(((size_t)house->tracks.count + 1) * sizeof(*first)), number;
	int result = first ? 0 : -ENOMEM;
	for (uint32_t i = 0; i < house->tracks.count; i++)
		take[i] = VERIFY_NONE;
	for (size_t i = 0; i < verify->raw.n_events; i++)
		if (is_drawn(&verify->raw.event[i]))
			take[verify->raw.event[i].track] = verify->raw.event[i].track;
	/* Raw ones come first, so that the others find them. */
	for (int own = 1; own >= 0; own--)
		for (uint32_t i = 0; result == 0 && i < house->tracks.count; i++) {
			const struct verify_track *track = &house->track[i];
			uint32_t group =
				process[track->group] == VERIFY_NONE ? track->group : process[track->group];
			uint32_t name = track->thread == VERIFY_NONE ? track->name : track->thread;
			uint32_t before = labels.count;
			if ((take[i] == i) != own)
				continue;
			if (!own) {
				if (verify_texts_find(&labels, VERIFY_KEY(group, name), &number))
					take[i] = first[number];
				continue;
			}
			result = verify_texts_add(&labels, VERIFY_KEY(group, name), &number);
			if (result == 0 && number == before)
				first[number] = i;
		}
	verify_texts_free(&labels);
	free(first);
	return result;
}

int verify_cross_tracks(struct verify *verify)
{
	if (!verify->crossed)
		return 0;
	uint32_t *process = process_names(&verify->house);
	uint32_t *take = malloc(((size_t)verify->house.tracks.count + 1) * sizeof(*take));
	int result = process && take ? find_tracks(verify, process, take) : -ENOMEM;
	for (size_t i = 0; result == 0 && i < verify->reduced.n_events; i++) {
		struct verify_event *event = &verify->reduced.event[i];
		if (!is_drawn(event))
			continue;
		if (take[event->track] == VERIFY_NONE)
			event->class = event->class == VERIFY_COUNTER ? VERIFY_COUNTER : VERIFY_GONE;
		else
			event->track = take[event->track];
	}
	free(process);
	free(take);
	return result;
}
