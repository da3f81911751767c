/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a Chrome trace beside unpacking the same file, which any reader must do. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <reducer/chrome.h>

#include "bench.h"
#include "bench_tile.h"

enum { ROUNDS = 5, BUFFER_BYTES = 256 << 10 };

static int open_input(const char *path, struct reducer_input **ret_input)
{
	struct reducer_problem problem = {0};
	int result = reducer_input_open(path, ret_input, &problem);
	if (result < 0)
		fprintf(stderr, "driverec bench: %s: %s\n", path, problem.what);
	return result;
}

static int unpack(const char *path, char *buffer, uint64_t *ret_bytes)
{
	struct reducer_input *input;
	int64_t got;
	int result = open_input(path, &input);
	if (result < 0)
		return result;
	do
		got = reducer_input_read(input, buffer, BUFFER_BYTES);
	while (got > 0);
	*ret_bytes = reducer_input_offset(input);
	reducer_input_free(input);
	return (int)got;
}

static int count_event(void *context, const struct reducer_event *event)
{
	uint64_t *bytes = context;
	*bytes += event->bytes;
	return 0;
}

static int parse(const char *path, unsigned threads, uint64_t *ret_events)
{
	struct reducer_input *input;
	struct reducer_read_report report;
	struct reducer_chrome_options options = {.threads = threads};
	uint64_t bytes = 0;
	int result = open_input(path, &input);
	if (result < 0)
		return result;
	result = reducer_chrome_read(input, &(struct reducer_sink){&bytes, count_event, NULL}, &options, &report);
	reducer_input_free(input);
	if (result < 0)
		fprintf(stderr, "driverec bench: %s: %s\n", path,
			report.n_problems ? report.problem[report.n_problems - 1].what : strerror(-result));
	*ret_events = report.events;
	return result;
}

static void keep_best(double *best_s, int64_t since_ns)
{
	double s = (double)(bench_ns() - since_ns) * 1e-9;
	if (*best_s == 0 || s < *best_s)
		*best_s = s;
}

/* The best of some rounds: of unpacking, and of reading with one and two threads. */
static int measure(const char *path, double best_s[3], uint64_t *ret_bytes, uint64_t *ret_events)
{
	char *buffer = malloc(BUFFER_BYTES);
	int result = buffer ? 0 : -ENOMEM;
	for (int round = 0; result == 0 && round < ROUNDS; round++) {
		int64_t since_ns = bench_ns();
		result = unpack(path, buffer, ret_bytes);
		keep_best(&best_s[0], since_ns);
		for (unsigned threads = 1; result == 0 && threads <= 2; threads++) {
			since_ns = bench_ns();
			result = parse(path, threads, ret_events);
			keep_best(&best_s[threads], since_ns);
		}
	}
	free(buffer);
	return result;
}

int bench_parse(const char *trace, const char *source)
{
	char made[BENCH_PATH_MAX];
	double best_s[3] = {0};
	uint64_t bytes = 0, events = 0;
	int result = trace ? 0 : bench_tile(source, BENCH_TRACE_EVENTS, made);
	if (result < 0)
		return result;
	result = measure(trace ? trace : made, best_s, &bytes, &events);
	if (!trace)
		unlink(made);
	if (result < 0)
		return result;
	double alone_s = best_s[1] - best_s[0];
	bench_print(&(struct bench_figure){.name = "parse", .value = best_s[2], .unit = "s", .limit = best_s[0]});
	bench_print(&(struct bench_figure){.name = "parse one thread", .value = best_s[1], .unit = "s", .limit = best_s[0]});
	bench_print(&(struct bench_figure){.name = "parse rate", .value = (double)bytes / best_s[2] * 1e-6, .unit = "MB/s"});
	bench_print(&(struct bench_figure){.name = "parse alone", .value = alone_s / (double)events * 1e9, .unit = "ns/event"});
	return 0;
}
