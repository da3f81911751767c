/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracks that do the like work, step by step: who has told of which step, and when a step is whole.
 *
 * Members of a group tell of a step under its number, each in its own time. A step waits for every member
 * that is not that far yet, at most until TRIGGERS_PEERS_STEPS are waiting; then it is taken, with whoever is
 * in it. A member that was missing from TRIGGERS_PEERS_ABSENT steps in a row is not waited for until it tells
 * of one again.
 *
 * Numbers may come again after a restart: those who were further are not waited for, and once the last one
 * has caught up with the first they are together again. A step that somebody tells of late is a step of its
 * own, without the others.
 *
 * Bounds: 256 groups of at most 256 members, 8 steps in flight; 208 bytes a member. Where there is no room a
 * member is left out. Cost a value: a walk over the members that stops at the first one who is still waited
 * for.
 */
#ifndef TRIGGERS_PEERS_H
#define TRIGGERS_PEERS_H

#include <stddef.h>
#include <stdint.h>

#include "save.h"

enum {
	TRIGGERS_PEERS_GROUPS_MAX = 256,
	TRIGGERS_PEERS_MEMBERS_MAX = 256,
	TRIGGERS_PEERS_STEPS = 8,
	TRIGGERS_PEERS_ABSENT = 4
};

/* What one member did in one step. */
struct triggers_peer_work {
	double value; /* > 0; 0 = it has not told of this step */
	int64_t start_ns;
	int64_t sample; /* the caller's own number */
};

struct triggers_peer {
	uint32_t series; /* id */
	uint32_t missed; /* steps in a row that were taken without it */
	int64_t number;  /* of the last step it told of */
	struct triggers_peer_work work[TRIGGERS_PEERS_STEPS];
};

/* A step that is being told of. */
struct triggers_peer_step {
	uint64_t order; /* of its first telling, from 1; 0 = free */
	int64_t number;
};

struct triggers_peer_group {
	uint64_t key;
	uint64_t orders; /* given so far */
	struct triggers_peer_step step[TRIGGERS_PEERS_STEPS];
	uint32_t count, room;
	struct triggers_peer *member;
};

struct triggers_peers {
	uint32_t count;
	struct triggers_peer_group *group[TRIGGERS_PEERS_GROUPS_MAX];
};

/* A step that is whole: `count` members of it, with what they did. */
struct triggers_whole_step {
	int64_t number;
	uint32_t count;
	struct {
		uint32_t series;
		struct triggers_peer_work work;
	} member[TRIGGERS_PEERS_MEMBERS_MAX];
};

/*
 * A member tells of a step; told of it again, the newer counts. Returns its group, of which whole steps then
 * must be taken; NULL where there was no room.
 */
struct triggers_peer_group *triggers_peers_tell(struct triggers_peers *peers, uint64_t key, uint32_t series,
						int64_t number, const struct triggers_peer_work *work);
/* Takes the oldest whole step off, if there is one. */
int triggers_peers_take(struct triggers_peer_group *group, struct triggers_whole_step *ret_step);
/* The member is no more. */
void triggers_peers_forget(struct triggers_peers *peers, uint64_t key, uint32_t series);
void triggers_peers_free(struct triggers_peers *peers);

void triggers_peers_save(const struct triggers_peers *peers, struct triggers_writer *writer);
/* Into an empty one. */
void triggers_peers_restore(struct triggers_peers *peers, struct triggers_cursor *cursor);

#endif
