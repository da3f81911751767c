/* SPDX-License-Identifier: Apache-2.0 */
#include "peers.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM_FIRST = 8 };

static uint32_t find_group(const struct triggers_peers *peers, uint64_t key)
{
	uint32_t at = 0;
	while (at < peers->count && peers->group[at]->key != key)
		at++;
	return at;
}

static struct triggers_peer_group *take_group(struct triggers_peers *peers, uint64_t key)
{
	uint32_t at = find_group(peers, key);
	if (at < peers->count)
		return peers->group[at];
	if (at == TRIGGERS_PEERS_GROUPS_MAX)
		return NULL;
	struct triggers_peer_group *group = calloc(1, sizeof(*group));
	if (!group)
		return NULL;
	group->key = key;
	peers->group[peers->count++] = group;
	return group;
}

static void drop_group(struct triggers_peers *peers, uint32_t at)
{
	free(peers->group[at]->member);
	free(peers->group[at]);
	peers->group[at] = peers->group[--peers->count];
}

static struct triggers_peer *find_member(const struct triggers_peer_group *group, uint32_t series)
{
	for (uint32_t i = 0; i < group->count; i++)
		if (group->member[i].series == series)
			return &group->member[i];
	return NULL;
}

static int is_absent(const struct triggers_peer *member)
{
	return member->missed >= TRIGGERS_PEERS_ABSENT;
}

/* Where a full group has a place to give away. */
static struct triggers_peer *find_absent(const struct triggers_peer_group *group)
{
	for (uint32_t i = 0; i < group->count; i++)
		if (is_absent(&group->member[i]))
			return &group->member[i];
	return NULL;
}

static int grow(struct triggers_peer_group *group)
{
	uint32_t room = group->room ? 2 * group->room : ROOM_FIRST;
	struct triggers_peer *larger = realloc(group->member, room * sizeof(*larger));
	if (!larger)
		return 0;
	group->member = larger;
	group->room = room;
	return 1;
}

static struct triggers_peer *take_member(struct triggers_peer_group *group, uint32_t series)
{
	struct triggers_peer *member = find_member(group, series);
	if (member)
		return member;
	if (group->count == TRIGGERS_PEERS_MEMBERS_MAX)
		member = find_absent(group);
	else if (group->count < group->room || grow(group))
		member = &group->member[group->count++];
	if (member)
		*member = (struct triggers_peer){.series = series};
	return member;
}

/* The place of a step in flight; of a new one where it is not. One place is always free: see take(). */
static unsigned take_step(struct triggers_peer_group *group, int64_t number)
{
	unsigned place = 0;
	for (unsigned i = 0; i < TRIGGERS_PEERS_STEPS; i++) {
		if (group->step[i].order && group->step[i].number == number)
			return i;
		if (!group->step[i].order)
			place = i;
	}
	group->step[place] = (struct triggers_peer_step){.order = ++group->orders, .number = number};
	for (uint32_t i = 0; i < group->count; i++)
		group->member[i].work[place].value = 0;
	return place;
}

struct triggers_peer_group *triggers_peers_tell(struct triggers_peers *peers, uint64_t key, uint32_t series,
						int64_t number, const struct triggers_peer_work *work)
{
	struct triggers_peer_group *group = take_group(peers, key);
	struct triggers_peer *member = group ? take_member(group, series) : NULL;
	if (!member)
		return NULL;
	unsigned place = take_step(group, number);
	member->work[place] = *work;
	member->missed = 0;
	member->number = number;
	return group;
}

static int is_awaited(const struct triggers_peer_group *group, unsigned place)
{
	for (uint32_t i = 0; i < group->count; i++) {
		const struct triggers_peer *member = &group->member[i];
		if (member->number < group->step[place].number && !is_absent(member))
			return 1;
	}
	return 0;
}

/*
 * The place of the oldest whole step; of the oldest one where all places are taken; else
 * TRIGGERS_PEERS_STEPS.
 */
static unsigned oldest(const struct triggers_peer_group *group)
{
	unsigned in_flight = 0, first = TRIGGERS_PEERS_STEPS, whole = TRIGGERS_PEERS_STEPS;
	for (unsigned i = 0; i < TRIGGERS_PEERS_STEPS; i++) {
		uint64_t order = group->step[i].order;
		if (!order)
			continue;
		in_flight++;
		if (first == TRIGGERS_PEERS_STEPS || order < group->step[first].order)
			first = i;
		if ((whole == TRIGGERS_PEERS_STEPS || order < group->step[whole].order) &&
		    !is_awaited(group, i))
			whole = i;
	}
	return whole == TRIGGERS_PEERS_STEPS && in_flight == TRIGGERS_PEERS_STEPS ? first : whole;
}

int triggers_peers_take(struct triggers_peer_group *group, struct triggers_whole_step *ret_step)
{
	unsigned place = oldest(group);
	if (place == TRIGGERS_PEERS_STEPS)
		return 0;
	ret_step->number = group->step[place].number;
	ret_step->count = 0;
	for (uint32_t i = 0; i < group->count; i++) {
		struct triggers_peer *member = &group->member[i];
		if (!(member->work[place].value > 0)) {
			/* What it has gone past it is not silent about. */
			member->missed += member->number < group->step[place].number && !is_absent(member);
			continue;
		}
		ret_step->member[ret_step->count].series = member->series;
		ret_step->member[ret_step->count++].work = member->work[place];
	}
	group->step[place].order = 0;
	return 1;
}

void triggers_peers_forget(struct triggers_peers *peers, uint64_t key, uint32_t series)
{
	uint32_t at = find_group(peers, key);
	if (at == peers->count)
		return;
	struct triggers_peer_group *group = peers->group[at];
	struct triggers_peer *member = find_member(group, series);
	if (member)
		*member = group->member[--group->count];
	if (!group->count)
		drop_group(peers, at);
}

void triggers_peers_free(struct triggers_peers *peers)
{
	while (peers->count)
		drop_group(peers, peers->count - 1);
}

/* ---- state ---- */

static void save_member(const struct triggers_peer *member, struct triggers_writer *writer)
{
	triggers_write_u32(writer, member->series);
	triggers_write_u32(writer, member->missed);
	triggers_write_i64(writer, member->number);
	for (int i = 0; i < TRIGGERS_PEERS_STEPS; i++) {
		triggers_write_double(writer, member->work[i].value);
		triggers_write_i64(writer, member->work[i].start_ns);
		triggers_write_i64(writer, member->work[i].sample);
	}
}

void triggers_peers_save(const struct triggers_peers *peers, struct triggers_writer *writer)
{
	triggers_write_u32(writer, peers->count);
	for (uint32_t i = 0; i < peers->count; i++) {
		const struct triggers_peer_group *group = peers->group[i];
		triggers_write_u64(writer, group->key);
		triggers_write_u64(writer, group->orders);
		for (int at = 0; at < TRIGGERS_PEERS_STEPS; at++) {
			triggers_write_u64(writer, group->step[at].order);
			triggers_write_i64(writer, group->step[at].number);
		}
		triggers_write_u32(writer, group->count);
		for (uint32_t at = 0; at < group->count; at++)
			save_member(&group->member[at], writer);
	}
}

static void restore_member(struct triggers_peer_group *group, struct triggers_cursor *cursor)
{
	uint32_t series = triggers_read_u32(cursor);
	struct triggers_peer *member = find_member(group, series) ? NULL : take_member(group, series);
	if (!member) {
		cursor->failed = 1;
		return;
	}
	member->missed = triggers_read_u32(cursor);
	member->number = triggers_read_i64(cursor);
	for (int i = 0; i < TRIGGERS_PEERS_STEPS; i++) {
		member->work[i].value = triggers_read_double(cursor);
		member->work[i].start_ns = triggers_read_time(cursor);
		member->work[i].sample = triggers_read_i64(cursor);
		if (member->work[i].value < 0 || member->work[i].value > (double)TRIGGERS_NS_MAX)
			cursor->failed = 1;
	}
	if (member->missed > TRIGGERS_PEERS_ABSENT)
		cursor->failed = 1;
}

static void restore_group(struct triggers_peers *peers, struct triggers_cursor *cursor)
{
	uint64_t key = triggers_read_u64(cursor);
	unsigned in_flight = 0;
	if (cursor->failed || find_group(peers, key) < peers->count) {
		cursor->failed = 1;
		return;
	}
	struct triggers_peer_group *group = take_group(peers, key);
	if (!group) {
		cursor->failed = 1;
		return;
	}
	group->orders = triggers_read_u64(cursor);
	for (int i = 0; i < TRIGGERS_PEERS_STEPS; i++) {
		group->step[i].order = triggers_read_u64(cursor);
		group->step[i].number = triggers_read_i64(cursor);
		in_flight += group->step[i].order != 0;
		if (group->step[i].order > group->orders)
			cursor->failed = 1;
	}
	uint32_t count = triggers_read_u32(cursor);
	if (count > TRIGGERS_PEERS_MEMBERS_MAX || in_flight == TRIGGERS_PEERS_STEPS)
		cursor->failed = 1;
	for (uint32_t i = 0; i < count && !cursor->failed; i++)
		restore_member(group, cursor);
}

void triggers_peers_restore(struct triggers_peers *peers, struct triggers_cursor *cursor)
{
	uint32_t count = triggers_read_u32(cursor);
	if (count > TRIGGERS_PEERS_GROUPS_MAX)
		cursor->failed = 1;
	for (uint32_t i = 0; i < count && !cursor->failed; i++)
		restore_group(peers, cursor);
}
