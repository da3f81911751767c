/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "manifest.h"
#include "plain_text.h"

void json_add_ns(cJSON *object, const char *name, int64_t ns)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, ns);
	cJSON_AddStringToObject(object, name, text);
}

void json_add_u64(cJSON *object, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	cJSON_AddStringToObject(object, name, text);
}

void json_add_hex(cJSON *object, const char *name, const uint8_t *bytes, size_t count)
{
	char text[2 * INCIDENTS_ID_BYTES + 1] = "";

	for (size_t i = 0; i < count && i < INCIDENTS_ID_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	cJSON_AddStringToObject(object, name, text);
}

static const char *string_of(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsString(item) ? item->valuestring : NULL;
}

/* Decimal digits alone; false beyond 64 bits. */
static bool parse_digits(const char *text, uint64_t *ret_value)
{
	uint64_t value = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		unsigned digit = (unsigned)(*text - '0');

		if (digit > 9 || value > (UINT64_MAX - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*ret_value = value;
	return true;
}

int64_t json_ns(const cJSON *object, const char *name, int64_t fallback)
{
	const char *text = string_of(object, name);
	bool negative = text && *text == '-';
	uint64_t value;

	if (!text || !parse_digits(text + negative, &value) || value > INT64_MAX)
		return fallback;
	return negative ? -(int64_t)value : (int64_t)value;
}

uint64_t json_u64(const cJSON *object, const char *name, uint64_t fallback)
{
	const char *text = string_of(object, name);
	uint64_t value;

	return text && parse_digits(text, &value) ? value : fallback;
}

double json_number(const cJSON *object, const char *name, double fallback)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsNumber(item) ? item->valuedouble : fallback;
}

bool json_true(const cJSON *object, const char *name)
{
	return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, name));
}

void json_text(const cJSON *object, const char *name, char *ret_text, size_t room)
{
	const char *text = string_of(object, name);

	plain_text(ret_text, room, text ? text : "", text ? strlen(text) : 0);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int json_hex(const cJSON *object, const char *name, uint8_t *ret_bytes, size_t count)
{
	const char *text = string_of(object, name);

	if (!text || strlen(text) != 2 * count)
		return -EBADMSG;
	for (size_t i = 0; i < 2 * count; i++) {
		if (hex_digit(text[i]) < 0)
			return -EBADMSG;
	}
	for (size_t i = 0; i < count; i++)
		ret_bytes[i] = (uint8_t)(hex_digit(text[2 * i]) << 4 | hex_digit(text[2 * i + 1]));
	return 0;
}

void json_utc(char ret_text[32], int64_t unix_ns)
{
	int64_t below = unix_ns % 1000000000;
	time_t seconds = (time_t)(unix_ns / 1000000000);
	struct tm tm;
	size_t n;

	if (below < 0) {
		below += 1000000000;
		seconds--;
	}
	n = gmtime_r(&seconds, &tm) ? strftime(ret_text, 24, "%Y-%m-%dT%H:%M:%S", &tm) : 0;
	snprintf(ret_text + n, 32 - n, ".%03dZ", (int)(below / 1000000));
}

cJSON *json_firing(const struct triggers_firing *firing)
{
	cJSON *json = cJSON_CreateObject();

	cJSON_AddStringToObject(json, "trigger", firing->trigger);
	cJSON_AddStringToObject(json, "series", firing->series);
	cJSON_AddStringToObject(json, "phase", firing->phase);
	cJSON_AddStringToObject(json, "severity", triggers_severity_name(firing->severity));
	cJSON_AddNumberToObject(json, "series_id", firing->series_id);
	cJSON_AddNumberToObject(json, "source", firing->source);
	if (firing->rank != UINT32_MAX)
		cJSON_AddNumberToObject(json, "rank", firing->rank);
	json_add_u64(json, "track", firing->track);
	json_add_ns(json, "t0_ns", firing->t0_ns);
	json_add_ns(json, "until_ns", firing->until_ns);
	json_add_ns(json, "detected_ns", firing->detected_ns);
	cJSON_AddNumberToObject(json, "value", firing->value);
	cJSON_AddNumberToObject(json, "expected", firing->expected);
	cJSON_AddNumberToObject(json, "ratio", firing->ratio);
	if (firing->step >= 0)
		json_add_ns(json, "step", firing->step);
	cJSON_AddBoolToObject(json, "ongoing", firing->ongoing);
	cJSON_AddBoolToObject(json, "quiet", firing->quiet);
	cJSON_AddStringToObject(json, "evidence", firing->evidence);
	return json;
}

static enum triggers_severity parse_severity(const cJSON *object)
{
	char text[16];

	json_text(object, "severity", text, sizeof(text));
	if (!strcmp(text, triggers_severity_name(TRIGGERS_CRITICAL)))
		return TRIGGERS_CRITICAL;
	return !strcmp(text, triggers_severity_name(TRIGGERS_WARN)) ? TRIGGERS_WARN : TRIGGERS_NOTE;
}

/* A number that fits 32 bits, else the fallback. */
static uint32_t json_u32(const cJSON *object, const char *name, uint32_t fallback)
{
	double value = json_number(object, name, -1);

	return value >= 0 && value <= (double)UINT32_MAX ? (uint32_t)value : fallback;
}

void json_read_firing(const cJSON *object, struct triggers_firing *ret_firing)
{
	memset(ret_firing, 0, sizeof(*ret_firing));
	json_text(object, "trigger", ret_firing->trigger, sizeof(ret_firing->trigger));
	json_text(object, "series", ret_firing->series, sizeof(ret_firing->series));
	json_text(object, "phase", ret_firing->phase, sizeof(ret_firing->phase));
	ret_firing->severity = parse_severity(object);
	ret_firing->series_id = json_u32(object, "series_id", TRIGGERS_SERIES_NONE);
	ret_firing->source = json_u32(object, "source", UINT32_MAX);
	ret_firing->rank = json_u32(object, "rank", UINT32_MAX);
	ret_firing->track = json_u64(object, "track", 0);
	ret_firing->t0_ns = json_ns(object, "t0_ns", 0);
	ret_firing->until_ns = json_ns(object, "until_ns", ret_firing->t0_ns);
	ret_firing->detected_ns = json_ns(object, "detected_ns", ret_firing->t0_ns);
	ret_firing->value = json_number(object, "value", 0);
	ret_firing->expected = json_number(object, "expected", 0);
	ret_firing->ratio = json_number(object, "ratio", 0);
	ret_firing->step = json_ns(object, "step", -1);
	ret_firing->sample = -1;
	ret_firing->ongoing = json_true(object, "ongoing");
	ret_firing->quiet = json_true(object, "quiet");
	json_text(object, "evidence", ret_firing->evidence, sizeof(ret_firing->evidence));
}
