/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three processes: a daemon with a store of its own, a job, and this one, which compares what was kept to what
 * the job says that it wrote. Nothing is judged by the daemon's own word alone.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "config.h"
#include "daemon.h"
#include "demo_check.h"
#include "demo_job.h"
#include "incidents/manifest.h"
#include "incidents/store.h"
#include "log.h"
#include "output.h"
#include "paths.h"

enum { STEPS = 130, SPIKE_AT = 60, STALL_AT = 100, EXPECTED = 2, WAIT_MS = 15000, POLL_MS = 50 };

static const int64_t STEP_NS = 50000000;
static const int64_t STALL_NS = 2500000000;

/*
 * The demo's job is 10 s old at its end, so windows of 10 s before the anomaly would begin before the job did, and
 * a cooldown of a minute would let a hiccup of this machine hide what is to be shown; and machines are often late by
 * half of its short steps. All else is as by default.
 */
static const char demo_config[] = "{ \"window\": { \"pre\": \"20 steps\", \"pre_min\": \"1 s\" },"
				  "  \"gates\": { \"cooldown\": \"1 s\" },"
				  "  \"triggers\": { \"latency_spike\": { \"warn\": 3 } },"
				  "  \"collect\": { \"stall\": [] }, \"http\": { \"listen\": \"\" } }";

struct demo_options {
	bool json;
	const char *folder;
};

static const struct demo_options demo_defaults = {.folder = "./driverec-demo"};

static const struct option_row demo_options[] = {
	OPTION_ROW(0, "dir", "DIR", OPTION_TEXT, struct demo_options, folder, "keep the demo's incidents here"),
	OPTION_ROW_FLAG('j', "json", struct demo_options, json, "print JSON"),
	OPTION_ROWS_END,
};

/* What became of one of the two. */
struct caught {
	const char *trigger;
	int64_t step;
	bool found, complete, names_span, exact;
	struct incidents_entry entry;
	struct demo_check check;
	char marks[16], host_spans[16];
	char why[200]; /* "" = all is well */
};

struct demo {
	const struct command_call *call;
	const struct demo_options *options;
	char run_dir[64], record_path[INCIDENTS_PATH_MAX];
	struct incidents_store *store;
	pid_t daemon, job;
	int64_t started_ns;
	size_t surplus; /* incidents of an anomaly that has one */
	size_t hiccups; /* incidents of this machine's own making: slow at another time */
	struct caught caught[EXPECTED];
};

static int64_t unix_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int make_run_dir(struct demo *demo)
{
	static const char *const parents[] = {"/dev/shm", "/tmp"};
	for (size_t i = 0; i < sizeof(parents) / sizeof(parents[0]); i++) {
		snprintf(demo->run_dir, sizeof(demo->run_dir), "%s/driverec-demo-XXXXXX", parents[i]);
		if (mkdtemp(demo->run_dir)) {
			char rings[80];
			snprintf(rings, sizeof(rings), "%s/rings", demo->run_dir);
			return mkdir(rings, 0700) < 0 ? -errno : 0;
		}
	}
	return -errno;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void on_term(uv_signal_t *handle, int signal)
{
	(void)signal;
	daemon_stop(handle->data);
}

static _Noreturn void be_daemon(const struct demo *demo, int ready_fd)
{
	struct config *config;
	struct config_problems problems;
	struct daemon *daemon;
	uv_signal_t term;
	char why[512];
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	char *log_path = paths_join(demo->options->folder, "daemon.log");
	int log_fd = log_path ? open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
	free(log_path);
	if (log_fd >= 0)
		log_to(log_fd, LOG_LEVEL_INFO);
	if (config_parse(demo_config, sizeof(demo_config) - 1, NULL, &config, &problems) < 0) {
		config_problems_print(&problems, stderr);
		_exit(COMMAND_FAILED);
	}
	const struct daemon_options options = {.config = config, .run_dir = demo->run_dir,
					       .store = demo->options->folder};
	if (daemon_new(&options, &daemon, why, sizeof(why)) < 0) {
		fprintf(stderr, "driverec demo: %s\n", why);
		_exit(COMMAND_FAILED);
	}
	uv_signal_init(daemon_loop(daemon), &term);
	term.data = daemon;
	uv_signal_start(&term, on_term, SIGTERM);
	ssize_t wrote = write(ready_fd, "r", 1);
	(void)wrote;
	close(ready_fd);
	daemon_run(daemon);
	daemon_free(daemon);
	config_free(config);
	_exit(COMMAND_DONE);
}

static int start_daemon(struct demo *demo)
{
	int ready[2];
	char byte;
	if (pipe2(ready, O_CLOEXEC) < 0)
		return -errno;
	fflush(NULL);
	demo->daemon = fork();
	if (demo->daemon == 0) {
		close(ready[0]);
		be_daemon(demo, ready[1]);
	}
	close(ready[1]);
	ssize_t got = demo->daemon < 0 ? -1 : read(ready[0], &byte, 1);
	close(ready[0]);
	return got == 1 ? 0 : -ECHILD;
}

static int start_job(struct demo *demo)
{
	fflush(NULL);
	demo->job = fork();
	if (demo->job != 0)
		return demo->job < 0 ? -errno : 0;
	const struct demo_job job = {
		.run_dir = demo->run_dir,
		.record_path = demo->record_path,
		.steps = STEPS,
		.spike_at = SPIKE_AT,
		.stall_at = STALL_AT,
		.step_ns = STEP_NS,
		.stall_ns = STALL_NS,
	};
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	int result = demo_job_run(&job);
	if (result < 0)
		fprintf(stderr, "driverec demo: the job cannot record: %s\n", strerror(-result));
	_exit(result < 0 ? COMMAND_FAILED : COMMAND_DONE);
}

static bool wait_job(struct demo *demo)
{
	int status;
	pid_t waited;
	do
		waited = waitpid(demo->job, &status, 0);
	while (waited < 0 && errno == EINTR);
	demo->job = 0;
	return waited > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Whether an incident is not finished yet. */
static bool is_pending(const struct demo *demo)
{
	int fd = openat(incidents_store_pending_fd(demo->store), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	bool found = false;
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while (!found && (entry = readdir(dir)))
		found = strstr(entry->d_name, ".json") != NULL;
	closedir(dir);
	return found;
}

/* One anomaly is one incident: whatever else was kept must be of another time. */
static void count_others(struct demo *demo, const struct incidents_entry *entries, size_t count)
{
	demo->surplus = demo->hiccups = 0;
	for (size_t j = 0; j < count; j++) {
		bool own = false, meets = false;
		for (int i = 0; i < EXPECTED; i++) {
			const struct incidents_entry *caught = &demo->caught[i].entry;
			if (!demo->caught[i].found)
				continue;
			own |= strcmp(entries[j].id, caught->id) == 0;
			meets |= entries[j].t0_ns < caught->t0_ns + caught->lasted_ns &&
				 entries[j].t0_ns + entries[j].lasted_ns > caught->t0_ns;
		}
		if (own || entries[j].detected_ns < demo->started_ns)
			continue;
		demo->surplus += meets;
		demo->hiccups += !meets;
	}
}

/* Looks for this run's incidents; true when all are finished, both are there and the stall is known to be over. */
static bool find_incidents(struct demo *demo)
{
	struct incidents_entry *entries;
	size_t count;
	bool all = !is_pending(demo);
	if (incidents_store_list(demo->store, &entries, &count) < 0)
		return false;
	for (int i = 0; i < EXPECTED; i++) {
		struct caught *caught = &demo->caught[i];
		for (size_t j = 0; j < count; j++) {
			if (!entries[j].readable || entries[j].t0_ns < demo->started_ns ||
			    entries[j].step != caught->step || strcmp(entries[j].trigger, caught->trigger) != 0)
				continue;
			caught->entry = entries[j];
			caught->found = true;
			break;
		}
		all = all && caught->found && (!caught->entry.ongoing || caught->entry.resolved_ns > 0);
	}
	count_others(demo, entries, count);
	free(entries);
	return all;
}

static void wait_incidents(struct demo *demo)
{
	const struct timespec pause = {.tv_nsec = POLL_MS * 1000000};
	for (int ms = 0; ms < WAIT_MS && !find_incidents(demo); ms += POLL_MS)
		nanosleep(&pause, NULL);
}

__attribute__((format(printf, 2, 3))) static void say_why(struct caught *caught, const char *format, ...)
{
	va_list values;
	va_start(values, format);
	vsnprintf(caught->why, sizeof(caught->why), format, values);
	va_end(values);
}

static void coverage_of(const cJSON *manifest, const char *class, char ret_verdict[16])
{
	const cJSON *coverage = cJSON_GetObjectItem(cJSON_GetObjectItem(manifest, "coverage"), class);
	const char *verdict = cJSON_GetStringValue(cJSON_GetObjectItem(coverage, "verdict"));
	snprintf(ret_verdict, 16, "%s", verdict ? verdict : "");
}

/* The span that the job hung in has to be among the open ones, and in the first sentence's evidence. */
static bool names_span(const cJSON *manifest)
{
	const cJSON *open;
	bool listed = false;
	cJSON_ArrayForEach(open, cJSON_GetObjectItem(manifest, "open_spans"))
		listed |= strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(open, "name")), DEMO_STALL_SPAN) == 0;
	const char *evidence = cJSON_GetStringValue(cJSON_GetObjectItem(manifest, "evidence"));
	return listed && evidence && strstr(evidence, "inside \"" DEMO_STALL_SPAN "\"");
}

enum { FILES_MAX = 64 };

/* The files that the window of the job's ring is in. */
static unsigned window_files(const struct demo *demo, const struct caught *caught, const cJSON *manifest,
			     char *ret_path[FILES_MAX])
{
	const cJSON *ring = cJSON_GetArrayItem(cJSON_GetObjectItem(manifest, "rings"), 0), *window;
	unsigned count = 0;
	cJSON_ArrayForEach(window, cJSON_GetObjectItem(ring, "windows"))
	{
		const char *file = cJSON_GetStringValue(cJSON_GetObjectItem(window, "file"));
		if (file && file[0] && count < FILES_MAX &&
		    asprintf(&ret_path[count], "%s/incidents/%s/%s", demo->options->folder, caught->entry.folder, file) > 0)
			count++;
	}
	return count;
}

static void check_window(struct demo *demo, struct caught *caught, const cJSON *manifest)
{
	char *path[FILES_MAX];
	unsigned count = window_files(demo, caught, manifest, path);
	if (count == 0) {
		say_why(caught, "it has no raw window");
		return;
	}
	int result = demo_check_window((const char *const *)path, count, demo->record_path, caught->entry.t0_ns,
				       &caught->check);
	if (result < 0)
		say_why(caught, "%.100s: %s", path[0], strerror(-result));
	for (unsigned i = 0; i < count; i++)
		free(path[i]);
	caught->exact = result == 0 && caught->check.missing == 0 && caught->check.unknown == 0 &&
			caught->check.kept > 0;
	if (result == 0 && !caught->exact)
		say_why(caught, "%llu events missing, %llu unknown; %s", (unsigned long long)caught->check.missing,
			(unsigned long long)caught->check.unknown, caught->check.example);
}

static void check(struct demo *demo, struct caught *caught)
{
	cJSON *manifest;
	if (!caught->found) {
		say_why(caught, "it was not caught");
		return;
	}
	int result = incident_manifest_read(demo->store, caught->entry.folder, &manifest);
	if (result < 0) {
		say_why(caught, "its manifest cannot be read: %s", strerror(-result));
		return;
	}
	coverage_of(manifest, "marks", caught->marks);
	coverage_of(manifest, "host_spans", caught->host_spans);
	caught->complete = strcmp(caught->marks, "complete") == 0 && strcmp(caught->host_spans, "complete") == 0;
	caught->names_span = strcmp(caught->trigger, "stall") != 0 || names_span(manifest);
	check_window(demo, caught, manifest);
	if (!caught->why[0] && !caught->complete)
		say_why(caught, "marks are %s, host spans %s", caught->marks, caught->host_spans);
	if (!caught->why[0] && !caught->names_span)
		say_why(caught, "it does not name the span \"%s\"", DEMO_STALL_SPAN);
	cJSON_Delete(manifest);
}

static int print_text(const struct demo *demo)
{
	int good = 0;
	for (int i = 0; i < EXPECTED; i++)
		good += demo->caught[i].why[0] == 0;
	printf("%d of %d anomalies caught:", good, EXPECTED);
	for (int i = 0; i < EXPECTED; i++) {
		const struct caught *caught = &demo->caught[i];
		printf("%s %s (%s)", i ? "," : "", caught->trigger,
		       !caught->found ? "missed" : caught->complete ? "complete" : "partial");
	}
	printf("   %s/incidents\n", demo->options->folder);
	for (int i = 0; i < EXPECTED; i++)
		if (demo->caught[i].why[0])
			fprintf(stderr, "driverec demo: %s: %s\n", demo->caught[i].trigger, demo->caught[i].why);
	if (demo->hiccups)
		fprintf(stderr, "driverec demo: %zu more of steps that this machine was late with\n", demo->hiccups);
	if (demo->surplus)
		fprintf(stderr, "driverec demo: %zu more of the same anomalies: driverec incidents --store %s\n",
			demo->surplus, demo->options->folder);
	return good == EXPECTED && !demo->surplus ? COMMAND_DONE : COMMAND_FAILED;
}

static cJSON *caught_json(const struct demo *demo, const struct caught *caught)
{
	char path[INCIDENTS_PATH_MAX + INCIDENTS_FOLDER_MAX + 16];
	cJSON *json = cJSON_CreateObject();
	output_json_text(json, "trigger", caught->trigger);
	cJSON_AddBoolToObject(json, "ok", caught->why[0] == 0);
	if (caught->why[0])
		output_json_text(json, "why", caught->why);
	if (!caught->found)
		return json;
	snprintf(path, sizeof(path), "%s/incidents/%s", demo->options->folder, caught->entry.folder);
	output_json_text(json, "id", caught->entry.id);
	output_json_text(json, "folder", path);
	output_json_text(json, "sentence", caught->entry.sentence);
	output_json_text(json, "marks", caught->marks);
	output_json_text(json, "host_spans", caught->host_spans);
	output_json_ns(json, "t0_ns", caught->entry.t0_ns);
	output_json_ns(json, "detected_after_ns", caught->entry.detected_ns - caught->entry.t0_ns);
	output_json_signed(json, "step", caught->entry.step);
	output_json_count(json, "events_before_t0", caught->check.kept);
	output_json_count(json, "events_missing", caught->check.missing);
	output_json_count(json, "events_unknown", caught->check.unknown);
	if (strcmp(caught->trigger, "stall") == 0)
		output_json_text(json, "hung_in", caught->names_span ? DEMO_STALL_SPAN : NULL);
	return json;
}

static int print_json(const struct demo *demo)
{
	cJSON *json = cJSON_CreateObject();
	cJSON *list = cJSON_AddArrayToObject(json, "incidents");
	unsigned good = 0;
	for (int i = 0; i < EXPECTED; i++) {
		cJSON_AddItemToArray(list, caught_json(demo, &demo->caught[i]));
		good += demo->caught[i].why[0] == 0;
	}
	output_json_count(json, "expected", EXPECTED);
	output_json_count(json, "caught", good);
	output_json_count(json, "surplus", demo->surplus);
	output_json_count(json, "hiccups", demo->hiccups);
	output_json_ns(json, "taken_ns", unix_ns() - demo->started_ns);
	output_json_text(json, "store", demo->options->folder);
	output_json_print(json, stdout);
	return good == EXPECTED && !demo->surplus ? COMMAND_DONE : COMMAND_FAILED;
}

static void stop(struct demo *demo)
{
	if (demo->job > 0) {
		kill(demo->job, SIGKILL);
		waitpid(demo->job, NULL, 0);
	}
	if (demo->daemon > 0) {
		kill(demo->daemon, SIGTERM);
		waitpid(demo->daemon, NULL, 0);
	}
	if (demo->run_dir[0])
		nftw(demo->run_dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	incidents_store_free(demo->store);
}

static int record(struct demo *demo)
{
	int result = make_run_dir(demo);
	if (result == 0)
		result = incidents_store_open(demo->options->folder, true, &demo->store);
	if (result < 0)
		return command_failed(demo->call, "%s: %s", demo->options->folder, strerror(-result));
	snprintf(demo->record_path, sizeof(demo->record_path), "%s/written.txt", demo->options->folder);
	demo->started_ns = unix_ns();
	if (start_daemon(demo) < 0)
		return command_failed(demo->call, "the daemon did not start");
	if (start_job(demo) < 0 || !wait_job(demo))
		return command_failed(demo->call, "the job failed");
	wait_incidents(demo);
	return COMMAND_DONE;
}

static int run(const struct command_call *call)
{
	struct demo demo = {.call = call, .options = call->options,
			    .caught = {{.trigger = "stall", .step = STALL_AT},
				       {.trigger = "latency_spike", .step = SPIKE_AT}}};
	if (!demo.options->json)
		fprintf(stderr, "a job of %d steps, one of them slow, one stuck: about 10 s\n", STEPS);
	int status = record(&demo);
	if (status == COMMAND_DONE) {
		for (int i = 0; i < EXPECTED; i++)
			check(&demo, &demo.caught[i]);
		status = demo.options->json ? print_json(&demo) : print_text(&demo);
	}
	stop(&demo);
	return status;
}

const struct command command_demo = {
	.name = "demo",
	.summary = "record a made-up job with two anomalies, and check what was kept",
	.operands = "",
	.details = "Starts a daemon and a job of its own; nothing else on this machine is touched. Succeeds only if "
		   "both anomalies became incidents that are complete for marks and host spans, hold exactly the events "
		   "that the job wrote before them, if the stall's names the span that the job hung in, and if there "
		   "is no second incident of either.",
	.examples = "driverec demo\ndriverec demo --dir /tmp/demo --json",
	.options = demo_options,
	.options_bytes = sizeof(struct demo_options),
	.defaults = &demo_defaults,
	.run = run,
};
