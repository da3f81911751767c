/* SPDX-License-Identifier: Apache-2.0 */
/* Bins of a row at any resolution that is a multiple of a tier's. */
#include "tiers_state.h"

#include <errno.h>
#include <string.h>

/* What is asked, in bins of the tier that is read. */
struct request {
	int64_t base;     /* where the first answered bin begins */
	int64_t from, to; /* bins [from, to): those within the tier's reach */
	int64_t times;    /* tier bins an answered bin */
	uint8_t kind;
	struct reducer_bin *bins;
};

static int coarsest_dividing(const struct reducer_tiers *tiers, int64_t width_ns)
{
	for (int tier = (int)tiers->options.tiers - 1; tier >= 0; tier--)
		if (width_ns % tiers->options.tier[tier].width_ns == 0)
			return tier;
	return -1;
}

static void add_entry(const struct request *request, const struct tiers_entry *entry, int64_t bin)
{
	struct reducer_bin part;
	int64_t end = bin + entry->run;
	if (bin < request->from)
		bin = request->from;
	if (end > request->to)
		end = request->to;
	tiers_entry_load(entry, request->kind, &part);
	for (; bin < end; bin++)
		reducer_bin_fold(&request->bins[(bin - request->base) / request->times], &part,
				 request->kind);
}

static int read_strip(struct reducer_tiers *tiers, const struct tiers_strip *strip,
		      const struct request *request)
{
	struct tiers_block room;
	for (uint32_t i = 0; i < strip->count && strip->reference[i].first < request->to; i++) {
		const struct tiers_block *block;
		if (strip->reference[i].end <= request->from)
			continue;
		int rc = tiers_strip_peek(tiers, &strip->reference[i], &room, &block);
		if (rc == -EBADMSG && !tiers->read_only) {
			tiers->stats.damaged_blocks++;
			continue;
		}
		if (rc < 0)
			return rc == -EBADMSG ? -EAGAIN : rc;
		for (uint32_t j = 0; j < block->used; j++)
			add_entry(request, &block->entry[j], block->first + block->entry[j].at);
	}
	return 0;
}

int reducer_tiers_read(struct reducer_tiers *tiers, uint32_t index, int64_t from_ns, int64_t width_ns,
		       size_t count, struct reducer_bin *ret_bins)
{
	if (index >= tiers->rows || from_ns < 0 || width_ns < 1 ||
	    count > (size_t)(INT64_MAX - from_ns) / (size_t)width_ns)
		return -EINVAL;
	int tier = coarsest_dividing(tiers, width_ns);
	if (tier < 0)
		return -EINVAL;
	struct tiers_row *row = tiers->row[index];
	int rc = tiers->read_only ? 0 : tiers_row_flush(tiers, row);
	if (rc < 0)
		return tiers->broken = rc;
	struct request request = {
		.times = width_ns / tiers->options.tier[tier].width_ns, .kind = row->kind, .bins = ret_bins};
	request.base = from_ns / width_ns * request.times;
	request.from = request.base > tiers->floor[tier] ? request.base : tiers->floor[tier];
	request.to = request.base + (int64_t)count * request.times;
	memset(ret_bins, 0, count * sizeof(*ret_bins));
	rc = read_strip(tiers, &row->strip[tier], &request);
	if (rc < 0)
		return rc;
	return tier < row->finest || ((uint32_t)tier < row->gap_tiers && from_ns < row->gap_until_ns);
}
