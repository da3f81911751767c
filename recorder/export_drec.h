/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Window files out of an export: a ring or window file as it is, and anything else through a ring made for it
 * (and gone with it).
 */
#ifndef RECORDER_EXPORT_DREC_H
#define RECORDER_EXPORT_DREC_H

#include "export_sources.h"

struct export_drec_result {
	uint64_t events;  /* 0 where the file was taken as it is */
	uint64_t too_big; /* events over 512 KiB */
	uint64_t args;    /* left out */
	uint64_t file_bytes;
};

/* A source that is a ring or window file, byte for byte. 0, or -errno of the output; where reading failed the
 * message is out and *ret_status is COMMAND_FAILED. */
int export_drec_copy(struct export_sources *sources, int fd, struct export_drec_result *ret, int *ret_status);

/* A trace's events into a window file. `folder` is where the ring is made. The same results. */
int export_drec_make(struct export_sources *sources, int fd, const char *folder, bool strip_args,
		     struct export_drec_result *ret, int *ret_status);

#endif
