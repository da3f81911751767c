/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void fuzz_require(bool holds, const char *format, ...)
{
	if (holds)
		return;
	va_list args;
	va_start(args, format);
	fputs("does not hold: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	abort();
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t count)
{
	const unsigned char *p = bytes;
	for (size_t i = 0; i < count; i++)
		hash = (hash ^ p[i]) * 0x100000001b3u;
	return (hash ^ count) * 0x100000001b3u;
}

enum { DICE_BYTES = 4096 }; /* more would make the dice slower than the readers */

struct fuzz_dice fuzz_dice(const uint8_t *data, size_t size)
{
	return (struct fuzz_dice){mix(size, data, size < DICE_BYTES ? size : DICE_BYTES)};
}

uint64_t fuzz_roll(struct fuzz_dice *dice, uint64_t limit)
{
	dice->state = dice->state * 6364136223846793005u + 1442695040888963407u;
	return (dice->state >> 33) % limit;
}

int fuzz_file(const void *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	fuzz_require(fd >= 0, "no file in memory");
	fuzz_require(pwrite(fd, data, size, 0) == (ssize_t)size, "the file in memory is full");
	return fd;
}

char *fuzz_file_bytes(int fd, size_t *ret_size)
{
	off_t size = lseek(fd, 0, SEEK_END);
	fuzz_require(size >= 0, "no size");
	char *bytes = malloc((size_t)size + 1);
	fuzz_require(bytes && pread(fd, bytes, (size_t)size, 0) == (ssize_t)size, "cannot be read back");
	bytes[size] = 0;
	*ret_size = (size_t)size;
	return bytes;
}

const char *fuzz_file_path(int fd)
{
	static char path[64];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return path;
}

static uint64_t mix_text(uint64_t hash, struct reducer_text text)
{
	fuzz_require(text.data || text.bytes == 0, "a text of %zu bytes that is nowhere", text.bytes);
	return mix(hash, text.data, text.bytes);
}

static void note_hash(struct fuzz_heard *heard, uint64_t hash)
{
	if (heard->count < FUZZ_HEARD_MAX)
		heard->hash[heard->count] = hash;
	heard->count++;
	heard->all = mix(heard->all, &hash, sizeof(hash));
}

static bool says(void)
{
	static int said = -1;
	if (said < 0)
		said = getenv("FUZZ_SAY") != NULL;
	return said;
}

static void say_text(const char *key, struct reducer_text text)
{
	if (text.bytes)
		fprintf(stderr, " %s=%.*s", key, (int)text.bytes, text.data);
}

static void say_event(const struct reducer_event *event)
{
	fprintf(stderr, "%s", drec_kind_name(event->kind));
	say_text("name", event->name);
	say_text("cat", event->category);
	say_text("pid", event->group);
	say_text("tid", event->track);
	if (event->has_time)
		fprintf(stderr, " ts=%lld.%03u", (long long)event->start_ns, event->start_ps);
	if (event->has_duration)
		fprintf(stderr, " dur=%lld.%03u", (long long)event->duration_ns, event->duration_ps);
	if (event->has_id)
		fprintf(stderr, " id=%llu", (unsigned long long)event->id);
	say_text("args", event->args);
	say_text("extra", event->extra);
	fputc('\n', stderr);
}

static int hear_event(void *context, const struct reducer_event *event)
{
	struct fuzz_heard *heard = context;
	fuzz_require(event->kind > 0 && event->kind < DREC_KIND_LIMIT, "kind %u", event->kind);
	fuzz_require(event->start_ps < 1000 && event->duration_ps < 1000, "%u and %u ps", event->start_ps,
		     event->duration_ps);
	/* A counter's value is that of its args, which a writer may have to mend. */
	bool counter = event->kind == DREC_COUNTER && !heard->meaning;
	uint64_t value = counter ? drec_value_bits(event->value) : 0;
	uint64_t numbers[] = {event->kind, event->has_time, event->has_duration, event->has_id, event->mark,
			      event->has_time ? (uint64_t)event->start_ns : 0, event->has_time ? event->start_ps : 0,
			      event->has_duration ? (uint64_t)event->duration_ns : 0,
			      event->has_duration ? event->duration_ps : 0, event->has_id ? event->id : 0, value,
			      heard->meaning ? 0 : event->args_flag, event->count};
	uint64_t hash = mix(1, numbers, sizeof(numbers));
	hash = mix_text(hash, event->name);
	hash = mix_text(hash, event->category);
	if (!heard->meaning) {
		const struct reducer_text texts[] = {event->name_raw, event->category_raw, event->group, event->track,
						     event->args, event->extra};
		for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
			hash = mix_text(hash, texts[i]);
		hash = mix(hash, &event->offset, sizeof(event->offset));
		hash = mix(hash, &event->bytes, sizeof(event->bytes));
	}
	note_hash(heard, hash);
	heard->events++;
	if (says())
		say_event(event);
	return heard->also.event ? heard->also.event(heard->also.context, event) : 0;
}

static int hear_member(void *context, const struct reducer_member *member)
{
	struct fuzz_heard *heard = context;
	uint64_t hash = mix_text(mix_text(2, member->key), member->value);
	/* A writer may put members that came late elsewhere. */
	if (!heard->meaning)
		note_hash(heard, hash);
	heard->members++;
	heard->like_event |= member->key.bytes == 2 && memcmp(member->key.data, "ph", 2) == 0;
	if (says())
		fprintf(stderr, "member %.*s=%.*s\n", (int)member->key.bytes, member->key.data,
			(int)member->value.bytes, member->value.data);
	return heard->also.member ? heard->also.member(heard->also.context, member) : 0;
}

struct reducer_sink fuzz_hear(struct fuzz_heard *heard)
{
	return (struct reducer_sink){heard, hear_event, hear_member};
}

void fuzz_same(const struct fuzz_heard *a, const struct fuzz_heard *b, const char *what)
{
	uint64_t common = a->count < b->count ? a->count : b->count;
	for (uint64_t i = 0; i < common && i < FUZZ_HEARD_MAX; i++)
		fuzz_require(a->hash[i] == b->hash[i], "%s: the same event or member number %llu", what,
			     (unsigned long long)i);
	fuzz_require(a->count == b->count, "%s: as many events and members: %llu and %llu", what,
		     (unsigned long long)a->count, (unsigned long long)b->count);
	fuzz_require(a->all == b->all, "%s: the same events and members", what);
}

void fuzz_same_report(const struct reducer_read_report *a, const struct reducer_read_report *b, const char *what)
{
	for (unsigned i = 0; i < a->n_problems && i < b->n_problems; i++)
		fuzz_require(a->problem[i].offset == b->problem[i].offset &&
				     strcmp(a->problem[i].what, b->problem[i].what) == 0,
			     "%s: the same problem: \"%s\" at %llu and \"%s\" at %llu", what, a->problem[i].what,
			     (unsigned long long)a->problem[i].offset, b->problem[i].what,
			     (unsigned long long)b->problem[i].offset);
	const uint64_t in_a[] = {a->text_bytes, a->events, a->damaged, a->skipped_bytes, a->n_problems,
				 (uint64_t)a->array_root, (uint64_t)a->has_base, (uint64_t)a->base_unix_ns};
	const uint64_t in_b[] = {b->text_bytes, b->events, b->damaged, b->skipped_bytes, b->n_problems,
				 (uint64_t)b->array_root, (uint64_t)b->has_base, (uint64_t)b->base_unix_ns};
	static const char *const names[] = {"text bytes", "events", "damaged", "skipped bytes", "problems",
					    "array root", "has base", "base"};
	for (size_t i = 0; i < sizeof(in_a) / sizeof(in_a[0]); i++)
		fuzz_require(in_a[i] == in_b[i], "%s: the same in the report: %s %llu and %llu", what, names[i],
			     (unsigned long long)in_a[i], (unsigned long long)in_b[i]);
}
