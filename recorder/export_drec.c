/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring has a size, so a trace is read twice: once to learn how much room its events take and when they are,
 * once to write them. What the ring then holds is written as one window that spans all of it.
 */
#include "export_drec.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <driverec/driverec.h>
#include <driverec/freeze.h>

#include "incidents/files.h"
#include "ns.h"
#include "output.h"

enum {
	CHUNK_BYTES = 1 << 20,
	ROOM_SPARE_BYTES = 8 << 20,
	RING_LEAST_BYTES = 16 << 20,
	RECORD_MOST_BYTES =
		96, /* a record with all its additions but the texts, padding, and what stands in extra */
	DICT_IDS = 65535,
	DICT_BYTES = 16 << 20,
};
#define RING_MOST_BYTES ((uint64_t)2 << 30)

static int64_t unix_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t bytes_on_disk(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? (int64_t)st.st_blocks * 512 : 0;
}

/* The ring as it is now, for the window [a, b]. */
static int snapshot(struct drec_reader *reader, int fd, int64_t a_ns, int64_t b_ns)
{
	struct drec_snapshot_request request = {.a_ns = a_ns, .b_ns = b_ns, .t0_ns = b_ns};
	struct drec_snapshot_result result;

	request.mono_to_unix_ns = drec_reader_mono_to_unix_ns(reader);
	return drec_snapshot_write(reader, fd, &request, &result);
}

static int snapshot_ring(struct drec_reader *reader, int fd)
{
	int64_t offset = drec_reader_mono_to_unix_ns(reader);
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return snapshot(reader, fd, ns_add(drec_reader_header(reader)->created_mono_ns, offset),
			ns_add((int64_t)now.tv_sec * 1000000000 + now.tv_nsec, offset));
}

int export_drec_copy(struct export_sources *sources, int fd, struct export_drec_result *ret, int *ret_status)
{
	struct drec_reader *reader = NULL;
	struct drec_problem problem = {0};
	char buffer[64];
	int r = drec_reader_open(AT_FDCWD, export_sources_path(sources, 0, buffer, sizeof(buffer)), NULL,
				 &reader, &problem);

	if (r < 0) {
		*ret_status = command_failed(sources->call, "%s: %s (at byte %" PRIu64 ")", sources->path[0],
					     problem.what[0] ? problem.what : strerror(-r), problem.offset);
		return 0;
	}
	r = drec_reader_window(reader) ? files_copy(drec_reader_fd(reader), fd) : snapshot_ring(reader, fd);
	drec_reader_free(reader);
	*ret = (struct export_drec_result){.file_bytes = (uint64_t)bytes_on_disk(fd)};
	return r;
}

/* --- how much room --- */

struct measure {
	uint64_t bytes, events;
	int64_t first_ns, last_ns;
	bool strip_args;
};

static uint64_t padded(size_t bytes)
{
	return bytes ? (4 + (uint64_t)bytes + 7) / 8 * 8 : 0;
}

static int measure_event(void *context, const struct reducer_event *event)
{
	struct measure *measure = context;
	size_t category = event->category.bytes > event->category_raw.bytes ? event->category.bytes
									    : event->category_raw.bytes;
	uint64_t bytes = RECORD_MOST_BYTES + padded(event->name.bytes) + padded(event->extra.bytes);

	if (!measure->strip_args)
		bytes += padded(event->args.bytes);
	if (category > 255)
		bytes += category; /* stands in extra */
	measure->bytes += bytes < DREC_EVENT_BYTES_MAX ? bytes : DREC_EVENT_BYTES_MAX;
	measure->events++;
	if (!event->has_time || event->kind == DREC_META)
		return 0;
	if (event->start_ns < measure->first_ns)
		measure->first_ns = event->start_ns;
	if (ns_add(event->start_ns, event->duration_ns) > measure->last_ns)
		measure->last_ns = ns_add(event->start_ns, event->duration_ns) + 1;
	return 0;
}

static int measure_member(void *context, const struct reducer_member *member)
{
	struct measure *measure = context;

	measure->bytes += member->key.bytes + member->value.bytes;
	return 0;
}

/* Chunks are not filled to their end: at worst what is left is as large as the largest event. */
static uint64_t ring_bytes_for(const struct measure *measure)
{
	uint64_t bytes = measure->bytes + measure->bytes / 8 + ROOM_SPARE_BYTES;

	bytes = (bytes + CHUNK_BYTES - 1) / CHUNK_BYTES * CHUNK_BYTES;
	return bytes < RING_LEAST_BYTES ? RING_LEAST_BYTES : bytes;
}

/* --- the ring --- */

struct making {
	drec *rec;
	struct reducer_ring_sink *ring;
	struct drec_reader *reader;
	struct reducer_sink sink; /* the ring's */
	bool strip_args;
	uint64_t args_left_out;
};

static int make_event(void *context, const struct reducer_event *event)
{
	struct making *making = context;
	struct reducer_event changed = *event;

	making->args_left_out += making->strip_args && event->args.bytes;
	if (making->strip_args)
		changed.args = (struct reducer_text){NULL, 0};
	if (event->kind == DREC_LOSS) {
		/* A ring keeps where the loss ended. */
		changed.has_id = 1;
		changed.id = (uint64_t)ns_add(event->start_ns, event->duration_ns);
	}
	return making->sink.event(making->sink.context, &changed);
}

static int make_member(void *context, const struct reducer_member *member)
{
	struct making *making = context;

	return making->sink.member(making->sink.context, member);
}

static int open_ring(struct export_sources *sources, struct making *making, const char *folder,
		     uint64_t bytes)
{
	char run_dir[480], rings[512], needed[OUTPUT_TEXT_MAX];
	struct drec_options options = {.run_dir = run_dir,
				       .name = "export",
				       .ring_bytes = bytes,
				       .no_exit_mark = 1,
				       .chunk_bytes = CHUNK_BYTES,
				       .dict_ids = DICT_IDS,
				       .dict_bytes = DICT_BYTES};
	struct drec_problem problem = {0};
	const char *why = "";
	int r;

	if ((size_t)snprintf(run_dir, sizeof(run_dir), "%s/.driverec-export-XXXXXX", folder) >=
	    sizeof(run_dir))
		return command_failed(sources->call, "%s: the name is too long", folder);
	if (!mkdtemp(run_dir))
		return command_failed(sources->call, "%s: %s", folder, strerror(errno));
	r = drec_open_strict(&options, &making->rec, &why);
	if (r == 0)
		r = drec_reader_open(AT_FDCWD, drec_path(making->rec), NULL, &making->reader, &problem);
	/* It has no name any more, so nothing is left of it however this ends. */
	if (making->rec)
		unlink(drec_path(making->rec));
	snprintf(rings, sizeof(rings), "%s/rings", run_dir);
	rmdir(rings);
	rmdir(run_dir);
	if (r < 0)
		return command_failed(sources->call, "a ring of %s cannot be made in %s: %s",
				      output_bytes(needed, bytes), folder, *why ? why : strerror(-r));
	if (drec_ring_bytes(making->rec) < bytes)
		return command_failed(sources->call,
				      "the events need a ring of %s, and there is room for half of it at "
				      "most in %s; write .json.gz, or free some",
				      output_bytes(needed, bytes), folder);
	return COMMAND_DONE;
}

static int feed(struct export_sources *sources, struct making *making)
{
	const struct reducer_sink sink = {.context = making, .event = make_event, .member = make_member};
	const struct reducer_ring_sink_options options = {.array_root = sources->array_root,
							  .has_base =
								  sources->has_base && sources->base_unix_ns,
							  .base_unix_ns = sources->base_unix_ns};
	int r = reducer_ring_sink_new(making->rec, &options, &making->ring);

	if (r < 0)
		return command_failed(sources->call, "%s: %s", sources->path[0], strerror(-r));
	making->sink = reducer_ring_sink(making->ring);
	r = export_sources_read(sources, &sink, true);
	if (sources->sink_failed)
		return command_failed(sources->call, "%s: %s", sources->path[0],
				      strerror(-sources->sink_failed));
	return r;
}

/* Every event of the ring, whatever time it says. */
static int write_window(const struct export_sources *sources, struct making *making,
			const struct measure *measure, int fd)
{
	int64_t base_ns = sources->base_unix_ns, now_ns = unix_now(),
		made_ns = now_ns - 3600 * (int64_t)1000000000;
	int64_t a_ns = measure->events ? ns_add(measure->first_ns, base_ns) : now_ns;
	int64_t b_ns = measure->events ? ns_add(measure->last_ns, base_ns) : now_ns;

	return snapshot(making->reader, fd, a_ns < made_ns ? a_ns : made_ns, b_ns > now_ns ? b_ns : now_ns);
}

int export_drec_make(struct export_sources *sources, int fd, const char *folder, bool strip_args,
		     struct export_drec_result *ret, int *ret_status)
{
	struct measure measure = {.first_ns = INT64_MAX, .last_ns = INT64_MIN, .strip_args = strip_args};
	const struct reducer_sink sink = {
		.context = &measure, .event = measure_event, .member = measure_member};
	struct making making = {.strip_args = strip_args};
	char text[OUTPUT_TEXT_MAX];
	int r = 0;

	*ret_status = export_sources_read(sources, &sink, false);
	if (*ret_status == COMMAND_DONE && ring_bytes_for(&measure) > RING_MOST_BYTES)
		*ret_status = command_failed(sources->call,
					     "%s: its events take %s, and a ring holds at most 2 GiB: "
					     "write .json.gz, or a part of it",
					     sources->path[0], output_bytes(text, measure.bytes));
	if (*ret_status == COMMAND_DONE)
		*ret_status = open_ring(sources, &making, folder, ring_bytes_for(&measure));
	if (*ret_status == COMMAND_DONE)
		*ret_status = feed(sources, &making);
	if (*ret_status == COMMAND_DONE) {
		const struct reducer_ring_sink_stats *stats = reducer_ring_sink_stats(making.ring);

		drec_close(making.rec);
		r = write_window(sources, &making, &measure, fd);
		*ret = (struct export_drec_result){stats->events, stats->refused, making.args_left_out,
						   (uint64_t)bytes_on_disk(fd)};
	}
	drec_reader_free(making.reader);
	reducer_ring_sink_free(making.ring);
	return r;
}
