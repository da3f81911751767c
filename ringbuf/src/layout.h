/* SPDX-License-Identifier: Apache-2.0 */
/* How large the parts of a ring are, and where they lie. Pure arithmetic. */
#ifndef RINGBUF_LAYOUT_H
#define RINGBUF_LAYOUT_H

#include <driverec/driverec.h>
#include <driverec/format.h>

struct layout {
	uint32_t n_chunks;
	uint32_t chunk_bytes;
	uint32_t n_slots;
	uint32_t n_dict_ids;
	uint32_t n_anchors;
	uint64_t dict_bytes;
	uint64_t file_bytes;
	struct drec_section section[9]; /* STATE .. DATA, in the order of their types */
};

enum { LAYOUT_SECTIONS = 9 };

/* For `ring_bytes` of event data (0 = the default). -EINVAL if the options cannot be met. */
int layout_compute(uint64_t ring_bytes, uint32_t chunk_bytes, uint32_t dict_ids, uint64_t dict_bytes,
		   struct layout *ret);

#endif
