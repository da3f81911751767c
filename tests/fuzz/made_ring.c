/* SPDX-License-Identifier: Apache-2.0 */
#include "made_ring.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "ring_maker.h"

enum { CHUNKS = 64, CHUNK = 8192, SLOTS = 16 };

static uint32_t add_track(struct ring_maker *maker, unsigned kind, uint32_t tid, const char *group, const char *name)
{
	struct drec_track_text head = {kind, (uint32_t)strlen(group), (uint32_t)strlen(name), tid};
	char text[sizeof(head) + 128];
	memcpy(text, &head, sizeof(head));
	memcpy(text + sizeof(head), group, head.group_bytes);
	memcpy(text + sizeof(head) + head.group_bytes, name, head.name_bytes);
	return ring_maker_text(maker, DREC_DICT_TRACK, text,
			       (uint32_t)sizeof(head) + head.group_bytes + head.name_bytes);
}

static void add_member(struct ring_maker *maker, const char *text)
{
	ring_maker_text(maker, DREC_DICT_META, text, (uint32_t)strlen(text));
}

static const char args[] = "{\"Input Dims\":[[2,3],[]],\"x\":1.5,\"s\":\"q\\\"\\u00e9\"}";

/* One event of each kind, every addition on some of them. */
static void add_kinds(struct ring_maker *maker, uint32_t slot, uint32_t track, uint32_t name, uint32_t category)
{
	static const char extra[] = "\"bp\":\"e\",\"s\":\"t\"", inline_name[] = "void kernel<1, \"x\">(\xc3\xa9)";
	for (uint8_t kind = DREC_SPAN; kind < DREC_KIND_LIMIT; kind++) {
		bool mark = kind == DREC_MARK || kind == DREC_LOSS;
		struct drec_event event = {.kind = kind, .depth = kind % 3, .name = name, .track = track,
					   .category = (uint16_t)(mark ? 1u + kind % 3 : category),
					   .start = 2000 + 100u * kind, .dur_or_value = 50};
		if (kind == DREC_COUNTER)
			event.dur_or_value = drec_value_bits(-1.25);
		if (kind == DREC_META || kind == DREC_OTHER)
			event.flags |= DREC_FLAG_NOTIME;
		if (kind >= DREC_FLOW_BEGIN && kind <= DREC_LOSS) {
			event.flags |= DREC_FLAG_ID;
			event.id = 5000 + kind;
		}
		if (kind % 2) {
			event.flags |= DREC_FLAG_PS | DREC_FLAG_ARGS_JSON;
			event.start_ps = 999;
			event.dur_ps = 1;
			event.args = args;
			event.args_bytes = sizeof(args) - 1;
		}
		if (kind % 3 == 0 || kind == DREC_OTHER) {
			event.flags |= DREC_FLAG_NAME | DREC_FLAG_EXTRA;
			event.name = 0;
			event.name_text = inline_name;
			event.name_bytes = sizeof(inline_name) - 1;
			event.extra = extra;
			event.extra_bytes = sizeof(extra) - 1;
		}
		if (kind % 5 == 0)
			event.flags |= DREC_FLAG_ABS;
		ring_maker_append(maker, slot, &event, event.start + 50);
	}
}

static void add_xstat(struct ring_maker *maker, uint32_t slot, uint32_t track, uint32_t name)
{
	static const char stats[] = "\x22\x04\x08\x01\x18\x05";
	struct drec_event event = {.kind = DREC_SPAN, .flags = DREC_FLAG_ARGS_XSTAT, .depth = 1, .name = name,
				   .track = track, .start = 9000, .dur_or_value = 7, .args = stats,
				   .args_bytes = sizeof(stats) - 1};
	ring_maker_append(maker, slot, &event, 9007);
}

uint8_t *made_ring(bool fed, size_t *ret_bytes)
{
	struct ring_maker *maker = ring_maker_new(CHUNKS, CHUNK, SLOTS);
	maker->header->created_mono_ns = 0;
	maker->header->pid = 4242;
	if (fed) {
		add_member(maker, "\"driverec.root\":\"array\"");
		add_member(maker, "\"driverec.base\":1711964646000000000");
	}
	add_member(maker, "\"distributedInfo\":{\"rank\":0}");
	uint32_t thread = add_track(maker, DREC_TRACK_THREAD, 77, "", "main");
	uint32_t stream = add_track(maker, DREC_TRACK_STREAM, 0, "GPU 0", "stream 7");
	uint32_t source = add_track(maker, DREC_TRACK_SOURCE, 0, "0", "\"stream 7\"");
	uint32_t name = ring_maker_name(maker, "aten::mm");
	uint32_t category = ring_maker_text(maker, DREC_DICT_CATEGORY, "cpu_op", 6);
	ring_maker_register(maker, 0, 77);
	ring_maker_register(maker, 1, 78);
	ring_maker_take(maker, 0, 5);
	add_kinds(maker, 0, fed ? source : thread, name, category);
	ring_maker_close(maker, 0);
	ring_maker_take(maker, 1, 9);
	add_kinds(maker, 1, fed ? source : stream, name, category);
	add_xstat(maker, 1, stream, name);
	ring_maker_take(maker, 0, 6);
	add_kinds(maker, 0, 0, 0, 0);
	ring_maker_push(maker, 0, name, 3000);
	uint8_t *bytes = maker->bytes;
	*ret_bytes = maker->size;
	free(maker);
	return bytes;
}
