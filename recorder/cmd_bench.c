/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "bench.h"
#include "command.h"

struct bench_options {
	const char *folder, *trace, *source;
};

static const struct option_row bench_rows[] = {
	OPTION_ROW('d', "dir", "DIR", OPTION_TEXT, struct bench_options, folder,
		   "the folder that snapshots are written to (default: the current one)"),
	OPTION_ROW('t', "trace", "FILE", OPTION_TEXT, struct bench_options, trace,
		   "the Chrome trace that parse and reduce read (default: one of 2 million events that is made)"),
	OPTION_ROW(0, "tile", "FILE", OPTION_TEXT, struct bench_options, source,
		   "make that trace by repeating the events of FILE (default: they are made up)"),
	OPTION_ROWS_END,
};

static int run_one(const char *name, const struct bench_options *options)
{
	if (strcmp(name, "ring") == 0)
		return bench_ring_one();
	if (strcmp(name, "ring-mt") == 0)
		return bench_ring_many();
	if (strcmp(name, "freeze") == 0)
		return bench_freeze();
	if (strcmp(name, "snapshot") == 0)
		return bench_snapshot(options->folder ? options->folder : ".");
	if (strcmp(name, "ingest") == 0)
		return bench_ingest();
	if (strcmp(name, "triggers") == 0)
		return bench_triggers();
	if (strcmp(name, "parse") == 0)
		return bench_parse(options->trace, options->source);
	if (strcmp(name, "reduce") == 0)
		return bench_reduce(options->trace, options->source);
	if (strcmp(name, "reduce-scale") == 0)
		return bench_reduce_scale(options->source);
	return 1;
}

static int bench_run(const struct command_call *call)
{
	const struct bench_options *options = call->options;
	for (int i = 0; i < call->argc; i++) {
		int ret = run_one(call->argv[i], options);
		if (ret > 0)
			return command_misuse(call, "there is no benchmark '%s'; there are: ring ring-mt freeze "
						    "snapshot ingest triggers parse reduce reduce-scale", call->argv[i]);
		if (ret < 0)
			return command_failed(call, "%s: %s", call->argv[i], strerror(-ret));
	}
	return COMMAND_DONE;
}

const struct command command_bench = {
	.name = "bench",
	.summary = "measure what recording costs on this machine",
	.operands = "NAME...",
	.details = "Prints one JSON line a figure: {\"bench\",\"value\",\"unit\",\"limit\",\"ratio\",\"goal\"}. The limit is "
		   "measured in the same run by a loop that does only what cannot be left out.\n"
		   "ring: a span with a given start, in the first lap, with half the ring pinned, and a scoped span. "
		   "ring-mt: two threads at once. freeze: from the decision to the last of eight rings pinned. "
		   "snapshot: a whole ring written to a window file, beside write() of as many bytes. ingest: from a ring to "
		   "the macro view and the series filter, on one core. triggers: samples a second with all detectors on and 10,000 series, a tick over as many "
		   "open ones, and memory a series. parse: reading a gzipped Chrome trace with two threads and "
		   "with one, beside unpacking the same file. reduce: all of it, to the default bins; what is gone, and peak memory. "
		   "reduce-scale: time and memory an event from 0.2 to 8 million events.",
	.examples = "driverec bench ring\ndriverec bench freeze snapshot --dir /var/lib/driverec",
	.options = bench_rows,
	.options_bytes = sizeof(struct bench_options),
	.operands_min = 1,
	.operands_max = COMMAND_OPERANDS_ANY,
	.run = bench_run,
};
