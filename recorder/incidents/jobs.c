/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disk work of an incident, one job at a time. A job runs on a worker thread and owns the incident meanwhile;
 * its `done` runs on the loop and takes the next state.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "lifecycle.h"
#include "manifest.h"
#include "parts.h"
#include "point.h"

struct job {
	uv_work_t work;
	struct incidents *incidents;
	struct incident *incident;
	char *outcomes; /* taken from the incident, so that hooks may go on adding */
	size_t outcomes_bytes;
	int (*run)(struct job *job);
	void (*done)(struct incidents *incidents, struct incident *incident, int result);
	int result;
};

static void work(uv_work_t *request)
{
	struct job *job = request->data;

	job->result = job->run(job);
}

static void after_work(uv_work_t *request, int status)
{
	struct job *job = request->data;
	struct incidents *incidents = job->incidents;
	struct incident *incident = job->incident;

	incidents->jobs--;
	incident->working = false;
	incident->result = status < 0 ? status : job->result;
	if (!incidents->stopping) {
		incidents_settle_waiting(incidents, incident);
		job->done(incidents, incident, incident->result);
	}
	free(job->outcomes);
	free(job);
}

static void start(struct incidents *incidents, struct incident *incident, int (*run)(struct job *job),
		  void (*done)(struct incidents *incidents, struct incident *incident, int result))
{
	struct job *job = calloc(1, sizeof(*job));

	if (!job) {
		done(incidents, incident, -ENOMEM);
		return;
	}
	job->incidents = incidents;
	job->incident = incident;
	job->run = run;
	job->done = done;
	job->work.data = job;
	if (incident->state >= INCIDENT_RELEASED) {
		job->outcomes = incident->outcomes;
		job->outcomes_bytes = incident->outcomes_bytes;
		incident->outcomes = NULL;
		incident->outcomes_bytes = 0;
	}
	incident->working = true;
	incidents->jobs++;
	if (!incidents->host.loop || uv_queue_work(incidents->host.loop, &job->work, work, after_work) < 0) {
		work(&job->work);
		after_work(&job->work, 0);
	}
}

/* What hooks did, kept until the folder is there. A failure to write it is in nobody's way. */
static void flush_outcomes(const struct job *job)
{
	char path[INCIDENTS_FOLDER_MAX + 16];

	if (!job->outcomes_bytes)
		return;
	snprintf(path, sizeof(path), "%s/alerts.ndjson", job->incident->folder);
	files_append(incidents_store_folder_fd(job->incidents->store), path, job->outcomes,
		     job->outcomes_bytes);
}

void incidents_tell(struct incidents *incidents, struct incident *incident, const char *event)
{
	const struct triggers_firing *first = incident_first(incident);
	const char *store = incidents_store_path(incidents->store);
	char manifest[INCIDENTS_PATH_MAX + 256], folder[INCIDENTS_PATH_MAX + 128] = "";
	struct incidents_alert alert = {.event = event,
					.id = incident->id_text,
					.trigger = first->trigger,
					.job = incident_job(incident),
					.severity = incident_severity(incident),
					.told = incident->told,
					.step = first->step,
					.manifest = manifest,
					.folder = folder,
					.json = incident->manifest ? incident->manifest : "{}"};

	if (!incidents->host.alert || incident_is_quiet(incident))
		return;
	if (!strcmp(event, "opened")) {
		snprintf(manifest, sizeof(manifest), "%s/pending/%s.json", store, incident->id_text);
		incident->told = (int)alert.severity;
	} else {
		snprintf(folder, sizeof(folder), "%s/incidents/%s", store, incident->folder);
		snprintf(manifest, sizeof(manifest), "%s/manifest.json", folder);
	}
	incident->alerts_out += incidents->host.alert(incidents->host.context, &alert);
}

/* --- PENDING --- */

static int run_record(struct job *job)
{
	struct incident *incident = job->incident;
	bool copy = false;
	int r = incident_record(incident, job->incidents->store);

	if (incident->state != INCIDENT_PINNED)
		return r;
	if (incident->adopted)
		incident_drain_recover(incident, job->incidents->store);
	for (unsigned i = 0; i < incident->n_rings; i++)
		copy |= incident->rings[i].copied && incident->rings[i].fd >= 0;
	if (copy)
		incident_drain(incident, job->incidents->store, true);
	return r;
}

static void done_record(struct incidents *incidents, struct incident *incident, int result)
{
	if (result < 0)
		incidents_log(incidents, "incident_record",
			      "The record of incident %.8s could not be written: %s", incident->id_text,
			      strerror(-result));
	if (incident->state == INCIDENT_POST && (int)incident_severity(incident) > incident->told)
		incidents_tell(incidents, incident, "opened");
	if (incident->state != INCIDENT_PINNED)
		return;
	incident->state = INCIDENT_PENDING;
	incidents_tell(incidents, incident, "opened");
	INCIDENT_POINT(opened);
	incident->state = INCIDENT_POST;
}

void incidents_job_record(struct incidents *incidents, struct incident *incident)
{
	incident->to_record = false;
	start(incidents, incident, run_record, done_record);
}

/* --- POST --- */

static int run_drain(struct job *job)
{
	return incident_drain(job->incident, job->incidents->store, false);
}

static void done_drain(struct incidents *incidents, struct incident *incident, int result)
{
	if (result < 0)
		incidents_log(incidents, "incident_drain", "Incident %.8s: nothing can be copied ahead: %s",
			      incident->id_text, strerror(-result));
}

void incidents_job_drain(struct incidents *incidents, struct incident *incident)
{
	start(incidents, incident, run_drain, done_drain);
}

/* --- WRITE to RELEASED --- */

static int run_write(struct job *job)
{
	return incident_write(job->incident, job->incidents->store);
}

static void count_written(struct incidents *incidents, const struct incident *incident)
{
	const char *first = incident->continues[0] ? incident->continues : incident->id_text;

	incidents_remember(incidents, first, incident_begin_ns(incident), incident_end_ns(incident));
	incidents->counters.published++;
	incidents->counters.open--;
	if (incident->verdict == INCIDENT_COMPLETE)
		incidents->counters.complete++;
	else
		incidents->counters.partial++;
	for (unsigned i = 0; i < incident->n_notes; i++) {
		if (!strncmp(incident->note[i], "kept smaller", strlen("kept smaller"))) {
			incidents->counters.smaller++;
			incidents_log(incidents, "incident_smaller", "Incident %.8s was %s",
				      incident->id_text, incident->note[i]);
		}
	}
}

/* Nothing of it can be kept: say why, let the rings go, and harm nothing else. */
static void refuse(struct incidents *incidents, struct incident *incident, int result)
{
	incidents_log(incidents, "incident_refused", "Incident %.8s (%s) could not be written to %s: %s%s%s",
		      incident->id_text, incident_first(incident)->trigger,
		      incidents_store_path(incidents->store), strerror(-result),
		      incident->n_notes ? "; " : "",
		      incident->n_notes ? incident->note[incident->n_notes - 1] : "");
	incident_release(incident);
	incidents->counters.refused++;
	incidents->counters.open--;
	incident->state = INCIDENT_REFUSED;
	incidents_job_finish(incidents, incident);
}

static void done_write(struct incidents *incidents, struct incident *incident, int result)
{
	bool room = result == -ENOSPC || result == -EDQUOT || result == -EFBIG;

	if (result < 0 && (room || ++incident->tries >= TRIES_MAX)) {
		refuse(incidents, incident, result);
		return;
	}
	if (result < 0) {
		incident->state = INCIDENT_POST;
		incident->retry_mono_ns =
			incident_add_ns(incidents->host.mono_ns(incidents->host.context), RETRY_NS);
		return;
	}
	count_written(incidents, incident);
	incident->state = INCIDENT_RELEASED;
	incidents_tell(incidents, incident, "ready");
	INCIDENT_POINT(readied);
	incident->state = INCIDENT_READY;
	if (incident->to_resolve)
		incidents_job_resolve(incidents, incident);
	else if (incident->alerts_out == 0)
		incidents_job_finish(incidents, incident);
}

void incidents_job_write(struct incidents *incidents, struct incident *incident)
{
	incident->state = INCIDENT_WRITE;
	start(incidents, incident, run_write, done_write);
}

/* --- resolved --- */

static int run_resolve(struct job *job)
{
	struct incident *incident = job->incident;
	char *text = NULL;
	int r;

	/* The record first: till it is gone, the next start tells of it. */
	incident->resolved_ns = incident->progress_ns;
	incident_record(incident, job->incidents->store);
	r = incident_manifest_resolve(job->incidents->store, incident->folder, incident->progress_ns, &text);

	flush_outcomes(job);
	if (r < 0)
		return r;
	free(incident->manifest);
	incident->manifest = text;
	INCIDENT_POINT(revised);
	return 0;
}

static void done_resolve(struct incidents *incidents, struct incident *incident, int result)
{
	incident->to_resolve = false;
	incident->resolved_ns = incident->progress_ns;
	if (result == 0) {
		incidents->counters.resolved++;
		incidents_tell(incidents, incident, "resolved");
	} else if (result != -ENOENT) {
		incidents_log(incidents, "incident_resolve",
			      "Incident %.8s could not be marked as resolved: %s", incident->id_text,
			      strerror(-result));
	}
	if (incident->alerts_out == 0)
		incidents_job_finish(incidents, incident);
}

void incidents_job_resolve(struct incidents *incidents, struct incident *incident)
{
	start(incidents, incident, run_resolve, done_resolve);
}

/* --- HOOKED --- */

static int run_finish(struct job *job)
{
	flush_outcomes(job);
	return incident_record_remove(job->incident, job->incidents->store);
}

static void done_finish(struct incidents *incidents, struct incident *incident, int result)
{
	if (result < 0)
		incidents_log(incidents, "incident_finish",
			      "The record of incident %.8s could not be removed: %s", incident->id_text,
			      strerror(-result));
	/* A hook may have ended meanwhile, or something moved on. */
	if (incident->outcomes_bytes) {
		incidents_job_finish(incidents, incident);
		return;
	}
	if (incident->state == INCIDENT_REFUSED || !incident_is_ongoing(incident) || incident->resolved_ns) {
		incidents_drop(incidents, incident);
		return;
	}
	incident->state = INCIDENT_HOOKED;
	if (incident->to_resolve)
		incidents_job_resolve(incidents, incident);
}

void incidents_job_finish(struct incidents *incidents, struct incident *incident)
{
	start(incidents, incident, run_finish, done_finish);
}
