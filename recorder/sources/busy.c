/* SPDX-License-Identifier: Apache-2.0 */
#include "busy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cover.h"
#include "ns.h"
#include "plain_text.h"
#include "series.h"

enum { KNOWN_FIRST = 256, NOT_FOLLOWED = 0 };
#define NO_KEY UINT64_MAX /* no track has 32 bits */

/* What became of a (source, track): open addressing, few of them, each looked up once a run of spans. */
struct known {
	uint32_t source, track;
	uint16_t followed; /* index + 1 */
	bool used;
};

struct followed {
	uint32_t source, track, series;
	bool is_stream, is_used;
	bool has_clock;           /* streams: whose steps are its own is known */
	uint32_t clock;           /* that track */
	struct busy_step waiting; /* streams: the step that is told with the next one; number -1 = none */
	struct cover all, waits;
};

struct busy {
	struct triggers_engine *engine;
	struct known *known;
	uint32_t room, used;
	uint64_t last_key;     /* of the last look-up */
	struct followed *last; /* and what it gave */
	uint32_t count;
	struct followed *followed[BUSY_FOLLOWED_MAX];
};

int busy_new(struct triggers_engine *engine, struct busy **ret_busy)
{
	struct busy *busy = calloc(1, sizeof(*busy));
	if (!busy)
		return -ENOMEM;
	busy->engine = engine;
	busy->last_key = NO_KEY;
	busy->room = KNOWN_FIRST;
	busy->known = calloc(busy->room, sizeof(*busy->known));
	if (!busy->known) {
		free(busy);
		return -ENOMEM;
	}
	*ret_busy = busy;
	return 0;
}

void busy_free(struct busy *busy)
{
	if (!busy)
		return;
	for (uint32_t i = 0; i < busy->count; i++)
		free(busy->followed[i]);
	free(busy->known);
	free(busy);
}

/* ---- tracks ---- */

static struct known *known_place(struct known *table, uint32_t room, uint32_t source, uint32_t track)
{
	uint64_t hash = ((uint64_t)source << 32 | track) * 0x9e3779b97f4a7c15u;
	uint32_t at = (uint32_t)(hash >> 32) & (room - 1);
	while (table[at].used && (table[at].track != track || table[at].source != source))
		at = (at + 1) & (room - 1);
	return &table[at];
}

/* All that are not of source `without` into a table of `room`. */
static int known_rebuild(struct busy *busy, uint32_t room, bool drops, uint32_t without)
{
	struct known *table = calloc(room, sizeof(*table));
	if (!table)
		return -ENOMEM;
	busy->used = 0;
	for (uint32_t i = 0; i < busy->room; i++) {
		const struct known *known = &busy->known[i];
		if (!known->used || (drops && known->source == without))
			continue;
		*known_place(table, room, known->source, known->track) = *known;
		busy->used++;
	}
	free(busy->known);
	busy->known = table;
	busy->room = room;
	return 0;
}

/* NULL: there is no room. */
static struct known *known_take(struct busy *busy, uint32_t source, uint32_t track)
{
	struct known *known = known_place(busy->known, busy->room, source, track);
	if (known->used)
		return known;
	if (2 * busy->used >= busy->room) {
		if (busy->room == BUSY_KNOWN_MAX || known_rebuild(busy, 2 * busy->room, false, 0) < 0)
			return NULL;
		known = known_place(busy->known, busy->room, source, track);
	}
	*known = (struct known){.source = source, .track = track, .used = true};
	busy->used++;
	return known;
}

static size_t track_name(const struct series_source *source, uint32_t track, const char *before,
			 char text[TRIGGERS_NAME_MAX])
{
	const char *name = "";
	size_t bytes = 0, used = strlen(before);
	memcpy(text, before, used + 1);
	if (source->track && source->track(source->context, track, &name, &bytes) == 0)
		plain_text(text + used, TRIGGERS_NAME_MAX - used, name, bytes);
	return used;
}

/* "worker 12" and "worker 3" are alike: "worker #". */
static void without_numbers(char *text)
{
	char *to = text;
	for (const char *at = text; *at; at++) {
		bool is_digit = *at >= '0' && *at <= '9';
		if (!is_digit)
			*to++ = *at;
		else if (to == text || to[-1] != '#')
			*to++ = '#';
	}
	*to = 0;
}

static uint32_t make_series(struct busy *busy, const struct series_source *source, uint32_t track,
			    bool is_stream)
{
	char name[TRIGGERS_NAME_MAX], group[TRIGGERS_NAME_MAX];
	track_name(source, track, "busy:", name);
	size_t used = track_name(source, track, is_stream ? "stream " : "steps ", group);
	if (!is_stream)
		without_numbers(group + used);
	const struct triggers_series_key key = {.role = TRIGGERS_BUSY,
						.source = source->source,
						.rank = source->rank,
						.job = source->job,
						.track = track,
						.name = name,
						.group = group,
						.alarms = 1};
	return triggers_engine_series(busy->engine, &key);
}

static struct followed *follow(struct busy *busy, const struct series_source *source, struct known *known,
			       bool is_stream)
{
	uint32_t at = 0;
	while (at < busy->count && busy->followed[at]->is_used)
		at++;
	if (at == BUSY_FOLLOWED_MAX)
		return NULL;
	if (at == busy->count) {
		busy->followed[at] = malloc(sizeof(*busy->followed[at]));
		if (!busy->followed[at])
			return NULL;
		busy->count++;
	}
	struct followed *followed = busy->followed[at];
	*followed = (struct followed){.source = known->source,
				      .track = known->track,
				      .series = make_series(busy, source, known->track, is_stream),
				      .is_stream = is_stream,
				      .is_used = true,
				      .waiting.number = -1};
	known->followed = (uint16_t)(at + 1);
	busy->last_key = NO_KEY;
	return followed;
}

/* What a track is followed by, NULL where it is not. */
static struct followed *look_up(struct busy *busy, const struct series_source *source, uint32_t track)
{
	uint64_t key = (uint64_t)source->source << 32 | track;
	if (busy->last_key == key)
		return busy->last;
	struct known *known = known_place(busy->known, busy->room, source->source, track);
	struct followed *followed = NULL;
	if (!known->used) {
		known = known_take(busy, source->source, track);
		if (known && source->is_stream && source->is_stream(source->context, track))
			followed = follow(busy, source, known, true);
	} else if (known->followed != NOT_FOLLOWED) {
		followed = busy->followed[known->followed - 1];
	}
	busy->last_key = key;
	busy->last = followed;
	return followed;
}

/* ---- work ---- */

void busy_span(struct busy *busy, const struct series_source *source, uint32_t track, bool waits,
	       int64_t start_ns, int64_t end_ns)
{
	struct followed *followed = look_up(busy, source, track);
	if (!followed)
		return;
	cover_add(&followed->all, start_ns, end_ns);
	if (waits)
		cover_add(&followed->waits, start_ns, end_ns);
}

static void tell(struct busy *busy, struct followed *followed, const struct busy_step *step)
{
	int64_t own_ns = ns_sub(cover_within(&followed->all, step->start_ns, step->end_ns),
				cover_within(&followed->waits, step->start_ns, step->end_ns));
	cover_cut(&followed->all, step->end_ns);
	cover_cut(&followed->waits, step->end_ns);
	bool is_train = !step->phase || !*step->phase || strcmp(step->phase, "train") == 0;
	if (own_ns <= 0 || step->number < 0 || !is_train)
		return;
	const struct triggers_sample sample = {.start_ns = step->start_ns,
					       .duration_ns = own_ns,
					       .value = (double)own_ns,
					       .step = step->number,
					       .sample = -1};
	triggers_engine_observe(busy->engine, followed->series, &sample);
}

/* Streams run behind the thread that launches their work: a step is told once the next one is over. */
static void tell_stream(struct busy *busy, struct followed *followed, const struct busy_step *step)
{
	if (!followed->has_clock) {
		followed->has_clock = true;
		followed->clock = step->track;
	}
	if (followed->clock != step->track)
		return;
	if (followed->waiting.number >= 0)
		tell(busy, followed, &followed->waiting);
	followed->waiting = *step;
	/* Its text is the caller's: what is not trained is passed over now. */
	if (step->phase && *step->phase && strcmp(step->phase, "train") != 0)
		followed->waiting.number = -1;
	followed->waiting.phase = NULL;
}

void busy_step(struct busy *busy, const struct series_source *source, const struct busy_step *step)
{
	struct followed *own = look_up(busy, source, step->track);
	if (!own || own->is_stream) {
		/* From its next step on: of this one nothing was noted. */
		struct known *known = known_take(busy, source->source, step->track);
		if (known && known->followed == NOT_FOLLOWED)
			follow(busy, source, known, false);
	} else {
		tell(busy, own, step);
	}
	for (uint32_t i = 0; i < busy->count; i++) {
		struct followed *followed = busy->followed[i];
		if (followed->is_used && followed->is_stream && followed->source == source->source)
			tell_stream(busy, followed, step);
	}
}

void busy_source_end(struct busy *busy, uint32_t source)
{
	for (uint32_t i = 0; i < busy->count; i++)
		if (busy->followed[i]->source == source)
			busy->followed[i]->is_used = false;
	/* Out of memory the entries stay, and lead to what is not used: none is. */
	if (known_rebuild(busy, busy->room, true, source) < 0)
		for (uint32_t i = 0; i < busy->room; i++)
			if (busy->known[i].source == source)
				busy->known[i].followed = NOT_FOLLOWED;
	busy->last_key = NO_KEY;
}

/* ---- over a restart ---- */

/* Followed by the pieces of both covers. */
struct saved_track {
	uint32_t source, track, series;
	uint32_t is_stream, has_clock, clock;
	uint32_t n_all, n_waits;
	uint32_t step_track, zero;
	int64_t step_start_ns, step_end_ns, step_number;
};

void busy_save(const struct busy *busy, struct state_writer *writer)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < busy->count; i++)
		count += busy->followed[i]->is_used;
	state_put(writer, &count, sizeof(count));
	for (uint32_t i = 0; i < busy->count; i++) {
		const struct followed *followed = busy->followed[i];
		if (!followed->is_used)
			continue;
		const struct saved_track saved = {
			.source = followed->source,
			.track = followed->track,
			.series = followed->series,
			.is_stream = followed->is_stream,
			.has_clock = followed->has_clock,
			.clock = followed->clock,
			.n_all = followed->all.count,
			.n_waits = followed->waits.count,
			.step_track = followed->waiting.track,
			.step_start_ns = followed->waiting.start_ns,
			.step_end_ns = followed->waiting.end_ns,
			.step_number = followed->waiting.number,
		};
		state_put(writer, &saved, sizeof(saved));
		state_put(writer, followed->all.piece, saved.n_all * sizeof(followed->all.piece[0]));
		state_put(writer, followed->waits.piece, saved.n_waits * sizeof(followed->waits.piece[0]));
	}
}

static void restore_cover(struct cover *cover, uint32_t count, struct state_reader *reader)
{
	int64_t before_ns = -COVER_NS_MAX;
	if (count > COVER_PIECES)
		reader->failed = true;
	if (reader->failed || !state_take(reader, cover->piece, count * sizeof(cover->piece[0])))
		return;
	for (uint32_t i = 0; i < count; i++) {
		const struct cover_piece *piece = &cover->piece[i];
		if (piece->start_ns < before_ns || piece->end_ns < piece->start_ns ||
		    piece->end_ns > COVER_NS_MAX || piece->covered_ns < 0 ||
		    piece->covered_ns > piece->end_ns - piece->start_ns)
			reader->failed = true;
		before_ns = piece->end_ns;
	}
	cover->count = reader->failed ? 0 : count;
}

static void restore_track(struct busy *busy, struct state_reader *reader)
{
	struct saved_track saved;
	struct triggers_belief belief;
	struct cover all = {0}, waits = {0};
	if (!state_take(reader, &saved, sizeof(saved)))
		return;
	restore_cover(&all, saved.n_all, reader);
	restore_cover(&waits, saved.n_waits, reader);
	if (reader->failed || triggers_engine_belief(busy->engine, saved.series, &belief) < 0 ||
	    belief.key.role != TRIGGERS_BUSY || belief.key.source != saved.source ||
	    belief.key.track != saved.track)
		return;
	struct known *known = known_take(busy, saved.source, saved.track);
	if (!known || known->followed != NOT_FOLLOWED || busy->count == BUSY_FOLLOWED_MAX)
		return;
	struct followed *followed = malloc(sizeof(*followed));
	if (!followed)
		return;
	*followed = (struct followed){
		.source = saved.source,
		.track = saved.track,
		.series = saved.series,
		.is_stream = saved.is_stream != 0,
		.is_used = true,
		.has_clock = saved.has_clock != 0,
		.clock = saved.clock,
		.waiting = {saved.step_track, saved.step_start_ns, saved.step_end_ns, saved.step_number,
			    NULL},
		.all = all,
		.waits = waits,
	};
	busy->followed[busy->count++] = followed;
	known->followed = (uint16_t)busy->count;
}

void busy_restore(struct busy *busy, struct state_reader *reader)
{
	uint32_t count = 0;
	state_take(reader, &count, sizeof(count));
	for (uint32_t i = 0; i < count && !reader->failed; i++)
		restore_track(busy, reader);
}
