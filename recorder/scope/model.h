/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope/model.h: what `driverec scope` shows, as data: gather.c fills it in, layout.c draws it, json.c prints
 * it.
 *
 * Columns are bins of time: column i is [from_ns + i * width_ns, + width_ns). Unix ns. Texts may hold
 * anything that a producer wrote; who draws them makes them harmless.
 */
#ifndef RECORDER_SCOPE_MODEL_H
#define RECORDER_SCOPE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "grid.h"
#include "incidents/store.h"

enum {
	SCOPE_TRACKS_MAX = 256, /* shown at a time */
	SCOPE_INCIDENTS_MAX = 512,
	SCOPE_TEXT_MAX = 192,
	SCOPE_OVERLAY_TRACKS_MAX = 16,
	SCOPE_PERMILLE = 1000,
	SCOPE_UNKNOWN = UINT16_MAX /* a bin that was not kept this fine, or has not come yet */
};

/* Of the rings together: the slowest one. */
struct scope_step_column {
	int64_t longest_ns; /* 0 = no step */
	int64_t warn_ns;    /* from where it would have been a spike that warns; 0 = not known */
	bool open;          /* of a step that is still open */
};

struct scope_track {
	char label[SCOPE_TEXT_MAX];
	bool coarsened; /* the file was full and gave up bins this fine: some may be missing */
	uint16_t busy[SCOPE_WIDTH_MAX]; /* permille of the bin, or SCOPE_UNKNOWN */
	uint16_t share;                 /* permille of what is known of the window, or SCOPE_UNKNOWN */
};

struct scope_incident {
	char id[INCIDENTS_ID_TEXT];
	unsigned digits; /* of the id that tell it apart */
	char trigger[TRIGGERS_NAME_MAX];
	char sentence[512];
	enum triggers_severity severity;
	int64_t t0_ns, step;
	bool ongoing;
};

enum { SCOPE_GOOD_STEP, SCOPE_BAD_STEP, SCOPE_OVERLAY_STEPS };

struct scope_overlay_step {
	bool there;
	bool unfinished; /* still open where the window ends */
	int64_t number, start_ns, length_ns;
};

struct scope_overlay_track {
	char label[SCOPE_TEXT_MAX];
	uint16_t busy[SCOPE_OVERLAY_STEPS]
		     [SCOPE_WIDTH_MAX]; /* permille, or SCOPE_UNKNOWN past the step's end */
	char grew[SCOPE_TEXT_MAX];      /* the span that grew most; "" = none */
	int64_t grew_ns[SCOPE_OVERLAY_STEPS];
};

/* The last bad step over the last good one, both from their start on. */
struct scope_overlay {
	char id[INCIDENTS_ID_TEXT]; /* "" = there is no incident */
	char why[SCOPE_TEXT_MAX];   /* why there is nothing to lay over; "" = there is */
	struct scope_overlay_step step[SCOPE_OVERLAY_STEPS];
	int64_t cell_ns;
	unsigned cells;
	bool cut; /* the bad step goes on past the last cell */
	struct scope_overlay_track track[SCOPE_OVERLAY_TRACKS_MAX];
	unsigned n_tracks, more_tracks;
};

struct scope_open_step {
	bool there;
	int64_t number, for_ns, deadline_ns;
	char ring[SCOPE_TEXT_MAX], inside[SCOPE_TEXT_MAX];
};

struct scope_model {
	bool live;
	char not_live[SCOPE_TEXT_MAX]; /* why not */
	bool has_picture;
	char no_picture[SCOPE_TEXT_MAX]; /* why not */
	int64_t now_ns;                  /* the daemon's; that of the picture where nothing is live */
	int64_t picture_ns;              /* when the bins were committed */
	char job[SCOPE_TEXT_MAX];
	unsigned rings, alive;
	int64_t step, median_ns, warn_ns, critical_ns; /* step -1, 0 = not known */
	struct scope_open_step open;
	unsigned incidents_open;

	int64_t from_ns, width_ns;
	unsigned columns;
	bool has_steps; /* the file has step times at all */
	struct scope_step_column steps[SCOPE_WIDTH_MAX];
	struct scope_track track[SCOPE_TRACKS_MAX];
	unsigned n_tracks;            /* in `track` */
	unsigned first_track, tracks; /* which of how many that were there in this window */
	struct scope_incident incident[SCOPE_INCIDENTS_MAX]; /* oldest first */
	unsigned n_incidents;
	unsigned selected; /* index; n_incidents = none */
	struct scope_overlay overlay;
};

/* Whether a column's bin is over by the time of the picture, so that "no step" means none. */
static inline bool scope_model_past(const struct scope_model *model, unsigned column)
{
	return model->from_ns + (int64_t)column * model->width_ns < model->picture_ns;
}

#endif
