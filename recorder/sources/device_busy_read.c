/* SPDX-License-Identifier: Apache-2.0 */
#include "device_busy_object.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ns.h"
#include "plain_text.h"

enum { SPANS_MAX = 1 << 26, TRACKS_MAX = 1 << 16 };

/* ---- what processes and threads are ---- */

static uint64_t hash(uint64_t seed, struct reducer_text text)
{
	for (size_t i = 0; i < text.bytes; i++)
		seed = (seed ^ (unsigned char)text.data[i]) * 0x100000001b3u;
	return seed ^ seed >> 29;
}

static uint64_t key_of(const struct reducer_event *event, bool with_track)
{
	uint64_t key = hash(0xcbf29ce484222325u, event->group);
	return with_track ? hash(key * 31 + 1, event->track) : key;
}

static struct device_named *find(struct device_named_table *table, uint64_t key)
{
	if (table->last < table->count && table->named[table->last].key == key)
		return &table->named[table->last];
	for (size_t i = 0; i < table->count; i++)
		if (table->named[i].key == key) {
			table->last = i;
			return &table->named[i];
		}
	return NULL;
}

static struct device_named *take(struct device_named_table *table, uint64_t key)
{
	struct device_named *named = find(table, key);
	if (named || table->count == TRACKS_MAX)
		return named;
	if (table->count == table->room) {
		size_t room = table->room ? 2 * table->room : 64;
		struct device_named *larger = realloc(table->named, room * sizeof(*larger));
		if (!larger)
			return NULL;
		table->named = larger;
		table->room = room;
	}
	table->named[table->count] = (struct device_named){.key = key, .device = -1};
	return &table->named[table->count++];
}

static bool is(struct reducer_text text, const char *wanted)
{
	return text.bytes == strlen(wanted) && memcmp(text.data, wanted, text.bytes) == 0;
}

/* The value of "name" among the args: {"name":"/device:TPU:0"}. */
static struct reducer_text name_of_args(struct reducer_text args)
{
	const char *at = args.bytes ? memmem(args.data, args.bytes, "\"name\"", 6) : NULL;
	const char *end = args.data + args.bytes;
	if (!at)
		return (struct reducer_text){0};
	for (at += 6; at < end && *at != '"'; at++)
		;
	const char *from = at < end ? at + 1 : end;
	const char *to = memchr(from, '"', (size_t)(end - from));
	return (struct reducer_text){from, to ? (size_t)(to - from) : 0};
}

/* "/device:TPU:3" alone: "/device:TPU:3 SparseCore 1" is a part of one. */
static void on_process(struct device_busy *busy, const struct reducer_event *event)
{
	static const char prefix[] = "/device:";
	struct reducer_text name = name_of_args(event->args);
	struct device_named *group = take(&busy->groups, key_of(event, false));
	size_t at = name.bytes;
	int64_t number = 0;
	while (at && name.data[at - 1] >= '0' && name.data[at - 1] <= '9')
		at--;
	if (!group || name.bytes < sizeof(prefix) || memcmp(name.data, prefix, sizeof(prefix) - 1) != 0 ||
	    at == name.bytes || name.bytes - at > 9 || name.data[at - 1] != ':')
		return;
	for (; at < name.bytes; at++)
		number = number * 10 + (name.data[at] - '0');
	group->device = number;
	group->is_gpu = memmem(name.data, name.bytes, ":GPU:", 5) != NULL;
}

static void on_thread(struct device_busy *busy, const struct reducer_event *event)
{
	struct reducer_text name = name_of_args(event->args);
	struct device_named *track = take(&busy->tracks, key_of(event, true));
	if (!track)
		return;
	track->line = name.bytes >= 6 && memcmp(name.data, "Stream", 6) == 0 ? LINE_STREAM
		      : is(name, "XLA Ops")                                  ? LINE_OPS
									     : LINE_OTHER;
}

/* ---- what spans are ---- */

static int append(struct device_pieces *pieces, struct device_piece piece)
{
	if (pieces->count == pieces->room) {
		size_t room = pieces->room ? 2 * pieces->room : 1024;
		struct device_piece *larger =
			room > SPANS_MAX ? NULL : realloc(pieces->piece, room * sizeof(*larger));
		if (!larger)
			return room > SPANS_MAX ? -E2BIG : -ENOMEM;
		pieces->piece = larger;
		pieces->room = room;
	}
	pieces->piece[pieces->count++] = piece;
	return 0;
}

static struct device *device_of(struct device_busy *busy, int64_t number)
{
	for (unsigned i = 0; i < busy->n_devices; i++)
		if (busy->device[i].number == number)
			return &busy->device[i];
	if (busy->n_devices == DEVICE_BUSY_DEVICES_MAX)
		return NULL;
	struct device *device = &busy->device[busy->n_devices++];
	device->number = number;
	device->series = TRIGGERS_SERIES_NONE;
	return device;
}

static const char *const kineto_work[] = {"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"};

static const char *const waiting_ops[] = {"infeed*", "outfeed*",   "send*",
					  "recv*",   "host send*", "host recv*"};

static const char *const host_waits[] = {
	/* XProf, TensorFlow */
	"*TransferToDevice*",
	"*TransferFromDevice*",
	"tpu::System::Execute*",
	"TpuExecuteOp",
	"*EnqueueProgram*",
	"PjrtAsyncWait*",
	"Wait for donation holds*",
	"Wait for usage holds*",
	"CompleteCallbacks*",
	"TpuCompiler::Compile*",
	"ProgramCacheMiss*",
	"MegaScale: *",
	"Infeed*",
	"Outfeed*",
	"Iterator*",
	"*block_until_ready*",
	"*BlockUntilReady*",
	/* PyTorch */
	"cudaDeviceSynchronize",
	"cudaStreamSynchronize",
	"cudaEventSynchronize",
	"hipDeviceSynchronize",
	"hipStreamSynchronize",
	"hipEventSynchronize",
	"aten::_local_scalar_dense",
	"enumerate(DataLoader)#*",
	"*barrier*",
	/* ours */
	"load",
	"next(*)",
};

static bool one_of(const char *const *patterns, size_t count, struct reducer_text name)
{
	char text[TRIGGERS_NAME_MAX];
	snprintf(text, sizeof(text), "%.*s", (int)(name.bytes < sizeof(text) ? name.bytes : sizeof(text) - 1),
		 name.bytes ? name.data : "");
	for (size_t i = 0; i < count; i++)
		if (triggers_pattern_match(patterns[i], text))
			return true;
	return false;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The device that a span is work of, -1 = none; *ret_host: it is on no device's track. */
static int64_t worked_by(struct device_busy *busy, const struct reducer_event *event, bool *ret_host)
{
	const struct device_named *group = find(&busy->groups, key_of(event, false));
	*ret_host = false;
	for (size_t i = 0; i < COUNT(kineto_work); i++)
		if (is(event->category, kineto_work[i])) {
			char number[12];
			snprintf(number, sizeof(number), "%.*s",
				 (int)(event->group.bytes < 8 ? event->group.bytes : 8),
				 event->group.bytes ? event->group.data : "");
			return number[0] >= '0' && number[0] <= '9' ? strtol(number, NULL, 10) : -1;
		}
	if (!group || group->device < 0) {
		*ret_host = true;
		return -1;
	}
	const struct device_named *track = find(&busy->tracks, key_of(event, true));
	if (!track || track->line != (group->is_gpu ? LINE_STREAM : LINE_OPS) ||
	    (!group->is_gpu && one_of(waiting_ops, COUNT(waiting_ops), event->name)))
		return -1;
	return group->device;
}

/* Its number, BUSY_NAMES_MAX where there is no room for another one. */
static uint32_t name_number(struct device_busy *busy, struct reducer_text name)
{
	char text[TRIGGERS_NAME_MAX];
	plain_text(text, sizeof(text), name.data, name.bytes);
	for (uint32_t i = 0; i < busy->n_names; i++)
		if (strcmp(busy->name[i], text) == 0)
			return i;
	if (busy->n_names == BUSY_NAMES_MAX)
		return BUSY_NAMES_MAX;
	memcpy(busy->name[busy->n_names], text, sizeof(text));
	return busy->n_names++;
}

int device_busy_event(struct device_busy *busy, const struct reducer_event *event)
{
	bool host;
	if (is(event->name, "process_name"))
		on_process(busy, event);
	else if (is(event->name, "thread_name"))
		on_thread(busy, event);
	if (event->kind != DREC_SPAN || !event->has_time || !event->has_duration || event->duration_ns < 0)
		return 0;
	struct device_piece piece = {
		.start_ns = device_busy_limited(event->start_ns),
		.end_ns = device_busy_limited(ns_add(event->start_ns, event->duration_ns))};
	if (piece.end_ns > busy->last_ns)
		busy->last_ns = piece.end_ns;
	int64_t number = worked_by(busy, event, &host);
	struct device *device = number >= 0 ? device_of(busy, number) : NULL;
	if (device)
		return append(&device->spans, piece);
	/* What is shorter covers half of no bin. */
	if (!host || event->duration_ns < BIN_MIN_NS / 2 ||
	    !one_of(host_waits, COUNT(host_waits), event->name))
		return 0;
	piece.what = name_number(busy, event->name);
	return piece.what < BUSY_NAMES_MAX ? append(&busy->waits, piece) : 0;
}
