/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bins of the macro view as columns. All rings together make the step times: the slowest rank is what a job
 * waits for. The share of a track is that of its spans inside of steps: a step is no work by itself.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gather.h"
#include "sources/intake.h"

enum { NO_DEPTH = -1, STEP_ROWS_MAX = 1024 };

/* A row that may be drawn. Texts are the tiers'. */
struct row {
	struct reducer_tiers_row_info info;
	uint32_t number;
};

struct step_row {
	struct reducer_text source;
	uint32_t number;
	uint32_t track;
	int depth;
	bool limit; /* not the step's length, but what would have been a spike */
	bool train;
};

struct bins {
	struct reducer_tiers *tiers;
	struct scope_model *model;
	struct reducer_bin *bin; /* room for 2 x SCOPE_WIDTH_MAX */
	int64_t known_from_ns;   /* the tier reaches back to here */
	struct row *row;
	size_t n_rows;
	struct step_row step[STEP_ROWS_MAX];
	size_t n_steps;
	bool has_train;
};

/* A decimal number up to '/', -1 if it is none. */
static int64_t take_number(struct reducer_text *text)
{
	int64_t number = 0;
	size_t at = 0;
	for (; at < text->bytes && at < 9 && text->data[at] >= '0' && text->data[at] <= '9'; at++)
		number = number * 10 + (text->data[at] - '0');
	if (at == 0 || at == text->bytes || text->data[at] != '/')
		return -1;
	text->data += at + 1;
	text->bytes -= at + 1;
	return number;
}

static bool take_word(struct reducer_text *text, const char *word)
{
	size_t bytes = strlen(word);
	if (text->bytes <= bytes || memcmp(text->data, word, bytes) != 0 || text->data[bytes] != '/')
		return false;
	text->data += bytes + 1;
	text->bytes -= bytes + 1;
	return true;
}

/* "steps/<track>/<depth>/<phase>" or "limits/…": see intake.h. */
static void take_counter(struct bins *bins, uint32_t number, const struct reducer_tiers_row_info *info)
{
	struct reducer_text key = info->key;
	bool limit = take_word(&key, INTAKE_LIMITS);
	if ((!limit && !take_word(&key, INTAKE_STEPS)) || bins->n_steps == STEP_ROWS_MAX)
		return;
	int64_t track = take_number(&key), depth = take_number(&key);
	if (track < 0 || depth < 0)
		return;
	bool train = key.bytes == 5 && memcmp(key.data, "train", 5) == 0;
	bins->step[bins->n_steps++] = (struct step_row){.source = info->source,
							.number = number,
							.track = (uint32_t)track,
							.depth = (int)depth,
							.limit = limit,
							.train = train};
	bins->has_train |= train && !limit;
}

static int64_t window_end_ns(const struct scope_model *model)
{
	return model->from_ns + (int64_t)model->columns * model->width_ns;
}

static int list_rows(struct bins *bins)
{
	uint32_t count = reducer_tiers_rows(bins->tiers);
	bins->row = calloc((size_t)count + 1, sizeof(*bins->row));
	if (!bins->row)
		return -ENOMEM;
	for (uint32_t number = 0; number < count; number++) {
		struct row *row = &bins->row[bins->n_rows];
		if (reducer_tiers_row_info(bins->tiers, number, &row->info) < 0 || row->info.events == 0)
			continue;
		row->number = number;
		if (row->info.kind == REDUCER_ROW_COUNTER)
			take_counter(bins, number, &row->info);
		/* Before its first and after its last event a track was not there. */
		else if (row->info.kind == REDUCER_ROW_SPANS && row->info.last_ns >= bins->model->from_ns &&
			 row->info.first_ns < window_end_ns(bins->model))
			bins->n_rows++;
	}
	return 0;
}

static int compare_text(struct reducer_text a, struct reducer_text b)
{
	size_t least = a.bytes < b.bytes ? a.bytes : b.bytes;
	int order = least ? memcmp(a.data, b.data, least) : 0;
	return order ? order : (a.bytes > b.bytes) - (a.bytes < b.bytes);
}

static int by_label(const void *a_, const void *b_)
{
	const struct row *a = a_, *b = b_;
	int order = compare_text(a->info.label, b->info.label);
	if (order == 0)
		order = (a->info.track > b->info.track) - (a->info.track < b->info.track);
	return order ? order : (int)a->info.depth - (int)b->info.depth;
}

static size_t rows_of_track(const struct bins *bins, size_t at)
{
	size_t count = 1;
	while (at + count < bins->n_rows && bins->row[at + count].info.track == bins->row[at].info.track)
		count++;
	return count;
}

/* How deep the steps of a track lie, NO_DEPTH where it has none. */
static int step_depth(const struct bins *bins, const struct reducer_tiers_row_info *info)
{
	char text[16];
	size_t bytes = info->key.bytes < sizeof(text) ? info->key.bytes : 0;
	if (bytes == 0)
		return NO_DEPTH;
	for (size_t i = 0; i < bins->n_steps; i++) {
		const struct step_row *step = &bins->step[i];
		snprintf(text, sizeof(text), "%u", step->track);
		if (!step->limit && strlen(text) == bytes && memcmp(text, info->key.data, bytes) == 0 &&
		    compare_text(step->source, info->source) == 0)
			return step->depth;
	}
	return NO_DEPTH;
}

/* "rank0.919d499ce50d650e main" -> "rank0 main": the part that tells processes of the same name apart. */
static void copy_label(struct reducer_text label, char *ret, size_t room)
{
	static const char hex[] = "0123456789abcdef";
	size_t used = 0;
	for (size_t i = 0; i < label.bytes && used + 1 < room; i++) {
		size_t digits = 0;
		while (label.data[i] == '.' && digits < 16 && i + 1 + digits < label.bytes &&
		       label.data[i + 1 + digits] && strchr(hex, label.data[i + 1 + digits]))
			digits++;
		if (digits == 16)
			i += digits;
		else if (label.data[i])
			ret[used++] = label.data[i];
	}
	while (used > 0 && ret[used - 1] == ' ')
		used--;
	ret[used] = 0;
}

/* What of a column's bin lies in the past; 0 = nothing is known of it. */
static int64_t known_part(const struct bins *bins, unsigned column)
{
	const struct scope_model *model = bins->model;
	int64_t begin = model->from_ns + (int64_t)column * model->width_ns;
	if (begin < bins->known_from_ns || begin >= model->picture_ns)
		return 0;
	return model->picture_ns - begin < model->width_ns ? model->picture_ns - begin : model->width_ns;
}

/* Before its first event a track was not there, which is not the same as idle. */
static void set_shares(const struct bins *bins, const int64_t *busy_ns, int64_t first_ns,
		       struct scope_track *track)
{
	const struct scope_model *model = bins->model;
	int64_t sum_ns = 0, all_ns = 0;
	for (unsigned i = 0; i < model->columns; i++) {
		bool there = model->from_ns + (int64_t)(i + 1) * model->width_ns > first_ns;
		int64_t part = there ? known_part(bins, i) : 0;
		int64_t busy = busy_ns[i] < part ? busy_ns[i] : part;
		track->busy[i] = part ? (uint16_t)(busy * SCOPE_PERMILLE / part) : SCOPE_UNKNOWN;
		sum_ns += busy;
		all_ns += part;
	}
	track->share = all_ns ? (uint16_t)((__int128)sum_ns * SCOPE_PERMILLE / all_ns) : SCOPE_UNKNOWN;
}

static int fill_track(struct bins *bins, const struct row *row, size_t count, struct scope_track *track)
{
	const struct scope_model *model = bins->model;
	int64_t busy_ns[SCOPE_WIDTH_MAX] = {0}, first_ns = INT64_MAX;
	int depth = step_depth(bins, &row->info);
	/* A track with nothing inside its steps is shown by them. */
	if (depth != NO_DEPTH && row[count - 1].info.depth <= depth)
		depth = NO_DEPTH;
	track->coarsened = false;
	for (size_t i = 0; i < count; i++) {
		first_ns = row[i].info.first_ns < first_ns ? row[i].info.first_ns : first_ns;
		if (depth != NO_DEPTH && row[i].info.depth <= depth)
			continue;
		int result = reducer_tiers_read(bins->tiers, row[i].number, model->from_ns, model->width_ns,
						model->columns, bins->bin);
		if (result < 0)
			return result;
		track->coarsened |= result == 1;
		for (unsigned c = 0; c < model->columns; c++) {
			int64_t more = bins->bin[c].busy_ns;
			if (depth == NO_DEPTH)
				busy_ns[c] += bins->bin[c].track_busy_ns;
			else if (more > busy_ns[c])
				busy_ns[c] = more;
		}
	}
	copy_label(row->info.label, track->label, sizeof(track->label));
	set_shares(bins, busy_ns, first_ns, track);
	return 0;
}

static int fill_tracks(struct bins *bins, unsigned first, unsigned tracks)
{
	struct scope_model *model = bins->model;
	if (bins->n_rows)
		qsort(bins->row, bins->n_rows, sizeof(bins->row[0]), by_label);
	for (size_t at = 0; at < bins->n_rows; at += rows_of_track(bins, at))
		model->tracks++;
	if (first > 0 && first + tracks > model->tracks)
		first = model->tracks > tracks ? model->tracks - tracks : 0;
	model->first_track = first;
	unsigned index = 0;
	for (size_t at = 0; at < bins->n_rows; index++) {
		size_t count = rows_of_track(bins, at);
		if (index >= first && model->n_tracks < tracks && model->n_tracks < SCOPE_TRACKS_MAX) {
			int result = fill_track(bins, &bins->row[at], count, &model->track[model->n_tracks]);
			if (result < 0)
				return result;
			model->n_tracks++;
		}
		at += count;
	}
	return 0;
}

/* A step of that length was running all through [from, to). */
static void paint_step(struct scope_model *model, int64_t from_ns, int64_t to_ns, int64_t length_ns,
		       bool open)
{
	int64_t end = window_end_ns(model);
	from_ns = from_ns > model->from_ns ? from_ns : model->from_ns;
	to_ns = to_ns < end ? to_ns : end;
	for (int64_t at = from_ns - (from_ns - model->from_ns) % model->width_ns; at < to_ns;
	     at += model->width_ns) {
		struct scope_step_column *column = &model->steps[(at - model->from_ns) / model->width_ns];
		if (length_ns <= column->longest_ns)
			continue;
		column->longest_ns = length_ns;
		column->open = open;
	}
}

static void paint_bin(struct scope_model *model, int64_t begin_ns, int64_t width_ns,
		      const struct reducer_bin *bin)
{
	if (bin->count == 0 || !(bin->max > 0) || bin->max > 9e18 || !(bin->last > 0) || bin->last > 9e18)
		return;
	int64_t end_ns = bin->last_ns, length_ns = (int64_t)bin->max;
	if (end_ns < begin_ns || end_ns >= begin_ns + width_ns)
		end_ns = begin_ns + width_ns - 1;
	/* The bin's last one ended at end_ns; the longest, if it is another, about as many usual ones before.
	 */
	if (bin->last < bin->max) {
		double others_ns = bin->last * (double)(bin->count - 1);
		end_ns = others_ns < (double)(end_ns - begin_ns) ? end_ns - (int64_t)others_ns : begin_ns;
	}
	paint_step(model, begin_ns, end_ns + 1, length_ns, false);
	if (length_ns < end_ns)
		paint_step(model, end_ns - length_ns, end_ns, length_ns, false);
}

/* The first tier that is coarser than what is shown; its width, or that of what is shown. */
static int64_t coarser_ns(const struct bins *bins)
{
	struct reducer_tiers_stats stats;
	reducer_tiers_stats(bins->tiers, &stats);
	for (unsigned i = 0; i < stats.options.tiers; i++)
		if (stats.options.tier[i].width_ns > bins->model->width_ns)
			return stats.options.tier[i].width_ns;
	return bins->model->width_ns;
}

/* Steps end where they are counted: one that runs through the window's end is found after it. */
static int fill_lengths(struct bins *bins, const struct step_row *step)
{
	struct scope_model *model = bins->model;
	int64_t end = window_end_ns(model), coarse = coarser_ns(bins);
	int result = reducer_tiers_read(bins->tiers, step->number, model->from_ns, model->width_ns,
					2 * model->columns, bins->bin);
	if (result < 0)
		return result;
	for (unsigned i = 0; i < 2 * model->columns; i++)
		paint_bin(model, model->from_ns + (int64_t)i * model->width_ns, model->width_ns,
			  &bins->bin[i]);
	int64_t from = (end / coarse + 1) * coarse;
	result = reducer_tiers_read(bins->tiers, step->number, from, coarse, model->columns, bins->bin);
	for (unsigned i = 0; result >= 0 && i < model->columns; i++) {
		if (bins->bin[i].count == 0)
			continue;
		paint_bin(model, from + (int64_t)i * coarse, coarse, &bins->bin[i]);
		break;
	}
	return result < 0 ? result : 0;
}

static int fill_limits(struct bins *bins, const struct step_row *step)
{
	struct scope_model *model = bins->model;
	int result = reducer_tiers_read(bins->tiers, step->number, model->from_ns, model->width_ns,
					model->columns, bins->bin);
	for (unsigned i = 0; result >= 0 && i < model->columns; i++)
		if (bins->bin[i].count > 0 && bins->bin[i].last > (double)model->steps[i].warn_ns &&
		    bins->bin[i].last < 9e18)
			model->steps[i].warn_ns = (int64_t)bins->bin[i].last;
	return result < 0 ? result : 0;
}

/* Between two steps the limit is what it last was; before the first one known, what it then was. */
static void spread_limits(struct scope_model *model)
{
	int64_t limit = 0;
	for (unsigned i = 0; i < model->columns; i++) {
		limit = model->steps[i].warn_ns ? model->steps[i].warn_ns : limit;
		model->steps[i].warn_ns = limit;
	}
	limit = limit ? limit : model->warn_ns;
	for (unsigned i = model->columns; i > 0; i--) {
		limit = model->steps[i - 1].warn_ns ? model->steps[i - 1].warn_ns : limit;
		model->steps[i - 1].warn_ns = limit;
	}
}

static int fill_steps(struct bins *bins)
{
	struct scope_model *model = bins->model;
	for (size_t i = 0; i < bins->n_steps; i++) {
		const struct step_row *step = &bins->step[i];
		if (bins->has_train && !step->train)
			continue;
		int result = step->limit ? fill_limits(bins, step) : fill_lengths(bins, step);
		if (result < 0)
			return result;
		model->has_steps |= !step->limit;
	}
	spread_limits(model);
	if (model->live && model->open.there && model->open.for_ns > model->median_ns)
		paint_step(model, model->now_ns - model->open.for_ns, model->now_ns, model->open.for_ns,
			   true);
	return 0;
}

/* How far back the tier that is read for this width reaches. */
static int64_t known_from(const struct reducer_tiers_stats *stats, int64_t width_ns)
{
	for (unsigned i = stats->options.tiers; i > 0; i--) {
		const struct reducer_tier *tier = &stats->options.tier[i - 1];
		if (width_ns % tier->width_ns == 0)
			return stats->now_ns / tier->width_ns - tier->bins >= 0
				       ? (stats->now_ns / tier->width_ns - tier->bins + 1) * tier->width_ns
				       : 0;
	}
	return 0;
}

int scope_gather_bins(struct reducer_tiers *tiers, unsigned first_track, unsigned tracks,
		      struct scope_model *model)
{
	struct reducer_tiers_stats stats;
	struct bins *bins = calloc(1, sizeof(*bins));
	int result = bins ? 0 : -ENOMEM;
	reducer_tiers_stats(tiers, &stats);
	if (bins) {
		bins->tiers = tiers;
		bins->model = model;
		bins->known_from_ns = known_from(&stats, model->width_ns);
		bins->bin = calloc((size_t)2 * SCOPE_WIDTH_MAX, sizeof(*bins->bin));
		result = bins->bin ? list_rows(bins) : -ENOMEM;
	}
	if (result == 0)
		result = fill_steps(bins);
	if (result == 0)
		result = fill_tracks(bins, first_track, tracks);
	if (bins) {
		free(bins->row);
		free(bins->bin);
	}
	free(bins);
	return result;
}
