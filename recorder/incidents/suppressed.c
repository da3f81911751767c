/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines lie in one array that never moves. A list through them has the order of their last firing, so the one
 * to give up is at its head; chains by the hash of trigger, gate and series find the line that a firing is
 * folded into.
 */
#include "suppressed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#include "output.h"
#include "paths.h"
#include "plain_text.h"

enum { BUCKETS = 4096, NONE = UINT16_MAX, VERSION = 1, HEAD_BYTES = 24 };
static const char MAGIC[8] = "DRVSUPP1";

struct place {
	struct suppressed_line line; /* first: a line is found by its address */
	uint32_t hash;
	uint16_t older, newer;
	uint16_t next; /* in the bucket */
};

struct suppressed {
	uint16_t oldest, newest;
	uint16_t count;
	uint64_t forgotten;
	bool changed;
	uint16_t bucket[BUCKETS];
	struct place place[SUPPRESSED_MAX];
};

int suppressed_new(struct suppressed **ret_log)
{
	struct suppressed *log = calloc(1, sizeof(*log));

	if (!log)
		return -ENOMEM;
	log->oldest = log->newest = NONE;
	memset(log->bucket, 0xff, sizeof(log->bucket));
	*ret_log = log;
	return 0;
}

void suppressed_free(struct suppressed *log)
{
	free(log);
}

/* --- the list and the chains --- */

static uint32_t hash_text(uint32_t hash, const char *text)
{
	do
		hash = (hash ^ (unsigned char)*text) * 0x01000193u;
	while (*text++);
	return hash;
}

/* Lines of several series are found by no series' name. */
static uint32_t hash_of(const char *trigger, const char *gate, const char *series, bool others)
{
	uint32_t hash = hash_text(hash_text(0x811c9dc5u, trigger), gate);

	return others ? ~hash : hash_text(hash, series);
}

static void unlink_place(struct suppressed *log, uint16_t at)
{
	struct place *place = &log->place[at];

	*(place->older == NONE ? &log->oldest : &log->place[place->older].newer) = place->newer;
	*(place->newer == NONE ? &log->newest : &log->place[place->newer].older) = place->older;
}

static void append(struct suppressed *log, uint16_t at)
{
	struct place *place = &log->place[at];

	place->older = log->newest;
	place->newer = NONE;
	*(log->newest == NONE ? &log->oldest : &log->place[log->newest].newer) = at;
	log->newest = at;
}

static void unchain(struct suppressed *log, uint16_t at)
{
	uint16_t *link = &log->bucket[log->place[at].hash % BUCKETS];

	while (*link != at)
		link = &log->place[*link].next;
	*link = log->place[at].next;
}

/* A cleared line, the newest; where there is no free one the oldest goes. */
static struct place *add_place(struct suppressed *log, uint32_t hash)
{
	bool full = log->count == SUPPRESSED_MAX;
	uint16_t at = full ? log->oldest : log->count++;
	struct place *place = &log->place[at];

	if (full) {
		unlink_place(log, at);
		unchain(log, at);
		log->forgotten++;
	}
	memset(place, 0, sizeof(*place));
	place->hash = hash;
	place->next = log->bucket[hash % BUCKETS];
	log->bucket[hash % BUCKETS] = at;
	append(log, at);
	return place;
}

/* --- adding --- */

static bool is_recent(const struct suppressed_line *line, int64_t now_ns)
{
	return now_ns - line->last_ns < SUPPRESSED_FOLD_NS && line->last_ns - now_ns < SUPPRESSED_FOLD_NS;
}

/* The newest line of the key, if its last firing is less than a minute away. */
static struct place *find(struct suppressed *log, const struct triggers_firing *firing, const char *gate,
			  bool others)
{
	uint32_t hash = hash_of(firing->trigger, gate, firing->series, others);

	for (uint16_t at = log->bucket[hash % BUCKETS]; at != NONE; at = log->place[at].next) {
		struct place *place = &log->place[at];

		if (place->hash == hash && place->line.others == others && !strcmp(place->line.gate, gate) &&
		    !strcmp(place->line.trigger, firing->trigger) &&
		    (others || !strcmp(place->line.series, firing->series)))
			return is_recent(&place->line, firing->detected_ns) ? place : NULL;
	}
	return NULL;
}

/* Whether so many series of the last minute have lines of the same trigger and gate that further ones share
 * one. */
static bool are_many(const struct suppressed *log, const struct triggers_firing *firing, const char *gate)
{
	unsigned alike = 0;

	for (uint16_t at = log->newest; at != NONE && alike < SUPPRESSED_ALIKE_MAX;
	     at = log->place[at].older) {
		const struct suppressed_line *line = &log->place[at].line;

		if (!is_recent(line, firing->detected_ns))
			break;
		alike +=
			!line->others && !strcmp(line->gate, gate) && !strcmp(line->trigger, firing->trigger);
	}
	return alike == SUPPRESSED_ALIKE_MAX;
}

static bool is_worse(const struct triggers_firing *firing, const struct suppressed_line *line)
{
	if (line->count == 0 || firing->severity != line->severity)
		return line->count == 0 || firing->severity > line->severity;
	return firing->ratio > line->ratio;
}

static void fold(struct suppressed_line *line, const struct triggers_firing *firing)
{
	if (line->count == 0 || firing->detected_ns < line->first_ns)
		line->first_ns = firing->detected_ns;
	if (line->count == 0 || firing->detected_ns > line->last_ns)
		line->last_ns = firing->detected_ns;
	if (is_worse(firing, line)) {
		line->severity = firing->severity;
		line->ratio = firing->ratio;
		line->rank = firing->rank;
		line->step = firing->step;
		memcpy(line->series, firing->series, sizeof(line->series));
		memcpy(line->evidence, firing->evidence, sizeof(line->evidence));
	}
	line->count++;
}

void suppressed_add(struct suppressed *log, const struct triggers_firing *firing, enum triggers_gate gate)
{
	const char *name = triggers_gate_name(gate);
	struct place *place = find(log, firing, name, false);
	bool others = !place && are_many(log, firing, name);

	if (others)
		place = find(log, firing, name, true);
	if (place) {
		unlink_place(log, (uint16_t)(place - log->place));
		append(log, (uint16_t)(place - log->place));
	} else {
		place = add_place(log, hash_of(firing->trigger, name, firing->series, others));
		memcpy(place->line.trigger, firing->trigger, sizeof(place->line.trigger));
		snprintf(place->line.gate, sizeof(place->line.gate), "%s", name);
		place->line.others = others;
	}
	fold(&place->line, firing);
	log->changed = true;
}

/* --- looking --- */

size_t suppressed_count(const struct suppressed *log)
{
	return log->count;
}

uint64_t suppressed_forgotten(const struct suppressed *log)
{
	return log->forgotten;
}

const struct suppressed_line *suppressed_oldest(const struct suppressed *log)
{
	return log->oldest == NONE ? NULL : &log->place[log->oldest].line;
}

const struct suppressed_line *suppressed_newer(const struct suppressed *log,
					       const struct suppressed_line *line)
{
	const struct place *place = (const struct place *)(const void *)line;

	return place->newer == NONE ? NULL : &log->place[place->newer].line;
}

cJSON *suppressed_json(const struct suppressed_line *line)
{
	cJSON *json = cJSON_CreateObject();

	output_json_ns(json, "first_ns", line->first_ns);
	output_json_ns(json, "last_ns", line->last_ns);
	output_json_count(json, "count", line->count);
	output_json_text(json, "severity", triggers_severity_name(line->severity));
	output_json_text(json, "trigger", line->trigger);
	output_json_text(json, "series", line->series);
	cJSON_AddBoolToObject(json, "other_series", line->others);
	if (line->rank != UINT32_MAX)
		output_json_count(json, "rank", line->rank);
	if (line->step >= 0)
		output_json_signed(json, "step", line->step);
	output_json_text(json, "gate", line->gate);
	output_json_text(json, "evidence", line->evidence);
	return json;
}

bool suppressed_changed(const struct suppressed *log)
{
	return log->changed;
}

/* --- as bytes --- */

static void put(char **at, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		*(*at)++ = (char)(value >> 8 * i);
}

static void put_text(char **at, const char *text, size_t room)
{
	size_t bytes = strnlen(text, room - 1);

	put(at, bytes, 2);
	memcpy(*at, text, bytes);
	*at += bytes;
}

static void put_line(char **at, const struct suppressed_line *line)
{
	uint64_t ratio;

	memcpy(&ratio, &line->ratio, sizeof(ratio));
	put(at, (uint64_t)line->first_ns, 8);
	put(at, (uint64_t)line->last_ns, 8);
	put(at, line->count, 8);
	put(at, (uint64_t)line->step, 8);
	put(at, ratio, 8);
	put(at, line->rank, 4);
	put(at, (uint64_t)line->severity | (uint64_t)line->others << 8, 2);
	put_text(at, line->trigger, sizeof(line->trigger));
	put_text(at, line->gate, sizeof(line->gate));
	put_text(at, line->series, sizeof(line->series));
	put_text(at, line->evidence, sizeof(line->evidence));
}

int suppressed_save(struct suppressed *log, char **ret_bytes, size_t *ret_count)
{
	/* A line is never longer as bytes than in memory, whose texts have room for their lengths. */
	char *bytes = malloc(HEAD_BYTES + 16 + log->count * (sizeof(struct suppressed_line) + 16));
	char *body = bytes ? bytes + HEAD_BYTES : NULL, *at = body;

	if (!bytes)
		return -ENOMEM;
	put(&at, log->forgotten, 8);
	put(&at, log->count, 4);
	for (const struct suppressed_line *line = suppressed_oldest(log); line;
	     line = suppressed_newer(log, line))
		put_line(&at, line);
	size_t count = (size_t)(at - body);
	at = bytes;
	memcpy(at, MAGIC, sizeof(MAGIC));
	at += sizeof(MAGIC);
	put(&at, VERSION, 4);
	put(&at, count, 4);
	put(&at, crc32(0, (const Bytef *)body, (uInt)count), 4);
	put(&at, 0, 4);
	log->changed = false;
	*ret_bytes = bytes;
	*ret_count = HEAD_BYTES + count;
	return 0;
}

/* A cursor that ran out stays failed. */
struct cursor {
	const char *at;
	size_t left;
	bool failed;
};

static uint64_t get(struct cursor *cursor, unsigned bytes)
{
	uint64_t value = 0;

	if (cursor->failed || bytes > cursor->left) {
		cursor->failed = true;
		return 0;
	}
	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)(unsigned char)cursor->at[i] << 8 * i;
	cursor->at += bytes;
	cursor->left -= bytes;
	return value;
}

static void get_text(struct cursor *cursor, char *text, size_t room)
{
	size_t bytes = get(cursor, 2);

	if (cursor->failed || bytes > cursor->left || bytes >= room) {
		cursor->failed = true;
		return;
	}
	plain_text(text, room, cursor->at, bytes);
	cursor->at += bytes;
	cursor->left -= bytes;
}

static void get_line(struct cursor *cursor, struct suppressed_line *line)
{
	uint64_t ratio;

	line->first_ns = (int64_t)get(cursor, 8);
	line->last_ns = (int64_t)get(cursor, 8);
	line->count = get(cursor, 8);
	line->step = (int64_t)get(cursor, 8);
	ratio = get(cursor, 8);
	memcpy(&line->ratio, &ratio, sizeof(ratio));
	line->rank = (uint32_t)get(cursor, 4);
	line->severity = (enum triggers_severity)get(cursor, 1);
	line->others = get(cursor, 1) != 0;
	get_text(cursor, line->trigger, sizeof(line->trigger));
	get_text(cursor, line->gate, sizeof(line->gate));
	get_text(cursor, line->series, sizeof(line->series));
	get_text(cursor, line->evidence, sizeof(line->evidence));
	/* Differences of two times must not overflow. */
	cursor->failed |= line->severity > TRIGGERS_CRITICAL || line->count == 0 || line->step < -1 ||
			  line->first_ns > line->last_ns || line->first_ns < -(INT64_MAX / 2) ||
			  line->last_ns > INT64_MAX / 2;
}

static int parse_body(struct cursor *cursor, struct suppressed *log)
{
	log->forgotten = get(cursor, 8);
	uint64_t count = get(cursor, 4);
	if (count > SUPPRESSED_MAX)
		return -EBADMSG;
	for (uint64_t i = 0; i < count && !cursor->failed; i++) {
		struct suppressed_line line = {0};

		get_line(cursor, &line);
		if (!cursor->failed)
			add_place(log, hash_of(line.trigger, line.gate, line.series, line.others))->line =
				line;
	}
	return cursor->failed || cursor->left ? -EBADMSG : 0;
}

int suppressed_parse(const char *bytes, size_t count, struct suppressed **ret_log)
{
	struct cursor cursor = {bytes, count, false};
	struct suppressed *log;

	if (count < HEAD_BYTES || memcmp(bytes, MAGIC, sizeof(MAGIC)) != 0)
		return -EBADMSG;
	cursor.at += sizeof(MAGIC);
	cursor.left -= sizeof(MAGIC);
	uint64_t version = get(&cursor, 4), length = get(&cursor, 4), crc = get(&cursor, 4),
		 zero = get(&cursor, 4);
	if (version != VERSION || zero != 0 || length != cursor.left || length > SUPPRESSED_BYTES_MAX ||
	    crc != crc32(0, (const Bytef *)cursor.at, (uInt)length))
		return -EBADMSG;
	int r = suppressed_new(&log);
	if (r < 0)
		return r;
	r = parse_body(&cursor, log);
	if (r == 0)
		*ret_log = log;
	else
		suppressed_free(log);
	return r;
}

int suppressed_read(const char *store_path, struct suppressed **ret_log)
{
	char *bytes;
	size_t count;
	int fd = open(store_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	int r = paths_read_file(fd, SUPPRESSED_FILE, SUPPRESSED_BYTES_MAX, &bytes, &count);
	close(fd);
	if (r < 0)
		return r;
	r = suppressed_parse(bytes, count, ret_log);
	free(bytes);
	return r;
}
