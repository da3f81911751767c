/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WRITE to RELEASED, on a worker thread.
 *
 * Everything goes to a hidden folder that is emptied first, so a run that was killed anywhere is simply done
 * again; the pins hold the source meanwhile. The folder appears by one rename once all of it is on disk and
 * read back. Where there is no room less is kept: first a part of the raw windows, then none of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "files.h"
#include "incident.h"
#include "manifest.h"
#include "parts.h"
#include "point.h"

struct writer {
	struct incident *incident;
	struct incidents_store *store;
	char tmp[INCIDENTS_FOLDER_MAX + 8];
	int tmp_fd, raw_fd, gathered_fd; /* gathered: pending/<id>/, -1 = none */
	uint64_t bytes_left;             /* of raw data; 0 = no limit */
	bool limited;
	unsigned rings_left;
};

static bool is_room(int r)
{
	return r == -ENOSPC || r == -EDQUOT || r == -EFBIG;
}

static uint64_t share_of_room(const struct writer *writer)
{
	uint64_t share;

	if (!writer->limited)
		return 0;
	share = writer->bytes_left / (writer->rings_left ? writer->rings_left : 1);
	return share ? share : 1;
}

/* Stands for what could not be written. */
static int add_failed(struct incident_ring *ring, const struct incident_part *part, const char *file,
		      int error)
{
	struct incident_raw *raw = incident_raw_add(ring);

	if (!raw)
		return -ENOMEM;
	snprintf(raw->file, sizeof(raw->file), "%s", file);
	raw->window.a_ns = raw->window.covered_a_ns = raw->window.covered_b_ns = part->a_ns;
	raw->window.b_ns = part->b_ns;
	raw->window.from = part->since;
	raw->error = error;
	return 0;
}

/* Writes one file. -ENOSPC and its like end the attempt; other errors are that part's own. */
static int write_part(struct writer *writer, struct incident_ring *ring, struct drec_reader *reader,
		      unsigned index, uint64_t until)
{
	struct incident_part part = incident_part_after(writer->incident, ring, until);
	struct incident_raw written = {0}, *raw;
	char name[INCIDENT_TEXT_MAX];
	int fd, r;

	part.bytes_max = share_of_room(writer);
	incident_part_name(ring, index, name);
	fd = openat(writer->raw_fd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	r = fd < 0 ? -errno : incident_part_write(writer->incident, reader, fd, &part, &written);
	if (fd >= 0)
		close(fd);
	if (r < 0) {
		unlinkat(writer->raw_fd, name, 0);
		return is_room(r) ? r : add_failed(ring, &part, name, r);
	}
	raw = incident_raw_add(ring);
	if (!raw)
		return -ENOMEM;
	*raw = written;
	memcpy(raw->file, name, sizeof(raw->file));
	return 0;
}

/* A part that was drained. 1 = it was there, 0 = it was not. */
static int take_part(struct writer *writer, struct incident_ring *ring, unsigned index,
		     struct drec_window *ret_window)
{
	const struct drec_window *window = NULL;
	struct drec_reader *reader = NULL;
	struct drec_problem problem;
	struct incident_raw *raw;
	char name[INCIDENT_TEXT_MAX];
	int r = -ENOENT;

	incident_part_name(ring, index, name);
	if (writer->gathered_fd >= 0)
		r = drec_reader_open(writer->gathered_fd, name, NULL, &reader, &problem);
	if (r == 0)
		window = drec_reader_window(reader);
	if (window && window->sealed &&
	    !memcmp(drec_reader_header(reader)->ring_id, ring->ring_id, sizeof(ring->ring_id))) {
		r = files_link(writer->gathered_fd, name, writer->raw_fd, name);
		raw = r == 0 ? incident_raw_add(ring) : NULL;
		if (raw) {
			snprintf(raw->file, sizeof(raw->file), "%s", name);
			raw->window = *ret_window = *window;
			raw->early = ring->copied;
			drec_reader_free(reader);
			return 1;
		}
	}
	drec_reader_free(reader);
	return is_room(r) ? r : 0;
}

/* All that was drained of a ring; where a part is not there any more that is said. */
static int take_parts(struct writer *writer, struct incident_ring *ring)
{
	struct drec_window last = {0};
	int r = 0;

	for (unsigned i = 0; i < ring->drained.n_parts; i++) {
		r = take_part(writer, ring, i, &last);
		if (r == 0) {
			struct incident_part part = incident_part_after(writer->incident, ring, 0);
			char name[INCIDENT_TEXT_MAX];

			incident_part_name(ring, i, name);
			r = add_failed(ring, &part, name, -EIO);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

/* A ring that is gone: its last part may have been written by an earlier run. */
static int end_without_ring(struct writer *writer, struct incident_ring *ring)
{
	struct incident_part part = incident_part_after(writer->incident, ring, 0);
	struct drec_window last;
	int r = take_part(writer, ring, ring->drained.n_parts, &last);

	if (r == 1 && last.until == 0)
		return 0;
	if (r < 0 || ring->n_raw == 0)
		return r < 0 ? r : 0;
	return add_failed(ring, &part, "", -ENOENT);
}

/* Up to the second window, if there is one and all before it is closed. */
static int write_first_window(struct writer *writer, struct incident_ring *ring, struct drec_reader *reader)
{
	uint64_t cut = incident_part_cut(writer->incident, ring), at, until;
	struct incident_drained before = ring->drained;
	int r;

	at = before.next ? before.next : ring->pin[0].from;
	if (cut <= at)
		return 0;
	for (;;) {
		r = drec_pin_until(reader, at, &until);
		if (r < 0 || until == at)
			return 0;
		if (until >= cut)
			break;
		at = until;
	}
	r = write_part(writer, ring, reader, before.n_parts, cut);
	if (r == 0)
		ring->drained.next = cut;
	return r;
}

static int write_rest(struct writer *writer, struct incident_ring *ring, struct drec_reader *reader)
{
	struct incident_drained before = ring->drained;
	unsigned files = ring->n_raw;
	int r = write_first_window(writer, ring, reader);

	if (r == 0)
		r = write_part(writer, ring, reader, before.n_parts + (ring->n_raw - files), 0);
	ring->drained = before; /* what an attempt writes goes with it */
	return r;
}

static int write_ring(struct writer *writer, struct incident_ring *ring, bool raw)
{
	struct incident_part rest = incident_part_after(writer->incident, ring, 0);
	struct drec_reader *reader = NULL;
	int r;

	ring->n_raw = 0;
	if (ring->born_ns > incident_end_ns(writer->incident))
		return 0;
	r = take_parts(writer, ring);
	if (!raw)
		return add_failed(ring, &rest, "", -ENOSPC);
	if (r < 0)
		return r;
	if (ring->fd < 0)
		return end_without_ring(writer, ring);
	r = incident_open_ring(ring, &reader);
	if (r < 0)
		return add_failed(ring, &rest, "", r);
	if (writer->incident->n_anchors)
		drec_reader_set_anchors(reader, writer->incident->anchors, writer->incident->n_anchors,
					writer->incident->mono_to_unix_ns);
	r = write_rest(writer, ring, reader);
	drec_reader_free(reader);
	return r;
}

/* Without `raw` only what was drained: it takes no more room. */
static int write_raw(struct writer *writer, bool raw)
{
	struct incident *incident = writer->incident;

	writer->rings_left = incident->n_rings;
	for (unsigned i = 0; i < incident->n_rings; i++) {
		struct incident_ring *ring = &incident->rings[i];
		int r = write_ring(writer, ring, raw);

		if (r < 0)
			return r;
		writer->rings_left--;
		for (unsigned f = 0; f < ring->n_raw && writer->limited; f++)
			writer->bytes_left -= ring->raw[f].bytes < writer->bytes_left ? ring->raw[f].bytes
										      : writer->bytes_left;
	}
	return files_sync_folder(writer->raw_fd);
}

static int link_captures(struct writer *writer)
{
	struct incident *incident = writer->incident;
	int fd = -1, r = 0;

	for (unsigned i = 0; r == 0 && i < incident->n_captures; i++) {
		const struct incidents_capture *capture = &incident->capture[i];
		const char *slash = strrchr(capture->path, '/');
		char name[INCIDENT_TEXT_MAX + 16];

		if (capture->end_ns < incident_begin_ns(incident) ||
		    capture->begin_ns > incident_end_ns(incident))
			continue;
		if (fd < 0)
			r = files_folder(writer->raw_fd, "captures", &fd);
		snprintf(name, sizeof(name), "%u-%.100s", i, slash ? slash + 1 : capture->path);
		if (r == 0)
			r = files_link(AT_FDCWD, capture->path, fd, name);
		if (r < 0 && !is_room(r)) {
			incident_note(incident, "capture %.60s could not be kept: %s", name, strerror(-r));
			r = 0;
		}
	}
	if (fd >= 0)
		close(fd);
	INCIDENT_POINT(captures_linked);
	return r;
}

struct collected {
	int to_fd;
};

static int link_collected(void *context, int dirfd, const char *name)
{
	const struct collected *collected = context;

	return files_link(dirfd, name, collected->to_fd, name);
}

/* What the collectors wrote. */
static int take_collected(struct writer *writer)
{
	struct collected collected = {-1};
	int r;

	if (writer->gathered_fd < 0 || faccessat(writer->gathered_fd, "collected", F_OK, 0) < 0)
		return 0;
	r = files_folder(writer->tmp_fd, "collected", &collected.to_fd);
	if (r < 0)
		return r;
	r = files_each(writer->gathered_fd, "collected", link_collected, &collected);
	close(collected.to_fd);
	return is_room(r) ? r : 0;
}

static int open_tmp(struct writer *writer)
{
	int folder_fd = incidents_store_folder_fd(writer->store), r;

	if (writer->raw_fd >= 0)
		close(writer->raw_fd);
	if (writer->tmp_fd >= 0)
		close(writer->tmp_fd);
	writer->raw_fd = writer->tmp_fd = -1;
	r = files_remove(folder_fd, writer->tmp);
	if (r == 0)
		r = files_folder(folder_fd, writer->tmp, &writer->tmp_fd);
	if (r == 0)
		r = files_folder(writer->tmp_fd, "raw", &writer->raw_fd);
	INCIDENT_POINT(tmp_made);
	return r;
}

/* From a read-back of what is there to a manifest that lists it all. */
static int seal(struct writer *writer)
{
	struct incident *incident = writer->incident;
	char *report = NULL;
	size_t bytes = 0;
	int r = incident_cover(incident, writer->raw_fd);

	INCIDENT_POINT(raw_sealed);
	incident_clocks(incident);
	incident_sentence(incident, incident->sentence, sizeof(incident->sentence));
	if (r == 0)
		r = incident_report(incident, &report, &bytes);
	if (r == 0)
		r = files_replace(writer->tmp_fd, "report.md", report, bytes);
	free(report);
	INCIDENT_POINT(report_written);
	if (r < 0)
		return r;
	free(incident->manifest);
	incident->manifest = NULL;
	r = incident_manifest(incident, writer->tmp_fd, &incident->manifest);
	if (r == 0)
		r = files_replace(writer->tmp_fd, "manifest.json", incident->manifest,
				  strlen(incident->manifest));
	INCIDENT_POINT(manifest_written);
	if (r == 0)
		r = files_sync_folder(writer->tmp_fd);
	INCIDENT_POINT(sealed);
	return r;
}

/* One attempt with a limit on raw data. */
static int attempt(struct writer *writer, bool raw)
{
	const struct incident *incident = writer->incident;
	int r = open_tmp(writer);

	if (r == 0)
		r = write_raw(writer, raw);
	if (r == 0 && raw)
		r = link_captures(writer);
	if (r == 0 && raw)
		r = take_collected(writer);
	if (r == 0 && incident->macro)
		r = files_replace(writer->tmp_fd, "macro.json", incident->macro, incident->macro_bytes);
	INCIDENT_POINT(macro_written);
	if (r == 0)
		r = seal(writer);
	return r;
}

static uint64_t room_there(const struct writer *writer)
{
	struct statvfs fs;

	if (fstatvfs(incidents_store_folder_fd(writer->store), &fs) < 0)
		return 0;
	return (uint64_t)fs.f_bavail * fs.f_frsize;
}

static uint64_t room_needed(const struct incident *incident)
{
	uint64_t bytes = incident->macro_bytes;

	for (unsigned i = 0; i < incident->n_rings; i++) {
		struct stat st;

		if (incident->rings[i].fd >= 0 && fstat(incident->rings[i].fd, &st) == 0)
			bytes += (uint64_t)st.st_size / 2;
	}
	return incident->bytes_max && bytes > incident->bytes_max ? incident->bytes_max : bytes;
}

/* All of it, else what fits, else no raw window. */
static int write_folder(struct writer *writer)
{
	struct incident *incident = writer->incident;
	unsigned notes = incident->n_notes;
	uint64_t room, needed = room_needed(incident);
	int r;

	writer->limited = incident->bytes_max > 0;
	writer->bytes_left = incident->bytes_max;
	for (unsigned i = 0; i < incident->n_rings; i++)
		writer->bytes_left -= incident->rings[i].drained.bytes < writer->bytes_left
					      ? incident->rings[i].drained.bytes
					      : writer->bytes_left;
	r = attempt(writer, true);
	if (!is_room(r))
		return r;
	open_tmp(writer);
	room = room_there(writer);
	incident->n_notes = notes;
	incident_note(incident,
		      "kept smaller: %s, up to %" PRIu64 " KiB were needed and %" PRIu64 " KiB were free",
		      strerror(-r), needed >> 10, room >> 10);
	writer->limited = true;
	writer->bytes_left = (room < needed ? room : needed) / 4;
	r = attempt(writer, true);
	if (is_room(r)) {
		incident_note(incident, "no raw window: a quarter of that could not be written either");
		r = attempt(writer, false);
	}
	return r;
}

/* Whether an earlier run got as far as the rename. */
static bool published_before(struct writer *writer)
{
	struct incident *incident = writer->incident;
	char id[INCIDENTS_ID_TEXT];
	cJSON *json = NULL;
	char *text;

	if (incident_manifest_read(writer->store, incident->folder, &json) < 0)
		return false;
	json_text(json, "id", id, sizeof(id));
	json_text(json, "sentence", incident->sentence, sizeof(incident->sentence));
	text = cJSON_Print(json);
	free(incident->manifest);
	incident->manifest = text ? strdup(text) : NULL;
	cJSON_free(text);
	incident->resolved_ns = json_ns(json, "resolved_ns", incident->resolved_ns);
	cJSON_Delete(json);
	return !strcmp(id, incident->id_text);
}

static int salvage_file(void *context, int dirfd, const char *name)
{
	struct writer *writer = context;
	struct drec_problem problem;

	if (drec_window_verify(dirfd, name, &problem) == 0)
		files_link(dirfd, name, writer->gathered_fd, name);
	return 0;
}

/* Rings that are gone cannot be read again: what was written of them before is all there is. */
static void salvage(struct writer *writer)
{
	char raw[INCIDENTS_FOLDER_MAX + 16];
	bool gone = false;

	for (unsigned i = 0; i < writer->incident->n_rings; i++)
		gone |= writer->incident->rings[i].fd < 0;
	snprintf(raw, sizeof(raw), "%s/raw", writer->tmp);
	if (!gone || faccessat(incidents_store_folder_fd(writer->store), raw, F_OK, 0) < 0)
		return;
	if (writer->gathered_fd < 0 && files_folder(incidents_store_pending_fd(writer->store),
						    writer->incident->id_text, &writer->gathered_fd) < 0)
		return;
	files_each(incidents_store_folder_fd(writer->store), raw, salvage_file, writer);
}

static int publish(struct writer *writer)
{
	int folder_fd = incidents_store_folder_fd(writer->store);

	if (renameat2(folder_fd, writer->tmp, folder_fd, writer->incident->folder, RENAME_NOREPLACE) < 0) {
		/* Network file systems may not know the flag; no other folder has this id in its name. */
		if (errno != EINVAL)
			return -errno;
		if (renameat(folder_fd, writer->tmp, folder_fd, writer->incident->folder) < 0)
			return -errno;
	}
	INCIDENT_POINT(published);
	return files_sync_folder(folder_fd);
}

static void open_gathered(struct writer *writer)
{
	writer->gathered_fd = openat(incidents_store_pending_fd(writer->store), writer->incident->id_text,
				     O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

int incident_write(struct incident *incident, struct incidents_store *store)
{
	struct writer writer = {.incident = incident, .store = store, .tmp_fd = -1, .raw_fd = -1};
	int r = 0;

	snprintf(writer.tmp, sizeof(writer.tmp), ".tmp-%s", incident->folder);
	open_gathered(&writer);
	if (!published_before(&writer)) {
		salvage(&writer);
		r = write_folder(&writer);
		if (r == 0)
			r = publish(&writer);
		if (r < 0)
			files_remove(incidents_store_folder_fd(store), writer.tmp);
	}
	INCIDENT_POINT(parent_synced);
	if (r == 0)
		incident_release(incident);
	INCIDENT_POINT(released);
	if (writer.raw_fd >= 0)
		close(writer.raw_fd);
	if (writer.tmp_fd >= 0)
		close(writer.tmp_fd);
	if (writer.gathered_fd >= 0)
		close(writer.gathered_fd);
	return r;
}
