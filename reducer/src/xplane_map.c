/* SPDX-License-Identifier: Apache-2.0 */
#include "xplane_map.h"

#include <errno.h>
#include <stdlib.h>

#include "text.h"
#include "xplane_parse.h"

static const char *const own_name[XPLANE_OWN_LIMIT] = {
	[XPLANE_OWN_EVENTS] = "driverec.events",     [XPLANE_OWN_CATEGORY] = "driverec.category",
	[XPLANE_OWN_ID] = "driverec.id",	     [XPLANE_OWN_EXTRA] = "driverec.extra",
	[XPLANE_OWN_ARGS] = "driverec.args",	     [XPLANE_OWN_PID] = "driverec.pid",
	[XPLANE_OWN_PROCESS_NAME] = "driverec.process_name", [XPLANE_OWN_LINE] = "driverec.line",
	[XPLANE_OWN_META] = "driverec.meta",
};

const char *xplane_own_name(enum xplane_own own)
{
	return own > XPLANE_NOT_OWN && own < XPLANE_OWN_LIMIT ? own_name[own] : "";
}

static enum xplane_own own_of(struct reducer_text name)
{
	for (unsigned own = XPLANE_NOT_OWN + 1; own < XPLANE_OWN_LIMIT; own++)
		if (text_is(name, own_name[own]))
			return (enum xplane_own)own;
	return XPLANE_NOT_OWN;
}

/* Ids are often 1, 2, 3, and as often hashes; both spread well under a multiplication. */
static size_t place_of(const struct xplane_map *map, int64_t id)
{
	return (size_t)((uint64_t)id * 0x9e3779b97f4a7c15u >> 20) & (map->room - 1);
}

static struct xplane_entry *slot_of(const struct xplane_map *map, int64_t id)
{
	size_t at = place_of(map, id);
	while (map->entry[at].taken && map->entry[at].id != id)
		at = (at + 1) & (map->room - 1);
	return &map->entry[at];
}

static int grow(struct xplane_map *map)
{
	struct xplane_map grown = *map;
	grown.room = map->room ? map->room * 2 : 64;
	grown.entry = calloc(grown.room, sizeof(*grown.entry));
	if (!grown.entry)
		return -ENOMEM;
	for (size_t i = 0; i < map->room; i++)
		if (map->entry[i].taken)
			*slot_of(&grown, map->entry[i].id) = map->entry[i];
	free(map->entry);
	*map = grown;
	return 0;
}

struct xplane_entry *xplane_map_find(const struct xplane_map *map, int64_t id)
{
	if (!map->room)
		return NULL;
	struct xplane_entry *entry = slot_of(map, id);
	return entry->taken ? entry : NULL;
}

struct xplane_entry *xplane_map_put(struct xplane_map *map, int64_t id, bool *ret_new)
{
	struct xplane_entry *entry = xplane_map_find(map, id);
	*ret_new = !entry;
	if (entry)
		return entry;
	if (map->n == XPLANE_METADATA_MAX) {
		map->left_out++;
		return NULL;
	}
	if (map->n >= map->room / 2 && grow(map) < 0)
		return NULL;
	entry = slot_of(map, id);
	*entry = (struct xplane_entry){.id = id, .taken = 1};
	map->n++;
	return entry;
}

/* One entry of the map field; what cannot be read to its end counts as far as it goes. */
static int put_metadata(struct xplane_map *map, struct proto message, bool of_stats)
{
	struct proto_field field;
	struct proto value = {0};
	int64_t id = 0;
	bool is_new;
	while (proto_next(&message, &field) > 0) {
		if (field.number == MAP_KEY && field.wire == PROTO_VARINT)
			id = (int64_t)field.value;
		else if (field.number == MAP_VALUE && field.wire == PROTO_BYTES)
			value = field.content;
	}
	struct xplane_entry *entry = xplane_map_put(map, id, &is_new);
	if (!entry)
		return map->n == XPLANE_METADATA_MAX ? 0 : -ENOMEM;
	struct reducer_text text = proto_text(value);
	if (of_stats) {
		text = xplane_text_field(value, XSTAT_METADATA_NAME);
		entry->own = (uint8_t)own_of(text);
		map->merges |= entry->own == XPLANE_OWN_EVENTS;
		entry->json = text_is(xplane_text_field(value, XSTAT_METADATA_DESCRIPTION),
				      XPLANE_JSON_DESCRIPTION);
	}
	entry->at = (const uint8_t *)text.data;
	entry->bytes = (uint32_t)text.bytes;
	return 0;
}

int xplane_map_fill(struct xplane_map *map, struct proto plane, uint32_t number)
{
	struct proto_field field;
	int result = 0;
	while (result == 0 && proto_next(&plane, &field) > 0)
		if (field.number == number && field.wire == PROTO_BYTES)
			result = put_metadata(map, field.content, number == XPLANE_STAT_METADATA);
	return result;
}

struct reducer_text xplane_entry_text(const struct xplane_entry *entry)
{
	return (struct reducer_text){(const char *)entry->at, entry->bytes};
}

void xplane_map_free(struct xplane_map *map)
{
	free(map->entry);
	*map = (struct xplane_map){0};
}
