/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon_inside.h"
#include "log.h"
#include "notify.h"
#include "plain_text.h"
#include "version.h"

enum { TICK_MIN_MS = 50, TICK_MAX_MS = 250 };

static const int64_t RETAIN_EVERY_NS = 600000000000;
static const int64_t QUIET_FOR_NS = 3000000000; /* finishing: a ring counts as dead 2 s after its last commit */

/* A death this long before the daemon first looked is history: it makes no incident. */
static const int64_t STALE_DEATH_NS = 600000000000;
static const int64_t BEHIND_FOR_NS = 5000000000;

static void on_ring_begin(void *context, struct producer *producer)
{
	struct daemon *daemon = context;
	daemon_state_restore_producer(daemon, producer);
}

/* The ring's number is known only after on_ring_begin(), so its intake is made at its first event. */
static struct intake *intake_of(struct daemon *daemon, struct producer *producer)
{
	struct intake *intake = producer->intake;
	if (!intake && intake_new(producer, daemon->series, daemon->tiers, &intake) == 0)
		producer->intake = intake;
	return producer->intake;
}

/* The producer's own wish for an incident. */
static void on_trigger_mark(struct daemon *daemon, const struct producer *producer, const struct drec_event *event)
{
	char reason[TRIGGERS_TEXT_MAX] = "";
	int64_t start_ns, end_ns;
	cJSON *text = cJSON_ParseWithLength(event->args, event->args_bytes);
	if (drec_reader_event_time(producer->reader, event, &start_ns, &end_ns) == 0) {
		const char *given = cJSON_GetStringValue(text);
		plain_text(reason, sizeof(reason), given ? given : "", given ? strlen(given) : 0);
		triggers_engine_manual(daemon->engine, producer->source, producer->rank, start_ns,
				       clock_record_ns(&daemon->clock), reason);
	}
	cJSON_Delete(text);
}

static void on_ring_event(void *context, struct producer *producer, const struct drec_event *event)
{
	struct daemon *daemon = context;
	struct intake *intake = intake_of(daemon, producer);
	if (!intake)
		return;
	if (event->kind == DREC_MARK && event->category == DREC_MARK_TRIGGER)
		on_trigger_mark(daemon, producer, event);
	intake_event(intake, event);
}

static void on_ring_polled(void *context, struct producer *producer)
{
	struct daemon *daemon = context;
	if (producer->last_work_ns > 0)
		series_progress(daemon->series, producer->source, producer->last_work_ns);
	daemon_watch_act(daemon);
}

static void on_ring_open_spans(void *context, struct producer *producer)
{
	struct daemon *daemon = context;
	struct intake *intake = intake_of(daemon, producer);
	if (intake)
		intake_open_spans(intake, clock_record_ns(&daemon->clock));
}

bool daemon_is_feed(const struct producer *producer)
{
	return strcmp(drec_reader_header(producer->reader)->name, FEED_RING_NAME) == 0;
}

static bool is_history(const struct daemon *daemon, const struct producer *producer)
{
	return !producer->known_before && producer->last_event_ns < daemon->started_ns - STALE_DEATH_NS;
}

static void on_ring_ended(void *context, struct producer *producer)
{
	struct daemon *daemon = context;
	char evidence[128];
	if (producer->life == PRODUCER_CRASHED && !daemon_is_feed(producer) && !is_history(daemon, producer)) {
		const struct drec_header *header = drec_reader_header(producer->reader);
		snprintf(evidence, sizeof(evidence), "%.63s (process %llu) ended without a word", header->name,
			 (unsigned long long)header->pid);
		daemon_watch_crash(daemon, producer, evidence);
	}
	series_source_end(daemon->series, producer->source);
	daemon_watch_act(daemon);
	log_info("ring.ended", "%s: %s", producer->path,
		 producer->life == PRODUCER_CRASHED ? "without a mark" : "closed");
}

/* A file's ring is what feeding it was for, where that is all that this daemon does. */
static bool is_fed_file(const struct daemon *daemon, const struct producer *producer)
{
	return daemon->feed && daemon->ends_with_feed && strcmp(feed_ring_path(daemon->feed), producer->path) == 0;
}

static bool on_ring_needed(void *context, const struct producer *producer)
{
	const struct daemon *daemon = context;
	return is_fed_file(daemon, producer) || incidents_ring_needed(daemon->incidents, producer->source);
}

static void on_ring_end(void *context, struct producer *producer)
{
	struct daemon *daemon = context;
	if (daemon->incidents)
		incidents_ring_gone(daemon->incidents, producer->source);
	if (daemon->series && producer->source && !producer->drained && !daemon->stopping)
		series_source_end(daemon->series, producer->source);
	intake_free(producer->intake);
	producer->intake = NULL;
}

static int open_producers(struct daemon *daemon)
{
	const struct producers_host host = {
		.context = daemon,
		.begin = on_ring_begin,
		.event = on_ring_event,
		.polled = on_ring_polled,
		.open_spans = on_ring_open_spans,
		.ended = on_ring_ended,
		.needed = on_ring_needed,
		.end = on_ring_end,
	};
	return producers_new(daemon->run_dir, &daemon->clock, &host, &daemon->producers);
}

static void retain(struct daemon *daemon, int64_t mono_ns)
{
	const struct config *config = daemon->config;
	const struct incidents_retention retention = {
		.age_ns = config->retention.age_ns,
		.count = (uint64_t)config->retention.count,
		.bytes = (uint64_t)config->retention.size_bytes,
	};
	if (mono_ns < daemon->next_retain_mono_ns)
		return;
	daemon->next_retain_mono_ns = mono_ns + RETAIN_EVERY_NS;
	int count = incidents_store_retain(daemon->store, &retention,
					   mono_ns + clock_unix_offset_ns(&daemon->clock));
	if (count > 0)
		log_record("incident.retired", "%d past the limits of retention", count);
	else if (count < 0)
		log_warnx("incident.retention", "%s: %s", daemon->store_path, strerror(-count));
}

/* Whether finishing has nothing left to wait for. */
static bool finished(const struct daemon *daemon, int64_t mono_ns)
{
	if (mono_ns >= daemon->finish_by_mono_ns)
		return true;
	for (size_t i = 0; i < producers_count(daemon->producers); i++) {
		const struct producer *producer = producers_at(daemon->producers, i);
		/* Who still lives is not of the job that has ended, or will not end with it. */
		if (producer->life != PRODUCER_ALIVE && !producer->drained)
			return false;
		if (producer->life == PRODUCER_ALIVE && mono_ns - daemon->quiet_since_mono_ns < QUIET_FOR_NS)
			return false;
	}
	return incidents_busy(daemon->incidents) == 0;
}

static void end_with_feed(struct daemon *daemon)
{
	struct feed_counters counters;
	feed_counters(daemon->feed, &counters);
	log_record("feed.ended", "%llu events in %s, %llu lost, %llu damaged", (unsigned long long)counters.events,
		   feed_ring_path(daemon->feed), (unsigned long long)counters.lost,
		   (unsigned long long)counters.damaged);
	daemon_finish(daemon, 60000000000);
}

static void check_end(struct daemon *daemon, int64_t mono_ns)
{
	if (daemon->feed && daemon->ends_with_feed && feed_ended(daemon->feed) && daemon->finish_by_mono_ns == 0)
		end_with_feed(daemon);
	if (daemon->finish_by_mono_ns != 0 && finished(daemon, mono_ns)) {
		producers_flush(daemon->producers);
		daemon_stop(daemon);
	}
}

static void choose_tick(struct daemon *daemon, int busy)
{
	unsigned ms = daemon->tick_ms;
	if (busy == 2)
		ms = 1;
	else if (busy || daemon->suspicions > 0 || incidents_busy(daemon->incidents) > 0 ||
		 daemon->finish_by_mono_ns != 0)
		ms = TICK_MIN_MS;
	else
		ms = ms * 2 < TICK_MIN_MS ? TICK_MIN_MS : ms * 2 > TICK_MAX_MS ? TICK_MAX_MS : ms * 2;
	if (ms == daemon->tick_ms)
		return;
	daemon->tick_ms = ms;
	uv_timer_set_repeat(&daemon->timer, ms);
	uv_timer_again(&daemon->timer);
}

/*
 * While a ring has more to be read, the end of a step that seems to be open for long may be among it: after a start there
 * are minutes of it. A ring that never gives in does not keep the others from being judged.
 */
static void judge(struct daemon *daemon, bool behind, int64_t mono_ns)
{
	if (behind && mono_ns - daemon->judged_mono_ns < BEHIND_FOR_NS)
		return;
	daemon->judged_mono_ns = mono_ns;
	daemon_watch_tick(daemon);
}

static void tick(struct daemon *daemon)
{
	if (clock_tick(&daemon->clock))
		producers_give_clock(daemon->producers);
	series_tick(daemon->series);
	int more = daemon->feed ? feed_tick(daemon->feed) : 0;
	int busy = producers_tick(daemon->producers);
	int64_t mono_ns = clock_mono_ns();
	judge(daemon, busy == 2, mono_ns);
	incidents_tick(daemon->incidents);
	daemon_watch_act(daemon);
	daemon_state_tick(daemon, mono_ns);
	retain(daemon, mono_ns);
	choose_tick(daemon, more ? 2 : busy);
	check_end(daemon, mono_ns);
}

static void on_timer(uv_timer_t *timer)
{
	struct daemon *daemon = timer->data;
	if (!daemon->stopping)
		tick(daemon);
}

static void on_found(uv_poll_t *poll, int status, int events)
{
	struct daemon *daemon = poll->data;
	(void)status, (void)events;
	producers_found(daemon->producers);
}

static int open_store(struct daemon *daemon, char *why, size_t why_room)
{
	pid_t pid = 0;
	int result = incidents_store_open(daemon->store_path, true, &daemon->store);
	if (result < 0) {
		snprintf(why, why_room, "the store %s cannot be opened: %s", daemon->store_path, strerror(-result));
		return result;
	}
	/* What is told to others must hold in their folders too. */
	char *whole = realpath(daemon->store_path, NULL);
	if (whole)
		snprintf(daemon->store_path, sizeof(daemon->store_path), "%s", whole);
	free(whole);
	result = daemon_lock_take(&daemon->lock, daemon->run_dir, daemon->store, &pid);
	if (result == -EBUSY && pid)
		snprintf(why, why_room, "process %ld records into the store %s already; give this one another "
			 "with --store", (long)pid, daemon->store_path);
	else if (result == -EBUSY)
		snprintf(why, why_room, "another host records into the store %s already; give this one another "
			 "with --store", daemon->store_path);
	else if (result < 0)
		snprintf(why, why_room, "the locks in %s and %s/daemons cannot be taken: %s", daemon->store_path,
			 daemon->run_dir, strerror(-result));
	return result;
}

static int open_sources(struct daemon *daemon, const struct daemon_options *options, char *why, size_t why_room)
{
	int result = daemon_watch_new(daemon, why, why_room);
	if (result < 0)
		return result;
	result = open_producers(daemon);
	if (result < 0) {
		snprintf(why, why_room, "%s/rings cannot be watched: %s", daemon->run_dir, strerror(-result));
		return result;
	}
	result = daemon_incidents_new(daemon);
	if (result < 0) {
		snprintf(why, why_room, "incidents cannot be kept in %s: %s", daemon->store_path, strerror(-result));
		return result;
	}
	daemon_state_open(daemon);
	daemon_watch_known(daemon);
	result = incidents_adopt(daemon->incidents);
	if (result < 0)
		log_warnx("incident.adopt", "what an earlier daemon left in %s: %s", daemon->store_path,
			  strerror(-result));
	if (options->feed)
		return feed_new(&daemon->loop, options->feed, daemon->run_dir, &daemon->feed, why, why_room);
	return 0;
}

/* Without its socket the daemon records all the same. */
static void open_http(struct daemon *daemon)
{
	struct stat st;
	unsigned mode = stat(daemon->run_dir, &st) == 0 && (st.st_mode & S_ISGID) ? 0660 : 0600;
	int fd = http_listen_unix(daemon->lock.socket_path, mode);
	int result = fd < 0 ? fd : http_server_new(&daemon->loop, fd, daemon_routes, daemon, &daemon->http);
	if (result < 0)
		log_warnx("http.off", "%s: %s; commands cannot reach this daemon", daemon->lock.socket_path,
			  strerror(-result));
}

static int start_timers(struct daemon *daemon)
{
	uv_timer_init(&daemon->loop, &daemon->timer);
	daemon->timer.data = daemon->found.data = daemon;
	int result = uv_poll_init(&daemon->loop, &daemon->found, producers_fd(daemon->producers));
	if (result < 0)
		return result;
	uv_poll_start(&daemon->found, UV_READABLE, on_found);
	daemon->tick_ms = TICK_MIN_MS;
	uv_timer_start(&daemon->timer, on_timer, 1, TICK_MIN_MS);
	return 0;
}

int daemon_new(const struct daemon_options *options, struct daemon **ret_daemon, char *why, size_t why_room)
{
	struct daemon *daemon = calloc(1, sizeof(*daemon));
	if (!daemon) {
		snprintf(why, why_room, "there is no memory");
		return -ENOMEM;
	}
	daemon->config = options->config;
	daemon->ends_with_feed = options->ends_with_feed;
	daemon->lock.store_fd = daemon->lock.run_fd = -1;
	snprintf(daemon->run_dir, sizeof(daemon->run_dir), "%s", options->run_dir);
	snprintf(daemon->store_path, sizeof(daemon->store_path), "%s", options->store);
	int result = uv_loop_init(&daemon->loop);
	if (result < 0) {
		snprintf(why, why_room, "there is no event loop: %s", strerror(-result));
		free(daemon);
		return result;
	}
	clock_start(&daemon->clock);
	daemon->started_mono_ns = clock_mono_ns();
	daemon->judged_mono_ns = daemon->started_mono_ns;
	daemon->started_ns = clock_record_ns(&daemon->clock);
	result = open_store(daemon, why, why_room);
	if (result == 0)
		result = open_sources(daemon, options, why, why_room);
	if (result == 0 && (result = start_timers(daemon)) < 0)
		snprintf(why, why_room, "the event loop cannot be used: %s", strerror(-result));
	if (result < 0) {
		daemon_free(daemon);
		return result;
	}
	open_http(daemon);
	*ret_daemon = daemon;
	return 0;
}

static void close_handle(uv_handle_t *handle, void *context)
{
	(void)context;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

void daemon_free(struct daemon *daemon)
{
	if (!daemon)
		return;
	daemon->stopping = true;
	http_server_free(daemon->http);
	feed_free(daemon->feed);
	incidents_free(daemon->incidents);
	daemon->incidents = NULL;
	daemon_hooks_free(daemon);
	daemon_state_close(daemon);
	producers_free(daemon->producers);
	series_free(daemon->series);
	triggers_engine_free(daemon->engine);
	/* Handles whose owners close them are closing by now; the rest are ours. */
	uv_walk(&daemon->loop, close_handle, NULL);
	uv_run(&daemon->loop, UV_RUN_DEFAULT);
	uv_loop_close(&daemon->loop);
	daemon_lock_release(&daemon->lock);
	incidents_store_free(daemon->store);
	free(daemon->hooks);
	daemon_watch_free(daemon);
	free(daemon);
}

uv_loop_t *daemon_loop(struct daemon *daemon)
{
	return &daemon->loop;
}

bool daemon_feed_failed(const struct daemon *daemon)
{
	return daemon->feed && feed_ended(daemon->feed) && feed_result(daemon->feed) < 0;
}

void daemon_run(struct daemon *daemon)
{
	char status[320];
	snprintf(status, sizeof(status), "recording rings in %s", daemon->run_dir);
	notify_ready(status);
	log_record("started", "driverec %s records %s/rings into %s", version_text(), daemon->run_dir,
		   daemon->store_path);
	uv_run(&daemon->loop, UV_RUN_DEFAULT);
	notify_stopping();
	/* What was written since the last tick is read now rather than by the next daemon. */
	producers_tick(daemon->producers);
	daemon_watch_act(daemon);
	log_record("stopped", "after %lld s", (long long)((clock_mono_ns() - daemon->started_mono_ns) / 1000000000));
}

void daemon_stop(struct daemon *daemon)
{
	daemon->stopping = true;
	uv_stop(&daemon->loop);
}

void daemon_finish(struct daemon *daemon, int64_t most_ns)
{
	int64_t mono_ns = clock_mono_ns();
	daemon->finish_by_mono_ns = mono_ns + most_ns;
	daemon->quiet_since_mono_ns = mono_ns;
	/* A ring made a moment ago may not have been noticed yet. */
	producers_rescan(daemon->producers);
}

/* The ring that speaks for a job: of its lowest rank. */
static struct producer *ring_of_job(const struct daemon *daemon, const char *job)
{
	struct producer *best = NULL;
	for (size_t i = 0; i < producers_count(daemon->producers); i++) {
		struct producer *producer = producers_at(daemon->producers, i);
		if (strcmp(drec_reader_header(producer->reader)->job, job) == 0 && (!best || producer->rank < best->rank))
			best = producer;
	}
	return best;
}

void daemon_job_ended(struct daemon *daemon, const char *job, const char *how, bool failed)
{
	char evidence[160], error[128];
	if (!failed)
		return;
	/* The exit status is known, so this is no guess: it alarms, as do deaths noticed from now on. */
	triggers_engine_set(daemon->engine, "crash.severity", "critical", error, sizeof(error));
	snprintf(evidence, sizeof(evidence), "the command %.120s", how);
	producers_tick(daemon->producers);
	struct producer *producer = ring_of_job(daemon, job);
	if (producer) {
		daemon_watch_crash(daemon, producer, evidence);
		return;
	}
	int64_t now_ns = clock_record_ns(&daemon->clock);
	triggers_engine_crash(daemon->engine, 0, UINT32_MAX, now_ns, now_ns, evidence);
	daemon_watch_act(daemon);
}

size_t daemon_rings(const struct daemon *daemon)
{
	return producers_count(daemon->producers);
}
