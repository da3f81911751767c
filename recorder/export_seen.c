/* SPDX-License-Identifier: Apache-2.0 */
#include "export_seen.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM_FIRST = 1 << 12 };

/* Every bit of the input reaches every bit of the result (the finaliser of splitmix64). */
static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

void export_seen_ring(struct export_seen *seen, const struct drec_header *header)
{
	uint64_t half[2];
	memcpy(half, header->ring_id, sizeof(half));
	seen->ring = mix(half[0] ^ mix(half[1]));
}

static bool insert(uint64_t *keys, size_t room, uint64_t key)
{
	size_t at = key & (room - 1);
	while (keys[at] && keys[at] != key)
		at = (at + 1) & (room - 1);
	bool there = keys[at] == key;
	keys[at] = key;
	return !there;
}

static bool grow(struct export_seen *seen)
{
	size_t room = seen->room ? seen->room * 2 : ROOM_FIRST;
	uint64_t *keys = calloc(room, sizeof(*keys));
	if (!keys)
		return false;
	for (size_t i = 0; i < seen->room; i++)
		if (seen->key[i])
			insert(keys, room, seen->key[i]);
	free(seen->key);
	seen->key = keys;
	seen->room = room;
	return true;
}

bool export_seen_before(struct export_seen *seen, const struct drec_place *place)
{
	uint64_t key = mix(seen->ring + mix((uint64_t)place->slot << 32 | place->life) + mix(~place->index));
	if (seen->count + 1 > seen->room / 2 && !grow(seen))
		return false;
	if (!insert(seen->key, seen->room, key ? key : 1))
		return true;
	seen->count++;
	return false;
}

void export_seen_free(struct export_seen *seen)
{
	free(seen->key);
	*seen = (struct export_seen){0};
}
