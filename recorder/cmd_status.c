/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon_client.h"
#include "output.h"

enum { JOBS_MAX = 64 };

struct status_options {
	bool json;
	struct daemon_place place;
};

static const struct option_row status_options[] = {
	OPTION_ROW_FLAG('j', "json", struct status_options, json, "print JSON"),
	OPTION_ROW(0, "store", "DIR", OPTION_TEXT, struct status_options, place.store, "the daemon's store"),
	OPTION_ROW(0, "run-dir", "DIR", OPTION_TEXT, struct status_options, place.run_dir, "the daemon's run directory"),
	OPTION_ROWS_END,
};

/* What the rings of one job add up to. */
struct job {
	const char *name;
	unsigned rings, alive;
	int64_t step;    /* the lowest of the ranks: a job is as far as its slowest */
	int64_t step_ns; /* the longest median */
	uint64_t lost;
	unsigned n_hung;   /* whose open step is past its deadline */
	const cJSON *hung; /* that of them to look at */
};

static const char *text_of(const cJSON *json, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(json, key));
	return text ? text : "";
}

/* A number, or ns as a text. */
static int64_t number_of(const cJSON *json, const char *key)
{
	const cJSON *item = cJSON_GetObjectItem(json, key);
	if (cJSON_IsString(item))
		return strtoll(item->valuestring, NULL, 10);
	return cJSON_IsNumber(item) ? (int64_t)item->valuedouble : 0;
}

static struct job *job_of(struct job *jobs, unsigned *count, const char *name)
{
	for (unsigned i = 0; i < *count; i++)
		if (strcmp(jobs[i].name, name) == 0)
			return &jobs[i];
	if (*count == JOBS_MAX)
		return NULL;
	jobs[*count] = (struct job){.name = name, .step = -1};
	return &jobs[(*count)++];
}

/* Whether a step of the ring is open beyond its deadline. */
static bool is_hung(const cJSON *ring)
{
	const cJSON *open;
	int64_t deadline = number_of(ring, "step_deadline_ns");
	cJSON_ArrayForEach(open, cJSON_GetObjectItem(ring, "open"))
		if (cJSON_HasObjectItem(open, "step") && deadline > 0 && number_of(open, "for_ns") > deadline)
			return true;
	return false;
}

static void add_ring(struct job *job, const cJSON *ring)
{
	int64_t step = number_of(ring, "step"), step_ns = number_of(ring, "step_median_ns");
	bool alive = strcmp(text_of(ring, "life"), "alive") == 0;
	job->rings++;
	job->alive += alive;
	if (step >= 0 && (job->step < 0 || step < job->step))
		job->step = step;
	if (step_ns > job->step_ns)
		job->step_ns = step_ns;
	job->lost += (uint64_t)number_of(ring, "lost");
}

static bool hangs_in(const struct job *job, const cJSON *ring)
{
	return strcmp(text_of(ring, "job"), job->name) == 0 && strcmp(text_of(ring, "life"), "alive") == 0 &&
	       is_hung(ring);
}

/* The innermost open span; NULL = none. */
static const cJSON *innermost(const cJSON *ring)
{
	const cJSON *open = cJSON_GetObjectItem(ring, "open");
	return cJSON_GetArrayItem(open, cJSON_GetArraySize(open) - 1);
}

/* Ranks wait for each other, most in the same collective: who is where the fewest are is whom they wait for. */
static void find_hung(struct job *job, const cJSON *rings)
{
	const cJSON *ring, *other;
	unsigned fewest = 0;
	cJSON_ArrayForEach(ring, rings) {
		unsigned alike = 0;
		if (!hangs_in(job, ring))
			continue;
		job->n_hung++;
		cJSON_ArrayForEach(other, rings) alike += hangs_in(job, other) &&
							  strcmp(text_of(innermost(ring), "name"),
								 text_of(innermost(other), "name")) == 0;
		if (job->hung && alike >= fewest)
			continue;
		job->hung = ring;
		fewest = alike;
	}
}

static void print_job(const struct job *job, const cJSON *status)
{
	char step[OUTPUT_TEXT_MAX] = "-", length[OUTPUT_TEXT_MAX] = "-", lost[OUTPUT_TEXT_MAX];
	const cJSON *incidents = cJSON_GetObjectItem(status, "incidents");
	if (job->step >= 0)
		output_count(step, (uint64_t)job->step);
	if (job->step_ns > 0)
		output_duration(length, job->step_ns);
	printf("job %s   step %s   %s/step   %u/%u ranks alive   lost %s   device events none   incidents %lld (%lld "
	       "critical)\n",
	       job->name, step, length, job->alive, job->rings, output_count(lost, job->lost),
	       (long long)number_of(incidents, "kept"), (long long)number_of(incidents, "critical"));
	if (job->hung) {
		const cJSON *last = innermost(job->hung);
		char more[48] = "";
		if (job->n_hung > 1)
			snprintf(more, sizeof(more), "; %u more %s past theirs", job->n_hung - 1,
				 job->n_hung == 2 ? "is" : "are");
		printf("  %s is past its deadline, inside \"%s\" for %s%s\n", text_of(job->hung, "name"),
		       text_of(last, "name"), output_duration(length, number_of(last, "for_ns")), more);
	}
}

/* Since the daemon started, without what joined an incident or was only recorded. */
static int64_t held_back(const cJSON *status)
{
	const cJSON *gate, *gates = cJSON_GetObjectItem(cJSON_GetObjectItem(status, "triggers"), "gates");
	int64_t count = 0;
	cJSON_ArrayForEach(gate, gates) if (strcmp(gate->string, "passed") != 0 &&
					    strcmp(gate->string, "coalesced") != 0 &&
					    strcmp(gate->string, "silenced") != 0) count +=
		(int64_t)gate->valuedouble;
	return count;
}

static void print_notes(const cJSON *status)
{
	const cJSON *incidents = cJSON_GetObjectItem(status, "incidents");
	const cJSON *totals = cJSON_GetObjectItem(status, "totals");
	if (number_of(incidents, "open") > 0)
		printf("%lld incident(s) are being recorded\n", (long long)number_of(incidents, "open"));
	if (number_of(totals, "rings_refused") > 0)
		printf("%lld ring(s) could not be read: see the daemon's log\n",
		       (long long)number_of(totals, "rings_refused"));
	if (number_of(totals, "unread") > 0)
		printf("%lld event(s) were overwritten before they could be read: give the rings more room\n",
		       (long long)number_of(totals, "unread"));
	if (held_back(status) > 0)
		printf("%lld firing(s) were held back: driverec incidents --suppressed\n",
		       (long long)held_back(status));
	if (number_of(incidents, "kept") > 0)
		printf("next: driverec incidents\n");
}

static void print(const cJSON *status)
{
	struct job jobs[JOBS_MAX];
	unsigned count = 0;
	const cJSON *ring;
	cJSON_ArrayForEach(ring, cJSON_GetObjectItem(status, "rings")) {
		struct job *job = job_of(jobs, &count, text_of(ring, "job"));
		if (job)
			add_ring(job, ring);
	}
	for (unsigned i = 0; i < count; i++) {
		find_hung(&jobs[i], cJSON_GetObjectItem(status, "rings"));
		print_job(&jobs[i], status);
	}
	if (count == 0)
		printf("no rings in %s/rings: start the job with driverec run -- CMD, or with DRIVEREC_RUN_DIR=%s\n",
		       text_of(status, "run_dir"), text_of(status, "run_dir"));
	print_notes(status);
}

static int run(const struct command_call *call)
{
	const struct status_options *options = call->options;
	struct http_client *client;
	cJSON *status;
	int result = daemon_client_open(call, &options->place, &client);
	if (result)
		return result;
	result = daemon_client_ask(call, client, "/api/v1/status", NULL, &status);
	if (result == 0 && options->json) {
		output_json_print(status, stdout);
	} else if (result == 0) {
		print(status);
		cJSON_Delete(status);
	}
	http_client_free(client);
	return result;
}

const struct command command_status = {
	.name = "status",
	.summary = "what the daemon records and believes",
	.operands = "",
	.details = "One line a job: where it is, how long its steps take, who is alive, what was lost.",
	.examples = "driverec status\ndriverec status --json",
	.options = status_options,
	.options_bytes = sizeof(struct status_options),
	.run = run,
};
