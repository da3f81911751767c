/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_tile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <reducer/chrome.h>
#include <reducer/writer.h>

struct tiling {
	struct reducer_writer *writer;
	uint64_t left; /* events still to be written */
	/* Of the source. */
	uint64_t events, id_max;
	int64_t first_ns, past_ns;
	/* Of the copy at hand. */
	uint64_t copy, id_shift;
	int64_t shift_ns;
};

static int measure_event(void *context, const struct reducer_event *event)
{
	struct tiling *t = context;
	t->events++;
	if (event->has_id && event->id > t->id_max && event->id < UINT32_MAX)
		t->id_max = event->id;
	if (!event->has_time || event->kind == DREC_META)
		return 0;
	int64_t past = event->start_ns + (event->has_duration ? event->duration_ns : 0) + 1;
	if (t->first_ns > event->start_ns)
		t->first_ns = event->start_ns;
	if (t->past_ns < past)
		t->past_ns = past;
	return 0;
}

static int write_event(void *context, const struct reducer_event *event)
{
	struct tiling *t = context;
	if (t->left == 0 || (t->copy > 0 && (event->kind == DREC_META || !event->has_time)))
		return 0;
	struct reducer_event moved = *event;
	moved.start_ns += t->shift_ns;
	if (moved.has_id && moved.id < UINT32_MAX)
		moved.id += t->id_shift;
	t->left--;
	return reducer_writer_event(t->writer, &moved);
}

static int write_member(void *context, const struct reducer_member *member)
{
	struct tiling *t = context;
	return t->copy == 0 ? reducer_writer_member(t->writer, member) : 0;
}

static int read_source(const char *source, const struct reducer_sink *sink)
{
	struct reducer_input *input;
	struct reducer_problem problem = {0};
	struct reducer_read_report report;
	int result = reducer_input_open(source, &input, &problem);
	if (result < 0)
		return result;
	result = reducer_chrome_read(input, sink, NULL, &report);
	reducer_input_free(input);
	return result;
}

static int tile_file(struct tiling *t, const char *source)
{
	int result = read_source(source, &(struct reducer_sink){t, measure_event, NULL});
	if (result == 0 && (t->events == 0 || t->past_ns <= t->first_ns))
		result = -ENODATA;
	int64_t span_ns = ((t->past_ns - t->first_ns) / 1000 + 1) * 1000;
	for (; result == 0 && t->left > 0; t->copy++) {
		uint64_t before = t->left;
		t->shift_ns = (int64_t)t->copy * span_ns;
		t->id_shift = t->copy * (t->id_max + 1);
		result = read_source(source, &(struct reducer_sink){t, write_event, write_member});
		if (result == 0 && t->left == before)
			result = -ENODATA;
	}
	return result;
}

/* A small generator with a fixed seed (splitmix64's steps). */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static struct reducer_text text_of(const char *text)
{
	return (struct reducer_text){text, strlen(text)};
}

static int put(struct tiling *t, const struct reducer_event *event)
{
	if (t->left == 0)
		return 0;
	t->left--;
	return reducer_writer_event(t->writer, event);
}

static struct reducer_event span_of(int64_t start_ns, int64_t length_ns, const char *category, const char *name)
{
	return (struct reducer_event){.kind = DREC_SPAN, .has_time = 1, .has_duration = 1, .depth = DREC_DEPTH_UNKNOWN,
				      .start_ns = start_ns, .duration_ns = length_ns, .category = text_of(category),
				      .name = text_of(name), .args_flag = DREC_FLAG_ARGS_JSON};
}

/* One end of the flow from a launch to its kernel, at the beginning of `span`. */
static int put_flow(struct tiling *t, enum drec_kind kind, uint64_t id, const struct reducer_event *span)
{
	struct reducer_event flow = {.kind = (uint8_t)kind, .has_time = 1, .has_id = 1, .depth = DREC_DEPTH_UNKNOWN,
				     .start_ns = span->start_ns, .id = id, .group = span->group, .track = span->track,
				     .category = text_of("ac2g"), .name = text_of("ac2g")};
	if (kind == DREC_FLOW_END)
		flow.extra = text_of("\"bp\":\"e\"");
	return put(t, &flow);
}

/* An operator on a host thread, the launch inside it, the kernel on a stream, and the flow between those. */
static int make_operation(struct tiling *t, uint64_t *state, uint64_t number)
{
	static const char *const ops[] = {"aten::mul", "aten::add_", "aten::linear", "aten::view", "aten::copy_",
					  "aten::native_layer_norm", "aten::_scaled_dot_product_flash_attention"};
	static const char *const kernels[] = {
		("void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, "
		 "at::detail::Array<char*, 3> >(int, at::native::AddFunctor<float>)"),
		"ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_tn",
		"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"};
	unsigned long long n = number;
	char op_args[200], launch_args[200];
	int64_t length_ns = 4000 + (int64_t)(next_random(state) % 60000);
	struct reducer_event op = span_of(t->past_ns, length_ns, "cpu_op", ops[next_random(state) % 7]);
	struct reducer_event launch = span_of(op.start_ns + 1000, length_ns / 2, "cuda_runtime", "cudaLaunchKernel");
	struct reducer_event kernel = span_of(op.start_ns + 5000 + (int64_t)(next_random(state) % 20000),
					      1000 + (int64_t)(next_random(state) % 90000), "kernel",
					      kernels[next_random(state) % 3]);
	snprintf(op_args, sizeof(op_args), "{\"External id\": %llu, \"Sequence number\": %llu, \"Input Dims\": [[%u, 1024], []]}",
		 n, n / 3, (unsigned)(next_random(state) % 4096));
	snprintf(launch_args, sizeof(launch_args), "{\"External id\": %llu, \"cbid\": 211, \"correlation\": %llu}", n, n * 5);
	op.group = launch.group = text_of("4037");
	op.track = launch.track = text_of(number % 3 ? "4037" : "23695");
	kernel.group = text_of("0");
	kernel.track = text_of("7");
	op.args = text_of(op_args);
	launch.args = kernel.args = text_of(launch_args);
	t->past_ns += length_ns + (int64_t)(next_random(state) % 9000);
	int result = put(t, &op);
	result = result ? result : put(t, &launch);
	result = result ? result : put_flow(t, DREC_FLOW_BEGIN, number, &launch);
	result = result ? result : put(t, &kernel);
	return result ? result : put_flow(t, DREC_FLOW_END, number, &kernel);
}

static int make_up(struct tiling *t)
{
	uint64_t state = 20240401;
	int result = 0;
	t->past_ns = 1712195495501688000;
	for (uint64_t number = 1; result == 0 && t->left > 0; number++)
		result = make_operation(t, &state, number);
	return result;
}

int bench_tile(const char *source, uint64_t events, char *ret_path)
{
	struct tiling t = {.left = events, .first_ns = INT64_MAX, .past_ns = INT64_MIN};
	struct reducer_writer_options options = {.gzip_level = 6};
	const char *folder = getenv("TMPDIR");
	snprintf(ret_path, BENCH_PATH_MAX, "%s/driverec-bench-XXXXXX.json.gz", folder && *folder ? folder : "/tmp");
	int fd = mkostemps(ret_path, sizeof(".json.gz") - 1, O_CLOEXEC);
	int result = fd < 0 ? -errno : reducer_writer_new(fd, REDUCER_FORMAT_CHROME, &options, NULL, &t.writer);
	if (result == 0)
		result = source ? tile_file(&t, source) : make_up(&t);
	if (result == 0)
		result = reducer_writer_finish(t.writer);
	reducer_writer_free(t.writer);
	if (fd >= 0)
		close(fd);
	if (result != 0) {
		fprintf(stderr, "driverec bench: cannot make a trace%s%s: %s\n", source ? " of " : "", source ? source : "",
			strerror(-result));
		if (fd >= 0)
			unlink(ret_path);
	}
	return result;
}
