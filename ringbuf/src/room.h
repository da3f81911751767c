/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory a ring may take beside the job that lives in the same memory. */
#ifndef RINGBUF_ROOM_H
#define RINGBUF_ROOM_H

#include <stdint.h>

/* Bytes until the process's memory cgroup is full, UINT64_MAX where there is no limit to be seen. */
uint64_t room_cgroup_headroom(void);

/*
 * The most a new ring file may take in the file system of `dirfd`: 1/8 of what is free, 1/4 of the cgroup's
 * headroom, and what is left of a quarter of the file system for all rings of the folder together.
 */
uint64_t room_for_ring(int dirfd, uint64_t rings_bytes);

#endif
