/* SPDX-License-Identifier: Apache-2.0 */
/* Which tracks were asked for: by "group/track", by the name of the thread, by the name of the process. */
#include "reduce_inside.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

struct select {
	struct reducer_reduce *reduce;
	struct buffer text;
};

static bool matches(struct select *s, struct reducer_text text)
{
	buffer_clear(&s->text);
	buffer_add_text(&s->text, text);
	buffer_add_byte(&s->text, '\0');
	return !s->text.failed && fnmatch(s->reduce->options.track_pattern, s->text.data, 0) == 0;
}

static struct reducer_text unquoted(struct reducer_text text)
{
	if (text.bytes >= 2 && text.data[0] == '"')
		return (struct reducer_text){text.data + 1, text.bytes - 2};
	return text;
}

static bool same(struct reducer_text a, struct reducer_text b)
{
	return a.bytes == b.bytes && (!a.bytes || memcmp(a.data, b.data, a.bytes) == 0);
}

static bool matches_path(struct select *s, struct reducer_text group, struct reducer_text track)
{
	buffer_clear(&s->text);
	buffer_add_text(&s->text, unquoted(group));
	buffer_add_byte(&s->text, '/');
	buffer_add_text(&s->text, unquoted(track));
	buffer_add_byte(&s->text, '\0');
	return !s->text.failed && fnmatch(s->reduce->options.track_pattern, s->text.data, 0) == 0;
}

/* The names that metadata events gave: without a track they are a process's. */
static bool matches_name(struct select *s, struct reducer_text group, struct reducer_text track)
{
	const struct reduce_tracks *tracks = &s->reduce->tracks;
	const uint32_t *name = s->reduce->called.at;
	for (size_t i = 0; i < s->reduce->called.count; i++) {
		struct reducer_text its = reduce_track_track(tracks, name[i]);
		if (same(reduce_track_group(tracks, name[i]), group) && (!its.bytes || same(its, track)) &&
		    matches(s, reduce_track_rest(tracks, name[i])))
			return true;
	}
	return false;
}

int reduce_select(struct reducer_reduce *r)
{
	struct select s = {.reduce = r};
	if (!r->options.track_pattern)
		return 0;
	for (uint32_t t = 0; t < r->tracks.count; t++) {
		struct reduce_track *track = &r->tracks.track[t];
		struct reducer_text group = reduce_track_group(&r->tracks, t), its = reduce_track_track(&r->tracks, t);
		/* Counters and async events go by the thread that each of them names. */
		if (track->class == CLASS_NOWHERE || track->class == CLASS_COUNTER || track->class == CLASS_ASYNC)
			continue;
		track->shut = !matches_path(&s, group, its) && !matches_name(&s, group, its);
	}
	int result = s.text.failed;
	buffer_free(&s.text);
	return result;
}

void reduce_select_events(struct reducer_reduce *r)
{
	const struct reduce_thread *thread = r->threads.at;
	for (size_t i = 0; i < r->threads.count; i++)
		if (r->tracks.track[thread[i].track].shut)
			r->col.bits[thread[i].event] |= BIT_SHUT | BIT_ELSEWHERE;
}
