/* SPDX-License-Identifier: Apache-2.0 */
#include "export_sources.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "incidents/files.h"
#include "incidents/manifest.h"
#include "store_option.h"

enum { PIPE_PATH_MAX = 64 };

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);

	return length >= tail && !strcmp(text + length - tail, end);
}

static int add_source(struct export_sources *sources, const char *path)
{
	if (sources->count == EXPORT_SOURCES_MAX)
		return -E2BIG;
	sources->path[sources->count] = strdup(path);
	if (!sources->path[sources->count])
		return -ENOMEM;
	sources->count++;
	return 0;
}

/* --- an incident --- */

/* Its own windows, since a file of it may be for one of them and hold events of the other. */
static void take_windows(const cJSON *root, struct export_sources *sources)
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
			    struct export_sources *sources)
{
	const cJSON *file;
	cJSON *root = NULL;
	char name[256], path[INCIDENTS_PATH_MAX + 512];
	int r = incident_manifest_read(store, entry->folder, &root);

	if (r < 0)
		return r;
	sources->format = REDUCER_FORMAT_DREC;
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

static int find_incident(struct export_sources *sources, const char *what, const char *where)
{
	struct incidents_store *store = NULL;
	struct incidents_entry entry;
	int status = store_option_open(sources->call, where, &store);

	if (status != COMMAND_DONE)
		return status;
	status = store_option_find(sources->call, store, what, &entry);
	if (status == COMMAND_DONE) {
		int r = incident_sources(store, &entry, sources);

		if (r < 0)
			status = command_failed(sources->call, "%s: %s", entry.folder, strerror(-r));
		else if (sources->count == 0)
			status = command_failed(sources->call,
						"%s: holds no raw window; driverec show %.8s says why",
						entry.folder, entry.id);
	}
	incidents_store_free(store);
	return status;
}

/* --- a file --- */

/* What comes through a pipe comes once. */
static int spool_pipe(struct export_sources *sources, const char *path, const char *folder)
{
	int from = open(path, O_RDONLY | O_CLOEXEC), r = from < 0 ? -errno : 0;

	if (r == 0) {
		sources->spool_fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		if (sources->spool_fd < 0)
			sources->spool_fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		r = sources->spool_fd < 0 ? -errno : files_copy(from, sources->spool_fd);
	}
	if (from >= 0)
		close(from);
	return r;
}

const char *export_sources_path(const struct export_sources *sources, size_t index, char *buffer, size_t room)
{
	if (sources->spool_fd < 0)
		return sources->path[index];
	snprintf(buffer, room, "/proc/self/fd/%d", sources->spool_fd);
	return buffer;
}

static int refuse(const struct export_sources *sources, size_t index, int error,
		  const struct reducer_problem *problem)
{
	/* A file that is not there has no bytes to point at. */
	if (error == -EBADMSG || problem->offset)
		return command_failed(sources->call, "%s: %s (at byte %" PRIu64 ")", sources->path[index],
				      problem->what, problem->offset);
	return command_failed(sources->call, "%s: %s", sources->path[index],
			      problem->what[0] ? problem->what : strerror(-error));
}

static int find_file(struct export_sources *sources, const char *path, const struct stat *st,
		     const char *folder)
{
	struct reducer_problem problem = {0};
	char buffer[PIPE_PATH_MAX];
	int r = add_source(sources, path);

	if (r == 0 && !S_ISREG(st->st_mode))
		r = spool_pipe(sources, path, folder);
	if (r < 0)
		return command_failed(sources->call, "%s: %s", path, strerror(-r));
	r = reducer_trace_sniff(export_sources_path(sources, 0, buffer, sizeof(buffer)), &sources->format,
				&problem);
	return r < 0 ? refuse(sources, 0, r, &problem) : COMMAND_DONE;
}

int export_sources_find(struct export_sources *sources, const char *what, const char *store,
			const char *folder)
{
	struct stat st;
	bool there = stat(what, &st) == 0;

	if (there && !S_ISDIR(st.st_mode))
		return find_file(sources, what, &st, folder);
	if (!there && errno == ENOENT &&
	    (reducer_format_of_name(what) != REDUCER_FORMAT_NONE || ends_with(what, ".ring")))
		return command_failed(sources->call, "%s: %s", what, strerror(ENOENT));
	return find_incident(sources, what, store);
}

/* --- what times count from --- */

struct base_search {
	struct reducer_read_report report;
	bool all;
};

enum { BASE_KNOWN = 1 };

static int stop_when_known(void *context, const struct reducer_event *event)
{
	const struct base_search *search = context;

	(void)event;
	return search->report.has_base || !search->all ? BASE_KNOWN : 0;
}

int export_sources_base(struct export_sources *sources, bool all)
{
	struct base_search search = {.all = all};
	const struct reducer_sink sink = {.context = &search, .event = stop_when_known};
	char buffer[PIPE_PATH_MAX];
	int r;

	if (sources->count > 1) {
		sources->has_base = true;
		return COMMAND_DONE;
	}
	if (sources->format == REDUCER_FORMAT_DREC) {
		struct reducer_drec_source source;
		struct drec_reader *reader = NULL;
		struct drec_problem problem = {0};

		/* What is wrong with it is said when it is read. */
		if (drec_reader_open(AT_FDCWD, sources->path[0], NULL, &reader, &problem) < 0)
			return COMMAND_DONE;
		if (reducer_drec_source(reader, &source) == 0) {
			sources->array_root = source.array_root;
			sources->has_base = source.has_base || !source.fed;
			sources->base_unix_ns = source.has_base ? source.base_unix_ns : 0;
		}
		drec_reader_free(reader);
		return COMMAND_DONE;
	}
	r = reducer_trace_read(export_sources_path(sources, 0, buffer, sizeof(buffer)), sources->format,
			       &sink, &search.report);
	if (r < 0)
		return refuse(
			sources, 0, r,
			&search.report.problem[search.report.n_problems ? search.report.n_problems - 1 : 0]);
	sources->array_root = search.report.array_root;
	sources->has_base = search.report.has_base;
	sources->base_unix_ns = search.report.base_unix_ns;
	return COMMAND_DONE;
}

/* --- reading --- */

/* Between reader and sink: pids kept apart, times counted from the base, and whose failure it is. */
static int pass_event(void *context, const struct reducer_event *event)
{
	struct export_sources *sources = context;
	struct reducer_event moved = *event;

	if (sources->count > 1 && event->group.bytes)
		sources->sink_failed =
			export_pids_of(&sources->pids, sources->ring, event->group, &moved.group);
	if (sources->format == REDUCER_FORMAT_DREC && event->has_time &&
	    __builtin_sub_overflow(event->start_ns, sources->base_unix_ns, &moved.start_ns))
		moved.start_ns = event->start_ns < 0 ? INT64_MIN : INT64_MAX;
	if (!sources->sink_failed)
		sources->sink_failed = sources->sink->event(sources->sink->context, &moved);
	return sources->sink_failed;
}

static int pass_member(void *context, const struct reducer_member *member)
{
	struct export_sources *sources = context;

	return sources->sink_failed = sources->sink->member(sources->sink->context, member);
}

static bool was_exported(void *context, const struct drec_place *place)
{
	return export_seen_before(context, place);
}

/* A ring's number is that of its first file. */
static void begin_ring(struct export_sources *sources, size_t index, const struct drec_header *header,
		       struct reducer_drec_options *options)
{
	memcpy(sources->ring_id[index], header->ring_id, sizeof(header->ring_id));
	sources->ring = 0;
	while (memcmp(sources->ring_id[sources->ring], header->ring_id, sizeof(header->ring_id)) != 0)
		sources->ring++;
	export_seen_ring(&sources->seen, header);
	options->leave_out = was_exported;
	options->context = &sources->seen;
}

static int read_ring(struct export_sources *sources, size_t index, const struct reducer_sink *sink,
		     struct reducer_read_report *report)
{
	struct reducer_drec_options options = sources->within;
	struct drec_reader *reader = NULL;
	struct drec_problem problem = {0};
	char buffer[PIPE_PATH_MAX];
	const char *path = export_sources_path(sources, index, buffer, sizeof(buffer));
	int r = drec_reader_open(AT_FDCWD, path, NULL, &reader, &problem);

	if (r < 0) {
		report->n_problems = 1;
		report->problem[0].offset = problem.offset;
		snprintf(report->problem[0].what, sizeof(report->problem[0].what), "%s",
			 problem.what[0] ? problem.what : strerror(-r));
		return -EBADMSG;
	}
	const struct drec_window *window = drec_reader_window(reader);

	if (window && !options.has_window) {
		options.has_window = 1;
		options.a_ns = window->a_ns;
		options.b_ns = window->b_ns;
	}
	if (sources->count > 1)
		begin_ring(sources, index, drec_reader_header(reader), &options);
	r = reducer_drec_read(reader, sink, &options, NULL, report);
	drec_reader_free(reader);
	return r;
}

static int read_source(struct export_sources *sources, size_t index, const struct reducer_sink *sink,
		       bool say_damage)
{
	struct reducer_read_report report = {0};
	char buffer[PIPE_PATH_MAX];
	int r;

	if (sources->format == REDUCER_FORMAT_DREC)
		r = read_ring(sources, index, sink, &report);
	else
		r = reducer_trace_read(export_sources_path(sources, index, buffer, sizeof(buffer)),
				       sources->format, sink, &report);
	if (sources->sink_failed)
		return COMMAND_FAILED;
	if (r < 0)
		return refuse(sources, index, r,
			      &report.problem[report.n_problems ? report.n_problems - 1 : 0]);
	for (unsigned i = 0; say_damage && i < report.n_problems; i++)
		command_failed(sources->call, "%s: %s (at byte %" PRIu64 ")", sources->path[index],
			       report.problem[i].what, report.problem[i].offset);
	return COMMAND_DONE;
}

int export_sources_read(struct export_sources *sources, const struct reducer_sink *sink, bool say_damage)
{
	struct reducer_sink pass = {.context = sources, .event = pass_event, .member = pass_member};
	int status = COMMAND_DONE;

	sources->sink = sink;
	sources->sink_failed = 0;
	for (size_t i = 0; status == COMMAND_DONE && i < sources->count; i++) {
		status = read_source(sources, i, &pass, say_damage);
		pass.member = NULL; /* those of the first one stand for all */
	}
	export_seen_free(&sources->seen);
	export_pids_free(&sources->pids);
	sources->seen = (struct export_seen){0};
	sources->pids = (struct export_pids){0};
	return status;
}

void export_sources_free(struct export_sources *sources)
{
	for (size_t i = 0; i < sources->count; i++)
		free(sources->path[i]);
	if (sources->spool_fd >= 0)
		close(sources->spool_fd);
}
