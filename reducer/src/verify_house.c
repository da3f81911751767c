/* SPDX-License-Identifier: Apache-2.0 */
/* What both traces share: texts, tracks and counters by number. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <reducer/marks.h>

#include "verify_trace.h"

void *verify_grow(void *array, size_t used, size_t *room, size_t bytes)
{
	enum { FIRST = 256 };
	if (used < *room)
		return array;
	if (used >= VERIFY_NONE / 2)
		return NULL;
	size_t more = *room ? *room * 2 : FIRST;
	void *grown = realloc(array, more * bytes);
	if (grown)
		*room = more;
	return grown;
}

static int add_literal(struct verify_house *house, const char *literal, uint32_t *ret_number)
{
	return verify_texts_add(&house->texts, (struct reducer_text){literal, strlen(literal)}, ret_number);
}

int verify_house_start(struct verify_house *house)
{
	int result = add_literal(house, "", &house->no_name);
	if (result == 0)
		result = add_literal(house, REDUCER_MARK_MERGED, &house->merged_category);
	if (result == 0)
		result = add_literal(house, REDUCER_MARK_REDUCED, &house->mark_name);
	if (result == 0)
		result = add_literal(house, "event_metadata", &house->unused_name);
	return result ? result : add_literal(house, REDUCER_MARK_MERGED_NAME, &house->merged_name);
}

int verify_house_track(struct verify_house *house, struct reducer_text group, struct reducer_text track,
		       uint32_t *ret_track)
{
	uint32_t group_number, name, number;
	int result = verify_texts_add(&house->texts, group, &group_number);
	if (result == 0)
		result = verify_texts_add(&house->texts, track, &name);
	if (result < 0)
		return result;
	uint32_t before = house->tracks.count;
	struct verify_track *grown = verify_grow(house->track, before, &house->tracks_room, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	house->track = grown;
	result = verify_texts_add(&house->tracks, VERIFY_KEY(group_number, name), &number);
	if (result < 0)
		return result;
	if (number == before)
		house->track[number] =
			(struct verify_track){group_number, name, VERIFY_NONE, VERIFY_NONE, false, false};
	*ret_track = number;
	return 0;
}

int verify_house_counter(struct verify_house *house, uint32_t group, uint32_t name, uint32_t id, uint32_t key,
			 uint32_t *ret_counter)
{
	uint32_t number, before = house->counters.count;
	struct verify_counter *grown =
		verify_grow(house->counter, before, &house->counters_room, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	house->counter = grown;
	int result = verify_texts_add(&house->counters, VERIFY_KEY(group, name, id, key), &number);
	if (result < 0)
		return result;
	if (number == before)
		house->counter[number] = (struct verify_counter){group, name, key};
	*ret_counter = number;
	return 0;
}

void verify_house_free(struct verify_house *house)
{
	verify_texts_free(&house->texts);
	verify_texts_free(&house->tracks);
	verify_texts_free(&house->counters);
	free(house->track);
	free(house->counter);
	free(house->is_raw_name);
}
