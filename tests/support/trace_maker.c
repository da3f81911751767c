/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_maker.h"

#include <inttypes.h>

#include "support.h"

static void begin(struct trace_maker *m, const char *ph)
{
	fprintf(m->file, "%s{\"ph\":\"%s\"", m->first ? "\n" : ",\n", ph);
	m->first = false;
}

static void at(struct trace_maker *m, const char *key, uint64_t ns)
{
	fprintf(m->file, ",\"%s\":%" PRIu64 ".%03" PRIu64, key, ns / 1000, ns % 1000);
}

static void on(struct trace_maker *m, unsigned pid, unsigned tid)
{
	fprintf(m->file, ",\"pid\":%u,\"tid\":%u", pid, tid);
}

static uint64_t some(struct trace_maker *m, uint64_t limit)
{
	return test_random_below(limit / m->grain + 1) * m->grain;
}

void trace_maker_span(struct trace_maker *m, unsigned tid, uint64_t from, uint64_t length, bool as_pair)
{
	static const char *const names[] = {"mm", "add", "aten::copy_", "nccl:\\u00e4ll \\\"x\\\"", "gemm<int, 4>"};
	const char *name = names[test_random_below(5)];
	begin(m, as_pair ? "B" : "X");
	on(m, 1, tid);
	fprintf(m->file, ",\"name\":\"%s\",\"cat\":\"op\"", name);
	at(m, "ts", from);
	if (!as_pair)
		at(m, "dur", length);
	fprintf(m->file, ",\"args\":{\"n\": %" PRIu64 "}}", test_random_below(1000));
	if (!as_pair)
		return;
	begin(m, "E");
	on(m, 1, tid);
	at(m, "ts", from + length);
	fputs("}", m->file);
}

/* Spans that nest, down to `depth`, in [from, to]. */
static void make_nest(struct trace_maker *m, unsigned tid, uint64_t from, uint64_t to, int depth)
{
	while (from <= to) {
		uint64_t length = some(m, test_random_below(4) ? (to - from) / 8 : to - from);
		if (length > to - from)
			length = to - from;
		trace_maker_span(m, tid, from, length, false);
		if (depth > 0 && length > 2 * m->grain)
			make_nest(m, tid, from + some(m, length / 4), from + length - some(m, length / 4), depth - 1);
		from += length + some(m, test_random_below(2) ? 0 : (to - from) / 4) + m->grain * test_random_below(2);
		if (length == 0 && test_random_below(3) == 0)
			from += m->grain;
	}
}

static void make_pairs(struct trace_maker *m, uint64_t to)
{
	/* One thread of begins and ends alone: they must be in order to be pairs. */
	uint64_t now = 0;
	int open = 0;
	for (int i = 0; i < 60 && now < to; i++, now += some(m, to / 40)) {
		bool ends = open > 0 && test_random_below(2);
		begin(m, ends ? "E" : "B");
		on(m, 1, 77);
		at(m, "ts", now);
		fprintf(m->file, ",\"name\":\"load\"}");
		open += ends ? -1 : 1;
	}
}

static void make_points(struct trace_maker *m, uint64_t to)
{
	for (int i = 0; i < 80; i++) {
		begin(m, "i");
		on(m, 1, (unsigned)test_random_below(2));
		fprintf(m->file, ",\"name\":\"tick%" PRIu64 "\",\"s\":\"t\"", test_random_below(2));
		at(m, "ts", some(m, to));
		fputs("}", m->file);
		begin(m, "C");
		fprintf(m->file, ",\"pid\":1,\"name\":\"mem%" PRIu64 "\"", test_random_below(2));
		at(m, "ts", some(m, to));
		fprintf(m->file, ",\"args\":{\"used\":%" PRIu64 ".5,\"note\":\"x\",\"free\":-%" PRIu64 "}}",
			test_random_below(9), test_random_below(1000));
		begin(m, "M");
		on(m, 1, (unsigned)test_random_below(3));
		fputs(",\"name\":\"thread_name\",\"args\":{\"name\":\"worker\"}}", m->file);
	}
}

static void make_flows(struct trace_maker *m, uint64_t to)
{
	for (int i = 0; i < 60; i++) {
		static const char *const phases[] = {"s", "t", "f"};
		begin(m, phases[test_random_below(3)]);
		on(m, 1, (unsigned)test_random_below(4));
		fprintf(m->file, ",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":%" PRIu64 "%s", test_random_below(25),
			test_random_below(2) ? ",\"bp\":\"e\"" : "");
		at(m, "ts", some(m, to));
		fputs("}", m->file);
	}
	for (int i = 0; i < 60; i++) {
		uint64_t from = some(m, to), length = some(m, to / 30);
		begin(m, "b");
		fprintf(m->file, ",\"pid\":1,\"cat\":\"rpc\",\"name\":\"get\",\"id\":\"0x%x\"", i);
		at(m, "ts", from);
		fputs(",\"args\":{}}", m->file);
		if (i % 9 == 0)
			continue;
		begin(m, "e");
		fprintf(m->file, ",\"pid\":1,\"cat\":\"rpc\",\"name\":\"get\",\"id\":\"0x%x\"", i);
		at(m, "ts", from + length);
		fputs("}", m->file);
	}
}

static void make_odd(struct trace_maker *m)
{
	begin(m, "X");
	on(m, 1, 1);
	fputs(",\"name\":\"backwards\",\"ts\":10,\"dur\":-1}", m->file);
	begin(m, "X");
	on(m, 1, 1);
	fputs(",\"name\":\"endless\",\"ts\":10}", m->file);
	begin(m, "R");
	fputs(",\"name\":\"other\",\"ts\":4}", m->file);
	begin(m, "X");
	on(m, 1, 1);
	fputs(",\"name\":\"train\",\"cat\":\"x\",\"ts\":0.001,\"dur\":0.001,\"args\":{\"a_b\":1,\"step_num\":\"7\"}}", m->file);
	if (test_random_below(3) == 0) {
		begin(m, "s");
		on(m, 1, 2);
		fputs(",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":3,\"ts\":-1700000000000000}", m->file);
		begin(m, "X");
		on(m, 1, 2);
		fputs(",\"name\":\"years\",\"ts\":-1700000000000000,\"dur\":5}", m->file);
	}
	if (test_random_below(4) == 0) {
		begin(m, "X");
		on(m, 1, 3);
		fputs(",\"name\":\"for ages\",\"ts\":10,\"dur\":17000000000000}", m->file);
	}
}

/* A stream as GPUs have them: each kernel begins a little before the one before it ends, now and then a pause. */
static void make_chain(struct trace_maker *m, uint64_t to)
{
	uint64_t at_ns = some(m, to / 10), alike = some(m, to / 100);
	for (int i = 0; i < 150 && at_ns < to; i++) {
		uint64_t length = test_random_below(3) ? alike : some(m, to / 60);
		trace_maker_span(m, 4, at_ns, length, false);
		if (i % 2)
			trace_maker_span(m, 5, at_ns, alike, false);
		at_ns += length + (test_random_below(5) ? 0 : some(m, to / 50));
		at_ns -= at_ns > length / 4 && test_random_below(4) ? some(m, length / 4) : 0;
	}
}

void trace_maker_file(const char *path, bool array)
{
	struct trace_maker m = {.file = fopen(path, "we"), .first = true};
	static const uint64_t grains[] = {1, 7, 1000};
	ck_assert_ptr_nonnull(m.file);
	m.grain = grains[test_random_below(3)];
	uint64_t to = m.grain * (100 + test_random_below(5000));
	fputs(array ? "[" : "{\"schemaVersion\": 1,\"traceEvents\":[", m.file);
	for (unsigned tid = 0; tid < 3; tid++)
		make_nest(&m, tid, some(&m, to / 3), to, (int)test_random_below(6));
	/* Spans anywhere: they overlap. */
	for (int i = 0; i < 100; i++)
		trace_maker_span(&m, 2 + (unsigned)test_random_below(2), some(&m, to), some(&m, to / (1 + test_random_below(60))),
			  false);
	make_chain(&m, to);
	make_pairs(&m, to);
	make_points(&m, to);
	make_flows(&m, to);
	make_odd(&m);
	fputs(array ? "\n]\n" : "\n],\"traceName\":\"x\\/y\",\"deviceProperties\":[{\"id\": 0}]}\n", m.file);
	ck_assert_int_eq(fclose(m.file), 0);
}
