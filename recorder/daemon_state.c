/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What outlives the daemon:
 *
 *     <store>/macro.tiers   the macro view, with how far each ring was read (one commit)
 *     <store>/engine.state  what the triggers learned, what is open, and the numbers of the rings they know
 *     <store>/suppressed.state  the firings that made no incident
 *
 * The engine is saved first: killed between the two, some events are judged twice, which can at most repeat a
 * firing whose incident is known (daemon_watch.c), and none is skipped.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon_inside.h"
#include "log.h"
#include "paths.h"

enum { ENGINE_BYTES_MAX = 96 << 20, CURSORS_MAX = 1024, STATE_VERSION = 1 };

static const int64_t SAVE_EVERY_NS = 10000000000;
static const int64_t SYNC_EVERY_NS = 60000000000;

/* While somebody looks on, as long as saving takes no more than 0.5 % of the time. */
static const int64_t WATCHED_SAVE_EVERY_NS = 1000000000;
static const int64_t WATCHED_FOR_NS = 5000000000;
enum { WATCHED_SAVE_SHARE = 200 };

/* The log of what was held back is looked at while the daemon runs: soon, but for at most 0.5 % of the time.
 */
static const int64_t SUPPRESSED_SAVE_EVERY_NS = 1000000000;
enum { SUPPRESSED_SAVE_SHARE = 200 };
static const char ENGINE_MAGIC[8] = "DRVENGN2";

/* Before the engine's own bytes. */
struct engine_head {
	char magic[8];
	uint32_t next_source;
	uint32_t n_sources;    /* u32 each */
	uint32_t series_bytes; /* of series_save(); then the engine */
	uint32_t zero;
};

/* A ring's entry in the tiers' commit, before its cursors. */
struct saved_ring {
	uint32_t version;
	uint32_t source;
	int64_t last_event_ns;
};

static void tiers_options(const struct config *config, struct reducer_tiers_options *options)
{
	reducer_tiers_defaults(options);
	if (config->macro.tiers.count > 0 && config->macro.tiers.count <= REDUCER_TIERS_MAX) {
		options->tiers = (unsigned)config->macro.tiers.count;
		for (unsigned i = 0; i < options->tiers; i++) {
			const struct units_tier *tier = &config->macro.tiers.tier[i];
			options->tier[i].width_ns = tier->bin_ns;
			options->tier[i].bins = tier->span_ns / tier->bin_ns;
		}
	}
	options->bytes_max = (uint64_t)config->macro.max_size_bytes;
}

static int open_tiers(struct daemon *daemon)
{
	struct reducer_tiers_options options;
	char path[INCIDENTS_PATH_MAX + 16];
	tiers_options(daemon->config, &options);
	snprintf(path, sizeof(path), "%s/macro.tiers", daemon->store_path);
	int64_t now_ns = clock_record_ns(&daemon->clock);
	int result = reducer_tiers_open(path, &options, now_ns, &daemon->tiers);
	if (result == -ESTALE || result == -EBADMSG) {
		log_warnx("macro.anew", "%s is %s: the macro view starts anew", path,
			  result == -ESTALE ? "of other tiers" : "damaged");
		unlink(path);
		result = reducer_tiers_open(path, &options, now_ns, &daemon->tiers);
	}
	if (result < 0) {
		daemon->tiers = NULL;
		log_warnx("macro.off", "%s: %s; there is no macro view", path, strerror(-result));
	}
	return result;
}

/* The engine, and what the series know beside it: without that, spans of now are taken for those of another
 * phase. */
static int restore_watch(struct daemon *daemon, const char *bytes, size_t series_bytes, size_t count)
{
	int result = triggers_engine_restore(daemon->engine, bytes + series_bytes, count - series_bytes);
	if (result == 0 && series_restore(daemon->series, bytes, series_bytes) < 0)
		log_warnx("series.anew", "%s/engine.state: what was open is not known any more",
			  daemon->store_path);
	return result;
}

/* Rings that the engine knows and that are gone have no one to speak for them any more. */
static void end_lost_sources(struct daemon *daemon, const uint32_t *sources, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (!producers_find(daemon->producers, sources[i]))
			series_source_end(daemon->series, sources[i]);
}

static int restore_engine(struct daemon *daemon)
{
	char *bytes;
	size_t count;
	struct engine_head head;
	uint32_t sources[PRODUCERS_MAX];
	int fd = open(daemon->store_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int result = paths_read_file(fd, "engine.state", ENGINE_BYTES_MAX, &bytes, &count);
	close(fd);
	if (result < 0)
		return result;
	result = -EBADMSG;
	if (count < sizeof(head))
		goto out;
	memcpy(&head, bytes, sizeof(head));
	if (memcmp(head.magic, ENGINE_MAGIC, sizeof(head.magic)) != 0) {
		/* The last byte is the version. */
		result = memcmp(head.magic, ENGINE_MAGIC, sizeof(head.magic) - 1) ? -EBADMSG : -EPROTONOSUPPORT;
		goto out;
	}
	if (head.n_sources > PRODUCERS_MAX ||
	    head.n_sources > (count - sizeof(head)) / sizeof(sources[0]))
		goto out;
	size_t listed = head.n_sources * sizeof(sources[0]);
	memcpy(sources, bytes + sizeof(head), listed);
	if (head.series_bytes > count - sizeof(head) - listed)
		goto out;
	result = restore_watch(daemon, bytes + sizeof(head) + listed, head.series_bytes,
			       count - sizeof(head) - listed);
	producers_number_from(daemon->producers, head.next_source);
	producers_rescan(daemon->producers);
	if (result == 0)
		end_lost_sources(daemon, sources, head.n_sources);
out:
	free(bytes);
	return result;
}

void daemon_state_restore_producer(struct daemon *daemon, struct producer *producer)
{
	const void *data;
	size_t bytes;
	struct saved_ring saved;
	struct reducer_text key = {.data = producer->key, .bytes = strlen(producer->key)};
	if (!daemon->tiers || reducer_tiers_cursor(daemon->tiers, key, &data, &bytes) < 0 || bytes < sizeof(saved))
		return;
	memcpy(&saved, data, sizeof(saved));
	size_t count = (bytes - sizeof(saved)) / sizeof(struct drec_cursor);
	if (saved.version != STATE_VERSION || saved.source == 0 || count > CURSORS_MAX)
		return;
	struct drec_cursor *cursors = malloc((count + 1) * sizeof(*cursors));
	if (!cursors)
		return;
	memcpy(cursors, (const char *)data + sizeof(saved), count * sizeof(*cursors));
	drec_reader_set_cursors(producer->reader, cursors, count);
	free(cursors);
	producer->source = saved.source;
	producer->last_event_ns = saved.last_event_ns;
	producer->known_before = true;
}

/* Whole or not there, but not worth an fsync in the loop: what is lost is learned again. */
static int write_quickly(const struct daemon *daemon, const char *name, const void *bytes, size_t count)
{
	char temporary[64];
	int folder_fd = open(daemon->store_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder_fd < 0)
		return -errno;
	snprintf(temporary, sizeof(temporary), ".tmp-%s", name);
	int fd = openat(folder_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	int result = fd < 0 ? -errno : 0;
	for (size_t done = 0; done < count && result == 0;) {
		ssize_t wrote = write(fd, (const char *)bytes + done, count - done);
		if (wrote > 0)
			done += (size_t)wrote;
		else if (wrote < 0 && errno != EINTR)
			result = -errno;
	}
	if (fd >= 0 && close(fd) < 0 && result == 0)
		result = -errno;
	if (result == 0 && renameat(folder_fd, temporary, folder_fd, name) < 0)
		result = -errno;
	if (result < 0)
		unlinkat(folder_fd, temporary, 0);
	close(folder_fd);
	return result;
}

static int save_engine(struct daemon *daemon)
{
	size_t rings = producers_count(daemon->producers);
	size_t before = sizeof(struct engine_head) + rings * sizeof(uint32_t);
	int64_t length = triggers_engine_save(daemon->engine, NULL, 0),
		beside = series_save(daemon->series, NULL, 0);
	if (length < 0 || beside < 0 || beside > UINT32_MAX)
		return length < 0 ? (int)length : -E2BIG;
	before += (size_t)beside;
	char *bytes = malloc(before + (size_t)length);
	if (!bytes)
		return -ENOMEM;
	struct engine_head head = {.next_source = producers_next_number(daemon->producers),
				   .n_sources = (uint32_t)rings,
				   .series_bytes = (uint32_t)beside};
	memcpy(head.magic, ENGINE_MAGIC, sizeof(head.magic));
	memcpy(bytes, &head, sizeof(head));
	for (size_t i = 0; i < rings; i++)
		memcpy(bytes + sizeof(head) + i * sizeof(uint32_t), &producers_at(daemon->producers, i)->source,
		       sizeof(uint32_t));
	series_save(daemon->series, bytes + before - (size_t)beside, (size_t)beside);
	length = triggers_engine_save(daemon->engine, bytes + before, (size_t)length);
	int result = length < 0 ? (int)length
				: write_quickly(daemon, "engine.state", bytes, before + (size_t)length);
	free(bytes);
	return result;
}

static void save_suppressed(struct daemon *daemon)
{
	char *bytes;
	size_t count;
	int result = suppressed_save(daemon->suppressed, &bytes, &count);
	if (result == 0) {
		result = write_quickly(daemon, SUPPRESSED_FILE, bytes, count);
		free(bytes);
	}
	if (result < 0)
		log_warnx("suppressed.unsaved", "%s/" SUPPRESSED_FILE ": %s", daemon->store_path,
			  strerror(-result));
}

static void restore_suppressed(struct daemon *daemon)
{
	struct suppressed *log;
	int result = suppressed_read(daemon->store_path, &log);
	if (result == 0) {
		suppressed_free(daemon->suppressed);
		daemon->suppressed = log;
	} else if (result != -ENOENT) {
		log_warnx("suppressed.anew",
			  "%s/" SUPPRESSED_FILE ": %s; what was held back before is forgotten",
			  daemon->store_path, strerror(-result));
		save_suppressed(daemon);
	}
}

static void tick_suppressed(struct daemon *daemon, int64_t mono_ns)
{
	int64_t every_ns = SUPPRESSED_SAVE_SHARE * daemon->suppressed_took_ns;
	if (every_ns < SUPPRESSED_SAVE_EVERY_NS)
		every_ns = SUPPRESSED_SAVE_EVERY_NS;
	if (!suppressed_changed(daemon->suppressed) || mono_ns - daemon->suppressed_saved_mono_ns < every_ns)
		return;
	save_suppressed(daemon);
	daemon->suppressed_saved_mono_ns = mono_ns;
	daemon->suppressed_took_ns = clock_mono_ns() - mono_ns;
}

/* Why a state file cannot be read, as it follows "is". */
static const char *unread(int result)
{
	switch (result) {
	case -EBADMSG:
		return "damaged";
	case -EPROTONOSUPPORT:
		return "of another version";
	default:
		return strerror(-result);
	}
}

int daemon_state_open(struct daemon *daemon)
{
	restore_suppressed(daemon);
	open_tiers(daemon);
	int result = restore_engine(daemon);
	if (result < 0 && result != -ENOENT)
		log_warnx("engine.anew", "%s/engine.state is %s: the triggers learn anew", daemon->store_path,
			  unread(result));
	producers_rescan(daemon->producers);
	int64_t mono_ns = clock_mono_ns();
	daemon->last_save_mono_ns = mono_ns;
	daemon->next_sync_mono_ns = mono_ns + SYNC_EVERY_NS;
	return 0;
}

/* One ring's entry; NULL where there is no memory for it. */
static void *save_ring(const struct producer *producer, size_t *ret_bytes)
{
	struct saved_ring saved = {.version = STATE_VERSION, .source = producer->source,
				   .last_event_ns = producer->last_event_ns};
	struct drec_cursor cursors[CURSORS_MAX];
	size_t count = drec_reader_cursors(producer->reader, cursors, CURSORS_MAX);
	if (count > CURSORS_MAX)
		count = CURSORS_MAX;
	*ret_bytes = sizeof(saved) + count * sizeof(cursors[0]);
	char *bytes = malloc(*ret_bytes);
	if (!bytes)
		return NULL;
	memcpy(bytes, &saved, sizeof(saved));
	memcpy(bytes + sizeof(saved), cursors, count * sizeof(cursors[0]));
	return bytes;
}

static int save_tiers(struct daemon *daemon, bool sync)
{
	struct reducer_tiers_cursor cursors[PRODUCERS_MAX];
	void *bytes[PRODUCERS_MAX];
	size_t count = 0;
	for (size_t i = 0; i < producers_count(daemon->producers); i++) {
		const struct producer *producer = producers_at(daemon->producers, i);
		bytes[count] = save_ring(producer, &cursors[count].bytes);
		if (!bytes[count])
			continue;
		cursors[count].source = (struct reducer_text){.data = producer->key, .bytes = strlen(producer->key)};
		cursors[count].data = bytes[count];
		count++;
	}
	int result = reducer_tiers_commit(daemon->tiers, clock_record_ns(&daemon->clock), cursors, count, sync);
	for (size_t i = 0; i < count; i++)
		free(bytes[i]);
	return result;
}

/* A sticky failure: the object is of no use any more, the file is that of the last commit. */
static void reopen_tiers(struct daemon *daemon)
{
	reducer_tiers_free(daemon->tiers);
	daemon->tiers = NULL;
	open_tiers(daemon);
	for (size_t i = 0; i < producers_count(daemon->producers); i++) {
		struct producer *producer = producers_at(daemon->producers, i);
		if (producer->intake)
			intake_set_tiers(producer->intake, daemon->tiers);
	}
}

void daemon_state_save(struct daemon *daemon, bool sync)
{
	int result = save_engine(daemon);
	if (result < 0)
		log_warnx("engine.unsaved", "%s/engine.state: %s", daemon->store_path, strerror(-result));
	if (!daemon->tiers)
		return;
	result = save_tiers(daemon, sync);
	if (result < 0)
		log_warnx("macro.unsaved", "%s/macro.tiers: %s", daemon->store_path, strerror(-result));
	if (result == -ENOMEM || result == -EIO)
		reopen_tiers(daemon);
}

static int64_t save_every_ns(const struct daemon *daemon, int64_t mono_ns)
{
	int64_t least_ns = WATCHED_SAVE_SHARE * daemon->save_took_ns;
	if (daemon->watched_mono_ns == 0 || mono_ns - daemon->watched_mono_ns > WATCHED_FOR_NS ||
	    least_ns > SAVE_EVERY_NS)
		return SAVE_EVERY_NS;
	return least_ns > WATCHED_SAVE_EVERY_NS ? least_ns : WATCHED_SAVE_EVERY_NS;
}

void daemon_state_tick(struct daemon *daemon, int64_t mono_ns)
{
	tick_suppressed(daemon, mono_ns);
	if (daemon->tiers)
		reducer_tiers_tick(daemon->tiers, mono_ns + daemon->clock.offset_ns);
	if (!daemon->save_soon && mono_ns - daemon->last_save_mono_ns < save_every_ns(daemon, mono_ns))
		return;
	bool sync = mono_ns >= daemon->next_sync_mono_ns;
	daemon_state_save(daemon, sync);
	daemon->save_soon = false;
	daemon->last_save_mono_ns = mono_ns;
	daemon->save_took_ns = clock_mono_ns() - mono_ns;
	if (sync)
		daemon->next_sync_mono_ns = mono_ns + SYNC_EVERY_NS;
}

void daemon_state_close(struct daemon *daemon)
{
	if (daemon->engine && daemon->producers && daemon->series)
		daemon_state_save(daemon, true);
	if (daemon->suppressed && suppressed_changed(daemon->suppressed))
		save_suppressed(daemon);
	reducer_tiers_free(daemon->tiers);
	daemon->tiers = NULL;
}
