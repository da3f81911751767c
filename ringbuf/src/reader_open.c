/* SPDX-License-Identifier: Apache-2.0 */
/* Opening: the descriptor, the header, and that every section lies where it can be read. */
#include "reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

DREC_STATIC_ASSERT(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file's structs are used as they lie");

void ringread_problem(struct drec_problem *problem, uint64_t offset, const char *format, ...)
{
	if (!problem)
		return;
	va_list arguments;
	va_start(arguments, format);
	problem->offset = offset;
	vsnprintf(problem->what, sizeof(problem->what), format, arguments);
	va_end(arguments);
}

int ringread_bytes(int fd, uint64_t offset, void *ret, size_t bytes)
{
	char *at = ret;
	while (bytes) {
		ssize_t count = pread(fd, at, bytes, (off_t)offset);
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return -errno;
		if (count == 0)
			return -EBADMSG;
		at += count;
		offset += (uint64_t)count;
		bytes -= (size_t)count;
	}
	return 0;
}

int ringread_write(int fd, uint64_t offset, const void *bytes, size_t count)
{
	const char *at = bytes;
	while (count) {
		ssize_t written = pwrite(fd, at, count, (off_t)offset);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written < 0 ? -errno : -ENOSPC;
		at += written;
		offset += (uint64_t)written;
		count -= (size_t)written;
	}
	return 0;
}

/* --- the descriptor --- */

/* File systems on which a read cannot hang at the will of another user (FUSE can). */
static int trusted_file_system(int fd)
{
	static const unsigned long known[] = {
		0x01021994 /* tmpfs */, 0xef53 /* ext4 */,     0x58465342 /* xfs */,
		0x9123683e /* btrfs */, 0x794c7630 /* overlayfs */,
	};
	struct statfs fs;
	if (fstatfs(fd, &fs) < 0)
		return -errno;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (((unsigned long)fs.f_type & 0xffffffff) == known[i])
			return 1;
	}
	return 0;
}

static int folder_device(int dirfd, const char *path, dev_t *ret_device)
{
	char folder[4096] = ".";
	const char *slash = strrchr(path, '/');
	if (slash) {
		size_t length = slash == path ? 1 : (size_t)(slash - path);
		if (length >= sizeof(folder))
			return -ENAMETOOLONG;
		memcpy(folder, path, length);
		folder[length] = 0;
	}
	struct stat st;
	if (fstatat(dirfd, folder, &st, 0) < 0)
		return -errno;
	*ret_device = st.st_dev;
	return 0;
}

static int check_safe(int fd, int dirfd, const char *path, struct drec_problem *problem)
{
	struct stat st;
	dev_t device;
	if (fstat(fd, &st) < 0)
		return -errno;
	int r = folder_device(dirfd, path, &device);
	if (r < 0)
		return r;
	if (!S_ISREG(st.st_mode)) {
		ringread_problem(problem, 0, "not a regular file");
		return -EBADMSG;
	}
	if (st.st_nlink != 1) {
		ringread_problem(problem, 0, "has %ju names, a ring has one", (uintmax_t)st.st_nlink);
		return -EBADMSG;
	}
	if (st.st_dev != device) {
		ringread_problem(problem, 0, "lies on another file system than its folder");
		return -EBADMSG;
	}
	r = trusted_file_system(fd);
	if (r == 0) {
		ringread_problem(problem, 0, "lies on a file system that is not trusted (tmpfs, ext4, xfs, btrfs)");
		return -EBADMSG;
	}
	return r < 0 ? r : 0;
}

/* O_NONBLOCK: opening a FIFO must not hang. */
static int open_file(int dirfd, const char *path, const struct drec_reader_options *options, int *ret_writable)
{
	int flags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (options->safe_open ? O_NOFOLLOW : 0);
	*ret_writable = 1;
	int fd = options->writable ? openat(dirfd, path, O_RDWR | flags) : -1;
	if (fd < 0) {
		*ret_writable = 0;
		fd = openat(dirfd, path, O_RDONLY | flags);
	}
	return fd < 0 ? -errno : fd;
}

/* --- the header --- */

static const char *section_name(unsigned type)
{
	static const char *const names[RINGREAD_SECTION_LIMIT] = {
		[DREC_SEC_STATE] = "state",
		[DREC_SEC_PINS] = "pins",
		[DREC_SEC_ORDER] = "order",
		[DREC_SEC_CHUNKS] = "chunks",
		[DREC_SEC_SLOTS] = "slots",
		[DREC_SEC_ANCHORS] = "anchors",
		[DREC_SEC_DICT_INDEX] = "dictionary index",
		[DREC_SEC_DICT] = "dictionary",
		[DREC_SEC_DATA] = "data",
		[DREC_SEC_WINDOW] = "window",
		[DREC_SEC_HOST_ANCHORS] = "host anchors",
	};
	return type < RINGREAD_SECTION_LIMIT && names[type] ? names[type] : "unknown";
}

static int check_kind(const struct drec_header *header, const struct drec_reader_options *options,
		      struct drec_problem *problem)
{
	if (memcmp(header->magic, DREC_MAGIC, sizeof(header->magic)) != 0) {
		ringread_problem(problem, 0, "does not begin as a ring or window file");
		return -EBADMSG;
	}
	if (header->major != DREC_FORMAT_MAJOR) {
		ringread_problem(problem, 8, "format version %u.%u, this reads %u", header->major, header->minor,
				 (unsigned)DREC_FORMAT_MAJOR);
		return -EPROTONOSUPPORT;
	}
	if (header->incompat) {
		ringread_problem(problem, 16, "needs features this does not know (bits %#jx)",
				 (uintmax_t)header->incompat);
		return -EPROTONOSUPPORT;
	}
	if (header->kind != DREC_FILE_RING && header->kind != DREC_FILE_WINDOW) {
		ringread_problem(problem, 44, "is neither a ring nor a window (kind %u)", header->kind);
		return -EBADMSG;
	}
	if (options->rings_only && header->kind != DREC_FILE_RING) {
		ringread_problem(problem, 44, "is a window file, no ring");
		return -EBADMSG;
	}
	if (header->clock < DREC_CLOCK_TSC || header->clock > DREC_CLOCK_UNIX) {
		ringread_problem(problem, 108, "clock %u is not known", header->clock);
		return -EBADMSG;
	}
	return 0;
}

struct range {
	const char *what;
	uint32_t offset, value, least, most;
};

static int check_numbers(const struct drec_header *header, struct drec_problem *problem)
{
	int ring = header->kind == DREC_FILE_RING;
	const struct range ranges[] = {
		{"header bytes", 12, header->header_bytes, DREC_PAGE_BYTES, DREC_PAGE_BYTES},
		{"section count", 40, header->n_sections, 1, DREC_SECTIONS_MAX},
		{"chunk count", 128, header->n_chunks, ring ? DREC_CHUNKS_MIN : 0, DREC_CHUNKS_MAX},
		{"chunk size", 132, header->chunk_bytes, DREC_CHUNK_BYTES_MIN, DREC_CHUNK_BYTES_MAX},
		{"slot count", 136, header->n_slots, ring ? 1 : 0, DREC_SLOTS_MAX},
		{"pin count", 140, header->n_pins, 0, DREC_PINS_MAX},
		{"dictionary size", 144, header->n_dict_ids, 0, DREC_DICT_IDS_MAX + 1},
		{"anchor count", 148, header->n_anchors, 0, DREC_ANCHORS_MAX},
	};
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		const struct range *range = &ranges[i];
		if (range->value < range->least || range->value > range->most) {
			ringread_problem(problem, range->offset, "%s %u is not within %u .. %u", range->what,
					 range->value, range->least, range->most);
			return -EBADMSG;
		}
	}
	if (header->chunk_bytes % 8 != 0) {
		ringread_problem(problem, 132, "chunk size %u is no multiple of 8", header->chunk_bytes);
		return -EBADMSG;
	}
	return 0;
}

static int check_section(struct drec_reader *reader, unsigned index, uint64_t file_bytes,
			 struct drec_problem *problem)
{
	const struct drec_section *section = &reader->header.section[index];
	uint64_t place = offsetof(struct drec_header, section) + index * sizeof(*section);
	const char *name = section_name(section->type);
	if (section->type == 0 || section->type >= RINGREAD_SECTION_LIMIT)
		return 0; /* of a later minor version */
	if (reader->section[section->type]) {
		ringread_problem(problem, place, "section %u (%s) is there twice", index, name);
		return -EBADMSG;
	}
	if (section->offset % DREC_PAGE_BYTES != 0 || section->offset < DREC_PAGE_BYTES) {
		ringread_problem(problem, place, "section %u (%s) begins at %ju, which is no page after the header",
				 index, name, (uintmax_t)section->offset);
		return -EBADMSG;
	}
	if (section->offset > file_bytes || section->bytes > file_bytes - section->offset) {
		ringread_problem(problem, place, "section %u (%s) ends past the file", index, name);
		return -EBADMSG;
	}
	reader->section[section->type] = section;
	return 0;
}

struct need {
	unsigned type;
	uint64_t bytes; /* at least */
};

static int check_needs(const struct drec_reader *reader, struct drec_problem *problem)
{
	const struct drec_header *header = &reader->header;
	int ring = header->kind == DREC_FILE_RING;
	const struct need needs[] = {
		{DREC_SEC_STATE, sizeof(struct drec_state)},
		{DREC_SEC_CHUNKS, header->n_chunks * sizeof(struct drec_chunk)},
		{DREC_SEC_SLOTS, header->n_slots * sizeof(struct drec_slot)},
		{DREC_SEC_ANCHORS, header->n_anchors * sizeof(struct drec_anchor)},
		{DREC_SEC_DICT_INDEX, header->n_dict_ids * sizeof(struct drec_dict_entry)},
		{DREC_SEC_DICT, 0},
		{DREC_SEC_DATA, (uint64_t)header->n_chunks * header->chunk_bytes},
		{ring ? DREC_SEC_PINS : DREC_SEC_WINDOW,
		 ring ? header->n_pins * sizeof(struct drec_pin) : sizeof(struct drec_window)},
		{ring ? DREC_SEC_ORDER : DREC_SEC_WINDOW, ring ? header->n_chunks * sizeof(uint64_t) : 0},
	};
	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
		const struct drec_section *section = reader->section[needs[i].type];
		if (!section) {
			ringread_problem(problem, 512, "there is no %s section", section_name(needs[i].type));
			return -EBADMSG;
		}
		if (section->bytes < needs[i].bytes) {
			ringread_problem(problem, section->offset, "the %s section has %ju of %ju bytes",
					 section_name(needs[i].type), (uintmax_t)section->bytes,
					 (uintmax_t)needs[i].bytes);
			return -EBADMSG;
		}
	}
	if (reader->section[DREC_SEC_DICT]->bytes > DREC_DICT_BYTES_MAX) {
		ringread_problem(problem, 512, "the dictionary section is larger than %d bytes", DREC_DICT_BYTES_MAX);
		return -EBADMSG;
	}
	return 0;
}

static int check_header(struct drec_reader *reader, const struct drec_reader_options *options,
			struct drec_problem *problem)
{
	struct stat st;
	if (fstat(reader->fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode)) {
		ringread_problem(problem, 0, "not a regular file");
		return -EBADMSG;
	}
	uint64_t file_bytes = (uint64_t)st.st_size;
	uint64_t most = options->file_bytes_max ? options->file_bytes_max : DREC_RING_BYTES_MAX;
	if (file_bytes > most) {
		ringread_problem(problem, 0, "has %ju bytes, more than %ju", (uintmax_t)file_bytes, (uintmax_t)most);
		return -EFBIG;
	}
	if (file_bytes < DREC_PAGE_BYTES) {
		ringread_problem(problem, 0, "has %ju bytes, a header has %d", (uintmax_t)file_bytes,
				 DREC_PAGE_BYTES);
		return -EBADMSG;
	}
	int r = ringread_bytes(reader->fd, 0, &reader->header, sizeof(reader->header));
	if (r < 0)
		return r;
	struct drec_header *header = &reader->header;
	header->job[DREC_TEXT_MAX - 1] = header->name[DREC_TEXT_MAX - 1] = header->host[DREC_TEXT_MAX - 1] = 0;
	r = check_kind(header, options, problem);
	if (r == 0)
		r = check_numbers(header, problem);
	if (r == 0 && header->file_bytes > file_bytes) {
		ringread_problem(problem, 32, "is cut short: %ju of %ju bytes", (uintmax_t)file_bytes,
				 (uintmax_t)header->file_bytes);
		r = -EBADMSG;
	}
	for (unsigned i = 0; r == 0 && i < header->n_sections; i++)
		r = check_section(reader, i, file_bytes, problem);
	return r < 0 ? r : check_needs(reader, problem);
}

/* --- the reader --- */

static int allocate(struct drec_reader *reader)
{
	size_t n = reader->header.n_chunks;
	reader->cursor_room = n + reader->header.n_slots + 1;
	reader->chunks = calloc(n + 1, sizeof(*reader->chunks));
	reader->again = calloc(n + 1, sizeof(*reader->again));
	reader->commits = calloc(n + 1, sizeof(*reader->commits));
	reader->items = calloc(2 * n + 1, sizeof(*reader->items));
	reader->data = malloc(reader->header.chunk_bytes);
	reader->cursors = calloc(reader->cursor_room, sizeof(*reader->cursors));
	return reader->chunks && reader->again && reader->commits && reader->items && reader->data &&
			       reader->cursors
		       ? 0
		       : -ENOMEM;
}

int ringread_open_fd(int fd, int writable, const struct drec_reader_options *options,
		     struct drec_reader **ret_reader, struct drec_problem *ret_problem)
{
	struct drec_reader *reader = calloc(1, sizeof(*reader));
	if (!reader) {
		close(fd);
		return -ENOMEM;
	}
	reader->fd = fd;
	reader->writable = writable;
	int r = check_header(reader, options, ret_problem);
	if (r == 0)
		r = allocate(reader);
	if (r == 0 && reader->header.kind == DREC_FILE_WINDOW)
		r = ringread_bytes(fd, reader->section[DREC_SEC_WINDOW]->offset, &reader->window,
				   sizeof(reader->window));
	if (r == 0)
		r = ringread_state(reader);
	if (r == 0)
		r = ringread_anchors(reader);
	if (r < 0) {
		drec_reader_free(reader);
		return r;
	}
	*ret_reader = reader;
	return 0;
}

int drec_reader_open(int dirfd, const char *path, const struct drec_reader_options *options,
		     struct drec_reader **ret_reader, struct drec_problem *ret_problem)
{
	static const struct drec_reader_options defaults;
	int writable;
	if (!options)
		options = &defaults;
	ringread_problem(ret_problem, 0, "cannot be read");
	int fd = open_file(dirfd, path, options, &writable);
	if (fd < 0) {
		ringread_problem(ret_problem, 0, "cannot be opened: %s", strerror(-fd));
		return fd;
	}
	int r = options->safe_open ? check_safe(fd, dirfd, path, ret_problem) : 0;
	if (r < 0) {
		close(fd);
		return r;
	}
	return ringread_open_fd(fd, writable, options, ret_reader, ret_problem);
}

void drec_reader_free(struct drec_reader *reader)
{
	if (!reader)
		return;
	close(reader->fd);
	ring_clock_clear(&reader->clock);
	free(reader->chunks);
	free(reader->again);
	free(reader->commits);
	free(reader->items);
	free(reader->data);
	free(reader->cursors);
	free(reader->dict.entries);
	free(reader->dict.text);
	free(reader->dict.latest_name);
	free(reader);
}

int drec_reader_fd(const struct drec_reader *reader)
{
	return reader->fd;
}

int drec_reader_writable(const struct drec_reader *reader)
{
	return reader->writable;
}

const struct drec_header *drec_reader_header(const struct drec_reader *reader)
{
	return &reader->header;
}

const struct drec_section *drec_reader_section(const struct drec_reader *reader, unsigned type)
{
	return type < RINGREAD_SECTION_LIMIT ? reader->section[type] : NULL;
}

const struct drec_state *drec_reader_state(const struct drec_reader *reader)
{
	return &reader->state;
}

const struct drec_window *drec_reader_window(const struct drec_reader *reader)
{
	return reader->header.kind == DREC_FILE_WINDOW ? &reader->window : NULL;
}
