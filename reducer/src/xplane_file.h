/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a whole file: mapped where it is plain, unpacked into memory where it is packed. */
#ifndef REDUCER_XPLANE_FILE_H
#define REDUCER_XPLANE_FILE_H

#include <reducer/event.h>

/* No protobuf message may be larger. */
#define XPLANE_BYTES_MAX ((size_t)INT32_MAX)

struct xplane_file {
	const uint8_t *data;
	size_t bytes;
	int mapped;
};

/*
 * 0, -EFBIG beyond XPLANE_BYTES_MAX, or another -errno; *ret_problem says more. Packing that ends early gives
 * what came before, and 1: *ret_problem then says why. A plain file must not shrink while it is used.
 */
int xplane_file_load(const char *path, struct xplane_file *ret_file, struct reducer_problem *ret_problem);
void xplane_file_free(struct xplane_file *file);

#endif
