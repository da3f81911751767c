/* SPDX-License-Identifier: Apache-2.0 */
#include "input_state.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <reducer/slices.h>

/* The distance at first: a section is then worth a thread's while, and most files have several. */
enum { DISTANCE_MIN = 8 << 20 };

#ifdef REDUCER_HAVE_ISAL
enum { STATE_BYTES = sizeof(input_inflate) };

static input_inflate *copy_state(input_inflate *state)
{
	input_inflate *copy = malloc(sizeof(*copy));
	if (copy)
		*copy = *state;
	return copy;
}

static void free_state(input_inflate *state)
{
	free(state);
}

static int restore_state(struct reducer_input *input, input_inflate *state)
{
	input->inflate = *state;
	input->header = (struct gzip_header){.done = 1};
	return 0;
}
#else
/* The window and zlib's own tables, about. */
enum { STATE_BYTES = 48 << 10 };

static input_inflate *copy_state(input_inflate *state)
{
	input_inflate *copy = calloc(1, sizeof(*copy));
	if (copy && inflateCopy(copy, state) == Z_OK)
		return copy;
	free(copy);
	return NULL;
}

static void free_state(input_inflate *state)
{
	if (state)
		inflateEnd(state);
	free(state);
}

static int restore_state(struct reducer_input *input, input_inflate *state)
{
	if (inflateCopy(&input->inflate, state) != Z_OK)
		return -ENOMEM;
	input->inflate_ready = 1;
	return 0;
}
#endif

int reducer_input_keep_seek_points(struct reducer_input *input)
{
	struct stat file;
	if (input->offset > 0 || input->points)
		return -EINVAL;
	if (fstat(input->fd, &file) < 0)
		return -errno;
	if (!S_ISREG(file.st_mode) || lseek(input->fd, 0, SEEK_CUR) != (off_t)input->file_offset)
		return 0;
	struct reducer_seek_points *points = calloc(1, sizeof(*points));
	struct seek_point *point = calloc(1, sizeof(*point));
	if (!points || !point) {
		free(points);
		free(point);
		return -ENOMEM;
	}
	*points = (struct reducer_seek_points){
		.file = file, .packing = input->packing, .distance = DISTANCE_MIN, .n = 1, .room = 1, .point = point};
	input->points = points;
	input->next_point = DISTANCE_MIN;
	return 0;
}

int reducer_input_take_seek_points(struct reducer_input *input, struct reducer_seek_points **ret_points)
{
	if (!input->points)
		return -ENOENT;
	*ret_points = input->points;
	input->points = NULL;
	return 0;
}

void reducer_seek_points_free(struct reducer_seek_points *points)
{
	if (!points)
		return;
	for (size_t i = 0; i < points->n; i++)
		free_state(points->point[i].inflate);
	free(points->point);
	free(points);
}

/* Drops every second point but the first. */
static void thin_out(struct reducer_seek_points *points)
{
	size_t kept = 0;
	for (size_t i = 0; i < points->n; i++) {
		if (i % 2 == 0)
			points->point[kept++] = points->point[i];
		else
			free_state(points->point[i].inflate);
	}
	points->n = kept;
	points->distance *= 2;
}

static bool make_room(struct reducer_seek_points *points)
{
	if (points->n < points->room)
		return true;
	size_t room = points->room * 2;
	struct seek_point *grown = realloc(points->point, room * sizeof(*grown));
	if (!grown)
		return false;
	points->point = grown;
	points->room = room;
	return true;
}

void input_note_point(struct reducer_input *input)
{
	struct reducer_seek_points *points = input->points;
	bool between = !input->in_member;
	if (input->ended || input->damaged || input->packing == REDUCER_PLAIN ||
	    (input->packing == REDUCER_ZSTD && !between))
		return;
	if ((points->n + 1) * (STATE_BYTES + sizeof(struct seek_point)) > REDUCER_SEEK_POINTS_BYTES)
		thin_out(points);
	input->next_point = points->point[points->n - 1].offset + points->distance;
	if (input->offset < input->next_point || !make_room(points))
		return;
	struct seek_point point = {input->offset, input->file_offset - (input->packed_bytes - input->packed_at), NULL};
	if (!between && !(point.inflate = copy_state(&input->inflate)))
		return;
	points->point[points->n++] = point;
	input->next_point = input->offset + points->distance;
}

static int resume(struct reducer_input *input, const struct reducer_seek_points *points,
		  const struct seek_point *point)
{
	if (lseek(input->fd, (off_t)point->file_offset, SEEK_SET) < 0)
		return -errno;
	input->offset = point->offset;
	input->file_offset = point->file_offset;
	if (points->packing == REDUCER_ZSTD) {
		input->zstd = ZSTD_createDStream();
		input->zstd_wants = ZSTD_WANTS_FIRST;
		return input->zstd ? 0 : -ENOMEM;
	}
	input->in_member = point->inflate != NULL;
	return point->inflate ? restore_state(input, point->inflate) : 0;
}

int input_from_point(int fd, const struct reducer_seek_points *points, size_t index,
		     struct reducer_input **ret_input)
{
	struct reducer_input *input = calloc(1, sizeof(*input));
	if (!input) {
		close(fd);
		return -ENOMEM;
	}
	input->fd = fd;
	input->owns_fd = 1;
	input->packing = points->packing;
	int result = resume(input, points, &points->point[index]);
	if (result < 0) {
		reducer_input_free(input);
		return result;
	}
	*ret_input = input;
	return 0;
}
