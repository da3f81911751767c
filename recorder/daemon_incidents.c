/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon_inside.h"
#include "log.h"
#include "macro.h"
#include "ns.h"

/* A producer's thread may be interrupted between taking the time and committing: by this much at most. */
static const int64_t LATENESS_NS = 100000000;

int64_t daemon_incident_shift(const struct daemon *daemon)
{
	return clock_unix_offset_ns(&daemon->clock) - daemon->clock.offset_ns;
}

static int64_t watermark(const struct daemon *daemon, const struct producer *producer)
{
	if (producer->drained)
		return INT64_MAX;
	if (daemon->feed && !feed_ended(daemon->feed) &&
	    strcmp(feed_ring_path(daemon->feed), producer->path) == 0)
		return ns_add(feed_watermark_ns(daemon->feed), daemon_incident_shift(daemon));
	return clock_mono_ns() + clock_unix_offset_ns(&daemon->clock) - LATENESS_NS;
}

static size_t on_rings(void *context, struct incidents_ring *ret, size_t room)
{
	const struct daemon *daemon = context;
	size_t count = producers_count(daemon->producers);
	for (size_t i = 0; i < count && i < room; i++) {
		const struct producer *producer = producers_at(daemon->producers, i);
		ret[i] = (struct incidents_ring){
			.reader = producer->reader,
			.path = producer->path,
			.source = producer->source,
			.rank = producer->rank,
			.watermark_ns = watermark(daemon, producer),
			.dead = producer->life != PRODUCER_ALIVE,
			.fed = daemon_is_feed(producer),
		};
	}
	return count;
}

static int64_t on_mono_ns(void *context)
{
	(void)context;
	return clock_mono_ns();
}

static int64_t on_offset_ns(void *context)
{
	const struct daemon *daemon = context;
	return clock_unix_offset_ns(&daemon->clock);
}

static bool on_abandoned(void *context, const uint8_t store_id[INCIDENTS_ID_BYTES], int64_t for_ns)
{
	const struct daemon *daemon = context;
	return daemon_lock_abandoned(daemon->run_dir, store_id, for_ns);
}

static size_t on_anchors(void *context, struct drec_anchor *ret, size_t room)
{
	struct daemon *daemon = context;
	clock_anchor(&daemon->clock);
	size_t count = daemon->clock.n_anchors;
	size_t kept = count < room ? count : room;
	memcpy(ret, daemon->clock.anchors + (count - kept), kept * sizeof(*ret));
	return kept;
}

static uint64_t on_from(void *context, const struct incidents_ring *ring, int64_t a_ns)
{
	const struct daemon *daemon = context;
	const struct producer *producer = producers_find(daemon->producers, ring->source);
	return producer ? producer_from(producer, &daemon->clock, a_ns - daemon_incident_shift(daemon)) : 0;
}

static int64_t on_step_ns(void *context, uint32_t source)
{
	const struct daemon *daemon = context;
	return triggers_engine_step_ns(daemon->engine, source);
}

static void on_settled(void *context)
{
	struct daemon *daemon = context;
	triggers_engine_settled(daemon->engine, clock_record_ns(&daemon->clock));
}

static int on_macro(void *context, int64_t a_ns, int64_t b_ns, char **ret_text, size_t *ret_bytes)
{
	struct daemon *daemon = context;
	if (!daemon->tiers)
		return -ENODATA;
	int64_t by_ns = daemon_incident_shift(daemon);
	return macro_json(daemon->tiers, a_ns - by_ns, b_ns - by_ns, ret_text, ret_bytes);
}

static void on_log(void *context, const char *kind, const char *sentence)
{
	(void)context;
	if (strncmp(kind, "incident", 8) == 0)
		log_record(kind, "%s", sentence);
	else
		log_info(kind, "%s", sentence);
}

static unsigned on_alert(void *context, const struct incidents_alert *alert)
{
	return daemon_hooks_alert(context, alert);
}

static bool on_collect(void *context, const char *id, const struct triggers_firing *firing, uint32_t pid,
		       const char *folder)
{
	return daemon_hooks_collect(context, id, firing, pid, folder);
}

static uint32_t steps_of(const struct units_amount *amount)
{
	return amount->steps > 0 && amount->steps < UINT32_MAX ? (uint32_t)amount->steps : 0;
}

int daemon_incidents_new(struct daemon *daemon)
{
	const struct config *config = daemon->config;
	const struct incidents_host host = {
		.context = daemon,
		.loop = &daemon->loop,
		.rings = on_rings,
		.mono_ns = on_mono_ns,
		.mono_to_unix_ns = on_offset_ns,
		.anchors = on_anchors,
		.from = on_from,
		.step_ns = on_step_ns,
		.alert = on_alert,
		.collect = on_collect,
		.abandoned = on_abandoned,
		.settled = on_settled,
		.macro = on_macro,
		.log = on_log,
	};
	const struct incidents_sizing sizing = {
		.pre_steps = steps_of(&config->window.pre),
		.post_steps = steps_of(&config->window.post),
		.pre_ns = config->window.pre.ns,
		.post_ns = config->window.post.ns,
		.pre_min_ns = config->window.pre_min_ns,
		.post_max_ns = config->window.post_max_ns,
		.bytes_max = (uint64_t)config->window.max_size_bytes,
	};
	int result = daemon_hooks_new(daemon);
	return result < 0 ? result : incidents_new(&host, daemon->store, &sizing, &daemon->incidents);
}
