/* SPDX-License-Identifier: Apache-2.0 */
#include "replay_past.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <reducer/tiers.h>

#include "ns.h"
#include "sources/intake.h"

enum { STEPS_MAX = 1 << 21, ROWS_MAX = 1024, TRIES = 3, EXACT = 2 };
#define LEAST_NS (INT64_C(600) * 1000000000)
/* In longer bins no steps are told apart. */
#define WIDTH_MAX_NS INT64_C(1000000000)

struct step {
	int64_t begin_ns, end_ns;
	uint32_t row;
};

/* The steps of one phase on one track. */
struct row {
	uint32_t source, track;
	char phase[TRIGGERS_NAME_MAX];
};

struct replay_past {
	int64_t t0_ns, first_ns;
	struct row row[ROWS_MAX];
	uint32_t n_rows;
	char source[ROWS_MAX][64]; /* each source once */
	uint32_t n_sources;
	struct step *step;
	size_t count, room;
};

static int append(struct replay_past *past, uint32_t row, int64_t end_ns, double length)
{
	if (!(length >= 0) || length > 1e18 || end_ns >= past->t0_ns)
		return 0;
	if (past->count == past->room) {
		size_t room = past->room ? 2 * past->room : 4096;
		struct step *larger = room > STEPS_MAX ? NULL : realloc(past->step, room * sizeof(*larger));
		if (!larger)
			return -ENODATA;
		past->step = larger;
		past->room = room;
	}
	int64_t begin_ns = ns_sub(end_ns, (int64_t)length);
	past->step[past->count++] = (struct step){.begin_ns = begin_ns, .end_ns = end_ns, .row = row};
	if (begin_ns < past->first_ns)
		past->first_ns = begin_ns;
	return 0;
}

/* The last of two is told with its time; the one before it ended where that one began, or at its bin's begin.
 */
static int take_bin(struct replay_past *past, uint32_t row, const struct reducer_bin *bin, int64_t begin_ns)
{
	int result = 0;
	if (bin->count > EXACT)
		return -ENODATA;
	if (bin->count == EXACT) {
		int64_t end_ns = ns_sub(bin->last_ns, (int64_t)bin->last);
		result = append(past, row, end_ns > begin_ns ? end_ns : begin_ns,
				bin->min + bin->max - bin->last);
	}
	if (bin->count && result == 0)
		result = append(past, row, bin->last_ns, bin->last);
	return result;
}

static uint32_t source_number(struct replay_past *past, struct reducer_text text)
{
	char source[sizeof(past->source[0])];
	uint32_t number = 0;
	snprintf(source, sizeof(source), "%.*s", (int)text.bytes, text.bytes ? text.data : "");
	while (number < past->n_sources && strcmp(past->source[number], source) != 0)
		number++;
	if (number == past->n_sources)
		memcpy(past->source[past->n_sources++], source, sizeof(source));
	return number;
}

/* "steps/<track>/<depth>/<phase>". */
static bool read_key(struct reducer_text key, struct row *row)
{
	static const char word[] = INTAKE_STEPS "/";
	char text[128];
	unsigned track, depth;
	if (key.bytes >= sizeof(text) || key.bytes < sizeof(word) ||
	    memcmp(key.data, word, sizeof(word) - 1) != 0)
		return false;
	memcpy(text, key.data, key.bytes);
	text[key.bytes] = 0;
	if (sscanf(text + sizeof(word) - 1, "%u/%u/%63[^\n]", &track, &depth, row->phase) != 3)
		return false;
	row->track = track;
	return true;
}

/* The coarsest tier that may tell steps apart and reaches back far enough: its width, 0 = none, and where it
 * begins. */
static int64_t choose_width(const struct reducer_tiers *tiers, int64_t t0_ns, int64_t *ret_from_ns)
{
	struct reducer_tiers_stats stats;
	int64_t width_ns = 0, day_ns = ns_sub(t0_ns, REPLAY_DAY_NS);
	reducer_tiers_stats(tiers, &stats);
	for (unsigned i = 0; i < stats.options.tiers && stats.options.tier[i].width_ns <= WIDTH_MAX_NS; i++) {
		const struct reducer_tier *tier = &stats.options.tier[i];
		int64_t reach_ns = ns_sub(stats.now_ns, tier->width_ns * (tier->bins - 1));
		if (ns_sub(t0_ns, LEAST_NS) < reach_ns)
			continue;
		width_ns = tier->width_ns;
		*ret_from_ns = reach_ns > day_ns ? reach_ns : day_ns;
		*ret_from_ns -= *ret_from_ns % width_ns;
	}
	return width_ns;
}

static int read_row(struct replay_past *past, struct reducer_tiers *tiers, uint32_t number, int64_t from_ns,
		    int64_t width_ns, struct reducer_bin *bins, size_t count)
{
	struct reducer_tiers_row_info info;
	struct row row;
	if (reducer_tiers_row_info(tiers, number, &info) < 0 || info.kind != REDUCER_ROW_COUNTER ||
	    !info.events || info.last_ns < from_ns || info.first_ns >= past->t0_ns ||
	    !read_key(info.key, &row))
		return 0;
	if (past->n_rows == ROWS_MAX)
		return -ENODATA;
	row.source = source_number(past, info.source);
	past->row[past->n_rows] = row;
	int result = reducer_tiers_read(tiers, number, from_ns, width_ns, count, bins);
	if (result == 1)
		return -ENODATA;
	for (size_t i = 0; i < count && result == 0; i++)
		result = take_bin(past, past->n_rows, &bins[i], from_ns + (int64_t)i * width_ns);
	past->n_rows++;
	return result;
}

static int read_rows(struct replay_past *past, struct reducer_tiers *tiers)
{
	int64_t from_ns = past->t0_ns, width_ns = choose_width(tiers, past->t0_ns, &from_ns);
	if (width_ns == 0 || from_ns >= past->t0_ns)
		return -ENODATA;
	size_t count = (size_t)((past->t0_ns - from_ns) / width_ns) + 1;
	struct reducer_bin *bins = calloc(count, sizeof(*bins));
	int result = bins ? 0 : -ENOMEM;
	past->n_rows = past->n_sources = 0;
	past->count = 0;
	past->first_ns = past->t0_ns;
	for (uint32_t row = 0; row < reducer_tiers_rows(tiers) && result == 0; row++)
		result = read_row(past, tiers, row, from_ns, width_ns, bins, count);
	free(bins);
	return result;
}

int replay_past_read(const char *store_path, int64_t t0_ns, struct replay_past **ret_past)
{
	char path[4096];
	struct reducer_tiers *tiers = NULL;
	struct replay_past *past = calloc(1, sizeof(*past));
	int result = past ? 0 : -ENOMEM;
	snprintf(path, sizeof(path), "%s/macro.tiers", store_path);
	if (result == 0)
		result = reducer_tiers_open_read(path, &tiers);
	if (result == 0) {
		past->t0_ns = t0_ns;
		result = read_rows(past, tiers);
	}
	/* The daemon may be writing. */
	for (int i = 0; i < TRIES && result == -EAGAIN; i++)
		if (reducer_tiers_refresh(tiers) >= 0)
			result = read_rows(past, tiers);
	if (result == 0 && (past->count == 0 || replay_past_length_ns(past) < LEAST_NS))
		result = -ENODATA;
	reducer_tiers_free(tiers);
	if (result < 0)
		replay_past_free(past);
	else
		*ret_past = past;
	return result;
}

void replay_past_free(struct replay_past *past)
{
	if (past)
		free(past->step);
	free(past);
}

int64_t replay_past_length_ns(const struct replay_past *past)
{
	return past->t0_ns - past->first_ns;
}

/* A step's begin or end. */
struct moment {
	int64_t at_ns;
	uint32_t step;
	bool ends;
};

static int by_time(const void *a_, const void *b_)
{
	const struct moment *a = a_, *b = b_;
	if (a->at_ns != b->at_ns)
		return a->at_ns < b->at_ns ? -1 : 1;
	if (a->ends != b->ends)
		return a->ends ? -1 : 1;
	return a->step < b->step ? -1 : a->step > b->step;
}

static struct moment *moments_of(const struct replay_past *past)
{
	struct moment *moment = calloc(2 * past->count, sizeof(*moment));
	for (size_t i = 0; moment && i < past->count; i++) {
		moment[2 * i] = (struct moment){.at_ns = past->step[i].begin_ns, .step = (uint32_t)i};
		moment[2 * i + 1] =
			(struct moment){.at_ns = past->step[i].end_ns, .step = (uint32_t)i, .ends = true};
	}
	if (moment)
		qsort(moment, 2 * past->count, sizeof(*moment), by_time);
	return moment;
}

static void feed(const struct replay_past *past, struct replay *replay, const struct moment *moment)
{
	uint32_t series[ROWS_MAX];
	for (uint32_t i = 0; i < past->n_rows; i++) {
		const struct row *row = &past->row[i];
		struct triggers_series_key key = {.role = TRIGGERS_STEP,
						  .source = row->source,
						  .rank = UINT32_MAX,
						  .job = 1,
						  .track = row->track,
						  .name = "step",
						  .alarms = 1};
		series[i] = triggers_engine_series(replay->engine, &key);
	}
	for (size_t i = 0; i < 2 * past->count && !replay_interrupted(); i++) {
		const struct step *step = &past->step[moment[i].step];
		const struct row *row = &past->row[step->row];
		replay_advance(replay, moment[i].at_ns);
		if (!moment[i].ends) {
			triggers_engine_open(replay->engine, series[step->row], step->begin_ns, -1,
					     row->phase);
			continue;
		}
		struct triggers_sample sample = {.start_ns = step->begin_ns,
						 .duration_ns = ns_sub(step->end_ns, step->begin_ns),
						 .step = -1,
						 .phase = row->phase,
						 .sample = -1};
		triggers_engine_observe(replay->engine, series[step->row], &sample);
	}
}

int replay_past_run(const struct replay_past *past, struct replay *replay, char *error, size_t error_room)
{
	struct moment *moment = moments_of(past);
	int result = moment ? replay_begin(replay, "past", error, error_room) : -ENOMEM;
	if (!moment)
		snprintf(error, error_room, "out of memory");
	if (result == 0) {
		feed(past, replay, moment);
		replay_end(replay);
	}
	free(moment);
	return result;
}
