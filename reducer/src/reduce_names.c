/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names by number, each text once. A trace has few; beyond a bound further ones are only told apart by a hash,
 * so that names that are all different cost no memory.
 */
#include "reduce_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

enum { SLOTS_MIN = 1024, NAMES_MAX = 1 << 19, TEXTS_MAX = 24 << 20 };

int reduce_names_init(struct reduce_names *names)
{
	names->slot = malloc(SLOTS_MIN * sizeof(*names->slot));
	if (!names->slot)
		return -ENOMEM;
	memset(names->slot, 0xff, SLOTS_MIN * sizeof(*names->slot));
	names->slots = SLOTS_MIN;
	names->last[0] = names->last[1] = REDUCE_NONE;
	return 0;
}

static bool is_name(const struct reduce_names *names, uint32_t at, struct reducer_text raw)
{
	const struct reduce_name *name = &names->at[at];
	return name->bytes == raw.bytes && (!raw.bytes || memcmp(names->texts.data + name->text, raw.data, raw.bytes) == 0);
}

static int grow_slots(struct reduce_names *names)
{
	uint32_t slots = names->slots * 2;
	uint32_t *slot = malloc(slots * sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	memset(slot, 0xff, slots * sizeof(*slot));
	for (uint32_t i = 0; i < names->count; i++) {
		uint32_t at = names->at[i].hash & (slots - 1);
		while (slot[at] != REDUCE_NONE)
			at = (at + 1) & (slots - 1);
		slot[at] = i;
	}
	free(names->slot);
	names->slot = slot;
	names->slots = slots;
	return 0;
}

static int add_name(struct reduce_names *names, uint32_t slot, uint32_t hash, struct reducer_text raw,
		    struct reducer_text said)
{
	if (names->count == names->room) {
		uint32_t room = names->room ? names->room * 2 : 256;
		struct reduce_name *grown = realloc(names->at, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		names->at = grown;
		names->room = room;
	}
	struct reduce_name *name = &names->at[names->count];
	*name = (struct reduce_name){.text = (uint32_t)names->texts.bytes, .bytes = (uint32_t)raw.bytes, .hash = hash};
	buffer_add_text(&names->texts, raw);
	name->json = name->text;
	name->json_bytes = name->bytes;
	if (!json_valid_string(raw)) {
		name->json = (uint32_t)names->texts.bytes;
		json_quote(&names->texts, said);
		name->json_bytes = (uint32_t)(names->texts.bytes - name->json);
	}
	if (names->texts.failed)
		return names->texts.failed;
	names->slot[slot] = names->count++;
	return names->count > names->slots / 2 ? grow_slots(names) : 0;
}

int reduce_name_of(struct reduce_names *names, struct reducer_text raw, struct reducer_text said, uint32_t *ret_name)
{
	for (int i = 0; i < 2; i++) {
		if (names->last[i] != REDUCE_NONE && is_name(names, names->last[i], raw)) {
			*ret_name = names->last[i];
			return 0;
		}
	}
	uint32_t hash = (uint32_t)reduce_hash(2, raw.bytes ? raw.data : "", raw.bytes);
	uint32_t slot = hash & (names->slots - 1);
	for (; names->slot[slot] != REDUCE_NONE; slot = (slot + 1) & (names->slots - 1))
		if (names->at[names->slot[slot]].hash == hash && is_name(names, names->slot[slot], raw))
			break;
	if (names->slot[slot] == REDUCE_NONE) {
		/* Quoted it may take six bytes a byte. */
		if (names->count == NAMES_MAX || names->texts.bytes > TEXTS_MAX || raw.bytes > TEXTS_MAX / 8) {
			*ret_name = hash | REDUCE_NAME_UNKNOWN;
			return 0;
		}
		int result = add_name(names, slot, hash, raw, said);
		if (result < 0)
			return result;
		names->last[1] = names->last[0];
		*ret_name = names->last[0] = names->count - 1;
		return 0;
	}
	names->last[1] = names->last[0];
	*ret_name = names->last[0] = names->slot[slot];
	return 0;
}

struct reducer_text reduce_name_text(const struct reduce_names *names, uint32_t name)
{
	if (name & REDUCE_NAME_UNKNOWN)
		return (struct reducer_text){NULL, 0};
	return (struct reducer_text){names->texts.data + names->at[name].json, names->at[name].json_bytes};
}

void reduce_names_free(struct reduce_names *names)
{
	free(names->at);
	free(names->slot);
	buffer_free(&names->texts);
}
