/* SPDX-License-Identifier: Apache-2.0 */
/* Which tracks were asked for: by "group/track", by the name of the thread, by the name of the process. */
#include "reduce_inside.h"
#include "text.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

struct select {
	struct reducer_reduce *reduce;
	struct buffer text;
	struct reduce_vector called; /* hashes of the threads and processes whose names match; sorted */
};

static bool matches(struct select *s, struct reducer_text text)
{
	buffer_clear(&s->text);
	buffer_add_text(&s->text, text);
	buffer_add_byte(&s->text, '\0');
	return !s->text.failed && fnmatch(s->reduce->options.track_pattern, s->text.data, 0) == 0;
}

static bool matches_path(struct select *s, struct reducer_text group, struct reducer_text track)
{
	buffer_clear(&s->text);
	buffer_add_text(&s->text, text_unquoted(group));
	buffer_add_byte(&s->text, '/');
	buffer_add_text(&s->text, text_unquoted(track));
	buffer_add_byte(&s->text, '\0');
	return !s->text.failed && fnmatch(s->reduce->options.track_pattern, s->text.data, 0) == 0;
}

static uint64_t hash_of(struct reducer_text group, struct reducer_text track)
{
	uint64_t hash = reduce_hash(0, group.bytes ? group.data : "", group.bytes);
	return reduce_hash(hash, track.bytes ? track.data : "", track.bytes);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* Whom the names that metadata events gave ask for. There may be as many names as tracks. */
static int gather_called(struct select *s)
{
	const struct reduce_tracks *tracks = &s->reduce->tracks;
	const uint32_t *name = s->reduce->called.at;
	for (size_t i = 0; i < s->reduce->called.count; i++) {
		if (!matches(s, reduce_track_rest(tracks, name[i])))
			continue;
		uint64_t *hash = reduce_vector_add(&s->called, sizeof(*hash));
		if (!hash)
			return -ENOMEM;
		*hash = hash_of(reduce_track_group(tracks, name[i]), reduce_track_track(tracks, name[i]));
	}
	if (s->called.count)
		qsort(s->called.at, s->called.count, sizeof(uint64_t), compare);
	return 0;
}

static bool is_called(const struct select *s, struct reducer_text group, struct reducer_text track)
{
	uint64_t hash = hash_of(group, track);
	return s->called.count && bsearch(&hash, s->called.at, s->called.count, sizeof(hash), compare);
}

int reduce_select(struct reducer_reduce *r)
{
	struct select s = {.reduce = r};
	if (!r->options.track_pattern)
		return 0;
	int result = gather_called(&s);
	for (uint32_t t = 0; t < r->tracks.count && result == 0; t++) {
		struct reduce_track *track = &r->tracks.track[t];
		struct reducer_text group = reduce_track_group(&r->tracks, t), its = reduce_track_track(&r->tracks, t);
		/* Counters and async events go by the thread that each of them names. */
		if (track->class == CLASS_NOWHERE || track->class == CLASS_COUNTER || track->class == CLASS_ASYNC)
			continue;
		/* A name without a track is a process's. */
		track->shut = !matches_path(&s, group, its) && !is_called(&s, group, its) &&
			      !is_called(&s, group, (struct reducer_text){NULL, 0});
		result = s.text.failed;
	}
	result = result ? result : s.text.failed;
	buffer_free(&s.text);
	free(s.called.at);
	return result;
}

void reduce_select_events(struct reducer_reduce *r)
{
	const struct reduce_thread *thread = r->threads.at;
	for (size_t i = 0; i < r->threads.count; i++)
		if (r->tracks.track[thread[i].track].shut)
			r->col.bits[thread[i].event] |= BIT_SHUT | BIT_ELSEWHERE;
}
