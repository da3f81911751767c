/* SPDX-License-Identifier: Apache-2.0 */
#include "verify_say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "text.h"

struct verify_us verify_us(verify_ps ps)
{
	struct verify_us us;
	unsigned __int128 size = ps < 0 ? -(unsigned __int128)ps : (unsigned __int128)ps;
	char digits[48];
	int at = sizeof(digits);
	/* From the last digit on: 6 decimals or 3, the point, the whole part. */
	int decimals = size % 1000 ? 6 : 3;
	if (decimals == 3)
		size /= 1000;
	for (int i = 0; size > 0 || i <= decimals; i++, size /= 10) {
		if (i == decimals)
			digits[--at] = '.';
		digits[--at] = (char)('0' + (int)(size % 10));
	}
	snprintf(us.text, sizeof(us.text), "%s%.*s us", ps < 0 ? "-" : "", (int)sizeof(digits) - at,
		 digits + at);
	return us;
}

/* Appends what can be shown on one line, whole characters at a time. */
static size_t add_plain(char *out, size_t used, size_t room, struct reducer_text text)
{
	const char *p = text.data, *end = text.data + text.bytes;
	while (p < end) {
		size_t bytes = utf8_sequence(p, end);
		bool plain = bytes && (unsigned char)*p >= 0x20 && *p != 0x7f;
		size_t needed = plain ? bytes : 1;
		if (needed >= room - used)
			break;
		if (plain)
			memcpy(out + used, p, bytes);
		else
			out[used] = '?';
		used += needed;
		p += bytes ? bytes : 1;
	}
	out[used] = 0;
	return used;
}

struct verify_short verify_short(const struct verify_house *house, uint32_t number)
{
	struct verify_short out = {""};
	if (number != VERIFY_NONE)
		add_plain(out.text, 0, sizeof(out.text), verify_texts_at(&house->texts, number));
	return out;
}

/* "701/3 main"; without what it does not have. */
static void say_track(const struct verify_house *house, uint32_t number, char *out, size_t room)
{
	const struct verify_track *track = &house->track[number];
	struct reducer_text group = text_unquoted(verify_texts_at(&house->texts, track->group));
	struct reducer_text name = text_unquoted(verify_texts_at(&house->texts, track->name));
	size_t used = add_plain(out, 0, room, group);
	if (group.bytes && name.bytes)
		used = add_plain(out, used, room, (struct reducer_text){"/", 1});
	used = add_plain(out, used, room, name);
	if (track->thread == VERIFY_NONE)
		return;
	used = add_plain(out, used, room, (struct reducer_text){" ", 1});
	add_plain(out, used, room, verify_texts_at(&house->texts, track->thread));
}

void verify_checked(struct verify *verify, enum reducer_promise promise)
{
	verify->report->checked[promise]++;
}

void verify_fail(struct verify *verify, enum reducer_promise promise, uint32_t track, const verify_ps *time,
		 const char *format, ...)
{
	struct reducer_verify_report *report = verify->report;
	if (report->failed[promise]++ >= REDUCER_DIFFERENCES_EACH)
		return;
	struct reducer_difference *difference = &report->difference[report->n_differences++];
	*difference = (struct reducer_difference){.promise = promise, .has_time = time != NULL};
	if (track != VERIFY_NONE)
		say_track(&verify->house, track, difference->track, sizeof(difference->track));
	if (time)
		difference->time = verify_moment(*time);
	va_list values;
	va_start(values, format);
	vsnprintf(difference->what, sizeof(difference->what), format, values);
	va_end(values);
}
