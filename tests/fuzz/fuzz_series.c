/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of events of producers through sources/series.h into the trigger engine: saved and restored at any place
 * the series make the same of what follows as those that went on; and series restored from damaged bytes stay in bounds.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <driverec/event.h>

#include "engine_pair.h"
#include "fuzz.h"
#include "fuzz_bytes.h"
#include "sources/series.h"

enum {
	CALLS_MAX = 400,
	RESTARTS_MAX = 6,
	DAMAGES_MAX = 2,
	BURST_MAX = 64,
	SOURCES = 4,
	STREAMS_FROM = 6,
	TRACKS = 8
};

struct program {
	struct fuzz_bytes in;
	struct pair *pair;
	struct series *series[PAIR_ENGINES];
	int64_t now_ns;
	int64_t step;
	unsigned restarts, damages;
};

static const char *const names[] = {
	"step",
	"load",
	"next(iterator)",
	"ProfilerStep#7",
	"ProfilerStep#8",
	"eval_step",
	"save_checkpoint",
	"ncclDevKernel_AllReduce",
	"matmul",
	"device:0:power",
	"device:0:duty_cycle",
	"train",
	"eval",
	"checkpoint",
	"compile",
	"first",
	"load@eval",
	"validation_step",
	"",
	"ProfilerStep#999999999999",
	"a name that is far longer than any text of a series of the trigger engine may be, which is 63 bytes",
};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

static int name_of(void *context, uint32_t id, const char **ret_text, size_t *ret_bytes)
{
	(void)context;
	if (id == 0 || id > NAMES)
		return -ENOENT;
	*ret_text = names[id - 1];
	*ret_bytes = strlen(names[id - 1]);
	return 0;
}

static int track_of(void *context, uint32_t id, const char **ret_text, size_t *ret_bytes)
{
	static const char *const tracks[] = {"main", "worker 1", "worker 2", "main",
					     "",     "pump",     "stream 7", "stream 20"};
	(void)context;
	if (id >= TRACKS)
		return -ENOENT;
	*ret_text = tracks[id];
	*ret_bytes = strlen(tracks[id]);
	return 0;
}

static bool is_stream(void *context, uint32_t track)
{
	(void)context;
	return track >= STREAMS_FROM;
}

static struct series_source source_of(struct program *program)
{
	uint8_t which = fuzz_byte(&program->in);
	return (struct series_source){
		.source = which % SOURCES,
		.rank = which & 0x20 ? UINT32_MAX : which % SOURCES,
		.job = which & 0x40 ? 7 : 0,
		.name = name_of,
		.track = track_of,
		.is_stream = is_stream,
	};
}

/* Does something with the series of each engine there is. */
#define EACH_SERIES(program, its)                                                                            \
	for (unsigned i_ = 0; i_ < PAIR_ENGINES; i_++)                                                       \
		for (struct series *its = (program)->series[i_]; its; its = NULL)

static void make(struct program *program, unsigned which)
{
	static char text[][16] = {"step", "phase:*", "load", "next(*)", "device:*", "track:*"};
	char *const patterns[] = {text[0], text[1], text[2], text[3], text[4], text[5]};
	series_free(program->series[which]);
	fuzz_require(series_new(program->pair->is[which].engine, patterns,
				sizeof(patterns) / sizeof(patterns[0]), &program->series[which]) == 0,
		     "no series");
}

static void event_of(struct program *program, struct series_event *event)
{
	static const uint8_t kinds[] = {DREC_SPAN, DREC_SPAN, DREC_MARK, DREC_COUNTER, DREC_INSTANT};
	static const uint16_t marks[] = {DREC_MARK_STEP_BEGIN, DREC_MARK_STEP_END, DREC_MARK_PHASE_BEGIN,
					 DREC_MARK_PHASE_END, 99};
	uint8_t kind = fuzz_byte(&program->in), name = fuzz_byte(&program->in);
	*event = (struct series_event){
		.kind = kinds[kind % sizeof(kinds)],
		.mark = marks[kind / 8 % (sizeof(marks) / sizeof(marks[0]))],
		.track = fuzz_byte(&program->in) % (TRACKS + 1),
		.name = name % (NAMES + 2),
		.value = fuzz_value(&program->in),
		.sample = -1,
	};
	if (name & 0x80) {
		event->text = names[event->name % NAMES];
		event->text_bytes = strlen(event->text);
		event->name = 0;
	}
}

static void call_event(struct program *program)
{
	struct series_source source = source_of(program);
	struct series_event event;
	event_of(program, &event);
	event.end_ns = fuzz_time(&program->in, program->now_ns);
	event.start_ns = fuzz_after(event.end_ns, -(fuzz_length(&program->in) & INT64_MAX));
	event.id = (uint64_t)fuzz_step(&program->in, &program->step);
	EACH_SERIES(program, its)
	series_event(its, &source, &event);
}

/* The like again and again, as a job has them. */
static void call_burst(struct program *program)
{
	struct series_source source = source_of(program);
	struct series_event event;
	event_of(program, &event);
	unsigned count = fuzz_byte(&program->in) % BURST_MAX + 1, how = fuzz_byte(&program->in);
	int64_t ns = fuzz_length(&program->in) & ((INT64_C(1) << 40) - 1);
	for (unsigned i = 0; i < count; i++) {
		event.start_ns = program->now_ns;
		program->now_ns = fuzz_after(program->now_ns, i == how ? 3 * ns : ns);
		event.end_ns = program->now_ns;
		event.id = (uint64_t)++program->step;
		EACH_SERIES(program, its)
		{
			if (how & 0x40)
				series_open(its, &source, event.mark, event.track, event.name, event.start_ns,
					    event.id);
			series_event(its, &source, &event);
		}
		pair_tick(program->pair, program->now_ns);
	}
}

static void call_stack(struct program *program)
{
	static const unsigned marks[] = {0, DREC_MARK_STEP_BEGIN, DREC_MARK_PHASE_BEGIN};
	struct series_source source = source_of(program);
	unsigned deep = fuzz_byte(&program->in) % 5;
	EACH_SERIES(program, its)
	series_stack_begin(its, source.source);
	while (deep--) {
		uint8_t what = fuzz_byte(&program->in), name = fuzz_byte(&program->in) % (NAMES + 2);
		int64_t start_ns = fuzz_time(&program->in, program->now_ns);
		uint64_t step = (uint64_t)fuzz_step(&program->in, &program->step);
		EACH_SERIES(program, its)
		series_open(its, &source, marks[what % 3], what / 4 % TRACKS, name, start_ns, step);
	}
	EACH_SERIES(program, its)
	series_stack_end(its, source.source);
}

static void call_time(struct program *program)
{
	int64_t more_ns = fuzz_length(&program->in);
	unsigned ticks = fuzz_byte(&program->in);
	if (ticks & 0x80 && more_ns != INT64_MIN)
		more_ns = -more_ns;
	for (unsigned i = 0; i < ticks % 16 + 1; i++) {
		program->now_ns = fuzz_after(program->now_ns, more_ns);
		pair_tick(program->pair, program->now_ns);
		EACH_SERIES(program, its)
		series_tick(its);
		pair_same(program->pair);
	}
	if (program->now_ns > INT64_C(1) << 61 || program->now_ns < -(INT64_C(1) << 61))
		program->now_ns = INT64_C(1700000000000000000);
}

static char *saved(const struct series *series, size_t *ret_size)
{
	int64_t size = series_save(series, NULL, 0);
	fuzz_require(size > 0, "nothing is saved");
	char *bytes = malloc((size_t)size);
	fuzz_require(bytes && series_save(series, bytes, (size_t)size) == size,
		     "the same state has two sizes");
	fuzz_require(series_save(series, bytes, (size_t)size - 1) == -ENOSPC, "too small a room is enough");
	series_save(series, bytes, (size_t)size);
	*ret_size = (size_t)size;
	return bytes;
}

static void call_restart(struct program *program)
{
	size_t size, again;
	if (program->restarts++ >= RESTARTS_MAX)
		return;
	char *bytes = saved(program->series[PAIR_RESTORED], &size);
	series_free(program->series[PAIR_RESTORED]);
	program->series[PAIR_RESTORED] = NULL;
	pair_restart(program->pair, program->now_ns);
	make(program, PAIR_RESTORED);
	fuzz_require(series_restore(program->series[PAIR_RESTORED], bytes, size) == 0,
		     "what was saved cannot be restored");
	char *second = saved(program->series[PAIR_RESTORED], &again);
	fuzz_require(size == again && !memcmp(bytes, second, size),
		     "restored and saved again it is not the same");
	free(second);
	free(bytes);
	EACH_SERIES(program, its)
	series_tick(its);
	pair_same(program->pair);
	pair_same_beliefs(program->pair);
}

static void call_damage(struct program *program)
{
	size_t size, changes = fuzz_byte(&program->in) % 4 + 1;
	if (program->damages++ >= DAMAGES_MAX)
		return;
	series_free(program->series[PAIR_DAMAGED]);
	program->series[PAIR_DAMAGED] = NULL;
	if (!pair_damage(program->pair, NULL, 0))
		return;
	char *bytes = saved(program->series[PAIR_GOES_ON], &size);
	while (changes--) {
		size_t at = fuzz_byte(&program->in);
		at |= (size_t)fuzz_byte(&program->in) << 8;
		bytes[at % size] = (char)fuzz_byte(&program->in);
	}
	make(program, PAIR_DAMAGED);
	int result = series_restore(program->series[PAIR_DAMAGED], bytes, size);
	fuzz_require(result == 0 || result == -EBADMSG, "damaged series give %d", result);
	free(bytes);
}

static void call(struct program *program)
{
	uint8_t which = fuzz_byte(&program->in);
	struct series_source source;
	int64_t now_ns;
	switch (which % 12) {
	case 0:
	case 1:
	case 2:
		call_event(program);
		break;
	case 3:
	case 4:
		call_burst(program);
		break;
	case 5:
	case 6:
		call_stack(program);
		break;
	case 7:
		call_time(program);
		break;
	case 8:
		source = source_of(program);
		now_ns = fuzz_time(&program->in, program->now_ns);
		EACH_SERIES(program, its)
		series_progress(its, source.source, now_ns);
		break;
	case 9:
		source = source_of(program);
		EACH_SERIES(program, its)
		series_source_end(its, source.source);
		break;
	case 10:
		call_restart(program);
		break;
	default:
		call_damage(program);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct pair pair;
	struct program program = {.in = {data, size}, .pair = &pair, .now_ns = INT64_C(1700000000000000000)};
	pair_begin(&pair);
	make(&program, PAIR_GOES_ON);
	make(&program, PAIR_RESTORED);
	pair_tick(&pair, program.now_ns);
	for (unsigned calls = 0; program.in.left && calls < CALLS_MAX; calls++) {
		call(&program);
		pair_same(&pair);
	}
	program.restarts = 0;
	call_restart(&program);
	for (uint32_t source = 0; source < SOURCES; source++)
		EACH_SERIES(&program, its)
	series_source_end(its, source);
	pair_same(&pair);
	fuzz_require(series_counters(program.series[PAIR_GOES_ON])->alarming == 0 &&
			     series_counters(program.series[PAIR_GOES_ON])->followed == 0,
		     "series are counted that are not there");
	for (unsigned i = 0; i < PAIR_ENGINES; i++)
		series_free(program.series[i]);
	pair_end(&pair);
	return 0;
}
