/* SPDX-License-Identifier: Apache-2.0 */
#include "xplane_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <reducer/input.h>

#include "buffer.h"

enum { READ_BYTES = 1 << 20 };

static int too_large(struct reducer_problem *problem)
{
	snprintf(problem->what, sizeof(problem->what), "larger than 2 GiB, which no protobuf message can be");
	return -EFBIG;
}

static int map_plain(const char *path, struct xplane_file *ret_file, struct reducer_problem *problem)
{
	struct stat status;
	int result = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &status) < 0) {
		result = -errno;
	} else if (!S_ISREG(status.st_mode)) {
		result = -ENODEV;
	} else if ((uint64_t)status.st_size > XPLANE_BYTES_MAX) {
		result = too_large(problem);
	} else if (status.st_size > 0) {
		void *data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (data == MAP_FAILED)
			result = -errno;
		else
			*ret_file = (struct xplane_file){data, (size_t)status.st_size, 1};
	}
	close(fd);
	return result;
}

static int read_all(struct reducer_input *input, struct buffer *out, struct reducer_problem *problem)
{
	for (;;) {
		char *to = buffer_room(out, READ_BYTES);
		if (!to)
			return -ENOMEM;
		int64_t got = reducer_input_read(input, to, READ_BYTES);
		if (got <= 0)
			return (int)got;
		out->bytes += (size_t)got;
		if (out->bytes > XPLANE_BYTES_MAX)
			return too_large(problem);
	}
}

int xplane_file_load(const char *path, struct xplane_file *ret_file, struct reducer_problem *ret_problem)
{
	struct reducer_input *input;
	struct xplane_file file = {0};
	struct buffer bytes = {0};
	*ret_problem = (struct reducer_problem){0};
	int result = reducer_input_open(path, &input, ret_problem);
	if (result < 0)
		return result;
	result = -ENODEV;
	if (reducer_input_packing(input) == REDUCER_PLAIN)
		result = map_plain(path, &file, ret_problem);
	/* What cannot be mapped, a pipe say, can be read. */
	if (result == -ENODEV) {
		result = read_all(input, &bytes, ret_problem);
		file = (struct xplane_file){(const uint8_t *)bytes.data, bytes.bytes, 0};
	}
	if (result == 0 && reducer_input_problem(input)) {
		*ret_problem = *reducer_input_problem(input);
		result = 1;
	}
	reducer_input_free(input);
	if (result < 0) {
		if (!ret_problem->what[0])
			snprintf(ret_problem->what, sizeof(ret_problem->what), "%s", strerror(-result));
		buffer_free(&bytes);
		return result;
	}
	*ret_file = file;
	return result;
}

void xplane_file_free(struct xplane_file *file)
{
	if (file->mapped)
		munmap((void *)(uintptr_t)file->data, file->bytes);
	else
		free((void *)(uintptr_t)file->data);
	*file = (struct xplane_file){0};
}
