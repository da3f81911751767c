/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What phases excuse, the source's own and those of the ranks that it waits for: struct triggers_phase in
 * series.h.
 */
#include "series.h"

/* An open phase in which the rank is in a step goes on around steps: nobody waits for its end. */
static int holds_others(const struct triggers_source *other, const struct triggers_phase *open)
{
	return !open->apart && !(other->open_steps && other->step_begin_ns > open->begin_ns);
}

static int interrupts(const struct triggers_phase *phase, int64_t from_ns, int64_t to_ns)
{
	return phase->begin_ns >= from_ns || (phase->end_ns < to_ns && !phase->beside);
}

int triggers_source_interrupted(const struct triggers_source *source, int64_t begin_ns, int is_track)
{
	for (uint32_t i = 0; i < source->n_open; i++)
		if (is_track ? !source->open[i].beside : source->open[i].begin_ns >= begin_ns)
			return 1;
	for (const struct triggers_source *other = source->mate; other && other != source;
	     other = other->mate)
		for (uint32_t i = 0; i < other->n_open; i++)
			if (holds_others(other, &other->open[i]))
				return 1;
	return 0;
}

/* A stretch of excused time that grows, found by looking at all phases again and again. */
struct stretch {
	int64_t from_ns, to_ns; /* what is asked for */
	int64_t begin_ns;       /* covered so far up to here */
	int64_t best_begin_ns, best_end_ns;
};

/*
 * Of all that end after what is covered, the one that begins first; of those that touch it, the one that ends
 * last.
 */
static void consider(struct stretch *stretch, const struct triggers_phase *phase)
{
	int64_t begin_ns = phase->begin_ns > stretch->begin_ns ? phase->begin_ns : stretch->begin_ns;
	int64_t end_ns = phase->end_ns < stretch->to_ns ? phase->end_ns : stretch->to_ns;
	if (end_ns <= begin_ns)
		return;
	if (begin_ns < stretch->best_begin_ns ||
	    (begin_ns == stretch->best_begin_ns && end_ns > stretch->best_end_ns)) {
		stretch->best_begin_ns = begin_ns;
		stretch->best_end_ns = end_ns;
	}
}

static void consider_all(struct stretch *stretch, const struct triggers_source *source)
{
	for (uint32_t i = 0; i < source->n_open; i++)
		if (interrupts(&source->open[i], stretch->from_ns, stretch->to_ns))
			consider(stretch, &source->open[i]);
	for (uint32_t i = 0; i < triggers_source_phases_kept(source); i++)
		if (interrupts(&source->phase[i], stretch->from_ns, stretch->to_ns))
			consider(stretch, &source->phase[i]);
	for (const struct triggers_source *other = source->mate; other && other != source;
	     other = other->mate) {
		for (uint32_t i = 0; i < other->n_open; i++)
			if (holds_others(other, &other->open[i]))
				consider(stretch, &other->open[i]);
		for (uint32_t i = 0; i < triggers_source_phases_kept(other); i++)
			if (!other->phase[i].apart)
				consider(stretch, &other->phase[i]);
	}
}

int64_t triggers_source_excused(const struct triggers_source *source, int64_t from_ns, int64_t to_ns)
{
	struct stretch stretch = {.from_ns = from_ns, .to_ns = to_ns, .begin_ns = from_ns};
	int64_t excused_ns = 0;
	while (stretch.begin_ns < to_ns) {
		stretch.best_begin_ns = INT64_MAX;
		stretch.best_end_ns = INT64_MIN;
		consider_all(&stretch, source);
		if (stretch.best_begin_ns == INT64_MAX)
			break;
		excused_ns += stretch.best_end_ns - stretch.best_begin_ns;
		stretch.begin_ns = stretch.best_end_ns;
	}
	return excused_ns;
}
