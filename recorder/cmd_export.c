/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <reducer/chrome_writer.h>
#include <reducer/writer.h>

#include "command.h"
#include "export_drec.h"
#include "export_sources.h"
#include "output.h"

enum { OUTPUT_PATH_MAX = 4096, LEFT_OUT_MAX = 32, PROGRESS_EVENTS = 4096, PROGRESS_NS = 100000000 };

struct export_options {
	const char *store, *output;
	bool strip_args, json;
};

static const struct option_row export_rows[] = {
	OPTION_ROW('o', "output", "FILE", OPTION_TEXT, struct export_options, output,
		   "what to write; its name says the format: .json, .json.gz, .xplane.pb, .pftrace, .drec"),
	OPTION_ROW_FLAG(0, "strip-args", struct export_options, strip_args, "leave the args of events out"),
	OPTION_ROW_FLAG('j', "json", struct export_options, json, "say what was written as one JSON object"),
	OPTION_ROW(0, "store", "DIR", OPTION_TEXT, struct export_options, store, "where incidents are kept"),
	OPTION_ROWS_END,
};

struct export
{
	const struct command_call *call;
	const struct export_options *options;
	struct export_sources sources;
	enum reducer_format format;
	char tmp[OUTPUT_PATH_MAX], folder[OUTPUT_PATH_MAX];
	int fd;
	int write_failed; /* -errno of the output, where reading was well */
	struct reducer_writer *writer;
	struct reducer_writer_stats stats;
	struct reducer_left_out left_out[LEFT_OUT_MAX];
	size_t n_left_out;
	/* Progress, for people who watch. */
	bool watched, told;
	uint64_t events;
	int64_t told_ns;
};

/* --- progress --- */

static void tell_progress(struct export *export)
{
	char count[OUTPUT_TEXT_MAX];
	struct timespec now;

	if (!export->watched || ++export->events % PROGRESS_EVENTS)
		return;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	int64_t now_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;

	if (now_ns - export->told_ns < PROGRESS_NS)
		return;
	/* Short work needs no word. */
	if (export->told_ns)
		fprintf(stderr, "\r%s events read", output_count(count, export->events));
	export->told |= export->told_ns != 0;
	export->told_ns = now_ns;
}

static void end_progress(struct export *export)
{
	if (export->told)
		fputs("\r\033[K", stderr);
	export->told = false;
}

/* --- what goes through a writer --- */

static int put_event(void *context, const struct reducer_event *event)
{
	struct export *export = context;

	tell_progress(export);
	return reducer_writer_event(export->writer, event);
}

static int put_member(void *context, const struct reducer_member *member)
{
	struct export *export = context;

	return reducer_writer_member(export->writer, member);
}

static void take_result(struct export *export)
{
	export->stats = *reducer_writer_stats(export->writer);
	export->n_left_out = reducer_writer_left_out(export->writer, export->left_out, LEFT_OUT_MAX);
	if (export->n_left_out > LEFT_OUT_MAX)
		export->n_left_out = LEFT_OUT_MAX;
}

/* Failures of the output are in write_failed; else the message is out. */
static int export_through_writer(struct export *export, int fd)
{
	const struct reducer_sink sink = {.context = export, .event = put_event, .member = put_member};
	struct export_sources *sources = &export->sources;
	struct reducer_writer_options options = {
		/* A ring says what it was fed from; a trace that is a bare array becomes an object. */
		.array_root = sources->array_root && sources->format == REDUCER_FORMAT_DREC,
		.gzip_level = reducer_chrome_writer_level(export->options->output),
		.has_base = sources->has_base,
		.base_unix_ns = sources->base_unix_ns,
		.strip_args = export->options->strip_args,
	};
	int status = COMMAND_DONE;

	export->write_failed =
		reducer_writer_new(fd, export->format, &options, export->folder, &export->writer);
	if (export->write_failed)
		return COMMAND_FAILED;
	status = export_sources_read(sources, &sink, true);
	end_progress(export);
	export->write_failed = sources->sink_failed;
	if (status == COMMAND_DONE)
		export->write_failed = reducer_writer_finish(export->writer);
	if (status == COMMAND_DONE && !export->write_failed)
		take_result(export);
	reducer_writer_free(export->writer);
	export->writer = NULL;
	return export->write_failed ? COMMAND_FAILED : status;
}

/* --- .drec --- */

static void add_left_out(struct export *export, const char *what, uint64_t count)
{
	if (count && export->n_left_out < LEFT_OUT_MAX)
		export->left_out[export->n_left_out++] = (struct reducer_left_out){what, count};
}

static int export_drec(struct export *export)
{
	struct export_sources *sources = &export->sources;
	struct export_drec_result result = {0};
	int status = COMMAND_DONE;

	if (sources->count != 1)
		return command_failed(export->call,
				      "a .drec holds one ring and this incident has %zu files: name one "
				      "of raw/ in its folder",
				      sources->count);
	if (sources->format == REDUCER_FORMAT_DREC && !export->options->strip_args)
		export->write_failed = export_drec_copy(sources, export->fd, &result, &status);
	else
		export->write_failed = export_drec_make(sources, export->fd, export->folder,
							export->options->strip_args, &result, &status);
	export->stats.events = result.events;
	export->stats.file_bytes = result.file_bytes;
	add_left_out(export, "args of events", result.args);
	add_left_out(export, "events over 512 KiB", result.too_big);
	return export->write_failed ? COMMAND_FAILED : status;
}

/* --- what is said of it --- */

static int say_json(const struct export *export)
{
	cJSON *root = cJSON_CreateObject(), *list;

	output_json_text(root, "output", export->options->output);
	output_json_text(root, "format", reducer_format_name(export->format));
	output_json_count(root, "events", export->stats.events);
	output_json_count(root, "bytes", export->stats.file_bytes);
	list = cJSON_AddArrayToObject(root, "left_out");
	for (size_t i = 0; i < export->n_left_out; i++) {
		cJSON *one = cJSON_CreateObject();

		output_json_text(one, "what", export->left_out[i].what);
		output_json_count(one, "count", export->left_out[i].count);
		cJSON_AddItemToArray(list, one);
	}
	return output_json_print(root, stdout) < 0 ? COMMAND_FAILED : COMMAND_DONE;
}

static int say_result(struct export *export)
{
	char count[OUTPUT_TEXT_MAX], bytes[OUTPUT_TEXT_MAX];
	bool copied = export->format == REDUCER_FORMAT_DREC &&
		      export->sources.format == REDUCER_FORMAT_DREC && !export->options->strip_args;

	if (!copied) {
		add_left_out(export, "open spans, kept in manifest.json", export->sources.open_spans);
		add_left_out(export, "captures, kept in raw/captures/", export->sources.captures);
	}
	if (export->options->json)
		return say_json(export);
	if (copied) {
		printf("%s, every event as it was given.\n", output_bytes(bytes, export->stats.file_bytes));
		return COMMAND_DONE;
	}
	printf("%s events, %s.", output_count(count, export->stats.events),
	       output_bytes(bytes, export->stats.file_bytes));
	for (size_t i = 0; i < export->n_left_out; i++)
		printf("%s%s (%s)", i ? ", " : " Not in this format: ", export->left_out[i].what,
		       output_count(count, export->left_out[i].count));
	printf("%s\n", export->n_left_out ? "." : "");
	return COMMAND_DONE;
}

/* How much the output would take: the same once more, to nowhere. 0 where that cannot be told. */
static uint64_t room_needed(struct export *export)
{
	struct stat st;
	int fd, status;

	if (export->format == REDUCER_FORMAT_DREC) {
		char buffer[64];
		const char *path = export_sources_path(&export->sources, 0, buffer, sizeof(buffer));

		return export->sources.format == REDUCER_FORMAT_DREC && stat(path, &st) == 0
			       ? (uint64_t)st.st_size
			       : 0;
	}
	fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	status = fd < 0 ? COMMAND_FAILED : export_through_writer(export, fd);
	if (fd >= 0)
		close(fd);
	return status == COMMAND_DONE ? export->stats.file_bytes : 0;
}

static int say_write_failed(struct export *export)
{
	const char *output = export->options->output;
	char needed[OUTPUT_TEXT_MAX], had[OUTPUT_TEXT_MAX];
	int error = export->write_failed;
	struct statvfs room;
	uint64_t bytes = 0;

	/* First of all give back what it took. */
	if (ftruncate(export->fd, 0) == 0 && (error == -ENOSPC || error == -EDQUOT || error == -EFBIG))
		bytes = room_needed(export);
	if (!bytes || fstatvfs(export->fd, &room) < 0)
		return command_failed(export->call, "%s: %s", output, strerror(-error));
	return command_failed(export->call, "%s: %s: %s needed, %s free", output, strerror(-error),
			      output_bytes(needed, bytes), output_bytes(had, room.f_bavail * room.f_frsize));
}

/* --- the output appears whole --- */

/* The folder's entry is as lasting as the file then. */
static int sync_folder(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;

	if (fd < 0)
		return 0; /* it may be written, but not read */
	if (fsync(fd) < 0 && errno != EINVAL && errno != EROFS)
		r = -errno;
	close(fd);
	return r;
}

static int write_output(struct export *export)
{
	const char *output = export->options->output;
	int status;

	if ((size_t)snprintf(export->tmp, sizeof(export->tmp), "%s.%d.tmp", output, (int)getpid()) >=
	    sizeof(export->tmp))
		return command_failed(export->call, "%s: the name is too long", output);
	export->fd = open(export->tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (export->fd < 0)
		return command_failed(export->call, "%s: %s", output, strerror(errno));
	status = export->format == REDUCER_FORMAT_DREC ? export_drec(export)
						       : export_through_writer(export, export->fd);
	if (status == COMMAND_DONE && (fsync(export->fd) < 0 || rename(export->tmp, output) < 0))
		export->write_failed = -errno;
	else if (status == COMMAND_DONE)
		export->write_failed = sync_folder(export->folder);
	if (export->write_failed)
		status = say_write_failed(export);
	else if (status == COMMAND_DONE)
		status = say_result(export);
	close(export->fd);
	if (status != COMMAND_DONE)
		unlink(export->tmp);
	return status;
}

/* A rename would replace a link, a pipe or a device itself. */
static int check_old(const struct export *export)
{
	const char *output = export->options->output;
	struct stat old;

	if (lstat(output, &old) == 0 && !S_ISREG(old.st_mode) && !S_ISDIR(old.st_mode))
		return command_failed(export->call, "%s is no regular file, and is not replaced by one", output);
	return COMMAND_DONE;
}

static int take_output(struct export *export)
{
	const char *output = export->options->output, *slash;

	if (!output)
		return command_misuse(export->call,
				      "where to? -o FILE.json.gz, .json, .xplane.pb, .pftrace or .drec");
	export->format = reducer_format_of_name(output);
	if (export->format == REDUCER_FORMAT_NONE)
		return command_misuse(export->call,
				      "%s: there is .json, .json.gz, .xplane.pb, .pftrace and .drec", output);
	slash = strrchr(output, '/');
	snprintf(export->folder, sizeof(export->folder), "%.*s",
		 slash ? (int)(slash - output) + (slash == output) : 1, slash ? output : ".");
	return COMMAND_DONE;
}

static int export_run(const struct command_call *call)
{
	struct export *export = calloc(1, sizeof(*export));
	int status;

	if (!export)
		return command_failed(call, "out of memory");
	export->call = export->sources.call = call;
	export->options = call->options;
	export->fd = export->sources.spool_fd = -1;
	export->watched = isatty(STDERR_FILENO);
	status = take_output(export);
	if (status == COMMAND_DONE)
		status = export_sources_find(&export->sources, call->argv[0], export->options->store,
					     export->folder);
	/* Chrome traces keep their time as it is, and Perfetto's writer waits for it. */
	if (status == COMMAND_DONE)
		status = export_sources_base(&export->sources, export->format == REDUCER_FORMAT_XPLANE ||
								       export->format == REDUCER_FORMAT_DREC);
	if (status == COMMAND_DONE)
		status = check_old(export);
	if (status == COMMAND_DONE)
		status = write_output(export);
	export_sources_free(&export->sources);
	free(export);
	return status;
}

const struct command command_export = {
	.name = "export",
	.summary = "write an incident, a window file, a ring or a trace in another format",
	.operands = "ID|FILE -o OUT",
	.details = "Reads Chrome traces and XPlane files (plain, gzip or zstd), rings, .drec files and "
		   "incidents. The name "
		   "of OUT says the format: .json and .json.gz are Chrome trace JSON, for Perfetto and "
		   "chrome://tracing; "
		   ".pftrace is Perfetto's own; .xplane.pb is for XProf and TensorBoard; .drec is a raw "
		   "window file.\n"
		   "Says how many events were written, and what the format has no place for. OUT appears "
		   "when it is whole.",
	.examples =
		"driverec export 7f3a -o stall.json.gz\ndriverec export trace.json.gz -o trace.pftrace\n"
		"driverec export host.xplane.pb -o host.json.gz\ndriverec export rank3.drec -o rank3.json "
		"--strip-args",
	.options = export_rows,
	.options_bytes = sizeof(struct export_options),
	.operands_min = 1,
	.operands_max = 1,
	.run = export_run,
};
