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
	if (series->n_texts == SERIES_TEXTS_MAX)
		return 0;
	size_t i = series->n_texts++;
	series->texts[i].hash = hash;
	memcpy(series->texts[i].text, text, bytes);
	series->texts[i].text[bytes] = 0;
	series->bucket[at] = (uint16_t)(i + 1);
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
