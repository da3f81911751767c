/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pftrace_inside.h"

enum { NAMES_MAX = 1 << 17, NAMES_BYTES_MAX = 16 << 20 };

uint64_t pf_hash(uint64_t hash, struct reducer_text text)
{
	for (size_t i = 0; i < text.bytes; i++)
		hash = (hash ^ (unsigned char)text.data[i]) * 0x100000001b3u;
	hash = (hash ^ text.bytes) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

static bool grow(struct pf_names *names)
{
	uint32_t buckets = names->buckets ? names->buckets * 2 : 1024;
	uint32_t *bucket = calloc(buckets, sizeof(*bucket));
	struct pf_name *name = realloc(names->name, buckets / 2 * sizeof(*name));
	if (name)
		names->name = name;
	if (!bucket || !name) {
		free(bucket);
		return false;
	}
	names->room = buckets / 2;
	for (uint32_t i = 0; i < names->count; i++) {
		uint32_t at = (uint32_t)names->name[i].hash & (buckets - 1);
		while (bucket[at])
			at = (at + 1) & (buckets - 1);
		bucket[at] = i + 1;
	}
	free(names->bucket);
	names->bucket = bucket;
	names->buckets = buckets;
	return true;
}

static bool is(const struct pf_names *names, const struct pf_name *name, uint64_t hash,
	       enum pf_name_kind kind, struct reducer_text text)
{
	return name->hash == hash && name->kind == kind && name->bytes == text.bytes &&
	       (text.bytes == 0 || memcmp(names->text.data + name->at, text.data, text.bytes) == 0);
}

uint32_t pf_names_iid(struct pf_names *names, enum pf_name_kind kind, struct reducer_text text)
{
	uint64_t hash = pf_hash(0xcbf29ce484222325u + kind, text);
	uint32_t at = names->buckets ? (uint32_t)hash & (names->buckets - 1) : 0;
	for (; names->buckets && names->bucket[at]; at = (at + 1) & (names->buckets - 1)) {
		const struct pf_name *name = &names->name[names->bucket[at] - 1];
		if (is(names, name, hash, kind, text))
			return name->iid;
	}
	if (names->count == NAMES_MAX || text.bytes > NAMES_BYTES_MAX - names->text.bytes)
		return 0;
	if (names->count == names->room) {
		if (!grow(names))
			return 0;
		at = (uint32_t)hash & (names->buckets - 1);
		while (names->bucket[at])
			at = (at + 1) & (names->buckets - 1);
	}
	uint32_t start = (uint32_t)names->text.bytes;
	buffer_add_text(&names->text, text);
	if (names->text.failed) {
		names->text.failed = 0;
		return 0;
	}
	names->name[names->count] = (struct pf_name){
		.hash = hash,
		.iid = ++names->last_iid[kind],
		.at = start,
		.bytes = (uint32_t)text.bytes,
		.kind = (uint8_t)kind,
	};
	names->bucket[at] = ++names->count;
	return names->last_iid[kind];
}

void pf_names_free(struct pf_names *names)
{
	free(names->name);
	free(names->bucket);
	buffer_free(&names->text);
}
