/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <driverec/freeze.h>
#include <driverec/identity.h>

#include "command.h"
#include "incidents/incidents.h"
#include "ns.h"
#include "output.h"
#include "plain_text.h"
#include "store_option.h"

enum { OPEN_MAX = 256 };

struct recover_options {
	const char *store, *run_dir, *output;
};

static const struct option_row recover_rows[] = {
	OPTION_ROW('o', "output", "FILE", OPTION_TEXT, struct recover_options, output,
		   "write one ring's window to FILE (.drec) instead of an incident"),
	OPTION_ROW(0, "run-dir", "DIR", OPTION_TEXT, struct recover_options, run_dir, "where rings are"),
	OPTION_ROW(0, "store", "DIR", OPTION_TEXT, struct recover_options, store, "where incidents are kept"),
	OPTION_ROWS_END,
};

/* One ring whose producer is not there any more. */
struct dead_ring {
	const struct command_call *call;
	struct drec_reader *reader;
	struct incidents_ring ring;
	int64_t born_ns, last_ns, offset_ns;
	int64_t step; /* that was open, -1 = none */
	uint64_t events;
};

static int note_event(void *context, const struct drec_event *event, const struct drec_place *place)
{
	struct dead_ring *dead = context;
	int64_t start_ns, end_ns;

	(void)place;
	dead->events++;
	if (drec_reader_event_time(dead->reader, event, &start_ns, &end_ns) == 0 && end_ns > dead->last_ns)
		dead->last_ns = end_ns;
	return 0;
}

/* Says what was open at death, outermost first. */
static void look_inside(struct dead_ring *dead)
{
	struct drec_open_info open[OPEN_MAX];
	int n = drec_reader_open_spans(dead->reader, open, OPEN_MAX);

	for (int i = 0; i < n && i < OPEN_MAX; i++) {
		int64_t start_ns = drec_reader_unix_ns(dead->reader, open[i].start);
		const char *text = "";
		char name[100];
		uint32_t bytes = 0;
		unsigned kind;

		if (start_ns > dead->last_ns)
			dead->last_ns = start_ns;
		if (open[i].mark == DREC_MARK_STEP_BEGIN) {
			dead->step = (int64_t)open[i].step;
			printf("  thread %u: in step %" PRIu64 "\n", open[i].tid, open[i].step);
		} else if (drec_reader_text(dead->reader, open[i].name, &kind, &text, &bytes) == 0) {
			plain_text(name, sizeof(name), text, bytes);
			printf("  thread %u: inside \"%s\"\n", open[i].tid, name);
		}
	}
}

static int read_ring(struct dead_ring *dead)
{
	const struct drec_header *header = drec_reader_header(dead->reader);
	struct drec_poll_stats stats = {0};
	char count[OUTPUT_TEXT_MAX], lost[OUTPUT_TEXT_MAX], job[DREC_TEXT_MAX];
	int r;

	dead->offset_ns = drec_reader_mono_to_unix_ns(dead->reader);
	dead->born_ns = dead->last_ns = ns_add(header->created_mono_ns, dead->offset_ns);
	r = drec_reader_poll(dead->reader, note_event, dead, 0, &stats);
	if (r < 0)
		return r;
	plain_text(job, sizeof(job), header->job, strlen(header->job));
	printf("%s: job %s, %s events, %s overwritten\n", dead->ring.path, job, output_count(count, dead->events),
	       output_count(lost, stats.overwritten));
	look_inside(dead);
	return 0;
}

/* --- as an incident --- */

static size_t host_rings(void *context, struct incidents_ring *ret, size_t room)
{
	struct dead_ring *dead = context;

	if (room > 0)
		ret[0] = dead->ring;
	return 1;
}

/* Nothing more comes, and nobody knows when it died: time stands still at the ring's last event. */
static int64_t host_mono_ns(void *context)
{
	const struct dead_ring *dead = context;

	return ns_sub(dead->last_ns, dead->offset_ns);
}

static int64_t host_offset_ns(void *context)
{
	const struct dead_ring *dead = context;

	return dead->offset_ns;
}

static void host_log(void *context, const char *kind, const char *sentence)
{
	const struct dead_ring *dead = context;

	(void)kind;
	command_failed(dead->call, "%s", sentence);
}

static int keep_ring(struct dead_ring *dead, struct incidents_store *store)
{
	const struct incidents_sizing sizing = {.pre_min_ns = 1};
	const struct incidents_host host = {.context = dead,
					    .rings = host_rings,
					    .mono_ns = host_mono_ns,
					    .mono_to_unix_ns = host_offset_ns,
					    .log = host_log};
	struct triggers_firing firing = {.trigger = "recover",
					 .severity = TRIGGERS_NOTE,
					 .series_id = TRIGGERS_SERIES_NONE,
					 .rank = dead->ring.rank,
					 .t0_ns = dead->last_ns,
					 .until_ns = dead->last_ns,
					 .detected_ns = dead->last_ns,
					 .step = dead->step,
					 .sample = -1,
					 .evidence = "recovered from the ring of a producer that is gone"};
	struct incidents *incidents = NULL;
	char id[INCIDENTS_ID_TEXT] = "";
	int r = incidents_new(&host, store, &sizing, &incidents);

	if (r == 0)
		r = incidents_manual(incidents, &firing, ns_add(ns_sub(dead->last_ns, dead->born_ns), 1), id);
	if (r == 0)
		incidents_tick(incidents);
	if (r == 0 && incidents_counters(incidents)->published == 0)
		r = -EIO;
	incidents_free(incidents);
	if (r == 0)
		printf("  incident %.8s   next: driverec show %.8s\n", id, id);
	return r;
}

/* --- as a window file --- */

static int write_window(struct dead_ring *dead, const char *path)
{
	const struct drec_snapshot_request request = {.t0_ns = dead->last_ns,
						      .a_ns = dead->born_ns,
						      .b_ns = dead->last_ns,
						      .mono_to_unix_ns = dead->offset_ns};
	struct drec_snapshot_result result;
	char bytes[OUTPUT_TEXT_MAX];
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600), r;

	if (fd < 0)
		return -errno;
	r = drec_snapshot_write(dead->reader, fd, &request, &result);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	close(fd);
	if (r < 0)
		unlink(path);
	else
		printf("  %s, %s\n", path, output_bytes(bytes, result.data_bytes));
	return r;
}

/* --- which rings --- */

/* 1 = it was recovered, 0 = nothing to do, or the exit status of a failure, negated. */
static int recover(const struct command_call *call, const char *path, struct incidents_store *store,
		   bool asked_for)
{
	const struct recover_options *options = call->options;
	const struct drec_reader_options reading = {.rings_only = 1, .writable = 1, .safe_open = !asked_for};
	struct dead_ring dead = {
		.call = call, .step = -1, .ring = {.path = path, .watermark_ns = INT64_MAX, .dead = true}};
	struct drec_problem problem = {0};
	int alive, r = drec_reader_open(AT_FDCWD, path, &reading, &dead.reader, &problem);

	if (r < 0)
		return -command_failed(call, "%s: %s", path, problem.what[0] ? problem.what : strerror(-r));
	alive = drec_reader_alive(dead.reader);
	dead.ring.reader = dead.reader;
	dead.ring.rank = drec_reader_header(dead.reader)->rank;
	drec_reader_changed(dead.reader);
	if (alive != 0 || (!asked_for && drec_reader_state(dead.reader)->end_mark)) {
		drec_reader_free(dead.reader);
		if (asked_for)
			return -command_failed(call,
					       "%s: its producer is still there; ask the daemon: driverec "
					       "trigger --last 1min",
					       path);
		return 0;
	}
	r = read_ring(&dead);
	if (r == 0)
		r = options->output ? write_window(&dead, options->output) : keep_ring(&dead, store);
	drec_reader_free(dead.reader);
	if (r < 0)
		return -command_failed(call, "%s: %s", options->output ? options->output : path,
				       strerror(-r));
	return 1;
}

static int recover_all(const struct command_call *call, struct incidents_store *store)
{
	const struct recover_options *options = call->options;
	char run_dir[256], folder[300], path[600];
	const char *why = "";
	struct dirent *entry;
	int found = 0, status = COMMAND_DONE, r = drec_run_dir(options->run_dir, run_dir, sizeof(run_dir), &why);
	DIR *dir;

	if (r < 0)
		return command_failed(call, "%s: %s", why, strerror(-r));
	snprintf(folder, sizeof(folder), "%s/rings", run_dir);
	dir = opendir(folder);
	if (!dir)
		return command_failed(call, "%s: %s", folder, strerror(errno));
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		/* A ring that cannot be read takes nothing from the others. */
		r = recover(call, path, store, false);
		if (r < 0)
			status = -r;
		else
			found += r;
	}
	closedir(dir);
	if (status == COMMAND_DONE && !found)
		printf("no ring of a producer that died without saying so in %s\n", folder);
	return status;
}

static int recover_each(const struct command_call *call, struct incidents_store *store)
{
	int status = COMMAND_DONE;

	for (int i = 0; i < call->argc; i++) {
		int r = recover(call, call->argv[i], store, true);

		if (r < 0)
			status = -r;
	}
	return status;
}

static int open_store(const struct command_call *call, struct incidents_store **ret_store)
{
	const struct recover_options *options = call->options;
	char *path = store_option_path(call, options->store);
	int r;

	if (!path)
		return COMMAND_FAILED;
	r = incidents_store_open(path, true, ret_store);
	if (r < 0)
		r = command_failed(call, "%s: the store could not be opened: %s", path, strerror(-r));
	free(path);
	return r;
}

static int recover_run(const struct command_call *call)
{
	const struct recover_options *options = call->options;
	struct incidents_store *store = NULL;
	int status = COMMAND_DONE;

	if (options->output && call->argc != 1)
		return command_misuse(call, "--output takes exactly one ring");
	if (!options->output)
		status = open_store(call, &store);
	if (status == COMMAND_DONE && call->argc == 0)
		status = recover_all(call, store);
	else if (status == COMMAND_DONE)
		status = recover_each(call, store);
	incidents_store_free(store);
	return status;
}

const struct command command_recover = {
	.name = "recover",
	.summary = "keep what the rings of dead processes still hold",
	.operands = "[RING]...",
	.details = "Without operands: every ring in the run directory whose process died without saying so. "
		   "Says what it "
		   "was inside of and makes an incident of it.",
	.examples = "driverec recover\ndriverec recover rank3.6dc015d6fc1df318.ring -o rank3.drec",
	.options = recover_rows,
	.options_bytes = sizeof(struct recover_options),
	.operands_min = 0,
	.operands_max = COMMAND_OPERANDS_ANY,
	.run = recover_run,
};
