/* SPDX-License-Identifier: Apache-2.0 */
/* A small made-up ring with every kind of record in it, the same bytes each time. */
#ifndef TESTS_MADE_RING_H
#define TESTS_MADE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `fed`: as a trace was fed into it, else as a job wrote it. The caller frees. */
uint8_t *made_ring(bool fed, size_t *ret_bytes);

#endif
