/* SPDX-License-Identifier: Apache-2.0 */
#include "device_busy.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ns.h"
#include "plain_text.h"

#define BIN_MIN_NS  INT64_C(100000000)
#define BIN_MAX_NS  INT64_C(1000000000)
#define TIME_MAX_NS (INT64_C(1) << 61)

enum { SPANS_MAX = 1 << 26, BINS_MAX = 1 << 20, TRACKS_MAX = 1 << 16, NAMES_MAX = 256 };

struct piece {
	int64_t start_ns, end_ns;
	uint32_t what; /* of waits: number of the name */
};

struct pieces {
	struct piece *piece;
	size_t count, room;
};

struct device {
	int64_t number;
	uint32_t series;
	struct pieces spans;
	float *percent; /* a bin each */
};

/* What the names of processes and threads said of a track or group. */
enum line { LINE_UNKNOWN = 0, LINE_OTHER, LINE_STREAM, LINE_OPS };
struct named {
	uint64_t key;
	int64_t device; /* of groups: -1 = none */
	bool is_gpu;
	enum line line; /* of tracks */
};

struct named_table {
	struct named *named;
	size_t count, room;
	size_t last; /* found last: events come track by track */
};

struct step {
	uint32_t series;
	int64_t start_ns, end_ns, step;
};

struct device_busy {
	struct device device[DEVICE_BUSY_DEVICES_MAX];
	unsigned n_devices;
	struct named_table groups, tracks;
	struct pieces waits;
	char name[NAMES_MAX][TRIGGERS_NAME_MAX];
	uint32_t n_names;
	struct step *steps;
	size_t n_steps, steps_room, next_step;
	int64_t last_ns; /* end of the capture */
	int64_t from_ns, bin_ns;
	size_t n_bins, next_bin;
	unsigned next_device;
	uint16_t *wait; /* of a bin: number + 1 of the name */
};

int device_busy_new(struct device_busy **ret_busy)
{
	struct device_busy *busy = calloc(1, sizeof(*busy));
	if (!busy)
		return -ENOMEM;
	busy->last_ns = INT64_MIN;
	*ret_busy = busy;
	return 0;
}

void device_busy_free(struct device_busy *busy)
{
	if (!busy)
		return;
	for (unsigned i = 0; i < busy->n_devices; i++) {
		free(busy->device[i].spans.piece);
		free(busy->device[i].percent);
	}
	free(busy->groups.named);
	free(busy->tracks.named);
	free(busy->waits.piece);
	free(busy->steps);
	free(busy->wait);
	free(busy);
}

/* ---- reading ---- */

/* So that no difference of two times overflows. */
static int64_t limited(int64_t ns)
{
	return ns > TIME_MAX_NS ? TIME_MAX_NS : ns < -TIME_MAX_NS ? -TIME_MAX_NS : ns;
}

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

static struct named *find(struct named_table *table, uint64_t key)
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

static struct named *take(struct named_table *table, uint64_t key)
{
	struct named *named = find(table, key);
	if (named || table->count == TRACKS_MAX)
		return named;
	if (table->count == table->room) {
		size_t room = table->room ? 2 * table->room : 64;
		struct named *larger = realloc(table->named, room * sizeof(*larger));
		if (!larger)
			return NULL;
		table->named = larger;
		table->room = room;
	}
	table->named[table->count] = (struct named){.key = key, .device = -1};
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
	struct named *group = take(&busy->groups, key_of(event, false));
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
	struct named *track = take(&busy->tracks, key_of(event, true));
	if (!track)
		return;
	track->line = name.bytes >= 6 && memcmp(name.data, "Stream", 6) == 0 ? LINE_STREAM
		      : is(name, "XLA Ops")                                  ? LINE_OPS
									     : LINE_OTHER;
}

static int append(struct pieces *pieces, struct piece piece)
{
	if (pieces->count == pieces->room) {
		size_t room = pieces->room ? 2 * pieces->room : 1024;
		struct piece *larger =
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
	const struct named *group = find(&busy->groups, key_of(event, false));
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
	const struct named *track = find(&busy->tracks, key_of(event, true));
	if (!track || track->line != (group->is_gpu ? LINE_STREAM : LINE_OPS) ||
	    (!group->is_gpu && one_of(waiting_ops, COUNT(waiting_ops), event->name)))
		return -1;
	return group->device;
}

/* Its number, NAMES_MAX where there is no room for another one. */
static uint32_t name_number(struct device_busy *busy, struct reducer_text name)
{
	char text[TRIGGERS_NAME_MAX];
	plain_text(text, sizeof(text), name.data, name.bytes);
	for (uint32_t i = 0; i < busy->n_names; i++)
		if (strcmp(busy->name[i], text) == 0)
			return i;
	if (busy->n_names == NAMES_MAX)
		return NAMES_MAX;
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
	struct piece piece = {.start_ns = limited(event->start_ns),
			      .end_ns = limited(ns_add(event->start_ns, event->duration_ns))};
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
	return piece.what < NAMES_MAX ? append(&busy->waits, piece) : 0;
}

int device_busy_step(struct device_busy *busy, uint32_t series, int64_t start_ns, int64_t end_ns,
		     int64_t step)
{
	if (busy->n_steps == busy->steps_room) {
		size_t room = busy->steps_room ? 2 * busy->steps_room : 256;
		struct step *larger = realloc(busy->steps, room * sizeof(*larger));
		if (!larger)
			return -ENOMEM;
		busy->steps = larger;
		busy->steps_room = room;
	}
	busy->steps[busy->n_steps++] = (struct step){
		.series = series, .start_ns = limited(start_ns), .end_ns = limited(end_ns), .step = step};
	return 0;
}

/* ---- bins ---- */

static int by_start(const void *a_, const void *b_)
{
	const struct piece *a = a_, *b = b_;
	return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

static int by_length(const void *a_, const void *b_)
{
	const struct step *a = a_, *b = b_;
	int64_t a_ns = ns_sub(a->end_ns, a->start_ns), b_ns = ns_sub(b->end_ns, b->start_ns);
	int a_step = a->step != INT64_MIN, b_step = b->step != INT64_MIN;
	if (a_step != b_step)
		return a_step - b_step;
	return a_ns < b_ns ? -1 : a_ns > b_ns;
}

static int by_begin(const void *a_, const void *b_)
{
	const struct step *a = a_, *b = b_;
	return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

static void sort(struct pieces *pieces)
{
	if (pieces->count)
		qsort(pieces->piece, pieces->count, sizeof(*pieces->piece), by_start);
}

/* Where the bins lie; 0 of them without devices. */
static void lay_out(struct device_busy *busy)
{
	busy->from_ns = INT64_MAX;
	for (unsigned i = 0; i < busy->n_devices; i++) {
		struct pieces *spans = &busy->device[i].spans;
		sort(spans);
		if (spans->count && spans->piece[0].start_ns < busy->from_ns)
			busy->from_ns = spans->piece[0].start_ns;
	}
	if (busy->from_ns == INT64_MAX)
		return;
	busy->bin_ns = BIN_MAX_NS;
	if (busy->n_steps) {
		/* Phases stand before all steps. */
		size_t phases = 0;
		qsort(busy->steps, busy->n_steps, sizeof(*busy->steps), by_length);
		while (phases < busy->n_steps && busy->steps[phases].step == INT64_MIN)
			phases++;
		if (phases < busy->n_steps) {
			const struct step *median = &busy->steps[phases + (busy->n_steps - phases) / 2];
			busy->bin_ns = ns_sub(median->end_ns, median->start_ns) / 3;
		}
		qsort(busy->steps, busy->n_steps, sizeof(*busy->steps), by_begin);
	}
	busy->bin_ns = busy->bin_ns < BIN_MIN_NS   ? BIN_MIN_NS
		       : busy->bin_ns > BIN_MAX_NS ? BIN_MAX_NS
						   : busy->bin_ns;
	while (ns_sub(busy->last_ns, busy->from_ns) / busy->bin_ns >= BINS_MAX)
		busy->bin_ns *= 2;
	busy->n_bins = (size_t)(ns_sub(busy->last_ns, busy->from_ns) / busy->bin_ns);
}

/* [start, end) within a bin. */
static int64_t overlap(const struct device_busy *busy, size_t bin, int64_t start_ns, int64_t end_ns)
{
	int64_t from_ns = busy->from_ns + (int64_t)bin * busy->bin_ns, to_ns = from_ns + busy->bin_ns;
	int64_t begin = start_ns > from_ns ? start_ns : from_ns, end = end_ns < to_ns ? end_ns : to_ns;
	return end > begin ? end - begin : 0;
}

static size_t bin_of(const struct device_busy *busy, int64_t ns)
{
	return ns <= busy->from_ns ? 0 : (size_t)((ns - busy->from_ns) / busy->bin_ns);
}

static int fill_device(const struct device_busy *busy, struct device *device)
{
	int64_t covered_ns = INT64_MIN;
	device->percent = calloc(busy->n_bins, sizeof(*device->percent));
	if (!device->percent)
		return -ENOMEM;
	for (size_t i = 0; i < device->spans.count; i++) {
		int64_t start_ns = device->spans.piece[i].start_ns, end_ns = device->spans.piece[i].end_ns;
		start_ns = start_ns > covered_ns ? start_ns : covered_ns;
		covered_ns = end_ns > covered_ns ? end_ns : covered_ns;
		for (size_t bin = bin_of(busy, start_ns); start_ns < end_ns && bin < busy->n_bins; bin++) {
			int64_t ns = overlap(busy, bin, start_ns, end_ns);
			if (!ns)
				break;
			device->percent[bin] += (float)(100.0 * (double)ns / (double)busy->bin_ns);
		}
	}
	free(device->spans.piece);
	device->spans = (struct pieces){0};
	return 0;
}

static int fill_waits(struct device_busy *busy)
{
	busy->wait = calloc(busy->n_bins, sizeof(*busy->wait));
	if (!busy->wait)
		return -ENOMEM;
	sort(&busy->waits);
	for (size_t i = 0; i < busy->waits.count; i++) {
		const struct piece *wait = &busy->waits.piece[i];
		for (size_t bin = bin_of(busy, wait->start_ns); bin < busy->n_bins; bin++) {
			int64_t ns = overlap(busy, bin, wait->start_ns, wait->end_ns);
			if (2 * ns >= busy->bin_ns)
				busy->wait[bin] = (uint16_t)(wait->what + 1);
			else if (wait->end_ns <= busy->from_ns + (int64_t)(bin + 1) * busy->bin_ns)
				break;
		}
	}
	return 0;
}

int device_busy_series(struct device_busy *busy, struct triggers_engine *engine)
{
	lay_out(busy);
	if (!busy->n_bins)
		return 0;
	int result = fill_waits(busy);
	for (unsigned i = 0; i < busy->n_devices && result == 0; i++) {
		struct device *device = &busy->device[i];
		char name[TRIGGERS_NAME_MAX];
		snprintf(name, sizeof(name), "device:%lld:busy", (long long)device->number);
		struct triggers_series_key key = {.role = TRIGGERS_COUNTER,
						  .rank = UINT32_MAX,
						  .track = (uint64_t)1 << 32 | i,
						  .name = name,
						  .alarms = 1};
		result = fill_device(busy, device);
		device->series = triggers_engine_series(engine, &key);
	}
	return result;
}

/* ---- telling ---- */

struct device_busy_next device_busy_next(struct device_busy *busy, int64_t now_ns)
{
	struct device_busy_next next = {.kind = DEVICE_BUSY_NONE};
	int64_t bin_end_ns = busy->next_bin < busy->n_bins
				     ? busy->from_ns + (int64_t)(busy->next_bin + 1) * busy->bin_ns
				     : INT64_MAX;
	const struct step *step =
		busy->n_bins && busy->next_step < busy->n_steps ? &busy->steps[busy->next_step] : NULL;
	/* Not at now_ns: the step before, which ends then, is told of first. */
	if (step && step->start_ns < now_ns && step->start_ns <= bin_end_ns) {
		busy->next_step++;
		next = (struct device_busy_next){.kind = DEVICE_BUSY_OPEN,
						 .series = step->series,
						 .at_ns = step->start_ns,
						 .step = step->step == INT64_MIN ? -1 : step->step};
	} else if (busy->next_bin < busy->n_bins && bin_end_ns <= now_ns) {
		const struct device *device = &busy->device[busy->next_device];
		uint16_t wait = busy->wait[busy->next_bin];
		next = (struct device_busy_next){
			.kind = DEVICE_BUSY_SAMPLE,
			.series = device->series,
			.at_ns = bin_end_ns,
			.sample = {.start_ns = bin_end_ns,
				   .value = (double)device->percent[busy->next_bin],
				   .step = -1,
				   .sample = -1,
				   .note = wait ? busy->name[wait - 1] : NULL},
		};
		busy->next_device = (busy->next_device + 1) % busy->n_devices;
		busy->next_bin += busy->next_device == 0;
	}
	return next;
}
