/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making a ring: a visible ring is a whole ring.
 *
 * The file is made under a hidden name, allocated and populated (so that no later store can fail or fault),
 * filled in, locked (a POSIX record lock on byte 0 is what "alive" means) and only then renamed in place.
 * Any failure before that unlinks it; the job then runs without a recorder.
 */
#include "ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <driverec/identity.h>

#include "layout.h"
#include "old_rings.h"
#include "point.h"
#include "room.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

enum { ANCHOR_GAP_NS = 2000000 };

static uint64_t all_recorders; /* struct drec *, newest first */
static uint64_t generations;

struct drec *recorders_first(void)
{
	return (struct drec *)(uintptr_t)load_acquire(&all_recorders);
}

static void recorders_add(struct drec *rec)
{
	uint64_t first = load_relaxed(&all_recorders);
	do
		rec->next = (struct drec *)(uintptr_t)first;
	while (!compare_exchange(&all_recorders, &first, (uint64_t)(uintptr_t)rec));
}

/* What drec_open() gathers before there is a recorder. */
struct opening {
	const struct drec_options *options;
	const char *why;
	struct drec_identity id;
	struct layout layout;
	char dir[512];
	char hidden[64];
	char visible[160];
	int dirfd;
	int fd;
	uint8_t *map;
	struct drec *rec;
};

static int fail(struct opening *o, int error, const char *why)
{
	o->why = why;
	return error;
}

static int read_identity(struct opening *o)
{
	const struct drec_options *options = o->options;
	drec_identity_read(&o->id);
	if ((options->job && !drec_text_allowed(options->job)) ||
	    (options->name && !drec_text_allowed(options->name)))
		return fail(o, -EINVAL, "a job or ring name may hold [A-Za-z0-9._-]{1,63}, no leading dot");
	if (options->job)
		drec_text_clean(o->id.job, options->job);
	if (options->rank)
		o->id.rank = *options->rank < 0 ? -1 : *options->rank;
	if (options->rank && o->id.rank >= 0)
		snprintf(o->id.name, sizeof(o->id.name), "rank%d", (int)o->id.rank);
	if (options->name)
		drec_text_clean(o->id.name, options->name);
	return 0;
}

static int open_folder(struct opening *o)
{
	char rings[520];
	int ret = drec_run_dir(o->options->run_dir, o->dir, sizeof(o->dir), &o->why);
	if (ret < 0)
		return ret;
	snprintf(rings, sizeof(rings), "%s/rings", o->dir);
	o->dirfd = open(rings, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return o->dirfd < 0 ? fail(o, -errno, "the run directory's rings folder cannot be opened") : 0;
}

static uint64_t wanted_bytes(const struct drec_options *options)
{
	const char *text = getenv("DRIVEREC_RING_SIZE");
	if (options->ring_bytes || !text || *text < '0' || *text > '9')
		return options->ring_bytes;
	return strtoull(text, NULL, 10);
}

/* The largest of full, half, quarter … of what was asked that leaves the job its memory. */
static int choose_size(struct opening *o)
{
	const struct drec_options *options = o->options;
	uint64_t bytes = wanted_bytes(options), rings = old_rings_clean(o->dirfd, o->id.job, o->id.name);
	uint64_t room = room_for_ring(o->dirfd, rings);
	for (;;) {
		int ret = layout_compute(bytes, options->chunk_bytes, options->dict_ids, options->dict_bytes,
					 &o->layout);
		if (ret < 0)
			return fail(o, ret, "the ring's size, chunk size or dictionary size is out of bounds");
		if (o->layout.file_bytes <= room)
			return 0;
		if (o->layout.n_chunks == DREC_CHUNKS_MIN)
			return fail(o, -ENOSPC, "no room for a ring: too little is free in the run directory, or "
						"the memory cgroup is near its limit");
		bytes = (uint64_t)o->layout.n_chunks * o->layout.chunk_bytes / 2;
	}
}

static int random_name(struct opening *o)
{
	uint64_t number;
	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		number = (uint64_t)clock_ns(CLOCK_MONOTONIC) ^ (uint64_t)getpid() << 40;
	snprintf(o->hidden, sizeof(o->hidden), ".tmp-%016llx", (unsigned long long)number);
	snprintf(o->visible, sizeof(o->visible), "%s.%016llx.ring", o->id.name, (unsigned long long)number);
	o->fd = openat(o->dirfd, o->hidden, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (o->fd < 0) {
		o->hidden[0] = 0;
		return fail(o, -errno, "the ring's file cannot be made in the run directory");
	}
	return 0;
}

/* Every page is there and mapped before the job's first event: no later store can fail or fault. */
static int allocate(struct opening *o)
{
	size_t bytes = (size_t)o->layout.file_bytes;
	if (fallocate(o->fd, 0, 0, (off_t)bytes) < 0)
		return fail(o, -errno, "the ring's memory cannot be allocated");
	POINT(create_allocated);
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, o->fd, 0);
	if (map == MAP_FAILED)
		return fail(o, -errno, "the ring cannot be mapped");
	o->map = map;
	if (madvise(map, bytes, MADV_POPULATE_WRITE) < 0)
		for (size_t at = 0; at < bytes; at += DREC_PAGE_BYTES)
			*(volatile uint8_t *)(o->map + at) = 0;
	(void)mlock(map, bytes); /* best effort: keeps it from being swapped */
	return 0;
}

static void *private_memory(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

static uint32_t names_slots(uint32_t ids)
{
	uint32_t slots = 16;
	while (slots < 2 * ids)
		slots *= 2;
	return slots;
}

/* One piece of private memory: the recorder, its locals, its table of names. */
static int make_recorder(struct opening *o)
{
	const struct layout *l = &o->layout;
	uint32_t slots = names_slots(l->n_dict_ids);
	size_t locals = (sizeof(struct drec) + 63) & ~(size_t)63;
	size_t names = locals + (size_t)l->n_slots * sizeof(struct local);
	uint8_t *memory = private_memory(names + (size_t)slots * 8);
	if (!memory)
		return fail(o, -ENOMEM, "no memory for the recorder");
	struct drec *rec = (struct drec *)memory;
	rec->locals = (struct local *)(memory + locals);
	rec->names = (uint64_t *)(memory + names);
	rec->names_mask = slots - 1;
	o->rec = rec;
	rec->live = private_memory(DREC_PAGE_BYTES);
	if (!rec->live)
		return fail(o, -ENOMEM, "no memory for the recorder");
	if (madvise(rec->live, DREC_PAGE_BYTES, MADV_WIPEONFORK) < 0)
		return fail(o, -errno, "the kernel cannot keep a forked child from writing (MADV_WIPEONFORK)");
	return 0;
}

static void point_into_file(struct opening *o)
{
	struct drec *rec = o->rec;
	const struct layout *l = &o->layout;
	uint8_t *map = o->map;
	rec->header = (struct drec_header *)map;
	rec->state = (struct drec_state *)(map + l->section[DREC_SEC_STATE - 1].offset);
	rec->pins = (struct drec_pin *)(map + l->section[DREC_SEC_PINS - 1].offset);
	rec->order = (uint64_t *)(map + l->section[DREC_SEC_ORDER - 1].offset);
	rec->chunks = (struct drec_chunk *)(map + l->section[DREC_SEC_CHUNKS - 1].offset);
	rec->slots = (struct drec_slot *)(map + l->section[DREC_SEC_SLOTS - 1].offset);
	rec->anchors = (struct drec_anchor *)(map + l->section[DREC_SEC_ANCHORS - 1].offset);
	rec->dict_index = (struct drec_dict_entry *)(map + l->section[DREC_SEC_DICT_INDEX - 1].offset);
	rec->dict = map + l->section[DREC_SEC_DICT - 1].offset;
	rec->data = map + l->section[DREC_SEC_DATA - 1].offset;
	rec->n_chunks = l->n_chunks;
	rec->chunk_bytes = l->chunk_bytes;
	rec->n_slots = l->n_slots;
	rec->n_dict_ids = l->n_dict_ids;
	rec->n_anchors = l->n_anchors;
	rec->dict_bytes = l->dict_bytes;
	rec->file_bytes = l->file_bytes;
	rec->clock = ticks_choose(o->options->clock);
	rec->exit_mark = !o->options->no_exit_mark;
	rec->fd = o->fd;
}

static void read_hex16(uint8_t out[16], const char *path)
{
	char text[64];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	ssize_t count = read(fd, text, sizeof(text));
	close(fd);
	unsigned digits = 0;
	for (ssize_t i = 0; i < count && digits < 32; i++) {
		char c = text[i];
		unsigned value = c >= '0' && c <= '9' ? (unsigned)(c - '0')
				 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10) : 16;
		if (value == 16)
			continue;
		out[digits / 2] = (uint8_t)((unsigned)out[digits / 2] << 4 | value);
		digits++;
	}
}

/* Field 22 of /proc/self/stat; fields are counted after the name's closing parenthesis. */
static uint64_t own_start_time(void)
{
	char text[1024];
	uint64_t value = 0;
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t count = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[count > 0 ? count : 0] = 0;
	const char *at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	for (at = at ? at + 1 : ""; *at >= '0' && *at <= '9'; at++)
		value = value * 10 + (uint64_t)(*at - '0');
	return value;
}

static void fill_header(struct opening *o)
{
	struct drec_header *h = o->rec->header;
	const struct layout *l = &o->layout;
	struct stat ns;
	memcpy(h->magic, DREC_MAGIC, sizeof(h->magic));
	h->major = DREC_FORMAT_MAJOR;
	h->minor = DREC_FORMAT_MINOR;
	h->header_bytes = sizeof(*h);
	h->file_bytes = l->file_bytes;
	h->n_sections = LAYOUT_SECTIONS;
	h->kind = DREC_FILE_RING;
	if (getrandom(h->ring_id, sizeof(h->ring_id), GRND_NONBLOCK) != sizeof(h->ring_id))
		memcpy(h->ring_id, o->hidden + 5, sizeof(h->ring_id));
	read_hex16(h->boot_id, "/proc/sys/kernel/random/boot_id");
	h->pid = (uint64_t)getpid();
	h->pid_start = own_start_time();
	h->pidns_ino = stat("/proc/self/ns/pid", &ns) == 0 ? ns.st_ino : 0;
	h->rank = (uint32_t)o->id.rank;
	h->clock = o->rec->clock;
	h->created_mono_ns = clock_ns(CLOCK_MONOTONIC);
	h->created_real_ns = clock_ns(CLOCK_REALTIME);
	h->n_chunks = l->n_chunks;
	h->chunk_bytes = l->chunk_bytes;
	h->n_slots = l->n_slots;
	h->n_pins = DREC_PINS_MAX;
	h->n_dict_ids = l->n_dict_ids;
	h->n_anchors = l->n_anchors;
	h->uid = (uint32_t)geteuid();
	memcpy(h->job, o->id.job, sizeof(h->job));
	memcpy(h->name, o->id.name, sizeof(h->name));
	memcpy(h->host, o->id.host, sizeof(h->host));
	memcpy(h->section, l->section, sizeof(l->section));
}

/* Two anchors, far enough apart to tell the counter's rate. */
static void first_anchors(struct drec *rec, int64_t began_ns, uint64_t began_ticks)
{
	rec->anchors[0].clocksource = ticks_clocksource();
	anchor_write(rec);
	rec->first_ticks = rec->anchors[0].ticks;
	struct timespec gap = {.tv_nsec = ANCHOR_GAP_NS};
	int64_t passed = rec->anchors[0].mono_ns - began_ns;
	if (rec->clock == DREC_CLOCK_MONO || rec->clock == DREC_CLOCK_UNIX) {
		rec->ticks_per_second = 1000000000;
		rec->state->anchor_due = ticks_now(rec->clock) + rec->ticks_per_second;
		return;
	}
	if (passed < ANCHOR_GAP_NS) {
		nanosleep(&gap, NULL);
		began_ns = rec->anchors[0].mono_ns;
		began_ticks = rec->anchors[0].ticks;
	}
	anchor_write(rec);
	const struct drec_anchor *now = &rec->anchors[1];
	uint64_t ns = (uint64_t)(now->mono_ns - began_ns);
	rec->ticks_per_second = (uint64_t)((unsigned __int128)(now->ticks - began_ticks) * 1000000000u / (ns ? ns : 1));
	rec->state->anchor_due = now->ticks + rec->ticks_per_second / 128;
}

static void fill_state(struct drec *rec)
{
	for (uint32_t i = 0; i < rec->n_chunks; i++)
		rec->order[i] = DREC_ORDER_WORD(DREC_CHUNK_CLOSED, i + 1, i);
	rec->state->tail = rec->n_chunks + 1;
	rec->state->dict_next_id = 1;
	for (uint32_t i = 0; i < rec->n_slots; i++)
		rec->slots[i].chunk = NO_CHUNK;
}

static int publish(struct opening *o)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
	struct stat folder, file;
	if (fcntl(o->fd, F_SETLK, &lock) < 0)
		return fail(o, -errno, "the ring cannot be locked");
	POINT(create_locked);
	if (fstat(o->dirfd, &folder) < 0 || fstat(o->fd, &file) < 0)
		return fail(o, -errno, "the ring cannot be looked at");
	o->rec->inode = file.st_ino;
	/* A setgid folder is the system's: its group is the daemon's alone. */
	if (fchmod(o->fd, folder.st_mode & S_ISGID ? 0660 : 0600) < 0)
		return fail(o, -errno, "the ring's mode cannot be set");
	if (renameat2(o->dirfd, o->hidden, o->dirfd, o->visible, RENAME_NOREPLACE) < 0)
		return fail(o, -errno, "the ring cannot be renamed in place");
	o->hidden[0] = 0;
	POINT(create_visible);
	return 0;
}

static void undo(struct opening *o)
{
	if (o->hidden[0] && o->dirfd >= 0)
		unlinkat(o->dirfd, o->hidden, 0);
	if (o->map)
		munmap(o->map, (size_t)o->layout.file_bytes);
	if (o->rec && o->rec->live)
		munmap(o->rec->live, DREC_PAGE_BYTES);
	if (o->rec) {
		uint8_t *memory = (uint8_t *)o->rec;
		uint8_t *names_end = (uint8_t *)(o->rec->names + o->rec->names_mask + 1);
		munmap(memory, (size_t)(names_end - memory));
	}
	if (o->fd >= 0)
		close(o->fd);
}

static int build(struct opening *o)
{
	int ret;
	if ((ret = threads_init()) < 0)
		return fail(o, ret, "no thread-specific key is left");
	if ((ret = read_identity(o)) < 0 || (ret = open_folder(o)) < 0 || (ret = choose_size(o)) < 0 ||
	    (ret = random_name(o)) < 0 || (ret = make_recorder(o)) < 0)
		return ret;
	int64_t began_ns = clock_ns(CLOCK_MONOTONIC);
	uint64_t began_ticks = ticks_now(ticks_choose(o->options->clock));
	if ((ret = allocate(o)) < 0)
		return ret;
	point_into_file(o);
	fill_state(o->rec);
	fill_header(o);
	first_anchors(o->rec, began_ns, began_ticks);
	POINT(create_filled);
	return publish(o);
}

int drec_open_strict(const struct drec_options *options, drec **ret_rec, const char **ret_why)
{
	static const struct drec_options defaults;
	struct opening o = {.options = options ? options : &defaults, .dirfd = -1, .fd = -1};
	int ret = build(&o);
	if (ret < 0) {
		undo(&o);
		if (ret_why)
			*ret_why = o.why;
	} else {
		struct drec *rec = o.rec;
		memcpy(rec->job, o.id.job, sizeof(rec->job));
		memcpy(rec->name, o.id.name, sizeof(rec->name));
		snprintf(rec->path, sizeof(rec->path), "%.470s/rings/%s", o.dir, o.visible);
		rec->generation = fetch_add_relaxed(&generations, 1) + 1;
		store_release(rec->live, rec->generation);
		recorders_add(rec);
		*ret_rec = rec;
	}
	if (o.dirfd >= 0)
		close(o.dirfd);
	return ret;
}

drec *drec_open(const struct drec_options *options)
{
	int saved = errno;
	drec *rec = NULL;
	int ret = drec_open_strict(options, &rec, NULL);
	errno = ret < 0 ? -ret : saved;
	return rec;
}

const char *drec_path(const drec *rec)
{
	return rec ? rec->path : NULL;
}

uint64_t drec_ring_bytes(const drec *rec)
{
	return rec ? (uint64_t)rec->n_chunks * rec->chunk_bytes : 0;
}
