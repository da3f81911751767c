/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope/gather.h: where the picture comes from.
 *
 *   <store>/macro.tiers      step times and busy time; the daemon commits it while it is read
 *   GET /api/v1/steps        what the daemon believes and what is open, once a second
 *   <store>/incidents        read when the folder changes
 *   raw windows              of the incident that is selected, once
 *
 * Any of them may be missing, come later or go away; the model says what is. One thread. Errors are -errno.
 */
#ifndef RECORDER_SCOPE_GATHER_H
#define RECORDER_SCOPE_GATHER_H

#include <cjson/cJSON.h>

#include <reducer/tiers.h>

#include "model.h"
#include "view.h"

struct scope_gather;

/* -ENOENT: there is no daemon and nothing that one has left. `run_dir` as of drec_run_dir(). */
int scope_gather_new(const char *run_dir, const char *store, struct scope_gather **ret_gather);
void scope_gather_free(struct scope_gather *gather);

/* Asks whoever is due to be asked. 1 if there is something new to be drawn. */
int scope_gather_poll(struct scope_gather *gather, int64_t mono_ns);

/* The tiers' layout, or the usual one while there is no file. */
void scope_gather_tiers(const struct scope_gather *gather, struct reducer_tiers_options *ret_options);

/* How much of it fits on the screen. */
struct scope_room {
	unsigned columns, tracks, overlay_cells;
};

/*
 * Fills all of *ret_model. -EAGAIN: the file changed faster than it could be read, *ret_model is of no use;
 * try again later.
 */
int scope_gather_fill(struct scope_gather *gather, const struct scope_view *view,
		      const struct scope_room *room, struct scope_model *ret_model);

/* gather_bins.c: the part that comes out of the tiers; the window is set. May return -EAGAIN. */
int scope_gather_bins(struct reducer_tiers *tiers, unsigned first_track, unsigned tracks,
		      struct scope_model *model);

/* gather_live.c: what GET /api/v1/steps said. */
void scope_gather_live(const cJSON *answer, struct scope_model *model);

#endif
