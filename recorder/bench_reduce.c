/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reducing a long trace beside unpacking the same file. Each round runs in a process of its own, so that its peak
 * memory is that of reducing alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <reducer/input.h>
#include <reducer/reduce.h>

#include "bench.h"
#include "bench_tile.h"

enum { ROUNDS = 5, BUFFER_BYTES = 256 << 10, GZIP_LEVEL = 1 };
enum { BASE_MB = 64, GOAL_BYTES_AN_EVENT = 40 };

struct outcome {
	int result;
	double reduce_s, unpack_s;
	uint64_t events_in, events_out, spans_in, spans_out, bytes_out;
};

struct best {
	struct outcome last;
	double reduce_s, unpack_s, rss_mb;
};

static int unpack(const char *path)
{
	static char buffer[BUFFER_BYTES];
	struct reducer_input *input;
	struct reducer_problem problem = {0};
	int64_t got;
	int result = reducer_input_open(path, &input, &problem);
	if (result < 0)
		return result;
	do
		got = reducer_input_read(input, buffer, sizeof(buffer));
	while (got > 0);
	reducer_input_free(input);
	return (int)got;
}

static int reduce(const char *path, int fd, struct outcome *outcome)
{
	struct reducer_reduce *reduce = NULL;
	struct reducer_reduce_report *report = calloc(1, sizeof(*report));
	struct reducer_writer_options options = {.gzip_level = GZIP_LEVEL};
	int result = report ? reducer_reduce_read(path, NULL, &reduce, report) : -ENOMEM;
	if (result == 0)
		result = reducer_reduce_write(reduce, fd, REDUCER_FORMAT_CHROME, &options, report);
	if (result == 0) {
		outcome->events_in = report->events_in;
		outcome->events_out = report->events_out;
		outcome->spans_in = report->spans_in;
		outcome->spans_out = report->spans_out;
		outcome->bytes_out = report->output_bytes;
	}
	reducer_reduce_free(reduce);
	free(report);
	return result;
}

/* What one process measures. The reduced trace goes to an unnamed file. */
static void measure(const char *path, bool unpacking, struct outcome *outcome)
{
	const char *folder = getenv("TMPDIR");
	int64_t since_ns = bench_ns();
	if (unpacking) {
		outcome->result = unpack(path);
		outcome->unpack_s = (double)(bench_ns() - since_ns) * 1e-9;
		return;
	}
	int fd = open(folder && *folder ? folder : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	outcome->result = fd < 0 ? -errno : reduce(path, fd, outcome);
	outcome->reduce_s = (double)(bench_ns() - since_ns) * 1e-9;
	if (fd >= 0)
		close(fd);
}

static int run_apart(const char *path, bool unpacking, struct outcome *ret_outcome, double *ret_rss_mb)
{
	int pipe_fd[2];
	struct outcome outcome = {.result = -EPIPE};
	struct rusage usage;
	if (pipe2(pipe_fd, O_CLOEXEC) < 0)
		return -errno;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		measure(path, unpacking, &outcome);
		_exit(write(pipe_fd[1], &outcome, sizeof(outcome)) == (ssize_t)sizeof(outcome) ? 0 : 1);
	}
	close(pipe_fd[1]);
	if (pid < 0 || read(pipe_fd[0], &outcome, sizeof(outcome)) != (ssize_t)sizeof(outcome))
		outcome.result = -EPIPE;
	close(pipe_fd[0]);
	if (pid > 0)
		wait4(pid, NULL, 0, &usage);
	*ret_outcome = outcome;
	*ret_rss_mb = pid > 0 ? (double)usage.ru_maxrss / 1024 : 0;
	return outcome.result;
}

static int best_of_rounds(const char *path, int rounds, struct best *best)
{
	int result = 0;
	for (int round = 0; result == 0 && round < rounds; round++) {
		struct outcome outcome;
		double rss_mb;
		result = run_apart(path, true, &outcome, &rss_mb);
		if (result == 0 && (round == 0 || outcome.unpack_s < best->unpack_s))
			best->unpack_s = outcome.unpack_s;
		if (result == 0)
			result = run_apart(path, false, &outcome, &rss_mb);
		if (result == 0 && (round == 0 || outcome.reduce_s < best->reduce_s))
			best->reduce_s = outcome.reduce_s;
		best->last = outcome;
		best->rss_mb = rss_mb > best->rss_mb ? rss_mb : best->rss_mb;
	}
	if (result < 0)
		fprintf(stderr, "driverec bench: %s: %s\n", path, strerror(-result));
	return result;
}

static double percent_gone(uint64_t before, uint64_t after)
{
	return before ? 100.0 - 100.0 * (double)after / (double)before : 0;
}

static void print_size(const char *path, const struct best *best)
{
	struct stat st = {0};
	const struct outcome *last = &best->last;
	stat(path, &st);
	bench_print(&(struct bench_figure){.name = "reduce spans gone",
					   .value = percent_gone(last->spans_in, last->spans_out),
					   .unit = "%",
					   .goal = 90});
	bench_print(&(struct bench_figure){.name = "reduce bytes gone",
					   .value = percent_gone((uint64_t)st.st_size, last->bytes_out),
					   .unit = "%",
					   .goal = 80});
	bench_print(&(struct bench_figure){.name = "reduce peak memory", .value = best->rss_mb, .unit = "MB", .goal = 160});
}

int bench_reduce(const char *trace, const char *source)
{
	char made[BENCH_PATH_MAX];
	struct best best = {0};
	int result = trace ? 0 : bench_tile(source, BENCH_TRACE_EVENTS, made);
	if (result < 0)
		return result;
	result = best_of_rounds(trace ? trace : made, ROUNDS, &best);
	if (result == 0) {
		bench_print(&(struct bench_figure){
			.name = "reduce", .value = best.reduce_s, .unit = "s", .limit = best.unpack_s, .goal = 4});
		print_size(trace ? trace : made, &best);
	}
	if (!trace)
		unlink(made);
	return result;
}

/* Time and memory an event, from few to many: both should be level. */
int bench_reduce_scale(const char *source)
{
	static const uint64_t events[] = {200000, 800000, 2000000, 8000000};
	int result = 0;
	for (size_t i = 0; result == 0 && i < sizeof(events) / sizeof(events[0]); i++) {
		char made[BENCH_PATH_MAX], name[64];
		struct best best = {0};
		result = bench_tile(source, events[i], made);
		if (result < 0)
			return result;
		result = best_of_rounds(made, 3, &best);
		unlink(made);
		if (result < 0)
			return result;
		double n = (double)best.last.events_in, beyond = (best.rss_mb - BASE_MB) * (1 << 20);
		snprintf(name, sizeof(name), "reduce %.1f M events", n * 1e-6);
		bench_print(&(struct bench_figure){.name = name,
						   .value = best.reduce_s * 1e9 / n,
						   .unit = "ns/event",
						   .limit = best.unpack_s * 1e9 / n});
		snprintf(name, sizeof(name), "reduce %.1f M events memory", n * 1e-6);
		bench_print(&(struct bench_figure){.name = name,
						   .value = beyond > 0 ? beyond / n : 0,
						   .unit = "bytes/event beyond 64 MB",
						   .goal = GOAL_BYTES_AN_EVENT});
	}
	return result;
}
