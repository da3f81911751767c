/* SPDX-License-Identifier: Apache-2.0 */
/* driverec inspect: what is in a trace, ring or window file. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <reducer/drec_codec.h>
#include <reducer/inspect.h>
#include <reducer/trace.h>

#include "command.h"
#include "ns.h"
#include "output.h"
#include "ring_file.h"

enum { OPEN_SPANS_MAX = 4096, MORE_BYTES = 2048 };

struct inspect_options {
	bool json;
};

static const struct option_row inspect_rows[] = {
	OPTION_ROW_FLAG('j', "json", struct inspect_options, json, "print one JSON object"),
	OPTION_ROWS_END,
};

/* What only rings and windows have. */
struct ring_facts {
	bool is_ring;
	char more[MORE_BYTES]; /* the members for --json */
	uint64_t lost, overwritten;
	int open_spans;
	const char *clock;
	struct drec_window window;
	bool has_window;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static const char *clock_name(uint32_t clock)
{
	static const char *const names[] = {"unknown", "tsc", "cntvct", "monotonic", "unix"};
	return clock < sizeof(names) / sizeof(names[0]) ? names[clock] : names[0];
}

static void say_facts(struct ring_facts *facts, const uint64_t lost[DREC_LOSS_LIMIT])
{
	char *out = facts->more;
	size_t room = sizeof(facts->more);
	int used = snprintf(out, room, "\"clock\":\"%s\",\"lost\":{", facts->clock);
	bool any = false;
	for (unsigned reason = 1; reason < DREC_LOSS_LIMIT; reason++) {
		if (!lost[reason])
			continue;
		used += snprintf(out + used, room - (size_t)used, "%s\"%s\":%" PRIu64, any ? "," : "",
				 drec_loss_name(reason), lost[reason]);
		any = true;
	}
	used += snprintf(out + used, room - (size_t)used, "},\"open_spans\":%d,\"overwritten\":%" PRIu64,
			 facts->open_spans, facts->overwritten);
	if (facts->has_window)
		snprintf(out + used, room - (size_t)used,
			 ",\"window\":{\"a_ns\":\"%" PRId64 "\",\"b_ns\":\"%" PRId64 "\",\"complete\":%s,\"covered_a_ns\":\"%"
			 PRId64 "\",\"covered_b_ns\":\"%" PRId64 "\",\"lost\":%" PRIu64 ",\"reason\":%u,\"t0_ns\":\"%"
			 PRId64 "\"}",
			 facts->window.a_ns, facts->window.b_ns, facts->window.complete ? "true" : "false",
			 facts->window.covered_a_ns, facts->window.covered_b_ns, facts->window.lost,
			 facts->window.reason, facts->window.t0_ns);
}

static int gather_ring_facts(struct drec_reader *reader, struct ring_facts *facts)
{
	uint64_t lost[DREC_LOSS_LIMIT] = {0};
	int result = drec_reader_losses(reader, lost, &facts->overwritten);
	if (result < 0)
		return result;
	for (unsigned reason = 0; reason < DREC_LOSS_LIMIT; reason++)
		facts->lost += lost[reason];
	struct drec_open_info *open = calloc(OPEN_SPANS_MAX, sizeof(*open));
	if (!open)
		return -ENOMEM;
	result = drec_reader_open_spans(reader, open, OPEN_SPANS_MAX);
	free(open);
	if (result < 0)
		return result;
	facts->is_ring = true;
	facts->open_spans = result;
	facts->clock = clock_name(drec_reader_header(reader)->clock);
	if (drec_reader_window(reader)) {
		facts->window = *drec_reader_window(reader);
		facts->has_window = true;
	}
	say_facts(facts, lost);
	return 0;
}

static int read_ring(const struct command_call *call, const char *path, struct reducer_inspect *inspect,
		     struct ring_facts *facts)
{
	struct drec_reader *reader = NULL;
	struct drec_problem problem = {0};
	struct reducer_read_report report;
	struct reducer_sink sink = reducer_inspect_sink(inspect);
	int result = drec_reader_open(AT_FDCWD, path, NULL, &reader, &problem);
	if (result < 0)
		return command_failed(call, "%s: %s (at byte %" PRIu64 ")", path,
				      problem.what[0] ? problem.what : strerror(-result), problem.offset);
	result = reducer_drec_read(reader, &sink, NULL, NULL, &report);
	if (result == 0)
		result = gather_ring_facts(reader, facts);
	drec_reader_free(reader);
	if (result < 0)
		return command_failed(call, "%s: %s", path, strerror(-result));
	for (unsigned i = 0; i < report.n_problems; i++)
		fprintf(stderr, "driverec inspect: %s: %s\n", path, report.problem[i].what);
	return COMMAND_DONE;
}

static int refuse(const struct command_call *call, const char *path, int error, const struct reducer_read_report *report)
{
	const struct reducer_problem *last = report->n_problems ? &report->problem[report->n_problems - 1] : NULL;
	if (last && error == -EBADMSG)
		return command_failed(call, "%s: %s (at byte %" PRIu64 ")", path, last->what, last->offset);
	return command_failed(call, "%s: %s", path, last ? last->what : strerror(-error));
}

static int read_trace(const struct command_call *call, const char *path, struct reducer_inspect *inspect)
{
	struct reducer_read_report report;
	struct reducer_sink sink = reducer_inspect_sink(inspect);
	int result = reducer_trace_read_any(path, &sink, &report);
	if (result < 0)
		return refuse(call, path, result, &report);
	for (unsigned i = 0; i < report.n_problems; i++)
		fprintf(stderr, "driverec inspect: %s: %s (at byte %" PRIu64 ")\n", path, report.problem[i].what,
			report.problem[i].offset);
	return COMMAND_DONE;
}

static void print_facts(const struct ring_facts *facts)
{
	char text[OUTPUT_TEXT_MAX], more[OUTPUT_TEXT_MAX];
	printf("clock %s, lost %s, overwritten %s, open spans %d\n", facts->clock, output_count(text, facts->lost),
	       output_count(more, facts->overwritten), facts->open_spans);
	if (facts->has_window)
		printf("window %s to %s: %s\n", output_time(text, facts->window.a_ns),
		       output_time(more, facts->window.b_ns), facts->window.complete ? "complete" : "not complete");
}

static int print_tracks(struct reducer_inspect *inspect)
{
	static const struct output_column columns[] = {{"track", 0}, {"spans", 1}, {"busy", 1},
						       {"from first to last", 1}, {"longest", 1}, {"which", 0}};
	struct output_table *table = output_table_new(columns, 6);
	struct reducer_inspect_track track;
	char text[OUTPUT_TEXT_MAX];
	if (!table)
		return -ENOMEM;
	for (size_t i = 0; reducer_inspect_track(inspect, i, &track) == 0; i++) {
		output_table_cell(table, "%s", track.name);
		output_table_cell(table, "%s", output_count(text, track.spans));
		output_table_cell(table, "%s", output_duration(text, track.busy_ns));
		output_table_cell(table, "%s", output_duration(text, ns_sub(track.last_ns, track.first_ns)));
		output_table_cell(table, "%s", output_duration(text, track.longest_ns));
		output_table_cell(table, "%.60s", track.longest_name ? track.longest_name : "");
	}
	int result = output_table_print(table, stdout);
	output_table_free(table);
	return result;
}

static int print_plain(struct reducer_inspect *inspect, const struct ring_facts *facts, const char *path)
{
	char text[OUTPUT_TEXT_MAX], names[OUTPUT_TEXT_MAX];
	const char *kind;
	uint64_t count;
	printf("%s: %s events, %s names\n", base_name(path), output_count(text, reducer_inspect_events(inspect)),
	       output_count(names, reducer_inspect_names(inspect)));
	if (facts->is_ring)
		print_facts(facts);
	printf("kinds:");
	for (size_t i = 0; reducer_inspect_kind(inspect, i, &kind, &count) == 0; i++)
		printf(" %s %s", kind, output_count(text, count));
	printf("\n\n");
	return print_tracks(inspect);
}

static int run(const struct command_call *call)
{
	const struct inspect_options *options = call->options;
	const char *path = call->argv[0];
	struct reducer_inspect *inspect = NULL;
	struct ring_facts facts = {0};
	char *text = NULL;
	if (reducer_inspect_new(&inspect) < 0)
		return command_failed(call, "out of memory");
	int status = ring_file_is(path) ? read_ring(call, path, inspect, &facts)
					  : read_trace(call, path, inspect);
	if (status == COMMAND_DONE) {
		int result = options->json ? reducer_inspect_json(inspect, base_name(path), facts.more, &text)
					   : print_plain(inspect, &facts, path);
		if (result < 0)
			status = command_failed(call, "%s: %s", path, strerror(-result));
		else if (text)
			puts(text);
	}
	free(text);
	reducer_inspect_free(inspect);
	return status;
}

const struct command command_inspect = {
	.name = "inspect",
	.summary = "say what is in a trace, ring or window file",
	.operands = "FILE",
	.details = "Reads Chrome traces and XPlane files (plain, gzip or zstd), rings and .drec files, and prints counts by "
		   "kind and, for each track, its spans, busy time and longest span. Damage is told on standard error with its "
		   "byte offset; a file that is no trace is refused.",
	.examples = "driverec inspect trace.json.gz\ndriverec inspect --json raw/rank0.drec",
	.options = inspect_rows,
	.options_bytes = sizeof(struct inspect_options),
	.operands_min = 1,
	.operands_max = 1,
	.run = run,
};
