/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of traces come without ids: an id of our own lets all else be keyed by numbers, as of a ring. */
#include "series_object.h"

#include <stdlib.h>
#include <string.h>

#include "plain_text.h"

static uint64_t text_hash(const char *text, size_t bytes)
{
	uint64_t hash = bytes;
	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
	return series_mix(hash);
}

static void put_in_bucket(struct series *series, size_t index)
{
	size_t at = (size_t)series->texts[index].hash % SERIES_TEXT_BUCKETS;
	while (series->bucket[at])
		at = (at + 1) % SERIES_TEXT_BUCKETS;
	series->bucket[at] = (uint16_t)(index + 1);
}

/* Keeps the texts that series are called by. False where that would leave hardly any room. */
static bool make_room(struct series *series)
{
	uint16_t new_id[SERIES_TEXTS_MAX] = {0};
	size_t kept = 0;
	if (series->counters.alarming + series->counters.followed > SERIES_TEXTS_MAX / 2)
		return false;
	series_known_mark_texts(series, new_id);
	memset(series->bucket, 0, sizeof(series->bucket));
	for (size_t i = 0; i < series->n_texts; i++) {
		if (!new_id[i])
			continue;
		series->texts[kept] = series->texts[i];
		put_in_bucket(series, kept);
		new_id[i] = (uint16_t)++kept;
	}
	series->n_texts = kept;
	series_known_renumber(series, new_id);
	return true;
}

uint32_t series_text_id(struct series *series, const char *text, size_t bytes)
{
	if (!text || bytes == 0)
		return 0;
	if (bytes > TRIGGERS_NAME_MAX - 1)
		bytes = TRIGGERS_NAME_MAX - 1;
	if (!series->texts)
		series->texts = malloc(SERIES_TEXTS_MAX * sizeof(*series->texts));
	if (!series->texts)
		return 0;
	uint64_t hash = text_hash(text, bytes);
	size_t at = (size_t)hash % SERIES_TEXT_BUCKETS;
	for (; series->bucket[at]; at = (at + 1) % SERIES_TEXT_BUCKETS) {
		size_t i = series->bucket[at] - 1u;
		if (series->texts[i].hash == hash && strncmp(series->texts[i].text, text, bytes) == 0 &&
		    series->texts[i].text[bytes] == 0)
			return SERIES_OWN_NAMES + (uint32_t)i;
	}
	if (series->n_texts == SERIES_TEXTS_MAX && !make_room(series))
		return 0;
	size_t i = series->n_texts++;
	series->texts[i].hash = hash;
	memcpy(series->texts[i].text, text, bytes);
	series->texts[i].text[bytes] = 0;
	put_in_bucket(series, i);
	return SERIES_OWN_NAMES + (uint32_t)i;
}

bool series_name_text(const struct series *series, const struct series_source *source, uint32_t name,
		      const char *prefix, char ret_text[TRIGGERS_NAME_MAX])
{
	const char *text;
	size_t bytes;
	if (name >= SERIES_OWN_NAMES) {
		/* An id that no ring has, and that is not ours. */
		if (name - SERIES_OWN_NAMES >= series->n_texts)
			return false;
		text = series->texts[name - SERIES_OWN_NAMES].text;
		bytes = strlen(text);
	} else if (!source->name || source->name(source->context, name, &text, &bytes) < 0) {
		return false;
	}
	size_t before = strlen(prefix);
	memcpy(ret_text, prefix, before);
	plain_text(ret_text + before, TRIGGERS_NAME_MAX - before, text, bytes);
	return true;
}

int64_t series_step_of_name(const char *text, size_t bytes)
{
	static const char prefix[] = "ProfilerStep#";
	const size_t before = sizeof(prefix) - 1;
	int64_t step = 0;
	if (bytes <= before || bytes > before + 12 || memcmp(text, prefix, before) != 0)
		return -1;
	for (size_t i = before; i < bytes; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		step = step * 10 + (text[i] - '0');
	}
	return step;
}
