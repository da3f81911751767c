/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices are cut out section by section; a section begins at a seek point and has the slices that begin in it.
 *
 * The calling thread walks the sections in order. One that no other thread has begun it unpacks itself and
 * hands its slices on as they come. The other threads take the next sections ahead, gathering their slices
 * (whose sum is known before) as long as all that is gathered stays within the limit; while a section that is
 * due is still being unpacked, the calling thread gathers one ahead as well. So none waits for another one
 * while there is work within the limit, and nobody waits in a circle: the section that is due is always either
 * free for the calling thread, gathered, or in the hands of a thread that waits for nothing.
 */
#include <reducer/slices.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "input_state.h"

enum { WINDOW_BYTES = 256 << 10, PLAIN_SECTION_BYTES = 8 << 20, THREADS_MAX = 16 };

enum section_state { SECTION_FREE, SECTION_TAKEN, SECTION_GATHERED };

struct section {
	size_t point;
	size_t first, past; /* slices */
	uint64_t bytes;     /* of its slices */
	enum section_state state;
	int result;
	char *gathered;
};

typedef int slice_function(void *context, size_t index, const char *data, size_t bytes);

struct job {
	const char *path;
	const struct reducer_seek_points *points;
	const struct reducer_slice *slice;
	struct section *section;
	size_t n_sections;
	pthread_mutex_t lock; /* of what follows, and of the sections' state */
	pthread_cond_t changed;
	size_t next_free;     /* no section before it is free */
	uint64_t held;        /* bytes gathered or to be gathered */
	bool stop;
};

/* A window on the unpacked text that moves on. */
struct window {
	struct reducer_input *input;
	char *data;
	size_t room, bytes;
	uint64_t offset; /* of data[0] in the text */
};

static int window_read(struct window *w)
{
	int64_t got = reducer_input_read(w->input, w->data + w->bytes, w->room - w->bytes);
	if (got <= 0)
		return got < 0 ? (int)got : -ENODATA;
	w->bytes += (size_t)got;
	return 0;
}

/* Makes room for `bytes` from `offset` on, which is at or beyond the window's offset. */
static int window_move(struct window *w, uint64_t offset, size_t bytes)
{
	if (offset - w->offset < w->bytes) {
		size_t drop = (size_t)(offset - w->offset);
		w->bytes -= drop;
		memmove(w->data, w->data + drop, w->bytes);
		w->offset = offset;
	} else {
		w->offset += w->bytes;
		w->bytes = 0;
	}
	if (bytes <= w->room)
		return 0;
	size_t room = bytes + WINDOW_BYTES;
	char *data = realloc(w->data, room);
	if (!data)
		return -ENOMEM;
	w->data = data;
	w->room = room;
	return 0;
}

/* The text of a slice, in one piece. */
static int window_show(struct window *w, const struct reducer_slice *slice, const char **ret)
{
	while (slice->offset - w->offset > w->bytes || w->bytes - (slice->offset - w->offset) < slice->bytes) {
		int result = 0;
		if (w->bytes == w->room || slice->offset - w->offset >= w->bytes ||
		    slice->bytes > w->room - (slice->offset - w->offset))
			result = window_move(w, slice->offset, slice->bytes);
		if (result == 0)
			result = window_read(w);
		if (result < 0)
			return result;
	}
	*ret = w->data + (slice->offset - w->offset);
	return 0;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int open_at(const struct job *job, size_t point, struct reducer_input **ret_input)
{
	struct stat file;
	int fd = open(job->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &file) < 0) {
		int result = -errno;
		close(fd);
		return result;
	}
	if (!same_file(&file, &job->points->file)) {
		close(fd);
		return -ESTALE;
	}
	return input_from_point(fd, job->points, point, ret_input);
}

static int cut_out(const struct job *job, const struct section *section, slice_function *got, void *context)
{
	struct window w = {.room = WINDOW_BYTES, .offset = job->points->point[section->point].offset};
	int result = open_at(job, section->point, &w.input);
	if (result == 0 && !(w.data = malloc(w.room)))
		result = -ENOMEM;
	for (size_t i = section->first; result == 0 && i < section->past; i++) {
		const char *data;
		result = window_show(&w, &job->slice[i], &data);
		if (result == 0)
			result = got(context, i, data, job->slice[i].bytes);
	}
	free(w.data);
	reducer_input_free(w.input);
	return result;
}

static int gather_slice(void *context, size_t index, const char *data, size_t bytes)
{
	char **to = context;
	(void)index;
	memcpy(*to, data, bytes);
	*to += bytes;
	return 0;
}

/* Takes the first free section beyond `due` if what it will hold is within the limit. Locked. */
static struct section *take_ahead(struct job *job, size_t due)
{
	while (job->next_free < job->n_sections && (job->next_free <= due ||
						    job->section[job->next_free].state != SECTION_FREE))
		job->next_free++;
	if (job->next_free == job->n_sections)
		return NULL;
	struct section *section = &job->section[job->next_free];
	if (section->bytes > REDUCER_SLICES_BYTES - job->held)
		return NULL;
	job->held += section->bytes;
	section->state = SECTION_TAKEN;
	return section;
}

/* Gathers a section that was taken ahead. Called and returns locked. */
static void gather(struct job *job, struct section *section)
{
	pthread_mutex_unlock(&job->lock);
	char *data = malloc(section->bytes ? section->bytes : 1), *to = data;
	int result = data ? cut_out(job, section, gather_slice, &to) : -ENOMEM;
	pthread_mutex_lock(&job->lock);
	section->gathered = data;
	section->result = result;
	section->state = SECTION_GATHERED;
	pthread_cond_broadcast(&job->changed);
}

static void *work_ahead(void *context)
{
	struct job *job = context;
	pthread_mutex_lock(&job->lock);
	while (!job->stop) {
		struct section *section = take_ahead(job, 0);
		if (section)
			gather(job, section);
		else if (job->next_free == job->n_sections)
			break;
		else
			pthread_cond_wait(&job->changed, &job->lock);
	}
	pthread_mutex_unlock(&job->lock);
	return NULL;
}

static int hand_on(const struct job *job, const struct section *section, slice_function *got, void *context)
{
	const char *data = section->gathered;
	int result = 0;
	for (size_t i = section->first; result == 0 && i < section->past; i++) {
		result = got(context, i, data, job->slice[i].bytes);
		data += job->slice[i].bytes;
	}
	return result ? result : section->result;
}

/* The slices of section `due`, handed on. Called and returns locked. */
static int deliver(struct job *job, size_t due, slice_function *got, void *context)
{
	struct section *section = &job->section[due];
	while (section->state == SECTION_TAKEN) {
		struct section *ahead = take_ahead(job, due);
		if (ahead)
			gather(job, ahead);
		else
			pthread_cond_wait(&job->changed, &job->lock);
	}
	bool gathered = section->state == SECTION_GATHERED;
	section->state = SECTION_TAKEN;
	pthread_cond_broadcast(&job->changed);
	pthread_mutex_unlock(&job->lock);
	int result = section->result;
	if (!gathered)
		result = cut_out(job, section, got, context);
	else if (result == 0)
		result = hand_on(job, section, got, context);
	free(section->gathered);
	section->gathered = NULL;
	pthread_mutex_lock(&job->lock);
	if (gathered)
		job->held -= section->bytes;
	pthread_cond_broadcast(&job->changed);
	return result;
}

static int run(struct job *job, unsigned threads, slice_function *got, void *context)
{
	pthread_t thread[THREADS_MAX];
	unsigned started = 0;
	int result = 0;
	if (threads > THREADS_MAX)
		threads = THREADS_MAX;
	/* Fewer threads than asked for only take longer. */
	while (started + 1 < threads && started + 1 < job->n_sections &&
	       pthread_create(&thread[started], NULL, work_ahead, job) == 0)
		started++;
	pthread_mutex_lock(&job->lock);
	for (size_t due = 0; due < job->n_sections && result == 0; due++)
		result = deliver(job, due, got, context);
	job->stop = true;
	pthread_cond_broadcast(&job->changed);
	pthread_mutex_unlock(&job->lock);
	while (started > 0)
		pthread_join(thread[--started], NULL);
	return result;
}

static bool ascend(const struct reducer_slice *slice, size_t count)
{
	uint64_t past = 0;
	for (size_t i = 0; i < count; i++) {
		if (slice[i].offset < past || slice[i].bytes > UINT64_MAX - slice[i].offset)
			return false;
		past = slice[i].offset + slice[i].bytes;
	}
	return true;
}

/* A section for each seek point that has slices. */
static int cut_sections(struct job *job, size_t count)
{
	const struct reducer_seek_points *points = job->points;
	job->section = calloc(points->n, sizeof(*job->section));
	if (!job->section)
		return -ENOMEM;
	for (size_t p = 0, at = 0; p < points->n && at < count; p++) {
		struct section section = {.point = p, .first = at};
		while (at < count && (p + 1 == points->n || job->slice[at].offset < points->point[p + 1].offset))
			section.bytes += job->slice[at++].bytes;
		section.past = at;
		if (section.past > section.first)
			job->section[job->n_sections++] = section;
	}
	return 0;
}

/* What a reading without seek points knows: the beginning, and any place of a plain file. */
static int points_of(const char *path, struct reducer_seek_points *ret)
{
	struct reducer_input *input;
	struct stat file;
	int result = reducer_input_open(path, &input, NULL);
	if (result < 0)
		return result;
	enum reducer_packing packing = reducer_input_packing(input);
	result = fstat(input->fd, &file) < 0 ? -errno : S_ISREG(file.st_mode) ? 0 : -ESPIPE;
	reducer_input_free(input);
	if (result < 0)
		return result;
	size_t n = 1;
	if (packing == REDUCER_PLAIN)
		n += (size_t)((uint64_t)file.st_size / PLAIN_SECTION_BYTES);
	struct seek_point *point = calloc(n, sizeof(*point));
	if (!point)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		point[i].offset = point[i].file_offset = (uint64_t)i * PLAIN_SECTION_BYTES;
	*ret = (struct reducer_seek_points){.file = file, .packing = packing, .n = n, .room = n, .point = point};
	return 0;
}

int reducer_slices_read(const char *path, const struct reducer_seek_points *points,
			const struct reducer_slice *slices, size_t count, unsigned threads,
			int (*got)(void *context, size_t index, const char *data, size_t bytes), void *context)
{
	struct reducer_seek_points own = {0};
	struct job job = {.path = path, .points = points, .slice = slices};
	if (!ascend(slices, count))
		return -EINVAL;
	if (!points || points->packing == REDUCER_PLAIN) {
		int result = points_of(path, &own);
		if (result < 0)
			return result;
		if (points && !same_file(&own.file, &points->file)) {
			free(own.point);
			return -ESTALE;
		}
		job.points = &own;
	}
	int result = cut_sections(&job, count);
	if (result == 0) {
		pthread_mutex_init(&job.lock, NULL);
		pthread_cond_init(&job.changed, NULL);
		result = run(&job, threads, got, context);
		pthread_cond_destroy(&job.changed);
		pthread_mutex_destroy(&job.lock);
	}
	for (size_t i = 0; i < job.n_sections; i++)
		free(job.section[i].gathered);
	free(job.section);
	free(own.point);
	return result;
}
