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

/* One window file to be written. */
struct piece {
	int64_t a_ns, b_ns;
	uint64_t from;
	const char *suffix;
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

static int snapshot(const struct writer *writer, struct drec_reader *reader, const struct piece *piece,
		    int fd, struct incident_raw *raw)
{
	const struct incident *incident = writer->incident;
	struct drec_snapshot_request request = {
		.t0_ns = incident_first(incident)->t0_ns,
		.a_ns = piece->a_ns,
		.b_ns = piece->b_ns,
		.mono_to_unix_ns = incident->mono_to_unix_ns,
		.from = piece->from,
		.bytes_max = share_of_room(writer),
		.host_anchors = incident->anchors,
		.n_host_anchors = incident->n_anchors,
		.no_crc = 1,
	};
	struct drec_snapshot_result result = {0};
	int r = drec_snapshot_write(reader, fd, &request, &result);

	if (r < 0)
		return r;
	INCIDENT_POINT(raw_written);
	raw->window = result.window;
	raw->bytes = result.data_bytes;
	if (fsync(fd) < 0)
		return -errno;
	INCIDENT_POINT(raw_synced);
	r = drec_window_seal(fd);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	return r;
}

/* Writes one file. -ENOSPC and its like end the attempt; other errors are that window's own. */
static int write_piece(struct writer *writer, struct incident_ring *ring, struct drec_reader *reader,
		       int folder_fd, const struct piece *piece)
{
	struct incident_raw *raw = &ring->raw[ring->n_raw];
	int fd, r;

	memset(raw, 0, sizeof(*raw));
	snprintf(raw->file, sizeof(raw->file), "%.100s%s.drec", ring->name, piece->suffix);
	raw->window.a_ns = raw->window.covered_a_ns = raw->window.covered_b_ns = piece->a_ns;
	raw->window.b_ns = piece->b_ns;
	fd = openat(folder_fd, raw->file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	r = fd < 0 ? -errno : snapshot(writer, reader, piece, fd, raw);
	if (fd >= 0)
		close(fd);
	if (r < 0)
		unlinkat(folder_fd, raw->file, 0);
	if (is_room(r))
		return r;
	raw->error = r;
	ring->n_raw++;
	return 0;
}

/* What was copied before the window was over, at the firing or before the machine went down. */
static bool take_gathered(struct writer *writer, struct incident_ring *ring, const char *suffix)
{
	struct incident_raw *raw = &ring->raw[ring->n_raw];
	struct drec_reader *reader = NULL;
	struct drec_problem problem;

	memset(raw, 0, sizeof(*raw));
	snprintf(raw->file, sizeof(raw->file), "%.100s%s.drec", ring->name, suffix);
	if (writer->gathered_fd < 0 || drec_window_verify(writer->gathered_fd, raw->file, &problem) < 0 ||
	    drec_reader_open(writer->gathered_fd, raw->file, NULL, &reader, &problem) < 0)
		return false;
	if (drec_reader_window(reader) &&
	    files_link(writer->gathered_fd, raw->file, writer->raw_fd, raw->file) == 0) {
		raw->window = *drec_reader_window(reader);
		raw->early = true;
		ring->n_raw++;
	}
	drec_reader_free(reader);
	return raw->early;
}

static int write_windows(struct writer *writer, struct incident_ring *ring, struct drec_reader *reader,
			 int64_t have_until_ns)
{
	static const char *const suffix[INCIDENT_WINDOWS_MAX] = {"", "-detection"};
	const struct incident *incident = writer->incident;
	int r = 0;

	for (unsigned i = 0; r == 0 && i < incident->n_windows; i++) {
		struct piece piece = {incident->window[i].a_ns, incident->window[i].b_ns, ring->pin[i].from,
				      suffix[i]};
		char later[32];

		/* What was not yet there cannot be missing: a ring's window begins with the ring. */
		if (piece.a_ns < ring->born_ns)
			piece.a_ns = ring->born_ns;
		if (have_until_ns > piece.a_ns) {
			piece.a_ns = have_until_ns;
			piece.from = 0;
			snprintf(later, sizeof(later), "%s-later", suffix[i]);
			piece.suffix = later;
		}
		if (piece.a_ns <= piece.b_ns)
			r = write_piece(writer, ring, reader, writer->raw_fd, &piece);
	}
	return r;
}

static int write_ring(struct writer *writer, struct incident_ring *ring)
{
	struct drec_reader *reader = NULL;
	int64_t have_until_ns = INT64_MIN;
	int r;

	ring->n_raw = 0;
	if (ring->born_ns > incident_end_ns(writer->incident))
		return 0;
	if ((ring->copied || ring->fd < 0) && take_gathered(writer, ring, ""))
		have_until_ns = ring->raw[0].window.b_ns;
	if (ring->fd < 0) {
		take_gathered(writer, ring, "-detection");
		return 0;
	}
	r = incident_open_ring(ring, &reader);
	if (r < 0) {
		ring->raw[ring->n_raw] = (struct incident_raw){
			.window = {.a_ns = incident_begin_ns(writer->incident),
				   .b_ns = incident_end_ns(writer->incident)},
			.error = r,
		};
		ring->n_raw++;
		return 0;
	}
	if (writer->incident->n_anchors)
		drec_reader_set_anchors(reader, writer->incident->anchors, writer->incident->n_anchors,
					writer->incident->mono_to_unix_ns);
	r = write_windows(writer, ring, reader, have_until_ns);
	drec_reader_free(reader);
	return r;
}

static int write_raw(struct writer *writer)
{
	struct incident *incident = writer->incident;

	writer->rings_left = incident->n_rings;
	for (unsigned i = 0; i < incident->n_rings; i++) {
		struct incident_ring *ring = &incident->rings[i];
		int r = write_ring(writer, ring);

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
	INCIDENT_POINT(sealed);
	return r;
}

/* One attempt with a limit on raw data. */
static int attempt(struct writer *writer, bool raw)
{
	struct incident *incident = writer->incident;
	int r = open_tmp(writer);

	if (r == 0 && raw)
		r = write_raw(writer);
	for (unsigned i = 0; !raw && i < incident->n_rings; i++) {
		incident->rings[i].n_raw = 1;
		incident->rings[i].raw[0] = (struct incident_raw){
			.window = {.a_ns = incident_begin_ns(incident),
				   .b_ns = incident_end_ns(incident),
				   .covered_a_ns = incident_begin_ns(incident),
				   .covered_b_ns = incident_begin_ns(incident)},
			.error = -ENOSPC,
		};
	}
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

int incident_copy_early(struct incident *incident, struct incidents_store *store, int64_t now_ns)
{
	struct writer writer = {
		.incident = incident, .store = store, .tmp_fd = -1, .raw_fd = -1, .gathered_fd = -1};
	int r = files_folder(incidents_store_pending_fd(store), incident->id_text, &writer.gathered_fd);

	for (unsigned i = 0; r == 0 && i < incident->n_rings; i++) {
		struct incident_ring *ring = &incident->rings[i];
		struct piece piece = {incident->window[0].a_ns, now_ns, ring->pin[0].from, ""};
		struct drec_reader *reader = NULL;

		if (!ring->copied || ring->fd < 0 || incident_open_ring(ring, &reader) < 0)
			continue;
		if (piece.a_ns < ring->born_ns)
			piece.a_ns = ring->born_ns;
		if (piece.b_ns > incident->window[0].b_ns)
			piece.b_ns = incident->window[0].b_ns;
		if (incident->n_anchors)
			drec_reader_set_anchors(reader, incident->anchors, incident->n_anchors,
						incident->mono_to_unix_ns);
		ring->n_raw = 0;
		r = write_piece(&writer, ring, reader, writer.gathered_fd, &piece);
		ring->n_raw = 0;
		drec_reader_free(reader);
	}
	if (r == 0)
		r = files_sync_folder(writer.gathered_fd);
	INCIDENT_POINT(early_copied);
	if (writer.gathered_fd >= 0)
		close(writer.gathered_fd);
	return r;
}
