/* SPDX-License-Identifier: Apache-2.0 */
#include "device_busy_object.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "ns.h"

enum { BINS_MAX = 1 << 20 };

int device_busy_new(struct device_busy **ret_busy)
{
	struct device_busy *busy = calloc(1, sizeof(*busy));
	if (!busy)
		return -ENOMEM;
	busy->last_ns = INT64_MIN;
	*ret_busy = busy;
	return 0;
}

void device_busy_free(struct device_busy *busy)
{
	if (!busy)
		return;
	for (unsigned i = 0; i < busy->n_devices; i++) {
		free(busy->device[i].spans.piece);
		free(busy->device[i].percent);
	}
	free(busy->groups.named);
	free(busy->tracks.named);
	free(busy->waits.piece);
	free(busy->steps);
	free(busy->wait);
	free(busy);
}

int device_busy_step(struct device_busy *busy, uint32_t series, int64_t start_ns, int64_t end_ns,
		     int64_t step)
{
	if (busy->n_steps == busy->steps_room) {
		size_t room = busy->steps_room ? 2 * busy->steps_room : 256;
		struct device_step *larger = realloc(busy->steps, room * sizeof(*larger));
		if (!larger)
			return -ENOMEM;
		busy->steps = larger;
		busy->steps_room = room;
	}
	busy->steps[busy->n_steps++] = (struct device_step){.series = series,
							    .start_ns = device_busy_limited(start_ns),
							    .end_ns = device_busy_limited(end_ns),
							    .step = step};
	return 0;
}

/* ---- bins ---- */

static int by_start(const void *a_, const void *b_)
{
	const struct device_piece *a = a_, *b = b_;
	return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

static int by_length(const void *a_, const void *b_)
{
	const struct device_step *a = a_, *b = b_;
	int64_t a_ns = ns_sub(a->end_ns, a->start_ns), b_ns = ns_sub(b->end_ns, b->start_ns);
	int a_step = a->step != INT64_MIN, b_step = b->step != INT64_MIN;
	if (a_step != b_step)
		return a_step - b_step;
	return a_ns < b_ns ? -1 : a_ns > b_ns;
}

static int by_begin(const void *a_, const void *b_)
{
	const struct device_step *a = a_, *b = b_;
	return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

static void sort(struct device_pieces *pieces)
{
	if (pieces->count)
		qsort(pieces->piece, pieces->count, sizeof(*pieces->piece), by_start);
}

/* Where the bins lie; 0 of them without devices. */
static void lay_out(struct device_busy *busy)
{
	busy->from_ns = INT64_MAX;
	for (unsigned i = 0; i < busy->n_devices; i++) {
		struct device_pieces *spans = &busy->device[i].spans;
		sort(spans);
		if (spans->count && spans->piece[0].start_ns < busy->from_ns)
			busy->from_ns = spans->piece[0].start_ns;
	}
	if (busy->from_ns == INT64_MAX)
		return;
	busy->bin_ns = BIN_MAX_NS;
	if (busy->n_steps) {
		/* Phases stand before all steps. */
		size_t phases = 0;
		qsort(busy->steps, busy->n_steps, sizeof(*busy->steps), by_length);
		while (phases < busy->n_steps && busy->steps[phases].step == INT64_MIN)
			phases++;
		if (phases < busy->n_steps) {
			const struct device_step *median =
				&busy->steps[phases + (busy->n_steps - phases) / 2];
			busy->bin_ns = ns_sub(median->end_ns, median->start_ns) / 3;
		}
		qsort(busy->steps, busy->n_steps, sizeof(*busy->steps), by_begin);
	}
	busy->bin_ns = busy->bin_ns < BIN_MIN_NS   ? BIN_MIN_NS
		       : busy->bin_ns > BIN_MAX_NS ? BIN_MAX_NS
						   : busy->bin_ns;
	while (ns_sub(busy->last_ns, busy->from_ns) / busy->bin_ns >= BINS_MAX)
		busy->bin_ns *= 2;
	busy->n_bins = (size_t)(ns_sub(busy->last_ns, busy->from_ns) / busy->bin_ns);
}

/* [start, end) within a bin. */
static int64_t overlap(const struct device_busy *busy, size_t bin, int64_t start_ns, int64_t end_ns)
{
	int64_t from_ns = busy->from_ns + (int64_t)bin * busy->bin_ns, to_ns = from_ns + busy->bin_ns;
	int64_t begin = start_ns > from_ns ? start_ns : from_ns, end = end_ns < to_ns ? end_ns : to_ns;
	return end > begin ? end - begin : 0;
}

static size_t bin_of(const struct device_busy *busy, int64_t ns)
{
	return ns <= busy->from_ns ? 0 : (size_t)((ns - busy->from_ns) / busy->bin_ns);
}

static int fill_device(const struct device_busy *busy, struct device *device)
{
	int64_t covered_ns = INT64_MIN;
	device->percent = calloc(busy->n_bins, sizeof(*device->percent));
	if (!device->percent)
		return -ENOMEM;
	for (size_t i = 0; i < device->spans.count; i++) {
		int64_t start_ns = device->spans.piece[i].start_ns, end_ns = device->spans.piece[i].end_ns;
		start_ns = start_ns > covered_ns ? start_ns : covered_ns;
		covered_ns = end_ns > covered_ns ? end_ns : covered_ns;
		for (size_t bin = bin_of(busy, start_ns); start_ns < end_ns && bin < busy->n_bins; bin++) {
			int64_t ns = overlap(busy, bin, start_ns, end_ns);
			if (!ns)
				break;
			device->percent[bin] += (float)(100.0 * (double)ns / (double)busy->bin_ns);
		}
	}
	free(device->spans.piece);
	device->spans = (struct device_pieces){0};
	return 0;
}

static int fill_waits(struct device_busy *busy)
{
	busy->wait = calloc(busy->n_bins, sizeof(*busy->wait));
	if (!busy->wait)
		return -ENOMEM;
	sort(&busy->waits);
	for (size_t i = 0; i < busy->waits.count; i++) {
		const struct device_piece *wait = &busy->waits.piece[i];
		for (size_t bin = bin_of(busy, wait->start_ns); bin < busy->n_bins; bin++) {
			int64_t ns = overlap(busy, bin, wait->start_ns, wait->end_ns);
			if (2 * ns >= busy->bin_ns)
				busy->wait[bin] = (uint16_t)(wait->what + 1);
			else if (wait->end_ns <= busy->from_ns + (int64_t)(bin + 1) * busy->bin_ns)
				break;
		}
	}
	return 0;
}

int device_busy_series(struct device_busy *busy, struct triggers_engine *engine)
{
	lay_out(busy);
	if (!busy->n_bins)
		return 0;
	int result = fill_waits(busy);
	for (unsigned i = 0; i < busy->n_devices && result == 0; i++) {
		struct device *device = &busy->device[i];
		char name[TRIGGERS_NAME_MAX];
		snprintf(name, sizeof(name), "device:%lld:busy", (long long)device->number);
		struct triggers_series_key key = {.role = TRIGGERS_COUNTER,
						  .rank = UINT32_MAX,
						  .track = (uint64_t)1 << 32 | i,
						  .name = name,
						  .alarms = 1};
		result = fill_device(busy, device);
		device->series = triggers_engine_series(engine, &key);
	}
	return result;
}

/* ---- telling ---- */

struct device_busy_next device_busy_next(struct device_busy *busy, int64_t now_ns)
{
	struct device_busy_next next = {.kind = DEVICE_BUSY_NONE};
	int64_t bin_end_ns = busy->next_bin < busy->n_bins
				     ? busy->from_ns + (int64_t)(busy->next_bin + 1) * busy->bin_ns
				     : INT64_MAX;
	const struct device_step *step =
		busy->n_bins && busy->next_step < busy->n_steps ? &busy->steps[busy->next_step] : NULL;
	/* Not at now_ns: the step before, which ends then, is told of first. */
	if (step && step->start_ns < now_ns && step->start_ns <= bin_end_ns) {
		busy->next_step++;
		next = (struct device_busy_next){.kind = DEVICE_BUSY_OPEN,
						 .series = step->series,
						 .at_ns = step->start_ns,
						 .step = step->step == INT64_MIN ? -1 : step->step};
	} else if (busy->next_bin < busy->n_bins && bin_end_ns <= now_ns) {
		const struct device *device = &busy->device[busy->next_device];
		uint16_t wait = busy->wait[busy->next_bin];
		next = (struct device_busy_next){
			.kind = DEVICE_BUSY_SAMPLE,
			.series = device->series,
			.at_ns = bin_end_ns,
			.sample = {.start_ns = bin_end_ns,
				   .value = (double)device->percent[busy->next_bin],
				   .step = -1,
				   .sample = -1,
				   .note = wait ? busy->name[wait - 1] : NULL},
		};
		busy->next_device = (busy->next_device + 1) % busy->n_devices;
		busy->next_bin += busy->next_device == 0;
	}
	return next;
}
