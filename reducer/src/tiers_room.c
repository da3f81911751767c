/* SPDX-License-Identifier: Apache-2.0 */
/* Who gives up what when the file is full, and what is too old. */
#include "tiers_state.h"

void tiers_room_set_now(struct reducer_tiers *tiers, int64_t now_ns)
{
	if (now_ns <= tiers->stats.now_ns)
		return;
	tiers->stats.now_ns = now_ns;
	for (unsigned i = 0; i < tiers->options.tiers; i++)
		tiers->floor[i] = now_ns / tiers->options.tier[i].width_ns - tiers->options.tier[i].bins + 1;
}

void tiers_room_expire(struct reducer_tiers *tiers)
{
	for (uint32_t r = 0; r < tiers->rows; r++) {
		for (unsigned tier = 0; tier < tiers->options.tiers; tier++) {
			struct tiers_strip *strip = &tiers->row[r]->strip[tier];
			uint32_t old = 0;
			while (old < strip->count && strip->reference[old].end <= tiers->floor[tier])
				old++;
			if (old)
				tiers_strip_drop(tiers, strip, old);
		}
	}
}

static bool less_busy(const struct tiers_row *a, const struct tiers_row *b)
{
	return a->busy_ns != b->busy_ns ? a->busy_ns < b->busy_ns : a->events < b->events;
}

static void note_gap(struct tiers_row *row, unsigned tiers_with_gap, int64_t until_ns)
{
	if (row->gap_tiers < tiers_with_gap)
		row->gap_tiers = tiers_with_gap;
	if (row->gap_until_ns < until_ns)
		row->gap_until_ns = until_ns;
}

static bool coarsen_least_busy(struct reducer_tiers *tiers, unsigned tier)
{
	struct tiers_row *least = NULL;
	for (uint32_t i = 0; i < tiers->rows; i++) {
		struct tiers_row *row = tiers->row[i];
		if (row->strip[tier].count && (!least || less_busy(row, least)))
			least = row;
	}
	if (!least)
		return false;
	tiers_strip_clear(tiers, &least->strip[tier]);
	least->finest = (uint8_t)(tier + 1);
	tiers->stats.coarsened++;
	return true;
}

static bool drop_oldest(struct reducer_tiers *tiers)
{
	unsigned tier = tiers->options.tiers - 1;
	struct tiers_row *oldest = NULL;
	for (uint32_t i = 0; i < tiers->rows; i++) {
		struct tiers_row *row = tiers->row[i];
		if (row->strip[tier].count &&
		    (!oldest || row->strip[tier].reference[0].end < oldest->strip[tier].reference[0].end))
			oldest = row;
	}
	if (!oldest)
		return false;
	struct tiers_strip *strip = &oldest->strip[tier];
	note_gap(oldest, tiers->options.tiers, strip->reference[0].end * tiers->options.tier[tier].width_ns);
	tiers->stats.dropped_bins += (uint64_t)(strip->reference[0].end - strip->reference[0].first);
	tiers_strip_drop(tiers, strip, 1);
	return true;
}

static bool coarsen(struct reducer_tiers *tiers)
{
	for (unsigned tier = 0; tier + 1 < tiers->options.tiers; tier++)
		if (coarsen_least_busy(tiers, tier))
			return true;
	return drop_oldest(tiers);
}

/* An eighth stays free: a commit writes changed blocks beside the committed ones. */
static uint32_t blocks_max(const struct reducer_tiers *tiers)
{
	return tiers->pages - tiers->pages / 8;
}

void tiers_room_make(struct reducer_tiers *tiers)
{
	while (tiers->blocks + 2 > blocks_max(tiers) && coarsen(tiers))
		;
}

static uint32_t pages_wanted(const struct reducer_tiers *tiers)
{
	return tiers->blocks + tiers->kept;
}

void tiers_room_make_for_commit(struct reducer_tiers *tiers)
{
	while (pages_wanted(tiers) > tiers->pages && coarsen(tiers))
		;
}

bool reducer_tiers_wants_commit(const struct reducer_tiers *tiers)
{
	return tiers->dirty > TIERS_DIRTY_MAX ||
	       (tiers->kept > 0 && pages_wanted(tiers) > tiers->pages - tiers->pages / 16);
}

void tiers_room_refine(struct reducer_tiers *tiers)
{
	if (tiers->blocks >= tiers->pages / 2)
		return;
	for (uint32_t i = 0; i < tiers->rows; i++) {
		struct tiers_row *row = tiers->row[i];
		if (row->finest)
			note_gap(row, row->finest, tiers->stats.now_ns + REDUCER_TIERS_AHEAD_NS);
		row->finest = 0;
	}
}

uint32_t tiers_room_take_page(struct reducer_tiers *tiers)
{
	for (uint32_t i = 0; i < tiers->pages; i++) {
		uint32_t page = tiers->next_page;
		tiers->next_page = page + 1 < tiers->pages ? page + 1 : 0;
		if (tiers->page[page] == TIERS_PAGE_FREE) {
			tiers->page[page] = TIERS_PAGE_LIVE;
			return page;
		}
	}
	return TIERS_PAGE_NONE;
}
