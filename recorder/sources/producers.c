/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring's life here: found -> read while its process lives -> dead -> drained -> kept a minute, or for as long
 * as an incident needs it -> removed. A dead ring's pages are charged to the job's memory, so it must go; the
 * minute is for an operator's `trigger --last` right after a job's end.
 */
#include "producers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "discovery.h"
#include "log.h"

static const int64_t ALIVE_EVERY_NS = 500000000;
static const int64_t OPEN_EVERY_NS = 250000000;
static const int64_t RESCAN_EVERY_NS = 10000000000;
static const int64_t LINGER_NS = 60000000000;
static const uint64_t EVENTS_A_TICK = 200000; /* of one ring: others get their turn */

/* A file that is not to be looked at again. */
struct done {
	char file[256];
	ino_t inode;
};

struct producers {
	struct discovery *discovery;
	const struct clock *clock;
	struct producers_host host;
	char rings_path[256];
	struct producer *rings[PRODUCERS_MAX];
	size_t count;
	struct done *done;
	size_t n_done, next_done;
	uint32_t next_source;
	int64_t next_rescan_mono_ns;
	struct producers_totals totals;
};

static void found(void *context, const char *file);

int producers_new(const char *run_dir, const struct clock *clock, const struct producers_host *host,
		  struct producers **ret_producers)
{
	struct producers *producers = calloc(1, sizeof(*producers));
	int result = -ENOMEM;
	if (!producers)
		return result;
	producers->clock = clock;
	producers->host = *host;
	producers->next_source = 1;
	int length = snprintf(producers->rings_path, sizeof(producers->rings_path), "%s/rings", run_dir);
	result = length < (int)sizeof(producers->rings_path) ? 0 : -ENAMETOOLONG;
	if (result == 0)
		result = discovery_new(producers->rings_path, found, producers, &producers->discovery);
	if (result < 0) {
		free(producers);
		return result;
	}
	*ret_producers = producers;
	return 0;
}

static void forget(struct producers *producers, struct producer *producer)
{
	if (producers->host.end)
		producers->host.end(producers->host.context, producer);
	drec_reader_free(producer->reader);
	free(producer->open);
	free(producer);
}

void producers_free(struct producers *producers)
{
	if (!producers)
		return;
	for (size_t i = 0; i < producers->count; i++)
		forget(producers, producers->rings[i]);
	discovery_free(producers->discovery);
	free(producers->done);
	free(producers);
}

int producers_fd(const struct producers *producers)
{
	return discovery_fd(producers->discovery);
}

void producers_found(struct producers *producers)
{
	discovery_read(producers->discovery);
}

void producers_rescan(struct producers *producers)
{
	producers->next_rescan_mono_ns = clock_mono_ns() + RESCAN_EVERY_NS;
	discovery_rescan(producers->discovery);
}

/* The inode of a file in rings/, 0 if there is none. */
static ino_t inode_of(const struct producers *producers, const char *file)
{
	struct stat st;
	if (fstatat(discovery_folder_fd(producers->discovery), file, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return st.st_ino;
}

static bool is_done(const struct producers *producers, const char *file)
{
	for (size_t i = 0; i < producers->n_done; i++)
		if (strcmp(producers->done[i].file, file) == 0)
			return producers->done[i].inode == inode_of(producers, file);
	return false;
}

static void remember_done(struct producers *producers, const char *file)
{
	ino_t inode = inode_of(producers, file);
	if (inode == 0)
		return;
	if (!producers->done)
		producers->done = calloc(PRODUCERS_DONE_MAX, sizeof(*producers->done));
	if (!producers->done)
		return;
	struct done *done = &producers->done[producers->next_done];
	producers->next_done = (producers->next_done + 1) % PRODUCERS_DONE_MAX;
	if (producers->n_done < PRODUCERS_DONE_MAX)
		producers->n_done++;
	snprintf(done->file, sizeof(done->file), "%s", file);
	done->inode = inode;
}

static bool is_held(const struct producers *producers, const char *file)
{
	for (size_t i = 0; i < producers->count; i++)
		if (strcmp(producers->rings[i]->file, file) == 0)
			return true;
	return false;
}

static bool boot_matches(const struct drec_header *header)
{
	static uint8_t boot_id[16];
	static bool have;
	char text[64] = "";
	if (!have) {
		FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
		if (!file)
			return true;
		if (!fgets(text, sizeof(text), file))
			text[0] = 0;
		fclose(file);
		size_t n = 0;
		for (const char *c = text; *c && n < 32; c++) {
			int digit = *c >= '0' && *c <= '9' ? *c - '0' : *c >= 'a' && *c <= 'f' ? *c - 'a' + 10 : -1;
			if (digit >= 0) {
				boot_id[n / 2] = (uint8_t)(boot_id[n / 2] << 4 | digit);
				n++;
			}
		}
		have = true;
	}
	return memcmp(header->boot_id, boot_id, sizeof(boot_id)) == 0;
}

static void take_up(struct producers *producers, const char *file, struct drec_reader *reader)
{
	const struct drec_header *header = drec_reader_header(reader);
	struct producer *producer = calloc(1, sizeof(*producer));
	if (!producer) {
		drec_reader_free(reader);
		return;
	}
	producer->reader = reader;
	snprintf(producer->file, sizeof(producer->file), "%s", file);
	snprintf(producer->path, sizeof(producer->path), "%s/%s", producers->rings_path, file);
	for (int i = 0; i < 16; i++)
		snprintf(producer->key + 2 * i, 3, "%02x", header->ring_id[i]);
	producer->rank = header->rank;
	producer->last_new_mono_ns = clock_mono_ns();
	producer->of_this_boot = boot_matches(header);
	if (producer->of_this_boot)
		clock_give(producers->clock, reader);
	producers->rings[producers->count++] = producer;
	producers->totals.rings_seen++;
	if (producers->host.begin)
		producers->host.begin(producers->host.context, producer);
	if (producer->source == 0)
		producer->source = producers->next_source++;
	else if (producer->source >= producers->next_source)
		producers->next_source = producer->source + 1;
	log_info("ring.found", "%s: job %s, pid %llu", producer->path, header->job,
		 (unsigned long long)header->pid);
}

static void found(void *context, const char *file)
{
	struct producers *producers = context;
	static const struct drec_reader_options options = {.rings_only = 1, .safe_open = 1, .writable = 1};
	struct drec_problem problem = {0};
	struct drec_reader *reader;
	if (strlen(file) >= sizeof(((struct producer *)0)->file) || is_held(producers, file) ||
	    is_done(producers, file))
		return;
	if (producers->count == PRODUCERS_MAX) {
		log_warnx("ring.too_many", "%s is not read: %d rings are being read already", file, PRODUCERS_MAX);
		return;
	}
	int result = drec_reader_open(discovery_folder_fd(producers->discovery), file, &options, &reader, &problem);
	if (result == -ENOENT || result == -ENOMEM || result == -EMFILE || result == -ENFILE)
		return;
	if (result < 0) {
		producers->totals.rings_refused++;
		remember_done(producers, file);
		log_warnx("ring.refused", "%s/%s: %s (%s)", producers->rings_path, file,
			  problem.what[0] ? problem.what : "cannot be opened", strerror(-result));
		return;
	}
	take_up(producers, file, reader);
}

/* Removes the file if it is still the one that we read. */
static void remove_file(struct producers *producers, const struct producer *producer)
{
	struct stat st;
	if (fstat(drec_reader_fd(producer->reader), &st) < 0 || st.st_ino != inode_of(producers, producer->file))
		return;
	if (unlinkat(discovery_folder_fd(producers->discovery), producer->file, 0) == 0)
		producers->totals.rings_removed++;
	else
		remember_done(producers, producer->file);
}

static void drop(struct producers *producers, size_t index)
{
	struct producer *producer = producers->rings[index];
	producers->totals.events += producer->stats.events;
	producers->totals.bytes += producer->stats.bytes;
	producers->totals.lost += producer->stats.lost;
	producers->totals.overwritten += producer->stats.overwritten;
	producers->totals.corrupt_bytes += producer->stats.corrupt_bytes;
	producers->rings[index] = producers->rings[--producers->count];
	forget(producers, producer);
}

struct poll {
	struct producers *producers;
	struct producer *producer;
};

static int on_event(void *context, const struct drec_event *event, const struct drec_place *place)
{
	const struct poll *poll = context;
	struct producer *producer = poll->producer;
	int64_t start, end;
	(void)place;
	if (drec_reader_event_time(producer->reader, event, &start, &end) == 0) {
		if (end > producer->last_event_ns)
			producer->last_event_ns = end;
		if (end > producer->last_work_ns && event->kind != DREC_COUNTER)
			producer->last_work_ns = end;
	}
	poll->producers->host.event(poll->producers->host.context, producer, event);
	return 0;
}

static void read_open_spans(struct producers *producers, struct producer *producer, int64_t mono_ns)
{
	if (!producer->open)
		producer->open = calloc(PRODUCERS_OPEN_MAX, sizeof(*producer->open));
	if (!producer->open)
		return;
	int count = drec_reader_open_spans(producer->reader, producer->open, PRODUCERS_OPEN_MAX);
	producer->n_open = count < 0 ? 0 : count < PRODUCERS_OPEN_MAX ? (size_t)count : PRODUCERS_OPEN_MAX;
	producer->next_open_mono_ns = mono_ns + OPEN_EVERY_NS;
	if (count >= 0 && producers->host.open_spans)
		producers->host.open_spans(producers->host.context, producer);
}

void producers_look(struct producers *producers, struct producer *producer)
{
	read_open_spans(producers, producer, clock_mono_ns());
}

/* Returns as producers_tick(), or -errno if the ring is of no use any more. */
static int poll_ring(struct producers *producers, struct producer *producer)
{
	struct poll poll = {producers, producer};
	int changed = drec_reader_changed(producer->reader);
	if (changed < 0)
		return changed;
	/* The time is read after STATE was: what ends later than it was committed after this tail. */
	int64_t mono_ns = clock_mono_ns();
	tails_add(&producer->tails, mono_ns, drec_reader_state(producer->reader)->tail);
	uint64_t before = producer->stats.events;
	int more = 0;
	if (changed || (producer->life != PRODUCER_ALIVE && !producer->drained)) {
		more = drec_reader_poll(producer->reader, on_event, &poll, EVENTS_A_TICK, &producer->stats);
		if (more < 0)
			return more;
	}
	bool fresh = producer->stats.events != before;
	if (fresh)
		producer->last_new_mono_ns = mono_ns;
	if (producer->life == PRODUCER_ALIVE && (fresh || mono_ns >= producer->next_open_mono_ns))
		read_open_spans(producers, producer, mono_ns);
	if (fresh && producers->host.polled)
		producers->host.polled(producers->host.context, producer);
	if (producer->life != PRODUCER_ALIVE && !more && !fresh && !producer->drained) {
		producer->drained = true;
		read_open_spans(producers, producer, mono_ns);
		producers->host.ended(producers->host.context, producer);
	}
	return more ? 2 : fresh;
}

static void check_alive(struct producers *producers, struct producer *producer, int64_t mono_ns)
{
	if (producer->life != PRODUCER_ALIVE || mono_ns < producer->next_alive_mono_ns)
		return;
	producer->next_alive_mono_ns = mono_ns + ALIVE_EVERY_NS;
	if (producer->of_this_boot && drec_reader_alive(producer->reader) != 0)
		return;
	/* STATE as it is after the death, not as of the last poll: the mark may be newer than that. */
	if (drec_reader_changed(producer->reader) < 0)
		return;
	uint64_t mark = drec_reader_state(producer->reader)->end_mark;
	bool ended = mark == DREC_MARK_CLOSE || mark == DREC_MARK_EXIT;
	producer->life = ended ? PRODUCER_ENDED : PRODUCER_CRASHED;
	producer->died_mono_ns = mono_ns;
	if (!ended)
		producers->totals.crashed++;
}

/* Returns true if it was dropped. */
static bool bury(struct producers *producers, size_t index, int64_t mono_ns)
{
	struct producer *producer = producers->rings[index];
	if (!producer->drained || mono_ns - producer->died_mono_ns < LINGER_NS)
		return false;
	if (producers->host.needed && producers->host.needed(producers->host.context, producer))
		return false;
	remove_file(producers, producer);
	drop(producers, index);
	return true;
}

int producers_tick(struct producers *producers)
{
	int result = 0;
	int64_t mono_ns = clock_mono_ns();
	if (mono_ns >= producers->next_rescan_mono_ns)
		producers_rescan(producers);
	for (size_t i = 0; i < producers->count;) {
		struct producer *producer = producers->rings[i];
		check_alive(producers, producer, mono_ns);
		int polled = poll_ring(producers, producer);
		if (polled < 0) {
			log_warnx("ring.unreadable", "%s: %s; it is not read any more", producer->path,
				  strerror(-polled));
			remember_done(producers, producer->file);
			producers->totals.rings_refused++;
			drop(producers, i);
			continue;
		}
		if (polled > result)
			result = polled;
		if (!bury(producers, i, mono_ns))
			i++;
	}
	return result;
}

void producers_flush(struct producers *producers)
{
	for (size_t i = 0; i < producers->count;)
		if (!bury(producers, i, INT64_MAX))
			i++;
}

void producers_number_from(struct producers *producers, uint32_t next_source)
{
	if (next_source > producers->next_source)
		producers->next_source = next_source;
}

uint32_t producers_next_number(const struct producers *producers)
{
	return producers->next_source;
}

int64_t producer_depth_ns(const struct producer *producer, int64_t mono_ns)
{
	uint64_t chunks = drec_reader_header(producer->reader)->n_chunks;
	uint64_t tail = drec_reader_state(producer->reader)->tail;
	if (tail <= 2 * chunks + 1)
		return INT64_MAX;
	int64_t since = tails_time(&producer->tails, tail - chunks);
	return since > 0 ? mono_ns - since : INT64_MAX;
}

void producers_give_clock(struct producers *producers)
{
	for (size_t i = 0; i < producers->count; i++)
		if (producers->rings[i]->of_this_boot)
			clock_give(producers->clock, producers->rings[i]->reader);
}

size_t producers_count(const struct producers *producers)
{
	return producers->count;
}

struct producer *producers_at(const struct producers *producers, size_t index)
{
	return producers->rings[index];
}

struct producer *producers_find(const struct producers *producers, uint32_t source)
{
	for (size_t i = 0; i < producers->count; i++)
		if (producers->rings[i]->source == source)
			return producers->rings[i];
	return NULL;
}

uint64_t producer_from(const struct producer *producer, const struct clock *clock, int64_t record_ns)
{
	return tails_from(&producer->tails, record_ns - clock->offset_ns);
}

const struct drec_open_info *producer_innermost(const struct producer *producer)
{
	const struct drec_open_info *best = NULL, *innermost = NULL;
	bool has_step = false, best_has_step = false;
	for (size_t i = 0; i < producer->n_open; i++) {
		const struct drec_open_info *open = &producer->open[i];
		bool last = i + 1 == producer->n_open || producer->open[i + 1].slot != open->slot;
		has_step |= open->mark == DREC_MARK_STEP_BEGIN;
		if (open->mark == 0)
			innermost = open;
		if (!last)
			continue;
		if (innermost && (!best || (has_step && !best_has_step) ||
				  (has_step == best_has_step && innermost->start < best->start))) {
			best = innermost;
			best_has_step = has_step;
		}
		innermost = NULL;
		has_step = false;
	}
	return best;
}

void producers_totals(const struct producers *producers, struct producers_totals *ret_totals)
{
	struct producers_totals totals = producers->totals;
	for (size_t i = 0; i < producers->count; i++) {
		const struct producer *producer = producers->rings[i];
		totals.events += producer->stats.events;
		totals.bytes += producer->stats.bytes;
		totals.lost += producer->stats.lost;
		totals.overwritten += producer->stats.overwritten;
		totals.corrupt_bytes += producer->stats.corrupt_bytes;
		totals.alive += producer->life == PRODUCER_ALIVE;
		totals.dead += producer->life != PRODUCER_ALIVE;
	}
	*ret_totals = totals;
}
