/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inspect_state.h"

static int compare_intervals(const void *a, const void *b)
{
	const struct inspect_interval *x = a, *y = b;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return x->start_ps < y->start_ps ? -1 : x->start_ps > y->start_ps;
}

static __int128 ps_of(int64_t ns, uint16_t ps)
{
	return (__int128)ns * 1000 + ps;
}

/* Joins what overlaps in place, so that later spans can still be added. */
static void unite(struct inspect_track *track)
{
	size_t kept = 0;
	if (track->n_intervals)
		qsort(track->interval, track->n_intervals, sizeof(*track->interval), compare_intervals);
	for (size_t i = 0; i < track->n_intervals; i++) {
		struct inspect_interval one = track->interval[i];
		struct inspect_interval *last = kept ? &track->interval[kept - 1] : NULL;
		if (!last || ps_of(one.start_ns, one.start_ps) > ps_of(last->end_ns, last->end_ps)) {
			track->interval[kept++] = one;
		} else if (ps_of(one.end_ns, one.end_ps) > ps_of(last->end_ns, last->end_ps)) {
			last->end_ns = one.end_ns;
			last->end_ps = one.end_ps;
		}
	}
	track->n_intervals = kept;
	track->busy_ps = 0;
	for (size_t i = 0; i < kept; i++) {
		const struct inspect_interval *one = &track->interval[i];
		track->busy_ps += (unsigned __int128)(ps_of(one->end_ns, one->end_ps) -
						      ps_of(one->start_ns, one->start_ps));
	}
}

static int compare_tracks(const void *a, const void *b)
{
	const struct inspect_track *const *x = a, *const *y = b;
	return strcmp((*x)->name, (*y)->name);
}

static int compare_kinds(const void *a, const void *b)
{
	const struct inspect_kind *x = a, *y = b;
	return strcmp(x->name, y->name);
}

static void index_again(struct reducer_inspect *inspect)
{
	memset(inspect->track_index, 0, inspect->index_room * sizeof(*inspect->track_index));
	for (size_t i = 0; i < inspect->n_tracks; i++) {
		size_t at = inspect->track[i]->hash & (inspect->index_room - 1);
		while (inspect->track_index[at])
			at = (at + 1) & (inspect->index_room - 1);
		inspect->track_index[at] = (uint32_t)i + 1;
	}
}

static void sort_all(struct reducer_inspect *inspect)
{
	if (inspect->sorted)
		return;
	for (size_t i = 0; i < inspect->n_tracks; i++)
		unite(inspect->track[i]);
	if (inspect->n_tracks) {
		qsort(inspect->track, inspect->n_tracks, sizeof(*inspect->track), compare_tracks);
		index_again(inspect);
	}
	if (inspect->n_kinds)
		qsort(inspect->kind, inspect->n_kinds, sizeof(inspect->kind[0]), compare_kinds);
	inspect->sorted = true;
}

static void add_ps(struct buffer *out, __int128 ps)
{
	char digits[40];
	size_t at = sizeof(digits);
	unsigned __int128 rest = ps < 0 ? (unsigned __int128)-ps : (unsigned __int128)ps;
	do {
		digits[--at] = (char)('0' + (int)(rest % 10));
		rest /= 10;
	} while (rest);
	if (ps < 0)
		digits[--at] = '-';
	buffer_add(out, digits + at, sizeof(digits) - at);
}

static void add_text(struct buffer *out, const char *text)
{
	if (text)
		json_quote(out, (struct reducer_text){text, strlen(text)});
	else
		buffer_add_literal(out, "null");
}

static void add_track(struct buffer *out, const struct inspect_track *track)
{
	add_text(out, track->name);
	buffer_add_literal(out, ":{\"busy_ps\":");
	add_ps(out, (__int128)track->busy_ps);
	buffer_add_literal(out, ",\"first_ps\":");
	add_ps(out, ps_of(track->first.ns, track->first.ps));
	buffer_add_literal(out, ",\"last_ps\":");
	add_ps(out, ps_of(track->last.ns, track->last.ps));
	buffer_add_literal(out, ",\"longest\":{\"dur_ps\":");
	add_ps(out, ps_of(track->longest.ns, track->longest.ps));
	buffer_add_literal(out, ",\"name\":");
	add_text(out, track->longest_name);
	buffer_add_literal(out, "},\"spans\":");
	buffer_add_u64(out, track->spans);
	buffer_add_byte(out, '}');
}

int reducer_inspect_json(struct reducer_inspect *inspect, const char *file, const char *more, char **ret_text)
{
	struct buffer out = {0};
	sort_all(inspect);
	buffer_add_byte(&out, '{');
	if (more && *more) {
		buffer_add_literal(&out, more);
		buffer_add_byte(&out, ',');
	}
	buffer_add_literal(&out, "\"base_ns\":");
	add_text(&out, inspect->base);
	buffer_add_literal(&out, ",\"events\":");
	buffer_add_u64(&out, inspect->events);
	buffer_add_literal(&out, ",\"file\":");
	add_text(&out, file);
	buffer_add_literal(&out, ",\"kinds\":{");
	for (size_t i = 0; i < inspect->n_kinds; i++) {
		if (i)
			buffer_add_byte(&out, ',');
		add_text(&out, inspect->kind[i].name);
		buffer_add_byte(&out, ':');
		buffer_add_u64(&out, inspect->kind[i].count);
	}
	buffer_add_literal(&out, "},\"names\":");
	buffer_add_u64(&out, inspect->n_names);
	buffer_add_literal(&out, ",\"tracks\":{");
	for (size_t i = 0; i < inspect->n_tracks; i++) {
		if (i)
			buffer_add_byte(&out, ',');
		add_track(&out, inspect->track[i]);
	}
	buffer_add(&out, "}}", 3);
	if (out.failed) {
		buffer_free(&out);
		return -ENOMEM;
	}
	*ret_text = out.data;
	return 0;
}

int reducer_inspect_track(struct reducer_inspect *inspect, size_t index, struct reducer_inspect_track *ret)
{
	sort_all(inspect);
	if (index >= inspect->n_tracks)
		return -ENOENT;
	const struct inspect_track *track = inspect->track[index];
	*ret = (struct reducer_inspect_track){track->name, track->spans, track->first.ns, track->last.ns,
					      (int64_t)(track->busy_ps / 1000), track->longest.ns,
					      track->longest_name};
	return 0;
}

int reducer_inspect_kind(struct reducer_inspect *inspect, size_t index, const char **ret_kind, uint64_t *ret_count)
{
	sort_all(inspect);
	if (index >= inspect->n_kinds)
		return -ENOENT;
	*ret_kind = inspect->kind[index].name;
	*ret_count = inspect->kind[index].count;
	return 0;
}

uint64_t reducer_inspect_events(const struct reducer_inspect *inspect)
{
	return inspect->events;
}

uint64_t reducer_inspect_names(const struct reducer_inspect *inspect)
{
	return inspect->n_names;
}
