/* SPDX-License-Identifier: Apache-2.0 */
/* The spans of both steps as rows of cells, and what of each track grew most. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ns.h"
#include "overlay_data.h"

enum { CUT_AT = 8 }; /* good steps */

/* Sums of one track by name; how deep the name was last seen. */
struct sums {
	int64_t ns[OVERLAY_TEXTS_MAX][SCOPE_OVERLAY_STEPS];
	uint8_t depth[OVERLAY_TEXTS_MAX];
};

/* Adds the part of [from, to) in each cell, both since the step's start. */
static void add_busy(int64_t *cell, unsigned cells, int64_t cell_ns, int64_t from, int64_t to)
{
	for (int64_t i = from / cell_ns; i < (int64_t)cells && i * cell_ns < to; i++) {
		int64_t a = from > i * cell_ns ? from : i * cell_ns;
		int64_t b = to < (i + 1) * cell_ns ? to : (i + 1) * cell_ns;
		cell[i] += b - a;
	}
}

static void to_permille(const int64_t *busy, const struct scope_overlay *overlay, int64_t length_ns,
			uint16_t *ret)
{
	for (unsigned i = 0; i < overlay->cells; i++) {
		int64_t begin = (int64_t)i * overlay->cell_ns;
		int64_t part = length_ns - begin < overlay->cell_ns ? length_ns - begin : overlay->cell_ns;
		ret[i] = part <= 0 ? SCOPE_UNKNOWN : (uint16_t)(busy[i] * SCOPE_PERMILLE / part);
	}
}

/* Spans of one step and track, by their start: their union. */
static void fill_row(const struct overlay_span *span, size_t count, const struct scope_overlay *overlay,
		     const struct scope_overlay_step *step, struct sums *sums, uint16_t *ret)
{
	int64_t busy[SCOPE_WIDTH_MAX] = {0}, covered = 0;
	for (size_t i = 0; i < count; i++) {
		int64_t from = ns_sub(span[i].start_ns, step->start_ns),
			to = ns_sub(span[i].end_ns, step->start_ns);
		from = from < 0 ? 0 : from;
		to = to > step->length_ns ? step->length_ns : to;
		sums->ns[span[i].name][span[i].which] += to - from;
		sums->depth[span[i].name] = span[i].depth;
		if (to > covered) {
			add_busy(busy, overlay->cells, overlay->cell_ns, from > covered ? from : covered, to);
			covered = to;
		}
	}
	to_permille(busy, overlay, step->there ? step->length_ns : 0, ret);
}

/* The name that grew most; of those that grew about as much the innermost, which is why the others did. */
static void find_growth(const struct scope_overlay_data *data, const struct sums *sums,
			struct scope_overlay_track *track)
{
	int64_t most = 0;
	unsigned best = 0;
	for (unsigned name = 1; name < data->n_texts; name++) {
		int64_t growth = sums->ns[name][SCOPE_BAD_STEP] - sums->ns[name][SCOPE_GOOD_STEP];
		if (growth > most)
			most = growth;
	}
	for (unsigned name = 1; name < data->n_texts && most > 0; name++) {
		int64_t growth = sums->ns[name][SCOPE_BAD_STEP] - sums->ns[name][SCOPE_GOOD_STEP];
		if (growth >= most - most / 10 && (best == 0 || sums->depth[name] > sums->depth[best]))
			best = name;
	}
	if (best == 0)
		return;
	snprintf(track->grew, sizeof(track->grew), "%s", data->text[best]);
	memcpy(track->grew_ns, sums->ns[best], sizeof(track->grew_ns));
}

static size_t end_of_track(const struct scope_overlay_data *data, size_t from, size_t end)
{
	size_t to = from;
	while (to < end && data->span[to].track == data->span[from].track)
		to++;
	return to;
}

static int by_growth(const void *a_, const void *b_)
{
	const struct scope_overlay_track *a = a_, *b = b_;
	int64_t x = a->grew_ns[SCOPE_BAD_STEP] - a->grew_ns[SCOPE_GOOD_STEP];
	int64_t y = b->grew_ns[SCOPE_BAD_STEP] - b->grew_ns[SCOPE_GOOD_STEP];
	return x == y ? strcmp(a->label, b->label) : x > y ? -1 : 1;
}

/* A walk through the spans of both steps at once: each is sorted by track. */
struct walk {
	size_t at[SCOPE_OVERLAY_STEPS], end[SCOPE_OVERLAY_STEPS];
};

static bool next_track(const struct scope_overlay_data *data, const struct walk *walk, uint16_t *ret_number)
{
	bool found = false;
	for (int which = 0; which < SCOPE_OVERLAY_STEPS; which++) {
		if (walk->at[which] == walk->end[which])
			continue;
		uint16_t number = data->span[walk->at[which]].track;
		*ret_number = found && *ret_number < number ? *ret_number : number;
		found = true;
	}
	return found;
}

/* NULL track: passes over it. */
static void fill_track(const struct scope_overlay_data *data, struct walk *walk, uint16_t number,
		       struct sums *sums, const struct scope_overlay *overlay,
		       struct scope_overlay_track *track)
{
	memset(sums, 0, sizeof(*sums));
	for (int which = 0; which < SCOPE_OVERLAY_STEPS; which++) {
		size_t from = walk->at[which];
		bool has = from < walk->end[which] && data->span[from].track == number;
		walk->at[which] = has ? end_of_track(data, from, walk->end[which]) : from;
		if (track)
			fill_row(data->span + from, walk->at[which] - from, overlay, &overlay->step[which],
				 sums, track->busy[which]);
	}
	if (track) {
		snprintf(track->label, sizeof(track->label), "%s", data->text[number]);
		find_growth(data, sums, track);
	}
}

static void fill_tracks(const struct scope_overlay_data *data, struct sums *sums, struct scope_overlay *ret)
{
	struct walk walk = {.end = {0, data->n_spans}};
	uint16_t number = 0;
	while (walk.end[0] < data->n_spans && data->span[walk.end[0]].which == SCOPE_GOOD_STEP)
		walk.end[0]++;
	walk.at[1] = walk.end[0];
	while (next_track(data, &walk, &number)) {
		bool room = ret->n_tracks < SCOPE_OVERLAY_TRACKS_MAX;
		fill_track(data, &walk, number, sums, ret, room ? &ret->track[ret->n_tracks] : NULL);
		ret->n_tracks += room;
		ret->more_tracks += !room;
	}
}

/* Which time a cell stands for: both steps fit, unless the bad one is that much longer. */
static void set_scale(struct scope_overlay *ret)
{
	const struct scope_overlay_step *good = &ret->step[SCOPE_GOOD_STEP],
					*bad = &ret->step[SCOPE_BAD_STEP];
	int64_t whole = bad->length_ns;
	if (good->there && whole / CUT_AT > good->length_ns) {
		whole = good->length_ns * CUT_AT;
		ret->cut = true;
	}
	if (good->there && good->length_ns > whole)
		whole = good->length_ns;
	ret->cell_ns = whole / ret->cells + (whole % ret->cells != 0);
}

void scope_overlay_fill(const struct scope_overlay_data *data, unsigned cells, struct scope_overlay *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (!data)
		return;
	memcpy(ret->id, data->id, sizeof(ret->id));
	memcpy(ret->why, data->why, sizeof(ret->why));
	memcpy(ret->step, data->step, sizeof(ret->step));
	ret->cells = cells < 1 ? 1 : cells < SCOPE_WIDTH_MAX ? cells : SCOPE_WIDTH_MAX;
	if (!data->step[SCOPE_BAD_STEP].there)
		return;
	set_scale(ret);
	struct sums *sums = malloc(sizeof(*sums));
	if (!sums)
		return;
	fill_tracks(data, sums, ret);
	free(sums);
	qsort(ret->track, ret->n_tracks, sizeof(ret->track[0]), by_growth);
}
