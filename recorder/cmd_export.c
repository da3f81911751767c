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

#include <driverec/freeze.h>
#include <reducer/chrome.h>
#include <reducer/chrome_writer.h>
#include <reducer/drec_codec.h>

#include "command.h"
#include "export_pids.h"
#include "export_seen.h"
#include "incidents/files.h"
#include "incidents/manifest.h"
#include "ns.h"
#include "output.h"
#include "ring_file.h"
#include "store_option.h"

enum { SOURCES_MAX = 2048 };

struct export_options {
	const char *store, *output;
	bool strip_args;
};

static const struct option_row export_rows[] = {
	OPTION_ROW('o', "output", "FILE", OPTION_TEXT, struct export_options, output,
		   "what to write; its name says the format: .json, .json.gz, .drec"),
	OPTION_ROW_FLAG(0, "strip-args", struct export_options, strip_args, "leave the args of events out"),
	OPTION_ROW(0, "store", "DIR", OPTION_TEXT, struct export_options, store, "where incidents are kept"),
	OPTION_ROWS_END,
};

/* The files that are exported together, and what the output has no place for. */
struct sources {
	char *path[SOURCES_MAX];
	size_t count;
	unsigned open_spans, captures;
	struct reducer_drec_options within; /* the incident's windows */
	unsigned windows;
};

struct export
{
	const struct command_call *call;
	const struct export_options *options;
	struct sources sources;
	char tmp[INCIDENTS_PATH_MAX];
	int fd;
	struct export_seen seen; /* where there are several sources */
	struct export_pids pids;
	size_t source;    /* that is read now; files of one ring have one number */
	uint8_t ring_id[SOURCES_MAX][16];
	int write_failed; /* -errno of the output, where reading was well */
	struct reducer_chrome_writer_stats stats;
};

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);

	return length >= tail && !strcmp(text + length - tail, end);
}

static int add_source(struct sources *sources, const char *path)
{
	if (sources->count == SOURCES_MAX)
		return -E2BIG;
	sources->path[sources->count] = strdup(path);
	if (!sources->path[sources->count])
		return -ENOMEM;
	sources->count++;
	return 0;
}

/* An incident's own windows, since a file of it may be for one of them and hold events of the other. */
static void take_windows(const cJSON *root, struct sources *sources)
{
	const cJSON *window;

	cJSON_ArrayForEach(window, cJSON_GetObjectItemCaseSensitive(root, "windows"))
	{
		const cJSON *asked = cJSON_GetObjectItemCaseSensitive(window, "asked");

		if (sources->windows == 0) {
			sources->within.a_ns = json_ns(asked, "a_ns", INT64_MIN);
			sources->within.b_ns = json_ns(asked, "b_ns", INT64_MAX);
			sources->within.has_window = 1;
		} else if (sources->windows == 1) {
			sources->within.second_a_ns = json_ns(asked, "a_ns", INT64_MIN);
			sources->within.second_b_ns = json_ns(asked, "b_ns", INT64_MAX);
			sources->within.has_second = 1;
		}
		sources->windows++;
	}
}

/* The raw windows that the manifest lists. */
static int incident_sources(struct incidents_store *store, const struct incidents_entry *entry,
			    struct sources *sources)
{
	const cJSON *file;
	cJSON *root = NULL;
	char name[256], path[INCIDENTS_PATH_MAX + 512];
	int r = incident_manifest_read(store, entry->folder, &root);

	if (r < 0)
		return r;
	sources->open_spans =
		(unsigned)cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(root, "open_spans"));
	take_windows(root, sources);
	cJSON_ArrayForEach(file, cJSON_GetObjectItemCaseSensitive(root, "files"))
	{
		json_text(file, "path", name, sizeof(name));
		if (!strncmp(name, "raw/captures/", strlen("raw/captures/")))
			sources->captures++;
		if (!ends_with(name, ".drec") || strncmp(name, "raw/", 4) != 0 || strstr(name, ".."))
			continue;
		snprintf(path, sizeof(path), "%s/incidents/%s/%s", incidents_store_path(store), entry->folder,
			 name);
		r = add_source(sources, path);
		if (r < 0)
			break;
	}
	cJSON_Delete(root);
	return r;
}

/* A file that is there is meant as one; anything else names an incident. */
static int find_sources(struct export *export, const char *what)
{
	struct incidents_store *store = NULL;
	struct incidents_entry entry;
	struct stat st;
	int r;

	if (stat(what, &st) < 0 && errno == ENOENT &&
	    (ends_with(what, ".json") || ends_with(what, ".json.gz") || ends_with(what, ".drec") ||
	     ends_with(what, ".ring")))
		return command_failed(export->call, "%s: %s", what, strerror(ENOENT));
	if (stat(what, &st) == 0 && !S_ISDIR(st.st_mode))
		return add_source(&export->sources, what) < 0 ? command_failed(export->call, "out of memory")
							      : COMMAND_DONE;
	r = store_option_open(export->call, export->options->store, &store);
	if (r != COMMAND_DONE)
		return r;
	r = store_option_find(export->call, store, what, &entry);
	if (r == COMMAND_DONE) {
		int found = incident_sources(store, &entry, &export->sources);

		if (found < 0)
			r = command_failed(export->call, "%s: %s", entry.folder, strerror(-found));
		else if (export->sources.count == 0)
			r = command_failed(export->call,
					   "%s: holds no raw window; driverec show %.8s says why",
					   entry.folder, entry.id);
	}
	incidents_store_free(store);
	return r;
}

/* --- Chrome JSON --- */

static void say_damage(const struct export *export, const char *path, const struct reducer_problem *problem)
{
	command_failed(export->call, "%s: %s (at byte %" PRIu64 ")", path, problem->what, problem->offset);
}

static bool was_exported(void *context, const struct drec_place *place)
{
	return export_seen_before(context, place);
}

/* A ring's number is that of its first file. */
static void begin_ring(struct export *export, size_t index, const struct drec_header *header,
		       struct reducer_drec_options *options)
{
	memcpy(export->ring_id[index], header->ring_id, sizeof(header->ring_id));
	export->source = 0;
	while (memcmp(export->ring_id[export->source], header->ring_id, sizeof(header->ring_id)) != 0)
		export->source++;
	export_seen_ring(&export->seen, header);
	options->leave_out = was_exported;
	options->context = &export->seen;
}

static int read_ring(struct export *export, size_t index, const char *path, struct drec_reader *reader,
		     const struct reducer_sink *sink)
{
	const struct drec_window *window = drec_reader_window(reader);
	struct reducer_drec_options options = export->sources.within;
	struct reducer_read_report report;

	if (window && !options.has_window) {
		options.has_window = 1;
		options.a_ns = window->a_ns;
		options.b_ns = window->b_ns;
	}
	if (export->sources.count > 1)
		begin_ring(export, index, drec_reader_header(reader), &options);
	int r = reducer_drec_read(reader, sink, &options, NULL, &report);

	for (unsigned i = 0; r == 0 && i < report.n_problems; i++)
		say_damage(export, path, &report.problem[i]);
	return r;
}

static int read_trace(struct export *export, const char *path, const struct reducer_sink *sink)
{
	struct reducer_input *input = NULL;
	struct reducer_problem problem = {0};
	struct reducer_read_report report;
	int r = reducer_input_open(path, &input, &problem);

	if (r < 0)
		return -command_failed(export->call, "%s: %s", path,
				       problem.what[0] ? problem.what : strerror(-r));
	r = reducer_chrome_read(input, sink, NULL, &report);
	if (r == -EBADMSG && report.n_problems)
		r = -command_failed(export->call, "%s: %s (at byte %" PRIu64 ")", path,
				    report.problem[report.n_problems - 1].what,
				    report.problem[report.n_problems - 1].offset);
	else if (r < 0 && !export->write_failed)
		r = -command_failed(export->call, "%s: %s", path, strerror(-r));
	for (unsigned i = 0; r == 0 && i < report.n_problems; i++)
		say_damage(export, path, &report.problem[i]);
	reducer_input_free(input);
	return r;
}

/* Failures below are exit statuses, negated, since their message is out. */
static int read_source(struct export *export, size_t index, const struct reducer_sink *sink)
{
	const char *path = export->sources.path[index];
	struct drec_reader *reader = NULL;
	struct drec_problem problem = {0};
	int r;

	if (!ring_file_is(path))
		return read_trace(export, path, sink);
	r = drec_reader_open(AT_FDCWD, path, NULL, &reader, &problem);
	if (r < 0)
		return -command_failed(export->call, "%s: %s (at byte %" PRIu64 ")", path,
				       problem.what[0] ? problem.what : strerror(-r), problem.offset);
	r = read_ring(export, index, path, reader, sink);
	drec_reader_free(reader);
	if (r < 0 && !export->write_failed)
		r = -command_failed(export->call, "%s: %s", path, strerror(-r));
	return r;
}

/* A source's own base and root form are kept where there is one source. */
static void take_form(const struct export *export, struct reducer_chrome_writer_options *options)
{
	struct drec_reader *reader = NULL;
	struct reducer_drec_source source;
	struct drec_problem problem;

	if (export->sources.count != 1 || !ring_file_is(export->sources.path[0]) ||
	    drec_reader_open(AT_FDCWD, export->sources.path[0], NULL, &reader, &problem) < 0)
		return;
	if (reducer_drec_source(reader, &source) == 0) {
		options->array_root = source.array_root;
		options->has_base = source.has_base;
		options->base_unix_ns = source.base_unix_ns;
	}
	drec_reader_free(reader);
}

static void say_left_out(const struct export *export, const struct reducer_chrome_writer_stats *stats)
{
	const struct sources *sources = &export->sources;
	const char *before = " Not in this format: ";

	if (stats->args_left_out) {
		printf("%sargs of %" PRIu64 " events", before, stats->args_left_out);
		before = ", ";
	}
	if (stats->members_left_out) {
		printf("%s%" PRIu64 " top-level members", before, stats->members_left_out);
		before = ", ";
	}
	if (sources->open_spans) {
		printf("%s%u open spans (kept in manifest.json)", before, sources->open_spans);
		before = ", ";
	}
	if (sources->captures) {
		printf("%s%u captures (kept in raw/captures/)", before, sources->captures);
		before = ", ";
	}
	printf("%s\n", before[0] == ',' ? "." : "");
}

/* The writer, which remembers whose failure it is. */
struct chrome_output {
	struct export *export;
	struct reducer_chrome_writer *writer;
};

static int put_event(void *context, const struct reducer_event *event)
{
	struct chrome_output *output = context;
	struct export *export = output->export;
	struct reducer_event apart = *event;

	if (export->sources.count > 1 && event->group.bytes)
		export->write_failed =
			export_pids_of(&export->pids, export->source, event->group, &apart.group);
	if (!export->write_failed)
		export->write_failed = reducer_chrome_writer_event(output->writer, &apart);
	return export->write_failed;
}

static int put_member(void *context, const struct reducer_member *member)
{
	struct chrome_output *output = context;

	return output->export->write_failed = reducer_chrome_writer_member(output->writer, member);
}

/* Failures of the output are in write_failed, those of a source are out. */
static int export_chrome(struct export *export, int fd)
{
	struct reducer_chrome_writer_options options = {.strip_args = export->options->strip_args};
	struct chrome_output output = {.export = export};
	struct reducer_sink sink = {.context = &output, .event = put_event, .member = put_member};
	int r;

	options.gzip_level = reducer_chrome_writer_level(export->options->output);
	take_form(export, &options);
	r = export->write_failed = reducer_chrome_writer_new(fd, &options, &output.writer);
	for (size_t i = 0; r == 0 && i < export->sources.count; i++) {
		r = read_source(export, i, &sink);
		sink.member = NULL; /* those of the first one stand for all */
	}
	if (r == 0)
		r = export->write_failed = reducer_chrome_writer_finish(output.writer);
	if (r == 0)
		export->stats = *reducer_chrome_writer_stats(output.writer);
	reducer_chrome_writer_free(output.writer);
	export_seen_free(&export->seen);
	export_pids_free(&export->pids);
	return r;
}

static void say_chrome(const struct export *export)
{
	char count[OUTPUT_TEXT_MAX], bytes[OUTPUT_TEXT_MAX];

	printf("%s events, %s.", output_count(count, export->stats.events),
	       output_bytes(bytes, export->stats.file_bytes));
	say_left_out(export, &export->stats);
}

/* How much the output would take: the same once more, to nowhere. 0 where that cannot be told. */
static uint64_t room_needed(struct export *export)
{
	struct stat st;
	int fd, r;

	for (size_t i = 0; i < export->sources.count; i++) {
		if (stat(export->sources.path[i], &st) < 0 || !S_ISREG(st.st_mode))
			return 0;
	}
	if (ends_with(export->options->output, ".drec"))
		return (uint64_t)st.st_size;
	fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	r = fd < 0 ? -errno : export_chrome(export, fd);
	if (fd >= 0)
		close(fd);
	return r == 0 ? export->stats.file_bytes : 0;
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

/* --- .drec --- */

/* All of a ring as it is now. */
static int snapshot_ring(struct drec_reader *reader, int fd)
{
	const struct drec_header *header = drec_reader_header(reader);
	int64_t offset = drec_reader_mono_to_unix_ns(reader);
	struct drec_snapshot_request request = {.mono_to_unix_ns = offset};
	struct drec_snapshot_result result;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	request.a_ns = ns_add(header->created_mono_ns, offset);
	request.t0_ns = request.b_ns = ns_add((int64_t)now.tv_sec * 1000000000 + now.tv_nsec, offset);
	return drec_snapshot_write(reader, fd, &request, &result);
}

static int export_drec(struct export *export)
{
	const char *path = export->sources.path[0];
	struct drec_reader *reader = NULL;
	struct drec_problem problem = {0};
	int r;

	if (export->sources.count != 1)
		return -command_failed(export->call,
				       "a .drec holds one ring and this incident has %zu files: name one "
				       "of raw/ in its folder",
				       export->sources.count);
	if (export->options->strip_args)
		return -command_failed(export->call,
				       "--strip-args: a .drec is raw as it is; write .json or .json.gz");
	if (!ring_file_is(path))
		return -command_failed(export->call, "%s: is no ring or window file; write .json or .json.gz", path);
	r = drec_reader_open(AT_FDCWD, path, NULL, &reader, &problem);
	if (r < 0)
		return -command_failed(export->call, "%s: %s (at byte %" PRIu64 ")", path,
				       problem.what[0] ? problem.what : strerror(-r), problem.offset);
	r = drec_reader_window(reader) ? files_copy(drec_reader_fd(reader), export->fd)
				       : snapshot_ring(reader, export->fd);
	drec_reader_free(reader);
	return export->write_failed = r;
}

static void say_drec(const struct export *export)
{
	char bytes[OUTPUT_TEXT_MAX];
	struct stat st;

	if (fstat(export->fd, &st) == 0)
		printf("%s, every event as it was given.\n", output_bytes(bytes, (uint64_t)st.st_blocks * 512));
}

/* --- the output appears whole --- */

static int write_output(struct export *export)
{
	const char *output = export->options->output;
	bool raw = ends_with(output, ".drec");
	int r, status = COMMAND_DONE;

	if ((size_t)snprintf(export->tmp, sizeof(export->tmp), "%s.%d.tmp", output, (int)getpid()) >=
	    sizeof(export->tmp))
		return command_failed(export->call, "%s: the name is too long", output);
	export->fd = open(export->tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (export->fd < 0)
		return command_failed(export->call, "%s: %s", output, strerror(errno));
	r = raw ? export_drec(export) : export_chrome(export, export->fd);
	if (r == 0 && (fsync(export->fd) < 0 || rename(export->tmp, output) < 0))
		r = export->write_failed = -errno;
	if (export->write_failed)
		status = say_write_failed(export);
	else if (r < 0)
		status = -r;
	else if (raw)
		say_drec(export);
	else
		say_chrome(export);
	close(export->fd);
	if (status != COMMAND_DONE)
		unlink(export->tmp);
	return status;
}

static int export_run(const struct command_call *call)
{
	const struct export_options *options = call->options;
	struct export export = {.call = call, .options = options, .fd = -1};
	int status;

	if (!options->output)
		return command_misuse(call, "where to? -o FILE.json.gz, FILE.json or FILE.drec");
	if (!ends_with(options->output, ".json") && !ends_with(options->output, ".json.gz") &&
	    !ends_with(options->output, ".drec"))
		return command_misuse(call, "%s: there is .json, .json.gz and .drec", options->output);
	status = find_sources(&export, call->argv[0]);
	if (status == COMMAND_DONE)
		status = write_output(&export);
	for (size_t i = 0; i < export.sources.count; i++)
		free(export.sources.path[i]);
	return status;
}

const struct command command_export = {
	.name = "export",
	.summary = "write an incident, a window file, a ring or a trace in another format",
	.operands = "ID|FILE -o OUT",
	.details =
		"The name of OUT says the format: .json and .json.gz are Chrome trace JSON, for Perfetto and "
		"chrome://tracing; .drec is a raw window file.\n"
		"Says how many events were written, and what the format has no place for.",
	.examples = "driverec export 7f3a -o stall.json.gz\ndriverec export rank3.drec -o rank3.json "
		    "--strip-args",
	.options = export_rows,
	.options_bytes = sizeof(struct export_options),
	.operands_min = 1,
	.operands_max = 1,
	.run = export_run,
};
