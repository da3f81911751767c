/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope/overlay.h: the bad step of an incident, and the last good one before it, out of its raw window.
 *
 * The bad step is that of the incident, else the one around its t0. The good one is the last step before it
 * of the same thread and phase that took no more than 1.2 times, and no less than half of, the median of
 * those.
 */
#ifndef RECORDER_SCOPE_OVERLAY_H
#define RECORDER_SCOPE_OVERLAY_H

#include "model.h"

struct scope_overlay_data;

/*
 * Reads the raw window, once an incident: at most SCOPE_OVERLAY_BYTES_MAX of it. Where there is nothing to
 * lay over *ret_data says why. -ENOMEM, or why the incident cannot be read.
 */
#define SCOPE_OVERLAY_BYTES_MAX ((uint64_t)256 << 20)
int scope_overlay_load(struct incidents_store *store, const struct incidents_entry *entry,
		       struct scope_overlay_data **ret_data);
void scope_overlay_free(struct scope_overlay_data *data);

/* Both steps in `cells` cells; a bad one longer than eight good ones is cut. NULL data: an empty overlay. */
void scope_overlay_fill(const struct scope_overlay_data *data, unsigned cells, struct scope_overlay *ret);

#endif
