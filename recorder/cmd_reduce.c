/* SPDX-License-Identifier: Apache-2.0 */
/* driverec reduce: a trace made small, the same at the scale one looks at. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "command.h"
#include "plain_text.h"
#include "reduce/cleanup.h"
#include "reduce/crew.h"
#include "reduce/files.h"
#include "reduce/names.h"
#include "reduce/one.h"
#include "reduce/progress.h"
#include "reduce/say.h"
#include "reduce/target.h"
#include "reduce/window.h"

#define SETTLE_DEFAULT_NS 10000000000
#define BYTES_MAX         ((int64_t)1 << 50)
#define SETTLE_MAX_NS     86400000000000

enum { THREADS = 2, COMPRESS_MAX = 9 };

struct reduce_command_options {
	const char *output, *output_folder, *format, *window, *track, *target_events;
	int64_t bins, target_bytes, settle_ns, jobs, compress;
	bool in_place, dry_run, force, keep_going, verify, no_verify, again, break_lock, verbose, json;
};

static const struct reduce_command_options reduce_defaults = {.settle_ns = SETTLE_DEFAULT_NS, .jobs = 1};

#define FLAG(letter, name, field, help)                                                                      \
	OPTION_ROW_FLAG(letter, name, struct reduce_command_options, field, help)
#define TEXT(letter, name, value, field, help)                                                               \
	OPTION_ROW(letter, name, value, OPTION_TEXT, struct reduce_command_options, field, help)
#define BOUND(letter, name, value, kind, field, low, high, help)                                             \
	OPTION_ROW_BOUND(letter, name, value, kind, struct reduce_command_options, field, low, high, help)

static const struct option_row reduce_rows[] = {
	TEXT('o', "output", "OUT", output,
	     "where to: a file whose name says the format (.json.gz, .json, .xplane.pb, .pftrace), a folder, "
	     "or -"),
	TEXT(0, "output-dir", "DIR", output_folder,
	     "into this folder, with the folders below those that were named"),
	FLAG('i', "in-place", in_place, "put the result in the place of the file, once it is verified"),
	TEXT(0, "format", "NAME", format,
	     "chrome, xplane or pftrace; else by the output's name, else the input's"),
	BOUND('b', "bins", "N", OPTION_NUMBER, bins, REDUCE_BINS_MIN, REDUCE_BINS_MAX,
	      "equal parts of time to keep apart (default: 3840, a pixel of a 4K screen each)"),
	TEXT(0, "target-events", "N|N%", target_events, "the finest bins that leave at most so many events"),
	BOUND(0, "target-bytes", "SIZE", OPTION_BYTES, target_bytes, 1, BYTES_MAX,
	      "the finest bins whose output takes at most so much"),
	TEXT('w', "window", "A:B", window,
	     "only what meets this time: 10s:20s from the start, -5s: from the end, or UTC times"),
	TEXT(0, "track", "PATTERN", track, "only tracks whose pid/tid or name matches (shell pattern)"),
	FLAG('n', "dry-run", dry_run, "say what would come of it, write nothing"),
	FLAG('f', "force", force, "replace outputs that are there already; in place: also damaged files"),
	FLAG('k', "keep-going", keep_going, "go on with the other files after a failure"),
	BOUND(0, "jobs", "N", OPTION_NUMBER, jobs, 1, CREW_MAX,
	      "so many files at once, as memory allows (default: 1)"),
	FLAG(0, "again", again, "reduce also what is reduced already"),
	BOUND('z', "compress", "LEVEL", OPTION_NUMBER, compress, 1, COMPRESS_MAX,
	      "how hard to pack .json.gz: 1 fast, 9 small (default: 6, or 1 of more than 50,000 events)"),
	FLAG(0, "verify", verify,
	     "hold the result against the input once more, independently of what reduces (in place: always)"),
	FLAG(0, "no-verify", no_verify, "do not hold the result against the input at all"),
	BOUND(0, "settle", "TIME", OPTION_DURATION, settle_ns, 0, SETTLE_MAX_NS,
	      "in place: leave files alone that were written less than this ago (default: 10s)"),
	FLAG(0, "break-lock", break_lock, "take a lock of a reducer that is dead for certain"),
	FLAG('v', "verbose", verbose, "say more of each file"),
	FLAG('j', "json", json, "print one JSON object a file, one a line"),
	OPTION_ROWS_END,
};

/* --- what was asked for --- */

static bool is_folder(const char *path)
{
	struct stat st;
	size_t bytes = strlen(path);

	return (bytes && path[bytes - 1] == '/') || (stat(path, &st) == 0 && S_ISDIR(st.st_mode));
}

static enum reducer_format format_named(const char *name)
{
	static const enum reducer_format formats[] = {REDUCER_FORMAT_CHROME, REDUCER_FORMAT_XPLANE,
						      REDUCER_FORMAT_PFTRACE};

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (strcmp(reducer_format_name(formats[i]), name) == 0)
			return formats[i];
	return REDUCER_FORMAT_NONE;
}

static int take_target(const struct command_call *call, struct reduce_settings *settings)
{
	const struct reduce_command_options *options = call->options;
	struct reduce_target target = {0};

	if ((options->bins != 0) + (options->target_events != NULL) + (options->target_bytes != 0) > 1)
		return command_misuse(call, "--bins, --target-events and --target-bytes: one of them");
	if (options->target_events && reduce_target_parse(options->target_events, &target) < 0)
		return command_misuse(
			call,
			"option '--target-events': '%s' is not a number of events, or a share like 10%% "
			"in tenths of a percent",
			options->target_events);
	settings->reduce.bins = (uint32_t)options->bins;
	settings->reduce.target_events = target.events;
	settings->reduce.target_permille = target.permille;
	settings->target_bytes = (uint64_t)options->target_bytes;
	return COMMAND_DONE;
}

static int take_window(const struct command_call *call, struct reduce_settings *settings)
{
	const struct reduce_command_options *options = call->options;

	if (!options->window)
		return COMMAND_DONE;
	if (reduce_window_parse(options->window, &settings->window) < 0)
		return command_misuse(call,
				      "option '--window': '%s' is not a window like 10s:20s, :5s, -5s: or "
				      "2026-11-30T03:12:44Z:2026-11-30T03:12:50Z",
				      options->window);
	settings->has_window = true;
	return COMMAND_DONE;
}

static int take_format(const struct command_call *call, struct reduce_settings *settings)
{
	const struct reduce_command_options *options = call->options;
	enum reducer_format by_name;

	if (options->format) {
		settings->format = format_named(options->format);
		if (!settings->format)
			return command_misuse(call,
					      "option '--format': '%s' is not chrome, xplane or pftrace",
					      options->format);
	}
	if (!settings->output || strcmp(settings->output, "-") == 0)
		return COMMAND_DONE;
	by_name = reducer_format_of_name(settings->output);
	if (by_name == REDUCER_FORMAT_DREC)
		return command_misuse(call, "%s: a .drec is raw; .json.gz, .json, .xplane.pb or .pftrace",
				      settings->output);
	if (by_name == REDUCER_FORMAT_NONE && !settings->format)
		return command_misuse(
			call,
			"%s: the name says no format: .json.gz, .json, .xplane.pb, .pftrace, or --format",
			settings->output);
	return COMMAND_DONE;
}

static int take_output(const struct command_call *call, struct reduce_settings *settings)
{
	const struct reduce_command_options *options = call->options;
	bool into_folder = options->output && strcmp(options->output, "-") != 0 && is_folder(options->output);

	if ((options->output != NULL) + (options->output_folder != NULL) + options->in_place > 1)
		return command_misuse(call, "--output, --output-dir and --in-place: one of them");
	settings->output = into_folder ? NULL : options->output;
	settings->output_folder = into_folder ? options->output : options->output_folder;
	settings->in_place = options->in_place;
	for (int i = 0; i < call->argc; i++)
		if (strcmp(call->argv[i], "-") == 0 && (!settings->output || call->argc > 1))
			return command_misuse(call, "standard input goes alone, to one file: - -o OUT");
	if (settings->output && (call->argc > 1 || is_folder(call->argv[0])))
		return command_misuse(call, "several files do not go into one: -o DIR/ or --output-dir DIR");
	return take_format(call, settings);
}

static int take_settings(const struct command_call *call, struct reduce_settings *settings)
{
	const struct reduce_command_options *options = call->options;
	int status = take_target(call, settings);

	if (status == COMMAND_DONE)
		status = take_window(call, settings);
	if (status == COMMAND_DONE)
		status = take_output(call, settings);
	settings->reduce.track_pattern = options->track;
	settings->reduce.threads = options->jobs > 1 ? 1 : THREADS;
	settings->dry_run = options->dry_run;
	settings->force = options->force;
	settings->break_lock = options->break_lock;
	settings->again = options->again;
	settings->verify = options->verify;
	settings->no_verify = options->no_verify;
	settings->gzip_level = (int)options->compress;
	if (status == COMMAND_DONE && options->verify && options->no_verify)
		return command_misuse(call, "--verify and --no-verify: one of them");
	settings->settle_ns = options->settle_ns;
	return status;
}

/* --- the files --- */

static int by_name_below(const void *a, const void *b)
{
	const struct reduce_file *left = *(const struct reduce_file *const *)a;
	const struct reduce_file *right = *(const struct reduce_file *const *)b;

	return strcmp(left->path + left->relative, right->path + right->relative);
}

/* Two inputs of one name below the output folder: the second one would go over the first. */
static int check_apart(const struct command_call *call, const struct reduce_files *files)
{
	const struct reduce_file **sorted = calloc(files->count + 1, sizeof(const struct reduce_file *));
	int status = COMMAND_DONE;

	if (!sorted)
		return command_failed(call, "out of memory");
	for (size_t i = 0; i < files->count; i++)
		sorted[i] = &files->file[i];
	qsort(sorted, files->count, sizeof(const struct reduce_file *), by_name_below);
	for (size_t i = 1; i < files->count && status == COMMAND_DONE; i++)
		if (by_name_below(&sorted[i - 1], &sorted[i]) == 0)
			status = command_misuse(
				call, "%s and %s would have one output; name the folder that holds both",
				sorted[i - 1]->path, sorted[i]->path);
	free(sorted);
	return status;
}

static int add_stdin(struct reduce_files *files)
{
	files->file = calloc(1, sizeof(*files->file));
	if (files->file)
		files->file->path = strdup("-");
	if (!files->file || !files->file->path)
		return -ENOMEM;
	files->count = files->room = 1;
	return 0;
}

static int find_files(const struct command_call *call, const struct reduce_settings *settings,
		      struct reduce_files *files)
{
	for (int i = 0; i < call->argc; i++) {
		const char *path = call->argv[i];
		int r = strcmp(path, "-") == 0 ? add_stdin(files) : reduce_files_add(files, path);

		if (r == -E2BIG)
			return command_failed(
				call, "%s: more than %d traces, or %d files: name the folders below it", path,
				REDUCE_FILES_MAX, REDUCE_ENTRIES_MAX);
		if (r < 0)
			return command_failed(call, "%s: %s", path, strerror(-r));
	}
	if (files->count == 0 && files->errors == 0)
		return command_failed(call, "no traces (*.json, *.json.gz, *.xplane.pb) in %s",
				      call->argv[0]);
	return settings->output_folder ? check_apart(call, files) : COMMAND_DONE;
}

/* --- doing it --- */

struct reducing {
	const struct reduce_command_options *options;
	struct reduce_say say;
	struct progress progress;
	FILE *out; /* standard output, unless that is where the trace goes */
	uint64_t failed, differ, skipped;
};

static void say_done(void *context, const struct reduce_file *file, const struct reduce_result *result)
{
	struct reducing *reducing = context;

	progress_clear(&reducing->progress);
	progress_file_done(&reducing->progress, file->bytes);
	reducing->failed += result->outcome == REDUCE_FAILED;
	reducing->differ += result->outcome == REDUCE_DIFFERS;
	reducing->skipped += result->outcome == REDUCE_SKIPPED;
	if (reducing->options->json)
		reduce_say_json(file->path, result, reducing->out);
	else
		reduce_say_result(&reducing->say, file->path, result, reducing->out, stderr);
	fflush(reducing->out);
}

/* Verifying independently takes about as long as all before it, and does not say how far it is. */
static uint64_t bytes_done(const struct reduce_command_options *options, const struct reduce_file *file,
			   unsigned permille)
{
	bool independently = (options->verify || options->in_place) && !options->no_verify;

	return file->bytes / (independently ? 2000 : 1000) * (permille > 1000 ? 1000 : permille);
}

static void watch(void *context, const struct reduce_result *const *results,
		  const struct reduce_file *const *files, unsigned count)
{
	struct reducing *reducing = context;
	uint64_t bytes = 0;
	bool verifying = count > 0;

	for (unsigned i = 0; i < count; i++) {
		unsigned permille = atomic_load_explicit(&results[i]->permille, memory_order_relaxed);

		bytes += bytes_done(reducing->options, files[i], permille);
		verifying = verifying && permille >= REDUCE_VERIFYING;
	}
	if (count > 0)
		progress_draw(&reducing->progress, bytes, verifying ? "verifying" : "reducing",
			      files[0]->path);
}

static int reduce_all(const struct command_call *call, const struct reduce_settings *settings,
		      const struct reduce_files *files)
{
	const struct reduce_command_options *options = call->options;
	bool several = files->count > 1 || (files->count == 1 && files->file[0].from_folder);
	struct reducing reducing = {.options = options, .out = stdout};
	struct crew crew = {settings, files,    (unsigned)options->jobs, options->keep_going, say_done,
			    NULL,     &reducing};
	uint64_t bytes = 0;
	int r;

	reducing.say = (struct reduce_say){
		several, !settings->output && !settings->in_place && !settings->output_folder,
		options->verbose};
	if (settings->output && strcmp(settings->output, "-") == 0)
		reducing.out = stderr;
	for (size_t i = 0; i < files->count; i++)
		bytes += files->file[i].bytes;
	progress_begin(&reducing.progress, stderr, files->count, bytes);
	crew.watch = reducing.progress.out ? watch : NULL;
	r = crew_run(&crew);
	progress_clear(&reducing.progress);
	if (r < 0)
		return command_failed(call, "%s", strerror(-r));
	if (several && !options->json && reducing.failed + reducing.differ + reducing.skipped > 0)
		fprintf(reducing.out, "%zu of %zu files done, %" PRIu64 " skipped, %" PRIu64 " failed\n",
			reducing.progress.done -
				(size_t)(reducing.failed + reducing.differ + reducing.skipped),
			files->count, reducing.skipped, reducing.failed + reducing.differ);
	return reducing.differ ? COMMAND_PROBLEMS : reducing.failed ? COMMAND_FAILED : COMMAND_DONE;
}

static int reduce_run(const struct command_call *call)
{
	struct reduce_settings settings = {0};
	struct reduce_files files = {0};
	int status = take_settings(call, &settings);

	if (status != COMMAND_DONE)
		return status;
	cleanup_install();
	status = find_files(call, &settings, &files);
	if (status == COMMAND_DONE && files.count > 0)
		status = reduce_all(call, &settings, &files);
	if (files.errors) {
		int r = command_failed(call, "%s: %s; %" PRIu64 " folder%s left out", files.error_path,
				       strerror(-files.error), files.errors,
				       files.errors == 1 ? " was" : "s were");

		status = status == COMMAND_DONE ? r : status;
	}
	reduce_files_free(&files);
	return status;
}

const struct command command_reduce = {
	.name = "reduce",
	.summary = "make traces small: the same picture at the scale one looks at, verified",
	.operands = "FILE...",
	.details = "Reads Chrome traces (plain, gzip, zstd), XPlane files, rings and .drec files, told apart "
		   "by their "
		   "content. Busy time of every track and bin, first and last, the longest span of every row "
		   "and bin, "
		   "counters' min, max and last, names and metadata stay; short spans are merged into "
		   "rectangles that say "
		   "how many they stand for. Every result is read back from the disk and checked against its "
		   "input before "
		   "it is put in its place; --verify, and --in-place always, also verify it as driverec "
		   "verify does, which reads the input once more. docs/reduce.md says what is promised.\n"
		   "A folder means the traces in it and below: *.json, *.json.gz, *.json.zst, *.xplane.pb. "
		   "Links are not "
		   "followed there. - is standard input, kept in $TMPDIR meanwhile.\n"
		   "Without -o the result is beside the input, as NAME.reduced.json.gz or "
		   "NAME.reduced.xplane.pb. What "
		   "reducing would not make smaller is copied, or left, as it is.\n"
		   "In place: the file is replaced by one rename, after the result was written, synced and "
		   "verified; its "
		   "mode, owner, access list and time of change stay. Killed at any moment, the file is the "
		   "one or the "
		   "other. Files that are being written, or were a moment ago, are left alone.\n"
		   "Exit status 3: the verification found differences, and nothing was put in place.",
	.examples = "driverec reduce big.trace.json.gz -o small.json.gz\n"
		    "driverec reduce --in-place --jobs 4 --keep-going /logs/plugins/profile\n"
		    "driverec reduce --target-bytes 20MB --window 10s:20s rank0.pt.trace.json.gz\n"
		    "zcat rank0.json.gz | driverec reduce - -o rank0.pftrace",
	.options = reduce_rows,
	.options_bytes = sizeof(struct reduce_command_options),
	.defaults = &reduce_defaults,
	.operands_min = 1,
	.operands_max = COMMAND_OPERANDS_ANY,
	.run = reduce_run,
};
