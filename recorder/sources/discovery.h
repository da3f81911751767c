/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources/discovery.h: notices rings as they appear in `<run dir>/rings`.
 *
 * A ring appears by rename, whole. What inotify may miss (made before the watch, or an overflowed queue) a
 * rescan finds: at the start, on overflow, and every 10 s. The same rescan removes what a killed producer left
 * under a hidden name: not locked and older than a minute.
 *
 * One thread: the loop's.
 */
#ifndef RECORDER_SOURCES_DISCOVERY_H
#define RECORDER_SOURCES_DISCOVERY_H

#include <stdint.h>

struct discovery;

/* A ring file of this name is (still) there; called again for the same one. */
typedef void discovery_found_fn(void *context, const char *name);

/* Watches the folder. The descriptor of discovery_fd() is readable when discovery_read() has something to do. */
int discovery_new(const char *rings_path, discovery_found_fn *found, void *context, struct discovery **ret_discovery);
void discovery_free(struct discovery *discovery);

int discovery_fd(const struct discovery *discovery);
int discovery_folder_fd(const struct discovery *discovery);

void discovery_read(struct discovery *discovery);
void discovery_rescan(struct discovery *discovery);

/* Whether a name is that of a visible ring. */
int discovery_is_ring(const char *name);

#endif
