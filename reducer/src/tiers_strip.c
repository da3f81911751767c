/* SPDX-License-Identifier: Apache-2.0 */
/* Bins of one row and tier: a B-tree of one level. See tiers_state.h. */
#include "tiers_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

void tiers_entry_load(const struct tiers_entry *entry, uint8_t kind, struct reducer_bin *ret)
{
	*ret = (struct reducer_bin){.count = entry->count, .name = entry->name};
	if (kind == REDUCER_ROW_COUNTER) {
		ret->min = entry->counter.min;
		ret->max = entry->counter.max;
		ret->last = entry->counter.last;
		ret->last_ns = entry->counter.last_ns;
	} else if (kind == REDUCER_ROW_INSTANTS) {
		ret->first_ns = entry->instant.first_ns;
	} else {
		ret->busy_ns = entry->span.busy_ns;
		ret->track_busy_ns = entry->span.track_busy_ns;
		ret->sum_ns = entry->span.sum_ns;
		ret->longest_ns = entry->span.longest_ns;
	}
}

static int64_t at_most(int64_t value, int64_t limit)
{
	return value < limit ? value : limit;
}

/* Busy time of doubtful overlap may add up to more than there is: a bin is never more than busy. */
static void entry_store(struct tiers_entry *entry, uint8_t kind, const struct reducer_bin *bin,
			int64_t width_ns)
{
	entry->count = bin->count < UINT32_MAX ? (uint32_t)bin->count : UINT32_MAX;
	entry->name = bin->name;
	if (kind == REDUCER_ROW_COUNTER) {
		entry->counter.min = bin->min;
		entry->counter.max = bin->max;
		entry->counter.last = bin->last;
		entry->counter.last_ns = bin->last_ns;
	} else if (kind == REDUCER_ROW_INSTANTS) {
		entry->instant.first_ns = bin->first_ns;
	} else {
		entry->span.busy_ns = at_most(bin->busy_ns, width_ns);
		entry->span.track_busy_ns = at_most(bin->track_busy_ns, width_ns);
		entry->span.sum_ns = bin->sum_ns;
		entry->span.longest_ns = bin->longest_ns;
	}
}

int tiers_strip_peek(struct reducer_tiers *tiers, const struct tiers_reference *reference,
		     struct tiers_block *room, const struct tiers_block **ret_block)
{
	if (reference->block) {
		*ret_block = reference->block;
		return 0;
	}
	ssize_t got =
		pread(tiers->fd, room, sizeof(*room), (off_t)tiers_file_block_offset(tiers, reference->page));
	if (got < 0)
		return -errno;
	if (got != sizeof(*room) || crc32(0, (const Bytef *)room, sizeof(*room)) != reference->crc ||
	    room->magic != TIERS_BLOCK_MAGIC || room->used > TIERS_BLOCK_ENTRIES ||
	    room->first != reference->first)
		return -EBADMSG;
	*ret_block = room;
	return 0;
}

/* The block in memory, to be changed. */
static int load_dirty(struct reducer_tiers *tiers, struct tiers_reference *reference)
{
	if (!reference->block) {
		struct tiers_block *block = malloc(sizeof(*block));
		const struct tiers_block *same;
		if (!block)
			return -ENOMEM;
		int rc = tiers_strip_peek(tiers, reference, block, &same);
		if (rc == -EBADMSG) {
			/* What it held is gone; what comes goes on. */
			tiers->stats.damaged_blocks++;
			*block = (struct tiers_block){.magic = TIERS_BLOCK_MAGIC, .first = reference->first};
		} else if (rc < 0) {
			free(block);
			return rc;
		}
		reference->block = block;
	}
	if (!reference->dirty) {
		reference->dirty = true;
		tiers->dirty++;
		tiers->page[reference->page] = TIERS_PAGE_KEPT;
		tiers->kept++;
		reference->page = TIERS_PAGE_NONE;
	}
	return 0;
}

static int new_block(struct reducer_tiers *tiers, struct tiers_strip *strip, uint32_t index, int64_t first)
{
	if (strip->count == strip->room) {
		uint32_t room = strip->room ? strip->room * 2 : 4;
		struct tiers_reference *grown = realloc(strip->reference, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		strip->reference = grown;
		strip->room = room;
	}
	struct tiers_block *block = calloc(1, sizeof(*block));
	if (!block)
		return -ENOMEM;
	block->magic = TIERS_BLOCK_MAGIC;
	block->first = first;
	struct tiers_reference *reference = strip->reference + index;
	memmove(reference + 1, reference, (strip->count - index) * sizeof(*reference));
	*reference = (struct tiers_reference){
		.first = first, .end = first, .page = TIERS_PAGE_NONE, .dirty = true, .block = block};
	strip->count++;
	tiers->blocks++;
	tiers->dirty++;
	return 0;
}

void tiers_strip_drop(struct reducer_tiers *tiers, struct tiers_strip *strip, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct tiers_reference *reference = &strip->reference[i];
		free(reference->block);
		tiers->blocks--;
		if (reference->dirty) {
			tiers->dirty--;
		} else {
			tiers->page[reference->page] = TIERS_PAGE_KEPT;
			tiers->kept++;
		}
	}
	strip->count -= count;
	memmove(strip->reference, strip->reference + count, strip->count * sizeof(*strip->reference));
}

void tiers_strip_clear(struct reducer_tiers *tiers, struct tiers_strip *strip)
{
	if (strip->count)
		tiers_strip_drop(tiers, strip, strip->count);
	free(strip->reference);
	*strip = (struct tiers_strip){0};
}

/* The last block that begins at or before the bin, or -1. Mostly it is the last one. */
static int64_t find_block(const struct tiers_strip *strip, int64_t bin)
{
	int64_t low = 0, high = strip->count;
	if (high > 0 && strip->reference[high - 1].first <= bin)
		return high - 1;
	while (low < high) {
		int64_t middle = low + (high - low) / 2;
		if (strip->reference[middle].first <= bin)
			low = middle + 1;
		else
			high = middle;
	}
	return low - 1;
}

/* The last entry that begins at or before `at`, or -1. */
static int find_entry(const struct tiers_block *block, int64_t at)
{
	int i = (int)block->used - 1;
	while (i >= 0 && block->entry[i].at > at)
		i--;
	return i;
}

static void update_end(struct tiers_reference *reference)
{
	const struct tiers_block *block = reference->block;
	reference->end = block->first;
	if (block->used)
		reference->end +=
			(int64_t)block->entry[block->used - 1].at + block->entry[block->used - 1].run;
}

/* Moves the upper half of a full block into a new one behind it. */
static int divide(struct reducer_tiers *tiers, struct tiers_strip *strip, uint32_t index)
{
	struct tiers_block *block = strip->reference[index].block;
	uint32_t half = block->used / 2;
	uint32_t shift = block->entry[half].at;
	int rc = new_block(tiers, strip, index + 1, block->first + shift);
	if (rc < 0)
		return rc;
	struct tiers_block *upper = strip->reference[index + 1].block;
	upper->used = block->used - half;
	memcpy(upper->entry, block->entry + half, upper->used * sizeof(upper->entry[0]));
	for (uint32_t i = 0; i < upper->used; i++)
		upper->entry[i].at -= shift;
	memset(block->entry + half, 0, upper->used * sizeof(block->entry[0]));
	block->used = half;
	update_end(&strip->reference[index]);
	update_end(&strip->reference[index + 1]);
	return 0;
}

static void insert_entry(struct tiers_reference *reference, uint32_t index, const struct tiers_entry *entry)
{
	struct tiers_block *block = reference->block;
	memmove(block->entry + index + 1, block->entry + index, (block->used - index) * sizeof(*entry));
	block->entry[index] = *entry;
	block->used++;
	update_end(reference);
}

/* An entry of nothing but busy time joins the equal one before it. */
static void join(struct tiers_reference *reference, uint32_t index)
{
	struct tiers_block *block = reference->block;
	if (index == 0)
		return;
	struct tiers_entry *left = &block->entry[index - 1], *right = left + 1;
	if (left->count || right->count || left->at + left->run != right->at ||
	    left->span.busy_ns != right->span.busy_ns ||
	    left->span.track_busy_ns != right->span.track_busy_ns || right->run > UINT32_MAX - left->run)
		return;
	left->run += right->run;
	block->used--;
	memmove(right, right + 1, (block->used - index) * sizeof(*right));
	memset(&block->entry[block->used], 0, sizeof(*right));
}

/* What one step works on. */
struct step {
	struct reducer_tiers *tiers;
	struct tiers_strip *strip;
	uint8_t kind;
	int64_t width_ns;
	int64_t bin, bins;
	const struct reducer_bin *delta;
};

/* All steps return the bins done, 0 if something was only made ready for the next try, or -errno. */
static int64_t cut_run(const struct step *step, uint32_t index, uint32_t j, uint32_t offset)
{
	struct tiers_reference *reference = &step->strip->reference[index];
	struct tiers_entry right = reference->block->entry[j];
	if (reference->block->used == TIERS_BLOCK_ENTRIES)
		return divide(step->tiers, step->strip, index);
	right.at += offset;
	right.run -= offset;
	reference->block->entry[j].run = offset;
	insert_entry(reference, j + 1, &right);
	return 0;
}

static int64_t add_to_entry(const struct step *step, uint32_t index, uint32_t j)
{
	struct tiers_reference *reference = &step->strip->reference[index];
	struct tiers_entry *entry = &reference->block->entry[j];
	int64_t offset = step->bin - reference->first - entry->at;
	if (offset > 0)
		return cut_run(step, index, j, (uint32_t)offset);
	if (entry->run > step->bins)
		return cut_run(step, index, j, (uint32_t)step->bins);
	int64_t done = entry->run;
	struct reducer_bin bin;
	tiers_entry_load(entry, step->kind, &bin);
	reducer_bin_fold(&bin, step->delta, step->kind);
	entry_store(entry, step->kind, &bin, step->width_ns);
	if (step->delta->count == 0)
		join(reference, j);
	return done;
}

static int64_t add_to_gap(const struct step *step, uint32_t index, uint32_t j)
{
	struct tiers_strip *strip = step->strip;
	struct tiers_reference *reference = &strip->reference[index];
	struct tiers_block *block = reference->block;
	int64_t bins = step->bins;
	if (block->used == TIERS_BLOCK_ENTRIES) {
		if (j == block->used && index + 1 == strip->count)
			return new_block(step->tiers, strip, index + 1, step->bin);
		return divide(step->tiers, strip, index);
	}
	if (j < block->used)
		bins = at_most(bins, block->first + block->entry[j].at - step->bin);
	else if (index + 1 < strip->count)
		bins = at_most(bins, strip->reference[index + 1].first - step->bin);
	struct tiers_entry entry = {.at = (uint32_t)(step->bin - block->first), .run = (uint32_t)bins};
	entry_store(&entry, step->kind, step->delta, step->width_ns);
	insert_entry(reference, j, &entry);
	if (step->delta->count == 0)
		join(reference, j);
	return bins;
}

/* The bin lies before all blocks: the first one begins earlier from now on, or gets one before it. */
static int64_t extend_down(const struct step *step)
{
	struct tiers_reference *reference = step->strip->reference;
	if (step->strip->count == 0)
		return new_block(step->tiers, step->strip, 0, step->bin);
	int rc = load_dirty(step->tiers, reference);
	if (rc < 0)
		return rc;
	if (reference->block->used == TIERS_BLOCK_ENTRIES)
		return new_block(step->tiers, step->strip, 0, step->bin);
	uint32_t shift = (uint32_t)(reference->first - step->bin);
	for (uint32_t i = 0; i < reference->block->used; i++)
		reference->block->entry[i].at += shift;
	reference->first = reference->block->first = step->bin;
	return 0;
}

static int64_t add_some(const struct step *step)
{
	int64_t index = find_block(step->strip, step->bin);
	if (index < 0)
		return extend_down(step);
	struct tiers_reference *reference = &step->strip->reference[index];
	int rc = load_dirty(step->tiers, reference);
	if (rc < 0)
		return rc;
	int64_t at = step->bin - reference->first;
	int j = find_entry(reference->block, at);
	if (j >= 0 && at - reference->block->entry[j].at < reference->block->entry[j].run)
		return add_to_entry(step, (uint32_t)index, (uint32_t)j);
	return add_to_gap(step, (uint32_t)index, (uint32_t)(j + 1));
}

int tiers_strip_add(struct reducer_tiers *tiers, struct tiers_row *row, unsigned tier, int64_t bin,
		    int64_t bins, const struct reducer_bin *delta)
{
	struct step step = {.tiers = tiers,
			    .strip = &row->strip[tier],
			    .kind = row->kind,
			    .width_ns = tiers->options.tier[tier].width_ns,
			    .bin = bin,
			    .bins = bins,
			    .delta = delta};
	int64_t below = tiers->floor[tier] - bin;
	if (below >= bins)
		return 0;
	if (below > 0) {
		step.bin += below;
		step.bins -= below;
	}
	while (step.bins > 0) {
		/* Making room may take this very strip away, so nothing is remembered over it. */
		tiers_room_make(tiers);
		if (tier < row->finest)
			return 0;
		int64_t done = add_some(&step);
		if (done < 0)
			return (int)done;
		step.bin += done;
		step.bins -= done;
	}
	return 0;
}

int tiers_row_flush(struct reducer_tiers *tiers, struct tiers_row *row)
{
	if (!row->has_hot)
		return 0;
	row->has_hot = false;
	int64_t finest_ns = tiers->options.tier[0].width_ns;
	for (unsigned tier = 0; tier < tiers->options.tiers; tier++) {
		int64_t times = tiers->options.tier[tier].width_ns / finest_ns;
		int rc = tiers_strip_add(tiers, row, tier, row->hot_bin / times, 1, &row->hot);
		if (rc < 0)
			return rc;
	}
	return 0;
}
